"""What a check says of a study's folder, and the commands that it suggests."""

import re
import shlex
import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import Atlas
from brainlsap.cli import main
from brainlsap.data import check_cohort, features, load_cohort, suggest_options
from brainlsap.data.region_tables import read_sheets_and_errors
from brainlsap.findings import ASSUMED, FOREIGN_IDS
from brainlsap.simulation import make_cohort, write_study_folder
from tests.data.conftest import NAMES


def test_a_sound_folder(study, tiny):
    check = check_cohort(study, tiny, ["fdg", "strength"])
    assert check.is_sound
    people = (
        "5 people, 7 scans",
        "number of scans by diagnosis: CN (4), AD (3)",
        "covariates: age",
    )
    read = (
        "connectomes were read for 7 of 7 scans",
        *(f"{name} was read for 7 of 7 scans" for name in ("fdg", "strength")),
    )
    assert check.count_texts == (*people, *read)
    assert "connectomes: read by name (7 of 7 scans)" in check.notes
    assert check.cohort.n_scans == 7
    assert check_cohort(check.cohort).count_texts == check.count_texts
    text = check.text()
    assert text.startswith(f"{study}\nFound:\n  5 people, 7 scans\n")
    assert text.endswith("No faults: the cohort can be loaded.\n")
    assert "Faults" not in text
    assert repr(check) == text


def test_every_fault_is_listed_beside_what_was_found(study, tiny):
    files = sorted(study.glob("sub-*/ses-*/dwi/*"))
    files[0].unlink()
    files[1].write_text("not a matrix")
    table = next(study.glob("sub-05/ses-*/pet/*"))
    table.write_text("region\tsuvr\nlh_a\t1\n")
    check = check_cohort(study, tiny, "fdg", classes=["CN", "AD"])
    assert not check.is_sound
    assert check.cohort is None
    assert len(check.faults) == 3
    assert "sub-01_ses-M00: the connectome is missing" in check.faults[0]
    assert check.count_texts[3:5] == (
        "connectomes were read for 5 of 7 scans",
        "fdg was read for 6 of 7 scans",
    )
    assert "Faults:\n  sub-01_ses-M00: the connectome is missing" in check.text()


def test_what_was_dropped_is_told_apart(study, tiny):
    check = check_cohort(study, tiny, "fdg", classes=["CN", "SMC", "AD"])
    assert check.faults == (
        "no scan has the diagnosis 'SMC'; the scans have AD (3), CN (4)",
    )
    people = study / "participants.tsv"
    people.write_text(people.read_text().replace("sub-05\tCN", "sub-05\tother"))
    check = check_cohort(study, tiny, "fdg", classes=["CN", "AD"])
    assert (
        "Dropped:\n  scans are left out because their diagnosis is not one of"
        in check.text()
    )


def test_nothing_can_be_said_without_people(tmp_path, study, tiny):
    check = check_cohort(tmp_path / "nowhere", tiny)
    assert check.faults == (
        f"{tmp_path / 'nowhere'}: the folder does not exist. Check the path",
    )
    assert check.count_texts == ()
    (study / "participants.tsv").write_text("participant_id\tdiagnosis\n..\tCN\n")
    check = check_cohort(study, tiny)
    assert "in every row" in check.faults[0]
    assert "Rows without an ID: row 2 (..)" in check.faults[0]


def move(study, names, *to):
    for path in [*study.rglob(names)]:
        target = study.joinpath(*to, path.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)


def change_people(study, old, new):
    path = study / "participants.tsv"
    path.write_text(path.read_text().replace(old, new))


def two_connectomes(study):
    for path in [*study.rglob("*connectivity.csv")]:
        for kind in ("count", "length"):
            name = path.name.replace("connectivity", f"{kind}_connectivity")
            path.with_name(name).write_bytes(path.read_bytes())
        path.unlink()


def one_connectome(study):
    path = next(study.rglob("*connectivity.csv"))
    (study / "template.csv").write_bytes(path.read_bytes())
    move(study, "*connectivity.csv", "..", "elsewhere")


def two_tables(study):
    move(study, "*18FFDG*", "..", "elsewhere")
    visits = study.glob("sub-*/ses-*")
    rows = [f"{one.parent.name}_{one.name},1,2,3,4,5,6,7\n" for one in visits]
    for name in ("one.csv", "two.csv"):
        (study / name).write_text(",".join(["id", *NAMES]) + "\n" + "".join(rows))


def amyloid_in_a_table(study):
    two_tables(study)
    (study / "one.csv").unlink()
    (study / "two.csv").rename(study / "AV45_SUVR.csv")


