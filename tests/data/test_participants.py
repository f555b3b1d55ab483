"""Who is in a cohort: people, visits, labels, the order of classes."""

import shutil

import numpy as np
import pandas as pd
import pytest

from brainlsap.data import (
    check_cohort,
    features,
    load_cohort,
    order_classes,
    participants,
    suggest_options,
)
from brainlsap.data.covariates import is_categorical_covariate
from brainlsap.data.find_files import ScanIdentity
from brainlsap.data.id_columns import choose_id_column
from brainlsap.data.load import open_scans_and_sources
from brainlsap.data.participants import (
    FOREIGN_VISITS,
    list_facts_and_findings,
    make_changed_person_notes,
    make_first_visit_value_notes,
)
from brainlsap.data.reading_options import DEFAULT_OPTIONS
from brainlsap.data.region_tables import read_sheets_and_errors, read_table_contents
from brainlsap.data.stored_cohort import read_study
from brainlsap.exceptions import BrainlsapError, CohortError, FileFormatError
from brainlsap.findings import (
    ASSUMED,
    BASELINE,
    CHOICES,
    FAULT,
    FIRST_VISIT_VALUE,
    NO_LABEL,
    ONE_ROW,
)
from brainlsap.text import option_text
from tests.data.conftest import refused


@pytest.fixture
def read(write, tiny):
    """Return a function that writes a table of people and reads them, or raises."""

    def read(text, name="participants.tsv"):
        people, faults = list_facts_and_findings(
            read_table_contents(write(name, text), tiny)
        )
        if faults:
            raise CohortError(name, faults)
        return people

    return read


def test_people_and_facts(read, write):
    write("sub-1/sub-1_sessions.tsv", "session_id\tdiagnosis\nses-1\tCN\nses-2\tAD\n")
    found = read("participant_id\tage\tdiagnosis\nsub-2\t70\tAD\nsub-1\tn/a\tCN\n")
    assert list(found) == ["2", "1"]
    assert found["2"][""] == (ScanIdentity("sub-2"), {"age": "70", "diagnosis": "AD"})
    assert found["1"][""][1] == {"age": None, "diagnosis": "CN"}
    assert found["1"]["2"] == (ScanIdentity("sub-1", "ses-2"), {"diagnosis": "AD"})
    found = read("participant_id\tsession_id\tx\nsub-1\tses-1\t5\nsub-1\tses-3\t6\n")
    assert "" not in found["1"]
    assert found["1"]["3"][1] == {"x": "6"}
    # one table of regions, labels and covariates
    found = read("id,lh_a,sex,left_handed,CSF\ns1,1,F,0,9\ns2,2,M,1,9\n", "t.csv")
    assert found["s2"][""][1] == {"sex": "M", "left_handed": "1"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("sub-1\t\nsub-1\t\n", "sub-1: .* identical rows of .* Delete one"),
        ("sub-1\t1\nsub-1\t\n", "sub-1: .* a column session_id"),
        ("sub-1\t\n1\t1\n", "1: .* a column session_id"),
    ],
)
def test_rows_refused(read, rows, message):
    with refused(message):
        read(f"participant_id\tsession_id\n{rows}")


def test_names_refused(read):
    message = r"participant_id must contain .* row 2 \(empty\), row 4 \(/\.\.\)"
    with pytest.raises(FileFormatError, match=message):
        read("participant_id\tage\nn/a\t1\n../sub-1\t2\n/..\t3\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("visit\nM0\n", "every row needs a 'session_id'; the columns are vis"),
        (
            "session_id\tx\nses-1\t1\nses-1\t2\n",
            "sub-1_sess.* rows of one visit.* got sub-1_ses-1 with x 1 and 2\\. ",
        ),
    ],
)
def test_sessions_refused(read, write, text, message):
    write("sub-1/sub-1_sessions.tsv", text)
    with refused(message):
        read("participant_id\nsub-1\n")


@pytest.mark.parametrize("column_name", ["session_id", "Untersuchungsdatum"])
def test_a_scan_with_two_labels_is_named(write, tiny, column_name):
    visits = ["2018-02-23\tMCI", "2019-02-23\tMCI", "2019-02-23\tAD"]
    lines = [f"participant_id\t{column_name}\tdiagnosis", *(f"s1\t{x}" for x in visits)]
    path = write("participants.tsv", "\n".join(lines))
    (fault,) = list_facts_and_findings(read_table_contents(path, tiny))[1]
    assert fault.participant == "s1"
    assert fault.got == "s1_2019-02-23 with diagnosis MCI and AD"
    # The column of visits is known, and needs no option.
    assert repr(column_name) in fault.advice
    assert option_text("session_column") not in fault.advice


EARLY_TO_LATE = ("Early MCI", "MCI", "late MCI")


@pytest.mark.parametrize(
    ("labels", "classes", "ordered"),
    [
        (["CN", "AD", "MCI"], ("CN", "MCI", "AD"), True),
        (["Dementia", "MCI", "CN"], ("CN", "MCI", "Dementia"), True),
        (["AD", "late MCI", "MCI", "Early MCI"], (*EARLY_TO_LATE, "AD"), True),
        (["ad", "emci", "nc", "scd"], ("nc", "scd", "emci", "ad"), True),
        (["SMC", "HC", "AD"], ("HC", "SMC", "AD"), True),
        (["AD", "MCI", "Control"], ("Control", "MCI", "AD"), True),
        (["10", "9", "9.5"], ("9", "9.5", "10"), True),
        # one odd label, or two words for one stage: no order is known
        (["CN", "LMCI", "AD", "FTD"], ("CN", "AD", "FTD", "LMCI"), False),
        (["CN", "NC", "AD"], ("CN", "NC", "AD"), False),
        (["b", "a"], ("a", "b"), False),
    ],
)
def test_order_of_classes(labels, classes, ordered):
    assert order_classes(labels) == (classes, ordered)
    assert order_classes(labels, classes[::-1]) == (classes[::-1], True)


def test_numbers_name_one_class_in_every_spelling(study, tiny):
    assert order_classes(["1.0", "2.0"], [2, 1]) == (("2.0", "1.0"), True)
    people = study / "participants.tsv"
    rows = people.read_text().replace("CN", "0").replace("AD", "1").splitlines()
    expected = load_cohort(study, tiny, "fdg").y == "AD"
    people.write_text("\n".join([*rows[:-1], rows[-1].replace("\t0", "\t0.0")]))
    assert "\t0.0" in people.read_text()
    cohort = load_cohort(study, tiny, "fdg", classes=[1.0, "0"])
    assert cohort.classes == ("1", "0")
    assert ((cohort.y == "1") == expected).all()
    assert load_cohort(study, tiny, "fdg").classes == ("0", "1")


