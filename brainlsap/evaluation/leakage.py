"""The audit: whatever lets a model know the answer of a test scan, or explains it."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.stats import kruskal, random_table
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from brainlsap.data import Cohort
from brainlsap.data.cohort import NOT_GIVEN
from brainlsap.data.covariates import (
    COVARIATES,
    KEY_COLUMNS,
    SCALE_KINDS,
    acquisition_kind,
    group_names,
    has_groups,
    kind_of,
)
from brainlsap.data.quality import find_odd_units
from brainlsap.data.tables import listed
from brainlsap.evaluation.comparison import adjust_p_values
from brainlsap.evaluation.confounds import find_column
from brainlsap.evaluation.session_ids import find_session_ids
from brainlsap.evaluation.splits import Split

# Every check by name: how grave a finding is, and what to do about it.
CHECKS = {
    "person in two folds": ("error", "Divide people, not scans: make_splits does."),
    "people not told": (
        "note",
        "Where people were scanned twice, say whose scans they are: groups=people.",
    ),
    "visits taken for people": (
        "error",
        "If they are, give participant_id and session_id; in Python groups=people.",
    ),
    "duplicate scans": ("error", "Drop one, or give both the same participant."),
    "label in the features": ("error", "Leave it out: one is made from the other."),
    "clinical score as feature": ("warning", "Leave it out: labels may rest on it."),
    "family in two folds": ("warning", "Keep families together, with join_groups."),
    "site in two folds": ("note", "For other sites: leave_out= (--leave-out)."),
    "missing values tell the label": ("warning", "Find out why, or leave them out."),
    "label from one column": (
        "warning",
        "Report this score beside the model's; regress it out (with it goes what "
        "classes differ in alongside), or, if it is site or scanner, hold that out.",
    ),
    "values on several scales": (
        "warning",
        "Keep one, or take the difference out: harmonize= (--harmonize).",
    ),
    "values in another unit": (
        "warning",
        "Convert them, or give the feature a name of its own.",
    ),
    "covariates missing": ("note", "Add them to the people's table, or as covariates."),
}

# What is asked how well it tells the label alone; without the first three it is said.
ALONE = ("age", "sex", "site", "scanner", "phase", "head size", "motion", *SCALE_KINDS)
LITTLE = "Classes differ in it, but it tells them by less than 0.05 above chance."
TAKEN = "What classes differ in alongside went with it: compare with a run without."
HELD = "What it tells alone cannot be used here: its values were held out."
NOTHING = "No difference of classes is shown, nor that there is none: report it."

# Scores by which dementia is staged, and words for the label itself.
CLINICAL = re.compile(
    r"(?:^|[_\W])(?:mmse|moca|cdr(?:sb|global)?|adas(?:1[13])?|faq|gds|dx|diagnosis|"
    r"label|stage)(?:$|[_\W])",
    re.IGNORECASE,
)
# Part of a value's variance that classes explain; more is no biology.
EXPLAINED = 0.99
FEWEST_SCANS = 5
SCALED = "Are scans copied, or some in another unit? See which are unusual."
COPIED = "Look for the files of the other visit, or drop one."
# Nearly identical: squared difference, as a part of that of two strangers.
ALIKE = 0.01
FEWEST_VALUES, MOST_VALUES = 10, 500
MOST_PAIRS = 50
# The score of a column: folds, permutations, bins of a number, gain over chance.
N_FOLDS, N_PERMUTATIONS, N_BINS, LEAST_GAIN = 5, 9_999, 8, 0.05


def audit(
    cohort: Cohort, splits: Sequence[Split], taken_out: Sequence[str] = ()
) -> pd.DataFrame:
    r"""Look for everything that lets a model know the answer of a test scan.

    - **person in two folds**: a participant in training and test scans.
    - **people not told**: every scan counts as a person, as nothing said whose it is.
    - **visits taken for people**: ids that differ in one part only, such as `P01_V1`
      and `P01_V2`, of people whose sex agrees; where the part is no word for a visit,
      labels agree, too.
    - **duplicate scans**: connectomes or features of two participants that are the
      same, or whose squared difference is below a hundredth of that of two strangers.
    - **label in the features**: values of which the classes explain
      :math:`\eta^2 \ge 0.99` of the variance; features named like a clinical score.
    - **family, site in two folds**: people of one family or site on both sides.
    - **label from one column**: balanced accuracy of the label told from site,
      scanner, phase, tracer, processing, age, sex, head size or motion alone (by the
      class of whose people the largest share has the value, or is in its eighth, in
      five folds of people), with a permutation p-value of chi-squared,
      Holm-corrected for the columns tried; likewise from what was not measured.
      Numbers of sites, scanners and phases are names of groups, whatever their coding
      (:func:`brainlsap.data.covariates.has_groups`).
    - **values on several scales**: scans of several tracers, reference regions,
      corrections for partial volume, or versions of a pipeline.
    - **values in another unit**: ratios or sizes that no brain has.
    - **covariates missing**: there is no age, sex or site that could be tried.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    splits : sequence of (train, test)
        Folds, as :func:`make_splits` makes them.
    taken_out : sequence of str
        Columns that are regressed out, or harmonised, inside the folds.

    Returns
    -------
    DataFrame
        check, severity ("error": a leak; "warning": what may explain a score; "note"),
        finding, what_to_do, and scans: the names of those concerned, with ", " between
        them, where there are some. Only that column names anybody.
    """
    out = {find_column(cohort.table, name) for name in taken_out}
    found = [
        *_crossing(cohort, splits),
        *_people_not_told(cohort),
        *_visits_as_people(cohort),
        *_duplicates(cohort, splits),
        *_label_in_features(cohort),
        *_several_scales(cohort, out),
        *(_found("values in another unit", one) for one in find_odd_units(cohort)),
        *_label_from_columns(cohort, out, splits),
    ]
    found.sort(key=lambda row: ("error", "warning", "note").index(row[1]))
    columns = ["check", "severity", "finding", "what_to_do", "scans"]
    return pd.DataFrame(found, columns=columns, dtype=object)


def count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 person", "1,234 people"."""
    plural = {"person": "people"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"


def _found(
    check: str, finding: str, scans: str = "", severity: str = "", advice: str = ""
) -> tuple[str, ...]:
    """Return a row of the audit; severity and advice are the check's unless given."""
    usual, what_to_do = CHECKS[check]
    return check, severity or usual, finding, advice or what_to_do, scans


def _crossing(cohort: Cohort, splits: Sequence[Split]) -> Iterator[tuple[str, ...]]:
    """Look for people, families and sites on both sides of a fold."""
    for column, kind in {"participant": "person", **_covariates(cohort)}.items():
        if kind not in ("person", "family", "site"):
            continue
        if shared := _on_both_sides(cohort.table[column], splits):
            n, n_folds = len(set.union(*shared)), count(len(splits), "fold")
            groups = f"{count(n, 'group')} of {column}"
            who = count(n, "person") if kind == "person" else groups
            finding = f"{who} in training and test scans of {len(shared)} of {n_folds}"
            yield _found(f"{kind} in two folds", finding)


def _on_both_sides(values: pd.Series, splits: Sequence[Split]) -> list[set[Any]]:
    """Return values that training and test scans share, of folds where there are."""
    sides = [[set(values.iloc[rows].dropna()) for rows in one] for one in splits]
    return [train & test for train, test in sides if train & test]


def _people_not_told(cohort: Cohort) -> Iterator[tuple[str, ...]]:
    if cohort.provenance.get("people") == NOT_GIVEN:
        finding = f"whose the {count(cohort.n_scans, 'scan')} are was not said"
        yield _found("people not told", f"{finding}: each counts as a person")


def _visits_as_people(cohort: Cohort) -> Iterator[tuple[str, ...]]:
    """Look for people whose ids differ only in what may be a visit."""
    people = cohort.table.drop_duplicates("participant").reset_index(drop=True)
    kinds = _covariates(cohort)
    sexes = [people[column] for column, kind in kinds.items() if kind == "sex"]
    sex = sexes[0].tolist() if sexes else []
    rows, n_people = find_session_ids(
        people["participant"].tolist(), people["label"].tolist(), sex
    )
    if len(rows):
        finding = (
            f"{count(len(rows), 'person')} have ids that differ only in one part, as "
            f"those of visits do, and may be {count(n_people, 'person')}"
        )
        scans = ", ".join(people["scan"][rows])
        yield _found("visits taken for people", finding, scans)


def _duplicates(cohort: Cohort, splits: Sequence[Split]) -> Iterator[tuple[str, ...]]:
    """Look for connectomes and features that two participants share."""
    names = cohort.table["scan"]
    for kind, values in _arrays(cohort).items():
        pairs = _near_pairs(values, edges=kind == "connectomes")
        is_own = np.equal(*cohort.groups[pairs].T)
        own, others = pairs[is_own], pairs[~is_own]
        is_many = len(others) > MOST_PAIRS
        for pair in [*own] if is_many else [*own, *others]:
            i, j = pair
            same = np.array_equal(values[i], values[j], equal_nan=True)
            scans = ", ".join(names.iloc[pair])
            if cohort.groups[i] == cohort.groups[j]:
                if same:
                    copied = f"identical {kind} of two visits of a participant"
                    yield _found("duplicate scans", copied, scans, "warning", COPIED)
                continue
            sides = [[np.isin(pair, rows).any() for rows in one] for one in splits]
            apart = np.all(sides, axis=1).any()
            finding = (
                f"{'identical' if same else 'nearly identical'} {kind} of two "
                f"participants, {'' if apart else 'not '}on two sides of a fold"
            )
            severity = "error" if apart else "warning"
            yield _found("duplicate scans", finding, scans, severity)
        if is_many:
            told = f"{count(len(others), 'pair')} of participants have alike {kind}"
            yield _found("duplicate scans", told, advice=SCALED)


def _arrays(cohort: Cohort) -> dict[str, np.ndarray]:
    """Return what differs between scans, as (n_scans, n_values)."""
    arrays = {"features": cohort.features.reshape(cohort.n_scans, -1)}
    if not cohort.shares_connectome:
        arrays["connectomes"] = cohort.connectomes.reshape(cohort.n_scans, -1)
    return arrays


def _near_pairs(values: np.ndarray, *, edges: bool) -> np.ndarray:
    """Return pairs (n_pairs, 2) of rows of values that are (nearly) the same."""
    known = np.flatnonzero(~np.isnan(values).all(axis=1))
    seen = np.count_nonzero(values, axis=0)  # what most people have
    columns = np.argsort(-seen, kind="stable")[:MOST_VALUES]
    z = np.array(values[np.ix_(known, columns)], dtype=np.float64)
    z = np.log1p(z) if edges else z
    z = SimpleImputer(keep_empty_features=True).fit_transform(z)
    z = z[:, np.ptp(z, axis=0) > 1e-10 * np.abs(z).max(axis=0)]
    if z.shape[1] < 2:
        return np.empty((0, 2), dtype=np.int64)
    z = StandardScaler().fit_transform(z)
    limit = ALIKE * 2 * z.shape[1] if z.shape[1] >= FEWEST_VALUES else 1e-20
    pairs = cKDTree(z).query_pairs(np.sqrt(limit), output_type="ndarray")
    return known[np.unique(pairs, axis=0)]


def _label_in_features(cohort: Cohort) -> Iterator[tuple[str, ...]]:
    """Look for features and edges that are a function of the label."""
    for name in filter(CLINICAL.search, cohort.feature_names):
        yield _found("clinical score as feature", f"the feature is named {name!r}")
    regions = cohort.region_names
    for kind, values in _arrays(cohort).items():
        share = explained_by_class(values, cohort.y)
        places = np.flatnonzero(share >= EXPLAINED)
        if places.size:
            last = cohort.feature_names if kind == "features" else regions
            each = [divmod(place, len(last)) for place in places[:3]]
            named = ", ".join(f"{regions[i]} {last[j]}" for i, j in each)
            finding = (
                f"classes explain {share.max():.1%} of the variance of "
                f"{count(places.size, 'feature' if kind == 'features' else 'edge')}: "
                f"{named}{' ...' * (places.size > 3)}"
            )
            yield _found("label in the features", finding)


def _several_scales(cohort: Cohort, taken_out: set[str]) -> Iterator[tuple[str, ...]]:
    """Name columns by whose values features may be on several scales."""
    for column, kind in _covariates(cohort).items():
        values = cohort.table[column].dropna().astype(str)
        if kind not in SCALE_KINDS or values.nunique() < 2:
            continue
        counts = values.value_counts().items()
        told = listed((f"{value} ({count(n, 'scan')})" for value, n in counts), 5)
        finding = f"{column} has {values.nunique()} values: {told}"
        is_out = column in taken_out
        severity, advice = ("note", TAKEN) if is_out else ("", "")
        yield _found("values on several scales", finding, "", severity, advice)


def explained_by_class(values: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return the part of every column's variance that classes of five scans explain."""
    names = pd.Series(label.astype(str))
    rows = (names.groupby(names).transform("size") >= FEWEST_SCANS).to_numpy()
    shares = []
    for part in np.array_split(values[rows], values.shape[1] // 1000 + 1, axis=1):
        scans = pd.DataFrame(part.astype(float))
        by_class = scans.groupby(names[rows].to_numpy())
        count, total = by_class.count(), scans.var(ddof=0) * scans.count()
        within = (by_class.var(ddof=0) * count).sum()
        varies = (count >= FEWEST_SCANS).all() & (total > 1e-20 * (scans**2).sum())
        shares.append(np.where(varies, 1 - within / total, 0))
    return np.concatenate(shares)


def _label_from_columns(
    cohort: Cohort, taken_out: set[str], splits: Sequence[Split]
) -> Iterator[tuple[str, ...]]:
    """Ask what covariates, and what was not measured, tell of the label alone."""
    tried: dict[str, pd.Series] = {}
    kinds, of_label = _covariates(cohort), kind_of(cohort.label_name)
    known = {*kinds.values(), of_label}
    known |= {"site"} if "scanner" in known else set()
    if missing := sorted({*ALONE[:3]} - known):
        heads = [f"{kind} ({', '.join(COVARIATES[kind][:3])} ...)" for kind in missing]
        what = f"what {', '.join(missing)} alone would tell of the label was not"
        yield _found("covariates missing", f"{what} checked: no column {listed(heads)}")
    for column, kind in kinds.items():
        values = cohort.table[column]
        numbers = pd.to_numeric(values, errors="coerce")
        is_number = numbers.count() >= 0.9 * values.count()
        if is_number and not has_groups(column, numbers):
            values = numbers  # other words count as missing
        else:
            values = group_names(values)
        if kind in ALONE:
            tried[f"{column} alone"] = values
        tried[f"missing {column}"] = values.isna()
    gaps = np.isnan(cohort.features).reshape(cohort.n_scans, -1)
    gaps = gaps[:, gaps.any(axis=0) & ~gaps.all(axis=0)]
    tried["the number of missing values"] = pd.Series(gaps.sum(axis=1))
    patterns = np.unique(gaps, axis=0, return_inverse=True)[1].reshape(-1)
    tried["which values are missing"] = pd.Series(patterns.astype(str))
    tried = {name: one for name, one in tried.items() if one.nunique() > 1}
    scores = [column_score(one, cohort.y, cohort.groups) for one in tried.values()]
    corrected = adjust_p_values([p_value for _, _, p_value in scores])
    what = f", Holm-corrected for {len(tried)} columns and gaps"
    of = what if len(tried) > 1 else ""
    for name, (score, chance, _), p in zip(tried, scores, corrected, strict=True):
        column = name.removesuffix(" alone")
        alone, differs = column != name, p < 0.05
        n = tried[name].isna().groupby(cohort.groups).all().sum()
        unknown = f"; {column} missing in {count(n, 'person')}" if n else ""
        finding = (
            f"{name}: balanced accuracy {score:.2f} (chance {chance:.2f}); difference "
            f"between classes p = {p:.3f}{of}{unknown}"
        )
        is_out = alone and column in taken_out
        is_held = (
            alone
            and has_groups(column, cohort.table[column])
            and not _on_both_sides(cohort.table[column], splits)
        )
        if is_out:
            finding += "; taken out of the features inside the folds"
        if is_held:
            finding += "; test scans have values of it that training scans have not"
        check = "label from one column" if alone else "missing values tell the label"
        if differs and score >= chance + LEAST_GAIN:
            advice = HELD if is_held else TAKEN if is_out else ""
            yield _found(check, finding, "", "note" if is_held else "", advice)
        elif alone:
            yield _found(check, finding, "", "note", LITTLE if differs else NOTHING)


def column_score(
    values: ArrayLike, label: ArrayLike, groups: ArrayLike
) -> tuple[float, float, float]:
    """Return balanced accuracy of the label from one column, chance, and p-value.

    The p-value is of a difference between classes: by Kruskal and Wallis' test of
    numbers, by Pearson's chi-squared, held against permuted values, of groups.
    Each value (numbers in eighths) stands for the class of whose training people the
    largest share has it; of each person the first scan with a value counts.
    """
    scans = pd.DataFrame({"value": np.asarray(values), "label": np.asarray(label)})
    people = scans.assign(person=groups).dropna().drop_duplicates("person")
    given = people["value"]
    is_many = pd.api.types.is_numeric_dtype(given) and given.nunique() > N_BINS
    if is_many:
        given = pd.qcut(given, N_BINS, labels=False, duplicates="drop")
    code = pd.factorize(given)[0]
    classes, y = np.unique(people["label"].astype(str), return_inverse=True)
    rng, n_codes, n_classes = np.random.default_rng(0), code.max() + 1, len(classes)
    fold, shuffled = np.empty(len(y), dtype=np.int64), rng.permutation(len(y))
    fold[shuffled[np.argsort(y[shuffled], kind="stable")]] = np.arange(len(y)) % N_FOLDS
    test = np.zeros((N_FOLDS, n_codes, n_classes))
    np.add.at(test, (fold, code, y), 1)
    table = test.sum(axis=0)
    train = table - test
    share = np.round(train / np.maximum(train.sum(axis=1, keepdims=True), 1), 12)
    best = share == share.max(axis=2, keepdims=True)
    # Classes that are tied share the guess, so that what tells nothing is chance.
    right = (test * best / best.sum(axis=2, keepdims=True)).sum(axis=(0, 1))
    score = (right / table.sum(axis=0)).mean()
    # of a cross-validated score small studies would see little
    if is_many and n_classes > 1:
        p_value = kruskal(*(x for _, x in people.groupby("label")["value"])).pvalue
    else:  # permutations have the margins of the table
        margins = [table.sum(axis=axis).astype(int) for axis in (1, 0)]
        drawn = random_table(*margins, seed=rng).rvs(N_PERMUTATIONS)
        squares = (np.stack([table, *drawn]) ** 2 / np.outer(*margins)).sum(axis=(1, 2))
        p_value = (squares >= squares[0] * (1 - 1e-12)).mean()
    return float(score), 1 / n_classes, float(p_value)


def _covariates(cohort: Cohort) -> dict[str, str]:
    """Return what each column may be that is no key and not the label's own name."""
    keys = {*KEY_COLUMNS, cohort.label_name}
    columns = [str(name) for name in cohort.table.columns if name not in keys]
    return {column: acquisition_kind(column) for column in columns}
