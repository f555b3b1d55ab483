import re
from dataclasses import replace

import pandas as pd
import pytest

from brainlsap.evaluation import CHECKS, Audit
from brainlsap.report import (
    audit_table,
    info_sheet,
    score_numbers,
    score_table,
    write_report,
)
from brainlsap.report.audit_tables import _QUESTIONS, NOT_BY_PERSON, audit_words
from brainlsap.report.folder import name_filter, predictions_table


@pytest.fixture
def by_scan(evaluation):
    return replace(evaluation, settings={**evaluation.settings, "people_shared": True})


def test_findings_are_listed_without_names(evaluation):
    table = audit_table(evaluation, name_filter(evaluation))
    assert list(table["severity"]) == ["error", "warning", "note"]
    assert "[name withheld]" in table["evidence"][0]


def test_words_say_what_was_and_was_not_looked_for(evaluation):
    first, passed, skipped, last = audit_words(evaluation)
    assert first == "The leakage audit found 1 error and 1 warning."
    assert "person in two folds" in passed
    assert skipped == "Not looked for: many variants (no model was given)."
    assert "no proof" in last


def test_without_an_audit_the_report_says_so(evaluation):
    bare = replace(evaluation, audit=None)
    assert audit_words(bare) == ("No leakage audit was made.",)
    assert audit_table(bare).empty
    assert "Not audited." in info_sheet(bare)["what this run says"][0]
    clean = replace(evaluation, audit=Audit([]))
    assert len(audit_words(clean)) == 3


def test_info_sheet_is_filled_in(evaluation):
    sheet = info_sheet(evaluation, name_filter(evaluation))
    said = dict(zip(sheet["kind of leakage"].str[:4], sheet.iloc[:, 1], strict=True))
    assert list(said) == [
        *("L1.1", "L1.2", "L1.3", "L1.4", "L2 F", "L3.1", "L3.2", "L3.3")
    ]
    assert said["L1.1"].startswith("Tested in 3 folds")
    assert "Not looked for: many variants." in said["L1.1"]
    assert "error: identical features (1 pair of scans" in said["L1.4"]
    assert "anna003" not in said["L1.4"]
    assert "No person is on both sides" in said["L3.2"]
    assert "site alone: 0.59" in said["L3.3"]
    assert "age alone" not in said["L3.3"]
    assert (sheet["left to the authors"].str.len() > 0).all()


def test_questions_ask_for_checks_that_are_made():
    asked = [check for _, checks, _ in _QUESTIONS for check in checks]
    assert set(asked) <= set(CHECKS)
    assert len(asked) == len(set(asked))
    assert set(CHECKS) - set(asked) == {"column that is the label"}


def test_every_output_of_folds_by_scan_is_marked(by_scan, atlas, tmp_path):
    page = write_report(by_scan, tmp_path / "x", atlas=atlas, title="My title")
    html = page.read_text()
    assert f"<h1>My title ({NOT_BY_PERSON})</h1>" in html
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", html)
    assert sum(NOT_BY_PERSON[1:] in caption for caption in captions) == 2
    for name in ("scores", "scores_by_fold", "predictions"):
        table = pd.read_csv(page.parent / f"{name}.tsv", sep="\t")
        assert set(table["folds"]) == {NOT_BY_PERSON}
    assert NOT_BY_PERSON in (page.parent / "tables" / "scores.tex").read_text()
    assert '"people_shared": true' in (page.parent / "results.json").read_text()


def test_folds_by_person_are_not_marked(evaluation):
    for table in (
        score_table(evaluation),
        score_numbers(evaluation),
        predictions_table(evaluation),
    ):
        assert "folds" not in table


def test_alike_scans_are_named_in_private_only(evaluation, atlas, tmp_path):
    page = write_report(evaluation, tmp_path / "x", atlas=atlas)
    private = page.parents[1] / "private" / "scans_too_alike.tsv"
    assert "anna003_v0" in private.read_text()
    assert "anna003" not in page.read_text()
    assert "Model info sheet, after Kapoor and Narayanan 2023" in page.read_text()
