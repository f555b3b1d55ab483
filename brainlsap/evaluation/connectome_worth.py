r"""What a connectome adds to the regions' own values, and whose connectome it is.

Diffusion over any dense graph averages the brain, so that a model of diffused features
can be better than one of the regions' own values although the connectome is random.
Credit is therefore given by residual columns. Let :math:`h_p` be the feature of region
p diffused at one scale for all regions, :math:`x_p` the region's own value and
:math:`m` the mean over regions. The residual column is what own value and mean do not
explain of the diffused value, by least squares over people:

.. math:: r_p = h_p - (\alpha_p + \beta_p x_p + \gamma_p m)

Two models of the class are compared. Rows are people, with weights U (each person
counts once, and every class the same); intercept and mean, F, are not penalised:

.. math::
   \text{own values:} \quad & t \sim N\left(F\gamma,\;
       v\,(X X^\top / \lambda_0 + U^{-1})\right) \\
   \text{network:} \quad & t \sim N\left(F\gamma,\;
       v\,(X X^\top / \lambda + c\,R R^\top + U^{-1})\right)

The ridge :math:`\lambda_0` maximises the evidence of the first model. The evidence of
the second is averaged over a grid of scales, of c and of :math:`\lambda`. The gain is
the log of their ratio, a log Bayes factor: it is below 0 where residual columns do not
help. The same gain is computed with connectomes that deserve no credit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import logsumexp
from scipy.stats import t as student
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from brainlsap.data import Cohort
from brainlsap.data.cohort import check_cohort_given
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.cross_validation import make_region_ridge
from brainlsap.evaluation.splits import make_splits
from brainlsap.exceptions import ParameterError, check_at_least

if TYPE_CHECKING:
    from brainlsap.graph import Preparation

RANDOM_CONNECTOMES = ("relabelled", "rewired")
"""Null connectomes of the first question: does the network add?"""

MIN_LOG_CREDIT = float(np.log(20.0))
"""Smallest gain in log evidence that counts: the data are 20 times as probable."""
# Write it here although a ridge accepts richer models by the same number
# (MIN_LOG_BAYES_FACTOR): reports need it, and do not import PyTorch.

MIN_PEOPLE_OF_CLASS = 4
"""Smallest number of people in a class with which a gain can be computed."""

# People are left out in so many groups.
_N_FOLDS = 10
# Grids over which the evidence of the network model is averaged. c times the mean
# square of a row of residual columns is a signal-to-noise ratio.
_SCALES = (0.5, 1.0, 2.0)
_SIGNAL_RATIOS = np.geomspace(0.01, 10.0, 7)
# With residual columns, own values need less weight than without.
_RIDGE_FACTORS = (1.0, 2.5)
# Log ridges per person of the own-value model.
_LOG_RIDGES = np.linspace(-6.0, 10.0, 65)
# Connectomes that are diffused over at once: so few stay in cache.
_DIFFUSED_AT_ONCE = 16
# Steps that restore the strengths of rewired connectomes.
_N_SCALINGS = 20
# Columns of which less than this part is left are explained: the rest is rounding.
_MIN_RESIDUAL = 1e-5


class Verdict(NamedTuple):
    """Answer to a question about the connectome.

    "yes": the gain in log evidence, and its lead over each null connectome of the
    question, reach a Bayes factor of 20 (3.0 nats), and no interval of a lead includes
    0. "no": a lead of a Bayes factor of 20 is outside the interval; this is no proof
    that the connectome does not matter. Else "unclear".

    Attributes
    ----------
    answer : {"yes", "no", "unclear"}
    compared_with : str
        The null connectome with the smallest lead, as in :class:`ConnectomeGain`.
    lead, low, high : float
        Gain of the connectome minus that of this null connectome, in nats, with its
        90 % interval: the lower end is a one-sided 95 % bound.
    """

    answer: str
    compared_with: str
    lead: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ConnectomeGain:
    """What the connectome adds to the regions' own values and their mean.

    Parameters
    ----------
    table : DataFrame
        One row per connectome: "original"; "relabelled" (each region has the
        connections of another); "rewired" (the weights of all connections on other
        pairs of regions, every region with its original strength); and where
        connectomes differ between people "exchanged" (each person has the connectome
        of another) and "group mean". Columns: connectome; n_draws; scale, the common
        scale that the data favour; evidence_gain, the gain in log evidence in nats;
        error_gain, the part of the left-out squared error of the own-value model that
        residual columns remove; evidence_lead and error_lead, the gain of the original
        minus this one (NaN for the original); each with its 90 % interval in `_low`
        and `_high`. Of several draws the mean is given.
    """

    table: pd.DataFrame

    @property
    def network(self) -> Verdict:
        """Whether the network adds beyond relabelled and rewired connectomes."""
        return self._judge(RANDOM_CONNECTOMES)

    @property
    def own_connectome(self) -> Verdict | None:
        """Whether a person's own connectome adds beyond another person's.

        None where all people have the same connectome.
        """
        if "exchanged" not in set(self.table["connectome"]):
            return None
        return self._judge(("exchanged",))

    def _judge(self, null_connectomes: Sequence[str]) -> Verdict:
        """Compare the original with some null connectomes, as :class:`Verdict` says."""
        connectome_rows = self.table.set_index("connectome")
        null_rows = connectome_rows.loc[[*null_connectomes]]
        strongest_null = null_rows.loc[null_rows["evidence_lead"].idxmin()]
        compared_gains = [
            connectome_rows.loc["original", "evidence_gain"],
            *null_rows["evidence_lead"],
        ]
        answer_text = "unclear"
        if (
            min(compared_gains) >= MIN_LOG_CREDIT
            and null_rows["evidence_lead_low"].min() > 0
        ):
            answer_text = "yes"
        elif null_rows["evidence_lead_high"].min() < MIN_LOG_CREDIT:
            answer_text = "no"
        return Verdict(
            answer_text,
            compared_with=str(strongest_null.name),
            lead=float(strongest_null["evidence_lead"]),
            low=float(strongest_null["evidence_lead_low"]),
            high=float(strongest_null["evidence_lead_high"]),
        )


class _Rows(NamedTuple):
    """People as rows; a person with several classes has a row for each."""

    region_values: np.ndarray
    """Own values (n_rows, n_columns), the mean over the scans of the row."""
    means: np.ndarray
    """Means over regions (n_rows, n_features)."""
    targets: np.ndarray
    """Targets of the class (n_rows, k)."""
    codes: np.ndarray
    """Class of each row (n_rows,)."""
    person: np.ndarray
    """Person of each row (n_rows,)."""
    shares: np.ndarray
    """Part of the person's scans in each row (n_rows,)."""

    def select(self, row_indices: np.ndarray) -> "_Rows":
        """Return some of the rows."""
        return _Rows(*(row_values[row_indices] for row_values in self))

    def unpenalized_columns(self) -> np.ndarray:
        """Return intercept and means, (n_rows, 1 + n_features)."""
        return np.hstack([np.ones((len(self.means), 1)), self.means])

    def weights(self) -> np.ndarray:
        """Return weights in which every class counts the same; people are their sum."""
        row_weights = self.shares / np.bincount(self.codes, self.shares)[self.codes]
        return row_weights * (self.shares.sum() / row_weights.sum())


