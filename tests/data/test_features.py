"""Where features come from, and what the subcortex has."""

import os
import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import features, load_cohort, read_feature
from brainlsap.data import tables as table_files
from brainlsap.data.features import OTHER_SUBJECT
from brainlsap.data.measures import fill_subcortex_with_notes, get_measure_record
from brainlsap.exceptions import CohortError, FileFormatError
from brainlsap.findings import FAULT
from brainlsap.options import read_value_by_option
from tests.conftest import raises_kind
from tests.data.conftest import NAMES, refused
from tests.data.feature_formats import write_stats

PEOPLE = ("sub-01", "sub-02", "sub-03")
PARTICIPANTS = "participant_id\tdiagnosis\nsub-01\tCN\nsub-02\tAD\nsub-03\tCN\n"
CORTEX = NAMES[:6]
DESIKAN = load_atlas("desikan82")


@pytest.fixture
def subject(tmp_path):
    """Return a function that writes a subject whose every thickness is one value."""

    def make(name, value, where="derivatives/freesurfer"):
        write_stats(tmp_path / where / name, DESIKAN, np.full(82, value))

    return make


@pytest.fixture
def people(write, tmp_path):
    """Three people, one shared connectome, no folders of their own."""
    write("participants.tsv", PARTICIPANTS)
    W = 1 - np.eye(82)

    def load(feature="thickness", **options):
        return load_cohort(tmp_path, DESIKAN, feature, connectome=W, **options)

    return load


@pytest.mark.parametrize(
    "where", ["derivatives/freesurfer", "derivatives/fs-7.4", ".", "{}/anat"]
)
def test_freesurfer_is_found(people, subject, where):
    for number, person in enumerate(PEOPLE):
        subject(person, 2 + number, where.format(person))
    cohort = people()
    assert cohort.features[:, 3, 0].tolist() == [2, 3, 4]
    assert np.isnan(cohort.features[:, 70]).all()
    assert "FreeSurfer: the stats of cross-sectional runs were read" in cohort.notes


def test_sessions_of_freesurfer_are_the_visits(people, subject):
    for name, value in (("sub-01_ses-2", 2), ("sub-01_ses-10", 3), ("sub-02_ses-1", 4)):
        subject(name, value)
    subject("sub-03", 5)
    cohort = people()
    scans = ["sub-01_ses-2", "sub-01_ses-10", "sub-02_ses-1", "sub-03"]
    assert cohort.table["scan"].tolist() == scans
    assert cohort.features[:, 0, 0].tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("right_name", "is_refused"),
    [("bert", False), ("", False), ("bert.long.base", False), ("ernie", True)],
)
def test_stats_of_two_subjects_in_one_folder_are_refused(
    subject, tmp_path, right_name, is_refused
):
    """The folder may have any name; files without a name in the header pass."""
    subject("sub-01", 2)
    folder = tmp_path / "derivatives/freesurfer/sub-01"
    for side, subject_name in (("lh", "bert"), ("rh", right_name)):
        path = folder / f"stats/{side}.aparc.stats"
        header_line = f"# subjectname {subject_name}\n" if subject_name else ""
        path.write_text(header_line + path.read_text())
    expectation = nullcontext()
    if is_refused:
        expectation = raises_kind(OTHER_SUBJECT, "stats")
    with expectation:
        read_feature(folder, "thickness", DESIKAN)


def test_stats_are_parsed_once_for_several_measures_unless_they_change(
    subject, tmp_path, monkeypatch
):
    parsed_files = []

    def read_lines_counted(path):
        parsed_files.append(path.name)
        return table_files.read_numbered_lines(path)

    monkeypatch.setattr(features, "read_numbered_lines", read_lines_counted)
    folder = tmp_path / "derivatives/freesurfer/sub-01"
    for n_writes, thickness in enumerate((2.0, 3.0), start=1):
        subject("sub-01", thickness)
        for path in folder.rglob("*.stats"):
            os.utime(path, (1e9 + n_writes, 1e9 + n_writes))
        for measure, factor in (("thickness", 1), ("volume", 1000)):
            values = read_feature(folder, measure, DESIKAN).values
            assert np.nanmax(values[DESIKAN.cortex]) == factor * thickness
        assert len(parsed_files) == 3 * n_writes  # both sides, and the subcortex


def test_names_of_adni(people, subject, write, tmp_path):
    write(
        "participants.tsv",
        "participant_id\tdiagnosis\nsub-ADNI002S0295\tCN\nsub-ADNI011S0003\tAD\n",
    )
    subject("002_S_0295_2006-04-18", 2, "subjects")
    subject("011_S_0003", 3, "subjects")
    cohort = people(subjects_dir=tmp_path / "subjects")
    assert cohort.table["session"].tolist() == ["2006-04-18", ""]
    assert cohort.features[:, 0, 0].tolist() == [2, 3]


def test_longitudinal_and_cross_sectional_are_never_mixed(people, subject, write):
    for person in PEOPLE:
        subject(f"{person}_ses-1.long.{person}", 2)
        subject(person, 9)
        write(f"derivatives/freesurfer/{person}/base-tps", "")
    cohort = people()
    assert "FreeSurfer: the stats of longitudinal runs were read" in cohort.notes
    assert cohort.features[:, 0, 0].tolist() == [2, 2, 2]
    subject("sub-01_ses-1", 3)
    assert people().features[:, 0, 0].tolist() == [2, 2, 2]
    subject("sub-02_ses-1", 3)
    subject("sub-03_ses-1", 3)
    with refused("every scan has both a cross-sectional and a long"):
        people()
    chosen = people(pattern={"freesurfer": "!*.long.*"})
    assert chosen.features[:, 0, 0].tolist() == [3, 3, 3]
    assert people(pattern={"freesurfer": "*.long.*"}).features[0, 0, 0] == 2


