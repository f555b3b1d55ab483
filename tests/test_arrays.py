import numpy as np
import pytest
from numpy.testing import assert_array_equal

from brainlsap._arrays import check_at_least, check_choice, pack, unpack
from brainlsap.exceptions import ParameterError


def test_a_choice_must_be_one_of_the_list():
    check_choice("kernel", "b", {"b": 1, "a": 2})
    with pytest.raises(ParameterError, match=r"kernel must be one of 'a', 'b'; got 7"):
        check_choice("kernel", 7, {"b": 1, "a": 2})


@pytest.mark.parametrize("value", [-0.1, float("nan"), -np.inf])
def test_a_number_must_reach_the_lowest(value):
    check_at_least("threshold", 0, 0.0)
    with pytest.raises(ParameterError, match=r"threshold must be at least 0, got"):
        check_at_least("threshold", value, 0)


def test_what_is_packed_comes_back():
    rng = np.random.default_rng(0)
    connectomes, features = rng.random((4, 3, 3)), rng.random((4, 3, 2))
    features[1, 2, 0] = np.nan
    X = pack(connectomes, features)
    assert X.shape == (4, 3, 5)
    back = unpack(X)
    assert_array_equal(back[0], connectomes)
    assert_array_equal(back[1], features)
    assert all(np.shares_memory(one, X) for one in back)


def test_packing_makes_a_copy_in_double_precision():
    W = np.broadcast_to(np.ones((3, 3), np.float32), (4, 3, 3))
    X = pack(W, np.zeros((4, 3, 1), np.float32))
    assert X.dtype == np.float64
    X[0] = 7
    assert W.max() == 1


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 3), (2, 3, 2), (2, 3, 4, 1)])
def test_another_shape_is_refused(shape):
    with pytest.raises(ParameterError, match=r"n_rois \+ n_features\) .*to_array\(\)"):
        unpack(np.zeros(shape))
