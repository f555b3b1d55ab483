"""The audit finds each planted leak, names its scans, and is quiet without one."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainlsap import Cohort, report
from brainlsap.evaluation import audit, leakage, leave_one_out_splits, make_splits
from brainlsap.evaluation.leakage import (
    compute_accuracy_chance_and_p,
    make_error_table_without_folds,
)
from brainlsap.evaluation.splits import find_session_ids_and_n_people
from brainlsap.simulation import make_cohort


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(60, atlas="desikan82", random_state=1)


def checks(cohort, splits=None):
    splits = splits or make_splits(cohort.y, cohort.groups, 3)
    table = audit(cohort, splits)
    return table.set_index("check")


def with_table(cohort, **columns):
    return replace(cohort, table=cohort.table.assign(**columns))


def test_a_clean_cohort_has_no_error_and_no_warning(cohort):
    findings = checks(cohort)
    assert set(findings["severity"]) <= {"note"}


def test_people_families_and_sites_in_two_folds_are_counted(cohort):
    related = with_table(cohort, family_id=pd.factorize(cohort.groups)[0] // 2)
    by_scan = make_splits(cohort.y, np.arange(cohort.n_scans), 3)
    findings = checks(related, by_scan)
    assert findings.loc["person_in_two_folds", "severity"] == "error"
    assert "of 3 of 3 folds" in findings.loc["person_in_two_folds", "finding"]
    assert findings.loc["family_in_two_folds", "severity"] == "warning"
    assert findings.loc["site_in_two_folds", "severity"] == "note"


ENDINGS = ["_V{}", "-{}", "_ses-{}", "v{}", "_MR{}", "_fu{}"]
WORDS = [["_entry", "_return", "_last"], ["", "_2", "_3"], ["", "b", "c"]]


@pytest.mark.parametrize(
    "ends", [[one.format(k) for k in (1, 2, 3)] for one in ENDINGS] + WORDS
)
def test_visits_with_ids_of_their_own_are_told(cohort, ends):
    table = cohort.table
    visit = table.groupby("participant").cumcount()
    visit_ids = table["participant"] + visit.map(dict(enumerate(ends)))
    rows, n_people = find_session_ids_and_n_people([*visit_ids], [*table["label"]])
    has_visits = table["participant"].duplicated(keep=False)
    assert rows.tolist() == np.flatnonzero(has_visits).tolist()
    assert n_people == table["participant"][has_visits].nunique()


@pytest.mark.parametrize("name", ["HC_{:02d}", "{:03d}", "site1-{}", "c{}_{}"])
def test_ids_of_people_are_no_visits(cohort, name):
    labels = cohort.table.drop_duplicates("participant")["label"]
    ids = [name.format(k if "}_" not in name else k // 3, k % 3) for k in range(60)]
    rows, _ = find_session_ids_and_n_people(ids, [*labels])
    assert len(rows) == 0


SESSION_IDS = {
    "OASIS-3": lambda i, v: f"OAS3{i:04d}_MR_d{(129 + 71 * i + 800 * v):04d}",
    "UK Biobank": lambda i, v: f"{1000000 + i}_{2 + v}_0",
    "HCP Aging": lambda i, v: f"HCA{6000000 + i}_V{v + 1}_MR",
    "month": lambda i, v: f"P{i:03d}_M{6 * v:03d}",
    "date": lambda i, v: f"P{i:03d}_{2010 + v}0{1 + i % 9}1{i % 10}",
    "dashed date": lambda i, v: f"{i:03d}_S_{i:04d}_{2010 + v}-04-1{i % 10}",
    "word": lambda i, v: f"P{i:02d}_session{v + 1}",
    "visit first": lambda i, v: f"V{v + 1}_P{i:02d}",
    "baseline first": lambda i, v: f"{('bl', 'm12')[v]}_P{i:02d}",
    "three digits": lambda i, v: f"P{i:03d}_{v + 1:03d}",
    "middle": lambda i, v: f"study_{v + 1}_P{i:03d}_T1",
    "letter": lambda i, v: f"sub{i:02d}{'ab'[v]}",
    "image": lambda i, v: f"{i % 7:03d}_S_{i:04d}_I{(7919 * (2 * i + v)) % 90001:05d}",
}


@pytest.mark.parametrize("kind", SESSION_IDS)
def test_ids_of_sessions_are_told_by_their_structure(kind):
    pairs = [(i, v) for i in range(20) for v in (0, 1)]
    ids = [SESSION_IDS[kind](i, v) for i, v in pairs]
    labels = [("CN", "AD")[i % 2] for i, _ in pairs]
    rows, n_people = find_session_ids_and_n_people(ids, labels)
    assert (len(rows), n_people) == (40, 20)
    # what differs between visits in sex is not of one person
    rows, _ = find_session_ids_and_n_people(ids, labels, ["F", "M"] * 20)
    assert len(rows) == 0


def test_the_audit_names_the_scans_of_visits_taken_for_people(cohort):
    table = cohort.table
    visit = table.groupby("participant").cumcount() + 1
    visit_ids = table["participant"] + "_V" + visit.astype(str)
    findings = checks(with_table(cohort, sex="F", participant=visit_ids))
    row = findings.loc["visits_taken_for_people"]
    assert row["severity"] == "error"
    has_visits = table["participant"].duplicated(keep=False)
    assert f"{has_visits.sum()} people have IDs that differ only" in row["finding"]
    assert row["scans"].split(", ") == table["scan"][has_visits].tolist()
    sexes = visit.map({1: "F", 2: "M", 3: "F"})
    findings = checks(with_table(cohort, sex=sexes, participant=visit_ids))
    assert "visits_taken_for_people" not in findings.index


NUMBERS = np.random.default_rng(0).permutation(10**6)[:40]
PEOPLE_IDS = {
    "ADNI": [f"ADNI{k % 12:03d}S{i:04d}" for i, k in enumerate(NUMBERS)],
    "ADNI, written out": [f"{k % 12:03d}_S_{i:04d}" for i, k in enumerate(NUMBERS)],
    "site and number": [f"sub-SITE{i % 4 + 1:02d}_{i // 4:03d}" for i in range(40)],
    "site and running number": [f"S{i % 8:02d}-{i:03d}" for i in range(40)],
    "NDAR": [f"NDAR_INV{k * 4099:08X}" for k in NUMBERS],
    "Cam-CAN": [f"CC{k + 110033}" for k in NUMBERS],
    "HCP": [f"{k + 100307}" for k in NUMBERS],
    "day and number": [f"201101{i // 3 + 10}_{i % 3}" for i in range(40)],
    "group": [f"{('CN', 'AD')[i % 2]}_{i // 2:02d}" for i in range(40)],
    "site and group": [f"{'abcde'[i // 8]}{'CA'[i % 2]}{i:02d}" for i in range(40)],
    "one session": [f"OAS3{i:04d}_MR_d{k % 4000:04d}" for i, k in enumerate(NUMBERS)],
}


@pytest.mark.parametrize("kind", PEOPLE_IDS)
def test_ids_of_people_of_large_studies_are_no_sessions(kind):
    labels = ["CN", "AD"] * 20  # as groups that are named in ids
    if "group" not in kind:
        labels = np.random.default_rng(1).permutation(labels).tolist()
    rows, _ = find_session_ids_and_n_people(PEOPLE_IDS[kind], labels)
    assert len(rows) == 0


def test_ids_are_no_visits_because_nobody_has_a_label():
    """Two centres count from 1, and all labels are missing."""
    ids = [f"C{centre}-{number:03d}" for centre in (1, 2) for number in range(1, 21)]
    rows, _ = find_session_ids_and_n_people(ids, ["n/a"] * 40)
    assert len(rows) == 0


def test_scans_of_which_nobody_said_whose_they_are_are_told(cohort):
    given = cohort.connectomes, cohort.features, cohort.y
    for groups, is_told in ((None, True), (cohort.groups, False)):
        made = Cohort.from_arrays(*given, groups=groups, atlas=cohort.atlas)
        assert ("people_not_stated" in checks(made).index) == is_told


@pytest.mark.parametrize("kind", ["features", "connectomes"])
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_scans_of_two_people_that_are_the_same_are_named(cohort, kind, noise):
    values = np.array(getattr(cohort, kind))
    first, second = 0, int(np.flatnonzero(cohort.groups != cohort.groups[0])[-1])
    values[second] = values[first] * (1 + noise)
    findings = checks(replace(cohort, **{kind: values}))
    row = findings.loc["duplicate_scans"]
    names = cohort.table["scan"]
    assert row["scans"] == f"{names[first]}, {names[second]}"
    assert (row["first_scan"], row["second_scan"]) == (names[first], names[second])
    likeness = "have nearly identical" if noise else "have identical"
    assert f" {likeness} {kind} " in row["finding"]
    assert row["severity"] == "error"
    assert names[first] not in row["finding"] + row["what_to_do"]


def test_scans_in_another_unit_are_not_taken_for_copies_one_by_one(cohort):
    values = np.array(cohort.features)
    values[::2] *= 1000
    findings = checks(replace(cohort, features=values)).loc[["duplicate_scans"]]
    assert len(findings) == 1
    assert " pairs of scans of different participants" in findings["finding"].iloc[0]
    assert findings["what_to_do"].iloc[0] == leakage.MANY_PAIRS_ADVICE


def test_one_scan_in_another_unit_makes_no_copies_of_the_others(cohort):
    values = np.array(cohort.features)
    values[3] *= 10
    findings = checks(replace(cohort, features=values))
    assert "duplicate_scans" not in findings.index
    assert "in 1 of " in findings.loc["unusual_unit", "finding"]
    other = int(np.flatnonzero(cohort.groups != cohort.groups[3])[0])
    values[other] = values[3]  # a copy of the scan is found
    row = checks(replace(cohort, features=values)).loc["duplicate_scans"]
    assert {*row["scans"].split(", ")} == {*cohort.table["scan"].iloc[[3, other]]}


def test_a_copy_of_one_of_two_features_is_named(cohort):
    rng = np.random.default_rng(0)
    thickness = rng.normal(2.5, 0.3, cohort.features.shape)
    values = np.concatenate([thickness, cohort.features], axis=2)
    first, second = 0, int(np.flatnonzero(cohort.groups != cohort.groups[0])[-1])
    values[second, :, 1] = values[first, :, 1]
    names = ("thickness", *cohort.feature_names)
    findings = checks(replace(cohort, features=values, feature_names=names))
    row = findings.loc["duplicate_scans"]
    assert row["finding"].startswith("two participants have identical fdg and ")
    values[second] = values[first]
    findings = checks(replace(cohort, features=values, feature_names=names))
    row = findings.loc["duplicate_scans"]  # one line, not one for each feature
    assert row["finding"].startswith("two participants have identical features and ")


def test_names_of_features_hide_no_copies_of_other_data(cohort):
    """Blocks of all features and of connectomes are not replaced by a feature."""
    rng = np.random.default_rng(0)
    noise = rng.normal(2.5, 0.3, cohort.features.shape)
    names = ("features", "connectomes")
    features = np.concatenate([noise, cohort.features], axis=2)
    first, second = 0, int(np.flatnonzero(cohort.groups != cohort.groups[0])[-1])
    connectomes = np.array(cohort.connectomes)
    connectomes[second] = connectomes[first]
    copied = replace(
        cohort, features=features, feature_names=names, connectomes=connectomes
    )
    scans = cohort.table["scan"]
    row = checks(copied).loc["duplicate_scans"]
    assert row["scans"] == f"{scans[first]}, {scans[second]}"


def test_a_copy_of_one_hemisphere_is_named(cohort):
    """As after a copy of the file lh.aparc.stats."""
    values = np.array(cohort.features)
    first, second = 0, int(np.flatnonzero(cohort.groups != cohort.groups[0])[-1])
    is_left = (cohort.atlas.regions["hemisphere"] == "L").to_numpy()
    rows = np.flatnonzero(cohort.atlas.cortex & is_left)
    values[second, rows[:-1]] = values[first, rows[:-1]]
    assert "duplicate_scans" not in checks(replace(cohort, features=values)).index
    values[second, rows] = values[first, rows]
    row = checks(replace(cohort, features=values)).loc["duplicate_scans"]
    scans = cohort.table["scan"]
    assert (row["first_scan"], row["second_scan"]) == (scans[first], scans[second])
    assert row["severity"] == "error"
    assert "left hemisphere" in row["finding"]


def test_visits_of_one_person_may_be_alike(cohort):
    person = next(p for p in cohort.groups if (cohort.groups == p).sum() > 1)
    first, second = np.flatnonzero(cohort.groups == person)[:2]
    values = np.array(cohort.features)
    values[second] = values[first] * 1.001
    assert "copied_visits" not in checks(replace(cohort, features=values)).index
    values[second] = values[first]  # but not the same
    copied = replace(cohort, features=values)
    finding = checks(copied).loc["copied_visits"]
    assert finding["severity"] == "warning"
    assert finding["finding"] == "two visits of a participant have identical features"
    # One person counts as one in folds and tests, so no result is wrong by it.
    assert "duplicate_scans" not in checks(copied).index
    assert make_error_table_without_folds(copied).empty


def test_a_feature_made_of_the_label_is_named(cohort):
    values = np.array(cohort.features)
    codes = np.unique(cohort.y.astype(str), return_inverse=True)[1]
    values[:, 3, 0] = codes + 0.01 * np.random.default_rng(0).normal(size=len(codes))
    finding = checks(replace(cohort, features=values)).loc["label_in_features"]
    assert finding["severity"] == "error"
    assert f"of 1 feature: {cohort.region_names[3]} fdg" in finding["finding"]
    named_findings = checks(replace(cohort, feature_names=("MMSE_total",)))
    assert "MMSE_total" in named_findings.loc["clinical_score_as_feature", "finding"]


def test_a_covariate_that_tells_the_label_is_found(cohort):
    rng = np.random.default_rng(0)
    person = cohort.table.groupby("participant")["label"].first()
    site = person.where(rng.random(len(person)) < 0.7, "AD")
    confounded = with_table(cohort, site=cohort.table["participant"].map(site))
    findings = checks(confounded).loc["covariate_predicts_label"]
    row = findings[findings["finding"].str.startswith("site alone")].iloc[0]
    assert row["severity"] == "warning"
    assert "Holm p < 0.001" in row["finding"]
    assert row["covariate"] == "site"
    assert f"accuracy {row['balanced_accuracy']:.2f}" in row["finding"]
    assert row["p_value"] < 0.001
    assert (checks(confounded)["what_to_do"] != "").all()
    splits = make_splits(cohort.y, cohort.groups, 3)
    by_finding = audit(confounded, splits, ["Site"]).set_index("finding")
    removed = by_finding.filter(like="site alone", axis=0).iloc[0]
    assert (
        removed.name
        == row["finding"]
        + "; its effect was removed from the features inside the folds"
    )
    assert removed["what_to_do"] == leakage.REMOVED_ADVICE
    whole = leave_one_out_splits(confounded.table["site"], cohort.groups)
    by_finding = audit(confounded, whole).set_index("finding")
    held_out = by_finding.filter(like="site alone", axis=0).iloc[0]
    assert held_out["severity"] == "note"
    assert held_out["what_to_do"] == leakage.HELD_OUT_ADVICE


def test_people_unlike_the_reference_class_are_counted(cohort):
    is_reference = cohort.y == "CN"
    splits = make_splits(cohort.y, cohort.groups, 2)
    age = np.where(is_reference, 70, 90) + np.arange(cohort.n_scans) / 100
    aged = replace(cohort, table=cohort.table.assign(age=age))
    table = audit(aged, splits, ["age"], "CN").set_index("check")
    n_outside = cohort.table["participant"][~is_reference].nunique()
    assert f"age of {n_outside} of" in table.loc["outside_reference", "finding"]
    of_age = table["finding"][table["finding"].str.startswith("age alone")]
    assert "in CN alone" in of_age.item()
    assert "outside_reference" not in audit(aged, splits, ["age"])["check"].tolist()


@pytest.mark.parametrize("column", ["SITEID", "field_strength"])
def test_numbered_groups_tell_the_label_as_named_ones_do(cohort, column):
    # ten groups of people; odd ones hold AD alone, even ones everybody else
    person = cohort.table.drop_duplicates("participant").set_index("participant")
    rng, is_ad = np.random.default_rng(0), person["label"] == "AD"
    number = 2 * rng.integers(0, 5, len(person)) + is_ad
    code = cohort.table["participant"].map(number)
    findings = {}
    for coding, values in {"number": code, "text": "g" + code.astype(str)}.items():
        table = checks(with_table(cohort, **{column: values}))["finding"]
        (findings[coding],) = table[table.str.startswith(f"{column} alone")]
    assert findings["number"] == findings["text"]
    numbered = with_table(cohort, **{column: code})
    held_out = leave_one_out_splits(numbered.table[column], cohort.groups)
    row = (
        audit(numbered, held_out)
        .set_index("finding")
        .filter(like=f"{column} alone", axis=0)
    )
    assert row["severity"].tolist() == ["note"]
    assert row["what_to_do"].tolist() == [leakage.HELD_OUT_ADVICE]


@pytest.mark.parametrize(
    ("column", "gap"),
    [("age", np.nan), ("age", "unknown"), ("sex", None), ("site", None)],
)
def test_people_without_a_covariate_are_left_out_and_counted(cohort, column, gap):
    person = cohort.groups[0]
    values = cohort.table[column].astype(object).mask(cohort.groups == person, gap)
    has_value = cohort.table["participant"] != person
    table = cohort.table.assign(**{column: values})
    findings = checks(replace(cohort, table=table))["finding"]
    (finding,) = findings[findings.str.startswith(f"{column} alone")]
    assert f" {column} is missing for 1 person" in finding
    columns = cohort.table[column], cohort.y, cohort.groups
    score, _, _ = compute_accuracy_chance_and_p(*(one[has_value] for one in columns))
    assert f"balanced accuracy {score:.2f}" in finding


def test_covariates_that_are_not_there_are_said_not_to_be_checked(cohort):
    assert "covariates_missing" not in checks(cohort).index
    table = cohort.table.drop(columns=["sex", "site"])
    row = checks(replace(cohort, table=table)).loc["covariates_missing"]
    assert "sex or site alone" in row["finding"]
    assert "sex, gender, ptgender ... for sex; site, ce" in row["finding"]
    scanned = replace(cohort, table=table.assign(scanner=cohort.table["site"]))
    empty = cohort.table.assign(age=np.nan)  # a column without any value
    row = checks(replace(cohort, table=empty)).loc["covariates_missing"]
    assert "age alone predicts" in row["finding"]
    finding = checks(scanned).loc["covariates_missing"]["finding"]
    assert "sex alone" in finding
    assert "site" not in finding


def test_head_size_and_motion_are_asked_what_they_tell(cohort):
    motion = np.random.default_rng(0).normal(size=cohort.n_scans)
    size = motion + 3 * (cohort.y == "AD")
    findings = checks(with_table(cohort, mean_FD=motion, TIV=size))["finding"]
    covariate_findings = findings["covariate_predicts_label"]
    assert (
        sum(
            one.startswith(("mean_FD alone", "TIV alone")) for one in covariate_findings
        )
        == 2
    )


def test_words_beside_a_column_fit_its_p_value(cohort, monkeypatch):
    usual_advice = leakage.CHECKS["covariate_predicts_label"].advice
    for accuracy, p, advice in (
        (0.23, 0.9, leakage.NO_DIFFERENCE_ADVICE),
        (0.23, 0.0005, leakage.SMALL_GAIN_ADVICE),
        (0.9, 0.0005, usual_advice),
    ):
        result = accuracy, 0.2, p
        monkeypatch.setattr(
            leakage, "compute_accuracy_chance_and_p", lambda *_, score=result: score
        )
        row = checks(cohort).loc["covariate_predicts_label"].iloc[0]
        assert row["what_to_do"] == advice
        assert (row["severity"] == "warning") == (accuracy == 0.9)


def test_a_covariate_is_warned_of_by_its_own_p_value(cohort, monkeypatch):
    """Other columns of a table do not hide it; missing values are corrected."""
    values = np.array(cohort.features)
    values[0, 5] = np.nan
    incomplete = replace(cohort, features=values)
    monkeypatch.setattr(
        leakage, "compute_accuracy_chance_and_p", lambda *_: (0.3, 0.2, 0.03)
    )
    findings = checks(incomplete)
    covariate_findings = findings.loc[["covariate_predicts_label"]]
    assert set(covariate_findings["severity"]) == {"warning"}
    for finding in covariate_findings["finding"]:
        assert "p = 0.030, Holm p = 0." in finding
    assert "missing_values_predict_label" not in findings.index
    monkeypatch.setattr(
        leakage, "compute_accuracy_chance_and_p", lambda *_: (0.3, 0.2, 0.06)
    )
    assert "warning" not in set(checks(incomplete)["severity"])


def test_missing_values_that_tell_the_label_are_found(cohort):
    values = np.array(cohort.features)
    values[cohort.y == "AD", 5] = np.nan
    values[cohort.y == "CN", 6] = np.nan
    findings = checks(replace(cohort, features=values))
    assert "missing_values_predict_label" in findings.index


def test_the_score_of_a_column_is_chance_or_one():
    rng, people = np.random.default_rng(0), np.arange(200)
    y = rng.choice(["a", "b"], 200)
    assert compute_accuracy_chance_and_p(y, y, people) == (
        1.0,
        0.5,
        pytest.approx(1e-4),
    )
    score, _, p = compute_accuracy_chance_and_p(rng.normal(size=200), y, people)
    assert abs(score - 0.5) < 0.1
    assert p > 0.05


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("TRACER", ["FTP", "MK6240"]),
        ("pvc", ["none", "GTM"]),
        ("Reference region", ["pons", "cerebellum"]),
        ("pipeline_version", [1, 2]),
    ],
)
def test_several_tracers_and_pipelines_are_named_and_tried(cohort, column, values):
    """SUVRs of two tracers are on two scales; that told the label, and went unseen."""
    y = np.asarray(cohort.y)
    column_values = np.where(np.isin(y, cohort.classes[:2]), *values)
    findings = checks(with_table(cohort, **{column: column_values}))
    scale_finding = findings.loc["several_scales"]
    assert scale_finding["severity"] == "warning"
    assert all(f"{value} (" in scale_finding["finding"] for value in values)
    covariate_findings = findings.loc["covariate_predicts_label", "finding"]
    assert covariate_findings.str.startswith(f"{column} alone").any()
    single_valued = with_table(cohort, **{column: values[:1] * cohort.n_scans})
    assert "several_scales" not in checks(single_valued).index


def test_every_check_has_a_text_and_code_and_templates_know_only_keys_of_checks():
    assert list(leakage.CHECKS) == list(leakage.CheckKey)
    assert {text.severity for text in leakage.CHECKS.values()} <= {*leakage.SEVERITIES}
    titles = [leakage.check_title(key) for key in leakage.CheckKey]
    assert len({*titles}) == len(titles)
    template = (Path(report.__file__).parent / "report.html.j2").read_text()
    keys = re.findall(
        r'"(\w+)"', " ".join(re.findall(r"audit_result\((.+?)\)", template))
    )
    assert len(keys) > 9
    assert {*keys} <= {*leakage.CHECKS}


def test_values_in_another_unit_are_a_finding(cohort):
    rescaled = replace(cohort, features=np.array(cohort.features) * 5)
    finding = checks(rescaled).loc["unusual_unit"]
    assert finding["severity"] == "warning"
    assert "fdg may not be measured in ratios" in finding["finding"]


@pytest.mark.parametrize("n_values", [3, 90])
def test_near_pairs_are_those_of_all_distances(monkeypatch, n_values):
    monkeypatch.setattr(leakage, "N_ROWS_AT_ONCE", 7)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(30, n_values))
    z[12] = z[2]
    z[21:24] = z[5] + 0.02 * rng.normal(size=(3, n_values))
    limit = 0.02 * n_values
    distances = ((z[:, None] - z) ** 2).sum(axis=2)
    expected = np.argwhere(np.triu(distances <= limit, 1))
    assert len(expected) >= 7
    np.testing.assert_array_equal(leakage.find_near_index_pairs(z, limit), expected)


def test_eta_squared_in_blocks_is_that_of_class_means(monkeypatch):
    monkeypatch.setattr(leakage, "N_ROWS_AT_ONCE", 7)
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "few"], [12, 9, 2])
    values = 1e3 + rng.normal(size=(23, 4)) + 3 * (labels == "b")[:, None]
    values[3, 0] = np.nan
    values[:8, 1] = np.nan
    values[:, 2] = 0.1
    eta_squared = leakage.compute_class_eta_squared(values, labels)
    expected = []
    for column in (0, 3):
        x = pd.Series(values[:21, column])
        within = x.groupby(labels[:21]).apply(lambda v: ((v - v.mean()) ** 2).sum())
        expected.append(1 - within.sum() / ((x - x.mean()) ** 2).sum())
    np.testing.assert_allclose(eta_squared[[0, 3]], expected, rtol=1e-9)
    np.testing.assert_array_equal(eta_squared[[1, 2]], 0)
