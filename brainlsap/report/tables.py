"""Every table of a report: a data frame of text, ready for a paper."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.atlas import AtlasSource
from brainlsap.data.covariates import find_covariate_kind
from brainlsap.data.measures import PET_FEATURE_TITLES, get_measure_record
from brainlsap.evaluation import ConnectomeGain, Evaluation, comparison
from brainlsap.evaluation import ranking as ranks
from brainlsap.evaluation.confounds import (
    MIN_CURVE_VALUES,
    MIN_PEOPLE_PER_COEFFICIENT,
)
from brainlsap.evaluation.leakage import check_title
from brainlsap.evaluation.models import ADDED_VALUE_MODELS, NESTED_RIDGES
from brainlsap.evaluation.ranking import find_subcortex_measure_name
from brainlsap.evaluation.region_tests import standardized_difference_table
from brainlsap.evaluation.results import CohortSummary, check_evaluation_given
from brainlsap.evaluation.scores import (
    SCORES,
    fold_scores,
    main_score_names,
    title_by_score_name,
)
from brainlsap.evaluation.subgroups import (
    MIN_PEOPLE_OF_GROUP,
    TOO_FEW_PEOPLE,
    scored_columns_table,
    subgroup_gap_table,
    subgroup_table,
)
from brainlsap.exceptions import ParameterError, check_at_least, check_choice
from brainlsap.text import count_text, join_with_and, join_with_commas, p_text

FEATURE_TITLES = {
    "thickness": "cortical thickness",
    "volume": "regional volume",
    "area": "cortical surface area",
    "strength": "connection strength (sum of a region's connection weights)",
    **PET_FEATURE_TITLES,
}
"""Titles of features in text; other features are called by their names."""

N_DRAWS, N_SWAPS = 1000, 5000
"""Bootstrap draws for intervals; exchanges of predictions in tests of models."""

N_EXCHANGES = 2000
"""Permutations of the labels among participants for the test against chance."""

CHANCE_TITLE = "p (chance, uncorrected)"
"""Title of the column of p-values against chance."""

SAME_PREDICTIONS = "same predictions"
"""Text in place of the difference of two models that predict the same."""

NO_TEST = "-"
"""Text in place of the p-value of two models that predict the same."""

CONTRAST_MEANING = (
    "the smaller of two effects in the same direction (of the region's value, and of "
    "its difference from the mean of connected regions)"
)
"""Definition of the contrast of a region, for page, methods and supplement."""

CURVE_NOTE = (
    "The effects of quantities, for example age, were removed as curves (restricted "
    f"cubic splines with three knots) if a quantity had at least {MIN_CURVE_VALUES} "
    f"values and if there were at least {MIN_PEOPLE_PER_COEFFICIENT} participants for "
    "each coefficient of the covariates. The effects of all other quantities were "
    "removed as straight lines."
)
"""Use of covariates in tests of regions and in differences between classes."""

CLASS_RATE_TITLES = {"ppv": "PPV", "npv": "NPV", "auc": "AUC"}
"""Titles of rates of classes; other rates are called by their names."""

LATEX_SIGNS = {"<": "$<$", ">": "$>$", "|": "$|$", "±": r"$\pm$"}
LATEX_SIGNS |= {
    "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": "$-$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{MIDDLE DOT}": r"$\cdot$",
}
"""Signs that pandas does not translate to LaTeX."""

_SPECIAL = {letter: rf"\{letter}" for letter in "&%$#_{}"}
_SPECIAL |= {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
}
"""Characters with a meaning in LaTeX, and what prints them."""

_SIGN = r"(?<![\w.)\]-])-(?=\.?\d)"
"""A hyphen that is the sign of a number, unlike the hyphens of 1-2 and HRF-2."""


def feature_title(
    cohort: Any, feature_name: str, region_name: str | None = None
) -> str:
    """Return the title of a feature, of one region or of all.

    In the subcortex another measure may be substituted for one of the cortical surface.
    """
    feature_name_text = FEATURE_TITLES.get(feature_name, feature_name)
    subcortex_measure_text = find_subcortex_measure_name(cohort, feature_name)
    if not subcortex_measure_text:
        return feature_name_text
    if region_name is None:
        measure_name = subcortex_measure_text.partition(" in ")[0]  # Without its unit.
        return f"{feature_name_text} (subcortex: {measure_name})"
    region_structure_series = cohort.regions.set_index("name")["structure"]
    return (
        subcortex_measure_text
        if region_structure_series[region_name] == "subcortex"
        else feature_name_text
    )


def feature_text(cohort: CohortSummary) -> str:
    """Return the titles of a cohort's features."""
    return join_with_and(
        feature_title(cohort, feature_name) for feature_name in cohort.feature_names
    )


def measured_regions_text(cohort: CohortSummary) -> str:
    """Return in how many regions each feature was measured, and how much is missing."""
    all_regions_text = count_text(len(cohort.region_names), "region")
    feature_texts = []
    for feature_name in cohort.feature_names:
        n_regions, missing_share = _count_measured_regions_and_missing_share(
            cohort, feature_name
        )
        feature_sentence = (
            f"{feature_title(cohort, feature_name)} in {n_regions} of "
            f"{all_regions_text}"
        )
        if missing_share > 0:
            share_text = f"{missing_share:.1%}" if missing_share >= 0.001 else "<0.1%"
            feature_sentence += f" ({share_text} of values missing)"
        feature_texts.append(feature_sentence)
    return join_with_and(feature_texts)


def has_missing_values(cohort: CohortSummary) -> bool:
    """Return whether a feature is missing in some scans of the regions measured."""
    return any(
        _count_measured_regions_and_missing_share(cohort, feature_name)[1] > 0
        for feature_name in cohort.feature_names
    )


def _count_measured_regions_and_missing_share(
    cohort: Any, feature_name: str
) -> tuple[int, float]:
    """Return the number of regions with a feature, and the share missing there."""
    class_mean_sd_table = cohort.class_features
    feature_row_mask = class_mean_sd_table["feature"] == feature_name
    region_groups = class_mean_sd_table[feature_row_mask].groupby("region")
    measured_region_mask = region_groups["people"].sum() > 0
    n_regions = int(measured_region_mask.sum())
    n_missing = region_groups["missing_scans"].sum()[measured_region_mask].sum()
    return n_regions, float(n_missing) / max(1, n_regions * cohort.n_scans)


def spread_text(mean: float, sd: float = np.nan, n_digits: int = 3) -> str:
    """Return "mean ± s.d.", without the s.d. where it is unknown."""
    mean += np.copysign(1e-12, mean)  # round halves up as in figures: 0.125 is 0.13
    mean_text = f"{mean:z.{n_digits}f}" if np.isfinite(mean) else "n/a"
    return f"{mean_text} ± {sd:.{n_digits}f}" if np.isfinite(sd) else mean_text


def interval_text(estimate: float, low: float, high: float, n_digits: int = 3) -> str:
    """Return "estimate [low, high]", without bounds that are unknown."""
    ordered_values = (estimate, min(low, estimate), max(high, estimate))
    value_texts = [
        spread_text(ordered_value, n_digits=n_digits)
        for ordered_value in ordered_values
    ]
    are_bounds_known = np.isfinite([estimate, low, high]).all()
    return "{} [{}, {}]".format(*value_texts) if are_bounds_known else value_texts[0]


def shorten_name(long_name: str, max_length: int) -> str:
    """Shorten a long name in its middle; names may differ at either end.

    Whole words are left out, unless that would remove more than half of the length.
    """
    if len(long_name) <= max_length:
        return long_name
    middle_words = long_name.split(" ")
    first_words: list[str] = []
    last_words: list[str] = []
    short_name = ""
    while True:
        takes_first = len(" ".join(first_words)) <= len(" ".join(last_words))
        if takes_first:
            first_words.append(middle_words.pop(0))
        else:
            last_words.insert(0, middle_words.pop())
        longer_name = " ".join([*first_words, "...", *last_words])
        if len(longer_name) > max_length:
            break
        if last_words:
            short_name = longer_name
    if 2 * len(short_name) >= max_length:
        return short_name
    half_length = (max_length - 5) // 2
    return f"{long_name[:half_length]} ... {long_name[-half_length:]}"


