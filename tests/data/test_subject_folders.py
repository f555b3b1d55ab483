"""Subject folders: what stands where, whole or not at all."""

import json

import numpy as np
import pandas as pd
import pytest

import brainlsap.data.subject_folders as module
from brainlsap.data.cohort import Cohort
from brainlsap.data.decisive_cohorts import make_decisive_cohort
from brainlsap.data.load import load_cohort
from brainlsap.data.simulate import make_cohort
from brainlsap.data.subject_folders import write_subject_folders
from brainlsap.exceptions import ParameterError


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(7, feature=["fdg", "thickness", "volume"], random_state=3)


@pytest.fixture(scope="module")
def folder(cohort, tmp_path_factory):
    return write_subject_folders(cohort, tmp_path_factory.mktemp("study") / "out")


def read_table(path):
    return pd.read_csv(path, sep="\t", keep_default_na=False)


def changed(cohort, **changes):
    parts = {name: getattr(cohort, name) for name in cohort.__dataclass_fields__}
    return Cohort(**{**parts, **changes})


def assert_same_cohort(found, cohort):
    assert found.table.equals(cohort.table)
    assert found.classes == cohort.classes
    assert np.array_equal(found.connectomes, cohort.connectomes)
    assert found.features == pytest.approx(cohort.features, abs=1e-6, nan_ok=True)
    pd.testing.assert_frame_equal(found.truth, cohort.truth, rtol=0, atol=1e-9)


def test_a_cohort_is_read_back_as_it_was(cohort, folder):
    found = load_cohort(folder, feature=list(cohort.feature_names))
    assert_same_cohort(found, cohort)


def test_no_label_is_a_formula_and_all_are_read_back(tmp_path):
    cohort = make_cohort(9, atlas="desikan82", feature="fdg")
    name = "=HYPERLINK(A1)"
    table = cohort.table.assign(site=name)
    table["label"] = table["label"].replace("AD", "@AD")
    classes = tuple(one.replace("AD", "@AD") for one in cohort.classes)
    cohort = changed(cohort, table=table, classes=classes)
    folder = write_subject_folders(cohort, tmp_path / "out")
    for path in folder.rglob("*.tsv"):
        cells = path.read_text().replace("\n", "\t").split("\t")
        assert not any(cell.startswith(("=", "@", "+")) for cell in cells)
    assert f"'{name}" in (folder / "participants.tsv").read_text()
    found = load_cohort(folder, "desikan82", "fdg", classes=classes)
    assert (found.table["site"] == name).all()
    assert list(found.y) == list(cohort.y)
    assert "@AD" in cohort.y


@pytest.mark.parametrize("style", ["mrtrix", "named"])
@pytest.mark.parametrize("feature", ["fdg", "thickness", "volume"])
def test_desikan_is_read_back_too(feature, style, tmp_path):
    cohort = make_cohort(5, atlas="desikan82", feature=feature, conversion=0.5)
    folder = write_subject_folders(cohort, tmp_path / "out", style=style)
    assert_same_cohort(load_cohort(folder, "desikan82", feature), cohort)


def test_simulated_volumes_stand_in_for_subcortical_thickness(cohort, folder):
    found = load_cohort(folder, feature="thickness", subcortex="volume")
    below = slice(148, 160)
    assert found.features[:, below, 0] == pytest.approx(cohort.features[:, below, 2])


def test_judging_cohorts_are_read_back_too(tmp_path):
    cohort = make_decisive_cohort("planted", n_people=6)
    folder = write_subject_folders(cohort, tmp_path / "out", style="named")
    found = load_cohort(folder, cohort.atlas, "value")
    assert_same_cohort(found, cohort)


def test_every_scan_has_its_files(cohort, folder):
    for participant, session in zip(
        cohort.table["participant"], cohort.table["session"], strict=True
    ):
        name = f"{participant}_{session}"
        scan = folder / participant / session
        stats = folder / "derivatives" / "freesurfer" / name / "stats"
        assert {path.name for path in scan.rglob("*.*")} == {
            f"{name}_atlas-destrieux_connectivity.csv",
            f"{name}_trc-18FFDG_desc-suvr_regions.tsv",
        }
        assert {path.name for path in stats.iterdir()} == {
            "lh.aparc.a2009s.stats",
            "rh.aparc.a2009s.stats",
            "aseg.stats",
        }


def test_participants_are_listed_once_as_at_their_first_visit(cohort, folder):
    table = read_table(folder / "participants.tsv")
    assert list(table.columns) == ["participant_id", "diagnosis", "age", "sex", "site"]
    first = cohort.table.groupby("participant", sort=False).first().reset_index()
    assert table["participant_id"].tolist() == first["participant"].tolist()
    assert table["diagnosis"].tolist() == first["label"].tolist()
    assert table["age"].tolist() == first["age"].tolist()
    assert table["site"].tolist() == first["site"].tolist()


def test_sessions_hold_what_changes(cohort, folder):
    for person, scans in cohort.table.groupby("participant"):
        table = read_table(folder / person / f"{person}_sessions.tsv")
        assert list(table.columns) == ["session_id", "diagnosis", "age"]
        assert table["session_id"].tolist() == scans["session"].tolist()
        assert table["diagnosis"].tolist() == scans["label"].tolist()
        assert table["age"].tolist() == scans["age"].tolist()


