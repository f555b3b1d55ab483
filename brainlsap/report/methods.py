"""Sentences for a paper: remarks on scores, methods, and a supplement of settings."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from brainlsap.data.flow import FATE_TITLES, LATER_VISIT, USED_FOR_TRAINING
from brainlsap.data.reading_options import get_changed_value_by_option
from brainlsap.evaluation import (
    ConnectomeGain,
    Evaluation,
)
from brainlsap.evaluation import ranking as ranks
from brainlsap.evaluation.comparison import N_CALIBRATION_DRAWS
from brainlsap.evaluation.confounds import list_step_phrases
from brainlsap.evaluation.connectome_worth import RANDOM_CONNECTOMES, ConnectomeVerdict
from brainlsap.evaluation.leakage import N_PERMUTATIONS, check_title
from brainlsap.evaluation.models import (
    MODELS,
    N_SELECTED,
    baseline_sentences,
    control_phrases,
)
from brainlsap.evaluation.region_tests import MIN_PEOPLE_SHOWN, compute_smallest_p
from brainlsap.evaluation.splits import EXCHANGE_PHRASE
from brainlsap.options import list_settings_option_names
from brainlsap.report import demographics, tables
from brainlsap.report.privacy import withhold_paths_in_settings
from brainlsap.report.tables import (
    is_external,
    is_simulated,
    list_reported_values,
    spread_text,
)
from brainlsap.text import count_text, join_with_and

N_SMALLEST = 10
"""Number of smallest scales of a network for which training is summarised."""

LATE_SHARE = 0.2
"""More epochs may help if the best epoch is within this last share of the epochs."""

N_EARLY_EPOCHS = 3
"""A network kept from one of these first epochs has hardly been trained."""

MAX_CAPTION_SENTENCES = 3
"""Number of sentences of a caption; further sentences are a note below it."""

MODEL_PHRASES = {
    "none": "no connectome",
    "one": "one common scale",
    "regions": "a scale for each region",
}
"""Phrases for the nested ridge models among which LSAP-R chooses."""

METHOD_TITLES = {
    "network": "a graph neural network that learns, for every region, how far to "
    "average along the connectome (its scale)",
    "ridge and network": "a ridge regression plus a graph neural network that learns, "
    "for every region, how far to average along the connectome (its scale)",
    "none": "a ridge regression without the connectome",
    "one": "a ridge regression on features averaged along the connectome at one common "
    "scale",
    "regions": "a ridge regression on features averaged along the connectome, with a "
    "scale for each region",
    "auto": "a ridge regression that chooses between no connectome, one common scale, "
    "and a scale for each region",
}
"""Description of a model, by the kind of scales that it learns."""
CONNECTOME_METHODS = ("network", "ridge and network", "one", "regions", "auto")
"""Methods that average features along the connectome."""

NETWORK_PHRASES = {
    "yes": (
        "The connectome adds more information to the regions' own values and their "
        "mean than random connectomes do"
    ),
    "no": (
        "No gain in information that would count, beyond the regions' own values and "
        "their mean, was found over {excluded_kinds}"
    ),
    "unclear": (
        "It is unclear whether the connectome adds more information to the regions' "
        "own values and their mean than random connectomes do"
    ),
}
"""Answers to whether the network adds information, by verdict.

`excluded_kinds` are the random connectomes over which a gain that counts is excluded.
"""

OWN_PHRASES = {
    "yes": (
        "A participant's own connectome adds more information than the connectome of "
        "another participant"
    ),
    "no": (
        "No gain that would count was found of a participant's own connectome over "
        "the connectome of another participant"
    ),
    "unclear": (
        "It is unclear whether a participant's own connectome adds more information "
        "than the connectome of another participant"
    ),
}
"""Answers to whether participants' own connectomes add information, by verdict."""

NULL_PHRASES = {
    "relabelled": "connectomes with randomly relabelled regions",
    "rewired": "randomly rewired connectomes",
    "exchanged": "connectomes exchanged between participants",
}
"""Phrases for null connectomes."""

# Settings that change no number, or that the templates' own sentences state.
_DESIGN = "cv n_folds n_repeats random_state people_shared"
_PLACES_AND_SPEED = "folder subjects_dir derivatives out memory device n_threads n_jobs"
_PROVENANCE = (
    "version brainlsap versions date verbose title overwrite people table1 table1_holm"
)
_IN_SENTENCES = (
    "atlas feature label model models baselines steps study_options options "
    "class_prior merge_classes n_permutations preset learning_curve"
)
UNLISTED_SETTINGS = frozenset(
    f"{_DESIGN} {_PLACES_AND_SPEED} {_PROVENANCE} {_IN_SENTENCES}".split()
)
"""Settings that are omitted from the list of settings without a phrase."""


