"""Cut the text of a table, or a sheet of a workbook, into rows of cells.

Every line below the header becomes a row, or the table is refused with the number of
the line: no row is dropped because of a stray quotation mark or a `#`. Leading lines
that begin with `#` are comments, unless one of them is the header (`#participant_id`).
Empty rows, which spreadsheets write below the last row, are skipped.

Tabs and white space separate cells line by line, since BIDS has no quoting: a pair of
quotation marks around a whole cell is taken off, any other mark is text. Commas and
semicolons follow RFC 4180, where a quoted cell may hold line breaks. Such a cell is
refused if its lines could as well be rows of the table.
"""

import csv
import datetime as dt
import gzip
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, takewhile
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from brainlsap.exceptions import FileFormatError, reading

DELIMITERS = "\t;,"
_DELIMITER_NAMES = {
    "\t": "tabs",
    ";": "semicolons",
    ",": "commas",
    None: "white space",
}
# Excel reads the delimiter from a first line such as `sep=;`.
_DELIMITER_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_INTEGER = re.compile(r"\s*-?\d+\s*")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_BLANK_AFTER_QUOTE = re.compile(r'"[ \t]+(?=[,;]|$)')

HeaderScore = Callable[[Sequence[str]], int]


class TableRow(NamedTuple):
    """The cells of a row, and its line (from 1, as in editors)."""

    line: int
    cells: list[str]


class TableText(NamedTuple):
    """The header of a table, the rows below it, and the lines that are comments."""

    header: TableRow
    rows: list[TableRow]
    comment_lines: list[int]


def read_text(path: str | Path) -> str:
    """Return the text of a file, with line feeds at the ends of its lines."""
    with reading(path, "text"):
        data = Path(path).read_bytes()
        data = gzip.decompress(data) if Path(path).suffix.lower() == ".gz" else data
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"is not text in UTF-8 ({error}). Save a table as that (in "
                "Excel: CSV UTF-8).",
                path=path,
                kind="not UTF-8",
            ) from error
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FileFormatError(
            f"not a text file (it holds zero bytes, the first in line {line}). "
            "The file may be damaged, or text in UTF-16; save it as UTF-8.",
            path=path,
            kind="zero bytes",
            values={"line": line},
        )
    return text


def sniff_delimiter(line: str) -> str | None:
    """Return the delimiter of the cells of a line, None for white space."""
    # A name in quotes may have commas.
    unquoted_line = re.sub(r'"[^"]*"', "", line)
    return next((mark for mark in DELIMITERS if mark in unquoted_line), None)


def split_cells(line: str, delimiter: str | None) -> list[str]:
    """Return the cells of a line without white space and quotes around them."""
    line = line if delimiter else " ".join(line.split())
    reader = csv.reader([line], delimiter=delimiter or " ", skipinitialspace=True)
    return [cell.strip() for cell in next(reader)]


def read_table_text(path: str | Path, score_header: HeaderScore) -> TableText:
    """Cut a text file into a header and rows of as many cells.

    `score_header` says how much the cells of a line look like heads of columns; it
    decides whether a line that begins with `#` is the header.
    """
    lines = read_text(path).split("\n")
    line_index = [i for i, line in enumerate(lines) if line and not line.isspace()]
    first_line = lines[line_index[0]] if line_index else ""
    delimiter_line = _DELIMITER_LINE.fullmatch(first_line)
    if delimiter_line:
        line_index = line_index[1:]
    comment_index = list(takewhile(lambda i: lines[i][0] == "#", line_index))
    line_index = line_index[len(comment_index) :]
    comment_lines = [i + 1 for i in comment_index]
    if not line_index:
        raise _empty_table(path, comment_lines)
    first_line = lines[line_index[0]]
    first_row_delimiter = _choose_delimiter(first_line)
    delimiter = delimiter_line[1] if delimiter_line else first_row_delimiter
    header_candidates = [
        TableRow(
            i + 1, _split_header(lines[i].removeprefix("#").lstrip(" "), delimiter)
        )
        for i in comment_index
        if delimiter_line or _may_have_delimiter(lines[i], delimiter)
    ]
    first_row = TableRow(line_index[0] + 1, _split_header(first_line, delimiter))
    header = choose_header(
        path, header_candidates, first_row, score_header, delimiter is not None
    )
    if header is first_row:
        line_index = line_index[1:]
    n_cells = len(header.cells)
    if delimiter is None or delimiter == "\t":
        rows = _cut_lines(lines, line_index, delimiter, n_cells)
    else:
        delimiter_pattern = re.escape(delimiter)
        if f"{delimiter} " not in lines[header.line - 1]:
            # A comma with a blank after it belongs to a sentence.
            delimiter_pattern += "(?! )"
        rows = _cut_quoted_lines(
            path, lines, line_index, delimiter, n_cells, delimiter_pattern
        )
    rows = [row for row in rows if any(map(str.strip, row.cells))]
    header = _match_widths(path, header, rows, lines, delimiter, score_header)
    comment_lines = [line for line in comment_lines if line != header.line]
    return TableText(header, rows, comment_lines)


