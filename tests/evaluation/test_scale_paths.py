from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from brainlsap.data import make_cohort
from brainlsap.evaluation import cross_validate
from brainlsap.evaluation.scale_paths import mean_scale_path, scale_path
from brainlsap.model import LSAPClassifier


def test_a_path_goes_from_the_start_to_what_was_learned():
    cohort = make_cohort(30, atlas="desikan82")
    model = LSAPClassifier("exact", n_epochs=12, n_starts=2, initial_scale=1.0)
    result = cross_validate(model, cohort, 2, baselines=False).main
    for fold in result.folds:
        assert fold.scale_path.shape == (21, 82)
        np.testing.assert_array_equal(fold.scale_path[0], 1.0)
        np.testing.assert_allclose(fold.scale_path[-1], fold.scales, atol=5e-5)
    mean = result.scale_path()
    np.testing.assert_allclose(mean[-1], result.scales().mean(axis=0), atol=5e-5)
    assert np.ptp(mean[10]) > 0


def test_every_start_is_cut_at_the_epoch_that_was_chosen():
    early = SimpleNamespace(epoch=[0, 4, 8], scales=[[2.0], [1.0], [9.0]])
    late = SimpleNamespace(epoch=[0, 10], scales=[[2.0], [0.0]])
    model = SimpleNamespace(
        history_=[early, late],
        fit_report_={"epochs": [4, 10]},
        scales_start_=np.array([2.0]),
        scales_=np.array([0.5]),
    )
    # half of the way: (1.5 + 1.0) / 2, whatever came after the chosen epoch
    assert scale_path(model)[10, 0] == 1.25
    assert scale_path(SimpleNamespace(scales_=[1.0])) is None


def test_folds_without_a_path_have_no_mean():
    assert mean_scale_path([np.ones((21, 3)), None]) is None
    assert mean_scale_path([]) is None


def test_a_path_is_kept_with_a_finished_task(tmp_path):
    cohort = make_cohort(20, atlas="desikan82")
    model = LSAPClassifier("exact", n_epochs=4, n_starts=1)
    told = {"baselines": False, "cache": tmp_path}
    first = cross_validate(model, cohort, 2, **told).main
    again = cross_validate(model, cohort, 2, **told).main
    np.testing.assert_array_equal(first.scale_path(), again.scale_path())
    folds = (replace(first.folds[0], scale_path=None), first.folds[1])
    assert replace(first, folds=folds).scale_path() is None