def test_a_mixture_is_refused(people, subject):
    subject("sub-01_ses-1.long.sub-01", 2)
    subject("sub-02_ses-1.long.sub-02", 2)
    subject("sub-03_ses-1", 2)
    message = (
        "sub-03_ses-1: the longitudinal .* is missing .* a cross-sectional run, .* "
        "must not"
    )
    with refused(message):
        people()


def test_missing_and_doubled_subjects_are_faults(people, subject):
    subject("sub-01", 2)
    subject("sub-01", 2, "derivatives/other")
    subject("sub-03", 2)
    with pytest.raises(CohortError) as error:
        people()
    assert (
        "sub-01: 2 FreeSurfer folders could belong to the scan. "
        in error.value.faults[0]
    )
    second = "sub-02: the cross-sectional FreeSurfer run is missing; expected a folder"
    assert second in error.value.faults[1]
    assert len(error.value.faults) == 2


@pytest.mark.parametrize("other", ["derivatives/freesurfer7", "fs/rerun", "."])
def test_of_two_sets_of_subjects_that_one_is_read_which_the_advice_names(
    people, subject, other
):
    for number, person in enumerate(PEOPLE):
        subject(person, 2 + number)
        subject(person, 2.5 + number, other)
    more = {"derivatives": ["fs/rerun"]} if other == "fs/rerun" else {}
    with pytest.raises(CohortError) as error:
        people(**more)
    folders = re.search(
        r"Choose the folder of the files with subjects_dir= \((.*)\)", str(error.value)
    )
    first = {}
    for folder in folders[1].split(" or "):
        first[folder] = people(subjects_dir=folder, **more).features[0, 0, 0]
    assert sorted(first.values()) == ([2, 2.5] if len(first) > 1 else [2])


def test_of_two_names_of_subjects_the_advice_chooses_by_name(people, subject, tmp_path):
    for number, person in enumerate(PEOPLE):
        subject(person, 2 + number)
        subject(f"{person}_again", 2.5 + number)
    with pytest.raises(CohortError) as error:
        people()
    follow = re.search(r"Choose .*?(pattern = .*?) in --config", str(error.value))
    (tmp_path / "config.toml").write_text(follow[1].replace("*_x*", "*_again*"))
    cohort = people(**read_value_by_option(tmp_path / "config.toml"))
    assert cohort.features[:, 0, 0].tolist() == [2.5, 3.5, 4.5]
    with refused(
        "the pattern '.nowhere.' of freesurfer .* fits no folder of a subject"
    ):
        people(pattern={"freesurfer": "*nowhere*"})


def test_of_two_runs_of_every_scan_the_advice_chooses_either(people, subject, tmp_path):
    for number, person in enumerate(PEOPLE):
        subject(f"{person}_ses-1", 2 + number)
        subject(f"{person}_ses-1.long.{person}", 3 + number)
    with pytest.raises(CohortError) as error:
        people()
    advice = re.findall(r"pattern = \{[^}]*\}", str(error.value))
    values = []
    for line in advice:
        (tmp_path / "config.toml").write_text(line)
        cohort = people(**read_value_by_option(tmp_path / "config.toml"))
        values.append(cohort.features[0, 0, 0])
    assert values == [3, 2]


def test_a_damaged_subject_is_a_fault_once(people, subject, tmp_path):
    for person in PEOPLE:
        subject(person, 2)
    (tmp_path / "derivatives/freesurfer/sub-02/stats/lh.aparc.stats").unlink()
    with pytest.raises(CohortError) as error:
        people(["thickness", "volume"])
    assert len(error.value.faults) == 1
    assert "sub-02/stats/lh.aparc.stats: no such file" in error.value.faults[0]


@pytest.fixture
def tables(write, tmp_path, tiny, matrix):
    """Three people of the tiny atlas whose features stand in tables."""
    write("participants.tsv", PARTICIPANTS)
    np.save(tmp_path / "w.npy", matrix)

    def make(name, heads, rows, delimiter=","):
        lines = [heads, *([who, *map(str, cells)] for who, cells in rows)]
        return write(name, "\n".join(delimiter.join(line) for line in lines) + "\n")

    def load(feature="thickness", **options):
        return load_cohort(tmp_path, tiny, feature, connectome="w.npy", **options)

    return make, load


ROWS = [(f"sub-0{n}", [n + i / 10 for i in range(6)]) for n in (3, 1, 2)]


def test_one_table(tables):
    make, load = tables
    make("table.csv", ["participant_id", *CORTEX], ROWS)
    cohort = load()
    np.testing.assert_array_equal(
        cohort.features[:, :6, 0].T, np.add.outer(np.arange(6) / 10, [1, 2, 3])
    )
    assert "thickness was read from table.csv" in cohort.notes
    # where nobody said that it is thickness it is refused, else told
    with refused(
        r"table\.csv does not name the measure .* plausible for thickness, fdg, .*\. "
        # several are plausible: none is proposed
        "Name the correct feature with feature=$"
    ):
        load(None)
    assert any("table.csv" in n and "read as thickness" in n for n in cohort.notes)
    make("table.csv", ["id", *CORTEX], [(w, [v * 1e3 for v in c]) for w, c in ROWS])
    with refused(
        r"median is 2.25e\+03; plausible values of thickness lie between 0.8 and 5\. "
    ):
        load()


