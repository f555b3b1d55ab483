"""Methods text: every option that changes a number changes the text."""

import json
import re
from dataclasses import replace
from inspect import signature
from pathlib import Path

import pandas as pd
import pytest
from jinja2 import nodes

from brainlsap import LSAPClassifier, load_cohort, make_cohort, run_study, workflow
from brainlsap.evaluation import cross_validate, make_models, rank_regions
from brainlsap.evaluation.models import NESTED_RIDGES
from brainlsap.graph import EXPANSIONS
from brainlsap.report import headline, methods, methods_text, tables
from brainlsap.report.methods import TEMPLATES, UNSAID

DESIGN = ("cv", "n_folds", "n_repeats", "random_state", "people_shared")
SOURCE = Path(methods.__file__).with_name("methods.txt.j2").read_text("utf-8")
CALLS = [
    [part.as_const() for part in call.args]
    for call in TEMPLATES.parse(SOURCE).find_all(nodes.Call)
    if getattr(call.node, "name", "") == "s"
]
"""Every setting that the template has words for, and these."""
FIRST = [key for key, _ in CALLS].index
READING, MODEL = CALLS[: FIRST("kernel")], CALLS[FIRST("kernel") : FIRST("leave_out")]
STUDY = CALLS[FIRST("leave_out") :]
VALUES = {
    "class_weight": ("balanced", "none"),
    "classes": (["CN", "AD"], ["AD", "CN"]),
    "frames": ([0, 10], [5, 10]),
    "merged_classes": ({"a": ["CN"]}, {"a": ["CN", "AD"]}),
    "preserve": ([], ["age"]),
    "regress_out": ([], ["age"]),
    "cv": ("stratified folds of whole people", "given"),
    "people_shared": (False, True),
}


def values_of(name, phrase):
    if name in VALUES:
        return VALUES[name]
    if not isinstance(phrase, dict):
        return 2, 3
    typed = {"True": True, "False": False, "*": 2, "0": 0}
    return tuple(typed.get(one, one) for one in phrase)[:2]


def text_of(evaluation, **parts):
    one = replace(evaluation, **parts)
    one.__dict__["_scores"] = evaluation.scores()  # they take longer than all the rest
    return "\n".join(methods_text(one))


def with_model(evaluation, **settings):
    fits = evaluation.fits.copy()
    mine = fits["role"] == "model"
    told = {"kernel": "chebyshev", "scale_penalty": "barrier", **settings}
    fits.loc[mine, "settings"] = json.dumps(told)
    fits["report"] = "{}"
    return text_of(evaluation, fits=fits)


def with_cohort(evaluation, **provenance):
    return text_of(evaluation, cohort=replace(evaluation.cohort, provenance=provenance))


def with_study(evaluation, **settings):
    return text_of(evaluation, settings=evaluation.settings | settings)


ANY = (with_model, with_cohort, with_study)


@pytest.mark.parametrize(
    ("change", "name", "phrase"),
    [
        *((with_model, *item) for item in MODEL),
        *((with_cohort, *item) for item in READING),
        *((with_study, *item) for item in STUDY),
        *((with_study, name, "") for name in DESIGN),
        *((change, "brand_new", "") for change in ANY),
    ],
)
def test_an_option_that_changes_numbers_changes_the_text(
    evaluation, change, name, phrase
):
    one, other = values_of(name, phrase)
    before = change(evaluation, **{name: one})
    after = change(evaluation, **{name: other})
    assert before != after


@pytest.mark.parametrize(
    ("change", "function"), [(with_model, LSAPClassifier), (with_cohort, load_cohort)]
)
def test_no_option_of_a_signature_is_forgotten(evaluation, change, function):
    before = change(evaluation)
    for name in set(signature(function).parameters) - UNSAID:
        assert change(evaluation, **{name: 17}) != before, name


# Each option of run_study that changes a number: another value, and what then is said.
TOLD = {
    "cv": (3, "3-fold cross-validation"),
    "n_repeats": (2, "repeated 2 times"),
    "leave_out": ("site", "each with one site held out whole"),
    "random_state": (7, "seed 7"),
    "merged_classes": ("5-to-2", "impaired: EMCI, LMCI and AD"),
    "harmonize": ("site", "values of site were removed from the features by ComBat"),
    "regress_out": (["age", "sex"], "Linear effects of age and sex"),
    "n_permutations": (1, "compared with 1 permutation of the labels"),
    "preset": ("paper", "the settings of Sim et al. (2024)"),
}


