"""The audit as a command: what it prints, and when its exit code is 2."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.cli import main
from brainlsap.data import make_cohort
from brainlsap.evaluation import make_splits, write_splits


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(60, atlas="desikan82", feature="volume", random_state=5)


@pytest.fixture
def written(cohort, tmp_path):
    return str(cohort.write(tmp_path / "cohort.h5"))


def test_a_clean_cohort_passes(written, tmp_path, capsys):
    out = tmp_path / "findings.tsv"
    assert main(["audit", written, "--folds", "3", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "The leakage audit found no error" in told
    assert "Made and nothing found: person in two folds, identical conn" in told
    assert "Not made: tuned on the test fold (no model was given)" in told
    table = pd.read_csv(out, sep="\t")
    assert list(table.columns) == ["severity", "check", "evidence", "what to do"]


def test_folders_are_read_as_by_run(simulated_folder, capsys):
    asked = ["audit", str(simulated_folder), "--atlas", "desikan82"]
    assert main([*asked, "--feature", "fdg", "--folds", "2"]) == 0
    assert "Cohort: 25 scans of 14 people" in capsys.readouterr().out


def test_given_splits_that_share_a_person_are_an_error(
    cohort, written, tmp_path, capsys
):
    splits = make_splits(cohort.y, cohort.groups, 3)
    path = tmp_path / "splits.tsv"
    names = {"scans": cohort.table["scan"], "participants": cohort.groups}
    write_splits(splits, path, **names)
    assert main(["audit", written, "--splits", str(path)]) == 0
    capsys.readouterr()
    person = next(p for p in cohort.groups if (cohort.groups == p).sum() > 1)
    row = np.flatnonzero(cohort.groups == person)[0]
    train, test = splits[0]
    if row in test:
        train, test = np.append(train, row), np.setdiff1d(test, [row])
    else:
        train, test = np.setdiff1d(train, [row]), np.append(test, row)
    write_splits([(train, test)], path, **names)
    assert main(["audit", written, "--splits", str(path)]) == 2
    told = capsys.readouterr()
    assert "| error | person in two folds | 1 person in training" in told.out
    assert told.err.endswith("has leaks: person in two folds\n")
    assert not [name for name in set(cohort.groups) if name in told.out]


def test_columns_are_kept_whole(written, capsys):
    assert main(["audit", written, "--folds", "2", "--whole", "town"]) == 2
    assert "--whole names 'town', and the cohort has the columns scan, pa" in (
        capsys.readouterr().err
    )
