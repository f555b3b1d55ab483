"""What folds share that they should not, and in what they differ."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from brainlsap.data import Cohort
from brainlsap.evaluation.findings import Finding
from brainlsap.evaluation.splits import Split
from brainlsap.exceptions import ParameterError

FAMILY = frozenset(
    {"family", "family_id", "familyid", "household", "household_id", "twin", "twin_id"}
    | {"pair", "pair_id", "mother_id", "father_id"}
)
"""Names of columns, in any case, whose groups are people who are related."""

LEAST_P = 0.001


def find_shared_people(cohort: Cohort, splits: Sequence[Split]) -> list[Finding]:
    """Look for people, and scans, on both sides of a fold.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    splits : sequence of (train, test)
        Rows of the cohort.

    Returns
    -------
    list of Finding
    """
    folds, people = _crossing(splits, cohort.groups)
    if not folds:
        return []
    scans = len({row for train, test in splits for row in np.intersect1d(train, test)})
    same = f", {scans} of their scans on both sides at once" if scans else ""
    noun = "person" if people == 1 else "people"
    evidence = (
        f"{people} {noun} in training and test scans of {folds} of {len(splits)} "
        f"folds{same}"
    )
    return [Finding("person in two folds", evidence)]


def find_shared_groups(
    cohort: Cohort, splits: Sequence[Split], whole: Sequence[str] = ()
) -> list[Finding]:
    """Look for families, sites and other groups on both sides of a fold.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    splits : sequence of (train, test)
        Rows of the cohort.
    whole : sequence of str
        Columns whose groups were to stay whole: an error where they did not. Columns
        that have the name of a family are looked at in any case.

    Returns
    -------
    list of Finding

    Raises
    ------
    ParameterError
        Where the cohort has no such column.
    """
    findings = []
    for column in whole:
        if column not in cohort.table:
            raise ParameterError(
                f"whole must name columns of the cohort's table, got {column!r}; there "
                f"are {', '.join(map(str, cohort.table.columns))}."
            )
    related = [
        name
        for name in cohort.table.columns
        if str(name).lower() in FAMILY and name not in whole
    ]
    for column in (*whole, *related):
        folds, groups = _crossing(splits, cohort.table[column].to_numpy(dtype=object))
        if folds:
            check = "group in two folds" if column in whole else "family in two folds"
            evidence = (
                f"{groups} groups of the column {column} in training and test scans of "
                f"{folds} of {len(splits)} folds"
            )
            findings.append(Finding(check, evidence))
    return findings


def find_fold_differences(cohort: Cohort, splits: Sequence[Split]) -> list[Finding]:
    """Compare class, age and sex of the test people with those of the training people.

    Classes and sexes are compared by a chi-square test of counts of people, ages by
    the rank test of Mann and Whitney; p-values are multiplied by the number of folds
    and count below 0.001. A class that is missing from a side is told in any case.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    splits : sequence of (train, test)
        Rows of the cohort.

    Returns
    -------
    list of Finding
    """
    findings = []
    for number, (train, test) in enumerate(splits, start=1):
        for side, rows in (("training", train), ("test", test)):
            absent = [name for name in cohort.classes if name not in cohort.y[rows]]
            if absent:
                evidence = f"fold {number} has no {side} scans of {', '.join(absent)}"
                findings.append(Finding("folds differ", evidence))
    columns = [name for name in ("label", "age", "sex") if name in cohort.table]
    for column in columns:
        values = [_difference(cohort.table, column, split) for split in splits]
        p_value = min(1.0, float(np.nanmin([*values, 1.0])) * len(splits))
        if p_value < LEAST_P:
            worst = int(np.nanargmin(values)) + 1
            name = "class" if column == "label" else column
            told = f"p = {p_value:.1g} after correction for {len(splits)} folds"
            evidence = f"{name} of the test people of fold {worst}: {told}"
            findings.append(Finding("folds differ", evidence))
    return findings


def _crossing(splits: Sequence[Split], groups: np.ndarray) -> tuple[int, int]:
    """Return the number of folds that share groups, and of groups that are shared."""
    code, _ = pd.factorize(groups)  # a missing group is -1 and crosses nothing
    shared = [
        np.setdiff1d(np.intersect1d(code[train], code[test]), [-1])
        for train, test in splits
    ]
    return sum(map(bool, map(len, shared))), len(
        {one for some in shared for one in some}
    )


def _difference(table: pd.DataFrame, column: str, split: Split) -> float:
    """Return the p-value of a difference between test and training people."""
    from scipy.stats import chi2_contingency, mannwhitneyu

    sides = []
    for rows in split:
        people = table.iloc[rows].drop_duplicates("participant")
        sides.append(people[column].dropna())
    if not all(map(len, sides)):
        return float("nan")
    if column == "age":
        ages = [pd.to_numeric(one, errors="coerce").dropna() for one in sides]
        if not all(map(len, ages)) or pd.concat(ages).nunique() < 2:
            return float("nan")
        return float(mannwhitneyu(*ages).pvalue)
    names = sorted({str(value) for one in sides for value in one})
    counts = [
        one.astype(str).value_counts().reindex(names, fill_value=0) for one in sides
    ]
    if len(names) < 2:
        return float("nan")
    return float(chi2_contingency(np.stack(counts), correction=False).pvalue)
