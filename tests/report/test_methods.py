"""Methods text: every option that changes a number changes the text."""

import json
import re
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from pathlib import Path

import pandas as pd
import pytest
from jinja2 import nodes

from brainlsap import (
    Cohort,
    LSAPClassifier,
    load_cohort,
    make_cohort,
    run_study,
    workflow,
)
from brainlsap.data.flow import LeftOutScan, left_out_table
from brainlsap.data.reading_options import ReadingOptions
from brainlsap.evaluation import Deconfounder, rank_regions, region_tests
from brainlsap.evaluation.confounds import STEP_OPTIONS
from brainlsap.evaluation.models import (
    ADDED_VALUE_MODELS,
    MODELS,
    NESTED_RIDGES,
    ModelEntry,
)
from brainlsap.evaluation.splits import EXCHANGE_CONDITIONS
from brainlsap.graph import EXPANSIONS
from brainlsap.model.network import NETWORKS
from brainlsap.options import CONFIGURABLE
from brainlsap.report import (
    fit_table,
    list_headline_lines,
    list_methods_paragraphs,
    list_supplement_paragraphs,
    methods,
    score_remarks,
    tables,
)
from brainlsap.report.conclusions import list_cautions
from brainlsap.report.methods import (
    NETWORK_PHRASES,
    OWN_PHRASES,
    TEMPLATES,
    UNLISTED_SETTINGS,
    connectome_sentences,
    prior_text,
)
from tests.conftest import make_small_atlas
from tests.report.conftest import draw_gain_table, draw_learning_curve

pytestmark = pytest.mark.usefixtures("brief_studies")

DESIGN = ("cv", "n_folds", "n_repeats", "random_state", "people_shared")
SOURCE = Path(methods.__file__).with_name("supplement.txt.j2").read_text("utf-8")
CALLS = [
    [part.as_const() for part in call.args]
    for call in TEMPLATES.parse(SOURCE).find_all(nodes.Call)
    if getattr(call.node, "name", "") == "phrase"
]
"""Every setting that the template has words for, and these."""
KEYS = [key for key, _ in CALLS]
FIRST_OF_MODEL, FIRST_OF_STUDY = KEYS.index("kernel"), KEYS.index("leave_out")
READING = CALLS[:FIRST_OF_MODEL]
MODEL = CALLS[FIRST_OF_MODEL:FIRST_OF_STUDY]
STUDY = CALLS[FIRST_OF_STUDY:]
VALUES = {
    "exclude": (None, ["a scan"]),
    "class_weight": ("balanced", "none"),
    "classes": (["CN", "AD"], ["AD", "CN"]),
    "frames": ([0, 10], [5, 10]),
    "merge_classes": ({"a": ["CN"]}, {"a": ["CN", "AD"]}),
    "preserve": ([], ["age"]),
    "regress_out": ([], ["age"]),
    "reference_class": (None, "CN"),
    "cv": ("stratified folds of whole people", "given"),
    "people_shared": (False, True),
}


def values_of(name, phrase):
    if name in VALUES:
        return VALUES[name]
    if not isinstance(phrase, dict):
        return 2, 3
    typed = {"True": True, "False": False, "*": 2, "0": 0}
    return tuple(typed.get(value, value) for value in phrase)[:2]


def text_of(evaluation, **parts):
    # Reuse scores, groups and ranking: they take longer than everything else.
    derived = evaluation.__dict__
    if "_score_texts" not in derived:
        derived["_score_texts"] = methods._list_model_names_and_score_texts(evaluation)
        derived["_ranking"] = rank_regions(evaluation)
        derived["_subgroups"] = tables.scored_subgroups_sentences(evaluation)
    changed = replace(evaluation, **{"ranking": derived["_ranking"]} | parts)
    changed.__dict__["_scores"] = evaluation.scores()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            methods,
            "_list_model_names_and_score_texts",
            lambda _: derived["_score_texts"],
        )
        patch.setattr(
            tables, "scored_subgroups_sentences", lambda _: derived["_subgroups"]
        )
        return "\n".join(list_supplement_paragraphs(changed))


def with_model(evaluation, **settings):
    fits = evaluation.fits.copy()
    is_model = fits["role"] == "model"
    settings = {"kernel": "chebyshev", "scale_penalty": "barrier", **settings}
    fits.loc[is_model, "settings"] = json.dumps(settings)
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
    texts = {change(evaluation, **{name: value}) for value in values_of(name, phrase)}
    assert len(texts) == 2


