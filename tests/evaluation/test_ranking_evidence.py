import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from brainlsap.data import Atlas, load_atlas, make_cohort
from brainlsap.evaluation import (
    RankingEvidence,
    add_evidence,
    agreement_table,
    confound_table,
    group_ranking,
    rank_correlation,
    rank_one_share,
    rank_scales,
    rank_without,
    ranking_notes,
    ranking_verdict,
    region_properties,
    scale_spread,
    spin_test,
    start_spread,
    top_k_overlap,
    untrained_agreement,
)
from brainlsap.evaluation.spin import random_rotation, sphere_points
from brainlsap.exceptions import FileFormatError, ParameterError

NAMES = tuple("abcdefghijkl")
N_ROIS = len(NAMES)


def draw_scales(n_folds=4, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 3, size=(n_folds, N_ROIS))


def draw_evidence(**parts):
    return RankingEvidence("LSAP-C", NAMES, **parts)


def test_intervals_cover_folds_repeats_and_seeds():
    rng = np.random.default_rng(1)
    seeds = [rng.uniform(0.2, 2, size=(3, N_ROIS)) for _ in range(4)]
    scales = np.stack([one.mean(axis=0) for one in seeds])
    known = np.arange(N_ROIS) != 2
    found = scale_spread(scales, known, seeds=seeds, n_repeats=2)
    every = np.vstack(seeds)
    np.testing.assert_allclose(found["scale_low"], np.percentile(every, 2.5, axis=0))
    repeats = np.stack([scales[:2].mean(axis=0), scales[2:].mean(axis=0)])
    np.testing.assert_allclose(found["sd_repeats"], repeats.std(axis=0, ddof=1))
    within = np.mean([one.var(axis=0, ddof=1) for one in seeds], axis=0)
    np.testing.assert_allclose(found["sd_seeds"] ** 2, within)
    assert found.loc[2, ["rank_low", "rank_high"]].isna().all()
    assert found["rank_high"].max() <= N_ROIS - 1
    alone = scale_spread(scales, known)
    assert alone[["sd_repeats", "sd_seeds"]].isna().all(axis=None)


def test_spread_over_starts_is_of_their_means():
    starts = {0.3: draw_scales(seed=1), 2.0: draw_scales(seed=2)}
    found = start_spread(starts, np.ones(N_ROIS, bool))
    means = np.stack([one.mean(axis=0) for one in starts.values()])
    np.testing.assert_allclose(found["scale_from_0.3"], means[0])
    np.testing.assert_allclose(found["start_spread"], np.abs(means[0] - means[1]))
    assert (found["start_rank_low"] <= found["start_rank_high"]).all()


def test_agreement_of_folds_and_of_kernels():
    same = np.tile(np.arange(1.0, N_ROIS + 1), (3, 1))
    measured = np.arange(N_ROIS) < 10
    table = agreement_table({"C": same, "H": same[:, ::-1]}, measured, top_k=4)
    assert list(zip(table["first"], table["second"], strict=True)) == [
        ("C", "C"),
        ("H", "H"),
        ("C", "H"),
    ]
    assert table["kendall_w"].round(9).tolist() == [1, 1, 0]
    assert table["spearman"].round(9).tolist()[2] == -1
    assert table["top_k_jaccard"].tolist() == [1, 1, 0]
    half = np.array([[1.0, 2, 3, 4], [1, 4, 3, 2], [1, 2, 3, 4]])
    assert top_k_overlap(half, 2) == pytest.approx((1 / 3 + 1 + 1 / 3) / 3)
    assert np.isnan(top_k_overlap(half[:1], 2))


def test_rank_correlation_is_spearmans():
    first, second = draw_scales(2)
    first[:3] = first[3]
    expected = spearmanr(first, second).statistic
    assert rank_correlation(first, second) == pytest.approx(expected)
    assert np.isnan(rank_correlation(np.ones(5), np.arange(5.0)))


def test_properties_are_those_of_the_connectomes():
    cohort = make_cohort(10, atlas="desikan82", feature=["volume", "fdg"])
    found = region_properties(cohort, threshold=10)
    kept = np.where(cohort.connectomes >= 10, cohort.connectomes, 0)
    kept[:, np.arange(82), np.arange(82)] = 0
    np.testing.assert_allclose(found["degree"], (kept > 0).sum(2).mean(0))
    np.testing.assert_allclose(found["strength"], kept.sum(2).mean(0))
    np.testing.assert_allclose(found["size"], cohort.features[:, :, 0].mean(0))
    np.testing.assert_allclose(found["variance_fdg"], cohort.features[:, :, 1].var(0))
    surface = region_properties(make_cohort(10, atlas="desikan82"))["size"]
    labels = cohort.atlas.vertex_labels("L")
    assert surface[0] == (labels == 0).sum()
    assert surface.isna().sum() == 14  # below the cortex there are no vertices


