"""Choose the columns of a table that name people and visits.

Column names alone do not decide: a column that only counts rows names nobody, and a
column of yes and no is a group, whatever its name. If two columns could name people,
none is chosen.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from brainlsap.data.covariates import (
    COVARIATES,
    are_compact_dates,
    find_covariate_kind,
)
from brainlsap.data.tables import (
    FREESURFER_HEAD,
    MISSING_CELLS,
    PEOPLE_COLUMNS,
    SESSION_COLUMNS,
    find_column_name,
    get_name_letters,
)
from brainlsap.text import join_with_commas, option_text

Cells = Sequence[str | None]

# Names of columns of scans, best first; `id` may name people or scans.
_SCAN_HEADS = ("scan", "scan_id", "image_id", "id")
# pandas, R and spreadsheets give such column names to a saved row index.
_INDEX_HEAD = re.compile(
    r"(|#|unnamed[:._ ]*\d+.*|x(\.\d+)?|v1|\.\.\.\d+|(level|index)([_ ]?\d+)?|n|obs|"
    r"rows?|row[_. ]?(names?|id|nr|no|num|number|index)|nr|no|num|number|lfd\W*nr|"
    r"count|counter|case)",
    re.IGNORECASE,
)
_NO_HEAD = re.compile(r"|unnamed[:._ ]*\d+.*|\.\.\.\d+", re.IGNORECASE)
# Words of column names such as "Subject Number", "src_subject_id", "PatientCode".
_PERSON_WORDS = (
    *("participant", "subject", "subj", "sub", "patient", "pat", "person", "proband"),
    *("probanden", "patienten", "individual", "volunteer", "sujet", "pt"),
)
_VISIT_WORDS = (
    *("session", "ses", "visit", "timepoint", "tp", "wave", "besuch", "visite"),
)
_ID_WORDS = (
    *("id", "ids", "nr", "no", "num", "number", "code", "key", "name", "label", "guid"),
    *("identifier", "src", "study", "mr", "redcap", "anon", "anonymized"),
)
# Words in column names whose values repeat, but do not name people.
_OTHER_WORDS = (
    *("site", "center", "centre", "hospital", "scanner", "device", "station", "serial"),
    *("manufacturer", "model", "protocol", "sequence", "version", "software", "batch"),
    *("family", "fam", "household", "twin", "pair", "mother", "father", "sibling"),
    *("date", "datum", "time", "day", "month", "year", "age", "sex", "gender", "group"),
    *("diagnosis", "dx", "label", "rater", "plate", "arm", "cohort", "phase"),
)
# Fewest people with several rows by which a column of visits is recognised.
_MIN_REPEATED_PEOPLE = 3
_YES_NO = (
    *("0", "1", "0.0", "1.0", "y", "n", "yes", "no", "t", "f", "true", "false", "j"),
    *("ja", "nein", "oui", "non", "si", "+", "-"),
)
_DATE_CELL = re.compile(
    r"(19|20)\d\d[-./]?\d\d[-./]?\d\d.*|\d{1,2}[-./]\d{1,2}[-./]\d+.*"
)
# A day written with signs between its parts, which no id has: 17.05.2021, 2021-05-17.
# With a hyphen the year has four digits, because ids are written as 01-02-03.
_DAY, _MONTH = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])"
_YEAR = r"(19|20)\d\d"
_FULL_DATE = re.compile(
    rf"({_YEAR}(?P<a>[-./]){_MONTH}(?P=a){_DAY}"
    rf"|({_DAY}(?P<b>[-./]){_MONTH}|{_MONTH}(?P<c>[-./]){_DAY})[-./]{_YEAR}"
    rf"|({_DAY}(?P<d>[./]){_MONTH}|{_MONTH}(?P<e>[./]){_DAY})[./]\d\d)"
    r"([T ]+\d\d?:\d\d.*)?"
)
_WHOLE_NUMBER = re.compile(r"(\d+)(\.0+)?")
# A person has at most this many scans.
_MAX_SCANS = 12
# A column of groups has at most this many values, each of at least so many scans.
_MAX_GROUPS = 5
_MIN_SCANS_PER_GROUP = 4
# Of columns of numbers, at most this many are proposed: others are measurements.
_MAX_NUMBER_COLUMNS = 3


class IdChoice(NamedTuple):
    """The column that names people or scans, or why none was chosen.

    column_name : None if none was chosen; no_choice_reason : then a sentence;
    candidate_names : names of columns that may be meant.
    """

    column_name: str | None
    no_choice_reason: str = ""
    candidate_names: tuple[str, ...] = ()


class UserColumns(NamedTuple):
    """Names of the columns of ids and of visits that the user chose, best first."""

    id_column_names: tuple[str, ...] = ()
    session_column_names: tuple[str, ...] = ()

    @classmethod
    def from_options(
        cls,
        id_column: str | Sequence[str] | None = None,
        session_column: str | Sequence[str] | None = None,
    ) -> "UserColumns":
        """Return the choice of one column name, several or none for ids and visits."""
        return cls(
            id_column_names=_to_column_names(id_column),
            session_column_names=_to_column_names(session_column),
        )


def _to_column_names(column_option: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return an option of one column name, several or none as a tuple."""
    return (
        (column_option,)
        if isinstance(column_option, str)
        else tuple(column_option or ())
    )


