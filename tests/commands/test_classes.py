"""Options of classes and answers arrive, whatever the command."""

import argparse
import json

import pytest

from brainlsap.cli import main
from brainlsap.evaluation import Evaluation
from brainlsap.model import load_model
from brainlsap.options import collapse

ANSWERS = ("--head", "ordinal", "--calibration", "temperature")
MERGE = ("--collapse", "5-to-3", *ANSWERS, "--class-weight", "none")


def test_a_collapse_is_a_name_or_says_what_it_merges():
    assert collapse("5-to-2") == "5-to-2"
    told = collapse("well = CN + SMC, ill=EMCI+LMCI+AD")
    assert told == {"well": ["CN", "SMC"], "ill": ["EMCI", "LMCI", "AD"]}
    for wrong in ("a=", "=CN", "a=CN,a=AD", "a=CN,AD"):
        with pytest.raises(argparse.ArgumentTypeError, match="must be NAME=STAGE"):
            collapse(wrong)


def test_run_answers_as_asked(simulated_folder, tmp_path, command, monkeypatch, capsys):
    kept: list[Evaluation] = []
    written = "brainlsap.study.whole_way.write_study"
    monkeypatch.setattr(written, lambda found, *_, **__: kept.append(found))
    asked = command(simulated_folder, tmp_path / "out", *MERGE)
    assert main(asked) == 0
    assert "Classes merged: CN + SMC = CN, EMCI" in capsys.readouterr().out
    (found,) = kept
    assert found.main.classes == ("CN", "MCI", "AD")
    for fold in found.main.folds:
        used = fold.details["fit_report"]["settings"]
        assert used["head"] == "ordinal"
        assert used["calibration"] == "temperature"
        assert used["class_weight"] == "none"
    asked[asked.index("5-to-3")] = "5-to-4"
    assert main(asked) == 2
    assert "collapse must be one of '5-to-2'" in capsys.readouterr().err


def test_rank_refits_an_ordinal_head(simulated_folder, tmp_path, monkeypatch):
    kept = []
    written = "brainlsap.study.ranking_study.write_study"
    monkeypatch.setattr(written, lambda *_, **told: kept.append(told["evidence"]))
    monkeypatch.setattr("brainlsap.commands.rank.write_ranking", None, raising=False)
    monkeypatch.setattr("brainlsap.report.write_ranking", lambda *_, **__: "")
    asked = ["rank", str(simulated_folder), "--out", str(tmp_path / "out")]
    asked += ["--atlas", "desikan82", "--feature", "fdg", "--folds", "2"]
    asked += ["--kernel", "exact", "--epochs", "2", "--starts", "1"]
    assert main([*asked, "--permutations", "2", *MERGE]) == 0
    assert kept[0].permuted.shape == (3, 82)


def test_compare_merges_too(simulated_folder, capsys):
    asked = ["compare", str(simulated_folder), "--atlas", "desikan82"]
    asked += ["--feature", "fdg", "--folds", "2", "--models", "majority-class"]
    assert main([*asked, "--collapse", "5-to-2"]) == 0
    assert "impaired" in capsys.readouterr().out


def test_fit_keeps_what_was_merged(simulated_folder, tmp_path):
    out = tmp_path / "model"
    asked = ["fit", str(simulated_folder), "--out", str(out), "--atlas", "desikan82"]
    asked += ["--feature", "fdg", "--kernel", "exact", "--epochs", "2"]
    assert main([*asked, "--starts", "1", *MERGE]) == 0
    model = load_model(out)
    assert list(model.classes_) == ["CN", "MCI", "AD"]
    assert model.get_params()["head"] == "ordinal"
    assert model.get_params()["calibration"] == "temperature"
    assert json.loads(json.dumps(model.origin_.facts["collapse"]))["MCI"] == [
        "EMCI",
        "LMCI",
    ]