def test_a_ranking_that_follows_degree_is_flagged_and_nothing_is_left():
    rng = np.random.default_rng(3)
    degree = rng.permutation(N_ROIS).astype(float)
    properties = pd.DataFrame(
        {"region": NAMES[::-1], "degree": degree[::-1], "size": np.nan}
    )
    ranking = rank_scales((3 - degree / 5)[None], NAMES)
    table = confound_table(ranking, properties).set_index("property")
    assert table.loc["degree", "spearman"] == pytest.approx(-1)
    assert table["flagged"].tolist() == [True, False]
    left = rank_without(ranking, properties)
    assert left.attrs["explained"] == pytest.approx(1)
    assert left["rank_adjusted"].nunique() == 1
    (note,) = ranking_notes(
        rank_scales((3 - degree / 5)[None], NAMES, start=np.full((1, N_ROIS), 9.0)),
        draw_evidence(properties=properties),
    )
    assert note.startswith("Scale follows degree (Spearman -1.00)")
    assert "100% of the ranks' variance" in note


def test_what_is_planted_beside_degree_stays_on_top():
    degree = np.arange(N_ROIS, dtype=float)
    scale = 3 - degree / 5
    scale[1] -= 2.2
    ranking = rank_scales(scale[None], NAMES)
    properties = pd.DataFrame({"region": NAMES, "degree": degree})
    assert rank_without(ranking, properties)["rank_adjusted"][1] == 1


def test_share_of_rank_one_tells_a_dense_kernel_from_a_local_one():
    u = np.full(20, 20**-0.5)
    assert rank_one_share(0.135 * np.eye(20) + 0.8 * np.outer(u, u)) > 0.9
    ring = np.eye(20) + np.roll(np.eye(20), 1, 0) + np.roll(np.eye(20), -1, 0)
    assert rank_one_share(ring) < 0.2
    assert np.isnan(rank_one_share(np.eye(3)))
    with pytest.raises(ParameterError, match=r"\(n_rois, n_rois\), got \(2, 3\)"):
        rank_one_share(np.ones((2, 3)))
    (note,) = ranking_notes(
        rank_scales(draw_scales(), NAMES, start=np.full((4, N_ROIS), 9.0)),
        draw_evidence(rank_one={"LSAP-C": 0.92, "Exact": 0.5}),
    )
    assert "rank one: LSAP-C 92%)" in note
    assert "own value against the whole-brain mean" in note


def test_evidence_becomes_columns_and_survives_json():
    scales = draw_scales()
    ranking = rank_scales(scales, NAMES, start=np.full((4, N_ROIS), 9.0))
    null = np.vstack([scales.mean(0), draw_scales(19, seed=5)])
    evidence = draw_evidence(
        properties=pd.DataFrame({"region": NAMES, "degree": np.arange(N_ROIS)}),
        starts={0.3: scales, 2.0: scales[::-1] + 0.1},
        permuted=null,
        untrained=null[:4],
        importance=np.append(-scales.mean(0)[:-1], np.nan),
        importance_kind="integrated gradients",
    )
    text = json.dumps(evidence.to_record(), allow_nan=False)
    again = RankingEvidence.from_record(json.loads(text))
    first, second = add_evidence(ranking, evidence), add_evidence(ranking, again)
    pd.testing.assert_frame_equal(first, second)
    assert {"p_family", "p_fdr", "p_untrained", "start_spread"} <= set(first)
    assert first["importance_rank"].notna().sum() == N_ROIS - 1
    # four averaged folds spread less than single fits: no region stands out
    notes = ranking_notes(first, evidence)
    assert notes[0] == ranking_verdict(first)
    assert "not better than its null" in notes[0]
    assert ranking_verdict(ranking) is None
    assert ranking_verdict(first.assign(p_family=0.01)) is None
    sharp = np.where(np.arange(N_ROIS) < 2, 0.02, 0.9)
    told = ranking_verdict(first.assign(p_centred=sharp))
    assert "their fit, 2 are (centred p < 0.025)" in told
    # one of two tests at the level itself does not count
    assert "Do not interpret it" in ranking_verdict(first.assign(p_centred=0.03))


