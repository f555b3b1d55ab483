"""One planted leak each; the audit must find it, and find no error where is none."""

import os
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from brainlsap.data import make_cohort
from brainlsap.evaluation import make_splits
from brainlsap.evaluation.findings import CHECKS
from brainlsap.evaluation.leakage import audit
from brainlsap.exceptions import ParameterError

N_CLEAN = int(os.environ.get("BRAINLSAP_CLEAN_COHORTS", "6"))


@pytest.fixture(scope="module")
def clean():
    return make_cohort(80, atlas="desikan82", feature="volume", random_state=5)


@pytest.fixture(scope="module")
def splits(clean):
    return make_splits(clean.y, clean.groups, 3)


def apart(splits):
    """Return two rows of two people on two sides of the first fold."""
    return int(splits[0][0][0]), int(splits[0][1][-1])


def with_features(cohort, change):
    features = cohort.features.copy()
    return replace(cohort, features=change(features))


def with_column(cohort, **columns):
    return replace(cohort, table=cohort.table.assign(**columns))


def stage(cohort):
    return np.array([cohort.classes.index(name) for name in cohort.y])


def found(cohort, splits, severity, check, *more, **options):
    result = audit(cohort, splits, *more, **options)
    assert check in result.checks_of(severity), result.to_frame()
    (finding,) = [one for one in result.of(severity) if one.check == check][:1]
    assert finding.advice == CHECKS[check].advice
    return result, finding.evidence


def test_leak_01_person_in_two_folds(clean):
    repeated = next(p for p in clean.groups if (clean.groups == p).sum() > 1)
    first, second = np.flatnonzero(clean.groups == repeated)[:2]
    others = np.flatnonzero(clean.groups != repeated)
    third = clean.groups == clean.groups[others[20]]
    late, early = others[(others > 20) & ~third[others]], others[others < 20]
    early = early[~np.isin(clean.groups[early], clean.groups[late])]
    splits = [(np.append(late, first), np.append(early, second))]
    result, evidence = found(clean, splits, "error", "person in two folds")
    assert evidence == "1 person in training and test scans of 1 of 1 folds"
    assert not result.is_clean
    both = [(np.append(late, first), np.append(early, first))]
    assert (
        "1 of their scans on both sides"
        in found(clean, both, "error", "person in two folds")[1]
    )


def test_leak_02_one_connectome_under_two_ids(clean, splits):
    i, j = apart(splits)
    W = clean.connectomes.copy()
    W[j] = W[i]
    result, evidence = found(
        replace(clean, connectomes=W), splits, "error", "identical connectomes"
    )
    assert "1 pair of scans" in evidence
    assert "1 of them under different participants" in evidence
    scans = clean.table["scan"]
    told = result.pairs[result.pairs["check"] == "identical connectomes"]
    assert {*told.iloc[0][["scan", "other_scan"]]} == {scans[i], scans[j]}


def test_leak_03_one_row_of_features_under_two_ids(clean, splits):
    i, j = apart(splits)

    def copy(values):
        values[j] = values[i]
        return values

    found(with_features(clean, copy), splits, "error", "identical features")


def test_leak_04_nearly_one_row_of_features(clean, splits):
    i, j = apart(splits)
    rng = np.random.default_rng(0)

    def copy(values):
        noise = rng.normal(0, 0.05 * values.std(axis=0))
        values[j] = values[i] + noise
        return values

    result, _ = found(
        with_features(clean, copy), splits, "error", "nearly identical features"
    )
    assert len(result.pairs) == 1


def test_leak_05_nearly_one_connectome(clean, splits):
    i, j = apart(splits)
    W, rng = clean.connectomes.copy(), np.random.default_rng(0)
    factor = np.triu(rng.uniform(0.98, 1.02, W[i].shape))
    W[j] = W[i] * (factor + np.triu(factor, 1).T)
    found(
        replace(clean, connectomes=W), splits, "error", "nearly identical connectomes"
    )


