import numpy as np
import pytest
from numpy.testing import assert_array_equal

from brainlsap._arrays import (
    LARGEST,
    check_at_least,
    check_choice,
    check_connectomes,
    check_features,
    features_of,
    pack,
    power_of_two,
    root_mean_square,
    unpack,
)
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


def test_numbers_whose_squares_cannot_be_told_are_refused():
    W, features = np.ones((3, 2, 2)), np.ones((3, 2, 1))
    check_connectomes(W * LARGEST)
    W[2, 0, 1] = 2 * LARGEST
    with pytest.raises(ParameterError, match=r"most 1e\+100 and not .* row 9 of X"):
        check_connectomes(W, 7)
    features[1, 1], features[2] = -1e101, np.nan
    with pytest.raises(ParameterError, match=r"got -1e\+101 in row 1 of X"):
        check_features(features)
    check_features(features[2:].astype(np.float16))


def test_units_are_powers_of_two_at_the_ends_of_the_range():
    largest = np.array([0.0, 3.0, 5e-324, 1e-310, 1e308])
    unit = power_of_two(np.stack([largest, -largest / 2]))
    assert np.isfinite(largest / unit).all()
    assert unit[:2].tolist() == [1.0, 2.0]
    assert (np.frexp(unit)[0] == 0.5).all()


@pytest.mark.parametrize("exponent", [0, -700, 500])
def test_root_mean_squares_do_not_depend_on_the_unit(exponent):
    values = np.random.default_rng(3).normal(size=(6, 4, 2))
    values[4:, 1] = 0.0
    count = np.full((4, 2), 6)
    count[1] = 4
    expected = np.sqrt((values**2).sum(axis=0) / count)
    found = root_mean_square(np.ldexp(values, exponent), count)
    np.testing.assert_allclose(np.ldexp(found, -exponent), expected, rtol=1e-14)
    assert root_mean_square(np.zeros((3, 2)), np.ones(2)).tolist() == [0.0, 0.0]


def test_features_are_copied_out_of_the_packed_array():
    X = np.random.default_rng(1).random((4, 3, 5))
    features = features_of(X)
    assert_array_equal(features, X[:, :, 3:])
    assert features.flags.c_contiguous
    assert not np.shares_memory(features, X)
    X[2, 1, 4] = np.inf
    with pytest.raises(ParameterError, match="got inf in row 2 of X"):
        features_of(X)


def test_some_rows_are_packed_in_their_order():
    rng = np.random.default_rng(2)
    connectomes, features = rng.random((5, 3, 3)), rng.random((5, 3, 2))
    rows = np.array([4, 0, 2])
    whole = pack(connectomes, features)
    assert_array_equal(pack(connectomes, features, rows), whole[rows])