def make_number_text_table(
    frame: pd.DataFrame, title_by_column: Mapping[str, str], n_digits: int = 3
) -> pd.DataFrame:
    """Return columns as text for a paper, under these titles.

    Numbers with bounds, `<name>_low` or else `low`, are written with them.
    """
    text_table = frame[list(title_by_column)].copy()
    for column_name in text_table.select_dtypes("float"):
        column_stem = column_name.removesuffix("_scale")
        bound_columns = [f"{column_stem}_low", f"{column_stem}_high"]
        bound_columns = bound_columns if bound_columns[0] in frame else ["low", "high"]
        if column_name in ("p", "p_holm", "p_slope", "p_intercept"):
            text_table[column_name] = text_table[column_name].map(p_text)
        elif bound_columns[0] in frame:
            estimates_and_bounds = frame[[column_name, *bound_columns]].to_numpy()
            text_table[column_name] = [
                interval_text(a, b, c, n_digits) for a, b, c in estimates_and_bounds
            ]
        else:
            text_table[column_name] = [
                spread_text(cell_value, n_digits=n_digits)
                for cell_value in text_table[column_name]
            ]
    return text_table.rename(columns=title_by_column)


def table_text(frame: pd.DataFrame, style: str = "markdown") -> str:
    r"""Return a table as text that goes into a file or a manuscript.

    Parameters
    ----------
    frame : DataFrame
        Its index is not printed.
    style : {"latex", "markdown"}
        LaTeX needs the package booktabs. Its special characters are escaped; letters of
        other alphabets need XeLaTeX or LuaLaTeX. Columns of long cells are 45 mm wide.

    Returns
    -------
    str
        Ends with a line break.

    Raises
    ------
    ParameterError
        If `style` is unknown.

    Examples
    --------
    >>> frame = pd.DataFrame({"region": ["G&S_front"], "scale": [0.5]})
    >>> print(table_text(frame, "latex"), end="")
    \begin{tabular}{lr}
    \toprule
    region & scale \\
    \midrule
    G\&S\_front & 0.5 \\
    \bottomrule
    \end{tabular}
    """
    check_choice("style", style, ("latex", "markdown"))
    cell_table = frame.astype(object).where(frame.notna(), "")
    cell_table = cell_table.map(lambda cell_text: " ".join(str(cell_text).split()))
    numeric_column_flags = [
        pd.api.types.is_numeric_dtype(column_dtype) for column_dtype in frame.dtypes
    ]
    if style == "latex":
        long_column_flags = [
            cell_table[column_name].str.len().max() > 40 for column_name in cell_table
        ]
        column_flag_pairs = zip(numeric_column_flags, long_column_flags, strict=True)
        alignment_text = "".join(
            "r" if is_numeric else "p{45mm}" if is_long else "l"
            for is_numeric, is_long in column_flag_pairs
        )
        cell_table = cell_table.replace(_SIGN, "\N{MINUS SIGN}", regex=True)
        latex_text = cell_table.to_latex(
            index=False, escape=True, column_format=alignment_text
        )
        return _separate_hyphens(latex_text.translate(str.maketrans(LATEX_SIGNS)))
    markdown_alignments = [
        "---:" if is_numeric_column else "---"
        for is_numeric_column in numeric_column_flags
    ]
    escaped_rows = [
        [cell_text.replace("\\", r"\\").replace("|", r"\|") for cell_text in cell_row]
        for cell_row in [list(cell_table), *cell_table.to_numpy()]
    ]
    escaped_rows.insert(1, markdown_alignments)
    return "".join(f"| {' | '.join(cell_row)} |\n" for cell_row in escaped_rows)


def latex_cells_and_titles(frame: pd.DataFrame) -> tuple[list[list[str]], list[str]]:
    """Return cells, row by row, and titles of a table as escaped LaTeX."""
    cell_table = frame.astype(object).where(frame.notna(), "")
    cell_table = cell_table.map(lambda cell_text: " ".join(str(cell_text).split()))
    cell_rows = [
        [_escape_latex(cell) for cell in row_cells]
        for row_cells in cell_table.to_numpy().tolist()
    ]
    return cell_rows, [_escape_latex(str(column_title)) for column_title in frame]


def text_with_minus_signs(unmarked_text: str) -> str:
    """Return a text with minus signs where hyphens are signs of numbers."""
    return re.sub(_SIGN, "\N{MINUS SIGN}", unmarked_text)


def _escape_latex(unescaped_text: str) -> str:
    """Return a text with special characters and minus signs as LaTeX has them."""
    latex_by_sign: dict[str, str | int | None] = {**_SPECIAL, **LATEX_SIGNS}
    return _separate_hyphens(
        text_with_minus_signs(unescaped_text).translate(str.maketrans(latex_by_sign))
    )


def _separate_hyphens(latex_text: str) -> str:
    """Separate two hyphens, which LaTeX would print as one dash (`--leave-out`)."""
    return latex_text.replace("--", "-{}-")


def list_reported_values(model_fit_table: pd.DataFrame, report_key: str) -> list[Any]:
    """Return the values that models report of their fits under a key."""
    fit_reports = [
        json.loads(fit_report_json) or {}
        for fit_report_json in model_fit_table["report"]
    ]
    return [
        fit_report[report_key]
        for fit_report in fit_reports
        if fit_report.get(report_key)
    ]


def collect_network_weights(model_fit_table: pd.DataFrame) -> np.ndarray:
    """Return the weight of the networks beside their ridge in every fit.

    NaN where a model has no ridge to start from.
    """
    weights_beside_ridge = []
    for fit_report_json in model_fit_table["report"]:
        fit_report = json.loads(fit_report_json) or {}
        has_ridge = (fit_report.get("settings") or {}).get("start") == "ridge"
        weights_beside_ridge.append(
            fit_report.get("network_weight") if has_ridge else None
        )
    return np.array(weights_beside_ridge, dtype=float)


def collect_known_network_weights(
    evaluation: Evaluation, model_name: str
) -> np.ndarray:
    """Return the weight of a model's network in every fit that adds one.

    Fits that failed have no weight and are left out.
    """
    weights_beside_ridge = collect_network_weights(
        evaluation.fits[evaluation.fits["model"] == model_name]
    )
    return weights_beside_ridge[np.isfinite(weights_beside_ridge)]


def has_unused_network(evaluation: Evaluation, model_name: str) -> bool:
    """Return whether a model adds a network that has no weight in any fold."""
    weights_beside_ridge = collect_known_network_weights(evaluation, model_name)
    return weights_beside_ridge.size > 0 and not weights_beside_ridge.any()


def unused_network_text(model_fit_table: pd.DataFrame) -> str:
    """Return in how many fits networks have no weight ("in 2 of 5 folds"), or ""."""
    n_unused_networks = int((collect_network_weights(model_fit_table) == 0).sum())
    return (
        f"in {n_unused_networks} of {count_text(len(model_fit_table), 'fold')}"
        if n_unused_networks
        else ""
    )


def select_score_summary_table(evaluation: Evaluation, score_name: str) -> pd.DataFrame:
    """Return the summary of one score, by model: role, mean, sd, n_folds, n_failed."""
    summary_table = evaluation.summary()
    return summary_table[summary_table["score"] == score_name].set_index("model")


def count_incomplete_folds(evaluation: Evaluation) -> int:
    """Return the number of test folds without a scan of some class."""
    class_count_series = evaluation.predictions.groupby(["repeat", "fold"])[
        "truth"
    ].nunique()
    return int((class_count_series < len(evaluation.cohort.classes)).sum())


def find_title_by_score(evaluation: Evaluation) -> dict[str, str]:
    """Return the scores that are defined here, with their titles in tables."""
    check_evaluation_given(evaluation)
    cohort = evaluation.cohort
    return title_by_score_name(len(cohort.classes), is_ordered=cohort.classes_ordered)


def score_explanations_text(
    evaluation: Evaluation, shown_titles: Collection[str] | None = None
) -> str:
    """Return what the scores are; by default all of them, or those of a table."""
    return " ".join(
        SCORES[score_name].explanation_text(evaluation.cohort.classes)
        for score_name, score_title in find_title_by_score(evaluation).items()
        if shown_titles is None or score_title in shown_titles
    )


