"""Answers of the first screen: the weaker of test and interval."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from brainlsap.evaluation import rank_regions
from brainlsap.evaluation.connectome_worth import RANDOM_CONNECTOMES
from brainlsap.evaluation.models import (
    ADDED_VALUE_MODELS,
    NESTED_RIDGES,
    RANDOM_CONNECTOME_RIDGE,
)
from brainlsap.findings import LEFT_OUT, NO_LABEL, Finding
from brainlsap.report import conclusions, draw_conclusions, list_headline_lines, tables
from brainlsap.report.conclusions import (
    BELOW_LIMIT,
    IN_PART,
    LOSS,
    NO,
    NO_WARNING,
    NONE_SHOWN,
    NOT_EXCLUDED,
    NOT_SHOWN,
    NOT_TESTED,
    NOT_USED,
    NOTHING_TO_EXPLAIN,
    POSSIBLY,
    TOO_IMPRECISE,
    YES,
    Conclusion,
    difference_verdict,
    judge_connectome,
    judge_covariates,
    judge_effects_and_contrasts,
    judge_gain_over_chance,
    judge_network,
    judge_probabilities,
    judge_simple_models,
    judge_uncompared_covariates,
    list_cautions,
    model_and_test_text,
)
from tests.report.conftest import (
    draw_gain_table,
    draw_predictions,
    draw_region_tests,
)

SIMPLE = {"majority": "majority class", "linear SVM": "logistic regression"}


@pytest.fixture(scope="module")
def make_study(make_evaluation):
    """Make an evaluation without leaks, with registered baselines and region tests.

    Those of the same options are one object, whose tables are only to be read.
    """

    @cache
    def make(*, skill, p_effect, **options):
        evaluation = make_evaluation(skill=skill, **options)
        ranking = rank_regions(evaluation)
        p_values = np.where(ranking["rank"] <= 2, p_effect, 1.0)
        return replace(
            evaluation,
            predictions=evaluation.predictions.replace({"model": SIMPLE}),
            fits=evaluation.fits.replace({"model": SIMPLE}),
            audit=evaluation.audit[1:],
            ranking=ranking.assign(
                p_effect=p_values, p_contrast=1.0, n_permutations=199
            ),
        )

    return make


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Compute intervals and tests of chance of fewer draws than reports."""
    monkeypatch.setattr(tables, "N_DRAWS", 300)
    monkeypatch.setattr(tables, "N_EXCHANGES", 499)


@pytest.fixture
def without_subgroups(monkeypatch):
    """Compare no subgroups, which takes longer than all other answers."""
    monkeypatch.setattr(conclusions, "_list_subgroup_gap_texts", lambda _: [])


@pytest.mark.parametrize(
    ("low", "high", "p_value", "answer"),
    [
        (0.1, 0.3, 0.01, YES),
        (-0.3, -0.1, 0.01, NO),
        (0.1, 0.3, 0.2, NOT_SHOWN),
        (-0.1, 0.3, 0.01, NOT_SHOWN),
        (np.nan, np.nan, np.nan, NOT_SHOWN),
    ],
)
def test_the_weaker_of_test_and_interval_is_the_answer(low, high, p_value, answer):
    assert difference_verdict(low, high, p_value) == answer


def test_an_effect_is_shown(make_study):
    study = make_study(skill=0.9, p_effect=0.01)
    found = draw_conclusions(study)
    assert found.chance.answer == YES
    assert found.chance.low > 1 / 3
    comparisons = found.simple_models.partial_conclusions
    assert [comparison.question for comparison in comparisons] == [
        "logistic regression",
    ]
    assert comparisons[0].answer == YES
    assert (found.regions_differ.answer, found.regions_differ.estimate) == (YES, 2)
    assert found.regions_stand_out.answer == NOT_SHOWN
    pooled = tables.score_interval_table(study, "LSAP-C").loc["balanced_accuracy"]
    for number in pooled[["estimate", "low", "high"]]:
        assert f"{number:.3f}" in found.may_write
    assert "the most important region" in found.may_not_write
    assert f"differs already in {study.cohort.classes[1]}" in found.may_not_write
    assert "No region was shown to stand out" in found.may_write


@pytest.mark.parametrize(("n_regions", "words"), [(1, "(1 region,"), (7, "region_6")])
def test_the_quote_names_regions_that_stand_out(make_study, n_regions, words):
    study = make_study(skill=0.9, p_effect=0.01)
    p_values = np.where(np.arange(len(study.ranking)) < n_regions, 0.01, 1.0)
    ranking = study.ranking.sort_values("rank").assign(p_contrast=p_values)
    quote = draw_conclusions(replace(study, ranking=ranking)).may_write
    assert words in quote