def test_what_was_there_before_training_is_told():
    scales = draw_scales(1)
    ranking = rank_scales(scales, NAMES, start=np.full((1, N_ROIS), 9.0))
    evidence = draw_evidence(
        untrained=np.vstack([scales, 0.1 * scales, 0.1 * scales]),
        starts={0.3: scales, 2.0: 4 - scales},
    )
    assert untrained_agreement(evidence) == pytest.approx(1)
    assert np.isnan(untrained_agreement(draw_evidence()))
    before, starts = ranking_notes(ranking, evidence)
    assert before.startswith("Networks before training order the regions alike")
    assert "the lowest rank correlation is -1.00" in starts


def test_groups_of_regions():
    atlas = load_atlas("desikan82")
    scales = np.ones((1, 82))
    lobe = atlas.regions["lobe"].to_numpy()
    scales[0, lobe == "occipital"] = 0.2
    measured = np.arange(82) != 0
    ranking = rank_scales(scales, atlas.names, measured=measured)
    table = group_ranking(ranking, atlas, top_k=8)
    assert table["group"][0] == "occipital"
    assert table["top"][0] == table["regions"][0] == (lobe == "occipital").sum()
    assert table["regions"].sum() == 81
    networks = {atlas.names[k]: "visual" for k in range(5)}
    one = group_ranking(ranking, atlas, networks)
    assert one[["group", "regions"]].to_numpy().tolist() == [["visual", 4]]
    with pytest.raises(ParameterError, match="column of the atlas, got 'tract'"):
        group_ranking(ranking, atlas, "tract")
    with pytest.raises(ParameterError, match="no measured region a group"):
        group_ranking(ranking, atlas, {atlas.names[0]: "visual"})


def test_rotations_are_rotations_and_favour_no_direction():
    rng = np.random.default_rng(0)
    turned = np.stack([random_rotation(rng) for _ in range(400)])
    np.testing.assert_allclose(
        turned @ turned.mT, np.tile(np.eye(3), (400, 1, 1)), atol=1e-12
    )
    np.testing.assert_allclose(np.linalg.det(turned), 1)
    assert np.abs(turned.mean(0)).max() < 0.15


def test_smooth_maps_agree_by_chance_more_than_permutation_thinks():
    atlas = load_atlas("desikan82")
    place = atlas.regions[["x", "y", "z"]].to_numpy()
    along = pd.Series(place[:, 1], index=atlas.names)
    tilted = pd.Series(place[:, 1] + place[:, 2], index=atlas.names)
    same = spin_test(along, along, atlas, n_spins=29)
    assert (same.correlation, same.n_regions) == (1.0, 82)
    assert same.p_value == pytest.approx(1 / 30)
    other = spin_test(along, dict(tilted.drop(tilted.index[0])), atlas, 29, 1)
    assert other.n_regions == 81
    # a plain permutation null of 81 regions has a deviation of 0.11
    assert other.rotated.std() > 0.15
    again = spin_test(along, dict(tilted.drop(tilted.index[0])), atlas, 29, 1)
    np.testing.assert_array_equal(again.rotated, other.rotated)


def test_sphere_lies_under_the_labels_of_the_atlas():
    atlas = load_atlas("desikan82")
    points, labels = sphere_points("L"), atlas.vertex_labels("L")
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)
    assert len(points) == len(labels)
    regions = list(atlas.regions["annot_name"])
    front, back = (
        points[labels == regions.index(name)][:, 1].mean()
        for name in ("frontalpole", "pericalcarine")
    )
    assert front > back


def test_what_is_no_evidence(monkeypatch):
    ranking = rank_scales(draw_scales(), NAMES)
    with pytest.raises(ParameterError, match="one row for each region"):
        confound_table(ranking, pd.DataFrame({"region": ["a"], "degree": [1]}))
    with pytest.raises(ParameterError, match="importance must have one column"):
        draw_evidence(importance=np.ones(3))
    with pytest.raises(ParameterError, match="regions of the ranking"):
        add_evidence(ranking[::-1], draw_evidence())
    with pytest.raises(FileFormatError, match="lacks or spoils a part"):
        RankingEvidence.from_record({"model": "x"})
    atlas = load_atlas("desikan82")
    few = dict.fromkeys(atlas.names[:3], 1.0)
    with pytest.raises(ParameterError, match="five common regions, got 3"):
        spin_test(few, few, atlas)
    without = Atlas("bare", atlas.regions, folder=None)
    values = dict(zip(atlas.names, range(82), strict=True))
    with pytest.raises(FileFormatError, match="no surface labels"):
        spin_test(values, values, without, 1)
    monkeypatch.setattr("brainlsap.evaluation.spin.find_spec", lambda _: None)
    with pytest.raises(FileFormatError, match="install nilearn"):
        sphere_points("L")
