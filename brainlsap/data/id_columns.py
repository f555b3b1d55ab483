"""Choose the columns of a table that name people and visits.

Heads alone do not decide: a column that only counts rows names nobody, and a column of
yes and no is a group, whatever its head. If two columns could name people, none is
chosen.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from brainlsap.data.covariates import COVARIATES, kind_of
from brainlsap.data.tables import (
    FREESURFER_HEAD,
    MISSING_CELLS,
    PEOPLE_COLUMNS,
    SESSION_COLUMNS,
    find_head,
    letters_of,
)
from brainlsap.text import listed, option_text

Cells = Sequence[str | None]

# Heads of columns that name scans, best first; `id` may name people or scans.
_SCAN_HEADS = ("scan", "scan_id", "image_id", "id")
# pandas, R and spreadsheets give such heads to a saved row index.
_INDEX_HEAD = re.compile(
    r"(|#|unnamed[:._ ]*\d+.*|x(\.\d+)?|v1|\.\.\.\d+|(level|index)([_ ]?\d+)?|n|obs|"
    r"rows?|row[_. ]?(names?|id|nr|no|num|number|index)|nr|no|num|number|lfd\W*nr|"
    r"count|counter|case)",
    re.IGNORECASE,
)
_NO_HEAD = re.compile(r"|unnamed[:._ ]*\d+.*|\.\.\.\d+", re.IGNORECASE)
# Words of heads such as "Subject Number", "src_subject_id", "PatientCode".
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
# Words in heads of columns whose values repeat, but do not name people.
_OTHER_WORDS = (
    *("site", "center", "centre", "hospital", "scanner", "device", "station", "serial"),
    *("manufacturer", "model", "protocol", "sequence", "version", "software", "batch"),
    *("family", "fam", "household", "twin", "pair", "mother", "father", "sibling"),
    *("date", "datum", "time", "day", "month", "year", "age", "sex", "gender", "group"),
    *("diagnosis", "dx", "label", "rater", "plate", "arm", "cohort", "phase"),
)
_YES_NO = (
    *("0", "1", "0.0", "1.0", "y", "n", "yes", "no", "t", "f", "true", "false", "j"),
    *("ja", "nein", "oui", "non", "si", "+", "-"),
)
_DATE_CELL = re.compile(
    r"(19|20)\d\d[-./]?\d\d[-./]?\d\d.*|\d{1,2}[-./]\d{1,2}[-./]\d+.*"
)
_WHOLE_NUMBER = re.compile(r"(\d+)(\.0+)?")
# A person has at most this many scans.
_MAX_SCANS = 12
# A column of groups has at most this many values, each of at least so many scans.
_MAX_GROUPS = 5
_MIN_SCANS_PER_GROUP = 4


class IdChoice(NamedTuple):
    """The column that names people or scans, or why none was chosen.

    head : None if none was chosen; problem : then a sentence; candidates : heads of
    columns that may be meant.
    """

    head: str | None
    problem: str = ""
    candidates: tuple[str, ...] = ()


class ChosenColumns(NamedTuple):
    """Heads of the columns of ids and of visits that the user chose, best first."""

    id: tuple[str, ...] = ()
    session: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        id_column: str | Sequence[str] | None = None,
        session_column: str | Sequence[str] | None = None,
    ) -> "ChosenColumns":
        """Return the choice of one head, several or none for ids and visits."""
        return cls(id=_to_heads(id_column), session=_to_heads(session_column))


def _to_heads(option: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return an option of one head, several or none as a tuple."""
    return (option,) if isinstance(option, str) else tuple(option or ())


NO_CHOICE = ChosenColumns()


def find_chosen(heads: Iterable[str], candidates: Sequence[str]) -> str | None:
    """Return the head of the first chosen column: as written, else by its letters."""
    heads = list(heads)
    for candidate in candidates:
        if candidate in heads:
            return candidate
    return find_head(heads, candidates)


def find_session_column(heads: Iterable[str]) -> str | None:
    """Return the head of the column of visits, None if there is none."""
    heads = list(heads)
    known_head = find_head(heads, SESSION_COLUMNS)
    if known_head:
        return known_head
    return next((head for head in heads if _names_noun(head, _VISIT_WORDS)), None)


