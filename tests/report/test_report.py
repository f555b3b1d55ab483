"""The results folder: whole, safe to share, made anew, and checked."""

import ast
import html
import inspect
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from jinja2 import nodes

import brainlsap
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.flow import LeftOutScan, left_out_table
from brainlsap.data.reading_options import ReadingOptions
from brainlsap.evaluation import Evaluation, rank_regions, ranking_verdict
from brainlsap.exceptions import BrainlsapError, ParameterError
from brainlsap.files import lock_folder
from brainlsap.findings import Finding
from brainlsap.report import (
    check_results_folder,
    checklist,
    list_methods_paragraphs,
    page,
    plots,
    read_results,
    write_figures,
    write_report,
    write_tables,
)
from brainlsap.report.checklist import (
    ANSWERED,
    AUTHORS,
    ITEMS,
    NOT_APPLICABLE,
    PARTLY,
    checklist_table,
)
from brainlsap.report.conclusions import sample_text
from brainlsap.report.methods import scale_changes_text
from brainlsap.report.page import make_withholding_function
from brainlsap.report.paper_tables import PAPER_TEXTS, UNSHOWN_TABLES, table_file_path
from brainlsap.report.report import figure_paths, table_paths
from tests.conftest import draw_scores_alone, files_named_on_page
from tests.report.conftest import assert_heads_match_cells, draw_learning_curve

pytestmark = pytest.mark.usefixtures("brief_studies")

FLAGS = {"anna003_v0": "same as anna008_v0", "anna001_v0": "no links"}
DOCS = Path(__file__).parents[2] / "docs"
NAMES = re.compile(r"anna\d|anna003|berta|clara|2021-03-04", re.IGNORECASE)


def texts_below(folder):
    """Return every text file by its relative path."""
    files = bytes_below(folder).items()
    return {k: html.unescape(v.decode()) for k, v in files if not k.endswith(".png")}


def bytes_below(folder):
    return {
        one.relative_to(folder).as_posix(): one.read_bytes()
        for one in sorted(folder.rglob("*"))
        if one.is_file()
    }


@pytest.fixture(scope="module")
def written(make_evaluation, tmp_path_factory):
    """A results folder; only to be read."""
    folder = tmp_path_factory.mktemp("report") / "results"
    evaluation = replace(make_evaluation(), learning_curve=draw_learning_curve())
    flags = evaluation.cohort.table["scan"].map(FLAGS).fillna("").to_numpy()
    scans = pd.Index(evaluation.cohort.table["scan"], name="scan")
    write_report(evaluation, folder, quality=pd.DataFrame({"flags": flags}, scans))
    return folder


@pytest.fixture
def results(written, tmp_path):
    return shutil.copytree(written, tmp_path / "results")


def test_nobody_is_named_in_what_may_be_shared(written):
    for name, text in texts_below(written / "report").items():
        # The letters of a picture are no text, and any short name can be among them.
        text_without_images = re.sub("base64,[A-Za-z0-9+/=]+", "", text)
        assert not NAMES.search(text_without_images), name
        assert not NAMES.search(name)
    private = texts_below(written / "private")
    assert "anna003_v0, anna008_v0" in private["audit.tsv"]
    modes = [(written / "private" / one).stat().st_mode for one in private]
    assert not any(mode & 0o077 for mode in modes)


@pytest.mark.usefixtures("scores_figure_alone")
def test_codes_cannot_be_undone_without_the_key(make_evaluation, written, tmp_path):
    key = pd.read_csv(written / "private" / "codes.tsv", sep="\t")
    assert sorted(key["code"]) == [f"S{k:04d}" for k in range(1, len(key) + 1)]
    assert not key["code"].is_monotonic_increasing
    write_report(make_evaluation(), tmp_path / "again")  # the same seed and cohort
    second_key = pd.read_csv(tmp_path / "again" / "private" / "codes.tsv", sep="\t")
    assert key["scan"].equals(second_key["scan"])
    assert not key["code"].equals(second_key["code"])
    code = key.set_index("scan")["code"]
    quality = pd.read_csv(written / "report" / "tables" / "quality.tsv", sep="\t")
    assert quality["scan"].is_monotonic_increasing
    assert set(quality["scan"]) == {code["anna003_v0"], code["anna001_v0"]}
    assert f"same as {code['anna008_v0']}" in set(quality["what is unusual"])
    predictions = pd.read_csv(written / "report" / "predictions.tsv", sep="\t")
    assert predictions["scan"][: len(key)].tolist() == sorted(key["code"])