def other_tracer(study):
    for path in [*study.rglob("*18FFDG*")]:
        path.rename(path.with_name(path.name.replace("18FFDG", "18FAV45")))


FLAT = "sub-{participant}_ses-{session}_connectivity.csv"


@pytest.mark.parametrize(
    ("arrange", "name", "value"),
    [
        (lambda one: move(one, "*connectivity.csv", "sc"), "pattern", f"'sc/{FLAT}'"),
        (lambda one: move(one, "*connectivity.csv", ""), "pattern", f"'{FLAT}'"),
        (two_connectomes, "pattern", "*_count_connectivity.csv"),
        (one_connectome, "connectome", "template.csv"),
        (lambda one: move(one, "*connectivity.csv", "..", "x"), "connectome", "none"),
        (two_tables, "features_table", "one.csv"),
        (
            lambda one: move(one, "*-01_*M00_trc*", "..", "pet", "sub-01", "ses-M00"),
            "derivatives",
            "/pet']",
        ),
        (other_tracer, "feature", "['amyloid']"),
        (amyloid_in_a_table, "feature", "['amyloid']"),
    ],
)
def test_a_refused_study_is_read_as_suggested(study, tiny, arrange, name, value):
    arrange(study)
    options = {"atlas": tiny, "feature": "fdg"}
    check = check_cohort(study, **options)
    assert not check.is_sound
    found = suggest_options(check, options)[0]
    assert load_cohort(study, **options | found).n_scans > 5
    assert value in repr(found.pop(name))
    assert not found


def write_decimal_commas(path):
    path.write_text(path.read_text().replace(",", ";").replace(".", ","))


def write_word(path):
    rows = path.read_text().splitlines()
    cells = rows[3].split(",")
    path.write_text("\n".join([*rows[:3], ",".join([*cells[:-1], "x"]), *rows[4:]]))


def delete_row(path):
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))


@pytest.mark.parametrize("damage", [write_decimal_commas, write_word, delete_row])
@pytest.mark.parametrize(
    ("place", "stem"), [("", "template"), ("", "{}_weights"), ("{}/dwi", "{}_weights")]
)
def test_an_unreadable_connectome_is_named_and_not_left_out(
    study, tiny, damage, place, stem
):
    people = [f"sub-0{i}" for i in range(1, 6)]
    pd.DataFrame(
        {"participant_id": people, "diagnosis": ["CN", "AD", "CN", "AD", "CN"]}
        | {name: np.linspace(1, 2, 5) + i for i, name in enumerate(NAMES)}
    ).to_csv(study / "fdg.csv", index=False)
    (study / "participants.tsv").unlink()
    matrix = next(study.glob("sub-*/**/*connectivity.csv")).read_text()
    for folder in study.glob("sub-*"):
        shutil.rmtree(folder)
    for person in people:
        path = study / place.format(person) / f"{stem.format(person)}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        header, *rows = matrix.splitlines()
        path.write_text("\n".join([header, *(f"{row}.5" for row in rows)]))
        damage(path)
    options = {"atlas": tiny, "feature": "fdg"}
    check = check_cohort(study, **options)
    (fault,) = [finding for finding in check.findings if finding.path is not None]
    assert path.name.replace("sub-05", "sub-01") in str(fault.path)
    assert suggest_options(check, options) == []
    # without the files, it is right to read none
    for path in [*study.glob("*.csv"), *study.glob("sub-*/**/*.csv")]:
        if path.name != "fdg.csv":
            path.unlink()
    check = check_cohort(study, **options)
    assert suggest_options(check, options) == [{"connectome": "none"}]


@pytest.fixture
def translated(study):
    """Return a function that writes thickness under other words into one table."""
    people = [f"sub-0{i}" for i in range(1, 6)]
    for folder in study.glob("sub-*"):
        shutil.rmtree(folder)

    def write_table(column_form, file_name="werte.csv", scale=1.0):
        heads = [column_form.format(name) for name in NAMES[:6]]
        cells = scale * np.linspace(2, 3, 30).reshape(5, 6)
        table = pd.DataFrame(cells, columns=heads)
        table.insert(0, "participant_id", people)
        table.to_csv(study / file_name, index=False)
        return study

    return write_table


