"""Two tables, or two sheets, that hold a column with different values of a scan."""

import pandas as pd
import pytest

from brainlsap.data import check_cohort, load_cohort
from brainlsap.data.column_conflicts import COLUMN_CONFLICT
from brainlsap.data.load import RefusedStudyError
from brainlsap.findings import ASSUMED

PEOPLE = [f"sub-{i:02d}" for i in range(1, 9)]
LABELS = ["CN", "AD"] * 4
READ = {"feature": "fdg", "connectome": "none"}


def region_cells(tiny):
    """Return plausible values of every region, one row for each person."""
    return {
        name: [1 + i / 10 + k / 100 for i in range(len(PEOPLE))]
        for k, name in enumerate(tiny.names)
    }


@pytest.fixture
def tables(tmp_path, tiny):
    """Return a function that writes people with labels, and a table fdg.csv.

    The columns given come beside the ids and the regions of fdg.csv.
    """

    def write_tables(columns, people_columns=None):
        people = {
            "participant_id": PEOPLE,
            "diagnosis": LABELS,
            **(people_columns or {}),
        }
        pd.DataFrame(people).to_csv(tmp_path / "participants.csv", index=False)
        regions = {"participant_id": PEOPLE, **columns, **region_cells(tiny)}
        pd.DataFrame(regions).to_csv(tmp_path / "fdg.csv", index=False)
        return tmp_path

    return write_tables


def conflicts(folder, tiny, **options):
    """Return the faults on differing columns that reading a folder finds."""
    findings = check_cohort(folder, atlas=tiny, **(READ | options)).findings
    return [finding for finding in findings if finding.kind == COLUMN_CONFLICT]


def test_other_labels_of_the_same_scans_are_refused(tables, tiny):
    labels = [*LABELS[:5], *("CN" if label == "AD" else "AD" for label in LABELS[5:])]
    folder = tables({"Diagnosis": labels})
    with pytest.raises(RefusedStudyError) as caught:
        load_cohort(folder, tiny, **READ)
    text = str(caught.value)
    for word in ("participants.csv", "fdg.csv", "'diagnosis'", "'Diagnosis'", "sub-06"):
        assert word in text
    (fault,) = conflicts(folder, tiny)
    assert fault.values["scans"] == tuple(PEOPLE[5:])
    # a scan that is left out contradicts nothing
    assert not conflicts(folder, tiny, exclude=PEOPLE[5:])


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        [label.lower() for label in LABELS],
        [{"CN": 0, "AD": 1}[label] for label in LABELS],
        [{"CN": "Normal", "AD": "Dementia"}[label] for label in LABELS],
        [None, None, None, *LABELS[3:]],
    ],
)
def test_equal_labels_in_other_words_are_read(tables, tiny, labels):
    cohort = load_cohort(tables({"diagnosis": labels}), tiny, **READ)
    assert cohort.table["label"].tolist() == LABELS
    assert not [note for note in cohort.notes if "diagnosis" in note and "part" in note]


def test_broader_words_agree_and_other_stages_do_not(tables, tiny):
    stages = ["CN", "EMCI", "LMCI", "AD"] * 2
    broad = [stage.removeprefix("E").removeprefix("L") for stage in stages]
    folder = tables({"diagnosis": broad}, {"diagnosis": stages})
    assert not conflicts(folder, tiny)
    folder = tables({"diagnosis": stages}, {"diagnosis": broad})
    assert not conflicts(folder, tiny)
    # of the early stages, ADNI's diagnosis has CN alone
    early = ["CN", "SMC", "LMCI", "AD"] * 2
    words = {"CN": "NC", "SMC": "NC", "LMCI": "MCI", "AD": "Dementia"}
    folder = tables({"diagnosis": [*map(words.get, early)]}, {"diagnosis": early})
    assert not conflicts(folder, tiny)
    # a table that has SMC distinguishes it
    folder = tables({"diagnosis": ["CN", *early[:0:-1]]}, {"diagnosis": early})
    assert conflicts(folder, tiny)
    # one word a word, and yet another stage
    folder = tables({"diagnosis": [{"AD": "MCI"}.get(x, x) for x in LABELS]})
    (fault,) = conflicts(folder, tiny)
    assert fault.values["scans"] == tuple(PEOPLE[1::2])


