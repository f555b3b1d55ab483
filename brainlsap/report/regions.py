"""Statements of a report about regions: the named regions, three answers, and tables.

Three questions are asked of every region, as in
:mod:`brainlsap.evaluation.region_tests`: does it differ between classes, does its
difference stand out from the regions it is connected to, and how does a model read it?
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import load_atlas
from brainlsap.atlas.atlas import AtlasSource
from brainlsap.evaluation import Evaluation, rank_regions
from brainlsap.evaluation import ranking as ranks
from brainlsap.evaluation.comparison import NORMAL_QUANTILE
from brainlsap.evaluation.leakage import CheckKey
from brainlsap.evaluation.models import NESTED_RIDGES
from brainlsap.evaluation.ranking import list_models_with_scales
from brainlsap.evaluation.region_tests import (
    compute_smallest_p,
    count_region_labellings,
)
from brainlsap.evaluation.results import MISSING, check_evaluation_given
from brainlsap.exceptions import ParameterError
from brainlsap.report.methods import (
    count_fits_choosing_ridge,
    count_scaleless_folds,
)
from brainlsap.report.tables import (
    CURVE_NOTE,
    centroid_texts,
    contrast_nulls_text,
    feature_title,
    has_unused_network,
    interval_text,
    region_labels,
    spread_text,
)
from brainlsap.text import count_text, join_with_and, p_phrase, p_text

MAX_NAMED = 12
"""Largest number of regions of which a sentence names every one."""
N_NAMED = 6
"""Number of regions that a sentence names if there are more."""

MIN_SCALE_RANGE = 0.05
"""Smallest difference of relative scales at which regions are named and drawn."""

N_EXTRA = 5
"""Largest number of rows that are added for further regions that stand out."""


MIN_REPLICABILITY = 0.5
"""Smallest mean correlation between halves at which ranks of regions are reported."""
MIN_PLANTED_AUC = 0.6
"""Smallest AUC at which planted regions are called identified."""

NO_CLAIM = "No conclusion about regions is possible."
_ERRORS_OF_DATA = (CheckKey.DUPLICATE_SCANS, CheckKey.LABEL_IN_FEATURES)
"""Errors of the audit that make region tests wrong as well as scores."""


class RegionAnswer(NamedTuple):
    """One question about regions: its answer, what may be claimed, and what not.

    The claim is "" where nothing may be claimed. A warning is printed in bold before
    the answer.
    """

    question: str
    answer: str
    claim: str
    caution: str
    warning: str = ""


def has_region_tests(evaluation: Evaluation) -> bool:
    """Return whether regions were compared with enough permutations for p-values."""
    region_test_table = evaluation.region_tests
    return (
        region_test_table is not None
        and region_test_table["n_permutations"].iloc[0] >= ranks.FEWEST_PERMUTATIONS
    )


def are_region_tests_valid(evaluation: Evaluation) -> bool:
    """Return whether the audit found no error that makes tests of regions wrong.

    A scan that occurs twice, and a feature that contains the label, make them wrong.
    Errors of folds do not, because the tests use no folds.
    """
    if evaluation.audit is None:
        return True
    return not evaluation.audit["check"].isin(_ERRORS_OF_DATA).any()


def list_significant_regions(
    evaluation: Evaluation, statistic_name: str, feature: str | None = None
) -> list[str]:
    """Return regions with a family-wise p below 0.05, in the order of the atlas.

    Parameters
    ----------
    evaluation : Evaluation
        With `region_test_table`.
    statistic_name : {"effect", "contrast"}
        Test that gives the p-value.
    feature : str, optional
        Feature in which they were tested; by default any.

    Returns
    -------
    list of str
        Names. Empty if regions were not compared, or with fewer than 99 permutations.
    """
    if not has_region_tests(evaluation):
        return []
    region_test_table = _select_signed_test_table(evaluation, feature)
    significant_test_mask = region_test_table[f"p_{statistic_name}"] < ranks.ALPHA
    return list(region_test_table.loc[significant_test_mask, "region"].unique())


def list_marked_regions(
    evaluation: Evaluation, feature: str | None = None
) -> list[str]:
    """Return the regions that maps outline or dot; of one feature, or of any."""
    marked_region_names = [
        *list_significant_regions(evaluation, "effect", feature),
        *list_significant_regions(evaluation, "contrast", feature),
    ]
    return list(dict.fromkeys(marked_region_names))


def make_signed_test_table(region_test_table: pd.DataFrame) -> pd.DataFrame:
    """Return tests of regions whose contrasts have a sign in the sense of the effect.

    Parameters
    ----------
    region_test_table : DataFrame
        Of :func:`brainlsap.evaluation.compare_regions`, where a contrast is positive
        in the direction of the effect.

    Returns
    -------
    DataFrame
        A copy. A contrast and its bounds are negative if values fall over the classes
        relative to the connected regions, and positive if they rise. Contrasts of
        classes without an order have no direction and are not changed.
    """
    signed_test_table = region_test_table.copy()
    if "F" in region_test_table:
        return signed_test_table
    falling_test_mask = region_test_table["effect"] < 0
    falling_contrast_table = region_test_table.loc[
        falling_test_mask, ["contrast", "contrast_high", "contrast_low"]
    ]
    signed_test_table.loc[
        falling_test_mask, ["contrast", "contrast_low", "contrast_high"]
    ] = -falling_contrast_table.to_numpy()
    return signed_test_table


def _select_signed_test_table(
    evaluation: Evaluation, feature_name: str | None = None
) -> pd.DataFrame:
    """Return tests with signed contrasts, of all features or of one.

    Raises an error if there are none.
    """
    check_evaluation_given(evaluation)
    region_test_table = evaluation.region_tests
    if region_test_table is None:
        raise ParameterError(
            "the evaluation has no region_tests. Set them: dataclasses.replace("
            "evaluation, region_tests=compare_regions(cohort, evaluation))."
        )
    region_test_table = make_signed_test_table(region_test_table)
    if feature_name is None:
        return region_test_table
    return region_test_table[region_test_table["feature"] == feature_name]


def select_top_region_test_table(
    evaluation: Evaluation, n_regions: int = 10, feature: str | None = None
) -> pd.DataFrame:
    """Return the tests of the regions to be named, most significant first.

    Parameters
    ----------
    evaluation : Evaluation
        With `region_test_table`.
    n_regions : int
        Number of rows of smallest p_effect, then of largest effect.
    feature : str, optional
        Feature; by default all, and a region may come twice.

    Returns
    -------
    DataFrame
        Rows of `region_test_table`, contrasts with the sign of the effect; below them
        up to five more with p_contrast < 0.05.
    """
    region_test_table = _select_signed_test_table(evaluation, feature).dropna(
        subset="effect"
    )
    if not has_region_tests(evaluation):
        region_test_table = region_test_table.assign(p_effect=np.nan, p_contrast=np.nan)
    ordered_test_table = region_test_table.assign(
        effect_size=region_test_table["effect"].abs()
    ).sort_values(["p_effect", "effect_size"], ascending=[True, False], kind="stable")
    top_test_table = ordered_test_table.head(n_regions)
    remaining_test_table = ordered_test_table.iloc[n_regions:]
    significant_contrast_mask = remaining_test_table["p_contrast"] < ranks.ALPHA
    extra_peak_test_table = remaining_test_table[significant_contrast_mask].head(
        N_EXTRA
    )
    selected_test_table = pd.concat([top_test_table, extra_peak_test_table])
    return selected_test_table.drop(columns="effect_size").reset_index(drop=True)


def region_tests_table(
    evaluation: Evaluation,
    atlas: AtlasSource | None = None,
    n_regions: int = 10,
    *,
    marks_smallest_p: bool = True,
) -> pd.DataFrame:
    """Return the answers to three questions about the regions of largest effect.

    Parameters
    ----------
    evaluation : Evaluation
        With `region_tests` of :func:`brainlsap.evaluation.compare_regions`.
    atlas : str, Path, Atlas or sequence of str, optional
        Source of names and coordinates of the regions.
    n_regions : int
        Number of regions of smallest p (effect), then of largest effect. Up to five
        more with p (contrast) < 0.05 follow.
    marks_smallest_p : bool
        Whether the sign ≤ marks the smallest p that the number of permutations can
        give. Files have the number alone.

    Returns
    -------
    DataFrame
        region; feature, if there are several; coordinates (MNI152, mm); effect and
        contrast (with the sign of the effect) with 95% intervals, each
        with its family-wise p ("n/a" with fewer than
        99 permutations); relative scale of the model that ranks regions, mean [range]
        over folds; planted, if the cohort is simulated.

    Raises
    ------
    ParameterError
        If the evaluation has no `region_tests`.
    """
    selected_test_table = select_top_region_test_table(evaluation, n_regions)
    smallest_p = _smallest_possible_p(evaluation) if marks_smallest_p else 0.0
    region_names = list(selected_test_table["region"])
    paper_table = pd.DataFrame({"region": region_labels(region_names, atlas)})
    if len(evaluation.cohort.feature_names) > 1:
        paper_table["feature"] = [
            feature_title(evaluation.cohort, feature_name, region_name)
            for feature_name, region_name in zip(
                selected_test_table["feature"], region_names, strict=True
            )
        ]
    if atlas is not None:
        coordinate_texts = centroid_texts(region_names, load_atlas(atlas))
        if any(coordinate_texts):
            paper_table["x, y, z"] = coordinate_texts
    for statistic_name in ("effect", "contrast"):
        estimates_and_bounds = selected_test_table[
            [statistic_name, f"{statistic_name}_low", f"{statistic_name}_high"]
        ].to_numpy()
        paper_table[f"{statistic_name} [95%, uncorrected]"] = [
            interval_text(estimate, lower_bound, upper_bound, 2)
            for estimate, lower_bound, upper_bound in estimates_and_bounds
        ]
        paper_table[f"p ({statistic_name}, corrected)"] = [
            p_text(p_value, smallest_p)
            for p_value in selected_test_table[f"p_{statistic_name}"]
        ]
    if has_reported_scales(evaluation):
        scale_table = (
            select_scale_ranking_table(evaluation).set_index("region").loc[region_names]
        )
        paper_table["relative scale [range]"] = [
            interval_text(mean_scale, lower_bound, upper_bound, 2)
            for mean_scale, lower_bound, upper_bound in scale_table[
                ["relative_scale", "relative_low", "relative_high"]
            ].to_numpy()
        ]
    if selected_test_table.get("planted", pd.Series(dtype=bool)).any():
        paper_table["simulation"] = np.where(
            selected_test_table["planted"].astype(bool), "planted", ""
        )
    return paper_table


@lru_cache(maxsize=4)  # hashed by identity; tables, figures and answers use it
def scale_range_by_model(evaluation: Evaluation) -> dict[str, tuple[float, float]]:
    """Return the smallest and the largest relative scale of every model with scales."""
    range_by_model = {}
    for model_name in list_models_with_scales(evaluation):
        scale_values = rank_regions(evaluation, model_name)["relative_scale"]
        range_by_model[model_name] = (
            float(scale_values.min()),
            float(scale_values.max()),
        )
    return range_by_model


def list_models_of_varied_scales(evaluation: Evaluation) -> list[str]:
    """Return the models whose relative scales differ by `MIN_SCALE_RANGE` or more.

    Controls are left out. So are networks that have no weight in any fold, and a ridge
    regression that was not chosen in any fold, because no prediction uses their scales.
    """
    control_name_set = {
        *evaluation.fits.loc[evaluation.fits["role"] == "control", "model"]
    }
    is_ridge_unused = bool(scale_warning_text(evaluation))
    return [
        model_name
        for model_name, (smallest_scale, largest_scale) in scale_range_by_model(
            evaluation
        ).items()
        if largest_scale - smallest_scale >= MIN_SCALE_RANGE
        and model_name not in control_name_set
        and not has_unused_network(evaluation, model_name)
        and not (is_ridge_unused and model_name == NESTED_RIDGES[2])
    ]


def is_ranked_by_varied_scales(evaluation: Evaluation) -> bool:
    """Return whether the scales of the model that ranks regions differ enough."""
    if not list_models_with_scales(evaluation):
        return False
    ranking_model_name = str(select_scale_ranking_table(evaluation)["model"].iloc[0])
    return ranking_model_name in list_models_of_varied_scales(evaluation)


def has_reported_scales(evaluation: Evaluation) -> bool:
    """Return whether scales stand beside the tests of the regions.

    Scales that hardly differ, or that two halves of the people order in other ways,
    would only seem to single out regions.
    """
    return is_ranked_by_varied_scales(evaluation) and are_scale_ranks_replicable(
        evaluation
    )


def select_scale_ranking_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the ranking by scale that a report shows."""
    if evaluation.ranking is not None:
        return evaluation.ranking
    return rank_regions(evaluation)