def test_leak_06_family_in_two_folds(clean, splits):
    people = {name: k // 2 for k, name in enumerate(dict.fromkeys(clean.groups))}
    family = with_column(clean, family=[f"f{people[name]}" for name in clean.groups])
    found(family, splits, "error", "group in two folds", whole=["family"])
    assert "column family" in found(family, splits, "warning", "family in two folds")[1]
    site = with_column(clean, site=stage(clean).astype(str))
    assert "group in two folds" not in audit(site, splits).checks_of("error")
    found(site, splits, "error", "group in two folds", whole=["site"])


@pytest.mark.parametrize("column", ["site", "phase", "scanner", "sex"])
def test_leak_07_label_from_a_column(clean, splits, column):
    late = stage(clean) > 2
    values = np.where(late, "A", "B")
    _, evidence = found(
        with_column(clean, **{column: values}),
        splits,
        "warning",
        "label from one column",
    )
    assert evidence.startswith(f"{column} alone: balanced accuracy 0.4")
    assert re.search(r"chance 0\.20, p = 0\.005, 80 people", evidence)


def test_leak_08_label_from_age(clean, splits):
    rng = np.random.default_rng(0)
    age = 55 + 5 * stage(clean) + rng.normal(0, 3, clean.n_scans)
    found(with_column(clean, age=age), splits, "warning", "label from one column")


def test_leak_09_feature_is_a_function_of_the_label(clean, splits):
    def plant(values):
        noise = np.random.default_rng(0).normal(0, 0.01, len(values))
        values[:, 7, 0] = np.array([3.0, 1.0, 4.0, 1.5, 9.0])[stage(clean)] + noise
        return values

    _, evidence = found(
        with_features(clean, plant), splits, "error", "label in the features"
    )
    assert evidence.startswith("1 features")
    assert evidence.endswith(f"volume of {clean.region_names[7]}")


def test_leak_10_edge_is_a_function_of_the_label(clean, splits):
    W = clean.connectomes.copy()
    W[:, 3, 9] = W[:, 9, 3] = 100.0 + stage(clean)
    _, evidence = found(
        replace(clean, connectomes=W), splits, "error", "label in the features"
    )
    assert f"{clean.region_names[3]} to {clean.region_names[9]}" in evidence


def test_leak_11_clinical_score_as_feature(clean, splits):
    named = replace(clean, feature_names=("MMSE_total",))
    found(named, splits, "warning", "clinical score as feature")


def test_leak_12_standardised_on_all_scans(clean, splits):
    def standardise(values):
        return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)

    _, evidence = found(
        with_features(clean, standardise), splits, "error", "fitted outside the folds"
    )
    assert "mean 0 and deviation 1" in evidence


def test_leak_13_harmonised_on_all_scans(clean, splits):
    site = clean.table["site"].to_numpy()

    def harmonise(values):
        for one in set(site):
            values[site == one] -= values[site == one].mean(axis=0)
        return values + 5.0

    _, evidence = found(
        with_features(clean, harmonise), splits, "error", "fitted outside the folds"
    )
    assert "same mean at every site" in evidence
    said = replace(clean, provenance={"combat": {"batch": "site"}})
    assert "combat" in found(said, splits, "error", "fitted outside the folds")[1]
    noted = replace(clean, notes=("values were harmonized",))
    found(noted, splits, "warning", "fitted before")


def test_leak_14_age_regressed_out_on_all_scans(clean, splits):
    age = clean.table["age"].to_numpy(dtype=float)
    age = age - age.mean()

    def regress(values):
        slope = np.einsum("i,ijk->jk", age, values) / (age @ age)
        return values - age[:, None, None] * slope

    _, evidence = found(
        with_features(clean, regress), splits, "error", "fitted outside the folds"
    )
    assert "no correlation with age" in evidence


def test_leak_15_transform_that_stays_fitted(clean, splits):
    from sklearn.frozen import FrozenEstimator

    scaler = StandardScaler().fit(np.ones((4, 2)))
    frozen = make_pipeline(FrozenEstimator(scaler), LogisticRegression())
    found(clean, splits, "error", "fitted outside the folds", frozen)
    fitted = {"ours": make_pipeline(scaler, LogisticRegression())}
    _, evidence = found(clean, splits, "warning", "fitted before", fitted)
    assert evidence.startswith("ours: StandardScaler was fitted before")


