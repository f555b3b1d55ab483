"""Planted regions are recovered; starts do not matter; verdicts are honest."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from brainlsap.arrays import pack_scans
from brainlsap.evaluation import (
    Deconfounder,
    add_region_tests,
    agreement_table,
    common_regions,
    compare_regions,
    confound_table,
    cross_validate,
    fit_scale_table,
    make_models,
    rank_regions,
    ranking_auc,
    ranking_verdict,
    region_importance,
    region_properties,
    replicability_table,
)
from brainlsap.evaluation.ranking import (
    fit_scale_table_and_half_correlations,
    list_half_correlations_by_statistic,
    make_half_correlation_table,
)
from brainlsap.exceptions import ParameterError
from brainlsap.model.ridge import LSAPRidgeClassifier
from brainlsap.simulation import make_cohort


def with_scales(evaluation, scales, starts=()):
    """Return an evaluation whose one model has these scales (n_folds, n_rois)."""
    regions = list(evaluation.cohort.region_names)
    tables = [
        pd.DataFrame({"region": regions, "scale": fold_scales}).assign(
            model="it", repeat=1, fold=fold + 1, start=start, share=share
        )
        for start, share, maps in (("mean", 1.0, scales), *starts)
        for fold, fold_scales in enumerate(maps)
    ]
    return replace(evaluation, scales=pd.concat(tables, ignore_index=True))


@pytest.mark.parametrize("name", ["LSAP-C", "ridge with a scale per region"])
def test_planted_regions_are_recovered_whatever_the_starts(name):
    cohort = make_cohort(80, atlas="desikan82", random_state=2)
    models = make_models(name, start="constant", n_starts=1, n_epochs=60)
    if name != "LSAP-C":
        models[name][0].set_params(n_draws=12)
    evaluation = cross_validate(models, cohort, 3, baselines=False)
    ranking = rank_regions(evaluation)
    assert ranking_auc(ranking) > 0.99
    scales = evaluation.scales.query("start == 'mean' and share == 1")
    mean = scales.groupby("region", sort=False)["scale"].mean()
    by_mean = ranking.assign(rank=mean.rank().to_numpy())
    assert ranking_auc(ranking) >= ranking_auc(by_mean) - 0.01


def test_a_fold_that_began_elsewhere_changes_nothing(example_evaluation):
    rng = np.random.default_rng(0)
    scales = rng.uniform(0.5, 2, (3, 82))
    ranking = rank_regions(with_scales(example_evaluation, scales))
    initial = np.array([[0.2], [1], [10]])
    rescaled_ranking = rank_regions(with_scales(example_evaluation, scales * initial))
    np.testing.assert_allclose(
        ranking["relative_scale"], rescaled_ranking["relative_scale"]
    )
    np.testing.assert_array_equal(ranking["rank"], rescaled_ranking["rank"])
    by_hand = scales / np.median(scales, axis=1, keepdims=True)
    np.testing.assert_allclose(ranking["relative_scale"], by_hand.mean(axis=0))
    np.testing.assert_allclose(ranking["relative_low"], by_hand.min(axis=0))
    np.testing.assert_allclose(ranking["scale"], np.median(scales, axis=0))


def test_spread_intervals_ties_gaps_and_scales_that_stood_still(example_evaluation):
    measured = np.arange(82) != 7
    cohort = replace(example_evaluation.cohort, measured=measured)
    scales = np.tile(np.linspace(1, 3, 82), (2, 1))
    scales[:, 1] = scales[:, 0]
    scales[1, 5] = 1.5
    starts = [(str(k), 1.0, scales + 0.2 * k) for k in (1, 2)]
    evaluation = with_scales(
        replace(example_evaluation, cohort=cohort),
        scales,
        [*starts, ("mean", 0.0, np.full((2, 82), scales[0, 20]))],
    )
    ranking = rank_regions(evaluation, "it").set_index(np.arange(82))
    assert ranking["rank"][[0, 1, 2]].tolist() == [1, 1, 3]
    assert ranking.loc[7].isna().sum() >= 6
    assert not ranking.loc[7, "measured"]
    assert ranking.loc[20, "moved"] == 0
    assert ranking.loc[40, "moved"] == 1
    measured_regions = ranking.drop(7)
    assert (measured_regions["rank_low"] <= measured_regions["rank_high"]).all()
    with pytest.raises(ParameterError, match="has no regional scales"):
        rank_regions(evaluation, "majority class")


def test_a_map_that_follows_degree_is_flagged(example_evaluation, small_cohort):
    properties = region_properties(small_cohort)
    W = small_cohort.connectomes[:, 3].copy()
    W[:, 3] = 0
    assert properties.loc[3, "degree"] == pytest.approx((W > 0).sum(1).mean())
    assert properties.loc[3, "strength"] == pytest.approx(W.sum(1).mean())
    by_class = pd.Series(small_cohort.features[:, 3, 0]).groupby(small_cohort.y)
    pooled = (by_class.var(ddof=0) * by_class.size()).sum() / small_cohort.n_scans
    assert properties.loc[3, "variance_fdg"] == pytest.approx(pooled)
    rng = np.random.default_rng(0)
    follows = properties["degree"].rank().to_numpy() + rng.normal(0, 9, 82)
    maps = {True: np.abs(follows) + 1, False: rng.uniform(1, 2, 82)}
    for flagged, scale in maps.items():
        ranking = rank_regions(with_scales(example_evaluation, scale[None]))
        table = confound_table(ranking, properties).set_index("property")
        assert table.loc["degree", "flagged"] == flagged


def test_models_agree_with_themselves_and_share_regions(example_evaluation):
    rng = np.random.default_rng(0)
    maps = {"Exact": rng.uniform(1, 2, (3, 82)), "LSAP-C": rng.uniform(1, 2, (3, 82))}
    tables = [
        with_scales(example_evaluation, scales).scales.assign(model=name)
        for name, scales in maps.items()
    ]
    evaluation = replace(
        example_evaluation, scales=pd.concat(tables, ignore_index=True)
    )
    table = agreement_table(evaluation).set_index(["first", "second"])
    assert abs(table.loc[("Exact", "LSAP-C"), "spearman"]) < 0.3
    assert 0 < table.loc[("Exact", "Exact"), "kendall_w"] < 0.6
    assert table["chance_w"].tolist() == [1 / 3, 1 / 3, 1 / 2]
    alone = agreement_table(with_scales(evaluation, maps["Exact"][:1]))
    assert alone["chance_w"].isna().all()  # of one order
    regions, rmse = common_regions(evaluation, 20)
    medians = {name: np.median(scales, axis=0) for name, scales in maps.items()}
    smallest = [set(np.argsort(rank_regions(evaluation, n)["rank"])[:20]) for n in maps]
    names = np.array(evaluation.cohort.region_names)
    assert set(regions["region"]) == set(names[list(smallest[0] & smallest[1])])
    assert regions["Exact"].is_monotonic_increasing
    expected_rmse = np.sqrt(((medians["Exact"] - medians["LSAP-C"]) ** 2).mean())
    assert rmse.to_dict() == pytest.approx({"Exact": 0, "LSAP-C": expected_rmse})


def test_only_the_region_that_tells_the_label_is_important():
    cohort = make_cohort(20, atlas="desikan82", shares={"CN": 0.5, "AD": 0.5})
    X, y = cohort.to_array(), cohort.y
    X[:, 7, -1] = y == "AD"

    class Reader:
        def predict(self, X):
            return np.where(X[:, 7, -1] > 0.5, "AD", "CN")

    table = region_importance(Reader(), X, y, cohort.groups, 4)
    assert table["importance"].drop(7).eq(0).all()
    assert 0.2 < table["importance"][7] <= 1


def test_the_spread_of_an_importance_is_a_sample_standard_deviation():
    cohort = make_cohort(20, atlas="desikan82", shares={"CN": 0.5, "AD": 0.5})
    X, y = cohort.to_array(), cohort.y
    X[:, 0, -1] = y == "AD"

    class Reader:
        def predict(self, X):
            return np.where(X[:, 0, -1] > 0.5, "AD", "CN")

    # the first exchange of the first region is the same
    (one, two) = (
        region_importance(Reader(), X, y, cohort.groups, n, 5).loc[0] for n in (1, 2)
    )
    expected = np.sqrt(2) * abs(one["importance"] - two["importance"])
    assert expected > 0
    assert two["sd"] == pytest.approx(expected)
    assert np.isnan(one["sd"])


@pytest.fixture(scope="module")
def ranked(example_evaluation):
    return rank_regions(example_evaluation)


@pytest.fixture(scope="module")
def tested_evaluation(example_evaluation, small_cohort):
    tests = compare_regions(small_cohort, example_evaluation, n_permutations=99)
    return replace(example_evaluation, region_tests=tests)


def test_scales_of_one_fit_have_intervals_of_draws(small_cohort):
    ridge = LSAPRidgeClassifier("regions", n_draws=8)
    table = fit_scale_table(small_cohort, Deconfounder(), ridge)
    # by draws, as in folds: intervals by curvature hold less than they say
    X = pack_scans(small_cohort.connectomes, small_cohort.features)
    model = clone(ridge).set_params(classes=small_cohort.classes)
    model.fit(X, small_cohort.y, small_cohort.groups)
    np.testing.assert_allclose(table["fit_scale"], model.scales_, rtol=1e-6)
    columns = table[["fit_low", "fit_high"]]
    np.testing.assert_allclose(columns, model.scales_interval_, rtol=1e-6)


@pytest.mark.parametrize("by", ["effect", "contrast"])
def test_regions_are_ranked_by_effect_and_contrast(
    tested_evaluation, example_evaluation, by
):
    ranking = rank_regions(tested_evaluation, by=by)
    assert list(ranking["region"]) == list(tested_evaluation.cohort.region_names)
    statistic = "contrast_z" if by == "contrast" else "effect"
    size = ranking[statistic].abs() if by == "effect" else ranking[statistic]
    np.testing.assert_array_equal(ranking["rank"], size.rank(ascending=False))
    assert ranking_auc(ranking) > 0.9
    with pytest.raises(ParameterError, match="requires the table of compare_regions"):
        rank_regions(example_evaluation, by=by)
    # The feature in which a region comes first counts; what is missing has no rank.
    tests = tested_evaluation.region_tests
    smaller = tests.assign(feature="b", effect=tests["effect"] / 2)
    smaller["contrast_z"] = tests["contrast_z"] - 1
    smaller.loc[0, ["effect", "contrast_z"]] = 99.0
    tests = tests.assign(measured=tests.index != 5)
    tests.loc[5, ["effect", "contrast_z"]] = np.nan
    smaller = smaller.drop(5)
    both = pd.concat([tests, smaller], ignore_index=True)
    ranking = rank_regions(replace(tested_evaluation, region_tests=both), by=by)
    assert ranking["feature"].tolist() == ["b", *["fdg"] * 81]
    assert ranking["rank"][0] == 1
    assert np.isnan(ranking["rank"][5])


def test_a_ranking_takes_the_smallest_p_of_features(ranked, tested_evaluation):
    tests = tested_evaluation.region_tests
    both = pd.concat([tests.assign(p_effect=1.0), tests], ignore_index=True)
    ranking = add_region_tests(ranked, both).set_index("region")
    expected = tests.set_index("region").loc[ranking.index]
    assert ranking["p_effect"].equals(expected["p_effect"])
    assert ranking["p_contrast"].equals(expected["p_contrast"])
    n_effects = (expected["p_effect"] < 0.05).sum()
    assert n_effects > 0
    assert f"classes differ in {n_effects} of 82 regions" in ranking_verdict(ranking)


def test_too_few_permutations_are_said_to_be_too_few(ranked):
    assert "not tested by permutations" in ranking_verdict(ranked)
    few = ranked.assign(p_effect=0.4, p_contrast=0.4, n_permutations=20)
    verdict = ranking_verdict(few)
    assert "20 permutations are too few" in verdict
    assert "smallest possible p-value is 0.048. At least 99 permutations are" in verdict
    assert "stands out" not in verdict
    verdict = ranking_verdict(few.assign(n_permutations=99))
    assert "No region was shown to differ" in verdict
    assert "No region differs between the classes significantly more" in verdict
    peak = few.assign(n_permutations=99)
    peak.loc[3, ["p_effect", "p_contrast"]] = 0.01
    verdict = ranking_verdict(peak)
    assert "1 region differs between the classes significantly more" in verdict
    assert "does not prove that the disease began in these regions" in verdict


def test_maps_of_an_effect_replicate_and_maps_of_noise_do_not(small_cohort):
    ridge = LSAPRidgeClassifier("regions", n_draws=0)
    options = {"n_halves": 4, "n_scale_halves": 1, "random_state": 1}
    table = replicability_table(small_cohort, None, ridge, **options)
    table = table.set_index("statistic")
    assert table.index.tolist() == ["effect", "contrast", "scale"]
    assert table["n_halves"].tolist() == [4, 4, 1]
    # divisions computed apart, as a study computes them, are the same
    steps = Deconfounder()
    correlations = [
        list_half_correlations_by_statistic(small_cohort, steps, [division], 1)
        for division in range(4)
    ]
    options = {"n_halves": 1, "random_state": 1}
    scales, half_scales = fit_scale_table_and_half_correlations(
        small_cohort, steps, ridge, **options
    )
    correlations.append(half_scales)
    again = make_half_correlation_table(correlations).set_index("statistic")
    pd.testing.assert_frame_equal(table, again)
    pd.testing.assert_frame_equal(scales, fit_scale_table(small_cohort, steps, ridge))
    assert table.loc["effect", "spearman"] > 0.2
    assert (table["spearman_low"] <= table["spearman"]).all()
    noise = np.random.default_rng(0).normal(size=small_cohort.features.shape)
    without = replace(small_cohort, features=noise)
    table = replicability_table(without, n_halves=4, n_scale_halves=0)
    assert table["spearman"].abs().max() < 0.2
