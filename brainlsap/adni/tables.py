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
from brainlsap.data.tables import get_name_letters
from brainlsap.exceptions import CohortError
from brainlsap.text import count_text, join_with_commas, named_counts_text, option_text

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
    **{
        column_name: (column_name,)
        for column_name in ("rid", "ptid", "apoe4", "mmse", "age")
    },
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
    **{
        diagnosis_word: diagnosis
        for diagnosis_word, diagnosis in _DIAGNOSIS_WORDS.items()
        if diagnosis in ("CN", "AD")
    },
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
# A PTID in the spellings of tables and folders: 005_S_4010, 5_S_4010, sub-005S4010.
_PTID_PATTERN = re.compile(r"(?:sub-)?(\d{1,3})[_-]?S[_-]?(\d{4,5})", re.IGNORECASE)
# Property of a participant -> the columns of tables that hold it, for a note.
_COLUMNS_OF_PERSON_FACTS = {
    "age": "AGE of ADNIMERGE, or PTDOBYY of PTDEMOG",
    "sex": "PTGENDER of ADNIMERGE or PTDEMOG",
}


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

    visit_table: pd.DataFrame  # `stage` is the person's label at baseline
    image_list_table: pd.DataFrame  # LONI's list, empty if there is none
    notes: list[str]  # entries that were left out or estimated
    faults: list[AdniFault]  # their visits have `is_faulty`


def standardize_ptid(ptid_text: str) -> str | None:
    """Return a PTID in ADNI's spelling, or None if the text is no PTID.

    >>> standardize_ptid("5_s_4010"), standardize_ptid("sub-005S4010")
    ('005_S_4010', '005_S_4010')
    """
    ptid_match = _PTID_PATTERN.fullmatch(ptid_text.strip())
    return ptid_match and f"{ptid_match[1].zfill(3)}_S_{ptid_match[2]}"


def gather_adni_tables(folder: str | Path) -> AdniTables:
    """Read every table of ADNI in a folder, or ADNIMERGE's file; collect errors.

    Raises CohortError only if there is no ADNIMERGE and no DXSUM, or a RID is invalid.
    """
    folder = Path(folder)
    table_faults = list[AdniFault]()
    table_by_kind, column_names_by_unused_file = _read_tables_and_columns(folder)
    table_notes = [f"tables: {', '.join(table_by_kind)}"]
    if column_names_by_unused_file:
        table_notes.append(
            "tables are not used, because their columns match no known ADNI table: "
            f"{join_with_commas(column_names_by_unused_file, 8)}"
        )
    if "ADNIMERGE" in table_by_kind:
        visit_table = _read_visit_table(
            table_by_kind["ADNIMERGE"], table_faults, table_notes
        )
    elif "DXSUM" in table_by_kind:
        visit_table = _make_joined_visit_table(table_by_kind, table_faults, table_notes)
        if "ARM" not in table_by_kind and visit_table["stage"].isna().all():
            table_notes.append(
                "the folder contains no ARM table and no column DX_bl, so SMC, EMCI "
                "and LMCI are unknown"
            )
    else:
        raise CohortError(
            f"{folder}: the folder contains no table of diagnoses. Add ADNIMERGE "
            "(columns RID, VISCODE, DX_bl and DX) or DXSUM (columns RID, VISCODE "
            "and one of DIAGNOSIS, DXCHANGE and DXCURREN)",
            _list_missing_column_lines(column_names_by_unused_file),
        )
    for fact_name, columns_text in _COLUMNS_OF_PERSON_FACTS.items():
        unknown_fact_mask = visit_table[fact_name].isna()
        if fact_name == "age":
            unknown_fact_mask &= visit_table["born"].isna()
        if unknown_fact_mask.all():
            table_notes.append(
                f"the {fact_name} of all people is unknown; add the column "
                f"{columns_text}"
            )
    merged_visit_table, merging_notes = make_month_table_and_notes(
        visit_table, folder, table_faults
    )
    image_list_table = table_by_kind.get("IMAGES", pd.DataFrame())
    return AdniTables(
        merged_visit_table, image_list_table, table_notes + merging_notes, table_faults
    )