@pytest.mark.parametrize(
    ("column_form", "file_name", "scale", "feature"),
    [
        ("{}_Dicke", "werte.csv", 1, "thickness"),
        ("{}_mittlere_Rindendicke", "werte.csv", 1, "thickness"),
        ("Épaisseur_{}", "valeurs.csv", 1, "thickness"),
        ("epaisseur_corticale_{}", "valeurs.csv", 1, "thickness"),
        ("{}", "Rindendicke.csv", 1, "thickness"),
        ("{}_Volumen", "werte.csv", 1000, "volume"),
        ("{}_Fläche", "werte.csv", 300, "area"),
    ],
)
def test_measures_in_other_languages_are_proposed_and_not_taken(
    translated, tiny, column_form, file_name, scale, feature
):
    study = translated(column_form, file_name, scale)
    atlas = Atlas("six", tiny.regions[:6], None, {})
    options = {"atlas": atlas, "connectome": "none"}
    for other in ({}, {"feature": "fdg"}):
        check = check_cohort(study, **options | other)
        assert not check.is_sound
        assert suggest_options(check, options | other) == [{"feature": [feature]}]
    cohort = load_cohort(study, **options, feature=feature)
    assert cohort.features[0, 0, 0] == 2 * scale
    (note,) = [x for x in cohort.findings if x.kind == ASSUMED]
    assert file_name in note.message
    # values that cannot be of this measure are not proposed
    translated(column_form, file_name, scale * 1e4)
    assert suggest_options(check_cohort(study, **options), options) == []


def test_a_word_of_another_language_may_be_the_name_of_a_feature(translated, tiny):
    atlas = Atlas("six", tiny.regions[:6], None, {})
    options = {"atlas": atlas, "connectome": "none", "feature": "rindendicke"}
    study = translated("{}", "rindendicke.csv", 100)
    assert load_cohort(study, **options).feature_names == ("rindendicke",)
    # the name of another measure is not ignored
    options["feature"] = "fdg"
    translated("{}", "rindendicke.csv")
    assert not check_cohort(study, **options).is_sound


def test_a_study_is_not_read_again_with_the_options_it_was_checked_with(
    study, tiny, monkeypatch
):
    options = {"atlas": tiny, "feature": "fdg"}
    next(study.glob("sub-05/ses-*/dwi/*")).write_text("not a matrix")
    check = check_cohort(study, **options)
    assert not check.is_sound

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError((args, options))

    monkeypatch.setattr("brainlsap.data.check.check_cohort", refuse)
    assert suggest_options(check, options) == []


def test_a_search_reads_every_table_once_and_the_next_search_reads_it_anew(
    study, tiny, monkeypatch
):
    options = {"atlas": tiny, "feature": "fdg"}
    two_tables(study)
    check = check_cohort(study, **options)
    n_reads_by_table = Counter()

    def read_and_count(table_path, *args):
        n_reads_by_table[table_path.name] += 1
        return read_sheets_and_errors(table_path, *args)

    monkeypatch.setattr(features, "read_sheets_and_errors", read_and_count)
    monkeypatch.setattr("brainlsap.data.check.check_cohort", lambda *_, **__: check)
    for n_searches in (1, 2):
        assert suggest_options(check, options) == [{"features_table": "one.csv"}]
        assert {"participants.tsv", "one.csv", "two.csv"} <= {*n_reads_by_table}
        assert {*n_reads_by_table.values()} == {n_searches}


def test_baseline_is_suggested_where_later_visits_have_the_faults(study, tiny):
    options = {"atlas": tiny, "feature": "fdg"}
    for path in study.glob("sub-*/ses-M12/pet/*"):
        path.unlink()
    check = check_cohort(study, **options)
    assert suggest_options(check, options) == [{"scans": "baseline"}]
    assert check_cohort(study, **options, scans="baseline").is_sound
    # nor have later visits a label that is one of baseline
    for person in ("sub-01", "sub-02"):
        text = "session_id\tstage\nses-M00\tCN\nses-M12\tn/a\n"
        (study / person / f"{person}_sessions.tsv").write_text(text)
    people = study / "participants.tsv"
    people.write_text(people.read_text().replace("diagnosis", "stage"))
    staged = options | {"feature": "strength", "label": "stage"}
    check = check_cohort(study, **staged)
    assert suggest_options(check, staged) == [{"scans": "baseline"}]
    people.write_text(people.read_text().replace("stage", "diagnosis"))
    # of a fault at baseline it is no remedy
    next(study.glob("sub-01/ses-M00/pet/*")).unlink()
    assert suggest_options(check_cohort(study, **options), options) == []


def test_every_set_of_matrices_is_suggested(study, tiny):
    two_connectomes(study)
    options = {"atlas": tiny, "feature": "fdg"}
    found = suggest_options(check_cohort(study, **options), options)
    kinds = [one["pattern"] for one in found]
    assert kinds == ["*_count_connectivity.csv", "*_length_connectivity.csv"]


