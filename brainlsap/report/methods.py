"""Sentences for a paper: the headline, and methods generated from every setting."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from brainlsap.atlas import Atlas
from brainlsap.evaluation import (
    ConnectomeGain,
    Evaluation,
    chance_p,
    compare_models,
)
from brainlsap.evaluation import ranking as ranks
from brainlsap.evaluation.connectome_worth import Verdict
from brainlsap.evaluation.leakage import N_PERMUTATIONS, check_title
from brainlsap.report import tables
from brainlsap.report.privacy import withhold_paths
from brainlsap.report.tables import p_text, reported_values, spread_text
from brainlsap.text import count, with_and

N_NAMED_REGIONS = 3
"""Number of regions that the headline names."""

N_SMALLEST = 10
"""Number of smallest scales of a network for which training is summarised."""

LATE_SHARE = 0.2
"""A best epoch within this last share of the epochs suggests that more may help."""

N_EARLY_EPOCHS = 3
"""A network kept from one of these first epochs has hardly been trained."""

N_EXCHANGES = 2000
"""Permutations of the labels between participants for the p-value in the headline."""

MODEL_PHRASES = {
    "none": "no connectome",
    "one": "one scale",
    "regions": "a scale per region",
}
"""Phrases for the nested ridge models among which LSAP-R chooses."""

NETWORK_PHRASES = {
    "yes": "The connectome adds to the regions' own values and their mean, beyond what "
    "random connectomes add",
    "no": "The connectome is not shown to add anything to the regions' own values and "
    "their mean beyond what random connectomes add",
    "unclear": "It is unclear whether the connectome adds to the regions' own values "
    "and their mean more than random connectomes do",
}
"""Answers to whether the network adds, by verdict."""

OWN_PHRASES = {
    "yes": "A participant's own connectome adds more than that of another participant",
    "no": "A participant's own connectome is not shown to add more than that of "
    "another participant",
    "unclear": "It is unclear whether a participant's own connectome adds more than "
    "that of another participant",
}
"""Answers to whether participants' own connectomes add, by verdict."""

NULL_PHRASES = {
    "relabelled": "regions relabelled at random",
    "rewired": "connectomes rewired at random",
    "exchanged": "connectomes exchanged between participants",
}
"""Phrases for null connectomes."""

CONTROLS = {
    "features only": "without any connection",
    "edges only": "logistic regression on the connectome's weights",
    "shuffled edges": "weights moved to other pairs of regions",
    "frozen scales": "scales kept at their initial values",
    "one global scale": "one scale for all regions",
    "constant features": "a constant replaces the features, and no ridge is added",
    "confounds only": "logistic regression on covariates and on the sum and density of "
    "the connectome",
}
"""How each control differs from LSAP-C, or which other model it is."""

LINEAR_CONTROLS = ("edges only", "confounds only")
"""Controls that are models of their own, not variants of LSAP-C."""

# Settings that change no number, or that the templates' own sentences state.
_DESIGN = "cv n_folds n_repeats random_state people_shared"
_PLACES_AND_SPEED = "folder subjects_dir derivatives out memory device n_threads n_jobs"
_PROVENANCE = "version brainlsap versions date verbose title overwrite people"
_IN_SENTENCES = (
    "atlas feature label model models baselines steps asked options class_prior"
)
UNLISTED = frozenset(
    f"{_DESIGN} {_PLACES_AND_SPEED} {_PROVENANCE} {_IN_SENTENCES}".split()
)
"""Settings that are not listed with those that have no phrase."""


