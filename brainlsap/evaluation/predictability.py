"""How far the label can be told without a brain: from a column, or from gaps."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.data import Cohort
from brainlsap.evaluation.findings import Finding

CONFOUNDS = {
    "site": ("site", "center", "centre", "hospital", "cohort"),
    "scanner": ("scanner", "manufacturer", "vendor", "model", "field_strength"),
    "phase": ("phase", "protocol", "colprot", "origprot", "study"),
    "age": ("age", "age_at_scan", "age_bl"),
    "sex": ("sex", "gender", "ptgender"),
}
"""What is tried, and the names that its column may have, in any case."""

N_FOLDS, N_PERMUTATIONS, N_BINS = 5, 199, 8
LEAST_GAIN = 0.05
"""A score this far above chance, beyond all permutations, is a finding."""


class ColumnScore(NamedTuple):
    """How well one column tells the label of people it was not learned from."""

    score: float
    chance: float
    p_value: float
    n_people: int

    @property
    def tells(self) -> bool:
        """Whether the score is beyond all permutations, and clearly above chance."""
        beyond = self.p_value <= 1 / (N_PERMUTATIONS + 1) + 1e-12
        return beyond and self.score >= self.chance + LEAST_GAIN

    def __str__(self) -> str:
        return (
            f"balanced accuracy {self.score:.2f} (chance {self.chance:.2f}, "
            f"p = {self.p_value:.3f}, {self.n_people} people)"
        )


def column_score(
    values: Sequence | np.ndarray | pd.Series,
    label: Sequence | np.ndarray | pd.Series,
    groups: Sequence | np.ndarray | pd.Series,
    random_state: int = 0,
) -> ColumnScore:
    """Score the label as told from one column alone, in folds of whole people.

    Every person counts once, with the first scan. Numbers with more than eight
    values are cut into eight bins of equal size; a missing value is a value of its
    own. In each of five folds the class is taken that is most frequent, relative to
    its size, among the training people of the same value. The p-value is that of 199
    permutations of the values between people.

    Parameters
    ----------
    values, label, groups : sequences of length n_scans
        The column, the class and the participant of every scan.
    random_state : int
        Seed of folds and permutations.

    Returns
    -------
    ColumnScore
        Fields score, chance (one over the number of classes), p_value, n_people.

    Examples
    --------
    >>> site = ["a"] * 20 + ["b"] * 20
    >>> label = ["CN"] * 18 + ["AD"] * 20 + ["CN"] * 2
    >>> found = column_score(site, label, range(40))
    >>> round(found.score, 2), found.tells
    (0.9, True)
    """
    first = ~pd.Series(np.asarray(groups)).duplicated().to_numpy()
    code = _coded(pd.Series(np.asarray(values, dtype=object))[first])
    classes, y = np.unique(np.asarray(label).astype(str)[first], return_inverse=True)
    rng = np.random.default_rng(random_state)
    fold = np.empty(len(y), dtype=np.int64)
    shuffled = rng.permutation(len(y))
    order = shuffled[np.argsort(y[shuffled], kind="stable")]
    fold[order] = np.arange(len(y)) % N_FOLDS
    # Values are permuted, not labels: folds then stay stratified in every draw.
    draws = np.stack([code, *(rng.permutation(code) for _ in range(N_PERMUTATIONS))])
    scores = np.concatenate(
        [_score(part, y, fold, len(classes)) for part in np.array_split(draws, 8)]
    )
    at_least = int((scores[1:] >= scores[0] - 1e-12).sum())
    p_value = (1 + at_least) / (N_PERMUTATIONS + 1)
    return ColumnScore(float(scores[0]), 1 / len(classes), p_value, len(y))


def find_confounds(cohort: Cohort) -> tuple[list[Finding], dict[str, str]]:
    """Ask whether site, scanner, phase, age or sex alone tell the label.

    Parameters
    ----------
    cohort : Cohort
        The scans.

    Returns
    -------
    findings : list of Finding
        A warning for each column that tells the label, a note for each that does not;
        a note for each other column that is a function of the label.
    skipped : dict of str to str
        Where the cohort has no such column.
    """
    table, label, groups = cohort.table, cohort.y, cohort.groups
    findings, tried = [], set()
    for column in _covariates(cohort):
        if _kind(column) is None:
            continue
        tried.add(column)
        found = column_score(table[column], label, groups)
        severity = "warning" if found.tells else "note"
        findings.append(
            Finding("label from one column", f"{column} alone: {found}", severity)
        )
    for column in _covariates(cohort):
        values = table[column].astype(str)
        repeated = values.nunique() <= max(2, cohort.n_scans // 3)
        if column in tried or not repeated or values.nunique() < 2:
            continue
        if pd.Series(label).groupby(values.to_numpy()).nunique().max() == 1:
            findings.append(
                Finding("column that is the label", f"{column} determines the label")
            )
    if tried:
        return findings, {}
    names = f"no column of {', '.join(CONFOUNDS)}"
    return findings, {"label from one column": names}


def find_telling_gaps(cohort: Cohort) -> list[Finding]:
    """Ask whether what was not measured tells the label.

    Parameters
    ----------
    cohort : Cohort
        The scans.

    Returns
    -------
    list of Finding
        Looked at are the number of missing values of a scan, which ones are missing,
        and whether a covariate is missing.
    """
    missing = np.isnan(cohort.features).reshape(cohort.n_scans, -1)
    # The same gap in every scan tells nothing.
    missing = missing[:, missing.any(axis=0) & ~missing.all(axis=0)]
    gaps: dict[str, np.ndarray] = {}
    if missing.shape[1]:
        gaps["the number of missing values"] = missing.sum(axis=1)
        weight = np.random.default_rng(0).uniform(size=missing.shape[1])
        gaps["which values are missing"] = pd.factorize(missing @ weight)[0].astype(str)
    for column in _covariates(cohort):
        gaps[f"missing {column}"] = cohort.table[column].isna().to_numpy()
    findings = []
    for name, values in gaps.items():
        if len(np.unique(values)) < 2:
            continue
        found = column_score(values, cohort.y, cohort.groups)
        if found.tells:
            evidence = f"{name}: {found}"
            findings.append(Finding("missing values tell the label", evidence))
    return findings


def _covariates(cohort: Cohort) -> list[str]:
    """Return the columns that are no key and not the label under its own name."""
    keys = {"scan", "participant", "session", "label", cohort.label_name}
    return [name for name in cohort.table.columns if name not in keys]


def _kind(column: str) -> str | None:
    name = str(column).lower()
    for kind, names in CONFOUNDS.items():
        if name in names or any(name == f"{one}_id" for one in names):
            return kind
    return None


def _coded(values: pd.Series) -> np.ndarray:
    """Return a whole number for each value; numbers of many values are binned."""
    numbers = pd.to_numeric(values, errors="coerce")
    numeric = numbers.notna().sum() >= 0.9 * values.notna().sum()
    if numeric and numbers.nunique() > N_BINS:
        cut = np.nanquantile(numbers, np.linspace(0, 1, N_BINS + 1)[1:-1])
        code = np.searchsorted(cut, numbers.to_numpy(dtype=float))
        return np.where(numbers.isna(), N_BINS, code)
    return pd.factorize(values.astype(str).to_numpy())[0]


def _score(
    draws: np.ndarray, y: np.ndarray, fold: np.ndarray, n_classes: int
) -> np.ndarray:
    """Return the balanced accuracy of each row of values (n_draws, n_people)."""
    n_codes = int(draws.max()) + 1
    shape = (len(draws), N_FOLDS, n_codes, n_classes)
    offset = np.arange(len(draws))[:, None] * np.prod(shape[1:])
    cell = offset + (fold * n_codes + draws) * n_classes + y
    test = np.bincount(cell.ravel(), minlength=int(np.prod(shape))).reshape(shape)
    train = test.sum(axis=1, keepdims=True) - test
    of_class = np.maximum(train.sum(axis=2, keepdims=True), 1)
    share = np.round(train / of_class, 12)
    best = share == share.max(axis=3, keepdims=True)
    # Classes that are tied share the guess, so that what tells nothing is chance.
    right = (test * best / best.sum(axis=3, keepdims=True)).sum(axis=(1, 2))
    people = test.sum(axis=(1, 2))
    present = people > 0
    return np.where(present, right / np.maximum(people, 1), 0).sum(1) / present.sum(1)
