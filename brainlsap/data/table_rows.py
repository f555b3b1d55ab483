"""Cut the text of a table, or a sheet of a workbook, into rows of cells.

Every line below the header becomes a row, or the table is refused with the number of
the line: no row is dropped because of a stray quotation mark or a `#`. Leading lines
that begin with `#` are comments, unless one of them is the header (`#participant_id`).
Empty rows are skipped, as spreadsheets write them below the last row.

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
from itertools import pairwise
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
# Excel reads the delimiter from such a first line.
_DELIMITER_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_INTEGER = re.compile(r"\s*-?\d+\s*")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_BLANK_AFTER_QUOTE = re.compile(r'"[ \t]+(?=[,;]|$)')

HeaderScore = Callable[[Sequence[str]], int]


class TableRow(NamedTuple):
    """The cells of a row, and its line: counted from 1, as editors count lines."""

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
                f"is no text in UTF-8 ({error}). Save a table as that (in "
                "Excel: CSV UTF-8).",
                path=path,
            ) from error
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FileFormatError(
            f"not a text file (it holds zero bytes, the first in line {line}). "
            "The file may be damaged, or text in UTF-16; save it as UTF-8.",
            path=path,
        )
    return text


def sniff_delimiter(line: str) -> str | None:
    """Return what separates the cells of a line, None for white space."""
    bare = re.sub(r'"[^"]*"', "", line)  # a name in quotes may have commas
    return next((one for one in DELIMITERS if one in bare), None)


def split_cells(line: str, delimiter: str | None) -> list[str]:
    """Return the cells of a line without white space and quotes around them."""
    line = line if delimiter else " ".join(line.split())
    cut = csv.reader([line], delimiter=delimiter or " ", skipinitialspace=True)
    return [cell.strip() for cell in next(cut)]


def read_table_text(path: str | Path, score_header: HeaderScore) -> TableText:
    """Cut a text file into a header and rows of as many cells.

    `score_header` says how much the cells of a line look like heads of columns; it
    decides whether a line that begins with `#` is the header.
    """
    lines = read_text(path).split("\n")
    filled = [i for i, line in enumerate(lines) if line and not line.isspace()]
    delimiter = None
    marked = _DELIMITER_LINE.fullmatch(lines[filled[0]]) if filled else None
    if marked:
        delimiter = marked[1]
        filled = filled[1:]
    n_comments = 0
    while n_comments < len(filled) and lines[filled[n_comments]][0] == "#":
        n_comments += 1
    comments = filled[:n_comments]
    filled = filled[n_comments:]
    comment_lines = [i + 1 for i in comments]
    if not filled:
        raise _empty_table(path, comment_lines)
    first = lines[filled[0]]
    if not marked:
        delimiter = sniff_delimiter(first)
        if len(first.split()) == 1:
            delimiter = delimiter or "\t"  # one column, whose cells may have blanks
    is_quoting = delimiter not in ("\t", None)
    candidates = []
    for i in comments:
        own = delimiter if marked else sniff_delimiter(lines[i])
        if own is None and delimiter == "\t":
            own = "\t"
        if own == delimiter:
            cells = _split_header(lines[i].removeprefix("#").lstrip(" "), delimiter)
            candidates.append(TableRow(i + 1, cells))
    top = TableRow(filled[0] + 1, _split_header(first, delimiter))
    header = choose_header(path, candidates, top, score_header, delimiter is not None)
    rest = filled if header is not top else filled[1:]
    if is_quoting and delimiter is not None:
        line = lines[header.line - 1]
        is_prose = f"{delimiter} " not in line  # what has a blank after a comma
        comma = re.escape(delimiter) + "(?! )" * is_prose
        rows = _cut_quoted(path, lines, rest, delimiter, len(header.cells), comma)
    else:
        rows = _cut_lines(lines, rest, delimiter, len(header.cells))
    rows = [row for row in rows if any(map(str.strip, row.cells))]
    header = _match_widths(path, header, rows, lines, delimiter, score_header)
    comment_lines = [line for line in comment_lines if line != header.line]
    return TableText(header, rows, comment_lines)


def read_sheet_rows(path: str | Path, sheet: str = "") -> list[TableRow]:
    """Return the rows of a sheet of a workbook as text, without empty rows.

    Errors of formulas (`#N/A`, `#REF!`) stay as the sheet shows them.
    """
    rows = list[TableRow]()
    with (
        reading(path, "an Excel workbook"),
        pd.ExcelFile(path, engine="openpyxl") as workbook,
    ):
        book = workbook.book
        page = book[sheet] if sheet else book.worksheets[0]
        page.reset_dimensions()  # those that the file states may be wrong
        for line, values in enumerate(page.iter_rows(values_only=True), start=1):
            cells = [_cell_text(value) for value in values]
            if any(cells):
                rows.append(TableRow(line, cells))
    width = max((len(row.cells) for row in rows), default=0)
    return [row._replace(cells=_pad(row.cells, width)) for row in rows]


def drop_titles(rows: list[TableRow], score_header: HeaderScore) -> list[TableRow]:
    """Return rows without titles: rows of one filled cell above the heads."""
    first = 0
    while (
        first + 1 < len(rows)
        and _count_filled(rows[first]) < 2 <= _count_filled(rows[first + 1])
        and score_header(rows[first].cells) == 0
    ):
        first += 1
    return rows[first:]


def read_sheet_text(
    path: str | Path, sheet: str, score_header: HeaderScore
) -> TableText:
    """Divide a sheet of a workbook into header, rows and comments."""
    rows = drop_titles(read_sheet_rows(path, sheet), score_header)
    n_comments = 0
    while n_comments < len(rows) and rows[n_comments].cells[0][:1] == "#":
        n_comments += 1
    comments = rows[:n_comments]
    comment_lines = [row.line for row in comments]
    rows = rows[n_comments:]
    if not rows:
        raise _empty_table(path, comment_lines)
    candidates = []
    for row in comments:
        if _count_filled(row) > 1:  # a comment is one long cell
            first = row.cells[0].removeprefix("#").lstrip()
            candidates.append(TableRow(row.line, [first, *row.cells[1:]]))
    header = choose_header(path, candidates, rows[0], score_header, True)
    rows = rows if header is not rows[0] else rows[1:]
    comment_lines = [line for line in comment_lines if line != header.line]
    return TableText(header, rows, comment_lines)


def choose_header(
    path: str | Path,
    candidates: Sequence[TableRow],
    first: TableRow,
    score_header: HeaderScore,
    is_delimited: bool,
) -> TableRow:
    """Return which line is the header: the first without `#`, or one with it.

    Raises FileFormatError where a line with `#` has as many cells as the first without,
    and neither looks more like a header.
    """
    candidates = [row for row in candidates if len(row.cells) == len(first.cells)]
    score = score_header(first.cells)
    for row in reversed(candidates):
        own = score_header(row.cells)
        if own > score:
            return row
        is_table = is_delimited and len(first.cells) > 1 and row.cells != first.cells
        if own == score and is_table:
            raise FileFormatError(
                f"line {row.line} begins with # and has as many cells as line "
                f"{first.line}, so either could be the header. Take the # away where "
                f"line {row.line} is the header; delete the line where it is a "
                "comment.",
                path=path,
            )
    return first


def _empty_table(path: str | Path, comment_lines: Sequence[int]) -> FileFormatError:
    more = ""
    if comment_lines:
        more = f" {len(comment_lines)} lines begin with # and count as comments."
    return FileFormatError(
        f"the table is empty; expected a header line.{more}", path=path
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
    mark = delimiter or " "
    try:
        cut = csv.reader([line], delimiter=mark, skipinitialspace=True, strict=True)
        return next(cut)
    except csv.Error:
        tidy = _BLANK_AFTER_QUOTE.sub('"', line)
        if tidy == line:
            raise
        cut = csv.reader([tidy], delimiter=mark, skipinitialspace=True, strict=True)
        return next(cut)


def _unquote(cell: str) -> str:
    """Take a pair of quotation marks off a cell; any other mark is text."""
    cell = cell.strip()
    if len(cell) > 1 and _QUOTED.fullmatch(cell):
        return cell[1:-1].replace('""', '"')
    return cell


def _cut_lines(
    lines: Sequence[str], places: Iterable[int], delimiter: str | None, n_cells: int
) -> list[TableRow]:
    """Cut lines at tabs or white space: one line, one row."""
    rows = []
    for i in places:
        line = lines[i]
        cells = line.split(delimiter)
        if '"' in line:
            cells = _cut_line_with_quotes(line, cells, delimiter, n_cells)
        rows.append(TableRow(i + 1, cells))
    return rows


def _cut_line_with_quotes(
    line: str, plain: list[str], delimiter: str | None, n_cells: int
) -> list[str]:
    """Choose the reading of a line that has as many cells as the header.

    Between tabs a quotation mark is text first; between blanks it first encloses names
    with blanks, as R writes them.
    """
    try:
        quoted = _parse_quoted(line, delimiter)
    except csv.Error:
        quoted = plain
    unquoted = [_unquote(cell) for cell in plain]
    readings = [unquoted, quoted] if delimiter else [quoted, unquoted]
    for width in (n_cells, n_cells + 1):  # R names no column of row names
        for cells in readings:
            if len(cells) == width:
                return cells
    return unquoted


def _cut_quoted(
    path: str | Path,
    lines: Sequence[str],
    places: Sequence[int],
    delimiter: str,
    n_cells: int,
    comma: str,
) -> list[TableRow]:
    """Cut lines at commas or semicolons; cells in quotes may hold line breaks.

    `comma` is the pattern of a delimiter that is no comma of a sentence.
    """
    rows, end = [], -1
    for i in places:
        if i < end:  # inside a cell of several lines
            continue
        line = lines[i]
        if '"' not in line:
            rows.append(TableRow(i + 1, line.split(delimiter)))
            continue
        try:
            cells = _parse_quoted(line, delimiter)
        except csv.Error:
            cells, n_lines = _parse_lines(path, lines, i, delimiter)
            end = i + n_lines
            _refuse_swallowed_rows(path, i + 1, end, cells, comma, n_cells)
            cells = [" ".join(cell.split("\n")) for cell in cells]
        rows.append(TableRow(i + 1, cells))
    return rows


def _parse_lines(
    path: str | Path, lines: Sequence[str], start: int, delimiter: str
) -> tuple[list[str], int]:
    """Return the cells of a row of several lines, and how many lines it takes."""
    below = (f"{lines[i]}\n" for i in range(start, len(lines)))
    record = csv.reader(below, delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        return next(record), record.line_num
    except csv.Error as error:
        raise FileFormatError(
            f'line {start + 1} has a quotation mark (") that opens a cell and '
            f"does not close it; read on to line {start + record.line_num}. Delete the "
            "mark, or write it twice inside a cell in quotation marks.",
            path=path,
        ) from error


def _refuse_swallowed_rows(
    path: str | Path,
    first_line: int,
    last_line: int,
    cells: Sequence[str],
    comma: str,
    n_cells: int,
) -> None:
    """Raise where lines inside a quoted cell could as well be rows of the table."""
    for place, cell in enumerate(cells):
        parts = cell.split("\n")
        if len(parts) == 1:
            continue
        n_marks = [len(re.findall(comma, part)) for part in parts]
        is_row = n_cells - 1 in n_marks[1:-1]
        rest = n_cells - 1 - place
        is_row |= n_marks[0] == rest and n_marks[-1] == place
        if is_row:
            raise FileFormatError(
                f'a quotation mark (") in line {first_line} opens a cell that '
                f"goes on to line {last_line}, over lines that look like rows of the "
                "table. Delete a stray mark; write a cell of text in one line.",
                path=path,
            )


def _match_widths(
    path: str | Path,
    header: TableRow,
    rows: Sequence[TableRow],
    lines: Sequence[str],
    delimiter: str | None,
    score_header: HeaderScore,
) -> TableRow:
    """Return the header, with an unnamed first column where R left its head out.

    Raises FileFormatError where rows have other numbers of cells than the header.
    """
    n_cells = len(header.cells)
    wrong = [row for row in rows if len(row.cells) != n_cells]
    if not wrong:
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
        )
    row = wrong[0]
    more = f" ({len(wrong)} lines have another number)" if len(wrong) > 1 else ""
    above = [lines[one.line - 1] for one in rows if one.line < row.line][-1:]
    is_open = any(line.count('"') % 2 for line in above)  # in the line above
    hint = _explain_width(row, lines[row.line - 1], delimiter, n_cells, is_open)
    if len(widths) == 1 and len(rows) > 1:
        hint = (
            f"Line {header.line} is taken for the header: delete a title above it. "
            f"{hint}"
        )
    raise FileFormatError(
        f"line {row.line} has {_count_cells(row.cells)}, expected {n_cells} as "
        f"in the header (line {header.line}){more}. {hint}",
        path=path,
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
    if score_header(rows[0].cells) > 0:  # the header stands below a title
        return False
    is_counted = names == [str(i) for i in range(1, len(names) + 1)]
    if delimiter == ",":
        columns = zip(*(row.cells for row in rows), strict=True)
        whole = [all(map(_INTEGER.fullmatch, column)) for column in columns]
        if any(left and right for left, right in pairwise(whole[is_counted:])):
            return False
    return is_counted or score_header(header.cells) == 0


def _count_cells(cells: Sequence[str]) -> str:
    return "1 cell" if len(cells) == 1 else f"{len(cells)} cells"


def _explain_width(
    row: TableRow, line: str, delimiter: str | None, n_cells: int, is_open: bool
) -> str:
    """Say why a line may have another number of cells than the header."""
    if is_open:
        return (
            'The line above opens a quotation mark (") that it does not close; delete '
            "the mark, and write a cell of several lines in one."
        )
    if line[:1] == "#":
        return "Only lines above the header count as comments; delete the line."
    for other in (*DELIMITERS, None) if len(row.cells) == 1 else ():
        if other != delimiter and len(line.split(other)) == n_cells > 1:
            return (
                f"The cells of line {row.line} are separated by "
                f"{_DELIMITER_NAMES[other]}, those of the header by "
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
        is_prose = any(f"{delimiter} " in row.cells[0] for row in rows)
        if len(counts) == 1 and counts != {0} and not is_prose:
            raise FileFormatError(
                f"the header (line {header.line}) is one cell, "
                f"{header.cells[0]!r}, but every line below has "
                f"{counts.pop() + 1} cells separated by "
                f"{_DELIMITER_NAMES[delimiter]}. Name every column.",
                path=path,
            )


def _pad(cells: list[str], width: int) -> list[str]:
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
