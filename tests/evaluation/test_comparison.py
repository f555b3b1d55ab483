import numpy as np
import pytest
from scipy.stats import ttest_rel
from sklearn.dummy import DummyClassifier

from brainlsap.evaluation import (
    adjust_p_values,
    compare_models,
    corrected_t_test,
    cross_validate,
)
from brainlsap.exceptions import ParameterError


@pytest.fixture
def evaluation(cohort, nearest_mean):
    models = {
        "ours": nearest_mean,
        "prior": DummyClassifier(),
        "random": DummyClassifier(strategy="uniform", random_state=0),
    }
    return cross_validate(models, cohort, 3, baselines=False, n_repeats=2)


def test_without_correction_it_is_the_paired_t_test():
    one, other = np.random.default_rng(0).normal(size=(2, 10))
    found = corrected_t_test(one - other, 90, 0)
    expected = ttest_rel(one, other)
    assert found.t == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)


def test_correction_is_that_of_nadeau_and_bengio():
    d = np.array([0.1, 0.3, 0.2, 0.2, 0.0])
    found = corrected_t_test(d, 80, 20)
    assert found.t == pytest.approx(0.16 / np.sqrt((0.2 + 0.25) * d.var(ddof=1)))


def test_folds_that_share_training_people_need_the_correction():
    rng, false = np.random.default_rng(0), {"corrected": 0, "naive": 0}
    for _ in range(200):
        # Folds share what their training sets share: half of the variance.
        folds = rng.normal(size=(5, 2)) + 1.0 * rng.normal(size=(1, 2))
        d = folds[:, 0] - folds[:, 1]
        false["corrected"] += corrected_t_test(d, 50, 50).p_value < 0.05
        false["naive"] += corrected_t_test(d, 50, 0).p_value < 0.05
    assert false["corrected"] < 0.6 * false["naive"]


@pytest.mark.parametrize(
    ("differences", "p_value"),
    [([0.0, 0.0, 0.0], 1.0), ([0.5, 0.5], 0.0), ([0.5], np.nan), ([], np.nan)],
)
def test_differences_without_spread(differences, p_value):
    found = corrected_t_test(differences, 3, 1)
    np.testing.assert_equal(found.p_value, p_value)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("holm", [0.04, 0.09, 0.09, 0.09, np.nan]),
        ("fdr", [0.04, 0.04, 0.04, 0.045, np.nan]),
        ("none", [0.01, 0.03, 0.03, 0.045, np.nan]),
    ],
)
def test_many_p_values_are_corrected(method, expected):
    p = [0.01, 0.03, 0.03, 0.045, np.nan]
    np.testing.assert_allclose(adjust_p_values(p, method), expected)
    np.testing.assert_allclose(adjust_p_values(p[::-1], method), expected[::-1])


def test_a_better_model_is_told_from_others(evaluation):
    table = compare_models(evaluation, n_draws=300).set_index("model")
    assert list(table.index) == ["prior", "random"]
    assert (table["wins"] == 6).all()
    assert (table["p_adjusted"] < 0.05).all()
    assert (table["p_value"] <= table["p_adjusted"]).all()
    assert (table["p_naive"] < table["p_value"]).all()
    assert (table["low"] > 0).all()
    assert (table["detectable"] < table["difference"]).all()
    ours = evaluation.main.scores()["balanced_accuracy"].mean()
    assert table.loc["prior", "difference"] == pytest.approx(ours - 0.5)


def test_any_model_can_be_the_reference(evaluation):
    table = compare_models(evaluation, "auc", reference="prior", n_draws=50)
    assert list(table["model"]) == ["ours", "random"]
    assert table["difference"][0] < 0


def test_one_model_has_nobody_to_be_compared_with(cohort):
    alone = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    assert compare_models(alone, n_draws=10).empty


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"score": "beauty"}, "score must be one of .*got 'beauty'"),
        ({"correction": "hope"}, "correction must be one of .*got 'hope'"),
    ],
)
def test_unknown_words(evaluation, asked, message):
    with pytest.raises(ParameterError, match=message):
        compare_models(evaluation, **asked)
    with pytest.raises(ParameterError, match="method must be one of"):
        adjust_p_values([0.1], "hope")
