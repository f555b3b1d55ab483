"""ADNI's tables: one row for every visit of a person, with labels of both kinds.

Screening joins baseline (month 0); screen failures are no visits. Months that a code
does not name are reckoned from the days since baseline.
"""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from brainlsap.data import read_table
from brainlsap.exceptions import CohortError

STAGES = ("CN", "SMC", "EMCI", "LMCI", "AD")
DIAGNOSES = ("CN", "MCI", "AD")
PHASES = ("ADNI1", "ADNIGO", "ADNI2", "ADNI3", "ADNI4")
# Phases that tell SMC, EMCI and LMCI apart.
STAGED_PHASES = PHASES[:3]
# Heads, in lower case, by which a table is known.
KINDS = {
    "ADNIMERGE": {"rid", "viscode", "dx_bl", "dx"},
    "ARM": {"rid", "arm"},
    "REGISTRY": {"rid", "viscode", "examdate", "rgstatus"},
    "PTDEMOG": {"rid", "ptgender", "ptdobyy"},
    "IMAGES": {"image data id", "subject"},
}
_WORDS = {
    **dict.fromkeys(("cn", "nl", "normal", "smc"), "CN"),
    **dict.fromkeys(("mci", "emci", "lmci"), "MCI"),
    **dict.fromkeys(("dementia", "ad"), "AD"),
}
# DXCHANGE: the state after the change; DXCURREN and DIAGNOSIS: the state.
_STATE = {1: "CN", 2: "MCI", 3: "AD"}
_CHANGE = {
    **dict.fromkeys((1, 7, 9), "CN"),
    **dict.fromkeys((2, 4, 8), "MCI"),
    **dict.fromkeys((3, 5, 6), "AD"),
}
CODED = {"diagnosis": _STATE, "dxcurren": _STATE, "dxchange": _CHANGE}
# ARM is coded alike in ADNI1, GO and 2: group by scanner, then EMCI and SMC.
_ARMS = {**dict.fromkeys((1, 4, 7), "CN"), **dict.fromkeys((2, 5, 8), "LMCI")}
_ARMS |= {**dict.fromkeys((3, 6, 9), "AD"), 10: "EMCI", 11: "SMC"}
_BASELINE = ("bl", "sc", "scmri", "m0", "m00", "m000", "4_bl", "4_sc")
_SCREEN_FAILURE = "f"
_SEXES = {"1": "M", "2": "F", "male": "M", "female": "F"}
# ADNI writes -1 for "not done" and -4 for "missing at transfer".
_ABSENT = ("-1", "-4", "-1.0", "-4.0")
_DAYS_PER_MONTH, _DAYS_PER_YEAR = 365.25 / 12, 365.25
VISIT_COLUMNS = (
    *("rid", "ptid", "viscode", "month", "date", "phase", "first_phase", "site"),
    *("diagnosis", "stage", "age", "sex", "education", "apoe4", "mmse", "field"),
)


class AdniTables(NamedTuple):
    """What ADNI's tables say."""

    visits: pd.DataFrame  # VISIT_COLUMNS; `stage` is the person's label at baseline
    images: pd.DataFrame  # LONI's list of images; empty where there is none
    notes: tuple[str, ...]  # what was read from what, left out, and reckoned


def read_adni_tables(place: str | Path) -> AdniTables:
    """Read every table of ADNI in a folder, or ADNIMERGE's file.

    Raises CohortError where there is no ADNIMERGE and no DXSUM, a date cannot be read,
    or a visit stands twice with two diagnoses.
    """
    place = Path(place)
    found, names = _sort_tables(place)
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
    visits, more = merge_visits(rows, place)
    images = found.get("IMAGES", pd.DataFrame())
    return AdniTables(visits, images, (*notes, *more))