def _choose_delimiter(line: str) -> str | None:
    """Return the delimiter of a table by its first line, None for white space."""
    delimiter = sniff_delimiter(line)
    if delimiter is None and len(line.split()) == 1:
        # A table of one column; its cells may have blanks.
        return "\t"
    return delimiter


def _may_have_delimiter(comment: str, delimiter: str | None) -> bool:
    """Return whether a comment could be a header with this delimiter."""
    comment_delimiter = sniff_delimiter(comment)
    if comment_delimiter is None and delimiter == "\t":
        return True
    return comment_delimiter == delimiter


def read_sheet_rows(path: str | Path, sheet: str = "") -> list[TableRow]:
    """Return the rows of a sheet of a workbook as text, without empty rows.

    Errors of formulas (`#N/A`, `#REF!`) stay as the sheet shows them.
    """
    rows = list[TableRow]()
    with (
        reading(path, "an Excel workbook"),
        pd.ExcelFile(path, engine="openpyxl") as workbook,
    ):
        sheets = workbook.book
        worksheet = sheets[sheet] if sheet else sheets.worksheets[0]
        # The dimensions that a file states may be wrong.
        worksheet.reset_dimensions()
        for line, values in enumerate(worksheet.iter_rows(values_only=True), start=1):
            cells = [_cell_text(value) for value in values]
            if any(cells):
                rows.append(TableRow(line, cells))
    width = max((len(row.cells) for row in rows), default=0)
    return [row._replace(cells=_pad_cells(row.cells, width)) for row in rows]


def drop_titles(rows: list[TableRow], score_header: HeaderScore) -> list[TableRow]:
    """Return rows without titles: rows of one filled cell above the heads."""
    n_titles = 0
    while (
        n_titles + 1 < len(rows)
        and _count_filled(rows[n_titles]) < 2 <= _count_filled(rows[n_titles + 1])
        and score_header(rows[n_titles].cells) == 0
    ):
        n_titles += 1
    return rows[n_titles:]


def read_sheet_text(
    path: str | Path, sheet: str, score_header: HeaderScore
) -> TableText:
    """Divide a sheet of a workbook into header, rows and comments."""
    rows = drop_titles(read_sheet_rows(path, sheet), score_header)
    comments = list(takewhile(lambda row: row.cells[0][:1] == "#", rows))
    rows = rows[len(comments) :]
    comment_lines = [row.line for row in comments]
    if not rows:
        raise _empty_table(path, comment_lines)
    header_candidates = []
    for row in comments:
        # A comment of one filled cell is a sentence.
        if _count_filled(row) > 1:
            first_cell = row.cells[0].removeprefix("#").lstrip()
            header_candidates.append(TableRow(row.line, [first_cell, *row.cells[1:]]))
    header = choose_header(path, header_candidates, rows[0], score_header, True)
    if header is rows[0]:
        rows = rows[1:]
    comment_lines = [line for line in comment_lines if line != header.line]
    return TableText(header, rows, comment_lines)


