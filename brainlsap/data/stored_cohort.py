"""A cohort's file (.h5), read with the options of a study's folder.

A file holds what one reading of a folder gave. Options that choose among what it holds
are applied: `feature`, `label`, `classes`, `scans`, and `connectome="none"`. All others
say how files of a folder are read: they are refused, unless the folder was read with
the same value.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.cohort import Cohort
from brainlsap.data.covariates import KEY_COLUMNS, find_spellings
from brainlsap.data.find_files import visit_order
from brainlsap.data.load import NO_CONNECTOME, load_cohort
from brainlsap.data.participants import (
    UNLABELLED,
    choose_baselines,
    find_absent,
    is_called_baseline,
    order_classes,
    refuse_continuous,
)
from brainlsap.data.reading_options import ReadingOptions
from brainlsap.exceptions import CohortError, ParameterError, check_choice
from brainlsap.findings import (
    BASELINE,
    CLASSES,
    FAULT,
    LEFT_OUT,
    Finding,
    group_findings,
)

SUFFIX = ".h5"
SELECTIONS = ("feature", "label", "classes", "scans", "connectome")
"""Options that choose among what the file of a cohort holds."""


def is_cohort_file(study: str | Path) -> bool:
    """Return whether a study is the file of a cohort, by its name."""
    return Path(study).suffix.lower() == SUFFIX


def read_study(study: str | Path, *args: Any, **options: Any) -> Cohort:
    """Read a study's folder, or the file of a cohort, with the same options.

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
        Where the study cannot be read, or an option leaves nothing of it.
    ParameterError
        Where an option cannot be applied to a file.
    """
    if not is_cohort_file(study):
        return load_cohort(study, *args, **options)
    positional_options = dict(zip(("atlas", "feature", "label"), args, strict=False))
    return read_cohort_file(study, **positional_options, **options)


def read_cohort_file(path: str | Path, **options: Any) -> Cohort:
    """Read the file of a cohort, and apply options to it or refuse them."""
    options.pop("verbose", None)
    new_options = ReadingOptions(**options)
    cohort = Cohort.load(path)
    _check_unchanged(path, cohort, new_options)
    if new_options.atlas:
        cohort = _check_atlas(path, cohort, new_options.atlas)
    if new_options.connectome is not None:
        cohort = _apply_connectome(path, cohort, new_options.connectome)
    if new_options.feature is not None:
        cohort = _select_features(path, cohort, new_options.feature)
    if new_options.scans:
        cohort = _select_scans(path, cohort, new_options.scans)
    if new_options.label is not None or new_options.classes is not None:
        cohort = _select_labels(path, cohort, new_options.label, new_options.classes)
    # A report and a stored model state the options that were applied last.
    selections = new_options.to_jsonable(SELECTIONS)
    reading_options = cohort.reading_options.change(**selections)
    return replace(cohort, reading_options=reading_options)


def label_column(cohort: Cohort, column: str) -> pd.Series | None:
    """Return a column of a cohort as labels: text, None where missing.

    None where the cohort has no such column.
    """
    if column.lower() == cohort.label_name.lower():
        return cohort.table["label"]
    head = _find_covariate(cohort, column)
    return None if head is None else cohort.table[head].map(_label_text)


def _find_covariate(cohort: Cohort, column: str) -> str | None:
    """Return the head of a covariate in the spelling of the table."""
    heads = {str(head): head for head in cohort.table.columns[len(KEY_COLUMNS) :]}
    for name in (column, f"{column}_given"):
        if name in heads:
            return heads[name]
        same_heads = [
            head for text, head in heads.items() if text.lower() == name.lower()
        ]
        if len(same_heads) == 1:
            return same_heads[0]
    return None


def _label_text(value: Any) -> str | None:
    """Return a label as a table of people has it: whole numbers without a point."""
    if pd.isna(value):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _check_unchanged(path: str | Path, cohort: Cohort, options: ReadingOptions) -> None:
    """Raise where options say another way of reading than that of the file."""
    earlier_options = cohort.provenance | cohort.reading_options.to_jsonable()
    refused_options = list[str]()
    for name, value in options.to_jsonable().items():
        if name in ("atlas", *SELECTIONS):
            continue
        earlier_value = earlier_options.get(name)
        if value == earlier_value:
            continue
        # no weight was negative, so that nothing is to be dropped
        if (
            name == "negative"
            and earlier_value == "refuse"
            and value in ("drop", "absolute")
        ):
            continue
        value_text = (
            "no value of its own" if earlier_value is None else repr(earlier_value)
        )
        refused_options.append(
            f"{name}= ({getattr(options, name)!r}; the file has {value_text})"
        )
    if refused_options:
        raise ParameterError(
            f"{path} holds a cohort that was read before, so "
            f"{', '.join(refused_options)} cannot be applied. Leave it out, or read "
            "the study's folder."
        )


def _check_atlas(path: str | Path, cohort: Cohort, atlas: str | Path | Atlas) -> Cohort:
    """Return the cohort with the atlas asked for, which must have its regions."""
    expected = load_atlas(atlas)
    if expected.names != cohort.atlas.names:
        raise ParameterError(
            f"{path} holds the {cohort.n_rois} regions of {cohort.atlas.name}, and "
            f"atlas= names {expected.name} ({len(expected)} regions), which differ in "
            "names or order. Leave atlas= out, or read the study's folder."
        )
    return replace(cohort, atlas=expected)


def _apply_connectome(path: str | Path, cohort: Cohort, connectome: Any) -> Cohort:
    """Return the cohort without connectomes for "none"; refuse other ones."""
    if not isinstance(connectome, str | Path):
        raise ParameterError(
            f"{path} holds a cohort with connectomes, so connectome= cannot be "
            "applied. Leave it out, or read the study's folder."
        )
    if str(connectome) == cohort.provenance.get("connectome"):
        return cohort
    if connectome != NO_CONNECTOME:
        raise ParameterError(
            f"{path} holds a cohort with connectomes, so connectome= can only be "
            f"'none'; got {str(connectome)!r}. Leave it out, or read the study's "
            "folder."
        )
    shape = cohort.connectomes.shape
    zero_matrices = np.broadcast_to(np.zeros(shape[1:], dtype=np.float32), shape)
    cohort = replace(
        cohort,
        connectomes=zero_matrices,
        provenance=cohort.provenance | {"connectome": NO_CONNECTOME},
    )
    note = "the connectome: none was taken, it is made of features"
    return replace(cohort, findings=(*cohort.findings, note))


def _select_features(
    path: str | Path, cohort: Cohort, feature: str | Sequence[str]
) -> Cohort:
    """Return the cohort with some of its features, in this order."""
    names = [feature] if isinstance(feature, str) else [str(name) for name in feature]
    if not names or len({*names}) < len(names):
        raise ParameterError(
            f"feature must be a name or a list of different names, got {feature!r}."
        )
    absent = [name for name in names if name not in cohort.feature_names]
    if absent:
        raise ParameterError(
            f"{path} holds the features {', '.join(cohort.feature_names)}, and not "
            f"{', '.join(absent)}. Choose of these by feature=, or read the study's "
            "folder."
        )
    columns = [cohort.feature_names.index(name) for name in names]
    return replace(
        cohort, features=cohort.features[..., columns], feature_names=tuple(names)
    )


def _select_scans(path: str | Path, cohort: Cohort, scans: str) -> Cohort:
    """Return the cohort of all scans, or of the baseline of every person."""
    check_choice("scans", scans, ("all", "baseline"))
    earlier_scans = cohort.provenance.get("scans", "all")
    if scans == earlier_scans:
        return cohort
    if scans == "all":
        raise ParameterError(
            f"{path} holds the scans of the baseline only, so scans='all' cannot be "
            "applied. Leave it out, or read the study's folder."
        )
    table = cohort.table
    is_named = table["session"].map(is_called_baseline)
    rows, faults, n_without = list[int](), list[Finding](), 0
    for person, visits in table.groupby("participant", sort=False):
        sessions = visits["session"]
        baseline_sessions = sessions[is_named[sessions.index]]
        baseline_sessions = baseline_sessions[
            baseline_sessions.isin(
                choose_baselines([*baseline_sessions], [*baseline_sessions])
            )
        ]
        if baseline_sessions.empty and is_named.any() and (sessions != "").all():
            n_without += 1  # as where the baseline is listed and was not scanned
            continue
        try:
            rows.append(
                _choose_baseline_row(
                    sessions if baseline_sessions.empty else baseline_sessions
                )
            )
        except ValueError as error:
            faults.append(Finding(str(error), FAULT, participant=str(person)))
    if faults:
        raise CohortError("scans='baseline' cannot be applied", faults, path=path)
    if not rows:
        raise CohortError("no scan is left by scans='baseline'", path=path)
    note = f"{len(table) - len(rows)} scans that are not the baseline left out"
    if n_without:
        note += f", among them all of {n_without} people without a visit of that name"
    baseline_cohort = cohort.select(sorted(rows))
    return replace(
        baseline_cohort,
        findings=(*baseline_cohort.findings, Finding(note, LEFT_OUT, kind=BASELINE)),
        provenance=baseline_cohort.provenance | {"scans": scans},
    )


def _choose_baseline_row(sessions: pd.Series) -> int:
    """Return the row of the first visit; raise ValueError where it is not known."""
    if len(sessions) == 1:
        return int(sessions.index[0])
    names = ", ".join(name or "no name" for name in sessions)
    if sessions.map(is_called_baseline).all():
        raise ValueError(f"several visits are called baseline; got {names}")
    if not _has_order(sessions.tolist()):
        raise ValueError(f"which visit is the first is not known; got {names}")
    keys = [visit_order(name) for name in sessions]
    return int(sessions.index[keys.index(min(keys))])


def _has_order(sessions: Sequence[str]) -> bool:
    """Return whether names of visits differ in numbers alone, and are no plain dates.

    Dates count from the year on.
    """
    if len({*sessions}) < len(sessions):
        return False
    name_shapes = {re.sub(r"\d+", "", name) for name in sessions}
    years = [re.search(r"(?:19|20)\d\d[-.]?\d\d", name) for name in sessions]
    is_dated = any(re.search(r"\d[./-]\d|\d{6,}", name) for name in sessions)
    return len(name_shapes) == 1 and (not is_dated or all(years))


def _select_labels(
    path: str | Path,
    cohort: Cohort,
    label: str | None,
    classes: Sequence[str] | None,
) -> Cohort:
    """Return the cohort with another column as label, or with some of its classes."""
    label_name = cohort.label_name if label is None else label
    is_same_column = label_name.lower() == cohort.label_name.lower()
    if is_same_column and classes is None:
        return cohort
    table = cohort.table
    labels = label_column(cohort, label_name)
    if labels is None:
        heads = [cohort.label_name, *map(str, table.columns[len(KEY_COLUMNS) :])]
        raise CohortError(
            f"the label {label!r} is no column of its table; found "
            f"{', '.join(heads)}. Name the column by label= (--label)",
            path=path,
        )
    if is_same_column:
        label_name = cohort.label_name
    else:
        head = str(_find_covariate(cohort, label_name))
        label_name = head.removesuffix("_given")
        table = table.drop(columns=[head])
        if cohort.classes != (UNLABELLED,):
            table[cohort.label_name] = table["label"]
    counts = labels.value_counts().sort_index()
    order, is_ordered = order_classes(list(counts.index), classes)
    is_kept = labels.isin(order)
    faults, note = list[Finding](), ""
    if classes is None:
        refuse_continuous(label_name, order)
        faults += [
            Finding(
                f"no {label_name} (n/a); leave the scan out, or keep those with a "
                "label by classes= (--classes)",
                FAULT,
                scan=scan,
            )
            for scan in table["scan"][~is_kept]
        ]
    else:
        names = {name.lower() for name in order}
        is_alike = labels.str.lower().isin(names)
        faults += find_spellings(label_name, labels[is_alike])
        faults += find_absent(label_name, order, counts)
        other_labels = labels[~is_kept].fillna("n/a").value_counts().sort_index()
        if counts_text := ", ".join(
            f"{name} ({n})" for name, n in other_labels.items()
        ):
            note = f"left out, {label_name} is not among the classes: {counts_text}"
    if faults:
        raise CohortError("labels cannot be used", group_findings(faults), path=path)
    labelled_cohort = cohort.select(is_kept.to_numpy())
    table = table.assign(label=labels)[is_kept].reset_index(drop=True)
    labelled_cohort = replace(
        labelled_cohort,
        table=table,
        classes=order,
        classes_ordered=is_ordered,
        label_name=label_name,
    )
    if not note:
        return labelled_cohort
    left_out = Finding(note, LEFT_OUT, kind=CLASSES)
    return replace(labelled_cohort, findings=(*labelled_cohort.findings, left_out))


__all__ = ["is_cohort_file", "label_column", "read_cohort_file", "read_study"]
