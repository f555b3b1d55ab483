"""Left and right: which region faces which, and scans in which they are swapped."""

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.data.region_names import split_name

# Fewer scans than this say nothing about how left and right usually differ.
FEWEST_SCANS = 8
# Agreement must be this far below 0, and below what the others have.
_CLEARLY_BELOW = 0.1


def mirror_positions(atlas: Atlas) -> np.ndarray:
    """Return the position of the region on the other side, for every region.

    Parameters
    ----------
    atlas : Atlas
        Names the regions and gives their order.

    Returns
    -------
    int array of shape (n_rois,)
        A region without a twin on the other side faces itself.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> mirror_positions(load_atlas("desikan82"))[[0, 34, 68]]
    array([34,  0, 75])
    """
    sides = atlas.regions["hemisphere"].tolist()
    known = {
        (side, split_name(name)[1]): place
        for place, (side, name) in enumerate(zip(sides, atlas.names, strict=True))
    }
    other = {"L": "R", "R": "L"}
    return np.array(
        [
            known.get((other.get(side, side), split_name(name)[1]), place)
            for place, (side, name) in enumerate(zip(sides, atlas.names, strict=True))
        ]
    )


def asymmetry_scores(
    values: np.ndarray, mirror: np.ndarray, groups: np.ndarray
) -> np.ndarray:
    """Return how well each scan's left-right differences agree with the others'.

    Parameters
    ----------
    values : array of shape (n_scans, n)
        Of regions or links; NaN where missing.
    mirror : int array of shape (n,)
        Position of the region or link on the other side.
    groups : array of shape (n_scans,)
        Person of every scan; a person's own other scans do not count.

    Returns
    -------
    array of shape (n_scans,)
        Cosine between the scan's difference of the sides and the mean difference in
        all other people, -1 to 1. It is 0 where it says nothing: few scans, no
        difference, or a value below 0 that is not clearly below that of the others.

    Examples
    --------
    >>> sides = np.array([[3.0, 1], [3, 1.1], [2.9, 1], [1, 3.0]] * 2)
    >>> asymmetry_scores(sides, np.array([1, 0]), np.arange(8)).round()
    array([ 1.,  1.,  1., -1.,  1.,  1.,  1., -1.])
    """
    n_scans = len(values)
    if n_scans < FEWEST_SCANS:
        return np.zeros(n_scans)
    gap = np.nan_to_num(values - values[:, mirror])
    total = gap.sum(axis=0)
    people, codes = np.unique(groups.astype(str), return_inverse=True)
    own = np.zeros((len(people), gap.shape[1]))
    np.add.at(own, codes, gap)
    rest = total - own[codes]
    size = np.linalg.norm(gap, axis=1) * np.linalg.norm(rest, axis=1)
    score = np.einsum("ij,ij->i", gap, rest) / np.where(size > 0, size, 1)
    # swaps are few: where the usual agreement is weak, a negative one is chance
    median = np.median(score)
    spread = 1.4826 * np.median(np.abs(score - median))
    unclear = (score < 0) & ((score > -_CLEARLY_BELOW) | (score > median - 3 * spread))
    return np.where(unclear, 0.0, score)