@pytest.mark.parametrize(
    ("change", "function"), [(with_model, LSAPClassifier), (with_cohort, load_cohort)]
)
def test_no_option_of_a_signature_is_forgotten(evaluation, change, function):
    before = change(evaluation)
    for name in set(signature(function).parameters) - UNLISTED_SETTINGS:
        assert change(evaluation, **{name: 17}) != before, name


# Options of run_study that change numbers: another value, and a phrase of the text.
STUDY_OPTIONS = {
    "cv": (2, "2-fold cross-validation"),
    "n_repeats": (2, "repeated 2 times"),
    "leave_out": ("site", "one fold for each value of site"),
    "random_state": (7, "seed 7"),
    "merge_classes": ("5-to-2", "impaired: EMCI, LMCI and AD"),
    "harmonize": ("site", "Effects of site on the features were removed"),
    "regress_out": (["age", "sex"], "effects of age and sex"),
    "covariates": (["sex"], "what brain features add to sex"),
    "subgroups": (["site"], "in groups of participants by site"),
    "reference_class": (
        "unimpaired",
        "training participants of class unimpaired alone",
    ),
    "n_permutations": (1, "values in 1 permutation of the labels"),
    "preset": ("paper", "the settings of Sim et al. (2024)"),
    "learning_curve": (True, "75% of the training participants of each fold"),
}


# Of one study, with a model that is fitted quickly; all others are of another.
ALONE = {"leave_out", "learning_curve"}


def run_examples(cohort, folder, names):
    """Run a study with the examples of these options."""
    options = {name: STUDY_OPTIONS[name][0] for name in names}
    if names <= ALONE:
        options["models"] = "majority class"
    else:
        options |= {"models": "LSAP-C", "n_epochs": 1, "n_starts": 1}
    return run_study(cohort, folder, baselines=False, **options)


def record_inputs_by_step(monkeypatch):
    """Return a dict that gets the cohort and adjustment of every step of a study."""
    inputs_by_step = {}

    def record(step, values):
        for value in values:
            if isinstance(value, Cohort):
                inputs_by_step[step, "cohort"] = id(value)
            if isinstance(value, Deconfounder):
                inputs_by_step[step, "adjustment"] = value.get_params()

    def watch(name):
        function = getattr(workflow, name)

        def watched(*values, **settings):
            record(name, [*values, *settings.values()])
            if name == "cross_validate_with_calls":
                record(name, [Deconfounder(*map(settings.get, STEP_OPTIONS))])
                for step, (_, call_values, call_settings) in values[0].items():
                    record(step, [*call_values, *call_settings.values()])
            return function(*values, **settings)

        monkeypatch.setattr(workflow, name, watched)

    watch("cross_validate_with_calls")
    watch("_make_evaluation_and_quality_table")
    watch("_compute_learning_curve_table")
    return inputs_by_step


@pytest.mark.parametrize("names", [ALONE, STUDY_OPTIONS.keys() - ALONE], ids=len)
def test_a_study_states_and_uses_every_option(tmp_path, monkeypatch, names):
    options = [option for option in CONFIGURABLE if option.recipient == "study"]
    changing = {option.name for option in options if option.changes_results}
    missing = changing - {"models", "baselines", "splits"} - {*STUDY_OPTIONS}
    assert not missing, f"add examples of {missing} to STUDY_OPTIONS"
    assert {*STUDY_OPTIONS} <= changing
    monkeypatch.setattr(workflow, "write_report", lambda *_, **__: None)
    cohort = make_cohort(72, atlas=make_small_atlas(), n_sites=2)
    inputs_by_step = record_inputs_by_step(monkeypatch)
    try:
        evaluation = run_examples(cohort, tmp_path / "out", names)
    except Exception as error:
        spoiling_names = []
        for name in sorted(names):
            with suppress(Exception):
                run_examples(cohort, tmp_path / f"without {name}", names - {name})
                spoiling_names.append(name)
        advice = f"correct the example of {spoiling_names or names} in STUDY_OPTIONS"
        raise AssertionError(advice) from error
    for (step, kind), value in inputs_by_step.items():
        assert value == inputs_by_step["cross_validate_with_calls", kind], (
            f"in run_study, {step} gets another {kind} than the cross-validation"
        )
    assert len(inputs_by_step) >= 9
    text = "\n".join(
        [*list_supplement_paragraphs(evaluation), *score_remarks(evaluation)]
    )
    unstated = {name for name in names if STUDY_OPTIONS[name][1] not in text}
    assert not unstated, f"the text lacks the phrases of {unstated} in STUDY_OPTIONS"
    repeated = {name for name in names if f"{name.replace('_', ' ')} = " in text}
    assert not repeated, f"state {repeated} by phrase(...) in supplement.txt.j2"
    for name in names:
        assert name in UNLISTED_SETTINGS or name in evaluation.settings, name


