"""Read ADNI tables: one row for every visit of a person, with diagnosis and stage.

Screening and baseline are one visit (month 0); screening failures are left out. If a
visit code names no month, the month is estimated from the days since baseline. An
unknown code is an error for a diagnosis, a stage or an arm, and otherwise a note.
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

ADNI_STAGES = ("CN", "SMC", "EMCI", "LMCI", "AD")
PHASES = {"ADNI1": 0, "ADNIGO": 1, "ADNI2": 2, "ADNI3": 3, "ADNI4": 4}
# Phases that distinguish SMC, EMCI and LMCI.
STAGED_PHASES = ("ADNI1", "ADNIGO", "ADNI2")
# Table -> column names, in lower case, that identify it.
TABLE_HEADS = {
    "ADNIMERGE": {"rid", "viscode", "dx_bl", "dx"},
    "ARM": {"rid", "arm"},
    "REGISTRY": {"rid", "viscode", "examdate", "rgstatus"},
    "PTDEMOG": {"rid", "ptgender", "ptdobyy"},
}
# Columns of LONI's list of images (letters only) with the image and the person.
IMAGE_HEADS = ("imagedataid", "imageid", "imageuid", "loniuid", "loniimage")
SUBJECT_HEADS = ("subject", "subjectid", "ptid")
# Property of a visit -> columns that hold it; the first with a value counts.
HEADS_BY_FACT = {
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
# Codes of a change (4 to 9) stand for the new diagnosis.
_CHANGE_CODES = _THREE_CODES | {
    **dict.fromkeys(("7", "9"), "CN"),
    **dict.fromkeys(("4", "8"), "MCI"),
    **dict.fromkeys(("5", "6"), "AD"),
}
# Columns with diagnoses, best first, and the meaning of their codes.
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
    # Known words without a stage.
    **dict.fromkeys(("mci", "mild cognitive impairment"), ""),
}
# ARM has the same codes in ADNI1, GO and 2: group by scanner, then EMCI and SMC.
_ARM_STAGES = _STAGE_WORDS | {
    **dict.fromkeys(("1", "4", "7"), "CN"),
    **dict.fromkeys(("2", "5", "8"), "LMCI"),
    **dict.fromkeys(("3", "6", "9"), "AD"),
    "10": "EMCI",
    "11": "SMC",
}
# Words of the original ADNI tables; a note reports how others are read.
_STANDARD_WORDS = ("cn", "nl", "smc", "mci", "emci", "lmci", "ad", "dementia")
_SEXES = {"1": "M", "2": "F", "male": "M", "female": "F", "m": "M", "f": "F"}
_BASELINE_CODES = ("bl", "sc", "scmri", "m0", "m00", "m000", "4_bl", "4_sc")
# ADNI writes -1 for "not done" and -4 for "missing at transfer".
_MISSING_CODES = (-1, -4)
_DAYS_PER_MONTH, _DAYS_PER_YEAR = 365.25 / 12, 365.25
_VISIT_KEYS = ["number", "month"]


class AdniFault(NamedTuple):
    """An entry of a table that cannot be used."""

    kind: str  # "unknown word", "no day" or "two diagnoses"
    rid: str
    viscode: str
    column: str  # as ADNI writes it
    value: str
    message: str  # does not contain the person


class AdniTables(NamedTuple):
    """The joined ADNI tables."""

    visits: pd.DataFrame  # `stage` is the person's label at baseline
    images: pd.DataFrame  # LONI's list, empty if there is none
    notes: list[str]  # entries that were left out or estimated
    faults: list[AdniFault]  # their visits have `is_faulty`


def gather_adni_tables(folder: str | Path) -> AdniTables:
    """Read every table of ADNI in a folder, or ADNIMERGE's file; collect errors.

    Raises CohortError only if there is no ADNIMERGE and no DXSUM, or a RID is invalid.
    """
    folder = Path(folder)
    faults = list[AdniFault]()
    tables, unused_files = _tables_by_kind(folder)
    notes = [f"tables: {', '.join(tables)}"]
    if unused_files:
        notes.append(
            f"tables that are not used, by their columns: {listed(unused_files, 8)}"
        )
    if "ADNIMERGE" in tables:
        rows = _read_visits(tables["ADNIMERGE"], faults, notes)
    elif "DXSUM" in tables:
        rows = _join_tables(tables, faults, notes)
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
    """Raise CohortError if tables have errors; unknown codes are counted."""
    if not faults:
        return
    word_counts = Counter(
        (f.column, f.value) for f in faults if f.kind == "unknown word"
    )
    lines = [
        f"{column} says {value!r} {n} times; {_known_words(column)}"
        for (column, value), n in word_counts.items()
    ]
    other_faults = [f for f in faults if f.kind != "unknown word"]
    lines += [f"RID {f.rid} {f.message}" for f in other_faults[:20]]
    if len(other_faults) > 20:
        lines.append(f"and {len(other_faults) - 20} more visits with such faults")
    raise CohortError(
        f"{folder}: what the tables say cannot be used. Correct the tables, or leave "
        "such visits out by skip_faulty=True",
        lines,
    )


def _known_words(column: str) -> str:
    """Return text that lists the common codes of a column."""
    if column == "DX_bl":
        return "known are CN, SMC, EMCI, LMCI, MCI and AD"
    if column == "ARM":
        return "known are 1 to 11, CN, SMC, EMCI, LMCI and AD"
    codes = "1 to 9" if column == "DXCHANGE" else "1 to 3"
    return f"known are {codes}, CN, MCI, AD and Dementia"


def _tables_by_kind(folder: Path) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return tables by kind, with columns in lower case, and files not recognised."""
    files = [folder] if folder.is_file() else sorted(folder.glob("*.*"))
    paths = [path for path in files if path.suffix.lower() in (".csv", ".tsv")]
    if not paths:
        raise CohortError(f"{folder}: no such folder, or no .csv tables in it")
    tables: dict[str, pd.DataFrame] = {}
    unused_files = list[str]()
    for path in paths:
        table = read_table(path)
        table.columns = table.columns.str.lower()
        kind = _find_table_kind({*table})
        if kind is None:
            unused_files.append(path.name)
            continue
        if kind in tables:
            raise CohortError(f"{path} and another table are both {kind}; keep one")
        if kind == "IMAGES":
            table = table.rename(columns=_unify_image_heads(table))
        is_absent = table.apply(pd.to_numeric, errors="coerce").isin(_MISSING_CODES)
        tables[kind] = table.mask(is_absent).astype(object)
    return tables, unused_files


