"""A cohort's file (.h5), read with the options of a study's folder.

A file holds what one reading of a folder gave. Options that choose among what it holds
are applied: `feature`, `label`, `classes`, `scans`, `exclude`, `skip_faulty`, and
`connectome="none"`. All others say how files of a folder are read: they are refused,
unless the folder was read with the same value.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.cohort import COHORT_SUFFIXES, Cohort
from brainlsap.data.covariates import KEY_COLUMNS, find_spelling_faults
from brainlsap.data.find_files import make_visit_sort_key
from brainlsap.data.flow import (
    LATER_VISIT,
    OTHER_CLASS,
    LeftOutScan,
    make_left_out_notes,
    match_excluded_scan_names,
    read_place_by_excluded_id,
)
from brainlsap.data.load import load_cohort
from brainlsap.data.participants import (
    UNLABELLED,
    choose_baseline_names,
    find_absent_class_faults,
    is_called_baseline,
    make_first_visit_value_notes,
    make_unordered_class_notes,
    order_classes,
    refuse_continuous,
)
from brainlsap.data.reading_options import NO_CONNECTOME, ReadingOptions
from brainlsap.exceptions import CohortError, ParameterError, check_choice
from brainlsap.findings import (
    BASELINE,
    CLASSES,
    EXCLUDED,
    FAULT,
    FAULTY,
    FIRST_VISIT_VALUE,
    LEFT_OUT,
    NO_LABEL,
    ONE_ROW,
    Finding,
    list_grouped_finding_texts,
    make_findings,
)
from brainlsap.text import (
    count_text,
    format_leave_out_advice,
    join_with_commas,
    named_counts_text,
    option_text,
    verb_form,
)

SELECTING_OPTIONS = ("feature", "label", "classes", "scans", "exclude", "connectome")
"""Options that select from the data of a saved cohort."""


def is_cohort_file(study: str | Path) -> bool:
    """Return whether a study is the file of a cohort, by its name."""
    return Path(study).suffix.lower() in COHORT_SUFFIXES


def read_study(study: str | Path, *args: Any, **options: Any) -> Cohort:
    """Read a study folder or the file of a saved cohort, with the same options.

    Parameters
    ----------
    study : str or Path
        Folder, as :func:`load_cohort` takes it, or file (.h5) of :meth:`Cohort.save`.
    *args, **options
        Those of :func:`load_cohort`. For a file, all are optional: what is not given
        is as the file has it.

    Returns
    -------
    Cohort

    Raises
    ------
    CohortError
        If the study cannot be read, or an option leaves nothing of it.
    ParameterError
        If an option cannot be applied to a file.
    """
    if not is_cohort_file(study):
        return load_cohort(study, *args, **options)
    value_by_positional_option = dict(
        zip(("atlas", "feature", "label"), args, strict=False)
    )
    return read_cohort_file(study, **value_by_positional_option, **options)


def read_cohort_file(cohort_path: str | Path, **options: Any) -> Cohort:
    """Read the file of a cohort, and apply options to it or refuse them."""
    options.pop("verbose", None)
    new_reading_options = ReadingOptions().change(**options)
    cohort = Cohort.load(cohort_path)
    _check_unchanged_options(cohort_path, cohort, new_reading_options)
    if new_reading_options.atlas:
        cohort = _make_cohort_with_atlas(cohort_path, cohort, new_reading_options.atlas)
    if new_reading_options.connectome is not None:
        cohort = _make_cohort_without_connectomes(
            cohort_path, cohort, new_reading_options.connectome
        )
    if new_reading_options.feature is not None:
        cohort = _make_cohort_of_features(
            cohort_path, cohort, new_reading_options.feature
        )
    excluded_scan_names = _find_excluded_scan_names(cohort, new_reading_options.exclude)
    # Visits of people who are wholly excluded need no baseline.
    excluded_person_ids = _find_excluded_person_ids(cohort, excluded_scan_names)
    excluded_person_scan_mask = cohort.table["participant"].isin(excluded_person_ids)
    cohort = _make_cohort_without_scans(
        cohort_path, cohort, {*cohort.table["scan"][excluded_person_scan_mask]}
    )
    if new_reading_options.scans:
        cohort = _make_cohort_of_scans(cohort_path, cohort, new_reading_options.scans)
    # An excluded baseline is not replaced by a later visit, as in a folder.
    cohort = _make_cohort_without_scans(cohort_path, cohort, excluded_scan_names)
    skip_faulty = bool(
        new_reading_options.skip_faulty or cohort.reading_options.skip_faulty
    )
    if new_reading_options.label is not None or new_reading_options.classes is not None:
        cohort = _make_cohort_of_labels(
            cohort_path,
            cohort,
            new_reading_options.label,
            new_reading_options.classes,
            skip_faulty=skip_faulty,
        )
    elif excluded_scan_names:
        _check_named_classes(cohort_path, cohort)
    cohort = _renew_first_visit_notes(cohort)
    # A report and a stored model state the options that were applied last.
    value_by_selecting_option = new_reading_options.to_jsonable(SELECTING_OPTIONS)
    if cohort.reading_options.exclude and excluded_scan_names:
        # State the scans that the file leaves out, and those that were named now.
        excluded_row_mask = cohort.left_out["fate"] == EXCLUDED
        value_by_selecting_option["exclude"] = sorted(
            cohort.left_out["scan"][excluded_row_mask]
        )
    if skip_faulty:
        value_by_selecting_option["skip_faulty"] = True
    reading_options = cohort.reading_options.change(**value_by_selecting_option)
    return replace(cohort, reading_options=reading_options)


def get_label_series(cohort: Cohort, column_name: str) -> pd.Series | None:
    """Return a column of a cohort as labels: text, None where missing.

    None where the cohort has no such column.
    """
    if column_name.lower() == cohort.label_name.lower():
        return cohort.table["label"]
    stored_column_name = _find_covariate_name(cohort, column_name)
    return (
        None
        if stored_column_name is None
        else cohort.table[stored_column_name].map(_format_label)
    )


def _find_covariate_name(cohort: Cohort, column_name: str) -> str | None:
    """Return the column name of a covariate in the spelling of the table."""
    covariate_name_by_text = {
        str(covariate_name): covariate_name
        for covariate_name in cohort.table.columns[len(KEY_COLUMNS) :]
    }
    for covariate_spelling in (column_name, f"{column_name}_given"):
        if covariate_spelling in covariate_name_by_text:
            return covariate_name_by_text[covariate_spelling]
        matching_column_names = [
            covariate_name
            for covariate_text, covariate_name in covariate_name_by_text.items()
            if covariate_text.lower() == covariate_spelling.lower()
        ]
        if len(matching_column_names) == 1:
            return matching_column_names[0]
    return None


def _format_label(label_value: Any) -> str | None:
    """Return a label as a table of people has it: whole numbers without a point."""
    if pd.isna(label_value):
        return None
    if isinstance(label_value, float) and label_value.is_integer():
        return str(int(label_value))
    return str(label_value).strip()


def _check_unchanged_options(
    cohort_path: str | Path, cohort: Cohort, new_reading_options: ReadingOptions
) -> None:
    """Raise where options say another way of reading than that of the file."""
    stored_value_by_option = cohort.provenance | cohort.reading_options.to_jsonable()
    refused_texts = list[str]()
    for option_name, option_value in new_reading_options.to_jsonable().items():
        if option_name in ("atlas", *SELECTING_OPTIONS):
            continue
        # Scans with faults may still be left out, and cannot come back.
        if option_name == "skip_faulty" and option_value:
            continue
        stored_option_value = stored_value_by_option.get(option_name)
        if option_value == stored_option_value:
            continue
        # no weight was negative, so that nothing is to be dropped
        if (
            option_name == "negative"
            and stored_option_value == "refuse"
            and option_value in ("drop", "absolute")
        ):
            continue
        value_text = (
            "no value for it"
            if stored_option_value is None
            else repr(stored_option_value)
        )
        refused_texts.append(
            f"{option_text(option_name)} "
            f"({getattr(new_reading_options, option_name)!r}; "
            f"the file has {value_text})"
        )
    if refused_texts:
        raise ParameterError(
            f"{cohort_path} is a saved cohort, so {', '.join(refused_texts)} "
            "cannot be applied. Leave each of these options out, or read the "
            "folder of the study."
        )


def _make_cohort_with_atlas(
    cohort_path: str | Path, cohort: Cohort, atlas: str | Path | Atlas
) -> Cohort:
    """Return the cohort with the atlas asked for, which must have its regions."""
    expected_atlas = load_atlas(atlas)
    if expected_atlas.names != cohort.atlas.names:
        raise ParameterError(
            f"{cohort_path} contains the {cohort.n_rois} regions of "
            f"{cohort.atlas.name}. The {len(expected_atlas)} regions of "
            f"{expected_atlas.name} ({option_text('atlas')}) have other names or "
            f"another order. Leave {option_text('atlas')} out, or read the folder of "
            "the study."
        )
    return replace(cohort, atlas=expected_atlas)


def _make_cohort_without_connectomes(
    cohort_path: str | Path, cohort: Cohort, connectome: Any
) -> Cohort:
    """Return the cohort without connectomes for "none"; refuse other ones."""
    if not isinstance(connectome, str | Path):
        raise ParameterError(
            f"{cohort_path} is a saved cohort with connectomes, so "
            f"{option_text('connectome')} cannot be applied. Leave this option out, "
            "or read the folder of the study."
        )
    if str(connectome) == cohort.provenance.get("connectome"):
        return cohort
    if connectome != NO_CONNECTOME:
        raise ParameterError(
            f"{cohort_path} is a saved cohort with connectomes, so "
            f"{option_text('connectome')} can only be 'none'; got "
            f"{str(connectome)!r}. Leave this option out, or read the folder of the "
            "study."
        )
    matrix_shape = cohort.connectomes.shape
    zero_matrices = np.broadcast_to(
        np.zeros(matrix_shape[1:], dtype=np.float32), matrix_shape
    )
    connectome_note = (
        "the connectome of the file is not used, so models estimate one connectome "
        "from the features of the training people"
    )
    return replace(
        cohort,
        connectomes=zero_matrices,
        findings=(*cohort.findings, connectome_note),
        provenance=cohort.provenance | {"connectome": NO_CONNECTOME},
    )


def _make_cohort_of_features(
    cohort_path: str | Path, cohort: Cohort, feature: str | Sequence[str]
) -> Cohort:
    """Return the cohort with some of its features, in this order."""
    feature_names = (
        [feature]
        if isinstance(feature, str)
        else [str(feature_name) for feature_name in feature]
    )
    if not feature_names or len({*feature_names}) < len(feature_names):
        raise ParameterError(
            f"feature must be one name or a list of different names; got {feature!r}."
        )
    missing_feature_names = [
        feature_name
        for feature_name in feature_names
        if feature_name not in cohort.feature_names
    ]
    if missing_feature_names:
        raise ParameterError(
            f"{cohort_path} contains the features {', '.join(cohort.feature_names)}, "
            f"but not {', '.join(missing_feature_names)}. Use "
            f"{option_text('feature')} to choose features that the saved cohort "
            "contains, or read the folder of the study instead."
        )
    feature_indices = [
        cohort.feature_names.index(feature_name) for feature_name in feature_names
    ]
    return replace(
        cohort,
        features=cohort.features[..., feature_indices],
        feature_names=tuple(feature_names),
    )


def _find_excluded_scan_names(
    cohort: Cohort, exclude: str | Path | Sequence[str] | None
) -> set[str]:
    """Return the scans that an option excludes, also those that are left out by now."""
    place_by_excluded_id = read_place_by_excluded_id(exclude)
    return (
        match_excluded_scan_names(place_by_excluded_id, _list_scan_fates(cohort))
        if place_by_excluded_id
        else set()
    )


def _list_scan_fates(cohort: Cohort) -> list[LeftOutScan]:
    """Return every scan of the study's tables; the fate is empty if it is analysed."""
    scan_table = cohort.table
    scan_keys = zip(
        scan_table["scan"],
        scan_table["participant"],
        scan_table["session"],
        strict=True,
    )
    analysed_scan_records = [
        LeftOutScan(scan_name, participant_id, session_id, "")
        for scan_name, participant_id, session_id in scan_keys
    ]
    return [*analysed_scan_records, *_list_left_out_scans(cohort)]


