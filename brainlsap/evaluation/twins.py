"""Scans that are too alike to be two people's, in training and test scans."""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from brainlsap._arrays import power_of_two
from brainlsap._scratch import row_blocks
from brainlsap.data import Cohort
from brainlsap.evaluation.findings import Finding
from brainlsap.evaluation.splits import Split

ALIKE = 0.01
"""Nearly identical: squared difference, as a part of that of two strangers."""

# Alike in few numbers are many people; in thousands no more is learned.
FEWEST_VALUES, MOST_VALUES = 10, 2000
MOST_PAIRS = 10_000
BLOCK = 1000
# Of more scans than two blocks, so many numbers are compared first.
SHORT, SAMPLE, MOST_CANDIDATES = 64, 500, 20_000


def find_twins(
    cohort: Cohort, splits: Sequence[Split]
) -> tuple[list[Finding], pd.DataFrame, dict[str, str]]:
    r"""Look for scans that are (nearly) identical in training and test scans.

    Values are standardised over all scans; edges after log(1 + w), and only the 2,000
    edges that most scans have. Two scans are nearly identical where

    .. math:: \frac{1}{2p} \sum_{v=1}^{p} (z_{iv} - z_{jv})^2 < 0.01,

    which is 1 on average for two strangers; a rescan of one person usually has more
    than 0.05.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    splits : sequence of (train, test)
        Only pairs on two sides of a fold count.

    Returns
    -------
    findings : list of Finding
    pairs : DataFrame
        Columns check, scan, other_scan.
    skipped : dict of str to str
        What could not be looked at, and why.
    """
    findings: list[Finding] = []
    skipped: dict[str, str] = {}
    found: list[tuple[str, int, int]] = []
    sides = _sides(splits, cohort.n_scans)
    for kind, values in _arrays(cohort).items():
        if len(values) > 1 and _all_equal(values):
            reason = f"all scans have the same {kind}"
            skipped |= dict.fromkeys(
                (f"identical {kind}", f"nearly identical {kind}"), reason
            )
            continue
        same = [pair for pair in identical_rows(values) if _apart(sides, *pair)]
        alike = _alike(kind, values, set(same), skipped)
        alike = [pair for pair in alike if _apart(sides, *pair)]
        for check, pairs in (
            (f"identical {kind}", same),
            (f"nearly identical {kind}", alike),
        ):
            found += [(check, *pair) for pair in pairs]
            if pairs:
                findings.append(Finding(check, _evidence(pairs, cohort.groups)))
    scans = cohort.table["scan"].to_numpy(dtype=object)
    rows = [(check, scans[i], scans[j]) for check, i, j in found]
    return (
        findings,
        pd.DataFrame(rows, columns=["check", "scan", "other_scan"]),
        skipped,
    )


def identical_rows(values: np.ndarray) -> list[tuple[int, int]]:
    """Return pairs of identical rows: the first of each set with every other.

    Parameters
    ----------
    values : array of shape (n_scans, n_values)
        NaN equals NaN; rows without any number are not looked at.

    Returns
    -------
    list of (int, int)

    Examples
    --------
    >>> identical_rows(np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0]]))
    [(0, 2)]
    """
    first: dict[bytes, int] = {}
    pairs = []
    for row, one in enumerate(_each(values)):
        known = ~np.isnan(one)
        if not known.any():
            continue
        # zeros of either sign are one number, and NaN of any making is NaN
        told = np.where(known, one + 0.0, np.nan).tobytes()
        digest = hashlib.blake2b(told, digest_size=16).digest()
        if digest in first:
            pairs.append((first[digest], row))
        first.setdefault(digest, row)
    return pairs


def alike_rows(values: np.ndarray) -> list[tuple[int, int]]:
    """Return pairs of rows nearer than :data:`ALIKE`, at most 10,000.

    Parameters
    ----------
    values : array of shape (n_scans, n_values)
        NaN counts as the mean of its column.

    Returns
    -------
    list of (int, int)
        The smaller row first.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(30, 20))
    >>> alike_rows(np.vstack([rows, rows[7] + 0.01]))
    [(7, 30)]
    """
    return _near(_standardised(values))


def _near(z: np.ndarray) -> list[tuple[int, int]]:
    limit = ALIKE * 2 * max(z.shape[1], 1)
    # of many scans few numbers are compared first: distances in them are no larger
    short = z @ _directions(z) if len(z) > 2 * BLOCK and z.shape[1] > SHORT else z
    pairs: list[tuple[int, int]] = []
    for start in range(0, len(z), BLOCK):
        i, j = _within(short, start, limit * (1 + 1e-9))
        if short is not z and len(i) > MOST_CANDIDATES:
            i, j = _within(z, start, limit)
        elif short is not z:
            square = np.array([_square(z[a] - z[b]) for a, b in zip(i, j, strict=True)])
            near = square < limit
            i, j = i[near], j[near]
        pairs += zip(i.tolist(), j.tolist(), strict=True)
        if len(pairs) > MOST_PAIRS:
            return pairs[:MOST_PAIRS]
    return pairs


