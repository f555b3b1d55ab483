"""Which regions a report names and outlines, and the numbers that it gives of them."""

import html
import json
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from brainlsap import report
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.evaluation import rank_regions
from brainlsap.evaluation.leakage import CheckKey
from brainlsap.evaluation.models import NESTED_RIDGES
from brainlsap.exceptions import ParameterError
from brainlsap.report import page, regions
from tests.report.conftest import assert_heads_match_cells, draw_region_tests

pytestmark = pytest.mark.usefixtures("brief_studies")

ATLAS = load_atlas("desikan82")
NAMES_ALONE = Atlas.from_names(ATLAS.names)
PEAK = "Right-Hippocampus"
NAMES = ["ctx-lh-cuneus", "ctx-rh-cuneus", "ctx-lh-insula", "Left-Amygdala", PEAK]
NAMES += ["ctx-lh-precuneus", "ctx-rh-precuneus"]
EFFECTS = [-0.1, -0.2, -0.3, -0.4, -0.5, -0.01, 0.02]
DIFFERING = {"Left-Amygdala", "ctx-rh-cuneus", PEAK}


@pytest.fixture(scope="module")
def tested(make_evaluation):
    evaluation = make_evaluation(regions=[*NAMES], atlas_name="desikan82")
    places = ATLAS.regions.set_index("name").loc[NAMES].reset_index()
    cohort = replace(
        evaluation.cohort, regions=places, measured=np.ones(len(NAMES), dtype=bool)
    )
    evaluation = replace(evaluation, cohort=cohort)
    region_tests = draw_region_tests(evaluation, EFFECTS, DIFFERING, {PEAK})
    is_note = evaluation.audit["severity"] == "note"
    return replace(
        evaluation, region_tests=region_tests, audit=evaluation.audit[is_note]
    )


def with_permutations(evaluation, n_permutations):
    table = evaluation.region_tests.assign(n_permutations=n_permutations)
    return replace(evaluation, region_tests=table)


def outlined_of(axes):
    return {
        one.get_gid().rpartition(".")[2]
        for one in axes.patches
        if one.get_path_effects()
    }


def colors_of(axes):
    return {
        one.get_gid().rpartition(".")[2]: one.get_facecolor() for one in axes.patches
    }


def test_regions_are_selected_by_corrected_p_and_then_by_effect(tested):
    assert list(regions.select_top_region_test_table(tested, 3)["region"]) == [
        PEAK,
        "Left-Amygdala",
        "ctx-rh-cuneus",
    ]
    table = tested.region_tests.assign(p_contrast=[0.01, 1, 1, 1, 1, 1, 1])
    peak = replace(tested, region_tests=table)
    assert list(regions.select_top_region_test_table(peak, 1)["region"]) == [
        PEAK,
        NAMES[0],
    ]
    assert set(regions.list_significant_regions(tested, "effect")) == DIFFERING
    assert regions.list_significant_regions(tested, "contrast") == [PEAK]
    assert set(regions.list_marked_regions(tested)) == DIFFERING
    few = with_permutations(tested, 98)
    assert regions.list_significant_regions(few, "effect") == []
    assert regions.list_marked_regions(few) == []
    assert regions.select_top_region_test_table(few, 1)["region"].tolist() == [PEAK]


def test_both_sides_of_a_structure_are_one_name():
    names = ["left amygdala", "right putamen", "right amygdala"]
    text = regions.region_names_text(names, None)
    assert text == "left and right amygdala, and right putamen"
    # Every region of a list that a sentence can hold is named.
    many = [f"region {k}" for k in range(13)]
    assert "region 11" in regions.region_names_text(many[:12], None)
    assert regions.region_names_text(many, None).endswith("region 5 and 7 others")
    assert regions.region_names_text(names, None, 2) == (
        "left amygdala, right putamen and 1 other"
    )


