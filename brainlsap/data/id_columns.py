"""Choose the columns of a table that name people and visits.

Heads alone do not decide: a column that only counts rows names nobody, and a column
of yes and no, whatever its head, is a group. Where two columns could name people, none
is chosen.
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
    listed,
)

Cells = Sequence[str | None]

# Heads of scans, best first; `id` may be of people or of scans.
_SCAN_HEADS = ("scan", "scan_id", "image_id", "id")
# Heads that pandas, R and spreadsheets give to a saved row index.
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
# Words of heads whose values come several times, but name no person.
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
_DATE = re.compile(r"(19|20)\d\d[-./]?\d\d[-./]?\d\d.*|\d{1,2}[-./]\d{1,2}[-./]\d+.*")
_WHOLE = re.compile(r"(\d+)(\.0+)?")
# A person has at most so many scans; a group has few values, and more scans of each.
_MOST_SCANS = 12
_MOST_GROUPS, _FEWEST_OF_GROUP = 5, 4


class IdChoice(NamedTuple):
    """The column that names people or scans, or why none was chosen.

    head : None where none was chosen; problem : then a sentence; candidates : heads of
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
        """Return what one head, several or none say."""
        options = (id_column, session_column)
        heads = [
            (one,) if isinstance(one, str) else tuple(one or ()) for one in options
        ]
        return cls(*heads)


NO_CHOICE = ChosenColumns()


def find_chosen(heads: Iterable[str], chosen: Sequence[str]) -> str | None:
    """Return the first chosen head: as it is written, else by its letters."""
    heads = list(heads)
    exact = next((head for head in chosen if head in heads), None)
    return exact if exact is not None else find_head(heads, chosen)


def find_session_column(heads: Iterable[str]) -> str | None:
    """Return the head of the visits, None where there is none."""
    heads = list(heads)
    known = find_head(heads, SESSION_COLUMNS)
    return known or next((one for one in heads if _is_of(one, _VISIT_WORDS)), None)


def find_person_columns(heads: Iterable[str]) -> list[str]:
    """Return all heads that say that they name people, best first."""
    heads = list(heads)
    by_letters = {letters_of(head): head for head in reversed(heads)}
    known = [by_letters.get(letters_of(head)) for head in PEOPLE_COLUMNS]
    more = [head for head in heads if _is_of(head, _PERSON_WORDS)]
    return [*dict.fromkeys(head for head in (*known, *more) if head is not None)]


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
    first = next(iter(columns), "")
    if FREESURFER_HEAD.fullmatch(first):
        return IdChoice(first)
    of_people = choose_person_column(columns)
    if of_people.head is not None or of_people.problem:
        return of_people
    similar = [head for head in columns if _is_unknown(head, columns)]
    repeated = [head for head in similar if repeats_as_ids(columns[head])]
    by_letters = {letters_of(head): head for head in columns}
    scans = [by_letters[h] for h in map(letters_of, _SCAN_HEADS) if h in by_letters]
    groups = [h for h in find_person_columns(columns) if not are_yes_no(columns[h])]
    if scans:
        several = [head for head in scans if repeats_as_ids(columns[head])]
        texts = [head for head in scans if not are_row_numbers(columns[head])]
        head = (several or texts or scans)[0]
        coarser = [] if several else _coarser(columns, head, repeated)
        rivals = [*groups, *coarser]
        if are_counted(columns[head]):
            rivals = [*groups, *similar]
        if rivals:
            problem = f"{head!r} and {listed(map(repr, rivals), 5)} could name people"
            return IdChoice(None, problem, (head, *rivals))
        return IdChoice(head)
    index = [head for head in columns if _NO_HEAD.fullmatch(head)]
    index += [first] if is_index_head(first) and first not in index else []
    for head in index[:1]:
        says = f"the column {head!r}" if head else "the first column has no head and"
        is_number = are_row_numbers(columns[head])
        rivals = [
            *groups,
            *(similar if is_number else _coarser(columns, head, repeated)),
        ]
        if is_number and (rivals or not _have_one_width(columns[head])):
            return IdChoice(None, f"{says} only counts rows", tuple(rivals))
        if rivals:
            problem = f"{head!r} and {listed(map(repr, rivals), 5)} could name people"
            return IdChoice(None, problem, (head, *rivals))
        # text, or numbers as ids are: saved with the index of a data frame
        if not head or is_number is False:
            return IdChoice(head)
    return IdChoice(None, "no column names the scans", (*groups, *similar))


