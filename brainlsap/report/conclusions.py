"""Conclusions of a study: one answer to each question of a report.

An answer is "YES" or "NO" only if test and interval agree; otherwise the weaker
answer, "NOT SHOWN", is given. Answers are records of numbers; the page prints them.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data.covariates import find_covariate_kind
from brainlsap.data.flow import NO_IMAGE
from brainlsap.data.quality import (
    exchanged_sides_text,
    list_swapped_scan_sentences,
    list_swapped_scans_by_value,
)
from brainlsap.evaluation import (
    ConnectomeGain,
    Evaluation,
    subgroup_gap_table,
    subgroup_table,
)
from brainlsap.evaluation.comparison import compute_difference_and_interval
from brainlsap.evaluation.confounds import learned_sites_sentence
from brainlsap.evaluation.connectome_worth import MIN_LOG_CREDIT, RANDOM_CONNECTOMES
from brainlsap.evaluation.leakage import CheckKey, check_title, visit_like_ids_text
from brainlsap.evaluation.models import (
    ADDED_VALUE_MODELS,
    NESTED_RIDGES,
    RANDOM_CONNECTOME_RIDGE,
)
from brainlsap.evaluation.ranking import (
    ALPHA,
    FEWEST_PERMUTATIONS,
    list_models_with_scales,
)
from brainlsap.evaluation.subgroups import largest_shift_table, scored_columns_table
from brainlsap.findings import (
    BASELINE,
    CLASSES,
    EXCLUDED,
    FAULTY,
    LEFT_OUT,
    NO_LABEL,
    OTHER_CLASSES,
    make_findings,
)
from brainlsap.report import demographics, tables
from brainlsap.report.methods import (
    CONNECTOME_METHODS,
    METHOD_TITLES,
    capitalize_first_letter,
    class_shares_phrase,
    collect_model_settings,
    count_hardly_trained_folds,
    find_method_key,
    find_stored_method_key,
    has_connectome,
    has_shared_connectome,
    model_name_with_article,
)
from brainlsap.report.regions import (
    are_region_tests_valid,
    borderline_regions_text,
    is_ranked_by_varied_scales,
    is_trend_tested,
    region_names_text,
    scale_warning_text,
    select_scale_ranking_table,
)
from brainlsap.report.tables import (
    NOMINAL_COVERAGE,
    is_external,
    is_simulated,
    make_number_table,
)
from brainlsap.text import (
    count_text,
    join_with_and,
    join_with_commas,
    p_phrase,
    p_text,
    verb_form,
)

YES, NO, NOT_SHOWN = "YES", "NO", "NOT SHOWN"
"""Answers, in capitals as the page prints them."""

CLASS_TITLES = {
    "CN": "cognitively normal",
    "SMC": "significant memory concern",
    "MCI": "mild cognitive impairment",
    "EMCI": "early mild cognitive impairment",
    "LMCI": "late mild cognitive impairment",
    "AD": "Alzheimer's disease",
}
"""Full names of classes of ADNI."""

METHODS_OF_SCALES = ("network", "ridge and network", "regions", "auto")
"""Methods that learn a scale for every region."""

_SHARED_CONNECTOME_CAUTION = (
    "All participants share one connectome, so no result is about the connectomes of "
    "single participants."
)
COMPARED_CONNECTOMES = ("original", *RANDOM_CONNECTOMES)
"""Connectomes whose gains decide whether the connectome helps."""

NONE_SHOWN, POSSIBLY, NOT_TESTED = "NONE SHOWN", "POSSIBLY", "NOT TESTED"
SAME = "SAME"
WARNING, NO_WARNING, NOT_USED = "WARNING", "NO WARNING", "NOT USED"
NOTHING_TO_EXPLAIN, IN_PART = "NOTHING TO EXPLAIN", "NOT ALL OF IT"
NOT_EXCLUDED, TOO_FEW_TO_TELL = "NOT EXCLUDED", "TOO FEW TO TELL"
UNCLEAR, LOSS, TOO_IMPRECISE = "UNCLEAR", "LOSS", "TOO IMPRECISE"
BELOW_LIMIT = f"BELOW {MIN_LOG_CREDIT:.1f}"
"""Verdicts that fit questions for regions or risks; their answer is "NOT SHOWN"."""

_NOT_VALID = (
    " This result is not valid (see Beware)."  # follows the sentence of a conclusion
)
_GAIN_CRITERION = (
    f"each of these differences is at least {MIN_LOG_CREDIT:.1f} nats (the data are 20 "
    "times as probable), and the intervals of the differences from relabelled and "
    "rewired connectomes are above 0."
)
"""Requirements of a "YES" for the gains of the study's connectome."""
MIN_AGE_SHIFT = 0.2
"""Smallest difference in mean age that is named, in s.d. of the training people."""
N_COVARIATES = 3
"""Largest number of covariates that are named, apart from those with a warning."""
MAX_CALIBRATION_ERROR = 0.1
"""Calibration error above which probabilities are called wrong in the study itself."""
MIN_CONSTANT_SHARE = 0.9
"""Share of scans with the same most probable class from which the page says so."""
SMALL_CLASS = 20
"""A class with fewer participants is named as a limitation."""
VERY_SMALL_CLASS = 5
"""A class with fewer participants is named with its part of balanced accuracy."""
MIN_PEOPLE_TO_TELL = 10
"""Smallest class in which faults of probabilities and prediction sets can be found.

If only 70% of the sets of a class contain it, its interval lies below 90% in about
half of the studies with ten people (binomial distribution: 45% of those with eight,
62% with ten, 51% with twelve, 76% with twenty), and in 9% of those with two.
"""
_SHARE_OVER_PEOPLE_SENTENCE = (
    "The share is an average over people, so it says nothing about one patient."
)


@dataclass(frozen=True)
class Conclusion:
    """The answer to one question, with the numbers that it rests on.

    Parameters
    ----------
    question : str
        Without a question mark if it is the name of a model that is compared.
    answer : {"YES", "NO", "NOT SHOWN"}
        "NO" means that the opposite was shown.
    sentence : str
        The number with its interval, and what limits the answer.
    reason : str
        Reason for the answer, printed before the sentence; may be "".
    label : str
        Text that is printed instead of the answer, for example a number of regions; ""
        for the answer itself.
    estimate, low, high : float
        Score, difference or number of regions with its 95% interval; NaN if there is
        none.
    p_value : float
        Of the test; NaN if there is none.
    partial_conclusions : tuple of Conclusion
        Requirements that all must be met for a "YES"; empty for most questions.
    criterion : str
        What a "YES" requires of the partial conclusions; may be "".
    """

    question: str
    answer: str
    sentence: str
    estimate: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p_value: float = np.nan
    reason: str = ""
    label: str = ""
    partial_conclusions: tuple["Conclusion", ...] = ()
    criterion: str = ""

    @property
    def verdict(self) -> str:
        """The answer as it is printed."""
        return self.label or self.answer


@dataclass(frozen=True)
class StudyConclusions:
    """Answers to the questions of the first screen of a report.

    Parameters
    ----------
    chance, simple_models, connectome : Conclusion
        Is the main model better than chance, and than simple models? Does the
        connectome help?
    covariates : Conclusion
        May age, sex or site explain the score?
    uncompared_covariates : Conclusion or None
        May those of them that no model contains explain it? None if all were compared,
        or if `covariates` answers for them too.
    network : Conclusion or None
        Does the neural network help? None if the main model does not add one to a
        ridge regression.
    probabilities : Conclusion
        Can the probability of one patient be trusted? Never "YES".
    added_value : Conclusion or None
        Do brain data improve the prediction from covariates? None if models of
        covariates were not run.
    regions_differ, regions_stand_out : Conclusion
        In which regions do classes differ, and where more than in the regions that
        they are connected to?
    may_write : str
        Sentences to quote.
    may_not_write : tuple of str
        Phrases that the study does not support.
    cautions : tuple of str
        Sentences for the line "Beware".
    """

    chance: Conclusion
    covariates: Conclusion
    uncompared_covariates: Conclusion | None
    network: Conclusion | None
    probabilities: Conclusion
    simple_models: Conclusion
    added_value: Conclusion | None
    connectome: Conclusion
    regions_differ: Conclusion
    regions_stand_out: Conclusion
    may_write: str
    may_not_write: tuple[str, ...]
    cautions: tuple[str, ...]

    @property
    def answers(self) -> tuple[Conclusion, ...]:
        """Conclusions in the order of the page."""
        optional_conclusions = (
            self.chance,
            self.added_value,
            self.covariates,
            self.uncompared_covariates,
            self.network,
            self.probabilities,
            self.simple_models,
            self.connectome,
            self.regions_differ,
            self.regions_stand_out,
        )
        return tuple(
            conclusion for conclusion in optional_conclusions if conclusion is not None
        )


def draw_conclusions(evaluation: Evaluation) -> StudyConclusions:
    """Return the conclusions of a study.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds, with or without region tests and the gain of the
        connectome.

    Returns
    -------
    StudyConclusions
        A leak that the audit found, or folds that share participants, turn every "YES"
        that depends on them into "NOT SHOWN".
    """
    leak_text = _leak_text(evaluation)
    original_chance_conclusion = judge_gain_over_chance(evaluation)
    chance_conclusion = _withdraw_conclusion(original_chance_conclusion, leak_text)
    if leak_text:  # no number for the abstract, whatever the answer
        chance_conclusion = replace(chance_conclusion, reason="")
    simple_model_conclusions = _withdraw_partial_conclusions(
        judge_each_simple_model(evaluation), leak_text
    )
    network_conclusion = judge_network(evaluation)
    if network_conclusion is not None:
        network_conclusion = _withdraw_conclusion(network_conclusion, leak_text)
    added_value_conclusion = judge_added_value(evaluation)
    if added_value_conclusion is not None:
        added_value_conclusion = _withdraw_conclusion(added_value_conclusion, leak_text)
    connectome_conclusion = _withdraw_conclusion(
        judge_connectome(evaluation), leak_text
    )
    difference_conclusion, contrast_conclusion = judge_effects_and_contrasts(evaluation)
    if not are_region_tests_valid(evaluation):
        # The tests use no folds, so copies count even if no fold divides them.
        difference_conclusion = _withdraw_conclusion(difference_conclusion, _NOT_VALID)
        contrast_conclusion = _withdraw_conclusion(contrast_conclusion, _NOT_VALID)
    covariates_conclusion = judge_covariates(
        evaluation, original_chance_conclusion, added_value_conclusion
    )
    study_conclusions = StudyConclusions(
        chance=chance_conclusion,
        covariates=covariates_conclusion,
        uncompared_covariates=judge_uncompared_covariates(
            evaluation, covariates_conclusion
        ),
        network=network_conclusion,
        probabilities=judge_probabilities(evaluation, original_chance_conclusion),
        simple_models=judge_simple_models(
            simple_model_conclusions,
            tables.count_comparisons(evaluation),
            leak_text,
            short_predictor_name(evaluation),
        ),
        added_value=added_value_conclusion,
        connectome=connectome_conclusion,
        regions_differ=difference_conclusion,
        regions_stand_out=contrast_conclusion,
        may_write="",
        may_not_write=(),
        cautions=list_cautions(evaluation, leak_text),
    )
    return replace(
        study_conclusions,
        may_write=_write_quote(evaluation, study_conclusions, leak_text),
        may_not_write=_list_forbidden_phrases(evaluation, study_conclusions),
    )


@dataclass(frozen=True)
class ExternalConclusions:
    """Answers to the questions of the first screen of an external evaluation.

    Parameters
    ----------
    answers : tuple of Conclusion
        Is the model better than chance in these people, and as good as in the
        cross-validation of its training? Are its probabilities calibrated, and do its
        prediction sets contain the true classes? Are the scans like those of the
        training, and is the score equal in groups of people?
    may_write, may_not_write, cautions
        As of :class:`StudyConclusions`.
    """

    answers: tuple[Conclusion, ...]
    may_write: str
    may_not_write: tuple[str, ...]
    cautions: tuple[str, ...]


def draw_external_conclusions(evaluation: Evaluation) -> ExternalConclusions:
    """Return the conclusions of an external evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        From :func:`brainlsap.evaluate_model`.

    Returns
    -------
    ExternalConclusions
        Answers rest on intervals over the new participants; the model is fixed. If the
        participants may be visits, such answers are "NOT SHOWN".
    """
    are_visits = _may_be_visits(evaluation)
    chance_conclusion = _void_intervals(judge_gain_over_chance(evaluation), are_visits)
    decline_conclusion = _void_intervals(judge_score_decline(evaluation), are_visits)
    calibration_conclusion = _void_intervals(judge_calibration(evaluation), are_visits)
    if less_probable_text := less_probable_predictions_text(evaluation):
        calibration_conclusion = replace(
            calibration_conclusion,
            sentence=f"{calibration_conclusion.sentence} {less_probable_text}",
        )
    external_conclusions = ExternalConclusions(
        answers=(
            chance_conclusion,
            decline_conclusion,
            calibration_conclusion,
            _void_intervals(judge_set_coverage(evaluation), are_visits),
            judge_scan_likeness(evaluation),
            _void_intervals(judge_subgroups(evaluation), are_visits),
        ),
        may_write=_write_external_quote(evaluation, chance_conclusion),
        may_not_write=_list_external_forbidden_phrases(
            evaluation, chance_conclusion, decline_conclusion
        ),
        cautions=_list_external_cautions(evaluation),
    )
    return external_conclusions


def _may_be_visits(evaluation: Evaluation) -> bool:
    """Return whether the tested participants may be visits of fewer people."""
    return evaluation.settings["external"]["n_visit_like_ids"] > 0


def _void_intervals(conclusion: Conclusion, are_visits: bool) -> Conclusion:
    """Return "NOT SHOWN" for an answer from intervals over visits instead of people."""
    if not are_visits:
        return conclusion
    if conclusion.answer == NOT_SHOWN:
        return replace(conclusion, reason="")  # No number for the abstract.
    return _withdraw_conclusion(conclusion, _NOT_VALID, withdrawn_answers=(YES, NO))


def _is_same_study(evaluation: Evaluation) -> bool:
    """Return whether the tested people are of the study of the training."""
    return evaluation.settings["external"]["is_same_study"]


def _features_and_connectome_text(evaluation: Evaluation) -> str:
    """Return the features, and the connectome if the stored model uses it."""
    feature_text = tables.feature_text(evaluation.cohort)
    if (
        has_connectome(evaluation)
        and find_stored_method_key(evaluation) in CONNECTOME_METHODS
    ):
        return f"connectome and {feature_text}"
    return feature_text


