"""LaTeX tables of a paper: within the text of a page, whole, and escaped."""

import re
from pathlib import Path

import pandas as pd
import pytest
from jinja2 import nodes
from sklearn.metrics import roc_auc_score

from brainlsap import report
from brainlsap.evaluation import compare_by_person
from brainlsap.evaluation.comparison import chance_p, class_table
from brainlsap.report import page, table_text, tables
from brainlsap.report.page import make_report_table_by_name
from brainlsap.report.paper_tables import (
    MAX_ROWS,
    PAGE_WIDTH,
    PAPER_TEXTS,
    cell_text_width,
    latex_table_text,
    make_latex_by_table,
    make_markdown_by_table,
)
from brainlsap.report.report import _add_report_facts
from brainlsap.text import p_text

LONG = "left parahippocampal gyrus, parahippocampal part of the occipito-temporal gyrus"


def tabular_widths(latex):
    """Return the width (mm) of every tabular, with the space between its columns."""
    gap = 2 * float(re.search(r"tabcolsep}{([\d.]+)mm", latex)[1])
    widths = []
    for columns in re.findall(r"\\begin{tabular}{(.*)}\n", latex):
        column_widths = [float(w) for w in re.findall(r"p{([\d.]+)mm}", columns)]
        widths.append(sum(column_widths) + gap * (len(column_widths) - 1))
    return widths


def test_every_table_of_a_report_fits_the_page(make_evaluation):
    regions = [f"{LONG} {k}" for k in range(7)]
    evaluation = _add_report_facts(make_evaluation(regions=regions))
    table_of_name = make_report_table_by_name(evaluation)
    assert {*table_of_name} <= {*PAPER_TEXTS}
    latex_of_name = make_latex_by_table(table_of_name, evaluation)
    for name, latex in latex_of_name.items():
        assert max(tabular_widths(latex)) <= PAGE_WIDTH, name
        assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") > 0
        assert latex.count(rf"\label{{tab:{name}}}") == 1
    assert r"R\&D\_$<$50\%$>$" in latex_of_name["classes"]
    assert r"\textit{other baselines}" in latex_of_name["scores"]


def test_tables_in_markdown_have_caption_and_note(make_evaluation):
    evaluation = _add_report_facts(make_evaluation())
    table_by_name = make_report_table_by_name(evaluation)
    markdown_by_name = make_markdown_by_table(table_by_name, evaluation)
    assert {"demographics", "classes"} <= {*table_by_name} == {*markdown_by_name}
    for name, text in markdown_by_name.items():
        caption, table, *notes = text.rstrip("\n").split("\n\n")
        assert caption.startswith(PAPER_TEXTS[name].caption)
        assert "participants" in caption  # gives n
        assert f"{table}\n" == table_text(table_by_name[name], "markdown")
        unescaped_notes = [note.replace("\\", "") for note in notes]
        assert unescaped_notes == [PAPER_TEXTS[name].note][: len(notes)]
        assert bool(notes) == bool(PAPER_TEXTS[name].note)
    # The denominator of the percentages of Table 1.
    assert "participants with a value" in markdown_by_name["demographics"]
    latex = make_latex_by_table(table_by_name, evaluation)["demographics"]
    assert "participants with a value" in latex


def test_wide_tables_are_split_and_no_cell_is_lost():
    frame = pd.DataFrame({"region": [LONG, "short"]})
    for k in range(9):
        frame[f"class {k} [95%]"] = [f"-0.{k}23 [-0.{k}45, 0.{k}67]", f"{k}"]
    latex = latex_table_text(frame, "Means & more", "50% of", label="tab:means")
    widths = tabular_widths(latex)
    assert len(widths) > 1
    assert max(widths) <= PAGE_WIDTH
    assert latex.count(r"\addtocounter{table}{-1}") == len(widths) - 1
    assert latex.count("(continued)") == len(widths) - 1
    for k in range(9):
        assert f"$-$0.{k}23 [$-$0.{k}45, 0.{k}67]" in latex
    assert latex.count("short &") == len(widths)  # the first column is in each
    assert latex.count(r"50\% of") == 1


