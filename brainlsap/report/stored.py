"""A finished evaluation on disk, from which a report can be remade without torch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap._files import write_text
from brainlsap.data import Atlas, load_atlas
from brainlsap.evaluation import (
    Audit,
    CohortSummary,
    Evaluation,
    Finding,
    FoldResult,
    ModelResult,
    RankingEvidence,
)
from brainlsap.evaluation.fitting import plain
from brainlsap.exceptions import BrainlsapError, FileFormatError
from brainlsap.report.folder_files import STORED, check_stored

__all__ = ["STORED", "StoredResults", "read_results", "store_results"]

_VERSION = 1
_ARRAYS = ("train", "test", "probability", "scales", "scales_start", "scale_path")
_WORDS = ("scans", "participants", "truth")


@dataclass(frozen=True, eq=False)
class StoredResults:
    """All that a report is made of.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    atlas : Atlas
        The regions; without surfaces where its files are not found.
    title : str or None
        Heading that was asked for.
    truth : DataFrame or None
        Answer key of a simulated cohort.
    evidence : RankingEvidence or None
        What the ranking is held against.
    quality : DataFrame or None
        One row per scan: scan and flags, what is unusual about it.
    cohort_notes : tuple of str
        Further notes on how the cohort was read.
    by_scan : Evaluation or None
        The same models on folds that share people.
    made_with : mapping or None
        Date, versions, code and environment of the fits.

    Examples
    --------
    See :func:`brainlsap.report.read_results`.
    """

    evaluation: Evaluation
    atlas: Atlas
    title: str | None = None
    truth: pd.DataFrame | None = None
    evidence: RankingEvidence | None = None
    quality: pd.DataFrame | None = None
    cohort_notes: tuple[str, ...] = ()
    by_scan: Evaluation | None = None
    made_with: Mapping[str, Any] | None = None


def store_results(results: StoredResults, path: Path) -> Path:
    """Write everything that a report is made of to one file; it names people.

    Parameters
    ----------
    results : StoredResults
        What to keep.
    path : Path
        The file, in `private/`.

    Returns
    -------
    Path
        The file.
    """
    atlas = results.atlas
    record = {
        "version": _VERSION,
        "title": results.title,
        "atlas": {
            "name": atlas.name,
            "folder": None if atlas.folder is None else str(atlas.folder),
            "regions": _table_record(atlas.regions),
        },
        "evaluation": _evaluation_record(results.evaluation),
        "by_scan": None
        if results.by_scan is None
        else _evaluation_record(results.by_scan),
        "truth": None if results.truth is None else _table_record(results.truth),
        "evidence": None if results.evidence is None else results.evidence.to_record(),
        "quality": None if results.quality is None else _table_record(results.quality),
        "cohort_notes": list(results.cohort_notes),
        "made_with": results.made_with,
    }
    return write_text(path, json.dumps(record, allow_nan=False, ensure_ascii=False))


def read_results(folder: str | Path) -> StoredResults:
    """Read a results folder; no torch is needed.

    Parameters
    ----------
    folder : str or Path
        Results folder of `brainlsap run`, with its `private/`.

    Returns
    -------
    StoredResults
        Evaluation, atlas, and what else the report is made of.

    Raises
    ------
    FileFormatError
        Where the folder has no stored evaluation, or it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> from brainlsap.report import write_report
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     page = write_report(evaluation, f"{place}/results", atlas=cohort.atlas)
    ...     read_results(f"{place}/results").evaluation.main.name
    'DummyClassifier'
    """
    path = check_stored(folder)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return _results(record)
    except (
        *(LookupError, TypeError, ValueError, AttributeError, OSError),
        *(ArithmeticError, RecursionError),
    ) as error:
        if isinstance(error, BrainlsapError):
            raise
        raise FileFormatError(
            f"{path} cannot be read as a stored evaluation ({error!r}); run again."
        ) from error


def _results(record: Mapping[str, Any]) -> StoredResults:
    if record["version"] != _VERSION:
        raise FileFormatError(
            f"the stored evaluation is of version {record['version']}, and this "
            f"brainlsap reads version {_VERSION}; run again."
        )
    by_scan, evidence = record["by_scan"], record["evidence"]
    return StoredResults(
        evaluation=_evaluation(record["evaluation"]),
        atlas=_atlas(record["atlas"]),
        title=record["title"],
        truth=_table(record["truth"]),
        evidence=None if evidence is None else RankingEvidence.from_record(evidence),
        quality=_table(record["quality"]),
        cohort_notes=tuple(record["cohort_notes"]),
        by_scan=None if by_scan is None else _evaluation(by_scan),
        made_with=record.get("made_with"),
    )


def _atlas(record: Mapping[str, Any]) -> Atlas:
    """Return the atlas with its surfaces, or its table of regions alone."""
    stored = Atlas(record["name"], _table(record["regions"]), None)
    for place in (record["name"], record["folder"]):
        try:
            found = load_atlas(place)
        except (BrainlsapError, OSError, TypeError):
            continue
        if found.names == stored.names:
            return found
    return stored


def _evaluation_record(evaluation: Evaluation) -> dict[str, Any]:
    cohort, audit = evaluation.cohort, evaluation.audit
    return {
        "results": {
            name: [_fold_record(fold) for fold in result.folds]
            for name, result in evaluation.results.items()
        },
        "splits": [[plain(train), plain(test)] for train, test in evaluation.splits],
        "settings": plain(evaluation.settings),
        "cohort": {
            "table": _table_record(cohort.table),
            "classes": list(cohort.classes),
            "label_name": cohort.label_name,
            "atlas_name": cohort.atlas_name,
            "region_names": list(cohort.region_names),
            "measured": plain(cohort.measured),
            "feature_names": list(cohort.feature_names),
            "notes": list(cohort.notes),
            "provenance": plain(cohort.provenance),
            "data_hash": cohort.data_hash,
        },
        "audit": None if audit is None else _audit_record(audit),
    }


def _audit_record(audit: Audit) -> dict[str, Any]:
    found = [[one.check, one.evidence, one.severity] for one in audit.findings]
    pairs = _table_record(audit.pairs)
    return {"findings": found, "pairs": pairs, "skipped": plain(dict(audit.skipped))}


def _fold_record(fold: FoldResult) -> dict[str, Any]:
    arrays = {name: plain(getattr(fold, name)) for name in _ARRAYS}
    words = {name: [str(one) for one in getattr(fold, name)] for name in _WORDS}
    return {"fold": fold.fold, **arrays, **words, "details": plain(fold.details)}


def _evaluation(record: Mapping[str, Any]) -> Evaluation:
    told = dict(record["cohort"])
    table = _table(told.pop("table"))
    measured = np.array(told.pop("measured"), dtype=bool)
    lists = ("classes", "region_names", "feature_names", "notes")
    told |= {name: tuple(told[name]) for name in lists}
    cohort = CohortSummary(table=table, measured=measured, **told)
    results = {
        name: ModelResult(
            name,
            tuple(_fold(one, cohort.classes) for one in folds),
            cohort.classes,
            cohort.region_names,
            measured,
        )
        for name, folds in record["results"].items()
    }
    splits = tuple(
        (np.array(train, dtype=int), np.array(test, dtype=int))
        for train, test in record["splits"]
    )
    return Evaluation(
        results, splits, record["settings"], cohort, _audit(record["audit"])
    )


def _fold(record: Mapping[str, Any], classes: tuple[str, ...]) -> FoldResult:
    numbers: dict[str, Any] = {
        name: None if record.get(name) is None else np.array(record[name], dtype=float)
        for name in _ARRAYS[2:]
    }
    rows = {name: np.array(record[name], dtype=int) for name in ("train", "test")}
    words = {name: np.array(record[name], dtype=object) for name in _WORDS}
    return FoldResult(
        fold=record["fold"],
        classes=classes,
        details=record["details"],
        **numbers,
        **rows,
        **words,
    )


def _audit(record: Mapping[str, Any] | None) -> Audit | None:
    if record is None:
        return None
    findings = [Finding(*one) for one in record["findings"]]
    return Audit(findings, _table(record["pairs"]), record["skipped"])


def _table_record(frame: pd.DataFrame) -> dict[str, Any]:
    """Return columns as lists, NaN as None; text columns stay text."""
    columns = {
        str(name): [None if pd.isna(one) else one for one in frame[name].tolist()]
        for name in frame
    }
    return {"columns": plain(columns), "kinds": [str(kind) for kind in frame.dtypes]}


def _table(record: Mapping[str, Any] | None) -> Any:
    if record is None:
        return None
    kinds = dict(zip(record["columns"], record["kinds"], strict=True))
    frame = pd.DataFrame(
        {name: pd.Series(one, dtype=object) for name, one in record["columns"].items()}
    )
    for name, kind in kinds.items():
        if kind.startswith(("int", "float", "bool")):
            frame[name] = frame[name].astype(kind)
    return frame
