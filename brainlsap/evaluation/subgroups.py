r"""Groups of people: the score in each of them, and how two cohorts differ.

Scores of groups. With :math:`r_c` the share of correct predictions of class c in a
group, the balanced accuracy is the mean of :math:`r_c` over K classes. Its interval,
and that of the difference of two groups, are those of a linear function of m
proportions (Price and Bonett 2004, Computational Statistics and Data Analysis 45:449):
2 / m correct and 2 / m false people are added to each class of each group, m = K for
a score and 2 K for a difference. Variances are over people, with all their scans.

The largest of several estimated differences overestimates the true one on average.
Its interval is therefore one of a family that holds all differences of all columns at
the same time in 95 % of studies. Of a column with k groups, the critical value is the
quantile of
:math:`\max_{ij} |z_i - z_j| / \sqrt{v_i + v_j}` of independent normal :math:`z_i`
with the variances :math:`v_i` of the groups; columns share the error by Bonferroni.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.data.cohort import Cohort
from brainlsap.data.covariates import (
    KEY_COLUMNS,
    find_acquisition_kind,
    find_known_sex_by_spelling,
    is_categorical_covariate,
    to_group_text_series,
)
from brainlsap.data.participants import order_rows_by_visit
from brainlsap.evaluation.comparison import NORMAL_QUANTILE
from brainlsap.evaluation.confounds import find_covariate_column
from brainlsap.evaluation.results import Evaluation
from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.text import join_with_and, join_with_commas, option_text

COUNTED_KINDS = ("sex", "site", "scanner")
"""Kinds of covariates whose values are counted."""

SUBGROUP_KINDS = ("sex", "age", "site", "scanner")
"""Kinds of covariates whose groups are scored by default."""

MIN_PEOPLE_OF_GROUP = 10
"""Smallest number of people in a scored group."""

MIN_SCORED_OF_CLASS = 2
"""Smallest number of people in every group at which a class counts in the scores."""

_REGION_MEAN_ENDING = ", mean over regions"
# Largest difference of a feature's mean between people of a test and of a training that
# needs no warning, in standard deviations of the training people. Sites usually differ
# by some tenths.
_MAX_FEATURE_SHIFT = 1.0

TOO_FEW_PEOPLE = f"fewer than {MIN_PEOPLE_OF_GROUP} people"
TOO_FEW_CLASSES = (
    f"fewer than two classes have at least {MIN_SCORED_OF_CLASS} people in this group"
)
"""Reasons for which a group alone has no score."""

_REASON_BY_NOTE = {
    TOO_FEW_PEOPLE: f"every group has {TOO_FEW_PEOPLE}",
    TOO_FEW_CLASSES: (
        "in every group, fewer than two classes have at least "
        f"{MIN_SCORED_OF_CLASS} people"
    ),
}
"""Why a column has no score, if this is the reason for all of its groups."""

# Level of the intervals, and draws of the largest difference.
_ALPHA = 0.05
_N_DRAWS = 20_000

CaseMix = dict[str, Any]


def make_case_mix(cohort: Cohort) -> CaseMix:
    """Describe the people of a cohort by counts and means that name nobody.

    Parameters
    ----------
    cohort : Cohort

    Returns
    -------
    dict
        As JSON allows: `n_people`, `n_scans`; `classes`, people by class; `numbers`,
        `{"n", "mean", "sd"}` of age and, as "<feature>, mean over regions", of every
        feature; `counts`, people by value of sex, site and scanner. A person counts
        with the first scan, in classes with the first scan of each.
    """
    row_index = order_rows_by_visit(cohort.table)
    cohort_table = cohort.table.iloc[row_index]
    first_scan_mask = ~cohort_table["participant"].duplicated()
    first_scan_index = row_index[first_scan_mask]
    people_count_series = cohort_table.groupby("label")["participant"].nunique()
    counts_by_kind: dict[str, dict[str, int]] = {}
    statistics_by_quantity: dict[str, dict[str, float]] = {}
    for column_name in cohort_table.columns.drop(list(KEY_COLUMNS)):
        covariate_kind = find_acquisition_kind(column_name)
        covariate_series = cohort_table.loc[first_scan_mask, column_name]
        if covariate_kind == "age" and covariate_kind not in statistics_by_quantity:
            statistics_by_quantity[covariate_kind] = _compute_statistic_by_name(
                pd.to_numeric(covariate_series, errors="coerce")
            )
        elif covariate_kind in COUNTED_KINDS and covariate_kind not in counts_by_kind:
            person_category_series = (
                to_group_text_series(covariate_series).dropna().astype(str)
            )
            counts_by_kind[covariate_kind] = {
                str(k): int(n) for k, n in person_category_series.value_counts().items()
            }
    for feature_index, feature in enumerate(cohort.feature_names):
        region_values = cohort.features[first_scan_index, :, feature_index]
        measured_value_mask = ~np.isnan(region_values)
        scan_measured_counts = measured_value_mask.sum(axis=1)
        scan_value_sums = np.where(measured_value_mask, region_values, 0.0).sum(axis=1)
        scan_mean_series = pd.Series(
            scan_value_sums / np.maximum(scan_measured_counts, 1)
        ).where(scan_measured_counts > 0)
        statistics_by_quantity[f"{feature}{_REGION_MEAN_ENDING}"] = (
            _compute_statistic_by_name(scan_mean_series)
        )
    return {
        "n_people": int(first_scan_mask.sum()),
        "n_scans": cohort.n_scans,
        "classes": {
            class_name: int(people_count_series.get(class_name, 0))
            for class_name in cohort.classes
        },
        "numbers": statistics_by_quantity,
        "counts": counts_by_kind,
    }


def list_missing_kinds(
    training_mix_record: Mapping[str, Any], test_mix_record: Mapping[str, Any]
) -> list[str]:
    """Return age, sex, site or scanner if only the training has such a column.

    The records are from :func:`make_case_mix`.
    """
    training_kinds = {*training_mix_record["numbers"], *training_mix_record["counts"]}
    test_kinds = {*test_mix_record["numbers"], *test_mix_record["counts"]}
    return [
        covariate_kind
        for covariate_kind in ("age", *COUNTED_KINDS)
        if covariate_kind in training_kinds - test_kinds
    ]


def _compute_statistic_by_name(number_series: pd.Series) -> dict[str, float]:
    """Return number, mean and s.d. of the known values."""
    known_number_series = number_series.dropna()
    sd = float(known_number_series.std()) if len(known_number_series) > 1 else 0.0
    mean = float(known_number_series.mean()) if len(known_number_series) else 0.0
    return {"n": len(known_number_series), "mean": mean, "sd": sd}


def case_mix_table(
    training_mix_record: Mapping[str, Any], test_mix_record: Mapping[str, Any]
) -> pd.DataFrame:
    """Compare the people of the training with those of the test.

    Parameters
    ----------
    training_mix_record, test_mix_record : mapping
        From :func:`make_case_mix`.

    Returns
    -------
    DataFrame
        characteristic, training, test, difference (test minus training, in standard
        deviations of the training people; empty for counts), and points (of
        percentage, test minus training; empty for numbers). Numbers are mean (s.d.),
        counts people (share).
    """
    table_rows: list[tuple[str, str, str, str, str]] = [
        (
            "people",
            str(training_mix_record["n_people"]),
            str(test_mix_record["n_people"]),
            "",
            "",
        ),
        (
            "scans",
            str(training_mix_record["n_scans"]),
            str(test_mix_record["n_scans"]),
            "",
            "",
        ),
    ]
    table_rows += _list_case_mix_rows(
        "class", training_mix_record["classes"], test_mix_record["classes"]
    )
    quantity_names = dict.fromkeys(
        [*training_mix_record["numbers"], *test_mix_record["numbers"]]
    )
    for quantity_name in quantity_names:
        training_statistic_by_name, test_statistic_by_name = (
            training_mix_record["numbers"].get(quantity_name),
            test_mix_record["numbers"].get(quantity_name),
        )
        difference_text = ""
        if (
            training_statistic_by_name
            and test_statistic_by_name
            and training_statistic_by_name["n"]
            and test_statistic_by_name["n"]
            and training_statistic_by_name["sd"] > 0
        ):
            difference = (
                test_statistic_by_name["mean"] - training_statistic_by_name["mean"]
            )
            difference_text = f"{difference / training_statistic_by_name['sd']:+.2f}"
        table_rows.append(
            (
                quantity_name,
                _make_mean_sd_text(training_statistic_by_name),
                _make_mean_sd_text(test_statistic_by_name),
                difference_text,
                "",
            )
        )
    for covariate_kind in COUNTED_KINDS:
        n_training_by_category, n_test_by_category = _match_category_counts(
            training_mix_record, test_mix_record, covariate_kind
        )
        common_categories = n_training_by_category.keys() & n_test_by_category.keys()
        has_both_counts = n_training_by_category and n_test_by_category
        if covariate_kind == "sex" and has_both_counts and not common_categories:
            table_rows.append(("sex: no value occurs in both", "", "", "", ""))
        table_rows += _list_case_mix_rows(
            covariate_kind, n_training_by_category, n_test_by_category
        )
    column_names = ["characteristic", "training", "test", "difference", "points"]
    return pd.DataFrame(table_rows, columns=column_names)


def list_feature_shift_sentences(
    training_mix_record: Mapping[str, Any], test_mix_record: Mapping[str, Any]
) -> list[str]:
    """Return a sentence on each feature that clearly differs from the training.

    Parameters
    ----------
    training_mix_record, test_mix_record : mapping
        From :func:`make_case_mix`.

    Returns
    -------
    list of str
        Of every feature whose mean differs by more than 1 s.d. of the training people
        plus 2 standard errors, `sqrt(1 / n_test + 1 / n_training)` s.d. each.

    >>> training = {
    ...     "numbers": {"fdg, mean over regions": {"n": 50, "mean": 1, "sd": 1}}
    ... }
    >>> test = {"numbers": {"fdg, mean over regions": {"n": 50, "mean": 3.5, "sd": 1}}}
    >>> list_feature_shift_sentences(training, test)
    ['The mean of fdg over regions differs by +2.50 standard deviations ... people.']
    """
    shift_sentences = list[str]()
    for quantity_name, training_statistics in training_mix_record["numbers"].items():
        test_statistics = test_mix_record["numbers"].get(quantity_name)
        if not (
            quantity_name.endswith(_REGION_MEAN_ENDING)
            and test_statistics
            and test_statistics["n"]
            and training_statistics["n"]
            and training_statistics["sd"] > 0
        ):
            continue
        shift = (
            test_statistics["mean"] - training_statistics["mean"]
        ) / training_statistics["sd"]
        standard_error = np.sqrt(
            1 / test_statistics["n"] + 1 / training_statistics["n"]
        )
        if abs(shift) > _MAX_FEATURE_SHIFT + 2 * standard_error:
            feature_name = quantity_name.removesuffix(_REGION_MEAN_ENDING)
            shift_sentences.append(
                f"The mean of {feature_name} over regions differs by {shift:+.2f} "
                "standard deviations of the training people."
            )
    return shift_sentences


def largest_shift_table(
    training_mix_record: Mapping[str, Any], test_mix_record: Mapping[str, Any]
) -> pd.DataFrame:
    """Return the category whose share differs most, by characteristic.

    Parameters
    ----------
    training_mix_record, test_mix_record : mapping
        From :func:`make_case_mix`.

    Returns
    -------
    DataFrame
        One row for class, sex, site and scanner, where both have people with values:
        characteristic, category, and its shares of the people, training and test.
        The category is empty, and the shares are NaN, without a common category.
    """
    shift_records: list[dict[str, Any]] = []
    for characteristic_name in ("class", *COUNTED_KINDS):
        n_training_by_category, n_test_by_category = _match_category_counts(
            training_mix_record, test_mix_record, characteristic_name
        )
        share_pair_by_category = _pair_shares_by_category(
            n_training_by_category, n_test_by_category
        )
        if not share_pair_by_category:
            continue
        shift_record: dict[str, Any] = {
            "characteristic": characteristic_name,
            "category": "",
        }
        if n_training_by_category.keys() & n_test_by_category.keys():
            category_name, (training_share, test_share) = max(
                share_pair_by_category.items(),
                key=lambda item: abs(item[1][1] - item[1][0]),
            )
            shift_record |= {
                "category": category_name,
                "training": training_share,
                "test": test_share,
            }
        shift_records.append(shift_record)
    column_names = ["characteristic", "category", "training", "test"]
    return pd.DataFrame(shift_records, columns=column_names)


def _pair_shares_by_category(
    n_training_by_category: Mapping[str, int], n_test_by_category: Mapping[str, int]
) -> dict[str, tuple[float, float]]:
    """Return the shares of training and test people by category; {} without either.

    >>> _pair_shares_by_category({"F": 3, "M": 1}, {"F": 2})
    {'F': (0.75, 1.0), 'M': (0.25, 0.0)}
    """
    n_training = sum(n_training_by_category.values())
    n_test = sum(n_test_by_category.values())
    if n_training == 0 or n_test == 0:
        return {}
    return {
        category_name: (
            n_training_by_category.get(category_name, 0) / n_training,
            n_test_by_category.get(category_name, 0) / n_test,
        )
        for category_name in [*n_training_by_category, *n_test_by_category]
    }


def _match_category_counts(
    training_mix_record: Mapping[str, Any],
    test_mix_record: Mapping[str, Any],
    characteristic_name: str,
) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return people by category, of training and test, in the same spellings."""
    if characteristic_name == "class":
        return training_mix_record["classes"], test_mix_record["classes"]
    n_training_by_category = (
        training_mix_record["counts"].get(characteristic_name) or {}
    )
    n_test_by_category = test_mix_record["counts"].get(characteristic_name) or {}
    if characteristic_name == "sex" and n_training_by_category and n_test_by_category:
        n_test_by_category = _count_people_by_sex(
            n_test_by_category, n_training_by_category
        )
    return n_training_by_category, n_test_by_category