def test_long_tables_repeat_their_head():
    frame = pd.DataFrame({"region": [f"r{k}" for k in range(MAX_ROWS + 1)], "n": "1"})
    latex = latex_table_text(frame, "Regions")
    assert latex.count("region & n") == 2
    assert latex.count(r" \\") == MAX_ROWS + 1 + 2


def test_a_sign_is_wider_than_a_hyphen():
    assert cell_text_width("-0.5") > cell_text_width("a-0.5") - cell_text_width("a")


@pytest.mark.parametrize("model", ["LSAP-C", "linear SVM"])
def test_rates_of_classes_are_those_of_their_counts(evaluation, model):
    rows = evaluation.predictions.query("model == @model")
    rates = class_table(evaluation, model, 50).set_index("class")
    is_class, is_predicted = rows["truth"] == "AD", rows["predicted"] == "AD"
    npv = (~is_class & ~is_predicted).sum() / (~is_predicted).sum()
    assert rates.loc["AD", "npv"] == pytest.approx(npv)
    ppv = (is_class & is_predicted).sum() / is_predicted.sum()
    assert rates.loc["AD", "ppv"] == pytest.approx(ppv)
    column = "d_AD" if model == "linear SVM" else "p_AD"
    aucs = [
        roc_auc_score(fold["truth"] == "AD", fold[column])
        for _, fold in rows.groupby("fold")
    ]
    assert rates.loc["AD", "auc"] == pytest.approx(sum(aucs) / len(aucs))
    for name in ("ppv", "npv", "auc"):
        low, high = rates[f"{name}_low"], rates[f"{name}_high"]
        assert (low <= rates[name]).all()
        assert (rates[name] <= high).all()
        assert (low < high).all()


def test_a_class_that_is_separated_has_an_interval(make_evaluation):
    evaluation = make_evaluation(skill=100.0)
    rates = class_table(evaluation, "LSAP-C", 20).set_index("class")
    assert (rates["auc"] == 1).all()
    assert (rates["auc_high"] == 1).all()
    assert (rates["auc_low"] < 1).all()


def test_every_table_of_a_page_has_a_caption_for_papers():
    template = page.TEMPLATES.get_template("report.html.j2")
    calls = page.TEMPLATES.parse(Path(template.filename).read_text("utf-8"))
    shown = {
        call.args[0].as_const()
        for call in calls.find_all(nodes.Call)
        if getattr(call.node, "name", "") == "table"
    }
    assert "added_value" in shown
    assert shown <= set(PAPER_TEXTS)


def test_one_table_joins_score_interval_and_test(evaluation):
    table = report.score_table(evaluation, "auc", intervals=True, tests=True)
    table = table.set_index("model")
    estimate, low, high = tables.score_interval_table(evaluation, "Exact").loc["auc"]
    assert table.loc["Exact", "AUC"] == f"{estimate:.3f} [{low:.3f}, {high:.3f}]"
    p_value = chance_p(evaluation, "Exact", tables.N_EXCHANGES)
    assert table.loc["Exact", tables.CHANCE_TITLE] == p_text(p_value)
    comparisons = compare_by_person(evaluation, n_draws=tables.N_SWAPS)
    holm = comparisons.set_index("model")["p_holm"]
    assert table.loc["Exact", "Holm p (3 comparisons)"] == p_text(holm["Exact"])
    assert table.loc["LSAP-C", "LSAP-C minus this [95%]"] == ""
    folds = report.score_table(evaluation, "auc", tests=True).set_index("model")
    assert "±" in folds.loc["Exact", "AUC"]
    assert folds.loc["Exact", tables.CHANCE_TITLE] == p_text(p_value)
