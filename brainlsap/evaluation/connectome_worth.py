r"""Test whether a connectome adds information to the regions' own values, and whose.

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
from scipy.linalg.lapack import dposv
from scipy.special import logsumexp
from scipy.stats import t as student
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from brainlsap.data import Cohort
from brainlsap.data.cohort import check_cohort_given
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.cross_validation import make_region_ridge
from brainlsap.evaluation.splits import make_splits
from brainlsap.exceptions import CohortError, ParameterError, check_at_least
from brainlsap.text import count_text

if TYPE_CHECKING:
    from brainlsap.graph import Preparation

RANDOM_CONNECTOMES = ("relabelled", "rewired")
"""Null connectomes of the first question: does the network add information?"""

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


class ConnectomeVerdict(NamedTuple):
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
    """Gain of the connectome beyond the regions' own values and their mean.

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
    def network(self) -> ConnectomeVerdict:
        """Whether the network adds beyond relabelled and rewired connectomes."""
        return self._make_connectome_verdict(RANDOM_CONNECTOMES)

    @property
    def excluded_random_connectomes(self) -> list[str]:
        """Random connectomes over which a gain that counts is outside the interval."""
        high_series = self.table.set_index("connectome")["evidence_lead_high"]
        return [
            connectome_name
            for connectome_name in RANDOM_CONNECTOMES
            if high_series[connectome_name] < MIN_LOG_CREDIT
        ]

    @property
    def own_connectome(self) -> ConnectomeVerdict | None:
        """Whether a person's own connectome adds beyond another person's.

        None where all people have the same connectome.
        """
        if "exchanged" not in set(self.table["connectome"]):
            return None
        return self._make_connectome_verdict(("exchanged",))

    def _make_connectome_verdict(
        self, null_connectome_names: Sequence[str]
    ) -> ConnectomeVerdict:
        """Compare the original with null connectomes; as :class:`ConnectomeVerdict`."""
        connectome_table = self.table.set_index("connectome")
        null_table = connectome_table.loc[[*null_connectome_names]]
        strongest_null_row = null_table.loc[null_table["evidence_lead"].idxmin()]
        evidence_differences = [
            connectome_table.loc["original", "evidence_gain"],
            *null_table["evidence_lead"],
        ]
        answer_text = "unclear"
        if (
            min(evidence_differences) >= MIN_LOG_CREDIT
            and null_table["evidence_lead_low"].min() > 0
        ):
            answer_text = "yes"
        elif null_table["evidence_lead_high"].min() < MIN_LOG_CREDIT:
            answer_text = "no"
        return ConnectomeVerdict(
            answer_text,
            compared_with=str(strongest_null_row.name),
            lead=float(strongest_null_row["evidence_lead"]),
            low=float(strongest_null_row["evidence_lead_low"]),
            high=float(strongest_null_row["evidence_lead_high"]),
        )


class _PersonRows(NamedTuple):
    """People as rows; a person with several classes has a row for each."""

    region_values: np.ndarray
    """Mean over the scans of the row of the regions' own values (n_rows, n_columns)."""
    feature_means: np.ndarray
    """Means over regions (n_rows, n_features)."""
    targets: np.ndarray
    """Targets of the class (n_rows, k)."""
    class_codes: np.ndarray
    """Class of each row (n_rows,)."""
    person_codes: np.ndarray
    """Person of each row (n_rows,)."""
    scan_shares: np.ndarray
    """Share of the person's scans in each row (n_rows,)."""

    def select_rows(self, row_indices: np.ndarray) -> "_PersonRows":
        """Return some of the rows."""
        return _PersonRows(*(field_array[row_indices] for field_array in self))

    def stack_unpenalized_columns(self) -> np.ndarray:
        """Return intercept and means, (n_rows, 1 + n_features)."""
        return np.hstack([np.ones((len(self.feature_means), 1)), self.feature_means])

    def compute_row_weights(self) -> np.ndarray:
        """Return weights in which every class counts the same; people are their sum."""
        row_weights = (
            self.scan_shares
            / np.bincount(self.class_codes, self.scan_shares)[self.class_codes]
        )
        return row_weights * (self.scan_shares.sum() / row_weights.sum())