def test_freesurfers_tables_are_joined(tables):
    make, load = tables
    for side in ("lh", "rh"):
        heads = [f"{side}.aparc.thickness", *(f"{side}_{r}_thickness" for r in "abc")]
        rows = [(f"/fs/{who}/", cells[:3]) for who, cells in ROWS]
        make(f"{side}.txt", heads, rows, "\t")
    rows = [(who, cells[:1]) for who, cells in ROWS]
    make("aseg.txt", ["Measure:volume", "Left-Amygdala"], rows, "\t")
    cohort = load(subcortex="volume")
    assert cohort.features[2, :, 0].tolist() == [3, 3.1, 3.2, 3, 3.1, 3.2, 3]
    with refused("3 of the 6 cortex regions of tiny are missing"):
        load(features_table="lh.txt")


def test_tables_with_visits(tables):
    make, load = tables
    rows = [("sub-01", ["m12", *range(6)]), ("sub-01", ["bl", *range(6, 12)])]
    rows += [("sub-02", ["bl", *range(6)]), ("sub-03", ["bl", *range(6)])]
    make("table.csv", ["PTID", "VISCODE", *CORTEX], rows)
    cohort = load()
    assert cohort.table["session"].tolist() == ["bl", "m12", "bl", "bl"]
    assert cohort.features[0, 0, 0] == 6


def test_visits_of_another_name_are_told(tables, write):
    make, load = tables
    people = "participant_id\tsession_id\tdiagnosis\n"
    for visit in ("M00", "M12"):
        people += f"sub-01\t{visit}\tCN\nsub-02\t{visit}\tAD\n"
        write(f"sub-01/ses-{visit}/dwi/notes.txt", "")
        write(f"sub-02/ses-{visit}/dwi/notes.txt", "")
    write("participants.tsv", people)
    for visit, told in (("V1", "V1"), ("", "none")):
        rows = [(f"sub-0{n}", [visit, *range(6)]) for n in (1, 2)]
        make("table.csv", ["id", "session_id", *CORTEX], rows)
        with refused(
            rf"4 scans: no row .* whose rows are of visit {told}; write the visits"
        ):
            load(features_table="table.csv")


def test_rows_that_do_not_fit_are_faults(tables):
    make, load = tables
    make("table.csv", ["id", *CORTEX], [*ROWS[:2], ROWS[1], ("sub-09", range(6))])
    with pytest.raises(CohortError) as error:
        load()
    assert error.value.faults[0].startswith("sub-01: ")
    assert "got 2 rows. Delete the rows that are wrong" in error.value.faults[0]
    assert "sub-02: no row in " in error.value.faults[1]
    assert "people who are not in participants.tsv: sub-09;" in error.value.faults[1]
    make("table.csv", ["id", *CORTEX], ROWS[:2])
    with refused(
        r"sub-02: no row in .* whose rows are named sub-03, sub-01; write the IDs"
    ):
        load()
    for respelt in (str.upper, lambda one: one.replace("-0", "-"), "S_{}".format):
        make("table.csv", ["id", *CORTEX], [(respelt(one), row) for one, row in ROWS])
        with refused(r"3 scans: no row in .* write the IDs in .*leading zeros"):
            load()
    make("table.csv", ["id", *CORTEX], [*ROWS, ("sub-09", range(6))])
    (note,) = (note for note in load().findings if note.people)
    assert note.people == ("sub-09",)
    assert "sub-09" not in note.shareable_text()
    # In a table of one row per scan and region, rows are no scans.
    make(
        "table.csv",
        ["id", "region", "thickness"],
        [
            (who, [name, value])
            for who, row in [*ROWS, ("sub-09", range(6))]
            for name, value in zip(CORTEX, row, strict=True)
        ],
    )
    (note,) = (note for note in load().findings if note.people)
    assert note.message.startswith("1 scan was not used")
    assert note.people == ("sub-09",)


def test_one_of_two_tables_of_people_is_chosen_by_its_name(write, tables, tmp_path):
    make, load = tables
    make("table.csv", ["id", *CORTEX], ROWS)
    (tmp_path / "participants.tsv").rename(tmp_path / "people.tsv")
    write("clinic.tsv", PARTICIPANTS)
    with pytest.raises(CohortError) as error:
        load()
    assert "features_table" not in str(error.value)
    assert "Rename the table to use to participants.csv" in str(error.value)
    (tmp_path / "clinic.tsv").rename(tmp_path / "participants.tsv")
    assert load().n_scans == len(ROWS)


def test_ids_of_another_column_of_people_are_recognised(write, tables):
    make, load = tables
    write(
        "participants.tsv",
        "rid\tptid\tdiagnosis\n1\tsub-01\tCN\n2\tsub-02\tAD\n3\tsub-03\tCN\n",
    )
    make(
        "table.csv",
        ["rid", *CORTEX],
        [(str(n), row) for n, (_, row) in enumerate(ROWS, 1)],
    )
    with refused(r"values of the column rid of participants\.tsv, so add .* ptid"):
        load(id_column="ptid")


def test_kinds_of_runs_in_tables_are_never_mixed(tables):
    make, load = tables
    rows = [("sub-01_ses-1.long.sub-01", range(6)), *ROWS[::2]]
    make("table.csv", ["id", *CORTEX], rows)
    with refused(r"table\.csv: some rows come from longitudinal .*not be mixed"):
        load()


def test_a_table_of_another_parcellation_is_named(write, tmp_path):
    write("participants.tsv", "participant_id\tdiagnosis\nsub-01\tCN\nsub-02\tAD\n")
    np.save(tmp_path / "w.npy", 1 - np.eye(160))
    values = ",".join(["1.5"] * len(DESIKAN.names))
    rows = f"sub-01,{values}\nsub-02,{values}\n"
    write("table.csv", f"id,{','.join(DESIKAN.names)}\n{rows}")
    message = (
        "the table contains no cortical region. The names belong to desikan82, .*gtmseg"
    )
    with refused(rf"table\.csv: {message}"):
        load_cohort(tmp_path, "destrieux160", "volume", connectome="w.npy")