def choose_person_column(columns: Mapping[str, Cells]) -> IdChoice:
    """Choose the column that names people, by heads that say so and by what they hold.

    Neither a head nor a problem is returned where no column says that it names people.
    """
    heads = find_person_columns(columns)
    session_column = find_session_column(columns)
    visits = None if session_column is None else columns[session_column]
    groups = [head for head in heads if is_group(head, columns[head], visits)]
    people = [head for head in heads if head not in groups]
    people = [head for head in people if all(columns[head])] or people
    if not people:
        return IdChoice(None)
    head, rivals = people[0], list[str]()
    for other in people[1:]:
        if not all(columns[other]) or _nests(columns[head], columns[other]):
            continue
        is_coarser = _nests(columns[other], columns[head])
        if not repeats_as_ids(columns[other]):
            continue
        if is_coarser and are_counted(columns[head]):
            head, rivals = other, []
        else:
            rivals.append(other)
    if are_counted(columns[head]):
        unknown = (one for one in columns if _is_unknown(one, columns))
        rivals += [one for one in unknown if repeats_as_ids(columns[one])]
        rivals += [one for one in groups if not are_yes_no(columns[one])]
    if rivals:
        problem = f"{head!r} and {listed(map(repr, rivals), 5)} could name people"
        return IdChoice(None, problem, (head, *rivals))
    return IdChoice(head)


def is_index_head(head: str) -> bool:
    """Return whether a head is one that programs give to a saved row index."""
    return _INDEX_HEAD.fullmatch(head.strip()) is not None


def find_saved_index(columns: Mapping[str, Cells]) -> list[str]:
    """Return the heads of columns that are a saved row index.

    Such stand first, or have a head that only programs write.
    """
    first = next(iter(columns), "")
    heads = [head for head in columns if _NO_HEAD.fullmatch(head)]
    heads += [first] if is_index_head(first) and first not in heads else []
    return [head for head in heads if are_row_numbers(columns[head])]


def are_row_numbers(cells: Cells) -> bool:
    """Return whether cells are whole numbers, no two alike and none missing.

    Numbers with zeros at the front (001) are texts.
    """
    matches = [_WHOLE.fullmatch(cell or "") for cell in cells]
    numbers = [match[1] for match in matches if match]
    is_whole = len(numbers) == len(cells) > 0
    return is_whole and len({*numbers}) == len(cells) and not _have_zeros(numbers)


def are_counted(cells: Cells) -> bool:
    """Return whether cells are the numbers from 0 or 1 on, in any order."""
    if not are_row_numbers(cells):
        return False
    numbers = sorted(int(float(cell or "")) for cell in cells)
    return numbers[0] in (0, 1) and numbers[-1] - numbers[0] == len(numbers) - 1


def is_group(head: str, cells: Cells, visits: Cells | None = None) -> bool:
    """Return whether a column tells groups of scans and not people.

    It does where all cells are yes or no, or where, under a noun alone (`subject`), a
    few values come many times and visits do not tell them apart.
    """
    values = [cell for cell in cells if cell is not None]
    n_values = len({*values})
    if n_values == len(values):
        return False
    if are_yes_no(cells) and not {*values} <= {"0", "1", "0.0", "1.0"}:
        return True
    if visits is not None:
        pairs = [*zip(cells, visits, strict=True)]
        if len({*pairs}) == len(pairs):
            return False
    is_few = n_values <= _MOST_GROUPS and len(values) >= _FEWEST_OF_GROUP * n_values
    is_noun = len(_words(head)) == 1 and _words(head)[0] in _PERSON_WORDS
    return (is_few and is_noun) or are_yes_no(cells)


