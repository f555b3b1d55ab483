"""Traces of transforms and choices that were made on all scans, test scans included."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from brainlsap._arrays import power_of_two
from brainlsap.data import Cohort
from brainlsap.evaluation.findings import Finding
from brainlsap.evaluation.fitting import inner_model

HARMONISED = re.compile(
    r"combat|harmoni[sz]|residuali[sz]|regressed.out|z.?scored", re.IGNORECASE
)
MANY_VARIANTS = 6
# What floating-point arithmetic leaves of a mean or a correlation that was removed.
ZERO = 1e-6
MOST_COLUMNS = 0.9
FEWEST_SCANS = 10


def find_removed_effects(cohort: Cohort) -> list[Finding]:
    """Look for features from which something was removed on all scans together.

    A mean of 0 with a deviation of 1, the same mean at every site, or no correlation
    with age: none of these arises by chance to six digits.

    Parameters
    ----------
    cohort : Cohort
        The scans; also its provenance and notes are read.

    Returns
    -------
    list of Finding
    """
    findings = []
    told = [
        str(key)
        for key, value in cohort.provenance.items()
        if HARMONISED.search(str(key)) and value
    ]
    if told:
        evidence = f"the cohort's provenance says: {', '.join(told)}"
        findings.append(Finding("fitted outside the folds", evidence))
    if any(HARMONISED.search(note) for note in cohort.notes):
        evidence = "a note on the cohort speaks of harmonised or standardised values"
        findings.append(Finding("fitted before", evidence))
    values = cohort.features.reshape(cohort.n_scans, -1)
    whole = values[:, ~np.isnan(values).any(axis=0)]
    whole = whole[:, np.ptp(whole, axis=0) > 0] if len(whole) else whole
    if len(whole) < FEWEST_SCANS or whole.shape[1] < 2:
        return findings
    removed = _removed(whole, cohort.table)
    return findings + [Finding("fitted outside the folds", one) for one in removed]


def find_choices(pipeline: Any, cohort: Cohort) -> tuple[list[Finding], dict[str, str]]:
    """Look into models for parts that were fitted before, and for searches that leak.

    Parameters
    ----------
    pipeline : estimator, mapping of str to estimator, or None
        The models, as they are given to `cross_validate`.
    cohort : Cohort
        The scans.

    Returns
    -------
    findings : list of Finding
    skipped : dict of str to str
        Without a pipeline nothing can be looked into.
    """
    if pipeline is None:
        checks = ("fitted before", "tuned on the test fold", "tuned on shared people")
        return [], dict.fromkeys((*checks, "many variants"), "no model was given")
    models = pipeline if isinstance(pipeline, Mapping) else {"the model": pipeline}
    findings: list[Finding] = []
    for name, model in models.items():
        for part in _parts(model):
            findings += _part_findings(name, part, cohort)
    # behind the same steps, what is compared is the last one
    kinds = pd.Series([type(inner_model(model)).__name__ for model in models.values()])
    for kind, number in kinds.value_counts().items():
        if number >= MANY_VARIANTS:
            evidence = f"{number} models are {kind} with different settings"
            findings.append(Finding("many variants", evidence))
    return findings, {}


def _removed(values: np.ndarray, table: pd.DataFrame) -> Iterator[str]:
    """Say what was removed from columns without gaps that vary (n_scans, n_values)."""
    mean, sd = values.mean(axis=0), values.std(axis=0)
    # Whether the deviation has n or n - 1 in it is up to who standardised.
    unit = np.isclose(sd, 1, atol=ZERO) | np.isclose(
        values.std(0, ddof=1), 1, atol=ZERO
    )
    if (unit & (np.abs(mean) < ZERO)).mean() >= MOST_COLUMNS:
        yield "features have mean 0 and deviation 1 over all scans"
    centred = values - mean
    centred = centred / power_of_two(centred)
    z = centred / centred.std(axis=0)
    for column in ("site", "scanner", "center", "centre"):
        if column not in table or table[column].nunique() < 2:
            continue
        of_site = pd.DataFrame(z).groupby(table[column].astype(str).to_numpy())
        largest = of_site.mean().abs().max(axis=0)
        if (largest < ZERO).mean() >= MOST_COLUMNS:
            yield f"features have the same mean at every {column}, to six digits"
    if "age" in table:
        age = pd.to_numeric(table["age"], errors="coerce").to_numpy(dtype=float)
        known = ~np.isnan(age)
        if known.all() and np.ptp(age) > 0:
            slope = (age - age.mean()) @ z / (len(age) * age.std())
            if (np.abs(slope) < ZERO).mean() >= MOST_COLUMNS:
                yield "features have no correlation with age, to six digits"


def _parts(model: Any) -> list[Any]:
    """Return a model and every estimator inside it, each once."""
    from sklearn.base import BaseEstimator

    inside = [model]
    if hasattr(model, "get_params"):
        values = model.get_params(deep=True).values()
        inside += [one for one in values if isinstance(one, BaseEstimator)]
    return list({id(one): one for one in inside}.values())


def _part_findings(name: str, part: Any, cohort: Cohort) -> Iterator[Finding]:
    kind = type(part).__name__
    frozen = kind == "FrozenEstimator" or getattr(part, "cv", None) == "prefit"
    if frozen:
        evidence = f"{name}: {kind} keeps what it learned from scans before the folds"
        yield Finding("fitted outside the folds", evidence)
    elif _is_fitted(part):
        evidence = f"{name}: {kind} was fitted before; it is fitted anew in every fold"
        yield Finding("fitted before", evidence)
    if hasattr(part, "cv") and not frozen:
        yield from _search_findings(name, part, cohort)


def _is_fitted(part: Any) -> bool:
    if isinstance(part, type) or not hasattr(part, "__dict__"):
        return False
    return any(name.endswith("_") and name[0] != "_" for name in vars(part))


def _search_findings(name: str, part: Any, cohort: Cohort) -> Iterator[Finding]:
    inner, kind = part.cv, type(part).__name__
    rows = _given_rows(inner)
    if rows is not None:
        evidence = f"{name}: {kind} searches on given rows, up to row {rows}"
        # Rows counted over the whole cohort lie beyond any training fold, or wrong.
        yield Finding("tuned on the test fold", evidence)
        return
    several = len(set(cohort.groups)) < cohort.n_scans
    if several and "Group" not in type(inner).__name__:
        told = "its default" if inner is None else type(inner).__name__
        evidence = f"{name}: {kind} divides scans, not people, inside (cv: {told})"
        yield Finding("tuned on shared people", evidence)


def _given_rows(inner: Any) -> int | None:
    """Return the largest row that a splitter of given rows names, else None."""
    if hasattr(inner, "test_fold"):  # PredefinedSplit
        return len(inner.test_fold) - 1
    if isinstance(inner, list | tuple) and inner:
        return int(max(np.max(rows) for split in inner for rows in split))
    if type(inner).__name__ == "_CVIterableWrapper":
        return _given_rows(list(inner.cv))
    return None
