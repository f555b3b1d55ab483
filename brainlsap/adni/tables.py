"""ADNI's tables: one row for every visit of a person, with labels of both kinds.

Screening joins baseline (month 0); screen failures are no visits. Months that a code
does not name are reckoned from the days since baseline.
"""

from pathlib import Path

import pandas as pd

from brainlsap.data import read_table
from brainlsap.exceptions import CohortError

STAGES = ("CN", "SMC", "EMCI", "LMCI", "AD")
PHASES = {"ADNI1": 0, "ADNIGO": 1, "ADNI2": 2, "ADNI3": 3, "ADNI4": 4}
# Phases that tell SMC, EMCI and LMCI apart.
STAGED_PHASES = ("ADNI1", "ADNIGO", "ADNI2")
# Heads, in lower case, by which a table is known.
KINDS = {
    "ADNIMERGE": {"rid", "viscode", "dx_bl", "dx"},
    "ARM": {"rid", "arm"},
    "REGISTRY": {"rid", "viscode", "examdate", "rgstatus"},
    "PTDEMOG": {"rid", "ptgender", "ptdobyy"},
    "IMAGES": {"image data id", "subject"},
}
# What is told of a visit -> heads that tell it; the first that says something counts.
COLUMNS = {
    **{name: (name,) for name in ("rid", "ptid", "apoe4", "mmse", "age")},
    "viscode": ("viscode2", "viscode"),
    "phase": ("phase", "colprot", "origprot"),
    "first_phase": ("origprot",),
    "site": ("site", "siteid"),
    "stage": ("dx_bl",),
    "sex": ("ptgender",),
    "education": ("pteducat",),
    "field": ("fldstreng",),
}
# Heads of diagnoses, in words or codes; codes of a change (4 to 9) are what it led to.
DIAGNOSIS_HEADS = ["dx", "diagnosis", "dxcurren", "dxchange"]
_DIAGNOSES = {
    **dict.fromkeys(("cn", "nl", "normal", "smc", "1", "7", "9"), "CN"),
    **dict.fromkeys(("mci", "emci", "lmci", "2", "4", "8"), "MCI"),
    **dict.fromkeys(("dementia", "ad", "3", "5", "6"), "AD"),
}
# ARM is coded alike in ADNI1, GO and 2: group by scanner, then EMCI and SMC.
_STAGES = {
    **dict.fromkeys(("cn", "nl", "1", "4", "7"), "CN"),
    **dict.fromkeys(("lmci", "2", "5", "8"), "LMCI"),
    **dict.fromkeys(("ad", "dementia", "3", "6", "9"), "AD"),
    **dict.fromkeys(("emci", "10"), "EMCI"),
    **dict.fromkeys(("smc", "11"), "SMC"),
}
_SEXES = {"1": "M", "2": "F", "male": "M", "female": "F"}
_BASELINE = ("bl", "sc", "scmri", "m0", "m00", "m000", "4_bl", "4_sc")
# ADNI writes -1 for "not done" and -4 for "missing at transfer".
_ABSENT = ("-1", "-4", "-1.0", "-4.0")
_DAYS_PER_MONTH, _DAYS_PER_YEAR = 365.25 / 12, 365.25
_VISIT = ["number", "month"]