def repeats_as_ids(cells: Cells) -> bool:
    """Return whether values come several times as the ids of people do.

    Text with digits; or whole numbers, either long or each as often as the others.
    """
    values = [cell for cell in cells if cell]
    counts = Counter(values)
    n_values, n_rows = len(counts), len(cells)
    most = max(counts.values(), default=0)
    middle = sorted(counts.values())[n_values // 2] if counts else 0
    # the sizes of groups differ more than the numbers of visits
    is_even = 2 <= most <= min(_MOST_SCANS, max(5, 3 * middle))
    if len(values) < n_rows or not is_even or n_values < 3:
        return False
    if not all(_WHOLE.fullmatch(value) for value in counts):
        n_with_digit = sum(any(map(str.isdigit, value)) for value in counts)
        return n_values * 6 >= n_rows and n_with_digit >= 0.8 * n_values
    usual, n_usual = Counter(counts.values()).most_common(1)[0]
    is_regular = n_values >= 5 and usual > 1 and n_usual >= 0.8 * n_values
    is_long = min(len(value.removesuffix(".0")) for value in counts) >= 4
    n_repeated = sum(count > 1 for count in counts.values())
    return is_regular or (is_long and n_repeated >= 0.6 * n_values)


def look_like_ids(cells: Cells) -> bool:
    """Return whether cells could be ids: one word with a digit each, no measure."""
    values = [cell for cell in cells if cell]
    if len(values) < len(cells) or len(values) < 2:
        return False
    if any(" " in one or "/" in one or _DATE.fullmatch(one) for one in values):
        return False
    if all(_WHOLE.fullmatch(value) for value in values):
        is_unique = len({*values}) == len(values)
        return _have_one_width(values) if is_unique else repeats_as_ids(values)
    if any(re.fullmatch(r"-?\d*[.,]\d+(e-?\d+)?", value) for value in values):
        return False
    n_with_digit = sum(any(map(str.isdigit, value)) for value in values)
    is_unique = len({*values}) == len(values)
    is_word = n_with_digit >= 0.8 * len(values)
    return is_word and (is_unique or repeats_as_ids(values))


def find_exchanged_ids(
    people: Sequence[str],
    columns: Mapping[str, Cells],
    other_people: Sequence[str],
    other_columns: Mapping[str, Cells],
    id_columns: tuple[str, str],
) -> str:
    """Say where two tables give an id of one person to different people, else nothing.

    Parameters
    ----------
    people, other_people : sequence of str
        Of every row, as the tables are joined by them.
    columns, other_columns : mapping of str to sequence of str or None
        The cells of each table, with those of its column of ids.
    id_columns : (str, str)
        The heads of these.

    Returns
    -------
    str
        Where the ids that tables are joined by only count the rows of each table,
        another column that both have tells that they are of others.
    """
    id_letters = [letters_of(head) for head in id_columns]
    by_letters = {letters_of(head): head for head in other_columns}
    for head, cells in columns.items():
        other = by_letters.get(letters_of(head))
        n_joined = id_letters.count(letters_of(head))
        if other is None or n_joined == 2:
            continue
        is_person_head = bool(find_person_columns([head]))
        if n_joined == 0 and are_counted(cells):
            # of two columns that count neither is known to be right
            if not (is_person_head and are_counted(columns[id_columns[0]])):
                continue
        elif n_joined == 0 and not look_like_ids(cells):
            continue
        owners: dict[str, set[str]] = {}
        for person, cell in zip(people, cells, strict=True):
            owners.setdefault(cell or "", set()).add(person)
        rows = zip(other_people, other_columns[other], strict=True)
        known = [(cell, person) for person, cell in rows if cell and cell in owners]
        wrong = [(cell, person) for cell, person in known if person not in owners[cell]]
        n_cells = sum(cell is not None for cell in other_columns[other])
        is_of_people = n_joined > 0 or is_person_head
        # a measure may have a few values in common
        is_shared = 5 * len(known) >= 4 * n_cells and 5 * len(wrong) >= len(known)
        if wrong and (is_of_people or is_shared):
            cell, person = wrong[0]
            owner = min(owners[cell])
            return (
                f"rows are joined by {id_columns[0]!r}, but {head} {cell} is of "
                f"{owner!r} in one table and of {person!r} in the other "
                f"({len(wrong)} rows differ so). Name the column of ids by id_column= "
                "(--id)"
            )
    return ""


def to_cells(values: Iterable[object]) -> list[str | None]:
    """Return values of any kind as the cells of a table, None where missing."""
    texts = [str(value).strip() for value in values]
    return [
        None if text.lower() in MISSING_CELLS | {"<na>"} else text for text in texts
    ]


def _words(head: str) -> list[str]:
    """Return the words of a head in lower case: `src_subject_id`, `PatientCode`."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", head)
    return [word.lower() for word in words]


def _is_of(head: str, nouns: Sequence[str]) -> bool:
    """Return whether a head is a noun, alone or with words such as id and number."""
    words = _words(head)
    if not {*nouns} & {*words}:
        # one word of two, such as subjectkey
        together = "".join(words)
        for noun in nouns:
            if together.startswith(noun) and together.removeprefix(noun) in _ID_WORDS:
                return True
        return False
    return {*words} <= {*nouns, *_ID_WORDS}


def _is_unknown(head: str, columns: Mapping[str, Cells]) -> bool:
    """Return whether a column could hold ids under a head that is not known."""
    is_known = bool({*_words(head)} & {*_OTHER_WORDS}) or kind_of(head) in COVARIATES
    is_known |= is_index_head(head) or _is_of(head, (*_PERSON_WORDS, *_VISIT_WORDS))
    is_known |= find_head([head], (*PEOPLE_COLUMNS, *_SCAN_HEADS)) is not None
    is_known |= find_head([head], SESSION_COLUMNS) is not None
    if is_known or not look_like_ids(columns[head]):
        return False
    # people have one sex
    for sex in (one for one in columns if kind_of(one) == "sex"):
        sexes: dict[str | None, set[str | None]] = {}
        for cell, word in zip(columns[head], columns[sex], strict=True):
            sexes.setdefault(cell, set()).add(word)
        if sum(len(words) > 1 for words in sexes.values()) > 0.1 * len(sexes):
            return False
    return True


def _nests(coarse: Cells, fine: Cells) -> bool:
    """Return whether every value of the finer column has one value of the coarser."""
    return len({*zip(coarse, fine, strict=True)}) == len({*fine})


def _coarser(
    columns: Mapping[str, Cells], head: str, others: Iterable[str]
) -> list[str]:
    """Return the columns in which several values of a column share one."""
    cells = columns[head]
    nested = [one for one in others if _nests(columns[one], cells)]
    return [one for one in nested if not _nests(cells, columns[one])]


def are_yes_no(cells: Cells) -> bool:
    """Return whether every cell is a word for yes or no, 0 or 1, or missing."""
    return {(cell or "no").lower() for cell in cells} <= {*_YES_NO}


def _have_zeros(numbers: Iterable[str]) -> bool:
    return any(len(number) > 1 and number[0] == "0" for number in numbers)


def _have_one_width(cells: Iterable[str | None]) -> bool:
    """Return whether numbers are ids rather than counts: five digits or more, all."""
    widths = {len((cell or "").removesuffix(".0")) for cell in cells}
    return len(widths) == 1 and min(widths) >= 5