class SettingPhrases:
    """Phrases for settings in a template.

    A call returns the phrase of one setting; `write_remaining_sentence` lists the
    settings that no call asked for, with their values.
    """

    def __init__(self, value_by_setting: Mapping[str, object]) -> None:
        self.text_by_setting = {
            setting_name: value_text(setting_value)
            for setting_name, setting_value in value_by_setting.items()
            if setting_value not in (None, [], (), {}, "")
        }

    def __call__(
        self, setting_name: str, phrase_or_mapping: str | Mapping[str, str]
    ) -> str:
        """Return the phrase of a setting, or "" if it is not set.

        A mapping has one phrase for each value, and under "*" that of all others.
        """
        if setting_name not in self.text_by_setting:
            return ""
        setting_value = self.text_by_setting.pop(setting_name)
        if not isinstance(phrase_or_mapping, str):
            default_phrase = phrase_or_mapping.get(
                "*", f"{setting_name.replace('_', ' ')}: {{}}"
            )
            phrase_or_mapping = phrase_or_mapping.get(setting_value, default_phrase)
        return phrase_or_mapping.format(setting_value)

    def write_remaining_sentence(self, sentence_start: str) -> str:
        """Return a sentence that lists every setting without a phrase."""
        setting_texts = [
            f"{setting_name.replace('_', ' ')} = {setting_text}"
            for setting_name, setting_text in self.text_by_setting.items()
            if setting_name not in UNLISTED_SETTINGS
        ]
        return f"{sentence_start}: {'; '.join(setting_texts)}." if setting_texts else ""


def score_remarks(evaluation: Evaluation) -> list[str]:
    """Return remarks on folds, training and choices, for below the table of scores.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    list of str
        Empty if nothing needs a remark.
    """
    return _render_paragraphs(
        "remarks",
        evaluation,
        n_incomplete_folds=tables.count_incomplete_folds(evaluation),
    )


def list_methods_paragraphs(evaluation: Evaluation) -> list[str]:
    """Return paragraphs of methods of at most 300 words, ready to paste.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    list of str
        Participants and data, models, evaluation, connectome and regions, software.
        :func:`list_supplement_paragraphs` has every setting.
    """
    if is_external(evaluation):
        return _render_external_paragraphs(evaluation)
    cohort = evaluation.cohort
    count_table = cohort.class_counts()
    class_sizes_text = join_with_and(
        f"{n_people} {class_name}"
        for class_name, n_people in zip(
            count_table["class"], count_table["participants"], strict=True
        )
    )
    n_changing_people = demographics.count_people_in_several_classes(cohort.table)
    if n_changing_people:
        class_sizes_text += f"; {n_changing_people} in several classes"
    return _render_paragraphs(
        "methods",
        evaluation,
        age_text=_find_age_text_and_n_missing(evaluation)[0],
        class_sizes=class_sizes_text,
        has_connectome=has_connectome(evaluation),
        has_shared_connectome=has_shared_connectome(evaluation),
        has_network=any(
            collect_model_settings(model_fit_table).get("kernel")
            for _, model_fit_table in evaluation.fits.groupby("model")
        ),
        ridge_names=_find_ridge_names_and_phrases(evaluation)[0],
    )


def _render_external_paragraphs(evaluation: Evaluation) -> list[str]:
    """Return paragraphs of methods of a test of a stored model."""
    external_facts = evaluation.settings["external"]
    return _render_paragraphs(
        "external_methods",
        evaluation,
        age_text=_find_age_text_and_n_missing(evaluation)[0],
        external=external_facts,
        changed_option_texts=_list_changed_option_texts(evaluation),
        step_phrases=list_step_phrases(external_facts["card"]["steps"]),
        has_connectome=has_connectome(evaluation),
        has_shared_connectome=has_shared_connectome(evaluation),
        method_title=METHOD_TITLES.get(find_stored_method_key(evaluation), ""),
        is_simulated=is_simulated(evaluation),
    )


def _list_changed_option_texts(evaluation: Evaluation) -> list[str]:
    """Return the options of reading that the fit fixed, if not the default."""
    changed_value_by_option = get_changed_value_by_option(
        evaluation.cohort.reading_options,
        list_settings_option_names("reading", stored_model=["fixed"]),
    )
    return [
        f"{option_name}={value_text(option_value)}"
        for option_name, option_value in withhold_paths_in_settings(
            changed_value_by_option
        ).items()
    ]


