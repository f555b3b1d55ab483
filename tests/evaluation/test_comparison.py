"""Tests and intervals against slow truth; intervals hold their estimates."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, ttest_1samp
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import GroupShuffleSplit

from brainlsap.evaluation import (
    bootstrap_score_table,
    chance_p,
    class_table,
    compare_by_person,
    compare_models,
    comparison,
    corrected_t_test,
    cross_validate,
    make_models,
    nested_model_table,
)
from brainlsap.evaluation.comparison import (
    adjust_p_values,
    chance_p_values,
    compute_auc_bounds,
    compute_bounds_by_count_score,
    compute_difference_and_interval,
    wilson_interval,
)
from brainlsap.evaluation.models import NESTED_RIDGES
from brainlsap.evaluation.scores import SCORES, Predictions
from brainlsap.evaluation.splits import list_person_blocks, permute_row_indices
from brainlsap.exceptions import ParameterError
from brainlsap.report import score_table


def test_the_t_test_is_students_with_a_wider_error():
    d = np.random.default_rng(0).normal(0.1, 0.2, 10)
    plain = ttest_1samp(d, 0)
    assert corrected_t_test(d, 1.0, 0.0).p_value == pytest.approx(plain.pvalue)
    wider = corrected_t_test(d, 80, 20)
    assert wider.t == pytest.approx(plain.statistic / np.sqrt(1 + 10 * 20 / 80))
    assert wider.low < wider.difference < wider.high
    # folds that tie tell of no spread: no interval, and a test of no difference only
    for tied, p_value in (
        ([1e-17, 0, 0], 1),
        ([0.3, 0.1 + 0.2], np.nan),
        ([0.1], np.nan),
    ):
        found = corrected_t_test(tied, 4, 1)
        np.testing.assert_equal([found.low, found.high], [np.nan, np.nan])
        np.testing.assert_equal(found.p_value, p_value)


def test_chance_is_labels_exchanged_between_people(example_evaluation):
    rows = example_evaluation.predictions
    right = rows.assign(predicted=rows["truth"])
    sure = replace(example_evaluation, predictions=right)
    assert chance_p(sure, "LSAP-C", 199) == 1 / 200
    constant = rows.assign(predicted=rows["truth"].iloc[0])
    assert chance_p(replace(sure, predictions=constant), "LSAP-C", 50) == 1
    # as often as it should where predictions know nothing
    rng, found = np.random.default_rng(0), []
    for _ in range(60):
        drawn = rng.choice(rows["truth"].unique(), len(rows))
        known = replace(sure, predictions=rows.assign(predicted=drawn))
        found.append(chance_p(known, "LSAP-C", 99))
    assert 0.3 < np.mean(found) < 0.7


def test_models_share_permutations_and_exchanges(example_evaluation):
    rows = example_evaluation.predictions
    assert len(example_evaluation.models) > 2
    p_values = chance_p_values(example_evaluation, example_evaluation.models, 99)
    for model in example_evaluation.models:
        assert chance_p(example_evaluation, model, 99) == p_values[model]
    # a comparison does not depend on which other models there are
    reference, other = example_evaluation.models[0], example_evaluation.models[-1]
    pair = replace(
        example_evaluation,
        predictions=rows[rows["model"].isin([reference, other])],
        fits=example_evaluation.fits.query("model in [@reference, @other]"),
    )
    in_all = compare_by_person(example_evaluation, n_draws=99).set_index("model")
    in_pair = compare_by_person(pair, n_draws=99).set_index("model")
    assert in_all.loc[other, "p_value"] == in_pair.loc[other, "p_value"]


def test_permutations_agree_with_a_slow_truth(example_evaluation):
    model = example_evaluation.models[0]
    rows = example_evaluation.predictions.query("model == @model")
    truth, predicted = rows["truth"].to_numpy(), rows["predicted"].to_numpy()
    blocks = list_person_blocks(pd.factorize(rows["participant"], sort=True)[0])
    rng = np.random.default_rng(0)
    labels = [truth] + [truth[permute_row_indices(blocks, rng)] for _ in range(50)]
    scores = [
        np.mean([(predicted == name)[drawn == name].mean() for name in set(truth)])
        for drawn in labels
    ]
    n_exceeding = np.sum(np.array(scores[1:]) >= scores[0] - 1e-12)
    assert chance_p(example_evaluation, model, 50) == (1 + n_exceeding) / 51


def test_p_values_are_corrected_for_how_many_there_are():
    p = [0.01, 0.04, np.nan, 0.03]
    np.testing.assert_allclose(adjust_p_values(p), [0.03, 0.06, np.nan, 0.06])


def test_one_test_compares_a_model_with_others_by_people(example_evaluation):
    table = compare_models(example_evaluation)
    assert list(table["model"]) == list(example_evaluation.models[1:])
    one, rng, beyond = replace(example_evaluation), np.random.default_rng(0), 0
    scores, can_be = example_evaluation.scores(), np.linspace(-1, 1, 41)
    for _ in range(20):
        row = compare_models(one).set_index("model").loc["linear SVM"]
        told = scores.pivot(index=["repeat", "fold"], columns="model")
        told = told["balanced_accuracy"]
        difference = told["linear SVM"] - told["LSAP-C"]
        # half of forty people on each side, whatever their number of scans
        wanted = corrected_t_test(difference, 20, 20)
        assert row["p_value"] == pytest.approx(wanted.p_value)
        assert row["difference"] == pytest.approx(difference.mean())
        # the interval ends where differences do, and holds the truth as often
        assert -1 <= row["low"] < row["high"] <= 1
        held = [(x.low <= can_be) & (can_be <= x.high) for x in (row, wanted)]
        np.testing.assert_array_equal(*held)
        beyond += wanted.low < -1 or wanted.high > 1
        scores["balanced_accuracy"] = rng.uniform(size=len(scores))
        one.__dict__["_scores"] = scores
    assert beyond
    with pytest.raises(ParameterError, match="reference must be one of"):
        compare_models(example_evaluation, reference="nobody")


@pytest.mark.parametrize("score", ["balanced_accuracy", "brier"])
def test_differences_are_model_minus_the_reference_of_the_table(
    example_evaluation, score
):
    predictions = example_evaluation.predictions.copy()
    is_exact = predictions["model"] == "logistic regression"
    probabilities = predictions.filter(regex="^p_").columns
    for column in probabilities:
        is_class = predictions["truth"] == column.removeprefix("p_")
        predictions.loc[is_exact, column] = is_class[is_exact].astype(float)
    predictions["predicted"] = predictions["predicted"].mask(
        is_exact, predictions["truth"]
    )
    names = ["ridge without connectome", "logistic regression"]
    fits = example_evaluation.fits.query("model in @names")
    evaluation = replace(example_evaluation, predictions=predictions, fits=fits)
    means = evaluation.scores().groupby("model")[score].mean()
    for reference, verdict in zip(names, ("yes", "no"), strict=True):
        (row,) = compare_models(evaluation, score, reference=reference).itertuples()
        assert {row.model, row.reference} == {*names}
        assert row.reference == reference
        expected = means[row.model] - means[reference]
        assert row.difference == pytest.approx(expected)
        assert row.better == verdict


def test_the_t_test_counts_the_people_who_were_trained_on(small_cohort):
    # 12 people of 40 are trained on in each fold, and 12 others are tested
    folds = GroupShuffleSplit(6, train_size=0.3, test_size=0.3, random_state=0)
    models = {
        "ridge": make_models("ridge without connectome")["ridge without connectome"]
    }
    models["prior"] = DummyClassifier()
    evaluation = cross_validate(models, small_cohort, folds, baselines=False)
    scores = evaluation.scores().pivot(
        index="fold", columns="model", values="balanced_accuracy"
    )
    expected = corrected_t_test(scores["prior"] - scores["ridge"], 12, 12)
    comparison = compare_models(evaluation).iloc[0]
    assert comparison["low"] == pytest.approx(expected.low)
    assert comparison["p_value"] == pytest.approx(expected.p_value)
    # an evaluation saved without these numbers is taken to train on all others
    older = replace(evaluation, fits=evaluation.fits.drop(columns="n_train_people"))
    expected = corrected_t_test(scores["prior"] - scores["ridge"], 28, 12)
    assert compare_models(older)["p_value"][0] == pytest.approx(expected.p_value)


def test_a_choice_that_fell_on_one_ridge_throughout_counts_once(example_evaluation):
    rows = example_evaluation.predictions
    chosen = rows[rows["model"] == NESTED_RIDGES[0]].assign(model="LSAP-R")
    rows = pd.concat([rows[rows["model"] != "LSAP-R"], chosen])
    one = replace(example_evaluation, predictions=rows)
    assert one.twin_of_model["LSAP-R"] == NESTED_RIDGES[0]
    found = compare_models(one).set_index("model")
    without = found.drop(list(one.twin_of_model))
    assert set(found["n_comparisons"]) == {len(without)}
    np.testing.assert_allclose(without["p_holm"], adjust_p_values(without["p_value"]))
    assert found.loc["LSAP-R", "p_holm"] == found.loc[NESTED_RIDGES[0], "p_holm"]
    itself = compare_models(one, reference="LSAP-R").set_index("model")
    assert itself.loc[NESTED_RIDGES[0], ["p_holm", "better"]].tolist() == [1, "unclear"]
    by_person = compare_by_person(one, "LSAP-R").set_index("model")
    test_columns = ["difference", "low", "high", "p_holm"]
    assert by_person.loc[NESTED_RIDGES[0], test_columns].tolist() == [0, 0, 0, 1]
    has_interval = by_person["low"] < by_person["high"]
    is_same = [one.have_same_predictions("LSAP-R", name) for name in by_person.index]
    assert list(has_interval) == [not same for same in is_same]
    remark = score_table(one).set_index("model")["remark"]
    assert remark["LSAP-R"] == f"same predictions as {NESTED_RIDGES[0]}"


def test_one_model_rounded_otherwise_counts_once_and_other_probabilities_do_not(
    example_evaluation,
):
    rows = example_evaluation.predictions
    first, *_ = example_evaluation.models
    columns = rows.filter(regex="^p_").columns
    for change, is_same in ((1e-7, True), (1e-2, False)):
        other = rows[rows["model"] == first].assign(model="LSAP-R")
        other[columns] += change
        both = pd.concat([rows[rows["model"] != "LSAP-R"], other])
        same = replace(example_evaluation, predictions=both).twin_of_model
        assert (same.get("LSAP-R") == first) == is_same


def test_one_class_for_everybody_is_remarked(example_evaluation):
    rows = example_evaluation.predictions
    name, label = rows["model"].iloc[0], rows["predicted"].iloc[0]
    constant = rows.assign(
        predicted=rows["predicted"].mask(rows["model"] == name, label)
    )
    one = replace(example_evaluation, predictions=constant)
    remark = score_table(one).set_index("model")["remark"]
    assert remark[name] == f"predicts {label} for everybody"
    assert (remark == "").sum() > 2


def test_a_bootstrap_draw_is_the_score_of_the_people_drawn(example_evaluation):
    name = "logistic regression"
    found = bootstrap_score_table(example_evaluation, name, 150, 7).set_index("score")
    rows = example_evaluation.predictions.query("model == @name")
    people = np.unique(rows["participant"])
    by_person = dict(list(rows.groupby("participant")))
    rng, draws = np.random.default_rng(7), []
    share = np.full(len(people), 1 / len(people))
    for times in rng.multinomial(len(people), share, 150):
        chosen = np.repeat(people, times)
        sample = pd.concat([by_person[one] for one in chosen])
        draws.append((sample["truth"] == sample["predicted"]).mean())
    accuracy = (rows["truth"] == rows["predicted"]).mean()
    assert found.loc["accuracy", "estimate"] == pytest.approx(accuracy)
    wanted = np.quantile(draws, [0.025, 0.975])
    np.testing.assert_allclose(found.loc["accuracy", ["low", "high"]], wanted)


def test_draws_in_blocks_are_the_draws_at_once(example_evaluation, monkeypatch):
    name = example_evaluation.models[0]

    def compute():
        comparison._draw_bootstrap_counts.cache_clear()
        return (
            bootstrap_score_table(example_evaluation, name, 50),
            class_table(example_evaluation, name, 50),
            compare_by_person(example_evaluation, n_draws=50),
        )

    at_once = compute()
    monkeypatch.setattr(comparison, "_VALUES_AT_ONCE", 200)
    for table, table_at_once in zip(compute(), at_once, strict=True):
        pd.testing.assert_frame_equal(table, table_at_once, rtol=1e-12)


def test_no_interval_excludes_its_estimate_and_no_score_is_made_up(example_evaluation):
    of_probability = {name for name in SCORES if SCORES[name].of_probability}
    for name in example_evaluation.models:
        found = bootstrap_score_table(example_evaluation, name, 40).set_index("score")
        without = of_probability if name == "linear SVM" else set()
        assert set(found.index[found["estimate"].isna()]) == without
        found = found.dropna()
        assert (found["low"] <= found["estimate"]).all()
        assert (found["estimate"] <= found["high"]).all()


def test_guessing_has_an_auc_of_half_and_intervals_of_some_width(example_evaluation):
    found = bootstrap_score_table(example_evaluation, "majority class", 50)
    auc = found.set_index("score").loc["auc"]
    assert auc[["estimate", "low", "high"]].tolist() == [0.5, 0.5, 0.5]
    rates = class_table(example_evaluation, "majority class", 50).set_index("class")
    never = rates.loc["AD"]
    assert never["sensitivity"] == 0 == never["sensitivity_low"]
    n = never["people"]
    assert never["sensitivity_high"] == pytest.approx(wilson_interval(0, n)[1])
    assert wilson_interval(0, 14)[1] == pytest.approx(0.215, abs=1e-3)
    truth = binomtest(5, 14).proportion_ci(method="wilson")
    assert wilson_interval(5, 14) == pytest.approx(tuple(truth))
    assert wilson_interval(5.5, 14)[0] > truth.low
    assert wilson_interval(14, 14)[0] == pytest.approx(1 - 0.215, abs=1e-3)


CODES = {
    "two classes": [0] * 6 + [1] * 9,
    "a class of two people": [0] * 12 + [1] * 2,
    "five stages": [0] * 4 + [1] * 5 + [2] * 6 + [3] * 4 + [4] * 3,
}


def answer(codes, predicted, values=None, ordered=True, n_visits=1):
    """Return predictions in two folds, with certain probabilities, and their people."""
    codes, predicted = np.repeat([codes, predicted], n_visits, axis=1)
    probability = np.eye(codes.max() + 1)[predicted] if values is None else values
    person = np.repeat(np.arange(len(codes) // n_visits), n_visits)
    about = codes, predicted, probability, probability, person % 2
    return Predictions(*about, int(codes.max()) + 1, ordered), person


@pytest.mark.parametrize("codes", CODES.values(), ids=CODES)
@pytest.mark.parametrize("ordered", [True, False])
def test_perfect_scores_have_bounds_that_a_perfect_study_does_not_exclude(
    codes, ordered
):
    predictions, person = answer(codes, codes, ordered=ordered)
    bounds = compute_bounds_by_count_score(predictions, person)
    assert {*bounds} == {
        score_name
        for score_name, score in SCORES.items()
        if score.of_ranking is None and (ordered or not score.needs_order)
    }
    # nothing else is known of a class than its own people: Clopper and Pearson
    n_people = np.bincount(codes)
    rarest = n_people.argmin()
    error_rate = 1 - 0.025 ** (1 / n_people[rarest])
    assert bounds["balanced_accuracy"][0] <= 1 - error_rate / len(n_people) + 1e-12
    # a truth with the same errors in all classes under which 2.5 % are perfect
    together = 1 - 0.025 ** (1 / len(codes))
    assert bounds["balanced_accuracy"][0] <= 1 - together + 1e-12
    assert bounds["f1"][0] <= 1 - together + 1e-12
    assert bounds["accuracy"] == pytest.approx((1 - together, 1))
    assert 0 < bounds["balanced_accuracy"][0] < 1 == bounds["balanced_accuracy"][1]
    if ordered:
        assert bounds["stage_error"][0] == 0
        assert bounds["stage_error"][1] >= together - 1e-12
        assert bounds["kappa"][0] < 1 - together
    low, high = compute_auc_bounds(predictions, person, 1.0, 1)
    assert 0 < low < 1 == high
    # visits tell nothing more of people
    again = answer(codes, codes, ordered=ordered, n_visits=3)
    of_visits = pd.DataFrame(compute_bounds_by_count_score(*again))
    pd.testing.assert_frame_equal(of_visits, pd.DataFrame(bounds))
    assert compute_auc_bounds(*again, 1.0, 1) == (low, high)


def test_only_scores_that_no_sample_could_change_have_no_width():
    codes = np.array([0] * 6 + [1] * 6)
    # all are wrong: as unsure as where all are right
    wrong = compute_bounds_by_count_score(*answer(codes, 1 - codes))
    right = compute_bounds_by_count_score(*answer(codes, codes))
    assert wrong["balanced_accuracy"][0] == 0
    width = 1 - right["balanced_accuracy"][0]
    assert wrong["balanced_accuracy"][1] == pytest.approx(width)
    # one of three classes is always taken for the next
    codes = np.arange(12) % 3
    bounds = compute_bounds_by_count_score(*answer(codes, np.minimum(codes, 1)))
    low, high = bounds["balanced_accuracy"]
    assert low < 2 / 3 < high
    constant, person = answer(codes, codes * 0, np.full((12, 3), 1 / 3))
    assert compute_bounds_by_count_score(constant, person) == {}
    assert compute_auc_bounds(constant, person, 0.5, 1) == (0.5, 0.5)


def test_a_perfect_model_has_no_interval_of_width_zero(example_evaluation):
    predictions = example_evaluation.predictions.copy()
    predictions["predicted"] = predictions["truth"]
    for column in predictions.filter(regex="^p_").columns:
        is_class = predictions["truth"] == column.removeprefix("p_")
        predictions[column] = is_class.astype(float)
    perfect = replace(example_evaluation, predictions=predictions)
    table = bootstrap_score_table(perfect, "logistic regression", 50).set_index("score")
    scores = [SCORES[score_name] for score_name in table.index]
    n_classes = len(perfect.cohort.classes)
    lowest, highest = np.transpose(
        [score.lowest_and_highest(n_classes) for score in scores]
    )
    is_lower_better = np.array([score.lower_is_better for score in scores])
    best_values = np.where(is_lower_better, lowest, highest)
    best_bounds = np.where(is_lower_better, table["low"], table["high"])
    assert (table["estimate"] == best_values).all()
    assert (best_bounds == best_values).all()
    relative_width = (table["high"] - table["low"]) / (highest - lowest)
    assert (relative_width > 0.01).all()


def test_a_failed_model_has_no_score_and_no_comparison(example_evaluation):
    fits = example_evaluation.fits.copy()
    first = fits.index[fits["model"] == "linear SVM"][0]
    fits.loc[first, "failed"] = "it did not learn its training data"
    failed = replace(example_evaluation, fits=fits)
    summary = failed.summary().query("model == 'linear SVM'")
    assert summary["mean"].isna().all()
    assert set(summary["n_failed"]) == {1}
    table = compare_models(failed).set_index("model")
    assert np.isnan(table.loc["linear SVM", "p_holm"])
    assert np.isfinite(table.loc["majority class", "p_holm"])
    assert bootstrap_score_table(failed, "linear SVM", 20)["estimate"].isna().all()


def test_steps_between_nested_ridges_are_judged_by_exchanging_people(
    example_evaluation,
):
    told = example_evaluation.predictions
    below, above = (
        told[told["model"] == "majority class"].assign(model=name)
        for name in NESTED_RIDGES[:2]
    )
    above["predicted"] = above["truth"]
    predictions = pd.concat([below, above])
    two = replace(example_evaluation, predictions=predictions)
    step = nested_model_table(two, 200).iloc[0]
    assert (step["below"], step["above"]) == NESTED_RIDGES[:2]
    assert step["adds"] == "averaging along the connectome"
    assert (step["score_below"], step["score_above"]) == pytest.approx((0.2, 1))
    assert step["p_value"] == pytest.approx(1 / 201)
    assert step["difference"] == pytest.approx(0.8)
    assert step["low"] < 0.8 < step["high"]
    # four people of forty, which chance alone favours once in eight times
    people = below.query("truth != predicted")["participant"].unique()
    for n, p_value in ((0, 1), (4, pytest.approx(0.125, abs=0.02))):
        above["predicted"] = below["predicted"]
        few = above["participant"].isin(people[:n])
        above.loc[few, "predicted"] = above.loc[few, "truth"]
        few = replace(two, predictions=pd.concat([below, above]))
        step = nested_model_table(few).iloc[0]
        assert (step["p_value"], step["adds"]) == (p_value, "unclear")
        if n:
            assert step["low"] < 0 < step["high"]
        else:  # The predictions are the same.
            assert (step["low"], step["high"]) == (0, 0)
    assert nested_model_table(replace(two, fits=two.fits.assign(failed="yes"))).empty
    steps = nested_model_table(example_evaluation)[["below", "above"]]
    assert [*map(tuple, steps.to_numpy())] == [*itertools.pairwise(NESTED_RIDGES)]


def test_models_are_compared_by_person_as_nested_ridges_are(example_evaluation):
    steps = nested_model_table(example_evaluation, 400)
    simplest, next_model = NESTED_RIDGES[:2]
    pair = example_evaluation.fits["model"].isin([simplest, next_model])
    two = replace(example_evaluation, fits=example_evaluation.fits[pair])
    row = compare_by_person(two, next_model, 400).iloc[0]
    assert (row["reference"], row["model"]) == (next_model, simplest)
    numbers = ["difference", "low", "high", "p_value"]
    expected = steps.set_index("above").loc[next_model, numbers]
    assert row[numbers].tolist() == pytest.approx(expected.tolist())
    assert row["p_holm"] == row["p_value"]  # a single comparison
    # The difference is that of the scores of all test scans.
    estimates = [
        bootstrap_score_table(example_evaluation, name, 10).set_index("score")
        for name in (next_model, simplest)
    ]
    after, before = (table.loc["balanced_accuracy", "estimate"] for table in estimates)
    assert row["difference"] == pytest.approx(after - before)


def test_comparisons_by_person_are_corrected_and_skip_failed_models(
    example_evaluation,
):
    table = compare_by_person(example_evaluation, n_draws=200).set_index("model")
    main_model = example_evaluation.models[0]
    assert list(table.index) == list(example_evaluation.models[1:])
    repeated_models = {*example_evaluation.twin_of_model}
    n_distinct = len(set(example_evaluation.models) - repeated_models)
    assert (table["n_comparisons"] == n_distinct - 1).all()
    assert (table["p_holm"] >= table["p_value"] - 1e-12).all()
    failed_name = "linear SVM"
    is_failed = example_evaluation.fits["model"] == failed_name
    fits = example_evaluation.fits.assign(failed=np.where(is_failed, "yes", ""))
    failed = compare_by_person(replace(example_evaluation, fits=fits), main_model, 200)
    assert np.isnan(failed.set_index("model").loc[failed_name, "p_holm"])
    with pytest.raises(ParameterError, match="reference"):
        compare_by_person(example_evaluation, "no such model")


def test_the_interval_of_a_difference_of_two_samples_holds_the_truth():
    first, second = (0.7, 0.6, 0.8), (0.5, 0.3, 0.7)
    difference, low, high = compute_difference_and_interval(first, second)
    # Symmetric intervals: their half-widths add as standard errors do.
    assert (difference, low, high) == pytest.approx(
        (0.2, 0.2 - np.hypot(0.1, 0.2), 0.2 + np.hypot(0.1, 0.2))
    )
    swapped = compute_difference_and_interval(second, first)
    assert swapped == pytest.approx((-difference, -high, -low))
    rng = np.random.default_rng(0)
    n_people, shares = np.array([60, 40]), np.array([0.9, 0.75])
    n_held = 0
    for counts in rng.binomial(n_people, shares, (2000, 2)):
        intervals = [
            (n_successes / n, *wilson_interval(n_successes, n))
            for n_successes, n in zip(counts, n_people, strict=True)
        ]
        _, low, high = compute_difference_and_interval(*intervals)
        n_held += low <= shares[0] - shares[1] <= high
    assert 0.93 < n_held / 2000 < 0.97


def test_probabilities_that_are_right_are_called_wrong_in_one_of_twenty(monkeypatch):
    monkeypatch.setattr(comparison, "N_CALIBRATION_DRAWS", 99)
    rng = np.random.default_rng(0)
    person_codes = np.repeat(np.arange(40), rng.integers(1, 3, 40))
    n_scans, tested_parameter_mask = len(person_codes), np.ones((3, 2), bool)
    log_odds = 2 * rng.normal(size=(40, 3))[person_codes]
    log_odds += 0.3 * rng.normal(size=(n_scans, 3))
    P = np.exp(log_odds) / np.exp(log_odds).sum(axis=1, keepdims=True)
    person_probabilities = np.stack(
        [P[person_codes == person].mean(axis=0) for person in range(40)]
    )
    n_wrong = 0
    for _ in range(200):
        y = [rng.choice(3, p=share) for share in person_probabilities]
        y = np.array(y)[person_codes]
        p_values = comparison._compute_calibration_p_values(
            P, y, person_codes, tested_parameter_mask
        )
        n_wrong += p_values.min() <= 0.05
    assert n_wrong <= 20
    too_extreme = P**4 / (P**4).sum(axis=1, keepdims=True)
    p_values = comparison._compute_calibration_p_values(
        too_extreme, y, person_codes, tested_parameter_mask
    )
    assert p_values[:, 0].min() < 0.05
    tested_parameter_mask[0] = False
    p_values = comparison._compute_calibration_p_values(
        P, y, person_codes, tested_parameter_mask
    )
    assert np.isnan(p_values[0]).all()
    assert np.isfinite(p_values[1:]).all()