# Tables of an evaluation that a study may lack, and words that only their step uses.
WORDS_OF_STEPS = {
    "connectome_gain": r"\bgains?\b|random connectome|relabelled|rewired|Bayes factor",
    "learning_curve": r"learning curve|random subset",
    "ranking": r"permutations? of the labels in|family-wise",
}


def add_step(evaluation, step):
    """Return the text of an evaluation with the table of this step."""
    ranking = rank_regions(evaluation)
    tests = {"p_effect": 0.5, "p_contrast": 0.5, "n_permutations": 99}
    table = {
        "connectome_gain": draw_gain_table(8, 3),
        "learning_curve": draw_learning_curve(),
        "ranking": ranking.assign(**tests),
    }[step]
    return text_of(evaluation, **{step: table})


@pytest.mark.parametrize("step", WORDS_OF_STEPS)
def test_no_option_describes_a_step_that_was_left_out(evaluation, step):
    options = {name: value for name, (value, _) in STUDY_OPTIONS.items()}
    text = with_study(evaluation, **options)
    words = re.findall(WORDS_OF_STEPS[step], text, re.IGNORECASE)
    assert not words, (
        f"write the phrase with {words} inside the condition of {step} in "
        "supplement.txt.j2, and `phrase(name, {'*': ''})` where this step was left out"
    )
    assert re.search(WORDS_OF_STEPS[step], add_step(evaluation, step))


def test_every_baseline_is_described_in_the_methods():
    # The text of ridges and networks is made of their settings.
    described = {"majority class", *NESTED_RIDGES, *ADDED_VALUE_MODELS}
    described |= {kind.title for kind in NETWORKS.values()}
    baselines = {name for name, entry in MODELS.items() if entry.role == "baseline"}
    missing = {
        name
        for name in baselines - described
        if not MODELS[name].sentence and f'"{name}"' not in SOURCE
    }
    assert not missing, f"give the entries {missing} of MODELS a sentence="


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_is_described_in_the_supplement(evaluation, name):
    sentence = NETWORKS[name].sentence
    assert sentence.startswith(NETWORKS[name].title)
    assert sentence in with_model(evaluation, network=name, n_layers=2)
    assert sentence not in with_model(evaluation)


def test_probabilities_without_a_prior_are_described_where_they_ran(evaluation):
    name = next(name for name, entry in MODELS.items() if entry.probability_sentence)
    sentence = MODELS[name].probability_sentence
    assert sentence not in text_of(evaluation)
    new_name = {"model": {"majority": name, "linear SVM": name}}
    fits = evaluation.fits.replace(new_name)
    predictions = evaluation.predictions.replace(new_name)
    changed = replace(evaluation, fits=fits, predictions=predictions)
    assert sentence in prior_text(changed)


def test_one_model_is_compared_with_none(evaluation):
    alone = replace(
        evaluation,
        fits=evaluation.fits.query("model == 'LSAP-C'"),
        predictions=evaluation.predictions.query("model == 'LSAP-C'"),
    )
    compared, single = (
        " ".join(list_methods_paragraphs(one)) for one in (evaluation, alone)
    )
    assert "exchanging their predictions" in compared
    assert "exchanging their predictions" not in single
    assert "compared with 0" not in single