def external_model_text(evaluation: Evaluation) -> str:
    """Return the stored model of an external evaluation, and on whom it was fitted."""
    model_card = evaluation.settings["external"]["card"]
    training_facts = model_card["training"]
    class_counts_text = ", ".join(
        f"{class_name}: {n_people}"
        for class_name, n_people in training_facts["classes"].items()
    )
    method_title = METHOD_TITLES.get(find_stored_method_key(evaluation), "")
    return (
        f"{model_card['model']}{f' ({method_title})' if method_title else ''}. It was "
        "fitted earlier to "
        f"{count_text(training_facts['n_people'], 'other participant')} "
        f"({class_counts_text}) and was not changed."
    )


def judge_score_decline(evaluation: Evaluation) -> Conclusion:
    """Answer whether a stored model is as good as in the cross-validation of its study.

    The 95% interval of the difference follows from those of the two scores, because
    the people of the test were not in the training.
    """
    question_text = "As in cross-validation?"
    model_card = evaluation.settings["external"]["card"]
    if model_card["scores"] is None:
        return Conclusion(
            question_text,
            NOT_SHOWN,
            "The model file has no cross-validated score. `brainlsap fit --scores "
            "RESULTS` stores the scores of a run in the file.",
            label=NOT_TESTED,
        )
    training_estimate_and_bounds = model_card["scores"]["values"]["balanced_accuracy"]
    cross_validated_text = (
        "Cross-validated balanced accuracy of the training study "
        f"{training_estimate_and_bounds[0]:.3f} (95%: "
        f"{training_estimate_and_bounds[1]:.3f} to "
        f"{training_estimate_and_bounds[2]:.3f})"
    )
    absent_class_names = _list_absent_classes(evaluation)
    if absent_class_names:
        return Conclusion(
            question_text,
            NOT_SHOWN,
            f"{cross_validated_text}. This score cannot be compared with the score of "
            "the test, because the test participants include nobody of class "
            f"{join_with_and(absent_class_names)}.",
            label=NOT_TESTED,
        )
    test_estimate_and_bounds = tables.score_interval_table(
        evaluation, evaluation.models[0]
    ).loc["balanced_accuracy", ["estimate", "low", "high"]]
    difference, low, high = compute_difference_and_interval(
        test_estimate_and_bounds, training_estimate_and_bounds
    )
    answer, label, verdict_phrase = (
        NOT_SHOWN,
        UNCLEAR,
        "neither a loss nor a gain is shown",
    )
    if high < 0:
        answer, label, verdict_phrase = NO, "", "the score is lower here"
    elif low > 0:
        answer, label, verdict_phrase = YES, "", "the score is higher here"
    sentence = (
        f"{cross_validated_text}. Difference in these participants {difference:+.3f} "
        f"(95%: {low:+.3f} to {high:+.3f}): {verdict_phrase}."
    )
    return Conclusion(
        question_text, answer, sentence, difference, low, high, label=label
    )


def judge_calibration(evaluation: Evaluation) -> Conclusion:
    """Answer whether the probabilities of a stored model are right for new people."""
    question_text = "Probabilities right?"
    number_table = make_number_table(evaluation.settings["external"]["calibration"])
    if number_table.empty or number_table["intercept"].isna().all():
        return Conclusion(
            question_text,
            NOT_SHOWN,
            "Calibration could not be computed, because the model gives no "
            "probabilities or the classes have too few participants.",
            label=NOT_TESTED,
        )
    error_table = _calibration_error_table(number_table)
    n_tests_text = f"all {len(error_table)} slopes and intercepts"
    smallest_p_series = error_table.groupby("quantity", sort=False)["p_value"].min()
    smallest_p_text = " and ".join(
        f"{p_text(smallest_p)} of {quantity}s"
        for quantity, smallest_p in smallest_p_series.items()
    )
    smallest_p_sentence = (
        f"Smallest p, corrected for {n_tests_text}: {smallest_p_text}."
    )
    clear_errors = error_table.query("p_value < @ALPHA")
    if len(clear_errors):
        return Conclusion(
            question_text,
            NO,
            f"The probabilities are {'; '.join(clear_errors['text'])}. "
            f"{smallest_p_sentence}",
        )
    possible_errors = error_table[error_table["is_outside"]]
    if len(possible_errors):
        return Conclusion(
            question_text,
            NOT_SHOWN,
            f"The probabilities may be {'; '.join(possible_errors['text'])}, but no "
            f"such error is significant. {smallest_p_sentence}",
            label=UNCLEAR,
        )
    # A class that the probabilities separate from the others has no finite slope.
    untested_names = number_table.loc[number_table["slope"].isna(), "class"]
    slopes_text = "No calibration slope differs clearly from 1, and no"
    untested_text = ""
    if len(untested_names) == len(number_table):
        slopes_text = "No"
        untested_text = " (no slope can be computed)"
    elif len(untested_names):
        untested_text = f" (slope not tested: {join_with_and(untested_names)})"
    few_people_sentence = _write_few_people_sentence(number_table.to_dict("records"))
    return Conclusion(
        question_text,
        NOT_SHOWN,
        f"{slopes_text} calibration intercept differs clearly from 0{untested_text}. "
        f"{smallest_p_sentence} "
        f"{few_people_sentence or 'The probabilities may still be wrong.'}",
        label=TOO_FEW_TO_TELL if few_people_sentence else NO_WARNING,
    )


def _write_few_people_sentence(class_records: Sequence[Mapping[Hashable, Any]]) -> str:
    """Return which classes have too few people to find a fault; "" if none has."""
    class_texts = [
        f"{class_record['class']} ({class_record['people']})"
        for class_record in class_records
        if class_record["people"] < MIN_PEOPLE_TO_TELL
    ]
    if not class_texts:
        return ""
    return (
        f"Too few participants to find an error (fewer than {MIN_PEOPLE_TO_TELL}): "
        f"{join_with_and(class_texts)}."
    )


def _calibration_error_table(number_table: pd.DataFrame) -> pd.DataFrame:
    """Return each slope and intercept as a text, with corrected p and interval."""
    error_records = []
    for calibration_record in number_table.to_dict("records"):
        for quantity, calibrated_value, low_error, high_error in (
            ("slope", 1, "too extreme", "not extreme enough"),
            ("intercept", 0, "too large", "too small"),
        ):
            estimate = calibration_record[quantity]
            low, high = (
                calibration_record[f"{quantity}_low"],
                calibration_record[f"{quantity}_high"],
            )
            error_phrase = low_error if estimate < calibrated_value else high_error
            error_records.append(
                {
                    "quantity": quantity,
                    "text": f"{error_phrase} for {calibration_record['class']} "
                    f"({quantity} {estimate:.2f}, 95%: {low:.2f} to {high:.2f})",
                    "p_value": calibration_record[f"p_{quantity}"],
                    "is_outside": not low <= calibrated_value <= high,
                }
            )
    return pd.DataFrame(error_records).dropna(subset="p_value")


def judge_set_coverage(evaluation: Evaluation) -> Conclusion:
    """Answer whether prediction sets contain the true classes of new people."""
    question_text = "Do 90% sets hold?"
    external_facts = evaluation.settings["external"]
    present_class_records = [
        coverage_record
        for coverage_record in external_facts["coverage"]
        if coverage_record["class"] in evaluation.cohort.classes
    ]
    if not present_class_records:
        reason_text = external_facts["no_sets"] or "the model gives none"
        return Conclusion(
            question_text,
            NOT_SHOWN,
            f"The model gives no prediction sets: {reason_text}.",
            label="NO SETS",
        )
    undercovered_class_texts = [
        f"{coverage_record['class']} ({coverage_record['coverage']:.0%} of "
        f"{count_text(coverage_record['people'], 'participant')})"
        for coverage_record in present_class_records
        if coverage_record["high"] < NOMINAL_COVERAGE
    ]
    if undercovered_class_texts:
        interval_text = (
            "The 95% interval of this share lies"
            if len(undercovered_class_texts) == 1
            else "The 95% intervals of these shares lie"
        )
        return Conclusion(
            question_text,
            NO,
            "Too few prediction sets contain the true class in "
            f"{join_with_and(undercovered_class_texts)}. {interval_text} below 90%. "
            f"{_SHARE_OVER_PEOPLE_SENTENCE}",
        )
    few_people_sentence = _write_few_people_sentence(present_class_records)
    mean_set_size = external_facts["coverage"][-1]["mean_size"]  # of all classes
    return Conclusion(
        question_text,
        NOT_SHOWN,
        "In no class is the share of prediction sets with the true class clearly below "
        "90% (95% interval). "
        f"{few_people_sentence or 'This does not show that the share reaches 90%.'} "
        f"A set contains {mean_set_size:.1f} classes on average. "
        f"{_SHARE_OVER_PEOPLE_SENTENCE}",
        label=TOO_FEW_TO_TELL if few_people_sentence else NO_WARNING,
    )


def judge_scan_likeness(evaluation: Evaluation) -> Conclusion:
    """Answer whether the scans of new people are like those of the training."""
    question_text = "Scans as in training?"
    external_facts = evaluation.settings["external"]
    n_scans_text = count_text(evaluation.cohort.n_scans, "scan")
    difference_sentences = [
        f"Compared with the training scans, {n_scans} of {n_scans_text} "
        f"{verb_form(n_scans, 'have')} unusual {difference_kind}, so "
        "their predictions may be less reliable."
        for difference_kind, n_scans in external_facts["n_unlike"].items()
        if n_scans
    ]
    difference_sentences += [
        f"{exchanged_sides_text(value_name)}."
        for value_name in external_facts["swapped_values"]
    ]
    n_implausible_scans = external_facts["n_implausible"]
    if n_implausible_scans:
        difference_sentences.append(
            f"{n_implausible_scans} of {n_scans_text} "
            f"{verb_form(n_implausible_scans, 'have')} implausible values (see "
            "Participants), so their predictions are unreliable."
        )
    n_sparse_scans = external_facts["n_sparse"]
    if n_sparse_scans:
        difference_sentences.append(
            f"{n_sparse_scans} of {n_scans_text} {verb_form(n_sparse_scans, 'lack')} "
            "more than a tenth of the regions. The means over the training scans are "
            "used instead."
        )
    difference_sentences += external_facts["feature_shifts"]
    n_unharmonized_scans = external_facts.get("n_unharmonized", 0)
    if n_unharmonized_scans:
        difference_sentences.append(
            f"{n_unharmonized_scans} of {n_scans_text} were not harmonised, because "
            "the training contained no scans of their site."
        )
    swapped_scan_sentences = _list_swapped_scan_sentences(evaluation)
    n_unlike_scans = int(_make_unlike_scan_mask(evaluation).sum())
    last_sentences = [learned_sites_sentence(external_facts["learned_sites"])]
    if n_unlike_scans:
        last_sentences.insert(
            0,
            f"Compared with the other test scans, {n_unlike_scans} of {n_scans_text} "
            f"{verb_form(n_unlike_scans, 'are')} unusual (see Participants).",
        )
    if not (difference_sentences or swapped_scan_sentences):
        last_sentences.insert(
            0,
            "Compared with the training scans, no scan has unusual features or an "
            "unusual connectome.",
        )
    sentence = " ".join(
        filter(None, [*difference_sentences, *swapped_scan_sentences, *last_sentences])
    )
    if difference_sentences or swapped_scan_sentences:
        return Conclusion(question_text, NO, sentence, label=WARNING)
    return Conclusion(question_text, NOT_SHOWN, sentence, label=NO_WARNING)


def judge_subgroups(evaluation: Evaluation) -> Conclusion:
    """Answer whether the score of a stored model is equal in groups of people."""
    question_text = "Equal in subgroups?"
    gap_table = subgroup_gap_table(evaluation)
    column_table = scored_columns_table(evaluation)
    uncompared_sentences = [
        f"Not compared by {column_record['column']}: "
        f"{column_record['reason'] or 'only one group could be scored'}."
        for column_record in column_table.to_dict("records")
        if column_record["n_scored"] < 2
    ]
    if gap_table.empty:
        return Conclusion(
            question_text,
            NOT_SHOWN,
            " ".join(uncompared_sentences)
            or "No column of the table of participants has two groups.",
            label=NOT_TESTED,
        )
    gap_sentences = _list_subgroup_gap_texts(evaluation)
    if gap_sentences:
        sentence = " ".join([*gap_sentences, *uncompared_sentences])
        return Conclusion(question_text, NO, sentence)
    classes_by_column = (
        subgroup_table(evaluation)
        .query("classes != ''")
        .groupby("column", sort=False)["classes"]
        .first()
    )
    gap_texts = [
        f"{gap_record['column']} {gap_record['difference']:+.3f} "
        f"[{gap_record['low']:+z.3f}, {gap_record['high']:+z.3f}] "
        f"({gap_record['higher']} minus {gap_record['lower']}, over "
        f"{classes_by_column[gap_record['column']]})"
        for gap_record in gap_table.to_dict("records")
    ]
    return Conclusion(
        question_text,
        NOT_SHOWN,
        " ".join(
            [
                f"Largest differences between groups: {'; '.join(gap_texts)}. The "
                "intervals include 0. They show neither that the scores differ nor "
                "that they are equal.",
                *uncompared_sentences,
            ]
        ),
        label=UNCLEAR,
    )


def _list_absent_classes(evaluation: Evaluation) -> list[str]:
    """Return the classes of a model that no participant has."""
    present_class_set = {*evaluation.cohort.table["label"]}
    return [
        class_name
        for class_name in evaluation.cohort.classes
        if class_name not in present_class_set
    ]


def _write_external_quote(evaluation: Evaluation, chance_conclusion: Conclusion) -> str:
    """Return the sentences on an external evaluation that a manuscript may quote."""
    cohort = evaluation.cohort
    training_facts = evaluation.settings["external"]["card"]["training"]
    if not np.isfinite(chance_conclusion.estimate):
        return "Nothing, because no score of this evaluation is valid."
    swapped_value_names = evaluation.settings["external"]["swapped_values"]
    if swapped_value_names:
        return (
            "Nothing yet. First check whether left and right are exchanged in "
            f"{join_with_and(swapped_value_names)}."
        )
    if _may_be_visits(evaluation):
        return "Nothing yet. First check whether the IDs name people or visits."
    verb_phrase = "was not shown to classify"
    if chance_conclusion.answer == YES:
        verb_phrase = "classified"
    n_classes = cohort.table["label"].nunique()
    sentence = (
        f"{evaluation.models[0]}, which had been fitted to "
        f"{count_text(training_facts['n_people'], 'other participant')}"
        f"{' of the same study' if _is_same_study(evaluation) else ''}, {verb_phrase} "
        f"{count_text(cohort.n_scans, 'scan')} of "
        f"{count_text(cohort.n_participants, 'new participant')} better than chance. "
        f"The {n_classes} classes of {cohort.label_name} were predicted from "
        f"{_features_and_connectome_text(evaluation)}. The balanced accuracy was "
        f"{chance_conclusion.estimate:.3f} (95% interval {chance_conclusion.low:.3f} "
        f"to {chance_conclusion.high:.3f}; chance {1 / n_classes:.3f}; one-sided "
        f"{p_phrase(chance_conclusion.p_value)})."
    )
    if is_simulated(evaluation):
        return f"In simulated data, {sentence}"
    return capitalize_first_letter(sentence)