NO_CHOICE = UserColumns()


def find_user_column_name(
    column_names: Iterable[str], user_column_names: Sequence[str]
) -> str | None:
    """Return the name of the first chosen column: as written, else by its letters."""
    column_names = list(column_names)
    for user_column_name in user_column_names:
        if user_column_name in column_names:
            return user_column_name
    return find_column_name(column_names, user_column_names)


def find_session_column_name(column_names: Iterable[str]) -> str | None:
    """Return the name of the column of visits, None if there is none."""
    column_names = list(column_names)
    known_column_name = find_column_name(column_names, SESSION_COLUMNS)
    if known_column_name:
        return known_column_name
    return next(
        (
            column_name
            for column_name in column_names
            if _is_noun_name(column_name, _VISIT_WORDS)
        ),
        None,
    )


def find_likely_visit_column_name(
    participant_ids: Sequence[str], cells_by_column: Mapping[str, Cells]
) -> str | None:
    """Return the only column of unknown name that may number the rows of each person.

    Its values differ between the rows of a person, and most people have the most
    frequent value. None if there are several such columns, or few people with several
    rows, because a column may then differ by chance.
    """
    n_rows_by_person = Counter(participant_ids)
    n_repeated_people = sum(n_rows > 1 for n_rows in n_rows_by_person.values())
    if n_repeated_people < _MIN_REPEATED_PEOPLE:
        return None
    visit_column_names = list[str]()
    for column_name, column_cells in cells_by_column.items():
        if _is_known_kind(column_name) or not all(column_cells):
            continue
        row_keys = {*zip(participant_ids, column_cells, strict=True)}
        ((_, max_count),) = Counter(column_cells).most_common(1)
        if (
            len(row_keys) == len(participant_ids)
            and max_count > len(n_rows_by_person) / 2
        ):
            visit_column_names.append(column_name)
    return visit_column_names[0] if len(visit_column_names) == 1 else None


def find_person_column_names(column_names: Iterable[str]) -> list[str]:
    """Return the columns whose names are of people, best first."""
    column_names = list(column_names)
    name_by_letters = {
        get_name_letters(column_name): column_name
        for column_name in reversed(column_names)
    }
    known_names = [
        name_by_letters.get(get_name_letters(column_name))
        for column_name in PEOPLE_COLUMNS
    ]
    person_column_names = [
        column_name
        for column_name in column_names
        if _is_noun_name(column_name, _PERSON_WORDS)
    ]
    candidate_names = (*known_names, *person_column_names)
    return [
        *dict.fromkeys(
            column_name for column_name in candidate_names if column_name is not None
        )
    ]


def choose_id_column(cells_by_column: Mapping[str, Cells]) -> IdChoice:
    """Choose the column that names the people, or else the scans, of a table.

    Parameters
    ----------
    cells_by_column : mapping of str to sequence of str or None
        The cells of a table by column name.

    Returns
    -------
    IdChoice

    Examples
    --------
    >>> choose_id_column({"": ["0", "1"], "eid": ["1000017", "1000005"]}).column_name
    'eid'
    >>> choose_id_column({"": ["0", "1"], "age": ["70", "71"]}).no_choice_reason
    'the first column has no name, and its cells only number the rows'
    """
    first_column_name = next(iter(cells_by_column), "")
    if FREESURFER_HEAD.fullmatch(first_column_name):
        return IdChoice(first_column_name)
    person_choice = choose_person_column(cells_by_column)
    cells_by_column = {
        column_name: column_cells
        for column_name, column_cells in cells_by_column.items()
        if not are_dates(column_cells)
    }
    if person_choice.column_name is not None or person_choice.no_choice_reason:
        return person_choice
    name_by_letters = {
        get_name_letters(column_name): column_name for column_name in cells_by_column
    }
    scan_head_letters = [get_name_letters(column_name) for column_name in _SCAN_HEADS]
    scan_column_names = [
        name_by_letters[x] for x in scan_head_letters if x in name_by_letters
    ]
    if scan_column_names:
        return _choose_scan_column(cells_by_column, scan_column_names)
    return _choose_saved_index(cells_by_column)