def find_person_columns(heads: Iterable[str]) -> list[str]:
    """Return all heads of columns that, by their heads, name people, best first."""
    heads = list(heads)
    head_of_letters = {letters_of(head): head for head in reversed(heads)}
    known_heads = [head_of_letters.get(letters_of(head)) for head in PEOPLE_COLUMNS]
    person_heads = [head for head in heads if _names_noun(head, _PERSON_WORDS)]
    candidates = (*known_heads, *person_heads)
    return [*dict.fromkeys(head for head in candidates if head is not None)]


def choose_id_column(columns: Mapping[str, Cells]) -> IdChoice:
    """Choose the column that names the people, or else the scans, of a table.

    Parameters
    ----------
    columns : mapping of str to sequence of str or None
        The cells of a table by the heads of columns.

    Returns
    -------
    IdChoice

    Examples
    --------
    >>> choose_id_column({"": ["0", "1"], "eid": ["1000017", "1000005"]}).head
    'eid'
    >>> choose_id_column({"": ["0", "1"], "age": ["70", "71"]}).problem
    'the first column has no head and only counts rows'
    """
    first_head = next(iter(columns), "")
    if FREESURFER_HEAD.fullmatch(first_head):
        return IdChoice(first_head)
    person_choice = choose_person_column(columns)
    if person_choice.head is not None or person_choice.problem:
        return person_choice
    head_of_letters = {letters_of(head): head for head in columns}
    scan_letters = [letters_of(head) for head in _SCAN_HEADS]
    scan_heads = [head_of_letters[x] for x in scan_letters if x in head_of_letters]
    if scan_heads:
        return _choose_scan_column(columns, scan_heads)
    return _choose_saved_index(columns)


def _choose_scan_column(
    columns: Mapping[str, Cells], scan_heads: Sequence[str]
) -> IdChoice:
    """Choose among the columns that, by their heads, name scans."""
    possible_ids = _find_possible_ids(columns)
    repeated_heads = [head for head in scan_heads if repeats_as_ids(columns[head])]
    text_heads = [head for head in scan_heads if not are_row_numbers(columns[head])]
    head = (repeated_heads or text_heads or scan_heads)[0]
    rivals = _find_group_heads(columns)
    if are_counted(columns[head]):
        rivals += possible_ids
    elif not repeated_heads:
        rivals += _find_coarser(columns, head, possible_ids)
    return _refuse_rivals(head, rivals)


def _choose_saved_index(columns: Mapping[str, Cells]) -> IdChoice:
    """Choose a saved row index as the ids if no head names people or scans.

    Its cells must be text, or numbers as ids are; a column that counts rows names
    nobody.
    """
    possible_ids = _find_possible_ids(columns)
    group_heads = _find_group_heads(columns)
    for head in _find_index_heads(columns)[:1]:
        is_number = are_row_numbers(columns[head])
        if is_number:
            rivals = [*group_heads, *possible_ids]
        else:
            rivals = [*group_heads, *_find_coarser(columns, head, possible_ids)]
        if is_number and (rivals or not _have_one_width(columns[head])):
            subject = "the first column has no head and"
            if head:
                subject = f"the column {head!r}"
            return IdChoice(None, f"{subject} only counts rows", tuple(rivals))
        if rivals or not head or not is_number:
            return _refuse_rivals(head, rivals)
    problem = "no column names the scans"
    return IdChoice(None, problem, (*group_heads, *possible_ids))


def _refuse_rivals(head: str, rivals: Sequence[str]) -> IdChoice:
    """Choose a column unless others could name people, too."""
    if not rivals:
        return IdChoice(head)
    problem = f"{head!r} and {listed(map(repr, rivals), 5)} could name people"
    return IdChoice(None, problem, (head, *rivals))


def _find_possible_ids(columns: Mapping[str, Cells]) -> list[str]:
    """Return the heads, none of them known, of columns that could hold ids."""
    return [head for head in columns if _could_be_ids(head, columns)]


