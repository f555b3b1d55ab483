"""ADNI's tables: one row for every visit of a person, with labels of both kinds.

Screening joins baseline (month 0); screen failures are no visits. Months that a code
does not name are reckoned from the days since baseline.
"""

from pathlib import Path

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


def read_adni_tables(place: str | Path) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Read every table of ADNI in a folder, or ADNIMERGE's file.

    Returns visits (VISIT_COLUMNS; `stage` is the person's label at baseline), LONI's
    list of images (empty where there is none), and what was left out or reckoned.
    Raises CohortError where there is no ADNIMERGE and no DXSUM, a date cannot be read,
    or a visit stands twice with two diagnoses.
    """
    place = Path(place)
    found, names = _sort_tables(place)
    if "ADNIMERGE" in found:
        rows, used = _from_adnimerge(found["ADNIMERGE"]), ["ADNIMERGE"]
    elif "DXSUM" in found:
        rows, used = _from_dxsum(found), ["DXSUM", "ARM", "PTDEMOG"]
    else:
        raise CohortError(
            f"{place}: no table of diagnoses; expected ADNIMERGE (columns RID, "
            "VISCODE, DX_bl, DX) or DXSUM (RID, VISCODE and DIAGNOSIS, DXCHANGE or "
            "DXCURREN)"
        )
    notes = [f"visits: {', '.join(names[kind] for kind in used if kind in found)}"]
    if "ARM" in used and "ARM" not in found:
        notes.append("no ARM table: SMC, EMCI and LMCI are not known")
    visits, more = merge_visits(rows, place)
    return visits, found.get("IMAGES", pd.DataFrame()), notes + more


def _sort_tables(place: Path) -> tuple[dict[str, pd.DataFrame], dict[str, str]]:
    """Return the tables and their files' names, by kind; heads in lower case."""
    paths = [place] if place.is_file() else sorted(place.glob("*.[ct]sv"))
    if not paths:
        raise CohortError(f"{place}: no such folder, or no .csv tables in it")
    found: dict[str, pd.DataFrame] = {}
    names: dict[str, str] = {}
    for path in paths:
        table = read_table(path)
        table.columns = table.columns.str.lower()
        heads = set(table.columns)
        kind = next((name for name, wanted in KINDS.items() if wanted <= heads), None)
        if kind is None and {"rid", "viscode"} <= heads and heads & set(CODED):
            kind = "DXSUM"
        if kind in found:
            raise CohortError(
                f"{place}: {names[kind]} and {path.name} are both {kind}; keep one"
            )
        if kind is not None:
            found[kind] = table.mask(table.isin(_ABSENT)).astype(object)
            names[kind] = path.name
    return found, names


def _first(table: pd.DataFrame, *heads: str) -> pd.Series:
    """Return the first of some columns that says something, row by row."""
    return table.reindex(columns=heads).astype(object).bfill(axis=1).iloc[:, 0]


def _number(column: pd.Series) -> pd.Series:
    return pd.to_numeric(column, errors="coerce").astype(float)


def _days(table: pd.DataFrame, head: str) -> pd.Series:
    """Return a column of days written as 2006-04-18 or 4/18/2006."""
    text = _first(table, head).astype(object)
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
    words = column.str.lower().str.split(" to ").str[-1].str.strip()
    return words.map(_WORDS).astype(object)


def _stage(column: pd.Series) -> pd.Series:
    """Return CN, SMC, EMCI, LMCI or AD; missing for a bare MCI."""
    text = column.str.upper().replace({"NL": "CN", "DEMENTIA": "AD"})
    return text.where(text.isin(STAGES)).astype(object)


def _phase(column: pd.Series) -> pd.Series:
    """Return a phase in one spelling: `ADNI GO`, `adnigo` and `ADNIGO` are one."""
    short = column.str.upper().str.replace(r"[ -]", "", regex=True)
    return short.where(short.isin(PHASES), column).astype(object)


def _from_adnimerge(table: pd.DataFrame) -> pd.DataFrame:
    first = _phase(_first(table, "origprot"))
    phase = _phase(_first(table, "colprot"))
    same = ("rid", "ptid", "viscode", "education", "apoe4", "mmse", "field")
    heads = {"education": "pteducat", "field": "fldstreng"}
    return pd.DataFrame(
        {
            **{name: _first(table, heads.get(name, name)) for name in same},
            "date": _days(table, "examdate"),
            "phase": phase.fillna(first),
            "first_phase": first,
            "site": _first(table, "site", "siteid"),
            "diagnosis": _diagnosis(table["dx"]),
            "stage": _stage(table["dx_bl"]),
            "age_at_first": _number(_first(table, "age")),
            "sex": _first(table, "ptgender").str.lower().map(_SEXES),
        }
    )


def _from_dxsum(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Join DXSUM with arms, demography and days of examination, by RID."""
    table = found["DXSUM"]
    rid = _number(table["rid"])
    said = pd.DataFrame(index=table.index)
    for head, codes in CODED.items():
        column = _first(table, head).astype(object)
        said[f"{head} in words"] = _diagnosis(column)
        said[head] = _number(column).map(codes)
    examined = _days(table, "examdate")
    if "REGISTRY" in found:
        known = found["REGISTRY"].assign(day=_days(found["REGISTRY"], "examdate"))
        # a row without a day does not undo the day of another
        known = known.dropna(subset="day").assign(rid=_number(known["rid"]))
        days = known.drop_duplicates(["rid", "viscode"], keep="last")
        days = days.set_index(["rid", "viscode"])["day"]
        there = days.reindex(pd.MultiIndex.from_arrays([rid, table["viscode"]]))
        examined = examined.fillna(pd.Series(there.to_numpy(), index=table.index))
    rows = pd.DataFrame(
        {
            "rid": table["rid"],
            "viscode": _first(table, "viscode2", "viscode"),
            "date": examined.fillna(_days(table, "userdate")),
            "phase": _phase(_first(table, "phase", "colprot").astype(object)),
            "site": _first(table, "site", "siteid"),
            "diagnosis": _first(said, *said),
        }
    )
    if "ARM" in found:
        rows["stage"] = rid.map(_stages(found["ARM"])).astype(object)
    if "PTDEMOG" in found:
        told = found["PTDEMOG"]
        month = _number(_first(told, "ptdobmm")).fillna(6.5)
        people = pd.DataFrame(
            {
                "born": _number(told["ptdobyy"]) + (month - 0.5) / 12,
                "sex": told["ptgender"].str.lower().map(_SEXES),
                "education": _first(told, "pteducat"),
            }
        ).set_index(_number(told["rid"]))
        people = people.dropna(subset="born")
        people = people[~people.index.duplicated()]
        rows = rows.join(people, on=rid)
    # names of people that any table gives end with the RID
    names = pd.concat([_first(one, "ptid", "subject") for one in found.values()])
    names = names[names.str.fullmatch(r"\d{3}_S_\d{4,5}") == True]  # noqa: E712
    names = names.groupby(names.str[6:].astype(float)).first()
    return rows.assign(ptid=_first(table, "ptid").fillna(rid.map(names)))


def _stages(arms: pd.DataFrame) -> pd.Series:
    """Return the baseline label by RID, of the phase in which a person came in."""
    phase = _phase(_first(arms, "phase", "colprot"))
    stage = _stage(arms["arm"]).fillna(_number(arms["arm"]).map(_ARMS))
    place = phase.map({name: rank for rank, name in enumerate(PHASES)}).fillna(0)
    told = pd.DataFrame({"rid": _number(arms["rid"]), "stage": stage, "place": place})
    told = told[
        (phase.isna() | phase.isin(STAGED_PHASES))
        & (_first(arms, "enrolled") != "0")
        & stage.notna()
    ]
    told = told.sort_values("place", kind="stable")
    return told.drop_duplicates("rid").set_index("rid")["stage"]


def merge_visits(rows: pd.DataFrame, place: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return one row for every person and month, in time, and what was left out."""
    number = _number(rows["rid"])
    bad = rows["rid"][rows["rid"].notna() & (number % 1 != 0)]
    if len(bad):
        raise CohortError(
            f"{place}: RID must be a whole number such as 4010, got {bad.iloc[0]!r:.40}"
        )
    code = rows["viscode"].str.lower()
    failed = code == _SCREEN_FAILURE
    month = _number(code.str.extract(r"^m(\d{1,3})$")[0])
    month = month.mask(code.isin(_BASELINE), 0.0)
    rows = rows.assign(number=number, code=code, month=month)
    kept = rows[number.notna() & ~failed]
    since = (kept["date"] - _start(kept)).dt.days
    reckoned = (since / _DAYS_PER_MONTH / 6).round() * 6
    n_reckoned = int((kept["month"].isna() & reckoned.notna()).sum())
    kept = kept.assign(month=kept["month"].fillna(reckoned))
    n_unknown = int(kept["month"].isna().sum())
    kept = kept.dropna(subset="month")
    # the visit called baseline comes first: its facts stand before screening's
    kept = kept.iloc[(kept["code"] != "bl").argsort(kind="stable")]
    _check_diagnoses(kept, place)
    visits = kept.groupby(["number", "month"]).first().reset_index()
    visits = _complete(visits)
    told = {
        "rows without a RID: left out": number.isna().sum(),
        "visits of screen failures (VISCODE f): left out": failed.sum(),
        "visits without a month or a date: left out": n_unknown,
        "visits without a date: no image can join them": visits["date"].isna().sum(),
        "visits whose code names no month: reckoned from the days since baseline": (
            n_reckoned
        ),
    }
    return visits, [f"{count} {what}" for what, count in told.items() if count]


def _check_diagnoses(rows: pd.DataFrame, place: Path) -> None:
    """Raise where one month has two diagnoses; screening may differ from baseline."""
    known = rows.dropna(subset="diagnosis")
    one = known.groupby(["number", "month"])[["diagnosis", "viscode"]].transform(
        "first"
    )
    differs = known["diagnosis"] != one["diagnosis"]
    differs &= (known["month"] > 0) | (known["viscode"] == one["viscode"])
    other = known[differs].drop_duplicates(["number", "month"])
    faults = [
        f"RID {row['number']:.0f} has two diagnoses at "
        f"{' and '.join(dict.fromkeys((first['viscode'], row['viscode'])))}: "
        f"{first['diagnosis']} and {row['diagnosis']}"
        for (_, row), (_, first) in zip(
            other.iterrows(), one.loc[other.index].iterrows(), strict=True
        )
    ]
    if faults:
        raise CohortError(f"{place}: diagnoses contradict each other", faults)


def _complete(visits: pd.DataFrame) -> pd.DataFrame:
    """Fill in what holds for a person: name, site, first phase, and age by visit."""
    visits = visits.reindex(columns=["number", *VISIT_COLUMNS, "born", "age_at_first"])
    person = visits.groupby("number")
    ptid = person["ptid"].transform("first")
    rank = visits["phase"].map({name: rank for rank, name in enumerate(PHASES)})
    first = rank.groupby(visits["number"]).transform("min").map(dict(enumerate(PHASES)))
    days = pd.to_datetime(visits["date"])
    years = (days - _start(visits)).dt.days / _DAYS_PER_YEAR
    years = years.fillna(visits["month"] / 12)
    now = days.dt.year + (days.dt.day_of_year - 1) / _DAYS_PER_YEAR
    age = now - visits["born"].astype(float)
    age = age.fillna(visits["age_at_first"].astype(float) + years)
    visits = visits.assign(
        rid=visits["number"].astype(int).astype(str),
        month=visits["month"].astype(int),
        ptid=ptid,
        site=visits["site"].astype(object).fillna(ptid.str.slice(0, 3)),
        first_phase=visits["first_phase"].astype(object).fillna(first),
        date=days,
        age=age.round(1),
    )
    return visits[list(VISIT_COLUMNS)]


def _start(rows: pd.DataFrame) -> pd.Series:
    """Return each person's day of baseline, or else the first known."""
    days, of_person = pd.to_datetime(rows["date"]), rows["number"]
    at_start = days.where(rows["month"] == 0).groupby(of_person).transform("min")
    return at_start.fillna(days.groupby(of_person).transform("min"))
