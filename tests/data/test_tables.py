"""Tables of text: delimiters, comments, missing cells, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.data.tables import (
    as_covariate,
    is_missing,
    parse_number,
    parse_numbers,
    read_lines,
    read_table,
    sniff_delimiter,
)
from brainlsap.exceptions import FileFormatError


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", " "])
@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".txt"])
def test_delimiter_is_looked_for(write, delimiter, suffix):
    rows = [["id", "age", "sex"], ["a", "70", "F"], ["b", "n/a", "M"]]
    path = write(f"t{suffix}", "\n".join(delimiter.join(row) for row in rows))
    table = read_table(path)
    assert table.columns.tolist() == ["id", "age", "sex"]
    assert table.to_numpy().tolist() == [["a", "70", "F"], ["b", None, "M"]]


def test_comments_empty_lines_marks_and_line_ends(write):
    path = write("t.csv", "\ufeff# made by x\r\nid , age\r\n\r\n a , 7 \r\n")
    assert read_table(path).to_dict("records") == [{"id": "a", "age": "7"}]


def test_quoted_cells_may_hold_the_delimiter(write):
    path = write("t.csv", 'id,site\na,"Berlin, Mitte"\n')
    assert read_table(path)["site"].tolist() == ["Berlin, Mitte"]


def test_guards_against_formulas_are_taken_off(write):
    path = write("t.tsv", "id\t'=b\tc\n'@a\t'71\t-\nd\t'+cmd|x\t'n'\n")
    table = read_table(path)
    assert table.columns.tolist() == ["id", "=b", "c"]
    rows = [["@a", "'71", "-"], ["d", "+cmd|x", "'n'"]]
    assert table.to_numpy().tolist() == rows
    with pytest.raises(FileFormatError, match="the column '=b' stands more than once"):
        read_table(write("u.tsv", "id\t'=b\t=b\na\t1\t2\n"))


def test_text_stays_text(write):
    table = read_table(write("t.csv", "id,label\n007,1\n010,0\n"))
    assert table["id"].tolist() == ["007", "010"]
    assert table["label"].tolist() == ["1", "0"]


@pytest.mark.parametrize("cell", ["", " ", "n/a", "N/A", "NA", "nan", "NULL", None])
def test_missing(cell):
    assert is_missing(cell)
    assert np.isnan(parse_number(cell))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the table is empty; expected a header"),
        ("# only comments\n", "the table is empty"),
        ("a,b,c\n1,2,3\n1,2\n", "row 2 below the header has 2 cells, expected 3"),
        ("a,b,c\n1,2,3,4\n", "has 4 cells, expected 3 .between commas."),
        ("a,a\n1,2\n", "the column 'a' stands more than once"),
        ("a,b\n1,\0\n", "not a text file .it holds zero bytes"),
    ],
)
def test_refused(write, text, message):
    with pytest.raises(FileFormatError, match=rf"t\.csv: .*{message}"):
        read_table(write("t.csv", text))


def test_refused_files(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        read_table(tmp_path / "absent.tsv")
    with pytest.raises(FileFormatError, match=r"cannot be read \(Is a directory"):
        read_table(tmp_path)
    (tmp_path / "latin.csv").write_bytes(b"name\nK\xf6ln\n")
    with pytest.raises(FileFormatError, match="not a text file in UTF-8"):
        read_table(tmp_path / "latin.csv")
    (tmp_path / "quote.csv").write_text('a,b\n"1,2\n')
    with pytest.raises(FileFormatError, match="cannot be read as a table"):
        read_table(tmp_path / "quote.csv")


def test_lines_without_comments(write):
    assert read_lines(write("t", "# x\n1\n\n 2\n")) == ["1", " 2"]


def test_sniffing():
    assert sniff_delimiter("a b\tc,d") == "\t"
    assert sniff_delimiter("a b") is None


def test_numbers(write):
    path = write("t.csv", "a,b\n1,2.5\nn/a,-3e2\n")
    values = parse_numbers(path, read_table(path))
    np.testing.assert_array_equal(values, [[1, 2.5], [np.nan, -300]])


def test_numbers_refused(write):
    path = write("t.csv", "a,b\n1,2.5\n3,2,5\n".replace("2,5", "2·5"))
    with pytest.raises(
        FileFormatError, match=r"row 2 .* column 'b': expected a number"
    ):
        parse_numbers(path, read_table(path))
    with pytest.raises(ValueError, match="could not convert string to float: '1_5'"):
        parse_number("1_5")


def test_covariates():
    assert as_covariate(pd.Series(["1", "2"])).dtype == np.int64
    assert as_covariate(pd.Series(["1.5", None])).dtype == np.float64
    assert as_covariate(pd.Series(["F", None])).isna().tolist() == [False, True]
    assert as_covariate(pd.Series([None, None])).isna().all()


def test_a_head_without_end_is_refused(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text('{"a":' * 40_000 + "\tb\n1\t2\n")
    with pytest.raises(FileFormatError, match="read as a table: field larger"):
        read_table(path)