def test_the_table_has_three_questions_side_by_side(tested):
    table = report.region_tests_table(tested, ATLAS, 2)
    assert list(table["region"]) == ["right hippocampus", "left amygdala"]
    first = table.iloc[0]
    assert first["effect [95%, uncorrected]"] == "-0.50 [-0.55, -0.45]"
    assert (first["p (effect, corrected)"], first["p (contrast, corrected)"]) == (
        "≤ 0.010",
        "0.020",
    )
    unmarked = report.region_tests_table(tested, ATLAS, 2, marks_smallest_p=False)
    assert unmarked["p (effect, corrected)"].astype(float).iloc[0] == pytest.approx(
        0.01
    )
    # The contrast has the direction of the effect.
    assert first["contrast [95%, uncorrected]"] == "-0.25 [-0.30, -0.20]"
    row = regions.select_top_region_test_table(tested, 2).iloc[0]
    assert row["effect"] * row["contrast"] > 0
    # Eta has none.
    unordered = tested.region_tests.assign(F=1.0)
    assert regions.make_signed_test_table(unordered).equals(unordered)
    few = report.region_tests_table(with_permutations(tested, 98), ATLAS, 2)
    assert set(few["p (effect, corrected)"]) == {"n/a"}
    with pytest.raises(ParameterError, match="region_tests"):
        report.region_tests_table(replace(tested, region_tests=None))


def test_lobes_and_hemispheres_are_summarised(tested):
    table = report.region_group_table(tested)
    keys = ["grouping", "group", "hemisphere"]
    rows = table.set_index(keys)
    lobe = rows.loc[("lobe", "occipital", "all")]
    assert lobe["n_regions"] == 2
    assert lobe["d_AD"] == pytest.approx(2 * np.mean([-0.1, -0.2]))
    assert (lobe["n_effect"], lobe["n_contrast"]) == (1, 0)
    assert rows.loc[("lobe", "occipital", "R"), "d_AD"] == pytest.approx(-0.4)
    left = rows.loc[("hemisphere", "L", "all")]
    assert left["n_regions"] == 4
    assert left["n_effect"] == 1  # the amygdala
    assert rows.loc[("hemisphere", "R", "all"), "n_contrast"] == 1
    few = report.region_group_table(with_permutations(tested, 98))
    assert few[["n_effect", "n_contrast"]].isna().all(axis=None)
    network = tested.cohort.regions.assign(
        network=["Vis", "Vis", "", np.nan, "Def", "", ""], lobe="n/a"
    )
    cohort = replace(tested.cohort, regions=network)
    table = report.region_group_table(replace(tested, cohort=cohort))
    groups = table.query("grouping == 'network' and hemisphere == 'all'")
    assert groups.set_index("group")["n_regions"].to_dict() == {"Vis": 2, "Def": 1}
    assert {*table["grouping"]} == {"network", "hemisphere"}


def test_effects_have_one_symmetric_range_and_outlines_in_the_last_row(tested):
    figure = report.plot_effects(tested, atlas=ATLAS)
    bars = [ax for ax in figure.axes if ax.get_label() == "colour bar"]
    assert len(bars) == 1
    assert bars[0].get_ylim() == (-2.0, 2.0)
    rows = [ax for ax in figure.axes if ax.get_label() == "subcortex"]
    assert len(rows) == 2
    # The tests concern all classes together, so they belong to no other row.
    assert [outlined_of(ax) for ax in rows] == [set(), {"Left-Amygdala", PEAK}]
    assert not rows[0].lines
    first, second = map(colors_of, rows)
    # d of the last class is -1, twice that of the first
    np.testing.assert_allclose(second[PEAK], plt.get_cmap("RdBu_r")(0.25), atol=0.02)
    np.testing.assert_allclose(first[PEAK], plt.get_cmap("RdBu_r")(0.375), atol=0.02)
    last_row = rows[1]  # the peak alone, in its lateral and its medial drawing
    shape = next(one for one in last_row.patches if one.get_gid().endswith(PEAK))
    path = shape.get_transform().transform_path(shape.get_path())
    (dots,) = last_row.lines
    spots = last_row.transAxes.transform(dots.get_xydata())
    assert path.contains_points(spots).tolist() == [True, True]
    assert (dots.get_ydata() > 0.5).tolist() == [True, False]
    (key,) = [ax for ax in figure.axes if ax.get_label() == "key"]
    assert len(key.texts) == 2
    # The title of the row says that its marks are no test of its class.
    words = [text.get_text() for text in figure.findobj(plt.Text)]
    assert sum("(outlines:" in text for text in words) == 1
    few = report.plot_effects(with_permutations(tested, 98), atlas=ATLAS)
    assert not [ax for ax in few.axes if ax.get_label() == "key"]
    assert not any(outlined_of(ax) for ax in few.axes if ax.get_label() == "subcortex")