def _count_people_by_sex(
    n_test_by_category: Mapping[str, int], n_training_by_category: Mapping[str, int]
) -> Mapping[str, int]:
    """Return the counts of the test people in the spellings of the training."""
    spelling_by_sex = find_known_sex_by_spelling(
        n_test_by_category, n_training_by_category
    )
    n_people_by_sex = Counter[str]()
    for sex, n_people in n_test_by_category.items():
        n_people_by_sex[spelling_by_sex.get(sex, sex)] += n_people
    return n_people_by_sex


def _list_case_mix_rows(
    characteristic_name: str,
    n_training_by_category: Mapping[str, int],
    n_test_by_category: Mapping[str, int],
) -> list[tuple[str, str, str, str, str]]:
    """Return a row for every value of a characteristic."""
    share_pair_by_category = _pair_shares_by_category(
        n_training_by_category, n_test_by_category
    )
    return [
        (
            f"{characteristic_name}: {category_name}",
            _make_category_share_text(n_training_by_category, category_name),
            _make_category_share_text(n_test_by_category, category_name),
            "",
            _make_points_text(*share_pair_by_category[category_name])
            if share_pair_by_category
            else "",
        )
        for category_name in dict.fromkeys(
            [*n_training_by_category, *n_test_by_category]
        )
    ]


