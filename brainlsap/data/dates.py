"""Dates of scans and births, and what is impossible or contradictory about them."""

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.data.covariates import (
    KEY_COLUMNS,
    find_covariate_kind,
    is_birth_column,
    is_plausible_median_age,
    list_scans_with_wrong_numbers,
)
from brainlsap.data.tables import get_name_letters
from brainlsap.findings import FAULT, WRONG_DATE, Finding
from brainlsap.text import count_text

DAYS_PER_YEAR = 365.25
# Letters of names of columns with the dates of visits.
_VISIT_WORD = (
    r"(exam(ination)?|scan|visit|acq(uisition)?|session|mr[it]?|pet|image|series|study)"
)
_VISIT_DATE_COLUMN = re.compile(
    rf"{_VISIT_WORD}?(date|datum)|date(of)?(the)?{_VISIT_WORD}"
)
# Further names of columns of scan dates, if the cells are dates.
_SCAN_COLUMN = re.compile(
    rf"{_VISIT_WORD}|(tag|datum)?(der)?(untersuchungs?|mess|aufnahme)(datum|tag)?"
)
_VISIT_DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%m/%d/%Y", "%d.%m.%Y")
# Formats in which some cells of a column may be written; others have two meanings.
_CLEAR_DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%d.%m.%Y")
# The year of a date in any of these formats.
_FOUR_DIGITS = re.compile(r"\d{4}")
_MONTH_FORMATS = ("%Y-%m", "%m/%Y", "%m.%Y", "%m-%Y")
# Smallest share of cells of a column of dates that are dates.
_MIN_SHARE_OF_DATES = 0.9
# Clocks of other time zones are at most a day ahead.
_MAX_DAYS_AHEAD = 1
# Dates of most scans are wrong together only if they were shifted on purpose.
_MAX_SHARE_OF_FAULTS = 0.5
# A gap between scans of one study that is longer, in years, is a slip of the pen.
_MAX_GAP = 20.0
# Largest share of scans beyond such a gap.
_MAX_SHARE_BEYOND_GAP = 0.1
# Largest difference in years between an age and the time since birth: both may be
# rounded, and the age may be that of another visit of the same year.
MAX_AGE_DIFFERENCE = 2.0
# A year of birth is at most this many days before or after the day.
_HALF_YEAR = 183
_BIRTH_YEARS = (1850, 2200)
_VISIT = "the date of the visit"
_CORRECTION = "Correct the date, or write n/a if it is unknown"
_VISIT_CORRECTION = (
    "Correct the date in the table, and in the names of files that contain it"
)


class _DateColumn(NamedTuple):
    """The dates of scans, in days since 1970; NaN where unknown."""

    title: str
    days: np.ndarray


class _BirthColumn(NamedTuple):
    """Births in days since 1970 (NaN where unknown), which may err by a margin."""

    name: str
    days: np.ndarray
    margin_days: int

    def make_late_mask(self, date_column: _DateColumn) -> np.ndarray:
        """Return which scans are before the birth."""
        return self.days - self.margin_days > date_column.days


def parse_dates(column_series: pd.Series) -> pd.Series:
    """Return the dates of a column; NaT unless all known cells are dates."""
    known_cells = _list_date_cells(column_series)
    unknown_dates = pd.Series(pd.NaT, column_series.index, dtype="datetime64[ns]")
    if not all(map(_FOUR_DIGITS.search, known_cells)):
        return unknown_dates
    for date_format in _VISIT_DATE_FORMATS:
        dates = pd.to_datetime(known_cells, format=date_format, errors="coerce")
        if len(dates) and dates.notna().all():
            return dates.reindex(column_series.index)
    return unknown_dates


def parse_days(column_series: pd.Series) -> np.ndarray:
    """Return the days of dates since 1970; NaN where unknown.

    Unlike in :func:`parse_dates`, a few known cells need not be dates, and days may be
    written before months with slashes.

    >>> parse_days(pd.Series(["02.01.1970", None])).tolist()
    [1.0, nan]
    """
    date_series = parse_dates(column_series)
    known_cells = _list_date_cells(column_series)
    if date_series.isna().all() and any(map(_FOUR_DIGITS.search, known_cells)):
        date_series = pd.to_datetime(known_cells, format="%d/%m/%Y", errors="coerce")
        if not date_series.notna().all():
            for date_format in _CLEAR_DATE_FORMATS:
                dates = pd.to_datetime(known_cells, format=date_format, errors="coerce")
                date_series = date_series.fillna(dates)
        if date_series.notna().sum() < _MIN_SHARE_OF_DATES * len(known_cells):
            return np.full(len(column_series), np.nan)
    days = count_days_since_1970(date_series)
    return days.reindex(column_series.index).to_numpy(dtype=float)