def _choose_scan_column(
    cells_by_column: Mapping[str, Cells], scan_column_names: Sequence[str]
) -> IdChoice:
    """Choose among the columns whose names are of scans."""
    possible_column_names = _find_possible_column_names(cells_by_column)
    repeating_column_names = [
        column_name
        for column_name in scan_column_names
        if are_repeated_ids(cells_by_column[column_name])
    ]
    text_column_names = [
        column_name
        for column_name in scan_column_names
        if not are_row_numbers(cells_by_column[column_name])
    ]
    column_name = (repeating_column_names or text_column_names or scan_column_names)[0]
    rival_column_names = _find_group_column_names(cells_by_column)
    if are_consecutive_numbers(cells_by_column[column_name]):
        rival_column_names += possible_column_names
    elif not repeating_column_names:
        rival_column_names += _find_coarser_column_names(
            cells_by_column, column_name, possible_column_names
        )
    return _choose_column_without_rivals(column_name, rival_column_names)


def _choose_saved_index(cells_by_column: Mapping[str, Cells]) -> IdChoice:
    """Choose a saved row index as the ids if no column name names people or scans.

    Its cells must be text, or numbers as ids are; a column that counts rows names
    nobody.
    """
    possible_column_names = _find_possible_column_names(cells_by_column)
    number_column_names = [
        column_name
        for column_name in _find_number_column_names(cells_by_column)
        if column_name not in possible_column_names
    ]
    group_column_names = _find_group_column_names(cells_by_column)
    for column_name in _find_index_column_names(cells_by_column)[:1]:
        are_only_numbers = are_row_numbers(cells_by_column[column_name])
        if are_only_numbers:
            rival_column_names = [*group_column_names, *possible_column_names]
        else:
            rival_column_names = [
                *group_column_names,
                *_find_coarser_column_names(
                    cells_by_column, column_name, possible_column_names
                ),
            ]
        if are_only_numbers and (
            rival_column_names or not _have_one_width(cells_by_column[column_name])
        ):
            sentence_start = "the first column has no name, and its cells"
            if column_name:
                sentence_start = f"the cells of the column {column_name!r}"
            return IdChoice(
                None,
                f"{sentence_start} only number the rows",
                (*rival_column_names, *number_column_names),
            )
        if rival_column_names or not column_name or not are_only_numbers:
            return _choose_column_without_rivals(column_name, rival_column_names)
    no_choice_reason = "no column was recognised as the column of participant IDs"
    candidate_names = (
        *group_column_names,
        *possible_column_names,
        *number_column_names,
    )
    return IdChoice(None, no_choice_reason, candidate_names)


def _choose_column_without_rivals(
    column_name: str, rival_column_names: Sequence[str]
) -> IdChoice:
    """Choose a column unless others could name people, too."""
    if not rival_column_names:
        return IdChoice(column_name)
    no_choice_reason = (
        f"{column_name!r} and {join_with_commas(map(repr, rival_column_names), 5)} "
        "could all contain participant IDs"
    )
    return IdChoice(None, no_choice_reason, (column_name, *rival_column_names))


def _find_possible_column_names(cells_by_column: Mapping[str, Cells]) -> list[str]:
    """Return the columns of unknown names that could hold ids."""
    return [
        column_name
        for column_name in cells_by_column
        if _can_column_be_ids(column_name, cells_by_column)
    ]


def _find_number_column_names(cells_by_column: Mapping[str, Cells]) -> list[str]:
    """Return the first columns of unknown names with whole numbers that never repeat.

    They could be ids, but are no rivals of a column that is recognised.
    """
    number_column_names = [
        column_name
        for column_name, column_cells in cells_by_column.items()
        if not _is_known_kind(column_name)
        and len(column_cells) > 1
        and len({*column_cells}) == len(column_cells)
        and all(_WHOLE_NUMBER.fullmatch(cell_text or "") for cell_text in column_cells)
        and not are_compact_dates(column_name, column_cells)
    ]
    return number_column_names[:_MAX_NUMBER_COLUMNS]