def _find_table_kind(heads: set[str]) -> str | None:
    """Return which ADNI table has these columns (in lower case), if any."""
    for name, required_heads in TABLE_HEADS.items():
        if required_heads <= heads:
            return name
    if {"rid", "viscode"} <= heads and heads & {*DIAGNOSES}:
        return "DXSUM"
    image_heads = {*_unify_image_heads(heads).values()}
    if "rid" not in heads and {"image data id", "subject"} <= image_heads:
        return "IMAGES"
    return None


def _unify_image_heads(heads: Iterable[str]) -> dict[str, str]:
    """Return standard names for the image and person columns of LONI's list."""
    head_by_letters = {letters_of(head): head for head in heads}
    spellings_by_name = {"image data id": IMAGE_HEADS, "subject": SUBJECT_HEADS}
    new_names = {}
    for name, spellings in spellings_by_name.items():
        for spelling in spellings:
            if spelling in head_by_letters:
                new_names[head_by_letters[spelling]] = name
                break
    return new_names


def _first_known(table: pd.DataFrame, *heads: str) -> pd.Series:
    """Return, for each row, the first value that is not missing of some columns."""
    return table.reindex(columns=heads).astype(object).bfill(axis=1).iloc[:, 0]


def _to_numbers(column: pd.Series) -> pd.Series:
    return pd.to_numeric(column, errors="coerce").astype(float)