@pytest.mark.parametrize("given", ["rows", "iterator", "predefined"])
def test_leak_16_search_on_rows_of_the_whole_cohort(clean, splits, given):
    inner = {
        "rows": list(splits),
        "iterator": list(splits),
        "predefined": PredefinedSplit(np.arange(clean.n_scans) % 3),
    }[given]
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=inner)
    found(clean, splits, "error", "tuned on the test fold", search)


def test_leak_17_search_on_folds_that_share_people(clean, splits):
    grid = {"C": [1.0]}
    search = GridSearchCV(LogisticRegression(), grid)
    found(clean, splits, "warning", "tuned on shared people", search)
    honest = GridSearchCV(LogisticRegression(), grid, cv=GroupKFold(3))
    assert audit(clean, splits, honest).is_clean
    assert "tuned on shared people" in audit(clean, splits, honest).passed()


def test_leak_18_best_of_many(clean, splits):
    many = {f"C={c}": LogisticRegression(C=c) for c in range(1, 8)}
    _, evidence = found(clean, splits, "warning", "many variants", many)
    assert "7 models are LogisticRegression" in evidence


def test_leak_19_missing_values_tell_the_label(clean, splits):
    def lose(values):
        values[stage(clean) > 2, 4, 0] = np.nan
        return values

    found(
        with_features(clean, lose), splits, "warning", "missing values tell the label"
    )
    gone = clean.table["age"].where(stage(clean) < 3)
    _, evidence = found(
        with_column(clean, age=gone), splits, "warning", "missing values tell the label"
    )
    assert evidence.startswith("missing age:")


def test_leak_20_folds_that_differ(clean):
    old = clean.table["age"].to_numpy() > clean.table["age"].median()
    people = set(clean.groups[old])
    old = np.isin(clean.groups, list(people))
    splits = [(np.flatnonzero(~old), np.flatnonzero(old))]
    _, evidence = found(clean, splits, "warning", "folds differ")
    assert evidence.startswith("age of the test people of fold 1: p = ")
    late = stage(clean) > 2
    splits = [(np.flatnonzero(~late), np.flatnonzero(late))]
    _, evidence = found(clean, splits, "warning", "folds differ")
    assert evidence == "fold 1 has no training scans of LMCI, AD"


def test_a_covariate_that_is_the_label_is_noted(clean, splits):
    named = with_column(clean, group=[name.lower() for name in clean.y])
    found(named, splits, "note", "column that is the label")


@pytest.mark.parametrize("seed", range(N_CLEAN))
def test_clean_cohorts_have_no_error(seed):
    feature = ("fdg", "thickness", "volume")[seed % 3]
    cohort = make_cohort(
        70 + 10 * seed % 50, atlas="desikan82", feature=feature, random_state=seed
    )
    splits = make_splits(cohort.y, cohort.groups, 3, random_state=seed)
    result = audit(cohort, splits, LogisticRegression())
    assert result.is_clean, result.to_frame()


def test_same_cohort_same_findings(clean, splits):
    one, two = audit(clean, splits), audit(clean, splits)
    assert one.to_frame().equals(two.to_frame())


def test_no_finding_names_a_person(clean, splits):
    i, j = apart(splits)
    W = clean.connectomes.copy()
    W[j] = W[i]
    text = audit(replace(clean, connectomes=W), splits).to_frame().to_csv()
    assert not [name for name in set(clean.groups) if name in text]


def test_columns_that_are_not_there(clean, splits):
    with pytest.raises(ParameterError, match=r"columns of the cohort's table, got 'x'"):
        audit(clean, splits, whole=["x"])


def test_severities_stand_in_the_documentation():
    rows = re.findall(
        r"^    ([a-z ]+?) +(error|warning|note)$", audit.__doc__, re.MULTILINE
    )
    assert dict(rows) == {name: check.severity for name, check in CHECKS.items()}