def list_supplement_paragraphs(evaluation: Evaluation) -> list[str]:
    """Return paragraphs that state every setting, and the scores of all models.

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
    age_text, n_missing_ages = _find_age_text_and_n_missing(evaluation)
    study_settings = (evaluation.settings.get("steps") or {}) | evaluation.settings
    comparison_model_row_mask = evaluation.fits["role"] != "model"
    comparison_model_names = evaluation.fits.loc[
        comparison_model_row_mask, "model"
    ].unique()
    comparison_models_text = ""
    if 0 < len(comparison_model_names) < len(evaluation.models):
        comparison_models_text = join_with_and(comparison_model_names)
    ridge_name_by_type, are_classes_numeric, ridge_phrases = (
        _find_ridge_names_and_phrases(evaluation)
    )
    return _render_paragraphs(
        "supplement",
        evaluation,
        n_in_several_classes=demographics.count_people_in_several_classes(
            evaluation.cohort.table
        ),
        age_text=age_text,
        n_missing_ages=n_missing_ages,
        reading=SettingPhrases(_collect_reading_settings(evaluation)),
        networks=_list_network_descriptions(evaluation),
        ridge_names=ridge_name_by_type,
        are_classes_numeric=are_classes_numeric,
        ridge_phrases=ridge_phrases,
        study=SettingPhrases(study_settings),
        comparison_models=comparison_models_text,
        scores=[]
        if is_external(evaluation)
        else _list_model_names_and_score_texts(evaluation),
        is_external=is_external(evaluation),
    )


def _list_model_names_and_score_texts(
    evaluation: Evaluation,
) -> list[tuple[str, str, str]]:
    """Return each model with balanced accuracy and AUC of all test scans, as quoted.

    Means over folds have no interval, so the text for a paper does not give them. The
    balanced accuracy of a model that did not train in a fold is "failed".
    """
    interval_table = tables.score_table(
        evaluation, ["balanced_accuracy", "auc"], intervals=True
    )
    fit_table = evaluation.fits
    failed_model_set = {*fit_table.loc[fit_table["failed"] != "", "model"]}
    return [
        (
            model_name,
            "failed" if model_name in failed_model_set else accuracy_text,
            auc_text,
        )
        for model_name, accuracy_text, auc_text in interval_table.iloc[:, :3]
        .to_numpy()
        .tolist()
    ]


def _find_age_text_and_n_missing(evaluation: Evaluation) -> tuple[str | None, int]:
    """Return the mean age at the first scan, and in how many people it is missing."""
    cohort_table = demographics.sort_scan_table_by_visit(evaluation.cohort.table)
    age_series = demographics.find_covariate_series(
        cohort_table.drop_duplicates("participant"), "age"
    )
    if age_series is None:
        return None, 0
    return spread_text(age_series.mean(), age_series.std(), 1), int(
        age_series.isna().sum()
    )


def _collect_reading_settings(evaluation: Evaluation) -> dict[str, Any]:
    """Return notes on reading: the findings, or otherwise the options given."""
    cohort = evaluation.cohort
    # What was read overrides the option: one array may hold the connectomes of all.
    reading_settings = withhold_paths_in_settings(
        cohort.reading_options.to_jsonable() | cohort.provenance
    )
    if not {"thickness", "area"} & set(cohort.feature_names):
        reading_settings.pop("subcortex", None)
    return reading_settings


def find_method_key(evaluation: Evaluation) -> str:
    """Return the key of `METHOD_TITLES` of the main model, or ""."""
    main_model_name = evaluation.models[0]
    main_model_row_mask = evaluation.fits["model"] == main_model_name
    model_settings = collect_model_settings(evaluation.fits[main_model_row_mask])
    if "kernel" in model_settings and model_settings.get("network", "heat") == "heat":
        weights_beside_ridge = tables.collect_known_network_weights(
            evaluation, main_model_name
        )
        return "ridge and network" if weights_beside_ridge.size else "network"
    return model_settings.get("scales") or ""


def find_stored_method_key(evaluation: Evaluation) -> str:
    """Return the key of `METHOD_TITLES` of what a stored model has chosen."""
    method_key = find_method_key(evaluation)
    chosen_keys = tables.list_reported_values(evaluation.fits, "chosen")
    is_ridge_alone = tables.has_unused_network(evaluation, evaluation.models[0])
    if chosen_keys and (method_key == "auto" or is_ridge_alone):
        return str(chosen_keys[0])
    return method_key


def has_connectome(evaluation: Evaluation) -> bool:
    """Return whether connectomes were read, not estimated from features."""
    return _collect_reading_settings(evaluation).get("connectome") != "none"


def has_shared_connectome(evaluation: Evaluation) -> bool:
    """Return whether one connectome was read for all participants."""
    connectome_origin_text = _collect_reading_settings(evaluation).get("connectome")
    return connectome_origin_text not in (None, "none", "one per scan")


def connectome_sentences(evaluation: Evaluation) -> list[str]:
    """Return the gain of the connectome in two sentences; none if not computed.

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
    connectome_gain = ConnectomeGain(evaluation.connectome_gain)
    network_gain_verdict, own_connectome_gain_verdict = (
        connectome_gain.network,
        connectome_gain.own_connectome,
    )
    evidence_gain_series = connectome_gain.table.set_index("connectome").loc[
        "original", "evidence_gain"
    ]
    network_phrase = NETWORK_PHRASES[network_gain_verdict.answer].format(
        excluded_kinds=_excluded_kinds_text(connectome_gain)
    )
    sentences = [
        f"{network_phrase}. The gain in log evidence is "
        f"{spread_text(evidence_gain_series, n_digits=1)}. Minus the gain of "
        f"{NULL_PHRASES[network_gain_verdict.compared_with]}, it is "
        f"{_lead_text(network_gain_verdict)}."
    ]
    if own_connectome_gain_verdict is None:
        sentences.append(
            "All participants have the same connectome, so the gain of a "
            "participant's own connectome is unknown."
        )
    else:
        sentences.append(
            f"{OWN_PHRASES[own_connectome_gain_verdict.answer]}. The gain of "
            "participants' own connectomes minus the gain of "
            f"{NULL_PHRASES[own_connectome_gain_verdict.compared_with]} is "
            f"{_lead_text(own_connectome_gain_verdict)}."
        )
    return sentences