def _simplify_words(column: pd.Series, meanings: Mapping[str, str]) -> pd.Series:
    """Return words and codes in one spelling.

    A change between known words becomes the new one ("Conversion: NL to MCI" is mci),
    an arm its group ("NL - (ADNI1 1.5T only)" is nl), a code a whole number ("1.0" is
    1).
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
    """Return the meaning of words or codes; None for missing or unknown ones."""
    meaning = _simplify_words(column, meanings).map(meanings).astype(object)
    return meaning.where(meaning.notna() & (meaning != ""), None)


def _find_unknown(column: pd.Series, meanings: Mapping[str, str]) -> pd.Series:
    """Return the cells with an unknown meaning."""
    return column[column.notna() & ~_simplify_words(column, meanings).isin([*meanings])]


def _find_visit_rows(table: pd.DataFrame) -> pd.Series:
    """Return which rows are visits: with a RID, and no screening failure."""
    viscode = _first_known(table, "viscode2", "viscode").str.lower()
    return table["rid"].notna() & (viscode != "f")


def _add_unknown_words(
    table: pd.DataFrame,
    head: str,
    meanings: Mapping[str, str],
    faults: list[AdniFault],
) -> pd.Index:
    """Add a fault for every unknown word in a column; return the rows with one."""
    unknown_cells = _find_unknown(table[head][_find_visit_rows(table)], meanings)
    column = "DX_bl" if head == "dx_bl" else head.upper()
    codes = _first_known(table, "viscode2", "viscode")
    for row, value in unknown_cells.items():
        rid, code = str(table["rid"][row]), str(codes[row] or "")
        message = f"at {code or 'a visit'}: {column} says {value!r}, which is not known"
        faults.append(AdniFault("unknown word", rid, code, column, value, message))
    return unknown_cells.index


def _note_unknown(
    column: pd.Series,
    is_known: pd.Series,
    name: str,
    notes: list[str],
    *,
    outcome: str = "taken as missing",
) -> None:
    """Add a note on the unknown values of a column, with counts."""
    counts = column[column.notna() & ~is_known].value_counts().sort_index()
    if len(counts):
        cell_counts = listed((f"{word} ({n})" for word, n in counts.items()), 8)
        notes.append(f"{name} that are not understood, {outcome}: {cell_counts}")


def _note_meanings(
    table: pd.DataFrame, head: str, meanings: Mapping[str, str], notes: list[str]
) -> None:
    """Add a note on the meaning of words that are not in the original ADNI tables."""
    simple_words = _simplify_words(table[head], meanings)
    is_unusual = simple_words.isin([*meanings]) & ~simple_words.isin(_STANDARD_WORDS)
    is_unusual &= ~simple_words.str.isdecimal().fillna(False).astype(bool)
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
    """Return a column of dates such as 2006-04-18 or 4/18/2006; NaT for a fault."""
    text = _first_known(table, head)
    days = parse_days(text)
    is_invalid = text.notna() & days.isna() & _find_visit_rows(table)
    for row, value in text[is_invalid].items():
        rid, viscode = str(table["rid"][row]), str(table["viscode"][row])
        message = (
            f"at {viscode}: {head.upper()} must be a day such as 2006-04-18 or "
            f"4/18/2006, got {value!r}"
        )
        faults.append(AdniFault("no day", rid, viscode, head.upper(), value, message))
    return days


def parse_days(text: pd.Series) -> pd.Series:
    """Return dates of text such as 2006-04-18_08_20_30.0 or 4/18/2006; else NaT."""
    days = pd.to_datetime(text.str.slice(0, 10), format="%Y-%m-%d", errors="coerce")
    us_text = text.str.split().str[0]
    return days.fillna(pd.to_datetime(us_text, format="%m/%d/%Y", errors="coerce"))


def _unify_phases(column: pd.Series) -> pd.Series:
    """Return phases in one spelling: `ADNI GO` and `adnigo` become `ADNIGO`."""
    phase_code = column.str.upper().str.replace(r"[ _-]", "", regex=True)
    return phase_code.where(phase_code.isin(PHASES), column).astype(object)


def _read_visits(
    table: pd.DataFrame, faults: list[AdniFault], notes: list[str]
) -> pd.DataFrame:
    """Return the properties of each visit under our names; add faults and notes."""
    columns = {
        name: _first_known(table, *heads) for name, heads in HEADS_BY_FACT.items()
    }
    diagnosis_by_head = pd.DataFrame(index=table.index)
    is_faulty = pd.Series(False, table.index)
    for head in (head for head in DIAGNOSES if head in table):
        is_faulty[_add_unknown_words(table, head, DIAGNOSES[head], faults)] = True
        _note_meanings(table, head, DIAGNOSES[head], notes)
        diagnosis_by_head[head] = _decode(table[head], DIAGNOSES[head])
    if "dx_bl" in table:
        _note_meanings(table, "dx_bl", _STAGE_WORDS, notes)
        _add_unknown_words(table, "dx_bl", _STAGE_WORDS, faults)
    has_contradiction = (diagnosis_by_head.nunique(axis=1) > 1) & _find_visit_rows(
        table
    )
    for row in diagnosis_by_head.index[has_contradiction]:
        diagnoses = diagnosis_by_head.loc[row].dropna()
        diagnosis_texts = [
            f"{head.upper()} {state}" for head, state in diagnoses.items()
        ]
        rid, viscode = str(table["rid"][row]), str(columns["viscode"][row])
        message = f"has two diagnoses at {viscode}: {' and '.join(diagnosis_texts)}"
        value = ", ".join(diagnosis_texts)
        faults.append(AdniFault("two diagnoses", rid, viscode, "DX", value, message))
        is_faulty[row] = True
    for name in ("phase", "first_phase"):
        column = columns[name]
        columns[name] = _unify_phases(column)
        is_known = columns[name].isin(PHASES)
        _note_unknown(
            column,
            is_known,
            f"phases ({name})",
            notes,
            outcome="kept as written",
        )
    ages = _to_numbers(columns["age"])
    _note_unknown(columns["age"], ages.notna(), "ages", notes)
    sexes = _decode(columns["sex"], _SEXES)
    _note_unknown(columns["sex"], sexes.notna(), "sexes", notes)
    columns |= {
        "diagnosis": _first_known(diagnosis_by_head, *diagnosis_by_head),
        "is_faulty": is_faulty,
        "stage": _decode(columns["stage"], _STAGE_WORDS),
        "sex": sexes,
        "date": _read_days(table, "examdate", faults).fillna(
            _read_days(table, "userdate", faults)
        ),
        "age": ages,
        "born": pd.Series(float("nan"), table.index),
    }
    return pd.DataFrame(columns)


def _join_tables(
    tables: dict[str, pd.DataFrame], faults: list[AdniFault], notes: list[str]
) -> pd.DataFrame:
    """Join DXSUM with arms, demography and days of examination, by RID."""
    table = tables["DXSUM"]
    rows = _read_visits(table, faults, notes)
    rid = _to_numbers(table["rid"])
    if "REGISTRY" in tables:
        registry = tables["REGISTRY"]
        keys = [_to_numbers(registry["rid"]), registry["viscode"]]
        # `last` skips missing dates: a row without one does not hide that of another.
        days = _read_days(registry, "examdate", faults).groupby(keys).last()
        exam_dates = days.reindex(pd.MultiIndex.from_arrays([rid, table["viscode"]]))
        dates = parse_days(_first_known(table, "examdate"))
        dates = dates.fillna(exam_dates.set_axis(table.index))
        rows["date"] = dates.fillna(rows["date"])
    if "ARM" in tables:
        stages = _read_arms(tables["ARM"], faults, notes)
        rows["stage"] = rid.map(stages).astype(object)
    if "PTDEMOG" in tables:
        demography = tables["PTDEMOG"]
        month = _to_numbers(_first_known(demography, "ptdobmm")).fillna(6.5)
        people = {
            "born": _to_numbers(demography["ptdobyy"]) + (month - 0.5) / 12,
            "sex": _decode(demography["ptgender"], _SEXES),
            "education": _first_known(demography, "pteducat"),
        }
        _note_unknown(demography["ptgender"], people["sex"].notna(), "sexes", notes)
        people_by_rid = (
            pd.DataFrame(people).groupby(_to_numbers(demography["rid"])).first()
        )
        for name in people_by_rid:
            rows[name] = rid.map(people_by_rid[name])
    # The PTID, from whichever table has it, ends with the RID.
    ptids = pd.concat(
        [_first_known(any_table, "ptid", "subject") for any_table in tables.values()]
    )
    ptids = ptids[ptids.str.fullmatch(r"\d{3}_S_\d{4,5}", na=False)]
    ptid_by_rid = ptids.groupby(ptids.str[6:].astype(float)).first()
    return rows.assign(ptid=rows["ptid"].fillna(rid.map(ptid_by_rid)))


def _read_arms(
    arms: pd.DataFrame, faults: list[AdniFault], notes: list[str]
) -> pd.Series:
    """Return the baseline stage by RID, from the phase in which a person enrolled."""
    phase = _unify_phases(_first_known(arms, "phase", "colprot"))
    is_used = phase.isna() | phase.isin(STAGED_PHASES)
    n_rows_by_phase = phase[~is_used].value_counts().sort_index()
    if len(n_rows_by_phase):
        counts = ", ".join(f"{name} ({n})" for name, n in n_rows_by_phase.items())
        notes.append(
            f"rows of ARM of phases that do not tell SMC, EMCI and LMCI apart, or are "
            f"not known, not used: {counts}"
        )
    is_used &= _first_known(arms, "enrolled") != "0"
    arms = arms[is_used]
    _add_unknown_words(arms, "arm", _ARM_STAGES, faults)
    phase_rank = phase[is_used].map(PHASES).fillna(0)
    facts = {
        "rid": _to_numbers(arms["rid"]),
        "stage": _decode(arms["arm"], _ARM_STAGES),
    }
    table = pd.DataFrame(facts | {"phase_rank": phase_rank}).dropna(subset="stage")
    table = table.sort_values("phase_rank", kind="stable")
    return table.drop_duplicates("rid").set_index("rid")["stage"]


def merge_visits(
    rows: pd.DataFrame, folder: Path, faults: list[AdniFault]
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row for every person and month, in order of time, and notes.

    A month with two diagnoses is added to the faults and marked `is_faulty`.
    """
    number = _to_numbers(rows["rid"])
    faulty_rids = rows["rid"][rows["rid"].notna() & (number % 1 != 0)]
    if len(faulty_rids):
        expected = f"a whole number such as 4010, got {faulty_rids.iloc[0]!r:.40}"
        raise CohortError(f"{folder}: RID must be {expected}")
    code = rows["viscode"].str.lower()
    is_failure = code == "f"  # of the screening
    month = _to_numbers(code.str.extract(r"^m(\d{1,3})$")[0])
    month = month.mask(code.isin(_BASELINE_CODES), 0.0)
    rows = rows.assign(number=number, code=code, month=month)
    visit_rows = rows[number.notna() & ~is_failure]
    days_since_baseline = (visit_rows["date"] - _baseline_dates(visit_rows)).dt.days
    estimated_month = (days_since_baseline / _DAYS_PER_MONTH / 6).round() * 6
    lacks_month = visit_rows["month"].isna()
    visit_rows = visit_rows.assign(
        month=visit_rows["month"].fillna(estimated_month)
    ).dropna(subset="month")
    # Put the visit called baseline first: its values precede those of screening.
    visit_rows = visit_rows.iloc[(visit_rows["code"] != "bl").argsort(kind="stable")]
    visit_rows = _mark_contradictions(visit_rows, faults)
    months = visit_rows.groupby(_VISIT_KEYS)
    merged_rows = months.first().assign(is_faulty=months["is_faulty"].any())
    visits = _complete_person_facts(merged_rows.reset_index())
    rows_by_note = {
        "rows without a RID: left out": number.isna(),
        "visits of screen failures (VISCODE f): left out": is_failure,
        "visits without a month or a date: left out": lacks_month
        & estimated_month.isna(),
        "visits without a date: no image can join them": visits["date"].isna(),
        "visits whose code names no month: estimated from days": lacks_month
        & estimated_month.notna(),
    }
    notes = [
        f"{is_row.sum()} {note}" for note, is_row in rows_by_note.items() if any(is_row)
    ]
    return visits, notes