def _list_missing_column_lines(
    column_names_by_unused_file: Mapping[str, set[str]],
) -> list[str]:
    """Return a line for each file that lacks columns of a table of diagnoses."""
    column_name_by_lower_name = {
        "rid": "RID",
        "viscode": "VISCODE",
        "dx_bl": "DX_bl",
        "dx": "DX",
    }
    fault_lines = []
    for file_name, column_names in column_names_by_unused_file.items():
        missing_names = [
            column_name
            for lower_column_name, column_name in column_name_by_lower_name.items()
            if lower_column_name not in column_names
        ]
        if len(missing_names) < len(column_name_by_lower_name) - 1:
            fault_lines.append(
                f"{file_name} is not read as ADNIMERGE, because it has no column "
                f"{' and no column '.join(missing_names)}"
            )
    return fault_lines


def refuse_table_faults(folder: str | Path, table_faults: Sequence[AdniFault]) -> None:
    """Raise CohortError if tables have errors; unknown codes are counted."""
    if not table_faults:
        return
    n_rows_by_column_word = Counter(
        (f.column, f.value) for f in table_faults if f.kind == "unknown word"
    )
    fault_lines = [
        (
            f"the column {column_name} contains {cell_value!r} in "
            f"{count_text(n, 'row')}; {_expected_words_text(column_name)}"
        )
        for (column_name, cell_value), n in n_rows_by_column_word.items()
    ]
    visit_faults = [f for f in table_faults if f.kind != "unknown word"]
    fault_lines += [f"RID {f.rid} {f.message}" for f in visit_faults[:20]]
    if len(visit_faults) > 20:
        fault_lines.append(f"{len(visit_faults) - 20} more visits have such faults")
    raise CohortError(
        f"{folder}: some entries of the tables cannot be used. Correct the tables, "
        f"or leave these visits out with {option_text('skip_faulty', True)}",
        fault_lines,
    )


def _expected_words_text(column_name: str) -> str:
    """Return text that lists the common codes of a column."""
    if column_name == "DX_bl":
        return "expected CN, SMC, EMCI, LMCI, MCI or AD"
    if column_name == "ARM":
        return "expected 1 to 11, CN, SMC, EMCI, LMCI or AD"
    code_range_text = "1 to 9" if column_name == "DXCHANGE" else "1 to 3"
    return f"expected {code_range_text}, CN, MCI, AD or Dementia"


def _read_tables_and_columns(
    folder: Path,
) -> tuple[dict[str, pd.DataFrame], dict[str, set[str]]]:
    """Return tables by kind, and the columns of other files, all in lower case."""
    candidate_paths = [folder] if folder.is_file() else sorted(folder.glob("*.*"))
    table_paths = [
        table_path
        for table_path in candidate_paths
        if table_path.suffix.lower() in (".csv", ".tsv")
    ]
    if not table_paths:
        raise CohortError(
            f"{folder}: the folder does not exist, or it contains no .csv or .tsv "
            "table. Give the folder that contains ADNI's tables"
        )
    table_by_kind: dict[str, pd.DataFrame] = {}
    column_names_by_unused_file = dict[str, set[str]]()
    for table_path in table_paths:
        adni_table = read_table(table_path)
        adni_table.columns = adni_table.columns.str.lower()
        table_kind = _find_adni_table_kind({*adni_table})
        if table_kind is None:
            column_names_by_unused_file[table_path.name] = {*adni_table}
            continue
        if table_kind in table_by_kind:
            raise CohortError(
                f"{table_path} and another table are both {table_kind} tables. Keep "
                "only one of them"
            )
        if table_kind == "IMAGES":
            adni_table = adni_table.rename(
                columns=_make_standard_name_by_column(adni_table)
            )
        missing_code_table = adni_table.apply(pd.to_numeric, errors="coerce").isin(
            _MISSING_CODES
        )
        table_by_kind[table_kind] = adni_table.mask(missing_code_table).astype(object)
    return table_by_kind, column_names_by_unused_file