def test_a_tracer_that_is_not_said_is_not_guessed(study, tiny):
    amyloid_in_a_table(study)
    (study / "AV45_SUVR.csv").rename(study / "PET_SUVR.csv")
    options = {"atlas": tiny}
    assert suggest_options(check_cohort(study, **options), options) == [
        {"feature": ["suvr"]}
    ]


def test_what_lies_in_the_study_is_suggested_while_other_faults_stand(tmp_path):
    """FreeSurfer's subjects in it, one connectome missing."""
    made = make_cohort(6, atlas="desikan82", feature=["thickness"])
    study = write_study_folder(made, tmp_path / "study")
    (study / "derivatives" / "freesurfer").rename(study / "recons")
    next(study.rglob("*connectivity.csv")).unlink()
    options = {"atlas": "desikan82"}
    (found,) = suggest_options(check_cohort(study, **options), options)
    assert found == {"subjects_dir": str(study / "recons")}
    both = options | found
    (fault,) = check_cohort(study, **both).faults
    assert "the connectome is missing; expected" in fault
    assert suggest_options(check_cohort(study, **both), both) == []
    for path in [*(study / "recons").iterdir()]:  # of people of other names
        path.rename(path.with_name(path.name.replace("sub-00", "sub-")))
    assert suggest_options(check_cohort(study, **options), options) == []


@pytest.mark.parametrize("listed", ["sub-x05", "5"])
def test_names_in_another_case_or_without_zeros_are_of_others(study, tiny, listed):
    (study / "sub-05").rename(study / "sub-X05")
    change_people(study, "sub-05", listed)
    check = check_cohort(study, tiny, "fdg")
    assert f"{listed}: the connectome is missing; expected" in check.faults[0]
    note = (
        "files and folders were left out, because their participants are not in "
        "participants.tsv: X05"
    )
    assert note in check.notes


def test_files_of_connectomes_are_suggested_though_they_cannot_be_read(study, tiny):
    move(study, "*connectivity.csv", "sc")
    for more, row, told in (
        ({}, "1 " * 9, "a matrix of 9 x 9 without names"),
        (
            {"row_order": "atlas"},
            "-1 " * 7,
            "7 files: connection weights must not be negative",
        ),
    ):
        for path in (study / "sc").iterdir():
            path.write_text(f"{row}\n" * len(row.split()))
        options = {"atlas": tiny, "feature": "fdg"}
        check = check_cohort(study, **options, **more)
        (found,) = suggest_options(check, options | more)
        assert found == {"pattern": f"sc/{FLAT}"}
        (fault,) = check_cohort(study, **options, **more, **found).faults
        assert told in fault
    (study / "sc").rename(study / ".sc")
    np.save(study / "all.npy", np.ones((9, 9)))
    (found,) = suggest_options(check_cohort(study, **options), options)
    assert found == {"connectome": "all.npy"}


def test_visits_in_the_names_of_files_are_suggested_and_read(tmp_path, tiny, matrix):
    """A sheet with one row a person, files and rows of tables named P1_V1, P1_V2."""
    (tmp_path / "sc").mkdir()
    scans = [f"P{n}_V{v}" for n in range(1, 4) for v in range(1, 3)] + ["P4"]
    for scan in scans:
        np.savetxt(tmp_path / "sc" / f"{scan}.txt", matrix)
    rows = [f"P{n},{'CN' if n % 2 else 'AD'}" for n in range(1, 5)]
    (tmp_path / "participants.csv").write_text("\n".join(["id,diagnosis", *rows]))
    values = np.random.default_rng(0).random((len(scans), len(tiny)))
    table = pd.DataFrame(values, scans, tiny.names).rename_axis("id")
    table.to_csv(tmp_path / "gmv.csv")
    options = {"atlas": tiny, "feature": "gmv", "row_order": "atlas"}
    found = suggest_options(check_cohort(tmp_path, **options), options)
    assert found[0] == {"pattern": "sc/{participant}_{session}.txt"}
    cohort = load_cohort(tmp_path, **options, **found[0])
    assert [*cohort.table["scan"]] == scans
    np.testing.assert_array_equal(cohort.features[..., 0], values)
    for pattern, told in (
        (
            "sc/{participant}_*.txt",
            "3 scans: 2 files could be the connectome; the first got",
        ),
        ("sc/{participant}*.txt", "participants.csv: no person in the table has files"),
    ):
        faults = check_cohort(tmp_path, **options, pattern=pattern).faults
        assert re.match(told, faults[0])


