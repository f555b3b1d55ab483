"""Scores in groups of people, the largest gap, and which groups have no score."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score

from brainlsap.evaluation import (
    Evaluation,
    choose_subgroup_columns,
    subgroup_gap_table,
    subgroup_table,
)
from brainlsap.evaluation.results import CohortSummary
from brainlsap.evaluation.subgroups import (
    TOO_FEW_CLASSES,
    TOO_FEW_PEOPLE,
    make_group_by_person_series,
    scored_columns_table,
)
from brainlsap.exceptions import ParameterError


def draw_evaluation(groups, labels, is_correct, column="sex", **columns):
    """One scan of each person; a false prediction is of another class."""
    classes = tuple(sorted(set(labels)))
    codes = np.array([classes.index(label) for label in labels])
    predicted = np.where(is_correct, codes, (codes + 1) % len(classes))
    table = pd.DataFrame(
        {
            "scan": [f"s{k}" for k in range(len(labels))],
            "participant": [f"p{k}" for k in range(len(labels))],
            "session": "",
            "label": labels,
            column: groups,
            **columns,
        }
    )
    predictions = table[["scan", "participant"]].assign(
        model="m", truth=labels, predicted=np.array(classes)[predicted]
    )
    cohort = CohortSummary(
        table=table,
        classes=classes,
        classes_ordered=True,
        label_name="diagnosis",
        atlas_name="tiny",
        region_names=("a",),
        measured=np.array([True]),
        feature_names=("x",),
    )
    fits = pd.DataFrame({"model": ["m"], "failed": [""]})
    return Evaluation(predictions, pd.DataFrame(), fits, cohort, {})


def draw_sexes(share_of_men, share_of_women, n=120, seed=0, **columns):
    rng = np.random.default_rng(seed)
    sex, label = rng.choice(["F", "M"], n), rng.choice(["AD", "CN"], n)
    is_correct = rng.random(n) < np.where(sex == "M", share_of_men, share_of_women)
    return draw_evaluation(sex, label, is_correct, **columns)


def test_a_score_is_that_of_the_group_with_the_interval_of_price_and_bonett():
    evaluation = draw_sexes(0.8, 0.6)
    table = subgroup_table(evaluation).set_index("group")
    rows = evaluation.predictions.assign(sex=evaluation.cohort.table["sex"])
    for sex, group in rows.groupby("sex"):
        score = balanced_accuracy_score(group["truth"], group["predicted"])
        center, variance = 0.0, 0.0
        for label in ("AD", "CN"):
            is_hit = group.loc[group["truth"] == label, "predicted"] == label
            # Two proportions: 2 / 2 correct and false people are added to each.
            rate = (is_hit.sum() + 1) / (len(is_hit) + 2)
            center += rate / 2
            n_people = len(is_hit)
            cell_variance = rate * (1 - rate) / (n_people + 2)
            variance += cell_variance * n_people / (n_people - 1) / 4
        bounds = center + 1.959964 * np.sqrt(variance) * np.array([-1, 1])
        assert table.loc[sex, "balanced_accuracy"] == pytest.approx(score)
        assert table.loc[sex, ["low", "high"]].to_list() == pytest.approx(
            bounds, abs=1e-6
        )
        assert table.loc[sex, "people"] == rows.query("sex == @sex").shape[0]


def test_visits_of_a_person_are_no_more_people():
    once = draw_sexes(0.8, 0.6)
    scans = pd.concat([once.cohort.table, once.cohort.table.assign(session="2")])
    cohort = CohortSummary(**vars(once.cohort) | {"table": scans})
    predictions = pd.concat([once.predictions] * 2)
    twice = Evaluation(predictions, once.scales, once.fits, cohort, {})
    pd.testing.assert_frame_equal(subgroup_table(once), subgroup_table(twice))
    pd.testing.assert_frame_equal(subgroup_gap_table(once), subgroup_gap_table(twice))


def test_a_gap_is_shown_where_a_model_works_for_men_only():
    gap = subgroup_gap_table(draw_sexes(0.95, 0.5)).iloc[0]
    assert (gap["higher"], gap["lower"]) == ("M", "F")
    assert 0 < gap["low"] < gap["difference"] < gap["high"]
    gap = subgroup_gap_table(draw_sexes(0.8, 0.8)).iloc[0]
    assert gap["low"] < 0 < gap["high"]


def test_the_more_pairs_and_columns_the_wider_is_the_interval():
    site = np.random.default_rng(1).choice([*"abcd"], 120)
    alone = subgroup_gap_table(draw_sexes(0.9, 0.7)).iloc[0]
    beside = subgroup_gap_table(draw_sexes(0.9, 0.7, site=site)).set_index("column")
    width = beside["high"] - beside["low"]
    assert width["sex"] > 1.05 * (alone["high"] - alone["low"])
    assert beside.loc["site", "n_pairs"] == 6
    critical = (alone["high"] - alone["low"]) / 2
    z = subgroup_gap_table(draw_sexes(0.9, 0.7), random_state=5).iloc[0]
    assert (z["high"] - z["low"]) / 2 == pytest.approx(critical, rel=0.03)


def test_scores_are_over_the_classes_that_all_scored_groups_have():
    sites = np.repeat(["a", "b", "tiny", "healthy"], [30, 30, 6, 20])
    labels = np.array(["AD", "CN", "MCI"] * 10 + ["AD", "CN"] * 15 + ["AD", "CN"] * 3)
    labels = np.append(labels, ["CN"] * 20)
    is_correct = labels != "MCI"  # A score over three classes would be 2 / 3.
    evaluation = draw_evaluation(sites, labels, is_correct, column="site")
    table = subgroup_table(evaluation).set_index("group")
    assert table.loc[["a", "b"], "balanced_accuracy"].to_list() == [1, 1]
    assert (table.loc[["a", "b"], "classes"] == "AD, CN").all()
    # Ten of the 30 people of site a have MCI, which is not scored.
    assert table["people"].to_dict() == {"a": 20, "b": 30, "healthy": 20, "tiny": 6}
    assert (table.loc[["a", "b"], "low"] < 1).all()
    assert table.loc["tiny", "note"] == TOO_FEW_PEOPLE
    assert table.loc["healthy", "note"] == TOO_FEW_CLASSES
    assert table.loc[["tiny", "healthy"], "balanced_accuracy"].isna().all()
    (gap,) = subgroup_gap_table(evaluation).to_dict("records")
    assert {gap["higher"], gap["lower"]} == {"a", "b"}
    assert (table["chance"] == 1 / 2).all()


def test_columns_without_scores_say_which_class_alone_is_common():
    sites = np.repeat(["a", "b", "c"], [12, 12, 12])
    labels = ["AD"] * 6 + ["CN"] * 6 + ["AD"] * 6 + ["MCI"] * 6
    labels = np.array(labels + ["AD"] * 11 + ["CN"])
    sexes = ["F"] * 29 + ["M"] * 7
    evaluation = draw_evaluation(sites, labels, labels == "AD", "site", sex=sexes)
    table = subgroup_table(evaluation, "site").set_index("group")
    assert table["balanced_accuracy"].isna().all()
    assert table.loc["c", "note"] == TOO_FEW_CLASSES  # for a reason of its own
    assert table.loc["a", "note"].startswith("only AD has at least 2 people in all of")
    assert "a and b" in table.loc["b", "note"]
    columns = scored_columns_table(evaluation).set_index("column")
    assert columns["n_scored"].to_dict() == {"site": 0, "sex": 1}
    assert columns["n_groups"].to_dict() == {"site": 3, "sex": 2}
    assert "only AD" in columns.loc["site", "reason"]
    assert TOO_FEW_CLASSES in columns.loc["site", "reason"]
    assert columns.loc["sex", "reason"] == ""


def test_chance_of_a_group_is_that_of_exchanged_labels():
    rng = np.random.default_rng(0)
    sites = np.repeat(["a", "b"], [30, 45])
    labels = np.array(["AD", "CN", "MCI"] * 10 + ["AD", "CN"] * 22 + ["AD"])
    evaluation = draw_evaluation(sites, labels, rng.random(75) < 0.5, column="site")
    (chance,) = subgroup_table(evaluation)["chance"].unique()
    rows = evaluation.predictions[evaluation.predictions["truth"] != "MCI"]
    truth, predicted = rows["truth"].to_numpy(), rows["predicted"].to_numpy()
    scores = []
    for _ in range(400):
        exchanged = rng.permutation(truth)
        hits = [
            (predicted[exchanged == label] == label).mean() for label in ("AD", "CN")
        ]
        scores.append(np.mean(hits))
    assert chance < 0.45  # some of these people are predicted MCI
    assert np.mean(scores) == pytest.approx(chance, abs=0.01)


def test_ages_are_cut_at_thirds_of_the_people():
    table = pd.DataFrame({"participant": [*"abcdef", "a", "g"], "label": "CN"})
    table["age"] = [60.0, 62, 64, 66, 68, 70, 99, np.nan]
    groups = make_group_by_person_series(table, "age")
    # The second scan of a does not count, and g has no age.
    assert groups.astype(str).to_dict() == {
        **dict.fromkeys("ab", "under 63.3"),
        **dict.fromkeys("cd", "63.3 to under 66.7"),
        **dict.fromkeys("ef", "66.7 and over"),
    }


def test_columns_are_found_by_their_kind_or_refused():
    ages = np.linspace(50, 80, 120)
    table = draw_sexes(0.9, 0.9, AGE=ages, centre="one", mmse=30).cohort.table
    assert choose_subgroup_columns(table) == ("sex", "AGE")
    assert choose_subgroup_columns(table, ["age", "sex"]) == ("AGE", "sex")
    with pytest.raises(ParameterError, match="no column 'hand'"):
        choose_subgroup_columns(table, "hand")
    names = table.assign(town=[f"town {k}" for k in range(120)])
    with pytest.raises(ParameterError, match="town, which has 120 values"):
        choose_subgroup_columns(names, "town")