def _list_external_forbidden_phrases(
    evaluation: Evaluation,
    chance_conclusion: Conclusion,
    decline_conclusion: Conclusion,
) -> tuple[str, ...]:
    """Return the phrases that an external evaluation does not support."""
    forbidden_phrases = []
    if _is_same_study(evaluation):
        forbidden_phrases.append("external validation")
    if chance_conclusion.answer != YES:
        forbidden_phrases.append(f"predicts {evaluation.cohort.label_name}")
    if decline_conclusion.answer != YES:
        forbidden_phrases.append("performs as well as in its cross-validation")
    forbidden_phrases += [
        "works in every hospital",
        "works equally well in all groups of people",
        "the probabilities are well calibrated",
        "the probability of one patient can be trusted",
        f"diagnoses {evaluation.cohort.classes[-1]}",
    ]
    return tuple(forbidden_phrases)


def _list_visit_sentences(evaluation: Evaluation) -> list[str]:
    """Return the caution that tested participants may be visits, if they may."""
    if not _may_be_visits(evaluation):
        return []
    external_facts = evaluation.settings["external"]
    visits_text = visit_like_ids_text(
        external_facts["n_visit_like_ids"], external_facts["n_people_of_visits"]
    )
    return [
        f"{visits_text}. All intervals are then too narrow, and the numbers of "
        "participants are wrong."
    ]


def _list_external_cautions(evaluation: Evaluation) -> tuple[str, ...]:
    """Return what limits the conclusions of an external evaluation."""
    cohort, external_facts = evaluation.cohort, evaluation.settings["external"]
    cautions = [
        *_list_visit_sentences(evaluation),
        *_list_swapped_scan_sentences(evaluation),
    ]
    if is_simulated(evaluation):
        cautions.append(
            "The data are simulated, so no conclusion about people is possible."
        )
    if has_shared_connectome(evaluation):
        cautions.append(_SHARED_CONNECTOME_CAUTION)
    people_count_series = cohort.class_counts().set_index("class")["participants"]
    small_class_texts = [
        f"{class_name} ({n_people})"
        for class_name, n_people in people_count_series.items()
        if 0 < n_people < SMALL_CLASS
    ]
    if small_class_texts:
        cautions.append(
            f"Few participants: {join_with_and(small_class_texts)}; their scores are "
            "imprecise."
        )
    rate_table = tables.class_rate_number_table(evaluation, evaluation.models[0])
    if "sensitivity_low" in rate_table:
        small_class_sentence = _write_small_class_sentence(rate_table)
        if small_class_sentence:
            cautions.append(small_class_sentence)
        chance = 1 / cohort.table["label"].nunique()
        unrecognized_class_mask = (rate_table["people"] > 0) & (
            rate_table["sensitivity_low"] <= chance
        )
        unrecognized_texts = [
            f"{class_record['class']} ({class_record['sensitivity']:.2f})"
            for class_record in rate_table[unrecognized_class_mask].to_dict("records")
        ]
        if unrecognized_texts:
            cautions.append(
                "Sensitivity was not shown to be above chance for "
                f"{join_with_and(unrecognized_texts)}."
            )
    absent_class_names = _list_absent_classes(evaluation)
    if absent_class_names:
        cautions.append(f"Nobody has the class {join_with_and(absent_class_names)}.")
    n_people_by_training_site = external_facts["card"]["training"]["counts"].get(
        "site", {}
    )
    site_series = demographics.find_covariate_series(cohort.table, "site")
    if _is_same_study(evaluation):
        cautions.append(
            "These participants belong to the same study as the training participants, "
            "so the model was not tested in another study."
        )
    elif (
        n_people_by_training_site
        and site_series is not None
        and {*site_series.dropna()} <= {*n_people_by_training_site}
    ):
        cautions.append(
            "All sites have the names of training sites, so the model may not have "
            "been tested in new centres."
        )
    shift_texts = _list_shift_texts(
        external_facts["card"]["training"], external_facts["people"]
    )
    cautions.append(
        "Largest differences between training and test participants (see the table "
        f"of case mix): {', '.join(shift_texts)}. The scores are not corrected for "
        "these differences."
    )
    return tuple(cautions)


def _write_small_class_sentence(rate_table: pd.DataFrame) -> str:
    """Return what classes of very few people add to balanced accuracy; "" if none."""
    present_class_table = rate_table[rate_table["people"] > 0]
    n_classes = len(present_class_table)
    contribution_texts = [
        f"{class_record['sensitivity'] / n_classes:.3f} are from "
        f"{class_record['class']} ({count_text(class_record['people'], 'participant')}"
        f", sensitivity {class_record['sensitivity']:.2f})"
        for class_record in present_class_table.to_dict("records")
        if class_record["people"] < VERY_SMALL_CLASS
    ]
    if not contribution_texts:
        return ""
    balanced_accuracy = present_class_table["sensitivity"].mean()
    return (
        "Every class counts equally in balanced accuracy: of "
        f"{balanced_accuracy:.3f}, {join_with_and(contribution_texts)}."
    )


def _list_shift_texts(
    training_mix_record: Mapping[str, Any], test_mix_record: Mapping[str, Any]
) -> list[str]:
    """Return which share of classes, sexes and sites differs most, and the ages."""
    shift_texts = [
        f"{shift_record['characteristic']} {shift_record['category']} "
        f"{shift_record['training']:.0%} to {shift_record['test']:.0%}"
        if shift_record["category"]
        else f"no {shift_record['characteristic']} in common"
        for shift_record in largest_shift_table(
            training_mix_record, test_mix_record
        ).to_dict("records")
    ]
    training_ages = training_mix_record["numbers"].get("age", {"n": 0})
    test_ages = test_mix_record["numbers"].get("age", {"n": 0})
    age_sd = training_ages.get("sd", np.nan)
    # An age that is hardly different is no difference to name.
    if (
        training_ages["n"]
        and test_ages["n"]
        and abs(test_ages["mean"] - training_ages["mean"]) >= MIN_AGE_SHIFT * age_sd
    ):
        shift_texts.append(
            f"mean age {training_ages['mean']:.1f} to {test_ages['mean']:.1f} years"
        )
    return shift_texts


def list_headline_lines(evaluation: Evaluation) -> list[str]:
    """Return the first screen of a report as lines of text.

    Parameters
    ----------
    evaluation : Evaluation
        As of :func:`draw_conclusions`.

    Returns
    -------
    list of str
        Sample, method, one line for each question with its answer, what may be written
        and what not, and cautions.
    """
    study_conclusions: StudyConclusions | ExternalConclusions
    if is_external(evaluation):
        study_conclusions = draw_external_conclusions(evaluation)
        model_description = f"Model: {external_model_text(evaluation)}"
    else:
        study_conclusions = draw_conclusions(evaluation)
        model_description = f"Method: {model_and_test_text(evaluation)}"
    answer_lines = [
        " ".join(
            filter(
                None,
                (
                    conclusion.question,
                    f"{conclusion.verdict}.",
                    conclusion.reason,
                    conclusion.sentence,
                    *(
                        f"{partial_conclusion.question}: {partial_conclusion.sentence} "
                        f"{partial_conclusion.verdict}."
                        for partial_conclusion in conclusion.partial_conclusions
                    ),
                    conclusion.criterion and f"Criterion: {conclusion.criterion}",
                ),
            )
        )
        for conclusion in study_conclusions.answers
    ]
    forbidden_phrases_text = "; ".join(
        f'"{forbidden_phrase}"' for forbidden_phrase in study_conclusions.may_not_write
    )
    return [
        sample_text(evaluation),
        model_description,
        *answer_lines,
        f"You may write: {study_conclusions.may_write}",
        f"You may not write: {forbidden_phrases_text}.",
        f"Beware: {' '.join(study_conclusions.cautions)}",
    ]


def sample_text(evaluation: Evaluation) -> str:
    """Return the numbers of participants and scans, by class, and who was left out."""
    data_text = "Simulated data: " if is_simulated(evaluation) else ""
    return f"{data_text}{class_text(evaluation)} Left out: {left_out_text(evaluation)}"


def class_text(evaluation: Evaluation) -> str:
    """Return the numbers of participants and scans, by class."""
    cohort = evaluation.cohort
    count_table = cohort.class_counts()
    class_texts = []
    for class_name, n_people in zip(
        count_table["class"], count_table["participants"], strict=True
    ):
        class_title = CLASS_TITLES.get(class_name, "")
        class_texts.append(
            # The colon keeps a class that is named by a number from its size.
            f"{class_name}{f' ({class_title})' if class_title else ''}: {n_people}"
        )
    several_classes_sentence = ""
    n_changing_people = demographics.count_people_in_several_classes(cohort.table)
    if n_changing_people:
        several_classes_sentence = (
            f" {count_text(n_changing_people, 'participant')} "
            f"{verb_form(n_changing_people, 'are')} counted in several classes."
        )
    return (
        f"{count_text(cohort.n_participants, 'participant')}, "
        f"{count_text(cohort.n_scans, 'scan')}. By class: "
        f"{', '.join(class_texts)}.{several_classes_sentence}"
    )


def left_out_text(evaluation: Evaluation) -> str:
    """Return the numbers of people and scans that were left out, with the reasons."""
    exclusion_phrases = _list_exclusion_phrases(evaluation)
    kept_text = ""
    unlike_scan_mask = _make_unlike_scan_mask(evaluation)
    n_unlike_scans = int(unlike_scan_mask.sum())
    if n_unlike_scans:
        kept_text = (
            f"; {count_text(n_unlike_scans, 'scan')} unlike the others "
            f"{verb_form(n_unlike_scans, 'were')} kept (see Participants)"
        )
    if "quality" in evaluation.cohort.table:
        flagged_scan_mask = evaluation.cohort.table["quality"] != ""
        n_incomplete_scans = int((flagged_scan_mask & ~unlike_scan_mask).sum())
        if n_incomplete_scans:
            kept_text += (
                f"; {count_text(n_incomplete_scans, 'other scan')} "
                f"{verb_form(n_incomplete_scans, 'lack')} single values"
            )
    if evaluation.cohort.truth is not None and not exclusion_phrases:
        return f"nobody{kept_text}."
    training_sentence = ""
    if is_external(evaluation) and _is_same_study(evaluation):
        n_people = evaluation.settings["external"]["n_excluded_training_people"]
        left_out_flow = evaluation.cohort.flow().iloc[1:-1]
        if left_out_flow["participants"].tolist() == [n_people]:
            n_scans = int(left_out_flow["scans"].iloc[0])
            return (
                f"the {count_text(n_people, 'participant')} "
                f"({count_text(n_scans, 'scan')}) used for training{kept_text}."
            )
        training_sentence = (
            f" {count_text(n_people, 'participant', 'were')} left out because they had "
            "been used for training."
        )
    return (
        f"{'; '.join(exclusion_phrases) or 'none of the scans that were read'}"
        f"{kept_text}.{training_sentence}"
    )


def kept_scans_sentence(evaluation: Evaluation) -> str:
    """Return which scans unlike the others were kept, by code; "" for none."""
    unlike_table = evaluation.cohort.table[_make_unlike_scan_mask(evaluation)]
    n_unlike_scans = len(unlike_table)
    if not n_unlike_scans:
        return ""
    codes_text = ""
    if "code" in unlike_table:
        codes_text = f": {join_with_commas(unlike_table['code'].sort_values(), 6)}"
    return (
        f"{count_text(n_unlike_scans, 'scan')} unlike the others "
        f"{verb_form(n_unlike_scans, 'were')} kept{codes_text}. The closed section on "
        "quality control gives the reasons."
    )


def _make_unlike_scan_mask(evaluation: Evaluation) -> np.ndarray:
    """Return which scans are unlike the other scans of the evaluation.

    Reports of earlier versions do not distinguish scans that lack single values.
    """
    cohort_table = evaluation.cohort.table
    if "quality_unlike" in cohort_table:
        return cohort_table["quality_unlike"].to_numpy()
    if "quality" in cohort_table:
        return (cohort_table["quality"] != "").to_numpy()
    return np.zeros(len(cohort_table), dtype=bool)


def excluded_text(evaluation: Evaluation) -> str:
    """Return who was left out, as the first sentence on excluded participants."""
    exclusion_phrases = _list_exclusion_phrases(evaluation)
    if not exclusion_phrases:
        return "Nobody was excluded."
    return f"Excluded: {'; '.join(exclusion_phrases)}."


def _list_exclusion_phrases(evaluation: Evaluation) -> list[str]:
    """Return who was left out and why, in one phrase for each reason."""
    cohort = evaluation.cohort
    flow_records = cohort.flow().to_dict("records")
    n_scans_left_out = flow_records[0]["scans"] - flow_records[-1]["scans"]
    exclusion_phrases = list[str]()
    if n_scans_left_out:
        n_people_left_out = (
            flow_records[0]["participants"] - flow_records[-1]["participants"]
        )
        scans_by_fate_text = ", ".join(
            f"{flow_record['fate']} {flow_record['scans']}"
            for flow_record in flow_records[1:-1]
            if flow_record["scans"]
        )
        exclusion_phrases.append(
            f"{count_text(n_people_left_out, 'participant')}, "
            f"{count_text(n_scans_left_out, 'scan')} (scans: {scans_by_fate_text})"
        )
    flow_kinds = (
        *(BASELINE, CLASSES, OTHER_CLASSES, NO_IMAGE),
        *(EXCLUDED, FAULTY, NO_LABEL),
    )
    exclusion_phrases += [
        finding.shareable_text()
        for finding in make_findings(cohort.findings)
        if (finding.kind in flow_kinds and not n_scans_left_out)
        or (
            finding.severity == LEFT_OUT
            and finding.people
            and finding.kind not in flow_kinds
        )
    ]
    return exclusion_phrases