def test_ids_that_lost_their_zeros_are_told_from_absent_connectomes(
    tmp_path, tiny, matrix
):
    (tmp_path / "mats").mkdir()
    for number in range(1, 4):
        np.savetxt(tmp_path / "mats" / f"{number:03d}.csv", matrix, delimiter=",")
    table = pd.DataFrame({"id": [1, 2, 3], "diagnosis": ["CN", "AD", "CN"]})
    table.to_csv(tmp_path / "participants.csv", index=False)
    options = {"atlas": tiny, "feature": "strength", "row_order": "atlas"}
    checked = check_cohort(tmp_path, **options)
    (fault,) = (x for x in checked.findings if x.kind == FOREIGN_IDS)
    assert "look like '1'" in fault.message
    assert "look like '001' (mats/001.csv)" in fault.message
    assert suggest_options(checked, options) == []
    table.assign(id=["001", "002", "003"]).to_csv(
        tmp_path / "participants.csv", index=False
    )
    pattern = re.search("pattern='(.*?)'", fault.advice)[1]
    assert load_cohort(tmp_path, **options, pattern=pattern).n_scans == 3


def test_a_pattern_fits_all_visits_of_the_table_of_values(tmp_path, tiny, matrix):
    """The table of people has no visits, and the files of matrices are P1_V1.csv."""
    scan_keys = [("P1", "V1"), ("P1", "V2"), ("P2", "V2"), ("P3", "V1")]
    (tmp_path / "matrices").mkdir()
    for number, scan_key in enumerate(scan_keys, start=1):
        path = tmp_path / "matrices" / f"{'_'.join(scan_key)}.csv"
        np.savetxt(path, matrix * number, delimiter=",")
    people_table = pd.DataFrame({"id": ["P1", "P2", "P3"], "diagnosis": [*"aba"]})
    people_table.to_csv(tmp_path / "participants.csv", index=False)
    value_table = pd.DataFrame(scan_keys, columns=["id", "visit"])
    value_table[[*NAMES]] = np.random.default_rng(0).uniform(0.9, 1.2, (4, len(NAMES)))
    value_table.to_csv(tmp_path / "fdg.csv", index=False)
    options = {"atlas": tiny, "feature": "fdg", "row_order": "atlas"}
    checked = check_cohort(tmp_path, **options)
    (fault,) = (x for x in checked.findings if x.kind == FOREIGN_IDS)
    pattern = re.search("pattern='(.*?)'", fault.advice)[1]
    assert pattern == "matrices/{participant}_{session}.csv"
    cohort = load_cohort(tmp_path, **options, pattern=pattern)
    assert cohort.table["scan"].tolist() == ["_".join(x) for x in scan_keys]
    factors = cohort.connectomes.max(axis=(1, 2)) / matrix.max()
    np.testing.assert_allclose(factors, [1, 2, 3, 4])


@pytest.mark.parametrize("pattern", [None, "mats/{participant}_{session}.csv"])
@pytest.mark.parametrize("session_column", [None, "scan_date"])
def test_ids_without_zeros_are_told_beside_files_with_dates(
    tmp_path, tiny, matrix, pattern, session_column
):
    """Numbers in dates are no ids, and no pattern with them is proposed."""
    rows = []
    (tmp_path / "mats").mkdir()
    for number in range(1, 13):
        for year in (2018, 2020):
            date = f"{year}-01-{number + 10}"
            path = tmp_path / "mats" / f"{number:03d}_{date}.csv"
            np.savetxt(path, matrix, delimiter=",")
            rows.append((number, date, ("CN", "AD")[number % 2]))
    table = pd.DataFrame(rows, columns=["id", "scan_date", "diagnosis"])
    if session_column is None:
        table = table.drop(columns="scan_date").drop_duplicates("id")
    table.to_csv(tmp_path / "participants.csv", index=False)
    options = {"atlas": tiny, "feature": "strength", "row_order": "atlas"}
    checked = check_cohort(tmp_path, **options, pattern=pattern)
    (fault,) = (x for x in checked.findings if x.kind == FOREIGN_IDS)
    assert """table['id'].map("{:03d}".format)""" in fault.advice
    proposed_pattern = re.search("pattern='(.*?)'", fault.advice)
    assert (proposed_pattern is None) == (pattern is not None)
    pattern = pattern or proposed_pattern[1]
    table["id"] = table["id"].map("{:03d}".format)
    table.to_csv(tmp_path / "participants.csv", index=False)
    assert load_cohort(tmp_path, **options, pattern=pattern).n_scans == 24