def _find_adni_table_kind(column_names: set[str]) -> str | None:
    """Return the ADNI table that has these columns (in lower case), if any."""
    for table_kind, required_column_names in TABLE_HEADS.items():
        if required_column_names <= column_names:
            return table_kind
    if {"rid", "viscode"} <= column_names and column_names & {*DIAGNOSES}:
        return "DXSUM"
    image_column_names = {*_make_standard_name_by_column(column_names).values()}
    if "rid" not in column_names and {"image data id", "subject"} <= image_column_names:
        return "IMAGES"
    return None


def _make_standard_name_by_column(column_names: Iterable[str]) -> dict[str, str]:
    """Return standard names for the image and person columns of LONI's list."""
    column_by_letters = {
        get_name_letters(column_name): column_name for column_name in column_names
    }
    spellings_by_name = {"image data id": IMAGE_HEADS, "subject": SUBJECT_HEADS}
    standard_name_by_column = {}
    for standard_name, column_spellings in spellings_by_name.items():
        for column_spelling in column_spellings:
            if column_spelling in column_by_letters:
                standard_name_by_column[column_by_letters[column_spelling]] = (
                    standard_name
                )
                break
    return standard_name_by_column


def _coalesce_columns_to_series(
    adni_table: pd.DataFrame, *column_names: str
) -> pd.Series:
    """Return, for each row, the first value that is not missing of some columns."""
    return (
        adni_table.reindex(columns=column_names).astype(object).bfill(axis=1).iloc[:, 0]
    )


def _standardize_ptid_series(ptids: pd.Series) -> pd.Series:
    """Return PTIDs in ADNI's spelling; leave other text unchanged."""
    return ptids.map(
        lambda ptid: standardize_ptid(str(ptid)) or ptid, na_action="ignore"
    ).astype(object)


def _to_number_series(text_series: pd.Series) -> pd.Series:
    return pd.to_numeric(text_series, errors="coerce").astype(float)


def _standardize_code_series(
    code_series: pd.Series, meaning_by_word: Mapping[str, str]
) -> pd.Series:
    """Return words and codes in one spelling.

    A change between known words becomes the new one ("Conversion: NL to MCI" is mci),
    an arm its group ("NL - (ADNI1 1.5T only)" is nl), a code a whole number ("1.0" is
    1).
    """
    simple_texts = code_series.astype("string").str.lower().str.split().str.join(" ")
    simple_texts = simple_texts.str.replace(
        "^(stable|conversion|reversion) ?: ?", "", regex=True
    )
    simple_texts = simple_texts.str.replace(r" - \(.*\)$", "", regex=True)
    word_pattern = "|".join(re.escape(known_word) for known_word in meaning_by_word)
    simple_texts = simple_texts.str.replace(
        rf"^(?:{word_pattern}) to ({word_pattern})$", r"\1", regex=True
    )
    numeric_codes = pd.to_numeric(simple_texts, errors="coerce")
    numeric_code_mask = numeric_codes.notna() & (numeric_codes % 1 == 0)
    code_texts = numeric_codes[numeric_code_mask].astype(int).astype(str)
    return simple_texts.mask(numeric_code_mask, code_texts).astype(object)


def _make_meaning_series(
    code_series: pd.Series, meaning_by_word: Mapping[str, str]
) -> pd.Series:
    """Return the meaning of words or codes; None for missing or unknown ones."""
    meaning_series = (
        _standardize_code_series(code_series, meaning_by_word)
        .map(meaning_by_word)
        .astype(object)
    )
    return meaning_series.where(meaning_series.notna() & (meaning_series != ""), None)


def _select_unknown_code_series(
    code_series: pd.Series, meaning_by_word: Mapping[str, str]
) -> pd.Series:
    """Return the cells with an unknown meaning."""
    return code_series[
        code_series.notna()
        & ~_standardize_code_series(code_series, meaning_by_word).isin(
            [*meaning_by_word]
        )
    ]


def _make_visit_row_mask(visit_table: pd.DataFrame) -> pd.Series:
    """Return whether rows are visits: with a RID, and no screening failure."""
    visit_codes = _coalesce_columns_to_series(
        visit_table, "viscode2", "viscode"
    ).str.lower()
    return visit_table["rid"].notna() & (visit_codes != "f")