@pytest.mark.parametrize("alone", [("leave_out",), tuple(TOLD)[:2] + tuple(TOLD)[3:]])
def test_a_study_tells_every_option_of_its_signature(tmp_path, monkeypatch, alone):
    unsaid = (UNSAID - set(DESIGN)) | {"cohort", "settings"}
    assert set(signature(run_study).parameters) - unsaid == {*TOLD}
    monkeypatch.setattr(workflow, "write_report", lambda *_, **__: None)
    cohort = make_cohort(30, atlas="desikan82", n_sites=2)
    options = {name: TOLD[name][0] for name in alone}
    how = {"baselines": False, "n_epochs": 1, "n_starts": 1}
    found = run_study(cohort, tmp_path / "out", **how, **options)
    text = "\n".join([*methods_text(found), *headline(found)])
    for name in alone:
        assert TOLD[name][1] in text, name


def test_words_for_paper(evaluation):
    provenance = {"subcortex": "mean", "scans": "baseline"}
    cohort = replace(evaluation.cohort, provenance=provenance)
    one = replace(evaluation, cohort=cohort)
    people, model, design, results = methods_text(one)
    assert "54 scans of 36 participants in 3 classes of diagnosis" in people
    assert "simulated" not in " ".join([people, *headline(one)])
    truth = pd.DataFrame(columns=["region", "seed"])
    simulated = replace(one, cohort=replace(cohort, truth=truth))
    assert "36 participants, all simulated, in" in methods_text(simulated)[0]
    assert "(simulated: this says nothing about people)" in headline(simulated)[0]
    assert "CN (n = 12, 18 scans)" in people
    told = "in 7 of 7 regions (4.0% of values missing)."
    assert told in people
    assert "Missing values of features counted as the mean of the training" in design
    age = evaluation.cohort.table.drop_duplicates("participant")["AGE"]
    told = f"Age at the first scan was {age.mean():.1f} ± {age.std():.1f} years"
    assert told in people
    assert "the mean of the hemisphere's cortex" in people
    assert "LSAP-C used a Chebyshev expansion of the heat kernel, degree 20" in model
    assert "Otherwise Exact was as LSAP-C." in model
    assert "majority and linear SVM were run on the very same folds" in design
    assert "LSAP-C reached a balanced accuracy of" in results


def test_a_registered_kernel_is_called_by_its_title(evaluation, monkeypatch):
    expansion = replace(EXPANSIONS["chebyshev"], title="Taylor")
    assert "the heat kernel taylor" in with_model(evaluation, kernel="taylor")
    monkeypatch.setitem(EXPANSIONS, "taylor", expansion)
    text = with_model(evaluation, kernel="taylor")
    assert "a Taylor expansion of the heat kernel" in text


def test_settings_chosen_in_folds_are_told_so(evaluation):
    fits = evaluation.fits.copy()
    mine = fits.index[fits["model"] == "LSAP-C"]
    for row, start in zip(mine, (0.2, 2.0, 2.0), strict=True):
        fits.loc[row, "report"] = json.dumps({"settings": {"initial_scale": start}})
    text = text_of(evaluation, fits=fits)
    assert "0.2 or 2 (chosen in each training fold)" in text
    assert "no early stopping" in with_model(evaluation, n_epochs=30, patience=40)


@pytest.mark.parametrize(("found", "serves"), [("one per scan", False), ("W", True)])
def test_a_file_of_all_connectomes_serves_nobody_else(evaluation, found, serves):
    asked = {"connectome": "W.npy"}
    text = with_cohort(evaluation, connectome=found, asked=asked)
    assert ("One connectome served all scans" in text) == serves


def test_a_null_of_the_ranking_is_told(evaluation):
    ranking = rank_regions(evaluation).assign(p=0.5, n_permutations=99)
    text = text_of(evaluation, ranking=ranking)
    assert "a ridge with one scale, fitted to all scans" in text
    assert "compared with 99 permutations of the labels" in text
    few = replace(evaluation, ranking=ranking.assign(n_permutations=9))
    assert "Too few permutations (9)" in headline(few)[-1]


def test_what_beats_no_network_is_called_averaging(make_evaluation):
    one = make_evaluation(models=NESTED_RIDGES)
    rows = one.predictions
    is_above = rows["model"].isin(NESTED_RIDGES[1:])
    predicted = rows["predicted"].mask(is_above, rows["truth"])
    is_below = rows["model"] == NESTED_RIDGES[0]
    predicted = predicted.mask(is_below, rows["truth"].iloc[0])
    gained = replace(one, predictions=rows.assign(predicted=predicted))
    gains = tables.nested_model_text(gained)["gain"].tolist()
    assert gains == ["averaging along the connectome", "unclear"]
    text = " ".join(headline(gained))
    assert "Averaging along the connectome" in text
    assert "connectomes drawn at random can give" in text
    assert not re.search(r"(connectome|network) (adds|helps|contributes)", text)
    # without a gain there is nothing to be careful about
    same = replace(one, predictions=rows.assign(predicted=rows["truth"].iloc[0]))
    assert "drawn at random" not in " ".join(headline(same))


