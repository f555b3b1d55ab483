"""Connectomes are made ready for a Laplacian; one network of many people."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from brainlsap.arrays import (
    check_at_least,
    check_choice,
    check_connectomes,
    check_features,
)
from brainlsap.exceptions import ParameterError
from brainlsap.graph.laplacian import normalized_laplacian

_CHOICES = {
    "threshold_unit": ("weight", "share", "density"),
    "weights": ("weighted", "log", "binary"),
    "symmetrize": ("mean", "max", "refuse"),
    "isolated": ("keep", "strongest", "mean", "refuse"),
    "connectome": ("own", "mean", "covariance"),
}
_LEARNED = ("mask", "mean", "covariance")
# Connectomes that are prepared at once, in float64.
_AT_ONCE = 256


@dataclass(frozen=True)
class Preparation:
    """How connectomes are made ready, in the order of the steps.

    Steps: (1) `connectome`: whose; (2) `symmetrize`, and the diagonal is cleared; (3)
    `threshold`; (4) `volumes`; (5) `consensus` and `group_density`; (6) `isolated`;
    (7) `weights`. The mean of people, the covariance of their features and which
    links step 5 keeps are learned by :class:`LearnedPreparation`, from training scans.
    Make it by :meth:`of`, which checks the options.

    Parameters
    ----------
    threshold : float
        Links below it become 0; the paper drops those of fewer than 10 streamlines.
        0 is none.
    threshold_unit : {"weight", "share", "density"}
        `weight`: in the connectome's unit. `share`: of the sum over the scan's links.
        `density`: only the strongest links stay, so many that they are this share of
        all pairs of regions (equals of the weakest stay too).
    weights : {"weighted", "log", "binary"}
        Keep weights, take log(1 + w), or set every link to 1 (the paper).
    symmetrize : {"mean", "max", "refuse"}
        Of the two directions: the mean, the larger, or an error where they differ.
    volumes : sequence of float, optional
        Of every region, mm3: weights are divided by the mean of the two volumes.
    consensus : float
        Links are kept that at least this share of the training people has. 0 is none.
    group_density : float, optional
        The links of largest mean over training people are kept, this share of all
        pairs.
    isolated : {"keep", "strongest", "mean", "refuse"}
        A region without links: `keep` leaves it to its own value at every scale;
        `strongest` gives back its strongest link of before step 3; `mean` gives it
        the links of the training people's mean; `refuse` is an error.
    connectome : {"own", "mean", "covariance"}
        Whose network is used, see step 1. `covariance` is for people without
        diffusion imaging, see :func:`covariance_connectome`.
    """

    threshold: float = 0.0
    threshold_unit: str = "weight"
    weights: str = "weighted"
    symmetrize: str = "mean"
    volumes: tuple[float, ...] | None = None
    consensus: float = 0.0
    group_density: float | None = None
    isolated: str = "keep"
    connectome: str = "own"

    @property
    def is_learned(self) -> bool:
        """Whether any step needs to have seen training scans."""
        return (
            self.consensus > 0
            or self.group_density is not None
            or self.isolated == "mean"
            or self.connectome != "own"
        )

    @classmethod
    def of(cls, **options: Any) -> "Preparation":
        """Return the preparation of named options; raise where one cannot be used."""
        known = [field.name for field in fields(cls)]
        for name in options:
            check_choice("option of preparation", name, known)
        if options.get("volumes") is not None:
            options["volumes"] = tuple(float(v) for v in options["volumes"])
        made = cls(**options)
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(made, name), choices)
        check_at_least("threshold", made.threshold, 0.0)
        covariance = made.connectome == "covariance"
        shares = {"consensus": made.consensus, "group_density": made.group_density}
        if covariance or made.threshold_unit != "weight":
            shares["threshold (of a share or of correlations)"] = made.threshold
        for name, share in shares.items():
            if share is not None and not 0 <= share <= 1:
                raise ParameterError(f"{name} must lie between 0 and 1, got {share!r}.")
        if not all(0 < volume < np.inf for volume in made.volumes or ()):
            raise ParameterError("volumes must be positive and finite, in mm3.")
        if covariance and (made.consensus or made.volumes):
            raise ParameterError(
                "consensus and volumes are for connectomes of people; leave them out "
                "where connectome is 'covariance'."
            )
        return made


def prepare_connectomes(W: np.ndarray, **options: Any) -> np.ndarray:
    """Make connectomes ready for a Laplacian, by the steps that need no training.

    Parameters
    ----------
    W : array of shape (n_graphs, n_rois, n_rois)
        Streamline counts or other non-negative weights.
    **options : see :class:`Preparation`
        Those that are not learned.

    Returns
    -------
    array of shape (n_graphs, n_rois, n_rois)
        In float64.

    Raises
    ------
    ParameterError
        For an option that cannot be used, or what an option refuses.

    Examples
    --------
    >>> W = np.array([[[5.0, 12.0], [12.0, 0.0]]])
    >>> prepare_connectomes(W, threshold=10, weights="binary").tolist()
    [[[0.0, 1.0], [1.0, 0.0]]]
    """
    made = Preparation.of(**options)
    if made.is_learned:
        raise ParameterError(
            "isolated='mean', consensus, group_density and networks of the group are "
            "learned from training scans; use LearnedPreparation."
        )
    return LearnedPreparation(made).apply(W)


@dataclass(frozen=True, eq=False)
class LearnedPreparation:
    """A preparation with what it learned from the training scans.

    Parameters
    ----------
    options : Preparation
        The steps.
    mask : bool array of shape (n_rois, n_rois), optional
        Links that `consensus` and `group_density` keep.
    mean : array of shape (n_rois, n_rois), optional
        Mean of the training people after step 4.
    covariance : array of shape (n_rois, n_rois), optional
        Of the training people's features.
    """

    options: Preparation
    mask: np.ndarray | None = None
    mean: np.ndarray | None = None
    covariance: np.ndarray | None = None

    @classmethod
    @threadpool_limits.wrap(limits=1)
    def learn(
        cls,
        connectomes: np.ndarray,
        features: np.ndarray | None,
        groups: np.ndarray,
        options: Preparation,
    ) -> "LearnedPreparation":
        """Learn from training scans; each person counts once, whatever their visits.

        Parameters
        ----------
        connectomes : array of shape (n_scans, n_rois, n_rois)
            Of the training scans.
        features : array of shape (n_scans, n_rois, n_features), optional
            NaN where not measured; needed for a covariance only.
        groups : array of shape (n_scans,)
            Participant of every scan.
        options : Preparation
            The steps.

        Returns
        -------
        LearnedPreparation

        Raises
        ------
        ParameterError
            For a covariance without features, or what an option refuses.
        """
        if not options.is_learned:
            return cls(options)
        covariance = None
        mean, presence = np.zeros((2, *connectomes.shape[1:]))
        if options.connectome == "covariance":
            if features is None:
                raise ParameterError("connectome='covariance' needs features.")
            covariance = covariance_connectome(features, groups)
            mean = _edges(covariance[None], options)[0]
        else:
            for part, share in _blocks(groups):
                edges = _edges(connectomes[part], options, part.start)
                mean += np.tensordot(share, edges, axes=1)
                presence += np.tensordot(share, edges > 0, axes=1)
        mask = None
        if options.consensus > 0 or options.group_density is not None:
            # shares are sums of fractions: 3 of 5 people must count as 0.6
            mask = (mean > 0) & (presence >= options.consensus - 1e-12)
            if options.group_density is not None:
                mask &= _strongest(mean, options.group_density)
        return cls(options, mask, mean, covariance)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> "LearnedPreparation":
        """Return what :meth:`to_dict` has taken apart."""
        options = Preparation.of(**state["options"])
        return cls(options, **{name: state[name] for name in _LEARNED})

    def to_dict(self) -> dict[str, Any]:
        """Return options and learned arrays, so that a file can hold them."""
        options = {k: v for k, v in asdict(self.options).items() if v is not None}
        return {"options": options} | {name: getattr(self, name) for name in _LEARNED}

    @property
    def is_shared(self) -> bool:
        """Whether every scan gets one and the same network."""
        return self.options.connectome != "own"

    def apply(self, W: np.ndarray, first_row: int = 0) -> np.ndarray:
        """Prepare connectomes, of training scans or of new ones.

        Parameters
        ----------
        W : array of shape (n_scans, n_rois, n_rois)
            With the regions that were learned from.
        first_row : int
            Number of the first of them, for messages.

        Returns
        -------
        array of shape (n_scans, n_rois, n_rois)
            In float64; a broadcast view where one network serves all.

        Raises
        ------
        ParameterError
            For what an option refuses.
        """
        raw, options = W, self.options
        if options.connectome == "own":
            edges = _edges(W, options, first_row)
        else:
            edges = np.array(self.mean)[None]
            raw = edges.copy() if self.covariance is None else self.covariance[None]
        if self.mask is not None:
            edges *= self.mask
        if options.isolated != "keep":
            self._fill_isolated(edges, raw, first_row)
        if options.weights == "log":
            np.log1p(edges, out=edges)
        elif options.weights == "binary":
            edges = (edges > 0).astype(np.float64)
        return edges if len(edges) == len(W) else np.broadcast_to(edges, W.shape)

    def _fill_isolated(self, edges: np.ndarray, W: np.ndarray, first_row: int) -> None:
        """Treat regions without links by the policy, in place: step 6."""
        options = self.options
        row, region = np.nonzero(~edges.any(axis=-1))
        if options.isolated == "refuse" and row.size:
            raise ParameterError(
                f"{row.size} regions have no link left (the first: region {region[0]} "
                f"of row {first_row + row[0]}), and isolated is 'refuse'; lower the "
                "threshold, or choose 'keep', 'strongest' or 'mean'."
            )
        if options.isolated == "mean":
            given = np.broadcast_to(np.array(self.mean), edges.shape)
        else:
            kept = Preparation(symmetrize=options.symmetrize, volumes=options.volumes)
            given = _edges(W, kept)
        for graph, alone in zip(row, region, strict=True):
            links = given[graph, alone]
            if options.isolated == "strongest":
                links = np.where(np.arange(links.size) == links.argmax(), links, 0.0)
            edges[graph, alone] = np.maximum(edges[graph, alone], links)
            edges[graph, :, alone] = np.maximum(edges[graph, :, alone], links)


def _edges(W: np.ndarray, options: Preparation, first_row: int = 0) -> np.ndarray:
    """Symmetrise, clear the diagonal, threshold, divide by volume: steps 2 to 4."""
    W = np.asarray(W, dtype=np.float64)
    check_connectomes(W, first_row)
    back = np.swapaxes(W, -1, -2)
    if options.symmetrize == "refuse":
        gap = np.abs(W - back).max(axis=(1, 2), initial=0.0)
        bad = np.flatnonzero(gap > 1e-6 * W.max(axis=(1, 2), initial=0.0))
        if bad.size:
            raise ParameterError(
                f"connectome of row {first_row + bad[0]} is not symmetric (its "
                f"directions differ by {gap[bad[0]]:g}), and symmetrize is 'refuse'."
            )
    edges = np.maximum(W, back) if options.symmetrize == "max" else (W + back) / 2
    diagonal = np.arange(W.shape[-1])
    edges[..., diagonal, diagonal] = 0.0
    if options.threshold > 0 and options.threshold_unit == "weight":
        edges[edges < options.threshold] = 0.0
    elif options.threshold > 0:
        for one in edges:
            if options.threshold_unit == "share":
                one[options.threshold * one.sum() / 2 > one] = 0.0
            else:
                one[~_strongest(one, options.threshold)] = 0.0
    if options.volumes is not None:
        volumes = np.asarray(options.volumes)
        if len(volumes) != W.shape[-1]:
            raise ParameterError(
                f"volumes must hold one number for each of {W.shape[-1]} regions, "
                f"got {len(volumes)}."
            )
        edges *= 2.0 / (volumes[:, None] + volumes[None, :])
    return edges


def _strongest(W: np.ndarray, density: float) -> np.ndarray:
    """Return which links are the strongest, this share of all pairs, with equals."""
    links = W[np.triu_indices(len(W), 1)]
    n_kept = round(density * links.size)
    if n_kept == 0:
        return np.zeros(W.shape, dtype=bool)
    place = links.size - n_kept
    return (np.partition(links, place)[place] <= W) & (W > 0)


def _blocks(groups: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield some scans, and how much each counts where each person counts the same."""
    _, person, n_visits = np.unique(groups, return_inverse=True, return_counts=True)
    share = 1.0 / (n_visits[person] * len(n_visits))
    for start in range(0, len(share), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        yield part, share[part]


@threadpool_limits.wrap(limits=1)
def mean_connectome(W: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """Return the mean connectome of people; each counts once, whatever their visits.

    Of all scans of a cohort it has seen the people who are tested later. Inside folds
    it is the model's option `preparation={"connectome": "mean"}`.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois)
        Connectomes.
    groups : array of shape (n_scans,), optional
        Participant of every scan; by default each is a person of its own.

    Returns
    -------
    array of shape (n_rois, n_rois)
        In float64.

    Raises
    ------
    ParameterError
        For weights that are not finite, or negative.

    Examples
    --------
    >>> W = np.array([1.0, 3.0, 8.0])[:, None, None] * (1 - np.eye(2))
    >>> mean_connectome(W, ["a", "a", "b"]).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    mean = np.zeros(W.shape[1:])
    for part, share in _blocks(np.arange(len(W)) if groups is None else groups):
        check_connectomes(W[part], part.start)
        mean += np.tensordot(share, W[part], axes=1)
    return mean


@threadpool_limits.wrap(limits=1)
def covariance_connectome(
    features: np.ndarray, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return how regions' features go together over people, as a network.

    The weight of two regions is the correlation of their values over people, 0 where
    it is negative; the mean over features. A person's value is the mean over their
    visits. Regions measured together in fewer than three people, and regions that do
    not vary, have no link. Of thickness this is the structural covariance network.

    Of all scans of a cohort it has seen the people who are tested later. Inside folds
    it is the model's option `preparation={"connectome": "covariance"}`.

    Parameters
    ----------
    features : array of shape (n_scans, n_rois, n_features)
        NaN where not measured.
    groups : array of shape (n_scans,), optional
        Participant of every scan; by default each is a person of its own.

    Returns
    -------
    array of shape (n_rois, n_rois)
        Symmetric, between 0 and 1, the diagonal 0.

    Raises
    ------
    ParameterError
        For fewer than three people, or features that are infinite.

    Examples
    --------
    >>> a = np.array([1.0, 2.0, 4.0])
    >>> features = np.stack([a, 3 * a, -a], axis=1)[..., None]
    >>> covariance_connectome(features).round(6).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    people = np.arange(len(features)) if groups is None else np.asarray(groups)
    check_features(features)
    names, person = np.unique(people, return_inverse=True)
    if len(names) < 3:
        raise ParameterError(
            f"a covariance network needs at least 3 people, got {len(names)}."
        )
    known = ~np.isnan(features)
    total = np.zeros((len(names), *features.shape[1:]))
    count = np.zeros_like(total)
    np.add.at(total, person, np.where(known, features, 0.0))
    np.add.at(count, person, known)
    values = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    each = [_correlation(values[..., kind]) for kind in range(values.shape[2])]
    network = np.clip(np.mean(each, axis=0), 0.0, 1.0)
    np.fill_diagonal(network, 0.0)
    return network


def _correlation(values: np.ndarray) -> np.ndarray:
    """Correlate columns over the rows in which both are given; 0 where undefined."""
    known = (~np.isnan(values)).astype(np.float64)
    # centred first: sums of squares of raw values would lose digits
    centre = np.where(known > 0, values, 0.0).sum(0) / np.maximum(known.sum(0), 1)
    x = np.where(known > 0, values - centre, 0.0)
    n = known.T @ known
    count = np.maximum(n, 1)
    sums, squares = x.T @ known, (x**2).T @ known
    covariance = x.T @ x - sums * sums.T / count
    variance = squares - sums**2 / count
    # means over visits leave a constant region a spread of rounding
    noise = count * (1e-9 * np.abs(centre)[:, None]) ** 2 + 1e-300
    flat = (variance <= noise) | (n < 3)
    scale = np.sqrt(np.where(flat, np.inf, variance))
    r = covariance / (scale * scale.T)
    return np.where(np.isfinite(r), r, 0.0)


def connectome_summary(
    prepared: np.ndarray, eigenvalues: torch.Tensor | None = None
) -> dict[str, float]:
    """Return how dense prepared connectomes are, and how well they hang together.

    Parameters
    ----------
    prepared : array of shape (n_scans, n_rois, n_rois)
        As the Laplacian takes them.
    eigenvalues : Tensor of shape (n_scans, n_rois), optional
        Of their normalised Laplacians, ascending, where they are known already.

    Returns
    -------
    dict of str to float
        `density` (mean over scans of the share of pairs that are linked),
        `isolated_regions` (mean number without a link), `most_isolated` (in any
        scan), `spectral_gap` (mean over scans of the smallest eigenvalue after that of
        a connected graph, isolated regions left out; 0 where the rest falls apart),
        `smallest_gap` (of any scan).

    Examples
    --------
    >>> connectome_summary(1.0 - np.eye(3)[None])["density"]
    1.0
    """
    if prepared.strides[0] == 0:
        prepared = prepared[:1]
    if eigenvalues is None:
        eigenvalues = torch.linalg.eigvalsh(normalized_laplacian(prepared).double())
    values = eigenvalues.cpu().numpy()[: len(prepared)]
    n_rois = prepared.shape[1]
    links = (prepared > 0).sum(axis=(1, 2)) / max(n_rois * (n_rois - 1), 1)
    isolated = (~prepared.any(axis=2)).sum(axis=1)
    # every isolated region brings one eigenvalue 0 of its own
    place = np.minimum(isolated + 1, n_rois - 1)
    gap = np.where(isolated + 1 < n_rois, values[np.arange(len(values)), place], 0.0)
    gap = np.where(gap < 1e-10, 0.0, gap)
    return {
        "density": float(links.mean()),
        "isolated_regions": float(isolated.mean()),
        "most_isolated": float(isolated.max()),
        "spectral_gap": float(gap.mean()),
        "smallest_gap": float(gap.min()),
    }
