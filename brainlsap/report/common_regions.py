"""The paper's tables of regions: smallest scales that several models have in common."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.data import Atlas
from brainlsap.evaluation import Evaluation
from brainlsap.evaluation.ranking_agreement import rank_rows
from brainlsap.exceptions import ParameterError
from brainlsap.report.tables import NAMES

REFERENCE = "Exact"
ABSENT = "-"
RMSE_ROW = "RMSE for all ROIs"


def common_region_table(
    scales: Any,
    atlas: Atlas,
    n_smallest: int = 20,
    *,
    reference: str | None = None,
    names: str = "short",
    digits: int = 3,
) -> pd.DataFrame:
    """Return the regions whose scale is among the smallest in several models.

    As the supplement of Sim et al. 2024: regions among the `n_smallest` of the
    reference and of at least one other model, grouped by in how many models they
    are, each group in order of the reference's scale; then the RMSE of every model to
    the reference over all measured regions.

    Parameters
    ----------
    scales : Evaluation, mapping of str to Series, or mapping of str to either
        Models and their scales by region name; of an evaluation, the mean over folds
        of every model that has scales. By biomarker, such as "FDG", for several.
    atlas : Atlas
        Holds the names of the regions.
    n_smallest : int
        How many of each model count as smallest.
    reference : str, optional
        Model to compare with: by default "Exact", or the first where there is none.
    names : {"short", "long", "atlas"}
        The paper's short names, written out, or as files name them.
    digits : int
        Decimals.

    Returns
    -------
    DataFrame
        Columns biomarker (where several are given), "# of common models", ROI and one
        for each model, as text: "-" where the region is not among its smallest.

    Raises
    ------
    ParameterError
        Where fewer than two models have scales, or there is no such reference.

    Examples
    --------
    >>> from brainlsap.data import load_atlas
    >>> atlas = load_atlas("desikan82")
    >>> exact = pd.Series(np.linspace(0.1, 2, 82), index=list(atlas.names))
    >>> models = {"Exact": exact, "LSAP-C": exact + 0.1}
    >>> common_region_table(models, atlas, 2)
      # of common models                          ROI  Exact LSAP-C
    0                  2                 (L) bankssts  0.100  0.200
    1                  2  (L) caudalanteriorcingulate  0.123  0.223
    2                               RMSE for all ROIs      -  0.100
    """
    check_choice("names", names, NAMES)
    check_at_least("n_smallest", n_smallest, 1)
    parts = []
    for biomarker, given in _by_biomarker(scales).items():
        models, first = _aligned(given, atlas, reference)
        part = _common_rows(models, first, atlas, n_smallest, names, digits)
        parts.append(part if biomarker == "" else _led_by(biomarker, part))
    return pd.concat(parts, ignore_index=True).fillna(ABSENT)


def short_region_table(
    scales: Any,
    atlas: Atlas,
    n_regions: int = 10,
    *,
    reference: str | None = None,
    names: str = "short",
    digits: int = 3,
) -> pd.DataFrame:
    """Return the regions of smallest scale that all models have in common.

    The regions whose worst rank in any model is best, in order of the reference's
    scale: the short table of Sim et al. 2024.

    Parameters
    ----------
    scales : Evaluation, mapping of str to Series, or mapping of str to either
        As for :func:`common_region_table`.
    atlas : Atlas
        Holds the names of the regions.
    n_regions : int
        How many.
    reference : str, optional
        As for :func:`common_region_table`.
    names : {"short", "long", "atlas"}
        How regions are called.
    digits : int
        Decimals.

    Returns
    -------
    DataFrame
        Columns biomarker (where several are given), ROI and one for each model.

    Raises
    ------
    ParameterError
        As :func:`common_region_table`.

    Examples
    --------
    See :func:`brainlsap.report.common_region_table`.
    """
    check_choice("names", names, NAMES)
    check_at_least("n_regions", n_regions, 1)
    parts = []
    for biomarker, given in _by_biomarker(scales).items():
        models, first = _aligned(given, atlas, reference)
        worst = rank_rows(models.to_numpy().T, "min").max(axis=0)
        order = np.argsort(worst, kind="stable")[:n_regions]
        chosen = models.iloc[order[np.isfinite(worst[order])]]
        chosen = chosen.sort_values(first, kind="stable")
        part = pd.DataFrame({"ROI": _called(chosen.index, atlas, names)})
        for model in models:
            part[model] = [f"{value:.{digits}f}" for value in chosen[model]]
        parts.append(part if biomarker == "" else _led_by(biomarker, part))
    return pd.concat(parts, ignore_index=True).fillna(ABSENT)


def _by_biomarker(scales: Any) -> dict[str, Any]:
    if isinstance(scales, Mapping) and scales:
        inner = scales.values()
        if all(isinstance(one, Mapping | Evaluation) for one in inner):
            nested = [one for one in inner if isinstance(one, Evaluation)] or all(
                isinstance(value, Mapping | pd.Series)
                for one in inner
                for value in dict(one).values()
            )
            if nested:
                return {str(name): one for name, one in scales.items()}
    return {"": scales}


def _aligned(
    given: Any, atlas: Atlas, reference: str | None
) -> tuple[pd.DataFrame, str]:
    """Return the scales (regions of the atlas, models), and the reference's name."""
    if isinstance(given, Evaluation):
        given = mean_scales(given)
    columns = {}
    for model, values in given.items():
        full = pd.Series(np.nan, index=range(len(atlas)), dtype=float)
        full.iloc[atlas.match(list(values.keys()))] = list(dict(values).values())
        columns[str(model)] = full
    if len(columns) < 2:
        raise ParameterError(
            "regions in common need at least two models with scales, got "
            f"{len(columns)}."
        )
    first = next(iter(columns))
    chosen = reference or (REFERENCE if REFERENCE in columns else first)
    check_choice("reference", chosen, columns)
    ordered = [chosen, *(name for name in columns if name != chosen)]
    return pd.DataFrame(columns)[ordered].dropna(), chosen


