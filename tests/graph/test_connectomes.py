"""Every step of preparation against a slow loop; what is learned, from whom."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    LearnedPreparation,
    Preparation,
    connectome_summary,
    covariance_connectome,
    mean_connectome,
    normalized_laplacian,
    prepare_connectomes,
)

N_SCANS, N_ROIS, N_FEATURES = 9, 7, 2


@pytest.fixture
def W():
    """Counts with zeros, unequal directions and a diagonal."""
    rng = np.random.default_rng(4)
    drawn = rng.poisson(6.0, (N_SCANS, N_ROIS, N_ROIS)).astype(float)
    drawn[rng.random(drawn.shape) < 0.35] = 0.0
    return drawn


@pytest.fixture
def people():
    return np.array(["a", "a", "a", "b", "c", "c", "d", "e", "f"])


def slow_edges(W, threshold, unit, volumes, symmetrize):
    """Return steps 2 to 4, one pair of regions at a time."""
    n = len(W)
    join = max if symmetrize == "max" else (lambda a, b: (a + b) / 2)
    links = {(i, j): join(W[i, j], W[j, i]) for i in range(n) for j in range(i + 1, n)}
    lowest = threshold
    if unit == "share":
        lowest = threshold * sum(links.values())
    if unit == "density":
        ranked = sorted(links.values(), reverse=True)
        n_kept = round(threshold * len(ranked))
        lowest = ranked[n_kept - 1] if n_kept else np.inf
    made = np.zeros((n, n))
    for (i, j), weight in links.items():
        if weight >= lowest:
            size = (volumes[i] + volumes[j]) / 2 if volumes is not None else 1.0
            made[i, j] = made[j, i] = weight / size
    return made


def slow_weights(made, weights):
    each = {"weighted": lambda w: w, "log": lambda w: np.log(1 + w)}
    return np.vectorize(each.get(weights, lambda w: float(w > 0)))(made)


@pytest.mark.parametrize("symmetrize", ["mean", "max"])
@pytest.mark.parametrize("weights", ["weighted", "log", "binary"])
@pytest.mark.parametrize(
    ("threshold", "unit"),
    [(0.0, "weight"), (4.0, "weight"), (0.06, "share"), (0.4, "density")],
)
def test_steps_are_those_of_a_slow_loop(W, threshold, unit, weights, symmetrize):
    volumes = np.linspace(0.5, 3.0, N_ROIS) if weights != "log" else None
    before = W.copy()
    got = prepare_connectomes(
        W,
        threshold=threshold,
        threshold_unit=unit,
        weights=weights,
        symmetrize=symmetrize,
        volumes=volumes,
    )
    for one, raw in zip(got, W, strict=True):
        edges = slow_edges(raw, threshold, unit, volumes, symmetrize)
        assert_allclose(one, slow_weights(edges, weights), rtol=1e-14)
    assert_array_equal(W, before)


def test_density_is_met_and_never_makes_links_of_zeros():
    W = np.random.default_rng(0).random((3, 11, 11))
    got = prepare_connectomes(W, threshold=0.2, threshold_unit="density")
    assert ((got > 0).sum(axis=(1, 2)) / 2).tolist() == [11, 11, 11]
    W = np.zeros((1, 5, 5))
    W[0, 0, 1] = 3.0
    got = prepare_connectomes(W, threshold=0.9, threshold_unit="density")
    assert (got > 0).sum() == 2


def slow_presence(edges, people):
    """Return the share of people who have each link, a person's visits averaged."""
    names = sorted(set(people))
    total = np.zeros(edges.shape[1:])
    for name in names:
        visits = [
            edge > 0 for edge, who in zip(edges, people, strict=True) if who == name
        ]
        total += np.mean(visits, axis=0)
    return total / len(names)


@pytest.mark.parametrize("share", [0.3, 0.5, 1.0])
def test_consensus_keeps_links_that_enough_people_have(W, people, share):
    options = Preparation.of(threshold=3.0, consensus=share)
    learned = LearnedPreparation.learn(W, None, people, options)
    edges = prepare_connectomes(W, threshold=3.0)
    expected = slow_presence(edges, people) >= share - 1e-9
    assert 0 < expected.sum() < expected.size
    assert_array_equal(learned.apply(W), edges * expected)


