"""How far scales and ranks spread: over folds, repeats, seeds and starts."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from brainlsap.evaluation.ranking_agreement import rank_rows

INTERVAL = (2.5, 97.5)


def scale_spread(
    scales: np.ndarray,
    measured: np.ndarray,
    *,
    seeds: Sequence[np.ndarray] | None = None,
    n_repeats: int = 1,
) -> pd.DataFrame:
    """Return intervals and deviations of scale and rank over every fit.

    Parameters
    ----------
    scales : array of shape (n_folds, n_rois)
        Learned scales, the folds of one repeat behind those of the other.
    measured : array of bool of shape (n_rois,)
        Regions that have a rank.
    seeds : sequence of arrays of shape (n_seeds, n_rois), optional
        Of every fold, the scales of each network that was averaged.
    n_repeats : int
        How often folds were drawn.

    Returns
    -------
    DataFrame
        One row per region: scale_low and scale_high, rank_low and rank_high, from
        the 2.5th to the 97.5th percentile of all fits (folds, repeats and seeds);
        sd_repeats, of the means of repeats; sd_seeds, between the networks of one
        fold. NaN where there is one repeat or one seed. Fits share most of their
        scans: the interval is not a confidence interval for another sample.

    Examples
    --------
    >>> scales = np.array([[0.1, 0.9], [0.3, 0.8], [0.2, 1.0]])
    >>> scale_spread(scales, np.ones(2, bool))["rank_high"].tolist()
    [1.0, 2.0]
    """
    fits = np.vstack(seeds) if seeds else scales
    ranks = rank_rows(np.where(measured, fits, np.nan))
    none = np.full(scales.shape[1], np.nan)
    repeats = np.stack([one.mean(axis=0) for one in np.split(scales, n_repeats)])
    several = [one for one in seeds or () if len(one) > 1]
    within = [one.var(axis=0, ddof=1) for one in several]
    return pd.DataFrame(
        {
            "scale_low": np.percentile(fits, INTERVAL[0], axis=0),
            "scale_high": np.percentile(fits, INTERVAL[1], axis=0),
            "rank_low": _percentile(ranks, INTERVAL[0], measured),
            "rank_high": _percentile(ranks, INTERVAL[1], measured),
            "sd_repeats": repeats.std(axis=0, ddof=1) if n_repeats > 1 else none,
            "sd_seeds": np.sqrt(np.mean(within, axis=0)) if within else none,
        }
    )


def start_spread(
    starts: Mapping[float, np.ndarray], measured: np.ndarray
) -> pd.DataFrame:
    """Return how far the ranking hangs on where the scales started.

    Parameters
    ----------
    starts : mapping of float to array of shape (n_folds, n_rois)
        Learned scales by start, on the same folds.
    measured : array of bool of shape (n_rois,)
        Regions that have a rank.

    Returns
    -------
    DataFrame
        One row per region: `scale_from_<start>`, mean over folds; start_spread, the
        largest minus the smallest of these; start_rank_low and start_rank_high, the
        best and the worst rank of any start.

    Examples
    --------
    >>> found = start_spread(
    ...     {0.3: np.array([[0.1, 0.4]]), 2.0: np.array([[1, 0.5]])}, np.ones(2, bool)
    ... )
    >>> found["start_spread"].round(2).tolist(), found["start_rank_high"].tolist()
    ([0.9, 0.1], [2.0, 2.0])
    """
    means = {start: one.mean(axis=0) for start, one in starts.items()}
    stack = np.stack(list(means.values()))
    ranks = rank_rows(np.where(measured, stack, np.nan), "min")
    return pd.DataFrame(
        {
            **{f"scale_from_{start:g}": one for start, one in means.items()},
            "start_spread": np.ptp(stack, axis=0),
            "start_rank_low": ranks.min(axis=0),
            "start_rank_high": ranks.max(axis=0),
        }
    )


def _percentile(ranks: np.ndarray, part: float, measured: np.ndarray) -> np.ndarray:
    known = np.where(measured, ranks, 0.0)
    return np.where(measured, np.percentile(known, part, axis=0), np.nan)