def count_days_since_1970(date_series: pd.Series) -> pd.Series:
    """Return the days of dates since 1970; NaN where a date is not known."""
    return (date_series - pd.Timestamp(1970, 1, 1)).dt.days


def _list_date_cells(column_series: pd.Series) -> pd.Series:
    """Return the known cells of a column as text, without times and prefixes."""
    known_cells = column_series.dropna().astype(str).str.removeprefix("ses-").str[:10]
    return known_cells[known_cells != ""]


def find_visit_date_columns(column_names: Iterable[str]) -> list[str]:
    """Return the columns with dates of visits, by their names.

    >>> find_visit_date_columns(["age", "visit_date", "MRT-Datum", "EXAMDATE"])
    ['visit_date', 'MRT-Datum', 'EXAMDATE']
    """
    return [
        column_name
        for column_name in column_names
        if _VISIT_DATE_COLUMN.fullmatch(get_name_letters(column_name))
    ]


def find_scan_date_columns(column_names: Iterable[str]) -> list[str]:
    """Return the columns that may have dates of visits, by a wider choice of names.

    >>> find_scan_date_columns(["EXAMDATE", "Untersuchung", "birth_date", "session"])
    ['EXAMDATE', 'Untersuchung']
    """
    return [
        column_name
        for column_name in column_names
        if column_name not in KEY_COLUMNS
        and (
            find_visit_date_columns([column_name])
            or _SCAN_COLUMN.fullmatch(get_name_letters(column_name))
        )
    ]


def find_date_faults(
    scan_table: pd.DataFrame, today: dt.date | None = None
) -> list[Finding]:
    """Return the faults of dates: scans in the future, and births after a scan.

    If this is so of most scans, the dates were shifted to protect the people, and
    :func:`make_date_notes` says so.

    Parameters
    ----------
    scan_table : DataFrame
        Of a cohort.
    today : date, optional
        Scans after the day that follows are in the future; by default, the day of the
        call.

    Returns
    -------
    list of Finding
    """
    scan_table = scan_table.reset_index(drop=True)
    date_columns = _list_scan_date_columns(scan_table)
    fault_findings = list[Finding]()
    for date_column in date_columns:
        fault_findings += _find_future_faults(scan_table, date_column, today)
    for birth_column in _iter_birth_columns(scan_table):
        fault_findings += _find_late_birth_faults(
            scan_table, birth_column, date_columns
        )
    return fault_findings


def _find_future_faults(
    scan_table: pd.DataFrame, date_column: _DateColumn, today: dt.date | None
) -> list[Finding]:
    """Return a fault for each date in the future, unless most dates are."""
    future_mask = _make_future_mask(date_column, today)
    if not _are_few(future_mask, date_column.days):
        return []
    advice = _VISIT_CORRECTION if date_column.title == _VISIT else _CORRECTION
    return [
        Finding(
            f"{date_column.title} is in the future",
            FAULT,
            scan=str(scan_table["scan"][row_index]),
            got=_write_date(date_column.days[row_index]),
            advice=advice,
        )
        for row_index in np.flatnonzero(future_mask)
    ]


def _find_late_birth_faults(
    scan_table: pd.DataFrame,
    birth_column: _BirthColumn,
    date_columns: Sequence[_DateColumn],
) -> list[Finding]:
    """Return a fault for each person with a scan before the birth, unless most have."""
    fault_by_person: dict[str, Finding] = {}
    for date_column in date_columns:
        late_mask = birth_column.make_late_mask(date_column)
        if not _are_few(late_mask, birth_column.days - date_column.days):
            continue
        for row_index in np.flatnonzero(late_mask):
            participant_id = str(scan_table["participant"][row_index])
            fault_by_person.setdefault(
                participant_id,
                Finding(
                    f"{birth_column.name} is later than {date_column.title}",
                    FAULT,
                    participant=participant_id,
                    got=f"{scan_table[birth_column.name][row_index]} and "
                    f"{_write_date(date_column.days[row_index])}",
                    advice=_CORRECTION,
                ),
            )
    return list(fault_by_person.values())