@pytest.mark.parametrize(
    ("column_name", "dates"),
    [
        ("exam", ["20190312", "20200105", "20180920", "n/a", "20190101"]),
        ("exam", ["05012019", "12032019", "20092018", "n/a", "01012020"]),
        ("mri_date", ["050119", "120319", "200918", "n/a", "010120"]),
    ],
)
def test_dates_of_digits_stay_text_and_are_no_quantity(study, tiny, column_name, dates):
    people = study / "participants.tsv"
    rows = people.read_text().splitlines()
    cells = [column_name, *dates]
    people.write_text("\n".join(f"{r}\t{c}" for r, c in zip(rows, cells, strict=True)))
    table = load_cohort(study, tiny, "fdg").table
    dates_by_person = table.groupby("participant")[column_name].first()
    assert [*dates_by_person.fillna("n/a")] == dates
    assert is_categorical_covariate(column_name, table[column_name])
    assert not is_categorical_covariate("volume", pd.Series([190312, 190411]))
    columns = {"age": ["70", "71"], column_name: dates[:2], "lesions": ["40", "7"]}
    assert choose_id_column(columns).candidate_names == ("lesions",)


@pytest.mark.parametrize(
    ("visits", "is_note_expected"),
    [(["20190312", "20200105"], True), (["12032019", "05012020"], False)],
)
def test_ages_are_compared_over_visits_that_are_dates(visits, is_note_expected):
    table = pd.DataFrame(
        {"participant": "sub-1", "session": [f"ses-{v}" for v in visits]}
    )
    # Of days before months the order of two names is not that of time.
    ages = [71, 70] if is_note_expected else [70, 71]
    notes = make_changed_person_notes(table.assign(age=ages))
    assert bool(notes) == is_note_expected


def draw_diagnosed_visits(label, **columns):
    """Two people at three visits each, the second of whom converts."""
    table = pd.DataFrame({"participant": ["a"] * 3 + ["b"] * 3, **columns})
    table = table.assign(session=["bl", "m06", "m24"] * 2, label=label)
    return table.assign(scan=table["participant"] + "_" + table["session"])


@pytest.mark.parametrize(
    ("label_name", "label", "column_name", "is_noted"),
    [
        ("DX_bl", "CN CN CN LMCI LMCI LMCI", "DX", True),
        ("DX_bl", "CN CN CN LMCI LMCI LMCI", "consensus", True),
        ("entry", "x x x y y y", "DIAGNOSIS", False),
        ("DX_bl", "x x x y y y", "DIAGNOSIS", True),
        # The label of the visit, a group that is no diagnosis, and another subject.
        ("DX", "CN CN CN MCI MCI Dementia", "DIAGNOSIS", False),
        ("arm", "drug drug drug placebo placebo placebo", "DX", False),
        ("DX_bl", "CN CN CN LMCI LMCI LMCI", "DXCONFID", False),
    ],
)
def test_a_label_of_the_first_visit_is_noted(label_name, label, column_name, is_noted):
    diagnoses = ["CN", "CN", "CN", "MCI", "MCI", "Dementia"]
    if column_name == "DXCONFID":
        diagnoses = [4, 4, 4, 4, 4, 2]
    table = draw_diagnosed_visits(label.split(), **{column_name: diagnoses})
    notes = make_first_visit_value_notes(table, label_name)
    assert bool(notes) == is_noted
    for note in notes:
        assert note.kind == FIRST_VISIT_VALUE
        assert note.values == {"column": column_name, "n_people": 1}
    # One visit of a person has only one diagnosis.
    baseline_table = table[table["session"] == "bl"].reset_index(drop=True)
    assert not make_first_visit_value_notes(baseline_table, label_name)


@pytest.mark.parametrize(
    ("visits", "ages", "n_people"),
    [
        (["bl", "m06", "m24"], [70.1, 70.1, 70.1, 80, 80, 80], 2),
        (["ses-M000", "ses-M006", "ses-M012"], [70, 70, 70, 80, 80, 80], 2),
        (["2012-01-01", "2012-06-01", "2013-02-01"], [70, 70, 70, 80, 80, 80], 2),
        (["Screening", "d0100", "year 2"], [70, 70, 70, 80, 80, 80], 2),
        # Most ages, none, or visits within a year.
        (["bl", "m06", "m24"], [70, 70, 70, 80, 80, 82], 1),
        (["bl", "m06", "m24"], [70, 70, 72, 80, 80, 82], 0),
        (["bl", "m03", "m06"], [70, 70, 70, 80, 80, 80], 0),
        (["one", "two", "three"], [70, 70, 70, 80, 80, 80], 0),
    ],
)
def test_an_age_of_the_first_visit_is_noted(visits, ages, n_people):
    table = draw_diagnosed_visits(["CN"] * 6, AGE=ages).assign(session=visits * 2)
    notes = make_first_visit_value_notes(table, "DX")
    values = [{"column": "AGE", "n_people": n_people}] if n_people else []
    assert [note.values for note in notes] == values
    # A name that says so surprises nobody.
    renamed_table = table.rename(columns={"AGE": "age_bl"})
    assert not make_first_visit_value_notes(renamed_table, "DX")


def test_one_row_for_several_scans_of_a_person_is_noted(study, tiny):
    check = check_cohort(study, atlas=tiny, feature="fdg")
    notes = [x for x in check.findings if x.kind == ONE_ROW]
    # Two of the five people have two scans each.
    assert [note.values for note in notes] == [{"n_people": 2, "n_scans": 4}]
    assert str(notes[0]) in "".join(check.notes)
    assert ONE_ROW in CHOICES  # is printed for the user
    stored_path = check.cohort.save(study / "cohort.h5")
    baseline = read_study(stored_path, scans="baseline")
    assert ONE_ROW not in {x.kind for x in baseline.findings}
    # A table with a row for each visit says the label of each visit.
    rows = [f"sub-0{i}\tses-M00\t{['AD', 'CN'][i % 2]}" for i in range(1, 6)]
    rows += ["sub-01\tses-M12\tCN", "sub-02\tses-M12\tAD"]
    table_text = "\n".join(["participant_id\tsession_id\tdiagnosis", *rows])
    (study / "participants.tsv").write_text(table_text)
    check = check_cohort(study, atlas=tiny, feature="fdg")
    assert check.is_sound
    assert not any("changes between visits" in text for text in check.count_texts)
    (study / "participants.tsv").write_text(table_text.replace("M12\tCN", "M12\tAD"))
    changed_check = check_cohort(study, atlas=tiny, feature="fdg")
    assert "diagnosis changes between visits of 1 person" in changed_check.count_texts
    assert ONE_ROW not in {x.kind for x in check.findings}