def _find_group_heads(columns: Mapping[str, Cells]) -> list[str]:
    """Return the heads of people, unless their cells are yes or no."""
    heads = find_person_columns(columns)
    return [head for head in heads if not are_yes_no(columns[head])]


def choose_person_column(columns: Mapping[str, Cells]) -> IdChoice:
    """Choose the column that names people, by its head and its cells.

    Neither a head nor a problem is returned if no head says that its column names
    people.
    """
    heads = find_person_columns(columns)
    session_column = find_session_column(columns)
    visits = None if session_column is None else columns[session_column]
    group_heads = [head for head in heads if is_group(head, columns[head], visits)]
    person_heads = [head for head in heads if head not in group_heads]
    complete_heads = [head for head in person_heads if all(columns[head])]
    person_heads = complete_heads or person_heads
    if not person_heads:
        return IdChoice(None)
    head = person_heads[0]
    rivals = list[str]()
    for candidate in person_heads[1:]:
        cells = columns[candidate]
        if not all(cells) or _nests(columns[head], cells) or not repeats_as_ids(cells):
            continue
        if _nests(cells, columns[head]) and are_counted(columns[head]):
            head = candidate
            rivals = []
        else:
            rivals.append(candidate)
    if are_counted(columns[head]):
        possible_ids = _find_possible_ids(columns)
        rivals += [rival for rival in possible_ids if repeats_as_ids(columns[rival])]
        rivals += [rival for rival in group_heads if not are_yes_no(columns[rival])]
    return _refuse_rivals(head, rivals)


def is_index_head(head: str) -> bool:
    """Return whether a head is one that programs give to a saved row index."""
    return _INDEX_HEAD.fullmatch(head.strip()) is not None


def _find_index_heads(columns: Mapping[str, Cells]) -> list[str]:
    """Return the heads of columns that may be a saved row index.

    They have a head that only programs write; or the first column has one of an index.
    """
    first_head = next(iter(columns), "")
    heads = [head for head in columns if _NO_HEAD.fullmatch(head)]
    if is_index_head(first_head) and first_head not in heads:
        heads.append(first_head)
    return heads


def find_saved_index(columns: Mapping[str, Cells]) -> list[str]:
    """Return the heads of columns that are a saved row index: they only count rows."""
    heads = _find_index_heads(columns)
    return [head for head in heads if are_row_numbers(columns[head])]


def are_row_numbers(cells: Cells) -> bool:
    """Return whether cells are different whole numbers and none is missing.

    Numbers with leading zeros (001) are text.
    """
    matches = [_WHOLE_NUMBER.fullmatch(cell or "") for cell in cells]
    numbers = [match[1] for match in matches if match]
    are_whole = len(numbers) == len(cells) > 0
    return are_whole and len({*numbers}) == len(cells) and not _have_zeros(numbers)


def are_counted(cells: Cells) -> bool:
    """Return whether cells count from 0 or 1 without gaps, in any order."""
    if not are_row_numbers(cells):
        return False
    numbers = sorted(int(float(cell or "")) for cell in cells)
    return numbers[0] in (0, 1) and numbers[-1] - numbers[0] == len(numbers) - 1


def is_group(head: str, cells: Cells, visits: Cells | None = None) -> bool:
    """Return whether a column names groups of scans and not people.

    It does if all cells are yes or no. It also does if its head is a noun alone
    (`subject`) and it has a few values that come many times, unless visits tell these
    apart.
    """
    values = [cell for cell in cells if cell is not None]
    n_values = len({*values})
    if n_values == len(values):
        return False
    if are_yes_no(cells) and not {*values} <= {"0", "1", "0.0", "1.0"}:
        return True
    if visits is not None:
        scan_keys = [*zip(cells, visits, strict=True)]
        if len({*scan_keys}) == len(scan_keys):
            return False
    are_few = n_values <= _MAX_GROUPS
    are_few = are_few and len(values) >= _MIN_SCANS_PER_GROUP * n_values
    terms = _split_head_words(head)
    is_noun = len(terms) == 1 and terms[0] in _PERSON_WORDS
    return (are_few and is_noun) or are_yes_no(cells)


