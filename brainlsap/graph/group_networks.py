"""One network of many people: their mean, or how their features vary together."""

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from brainlsap._arrays import check_connectomes, check_features, power_of_two
from brainlsap._scratch import row_blocks
from brainlsap.exceptions import ParameterError
from brainlsap.graph.laplacian import normalized_laplacian


def shares_of_scans(groups: np.ndarray) -> np.ndarray:
    """Return how much every scan counts where each person counts the same.

    Parameters
    ----------
    groups : array of shape (n_scans,)
        Participant of every scan.

    Returns
    -------
    array of shape (n_scans,)
        Summing to 1.
    """
    _, person, n_visits = np.unique(groups, return_inverse=True, return_counts=True)
    return 1.0 / (n_visits[person] * len(n_visits))


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
        For weights that are not finite, negative or above 1e100.

    Examples
    --------
    >>> W = np.array([1.0, 3.0, 8.0])[:, None, None] * (1 - np.eye(2))
    >>> mean_connectome(W, ["a", "a", "b"]).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    people = np.arange(len(W)) if groups is None else np.asarray(groups)
    mean, share = np.zeros(W.shape[1:]), shares_of_scans(people)
    for part in row_blocks(W):
        check_connectomes(W[part], part.start)
        mean += np.tensordot(share[part], W[part], axes=1)
    return mean


# sums in one order, so that the last digit does not follow the number of threads
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
        For fewer than three people, or features that are infinite or above 1e100.

    Examples
    --------
    >>> a = np.array([1.0, 2.0, 4.0])
    >>> features = np.stack([a, 3 * a, -a], axis=1)[..., None]
    >>> covariance_connectome(features).round(6).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    people = np.arange(len(features)) if groups is None else np.asarray(groups)
    check_features(features)
    values = _person_means(features, people)
    if len(values) < 3:
        raise ParameterError(
            "a covariance network needs the features of at least 3 people, "
            f"got {len(values)}."
        )
    each = [_correlation(values[..., kind]) for kind in range(values.shape[2])]
    network = np.clip(np.mean(each, axis=0), 0.0, 1.0)
    np.fill_diagonal(network, 0.0)
    return network


def _person_means(features: np.ndarray, people: np.ndarray) -> np.ndarray:
    """Return each person's mean of what was measured, NaN where nothing was."""
    names, person = np.unique(people, return_inverse=True)
    known = ~np.isnan(features)
    total = np.zeros((len(names), *features.shape[1:]))
    count = np.zeros_like(total)
    np.add.at(total, person, np.where(known, features, 0.0))
    np.add.at(count, person, known)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _correlation(values: np.ndarray) -> np.ndarray:
    """Correlate columns over the rows in which both are given; 0 where undefined."""
    known = (~np.isnan(values)).astype(np.float64)
    # in units in which squares neither overflow nor vanish
    values = values / power_of_two(np.nan_to_num(values))
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
    """Say how dense prepared connectomes are, and how well they hang together.

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
    return summarize_links(*count_links(prepared), values)


def count_links(prepared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of pairs that are linked, and the number of lone regions.

    Parameters
    ----------
    prepared : array of shape (n_scans, n_rois, n_rois)

    Returns
    -------
    links : array of shape (n_scans,)
    isolated : int array of shape (n_scans,)
    """
    n_rois = prepared.shape[1]
    links = (prepared > 0).sum(axis=(1, 2)) / max(n_rois * (n_rois - 1), 1)
    return links, (~prepared.any(axis=2)).sum(axis=1)


def summarize_links(
    links: np.ndarray, isolated: np.ndarray, values: np.ndarray
) -> dict[str, float]:
    """Return what :func:`connectome_summary` tells, of counts and eigenvalues.

    Parameters
    ----------
    links, isolated : arrays of shape (n_scans,)
        From :func:`count_links`.
    values : array of shape (n_scans, n_rois)
        Eigenvalues, ascending.

    Returns
    -------
    dict of str to float
    """
    n_rois = values.shape[1]
    # every isolated region brings one eigenvalue 0 of its own
    place = np.minimum(isolated + 1, n_rois - 1)
    gap = np.maximum(values[np.arange(len(values)), place], 0.0)
    gap = np.where(isolated + 1 < n_rois, gap, 0.0)
    return {
        "density": float(links.mean()),
        "isolated_regions": float(isolated.mean()),
        "most_isolated": float(isolated.max()),
        "spectral_gap": float(np.where(gap < 1e-10, 0.0, gap).mean()),
        "smallest_gap": float(np.where(gap < 1e-10, 0.0, gap).min()),
    }