def _within(z: np.ndarray, start: int, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of near rows, the smaller one in the block from `start` on."""
    rows, rest = z[start : start + BLOCK], z[start:]
    square = rows @ (-2 * rest.T)
    square += np.einsum("ij,ij->i", rows, rows)[:, None]
    square += np.einsum("ij,ij->i", rest, rest)
    i, j = np.nonzero(square < limit)
    upper = i < j
    return i[upper] + start, j[upper] + start


def _directions(z: np.ndarray) -> np.ndarray:
    """Return orthonormal columns in which scans differ most, from some of the scans."""
    some = z[np.linspace(0, len(z) - 1, SAMPLE).astype(int)]
    return np.linalg.svd(some, full_matrices=False)[2][:SHORT].T


def _square(difference: np.ndarray) -> float:
    return float(difference @ difference)


def _arrays(cohort: Cohort) -> dict[str, np.ndarray]:
    # A shared connectome is one matrix seen n_scans times: it is not copied.
    shape = (cohort.n_scans, cohort.n_rois**2)
    edges = (
        np.broadcast_to(cohort.connectomes[0].reshape(-1), shape)
        if cohort.shares_connectome
        else cohort.connectomes.reshape(shape)
    )
    features = cohort.features.reshape(cohort.n_scans, -1)
    return {"connectomes": edges, "features": features}


def _all_equal(values: np.ndarray) -> bool:
    if values.strides[0] == 0:
        return True
    return all(np.array_equal(row, values[0], equal_nan=True) for row in _each(values))


def _each(values: np.ndarray) -> Iterator[np.ndarray]:
    for part in row_blocks(values):
        yield from values[part]


def _alike(
    kind: str,
    values: np.ndarray,
    same: set[tuple[int, int]],
    skipped: dict[str, str],
) -> list[tuple[int, int]]:
    if kind == "connectomes":
        values = _common_edges(values)
    z = _standardised(values)
    del values
    if z.shape[1] < FEWEST_VALUES:
        skipped[f"nearly identical {kind}"] = (
            f"needs {FEWEST_VALUES} values that vary, has {z.shape[1]}"
        )
        return []
    return [pair for pair in _near(z) if pair not in same]


def _common_edges(edges: np.ndarray) -> np.ndarray:
    """Return log(1 + w) of the edges that most scans have, each edge once."""
    n_rois = int(np.sqrt(edges.shape[1]))
    upper = np.flatnonzero(np.triu(np.ones((n_rois, n_rois), bool), 1))
    seen = np.zeros(edges.shape[1], dtype=np.int64)
    for part in row_blocks(edges):
        seen += (edges[part] > 0).sum(axis=0)
    kept = upper[np.argsort(-seen[upper], kind="stable")[:MOST_VALUES]]
    common = np.empty((len(edges), len(kept)))
    for part in row_blocks(edges):
        common[part] = edges[part][:, np.sort(kept)]
    return np.log1p(common, out=common)


def _standardised(values: np.ndarray) -> np.ndarray:
    """Return columns that vary, with mean 0 and s.d. 1, NaN as 0."""
    if values.shape[1] > MOST_VALUES:
        step = np.linspace(0, values.shape[1] - 1, MOST_VALUES).astype(int)
        values = values[:, step]
    centred = np.array(values, dtype=np.float64)
    unknown = np.isnan(centred)
    count = np.maximum((~unknown).sum(axis=0), 1)
    centred[unknown] = 0
    mean = centred.sum(axis=0) / count
    centred -= mean
    centred[unknown] = 0
    unit = power_of_two(centred)
    centred /= unit
    sd = np.sqrt(np.einsum("ij,ij->j", centred, centred) / count)
    varies = sd > 1e-10 * np.maximum(np.abs(mean) / unit, 1e-300)
    if not varies.all():
        centred, sd = centred[:, varies], sd[varies]
    centred /= sd
    return centred


def _sides(splits: Sequence[Split], n_scans: int) -> np.ndarray:
    """Return 1 for training, 2 for test and 0 for neither (n_folds, n_scans)."""
    sides = np.zeros((len(splits), n_scans), dtype=np.int8)
    for fold, (train, test) in enumerate(splits):
        sides[fold, train], sides[fold, test] = 1, 2
    return sides


def _apart(sides: np.ndarray, i: int, j: int) -> bool:
    return bool((sides[:, i] * sides[:, j] == 2).any())


def _evidence(pairs: list[tuple[int, int]], groups: np.ndarray) -> str:
    strangers = sum(groups[i] != groups[j] for i, j in pairs)
    number = f"{len(pairs)}{'+' if len(pairs) == MOST_PAIRS else ''}"
    return (
        f"{number} pair{'s' * (len(pairs) != 1)} of scans on two sides of a fold, "
        f"{strangers} of them under different participants"
    )