def make_date_notes(
    scan_table: pd.DataFrame, today: dt.date | None = None
) -> list[Finding]:
    """Return notes on dates that were shifted, or that contradict others or ages.

    Parameters are those of :func:`find_date_faults`, whose scans have no note.
    """
    findings = list[Finding]()
    scan_table = scan_table.reset_index(drop=True)
    date_columns = _list_scan_date_columns(scan_table)
    for date_column in date_columns:
        future_mask = _make_future_mask(date_column, today)
        if future_mask.any() and not _are_few(future_mask, date_column.days):
            findings.append(_make_shift_note(date_column.title, future_mask))
        else:
            findings += _make_far_date_notes(scan_table, date_column, future_mask)
    for birth_column in _iter_birth_columns(scan_table):
        for date_column in date_columns:
            days_since_birth = date_column.days - birth_column.days
            late_mask = birth_column.make_late_mask(date_column)
            if late_mask.any() and not _are_few(late_mask, days_since_birth):
                title = f"{birth_column.name} or {date_column.title}"
                findings.append(_make_shift_note(title, late_mask))
                continue
            past_mask = ~(late_mask | _make_future_mask(date_column, today))
            years = np.where(past_mask, days_since_birth / DAYS_PER_YEAR, np.nan)
            findings += _make_other_age_notes(
                scan_table, years, birth_column.name, date_column.title
            )
    return list({(x.message, x.place): x for x in findings}.values())


def list_age_step_contradictions(
    scan_table: pd.DataFrame, column_name: str
) -> dict[str, str]:
    """Return people whose age changes otherwise than the dates of their visits.

    The values are texts on the first two visits that contradict each other. Ages that
    stay the same are not listed, because they may all be those of the first visit.

    >>> list_age_step_contradictions(
    ...     pd.DataFrame(
    ...         {
    ...             "participant": ["s1", "s1"],
    ...             "age": [60, 70],
    ...             "session": ["2019-03-12", "2020-03-12"],
    ...         }
    ...     ),
    ...     "age",
    ... )
    {'s1': '60 at 2019-03-12, 70 at 2020-03-12'}
    """
    text_by_person: dict[str, str] = {}
    scan_table = scan_table.reset_index(drop=True)
    ages = pd.to_numeric(scan_table[column_name], errors="coerce")
    if not is_plausible_median_age(ages.median()):
        return {}
    for date_column in _list_scan_date_columns(scan_table):
        visit_table = pd.DataFrame(
            {
                "person": scan_table["participant"].astype(str),
                "age": ages,
                "years": date_column.days / DAYS_PER_YEAR,
                "date": [*map(_write_date, date_column.days)],
            }
        ).dropna()
        visit_table = visit_table.sort_values(["person", "years"])
        earlier_table = visit_table.shift()
        age_steps = visit_table["age"] - earlier_table["age"]
        year_steps = visit_table["years"] - earlier_table["years"]
        contradiction_mask = (
            (visit_table["person"] == earlier_table["person"])
            & (age_steps != 0)
            & ((age_steps - year_steps).abs() > MAX_AGE_DIFFERENCE)
        )
        for row_index in contradiction_mask.index[contradiction_mask]:
            earlier_row, later_row = (
                earlier_table.loc[row_index],
                visit_table.loc[row_index],
            )
            text_by_person.setdefault(
                later_row["person"],
                f"{earlier_row['age']:g} at {earlier_row['date']}, "
                f"{later_row['age']:g} at {later_row['date']}",
            )
    return text_by_person


def _list_scan_date_columns(scan_table: pd.DataFrame) -> list[_DateColumn]:
    """Return the dates that visits are named after, and the columns of scan dates."""
    visit_days = count_days_since_1970(parse_dates(scan_table["session"]))
    date_columns = [_DateColumn(_VISIT, visit_days.to_numpy(dtype=float))]
    date_columns += [
        _DateColumn(column_name, parse_days(scan_table[column_name]))
        for column_name in find_scan_date_columns(map(str, scan_table.columns))
    ]
    return [
        date_column
        for date_column in date_columns
        if np.isfinite(date_column.days).any()
    ]


def _iter_birth_columns(scan_table: pd.DataFrame) -> Iterator[_BirthColumn]:
    """Yield the columns of birth."""
    for column_label in scan_table.columns:
        column_name = str(column_label)
        if column_name in KEY_COLUMNS or not is_birth_column(column_name):
            continue
        birth_series = scan_table[column_name]
        birth_days = parse_days(birth_series)
        if np.isfinite(birth_days).any():
            yield _BirthColumn(column_name, birth_days, margin_days=0)
            continue
        birth_years = pd.to_numeric(birth_series, errors="coerce")
        for month_format in _MONTH_FORMATS if birth_years.isna().all() else ():
            dates = pd.to_datetime(birth_series, format=month_format, errors="coerce")
            if dates.notna().any():
                birth_years = dates.dt.year
        known_years = birth_years.dropna()
        if len(known_years) and known_years.between(*_BIRTH_YEARS).all():
            days = (birth_years - 1970) * DAYS_PER_YEAR + _HALF_YEAR
            yield _BirthColumn(
                column_name, days.to_numpy(dtype=float), margin_days=_HALF_YEAR
            )