def _lead_text(gain_verdict: ConnectomeVerdict) -> str:
    """Return the difference from the gain of a null connectome, with its interval."""
    return (
        f"{gain_verdict.lead:+z.1f} (90% interval {gain_verdict.low:+z.1f} to "
        f"{gain_verdict.high:+z.1f})"
    )


def _excluded_kinds_text(connectome_gain: ConnectomeGain) -> str:
    """Return over which random connectomes no gain was found, and over which not."""
    excluded_names = connectome_gain.excluded_random_connectomes
    other_names = [name for name in RANDOM_CONNECTOMES if name not in excluded_names]
    excluded_text = f"{join_with_and(excluded_names)} connectomes"
    if other_names:
        excluded_text += (
            f", but such a gain is possible over {join_with_and(other_names)} "
            "connectomes"
        )
    return excluded_text


def chosen_ridges_text(evaluation: Evaluation) -> str:
    """Return in how many folds each selecting model chose which nested ridge."""
    choice_sentences = []
    for model_name, model_fit_table in _list_selecting_fit_tables(evaluation):
        choice_phrases = pd.Series(list_reported_values(model_fit_table, "chosen")).map(
            MODEL_PHRASES
        )
        if is_external(evaluation):
            sentence = f"{model_name} chose a model with {choice_phrases.iloc[0]}."
            choice_sentences.append(sentence)
            continue
        choice_texts = [
            f"{choice_phrase} in {count_text(n_folds, 'fold')}"
            for choice_phrase, n_folds in choice_phrases.value_counts().items()
        ]
        choice_sentences.append(
            f"{model_name} chose a model with {join_with_and(choice_texts)}."
        )
    return " ".join(choice_sentences)


class ScalelessFoldCount(NamedTuple):
    """Numbers of folds in which a selecting model chose no scale for each region."""

    model_name: str
    n_scaleless_folds: int
    n_folds: int


def count_scaleless_folds(evaluation: Evaluation) -> ScalelessFoldCount | None:
    """Return the folds in which the main model has no scale for each region.

    None if the main model does not choose among the nested ridges.
    """
    for model_name, model_fit_table in _list_selecting_fit_tables(evaluation):
        if model_name == evaluation.models[0]:
            chosen_ridge_kinds = list_reported_values(model_fit_table, "chosen")
            n_scaleless_folds = len(chosen_ridge_kinds) - chosen_ridge_kinds.count(
                "regions"
            )
            return ScalelessFoldCount(
                model_name, n_scaleless_folds, len(chosen_ridge_kinds)
            )
    return None