def read_adni_tables(
    folder: str | Path,
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Read every table of ADNI in a folder, or ADNIMERGE's file.

    Returns visits (`stage` is the person's label at baseline), LONI's list of images
    (empty where there is none), and what was left out or reckoned. Raises CohortError
    where there is no ADNIMERGE and no DXSUM, a date cannot be read, or a visit stands
    twice with two diagnoses.
    """
    folder = Path(folder)
    found = _sort_tables(folder)
    notes = [f"tables: {', '.join(found)}"]
    if "ADNIMERGE" in found:
        rows = _read_visits(found["ADNIMERGE"])
    elif "DXSUM" in found:
        rows = _join_others(found)
        if "ARM" not in found:
            notes.append("no ARM table: SMC, EMCI and LMCI are not known")
    else:
        raise CohortError(
            f"{folder}: no table of diagnoses; expected ADNIMERGE (RID, VISCODE, DX_bl "
            "and DX) or DXSUM (RID, VISCODE and DIAGNOSIS, DXCHANGE or DXCURREN)"
        )
    visits, more = merge_visits(rows, folder)
    return visits, found.get("IMAGES", pd.DataFrame()), notes + more


def _sort_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the tables by kind; heads in lower case, what is absent as None."""
    paths = [folder] if folder.is_file() else sorted(folder.glob("*.[ct]sv"))
    if not paths:
        raise CohortError(f"{folder}: no such folder, or no .csv tables in it")
    found: dict[str, pd.DataFrame] = {}
    for path in paths:
        table = read_table(path)
        table.columns = table.columns.str.lower()
        heads = {*table}
        kind = next((name for name, wanted in KINDS.items() if wanted <= heads), None)
        if kind is None and {"rid", "viscode"} <= heads and heads & {*DIAGNOSIS_HEADS}:
            kind = "DXSUM"
        if kind in found:
            raise CohortError(f"{path} and another table are both {kind}; keep one")
        if kind is not None:
            found[kind] = table.mask(table.isin(_ABSENT)).astype(object)
    return found


def _first(table: pd.DataFrame, *heads: str) -> pd.Series:
    """Return the first of some columns that says something, row by row."""
    return table.reindex(columns=heads).astype(object).bfill(axis=1).iloc[:, 0]


def _number(column: pd.Series) -> pd.Series:
    return pd.to_numeric(column, errors="coerce").astype(float)


def _coded(column: pd.Series, meanings: dict[str, str]) -> pd.Series:
    """Return what words or codes mean; of a change of words, what it led to."""
    text = column.str.lower().str.split(" to ").str[-1].str.strip()
    return text.str.removesuffix(".0").map(meanings).astype(object)


def _days(table: pd.DataFrame, head: str) -> pd.Series:
    """Return a column of days written as 2006-04-18 or 4/18/2006."""
    text = _first(table, head)
    days = parse_days(text)
    bad = table[text.notna() & days.isna()]
    if len(bad):
        row = bad.iloc[0]
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


def _phase(column: pd.Series) -> pd.Series:
    """Return a phase in one spelling: `ADNI GO`, `adnigo` and `ADNIGO` are one."""
    short = column.str.upper().str.replace(r"[ -]", "", regex=True)
    return short.where(short.isin(PHASES), column).astype(object)


def _read_visits(table: pd.DataFrame) -> pd.DataFrame:
    """Return what a table tells of each visit, in our words."""
    told = {name: _first(table, *heads) for name, heads in COLUMNS.items()}
    states = table.reindex(columns=DIAGNOSIS_HEADS).astype(object)
    told |= {
        "diagnosis": _first(states.apply(_coded, meanings=_DIAGNOSES), *states),
        "stage": _coded(told["stage"], _STAGES),
        "phase": _phase(told["phase"]),
        "first_phase": _phase(told["first_phase"]),
        "sex": _coded(told["sex"], _SEXES),
        "date": _days(table, "examdate").fillna(_days(table, "userdate")),
        "age": _number(told["age"]),
        "born": pd.Series(float("nan"), table.index),
    }
    return pd.DataFrame(told)


def _join_others(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Join DXSUM with arms, demography and days of examination, by RID."""
    table = found["DXSUM"]
    rows, rid = _read_visits(table), _number(table["rid"])
    if "REGISTRY" in found:
        known = found["REGISTRY"]
        keys = [_number(known["rid"]), known["viscode"]]
        # a row without a day does not undo the day of another
        days = _days(known, "examdate").groupby(keys).last()
        there = days.reindex(pd.MultiIndex.from_arrays([rid, table["viscode"]]))
        examined = _days(table, "examdate").fillna(there.set_axis(table.index))
        rows["date"] = examined.fillna(rows["date"])
    if "ARM" in found:
        rows["stage"] = rid.map(_stages(found["ARM"])).astype(object)
    if "PTDEMOG" in found:
        told = found["PTDEMOG"]
        month = _number(_first(told, "ptdobmm")).fillna(6.5)
        people = {
            "born": _number(told["ptdobyy"]) + (month - 0.5) / 12,
            "sex": _coded(told["ptgender"], _SEXES),
            "education": _first(told, "pteducat"),
        }
        known = pd.DataFrame(people).groupby(_number(told["rid"])).first()
        rows = rows.assign(**{name: rid.map(known[name]) for name in known})
    # names of people that any table gives end with the RID
    names = pd.concat([_first(one, "ptid", "subject") for one in found.values()])
    names = names[names.str.fullmatch(r"\d{3}_S_\d{4,5}", na=False)]
    names = names.groupby(names.str[6:].astype(float)).first()
    return rows.assign(ptid=rows["ptid"].fillna(rid.map(names)))


def _stages(arms: pd.DataFrame) -> pd.Series:
    """Return the baseline label by RID, of the phase in which a person came in."""
    phase = _phase(_first(arms, "phase", "colprot"))
    stage, place = _coded(arms["arm"], _STAGES), phase.map(PHASES).fillna(0)
    told = pd.DataFrame({"rid": _number(arms["rid"]), "stage": stage, "place": place})
    is_staged = phase.isna() | phase.isin(STAGED_PHASES)
    told = told[is_staged & (_first(arms, "enrolled") != "0")].dropna(subset="stage")
    told = told.sort_values("place", kind="stable")
    return told.drop_duplicates("rid").set_index("rid")["stage"]


def merge_visits(rows: pd.DataFrame, where: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return one row for every person and month, in time, and what was left out."""
    number = _number(rows["rid"])
    bad = rows["rid"][rows["rid"].notna() & (number % 1 != 0)]
    if len(bad):
        wanted = f"a whole number such as 4010, got {bad.iloc[0]!r:.40}"
        raise CohortError(f"{where}: RID must be {wanted}")
    code = rows["viscode"].str.lower()
    failed = code == "f"  # of the screening
    month = _number(code.str.extract(r"^m(\d{1,3})$")[0])
    month = month.mask(code.isin(_BASELINE), 0.0)
    rows = rows.assign(number=number, code=code, month=month)
    kept = rows[number.notna() & ~failed]
    since = (kept["date"] - _start(kept)).dt.days
    reckoned = (since / _DAYS_PER_MONTH / 6).round() * 6
    is_odd = kept["month"].isna()
    kept = kept.assign(month=kept["month"].fillna(reckoned)).dropna(subset="month")
    # the visit called baseline comes first: its facts stand before screening's
    kept = kept.iloc[(kept["code"] != "bl").argsort(kind="stable")]
    _check_diagnoses(kept, where)
    visits = _complete(kept.groupby(_VISIT).first().reset_index())
    told = {
        "rows without a RID: left out": number.isna(),
        "visits of screen failures (VISCODE f): left out": failed,
        "visits without a month or a date: left out": is_odd & reckoned.isna(),
        "visits without a date: no image can join them": visits["date"].isna(),
        "visits whose code names no month: reckoned by days": is_odd & reckoned.notna(),
    }
    notes = [f"{which.sum()} {what}" for what, which in told.items() if any(which)]
    return visits, notes


def _check_diagnoses(rows: pd.DataFrame, where: Path) -> None:
    """Raise where one month has two diagnoses; screening may differ from baseline."""
    known = rows.dropna(subset="diagnosis")
    first = known.groupby(_VISIT)["viscode"].transform("first")
    known = known[(known["month"] > 0) | (known["viscode"] == first)]
    known = known[known.groupby(_VISIT)["diagnosis"].transform("nunique") > 1]
    faults = [
        f"RID {number:.0f} has two diagnoses at {' and '.join(one['viscode'].unique())}"
        f": {' and '.join(one['diagnosis'].unique())}"
        for (number, _), one in known.groupby(_VISIT)
    ]
    if faults:
        raise CohortError(f"{where}: diagnoses contradict each other", faults)


def _complete(visits: pd.DataFrame) -> pd.DataFrame:
    """Fill in what holds for a person: name, site, first phase, and age by visit."""
    ptid = visits.groupby("number")["ptid"].transform("first")
    rank = visits["phase"].map(PHASES).groupby(visits["number"]).transform("min")
    first = rank.map(dict(enumerate(PHASES)))
    days = pd.to_datetime(visits["date"])
    years = (days - _start(visits)).dt.days / _DAYS_PER_YEAR
    age = visits["age"] + years.fillna(visits["month"] / 12)
    now = days.dt.year + (days.dt.day_of_year - 1) / _DAYS_PER_YEAR
    return visits.assign(
        rid=visits["number"].astype(int).astype(str),
        month=visits["month"].astype(int),
        ptid=ptid,
        site=visits["site"].astype(object).fillna(ptid.str.slice(0, 3)),
        first_phase=visits["first_phase"].astype(object).fillna(first),
        date=days,
        age=(now - visits["born"]).fillna(age).round(1),
    )


def _start(rows: pd.DataFrame) -> pd.Series:
    """Return each person's day of baseline, or else the first known."""
    days, of_person = pd.to_datetime(rows["date"]), rows["number"]
    at_start = days.where(rows["month"] == 0).groupby(of_person).transform("min")
    return at_start.fillna(days.groupby(of_person).transform("min"))