def model_and_test_text(evaluation: Evaluation) -> str:
    """Return a description of the main model and of its test."""
    study_settings = evaluation.settings
    tested_models_text = f"{evaluation.models[0]} was"
    if len(evaluation.models) > 1:
        tested_models_text = "All models were"
    unit_noun = "scan" if study_settings["people_shared"] else "participant"
    test_sentence = (
        f"{tested_models_text} tested by {study_settings['n_folds']}-fold "
        f"cross-validation with folds divided by {unit_noun}."
    )
    scale_sentence = ""
    if find_method_key(evaluation) in METHODS_OF_SCALES:
        scale_sentence = _scale_sentence(evaluation)
    sentences = [
        test_sentence,
        _define_main_model(evaluation),
        _unused_network_sentence(evaluation),
        scale_sentence,
    ]
    return " ".join(filter(None, sentences))


def _define_main_model(evaluation: Evaluation) -> str:
    """Return what the main model is, and the ridge regression that it starts from."""
    main_model_name, ridge_name = evaluation.models[0], "LSAP-R"
    method_key = find_method_key(evaluation)
    method_title = METHOD_TITLES.get(method_key, "")
    definition = f"{main_model_name} is {method_title}." if method_title else ""
    if ridge_name not in evaluation.models or main_model_name == ridge_name:
        return definition
    ridge_definition = f"{ridge_name} is {METHOD_TITLES['auto']}."
    # Without a network, only the same settings give the same predictions.
    has_same_ridge = not tables.has_unused_network(
        evaluation, main_model_name
    ) or evaluation.have_same_predictions(main_model_name, ridge_name)
    if method_key != "ridge and network" or not has_same_ridge:
        return f"{definition} {ridge_definition}".strip()
    return (
        "The scale of a region is how far its value is averaged along the connectome. "
        f"{ridge_definition} {main_model_name} is {ridge_name} plus a graph neural "
        "network that learns a scale for each region."
    )


def _unused_network_sentence(evaluation: Evaluation) -> str:
    """Return which ridge regression predicts if no network has weight; else ""."""
    main_model_name = evaluation.models[0]
    if not tables.has_unused_network(evaluation, main_model_name):
        return ""
    equivalent_model_text = short_predictor_name(evaluation)
    if equivalent_model_text == main_model_name:
        equivalent_model_text = "its ridge regression"
    if evaluation.have_same_predictions(main_model_name, NESTED_RIDGES[0]):
        equivalent_model_text = "a ridge regression that uses no connectome"
    return (
        "The network has no weight in any fold, so all predictions come from "
        f"{equivalent_model_text}."
    )


_SMALL_SCALE_SENTENCE = (
    "A small scale means that the model uses a region's own value, hardly averaged."
)


def _scale_sentence(evaluation: Evaluation) -> str:
    """Return which model's scales a report shows, and the meaning of a small scale."""
    source_sentence = ""
    if list_models_with_scales(evaluation):
        if not is_ranked_by_varied_scales(evaluation):
            return (
                f"{_SMALL_SCALE_SENTENCE} The report does not rank regions by their "
                "scales."
            )
        scale_model_name = str(select_scale_ranking_table(evaluation)["model"].iloc[0])
        if scale_model_name != evaluation.models[0]:
            source_sentence = (
                "The report shows the scales of "
                f"{model_name_with_article(scale_model_name)}. "
            )
    return (
        f"{source_sentence}{_SMALL_SCALE_SENTENCE} It does not mean that a region "
        "differs between classes or is important."
    )


def short_predictor_name(evaluation: Evaluation) -> str:
    """Return the name of the main model, or LSAP-R if it predicts the same."""
    main_model_name = evaluation.models[0]
    if tables.has_unused_network(
        evaluation, main_model_name
    ) and evaluation.have_same_predictions(main_model_name, "LSAP-R"):
        return "LSAP-R"
    return main_model_name


def predictor_text(evaluation: Evaluation) -> str:
    """Return the predictor in words: the main model, or only its ridge regression.

    A network without weight in any fold predicts nothing.
    """
    main_model_name = evaluation.models[0]
    if not tables.has_unused_network(evaluation, main_model_name):
        return main_model_name
    predictor_name = short_predictor_name(evaluation)
    if predictor_name != main_model_name:
        return f"the ridge regression {predictor_name}"
    return f"the ridge regression of {main_model_name}"


def difference_verdict(low: float, high: float, p_value: float) -> str:
    """Return the answer of a two-sided test and its interval; the weaker of the two."""
    if p_value < ALPHA and low > 0:
        return YES
    if p_value < ALPHA and high < 0:
        return NO
    return NOT_SHOWN


def _row_verdict(comparison_row: pd.Series) -> str:
    """Return whether the difference of a comparison of two models is shown."""
    return difference_verdict(
        comparison_row["low"], comparison_row["high"], comparison_row["p_holm"]
    )


def judge_gain_over_chance(evaluation: Evaluation) -> Conclusion:
    """Answer whether the main model is better than chance.

    "YES": the one-sided permutation test has p < 0.05, and the interval over
    participants is above chance. A score below chance is "NOT SHOWN": in small samples,
    cross-validation alone can cause it.
    """
    question_text = "Better than chance?"
    main_model_name = evaluation.models[0]
    # An external evaluation may lack classes that the model knows.
    n_present_classes = evaluation.cohort.table["label"].nunique()
    if n_present_classes < 2:
        answer_sentence = "Only one class is present, so no score can be above chance."
        return Conclusion(question_text, NOT_SHOWN, answer_sentence, label=NOT_TESTED)
    chance_score = 1 / n_present_classes
    estimate, lower_bound, upper_bound = tables.score_interval_table(
        evaluation, main_model_name
    ).loc["balanced_accuracy", ["estimate", "low", "high"]]
    has_failed_fit = (
        evaluation.fits.query("model == @main_model_name")["failed"].ne("").any()
    )
    if has_failed_fit or not np.isfinite(estimate):
        answer_sentence = (
            f"{main_model_name} could not be trained in every fold, so it has no score."
        )
        return Conclusion(question_text, NOT_SHOWN, answer_sentence)
    p_value = tables.chance_p_values(evaluation)[main_model_name]
    verdict_text = NOT_SHOWN
    if p_value < ALPHA and lower_bound > chance_score:
        verdict_text = YES
    answer_sentence = (
        f"balanced accuracy {estimate:.3f} (95%: {lower_bound:.3f} to "
        f"{upper_bound:.3f}), chance {chance_score:.3f}, one-sided "
        f"{p_phrase(p_value)}"
    )
    answer_sentence += "." if verdict_text == YES else ": not shown to be above chance."
    answer_sentence += tables.frequent_prediction_text(evaluation, main_model_name)
    if verdict_text == NOT_SHOWN and p_value < ALPHA:
        answer_sentence += (
            " The interval includes chance, so the evidence is weak although the "
            f"one-sided p is below {ALPHA}."
        )
    elif upper_bound < chance_score and not is_external(evaluation):
        answer_sentence += (
            " Cross-validation of small samples can give scores below chance."
        )
    elif verdict_text == NOT_SHOWN and lower_bound > chance_score:
        answer_sentence += (
            " The interval is above chance, but the permutation test is not "
            "significant."
        )
    return Conclusion(
        question_text,
        verdict_text,
        answer_sentence,
        estimate,
        lower_bound,
        upper_bound,
        p_value,
        reason="Score for the abstract:",
    )


def judge_covariates(
    evaluation: Evaluation,
    chance_conclusion: Conclusion,
    added_value_conclusion: Conclusion | None = None,
) -> Conclusion:
    """Answer whether age, sex, site or other covariates alone explain the score.

    The answer is always "NOT SHOWN"; its label is the verdict. "NOT ALL OF IT": brain
    data improve the prediction from covariates (`added_value_conclusion`), and the
    covariates include all columns of which the audit warns; the question then names
    only them (see `judge_uncompared_covariates`). "POSSIBLY": the audit warns of a
    column that they do not include, or brain data were not shown to improve the
    prediction. Without
    `added_value_conclusion`, "POSSIBLY" means a warning of the audit; "NO WARNING" does
    not exclude an explanation. "NOTHING TO EXPLAIN": no score above chance was shown.
    "NOT TESTED": there is neither a comparison nor a finding of the audit.
    """
    question_text = "Could age, sex or site explain the score?"
    if added_value_conclusion is not None:
        covariate_names = [
            *evaluation.settings["covariates"],
            *_list_uncompared_covariates(evaluation),
        ]
        question_text = _covariates_question(covariate_names)
    finding_table = _covariate_finding_table(evaluation)
    if finding_table is None and added_value_conclusion is None:
        sentence = "No leakage audit was made."
        if evaluation.audit is not None:
            sentence = "The table of participants contains none of these variables."
        return Conclusion(question_text, NOT_SHOWN, sentence, label=NOT_TESTED)
    if chance_conclusion.answer != YES:
        sentence = _covariate_differences_sentence(finding_table)
        if not _select_warning_table(finding_table).empty:
            sentence = _covariate_findings_text(finding_table)
        return Conclusion(
            question_text,
            NOT_SHOWN,
            sentence,
            reason=(
                "The score was not shown to be above chance, so there is nothing to "
                "explain."
            ),
            label=NOTHING_TO_EXPLAIN,
        )
    conclusion = _judge_by_audit(question_text, finding_table)
    if added_value_conclusion is not None:
        conclusion = _judge_by_comparison(
            evaluation,
            conclusion,
            finding_table,
            added_value_conclusion,
        )
    sentences = [conclusion.sentence]
    unknown_names = [
        covariate_name
        for covariate_name in ("age", "sex")
        if not _has_covariate(evaluation, covariate_name)
    ]
    if unknown_names:
        sentences.append(f"No column was recognised as {_join_with_or(unknown_names)}.")
    unadjusted_covariates = _list_unadjusted_covariates(evaluation)
    if unadjusted_covariates:
        sentences.append(
            "Scores and tests of regions are not adjusted for "
            f"{join_with_and(unadjusted_covariates)}."
        )
    return replace(conclusion, sentence=" ".join(filter(None, sentences)))


def _judge_by_audit(
    question_text: str, finding_table: pd.DataFrame | None
) -> Conclusion:
    """Answer by the warnings of the audit whether a covariate explains the score."""
    label = NO_WARNING
    reason = (
        "The leakage audit gave no warning, but it cannot exclude that these variables "
        "explain the score."
    )
    if not _select_warning_table(finding_table).empty:
        label = POSSIBLY
        reason = "Something other than the brain may explain the score."
    sentence = _covariate_findings_text(finding_table)
    return Conclusion(question_text, NOT_SHOWN, sentence, reason=reason, label=label)


def _judge_by_comparison(
    evaluation: Evaluation,
    audit_conclusion: Conclusion,
    finding_table: pd.DataFrame | None,
    added_value_conclusion: Conclusion,
) -> Conclusion:
    """Answer from the gain of brain data whether covariates explain the score."""
    if added_value_conclusion.answer != YES:
        covariates_phrase = tables.covariates_text(evaluation)
        reason = (
            "Brain data were not shown to improve the prediction from "
            f"{covariates_phrase}."
        )
        return replace(audit_conclusion, reason=reason, label=POSSIBLY)
    modelled_covariate_names = evaluation.settings["covariates"]
    absent_covariates = _list_unmodelled_covariates(
        _select_warning_table(finding_table), modelled_covariate_names
    )
    if absent_covariates:
        names_text = join_with_and(absent_covariates)
        reason = (
            f"The leakage audit warns of {names_text}, but the models with and without "
            f"brain data do not contain {names_text}."
        )
        return replace(audit_conclusion, reason=reason, label=POSSIBLY)
    return replace(
        audit_conclusion,
        question=_covariates_question(modelled_covariate_names),
        label=IN_PART,
        reason=_covariates_limit_sentence(evaluation),
        sentence=" ".join(_list_covariate_sentences(evaluation, finding_table)),
    )


def judge_uncompared_covariates(
    evaluation: Evaluation, covariates_conclusion: Conclusion
) -> Conclusion | None:
    """Answer whether age, sex or site explain the score if no model contains them.

    None if all were compared, or if `covariates_conclusion` speaks of them, too. The
    audit gave no warning of them, but it cannot exclude it: "NOT EXCLUDED". "NOT
    TESTED" if the audit has no score for one of them.
    """
    covariate_names = _list_uncompared_covariates(evaluation)
    if covariates_conclusion.label != IN_PART or not covariate_names:
        return None
    score_by_kind = {
        find_covariate_kind(covariate_name): score
        for score, covariate_name in _make_covariate_by_group_score(evaluation).items()
    }
    chance_score = 1 / len(evaluation.cohort.classes)
    sentences, label = [], NOT_EXCLUDED
    if _shares_sites(evaluation) and "site" in covariate_names:
        sentences.append(
            "No site was left out of the training, so an effect of site is not "
            "excluded."
        )
    for covariate_name in covariate_names:
        kind = find_covariate_kind(covariate_name)
        name_text = capitalize_first_letter(covariate_name)
        if kind in score_by_kind:
            sentences.append(
                f"{name_text} alone scores {score_by_kind[kind]:.2f} (chance "
                f"{chance_score:.2f})."
            )
        else:
            sentences.append(f"{name_text} was not tested.")
            label = NOT_TESTED
    return Conclusion(
        _covariates_question(covariate_names),
        NOT_SHOWN,
        " ".join(sentences),
        label=label,
    )


def _covariates_question(covariate_names: Sequence[str]) -> str:
    """Return the question whether one of these covariates explains the score."""
    return f"Could {_join_with_or(covariate_names)} explain the score?"


def _list_uncompared_covariates(evaluation: Evaluation) -> list[str]:
    """Return age, sex, site or what the audit warns of, if no model has it."""
    compared_kind_set = set(
        map(find_covariate_kind, evaluation.settings.get("covariates") or [])
    )
    return [
        covariate_name
        for covariate_name in _list_known_covariates(evaluation)
        if find_covariate_kind(covariate_name) not in compared_kind_set
    ]


def _join_with_or(names_to_join: Sequence[str]) -> str:
    """Return alternatives as text: "age, sex or site"."""
    if len(names_to_join) < 2:
        return "".join(names_to_join)
    return f"{', '.join(names_to_join[:-1])} or {names_to_join[-1]}"


def _select_warning_table(finding_table: pd.DataFrame | None) -> pd.DataFrame:
    """Return the warnings among findings; an empty table without findings."""
    if finding_table is None:
        return pd.DataFrame()
    return finding_table[finding_table["severity"] == "warning"]