def count_fits_choosing_ridge(evaluation: Evaluation, ridge_kind: str) -> int | None:
    """Return in how many fits a nested ridge was chosen; None if no model chooses."""
    name_table_pairs = _list_selecting_fit_tables(evaluation)
    if not name_table_pairs:
        return None
    return sum(
        list_reported_values(model_fit_table, "chosen").count(ridge_kind)
        for _, model_fit_table in name_table_pairs
    )


def _list_selecting_fit_tables(
    evaluation: Evaluation,
) -> list[tuple[str, pd.DataFrame]]:
    """Return names and fits of the models that choose among the nested ridges."""
    return [
        (str(model_name), model_fit_table)
        for model_name, model_fit_table in evaluation.fits.groupby("model", sort=False)
        if json.loads(model_fit_table["settings"].iloc[0]).get("scales") == "auto"
    ]


PRIOR_PHRASES = {
    "training": "the class shares of the training scans",
    "balanced": "equal shares of all classes",
}
"""Class shares that probabilities assume, by `class_prior`."""


def class_shares_phrase(class_prior: str | Mapping[str, float]) -> str:
    """Return the class shares that the probabilities of one model assume, as text."""
    if not isinstance(class_prior, Mapping):
        return PRIOR_PHRASES[class_prior]
    share_texts = (
        f"{prior_class_share:.3g} {class_name}"
        for class_name, prior_class_share in class_prior.items()
    )
    return f"class shares of {join_with_and(share_texts)}"


def prior_text(evaluation: Evaluation) -> str:
    """Return the meaning of probabilities; "" if no model has probabilities."""
    prior_by_model = evaluation.class_priors()
    model_names_by_phrase: dict[str, list[str]] = {}
    for model_name, class_prior in prior_by_model.items():
        prior_phrase = class_shares_phrase(class_prior)
        model_names_by_phrase.setdefault(prior_phrase, []).append(model_name)
    prior_phrases = list(model_names_by_phrase)
    if len(model_names_by_phrase) > 1:
        prior_phrases = [
            f"{prior_phrase} ({join_with_and(model_names)})"
            for prior_phrase, model_names in model_names_by_phrase.items()
        ]
    sentences = []
    if prior_phrases:
        sentences.append(
            f"Predicted probabilities assume {join_with_and(prior_phrases)}."
        )
    sentences += [
        MODELS[model_name].probability_sentence
        for model_name in evaluation.models
        if model_name in MODELS and model_name not in prior_by_model
    ]
    return " ".join(filter(None, sentences))


def scale_changes_text(evaluation: Evaluation) -> str:
    """Return the changes of scales in training, and their initial values, as text."""
    initial_scale_table = evaluation.scales.query("share == 0")
    training_sentences = []
    has_ridge_start = False
    for model_name, model_scale_table in initial_scale_table.groupby(
        "model", sort=False
    ):
        ranking_table = ranks.rank_regions(evaluation, str(model_name))
        moved_shares = ranking_table.nsmallest(N_SMALLEST, "rank")["moved"]
        common_start_fold_mask = (
            model_scale_table.groupby(["repeat", "fold"])["scale"].nunique() == 1
        )
        has_ridge_start |= not common_start_fold_mask.all()
        training_sentences.append(
            f"Training changed {ranking_table['moved'].mean():.0%} of the scales of "
            f"{model_name} by more than 5% ({moved_shares.mean():.0%} of its "
            f"{len(moved_shares)} smallest scales). All scales had the same initial "
            f"value in {common_start_fold_mask.sum()} of "
            f"{count_text(len(common_start_fold_mask), 'fold')}."
        )
    if not training_sentences:
        return ""
    training_sentences.append(
        "These percentages refer to means over random initialisations."
    )
    if unused_text := unused_networks_text(evaluation):
        training_sentences.append(
            "The scales of these networks are not used, because the networks have no "
            f"weight in the prediction: {unused_text}."
        )
    if has_ridge_start:
        training_sentences.append(
            "In all other folds, the initial scales were those of a ridge regression "
            "fitted to the same training scans. If training changed few of these "
            "scales, the map of the network mostly shows the ridge regression and is "
            "not independent evidence."
        )
    return " ".join(training_sentences)