@pytest.mark.parametrize("other_name", ["RID", "Proband", "sujet", "Code"])
def test_another_column_with_the_ids_of_files_is_proposed(study, tiny, other_name):
    people = study / "participants.tsv"
    table = pd.read_csv(people, sep="\t")
    table = table.rename(columns={"participant_id": other_name})
    table.insert(0, "participant_id", [f"{i}_S_{i}" for i in range(900, 905)])
    table.to_csv(people, sep="\t", index=False)
    options = {"atlas": tiny, "feature": "fdg"}
    checked = check_cohort(study, **options)
    assert any(x.kind == FOREIGN_IDS for x in checked.findings)
    assert suggest_options(checked, options) == [{"id_column": other_name}]
    assert load_cohort(study, **options, id_column=other_name).n_scans == 7
    # A table may have no column that is recognised as the ids.
    table.drop(columns="participant_id").to_csv(people, sep="\t", index=False)
    checked = check_cohort(study, **options)
    is_recognised = other_name != "Code"
    assert checked.is_sound == is_recognised
    if not is_recognised:
        assert suggest_options(checked, options) == [{"id_column": other_name}]
    table[other_name] = [f"x{i}" for i in range(5)]
    table.to_csv(people, sep="\t", index=False)
    assert suggest_options(check_cohort(study, **options), options) == []


def test_files_of_other_names_need_a_pattern(study, tiny):
    """Konnektome/P001_Konnektom.csv, and none of the first participant."""
    for path in [*study.rglob("*connectivity.csv")]:
        number = path.name.partition("_")[0].removeprefix("sub-")
        target = study / "Konnektome" / f"{number}_Konnektom.csv"
        target.parent.mkdir(exist_ok=True)
        path.replace(target)
    (study / "Konnektome" / "01_Konnektom.csv").unlink()
    options = {"atlas": tiny, "feature": "fdg", "scans": "baseline"}
    checked = check_cohort(study, **options)
    (fault,) = (x for x in checked.findings if x.severity == "fault")
    expected = "Konnektome/{participant}_Konnektom.csv"
    assert re.search("pattern='(.*?)'", fault.advice)[1] == expected
    assert "4 files" in fault.advice
    (found,) = suggest_options(checked, options)
    assert found == {"pattern": expected}
    # the file of sub-02 names none of its two visits
    cohort = load_cohort(study, **options, **found, skip_faulty=True)
    assert [*cohort.table["participant"]] == ["sub-03", "sub-04", "sub-05"]
    # nor are matrices of unknown names left unread
    for path in [*(study / "Konnektome").iterdir()]:
        path.rename(path.with_name(f"K{path.name}"))
    checked = check_cohort(study, **options)
    assert suggest_options(checked, options) == []


def write_sites(folder, matrix, name):
    """Connectomes of two sites, with the site and a visit or date in their names."""
    rows = ["RID,PTID,VISCODE,diagnosis"]
    (folder / "dti").mkdir()
    for number in range(4001, 4009):
        ptid = f"{'002' if number % 2 else '127'}_S_{number}"
        for visit, date in (
            ("bl", f"2012-03-{number % 20 + 10}"),
            ("m06", "2013-02-09"),
        ):
            path = folder / "dti" / name.format(ptid=ptid, visit=visit, date=date)
            np.savetxt(path, matrix, delimiter=",")
            label = "CN" if number % 4 < 2 else "AD"
            rows.append(f"{number},{ptid},{visit},{label}")
    (folder / "participants.csv").write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize(
    ("name", "id_column", "pattern"),
    [
        ("{ptid}_{visit}.csv", "PTID", "dti/{participant}_{session}.csv"),
        ("{ptid}_{visit}.csv", "RID", "dti/*_S_{participant}_{session}.csv"),
        ("{ptid}_{date}.csv", "PTID", "dti/{participant}_{session}.csv"),
        ("{ptid}_{date}.csv", "RID", "dti/*_S_{participant}_{session}.csv"),
    ],
)
def test_parts_of_names_that_change_are_varied_in_a_pattern(
    tmp_path, tiny, matrix, name, id_column, pattern
):
    write_sites(tmp_path, matrix, name)
    options = {"atlas": tiny, "feature": "strength", "row_order": "atlas"}
    options |= {"id_column": id_column}
    checked = check_cohort(tmp_path, **options)
    (fault,) = (x for x in checked.findings if x.severity == "fault")
    assert re.search("pattern='(.*?)'", fault.advice)[1] == pattern
    assert "16 files" in fault.advice
    if "visit" not in name:
        return
    assert load_cohort(tmp_path, **options, pattern=pattern).n_scans == 16
    if id_column == "RID":
        return
    # Two kinds of matrices are no visits, and stay apart.
    for path in [*(tmp_path / "dti").iterdir()]:
        shutil.copy(path, path.with_name(f"{path.stem}_count.csv"))
        path.rename(path.with_name(f"{path.stem}_meanlength.csv"))
    found = suggest_options(check_cohort(tmp_path, **options), options)
    stem = pattern.removesuffix(".csv")
    kinds = {x["pattern"] for x in found}
    assert kinds == {f"{stem}_count.csv", f"{stem}_meanlength.csv"}