@pytest.mark.parametrize("is_in_table", [False, True])
@pytest.mark.parametrize(
    ("table_format", "file_format"),
    [
        ("%d.%m.%Y", "%Y-%m-%d"),
        ("%m/%d/%Y", "%Y-%m-%d"),
        ("%d/%m/%Y", "%Y%m%d"),
        ("%Y-%m-%d", "%Y%m%d"),
    ],
)
def test_dates_of_another_form_are_told(
    study, tiny, matrix, table_format, file_format, is_in_table
):
    shutil.rmtree(study)
    (study / "sc").mkdir(parents=True)
    dates = pd.date_range("2018-05-01", periods=8, freq="97D")
    table = pd.DataFrame({"id": [f"p{i // 2}" for i in range(8)]})
    table["exam_date"] = dates.strftime(table_format)
    table["diagnosis"] = ["CN", "CN", "AD", "AD"] * 2
    visits = dates.strftime(file_format)
    values = pd.DataFrame(np.linspace(1, 2, 56).reshape(8, 7), columns=tiny.names)
    values.insert(0, "exam_date", visits if is_in_table else table["exam_date"])
    values.insert(0, "id", table["id"])
    values.to_csv(study / "fdg_suvr.csv", index=False)
    options = {"atlas": tiny, "feature": "fdg", "session_column": "exam_date"}
    options |= {"row_order": "atlas", "connectome": "none"}
    if not is_in_table:
        options |= {"pattern": "sc/{participant}_{session}.csv", "connectome": None}
        for person, visit in zip(table["id"], visits, strict=True):
            np.savetxt(study / "sc" / f"{person}_{visit}.csv", matrix, delimiter=",")
    table.to_csv(study / "participants.csv", index=False)
    with pytest.raises(CohortError) as error:
        load_cohort(study, **options)
    (finding,) = check_cohort(study, **options).findings
    assert finding.kind == FOREIGN_VISITS
    assert finding.values == {"table_format": table_format, "file_format": file_format}
    assert f"pandas.to_datetime(table['exam_date'], format=\"{table_format}\")" in str(
        error.value
    )
    # The advice is right.
    table["exam_date"] = visits
    table.to_csv(study / "participants.csv", index=False)
    values["exam_date"] = visits
    values.to_csv(study / "fdg_suvr.csv", index=False)
    assert load_cohort(study, **options).n_scans == 8


def test_dates_say_that_visits_lie_years_apart():
    table = draw_diagnosed_visits(["CN"] * 6, AGE=[70, 70, 70, 80, 80, 80])
    table = table.assign(session=["one", "two", "three"] * 2)
    days = ["3/12/2012", "9/14/2012", "5/17/2013"] * 2
    assert make_first_visit_value_notes(table.assign(EXAMDATE=days), "DX")
    assert not make_first_visit_value_notes(table.assign(update_date=days), "DX")


def test_a_label_and_an_age_of_the_first_visit_are_noted_by_check(study, tiny, write):
    rows = ["participant_id\tsession_id\tdiagnosis\tage\tDX"]
    for i in range(1, 6):
        label = ("AD", "CN")[i % 2]
        rows.append(f"sub-0{i}\tses-M00\t{label}\t{70 + i}\t{label}")
        if i < 3:
            rows.append(f"sub-0{i}\tses-M12\t{label}\t{70 + i}\tAD")
    write("study/participants.tsv", "\n".join(rows) + "\n")
    check = check_cohort(study, atlas=tiny, feature="fdg")
    notes = [x for x in check.findings if x.kind == FIRST_VISIT_VALUE]
    values = [{"column": "DX", "n_people": 1}, {"column": "age", "n_people": 2}]
    assert [note.values for note in notes] == values, check
    assert FIRST_VISIT_VALUE in CHOICES  # is printed for the user


def test_a_cohort_knows_whether_its_classes_are_ordered(study, tiny):
    assert load_cohort(study, tiny, "fdg").classes_ordered
    people = study / "participants.tsv"
    people.write_text(people.read_text().replace("AD", "FTD"))
    cohort = load_cohort(study, tiny, "fdg")
    assert (cohort.classes, cohort.classes_ordered) == (("CN", "FTD"), False)
    assert load_cohort(study, tiny, "fdg", classes=["FTD", "CN"]).classes_ordered


@pytest.mark.parametrize(
    ("label", "other_label", "is_slip"),
    [
        ("pateint", "patient", True),
        ("patent", "patient", True),
        ("patiemt", "patient", True),
        ("cm", "cn", True),
        ("pd", "ad", False),
        ("group b", "group a", False),
        ("type 1", "type 2", False),
        ("svppa", "nfvppa", False),
        ("female", "male", False),
    ],
)
def test_a_slip_of_letters_is_told_from_another_class(label, other_label, is_slip):
    assert participants._is_misspelling(label, other_label) == is_slip
    assert participants._is_misspelling(other_label, label) == is_slip


@pytest.mark.parametrize(
    ("counts", "intended_label"),
    [
        ({"control": 5, "patient": 5, "pateint": 2}, "patient"),
        ({"control": 5, "patient": 5, "pateint": 3}, None),
        ({"CN": 5, "CM": 2, "FTD": 4}, "CN"),
        ({"CN": 5, "AD": 5, "PD": 2}, None),
    ],
)
def test_rare_labels_like_another_are_faults(counts, intended_label):
    labels = [label for label, n in counts.items() for _ in range(n)]
    scans = [f"s{i}" for i in range(len(labels))]
    table = pd.DataFrame({"label": labels, "participant": scans, "scan": scans})
    faults = participants._find_misspelt_label_faults(table, "group", [*counts])
    assert all(x.severity == FAULT for x in faults)
    assert len(faults) == (2 if intended_label else 0)
    assert all(f"should be {intended_label!r}" in x.advice for x in faults)


def test_a_misspelt_stage_is_refused_and_a_lost_order_is_noted(study, tiny):
    people = study / "participants.tsv"
    text = people.read_text().replace("sub-05\tCN", "sub-05\tEMIC")
    people.write_text(text.replace("sub-04\tAD", "sub-04\tEMCI"))
    with pytest.raises(CohortError) as error:
        load_cohort(study, tiny, "fdg")
    (fault,) = error.value.faults
    assert fault.startswith("sub-05_ses-M00: diagnosis 'EMIC' is no known stage")
    assert "'EMCI'" in fault
    named = load_cohort(study, tiny, "fdg", classes=["CN", "EMIC", "EMCI", "AD"])
    assert named.classes_ordered
    people.write_text(text.replace("EMIC", "FTD"))
    cohort = load_cohort(study, tiny, "fdg")
    (note,) = [note for note in cohort.notes if "known stages" in note]
    assert "CN, AD, FTD" in note
    assert not [note for note in named.notes if "known stages" in note]


@pytest.mark.parametrize(
    ("classes", "is_noted"),
    [
        (("MA", "MCI", "témoin"), True),
        (("Kontrolle", "AD", "MCI"), True),
        (("CN", "AD", "HC"), True),
        (("MA", "témoin"), False),
        (("CN", "MCI", "AD"), False),
        (("1", "2", "3"), False),
    ],
)
def test_three_classes_without_an_order_are_noted_with_the_reference(classes, is_noted):
    notes = participants.make_unordered_class_notes(classes)
    assert len(notes) == is_noted
    for note in notes:
        assert note.kind == ASSUMED
        assert f"The first class, {classes[0]}, is the reference" in str(note)


