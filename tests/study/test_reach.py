import numpy as np
import pandas as pd
import pytest
from scipy.linalg import expm

from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.study import kernel_reach, reach_table

NAMES = ["a", "b", "c", "d", "e"]


def draw_network(seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.uniform(0.1, 9, size=(5, 5)), 1)
    return upper + upper.T


def slow_reach(weights, scales):
    """Rows of the matrix exponential, one region after the other."""
    root = weights.sum(axis=1) ** -0.5
    laplacian = np.eye(len(weights)) - root[:, None] * weights * root
    rows = [expm(-scale * laplacian)[k] for k, scale in enumerate(scales)]
    return np.stack(rows)


@pytest.mark.parametrize(("kernel", "atol"), [("exact", 1e-12), ("chebyshev", 1e-3)])
def test_rows_are_those_of_the_matrix_exponential(kernel, atol):
    weights, scales = draw_network(), np.array([0.3, 1.0, 2.5, 0.0, 1.9])
    reach = kernel_reach(weights, scales, region_names=NAMES, kernel=kernel)
    np.testing.assert_allclose(reach, slow_reach(weights, scales), atol=atol)
    assert list(reach.index) == list(reach.columns) == NAMES


def test_scales_and_regions_travel_by_name():
    weights = pd.DataFrame(draw_network(), index=NAMES, columns=NAMES)
    scales = dict(zip(NAMES, [0.3, 1.0, 2.5, 0.0, 1.9], strict=True))
    whole = kernel_reach(weights, scales)
    mixed = pd.Series(scales).loc[["d", "b", "a", "e", "c"]]
    pd.testing.assert_frame_equal(
        kernel_reach(weights, mixed, ["e", "a"]), whole.loc[["e", "a"]]
    )
    one = kernel_reach(weights, mixed, "d")
    np.testing.assert_allclose(one.to_numpy(), [[0, 0, 0, 1, 0]], atol=1e-12)
    shares = kernel_reach(weights, mixed, share=True)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares.loc["a"], whole.loc["a"] / whole.loc["a"].sum())


def test_the_table_says_how_far():
    weights = pd.DataFrame(draw_network(), index=NAMES, columns=NAMES)
    near = reach_table(kernel_reach(weights, 0.0))
    np.testing.assert_allclose(near["own_share"], 1)
    np.testing.assert_allclose(near["effective_regions"], 1)
    table = reach_table(kernel_reach(weights, 1.0, ["c", "a"]))
    assert list(table["region"]) == ["c", "a"]
    row = slow_reach(draw_network(), np.ones(5))[2]
    assert table["own_share"][0] == pytest.approx(row[2] / row.sum())
    shares = row / row.sum()
    entropy = -(shares * np.log(shares)).sum()
    assert table["effective_regions"][0] == pytest.approx(np.exp(entropy))
    row[2] = 0
    assert table["strongest_other"][0] == NAMES[int(row.argmax())]


W = draw_network()
BAD = [
    ({"connectome": W, "scale": 1.0}, r"give region_names, one for each row"),
    (
        {"connectome": W, "scale": 1.0, "region_names": NAMES[:4]},
        r"for 4 region names, got \(5, 5\)",
    ),
    (
        {"connectome": W, "scale": np.ones(3), "region_names": NAMES},
        r"one for each of 5 regions, got shape \(3,\)",
    ),
    (
        {"connectome": W, "scale": {"a": 1.0, "c": 1.0}, "region_names": NAMES},
        r"no value for 'b' \(3 missing\)",
    ),
    (
        {
            "connectome": pd.DataFrame(W, index=NAMES, columns=NAMES[::-1]),
            "scale": 1.0,
        },
        r"rows and columns must have the same names",
    ),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_what_does_not_fit_is_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        kernel_reach(**given)


def test_unknown_and_doubled_names_are_refused():
    with pytest.raises(RegionNameError, match=r"'z' is none of the 5 regions .*'a'"):
        kernel_reach(W, 1.0, "z", region_names=NAMES)
    with pytest.raises(RegionNameError, match=r"'a' stands twice"):
        kernel_reach(W, 1.0, region_names=[*"aabcd"])