def test_tables_that_hold_the_same_are_refused(tables):
    make, load = tables
    make("one.csv", ["id", *CORTEX], ROWS)
    make("two.csv", ["id", *CORTEX], ROWS)
    with refused(r"several tables contain .*one\.csv, .*two"):
        load()
    assert "thickness was read from two.csv" in load(features_table="two.csv").notes
    # the one that names the atlas' regions and no others is taken
    make("two.csv", ["id", *CORTEX, "CSF"], [(w, [*c, 1]) for w, c in ROWS])
    assert "thickness was read from one.csv" in load().notes


def test_a_table_that_says_the_measure_is_taken_before_one_that_says_none(tables):
    make, load = tables
    make("pet.csv", ["id", *CORTEX], ROWS)
    more = [*(f"{name}_thickness" for name in CORTEX), "lh_MeanThickness_thickness"]
    make("table.csv", ["id", *more], [(w, [v + 7 for v in c] + [8]) for w, c in ROWS])
    cohort = load()
    assert "thickness was read from table.csv" in cohort.notes
    assert cohort.features[:, 0, 0].tolist() == [8, 9, 10]


def test_one_column_is_not_two_features(tables):
    make, load = tables
    make("pet.csv", ["id", *CORTEX], ROWS)
    with refused("thickness and fdg have the same value in e"):
        load(["thickness", "fdg"])


def test_own_features_are_told_apart_by_the_names_of_tables(tables):
    make, load = tables
    make("curvature.csv", ["id", *CORTEX], [(w, [-v for v in c]) for w, c in ROWS])
    make("myelin.csv", ["id", *CORTEX], ROWS)
    assert load(["myelin", "curvature"]).features[1, 0].tolist() == [2, -2]
    with refused(r"mylein: several tables contain .*curvature.csv, .*myelin.csv"):
        load("mylein")


@pytest.mark.parametrize(
    ("name", "head"),
    [("AV45_SUVR.csv", "{}"), ("x-av-45.csv", "{}_suvr"), ("pet.csv", "{}_PiB")],
)
def test_a_tracer_in_the_name_of_a_table_or_a_column_counts(tables, name, head):
    """A table of amyloid was read as FDG without a word."""
    make, load = tables
    path = make(name, ["id", *map(head.format, CORTEX)], ROWS)
    assert load("amyloid").features[1, 0].tolist() == [2]
    with refused(rf"fdg: not found.*not used: {name} contains amyloid"):
        load("fdg")
    path.unlink()
    make("PET_SUVR_2024.csv", ["id", *CORTEX], ROWS)
    notes = load("fdg").notes
    assert (
        "PET_SUVR_2024.csv does not name the tracer of its values, so they were "
        "read as fdg" in notes
    )
    assert not any("taken to be" in note for note in load("suvr").notes)


def test_a_tracer_glued_to_a_table_s_name_counts(tables):
    """Amyloid of UC Berkeley was read as FDG, and as tau."""
    make, load = tables
    make(
        "UCBERKELEYAV45_8mm_02_17_23.csv", ["id", *map("{}_SUVR".format, CORTEX)], ROWS
    )
    assert load("amyloid").features[1, 0].tolist() == [2]
    for feature in ("fdg", "tau"):
        with refused(rf"{feature}: not found.*not used: UCBERKELEYAV45"):
            load(feature)


def test_a_table_without_a_measure_is_not_read_beside_one_that_names_it(tables):
    make, load = tables
    make("values.csv", ["id", *CORTEX], ROWS)
    assert load("fdg").features[1, 0].tolist() == [2]
    rows = [(who, ["Angular", 1.0]) for who, _ in ROWS]
    make("UCBERKELEYFDG_8mm.csv", ["id", "ROINAME", "MEAN"], rows)
    with refused(r"name of values.csv .*name of UCBERKELEYFDG_8mm.csv contains fdg"):
        load("fdg")


def test_a_name_of_two_measures_names_none(tables):
    make, load = tables
    make("fdg_thickness.csv", ["id", *CORTEX], ROWS)
    for feature in ("fdg", "thickness"):
        with refused(rf"{feature}: .* in fdg_thickness.csv .* contains fdg, thick"):
            load(feature)


def test_a_column_of_centiloids_names_amyloid(tables):
    make, load = tables
    make("pet.csv", ["id", "CENTILOIDS", *CORTEX], [(w, [9, *c]) for w, c in ROWS])
    assert load("amyloid").features[1, 0].tolist() == [2]
    with refused(
        "fdg: the names of the region columns in pet.csv do not contain a tracer"
    ):
        load("fdg")


@pytest.mark.parametrize("head", ["{}_gmv", "GMV.{}", "1101 1102 1103 2101 2102 2103"])
def test_own_words_and_labels_of_the_atlas_stand_for_regions(tables, head):
    make, load = tables
    heads = head.split() if " " in head else [*map(head.format, CORTEX)]
    name = "gmv.csv" if " " in head else "table.csv"
    order = [3, 0, 5, 1, 4, 2]
    rows = [(who, [cells[i] for i in order] + ["x"]) for who, cells in ROWS]
    make(name, ["id", *(heads[i] for i in order), "lh_a_note"], rows)
    for feature in ("gmv", "GMV"):
        found = load(feature).features[..., 0]
        np.testing.assert_allclose(found[1, :6], np.arange(6) / 10 + 2)
        assert np.isnan(found[:, 6]).all()