class SettingPhrases:
    """Phrases for settings in a template.

    A call returns the phrase of one setting; `list_remaining` lists the settings that
    no call asked for, with their values.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.remaining = {
            key: value_text(value)
            for key, value in settings.items()
            if value not in (None, [], (), {}, "")
        }

    def __call__(self, key: str, phrase: str | Mapping[str, str]) -> str:
        """Return the phrase of a setting, or "" if it is not set.

        A mapping has one phrase for each value, and under "*" that of all others.
        """
        if key not in self.remaining:
            return ""
        value = self.remaining.pop(key)
        if not isinstance(phrase, str):
            default_phrase = phrase.get("*", f"{key.replace('_', ' ')}: {{}}")
            phrase = phrase.get(value, default_phrase)
        return phrase.format(value)

    def list_remaining(self, introduction: str) -> str:
        """Return a sentence that lists every setting without a phrase."""
        assignments = [
            f"{key.replace('_', ' ')} = {text}"
            for key, text in self.remaining.items()
            if key not in UNLISTED
        ]
        return f"{introduction}: {'; '.join(assignments)}." if assignments else ""


def headline(evaluation: Evaluation) -> list[str]:
    """Return the first sentences of a report: sample, score, baseline and regions.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    list of str
        The verdict on the best baseline is the Holm-corrected test of
        :func:`brainlsap.report.comparison_table`.
    """
    main_model, ranking = evaluation.models[0], evaluation.ranking
    atlas = evaluation.cohort.atlas
    summary = tables.summary_of(evaluation, "balanced_accuracy")
    score_texts = {
        name: spread_text(mean, sd)
        for name, mean, sd in zip(
            summary.index, summary["mean"], summary["sd"], strict=True
        )
    }
    baselines = [name for name in evaluation.baselines if name != main_model]
    baseline_means = summary.loc[baselines, "mean"].dropna()
    best_baseline = baseline_means.idxmax() if len(baseline_means) else None
    tests = compare_models(evaluation).set_index("model")
    baseline_test = None
    if best_baseline in tests.index:
        baseline_test = tests.loc[best_baseline].to_dict()
    smallest_regions = significant_regions = ""
    direction = None
    if ranking is not None:
        significant = ranking[ranking["p"] < 0.05] if "p" in ranking else ranking[:0]
        smallest_regions = _name_smallest(ranking, atlas)
        significant_regions = _name_smallest(significant, atlas)
        candidates = ranking if significant.empty else significant
        # Rank again from 1, because the direction is that of the first region.
        candidates = candidates.assign(rank=candidates["rank"].rank(method="min"))
        direction = tables.direction_table(evaluation, candidates, atlas, 1).iloc[0]
    return _render_paragraphs(
        "headline",
        evaluation,
        main_model=main_model,
        chance_p=chance_p(evaluation, main_model, N_EXCHANGES),
        pooled=tables.intervals(evaluation, main_model).loc["balanced_accuracy"],
        score_texts=score_texts,
        best_baseline=best_baseline,
        baseline_test=baseline_test,
        smallest_regions=smallest_regions,
        significant_regions=significant_regions,
        direction=direction,
        n_incomplete_folds=tables.folds_lacking(evaluation),
        n_regional_folds=max(_count_choices(evaluation, "regions"), default=None),
    )


def _name_smallest(ranking: pd.DataFrame, atlas: Atlas | None) -> str:
    """Name the measured regions of smallest rank; "" if there is none, or many tie."""
    measured_rows = ranking.dropna(subset="rank")
    names = measured_rows.nsmallest(N_NAMED_REGIONS, "rank")["region"]
    n_tied = (measured_rows["rank"] <= N_NAMED_REGIONS).sum()
    # The first of many tied regions would only be the first in the atlas.
    if n_tied > 2 * N_NAMED_REGIONS or names.empty:
        return ""
    return with_and(tables.region_labels(list(names), atlas))


def methods_text(evaluation: Evaluation) -> list[str]:
    """Return paragraphs of methods and results, ready to paste into a manuscript.

    The text states every option of :func:`brainlsap.load_cohort`,
    :func:`brainlsap.run_study` and :class:`brainlsap.LSAPClassifier` that changes a
    number, as the evaluation has recorded it. It lists options without a sentence with
    their values.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    list of str
        Participants and data, models, evaluation, regions, results.
    """
    cohort = evaluation.cohort
    participants = tables.sort_by_visit(cohort.table).drop_duplicates("participant")
    ages = tables.covariate(participants, "age")
    age_text, n_missing_ages = None, 0
    if ages is not None:
        age_text = spread_text(ages.mean(), ages.std(), 1)
        n_missing_ages = ages.isna().sum()
    study_settings = (evaluation.settings.get("steps") or {}) | evaluation.settings
    comparison_names = evaluation.fits.query("role != 'model'")["model"].unique()
    comparison_models = ""
    if 0 < len(comparison_names) < len(evaluation.models):
        comparison_models = with_and(comparison_names)
    ridge_names, is_numeric, ridge_phrases = _describe_ridges(evaluation)
    return _render_paragraphs(
        "methods",
        evaluation,
        age_text=age_text,
        n_missing_ages=n_missing_ages,
        reading=SettingPhrases(_reading_settings(evaluation)),
        networks=_describe_networks(evaluation),
        ridge_names=ridge_names,
        are_classes_numeric=is_numeric,
        ridge_phrases=ridge_phrases,
        study=SettingPhrases(study_settings),
        comparison_models=comparison_models,
        scores=tables.score_table(evaluation, ["balanced_accuracy", "auc"]).iloc[:, :3],
    )


def _reading_settings(evaluation: Evaluation) -> dict[str, Any]:
    """Return how the data were read: what was found, else the options given."""
    found_values = dict(evaluation.cohort.provenance)
    options = found_values.pop("asked", None) or {}
    # What was read overrides the option: one array may hold the connectomes of all.
    settings = withhold_paths(options | found_values)
    if not {"thickness", "area"} & set(evaluation.cohort.feature_names):
        settings.pop("subcortex", None)
    return settings


def connectome_sentences(evaluation: Evaluation) -> list[str]:
    """Return what the connectome adds, in two sentences; none if it was not computed.

    Parameters
    ----------
    evaluation : Evaluation
        With the gain of the connectome, as :func:`brainlsap.run_study` returns.

    Returns
    -------
    list of str
        Whether the network adds beyond random connectomes, and whether participants'
        own connectomes add beyond those of others.
    """
    if evaluation.connectome_gain is None:
        return []
    gain = ConnectomeGain(evaluation.connectome_gain)
    network, own = gain.network, gain.own_connectome
    evidence_gain = gain.table.set_index("connectome").loc["original", "evidence_gain"]
    sentences = [
        f"{NETWORK_PHRASES[network.answer]}: the gain in log evidence is "
        f"{spread_text(evidence_gain, digits=1)}, {_lead_text(network)} with "
        f"{NULL_PHRASES[network.compared_with]}."
    ]
    if own is None:
        sentences.append(
            "All participants have the same connectome, so what a participant's own "
            "connectome adds is unknown."
        )
    else:
        sentences.append(
            f"{OWN_PHRASES[own.answer]}: the gain is {_lead_text(own)} with "
            f"{NULL_PHRASES[own.compared_with]}."
        )
    return sentences


def _lead_text(verdict: Verdict) -> str:
    """Return by how much a gain is larger than that of a null connectome."""
    low, high = (spread_text(bound, digits=1) for bound in (verdict.low, verdict.high))
    direction = "more" if verdict.lead >= 0 else "less"
    size = spread_text(abs(verdict.lead), digits=1)
    return f"{size} {direction} (90% interval of the difference {low} to {high}) than"


def chosen_text(evaluation: Evaluation) -> str:
    """Return in how many folds each selecting model chose which nested ridge."""
    sentences = []
    for name, fits in _selecting_fits(evaluation):
        phrases = pd.Series(reported_values(fits, "chosen")).map(MODEL_PHRASES)
        choices = [
            f"{phrase} in {count(n_folds, 'fold')}"
            for phrase, n_folds in phrases.value_counts().items()
        ]
        sentences.append(f"{name} chose {with_and(choices)}.")
    return " ".join(sentences)


def _count_choices(evaluation: Evaluation, choice: str) -> list[int]:
    """Return in how many folds each selecting model made this choice."""
    return [
        reported_values(fits, "chosen").count(choice)
        for _, fits in _selecting_fits(evaluation)
    ]


def _selecting_fits(evaluation: Evaluation) -> list[tuple[str, pd.DataFrame]]:
    """Return names and fits of the models that choose among the nested ridges."""
    return [
        (str(name), fits)
        for name, fits in evaluation.fits.groupby("model", sort=False)
        if json.loads(fits["settings"].iloc[0]).get("scales") == "auto"
    ]


PRIOR_PHRASES = {
    "training": "the class shares of the training scans",
    "balanced": "equal shares of all classes",
}
"""Which class shares probabilities assume, by `class_prior`."""


def prior_text(evaluation: Evaluation) -> str:
    """Return which class shares probabilities assume; "" if no model has any."""
    priors = evaluation.class_priors()
    models_by_phrase: dict[str, list[str]] = {}
    for model, prior in priors.items():
        if isinstance(prior, Mapping):
            shares = (f"{share:.3g} {name}" for name, share in prior.items())
            phrase = f"class shares of {with_and(shares)}"
        else:
            phrase = PRIOR_PHRASES[prior]
        models_by_phrase.setdefault(phrase, []).append(model)
    if not models_by_phrase:
        return ""
    if len(models_by_phrase) == 1:
        (assumptions,) = models_by_phrase
    else:
        assumptions = "; ".join(
            f"{with_and(names)}: {phrase}" for phrase, names in models_by_phrase.items()
        )
    forest_sentence = ""
    if "random forest" in set(evaluation.models) - set(priors):
        forest_sentence = " The random forest reports the share of its trees' votes."
    return f"Predicted probabilities assume {assumptions}.{forest_sentence}"


def training_text(evaluation: Evaluation) -> str:
    """Return how far training moved the scales of networks, and where they began."""
    initial_scales = evaluation.scales.query("share == 0")
    sentences = []
    starts_at_ridge = False
    for name, scales in initial_scales.groupby("model", sort=False):
        ranking = ranks.rank_regions(evaluation, str(name))
        smallest_moved = ranking.nsmallest(N_SMALLEST, "rank")["moved"]
        has_common_value = scales.groupby(["repeat", "fold"])["scale"].nunique() == 1
        starts_at_ridge |= not has_common_value.all()
        sentences.append(
            f"Training changed {ranking['moved'].mean():.0%} of the scales of {name} "
            f"by more than 5% ({smallest_moved.mean():.0%} of its "
            f"{len(smallest_moved)} smallest); they started at one common value in "
            f"{has_common_value.sum()} of {count(len(has_common_value), 'fold')}."
        )
    if not sentences:
        return ""
    sentences.append("Percentages refer to means over random initialisations.")
    if starts_at_ridge:
        sentences.append(
            "In folds without a common value, scales started at the most probable "
            "scales of a ridge regression fitted to the same training scans (the map "
            "of the ridge regression shows posterior means). Where training changed "
            "few of these, the map of the network mostly shows the ridge regression "
            "and is not independent evidence."
        )
    return " ".join(sentences)


def networks_kept(evaluation: Evaluation, condition: str) -> str:
    """Return the networks that meet a condition in most folds, with their counts.

    Conditions are "early": the network of one of the first epochs was kept; "late":
    the validation loss still fell when the epochs were used up; "unchecked": no
    participants were set aside for validation.
    """
    network_texts = []
    for name, fits in evaluation.fits.dropna(subset="epochs").groupby("model"):
        settings = pd.DataFrame(reported_values(fits, "settings"))
        if "n_epochs" not in settings:
            continue
        is_unchecked = np.array([_lacks_validation(text) for text in fits["report"]])
        patience = settings.get("patience", pd.Series(0)).clip(lower=1)
        best_epoch, n_epochs = fits["epochs"].to_numpy() + 1, settings["n_epochs"]
        is_cut_short = best_epoch + patience >= n_epochs
        is_near_end = best_epoch > (1 - LATE_SHARE) * n_epochs
        folds_by_condition = {
            "unchecked": is_unchecked,
            "late": ~is_unchecked & is_cut_short & is_near_end,
            "early": ~is_unchecked & (best_epoch <= N_EARLY_EPOCHS),
        }
        n_folds = folds_by_condition[condition].sum()
        if 2 * n_folds > len(fits):
            epoch_text = count(n_epochs.iloc[0], "epoch")
            fold_text = f"in {n_folds} of {count(len(fits), 'fold')}"
            network_texts.append(f"{name} ({epoch_text}; {fold_text})")
    return with_and(network_texts) if network_texts else ""


def _lacks_validation(report_text: str) -> bool:
    """Return whether the report of a fit has losses, but none of validation."""
    losses = (json.loads(report_text) or {}).get("losses") or {}
    return {*losses.get("validation", "")} == {None}


def _describe_networks(
    evaluation: Evaluation,
) -> list[tuple[str, SettingPhrases, str]]:
    """Return, of every network, its name, its settings and the network it resembles.

    Settings that equal those of the first network of the same kind (LSAP, or another
    propagation) are left out; the name of that first network then comes last.
    """
    from brainlsap.graph import kernel_title
    from brainlsap.model import NETWORKS

    descriptions: list[tuple[str, SettingPhrases, str]] = []
    firsts: dict[bool, tuple[str, dict[str, Any]]] = {}
    is_control = evaluation.fits["role"] == "control"
    for name, fits in evaluation.fits[~is_control].groupby("model", sort=False):
        settings = _model_settings(fits)
        if "kernel" not in settings:
            continue
        network = settings.get("network", "heat")
        if network != "heat":  # Options that were not given concern heat kernels alone.
            options = {*_flatten_options(json.loads(fits["settings"].iloc[0])), "head"}
            options -= {"n_layers"} | NETWORKS[network].unused_settings
            own_settings = {k: v for k, v in settings.items() if k in options}
            settings = {"layers": settings["n_layers"], **own_settings}
        if "kernel" in settings:
            settings["kernel"] = kernel_title(settings["kernel"])
        first_name, first_settings = firsts.get(network == "heat", ("", {}))
        differing = {k: v for k, v in settings.items() if first_settings.get(k) != v}
        descriptions.append((str(name), SettingPhrases(differing), first_name))
        firsts.setdefault(network == "heat", (str(name), settings))
    return descriptions


def has_ordinal_output(evaluation: Evaluation) -> bool:
    """Return whether a network, other than controls, has an ordinal output (CORN)."""
    is_control = evaluation.fits["role"] == "control"
    return any(
        _model_settings(fits).get("head") == "ordinal"
        for _, fits in evaluation.fits[~is_control].groupby("model")
    )


def _describe_ridges(
    evaluation: Evaluation,
) -> tuple[dict[str, str], bool, SettingPhrases]:
    """Return ridges by what they learn, whether classes are numbers, and settings."""
    names: dict[str, str] = {}
    settings: dict[str, Any] = {}
    is_numeric = False
    for name, fits in evaluation.fits.groupby("model", sort=False):
        model_settings = _model_settings(fits)
        if "scales" in model_settings:
            names[model_settings.pop("scales")] = str(name)
            is_numeric = any(reported_values(fits, "ordered"))
            settings |= model_settings
    settings.pop("classes", None)
    return names, is_numeric, SettingPhrases(settings)


def _model_settings(fits: pd.DataFrame) -> dict[str, Any]:
    """Return the options of a model, completed by what its fits chose."""
    options = _flatten_options(json.loads(fits["settings"].iloc[0]))
    fit_settings = [
        _flatten_options(settings) for settings in reported_values(fits, "settings")
    ]
    for settings in (options, *fit_settings):
        if (settings.get("patience") or 0) >= (settings.get("n_epochs") or np.inf):
            settings["patience"] = 0
    keys = dict.fromkeys(key for settings in fit_settings for key in settings)
    keys.pop("random_state", None)
    for key in keys:
        values = sorted({value_text(settings.get(key)) for settings in fit_settings})
        if len(values) > 1:
            options[key] = f"{' or '.join(values)} (chosen in each training fold)"
        elif options.get(key) is None:
            options[key] = fit_settings[0][key]
    if options.get("scale_penalty") == "none":
        options.pop("penalty_weight", None)
    return options


def _flatten_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those below "options" beside them."""
    flat = dict(settings)
    return flat | (flat.pop("options", None) or {})