def _sort_tables(place: Path) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Return the tables and their files' names, by kind; heads in lower case."""
    paths = [place] if place.is_file() else sorted(place.glob("*.[ct]sv"))
    if not paths:
        raise CohortError(f"{place}: no such folder, or no .csv tables in it")
    found: dict[str, pd.DataFrame] = {}
    names: dict[str, str] = {}
    for path in paths:
        table = read_table(path)
        table.columns = table.columns.astype(str).str.strip().str.lower()
        heads = set(table.columns)
        kind = next((name for name, wanted in KINDS.items() if wanted <= heads), None)
        if kind is None and {"rid", "viscode"} <= heads and heads & set(CODED):
            kind = "DXSUM"
        if kind is None:
            continue
        if kind in found:
            raise CohortError(
                f"{place}: {names[kind]} and {path.name} are both {kind}; keep one"
            )
        found[kind] = table.mask(table.isin(_ABSENT)).astype(object)
        names[kind] = path.name
    return found, names


def _first(table: pd.DataFrame, *heads: str) -> pd.Series:
    """Return the first of some columns that says something, row by row."""
    found = pd.Series(None, index=table.index, dtype=object)
    for head in heads:
        if head in table:
            found = found.where(found.notna(), table[head])
    return found


def _text(column: pd.Series) -> pd.Series:
    return column.astype(object).where(column.notna(), None).astype("string")


def _days(table: pd.DataFrame, head: str) -> pd.Series:
    """Return a column of days written as 2006-04-18 or 4/18/2006."""
    text = _text(_first(table, head)).str.strip()
    days = parse_days(text)
    bad = text.notna() & days.isna()
    if bad.any():
        row = table[bad].iloc[0]
        raise CohortError(
            f"RID {row['rid']} at {row['viscode']}: {head.upper()} must be a day such "
            f"as 2006-04-18 or 4/18/2006, got {row[head]!r}"
        )
    return days


def parse_days(text: pd.Series) -> pd.Series:
    """Return days of text such as 2006-04-18_08_20_30.0 or 4/18/2006; else NaT."""
    days = pd.to_datetime(text.str.slice(0, 10), format="%Y-%m-%d", errors="coerce")
    american = text.str.split().str[0]
    return days.fillna(pd.to_datetime(american, format="%m/%d/%Y", errors="coerce"))


def _diagnosis(column: pd.Series) -> pd.Series:
    """Return CN, MCI or AD of words; of a change, what it led to."""
    words = _text(column).str.lower().str.split(" to ").str[-1].str.strip()
    return words.map(_WORDS).astype(object)


def _stage(column: pd.Series) -> pd.Series:
    """Return CN, SMC, EMCI, LMCI or AD; missing for a bare MCI."""
    text = _text(column).str.upper().replace({"NL": "CN", "DEMENTIA": "AD"})
    return text.where(text.isin(STAGES)).astype(object)


def _phase(column: pd.Series) -> pd.Series:
    """Return a phase in one spelling: `ADNI GO`, `adnigo` and `ADNIGO` are one."""
    text = _text(column)
    short = text.str.upper().str.replace(r"[ -]", "", regex=True)
    return short.where(short.isin(PHASES), text).astype(object)


def _number(column: pd.Series) -> pd.Series:
    return pd.to_numeric(_text(column), errors="coerce")


def _sex(column: pd.Series) -> pd.Series:
    return _text(column).str.lower().map(_SEXES).astype(object)


def _from_adnimerge(table: pd.DataFrame) -> pd.DataFrame:
    first = _phase(_first(table, "origprot"))
    phase = _phase(_first(table, "colprot"))
    return pd.DataFrame(
        {
            "rid": table["rid"],
            "ptid": _first(table, "ptid"),
            "viscode": table["viscode"],
            "date": _days(table, "examdate"),
            "phase": phase.where(phase.notna(), first),
            "first_phase": first,
            "site": _first(table, "site", "siteid"),
            "diagnosis": _diagnosis(table["dx"]),
            "stage": _stage(table["dx_bl"]),
            "age_at_first": _number(_first(table, "age")),
            "sex": _sex(_first(table, "ptgender")),
            "education": _first(table, "pteducat"),
            "apoe4": _first(table, "apoe4"),
            "mmse": _first(table, "mmse"),
            "field": _first(table, "fldstreng"),
        }
    )