def _list_left_out_scans(cohort: Cohort) -> list[LeftOutScan]:
    """Return the scans that are not analysed."""
    return [
        LeftOutScan(*table_row) for table_row in cohort.left_out.itertuples(index=False)
    ]


def _find_excluded_person_ids(
    cohort: Cohort, excluded_scan_names: set[str]
) -> set[str]:
    """Return the people of whom every scan is excluded."""
    scan_records = _list_scan_fates(cohort)
    return {scan_record.participant for scan_record in scan_records} - {
        scan_record.participant
        for scan_record in scan_records
        if scan_record.scan not in excluded_scan_names
    }


def _make_cohort_without_scans(
    cohort_path: str | Path, cohort: Cohort, excluded_scan_names: set[str]
) -> Cohort:
    """Return the cohort without scans; also others of these names become excluded."""
    if not excluded_scan_names:
        return cohort
    excluded_scan_mask = cohort.table["scan"].isin(excluded_scan_names).to_numpy()
    if excluded_scan_mask.all():
        raise CohortError(
            f"{option_text('exclude')} leaves out all {cohort.n_scans} scans. Name "
            "fewer scans",
            path=cohort_path,
        )
    if excluded_scan_mask.any():
        cohort = cohort.select(~excluded_scan_mask, fate=EXCLUDED)
    dropped_table = cohort.left_out.copy()
    excluded_row_mask = dropped_table["scan"].isin(excluded_scan_names)
    dropped_table.loc[excluded_row_mask, "fate"] = EXCLUDED
    dropped_table.loc[excluded_row_mask, "reason"] = ""
    cohort = replace(cohort, left_out=dropped_table)
    return _make_cohort_with_notes(cohort)


