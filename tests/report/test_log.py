"""The log: all that a report of a fault needs, nobody's name, each warning once."""

from dataclasses import replace

import pandas as pd
import pytest

from brainlsap.report.folder import scan_codes
from brainlsap.report.log import log_text
from brainlsap.report.stored import StoredResults

NOTES = (
    "anna003_v0 came on 2011-05-06 (/home/anna/study/sub-anna003/dwi/x.csv)",
    "read '/data/a cohort/participants.tsv' and ~/more/table.tsv, C:\\data\\x.csv",
    "thickness in mm/s, 1/2 of the scans, ses-1/dwi",
)


@pytest.fixture
def told(evaluation, atlas):
    quality = pd.DataFrame({"scan": ["anna003_v0"], "flags": ["like anna004_v0"]})
    evaluation = replace(
        evaluation, settings={**evaluation.settings, "connectome": "/data/one.csv"}
    )
    results = StoredResults(evaluation, atlas, quality=quality, cohort_notes=NOTES)
    return log_text(results, scan_codes(evaluation)), scan_codes(evaluation)


def test_versions_settings_findings_and_times_are_there(told):
    text, _ = told
    assert "version: python 3." in text
    assert "version: torch 2." in text
    assert "cohort: 54 scans of 36 people" in text
    assert "regions: 6 of 7 measured, of tiny; thickness" in text
    assert f"data: {'ab' * 32}" in text
    assert "setting: n_folds: 3" in text
    assert 'LSAP_x: {"degree": 20}' in text
    assert "LSAP_x, fold 3: 36 training and 18 test scans, 0.12 s" in text
    assert "audit warning: label from one column: site alone: 0.59" in text


def test_nobody_no_day_and_no_place_is_named(told):
    text, codes = told
    assert "anna" not in text.lower()
    assert "2011" not in text
    for place in ("/home", "/data", "a cohort", "~/", "C:", "one.csv", "x.csv"):
        assert place not in text
    assert "note: thickness in mm/s, 1/2 of the scans, " in text
    assert "/dwi" in text
    one, other = codes["anna003_v0"], codes["anna004_v0"]
    assert f"quality: {one}: like {other}" in text


def test_a_warning_of_every_fold_stands_once(told):
    lines = [line for line in told[0].splitlines() if "warning in" in line]
    assert lines == ["LSAP_x, warning in 3 of 3 folds: scan [name withheld] looks odd"]