def sessions(write, person, rows, head="session_id\tdiagnosis"):
    write(f"study/{person}/{person}_sessions.tsv", f"{head}\n{rows}")


def test_baseline_is_the_visit_that_the_table_calls_so(study, tiny, write):
    sessions(write, "sub-01", "ses-M00\tCN\nses-M12\tAD\n")
    # sub-02 has scans at M00 and M12, but came first at M-6: it was not scanned then
    sessions(write, "sub-02", "ses-bl\tCN\nses-M00\tCN\nses-M12\tAD\n")
    sessions(write, "sub-03", "ses-A\tCN\nses-M00\tAD\n")
    for name in ("ses-bl", "ses-M00"):  # M00 is as good a name of it
        assert name in (study / "sub-02/sub-02_sessions.tsv").read_text()
    cohort = load_cohort(study, tiny, "fdg", scans="baseline")
    kept = ["sub-01_ses-M00", "sub-02_ses-M00", "sub-04_ses-M00", "sub-05_ses-M00"]
    # sub-03's earliest listed visit is A, which was not scanned; M00 is called baseline
    assert cohort.table["scan"].tolist() == [*kept[:2], "sub-03_ses-M00", *kept[2:]]
    (study / "sub-01/ses-M00").rename(study / "sub-01/ses-M24")
    sessions(write, "sub-01", "ses-M00\tCN\nses-M12\tMCI\nses-M24\tAD\n")
    cohort = load_cohort(study, tiny, "fdg", scans="baseline")
    assert "sub-01" not in cohort.groups
    (note,) = [x for x in cohort.findings if x.kind == BASELINE]
    assert note.people == ("sub-01",)
    assert "no files" in note.message
    assert "sub-01" not in note.shareable_text()
    # The earliest visit is M06, which is not listed.
    (study / "sub-01/ses-M24").rename(study / "sub-01/ses-M06")
    sessions(write, "sub-01", "ses-M12\tMCI\nses-M24\tAD\n")
    cohort = load_cohort(study, tiny, "fdg", scans="baseline")
    (note,) = [x for x in cohort.findings if x.kind == BASELINE]
    assert note.people == ("sub-01",)
    assert "participants.tsv lists no baseline visit of" in note.message


@pytest.mark.parametrize(
    ("visits", "baseline"),
    [
        ("SC BL V04", "BL"),
        ("Baseline Screening M06", "Baseline"),
        ("screening baselineVisit y1", "baselineVisit"),
        ("screening_arm_1 month_6_arm_1 baseline_arm_1", "baseline_arm_1"),
        ("sc M00 M12", "M00"),
        ("Screening year-0 year-1", "year-0"),
        ("post-baseline SC bl", "bl"),
        ("SC M06", "SC"),
    ],
)
def test_baseline_comes_before_screening(study, tiny, write, visits, baseline):
    """In every order of rows, of a table of people and in folders alone."""
    names = visits.split()
    for name in {*names} - {"M00"}:
        shutil.copytree(study / "sub-05/ses-M00", study / f"sub-05/ses-{name}")
    if "M00" not in names:
        shutil.rmtree(study / "sub-05/ses-M00")
    expected = f"sub-05_ses-{baseline}"
    for rows in ([], names, names[::-1]):
        if rows:
            sessions(write, "sub-05", "".join(f"{v}\tCN\n" for v in rows))
        cohort = load_cohort(study, tiny, "fdg", scans="baseline")
        assert cohort.table["scan"].tolist()[-1] == expected


def test_two_visits_called_baseline_are_refused(study, tiny, write):
    for name in ("bl", "Baseline"):
        place = study / f"sub-05/ses-{name}"
        shutil.copytree(study / "sub-05/ses-M00", place)
    sessions(write, "sub-05", "Baseline\tCN\nbl\tCN\n")
    with refused("sub-05: .*be the baseline; got .*Baseline, bl"):
        load_cohort(study, tiny, "fdg", scans="baseline")


def test_label_of_the_visit_wins_and_is_noted(study, tiny, write):
    sessions(write, "sub-01", "ses-M00\tCN\nses-M12\tAD\n")
    sessions(write, "sub-02", "ses-M00\tAD\nses-M12\tAD\n")
    cohort = load_cohort(study, tiny, "fdg")
    assert cohort.y.tolist()[:2] == ["CN", "AD"]
    note = "the diagnosis of 1 scan differs between participants.tsv and"
    assert any(one.startswith(note) for one in cohort.notes)
    sessions(write, "sub-01", "ses-M00\tCN\nses-M12\tCN\n")
    assert not any("differs" in one for one in load_cohort(study, tiny, "fdg").notes)


def test_several_visits_need_a_sessions_file_that_others_have(study, tiny, write):
    sessions(write, "sub-01", "ses-M00\tCN\nses-M12\tAD\n")
    message = "sub-02: the participant has 2 visits but no sessions file, .* Add .*"
    with refused(rf"{message}\(session_id, diagnosis\)"):
        load_cohort(study, tiny, "fdg")
    cohort = load_cohort(study, tiny, "fdg", skip_faulty=True)
    assert [*cohort.left_out["scan"]] == ["sub-02_ses-M00", "sub-02_ses-M12"]
    # One visit needs none, and a file without the label or a covariate is no example.
    baseline = load_cohort(study, tiny, "fdg", scans="baseline")
    assert baseline.y.tolist() == ["CN", "AD", "CN", "AD", "CN"]
    sessions(write, "sub-02", "")
    with refused("sub-02: the participant has 2 visits, but the sessions file lists"):
        load_cohort(study, tiny, "fdg")
    sessions(write, "sub-02", "ses-M00\t\t\n")
    with pytest.raises(CohortError) as refusal:
        load_cohort(study, tiny, "fdg")
    assert "no sessions file" not in str(refusal.value)
    (study / "sub-02/sub-02_sessions.tsv").unlink()
    sessions(write, "sub-01", "ses-M00\t8\nses-M12\t9\n", "session_id\thour")
    assert load_cohort(study, tiny, "fdg").y.tolist()[:4] == ["CN", "CN", "AD", "AD"]


@pytest.mark.parametrize(
    ("ages", "is_noted"),
    [
        ("70.4 71.5", False),
        ("66.9 68", True),
        ("71.2 72", True),
        ("n/a n/a", False),
        ("n/a 70", False),
    ],
)
def test_age_of_the_visit_wins_and_is_noted(study, tiny, write, ages, is_noted):
    first, second = ages.split()
    head = "session_id\tage"
    sessions(write, "sub-01", f"ses-M00\t{first}\nses-M12\t{second}\n", head)
    sessions(write, "sub-02", "ses-M00\t71\nses-M12\t72\n", head)
    cohort = load_cohort(study, tiny, "fdg")
    expected_ages = [0 if age == "n/a" else float(age) for age in (first, second)]
    assert cohort.table["age"][:2].fillna(0).tolist() == expected_ages
    note = "the age of 1 person differs between participants.tsv and"
    assert any(one.startswith(note) for one in cohort.notes) == is_noted


