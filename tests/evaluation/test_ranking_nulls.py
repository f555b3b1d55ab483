import numpy as np
import pytest

from brainlsap.evaluation import adjust_p_values, beats_null, null_p_values
from brainlsap.exceptions import ParameterError


def draw_null(n_null=19, n_rois=7, seed=0):
    rng = np.random.default_rng(seed)
    width = np.linspace(0.01, 0.5, n_rois)
    return 1 + width * rng.normal(size=(n_null, n_rois))


def slow_p_values(observed, null, known):
    """Count by hand, one region and one fit at a time."""
    fits = np.vstack([observed, null])
    z = (fits.mean(0) - fits) / fits.std(0)
    own, family = [], []
    for region in range(len(observed)):
        own.append(np.mean([one[region] >= z[0, region] - 1e-9 for one in z]))
        beaten = sum(max(one[known]) >= z[0, region] - 1e-9 for one in z[1:])
        family.append((1 + beaten) / len(z))
    return np.array(own), np.array(family)


def slow_centred(observed, null, known):
    """Centre and scale by hand, one fit at a time; then as every other p_family."""
    fits = np.vstack([observed, null])
    middles = [np.median(one[known]) for one in fits]
    spreads = [
        np.median(np.abs(one[known] - middle))
        for one, middle in zip(fits, middles, strict=True)
    ]
    usual = np.median(spreads)
    told = [
        (one - middle) / (spread + usual)
        for one, middle, spread in zip(fits, middles, spreads, strict=True)
    ]
    return slow_p_values(told[0], np.array(told[1:]), known)[1]


def test_p_values_are_those_counted_by_hand():
    null = draw_null()
    observed = null.mean(0) - np.array([0.05, 0, 0.3, -0.2, 0, 0.1, 2.0])
    known = np.arange(7) != 4
    found = null_p_values(observed, null, known)
    own, family = slow_p_values(observed, null, known)
    np.testing.assert_allclose(found["p_value"][known], own[known])
    np.testing.assert_allclose(found["p_family"][known], family[known])
    np.testing.assert_allclose(
        found["p_fdr"], adjust_p_values(np.where(known, own, np.nan), "fdr")
    )
    centred = slow_centred(observed, null, known)
    np.testing.assert_allclose(found["p_centred"][known], centred[known])
    assert found.loc[4].isna().all()


def test_a_planted_region_is_found_and_beats_its_null():
    null = draw_null(99)
    observed = null[0].copy()
    observed[2] = -3.0
    found = null_p_values(observed, null[1:])
    assert found["p_family"].idxmin() == 2
    assert found.loc[2, "p_value"] == pytest.approx(1 / 99)
    assert beats_null(found["p_family"])
    assert not beats_null([0.2, np.nan])


def test_a_fit_in_which_all_scales_moved_singles_out_what_stands_apart():
    rng = np.random.default_rng(8)
    far = rng.uniform(0.2, 1.0, size=(40, 1))
    null = 1 - 0.3 * far * (1 + 0.3 * rng.normal(size=(40, 31)))
    observed = 0.3 + 0.02 * rng.normal(size=31)  # all of them moved far
    observed[5] = 0.0
    found = null_p_values(observed, null)
    assert (found["p_family"] < 0.05).sum() > 20
    assert list(np.flatnonzero(found["p_centred"] < 0.05)) == [5]


@pytest.mark.parametrize("moving", [0, 1, 3])
def test_spreads_of_nothing_are_no_division(moving):
    null = np.ones((9, 7))
    null[:, :moving] += draw_null(9, moving) if moving else 0.0
    found = null_p_values(null[0], null[1:])
    assert np.isfinite(found.to_numpy()).all()
    assert found.loc[6, "p_centred"] == 1


@pytest.mark.parametrize("which", ["p_family", "p_centred"])
def test_every_fit_has_the_same_chance_to_be_the_most_extreme(which):
    # exact under the null: over all choices of the observed fit, p is uniform
    fits = draw_null(20)
    smallest = [
        null_p_values(fits[one], np.delete(fits, one, 0))[which].min()
        for one in range(len(fits))
    ]
    np.testing.assert_allclose(np.sort(smallest), np.arange(1, 21) / 20)


def test_a_region_that_never_moves_has_no_evidence():
    null = draw_null()
    null[:, 3] = 2.0
    observed = null[0].copy()
    found = null_p_values(observed, null[1:])
    assert found.loc[3, "z"] == 0
    assert found.loc[3, "p_value"] == 1


@pytest.mark.parametrize(
    ("null", "measured", "message"),
    [
        (np.ones((3, 6)), None, r"with at least one fit .* got \(3, 6\)"),
        (np.ones((0, 7)), None, r"got \(0, 7\)"),
        (np.ones((3, 7)), np.zeros(7, bool), "measured marks no region"),
    ],
)
def test_what_is_no_null(null, measured, message):
    with pytest.raises(ParameterError, match=message):
        null_p_values(np.ones(7), null, measured)