@pytest.mark.usefixtures("without_subgroups")
def test_directions_of_differences_are_stated_and_quoted(make_study):
    study = make_study(skill=0.9, p_effect=0.01)
    effects = np.array([-0.5, -0.4, -0.3, -0.2, 0.3, 0.1, 0.0])
    falling, rising = [f"region_{k}" for k in range(4)], "region_4"
    region_tests = draw_region_tests(
        study, effects, differing=[*falling, rising], peaks=[*falling, rising]
    )
    found = draw_conclusions(replace(study, region_tests=region_tests))
    assert "hickness is lower towards AD in region_0" in found.regions_differ.sentence
    assert "is higher towards AD in region_4 (" in found.regions_differ.sentence
    assert "correlation -0.50 to 0.30" in found.regions_differ.sentence
    assert "was lower towards AD in region_0, region_1, region_2 and region_3, and" in (
        found.may_write
    )
    assert "These 5 regions stood out" in found.may_write
    assert "(5 regions, family-wise" not in found.may_write
    # Eta has no direction.
    unordered = region_tests.assign(F=3.0, effect=region_tests["effect"].abs())
    found = draw_conclusions(replace(study, region_tests=unordered))
    assert "towards" not in found.may_write
    assert "Classes differed in region_0, region_1, region_2, region_4" in (
        found.may_write
    )


