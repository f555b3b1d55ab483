"""Tables of a report: the right numbers under the right names."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from brainlsap import report
from brainlsap.atlas import load_atlas
from brainlsap.data import Cohort
from brainlsap.evaluation import common_regions, fold_scores, rank_regions
from brainlsap.evaluation.comparison import compare_by_person
from brainlsap.evaluation.models import NESTED_RIDGES
from brainlsap.evaluation.results import CohortSummary
from brainlsap.exceptions import ParameterError
from brainlsap.report import tables
from brainlsap.report.tables import (
    has_missing_values,
    interval_text,
    measured_regions_text,
    region_labels,
    spread_text,
)
from brainlsap.text import p_text
from tests.report.conftest import draw_learning_curve

P_HEAD = "p (effect)"


def test_numbers_become_text():
    texts = " ".join(p_text(p) for p in (0.0004, 0.0496, 0.05, 1.0, np.nan))
    assert texts == "< 0.001 0.0496 0.050 1.000 n/a"
    assert spread_text(0.6251, 0.0449) == "0.625 ± 0.045"
    assert spread_text(0.6251) == "0.625"
    assert spread_text(0.125, n_digits=2) == "0.13"  # 13% in figures
    assert spread_text(-1e-9) == "0.000"
    assert interval_text(0.6251, 0.58, 0.669, n_digits=2) == "0.63 [0.58, 0.67]"
    assert interval_text(np.nan, 0, 1) == "n/a"


def test_tables_become_text_in_every_style():
    frame = pd.DataFrame({"a|b": ["G&S_f, ±5%", "x|\\y\nz"], "n": [1, 2]})
    assert report.table_text(frame).splitlines()[1:] == [
        "| --- | ---: |",
        "| G&S_f, ±5% | 1 |",
        r"| x\|\\y z | 2 |",
    ]
    latex = report.table_text(frame, "latex")
    assert r"a$|$b & n \\" in latex
    assert r"G\&S\_f, $\pm$5\% & 1 \\" in latex
    with pytest.raises(ParameterError, match="style"):
        report.table_text(frame, "word")
    signed = pd.DataFrame({"1-2": ["-0.085 [-0.266, -.1]"], "x": "HRF-2, 5-to-3 (-1)"})
    signed_row = "$-$0.085 [$-$0.266, $-$.1] & HRF-2, 5-to-3 ($-$1)"
    assert signed_row in report.table_text(signed, "latex")
    flag = pd.DataFrame({"x": ["Use --leave-out"]})
    assert r"Use -{}-leave-out \\" in report.table_text(flag, "latex")


def test_models_of_the_same_predictions_have_no_p_value(make_evaluation):
    evaluation = make_evaluation(models=("LSAP-C",))
    rows = evaluation.predictions.query("model != 'LSAP-C'")
    same = rows[rows["model"] == "majority"].assign(model="LSAP-C")
    study = replace(evaluation, predictions=pd.concat([same, rows]))
    table = tables.model_score_table(study).set_index("model")
    is_holm = table.columns.str.contains(r"^(?:Holm )?p(?: \(\d|$)")
    (p_values,) = table.loc[:, is_holm].T.to_dict("records")
    assert p_values.pop("LSAP-C") == ""
    assert p_values.pop("majority") == "-"
    assert p_values
    assert not {"", "-"} & set(p_values.values())


def test_scores_are_means_over_folds(evaluation):
    predictions = evaluation.predictions[evaluation.predictions["model"] == "LSAP-C"]
    folds = [one for _, one in predictions.groupby("fold")]

    def text(score, **options):
        values = [score(one["truth"], one["predicted"], **options) for one in folds]
        return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"

    table = report.score_table(evaluation, fold_scores()).set_index("model")
    assert table.loc["LSAP-C", "balanced accuracy"] == text(balanced_accuracy_score)
    assert table.loc["linear SVM", "Brier score (less is better)"] == "n/a"
    assert table.loc["linear SVM", "AUC"] != "n/a"
    paper = report.score_table(evaluation, ["accuracy", "f1"]).set_index("model")
    both = [text(accuracy_score), text(f1_score, average="macro")]
    assert paper.loc["LSAP-C"].tolist() == both
    assert "macro F1" in report.score_table(evaluation, "f1")
    with pytest.raises(ParameterError, match=r"scores must be one of .*; got 'bacc'"):
        report.score_table(evaluation, ["bacc"])
    rates = report.class_rate_table(evaluation).set_index("class")
    hits = (predictions["truth"] == predictions["predicted"])[
        predictions["truth"] == "AD"
    ].mean()
    assert rates.loc["AD", "sensitivity"].startswith(f"{hits:.2f} [")


def test_stage_scores_need_an_order(make_evaluation):
    stages = {"quadratic weighted kappa", "within one stage"}
    assert not stages & set(report.score_table(make_evaluation(), fold_scores()))
    assert not stages & set(report.interval_table(make_evaluation()))
    ordered = make_evaluation(ordered=True)
    titles = set(report.score_table(ordered, fold_scores()))
    assert stages <= titles & set(report.interval_table(ordered))
    ordered = make_evaluation(classes=("CN", "AD"), ordered=True)
    binary_table = report.score_table(ordered, fold_scores())
    assert {"AUC", "Cohen's kappa"} <= set(binary_table)
    assert "within one stage" not in binary_table


def test_a_model_that_failed_has_no_score(make_evaluation):
    evaluation = make_evaluation(failed=["Exact"])
    assert set(report.score_table(evaluation).set_index("model").loc["Exact"]) == {
        "failed"
    }
    fits = report.fit_table(evaluation).set_index("model")
    assert fits.loc["Exact", "failed"] == 1
    summary = evaluation.summary().query("score == 'balanced_accuracy'")
    n_folds_by_model = summary.set_index("model")["n_folds"].to_dict()
    assert n_folds_by_model.pop("Exact") == 2  # those that have the score
    assert set(n_folds_by_model.values()) == {3}
    assert fits.loc["Exact", "epoch kept"] == "11"  # the epoch 10 from 0
    assert "no score" in " ".join(
        report.list_headline_lines(make_evaluation(failed=["LSAP-C"]))
    )


@pytest.mark.parametrize("skill", [0.9, -0.4])
def test_the_table_of_scores_has_one_method(make_evaluation, skill):
    evaluation = make_evaluation(skill=skill)
    tests = compare_by_person(evaluation, n_draws=tables.N_SWAPS).set_index("model")
    table = tables.model_score_table(evaluation).set_index("model")
    holm = f"Holm p ({len(tests)} comparisons)"
    assert table.loc["LSAP-C", holm] == ""
    assert table.loc[tests.index, holm].tolist() == [p_text(p) for p in tests["p_holm"]]
    for name in evaluation.models:
        pooled = tables.score_interval_table(evaluation, name).loc["balanced_accuracy"]
        text = table.loc[name, "balanced accuracy [95%]"]
        assert text.startswith(f"{pooled['estimate']:.3f} [")
    # a single comparison needs no correction
    two = replace(
        evaluation, fits=evaluation.fits.query("model in ('LSAP-C', 'linear SVM')")
    )
    assert "p" in tables.model_score_table(two)
    assert list(report.comparison_table(two))[2:] == ["p", "better than LSAP-C"]


def test_a_learning_curve_says_whether_more_people_would_help(evaluation):
    curve = draw_learning_curve(["LSAP-C", "LSAP-R"], answer="unclear")
    evaluation = replace(evaluation, learning_curve=curve)
    table = tables.learning_curve_table(evaluation)
    assert table["training participants"].tolist() == ["6", "12", "18", "24"] * 2
    assert table["gain by a doubling [95%]"].tolist()[3] == "0.060 [0.010, 0.110]"
    assert table["would more help?"].tolist() == ["", "", "", "unclear"] * 2
    sentence = tables.learning_curve_sentence(evaluation)
    assert "unclear" in sentence
    assert "0.060 [0.010, 0.110]" in sentence


def test_models_are_grouped_so_that_none_loses_to_itself(make_evaluation):
    evaluation = make_evaluation()
    names = {"Exact": "LSAP-R", "linear SVM": NESTED_RIDGES[1]}
    renamed = replace(
        evaluation,
        predictions=evaluation.predictions.replace({"model": names}),
        fits=evaluation.fits.replace({"model": names}),
    )
    table = tables.model_score_table(renamed)
    groups = table.groupby("group", sort=False)["model"].agg(list).to_dict()
    assert groups == {
        "models of this study": ["LSAP-C", "LSAP-R"],
        "ridge regressions with the connectome": [NESTED_RIDGES[1]],
        "other baselines": ["majority"],
    }


def test_folds_that_share_people_are_marked(evaluation):
    shared = replace(evaluation, settings=evaluation.settings | {"people_shared": True})
    assert "new people" in report.score_table(shared)["folds"][0]
    assert "do not apply to new participants" in report.list_headline_lines(shared)[-1]


def test_audit_says_who_by_name_or_by_code(evaluation):
    named = report.audit_table(evaluation)
    assert named.loc[0, "scans"] == "anna003_v0, anna008_v0"
    coded = report.audit_table(evaluation, {"anna003_v0": "S0007"})
    assert coded.loc[0, "scans"] == "S0007, [name withheld]"
    assert coded["severity"].tolist() == ["error", "note"]
    assert report.audit_table(replace(evaluation, audit=None)).empty


def test_unusual_scans_stand_in_the_order_of_their_codes(evaluation):
    quality = ["like anna001_v0", "", "no features"]
    table = evaluation.cohort.table.iloc[:3].assign(quality=quality)
    flagged = replace(evaluation, cohort=replace(evaluation.cohort, table=table))
    codes = dict(zip(table["scan"], ["S3", "S2", "S1"], strict=True))
    assert report.unusual_scans_table(flagged, codes).to_numpy().tolist() == [
        ["S1", "no features"],
        ["S3", "like S2"],
    ]


def test_what_is_no_evaluation_is_refused():
    for made in ("score_table", "plot_scores", "plot_roc", "plot_training"):
        with pytest.raises(ParameterError, match="be an Evaluation; got DataFrame"):
            getattr(report, made)(pd.DataFrame())


def test_regions_by_name(make_evaluation):
    atlas = load_atlas("desikan82")
    evaluation = make_evaluation(regions=list(atlas.names), atlas_name="desikan82")
    ranking = rank_regions(evaluation)
    table = report.region_table(ranking, atlas, 3)
    first = ranking.set_index("rank").loc[1.0]
    assert table["rank"].tolist() == [1, 2, 3]
    atlas_index = atlas.names.index(first["region"])
    assert table.loc[0, "region"] == atlas.full_names[atlas_index]
    assert table.loc[0, "short name"] == atlas.short_names[atlas_index]
    x, y, z = atlas.coordinates[atlas_index]
    assert table.loc[0, "x, y, z"] == f"{x:.0f}, {y:.0f}, {z:.0f}"
    assert table.loc[0, "relative scale"].startswith(f"{first['relative_scale']:.3f} [")
    assert not {P_HEAD, "remark"} & set(table)
    tested_ranking = ranking.assign(
        p_effect=0.5, p_contrast=0.7, planted=ranking["rank"] == 2, moved=0.0
    )
    table = report.region_table(tested_ranking.assign(n_permutations=98), atlas, 2)
    assert table["p (effect, needs 99 permutations)"].tolist() == ["n/a"] * 2
    table = report.region_table(tested_ranking.assign(n_permutations=99), atlas, 2)
    assert table[P_HEAD].tolist() == ["0.500"] * 2
    assert table["p (contrast)"].tolist() == ["0.700"] * 2
    assert table["remark"].tolist() == ["not learned", "planted, not learned"]
    assert report.region_table(ranking)["region"][0] == first["region"]
    with pytest.raises(ParameterError, match="n_regions"):
        report.region_table(ranking, atlas, 0)


def test_directions_have_means_and_cohens_d(evaluation):
    differences = report.class_difference_table(evaluation).set_index(
        ["region", "class"]
    )
    shown = differences.loc[("region_0", "AD")]
    class_features = evaluation.cohort.class_features.set_index(["region", "class"])
    (n, mean, sd), (m, mean_0, sd_0) = (
        class_features.loc[("region_0", name), ["people", "mean", "sd"]]
        for name in ("AD", "CN")
    )
    pooled = np.sqrt(((n - 1) * sd**2 + (m - 1) * sd_0**2) / (n + m - 2))
    assert shown["difference"] == pytest.approx((mean - mean_0) / pooled)
    assert shown["low"] < mean < shown["high"]
    assert (
        differences.xs("CN", level="class")
        .filter(like="difference")
        .isna()
        .all(axis=None)
    )
    assert ("region_1", "R&D_<50%>") not in differences.index  # two people
    ranking = rank_regions(evaluation)
    table = report.direction_table(evaluation, ranking, n_regions=2)
    assert list(table) == [
        *("region", "feature", "CN", "R&D_<50%>", "R&D_<50%> \N{MINUS SIGN} CN (s.d.)"),
        *("AD", "AD \N{MINUS SIGN} CN (s.d.)"),
    ]
    expected = differences.loc[(table["region"][0], "AD"), "difference"]
    assert table.iloc[0, -1].startswith(f"{expected:.2f} [")


def test_common_regions_have_their_distance_to_exact(evaluation):
    table = report.common_region_table(evaluation, n_smallest=3)
    assert list(table) == ["models", "region", "Exact", "LSAP-C"]
    common, rmse = common_regions(evaluation, 3)
    assert table.iloc[-1].tolist() == ["", "RMSE", "-", f"{rmse['LSAP-C']:.3f}"]
    assert table.loc[0, "Exact"] == f"{common['Exact'].min():.3f}"


def test_what_stands_below_the_cortex_is_named(evaluation):
    names = list(evaluation.cohort.region_names)
    structure = ["cortex"] * 6 + ["subcortex"]
    how = {"subcortex": "volume"}, pd.DataFrame({"name": names, "structure": structure})
    cohort = replace(evaluation.cohort, provenance=how[0], regions=how[1])
    changed = replace(evaluation, cohort=cohort)
    feature_titles = report.direction_table(changed, rank_regions(changed), n_regions=7)
    feature_titles = feature_titles.set_index("region")["feature"]
    assert feature_titles[names[6]] == "volume in mm3"
    assert set(feature_titles.drop(names[6])) == {"cortical thickness"}
    text = measured_regions_text(cohort)
    assert text.startswith("cortical thickness (subcortex: volume) in 7 of 7")


def test_a_value_that_one_scan_of_a_person_lacks_is_missing(evaluation):
    names = evaluation.cohort.region_names
    rng = np.random.default_rng(0)
    cohort = Cohort.from_arrays(
        np.ones((len(names), len(names))),
        rng.normal(size=(160, len(names))),
        np.repeat(["CN", "AD"], 80),
        groups=np.repeat(np.arange(80), 2),
        atlas=names,
        classes=("CN", "AD"),
    )
    X = cohort.features.copy()
    X[0, 3] = np.nan
    summary = CohortSummary.from_cohort(cohort, X, None)
    assert has_missing_values(summary)
    assert "(<0.1% of values missing)" in measured_regions_text(summary)
    complete = CohortSummary.from_cohort(cohort, cohort.features, None)
    assert not has_missing_values(complete)
    assert "missing" not in measured_regions_text(complete)


def test_labels_tell_regions_apart():
    for name in ("schaefer100", "destrieux160"):
        atlas = load_atlas(name)
        assert len(set(region_labels(atlas.names, atlas))) == len(atlas)


def test_subgroups_have_a_row_each_and_small_ones_share_one(evaluation):
    table = evaluation.cohort.table
    person = table["participant"].str[4:].astype(int)
    towns = np.select([person < 4, person < 8, person < 20], ["a", "b", "c"], "d")
    cohort = replace(evaluation.cohort, table=table.assign(SITE=towns))
    settings = evaluation.settings | {"subgroups": ["SITE", "SEX"]}
    rows = report.subgroup_text_table(
        replace(evaluation, cohort=cohort, settings=settings)
    )
    sites = rows[rows["group"] == "SITE"].set_index("participants")["number scored"]
    assert sites.to_dict() == {
        "c": "12",
        "d": "16",
        "a, b": "< 10",
        "by chance": "",
        sites.index[-1]: "",
    }
    scores = rows[rows["group"] == "SITE"].set_index("participants")
    assert scores.loc["by chance", "balanced accuracy [95%]"] == "0.333"
    assert sites.index[-1].startswith("largest difference: ")
    # Women of the fixture are all of one class, so the men's score is over the others.
    classes = ", ".join(evaluation.cohort.classes[1:])
    sexes = rows[rows["group"] == f"SEX (over {classes})"].set_index("participants")
    assert sexes["number scored"].to_dict() == {"F": "12", "M": "24"}
    assert "not scored" in sexes.loc["F", "balanced accuracy [95%]"]
    assert report.plot_subgroups(evaluation).get_yticks().tolist() == [*range(6)]


def test_identical_models_are_one_comparison_and_are_named(make_evaluation):
    evaluation = make_evaluation(skill=0.9)
    names = list(evaluation.models)
    assert tables.list_identical_model_groups(evaluation) == []
    assert tables.comparisons_text(evaluation) == ""
    rows = evaluation.predictions
    copies = [rows[rows["model"] == names[0]].assign(model=name) for name in names[:3]]
    others = rows[~rows["model"].isin(names[:3])]
    alike = replace(evaluation, predictions=pd.concat([*copies, others]))
    assert tables.list_identical_model_groups(alike) == [names[:3]]
    n_comparisons = len(names) - 3
    text = tables.comparisons_text(alike)
    assert text.startswith(f"{n_comparisons} comparison")
    assert "2 models" in text
    # Their rows stay in the table.
    assert set(tables.model_score_table(alike)["model"]) == set(names)


def test_two_tables_give_one_difference_one_verdict(make_evaluation):
    names = ("LSAP-C", *NESTED_RIDGES)
    study = make_evaluation(skill=0.9, models=names)
    rows = study.predictions
    is_top = rows["model"] == NESTED_RIDGES[2]
    same = rows[rows["model"] == "LSAP-C"].assign(model=NESTED_RIDGES[2])
    study = replace(study, predictions=pd.concat([rows[~is_top], same]))
    comparisons = tables.person_comparison_table(study, "LSAP-C").set_index("model")
    steps = pd.DataFrame(
        {
            "below": NESTED_RIDGES[:2],
            "above": NESTED_RIDGES[1:],
            "low": [0.01, 0.01],
            "high": 0.2,
            "p_holm": [0.01, 0.02],
            "adds": "averaging",
        }
    )
    weaker = tables._weaken_verdicts_in_step_table(study, steps)
    p_of_scores = comparisons.loc[NESTED_RIDGES[1], "p_holm"]
    assert p_of_scores > 0.05
    assert weaker["p_holm"].tolist() == [0.01, p_of_scores]
    assert weaker["adds"].tolist() == ["averaging", "unclear"]


def test_classes_that_are_never_predicted_are_named(evaluation):
    first, second, _ = evaluation.cohort.classes
    rows = evaluation.predictions
    assert "never" not in tables.frequent_prediction_text(evaluation, "LSAP-C")
    merged = rows.assign(predicted=rows["predicted"].replace({second: first}))
    text = tables.frequent_prediction_text(
        replace(evaluation, predictions=merged), "LSAP-C"
    )
    assert f"never predicts {second}." in text