def networks_kept_text(evaluation: Evaluation, fit_condition_key: str) -> str:
    """Return the networks that meet a condition in most folds, with their counts.

    Conditions are "early": the network of one of the first epochs was kept; "late":
    the validation loss still fell when the epochs were used up; "unchecked": no
    participants were set aside for validation. Networks that have no weight beside
    their ridge are neither early nor late.
    """
    network_texts = []
    for model_name, kept_fold_counts in _count_kept_folds_by_network(
        evaluation
    ).items():
        n_folds = kept_fold_counts.n_folds_by_condition[fit_condition_key]
        if 2 * n_folds > kept_fold_counts.n_fits:
            epoch_text = count_text(kept_fold_counts.n_epochs, "epoch")
            fold_text = f"in {n_folds} of {count_text(kept_fold_counts.n_fits, 'fold')}"
            network_texts.append(f"{model_name} ({epoch_text}; {fold_text})")
    return join_with_and(network_texts) if network_texts else ""


def count_hardly_trained_folds(evaluation: Evaluation, model_name: str) -> int:
    """Return in how many folds the network of a model was kept from an early epoch."""
    kept_fold_counts = _count_kept_folds_by_network(evaluation).get(model_name)
    return (
        0
        if kept_fold_counts is None
        else int(kept_fold_counts.n_folds_by_condition["early"])
    )


class _KeptFoldCounts(NamedTuple):
    """Fits of a network, its epochs, and the folds that meet each condition."""

    n_fits: int
    n_epochs: int
    n_folds_by_condition: dict[str, int]


@lru_cache(maxsize=4)  # hashed by identity; remarks, page and supplement use it
def _count_kept_folds_by_network(evaluation: Evaluation) -> dict[str, _KeptFoldCounts]:
    """Return in how many folds each network meets every condition of networks."""
    fit_table = evaluation.fits
    kept_counts_by_model = {}
    for model_name, model_fit_table in fit_table[fit_table["epochs"].notna()].groupby(
        "model"
    ):
        setting_table = pd.DataFrame(list_reported_values(model_fit_table, "settings"))
        if "n_epochs" not in setting_table:
            continue
        unchecked_fit_mask = np.array(
            [
                _is_without_validation_loss(fit_report_json)
                for fit_report_json in model_fit_table["report"]
            ]
        )
        checked_used_fit_mask = ~unchecked_fit_mask & (
            tables.collect_network_weights(model_fit_table) != 0
        )
        patience_series = setting_table.get("patience", pd.Series(0)).clip(lower=1)
        best_epochs, n_epochs = (
            model_fit_table["epochs"].to_numpy() + 1,
            setting_table["n_epochs"],
        )
        cut_short_fit_mask = best_epochs + patience_series >= n_epochs
        near_end_fit_mask = best_epochs > (1 - LATE_SHARE) * n_epochs
        late_fit_mask = checked_used_fit_mask & cut_short_fit_mask & near_end_fit_mask
        early_fit_mask = checked_used_fit_mask & (best_epochs <= N_EARLY_EPOCHS)
        kept_counts_by_model[str(model_name)] = _KeptFoldCounts(
            n_fits=len(model_fit_table),
            n_epochs=n_epochs.iloc[0],
            n_folds_by_condition={
                "unchecked": unchecked_fit_mask.sum(),
                "late": late_fit_mask.sum(),
                "early": early_fit_mask.sum(),
            },
        )
    return kept_counts_by_model


def unused_networks_text(evaluation: Evaluation) -> str:
    """Return the models whose networks have no weight in some folds, with counts."""
    network_texts = []
    for model_name, model_fit_table in evaluation.fits.groupby("model", sort=False):
        if fold_text := tables.unused_network_text(model_fit_table):
            network_texts.append(f"{model_name} ({fold_text})")
    return join_with_and(network_texts) if network_texts else ""


def main_unused_network_text(evaluation: Evaluation) -> str:
    """Return in how many folds the network of the main model has no weight, or ""."""
    main_model_row_mask = evaluation.fits["model"] == evaluation.models[0]
    return tables.unused_network_text(evaluation.fits[main_model_row_mask])


def _is_without_validation_loss(fit_report_json: str) -> bool:
    """Return whether the report of a fit has losses, but none of validation."""
    loss_record = (json.loads(fit_report_json) or {}).get("losses") or {}
    return {*loss_record.get("validation", "")} == {None}


def kernels_text(evaluation: Evaluation) -> str:
    """Return the heat kernels of networks of LSAP; "" if there is at most one."""
    from brainlsap.graph import kernel_title

    kernel_texts = []
    model_row_mask = evaluation.fits["role"] == "model"
    for model_name, model_fit_table in evaluation.fits[model_row_mask].groupby(
        "model", sort=False
    ):
        model_settings = collect_model_settings(model_fit_table)
        if (
            "kernel" in model_settings
            and model_settings.get("network", "heat") == "heat"
        ):
            kernel_texts.append(
                f"{model_name} uses {kernel_title(model_settings['kernel'])}"
            )
    if len(kernel_texts) < 2:
        return ""
    return f"{join_with_and(kernel_texts)}."


