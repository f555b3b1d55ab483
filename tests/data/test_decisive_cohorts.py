"""The judging cohorts against the text that fixed them."""

import numpy as np
import pytest
from scipy.linalg import expm

from brainlsap.data.classes import STAGES
from brainlsap.data.decisive_cohorts import make_decisive_cohort
from brainlsap.data.simulated_networks import pairwise_distance
from brainlsap.exceptions import ParameterError

CASES = ("normalized", "combinatorial", "planted", "permuted")
N_PEOPLE = 60


@pytest.fixture(scope="module")
def cohorts():
    return {
        (case, noise): make_decisive_cohort(
            case, noise=noise, n_people=N_PEOPLE, random_state=2
        )
        for case in CASES
        for noise in ("low", "high")
    }


def severity(cohort):
    return np.array([STAGES.index(label) / 4 for label in cohort.y])


def without_noise(cohorts, case):
    # The error is 0.1 and 0.2 times the same draws, so this is what is left at 0.
    low, high = (cohorts[case, noise].features[..., 0] for noise in ("low", "high"))
    return 2 * low - high


def healthy_values(cohorts):
    cohort = cohorts["planted", "low"]
    planted = cohort.truth["seed"].to_numpy().astype(float)
    return without_noise(cohorts, "planted") + 1.5 * np.outer(severity(cohort), planted)


def losses(cohorts, case):
    cohort = cohorts[case, "low"]
    ill = severity(cohort) > 0
    lost = (healthy_values(cohorts) - without_noise(cohorts, case))[ill]
    return lost / (1.5 * severity(cohort)[ill, None]), cohort.select(ill)


def test_one_scan_per_person_and_the_stated_shares():
    cohort = make_decisive_cohort("planted", n_people=400)
    assert cohort.connectomes.shape == (400, 160, 160)
    assert len(set(cohort.groups)) == 400
    counts = [int((cohort.y == stage).sum()) for stage in STAGES]
    assert counts == [108, 56, 132, 56, 48]
    assert cohort.classes == STAGES


def test_regions_lie_on_two_mirrored_half_ellipsoids(cohorts):
    regions = cohorts["planted", "low"].atlas.regions
    positions = regions[["x", "y", "z"]].to_numpy()
    assert ((positions / [60, 80, 55]) ** 2).sum(axis=1) == pytest.approx(1.0)
    assert (positions[:80, 0] <= 0).all()
    assert np.array_equal(positions[80:], positions[:80] * [-1, 1, 1])
    assert regions["hemisphere"].tolist() == ["L"] * 80 + ["R"] * 80


def test_networks_are_thresholded_counts_of_the_stated_weights():
    cohort = make_decisive_cohort("planted", n_people=300, random_state=4)
    counts = cohort.connectomes
    assert np.array_equal(counts, np.rint(counts))
    assert np.array_equal(counts, counts.transpose(0, 2, 1))
    assert counts[counts > 0].min() == 10
    assert not np.diagonal(counts, axis1=1, axis2=2).any()
    distance = pairwise_distance(cohort.atlas.regions[["x", "y", "z"]].to_numpy())
    twin = np.zeros((160, 160), dtype=bool)
    twin[np.arange(160), (np.arange(160) + 80) % 160] = True
    strong = np.triu(distance < 40, 1) & ~twin
    logs = np.log(np.maximum(counts[:, strong], 1.0))
    ratio = logs.mean(axis=0) - np.log(400) + distance[strong] / 18
    assert np.median(ratio) == pytest.approx(0.0, abs=0.1)
    assert ratio.std() == pytest.approx(0.8, rel=0.15)
    heavy = counts[:, strong].mean(axis=0) > 300
    assert logs[:, heavy].std(axis=0).mean() == pytest.approx(0.6, rel=0.05)
    far_twins = np.triu(twin & (distance > 100))
    assert counts[:, far_twins].mean() == pytest.approx(60 * np.exp(0.18), rel=0.1)


