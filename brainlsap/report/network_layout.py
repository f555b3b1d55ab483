"""The order of regions in pictures of networks, and their strongest edges."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainlsap._arrays import check_at_least
from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError

# From the front of the head to its back, and inwards; lobes of other names follow.
LOBES = ("frontal", "insula", "limbic", "temporal", "parietal", "occipital")
# Okabe and Ito's, in the order of LOBES; then the subcortex and what has no lobe.
LOBE_COLOURS = {
    "frontal": "#0072B2",
    "insula": "#CC79A7",
    "limbic": "#E69F00",
    "temporal": "#009E73",
    "parietal": "#56B4E9",
    "occipital": "#D55E00",
    "subcortical": "#5B5B5B",
}
OTHER_COLOUR = "#A9A9A9"


@dataclass(frozen=True, eq=False)
class Network:
    """A network in atlas order: what every picture of one starts from.

    Parameters
    ----------
    weights : ndarray of float, shape (n_given, n_given)
        Symmetric; zero where two regions are not joined.
    places : ndarray of int, shape (n_given,)
        Position of each row in the atlas.
    sides, lobes : ndarray of str, shape (n_given,)
        Hemisphere (L, R, M) and lobe of each row.
    """

    weights: np.ndarray
    places: np.ndarray
    sides: np.ndarray
    lobes: np.ndarray


def as_network(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | None,
    atlas: Atlas,
) -> Network:
    """Return a network whose rows are known by name.

    Parameters
    ----------
    connectome : array of shape (n_given, n_given), or DataFrame with names
        Symmetric weights; NaN stands for no edge.
    region_names : sequence of str or None
        Name of every row; None takes a data frame's own, which its columns share.
    atlas : Atlas
        Holds the names.

    Returns
    -------
    Network

    Raises
    ------
    ParameterError
        If rows have no names, or the weights are not square and symmetric.
    RegionNameError
        If a name is unknown or doubled.
    """
    if isinstance(connectome, pd.DataFrame):
        names = list(connectome.index) if region_names is None else list(region_names)
        if region_names is None and list(connectome.columns) != names:
            raise ParameterError(
                "connectome's rows and columns must have the same names in the same "
                "order."
            )
    elif region_names is None:
        raise ParameterError(
            "an array has no names: give region_names, one for each row."
        )
    else:
        names = list(region_names)
    weights = np.nan_to_num(np.asarray(connectome, dtype=float))
    if weights.shape != (len(names), len(names)):
        raise ParameterError(
            f"connectome must have shape (n_rois, n_rois) for {len(names)} region "
            f"names, got {weights.shape}."
        )
    if not np.allclose(weights, weights.T, rtol=1e-5):
        raise ParameterError("connectome must be symmetric; average it with its T.")
    places = atlas.match(names)
    regions = atlas.regions.iloc[places]
    lobes = regions["lobe"].fillna("").astype(str).to_numpy()
    return Network(weights, places, regions["hemisphere"].to_numpy(), lobes)


def order_by_lobe(sides: np.ndarray, lobes: np.ndarray) -> np.ndarray:
    """Return the order left, midline, right, and in each the lobes from the front.

    Parameters
    ----------
    sides, lobes : ndarray of str, shape (n_rois,)
        Hemisphere and lobe.

    Returns
    -------
    ndarray of int, shape (n_rois,)
        Regions of one lobe keep their order.

    Examples
    --------
    >>> lobes = np.array(["frontal", "other", "limbic"])
    >>> order_by_lobe(np.array(["R", "L", "L"]), lobes)
    array([2, 1, 0])
    """
    rank = {lobe: number for number, lobe in enumerate(LOBES)}
    last = {lobe: len(LOBES) + k for k, lobe in enumerate(sorted(set(lobes)))}
    of_lobe = np.array([rank.get(lobe, last[lobe]) for lobe in lobes])
    of_side = np.array([{"L": 0, "M": 1, "R": 2}.get(side, 3) for side in sides])
    return np.lexsort((np.arange(len(lobes)), of_lobe, of_side))


def strongest_edges(weights: np.ndarray, n_edges: int) -> np.ndarray:
    """Return the pairs of the largest weights, the smallest of them first.

    Parameters
    ----------
    weights : ndarray of float, shape (n_rois, n_rois)
        Symmetric; only its upper half is looked at, without the diagonal.
    n_edges : int
        At the most; edges of weight 0 are never among them.

    Returns
    -------
    ndarray of int, shape (n_found, 2)
        So that the strongest is drawn last, on top.

    Raises
    ------
    ParameterError
        If `n_edges` is below 1, or no two regions are joined.

    Examples
    --------
    >>> weights = np.array([[0.0, 2, 0], [2, 0, 5], [0, 5, 0]])
    >>> strongest_edges(weights, 9).tolist()
    [[0, 1], [1, 2]]
    """
    check_at_least("n_edges", n_edges, 1)
    rows, columns = np.triu_indices(len(weights), k=1)
    values = np.abs(weights[rows, columns])
    order = np.argsort(values, kind="stable")[-int(n_edges) :]
    order = order[values[order] > 0]
    if not len(order):
        raise ParameterError(
            "connectome joins no two regions; there is no edge to draw."
        )
    return np.column_stack([rows[order], columns[order]])


def runs_of(values: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return runs of equal values: value, start, end.

    Parameters
    ----------
    values : sequence of str
        Such as the lobes of ordered regions.

    Returns
    -------
    list of (str, int, int)
        The end is the first that no longer belongs.

    Examples
    --------
    >>> runs_of(["a", "a", "b"])
    [('a', 0, 2), ('b', 2, 3)]
    """
    values = list(values)
    starts = [k for k in range(len(values)) if k == 0 or values[k] != values[k - 1]]
    ends = [*starts[1:], len(values)]
    return [(values[k], k, end) for k, end in zip(starts, ends, strict=True)]
