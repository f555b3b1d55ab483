import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from brainlsap.data import load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report import plot_regions, write_report
from brainlsap.report.illustrations import draw_maps, scale_map


@pytest.fixture
def page(evaluation, atlas, truth, tmp_path):
    return write_report(
        evaluation, tmp_path / "out", atlas=atlas, truth=truth, cohort_notes=("A & B.",)
    )


def shareable(page):
    return [one for one in page.parent.rglob("*") if one.is_file()]


def test_folder_holds_everything_that_the_page_lists(page):
    html = page.read_text()
    for one in shareable(page):
        if one != page:
            assert f"<code>{one.relative_to(page.parent)}</code>" in html
    names = {one.relative_to(page.parent).as_posix() for one in shareable(page)}
    assert {
        "results.json",
        "predictions.tsv",
        "scores.tsv",
        "ranking.tsv",
        "tables/regions.tex",
        "tables/scores.md",
        "tables/demographics.csv",
        "figures/calibration.png",
        "figures/confusion.png",
        "methods.txt",
        "figures/scales.png",
    } <= names
    private = page.parents[1] / "private"
    assert private.is_dir()
    assert "anna003" in (private / "predictions.tsv").read_text()


def test_no_person_is_named_outside_private(page, evaluation):
    table = evaluation.cohort.table
    names = {*table["participant"], *table["scan"]}
    for one in shareable(page):
        content = one.read_bytes().decode("latin-1")
        assert not [name for name in names if name in content], one
    manifest = page.parents[1] / "brainlsap-report.json"
    assert "anna" not in manifest.read_text()


def test_page_is_whole_in_itself(page):
    html = page.read_text()
    sources = re.findall(r'(?:src|href)="([^"]*)"', html)
    assert all(one.startswith(("data:", "#")) for one in sources)
    images = re.findall(r"<img [^>]*>", html)
    assert len(images) == 5
    assert all(re.search(r'alt="[^"]{20,}"', one) for one in images)
    anchors = set(re.findall(r'href="#(\w+)"', html))
    assert anchors == set(re.findall(r'<section id="(\w+)"', html))


def test_page_says_what_matters(page):
    html = page.read_text()
    for words in (
        "LSAP_x beats linear",
        "54 scans of 36 people",
        "Against the answer key of the simulation",
        "A &amp; B.",
        "[name withheld]: mirrored",
        "could not be drawn on the brain",
        "Kruskal-Wallis",
        "We analysed 54 scans of 36 participants in three groups by diagnosis: CN",
        "stratified 3-fold cross-validation (seed 0), in which all scans of a",
        "highest learned scale, largest over all folds: 9.0e-09",
        "No person is in both",
        "R&amp;D_50%",
        "arXiv:2401.11840",
    ):
        assert words in html, words


def test_results_can_be_read_back(page, evaluation):
    record = json.loads((page.parent / "results.json").read_text())
    assert record["ranking_auc"] == 1.0
    assert record["settings"]["random_state"] == 0
    told = pd.read_csv(page.parent / "predictions.tsv", sep="\t")
    main = told[told["model"] == "LSAP_x"]
    accuracy = (main["truth"] == main["predicted"]).groupby(main["fold"]).mean()
    np.testing.assert_allclose(accuracy, evaluation.main.scores()["accuracy"])


def test_markup_in_labels_and_notes_is_text(make_evaluation, atlas, tmp_path):
    script = "<script>alert(1)</script>"
    evaluation = make_evaluation(classes=("CN", script), name="<b>model</b>")
    page = write_report(
        evaluation, tmp_path / "x", atlas=atlas, title=script, cohort_notes=[script]
    )
    html = page.read_text()
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_report_replaces_only_a_report(page, evaluation, atlas):
    folder = page.parents[1]
    write_report(evaluation, folder, atlas=atlas)
    assert "answer key" not in page.read_text()
    (page.parent / "added.txt").write_text("mine")
    with pytest.raises(ParameterError, match="no report wrote"):
        write_report(evaluation, folder, atlas=atlas)
    assert (page.parent / "added.txt").is_file()


def test_models_without_scales_have_no_regions(make_evaluation, atlas, tmp_path):
    evaluation = make_evaluation()
    del evaluation.results["LSAP_x"]
    evaluation.settings["baselines"] = ["linear"]
    page = write_report(evaluation, tmp_path / "x", atlas=atlas)
    assert 'id="regions"' not in page.read_text()
    assert not (page.parent / "ranking.tsv").exists()


def test_ranking_that_is_given_is_shown_with_the_answer_key(
    evaluation, atlas, truth, tmp_path
):
    from brainlsap.evaluation import rank_regions

    ranking = rank_regions(evaluation, by="mean_rank")
    page = write_report(
        evaluation, tmp_path / "x", atlas=atlas, ranking=ranking, truth=truth
    )
    assert "Where the seed regions" in page.read_text()
    assert "seed" in (page.parent / "ranking.tsv").read_text().splitlines()[0]


def test_maps_are_one_figure_with_a_row_for_each(monkeypatch):
    from brainlsap.report import illustrations

    seen = {}

    def drawn(values, of_atlas, colorbar_label):
        seen.update(values=values, label=colorbar_label)
        return plot_regions(values, of_atlas, views=["outer left"])

    monkeypatch.setattr(illustrations, "plot_regions", drawn)
    desikan = load_atlas("desikan82")
    values = pd.Series(np.arange(82.0), index=list(desikan.names))
    empty = pd.Series(np.nan, index=list(desikan.names))
    maps = {"LSAP-C": values, "Exact": values[::-1], "none": empty}
    (picture,), (gap,) = draw_maps(maps, desikan)
    assert (list(seen["values"]), seen["label"]) == (["LSAP-C", "Exact"], "heat scale")
    assert gap == "none could not be drawn on the brain: no region has a value."
    assert picture.name == "surface"
    assert picture.png.startswith(b"\x89PNG")
    assert "One row for each model" in picture.caption
    assert f"LSAP-C: {desikan.names[0]}" in picture.alt
    draw_maps({"LSAP-C": values}, desikan)
    assert seen["values"] is values


def test_maps_that_cannot_be_drawn_are_told(atlas):
    none, (gap,) = draw_maps({"Effect": {"region_0": 1.0}}, atlas)
    assert not none
    assert gap.startswith("Effect could not be drawn on the brain:")
    assert draw_maps({}, atlas) == ((), ())


def test_unmeasured_regions_have_no_value_on_the_map(evaluation):
    from brainlsap.evaluation import rank_regions

    (values,) = scale_map(rank_regions(evaluation)).values()
    assert list(values.index[values.isna()]) == ["region_5"]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium not installed")
def test_page_opens_in_a_browser(page, tmp_path):
    shot = tmp_path / "page.png"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--screenshot={shot}"]
    command = ["chromium", *flags, f"--user-data-dir={tmp_path / 'profile'}"]
    subprocess.run(
        [*command, page.as_uri()], check=True, capture_output=True, timeout=120
    )
    assert shot.stat().st_size > 10_000