def test_healthy_values_are_mean_offset_and_noise(cohorts):
    healthy = healthy_values(cohorts)
    offsets = healthy - healthy[:1]
    assert offsets.std(axis=1).max() < 1e-12
    assert offsets[:, 0].std() == pytest.approx(0.1, rel=0.25)
    assert healthy.mean() == pytest.approx(2.5, abs=0.06)
    assert healthy[0].std() == pytest.approx(0.25, rel=0.15)
    for noise, deviation in (("low", 0.1), ("high", 0.2)):
        values = cohorts["planted", noise].features[..., 0]
        error = values - without_noise(cohorts, "planted")
        assert error.std() == pytest.approx(deviation, rel=0.03)


def test_the_planted_case_lowers_ten_regions_by_stage(cohorts):
    cohort = cohorts["planted", "low"]
    planted = cohort.truth["seed"].to_numpy()
    assert planted.sum() == 10
    assert np.array_equal(cohort.truth["effect"], -1.5 * planted)
    lost, _ = losses(cohorts, "planted")
    assert lost[:, planted] == pytest.approx(1.0)
    assert lost[:, ~planted] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("case", ["normalized", "combinatorial"])
def test_spread_follows_the_operator_of_the_case(cohorts, case):
    lost, cohort = losses(cohorts, case)
    seeds = cohort.truth["seed"].to_numpy()
    assert seeds.sum() == 6
    assert 0.5 < lost.max() <= 1.0 + 1e-12
    assert lost.min() > -1e-12
    for person in range(5):
        network = cohort.connectomes[person]
        degree = network.sum(axis=1)
        if case == "normalized":
            operator = np.eye(160) - network / np.sqrt(np.outer(degree, degree))
        else:
            operator = (np.diag(degree) - network) / degree.mean()
        expected = expm(-3 * operator) @ seeds
        # Observed counts stand in for the true weights, hence not exactly.
        assert np.corrcoef(lost[person], expected)[0, 1] > 0.98


@pytest.mark.parametrize("case", ["normalized", "combinatorial"])
def test_truth_is_the_mean_loss(cohorts, case):
    lost, cohort = losses(cohorts, case)
    expected = -1.5 * lost.mean(axis=0)
    assert np.corrcoef(cohort.truth["effect"], expected)[0, 1] > 0.99
    slope = np.polyfit(expected, cohort.truth["effect"], 1)[0]
    assert slope == pytest.approx(1.0, abs=0.1)


def test_permuted_labels_have_nothing_to_tell(cohorts):
    first, permuted = cohorts["normalized", "low"], cohorts["permuted", "low"]
    assert np.array_equal(first.features, permuted.features)
    assert np.array_equal(first.connectomes, permuted.connectomes)
    assert not np.array_equal(first.y, permuted.y)
    assert sorted(first.y) == sorted(permuted.y)
    assert not permuted.truth["seed"].any()
    assert not permuted.truth["effect"].any()


def test_cases_share_people_and_networks(cohorts):
    first = cohorts["normalized", "low"]
    for case in ("combinatorial", "planted"):
        assert np.array_equal(first.connectomes, cohorts[case, "high"].connectomes)
        assert np.array_equal(first.y, cohorts[case, "high"].y)


def test_seeds_give_other_cohorts_and_the_same_again(cohorts):
    first = cohorts["normalized", "low"]
    again = make_decisive_cohort("normalized", n_people=N_PEOPLE, random_state=2)
    other = make_decisive_cohort("normalized", n_people=N_PEOPLE, random_state=3)
    assert np.array_equal(first.to_array(), again.to_array())
    assert first.table.equals(again.table)
    assert not np.array_equal(first.features, other.features)
    assert not first.truth["seed"].equals(other.truth["seed"])


def test_labels_do_not_follow_the_order_of_people(cohorts):
    stages = [STAGES.index(label) for label in cohorts["planted", "low"].y]
    assert stages != sorted(stages)


def test_unknown_cases_and_noise_are_refused():
    with pytest.raises(
        ParameterError, match=r"case must be one of 'combinatorial', .* got 'own'"
    ):
        make_decisive_cohort("own")
    with pytest.raises(
        ParameterError, match=r"noise must be one of 'high', 'low'; got 'none'"
    ):
        make_decisive_cohort("planted", noise="none")


def test_too_few_people_are_refused():
    with pytest.raises(ParameterError, match=r"n_people must be at least 5, .* got 4"):
        make_decisive_cohort("planted", n_people=4)
