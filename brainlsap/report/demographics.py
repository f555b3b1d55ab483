"""The table of participants of a paper: characteristics by class, with tests."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency, kruskal, skew
from scipy.stats import f as f_distribution

from brainlsap.data.covariates import (
    KEY_COLUMNS,
    find_covariate_kind,
    is_categorical_covariate,
)
from brainlsap.data.participants import list_visit_ranks
from brainlsap.evaluation.comparison import adjust_p_values
from brainlsap.evaluation.confounds import find_covariate_column
from brainlsap.evaluation.region_tests import MIN_PEOPLE_SHOWN
from brainlsap.exceptions import ParameterError
from brainlsap.text import count_text, option_text, p_text, verb_form

DEFAULT_COLUMNS = ("age", "sex", "site")
"""Default columns of the table of participants, if the cohort has them."""

REPORT_COLUMNS = ("code", "quality", "quality_unlike", "quality_swapped")
"""Columns of a report in the table of scans."""

MAX_SKEWNESS = 1.0
"""Largest skewness within classes at which a column is described by mean and s.d."""

MAX_COUNTED_VALUES = 2
"""A numeric column with at most this many different values is shown as categories."""

MAX_CATEGORIES = 10
"""Largest number of categories with a row each; otherwise, their number is shown."""

MIN_EXPECTED_COUNT = 5.0
"""Smallest expected count for which the chi-squared distribution is used."""

N_LABEL_PERMUTATIONS = 5000
"""Permutations of the labels for the test of small counts."""

# Draw the permutations in blocks of at most so many labels, to bound the memory.
_MAX_DRAWN_LABELS = 200_000

WELCH, KRUSKAL_WALLIS = "Welch ANOVA", "Kruskal-Wallis"
CHI_SQUARED, PERMUTED_COUNTS = "chi-squared", "chi-squared, permuted"


class CharacteristicTest(NamedTuple):
    """Name and p-value of the test of one characteristic between classes."""

    name: str
    p_value: float


def demographics_table(
    cohort_table: pd.DataFrame,
    classes: Sequence[str],
    columns: str | Sequence[str] | None = None,
    *,
    is_corrected: bool = False,
    random_state: int = 0,
) -> pd.DataFrame:
    """Return the characteristics of the participants by class, as Table 1 of a paper.

    Participants are counted, not scans. A participant counts once in each class, with
    the first scan in it, and once in the total. Tests count everybody once, with the
    class of the first scan, and leave missing values out.

    Parameters
    ----------
    cohort_table : DataFrame
        One row per scan: participant, label, any covariates, and session where visits
        are known.
    classes : sequence of str
        Order of the columns.
    columns : str or sequence of str, optional
        Covariates, by any usual name of their kind (`AGE`, `PTGENDER`); by default
        those of age, sex and site that the table has.
    is_corrected : bool
        Whether to add p-values with Holm's correction for the number of tests.
    random_state : int
        Seed of the permutations.

    Returns
    -------
    DataFrame
        characteristic, one column per class, total, missing (participants without a
        value), test and p. The rows are participants and scans, then of each column:

        - categories (text, sex, site, whole numbers of few values; the audit decides
          by the same rule): one row per category, n (% of those with a value). Of more
          than ten categories, or of more than one for every two participants: the
          number of different values. The test is chi-squared, by permutation of the
          labels where a count below 5 is expected.
        - numbers: mean ± s.d. and Welch's analysis of variance (Welch 1951, Biometrika
          38:330); median [quartiles] and the Kruskal-Wallis test where the skewness
          within classes exceeds 1. They are not shown for fewer than three
          participants of a class.

        Without tests where there is one class.

    Raises
    ------
    ParameterError
        If a column is unknown, names people, or is named twice.

    Examples
    --------
    >>> table = pd.DataFrame({"participant": range(8), "label": ["CN", "AD"] * 4})
    >>> table["SEX"] = ["F", "M", "F", "F", "M", "M", "F", "F"]
    >>> demographics_table(table, ["CN", "AD"]).drop(columns=["test", "missing"])
      characteristic       CN       AD    total      p
    0   participants        4        4        8
    1          scans        4        4        8
    2      SEX: F, n  3 (75%)  2 (50%)  5 (62%)  1.000
    3      SEX: M, n  1 (25%)  2 (50%)  3 (38%)
    """
    column_names = find_characteristic_columns(cohort_table, columns)
    scan_table = sort_scan_table_by_visit(cohort_table)
    scan_table = scan_table.assign(label=scan_table["label"].astype(str))
    participant_class_table = scan_table.drop_duplicates(["participant", "label"])
    people_table = scan_table.drop_duplicates("participant")
    table_by_group = {
        class_name: participant_class_table[
            participant_class_table["label"] == class_name
        ]
        for class_name in classes
    }
    table_by_group["total"] = people_table
    scan_count_series = scan_table["label"].value_counts()
    table_records: list[dict[str, str]] = [
        {"characteristic": "participants"}
        | {
            class_name: str(len(group_table))
            for class_name, group_table in table_by_group.items()
        },
        {"characteristic": "scans"}
        | {
            class_name: str(scan_count_series.get(class_name, 0))
            for class_name in classes
        }
        | {"total": str(len(scan_table))},
    ]
    p_value_by_row: dict[int, float] = {}
    for column_name in column_names:
        column_series = clean_covariate_series(people_table, column_name)
        series_by_group = {
            class_name: clean_covariate_series(group_table, column_name)
            for class_name, group_table in table_by_group.items()
        }
        first_row_index = len(table_records)
        characteristic_test = CharacteristicTest("", np.nan)
        if is_categorical(column_name, column_series):
            table_records += _make_count_records(column_name, series_by_group)
            if len(classes) > 1:
                characteristic_test = compare_counts_between_classes(
                    column_series, people_table["label"], random_state=random_state
                )
        else:
            number_series = pd.to_numeric(column_series, errors="coerce")
            is_skewed = (
                abs(_compute_skewness(number_series, people_table["label"]))
                > MAX_SKEWNESS
            )
            table_records.append(
                _make_number_record(column_name, series_by_group, is_skewed=is_skewed)
            )
            if len(classes) > 1:
                characteristic_test = compare_numbers_between_classes(
                    number_series, people_table["label"], is_skewed=is_skewed
                )
        table_records[first_row_index]["missing"] = str(int(column_series.isna().sum()))
        table_records[first_row_index]["test"] = characteristic_test.name
        p_value_by_row[first_row_index] = characteristic_test.p_value
    characteristics_table = pd.DataFrame(table_records).fillna("")
    if len(classes) < 2 or not p_value_by_row:
        return characteristics_table.drop(columns="test", errors="ignore")
    p_values = pd.Series(p_value_by_row)
    characteristics_table["p"] = p_values.map(p_text).reindex(
        characteristics_table.index, fill_value=""
    )
    if is_corrected:
        corrected_p_values = pd.Series(adjust_p_values(p_values), p_values.index)
        characteristics_table["Holm p"] = corrected_p_values.map(p_text).reindex(
            characteristics_table.index, fill_value=""
        )
    return characteristics_table


def count_people_in_several_classes(cohort_table: pd.DataFrame) -> int:
    """Return the number of people whose scans have different labels."""
    return int((cohort_table.groupby("participant")["label"].nunique() > 1).sum())


def several_classes_text(cohort_table: pd.DataFrame) -> str:
    """Return how Table 1 counts people with scans in several classes; "" for none."""
    scan_table = sort_scan_table_by_visit(cohort_table)
    n_people = count_people_in_several_classes(cohort_table)
    if not n_people:
        return ""
    first_labels = scan_table.drop_duplicates("participant")["label"].astype(str)
    first_counts_text = ", ".join(
        f"{class_name} {n_in_class}"
        for class_name, n_in_class in first_labels.value_counts(sort=False).items()
    )
    pronoun, verb = ("They", "count") if n_people > 1 else ("This one", "counts")
    return (
        f"{count_text(n_people, 'participant')} {verb_form(n_people, 'have')} scans in "
        f"several classes. {pronoun} {verb} once in the column of each of these "
        f"classes. In the total and in the tests, {pronoun.lower()} {verb} once, in "
        f"the class of the first scan ({first_counts_text})."
    )


def make_table1_settings(
    cohort_table: pd.DataFrame,
    columns: str | Sequence[str] | None,
    *,
    is_corrected: bool = False,
) -> dict[str, dict[str, object]]:
    """Return the settings of an evaluation that say what its Table 1 shows.

    Raises
    ------
    ParameterError
        If a column is unknown, names people, or is named twice.
    """
    column_names = None
    if columns is not None:
        column_names = find_characteristic_columns(cohort_table, columns)
    return {"table1": {"columns": column_names, "is_corrected": is_corrected}}


def find_characteristic_columns(
    cohort_table: pd.DataFrame, columns: str | Sequence[str] | None
) -> list[str]:
    """Return the covariates that names mean; by default age, sex and site.

    Raises
    ------
    ParameterError
        If a column is unknown, names people, or is named twice.
    """
    if columns is None:
        return [
            str(covariate_series.name)
            for column_name in DEFAULT_COLUMNS
            if (covariate_series := find_covariate_series(cohort_table, column_name))
            is not None
        ]
    # The code of a scan and its quality are columns of a report, not of the study.
    cohort_table = cohort_table.drop(columns=[*REPORT_COLUMNS], errors="ignore")
    requested_names = [columns] if isinstance(columns, str) else [*columns]
    column_names = [
        find_covariate_column(cohort_table, requested_name)
        for requested_name in requested_names
    ]
    for column_name in column_names:
        if column_name in KEY_COLUMNS or find_covariate_kind(column_name) == "family":
            raise ParameterError(
                f"{option_text('table1')} has {column_name!r}, which names people or "
                "families. Leave this column out."
            )
        if column_names.count(column_name) > 1:
            raise ParameterError(
                f"{option_text('table1')} names {column_name!r} twice. Name each "
                "column once."
            )
    return column_names


def find_covariate_series(
    cohort_table: pd.DataFrame, covariate_name: str
) -> pd.Series | None:
    """Return the column of age, sex or site, by any usual name of it, or None."""
    try:
        column_name = find_covariate_column(cohort_table, covariate_name)
    except ParameterError:
        return None
    column_series = clean_covariate_series(cohort_table, column_name)
    if covariate_name == "age":
        return pd.to_numeric(column_series, errors="coerce")
    return column_series


def clean_covariate_series(cohort_table: pd.DataFrame, column_name: str) -> pd.Series:
    """Return a column with blank cells and n/a as missing values."""
    column_series = cohort_table[column_name]
    cell_texts = column_series.astype(str).str.strip().str.lower()
    return column_series.mask(cell_texts.isin(["", "n/a", "nan", "none"]))


def sort_scan_table_by_visit(cohort_table: pd.DataFrame) -> pd.DataFrame:
    """Return scans in the order of their visits, where these are known."""
    if "session" not in cohort_table:
        return cohort_table
    visit_ranks = list_visit_ranks(cohort_table)
    return cohort_table.iloc[
        sorted(range(len(cohort_table)), key=visit_ranks.__getitem__)
    ]


def is_categorical(column_name: str, column_series: pd.Series) -> bool:
    """Return whether the values of a column are counted as categories.

    They are where audit and regression take them for groups
    (`is_categorical_covariate`: text, known names, whole numbers of few values), or
    where there are at most :data:`MAX_COUNTED_VALUES`.
    """
    non_missing_values = column_series.dropna()
    if non_missing_values.empty or is_categorical_covariate(
        column_name, non_missing_values
    ):
        return True
    return non_missing_values.nunique() <= MAX_COUNTED_VALUES


def _compute_skewness(number_series: pd.Series, class_label_series: pd.Series) -> float:
    """Return the skewness of deviations from the class means; 0 where undefined."""
    deviations = (
        number_series - number_series.groupby(class_label_series).transform("mean")
    ).dropna()
    if len(deviations) < 3 or np.ptp(deviations) < 1e-12:
        return 0.0
    return float(skew(deviations, bias=False))


def _make_number_record(
    column_title: str, series_by_group: dict[str, pd.Series], *, is_skewed: bool
) -> dict[str, str]:
    """Return a column of numbers as one row: mean ± s.d., or median [quartiles]."""
    statistic_title = "median [quartiles]" if is_skewed else "mean ± s.d."
    table_record = {"characteristic": f"{column_title}, {statistic_title}"}
    for group_name, group_series in series_by_group.items():
        number_series = pd.to_numeric(group_series, errors="coerce").dropna()
        if len(number_series) < MIN_PEOPLE_SHOWN:
            table_record[group_name] = "n/a"
        elif is_skewed:
            lower_quartile, median, upper_quartile = np.quantile(
                number_series, [0.25, 0.5, 0.75]
            )
            table_record[group_name] = (
                f"{median:z.1f} [{lower_quartile:z.1f}, {upper_quartile:z.1f}]"
            )
        else:
            table_record[group_name] = (
                f"{number_series.mean():z.1f} ± {number_series.std():.1f}"
            )
    return table_record


def _make_count_records(
    column_title: str, series_by_group: dict[str, pd.Series]
) -> list[dict[str, str]]:
    """Return a column of categories as one row each, or their number if too many."""
    texts_by_group = {
        group_name: group_series.map(_category_text)
        for group_name, group_series in series_by_group.items()
    }
    total_texts = texts_by_group["total"].dropna()
    category_names = sorted(total_texts.unique(), key=_make_category_sort_key)
    if (
        len(category_names) > MAX_CATEGORIES
        or len(category_names) > len(total_texts) / 2
    ):
        count_text_by_group = {
            group_name: str(group_texts.nunique())
            for group_name, group_texts in texts_by_group.items()
        }
        table_record = {"characteristic": f"{column_title}, different values"}
        return [table_record | count_text_by_group]
    table_records = []
    for category in category_names:
        table_record = {"characteristic": f"{column_title}: {category}, n"}
        for group_name, group_texts in texts_by_group.items():
            n_people_in_category = int((group_texts == category).sum())
            n_known_cells = group_texts.notna().sum()
            share_text = (
                f" ({n_people_in_category / n_known_cells:.0%})"
                if n_known_cells
                else ""
            )
            table_record[group_name] = f"{n_people_in_category}{share_text}"
        table_records.append(table_record)
    return table_records


def _make_category_sort_key(category_text: str) -> tuple[float, str]:
    """Return a key that sorts numbers by size, before other categories."""
    try:
        return float(category_text), ""
    except ValueError:
        return float("inf"), category_text


def _category_text(cell_value: object) -> object:
    """Return a category as text, whole numbers without a point; missing stays."""
    if pd.isna(cell_value):
        return np.nan
    if isinstance(cell_value, float) and cell_value.is_integer():
        return str(int(cell_value))
    return str(cell_value)


def compare_numbers_between_classes(
    number_series: pd.Series, class_label_series: pd.Series, *, is_skewed: bool
) -> CharacteristicTest:
    """Test a number between classes: Welch's analysis of variance, or by ranks.

    p is NaN where a class that has values has fewer than two, or all values of a class
    are equal (Welch), or where all values are equal.
    """
    class_arrays = [
        class_values.to_numpy(float)
        for _, class_values in number_series.dropna().groupby(class_label_series)
    ]
    if is_skewed:
        test_name, can_test = (
            KRUSKAL_WALLIS,
            len(class_arrays) > 1 and number_series.nunique() > 1,
        )
        return CharacteristicTest(
            test_name, float(kruskal(*class_arrays).pvalue) if can_test else np.nan
        )
    return CharacteristicTest(WELCH, compute_welch_p_value(class_arrays))


def compute_welch_p_value(class_arrays: Sequence[np.ndarray]) -> float:
    r"""Return p of Welch's analysis of variance, for classes of unequal variance.

    With weights :math:`w_i = n_i / s_i^2`, their sum :math:`w` and the weighted mean
    :math:`\tilde x`,

    .. math:: F = \frac{\sum_i w_i (\bar x_i - \tilde x)^2 / (k - 1)}
              {1 + 2 (k - 2) \lambda / (k^2 - 1)}, \quad
              \lambda = \sum_i \frac{(1 - w_i / w)^2}{n_i - 1}

    with k - 1 and :math:`(k^2 - 1) / (3 \lambda)` degrees of freedom (Welch 1951).
    """
    n_classes = len(class_arrays)
    if n_classes < 2 or min(map(len, class_arrays)) < 2:
        return float("nan")
    class_sizes = np.array([len(class_values) for class_values in class_arrays])
    class_means = np.array([class_values.mean() for class_values in class_arrays])
    class_variances = np.array(
        [class_values.var(ddof=1) for class_values in class_arrays]
    )
    if (class_variances < 1e-12).any():
        return float("nan")
    class_weights = class_sizes / class_variances
    weight_shares = class_weights / class_weights.sum()
    between_variance = (
        class_weights * (class_means - weight_shares @ class_means) ** 2
    ).sum() / (n_classes - 1)
    welch_correction = ((1 - weight_shares) ** 2 / (class_sizes - 1)).sum()
    welch_statistic = between_variance / (
        1 + 2 * (n_classes - 2) * welch_correction / (n_classes**2 - 1)
    )
    error_degrees_of_freedom = (n_classes**2 - 1) / (3 * welch_correction)
    return float(
        f_distribution.sf(welch_statistic, n_classes - 1, error_degrees_of_freedom)
    )


def compare_counts_between_classes(
    column_series: pd.Series, class_label_series: pd.Series, *, random_state: int = 0
) -> CharacteristicTest:
    """Test counts of categories between classes by chi-squared.

    If a count below :data:`MIN_EXPECTED_COUNT` is expected, p is the share of
    permutations of the labels with a statistic as large, which keep both margins as
    Fisher's exact test does. The observed labels count as one of them.
    """
    category_texts = column_series.map(_category_text)
    known_cell_mask = category_texts.notna()
    contingency_counts = pd.crosstab(
        category_texts[known_cell_mask], class_label_series[known_cell_mask]
    ).to_numpy()
    if min(contingency_counts.shape, default=0) < 2:
        return CharacteristicTest(CHI_SQUARED, np.nan)
    chi_squared_result = chi2_contingency(contingency_counts, correction=False)
    expected_counts = chi_squared_result.expected_freq
    if expected_counts.min() >= MIN_EXPECTED_COUNT:
        return CharacteristicTest(CHI_SQUARED, float(chi_squared_result.pvalue))
    rng = np.random.default_rng(random_state)
    category_codes = np.unique(
        category_texts[known_cell_mask].astype(str), return_inverse=True
    )[1]
    label_codes = np.unique(class_label_series[known_cell_mask], return_inverse=True)[1]
    n_rows, n_columns = contingency_counts.shape
    n_cells = n_rows * n_columns
    n_exceeding = 1
    n_permutations_per_block = max(1, _MAX_DRAWN_LABELS // len(label_codes))
    for start_permutation in range(0, N_LABEL_PERMUTATIONS, n_permutations_per_block):
        n_block_permutations = min(
            n_permutations_per_block, N_LABEL_PERMUTATIONS - start_permutation
        )
        permuted_codes = rng.permuted(
            np.tile(label_codes, (n_block_permutations, 1)), axis=1
        )
        cell_codes = category_codes * n_columns + permuted_codes
        cell_codes += n_cells * np.arange(n_block_permutations)[:, None]
        permuted_counts = np.bincount(
            cell_codes.ravel(), minlength=n_block_permutations * n_cells
        )
        deviations = (
            permuted_counts.reshape(n_block_permutations, n_cells)
            - expected_counts.ravel()
        )
        permuted_statistics = (deviations**2 / expected_counts.ravel()).sum(axis=1)
        exceeding_permutation_mask = (
            permuted_statistics >= chi_squared_result.statistic - 1e-9
        )
        n_exceeding += int(exceeding_permutation_mask.sum())
    p_value = n_exceeding / (N_LABEL_PERMUTATIONS + 1)
    return CharacteristicTest(PERMUTED_COUNTS, float(p_value))
