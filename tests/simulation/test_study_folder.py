"""A simulated study's folder: what stands where, and that it is read back."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import load_cohort
from brainlsap.exceptions import ParameterError
from brainlsap.simulation import make_cohort, write_study_folder

OWN = Atlas("own", load_atlas("desikan82").regions, None)


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(7, feature=["fdg", "thickness", "volume"], random_state=3)


@pytest.fixture(scope="module")
def folder(cohort, tmp_path_factory):
    return write_study_folder(cohort, tmp_path_factory.mktemp("study") / "out")


def read_tsv(path):
    return pd.read_csv(path, sep="\t", keep_default_na=False)


def assert_same_cohort(found, cohort):
    assert found.table.equals(cohort.table)
    assert found.classes == cohort.classes
    assert np.array_equal(found.connectomes, cohort.connectomes)
    np.testing.assert_allclose(found.features, cohort.features, rtol=1e-8)
    pd.testing.assert_frame_equal(found.truth, cohort.truth, rtol=0, atol=1e-9)


def test_a_cohort_is_read_back_as_it_was(cohort, folder):
    found = load_cohort(folder, feature=list(cohort.feature_names))
    assert_same_cohort(found, cohort)
    found = load_cohort(folder, feature="thickness", subcortex="volume")
    volumes = cohort.features[:, 148:, 2]
    assert found.features[:, 148:, 0] == pytest.approx(volumes)


@pytest.mark.parametrize("style", ["mrtrix", "named"])
@pytest.mark.parametrize("feature", ["fdg", "thickness", "volume"])
def test_desikan_is_read_back_too(feature, style, tmp_path):
    cohort = make_cohort(5, atlas="desikan82", feature=feature)
    folder = write_study_folder(cohort, tmp_path / "out", style=style)
    assert_same_cohort(load_cohort(folder, "desikan82", feature), cohort)


def test_a_cohort_of_ones_own_atlas_is_read_back(tmp_path):
    cohort = make_cohort(5, atlas=OWN, feature="volume")
    folder = write_study_folder(cohort, tmp_path / "out")
    assert sorted(path.name for path in (folder / "sub-0002/ses-M00").rglob("*.*")) == [
        "sub-0002_ses-M00_atlas-own_connectivity.csv",
        "sub-0002_ses-M00_desc-volume_regions.tsv",
    ]
    assert_same_cohort(load_cohort(folder, OWN, "volume"), cohort)


def test_tables_of_people_and_sessions(cohort, folder):
    table = read_tsv(folder / "participants.tsv")
    assert list(table.columns) == ["participant_id", "diagnosis", "age", "sex", "site"]
    first = cohort.table.groupby("participant", sort=False).first().reset_index()
    assert table["participant_id"].tolist() == first["participant"].tolist()
    assert table["diagnosis"].tolist() == first["label"].tolist()
    for person, scans in cohort.table.groupby("participant"):
        table = read_tsv(folder / person / f"{person}_sessions.tsv")
        assert list(table.columns) == ["session_id", "diagnosis", "age"]
        assert table["session_id"].tolist() == scans["session"].tolist()
        assert table["age"].tolist() == scans["age"].tolist()
    description = json.loads((folder / "dataset_description.json").read_text())
    assert description["GeneratedBy"][0]["random_state"] == 3
    assert "not of real people" in (folder / "README").read_text()


def test_a_measured_cohort_and_an_unknown_style_are_refused(cohort, tmp_path):
    with pytest.raises(ParameterError, match="cohort must be simulated"):
        write_study_folder(replace(cohort, truth=None), tmp_path / "out")
    with pytest.raises(ParameterError, match=r"style .*must be one of"):
        write_study_folder(cohort, tmp_path / "out", style="dsi")
    with pytest.raises(ParameterError, match="one of 'named'; got 'mrt"):
        write_study_folder(make_cohort(5, atlas=OWN), tmp_path / "out", style="mrtrix")
    assert not list(tmp_path.iterdir())
