import numpy as np
import pytest

from brainlsap.evaluation import compare_models, pooled_scores
from brainlsap.report import (
    class_rate_table,
    comparison_table,
    division_table,
    interval_table,
    write_report,
)
from brainlsap.report.statistics_tables import N_DRAWS, _number, interval_text


def test_intervals_are_those_of_the_evaluation(evaluation):
    table = interval_table(evaluation, 2).set_index("model")
    found = pooled_scores(evaluation.main, N_DRAWS).loc["kappa"]
    shown = table.loc["LSAP_x", "quadratic weighted kappa"]
    assert shown == interval_text(*found, 2)
    assert "Brier score (less is better)" in table
    assert "within one stage" in table


def test_two_classes_are_not_within_one_stage(make_evaluation):
    table = interval_table(make_evaluation(classes=("F", "M")))
    assert "AUC" in table
    assert not any("stage" in name for name in table)


def test_classes_have_rates(evaluation):
    table = class_rate_table(evaluation)
    assert list(table["class"]) == list(evaluation.cohort.classes)
    told = evaluation.main.predictions()
    ad = told[told["truth"] == "AD"]
    recognised = (ad["predicted"] == "AD").mean()
    assert table["sensitivity"][2].startswith(f"{recognised:.2f} [")
    other = class_rate_table(evaluation, "majority")
    assert list(other["sensitivity"]) != list(table["sensitivity"])


def test_models_are_compared_with_the_first(evaluation):
    table, found = comparison_table(evaluation), compare_models(evaluation)
    assert list(table["LSAP_x minus"]) == ["majority", "linear"]
    assert table["difference"][0] == f"{found['difference'][0]:+.3f}"
    assert table["higher in folds"][0] == "3 of 3"
    assert table["corrected p"][1] == _number(found["p_value"][1], 3)


def test_both_divisions_stand_side_by_side(make_evaluation, atlas, tmp_path):
    honest, shared = make_evaluation(skill=0.2), make_evaluation(skill=0.9)
    table = division_table(honest, shared)
    first = table.set_index("model").loc["LSAP_x"]
    assert first["gap"].startswith("+0.")
    assert list(table["gap"][1:]) == ["+0.000", "+0.000"]
    page = write_report(honest, tmp_path / "x", atlas=atlas, by_scan=shared)
    html = page.read_text()
    assert "<h3>By person and by scan</h3>" in html
    assert first["by scan: people shared"] in html
    assert (page.parent / "tables" / "by_scan.tex").is_file()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0004, "< 0.001"), (0.25, "0.250"), (np.nan, "n/a"), (-1.5, "-1.500")],
)
def test_small_numbers_are_not_zero(value, text):
    assert _number(value, 3) == text


def test_what_is_undefined_is_not_shown():
    assert interval_text(np.nan, 0.1, 0.2) == "n/a"
    assert interval_text(0.5, np.nan, np.nan) == "0.500 [n/a]"