def _add_unknown_word_faults(
    adni_table: pd.DataFrame,
    lower_column_name: str,
    meaning_by_word: Mapping[str, str],
    table_faults: list[AdniFault],
) -> pd.Index:
    """Add a fault for every unknown word in a column; return the rows with one."""
    unknown_cells = _select_unknown_code_series(
        adni_table[lower_column_name][_make_visit_row_mask(adni_table)], meaning_by_word
    )
    column_name = "DX_bl" if lower_column_name == "dx_bl" else lower_column_name.upper()
    visit_codes = _coalesce_columns_to_series(adni_table, "viscode2", "viscode")
    for row_index, cell_value in unknown_cells.items():
        rid, visit_code = (
            str(adni_table["rid"][row_index]),
            str(visit_codes[row_index] or ""),
        )
        visit_text = visit_code or "a visit"
        message = (
            f"at {visit_text}: the column {column_name} contains {cell_value!r}, "
            "which is not a known code"
        )
        table_faults.append(
            AdniFault("unknown word", rid, visit_code, column_name, cell_value, message)
        )
    return unknown_cells.index


def _note_unknown_values(
    code_series: pd.Series,
    known_value_mask: pd.Series,
    column_name: str,
    table_notes: list[str],
    *,
    consequence_text: str = "counted as missing",
) -> None:
    """Add a note on the unknown values of a column, with counts."""
    n_rows_by_value = (
        code_series[code_series.notna() & ~known_value_mask].value_counts().sort_index()
    )
    if len(n_rows_by_value):
        counts_text = named_counts_text(n_rows_by_value.items(), max_items=8)
        table_notes.append(
            f"unknown values of {column_name}, {consequence_text}: {counts_text}"
        )


def _note_meanings(
    adni_table: pd.DataFrame,
    column_name: str,
    meaning_by_word: Mapping[str, str],
    table_notes: list[str],
) -> None:
    """Add a note on the meaning of words that are not in the original ADNI tables."""
    simple_words = _standardize_code_series(adni_table[column_name], meaning_by_word)
    unusual_word_mask = simple_words.isin([*meaning_by_word]) & ~simple_words.isin(
        _STANDARD_WORDS
    )
    unusual_word_mask &= ~simple_words.str.isdecimal().fillna(False).astype(bool)
    n_rows_by_word = (
        adni_table[column_name][unusual_word_mask].value_counts().sort_index()
    )
    if len(n_rows_by_word):
        simplified_words = _standardize_code_series(
            pd.Series(n_rows_by_word.index), meaning_by_word
        )
        stage_texts = [
            meaning_by_word[simple_word] or "no stage"
            for simple_word in simplified_words
        ]
        meaning_texts = (
            f"{raw_word} as {stage_text}"
            for raw_word, stage_text in zip(
                n_rows_by_word.index, stage_texts, strict=True
            )
        )
        meanings_text = named_counts_text(
            zip(meaning_texts, n_rows_by_word, strict=True), max_items=8
        )
        table_notes.append(
            f"values of {column_name.upper()} that are not ADNI codes were read by "
            f"their meaning: {meanings_text}"
        )


def _read_date_series(
    adni_table: pd.DataFrame, column_name: str, table_faults: list[AdniFault]
) -> pd.Series:
    """Return a column of dates such as 2006-04-18 or 4/18/2006; NaT for a fault."""
    date_texts = _coalesce_columns_to_series(adni_table, column_name)
    exam_dates = parse_date_series(date_texts)
    invalid_date_mask = (
        date_texts.notna() & exam_dates.isna() & _make_visit_row_mask(adni_table)
    )
    for row_index, cell_text in date_texts[invalid_date_mask].items():
        rid, visit_code = (
            str(adni_table["rid"][row_index]),
            str(adni_table["viscode"][row_index]),
        )
        message = (
            f"at {visit_code}: {column_name.upper()} must be a date such as "
            f"2006-04-18 or 4/18/2006, got {cell_text!r}"
        )
        table_faults.append(
            AdniFault(
                "no day", rid, visit_code, column_name.upper(), cell_text, message
            )
        )
    return exam_dates