def _find_group_column_names(cells_by_column: Mapping[str, Cells]) -> list[str]:
    """Return the column names of people, unless their cells are yes or no."""
    column_names = find_person_column_names(cells_by_column)
    return [
        column_name
        for column_name in column_names
        if not are_yes_no(cells_by_column[column_name])
    ]


def choose_person_column(cells_by_column: Mapping[str, Cells]) -> IdChoice:
    """Choose the column that names people, by its name and its cells.

    Neither a name nor a problem is returned if no column name says that its cells name
    people.
    """
    column_names = find_person_column_names(cells_by_column)
    session_column_name = find_session_column_name(cells_by_column)
    visit_cells = (
        None if session_column_name is None else cells_by_column[session_column_name]
    )
    group_column_names = [
        column_name
        for column_name in column_names
        if is_group_column(column_name, cells_by_column[column_name], visit_cells)
    ]
    person_column_names = [
        column_name
        for column_name in column_names
        if column_name not in group_column_names
        and not are_dates(cells_by_column[column_name])
    ]
    complete_column_names = [
        column_name
        for column_name in person_column_names
        if all(cells_by_column[column_name])
    ]
    person_column_names = complete_column_names or person_column_names
    if not person_column_names:
        return IdChoice(None)
    column_name = person_column_names[0]
    rival_column_names = list[str]()
    for candidate_name in person_column_names[1:]:
        candidate_cells = cells_by_column[candidate_name]
        if (
            not all(candidate_cells)
            or _are_nested(cells_by_column[column_name], candidate_cells)
            or not are_repeated_ids(candidate_cells)
        ):
            continue
        if _are_nested(
            candidate_cells, cells_by_column[column_name]
        ) and are_consecutive_numbers(cells_by_column[column_name]):
            column_name = candidate_name
            rival_column_names = []
        else:
            rival_column_names.append(candidate_name)
    if are_consecutive_numbers(cells_by_column[column_name]):
        possible_column_names = _find_possible_column_names(cells_by_column)
        rival_column_names += [
            rival_column_name
            for rival_column_name in possible_column_names
            if are_repeated_ids(cells_by_column[rival_column_name])
        ]
        rival_column_names += [
            rival_column_name
            for rival_column_name in group_column_names
            if not are_yes_no(cells_by_column[rival_column_name])
        ]
    return _choose_column_without_rivals(column_name, rival_column_names)


def id_column_sentence(column_name: str) -> str:
    """Return the sentence that names the column that ids were read from."""
    column_text = f"the column {column_name!r}" if column_name else "the first column"
    return (
        f"IDs were read from {column_text}; if this is not the ID, give "
        f"{option_text('id_column')}"
    )


def make_visit_column_advice(column_name: str) -> str:
    """Return the advice to name a column that may contain the visits."""
    return (
        f"If the column {column_name!r} contains the visits, name it with "
        f"{option_text('session_column', column_name)}"
    )


def is_index_column_name(column_name: str) -> bool:
    """Return whether programs give this column name to a saved row index."""
    return _INDEX_HEAD.fullmatch(column_name.strip()) is not None


def _find_index_column_names(cells_by_column: Mapping[str, Cells]) -> list[str]:
    """Return the columns that may be a saved row index.

    Only programs write such a name; or the first column has the name of an index.
    """
    first_column_name = next(iter(cells_by_column), "")
    column_names = [
        column_name
        for column_name in cells_by_column
        if _NO_HEAD.fullmatch(column_name)
    ]
    if (
        is_index_column_name(first_column_name)
        and first_column_name not in column_names
    ):
        column_names.append(first_column_name)
    return column_names


def find_saved_index_names(cells_by_column: Mapping[str, Cells]) -> list[str]:
    """Return the columns that are a saved row index: they only count rows."""
    column_names = _find_index_column_names(cells_by_column)
    return [
        column_name
        for column_name in column_names
        if are_row_numbers(cells_by_column[column_name])
    ]