@pytest.mark.parametrize(
    "visits", ["21.12.20 03.04.21", "21122020 03042021", "09-2021 01-2022", "B A"]
)
def test_a_baseline_that_visits_do_not_tell_is_asked_for(study, tiny, write, visits):
    first, second = visits.split()
    sessions(write, "sub-01", f"{first}\tCN\n{second}\tAD\n")
    told = f"sub-01: the first visit is unknown; got .*{first}"
    with pytest.raises(CohortError, match=told):
        load_cohort(study, tiny, "fdg", scans="baseline")


def test_covariates_in_upper_case_are_known(study, tiny):
    people = study / "participants.tsv"
    people.write_text(people.read_text().replace("\tage", "\tAGE"))
    cohort = load_cohort(study, tiny, "fdg")
    assert cohort.table["AGE"].tolist()[:2] == [70, 70]  # numbers, not text
    people.write_text(people.read_text().replace("diagnosis", "Diagnosis"))
    assert load_cohort(study, tiny, "fdg").label_name == "Diagnosis"


@pytest.mark.parametrize("name", ["participants.csv", "subjects.xlsx"])
def test_people_stand_in_other_formats_too(study, tiny, name):
    before = load_cohort(study, tiny, "fdg")
    people = study / "participants.tsv"
    table = pd.read_csv(people, sep="\t")  # numbers become cells of numbers
    if name.endswith(".csv"):
        table.to_csv(study / name, index=False)
    else:
        pytest.importorskip("openpyxl")
        table.to_excel(study / name, index=False)
    people.unlink()
    assert load_cohort(study, tiny, "fdg").table.equals(before.table)


def test_the_sheet_that_fits_is_read_and_named(study, tiny):
    """Of a workbook the one with the label; regions in another sheet."""
    before = load_cohort(study, tiny, "fdg")
    pytest.importorskip("openpyxl")
    people = study / "participants.tsv"
    rows = [line.split("\t") for line in people.read_text().splitlines()]
    visits = (f"{row[0]}_ses-M00" for row in rows[1:])
    thickness = [["id", *tiny.names], *([one, *"2345678"] for one in visits)]
    sheets = {"about": [["made by", "me"]], "people": rows, "Thickness": thickness}
    sheets["More"] = [["SubjectID", "iq"], ["sub-01", "100"]]
    with pd.ExcelWriter(study / "participants.xlsx") as book:
        for name, cells in sheets.items():
            bare = {"header": False, "index": False}
            pd.DataFrame(cells).to_excel(book, sheet_name=name, **bare)
    people.unlink()
    cohort = load_cohort(study, tiny, ["fdg", "thickness"], scans="baseline")
    assert (
        cohort.notes[0]
        == "participants were read from participants.xlsx, sheet 'people'"
    )
    assert cohort.features[:, 1, 1].tolist() == [3] * 5
    note = "thickness was read from participants.xlsx, sheet 'Thickness'"
    more = "sheet 'More': left out, because it has no column 'diagnosis'"
    assert {note, f"participants.xlsx, {more}; its columns are iq"} <= set(cohort.notes)
    assert load_cohort(study, tiny, "fdg").table.equals(before.table)
    # of people to be predicted the sheet with age counts
    (study / "participants.xlsx").rename(study / "lab.xlsx")
    new = load_cohort(study, tiny, "fdg", label=None)
    assert new.table["age"].equals(before.table["age"])


def test_a_continuous_label_is_refused_with_the_reason(study, tiny):
    with refused(r"age is continuous \(5 values from 70 to 74.*label="):
        load_cohort(study, tiny, "fdg", "age")
    cohort = load_cohort(study, tiny, "fdg", "age", classes=["70", "71"])
    assert cohort.n_scans == 4


def test_a_visit_under_another_name_has_not_the_label_of_the_person(study, tiny, write):
    """Clinica wrote ses-M00 before it wrote ses-M000."""
    sessions(write, "sub-01", "ses-M000\tCN\nses-M012\tAD\n")
    with refused(
        r"(?s)diagnosis is missing .* no row of this visit.* ses-M000, "
        r"ses-M012.*01_ses-M12"
    ):
        load_cohort(study, tiny, "fdg")
    sessions(write, "sub-02", "ses-M00\tAD\nses-M12\tAD\n")
    sessions(write, "sub-01", "ses-M00\tCN\nses-M12\tAD\n")
    assert load_cohort(study, tiny, "fdg").y.tolist()[:2] == ["CN", "AD"]


@pytest.fixture
def dated(tmp_path, write):
    """A table of two visits of six people, and connectomes named by dates."""
    rows = ["PTID,VISCODE,EXAMDATE,DX"]
    for i in range(1, 7):
        for visit, date in (("m12", "2013-03-1"), ("bl", "2012-03-1")):
            rows.append(f"002_S_400{i},{visit},{date}{i},{'CN' if i % 2 else 'AD'}")
            path = f"study/dti/002_S_400{i}_{date}{i}.csv"
            write(path, "\n".join([",".join(["1"] * 7)] * 7))
    write("study/table.csv", "\n".join(rows) + "\n")
    return tmp_path / "study"


PATTERN = "dti/{participant}_{session}.csv"


@pytest.mark.parametrize("scans", ["all", "baseline"])
def test_visits_of_files_that_the_table_does_not_have_are_one_fault(dated, tiny, scans):
    options = {"atlas": tiny, "feature": "strength", "label": "DX"}
    options |= {"pattern": PATTERN, "scans": scans}
    (fault,) = check_cohort(dated, **options).findings
    assert (fault.kind, fault.severity) == (FOREIGN_VISITS, FAULT)
    assert fault.values == {"n_people": 6, "column": "EXAMDATE"}
    assert "2012-03-11" in fault.message
    assert "(bl, m12)" in fault.message
    dated_check = check_cohort(dated, **options, session_column="EXAMDATE")
    assert FOREIGN_VISITS not in [x.kind for x in dated_check.findings]
    # The dates of files may be days after those of the table.
    for path in sorted((dated / "dti").iterdir()):
        path.rename(str(path).replace("-03-", "-04-"))
    (fault,) = check_cohort(dated, **options).findings
    assert fault.values["column"] == ""
    for path in sorted((dated / "dti").iterdir()):
        visit = "bl" if "2012" in path.name else "m12"
        path.rename(path.with_name(f"{path.stem[:10]}_{visit}.csv"))
    renamed_check = check_cohort(dated, **options)
    assert FOREIGN_VISITS not in [x.kind for x in renamed_check.findings]


