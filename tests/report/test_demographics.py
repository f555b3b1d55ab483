"""The table of participants: who is counted, by which statistic, with which test."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, f_oneway, fisher_exact, kruskal, ttest_ind

from brainlsap.exceptions import ParameterError
from brainlsap.report import demographics
from brainlsap.report.demographics import demographics_table, several_classes_text
from brainlsap.text import p_text

PEOPLE = pd.DataFrame(
    {
        "participant": ["a", "a", "b", "c", "d", "e", "f"],
        "label": ["CN", "CN", "CN", "CN", "AD", "AD", "AD"],
        "AGE": ["60", "61", "70", "80", "75", "n/a", "85"],
        "PTGENDER": ["F", "F", "M", "M", "F", "F", ""],
        "Site": ["x", "x", "y", "x", "y", "y", "y"],
    }
)


def draw_people(n_people=90):
    """Two visits of everybody; the second says something else and does not count."""
    rng = np.random.default_rng(0)
    label = np.array(["CN", "MCI", "AD"])[np.arange(n_people) % 3]
    first = pd.DataFrame({"participant": np.arange(n_people).astype(str)})
    first = first.assign(label=label, session="bl", age=rng.normal(70, 5, n_people))
    first.loc[label == "AD", "age"] += rng.normal(4, 6, n_people // 3)
    first["mmse"] = 30 - rng.gamma(1, 2, n_people)
    first["apoe4"] = rng.integers(0, 3, n_people)
    first["sex"] = rng.choice(["F", "M"], n_people)
    first["rare"] = np.where(rng.random(n_people) < 0.06, "yes", "no")
    first.loc[:4, "mmse"] = np.nan
    second = first.assign(session="m12", age=20.0, mmse=1.0, apoe4=4, sex="F")
    return first, pd.concat([second, first], ignore_index=True)


def rows_by_name(table):
    return table.set_index("characteristic")


def test_people_count_not_scans():
    table = rows_by_name(demographics_table(PEOPLE, ["AD", "CN"]))
    assert table.loc["participants", ["AD", "CN", "total"]].tolist() == ["3", "3", "6"]
    assert table.loc["scans", ["AD", "CN", "total"]].tolist() == ["3", "4", "7"]
    # The mean age of two people is not shown: it would give them away.
    ages = table.loc["AGE, mean ± s.d.", ["AD", "CN", "missing"]].tolist()
    assert ages == ["n/a", "70.0 ± 10.0", "1"]
    assert table.loc["PTGENDER: F, n", ["AD", "CN"]].tolist() == ["2 (100%)", "1 (33%)"]
    assert table.loc["PTGENDER: F, n", "missing"] == "1"
    assert table.loc["Site: y, n", ["AD", "CN"]].tolist() == ["3 (100%)", "1 (33%)"]
    bare = demographics_table(PEOPLE[["participant", "label"]], ["CN"])
    assert list(bare) == ["characteristic", "CN", "total"]


def test_a_person_of_two_classes_counts_in_both_and_once_in_total():
    visits = PEOPLE.assign(session=[*"12", *"11111"])
    visits.loc[1, "label"] = "AD"
    table = rows_by_name(demographics_table(visits, ["CN", "AD"], "age"))
    assert table.loc["participants", ["CN", "AD", "total"]].tolist() == ["3", "4", "6"]
    assert table.loc["AGE, mean ± s.d.", "AD"] == "73.7 ± 12.1"
    # The numbers of the tests are those of first scans, so they stand beside.
    text = several_classes_text(visits)
    assert "1 participant has scans in several classes" in text
    assert "CN 3, AD 3" in text
    assert several_classes_text(PEOPLE) == ""


def test_numbers_that_are_categories_are_in_the_order_of_numbers():
    years = PEOPLE.assign(rater=[10, 9, 8, 10, 9, 8, 8])
    table = demographics_table(years, ["CN", "AD"], "rater")
    names = [name for name in table["characteristic"] if name.startswith("rater")]
    assert names == ["rater: 8, n", "rater: 9, n", "rater: 10, n"]


def test_statistics_and_tests_are_those_of_scipy():
    first, visits = draw_people()
    columns = ["age", "mmse", "apoe4", "sex", "rare"]
    table = demographics_table(visits, ["CN", "MCI", "AD"], columns, is_corrected=True)
    rows = rows_by_name(table)

    def groups(column):
        return [g.dropna() for _, g in first[column].groupby(first["label"])]

    cn = first[first["label"] == "CN"]
    age = rows.loc["age, mean ± s.d."]
    assert age["CN"] == f"{cn['age'].mean():.1f} ± {cn['age'].std():.1f}"
    assert age["test"] == demographics.WELCH
    assert age["p"] == p_text(f_oneway(*groups("age"), equal_var=False).pvalue)
    mmse = rows.loc["mmse, median [quartiles]"]
    quartiles = cn["mmse"].quantile([0.25, 0.5, 0.75]).to_numpy()
    assert mmse["CN"] == "{1:.1f} [{0:.1f}, {2:.1f}]".format(*quartiles)
    assert (mmse["test"], mmse["missing"]) == (demographics.KRUSKAL_WALLIS, "5")
    assert mmse["p"] == p_text(kruskal(*groups("mmse")).pvalue)
    sex = rows.loc["sex: F, n"]
    counts = pd.crosstab(first["sex"], first["label"])
    assert sex["CN"].startswith(f"{counts.loc['F', 'CN']} (")
    assert sex["p"] == p_text(chi2_contingency(counts, correction=False).pvalue)
    assert rows.loc["rare: no, n", "test"] == demographics.PERMUTED_COUNTS
    assert rows.loc["apoe4: 2, n", "test"] == ""  # in the first row of the column
    corrected = rows.loc[rows["test"] != "", "Holm p"]
    assert len(corrected) == 5
    assert (rows.loc[rows["test"] == "", "Holm p"] == "").all()


def test_welch_of_two_classes_is_the_t_test_of_unequal_variance():
    rng = np.random.default_rng(1)
    groups = [rng.normal(0, 1, 9), rng.normal(1, 4, 21)]
    expected = ttest_ind(*groups, equal_var=False).pvalue
    assert demographics.compute_welch_p_value(groups) == pytest.approx(
        expected, rel=1e-10
    )
    assert np.isnan(demographics.compute_welch_p_value([np.ones(4), groups[0]]))
    assert np.isnan(demographics.compute_welch_p_value([np.ones(1), groups[0]]))


def test_small_counts_are_permuted_as_in_fishers_test():
    values = pd.Series(["yes"] * 5 + ["no"] * 9)
    labels = pd.Series(["AD"] * 4 + ["CN"] * 10)
    name, p_value = demographics.compare_counts_between_classes(values, labels)
    assert name == demographics.PERMUTED_COUNTS
    # Tables of these margins are ordered alike by probability and chi-squared.
    exact_p = fisher_exact(pd.crosstab(values, labels)).pvalue
    assert p_value == pytest.approx(exact_p, abs=0.004)
    assert np.isnan(
        demographics.compare_counts_between_classes(values * 0 + "x", labels).p_value
    )


@pytest.mark.parametrize(
    ("column_name", "values", "is_counted"),
    [
        ("apoe4", [0, 1, 2, 0, 1, 0], True),
        ("smoker", [0, 1, 0, 1, 1, 0], True),
        ("mmse", [30, 29, 28, 25, 21, 30], False),
        ("site", [3, 7, 11, 15, 19, 23], True),
        ("dose", [0.5, 1.0, 0.5, 1.0, 2.5, 3.0], False),
        ("blank", [np.nan] * 6, True),
    ],
)
def test_kind_of_a_column(column_name, values, is_counted):
    assert demographics.is_categorical(column_name, pd.Series(values)) == is_counted


def test_many_categories_are_counted_not_listed():
    people = PEOPLE.assign(rater=[f"r{k}" for k in range(7)])
    table = rows_by_name(demographics_table(people, ["CN", "AD"], ["rater"]))
    assert table.loc["rater, different values", ["CN", "total"]].tolist() == ["3", "6"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [("weight", "weight"), (["age", "AGE"], "twice"), ("family", "names people")],
)
def test_columns_that_cannot_be_shown(columns, message):
    with pytest.raises(ParameterError, match=message):
        demographics_table(PEOPLE.assign(family="m"), ["CN", "AD"], columns)


def test_columns_of_a_report_are_no_covariates_of_the_study():
    with pytest.raises(ParameterError, match=r"columns are AGE, PTGENDER, Site\."):
        demographics_table(PEOPLE.assign(code="S1", quality=""), ["CN"], "education")
