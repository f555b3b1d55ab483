"""The command line, as a user types it, on simulated studies."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainlsap.cli import _in_flags, atlas, build_parser, main, nodes, predict, run

READING = ("--atlas", "desikan82", "--feature", "fdg")
BRIEF = ("--folds", "2", "--epochs", "3", "--jobs", "1")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Folders of 20 simulated people; only to be read."""
    folder = tmp_path_factory.mktemp("simulated") / "study"
    made = ["simulate", str(folder), "--people", "20", "--atlas", "desikan82"]
    assert main(made) == 0
    return folder


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Settings that make a fit brief; only to be read."""
    path = tmp_path_factory.mktemp("config") / "study.toml"
    text = 'n_starts = 1\n[model]\nstart = "constant"\n[data]\nlabel="group"\n'
    path.write_text(text + '[study]\nleave_out="site"\n')
    return path


@pytest.fixture(scope="module")
def results(study, config, tmp_path_factory):
    """Results of two kernels; only to be read."""
    out = tmp_path_factory.mktemp("finished") / "results"
    models = ("--models", "LSAP-C,Exact", "--config", str(config))
    named = ("--label", "diagnosis")
    asked = ["run", str(study), *READING, *BRIEF, *models, *named, "--out", str(out)]
    assert main(asked) == 0
    return out


@pytest.fixture
def own_study(study, tmp_path):
    """Hold a copy that a test may spoil."""
    return Path(shutil.copytree(study, tmp_path / "study"))


def refused(capsys, *arguments):
    """Return the one message of a command that is refused with exit code 2."""
    assert main([str(one) for one in arguments]) == 2
    printed = capsys.readouterr().err
    assert "Traceback" not in printed
    assert printed.startswith("brainlsap: error: ")  # no bars where no terminal is
    return printed


def test_run_writes_a_report_that_names_nobody(results):
    assert (results / "report" / "report.html").is_file()
    for path in (results / "report").rglob("*"):
        if path.is_file() and path.suffix in (".html", ".tsv", ".txt", ".json", ".tex"):
            assert "sub-00" not in path.read_text(encoding="utf-8"), path
    assert (results / "private").stat().st_mode & 0o077 == 0
    # options come before the config file, --folds also before its leave_out
    assert "Exact" in (results / "report" / "report.html").read_text(encoding="utf-8")


def test_a_report_is_made_anew_from_its_results(results, tmp_path, capsys):
    out = tmp_path / "again"
    asked = ["report", str(results), "--out", str(out), "--title", "Another <title>"]
    assert main(asked) == 0
    page = (out / "report" / "report.html").read_text(encoding="utf-8")
    assert "Another &lt;title&gt;" in page
    assert main(["report", str(results), "--export", str(tmp_path / "maps")]) == 0
    assert list((tmp_path / "maps").rglob("*.gii"))
    capsys.readouterr()


def test_check_says_what_a_study_holds(study, capsys):
    for more, counted, folds in (
        (["--merge-classes", "5-to-2"], "scans by diagnosis: unimpaired (", ""),
        (["--leave-out", "site"], "scans by diagnosis: CN (", ""),
        ([], "scans by diagnosis: CN (", " --folds 2"),
    ):
        assert main(["check", str(study), *READING, *more]) == 0
        printed = capsys.readouterr().out
        assert "20 people" in printed
        assert f"\n  {counted}" in printed
        assert "Unusual scans:" in printed
        assert ("of site in training and test" in printed) == ("site" not in more)
        _, _, command = printed.partition("\nNext: brainlsap run ")
        asked = " ".join([str(study), *READING, *more])
        assert command.startswith(f"{asked}{folds} --out results\n")
        assert ("5 folds are too many: AD has 2 people" in command) == bool(folds)


def test_check_speaks_of_flags_and_shows_exchanged_hemispheres(own_study, capsys):
    path = next(own_study.rglob("*_connectivity.csv"))
    W = np.loadtxt(path, delimiter=",")
    np.savetxt(path, W[:-1, :-1], delimiter=",")
    assert main(["check", str(own_study), *READING]) == 2
    printed = capsys.readouterr().out
    assert "--labels" in printed
    assert "labels=" not in printed
    W = np.maximum(W, W.T)
    # fs_default.txt: cortex, cerebellum, structures of the left; then of the right
    order = np.r_[49:83, 83, 42:49, 35:42, 0:34, 34]
    np.savetxt(path, W[np.ix_(order, order)], delimiter=",")
    assert main(["check", str(own_study), *READING]) == 0
    assert "left and right were exchanged" in capsys.readouterr().out


def test_check_ends_with_2_where_somebody_is_there_twice(own_study, capsys):
    table = pd.read_csv(own_study / "participants.tsv", sep="\t", dtype=str)
    first = table["participant_id"][0]
    shutil.copytree(own_study / first, own_study / "sub-again")
    for path in sorted((own_study / "sub-again").rglob(f"*{first}*"), reverse=True):
        path.rename(path.with_name(path.name.replace(first, "sub-again")))
    again = table.iloc[:1].assign(participant_id="sub-again")
    pd.concat([table, again]).to_csv(
        own_study / "participants.tsv", sep="\t", index=False
    )
    # printed before the refusal
    assert main(["check", str(own_study), *READING]) == 2
    printed = capsys.readouterr()
    assert "leaks: duplicate scans" in printed.err
    assert f"{first}_ses-M00, sub-again_ses-M00" in " ".join(printed.out.split())


def test_a_simulated_disease_starts_where_it_is_asked_to(tmp_path):
    asked = ("--people", "5", "--atlas", "desikan82", "--seed-regions", "lh_cuneus")
    assert main(["simulate", str(tmp_path / "study"), *asked]) == 0
    truth = pd.read_csv(tmp_path / "study" / "truth.tsv", sep="\t")
    assert truth["region"][truth["seed"]].tolist() == ["ctx-lh-cuneus"]


def test_fit_and_predict(study, tmp_path, capsys):
    model, table = tmp_path / "model.safetensors", tmp_path / "predictions.tsv"
    brief = ("--epochs", "3", "--regress-out", "age,sex", "--merge-classes", "5-to-2")
    classes = ("--classes", "CN,SMC,EMCI,AD")
    fitted = ["fit", str(study), *READING, *brief, *classes, "--out", str(model)]
    assert main(fitted) == 0
    printed = capsys.readouterr().out
    assert "\nNote: left out, diagnosis is not among the classes: LMCI (" in printed
    assert "\nscans by diagnosis: unimpaired (" in printed
    nowhere = refused(capsys, "predict", tmp_path, study, "--out", table)
    assert "as a whole model file, as `brainlsap fit` writes" in nowhere
    with pytest.warns(UserWarning, match="unlike those of the fit"):  # LMCI
        assert main(["predict", str(model), str(study), "--out", str(table)]) == 0
    assert table.stat().st_mode & 0o077 == 0  # it names people
    found = pd.read_csv(table, sep="\t")
    assert {"scan", "predicted", "p_unimpaired", "p_impaired"} <= set(found)
    assert "Predicted: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--models", "LSAP-Q"), "LSAP-Q"),
        (("--label", "diagnosys"), "diagnos"),
        (("--atlas", "no-atlas"), "no-atlas"),
        (("--harmonize", "scanner", "--folds", "2"), "scanner"),
        (("--merge-classes", "5-to-4"), "5-to-3"),
        (("--merge-classes", "well=CN"), "leave two classes, got CN = well of"),
        (("--merge-classes", "well=CN,ill=Ad"), "'Ad' of classes; found CN ("),
        (("--splits", "nowhere.tsv"), "nowhere.tsv"),
        (("--splits", "nowhere.tsv", "--folds", "2"), "--splits goes without --folds"),
        (("--leave-out", "site", "--folds", "2"), "--leave-out goes without --folds"),
        (("--leave-out", "planet"), "planet"),
        (("--leave-out", "participant"), "no column 'participant'"),
        (("--connectome", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_bad_input_is_one_message_and_nothing_written(
    study, tmp_path, capsys, arguments, words
):
    out = tmp_path / "results"
    base = ("run", study, *READING, "--epochs", "3", "--jobs", "1", "--out", out)
    message = refused(capsys, *base, *arguments)
    assert words in message
    assert len(message.splitlines()) < 12
    assert not out.exists()


def test_a_wrong_key_of_the_config_file_is_named(study, tmp_path, capsys):
    path = tmp_path / "study.toml"
    path.write_text("n_epoch = 3\nseed = 1\nfeature_ = 'fdg'\n")
    message = refused(
        capsys, "run", study, *READING, "--config", path, "--out", tmp_path / "out"
    )
    assert "no settings: feature_, n_epoch. A config file has" in message
    path.write_text("n_epochs = 3\nepochs = 4\n")
    message = refused(capsys, "run", study, "--config", path, "--out", tmp_path / "out")
    assert "epochs is n_epochs; keep one" in message


def test_a_report_of_other_settings_or_people_is_not_replaced(
    results, study, own_study, config, capsys, monkeypatch
):
    before = (results / "report" / "settings.json").read_bytes()
    models = ("--models", "LSAP-C,Exact", "--config", config, "--out", results)
    same = (*READING, *BRIEF, *models, "--label", "diagnosis")
    told = refused(capsys, "run", study, *same, "--repeats", 2, "--harmonize", "site")
    assert "other --harmonize (not given, now site), --repeats (1, now 2)." in told
    assert "choose another --out; overwrite = true (in a --config file)" in told
    assert "with other STUDY (" in refused(capsys, "run", own_study, *same)
    monkeypatch.setattr("brainlsap.workflow.write_report", lambda *_, **__: None)
    assert main([str(one) for one in ("run", study, *same)]) == 0
    assert (results / "report" / "settings.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--merge-class", "5-to-3"), "unrecognized arguments: --merge-class 5-to-3"),
        (("--epochs", "-3"), "--epochs: must be a whole number of at least 0"),
    ],
)
def test_flags_that_are_misspelt_are_told(study, capsys, arguments, words):
    with pytest.raises(SystemExit) as stop:
        main(["run", str(study), "--out", "x", *arguments])
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def test_a_study_that_is_not_there_is_refused_at_once(tmp_path):
    started = time.monotonic()
    words = [sys.executable, "-m", "brainlsap", "run", "/nowhere", "--out", "x"]
    how = {"capture_output": True, "text": True, "cwd": tmp_path}
    done = subprocess.run(words, check=False, **how)
    assert done.returncode == 2
    assert "/nowhere" in done.stderr
    assert time.monotonic() - started < 20  # 0.3 s on a quiet machine


def test_ctrl_c_says_how_to_continue_and_the_run_continues(
    study, tmp_path, monkeypatch, capsys
):
    from brainlsap import workflow

    out = tmp_path / "results"
    asked = [str(one) for one in ("run", study, *READING, *BRIEF, "--out", out)]

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "write_report", stop)
    assert main(asked) == 130
    assert "the same command continues" in capsys.readouterr().err
    kept = {one: one.stat().st_mtime_ns for one in out.rglob("*.json")}
    assert len(kept) == 16  # LSAP-C and seven baselines on two folds
    monkeypatch.setattr(workflow, "write_report", lambda *_, **__: None)
    assert main(asked) == 0
    assert {one: one.stat().st_mtime_ns for one in out.rglob("*.json")} == kept


def test_every_option_is_explained_and_run_has_few(monkeypatch):
    commands = build_parser()._subparsers._group_actions[0].choices
    names = "demo simulate atlas import-adni build check run report fit predict nodes"
    assert set(commands) == set(names.split())
    options = [one for one in commands["run"]._actions if one.option_strings]
    assert len(options) - 1 <= 32  # beside --help
    monkeypatch.setenv("COLUMNS", "80")
    shown = commands["run"].format_help()
    assert len(shown.splitlines()) <= 60
    assert shown.count("  brainlsap run study") == 3
    for name in ("run", "check", "fit", "predict"):
        for option in commands[name]._actions:
            assert option.help, (name, option.option_strings)


@pytest.mark.parametrize(
    ("call", "message", "told"),
    [
        (run, "Read it with feature= or /a/b=c/label=.", "with --feature or /a/b=c"),
        (run, "Give cv= a number, or merged_classes= two.", "--folds a number, or --"),
        (run, "Name it by connectome= (--connectome FILE).", "by --connectome FILE."),
        (run, "n_repeats must be at least 1", "--repeats must be at least 1"),
        (run, "measure= takes another", "measure (in a --config file) takes another"),
        (atlas, "labels= or image= must name them", "--labels or --image must name"),
        (predict, "Leave measure= out", "Leave measure= out"),
        (nodes, "as data=, or download=True to", "as --data, or --download to"),
        (run, "atlas (row_order='atlas')", "atlas (--row-order atlas)"),
        (run, "by symmetrize='mean', or", 'by symmetrize = "mean" (in a --config'),
    ],
)
def test_messages_speak_of_flags(call, message, told):
    assert told in _in_flags(message, call)


def test_one_mistake_in_many_files_is_one_short_message(study, tmp_path, capsys):
    asked = ("--atlas", "destrieux160", "--feature", "fdg", "--out", tmp_path / "out")
    assert len(refused(capsys, "run", study, *asked).splitlines()) < 20


def test_a_results_folder_of_the_demo_is_whole(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    brief = ("--people", "20", "--folds", "2", "--epochs", "2", "--starts", "1")
    assert main(["demo", *brief, "--jobs", "1"]) == 0
    printed, told = capsys.readouterr()
    fitted = [line for line in told.splitlines() if line.startswith("fitted ")]
    assert "%|" not in told
    table = [line for line in printed.splitlines() if ": " not in line]
    assert max(map(len, table)) <= 100
    n_models = len(table) - 1
    assert len(fitted) == 2  # a line a fold, no bars: no terminal is
    assert fitted[-1].startswith(f"fitted {2 * n_models} of {2 * n_models}, last ")
    assert printed.count("Study: ") == 1
    page = re.search(r"Report: (.*)", printed)[1]
    assert Path(page).is_file()
    assert "LSAP-C" in printed