def test_the_headline_names_regions_above_chance_and_no_other(evaluation):
    ranking = rank_regions(evaluation)
    second = ranking.set_index("rank").loc[2.0, "region"]
    tested = ranking.assign(p=(ranking["rank"] != 2) * 1.0, n_permutations=99)
    text = " ".join(headline(replace(evaluation, ranking=tested)))
    assert "order the regions otherwise" not in text
    scales = evaluation.scales.copy()
    scales.loc[scales["model"] == "Exact", "scale"] = 3 - scales["scale"]
    other = " ".join(headline(replace(evaluation, ranking=tested, scales=scales)))
    assert "Other models order the regions otherwise: Spearman -" in other
    n_rois = ranking["measured"].sum()
    assert f"1 of {n_rois} regions stands out by a scale below" in text
    assert f"which need not be the smallest: {second}." in text
    tested["p"] = 1.0 - (ranking["rank"] <= 3)
    text = " ".join(headline(replace(evaluation, ranking=tested)))
    assert f"(family-wise p < 0.05, labels permuted: 3 of {n_rois} regions)." in text
    tied = tested.assign(rank=tested["rank"].clip(lower=3))  # those that stand out
    text = " ".join(headline(replace(evaluation, ranking=tied)))
    assert "pooled standard deviations" in text


def test_the_headline_of_two_ridges_has_one_step_and_its_own_p(small_cohort):
    two = make_models(NESTED_RIDGES[1:], random_state=0)
    evaluation = cross_validate(two, small_cohort, cv=2, baselines=False)
    text = " ".join(headline(evaluation))
    assert f"{NESTED_RIDGES[2]} against {NESTED_RIDGES[1]}," in text
    step = text.partition(f"{NESTED_RIDGES[2]} against")[2].partition(")")[0]
    assert "(p " in step
    assert "Holm-corrected p" not in step


def test_ridges_are_told_with_their_settings_and_what_they_chose(evaluation):
    fits = evaluation.fits.copy()
    mine = fits["model"] == "majority"
    fits.loc[mine, "settings"] = json.dumps({"ladder": "auto", "max_scale": 7.0})
    told = [{"chosen": one, "ordered": True} for one in ("one", "none", "one")]
    fits.loc[mine, "report"] = [json.dumps(one) for one in told]
    text = text_of(evaluation, fits=fits)
    assert "ridge regressions of the number of the class" in text
    assert "probable as the one taken so far (majority)" in text
    assert "scales were kept at or below 7" in text
    chosen = "majority chose one scale in 2 folds and no network in 1 fold."
    assert chosen in text
    assert chosen in " ".join(headline(replace(evaluation, fits=fits)))


@pytest.mark.parametrize(
    ("best", "n_epochs", "loss", "told"),
    [
        (10, 13, 0.5, "(13 epochs; in 3 of 3 folds) used up"),
        (10, 14, 0.5, ""),
        (2, 30, 0.5, "Hardly trained"),
        (12, 13, None, "(13 epochs; in 3 of 3 folds) had too few people of a class"),
    ],
)
def test_a_training_cut_short_hardly_begun_or_without_validation_is_told(
    evaluation, best, n_epochs, loss, told
):
    fits = evaluation.fits.copy()
    report = {"settings": {"n_epochs": n_epochs, "patience": 30}}
    report["losses"] = {"epoch": [1], "training": [0.1], "validation": [loss]}
    fits.loc[fits["role"] == "model", ["epochs", "report"]] = best, json.dumps(report)
    one = replace(evaluation, fits=fits)
    text = " ".join(headline(one))
    assert told in text
    kinds = ("used up all", "Hardly trained", "had too few people")
    assert sum(kind in text for kind in kinds) == bool(told)
    said = "there was none, and all epochs were run" in " ".join(methods_text(one))
    assert said == (loss is None)


def test_scales_of_draws_are_told_as_posterior_means(evaluation):
    def ridge_text(n_draws):
        fits = evaluation.fits.copy()
        settings = {"ladder": "regions", "n_draws": n_draws, "class_prior": "training"}
        fits["settings"] = json.dumps(settings)
        fits["report"] = "{}"
        return text_of(evaluation, fits=fits)

    drawn, most_probable = ridge_text(30), ridge_text(0)
    assert "posterior means" in drawn
    assert "posterior means" not in most_probable
    for text in (drawn, most_probable):
        assert "highest marginal likelihood" not in text
        assert "class shares of the training scans" in text
