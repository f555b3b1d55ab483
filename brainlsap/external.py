"""Test a stored model on other people whose classes are known: external evaluation."""

import json
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import brainlsap
from brainlsap.arrays import match_class_name, to_jsonable
from brainlsap.class_prior import ClassPrior
from brainlsap.data import Cohort
from brainlsap.data.cohort import check_cohort_given
from brainlsap.data.covariates import (
    COVARIATES,
    KEY_COLUMNS,
    STAGE_OF_WORD,
    find_acquisition_kind,
    is_categorical_covariate,
)
from brainlsap.data.flow import USED_FOR_TRAINING
from brainlsap.data.load import RefusedStudyError, open_scans_and_sources
from brainlsap.data.participants import UNLABELLED
from brainlsap.data.quality import join_texts_by_scan
from brainlsap.data.reading_options import check_option_names
from brainlsap.data.stored_cohort import get_label_series, is_cohort_file
from brainlsap.evaluation import Evaluation
from brainlsap.evaluation.comparison import calibration_table, wilson_interval
from brainlsap.evaluation.cross_validation import COLUMNS_OF_TABLE, FIT_KEYS
from brainlsap.evaluation.results import CohortSummary, data_hash
from brainlsap.evaluation.subgroups import (
    case_mix_table,
    choose_subgroup_columns,
    list_feature_shift_sentences,
    make_case_mix,
)
from brainlsap.exceptions import BrainlsapError, CohortError, ParameterError
from brainlsap.findings import (
    EXCLUDED,
    FAULT,
    LEFT_OUT,
    NO_LABEL,
    Finding,
    list_grouped_finding_texts,
)
from brainlsap.model.inputs import PackedClassifier
from brainlsap.prediction import (
    SET_COLUMN,
    SET_JOINER,
    add_labels,
    get_model_card,
    hash_person,
    list_merged_labels,
    load_fitted_model,
    make_reading_options,
    make_training_scan_masks,
    match_connectomes_and_features,
    predict_people,
    read_people,
)
from brainlsap.report.report import check_results_folder, check_same_study
from brainlsap.text import (
    count_text,
    exclusion_option_text,
    join_with_commas,
    option_name,
    option_text,
)
from brainlsap.workflow import list_originals_by_class, parse_originals_by_class

__all__ = ["evaluate_model", "read_labelled_people"]

ALL_CLASSES = "all classes"
"""Last row of a table of coverage."""
UNKNOWN_CLASS = "???"
"""Placeholder for a class of the model that a user must name."""
MAX_SHARED_SHARE = 0.1
"""Share of the training people from which a folder with them is of the same study.

Two hospitals may share a few people.
"""
MAX_LISTED_LABELS = 8
"""Largest number of values of a column that are listed."""


def read_labelled_people(
    model: PackedClassifier | str | Path,
    folder: str | Path,
    *,
    label: str | None = None,
    merge_classes: str | Mapping[str, Sequence[str]] | None = None,
    verbose: bool = False,
    **options: Any,
) -> Cohort:
    """Read people with known classes in the way in which the training data were read.

    Parameters
    ----------
    model : classifier, str or Path
        From :func:`brainlsap.model.load_model`, or its file.
    folder : str or Path
        Study folder, or a cohort's file (.h5).
    label : str, optional
        Column of the classes; by default that of the fit.
    merge_classes : str or mapping, optional
        As of :func:`brainlsap.merge_classes`, for labels that the model does not
        have: {"AD": ["Alzheimer"]}, or the text "AD=Alzheimer". Labels of the model
        stay without being named. Scans with other labels are left out.
    verbose, **options
        As of :func:`brainlsap.read_new_people`.

    Returns
    -------
    Cohort
        For :func:`evaluate_model`.

    Raises
    ------
    BrainlsapError
        If the folder cannot be read, or has no such column or class.
    """
    model = load_fitted_model(model)
    check_option_names(options, ("merge_classes", "verbose"))
    label = model.origin_.label_name if label is None else label
    try:
        cohort = read_people(model, folder, label, verbose=verbose, **options)
    except RefusedStudyError as error:
        scan_table = _read_scan_table(model, folder, label, **options)
        label_findings = _find_label_faults(model, scan_table, label, merge_classes)
        # The new error repeats the faults of the first.
        findings = [*error.findings, *label_findings]
        raise error.with_findings(folder, findings) from None
    if get_label_series(cohort, label) is None:
        if is_cohort_file(folder):
            covariate_table = cohort.table.iloc[:, len(KEY_COLUMNS) :]
            label_series_by_name = {cohort.label_name: cohort.table["label"]}
            scan_table = covariate_table.assign(**label_series_by_name)
        else:
            scan_table = _read_scan_table(model, folder, label, **options)
        label_findings = _find_label_faults(model, scan_table, label, merge_classes)
        raise ParameterError(f"{label_findings[0].message}.", path=folder)
    cohort = _mark_excluded_training_scans(model, folder, label, cohort, **options)
    cohort = add_labels(cohort, label, folder)
    if merge_classes is None:
        return cohort
    cohort = _leave_out_unlabelled_scans(model, cohort)
    labels_by_class = _complete_labels_by_class(model, cohort, merge_classes)
    return brainlsap.merge_classes(cohort, labels_by_class)