def test_numbers_of_columns_that_could_be_places_are_none(tables):
    make, load = tables
    for heads in (range(1, 7), range(1101, 1107)):
        make("gmv.csv", ["id", *map(str, heads)], ROWS)
        told = (
            rf"gmv\.csv: no column is a region of the atlas tiny; the columns are "
            rf"{heads[0]}, {heads[1]}"
        )
        with refused(told):
            load("gmv")


def test_a_region_that_nobody_has_is_told(tables):
    make, load = tables
    make("gmv.csv", ["id", *CORTEX], [(who, ["n/a", *c[1:]]) for who, c in ROWS])
    assert (
        "gmv was not measured in any scan in these regions: lh_a" in load("gmv").notes
    )


def test_unknown_regions_are_named(tables):
    make, load = tables
    make("table.csv", ["id", "lh_aa", *CORTEX[1:]], ROWS)
    with refused(r"atlas tiny: 'lh_aa' .most similar: lh_a.*missing: lh_a"):
        load()


def test_the_fault_of_the_table_that_bears_the_name_of_the_feature_is_told(tables):
    make, load = tables
    table_path = make("thickness.csv", ["id", *CORTEX], ROWS)
    table_path.write_text(table_path.read_text().rpartition(",")[0])
    with pytest.raises(CohortError) as error:
        load()
    (fault,) = error.value.faults
    assert fault.startswith(f"{table_path}: thickness: a table could not be read")
    assert "The file may be incomplete" in fault
    make("thickness.csv", ["id", *CORTEX, CORTEX[0]], [(i, [*v, 1]) for i, v in ROWS])
    with refused(rf"could not be read, because .* more than once: '{CORTEX[0]}'"):
        load()


def test_tables_that_are_given_must_serve(tables):
    make, load = tables
    make("table.csv", ["id", *CORTEX], ROWS)
    with raises_kind("no such file", "absent.csv"):
        load(features_table="absent.csv")
    make("other.csv", ["id", "x"], [("sub-01", [1])])
    with refused(
        r"not found in any file or table; expected a table with .*, in other.csv"
    ):
        load(features_table=["other.csv"])


def test_subcortical_columns_without_a_policy_are_told(tables):
    make, load = tables
    make("t.csv", ["id", *CORTEX, "Left-Amygdala"], [(w, [*c, 7]) for w, c in ROWS])
    cohort = load()
    assert np.isnan(cohort.features[:, 6]).all()
    (note,) = (note for note in cohort.notes if "1 subcortical column is" in note)
    assert "subcortex='volume'" in note
    assert load(subcortex="volume").features[:, 6, 0].tolist() == [7, 7, 7]
    assert load("fdg").features[:, 6, 0].tolist() == [7, 7, 7]
    # what was done already, or would be refused, is not advised
    heads = ["id", *CORTEX, "Left-Amygdala_thickness", "Left-Amygdala_volume"]
    make("t.csv", heads, [(w, [*c, 1, 7]) for w, c in ROWS])
    assert load(subcortex="volume").features[:, 6, 0].tolist() == [7, 7, 7]
    for options in ({"subcortex": "volume"}, {"feature": ["thickness", "volume"]}):
        heads = ["id", *(f"{n}_{m}" for m in ("thickness", "volume") for n in NAMES)]
        make("t.csv", heads, [(w, [*c, 1, *c[::-1], 7]) for w, c in ROWS])
        assert not any("subcortex=" in note for note in load(**options).notes)


def test_labels_and_regions_in_one_table(tmp_path, write, tiny, matrix):
    rows = "".join(f"s{i},{'FM'[i % 2]},{60 + i},1,2,3,4,5,6\n" for i in range(4))
    write("table.csv", f"sub_id,sex,age,{','.join(CORTEX)}\n{rows}")
    cohort = load_cohort(tmp_path, tiny, "thickness", "sex", connectome=matrix)
    assert cohort.y.tolist() == ["F", "M", "F", "M"]
    assert cohort.table["age"].tolist() == [60, 61, 62, 63]
    with refused(r"and no other table with IDs and(.|\n)*no column 'diagnosis'"):
        load_cohort(tmp_path, tiny, label="diagnosis", connectome=matrix)
    write("who.csv", "sub_id,age\ns0,60\n")  # no regions: the people to predict
    people = load_cohort(tmp_path, tiny, "thickness", None, connectome=matrix)
    assert people.n_scans == 1
    write("two.csv", f"sub_id,sex,age,{','.join(CORTEX)}\n{rows}")
    with refused(r"2 tables could be .*: .* with features_table="):
        load_cohort(tmp_path, tiny, label="sex", connectome=matrix)
    chosen = {"features_table": "two.csv", "connectome": matrix}
    assert load_cohort(tmp_path, tiny, "thickness", "sex", **chosen).n_scans == 4
    write("people.csv", "sub_id,diagnosis\ns0,AD\ns1,CN\n")  # beside the values
    given = {"features_table": "two.csv", "connectome": matrix}
    found = load_cohort(tmp_path, tiny, "thickness", **given)
    assert found.y.tolist() == ["AD", "CN"]


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("oops", "Write n/a for missing values, or leave the scan out"),
        ("1,1515", "Write decimals with a point, or leave the scan out"),
    ],
)
def test_a_cell_that_is_no_number_is_the_fault_of_its_scan(tables, cell, advice):
    make, load = tables
    heads = ["id", *CORTEX]
    make("table.csv", heads, ROWS)
    expected = load(exclude="sub-01")
    # A person who is not in the cohort does not matter.
    others = [("sub-09", ["x"] * 6)]
    broken = [(who, [cell, *v[1:]] if who == "sub-01" else v) for who, v in ROWS]
    make("table.csv", heads, [*broken, *others], "\t")
    with pytest.raises(CohortError) as refusal:
        load()
    (fault,) = (x for x in refusal.value.findings if x.severity == FAULT)
    assert (fault.scan, fault.kind) == ("sub-01", "not numbers")
    assert cell in fault.got
    assert fault.advice.startswith(advice)
    assert CORTEX[0] in fault.got
    cohort = load(skip_faulty=True)
    np.testing.assert_array_equal(cohort.features, expected.features)
    (row,) = cohort.left_out.itertuples()
    assert (row.scan, row.fate) == ("sub-01", "fault")
    assert cell in row.reason