def _check_named_classes(cohort_path: str | Path, cohort: Cohort) -> None:
    """Raise where a class that the user named has no scan, as in a folder."""
    absent_class_findings = find_absent_class_faults(
        cohort.label_name,
        cohort.reading_options.classes or (),
        cohort.table["label"].value_counts(),
    )
    if absent_class_findings:
        raise CohortError(
            f"{option_text('exclude')} leaves a class without scans. Keep scans of "
            "every class, or choose the classes",
            absent_class_findings,
            path=cohort_path,
        )


def make_cohort_without_faulty(
    cohort: Cohort, fault_by_scan: Mapping[str, Finding]
) -> Cohort:
    """Return the cohort without the scans that have a fault, which its notes list."""
    if not fault_by_scan:
        return cohort
    faulty_scan_mask = cohort.table["scan"].isin(fault_by_scan.keys()).to_numpy()
    return _make_cohort_with_reasons(
        cohort.select(~faulty_scan_mask, fate=FAULTY), fault_by_scan
    )


def _make_cohort_with_reasons(
    cohort: Cohort, fault_by_scan: Mapping[str, Finding]
) -> Cohort:
    """Return the cohort with the faults of scans that it leaves out as reasons."""
    if not fault_by_scan:
        return cohort
    dropped_table = cohort.left_out
    reasons = [
        str(fault_by_scan[scan_name]) if scan_name in fault_by_scan else reason
        for scan_name, reason in zip(
            dropped_table["scan"], dropped_table["reason"], strict=True
        )
    ]
    return _make_cohort_with_notes(
        replace(cohort, left_out=dropped_table.assign(reason=reasons))
    )