def _make_future_mask(date_column: _DateColumn, today: dt.date | None) -> np.ndarray:
    """Return which dates are in the future."""
    today = today or dt.date.today()
    days_until_today = (today - dt.date(1970, 1, 1)).days
    return date_column.days > days_until_today + _MAX_DAYS_AHEAD


def _are_few(wrong_mask: np.ndarray, known_values: np.ndarray) -> bool:
    """Return whether the wrong values are at most half of those that are known."""
    return wrong_mask.sum() <= _MAX_SHARE_OF_FAULTS * np.isfinite(known_values).sum()


def _make_shift_note(title: str, wrong_mask: np.ndarray) -> Finding:
    """Return the note that dates were shifted, because most are impossible."""
    n_scans = int(wrong_mask.sum())
    return Finding(
        f"{title} is impossible in {count_text(n_scans, 'scan')}, so the dates were "
        "probably shifted to protect the participants",
        kind=WRONG_DATE,
        advice="If the dates should be the true ones, correct them",
    )


def _make_far_date_notes(
    scan_table: pd.DataFrame, date_column: _DateColumn, future_mask: np.ndarray
) -> list[Finding]:
    """Return a note on every date that is decades from those of all other scans."""
    row_indices = np.flatnonzero(np.isfinite(date_column.days) & ~future_mask)
    row_indices = row_indices[np.argsort(date_column.days[row_indices], kind="stable")]
    years = date_column.days[row_indices] / DAYS_PER_YEAR
    block_numbers = np.cumsum(np.diff(years, prepend=years[:1]) > _MAX_GAP)
    if not len(years):
        return []
    main_block = np.bincount(block_numbers).argmax()
    far_mask = block_numbers != main_block
    if far_mask.mean() > _MAX_SHARE_BEYOND_GAP:
        return []
    first_day, last_day = date_column.days[row_indices[~far_mask][[0, -1]]]
    return [
        Finding(
            f"{date_column.title} is decades away from the dates of all other scans, "
            f"which are from {_write_date(first_day)} to {_write_date(last_day)}",
            kind=WRONG_DATE,
            scan=str(scan_table["scan"][row_index]),
            got=_write_date(date_column.days[row_index]),
            advice=_CORRECTION,
        )
        for row_index in row_indices[far_mask]
    ]


def _make_other_age_notes(
    scan_table: pd.DataFrame, years: np.ndarray, birth_name: str, date_title: str
) -> list[Finding]:
    """Return a note on each person whose age is not the time since birth.

    `years` is this time for every scan. Ages are compared at the first scan of a
    person, because all visits may have the age of the first one.
    """
    findings = list[Finding]()
    first_scan_mask = (
        pd.Series(years).groupby(scan_table["participant"]).transform("min") == years
    )
    for column_label in scan_table.columns:
        column_name = str(column_label)
        if column_name in KEY_COLUMNS or find_covariate_kind(column_name) != "age":
            continue
        ages = pd.to_numeric(scan_table[column_name], errors="coerce")
        if not is_plausible_median_age(ages.median()):
            continue
        faulty_scan_names = list_scans_with_wrong_numbers(scan_table, column_name)
        differing_mask = first_scan_mask & ((ages - years).abs() > MAX_AGE_DIFFERENCE)
        findings += [
            Finding(
                f"{column_name} differs by more than {MAX_AGE_DIFFERENCE:g} years from "
                f"the time between {birth_name} and {date_title}",
                kind=WRONG_DATE,
                participant=str(scan_table["participant"][row_index]),
                # Reports show this text, which must not tell when a person was born.
                got=f"{ages[row_index]:g} and {years[row_index]:.1f} years",
                advice="Correct the value that is wrong, or write n/a",
            )
            for row_index in np.flatnonzero(differing_mask)
            if str(scan_table["scan"][row_index]) not in faulty_scan_names
        ]
    return findings


def _write_date(days: float) -> str:
    """Return a day since 1970 as a date; "" if it is not known."""
    if not np.isfinite(days):
        return ""
    return str(dt.date(1970, 1, 1) + dt.timedelta(days=int(days)))


__all__ = [
    "count_days_since_1970",
    "find_date_faults",
    "find_scan_date_columns",
    "find_visit_date_columns",
    "list_age_step_contradictions",
    "make_date_notes",
    "parse_dates",
    "parse_days",
]
