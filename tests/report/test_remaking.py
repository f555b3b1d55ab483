"""A report remade from its folder, its privacy, and what evidence adds to the page."""

import json
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainlsap.evaluation import RankingEvidence
from brainlsap.exceptions import FileFormatError
from brainlsap.report import read_results, remake_report, write_report
from brainlsap.report.folder_files import STORED

N_ROIS = 7


def draw_evidence(evaluation, found):
    rng = np.random.default_rng(0)
    names = evaluation.main.region_names
    null = rng.normal(2, 0.1, size=(40, N_ROIS))
    null[0] = 2.0
    null[0, 6] = 0.2 if found else 2.0
    return RankingEvidence(
        evaluation.main.name,
        names,
        properties=pd.DataFrame({"region": names, "degree": np.arange(7.0)}),
        rank_one={evaluation.main.name: 0.91},
        starts={0.3: null[:2], 1.0: null[1:3], 2.0: null[2:4]},
        permuted=null,
        untrained=null[:5],
        importance=np.arange(7.0),
        importance_kind="permutation importance",
    )


def shareable(page):
    return {
        one.relative_to(page.parent).as_posix(): one.read_bytes()
        for one in page.parent.rglob("*")
        if one.is_file()
    }


@pytest.fixture(scope="module")
def evaluation(make_evaluation):
    """Name sessions so that they are found wherever they stand."""
    drawn = make_evaluation()
    table = drawn.cohort.table
    told = table.assign(session="ses-K" + table["session"] + "7Q")
    return replace(drawn, cohort=replace(drawn.cohort, table=told))


@pytest.fixture(scope="module")
def quality(evaluation):
    scans = evaluation.cohort.table["scan"]
    flags = [""] * len(scans)
    flags[3] = f"the same matrix as {scans[5]}"
    return pd.DataFrame({"scan": scans, "flags": flags, "density": 0.5})


@pytest.fixture(scope="module")
def page(evaluation, atlas, truth, quality, tmp_path_factory):
    return write_report(
        evaluation,
        tmp_path_factory.mktemp("remade") / "out",
        atlas=atlas,
        truth=truth,
        title="Mine",
        cohort_notes=["anna003 came on 2011-05-06", "visits ses-K07Q, K17Q differ"],
        evidence=draw_evidence(evaluation, found=True),
        quality=quality,
    )


def test_remade_report_is_the_same_report(page, tmp_path):
    first = shareable(page)
    again = remake_report(page.parents[1], tmp_path / "again")
    assert shareable(again) == first


