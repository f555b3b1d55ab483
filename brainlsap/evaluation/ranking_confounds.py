"""What a ranking of regions may merely repeat: degree, strength, size, variance."""

import numpy as np
import pandas as pd

from brainlsap.data import Cohort
from brainlsap.evaluation.comparison import adjust_p_values
from brainlsap.evaluation.ranking_agreement import rank_correlation, rank_rows
from brainlsap.exceptions import FileFormatError, ParameterError

STRONG = 0.3
"""A rank correlation of this size or more, if significant, is flagged."""


def region_properties(cohort: Cohort, threshold: float = 0.0) -> pd.DataFrame:
    """Return what every region is apart from any label.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    threshold : float
        Edges below it do not count, as in the model.

    Returns
    -------
    DataFrame
        One row per region: region; degree (edges) and strength (sum of weights),
        means over scans, diagonal left out; size, the mean of the feature "volume"
        where the cohort has it, else the number of vertices on fsaverage5 (NaN below
        the cortex and without surfaces); and `variance_<feature>` over scans.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> found = region_properties(make_cohort(10, atlas="desikan82"))
    >>> list(found)
    ['region', 'degree', 'strength', 'size', 'variance_fdg']
    """
    # One connectome for everybody is one matrix, however many scans there are.
    W = cohort.connectomes[:1] if cohort.shares_connectome else cohort.connectomes
    degree, strength = np.zeros(cohort.n_rois), np.zeros(cohort.n_rois)
    for one in W:
        kept = np.where(one >= max(threshold, np.finfo(float).tiny), one, 0.0)
        np.fill_diagonal(kept, 0.0)
        degree += (kept > 0).sum(axis=1) / len(W)
        strength += kept.sum(axis=1) / len(W)
    variances = {
        f"variance_{name}": _over_scans(np.var, cohort.features[:, :, place])
        for place, name in enumerate(cohort.feature_names)
    }
    return pd.DataFrame(
        {
            "region": list(cohort.region_names),
            "degree": degree,
            "strength": strength,
            "size": _sizes(cohort),
            **variances,
        }
    )


def confound_table(ranking: pd.DataFrame, properties: pd.DataFrame) -> pd.DataFrame:
    """Return how the scale of regions goes with what they are apart from any label.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    properties : DataFrame
        As from :func:`region_properties`: region, then one column for each property.

    Returns
    -------
    DataFrame
        One row per property: property; n_regions in which it is known; spearman, its
        rank correlation with the scale; p_value (t approximation) and p_holm; and
        flagged, where the correlation is 0.3 or more either way and p_holm < 0.05.
        Neighbouring regions are alike, so these p-values are too small.

    Raises
    ------
    ParameterError
        Where the properties are not of the ranking's regions.

    Examples
    --------
    >>> ranking = pd.DataFrame({"region": list("abcdefg"), "scale": range(7)})
    >>> properties = pd.DataFrame({"region": list("abcdefg"), "degree": range(7)})
    >>> confound_table(ranking.assign(measured=True), properties)["spearman"].tolist()
    [1.0]
    """
    scale, columns = _aligned(ranking, properties)
    rows = []
    for name, values in columns.items():
        known = np.isfinite(scale) & np.isfinite(values)
        rho = rank_correlation(scale[known], values[known])
        p = _correlation_p(rho, int(known.sum()))
        rows.append((name, int(known.sum()), rho, p))
    table = pd.DataFrame(rows, columns=["property", "n_regions", "spearman", "p_value"])
    table["p_holm"] = adjust_p_values(table["p_value"].to_numpy(dtype=float))
    strong = table["spearman"].abs() >= STRONG
    table["flagged"] = strong & (table["p_holm"] < 0.05)
    return table


def rank_without(ranking: pd.DataFrame, properties: pd.DataFrame) -> pd.DataFrame:
    r"""Rank regions by what their properties do not explain of the scale.

    Ranks of the scale are regressed on the ranks of all properties; the residuals
    are ranked. A property that is unknown in a region counts there as average.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    properties : DataFrame
        As from :func:`region_properties`.

    Returns
    -------
    DataFrame
        One row per region in the order of the ranking: region, rank_adjusted (NaN if
        not measured). Its `attrs["explained"]` is the part of the variance of the
        ranks that the properties explain, adjusted for their number.

    Raises
    ------
    ParameterError
        Where the properties are not of the ranking's regions.

    Examples
    --------
    See :func:`brainlsap.evaluation.confound_table`.
    """
    scale, columns = _aligned(ranking, properties)
    known = np.isfinite(scale)
    own = rank_rows(scale[None, known])[0]
    design = [np.ones(len(own))]
    for values in columns.values():
        ranks = rank_rows(values[None, known])[0]
        if np.isfinite(ranks).any():
            centred = ranks - np.nanmean(ranks)
            design.append(np.nan_to_num(centred))
    X = np.stack(design, axis=1)
    residual = own - X @ np.linalg.lstsq(X, own, rcond=None)[0]
    adjusted = np.full(len(scale), np.nan)
    # rounding must not break the ties of what is explained in full
    adjusted[known] = rank_rows(np.round(residual, 6)[None], "min")[0]
    frame = pd.DataFrame({"region": list(ranking["region"]), "rank_adjusted": adjusted})
    frame.attrs["explained"] = _explained(own, residual, X.shape[1] - 1)
    return frame


def _explained(own: np.ndarray, residual: np.ndarray, n_properties: int) -> float:
    total, left = float(((own - own.mean()) ** 2).sum()), float((residual**2).sum())
    free = len(own) - n_properties - 1
    if total == 0 or free < 1:
        return float("nan")
    return max(0.0, 1 - left / total * (len(own) - 1) / free)


def _aligned(
    ranking: pd.DataFrame, properties: pd.DataFrame
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the measured scales and every property, region by region."""
    if "region" not in properties or set(properties["region"]) != set(
        ranking["region"]
    ):
        raise ParameterError(
            "properties must have one row for each region of the ranking, named in "
            "the column region; region_properties(cohort) makes them."
        )
    scale = ranking["scale"].where(ranking["measured"].astype(bool))
    rows = properties.set_index("region").loc[list(ranking["region"])]
    return scale.to_numpy(dtype=float), {
        str(name): rows[name].to_numpy(dtype=float) for name in rows
    }


def _correlation_p(rho: float, n: int) -> float:
    from scipy.stats import t

    if not np.isfinite(rho) or n < 4:
        return float("nan")
    if abs(rho) == 1:
        return 0.0
    return float(2 * t.sf(abs(rho) * np.sqrt((n - 2) / (1 - rho**2)), n - 2))


def _over_scans(function, values: np.ndarray) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Apply a function over the scans that were measured; NaN where none was."""
    columns = [one[np.isfinite(one)] for one in values.T]
    return np.array([function(one) if len(one) else np.nan for one in columns])


def _sizes(cohort: Cohort) -> np.ndarray:
    if "volume" in cohort.feature_names:
        place = cohort.feature_names.index("volume")
        return _over_scans(np.mean, cohort.features[:, :, place])
    counts = np.zeros(cohort.n_rois)
    try:
        for side in ("L", "R"):
            labels = cohort.atlas.vertex_labels(side)
            counts += np.bincount(labels[labels >= 0], minlength=cohort.n_rois)
    except FileFormatError:  # an atlas without surfaces
        return np.full(cohort.n_rois, np.nan)
    return np.where(counts > 0, counts, np.nan)
