"""Dates that are impossible, or contradict ages and other dates, are named."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from brainlsap.data.dates import find_date_faults, make_date_notes, parse_days
from brainlsap.data.participants import make_changed_person_notes
from brainlsap.findings import CHANGED_PERSON, FAULT, WRONG_DATE

TODAY = dt.date(2026, 11, 28)
N_PEOPLE = 12


def draw_people(**changed_cells):
    """Return a sound table of scans; `column={row: cell}` replaces single cells."""
    scan_dates = pd.Timestamp("2019-03-12") + pd.to_timedelta(
        40 * np.arange(N_PEOPLE), unit="D"
    )
    ages = 60 + np.arange(N_PEOPLE) % 7 + 0.3
    births = scan_dates - pd.to_timedelta((ages * 365.25).round(), unit="D")
    names = [f"p{row}" for row in range(N_PEOPLE)]
    table = pd.DataFrame(
        {
            "scan": names,
            "participant": names,
            "session": "",
            "label": "CN",
            "exam_date": scan_dates.strftime("%Y-%m-%d"),
            "birth_date": births.strftime("%Y-%m-%d"),
            "age": ages,
        }
    )
    for column_name, cells in changed_cells.items():
        for row, cell in cells.items():
            table.loc[row, column_name] = cell
    return table


def list_all(table):
    """Return faults and notes, with the day of the tests."""
    return find_date_faults(table, TODAY), make_date_notes(table, TODAY)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"exam_date": {0: None, 3: "2026-11-28", 4: "2026-11-29"}, "age": {3: None}},
        {"birth_date": {0: None}, "age": {0: 80}},
        {"age": {3: 65.2}, "exam_date": {5: "unknown"}},
    ],
)
def test_sound_dates_are_not_named(changes):
    table = draw_people(**changes)
    if changes.get("exam_date", {}).get(3):
        table["birth_date"] = None
    assert list_all(table) == ([], [])


def test_a_scan_in_the_future_is_a_fault():
    table = draw_people(exam_date={3: "2062-03-01"})
    (fault,), notes = list_all(table)
    assert (fault.severity, fault.scan, fault.got) == (FAULT, "p3", "2062-03-01")
    assert fault.message == "exam_date is in the future"
    assert notes == []
    german = table.rename(columns={"exam_date": "Untersuchung"})
    german["Untersuchung"] = pd.to_datetime(german["Untersuchung"]).dt.strftime(
        "%d.%m.%Y"
    )
    (fault,), notes = list_all(german)
    assert fault.message == "Untersuchung is in the future"
    visits = table.assign(session="ses-" + table.pop("exam_date"))
    (fault,), notes = list_all(visits)
    assert fault.message == "the date of the visit is in the future"
    assert "names of files" in fault.advice


def test_shifted_dates_are_one_note():
    table = draw_people()
    shifted = table["exam_date"].str.replace("20", "21", n=1)
    faults, (note,) = list_all(
        table.assign(exam_date=shifted).drop(columns="birth_date")
    )
    assert (faults, note.kind, note.place) == ([], WRONG_DATE, "")
    assert "12 scans" in note.message
    # Births alone are shifted.
    births = table["birth_date"].str.replace("19", "20", n=1)
    faults, (note,) = list_all(table.assign(birth_date=births))
    assert faults == []
    assert "birth_date or exam_date is impossible in 12 scans" in note.message


@pytest.mark.parametrize("birth", ["2049-03-01", "03/2049", "2049"])
def test_a_birth_after_the_scan_is_a_fault(birth):
    table = draw_people(birth_date={3: "2049-03-01"})
    if birth != "2049-03-01":
        date_format = "%m/%Y" if "/" in birth else "%Y"
        births = pd.to_datetime(table["birth_date"]).dt.strftime(date_format)
        table["birth_date"] = births if "/" in birth else births.astype(float)
    (fault,), notes = list_all(table)
    assert (fault.severity, fault.participant) == (FAULT, "p3")
    assert fault.message == "birth_date is later than exam_date"
    assert "2019-07-10" in fault.got
    assert notes == []
    # In the year of the scan, a year of birth does not say which was first.
    same_year = draw_people(birth_date={3: "2019-03-01"}, age={3: None})
    assert list_all(same_year) == ([], [])


def test_a_date_decades_from_the_others_is_noted():
    table = draw_people(exam_date={3: "1970-01-01"}).drop(columns="birth_date")
    faults, (note,) = list_all(table)
    assert (faults, note.kind, note.scan) == ([], WRONG_DATE, "p3")
    assert note.got == "1970-01-01"
    assert "from 2019-03-12 to 2020-05-25" in note.message


def test_an_age_that_contradicts_the_dates_is_noted():
    table = draw_people(birth_date={3: "1988-03-01"})
    faults, (note,) = list_all(table)
    assert (faults, note.kind, note.participant) == ([], WRONG_DATE, "p3")
    assert note.got == "63.3 and 31.4 years"
    assert "1988" not in str(note)  # when somebody was born
    # An impossible age is a fault of its own; other units have a note of their own.
    assert list_all(draw_people(age={3: 710})) == ([], [])
    assert list_all(table.assign(age=table["age"] * 12)) == ([], [])
    # Later visits may have the age of the first one.
    later = draw_people().assign(scan=lambda x: x["scan"] + "_2")
    later["exam_date"] = later["exam_date"].str.replace("20", "21", n=1)
    assert make_date_notes(pd.concat([draw_people(), later]), dt.date.max) == []


@pytest.mark.parametrize(
    ("visits", "dates", "changed"),
    [
        (("bl", "M06"), ("2019-03-12", "2019-09-12"), None),
        (("bl", "M06"), ("2019-09-12", "2019-03-12"), ["bl", "M06"]),
        (("bl", "M06"), ("12/09/2019", "25/03/2019"), ["bl", "M06"]),
        (("x", "y"), ("2019-09-12", "2019-03-12"), None),
    ],
)
def test_a_first_visit_after_a_later_one_is_noted(visits, dates, changed):
    table = pd.DataFrame({"session": visits, "EXAMDATE": dates, "participant": "anna"})
    notes = make_changed_person_notes(table)
    assert [note.values["visits"] for note in notes] == ([changed] if changed else [])
    for note in notes:
        assert note.got == f"{dates[0]} at bl, {dates[1]} at M06"
        assert note.message == "EXAMDATE is earlier at the later visit"


@pytest.mark.parametrize(
    ("ages", "is_note_expected"),
    [([60, 61.5], False), ([60, 63], False), ([60, 60], False), ([60, 64], True)],
)
def test_ages_that_do_not_change_by_the_time_between_visits_are_noted(
    ages, is_note_expected
):
    table = pd.DataFrame(
        {"session": ["2019-03-12", "2020-09-12"], "participant": "anna", "age": ages}
    )
    notes = make_changed_person_notes(table)
    assert [note.got for note in notes] == (
        ["60 at 2019-03-12, 64 at 2020-09-12"] if is_note_expected else []
    )
    assert all(note.kind == CHANGED_PERSON for note in notes)
    # The dates may be in a column.
    other = table.rename(columns={"session": "scan_date"}).assign(session=["a", "b"])
    assert bool(make_changed_person_notes(other)) == is_note_expected


def test_single_cells_that_are_no_dates_do_not_hide_the_others():
    cells = ["2019-03-12"] * 18 + ["12.03.2019", "unknown"]
    days = parse_days(pd.Series(cells))
    assert np.isnan(days).tolist() == [False] * 19 + [True]
    assert len({*days[:19]}) == 1
    assert np.isnan(parse_days(pd.Series(cells[:6] + ["no"] * 2))).all()
