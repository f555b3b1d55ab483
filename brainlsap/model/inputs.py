"""From packed scans to what the network takes; learned on the training scans."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from brainlsap._arrays import (
    check_connectomes,
    features_of,
    power_of_two,
    root_mean_square,
    unpack,
)
from brainlsap._scratch import as_doubles, row_blocks
from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    LearnedPreparation,
    SpectralEngine,
    Spectrum,
    SpectrumCache,
    connectome_summary,
)
from brainlsap.model.connectome_inputs import (
    distinct_connectomes,
    learn_preparation,
    prepare_in_blocks,
)
from brainlsap.model.network import GraphBatch
from brainlsap.model.settings import Settings

# Folds, kernels and starts of one process see the same graphs again and again.
_SPECTRA = SpectrumCache()
# Standardised features end here; what is beyond would end the range of float32.
_FARTHEST = 1e6


def check_packed(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return connectomes and features of a packed array that can be used.

    Parameters
    ----------
    X : array of shape (n_scans, n_rois, n_rois + n_features)

    Returns
    -------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    features : array of shape (n_scans, n_rois, n_features)

    Raises
    ------
    ParameterError
        For another shape, no scan, or connectomes that are not finite and
        non-negative.

    Examples
    --------
    >>> connectomes, features = check_packed(np.ones((2, 3, 4)))
    >>> features.shape
    (2, 3, 1)
    """
    X = as_doubles(X)
    connectomes, _ = unpack(X)
    if len(X) == 0:
        raise ParameterError("X holds no scan.")
    for part in row_blocks(X):
        check_connectomes(connectomes[part], part.start)
    return connectomes, features_of(X)


def check_same_size(features: np.ndarray, n_rois: int, n_features: int) -> None:
    """Raise unless there are as many regions and features as in the fit.

    Raises
    ------
    ParameterError
        If there are not.
    """
    if features.shape[1:] != (n_rois, n_features):
        raise ParameterError(
            f"X must hold {n_rois} regions and {n_features} features, "
            f"as in fit; got {features.shape[1]} and {features.shape[2]}."
        )


def check_labels(y: np.ndarray, n_scans: int) -> tuple[np.ndarray, np.ndarray]:
    """Return classes and the code of every scan.

    Raises
    ------
    ParameterError
        If there is not one label a scan, or only one class.
    """
    y = np.asarray(y)
    if y.shape != (n_scans,):
        raise ParameterError(
            f"y must have shape ({n_scans},), one label a scan, got {y.shape}."
        )
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ParameterError(
            f"y must hold at least two classes, got only {str(classes[0])!r}."
        )
    return classes, codes


def check_groups(
    groups: np.ndarray | None, n_scans: int, settings: Settings
) -> np.ndarray:
    """Return the participant of every scan; warn where that is a guess.

    Raises
    ------
    ParameterError
        If there is not one participant a scan.
    """
    if groups is None:
        if settings.patience:
            warnings.warn(
                "fit without groups takes every scan for a person of its own: visits "
                "of one person may be on both sides of the slice that stops training "
                "early. Pass groups=participants.",
                UserWarning,
                stacklevel=3,
            )
        return np.arange(n_scans)
    groups = np.asarray(groups)
    if groups.shape != (n_scans,):
        raise ParameterError(
            f"groups must have shape ({n_scans},), one participant a scan, "
            f"got {groups.shape}."
        )
    return groups


