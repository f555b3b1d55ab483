"""Case mix: the people whom a model was trained on, beside those it is tested on."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data.cohort import Cohort
from brainlsap.data.covariates import KEY_COLUMNS, acquisition_kind, group_names

COUNTED_KINDS = ("sex", "site", "scanner")
"""Kinds of covariates whose values are counted."""

CaseMix = dict[str, Any]


def describe_people(cohort: Cohort) -> CaseMix:
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
    table = cohort.table
    is_first = ~table["participant"].duplicated()
    people_by_class = table.groupby("label")["participant"].nunique()
    counts: dict[str, dict[str, int]] = {}
    numbers: dict[str, dict[str, float]] = {}
    for column in table.columns.drop(list(KEY_COLUMNS)):
        kind = acquisition_kind(column)
        values = table.loc[is_first, column]
        if kind == "age" and kind not in numbers:
            numbers[kind] = _describe_numbers(pd.to_numeric(values, errors="coerce"))
        elif kind in COUNTED_KINDS and kind not in counts:
            names = group_names(values).dropna().astype(str)
            counts[kind] = {str(k): int(n) for k, n in names.value_counts().items()}
    for feature_index, feature in enumerate(cohort.feature_names):
        values = cohort.features[is_first.to_numpy(), :, feature_index]
        is_measured = ~np.isnan(values)
        n_measured = is_measured.sum(axis=1)
        totals = np.where(is_measured, values, 0.0).sum(axis=1)
        means = pd.Series(totals / np.maximum(n_measured, 1)).where(n_measured > 0)
        numbers[f"{feature}, mean over regions"] = _describe_numbers(means)
    return {
        "n_people": int(is_first.sum()),
        "n_scans": cohort.n_scans,
        "classes": {name: int(people_by_class.get(name, 0)) for name in cohort.classes},
        "numbers": numbers,
        "counts": counts,
    }


def _describe_numbers(values: pd.Series) -> dict[str, float]:
    """Return number, mean and s.d. of the known values."""
    known_values = values.dropna()
    sd = float(known_values.std()) if len(known_values) > 1 else 0.0
    mean = float(known_values.mean()) if len(known_values) else 0.0
    return {"n": len(known_values), "mean": mean, "sd": sd}


def case_mix_table(
    training: Mapping[str, Any], test: Mapping[str, Any]
) -> pd.DataFrame:
    """Compare the people of the training with those of the test.

    Parameters
    ----------
    training, test : mapping
        From :func:`describe_people`.

    Returns
    -------
    DataFrame
        characteristic, training, test, and difference (test minus training, in
        standard deviations of the training people; empty for counts). Numbers are
        mean (s.d.), counts people (share).
    """
    rows: list[tuple[str, str, str, str]] = [
        ("people", str(training["n_people"]), str(test["n_people"]), ""),
        ("scans", str(training["n_scans"]), str(test["n_scans"]), ""),
    ]
    rows += _count_rows("class", training["classes"], test["classes"])
    names = dict.fromkeys([*training["numbers"], *test["numbers"]])
    for name in names:
        before, after = training["numbers"].get(name), test["numbers"].get(name)
        difference = ""
        if before and after and before["n"] and after["n"] and before["sd"] > 0:
            difference = f"{(after['mean'] - before['mean']) / before['sd']:+.2f}"
        rows.append((name, _number_text(before), _number_text(after), difference))
    for kind in COUNTED_KINDS:
        before, after = training["counts"].get(kind), test["counts"].get(kind)
        if before or after:
            rows += _count_rows(kind, before or {}, after or {})
    return pd.DataFrame(
        rows, columns=["characteristic", "training", "test", "difference"]
    )


def _count_rows(
    kind: str, training: Mapping[str, int], test: Mapping[str, int]
) -> list[tuple[str, str, str, str]]:
    """Return a row for every value of a characteristic."""
    return [
        (f"{kind}: {value}", _count_text(training, value), _count_text(test, value), "")
        for value in dict.fromkeys([*training, *test])
    ]


def _count_text(counts: Mapping[str, int], value: str) -> str:
    """Return people and share of a value; "n/a" where nobody has any."""
    n_people = sum(counts.values())
    if n_people == 0:
        return "n/a"
    n_value = counts.get(value, 0)
    return f"{n_value} ({n_value / n_people:.0%})"


def _number_text(numbers: Mapping[str, float] | None) -> str:
    """Return mean and s.d. as text; "n/a" where nobody has a value."""
    if not numbers or not numbers["n"]:
        return "n/a"
    return f"{numbers['mean']:.4g} ({numbers['sd']:.3g})"