def test_tables_on_the_page_are_those_of_the_files(written):
    page_text = texts_below(written / "report")["report.html"]
    assert_heads_match_cells(page_text)
    tables = sorted((written / "report" / "tables").glob("*.tsv"))
    numbers = {"ranking", "class_features", "fold_scores"}  # of all, and not shown
    assert {one.stem for one in tables} == numbers | {
        *("scores", "intervals", "classes", "audit", "demographics", "quality", "fits"),
        *("scales", "directions", "agreement", "common_regions", "learning_curve"),
        "subgroups",
    }
    for one in tables:
        if one.stem not in numbers:
            last = pd.read_csv(one, sep="\t", dtype=str, keep_default_na=False).iloc[-1]
            assert all(cell in page_text for cell in last), one.name
            assert f'<span class="file">tables/{one.name}</span>' in page_text
    ranks = pd.read_csv(written / "report" / "tables" / "ranking.tsv", sep="\t")["rank"]
    assert ranks.dropna().is_monotonic_increasing
    assert ranks[:6].notna().all()


def test_every_figure_has_a_place_on_the_page_and_a_paragraph_in_the_guide():
    page_template = page.TEMPLATES.get_template("report.html.j2")
    source = Path(page_template.filename).read_text("utf-8")
    placed_keys = {
        call.args[0].as_const()
        for call in page.TEMPLATES.parse(source).find_all(nodes.Call)
        if getattr(call.node, "name", "") == "figure"
    }
    guide = " ".join((DOCS / "reading_a_report.rst").read_text("utf-8").split())
    missing = [
        f'add figure("{key}", ...) to report.html.j2'
        for key in page.FIGURES
        if key not in placed_keys
    ]
    missing += [
        f"explain **Figure: {entry.guide_title}** in docs/reading_a_report.rst"
        for entry in page.FIGURES.values()
        if not re.search(
            rf"figure: {re.escape(entry.guide_title)}[.*]", guide, re.IGNORECASE
        )
    ]
    missing += [f"add {key!r} to FIGURES" for key in placed_keys - {*page.FIGURES}]
    assert not missing


def test_every_figure_of_a_report_is_registered(written):
    written_names = {path.stem for path in written.glob("report/figures/*.png")}
    assert {"scores", "brain"} <= written_names <= {*page.FIGURES}
    report_page = (written / "report" / "report.html").read_text("utf-8")
    off_page = {name for name in written_names if f"/{name}.png" not in report_page}
    assert not off_page, "place these figures in report.html.j2"
    placed_names = re.findall('<figure class="([^"]+)"', report_page)
    repeated = {name for name in placed_names if placed_names.count(name) > 1}
    assert not repeated, "place these figures once"


def test_every_function_that_draws_a_figure_is_public():
    tree = ast.parse(inspect.getsource(page))
    used = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(tree)}
    drawing = {name for name in used if name.startswith("plot_")}
    drawing -= {"plot_function", "plot_functions"}  # Variables.
    assert {"plot_flow", "plot_scores", "plot_effects"} <= drawing
    missing = drawing - {*brainlsap.report.__all__}
    assert not missing, f"add {missing} to _NAMES of report/__init__.py"