@threadpool_limits.wrap(limits=1)
def connectome_gain(
    cohort: Cohort,
    steps: Deconfounder | None = None,
    model: Any = None,
    *,
    n_draws: int = 3,
    random_state: int = 0,
) -> ConnectomeGain:
    r"""Return what the connectome adds to the regions' own values and their mean.

    The gain in log evidence is that of :mod:`brainlsap.evaluation.connectome_worth`.
    Ten groups of people (fewer where a class has fewer people) are left out in turn;
    ridge, residual columns, scale and c are learned anew from the others. Their
    predictions of the people left out give the gain in squared error, with an interval
    over people. The gains in evidence without each of the G groups give its interval by
    the jackknife, which also takes the spread over draws into account:

    .. math:: \mathrm{SE}^2 = \frac{G - 1}{G} \sum_g (\ell_{-g} - \bar\ell)^2
              + \frac{s_\mathrm{draws}^2}{n_\mathrm{draws}}

    with Student's t of G - 1 degrees of freedom. What needs no label is learned once,
    from all people: the unit of each region, harmonisation, regression on covariates,
    and the group mean connectome.

    Parameters
    ----------
    cohort : Cohort
        The scans. The classes are those of `cohort.y`.
    steps : Deconfounder, optional
        What is harmonised and regressed out; by default nothing.
    model : LSAPRidgeClassifier, optional
        Its settings say how connectomes are prepared; by default they are used
        unchanged.
    n_draws : int
        Draws of relabelled, rewired and exchanged connectomes each.
    random_state : int
        Seed of the draws and of the groups of people.

    Returns
    -------
    ConnectomeGain

    Raises
    ------
    ParameterError
        If a class has fewer than four people.

    Examples
    --------
    >>> from brainlsap.simulation import make_cohort
    >>> cohort = make_cohort(40, atlas="desikan82", shares={"CN": 1, "AD": 1})
    >>> gain = connectome_gain(cohort, n_draws=1)
    >>> gain.network.answer, gain.table["connectome"].tolist()
    ('no', ['original', 'relabelled', 'rewired', 'exchanged', 'group mean'])
    """
    # Import late: reports need the records of this module, and no PyTorch.
    from brainlsap.model.inputs import InputScaler

    check_cohort_given(cohort)
    check_at_least("n_draws", n_draws, 1)
    steps = clone(steps) if steps is not None else Deconfounder()
    features = steps.fit_transform(cohort.features, cohort.table)
    signals = InputScaler.learn(features).apply(features)
    is_measured = ~np.isnan(features).all(axis=(0, 2))
    person_rows, averaging_matrix = _make_rows(cohort, signals, is_measured)
    n_rarest_class = np.bincount(person_rows.codes).min()
    if n_rarest_class < MIN_PEOPLE_OF_CLASS:
        raise ParameterError(
            f"connectome_gain needs {MIN_PEOPLE_OF_CLASS} people in every class; the "
            f"smallest class has {n_rarest_class}. Merge classes, or leave that one "
            "out."
        )
    n_folds = min(_N_FOLDS, int(n_rarest_class))
    splits = make_splits(person_rows.codes, person_rows.person, n_folds, random_state)
    gain_computation = _GainComputation(person_rows, splits)
    gains_of_connectome: dict[str, list[_Gain]] = {}
    for connectome_name, diffused_signals in _diffuse_all(
        cohort,
        signals,
        is_measured,
        _learn_preparation(cohort, features, model),
        n_draws,
        np.random.default_rng(random_state),
    ):
        diffused_columns = [
            averaging_matrix @ scale_signals.reshape(len(scale_signals), -1)
            for scale_signals in diffused_signals
        ]
        gains_of_connectome.setdefault(connectome_name, []).append(
            gain_computation.compute(diffused_columns)
        )
    return ConnectomeGain(_gain_table(gains_of_connectome, gain_computation))