def _from_dxsum(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Join DXSUM with arms, demography and days of examination, by RID."""
    table = found["DXSUM"]
    rid = _number(table["rid"])
    diagnosis = pd.Series(None, index=table.index, dtype=object)
    for head, codes in CODED.items():
        column = _first(table, head)
        words = _diagnosis(column)
        said = words.where(words.notna(), _number(column).map(codes))
        diagnosis = diagnosis.where(diagnosis.notna(), said)
    examined = _days(table, "examdate")
    if "REGISTRY" in found:
        known = found["REGISTRY"].assign(day=_days(found["REGISTRY"], "examdate"))
        # a row without a day does not undo the day of another
        known = known.dropna(subset="day").assign(rid=_number(known["rid"]))
        days = known.drop_duplicates(["rid", "viscode"], keep="last")
        days = days.set_index(["rid", "viscode"])["day"]
        keys = pd.MultiIndex.from_arrays([rid, table["viscode"]])
        there = pd.Series(days.reindex(keys).to_numpy(), index=table.index)
        examined = examined.fillna(there)
    people = pd.DataFrame(index=pd.Index([], dtype=float))
    if "PTDEMOG" in found:
        told = found["PTDEMOG"]
        share = (_number(_first(told, "ptdobmm")).fillna(6.5) - 0.5) / 12
        people = pd.DataFrame(
            {
                "born": _number(told["ptdobyy"]) + share,
                "sex": _sex(told["ptgender"]),
                "education": _first(told, "pteducat"),
            }
        ).set_index(_number(told["rid"]))
        people = people.dropna(subset="born")
        people = people[~people.index.duplicated()]
    rows = pd.DataFrame(
        {
            "rid": table["rid"],
            "ptid": _first(table, "ptid"),
            "viscode": _first(table, "viscode2", "viscode"),
            "date": examined.fillna(_days(table, "userdate")),
            "phase": _phase(_first(table, "phase", "colprot")),
            "site": _first(table, "site", "siteid"),
            "diagnosis": diagnosis,
            "stage": rid.map(_stages(found.get("ARM"))).astype(object),
            **{head: rid.map(people[head]) for head in people},
        }
    )
    ptid = rows["ptid"].where(rows["ptid"].notna(), _ptids(found, rid))
    return rows.assign(ptid=ptid)


def _stages(arms: pd.DataFrame | None) -> dict[float, str]:
    """Return the baseline label by RID, of the phase in which a person came in."""
    if arms is None:
        return {}
    phase = _phase(_first(arms, "phase", "colprot"))
    stage = _stage(arms["arm"])
    stage = stage.where(stage.notna(), _number(arms["arm"]).map(_ARMS))
    told = pd.DataFrame({"rid": _number(arms["rid"]), "stage": stage})
    ranks = {name: rank for rank, name in enumerate(PHASES)}
    told["place"] = phase.map(ranks).fillna(0).astype(float)
    told = told[
        (phase.isna() | phase.isin(STAGED_PHASES))
        & (_text(_first(arms, "enrolled")) != "0").fillna(True)
        & stage.notna()
    ]
    told = told.sort_values("place", kind="stable")
    return dict(told.drop_duplicates("rid").set_index("rid")["stage"])


def _ptids(found: dict[str, pd.DataFrame], rid: pd.Series) -> pd.Series:
    """Return the names of people that any table gives; they end with the RID."""
    names = pd.concat([_text(_first(t, "ptid", "subject")) for t in found.values()])
    names = names[names.str.fullmatch(r"\d{3}_S_\d{4,5}").fillna(False)]
    number = names.str.rsplit("_", n=1).str[1].astype(float)
    known = dict(zip(number[::-1], names[::-1], strict=True))
    return rid.map(known).astype(object)


def merge_visits(rows: pd.DataFrame, place: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return one row for every person and month, in time, and what was left out."""
    text = _text(rows["rid"]).str.strip()
    number = pd.to_numeric(text, errors="coerce").astype(float)
    bad = text[text.notna() & (number % 1 != 0)]
    if len(bad):
        raise CohortError(
            f"{place}: RID must be a whole number such as 4010, got {bad.iloc[0]!r:.40}"
        )
    code = _text(rows["viscode"]).str.strip().str.lower()
    failed = (code == _SCREEN_FAILURE).fillna(False)
    rows = rows.assign(number=number, code=code)
    month = pd.to_numeric(code.str.extract(r"^m(\d{1,3})$")[0], errors="coerce")
    rows["month"] = month.astype(float).mask(code.isin(_BASELINE), 0.0)
    kept = rows[number.notna() & ~failed]
    since = (kept["date"] - _start(kept["date"], kept)).dt.days
    reckoned = (since / _DAYS_PER_MONTH / 6).round() * 6
    n_reckoned = int((kept["month"].isna() & reckoned.notna()).sum())
    kept = kept.assign(month=kept["month"].fillna(reckoned))
    n_unknown = int(kept["month"].isna().sum())
    kept = kept.dropna(subset="month")
    # the visit called baseline comes first: its facts stand before screening's
    kept = kept.iloc[(kept["code"] != "bl").fillna(True).argsort(kind="stable")]
    _check_diagnoses(kept, place)
    visits = kept.groupby(["number", "month"]).first().reset_index()
    wanted = (*VISIT_COLUMNS, "born", "age_at_first")
    absent = [name for name in wanted if name not in visits]
    visits = _complete(visits.reindex(columns=[*visits, *absent]))
    n_undated = int(visits["date"].isna().sum())
    told = {
        "rows without a RID: left out": int(number.isna().sum()),
        "visits of screen failures (VISCODE f): left out": int(failed.sum()),
        "visits without a month or a date: left out": n_unknown,
        "visits without a date: no image can join them": n_undated,
        "visits whose code names no month: reckoned from the days since baseline": (
            n_reckoned
        ),
    }
    notes = [f"{count} {what}" for what, count in told.items() if count]
    return visits[list(VISIT_COLUMNS)], notes


def _check_diagnoses(rows: pd.DataFrame, place: Path) -> None:
    """Raise where one month has two diagnoses; screening may differ from baseline."""
    faults = []
    for (rid, month), same in rows[rows["diagnosis"].notna()].groupby(
        ["number", "month"], sort=False
    ):
        first = same.iloc[0]
        other = same[same["diagnosis"] != first["diagnosis"]]
        if month == 0:
            other = other[other["viscode"] == first["viscode"]]
        if len(other):
            codes = dict.fromkeys((first["viscode"], other["viscode"].iloc[0]))
            faults.append(
                f"RID {rid:.0f} has two diagnoses at {' and '.join(map(str, codes))}: "
                f"{first['diagnosis']} and {other['diagnosis'].iloc[0]}"
            )
    if faults:
        raise CohortError(f"{place}: diagnoses contradict each other", faults)


def _complete(visits: pd.DataFrame) -> pd.DataFrame:
    """Fill in what holds for a person: name, site, first phase, and age by visit."""
    person = visits.groupby("number")
    visits = visits.assign(
        rid=visits["number"].astype(int).astype(str),
        month=visits["month"].astype(int),
        ptid=person["ptid"].transform("first"),
    )
    of_name = _text(visits["ptid"]).str.slice(0, 3).astype(object)
    visits["site"] = visits["site"].where(visits["site"].notna(), of_name)
    ranks = dict(enumerate(PHASES))
    order = visits["phase"].map({name: rank for rank, name in ranks.items()})
    first = order.groupby(visits["number"]).transform("min").map(ranks)
    known = visits["first_phase"]
    visits["first_phase"] = known.where(known.notna(), first)
    days = pd.to_datetime(visits["date"])
    years = (days - _start(days, visits)).dt.days / _DAYS_PER_YEAR
    years = years.fillna(visits["month"] / 12)
    now = days.dt.year + (days.dt.day_of_year - 1) / _DAYS_PER_YEAR
    age = now - visits["born"].astype(float)
    age = age.fillna(visits["age_at_first"].astype(float) + years)
    return visits.assign(date=days, age=age.round(1))


def _start(days: pd.Series, rows: pd.DataFrame) -> pd.Series:
    """Return each person's day of baseline, or else the first known."""
    of_person = rows["number"]
    at_start = days.where(rows["month"] == 0).groupby(of_person).transform("min")
    return at_start.fillna(days.groupby(of_person).transform("min"))
