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

from brainlsap.exceptions import FileFormatError, convert_reading_errors
from brainlsap.text import count_text

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

HeaderScoreFunction = Callable[[Sequence[str]], int]


class TableRow(NamedTuple):
    """The cells of a row, and its line (from 1, as in editors)."""

    line_number: int
    cells: list[str]


class HeaderAndRows(NamedTuple):
    """The header of a table, the rows below it, and the lines that are comments."""

    header: TableRow
    rows: list[TableRow]
    comment_line_numbers: list[int]


def read_text(text_path: str | Path) -> str:
    """Return the text of a file, with line feeds at the ends of its lines."""
    with convert_reading_errors(text_path, "text"):
        file_bytes = Path(text_path).read_bytes()
        file_bytes = (
            gzip.decompress(file_bytes)
            if Path(text_path).suffix.lower() == ".gz"
            else file_bytes
        )
        try:
            file_text = file_bytes.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileFormatError(
                f"the file is not text in UTF-8 ({error}). Save the file as UTF-8 (in "
                "Excel: CSV UTF-8).",
                path=text_path,
                kind="not UTF-8",
            ) from error
        file_text = file_text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in file_text:
        line_number = file_text.count("\n", 0, file_text.index("\0")) + 1
        raise FileFormatError(
            f"the file is not a text file, because line {line_number} contains a null "
            "byte. The file may be damaged, or its text may be in UTF-16. Save the "
            "file as UTF-8.",
            path=text_path,
            kind="zero bytes",
            values={"line": line_number},
        )
    return file_text


def find_line_delimiter(text_line: str) -> str | None:
    """Return the delimiter of the cells of a line, None for white space."""
    # A name in quotes may have commas.
    unquoted_line = re.sub(r'"[^"]*"', "", text_line)
    return next(
        (delimiter for delimiter in DELIMITERS if delimiter in unquoted_line), None
    )


def split_line_cells(text_line: str, delimiter: str | None) -> list[str]:
    """Return the cells of a line without white space and quotes around them."""
    text_line = text_line if delimiter else " ".join(text_line.split())
    csv_reader = csv.reader(
        [text_line], delimiter=delimiter or " ", skipinitialspace=True
    )
    return [cell_text.strip() for cell_text in next(csv_reader)]


def read_header_and_rows(
    table_path: str | Path, score_header: HeaderScoreFunction
) -> HeaderAndRows:
    """Cut a text file into a header and rows of as many cells.

    `score_header` says how much the cells of a line look like column names; it
    decides whether a line that begins with `#` is the header.
    """
    text_lines = read_text(table_path).split("\n")
    line_indices = [
        i
        for i, text_line in enumerate(text_lines)
        if text_line and not text_line.isspace()
    ]
    first_line = text_lines[line_indices[0]] if line_indices else ""
    delimiter_match = _DELIMITER_LINE.fullmatch(first_line)
    if delimiter_match:
        line_indices = line_indices[1:]
    comment_line_indices = list(
        takewhile(lambda i: text_lines[i][0] == "#", line_indices)
    )
    line_indices = line_indices[len(comment_line_indices) :]
    comment_line_numbers = [i + 1 for i in comment_line_indices]
    if not line_indices:
        raise _make_empty_table_error(table_path, comment_line_numbers)
    first_line = text_lines[line_indices[0]]
    first_row_delimiter = _choose_delimiter(first_line)
    delimiter = delimiter_match[1] if delimiter_match else first_row_delimiter
    candidate_rows = [
        TableRow(
            i + 1,
            _split_column_names(text_lines[i].removeprefix("#").lstrip(" "), delimiter),
        )
        for i in comment_line_indices
        if delimiter_match or _may_have_delimiter(text_lines[i], delimiter)
    ]
    first_row = TableRow(
        line_indices[0] + 1, _split_column_names(first_line, delimiter)
    )
    header_row = choose_header_row(
        table_path, candidate_rows, first_row, score_header, delimiter is not None
    )
    if header_row is first_row:
        line_indices = line_indices[1:]
    n_cells = len(header_row.cells)
    if delimiter is None or delimiter == "\t":
        table_rows = _cut_plain_table_rows(text_lines, line_indices, delimiter, n_cells)
    else:
        delimiter_pattern = re.escape(delimiter)
        if f"{delimiter} " not in text_lines[header_row.line_number - 1]:
            # A comma with a blank after it belongs to a sentence.
            delimiter_pattern += "(?! )"
        table_rows = _cut_quoted_table_rows(
            table_path, text_lines, line_indices, delimiter, n_cells, delimiter_pattern
        )
    table_rows = [
        table_row for table_row in table_rows if any(map(str.strip, table_row.cells))
    ]
    header_row = _complete_header_row(
        table_path, header_row, table_rows, text_lines, delimiter, score_header
    )
    comment_line_numbers = [
        line_number
        for line_number in comment_line_numbers
        if line_number != header_row.line_number
    ]
    return HeaderAndRows(header_row, table_rows, comment_line_numbers)