@pytest.mark.parametrize(
    ("cell", "places"),
    [
        ("oops", [(0, 0), (1, 0), (2, 0)]),  # a column of notes
        ("oops", [(0, 0), (1, 1)]),  # most rows
        ("1,234.5", [(1, 0)]),  # only large numbers may show thousands
    ],
)
def test_cells_of_the_whole_table_are_no_fault_of_scans(tables, cell, places):
    make, load = tables
    values = np.array([v for _, v in ROWS], dtype=object)
    values[tuple(np.transpose(places))] = cell
    rows = [(who, v) for (who, _), v in zip(ROWS, values, strict=True)]
    make("table.csv", ["id", *CORTEX], rows, "\t")
    with pytest.raises(CohortError) as refusal:
        load(skip_faulty=True)
    assert not any(fault.scan for fault in refusal.value.findings)
    assert cell in str(refusal.value)


def test_a_unit_in_column_names_must_be_that_of_the_measure(tables):
    make, load = tables
    make("thickness.csv", ["id", *CORTEX], ROWS)
    expected = load().features
    for ending in (" [mm]", " (mm)", "_thickness (mm)"):
        make("thickness.csv", ["id", *(f"{name}{ending}" for name in CORTEX)], ROWS)
        np.testing.assert_array_equal(load().features, expected)
    for unit in ("mm2", "mm^3", "mm\u00b3"):
        make("thickness.csv", ["id", *(f"{name} [{unit}]" for name in CORTEX)], ROWS)
        with refused(
            r"contains thickness \[mm\d\] with another unit.* remove the unit"
        ):
            load()


def test_one_column_name_may_contain_the_unit(tmp_path, tiny, matrix):
    people = pd.DataFrame({"id": ["a", "b"], "diagnosis": ["CN", "AD"]})
    values = pd.DataFrame(1.5, index=people["id"], columns=CORTEX)
    values = values.rename(columns={CORTEX[0]: f"{CORTEX[0]} (SUVR)"})
    people.to_csv(tmp_path / "participants.csv", index=False)
    values.to_csv(tmp_path / "fdg.csv")
    cohort = load_cohort(tmp_path, tiny, "fdg", connectome=matrix)
    assert cohort.measured[:, : len(CORTEX)].all()


def test_a_connectome_is_no_table_of_features(tables, tmp_path, matrix):
    make, load = tables
    make("table.csv", ["id", *CORTEX], ROWS)
    expected = load().features
    pd.DataFrame(matrix, NAMES, NAMES).to_csv(tmp_path / "group.csv")
    np.testing.assert_array_equal(load().features, expected)
    told = r"group\.csv: The row names are regions, such as 'lh_a'; expected one row"
    with pytest.raises(FileFormatError, match=told):
        load(features_table="group.csv")


def test_a_sheet_with_participants_as_columns_is_to_be_transposed(
    tmp_path, tiny, matrix
):
    people = pd.DataFrame({"id": list("abcdef"), "diagnosis": ["CN", "AD"] * 3})
    values = pd.DataFrame(
        1 + np.random.default_rng(0).random((6, 6)), CORTEX, people["id"]
    )
    path = tmp_path / "study.xlsx"

    def write(values):
        with pd.ExcelWriter(path) as book:
            people.to_excel(book, sheet_name="who", index=False)
            values.to_excel(book, sheet_name="fdg")

    write(values.rename_axis("Region"))
    told = r"(?s)sheet 'fdg': the rows are regions \(Region: .*participants \(a, b"
    with refused(told + r".*read_excel\('study.xlsx', 'fdg'\).set_index\('Region'\).T"):
        load_cohort(tmp_path, tiny, "fdg", connectome=matrix)
    write(pd.read_excel(path, "fdg").set_index("Region").T.rename_axis("id"))
    cohort = load_cohort(tmp_path, tiny, "fdg", connectome=matrix)
    np.testing.assert_allclose(cohort.features[:, : len(CORTEX), 0], values.T)


def test_a_sheet_that_cannot_be_read_is_told(tmp_path, tiny, matrix):
    people = pd.DataFrame({"id": ["a", "b"], "diagnosis": ["CN", "AD"]})
    values = pd.DataFrame(1.0, index=people["id"], columns=CORTEX).astype(object)
    values.iloc[1, 2] = "1,07"
    with pd.ExcelWriter(tmp_path / "study.xlsx") as book:
        people.to_excel(book, sheet_name="who", index=False)
        values.to_excel(book, sheet_name="fdg")
    told = r"fdg was not found, .*sheet 'fdg': 1 cells must be numbers .*'1,07'"
    with refused(told):
        load_cohort(tmp_path, tiny, "fdg", connectome=matrix)


VALUES = dict(zip(NAMES, (1.0, 2.0, 6.0, 4.0, 5.0, 9.0, 7.0), strict=True))