@threadpool_limits.wrap(limits=1)
def connectome_gain(
    cohort: Cohort,
    deconfounder: Deconfounder | None = None,
    model: Any = None,
    *,
    n_draws: int = 3,
    random_state: int = 0,
) -> ConnectomeGain:
    r"""Return the gain of the connectome beyond the regions' own values and their mean.

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
    deconfounder : Deconfounder, optional
        Steps that harmonise the features and regress covariates out; by default none.
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
    deconfounder = clone(deconfounder) if deconfounder is not None else Deconfounder()
    features = deconfounder.fit_transform(cohort.features, cohort.table)
    signals = InputScaler.learn(features).apply(features)
    measured_region_mask = ~np.isnan(features).all(axis=(0, 2))
    person_rows, averaging_matrix = _make_person_rows_and_averager(
        cohort, signals, measured_region_mask
    )
    n_people_of_rarest_class = np.bincount(person_rows.class_codes).min()
    if n_people_of_rarest_class < MIN_PEOPLE_OF_CLASS:
        raise ParameterError(
            f"connectome_gain requires at least {MIN_PEOPLE_OF_CLASS} people in "
            f"every class; the smallest class has {n_people_of_rarest_class}. Merge "
            "classes, or leave the smallest class out."
        )
    n_folds = min(_N_FOLDS, int(n_people_of_rarest_class))
    splits = make_splits(
        person_rows.class_codes, person_rows.person_codes, n_folds, random_state
    )
    gain_computation = _GainComputation(person_rows, splits)
    draw_gains_by_connectome: dict[str, list[_Gain]] = {}
    for connectome_name, diffused_signals in _iter_diffused_signals(
        cohort,
        signals,
        measured_region_mask,
        _learn_preparation(cohort, features, model),
        n_draws,
        np.random.default_rng(random_state),
    ):
        diffused_column_arrays = [
            averaging_matrix @ scale_signals.reshape(len(scale_signals), -1)
            for scale_signals in diffused_signals
        ]
        draw_gains_by_connectome.setdefault(connectome_name, []).append(
            gain_computation.compute_gain(diffused_column_arrays)
        )
    return ConnectomeGain(_make_gain_table(draw_gains_by_connectome, gain_computation))


def _learn_preparation(
    cohort: Cohort, features: np.ndarray, ridge_classifier: Any
) -> "Preparation":
    """Return the preparation of the cohort's connectomes by a ridge."""
    from brainlsap import graph

    ridge_classifier = make_region_ridge(cohort, ridge_classifier)
    connectome_kind = ridge_classifier.connectome or "own"
    connectome_preparation = graph.Preparation(
        ridge_classifier.threshold, ridge_classifier.weights, connectome_kind
    )
    return connectome_preparation.learn(features, cohort.groups)


