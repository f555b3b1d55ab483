"""Regional values: the formula, and how much they vary."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.simulated_features import FEATURES, draw_feature, healthy_means
from brainlsap.data.simulated_people import make_people, random_stream
from brainlsap.data.simulated_regions import find_twins, structure_names


@pytest.fixture(scope="module")
def atlas():
    return load_atlas("destrieux160")


def draw_means(atlas, name, seed=0):
    is_cortex = (atlas.regions["structure"] == "cortex").to_numpy()
    return healthy_means(
        FEATURES[name], structure_names(atlas), is_cortex, (seed, name)
    )


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_means_are_the_same_left_and_right(atlas, name):
    means = draw_means(atlas, name)
    assert np.array_equal(means, means[find_twins(atlas)], equal_nan=True)


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_cortical_means_spread_as_stated(atlas, name):
    model = FEATURES[name]
    cortex = np.concatenate([draw_means(atlas, name, s)[:74] for s in range(9)])
    assert cortex.mean() == pytest.approx(model.cortex_mean, rel=0.03)
    assert cortex.std() == pytest.approx(model.cortex_spread, rel=0.2)
    assert np.abs(cortex - model.cortex_mean).max() <= 2 * model.cortex_spread


def test_subcortex_has_volumes_and_uptake_but_no_thickness(atlas):
    below = slice(148, 160)
    assert np.isnan(draw_means(atlas, "thickness")[below]).all()
    assert np.isfinite(draw_means(atlas, "thickness")[:148]).all()
    assert draw_means(atlas, "volume")[152] == 3850.0
    assert draw_means(atlas, "fdg")[154] == 1.30


def test_an_unknown_nucleus_gets_the_median():
    means = healthy_means(
        FEATURES["volume"], ["olive", "putamen"], np.array([False, False]), (0, "v")
    )
    assert means.tolist() == [3350.0, 4500.0]


def draw_people(n_people=7, n_sites=3):
    return make_people(n_people, n_sites=n_sites, random_state=4)


def test_without_noise_only_age_site_and_disease_count():
    people, means = draw_people(), np.array([2.0, 3.0, np.nan])
    loss = np.linspace(0, 0.4, 3 * len(people)).reshape(len(people), 3)
    values = draw_feature("thickness", means, people, loss, noise=0.0, random_state=8)
    model = FEATURES["thickness"]
    for row in range(len(people)):
        age, site = people["age"][row], int(people["site"][row])
        shift = random_stream(8, "site thickness", site).normal()
        for region in range(2):
            healthy = means[region] * (
                1 + model.aging * (age - 73) + model.site * shift
            )
            expected = healthy * (1 - loss[row, region])
            assert values[row, region] == pytest.approx(expected)
        assert np.isnan(values[row, 2])


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_people_and_scans_vary_as_stated(name):
    n_rois, n_people = 31, 500
    people = make_people(n_people, visits=(0, 1), n_sites=1)
    people["age"] = 73.0
    loss = np.zeros((len(people), n_rois))
    values = draw_feature(name, np.full(n_rois, 2.0), people, loss) / 2.0
    model = FEATURES[name]
    first, second = values[0::2], values[1::2]
    within = np.std(first - second) / np.sqrt(2)
    assert within == pytest.approx(model.scan, rel=0.05)
    total = np.hypot(np.hypot(model.shared, model.regional), model.scan)
    assert first.std(axis=0).mean() == pytest.approx(total, rel=0.06)
    shared = np.cov(first.T)[np.triu_indices(n_rois, 1)].mean()
    assert np.sqrt(shared) == pytest.approx(model.shared, rel=0.1)


def test_relative_spread_is_that_of_real_people():
    for name in ("fdg", "thickness"):
        model = FEATURES[name]
        total = np.sqrt(model.shared**2 + model.regional**2 + model.scan**2)
        assert 0.06 <= total <= 0.08


def test_a_scan_is_the_same_in_whatever_company():
    people, means = draw_people(), np.full(5, 1.3)
    loss = np.zeros((len(people), 5))
    whole = draw_feature("fdg", means, people, loss, random_state=1)
    backwards = people.iloc[::-1].reset_index(drop=True)
    turned = draw_feature("fdg", means, backwards, loss, random_state=1)
    assert np.array_equal(whole, turned[::-1])


def test_values_stay_positive_however_large_the_noise():
    people = pd.concat([draw_people(20)], ignore_index=True)
    loss = np.full((len(people), 4), 0.3)
    values = draw_feature("fdg", np.full(4, 1.2), people, loss, noise=50.0)
    assert values.min() >= 0.3