def test_captions_are_short_and_their_numbers_have_no_gap(written):
    page_text = (written / "report" / "report.html").read_text("utf-8")
    captions = re.findall(
        r"<b>((?:Table|Figure) S?)(\d+)\.</b>(.*?)(?:<span|</p>)", page_text, re.DOTALL
    )
    for kind in ("Table ", "Table S", "Figure ", "Figure S"):
        numbers = [int(number) for name, number, _ in captions if name == kind]
        assert numbers == [*range(1, len(numbers) + 1)]
        assert numbers, kind
    for _, _, caption in captions:
        sentences = re.split(r"[.?] ", caption.replace("s.d. ", "s.d., ").strip())
        assert len(sentences) <= 3, caption


def test_checklist_names_places_that_exist_and_nobody(written):
    folder = written / "report"
    table = pd.read_csv(folder / "checklist.tsv", sep="\t", keep_default_na=False)
    items, about = table[:-1], table.iloc[-1]
    assert len(items) == items["item"].nunique() == 52
    assert items["item"].str.rstrip("abcdefg").nunique() == 27
    assert "TRIPOD+AI" in about["value"]
    page_text = (folder / "report.html").read_text("utf-8")
    states = items.groupby("state").size()
    assert states[ANSWERED] >= 3
    assert states[PARTLY] >= 10
    for item in items[items["state"].isin([ANSWERED, PARTLY])].itertuples():
        assert item.value, item.item
        for place in item.where.split("; "):
            file_name, _, section = place.partition("#")
            assert (folder / file_name).is_file(), item.item
            assert not section or f'id="{section}"' in page_text, item.item
    for_authors = items[items["state"].isin([PARTLY, AUTHORS])]
    assert (for_authors["the authors write"] != "").all()
    assert set(items[items["state"] == NOT_APPLICABLE]["item"]) == {
        *("12f", "12g", "20c", "24"),
    }
    assert not NAMES.search((folder / "checklist.tsv").read_text("utf-8"))


def test_checklist_states_what_the_run_answers(make_evaluation, monkeypatch):
    evaluation = make_evaluation()
    files = {place for item in ITEMS for place in item.answer_places}
    values = checklist_table(evaluation, files).set_index("item")["value"]
    assert "simulated" not in values["1"]
    truth = pd.DataFrame({"region": ["region_0"], "seed": [True]})
    cohort = replace(evaluation.cohort, truth=truth)
    simulated = checklist_table(replace(evaluation, cohort=cohort), files)
    assert simulated["value"].iloc[0].endswith("in simulated data")
    sites = evaluation.cohort.table.groupby("participant").ngroup() % 2
    table = evaluation.cohort.table.assign(site=sites.map({0: "a", 1: "b"}))
    many = replace(evaluation, cohort=replace(evaluation.cohort, table=table))
    rows = checklist_table(many, files).set_index("item")
    assert "not adjusted for site" in rows.loc["12d", "value"]
    assert rows.loc["12d", "state"] == PARTLY
    # A site is found by any name that the subgroups know.
    for name in ("site", "Klinik"):
        scores = pd.DataFrame({"column": [name] * 2, "balanced_accuracy": [0.5, 0.6]})
        monkeypatch.setattr(checklist, "subgroup_table", lambda _, t=scores: t)
        values = checklist_table(many, files)["value"]
        assert values.str.contains("scored in 2 of 2 sites").any(), name


def test_every_place_of_the_checklist_can_exist(written):
    """A place that no report has would silently be left out of all."""
    folder = written / "report"
    page_text = (folder / "report.html").read_text("utf-8")
    names = {*PAPER_TEXTS, *UNSHOWN_TABLES}
    for place in {place for item in ITEMS for place in item.answer_places}:
        file_name, _, section = place.partition("#")
        if file_name.startswith("tables/"):
            assert Path(file_name).stem in names, place
        else:
            assert (folder / file_name).is_file(), place
        assert not section or f'<section id="{section}">' in page_text, place
    assert {path.stem for path in folder.glob("tables/*.tsv")} <= names
    with pytest.raises(ValueError, match="subgroup"):
        table_file_path("subgroup")
    table = pd.read_csv(folder / "checklist.tsv", sep="\t", keep_default_na=False)
    row_of_item = table.set_index("item")
    for item in ("14", "23a"):
        assert table_file_path("subgroups") in row_of_item.loc[item, "where"].split(
            "; "
        )
    assert "SITE" in row_of_item.loc["14", "value"]


