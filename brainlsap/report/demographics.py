"""The table of participants of a paper: characteristics by class, with tests."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency, kruskal, skew
from scipy.stats import f as f_distribution

from brainlsap.data.covariates import KEY_COLUMNS, has_groups, kind_of
from brainlsap.data.find_files import visit_order
from brainlsap.evaluation.comparison import adjust_p_values
from brainlsap.evaluation.confounds import find_covariate_column
from brainlsap.evaluation.region_tests import MIN_PEOPLE_SHOWN
from brainlsap.exceptions import ParameterError
from brainlsap.text import option_text, p_text

DEFAULT_COLUMNS = ("age", "sex", "site")
"""Columns of the table of participants where none are named and the cohort has them."""

MAX_SKEWNESS = 1.0
"""Largest skewness within classes of a number that is described by mean and s.d."""

MAX_COUNTED_VALUES = 2
"""Numbers of at most this many values are counted as categories are."""

MAX_CATEGORIES = 10
"""Most categories that have a row each; of more, only their number is shown."""

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
    column_names = find_characteristics(cohort_table, columns)
    scan_table = sort_by_visit(cohort_table)
    scan_table = scan_table.assign(label=scan_table["label"].astype(str))
    visitors = scan_table.drop_duplicates(["participant", "label"])
    people = scan_table.drop_duplicates("participant")
    group_tables = {name: visitors[visitors["label"] == name] for name in classes}
    group_tables["total"] = people
    n_scans = scan_table["label"].value_counts()
    rows: list[dict[str, str]] = [
        {"characteristic": "participants"}
        | {name: str(len(group)) for name, group in group_tables.items()},
        {"characteristic": "scans"}
        | {name: str(n_scans.get(name, 0)) for name in classes}
        | {"total": str(len(scan_table))},
    ]
    p_values: dict[int, float] = {}
    for column_name in column_names:
        values = covariate_values(people, column_name)
        value_groups = {
            name: covariate_values(group, column_name)
            for name, group in group_tables.items()
        }
        first_row = len(rows)
        test = CharacteristicTest("", np.nan)
        if is_counted(column_name, values):
            rows += _count_rows(column_name, value_groups)
            if len(classes) > 1:
                test = compare_counts(
                    values, people["label"], random_state=random_state
                )
        else:
            numbers = pd.to_numeric(values, errors="coerce")
            is_skewed = abs(_skewness(numbers, people["label"])) > MAX_SKEWNESS
            rows.append(_number_row(column_name, value_groups, is_skewed=is_skewed))
            if len(classes) > 1:
                test = compare_numbers(numbers, people["label"], is_skewed=is_skewed)
        rows[first_row]["missing"] = str(int(values.isna().sum()))
        rows[first_row]["test"] = test.name
        p_values[first_row] = test.p_value
    table = pd.DataFrame(rows).fillna("")
    if len(classes) < 2 or not p_values:
        return table.drop(columns="test", errors="ignore")
    p_column = pd.Series(p_values)
    table["p"] = p_column.map(p_text).reindex(table.index, fill_value="")
    if is_corrected:
        corrected_p = pd.Series(adjust_p_values(p_column), p_column.index)
        table["Holm p"] = corrected_p.map(p_text).reindex(table.index, fill_value="")
    return table


def choose_table1(
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
        column_names = find_characteristics(cohort_table, columns)
    return {"table1": {"columns": column_names, "is_corrected": is_corrected}}


def find_characteristics(
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
            str(column.name)
            for column_name in DEFAULT_COLUMNS
            if (column := covariate(cohort_table, column_name)) is not None
        ]
    # The code of a scan and its quality are columns of a report, not of the study.
    cohort_table = cohort_table.drop(columns=["code", "quality"], errors="ignore")
    names = [columns] if isinstance(columns, str) else [*columns]
    column_names = [find_covariate_column(cohort_table, name) for name in names]
    for column_name in column_names:
        if column_name in KEY_COLUMNS or kind_of(column_name) == "family":
            raise ParameterError(
                f"{option_text('table1')} has {column_name!r}, which names people or "
                "families. Leave it out."
            )
        if column_names.count(column_name) > 1:
            raise ParameterError(
                f"{option_text('table1')} names {column_name!r} twice. Name it once."
            )
    return column_names


def covariate(cohort_table: pd.DataFrame, covariate_name: str) -> pd.Series | None:
    """Return the column of age, sex or site, by any usual name of it, or None."""
    try:
        column_name = find_covariate_column(cohort_table, covariate_name)
    except ParameterError:
        return None
    column_values = covariate_values(cohort_table, column_name)
    if covariate_name == "age":
        return pd.to_numeric(column_values, errors="coerce")
    return column_values


def covariate_values(cohort_table: pd.DataFrame, column_name: str) -> pd.Series:
    """Return a column with blank cells and n/a as missing values."""
    column_values = cohort_table[column_name]
    texts = column_values.astype(str).str.strip().str.lower()
    return column_values.mask(texts.isin(["", "n/a", "nan", "none"]))


def sort_by_visit(cohort_table: pd.DataFrame) -> pd.DataFrame:
    """Return scans in the order of their visits, where these are known."""
    if "session" not in cohort_table:
        return cohort_table
    visit_ranks = [*cohort_table["session"].map(visit_order)]
    return cohort_table.iloc[
        sorted(range(len(cohort_table)), key=visit_ranks.__getitem__)
    ]


def is_counted(column_name: str, values: pd.Series) -> bool:
    """Return whether the values of a column are counted as categories.

    They are where audit and regression take them for groups (`has_groups`: text, known
    names, whole numbers of few values), or where there are at most
    :data:`MAX_COUNTED_VALUES`.
    """
    known_values = values.dropna()
    if known_values.empty or has_groups(column_name, known_values):
        return True
    return known_values.nunique() <= MAX_COUNTED_VALUES


def _skewness(numbers: pd.Series, labels: pd.Series) -> float:
    """Return the skewness of deviations from the class means; 0 where undefined."""
    deviations = (numbers - numbers.groupby(labels).transform("mean")).dropna()
    if len(deviations) < 3 or np.ptp(deviations) < 1e-12:
        return 0.0
    return float(skew(deviations, bias=False))


def _number_row(
    title: str, value_groups: dict[str, pd.Series], *, is_skewed: bool
) -> dict[str, str]:
    """Return a column of numbers as one row: mean ± s.d., or median [quartiles]."""
    statistic_title = "median [quartiles]" if is_skewed else "mean ± s.d."
    row = {"characteristic": f"{title}, {statistic_title}"}
    for group_name, values in value_groups.items():
        numbers = pd.to_numeric(values, errors="coerce").dropna()
        if len(numbers) < MIN_PEOPLE_SHOWN:
            row[group_name] = "n/a"
        elif is_skewed:
            lower, median, upper = np.quantile(numbers, [0.25, 0.5, 0.75])
            row[group_name] = f"{median:z.1f} [{lower:z.1f}, {upper:z.1f}]"
        else:
            row[group_name] = f"{numbers.mean():z.1f} ± {numbers.std():.1f}"
    return row


def _count_rows(title: str, value_groups: dict[str, pd.Series]) -> list[dict[str, str]]:
    """Return a column of categories as one row each, or their number if too many."""
    texts = {name: values.map(_category_text) for name, values in value_groups.items()}
    all_texts = texts["total"].dropna()
    categories = sorted(all_texts.unique())
    if len(categories) > MAX_CATEGORIES or len(categories) > len(all_texts) / 2:
        numbers_of_values = {name: str(t.nunique()) for name, t in texts.items()}
        row = {"characteristic": f"{title}, different values"}
        return [row | numbers_of_values]
    rows = []
    for category in categories:
        row = {"characteristic": f"{title}: {category}, n"}
        for group_name, group_texts in texts.items():
            n_category = int((group_texts == category).sum())
            n_known = group_texts.notna().sum()
            share = f" ({n_category / n_known:.0%})" if n_known else ""
            row[group_name] = f"{n_category}{share}"
        rows.append(row)
    return rows


def _category_text(value: object) -> object:
    """Return a category as text, whole numbers without a point; missing stays."""
    if pd.isna(value):
        return np.nan
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def compare_numbers(
    numbers: pd.Series, labels: pd.Series, *, is_skewed: bool
) -> CharacteristicTest:
    """Test a number between classes: Welch's analysis of variance, or by ranks.

    p is NaN where a class that has values has fewer than two, or all values of a class
    are equal (Welch), or where all values are equal.
    """
    groups = [group.to_numpy(float) for _, group in numbers.dropna().groupby(labels)]
    if is_skewed:
        name, can_test = KRUSKAL_WALLIS, len(groups) > 1 and numbers.nunique() > 1
        return CharacteristicTest(
            name, float(kruskal(*groups).pvalue) if can_test else np.nan
        )
    return CharacteristicTest(WELCH, welch_p(groups))


def welch_p(groups: Sequence[np.ndarray]) -> float:
    r"""Return p of Welch's analysis of variance, for classes of unequal variance.

    With weights :math:`w_i = n_i / s_i^2`, their sum :math:`w` and the weighted mean
    :math:`\tilde x`,

    .. math:: F = \frac{\sum_i w_i (\bar x_i - \tilde x)^2 / (k - 1)}
              {1 + 2 (k - 2) \lambda / (k^2 - 1)}, \quad
              \lambda = \sum_i \frac{(1 - w_i / w)^2}{n_i - 1}

    with k - 1 and :math:`(k^2 - 1) / (3 \lambda)` degrees of freedom (Welch 1951).
    """
    n_classes = len(groups)
    if n_classes < 2 or min(map(len, groups)) < 2:
        return float("nan")
    n_people = np.array([len(group) for group in groups])
    means = np.array([group.mean() for group in groups])
    variances = np.array([group.var(ddof=1) for group in groups])
    if (variances < 1e-12).any():
        return float("nan")
    weights = n_people / variances
    shares = weights / weights.sum()
    between = (weights * (means - shares @ means) ** 2).sum() / (n_classes - 1)
    excess = ((1 - shares) ** 2 / (n_people - 1)).sum()
    statistic = between / (1 + 2 * (n_classes - 2) * excess / (n_classes**2 - 1))
    error_df = (n_classes**2 - 1) / (3 * excess)
    return float(f_distribution.sf(statistic, n_classes - 1, error_df))


def compare_counts(
    values: pd.Series, labels: pd.Series, *, random_state: int = 0
) -> CharacteristicTest:
    """Test counts of categories between classes by chi-squared.

    Where a count below :data:`MIN_EXPECTED_COUNT` is expected, p is the share of
    permutations of the labels with a statistic as large, which keep both margins as
    Fisher's exact test does. The observed labels count as one of them.
    """
    texts = values.map(_category_text)
    is_known = texts.notna()
    counts = pd.crosstab(texts[is_known], labels[is_known]).to_numpy()
    if min(counts.shape, default=0) < 2:
        return CharacteristicTest(CHI_SQUARED, np.nan)
    result = chi2_contingency(counts, correction=False)
    expected_counts = result.expected_freq
    if expected_counts.min() >= MIN_EXPECTED_COUNT:
        return CharacteristicTest(CHI_SQUARED, float(result.pvalue))
    rng = np.random.default_rng(random_state)
    category_codes = np.unique(texts[is_known].astype(str), return_inverse=True)[1]
    label_codes = np.unique(labels[is_known], return_inverse=True)[1]
    n_rows, n_columns = counts.shape
    n_cells = n_rows * n_columns
    n_exceeding = 1
    n_per_block = max(1, _MAX_DRAWN_LABELS // len(label_codes))
    for first_permutation in range(0, N_LABEL_PERMUTATIONS, n_per_block):
        n_drawn = min(n_per_block, N_LABEL_PERMUTATIONS - first_permutation)
        drawn_labels = rng.permuted(np.tile(label_codes, (n_drawn, 1)), axis=1)
        cell_codes = category_codes * n_columns + drawn_labels
        cell_codes += n_cells * np.arange(n_drawn)[:, None]
        drawn_counts = np.bincount(cell_codes.ravel(), minlength=n_drawn * n_cells)
        deviations = drawn_counts.reshape(n_drawn, n_cells) - expected_counts.ravel()
        statistics = (deviations**2 / expected_counts.ravel()).sum(axis=1)
        is_exceeding = statistics >= result.statistic - 1e-9
        n_exceeding += int(is_exceeding.sum())
    p_value = n_exceeding / (N_LABEL_PERMUTATIONS + 1)
    return CharacteristicTest(PERMUTED_COUNTS, float(p_value))