def parse_date_series(date_texts: pd.Series) -> pd.Series:
    """Return dates of text such as 2006-04-18_08_20_30.0 or 4/18/2006; else NaT."""
    parsed_dates = pd.to_datetime(
        date_texts.str.slice(0, 10), format="%Y-%m-%d", errors="coerce"
    )
    us_date_texts = date_texts.str.split().str[0]
    return parsed_dates.fillna(
        pd.to_datetime(us_date_texts, format="%m/%d/%Y", errors="coerce")
    )


def _unify_phase_series(phase_series: pd.Series) -> pd.Series:
    """Return phases in one spelling: `ADNI GO` and `adnigo` become `ADNIGO`."""
    phase_codes = phase_series.str.upper().str.replace(r"[ _-]", "", regex=True)
    return phase_codes.where(phase_codes.isin(PHASES), phase_series).astype(object)


def _read_visit_table(
    visit_table: pd.DataFrame, table_faults: list[AdniFault], table_notes: list[str]
) -> pd.DataFrame:
    """Return the properties of each visit under our names; add faults and notes."""
    series_by_fact = {
        fact_name: _coalesce_columns_to_series(visit_table, *source_column_names)
        for fact_name, source_column_names in HEADS_BY_FACT.items()
    }
    diagnosis_table = pd.DataFrame(index=visit_table.index)
    faulty_visit_mask = pd.Series(False, visit_table.index)
    for diagnosis_column_name in (
        diagnosis_column_name
        for diagnosis_column_name in DIAGNOSES
        if diagnosis_column_name in visit_table
    ):
        faulty_visit_mask[
            _add_unknown_word_faults(
                visit_table,
                diagnosis_column_name,
                DIAGNOSES[diagnosis_column_name],
                table_faults,
            )
        ] = True
        _note_meanings(
            visit_table,
            diagnosis_column_name,
            DIAGNOSES[diagnosis_column_name],
            table_notes,
        )
        diagnosis_table[diagnosis_column_name] = _make_meaning_series(
            visit_table[diagnosis_column_name], DIAGNOSES[diagnosis_column_name]
        )
    if "dx_bl" in visit_table:
        _note_meanings(visit_table, "dx_bl", _STAGE_WORDS, table_notes)
        _add_unknown_word_faults(visit_table, "dx_bl", _STAGE_WORDS, table_faults)
    contradictory_visit_mask = (
        diagnosis_table.nunique(axis=1) > 1
    ) & _make_visit_row_mask(visit_table)
    for row_index in diagnosis_table.index[contradictory_visit_mask]:
        diagnosis_by_column = diagnosis_table.loc[row_index].dropna()
        diagnosis_texts = [
            f"{diagnosis_column_name.upper()} {diagnosis_text}"
            for diagnosis_column_name, diagnosis_text in diagnosis_by_column.items()
        ]
        rid = str(visit_table["rid"][row_index])
        visit_code = str(series_by_fact["viscode"][row_index])
        message = f"has two diagnoses at {visit_code}: {' and '.join(diagnosis_texts)}"
        contradiction_text = ", ".join(diagnosis_texts)
        table_faults.append(
            AdniFault(
                "two diagnoses",
                rid,
                visit_code,
                "DX",
                contradiction_text,
                message,
            )
        )
        faulty_visit_mask[row_index] = True
    for fact_name in ("phase", "first_phase"):
        fact_series = series_by_fact[fact_name]
        series_by_fact[fact_name] = _unify_phase_series(fact_series)
        known_phase_mask = series_by_fact[fact_name].isin(PHASES)
        _note_unknown_values(
            fact_series,
            known_phase_mask,
            f"phases ({fact_name})",
            table_notes,
            consequence_text="kept as they are written",
        )
    ages = _to_number_series(series_by_fact["age"])
    _note_unknown_values(series_by_fact["age"], ages.notna(), "ages", table_notes)
    sexes = _make_meaning_series(series_by_fact["sex"], _SEXES)
    _note_unknown_values(series_by_fact["sex"], sexes.notna(), "sexes", table_notes)
    series_by_fact |= {
        "ptid": _standardize_ptid_series(series_by_fact["ptid"]),
        "diagnosis": _coalesce_columns_to_series(diagnosis_table, *diagnosis_table),
        "is_faulty": faulty_visit_mask,
        "stage": _make_meaning_series(series_by_fact["stage"], _STAGE_WORDS),
        "sex": sexes,
        "date": _read_date_series(visit_table, "examdate", table_faults).fillna(
            _read_date_series(visit_table, "userdate", table_faults)
        ),
        "age": ages,
        "born": pd.Series(float("nan"), visit_table.index),
    }
    return pd.DataFrame(series_by_fact)