def test_tables_for_manuscripts(written, tmp_path, monkeypatch):
    files = write_tables(read_results(written), tmp_path / "tables")
    endings = {one.suffix for one in files}
    assert endings == {".tex", ".md"}
    assert len({one.stem for one in files}) == 13
    latex = (tmp_path / "tables" / "scores.tex").read_text("utf-8")
    head, _, body = latex.partition("\n")
    assert re.match(r"% .*\\usepackage{array,booktabs}.*textwidth=160mm", head)
    assert body.startswith("\\begin{table}")
    assert "linear SVM & " in latex
    assert not NAMES.search((tmp_path / "tables" / "quality.md").read_text("utf-8"))
    drawn = {"brain", "scores"}
    assert drawn <= {one.stem for one in (written / "report" / "figures").iterdir()}
    draw_figures_of(monkeypatch, drawn)
    figures = write_figures(read_results(written), tmp_path / "figures")
    assert {one.stem for one in figures} == drawn
    assert sorted((tmp_path / "figures").iterdir()) == sorted(figures)
    assert all(one.read_bytes().startswith(b"%PDF") for one in figures)
    assert {*files} <= {*table_paths(tmp_path / "tables")}
    assert {*figures} <= {*figure_paths(read_results(written), tmp_path / "figures")}


PATHS = (
    "/Users/berta/OneDrive - Berta Hospital/Berta, Max/study",
    r"C:\Users\Berta Clara\ADNI\study",
    "d:/Berta Clara/ADNI",
    r"\\server\Berta Lab\study",
    "//server/Berta Lab/study",
    "file:///home/berta/my study",
    "smb://server/Berta Lab/x",
    "~/My Study/berta",
    "~berta/study",
    "../Dr. Berta/study one",
    "$HOME/Berta Lab",
    r"%USERPROFILE%\Berta Lab",
)
# Options of reading that hold paths.
PATH_OPTIONS = {
    "folder": "Berta Lab/study",
    "features_table": ["data of Berta/fdg.csv", PATHS[0]],
    "subjects_dir": "berta",
    "derivatives": [PATHS[1]],
    "connectome": "berta.csv",
    "reference": "berta.nii.gz",
    "atlas": PATHS[3],
    "pattern": {"connectome": "Berta Lab/{participant}.csv"},
}


@pytest.fixture(scope="module")
def odd_results(make_evaluation, tmp_path_factory):
    """Results of odd names, paths, notes and units, without maps; only to be read."""
    evaluation = make_evaluation(models=("<script>alert(1)</script>",))
    row = ["unusual_unit", "warning", "fdg may not be ratios", "Convert", ""]
    columns = ["check", "severity", "finding", "what_to_do", "scans"]
    cohort = replace(
        evaluation.cohort,
        findings=(Finding("left out: files of", people=("7", "berta")),),
        provenance={"folder": PATHS[3]},
        reading_options=ReadingOptions(**PATH_OPTIONS),
    )
    other_option = {"another_option": {"of": ["data of Berta/x y", 3]}}
    settings = evaluation.settings | {
        "study_options": PATH_OPTIONS | other_option,
        "title": f"A study, {PATHS[0]}",
    }
    odd = replace(
        evaluation,
        audit=pd.DataFrame([row], columns=columns),
        cohort=cohort,
        settings=settings,
    )
    folder = tmp_path_factory.mktemp("odd") / "results"
    with pytest.MonkeyPatch.context() as patch:
        draw_scores_alone(patch)
        write_report(odd, folder, title="A <b>bold</b> title")
    return folder


def test_names_are_escaped(odd_results):
    text = (odd_results / "report" / "report.html").read_text("utf-8")
    assert "<script>" not in text
    assert "<b>bold" not in text
    assert "R&amp;D_&lt;50%&gt;" in text