def _make_cohort_with_notes(cohort: Cohort) -> Cohort:
    """Return the cohort with notes on all who are excluded, or have faults."""
    other_findings = [
        finding
        for finding in make_findings(cohort.findings)
        if finding.severity != LEFT_OUT or finding.kind not in (EXCLUDED, FAULTY)
    ]
    left_out_findings = make_left_out_notes(_list_left_out_scans(cohort))
    return replace(cohort, findings=(*other_findings, *left_out_findings))


def _make_cohort_of_scans(
    cohort_path: str | Path, cohort: Cohort, scans_option: str
) -> Cohort:
    """Return the cohort of all scans, or of the baseline of every person."""
    check_choice("scans", scans_option, ("all", "baseline"))
    stored_scans_option = cohort.provenance.get("scans", "all")
    if scans_option == stored_scans_option:
        return cohort
    if scans_option == "all":
        raise ParameterError(
            f"{cohort_path} contains baseline scans only, so "
            f"{option_text('scans', 'all')} cannot be applied. Leave this option "
            "out, or read the folder of the study."
        )
    scan_table = cohort.table
    baseline_session_mask = scan_table["session"].map(is_called_baseline)
    baseline_row_indices = list[int]()
    baseline_findings = list[Finding]()
    n_people_without_baseline = 0
    for participant_id, person_table in scan_table.groupby("participant", sort=False):
        session_id_series = person_table["session"]
        baseline_session_series = session_id_series[
            baseline_session_mask[session_id_series.index]
        ]
        baseline_session_series = baseline_session_series[
            baseline_session_series.isin(
                choose_baseline_names(
                    [*baseline_session_series], [*baseline_session_series]
                )
            )
        ]
        if (
            baseline_session_series.empty
            and baseline_session_mask.any()
            and (session_id_series != "").all()
        ):
            n_people_without_baseline += (
                1  # as where the baseline is listed and was not scanned
            )
            continue
        try:
            baseline_row_indices.append(
                _find_baseline_row_index(
                    session_id_series
                    if baseline_session_series.empty
                    else baseline_session_series
                )
            )
        except CohortError as error:
            baseline_finding = Finding.from_error(error)
            baseline_findings.append(
                replace(baseline_finding, participant=str(participant_id))
            )
    if baseline_findings:
        raise CohortError(
            f"{option_text('scans', 'baseline')} cannot be applied because of these "
            "faults",
            baseline_findings,
            path=cohort_path,
        )
    if not baseline_row_indices:
        raise CohortError(
            f"{option_text('scans', 'baseline')} leaves out every scan. Leave this "
            "option out, or correct the names of the visits",
            path=cohort_path,
        )
    n_left_out = len(scan_table) - len(baseline_row_indices)
    scan_note = (
        f"{count_text(n_left_out, 'scan')} of visits other than baseline "
        f"{verb_form(n_left_out, 'were')} left out"
    )
    if n_people_without_baseline:
        scan_note += (
            ", including all scans of "
            f"{count_text(n_people_without_baseline, 'person')} without a baseline "
            "visit"
        )
    baseline_cohort = cohort.select(sorted(baseline_row_indices), fate=LATER_VISIT)
    return replace(
        baseline_cohort,
        findings=(
            *baseline_cohort.findings,
            Finding(scan_note, LEFT_OUT, kind=BASELINE),
        ),
        provenance=baseline_cohort.provenance | {"scans": scans_option},
    )


