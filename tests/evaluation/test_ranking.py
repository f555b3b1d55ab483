"""Planted regions are recovered; starts do not matter; nulls are honest."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainlsap.arrays import pack
from brainlsap.evaluation import (
    agreement_table,
    common_regions,
    confound_table,
    cross_validate,
    make_models,
    permutation_null,
    rank_regions,
    ranking_auc,
    ranking_verdict,
    region_importance,
    region_properties,
)
from brainlsap.evaluation.ranking import family_wise_p
from brainlsap.evaluation.results import data_hash
from brainlsap.evaluation.splits import permute_labels
from brainlsap.exceptions import ParameterError
from brainlsap.model.evidence import region_slopes
from brainlsap.model.nested_models import fit_nested_models
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
    with pytest.raises(ParameterError, match="has no scales to rank regions by"):
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


def test_family_wise_p_values_are_those_of_the_largest_of_all():
    rng = np.random.default_rng(0)
    measured = np.arange(12) != 4
    slopes = rng.normal(size=(40, 12))
    slopes[0, 3] = 4.0
    p = family_wise_p(slopes, measured)
    z = (slopes - slopes.mean(0)) / slopes.std(0)
    for region in np.flatnonzero(measured):
        beaten = sum(z[b, measured].max() >= z[0, region] for b in range(1, 40))
        assert p[region] == pytest.approx((1 + beaten) / 40)
    assert np.isnan(p[4])


def test_the_null_is_kept_in_at_most_five_of_a_hundred_cohorts_without_effect():
    rng, rejected = np.random.default_rng(0), 0
    for _ in range(400):
        slopes = rng.gamma(2.0, size=(25, 30)) * rng.uniform(0.5, 2, (25, 1))
        p = family_wise_p(slopes, np.ones(30, bool))
        rejected += p.min() < 0.05
    assert rejected / 400 < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 400)


def test_slopes_are_those_of_the_evidence_where_its_common_scale_is_best(small_cohort):
    model = LSAPRidgeClassifier()
    evidence = model.learn_evidence(small_cohort.to_array(), small_cohort.groups)
    codes = np.array([small_cohort.classes.index(one) for one in small_cohort.y])
    slopes = region_slopes(evidence, codes[None], True, 10.0)[0]
    evidence.set_targets(codes[:, None].astype(float))
    fit = fit_nested_models(evidence, "one", 10.0)["one"]
    deviation = np.sqrt(np.diag(evidence.information(fit.scales, fit.ridge)))
    expected = evidence(fit.scales, fit.ridge)[1] * fit.scales / deviation
    assert np.corrcoef(slopes, expected)[0, 1] > 0.99  # the grid is near the best
    np.testing.assert_allclose(slopes, expected, atol=0.3)


@pytest.fixture(scope="module")
def ranked(example_evaluation):
    return rank_regions(example_evaluation)


def of_cohort(ranking, cohort):
    ranking = ranking.copy()
    ranking.attrs["data_hash"] = data_hash(cohort)
    return ranking


def test_permuted_labels_tell_which_regions_stand_out(ranked, small_cohort):
    tested = permutation_null(ranked, small_cohort, 99)
    assert tested.query("planted")["p"].min() < 0.05
    n_significant = (tested["p"] < 0.05).sum()
    assert f"In {n_significant} of 82 regions" in ranking_verdict(tested)
    # by draws, as in folds: intervals by curvature hold less than they say
    X = pack(small_cohort.connectomes, small_cohort.features)
    model = LSAPRidgeClassifier("regions", classes=small_cohort.classes)
    low_high = model.fit(X, small_cohort.y, small_cohort.groups).scales_interval_
    np.testing.assert_allclose(tested[["fit_low", "fit_high"]], low_high, rtol=1e-6)
    rng = np.random.default_rng(5)
    label = permute_labels(small_cohort.y, small_cohort.groups, rng)
    permuted_cohort = replace(
        small_cohort, table=small_cohort.table.assign(label=label)
    )
    with pytest.raises(ParameterError, match="the one that the ranking is of"):
        permutation_null(ranked, permuted_cohort)
    ranked = of_cohort(ranked, permuted_cohort)
    null = permutation_null(ranked, permuted_cohort, 40)
    assert null["p"].min() > 0.05
    # by name, whatever was sorted or left out
    top_regions = ranked.sort_values("rank").head(9)
    of_top_regions = permutation_null(top_regions, permuted_cohort, 40).set_index(
        "region"
    )
    expected = null.set_index("region").loc[
        list(top_regions["region"]), list(of_top_regions)
    ]
    pd.testing.assert_frame_equal(of_top_regions, expected)
    with pytest.raises(ParameterError, match=r"what rank_regions returns; got str"):
        permutation_null("LSAP-C", permuted_cohort)


def test_the_null_goes_through_the_same_steps(ranked, small_cohort):
    with_steps = ranked.copy()
    with_steps.attrs["steps"] = {"harmonize": "site", "regress_out": ["age"]}
    site = small_cohort.table["site"]
    shift = 9.0 * (site == site[0]).to_numpy()[:, None, None]
    shifted_cohort = replace(small_cohort, features=small_cohort.features + shift)
    raw = permutation_null(of_cohort(ranked, shifted_cohort), shifted_cohort, 20)["p"]
    clean = permutation_null(of_cohort(with_steps, shifted_cohort), shifted_cohort, 20)[
        "p"
    ]
    shifted = permutation_null(with_steps, small_cohort, 20)["p"]
    assert np.abs(clean - shifted).mean() < 0.5 * np.abs(raw - shifted).mean()


def test_too_few_permutations_are_said_to_be_too_few(ranked, small_cohort):
    assert "not held against permuted labels" in ranking_verdict(ranked)
    few = permutation_null(ranked, small_cohort, 20)
    verdict = ranking_verdict(few)
    assert "Too few permutations (20)" in verdict
    assert "smallest possible p-value is 0.048. At least 99 are needed" in verdict
    assert "stand out" not in verdict
    none = few.assign(p=0.4, n_permutations=99)
    assert "No region was shown to stand out" in ranking_verdict(none)