def score_table(
    evaluation: Evaluation,
    scores: str | Sequence[str] | None = None,
    *,
    intervals: bool = False,
    tests: bool = False,
) -> pd.DataFrame:
    """Return the scores of every model as "mean ± s.d." over folds, or with intervals.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    scores : str or sequence of str, optional
        Of :func:`brainlsap.evaluation.fold_scores`, which returns all; by default
        those of :func:`brainlsap.evaluation.main_score_names`.
    intervals : bool
        Whether scores are those of all test scans together as "estimate [low, high]",
        with 95% bootstrap intervals over people (quote these), not means over folds.
    tests : bool
        Whether to add tests of the balanced accuracy of all test scans: one-sided p
        against chance (permutation of the labels), and the difference of the first
        model from each other with its 95% interval and Holm p, over people.

    Returns
    -------
    DataFrame
        One row per model, in order: model, then these scores under their written-out
        name, and the columns of tests; errors in stages only where the order of the
        classes is known. "n/a" where a score does not exist, "failed" where a fit did
        not train. A remark says so where a model predicted the same as another, as
        LSAP-R does where it chose one ridge in every fold, or one class for everybody.

    Raises
    ------
    ParameterError
        If a score is unknown.
    """
    scores = main_score_names() if scores is None else scores
    scores = [scores] if isinstance(scores, str) else [*scores]
    for score_name in scores:
        check_choice("scores", score_name, fold_scores())
    title_by_score, summary_table = (
        find_title_by_score(evaluation),
        evaluation.summary(),
    )
    defined_score_names = [
        score_name for score_name in scores if score_name in title_by_score
    ]
    if intervals:
        interval_text_table = _make_interval_text_table(evaluation)
        score_titles = [
            title_by_score[score_name] for score_name in defined_score_names
        ]
        joined_table = interval_text_table[score_titles].reset_index()
        if tests:
            joined_table = _add_test_columns_to_table(joined_table, evaluation)
        return _add_remark_columns_to_table(joined_table, evaluation)
    score_texts = [
        spread_text(*mean_and_sd)
        for mean_and_sd in summary_table[["mean", "sd"]].to_numpy()
    ]
    summary_table["text"] = np.where(
        summary_table["n_failed"] > 0, "failed", score_texts
    )
    score_text_table = summary_table.pivot(
        index="model", columns="score", values="text"
    )
    score_text_table = score_text_table.loc[
        list(evaluation.models), defined_score_names
    ].rename(columns=title_by_score)
    fold_table = score_text_table.reset_index()
    if tests:
        fold_table = _add_test_columns_to_table(fold_table, evaluation)
    return _add_remark_columns_to_table(fold_table, evaluation)


def _make_interval_text_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return every score of all test scans as "estimate [low, high]", by model."""
    title_by_score = find_title_by_score(evaluation)
    model_tables = [
        make_number_text_table(
            score_interval_table(evaluation, model_name), {"estimate": model_name}
        )
        for model_name in evaluation.models
    ]
    score_text_table = pd.concat(model_tables, axis=1).T[list(title_by_score)]
    return score_text_table.rename(columns=title_by_score).rename_axis("model")


def _make_difference_text_table(
    test_table: pd.DataFrame,
    title_by_column: Mapping[str, str],
    identical_pair_flags: Sequence[bool],
) -> pd.DataFrame:
    """Return comparisons of two models as text; no test if they predict the same.

    The titles are those of :func:`make_number_text_table`.
    """
    text_table = make_number_text_table(test_table, title_by_column)
    difference_title = title_by_column["difference"]
    identical_pair_mask = np.array(identical_pair_flags, dtype=bool)
    text_table[difference_title] = text_table[difference_title].mask(
        identical_pair_mask, SAME_PREDICTIONS
    )
    p_title = title_by_column["p_holm"]
    text_table[p_title] = text_table[p_title].mask(identical_pair_mask, NO_TEST)
    return text_table


def _make_model_comparison_table(
    evaluation: Evaluation,
    model_name: str,
    test_table: pd.DataFrame,
    model_column_title: str,
    difference_title: str,
) -> pd.DataFrame:
    """Return the comparisons of a model with others as text, a row per other model."""
    title_by_column = {
        "model": model_column_title,
        "difference": difference_title,
        "p_holm": _holm_column_title(test_table),
    }
    identical_pair_flags = [
        evaluation.have_same_predictions(model_name, other_model_name)
        for other_model_name in test_table["model"]
    ]
    return _make_difference_text_table(
        test_table, title_by_column, identical_pair_flags
    )


def _add_test_columns_to_table(
    model_table: pd.DataFrame, evaluation: Evaluation
) -> pd.DataFrame:
    """Add p against chance, and the difference of the first model from each other."""
    main_model_name = evaluation.models[0]
    chance_p_texts = chance_p_values(evaluation).map(p_text)
    model_table[CHANCE_TITLE] = model_table["model"].map(chance_p_texts)
    test_table = person_comparison_table(evaluation, main_model_name)
    if len(test_table):
        difference_text_table = _make_model_comparison_table(
            evaluation,
            main_model_name,
            test_table,
            "model",
            f"{main_model_name} minus this [95%]",
        )
        model_table = model_table.merge(difference_text_table, how="left", on="model")
    return model_table.astype(object).fillna("")


def _add_remark_columns_to_table(
    score_text_table: pd.DataFrame, evaluation: Evaluation
) -> pd.DataFrame:
    """Add columns where folds share people, or a model predicts as another does."""
    if "model" in score_text_table and (
        remark_by_model := find_remark_by_model(evaluation)
    ):
        score_text_table = score_text_table.assign(
            remark=score_text_table["model"].map(remark_by_model).fillna("")
        )
    if evaluation.settings["people_shared"]:
        score_text_table = score_text_table.assign(
            folds="folds share people: not a score for new people"
        )
    return score_text_table.rename_axis(columns=None)


@lru_cache(maxsize=32)  # hashed by identity; tables, figure and answers use it
def score_interval_table(evaluation: Evaluation, model_name: str) -> pd.DataFrame:
    """Return scores of all test scans with their 95% intervals, a row a score."""
    return comparison.bootstrap_score_table(evaluation, model_name, N_DRAWS).set_index(
        "score"
    )


def find_remark_by_model(evaluation: Evaluation) -> dict[str, str]:
    """Return remarks on models that predict one class, or the same as another model."""
    remark_by_model = {}
    for model_name, predicted_labels in evaluation.predictions.groupby("model")[
        "predicted"
    ]:
        if predicted_labels.nunique() == 1 and model_name != "majority class":
            remark_by_model[str(model_name)] = (
                f"predicts {predicted_labels.min()} for everybody"
            )
    for model_name, identical_model_name in evaluation.twin_of_model.items():
        remark_by_model[model_name] = f"same predictions as {identical_model_name}"
    return remark_by_model


def list_identical_model_groups(evaluation: Evaluation) -> list[list[str]]:
    """Return the groups of models with the same predictions, in the order of models."""
    twin_by_model = evaluation.twin_of_model
    names_by_first_model: dict[str, list[str]] = {}
    for model_name in evaluation.models:
        first_model_name = twin_by_model.get(model_name, model_name)
        names_by_first_model.setdefault(first_model_name, []).append(model_name)
    return [
        identical_names
        for identical_names in names_by_first_model.values()
        if len(identical_names) > 1
    ]


def count_comparisons(evaluation: Evaluation) -> int:
    """Return for how many comparisons p-values of the main model are corrected."""
    test_table = person_comparison_table(evaluation, evaluation.models[0])
    return int(test_table["n_comparisons"].max()) if len(test_table) else 0


def comparisons_text(evaluation: Evaluation) -> str:
    """Return the reason for fewer comparisons than other models, or ""."""
    n_identical_models = len(evaluation.twin_of_model)
    if not n_identical_models:
        return ""
    return (
        f"{count_text(count_comparisons(evaluation), 'comparison')}, because "
        f"{count_text(n_identical_models, 'model')} made the same predictions as "
        "another"
    )


def calibration_error_text(evaluation: Evaluation) -> str:
    """Return the calibration error of the main model with its 95% interval."""
    estimate_and_bounds = score_interval_table(evaluation, evaluation.models[0]).loc[
        "ece"
    ]
    return interval_text(*estimate_and_bounds[["estimate", "low", "high"]])


def frequent_prediction_text(evaluation: Evaluation, model_name: str) -> str:
    """Return which class is predicted too often, and which never; "" for none.

    The sentence begins with a space.
    """
    prediction_table = evaluation.predictions[
        evaluation.predictions["model"] == model_name
    ]
    predicted_shares = prediction_table["predicted"].value_counts(normalize=True)
    if predicted_shares.empty:
        return ""
    class_name = predicted_shares.index[0]
    predicted_share = predicted_shares.iloc[0]
    true_share = (prediction_table["truth"] == class_name).mean()
    absent_classes = [
        other_class
        for other_class in evaluation.cohort.classes
        if other_class not in predicted_shares.index
    ]
    absent_text = (
        f"never predicts {join_with_and(absent_classes)}" if absent_classes else ""
    )
    if predicted_share < 0.5 or predicted_share - true_share < MIN_EXCESS:
        return f" The model {absent_text}." if absent_text else ""
    share_text = (
        f" The model predicts {class_name} for {100 * predicted_share:.0f}% of scans "
        f"({100 * true_share:.0f}% are {class_name})"
    )
    return f"{share_text} and {absent_text}." if absent_text else f"{share_text}."


def interval_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return scores of all test scans with 95% bootstrap intervals over people.

    Returns
    -------
    DataFrame
        One row per model: model, then "estimate [low, high]" for the scores of
        all classes together, and the expected calibration error.
    """
    score_titles = [
        score_title
        for score_name, score_title in find_title_by_score(evaluation).items()
        if SCORES[score_name].is_shown_with_interval
    ]
    return _add_remark_columns_to_table(
        _make_interval_text_table(evaluation)[score_titles].reset_index(), evaluation
    )