def _find_baseline_row_index(session_ids: pd.Series) -> int:
    """Return the row of the first visit; raise CohortError where it is not known."""
    if len(session_ids) == 1:
        return int(session_ids.index[0])
    visit_names_text = ", ".join(session_id or "no name" for session_id in session_ids)
    if session_ids.map(is_called_baseline).all():
        raise CohortError(
            "several visits of a person are called 'baseline'",
            got=visit_names_text,
            advice="Correct the names of the visits, and save the cohort again",
        )
    if not _can_order_sessions(session_ids.tolist()):
        raise CohortError(
            "the first visit of a person is unknown",
            got=visit_names_text,
            advice="Call one visit 'baseline', and save the cohort again",
        )
    visit_sort_keys = [make_visit_sort_key(session_id) for session_id in session_ids]
    return int(session_ids.index[visit_sort_keys.index(min(visit_sort_keys))])


def _can_order_sessions(session_ids: Sequence[str]) -> bool:
    """Return whether names of visits differ in numbers alone, and are no plain dates.

    Dates count from the year on.
    """
    if len({*session_ids}) < len(session_ids):
        return False
    digitless_names = {re.sub(r"\d+", "", session_id) for session_id in session_ids}
    year_matches = [
        re.search(r"(?:19|20)\d\d[-.]?\d\d", session_id) for session_id in session_ids
    ]
    has_dates = any(
        re.search(r"\d[./-]\d|\d{6,}", session_id) for session_id in session_ids
    )
    return len(digitless_names) == 1 and (not has_dates or all(year_matches))