def _make_person_rows_and_averager(
    cohort: Cohort, signals: np.ndarray, measured_region_mask: np.ndarray
) -> tuple[_PersonRows, sparse.csr_array]:
    """Return the rows, and the matrix (n_rows, n_scans) that averages scans to rows."""
    from brainlsap.model.evidence import class_targets

    _, person_codes, person_visit_counts = np.unique(
        cohort.groups, return_inverse=True, return_counts=True
    )
    _, class_codes = np.unique(
        pd.Index(cohort.classes).get_indexer(cohort.y), return_inverse=True
    )
    row_code_pairs, scan_row_indices, row_scan_counts = np.unique(
        np.column_stack([person_codes, class_codes]),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    scan_row_indices = scan_row_indices.ravel()
    averaging_matrix = sparse.csr_array(
        (
            1 / row_scan_counts[scan_row_indices],
            (scan_row_indices, np.arange(len(person_codes))),
        )
    )
    row_person_codes, row_class_codes = row_code_pairs.T
    person_rows = _PersonRows(
        region_values=averaging_matrix @ signals.reshape(len(signals), -1),
        feature_means=averaging_matrix @ signals[:, measured_region_mask].mean(axis=1),
        targets=class_targets(row_class_codes, bool(cohort.classes_ordered)),
        class_codes=row_class_codes,
        person_codes=row_person_codes,
        scan_shares=row_scan_counts / person_visit_counts[row_person_codes],
    )
    return person_rows, averaging_matrix


def _iter_diffused_signals(
    cohort: Cohort,
    signals: np.ndarray,
    measured_region_mask: np.ndarray,
    connectome_preparation: "Preparation",
    n_draws: int,
    rng: np.random.Generator,
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of every connectome, and signals diffused along it.

    Shape (n_scales, n_scans, n_rois, n_features), float32: residual columns need no
    more digits.
    """
    from brainlsap import graph

    n_rois = cohort.n_rois
    has_shared_connectome = (
        connectome_preparation.network is not None or cohort.shares_connectome
    )
    connectomes = (
        cohort.connectomes[:1] if has_shared_connectome else cohort.connectomes
    )
    # To relabel the regions of a connectome is to permute the signals, diffuse, and
    # permute back. Regions without values keep their place.
    region_orders = [np.arange(n_rois)]
    for _ in range(n_draws):
        region_order = np.arange(n_rois)
        region_order[measured_region_mask] = rng.permutation(
            region_order[measured_region_mask]
        )
        region_orders.append(region_order)
    n_pairs = n_rois * (n_rois - 1) // 2
    pair_orders = [rng.permutation(n_pairs) for _ in range(n_draws)]
    n_exchanges = 0 if has_shared_connectome else n_draws
    donor_index_arrays = [
        draw_donor_indices(cohort.groups, rng) for _ in range(n_exchanges)
    ]
    signals = signals.astype(np.float32)
    stacked_signals = np.stack(
        [signals[:, region_permutation] for region_permutation in region_orders]
    )
    relabelled_signals, rewired_signals, exchanged_signals, mean_connectome = (
        _diffuse_signals(
            connectomes,
            stacked_signals,
            connectome_preparation,
            cohort.groups,
            pair_orders,
            donor_index_arrays,
        )
    )
    for i, region_order in enumerate(region_orders):
        yield (
            "relabelled" if i else "original",
            relabelled_signals[i][:, :, region_order.argsort()],
        )
    for diffused_signals in rewired_signals:
        yield "rewired", diffused_signals
    if has_shared_connectome:
        return
    for diffused_signals in exchanged_signals:
        yield "exchanged", diffused_signals
    mean_signals, *_ = _diffuse_signals(
        mean_connectome[None], signals[None], graph.Preparation(), cohort.groups
    )
    yield "group mean", mean_signals[0]


class _DiffusionResult(NamedTuple):
    """Signals diffused along all connectomes that are derived from the scans' own.

    The first three have the shape (n_draws, n_scales, n_scans, n_rois, n_features).
    """

    relabelled_signals: np.ndarray
    """Each set of signals, diffused along the scans' own connectomes."""
    rewired_signals: np.ndarray
    """The first set of signals, diffused along the rewired connectomes of each draw."""
    exchanged_signals: np.ndarray
    """The first set of signals, diffused along the connectomes of other scans."""
    mean_connectome: np.ndarray
    """Mean connectome over people, after the mean over scans (n_rois, n_rois)."""


def _diffuse_signals(
    connectomes: np.ndarray,
    stacked_signals: np.ndarray,
    connectome_preparation: "Preparation",
    groups: np.ndarray,
    pair_orders: Sequence[np.ndarray] = (),
    donor_index_arrays: Sequence[np.ndarray] = (),
) -> _DiffusionResult:
    """Return exp(-s L) x of sets of signals, (n_sets, n_scans, n_rois, n_features).

    Every connectome is read and prepared once; a single connectome serves all scans.
    `pair_orders` are those of :func:`rewire_connectomes`; each of `donor_index_arrays`
    is the scan of the connectome of each scan.
    """
    n_signal_sets, n_scans, n_rois, n_features = stacked_signals.shape
    has_shared_connectome = len(connectomes) == 1
    diffused_shape = len(_SCALES), n_scans, n_rois, n_features
    relabelled_signals, rewired_signals, exchanged_signals = (
        np.empty((n_draws, *diffused_shape), dtype=np.float32)
        for n_draws in (n_signal_sets, len(pair_orders), len(donor_index_arrays))
    )
    mean_connectome = np.zeros((n_rois, n_rois))
    _, person_codes, person_visit_counts = np.unique(
        groups, return_inverse=True, return_counts=True
    )
    scan_shares = 1 / (person_visit_counts[person_codes] * len(person_visit_counts))
    receiver_arrays_of_draws = [
        _list_receiver_indices(donor_indices) for donor_indices in donor_index_arrays
    ]
    for batch_slice in (
        [slice(None)] if has_shared_connectome else _iter_batch_slices(n_scans)
    ):
        prepared_connectomes = connectome_preparation.apply(connectomes[batch_slice])
        if not has_shared_connectome:
            mean_connectome += np.tensordot(
                scan_shares[batch_slice], prepared_connectomes, 1
            )
        batch_connectomes = prepared_connectomes.astype(np.float32)
        batch_signal_arrays = [*stacked_signals[:, batch_slice]]
        # A scan that receives the connectome of another is diffused beside the other.
        batch_receiver_arrays = [
            receiver_indices[batch_slice]
            for receiver_index_arrays in receiver_arrays_of_draws
            for receiver_indices in receiver_index_arrays
        ]
        batch_signal_arrays += [
            stacked_signals[0, receiver_indices]
            for receiver_indices in batch_receiver_arrays
        ]
        diffused_sets = _diffuse_signal_batch(batch_connectomes, batch_signal_arrays)
        relabelled_signals[:, :, batch_slice] = diffused_sets[:n_signal_sets]
        receiver_iterator = iter(
            zip(batch_receiver_arrays, diffused_sets[n_signal_sets:], strict=True)
        )
        for draw_index, receiver_index_arrays in enumerate(receiver_arrays_of_draws):
            for _ in receiver_index_arrays:
                receiver_indices, diffused_batch = next(receiver_iterator)
                donor_scan_mask = receiver_indices >= 0
                exchanged_signals[draw_index][:, receiver_indices[donor_scan_mask]] = (
                    diffused_batch[:, donor_scan_mask]
                )
        for draw_index, pair_order in enumerate(pair_orders):
            rewired_connectomes = rewire_connectomes(batch_connectomes, pair_order)
            rewired_signals[draw_index][:, batch_slice] = _diffuse_signal_batch(
                rewired_connectomes, batch_signal_arrays[:1]
            )[0]
    return _DiffusionResult(
        relabelled_signals, rewired_signals, exchanged_signals, mean_connectome
    )


def _list_receiver_indices(donor_indices: np.ndarray) -> list[np.ndarray]:
    """Return the scans that receive the connectome of each scan; -1 for none.

    The first array has the first receiver of each scan, the second its second one.
    """
    n_scans = len(donor_indices)
    receiver_rank_series = pd.Series(donor_indices).groupby(donor_indices).cumcount()
    receiver_index_arrays = []
    for receiver_rank in range(receiver_rank_series.max() + 1):
        receiver_indices = np.flatnonzero(receiver_rank_series == receiver_rank)
        donor_receiver_indices = np.full(n_scans, -1)
        donor_receiver_indices[donor_indices[receiver_indices]] = receiver_indices
        receiver_index_arrays.append(donor_receiver_indices)
    return receiver_index_arrays


def _diffuse_signal_batch(
    connectomes: np.ndarray, signal_arrays: Sequence[np.ndarray]
) -> np.ndarray:
    """Return exp(-s L) x of some scans, (n_sets, n_scales, n_scans, n_rois, ...)."""
    stacked_signals = np.stack(signal_arrays)
    n_signal_sets, n_scans, n_rois, n_features = stacked_signals.shape
    if len(connectomes) == 1:
        # One matrix product for all scans: their columns side by side.
        signal_columns = stacked_signals.transpose(2, 0, 1, 3).reshape(1, n_rois, -1)
        diffused_signals = _apply_heat_kernel(connectomes, signal_columns)
        diffused_sets = diffused_signals.reshape(
            len(_SCALES), n_rois, n_signal_sets, n_scans, n_features
        )
        return diffused_sets.transpose(2, 0, 3, 1, 4)
    signal_columns = stacked_signals.transpose(1, 2, 0, 3).reshape(n_scans, n_rois, -1)
    diffused_signals = _apply_heat_kernel(connectomes, signal_columns)
    diffused_sets = diffused_signals.reshape(
        len(_SCALES), n_scans, n_rois, n_signal_sets, n_features
    )
    return diffused_sets.transpose(3, 0, 1, 2, 4)


def draw_donor_indices(groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return for each scan one of another person, in a random circle of all people.

    All scans of a person are given scans of the same other person. Raise if a person
    would keep the own connectome, because such an exchange is no control.
    """
    scan_index_arrays = list(pd.Series(groups).groupby(groups).indices.values())
    person_order = rng.permutation(len(scan_index_arrays))
    donor_indices = np.empty(len(groups), dtype=np.intp)
    for receiver_person_index, donor_person_index in zip(
        person_order, np.roll(person_order, 1), strict=True
    ):
        receiver_indices = scan_index_arrays[receiver_person_index]
        donor_indices[receiver_indices] = np.resize(
            scan_index_arrays[donor_person_index], len(receiver_indices)
        )
    self_exchange_scan_mask = groups[donor_indices] == groups
    if self_exchange_scan_mask.any():
        raise CohortError(
            "the control with exchanged connectomes needs at least two participants; "
            f"{count_text(len({*groups[self_exchange_scan_mask]}), 'participant')} "
            "would keep the own connectome. Add participants."
        )
    return donor_indices


def _iter_batch_slices(n_scans: int) -> Iterator[slice]:
    """Yield the rows of each batch of scans."""
    for start_index in range(0, n_scans, _DIFFUSED_AT_ONCE):
        yield slice(start_index, min(start_index + _DIFFUSED_AT_ONCE, n_scans))


@cache
def _compute_heat_coefficients() -> np.ndarray:
    """Return the coefficients of T_n(L - I) in exp(-s L), (degree + 1, n_scales)."""
    import torch

    from brainlsap.graph import EXPANSIONS, choose_degree
    from brainlsap.model.evidence import KERNEL_TOLERANCE

    degree = choose_degree("chebyshev", max(_SCALES), KERNEL_TOLERANCE)
    scale_grid = torch.tensor(_SCALES, dtype=torch.float64)
    coefficients, _ = EXPANSIONS["chebyshev"].coefficients(scale_grid, degree)
    return coefficients.numpy().astype(np.float32).T


def _apply_heat_kernel(connectomes: np.ndarray, signals: np.ndarray) -> np.ndarray:
    """Return exp(-s L) x for every scale, by Chebyshev polynomials of L - I.

    The spectrum of L - I = -D^-1/2 W D^-1/2 is in [-1, 1]. All is in float32, unlike in
    :func:`.diffusion_terms`: signals are diffused over many connectomes.
    """
    from brainlsap.model.evidence import add_polynomials

    node_strengths = connectomes.sum(axis=2)
    linked_region_mask = node_strengths > 0
    root_strengths = np.sqrt(np.where(linked_region_mask, node_strengths, np.inf))
    shifted_laplacian = (
        -connectomes / root_strengths[:, :, None] / root_strengths[:, None, :]
    )
    # A region without a link keeps its value.
    diagonal_indices = np.arange(connectomes.shape[1])
    shifted_laplacian[:, diagonal_indices, diagonal_indices] -= ~linked_region_mask
    diffused_signals = np.zeros((len(_SCALES), *signals.shape), dtype=np.float32)
    add_polynomials(
        diffused_signals, shifted_laplacian, signals, _compute_heat_coefficients()
    )
    return diffused_signals


def rewire_connectomes(connectomes: np.ndarray, pair_order: np.ndarray) -> np.ndarray:
    """Move weights to other pairs of regions, and restore every region's strength.

    Of connectomes (n_scans, n_rois, n_rois), prepared. `pair_order` (n_pairs,) is a
    permutation of the pairs of regions above the diagonal, the same for all scans. The
    moved weights are multiplied by d_i d_j such that every region has the strength
    (sum of weights) that it had, which is the degree of a weighted graph. Swaps of
    single edges would not change dense connectomes.
    """
    n_rois = connectomes.shape[1]
    row_indices, column_indices = np.triu_indices(n_rois, 1)
    source_pair_indices = row_indices[pair_order] * n_rois + column_indices[pair_order]
    # Read every entry of a rewired connectome from its source; the diagonal is 0.
    source_index_matrix = np.zeros((n_rois, n_rois), dtype=np.intp)
    source_index_matrix[row_indices, column_indices] = source_pair_indices
    source_index_matrix[column_indices, row_indices] = source_pair_indices
    flat_connectomes = connectomes.reshape(len(connectomes), -1)
    rewired_connectomes = flat_connectomes.take(source_index_matrix, axis=1)
    diagonal_indices = np.arange(n_rois)
    rewired_connectomes[:, diagonal_indices, diagonal_indices] = 0.0
    node_strengths = connectomes.sum(axis=2)
    d = np.ones_like(node_strengths)
    for _ in range(_N_SCALINGS):
        weight_sums = (rewired_connectomes @ d[:, :, None])[:, :, 0]
        strength_ratios = np.divide(
            node_strengths, weight_sums, out=np.zeros_like(d), where=weight_sums > 0
        )
        d = np.sqrt(d * strength_ratios)
    return rewired_connectomes * (d[:, :, None] * d[:, None, :])


class _Gain(NamedTuple):
    """Gain of one connectome."""

    jackknife_gains: np.ndarray
    """Gain in log evidence of all people, then without each group of people."""
    row_error_reductions: np.ndarray
    """Decrease of the left-out squared error of each row, times its weight."""
    scale: float
    """Posterior geometric mean of the common scale."""


class _GainComputation:
    """The own-value models of all people and without each group, fitted once."""

    def __init__(self, person_rows: _PersonRows, splits: Sequence[tuple]) -> None:
        self.person_rows, self.splits = person_rows, splits
        self.row_weights = person_rows.compute_row_weights()
        self.full_model = _OwnValueModel(person_rows)
        self.fold_models = [
            _OwnValueModel(person_rows.select_rows(train_index))
            for train_index, _ in splits
        ]
        self.own_row_errors = np.empty(len(person_rows.class_codes))
        for fold_model, (_, test_index) in zip(self.fold_models, splits, strict=True):
            predicted_targets = fold_model.predict(person_rows.select_rows(test_index))
            self.own_row_errors[test_index] = self._compute_squared_row_errors(
                predicted_targets, test_index
            )
        # Rows of each class and group, and the weight of a share of each class in the
        # model of all people and in those without each group.
        n_classes = person_rows.class_codes.max() + 1
        self.class_fold_row_indices = [
            [
                test_index[person_rows.class_codes[test_index] == class_code]
                for _, test_index in splits
            ]
            for class_code in range(n_classes)
        ]
        self.class_weights = np.zeros((1 + len(splits), n_classes))
        all_indices = np.arange(len(person_rows.class_codes))
        for class_weight_row, fit_indices in zip(
            self.class_weights,
            [all_indices, *(train_index for train_index, _ in splits)],
            strict=True,
        ):
            fit_rows = person_rows.select_rows(fit_indices)
            class_weight_row[fit_rows.class_codes] = (
                fit_rows.compute_row_weights() / fit_rows.scan_shares
            )

    def _compute_squared_row_errors(
        self, predicted_targets: np.ndarray, test_index: np.ndarray
    ) -> np.ndarray:
        """Return the weighted squared error of each row of the test rows."""
        return self.row_weights[test_index] * (
            (self.person_rows.targets[test_index] - predicted_targets) ** 2
        ).sum(1)

    def compute_error_share_and_interval(
        self, row_error_reductions: np.ndarray
    ) -> tuple[float, float, float]:
        """Return the part of the own-value model's error that falls.

        Its 90 % interval is that of a ratio of means over people.
        """
        person_reductions = np.bincount(
            self.person_rows.person_codes, row_error_reductions
        )
        person_errors = np.bincount(self.person_rows.person_codes, self.own_row_errors)
        reduction_share = person_reductions.sum() / person_errors.sum()
        person_residuals = person_reductions - reduction_share * person_errors
        half_width = 1.645 * np.sqrt((person_residuals**2).sum()) / person_errors.sum()
        return (
            float(reduction_share),
            float(reduction_share - half_width),
            float(reduction_share + half_width),
        )

    def compute_gain(self, diffused_column_arrays: Sequence[np.ndarray]) -> _Gain:
        """Return the gain by diffused columns (n_rows, n_columns) of each scale."""
        own_value_models = [self.full_model, *self.fold_models]
        solution_lists: list[list[_ScaleSolution]] = [[] for _ in own_value_models]
        for diffused_columns in diffused_column_arrays:
            for scale_solutions, model, product_matrix in zip(
                solution_lists,
                own_value_models,
                self._iter_product_matrices(diffused_columns),
                strict=True,
            ):
                scale_solutions.append(model.fit_scale_solution(product_matrix))
        network_fits = [
            model.average_scale_solutions(scale_solutions)
            for model, scale_solutions in zip(
                own_value_models, solution_lists, strict=True
            )
        ]
        row_error_reductions = np.empty_like(self.own_row_errors)
        for fold_model, fold_network_fit, (_, test_index) in zip(
            self.fold_models, network_fits[1:], self.splits, strict=True
        ):
            test_column_arrays = [
                diffused_columns[test_index]
                for diffused_columns in diffused_column_arrays
            ]
            predicted_targets = fold_model.predict(
                self.person_rows.select_rows(test_index),
                fold_network_fit,
                test_column_arrays,
            )
            row_error_reductions[test_index] = self.own_row_errors[
                test_index
            ] - self._compute_squared_row_errors(predicted_targets, test_index)
        log_evidences = np.array(
            [network_fit.log_evidence for network_fit in network_fits]
        )
        mean_log_scale = network_fits[0].scale_probabilities @ np.log(_SCALES)
        return _Gain(log_evidences, row_error_reductions, float(np.exp(mean_log_scale)))

    def _iter_product_matrices(
        self, diffused_columns: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield the products of one scale of all people, then without each group.

        Products add over rows; the weight of a row depends on its class and its share
        alone. So the rows of each class and group are multiplied once.
        """
        block_products = np.array(
            [
                [
                    _compute_column_products(
                        diffused_columns[block_row_indices],
                        self.person_rows.select_rows(block_row_indices),
                        self.person_rows.scan_shares[block_row_indices],
                    )
                    for block_row_indices in block_index_arrays
                ]
                for block_index_arrays in self.class_fold_row_indices
            ]
        )
        class_product_sums = block_products.sum(axis=1)
        yield np.tensordot(self.class_weights[0], class_product_sums, 1)
        for group_index, class_weights in enumerate(self.class_weights[1:]):
            yield np.tensordot(
                class_weights, class_product_sums - block_products[:, group_index], 1
            )


def _compute_column_products(
    diffused_columns: np.ndarray, person_rows: _PersonRows, row_weights: np.ndarray
) -> np.ndarray:
    """Return H'U [H, F, own values, targets] of diffused columns H and weights U."""
    H = diffused_columns.astype(float)
    other_columns = [
        person_rows.stack_unpenalized_columns(),
        person_rows.region_values,
        person_rows.targets,
    ]
    return (row_weights[:, None] * H).T @ np.hstack([H, *other_columns])


class _NetworkFit(NamedTuple):
    """The network model, averaged over its grid."""

    log_evidence: float
    """Log evidence minus that of the own-value model."""
    scale_probabilities: np.ndarray
    """Posterior probability of each scale."""
    columns_on_F: list[np.ndarray]
    """Coefficients of diffused columns on intercept and means, for each scale."""
    slopes: list[np.ndarray]
    """Slope of diffused columns in own values, (n_columns,) for each scale."""
    residual_weights: np.ndarray
    """Weights of residual columns (n_scales, n_columns, k)."""
    own_weights: np.ndarray
    """Weights of standardised own values (n_columns, k)."""


class _ScaleSolution(NamedTuple):
    """The network model at one scale, for each ridge and c of the grid."""

    grid_log_evidences: np.ndarray
    """Log evidence plus log prior (n_ridges, n_c)."""
    columns_on_F: np.ndarray
    """Coefficients of diffused columns on intercept and means."""
    slopes: np.ndarray
    """Slope of diffused columns in own values (n_columns,)."""
    residual_weights: np.ndarray
    """Weights of residual columns (n_ridges, n_c, n_columns, k)."""
    own_coefficients: np.ndarray
    """Targets minus the part that the network predicts, in the components of the own
    values (n_ridges, n_c, n_components, k)."""


class _ResidualProducts(NamedTuple):
    """Products of residual columns R with themselves, own values X and targets t."""

    RtR: np.ndarray
    RtX: np.ndarray
    Rtt: np.ndarray
    slopes: np.ndarray
    """Slope of diffused columns in own values (n_columns,)."""
    columns_on_F: np.ndarray
    """Coefficients of diffused columns on intercept and means."""


class _OwnValueModel:
    """Ridge on the regions' own values, with their mean unpenalised.

    All arrays are multiplied by square roots of weights, and projected on what
    intercept and means do not explain.
    """

    def __init__(self, person_rows: _PersonRows) -> None:
        from brainlsap.model.evidence import (
            LOG_NOISE_BOUND,
            compute_inverse_sds,
            count_contrasts,
        )

        self.person_rows = person_rows
        row_weights = person_rows.compute_row_weights()
        self.root_weights = np.sqrt(row_weights)[:, None]
        n_people = float(row_weights.sum())
        self.n_people = n_people
        self.F = person_rows.stack_unpenalized_columns()
        # Coefficients of weighted least squares on F are F_inverse @ values.
        self.F_inverse = np.linalg.pinv(self.root_weights * self.F)
        self.FtF_inverse = self.F_inverse @ self.F_inverse.T
        self.F_inverse = self.F_inverse * self.root_weights.T
        value_means = row_weights @ person_rows.region_values / n_people
        value_variances = (
            row_weights @ (person_rows.region_values - value_means) ** 2 / n_people
        )
        self.inverse_sd = compute_inverse_sds(value_variances)
        self.own_on_F = self.F_inverse @ (person_rows.region_values * self.inverse_sd)
        self.X = self._residualize_columns(person_rows.region_values * self.inverse_sd)
        self.target_on_F = self.F_inverse @ person_rows.targets
        self.t = self._residualize_columns(person_rows.targets)
        self.n_contrasts = count_contrasts(self.t)
        self.dof = n_people - np.linalg.matrix_rank(self.F)
        P, S, Qt = np.linalg.svd(self.X, full_matrices=False)
        min_singular_value = 1e-6 * S.max(initial=1e-300)
        nonzero_singular_value_mask = min_singular_value < S
        self.P, self.S, self.Q = (
            P[:, nonzero_singular_value_mask],
            S[nonzero_singular_value_mask],
            Qt[nonzero_singular_value_mask].T,
        )
        self.Pt = self.P.T @ self.t
        self.XtX, self.Xtt = self.X.T @ self.X, self.X.T @ self.t
        self.log_ridge_bound = LOG_NOISE_BOUND + np.log(self.X.shape[1])
        log_evidences = [
            self._compute_log_evidence(ridge_penalty)
            for ridge_penalty in n_people * np.exp(_LOG_RIDGES)
        ]
        self.log_evidence = max(log_evidences)
        best_ridge_index = int(np.argmax(log_evidences))
        self.ridge = float(n_people * np.exp(_LOG_RIDGES[best_ridge_index]))

    def _residualize_columns(self, column_matrix: np.ndarray) -> np.ndarray:
        """Return the residuals from intercept and means, times root weights."""
        return self.root_weights * (
            column_matrix - self.F @ (self.F_inverse @ column_matrix)
        )

    def _compute_log_evidence(
        self, ridge_penalty: float, rss_reduction: Any = 0.0, log_det: Any = 0.0
    ) -> Any:
        """Return log evidence plus log prior of the ridge, without constants.

        A network lowers the residual sum of squares and adds to the log determinant.
        """
        shrinkages = self.S**2 / (self.S**2 + ridge_penalty)
        rss = (self.t**2).sum() - shrinkages @ (self.Pt**2).sum(axis=1) - rss_reduction
        log_det = log_det + np.log1p(self.S**2 / ridge_penalty).sum()
        log_ridge_shortfall = max(self.log_ridge_bound - np.log(ridge_penalty), 0.0)
        log_likelihood = -self.n_contrasts / 2 * (self.dof * np.log(rss) + log_det)
        return log_likelihood - log_ridge_shortfall**2 / 2

    def fit_network(self, diffused_column_arrays: Sequence[np.ndarray]) -> _NetworkFit:
        """Fit the network model of diffused columns (n_rows, n_columns) of each scale.

        The rows are those of this model.
        """
        row_weights = self.root_weights[:, 0] ** 2
        return self.average_scale_solutions(
            [
                self.fit_scale_solution(
                    _compute_column_products(
                        diffused_columns, self.person_rows, row_weights
                    )
                )
                for diffused_columns in diffused_column_arrays
            ]
        )

    def compute_residual_products(
        self, product_matrix: np.ndarray
    ) -> "_ResidualProducts":
        """Return the products of residual columns R.

        `product_matrix` is from :func:`_compute_column_products`.

        R = H - X slopes, both projected, by least squares of each column of H on that
        of X.
        """
        from brainlsap.model.evidence import compute_inverse_sds

        n_columns, n_unpenalized_columns = len(product_matrix), self.F.shape[1]
        HtH, HtF, HtV, HtT = np.split(
            product_matrix,
            np.cumsum([n_columns, n_unpenalized_columns, self.X.shape[1]]),
            axis=1,
        )
        # Least squares on F, from its products: (F'UF)^-1 F'UH
        columns_on_F = self.FtF_inverse @ HtF.T
        HtH = HtH - HtF @ columns_on_F
        HtX = HtV * self.inverse_sd - HtF @ self.own_on_F
        Htt = HtT - HtF @ self.target_on_F
        squared_column_norms = np.diag(self.XtX)
        slopes = np.diag(HtX) * compute_inverse_sds(squared_column_norms) ** 2
        RtX = HtX - slopes[:, None] * self.XtX
        RtR = HtH - HtX * slopes - slopes[:, None] * RtX.T
        Rtt = Htt - slopes[:, None] * self.Xtt
        explained_column_mask = np.diag(RtR) <= _MIN_RESIDUAL**2 * np.diag(HtH)
        RtR[explained_column_mask] = 0.0
        RtR[:, explained_column_mask] = 0.0
        RtX[explained_column_mask] = 0.0
        Rtt[explained_column_mask] = 0.0
        return _ResidualProducts(RtR, RtX, Rtt, slopes, columns_on_F)

    def fit_scale_solution(self, product_matrix: np.ndarray) -> _ScaleSolution:
        """Return the network model at one scale, for each ridge and c.

        With K0 = XX'/ridge + I and E = R'K0^-1 R, the weights of residual columns are
        (I/c + E)^-1 R'K0^-1 t, and log|I + cE| is added to the log determinant.
        """
        residual_products = self.compute_residual_products(product_matrix)
        n_columns = len(residual_products.RtR)
        mean_row_square = np.trace(residual_products.RtR) / self.n_people
        column_scale_factor = (
            1 / np.sqrt(mean_row_square) if mean_row_square > 0 else 1.0
        )
        PtR = (residual_products.RtX @ (self.Q / self.S)).T * column_scale_factor
        RtR, Rtt = (
            residual_products.RtR * column_scale_factor**2,
            residual_products.Rtt * column_scale_factor,
        )
        grid_shape = len(_RIDGE_FACTORS), len(_SIGNAL_RATIOS)
        grid_log_evidences = np.empty(grid_shape)
        log_dets = np.empty(grid_shape)
        residual_weights = np.empty((*grid_shape, n_columns, self.t.shape[1]))
        for i, ridge_factor in enumerate(_RIDGE_FACTORS):
            ridge_penalty = ridge_factor * self.ridge
            shrunken_PtR = (self.S**2 / (self.S**2 + ridge_penalty))[:, None] * PtR
            E = RtR - PtR.T @ shrunken_PtR
            projected_targets = Rtt - shrunken_PtR.T @ self.Pt
            for j, c in enumerate(_SIGNAL_RATIOS):
                # E is symmetric: its transpose saves LAPACK a copy.
                A = (c * E).T
                np.einsum("ii->i", A)[:] += 1.0
                cholesky_factor, residual_weights[i, j], _ = dposv(
                    A, c * projected_targets, lower=True, overwrite_a=True
                )
                log_dets[i, j] = 2 * np.log(np.diag(cholesky_factor)).sum()
            grid_log_evidences[i] = self._compute_log_evidence(
                ridge_penalty,
                rss_reduction=(projected_targets * residual_weights[i]).sum(
                    axis=(1, 2)
                ),
                log_det=log_dets[i],
            )
        return _ScaleSolution(
            grid_log_evidences=grid_log_evidences,
            columns_on_F=residual_products.columns_on_F,
            slopes=residual_products.slopes,
            residual_weights=column_scale_factor * residual_weights,
            own_coefficients=self.Pt - PtR @ residual_weights,
        )

    def average_scale_solutions(
        self, scale_solutions: Sequence[_ScaleSolution]
    ) -> _NetworkFit:
        """Return the network model averaged over scales, ridges and c."""
        log_evidences = np.array(
            [scale_solution.grid_log_evidences for scale_solution in scale_solutions]
        )
        log_total_evidence = logsumexp(log_evidences)
        grid_probabilities = np.exp(log_evidences - log_total_evidence)
        # Posterior means of the weights.
        residual_weights = np.array(
            [
                np.tensordot(ridge_c_probabilities, scale_solution.residual_weights, 2)
                for ridge_c_probabilities, scale_solution in zip(
                    grid_probabilities, scale_solutions, strict=True
                )
            ]
        )
        own_weights = np.zeros((len(self.Q), self.t.shape[1]))
        for i, ridge_factor in enumerate(_RIDGE_FACTORS):
            own_coefficients = sum(
                np.tensordot(
                    ridge_c_probabilities[i], scale_solution.own_coefficients[i], 1
                )
                for ridge_c_probabilities, scale_solution in zip(
                    grid_probabilities, scale_solutions, strict=True
                )
            )
            own_shrinkages = self.S / (self.S**2 + ridge_factor * self.ridge)
            own_weights += self.Q @ (own_shrinkages[:, None] * own_coefficients)
        return _NetworkFit(
            log_evidence=float(
                log_total_evidence - np.log(grid_probabilities.size) - self.log_evidence
            ),
            scale_probabilities=grid_probabilities.sum(axis=(1, 2)),
            columns_on_F=[
                scale_solution.columns_on_F for scale_solution in scale_solutions
            ],
            slopes=[scale_solution.slopes for scale_solution in scale_solutions],
            residual_weights=residual_weights,
            own_weights=own_weights,
        )

    def predict(
        self,
        person_rows: _PersonRows,
        network_fit: _NetworkFit | None = None,
        diffused_column_arrays: Sequence[np.ndarray] = (),
    ) -> np.ndarray:
        """Return predicted targets (n_rows, k) of new rows.

        `network_fit` and the diffused columns of the rows are those of the network
        model; without them, own values predict.
        """
        F = person_rows.stack_unpenalized_columns()
        X = person_rows.region_values * self.inverse_sd - F @ self.own_on_F
        if network_fit is None:
            singular_vector_weights = (self.S / (self.S**2 + self.ridge))[
                :, None
            ] * self.Pt
            return F @ self.target_on_F + X @ (self.Q @ singular_vector_weights)
        predicted_targets = F @ self.target_on_F + X @ network_fit.own_weights
        for diffused_columns, slopes, scale_residual_weights, coefficients_on_F in zip(
            diffused_column_arrays,
            network_fit.slopes,
            network_fit.residual_weights,
            network_fit.columns_on_F,
            strict=True,
        ):
            predicted_targets += diffused_columns @ scale_residual_weights
            predicted_targets -= F @ (coefficients_on_F @ scale_residual_weights)
            predicted_targets -= X @ (slopes[:, None] * scale_residual_weights)
        return predicted_targets


def _make_gain_table(
    draw_gains_by_connectome: dict[str, list[_Gain]], gain_computation: _GainComputation
) -> pd.DataFrame:
    """Return the table of :class:`ConnectomeGain`."""
    (original_gain,) = draw_gains_by_connectome["original"]
    table_records = []
    for connectome_name, draw_gains in draw_gains_by_connectome.items():
        mean_log_scale = np.mean([np.log(draw_gain.scale) for draw_gain in draw_gains])
        table_record = {
            "connectome": connectome_name,
            "n_draws": len(draw_gains),
            "scale": np.exp(mean_log_scale),
        }
        jackknife_gain_matrix = np.array(
            [draw_gain.jackknife_gains for draw_gain in draw_gains]
        )
        row_error_reductions = np.mean(
            [draw_gain.row_error_reductions for draw_gain in draw_gains], axis=0
        )
        table_record |= _make_interval_record(
            "evidence_gain", _compute_jackknife_mean_interval(jackknife_gain_matrix)
        )
        table_record |= _make_interval_record(
            "error_gain",
            gain_computation.compute_error_share_and_interval(row_error_reductions),
        )
        is_null_connectome = connectome_name != "original"
        lead_and_bounds = (
            _compute_jackknife_mean_interval(
                original_gain.jackknife_gains - jackknife_gain_matrix
            )
            if is_null_connectome
            else [np.nan] * 3
        )
        table_record |= _make_interval_record("evidence_lead", lead_and_bounds)
        lead_and_bounds = gain_computation.compute_error_share_and_interval(
            original_gain.row_error_reductions - row_error_reductions
        )
        table_record |= _make_interval_record(
            "error_lead", lead_and_bounds if is_null_connectome else [np.nan] * 3
        )
        table_records.append(table_record)
    return pd.DataFrame(table_records)


def _make_interval_record(
    column_name: str, estimate_and_bounds: Sequence[float]
) -> dict[str, float]:
    """Return estimate, low and high by the names of their columns."""
    return dict(
        zip(
            (column_name, f"{column_name}_low", f"{column_name}_high"),
            estimate_and_bounds,
            strict=True,
        )
    )


def _compute_jackknife_mean_interval(
    jackknife_gain_matrix: np.ndarray,
) -> tuple[float, float, float]:
    """Return the mean gain over draws with its 90 % interval.

    `jackknife_gain_matrix` (n_draws, 1 + n_groups) has gains of all people, then
    without each group.
    """
    n_draws, n_groups = len(jackknife_gain_matrix), jackknife_gain_matrix.shape[1] - 1
    estimate = float(jackknife_gain_matrix[:, 0].mean())
    leave_one_out_gains = jackknife_gain_matrix[:, 1:].mean(axis=0)
    variance = (n_groups - 1) * leave_one_out_gains.var()
    if n_draws > 1:
        variance += jackknife_gain_matrix[:, 0].var(ddof=1) / n_draws
    half_width = student.ppf(0.95, n_groups - 1) * np.sqrt(variance)
    return estimate, estimate - half_width, estimate + half_width