def _choose_delimiter(text_line: str) -> str | None:
    """Return the delimiter of a table by its first line, None for white space."""
    delimiter = find_line_delimiter(text_line)
    if delimiter is None and len(text_line.split()) == 1:
        # A table of one column; its cells may have blanks.
        return "\t"
    return delimiter


def _may_have_delimiter(comment_text: str, delimiter: str | None) -> bool:
    """Return whether a comment could be a header with this delimiter."""
    comment_delimiter = find_line_delimiter(comment_text)
    if comment_delimiter is None and delimiter == "\t":
        return True
    return comment_delimiter == delimiter


def read_sheet_rows(table_path: str | Path, sheet_name: str = "") -> list[TableRow]:
    """Return the rows of a sheet of a workbook as text, without empty rows.

    Errors of formulas (`#N/A`, `#REF!`) stay as the sheet shows them.
    """
    table_rows = list[TableRow]()
    with (
        convert_reading_errors(table_path, "an Excel workbook"),
        pd.ExcelFile(table_path, engine="openpyxl") as workbook,
    ):
        openpyxl_workbook = workbook.book
        worksheet = (
            openpyxl_workbook[sheet_name]
            if sheet_name
            else openpyxl_workbook.worksheets[0]
        )
        # The dimensions that a file states may be wrong.
        worksheet.reset_dimensions()
        for line_number, cell_values in enumerate(
            worksheet.iter_rows(values_only=True), start=1
        ):
            row_cell_texts = [
                _sheet_cell_text(cell_value) for cell_value in cell_values
            ]
            if any(row_cell_texts):
                table_rows.append(TableRow(line_number, row_cell_texts))
    n_columns = max((len(table_row.cells) for table_row in table_rows), default=0)
    return [
        table_row._replace(cells=_pad_row_cells(table_row.cells, n_columns))
        for table_row in table_rows
    ]


def drop_title_rows(
    table_rows: list[TableRow], score_header: HeaderScoreFunction
) -> list[TableRow]:
    """Return rows without titles: rows of one filled cell above the column names."""
    n_title_rows = 0
    while (
        n_title_rows + 1 < len(table_rows)
        and _count_filled_cells(table_rows[n_title_rows])
        < 2
        <= _count_filled_cells(table_rows[n_title_rows + 1])
        and score_header(table_rows[n_title_rows].cells) == 0
    ):
        n_title_rows += 1
    return table_rows[n_title_rows:]


def read_sheet_header_and_rows(
    table_path: str | Path, sheet_name: str, score_header: HeaderScoreFunction
) -> HeaderAndRows:
    """Divide a sheet of a workbook into header, rows and comments."""
    table_rows = drop_title_rows(read_sheet_rows(table_path, sheet_name), score_header)
    comment_rows = list(
        takewhile(lambda table_row: table_row.cells[0][:1] == "#", table_rows)
    )
    table_rows = table_rows[len(comment_rows) :]
    comment_line_numbers = [table_row.line_number for table_row in comment_rows]
    if not table_rows:
        raise _make_empty_table_error(table_path, comment_line_numbers)
    candidate_rows = []
    for table_row in comment_rows:
        # A comment of one filled cell is a sentence.
        if _count_filled_cells(table_row) > 1:
            first_cell = table_row.cells[0].removeprefix("#").lstrip()
            candidate_rows.append(
                TableRow(table_row.line_number, [first_cell, *table_row.cells[1:]])
            )
    header_row = choose_header_row(
        table_path, candidate_rows, table_rows[0], score_header, True
    )
    if header_row is table_rows[0]:
        table_rows = table_rows[1:]
    comment_line_numbers = [
        line_number
        for line_number in comment_line_numbers
        if line_number != header_row.line_number
    ]
    return HeaderAndRows(header_row, table_rows, comment_line_numbers)


