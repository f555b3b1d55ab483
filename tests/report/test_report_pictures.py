"""Pictures of training and network on a report's page, remade from its folder."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from brainlsap.data import load_atlas
from brainlsap.evaluation import RankingEvidence
from brainlsap.exceptions import ParameterError
from brainlsap.report import remake_report, write_report
from brainlsap.report.network_pictures import draw_network
from brainlsap.report.training_pictures import animate_training, draw_training

N_ROIS = 7


def with_paths(evaluation, names=None):
    """Give the first model scales during training: from 2, region k down by k / 10."""
    main = evaluation.main
    way = np.linspace(0, 1, 21)[:, None] * np.arange(N_ROIS) / 10
    folds = tuple(
        replace(fold, scale_path=(2 - way).round(4), scales=(2 - way[-1]))
        for fold in main.folds
    )
    names = main.region_names if names is None else names
    given = {**evaluation.results}
    given[main.name] = replace(main, folds=folds, region_names=names)
    return replace(evaluation, results=given)


@pytest.fixture(scope="module")
def evaluation(make_evaluation):
    return with_paths(make_evaluation())


@pytest.fixture(scope="module")
def evidence(evaluation):
    rng = np.random.default_rng(3)
    weights = rng.gamma(1.0, 30.0, size=(N_ROIS, N_ROIS))
    kernel = np.eye(N_ROIS) * 0.7 + 0.05
    names = evaluation.main.region_names
    return RankingEvidence(
        evaluation.main.name,
        names,
        connectome=np.triu(weights, 1) + np.triu(weights, 1).T,
        reach={names[6]: kernel[6], names[0]: kernel[0]},
    )


def test_without_surfaces_there_are_lines_and_a_gap(evaluation, atlas):
    (lines,), (gap,) = draw_training(evaluation, atlas)
    assert lines.name == "scales_during_training"
    # region_5 was measured nowhere
    assert "smallest at the end: region_6, region_4, region_3" in lines.alt
    assert gap.startswith("Scales during training could not be drawn: ")
    bare = replace(evaluation, results={"linear": evaluation.result("linear")})
    assert draw_training(bare, atlas) == ((), ())


def test_scales_at_quarters_are_drawn_by_name(make_evaluation):
    atlas = load_atlas("desikan82")
    names = atlas.names[3 : 3 + N_ROIS]
    pictures, gaps = draw_training(with_paths(make_evaluation(), names), atlas)
    assert gaps == ()
    assert [one.name for one in pictures] == [
        "scales_during_training",
        "scales_at_quarters",
    ]
    assert "the start is 2.00. Grey" in pictures[1].caption
    assert names[6] in pictures[1].alt


def test_network_has_a_ring_where_there_is_no_brain(evidence, atlas):
    pictures, gaps = draw_network(evidence, atlas)
    assert [one.name for one in pictures] == ["connectome", "strongest_edges"]
    assert "100.0% of the pairs" in pictures[0].caption
    assert "inside a ring" in pictures[1].caption
    assert gaps[0].startswith("A picture of the network could not be drawn: ")
    assert draw_network(None, atlas) == ((), ())


def test_reach_tells_the_own_share_of_the_smallest_and_the_largest():
    atlas = load_atlas("desikan82")
    small, large = np.full(82, 0.01), np.full(82, 1.0)
    small[5], large[9] = 0.19, 19.0
    reach = {atlas.names[5]: small, atlas.names[9]: large}
    evidence = RankingEvidence("x", atlas.names, reach=reach)
    (picture,), gaps = draw_network(evidence, atlas)
    assert gaps == ()
    assert f"{atlas.short_names[5]} 19%" in picture.alt
    assert f"{atlas.short_names[9]} 19%" in picture.alt
    assert picture.png[:4] == b"\x89PNG"


def test_a_report_holds_them_and_is_remade_alike(
    evaluation, evidence, atlas, tmp_path, monkeypatch
):
    page = write_report(evaluation, tmp_path / "one", atlas=atlas, evidence=evidence)
    text = page.read_text(encoding="utf-8")
    for title in ("Scales during training", "The network, and how far regions look"):
        assert f"<h3>{title}</h3>" in text
    table = pd.read_csv(page.parent / "mean_connectome.tsv", sep="\t", index_col=0)
    assert tuple(table.columns) == tuple(table.index) == evidence.region_names
    np.testing.assert_allclose(table.to_numpy(), evidence.connectome)
    asked = []
    monkeypatch.setattr(
        "brainlsap.report.page.animate_training", lambda *told: asked.append(told)
    )
    again = remake_report(tmp_path / "one", tmp_path / "two")
    assert not asked
    figures = sorted((page.parent / "figures").iterdir())
    assert "connectome.png" in [one.name for one in figures]
    for one in figures:
        assert (again.parent / "figures" / one.name).read_bytes() == one.read_bytes()
    remake_report(tmp_path / "one", tmp_path / "three", animation=True)
    assert len(asked) == 1


def test_training_is_animated(make_evaluation, tmp_path, monkeypatch):
    desikan = load_atlas("desikan82")
    evaluation = with_paths(make_evaluation(), desikan.names[3 : 3 + N_ROIS])
    seen = {}

    def write(scales, shares, names, path, _, *, when):
        seen.update(shares=shares, n=len(scales), names=names, when=when)
        Image.new("L", (3, 2)).save(path)
        return path

    monkeypatch.setattr(
        "brainlsap.report.training_pictures.write_training_animation", write
    )
    path = animate_training(evaluation, desikan, tmp_path)
    assert path.name == "scales_during_training.gif"
    assert seen["shares"][::10] == [0, 50, 100]
    assert seen["when"].format(50) == "50% of training"
    bare = replace(evaluation, results={"linear": evaluation.result("linear")})
    assert animate_training(bare, desikan, tmp_path) is None


def test_arrays_of_other_regions_are_refused(evaluation):
    names = evaluation.main.region_names
    with pytest.raises(ParameterError, match=r"connectome must have one column .*7"):
        RankingEvidence("x", names, connectome=np.ones((3, 3)))
    with pytest.raises(ParameterError, match="reach of a must have one column"):
        RankingEvidence("x", names, reach={"a": np.ones(3)})