def _make_points_text(training_share: float, test_share: float) -> str:
    """Return a difference of shares in points of percentage.

    >>> _make_points_text(0.16, 0.04), _make_points_text(0.16, 0.161)
    ('-12', '0')
    """
    n_points = round(100 * (test_share - training_share))
    return f"{n_points:+d}" if n_points else "0"


def _make_category_share_text(
    n_people_by_category: Mapping[str, int], category_name: str
) -> str:
    """Return people and share of a value; "n/a" where nobody has any."""
    n_people = sum(n_people_by_category.values())
    if n_people == 0:
        return "n/a"
    n_in_category = n_people_by_category.get(category_name, 0)
    return f"{n_in_category} ({n_in_category / n_people:.0%})"


def _make_mean_sd_text(statistic_by_name: Mapping[str, float] | None) -> str:
    """Return mean and s.d. as text; "n/a" where nobody has a value."""
    if not statistic_by_name or not statistic_by_name["n"]:
        return "n/a"
    return f"{statistic_by_name['mean']:.4g} ({statistic_by_name['sd']:.3g})"


class _GroupScore(NamedTuple):
    """Balanced accuracy of a group; center and standard error with added people."""

    estimate: float
    interval_center: float
    standard_error: float


class _GroupCounts(NamedTuple):
    """Correct and all predictions of each person (row) in each class (column)."""

    correct_counts: np.ndarray
    prediction_counts: np.ndarray

    @property
    def n_people(self) -> int:
        """Number of people with predictions in these classes."""
        return int((self.prediction_counts.sum(axis=1) > 0).sum())

    def compute_group_score(self, n_pseudo_people_per_side: float) -> _GroupScore:
        """Score a group with this many correct, and as many false, people added."""
        n_classes = self.correct_counts.shape[1]
        class_prediction_counts = self.prediction_counts.sum(axis=0)
        class_correct_counts = self.correct_counts.sum(axis=0)
        class_people_counts = (self.prediction_counts > 0).sum(axis=0)
        # An added person has the mean number of scans.
        class_mean_scans = class_prediction_counts / class_people_counts
        added_scan_counts = n_pseudo_people_per_side * class_mean_scans
        padded_prediction_counts = class_prediction_counts + 2 * added_scan_counts
        padded_recalls = (
            class_correct_counts + added_scan_counts
        ) / padded_prediction_counts
        # Few people vary too little around their own mean.
        inflation_factors = np.sqrt(class_people_counts / (class_people_counts - 1))
        residuals = self.correct_counts - padded_recalls * self.prediction_counts
        residuals = residuals * inflation_factors / padded_prediction_counts
        variance = ((residuals.sum(axis=1) / n_classes) ** 2).sum()
        added_residuals = (
            class_mean_scans * inflation_factors / padded_prediction_counts / n_classes
        )
        added_squares = added_residuals**2 * (
            (1 - padded_recalls) ** 2 + padded_recalls**2
        )
        variance += n_pseudo_people_per_side * added_squares.sum()
        return _GroupScore(
            float((class_correct_counts / class_prediction_counts).mean()),
            float(padded_recalls.mean()),
            float(np.sqrt(variance)),
        )