def test_controls_are_described_as_their_entries_say(evaluation, monkeypatch):
    entry = ModelEntry(MODELS["LSAP-C"].make, "control", "its eyes shut", False)
    monkeypatch.setitem(MODELS, "blind", entry)
    fits, predictions = [evaluation.fits], [evaluation.predictions]
    for name in ("edges only", "frozen scales", "blind"):
        own_fits = evaluation.fits.query("model == 'LSAP-C'")
        fits.append(own_fits.assign(model=name, role="control"))
        own_predictions = evaluation.predictions.query("model == 'LSAP-C'")
        predictions.append(own_predictions.assign(model=name))
    changed = replace(
        evaluation, fits=pd.concat(fits), predictions=pd.concat(predictions)
    )
    text = " ".join(list_supplement_paragraphs(changed))
    assert re.search(r"differed from LSAP-C .*: frozen scales \(scales kept", text)
    for name in ("edges only", "blind"):
        assert f'"{name}" was {MODELS[name].phrase}.' in text


def test_words_for_paper(evaluation):
    provenance = {"subcortex": "mean", "scans": "baseline"}
    cohort = replace(evaluation.cohort, provenance=provenance)
    evaluation = replace(evaluation, cohort=cohort)
    sample, *model_texts, results = list_supplement_paragraphs(evaluation)
    model = design = " ".join(model_texts)
    assert "54 scans of 36 participants in 3 classes of diagnosis" in sample
    assert "CN (n = 12, 18 scans)" in sample
    assert "in 7 of 7 regions (4.0% of values missing)" in sample
    assert "Missing values" in design
    age = evaluation.cohort.table.drop_duplicates("participant")["AGE"]
    assert f"{age.mean():.1f} ± {age.std():.1f} years" in sample
    assert re.search(r"Chebyshev expansion of the heat kernel, .*degree of 20", model)
    for name in ("majority", "linear SVM"):
        assert name in design
    # Scores are those to quote, with intervals, not means over folds.
    pooled = methods.tables.score_interval_table(evaluation, "LSAP-C")
    pooled = pooled.loc["balanced_accuracy"]
    score_text = methods.tables.interval_text(*pooled[["estimate", "low", "high"]])
    assert f"LSAP-C: {score_text}" in results
    assert "±" not in results
    assert "simulated" not in " ".join([sample, *list_headline_lines(evaluation)])
    truth = pd.DataFrame(columns=["region", "seed"])
    simulated = replace(evaluation, cohort=replace(cohort, truth=truth))
    assert "simulated" in list_methods_paragraphs(simulated)[0]
    assert "simulated" in list_supplement_paragraphs(simulated)[0]
    assert "simulated" in list_headline_lines(simulated)[0].lower()


def test_a_registered_kernel_is_called_by_its_title(evaluation, monkeypatch):
    expansion = replace(EXPANSIONS["chebyshev"], title="Own")
    assert "the heat kernel own" in with_model(evaluation, kernel="own")
    monkeypatch.setitem(EXPANSIONS, "own", expansion)
    text = with_model(evaluation, kernel="own")
    assert "an Own expansion of the heat kernel" in text


@pytest.mark.parametrize("name", ["global means", "selected features"])
def test_the_simplest_baselines_are_described_where_they_ran(evaluation, name):
    fits = evaluation.fits.replace({"model": {"linear SVM": name}})
    predictions = evaluation.predictions.replace({"model": {"linear SVM": name}})
    text = "\n".join(
        list_supplement_paragraphs(
            replace(evaluation, fits=fits, predictions=predictions)
        )
    )
    start = f'"{name}" was a logistic regression on'
    assert start in text
    assert start not in text_of(evaluation)


def test_settings_chosen_in_folds_are_marked(evaluation):
    fits = evaluation.fits.copy()
    model_rows = fits.index[fits["model"] == "LSAP-C"]
    for row, initial_scale in zip(model_rows, (0.2, 2.0, 2.0), strict=True):
        report = {"settings": {"initial_scale": initial_scale}}
        fits.loc[row, "report"] = json.dumps(report)
    text = text_of(evaluation, fits=fits)
    assert "0.2 or 2 (chosen in each training fold)" in text
    assert "no early stopping" in with_model(evaluation, n_epochs=30, patience=40)


