import numpy as np
import pytest

from brainlsap.data import make_cohort
from brainlsap.evaluation import collapse_cohort, collapse_result, cross_validate
from brainlsap.evaluation.collapses import COLLAPSES
from brainlsap.exceptions import ParameterError

STAGES = ("CN", "SMC", "EMCI", "LMCI", "AD")


@pytest.fixture(scope="module")
def stages():
    return make_cohort(60, atlas="desikan82", random_state=2)


def test_every_collapse_keeps_stages_in_order():
    for merged in COLLAPSES.values():
        places = [STAGES.index(stage) for some in merged.values() for stage in some]
        assert places == sorted(places)


@pytest.mark.parametrize("name", COLLAPSES)
def test_scans_get_the_class_of_their_stage(stages, name):
    fewer = collapse_cohort(stages, name)
    merged = COLLAPSES[name]
    assert fewer.classes == tuple(merged)
    for label, some in merged.items():
        assert (fewer.y == label).sum() == np.isin(stages.y, some).sum()
    assert fewer.notes[-1].startswith("classes merged: ")


def test_scans_that_are_left_out_are_told(stages):
    fewer = collapse_cohort(stages, "CN or AD")
    gone = stages.n_scans - fewer.n_scans
    assert gone > 0
    assert fewer.notes[-1].endswith(f"{gone} scans of other classes left out")


def test_predictions_are_merged_too(stages, nearest_mean):
    result = cross_validate(nearest_mean, stages, 3, baselines=False).main
    three = collapse_result(result, "5->3")
    fold, before = three.folds[1], result.folds[1]
    np.testing.assert_allclose(
        fold.probability[:, 1], before.probability[:, 2] + before.probability[:, 3]
    )
    assert set(fold.truth) == {"CN", "MCI", "AD"}
    two = collapse_result(result, {"healthy": "CN", "ill": ["AD"]})
    for one in two.folds:
        np.testing.assert_allclose(one.probability.sum(axis=1), 1)
    rows = np.concatenate([one.test for one in two.folds])
    assert set(stages.y[rows]) == {"CN", "AD"}
    assert two.scores()["n_test"].sum() == np.isin(stages.y, ["CN", "AD"]).sum()


def test_what_cannot_be_merged(stages, cohort, nearest_mean):
    with pytest.raises(ParameterError, match=r"collapse must be one of .*got '5->4'"):
        collapse_cohort(stages, "5->4")
    with pytest.raises(ParameterError, match="the stage 'CN' in two classes"):
        collapse_cohort(stages, {"a": ["CN"], "b": ["CN", "AD"]})
    with pytest.raises(ParameterError, match=r"collapse \(x\); the cohort has CN, SMC"):
        collapse_cohort(stages, {"a": "x"})
    result = cross_validate(nearest_mean, cohort, 2, baselines=False).main
    with pytest.raises(ParameterError, match=r"class 'MCI' is among .*\(CN, AD\)"):
        collapse_result(result, "5->3")