def choose_header_row(
    table_path: str | Path,
    candidate_rows: Sequence[TableRow],
    first_row: TableRow,
    score_header: HeaderScoreFunction,
    is_delimited: bool,
) -> TableRow:
    """Return the header: the first line without `#`, or a candidate with it.

    Raises FileFormatError if a candidate has as many cells as the first line without
    `#`, and neither looks more like a header.
    """
    first_row_score = score_header(first_row.cells)
    for table_row in reversed(candidate_rows):
        if len(table_row.cells) != len(first_row.cells):
            continue
        header_score = score_header(table_row.cells)
        if header_score > first_row_score:
            return table_row
        has_several_cells = is_delimited and len(first_row.cells) > 1
        if (
            header_score == first_row_score
            and has_several_cells
            and table_row.cells != first_row.cells
        ):
            raise FileFormatError(
                f"line {table_row.line_number} begins with # and has as many cells as "
                f"line {first_row.line_number}, so either line could be the header. "
                f"If line {table_row.line_number} is the header, delete the #. If "
                f"line {table_row.line_number} is a comment, delete it.",
                path=table_path,
                kind="two headers",
                values={"line": first_row.line_number},
            )
    return first_row


def _make_empty_table_error(
    table_path: str | Path, comment_line_numbers: Sequence[int]
) -> FileFormatError:
    """Return the error of a table without a header."""
    comment_hint = ""
    if comment_line_numbers:
        comment_hint = (
            f" {count_text(len(comment_line_numbers), 'line', 'begin')} with #, which "
            "marks comments."
        )
    return FileFormatError(
        f"the table is empty; expected a header line.{comment_hint}",
        path=table_path,
        kind="empty table",
    )


def _split_column_names(header_line: str, delimiter: str | None) -> list[str]:
    """Return the column names of a line; quotation marks that do not fit are text."""
    try:
        row_cell_texts = _parse_quoted_cells(header_line, delimiter)
    except csv.Error:
        row_cell_texts = [
            _unquote(cell_text) for cell_text in header_line.split(delimiter)
        ]
    return [cell_text.strip() for cell_text in row_cell_texts]


def _parse_quoted_cells(text_line: str, delimiter: str | None) -> list[str]:
    """Return the cells of one line by RFC 4180; else raise csv.Error."""
    if '"' not in text_line:
        return text_line.split(delimiter)
    text_line = text_line if delimiter else " ".join(text_line.split())
    separator = delimiter or " "
    try:
        csv_reader = csv.reader(
            [text_line], delimiter=separator, skipinitialspace=True, strict=True
        )
        return next(csv_reader)
    except csv.Error:
        tidy_line = _BLANK_AFTER_QUOTE.sub('"', text_line)
        if tidy_line == text_line:
            raise
        csv_reader = csv.reader(
            [tidy_line], delimiter=separator, skipinitialspace=True, strict=True
        )
        return next(csv_reader)


def _unquote(cell_text: str) -> str:
    """Take a pair of quotation marks off a cell; any other mark is text."""
    cell_text = cell_text.strip()
    if len(cell_text) > 1 and _QUOTED.fullmatch(cell_text):
        return cell_text[1:-1].replace('""', '"')
    return cell_text


def _cut_plain_table_rows(
    text_lines: Sequence[str],
    line_indices: Iterable[int],
    delimiter: str | None,
    n_cells: int,
) -> list[TableRow]:
    """Cut lines at tabs or white space: one line, one row."""
    table_rows = []
    for i in line_indices:
        text_line = text_lines[i]
        row_cell_texts = text_line.split(delimiter)
        if '"' in text_line:
            row_cell_texts = _cut_quoted_line_cells(
                text_line, row_cell_texts, delimiter, n_cells
            )
        table_rows.append(TableRow(i + 1, row_cell_texts))
    return table_rows