@pytest.mark.parametrize(
    ("largest", "limit"), [(0.1, 2.0), (2.0, 2.0), (2.5, 4.0), (9.0, 4.0)]
)
def test_colors_of_effects_end_at_a_step(tested, largest, limit):
    columns = [name for name in tested.region_tests if name.startswith("d_")]
    table = tested.region_tests.copy()
    table[columns] *= largest / table[
        list(report.regions.difference_title_by_column(tested))
    ].abs().max(axis=None)
    figure = report.plot_effects(replace(tested, region_tests=table), atlas=ATLAS)
    (bar,) = [ax for ax in figure.axes if ax.get_label() == "colour bar"]
    assert bar.get_ylim() == (-limit, limit)
    assert f"±{limit:g}" in figure.note


def test_regions_are_neither_named_nor_drawn_by_scales_that_hardly_differ(
    tested, tmp_path, monkeypatch
):
    even_scales = tested.scales.assign(scale=1 + tested.scales["scale"] / 200)
    even = replace(tested, scales=even_scales)
    even = replace(even, ranking=rank_regions(even))
    assert regions.list_models_of_varied_scales(even) == []
    *_, scale = regions.list_region_answers(even, ATLAS)
    assert scale.claim == ""
    assert not any(name in scale.answer for name in ("hippocampus", "amygdala"))
    assert "shows no map of scales" in scale.answer
    assert not any("scale" in name for name in report.region_tests_table(even, ATLAS))
    halves = pd.DataFrame({"statistic": ["effect", "scale"], "spearman": 0.5})
    halves = halves.assign(spearman_low=0.4, spearman_high=0.6)
    for study, has_scale in ((tested, True), (even, False)):
        text = regions.replicability_text(replace(study, replicability=halves))
        # A reader learns what a low value means for ranks, beside that of chance.
        assert "Unrelated maps give 0" in text
        assert "ranks of the regions are similar" in text
        assert ("scale 0.50" in text) == has_scale
        assert "effect 0.50" in text
        low = halves.assign(spearman=[0.7, 0.49])
        text = regions.replicability_text(replace(study, replicability=low))
        assert (
            "ranks by scale differ between the two halves (below 0.5)" in text
        ) == has_scale
    names = [
        regions.list_region_answers(replace(tested, replicability=x), ATLAS)[-1]
        for x in (halves, low)
    ]
    assert ["has the smallest scale" in name.answer for name in names] == [True, False]
    # Scales whose ranks may not be reported do not stand beside the tests, either.
    columns = [
        " ".join(report.region_tests_table(replace(tested, replicability=x), ATLAS))
        for x in (halves, low)
    ]
    assert ["relative scale" in text for text in columns] == [True, False]
    draw_figures = page.draw_figure_by_name

    def draw_maps(evaluation, atlas, figure_names):
        map_names = {name for name in figure_names if page.FIGURES[name].needs_atlas}
        return draw_figures(evaluation, atlas, map_names)

    monkeypatch.setattr(page, "draw_figure_by_name", draw_maps)
    page_path = report.write_report(even, tmp_path / "out", atlas=NAMES_ALONE)
    written = {path.stem for path in page_path.parent.rglob("*.*")}
    of_scales = {"scales", "agreement", "confounds", "common_regions"}
    assert of_scales.isdisjoint(written)
    assert {"brain", "quarters"}.isdisjoint(written)
    assert {"regions", "effects"} <= written


