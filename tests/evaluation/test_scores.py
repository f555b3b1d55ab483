"""What every registered score must satisfy, and what a further one gets by itself."""

from dataclasses import replace

import numpy as np
import pytest

from brainlsap.evaluation import bootstrap_score_table, compare_models, main_score_names
from brainlsap.evaluation.comparison import compute_bounds_by_count_score
from brainlsap.evaluation.scores import (
    SCORES,
    Predictions,
    Score,
    accuracy,
    count_scores_by_name,
    fold_scores,
    get_score,
    title_by_score_name,
    weighted_confusion_counts,
    weighted_scores_by_name,
)
from brainlsap.exceptions import ParameterError
from brainlsap.report import score_table
from brainlsap.report.tables import find_title_by_score, interval_table

N_ROWS = 120


def draw_predictions(seed=0, n_classes=4, probability=None, actual=None):
    """Return ordered predictions of 120 scans in two folds, mostly right."""
    rng = np.random.default_rng(seed)
    if actual is None:
        actual = rng.integers(n_classes, size=N_ROWS)
    if probability is None:
        probability = rng.dirichlet(np.ones(n_classes), N_ROWS)
        probability[np.arange(N_ROWS), actual] += rng.random(N_ROWS)
        probability /= probability.sum(axis=1, keepdims=True)
    return Predictions(
        actual_codes=actual,
        predicted_codes=probability.argmax(axis=1),
        class_probabilities=probability,
        ranking_scores=probability,
        fold_numbers=np.arange(N_ROWS) % 2,
        n_classes=n_classes,
        is_ordered=True,
    )


def reorder(predictions, order):
    rows = {name: getattr(predictions, name)[order] for name in Predictions._fields[:5]}
    return predictions._replace(**rows)


def score_once(predictions):
    values = weighted_scores_by_name(predictions, np.ones((1, N_ROWS)))
    return {name: values[name].item() for name in SCORES}


def best_value(score, n_classes):
    lowest, highest = score.lowest_and_highest(n_classes)
    return lowest if score.lower_is_better else highest


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_each_score_is_in_its_range_whatever_the_order_of_rows(name, n_classes):
    lowest, highest = get_score(name).lowest_and_highest(n_classes)
    for seed in range(5):
        predictions = draw_predictions(seed, n_classes)
        order = np.random.default_rng(seed).permutation(N_ROWS)
        value = score_once(predictions)[name]
        assert lowest <= value <= highest
        assert score_once(reorder(predictions, order))[name] == pytest.approx(value)


def test_every_score_has_a_title_of_its_own():
    for n_classes in (2, 3):
        titles = [score.title_text(n_classes) for score in SCORES.values()]
        repeated = {title for title in titles if titles.count(title) > 1}
        assert not repeated, f"change one of the titles {repeated} in SCORES"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_score_that_is_shown_repeats_another(n_classes):
    names = [*title_by_score_name(n_classes, is_ordered=True)]
    all_scores = [score_once(draw_predictions(k, n_classes)) for k in range(12)]
    values = np.array([[scores[name] for scores in all_scores] for name in names])
    is_same = np.abs(np.corrcoef(values)) > 1 - 1e-9
    repeated = [(names[i], names[j]) for i, j in np.argwhere(np.triu(is_same, 1))]
    assert not repeated, (
        f"of {n_classes} classes, one of each of {repeated} gives the other: set "
        "min_classes="
    )


def test_the_explanation_of_models_without_probabilities_names_every_such_score():
    sentence = SCORES["ece"].explanation.split("A model without probabilities has")[1]
    for name, score in SCORES.items():
        if score.of_probability and name != "ece":
            assert score.title in sentence, f"name {score.title} beside the Brier score"


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_each_score_is_best_at_perfect_predictions(name, n_classes):
    score = get_score(name)
    actual = np.arange(N_ROWS) // 2 % n_classes  # every class in both folds
    certain = np.eye(n_classes)
    perfect = draw_predictions(
        actual=actual, n_classes=n_classes, probability=certain[actual]
    )
    is_best = score_once(perfect)[name] == pytest.approx(best_value(score, n_classes))
    assert is_best, f"correct lower_is_better or range of {name} in SCORES"
    wrong = perfect._replace(
        predicted_codes=n_classes - 1 - actual,
        class_probabilities=certain[::-1][actual],
        ranking_scores=certain[::-1][actual],
    )
    gap = score_once(wrong)[name] - score_once(perfect)[name]
    worst_step = (
        score.lowest_and_highest(n_classes)[1] - score.lowest_and_highest(n_classes)[0]
    )
    is_worse = gap > 0 if score.lower_is_better else gap < 0
    # between two classes every prediction is within one stage
    assert is_worse or n_classes < score.min_classes
    assert abs(gap) <= worst_step + 1e-12