def _mark_excluded_training_scans(
    model: PackedClassifier,
    folder: str | Path,
    label_name: str,
    cohort: Cohort,
    **value_by_option: Any,
) -> Cohort:
    """Return a cohort whose excluded scans with data of the training have this fate.

    The excluded scans are read for this comparison only. A note counts those that
    cannot be read.
    """
    excluded_row_mask = cohort.left_out["fate"] == EXCLUDED
    excluded_scan_names = cohort.left_out["scan"][excluded_row_mask].tolist()
    if not excluded_scan_names:
        return cohort
    value_by_option |= {"exclude": cohort.table["scan"].tolist(), "skip_faulty": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            excluded_cohort = read_people(
                model, folder, label_name, verbose=False, **value_by_option
            )
        connectomes, features = match_connectomes_and_features(model, excluded_cohort)
    except BrainlsapError:
        compared_scan_names, training_scan_names = set(), set()
    else:
        training_data_scan_mask, _ = make_training_scan_masks(
            model, excluded_cohort, connectomes, features
        )
        compared_scan_names = {*excluded_cohort.table["scan"]}
        training_scan_names = {*excluded_cohort.table["scan"][training_data_scan_mask]}
    training_row_mask = excluded_row_mask & cohort.left_out["scan"].isin(
        training_scan_names
    )
    fate_series = cohort.left_out["fate"].mask(training_row_mask, USED_FOR_TRAINING)
    cohort = replace(cohort, left_out=cohort.left_out.assign(fate=fate_series))
    uncompared_scan_names = [
        scan_name
        for scan_name in excluded_scan_names
        if scan_name not in compared_scan_names
    ]
    if not uncompared_scan_names:
        return cohort
    n_scans_text = count_text(len(uncompared_scan_names), "excluded scan")
    uncompared_finding = Finding(
        f"{n_scans_text} could not be read, so only the IDs were compared with the "
        "training data:",
        kind=EXCLUDED,
        people=tuple(uncompared_scan_names),
    )
    return replace(cohort, findings=(*cohort.findings, uncompared_finding))


def _read_scan_table(
    model: PackedClassifier, folder: str | Path, label_name: str, **value_by_option: Any
) -> pd.DataFrame:
    """Return the columns of the table of people, with a row for each scan.

    The columns have the names that the user wrote.
    """
    reading_options = make_reading_options(model, folder, **value_by_option)
    scan_list, feature_sources = open_scans_and_sources(
        folder, reading_options, copied_label_name=label_name
    )
    scan_table = scan_list.table.iloc[:, len(KEY_COLUMNS) :]
    if feature_sources.people_contents is None:
        return scan_table
    name_by_lower_case = {
        str(column_name).lower(): str(column_name)
        for column_name in feature_sources.people_contents.text_table
    }
    return scan_table.rename(
        columns=lambda column_name: name_by_lower_case.get(
            str(column_name).lower(), str(column_name)
        )
    )


def _find_label_faults(
    model: PackedClassifier,
    scan_table: pd.DataFrame,
    label_name: str,
    class_merging_spec: str | Mapping[str, Sequence[str]] | None,
) -> list[Finding]:
    """Return a fault if the label is not a column, or has classes of no model."""
    has_merging_spec = class_merging_spec is not None
    name_by_lower_case = {
        str(column_head).lower(): column_head for column_head in scan_table.columns
    }
    column_name = name_by_lower_case.get(label_name.lower())
    if column_name is None:
        return [
            _make_missing_label_finding(model, scan_table, label_name, has_merging_spec)
        ]
    label_series = scan_table[column_name].dropna().astype(str)
    unknown_label_counts = _make_n_scans_series_of_unknown_labels(model, label_series)
    if has_merging_spec or unknown_label_counts.empty:
        return []
    message = _unknown_labels_message(model, unknown_label_counts)
    class_by_label = _propose_class_by_label(model, unknown_label_counts.index)
    return [Finding(message, FAULT, values=_make_assignment_fields(class_by_label))]


def _make_missing_label_finding(
    model: PackedClassifier,
    scan_table: pd.DataFrame,
    label_name: str,
    has_merging_spec: bool,
) -> Finding:
    """Return the fault that the label is not a column of the table of people.

    The fault names the columns that contain classes of the model. Classes are not
    proposed for labels that the user has translated.
    """
    message = (
        f"the table of people has no column {label_name!r}. A column of this name "
        "contained the labels to which the model was fitted. "
    )
    column_texts = []
    label_counts_by_column = {}
    label_counts_by_plausible_column = {}
    for candidate_name, column_series in scan_table.items():
        label_series = column_series.dropna().astype(str)
        column_and_labels_text = str(candidate_name)
        if (
            is_categorical_covariate(str(candidate_name), column_series)
            and label_series.nunique() <= MAX_LISTED_LABELS
        ):
            column_and_labels_text += f" ({', '.join(sorted(label_series.unique()))})"
        column_texts.append(column_and_labels_text)
        unknown_label_counts = _make_n_scans_series_of_unknown_labels(
            model, label_series
        )
        if _may_contain_classes(str(candidate_name), column_series):
            label_counts_by_plausible_column[str(candidate_name)] = unknown_label_counts
        if unknown_label_counts.sum() < len(label_series):
            label_counts_by_column[str(candidate_name)] = unknown_label_counts
    candidate_reason = "contains classes of the model"
    if not label_counts_by_column and len(label_counts_by_plausible_column) == 1:
        label_counts_by_column = label_counts_by_plausible_column
        candidate_reason = "is the only column that may contain classes"
    if len(label_counts_by_column) != 1:
        message += (
            "The columns of the table are "
            f"{', '.join(column_texts) or 'none besides the id'}. Name the column of "
            f"the classes with {option_text('label')}"
        )
        if not has_merging_spec:
            message += (
                ", and rename the labels to the classes of the model, "
                f"{', '.join(model.origin_.classes)}, with "
                f"{option_text('merge_classes')}"
            )
        return Finding(message, FAULT, kind=NO_LABEL)
    ((candidate_name, unknown_label_counts),) = label_counts_by_column.items()
    message += (
        f"The column {candidate_name} {candidate_reason}: give "
        f"{option_text('label', candidate_name)}"
    )
    value_by_option: dict[str, Any] = {"label": candidate_name}
    if not (has_merging_spec or unknown_label_counts.empty):
        unknown_text = _unknown_labels_message(model, unknown_label_counts)
        message += f". {unknown_text[0].upper()}{unknown_text[1:]}"
        class_by_label = _propose_class_by_label(model, unknown_label_counts.index)
        value_by_option |= _make_assignment_fields(class_by_label)
    return Finding(message, FAULT, kind=NO_LABEL, values=value_by_option)


def _may_contain_classes(column_name: str, column_series: pd.Series) -> bool:
    """Return whether a column has several groups, but is no covariate by its name."""
    return (
        is_categorical_covariate(column_name, column_series)
        and 2 <= column_series.nunique() <= MAX_LISTED_LABELS
        and find_acquisition_kind(column_name) not in COVARIATES
    )


def _make_n_scans_series_of_unknown_labels(
    model: PackedClassifier, label_series: pd.Series
) -> pd.Series:
    """Return the number of scans of each label that is no class of the model.

    Labels that were merged in the fit are known.
    """
    model_origin = model.origin_
    originals_by_merged_class = model_origin.facts.get("merged_classes") or {}
    known_label_set = {str(class_name) for class_name in model_origin.classes}
    for original_labels in originals_by_merged_class.values():
        known_label_set |= {str(label) for label in original_labels}
    is_known = label_series.map(
        lambda label: match_class_name(label, known_label_set) in known_label_set
    ).astype(bool)
    return label_series[~is_known].value_counts()


def label_counts_text(label_counts: pd.Series) -> str:
    """Return labels with their numbers of scans.

    >>> label_counts_text(pd.Series({"Control": 2, "FTD": 1}))
    'Control (2 scans), FTD (1 scan)'
    """
    return ", ".join(
        f"{label} ({count_text(n_scans, 'scan')})"
        for label, n_scans in label_counts.items()
    )


def _unknown_labels_message(model: PackedClassifier, label_counts: pd.Series) -> str:
    """Return the message that labels are no classes of the model, and what to do."""
    class_by_label = _propose_class_by_label(model, label_counts.index)
    assignments_text = _merge_classes_text(class_by_label)
    action_text = "Give"
    if UNKNOWN_CLASS in class_by_label.values():
        action_text = f"Replace {UNKNOWN_CLASS} by a class of the model in"
    return (
        "the model was not trained on the classes "
        f"{label_counts_text(label_counts)}; its classes are "
        f"{', '.join(model.origin_.classes)}. {action_text} "
        f"{option_text('merge_classes', assignments_text)}. Labels that are classes of "
        "the model need no entry. If you remove the entry of another label, scans with "
        "this label are left out"
    )


def _propose_class_by_label(
    model: PackedClassifier, labels: Iterable[str]
) -> dict[str, str]:
    """Return the class of the model that has the stage of each label.

    It is `UNKNOWN_CLASS` if not exactly one class of the model has the stage.
    """
    class_by_label: dict[str, str] = {}
    for label in labels:
        stage = STAGE_OF_WORD.get(label.lower())
        classes_of_stage = [
            class_name
            for class_name in map(str, model.origin_.classes)
            if stage is not None and STAGE_OF_WORD.get(class_name.lower()) == stage
        ]
        class_by_label[label] = UNKNOWN_CLASS
        if len(classes_of_stage) == 1:
            class_by_label[label] = classes_of_stage[0]
    return class_by_label


def _merge_classes_text(class_by_label: Mapping[str, str]) -> str:
    """Return the classes of labels as `merge_classes`."""
    return ",".join(
        f"{class_name}={label}" for label, class_name in class_by_label.items()
    )


def _make_assignment_fields(class_by_label: Mapping[str, str]) -> dict[str, Any]:
    """Return what a finding proposes, and the labels whose class a user must name."""
    return {
        "merge_classes": _merge_classes_text(class_by_label),
        "unresolved_labels": [
            label
            for label, class_name in class_by_label.items()
            if class_name == UNKNOWN_CLASS
        ],
    }


def _complete_labels_by_class(
    model: PackedClassifier,
    cohort: Cohort,
    class_merging_spec: str | Mapping[str, Sequence[str]],
) -> dict[str, list[str]]:
    """Return the labels of each class; those of the model need not be named."""
    if isinstance(class_merging_spec, str):
        class_merging_spec = parse_originals_by_class(
            class_merging_spec, cohort.classes
        )
    model_origin = model.origin_
    labels_by_class: dict[str, list[str]] = {}
    merged_labels_by_class = list_originals_by_class(class_merging_spec, cohort.classes)
    for new_class, merged_labels in merged_labels_by_class.items():
        model_class = match_class_name(new_class, model_origin.classes)
        labels_by_class.setdefault(model_class, []).extend(merged_labels)
    class_by_label = {
        str(class_name): str(class_name) for class_name in model_origin.classes
    }
    originals_by_merged_class = model_origin.facts.get("merged_classes") or {}
    for class_name, original_labels in originals_by_merged_class.items():
        class_by_label |= dict.fromkeys(map(str, original_labels), str(class_name))
    unknown_classes = [
        new_class for new_class in labels_by_class if new_class not in class_by_label
    ]
    if unknown_classes:
        raise ParameterError(
            f"{option_name('merge_classes')} assigns labels to "
            f"{join_with_commas(map(repr, unknown_classes))}, but the classes of the "
            f"model are {', '.join(model_origin.classes)}. Write the class of the "
            "model first, then the label in the new study: CLASS=LABEL."
        )
    named_label_set = {label for labels in labels_by_class.values() for label in labels}
    for label in cohort.classes:
        known_label = match_class_name(label, class_by_label)
        if known_label in class_by_label and label not in named_label_set:
            labels_by_class.setdefault(class_by_label[known_label], []).append(label)
    return labels_by_class


def evaluate_model(
    model: PackedClassifier | str | Path,
    cohort: Cohort,
    *,
    class_prior: ClassPrior | None = None,
    ids_are_new: bool = False,
    subgroups: str | Sequence[str] | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
) -> Evaluation:
    """Test a stored model on people who were not in its training.

    Nothing is fitted. Regions, features, steps and connectome are those of
    :func:`brainlsap.predict_people`.

    Parameters
    ----------
    model : classifier, str or Path
        From :func:`brainlsap.model.load_model`, or its file.
    cohort : Cohort
        People with labels, for example from :func:`read_labelled_people`. Scans without
        a label are left out.
    class_prior : {"training", "balanced"} or dict of class to share, optional
        As of :func:`brainlsap.predict_people`.
    ids_are_new : bool
        Whether people with the id of a person of the training are other people, as
        in two studies that both count from 1. People with the same data are refused
        all the same.
    subgroups : str or sequence of str, optional
        Columns of groups in which the model is scored, as of
        :func:`brainlsap.evaluation.choose_subgroup_columns`.
    out : str or Path, optional
        Results folder that :func:`brainlsap.write_report` will write. If it cannot be
        written or holds another report, this is an error before the prediction.
    overwrite : bool
        Whether `out` may hold another report.

    Returns
    -------
    Evaluation
        With one fold, whose test set is the cohort, for
        :func:`brainlsap.write_report` and every table and figure.
        `settings["external"]` holds the card of the model, `people` (of
        `brainlsap.evaluation.subgroups.make_case_mix`), and as lists of rows
        `case_mix`, `calibration` and `coverage` (of prediction sets, by class).

    Raises
    ------
    CohortError
        If people or scans were in the training, or scans lack most values.
    ParameterError
        If no scan has a label, the model does not know a label, `out` holds another
        report, or as of :func:`brainlsap.predict_people`.
    WritingError
        If `out` cannot be written.
    """
    check_cohort_given(cohort)
    model = load_fitted_model(model)
    model_card = get_model_card(model)
    cohort = _select_scans_of_classes(model, cohort)
    _check_not_in_training(model, cohort, ids_are_new=ids_are_new)
    subgroup_columns = choose_subgroup_columns(cohort.table, subgroups)
    study_options = {
        "model": model_card["model"],
        "training": model.origin_.facts["people"]["salt"][:8],
        "class_prior": to_jsonable(class_prior),
        "ids_are_new": ids_are_new,
        "subgroups": list(subgroup_columns),
    }
    if out is not None:
        results_folder = check_results_folder(out)
        if not overwrite:
            compared_settings = {"study_options": study_options}
            check_same_study(
                results_folder, compared_settings, partial(data_hash, cohort)
            )
    start_seconds = time.perf_counter()
    # People of the training are excluded already.
    prediction_table = predict_people(
        model, cohort, class_prior=class_prior, ids_are_new=ids_are_new
    )
    predict_seconds = time.perf_counter() - start_seconds
    prediction_table["truth"] = prediction_table.pop("label")
    if not ids_are_new:
        cohort = _mark_training_people(model, cohort)
    left_out_scan_table = cohort.left_out.query("fate == @USED_FOR_TRAINING")
    n_excluded_people = left_out_scan_table["participant"].nunique()
    title = f"External evaluation of {model_card['model']}: {cohort.label_name}"
    n_training_people = sum(model_card["training"]["classes"].values())
    is_same_study = n_excluded_people > MAX_SHARED_SHARE * n_training_people
    if is_same_study:
        title = (
            f"Test of {model_card['model']} in other participants of the training "
            f"study: {cohort.label_name}"
        )
    fit_key_by_column = {"model": model_card["model"], "repeat": 1, "fold": 1}
    class_names = model.origin_.classes
    for class_name in class_names:
        if f"p_{class_name}" not in prediction_table:
            prediction_table[f"p_{class_name}"] = 0.0
        prediction_table[f"d_{class_name}"] = np.nan
    probability_columns = [
        f"{column_prefix}_{class_name}"
        for column_prefix in "pd"
        for class_name in class_names
    ]
    column_names = [*COLUMNS_OF_TABLE["predictions"], *probability_columns]
    if SET_COLUMN in prediction_table:
        column_names.append(SET_COLUMN)
    model_settings = dict(model.get_params())
    if class_prior is not None:
        model_settings["class_prior"] = class_prior
    fit_record = {
        "model": model_card["model"],
        "role": "model",
        "repeat": 1,
        "fold": 1,
        "n_train": model_card["training"]["n_scans"],
        "n_test": cohort.n_scans,
        "n_train_people": model_card["training"]["n_people"],
        "seconds_fit": 0.0,
        "seconds_predict": predict_seconds,
        "epochs": np.nan,
        "failed": "",
        "settings": json.dumps(to_jsonable(model_settings)),
        "warnings": "[]",
        "report": json.dumps(model_card["fit_report"]),
    }
    cohort_summary = CohortSummary.from_cohort(cohort, cohort.features, None)
    cohort_summary = replace(
        cohort_summary,
        table=_add_swapped_column(
            cohort_summary.table, prediction_table.attrs["swapped_scans"]
        ),
        classes=tuple(class_names),
        classes_ordered=model_card["classes_ordered"],
    )
    evaluation = Evaluation(
        predictions=prediction_table[column_names].assign(**fit_key_by_column)[
            [*FIT_KEYS, *column_names]
        ],
        scales=pd.DataFrame(columns=[*FIT_KEYS, *COLUMNS_OF_TABLE["scales"]]),
        fits=pd.DataFrame([fit_record]),
        cohort=cohort_summary,
        settings={
            "cv": "external evaluation",
            "n_folds": 1,
            "n_repeats": 1,
            "random_state": 0,
            "people_shared": False,
            "steps": model_card["steps"],
            "version": brainlsap.__version__,
            "title": title,
            "study_options": study_options,
            "subgroups": list(subgroup_columns),
        },
    )
    people_facts = make_case_mix(cohort)
    mix_table = case_mix_table(model_card["training"], people_facts)
    # Harmonisation removes differences between sites; unknown sites have a warning.
    feature_shift_sentences = (
        list_feature_shift_sentences(model_card["training"], people_facts)
        if not model_card["steps"]["harmonize"]
        else []
    )
    for shift_sentence in feature_shift_sentences:
        warnings.warn(
            f"{shift_sentence} The predictions may be less reliable. Check the unit "
            "and the processing of the images.",
            stacklevel=2,
        )
    external_facts = {
        "card": model_card,
        "people": people_facts,
        "case_mix": mix_table.to_dict("records"),
        "calibration": calibration_table(evaluation).to_dict("records"),
        "coverage": coverage_table(evaluation).to_dict("records"),
        "no_sets": prediction_table.attrs["no_sets"],
        "n_unlike": prediction_table.attrs["n_unlike"],
        "n_implausible": prediction_table.attrs["n_implausible"],
        "n_sparse": prediction_table.attrs["n_sparse"],
        "feature_shifts": feature_shift_sentences,
        "n_visit_like_ids": prediction_table.attrs["n_visit_like_ids"],
        "n_people_of_visits": prediction_table.attrs["n_people_of_visits"],
        "n_unharmonized": prediction_table.attrs["n_unharmonized"],
        "learned_sites": prediction_table.attrs["learned_sites"],
        "side_notes": prediction_table.attrs["side_notes"],
        "swapped_values": prediction_table.attrs["swapped_values"],
        "ids_are_new": ids_are_new,
        "n_excluded_training_people": n_excluded_people,
        "is_same_study": is_same_study,
    }
    return replace(
        evaluation, settings=evaluation.settings | {"external": external_facts}
    )


def _add_swapped_column(
    scan_table: pd.DataFrame, scan_names_by_value: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return the table of scans with the values whose sides may be swapped, if any."""
    if not scan_names_by_value:
        return scan_table
    swapped_name_arrays = [
        np.where(scan_table["scan"].isin(scan_names), value_name, "")
        for value_name, scan_names in scan_names_by_value.items()
    ]
    swapped_texts = join_texts_by_scan(swapped_name_arrays, ", ")
    return scan_table.assign(quality_swapped=swapped_texts)


def _mark_training_people(model: PackedClassifier, cohort: Cohort) -> Cohort:
    """Return a cohort whose left-out people with ids of the training have this fate."""
    training_hash_record = model.origin_.facts["people"]
    training_id_set = set(training_hash_record["ids"])
    left_out_id_set = {*cohort.left_out["participant"]} - {*cohort.groups}
    training_ids = [
        person_id
        for person_id in left_out_id_set
        if hash_person(person_id, training_hash_record["salt"]) in training_id_set
    ]
    training_row_mask = cohort.left_out["participant"].isin(training_ids)
    fate_series = cohort.left_out["fate"].mask(training_row_mask, USED_FOR_TRAINING)
    return replace(cohort, left_out=cohort.left_out.assign(fate=fate_series))


def coverage_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the number of people of each class whose prediction set has the class.

    Parameters
    ----------
    evaluation : Evaluation
        From :func:`evaluate_model`.

    Returns
    -------
    DataFrame
        class, people, coverage, low, high (95 % Wilson interval over people) and
        mean_size, the number of classes in a set. The last row is of all classes. A
        person with several scans counts with their mean. No rows where the model gives
        no sets.
    """
    if SET_COLUMN not in evaluation.predictions:
        return pd.DataFrame()
    return make_coverage_table(evaluation.predictions, evaluation.cohort.classes)


def make_coverage_table(
    prediction_table: pd.DataFrame, class_names: Sequence[str]
) -> pd.DataFrame:
    """Return the rows of :func:`coverage_table`.

    `prediction_table` has participant, truth (a class) and the set of each scan.
    """
    set_classes_series = prediction_table[SET_COLUMN].str.split(SET_JOINER, regex=False)
    true_label_series = prediction_table["truth"]
    scan_coverage_table = pd.DataFrame(
        {
            "class": true_label_series,
            "participant": prediction_table["participant"],
            "covered": [
                true_class in set_classes
                for true_class, set_classes in zip(
                    true_label_series, set_classes_series, strict=True
                )
            ],
            "size": [
                len(set(set_classes) & set(class_names))
                for set_classes in set_classes_series
            ],
        }
    )
    person_coverage_table = scan_coverage_table.groupby(["class", "participant"]).mean()
    class_coverage_records = [
        _make_class_coverage_record(class_name, person_coverage_table.loc[class_name])
        for class_name in class_names
        if class_name in person_coverage_table.index
    ]
    if len(class_coverage_records) > 1:
        all_class_coverage_table = (
            scan_coverage_table.drop(columns="class").groupby("participant").mean()
        )
        class_coverage_records.append(
            _make_class_coverage_record(ALL_CLASSES, all_class_coverage_table)
        )
    return pd.DataFrame(class_coverage_records)


def _make_class_coverage_record(
    class_name: str, person_coverage_table: pd.DataFrame
) -> dict[str, Any]:
    """Return the row of :func:`coverage_table` of people of one class, or of all."""
    n_people = len(person_coverage_table)
    n_covered_people = float(person_coverage_table["covered"].sum())
    # A person with several visits can be covered in part.
    lower_bound, upper_bound = wilson_interval(n_covered_people, n_people)
    return {
        "class": class_name,
        "people": n_people,
        "coverage": n_covered_people / n_people,
        "low": lower_bound,
        "high": upper_bound,
        "mean_size": float(person_coverage_table["size"].mean()),
    }


def _leave_out_unlabelled_scans(model: PackedClassifier, cohort: Cohort) -> Cohort:
    """Return the scans with a label; raise if no scan has one."""
    label_name = model.origin_.label_name
    labelled_scan_mask = (cohort.table["label"] != UNLABELLED).to_numpy()
    if not labelled_scan_mask.any():
        raise ParameterError(
            f"no scan has a {label_name}. Name the column of the classes with "
            f"{option_text('label')}. To predict people without labels, use "
            "`predict`."
        )
    if labelled_scan_mask.all():
        return cohort
    note_text = (
        f"scans were left out because they have no {cohort.label_name}: "
        f"{(~labelled_scan_mask).sum()}"
    )
    class_names = [
        class_name for class_name in cohort.classes if class_name != UNLABELLED
    ]
    return replace(
        cohort.select(labelled_scan_mask, fate=NO_LABEL),
        classes=tuple(class_names),
        findings=(*cohort.findings, Finding(note_text, LEFT_OUT, kind=NO_LABEL)),
    )


def _select_scans_of_classes(model: PackedClassifier, cohort: Cohort) -> Cohort:
    """Return the scans with a label, as a class of the model; refuse other labels."""
    model_origin = model.origin_
    cohort = _leave_out_unlabelled_scans(model, cohort)
    scan_label_series = pd.Series(
        list_merged_labels(model, cohort),
        dtype=object,
    )
    unknown_label_mask = ~scan_label_series.isin(list(model_origin.classes))
    if unknown_label_mask.any():
        label_counts = scan_label_series[unknown_label_mask].value_counts()
        raise ParameterError(f"{_unknown_labels_message(model, label_counts)}.")
    # The column of the labels is not a covariate.
    copied_column_set = {cohort.label_name} - {*KEY_COLUMNS}
    scan_table = cohort.table.drop(columns=[*copied_column_set], errors="ignore")
    return replace(
        cohort,
        table=scan_table.assign(label=scan_label_series.to_numpy()),
        classes=tuple(model_origin.classes),
        classes_ordered=True,
        label_name=model_origin.label_name,
    )


def _check_not_in_training(
    model: PackedClassifier, cohort: Cohort, *, ids_are_new: bool
) -> None:
    """Raise if people or scans of a cohort were in the training of a model."""
    connectomes, features = match_connectomes_and_features(model, cohort)
    training_data_scan_mask, training_id_scan_mask = make_training_scan_masks(
        model, cohort, connectomes, features, ids_are_new=ids_are_new
    )
    # An excluded scan of the training shows that the other visits are no new person.
    excluded_scan_table = cohort.left_out[
        (cohort.left_out["fate"] == USED_FOR_TRAINING)
        & cohort.left_out["participant"].isin(cohort.groups)
    ]
    known_scan_table = pd.concat(
        [cohort.table[training_data_scan_mask], excluded_scan_table]
    )
    known_person_ids = list(dict.fromkeys(known_scan_table["participant"]))
    same_id_person_ids = [
        person_id
        for person_id in dict.fromkeys(cohort.groups[training_id_scan_mask])
        if person_id not in known_person_ids
    ]
    if not (known_person_ids or same_id_person_ids):
        return
    remark_text = (
        "In the table that `predict` writes, the column 'remark' marks all of these "
        "people"
    )
    sentences = list[str]()
    if known_person_ids:
        known_scan_names = known_scan_table["scan"].tolist()
        n_scans = cohort.n_scans + len(excluded_scan_table)
        sentences += [
            f"{len(known_scan_names)} of {n_scans} scans were used to train the model "
            f"({join_with_commas(known_scan_names, 3)}). A test requires people whose "
            "scans were not used in training. Leave the people of these scans out with "
            f"{exclusion_option_text(known_person_ids)}."
        ]
    if same_id_person_ids:
        sentences += [
            f"{len(same_id_person_ids)} of {len(set(cohort.groups))} people have the "
            f"same ID as a person in the training data, but other data "
            f"({join_with_commas(same_id_person_ids, 3)}). If each of these IDs is the "
            "same person in both studies, leave these people out with "
            f"{exclusion_option_text(same_id_person_ids)}. If they are different "
            "people, for example because both studies number their people from 1, "
            f"give {option_text('ids_are_new', True)} here and to `predict`."
        ]
        remark_text += (
            f" ({option_text('ids_are_new', True)}: only people with the same data)"
        )
    fault_findings = [
        Finding("the scan has the same data as a training scan", scan=scan_name)
        for scan_name in known_scan_table["scan"]
    ]
    fault_findings += [
        Finding("the person has the ID of a training person", participant=person_id)
        for person_id in same_id_person_ids
    ]
    raise CohortError(
        " ".join([*sentences, remark_text]), list_grouped_finding_texts(fault_findings)
    )