def test_scales_of_a_network_without_weight_are_left_out(tested):
    model = regions.list_models_of_varied_scales(tested)[0]
    is_model = tested.fits["model"] == model
    for weights, is_shown in (([0, 0.5, 0], True), ([0, 0, 0], False)):
        reports = [
            json.dumps({"settings": {"start": "ridge"}, "network_weight": weight})
            for weight in weights
        ]
        fits = tested.fits.copy()
        fits.loc[is_model, "report"] = reports
        study = replace(tested, fits=fits)
        assert (model in regions.list_models_of_varied_scales(study)) == is_shown


def test_scales_of_all_models_share_one_range_of_colors(tested):
    tested = replace(tested, ranking=rank_regions(tested))
    drawn = page.draw_figure_by_name(tested, ATLAS, {"effects", "brain", "regions"})
    assert set(drawn) == {"effects", "brain", "regions"}
    bars = [ax for ax in drawn["brain"].axes if ax.get_label() == "colour bar"]
    assert len(bars) == 1
    rows = [ax for ax in drawn["brain"].axes if ax.get_label() == "subcortex"]
    # A small scale does not mean a difference, so a map of scales has no outlines.
    assert not any(outlined_of(ax) for ax in rows)


def test_effect_and_contrast_are_drawn_filled_where_they_are_significant(tested):
    axes = report.plot_region_tests(tested, ATLAS)
    filled = {}
    for container in axes.containers:
        line = container.lines[0]
        if line.get_markerfacecolor() != "white":
            filled[container.get_label()] = line.get_xdata().tolist()
    assert filled["effect"] == pytest.approx([-0.5, -0.4, -0.2])
    assert filled["contrast"] == pytest.approx([-0.25])


def test_three_questions_name_the_regions_that_the_tests_select(tested):
    effect, contrast, scale = regions.list_region_answers(tested, ATLAS)
    assert "in 3 of 7 regions" in effect.answer
    assert "right hippocampus, left amygdala and right cuneus" in effect.answer
    assert "in 1 region: right hippocampus" in contrast.answer
    # No region is called the largest, because no test compares regions.
    assert "largest" not in effect.answer + contrast.answer
    assert "p =" not in scale.answer
    few = regions.list_region_answers(with_permutations(tested, 20), ATLAS)
    assert "p =" not in few[0].answer + few[1].answer
    table = tested.region_tests.assign(p_effect=0.2, p_contrast=0.3)
    null = regions.list_region_answers(replace(tested, region_tests=table), ATLAS)
    assert not any(one.answer.startswith("Yes") for one in null[:2])
    # Scales of a study without a region that differs give nothing to write.
    assert scale.claim
    assert null[2].claim == ""
    assert len(regions.list_region_answers(replace(tested, region_tests=None))) == 1


def test_nothing_may_be_written_of_regions_where_scans_are_duplicates(tested):
    audit = pd.DataFrame({"check": [CheckKey.DUPLICATE_SCANS], "severity": ["error"]})
    answers = regions.list_region_answers(replace(tested, audit=audit), ATLAS)
    assert {answer.claim for answer in answers} == {regions.NO_CLAIM}
    assert all("not valid" in answer.answer for answer in answers)


