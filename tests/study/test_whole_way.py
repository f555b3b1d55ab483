"""Models and folds together: what one command runs."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.data import load_cohort, make_cohort
from brainlsap.evaluation import cross_validate
from brainlsap.exceptions import ParameterError
from brainlsap.graph import KERNELS
from brainlsap.model import SPACES
from brainlsap.report import chosen_table
from brainlsap.study import (
    MODEL_NAMES,
    run_study,
    study_baselines,
    study_models,
    write_study,
)
from brainlsap.study import whole_way as study


def test_every_kernel_has_a_name_and_a_model():
    models = study_models(tuple(KERNELS), random_state=3, n_epochs=7)
    assert set(MODEL_NAMES) == set(KERNELS)
    assert [model.kernel for model in models.values()] == list(KERNELS)
    assert {model.random_state for model in models.values()} == {3}
    assert {model.n_epochs for model in models.values()} == {7}
    assert {model.preset for model in models.values()} == {"default"}


def test_the_preset_reaches_the_model():
    (model,) = study_models(["laguerre"], preset="paper").values()
    assert model.settings()["n_layers"] == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernels": ["fourier"]}, "kernel must be one of .*'laguerre'; got 'fourier'"),
        ({"n_epochs": 0}, "n_epochs must be at least 1, got 0"),
        ({"preset": "best"}, "preset must be one of 'default', 'paper'; got 'best'"),
        ({"device": "gpu7"}, r"'gpu7' cannot be used here \(.*\); leave it at 'cpu'"),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_work(given, message):
    with pytest.raises(ParameterError, match=message):
        study_models(**given)


def test_nothing_is_fitted_where_the_report_cannot_be_written(
    simulated_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(study, "cross_validate", None)
    (tmp_path / "notes.txt").write_text("mine")
    cohort = load_cohort(simulated_folder, atlas="desikan82", feature="fdg")
    with pytest.raises(ParameterError, match=r"no report wrote \(notes.txt\)"):
        run_study(cohort, tmp_path)
    with pytest.raises(ParameterError, match="n_starts must be at least 1"):
        run_study(cohort, tmp_path / "new", n_starts=0)


def test_baselines_are_those_of_every_model_and_the_diffused_one():
    assert list(study_baselines(4)) == [
        "majority class",
        "logistic regression",
        "linear SVM",
        "diffused logistic regression",
    ]
    assert study_baselines(4)["diffused logistic regression"].random_state == 4


def test_a_map_is_drawn_of_every_model_with_scales(
    simulated_folder, tmp_path, monkeypatch
):
    cohort = load_cohort(simulated_folder, atlas="desikan82", feature="fdg")
    models = study_models(["exact", "chebyshev"], n_epochs=2, n_starts=1)
    evaluation = cross_validate(models, cohort, 2)
    seen = {}

    def write_report(evaluation, out, **given):
        seen.update(given, evaluation=evaluation)
        return out / "page"

    monkeypatch.setattr(study, "write_report", write_report)
    assert write_study(evaluation, cohort, tmp_path, title="T") == tmp_path / "page"
    assert list(seen["surface_maps"]) == ["Exact", "LSAP-C"]
    scales = evaluation.result("LSAP-C").scales().mean(axis=0)
    drawn = seen["surface_maps"]["LSAP-C"]
    assert tuple(drawn.index) == cohort.region_names
    np.testing.assert_allclose(drawn.to_numpy(), scales)
    pd.testing.assert_frame_equal(seen["truth"], cohort.truth)
    assert seen["title"] == "T"


def test_regions_without_values_stay_off_the_map(tmp_path, monkeypatch):
    cohort = make_cohort(12, atlas="desikan82", feature="thickness")
    models = study_models(["exact"], n_epochs=2, n_starts=1)
    evaluation = cross_validate(models, cohort, splits=_halves(cohort), baselines=False)
    seen = {}
    monkeypatch.setattr(study, "write_report", lambda *_, **given: seen.update(given))
    write_study(evaluation, cohort, tmp_path)
    below = (cohort.atlas.regions["structure"] == "subcortex").to_numpy()
    assert below.sum() == 14
    np.testing.assert_array_equal(seen["surface_maps"]["Exact"].isna(), below)


def _halves(cohort):
    even = np.isin(cohort.groups, sorted(set(cohort.groups))[::2])
    rows = np.arange(cohort.n_scans)
    return [(rows[even], rows[~even]), (rows[~even], rows[even])]


def test_settings_are_chosen_inside_where_asked(monkeypatch, tmp_path):
    given = {}
    monkeypatch.setitem(SPACES, "tiny", {"LSAPClassifier": {"dropout": (0.1, 0.2)}})

    def remember(evaluation, *_, **__):
        given["evaluation"] = evaluation
        return tmp_path / "report.html"

    monkeypatch.setattr(study, "write_study", remember)
    cohort = make_cohort(24, atlas="desikan82", random_state=0)
    brief = {"n_folds": 2, "n_epochs": 1, "n_starts": 1, "initial_scale": 1.0}
    run_study(cohort, tmp_path / "out", tune="tiny", **brief)
    chosen = chosen_table(given["evaluation"])
    chosen = chosen[chosen["model"] == "LSAP-C"]
    assert chosen["fold"].tolist() == [1, 2]
    assert set(chosen["setting"]) == {"dropout"}
    assert given["evaluation"].main.scales().shape == (2, 82)