def test_share_that_people_just_reach_is_enough():
    """Three of five people, a tenth being no binary number, count as 0.6."""
    W = np.zeros((5, 3, 3))
    W[:3, 0, 1] = W[:3, 1, 0] = 1.0
    options = Preparation.of(consensus=0.6)
    learned = LearnedPreparation.learn(W, None, np.arange(5), options)
    assert learned.apply(W)[0, 0, 1] == 1.0


def test_group_density_keeps_the_links_of_largest_mean(W, people):
    options = Preparation.of(group_density=0.33)
    learned = LearnedPreparation.learn(W, None, people, options)
    edges = prepare_connectomes(W)
    mean = np.mean(
        [edges[people == name].mean(axis=0) for name in sorted(set(people))], axis=0
    )
    upper = np.triu_indices(N_ROIS, 1)
    lowest = np.sort(mean[upper])[::-1][round(0.33 * len(upper[0])) - 1]
    assert_array_equal(learned.apply(W), edges * (mean >= lowest))


def test_new_scans_cannot_change_what_was_learned(W, people):
    options = Preparation.of(consensus=0.5, group_density=0.5, isolated="mean")
    learned = LearnedPreparation.learn(W[:6], None, people[:6], options)
    before = {
        k: v.copy() for k, v in learned.to_dict().items() if k in ("mask", "mean")
    }
    first = learned.apply(W[6:7])
    learned.apply(np.full((4, N_ROIS, N_ROIS), 1e6))
    assert_array_equal(learned.mask, before["mask"])
    assert_array_equal(learned.mean, before["mean"])
    # a scan's network does not depend on which others are prepared with it
    assert_array_equal(learned.apply(W[6:])[0], first[0])


@pytest.fixture
def lonely():
    """Region 3 has weak links only; its strongest is to region 5."""
    W = np.full((2, 6, 6), 20.0)
    W[:, 3] = W[:, :, 3] = 2.0
    W[:, 3, 5] = W[:, 5, 3] = 4.0
    return W


def test_isolated_region_may_keep_its_strongest_link(lonely):
    kept = prepare_connectomes(lonely, threshold=10.0)
    assert not kept[:, 3].any()
    got = prepare_connectomes(lonely, threshold=10.0, isolated="strongest")
    expected = kept.copy()
    expected[:, 3, 5] = expected[:, 5, 3] = 4.0
    assert_array_equal(got, expected)
    binary = prepare_connectomes(
        lonely, threshold=10.0, isolated="strongest", weights="binary"
    )
    assert_array_equal(binary, expected > 0)


def test_isolated_region_may_take_the_links_of_the_training_mean(lonely):
    whole = np.full((3, 6, 6), 12.0)
    options = Preparation.of(threshold=10.0, isolated="mean")
    learned = LearnedPreparation.learn(whole, None, np.arange(3), options)
    got = learned.apply(lonely)
    assert_array_equal(got[0, 3], [12, 12, 12, 0, 12, 12])
    assert got[0, 0, 1] == 20.0
    assert_array_equal(got[0], got[0].T)


def test_isolated_regions_may_be_refused(lonely):
    with pytest.raises(
        ParameterError,
        match=r"2 regions have no link left \(the first: region 3 of row 0",
    ):
        prepare_connectomes(lonely, threshold=10.0, isolated="refuse")


def test_mean_of_training_people_serves_everybody(W, people):
    options = Preparation.of(connectome="mean", threshold=2.0, weights="log")
    learned = LearnedPreparation.learn(W, None, people, options)
    edges = prepare_connectomes(W, threshold=2.0)
    mean = np.mean(
        [edges[people == n].mean(axis=0) for n in sorted(set(people))], axis=0
    )
    got = learned.apply(W[:4])
    assert got.shape == (4, N_ROIS, N_ROIS)
    for one in got:
        assert_allclose(one, np.log1p(mean), rtol=1e-13)
    assert_allclose(mean_connectome(edges, people), mean, rtol=1e-13)
    assert_allclose(mean_connectome(edges), edges.mean(axis=0), rtol=1e-13)


@pytest.fixture
def features(people):
    rng = np.random.default_rng(8)
    common = rng.normal(size=(len(people), 1, N_FEATURES))
    values = 100 + common + 0.8 * rng.normal(size=(len(people), N_ROIS, N_FEATURES))
    values[:, 1] *= -1
    values[2, 4, 0] = values[7, 0, 1] = np.nan
    values[:, 5] = np.nan
    values[:, 6, 0] = 3.0
    return values