def _cut_quoted_line_cells(
    text_line: str, plain_cells: list[str], delimiter: str | None, n_cells: int
) -> list[str]:
    """Choose the reading of a line that has as many cells as the header.

    Between tabs a quotation mark is text first; between blanks it first encloses names
    with blanks, as R writes them.
    """
    try:
        quoted_cells = _parse_quoted_cells(text_line, delimiter)
    except csv.Error:
        quoted_cells = plain_cells
    unquoted_cells = [_unquote(cell_text) for cell_text in plain_cells]
    possible_cell_lists = [unquoted_cells, quoted_cells]
    if not delimiter:
        possible_cell_lists.reverse()
    # R writes names of rows without a name of their column.
    for n_expected_cells in (n_cells, n_cells + 1):
        for row_cells in possible_cell_lists:
            if len(row_cells) == n_expected_cells:
                return row_cells
    return unquoted_cells


def _cut_quoted_table_rows(
    table_path: str | Path,
    text_lines: Sequence[str],
    line_indices: Sequence[int],
    delimiter: str,
    n_cells: int,
    delimiter_pattern: str,
) -> list[TableRow]:
    """Cut lines at commas or semicolons; cells in quotes may hold line breaks.

    `delimiter_pattern` matches a delimiter, but not a comma in a sentence.
    """
    table_rows = []
    next_line_index = -1
    for i in line_indices:
        if i < next_line_index:
            # The line is inside a cell of several lines.
            continue
        text_line = text_lines[i]
        if '"' not in text_line:
            table_rows.append(TableRow(i + 1, text_line.split(delimiter)))
            continue
        try:
            row_cell_texts = _parse_quoted_cells(text_line, delimiter)
        except csv.Error:
            row_cell_texts, n_lines = _parse_cells_and_n_lines(
                table_path, text_lines, i, delimiter
            )
            next_line_index = i + n_lines
            _refuse_swallowed_rows(
                table_path,
                i + 1,
                next_line_index,
                row_cell_texts,
                delimiter_pattern,
                n_cells,
            )
            row_cell_texts = [
                " ".join(cell_text.split("\n")) for cell_text in row_cell_texts
            ]
        table_rows.append(TableRow(i + 1, row_cell_texts))
    return table_rows


def _parse_cells_and_n_lines(
    table_path: str | Path,
    text_lines: Sequence[str],
    first_line_index: int,
    delimiter: str,
) -> tuple[list[str], int]:
    """Return the cells of a row of several lines, and how many lines it takes."""
    remaining_lines = (
        f"{text_lines[i]}\n" for i in range(first_line_index, len(text_lines))
    )
    csv_reader = csv.reader(
        remaining_lines, delimiter=delimiter, skipinitialspace=True, strict=True
    )
    try:
        return next(csv_reader), csv_reader.line_num
    except csv.Error as error:
        raise FileFormatError(
            f'line {first_line_index + 1} has a quotation mark (") that is not closed, '
            f"so its cell continues to line {first_line_index + csv_reader.line_num}. "
            "Delete the mark. If the mark belongs to the text, write the mark twice "
            "and put the cell in quotation marks.",
            path=table_path,
            kind="open quotation mark",
            values={"line": first_line_index + 1},
        ) from error


def _refuse_swallowed_rows(
    table_path: str | Path,
    first_line_number: int,
    last_line_number: int,
    row_cell_texts: Sequence[str],
    delimiter_pattern: str,
    n_cells: int,
) -> None:
    """Raise where lines inside a quoted cell could as well be rows of the table."""
    for column_index, cell_text in enumerate(row_cell_texts):
        cell_lines = cell_text.split("\n")
        if len(cell_lines) == 1:
            continue
        n_delimiters_by_line = [
            len(re.findall(delimiter_pattern, cell_line)) for cell_line in cell_lines
        ]
        n_delimiters_after = n_cells - 1 - column_index
        has_row_inside = n_cells - 1 in n_delimiters_by_line[1:-1]
        has_rows_at_ends = (
            n_delimiters_by_line[0] == n_delimiters_after
            and n_delimiters_by_line[-1] == column_index
        )
        if has_row_inside or has_rows_at_ends:
            raise FileFormatError(
                f'a quotation mark (") in line {first_line_number} begins a cell that '
                f"ends in line {last_line_number}, although the lines of this cell "
                "look like rows of the table. Delete a quotation mark that does not "
                "belong there, or write the text of the cell in one line.",
                path=table_path,
                kind="open quotation mark",
                values={"line": first_line_number},
            )