MIN_EXCESS = 0.2
"""Smallest excess of predictions of a class over its share of scans to report."""
NOMINAL_COVERAGE = 0.9
"""Share of people of every class whose prediction set should hold their class."""
SIMPLE_MODELS = (
    "global means",
    "selected features",
    "logistic regression",
    "linear SVM",
    NESTED_RIDGES[0],
)
"""Simple models with which the first screen compares the main model.

The majority class is not among them, because its balanced accuracy is chance.
"""
MODEL_GROUPS = (
    "models of this study",
    "ridge regressions with the connectome",
    "simple models",
    "other baselines",
    "with covariates",
    "controls",
)
"""Groups of models in the order of the table of scores."""


def find_model_group_name(model_name: str, role: str) -> str:
    """Return in which group of :data:`MODEL_GROUPS` a model is shown."""
    if model_name in SIMPLE_MODELS:
        return "simple models"
    if model_name in NESTED_RIDGES:
        return "ridge regressions with the connectome"
    if role == "model" or model_name == "LSAP-R":
        return "models of this study"
    if model_name in ADDED_VALUE_MODELS:
        return "with covariates"
    return "controls" if role == "control" else "other baselines"


@lru_cache(maxsize=4)  # hashed by identity; the table and the answers use it
def person_comparison_table(
    evaluation: Evaluation, reference_name: str
) -> pd.DataFrame:
    """Return the comparisons of one model with all others, by person."""
    return comparison.compare_by_person(evaluation, reference_name, N_SWAPS)


@lru_cache(maxsize=4)  # hashed by identity; the table and the answer use it
def added_value_comparison_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the comparisons of covariates and brain together with each alone."""
    return comparison.added_value_table(evaluation, N_SWAPS)


def covariates_text(evaluation: Evaluation) -> str:
    """Return the covariates beside the brain as text; "" where there are none."""
    return join_with_and(evaluation.settings.get("covariates") or [])


def added_value_text_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the scores of covariates alone, brain alone and both, and differences.

    Returns
    -------
    DataFrame
        inputs, balanced accuracy of all test scans with its 95% interval; the two
        models of a difference, and the difference, of
        :func:`brainlsap.evaluation.added_value_table`. The covariates are subtracted
        from both together, and both together from the brain, as in
        the table of scores. Empty where these models were not run.
    """
    test_table = added_value_comparison_table(evaluation)
    covariates_phrase = covariates_text(evaluation)
    if test_table.empty or not covariates_phrase:
        return pd.DataFrame()
    covariates_model_name, brain_model_name, joint_model_name = ADDED_VALUE_MODELS
    title_by_model = {
        covariates_model_name: f"{covariates_phrase} alone",
        brain_model_name: f"brain alone ({brain_model_name})",
        joint_model_name: "both",
    }
    input_records = []
    for model_name, inputs_title in title_by_model.items():
        estimate_and_bounds = score_interval_table(evaluation, model_name).loc[
            "balanced_accuracy"
        ]
        score_text = interval_text(*estimate_and_bounds[["estimate", "low", "high"]])
        input_records.append(
            {"name": model_name, "inputs": inputs_title, "score": score_text}
        )
    brain_model_row_mask = test_table["model"] == brain_model_name
    signed_test_table = test_table.assign(
        difference=test_table["difference"].mask(
            brain_model_row_mask, -test_table["difference"]
        ),
        low=test_table["low"].mask(brain_model_row_mask, -test_table["high"]),
        high=test_table["high"].mask(brain_model_row_mask, -test_table["low"]),
    )
    difference_text_table = _make_model_comparison_table(
        evaluation, joint_model_name, signed_test_table, "name", "difference [95%]"
    )
    pair_text_by_model = {
        covariates_model_name: f"both minus {covariates_phrase} alone",
        brain_model_name: "brain alone minus both",
    }
    pair_text_series = difference_text_table["name"].map(pair_text_by_model)
    difference_text_table.insert(1, "difference of", pair_text_series)
    text_table = pd.DataFrame(input_records).merge(
        difference_text_table, how="left", on="name"
    )
    text_table = text_table.drop(columns="name").fillna("")
    text_table = text_table.rename(columns={"score": "balanced accuracy [95%]"})
    return _add_remark_columns_to_table(text_table, evaluation)


@lru_cache(maxsize=4)  # hashed by identity; tables and answers use it
def chance_p_values(evaluation: Evaluation) -> pd.Series:
    """Return p of the balanced accuracy of each model against chance, by model."""
    return comparison.chance_p_values(evaluation, evaluation.models, N_EXCHANGES)


def model_score_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return score, interval and difference from the main model, a row per model.

    Returns
    -------
    DataFrame
        group (of :data:`MODEL_GROUPS`) and model; balanced accuracy of all test scans
        with its 95% bootstrap interval over participants and one-sided p against
        chance, of :func:`brainlsap.evaluation.chance_p`; what the main model has more
        than this one, with its 95% interval and (Holm) p, of
        :func:`brainlsap.evaluation.compare_by_person`; the main scores as
        mean ± s.d. over folds. Rows are sorted by group.
    """
    model_role_series = evaluation.fits.groupby("model")["role"].first()
    score_texts = []
    for model_name in evaluation.models:
        estimate_and_bounds = score_interval_table(evaluation, model_name).loc[
            "balanced_accuracy"
        ]
        score_texts.append(
            interval_text(*estimate_and_bounds[["estimate", "low", "high"]])
        )
    model_table = pd.DataFrame(
        {
            "group": [
                find_model_group_name(model_name, model_role_series[model_name])
                for model_name in evaluation.models
            ],
            "model": list(evaluation.models),
            "balanced accuracy [95%]": score_texts,
        }
    )
    model_table = _add_test_columns_to_table(model_table, evaluation)
    fold_scores_table = score_table(evaluation)
    fold_columns = fold_scores_table.columns.drop(["remark"], errors="ignore")
    fold_scores_table = fold_scores_table[fold_columns]
    # An external evaluation has no folds.
    if "external" not in evaluation.settings:
        fold_scores_table = fold_scores_table.rename(
            columns={
                fold_column_title: f"{fold_column_title} over folds"
                for fold_column_title in fold_columns
                if fold_column_title not in ("model", "folds")
            }
        )
    model_table = model_table.merge(fold_scores_table, on="model")
    group_indices = model_table["group"].map(MODEL_GROUPS.index)
    model_table = model_table.iloc[np.argsort(group_indices, kind="stable")]
    covariates_phrase = covariates_text(evaluation)
    if covariates_phrase:
        covariates_title = f"covariates ({covariates_phrase} alone)"
        model_table["model"] = model_table["model"].replace(
            ADDED_VALUE_MODELS[0], covariates_title
        )
    return model_table.astype(object).fillna("").reset_index(drop=True)


def comparison_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the comparison of every other model with the first, in balanced accuracy.

    Returns
    -------
    DataFrame
        One row per other model: its name, its score minus that of the first with the
        95% interval, Holm p (of how many comparisons: models of the very same
        predictions are one), and whether it is better than the first ("unclear": p is
        0.05 or more, also where the interval, which is not corrected, leaves out 0);
        empty where there is one model. Tests are those of
        :func:`brainlsap.evaluation.compare_models`.
    """
    main_model_name = evaluation.models[0]
    test_table = comparison.compare_models(evaluation)
    title_by_column = {
        "model": "model",
        "difference": f"model minus {main_model_name} [95%]",
    }
    title_by_column["p_holm"] = _holm_column_title(test_table)
    title_by_column["better"] = f"better than {main_model_name}"
    return _add_remark_columns_to_table(
        make_number_text_table(test_table, title_by_column), evaluation
    )


