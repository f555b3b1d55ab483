"""Tell by their structure whether ids are of people or of their sessions.

An id is taken apart into words and numbers. Where one part varies within groups of ids
that agree in the rest (`OAS30001_MR_d0129` and `OAS30001_MR_d0929`), the rest may be a
person and the part a visit, or the rest a site and the part a person. What varies
decides: names of visits and dates are no people; other parts count as visits where a
few of them come again and again, or the labels agree within the groups.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

# Ids of people that have several parts, then words and numbers.
_PARTS = re.compile(
    r"\d{3}_S_\d{4,5}|(?<=ADNI)\d{3}S\d{4,5}|NDAR_?INV[A-Z0-9]{8}|[^\W\d_]+|\d+"
)
_UNITS = (
    r"(?:v|vis|visits?|ses|sess|sessions?|m|mo|mon|months?|y|yr|years?|w|wk|weeks?|d|"
    r"days?|t|tp|time|timepoint|wave|runs?|scans?|mr|mri|fu|followup|exam|retest)"
)
# One word of a visit: V1, 12m, baseline; and a date.
_VISIT_WORD = re.compile(
    rf"{_UNITS}\d{{1,4}}|\d{{1,3}}{_UNITS}|bl|bsl|baseline|base|fu|followup|pre|post|"
    r"test|retest|sc|screening|init|initial|(?:19|20)\d{6}"
)
_DATE = re.compile(r"(?:19|20)\d\d[-_.]?[01]\d[-_.]?[0-3]\d|d(?:ay)?-?_?\d{1,5}")
# Words that may stand beside that of a visit.
_BESIDE = re.compile(rf"{_UNITS}|\d{{1,3}}|mr|mri|pet|ct|fdg|t1|t1w")
# Most scans of a person where parts do not recur, and most different sexes by mistake.
_MOST_SCANS, _MOST_DIFFER = 6, 0.1
# Smallest share of all ids in groups where no word says that parts are visits.
_LEAST_SHARE = 0.1
_FEWEST_PEOPLE = 4
# Levels of the permutation test, where parts recur in many groups, and where not.
_N_PERMUTATIONS, _P_RECURRING, _P_VALUE = 999, 0.05, 0.005


class _Cut(NamedTuple):
    """One part of all ids that can be cut out, and the groups of ids that agree."""

    rows: np.ndarray
    """Places of the ids of groups of two or more."""
    groups: np.ndarray
    """The group of each."""
    ends: list[str]
    """What was cut out of each, in lower case."""
    stems: list[str]
    """The rest of the ids of each group."""

    @property
    def n_groups(self) -> int:
        return len(np.unique(self.groups))

    @property
    def n_ends(self) -> int:
        return len({*self.ends})


def find_session_ids(
    ids: Sequence[str], labels: Sequence[str], sexes: Sequence[object] = ()
) -> tuple[np.ndarray, int]:
    """Return which ids are of sessions, and of how many people they may be.

    Parameters
    ----------
    ids : sequence of str
        One for every person, no two alike.
    labels : sequence of str
        The class of each.
    sexes : sequence, optional
        The sex of each, where it is known: it does not change between visits.

    Returns
    -------
    rows : int array
        Places of such ids, sorted; empty where there are none.
    n_people : int

    Examples
    --------
    >>> labels = ["CN", "CN", "AD", "AD"]
    >>> rows, n_people = find_session_ids(["1_V1", "1_V2", "2_V1", "2_V2"], labels)
    >>> len(rows), n_people
    (4, 2)
    """
    best, best_rank = None, (0, 0, 0)
    for cut in _cuts(ids):
        rank = (_visit_rank(cut, ids, labels, sexes), len(cut.rows), cut.n_groups)
        if rank[0] and rank > best_rank:
            best, best_rank = cut, rank
    if best is None:
        return np.array([], dtype=np.int64), 0
    return np.sort(best.rows), best.n_groups


def _cuts(ids: Sequence[str]) -> Iterator[_Cut]:
    """Yield every part that can be cut out, where ids then agree in the rest."""
    by_place: dict[tuple[int, int], dict[str, list[tuple[int, str]]]] = {}
    for row, name in enumerate(ids):
        for place, stem, end in _parts(name):
            stems = by_place.setdefault(place, {})
            stems.setdefault(stem, []).append((row, end))
    for stems in by_place.values():
        # an id without an end is a first visit where others have ends
        groups = {stem: group for stem, group in stems.items() if len(group) > 1}
        if len(groups) > 1:
            sizes = [len(group) for group in groups.values()]
            members = [member for group in groups.values() for member in group]
            rows, ends = zip(*members, strict=True)
            codes = np.repeat(np.arange(len(groups)), sizes)
            lower = [end.lower() for end in ends]
            yield _Cut(np.array(rows), codes, lower, [*groups])


def _parts(name: str) -> Iterator[tuple[tuple[int, int], str, str]]:
    """Yield the place of each part, or run of parts, of an id, the rest, and the part.

    The place is the number of parts before and, unless nothing is behind, behind it.
    """
    spans = [match.span() for match in _PARTS.finditer(name)]
    n_parts = len(spans)
    yield (n_parts, 0), f"{name}*", ""
    for first in range(n_parts):
        for last in range(first, n_parts):
            start, end = spans[first][0], spans[last][1]
            is_whole = _is_edge(name, start) and _is_edge(name, end)
            if (first, last) == (0, n_parts - 1) or not (is_whole or first == last):
                continue
            before, behind = name[:start], name[end:]
            if last == n_parts - 1:
                before = before.rstrip("-_. ")
            place = (first, n_parts - 1 - last)
            yield place, f"{before}*{behind}", name[start:end]


def _is_edge(name: str, place: int) -> bool:
    """Return whether a word begins or ends at a place: also at the v of `01v2`."""
    if place in (0, len(name)):
        return True
    before, behind = name[place - 1], name[place]
    return not (before.isalnum() and behind.isalnum()) or (
        before.isdigit() and behind.isalpha()
    )


def _visit_rank(
    cut: _Cut, ids: Sequence[str], labels: Sequence[str], sexes: Sequence[object]
) -> int:
    """Return how surely parts that were cut out are visits, and the rest is people.

    2 by their names, 1 by labels that agree, 0 not at all.
    """
    if len(sexes):
        known = [(group, sexes[row]) for row, group in zip(*cut[:2], strict=True)]
        pairs = {(group, sex) for group, sex in known if sex == sex and sex}
        n_differ = len(pairs) - len({group for group, _ in pairs})
        if n_differ > _MOST_DIFFER * cut.n_groups:
            return 0
    ends = [end for end in cut.ends if end]
    is_named = all(map(_is_visit, ends))
    # scans of a day may be numbered: then dates are many and numbers few
    are_dates = all(map(_DATE.fullmatch, ends)) and 4 * cut.n_groups >= len(ends)
    if is_named and (cut.n_groups >= cut.n_ends or are_dates):
        return 2
    rests = [stem.replace("*", "").strip("-_. ").lower() for stem in cut.stems]
    if len(cut.rows) < _LEAST_SHARE * len(ids) or all(map(_is_visit, rests)):
        return 0
    facts = [str(labels[row]) for row in cut.rows]
    if len(sexes):
        facts = [
            f"{fact} {sexes[row]}" for fact, row in zip(facts, cut.rows, strict=True)
        ]
    return int(_agree(cut, np.unique(facts, return_inverse=True)[1]))


def _is_visit(end: str) -> bool:
    """Return whether a part is a word for a visit or a date, maybe with others."""
    if _DATE.fullmatch(end):
        return True
    words = [word for word in re.split(r"[-_. ]+", end) if word]
    joined = "".join(words)  # ses-01, follow_up
    is_word = [bool(_VISIT_WORD.fullmatch(word)) for word in words]
    is_beside = [bool(_BESIDE.fullmatch(word)) for word in words]
    rest_fits = all(map(max, zip(is_word, is_beside, strict=True)))
    return bool(_VISIT_WORD.fullmatch(joined)) or (any(is_word) and rest_fits)


def _agree(cut: _Cut, codes: np.ndarray) -> bool:
    """Return whether facts agree within groups, as those of one person do.

    They have to agree beyond chance, by a permutation test. Where few parts recur in
    many groups, also in more than half of the way from chance to always.
    """
    n_codes, n_groups = codes.max() + 1, cut.groups.max() + 1

    def count_same(values: np.ndarray) -> float:
        cells = np.bincount(cut.groups * n_codes + values, minlength=n_groups * n_codes)
        table = cells.astype(float)
        return float((table * (table - 1)).sum())

    sizes = np.bincount(cut.groups).astype(float)
    same, n_pairs = count_same(codes), (sizes * (sizes - 1)).sum()
    share = np.bincount(codes) / len(codes)
    expected = (share**2).sum()
    is_alike = same / n_pairs >= (1 + expected) / 2
    rng = np.random.default_rng(0)
    drawn = [count_same(rng.permutation(codes)) for _ in range(_N_PERMUTATIONS)]
    p_value = (1 + sum(count >= same for count in drawn)) / (1 + _N_PERMUTATIONS)
    if cut.n_groups >= 2 * cut.n_ends:
        # of few people even perfect agreement may not reach the level
        is_same = same == n_pairs and cut.n_groups >= _FEWEST_PEOPLE
        return is_alike and (p_value < _P_RECURRING or is_same)
    # groups such as HC and AD differ in words, and people in numbers
    numbers = {re.sub(r"\D+", " ", stem) for stem in cut.stems}
    is_of_people = (
        len(numbers) >= 0.75 * cut.n_groups and np.median(sizes) <= _MOST_SCANS
    )
    return is_of_people and p_value < _P_VALUE