def _list_network_descriptions(
    evaluation: Evaluation,
) -> list[tuple[str, str, SettingPhrases, str]]:
    """Return the name, sentence, settings and resembled network of every network.

    The sentence says what the network is; it is empty for LSAP. Settings that equal
    those of the first network of the same kind (LSAP, or another propagation) are left
    out; the name of that first network then comes last.
    """
    from brainlsap.graph import kernel_title
    from brainlsap.model import NETWORKS

    network_descriptions: list[tuple[str, str, SettingPhrases, str]] = []
    first_network_by_type: dict[bool, tuple[str, dict[str, Any]]] = {}
    control_row_mask = evaluation.fits["role"] == "control"
    for model_name, model_fit_table in evaluation.fits[~control_row_mask].groupby(
        "model", sort=False
    ):
        model_settings = collect_model_settings(model_fit_table)
        if "kernel" not in model_settings:
            continue
        network_key, sentence = model_settings.get("network", "heat"), ""
        if network_key != "heat":
            sentence = NETWORKS[network_key].sentence
            # Options that were not given concern heat kernels alone.
            option_name_set = {
                *_flatten_options(json.loads(model_fit_table["settings"].iloc[0])),
                "head",
            }
            option_name_set -= {"n_layers"} | NETWORKS[network_key].unused_settings
            used_settings = {
                setting_name: setting_value
                for setting_name, setting_value in model_settings.items()
                if setting_name in option_name_set
            }
            model_settings = {"layers": model_settings["n_layers"], **used_settings}
        if "kernel" in model_settings:
            model_settings["kernel"] = kernel_title(model_settings["kernel"])
        first_network_name, first_network_settings = first_network_by_type.get(
            network_key == "heat", ("", {})
        )
        differing_settings = {
            setting_name: setting_value
            for setting_name, setting_value in model_settings.items()
            if first_network_settings.get(setting_name) != setting_value
        }
        network_descriptions.append(
            (
                str(model_name),
                sentence,
                SettingPhrases(differing_settings),
                first_network_name,
            )
        )
        first_network_by_type.setdefault(
            network_key == "heat", (str(model_name), model_settings)
        )
    return network_descriptions


def has_ordinal_output(evaluation: Evaluation) -> bool:
    """Return whether a network, other than controls, has an ordinal output (CORN)."""
    control_row_mask = evaluation.fits["role"] == "control"
    return any(
        collect_model_settings(model_fit_table).get("head") == "ordinal"
        for _, model_fit_table in evaluation.fits[~control_row_mask].groupby("model")
    )


def _find_ridge_names_and_phrases(
    evaluation: Evaluation,
) -> tuple[dict[str, str], bool, SettingPhrases]:
    """Return ridges by what they learn, whether classes are numbers, and settings."""
    ridge_name_by_type: dict[str, str] = {}
    ridge_settings: dict[str, Any] = {}
    are_classes_numeric = False
    control_row_mask = evaluation.fits["role"] == "control"
    for model_name, model_fit_table in evaluation.fits[~control_row_mask].groupby(
        "model", sort=False
    ):
        model_settings = collect_model_settings(model_fit_table)
        if "scales" in model_settings:
            ridge_name_by_type[model_settings.pop("scales")] = str(model_name)
            are_classes_numeric = any(list_reported_values(model_fit_table, "ordered"))
            ridge_settings |= model_settings
    ridge_settings.pop("classes", None)
    return ridge_name_by_type, are_classes_numeric, SettingPhrases(ridge_settings)


def collect_model_settings(model_fit_table: pd.DataFrame) -> dict[str, Any]:
    """Return the options of a model, completed by what its fits chose."""
    model_settings = _flatten_options(json.loads(model_fit_table["settings"].iloc[0]))
    fit_settings_list = [
        _flatten_options(fit_settings)
        for fit_settings in list_reported_values(model_fit_table, "settings")
    ]
    for fit_settings in (model_settings, *fit_settings_list):
        if (fit_settings.get("patience") or 0) >= (
            fit_settings.get("n_epochs") or np.inf
        ):
            fit_settings["patience"] = 0
    setting_names = dict.fromkeys(
        setting_name
        for fit_settings in fit_settings_list
        for setting_name in fit_settings
    )
    setting_names.pop("random_state", None)
    for setting_name in setting_names:
        setting_texts = sorted(
            {
                value_text(fit_settings.get(setting_name))
                for fit_settings in fit_settings_list
            }
        )
        if len(setting_texts) > 1:
            model_settings[setting_name] = (
                f"{' or '.join(setting_texts)} (chosen in each training fold)"
            )
        elif model_settings.get(setting_name) is None:
            model_settings[setting_name] = fit_settings_list[0][setting_name]
    if model_settings.get("scale_penalty") == "none":
        model_settings.pop("penalty_weight", None)
    return model_settings


