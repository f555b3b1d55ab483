"""make_cohort and make_benchmark_cohort: kept draws, and the effects they state."""

import hashlib
from functools import partial

import numpy as np
import pytest
from scipy.linalg import expm
from threadpoolctl import threadpool_limits

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.simulation import make_benchmark_cohort, make_cohort
from brainlsap.simulation.cohort import DEMOGRAPHICS, STAGES, divide

CASES = ("normalized", "combinatorial", "planted", "permuted")


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(40, random_state=1)


@pytest.fixture(scope="module")
def benchmark():
    make = partial(make_benchmark_cohort, n_people=60, random_state=2)
    return {(c, n): make(c, noise=n) for c in CASES for n in ("low", "high")}


def digest(connectomes):
    counts = np.ascontiguousarray(connectomes, dtype=np.float32)
    return hashlib.sha256(counts.tobytes()).hexdigest()[:16]


def test_draws_of_make_cohort_are_those_of_the_first_version():
    made = make_cohort(5, feature=("fdg", "thickness", "volume"), random_state=3)
    assert digest(made.connectomes) == "3d087d1965c53080"
    assert np.nansum(made.features, axis=(0, 1)) == pytest.approx(
        [1828.6067721424238, 3298.0185592669723, 4196214.331737875], rel=1e-12
    )
    effect = made.truth["effect"].abs().sum()
    assert effect == pytest.approx(3.212244166043681, rel=1e-12)
    assert made.table["age"].sum() == pytest.approx(680.6)


@pytest.mark.parametrize(
    ("case", "features", "effect", "labels"),
    [
        ("normalized", 2672.243504093186, -43.94853315267636, "CLCESAE"),
        ("combinatorial", 2703.284685566042, -33.53162906352481, "CLCESAE"),
        ("planted", 2758.8795727566157, -15.0, "CLCESAE"),
        ("permuted", 2672.243504093186, 0.0, "CAESCEL"),
    ],
)
def test_draws_of_benchmark_cohorts_are_those_fixed_at_first(
    case, features, effect, labels
):
    made = make_benchmark_cohort(case, noise="high", n_people=7, random_state=1)
    assert digest(made.connectomes) == "49d1c0534d4a12e6"
    assert made.features.sum() == pytest.approx(features, rel=1e-12)
    assert made.truth["effect"].sum() == pytest.approx(effect, rel=1e-12)
    assert "".join(label[0] for label in made.y) == labels


@pytest.mark.parametrize(
    "make", [make_cohort, partial(make_benchmark_cohort, "combinatorial")]
)
def test_bytes_do_not_depend_on_the_number_of_threads(make):
    made = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            cohort = make(n_people=6, random_state=4)
        made.append((cohort.features.tobytes(), cohort.connectomes.tobytes()))
    assert made[0] == made[1] == made[2]


def test_shapes_names_and_units(cohort):
    assert cohort.features.shape == (74, 160, 1)
    assert (cohort.feature_names, cohort.classes) == (("fdg",), STAGES)
    row = cohort.table.iloc[-1]
    assert row["scan"] == f"{row['participant']}_{row['session']}"
    assert set(cohort.table["session"]) == {"ses-M00", "ses-M12", "ses-M24"}
    assert len(set(cohort.groups)) == 40
    assert list(cohort.table)[4:] == ["age", "sex", "site"]
    assert 0.9 < np.median(cohort.features) < 1.5
    assert tuple(cohort.truth["region"]) == cohort.region_names


def test_one_feature_more_changes_nothing_in_the_others():
    alone = make_cohort(9, feature="fdg", random_state=5)
    several = make_cohort(9, feature=["thickness", "volume", "fdg"], random_state=5)
    assert np.array_equal(several.features[..., 2:], alone.features)
    assert np.array_equal(several.connectomes, alone.connectomes)
    truth = several.truth
    assert np.array_equal(truth["effect_fdg"], alone.truth["effect"])
    assert np.array_equal(truth["effect"], truth["effect_thickness"], equal_nan=True)


def test_the_mean_seed_loses_the_effect_asked_for():
    made = make_cohort(15, effect=0.2, feature="volume")
    healthy = make_cohort(15, effect=0.0, feature="volume")
    assert (healthy.truth["effect"] == 0).all()
    relative = made.truth["effect"] / healthy.features[..., 0].mean(axis=0)
    assert relative[made.truth["seed"]].mean() == pytest.approx(-0.2, abs=0.01)


def test_group_difference_follows_the_truth():
    made = make_cohort(400, shares={"CN": 1, "AD": 1}, visits=(1,), random_state=3)
    assert made.classes == ("CN", "AD")
    values, effect = made.features[..., 0], made.truth["effect"].to_numpy()
    ill = made.y == "AD"
    change = values[ill].mean(axis=0) - values[~ill].mean(axis=0)
    error = values.std(axis=0) * np.sqrt(2 / 200)
    # Both groups share one difference in age and in the people's overall level;
    # of 160 normal deviates the largest is about 3.
    shift = np.median(change - effect)
    assert abs(shift) < 0.02
    assert np.abs((change - effect - shift) / error).max() < 4


def test_thickness_has_no_subcortex():
    made = make_cohort(6, feature="thickness")
    assert np.isnan(made.features[:, 148:]).all()
    assert made.measured[:, :148].all()
    assert made.truth["effect"].isna().tolist() == [False] * 148 + [True] * 12