def are_dates(column_cells: Cells) -> bool:
    """Return whether all known cells are dates.

    >>> are_dates(["17.05.2021", None]), are_dates(["20210517", "01-02-03"])
    (True, False)
    """
    known_cells = [cell_text for cell_text in column_cells if cell_text]
    return bool(known_cells) and all(map(_FULL_DATE.fullmatch, known_cells))


def are_row_numbers(column_cells: Cells) -> bool:
    """Return whether cells are different whole numbers and none is missing.

    Numbers with leading zeros (001) are text.
    """
    number_matches = [
        _WHOLE_NUMBER.fullmatch(cell_text or "") for cell_text in column_cells
    ]
    whole_number_texts = [
        number_match[1] for number_match in number_matches if number_match
    ]
    are_whole_numbers = len(whole_number_texts) == len(column_cells) > 0
    return (
        are_whole_numbers
        and len({*whole_number_texts}) == len(column_cells)
        and not _have_leading_zeros(whole_number_texts)
    )


def are_consecutive_numbers(column_cells: Cells) -> bool:
    """Return whether cells count from 0 or 1 without gaps, in any order."""
    if not are_row_numbers(column_cells):
        return False
    sorted_numbers = sorted(int(float(cell_text or "")) for cell_text in column_cells)
    return (
        sorted_numbers[0] in (0, 1)
        and sorted_numbers[-1] - sorted_numbers[0] == len(sorted_numbers) - 1
    )


def is_group_column(
    column_name: str, column_cells: Cells, visit_cells: Cells | None = None
) -> bool:
    """Return whether a column names groups of scans and not people.

    It does if all cells are yes or no. It also does if its name is a noun alone
    (`subject`) and it has a few values that come many times, unless visits tell these
    apart.
    """
    known_cells = [cell_text for cell_text in column_cells if cell_text is not None]
    n_values = len({*known_cells})
    if n_values == len(known_cells):
        return False
    if are_yes_no(column_cells) and not {*known_cells} <= {"0", "1", "0.0", "1.0"}:
        return True
    if visit_cells is not None:
        cell_visit_pairs = [*zip(column_cells, visit_cells, strict=True)]
        if len({*cell_visit_pairs}) == len(cell_visit_pairs):
            return False
    has_few_values = n_values <= _MAX_GROUPS
    has_few_values = (
        has_few_values and len(known_cells) >= _MIN_SCANS_PER_GROUP * n_values
    )
    name_words = _split_name_words(column_name)
    is_group_noun = len(name_words) == 1 and name_words[0] in _PERSON_WORDS
    return (has_few_values and is_group_noun) or are_yes_no(column_cells)