def test_a_report_is_remade_without_torch(page):
    code = (
        "import sys\n"
        "from brainlsap.cli import main\n"
        f"assert main(['report', {str(page.parents[1])!r}]) == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(page) in done.stdout


def test_what_the_fits_were_made_with_outlives_their_report(
    page, tmp_path, monkeypatch
):
    monkeypatch.setattr("brainlsap.report.record.code_version", lambda: "other code")
    monkeypatch.setattr("brainlsap.report.record.installed_versions", dict)
    again = remake_report(page.parents[1], tmp_path / "again")
    before, after = (
        json.loads((one.parent / "results.json").read_text()) for one in (page, again)
    )
    assert after == before
    assert len(after["code_sha256"]) == 64


def test_what_was_stored_is_what_was_evaluated(page, evaluation):
    found = read_results(page.parents[1])
    again = found.evaluation
    pd.testing.assert_frame_equal(again.scores(), evaluation.scores())
    pd.testing.assert_frame_equal(
        again.cohort.table, evaluation.cohort.table, check_dtype=False
    )
    for name, result in evaluation.results.items():
        told = again.result(name)
        pd.testing.assert_frame_equal(told.predictions(), result.predictions())
        for one, other in zip(result.folds, told.folds, strict=True):
            np.testing.assert_array_equal(one.train, other.train)
            if one.scales is not None:
                np.testing.assert_array_equal(one.scales, other.scales)
    assert again.audit.findings == evaluation.audit.findings
    assert found.title == "Mine"
    assert list(found.atlas.names) == list(evaluation.main.region_names)


def test_nothing_in_the_shareable_folder_names_a_person_session_or_day(
    page, evaluation
):
    table = evaluation.cohort.table
    ids = {*table["participant"], *table["scan"], *table["session"]}
    ids |= {one.removeprefix("ses-") for one in table["session"]}
    assert "K17Q" in ids
    for name, content in shareable(page).items():
        text = content.decode("latin-1")
        assert not [one for one in ids if one in text], name
        assert "2011-05-06" not in text, name
    private = page.parents[1] / "private"
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    for one in private.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o600, one
    # what is withheld there is kept here
    kept = (private / STORED).read_text()
    assert "anna003 came on 2011-05-06" in kept
    assert "visits ses-K07Q, K17Q differ" in kept


def test_identifiers_are_shown_where_they_were_asked_for(page, tmp_path):
    named = remake_report(page.parents[1], tmp_path / "named", with_identifiers=True)
    html = named.read_text()
    assert "This report names people." in html
    assert "anna003 came on 2011-05-06" in html
    assert (
        "participant" in (named.parent / "predictions.tsv").read_text().split("\n")[0]
    )
    assert "This report names people." not in page.read_text()


def test_evidence_is_on_the_page(page):
    html = page.read_text()
    for words in (
        "1 region has a scale smaller than fits to labels permuted between people",
        "own value against the whole-brain mean",
        "What scale may merely follow",
        "start 0.3 and start 1",
        "permutation importance",
        "p (family-wise)",
        "spread over starts",
        "39 refits to labels permuted between participants",
        "the same matrix as S",
        "figures/calibration.png",
    ):
        assert words in html, words
    assert "No null distribution" not in html
    record = json.loads((page.parent / "results.json").read_text())
    assert len(record["ranking_evidence"]["permuted"]) == 40


def test_a_ranking_no_better_than_its_null_is_said_first(evaluation, atlas, tmp_path):
    evidence = draw_evidence(evaluation, found=False)
    page = write_report(evaluation, tmp_path / "x", atlas=atlas, evidence=evidence)
    summary = page.read_text().partition('<div class="summary">')[2]
    first = re.search(r"<p>(.*?)</p>", summary, re.DOTALL)[1]
    assert first.startswith("The ranking of regions is not better than its null")


def test_what_cannot_be_remade(page, tmp_path):
    with pytest.raises(FileFormatError, match="holds no stored evaluation"):
        read_results(tmp_path)
    stored = tmp_path / "spoilt" / "private" / STORED
    shutil.copytree(page.parents[1] / "private", stored.parent)
    record = json.loads(stored.read_text())
    stored.write_text(json.dumps({**record, "version": 99}))
    with pytest.raises(FileFormatError, match="of version 99, and this"):
        read_results(tmp_path / "spoilt")
    stored.write_text(stored.read_text()[:-20])
    with pytest.raises(FileFormatError, match="cannot be read as a stored evaluation"):
        read_results(tmp_path / "spoilt")


CHROMIUM = shutil.which("chromium")


@pytest.mark.skipif(CHROMIUM is None, reason="chromium not installed")
def test_browser_shows_markup_as_text_without_error_or_network(
    make_evaluation, atlas, tmp_path
):
    script = "<script>alert(1)</script>"
    evaluation = make_evaluation(classes=("CN", script, "AD"))
    cohort = replace(evaluation.cohort, label_name=script)
    page = write_report(
        replace(evaluation, cohort=cohort), tmp_path / "x", atlas=atlas, title=script
    )
    assert page.stat().st_size < 8_000_000
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--enable-logging=stderr", "--v=0"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    dom = done.stdout.decode()
    assert dom.rstrip().endswith("</html>")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in dom
    assert script not in dom
    assert "CONSOLE" not in done.stderr.decode()
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', dom)