@pytest.mark.parametrize(
    ("connectome", "is_shared"), [("one per scan", False), ("W", True)]
)
def test_one_array_may_hold_the_connectomes_of_all_scans(
    evaluation, connectome, is_shared
):
    cohort = replace(
        evaluation.cohort,
        provenance={"connectome": connectome},
        reading_options=ReadingOptions(connectome="W.npy"),
    )
    text = text_of(evaluation, cohort=cohort)
    assert ("shared one connectome" in text) == is_shared
    paragraph = list_methods_paragraphs(replace(evaluation, cohort=cohort))[0]
    assert ("one shared connectome" in paragraph) == is_shared
    assert ("a connectome" in paragraph) != is_shared
    cautions = list_cautions(replace(evaluation, cohort=cohort), "")
    assert any("share one connectome" in text for text in cautions) == is_shared


def test_the_test_of_regions_is_described(evaluation):
    ranking = rank_regions(evaluation).assign(
        p_effect=0.5, p_contrast=0.5, n_permutations=99
    )
    text = text_of(evaluation, ranking=ranking)
    assert "values in 99 permutations of the labels" in text
    assert "smallest possible p is 0.01." in text
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_tests, "count_region_labellings", lambda _: 5)
        text = text_of(evaluation, ranking=ranking)
    assert "smallest possible p is 0.2." in text


def test_credit_to_the_connectome_is_that_of_the_verdicts(make_evaluation):
    evaluation = make_evaluation(models=NESTED_RIDGES)
    for lead, half_width, answer in ((8, 3, "yes"), (8, 9, "unclear"), (0, 1, "no")):
        table = draw_gain_table(lead, half_width)
        judged = replace(evaluation, connectome_gain=table)
        network, own = connectome_sentences(judged)
        excluded_kinds = "relabelled and rewired connectomes"
        phrase = NETWORK_PHRASES[answer].format(excluded_kinds=excluded_kinds)
        assert network.startswith(phrase)
        assert own.startswith(OWN_PHRASES[answer])
    # A gain that is excluded over one kind only is not called excluded over both.
    mixed = draw_gain_table(0, 1)
    mixed.loc[mixed["connectome"] == "relabelled", "evidence_lead_high"] = 4.0
    network, _ = connectome_sentences(replace(evaluation, connectome_gain=mixed))
    assert "found over rewired connectomes, but such a gain is possible over" in network
    assert "log Bayes factor" in " ".join(list_supplement_paragraphs(judged))
    shared = replace(evaluation, connectome_gain=draw_gain_table(8, 3, is_shared=True))
    assert "same connectome" in connectome_sentences(shared)[1]
    assert connectome_sentences(evaluation) == []


def test_ridges_are_described_with_their_settings_and_choices(evaluation):
    fits = evaluation.fits.copy()
    is_ridge = fits["model"] == "majority"
    fits.loc[is_ridge, "settings"] = json.dumps({"scales": "auto", "max_scale": 7.0})
    fits.loc[is_ridge, "report"] = [
        json.dumps({"chosen": choice, "ordered": True})
        for choice in ("one", "none", "one")
    ]
    text = text_of(evaluation, fits=fits)
    assert "ridge regressions of the class number" in text
    assert "Scales were limited to at most 7" in text
    choices = "one common scale in 2 folds and no connectome in 1 fold."
    assert choices in text
    assert choices in " ".join(score_remarks(replace(evaluation, fits=fits)))


@pytest.mark.parametrize(
    ("best_epoch", "n_epochs", "loss", "remark"),
    [
        (10, 13, 0.5, "too short"),
        (10, 14, 0.5, ""),
        (2, 30, 0.5, "Hardly trained"),
        (12, 13, None, "No validation set"),
    ],
)
def test_short_training_and_missing_validation_are_remarked(
    evaluation, best_epoch, n_epochs, loss, remark
):
    fits = evaluation.fits.copy()
    report = {"settings": {"n_epochs": n_epochs, "patience": 30}}
    report["losses"] = {"epoch": [1], "training": [0.1], "validation": [loss]}
    is_model = fits["role"] == "model"
    fits.loc[is_model, ["epochs", "report"]] = best_epoch, json.dumps(report)
    evaluation = replace(evaluation, fits=fits)
    text = " ".join(score_remarks(evaluation))
    remarks = ("too short", "Hardly trained", "No validation set")
    assert [name for name in remarks if name in text] == ([remark] if remark else [])
    assert (f"({n_epochs} epochs; in 3 of 3 folds)" in text) == bool(remark)
    methods = " ".join(list_supplement_paragraphs(evaluation))
    assert ("there was no validation set" in methods) == (loss is None)