def mean_scales(evaluation: Evaluation) -> dict[str, pd.Series]:
    """Return the mean scale over folds of every model that has scales.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.

    Returns
    -------
    dict of str to Series
        By model; indexed by region, NaN where not measured.

    Examples
    --------
    See :func:`brainlsap.report.common_region_table`.
    """
    found = {}
    for name, result in evaluation.results.items():
        scales = result.scales()
        if scales is not None:
            shown = np.where(result.measured, scales.mean(axis=0), np.nan)
            found[name] = pd.Series(shown, index=list(result.region_names))
    return found


def _common_rows(
    models: pd.DataFrame,
    first: str,
    atlas: Atlas,
    n_smallest: int,
    names: str,
    digits: int,
) -> pd.DataFrame:
    small = n_smallest >= rank_rows(models.to_numpy().T, "min").T
    count = small.sum(axis=1)
    kept = small[:, list(models).index(first)] & (count > 1)
    order = np.lexsort((models[first].to_numpy(), -count))
    order = order[kept[order]]
    rows: dict[str, list[str]] = {
        "# of common models": [*(str(count[row]) for row in order), ""],
        "ROI": [*_called(models.index[order], atlas, names), RMSE_ROW],
    }
    for place, model in enumerate(models):
        gap = np.sqrt(((models[model] - models[first]) ** 2).mean())
        rows[model] = [
            f"{models[model].iloc[row]:.{digits}f}" if small[row, place] else ABSENT
            for row in order
        ] + [ABSENT if model == first else f"{gap:.{digits}f}"]
    return pd.DataFrame(rows)


def _called(places: Any, atlas: Atlas, names: str) -> list[str]:
    return list(atlas.regions[NAMES[names]].iloc[list(places)])


def _led_by(biomarker: str, part: pd.DataFrame) -> pd.DataFrame:
    return pd.concat(
        [pd.Series([biomarker] * len(part), name="biomarker"), part], axis=1
    )