def _render_paragraphs(name: str, evaluation: Evaluation, **values: Any) -> list[str]:
    """Fill a template, and split it into paragraphs of one line each."""
    text = TEMPLATES.get_template(f"{name}.txt.j2").render(
        **values,
        evaluation=evaluation,
        cohort=evaluation.cohort,
        settings=evaluation.settings,
    )
    paragraphs = (" ".join(block.split()) for block in text.split("\n---\n"))
    return [paragraph for paragraph in paragraphs if paragraph]


def with_article(model: str) -> str:
    """Return a model as in a sentence: "LSAP-C", but "the ridge with one scale"."""
    return f"the {model}" if model[:1].islower() else model


def value_text(value: Any) -> str:
    """Return a value as text for a sentence: short numbers, lists with commas."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {value_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return with_and(map(value_text, value))
    return " ".join(str(value).split())


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=select_autoescape(["html.j2"]),
    undefined=StrictUndefined,
)
"""Templates of the page and of its texts."""
TEMPLATES.filters |= {
    "check_title": check_title,
    "count": count,
    "p": p_text,
    "with_article": with_article,
}
TEMPLATES.globals |= {
    "controls": CONTROLS,
    "linear_controls": LINEAR_CONTROLS,
    "chosen_text": chosen_text,
    "connectome_sentences": connectome_sentences,
    "networks_kept": networks_kept,
    "prior_text": prior_text,
    "ranks": ranks,
    "tables": tables,
    "n_exchanges": N_EXCHANGES,
    "n_audited": N_PERMUTATIONS,
}