def region_table(write, values, head="region\tsuvr", name="r.tsv"):
    rows = "".join(f"{region}\t{value}\n" for region, value in values.items())
    return write(name, f"{head}\n{rows}")


@pytest.mark.parametrize(
    ("policy", "expected", "note"),
    [
        (
            "absent",
            np.nan,
            "1 of 7 regions (all subcortical) has no value and counts as not measured",
        ),
        (
            "mean",
            3.0,
            "each subcortical region has the mean of the hemisphere's cortex",
        ),
        ("volume", 7.0, "each subcortical region has the volume in mm3"),
    ],
)
def test_policies(write, tiny, policy, expected, note):
    path = region_table(write, VALUES, "region\tthickness")
    found = read_feature(path, "thickness", tiny, subcortex=policy)
    np.testing.assert_array_equal(found.values[6], expected)
    np.testing.assert_array_equal(found.values[:6], list(VALUES.values())[:6])
    assert note in found.notes[0]


def test_policies_are_of_the_surface_and_need_values(write, tiny):
    found = read_feature(region_table(write, VALUES), "fdg", tiny, subcortex="mean")
    assert (found.values[6], found.notes) == (7, ())
    path = region_table(write, {**VALUES, "Left-Amygdala": "n/a"}, "region\tthickness")
    with pytest.raises(FileFormatError, match="subcortex='volume' requires volumes of"):
        read_feature(path, "thickness", tiny, subcortex="volume")


@pytest.mark.parametrize(
    ("missing_names", "note"),
    [
        (NAMES[6:], "fdg: 1 of 7 regions (all subcortical) has no value"),
        (NAMES[:6], "fdg: 6 of 7 regions (all cortical) have no value"),
    ],
)
def test_a_structure_without_values_is_noted(write, tiny, missing_names, note):
    """A table without the subcortex was read without a word."""
    values = {name: VALUES[name] for name in NAMES if name not in missing_names}
    left_out = read_feature(region_table(write, values), "fdg", tiny)
    not_measured = dict.fromkeys(missing_names, "n/a")
    written = read_feature(region_table(write, VALUES | not_measured), "fdg", tiny)
    assert left_out.notes == written.notes
    assert [message for message in left_out.notes if message.startswith(note)]


def test_thickness_of_zero_is_not_measured(write, tiny):
    values = {**VALUES, "rh_a": 0}
    path = region_table(write, values, "region\tthickness")
    found = read_feature(path, "thickness", tiny)
    assert np.isnan(found.values[3])
    note = (
        "regions of thickness 0 were not found by FreeSurfer, and count as not measured"
    )
    assert note in found.notes
    assert read_feature(region_table(write, values), "fdg", tiny).values[3] == 0


def test_a_negative_size_is_refused(write, tiny):
    """Tables of ADNI write -4 for what was not measured."""
    path = region_table(write, {**VALUES, "rh_a": -4}, "region\tthickness")
    with pytest.raises(FileFormatError, match=r"of rh_a is -4; expected a size of"):
        read_feature(path, "thickness", tiny)
    path = region_table(write, {**VALUES, "rh_a": -4})
    assert read_feature(path, "fdg", tiny).values[3] == -4


def test_the_midline_takes_the_mean_of_both_sides(tiny):
    regions = tiny.regions.assign(hemisphere=["L"] * 3 + ["R"] * 3 + ["M"])
    atlas = Atlas("midline", regions)
    values = np.array([1.0, 1, 1, 4, 4, np.nan, 0])
    found, _ = fill_subcortex_with_notes(
        values, get_measure_record("thickness"), atlas, "mean"
    )
    assert found[6] == pytest.approx(2.2)


@pytest.fixture
def pet(write, tmp_path):
    """Return a function that writes three people's ratios, and loads them."""

    def load(feature, file_name, heads="{}_SUVR", people=PARTICIPANTS, **columns):
        write("participants.tsv", people)
        table = pd.DataFrame({"ID": PEOPLE} | columns)
        ratios = {heads.format(name): [1.1, 1.2, 1.3] for name in DESIKAN.names}
        pd.concat([table, pd.DataFrame(ratios)], axis=1).to_csv(
            tmp_path / file_name, index=False
        )
        return load_cohort(tmp_path, DESIKAN, feature, connectome=1 - np.eye(82))

    return load


@pytest.mark.parametrize(
    ("feature", "file_name", "columns"),
    [
        ("tau", "UCBERKELEY_AMY_6MM.csv", {}),
        ("fdg", "UCBERKELEY_AMY_6MM.csv", {}),
        ("fdg", "suvr.csv", {"TRACER": ["FBP", "FBP", "FBB"]}),
        (
            "tau",
            "pet.csv",
            {"Ligand": ["18F-AV-45", "[18F]AV45", "florbetapir (AV-45)"]},
        ),
        ("fdg", "pet.csv", {"x": ["11C-PiB", "11C-PiB", "NAV4694"]}),
        ("tau", "flutemetamol_pet.csv", {}),
        ("tau", "tau_amyloid.csv", {}),
        ("tau", "pet.csv", {"AV45_GLOBAL_SUVR": [1, 1, 2]}),
        ("fdg", "pet.csv", {"FBB centiloids": [1, 10, 20]}),
        ("tau", "tau.csv", {"radiotracer": ["FTP", "FBP", "FTP"]}),
        ("tau", "tau.csv", {"tracer": ["PIB", "PIB", "PIB"]}),
    ],
)
def test_what_says_amyloid_is_never_taken_for_another_tracer(
    pet, feature, file_name, columns
):
    """A table of FBP, named AMY, was "taken to be tau", and to be FDG."""
    with pytest.raises(CohortError, match=f"{feature}: .*amyloid"):
        pet(feature, file_name, **columns)