def _complete_header_row(
    table_path: str | Path,
    header_row: TableRow,
    table_rows: Sequence[TableRow],
    text_lines: Sequence[str],
    delimiter: str | None,
    score_header: HeaderScoreFunction,
) -> TableRow:
    """Return the header, with an unnamed first column if R left its name out.

    Raises FileFormatError if rows have another number of cells than the header.
    """
    n_cells = len(header_row.cells)
    wrong_rows = [
        table_row for table_row in table_rows if len(table_row.cells) != n_cells
    ]
    if not wrong_rows:
        _refuse_undivided_header(table_path, header_row, table_rows)
        return header_row
    distinct_cell_counts = {len(table_row.cells) for table_row in table_rows}
    if distinct_cell_counts == {n_cells + 1} and n_cells > 1:
        if _are_row_names(header_row, table_rows, delimiter, score_header):
            return TableRow(header_row.line_number, ["", *header_row.cells])
        raise FileFormatError(
            f"every line below the header (line {header_row.line_number}) has "
            f"{n_cells + 1} cells; expected {n_cells}. Delete any title above the "
            "header. Delete delimiters at the ends of lines. Write decimal points "
            "instead of decimal commas. If R wrote row names without a column name, "
            "name the first column.",
            path=table_path,
            kind="cells beyond the header",
            values={"line": header_row.line_number},
        )
    table_row = wrong_rows[0]
    earlier_line_numbers = [
        earlier_row.line_number
        for earlier_row in table_rows
        if earlier_row.line_number < table_row.line_number
    ]
    previous_line = (
        text_lines[earlier_line_numbers[-1] - 1] if earlier_line_numbers else ""
    )
    is_quote_open = previous_line.count('"') % 2 == 1
    advice = _cell_count_reason(
        table_row,
        text_lines[table_row.line_number - 1],
        delimiter,
        n_cells,
        is_quote_open,
    )
    if len(distinct_cell_counts) == 1 and len(table_rows) > 1:
        advice = (
            f"Line {header_row.line_number} was read as the header. If this line is a "
            f"title, delete the line. {advice}"
        )
    n_wrong_rows = len(wrong_rows)
    wrong_rows_text = (
        f"In total, {n_wrong_rows} lines have another number of cells than the header. "
        if n_wrong_rows > 1
        else ""
    )
    raise FileFormatError(
        f"line {table_row.line_number} has {_cell_count_text(table_row.cells)}; "
        f"expected {n_cells}, as in the header (line {header_row.line_number}). "
        f"{wrong_rows_text}{advice}",
        path=table_path,
        kind="number of cells",
        values={"line": table_row.line_number},
    )


def _are_row_names(
    header_row: TableRow,
    table_rows: Sequence[TableRow],
    delimiter: str | None,
    score_header: HeaderScoreFunction,
) -> bool:
    """Return whether the first cells are R's names of rows, whose column has no name.

    A table that names its ids is only shifted if the first cells count the rows. A
    column of nothing at the end, or decimal commas, would have as many cells.
    """
    first_cells = [_unquote(table_row.cells[0]) for table_row in table_rows]
    if len({*first_cells}) < len(first_cells) or not all(first_cells):
        return False
    if not any(table_row.cells[-1].strip() for table_row in table_rows):
        return False
    # The header may stand below a title.
    if score_header(table_rows[0].cells) > 0:
        return False
    are_numbered_from_1 = first_cells == [
        str(i) for i in range(1, len(first_cells) + 1)
    ]
    if delimiter == ",":
        cell_columns = zip(*(table_row.cells for table_row in table_rows), strict=True)
        integer_column_flags = [
            all(map(_INTEGER.fullmatch, column_cells)) for column_cells in cell_columns
        ]
        # Two columns of integers side by side may be one with decimal commas.
        integer_flag_pairs = pairwise(integer_column_flags[are_numbered_from_1:])
        if any(
            is_integer_column and is_next_integer_column
            for is_integer_column, is_next_integer_column in integer_flag_pairs
        ):
            return False
    return are_numbered_from_1 or score_header(header_row.cells) == 0