def test_predictions_of_mostly_one_class_are_stated(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    assert "for 100% of scans" not in judge_gain_over_chance(study).sentence
    constant = study.predictions.assign(predicted="AD")
    sentence = judge_gain_over_chance(replace(study, predictions=constant)).sentence
    assert "AD for 100% of scans" in sentence
    assert "33% are AD" in sentence


def test_without_an_effect_nothing_is_shown(make_study):
    found = draw_conclusions(make_study(skill=0.0, p_effect=0.4))
    assert {answer.answer for answer in found.answers} == {NOT_SHOWN}
    assert "not shown" in found.may_write
    assert "No region" in found.may_write
    assert "the most important region" not in found.may_not_write
    assert "stand" not in found.may_write
    assert "outperforms simple models" in found.may_not_write
    assert "the classes do not differ" in found.may_not_write


def test_chance_needs_test_and_interval(make_study, monkeypatch):
    shown, null = (make_study(skill=skill, p_effect=1.0) for skill in (0.9, 0.0))
    p_values = {shown.models[0]: 0.2}
    monkeypatch.setattr(tables, "chance_p_values", lambda _: p_values)
    assert judge_gain_over_chance(shown).answer == NOT_SHOWN
    p_values[null.models[0]] = 0.01
    answer = judge_gain_over_chance(null)
    assert answer.low < 1 / 3 < answer.high
    assert answer.answer == NOT_SHOWN


def test_a_score_below_chance_shows_nothing(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    rows = study.predictions
    others = {"CN": "AD", "AD": "CN"}
    wrong = rows["truth"].map(others).fillna("CN")
    answer = judge_gain_over_chance(
        replace(study, predictions=rows.assign(predicted=wrong))
    )
    assert (answer.answer, answer.estimate) == (NOT_SHOWN, 0)


@pytest.mark.parametrize("leak", ["audit", "folds"])
def test_leaks_withdraw_what_rests_on_scores(make_study, make_evaluation, leak):
    study = make_study(skill=0.9, p_effect=0.01)
    if leak == "audit":
        leaky = replace(study, audit=make_evaluation().audit)  # duplicate scans
    else:
        leaky = replace(study, settings=study.settings | {"people_shared": True})
    found = draw_conclusions(leaky)
    assert found.chance.answer == NOT_SHOWN
    assert found.simple_models.partial_conclusions[0].answer == NOT_SHOWN
    # Duplicates count twice in tests of regions, folds have no part in these.
    assert found.regions_differ.answer == (NOT_SHOWN if leak == "audit" else YES)
    assert "better than chance" not in found.may_write


def test_only_a_gain_over_random_connectomes_is_credited(make_study, make_evaluation):
    leaky_audit = make_evaluation().audit
    names = ("LSAP-C", *NESTED_RIDGES)
    study = make_study(skill=0.9, p_effect=1.0, models=names)
    rows = study.predictions
    is_simplest = rows["model"] == NESTED_RIDGES[0]
    constant = rows["predicted"].mask(is_simplest, rows["truth"].iloc[0])
    right = constant.mask(rows["model"] == "LSAP-C", rows["truth"])
    gained = replace(study, predictions=rows.assign(predicted=right))
    answer = judge_connectome(gained)
    assert answer.low > 0
    assert answer.p_value < 0.05
    assert answer.answer == NOT_SHOWN
    # One comparison has one p on the whole page.
    (same_comparison,) = [
        comparison
        for comparison in conclusions.judge_each_simple_model(gained)
        if comparison.question == NESTED_RIDGES[0]
    ]
    assert answer.p_value == same_comparison.p_value
    assert "higher than that of ridge without connectome (question 2)" in (
        answer.sentence
    )
    assert "(Holm p < 0.001)" in same_comparison.sentence
    for lead, half_width, expected, verdict in (
        (8, 3, YES, YES),
        (8, 9, NOT_SHOWN, TOO_IMPRECISE),
        (0, 1, NOT_SHOWN, BELOW_LIMIT),
        (1, 0.5, NOT_SHOWN, BELOW_LIMIT),
        (-2, 1, NOT_SHOWN, BELOW_LIMIT),
    ):
        judged = replace(gained, connectome_gain=draw_gain_table(lead, half_width))
        answer = judge_connectome(judged)
        assert answer.verdict == expected
        assert answer.partial_conclusions[1].verdict == verdict
        # Both kinds of random connectomes have the same verdict, so none is named.
        assert not any(name in answer.reason for name in RANDOM_CONNECTOMES)
        # The verdict follows from its three parts.
        assert len(answer.partial_conclusions) == 3
        is_met = {part.answer for part in answer.partial_conclusions} == {YES}
        assert is_met == (expected == YES)
        assert answer.partial_conclusions[0].estimate == pytest.approx(9)
        # A random connectome is subtracted; its own gain is in the figure.
        assert answer.partial_conclusions[1].estimate == pytest.approx(lead)
        assert answer.partial_conclusions[1].sentence.startswith(f"{lead:+z.1f}")
    # No gain over one kind of random connectomes, beside an unclear one, is the weaker
    # verdict.
    mixed = draw_gain_table(0, 1)
    mixed.loc[mixed["connectome"] == "relabelled", "evidence_lead_high"] = 4.0
    answer = judge_connectome(replace(gained, connectome_gain=mixed))
    assert [part.verdict for part in answer.partial_conclusions[1:]] == [
        TOO_IMPRECISE,
        BELOW_LIMIT,
    ]
    assert answer.verdict == NOT_SHOWN
    # An unclear gain over no connectome changes neither verdict nor sentence.
    mixed = draw_gain_table(0, 1)
    mixed.loc[mixed["connectome"] == "original", "evidence_gain"] = 1.0
    answer = judge_connectome(replace(gained, connectome_gain=mixed))
    assert answer.partial_conclusions[0].verdict == TOO_IMPRECISE
    assert answer.verdict == NOT_SHOWN
    assert "over random connectomes" in answer.reason
    # A loss is as large as a gain that counts.
    lost = judge_connectome(replace(gained, connectome_gain=draw_gain_table(-5, 1)))
    assert [part.verdict for part in lost.partial_conclusions] == [YES, LOSS, LOSS]
    assert lost.verdict == NOT_SHOWN
    # A gain that is shown over the other kind is not mentioned.
    mixed = draw_gain_table(0, 1)
    is_relabelled = mixed["connectome"] == "relabelled"
    mixed.loc[is_relabelled, "evidence_lead"] = 8.0
    mixed.loc[is_relabelled, ["evidence_lead_low", "evidence_lead_high"]] = 5.0, 11.0
    answer = judge_connectome(replace(gained, connectome_gain=mixed))
    verdicts = [part.verdict for part in answer.partial_conclusions]
    assert verdicts == [YES, YES, BELOW_LIMIT]
    assert answer.verdict == NOT_SHOWN
    assert "relabelled" not in answer.reason
    leaky = replace(gained, connectome_gain=draw_gain_table(8, 3), audit=leaky_audit)
    withdrawn = draw_conclusions(leaky).connectome
    assert {part.answer for part in withdrawn.partial_conclusions} == {NOT_SHOWN}
    # A worse score than without the connectome is not made up for.
    wrong = constant.mask(is_simplest, rows["truth"])
    wrong = wrong.mask(rows["model"] == "LSAP-C", rows["truth"].iloc[0])
    worse = replace(study, predictions=rows.assign(predicted=wrong))
    assert judge_connectome(worse).answer == NO
    judged = replace(worse, connectome_gain=draw_gain_table(8, 3))
    assert judge_connectome(judged).answer == NOT_SHOWN


def test_regions_need_enough_permutations(make_study):
    study = make_study(skill=0.9, p_effect=0.01)
    few = replace(study, ranking=study.ranking.assign(n_permutations=9))
    assert {answer.answer for answer in judge_effects_and_contrasts(few)} == {NOT_SHOWN}
    assert {
        answer.answer
        for answer in judge_effects_and_contrasts(replace(study, ranking=None))
    } == {NOT_SHOWN}
    # Tests of all regions replace the columns of the ranking.
    region_tests = pd.DataFrame(
        {"region": ["region_0", "region_1"], "feature": "thickness"}
    ).assign(p_effect=[0.01, 0.02], p_contrast=[0.5, 0.03], n_permutations=199)
    region_tests = region_tests.assign(effect=[0.2, -0.6], contrast=[0.1, 0.5])
    differ, stand_out = judge_effects_and_contrasts(
        replace(study, region_tests=region_tests)
    )
    assert (differ.estimate, stand_out.estimate) == (2, 1)
    assert differ.sentence.index("region_1") < differ.sentence.index("region_0")


@pytest.mark.usefixtures("without_subgroups")
def test_variables_that_predict_the_class_may_explain_the_score(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    warned = replace(study, audit=study.audit.assign(severity="warning"))
    covariates = draw_conclusions(warned).covariates
    assert (covariates.answer, covariates.verdict) == (NOT_SHOWN, POSSIBLY)
    assert "Age alone: 0.34" in covariates.sentence
    assert "not adjusted for age, sex and site" in covariates.sentence
    # Columns are what they name: AGE is an age, and a dosage is none.
    for columns, open_names in ((["AGE"], "sex and site"), (["dosage"], "age, sex")):
        steps = study.settings["steps"] | {"regress_out": columns}
        adjusted = replace(warned, settings=study.settings | {"steps": steps})
        sentence = draw_conclusions(adjusted).covariates.sentence
        assert f"not adjusted for {open_names}" in sentence
    # So is every other variable that the audit warns of, such as the head's volume.
    volume_audit = warned.audit.assign(covariate="eTIV")
    sentence = draw_conclusions(replace(warned, audit=volume_audit)).covariates.sentence
    assert "not adjusted for age, sex, site and eTIV" in sentence
    # A note is shown as well, so that its score can be read.
    chance = judge_gain_over_chance(study)
    noted = judge_covariates(study, chance)
    assert (noted.answer, noted.verdict) == (NOT_SHOWN, NO_WARNING)
    assert "Age alone: 0.34" in noted.sentence
    for audit in (None, study.audit[:0]):
        unaudited = replace(study, audit=audit)
        assert judge_covariates(unaudited, chance).verdict == NOT_TESTED
    # A score at chance leaves nothing to explain, whatever the audit found.
    null = make_study(skill=0.0, p_effect=1.0)
    for severity in ("note", "warning"):
        audited = replace(null, audit=null.audit.assign(severity=severity))
        unexplained = draw_conclusions(audited).covariates
        assert unexplained.verdict == NOTHING_TO_EXPLAIN
        confounding = conclusions.confounding_text(audited, draw_conclusions(audited))
        assert "No score was shown to be above chance" in confounding
        is_warned = severity == "warning"
        assert ("Age alone: 0.34" in unexplained.sentence) == is_warned
    assert "no external test" in list_headline_lines(study)[-1]


def add_network(study, weights, predictions=None):
    """Let the first model add networks of these weights to LSAP-R, fold by fold."""
    reports = [
        json.dumps({"settings": {"start": "ridge"}, "network_weight": weight})
        for weight in weights
    ]
    fits = study.fits.copy()
    fits.loc[fits["model"] == "LSAP-C", "report"] = reports
    rows = study.predictions if predictions is None else predictions
    renamed = {"model": {"Exact": "LSAP-R"}}
    return replace(study, predictions=rows.replace(renamed), fits=fits.replace(renamed))


@pytest.mark.usefixtures("without_subgroups")
def test_a_network_is_credited_only_for_a_better_score(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    assert judge_network(study) is None
    unused = judge_network(add_network(study, [0, 0, 0]))
    assert (unused.answer, unused.verdict) == (NOT_SHOWN, NOT_USED)
    unused_clause = "all predictions come from "
    texts = [
        model_and_test_text(add_network(study, weights))
        for weights in ([0] * 3, [0, 1, 0])
    ]
    assert [unused_clause in text for text in texts] == [True, False]
    # LSAP-R predicts otherwise here; where it predicts the same, it is named.
    assert f"{unused_clause}its ridge regression" in texts[0]
    # A fit that failed has no weight and changes nothing.
    for weights, is_unused in (([0, None, 0], True), ([0, None, 1], False)):
        weighted = add_network(study, weights)
        assert tables.has_unused_network(weighted, "LSAP-C") == is_unused
    # The sentences to copy name what predicts.
    quotes = [
        draw_conclusions(add_network(study, weights)).may_write
        for weights in ([0] * 3, [0, 1, 0])
    ]
    assert quotes[0].startswith("The ridge regression of LSAP-C classified")
    assert quotes[1].startswith("LSAP-C classified")
    rows = study.predictions
    same = rows[rows["model"] == "LSAP-C"].assign(model="Exact")
    twins = pd.concat([rows[rows["model"] != "Exact"], same])
    named = model_and_test_text(add_network(study, [0, 0, 0], twins))
    assert f"{unused_clause}LSAP-R." in named
    quote = draw_conclusions(add_network(study, [0, 0, 0], twins)).may_write
    assert quote.startswith("The ridge regression LSAP-R classified")
    assert "LSAP-R plus a graph neural network" in named
    assert "LSAP-R plus a graph neural network" not in texts[0]
    assert "LSAP-R is a ridge regression" in named
    # The scales that the report shows are those of another model, or none.
    assert named.endswith("does not rank regions by their scales.")
    scales = study.scales.replace({"model": {"Exact": NESTED_RIDGES[2]}})
    ranked = replace(add_network(study, [0, 0, 0], twins), scales=scales)
    ranked = replace(ranked, ranking=rank_regions(ranked, NESTED_RIDGES[2]))
    assert "shows the scales of the ridge with a scale" in model_and_test_text(ranked)
    assert "shows the scales" not in model_and_test_text(
        add_network(study, [0, 1, 0], twins)
    )
    # A weight alone is none: both models have the same skill.
    used = add_network(study, [0, 0.5, 0])
    weighted = judge_network(used)
    assert weighted.answer == NOT_SHOWN
    assert "1 of 3 folds" in weighted.reason
    assert "the neural network outperforms ridge regression" in (
        draw_conclusions(used).may_not_write
    )
    rows = study.predictions
    constant = rows["predicted"].mask(rows["model"] == "Exact", rows["truth"].iloc[0])
    right = constant.mask(rows["model"] == "LSAP-C", rows["truth"])
    better = add_network(study, [0, 0.5, 0], rows.assign(predicted=right))
    found = draw_conclusions(better)
    assert found.network.answer == YES
    assert found.network in found.answers
    assert not any("neural network" in phrase for phrase in found.may_not_write)


def test_a_network_needs_a_ridge_to_be_compared_with(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    report = json.dumps({"settings": {"start": "ridge"}, "network_weight": 0.5})
    is_main = study.fits["model"] == "LSAP-C"
    fits = study.fits.assign(report=study.fits["report"].mask(is_main, report))
    alone = judge_network(replace(study, fits=fits))
    assert alone.answer == NOT_SHOWN
    assert np.isnan(alone.estimate)
    assert "no ridge regression" in alone.sentence


def test_questions_for_regions_are_answered_by_a_number(make_study):
    differ, stand_out = judge_effects_and_contrasts(
        make_study(skill=0.9, p_effect=0.01)
    )
    assert differ.verdict == "2 OF 7"
    assert stand_out.verdict == NONE_SHOWN


def test_the_number_for_the_abstract_is_withdrawn_with_the_score(
    make_study, make_evaluation
):
    study = make_study(skill=0.9, p_effect=1.0)
    assert draw_conclusions(study).chance.reason == "Score for the abstract:"
    # A score at chance is a result, too; a score with a leak is none.
    at_chance = make_study(skill=0.0, p_effect=1.0)
    chance = draw_conclusions(at_chance).chance
    assert (chance.answer, chance.reason) == (NOT_SHOWN, "Score for the abstract:")
    for with_score in (study, at_chance):
        leaky = replace(with_score, audit=make_evaluation().audit)
        assert draw_conclusions(leaky).chance.reason == ""


def test_age_is_not_adjusted_for_if_no_column_is_known_to_contain_it(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    table = study.cohort.table.rename(columns={"AGE": "Lebensalter"})
    unknown = replace(study, cohort=replace(study.cohort, table=table))
    covariates = judge_covariates(unknown, judge_gain_over_chance(unknown))
    assert "No column was recognised as age" in covariates.sentence
    assert "not adjusted for age" in covariates.sentence


@pytest.mark.usefixtures("without_subgroups")
@pytest.mark.parametrize(
    ("skills", "answer"), [((-0.5, 0.3, 0.9), YES), ((0.9, 0.3, -0.5), NO)]
)
def test_what_the_brain_adds_to_covariates_is_asked_if_they_were_run(
    make_study, skills, answer
):
    study = make_study(skill=0.9, p_effect=0.01)
    assert draw_conclusions(study).added_value is None
    rng = np.random.default_rng(0)
    table, classes = study.cohort.table, study.cohort.classes
    predictions = [
        draw_predictions(table, classes, name, skill, rng)
        for name, skill in zip(ADDED_VALUE_MODELS, skills, strict=True)
    ]
    fits = [
        study.fits.query("model == 'majority class'").assign(model=name)
        for name in ADDED_VALUE_MODELS
    ]
    beside = replace(
        study,
        predictions=pd.concat([study.predictions, *predictions]),
        fits=pd.concat([study.fits, *fits]),
        settings=study.settings | {"covariates": ["AGE", "SEX"]},
    )
    found = draw_conclusions(beside)
    assert "AGE and SEX" in found.added_value.question
    assert found.added_value.answer == answer
    assert found.added_value in found.answers
    # All answers on covariates stand side by side.
    place = found.answers.index(found.added_value)
    neighbours = [found.added_value, found.covariates, found.uncompared_covariates]
    neighbours = [conclusion for conclusion in neighbours if conclusion is not None]
    assert list(found.answers[place : place + len(neighbours)]) == neighbours
    chance = judge_gain_over_chance(beside)
    assert judge_covariates(beside, chance, found.added_value) == found.covariates
    # Covariates cannot explain the whole score if brain data improve the prediction.
    audit = beside.audit.assign(
        severity="warning", covariate="SEX", balanced_accuracy=0.4, p_value=0.01
    )
    # Site is in the table but in no model, so it has a verdict of its own.
    for covariate, verdict in (("SEX", IN_PART), ("SITE", POSSIBLY)):
        warned = replace(beside, audit=audit.assign(covariate=covariate))
        expected = verdict if answer == YES else POSSIBLY
        covariates = judge_covariates(warned, chance, found.added_value)
        uncompared = judge_uncompared_covariates(warned, covariates)
        assert covariates.verdict == expected
        is_excluded = expected == IN_PART
        names = "AGE or SEX" if is_excluded else "AGE, SEX or site"
        assert covariates.question == f"Could {names} explain the score?"
        assert ("SEX alone scores 0.40" in covariates.sentence) == is_excluded
        assert (uncompared is not None) == is_excluded
        if uncompared is not None:
            assert uncompared.question == "Could site explain the score?"
            assert (uncompared.answer, uncompared.verdict) == (NOT_SHOWN, NOT_TESTED)
            assert uncompared in draw_conclusions(warned).answers
            # A column that the audit tested without a warning has its score.
            site_row = warned.audit[:1].assign(covariate="SITE", severity="note")
            noted = replace(warned, audit=pd.concat([warned.audit, site_row]))
            tested = judge_uncompared_covariates(noted, covariates)
            assert (tested.answer, tested.verdict) == (NOT_SHOWN, NOT_EXCLUDED)
            assert f"{site_row['balanced_accuracy'].iloc[0]:.2f}" in tested.sentence
        is_site_named = "audit warns of SITE" in covariates.reason
        assert is_site_named == (covariate == "SITE" and answer == YES)
        assert "not adjusted for age, sex and site" in covariates.sentence
    # The score of the audit is named if it is higher than that of the model.
    noted_audit = audit.assign(severity="note")
    for audit_score in (0.01, 0.99):
        scored_audit = noted_audit.assign(balanced_accuracy=audit_score)
        scored = replace(beside, audit=scored_audit)
        covariates = judge_covariates(scored, chance, found.added_value)
        is_named = f"divided into groups, scores {audit_score}" in covariates.sentence
        assert is_named == (answer == YES and audit_score > 0.5)
    # Results of old versions do not say of which covariates the audit warns.
    old = replace(beside, audit=beside.audit.assign(severity="warning"))
    assert judge_covariates(old, chance, found.added_value).verdict == POSSIBLY
    # The comparison answers the question without a warning, or without an audit.
    for audit in (beside.audit, None):
        audited = replace(beside, audit=audit)
        covariates = judge_covariates(audited, chance, found.added_value)
        assert covariates.verdict == (IN_PART if answer == YES else POSSIBLY)
    # With site in the model, every listed variable was compared.
    columns = ["AGE", "SEX", "SITE"]
    complete = replace(beside, settings=beside.settings | {"covariates": columns})
    covariates = judge_covariates(complete, chance, found.added_value)
    assert covariates.verdict == (IN_PART if answer == YES else POSSIBLY)
    assert judge_uncompared_covariates(complete, covariates) is None
    # The sentence of the methods agrees with the answer.
    confounding = conclusions.confounding_text(beside, found)
    assert ("AGE and SEX do not fully explain" in confounding) == (answer == YES)
    assert ("site, scanner or another" in confounding) == (answer == YES)
    # Verbs agree with the number of covariates, not of their kinds.
    for columns, verbs in (
        (["AGE"], ("explains", "does")),
        (["SITE", "site"], ("explain", "do")),
    ):
        named = replace(beside, settings=beside.settings | {"covariates": columns})
        judged = draw_conclusions(named)
        is_stated = f" {verbs[0]} at most" in judged.covariates.reason
        assert is_stated == (answer == YES)
        confounding = conclusions.confounding_text(named, judged)
        assert (f" {verbs[1]} not fully explain" in confounding) == (answer == YES)
    forbidden_names = [text for text in found.may_not_write if "AGE and SEX" in text]
    assert len(forbidden_names) == (answer != YES)
    rows = tables.added_value_text_table(beside)
    assert list(rows["inputs"]) == [
        "AGE and SEX alone",
        "brain alone (LSAP-R)",
        "both",
    ]
    _, brain_name, joint_name = ADDED_VALUE_MODELS
    # The same two models have the same difference in the table of all scores.
    brain_first = replace(
        beside, fits=beside.fits.sort_values("model", key=lambda x: x != brain_name)
    )
    assert brain_first.models[0] == brain_name
    score_rows = tables.model_score_table(brain_first).set_index("model")
    difference = score_rows.loc[joint_name, f"{brain_name} minus this [95%]"]
    assert rows["difference of"][1] == "brain alone minus both"
    assert rows["difference [95%]"][1] == difference


@pytest.mark.parametrize("shares", ["training", "balanced", {"CN": 0.9, "AD": 0.1}])
def test_class_shares_of_the_user_may_be_those_of_a_clinic(make_study, shares):
    study = make_study(skill=0.9, p_effect=0.01)
    fits = study.fits.assign(settings=json.dumps({"class_prior": shares}))
    is_better = Conclusion("", YES, "")
    judged = judge_probabilities(replace(study, fits=fits), is_better)
    assert ("clinic" in judged.sentence) == isinstance(shares, str)


def test_probabilities_are_judged_by_their_calibration(make_study):
    study = make_study(skill=0.5, p_effect=1.0)
    columns = [f"p_{name}" for name in study.cohort.classes]
    rows = study.predictions
    is_predicted = np.column_stack(
        [rows["predicted"] == c for c in study.cohort.classes]
    )
    is_better, at_chance = Conclusion("", YES, ""), Conclusion("", NOT_SHOWN, "")
    share_right = (rows["predicted"] == rows["truth"])[rows["model"] == "LSAP-C"].mean()
    for confidence, verdict in ((share_right, NOT_SHOWN), (0.4, NO)):
        others = (1 - confidence) / (len(columns) - 1)
        certain = np.where(is_predicted, confidence, others)
        told = replace(
            study, predictions=rows.assign(**dict(zip(columns, certain.T, strict=True)))
        )
        judged = judge_probabilities(told, is_better)
        assert judged.verdict == verdict
        error = tables.score_interval_table(told, "LSAP-C").loc["ece"]
        assert f"{error['estimate']:.3f} [{error['low']:.3f}" in judged.sentence
        assert judge_probabilities(told, at_chance).verdict == NO
    # Without skill, a model can give nearly everybody the same probabilities.
    constant = rows.assign(**dict.fromkeys(columns, 0.0)).assign(p_AD=1.0)
    judged = judge_probabilities(replace(study, predictions=constant), at_chance)
    n_scans = (rows["model"] == "LSAP-C").sum()
    assert f"AD is the most probable class in {n_scans} of {n_scans}" in judged.sentence
    none = replace(study, predictions=rows.assign(**dict.fromkeys(columns, np.nan)))
    assert judge_probabilities(none, is_better).verdict == NOT_TESTED
    assert "no probabilities" in judge_probabilities(none, is_better).sentence


def test_a_gain_over_some_simple_models_is_a_number():
    def compare(name, answer, estimate):
        return Conclusion(name, answer, "", estimate, estimate - 0.1, estimate + 0.1)

    better = compare("majority class", YES, 0.3)
    unclear = compare("linear SVM", NOT_SHOWN, 0.05)
    worse = compare("logistic regression", NO, -0.3)
    for comparisons, answer, verdict in (
        ([better], YES, YES),
        ([better, unclear], NOT_SHOWN, "1 OF 2"),
        ([unclear], NOT_SHOWN, NOT_SHOWN),
        ([better, unclear, worse], NO, NO),
    ):
        judged = judge_simple_models(comparisons)
        assert (judged.answer, judged.verdict) == (answer, verdict)
        reason = judged.reason.lower()
        assert ("better than majority class" in reason) == (
            better in comparisons and answer != YES
        )
        assert ("not shown to be better than linear svm" in reason) == (
            unclear in comparisons
        )
        assert "Holm" not in judged.sentence
        of_many = judge_simple_models(comparisons, n_comparisons=9)
        assert "9 comparisons" in of_many.sentence
        assert "difference" not in judge_simple_models(comparisons, 9, "leak").reason


def test_a_p_near_its_limit_is_called_borderline(make_study):
    study = make_study(skill=0.9, p_effect=0.005)
    p_values = np.array([0.005, 0.045, *[1.0] * 5])
    region_tests = pd.DataFrame(
        {"region": [f"region_{k}" for k in range(7)], "feature": "thickness"}
    ).assign(p_effect=p_values, p_contrast=p_values, n_permutations=200)
    region_tests = region_tests.assign(effect=-0.5, contrast=0.5)
    found = draw_conclusions(replace(study, region_tests=region_tests))
    texts = (
        found.regions_differ.sentence,
        found.regions_stand_out.sentence,
        found.may_write,
    )
    for text in texts:
        assert "borderline in region_1: p = 0.045 with 200 permutations" in text
    # Many permutations leave no doubt.
    exact = region_tests.assign(n_permutations=20_000)
    assert "borderline" not in (
        draw_conclusions(replace(study, region_tests=exact)).may_write
    )


def test_predictions_that_are_not_the_most_probable_are_counted(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    is_main = study.predictions["model"] == "LSAP-C"
    columns = [f"p_{name}" for name in study.cohort.classes]
    is_predicted = [
        study.predictions["predicted"] == name for name in study.cohort.classes
    ]
    certain = pd.DataFrame(dict(zip(columns, is_predicted, strict=True))).astype(float)
    rows = study.predictions.assign(**certain)
    agreed = replace(study, predictions=rows)
    assert conclusions.less_probable_predictions_text(agreed) == ""
    first_row = rows.index[is_main][0]
    rows.loc[first_row, columns] = 1 - rows.loc[first_row, columns]
    text = conclusions.less_probable_predictions_text(replace(study, predictions=rows))
    assert f"in 1 of {is_main.sum()}" in text


def test_a_difference_between_groups_is_a_caution(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    assert not any("differs by" in text for text in list_cautions(study, ""))
    table = study.cohort.table
    is_south = table["SITE"] == "south"
    wrong = {"CN": "AD", "AD": "CN"}
    southern_scans = table.loc[is_south, "scan"]
    rows = study.predictions
    is_wrong = rows["scan"].isin(southern_scans)
    predicted = rows["truth"].mask(is_wrong, rows["truth"].map(wrong).fillna("CN"))
    unequal = replace(study, predictions=rows.assign(predicted=predicted))
    (caution,) = [text for text in list_cautions(unequal, "") if "differs by" in text]
    assert "1.000 for north, and 0.000 for south" in caution


def test_the_first_sentence_on_excluded_people_says_whom(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    assert conclusions.excluded_text(study) == "Nobody was excluded."
    left_out = Finding("no image", kind=NO_LABEL, severity=LEFT_OUT, people=("p1",))
    cohort = replace(study.cohort, findings=[*study.cohort.findings, left_out])
    text = conclusions.excluded_text(replace(study, cohort=cohort))
    assert text.startswith("Excluded: ")


def test_unusual_scans_that_were_kept_are_counted_at_once(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    table = study.cohort.table.assign(quality="")
    assert "unusual" not in conclusions.left_out_text(
        replace(study, cohort=replace(study.cohort, table=table))
    )
    table.loc[table.index[:2], "quality"] = "very different"
    kept = replace(study, cohort=replace(study.cohort, table=table))
    assert "2 scans unlike the others were kept" in conclusions.left_out_text(kept)
    # The open part of the page names them, by code only.
    assert conclusions.kept_scans_sentence(replace(study, cohort=study.cohort)) == ""
    coded = table.assign(code=[f"S{k}" for k in range(len(table))])
    coded = replace(study, cohort=replace(study.cohort, table=coded))
    assert "were kept: S0, S1. The" in conclusions.kept_scans_sentence(coded)
    assert "were kept. The" in conclusions.kept_scans_sentence(kept)


def test_a_scan_that_may_be_swapped_is_named_by_its_code_in_beware(make_study):
    study = make_study(skill=0.9, p_effect=1.0)
    table = study.cohort.table.assign(quality_swapped="")
    table["code"] = [f"S{i:04d}" for i in range(len(table))]
    table.loc[table.index[[1, 4]], "quality_swapped"] = "connectome", "connectome, fdg"
    for columns, names in (([], "S0001, S0004"), (["code"], table["scan"].iloc[1])):
        cohort = replace(study.cohort, table=table.drop(columns=columns))
        cautions = conclusions.list_cautions(replace(study, cohort=cohort), "")
        assert cautions[0].startswith(
            "In 2 scans, left and right of the connectome may have been swapped: "
            f"{names}"
        )
        assert cautions[1].startswith("In 1 scan, left and right of fdg ")


@pytest.mark.parametrize(
    ("n_hardly", "words"),
    [
        (0, "weight in 2 of 3 folds."),
        (1, "weight in 2 of 3 folds, and was hardly trained in 1 of these folds."),
        (2, "weight in 2 of 3 folds, and was hardly trained there."),
    ],
)
def test_folds_of_a_hardly_trained_network_are_those_with_weight(
    make_study, monkeypatch, n_hardly, words
):
    monkeypatch.setattr(conclusions, "count_hardly_trained_folds", lambda *_: n_hardly)
    study = add_network(make_study(skill=0.9, p_effect=1.0), [0, 0.5, 0.5])
    assert judge_network(study).reason.endswith(words)


@pytest.mark.parametrize(
    ("better_name", "answer", "score_verdict"),
    [
        ("LSAP-R", YES, "LSAP-R scores better with the study"),
        (RANDOM_CONNECTOME_RIDGE, NOT_SHOWN, "LSAP-R scores worse with"),
        (None, YES, "LSAP-R was not shown to score better with"),
    ],
)
def test_the_score_with_a_random_connectome_is_subtracted(
    make_study, better_name, answer, score_verdict
):
    names = ("LSAP-C", "LSAP-R", NESTED_RIDGES[0], RANDOM_CONNECTOME_RIDGE)
    study = make_study(skill=0.3, p_effect=1.0, models=names)
    study = replace(study, connectome_gain=draw_gain_table(8, 3))
    rows = study.predictions
    is_better = rows["model"] == better_name
    predicted = rows["predicted"].mask(is_better, rows["truth"])
    judged = replace(study, predictions=rows.assign(predicted=predicted))
    conclusion = judge_connectome(judged)
    row = tables.person_comparison_table(judged, "LSAP-R").set_index("model")
    difference = row.loc[RANDOM_CONNECTOME_RIDGE, "difference"]
    assert score_verdict in conclusion.sentence
    _, control_text = conclusion.sentence.split("than with a random connectome: ")
    study_score, random_score = map(float, control_text.split(" (")[0].split(" and "))
    assert study_score - random_score == pytest.approx(difference, abs=2e-3)
    assert conclusion.answer == answer


def test_a_random_connectome_is_not_judged_where_none_was_used(make_study):
    names = ("LSAP-C", "LSAP-R", NESTED_RIDGES[0], RANDOM_CONNECTOME_RIDGE)
    study = make_study(skill=0.9, p_effect=1.0, models=names)
    rows = study.predictions
    same = rows[rows["model"] == NESTED_RIDGES[0]].assign(model="LSAP-R")
    others = rows[rows["model"] != "LSAP-R"]
    unused = replace(study, predictions=pd.concat([others, same]))
    assert "with a random connectome" in judge_connectome(study).sentence
    assert "with a random connectome" not in judge_connectome(unused).sentence


@pytest.mark.parametrize(
    ("check_key", "answer"), [("duplicate_scans", NOT_SHOWN), ("copied_visits", YES)]
)
def test_regions_of_copied_people_are_withdrawn_without_a_dividing_fold(
    make_study, check_key, answer
):
    study = make_study(skill=0.9, p_effect=0.01)
    finding = "two participants have identical features"
    rows = [[check_key, "warning", finding, "compare the files", ""]] * 3
    columns = ["check", "severity", "finding", "what_to_do", "scans"]
    warned = replace(study, audit=pd.DataFrame(rows, columns=columns))
    found = draw_conclusions(warned)
    assert found.regions_differ.answer == answer
    assert found.chance.answer == YES  # no fold divides them
    (caution,) = [text for text in found.cautions if finding in text]
    assert "3 times" in caution