def _make_joined_visit_table(
    table_by_kind: dict[str, pd.DataFrame],
    table_faults: list[AdniFault],
    table_notes: list[str],
) -> pd.DataFrame:
    """Join DXSUM with arms, demography and days of examination, by RID."""
    diagnosis_table = table_by_kind["DXSUM"]
    visit_table = _read_visit_table(diagnosis_table, table_faults, table_notes)
    diagnosis_rids = _to_number_series(diagnosis_table["rid"])
    if "REGISTRY" in table_by_kind:
        registry_table = table_by_kind["REGISTRY"]
        visit_key_columns = [
            _to_number_series(registry_table["rid"]),
            registry_table["viscode"],
        ]
        # `last` skips missing dates: a row without one does not hide that of another.
        exam_date_by_visit = (
            _read_date_series(registry_table, "examdate", table_faults)
            .groupby(visit_key_columns)
            .last()
        )
        exam_dates = exam_date_by_visit.reindex(
            pd.MultiIndex.from_arrays([diagnosis_rids, diagnosis_table["viscode"]])
        )
        diagnosis_dates = parse_date_series(
            _coalesce_columns_to_series(diagnosis_table, "examdate")
        )
        diagnosis_dates = diagnosis_dates.fillna(
            exam_dates.set_axis(diagnosis_table.index)
        )
        visit_table["date"] = diagnosis_dates.fillna(visit_table["date"])
    if "ARM" in table_by_kind:
        baseline_stage_by_rid = _read_baseline_stage_by_rid(
            table_by_kind["ARM"], table_faults, table_notes
        )
        visit_table["stage"] = diagnosis_rids.map(baseline_stage_by_rid).astype(object)
    if "PTDEMOG" in table_by_kind:
        demography_table = table_by_kind["PTDEMOG"]
        birth_months = _to_number_series(
            _coalesce_columns_to_series(demography_table, "ptdobmm")
        ).fillna(6.5)
        series_by_fact = {
            "born": _to_number_series(demography_table["ptdobyy"])
            + (birth_months - 0.5) / 12,
            "sex": _make_meaning_series(demography_table["ptgender"], _SEXES),
            "education": _coalesce_columns_to_series(demography_table, "pteducat"),
        }
        _note_unknown_values(
            demography_table["ptgender"],
            series_by_fact["sex"].notna(),
            "sexes",
            table_notes,
        )
        person_table = (
            pd.DataFrame(series_by_fact)
            .groupby(_to_number_series(demography_table["rid"]))
            .first()
        )
        for fact_name in person_table:
            visit_table[fact_name] = diagnosis_rids.map(person_table[fact_name])
    # The PTID, from whichever table has it, ends with the RID.
    ptids = pd.concat(
        [
            _coalesce_columns_to_series(adni_table, "ptid", "subject")
            for adni_table in table_by_kind.values()
        ]
    )
    ptids = _standardize_ptid_series(ptids)
    ptids = ptids[ptids.str.fullmatch(r"\d{3}_S_\d{4,5}", na=False)]
    ptid_by_rid = ptids.groupby(ptids.str[6:].astype(float)).first()
    return visit_table.assign(
        ptid=visit_table["ptid"].fillna(diagnosis_rids.map(ptid_by_rid))
    )


