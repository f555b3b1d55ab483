"""Sentences for a paper: the headline, and methods generated from every setting."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.evaluation import Evaluation, compare_models, ranking_verdict
from brainlsap.report.tables import (
    covariate,
    feature_text,
    listed,
    p_text,
    spread_text,
    summary_of,
)

ALPHA = 0.05

Phrase = str | Mapping[Any, str]

# How settings read. A text takes the value by format; a mapping has a text for each
# choice, and one for all others under None; "" says nothing, and so does a setting of
# None. What has no phrase is listed with its value.
MODEL_SENTENCES: tuple[tuple[str, dict[str, Phrase]], ...] = (
    (
        "{model} used ",
        {
            "kernel": {
                "exact": "the exact heat kernel, from eigenvectors",
                "chebyshev": "a Chebyshev expansion of the heat kernel",
                "hermite": "a Hermite expansion of the heat kernel",
                "laguerre": "a Laguerre expansion of the heat kernel",
            },
            "degree": "degree {}",
            "inputs": {"features": "", "constant": "a constant in place of features"},
            "n_layers": "convolution layers: {}",
            "hidden_units": "{} hidden units a layer",
            "head": {
                "softmax": "a softmax over the classes",
                "ordinal": "an ordinal head (CORN; Shi et al., 2023)",
            },
            "linear_penalty": {0: "", None: "a linear path with penalty {}"},
            "standardize": {
                "region": "inputs standardised by region over the training scans",
                "scan": "inputs standardised within each scan",
            },
        },
    ),
    (
        "Scales: ",
        {
            "scale_mode": {
                "region": "one learned for each region",
                "global": "one learned for all regions",
                "frozen": "fixed, not learned",
            },
            "initial_scale": "started at {}",
            "max_scale": "kept at or below {}",
            "scale_penalty": {
                "none": "",
                "barrier": "a barrier that keeps them positive",
                "l1": "an l1 penalty",
            },
        },
    ),
    (
        "Training: ",
        {
            "preset": {"default": "", "paper": "the settings of Sim et al. (2024)"},
            "learning_rate": "Adam with learning rate {}",
            "class_weight": {
                "balanced": "classes weighted to count alike",
                "none": "all scans weighted alike",
            },
            "n_epochs": "at most {} epochs",
            "patience": {
                0: "no early stopping",
                None: "stopped after {} epochs without a lower validation loss",
            },
            "validation_fraction": "a share of {} of training people for validation",
            "n_starts": "networks of different seeds averaged: {}",
            "random_state": "model seed {}",
            "calibration": {
                "none": "",
                "temperature": "probabilities calibrated by one temperature learned "
                "on validation people",
            },
        },
    ),
    (
        "Connectomes: ",
        {
            "threshold": {0: "", None: "links below {} removed"},
            "threshold_unit": {
                "weight": "",
                "density": "the threshold being a density of links",
            },
            "weights": {
                "weighted": "weights as measured",
                "log": "weights replaced by log(1 + weight)",
                "binary": "links set to 1",
            },
            "connectome": {
                "own": "",
                "mean": "the mean of the training people for everybody",
                "covariance": "covariance of features over the training people",
            },
        },
    ),
)

COHORT_PHRASES: dict[str, Phrase] = {
    "simulated": "Data were simulated ({}).",
    "connectome": {
        "one per scan": "",
        "none": "No connectome was read.",
        None: "One connectome served all scans.",
    },
    "scans": {
        "all": "All visits were used.",
        "baseline": "Of every participant the baseline visit was used.",
    },
    "classes": "Classes were restricted to, and ordered as, {}.",
    "subcortex": {
        "absent": "Measures of the cortical surface have no value in the subcortex.",
        "mean": "In the subcortex, the mean of the scan's cortex stood for measures of "
        "the cortical surface.",
        "volume": "In the subcortex, volume stood for measures of the cortical "
        "surface.",
    },
    "symmetrize": {
        "refuse": "",
        "mean": "Of asymmetric connectomes, the mean of both directions was used.",
        "max": "Of asymmetric connectomes, the larger direction was used.",
    },
    "frames": "PET frames between {} s were averaged.",
    "reference": "The reference region of PET was {}.",
    "merged_classes": "Classes were merged (new: old): {}; scans of other classes were "
    "left out.",
}

STUDY_PHRASES: dict[str, Phrase] = {
    "leave_out": "Each value of {} was the test fold once.",
    "harmonize": "Differences between the values of {} were removed from the features "
    "by ComBat (Johnson et al., 2007), fitted on the training scans of each fold.",
    "preserve": "ComBat kept the effects of {}.",
    "regress_out": "Linear effects of {} on the features were removed, with "
    "coefficients from the training scans of each fold.",
    "handle_unknown": {
        "keep": "",
        "error": "Test scans of a site without training scans were refused.",
    },
    "fast": {True: "Models had one start and fewer epochs than usual.", False: ""},
}

# What the design's own sentences say; what changes no number, or is said elsewhere.
DESIGN = frozenset({"cv", "n_folds", "n_repeats", "random_state", "people_shared"})
_PLACES_AND_SPEED = "folder out memory device n_threads n_jobs verbose title "
_ABOUT = "with_identifiers version brainlsap versions date differences "
_SAID = "atlas feature label model models baselines steps asked options preparation"
UNSAID = frozenset((_PLACES_AND_SPEED + _ABOUT + _SAID).split())


def headline(evaluation: Evaluation) -> list[str]:
    """Return the first sentences of a report: who, how well, and against what.

    Returns
    -------
    list of str
        The verdict on the best baseline is the Holm-corrected test of
        :func:`brainlsap.report.comparison_table`.
    """
    cohort, first = evaluation.cohort, evaluation.models[0]
    sentences = list(evaluation.settings.get("differences", ()))
    if evaluation.settings["people_shared"]:
        sentences.append(
            "People have scans in training and in test folds: a model can know the "
            "answer by knowing the person, and these scores say nothing of new people."
        )
    means = summary_of(evaluation, "balanced_accuracy")
    if not np.isfinite(means.loc[first, "mean"]):
        return [*sentences, f"{first} could not be trained in every fold: no score."]
    sentences.append(
        f"{first} separates {_word(len(cohort.classes))} classes of "
        f"{cohort.label_name} ({', '.join(cohort.classes)}) with a balanced accuracy "
        f"of {spread_text(*means.loc[first, ['mean', 'sd']])} (mean ± s.d. over "
        f"{_folds(evaluation)}; chance is {1 / len(cohort.classes):.3f}), in "
        f"{count(cohort.n_scans, 'scan')} of {count(cohort.n_participants, 'person')}."
    )
    sentences += _against_baseline(evaluation, means)
    if evaluation.audit is not None:
        grave = evaluation.audit.query("severity == 'error'")["check"]
        if len(grave):
            checks = f"{count(len(grave), 'error')}: {', '.join(grave.unique())}"
            sentences.append(f"The leakage audit found {checks}.")
    if evaluation.ranking is not None:
        sentences.append(ranking_verdict(evaluation.ranking))
    return sentences


def _against_baseline(evaluation: Evaluation, means: pd.DataFrame) -> list[str]:
    first = evaluation.models[0]
    others = means.loc[[n for n in evaluation.baselines if n != first], "mean"].dropna()
    if others.empty:
        return ["No baseline was run, so this figure has nothing beside it."]
    best = others.idxmax()
    told = [
        f"The best baseline on the same folds, {best}, reaches "
        f"{spread_text(*means.loc[best, ['mean', 'sd']])}."
    ]
    tests = compare_models(evaluation).set_index("model")
    if best not in tests.index:
        return told
    row = tests.loc[best]
    p = p_text(row["p_holm"])
    numbers = (
        f"the mean difference is {row['difference']:+.3f}, "
        f"p {p if p.startswith('<') else f'= {p}'} (corrected t-test, Holm-corrected "
        f"for {count(len(tests), 'comparison')})"
    )
    if not row["p_holm"] < ALPHA:
        return [*told, f"No clear difference between the two: {numbers}."]
    verdict = "is better than" if row["difference"] > 0 else "is worse than"
    return [*told, f"{first} {verdict} {best}: {numbers}."]


def methods_text(evaluation: Evaluation) -> list[str]:
    """Return paragraphs of methods and results, ready to paste into a manuscript.

    Every option of :func:`brainlsap.load_cohort`, :func:`brainlsap.run_study` and
    :class:`brainlsap.LSAPClassifier` that changes a number is told, as the records of
    the evaluation have it; what has no sentence is listed with its value.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    list of str
        Participants and data, models, evaluation, regions, results.
    """
    parts = (_people, _models, _design, _results)
    return [" ".join(told) for part in parts if (told := part(evaluation))]


def _people(evaluation: Evaluation) -> list[str]:
    cohort = evaluation.cohort
    groups = ", ".join(
        f"{row['class']} (n = {row['participants']}, {count(row['scans'], 'scan')})"
        for row in cohort.class_counts().to_dict("records")
    )
    measured, n_rois = int(cohort.measured.sum()), len(cohort.region_names)
    where = "all of them" if measured == n_rois else f"{measured} of them"
    sentences = [
        f"We analysed {count(cohort.n_scans, 'scan')} of "
        f"{count(cohort.n_participants, 'participant')} in "
        f"{_word(len(cohort.classes))} groups by {cohort.label_name}: {groups}.",
        f"Every scan was represented by a connectome of {n_rois} regions "
        f"({cohort.atlas_name}) and by {feature_text(cohort.feature_names)}, "
        f"measured in {where}.",
    ]
    ages = covariate(cohort.table.drop_duplicates("participant"), "age")
    if ages is not None and ages.count() > 2:
        age = spread_text(ages.mean(), ages.std(), 1)
        sentences.append(f"Age at the first scan was {age} years (mean ± s.d.).")
    told = dict(cohort.provenance)
    told |= told.pop("asked", None) or {}
    if not {"thickness", "area"} & set(cohort.feature_names):
        told.pop("subcortex", None)
    return sentences + _phrases(COHORT_PHRASES, told, "Further options of reading")


def _models(evaluation: Evaluation) -> list[str]:
    known = {key for _, phrases in MODEL_SENTENCES for key in phrases}
    sentences: list[str] = []
    main, first = "", dict[str, Any]()
    for name, fits in evaluation.fits.groupby("model", sort=False):
        settings = _model_settings(fits)
        is_lsap = "kernel" in settings and settings.pop("network", "heat") == "heat"
        if fits["role"].iloc[0] != "model" or not is_lsap:
            continue
        told = {k: v for k, v in settings.items() if not first or first.get(k) != v}
        parts = [
            begin.format(model=name) + ", ".join(found)
            for begin, phrases in MODEL_SENTENCES
            if (found := _phrases(phrases, told))
        ]
        if first:
            parts.append(f"{name} was {'otherwise ' if parts else ''}as {main}")
        else:
            main, first = str(name), settings
        sentences += [f"{part}." for part in parts]
        rest = {k: v for k, v in told.items() if k not in known}
        sentences += _phrases({}, rest, f"Further settings of {name}")
    if sentences:
        version = evaluation.settings.get("version", "")
        sentences.insert(
            0,
            "Scans were classified with learning-to-approximate adaptive kernel "
            "convolution (LSAP; Sim et al., 2024), a graph network in which every "
            "region learns the scale of its own heat kernel, of the symmetrically "
            "normalised Laplacian of the connectome, as "
            f"implemented in brainlsap {version}.",
        )
    return sentences


def _model_settings(fits: pd.DataFrame) -> dict[str, Any]:
    """Return the settings that were asked for, those chosen in fits filled in."""
    asked = _flat(json.loads(fits["settings"].iloc[0]))
    reports = [json.loads(one) or {} for one in fits["report"]]
    of_fits = [_flat(one.get("settings") or {}) for one in reports]
    chosen = "{} (chosen in each training fold)".format
    for key in dict.fromkeys(key for one in of_fits for key in one):
        values = sorted({_as_text(one.get(key)) for one in of_fits})
        if key == "random_state":
            continue
        if len(values) > 1:
            asked[key] = chosen(" or ".join(values))
        elif asked.get(key) is None:
            asked[key] = of_fits[0][key]
    start = _as_text(asked.get("initial_scale"))
    tried = any(len(one.get("start_losses") or ()) > 1 for one in reports)
    if tried and "chosen" not in start:
        asked["initial_scale"] = chosen(start)
    if asked.get("scale_penalty") == "none":
        asked.pop("penalty_weight", None)
    return asked


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(settings)
    for name in ("options", "preparation"):
        flat |= flat.pop(name, None) or {}
    return flat


def _design(evaluation: Evaluation) -> list[str]:
    settings = (evaluation.settings.get("steps") or {}) | evaluation.settings
    cv = {"given": "given folds"}.get(settings["cv"], settings["cv"])
    repeats = settings["n_repeats"]
    apart = (
        "divided by scan, so that scans of one participant stood on both sides"
        if settings["people_shared"]
        else "in which all scans of a participant were kept in one fold"
    )
    sentences = [
        f"Performance was estimated by {settings['n_folds']}-fold cross-validation "
        f"({cv}; seed {settings['random_state']})"
        + (f", repeated {repeats} times" if repeats > 1 else "")
        + f", {apart}; everything, standardisation included, was fitted on training "
        "folds alone."
    ]
    roles = evaluation.fits.drop_duplicates("model").set_index("model")["role"]
    others = list(roles.index[roles != "model"])
    if others:
        sentences.append(
            f"For comparison, {listed(others)} were run on the very same folds."
        )
    if len(evaluation.models) > 1:
        sentences.append(
            f"{evaluation.models[0]} was compared with every other model by the "
            "corrected resampled t-test (Nadeau and Bengio, 2003) on balanced "
            "accuracy, with Holm's correction."
        )
    rest = {k: v for k, v in settings.items() if k not in DESIGN}
    sentences += _phrases(STUDY_PHRASES, rest, "Further settings of the study")
    if not evaluation.scales.empty:
        sentences.append(
            "Regions were ranked by their learned scale relative to the median of the "
            "measured regions in the same fold (mean over folds), smallest first."
        )
    ranking = evaluation.ranking
    if ranking is not None and "p" in ranking:
        sentences.append(
            "The relative scales of one network fitted to all scans were compared with "
            f"those of {ranking['n_permutations'].iloc[0]} fits, by the same steps, to "
            "labels permuted between participants; p-values were corrected over "
            "regions by the most extreme region of each fit (family-wise)."
        )
    return sentences


def _results(evaluation: Evaluation) -> list[str]:
    scores = {
        "a balanced accuracy of": summary_of(evaluation, "balanced_accuracy"),
        "an AUC of": summary_of(evaluation, "auc"),
    }
    sentences = []
    for name in evaluation.models:
        told = " and ".join(
            f"{label} {spread_text(*found.loc[name, ['mean', 'sd']])}"
            for label, found in scores.items()
            if np.isfinite(found.loc[name, "mean"])
        )
        sentences.append(f"{name} reached {told}" if told else f"{name} did not train")
    return [f"{'; '.join(sentences)} (mean ± s.d. over {_folds(evaluation)})."]


def _phrases(
    phrases: Mapping[str, Phrase], settings: Mapping[str, Any], rest: str = ""
) -> list[str]:
    """Return what settings read like, and where `rest` is given all others by value."""
    said = {k: v for k, v in settings.items() if v not in (None, [], (), {}, "")}
    told = [_phrase(key, phrases[key], said[key]) for key in phrases if key in said]
    others = [
        f"{key.replace('_', ' ')} = {_as_text(value)}"
        for key, value in said.items()
        if key not in phrases and key not in UNSAID
    ]
    if rest and others:
        told.append(f"{rest}: {'; '.join(others)}.")
    return [one for one in told if one]


def _phrase(key: str, phrase: Phrase, value: Any) -> str:
    if isinstance(phrase, Mapping):
        known = phrase.get(None, f"{key.replace('_', ' ')}: {{}}")
        phrase = (
            phrase.get(value, known) if isinstance(value, str | int | float) else known
        )
    return phrase.format(_as_text(value))


def _as_text(value: Any) -> str:
    """Return a value as a sentence has it: short numbers, lists with commas."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_as_text(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return listed(map(_as_text, value))
    return str(value)


def _folds(evaluation: Evaluation) -> str:
    settings = evaluation.settings
    return count(settings["n_folds"] * settings["n_repeats"], "fold")


def count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 person", "1,234 people"."""
    plural = {"person": "people"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"


def _word(number: int) -> str:
    small = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
    return small[number] if number < len(small) else str(number)