def choose_header(
    path: str | Path,
    candidates: Sequence[TableRow],
    first_row: TableRow,
    score_header: HeaderScore,
    is_delimited: bool,
) -> TableRow:
    """Return the header: the first line without `#`, or a candidate with it.

    Raises FileFormatError if a candidate has as many cells as the first line without
    `#`, and neither looks more like a header.
    """
    first_score = score_header(first_row.cells)
    for row in reversed(candidates):
        if len(row.cells) != len(first_row.cells):
            continue
        score = score_header(row.cells)
        if score > first_score:
            return row
        is_table = is_delimited and len(first_row.cells) > 1
        if score == first_score and is_table and row.cells != first_row.cells:
            raise FileFormatError(
                f"line {row.line} begins with # and has as many cells as line "
                f"{first_row.line}, so either could be the header. Take the # away if "
                f"line {row.line} is the header; delete the line if it is a comment.",
                path=path,
                kind="two headers",
                values={"line": first_row.line},
            )
    return first_row


def _empty_table(path: str | Path, comment_lines: Sequence[int]) -> FileFormatError:
    """Return the error of a table without a header."""
    comment_hint = ""
    if comment_lines:
        comment_hint = (
            f" {len(comment_lines)} lines begin with # and count as comments."
        )
    return FileFormatError(
        f"the table is empty; expected a header line.{comment_hint}",
        path=path,
        kind="empty table",
    )


def _split_header(line: str, delimiter: str | None) -> list[str]:
    """Return the heads of a line; quotation marks that do not fit are text."""
    try:
        cells = _parse_quoted(line, delimiter)
    except csv.Error:
        cells = [_unquote(cell) for cell in line.split(delimiter)]
    return [cell.strip() for cell in cells]


def _parse_quoted(line: str, delimiter: str | None) -> list[str]:
    """Return the cells of one line by RFC 4180; else raise csv.Error."""
    if '"' not in line:
        return line.split(delimiter)
    line = line if delimiter else " ".join(line.split())
    separator = delimiter or " "
    try:
        reader = csv.reader(
            [line], delimiter=separator, skipinitialspace=True, strict=True
        )
        return next(reader)
    except csv.Error:
        tidy_line = _BLANK_AFTER_QUOTE.sub('"', line)
        if tidy_line == line:
            raise
        reader = csv.reader(
            [tidy_line], delimiter=separator, skipinitialspace=True, strict=True
        )
        return next(reader)


def _unquote(cell: str) -> str:
    """Take a pair of quotation marks off a cell; any other mark is text."""
    cell = cell.strip()
    if len(cell) > 1 and _QUOTED.fullmatch(cell):
        return cell[1:-1].replace('""', '"')
    return cell


def _cut_lines(
    lines: Sequence[str], line_index: Iterable[int], delimiter: str | None, n_cells: int
) -> list[TableRow]:
    """Cut lines at tabs or white space: one line, one row."""
    rows = []
    for i in line_index:
        line = lines[i]
        cells = line.split(delimiter)
        if '"' in line:
            cells = _cut_line_with_quotes(line, cells, delimiter, n_cells)
        rows.append(TableRow(i + 1, cells))
    return rows


def _cut_line_with_quotes(
    line: str, plain_cells: list[str], delimiter: str | None, n_cells: int
) -> list[str]:
    """Choose the reading of a line that has as many cells as the header.

    Between tabs a quotation mark is text first; between blanks it first encloses names
    with blanks, as R writes them.
    """
    try:
        quoted_cells = _parse_quoted(line, delimiter)
    except csv.Error:
        quoted_cells = plain_cells
    unquoted_cells = [_unquote(cell) for cell in plain_cells]
    readings = [unquoted_cells, quoted_cells]
    if not delimiter:
        readings.reverse()
    # R writes names of rows without a head.
    for width in (n_cells, n_cells + 1):
        for cells in readings:
            if len(cells) == width:
                return cells
    return unquoted_cells


def _cut_quoted_lines(
    path: str | Path,
    lines: Sequence[str],
    line_index: Sequence[int],
    delimiter: str,
    n_cells: int,
    delimiter_pattern: str,
) -> list[TableRow]:
    """Cut lines at commas or semicolons; cells in quotes may hold line breaks.

    `delimiter_pattern` matches a delimiter, but not a comma in a sentence.
    """
    rows = []
    next_index = -1
    for i in line_index:
        if i < next_index:
            # The line is inside a cell of several lines.
            continue
        line = lines[i]
        if '"' not in line:
            rows.append(TableRow(i + 1, line.split(delimiter)))
            continue
        try:
            cells = _parse_quoted(line, delimiter)
        except csv.Error:
            cells, n_lines = _parse_lines(path, lines, i, delimiter)
            next_index = i + n_lines
            _refuse_swallowed_rows(
                path, i + 1, next_index, cells, delimiter_pattern, n_cells
            )
            cells = [" ".join(cell.split("\n")) for cell in cells]
        rows.append(TableRow(i + 1, cells))
    return rows