def test_connectomes_are_mrtrix_matrices(cohort, folder):
    row = 3
    scan = cohort.table.iloc[row]
    path = folder / scan["participant"] / scan["session"] / "dwi"
    matrix = np.loadtxt(next(path.iterdir()), delimiter=",")
    assert matrix.shape == (164, 164)
    assert not np.tril(matrix).any()
    assert np.array_equal(
        matrix[:74, :74], np.triu(cohort.connectomes[row][:74, :74], 1)
    )


def test_uptake_is_a_table_of_regions(cohort, folder):
    row = 2
    scan = cohort.table.iloc[row]
    path = folder / scan["participant"] / scan["session"] / "pet"
    table = read_table(next(path.iterdir()))
    assert tuple(table["region"]) == cohort.region_names
    assert table["suvr"].to_numpy() == pytest.approx(cohort.features[row, :, 0])


def test_the_answer_stands_beside_the_data(cohort, folder):
    truth = read_table(folder / "truth.tsv")
    assert truth["region"].tolist() == list(cohort.region_names)
    assert truth["seed"].tolist() == cohort.truth["seed"].tolist()
    assert truth["effect_fdg"].to_numpy() == pytest.approx(cohort.truth["effect_fdg"])


def test_the_folder_says_that_it_is_simulated(folder):
    description = json.loads((folder / "dataset_description.json").read_text())
    assert description["Name"] == "Simulated cohort"
    assert description["BIDSVersion"]
    assert description["GeneratedBy"][0]["random_state"] == 3
    assert "nobody's brain" in (folder / "README").read_text()


def test_two_writes_are_the_same(cohort, folder, tmp_path):
    again = write_subject_folders(cohort, tmp_path / "again")
    paths = sorted(path.relative_to(folder) for path in folder.rglob("*.*"))
    assert paths == sorted(path.relative_to(again) for path in again.rglob("*.*"))
    for path in paths:
        if (folder / path).is_file():
            assert (folder / path).read_bytes() == (again / path).read_bytes()


def test_named_connectomes(tmp_path):
    cohort = make_cohort(5, atlas="desikan82")
    folder = write_subject_folders(cohort, tmp_path / "out", style="named")
    path = next(folder.rglob("sub-0001_ses-M00_atlas-desikan_connectivity.csv"))
    table = pd.read_csv(path, index_col=0)
    assert tuple(table.columns) == tuple(table.index) == cohort.region_names
    assert np.array_equal(table.to_numpy(), cohort.connectomes[0])


def test_one_visit_without_sessions_has_no_session_folder(tmp_path):
    cohort = make_decisive_cohort("planted", n_people=5)
    folder = write_subject_folders(cohort, tmp_path / "out", style="named")
    assert sorted(path.name for path in (folder / "sub-0002").rglob("*.*")) == [
        "sub-0002_atlas-ellipsoid160_connectivity.csv",
        "sub-0002_desc-value_regions.tsv",
    ]
    assert read_table(folder / "participants.tsv").columns.tolist() == [
        "participant_id",
        "diagnosis",
    ]


def test_names_without_their_key_get_it(cohort, tmp_path):
    table = cohort.table.assign(
        participant=cohort.table["participant"].str.removeprefix("sub-"),
        session=cohort.table["session"].str.removeprefix("ses-"),
    )
    folder = write_subject_folders(changed(cohort, table=table), tmp_path / "out")
    assert (folder / "sub-0001" / "ses-M00" / "dwi").is_dir()


def test_an_empty_folder_is_filled(cohort, tmp_path):
    (tmp_path / "out").mkdir()
    write_subject_folders(cohort, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "README").is_file()


def test_folders_above_are_made(cohort, tmp_path):
    folder = write_subject_folders(cohort, tmp_path / "a" / "b")
    assert folder == tmp_path / "a" / "b"
    assert (folder / "participants.tsv").is_file()


def test_a_folder_that_holds_something_is_left_alone(cohort, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(
        ParameterError, match=r"exists and is not an empty folder\. Name a new one"
    ):
        write_subject_folders(cohort, tmp_path)
    with pytest.raises(ParameterError, match=r"mine\.txt exists and is not an empty"):
        write_subject_folders(cohort, tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_nothing_is_left_of_a_write_that_fails(cohort, tmp_path, monkeypatch):
    calls = []

    def fail_at_the_third(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise OSError("disk full")

    monkeypatch.setattr(module, "_write_scan", fail_at_the_third)
    with pytest.raises(OSError, match="disk full"):
        write_subject_folders(cohort, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_real_cohort_is_not_written(cohort, tmp_path):
    with pytest.raises(
        ParameterError, match=r"cohort must be simulated, with a truth: .*Cohort\.write"
    ):
        write_subject_folders(changed(cohort, truth=None), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_unknown_style_is_refused(cohort, tmp_path):
    with pytest.raises(
        ParameterError, match=r"style must be one of 'mrtrix', 'named'; got 'dsi'"
    ):
        write_subject_folders(cohort, tmp_path / "out", style="dsi")


def test_progress_goes_to_standard_error(cohort, tmp_path, capsys):
    write_subject_folders(cohort, tmp_path / "a", progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{cohort.n_scans}/{cohort.n_scans}" in shown.err
    write_subject_folders(cohort, tmp_path / "b")
    assert capsys.readouterr().err == ""