def check_certain_formula(score, n_classes, seed):
    """Assert that both formulas of a score agree at probabilities 0 and 1."""
    rng = np.random.default_rng(seed)
    actual, predicted = rng.integers(n_classes, size=(2, N_ROWS))
    certain = np.eye(n_classes)[predicted]
    predictions = draw_predictions(
        n_classes=n_classes, probability=certain, actual=actual
    )
    row_weights = rng.integers(3, size=(4, N_ROWS)).astype(float)
    counts = weighted_confusion_counts(predictions, row_weights)
    np.testing.assert_allclose(
        score.of_certain_counts(counts),
        score.of_probability(predictions, certain, row_weights),
        atol=1e-12,
    )


@pytest.mark.parametrize("name", [n for n in SCORES if SCORES[n].of_probability])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_counts_give_the_scores_of_certain_probabilities(name, n_classes):
    check_certain_formula(SCORES[name], n_classes, seed=n_classes)


def test_a_wrong_formula_of_certain_probabilities_is_noticed():
    half = replace(SCORES["brier"], of_certain_counts=lambda c: 1 - accuracy(c))
    with pytest.raises(AssertionError):
        check_certain_formula(half, n_classes=3, seed=0)


def test_every_interval_holds_its_estimate_and_stays_in_range(example_evaluation):
    n_classes = len(example_evaluation.cohort.classes)
    is_right = example_evaluation.predictions.copy()
    is_right["predicted"] = is_right["truth"]
    perfect = replace(example_evaluation, predictions=is_right)
    for evaluation in (example_evaluation, perfect):
        for model in ("LSAP-C", "majority class"):
            table = bootstrap_score_table(evaluation, model, 40).set_index("score")
            assert list(table.index) == list(SCORES)
            for name, row in table.dropna().iterrows():
                lowest, highest = SCORES[name].lowest_and_highest(n_classes)
                values = [lowest, row["low"], row["estimate"], row["high"], highest]
                assert values == sorted(values), (model, name)


PERCENT = Score(
    title="accuracy in percent",
    explanation="A score.",
    range=(0.0, 100.0),
    of_counts=lambda counts: 100 * accuracy(counts),
    interval="proportion",
    is_main=True,
)


def test_a_registered_score_is_right_everywhere(example_evaluation, monkeypatch):
    monkeypatch.setitem(SCORES, "percent", PERCENT)
    evaluation = replace(example_evaluation)  # nothing computed yet
    model = "logistic regression"
    folds = evaluation.scores()
    np.testing.assert_allclose(folds["percent"], 100 * folds["accuracy"])
    scaled = ["difference", "low", "high"]
    percent = compare_models(evaluation, "percent")
    fraction = compare_models(evaluation, "accuracy")
    # as far as a difference can reach: 100, and not 1
    np.testing.assert_allclose(percent[scaled], 100 * fraction[scaled])
    assert percent["high"].max() > 1
    np.testing.assert_allclose(percent["p_value"], fraction["p_value"])
    assert percent["better"].equals(fraction["better"])
    intervals = bootstrap_score_table(evaluation, model, 60).set_index("score")
    bounds = ["estimate", "low", "high"]
    np.testing.assert_allclose(
        intervals.loc["percent", bounds].to_numpy(float),
        100 * intervals.loc["accuracy", bounds].to_numpy(float),
    )
    # tables
    assert "percent" in main_score_names()
    assert PERCENT.title in score_table(evaluation)
    assert PERCENT.title in interval_table(evaluation)
    assert PERCENT.title in find_title_by_score(evaluation).values()
    assert PERCENT.title in repr(evaluation)
    table_lines = repr(evaluation).splitlines()[1:]
    assert all(len(line) <= 100 for line in table_lines)  # the table is wrapped
    mean = evaluation.summary().set_index(["model", "score"]).loc[model, "mean"]
    assert mean["percent"] == pytest.approx(100 * mean["accuracy"])