def _parse_lines(
    path: str | Path, lines: Sequence[str], start: int, delimiter: str
) -> tuple[list[str], int]:
    """Return the cells of a row of several lines, and how many lines it takes."""
    remaining_lines = (f"{lines[i]}\n" for i in range(start, len(lines)))
    reader = csv.reader(
        remaining_lines, delimiter=delimiter, skipinitialspace=True, strict=True
    )
    try:
        return next(reader), reader.line_num
    except csv.Error as error:
        raise FileFormatError(
            f'line {start + 1} has a quotation mark (") that opens a cell and '
            f"does not close it; read on to line {start + reader.line_num}. Delete the "
            "mark, or write it twice inside a cell in quotation marks.",
            path=path,
            kind="open quotation mark",
            values={"line": start + 1},
        ) from error


def _refuse_swallowed_rows(
    path: str | Path,
    first_line: int,
    last_line: int,
    cells: Sequence[str],
    delimiter_pattern: str,
    n_cells: int,
) -> None:
    """Raise where lines inside a quoted cell could as well be rows of the table."""
    for column, cell in enumerate(cells):
        cell_lines = cell.split("\n")
        if len(cell_lines) == 1:
            continue
        n_delimiters = [len(re.findall(delimiter_pattern, line)) for line in cell_lines]
        n_after = n_cells - 1 - column
        has_row_inside = n_cells - 1 in n_delimiters[1:-1]
        has_rows_at_ends = n_delimiters[0] == n_after and n_delimiters[-1] == column
        if has_row_inside or has_rows_at_ends:
            raise FileFormatError(
                f'a quotation mark (") in line {first_line} opens a cell that '
                f"goes on to line {last_line}, over lines that look like rows of the "
                "table. Delete a stray mark; write a cell of text in one line.",
                path=path,
                kind="open quotation mark",
                values={"line": first_line},
            )


def _match_widths(
    path: str | Path,
    header: TableRow,
    rows: Sequence[TableRow],
    lines: Sequence[str],
    delimiter: str | None,
    score_header: HeaderScore,
) -> TableRow:
    """Return the header, with an unnamed first column if R left its head out.

    Raises FileFormatError if rows have another number of cells than the header.
    """
    n_cells = len(header.cells)
    wrong_rows = [row for row in rows if len(row.cells) != n_cells]
    if not wrong_rows:
        _refuse_undivided(path, header, rows)
        return header
    widths = {len(row.cells) for row in rows}
    if widths == {n_cells + 1} and n_cells > 1:
        if _are_row_names(header, rows, delimiter, score_header):
            return TableRow(header.line, ["", *header.cells])
        raise FileFormatError(
            f"every line below the header (line {header.line}) has "
            f"{n_cells + 1} cells, expected {n_cells}. Delete a title above the "
            "header, and delimiters at the ends of lines; write decimals with a point; "
            "name the first column where R wrote names of rows without a head.",
            path=path,
            kind="cells beyond the header",
            values={"line": header.line},
        )
    row = wrong_rows[0]
    earlier_lines = [earlier.line for earlier in rows if earlier.line < row.line]
    previous_line = lines[earlier_lines[-1] - 1] if earlier_lines else ""
    is_quote_open = previous_line.count('"') % 2 == 1
    advice = _explain_width(row, lines[row.line - 1], delimiter, n_cells, is_quote_open)
    if len(widths) == 1 and len(rows) > 1:
        advice = (
            f"Line {header.line} is taken for the header: delete a title above it. "
            f"{advice}"
        )
    n_wrong = len(wrong_rows)
    count = f" ({n_wrong} lines have another number)" if n_wrong > 1 else ""
    raise FileFormatError(
        f"line {row.line} has {_count_cells(row.cells)}, expected {n_cells} as "
        f"in the header (line {header.line}){count}. {advice}",
        path=path,
        kind="number of cells",
        values={"line": row.line},
    )


