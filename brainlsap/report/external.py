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
    case_mix_table = pd.DataFrame(external_facts["case_mix"])
    calibration_table = _make_number_table(external_facts["calibration"])
    coverage_table = _make_number_table(external_facts["coverage"])
    text_table_of_name = {
        "case_mix": case_mix_table.rename(
            columns={"difference": "difference (s.d. of training)"}
        )
    }
    if len(calibration_table):
        title_of_column = {
            "class": "class",
            "people": "people",
            "frequency": "frequency",
            "mean_probability": "mean probability",
            "slope": "slope [95%]",
            "intercept": "intercept [95%]",
        }
        text_table_of_name["calibration"] = tables.number_texts(
            calibration_table, title_of_column
        )
    if len(coverage_table):
        coverage_table = coverage_table.rename(
            columns={"low": "coverage_low", "high": "coverage_high"}
        )
        title_of_column = {
            "class": "class",
            "people": "people",
            "coverage": "coverage [95%]",
            "mean_size": "classes in a set",
        }
        text_table_of_name["coverage"] = tables.number_texts(
            coverage_table, title_of_column
        )
    return text_table_of_name


def _make_number_table(table_records: list[dict[str, object]]) -> pd.DataFrame:
    """Return stored rows of classes; a number that is null in the file is NaN."""
    number_table = pd.DataFrame(table_records)
    number_columns = number_table.columns.drop(["class", "people"], errors="ignore")
    return number_table.astype(dict.fromkeys(number_columns, float))


def external_headline(evaluation: Evaluation) -> list[str]:
    """Return the first sentences of the report of an external evaluation."""
    external_facts, cohort = evaluation.settings["external"], evaluation.cohort
    model_card = external_facts["card"]
    model = evaluation.models[0]
    interval_table = tables.score_intervals(evaluation, model)
    accuracy_text = tables.interval_text(*interval_table.loc["balanced_accuracy"])
    auc_text = tables.interval_text(*interval_table.loc["auc"])
    n_present_classes = cohort.table["label"].nunique()
    training_facts = model_card["training"]
    first_paragraph = (
        f"External evaluation: {model}, which was trained on "
        f"{count(training_facts['n_people'], 'other participant')}, predicts "
        f"{cohort.label_name} ({', '.join(cohort.classes)}) with a balanced accuracy "
        f"of {accuracy_text} and an AUC of {auc_text} (95% intervals over "
        f"participants). The test contains {count(cohort.n_scans, 'scan')} of "
        f"{count(cohort.n_participants, 'participant')}. A model that predicts the "
        f"same class for everybody reaches at most {1 / n_present_classes:.3f}, "
        f"because {n_present_classes} classes are present."
    )
    if is_simulated(evaluation):
        first_paragraph += (
            " The data are simulated, so no conclusion about people is possible."
        )
    paragraphs = [first_paragraph, _cross_validation_text(model_card)]
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
    paragraphs += _calibration_sentences(
        _make_number_table(external_facts["calibration"])
    )
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
    coverage_records: Sequence[Mapping[str, Any]], class_names: Sequence[str]
) -> list[str]:
    """Return for which classes the prediction sets do not reach their coverage."""
    class_records = [
        coverage_record
        for coverage_record in coverage_records
        if coverage_record["class"] in class_names
    ]
    if not class_records:
        return []
    low_texts = [
        f"{coverage_record['class']} ({coverage_record['coverage']:.0%} of "
        f"{coverage_record['people']})"
        for coverage_record in class_records
        if coverage_record["high"] < NOMINAL_COVERAGE
    ]
    if low_texts:
        return [
            "The 90% prediction sets contain the true class of too few participants "
            f"of {with_and(low_texts)}: the 95% interval of this share lies below 90%."
        ]
    min_n_people = min(coverage_record["people"] for coverage_record in class_records)
    return [
        "In every class, the 95% interval of the coverage of the 90% prediction sets "
        f"reaches 90%; the smallest class has {count(min_n_people, 'participant')}."
    ]


def _calibration_sentences(calibration_table: pd.DataFrame) -> list[str]:
    """Return for which classes intervals exclude perfect calibration."""
    if calibration_table.empty or calibration_table["slope"].isna().all():
        return []
    mask_of_verdict = {
        "too extreme": calibration_table["slope_high"] < 1,
        "not extreme enough": calibration_table["slope_low"] > 1,
        "too small": calibration_table["intercept_low"] > 0,
        "too large": calibration_table["intercept_high"] < 0,
    }
    verdict_texts = [
        f"{verdict} for {with_and(calibration_table.loc[verdict_mask, 'class'])}"
        for verdict, verdict_mask in mask_of_verdict.items()
        if verdict_mask.any()
    ]
    if not verdict_texts:
        return [
            "Calibration: no slope differs clearly from 1, and no intercept differs "
            "clearly from 0."
        ]
    return [f"Calibration: probabilities are {'; '.join(verdict_texts)}."]


def _cross_validation_text(model_card: dict) -> str:
    """Return the score of the model in cross-validation, if its card has it."""
    if model_card["scores"] is None:
        return (
            "The model card contains no cross-validated score for comparison. "
            "`brainlsap fit --scores RESULTS` adds the scores of a run to the card."
        )
    accuracy_text = tables.interval_text(
        *model_card["scores"]["values"]["balanced_accuracy"]
    )
    return (
        "In the training participants, the cross-validated balanced accuracy was "
        f"{accuracy_text}."
    )


def external_methods(evaluation: Evaluation) -> list[str]:
    """Return paragraphs of methods of an external evaluation, for a manuscript."""
    external_facts, cohort = evaluation.settings["external"], evaluation.cohort
    model_card = external_facts["card"]
    training_facts = model_card["training"]
    counts_text = ", ".join(
        f"{count_record['class']} {count_record['participants']}"
        for count_record in cohort.class_counts().to_dict("records")
    )
    step_phrases = list_step_phrases(model_card["steps"])
    steps_text = "The features were not adjusted."
    if step_phrases:
        reference_class = model_card["steps"].get("reference_class")
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
        f"A model fitted earlier ({model_card['model']}, brainlsap "
        f"{model_card['version']}) to {count(training_facts['n_scans'], 'scan')} of "
        f"{count(training_facts['n_people'], 'participant')} was applied without any "
        f"change to {count(cohort.n_scans, 'scan')} of "
        f"{count(cohort.n_participants, 'other participant')} ({counts_text}). "
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
