"""The classification table: the same numbers as the records, and tests beside them."""

import pytest

from brainlsap.evaluation import compare_models
from brainlsap.exceptions import ParameterError
from brainlsap.report.comparison_tables import (
    KINDS,
    chosen_table,
    classification_table,
    comparison_numbers,
)


def test_table_holds_the_scores_and_tests_of_the_records(evaluation):
    first, second, *_ = evaluation.results
    evaluation.settings["controls"] = [first]
    table = classification_table(evaluation, second)
    assert table["kind"].tolist()[-1] == "control"
    told = table.set_index("model")
    summary = evaluation.result(second).summary().loc["accuracy"]
    assert (
        told.loc[second, "accuracy"] == f"{summary['mean']:.3f} ± {summary['sd']:.3f}"
    )
    tests = compare_models(evaluation, reference=second).set_index("model")
    assert float(told.loc[first, "difference"]) == pytest.approx(
        -tests.loc[first, "difference"], abs=6e-4
    )
    assert told.loc[second, "p (Holm)"] == "reference"


def test_what_was_not_run_says_so(evaluation):
    evaluation.settings["not_run"] = {"GCN": "not run (why)"}
    row = classification_table(evaluation).set_index("model").loc["GCN"]
    assert row["accuracy"] == "not run (why)"
    assert row["p (Holm)"] == ""


def test_baselines_follow_models(evaluation):
    kinds = classification_table(evaluation)["kind"].tolist()
    assert kinds == sorted(kinds, key=KINDS.index)
    assert kinds.count("baseline") == len(evaluation.baselines())


def test_chosen_settings_have_a_row_for_every_fold(evaluation):
    assert chosen_table(evaluation).empty
    for fold in evaluation.main.folds:
        fold.details["fit_report"] = {"tuned": {"chosen": {"dropout": 0.1}}, "C": 0.5}
    table = chosen_table(evaluation)
    assert table["setting"].tolist() == ["dropout", "C"] * len(evaluation.main.folds)
    assert table["fold"].max() == len(evaluation.main.folds)


def test_numbers_have_a_row_for_every_model(evaluation):
    numbers = comparison_numbers(evaluation)
    assert numbers["model"].tolist() == list(evaluation.results)
    assert numbers["p_adjusted"].isna().sum() == 1


def test_unknown_reference_is_refused(evaluation):
    with pytest.raises(ParameterError, match="model must be one of"):
        classification_table(evaluation, "nobody")