def _are_row_names(
    header: TableRow,
    rows: Sequence[TableRow],
    delimiter: str | None,
    score_header: HeaderScore,
) -> bool:
    """Return whether the first cells are R's names of rows, which have no head.

    A table that names its ids is only shifted if the first cells count the rows. A
    column of nothing at the end, or decimal commas, would have as many cells.
    """
    names = [_unquote(row.cells[0]) for row in rows]
    if len({*names}) < len(names) or not all(names):
        return False
    if not any(row.cells[-1].strip() for row in rows):
        return False
    # The header may stand below a title.
    if score_header(rows[0].cells) > 0:
        return False
    is_counted = names == [str(i) for i in range(1, len(names) + 1)]
    if delimiter == ",":
        columns = zip(*(row.cells for row in rows), strict=True)
        are_integers = [all(map(_INTEGER.fullmatch, column)) for column in columns]
        # Two columns of integers side by side may be one with decimal commas.
        pairs = pairwise(are_integers[is_counted:])
        if any(is_integer and is_next for is_integer, is_next in pairs):
            return False
    return is_counted or score_header(header.cells) == 0


def _count_cells(cells: Sequence[str]) -> str:
    return "1 cell" if len(cells) == 1 else f"{len(cells)} cells"


def _explain_width(
    row: TableRow, line: str, delimiter: str | None, n_cells: int, is_quote_open: bool
) -> str:
    """Say why a line may have another number of cells than the header."""
    if is_quote_open:
        return (
            'The line above opens a quotation mark (") that it does not close; delete '
            "the mark, and write a cell of several lines in one."
        )
    if line[:1] == "#":
        return "Only lines above the header count as comments; delete the line."
    other_delimiters = [mark for mark in (*DELIMITERS, None) if mark != delimiter]
    for row_delimiter in other_delimiters if len(row.cells) == 1 else ():
        if len(line.split(row_delimiter)) == n_cells > 1:
            return (
                f"The cells of line {row.line} are separated by "
                f"{_DELIMITER_NAMES[row_delimiter]}, those of the header by "
                f"{_DELIMITER_NAMES.get(delimiter, repr(delimiter))}; write one of "
                "them."
            )
    if '"' in line:
        return (
            'A quotation mark (") must be at both ends of a cell, or nowhere in it; a '
            "cell has no line break."
        )
    if len(row.cells) > n_cells and delimiter == ",":
        return (
            "A comma divides cells: write decimals with a point, thousands without a "
            "comma, and text that has a comma in quotation marks."
        )
    if len(row.cells) > n_cells and delimiter is None:
        return (
            "White space divides cells: write text that has blanks in quotation marks."
        )
    return "The file may be cut short; write n/a in a cell that has no value."


def _refuse_undivided(
    path: str | Path, header: TableRow, rows: Sequence[TableRow]
) -> None:
    """Raise where the header is one cell and all rows are divided by a delimiter."""
    if len(header.cells) > 1 or not rows:
        return
    for delimiter in DELIMITERS:
        counts = {row.cells[0].count(delimiter) for row in rows}
        # A comma with a blank after it belongs to a sentence.
        is_prose = any(f"{delimiter} " in row.cells[0] for row in rows)
        if len(counts) == 1 and counts != {0} and not is_prose:
            raise FileFormatError(
                f"the header (line {header.line}) is one cell, "
                f"{header.cells[0]!r}, but every line below has "
                f"{counts.pop() + 1} cells separated by "
                f"{_DELIMITER_NAMES[delimiter]}. Name every column.",
                path=path,
                kind="undivided header",
                values={"line": header.line},
            )


def _pad_cells(cells: list[str], width: int) -> list[str]:
    return cells + [""] * (width - len(cells))


def _count_filled(row: TableRow) -> int:
    return sum(map(bool, row.cells))


def _cell_text(value: object) -> str:
    """Return a cell of a sheet as text; 70.0 is 70, a day has no time."""
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        return value.isoformat().removesuffix("T00:00:00")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