def _covariate_findings_text(finding_table: pd.DataFrame | None) -> str:
    """Return the warnings of the audit on covariates, or else its first notes."""
    if finding_table is None:
        return ""
    finding_texts = list(_select_warning_table(finding_table)["finding"])
    if not finding_texts:
        finding_texts = list(finding_table["finding"])[:N_COVARIATES]
    return capitalize_first_letter(f"{'; '.join(finding_texts)}.")


def _covariate_finding_table(evaluation: Evaluation) -> pd.DataFrame | None:
    """Return the findings of the audit on covariates; None if there are none."""
    if evaluation.audit is None:
        return None
    covariate_finding_mask = (
        evaluation.audit["check"] == CheckKey.COVARIATE_PREDICTS_LABEL
    )
    return (
        evaluation.audit[covariate_finding_mask]
        if covariate_finding_mask.any()
        else None
    )


def _list_unmodelled_covariates(
    finding_table: pd.DataFrame, modelled_covariate_names: Sequence[str]
) -> list[str]:
    """Return the covariates of findings that are not in the model of covariates."""
    if finding_table.empty:
        return []
    if "covariate" not in finding_table:  # Results of old versions.
        return ["a variable"]
    return [
        covariate_name
        for covariate_name in finding_table["covariate"]
        if covariate_name not in modelled_covariate_names
    ]


def _covariates_limit_sentence(evaluation: Evaluation) -> str:
    """Return that covariates explain at most a part, and from what this follows."""
    covariates_phrase = tables.covariates_text(evaluation)
    verb = verb_form(len(evaluation.settings["covariates"]), "explain")
    return (
        f"{capitalize_first_letter(covariates_phrase)} {verb} at most a part, because "
        "brain data improve the prediction (row above)."
    )


def _list_covariate_sentences(
    evaluation: Evaluation, finding_table: pd.DataFrame | None
) -> list[str]:
    """Return which covariates differ, and which alone scores best, as sentences."""
    sentences = [
        _covariate_warnings_sentence(finding_table),
        _covariate_differences_sentence(finding_table),
    ]
    # Groups also show relations that the model with squares misses.
    covariate_by_group_score = _make_covariate_by_group_score(evaluation)
    best_score = max(covariate_by_group_score, default=0.0)
    warned_covariates = set(
        _select_warning_table(finding_table).get("covariate", pd.Series(dtype=object))
    )
    if (
        best_score > _get_balanced_accuracy(evaluation, ADDED_VALUE_MODELS[0])
        and covariate_by_group_score[best_score] not in warned_covariates
    ):
        sentences.append(
            "The best single variable, divided into groups, scores "
            f"{best_score:.2f} ({covariate_by_group_score[best_score]})."
        )
    return list(filter(None, sentences))


def _make_covariate_by_group_score(evaluation: Evaluation) -> dict[float, str]:
    """Return the known covariates by their scores in the audit."""
    finding_table = _covariate_finding_table(evaluation)
    if finding_table is None or "covariate" not in finding_table:
        return {}
    known_kinds = set(map(find_covariate_kind, _list_known_covariates(evaluation)))
    return {
        finding_record["balanced_accuracy"]: finding_record["covariate"]
        for finding_record in finding_table.to_dict("records")
        if find_covariate_kind(finding_record["covariate"]) in known_kinds
    }


def _covariate_warnings_sentence(finding_table: pd.DataFrame | None) -> str:
    """Return the scores of single covariates of which the audit warns; "" for none."""
    warning_texts = [
        f"{finding_record['covariate']} alone scores "
        f"{finding_record['balanced_accuracy']:.2f}"
        for finding_record in _select_warning_table(finding_table).to_dict("records")
    ]
    return f"Audit warning: {join_with_and(warning_texts)}." if warning_texts else ""


def _covariate_differences_sentence(finding_table: pd.DataFrame | None) -> str:
    """Return the covariates in which classes differ, apart from those with a warning.

    The audit does not warn of them because they predict little; "" for none.
    """
    if finding_table is None or "covariate" not in finding_table:
        return ""
    different_covariates = [
        finding_record["covariate"]
        for finding_record in finding_table.to_dict("records")
        if finding_record["p_value"] < ALPHA and finding_record["severity"] != "warning"
    ]
    if not different_covariates:
        return ""
    return (
        f"Classes differ in {join_with_and(different_covariates)} (see Participants)."
    )


def _shares_sites(evaluation: Evaluation) -> bool:
    """Return whether the audit found sites in both training and test folds."""
    return (
        evaluation.audit is not None
        and (evaluation.audit["check"] == CheckKey.SITE_IN_TWO_FOLDS).any()
    )


def _list_known_covariates(evaluation: Evaluation) -> list[str]:
    """Return age, sex and site, as far as they are known, and what the audit warns of.

    An example of the latter is the volume of the head.
    """
    known_covariate_names = [
        covariate_name
        for covariate_name in ("age", "sex", "site")
        if _has_covariate(evaluation, covariate_name)
    ]
    warning_table = _select_warning_table(_covariate_finding_table(evaluation))
    # Results of old versions have no column of covariates.
    warned_column_names = list(warning_table.get("covariate", ()))
    return known_covariate_names + [
        column_name
        for column_name in warned_column_names
        if find_covariate_kind(column_name) not in known_covariate_names
    ]


def _has_covariate(evaluation: Evaluation, covariate_name: str) -> bool:
    """Return whether a column of the participants is known to be this covariate."""
    covariate_series = demographics.find_covariate_series(
        evaluation.cohort.table, covariate_name
    )
    return covariate_series is not None


def _list_unadjusted_covariates(evaluation: Evaluation) -> list[str]:
    """Return the covariates that were not regressed out of the features.

    Age and sex also if no column is known to contain them.
    """
    adjusted_kind_set = tables.find_adjusted_covariate_kinds(evaluation)
    covariate_names = dict.fromkeys(["age", "sex", *_list_known_covariates(evaluation)])
    return [
        covariate_name
        for covariate_name in covariate_names
        if find_covariate_kind(covariate_name) not in adjusted_kind_set
    ]


def confounding_text(
    evaluation: Evaluation, study_conclusions: StudyConclusions
) -> str:
    """Return what may be confounded with the label, in agreement with the answers."""
    covariate_names = ["site", "scanner", "age", "sex"]
    if study_conclusions.covariates.label == NOTHING_TO_EXPLAIN:
        sentence = (
            "No score was shown to be above chance, so there is no score that "
            f"{_join_with_or(covariate_names)} could explain."
        )
        if study_conclusions.regions_differ.answer == YES:
            sentence += (
                " However, one of these variables may explain why regions differ "
                "between classes."
            )
        return sentence
    covariates_sentence = ""
    if (
        study_conclusions.added_value is not None
        and study_conclusions.added_value.answer == YES
        and study_conclusions.chance.answer == YES
    ):
        compared_kind_set = set(
            map(find_covariate_kind, evaluation.settings["covariates"])
        )
        covariate_names = [
            covariate_name
            for covariate_name in covariate_names
            if covariate_name not in compared_kind_set
        ]
        covariate_names.append("another variable")
        verb = "does" if len(evaluation.settings["covariates"]) == 1 else "do"
        covariates_sentence = (
            f"{capitalize_first_letter(tables.covariates_text(evaluation))} {verb} not "
            "fully explain the score, because brain data improve the prediction from "
            f"{tables.covariates_text(evaluation)}. "
        )
    return (
        f"{covariates_sentence}The label may be confounded with "
        f"{_join_with_or(covariate_names)}. Settings may have been chosen by looking "
        "at these scores."
    )


def judge_network(evaluation: Evaluation) -> Conclusion | None:
    """Answer whether the neural network adds to the ridge regression it starts from.

    None if the main model does not add a network to a ridge regression. "NO": it made
    the score worse. A weight alone shows nothing, because networks get one in some
    folds of permuted labels as well.
    """
    question_text = "Does the neural network help?"
    main_model_name = evaluation.models[0]
    weights_beside_ridge = tables.collect_known_network_weights(
        evaluation, main_model_name
    )
    if not weights_beside_ridge.size:
        return None
    n_used_networks = int((weights_beside_ridge > 0).sum())
    folds_text = count_text(weights_beside_ridge.size, "fold")
    if not n_used_networks:
        return Conclusion(
            question_text,
            NOT_SHOWN,
            "It did not clearly improve the prediction of left-out training "
            "participants, so all predictions come from a ridge regression.",
            reason=f"The network had no weight in any of {folds_text}.",
            label=NOT_USED,
        )
    reason_text = f"The network had a weight in {n_used_networks} of {folds_text}"
    n_hardly_trained_folds = count_hardly_trained_folds(evaluation, main_model_name)
    if n_hardly_trained_folds:
        reason_text += (
            f", and was hardly trained in {n_hardly_trained_folds} of these folds"
        )
        if n_hardly_trained_folds == n_used_networks:
            reason_text = reason_text.partition(", and")[0] + (
                ", and was hardly trained there"
            )
    reason_text += "."
    if "LSAP-R" not in evaluation.models:
        sentence = "The study contains no ridge regression for comparison."
        return Conclusion(question_text, NOT_SHOWN, sentence, reason=reason_text)
    comparison_table = tables.person_comparison_table(evaluation, main_model_name)
    comparison_row = comparison_table.set_index("model").loc["LSAP-R"]
    verdict_text = _row_verdict(comparison_row)
    difference_text = _difference_text(comparison_row)
    sentence = (
        f"The difference in balanced accuracy ({main_model_name} minus LSAP-R) is "
        f"{difference_text} (95%; {_holm_phrase(comparison_row)})."
    )
    if verdict_text != YES:
        sentence += (
            " A weight above 0 does not show that the network helps. With permuted "
            "labels, networks also get a weight above 0 in some folds."
        )
    return _judge_model_difference(
        question_text, verdict_text, sentence, comparison_row, reason_text
    )


def judge_probabilities(
    evaluation: Evaluation, chance_conclusion: Conclusion
) -> Conclusion:
    """Answer whether one patient's probability can be trusted.

    "NO": the model was not shown to be better than chance, or its calibration error in
    this study is clearly above `MAX_CALIBRATION_ERROR`. Otherwise "NOT SHOWN", because
    a study has no other sample. "NOT TESTED": the model gives no probabilities.
    """
    question_text = "Can one patient's probability be trusted?"
    main_model_name, class_priors = evaluation.models[0], evaluation.class_priors()
    if _main_probability_table(evaluation) is None:
        sentence = f"{main_model_name} gives no probabilities."
        return Conclusion(question_text, NOT_SHOWN, sentence, label=NOT_TESTED)
    if chance_conclusion.answer != YES:
        reason_text = "The model was not shown to be better than chance."
        sentence = _constant_probabilities_text(evaluation)
        return Conclusion(
            question_text, NOT_SHOWN, sentence, reason=reason_text, label=NO
        )
    error, lower_bound = tables.score_interval_table(evaluation, main_model_name).loc[
        "ece", ["estimate", "low"]
    ]
    error_text = tables.calibration_error_text(evaluation)
    sentences = [f"The average calibration error is {error_text} (95%; perfect: 0)."]
    label = ""
    reason_text = "Probabilities were tested only on average and only in this sample."
    smallest_error = lower_bound if np.isfinite(lower_bound) else error
    if smallest_error > MAX_CALIBRATION_ERROR:
        label = NO
        reason_text = (
            "Even in this study, probabilities differ clearly from the shares of "
            "correct predictions."
        )
    if main_model_name in class_priors:
        class_prior = class_priors[main_model_name]
        # Shares that the user gives may be those of a clinic.
        is_user_prior = isinstance(class_prior, Mapping)
        clinic_clause = "" if is_user_prior else ", which may differ in a clinic"
        sentences.append(
            f"Probabilities assume {class_shares_phrase(class_prior)}{clinic_clause}."
        )
    sentences.append(less_probable_predictions_text(evaluation))
    sentence = " ".join(filter(None, sentences))
    return Conclusion(
        question_text, NOT_SHOWN, sentence, reason=reason_text, label=label
    )


def _main_probability_table(evaluation: Evaluation) -> pd.DataFrame | None:
    """Return the class probabilities of the main model; None if it has none."""
    main_model_row_mask = evaluation.predictions["model"] == evaluation.models[0]
    probability_table = evaluation.predictions[main_model_row_mask].reindex(
        columns=[f"p_{class_name}" for class_name in evaluation.cohort.classes]
    )
    probability_table.columns = list(evaluation.cohort.classes)
    if probability_table.empty or not np.isfinite(probability_table.astype(float)).all(
        axis=None
    ):
        return None
    return probability_table.astype(float)


def _prediction_noun(evaluation: Evaluation, n_predictions: int) -> str:
    """Return what is counted: each scan, or its prediction in each repeat."""
    return "scan" if n_predictions == evaluation.cohort.n_scans else "prediction"


def _constant_probabilities_text(evaluation: Evaluation) -> str:
    """Return that one class is nearly always the most probable one; may be ""."""
    probability_table = _main_probability_table(evaluation)
    if probability_table is None:
        return ""
    class_counts = probability_table.idxmax(axis=1).value_counts()
    n_predictions = len(probability_table)
    if class_counts.iloc[0] < MIN_CONSTANT_SHARE * n_predictions:
        return ""
    unit_noun = _prediction_noun(evaluation, n_predictions)
    return (
        "The probabilities hardly differ: "
        f"{class_counts.index[0]} is the most probable class in {class_counts.iloc[0]} "
        f"of {count_text(n_predictions, unit_noun)}. "
        f"{less_probable_predictions_text(evaluation)}"
    ).strip()


def less_probable_predictions_text(evaluation: Evaluation) -> str:
    """Return how many predicted classes are not the most probable one; may be ""."""
    probability_table = _main_probability_table(evaluation)
    if probability_table is None:
        return ""
    main_model_row_mask = evaluation.predictions["model"] == evaluation.models[0]
    predicted_labels = evaluation.predictions.loc[main_model_row_mask, "predicted"]
    predicted_probabilities = probability_table.to_numpy()[
        np.arange(len(probability_table)),
        probability_table.columns.get_indexer(predicted_labels),
    ]
    n_less_probable = int(
        (predicted_probabilities < probability_table.max(axis=1)).sum()
    )
    if not n_less_probable:
        return ""
    n_predictions = len(probability_table)
    unit_noun = _prediction_noun(evaluation, n_predictions)
    return (
        "Class weights choose the predicted class, which is not the most probable "
        f"one in {n_less_probable} of {count_text(n_predictions, unit_noun)}."
    )