def are_repeated_ids(column_cells: Cells) -> bool:
    """Return whether values repeat as the ids of people do over their visits.

    They are text with digits; or whole numbers that are long or repeat regularly.
    """
    known_cells = [known_cell for known_cell in column_cells if known_cell]
    n_rows_by_cell = Counter(known_cells)
    n_values = len(n_rows_by_cell)
    n_table_rows = len(column_cells)
    max_count = max(n_rows_by_cell.values(), default=0)
    median_count = (
        sorted(n_rows_by_cell.values())[n_values // 2] if n_rows_by_cell else 0
    )
    # Sizes of groups differ more than numbers of visits.
    has_small_counts = 2 <= max_count <= min(_MAX_SCANS, max(5, 3 * median_count))
    if len(known_cells) < n_table_rows or not has_small_counts or n_values < 3:
        return False
    if not all(_WHOLE_NUMBER.fullmatch(cell_text) for cell_text in n_rows_by_cell):
        n_texts_with_digit = sum(
            any(map(str.isdigit, cell_text)) for cell_text in n_rows_by_cell
        )
        return n_values * 6 >= n_table_rows and n_texts_with_digit >= 0.8 * n_values
    mode_count, n_values_with_mode_count = Counter(n_rows_by_cell.values()).most_common(
        1
    )[0]
    has_regular_counts = (
        n_values >= 5 and mode_count > 1 and n_values_with_mode_count >= 0.8 * n_values
    )
    has_long_texts = (
        min(len(cell_text.removesuffix(".0")) for cell_text in n_rows_by_cell) >= 4
    )
    n_repeated_values = sum(value_count > 1 for value_count in n_rows_by_cell.values())
    return has_regular_counts or (
        has_long_texts and n_repeated_values >= 0.6 * n_values
    )


def are_likely_ids(column_cells: Cells) -> bool:
    """Return whether cells could be ids: words with a digit, and no measurements."""
    known_cells = [cell_text for cell_text in column_cells if cell_text]
    if len(known_cells) < len(column_cells) or len(known_cells) < 2:
        return False
    if any(
        " " in known_cell or "/" in known_cell or _DATE_CELL.fullmatch(known_cell)
        for known_cell in known_cells
    ):
        return False
    is_unique = len({*known_cells}) == len(known_cells)
    if all(_WHOLE_NUMBER.fullmatch(known_cell) for known_cell in known_cells):
        return (
            _have_one_width(known_cells) if is_unique else are_repeated_ids(known_cells)
        )
    if any(
        re.fullmatch(r"-?\d*[.,]\d+(e-?\d+)?", known_cell) for known_cell in known_cells
    ):
        return False
    n_cells_with_digit = sum(
        any(map(str.isdigit, known_cell)) for known_cell in known_cells
    )
    have_digits = n_cells_with_digit >= 0.8 * len(known_cells)
    return have_digits and (is_unique or are_repeated_ids(known_cells))


def exchanged_ids_text(
    participant_ids: Sequence[str],
    cells_by_column: Mapping[str, Cells],
    other_participant_ids: Sequence[str],
    other_cells_by_column: Mapping[str, Cells],
    id_column_names: tuple[str, str],
) -> str:
    """Return the contradiction if two tables give an id to different people, or "".

    If the ids that tables are joined by only count the rows of each table, another
    column that both tables have shows that the rows are of different people.

    Parameters
    ----------
    participant_ids, other_participant_ids : sequence of str
        The id of every row by which the tables are joined.
    cells_by_column, other_cells_by_column : mapping of str to sequence of str or None
        The cells of each table, with those of its column of ids.
    id_column_names : (str, str)
        The names of the columns of ids.

    Returns
    -------
    str
    """
    id_column_letters = [
        get_name_letters(column_name) for column_name in id_column_names
    ]
    name_by_letters = {
        get_name_letters(column_name): column_name
        for column_name in other_cells_by_column
    }
    for column_name, column_cells in cells_by_column.items():
        other_column_name = name_by_letters.get(get_name_letters(column_name))
        n_id_columns = id_column_letters.count(get_name_letters(column_name))
        if other_column_name is None or n_id_columns == 2:
            continue
        is_person_column = bool(find_person_column_names([column_name]))
        if n_id_columns == 0 and are_consecutive_numbers(column_cells):
            # If the ids only count rows, too, neither column is known to be right.
            if not (
                is_person_column
                and are_consecutive_numbers(cells_by_column[id_column_names[0]])
            ):
                continue
        elif n_id_columns == 0 and not are_likely_ids(column_cells):
            continue
        person_ids_by_cell: dict[str, set[str]] = {}
        for participant_id, cell_text in zip(
            participant_ids, column_cells, strict=True
        ):
            person_ids_by_cell.setdefault(cell_text or "", set()).add(participant_id)
        other_cells = other_cells_by_column[other_column_name]
        person_cell_pairs = zip(other_participant_ids, other_cells, strict=True)
        shared_cell_person_pairs = [
            (cell_text, participant_id)
            for participant_id, cell_text in person_cell_pairs
            if cell_text and cell_text in person_ids_by_cell
        ]
        conflicting_pairs = [
            cell_person_pair
            for cell_person_pair in shared_cell_person_pairs
            if cell_person_pair[1] not in person_ids_by_cell[cell_person_pair[0]]
        ]
        n_filled_cells = sum(cell_text is not None for cell_text in other_cells)
        is_id_column = n_id_columns > 0 or is_person_column
        # Columns of a measure may have a few values in common.
        shares_most_cells = 5 * len(shared_cell_person_pairs) >= 4 * n_filled_cells
        shares_most_cells = shares_most_cells and 5 * len(conflicting_pairs) >= len(
            shared_cell_person_pairs
        )
        if conflicting_pairs and (is_id_column or shares_most_cells):
            cell_text, participant_id = conflicting_pairs[0]
            owner_id = min(person_ids_by_cell[cell_text])
            return (
                "rows of the two tables are matched by the column "
                f"{id_column_names[0]!r}, but {column_name} {cell_text} belongs to "
                f"{owner_id!r} in one table and to {participant_id!r} in the other "
                f"({len(conflicting_pairs)} such rows). Name the column of participant "
                f"IDs with {option_text('id_column')}"
            )
    return ""


def to_table_cells(cell_values: Iterable[object]) -> list[str | None]:
    """Return values of any kind as the cells of a table, None where missing."""
    value_texts = [str(cell_value).strip() for cell_value in cell_values]
    missing_cells = MISSING_CELLS | {"<na>"}
    return [
        None if value_text.lower() in missing_cells else value_text
        for value_text in value_texts
    ]


def _split_name_words(column_name: str) -> list[str]:
    """Return the words of a column name (`src_subject_id`) in lower case."""
    name_words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", column_name)
    return [name_word.lower() for name_word in name_words]


def _is_noun_name(column_name: str, nouns: Sequence[str]) -> bool:
    """Return whether a column name is a noun, alone or with words such as id."""
    name_words = _split_name_words(column_name)
    if {*nouns} & {*name_words}:
        return {*name_words} <= {*nouns, *_ID_WORDS}
    # Two words may be written as one (`subjectkey`).
    compound_word = "".join(name_words)
    for noun in nouns:
        if (
            compound_word.startswith(noun)
            and compound_word.removeprefix(noun) in _ID_WORDS
        ):
            return True
    return False


def _is_known_kind(column_name: str) -> bool:
    """Return whether the name of a column says what its cells are."""
    return (
        not {*_split_name_words(column_name)}.isdisjoint(_OTHER_WORDS)
        or find_covariate_kind(column_name) in COVARIATES
        or is_index_column_name(column_name)
        or _is_noun_name(column_name, (*_PERSON_WORDS, *_VISIT_WORDS))
        or find_column_name([column_name], (*PEOPLE_COLUMNS, *_SCAN_HEADS)) is not None
        or find_column_name([column_name], SESSION_COLUMNS) is not None
    )


def _can_column_be_ids(column_name: str, cells_by_column: Mapping[str, Cells]) -> bool:
    """Return whether a column of unknown name could hold ids."""
    column_cells = cells_by_column[column_name]
    if (
        _is_known_kind(column_name)
        or not are_likely_ids(column_cells)
        or are_compact_dates(column_name, column_cells)
    ):
        return False
    # A person has one sex.
    sex_column_names = [
        other_column_name
        for other_column_name in cells_by_column
        if find_covariate_kind(other_column_name) == "sex"
    ]
    for sex_column_name in sex_column_names:
        sexes_by_cell: dict[str | None, set[str | None]] = {}
        for cell_text, sex_cell in zip(
            column_cells, cells_by_column[sex_column_name], strict=True
        ):
            sexes_by_cell.setdefault(cell_text, set()).add(sex_cell)
        n_contradictions = sum(
            len(sexes_with_cell) > 1 for sexes_with_cell in sexes_by_cell.values()
        )
        if n_contradictions > 0.1 * len(sexes_by_cell):
            return False
    return True


def _are_nested(coarse_cells: Cells, fine_cells: Cells) -> bool:
    """Return whether every value of the finer column has one value of the coarser."""
    return len({*zip(coarse_cells, fine_cells, strict=True)}) == len({*fine_cells})


def _find_coarser_column_names(
    cells_by_column: Mapping[str, Cells],
    column_name: str,
    candidate_names: Iterable[str],
) -> list[str]:
    """Return the candidates that repeat as ids and group the values of a column."""
    column_cells = cells_by_column[column_name]
    return [
        candidate_name
        for candidate_name in candidate_names
        if are_repeated_ids(cells_by_column[candidate_name])
        and _are_nested(cells_by_column[candidate_name], column_cells)
        and not _are_nested(column_cells, cells_by_column[candidate_name])
    ]


def are_yes_no(column_cells: Cells) -> bool:
    """Return whether every cell is a word for yes or no, 0 or 1, or missing."""
    return {(cell_text or "no").lower() for cell_text in column_cells} <= {*_YES_NO}


def _have_leading_zeros(number_texts: Iterable[str]) -> bool:
    """Return whether a number has leading zeros."""
    return any(
        len(number_text) > 1 and number_text[0] == "0" for number_text in number_texts
    )


def _have_one_width(column_cells: Iterable[str | None]) -> bool:
    """Return whether numbers, as ids but not counts, all have as many digits (5 on)."""
    digit_counts = {
        len((cell_text or "").removesuffix(".0")) for cell_text in column_cells
    }
    return len(digit_counts) == 1 and min(digit_counts) >= 5