@pytest.mark.parametrize(("n_without", "has_claim"), [(0, True), (1, True), (2, False)])
def test_scales_of_few_folds_are_not_those_of_the_study(tested, n_without, has_claim):
    choices = ["none"] * n_without + ["regions"] * (3 - n_without)
    fits = tested.fits.copy()
    is_main = fits["model"] == "LSAP-C"
    fits.loc[is_main, "settings"] = '{"scales": "auto"}'
    fits.loc[is_main, "report"] = [f'{{"chosen": "{choice}"}}' for choice in choices]
    *_, scale = regions.list_region_answers(replace(tested, fits=fits), ATLAS)
    assert bool(scale.claim) == has_claim
    assert (f"in {n_without} of 3 folds" in scale.answer) == (n_without > 0)
    assert scale.warning == ""


def test_scales_of_a_ridge_that_was_never_chosen_have_a_warning(tested):
    fits = tested.fits.copy()
    is_ridge = fits["model"] == "Exact"
    fits.loc[is_ridge, "settings"] = '{"scales": "auto"}'
    ranking = regions.select_scale_ranking_table(tested).assign(model=NESTED_RIDGES[2])
    for choice, is_warned in (("none", True), ("regions", False)):
        fits.loc[is_ridge, "report"] = f'{{"chosen": "{choice}"}}'
        study = replace(tested, fits=fits, ranking=ranking)
        assert bool(regions.scale_warning_text(study)) == is_warned
        if is_warned:
            assert not regions.is_ranked_by_varied_scales(study)
            *_, scale = regions.list_region_answers(study, ATLAS)
            assert "names no region by its scale" in scale.warning
            assert "region_" not in scale.answer


def test_no_map_shows_the_scales_of_a_control(tested):
    model_name, *other_names = regions.list_models_of_varied_scales(tested)
    is_control = tested.fits["model"] == model_name
    fits = tested.fits.assign(role=tested.fits["role"].mask(is_control, "control"))
    controlled = replace(tested, fits=fits)
    assert regions.list_models_of_varied_scales(controlled) == other_names


@pytest.mark.parametrize(("n_at_limit", "is_stated"), [(1, False), (3, True)])
def test_posterior_bounds_at_the_limit_are_said_to_be_the_limit(
    tested, n_at_limit, is_stated
):
    ranking = regions.select_scale_ranking_table(tested)
    is_measured = ranking["measured"].astype(bool)
    bounds = np.where(np.cumsum(is_measured) <= n_at_limit, 7.0, 3.0)
    ranking = ranking.assign(fit_high=np.where(is_measured, bounds, np.nan))
    text = regions.scale_limit_text(replace(tested, ranking=ranking))
    assert ("at most 7." in text) == is_stated
    assert (f"in {n_at_limit} of {is_measured.sum()} regions" in text) == is_stated
    assert regions.scale_limit_text(tested) == ""


def test_a_difference_is_called_neither_specific_nor_important(tested):
    effect, *_ = regions.list_region_answers(tested, ATLAS)
    assert f"specific to {tested.cohort.classes[-1]}" in effect.caution
    assert "no other disease" in effect.caution
    assert "does not measure how important" in effect.caution
    sexes = replace(tested, cohort=replace(tested.cohort, label_name="sex"))
    effect, *_ = regions.list_region_answers(sexes, ATLAS)
    assert "disease" not in effect.caution
    assert "does not measure how important" in effect.caution


def test_notes_say_what_the_tests_are_not(tested):
    notes = " ".join(regions.list_test_notes(tested))
    assert "trend over ordered classes, not pairs" in notes
    first_class = tested.cohort.classes[0]
    assert f"how much they differ from {first_class}" in notes
    assert "1/(99 + 1) = 0.010" in notes
    # Of four people, two of each class: 6 labellings.
    small = tested.cohort.table.groupby("label").head(2).iloc[:4]
    small = small.assign(participant=[*"abcd"], label=["CN", "CN", "AD", "AD"])
    few_people = replace(tested, cohort=replace(tested.cohort, table=small))
    notes = " ".join(regions.list_test_notes(few_people))
    assert "only 6 different ways" in notes
    assert "1/6 = 0.167" in notes
    assert "99 permutations" not in notes
    table = tested.region_tests.assign(F=2.0)
    notes = " ".join(regions.list_test_notes(replace(tested, region_tests=table)))
    assert "all classes together, not pairs" in notes
    few = " ".join(regions.list_test_notes(with_permutations(tested, 20)))
    assert "smallest possible p" not in few
    assert regions.list_test_notes(replace(tested, region_tests=None)) == []