def _mark_contradictions(rows: pd.DataFrame, faults: list[AdniFault]) -> pd.DataFrame:
    """Mark months with two diagnoses; screening and baseline may differ."""
    diagnosed_rows = rows[rows["diagnosis"].notna() & ~rows["is_faulty"]]
    first_code = diagnosed_rows.groupby(_VISIT_KEYS)["viscode"].transform("first")
    compared_rows = diagnosed_rows[
        (diagnosed_rows["month"] > 0) | (diagnosed_rows["viscode"] == first_code)
    ]
    n_diagnoses = compared_rows.groupby(_VISIT_KEYS)["diagnosis"].transform("nunique")
    contradictions = compared_rows[n_diagnoses > 1]
    for (number, _), month in contradictions.groupby(_VISIT_KEYS):
        codes = " and ".join(month["viscode"].unique())
        states = " and ".join(month["diagnosis"].unique())
        message = f"has two diagnoses at {codes}: {states}"
        rid = f"{number:.0f}"
        faults.append(AdniFault("two diagnoses", rid, codes, "DX", states, message))
    is_faulty = rows["is_faulty"] | rows.index.isin(contradictions.index)
    return rows.assign(is_faulty=is_faulty)


def _complete_person_facts(visits: pd.DataFrame) -> pd.DataFrame:
    """Fill in PTID, site and first phase of each person, and the age at each visit."""
    ptid = visits.groupby("number")["ptid"].transform("first")
    phase_rank = visits["phase"].map(PHASES).groupby(visits["number"]).transform("min")
    first_phase = phase_rank.map(dict(enumerate(PHASES)))
    days = pd.to_datetime(visits["date"])
    years = (days - _baseline_dates(visits)).dt.days / _DAYS_PER_YEAR
    age = visits["age"] + years.fillna(visits["month"] / 12)
    date_in_years = days.dt.year + (days.dt.day_of_year - 1) / _DAYS_PER_YEAR
    return visits.assign(
        rid=visits["number"].astype(int).astype(str),
        month=visits["month"].astype(int),
        ptid=ptid,
        site=visits["site"].astype(object).fillna(ptid.str.slice(0, 3)),
        first_phase=visits["first_phase"].astype(object).fillna(first_phase),
        date=days,
        age=(date_in_years - visits["born"]).fillna(age).round(1),
    )


def _baseline_dates(rows: pd.DataFrame) -> pd.Series:
    """Return the date of each person's baseline, or else the first known date."""
    days, of_person = pd.to_datetime(rows["date"]), rows["number"]
    at_start = days.where(rows["month"] == 0).groupby(of_person).transform("min")
    return at_start.fillna(days.groupby(of_person).transform("min"))
