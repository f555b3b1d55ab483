"""The command line: what it writes, and how it refuses."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainlsap.cli import build_parser, main
from brainlsap.data import load_atlas
from brainlsap.data.spreadsheets import write_tsv
from brainlsap.evaluation import rank_regions
from brainlsap.report.folder import predictions_table

NAME = "sub-0001_ses-M00"
MATRIX = f"sub-0001/ses-M00/dwi/{NAME}_atlas-desikan_connectivity.csv"
UPTAKE = f"sub-0001/ses-M00/pet/{NAME}_trc-18FFDG_desc-suvr_regions.tsv"


def code_of(arguments):
    """Return the exit code, whether a command or the parser gives it."""
    try:
        return main(arguments)
    except SystemExit as stop:
        return stop.code


def message_in(text):
    """Return what stands on standard error, bars left out."""
    lines = [line.strip() for line in re.split(r"[\r\n]", text)]
    return [line for line in lines if line and not re.match(r"\w+: +\d+%", line)]


def names_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# ---- what comes out ---------------------------------------------------------------


def test_run_ends_with_the_place_of_the_report(finished_run):
    said, page = finished_run.printed[-1].split(": ", 1)
    assert said == "Report"
    assert Path(page) == finished_run.out.resolve() / "report" / "report.html"
    assert "<html" in Path(page).read_text(encoding="utf-8")
    assert finished_run.printed[0] == "Cohort: 25 scans of 14 people"
    assert any("LSAP-C" in line and "±" in line for line in finished_run.printed)


def test_run_compares_the_kernels_and_baselines_asked_for(finished_run):
    report = finished_run.out / "report"
    assert list(pd.read_csv(report / "scores.tsv", sep="\t")["model"]) == [
        "Exact",
        "LSAP-C",
        "majority class",
        "logistic regression",
        "linear SVM",
        "diffused logistic regression",
    ]
    record = json.loads((report / "results.json").read_text(encoding="utf-8"))
    assert 0 <= record["ranking_auc"] <= 1  # the folders hold the answer


def test_number_of_processes_changes_nothing(
    finished_run, simulated_folder, command, tmp_path, monkeypatch
):
    kept = []

    def keep(evaluation, *_, **__):  # the drawing is the same work over again
        kept.append(evaluation)
        return tmp_path

    monkeypatch.setattr("brainlsap.study.whole_way.write_study", keep)
    assert main(command(simulated_folder, tmp_path / "out", "--jobs", "2")) == 0
    write_tsv(predictions_table(kept[0]), tmp_path / "predictions.tsv")
    write_tsv(rank_regions(kept[0]), tmp_path / "ranking.tsv")
    one = finished_run.out / "private" / "predictions.tsv"
    assert (tmp_path / "predictions.tsv").read_bytes() == one.read_bytes()
    ranking = pd.read_csv(finished_run.out / "report" / "ranking.tsv", sep="\t")
    other = pd.read_csv(tmp_path / "ranking.tsv", sep="\t")
    # the report's has columns of evidence beside these
    pd.testing.assert_frame_equal(ranking[other.columns], other, check_exact=True)


def test_demo_goes_the_whole_way_twice(tmp_path, capsys):
    out = tmp_path / "demo"
    quick = ["--folds", "2", "--epochs", "2", "--starts", "1", "--jobs", "1"]
    arguments = ["demo", "--out", str(out), "--people", "24", *quick]
    pages, cohorts = [], []
    for _ in range(2):
        assert main(arguments) == 0
        printed = capsys.readouterr().out.strip().splitlines()
        cohorts.append(printed[0])
        pages.append(Path(printed[-1].removeprefix("Report: ")))
    assert "scans simulated)" in cohorts[0]
    assert cohorts[1].endswith("(made before)")
    assert pages[0] == pages[1]
    page = pages[1].read_text(encoding="utf-8")
    assert "Demo: a simulated cohort" in page
    assert "LSAP-C" in page
    assert "Exact" in page
    assert sorted(one.name for one in out.iterdir()) == [
        "cohort_24_people_seed_0",
        "results",
    ]


def test_every_option_is_explained():
    (commands,) = build_parser()._subparsers._group_actions
    for name, command in commands.choices.items():
        for action in command._actions:
            where = f"{name} {action.dest}"
            assert action.help or name == "completion", where
            if action.default in (None, [], False, "==SUPPRESS=="):
                continue
            assert "default" in action.help, where
            if not action.choices and action.default != "chosen":
                named = action.default
                text = ",".join(named) if isinstance(named, list) else str(named)
                assert text in action.help, where


def test_help_says_what_exit_codes_mean(capsys):
    assert code_of(["--help"]) == 0
    told = capsys.readouterr().out
    assert re.findall(r"^  (\d+)  ", told, re.MULTILINE) == ["0", "1", "2", "130"]
    page = Path(__file__).parents[1] / "docs" / "command_line.rst"
    if page.is_file():
        listed = re.findall(r"^   \* - (\d+)$", page.read_text("utf-8"), re.MULTILINE)
        assert listed == ["0", "1", "2", "130"]


def test_atlases_are_listed(capsys):
    assert main(["atlases"]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == [
        "desikan82: 82 regions",
        "destrieux160: 160 regions",
    ]


def test_every_option_of_reading_arrives(tmp_path, monkeypatch):
    seen = {}

    def load_cohort(folder, **given):
        seen.update(given, folder=folder)
        raise KeyboardInterrupt

    monkeypatch.setattr("brainlsap.data.load_cohort", load_cohort)
    arguments = {
        "--atlas": "desikan82",
        "--feature": "fdg,thickness",
        "--label": "dx",
        "--classes": "CN, AD",
        "--connectome": "one.csv",
        "--subjects-dir": "fs",
        "--derivatives": "more",
        "--pattern": "*.csv",
        "--scans": "baseline",
        "--subcortex": "volume",
        "--features-table": "table.csv",
    }
    pairs = [part for pair in arguments.items() for part in pair]
    assert main(["run", "study", "--out", str(tmp_path / "out"), *pairs]) == 130
    assert seen == {
        "folder": "study",
        "atlas": "desikan82",
        "feature": ["fdg", "thickness"],
        "label": "dx",
        "classes": ["CN", "AD"],
        "connectome": "one.csv",
        "subjects_dir": "fs",
        "derivatives": ["more"],
        "pattern": "*.csv",
        "scans": "baseline",
        "subcortex": "volume",
        "features_table": "table.csv",
        "progress": True,
    }


# ---- what is refused --------------------------------------------------------------


def write_matrix(folder, matrix):
    np.savetxt(folder / MATRIX, matrix, delimiter=",")


def write_named_matrix(folder, names):
    matrix = np.ones((82, 82))
    pd.DataFrame(matrix, index=names, columns=names).to_csv(folder / MATRIX)


def replace_in(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def misspell_uptake(folder):
    replace_in(folder / UPTAKE, "ctx-lh-cuneus", "ctx-lh-cuneous")


def misspell_matrix(folder):
    names = list(load_atlas("desikan82").names)
    names[3] = "ctx-lh-cuneous"
    write_named_matrix(folder, names)


def put_nan(folder):
    matrix = np.loadtxt(folder / MATRIX, delimiter=",")
    matrix[3, 7] = np.nan
    write_matrix(folder, matrix)


def double_a_person(folder):
    path = folder / "participants.tsv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text + text.splitlines()[3] + "\n", encoding="utf-8")


def forget_a_label(folder):
    for path in [folder / "participants.tsv", *folder.glob("sub-0012/*_sessions.tsv")]:
        text = path.read_text(encoding="utf-8")
        lines = [
            line.replace("EMCI", "n/a") if "sub-0012" in line + path.name else line
            for line in text.splitlines()
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_everybody_healthy(folder):
    for path in [folder / "participants.tsv", *folder.glob("sub-*/*_sessions.tsv")]:
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"\t(SMC|EMCI|LMCI|AD)\b", "\tCN", text))


# what is spoilt -> how, options, and what the message must say
FAULTS = {
    "missing folder": (shutil.rmtree, [], ["study: no such folder"]),
    "missing connectome": (
        lambda folder: (folder / MATRIX).unlink(),
        [],
        [rf"{NAME}: no connectome; expected one file"],
    ),
    "missing table of one subject": (
        lambda folder: (folder / UPTAKE).unlink(),
        [],
        [f"{NAME}: no table of regions for fdg; expected a file"],
    ),
    "odd size": (
        lambda folder: write_matrix(folder, np.ones((81, 81))),
        [],
        [f"{NAME}_atlas", "81", "desikan82"],
    ),
    "not square": (
        lambda folder: write_matrix(folder, np.ones((82, 80))),
        [],
        [f"{NAME}_atlas", "expected a square matrix, got 82 x 80", "cut short"],
    ),
    "NaN": (
        put_nan,
        [],
        [f"{NAME}_atlas", "NaN", "ctx-lh-cuneus", "write 0 for no connection"],
    ),
    "doubled participant": (
        double_a_person,
        [],
        ["participants.tsv", "sub-0003 stands more than once", "expected one row"],
    ),
    "no column of the label": (
        lambda _: None,
        ["--label", "stage"],
        ["'stage' is no column", "found diagnosis, age", "Name the column by --label"],
    ),
    "no label of one person": (
        forget_a_label,
        ["--scans", "baseline"],
        ["sub-0012_ses-M00: no diagnosis", r"label by --classes"],
    ),
    "one class": (
        make_everybody_healthy,
        [],
        ["at least two classes are needed, got only 'CN'", "another label"],
    ),
    "fewer people than folds": (
        lambda _: None,
        ["--folds", "5"],
        [r"as many people as folds \(5\), but 'AD' has 2 people", "at most 2 folds"],
    ),
    "unknown region in a table": (
        misspell_uptake,
        [],
        [f"{NAME}_trc-18FFDG", "'ctx-lh-cuneous'", "nearest: ctx-lh-cuneus"],
    ),
    "unknown region in a connectome": (
        misspell_matrix,
        [],
        [f"{NAME}_atlas", "'ctx-lh-cuneous'", "nearest: ctx-lh-cuneus"],
    ),
    "feature found nowhere": (
        lambda _: None,
        ["--feature", "tau"],
        ["tau: found nowhere; looked for files"],
    ),
    "label left out": (
        lambda _: None,
        ["--classes", "CN,XX"],
        ["no scan has the diagnosis 'XX' of classes; found AD"],
    ),
    "device": (
        lambda _: None,
        ["--device", "gpu7"],
        ["device 'gpu7' cannot be used here", "leave it at 'cpu'"],
    ),
    "atlas": (
        lambda _: None,
        ["--atlas", "brodmann"],
        ["must be one of desikan82, destrieux160, or", "got 'brodmann'"],
    ),
    "threshold": (
        lambda _: None,
        ["--threshold", "-1"],
        ["threshold must be at least 0.0, got -1.0"],
    ),
    "kernel": (
        lambda _: None,
        ["--kernel", "exact,fourier"],
        ["'fourier' is no kernel; choose from chebyshev, exact", "run --help"],
    ),
    "no kernel": (lambda _: None, ["--kernel", ","], ["',' is no kernel"]),
    "one fold": (
        lambda _: None,
        ["--folds", "1"],
        ["--folds: must be a whole number of at least 2, got '1'"],
    ),
    "no process": (
        lambda _: None,
        ["--jobs", "0"],
        ["--jobs: must be a whole number of at least 1, got '0'"],
    ),
    "seed": (
        lambda _: None,
        ["--seed", "-1"],
        ["--seed: must be a whole number of at least 0, got '-1'"],
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_bad_input_is_one_line_and_nothing_written(
    name, subject_folders, command, capsys
):
    spoil, options, expected = FAULTS[name]
    spoil(subject_folders)
    place = subject_folders.parent
    before = names_below(place)
    assert code_of(command(subject_folders, place / "out", *options)) == 2
    printed = capsys.readouterr()
    lines = message_in(printed.err)
    assert len(lines) == 1
    assert re.match(r"brainlsap( run)?: error: ", lines[0])
    for pattern in expected:
        assert re.search(pattern, lines[0]), f"no {pattern!r} in {lines[0]!r}"
    assert "Report" not in printed.out
    assert names_below(place) == before


def test_all_faults_of_a_cohort_are_listed_at_once(subject_folders, command, capsys):
    (subject_folders / UPTAKE).unlink()
    write_matrix(subject_folders, np.ones((82, 80)))
    (subject_folders / MATRIX.replace("0001", "0002")).unlink()
    out = subject_folders.parent / "out"
    assert main(command(subject_folders, out)) == 2
    lines = message_in(capsys.readouterr().err)
    assert lines[0].endswith("cannot be loaded, 3 faults:")
    assert len(lines) == 4
    assert any("sub-0002_ses-M00: no connectome" in line for line in lines)
    assert not out.exists()


def test_results_are_not_written_over_foreign_files(
    simulated_folder, command, tmp_path, capsys
):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert main(command(simulated_folder, tmp_path)) == 2
    assert "no report wrote (thesis.txt)" in capsys.readouterr().err
    assert names_below(tmp_path) == ["thesis.txt"]
    assert main(["simulate", str(tmp_path), "--people", "6"]) == 2
    assert "exists and is not an empty folder" in capsys.readouterr().err
    assert main(["demo", "--out", str(tmp_path / "thesis.txt")]) == 2
    assert "thesis.txt is a file" in capsys.readouterr().err
    assert names_below(tmp_path) == ["thesis.txt"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["simulate", "new", "--people", "3"], "n_people must be at least 5"),
        (["simulate", "new", "--feature", "tau"], "feature must be one of 'fdg', "),
        (["simulate", "new", "--people", "x"], "--people: must be a whole number"),
        (["demo", "--out", "new", "--people", "12"], "'AD' has 1 person"),
        (["demo", "--out", "new", "--device", "x"], "unrecognized arguments: --device"),
        ([], "the following arguments are required: COMMAND; see brainlsap --help"),
    ],
)
def test_other_commands_refuse_alike(
    arguments, expected, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert code_of(arguments) == 2
    (line,) = message_in(capsys.readouterr().err)
    assert expected in line
    assert names_below(tmp_path) == []


def test_ctrl_c_leaves_nothing(
    simulated_folder, command, tmp_path, monkeypatch, capsys
):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("brainlsap.study.whole_way.cross_validate", stop)
    assert main(command(simulated_folder, tmp_path / "out")) == 130
    assert message_in(capsys.readouterr().err)[-1] == (
        "brainlsap: stopped; nothing half-written is left."
    )
    assert names_below(tmp_path) == []


def test_a_full_disk_is_no_traceback(tmp_path, monkeypatch, capsys):
    def fail(*_, **__):
        raise OSError(28, "No space left on device", str(tmp_path / "x"))

    monkeypatch.setattr("brainlsap.data.write_subject_folders", fail)
    assert main(["simulate", str(tmp_path / "new"), "--people", "6"]) == 2
    (line,) = message_in(capsys.readouterr().err)
    assert line == f"brainlsap: error: {tmp_path / 'x'}: No space left on device"


# ---- as a process of its own ------------------------------------------------------


def test_module_refuses_as_a_process(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    done = subprocess.run(
        [sys.executable, "-m", "brainlsap", "simulate", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"brainlsap: error: {tmp_path} exists and is not an empty folder. "
        "Name a new one, or remove it.\n"
    )
    assert done.stdout == ""
    assert names_below(tmp_path) == ["thesis.txt"]


def test_script_runs_as_a_process(tmp_path):
    script = Path(sys.executable).with_name("brainlsap")
    if not script.is_file():
        pytest.skip(f"{script} is not installed")
    arguments = [str(script), "simulate", "new", "--people", "6", "--seed", "3"]
    done = subprocess.run(
        arguments, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert re.fullmatch(r"Cohort: new \(\d+ scans of 6 people\)\n", done.stdout)
    assert (tmp_path / "new" / "participants.tsv").is_file()