def test_the_screening_scan_of_adni_is_the_baseline(tmp_path, tiny, write):
    rows = ["PTID,VISCODE,DX"]
    region_rows = [f"PTID,VISCODE2,{','.join(tiny.names)}"]
    for i, first_visit in ((1, "scmri"), (2, "bl"), (3, "scmri")):
        rows += [f"p{i},{visit},{'CN' if i % 2 else 'AD'}" for visit in ("bl", "m12")]
        for visit, value in ((first_visit, i), ("m12", 9)):
            region_rows.append(f"p{i},{visit},{','.join([f'{value}.5'] * 7)}")
    write("study/people.csv", "\n".join(rows) + "\n")
    write("study/fdg.csv", "\n".join(region_rows) + "\n")
    study, options = tmp_path / "study", {"feature": "fdg", "label": "DX"}
    cohort = load_cohort(study, tiny, **options, connectome="none")
    assert cohort.table["session"].tolist() == ["bl", "m12"] * 3
    assert cohort.features[:, 0, 0].tolist() == [1.5, 9.5, 2.5, 9.5, 3.5, 9.5]
    # Of a person with both rows, the screening is another visit, which is named.
    write("study/fdg.csv", "\n".join([*region_rows, f"p2,scmri{',7' * 7}"]) + "\n")
    with refused(r"p2_scmri: DX is missing .* no row of this visit"):
        load_cohort(study, tiny, **options, connectome="none")
    # A study that calls the visit so keeps the name.
    write("study/people.csv", "\n".join(rows).replace(",bl,", ",scmri,") + "\n")
    write("study/fdg.csv", "\n".join(region_rows).replace(",bl,", ",scmri,") + "\n")
    cohort = load_cohort(study, tiny, **options, connectome="none")
    assert {*cohort.table["session"]} == {"scmri", "m12"}


def test_the_order_of_visits_splits_no_fault(dated, tiny):
    table = pd.read_csv(dated / "table.csv")
    rows = [*range(6), 7, 6, *range(8, 12)]  # the fourth has bl first
    table.iloc[rows].to_csv(dated / "table.csv", index=False)
    # The visits of four people are not in the table.
    for path in sorted((dated / "dti").iterdir())[:8]:
        path.rename(str(path).replace("-03-", "-04-"))
    options = {"atlas": tiny, "feature": "strength", "label": "DX"}
    check = check_cohort(
        dated, **options, pattern=PATTERN, session_column="EXAMDATE", connectome="none"
    )
    faults = [x for x in check.faults if "DX is missing" in x]
    assert len(faults) == 1
    assert faults[0].startswith("8 scans")
    label_findings = [x for x in check.findings if x.kind == NO_LABEL]
    assert label_findings[0].got.endswith("2012-03-11, 2013-03-11")


def test_a_pattern_with_fields_that_fits_no_scan_is_not_asked_for_fields(dated, tiny):
    options = {"atlas": tiny, "feature": "strength", "label": "DX", "pattern": PATTERN}
    options |= {"session_column": "EXAMDATE"}
    rows = "003_S_5001,bl,2012-03-11,CN\n003_S_5002,bl,2012-03-11,AD\n"
    table_path = dated / "table.csv"
    table_path.write_text(table_path.read_text() + rows)
    with_files = [f"002_S_400{i}" for i in range(1, 7)]
    for change, words in (
        ({"exclude": with_files}, "fits 12 files"),
        ({"pattern": "sc/{scan}.csv"}, "no file has"),
    ):
        (fault,) = check_cohort(dated, **options | change).faults
        assert words in fault
        assert "write the participant into" not in fault


def test_decimal_commas_are_refused(study, tiny):
    people = study / "participants.tsv"
    text = people.read_text()
    for head, age in (("age", "70,5"), ("score", "70,5"), ("age", "70y")):
        people.write_text(text.replace("age", head).replace("\t70", f"\t{age}"))
        with refused(
            f"2 scans: {head} must be a number .* got '{age}'.*\n *sub-01_ses-M0"
        ):
            load_cohort(study, tiny, "fdg")


@pytest.fixture
def listed(write, tmp_path):
    """A study whose sessions files list visits, of which thickness.csv has two."""
    people = [f"sub-{i:02d}" for i in range(1, 5)]
    for person in people:
        rows = "".join(f"{v}\tCN\n" for v in ("ses-M00", "ses-M06", "ses-M12"))
        write(f"study/{person}/{person}_sessions.tsv", f"session_id\tdx\n{rows}")
    rows = "".join(f"{person}\t{70 + i}\n" for i, person in enumerate(people))
    write("study/participants.tsv", f"participant_id\tage\n{rows}")
    heads = [f"{name}_thickness" for name in ("lh_a", "lh_b", "lh_c")]
    heads += [name.replace("lh", "rh") for name in heads]
    cells = [
        [person, visit, *(2 + i + k / 10 + (visit == "M12") for k in range(6))]
        for i, person in enumerate(people)
        for visit in ("M00", "M12")
    ]
    rows = "".join(",".join(map(str, row)) + "\n" for row in cells)
    heads = ",".join(["participant_id", "session_id", *heads])
    write("study/thickness.csv", f"{heads}\n{rows}")
    return tmp_path / "study"


@pytest.mark.parametrize(
    "extra",
    [
        (),
        ("{0}/{0}_sessions.json", "{0}/{0}_scans.tsv", "{0}/README"),
        ("{0}/ses-M06/{0}_ses-M06_scans.tsv", "{0}/ses-M06/beh/{0}_task-x_beh.tsv"),
        ("{0}/ses-M00/{0}_ses-M00_scans.tsv", "{0}/ses-M06/{0}_ses-M06_scans.json"),
        ("derivatives/x/{0}/{0}_sessions.tsv", "derivatives/x/{0}/ses-M06/.empty"),
    ],
)
def test_a_listed_visit_without_images_is_left_out(listed, tiny, write, extra):
    for person in ("sub-01", "sub-02"):
        for name in extra:
            write(f"study/{name.format(person)}", "")
    cohort = load_cohort(listed, tiny, "thickness", "dx", connectome="none")
    scans = [f"sub-0{i}_ses-{visit}" for i in range(1, 5) for visit in ("M00", "M12")]
    assert [x.replace("_M", "_ses-M") for x in cohort.table["scan"]] == scans
    assert cohort.features[:, 0, 0].tolist() == [2, 3, 3, 4, 4, 5, 5, 6]
    (note,) = [one for one in cohort.notes if "listed visits were left out" in one]
    assert note.startswith("4 listed visits were left out")
    first = load_cohort(
        listed, tiny, "thickness", "dx", connectome="none", scans="baseline"
    )
    assert first.features[:, 0, 0].tolist() == [2, 3, 4, 5]