def test_the_row_that_breaks_a_code_is_named(tables, tiny):
    codes = [{"CN": 1, "AD": 2}[label] for label in LABELS]
    codes[4] = 2
    (fault,) = conflicts(tables({"diagnosis": codes}), tiny)
    assert fault.values["scans"] == (PEOPLE[4],)


def test_a_table_that_is_not_read_is_compared_too(tables, tiny):
    folder = tables({})
    old = pd.DataFrame({"participant_id": PEOPLE, "diagnosis": LABELS[::-1]})
    old.to_csv(folder / "participants_2019.csv", index=False)
    (fault,) = conflicts(folder, tiny)
    assert [path.split("/")[-1] for path in fault.values["tables"]] == [
        "participants.csv",
        "participants_2019.csv",
    ]
    # the tables that the user names are the only ones
    assert not conflicts(folder, tiny, features_table="fdg.csv")


def test_sheets_of_one_workbook_are_compared(tables, tiny):
    pytest.importorskip("openpyxl")
    folder = tables({})
    people = pd.read_csv(folder / "participants.csv")
    (folder / "participants.csv").unlink()
    for other_labels, n_faults in ((LABELS, 0), (LABELS[::-1], 1)):
        with pd.ExcelWriter(folder / "participants.xlsx") as book:
            people.to_excel(book, sheet_name="people", index=False)
            people.assign(diagnosis=other_labels).to_excel(
                book, sheet_name="visit 2019", index=False
            )
        found = conflicts(folder, tiny, features_table="fdg.csv")
        assert len(found) == n_faults
    assert "sheet 'people'" in str(found[0])
    assert "sheet 'visit 2019'" in str(found[0])


def test_long_tables_are_compared(tables, tiny):
    folder = tables({})
    wide = pd.read_csv(folder / "fdg.csv").assign(diagnosis=LABELS)
    for labels, n_faults in ((LABELS, 0), (["AD", *LABELS[1:]], 1)):
        wide.assign(diagnosis=labels).melt(
            ["participant_id", "diagnosis"], var_name="region", value_name="suvr"
        ).to_csv(folder / "fdg.csv", index=False)
        found = conflicts(folder, tiny)
        assert len(found) == n_faults
    assert found[0].values["scans"] == (PEOPLE[0],)


@pytest.fixture
def visit_tables(tmp_path, tiny):
    """Return a function that writes diagnoses at visits, and PET at some of them."""

    def write_tables(visit_labels, pet_labels, people_name="participants.csv"):
        for name, labels, extra in (
            (people_name, visit_labels, {}),
            ("fdg.csv", pet_labels, region_cells(tiny)),
        ):
            rows = [
                {"PTID": person, "VISCODE": visit, "DX": label}
                | {head: cells[i] for head, cells in extra.items()}
                for visit, label_by_person in labels.items()
                for i, (person, label) in enumerate(
                    zip(PEOPLE, label_by_person, strict=True)
                )
            ]
            table = pd.DataFrame(rows).dropna(axis="columns", how="all")
            if visit_labels.keys() == {None} and not extra:
                table = table.drop(columns="VISCODE", errors="ignore")
            table.to_csv(tmp_path / name, index=False)
        return tmp_path

    return write_tables


CHANGED = ["MCI", "AD"] * 4


