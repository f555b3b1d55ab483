import numpy as np
import pandas as pd
import pytest
from scipy.stats import friedmanchisquare
from sklearn.dummy import DummyClassifier

from brainlsap.evaluation import (
    cross_validate,
    fold_agreement,
    rank_regions,
    rank_scales,
    ranking_auc,
    ranking_notes,
)
from brainlsap.exceptions import ParameterError

NAMES = tuple("abcdefg")


def truth_of(*seeds, regions=NAMES):
    return pd.DataFrame({"region": regions, "seed": [one in seeds for one in regions]})


def draw_scales(n_folds=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 3, size=(n_folds, len(NAMES)))


def test_planted_region_comes_first_and_the_unmeasured_has_no_rank(
    cohort, nearest_mean
):
    models = {"without scales": DummyClassifier(), "with": nearest_mean}
    evaluation = cross_validate(models, cohort, n_folds=3, baselines=False)
    truth = truth_of("region_2", regions=cohort.region_names)
    ranking = rank_regions(evaluation, truth=truth, top_k=1)
    assert list(ranking["region"]) == list(cohort.region_names)
    assert ranking.loc[2, ["rank", "top_share"]].tolist() == [1, 1]
    assert np.isnan(
        ranking.loc[5, ["rank", "top_share", "mean_rank"]].astype(float)
    ).all()
    assert ranking["seed"].tolist() == [False, False, True, *[False] * 4]
    # Region 4 is constant: its scale has no reason to move.
    assert ranking["moved"].tolist() == [True, True, True, True, False, False, True]
    assert ranking_auc(ranking, truth) == 1.0
    assert rank_regions(evaluation.result("with"))["rank"].equals(ranking["rank"])
    assert rank_regions(evaluation, model="with")["rank"].equals(ranking["rank"])


def test_mean_and_deviation_over_folds():
    scales = draw_scales()
    ranking = rank_scales(scales, NAMES)
    np.testing.assert_allclose(ranking["scale"], scales.mean(axis=0))
    np.testing.assert_allclose(ranking["scale_sd"], scales.std(axis=0, ddof=1))
    order = np.argsort(scales.mean(axis=0))
    np.testing.assert_array_equal(np.argsort(ranking["rank"]), order)
    assert ranking["moved"].isna().all()
    assert rank_scales(scales[:1], NAMES)["scale_sd"].isna().all()


def test_rank_by_mean_rank_is_not_pulled_by_one_wild_fold():
    scales = np.tile([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], (5, 1))
    scales[0, 0] = 50.0
    assert rank_scales(scales, NAMES).loc[0, "rank"] == 7
    assert rank_scales(scales, NAMES, by="mean_rank").loc[0, "rank"] == 2


def test_equal_scales_are_tied_although_the_last_bits_differ():
    scales = np.array([[0.3, 0.1 + 0.2, 1.0, 0.5, 0.6, 0.7, 0.8]])
    ranking = rank_scales(scales, NAMES)
    assert ranking["rank"].tolist() == [1, 1, 7, 3, 4, 5, 6]
    assert ranking["tied"].tolist() == [True, True, *[False] * 5]


def test_moved_means_most_folds_left_the_start():
    scales = np.full((3, 7), 2.0)
    scales[:, 0] = 1.0
    scales[0, 1] = 1.0
    scales[:2, 2] = 2.11
    scales[:, 3] = 2.09
    moved = rank_scales(scales, NAMES, start=np.full((3, 7), 2.0))["moved"]
    assert moved.tolist() == [True, False, True, False, False, False, False]


@pytest.mark.parametrize(
    ("scales", "measured", "sentence"),
    [
        (np.full((2, 7), 2.0), None, "No region's scale left its start"),
        (np.full((2, 7), 1.0), None, "All 7 measured regions have the same scale"),
        (draw_scales(), np.arange(7) > 1, "2 regions were not measured"),
        (np.array([[2.0, 1, 3, 4, 5, 6, 7]]), None, "1 of 7 measured regions stayed"),
        (np.array([[1.0, 1, 3, 4, 5, 6, 7]]), None, "2 regions share their rank"),
    ],
)
def test_notes_say_what_limits_the_ranking(scales, measured, sentence):
    start = np.full(scales.shape, 2.0)
    ranking = rank_scales(scales, NAMES, measured=measured, start=start)
    assert any(sentence in note for note in ranking_notes(ranking))


def test_a_clean_ranking_has_no_notes():
    scales = draw_scales()
    assert not ranking_notes(rank_scales(scales, NAMES, start=np.full((4, 7), 9.0)))


def test_auc_counts_pairs_and_ties_as_half():
    scales = np.array([[0.1, 0.2, 0.3, 0.3, 0.5, 0.6, 0.7]])
    measured = np.arange(7) != 6
    ranking = rank_scales(scales, NAMES, measured=measured)
    seeds, others = [0, 2], [1, 3, 4, 5]
    wins = [
        (scales[0, s] < scales[0, o]) + 0.5 * (scales[0, s] == scales[0, o])
        for s in seeds
        for o in others
    ]
    # The seed g was not measured and does not count.
    assert ranking_auc(ranking, truth_of("a", "c", "g")) == pytest.approx(np.mean(wins))


def test_agreement_equals_friedmans_statistic():
    scales = np.round(draw_scales(), 1)  # with ties
    statistic = friedmanchisquare(*scales.T).statistic
    assert fold_agreement(scales) == pytest.approx(statistic / (4 * 6))
    assert np.isnan(fold_agreement(scales[:1]))
    assert np.isnan(fold_agreement(np.ones((3, 5))))


def test_what_cannot_be_ranked(cohort):
    ranking = rank_scales(draw_scales(), NAMES)
    with pytest.raises(ParameterError, match="got 0 of 7"):
        ranking_auc(ranking, truth_of())
    with pytest.raises(ParameterError, match="regions that the ranking has not: z"):
        ranking_auc(ranking, truth_of("z", regions=["z"]))
    with pytest.raises(ParameterError, match="region and seed; seed missing"):
        ranking_auc(ranking, pd.DataFrame({"region": NAMES}))
    with pytest.raises(ParameterError, match=r"by must be one of .*got 'depth'"):
        rank_scales(draw_scales(), NAMES, by="depth")
    without = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    with pytest.raises(ParameterError, match="'DummyClassifier' has no scales"):
        rank_regions(without)