def _learn_preparation(
    cohort: Cohort, features: np.ndarray, model: Any
) -> "Preparation":
    """Return how a ridge prepares the connectomes of the cohort."""
    from brainlsap import graph

    model = make_region_ridge(cohort, model)
    connectome_kind = model.connectome or "own"
    preparation = graph.Preparation(model.threshold, model.weights, connectome_kind)
    return preparation.learn(features, cohort.groups)


def _make_rows(
    cohort: Cohort, signals: np.ndarray, is_measured: np.ndarray
) -> tuple[_Rows, sparse.csr_array]:
    """Return the rows, and the matrix (n_rows, n_scans) that averages scans to rows."""
    from brainlsap.model.evidence import class_targets

    _, person_codes, n_visits = np.unique(
        cohort.groups, return_inverse=True, return_counts=True
    )
    _, class_codes = np.unique(
        pd.Index(cohort.classes).get_indexer(cohort.y), return_inverse=True
    )
    row_keys, row_of_scan, n_scans = np.unique(
        np.column_stack([person_codes, class_codes]),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    row_of_scan = row_of_scan.ravel()
    averaging_matrix = sparse.csr_array(
        (1 / n_scans[row_of_scan], (row_of_scan, np.arange(len(person_codes))))
    )
    row_person, row_codes = row_keys.T
    person_rows = _Rows(
        region_values=averaging_matrix @ signals.reshape(len(signals), -1),
        means=averaging_matrix @ signals[:, is_measured].mean(axis=1),
        targets=class_targets(row_codes, bool(cohort.classes_ordered)),
        codes=row_codes,
        person=row_person,
        shares=n_scans / n_visits[row_person],
    )
    return person_rows, averaging_matrix


def _diffuse_all(
    cohort: Cohort,
    signals: np.ndarray,
    is_measured: np.ndarray,
    preparation: "Preparation",
    n_draws: int,
    rng: np.random.Generator,
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of every connectome, and signals diffused along it.

    Shape (n_scales, n_scans, n_rois, n_features).
    """
    from brainlsap import graph

    n_scans, n_rois, n_features = signals.shape
    is_shared = preparation.network is not None or cohort.shares_connectome
    connectomes = cohort.connectomes[:1] if is_shared else cohort.connectomes
    # To relabel the regions of a connectome is to permute the signals, diffuse, and
    # permute back: one pass over the connectomes serves all draws. Regions without
    # values keep their place.
    region_orders = [np.arange(n_rois)]
    for _ in range(n_draws):
        region_order = np.arange(n_rois)
        region_order[is_measured] = rng.permutation(region_order[is_measured])
        region_orders.append(region_order)
    permuted_signals = np.concatenate(
        [signals[:, region_order] for region_order in region_orders], axis=2
    )
    diffused_signals = _diffuse(connectomes, permuted_signals, preparation)
    for draw_number, region_order in enumerate(region_orders):
        draw_signals = diffused_signals[
            ..., draw_number * n_features : (draw_number + 1) * n_features
        ]
        yield (
            ("relabelled" if draw_number else "original"),
            draw_signals[:, :, region_order.argsort()],
        )
    n_pairs = n_rois * (n_rois - 1) // 2
    for _ in range(n_draws):
        region_order = rng.permutation(n_pairs)
        yield (
            "rewired",
            _diffuse(connectomes, signals, preparation, pair_order=region_order),
        )
    if is_shared:
        return
    for _ in range(n_draws):
        donor_scans = exchange_scans(cohort.groups, rng)
        yield (
            "exchanged",
            _diffuse(connectomes, signals, preparation, donor_scans=donor_scans),
        )
    _, person_codes, n_visits = np.unique(
        cohort.groups, return_inverse=True, return_counts=True
    )
    mean_connectome = np.zeros((1, n_rois, n_rois))
    for batch_rows in _batches(n_scans):
        edge_weights = preparation.apply(connectomes[batch_rows])
        mean_connectome[0] += np.tensordot(
            1 / n_visits[person_codes[batch_rows]], edge_weights, 1
        )
    yield "group mean", _diffuse(mean_connectome, signals, graph.Preparation())


def exchange_scans(groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each scan one of another person, in a random circle of all people.

    All scans of a person are given scans of the same other person.
    """
    scans_of_person = list(pd.Series(groups).groupby(groups).indices.values())
    person_circle = rng.permutation(len(scans_of_person))
    donor_scans = np.empty(len(groups), dtype=np.intp)
    for receiving_person, donor_person in zip(
        person_circle, np.roll(person_circle, 1), strict=True
    ):
        receiving_scans = scans_of_person[receiving_person]
        donor_scans[receiving_scans] = np.resize(
            scans_of_person[donor_person], len(receiving_scans)
        )
    return donor_scans


def _batches(n_scans: int) -> Iterator[slice]:
    """Yield the rows of each batch of scans."""
    for first_scan in range(0, n_scans, _DIFFUSED_AT_ONCE):
        yield slice(first_scan, min(first_scan + _DIFFUSED_AT_ONCE, n_scans))


def _diffuse(
    connectomes: np.ndarray,
    signals: np.ndarray,
    preparation: "Preparation",
    *,
    donor_scans: np.ndarray | None = None,
    pair_order: np.ndarray | None = None,
) -> np.ndarray:
    """Return exp(-s L) x of signals (n_scans, n_rois, n_columns) for every scale.

    A single connectome serves all scans. `donor_scans` is the scan of the connectome of
    each scan, `pair_order` that of :func:`rewire_connectomes`. Shape (n_scales,
    n_scans, n_rois, n_columns), float32: residual columns need no more digits.
    """
    n_scans, n_rois, n_columns = signals.shape
    signals = signals.astype(np.float32)
    is_shared = len(connectomes) == 1
    diffused_signals = np.empty((len(_SCALES), *signals.shape), dtype=np.float32)
    for batch_rows in [slice(None)] if is_shared else _batches(n_scans):
        W = connectomes[batch_rows if donor_scans is None else donor_scans[batch_rows]]
        edge_weights = preparation.apply(W).astype(np.float32)
        if pair_order is not None:
            edge_weights = rewire_connectomes(edge_weights, pair_order)
        if is_shared:
            # One matrix product for all scans: their columns side by side.
            signal_columns = signals.transpose(1, 0, 2).reshape(1, n_rois, -1)
            scale_signals = _apply_heat_kernel(edge_weights, signal_columns)
            scale_signals = scale_signals.reshape(
                len(_SCALES), n_rois, n_scans, n_columns
            )
            diffused_signals[:] = scale_signals.transpose(0, 2, 1, 3)
        else:
            diffused_signals[:, batch_rows] = _apply_heat_kernel(
                edge_weights, signals[batch_rows]
            )
    return diffused_signals


@cache
def _heat_coefficients() -> np.ndarray:
    """Return the coefficients of T_n(L - I) in exp(-s L), (degree + 1, n_scales)."""
    import torch

    from brainlsap.graph import EXPANSIONS, choose_degree
    from brainlsap.model.evidence import KERNEL_TOLERANCE

    degree = choose_degree("chebyshev", max(_SCALES), KERNEL_TOLERANCE)
    scale_grid = torch.tensor(_SCALES, dtype=torch.float64)
    coefficients, _ = EXPANSIONS["chebyshev"].coefficients(scale_grid, degree)
    return coefficients.numpy().astype(np.float32).T


def _apply_heat_kernel(edge_weights: np.ndarray, signals: np.ndarray) -> np.ndarray:
    """Return exp(-s L) x for every scale, by Chebyshev polynomials of L - I.

    The spectrum of L - I = -D^-1/2 W D^-1/2 is in [-1, 1]. All is in float32, unlike in
    :func:`.diffusion_terms`: signals are diffused over many connectomes.
    """
    from brainlsap.model.evidence import add_polynomials

    node_strengths = edge_weights.sum(axis=2)
    is_linked = node_strengths > 0
    root_strengths = np.sqrt(np.where(is_linked, node_strengths, np.inf))
    shifted_laplacian = (
        -edge_weights / root_strengths[:, :, None] / root_strengths[:, None, :]
    )
    # A region without a link keeps its value.
    diagonal_index = np.arange(edge_weights.shape[1])
    shifted_laplacian[:, diagonal_index, diagonal_index] -= ~is_linked
    diffused_signals = np.zeros((len(_SCALES), *signals.shape), dtype=np.float32)
    add_polynomials(diffused_signals, shifted_laplacian, signals, _heat_coefficients())
    return diffused_signals


def rewire_connectomes(edges: np.ndarray, pair_order: np.ndarray) -> np.ndarray:
    """Move weights to other pairs of regions, and restore every region's strength.

    Of connectomes (n_scans, n_rois, n_rois), prepared. `pair_order` (n_pairs,) is a
    permutation of the pairs of regions above the diagonal, the same for all scans. The
    moved weights are multiplied by d_i d_j such that every region has the strength
    (sum of weights) that it had, which is the degree of a weighted graph. Swaps of
    single edges would not change dense connectomes.
    """
    row_indices, column_indices = np.triu_indices(edges.shape[1], 1)
    rewired_edges = np.zeros_like(edges)
    rewired_edges[:, row_indices, column_indices] = edges[
        :, row_indices, column_indices
    ][:, pair_order]
    rewired_edges += rewired_edges.swapaxes(1, 2)
    node_strengths = edges.sum(axis=2)
    d = np.ones_like(node_strengths)
    for _ in range(_N_SCALINGS):
        weight_sums = (rewired_edges @ d[:, :, None])[:, :, 0]
        strength_ratio = np.divide(
            node_strengths, weight_sums, out=np.zeros_like(d), where=weight_sums > 0
        )
        d = np.sqrt(d * strength_ratio)
    return rewired_edges * (d[:, :, None] * d[:, None, :])


class _Gain(NamedTuple):
    """Gain of one connectome."""

    evidence: np.ndarray
    """Gain in log evidence of all people, then without each group of people."""
    error: np.ndarray
    """Fall of the left-out squared error of each row, times its weight."""
    scale: float
    """Posterior geometric mean of the common scale."""


class _GainComputation:
    """The own-value models of all people and without each group, fitted once."""

    def __init__(self, rows: _Rows, splits: Sequence[tuple]) -> None:
        self.rows, self.splits = rows, splits
        self.weights = rows.weights()
        self.full_model = _OwnValueModel(rows)
        self.fold_models = [
            _OwnValueModel(rows.select(train_rows)) for train_rows, _ in splits
        ]
        self.own_error = np.empty(len(rows.codes))
        for fold_model, (_, test_rows) in zip(self.fold_models, splits, strict=True):
            predicted_targets = fold_model.predict(rows.select(test_rows))
            self.own_error[test_rows] = self._squared_error(
                predicted_targets, test_rows
            )

    def _squared_error(
        self, predicted_targets: np.ndarray, test_rows: np.ndarray
    ) -> np.ndarray:
        """Return the weighted squared error of each row of the test rows."""
        return self.weights[test_rows] * (
            (self.rows.targets[test_rows] - predicted_targets) ** 2
        ).sum(1)

    def error_share(self, error_fall: np.ndarray) -> tuple[float, float, float]:
        """Return the part of the own-value model's error that falls.

        Its 90 % interval is that of a ratio of means over people.
        """
        person_falls = np.bincount(self.rows.person, error_fall)
        person_errors = np.bincount(self.rows.person, self.own_error)
        error_fall_share = person_falls.sum() / person_errors.sum()
        fall_deviations = person_falls - error_fall_share * person_errors
        half_width = 1.645 * np.sqrt((fall_deviations**2).sum()) / person_errors.sum()
        return (
            float(error_fall_share),
            float(error_fall_share - half_width),
            float(error_fall_share + half_width),
        )

    def compute(self, columns_of_scale: Sequence[np.ndarray]) -> _Gain:
        """Return the gain by diffused columns (n_rows, n_columns) of each scale."""
        person_rows = self.rows
        network_fit = self.full_model.fit_network(columns_of_scale)
        log_evidences = [network_fit.log_evidence]
        error_falls = np.empty_like(self.own_error)
        for fold_model, (train_rows, test_rows) in zip(
            self.fold_models, self.splits, strict=True
        ):
            fold_fit = fold_model.fit_network(
                [scale_columns[train_rows] for scale_columns in columns_of_scale]
            )
            log_evidences.append(fold_fit.log_evidence)
            test_columns = [
                scale_columns[test_rows] for scale_columns in columns_of_scale
            ]
            predicted_targets = fold_model.predict(
                person_rows.select(test_rows), fold_fit, test_columns
            )
            error_falls[test_rows] = self.own_error[test_rows] - self._squared_error(
                predicted_targets, test_rows
            )
        log_scale = network_fit.scale_probability @ np.log(_SCALES)
        return _Gain(np.array(log_evidences), error_falls, float(np.exp(log_scale)))


class _NetworkFit(NamedTuple):
    """The network model, averaged over its grid."""

    log_evidence: float
    """Minus that of the own-value model."""
    scale_probability: np.ndarray
    """Posterior probability of each scale."""
    columns_on_F: list[np.ndarray]
    """Coefficients of diffused columns on intercept and means, for each scale."""
    slopes: list[np.ndarray]
    """Slope of diffused columns in own values, (n_columns,) for each scale."""
    residual_weights: np.ndarray
    """Weights of residual columns (n_scales, n_columns, k)."""
    own_weights: np.ndarray
    """Weights of standardised own values (n_columns, k)."""


class _GridSolution(NamedTuple):
    """What gives the weights of the network model at one scale and ridge."""

    scale_index: int
    ridge_index: int
    ridge: float
    shares: np.ndarray
    """c / (1 + c e) for each c and eigenvalue."""
    U: np.ndarray
    """Eigenvectors of R'K0^-1 R."""
    projected: np.ndarray
    """U'R'K0^-1 t."""
    PtR: np.ndarray
    """Residual columns in the components of the own values."""
    basis: np.ndarray
    """Residual columns by the columns of R (n_basis, n_columns), with their unit."""


class _OwnValueModel:
    """Ridge on the regions' own values, with their mean unpenalised.

    All arrays are multiplied by square roots of weights, and projected on what
    intercept and means do not explain.
    """

    def __init__(self, rows: _Rows) -> None:
        from brainlsap.model.evidence import (
            LOG_NOISE_BOUND,
            count_contrasts,
            invert_sd,
        )

        row_weights = rows.weights()
        self.root_weights = np.sqrt(row_weights)[:, None]
        n_people = float(row_weights.sum())
        self.n_people = n_people
        self.F = rows.unpenalized_columns()
        # Coefficients of weighted least squares on F are F_inverse @ values.
        self.F_inverse = np.linalg.pinv(self.root_weights * self.F)
        self.F_inverse = self.F_inverse * self.root_weights.T
        weighted_means = row_weights @ rows.region_values / n_people
        weighted_variances = (
            row_weights @ (rows.region_values - weighted_means) ** 2 / n_people
        )
        self.inverse_sd = invert_sd(weighted_variances)
        self.own_on_F = self.F_inverse @ (rows.region_values * self.inverse_sd)
        self.X = self._project(rows.region_values * self.inverse_sd)
        self.target_on_F = self.F_inverse @ rows.targets
        self.t = self._project(rows.targets)
        self.n_contrasts = count_contrasts(self.t)
        self.dof = n_people - np.linalg.matrix_rank(self.F)
        P, S, Qt = np.linalg.svd(self.X, full_matrices=False)
        min_singular_value = 1e-6 * S.max(initial=1e-300)
        is_nonzero = min_singular_value < S
        self.P, self.S, self.Q = P[:, is_nonzero], S[is_nonzero], Qt[is_nonzero].T
        self.Pt = self.P.T @ self.t
        self.log_ridge_bound = LOG_NOISE_BOUND + np.log(self.X.shape[1])
        log_evidences = [
            self._log_evidence(ridge) for ridge in n_people * np.exp(_LOG_RIDGES)
        ]
        self.log_evidence = max(log_evidences)
        best_index = int(np.argmax(log_evidences))
        self.ridge = float(n_people * np.exp(_LOG_RIDGES[best_index]))

    def _project(self, row_columns: np.ndarray) -> np.ndarray:
        """Return what intercept and means do not explain, times root weights."""
        return self.root_weights * (
            row_columns - self.F @ (self.F_inverse @ row_columns)
        )

    def _log_evidence(
        self, ridge: float, rss_fall: Any = 0.0, log_det: Any = 0.0
    ) -> Any:
        """Return log evidence plus log prior of the ridge, without constants.

        A network lowers the residual sum of squares and adds to the log determinant.
        """
        shrinkage = self.S**2 / (self.S**2 + ridge)
        rss = (self.t**2).sum() - shrinkage @ (self.Pt**2).sum(axis=1) - rss_fall
        log_det = log_det + np.log1p(self.S**2 / ridge).sum()
        noise_excess = max(self.log_ridge_bound - np.log(ridge), 0.0)
        log_likelihood = -self.n_contrasts / 2 * (self.dof * np.log(rss) + log_det)
        return log_likelihood - noise_excess**2 / 2

    def residual_columns(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residual columns of diffused columns, and their slopes in X."""
        from brainlsap.model.evidence import invert_sd

        H = self._project(columns)
        squared_norms = (self.X**2).sum(axis=0)
        slopes = (self.X * H).sum(axis=0) * invert_sd(squared_norms) ** 2
        R = H - self.X * slopes
        is_explained = (R**2).sum(axis=0) <= _MIN_RESIDUAL**2 * (H**2).sum(axis=0)
        R[:, is_explained] = 0.0
        return R, slopes

    def fit_network(self, columns: Sequence[np.ndarray]) -> _NetworkFit:
        """Fit the network model of diffused columns (n_rows, n_columns) of each scale.

        With K0 = XX'/ridge + I and the eigenvalues e and vectors U of R'K0^-1 R, the
        evidence is a closed form in c.
        """
        c = _SIGNAL_RATIOS[:, None]
        log_evidence = np.empty((len(columns), len(_RIDGE_FACTORS), len(c)))
        all_slopes: list[np.ndarray] = []
        grid_solutions: list[_GridSolution] = []
        for i, scale_columns in enumerate(columns):
            R, slopes = self.residual_columns(scale_columns.astype(float))
            all_slopes.append(slopes)
            root_mean_square = np.sqrt((R**2).sum() / self.n_people)
            unit_factor = 1 / root_mean_square if root_mean_square > 0 else 1.0
            R *= unit_factor
            basis = np.eye(R.shape[1])
            if R.shape[1] > len(R):
                # As many columns as rows have the same RR'.
                left_vectors, s, basis = np.linalg.svd(R, full_matrices=False)
                R = left_vectors * s
            RtR, Rtt, PtR = R.T @ R, R.T @ self.t, self.P.T @ R
            for j, ridge_factor in enumerate(_RIDGE_FACTORS):
                ridge = ridge_factor * self.ridge
                shrunken_PtR = (PtR.T * (self.S**2 / (self.S**2 + ridge))).T
                e, U = np.linalg.eigh(RtR - PtR.T @ shrunken_PtR)
                e = np.maximum(e, 0.0)
                projected = U.T @ (Rtt - shrunken_PtR.T @ self.Pt)
                shares = c / (1 + c * e)
                log_evidence[i, j] = self._log_evidence(
                    ridge,
                    rss_fall=shares @ (projected**2).sum(axis=1),
                    log_det=np.log1p(c * e).sum(axis=1),
                )
                grid_solution = _GridSolution(
                    i, j, ridge, shares, U, projected, PtR, unit_factor * basis
                )
                grid_solutions.append(grid_solution)
        log_total = logsumexp(log_evidence)
        grid_probability = np.exp(log_evidence - log_total)
        # Posterior means of the weights, which are linear in the shares.
        own_weights = np.zeros((len(self.Q), self.t.shape[1]))
        residual_weights = np.zeros((len(columns), *own_weights.shape))
        for i, j, ridge, shares, U, projected, PtR, basis in grid_solutions:
            mean_shares = grid_probability[i, j] @ shares
            component_weights = U @ (mean_shares[:, None] * projected)
            residual_weights[i] += basis.T @ component_weights
            own_shrinkage = self.S / (self.S**2 + ridge)
            own_components = (
                grid_probability[i, j].sum() * self.Pt - PtR @ component_weights
            )
            own_weights += self.Q @ (own_shrinkage[:, None] * own_components)
        return _NetworkFit(
            log_evidence=float(
                log_total - np.log(grid_probability.size) - self.log_evidence
            ),
            scale_probability=grid_probability.sum(axis=(1, 2)),
            columns_on_F=[self.F_inverse @ scale_columns for scale_columns in columns],
            slopes=all_slopes,
            residual_weights=residual_weights,
            own_weights=own_weights,
        )

    def predict(
        self,
        rows: _Rows,
        fit: _NetworkFit | None = None,
        columns: Sequence[np.ndarray] = (),
    ) -> np.ndarray:
        """Return predicted targets (n_rows, k) of new rows.

        `fit` and the diffused columns of the rows are those of the network model;
        without them, own values predict.
        """
        F = rows.unpenalized_columns()
        X = rows.region_values * self.inverse_sd - F @ self.own_on_F
        if fit is None:
            component_weights = (self.S / (self.S**2 + self.ridge))[:, None] * self.Pt
            return F @ self.target_on_F + X @ (self.Q @ component_weights)
        predicted_targets = F @ self.target_on_F + X @ fit.own_weights
        for scale_columns, slopes, column_weights, coefficients_on_F in zip(
            columns, fit.slopes, fit.residual_weights, fit.columns_on_F, strict=True
        ):
            predicted_targets += (
                scale_columns - F @ coefficients_on_F - X * slopes
            ) @ column_weights
        return predicted_targets


def _gain_table(
    gains: dict[str, list[_Gain]], computation: _GainComputation
) -> pd.DataFrame:
    """Return the table of :class:`ConnectomeGain`."""
    (original_gain,) = gains["original"]
    table_rows = []
    for connectome_name, draw_gains in gains.items():
        log_scale = np.mean([np.log(draw_gain.scale) for draw_gain in draw_gains])
        table_row = {
            "connectome": connectome_name,
            "n_draws": len(draw_gains),
            "scale": np.exp(log_scale),
        }
        evidence_gains = np.array([draw_gain.evidence for draw_gain in draw_gains])
        error_gains = np.mean([draw_gain.error for draw_gain in draw_gains], axis=0)
        table_row |= _named("evidence_gain", _jackknife(evidence_gains))
        table_row |= _named("error_gain", computation.error_share(error_gains))
        is_null = connectome_name != "original"
        lead_interval = (
            _jackknife(original_gain.evidence - evidence_gains)
            if is_null
            else [np.nan] * 3
        )
        table_row |= _named("evidence_lead", lead_interval)
        lead_interval = computation.error_share(original_gain.error - error_gains)
        table_row |= _named("error_lead", lead_interval if is_null else [np.nan] * 3)
        table_rows.append(table_row)
    return pd.DataFrame(table_rows)


def _named(column_name: str, estimate_and_bounds: Sequence[float]) -> dict[str, float]:
    """Return estimate, low and high by the names of their columns."""
    return dict(
        zip(
            (column_name, f"{column_name}_low", f"{column_name}_high"),
            estimate_and_bounds,
            strict=True,
        )
    )


def _jackknife(evidence_gains: np.ndarray) -> tuple[float, float, float]:
    """Return the mean gain over draws with its 90 % interval.

    `evidence_gains` (n_draws, 1 + n_groups) are of all people, then without each group.
    """
    n_draws, n_groups = len(evidence_gains), evidence_gains.shape[1] - 1
    estimate = float(evidence_gains[:, 0].mean())
    left_out_gains = evidence_gains[:, 1:].mean(axis=0)
    variance = (n_groups - 1) * left_out_gains.var()
    if n_draws > 1:
        variance += evidence_gains[:, 0].var(ddof=1) / n_draws
    half_width = student.ppf(0.95, n_groups - 1) * np.sqrt(variance)
    return estimate, estimate - half_width, estimate + half_width