def test_only_the_same_visit_is_compared(visit_tables, tiny):
    labels = {"bl": LABELS, "m12": CHANGED}
    # PET at one of the visits, with the diagnosis of that visit
    folder = visit_tables(labels, {"m12": CHANGED})
    assert not conflicts(folder, tiny, label="DX")
    assert load_cohort(folder, tiny, label="DX", **READ).y.tolist() == CHANGED
    # with that of another visit
    folder = visit_tables(labels, {"m12": LABELS})
    (fault,) = conflicts(folder, tiny, label="DX")
    assert fault.values["scans"] == tuple(f"{p}_m12" for p in PEOPLE[::2])


def test_a_label_of_the_person_is_compared_at_each_visit(visit_tables, tiny):
    folder = visit_tables({None: LABELS}, {"bl": LABELS, "m12": CHANGED})
    (fault,) = conflicts(folder, tiny, label="DX")
    assert fault.values["scans"] == tuple(f"{p}_m12" for p in PEOPLE[::2])
    assert not conflicts(folder, tiny, label="DX", scans="baseline")


def test_a_row_of_the_person_may_be_of_any_visit(visit_tables, tiny):
    folder = visit_tables(
        {"bl": LABELS, "m12": CHANGED}, {"bl": LABELS, "m12": CHANGED}
    )
    other = pd.DataFrame({"PTID": PEOPLE, "DX": LABELS})
    other.to_csv(folder / "entry.csv", index=False)
    assert not conflicts(folder, tiny, label="DX")
    other.assign(DX=["AD", *LABELS[1:]]).to_csv(folder / "entry.csv", index=False)
    (fault,) = conflicts(folder, tiny, label="DX")
    assert {*fault.values["scans"]} == {f"{PEOPLE[0]}_bl", f"{PEOPLE[0]}_m12"}


def test_codes_of_a_person_are_compared_with_all_visits(visit_tables, tiny):
    labels = {"bl": LABELS, "m12": CHANGED}
    folder = visit_tables(labels, labels)
    codes = {"CN": 1, "MCI": 2, "AD": 3}
    entry = pd.DataFrame({"PTID": PEOPLE, "DX": [codes[x] for x in LABELS]})
    entry.to_csv(folder / "entry.csv", index=False)
    assert not conflicts(folder, tiny, label="DX")


def test_later_visits_do_not_contradict_people_without_visits(tables, tiny):
    folder = tables({})
    later = pd.DataFrame(
        {"participant_id": PEOPLE, "session_id": "M24", "diagnosis": CHANGED}
    )
    later.to_csv(folder / "follow_up.csv", index=False)
    assert not conflicts(folder, tiny)
    later.assign(session_id="bl").to_csv(folder / "follow_up.csv", index=False)
    assert len(conflicts(folder, tiny)) == 1


def test_labels_that_another_table_alone_has_are_noted(tables, tiny):
    folder = tables({"diagnosis": LABELS}, {"diagnosis": [None, *LABELS[1:]]})
    cohort = load_cohort(folder, tiny, classes=["CN", "AD"], **READ)
    (finding,) = [
        finding
        for finding in cohort.findings
        if finding.people == (PEOPLE[0],) and "fdg.csv" in finding.message
    ]
    assert finding.kind == ASSUMED
    assert len(cohort.y) == len(PEOPLE) - 1


def test_another_age_or_sex_is_noted(tables, tiny):
    people = {"age": range(70, 78), "sex": ["F", "M"] * 4}
    columns = {
        "Age": [70.4, *range(71, 76), 78, 77],
        "sex": ["M", "M", *["F", "M"] * 3],
    }
    cohort = load_cohort(tables(columns, people), tiny, **READ)
    noted_people = {
        finding.values["column"]: finding.people
        for finding in cohort.findings
        if "column" in finding.values
    }
    assert noted_people == {"age": (PEOPLE[6],), "sex": (PEOPLE[0],)}
    assert cohort.table["age"].tolist() == [*range(70, 78)]
    codes = {"sex": [{"F": 2, "M": 1}[sex] for sex in people["sex"]]}
    cohort = load_cohort(tables(codes, people), tiny, **READ)
    assert not [finding for finding in cohort.findings if "column" in finding.values]
