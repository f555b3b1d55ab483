from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainlsap.evaluation import Evaluation, rank_regions
from brainlsap.report.ranking_words import ranking_words
from brainlsap.report.words import (
    comparison,
    default_title,
    fold_table,
    headline,
    promises,
)


def test_headline_says_who_how_well_and_against_what(evaluation):
    first, second, third, fourth = headline(evaluation)
    scores = evaluation.main.scores()["balanced_accuracy"]
    assert first.startswith("LSAP_x tells 3 classes of diagnosis (CN, R&D_50%, AD)")
    assert f"{scores.mean():.3f} ± {scores.std(ddof=1):.3f}" in first
    assert "over 3 folds; guessing gives 0.333" in first
    assert "54 scans of 36 people" in first
    assert "best baseline on the same folds, linear, reaches" in second
    assert third.startswith("LSAP_x beats linear: the mean difference is +")
    assert fourth == (
        "The leakage audit found 1 error and 1 warning: identical features."
    )


def test_verdict_follows_the_folds(evaluation):
    main, low = evaluation.main, evaluation.result("majority")
    assert comparison(low, main).startswith("majority does not beat LSAP_x")
    assert comparison(main, main).startswith("No clear difference between the two")
    assert "higher in 0 of 3 folds" in comparison(main, main)
    assert "corrected t-test: p = 1.000" in comparison(main, main)


def test_without_baselines_the_headline_says_so(evaluation):
    alone = Evaluation(
        {"LSAP_x": evaluation.main},
        evaluation.splits,
        {**evaluation.settings, "baselines": [], "splits": "given"},
        evaluation.cohort,
    )
    assert "No baseline was run" in headline(alone)[-1]
    assert "Folds were given by the user." in promises(alone)
    assert "drawn with seed 0" in promises(evaluation)[1]


def test_folds_that_share_people_are_told_first(evaluation):
    settings = {**evaluation.settings, "people_shared": True, "n_repeats": 4}
    shared = replace(evaluation, settings=settings)
    assert headline(shared)[0].startswith("People have scans in training and in test")
    assert promises(shared)[0].startswith("Folds divide scans and not people")
    assert "tested 4 times" in promises(shared)[1]


def test_title_says_what_from_what(evaluation):
    assert default_title(evaluation) == "Diagnosis from thickness: LSAP_x"


def test_folds_are_counted_by_people_and_scans(evaluation):
    table = fold_table(evaluation)
    assert table["test people"].sum() == evaluation.cohort.n_participants
    assert table["test scans"].sum() == evaluation.cohort.n_scans
    assert (table["training scans"] + table["test scans"] == 54).all()
    assert table["test AD"].sum() == (evaluation.cohort.table["label"] == "AD").sum()


def test_ranking_begins_with_the_answer_key(evaluation, truth):
    ranking = rank_regions(evaluation, truth=truth)
    words = ranking_words(ranking, evaluation.main.scales(), truth)
    assert words[0].startswith("Against the answer key")
    assert "the 1 measured seed regions with an AUC of 1.000" in words[0]
    assert any("Kendall's W of the folds is 1.00" in one for one in words)
    assert any("1 of 6 measured regions stayed" in one for one in words)
    without = ranking_words(ranking, None, None)
    assert not any("answer key" in one or "Kendall" in one for one in without)


@pytest.mark.parametrize("n_folds", [1])
def test_one_fold_has_no_deviation(evaluation, n_folds):
    main = evaluation.main
    one = type(main)("one", main.folds[:n_folds], *_rest(main))
    alone = Evaluation({"one": one}, evaluation.splits[:1], {}, evaluation.cohort)
    assert "±" not in headline(alone)[0].split("(mean")[0]
    assert isinstance(fold_table(alone), pd.DataFrame)
    assert np.isnan(one.summary().loc["accuracy", "sd"])


def _rest(result):
    return result.classes, result.region_names, result.measured