def repeats_as_ids(cells: Cells) -> bool:
    """Return whether values repeat as the ids of people do over their visits.

    They are text with digits; or whole numbers that are long or repeat regularly.
    """
    values = [cell for cell in cells if cell]
    counts = Counter(values)
    n_values = len(counts)
    n_rows = len(cells)
    max_count = max(counts.values(), default=0)
    median_count = sorted(counts.values())[n_values // 2] if counts else 0
    # Sizes of groups differ more than numbers of visits.
    is_even = 2 <= max_count <= min(_MAX_SCANS, max(5, 3 * median_count))
    if len(values) < n_rows or not is_even or n_values < 3:
        return False
    if not all(_WHOLE_NUMBER.fullmatch(value) for value in counts):
        n_with_digit = sum(any(map(str.isdigit, value)) for value in counts)
        return n_values * 6 >= n_rows and n_with_digit >= 0.8 * n_values
    mode_count, n_of_mode = Counter(counts.values()).most_common(1)[0]
    is_regular = n_values >= 5 and mode_count > 1 and n_of_mode >= 0.8 * n_values
    is_long = min(len(value.removesuffix(".0")) for value in counts) >= 4
    n_repeated = sum(count > 1 for count in counts.values())
    return is_regular or (is_long and n_repeated >= 0.6 * n_values)


def look_like_ids(cells: Cells) -> bool:
    """Return whether cells could be ids: words with a digit, and no measurements."""
    values = [cell for cell in cells if cell]
    if len(values) < len(cells) or len(values) < 2:
        return False
    if any(
        " " in value or "/" in value or _DATE_CELL.fullmatch(value) for value in values
    ):
        return False
    is_unique = len({*values}) == len(values)
    if all(_WHOLE_NUMBER.fullmatch(value) for value in values):
        return _have_one_width(values) if is_unique else repeats_as_ids(values)
    if any(re.fullmatch(r"-?\d*[.,]\d+(e-?\d+)?", value) for value in values):
        return False
    n_with_digit = sum(any(map(str.isdigit, value)) for value in values)
    have_digits = n_with_digit >= 0.8 * len(values)
    return have_digits and (is_unique or repeats_as_ids(values))


def find_exchanged_ids(
    people: Sequence[str],
    columns: Mapping[str, Cells],
    other_people: Sequence[str],
    other_columns: Mapping[str, Cells],
    id_columns: tuple[str, str],
) -> str:
    """Return how two tables give an id of one person to different people, else "".

    If the ids that tables are joined by only count the rows of each table, another
    column that both tables have shows that the rows are of different people.

    Parameters
    ----------
    people, other_people : sequence of str
        The id of every row by which the tables are joined.
    columns, other_columns : mapping of str to sequence of str or None
        The cells of each table, with those of its column of ids.
    id_columns : (str, str)
        The heads of the columns of ids.

    Returns
    -------
    str
    """
    id_letters = [letters_of(head) for head in id_columns]
    head_of_letters = {letters_of(head): head for head in other_columns}
    for head, cells in columns.items():
        other_head = head_of_letters.get(letters_of(head))
        n_id_columns = id_letters.count(letters_of(head))
        if other_head is None or n_id_columns == 2:
            continue
        is_person_head = bool(find_person_columns([head]))
        if n_id_columns == 0 and are_counted(cells):
            # If the ids only count rows, too, neither column is known to be right.
            if not (is_person_head and are_counted(columns[id_columns[0]])):
                continue
        elif n_id_columns == 0 and not look_like_ids(cells):
            continue
        owners: dict[str, set[str]] = {}
        for person, cell in zip(people, cells, strict=True):
            owners.setdefault(cell or "", set()).add(person)
        other_cells = other_columns[other_head]
        pairs = zip(other_people, other_cells, strict=True)
        shared = [(cell, person) for person, cell in pairs if cell and cell in owners]
        conflicts = [pair for pair in shared if pair[1] not in owners[pair[0]]]
        n_cells = sum(cell is not None for cell in other_cells)
        names_people = n_id_columns > 0 or is_person_head
        # Columns of a measure may have a few values in common.
        is_shared = 5 * len(shared) >= 4 * n_cells
        is_shared = is_shared and 5 * len(conflicts) >= len(shared)
        if conflicts and (names_people or is_shared):
            cell, person = conflicts[0]
            owner = min(owners[cell])
            return (
                f"rows are joined by {id_columns[0]!r}, but {head} {cell} is of "
                f"{owner!r} in one table and of {person!r} in the other "
                f"({len(conflicts)} rows differ so). Name the column of ids by "
                f"{option_text('id_column')}"
            )
    return ""


def to_cells(values: Iterable[object]) -> list[str | None]:
    """Return values of any kind as the cells of a table, None where missing."""
    texts = [str(value).strip() for value in values]
    missing_cells = MISSING_CELLS | {"<na>"}
    return [None if text.lower() in missing_cells else text for text in texts]


def _split_head_words(head: str) -> list[str]:
    """Return the words of a head in lower case: `src_subject_id`, `PatientCode`."""
    terms = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", head)
    return [term.lower() for term in terms]


def _names_noun(head: str, nouns: Sequence[str]) -> bool:
    """Return whether a head is a noun, alone or with words such as id and number."""
    terms = _split_head_words(head)
    if {*nouns} & {*terms}:
        return {*terms} <= {*nouns, *_ID_WORDS}
    # Two words may be written as one (`subjectkey`).
    compound = "".join(terms)
    for noun in nouns:
        if compound.startswith(noun) and compound.removeprefix(noun) in _ID_WORDS:
            return True
    return False


def _could_be_ids(head: str, columns: Mapping[str, Cells]) -> bool:
    """Return whether a column could hold ids, though its head is not known."""
    is_known = (
        not {*_split_head_words(head)}.isdisjoint(_OTHER_WORDS)
        or kind_of(head) in COVARIATES
        or is_index_head(head)
        or _names_noun(head, (*_PERSON_WORDS, *_VISIT_WORDS))
        or find_head([head], (*PEOPLE_COLUMNS, *_SCAN_HEADS)) is not None
        or find_head([head], SESSION_COLUMNS) is not None
    )
    if is_known or not look_like_ids(columns[head]):
        return False
    # A person has one sex.
    sex_heads = [column for column in columns if kind_of(column) == "sex"]
    for sex_head in sex_heads:
        sexes: dict[str | None, set[str | None]] = {}
        for cell, sex in zip(columns[head], columns[sex_head], strict=True):
            sexes.setdefault(cell, set()).add(sex)
        n_contradictions = sum(len(values) > 1 for values in sexes.values())
        if n_contradictions > 0.1 * len(sexes):
            return False
    return True


def _nests(coarse: Cells, fine: Cells) -> bool:
    """Return whether every value of the finer column has one value of the coarser."""
    return len({*zip(coarse, fine, strict=True)}) == len({*fine})


def _find_coarser(
    columns: Mapping[str, Cells], head: str, candidates: Iterable[str]
) -> list[str]:
    """Return the candidates that repeat as ids and group the values of a column."""
    cells = columns[head]
    return [
        candidate
        for candidate in candidates
        if repeats_as_ids(columns[candidate])
        and _nests(columns[candidate], cells)
        and not _nests(cells, columns[candidate])
    ]


def are_yes_no(cells: Cells) -> bool:
    """Return whether every cell is a word for yes or no, 0 or 1, or missing."""
    return {(cell or "no").lower() for cell in cells} <= {*_YES_NO}


def _have_zeros(numbers: Iterable[str]) -> bool:
    """Return whether a number has leading zeros."""
    return any(len(number) > 1 and number[0] == "0" for number in numbers)


def _have_one_width(cells: Iterable[str | None]) -> bool:
    """Return whether numbers, as ids but not counts, all have as many digits (5 on)."""
    widths = {len((cell or "").removesuffix(".0")) for cell in cells}
    return len(widths) == 1 and min(widths) >= 5