def judge_each_simple_model(evaluation: Evaluation) -> list[Conclusion]:
    """Compare the main model with each of the simple models that were run."""
    main_model_name = evaluation.models[0]
    comparison_table = tables.person_comparison_table(
        evaluation, main_model_name
    ).set_index("model")
    model_conclusions = []
    for model_name in tables.SIMPLE_MODELS:
        if model_name not in comparison_table.index:
            continue
        comparison_row = comparison_table.loc[model_name]
        if not np.isfinite(comparison_row["difference"]):
            continue
        verdict_text = _row_verdict(comparison_row)
        comparison_sentence = _difference_text(comparison_row)
        # An interval without 0 beside "NOT SHOWN" needs the reason.
        is_p_decisive = verdict_text == NOT_SHOWN and (
            comparison_row["low"] > 0 or comparison_row["high"] < 0
        )
        p_limit_text = f", not below {ALPHA}" if is_p_decisive else ""
        comparison_sentence += f" ({_holm_phrase(comparison_row)}{p_limit_text})"
        conclusion = _judge_model_difference(
            model_name, verdict_text, comparison_sentence, comparison_row
        )
        if evaluation.have_same_predictions(main_model_name, model_name):
            conclusion = replace(
                conclusion, sentence=tables.SAME_PREDICTIONS, label=SAME
            )
        model_conclusions.append(conclusion)
    return model_conclusions


def judge_simple_models(
    model_conclusions: Sequence[Conclusion],
    n_comparisons: int = 1,
    leak_text: str = "",
    model_name: str = "Model",
) -> Conclusion:
    """Answer whether the main model is better than every simple model that was run.

    "NO": it is worse than at least one of them. A model that is better than some has
    their number as verdict. The p-values are corrected for `n_comparisons`, which are
    more than the simple models. With a leak, no gain was shown.
    """
    question_text = "Better than simple models?"
    if not model_conclusions:
        answer_sentence = "No simple model was run on the same folds."
        return Conclusion(question_text, NOT_SHOWN, answer_sentence)
    model_names_by_verdict = _list_model_names_by_verdict(model_conclusions)
    # The comparison that is nearest to a loss gives the numbers.
    hardest_conclusion = min(
        model_conclusions, key=lambda comparison: comparison.estimate
    )
    verdict_text, label = NOT_SHOWN, ""
    if model_names_by_verdict[NO]:
        verdict_text = NO
    elif len(model_names_by_verdict[YES]) == len(model_conclusions):
        verdict_text = YES
    elif model_names_by_verdict[YES]:
        label = f"{len(model_names_by_verdict[YES])} OF {len(model_conclusions)}"
    p_title = "p"
    if n_comparisons > 1:
        p_title = f"Holm p for the {n_comparisons} comparisons of Table 1"
    summary_text = _comparisons_summary_text(model_conclusions, model_names_by_verdict)
    return replace(
        hardest_conclusion,
        question=question_text,
        answer=verdict_text,
        reason="An advantage over simple models cannot be trusted (see Beware)."
        if leak_text
        else summary_text,
        sentence=(
            f"{model_name} minus each model [95%, not corrected], {p_title}. YES: "
            f"interval above 0 and p < {ALPHA}."
        ),
        label=label,
        partial_conclusions=tuple(model_conclusions),
    )


def _list_model_names_by_verdict(
    model_conclusions: Sequence[Conclusion],
) -> dict[str, list[str]]:
    """Return the models with each answer."""
    return {
        verdict_text: [
            model_conclusion.question
            for model_conclusion in model_conclusions
            if model_conclusion.answer == verdict_text
        ]
        for verdict_text in (YES, NO, NOT_SHOWN)
    }


def _comparisons_summary_text(
    model_conclusions: Sequence[Conclusion],
    model_names_by_verdict: Mapping[str, list[str]],
) -> str:
    """Return over which models a gain was shown, and over which not.

    Three or more models are counted, because each has a row below this text.
    """
    if len(model_names_by_verdict[YES]) == len(model_conclusions):
        return f"Better than each of these {len(model_conclusions)} models."
    equal_model_names = [
        model_conclusion.question
        for model_conclusion in model_conclusions
        if model_conclusion.label == SAME
    ]
    unclear_model_names = [
        model_name
        for model_name in model_names_by_verdict[NOT_SHOWN]
        if model_name not in equal_model_names
    ]

    def name_or_count(model_names: list[str]) -> str:
        if len(model_names) < 3:
            return join_with_and(model_names)
        return f"{len(model_names)} of these {len(model_conclusions)} models"

    comparison_phrases = []
    if not (model_names_by_verdict[NO] or model_names_by_verdict[YES]):
        all_models_text = f"any of these {len(model_conclusions)} models"
        if len(model_conclusions) < 3:
            all_models_text = _join_with_or(model_names_by_verdict[NOT_SHOWN])
        comparison_phrases.append(f"not shown to be better than {all_models_text}")
        unclear_model_names = []
    if model_names_by_verdict[NO]:
        comparison_phrases.append(
            f"worse than {join_with_and(model_names_by_verdict[NO])}"
        )
    if model_names_by_verdict[YES]:
        comparison_phrases.append(
            f"better than {name_or_count(model_names_by_verdict[YES])}"
        )
    if unclear_model_names:
        comparison_phrases.append(
            f"not shown to be better than {name_or_count(unclear_model_names)}"
        )
    if equal_model_names:
        comparison_phrases.append(
            f"the same predictions as {join_with_and(equal_model_names)}"
        )
    return f"{capitalize_first_letter('; '.join(comparison_phrases))}."


def judge_added_value(evaluation: Evaluation) -> Conclusion | None:
    """Answer whether brain data improve the prediction from covariates.

    None if models of covariates were not run. LSAP-R with the covariates is compared
    with the covariates alone. "NO": brain data make the score worse.
    """
    comparison_table = tables.added_value_comparison_table(evaluation)
    covariates_phrase = tables.covariates_text(evaluation)
    if comparison_table.empty or not covariates_phrase:
        return None
    question_text = f"Do brain data improve the prediction from {covariates_phrase}?"
    covariates_model_name, brain_model_name, joint_model_name = ADDED_VALUE_MODELS
    comparison_row = comparison_table.set_index("model").loc[covariates_model_name]
    if not np.isfinite(comparison_row["difference"]):
        sentence = "The models could not be trained in every fold."
        return Conclusion(question_text, NOT_SHOWN, sentence)
    verdict_text = _row_verdict(comparison_row)
    difference_text = _difference_text(comparison_row)
    joint_score, covariates_score, brain_score = (
        _get_balanced_accuracy(evaluation, model_name)
        for model_name in (joint_model_name, covariates_model_name, brain_model_name)
    )
    sentence = (
        f"Balanced accuracy is {joint_score:.3f} from brain data with "
        f"{covariates_phrase}, and {covariates_score:.3f} from {covariates_phrase} "
        f"alone. The difference is {difference_text} (95%; "
        f"{_holm_phrase(comparison_row)}). From brain data alone, it is "
        f"{brain_score:.3f}."
    )
    if evaluation.have_same_predictions(covariates_model_name, joint_model_name):
        sentence = (
            f"The predictions from {covariates_phrase} are the same with and without "
            f"the score of {brain_model_name}."
        )
    return _judge_model_difference(
        question_text, verdict_text, sentence, comparison_row
    )


def _get_balanced_accuracy(evaluation: Evaluation, model_name: str) -> float:
    """Return the balanced accuracy of a model over all test scans."""
    score_table = tables.score_interval_table(evaluation, model_name)
    return float(score_table.loc["balanced_accuracy", "estimate"])


def _judge_model_difference(
    question_text: str,
    verdict_text: str,
    sentence: str,
    comparison_row: pd.Series,
    reason: str = "",
) -> Conclusion:
    """Return the answer with the numbers of a comparison of two models."""
    return Conclusion(
        question_text,
        verdict_text,
        sentence,
        comparison_row["difference"],
        comparison_row["low"],
        comparison_row["high"],
        comparison_row["p_holm"],
        reason=reason,
    )


def judge_connectome(evaluation: Evaluation) -> Conclusion:
    """Answer whether the connectome helps.

    "YES" requires :func:`brainlsap.evaluation.connectome_gain`: more than each kind of
    random connectomes adds. A better score than that of a ridge regression without the
    connectome is not enough, because averages over random connectomes gain as well; a
    worse one means "NO" or, beside such a gain, "NOT SHOWN".
    """
    connectome_model_name = (
        "LSAP-R" if "LSAP-R" in evaluation.models else evaluation.models[0]
    )
    baseline_name = NESTED_RIDGES[0]
    verdict_text = NOT_SHOWN
    reason_text = unused_connectome_sentence = ""
    score_sentences = []
    partial_conclusions = tuple[Conclusion, ...]()
    estimate = interval_low = interval_high = p_value = np.nan
    if evaluation.connectome_gain is not None:
        connectome_gain = ConnectomeGain(evaluation.connectome_gain)
        network_gain_verdict = connectome_gain.network
        estimate, interval_low, interval_high = (
            network_gain_verdict.lead,
            network_gain_verdict.low,
            network_gain_verdict.high,
        )
        partial_conclusions = _judge_connectome_gains(connectome_gain)
        reason_text = _gain_sentence(partial_conclusions)
        unused_connectome_sentence = _unused_connectome_sentence(
            evaluation, connectome_model_name
        )
        if network_gain_verdict.answer == "yes":
            verdict_text = YES
    if baseline_name in evaluation.models and connectome_model_name != baseline_name:
        comparison_table = tables.person_comparison_table(
            evaluation, connectome_model_name
        ).set_index("model")
        comparison_row = comparison_table.loc[baseline_name]
        score_verdict_text = _row_verdict(comparison_row)
        if score_verdict_text == NO:
            verdict_text = NOT_SHOWN if verdict_text == YES else NO
        score_sentences.append(
            _connectome_score_gain_sentence(
                evaluation, connectome_model_name, comparison_row, score_verdict_text
            )
        )
        if _has_random_connectome_score(evaluation, connectome_model_name):
            random_connectome_row = comparison_table.loc[RANDOM_CONNECTOME_RIDGE]
            if _row_verdict(random_connectome_row) == NO and verdict_text == YES:
                verdict_text = NOT_SHOWN
            score_sentences.append(
                _random_connectome_score_sentence(evaluation, random_connectome_row)
            )
        if evaluation.connectome_gain is None:
            comparison_columns = ["difference", "low", "high", "p_holm"]
            estimate, interval_low, interval_high, p_value = comparison_row[
                comparison_columns
            ]
    elif not partial_conclusions:
        score_sentences.append(
            "The study contains no comparison of models with and without the "
            "connectome."
        )
    return Conclusion(
        "Does the connectome help?",
        verdict_text,
        " ".join(filter(None, [unused_connectome_sentence, *score_sentences])),
        estimate,
        interval_low,
        interval_high,
        p_value,
        reason=reason_text,
        partial_conclusions=partial_conclusions,
        criterion=_GAIN_CRITERION if partial_conclusions else "",
    )


def _gain_sentence(partial_conclusions: Sequence[Conclusion]) -> str:
    """Return whether a gain over random connectomes was shown, and if not, why."""
    if {gain.answer for gain in partial_conclusions} == {YES}:
        return (
            "The connectome of the study adds more information than random connectomes "
            "do."
        )
    if _is_only_gain_over_none_missed(partial_conclusions):
        return "No gain over a model without connectome was shown."
    return (
        f"No gain of {MIN_LOG_CREDIT:.1f} nats (data 20 times as probable) over random "
        "connectomes was shown."
    )


def _unused_connectome_sentence(evaluation: Evaluation, ridge_name: str) -> str:
    """Return that a ridge chose no connectome in all folds; "" if it chose one."""
    ridge_row_mask = evaluation.fits["model"] == ridge_name
    ridge_fit_table = evaluation.fits[ridge_row_mask]
    if collect_model_settings(ridge_fit_table).get("scales") != "auto":
        return ""
    chosen_ridge_kinds = tables.list_reported_values(ridge_fit_table, "chosen")
    if chosen_ridge_kinds.count("none") == len(chosen_ridge_kinds) > 0:
        folds_text = count_text(len(chosen_ridge_kinds), "fold")
        return f"{ridge_name} used no connectome in any of {folds_text}."
    return ""


def _has_random_connectome_score(
    evaluation: Evaluation, connectome_model_name: str
) -> bool:
    """Return whether LSAP-R used a connectome and was also fitted to a random one."""
    return (
        connectome_model_name == "LSAP-R"
        and RANDOM_CONNECTOME_RIDGE in evaluation.models
        and not any(
            evaluation.have_same_predictions(connectome_model_name, model_name)
            for model_name in (NESTED_RIDGES[0], RANDOM_CONNECTOME_RIDGE)
        )
    )


def _random_connectome_score_sentence(
    evaluation: Evaluation, comparison_row: pd.Series
) -> str:
    """Return the score of LSAP-R and that with a random connectome, if both ran."""
    if not np.isfinite(comparison_row["difference"]):
        return ""
    verdict_text = _row_verdict(comparison_row)
    verdict_phrase = {
        YES: "scores better",
        NO: "scores worse",
        NOT_SHOWN: "was not shown to score better",
    }[verdict_text]
    study_score, random_score = (
        _get_balanced_accuracy(evaluation, model_name)
        for model_name in ("LSAP-R", RANDOM_CONNECTOME_RIDGE)
    )
    return (
        f"LSAP-R {verdict_phrase} with the study's than with a random connectome: "
        f"{study_score:.3f} and {random_score:.3f} "
        f"({_holm_phrase(comparison_row)})."
    )


def _connectome_score_gain_sentence(
    evaluation: Evaluation,
    connectome_model_name: str,
    comparison_row: pd.Series,
    score_verdict_text: str,
) -> str:
    """Return the score minus that without the connectome, and what it is worth.

    The question about simple models has the numbers, unless the network changes them.
    """
    baseline_name = NESTED_RIDGES[0]
    if not np.isfinite(
        comparison_row["difference"]
    ) or evaluation.have_same_predictions(connectome_model_name, baseline_name):
        return ""
    unmeasured_text = ""
    if RANDOM_CONNECTOME_RIDGE not in evaluation.models:
        unmeasured_text = "the balanced accuracy of random connectomes was not measured"
    if evaluation.have_same_predictions(evaluation.models[0], connectome_model_name):
        if score_verdict_text == NOT_SHOWN:
            return ""
        direction_word = "higher" if score_verdict_text == YES else "lower"
        score_sentence = (
            f"The balanced accuracy is {direction_word} than that of {baseline_name} "
            "(question 2)"
        )
        if score_verdict_text == YES and unmeasured_text:
            score_sentence += f", but {unmeasured_text}"
        return f"{score_sentence}."
    score_sentence = (
        "Difference in balanced accuracy, "
        f"{_name_connectome_ridge(evaluation, connectome_model_name)} minus "
        f"{baseline_name}: {_difference_text(comparison_row)} (95%; "
        f"{_holm_phrase(comparison_row)})."
    )
    if score_verdict_text != YES or not unmeasured_text:
        return score_sentence
    return f"{score_sentence} {capitalize_first_letter(unmeasured_text)}."


