"""Read ADNI's tables: who was seen when, in which phase, with which diagnosis.

Tables are known by their columns, whatever their files are called: ADNIMERGE, or
DXSUM with ARM (and PTDEMOG, REGISTRY where they are there), and the list of images
that LONI's search gives.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from brainlsap.data.adni_codes import (
    ARMS,
    CODED_DIAGNOSES,
    PHASES,
    STAGED_PHASES,
    cell,
    diagnosis_of,
    is_ptid,
    months_of,
    phase_of,
    read_day,
    rid_of,
    stage_of,
)
from brainlsap.data.adni_visits import merge_visits
from brainlsap.data.tables import read_table
from brainlsap.exceptions import CohortError

KINDS = {
    "ADNIMERGE": {"rid", "viscode", "dx_bl", "dx"},
    "ARM": {"rid", "arm"},
    "REGISTRY": {"rid", "viscode", "examdate", "rgstatus"},
    "PTDEMOG": {"rid", "ptgender", "ptdobyy"},
    "IMAGES": {"image data id", "subject"},
}


@dataclass(frozen=True, eq=False)
class AdniTables:
    """What ADNI's tables say.

    Parameters
    ----------
    visits : DataFrame
        A row for every visit, see :data:`.VISIT_COLUMNS`; `stage` is the baseline
        label of the person, `date` a day, `month` a whole number or missing.
    images : DataFrame
        LONI's list of images by their id; empty where there is none.
    notes : tuple of str
        What was read from what, and what is missing.
    """

    visits: pd.DataFrame
    images: pd.DataFrame
    notes: tuple[str, ...] = field(default=())


def read_adni_tables(place: str | Path) -> AdniTables:
    """Read every table of ADNI in a folder, or one file.

    Parameters
    ----------
    place : str or Path
        Folder of CSV files, or ADNIMERGE's file.

    Returns
    -------
    AdniTables

    Raises
    ------
    CohortError
        Where there is no ADNIMERGE and no DXSUM, a date cannot be read, or a visit
        stands twice with two diagnoses.

    Examples
    --------
    See :func:`brainlsap.data.import_adni`.
    """
    found, names = _sort_tables(Path(place))
    if "ADNIMERGE" in found:
        rows = _from_adnimerge(found["ADNIMERGE"])
        notes = [f"visits: {names['ADNIMERGE']} (ADNIMERGE)"]
        if "DXSUM" in found:
            notes.append(f"{names['DXSUM']} was not needed beside ADNIMERGE")
    elif "DXSUM" in found:
        rows = _from_dxsum(found)
        used = [names[kind] for kind in ("DXSUM", "ARM", "PTDEMOG") if kind in found]
        notes = [f"visits: {', '.join(used)}"]
        if "ARM" not in found:
            notes.append("no ARM table: SMC, EMCI and LMCI are not known")
    else:
        raise CohortError(
            f"{place}: no table of diagnoses; expected ADNIMERGE (columns RID, "
            "VISCODE, DX_bl, DX) or DXSUM (RID, VISCODE and DIAGNOSIS, DXCHANGE or "
            "DXCURREN)"
        )
    visits, more = merge_visits(rows, Path(place))
    images = found.get("IMAGES", pd.DataFrame())
    return AdniTables(visits, images, (*notes, *more))


def _sort_tables(place: Path) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    paths = [place] if place.is_file() else sorted(place.glob("*.[ct]sv"))
    if not paths:
        raise CohortError(f"{place}: no such folder, or no .csv tables in it")
    found: dict[str, pd.DataFrame] = {}
    names: dict[str, str] = {}
    for path in paths:
        table = read_table(path)
        heads = [str(head).strip().lower() for head in table.columns]
        kind = _kind(set(heads))
        if kind is None:
            continue
        if kind in found:
            raise CohortError(
                f"{place}: {names[kind]} and {path.name} are both {kind}; keep one"
            )
        found[kind], names[kind] = table.set_axis(heads, axis=1), path.name
    return found, names


def _kind(heads: set[str]) -> str | None:
    for kind, wanted in KINDS.items():
        if wanted <= heads:
            return kind
    if {"rid", "viscode"} <= heads and heads & set(CODED_DIAGNOSES):
        return "DXSUM"
    return None


def _day(row: dict[str, object], *heads: str) -> object:
    for head in heads:
        if cell(row.get(head)) is not None:
            try:
                return read_day(row[head])
            except ValueError:
                raise CohortError(
                    f"RID {row.get('rid')} at {row.get('viscode')}: {head.upper()} "
                    f"must be a day such as 2006-04-18 or 4/18/2006, got {row[head]!r}"
                ) from None
    return None


def _number(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    try:
        number = float(cell(value) or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _site(row: dict[str, object], ptid: str | None) -> str | None:
    return cell(row.get("site")) or cell(row.get("siteid")) or (ptid or "")[:3] or None


def _from_adnimerge(table: pd.DataFrame) -> list[dict[str, object]]:
    rows = []
    for row in table.to_dict("records"):
        ptid = cell(row.get("ptid"))
        code = cell(row["viscode"])
        day = _day(row, "examdate")
        first = phase_of(row.get("origprot"))
        rows.append(
            {
                "rid": cell(row["rid"]),
                "ptid": ptid,
                "viscode": code,
                "month": months_of(code),
                "date": day,
                "phase": phase_of(row.get("colprot")) or first,
                "first_phase": first,
                "site": _site(row, ptid),
                "diagnosis": diagnosis_of(row["dx"]),
                "stage": stage_of(row["dx_bl"]),
                "age_at_first": _number(row.get("age")),
                "sex": _sex(row.get("ptgender")),
                "education": cell(row.get("pteducat")),
                "apoe4": cell(row.get("apoe4")),
                "mmse": cell(row.get("mmse")),
                "field": cell(row.get("fldstreng")),
            }
        )
    return rows


def _from_dxsum(found: dict[str, pd.DataFrame]) -> list[dict[str, object]]:
    arms = _stages(found.get("ARM"))
    people = _demography(found.get("PTDEMOG"))
    exams = _exam_days(found.get("REGISTRY"))
    ptids = _ptids(found.values())
    rows = []
    for row in found["DXSUM"].to_dict("records"):
        rid = rid_of(row["rid"])
        code = cell(row.get("viscode2")) or cell(row["viscode"])
        ptid = cell(row.get("ptid")) or ptids.get(rid)
        known = exams.get((rid, cell(row["viscode"])))
        day = _day(row, "examdate") or known or _day(row, "userdate")
        rows.append(
            {
                "rid": rid,
                "ptid": ptid,
                "viscode": code,
                "month": months_of(code),
                "date": day,
                "phase": phase_of(row.get("phase")) or phase_of(row.get("colprot")),
                "first_phase": None,
                "site": _site(row, ptid),
                "diagnosis": _coded_diagnosis(row),
                "stage": arms.get(rid),
                **people.get(rid, {}),
            }
        )
    return rows


def _coded_diagnosis(row: dict[str, object]) -> str | None:
    for head, codes in CODED_DIAGNOSES.items():
        value = cell(row.get(head))
        if value is None:
            continue
        number = _number(value)
        words = diagnosis_of(value)
        if words is None and number is not None:
            words = codes.get(int(number))
        if words is not None:
            return words
    return None


def _stages(arms: pd.DataFrame | None) -> dict[str | None, str]:
    """Return the baseline label by RID, of the phase in which a person came in."""
    found: dict[str | None, tuple[int, str]] = {}
    for row in [] if arms is None else arms.to_dict("records"):
        phase = phase_of(row.get("phase")) or phase_of(row.get("colprot"))
        number = _number(row["arm"])
        if phase is not None and phase not in STAGED_PHASES:
            continue
        if cell(row.get("enrolled")) == "0":
            continue
        stage = stage_of(row["arm"])
        if stage is None and number is not None:
            stage = ARMS.get(int(number))
        if stage is not None:
            rid, place = rid_of(row["rid"]), PHASES.index(phase) if phase else 0
            known = found.get(rid, (len(PHASES), ""))
            found[rid] = (place, stage) if place < known[0] else known
    return {rid: stage for rid, (_, stage) in found.items()}


def _sex(value: object) -> str | None:
    text = (cell(value) or "").lower()
    return {"1": "M", "2": "F", "male": "M", "female": "F"}.get(text)


def _demography(table: pd.DataFrame | None) -> dict[str | None, dict[str, object]]:
    found: dict[str | None, dict[str, object]] = {}
    for row in [] if table is None else table.to_dict("records"):
        born = _number(row["ptdobyy"])
        month = _number(row.get("ptdobmm"))
        if born is None:
            continue
        share = ((month or 6.5) - 0.5) / 12
        found.setdefault(
            rid_of(row["rid"]),
            {
                "born": born + share,
                "sex": _sex(row.get("ptgender")),
                "education": cell(row.get("pteducat")),
            },
        )
    return found


def _exam_days(table: pd.DataFrame | None) -> dict[tuple[object, object], object]:
    rows = [] if table is None else table.to_dict("records")
    # a row without a day does not undo the day of another
    told = [(rid_of(r["rid"]), cell(r["viscode"]), _day(r, "examdate")) for r in rows]
    return {(rid, code): day for rid, code, day in told if day is not None}


def _ptids(tables: Iterable[pd.DataFrame]) -> dict[str | None, str]:
    found: dict[str | None, str] = {}
    for table in tables:
        heads = [head for head in ("ptid", "subject") if head in table]
        for head in heads[:1]:
            for name in table[head]:
                if name is not None and is_ptid(name):
                    found.setdefault(str(int(name.rsplit("_", 1)[1])), name)
    return found