def _cell_count_text(row_cell_texts: Sequence[str]) -> str:
    return "1 cell" if len(row_cell_texts) == 1 else f"{len(row_cell_texts)} cells"


def _cell_count_reason(
    table_row: TableRow,
    text_line: str,
    delimiter: str | None,
    n_cells: int,
    is_quote_open: bool,
) -> str:
    """Return a possible reason for another number of cells than in the header."""
    if is_quote_open:
        return (
            'The line above opens a quotation mark (") that it does not close. '
            "Delete the mark, and write the text of each cell in one line."
        )
    if text_line[:1] == "#":
        return "Comments are allowed only above the header; delete this line."
    other_delimiters = [
        other_delimiter
        for other_delimiter in (*DELIMITERS, None)
        if other_delimiter != delimiter
    ]
    for row_delimiter in other_delimiters if len(table_row.cells) == 1 else ():
        if len(text_line.split(row_delimiter)) == n_cells > 1:
            return (
                f"The cells of line {table_row.line_number} are separated by "
                f"{_DELIMITER_NAMES[row_delimiter]}, but the cells of the header by "
                f"{_DELIMITER_NAMES.get(delimiter, repr(delimiter))}. Use the same "
                "separator in all lines."
            )
    if '"' in text_line:
        return (
            'Write quotation marks (") at both ends of a cell or not at all, and '
            "no line break in a cell."
        )
    if len(table_row.cells) > n_cells and delimiter == ",":
        return (
            "Commas separate cells. Write decimals with a point, thousands without "
            "a comma, and text that contains a comma in quotation marks."
        )
    if len(table_row.cells) > n_cells and delimiter is None:
        return (
            "White space separates cells. Write text that contains blanks in "
            "quotation marks."
        )
    return "The file may be incomplete. Write n/a in a cell without a value."


def _refuse_undivided_header(
    table_path: str | Path, header_row: TableRow, table_rows: Sequence[TableRow]
) -> None:
    """Raise where the header is one cell and all rows are divided by a delimiter."""
    if len(header_row.cells) > 1 or not table_rows:
        return
    for delimiter in DELIMITERS:
        distinct_delimiter_counts = {
            table_row.cells[0].count(delimiter) for table_row in table_rows
        }
        # A comma with a blank after it belongs to a sentence.
        is_prose = any(
            f"{delimiter} " in table_row.cells[0] for table_row in table_rows
        )
        if (
            len(distinct_delimiter_counts) == 1
            and distinct_delimiter_counts != {0}
            and not is_prose
        ):
            raise FileFormatError(
                f"the header (line {header_row.line_number}) consists of one cell, "
                f"{header_row.cells[0]!r}. However, every line below the header has "
                f"{distinct_delimiter_counts.pop() + 1} cells separated by "
                f"{_DELIMITER_NAMES[delimiter]}. Name every column in the header.",
                path=table_path,
                kind="undivided header",
                values={"line": header_row.line_number},
            )


def _pad_row_cells(row_cell_texts: list[str], n_cells: int) -> list[str]:
    return row_cell_texts + [""] * (n_cells - len(row_cell_texts))


def _count_filled_cells(table_row: TableRow) -> int:
    return sum(map(bool, table_row.cells))


def _sheet_cell_text(cell_value: object) -> str:
    """Return a cell of a sheet as text; 70.0 is 70, a day has no time."""
    if cell_value is None:
        return ""
    if isinstance(cell_value, dt.datetime):
        return cell_value.isoformat().removesuffix("T00:00:00")
    if isinstance(cell_value, float) and cell_value.is_integer():
        cell_value = int(cell_value)
    return str(cell_value).strip()