def _name_connectome_ridge(evaluation: Evaluation, connectome_model_name: str) -> str:
    """Return the ridge regression with the connectome, apart from its network."""
    main_model_name = evaluation.models[0]
    has_network = (
        tables.collect_known_network_weights(evaluation, main_model_name).size > 0
    )
    if not has_network or evaluation.have_same_predictions(
        main_model_name, connectome_model_name
    ):
        return connectome_model_name
    return f"{connectome_model_name} ({main_model_name} without its network)"


def _judge_connectome_gains(connectome_gain: ConnectomeGain) -> tuple[Conclusion, ...]:
    """Return the gain of the study's connectome over none and over random ones.

    Each gain is a requirement; the gains of random connectomes are in Figure 3.
    """
    partial_conclusions = []
    gain_table = connectome_gain.table.set_index("connectome")
    for connectome_name in COMPARED_CONNECTOMES:
        gain_row = gain_table.loc[connectome_name]
        is_random = connectome_name != "original"
        statistic_name = "evidence_lead" if is_random else "evidence_gain"
        estimate, low, high = (
            gain_row[f"{statistic_name}{bound_suffix}"]
            for bound_suffix in ("", "_low", "_high")
        )
        has_gain = estimate >= MIN_LOG_CREDIT and (low > 0 or not is_random)
        answer, label = (YES, "") if has_gain else (NOT_SHOWN, TOO_IMPRECISE)
        if high < -MIN_LOG_CREDIT:
            answer, label = NO, LOSS
        elif high < MIN_LOG_CREDIT:
            label = BELOW_LIMIT
        partial_conclusions.append(
            Conclusion(
                "study's connectome minus "
                + (connectome_name if is_random else "no connectome"),
                answer,
                _gain_in_nats_text(estimate, low, high),
                estimate,
                low,
                high,
                label=label,
            )
        )
    return tuple(partial_conclusions)


def list_decisive_gains(connectome_conclusion: Conclusion) -> list[Conclusion]:
    """Return the gains over random connectomes, or that over none if only it is missed.

    A test without a separate scale for each region can find that a connectome adds
    less than none although a model with such scales scores better.
    """
    gains = connectome_conclusion.partial_conclusions
    return [*gains] if _is_only_gain_over_none_missed(gains) else [*gains[1:]]


def _is_only_gain_over_none_missed(gains: Sequence[Conclusion]) -> bool:
    """Return whether gains were shown over all random connectomes but not over none."""
    gain_over_none, *gains_over_random = gains
    return gain_over_none.answer != YES and {
        gain.answer for gain in gains_over_random
    } == {YES}


def _gain_in_nats_text(estimate: float, low: float, high: float) -> str:
    """Return a gain with its interval; each bound shows on which side of 0 it is."""
    is_near_zero = any(abs(bound) < 0.05 for bound in (low, high))
    n_digits = 2 if is_near_zero else 1
    return f"{estimate:+z.{n_digits}f} [{low:+z.{n_digits}f}, {high:+z.{n_digits}f}]"


def judge_effects_and_contrasts(
    evaluation: Evaluation,
) -> tuple[Conclusion, Conclusion]:
    """Answer in which regions classes differ, and where more than in connected ones."""
    question_by_column = {
        "p_effect": "Which regions differ?",
        "p_contrast": "Which regions stand out from connected regions?",
    }
    p_value_table = _region_p_value_table(evaluation)
    if p_value_table is None:
        sentence = (
            "Regions were not tested, because there were fewer than "
            f"{FEWEST_PERMUTATIONS} permutations."
        )
        difference_conclusion, contrast_conclusion = (
            Conclusion(question_text, NOT_SHOWN, sentence, label=NOT_TESTED)
            for question_text in question_by_column.values()
        )
        return difference_conclusion, contrast_conclusion
    difference_conclusion, contrast_conclusion = (
        _judge_region_test(evaluation, question_text, p_value_table, p_column)
        for p_column, question_text in question_by_column.items()
    )
    differing_region_names, outstanding_region_names = (
        _list_significant_regions(p_value_table, p_column)
        for p_column in question_by_column
    )
    exception_text = _name_regions_not_outstanding(
        evaluation, differing_region_names, outstanding_region_names
    )
    if contrast_conclusion.answer == YES and exception_text is not None:
        borderline_text = borderline_regions_text(
            p_value_table,
            "p_contrast",
            _count_permutations(evaluation),
            evaluation.cohort.atlas,
        )
        sentence = _same_regions_sentence(evaluation, exception_text)
        if borderline_text:
            sentence = f"{sentence.removesuffix('.')} ({borderline_text})."
        contrast_conclusion = replace(contrast_conclusion, sentence=sentence)
    return difference_conclusion, contrast_conclusion


def _region_test_table(evaluation: Evaluation) -> pd.DataFrame | None:
    """Return the table with the tests of regions, or None."""
    region_test_table = evaluation.region_tests
    if region_test_table is None:
        region_test_table = evaluation.ranking
    if region_test_table is None or "p_effect" not in region_test_table:
        return None
    return region_test_table


def _count_permutations(evaluation: Evaluation) -> int:
    """Return the number of permutations of the tests of regions."""
    region_test_table = _region_test_table(evaluation)
    return (
        0
        if region_test_table is None
        else int(region_test_table["n_permutations"].iloc[0])
    )


def _name_regions_not_outstanding(
    evaluation: Evaluation,
    differing_region_names: list[str],
    outstanding_region_names: list[str],
) -> str | None:
    """Return which of the regions that differ do not stand out; "" for none.

    None if another region stands out, or if most that differ do not.
    """
    exception_region_names = [
        region_name
        for region_name in differing_region_names
        if region_name not in outstanding_region_names
    ]
    has_other_region = not set(outstanding_region_names) <= set(differing_region_names)
    if has_other_region or 2 * len(exception_region_names) >= len(
        differing_region_names
    ):
        return None
    return (
        region_names_text(exception_region_names, evaluation.cohort.atlas)
        if exception_region_names
        else ""
    )


def _same_regions_sentence(evaluation: Evaluation, exception_text: str) -> str:
    """Return that regions that differ stand out."""
    regions_text = "The same regions"
    if exception_text:
        regions_text += f" except {exception_text}"
    return (
        f"{regions_text}: in each of them, the difference in "
        f"{tables.feature_text(evaluation.cohort)} is larger than in the mean of the "
        "connected regions."
    )


def _region_p_value_table(evaluation: Evaluation) -> pd.DataFrame | None:
    """Return p-values and sizes of both tests by region; None without enough draws."""
    region_test_table = _region_test_table(evaluation)
    if (
        region_test_table is None
        or _count_permutations(evaluation) < FEWEST_PERMUTATIONS
    ):
        return None
    # The largest of several features counts: p-values are corrected over all.
    test_rows_by_region = region_test_table.groupby("region", sort=False)
    p_value_table = test_rows_by_region[["p_effect", "p_contrast"]].min()
    # Contrasts of equal p-values are ordered by their standardised size.
    for statistic_name, statistic_column in (
        ("effect", "effect"),
        ("contrast", "contrast_z"),
    ):
        absolute_statistic_series = pd.Series(0.0, index=region_test_table.index)
        if statistic_column in region_test_table:
            absolute_statistic_series = region_test_table[statistic_column].abs()
        p_value_table[statistic_name] = absolute_statistic_series.groupby(
            region_test_table["region"]
        ).max()
    return p_value_table.reset_index()


def difference_phrase(evaluation: Evaluation) -> str:
    """Return the alternative of the tests of regions: a trend, or any difference."""
    if is_trend_tested(evaluation):
        return "trend over the ordered classes"
    return "difference between classes"


def _judge_region_test(
    evaluation: Evaluation,
    question_text: str,
    p_value_table: pd.DataFrame,
    p_column: str,
) -> Conclusion:
    """Count and name the regions that pass one corrected test."""
    tested_region_table = p_value_table.dropna(subset=p_column)
    tested_regions_text = count_text(len(tested_region_table), "region")
    smallest_p = float(tested_region_table[p_column].min())
    region_names = _list_significant_regions(tested_region_table, p_column)
    n_significant_regions = len(region_names)
    n_permutations = _count_permutations(evaluation)
    if not n_significant_regions:
        answer_sentence = (
            f"None of {tested_regions_text} has a corrected p below {ALPHA} (smallest: "
            f"{p_phrase(smallest_p)}, {count_text(n_permutations, 'permutation')})."
        )
        return Conclusion(
            question_text,
            NOT_SHOWN,
            answer_sentence,
            0.0,
            p_value=smallest_p,
            label=NONE_SHOWN,
        )
    p_series = tested_region_table.set_index("region").loc[region_names, p_column]
    largest_p_phrase = p_phrase(float(p_series.max()), 1 / (n_permutations + 1))
    if n_significant_regions > 1:
        largest_p_phrase = largest_p_phrase.replace("=", "\N{LESS-THAN OR EQUAL TO}")
    correction_text = f"{largest_p_phrase}, corrected for {tested_regions_text}"
    borderline_text = borderline_regions_text(
        tested_region_table, p_column, n_permutations, evaluation.cohort.atlas
    )
    if borderline_text:
        correction_text += f"; {borderline_text}"
    if p_column == "p_effect":
        direction_text = _directions_text(
            evaluation, region_names, uses_past_tense=False
        )
        effect_range_text = _effect_range_text(evaluation, region_names)
        answer_sentence = (
            f"{direction_text} ({difference_phrase(evaluation)}{effect_range_text}; "
            f"{correction_text})."
        )
    else:
        region_text = region_names_text(region_names, evaluation.cohort.atlas)
        subject_text = (
            "the region is" if n_significant_regions == 1 else "the regions are"
        )
        answer_sentence = f"{subject_text} {region_text} ({correction_text})."
    return Conclusion(
        question_text,
        YES,
        capitalize_first_letter(answer_sentence),
        float(n_significant_regions),
        p_value=smallest_p,
        label=f"{n_significant_regions} OF {len(tested_region_table)}",
    )


def _effect_range_text(evaluation: Evaluation, region_names: list[str]) -> str:
    """Return the range of the correlations with the class number, or ""."""
    effect_series = _effect_series(evaluation)
    if effect_series is None:
        return ""
    smallest_effect, largest_effect = (
        effect_series[region_names].min(),
        effect_series[region_names].max(),
    )
    range_text = f"{smallest_effect:z.2f}"
    if f"{largest_effect:z.2f}" != range_text:
        range_text += f" to {largest_effect:z.2f}"
    return f", correlation {range_text}"


def list_cautions(evaluation: Evaluation, leak_text: str) -> tuple[str, ...]:
    """Return cautions for the use of all answers, from the most serious."""
    cautions = []
    if leak_text:
        cautions.append(leak_text)
    cautions += _list_swapped_scan_sentences(evaluation)
    if has_shared_connectome(evaluation):
        cautions.append(_SHARED_CONNECTOME_CAUTION)
    audit_table = evaluation.audit
    if audit_table is None:
        cautions.append("No leakage audit was made.")
    else:
        warning_table = _select_warning_table(audit_table)
        covariate_finding_mask = (
            warning_table["check"] == CheckKey.COVARIATE_PREDICTS_LABEL
        )
        other_warning_table = warning_table[~covariate_finding_mask]
        n_findings_by_text = Counter(
            f"{check_title(check_key).capitalize()}: {finding_text}"
            for check_key, finding_text in zip(
                other_warning_table["check"],
                other_warning_table["finding"],
                strict=True,
            )
        )
        cautions += [
            f"{finding_text}{f' ({n_findings} times)' if n_findings > 1 else ''}."
            for finding_text, n_findings in n_findings_by_text.items()
        ]
    cautions += _list_subgroup_gap_texts(evaluation)
    n_incomplete_folds = tables.count_incomplete_folds(evaluation)
    if n_incomplete_folds:
        cautions.append(
            f"{count_text(n_incomplete_folds, 'test fold')} had no scans of at least "
            "one class."
        )
    study_settings = evaluation.settings
    division_text = f"one division into {study_settings['n_folds']} folds"
    if study_settings["n_repeats"] > 1:
        division_text = f"{study_settings['n_repeats']} divisions into folds"
    cautions.append(
        f"Models were tested in one sample, with {division_text} and no external test."
    )
    count_table = evaluation.cohort.class_counts()
    smallest_class_row = count_table.loc[count_table["participants"].idxmin()]
    if smallest_class_row["participants"] < SMALL_CLASS:
        cautions.append(
            f"The class {smallest_class_row['class']} has only "
            f"{count_text(smallest_class_row['participants'], 'participant')}."
        )
    return tuple(cautions)


def _list_swapped_scan_sentences(evaluation: Evaluation) -> list[str]:
    """Return which scans may have swapped sides, by code if the scans have codes."""
    cohort_table = evaluation.cohort.table
    if "quality_swapped" not in cohort_table:
        return []
    names_column = "code" if "code" in cohort_table else "scan"
    swapped_name_series = cohort_table.set_index(names_column)["quality_swapped"]
    return list_swapped_scan_sentences(list_swapped_scans_by_value(swapped_name_series))


def _list_subgroup_gap_texts(evaluation: Evaluation) -> list[str]:
    """Return the differences between groups whose simultaneous interval excludes 0."""
    group_table = subgroup_table(evaluation)
    gap_texts = []
    for gap_record in subgroup_gap_table(evaluation).to_dict("records"):
        if not gap_record["low"] > 0 and not gap_record["high"] < 0:
            continue
        same_column_group_mask = group_table["column"] == gap_record["column"]
        score_series = group_table[same_column_group_mask].set_index("group")[
            "balanced_accuracy"
        ]
        bounds_text = f"[{gap_record['low']:+z.3f}, {gap_record['high']:+z.3f}]"
        gap_texts.append(
            f"The score differs by {gap_record['column']}: "
            f"{score_series[gap_record['higher']]:.3f} for {gap_record['higher']}, "
            f"and {score_series[gap_record['lower']]:.3f} for {gap_record['lower']}. "
            f"The difference is {gap_record['difference']:+z.3f} {bounds_text} (95% "
            "interval, corrected for all pairs of groups)."
        )
    return gap_texts