def _read_baseline_stage_by_rid(
    arm_table: pd.DataFrame, table_faults: list[AdniFault], table_notes: list[str]
) -> pd.Series:
    """Return the baseline stage by RID, from the phase in which a person enrolled."""
    enrolment_phases = _unify_phase_series(
        _coalesce_columns_to_series(arm_table, "phase", "colprot")
    )
    staged_phase_mask = enrolment_phases.isna() | enrolment_phases.isin(STAGED_PHASES)
    n_rows_by_phase = enrolment_phases[~staged_phase_mask].value_counts().sort_index()
    if len(n_rows_by_phase):
        phase_counts_text = named_counts_text(n_rows_by_phase.items())
        table_notes.append(
            "rows of the ARM table are not used if their phase does not "
            f"distinguish SMC, EMCI and LMCI, or is unknown: {phase_counts_text}"
        )
    staged_phase_mask &= _coalesce_columns_to_series(arm_table, "enrolled") != "0"
    arm_table = arm_table[staged_phase_mask]
    _add_unknown_word_faults(arm_table, "arm", _ARM_STAGES, table_faults)
    phase_ranks = enrolment_phases[staged_phase_mask].map(PHASES).fillna(0)
    series_by_field = {
        "rid": _to_number_series(arm_table["rid"]),
        "stage": _make_meaning_series(arm_table["arm"], _ARM_STAGES),
    }
    stage_table = pd.DataFrame(series_by_field | {"phase_rank": phase_ranks}).dropna(
        subset="stage"
    )
    stage_table = stage_table.sort_values("phase_rank", kind="stable")
    return stage_table.drop_duplicates("rid").set_index("rid")["stage"]


def make_month_table_and_notes(
    visit_table: pd.DataFrame, folder: Path, table_faults: list[AdniFault]
) -> tuple[pd.DataFrame, list[str]]:
    """Return one row for every person and month, in order of time, and notes.

    A month with two diagnoses is added to the faults and marked `is_faulty`.
    """
    visit_rids = _to_number_series(visit_table["rid"])
    faulty_rids = visit_table["rid"][visit_table["rid"].notna() & (visit_rids % 1 != 0)]
    if len(faulty_rids):
        expected_text = f"a whole number such as 4010; got {faulty_rids.iloc[0]!r:.40}"
        raise CohortError(f"{folder}: RID must be {expected_text}")
    visit_codes = visit_table["viscode"].str.lower()
    screening_failure_mask = visit_codes == "f"  # of the screening
    visit_months = _to_number_series(visit_codes.str.extract(r"^m(\d{1,3})$")[0])
    visit_months = visit_months.mask(visit_codes.isin(_BASELINE_CODES), 0.0)
    visit_table = visit_table.assign(
        number=visit_rids, code=visit_codes, month=visit_months
    )
    unmerged_visit_table = visit_table[visit_rids.notna() & ~screening_failure_mask]
    days_since_baseline = (
        unmerged_visit_table["date"] - _find_baseline_date_by_rid(unmerged_visit_table)
    ).dt.days
    estimated_months = (days_since_baseline / _DAYS_PER_MONTH / 6).round() * 6
    visit_without_month_mask = unmerged_visit_table["month"].isna()
    unmerged_visit_table = unmerged_visit_table.assign(
        month=unmerged_visit_table["month"].fillna(estimated_months)
    ).dropna(subset="month")
    # Put the visit called baseline first: its values precede those of screening.
    unmerged_visit_table = unmerged_visit_table.iloc[
        (unmerged_visit_table["code"] != "bl").argsort(kind="stable")
    ]
    unmerged_visit_table = _make_marked_month_table(unmerged_visit_table, table_faults)
    visit_groupby = unmerged_visit_table.groupby(_VISIT_KEYS)
    merged_table = visit_groupby.first().assign(
        is_faulty=visit_groupby["is_faulty"].any()
    )
    merged_visit_table = _make_filled_visit_table(merged_table.reset_index())
    undatable_visit_mask = visit_without_month_mask & estimated_months.isna()
    estimated_month_mask = visit_without_month_mask & estimated_months.notna()
    note_tuples = (
        (visit_rids.isna(), "row", "no RID. Such rows are left out"),
        (
            screening_failure_mask,
            "visit",
            "the VISCODE f (screen failure). Such visits are left out",
        ),
        (
            undatable_visit_mask,
            "visit",
            "no month and no date. Such visits are left out",
        ),
        (
            merged_visit_table["date"].isna(),
            "visit",
            "no date, so no image can be assigned",
        ),
        (
            estimated_month_mask,
            "visit",
            "no month in the code. It was estimated from days",
        ),
    )
    merging_notes = [
        f"{count_text(counted_row_mask.sum(), noun, 'have')} {note_text}"
        for counted_row_mask, noun, note_text in note_tuples
        if any(counted_row_mask)
    ]
    return merged_visit_table, merging_notes