def _make_cohort_of_labels(
    cohort_path: str | Path,
    cohort: Cohort,
    label: str | None,
    classes: Sequence[str] | None,
    *,
    skip_faulty: bool,
) -> Cohort:
    """Return the cohort with another column as label, or with some of its classes.

    With `skip_faulty`, scans without a label are left out.
    """
    label_name = cohort.label_name if label is None else label
    is_same_column = label_name.lower() == cohort.label_name.lower()
    if is_same_column and classes is None:
        return cohort
    scan_table = cohort.table
    label_series = get_label_series(cohort, label_name)
    if label_series is None:
        column_names = [
            cohort.label_name,
            *map(str, scan_table.columns[len(KEY_COLUMNS) :]),
        ]
        raise CohortError(
            f"the table has no column {label!r} for the label; its columns are "
            f"{join_with_commas(column_names, 8)}. Name the label column with "
            f"{option_text('label')}",
            path=cohort_path,
        )
    if is_same_column:
        label_name = cohort.label_name
    else:
        covariate_name = str(_find_covariate_name(cohort, label_name))
        label_name = covariate_name.removesuffix("_given")
        scan_table = scan_table.drop(columns=[covariate_name])
        if cohort.classes != (UNLABELLED,):
            scan_table[cohort.label_name] = scan_table["label"]
    n_scans_by_label = label_series.value_counts().sort_index()
    ordered_class_names, are_classes_ordered = order_classes(
        list(n_scans_by_label.index), classes
    )
    class_scan_mask = label_series.isin(ordered_class_names)
    fault_findings, class_note = list[Finding](), ""
    skipped_fault_by_scan: dict[str, Finding] = {}
    if classes is None:
        refuse_continuous(label_name, ordered_class_names)
        label_findings = [
            Finding(
                f"{label_name} is missing (n/a). To continue, "
                f"{format_leave_out_advice()}, or list the classes to keep with "
                f"{option_text('classes')}",
                FAULT,
                scan=scan_name,
            )
            for scan_name in scan_table["scan"][~class_scan_mask]
        ]
        if skip_faulty:
            skipped_fault_by_scan = {
                fault_finding.scan: fault_finding for fault_finding in label_findings
            }
        else:
            fault_findings += label_findings
    else:
        lower_class_names = {label_text.lower() for label_text in ordered_class_names}
        caseless_class_mask = label_series.str.lower().isin(lower_class_names)
        fault_findings += find_spelling_faults(
            label_name, label_series[caseless_class_mask], scan_table["scan"]
        )
        fault_findings += find_absent_class_faults(
            label_name, ordered_class_names, n_scans_by_label
        )
        n_scans_by_other_label = (
            label_series[~class_scan_mask].fillna("n/a").value_counts().sort_index()
        )
        if counts_text := named_counts_text(n_scans_by_other_label.items()):
            class_note = (
                f"scans are left out because their {label_name} is not one of the "
                f"classes: {counts_text}"
            )
    if fault_findings:
        raise CohortError(
            "some labels cannot be used",
            list_grouped_finding_texts(fault_findings),
            path=cohort_path,
        )
    findings = renew_order_findings(
        cohort, ordered_class_names if classes is None else ()
    )
    if class_note:
        findings = (*findings, Finding(class_note, LEFT_OUT, kind=CLASSES))
    scan_table = scan_table.assign(label=label_series)[class_scan_mask].reset_index(
        drop=True
    )
    selected_cohort = cohort.select(
        class_scan_mask.to_numpy(),
        fate=[
            NO_LABEL if pd.isna(label_text) else OTHER_CLASS
            for label_text in label_series
        ],
    )
    selected_cohort = replace(
        selected_cohort,
        table=scan_table,
        classes=ordered_class_names,
        classes_ordered=are_classes_ordered,
        label_name=label_name,
        findings=findings,
    )
    return _make_cohort_with_reasons(selected_cohort, skipped_fault_by_scan)


def _renew_first_visit_notes(cohort: Cohort) -> Cohort:
    """Return the cohort with notes on first visits for its present scans and label."""
    old_kinds = {FIRST_VISIT_VALUE}
    if cohort.table["participant"].is_unique:
        old_kinds.add(ONE_ROW)
    other_findings = [
        finding
        for finding in make_findings(cohort.findings)
        if finding.kind not in old_kinds
    ]
    visit_notes = make_first_visit_value_notes(cohort.table, cohort.label_name)
    return replace(cohort, findings=(*other_findings, *visit_notes))


def renew_order_findings(
    cohort: Cohort, unordered_classes: Sequence[str]
) -> tuple[Finding, ...]:
    """Return the findings, with the note on these instead of the earlier classes."""
    earlier_messages = [
        finding.message for finding in make_unordered_class_notes(cohort.classes)
    ]
    other_findings = [
        finding
        for finding in make_findings(cohort.findings)
        if finding.message not in earlier_messages
    ]
    return (*other_findings, *make_unordered_class_notes(unordered_classes))


__all__ = [
    "get_label_series",
    "is_cohort_file",
    "read_cohort_file",
    "read_study",
    "renew_order_findings",
]
