"""How connectomes are prepared, from the command line."""

import json
import re

import pandas as pd
import pytest

from brainlsap.cli import main
from brainlsap.data import load_atlas, make_cohort, write_subject_folders

QUICK = ["--atlas", "desikan82", "--feature", "fdg", "--folds", "2", "--epochs", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    cohort = make_cohort(16, atlas="desikan82", random_state=1)
    return write_subject_folders(cohort, tmp_path_factory.mktemp("cohort") / "study")


def run(folder, out, *options):
    return main(
        ["run", str(folder), "--out", str(out), "--starts", "1", *QUICK, *options]
    )


@pytest.fixture
def settings_seen(monkeypatch):
    """Return the settings that a run hands on, instead of running."""
    seen = {}

    def run_study(cohort, *_, **given):
        seen.update(given, shared=cohort.shares_connectome)
        raise KeyboardInterrupt

    monkeypatch.setattr("brainlsap.study.run_study", run_study)
    return seen


def test_every_option_arrives(folder, tmp_path, settings_seen):
    names = load_atlas("desikan82").names
    table = pd.DataFrame({"region": names[::-1], "volume": range(82, 0, -1)})
    table.to_csv(tmp_path / "volumes.tsv", sep="\t", index=False)
    options = {
        "--threshold": "0.01",
        "--threshold-unit": "share",
        "--weights": "log",
        "--symmetrize": "max",
        "--consensus": "0.5",
        "--group-density": "0.3",
        "--isolated": "strongest",
        "--network": "mean",
        "--volumes": str(tmp_path / "volumes.tsv"),
    }
    pairs = [part for pair in options.items() for part in pair]
    assert run(folder, tmp_path / "out", *pairs) == 130
    assert settings_seen["threshold"] == 0.01
    assert settings_seen["weights"] == "log"
    assert settings_seen["preparation"] == {
        "threshold_unit": "share",
        "symmetrize": "max",
        "consensus": 0.5,
        "group_density": 0.3,
        "isolated": "strongest",
        "connectome": "mean",
        "volumes": [float(i) for i in range(1, 83)],
    }


def test_covariance_looks_for_nobodys_connectome(folder, tmp_path, settings_seen):
    assert run(folder, tmp_path / "out", "--network", "covariance") == 130
    assert settings_seen["preparation"] == {"connectome": "covariance"}
    assert settings_seen["shared"]


def test_run_prints_density_isolated_regions_and_gap(finished_run):
    (said,) = [one for one in finished_run.printed if one.startswith("Connectomes as")]
    results = finished_run.out / "report" / "results.json"
    models = json.loads(results.read_text("utf-8"))["models"]
    reports = [fold["fit_report"] for fold in models["Exact"]["folds"]]
    for words, key in (
        ("density", "density"),
        ("isolated regions", "isolated_regions"),
        ("spectral gap", "spectral_gap"),
    ):
        told = float(re.search(rf"{words} ([0-9.]+)", said)[1])
        mean = sum(one[key] for one in reports) / len(reports)
        assert told == pytest.approx(mean, abs=0.006)
        assert "Exact" in said
    other = models["diffused logistic regression"]["folds"][0]
    assert "density" not in other["fit_report"]


def test_options_that_cannot_be_used_are_refused_at_once(folder, tmp_path, capsys):
    assert run(folder, tmp_path / "out", "--consensus", "2") == 2
    assert "consensus must lie between 0 and 1, got 2" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