def _make_marked_month_table(
    visit_table: pd.DataFrame, table_faults: list[AdniFault]
) -> pd.DataFrame:
    """Mark months with two diagnoses; screening and baseline may differ."""
    diagnosed_table = visit_table[
        visit_table["diagnosis"].notna() & ~visit_table["is_faulty"]
    ]
    first_code_series = diagnosed_table.groupby(_VISIT_KEYS)["viscode"].transform(
        "first"
    )
    compared_table = diagnosed_table[
        (diagnosed_table["month"] > 0)
        | (diagnosed_table["viscode"] == first_code_series)
    ]
    n_diagnoses_by_row = compared_table.groupby(_VISIT_KEYS)["diagnosis"].transform(
        "nunique"
    )
    contradicting_table = compared_table[n_diagnoses_by_row > 1]
    for (rid_number, _), month_table in contradicting_table.groupby(_VISIT_KEYS):
        visit_codes_text = " and ".join(month_table["viscode"].unique())
        diagnoses_text = " and ".join(month_table["diagnosis"].unique())
        message = f"has two diagnoses at {visit_codes_text}: {diagnoses_text}"
        rid = f"{rid_number:.0f}"
        table_faults.append(
            AdniFault(
                "two diagnoses", rid, visit_codes_text, "DX", diagnoses_text, message
            )
        )
    faulty_visit_mask = visit_table["is_faulty"] | visit_table.index.isin(
        contradicting_table.index
    )
    return visit_table.assign(is_faulty=faulty_visit_mask)


def _make_filled_visit_table(visit_table: pd.DataFrame) -> pd.DataFrame:
    """Fill in PTID, site and first phase of each person, and the age at each visit."""
    ptids = visit_table.groupby("number")["ptid"].transform("first")
    first_phase_ranks = (
        visit_table["phase"].map(PHASES).groupby(visit_table["number"]).transform("min")
    )
    first_phases = first_phase_ranks.map(dict(enumerate(PHASES)))
    visit_dates = pd.to_datetime(visit_table["date"])
    years_since_baseline = (
        visit_dates - _find_baseline_date_by_rid(visit_table)
    ).dt.days / _DAYS_PER_YEAR
    ages = visit_table["age"] + years_since_baseline.fillna(visit_table["month"] / 12)
    decimal_years = (
        visit_dates.dt.year + (visit_dates.dt.day_of_year - 1) / _DAYS_PER_YEAR
    )
    return visit_table.assign(
        rid=visit_table["number"].astype(int).astype(str),
        month=visit_table["month"].astype(int),
        ptid=ptids,
        site=visit_table["site"].astype(object).fillna(ptids.str.slice(0, 3)),
        first_phase=visit_table["first_phase"].astype(object).fillna(first_phases),
        date=visit_dates,
        age=(decimal_years - visit_table["born"]).fillna(ages).round(1),
    )


def _find_baseline_date_by_rid(visit_table: pd.DataFrame) -> pd.Series:
    """Return the date of each person's baseline, or else the first known date."""
    visit_dates = pd.to_datetime(visit_table["date"])
    rids = visit_table["number"]
    baseline_dates = (
        visit_dates.where(visit_table["month"] == 0).groupby(rids).transform("min")
    )
    return baseline_dates.fillna(visit_dates.groupby(rids).transform("min"))