@pytest.mark.parametrize(("weight", "is_unused"), [(0.0, True), (0.4, False)])
def test_networks_without_weight_are_named(evaluation, weight, is_unused):
    fits = evaluation.fits.copy()
    settings = {"n_epochs": 30, "patience": 30, "start": "ridge"}
    fit_report = {"settings": settings, "network_weight": weight}
    is_model = fits["model"] == "LSAP-C"
    fits.loc[is_model, ["epochs", "report"]] = 1, json.dumps(fit_report)
    evaluation = replace(evaluation, fits=fits)
    text = " ".join(score_remarks(evaluation))
    unused = r"without weight .*: LSAP-C \(in 3 of 3 folds\)"
    assert bool(re.search(unused, text)) == is_unused
    # a network that does not predict need not be trained
    assert ("Hardly trained" in text) == (not is_unused)
    table = fit_table(evaluation).set_index("model")["weight of the network"]
    assert table["LSAP-C"] == f"{weight:.1f} to {weight:.1f}"
    assert table["majority"] == ""


def test_sampled_scales_are_called_posterior_means(evaluation):
    def ridge_text(n_draws):
        fits = evaluation.fits.copy()
        settings = {"scales": "regions", "n_draws": n_draws, "class_prior": "training"}
        fits["settings"] = json.dumps(settings)
        fits["report"] = "{}"
        return text_of(evaluation, fits=fits)

    drawn, most_probable = ridge_text(30), ridge_text(0)
    assert "posterior means" in drawn
    assert "posterior means" not in most_probable
    for text in (drawn, most_probable):
        assert "highest marginal likelihood" not in text
        assert "class shares of the training scans" in text


def test_methods_have_at_most_300_words_and_the_supplement_more(make_evaluation):
    # Networks without weight beside ridges, some of them with the same predictions.
    networks = ("LSAP-C", "Exact")
    names = (*networks, *NESTED_RIDGES, "LSAP-R")
    evaluation = make_evaluation(
        classes=("CN", "SMC", "EMCI", "LMCI", "AD"), models=names
    )
    rows = evaluation.predictions
    twin = rows[rows["model"] == "LSAP-C"].assign(model="Exact")
    rows = pd.concat([rows[rows["model"] != "Exact"], twin])
    ranking = rank_regions(evaluation).assign(
        p_effect=0.5, p_contrast=0.5, n_permutations=200
    )
    fits = evaluation.fits.copy()
    scales = dict(zip(names[2:], ("none", "one", "regions", "auto"), strict=True))
    is_ridge = fits["model"].isin([*scales])
    fits.loc[is_ridge, "settings"] = [
        json.dumps({"scales": scales[name]}) for name in fits["model"][is_ridge]
    ]
    fits["report"] = "{}"
    fits.loc[fits["model"].isin(networks), "report"] = json.dumps(
        {"settings": {"start": "ridge"}, "network_weight": 0}
    )
    steps = {"harmonize": "site", "regress_out": ["age", "sex"]}
    steps["reference_class"] = "CN"
    fates = ("excluded", "no image", "later visit", "no label", "fault")
    left_out = [LeftOutScan(f"x{k}", f"y{k}", "", fate) for k, fate in enumerate(fates)]
    complete = replace(
        evaluation,
        cohort=replace(evaluation.cohort, left_out=left_out_table(left_out)),
        fits=fits,
        predictions=rows,
        ranking=ranking,
        connectome_gain=draw_gain_table(8, 3),
        settings=evaluation.settings
        | {"steps": steps, "leave_out": "site", "n_repeats": 2},
    )
    text = " ".join(list_methods_paragraphs(complete))
    for phrase in (
        "LSAP-C had no weight in 3 of 3",
        "LSAP-R chose a richer",
        "Left out of",
    ):
        assert phrase in text
    supplement = " ".join(list_supplement_paragraphs(complete))
    assert "no weight in the prediction of LSAP-C (in 3 of 3 folds) and Exact" in (
        supplement
    )
    n_words = len(text.split())
    # Ten words remain for a second condition of the exchange of labels.
    n_reserved_words = 10 if len(EXCHANGE_CONDITIONS) == 1 else 0
    assert 150 < n_words <= 300 - n_reserved_words
    assert len(supplement.split()) > n_words
