"""A model for new people: by name, read as in the fit, in a fresh process."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainlsap.cli import main
from brainlsap.data import Cohort, load_atlas, load_cohort, make_cohort
from brainlsap.evaluation import (
    CombatHarmonizer,
    ConfoundRegressor,
    collapse_cohort,
)
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


def test_a_cohort_file_read_in_another_way_is_refused(
    fitted, simulated_folder, tmp_path
):
    cohort = load_cohort(simulated_folder, "desikan82", "fdg", subcortex="mean")
    path = cohort.write(tmp_path / "cohort.h5")
    with pytest.raises(
        ParameterError, match=r"must be 'absent', .* got 'mean'.* again"
    ):
        read_people(load_model(fitted), path)


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


# ---- sites, covariates and merged classes ------------------------------------------


def with_sites(cohort, sites, shift=0.0):
    site = np.array(sites)[np.arange(cohort.n_scans) % len(sites)]
    moved = cohort.features + shift * (site == sites[-1])[:, None, None]
    table = cohort.table.assign(site=site, age=60.0 + np.arange(cohort.n_scans) % 17)
    return replace(cohort, table=table, features=moved)


def test_steps_are_stored_with_the_model_and_applied_by_name(tmp_path):
    cohort = with_sites(make_cohort(14, atlas="desikan82"), ["a", "b"], 3.0)
    model = LSAPClassifier("exact", n_epochs=3, n_starts=1)
    asked = {"harmonize": "site", "regress_out": ["age"]}
    fitted = fit_model(cohort, tmp_path / "m", model, **asked)
    loaded = load_model(tmp_path / "m")
    told = predict_people(loaded, cohort)
    # the slow truth: the steps by hand, then the model alone
    X = cohort.to_array()
    for step in (
        CombatHarmonizer("site", ("age", "sex")),
        ConfoundRegressor(("age",)),
    ):
        X = step.fit(X, covariates=cohort.table).transform(X, covariates=cohort.table)
    by_hand = fitted.predict_proba(X)
    columns = [f"p_{name}" for name in fitted.classes_]
    np.testing.assert_array_equal(told[columns].to_numpy(), by_hand)
    assert np.abs(by_hand - fitted.predict_proba(cohort.to_array())).max() > 1e-3
    other = in_other_order(cohort, np.random.default_rng(3).permutation(82))
    again = predict_people(loaded, replace(other, table=cohort.table))
    pd.testing.assert_frame_equal(told, again, rtol=1e-4)
    bare = cohort.table.drop(columns="site")
    with pytest.raises(ParameterError, match="have no column 'site'"):
        predict_people(loaded, replace(cohort, table=bare))


def test_new_sites_are_kept_with_a_warning_or_refused(tmp_path):
    cohort = with_sites(make_cohort(14, atlas="desikan82"), ["a", "b"])
    strange = with_sites(cohort, ["a", "z"])
    for unseen in ("keep", "error"):
        model = LSAPClassifier("exact", n_epochs=2, n_starts=1)
        where = tmp_path / unseen
        fit_model(cohort, where, model, harmonize="site", unseen=unseen)
    with pytest.warns(UserWarning, match=r"not learned \(z\); they are left as"):
        predict_people(load_model(tmp_path / "keep"), strange)
    with pytest.raises(ParameterError, match=r"unseen=.keep. leaves them as they are"):
        predict_people(load_model(tmp_path / "error"), strange)


def test_labels_of_new_people_are_merged_as_in_the_fit(tmp_path):
    cohort = make_cohort(20, atlas="desikan82")
    model = LSAPClassifier("exact", n_epochs=2, n_starts=1)
    fit_model(cohort, tmp_path / "m", model, collapse="5->2")
    merged = collapse_cohort(cohort, "5->2")
    fit_model(merged, tmp_path / "merged", model)
    well = np.isin(cohort.y, ["CN", "SMC"])
    for name in ("m", "merged"):
        for people in (cohort, merged):
            told = predict_people(load_model(tmp_path / name), people)
            assert {"p_unimpaired", "p_impaired"} < set(told)
            assert list(told["label"]) == list(np.where(well, "unimpaired", "impaired"))


def test_fit_and_predict_take_sites_out(simulated_folder, tmp_path, capsys):
    out, told = tmp_path / "m", tmp_path / "told.tsv"
    asked = ["fit", str(simulated_folder), "--out", str(out), *QUICK]
    asked += ["--atlas", "desikan82", "--feature", "fdg", "--harmonize", "site"]
    assert main([*asked, "--regress-out", "age,sex"]) == 0
    kinds = [one["kind"] for one in load_model(out).origin_.facts["steps"]]
    assert kinds == ["CombatHarmonizer", "ConfoundRegressor"]
    assert main(["predict", str(out), str(simulated_folder), "--out", str(told)]) == 0
    assert len(pd.read_csv(told, sep="\t")) == 25
    capsys.readouterr()
    assert main([*asked, "--regress-out", "town"]) == 2
    assert "no column 'town'" in capsys.readouterr().err
