"""The inputs of a run read again, and compared with what the run had."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data import Cohort, load_cohort
from brainlsap.data.reading_record import moved_record
from brainlsap.evaluation import CohortSummary, collapse_cohort
from brainlsap.evaluation.cohort_summary import summarise_cohort
from brainlsap.exceptions import BrainlsapError
from brainlsap.report.stored import read_results


def compare_inputs(
    folder: Path, place: str | Path | None = None
) -> tuple[list[str], list[str], list[str]]:
    """Read the cohort of a run again, and say what is otherwise.

    Parameters
    ----------
    folder : Path
        Results folder.
    place : path, optional
        Where the cohort is, if elsewhere than it was.

    Returns
    -------
    checked, differences, notes : list of str
        As of :class:`brainlsap.report.verification.Verification`; people are counted,
        not named.
    """
    summary = read_results(folder).evaluation.cohort
    asked = summary.provenance.get("asked")
    if asked is None:
        return (
            [],
            [],
            ["inputs are not compared: how they were read is not said"],
        )
    if place is not None:
        asked = moved_record(asked, place)
    if not Path(asked["folder"]).is_dir():
        told = f"inputs are not compared: {asked['folder']} is not there"
        return [], [], [f"{told}; say by cohort= where it is"]
    told = "the cohort, read again: people, labels, covariates, arrays"
    return [told], list(_other_inputs(summary, asked)), []


def _other_inputs(summary: CohortSummary, asked: dict[str, Any]) -> Iterator[str]:
    try:
        cohort = _read(asked, summary.provenance.get("collapse"))
    except BrainlsapError as error:
        why = str(error).splitlines()[0]
        yield f"inputs: the cohort cannot be read as it was ({why})"
        return
    before, now = (one.table.set_index("scan") for one in (summary, cohort))
    gone = len(before.index.difference(now.index))
    new = len(now.index.difference(before.index))
    if gone or new:
        yield f"inputs: {gone} scans of the run are not there any more, {new} are new"
        return
    if list(before.index) != list(now.index):
        yield "inputs: the scans come in another order"
        return
    unlike = dict(_unlike_columns(before, now))
    for name, number in unlike.items():
        yield f"inputs: {name} differs in {number} of {len(before)} scans"
    # the hash is of labels, too
    again = summarise_cohort(cohort)
    if "label" not in unlike and again.data_hash != summary.data_hash:
        yield "inputs: connectomes or features are others than those of the run"


def _read(asked: dict[str, Any], collapse: dict[str, list[str]] | None) -> Cohort:
    given = dict(asked)
    cohort = load_cohort(given.pop("folder"), **given)
    return cohort if collapse is None else collapse_cohort(cohort, collapse)


def _unlike_columns(
    before: pd.DataFrame, now: pd.DataFrame
) -> Iterator[tuple[str, int]]:
    for name in before.columns.union(now.columns, sort=False):
        if name not in before or name not in now:
            yield str(name), len(before)
            continue
        number = int((~_alike(before[name], now[name])).sum())
        if number:
            yield str(name), number


def _alike(one: pd.Series, other: pd.Series) -> np.ndarray:
    missing = one.isna().to_numpy() & other.isna().to_numpy()
    if all(pd.api.types.is_numeric_dtype(each) for each in (one, other)):
        first, second = (each.to_numpy(dtype=float) for each in (one, other))
        return missing | np.isclose(first, second, rtol=1e-12, atol=0)
    same = one.astype(str).to_numpy() == other.astype(str).to_numpy()
    return missing | same