def test_a_registered_score_has_wilson_and_exact_bounds(
    example_evaluation, monkeypatch
):
    monkeypatch.setitem(SCORES, "percent", PERCENT)
    monkeypatch.setitem(
        SCORES,
        "percent_error",
        Score(
            title="errors in percent",
            explanation="A score.",
            range=(0.0, 100.0),
            of_counts=lambda counts: 100 - 100 * accuracy(counts),
            lower_is_better=True,
        ),
    )
    for name in SCORES.keys() - {"accuracy", "percent", "percent_error"}:
        monkeypatch.delitem(SCORES, name)
    rows = example_evaluation.predictions.copy()
    rows["predicted"] = rows["truth"]
    perfect = replace(example_evaluation, predictions=rows)
    table = bootstrap_score_table(perfect, "logistic regression", 60).set_index("score")
    low, high = table.loc["accuracy", ["low", "high"]]
    assert table.loc["percent", ["low", "high"]].tolist() == pytest.approx(
        [100 * low, 100 * high]
    )
    errors = table.loc["percent_error"]
    assert errors["estimate"] == errors["low"] == 0 < errors["high"] < 50
    predictions = draw_predictions(n_classes=2)
    right = predictions._replace(predicted_codes=predictions.actual_codes)
    bounds = compute_bounds_by_count_score(right, np.arange(N_ROWS))
    assert bounds["percent"] == pytest.approx(
        tuple(100 * bound for bound in bounds["accuracy"])
    )


def test_a_comparison_of_a_score_where_less_is_better(example_evaluation, monkeypatch):
    error = Score(
        title="error",
        explanation="A score.",
        of_counts=lambda counts: 1 - accuracy(counts),
        lower_is_better=True,
    )
    monkeypatch.setitem(SCORES, "error", error)
    evaluation = replace(example_evaluation)
    errors = compare_models(evaluation, "error")
    accuracies = compare_models(evaluation, "accuracy")
    assert errors["better"].equals(accuracies["better"])
    assert find_title_by_score(evaluation)["error"] == "error (less is better)"


def test_a_score_that_no_draw_changes_has_no_interval(example_evaluation, monkeypatch):
    # Any draw has some error, but other people could all be predicted right.
    has_errors = Score(
        title="whether there are errors",
        explanation="A score.",
        of_counts=lambda counts: (accuracy(counts) < 1).astype(float),
    )
    monkeypatch.setitem(SCORES, "has errors", has_errors)
    evaluation = replace(example_evaluation)
    scores = bootstrap_score_table(evaluation, "linear SVM", 40).set_index("score")
    assert scores.loc["has errors", "estimate"] == 1
    assert scores.loc["has errors", ["low", "high"]].isna().all()
    # Predictions that do not depend on the scan cannot change.
    scores = bootstrap_score_table(evaluation, "majority class", 40).set_index("score")
    assert scores.loc["balanced_accuracy", "low"] == pytest.approx(
        scores.loc["balanced_accuracy", "high"]
    )


@pytest.mark.parametrize(
    ("change", "title"),
    [
        ({"lower_is_better": True}, "percent (less is better)"),
        ({"min_classes": 6}, None),
        ({"binary_title": "binary"}, "percent"),
    ],
)
def test_a_new_main_score_is_printed_where_it_has_a_meaning(
    example_evaluation, monkeypatch, change, title
):
    score = replace(PERCENT, title="percent", is_main=True, **change)
    monkeypatch.setitem(SCORES, "percent", score)
    column_names = replace(example_evaluation)._overview_line_and_table()[1].columns
    assert [name for name in column_names if "percent" in name] == [title] * bool(title)


def test_what_is_not_registered_is_refused(example_evaluation, monkeypatch):
    with pytest.raises(ParameterError, match="'percent'"):
        get_score("percent")
    with pytest.raises(ParameterError, match="'percent'"):
        compare_models(example_evaluation, "percent")
    with pytest.raises(ParameterError, match="'percent'"):
        score_table(example_evaluation, "percent")
    with pytest.raises(ParameterError, match="'ece'"):  # over all test scans only
        score_table(example_evaluation, "ece")
    assert "ece" not in fold_scores()
    for change, message in (
        ({"of_counts": None}, "0 formulas"),
        ({"of_ranking": lambda *_: 0}, "2 formulas"),
        ({"range": (1.0, 1.0)}, "the range 1 to 1"),
        ({"interval": "exact"}, "interval must be one of"),
        ({"is_main": True, "is_by_fold": False}, "means over folds"),
    ):
        with pytest.raises(ParameterError, match=message):
            replace(PERCENT, **change)
    for change, message in (
        ({"range": (0.0, 1.0)}, "outside its range 0 to 1"),
        ({"of_counts": lambda counts: counts.sum()}, "one value for each"),
    ):
        monkeypatch.setitem(SCORES, "percent", replace(PERCENT, **change))
        with pytest.raises(ParameterError, match=message):
            bootstrap_score_table(example_evaluation, "LSAP-C", 5)
    monkeypatch.delitem(SCORES, "percent")
    with pytest.raises(ParameterError, match="requires of_certain_counts"):
        replace(SCORES["brier"], of_certain_counts=None)
    monkeypatch.setitem(SCORES, "auc", replace(SCORES["auc"], range=(0.0, 0.01)))
    with pytest.raises(ParameterError, match=r"'auc' is .*outside its range 0 to 0.01"):
        bootstrap_score_table(example_evaluation, "LSAP-C", 5)