def test_numbers_of_runs_are_not_ids(tmp_path, tiny, matrix):
    (tmp_path / "sc").mkdir()
    for number in range(11, 21):
        for run in (1, 2):
            path = tmp_path / "sc" / f"run-{run}_A{number}.csv"
            np.savetxt(path, matrix, delimiter=",")
    rows = [f"{number},{'CN' if number % 2 else 'AD'}" for number in range(1, 11)]
    (tmp_path / "participants.csv").write_text("\n".join(["id,diagnosis", *rows]))
    options = {"atlas": tiny, "feature": "strength", "row_order": "atlas"}
    checked = check_cohort(tmp_path, **options)
    assert suggest_options(checked, options) == []
    assert "participant}" not in checked.faults[0]
    # the number of a session before the id is none of the participant
    for path in [*(tmp_path / "sc").iterdir()]:
        if path.name[4] == "1":
            path.rename(path.with_name(f"ses-1_sub-{int(path.stem[-2:]) - 10}.csv"))
    checked = check_cohort(tmp_path, **options)
    (found,) = suggest_options(checked, options)
    assert found == {"pattern": "sc/ses-1_sub-{participant}.csv"}


@pytest.mark.parametrize("n_people", [9, 101])
def test_ids_without_zeros_are_named_beside_files_in_the_folder(
    tmp_path, tiny, matrix, n_people
):
    """Files connectome_001.csv beside a table of the ids 1, 2, 3."""
    table = pd.DataFrame({"id": range(1, n_people + 1)})
    table = table.assign(diagnosis=np.where(table["id"] % 2, "CN", "AD"))
    for number in table["id"]:
        path = tmp_path / f"connectome_{number:03d}.csv"
        np.savetxt(path, matrix, delimiter=",")
    table.to_csv(tmp_path / "participants.csv", index=False)
    options = {"atlas": tiny, "feature": "strength", "row_order": "atlas"}
    checked = check_cohort(tmp_path, **options)
    (fault,) = (x for x in checked.findings if x.severity == "fault")
    assert fault.kind == FOREIGN_IDS
    assert "'1'" in fault.message
    assert "'001' (connectome_001.csv)" in fault.message
    assert suggest_options(checked, options) == []
    pattern = re.search("pattern='(.*?)'", fault.advice)[1]
    table = table.assign(id=[f"{number:03d}" for number in table["id"]])
    table.to_csv(tmp_path / "participants.csv", index=False)
    assert load_cohort(tmp_path, **options, pattern=pattern).n_scans == n_people


@pytest.mark.parametrize(
    "names",
    [
        [f"connectome_{number:03d}.csv" for number in range(1, 8)],
        ["anna.csv", "bert.csv"],
        ["connectome_05.csv"],
    ],
)
def test_the_matrix_of_a_person_is_not_suggested_for_all(study, tiny, names):
    """Files of other ids, or of one participant."""
    path = next(study.rglob("*connectivity.csv"))
    for name in names:
        (study / name).write_bytes(path.read_bytes())
    move(study, "*connectivity.csv", "..", "elsewhere")
    options = {"atlas": tiny, "feature": "fdg"}
    suggestions = suggest_options(check_cohort(study, **options), options)
    assert not any("connectome" in suggestion for suggestion in suggestions)


def suggested(capsys, *words):
    """Return exit code of a command, and the commands that it suggests."""
    code = main([*map(str, words)])
    lines = capsys.readouterr().out.splitlines()
    return code, [shlex.split(one)[1:] for one in lines if "  brainlsap check" in one]