@dataclass(frozen=True, eq=False)
class InputScaler:
    """Put every region's features on one footing; unmeasured values become 0.

    `region`: minus the mean, over the standard deviation, of that region over the
    training scans; a region that does not vary gives 0, and what is a million
    deviations away is no farther. `scan` (the paper): within
    each scan and kind of measure, minus the mean over regions, over their range;
    this erases global atrophy.

    Attributes
    ----------
    mode : {"region", "scan"}
    mean, deviation : arrays of shape (n_rois, n_features)
        Of the training scans.
    measured : bool array of shape (n_rois,)
        Regions with a value in any training scan.
    """

    mode: str
    mean: np.ndarray
    deviation: np.ndarray
    measured: np.ndarray

    @classmethod
    def learn(cls, features: np.ndarray, mode: str) -> "InputScaler":
        """Learn from features of shape (n_scans, n_rois, n_features).

        Raises
        ------
        ParameterError
            If no region was measured in any scan.
        """
        known = ~np.isnan(features)
        if not known.any():
            raise ParameterError("features are NaN in every region of every scan.")
        count = np.maximum(known.sum(0), 1)
        filled = np.where(known, features, 0.0)
        mean = filled.sum(0) / count
        centred = np.where(known, features - mean, 0.0)
        deviation = root_mean_square(centred, count)
        # rounding alone gives a constant region a spread of about 1e-16 of its mean
        flat = deviation <= 1e-9 * np.abs(mean) + 1e-300
        deviation = np.where(flat, np.inf, deviation)
        return cls(mode, mean, deviation, known.any(axis=(0, 2)))

    def apply(self, features: np.ndarray) -> np.ndarray:
        """Return scaled features of the same shape, without NaN."""
        if self.mode == "region":
            scaled = np.nan_to_num((features - self.mean) / self.deviation, nan=0.0)
            return np.clip(scaled, -_FARTHEST, _FARTHEST, out=scaled)
        known = ~np.isnan(features)
        count = np.maximum(known.sum(1, keepdims=True), 1)
        mean = np.where(known, features, 0.0).sum(1, keepdims=True) / count
        highest = np.where(known, features, -np.inf).max(1, keepdims=True)
        lowest = np.where(known, features, np.inf).min(1, keepdims=True)
        span = highest - lowest
        safe = np.where(np.isfinite(span) & (span > 0), span, np.inf)
        return np.where(known, (features - mean) / safe, 0.0)


def make_batch(
    connectomes: np.ndarray,
    scaled: np.ndarray,
    settings: Settings,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    learned: LearnedPreparation | None = None,
) -> GraphBatch:
    """Decompose the graphs (or find them in the cache) and precompute layer one.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    scaled : array of shape (n_scans, n_rois, n_features)
        From :class:`InputScaler`.
    settings : Settings
        With the degree settled.
    device : torch.device
    dtype : torch.dtype
    learned : LearnedPreparation, optional
        Of the training scans; may be left out where nothing is learned.

    Returns
    -------
    GraphBatch
    """
    learned = learned or learn_preparation(connectomes, None, None, settings)
    graphs = distinct_connectomes(connectomes, learned)
    spectrum, graph_of = _SPECTRA.spectra(graphs, learned.apply, dtype)
    if len(graph_of) < len(connectomes):
        graph_of = np.zeros(len(connectomes), dtype=np.int64)
    engine = SpectralEngine(
        Spectrum(spectrum.eigenvalues.to(device), spectrum.eigenvectors.to(device)),
        torch.from_numpy(graph_of).to(device),
        kernel=settings.kernel,
        degree=settings.degree,
        max_scale=settings.max_scale,
        dtype=dtype,
        chunk=16 if device.type == "cpu" else 512,
    )
    if settings.inputs == "constant":
        scaled = np.ones_like(scaled)
    root = None
    if settings.normalization == "random_walk":
        roots = [_degree_roots(one) for one in prepare_in_blocks(graphs, learned)]
        root = torch.from_numpy(np.concatenate(roots)).to(device, dtype)
        root = root.expand(len(scaled), -1, -1)
    return GraphBatch.build(engine, torch.from_numpy(scaled).to(device, dtype), root)


def _degree_roots(prepared: np.ndarray) -> np.ndarray:
    """Return root degrees; any will do for isolated regions, rows of the identity."""
    degree = prepared.sum(axis=-1)
    largest = degree.max(axis=-1, keepdims=True)
    root = np.sqrt(np.where(degree > 0, degree, np.where(largest > 0, largest, 1.0)))
    # only their ratios count, and float32 ends where a unit may not
    return (root / power_of_two(root.T)[:, None])[..., None]


def summarize_connectomes(
    connectomes: np.ndarray, learned: LearnedPreparation
) -> dict[str, float]:
    """Return density, isolated regions and spectral gap of the prepared graphs."""
    graphs = distinct_connectomes(connectomes, learned)
    spectrum, graph_of = _SPECTRA.spectra(graphs, learned.apply)
    return connectome_summary(learned.apply(graphs), spectrum.eigenvalues[graph_of])


def spectra_of(prepared: np.ndarray) -> tuple[Spectrum, np.ndarray]:
    """Return the spectra of the distinct graphs, kept for later fits of the process.

    Parameters
    ----------
    prepared : array of shape (n_scans, n_rois, n_rois)
        From :func:`brainlsap.graph.prepare_connectomes`.

    Returns
    -------
    spectrum : Spectrum
        Of the distinct graphs, in float64.
    graph_of : int array of shape (n_scans,)
        Row of `spectrum` that belongs to each scan.
    """
    return _SPECTRA.spectra(prepared, dtype=torch.float64)


@contextmanager
def threads(n_threads: int) -> Iterator[None]:
    """Use so many CPU threads inside, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
