"""Text and tables of an external evaluation, beside those of every evaluation."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from brainlsap.evaluation import Evaluation
from brainlsap.evaluation.confounds import list_step_phrases
from brainlsap.report import tables
from brainlsap.text import count, with_and

# Share of people of every class whose prediction set should hold their class.
NOMINAL_COVERAGE = 0.9


def is_external(evaluation: Evaluation) -> bool:
    """Return whether a stored model was tested on other people."""
    return "external" in evaluation.settings


def is_simulated(evaluation: Evaluation) -> bool:
    """Return whether the people, or those of the stored model, were simulated."""
    external_facts = evaluation.settings.get("external", {})
    is_simulated_model = external_facts.get("card", {}).get("is_simulated", False)
    return evaluation.cohort.truth is not None or is_simulated_model


def external_tables(evaluation: Evaluation) -> dict[str, pd.DataFrame]:
    """Return the tables that only an external evaluation has, as text by name."""
    if not is_external(evaluation):
        return {}
    external_facts = evaluation.settings["external"]
    case_mix = pd.DataFrame(external_facts["case_mix"])
    calibration = _number_table(external_facts["calibration"])
    coverage = _number_table(external_facts["coverage"])
    text_tables = {
        "case_mix": case_mix.rename(
            columns={"difference": "difference (s.d. of training)"}
        )
    }
    if len(calibration):
        column_titles = {
            "class": "class",
            "people": "people",
            "frequency": "frequency",
            "mean_probability": "mean probability",
            "slope": "slope [95%]",
            "intercept": "intercept [95%]",
        }
        text_tables["calibration"] = tables.number_texts(calibration, column_titles)
    if len(coverage):
        coverage = coverage.rename(
            columns={"low": "coverage_low", "high": "coverage_high"}
        )
        column_titles = {
            "class": "class",
            "people": "people",
            "coverage": "coverage [95%]",
            "mean_size": "classes in a set",
        }
        text_tables["coverage"] = tables.number_texts(coverage, column_titles)
    return text_tables


def _number_table(table_records: list[dict[str, object]]) -> pd.DataFrame:
    """Return stored rows of classes; a number that is null in the file is NaN."""
    number_table = pd.DataFrame(table_records)
    number_columns = number_table.columns.drop(["class", "people"], errors="ignore")
    return number_table.astype(dict.fromkeys(number_columns, float))


def external_headline(evaluation: Evaluation) -> list[str]:
    """Return the first sentences of the report of an external evaluation."""
    external_facts, cohort = evaluation.settings["external"], evaluation.cohort
    card = external_facts["card"]
    model = evaluation.models[0]
    score_intervals = tables.score_intervals(evaluation, model)
    accuracy = tables.interval_text(*score_intervals.loc["balanced_accuracy"])
    auc = tables.interval_text(*score_intervals.loc["auc"])
    n_present_classes = cohort.table["label"].nunique()
    training = card["training"]
    first_paragraph = (
        f"External evaluation: {model}, which was trained on "
        f"{count(training['n_people'], 'other participant')}, predicts "
        f"{cohort.label_name} ({', '.join(cohort.classes)}) with a balanced accuracy "
        f"of {accuracy} and an AUC of {auc} (95% intervals over participants). The "
        f"test contains {count(cohort.n_scans, 'scan')} of "
        f"{count(cohort.n_participants, 'participant')}. A model that predicts the "
        f"same class for everybody reaches at most {1 / n_present_classes:.3f}, "
        f"because {n_present_classes} classes are present."
    )
    if is_simulated(evaluation):
        first_paragraph += (
            " The data are simulated, so no conclusion about people is possible."
        )
    paragraphs = [first_paragraph, _cross_validation_text(card)]
    n_unlike_of_kind = {
        difference_kind: n_scans
        for difference_kind, n_scans in external_facts["n_unlike"].items()
        if n_scans
    }
    if n_unlike_of_kind:
        difference_texts = [
            f"{n_scans} of {count(cohort.n_scans, 'scan')} have {difference_kind} "
            "unlike those of the training scans"
            for difference_kind, n_scans in n_unlike_of_kind.items()
        ]
        paragraphs.append(
            f"{with_and(difference_texts)}. The predictions for these scans are less "
            "reliable."
        )
    unharmonized_sentence = _unharmonized_sentence(external_facts)
    if unharmonized_sentence:
        paragraphs.append(
            f"{unharmonized_sentence} Differences between scanners can change the "
            "scores of these scans."
        )
    if external_facts["no_sets"]:
        paragraphs.append(f"Prediction sets: {external_facts['no_sets']}.")
    paragraphs += _coverage_sentences(external_facts["coverage"], cohort.classes)
    paragraphs += _calibration_sentences(_number_table(external_facts["calibration"]))
    return paragraphs


def _unharmonized_sentence(external_facts: Mapping[str, Any]) -> str:
    """Return the number of scans not adjusted by ComBat; "" if none or unknown."""
    n_unharmonized = external_facts.get("n_unharmonized", 0)
    if not n_unharmonized:
        return ""
    verb = "was" if n_unharmonized == 1 else "were"
    return (
        f"{count(n_unharmonized, 'scan')} {verb} not harmonised, "
        "because the training contained no scans of the site."
    )


def _coverage_sentences(
    coverage_rows: Sequence[Mapping[str, Any]], classes: Sequence[str]
) -> list[str]:
    """Return for which classes the prediction sets do not reach their coverage."""
    class_rows = [
        coverage_row
        for coverage_row in coverage_rows
        if coverage_row["class"] in classes
    ]
    if not class_rows:
        return []
    low_texts = [
        f"{coverage_row['class']} ({coverage_row['coverage']:.0%} of "
        f"{coverage_row['people']})"
        for coverage_row in class_rows
        if coverage_row["high"] < NOMINAL_COVERAGE
    ]
    if low_texts:
        return [
            "The 90% prediction sets contain the true class of too few participants "
            f"of {with_and(low_texts)}: the 95% interval of this share lies below 90%."
        ]
    smallest_n = min(coverage_row["people"] for coverage_row in class_rows)
    return [
        "In every class, the 95% interval of the coverage of the 90% prediction sets "
        f"reaches 90%; the smallest class has {count(smallest_n, 'participant')}."
    ]


def _calibration_sentences(calibration: pd.DataFrame) -> list[str]:
    """Return for which classes intervals exclude perfect calibration."""
    if calibration.empty or calibration["slope"].isna().all():
        return []
    verdicts = {
        "too extreme": calibration["slope_high"] < 1,
        "not extreme enough": calibration["slope_low"] > 1,
        "too small": calibration["intercept_low"] > 0,
        "too large": calibration["intercept_high"] < 0,
    }
    verdict_texts = [
        f"{verdict} for {with_and(calibration.loc[is_true, 'class'])}"
        for verdict, is_true in verdicts.items()
        if is_true.any()
    ]
    if not verdict_texts:
        return [
            "Calibration: no slope differs clearly from 1, and no intercept differs "
            "clearly from 0."
        ]
    return [f"Calibration: probabilities are {'; '.join(verdict_texts)}."]


def _cross_validation_text(card: dict) -> str:
    """Return the score of the model in cross-validation, if its card has it."""
    if card["scores"] is None:
        return (
            "The model card contains no cross-validated score for comparison. "
            "`brainlsap fit --scores RESULTS` adds the scores of a run to the card."
        )
    accuracy = tables.interval_text(*card["scores"]["values"]["balanced_accuracy"])
    return (
        "In the training participants, the cross-validated balanced accuracy was "
        f"{accuracy}."
    )


def external_methods(evaluation: Evaluation) -> list[str]:
    """Return paragraphs of methods of an external evaluation, for a manuscript."""
    external_facts, cohort = evaluation.settings["external"], evaluation.cohort
    card = external_facts["card"]
    training = card["training"]
    class_counts = ", ".join(
        f"{count_row['class']} {count_row['participants']}"
        for count_row in cohort.class_counts().to_dict("records")
    )
    step_phrases = list_step_phrases(card["steps"])
    steps_text = "The features were not adjusted."
    if step_phrases:
        reference_class = card["steps"].get("reference_class")
        of_class_text = f" of class {reference_class}" if reference_class else ""
        steps_text = (
            f"The features were adjusted by {with_and(step_phrases)}, which were "
            f"fitted to the training participants{of_class_text}. "
            f"{_unharmonized_sentence(external_facts)}"
        ).strip()
    identity_sentence = (
        "Participants of the training were excluded by identifier and by identical "
        "data."
    )
    if external_facts["ids_are_new"]:
        identity_sentence = (
            "Participants of the training were excluded by identical data. The "
            "authors stated that equal identifiers belong to different people."
        )
    paragraphs = [
        f"A model fitted earlier ({card['model']}, brainlsap {card['version']}) to "
        f"{count(training['n_scans'], 'scan')} of "
        f"{count(training['n_people'], 'participant')} was applied without any change "
        f"to {count(cohort.n_scans, 'scan')} of "
        f"{count(cohort.n_participants, 'other participant')} ({class_counts}). "
        f"{identity_sentence} {steps_text}",
        "Intervals are 95% percentile bootstrap intervals that resample participants "
        "with all their scans. The calibration slope of a class is the slope of a "
        "logistic regression of the class (against all others) on the log-odds of its "
        "predicted probability. The calibration intercept is the intercept of the "
        "same regression with a slope of 1 (Van Calster et al. 2019). Intervals of "
        "slope and intercept use robust standard errors over participants.",
    ]
    if external_facts["coverage"]:
        paragraphs.append(
            "Prediction sets at 90% are class-conditional conformal sets with "
            "quantiles of left-out scores of the training participants. Intervals of "
            "their coverage are Wilson intervals over participants."
        )
    return paragraphs