def test_covariance_is_pandas_correlation_over_people(features, people):
    expected = np.zeros((N_ROIS, N_ROIS))
    for kind in range(N_FEATURES):
        table = pd.DataFrame(features[..., kind]).groupby(people).mean()
        expected += table.corr(min_periods=3).fillna(0).to_numpy() / N_FEATURES
    expected = np.clip(expected, 0, None)
    np.fill_diagonal(expected, 0)
    got = covariance_connectome(features, people)
    assert_allclose(got, expected, atol=1e-10)
    assert got.max() > 0.1
    assert not got[5].any()
    assert_array_equal(got, got.T)


def test_covariance_of_training_people_serves_everybody(W, features, people):
    options = Preparation.of(
        connectome="covariance", threshold=0.4, threshold_unit="density"
    )
    learned = LearnedPreparation.learn(W[:7], features[:7], people[:7], options)
    network = covariance_connectome(features[:7], people[:7])
    expected = prepare_connectomes(
        network[None], threshold=0.4, threshold_unit="density"
    )
    assert_allclose(learned.apply(np.zeros_like(W[7:])), np.repeat(expected, 2, axis=0))


def test_state_can_be_taken_apart_and_put_together(W, people):
    options = Preparation.of(consensus=0.4, volumes=np.arange(1.0, N_ROIS + 1))
    learned = LearnedPreparation.learn(W, None, people, options)
    again = LearnedPreparation.from_dict(learned.to_dict())
    assert again.options == learned.options
    assert_array_equal(again.apply(W), learned.apply(W))


def test_summary_is_the_definition(W):
    prepared = prepare_connectomes(W, threshold=7.0)
    prepared[3, 2] = prepared[3, :, 2] = 0.0
    density, isolated, gap = [], [], []
    for one in prepared:
        alone = ~one.any(axis=1)
        inner = one[~alone][:, ~alone]
        density.append((one > 0).sum() / (N_ROIS * (N_ROIS - 1)))
        isolated.append(alone.sum())
        values = torch.linalg.eigvalsh(normalized_laplacian(inner))
        gap.append(float(values[1]) if len(values) > 1 else 0.0)
    got = connectome_summary(prepared)
    assert got["density"] == pytest.approx(np.mean(density))
    assert got["isolated_regions"] == pytest.approx(np.mean(isolated))
    assert got["most_isolated"] == max(isolated) > 0
    assert got["spectral_gap"] == pytest.approx(np.mean(gap), abs=1e-9)
    assert got["smallest_gap"] == pytest.approx(min(gap), abs=1e-9)


def test_graph_that_falls_apart_has_no_gap():
    W = np.kron(np.eye(2), 1 - np.eye(3))[None]
    assert connectome_summary(W)["spectral_gap"] == 0.0
    assert connectome_summary(np.zeros((2, 4, 4)))["isolated_regions"] == 4.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"thresh": 1}, r"option of preparation must be one of .*'thresh'"),
        ({"threshold_unit": "mm"}, r"threshold_unit must be one of 'density'"),
        ({"threshold": 10.0, "threshold_unit": "share"}, "between 0 and 1, got 10"),
        ({"threshold": 10.0, "connectome": "covariance"}, "between 0 and 1, got 10"),
        ({"consensus": 1.2}, "consensus must lie between 0 and 1"),
        ({"group_density": -0.1}, "group_density must lie between"),
        ({"volumes": [1.0, 0.0]}, "volumes must be positive and finite"),
        ({"volumes": [1.0], "connectome": "covariance"}, "are for connectomes of peop"),
    ],
)
def test_options_that_cannot_be_used_are_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        Preparation.of(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"volumes": [1.0, 2.0]}, "one number for each of 7 regions, got 2"),
        ({"symmetrize": "refuse"}, "row 0 is not symmetric .*'refuse'"),
        ({"isolated": "mean"}, "isolated='mean'.* are learned from training"),
    ],
)
def test_connectomes_that_do_not_fit_are_refused(W, given, message):
    with pytest.raises(ParameterError, match=message):
        prepare_connectomes(W, **given)


def test_a_covariance_needs_features_of_three_people(W, features, people):
    with pytest.raises(ParameterError, match="at least 3 people, got 2"):
        covariance_connectome(features[:4], people[:4])
    options = Preparation.of(connectome="covariance")
    with pytest.raises(ParameterError, match="connectome='covariance' needs features"):
        LearnedPreparation.learn(W, None, people, options)