def region_group_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return differences and numbers of significant regions by lobe and network.

    Parameters
    ----------
    evaluation : Evaluation
        With `region_test_table`.

    Returns
    -------
    DataFrame
        A row for each feature, lobe (of atlases that have them), network and
        hemisphere: feature, grouping ("lobe", "network" or "hemisphere"), group,
        hemisphere ("L", "R", "M", or "all"), n_regions (tested), d_<class> (mean
        Cohen's d from the reference over these regions), n_effect and n_contrast
        (regions with family-wise p < 0.05; NaN with fewer than 99 permutations).
    """
    region_test_table = _select_signed_test_table(evaluation).dropna(subset="effect")
    atlas_table: Any = evaluation.cohort.regions
    grouping_columns = [
        grouping_column
        for grouping_column in ("lobe", "network", "hemisphere")
        if grouping_column in atlas_table
        and _make_grouped_region_mask(atlas_table[grouping_column]).any()
    ]
    group_table = atlas_table.set_index("name")[list({*grouping_columns, "hemisphere"})]
    region_test_table = region_test_table.join(group_table, on="region")
    group_records: list[dict[str, Any]] = []
    difference_column_names = [*difference_title_by_column(evaluation)]
    has_p_values = has_region_tests(evaluation)
    for feature_name, feature_test_table in region_test_table.groupby(
        "feature", sort=False
    ):
        for grouping_column in grouping_columns:
            grouped_region_mask = _make_grouped_region_mask(
                feature_test_table[grouping_column]
            )
            for group_name, group_test_table in feature_test_table[
                grouped_region_mask
            ].groupby(grouping_column, sort=False):
                tests_by_hemisphere = {"all": group_test_table}
                if grouping_column != "hemisphere":
                    tests_by_hemisphere |= dict(
                        list(group_test_table.groupby("hemisphere"))
                    )
                for hemisphere, hemisphere_test_table in tests_by_hemisphere.items():
                    group_key = {
                        "feature": feature_name,
                        "grouping": grouping_column,
                        "group": group_name,
                        "hemisphere": hemisphere,
                    }
                    group_record = _make_group_summary_record(
                        hemisphere_test_table,
                        difference_column_names,
                        has_p_values=has_p_values,
                    )
                    group_records.append(group_key | group_record)
    return pd.DataFrame(group_records)


def _make_grouped_region_mask(group_name_series: pd.Series) -> pd.Series:
    """Return whether each region has a group."""
    return ~group_name_series.fillna("").astype(str).str.strip().isin(["", MISSING])


def _make_group_summary_record(
    group_test_table: pd.DataFrame,
    difference_column_names: Sequence[str],
    *,
    has_p_values: bool,
) -> dict[str, float]:
    """Return mean differences of classes, and how many regions are significant."""
    group_record: dict[str, float] = {"n_regions": len(group_test_table)}
    for column_name in difference_column_names:
        group_record[column_name] = float(group_test_table[column_name].mean())
    for statistic_name in ("effect", "contrast"):
        n_significant = (group_test_table[f"p_{statistic_name}"] < ranks.ALPHA).sum()
        group_record[f"n_{statistic_name}"] = (
            float(n_significant) if has_p_values else np.nan
        )
    return group_record


def difference_title_by_column(evaluation: Evaluation) -> dict[str, str]:
    """Return the columns of Cohen's d of a table of tests, with titles of maps."""
    region_test_table = _select_signed_test_table(evaluation)
    compared_classes = [
        class_name
        for class_name in evaluation.cohort.classes
        if f"d_{class_name}" in region_test_table
    ]
    uncompared_classes = [
        other_class
        for other_class in evaluation.cohort.classes
        if other_class not in compared_classes
    ]
    reference_class_name = uncompared_classes[0] if uncompared_classes else "reference"
    return {
        f"d_{class_name}": f"{class_name} \N{MINUS SIGN} {reference_class_name}"
        for class_name in compared_classes
    }


def region_group_text_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the table of lobes, networks and hemispheres, of the first feature.

    Both hemispheres of a lobe are together; names are those of the atlas.
    """
    group_table = region_group_table(evaluation)
    if group_table.empty:
        return group_table
    first_feature_name = evaluation.cohort.feature_names[0]
    group_table = group_table[
        (group_table["feature"] == first_feature_name)
        & (group_table["hemisphere"] == "all")
    ]
    title_by_hemisphere = {"L": "left", "R": "right", "M": "midline"}
    group_titles = group_table["group"].where(
        group_table["grouping"] != "hemisphere",
        group_table["group"].replace(title_by_hemisphere),
    )
    paper_table = pd.DataFrame(
        {
            "by": group_table["grouping"],
            "group": group_titles,
            "regions": group_table["n_regions"].astype(int).astype(str),
        }
    )
    for column_name, difference_title in difference_title_by_column(evaluation).items():
        paper_table[difference_title] = [
            spread_text(d, n_digits=2) for d in group_table[column_name]
        ]
    if has_region_tests(evaluation):
        paper_table["differ"] = group_table["n_effect"].astype(int).astype(str)
        paper_table["stand out"] = group_table["n_contrast"].astype(int).astype(str)
    return paper_table.reset_index(drop=True)


def list_region_answers(
    evaluation: Evaluation, atlas: AtlasSource | None = None
) -> list[RegionAnswer]:
    """Return the three questions of the report's section on regions, with answers."""
    region_answers = []
    if evaluation.region_tests is not None:
        region_answers += [
            _make_effect_answer(evaluation, atlas),
            _make_contrast_answer(evaluation, atlas),
        ]
    if list_models_with_scales(evaluation):
        region_answers.append(_make_scale_answer(evaluation, atlas))
    if not are_region_tests_valid(evaluation):
        return [
            region_answer._replace(
                answer=f"This result is not valid, because the leakage audit found an "
                f"error in the data. {region_answer.answer}",
                claim=NO_CLAIM,
            )
            for region_answer in region_answers
        ]
    return region_answers


def region_names_text(
    region_names: Sequence[str], atlas: AtlasSource | None, max_names: int = MAX_NAMED
) -> str:
    """Return all names of a list, or of a long list the first, and how many others.

    Both sides of a structure are one name: "left and right amygdala".
    """
    unique_names = list(dict.fromkeys(region_names))
    n_named = len(unique_names)
    if n_named > max_names:
        n_named = min(N_NAMED, max_names)
    label_texts = region_labels(unique_names[:n_named], atlas)
    region_texts = _list_side_joined_names(label_texts)
    n_other_regions = len(unique_names) - len(label_texts)
    if n_other_regions:
        region_texts = [*region_texts, count_text(n_other_regions, "other")]
    if len(region_texts) > 1 and any(
        " and " in region_text for region_text in region_texts
    ):
        # A comma separates the last text from a pair that contains "and".
        return f"{', '.join(region_texts[:-1])}, and {region_texts[-1]}"
    return join_with_and(region_texts)


def is_borderline_p_value(p_value: float, n_permutations: int) -> bool:
    """Return whether other permutations may put a p on the other side of 0.05.

    The Monte Carlo standard error of p of n permutations is sqrt(p (1 - p) / n).
    """
    if not n_permutations or not 0 < p_value < 1:
        return False
    standard_error = np.sqrt(p_value * (1 - p_value) / n_permutations)
    return bool(abs(p_value - ranks.ALPHA) < NORMAL_QUANTILE * standard_error)


def borderline_regions_text(
    p_value_table: pd.DataFrame,
    p_column: str,
    n_permutations: int,
    atlas: AtlasSource | None,
) -> str:
    """Return which significant regions are borderline, with their p; "" for none."""
    borderline_region_mask = p_value_table[p_column].map(
        lambda p_value: is_borderline_p_value(p_value, n_permutations)
    )
    significant_region_mask = p_value_table[p_column] < ranks.ALPHA
    borderline_region_table = p_value_table[
        borderline_region_mask & significant_region_mask
    ]
    if borderline_region_table.empty:
        return ""
    largest_p = borderline_region_table[p_column].max()
    p_phrase_text = p_phrase(largest_p)
    if len(borderline_region_table) > 1:
        p_phrase_text = f"largest {p_phrase_text}"
    return (
        "borderline in "
        f"{region_names_text(list(borderline_region_table['region']), atlas)}: "
        f"{p_phrase_text} with {count_text(n_permutations, 'permutation')}"
    )


def _list_side_joined_names(label_texts: list[str]) -> list[str]:
    """Return names with both sides of a structure as one, at the first of the two."""
    region_texts = []
    for label_text in label_texts:
        side_word, _, structure_name = label_text.partition(" ")
        opposite_side_word = {"left": "right", "right": "left"}.get(side_word)
        opposite_label_text = f"{opposite_side_word} {structure_name}"
        if opposite_side_word is None or opposite_label_text not in label_texts:
            region_texts.append(label_text)
        elif label_texts.index(label_text) < label_texts.index(opposite_label_text):
            region_texts.append(f"left and right {structure_name}")
    return region_texts


def _smallest_possible_p(evaluation: Evaluation) -> float:
    """Return the smallest p that the permutations of the tests of regions can give."""
    n_permutations = int(
        _select_signed_test_table(evaluation)["n_permutations"].iloc[0]
    )
    return compute_smallest_p(evaluation, n_permutations)


def _family_text(evaluation: Evaluation) -> str:
    """Return the number of tests and permutations behind p-values, as text."""
    region_test_table = _select_signed_test_table(evaluation)
    n_permutations = int(region_test_table["n_permutations"].iloc[0])
    n_tests = len(region_test_table.dropna(subset="effect"))
    n_features = len(evaluation.cohort.feature_names)
    test_noun = "region" if n_features == 1 else "test"
    return (
        f"p corrected for {count_text(n_tests, test_noun)}, "
        f"{count_text(n_permutations, 'permutation')}"
    )


def _make_effect_answer(
    evaluation: Evaluation, atlas: AtlasSource | None
) -> RegionAnswer:
    """Answer whether regions differ between classes."""
    question_text = "Does the region differ between classes?"
    selected_test_table = select_top_region_test_table(evaluation, 1)
    n_measured_regions = int(
        _select_signed_test_table(evaluation)
        .dropna(subset="effect")["region"]
        .nunique()
    )
    if selected_test_table.empty:
        return RegionAnswer(
            question_text,
            "No answer is possible, because covariates explain the classes completely.",
            NO_CLAIM,
            "This does not mean that the classes are equal.",
        )
    largest_effect_row = selected_test_table.iloc[0]
    caution_text = _effect_caution_text(evaluation)
    if not has_region_tests(evaluation):
        n_permutations = int(largest_effect_row["n_permutations"])
        answer_text = (
            "This was not tested, because there were "
            f"{count_text(n_permutations, 'permutation')} and at least "
            f"{ranks.FEWEST_PERMUTATIONS} are needed."
        )
        caution_text = "A large effect without a test may be noise."
        return RegionAnswer(question_text, answer_text, NO_CLAIM, caution_text)
    ordered_test_table = select_top_region_test_table(
        evaluation, len(_select_signed_test_table(evaluation))
    )
    significant_test_mask = ordered_test_table["p_effect"] < ranks.ALPHA
    significant_region_names = list(
        ordered_test_table.loc[significant_test_mask, "region"].unique()
    )
    family_text = _family_text(evaluation)
    if significant_region_names:
        borderline_text = borderline_regions_text(
            ordered_test_table.drop_duplicates("region"),
            "p_effect",
            int(largest_effect_row["n_permutations"]),
            atlas,
        )
        family_text = "; ".join(filter(None, [family_text, borderline_text]))
        answer_text = (
            f"Yes, in {len(significant_region_names)} of "
            f"{count_text(n_measured_regions, 'region')}: "
            f"{region_names_text(significant_region_names, atlas)} ({family_text})."
        )
        claim_text = (
            f"{_effect_claim_text(evaluation)} in each region with p (effect) < 0.05. "
            "No difference was shown in any other region."
        )
    else:
        answer_text = (
            "No difference was shown in any of "
            f"{count_text(n_measured_regions, 'region')} ({family_text})."
        )
        claim_text = "No region was shown to differ between classes."
        caution_text = "This does not mean that the classes are equal."
    return RegionAnswer(question_text, answer_text, claim_text, caution_text)


def _effect_claim_text(evaluation: Evaluation) -> str:
    """Return what a small p of an effect shows."""
    if is_trend_tested(evaluation):
        return "Values are lower or higher in later classes (trend)"
    return "The classes differ"


def _effect_caution_text(evaluation: Evaluation) -> str:
    """Return the caution about differences between classes."""
    importance_sentence = "This page does not measure how important a region is."
    cohort = evaluation.cohort
    if cohort.label_name != "diagnosis":
        return (
            "This does not mean that the region is more important than others, or "
            "that classes are equal in regions without a small p. "
            f"{importance_sentence}"
        )
    return (
        "This does not mean that the disease begins there, that the region is more "
        "important than others, or that regions without a small p are unaffected. The "
        f"difference need not be specific to {cohort.classes[-1]}, because the test "
        f"concerns {_comparison_text(evaluation)} and no other disease was studied. "
        f"{importance_sentence}"
    )


def _comparison_text(evaluation: Evaluation) -> str:
    """Return the classes or trend that the test of the effect compares."""
    if len(evaluation.cohort.classes) == 2:
        return "two classes"
    if is_trend_tested(evaluation):
        return "the trend over ordered classes"
    return "all classes together"


def is_trend_tested(evaluation: Evaluation) -> bool:
    """Return whether tests of regions are of a trend over more than two classes."""
    if len(evaluation.cohort.classes) == 2:
        return False
    if evaluation.region_tests is None:
        return bool(evaluation.cohort.classes_ordered)
    return "F" not in evaluation.region_tests


def _make_contrast_answer(
    evaluation: Evaluation, atlas: AtlasSource | None
) -> RegionAnswer:
    """Answer whether differences stand out from those of connected regions."""
    question_text = (
        "Does the difference of the region stand out from connected regions?"
    )
    region_test_table = _select_signed_test_table(evaluation).dropna(subset="contrast")
    caution_text = (
        "This does not show that the difference began in the region, because "
        "differences can also spread from connected regions."
    )
    if region_test_table.empty:
        return RegionAnswer(
            question_text,
            "No answer is possible, because no region has a connected region with a "
            "value.",
            NO_CLAIM,
            caution_text,
        )
    if not has_region_tests(evaluation):
        answer_text = "This was not tested, because there were too few permutations."
        caution_text = "A large contrast without a test may be noise."
        return RegionAnswer(question_text, answer_text, NO_CLAIM, caution_text)
    peak_table = region_test_table[
        region_test_table["p_contrast"] < ranks.ALPHA
    ].sort_values(["p_contrast", "contrast_z"], ascending=[True, False])
    peak_region_names = list(peak_table["region"].unique())
    if not peak_region_names:
        answer_text = "This was not shown for any region."
        caution_text = (
            "This does not mean that the difference is equal in all regions. A larger "
            "difference in some regions may be too small or too widespread to be "
            "detected."
        )
        claim_text = "No region was shown to stand out from connected regions."
        return RegionAnswer(question_text, answer_text, claim_text, caution_text)
    answer_text = (
        f"Yes, in {count_text(len(peak_region_names), 'region')}: "
        f"{region_names_text(peak_region_names, atlas)}."
    )
    claim_text = (
        "In each region with p (contrast) < 0.05, the difference is larger than the "
        "difference of the mean of its connected regions, in the same direction. No "
        "other region was shown to stand out."
    )
    return RegionAnswer(question_text, answer_text, claim_text, caution_text)


def _make_scale_answer(
    evaluation: Evaluation, atlas: AtlasSource | None
) -> RegionAnswer:
    """Return the answer on the use of regions by a model."""
    question_text = "How does the model use the region?"
    caution_text = (
        "Scales describe the model and have no p-value. A small scale does not mean "
        "that classes differ in the region, that the region is important, or that "
        "disease has spread from it."
    )
    ranking_table = select_scale_ranking_table(evaluation)
    model_name = str(ranking_table["model"].iloc[0])
    warning_text = scale_warning_text(evaluation)
    if warning_text:
        answer_text = (
            "A small scale means that the model uses the region's own value. A large "
            "scale means that the model averages over connected regions."
        )
        return RegionAnswer(question_text, answer_text, "", caution_text, warning_text)
    if not is_ranked_by_varied_scales(evaluation):
        smallest_scale, largest_scale = scale_range_by_model(evaluation)[model_name]
        answer_text = (
            "A small scale means that the model uses the region's own value. A large "
            "scale means that the model averages over connected regions. In this "
            "study, the scales of a fold hardly differ between regions "
            f"({model_name}: {smallest_scale:.2f} to {largest_scale:.2f} times the "
            "median of the fold, mean over folds). Therefore, this page names no "
            "region by its scale and shows no map of scales."
        )
        return RegionAnswer(question_text, answer_text, "", caution_text)
    if not are_scale_ranks_replicable(evaluation):
        smallest_scale, largest_scale = scale_range_by_model(evaluation)[model_name]
        answer_text = (
            "A small scale means that the model uses the region's own value. A large "
            f"scale means that the model averages over connected regions. In the model "
            f"{model_name}, relative scales are {smallest_scale:.2f} to "
            f"{largest_scale:.2f} (mean over folds; the relative scale is the scale of "
            "a region divided by the scale of the median region). Two halves of the "
            "participants rank the regions differently by scale, so this answer names "
            "no region."
        )
        return RegionAnswer(question_text, answer_text, "", caution_text)
    measured_table = ranking_table.dropna(subset="relative_scale")
    smallest_row: Any = measured_table.loc[measured_table["relative_scale"].idxmin()]
    range_text = interval_text(
        smallest_row["relative_scale"],
        smallest_row["relative_low"],
        smallest_row["relative_high"],
        2,
    )
    answer_text = (
        "A small scale means that the model uses the region's own value. A large "
        "scale means that the model averages over connected regions. In the model "
        f"{model_name}, {region_names_text([smallest_row['region']], atlas)} has the "
        f"smallest scale. Its relative scale is {range_text} (mean and range over "
        "folds). The relative scale is the scale of a region divided by the scale of "
        "the median region."
    )
    estimate_columns = ["fit_scale", "fit_low", "fit_high"]
    mean_scale, lower_bound, upper_bound = smallest_row.reindex(
        estimate_columns
    ).to_numpy(float)
    if np.isfinite([mean_scale, lower_bound, upper_bound]).all():
        answer_text += (
            " In one fit to all scans, the absolute scale of this region, before the "
            "division, is "
            f"{interval_text(mean_scale, lower_bound, upper_bound, 2)} (with 95% "
            "posterior interval)."
        )
    claim_text = (
        "For a region with a small scale, the model uses the region's own value. For a "
        "region with a large scale, the model averages over connected regions."
    )
    scaleless_fold_count = count_scaleless_folds(evaluation)
    if scaleless_fold_count is not None and scaleless_fold_count.n_scaleless_folds:
        if model_name == scaleless_fold_count.model_name:
            scale_source_text = "means over the other folds"
        else:
            scale_source_text = f'scales of the model "{model_name}"'
        answer_text += (
            f" The main model ({scaleless_fold_count.model_name}) has no scale for "
            f"each region in {scaleless_fold_count.n_scaleless_folds} of "
            f"{count_text(scaleless_fold_count.n_folds, 'fold')}. The scales on this "
            f"page are {scale_source_text}."
        )
        if 2 * scaleless_fold_count.n_scaleless_folds > scaleless_fold_count.n_folds:
            claim_text = ""
    if has_region_tests(evaluation) and not list_significant_regions(
        evaluation, "effect"
    ):
        claim_text = ""
    return RegionAnswer(
        question_text,
        answer_text,
        claim_text,
        caution_text,
    )


def scale_limit_text(evaluation: Evaluation) -> str:
    """Return that posterior intervals of scales reach the largest scale; else ""."""
    ranking_table = select_scale_ranking_table(evaluation)
    if "fit_high" not in ranking_table:
        return ""
    upper_bounds = ranking_table["fit_high"].dropna()
    # Bounds are clipped at the limit, so several regions have it exactly.
    scale_limit = float(upper_bounds.max())
    n_regions_at_limit = int((upper_bounds == scale_limit).sum())
    if n_regions_at_limit < 2:
        return ""
    return (
        f"Scales are limited to at most {scale_limit:g}. The posterior interval of one "
        f"fit reaches this limit in {n_regions_at_limit} of "
        f"{count_text(len(upper_bounds), 'region')}, so the data do not limit how far "
        "the values of these regions are averaged."
    )


def scale_warning_text(evaluation: Evaluation) -> str:
    """Return that the ranking scales are of a model that was never chosen; else "".

    A network begins with the ridge regression that LSAP-R chooses, so the scales of a
    ridge regression that is not chosen in any fold affect no prediction.
    """
    if not list_models_with_scales(evaluation):
        return ""
    main_model_name = evaluation.models[0]
    ranking_model_name = str(select_scale_ranking_table(evaluation)["model"].iloc[0])
    n_folds_chosen = count_fits_choosing_ridge(evaluation, "regions")
    if (
        ranking_model_name != NESTED_RIDGES[2]
        or main_model_name == ranking_model_name
        or n_folds_chosen is None
        or n_folds_chosen > 0
    ):
        return ""
    return (
        f"No prediction of {main_model_name} uses the model {ranking_model_name}. "
        "Therefore, this page names no region by its scale and shows no map of scales."
    )


def planted_text(evaluation: Evaluation) -> str:
    """Return the accuracy with which statistics identify planted regions, as sentences.

    "" for other cohorts.
    """
    auc_by_statistic = {}
    planted_region_names: list[str] = []
    if evaluation.region_tests is not None and "planted" in evaluation.region_tests:
        effect_symbol = "eta" if "F" in evaluation.region_tests else "|r|"
        for statistic_name, statistic_title in (
            ("effect", effect_symbol),
            ("contrast", "contrast"),
        ):
            ranking_table = rank_regions(evaluation, by=statistic_name)
            if ranking_table["planted"].any():
                auc_by_statistic[statistic_title] = ranks.ranking_auc(ranking_table)
                planted_region_names = list(
                    ranking_table.loc[ranking_table["planted"], "region"]
                )
    # A small scale is not a statistic of differences, so tests replace it.
    scale_model_names = (
        [] if auc_by_statistic else list_models_of_varied_scales(evaluation)
    )
    for model_name in scale_model_names:
        ranking_table = rank_regions(evaluation, model_name)
        if "planted" in ranking_table and ranking_table["planted"].any():
            auc_by_statistic[f"small scale ({model_name})"] = ranks.ranking_auc(
                ranking_table
            )
            planted_region_names = list(
                ranking_table.loc[ranking_table["planted"], "region"]
            )
    if not auc_by_statistic:
        return ""
    planted_sentence = (
        "The simulated disease begins in "
        f"{count_text(len(planted_region_names), 'region')} "
        '("planted") and spreads along the connectome.'
    )
    significant_region_names = list_significant_regions(evaluation, "effect")
    if has_region_tests(evaluation) and not {*planted_region_names} & {
        *significant_region_names
    }:
        return (
            f"{planted_sentence} None of these regions was shown to differ, so these "
            "regions were not identified. The labels may not be the labels of the "
            "simulation, or the study may be too small."
        )
    auc_texts = [
        f"{auc_value:.3f} by {statistic_title}"
        for statistic_title, auc_value in auc_by_statistic.items()
    ]
    auc_sentence = (
        f"{planted_sentence} The test of the connectome can fail to detect this "
        "spread. The AUC for identifying these regions among all regions (1 is "
        f"perfect, 0.5 is chance) is {join_with_and(auc_texts)}."
    )
    if min(auc_by_statistic.values()) < MIN_PLANTED_AUC:
        auc_sentence += (
            " An AUC near or below 0.5 means that these regions were not identified. "
            f"The regions were planted for the {evaluation.cohort.label_name} as "
            "simulated."
        )
    return auc_sentence


def replicability_text(evaluation: Evaluation) -> str:
    """Return the agreement of maps of effect, contrast and scale between halves."""
    if evaluation.replicability is None:
        return ""
    replicability_table = evaluation.replicability
    if not is_ranked_by_varied_scales(evaluation):
        scale_statistic_mask = replicability_table["statistic"] == "scale"
        replicability_table = replicability_table[~scale_statistic_mask]
    statistic_texts = [
        f"{replicability_record['statistic']} {replicability_record['spearman']:z.2f} "
        f"[{replicability_record['spearman_low']:z.2f}, "
        f"{replicability_record['spearman_high']:z.2f}]"
        for replicability_record in replicability_table.to_dict("records")
    ]
    irreplicable_statistic_mask = ~(
        replicability_table["spearman"] >= MIN_REPLICABILITY
    )
    irreplicable_statistic_names = list(
        replicability_table.loc[irreplicable_statistic_mask, "statistic"]
    )
    rank_sentence = (
        f"All values are {MIN_REPLICABILITY:g} or more, so the ranks of the "
        "regions are similar in the two halves."
    )
    if irreplicable_statistic_names:
        rank_sentence = (
            f"The ranks by {join_with_and(irreplicable_statistic_names)} differ "
            f"between the two halves (below {MIN_REPLICABILITY:g}). Do not report "
            "these ranks."
        )
    return (
        "Replicability is the Spearman correlation between the maps of two random "
        f"halves of the participants, as mean [range]: {', '.join(statistic_texts)}. "
        "Unrelated maps give 0 on average, and equal orders of all regions give 1. "
        f"{rank_sentence} A region can have a small p although the replicability is "
        "low, because all regions without a difference have a random order."
    )


def are_scale_ranks_replicable(evaluation: Evaluation) -> bool:
    """Return whether halves order regions alike by scale; True if it was not tested."""
    if evaluation.replicability is None:
        return True
    statistic_mean_series = evaluation.replicability.set_index("statistic")["spearman"]
    return bool(statistic_mean_series.get("scale", 1.0) >= MIN_REPLICABILITY)


def list_test_notes(evaluation: Evaluation) -> list[str]:
    """Return notes on the table of tested regions, as paragraphs."""
    region_test_table = evaluation.region_tests
    if region_test_table is None:
        return []
    cohort = evaluation.cohort
    reference_class_name = cohort.classes[0]
    sentences = [
        "The intervals are not corrected for the number of regions. A contrast has no "
        "interval if the interval of the effect includes 0, because the direction of "
        "the effect is then not known."
    ]
    if len(cohort.classes) > 2:
        sentences.append(
            f"The test concerns {_comparison_text(evaluation)}, not pairs of classes. "
            f"Differences of single classes from {reference_class_name} have no "
            "corrected tests. No test compares classes in how much they differ from "
            f"{reference_class_name}."
        )
    if (evaluation.settings.get("steps") or {}).get("regress_out"):
        sentences.append(CURVE_NOTE)
    if has_region_tests(evaluation):
        n_permutations = int(region_test_table["n_permutations"].iloc[0])
        sentences.append(contrast_nulls_text(cohort))
        smallest_p = _smallest_possible_p(evaluation)
        reason_text = f"With {n_permutations} permutations"
        formula_text = f"1/({n_permutations} + 1)"
        n_labellings = count_region_labellings(evaluation)
        if n_labellings < n_permutations + 1:
            reason_text = (
                f"Because labels can be permuted in only {n_labellings} different ways"
            )
            formula_text = f"1/{n_labellings}"
        sentences.append(
            f"{reason_text}, the smallest possible p is {formula_text} = "
            f"{p_text(smallest_p)}; the sign ≤ marks it."
        )
    note_texts = [" ".join(sentences), replicability_text(evaluation)]
    return [note_text for note_text in note_texts if note_text]