def _holm_column_title(test_table: pd.DataFrame) -> str:
    """Return the title of a column of p, with how many comparisons it corrects for."""
    n_comparisons = test_table["n_comparisons"].max()
    return f"Holm p ({n_comparisons} comparisons)" if n_comparisons > 1 else "p"


def nested_model_text_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the gain of each step from no network to averaging by region."""
    title_by_column = {"below": "from", "above": "to", "difference": "difference [95%]"}
    step_table = _weaken_verdicts_in_step_table(
        evaluation, comparison.nested_model_table(evaluation, N_SWAPS)
    )
    title_by_column |= {
        "p_holm": "Holm p" if len(step_table) > 1 else "p",
        "adds": "gain",
    }
    identical_pair_flags = [
        evaluation.have_same_predictions(simpler_model_name, richer_model_name)
        for simpler_model_name, richer_model_name in zip(
            step_table["below"], step_table["above"], strict=True
        )
    ]
    step_text_table = _make_difference_text_table(
        step_table, title_by_column, identical_pair_flags
    )
    return _add_remark_columns_to_table(step_text_table, evaluation)


def _weaken_verdicts_in_step_table(
    evaluation: Evaluation, step_table: pd.DataFrame
) -> pd.DataFrame:
    """Return steps of nested ridges with the verdict of the table of scores, if weaker.

    A step is a comparison of that table if one of its models made the predictions of
    the main model. Both tables then have the larger of two corrected p-values.
    """
    main_model_name = evaluation.models[0]
    test_table = person_comparison_table(evaluation, main_model_name).set_index("model")
    weaker_records = []
    for step_record in step_table.to_dict("records"):
        for twin_model_name, other_model_name in (
            (step_record["above"], step_record["below"]),
            (step_record["below"], step_record["above"]),
        ):
            has_main_predictions = (
                twin_model_name == main_model_name
                or evaluation.have_same_predictions(main_model_name, twin_model_name)
            )
            if has_main_predictions and other_model_name in test_table.index:
                step_record["p_holm"] = np.fmax(
                    step_record["p_holm"], test_table.loc[other_model_name, "p_holm"]
                )
        if (
            step_record["p_holm"] >= ranks.ALPHA
            or step_record["low"] <= 0 <= step_record["high"]
        ):
            step_record["adds"] = "unclear"
        weaker_records.append(step_record)
    return pd.DataFrame(weaker_records, columns=step_table.columns)


CURVE_ANSWERS = {
    "yes": "More participants would probably help",
    "no": "More participants would hardly help",
    "unclear": "It is unclear whether more participants would help",
}
"""Answers to whether more people would help, by the answer of a learning curve."""


def learning_curve_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the balanced accuracy by the number of training people, as text."""
    curve_table = evaluation.learning_curve
    if curve_table is None:
        return pd.DataFrame()
    curve_table = curve_table.assign(
        share=curve_table["share"].map("{:.0%}".format),
        n_train_people=curve_table["n_train_people"].map("{:.0f}".format),
    )
    title_by_column = {
        "model": "model",
        "share": "share of training",
        "n_train_people": "training participants",
        "estimate": "balanced accuracy [95%]",
        "slope": "gain by a doubling [95%]",
        "answer": "would more help?",
    }
    text_table = make_number_text_table(curve_table, title_by_column)
    last_model_row_mask = ~curve_table["model"].duplicated(keep="last")
    slope_titles = [title_by_column["slope"], title_by_column["answer"]]
    text_table[slope_titles] = text_table[slope_titles].where(last_model_row_mask, "")
    return text_table


def learning_curve_sentence(evaluation: Evaluation) -> str:
    """Return whether more people would help the first model, in one sentence."""
    curve_table = evaluation.learning_curve
    if curve_table is None or curve_table.empty:
        return ""
    curve_row = curve_table.iloc[0]
    slope_text = interval_text(
        curve_row["slope"], curve_row["slope_low"], curve_row["slope_high"]
    )
    return (
        f"{CURVE_ANSWERS[curve_row['answer']]}. From half to all training "
        f"participants, which is a doubling, the balanced accuracy of "
        f"{curve_row['model']} changes by {slope_text} (95% interval over "
        "test participants and random training subsets)."
    )


CONNECTOME_TITLES = {
    "original": "connectome of the study",
    "relabelled": "relabelled regions",
    "rewired": "rewired, same strengths",
    "exchanged": "exchanged between participants",
    "group mean": "group mean for everybody",
}
"""Titles of connectomes whose gains are compared."""


def connectome_gain_table(gain: ConnectomeGain) -> pd.DataFrame:
    """Return the information that each connectome adds to own values, as text.

    Parameters
    ----------
    gain : ConnectomeGain
        Of :func:`brainlsap.evaluation.connectome_gain`.

    Returns
    -------
    DataFrame
        connectome, draws, gain in log evidence (nats), gain of the study's connectome
        minus this gain, and the part of the left-out squared error that the connectome
        removes, in percent; each with its 90% interval.
    """
    gain_table = gain.table.copy()
    error_columns = [
        column_name for column_name in gain_table if column_name.startswith("error_")
    ]
    gain_table[error_columns] *= 100
    gain_table["connectome"] = gain_table["connectome"].map(CONNECTOME_TITLES)
    gain_table = gain_table.rename(columns={"n_draws": "draws"})
    text_table = make_number_text_table(
        gain_table,
        {
            "connectome": "connectome",
            "draws": "draws",
            "evidence_gain": "gain in log evidence (nats) [90%]",
            "evidence_lead": "study minus this [90%]",
            "error_gain": "left-out squared error removed (%) [90%]",
        },
        n_digits=1,
    )
    return text_table.replace("n/a", "")