def test_suggested_commands_read_the_study(tmp_path, capsys):
    """FreeSurfer's subjects beside a study of another atlas."""
    how = {"feature": ["fdg", "thickness"], "shares": {"CN": 1, "AD": 1}}
    made = make_cohort(4, atlas="desikan82", visit_shares=[1], **how)
    study = write_study_folder(made, tmp_path / "my study", style="mrtrix")
    (study / "derivatives" / "freesurfer").rename(tmp_path / "recons")
    code, (other_label,) = suggested(capsys, "check", study, "--label", "group")
    assert code == 2
    assert other_label[2:4] == ["--label", "diagnosis"]
    code, commands = suggested(capsys, "check", study)
    assert code == 2
    for command in commands:
        assert command[-2:] == ["--atlas", "desikan82"]
        assert str(tmp_path / "recons") in command
    assert suggested(capsys, *commands[0])[0] == 0
    (tmp_path / "pilot").symlink_to(tmp_path / "recons")
    asked = ("--atlas", "desikan82", "--subjects-dir", str(tmp_path / "recons"))
    _, commands = suggested(capsys, "check", study, *asked)
    assert not any("pilot" in word for one in commands for word in one)
    (tmp_path / "pilot").unlink()
    asked = ("--feature", "fdg", "--atlas", "desikan82")
    code, commands = suggested(capsys, "check", study, *asked)
    assert code == 0
    assert commands[0][2:4] == ["--feature", "fdg,thickness,volume,area"]
    assert len(commands) == 1
    assert suggested(capsys, *commands[0])[0] == 0


def test_volumes_below_the_cortex_are_not_asked_for_twice(tmp_path, capsys):
    how = {"feature": ["thickness", "volume"], "shares": {"CN": 1, "AD": 1}}
    made = make_cohort(5, atlas="desikan82", **how)
    study = write_study_folder(made, tmp_path / "study")
    asked = ("--feature", "thickness", "--subcortex", "volume", "--atlas", "desikan82")
    code, commands = suggested(capsys, "check", study, *asked)
    assert code == 0
    assert not any("volume" in one[3] for one in commands)


def test_another_study_with_the_same_ids_is_no_source(tmp_path, capsys):
    made = make_cohort(6, atlas="desikan82")
    study, _ = (write_study_folder(made, tmp_path / one) for one in ("mine", "theirs"))
    for folder in study.rglob("pet"):
        shutil.rmtree(folder)
    asked = ("--atlas", "desikan82", "--feature", "fdg")
    code, commands = suggested(capsys, "check", study, *asked)
    assert code == 2
    assert not any("theirs" in word for one in commands for word in one)


def write_people_with_one_id(tmp_path, sexes):
    """Write a study of 12 people of desikan82, two of whom have one ID.

    The dates of the scans are then read as the visits of this person.
    """
    cohort = make_cohort(
        12, atlas="desikan82", feature="fdg", visit_shares=(1,), random_state=0
    )
    ids = [f"P{row:02d}" for row in range(12)]
    dates = [f"2019-03-{row + 10}" for row in range(12)]
    people = pd.DataFrame(
        {
            "participant_id": [*ids[:11], ids[10]],
            "scan_date": dates,
            "diagnosis": ["CN", "AD"] * 6,
            "age": [70 - 0.4 * row for row in range(12)],
            "sex": [*("FM" * 5), *sexes],
        }
    )
    people.to_csv(tmp_path / "participants.csv", index=False)
    values = pd.DataFrame(cohort.features[:, :, 0], columns=cohort.region_names)
    tables = [people[["participant_id", "scan_date"]], values]
    if len({*sexes}) > 1:
        # Whoever gives two people one ID by mistake does so in one table only.
        tables[0] = pd.DataFrame({"participant_id": ids})
    pd.concat(tables, axis=1).to_csv(tmp_path / "fdg.csv", index=False)
    return tmp_path


def test_two_people_under_one_id_are_unusual(tmp_path, capsys):
    study = write_people_with_one_id(tmp_path, "FF")
    options = ("--atlas", "desikan82", "--feature", "fdg", "--connectome", "none")
    assert main(["check", str(study), *options]) == 0
    _, _, printed = capsys.readouterr().out.partition("\nUnusual scans:\n")
    assert (
        "P10: age falls from one visit to the next; got 66 at 2019-03-20"
        in (printed.partition("\n\n")[0])
    )


def test_missing_files_of_two_people_under_one_id_hide_no_cause(tmp_path):
    study = write_people_with_one_id(tmp_path, "FM")
    check = check_cohort(study, "desikan82", "fdg", connectome="none")
    (fault,) = check.faults
    assert "P10: sex differs between visits of a person" in fault
    assert "If these are two people with one ID, correct the ID" in fault