@pytest.mark.parametrize(
    ("feature", "file_name", "columns"),
    [
        ("amyloid", "UCBERKELEY_AMY_6MM.csv", {"TRACER": ["FBP"] * 3}),
        ("amyloid", "pet.csv", {"TRACER": ["FBP"] * 3}),
        ("tau", "tau.csv", {"amyloid_tracer": ["FBP"] * 3, "AMYLOID": [0, 1, 1]}),
        ("tau", "pet.csv", {"amyloid_status": ["neg", "pos", "pos"]}),
        ("fdg", "suvr.csv", {"tracer": ["[18F]FDG", "18F-FDG", "FDG"]}),
    ],
)
def test_a_table_that_says_its_tracer_is_read(pet, feature, file_name, columns):
    cohort = pet(feature, file_name, **columns)
    assert (cohort.features[:, :, 0] == [[1.1], [1.2], [1.3]]).all()
    assert {*columns}.isdisjoint(cohort.table)


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("TRACER", ["FBP", "FBB", "FBP"]),
        ("PVC", ["RBV", "none yet", "RBV"]),
        ("REFERENCE REGION", ["pons", "whole cerebellum", "pons"]),
        ("pipeline_version", ["1.0", "2.0", "1.0"]),
        ("any", ["AV45", "flutemetamol", "AV45"]),
    ],
)
def test_values_on_several_scales_are_noted_and_kept_for_the_audit(pet, head, values):
    """Two tracers in a table were left out without a word."""
    cohort = pet("amyloid", "amyloid.csv", **{head: values})
    assert cohort.table[head].tolist() == values
    (note,) = (note for note in cohort.notes if f"'{head}'" in note)
    assert "2 different values" in note
    assert "(2)" in note
    assert {*pet("amyloid", "amyloid.csv", **{head: values[:1] * 3}).table}.isdisjoint(
        [head]
    )


def test_a_column_of_people_is_not_doubled(pet):
    people = PARTICIPANTS.replace("diagnosis", "diagnosis\ttracer", 1)
    for label, tracer in (
        ("sub-01\tCN", "A"),
        ("sub-02\tAD", "B"),
        ("sub-03\tCN", "A"),
    ):
        people = people.replace(label, f"{label}\t{tracer}")
    cohort = pet("tau", "tau.csv", people=people, TRACER=["FTP", "MK6240", "FTP"])
    assert cohort.table["tracer"].tolist() == ["A", "B", "A"]


def test_tracers_of_files_beside_scans_are_compared(study, tiny):
    cohort = load_cohort(study, tiny, "fdg")
    assert "tracer" not in cohort.table
    for path in study.glob("sub-0*/*/pet/*.tsv"):
        of_tracer = "18FAV45" if "sub-01" in path.name else "18FFBB"
        path.rename(path.with_name(path.name.replace("18FFDG", of_tracer)))
    cohort = load_cohort(study, tiny, "amyloid")
    assert cohort.table["tracer"].value_counts().to_dict() == {
        "18FFBB": 5,
        "18FAV45": 2,
    }
    assert any("florbetaben (5), florbetapir (2)" in note for note in cohort.notes)


def test_one_scan_s_table_may_not_be_of_another_tracer(write, tiny):
    rows = "".join(f"{name}\t1.2\tFBP\n" for name in NAMES)
    path = write("sub-01_tau.tsv", "region\tsuvr\ttracer\n" + rows)
    with raises_kind("other tracer", "sub-01_tau.tsv", features=["amyloid"]):
        read_feature(path, "tau", tiny)
    path = path.rename(path.with_name("sub-01_pet.tsv"))
    assert read_feature(path, "amyloid", tiny).values[0] == 1.2
    path = path.rename(path.with_name("sub-01_trc-18FAV45_regions.tsv"))
    with pytest.raises(
        FileFormatError, match=r"contains trc-18FAV45 .florbetapir., not"
    ):
        read_feature(path, "fdg", tiny)


@pytest.mark.parametrize(
    ("feature", "scale", "shift"),
    [
        ("fdg", 8000, 0),  # Bq/ml
        ("amyloid", 30, 0),
        ("tau", 1, -1.2),  # z-scores
        ("suvr", 0, 0),
        ("thickness", 0.2, 0),  # cm
        ("thickness", 2500, 0),  # micrometres
        ("thickness", 60, 0),  # percentiles
        ("thickness", 0, 0),
    ],
)
def test_values_in_another_unit_are_refused_but_under_a_name_of_their_own(
    write, feature, scale, shift
):
    values = {name: 1 + i / 10 for i, name in enumerate(NAMES)}
    moved = {name: value * scale + shift for name, value in values.items()}
    path = region_table(write, moved, f"region\t{feature}")
    with pytest.raises(
        FileFormatError, match=f"the unit of {feature} is probably not .*; got a"
    ):
        read_feature(path, feature, own_atlas := Atlas.from_names(NAMES))
    path = region_table(write, moved, f"region\t{feature}_z")
    found = read_feature(path, f"{feature}_z", own_atlas).values
    np.testing.assert_allclose(found, [*moved.values()])


def test_units_of_a_study_are_refused_scan_by_scan(study, tiny):
    """A third were ratios, the others Bq/ml: taken for SUVR without a word."""
    for path in sorted(study.glob("sub-0*/*/pet/*.tsv"))[:3]:
        table = pd.read_csv(path, sep="\t")
        table["suvr"] *= 8000
        table.to_csv(path, sep="\t", index=False)
    with refused("3 scans: the unit of fdg is probably not ratios"):
        load_cohort(study, tiny, "fdg")