def test_visits_of_freesurfer_are_those_that_were_scanned(listed, tiny, write):
    write("study/sub-01/ses-M00/sub-01_ses-M00_scans.tsv", "")
    write("study/sub-01/ses-M06/sub-01_ses-M06_scans.tsv", "")
    for i in range(1, 5):
        name = f"derivatives/freesurfer/sub-0{i}_ses-M00/stats/aseg.stats"
        write(f"study/{name}", "")
    options = DEFAULT_OPTIONS.change(atlas=tiny, label="dx")
    study, _ = open_scans_and_sources(listed, options)
    assert [scan.key for scan in study.scans] == [(f"0{i}", "M00") for i in range(1, 5)]
    # a folder of a visit that nobody lists is still one where data are expected
    write("study/sub-01/ses-M99/sub-01_ses-M99_scans.tsv", "")
    study, _ = open_scans_and_sources(listed, options)
    assert [fault.scan for fault in study.fault_findings] == ["sub-01_ses-M99"]


N_PEOPLE = 24
READ = {"feature": "fdg", "connectome": "none"}


@pytest.fixture
def two_tables(tmp_path, tiny):
    """Return a function that writes labels and values of the same people, and both.

    Each table has the column of ids and, where its head is given, a column that counts
    its rows; values are in another order. What is returned are folder and values.
    """

    def make(head, ids, id_head, counters=("people", "values")):
        rng = np.random.default_rng(0)
        values = 1 + rng.random((N_PEOPLE, len(tiny.names))).round(3)
        people = pd.DataFrame({id_head: ids, "diagnosis": ["CN", "AD"] * 12})
        regions = pd.DataFrame(values, columns=list(tiny.names))
        regions.insert(0, id_head, ids)
        regions = regions.sort_values(id_head)
        for name, table in (("people", people), ("values", regions)):
            if name in counters:
                table.insert(0, head, range(1, N_PEOPLE + 1))
        people.to_csv(tmp_path / "participants.csv", index=False)
        regions.to_csv(tmp_path / "fdg.csv", index=False)
        return tmp_path, values

    return make


NUMBERS = np.random.default_rng(1).permutation(N_PEOPLE) + 1_000_001
CODES = [f"K{number % 1000:03d}" for number in NUMBERS]


@pytest.mark.parametrize(
    ("id_head", "counters"),
    [
        ("eid", ("people", "values")),
        ("PATNO", ("people", "values")),
        ("Subject Number", ("values",)),
        ("src_subject_id", ("values",)),
    ],
)
@pytest.mark.parametrize("head", ["", "Unnamed: 0", "X", "...1", "id", "image_id"])
def test_a_row_counter_names_nobody(two_tables, tiny, head, id_head, counters):
    ids = NUMBERS if id_head in {"eid", "Subject Number"} else CODES
    folder, values = two_tables(head, ids, id_head, counters)
    cohort = load_cohort(folder, tiny, **READ)
    assert cohort.groups.tolist() == [str(one) for one in ids]
    np.testing.assert_array_equal(cohort.features[..., 0], values)
    if head in {"", "Unnamed: 0", "X", "...1"}:
        assert head not in cohort.table  # the order of rows is no covariate


@pytest.mark.parametrize("head", ["", "index", "id", "scan", "record_id"])
def test_ids_under_an_unknown_head_are_asked_for(two_tables, tiny, head):
    """A counter beside them is not taken; the flag chooses."""
    folder, values = two_tables(head, CODES, "kennung")
    with pytest.raises(BrainlsapError, match=r"kennung.*id_column=") as error:
        load_cohort(folder, tiny, **READ)
    assert head in str(error.value)
    cohort = load_cohort(folder, tiny, **READ, id_column="kennung")
    assert cohort.groups.tolist() == CODES
    np.testing.assert_array_equal(cohort.features[..., 0], values)


@pytest.mark.parametrize("head", ["participant_id", "subject"])
@pytest.mark.parametrize("id_head", ["RID", "barcode"])
def test_counters_that_name_others_in_each_table_are_refused(
    two_tables, tiny, head, id_head
):
    ids = NUMBERS - 1_000_000 if id_head == "RID" else CODES
    folder, _ = two_tables(head, ids, id_head)
    with refused(
        rf"{id_head} \w+ belongs to '\d+' in one table and to '\d+' in the other"
    ):
        load_cohort(folder, tiny, **READ)


@pytest.mark.parametrize("head", ["participant_id", "subject", "id"])
def test_ids_that_are_numbers_from_1_are_ids(two_tables, tiny, head):
    ids = NUMBERS - 1_000_000
    folder, values = two_tables("", ids, head, counters=())
    cohort = load_cohort(folder, tiny, **READ)
    assert cohort.groups.tolist() == [str(one) for one in ids]
    np.testing.assert_array_equal(cohort.features[..., 0], values)


def test_a_saved_index_of_ids_is_read_and_one_that_counts_is_refused(two_tables, tiny):
    folder, values = two_tables("", CODES, "", counters=())
    cohort = load_cohort(folder, tiny, **READ)
    np.testing.assert_array_equal(cohort.features[..., 0], values)
    folder, _ = two_tables("", range(N_PEOPLE), "", counters=())
    with pytest.raises(
        FileFormatError,
        match=r"no name, and its cells only number the rows.*id_column=",
    ):
        load_cohort(folder, tiny, **READ)


@pytest.mark.parametrize("head", ["Scan", "id", "subject", ""])
@pytest.mark.parametrize(
    "date_format", ["%d.%m.%Y", "%m/%d/%Y", "%d.%m.%y", "%Y-%m-%d", "%Y-%m-%d 00:00:00"]
)
def test_dates_are_no_ids_and_numbers_are_proposed(two_tables, tiny, head, date_format):
    folder, values = two_tables("", range(7, 79, 3), "Fall", counters=())
    people = pd.read_csv(folder / "participants.csv")
    days = pd.date_range("2021-05-17", periods=N_PEOPLE, freq="9D")
    people.insert(0, head, days.strftime(date_format))
    people.to_csv(folder / "participants.csv", index=False)
    with pytest.raises(FileFormatError, match=r"IDs: 'Fall'\. .*id_column="):
        load_cohort(folder, tiny, **READ)
    cohort = load_cohort(folder, tiny, **READ, id_column="Fall")
    np.testing.assert_array_equal(cohort.features[..., 0], values)


def test_ids_with_signs_are_no_dates(two_tables, tiny):
    ids = [f"{1 + k % 3:02d}-{1 + k % 2:02d}-{k:02d}" for k in range(N_PEOPLE)]
    folder, _ = two_tables("", ids, "Scan", counters=())
    assert load_cohort(folder, tiny, **READ).groups.tolist() == ids


def test_errors_on_ids_name_the_column(two_tables, tiny):
    folder, _ = two_tables("", [*CODES[:-1], CODES[0]], "Scan", counters=())
    with refused(r"from the column 'Scan'; if this is not the ID, give id_column="):
        load_cohort(folder, tiny, **READ)


