"""Workbooks are read as text; broken ones are refused."""

import datetime as dt
import sys

import pytest

from brainlsap.data.tables import read_table
from brainlsap.data.workbooks import read_sheet
from brainlsap.exceptions import FileFormatError

openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture
def sheet(tmp_path):
    def make(*rows):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.create_sheet("second").append(["not", "read"])
        book.save(tmp_path / "t.xlsx")
        return tmp_path / "t.xlsx"

    return make


def test_cells_become_text(sheet):
    path = sheet(
        ["id", "age", "date", "note", None],
        ["sub-01", 70.0, dt.datetime(2006, 4, 18), None],
        [],
        [" sub-02 ", 71.5, dt.datetime(2006, 4, 18, 9, 30), True],
    )
    assert read_sheet(path) == [
        ["id", "age", "date", "note"],
        ["sub-01", "70", "2006-04-18", ""],
        ["sub-02", "71.5", "2006-04-18T09:30:00", "True"],
    ]
    table = read_table(path)
    assert table.loc[0].tolist() == ["sub-01", "70", "2006-04-18", None]


def test_tables_refused(sheet, tmp_path):
    with pytest.raises(FileFormatError, match=r"t\.xlsx: the table is empty"):
        read_table(sheet())
    with pytest.raises(FileFormatError, match="the column 'a' stands more than once"):
        read_table(sheet(["a", "b", "a"], [1, 2, 3]))
    with pytest.raises(FileFormatError, match="no such file"):
        read_table(tmp_path / "no.xlsx")
    (tmp_path / "bad.xlsx").write_bytes(b"PK not a workbook")
    with pytest.raises(FileFormatError, match="cannot be read as an Excel workbook"):
        read_table(tmp_path / "bad.xlsx")


def test_large_workbooks_are_refused_unread(sheet, monkeypatch):
    path = sheet(["a"], [1])
    monkeypatch.setattr(sys.modules["brainlsap.data.workbooks"], "MOST_BYTES", 100)
    with pytest.raises(FileFormatError, match="unpacks to more than 0 MiB"):
        read_sheet(path)


def test_openpyxl_may_be_missing(sheet, monkeypatch):
    path = sheet(["a"], [1])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(FileFormatError, match=r"pip install brainlsap\[xlsx\]"):
        read_sheet(path)