def subgroup_text_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the score of the first model in groups of people, with the largest gap.

    Returns
    -------
    DataFrame
        group (the column, and the classes that its scores are over), participants,
        number of people who are scored, balanced accuracy with its 95% interval, of
        :func:`brainlsap.evaluation.subgroup_table`. The last row of a column is its
        largest difference, of :func:`brainlsap.evaluation.subgroup_gap_table`; before
        it stands the score by chance. Groups of
        fewer than ten people share a row. Empty without columns of groups.
    """
    gap_table = subgroup_gap_table(evaluation).set_index("column")
    all_classes_text = ", ".join(evaluation.cohort.classes)
    table_records: list[tuple[str, str, str, str]] = []
    for column_name, group_table in subgroup_table(evaluation).groupby(
        "column", sort=False
    ):
        classes_text = str(group_table["classes"].iloc[0])
        column_title = str(column_name)
        if classes_text not in ("", all_classes_text):
            column_title += f" (over {classes_text})"
        small_group_mask = group_table["note"] == TOO_FEW_PEOPLE
        for group_record in group_table[~small_group_mask].to_dict("records"):
            bound_pair = group_record["low"], group_record["high"]
            score_text = interval_text(group_record["balanced_accuracy"], *bound_pair)
            if group_record["note"]:
                score_text = f"not scored: {group_record['note']}"
            table_records.append(
                (
                    column_title,
                    group_record["group"],
                    str(group_record["people"]),
                    score_text,
                )
            )
        if small_group_mask.any():
            small_groups_text = join_with_commas(
                group_table.loc[small_group_mask, "group"]
            )
            # A count of very few people might tell who they are.
            unscored_text = f"not scored: {TOO_FEW_PEOPLE}"
            table_records.append(
                (
                    column_title,
                    small_groups_text,
                    f"< {MIN_PEOPLE_OF_GROUP}",
                    unscored_text,
                )
            )
        if column_name in gap_table.index:
            chance_text = spread_text(group_table["chance"].iloc[0])
            table_records.append((column_title, "by chance", "", chance_text))
            gap_row = gap_table.loc[column_name]
            gap_title = (
                f"largest difference: {gap_row['higher']} minus {gap_row['lower']}"
            )
            gap_text = interval_text(
                gap_row["difference"], gap_row["low"], gap_row["high"]
            )
            table_records.append((column_title, gap_title, "", gap_text))
    column_names = ["group", "participants", "number scored", "balanced accuracy [95%]"]
    return _add_remark_columns_to_table(
        pd.DataFrame(table_records, columns=column_names), evaluation
    )


def scored_subgroups_sentences(evaluation: Evaluation) -> str:
    """Return in which groups of people the first model was scored, and why not in all.

    Empty if no group has a score.
    """
    column_table = scored_columns_table(evaluation)
    scored_columns = [
        column_record["column"]
        if column_record["n_scored"] == column_record["n_groups"]
        else f"{column_record['column']} ({column_record['n_scored']} of "
        f"{column_record['n_groups']} groups)"
        for column_record in column_table.query("n_scored > 0").to_dict("records")
    ]
    if not scored_columns:
        return ""
    unscored_columns = [
        f"{column_record['column']} ({column_record['reason']})"
        for column_record in column_table.query("n_scored == 0").to_dict("records")
    ]
    sentence = (
        f"The score of {evaluation.models[0]} was computed in groups of participants "
        f"by {join_with_and(scored_columns)}."
    )
    if unscored_columns:
        sentence += f" It was not computed by {join_with_and(unscored_columns)}."
    return sentence


@lru_cache(maxsize=4)  # hashed by identity; the table and a caution use it
def class_rate_number_table(evaluation: Evaluation, model_name: str) -> pd.DataFrame:
    """Return the rates of every class with the draws of bootstrap of reports."""
    return comparison.class_table(evaluation, model_name, N_DRAWS)


def class_rate_table(evaluation: Evaluation, model: str | None = None) -> pd.DataFrame:
    """Return sensitivity, specificity, predictive values and AUC of every class.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    model : str, optional
        Name of the model; by default the first.

    Returns
    -------
    DataFrame
        One row per class: class, people, scans; sensitivity, specificity, PPV and NPV
        (positive and negative predictive value) and AUC (against the rest, mean over
        folds) as "estimate [low, high]", 95% intervals over people.
    """
    rate_table = class_rate_number_table(evaluation, model or evaluation.models[0])
    title_by_column = {
        rate_name: CLASS_RATE_TITLES.get(rate_name, rate_name)
        for rate_name in rate_table
        if not rate_name.endswith(("_low", "_high"))
    }
    return _add_remark_columns_to_table(
        make_number_text_table(rate_table, title_by_column, 2), evaluation
    )


def region_labels(
    region_names: Sequence[str], atlas: Any, label_kind: str = "brief"
) -> list[str]:
    """Return names of regions: "short", "full", or "brief", to the first comma.

    That is where it tells regions of the atlas apart. Names are as they are without an
    atlas, else of what load_atlas takes.
    """
    if atlas is None:
        return list(region_names)
    atlas = load_atlas(atlas)
    atlas_names = atlas.short_names if label_kind == "short" else atlas.full_names
    full_labels = [
        atlas_names[region_index]
        for region_index in _match_region_indices(region_names, atlas)
    ]
    if label_kind != "brief":
        return full_labels
    brief_label_by_name = {
        region_name: region_name.partition(", ")[0] for region_name in atlas_names
    }
    n_uses_by_label = Counter(brief_label_by_name.values())
    return [
        brief_label_by_name[region_label]
        if n_uses_by_label[brief_label_by_name[region_label]] == 1
        else region_label
        for region_label in full_labels
    ]


def _match_region_indices(region_names: Sequence[str], atlas: Atlas) -> list[int]:
    """Return the row of every region; one of several features has several rows."""
    unique_names = list(dict.fromkeys(region_names))
    atlas_indices = atlas.match(unique_names).tolist()
    index_by_name = dict(zip(unique_names, atlas_indices, strict=True))
    return [index_by_name[region_name] for region_name in region_names]


def centroid_texts(region_names: Sequence[str], atlas: Atlas) -> list[str]:
    """Return the centroid of each region in whole mm; "" where it is unknown."""
    centroids = atlas.coordinates[_match_region_indices(region_names, atlas)]
    return [
        ", ".join(f"{coordinate_mm:z.0f}" for coordinate_mm in centroid)
        if np.isfinite(centroid).all()
        else ""
        for centroid in centroids
    ]


def select_ranked_region_table(ranking: pd.DataFrame, n_regions: int) -> pd.DataFrame:
    """Return measured regions, smallest scale first; few ties with the last stay."""
    check_at_least("n_regions", n_regions, 1)
    ranked_table = ranking.dropna(subset="rank").sort_values("rank", kind="stable")
    if ranked_table.empty:
        raise ParameterError("the ranking contains no measured region.")
    top_table = ranked_table[ranked_table["rank"] <= n_regions]
    return (
        top_table if len(top_table) <= 2 * n_regions else ranked_table.head(n_regions)
    )


def region_table(
    ranking: pd.DataFrame, atlas: AtlasSource | None = None, n_regions: int = 10
) -> pd.DataFrame:
    """Return the regions of smallest relative scale as a table for a paper.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    atlas : str, Path, Atlas or sequence of str, optional
        Holds names and coordinates of the regions.
    n_regions : int
        Number of regions; regions tied with the last are shown too.

    Returns
    -------
    DataFrame
        rank, region, short name where it is another, coordinates (MNI152, mm); relative
        scale (to the median of the fold; mean over folds) and ranks with their range
        over all fits (of 20 or more the middle 95%); absolute scale (median over
        folds), and that of one fit to all scans with its 95% posterior interval, where
        the ranking has it;
        family-wise p of effect and contrast, as of
        :func:`brainlsap.evaluation.compare_regions`, where at least 99 permutations
        were made; remark (planted, tied, not learned: a scale that kept within 5% of
        its start in most folds).

    Raises
    ------
    ParameterError
        If `n_regions` is less than 1, or no region has a rank.
    """
    top_table = select_ranked_region_table(ranking, n_regions).reset_index(drop=True)
    ranked_region_names = list(top_table["region"])
    paper_table = pd.DataFrame({"rank": top_table["rank"].astype(int)})
    paper_table["region"] = region_names = region_labels(
        ranked_region_names, atlas, "full"
    )
    if atlas is not None:
        atlas = load_atlas(atlas)
        short_region_names = region_labels(ranked_region_names, atlas, "short")
        paper_table = (
            paper_table
            if short_region_names == region_names
            else paper_table.assign(**{"short name": short_region_names})
        )
        paper_table["x, y, z"] = centroid_texts(ranked_region_names, atlas)
    paper_table = paper_table.join(
        make_number_text_table(top_table, {"relative_scale": "relative scale"})
    )
    rank_bound_table = top_table[["rank_low", "rank_high"]].astype(int).astype(str)
    rank_range_text_series = rank_bound_table.agg("\N{EN DASH}".join, axis=1)
    paper_table["ranks of fits"] = rank_range_text_series.mask(
        rank_bound_table.nunique(axis=1) == 1, rank_bound_table["rank_low"]
    )
    paper_table["absolute scale"] = top_table["scale"].map(spread_text)
    if "fit_low" in top_table:
        paper_table["absolute scale, one fit [95%]"] = make_number_text_table(
            top_table, {"fit_scale": "scale"}, 2
        )
    if "p_effect" in top_table:
        tested_region_mask = top_table["n_permutations"] >= ranks.FEWEST_PERMUTATIONS
        requirement_text = f", needs {ranks.FEWEST_PERMUTATIONS} permutations"
        title_ending = "" if tested_region_mask.all() else requirement_text
        for statistic_name in ("effect", "contrast"):
            p_values = top_table[f"p_{statistic_name}"].where(tested_region_mask)
            paper_table[f"p ({statistic_name}{title_ending})"] = p_values.map(p_text)
    remark_table = pd.DataFrame(
        {"planted": top_table.get("planted", False)}, top_table.index
    )
    remark_table["tied"] = top_table["rank"].duplicated(keep=False)
    remark_table["not learned"] = top_table["moved"] < 0.5
    remark_texts = [
        ", ".join(remark_table.columns[applicable_remark_mask])
        for applicable_remark_mask in remark_table.to_numpy(bool)
    ]
    return paper_table.assign(remark=remark_texts) if any(remark_texts) else paper_table


def class_difference_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return features by class, and the difference of every class from the first.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds. Classes of fewer than three people are left out.

    Returns
    -------
    DataFrame
        feature, region, class, people; mean with its 95% t interval, low and high; and
        difference, from the first class in pooled standard deviations (Cohen's d),
        with its 95% interval, difference_low and difference_high (NaN for the first
        class). A person's value is the mean over their scans in the class. Features
        are as read, or, if covariates were regressed out, adjusted to their mean over
        scans by slopes (curves of quantities) within classes.
    """
    class_mean_sd_table = evaluation.cohort.class_features
    return standardized_difference_table(
        class_mean_sd_table, evaluation.cohort.classes[0]
    )


