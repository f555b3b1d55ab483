"""A model for new people: by name, read as in the fit, in a fresh process."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from brainlsap.cli import main
from brainlsap.data import Cohort, load_atlas, load_cohort, make_cohort
from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.model import LSAPClassifier, load_model
from brainlsap.study import fit_model, predict_people, read_people

QUICK = ("--kernel", "exact", "--epochs", "3", "--starts", "1")


@pytest.fixture(scope="module")
def fitted(simulated_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("fitted") / "model.safetensors"
    asked = ["--atlas", "desikan82", "--feature", "fdg", *QUICK]
    assert main(["fit", str(simulated_folder), "--out", str(out), *asked]) == 0
    return out


def test_fit_and_predict_in_two_processes(fitted, simulated_folder, tmp_path):
    out = tmp_path / "told.tsv"
    asked = ["predict", str(fitted), str(simulated_folder), "--out", str(out)]
    subprocess.run(
        [sys.executable, "-m", "brainlsap", *asked], check=True, capture_output=True
    )
    told = pd.read_csv(out, sep="\t", dtype={"session": str})
    cohort = load_cohort(simulated_folder, "desikan82", "fdg")
    expected = load_model(fitted).predict_proba(cohort.to_array())
    names = list(load_model(fitted).classes_)
    assert list(told["scan"]) == list(cohort.table["scan"])
    assert "label" not in told
    columns = [f"p_{name}" for name in names]
    np.testing.assert_array_equal(told[columns].to_numpy(), expected)
    assert list(told.columns[4:]) == [f"p_{name}" for name in cohort.classes]
    assert list(told["predicted"]) == [names[k] for k in expected.argmax(axis=1)]


def test_what_was_fitted_is_said(fitted):
    origin = load_model(fitted).origin_
    assert origin.atlas_name == "desikan82"
    assert origin.region_names == load_atlas("desikan82").names
    assert origin.reading == {
        "atlas": "desikan82",
        "feature": ["fdg"],
        "subcortex": "absent",
    }
    assert origin.facts["participants"] == 14


def in_other_order(cohort, order):
    regions = cohort.atlas.regions.iloc[order].reset_index(drop=True)
    return Cohort(
        connectomes=cohort.connectomes[:, order][:, :, order],
        features=cohort.features[:, order][:, :, ::-1],
        table=cohort.table,
        atlas=type(cohort.atlas)("shuffled", regions),
        feature_names=cohort.feature_names[::-1],
        classes=cohort.classes,
    )


def test_regions_and_features_are_matched_by_name(tmp_path):
    cohort = make_cohort(14, atlas="desikan82", feature=["fdg", "volume"])
    model = LSAPClassifier("exact", n_epochs=3, n_starts=1)
    fit_model(cohort, tmp_path / "m", model)
    loaded = load_model(tmp_path / "m")
    other = in_other_order(cohort, np.random.default_rng(0).permutation(82))
    one, two = predict_people(loaded, cohort), predict_people(loaded, other)
    pd.testing.assert_frame_equal(one, two, rtol=1e-4)
    assert list(one["label"]) == list(cohort.y)


def test_cohorts_of_other_regions_or_features_are_refused(fitted):
    model = load_model(fitted)
    with pytest.raises(RegionNameError, match=r"fitted on 82 regions.* 160 of destr"):
        predict_people(model, make_cohort(6))
    thick = make_cohort(6, atlas="desikan82", feature="thickness")
    with pytest.raises(
        ParameterError, match=r"needs the feature 'fdg'.* has thickness"
    ):
        predict_people(model, thick)


def test_other_ways_of_reading_are_refused(fitted, simulated_folder):
    with pytest.raises(ParameterError, match="subcortex must be 'absent', as in the"):
        read_people(load_model(fitted), simulated_folder, subcortex="mean")


def test_a_connectome_for_everybody_must_be_the_same(tmp_path):
    cohort = make_cohort(14, atlas="desikan82")
    shape = cohort.connectomes.shape

    def sharing(row):
        shared = np.broadcast_to(cohort.connectomes[row], shape)
        return Cohort(
            connectomes=shared,
            features=cohort.features,
            table=cohort.table,
            atlas=cohort.atlas,
            feature_names=cohort.feature_names,
            classes=cohort.classes,
        )

    model = LSAPClassifier("exact", n_epochs=2, n_starts=1)
    fit_model(sharing(0), tmp_path / "m", model)
    loaded = load_model(tmp_path / "m")
    assert len(predict_people(loaded, sharing(0).select([3]))) == 1
    for other in (cohort, sharing(1)):
        with pytest.raises(ParameterError, match="one connectome for everybody, and"):
            predict_people(loaded, other)


def test_a_cohort_file_is_read_too(fitted, simulated_folder, tmp_path):
    cohort = load_cohort(simulated_folder, "desikan82", "fdg")
    cohort.write(tmp_path / "c.h5")
    out = tmp_path / "told.tsv"
    asked = ["predict", str(fitted), str(tmp_path / "c.h5"), "--out", str(out)]
    assert main(asked) == 0
    told = pd.read_csv(out, sep="\t")
    assert list(told["label"]) == list(cohort.y)
    model = ["fit", str(tmp_path / "c.h5"), "--out", str(tmp_path / "m"), *QUICK]
    assert main(model) == 0
    assert load_model(tmp_path / "m").origin_.feature_names == ("fdg",)


def test_commands_refuse(fitted, simulated_folder, tmp_path, capsys):
    out = tmp_path / "told.tsv"
    bad = tmp_path / "bad"
    bad.write_bytes(fitted.read_bytes()[:-9])
    asked = ["predict", str(bad), str(simulated_folder), "--out", str(out)]
    assert main(asked) == 2
    assert "not a whole model file" in capsys.readouterr().err
    assert not out.exists()
    assert main(["fit", str(simulated_folder), "--out", str(tmp_path), *QUICK]) == 2
    assert "is a folder; --out needs a file" in capsys.readouterr().err
