"""One row for every visit of ADNI: screening joins baseline, months come from dates."""

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap.data.adni_codes import PHASES
from brainlsap.exceptions import CohortError

DAYS_PER_MONTH = 365.25 / 12
VISIT_COLUMNS = (
    *("rid", "ptid", "viscode", "month", "date", "phase", "first_phase", "site"),
    *("diagnosis", "stage", "age", "sex", "education", "apoe4", "mmse", "field"),
)


def merge_visits(
    rows: Iterable[dict[str, Any]], place: Path
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row for every person and month, in time.

    Parameters
    ----------
    rows : iterable of dict
        As :mod:`brainlsap.data.adni_tables` makes them; screening and baseline are
        both month 0.
    place : Path
        For messages.

    Returns
    -------
    visits : DataFrame
        Sorted by person and month.
    notes : list of str
        What was left out or reckoned.

    Raises
    ------
    CohortError
        With every visit that stands twice with two diagnoses.
    """
    people: dict[str, list[dict[str, Any]]] = {}
    nameless = 0
    for row in rows:
        if row["rid"] is None:
            nameless += 1
            continue
        people.setdefault(_rid(row["rid"], place), []).append(row)
    faults: list[str] = []
    merged: list[dict[str, Any]] = []
    counts = {"reckoned": 0, "unknown": 0, "undated": 0}
    for rid, visits in people.items():
        merged += _merge_person(rid, visits, faults, counts)
    if faults:
        raise CohortError(f"{place}: diagnoses contradict each other", faults)
    table = pd.DataFrame(merged).reindex(columns=list(VISIT_COLUMNS)).astype(object)
    told = {
        f"{nameless} rows without a RID: left out": nameless,
        f"{counts['unknown']} visits without a month or a date: left out": counts[
            "unknown"
        ],
        f"{counts['undated']} visits without a date: no image can join them": counts[
            "undated"
        ],
        f"{counts['reckoned']} visits whose code names no month: reckoned from the "
        "days since baseline": counts["reckoned"],
    }
    return table, [note for note, count in told.items() if count]


def _rid(value: object, place: Path) -> str:
    try:
        return str(int(float(str(value))))
    except (ValueError, OverflowError):
        raise CohortError(
            f"{place}: RID must be a whole number such as 4010, got {value!r:.40}"
        ) from None


def _merge_person(
    rid: str, visits: list[dict[str, Any]], faults: list[str], counts: dict[str, int]
) -> list[dict[str, Any]]:
    ptid = next((one["ptid"] for one in visits if one["ptid"]), None)
    start = min(
        (one["date"] for one in visits if one["month"] == 0 and one["date"]),
        default=min((one["date"] for one in visits if one["date"]), default=None),
    )
    known: dict[int, dict[str, Any]] = {}
    # the visit called baseline comes first, so that its facts stand before screening's
    for one in sorted(visits, key=lambda one: (one["viscode"] or "") != "bl"):
        month = one["month"]
        if month is None and one["date"] and start:
            month = round((one["date"] - start).days / DAYS_PER_MONTH / 6) * 6
            counts["reckoned"] += 1
        if month is None:
            counts["unknown"] += 1
            continue
        visit = one | {"month": int(month), "rid": rid, "ptid": ptid}
        if month in known:
            _join(known[month], visit, faults)
        else:
            known[month] = visit
    found = [known[month] for month in sorted(known)]
    counts["undated"] += sum(one["date"] is None for one in found)
    _complete(found, start)
    return found


def _join(first: dict[str, Any], other: dict[str, Any], faults: list[str]) -> None:
    both = {first["diagnosis"], other["diagnosis"]} - {None}
    # screening may differ from baseline, which counts
    if len(both) > 1 and (first["month"] or first["viscode"] == other["viscode"]):
        codes = dict.fromkeys((first["viscode"], other["viscode"]))
        faults.append(
            f"RID {first['rid']} has two diagnoses at {' and '.join(map(str, codes))}"
            f": {first['diagnosis']} and {other['diagnosis']}"
        )
    for name, value in other.items():
        if first.get(name) is None:
            first[name] = value


def _complete(visits: list[dict[str, Any]], start: date | None) -> None:
    """Fill in, for every visit, age, and the phase in which the person came in."""
    phases = [one["phase"] for one in visits if one["phase"] in PHASES]
    first = min(phases, key=PHASES.index, default=None)
    for one in visits:
        one["first_phase"] = one["first_phase"] or first
        born, at_first = one.pop("born", None), one.pop("age_at_first", None)
        one["age"] = None
        if born is not None and one["date"]:
            one["age"] = round(one["date"].year + _share(one["date"]) - born, 1)
        elif at_first is not None:
            years = one["month"] / 12
            if one["date"] and start:
                years = (one["date"] - start).days / 365.25
            one["age"] = round(at_first + years, 1)


def _share(day: date) -> float:
    return (day.timetuple().tm_yday - 1) / 365.25