def regressed_covariates_text(evaluation: Evaluation) -> str:
    """Return the covariates that were removed from the features inside the folds."""
    covariate_names = _list_adjusted_covariates(evaluation)
    return join_with_and(covariate_names) if covariate_names else ""


def find_adjusted_covariate_kinds(evaluation: Evaluation) -> set[str]:
    """Return the kinds of the covariates that were removed, such as "age"."""
    return {
        find_covariate_kind(covariate_name)
        for covariate_name in _list_adjusted_covariates(evaluation)
    }


def _list_adjusted_covariates(evaluation: Evaluation) -> list[str]:
    """Return the covariates that were removed from the features, each once."""
    step_settings = evaluation.settings["steps"]
    covariate_names = [step_settings["harmonize"], *step_settings["regress_out"]]
    return [*dict.fromkeys(filter(None, covariate_names))]


def contrast_nulls_text(cohort: CohortSummary) -> str:
    """Return the null hypotheses of the p-value of a contrast."""
    null_hypothesis_texts = [
        "The p-value of a contrast is the largest of the p-values of several null "
        "hypotheses: no region differs; all regions differ by the same number of "
        "standard deviations"
    ]
    size_independent_features = [
        feature_name
        for feature_name in cohort.feature_names
        if get_measure_record(feature_name).is_independent_of_size
    ]
    if size_independent_features:
        features_text = join_with_and(
            FEATURE_TITLES.get(feature_name, feature_name)
            for feature_name in size_independent_features
        )
        null_hypothesis_texts.append(
            f"all regions differ by the same amount of {features_text}"
        )
    return (
        "; ".join(null_hypothesis_texts)
        + ". The p-value of a contrast can be smaller than the "
        "p-value of the effect of the same region, because the two tests compare "
        "different statistics: the largest contrast and the largest effect of each "
        "permutation."
    )


def class_mean_basis_text(evaluation: Evaluation) -> str:
    """Return a description of the values from which class means are computed."""
    class_mean_sd_table: Any = evaluation.cohort.class_features
    if "mean_factor" in class_mean_sd_table:
        adjusted_covariates_text = regressed_covariates_text(evaluation)
        return f"adjusted for {adjusted_covariates_text} by effects within classes"
    return "without any adjustment"


def direction_table(
    evaluation: Evaluation,
    ranking: pd.DataFrame,
    atlas: AtlasSource | None = None,
    n_regions: int = 10,
) -> pd.DataFrame:
    """Return the differences of the first regions' features between classes.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    ranking, atlas, n_regions
        As for :func:`region_table`.

    Returns
    -------
    DataFrame
        Region, feature, "mean [95%]" of every class, and for every class but the first
        its difference from the first in pooled standard deviations [95%], computed by
        :func:`class_difference_table`.
    """
    ranked_region_names = list(select_ranked_region_table(ranking, n_regions)["region"])
    feature_names, class_names = (
        evaluation.cohort.feature_names,
        evaluation.cohort.classes,
    )
    row_multiindex = pd.MultiIndex.from_product([ranked_region_names, feature_names])
    difference_table = class_difference_table(evaluation).set_index(
        ["region", "feature"]
    )
    region_names = region_labels(ranked_region_names, atlas, "full")
    feature_titles = [
        feature_title(evaluation.cohort, f, region_name)
        for region_name, f in row_multiindex
    ]
    region_names = np.repeat(region_names, len(feature_names)).tolist()
    paper_table = pd.DataFrame({"region": region_names, "feature": feature_titles})
    for class_name in class_names:
        class_table = (
            difference_table[difference_table["class"] == class_name]
            .reindex(row_multiindex)
            .reset_index(drop=True)
        )
        paper_table = paper_table.join(
            make_number_text_table(class_table, {"mean": class_name})
        )
        if class_name != class_names[0]:
            difference_title = f"{class_name} \N{MINUS SIGN} {class_names[0]} (s.d.)"
            paper_table = paper_table.join(
                make_number_text_table(class_table, {"difference": difference_title}, 2)
            )
    # A measure may be missing in a region, for example thickness in the subcortex.
    measured_row_mask = (paper_table[list(class_names)] != "n/a").any(axis=1)
    return paper_table[measured_row_mask | (not measured_row_mask.any())].reset_index(
        drop=True
    )


def common_region_table(
    evaluation: Evaluation, atlas: AtlasSource | None = None, n_smallest: int = 20
) -> pd.DataFrame:
    """Return the regions of smallest scale that several models share.

    This is the table in the supplement of Sim et al. 2024, with the numbers of
    :func:`brainlsap.evaluation.common_regions`.

    Parameters
    ----------
    evaluation : Evaluation
        At least two models with scales.
    atlas : str, Path, Atlas or sequence of str, optional
        Source of the region names.
    n_smallest : int
        Number of smallest scales per model.

    Returns
    -------
    DataFrame
        Number of models, region, and one column for each model with its scale, or "-"
        if the region is not among its smallest. The first column is the reference:
        "Exact", or the first model if "Exact" was not run. The last row is the RMSE of
        every model to the reference over all measured regions.

    Raises
    ------
    ParameterError
        If fewer than two models have scales.
    """
    shared_region_table, model_rmse_series = ranks.common_regions(
        evaluation, n_smallest
    )
    model_names = sorted(
        model_rmse_series.index, key=lambda model_name: model_name != "Exact"
    )
    scale_text_table = (
        shared_region_table[model_names].map(spread_text).replace("n/a", "-")
    )
    scale_text_table.insert(0, "models", shared_region_table["n_models"].astype(str))
    scale_text_table.insert(
        1, "region", region_labels(list(shared_region_table["region"]), atlas, "short")
    )
    rmse_texts = ["-", *model_rmse_series[model_names[1:]].map(spread_text)]
    scale_text_table.loc[len(scale_text_table)] = ["", "RMSE", *rmse_texts]
    return scale_text_table