def test_seeds_by_name_and_a_users_own_atlas():
    made = make_cohort(8, seeds=["lh_G_precuneus", "Right-Caudate"])
    planted = made.truth.loc[made.truth["seed"], "region"]
    assert list(planted) == ["ctx_lh_G_precuneus", "Right-Caudate"]
    own = load_atlas("desikan82").regions[40:].reset_index(drop=True)
    made = make_cohort(6, atlas=Atlas("own", own, None), seeds=["rh_insula"])
    assert (made.n_rois, made.truth["seed"].sum()) == (42, 1)
    with pytest.raises(RegionNameError, match="lh_nowhere"):
        make_cohort(6, seeds=["lh_nowhere"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feature": "age"}, r"feature must be one of 'fdg', .* got 'age'"),
        ({"effect": 0.7}, r"effect must be between 0 and 0\.5, .* got 0\.7"),
        ({"n_people": 3}, r"at least one for every share, got 3 for"),
        ({"shares": {"MCI": 1}}, r"shares must be one of 'AD', .*'MCI'"),
        ({"visits": (0, 0)}, r"shares must not be negative nor all 0"),
        ({"case": "own"}, r"case must be one of .* got 'own'"),
        ({"case": "planted", "noise": "no"}, "noise must be one"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    make = make_benchmark_cohort if "case" in arguments else make_cohort
    with pytest.raises(ParameterError, match=message):
        make(**{"n_people": 6, **arguments})


def test_an_atlas_without_centroids_is_refused():
    flat = load_atlas("desikan82").regions.drop(columns=["x", "y", "z"])
    with pytest.raises(ParameterError, match="no centroid for every region"):
        make_cohort(6, atlas=Atlas("flat", flat, None))


def test_divide_is_complete_and_close_to_the_shares():
    paper = [numbers[0] for numbers in DEMOGRAPHICS.values()]
    assert divide(1385, paper).tolist() == [345, 186, 461, 231, 162]
    assert divide(17, paper).sum() == 17
    assert divide(5, paper).tolist() == [1] * 5
    assert divide(4, [0.5, 0.0, 0.5]).tolist() == [2, 0, 2]


def severity(made):
    return np.array([STAGES.index(label) / 4 for label in made.y])


def without_noise(benchmark, case):
    # The error is 0.1 and 0.2 times the same draws, so this is what is left at 0.
    low, high = (benchmark[case, noise].features[..., 0] for noise in ("low", "high"))
    return 2 * low - high


def losses(benchmark, case):
    """Return pi of the ill by the formula, and their cohort."""
    made = benchmark[case, "low"]
    planted = benchmark["planted", "low"].truth["seed"].to_numpy().astype(float)
    healthy = without_noise(benchmark, "planted")
    healthy = healthy + 1.5 * np.outer(severity(made), planted)
    ill = severity(made) > 0
    lost = (healthy - without_noise(benchmark, case))[ill]
    return lost / (1.5 * severity(made)[ill, None]), made.select(ill), healthy


def test_benchmark_values_are_mean_offset_loss_and_noise(benchmark):
    lost, made, healthy = losses(benchmark, "planted")
    offsets = healthy - healthy[:1]
    assert offsets.std(axis=1).max() < 1e-12
    assert offsets[:, 0].std() == pytest.approx(0.1, rel=0.25)
    assert healthy[0].std() == pytest.approx(0.25, rel=0.15)
    planted = made.truth["seed"].to_numpy()
    assert planted.sum() == 10
    assert np.array_equal(made.truth["effect"], -1.5 * planted)
    assert lost[:, planted] == pytest.approx(1.0)
    assert lost[:, ~planted] == pytest.approx(0.0, abs=1e-12)
    for noise, deviation in (("low", 0.1), ("high", 0.2)):
        values = benchmark["planted", noise].features[..., 0]
        error = values - without_noise(benchmark, "planted")
        assert error.std() == pytest.approx(deviation, rel=0.03)


@pytest.mark.parametrize("case", ["normalized", "combinatorial"])
def test_benchmark_spread_follows_the_operator_of_the_case(benchmark, case):
    lost, made, _ = losses(benchmark, case)
    seeds = made.truth["seed"].to_numpy()
    assert seeds.sum() == 6
    assert 0.5 < lost.max() <= 1.0 + 1e-12
    for person in range(5):
        network = made.connectomes[person].astype(float)
        degree = network.sum(axis=1)
        if case == "normalized":
            operator = np.eye(160) - network / np.sqrt(np.outer(degree, degree))
        else:
            operator = (np.diag(degree) - network) / degree.mean()
        # Observed counts stand in for the true weights, hence not exactly.
        expected = expm(-3 * operator) @ seeds
        assert np.corrcoef(lost[person], expected)[0, 1] > 0.98
    mean = -1.5 * lost.mean(axis=0)
    assert np.corrcoef(made.truth["effect"], mean)[0, 1] > 0.99
    slope = np.polyfit(mean, made.truth["effect"], 1)[0]
    assert slope == pytest.approx(1.0, abs=0.1)


def test_benchmark_cases_share_people_and_permuted_labels_say_nothing(benchmark):
    first, permuted = benchmark["normalized", "low"], benchmark["permuted", "low"]
    for case in ("combinatorial", "planted"):
        other = benchmark[case, "high"]
        assert np.array_equal(first.connectomes, other.connectomes)
        assert np.array_equal(first.y, other.y)
    assert np.array_equal(first.features, permuted.features)
    assert np.array_equal(first.connectomes, permuted.connectomes)
    assert not np.array_equal(first.y, permuted.y)
    assert sorted(first.y) == sorted(permuted.y)
    assert not permuted.truth["seed"].any()
    assert not permuted.truth["effect"].any()
