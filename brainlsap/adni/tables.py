"""ADNI's tables: one row for every visit of a person, with labels of both kinds.

Screening joins baseline (month 0); screen failures are no visits. Months that a code
does not name are reckoned from the days since baseline. A word or code whose meaning
is not known is a fault where it is a diagnosis, a stage or an arm, else a note.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from brainlsap.data import read_table
from brainlsap.data.tables import letters_of
from brainlsap.exceptions import CohortError
from brainlsap.text import listed

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
}
# Heads of LONI's list of images, by their letters: of the image, of the person.
IMAGE_HEADS = ("imagedataid", "imageid", "imageuid", "loniuid", "loniimage")
SUBJECT_HEADS = ("subject", "subjectid", "ptid")
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
_DIAGNOSIS_WORDS = {
    **dict.fromkeys(("cn", "nl", "nc", "normal", "control", "healthy control"), "CN"),
    **dict.fromkeys(("cognitively normal", "cu", "cognitively unimpaired"), "CN"),
    **dict.fromkeys(("smc", "significant memory concern"), "CN"),
    **dict.fromkeys(("mci", "emci", "lmci", "mild cognitive impairment"), "MCI"),
    **dict.fromkeys(("early mci", "late mci"), "MCI"),
    **dict.fromkeys(("dementia", "dem", "ad", "alzheimer's disease"), "AD"),
}
_THREE_CODES = {"1": "CN", "2": "MCI", "3": "AD"}
# Codes of a change (4 to 9) are what it led to.
_CHANGE_CODES = _THREE_CODES | {
    **dict.fromkeys(("7", "9"), "CN"),
    **dict.fromkeys(("4", "8"), "MCI"),
    **dict.fromkeys(("5", "6"), "AD"),
}
# Columns of diagnoses, best first, and what their words and codes mean.
DIAGNOSES: dict[str, dict[str, str]] = {
    "dx": _DIAGNOSIS_WORDS | _THREE_CODES,
    "diagnosis": _DIAGNOSIS_WORDS | _THREE_CODES,
    "dxcurren": _DIAGNOSIS_WORDS | _THREE_CODES,
    "dxchange": _DIAGNOSIS_WORDS | _CHANGE_CODES,
}
_STAGE_WORDS = {
    **{word: "CN" for word, state in _DIAGNOSIS_WORDS.items() if state == "CN"},
    **{word: "AD" for word, state in _DIAGNOSIS_WORDS.items() if state == "AD"},
    **dict.fromkeys(("smc", "significant memory concern"), "SMC"),
    **dict.fromkeys(("emci", "early mci"), "EMCI"),
    **dict.fromkeys(("lmci", "late mci"), "LMCI"),
    # known words that tell no stage
    **dict.fromkeys(("mci", "mild cognitive impairment"), ""),
}
# ARM is coded alike in ADNI1, GO and 2: group by scanner, then EMCI and SMC.
_ARMS = _STAGE_WORDS | {
    **dict.fromkeys(("1", "4", "7"), "CN"),
    **dict.fromkeys(("2", "5", "8"), "LMCI"),
    **dict.fromkeys(("3", "6", "9"), "AD"),
    "10": "EMCI",
    "11": "SMC",
}
# Words that ADNI's own tables have had from the start; how others are read is noted.
_USUAL_WORDS = ("cn", "nl", "smc", "mci", "emci", "lmci", "ad", "dementia")
_SEXES = {"1": "M", "2": "F", "male": "M", "female": "F", "m": "M", "f": "F"}
_BASELINE = ("bl", "sc", "scmri", "m0", "m00", "m000", "4_bl", "4_sc")
# ADNI writes -1 for "not done" and -4 for "missing at transfer".
_ABSENT = (-1, -4)
_DAYS_PER_MONTH, _DAYS_PER_YEAR = 365.25 / 12, 365.25
_VISIT = ["number", "month"]


class AdniFault(NamedTuple):
    """What a table says of one visit and cannot be used."""

    kind: str  # "unknown word", "no day" or "two diagnoses"
    rid: str
    viscode: str
    column: str  # as ADNI writes it
    value: str
    message: str  # without the person


class AdniTables(NamedTuple):
    """ADNI's tables, joined."""

    visits: pd.DataFrame  # `stage` is the person's label at baseline
    images: pd.DataFrame  # LONI's list, empty where there is none
    notes: list[str]  # what was left out or reckoned
    faults: list[AdniFault]  # the months of these have `is_faulty` among the visits