def _leak_text(evaluation: Evaluation) -> str:
    """Return the reason for which scores do not apply to new participants, or ""."""
    if evaluation.settings.get("people_shared"):
        return (
            "Scans of one participant are in training and test folds, so scores do not "
            "apply to new participants."
        )
    if evaluation.audit is None:
        return ""
    error_finding_mask = evaluation.audit["severity"] == "error"
    leak_check_keys = evaluation.audit.loc[error_finding_mask, "check"]
    if leak_check_keys.empty:
        return ""
    titles_text = join_with_and(dict.fromkeys(map(check_title, leak_check_keys)))
    n_errors_text = count_text(len(leak_check_keys), "error")
    return f"The leakage audit found {n_errors_text}: {titles_text}."


def _withdraw_conclusion(
    conclusion: Conclusion, reason: str, withdrawn_answers: Sequence[str] = (YES,)
) -> Conclusion:
    """Return "NOT SHOWN" in place of some answers if there is a reason to doubt them.

    A "NO" is to be doubted, too, if its interval may be too narrow.
    """
    if not reason or conclusion.answer not in withdrawn_answers:
        return conclusion
    return replace(
        conclusion,
        answer=NOT_SHOWN,
        sentence=capitalize_first_letter(conclusion.sentence) + _NOT_VALID,
        reason="",
        label="",
        partial_conclusions=_withdraw_partial_conclusions(
            conclusion.partial_conclusions, reason
        ),
    )


def _withdraw_partial_conclusions(
    partial_conclusions: Sequence[Conclusion], reason: str
) -> tuple[Conclusion, ...]:
    """Withdraw parts as :func:`_withdraw_conclusion` does, without remarks."""
    return tuple(
        replace(
            _withdraw_conclusion(partial_conclusion, reason),
            sentence=partial_conclusion.sentence,
        )
        for partial_conclusion in partial_conclusions
    )


def _averaging_text(evaluation: Evaluation) -> str:
    """Return that features are averaged, "" if no prediction uses the connectome."""
    is_averaged = (
        find_method_key(evaluation) in CONNECTOME_METHODS
        and has_connectome(evaluation)
        and not evaluation.have_same_predictions(evaluation.models[0], NESTED_RIDGES[0])
    )
    return ", averaged along the connectome," if is_averaged else ""


def _write_quote(
    evaluation: Evaluation, study_conclusions: StudyConclusions, leak_text: str
) -> str:
    """Return the sentences that a manuscript may quote."""
    cohort, chance_conclusion = evaluation.cohort, study_conclusions.chance
    quote_start = "In simulated data, " if cohort.truth is not None else ""
    predictor_phrase = predictor_text(evaluation)
    people_text = count_text(cohort.n_participants, "participant")
    task_text = (
        f"{people_text} ({count_text(cohort.n_scans, 'scan')}; {len(cohort.classes)} "
        f"classes of {cohort.label_name}) by their {tables.feature_text(cohort)}"
        f"{_averaging_text(evaluation)}"
    )
    quote_sentences = []
    if np.isfinite(chance_conclusion.estimate):
        numbers_text = (
            f"balanced accuracy {chance_conclusion.estimate:.3f}, 95% interval "
            f"{chance_conclusion.low:.3f} to {chance_conclusion.high:.3f}, chance "
            f"{1 / len(cohort.classes):.3f}, one-sided "
            f"{p_phrase(chance_conclusion.p_value)}"
        )
        if chance_conclusion.answer == YES:
            quote_sentences.append(
                f"{predictor_phrase} classified {task_text} better than chance under "
                f"cross-validation ({numbers_text})."
            )
        elif not leak_text:
            quote_sentences.append(
                f"{predictor_phrase} was not shown to classify {task_text} better than "
                f"chance under cross-validation ({numbers_text})."
            )
        main_model_name = evaluation.models[0]
        weights_beside_ridge = tables.collect_known_network_weights(
            evaluation, main_model_name
        )
        n_unused_networks = int((weights_beside_ridge == 0).sum())
        is_network_unused = tables.has_unused_network(evaluation, main_model_name)
        if quote_sentences and n_unused_networks and not is_network_unused:
            folds_text = count_text(weights_beside_ridge.size, "fold")
            quote_sentences.append(
                f"In {n_unused_networks} of {folds_text}, the neural network had no "
                "weight, and all predictions came from a ridge regression."
            )
    baseline_sentence = _quote_comparison_sentence(study_conclusions)
    if quote_sentences and baseline_sentence:
        quote_sentences.append(baseline_sentence)
    # A finding without effect is reported as well.
    if (
        chance_conclusion.answer == YES
        and study_conclusions.connectome.answer != YES
        and study_conclusions.connectome.partial_conclusions
    ):
        quote_sentences.append(
            "The connectome was not shown to improve the classification."
        )
    regions_conclusion = study_conclusions.regions_differ
    unadjusted_covariates = _list_unadjusted_covariates(evaluation)
    unadjusted_text = (
        f"; not adjusted for {join_with_and(unadjusted_covariates)}"
        if unadjusted_covariates
        else ""
    )
    p_value_table = _region_p_value_table(evaluation)
    if regions_conclusion.answer == YES and p_value_table is not None:
        quote_sentences += _list_region_quote_sentences(
            evaluation,
            study_conclusions,
            p_value_table,
            f"family-wise p < {ALPHA}{unadjusted_text}",
        )
    elif np.isfinite(regions_conclusion.estimate) and not leak_text:
        quote_sentences.append("No region was shown to differ between classes.")
    if not quote_sentences:
        return "Nothing, because no score or test of this study is valid."
    quote_sentences[0] = capitalize_first_letter(quote_start + quote_sentences[0])
    return " ".join(quote_sentences)


def _quote_comparison_sentence(study_conclusions: StudyConclusions) -> str:
    """Return over which simple models a gain was shown; "" without any."""
    model_names_by_verdict = _list_model_names_by_verdict(
        study_conclusions.simple_models.partial_conclusions
    )
    better_model_names = model_names_by_verdict[YES]
    if study_conclusions.chance.answer != YES or not better_model_names:
        return ""
    sentence = (
        f"It scored higher than {join_with_and(better_model_names)} (Holm p < {ALPHA})"
    )
    other_model_names = [
        *model_names_by_verdict[NO],
        *model_names_by_verdict[NOT_SHOWN],
    ]
    if other_model_names:
        sentence += (
            f", but not demonstrably higher than {join_with_and(other_model_names)}"
        )
    return f"{sentence}."


def _list_region_quote_sentences(
    evaluation: Evaluation,
    study_conclusions: StudyConclusions,
    p_value_table: pd.DataFrame,
    test_text: str,
) -> list[str]:
    """Return the regions that differ and stand out, as sentences for a manuscript."""
    atlas = evaluation.cohort.atlas
    differing_region_names, outstanding_region_names = (
        _list_significant_regions(p_value_table, p_column)
        for p_column in ("p_effect", "p_contrast")
    )
    regions_text = count_text(int(evaluation.cohort.measured.sum()), "region")
    direction_text = _directions_text(
        evaluation, differing_region_names, uses_past_tense=True
    )
    n_permutations = _count_permutations(evaluation)
    borderline_text = borderline_regions_text(
        p_value_table, "p_effect", n_permutations, atlas
    )
    if borderline_text:
        test_text = f"{test_text}; {borderline_text}"
    difference_sentence = (
        f"{direction_text} ({len(differing_region_names)} of {regions_text}; "
        f"{difference_phrase(evaluation)}, {test_text})."
    )
    if study_conclusions.regions_stand_out.answer != YES:
        stand_out_sentence = (
            "No region was shown to stand out from the regions connected to it."
        )
    else:
        exception_text = _name_regions_not_outstanding(
            evaluation, differing_region_names, outstanding_region_names
        )
        outstanding_text = count_text(len(outstanding_region_names), "region")
        borderline_text = borderline_regions_text(
            p_value_table, "p_contrast", n_permutations, atlas
        )
        if borderline_text:
            borderline_text = f"; {borderline_text}"
        if len(differing_region_names) > 1 and exception_text is not None:
            subject_phrase, n_regions_text = f"These {outstanding_text}", ""
            if exception_text:
                subject_phrase = f"These regions except {exception_text}"
                n_regions_text = f"{outstanding_text}, "
        else:
            n_regions_text = f"{outstanding_text}, "
            subject_phrase = region_names_text(outstanding_region_names, atlas)
        pronoun = "it" if len(outstanding_region_names) == 1 else "them"
        stand_out_sentence = (
            f"{subject_phrase} stood out from the regions connected to {pronoun} "
            f"({n_regions_text}family-wise p < {ALPHA}{borderline_text})."
        )
    return [
        capitalize_first_letter(difference_sentence),
        capitalize_first_letter(stand_out_sentence),
    ]


def _list_significant_regions(p_value_table: pd.DataFrame, p_column: str) -> list[str]:
    """Return regions with a small corrected p, from the largest statistic."""
    significant_region_mask = p_value_table[p_column] < ALPHA
    significant_table = p_value_table[significant_region_mask].sort_values(
        [p_column.removeprefix("p_"), p_column], ascending=[False, True], kind="stable"
    )
    return list(significant_table["region"])


def _directions_text(
    evaluation: Evaluation, region_names: list[str], *, uses_past_tense: bool
) -> str:
    """Return in which regions values are lower and higher in later classes.

    Without directions (classes without an order, or several features), only that the
    classes differ.
    """
    cohort = evaluation.cohort
    effect_sign_series = _effect_sign_series(evaluation)
    if effect_sign_series is None:
        verb = "differed" if uses_past_tense else "differ"
        return f"classes {verb} in {region_names_text(region_names, cohort.atlas)}"
    first_class, last_class = cohort.classes[0], cohort.classes[-1]
    class_comparison_text = f"towards {last_class}"
    if len(cohort.classes) == 2:
        class_comparison_text = f"in {last_class} than in {first_class}"
    # "Falls" would read as a change of the same people over time.
    verb = "was" if uses_past_tense else "is"
    direction_phrases = []
    for sign, direction_word in ((-1, "lower"), (1, "higher")):
        same_sign_regions = [
            region_name
            for region_name in region_names
            if effect_sign_series[region_name] == sign
        ]
        if same_sign_regions:
            regions_text = region_names_text(same_sign_regions, cohort.atlas)
            direction_phrases.append(
                f"{verb} {direction_word} {class_comparison_text} in {regions_text}"
            )
    return f"{tables.feature_text(cohort)} {', and '.join(direction_phrases)}"


def _effect_sign_series(evaluation: Evaluation) -> pd.Series | None:
    """Return -1 (values fall) or 1 (they rise) by region; None without directions."""
    effect_series = _effect_series(evaluation)
    return None if effect_series is None else np.sign(effect_series)


def _effect_series(evaluation: Evaluation) -> pd.Series | None:
    """Return the effect of every region; None if effects have no direction.

    Eta of classes without an order has no sign, and features can differ in theirs.
    """
    test_table = evaluation.region_tests
    if test_table is None or "F" in test_table:
        return None
    if test_table["feature"].nunique() > 1:
        return None
    return test_table.set_index("region")["effect"]


def _list_forbidden_phrases(
    evaluation: Evaluation, study_conclusions: StudyConclusions
) -> tuple[str, ...]:
    """Return the phrases that a study does not support."""
    cohort = evaluation.cohort
    forbidden_phrases = []
    if study_conclusions.chance.answer != YES:
        forbidden_phrases.append(f"predicts {cohort.label_name}")
    forbidden_phrases += _list_unshown_gain_phrases(study_conclusions)
    added_value_conclusion = study_conclusions.added_value
    if added_value_conclusion is not None and added_value_conclusion.answer != YES:
        covariates_text = tables.covariates_text(evaluation)
        forbidden_phrases.append(
            f"brain data improve the prediction from {covariates_text}"
        )
    network_conclusion = study_conclusions.network
    if network_conclusion is not None and network_conclusion.answer != YES:
        forbidden_phrases.append("the neural network outperforms ridge regression")
    forbidden_phrases += {
        YES: [],
        NOT_SHOWN: [
            "the connectome improves the classification",
            "the connectome does not help",
        ],
        NO: ["the connectome improves the classification"],
    }[study_conclusions.connectome.answer]
    unadjusted_covariates = _list_unadjusted_covariates(evaluation)
    if study_conclusions.regions_differ.answer == YES:
        if unadjusted_covariates:
            forbidden_phrases.append(
                f"differs independently of {join_with_and(unadjusted_covariates)}"
            )
        forbidden_phrases += [
            "the most important region",
            f"region X matters for {cohort.label_name}",
            "the disease begins in region X",
            f"specific to {cohort.classes[-1]}",
        ]
        # Tests are of all classes together, so no pair of classes is tested.
        if len(cohort.classes) > 2:
            forbidden_phrases.append(f"differs already in {cohort.classes[1]}")
    elif np.isfinite(study_conclusions.regions_differ.estimate):
        forbidden_phrases += [
            f"region X matters for {cohort.label_name}",
            "the classes do not differ",
        ]
    if scale_warning_text(evaluation):
        forbidden_phrases.append("region X has a small scale")
    forbidden_phrases.append("works in other samples")
    return tuple(forbidden_phrases)


def _list_unshown_gain_phrases(study_conclusions: StudyConclusions) -> list[str]:
    """Return the claims of gains over simple models that were not shown."""
    simple_models_conclusion = study_conclusions.simple_models
    if simple_models_conclusion.answer == YES:
        return []
    model_names_by_verdict = _list_model_names_by_verdict(
        simple_models_conclusion.partial_conclusions
    )
    if not model_names_by_verdict[YES]:
        return ["outperforms simple models"]
    other_model_names = [
        *model_names_by_verdict[NO],
        *model_names_by_verdict[NOT_SHOWN],
    ]
    return [f"outperforms {_join_with_or(other_model_names)}"]


def _difference_text(comparison_row: pd.Series) -> str:
    """Return the difference of two models with its sign and interval."""
    return (
        f"{comparison_row['difference']:+z.3f} "
        f"[{comparison_row['low']:+z.3f}, {comparison_row['high']:+z.3f}]"
    )


def _holm_phrase(comparison_row: pd.Series) -> str:
    """Return the p of a comparison of models, named after its correction."""
    p_value_phrase = p_phrase(comparison_row["p_holm"])
    return (
        f"Holm {p_value_phrase}"
        if comparison_row["n_comparisons"] > 1
        else p_value_phrase
    )
