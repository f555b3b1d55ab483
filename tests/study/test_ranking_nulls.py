import numpy as np
import pytest

from brainlsap.data import make_cohort
from brainlsap.evaluation import cross_validate
from brainlsap.exceptions import ParameterError
from brainlsap.model import LSAPClassifier
from brainlsap.study import permuted_scales, start_scales, untrained_scales
from brainlsap.study.ranking_nulls import refit_model


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(22, atlas="desikan82", random_state=1)


@pytest.fixture
def model():
    return LSAPClassifier(n_epochs=6, options={"patience": 0, "scale_step": 50.0})


def test_permuted_fits_differ_from_the_true_one_but_repeat(cohort, model):
    first = permuted_scales(model, cohort, 2, random_state=3)
    again = permuted_scales(model, cohort, 2, random_state=3)
    np.testing.assert_array_equal(first.null, again.null)
    np.testing.assert_array_equal(first.observed, again.observed)
    assert first.null.shape == (2, 82)
    for one in first.null:
        assert np.abs(one - first.observed).max() > 1e-6
    alone = refit_model(model).set_params(random_state=3)
    alone.fit(cohort.to_array(), cohort.y, groups=cohort.groups)
    np.testing.assert_array_equal(alone.scales_, first.observed)


def test_untrained_networks_take_one_step(cohort, model):
    observed, null = untrained_scales(model, cohort, 3)
    assert (np.abs(null - 1.0) <= 0.1 + 1e-6).all()  # one clipped step from 1
    assert np.abs(observed - 1.0).max() > 0.1
    assert np.abs(null[0] - null[1]).max() > 1e-6


def test_starts_share_the_folds_of_the_evaluation(cohort, model):
    evaluation = cross_validate(model, cohort, 2, 5, baselines=False)
    found = start_scales(model, cohort, evaluation, [0.3, 1.0, 2.0])
    assert list(found) == [0.3, 1.0, 2.0]
    for start, scales in found.items():
        assert scales.shape == (2, 82)
        # six clipped steps lead no further
        assert (np.abs(scales - start) <= 0.6 + 1e-6).all()


def test_refits_keep_the_start_that_was_asked_for():
    assert refit_model(LSAPClassifier(initial_scale=0.4)).initial_scale == 0.4
    assert refit_model(LSAPClassifier(preset="paper")).initial_scale == 2.0
    one = refit_model(LSAPClassifier(n_starts=4, initial_scale=0.4), 2.0)
    assert (one.n_starts, one.initial_scale) == (1, 2.0)


def test_what_cannot_be_refitted(cohort, model):
    with pytest.raises(ParameterError, match="n_permutations must be at least 1"):
        permuted_scales(model, cohort, 0)
    with pytest.raises(ParameterError, match="n_fits must be at least 1"):
        untrained_scales(model, cohort, 0)
    evaluation = cross_validate(model, cohort, 2, 5, baselines=False)
    with pytest.raises(ParameterError, match="at least two different scales"):
        start_scales(model, cohort, evaluation, [1.0, 1.0])
