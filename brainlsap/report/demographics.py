"""Whether the groups differ in age, sex and site: tests for the table of people."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

TESTED = {"age": "Kruskal-Wallis", "sex": "chi-square", "site": "chi-square"}


def demographics_tests(table: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Return tests of whether classes differ in age, sex and site.

    Parameters
    ----------
    table : DataFrame
        One row per scan: participant, label and, where known, age, sex, site.
    classes : sequence of str
        Groups to compare.

    Returns
    -------
    DataFrame
        One row for each of age (Kruskal-Wallis, over ranks), sex and site (chi-square
        of independence) that is known: variable, test, people, statistic, df and p.
        A person counts once, in the class of the first scan. "n/a" where a test
        cannot be made. Chi-square with expected counts under 5 is marked by "*".

    Examples
    --------
    >>> table = pd.DataFrame({"participant": range(8), "label": ["CN", "AD"] * 4})
    >>> table["age"] = [60, 70, 61, 71, 62, 72, 63, 73]
    >>> demographics_tests(table, ["CN", "AD"])[["variable", "statistic", "p"]]
      variable statistic      p
    0      age      5.33  0.021
    """
    people = table.drop_duplicates("participant")
    people = people[people["label"].astype(str).isin(list(classes))]
    label = people["label"].astype(str)
    rows = []
    for name, test in TESTED.items():
        if name not in people:
            continue
        if name == "age":
            found = _rank_test(pd.to_numeric(people[name], errors="coerce"), label)
        else:
            found = _count_test(people[name], label)
        rows.append((name, test, *found))
    columns = ["variable", "test", "people", "statistic", "df", "p"]
    return pd.DataFrame(rows, columns=columns)


def _rank_test(age: pd.Series, label: pd.Series) -> tuple[int, str, str, str]:
    from scipy.stats import kruskal

    known = age.notna()
    groups = [age[known & (label == one)].to_numpy() for one in label.unique()]
    groups = [one for one in groups if len(one)]
    if len(groups) < 2 or np.ptp(np.concatenate(groups)) == 0:
        return int(known.sum()), "n/a", "n/a", "n/a"
    statistic, p = kruskal(*groups)
    return int(known.sum()), f"{statistic:.2f}", str(len(groups) - 1), _p_text(p)


def _count_test(values: pd.Series, label: pd.Series) -> tuple[int, str, str, str]:
    from scipy.stats import chi2_contingency

    known = values.notna() & (values.astype(str) != "n/a")
    counts = pd.crosstab(values[known].astype(str), label[known])
    if min(counts.shape, default=0) < 2:
        return int(known.sum()), "n/a", "n/a", "n/a"
    found = chi2_contingency(counts.to_numpy(), correction=False)
    few = "*" if (found.expected_freq < 5).any() else ""
    p = f"{_p_text(found.pvalue)}{few}"
    return int(known.sum()), f"{found.statistic:.2f}", str(found.dof), p


def _p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
