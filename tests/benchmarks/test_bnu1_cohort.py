"""The script that writes the BNU_1 archive as subject folders."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from brainlsap.data import load_cohort

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT.parent / "shared" / "data" / "bnu1_connectomes"
SCRIPT = str(ROOT / "benchmarks" / "bnu1_cohort.py")


@pytest.mark.skipif(not ARCHIVE.is_dir(), reason=f"{ARCHIVE} is not here")
def test_folders_hold_the_archive(tmp_path, monkeypatch, capsys):
    out = tmp_path / "bnu1"
    monkeypatch.setattr(sys, "argv", [SCRIPT, str(out)])
    runpy.run_path(SCRIPT, run_name="__main__")
    assert "98 scans of 49 people" in capsys.readouterr().out
    cohort = load_cohort(out, "desikan82", "strength", "sex")
    assert (cohort.n_scans, len(set(cohort.groups))) == (98, 49)
    assert [(cohort.y == label).sum() for label in cohort.classes] == [46, 52]
    with np.load(next(ARCHIVE.glob("*.npz")), allow_pickle=False) as archive:
        row = archive["scan_id"].tolist().index("sub-0025865_ses-2")
        raw = archive["count"][row]
    mine = cohort.connectomes[cohort.table["scan"].tolist().index("sub-0025865_ses-2")]
    left, right, below = mine[0, 4], mine[34, 81], mine[3, 67]
    assert (left, right, below) == (raw[0, 5], raw[35, 83], raw[4, 69])
    with pytest.raises(SystemExit, match="exists; name a new folder"):
        runpy.run_path(SCRIPT, run_name="__main__")