def read_adni_tables(
    folder: str | Path,
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Read every table of ADNI in a folder, or ADNIMERGE's file.

    Returns visits, LONI's list of images, and notes, as `gather_adni_tables` does;
    raises CohortError where that gathers faults.
    """
    visits, images, notes, faults = gather_adni_tables(folder)
    refuse_faults(folder, faults)
    return visits, images, notes


def gather_adni_tables(folder: str | Path) -> AdniTables:
    """Read every table of ADNI in a folder, or ADNIMERGE's file; raise few faults.

    Raises CohortError where there is no ADNIMERGE and no DXSUM, or a RID is no number.
    """
    folder, faults = Path(folder), list[AdniFault]()
    tables, unused = _sort_tables(folder)
    notes = [f"tables: {', '.join(tables)}"]
    if unused:
        notes.append(f"tables that are not used, by their columns: {listed(unused, 8)}")
    if "ADNIMERGE" in tables:
        rows = _read_visits(tables["ADNIMERGE"], faults, notes)
    elif "DXSUM" in tables:
        rows = _join_others(tables, faults, notes)
        if "ARM" not in tables:
            notes.append("no ARM table: SMC, EMCI and LMCI are not known")
    else:
        raise CohortError(
            f"{folder}: no table of diagnoses; expected ADNIMERGE (RID, VISCODE, DX_bl "
            "and DX) or DXSUM (RID, VISCODE and DIAGNOSIS, DXCHANGE or DXCURREN)"
        )
    visits, merging_notes = merge_visits(rows, folder, faults)
    images = tables.get("IMAGES", pd.DataFrame())
    return AdniTables(visits, images, notes + merging_notes, faults)


def refuse_faults(folder: str | Path, faults: Sequence[AdniFault]) -> None:
    """Raise CohortError where tables have faults; words are counted, not repeated."""
    if not faults:
        return
    words = Counter((f.column, f.value) for f in faults if f.kind == "unknown word")
    lines = [
        f"{column} says {value!r} {n} times; {_known_words(column)}"
        for (column, value), n in words.items()
    ]
    single = [f for f in faults if f.kind != "unknown word"]
    lines += [f"RID {f.rid} {f.message}" for f in single[:20]]
    if len(single) > 20:
        lines.append(f"and {len(single) - 20} more visits with such faults")
    raise CohortError(
        f"{folder}: what the tables say cannot be used. Correct the tables, or leave "
        "such visits out by skip_faulty=True",
        lines,
    )


def _known_words(column: str) -> str:
    """Say which words and codes of a column are known, by the usual ones."""
    if column == "DX_bl":
        return "known are CN, SMC, EMCI, LMCI, MCI and AD"
    if column == "ARM":
        return "known are 1 to 11, CN, SMC, EMCI, LMCI and AD"
    codes = "1 to 9" if column == "DXCHANGE" else "1 to 3"
    return f"known are {codes}, CN, MCI, AD and Dementia"


def _sort_tables(folder: Path) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return tables by kind (heads in lower case, None if absent), and other files."""
    files = [folder] if folder.is_file() else sorted(folder.glob("*.*"))
    paths = [path for path in files if path.suffix.lower() in (".csv", ".tsv")]
    if not paths:
        raise CohortError(f"{folder}: no such folder, or no .csv tables in it")
    tables: dict[str, pd.DataFrame] = {}
    unused = list[str]()
    for path in paths:
        table = read_table(path)
        table.columns = table.columns.str.lower()
        kind = _kind_of_table({*table})
        if kind is None:
            unused.append(path.name)
            continue
        if kind in tables:
            raise CohortError(f"{path} and another table are both {kind}; keep one")
        if kind == "IMAGES":
            table = table.rename(columns=_image_heads(table))
        is_absent = table.apply(pd.to_numeric, errors="coerce").isin(_ABSENT)
        tables[kind] = table.mask(is_absent).astype(object)
    return tables, unused


def _kind_of_table(heads: set[str]) -> str | None:
    """Return which of ADNI's tables has these heads (in lower case), if any."""
    kind = next((name for name, needed in KINDS.items() if needed <= heads), None)
    if kind is None and {"rid", "viscode"} <= heads and heads & {*DIAGNOSES}:
        return "DXSUM"
    if kind is None and "rid" not in heads:
        names = _image_heads(heads)
        is_list = {"image data id", "subject"} <= {*names.values()}
        return "IMAGES" if is_list else None
    return kind


def _image_heads(heads: Iterable[str]) -> dict[str, str]:
    """Return new heads for those that say image and person in LONI's list."""
    letters = {letters_of(head): head for head in heads}
    names = {}
    known = (("image data id", IMAGE_HEADS), ("subject", SUBJECT_HEADS))
    for name, spellings in known:
        head = next((letters[one] for one in spellings if one in letters), None)
        if head is not None:
            names[head] = name
    return names


def _first(table: pd.DataFrame, *heads: str) -> pd.Series:
    """Return the first of some columns that says something, row by row."""
    return table.reindex(columns=heads).astype(object).bfill(axis=1).iloc[:, 0]


def _number(column: pd.Series) -> pd.Series:
    return pd.to_numeric(column, errors="coerce").astype(float)


def _simplify_words(column: pd.Series, meanings: Mapping[str, str]) -> pd.Series:
    """Return words and codes in one spelling.

    Of a change between known words what it led to ("Conversion: NL to MCI" is mci), of
    an arm its group ("NL - (ADNI1 1.5T only)" is nl), of a code the whole number ("1.0"
    is 1).
    """
    text = column.astype("string").str.lower().str.split().str.join(" ")
    text = text.str.replace("^(stable|conversion|reversion) ?: ?", "", regex=True)
    text = text.str.replace(r" - \(.*\)$", "", regex=True)
    states = "|".join(re.escape(word) for word in meanings)
    text = text.str.replace(rf"^(?:{states}) to ({states})$", r"\1", regex=True)
    numbers = pd.to_numeric(text, errors="coerce")
    is_code = numbers.notna() & (numbers % 1 == 0)
    codes = numbers[is_code].astype(int).astype(str)
    return text.mask(is_code, codes).astype(object)


def _decode(column: pd.Series, meanings: Mapping[str, str]) -> pd.Series:
    """Return what words or codes mean; None where there is none, or no meaning."""
    meaning = _simplify_words(column, meanings).map(meanings).astype(object)
    return meaning.where(meaning.notna() & (meaning != ""), None)


def _find_unknown(column: pd.Series, meanings: Mapping[str, str]) -> pd.Series:
    """Return the cells that say something whose meaning is not known."""
    return column[column.notna() & ~_simplify_words(column, meanings).isin([*meanings])]


def _is_visit(table: pd.DataFrame) -> pd.Series:
    """Return which rows are visits: they have a RID and are no screen failure."""
    code = _first(table, "viscode2", "viscode").str.lower()
    return table["rid"].notna() & (code != "f")


def _collect_words(
    table: pd.DataFrame,
    head: str,
    meanings: Mapping[str, str],
    faults: list[AdniFault],
) -> pd.Index:
    """Add a fault for every row in which a column says what is not known; return it."""
    unknown = _find_unknown(table[head][_is_visit(table)], meanings)
    column = "DX_bl" if head == "dx_bl" else head.upper()
    codes = _first(table, "viscode2", "viscode")
    for row, value in unknown.items():
        rid, code = str(table["rid"][row]), str(codes[row] or "")
        message = f"at {code or 'a visit'}: {column} says {value!r}, which is not known"
        faults.append(AdniFault("unknown word", rid, code, column, value, message))
    return unknown.index


def _note_unknown(
    column: pd.Series,
    is_known: pd.Series,
    name: str,
    notes: list[str],
    *,
    outcome: str = "taken as missing",
) -> None:
    """Add a note of the cells of a column that are not understood, with counts."""
    counts = column[column.notna() & ~is_known].value_counts().sort_index()
    if len(counts):
        words = listed((f"{word} ({n})" for word, n in counts.items()), 8)
        notes.append(f"{name} that are not understood, {outcome}: {words}")


def _note_meanings(
    table: pd.DataFrame, head: str, meanings: Mapping[str, str], notes: list[str]
) -> None:
    """Add a note of how words were read that are not those of ADNI's usual tables."""
    words = _simplify_words(table[head], meanings)
    is_unusual = words.isin([*meanings]) & ~words.isin(_USUAL_WORDS)
    is_unusual &= ~words.str.isdecimal().fillna(False).astype(bool)
    counts = table[head][is_unusual].value_counts().sort_index()
    if len(counts):
        simple = _simplify_words(pd.Series(counts.index), meanings)
        states = [meanings[word] or "no stage" for word in simple]
        texts = (
            f"{word} as {state} ({n})"
            for (word, n), state in zip(counts.items(), states, strict=True)
        )
        notes.append(f"words of {head.upper()} read by meaning: {listed(texts, 8)}")


def _read_days(table: pd.DataFrame, head: str, faults: list[AdniFault]) -> pd.Series:
    """Return a column of days written as 2006-04-18 or 4/18/2006; NaT for a fault."""
    text = _first(table, head)
    days = parse_days(text)
    for row, value in text[text.notna() & days.isna() & _is_visit(table)].items():
        rid, code = str(table["rid"][row]), str(table["viscode"][row])
        message = (
            f"at {code}: {head.upper()} must be a day such as 2006-04-18 or "
            f"4/18/2006, got {value!r}"
        )
        faults.append(AdniFault("no day", rid, code, head.upper(), value, message))
    return days


def parse_days(text: pd.Series) -> pd.Series:
    """Return days of text such as 2006-04-18_08_20_30.0 or 4/18/2006; else NaT."""
    days = pd.to_datetime(text.str.slice(0, 10), format="%Y-%m-%d", errors="coerce")
    american = text.str.split().str[0]
    return days.fillna(pd.to_datetime(american, format="%m/%d/%Y", errors="coerce"))


def _phase(column: pd.Series) -> pd.Series:
    """Return a phase in one spelling: `ADNI GO`, `adnigo` and `ADNIGO` are one."""
    short = column.str.upper().str.replace(r"[ _-]", "", regex=True)
    return short.where(short.isin(PHASES), column).astype(object)


def _read_visits(
    table: pd.DataFrame, faults: list[AdniFault], notes: list[str]
) -> pd.DataFrame:
    """Return what a table tells of each visit, in our words; add faults and notes."""
    facts = {name: _first(table, *heads) for name, heads in COLUMNS.items()}
    states = pd.DataFrame(index=table.index)
    is_faulty = pd.Series(False, table.index)
    for head in (head for head in DIAGNOSES if head in table):
        is_faulty[_collect_words(table, head, DIAGNOSES[head], faults)] = True
        _note_meanings(table, head, DIAGNOSES[head], notes)
        states[head] = _decode(table[head], DIAGNOSES[head])
    if "dx_bl" in table:
        _note_meanings(table, "dx_bl", _STAGE_WORDS, notes)
        _collect_words(table, "dx_bl", _STAGE_WORDS, faults)
    for row in states.index[(states.nunique(axis=1) > 1) & _is_visit(table)]:
        said = states.loc[row].dropna()
        words = [f"{head.upper()} {state}" for head, state in said.items()]
        rid, code = str(table["rid"][row]), str(facts["viscode"][row])
        message = f"has two diagnoses at {code}: {' and '.join(words)}"
        value = ", ".join(words)
        faults.append(AdniFault("two diagnoses", rid, code, "DX", value, message))
        is_faulty[row] = True
    for name in ("phase", "first_phase"):
        column = facts[name]
        facts[name] = _phase(column)
        is_known = facts[name].isin(PHASES)
        outcome = "kept as written"
        _note_unknown(column, is_known, f"phases ({name})", notes, outcome=outcome)
    numbers = _number(facts["age"])
    _note_unknown(facts["age"], numbers.notna(), "ages", notes)
    sexes = _decode(facts["sex"], _SEXES)
    _note_unknown(facts["sex"], sexes.notna(), "sexes", notes)
    facts |= {
        "diagnosis": _first(states, *states),
        "is_faulty": is_faulty,
        "stage": _decode(facts["stage"], _STAGE_WORDS),
        "sex": sexes,
        "date": _read_days(table, "examdate", faults).fillna(
            _read_days(table, "userdate", faults)
        ),
        "age": numbers,
        "born": pd.Series(float("nan"), table.index),
    }
    return pd.DataFrame(facts)


def _join_others(
    found: dict[str, pd.DataFrame], faults: list[AdniFault], notes: list[str]
) -> pd.DataFrame:
    """Join DXSUM with arms, demography and days of examination, by RID."""
    table = found["DXSUM"]
    rows, rid = _read_visits(table, faults, notes), _number(table["rid"])
    if "REGISTRY" in found:
        known = found["REGISTRY"]
        keys = [_number(known["rid"]), known["viscode"]]
        # a row without a day does not undo the day of another
        days = _read_days(known, "examdate", faults).groupby(keys).last()
        there = days.reindex(pd.MultiIndex.from_arrays([rid, table["viscode"]]))
        examined = parse_days(_first(table, "examdate"))
        examined = examined.fillna(there.set_axis(table.index))
        rows["date"] = examined.fillna(rows["date"])
    if "ARM" in found:
        stages = _read_arms(found["ARM"], faults, notes)
        rows["stage"] = rid.map(stages).astype(object)
    if "PTDEMOG" in found:
        told = found["PTDEMOG"]
        month = _number(_first(told, "ptdobmm")).fillna(6.5)
        people = {
            "born": _number(told["ptdobyy"]) + (month - 0.5) / 12,
            "sex": _decode(told["ptgender"], _SEXES),
            "education": _first(told, "pteducat"),
        }
        _note_unknown(told["ptgender"], people["sex"].notna(), "sexes", notes)
        known = pd.DataFrame(people).groupby(_number(told["rid"])).first()
        rows = rows.assign(**{name: rid.map(known[name]) for name in known})
    # names of people that any table gives end with the RID
    names = pd.concat([_first(one, "ptid", "subject") for one in found.values()])
    names = names[names.str.fullmatch(r"\d{3}_S_\d{4,5}", na=False)]
    names = names.groupby(names.str[6:].astype(float)).first()
    return rows.assign(ptid=rows["ptid"].fillna(rid.map(names)))


def _read_arms(
    arms: pd.DataFrame, faults: list[AdniFault], notes: list[str]
) -> pd.Series:
    """Return the baseline label by RID, of the phase in which a person came in."""
    phase = _phase(_first(arms, "phase", "colprot"))
    is_used = phase.isna() | phase.isin(STAGED_PHASES)
    others = phase[~is_used].value_counts().sort_index()
    if len(others):
        counts = ", ".join(f"{name} ({n})" for name, n in others.items())
        notes.append(
            f"rows of ARM of phases that do not tell SMC, EMCI and LMCI apart, or are "
            f"not known, not used: {counts}"
        )
    is_used &= _first(arms, "enrolled") != "0"
    arms = arms[is_used]
    _collect_words(arms, "arm", _ARMS, faults)
    place = phase[is_used].map(PHASES).fillna(0)
    facts = {"rid": _number(arms["rid"]), "stage": _decode(arms["arm"], _ARMS)}
    table = pd.DataFrame(facts | {"place": place}).dropna(subset="stage")
    table = table.sort_values("place", kind="stable")
    return table.drop_duplicates("rid").set_index("rid")["stage"]


def merge_visits(
    rows: pd.DataFrame, where: Path, faults: list[AdniFault]
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row for every person and month, in time, and what was left out.

    A month with two diagnoses is added to the faults and `is_faulty`.
    """
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
    kept = _mark_contradictions(kept, faults)
    months = kept.groupby(_VISIT)
    merged = months.first().assign(is_faulty=months["is_faulty"].any())
    visits = _complete(merged.reset_index())
    told = {
        "rows without a RID: left out": number.isna(),
        "visits of screen failures (VISCODE f): left out": failed,
        "visits without a month or a date: left out": is_odd & reckoned.isna(),
        "visits without a date: no image can join them": visits["date"].isna(),
        "visits whose code names no month: reckoned by days": is_odd & reckoned.notna(),
    }
    notes = [f"{which.sum()} {what}" for what, which in told.items() if any(which)]
    return visits, notes


def _mark_contradictions(rows: pd.DataFrame, faults: list[AdniFault]) -> pd.DataFrame:
    """Mark months with two diagnoses, but screening may differ from baseline."""
    known = rows[rows["diagnosis"].notna() & ~rows["is_faulty"]]
    first = known.groupby(_VISIT)["viscode"].transform("first")
    known = known[(known["month"] > 0) | (known["viscode"] == first)]
    known = known[known.groupby(_VISIT)["diagnosis"].transform("nunique") > 1]
    for (number, _), month in known.groupby(_VISIT):
        codes = " and ".join(month["viscode"].unique())
        states = " and ".join(month["diagnosis"].unique())
        message = f"has two diagnoses at {codes}: {states}"
        rid = f"{number:.0f}"
        faults.append(AdniFault("two diagnoses", rid, codes, "DX", states, message))
    is_faulty = rows["is_faulty"] | rows.index.isin(known.index)
    return rows.assign(is_faulty=is_faulty)


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