def test_rounding_beyond_a_range_is_clipped(monkeypatch):
    counts = np.eye(2)[None]
    for name, value in (("above", 1 + 4e-16), ("below", -4e-16), ("unknown", np.nan)):
        score = Score(
            title=name,
            explanation="A score.",
            of_counts=lambda _, value=value: np.array([value]),
        )
        monkeypatch.setitem(SCORES, name, score)
    values = count_scores_by_name(counts, is_ordered=True)
    assert (values["above"], values["below"]) == (1, 0)
    assert np.isnan(values["unknown"])


@pytest.mark.parametrize(
    "name", [name for name, score in SCORES.items() if not score.needs_order]
)
def test_a_score_that_depends_on_the_order_of_classes_says_so(name):
    first_counts = np.random.default_rng(0).integers(1, 9, (1, 4, 4)).astype(float)
    class_order = [2, 0, 3, 1]
    values = [
        count_scores_by_name(counts, is_ordered=True, is_certain=True).get(name)
        for counts in (first_counts, first_counts[:, class_order][:, :, class_order])
    ]
    if values[0] is not None:
        assert values[0] == pytest.approx(values[1]), f"{name} needs needs_order=True"


@pytest.mark.parametrize(
    "name", [name for name, score in SCORES.items() if score.interval == "proportion"]
)
def test_a_proportion_is_a_share_of_all_people(name):
    counts = np.random.default_rng(0).integers(1, 9, (2, 4, 4)).astype(float)
    n_people = counts.sum(axis=(1, 2))
    values = count_scores_by_name(counts, is_ordered=True, is_certain=True)[name]
    together = count_scores_by_name(
        counts.sum(axis=0)[None], is_ordered=True, is_certain=True
    )
    mean_value = np.average(values, weights=n_people)
    assert together[name][0] == pytest.approx(mean_value), (
        f"{name} is no share of all people; it needs interval='percentile'"
    )


@pytest.mark.parametrize("name", SCORES)
def test_a_class_that_does_not_occur_does_not_count(name):
    score = SCORES[name]
    formula = score.of_counts or score.of_certain_counts
    if formula is not None:
        counts = np.random.default_rng(0).integers(1, 9, (3, 4, 4)).astype(float)
        with_absent_class = np.pad(counts, ((0, 0), (0, 1), (0, 1)))
        np.testing.assert_allclose(formula(with_absent_class), formula(counts))
    rows = draw_predictions(n_classes=4)
    with_absent_class = rows._replace(
        class_probabilities=np.pad(rows.class_probabilities, ((0, 0), (0, 1))),
        ranking_scores=np.pad(rows.ranking_scores, ((0, 0), (0, 1))),
        n_classes=5,
    )
    value = score_once(with_absent_class)[name]
    assert value == pytest.approx(score_once(rows)[name]), (
        f"compute the mean of {name} over the classes that occur (mean_over_classes)"
    )


@pytest.mark.parametrize("name", SCORES)
def test_a_score_of_one_class_is_nan_or_depends_on_the_predictions(name):
    actual = np.zeros(N_ROWS, dtype=int)
    certain = np.eye(4)
    right, wrong = (
        score_once(
            draw_predictions(actual=actual, probability=certain[actual + predicted])
        )[name]
        for predicted in (0, 3)
    )
    assert right != wrong, (  # NaN differs from NaN.
        f"{name} is {right:g} of every prediction if all rows have one class: return "
        "NaN, because a class cannot be compared with others"
    )


@pytest.mark.parametrize("name", SCORES)
def test_every_score_is_explained_by_its_title(name):
    score = SCORES[name]
    for classes in (("CN", "AD"), ("CN", "MCI", "AD")):
        explanation = score.explanation_text(classes)
        title = score.title_text(len(classes)).removesuffix(" (less is better)")
        assert explanation.lower().startswith(f"{title.lower()} is ")
        assert explanation.endswith(".")
        assert "{" not in explanation