@pytest.mark.parametrize(("planted", "has_caution"), [(PEAK, False), (NAMES[5], True)])
def test_planted_regions_below_chance_are_questioned(tested, planted, has_caution):
    truth = pd.DataFrame({"region": NAMES, "seed": np.equal(NAMES, planted)})
    cohort = replace(tested.cohort, truth=truth.assign(effect=0.0))
    table = tested.region_tests.assign(planted=truth["seed"])
    scales = tested.scales.iloc[:0]
    simulated = replace(tested, cohort=cohort, region_tests=table, scales=scales)
    text = regions.planted_text(simulated)
    assert "begins in 1 region" in text
    assert ("not identified" in text) == has_caution


def test_a_caption_names_only_marks_that_are_drawn(tested):
    ranking = rank_regions(tested).assign(moved=1.0)
    assert page._list_region_marks(replace(tested, ranking=ranking)) == []
    ranking = ranking.assign(moved=0.0, planted=ranking["region"] == PEAK)
    marks = page._list_region_marks(replace(tested, ranking=ranking))
    assert marks == ["planted", "not learned"]


def test_the_section_on_regions_has_its_tables_and_files(tested, tmp_path, monkeypatch):
    def draw_maps(evaluation, atlas, figure_names):
        return {
            key: page.FIGURES[key].draw(evaluation, atlas)
            for key in figure_names & {"brain", "effects"}
        }

    monkeypatch.setattr(page, "draw_figure_by_name", draw_maps)
    evaluation = replace(tested, ranking=rank_regions(tested))
    page_path = report.write_report(evaluation, tmp_path / "out", atlas=NAMES_ALONE)
    text = page_path.read_text("utf-8")
    for answer in regions.list_region_answers(evaluation, ATLAS):
        assert html.escape(answer.caution) in text
    folder = page_path.parent / "tables"
    assert_heads_match_cells(text)
    assert "<td>occipital</td>" in text
    shown = pd.read_csv(folder / "regions.tsv", sep="\t")
    assert shown["region"][0] == "right hippocampus"
    groups = pd.read_csv(folder / "group_differences.tsv", sep="\t")
    assert groups["n_effect"].max() == 2  # regions of the right that differ
    assert {"effects.png", "brain.png"} <= {
        one.name for one in (page_path.parent / "figures").iterdir()
    }


def test_every_feature_has_a_map_and_classes_without_order_have_eta(tested):
    second = tested.region_tests.assign(feature="fdg 2", p_effect=0.9, p_contrast=0.9)
    both = pd.concat([tested.region_tests, second], ignore_index=True).assign(F=2.0)
    cohort = replace(tested.cohort, feature_names=("thickness", "fdg 2"))
    evaluation = replace(tested, cohort=cohort, region_tests=both)
    drawn = {"effects": page.FIGURES["effects"].draw(evaluation, NAMES_ALONE)}
    drawn |= page._plot_effects_figure_by_name(evaluation, NAMES_ALONE)
    rings = {
        name: [max(ax.collections[-1].get_linewidths()) > 1 for ax in figure.axes]
        for name, figure in drawn.items()
    }
    assert rings == {"effects": [False, True], "effects_fdg-2": [False, False]}
    assert regions.list_significant_regions(evaluation, "effect", "fdg 2") == []
    effect, *_ = regions.list_region_answers(evaluation, ATLAS)
    assert "corrected for 14 tests" in effect.answer
    table = report.region_tests_table(evaluation, ATLAS, 14)
    assert (table.groupby("region")["feature"].nunique() == 2).all()