def _flatten_options(nested_settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those below "options" beside them."""
    flat_settings = dict(nested_settings)
    return flat_settings | (flat_settings.pop("options", None) or {})


def _render_paragraphs(
    template_name: str, evaluation: Evaluation, **value_by_variable: Any
) -> list[str]:
    """Fill a template, and split it into paragraphs of one line each."""
    rendered_text = TEMPLATES.get_template(f"{template_name}.txt.j2").render(
        **value_by_variable,
        evaluation=evaluation,
        cohort=evaluation.cohort,
        settings=evaluation.settings,
    )
    paragraph_texts = (
        " ".join(text_block.split()) for text_block in rendered_text.split("\n---\n")
    )
    return [paragraph_text for paragraph_text in paragraph_texts if paragraph_text]


def model_name_with_article(model_name: str) -> str:
    """Return a model as in a sentence: "LSAP-C", but "the ridge with one scale"."""
    return f"the {model_name}" if model_name[:1].islower() else model_name


def capitalize_first_letter(text: str) -> str:
    """Return a text with a capital first letter, and all others unchanged."""
    return text[:1].upper() + text[1:]


def value_text(setting_value: object) -> str:
    """Return a value as text for a sentence: short numbers, lists with commas."""
    if isinstance(setting_value, int | float) and not isinstance(setting_value, bool):
        return f"{setting_value:g}"
    if isinstance(setting_value, Mapping):
        return ", ".join(
            f"{item_name}: {value_text(item_value)}"
            for item_name, item_value in setting_value.items()
        )
    if isinstance(setting_value, list | tuple):
        return join_with_and(map(value_text, setting_value))
    return " ".join(str(setting_value).split())


def text_with_unbroken_p_values(sentence_text: str) -> str:
    """Return a text in which no line ends between a p and its number."""
    return re.sub(
        r"\bp ([<=]) (?=\d)", "p\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", sentence_text
    )


def split_caption_and_note(caption_text: str) -> tuple[str, str]:
    """Return the first three sentences of a caption, and the rest for a note below.

    A text that is escaped for HTML stays so.
    """
    text_type = type(caption_text)
    one_line_text = " ".join(str(caption_text).split())
    sentences = re.split(r"(?<=[.?]) (?=[A-Z\"]|&#34;)", one_line_text)
    return (
        text_type(" ".join(sentences[:MAX_CAPTION_SENTENCES])),
        text_type(" ".join(sentences[MAX_CAPTION_SENTENCES:])),
    )


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=select_autoescape(["html.j2"]),
    undefined=StrictUndefined,
)
"""Templates of the page and of its texts."""
TEMPLATES.filters |= {
    "capitalize_first_letter": capitalize_first_letter,
    "check_title": check_title,
    "count_text": count_text,
    "text_with_unbroken_p_values": text_with_unbroken_p_values,
    "split_caption_and_note": split_caption_and_note,
    "join_with_and": join_with_and,
    "model_name_with_article": model_name_with_article,
}
TEMPLATES.globals |= {
    "baseline_sentences": baseline_sentences,
    "control_phrases": control_phrases,
    "chosen_ridges_text": chosen_ridges_text,
    "connectome_sentences": connectome_sentences,
    "networks_kept_text": networks_kept_text,
    "main_unused_network_text": main_unused_network_text,
    "unused_networks_text": unused_networks_text,
    "prior_text": prior_text,
    "ranks": ranks,
    "tables": tables,
    "n_exchanges": tables.N_EXCHANGES,
    "compute_smallest_p": compute_smallest_p,
    "LATER_VISIT_TITLE": FATE_TITLES[LATER_VISIT],
    "MIN_PEOPLE_SHOWN": MIN_PEOPLE_SHOWN,
    "USED_FOR_TRAINING": USED_FOR_TRAINING,
    "EXCHANGE_PHRASE": EXCHANGE_PHRASE,
    "n_audited": N_PERMUTATIONS,
    "N_CALIBRATION_DRAWS": N_CALIBRATION_DRAWS,
    "n_selected": " or ".join(map(str, N_SELECTED)),
}