@pytest.fixture
def visits(tmp_path, tiny):
    """Return a function that writes one table of twelve people with two visits each."""

    def make(head, id_head, visit_head="NACCVNUM"):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(1 + rng.random((24, 7)), columns=list(tiny.names))
        table.insert(0, "diagnosis", np.repeat(["CN", "AD"], 2).tolist() * 6)
        table.insert(0, visit_head, [1, 2] * 12)
        table.insert(0, id_head, np.repeat([f"N{k}" for k in range(100, 112)], 2))
        table.insert(0, head, np.arange(24) + (head != ""))
        table.to_csv(tmp_path / "fdg.csv", index=False)
        return tmp_path

    return make


@pytest.mark.parametrize("head", ["", "id", "scan", "image_id", "X", "record_id"])
@pytest.mark.parametrize("id_head", ["NACCID", "subjectkey"])
def test_visits_beside_a_counter_are_of_one_person(visits, tiny, head, id_head):
    cohort = load_cohort(visits(head, id_head), tiny, **READ)
    assert len(cohort.table) == 24
    assert cohort.table["participant"].nunique() == 12
    assert cohort.table["session"].tolist() == ["1", "2"] * 12


def test_columns_of_ids_and_visits_can_be_named(visits, tiny):
    folder = visits("id", "kennung", "nth")
    with refused("kennung"):
        load_cohort(folder, tiny, **READ)
    with refused(r"several rows of one person.* session_column="):
        load_cohort(folder, tiny, **READ, id_column="kennung")
    named = {"id_column": ["pin", "kennung"], "session_column": "nth"}
    cohort = load_cohort(folder, tiny, **READ, **named)
    assert cohort.table["participant"].nunique() == 12
    assert cohort.table["session"].tolist() == ["1", "2"] * 12
    assert cohort.reading_options.id_column == ["pin", "kennung"]
    with refused(r"names the column 'pin'.* columns of the table are NACCID, NACCVNUM"):
        load_cohort(visits("", "NACCID"), tiny, **READ, id_column="pin")
    folder = visits("id", "kennung", "nth")
    with refused(r"session_column= names the column 'nr'"):
        load_cohort(folder, tiny, **READ, id_column="kennung", session_column="nr")


@pytest.mark.parametrize("has_rival", [False, True])
def test_the_only_column_that_numbers_rows_is_offered_as_visits(
    visits, tiny, has_rival
):
    folder = visits("id", "kennung", "nth")
    table = pd.read_csv(folder / "fdg.csv")
    # Ages and these scores differ within people as well, but are no visits.
    table.insert(2, "alter", 60 + np.arange(24))
    table.insert(2, "punkte", 100 + np.arange(24))
    if has_rival:
        table.insert(2, "termin", ["a", "b"] * 12)
    people = ["kennung", "nth", *["termin"] * has_rival, "alter", "punkte", "diagnosis"]
    table[people].to_csv(folder / "participants.csv", index=False)
    table.drop(columns=["alter", "punkte", "diagnosis"]).to_csv(
        folder / "fdg.csv", index=False
    )
    options = {"atlas": tiny, **READ, "id_column": "kennung"}
    checked = check_cohort(folder, **options)
    faults = [x for x in checked.findings if x.severity == FAULT and "row" in x.message]
    assert {bool(x.participant) for x in faults} == {True, False}
    for fault in faults:
        assert fault.values.get("session_column") == (None if has_rival else "nth")
        assert (option_text("session_column", "nth") in fault.advice) != has_rival
        assert ("elete the row" in fault.advice) == has_rival
    suggested = suggest_options(checked, options)
    offered = [x.get("session_column") for x in suggested]
    if has_rival:
        assert not any(offered)
    else:
        assert offered == ["nth"]
        assert check_cohort(folder, **options | suggested[0]).is_sound


def test_people_without_labels_are_found_by_reading_each_table_once(
    two_tables, tiny, monkeypatch
):
    folder, _ = two_tables("", NUMBERS, "eid", counters=())
    (folder / "participants.csv").rename(folder / "people.csv")
    (folder / "broken.csv").write_text("eid,Pons\n1\n")
    read_row_names = []

    def read_and_count(table_path, *args):
        read_row_names.append(table_path.name)
        return read_sheets_and_errors(table_path, *args)

    monkeypatch.setattr(features, "read_sheets_and_errors", read_and_count)
    (folder / "fdg.csv").unlink()
    options = DEFAULT_OPTIONS.change(atlas=tiny, label=None, connectome="none")
    scan_list, feature_sources = open_scans_and_sources(folder, options)
    assert len(scan_list.scans) == N_PEOPLE
    assert sorted(read_row_names) == ["broken.csv", "people.csv"]
    assert len(feature_sources.skipped_table_errors) == 1


@pytest.mark.parametrize("words", [("yes", "no"), ("0", "1"), ("Ja", "Nein")])
@pytest.mark.parametrize("head", ["Patient", "subject"])
@pytest.mark.parametrize("id_head", ["eid", "scan"])
def test_a_column_of_yes_and_no_names_nobody(two_tables, tiny, head, words, id_head):
    folder, values = two_tables("", NUMBERS, id_head, counters=())
    people = pd.read_csv(folder / "participants.csv")
    people.insert(0, head, list(words) * 12)
    people.to_csv(folder / "participants.csv", index=False)
    cohort = load_cohort(folder, tiny, **READ)
    assert cohort.groups.tolist() == [str(one) for one in NUMBERS]
    np.testing.assert_array_equal(cohort.features[..., 0], values)
    assert cohort.table[head].nunique() == 2


def test_clinical_spellings_of_stages_have_the_order_of_stages():
    labels = ["AD dementia", "aMCI", "HC", "aMCI", "AD dementia", "HC"]
    assert order_classes(labels) == (("HC", "aMCI", "AD dementia"), True)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("participants.csv", "'participants.csv', index_col=0"),
        ("participants.tsv", r"'participants.tsv', sep='\t', index_col=0"),
    ],
)
def test_a_transposed_table_of_people_is_called_so(tmp_path, tiny, name, arguments):
    table = pd.DataFrame(
        {"Diagnosis": ["CN", "AD"] * 6, "age": range(60, 72)},
        index=[f"UKB{n:03d}" for n in range(12)],
    )
    separator = "\t" if name.endswith("tsv") else ","
    table.T.to_csv(tmp_path / name, sep=separator)
    with refused("the first column contains 'diagnosis'") as error:
        load_cohort(tmp_path, tiny, connectome="none")
    assert "UKB006, UKB007 and 4 more." in str(error.value)
    assert f"Transpose the table: pandas.read_csv({arguments}).T" in str(error.value)
    # The advice gives a table that has the label.
    advised_table = pd.read_csv(tmp_path / name, sep=separator, index_col=0).T
    advised_table.to_csv(tmp_path / name, sep=separator)
    count_texts = check_cohort(tmp_path, tiny, connectome="none").count_texts
    assert "number of scans by Diagnosis: CN (6), AD (6)" in count_texts
