"""Every model and control on the same folds of a tiny cohort."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from brainlsap.cli import main
from brainlsap.data import make_cohort
from brainlsap.exceptions import ParameterError
from brainlsap.study import (
    COMPARED,
    CONTROLS,
    compare_models,
    find_names,
    write_comparison,
)
from brainlsap.study.compared_models import Settings, full_work

BRIEF = ["LSAP-C", "logistic regression", "GraphHeat", "covariates only"]


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(24, atlas="desikan82", random_state=1)


@pytest.fixture(scope="module")
def everything(cohort):
    pytest.importorskip("torch_geometric", reason="the extra baselines is absent")
    return compare_models(cohort, n_folds=2, fast=True, n_epochs=1)


def test_all_models_and_controls_are_in_the_table(everything):
    assert everything.table["model"].tolist() == list(COMPARED)
    assert (everything.table["kind"] == "control").sum() == len(CONTROLS)
    assert everything.not_run == {}
    accuracy = everything.table["accuracy"].str.split(" ± ", expand=True).astype(float)
    assert accuracy.stack().between(0, 1).all()
    assert everything.table["p (Holm)"][0] == "reference"
    splits = everything.evaluation.splits
    for result in everything.evaluation.results.values():
        for fold, (train, test) in zip(result.folds, splits, strict=True):
            np.testing.assert_array_equal(fold.train, train)
            np.testing.assert_array_equal(fold.test, test)


def test_what_it_would_take_in_full_is_estimated(everything):
    assert everything.full_seconds() > sum(everything.seconds().values())
    assert "Took 2.0 min with 1 processes; the full default" in everything.times(120)
    assert full_work("LSAP-C") > full_work("GCN") > full_work("linear SVM")


def test_it_is_written_whole(cohort, tmp_path, monkeypatch):
    # pictures of brains are tested where they are drawn, and take long
    monkeypatch.setattr("brainlsap.study.comparing._scale_maps", lambda _: {})
    found = compare_models(cohort, BRIEF, n_folds=2, fast=True, n_epochs=1)
    page = write_comparison(found, cohort, tmp_path / "out")
    tables = page.parent / "tables"
    assert page.is_file()
    for ending in ("csv", "md", "tex"):
        assert "GraphHeat" in (tables / f"classification.{ending}").read_text()
    chosen = pd.read_csv(tables / "chosen.csv")
    assert set(chosen["model"]) == {"logistic regression", "covariates only"}
    assert set(chosen["fold"]) == {1, 2}


def test_processes_change_nothing_and_the_reference_can_be_chosen(cohort):
    given = {"n_folds": 2, "fast": True, "n_epochs": 1}
    some = ["LSAP-C", "majority class"]
    found = [
        compare_models(cohort, some, n_jobs=n_jobs, reference=one, **given)
        for n_jobs, one in ((1, None), (2, "Majority-Class"))
    ]
    for name in some:
        first, second = (
            one.evaluation.result(name).folds[1].probability for one in found
        )
        np.testing.assert_array_equal(first, second)
    table = found[1].table.set_index("model")
    assert table.loc["majority class", "p (Holm)"] == "reference"
    assert table.loc["LSAP-C", "difference"] != ""


def test_names_are_found_whatever_their_case():
    assert find_names(["GRAPHHEAT", "one_global-scale"]) == (
        "GraphHeat",
        "one global scale",
    )
    assert find_names("controls") == CONTROLS
    assert set(find_names("models")) | set(CONTROLS) == set(find_names("all"))


def test_unknown_names_are_refused(cohort):
    with pytest.raises(ParameterError, match=r"models must be all, .*got 'resnet'"):
        find_names(["lsap-c", "resnet"])
    with pytest.raises(ParameterError, match=r"at least one, got none"):
        find_names([])
    with pytest.raises(ParameterError, match=r"reference must be one of .*got 'GAT'"):
        compare_models(cohort, ["linear SVM"], reference="GAT")


@pytest.mark.parametrize("name", sorted(COMPARED))
def test_each_is_a_scikit_learn_classifier(name):
    model = COMPARED[name].make(Settings(random_state=3, n_epochs=2))
    copy = clone(model)
    assert hasattr(copy, "fit")
    assert hasattr(copy, "predict_proba")


def test_the_command_prints_the_table(tmp_path, capsys):
    study = tmp_path / "study"
    main(["simulate", str(study), "--people", "20", "--atlas", "desikan82"])
    given = ["--models", "majority-class,covariates-only", "--folds", "2", "--fast"]
    reading = ["--atlas", "desikan82", "--feature", "fdg"]
    assert main(["compare", str(study), *given, *reading]) == 0
    told = capsys.readouterr().out
    assert "| majority class | control |" in told
    assert "the full default would take about" in told


def test_the_command_refuses_before_reading(capsys):
    assert main(["compare", "/nowhere", "--models", "resnet"]) == 2
    assert "got 'resnet'" in capsys.readouterr().err