def choose_subgroup_columns(
    table: pd.DataFrame, columns: str | Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the columns whose groups are scored.

    Parameters
    ----------
    table : DataFrame
        Of a cohort.
    columns : str or sequence of str, optional
        Columns, or kinds such as "age"; by default sex, age, site and scanner, where
        the table has one with two groups or more.

    Returns
    -------
    tuple of str
        Columns of the table.

    Raises
    ------
    ParameterError
        If a column is unknown, or has a group for every second person.
    """
    if columns is not None:
        columns = [columns] if isinstance(columns, str) else columns
        column_names = [
            find_covariate_column(table, column_name) for column_name in columns
        ]
        for column_name in column_names:
            person_group_series = make_group_by_person_series(table, column_name)
            if 2 * person_group_series.nunique() > len(person_group_series):
                raise ParameterError(
                    f"{option_text('subgroups')} names {column_name}, which has "
                    f"{person_group_series.nunique()} values among "
                    f"{len(person_group_series)} people. Name a column with few "
                    "groups, for example sex."
                )
        return tuple(dict.fromkeys(column_names))
    column_by_kind: dict[str, str] = {}
    for column_name in table.columns.drop(list(KEY_COLUMNS), errors="ignore"):
        covariate_kind = find_acquisition_kind(column_name)
        if covariate_kind not in SUBGROUP_KINDS or covariate_kind in column_by_kind:
            continue
        person_group_series = make_group_by_person_series(table, column_name)
        if (
            person_group_series.nunique() > 1
            and 2 * person_group_series.nunique() <= len(person_group_series)
        ):
            column_by_kind[covariate_kind] = str(column_name)
    return tuple(
        column_by_kind[covariate_kind]
        for covariate_kind in SUBGROUP_KINDS
        if covariate_kind in column_by_kind
    )


def make_group_by_person_series(table: pd.DataFrame, column_name: str) -> pd.Series:
    """Return the group of every person by a column: its values, or thirds of numbers.

    Parameters
    ----------
    table : DataFrame
        Of a cohort.
    column_name : str
        Its column.

    Returns
    -------
    Series of text, by participant
        A person belongs to the group of the first scan with a value; people without a
        value are left out. Ages and other quantities are cut at the thirds of the
        people, rounded to three digits; the names of the groups have the cut points.
        Groups are categories, in order.
    """
    sorted_table = table.iloc[order_rows_by_visit(table)]
    known_table = sorted_table.dropna(subset=column_name).drop_duplicates("participant")
    person_value_series = known_table.set_index("participant")[column_name]
    if not len(person_value_series) or is_categorical_covariate(
        column_name, table[column_name]
    ):
        return to_group_text_series(person_value_series).astype("category")
    numeric_values = pd.to_numeric(person_value_series)
    cut_points = [
        float(f"{cut_point:.3g}")
        for cut_point in numeric_values.quantile([1 / 3, 2 / 3])
    ]
    cut_points = [
        cut_point
        for cut_point in dict.fromkeys(cut_points)
        if numeric_values.min() < cut_point <= numeric_values.max()
    ]
    if not cut_points:
        return pd.Series("all", person_value_series.index).astype("category")
    group_titles = [f"under {cut_points[0]:g}"]
    group_titles += [
        f"{lower_cut:g} to under {upper_cut:g}"
        for lower_cut, upper_cut in pairwise(cut_points)
    ]
    group_titles.append(f"{cut_points[-1]:g} and over")
    group_codes = np.searchsorted(
        cut_points, numeric_values.to_numpy(float), side="right"
    )
    group_categorical = pd.Categorical.from_codes(
        group_codes, group_titles, ordered=True
    )
    return pd.Series(group_categorical, person_value_series.index)


def subgroup_table(
    evaluation: Evaluation,
    columns: str | Sequence[str] | None = None,
    model: str | None = None,
) -> pd.DataFrame:
    """Score a model in groups of people.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds, or an external evaluation.
    columns : str or sequence of str, optional
        As of :func:`choose_subgroup_columns`; by default those of the study.
    model : str, optional
        Name of the model; by default the first.

    Returns
    -------
    DataFrame
        One row per group: column, group, people (of a scored group those of the
        classes that are scored), classes, balanced_accuracy, low and high (95% interval
        over people), all_groups (score of the scored groups of the column together),
        chance (expected score of these predictions if labels are permuted at random
        among the scans of the scored groups and classes: below one over the number of
        scored classes if the model also predicts other classes),
        and note: why a group has no score. Scores of a column are over the same
        classes, those with two people in every group that is scored; groups below ten
        people of all classes have no score.

    Raises
    ------
    ParameterError
        As of :func:`choose_subgroup_columns`, or for an unknown model.
    """
    table_records: list[dict[str, Any]] = []
    for column_name, column_counts in _make_counts_by_column(
        evaluation, columns, model
    ).items():
        counts_by_group = column_counts.counts_by_group
        class_names = column_counts.class_names
        pooled_accuracy = np.nan
        if counts_by_group:
            stacked_count_arrays = map(
                np.vstack, zip(*counts_by_group.values(), strict=True)
            )
            pooled_accuracy = (
                _GroupCounts(*stacked_count_arrays)
                .compute_group_score(2 / len(class_names))
                .estimate
            )
        people_count_series = column_counts.person_group_series.value_counts(sort=False)
        for group_name, n_people in people_count_series.items():
            table_record = {
                "column": column_name,
                "group": str(group_name),
                "people": int(n_people),
            }
            table_record["classes"] = ", ".join(class_names)
            table_record["all_groups"] = pooled_accuracy
            table_record["chance"] = column_counts.chance_score
            table_record |= dict.fromkeys(("balanced_accuracy", "low", "high"), np.nan)
            table_record["note"] = column_counts.note_by_group.get(str(group_name), "")
            if group_name in counts_by_group:
                group_counts = counts_by_group[group_name]
                table_record["people"] = group_counts.n_people
                group_score = group_counts.compute_group_score(2 / len(class_names))
                half_width = NORMAL_QUANTILE * group_score.standard_error
                table_record["balanced_accuracy"] = group_score.estimate
                table_record["low"] = max(0.0, group_score.interval_center - half_width)
                table_record["high"] = min(
                    1.0, group_score.interval_center + half_width
                )
            table_records.append(table_record)
    column_names = ["column", "group", "people", "classes", "balanced_accuracy"]
    column_names += ["low", "high", "all_groups", "chance", "note"]
    return pd.DataFrame(table_records, columns=column_names)


def subgroup_gap_table(
    evaluation: Evaluation,
    columns: str | Sequence[str] | None = None,
    model: str | None = None,
    random_state: int = 0,
) -> pd.DataFrame:
    """Return the largest difference between groups of people, by column.

    Parameters
    ----------
    evaluation, columns, model
        As of :func:`subgroup_table`.
    random_state : int
        Seed of the draws of the largest difference.

    Returns
    -------
    DataFrame
        One row per column with two scored groups or more: column, higher and lower
        (groups), difference of their balanced accuracies, low, high, and n_pairs. The
        pair is that whose difference is largest in units of its standard error. The
        intervals hold for all pairs of all columns at the same time (95%), so the
        choice of the largest needs no further correction. They treat the fitted models
        as fixed.
    """
    group_scores_by_column: dict[str, dict[str, _GroupScore]] = {}
    for column_name, column_counts in _make_counts_by_column(
        evaluation, columns, model
    ).items():
        counts_by_group = column_counts.counts_by_group
        n_classes = len(column_counts.class_names)
        if len(counts_by_group) > 1:
            group_scores_by_column[column_name] = {
                group_name: group_counts.compute_group_score(1 / n_classes)
                for group_name, group_counts in counts_by_group.items()
            }
    gap_records = []
    for column_name, score_by_group in group_scores_by_column.items():
        standard_errors = np.array([s.standard_error for s in score_by_group.values()])
        confidence_level = 1 - _ALPHA / len(group_scores_by_column)
        rng = np.random.default_rng(random_state)
        largest_difference_quantile = _simulate_critical_value(
            standard_errors, confidence_level, rng
        )
        gap_records.append(
            {"column": column_name}
            | _make_largest_gap_record(score_by_group, largest_difference_quantile)
        )
    column_names = [
        "column",
        "higher",
        "lower",
        "difference",
        "low",
        "high",
        "n_pairs",
    ]
    return pd.DataFrame(gap_records, columns=column_names)


class _ColumnCounts(NamedTuple):
    """Groups of people by a column, counts of scored groups, and classes that count."""

    person_group_series: pd.Series
    counts_by_group: dict[str, _GroupCounts]
    class_names: tuple[str, ...]
    chance_score: float
    """Expected score of the scored groups for permuted labels; NaN without groups."""
    note_by_group: dict[str, str]
    """Why a group has no score, for every group without one."""


def _make_counts_by_column(
    evaluation: Evaluation, columns: str | Sequence[str] | None, model_name: str | None
) -> dict[str, _ColumnCounts]:
    """Return the groups of people by each column, and their counts."""
    if columns is None:
        columns = evaluation.settings.get("subgroups")
    if columns is not None:
        columns = (columns,) if isinstance(columns, str) else tuple(columns)
    return {
        column_name: _make_column_counts(evaluation, column_name, model_name)
        for column_name in _choose_group_column_names(evaluation, columns)
    }


@lru_cache(maxsize=16)  # hashed by identity; tables, checklist and figure use it
def _choose_group_column_names(
    evaluation: Evaluation, columns: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Return the columns whose groups are scored."""
    return choose_subgroup_columns(evaluation.cohort.table, columns)


@lru_cache(maxsize=16)
def _make_column_counts(
    evaluation: Evaluation, column_name: str, model_name: str | None
) -> _ColumnCounts:
    """Return the groups of people by a column, and their counts; only to be read."""
    person_group_series = make_group_by_person_series(
        evaluation.cohort.table, column_name
    )
    make_unscored_counts = partial(_ColumnCounts, person_group_series, {}, (), np.nan)
    model_name = evaluation.models[0] if model_name is None else model_name
    check_choice("model", model_name, evaluation.models)
    fit_table, prediction_table = evaluation.fits, evaluation.predictions
    has_failed_fit = (
        fit_table.loc[fit_table["model"] == model_name, "failed"] != ""
    ).any()
    model_prediction_table = prediction_table[prediction_table["model"] == model_name]
    n_people_by_group = {
        str(group_name): int(n_people)
        for group_name, n_people in person_group_series.value_counts(sort=False).items()
    }
    if has_failed_fit or model_prediction_table.empty:
        return make_unscored_counts(
            dict.fromkeys(n_people_by_group, "the model failed")
        )
    correct_flag_groups = model_prediction_table.assign(
        is_correct=model_prediction_table["truth"]
        == model_prediction_table["predicted"]
    ).groupby(["participant", "truth"])["is_correct"]
    correct_count_table, prediction_count_table = (
        count_series.unstack(fill_value=0).reindex(
            columns=list(evaluation.cohort.classes), fill_value=0
        )
        for count_series in (correct_flag_groups.sum(), correct_flag_groups.size())
    )
    row_group_series = person_group_series.reindex(correct_count_table.index)
    class_mask_by_group: dict[str, np.ndarray] = {}
    note_by_group: dict[str, str] = {}
    for group_name, n_people in n_people_by_group.items():
        people_count_series = (
            prediction_count_table[row_group_series == group_name] > 0
        ).sum()
        scored_class_mask = people_count_series.to_numpy() >= MIN_SCORED_OF_CLASS
        if n_people < MIN_PEOPLE_OF_GROUP:
            note_by_group[group_name] = TOO_FEW_PEOPLE
        elif scored_class_mask.sum() < 2:
            note_by_group[group_name] = TOO_FEW_CLASSES
        else:
            class_mask_by_group[group_name] = scored_class_mask
    if not class_mask_by_group:
        return make_unscored_counts(note_by_group)
    common_class_mask = np.logical_and.reduce(list(class_mask_by_group.values()))
    if common_class_mask.sum() < 2:
        common_class_names = list(correct_count_table.columns[common_class_mask])
        common_note = _write_common_classes_note(
            common_class_names, class_mask_by_group, note_by_group
        )
        note_by_group |= dict.fromkeys(class_mask_by_group, common_note)
        return make_unscored_counts(note_by_group)
    counts_by_group = {
        group_name: _GroupCounts(
            correct_count_table.loc[
                row_group_series == group_name, common_class_mask
            ].to_numpy(float),
            prediction_count_table.loc[
                row_group_series == group_name, common_class_mask
            ].to_numpy(float),
        )
        for group_name in class_mask_by_group
    }
    class_names = tuple(correct_count_table.columns[common_class_mask])
    scored_person_mask = row_group_series.isin(list(counts_by_group))
    chance_score = _compute_chance_score(
        model_prediction_table, row_group_series.index[scored_person_mask], class_names
    )
    return _ColumnCounts(
        person_group_series, counts_by_group, class_names, chance_score, note_by_group
    )


def _write_common_classes_note(
    common_class_names: Sequence[str],
    large_group_set: Collection[str],
    small_group_set: Collection[str],
) -> str:
    """Return why groups that could be scored alone have fewer than two common classes.

    >>> _write_common_classes_note(["AD"], ["a", "b"], [])
    'only AD has at least 2 people in every group'
    >>> _write_common_classes_note([], ["a", "b"], ["c"])
    'no class has at least 2 people in all of the groups a and b'
    """
    subject_text = f"only {common_class_names[0]}" if common_class_names else "no class"
    place_text = "every group"
    if small_group_set:
        place_text = f"all of the groups {join_with_and(large_group_set)}"
    return f"{subject_text} has at least {MIN_SCORED_OF_CLASS} people in {place_text}"


def scored_columns_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return which columns of groups have scores, and why others have none.

    Parameters
    ----------
    evaluation : Evaluation
        As of :func:`subgroup_table`.

    Returns
    -------
    DataFrame
        One row per column: column, n_groups, n_scored (groups), and reason, which is
        empty if a group has a score.
    """
    column_records: list[dict[str, Any]] = []
    for column_name, group_table in subgroup_table(evaluation).groupby(
        "column", sort=False
    ):
        scored_group_mask = group_table["note"] == ""
        reason_text = ""
        if not scored_group_mask.any():
            groups_by_note = group_table.groupby("note", sort=False)["group"]
            reason_text = "; ".join(
                f"{join_with_commas(note_groups, 3)}: {note}"
                for note, note_groups in groups_by_note
            )
            if len(groups_by_note) == 1:
                note = group_table["note"].iloc[0]
                reason_text = _REASON_BY_NOTE.get(note, note)
        column_records.append(
            {
                "column": column_name,
                "n_groups": len(group_table),
                "n_scored": int(scored_group_mask.sum()),
                "reason": reason_text,
            }
        )
    return pd.DataFrame(
        column_records, columns=["column", "n_groups", "n_scored", "reason"]
    )


def _compute_chance_score(
    model_prediction_table: pd.DataFrame,
    person_ids: pd.Index,
    class_names: Sequence[str],
) -> float:
    """Return the expected mean recall of some classes for permuted labels.

    The recall of a class is then the share of scans that are predicted in it.
    """
    scored_scan_mask = model_prediction_table["participant"].isin(
        person_ids
    ) & model_prediction_table["truth"].isin(class_names)
    return float(
        model_prediction_table.loc[scored_scan_mask, "predicted"]
        .isin(class_names)
        .mean()
        / len(class_names)
    )


def _simulate_critical_value(
    standard_errors: np.ndarray, confidence_level: float, rng: np.random.Generator
) -> float:
    """Return a quantile of the largest difference of groups in standard errors."""
    normal_draws = rng.normal(size=(_N_DRAWS, len(standard_errors))) * standard_errors
    largest_differences = np.zeros(_N_DRAWS)
    for i, j in combinations(range(len(standard_errors)), 2):
        standard_error = np.hypot(standard_errors[i], standard_errors[j])
        np.maximum(
            largest_differences,
            np.abs(normal_draws[:, i] - normal_draws[:, j]) / standard_error,
            out=largest_differences,
        )
    return float(np.quantile(largest_differences, confidence_level))


def _make_largest_gap_record(
    score_by_group: Mapping[str, _GroupScore], critical_value: float
) -> dict[str, Any]:
    """Return the difference that is largest in its standard error, with interval."""
    z_and_record_pairs = []
    for first_group_name, second_group_name in combinations(score_by_group, 2):
        sorted_group_names = sorted(
            (first_group_name, second_group_name),
            key=lambda group_name: -score_by_group[group_name].estimate,
        )
        higher_score, lower_score = (
            score_by_group[group_name] for group_name in sorted_group_names
        )
        standard_error = np.hypot(
            higher_score.standard_error, lower_score.standard_error
        )
        interval_center = higher_score.interval_center - lower_score.interval_center
        half_width = critical_value * standard_error
        gap_record = {
            "higher": sorted_group_names[0],
            "lower": sorted_group_names[1],
            "difference": higher_score.estimate - lower_score.estimate,
            "low": max(-1.0, interval_center - half_width),
            "high": min(1.0, interval_center + half_width),
        }
        z_and_record_pairs.append((interval_center / standard_error, gap_record))
    _, largest_gap_record = max(z_and_record_pairs, key=lambda item: item[0])
    return largest_gap_record | {"n_pairs": len(z_and_record_pairs)}
