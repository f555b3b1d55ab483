"""Find columns of the table of people of which other tables hold different values."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain, product
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.data.covariates import STAGE_OF_WORD, find_covariate_kind
from brainlsap.data.find_files import FIRST_VISITS, Scan, ScanIdentity, StudyFiles
from brainlsap.data.region_tables import TableContents
from brainlsap.data.tables import find_column_name, is_formula_error
from brainlsap.findings import ASSUMED, FAULT, Finding
from brainlsap.text import (
    count_text,
    join_with_commas,
    named_counts_text,
    option_text,
    verb_form,
)

COLUMN_CONFLICT = "tables differ in a column"
"""Two tables have different labels of the same scans."""
# One word for each stage, and the stages that one broader word may name together.
_STAGE_WORDS = ("cn", "smc", "emci", "mci", "lmci", "ad")
_BROAD_STAGES = ({"cn", "smc"}, {"emci", "mci", "lmci"})
# A person without visits is compared with the first visit of another table alone.
_FIRST_VISIT = re.compile(r"(?:v|visit|scan|exam|session|wave|t|tp)?[-_]?0*[01]|m0+")
# Difference in years that rounding may cause.
_MAX_AGE_DIFFERENCE = 1.0
# Kinds of covariates that both tables have from the same person at the same visit.
_COMPARED_KINDS = ("age", "sex")

Cell = str | None


class _CellPair(NamedTuple):
    """The cells of one scan in the table of people and in another table."""

    scan_name: str
    people_cell: Cell
    other_cells: tuple[str, ...]
    """Filled cells of the rows of this scan, usually one."""
    person_cells: frozenset[str]
    """Cells of the person that agree with a row that is not of one visit."""


def find_column_conflicts(
    people_contents: TableContents,
    other_contents_list: Iterable[TableContents],
    study_files: StudyFiles,
    scans: Sequence[Scan],
    cells_by_column: Mapping[str, Sequence[Cell]],
    facts_by_person_and_visit: Mapping[
        str, Mapping[str, tuple[ScanIdentity, Mapping[str, Cell]]]
    ],
    label_name: str | None,
) -> list[Finding]:
    """Return faults and notes on columns of which two tables hold different values.

    `cells_by_column` are the cells that were read, one for each scan, and
    `facts_by_person_and_visit` the rows of the table of people. Different labels are a
    fault; a different age or sex is a note.
    """
    findings = list[Finding]()
    compared_names = {people_contents.path_and_sheet}
    for other_contents in other_contents_list:
        if other_contents.path_and_sheet in compared_names:
            continue
        compared_names.add(other_contents.path_and_sheet)
        rows_by_person = _index_rows(other_contents, study_files)
        for column_name, people_cells in cells_by_column.items():
            is_label = column_name == label_name
            covariate_kind = find_covariate_kind(column_name)
            if not is_label and covariate_kind not in _COMPARED_KINDS:
                continue
            other_column_name = find_column_name(
                other_contents.text_table, [column_name]
            )
            if other_column_name is None:
                continue
            cells_by_person_and_visit = {
                participant_id: {
                    visit_key: visit_facts.get(column_name)
                    for visit_key, (_, visit_facts) in facts_by_visit.items()
                }
                for participant_id, facts_by_visit in facts_by_person_and_visit.items()
            }
            cell_pairs = _list_cell_pairs(
                other_contents.text_table[other_column_name].tolist(),
                rows_by_person,
                scans,
                people_cells,
                cells_by_person_and_visit,
                is_region_table=bool(other_contents.values_by_measure_region),
                # The age of a person may be that at any visit.
                needs_visit=covariate_kind == "age" and not is_label,
            )
            if covariate_kind == "age" and not is_label:
                differing_pairs = _find_differing_ages(cell_pairs)
            else:
                differing_pairs = _find_differing_words(cell_pairs)
            if differing_pairs:
                make_finding = _make_label_fault if is_label else _make_covariate_note
                findings.append(
                    make_finding(
                        people_contents,
                        other_contents,
                        column_name,
                        other_column_name,
                        differing_pairs,
                    )
                )
            elif is_label:
                findings += _make_empty_label_notes(
                    people_contents, other_contents, column_name, cell_pairs
                )
    return findings


def _index_rows(
    table_contents: TableContents, study_files: StudyFiles
) -> dict[str, dict[str, list[int]]]:
    """Return the rows of a table by person and visit."""
    rows_by_person: dict[str, dict[str, list[int]]] = {}
    row_keys = study_files.list_row_keys(table_contents.scan_identities)
    for row_index, (participant_id, session_id) in enumerate(row_keys):
        rows_by_visit = rows_by_person.setdefault(participant_id, {})
        rows_by_visit.setdefault(session_id, []).append(row_index)
    return rows_by_person


def _list_cell_pairs(
    other_column_cells: Sequence[Cell],
    rows_by_person: Mapping[str, Mapping[str, Sequence[int]]],
    scans: Sequence[Scan],
    people_cells: Sequence[Cell],
    cells_by_person_and_visit: Mapping[str, Mapping[str, Cell]],
    *,
    is_region_table: bool,
    needs_visit: bool,
) -> list[_CellPair]:
    """Return the cells of every scan that has filled cells in the other table."""
    cell_pairs = list[_CellPair]()
    for scan, people_cell in zip(scans, people_cells, strict=True):
        participant_id, session_id = scan.key
        rows_by_visit = rows_by_person.get(participant_id, {})
        person_cell_by_visit = cells_by_person_and_visit.get(participant_id, {})
        if needs_visit and session_id not in person_cell_by_visit:
            continue
        row_indices = rows_by_visit.get(session_id, ())
        # A row without a visit may be of any visit of the person.
        is_of_person = session_id == "" or session_id not in rows_by_visit
        if not row_indices and session_id:
            row_indices = rows_by_visit.get("", ())
        elif not row_indices:
            # The features of a scan without a visit are those of the only row.
            has_one_row = is_region_table and [*map(len, rows_by_visit.values())] == [1]
            row_indices = [
                row_index
                for visit_key, visit_row_indices in rows_by_visit.items()
                if has_one_row or _is_first_visit(visit_key)
                for row_index in visit_row_indices
            ]
        other_cells = tuple(
            dict.fromkeys(
                _normalize_cell(other_cell)
                for row_index in row_indices
                if (other_cell := other_column_cells[row_index]) is not None
                and not is_formula_error(other_cell)
            )
        )
        person_cells = frozenset(
            _normalize_cell(person_cell)
            for person_cell in person_cell_by_visit.values()
            if person_cell is not None and is_of_person
        )
        if other_cells:
            cell_pairs.append(
                _CellPair(
                    scan.name,
                    None if people_cell is None else _normalize_cell(people_cell),
                    other_cells,
                    person_cells,
                )
            )
    return cell_pairs


def _is_first_visit(visit_key: str) -> bool:
    """Return whether a visit is the first one by its name."""
    visit_name = visit_key.lower()
    return visit_name in FIRST_VISITS or bool(_FIRST_VISIT.fullmatch(visit_name))


def _normalize_cell(cell_text: str) -> str:
    """Return a cell with one spelling of each number."""
    number = pd.to_numeric(cell_text, errors="coerce")
    return cell_text.strip() if pd.isna(number) else f"{number:.15g}"


def _to_word(cell_text: str) -> str:
    """Return a cell in lower case, and one word for all names of a stage."""
    lower_text = cell_text.lower()
    stage_number = STAGE_OF_WORD.get(lower_text)
    return lower_text if stage_number is None else _STAGE_WORDS[stage_number]


def _list_word_pairs(cell_pair: _CellPair) -> list[tuple[str, str]]:
    """Return the words that the two tables may name for a scan, in all combinations."""
    people_words = {_to_word(cell_text) for cell_text in cell_pair.person_cells}
    if cell_pair.people_cell is not None:
        people_words.add(_to_word(cell_pair.people_cell))
    other_words = map(_to_word, cell_pair.other_cells)
    return [*product(sorted(people_words), sorted({*other_words}))]


def _find_differing_words(cell_pairs: Sequence[_CellPair]) -> list[_CellPair]:
    """Return the scans whose words contradict each other.

    Codes of words (0 and 1 for CN and AD) and broader words (MCI for EMCI and LMCI) do
    not: every word of one table then stands for one word of the other, and this word
    has no other meaning in the first table.
    """
    cell_pairs = [x for x in cell_pairs if x.people_cell is not None]
    word_pair_lists = [*map(_list_word_pairs, cell_pairs)]
    differing_flags = [
        all(people_word != other_word for people_word, other_word in word_pairs)
        for word_pairs in word_pair_lists
    ]
    all_word_pairs = [*chain(*word_pair_lists)]
    people_words = {people_word for people_word, _ in all_word_pairs}
    # Rows that are not of one visit do not show what a code stands for.
    certain_word_pairs = {
        word_pairs[0] for word_pairs in word_pair_lists if len(word_pairs) == 1
    }
    if _is_translation(certain_word_pairs) or _is_translation(
        {(other_word, people_word) for people_word, other_word in certain_word_pairs}
    ):
        certain_people_words = {people_word for people_word, _ in certain_word_pairs}
        differing_flags = [
            is_differing
            and certain_word_pairs.isdisjoint(word_pairs)
            and (
                certain_people_words.issuperset(first for first, _ in word_pairs)
                or not people_words.isdisjoint(second for _, second in word_pairs)
            )
            for is_differing, word_pairs in zip(
                differing_flags, word_pair_lists, strict=True
            )
        ]
    differing_pairs = [
        cell_pair
        for cell_pair, is_differing in zip(cell_pairs, differing_flags, strict=True)
        if is_differing
    ]
    if people_words.isdisjoint(other_word for _, other_word in all_word_pairs):
        if not certain_word_pairs:
            return []
        # Most scans show the meaning of a code; name the scans that differ from it.
        return _find_untypical_pairs(differing_pairs) or differing_pairs
    return differing_pairs


def _is_translation(word_pairs: Set[tuple[str, str]]) -> bool:
    """Return whether each first word has one second word that only translates it."""
    first_words = [first_word for first_word, _ in word_pairs]
    second_words = {second_word for _, second_word in word_pairs}
    if len({*first_words}) < len(first_words):
        return False
    return all(
        first_word == second_word
        or (
            _may_be_broader(first_word, second_word)
            and (
                second_word not in first_words
                # The second table does not distinguish, for example, SMC from CN.
                or (first_word in _STAGE_WORDS and first_word not in second_words)
            )
        )
        for first_word, second_word in word_pairs
    )


def _may_be_broader(first_word: str, second_word: str) -> bool:
    """Return whether a word may stand for the other one: not for another stage.

    Two words that are no stages may be a code.
    """
    if not {first_word, second_word} <= {*_STAGE_WORDS}:
        return True
    return any({first_word, second_word} <= stages for stages in _BROAD_STAGES)


def _find_untypical_pairs(differing_pairs: Sequence[_CellPair]) -> list[_CellPair]:
    """Return the scans whose other word is not that of most scans of their word."""
    counts_by_word: dict[str, Counter[str]] = {}
    for cell_pair in differing_pairs:
        word_counts = counts_by_word.setdefault(str(cell_pair.people_cell), Counter())
        word_counts[cell_pair.other_cells[0]] += 1
    return [
        cell_pair
        for cell_pair in differing_pairs
        if counts_by_word[str(cell_pair.people_cell)].most_common(1)[0][0]
        != cell_pair.other_cells[0]
    ]


def _find_differing_ages(cell_pairs: Sequence[_CellPair]) -> list[_CellPair]:
    """Return the scans whose ages differ by more than rounding."""
    differing_pairs = list[_CellPair]()
    for cell_pair in cell_pairs:
        people_ages, other_ages = (
            pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").to_numpy(
                dtype=float
            )
            for cells in (
                (cell_pair.people_cell, *cell_pair.person_cells),
                cell_pair.other_cells,
            )
        )
        age_distances = np.abs(np.subtract.outer(people_ages, other_ages))
        known_distances = age_distances[~np.isnan(age_distances)]
        if known_distances.size and known_distances.min() > _MAX_AGE_DIFFERENCE:
            differing_pairs.append(cell_pair)
    return differing_pairs


def _difference_counts_text(differing_pairs: Sequence[_CellPair]) -> str:
    """Return how many scans have which two different cells, the most frequent first."""
    n_scans_by_difference = Counter(
        f"{cell_pair.people_cell} and {' or '.join(cell_pair.other_cells)}"
        for cell_pair in differing_pairs
    )
    return named_counts_text(n_scans_by_difference.most_common(), max_items=3)


def _make_label_fault(
    people_contents: TableContents,
    other_contents: TableContents,
    column_name: str,
    other_column_name: str,
    differing_pairs: Sequence[_CellPair],
) -> Finding:
    """Return the fault that two tables have different labels of the same scans."""
    column_text = repr(column_name)
    if other_column_name != column_name:
        column_text = f"{column_name!r} (in the second table {other_column_name!r})"
    people_name, other_name = _list_two_table_names(people_contents, other_contents)
    n_scans = len(differing_pairs)
    scan_names_text = join_with_commas(
        (cell_pair.scan_name for cell_pair in differing_pairs), 5
    )
    return Finding(
        f"the label column {column_text} of {people_name} and of {other_name} has "
        f"different values for {count_text(n_scans, 'scan')}",
        FAULT,
        kind=COLUMN_CONFLICT,
        got=f"{_difference_counts_text(differing_pairs)} (scans {scan_names_text})",
        advice="Correct the wrong values. If the two columns mean different things, "
        f"give one of them another name, and choose the label with "
        f"{option_text('label')}; or delete the column that is not needed",
        values={
            "column": column_name,
            "tables": (people_contents.path_and_sheet, other_contents.path_and_sheet),
            "scans": tuple(cell_pair.scan_name for cell_pair in differing_pairs),
        },
    )


def _make_covariate_note(
    people_contents: TableContents,
    other_contents: TableContents,
    column_name: str,
    other_column_name: str,
    differing_pairs: Sequence[_CellPair],
) -> Finding:
    """Return the note that two tables have different ages or sexes of a scan."""
    people_name, other_name = _list_two_table_names(people_contents, other_contents)
    column_text = column_name
    if other_column_name != column_name:
        column_text = f"{column_name} ({other_column_name})"
    n_scans = len(differing_pairs)
    return Finding(
        f"{column_text} of {count_text(n_scans, 'scan', 'differ')} between "
        f"{people_name} and {other_name}. The values of {people_name} were used. "
        "Check whether the rows belong to the same people:",
        kind=ASSUMED,
        people=tuple(cell_pair.scan_name for cell_pair in differing_pairs),
        values={
            "column": column_name,
            "tables": (people_contents.path_and_sheet, other_contents.path_and_sheet),
        },
    )


def _make_empty_label_notes(
    people_contents: TableContents,
    other_contents: TableContents,
    column_name: str,
    cell_pairs: Sequence[_CellPair],
) -> list[Finding]:
    """Return a note on scans that have a label in the other table alone."""
    scan_names = tuple(
        cell_pair.scan_name for cell_pair in cell_pairs if cell_pair.people_cell is None
    )
    if not scan_names:
        return []
    people_name, other_name = _list_two_table_names(people_contents, other_contents)
    n_scans = len(scan_names)
    return [
        Finding(
            f"{column_name} of {count_text(n_scans, 'scan')} "
            f"{verb_form(n_scans, 'are')} missing in {people_name}, but not in "
            f"{other_name}, which was not used for labels:",
            kind=ASSUMED,
            people=scan_names,
        )
    ]


def _list_two_table_names(
    people_contents: TableContents, other_contents: TableContents
) -> tuple[str, str]:
    """Return the names of two tables, with their folders if the names are equal."""
    if people_contents.name_and_sheet == other_contents.name_and_sheet:
        return people_contents.path_and_sheet, other_contents.path_and_sheet
    return people_contents.name_and_sheet, other_contents.name_and_sheet
