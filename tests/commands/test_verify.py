"""A results folder recomputed: sound as written, and what was touched is named."""

import json
import re
import shutil

import numpy as np
import pytest

from brainlsap.cli import main
from brainlsap.exceptions import FileFormatError
from brainlsap.report.folder import MANIFEST
from brainlsap.report.folder_files import file_hashes
from brainlsap.report.verification import verify_results


@pytest.fixture
def copied(finished_run, tmp_path):
    return shutil.copytree(finished_run.out, tmp_path / "results")


def change(folder, name, before, after, *, sign=False):
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
    if sign:
        manifest = json.loads((folder / MANIFEST).read_text())
        manifest["sha256"] |= file_hashes(folder, [name])
        (folder / MANIFEST).write_text(json.dumps(manifest))


def test_a_whole_folder_is_sound(finished_run, capsys):
    assert main(["verify", str(finished_run.out)]) == 0
    told = capsys.readouterr().out
    assert "Checked: every table, figure and page, made anew" in told
    assert "8 scores of 6 models in 2 folds, from 150 predictions" in told
    assert "Differs" not in told
    record = json.loads((finished_run.out / "report" / "results.json").read_text())
    assert set(record["inputs"]) == {"data_sha256", "table_sha256", "splits_sha256"}
    assert record["environment"]["threads_per_task"] == 1
    assert len(record["code_sha256"]) == 64


def test_files_that_were_touched_are_named(copied, capsys):
    (copied / "report" / "methods.txt").unlink()
    (copied / "report" / "mine.txt").write_text("x")
    change(copied, "report/report.html", "</html>", "</html> ")
    assert main(["verify", str(copied), "--quick"]) == 2
    told = capsys.readouterr()
    assert "Differs: report/methods.txt: missing" in told.out
    assert "Differs: report/mine.txt: not written by the run" in told.out
    assert "Differs: report/report.html: changed since it was written" in told.out
    assert "differs in 3 places" in told.err


def test_scores_that_the_predictions_do_not_give(copied):
    name = "report/scores_by_fold.tsv"
    row = (copied / name).read_text().splitlines()[1]
    start, rest = row.split("\t")[:3], row.split("\t")[3]
    start = "\t".join(start)
    change(copied, name, f"{start}\t{rest}", f"{start}\t0.987", sign=True)
    model = row.split("\t")[0]
    (told,) = verify_results(copied, remake=False).differences
    assert told.startswith(f"{name}: balanced_accuracy of {model}, fold 1, is 0.987;")


def test_predictions_of_others_and_people_on_both_sides(copied):
    name = "private/splits.tsv"
    lines = (copied / name).read_text().splitlines()
    moved = next(
        line
        for line in lines
        if line.startswith("1\ttest")
        and sum(line[7:] in one for one in lines) == 2
        and sum(line.rsplit("\t", 1)[1] in one for one in lines) > 2
    )
    change(copied, name, moved, moved.replace("test", "train"), sign=True)
    told = verify_results(copied, remake=False).differences
    assert any("does not predict the test scans of fold 1" in one for one in told)
    assert any("fold 1 has 1 people on both sides" in one for one in told)


def test_another_version_is_a_note(copied):
    record = json.loads((copied / "report" / "results.json").read_text())
    before = record["versions"]["numpy"]
    asked = ('"numpy": "' + before, '"numpy": "0.1')
    change(copied, "report/results.json", *asked, sign=True)
    found = verify_results(copied, remake=False)
    assert found.is_sound
    assert found.notes == (f"numpy was 0.1, and is {before}",)


@pytest.fixture
def cohort(simulated_folder, tmp_path):
    return shutil.copytree(simulated_folder, tmp_path / "study")


def verify_against(results, cohort, capsys):
    code = main(["verify", str(results), "--quick", "--cohort", str(cohort)])
    return code, capsys.readouterr().out


def test_the_same_inputs_elsewhere_are_the_same(finished_run, cohort, capsys):
    code, told = verify_against(finished_run.out, cohort, capsys)
    assert code == 0
    assert "Checked: the cohort, read again: people, labels, covariates" in told


def test_changed_inputs_are_found_and_nobody_is_named(finished_run, cohort, capsys):
    change(cohort, "participants.tsv", "\tF\t", "\tM\t")
    matrix = next(cohort.rglob("*_connectivity.csv"))
    values = np.loadtxt(matrix, delimiter=",")
    np.savetxt(matrix, 2 * values, delimiter=",")
    code, told = verify_against(finished_run.out, cohort, capsys)
    assert code == 2
    found = [line for line in told.splitlines() if line.startswith("Differs")]
    assert len(found) == 2
    assert re.match(r"Differs: inputs: sex differs in \d+ of 25 scans", found[0])
    assert "connectomes or features are others than those of the run" in found[1]
    assert "sub-" not in "".join(found)


def test_people_that_came_or_went_are_found(finished_run, cohort, capsys):
    shutil.rmtree(cohort / "sub-0003")
    lines = (cohort / "participants.tsv").read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("sub-0003")]
    (cohort / "participants.tsv").write_text("".join(kept))
    code, told = verify_against(finished_run.out, cohort, capsys)
    assert code == 2
    assert re.search(r"inputs: \d scans? of the run are not there any more", told)
    (cohort / "participants.tsv").unlink()
    code, told = verify_against(finished_run.out, cohort, capsys)
    assert code == 2
    assert "inputs: the cohort cannot be read as it was (" in told


def test_inputs_that_are_not_there_are_a_note(finished_run, tmp_path, capsys):
    code, told = verify_against(finished_run.out, tmp_path / "gone", capsys)
    assert code == 0
    assert "Note: inputs are not compared: " in told
    assert "gone is not there" in told


def test_what_is_no_results_folder(tmp_path, copied):
    with pytest.raises(FileFormatError, match=r"-report\.json: no such file; expected"):
        verify_results(tmp_path)
    (copied / MANIFEST).write_text('{"files": []}')
    with pytest.raises(FileFormatError, match="no results folder with hashes"):
        verify_results(copied)
    (copied / MANIFEST).write_text('{"sha256": {}}')
    (copied / "private" / "predictions.tsv").unlink()
    with pytest.raises(FileFormatError, match=r"predictions\.tsv: cannot be read"):
        verify_results(copied)


def test_predictions_without_a_column_are_said_to_be_none_of_a_run(copied):
    change(copied, "private/predictions.tsv", "p_AD", "p_other", sign=True)
    with pytest.raises(FileFormatError, match=r"record do not fit together .*p_AD"):
        verify_results(copied, remake=False)