def test_a_remade_report_is_the_same_whatever_draws_it(results, tmp_path, monkeypatch):
    with joblib.parallel_config("threading"):
        write_report(read_results(results), tmp_path / "again", n_jobs=2)
    for part in ("report", "private"):
        assert bytes_below(tmp_path / "again" / part) == bytes_below(results / part)
    before = texts_below(results / "report").keys()
    (results / "private" / "folds").mkdir()
    (results / "private" / "folds" / "one.json").write_text("{}")
    draw_scores_alone(monkeypatch)
    write_report(read_results(results), results, title="Another")
    assert (results / "private" / "folds" / "one.json").is_file()  # of a run's fits
    assert "Another" in (results / "report" / "report.html").read_text("utf-8")
    assert texts_below(results / "report").keys() == before


@pytest.mark.usefixtures("scores_figure_alone")
def test_what_no_report_wrote_is_not_replaced(evaluation, results, tmp_path):
    with pytest.raises(BrainlsapError, match="nothing"):
        read_results(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ParameterError, match="is a file"):
        check_results_folder(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert check_results_folder(tmp_path / "empty") == tmp_path / "empty"
    (results / "report" / "notes.txt").write_text("mine")
    with pytest.raises(
        ParameterError, match=r"not written by a report \(report/notes.txt\)"
    ):
        write_report(evaluation, results)
    assert (results / "report" / "notes.txt").read_text() == "mine"


@pytest.mark.usefixtures("scores_figure_alone")
def test_a_report_of_another_study_is_not_replaced(make_evaluation, results):
    before = bytes_below(results)
    evaluation = make_evaluation()
    others = [
        replace(evaluation, cohort=replace(evaluation.cohort, data_hash="cd" * 32)),
        replace(evaluation, settings=evaluation.settings | {"random_state": 1}),
    ]
    for other in others:
        with pytest.raises(ParameterError, match="overwrite=True"):
            write_report(other, results)
    assert bytes_below(results) == before
    write_report(others[0], results, overwrite=True)
    assert read_results(results).cohort.data_hash == "cd" * 32


@pytest.mark.usefixtures("scores_figure_alone")
def test_killed_writing_leaves_the_earlier_report(evaluation, results, monkeypatch):
    before = bytes_below(results)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(page, "_write_checklist", stop)  # the last file
    with pytest.raises(KeyboardInterrupt):
        write_report(evaluation, results)
    assert bytes_below(results) == before
    assert [one.name for one in results.parent.iterdir()] == ["results"]


def test_one_run_at_a_time(results):
    before = bytes_below(results)
    evaluation = Evaluation.load(results / "private/evaluation")
    # the thread that holds it may write, as a study does; another may not
    with lock_folder(results), ThreadPoolExecutor() as executor:
        written = executor.submit(write_report, evaluation, results)
        with pytest.raises(ParameterError, match="is in use by another run"):
            written.result()
    assert bytes_below(results) == before


def test_settings_and_versions_are_kept(written):
    record = json.loads((written / "report" / "settings.json").read_text("utf-8"))
    assert record["written_by"] == "brainlsap"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
    assert record["models"]["LSAP-C"]["degree"] == 20
    assert record["cohort"]["provenance"]["folder"] == "[path withheld]"
    assert "report/report.html" in record["files"]


def test_the_files_that_the_page_lists_are_there(written):
    named_files = files_named_on_page(written)
    assert {"report/tables/ranking.tsv", "private/audit.tsv"} <= named_files
    assert [name for name in named_files if not (written / name).is_file()] == []


def test_shared_probabilities_have_six_digits_and_stored_ones_all(evaluation, written):
    path = written / "report" / "predictions.tsv"
    shared = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    stored = read_results(written).predictions
    for column in stored.select_dtypes("float"):
        is_number = shared[column] != "n/a"
        digits = shared.loc[is_number, column].str.replace(r"e.*|\D", "", regex=True)
        assert (digits.str.lstrip("0").str.len() <= 6).all()
        numbers = shared.loc[is_number, column].astype(float)
        np.testing.assert_allclose(
            np.sort(numbers), np.sort(stored[column].dropna()), rtol=5e-6
        )
    assert stored.equals(evaluation.predictions)


def test_predictions_say_which_scans_are_of_one_person(written):
    shared = pd.read_csv(written / "report" / "predictions.tsv", sep="\t")
    key = pd.read_csv(written / "private" / "codes.tsv", sep="\t").set_index("code")
    people = shared["scan"].map(key["participant"])
    assert (shared["person"].map(key["participant"]) == people).all()
    assert shared.groupby("person")["scan"].nunique().max() > 1


@pytest.mark.usefixtures("scores_figure_alone")
def test_an_evaluation_without_much(evaluation, tmp_path):
    is_first = evaluation.fits["model"] == "LSAP-C"  # in every fold
    reduced = replace(
        evaluation,
        predictions=evaluation.predictions.query("model != 'LSAP-C'"),
        scales=evaluation.scales.iloc[:0],
        fits=evaluation.fits.assign(failed=np.where(is_first, "diverged", "")),
        audit=None,
    )
    text = write_report(reduced, tmp_path / "out").read_text("utf-8")
    assert "No leakage audit was made" in text
    assert "LSAP-C could not be trained in every fold" in text
    assert 'id="regions"' not in text


def draw_one_figure(monkeypatch, name, draw_figure):
    """Let reports draw one figure alone, of an evaluation and an atlas."""

    def draw(evaluation, atlas, figure_names):
        if name not in figure_names:
            return {}
        return {name: draw_figure(evaluation, atlas)}

    monkeypatch.setattr(page, "draw_figure_by_name", draw)


def draw_figures_of(monkeypatch, figure_names):
    """Let reports draw these figures alone."""
    draw_figures = page.draw_figure_by_name

    def draw(evaluation, atlas, names=frozenset(page.FIGURES)):
        return draw_figures(evaluation, atlas, names & figure_names)

    monkeypatch.setattr(page, "draw_figure_by_name", draw)


def test_own_regions_are_drawn_where_they_lie(evaluation, tmp_path, monkeypatch):
    names = evaluation.cohort.region_names
    places = {name: (0, 10 * k - 30, 40) for k, name in enumerate(names)}
    atlas = Atlas.from_names(names, "M" * len(names), places)
    draw_one_figure(monkeypatch, "brain", page._plot_scale_maps)
    page_path = write_report(evaluation, tmp_path / "out", atlas=atlas)
    assert (page_path.parent / "figures" / "brain.png").is_file()
    assert "markers show the centres of regions" in page_path.read_text("utf-8")


def test_regions_and_their_null_are_shown(make_evaluation, tmp_path, monkeypatch):
    names = list(load_atlas("desikan82").names)
    evaluation = make_evaluation(
        models=("LSAP-C",), regions=names, atlas_name="desikan82"
    )
    ranking = rank_regions(evaluation).assign(
        p_effect=0.5, p_contrast=0.5, n_permutations=99
    )
    scales = evaluation.scales[evaluation.scales["fold"] < 3]
    evaluation = replace(
        evaluation, ranking=None, audit=evaluation.audit[1:], scales=scales
    )
    maps = {"brain", "regions", "quarters"}
    draw_figures_of(monkeypatch, maps)
    for key in ("regions", "quarters"):
        quick_entry = replace(
            page.FIGURES[key], draw=lambda one, **_: plots.plot_roc(one)
        )
        monkeypatch.setitem(page.FIGURES, key, quick_entry)
    page_path = write_report(evaluation, tmp_path / "out", ranking=ranking)
    text = page_path.read_text("utf-8")
    assert ranking_verdict(ranking) in html.unescape(text)
    assert "map of LSAP-C is a mean over 2 of 3 folds" in text
    assert "0 errors, 0 warnings and 1 note" in text
    assert {one.stem for one in (page_path.parent / "figures").iterdir()} == maps
    assert "Plotly" in (page_path.parent / "brain.html").read_text("utf-8")
    final_scales = evaluation.scales.query("share == 1 and start == 'mean'")
    unchanged_scales = pd.concat([final_scales, final_scales.assign(share=0.0)])
    unchanged = replace(evaluation, ranking=ranking, scales=unchanged_scales)
    assert scale_changes_text(evaluation) in html.unescape(text)
    assert not page.FIGURES["quarters"].is_on_page(unchanged)
    assert "Training changed 0% of the scales of LSAP-C" in scale_changes_text(
        unchanged
    )


def test_models_of_the_same_predictions_are_drawn_once(evaluation):
    twin = {}
    for name in ("predictions", "scales", "fits"):
        table = getattr(evaluation, name)
        own = table[table["model"] == "Exact"].assign(model="LSAP-R")
        twin[name] = pd.concat([table, own], ignore_index=True)
    maps = page.make_relative_scale_table(replace(evaluation, **twin))
    assert list(maps) == ["LSAP-C", "Exact"]


def test_units_and_scales_stand_at_the_top(odd_results):
    page_text = (odd_results / "report" / "report.html").read_text("utf-8")
    summary = page_text[
        page_text.index('<div class="summary">') : page_text.index("<nav")
    ]
    assert "fdg may not be ratios" in summary


def test_short_names_are_withheld_behind_a_word():
    table = pd.DataFrame({"scan": ["1", "b"], "participant": ["0001", "b"]})
    withhold = make_withholding_function(table)
    assert withhold("sub-1, subject b: 0.0001 of 1 at 2021-03-04, /home/x y") == (
        "[name withheld], [name withheld]: 0.0001 of 1 at [day withheld], "
        "[path withheld]"
    )


def test_a_quality_table_must_have_every_scan(make_evaluation, tmp_path):
    evaluation = make_evaluation()
    scans = pd.Index(evaluation.cohort.table["scan"][1:], name="scan")
    incomplete = pd.DataFrame({"flags": ""}, scans)
    for quality in (incomplete, incomplete.reset_index()):
        with pytest.raises(ParameterError, match="quality= must have a row for every"):
            write_report(evaluation, tmp_path / "out", quality=quality)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", PATHS)
def test_paths_in_text_are_withheld_to_their_end(path):
    clean = make_withholding_function(pd.DataFrame({"scan": ["a"]}))
    assert clean(f"odd: {path}") == "odd: [path withheld]"
    assert clean(f"'{path}' is odd") == "'[path withheld]' is odd"


def test_paths_in_settings_are_withheld_by_field(odd_results):
    for name, text in texts_below(odd_results / "report").items():
        # The letters of a picture are no text.
        text_without_images = re.sub("base64,[A-Za-z0-9+/=]+", "", text)
        words = text_without_images.lower()
        assert not re.search("berta|clara|hospital", words), name
    record = json.loads((odd_results / "report/settings.json").read_text("utf-8"))
    stored_options = record["settings"]["study_options"]
    assert stored_options["features_table"] == "[path withheld]"
    reading_options = record["cohort"]["reading_options"]
    assert {*reading_options} == {*PATH_OPTIONS}
    assert reading_options["features_table"] == "[path withheld]"
    assert record["settings"]["random_state"] == 0


def test_words_of_tables_are_no_paths():
    from brainlsap.report.privacy import withhold_paths_in_settings

    known = {"classes": ["MCI/AD", "CN"], "connectome": "none", "atlas": "desikan82"}
    known |= {"merged_classes": {"a/b": ["a", "b"]}, "reference": "Brain-Stem"}
    known |= {"n_repeats": 3, "frames": (0.0, 1.5), "scans": "all"}
    assert withhold_paths_in_settings(known) == known | {"frames": [0.0, 1.5]}
    clean = make_withholding_function(pd.DataFrame({"scan": ["anna1"]}))
    for text in (
        "1/2 of m/s, and/or 0.5, ~5/6",
        "see https://brainlsap.org/x",
        "12.5.1 CN, 2 decimals, 95 %",
        "3 may differ, 20 of 24",
    ):
        assert clean(text) == text


@pytest.mark.parametrize(
    "day",
    [
        *("2021-03-12", "20210312", "2021/3/12", "2021-03-12T10:15:00Z"),
        *("12.03.2021", "03/12/2021", "12-3-2021", "12.03.21", "12-Mar-2021"),
        *("12. März 2021", "12 mars 2021", "March 12, 2021", "12Mar21"),
    ],
)
def test_days_are_withheld_in_every_form(day):
    clean = make_withholding_function(pd.DataFrame({"scan": ["a"]}))
    assert clean(f"scanned {day}, 3 of 12") == "scanned [day withheld], 3 of 12"


def test_names_go_with_what_is_appended_to_them():
    table = pd.DataFrame({"participant": ["Berta1", "Anna", "20745", "René_2"]})
    clean = make_withholding_function(table)
    for name in (
        "Berta1b",
        "berta1_V2",
        "Anna-2",
        "20745_m06",
        "20745a",
        "Rene\u0301_2",
    ):
        assert clean(f"in {name}: odd") == "in [name withheld]: odd"
    text = "annals of 207451 values"
    assert clean(text) == text


def test_notes_say_what_may_be_shared_of_them(odd_results):
    note, shared = "left out: files of 7, berta", "left out: files of [names withheld]"
    assert shared in texts_below(odd_results / "report")["report.html"]
    assert read_results(odd_results).cohort.notes == (note,)


def test_the_flow_of_people_is_shared_by_count_and_private_by_id(
    make_evaluation, tmp_path, monkeypatch
):
    evaluation = make_evaluation()
    rows = [
        LeftOutScan("zora901_v0", "zora901", "v0", "no image"),
        LeftOutScan("zora902_v0", "zora902", "v0", "fault", "zora902_v0: cut short"),
        LeftOutScan("zora902_v1", "zora902", "v1", "later visit"),
    ]
    cohort = replace(evaluation.cohort, left_out=left_out_table(rows))
    evaluation = replace(evaluation, cohort=cohort)
    draw_one_figure(monkeypatch, "flow", lambda one, _: plots.plot_flow(one))
    page = write_report(evaluation, tmp_path / "out")
    table = pd.read_csv(page.parent / "tables" / "flow.tsv", sep="\t")
    counts = table[["participants", "scans"]].to_numpy()
    assert (counts[1:].sum(axis=0) == counts[0]).all()
    assert table["participants"].tolist()[1:4] == [1, 0, 1]
    assert (page.parent / "figures" / "flow.png").is_file()
    checklist = pd.read_csv(page.parent / "checklist.tsv", sep="\t").set_index("item")
    for item in ("6b", "20a"):
        assert "tables/flow.tsv" in checklist.loc[item, "where"].split("; ")
    left_out_text = sample_text(evaluation).partition("Left out: ")[2]
    assert "2 participants, 3 scans" in left_out_text
    assert all(f"{fate} 1" in left_out_text for fate in ("no image", "fault"))
    n_listed = evaluation.cohort.n_participants + 2
    methods = " ".join(list_methods_paragraphs(evaluation))
    assert f"{n_listed} listed participants" in methods
    assert "listed participants: no image 1; fault 1." in methods
    for path in page.parent.rglob("*.*"):
        if path.suffix in (".html", ".tsv", ".json", ".txt", ".tex", ".md"):
            assert "zora90" not in path.read_text("utf-8"), path
    private = pd.read_csv(tmp_path / "out" / "private" / "left_out.tsv", sep="\t")
    assert private["scan"].tolist() == [row.scan for row in rows]
    again = read_results(tmp_path / "out").cohort
    pd.testing.assert_frame_equal(again.flow(), cohort.flow())