def agreement_text_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the agreement of folds, and of models, on the order of regions."""
    agreement_table = ranks.agreement_table(evaluation)
    model_pairs = zip(agreement_table["first"], agreement_table["second"], strict=True)
    pair_texts = [
        f"folds of {first_model_name}"
        if first_model_name == second_model_name
        else f"{first_model_name} and {second_model_name}"
        for first_model_name, second_model_name in model_pairs
    ]
    title_by_column = {
        "what": "what",
        "kendall_w": "Kendall's W",
        "chance_w": "W by chance",
    }
    title_by_column |= {
        "spearman": "Spearman",
        "jaccard": "overlap of ten smallest (Jaccard)",
    }
    return make_number_text_table(
        agreement_table.assign(what=pair_texts), title_by_column, 2
    )


def confound_text_table(ranking: pd.DataFrame) -> pd.DataFrame:
    """Return the correlations of scales with the properties of regions in a ranking.

    The columns degree, strength and variance_<feature>, as of
    :func:`brainlsap.evaluation.region_properties`; empty where there are none.
    """
    property_table = ranking.filter(regex="^(region|degree|strength|variance_.*)$")
    correlation_table = ranks.confound_table(ranking, property_table)
    title_by_property = {
        f"variance_{k}": f"variance of {feature_label}"
        for k, feature_label in FEATURE_TITLES.items()
    }
    correlation_table["property"] = (
        correlation_table["property"]
        .replace(title_by_property)
        .str.replace("_", " of ")
    )
    correlation_table["remark"] = np.where(
        correlation_table["flagged"], "scales depend on it", ""
    )
    title_by_column = {"property": "property", "n_regions": "regions"}
    title_by_column |= {"spearman": "Spearman with relative scale", "p_holm": "Holm p"}
    title_by_column |= (
        {"remark": "remark"} if correlation_table["flagged"].any() else {}
    )
    return make_number_text_table(correlation_table, title_by_column, 2)


def flow_text_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the fates of the people and scans listed; no rows if all are analysed.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    DataFrame
        fate, participants and scans.
    """
    flow_table = evaluation.cohort.flow().drop(columns="fate")
    has_excluded_scans = len(flow_table) > 2
    return (
        flow_table.rename(columns={"title": "fate"})
        if has_excluded_scans
        else flow_table[:0]
    )


def fit_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return fits, failures, epochs, weights, kernel's error and scales by model."""
    scale_table = evaluation.scales.query("start == 'mean' and share == 1")
    fit_records = []
    for model_name, model_fit_table in evaluation.fits.groupby("model", sort=False):
        scale_values = scale_table.query("model == @model_name")["scale"]
        mean_epochs = model_fit_table["epochs"].mean() + 1  # counted from 0
        kernel_error = max(
            list_reported_values(model_fit_table, "error_bound"), default=0.0
        )
        fit_record = {
            "model": model_name,
            "role": model_fit_table["role"].iloc[0],
            "fits": len(model_fit_table),
        }
        fit_record["failed"] = int((model_fit_table["failed"] != "").sum())
        fit_record["epoch kept"] = (
            f"{mean_epochs:.0f}" if np.isfinite(mean_epochs) else ""
        )
        weights_beside_ridge = collect_network_weights(model_fit_table)
        fit_record["weight of the network"] = ""
        if np.isfinite(weights_beside_ridge).any():
            lowest_weight, highest_weight = (
                np.nanmin(weights_beside_ridge),
                np.nanmax(weights_beside_ridge),
            )
            fit_record["weight of the network"] = (
                f"{lowest_weight:.1f} to {highest_weight:.1f}"
            )
        fit_record["error of the kernel"] = (
            f"{kernel_error:.1e}" if kernel_error else ""
        )
        scale_range_text = f"{scale_values.min():.2f} to {scale_values.max():.2f}"
        fit_records.append(
            fit_record | {"scales": scale_range_text if len(scale_values) else ""}
        )
    return pd.DataFrame(fit_records)


def audit_table(
    evaluation: Evaluation, pseudonym_of_scan: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the findings of the leakage audit, gravest first.

    Parameters
    ----------
    evaluation : Evaluation
        With or without an audit.
    pseudonym_of_scan : mapping of str to str, optional
        Maps scans to the codes that replace them in a table that may be shared.

    Returns
    -------
    DataFrame
        The columns severity, check, finding, what to do and scans.
    """
    audit_columns = ["severity", "check", "finding", "what_to_do", "scans"]
    recorded_finding_table = (
        pd.DataFrame() if evaluation.audit is None else evaluation.audit
    )
    finding_table = recorded_finding_table.reindex(columns=audit_columns, fill_value="")
    finding_table["check"] = finding_table["check"].map(check_title)
    finding_table["scans"] = _make_pseudonym_series(
        finding_table["scans"], pseudonym_of_scan, "[name withheld]"
    )
    empty_columns = ["scans"] if (finding_table["scans"] == "").all() else []
    return finding_table.drop(columns=empty_columns).rename(
        columns={"what_to_do": "what to do"}
    )


def unusual_scans_table(
    evaluation: Evaluation, pseudonym_of_scan: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the scans that quality control flagged, under their codes and sorted so.

    Parameters
    ----------
    evaluation : Evaluation
        Its cohort's table has the column quality, as in results of `run_study`.
    pseudonym_of_scan : mapping of str to str, optional
        Maps scans to their codes; by default the table has names.

    Returns
    -------
    DataFrame
        The columns scan and what is unusual; codes also replace scans in the latter.
    """
    flagged_scan_table = evaluation.cohort.table.query("quality != ''")[
        ["scan", "quality"]
    ]
    unusual_table = flagged_scan_table.apply(
        _make_pseudonym_series, pseudonym_by_scan=pseudonym_of_scan
    ).sort_values("scan", ignore_index=True)
    return unusual_table.rename(columns={"quality": "what is unusual"})


def _make_pseudonym_series(
    scan_text_series: pd.Series,
    pseudonym_by_scan: Any,
    placeholder_text: str | None = None,
) -> pd.Series:
    """Replace scans by their codes, and any other word by `placeholder_text`."""
    if pseudonym_by_scan is None or scan_text_series.empty:
        return scan_text_series
    return scan_text_series.str.replace(
        r"[^\s,;()]+",
        lambda word: pseudonym_by_scan.get(word[0], placeholder_text or word[0]),
        regex=True,
    )


def is_external(evaluation: Evaluation) -> bool:
    """Return whether a stored model was tested on other people."""
    return "external" in evaluation.settings


def is_simulated(evaluation: Evaluation) -> bool:
    """Return whether the people, or those of the stored model, were simulated."""
    external_facts = evaluation.settings.get("external", {})
    is_simulated_model = external_facts.get("card", {}).get("is_simulated", False)
    return evaluation.cohort.truth is not None or is_simulated_model


def make_external_table_by_name(evaluation: Evaluation) -> dict[str, pd.DataFrame]:
    """Return the tables that only an external evaluation has, as text by name."""
    if not is_external(evaluation):
        return {}
    external_facts = evaluation.settings["external"]
    case_mix_table = pd.DataFrame(external_facts["case_mix"])
    calibration_table = make_number_table(external_facts["calibration"])
    coverage_table = make_number_table(external_facts["coverage"])
    table_by_name = {
        "case_mix": case_mix_table.rename(
            columns={
                "difference": "difference (s.d. of training)",
                "points": "difference (percentage points)",
            }
        )
    }
    if len(calibration_table):
        title_by_column = {
            "class": "class",
            "people": "people",
            "frequency": "frequency",
            "mean_probability": "mean probability",
            "slope": "slope [95%]",
            "p_slope": "p (slope 1)",
            "intercept": "intercept [95%]",
            "p_intercept": "p (intercept 0)",
        }
        table_by_name["calibration"] = make_number_text_table(
            calibration_table, title_by_column
        )
    if len(coverage_table):
        coverage_table = coverage_table.rename(
            columns={"low": "coverage_low", "high": "coverage_high"}
        )
        title_by_column = {
            "class": "class",
            "people": "people",
            "coverage": "coverage [95%]",
            "mean_size": "classes in a set",
        }
        table_by_name["coverage"] = make_number_text_table(
            coverage_table, title_by_column
        )
    return table_by_name


def make_number_table(table_records: list[dict[str, object]]) -> pd.DataFrame:
    """Return stored rows of classes; a number that is null in the file is NaN."""
    number_table = pd.DataFrame(table_records)
    number_columns = number_table.columns.drop(["class", "people"], errors="ignore")
    return number_table.astype(dict.fromkeys(number_columns, float))
