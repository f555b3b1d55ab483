"""Findings of reading a study: faults, notes, and scans that are left out.

A finding is a record with fields. Code that groups, suggests or withholds reads the
fields; the text is made once, where it is shown, and may be reworded freely.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from brainlsap.exceptions import BrainlsapError
from brainlsap.text import join_message, join_with_commas

Severity = Literal["fault", "note", "left out"]
FAULT: Severity = "fault"
NOTE: Severity = "note"
LEFT_OUT: Severity = "left out"
NAMES_WITHHELD = "[names withheld]"
# Kinds of findings that code acts on.
FOREIGN_IDS = "foreign ids"
"""Nobody in the table of people has files."""
ROW_ORDER = "row order"
"""The rows of a connectome were read in the order of a tool."""
ASSUMED = "assumed"
CLASSES = "classes"
BASELINE = "baseline"
SCALES_DIFFER = "scales differ"
OTHER_CLASSES = "other classes"
"""Scans that are left out because their class is not among the merged classes."""
EXCLUDED = "excluded"
"""Scans that are left out because the user named them."""
FAULTY = "fault"
"""Scans that are left out because of a fault, at the user's request."""
SHARED_CONNECTOME = "shared connectome"
"""One connectome is used for all participants."""
NO_LABEL = "no label"
"""Scans without a label, which are faults or are left out."""
CHANGED_PERSON = "changed person"
"""Age, birth or dates of a person contradict each other between visits."""
WRONG_DATE = "wrong date"
"""A date of a scan or a birth contradicts an age or other dates."""
FIRST_VISIT_VALUE = "value of the first visit"
"""All visits of a person have the value of the first one, which changes in time."""
ONE_ROW = "one row for several scans"
"""The row of a person in a table is used for several scans of the person."""
CHOICES = frozenset(
    (
        *(ASSUMED, CLASSES, OTHER_CLASSES, BASELINE, SCALES_DIFFER),
        *(EXCLUDED, FAULTY, NO_LABEL, SHARED_CONNECTOME, CHANGED_PERSON),
        *(FIRST_VISIT_VALUE, ONE_ROW, WRONG_DATE),
    )
)
"""Kinds of notes that the command line prints for the user.

They are on automatic choices, and on values that contradict each other.
"""
# Largest number of places that are named of similar findings.
_MAX_PLACES = 5
_LINE_WIDTH = 84


@dataclass(frozen=True)
class Finding:
    """One fault, note, or statement of what was left out.

    Parameters
    ----------
    message : str
        Text of the finding; it names neither scan, person nor file. Without `got` and
        `advice` it may also give the solution.
    severity : {"note", "fault", "left out"}
        "fault" keeps a cohort from being loaded, "left out" says that data were.
    kind : str
        Key of the finding for code that acts on it, such as `FOREIGN_IDS`.
    scan, participant : str
        Scan or person of the finding, if it concerns only one.
    path : str or Path, optional
        File of the finding.
    got : str
        Actual value, which differs from the expected value. Findings of the same kind
        and message may differ in it.
    advice : str
        Solution, at the end of the text.
    regions : tuple of str
        The regions that it is about.
    values : mapping
        Values for code that acts on the finding, by name, for example `atlas`.
    people : tuple of str
        People, scans or folders named after them, that the text ends with. They must
        not leave the house.
    max_people : int
        At most as many of them are shown.

    Examples
    --------
    >>> finding = Finding("no connectome; add it", scan="sub-01")
    >>> str(finding)
    'sub-01: no connectome; add it'
    >>> spare = Finding("left out: files of", people=("sub-07", "sub-09"))
    >>> str(spare), spare.shareable_text()
    ('left out: files of sub-07, sub-09', 'left out: files of [names withheld]')
    """

    message: str
    severity: Severity = NOTE
    kind: str = ""
    scan: str = ""
    participant: str = ""
    path: str | Path | None = None
    got: str = ""
    advice: str = ""
    regions: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    people: tuple[str, ...] = ()
    max_people: int = 5

    @classmethod
    def from_error(cls, reading_error: BrainlsapError, scan: str = "") -> "Finding":
        """Return an error as the fault of a scan, or of the study."""
        return cls(
            message=_message_without_full_stop(reading_error.message),
            severity=FAULT,
            kind=reading_error.kind,
            scan=scan,
            path=reading_error.path,
            got=reading_error.got,
            advice=_message_without_full_stop(reading_error.advice),
            values=reading_error.values,
        )

    @property
    def place(self) -> str:
        """File, scan or person that the finding is of; empty if it is of the study.

        A file says whose it is.
        """
        return str(self.path or self.scan or self.participant)

    def text(self) -> str:
        """Return the finding without its place."""
        text_parts = [self.message]
        if self.people:
            text_parts.append(join_with_commas(self.people, self.max_people))
        return join_message(" ".join(text_parts), self.got, self.advice)

    def __str__(self) -> str:
        return f"{self.place}: {self.text()}" if self.place else self.text()

    def shareable_text(self) -> str:
        """Return the text without the names that must not leave the house."""
        if not self.people:
            return str(self)
        return join_message(f"{self.message} {NAMES_WITHHELD}", advice=self.advice)

    def to_jsonable(self) -> dict[str, Any]:
        """Return the fields that are not empty, as JSON takes them."""
        filled_fields = {
            field_name: field_value
            for field_name, field_value in asdict(self).items()
            if field_value
        }
        if self.path is not None:
            filled_fields["path"] = str(self.path)
        return filled_fields

    @classmethod
    def from_jsonable(cls, stored_fields: Mapping[str, Any] | str) -> "Finding":
        """Return a finding of :meth:`to_jsonable`, or of a bare text."""
        if isinstance(stored_fields, str):
            return cls(stored_fields)
        tuples_by_field = {
            field_name: tuple(stored_fields[field_name])
            for field_name in ("regions", "people")
            if field_name in stored_fields
        }
        return cls(**{**stored_fields, **tuples_by_field})


def make_findings(findings_or_texts: Iterable[Finding | str]) -> tuple[Finding, ...]:
    """Return findings, and texts as plain notes.

    >>> make_findings(["made from arrays"])[0].severity
    'note'
    """
    return tuple(
        Finding(finding_or_text)
        if isinstance(finding_or_text, str)
        else finding_or_text
        for finding_or_text in findings_or_texts
    )


def make_fault_findings(findings_or_texts: Iterable[Finding | str]) -> list[Finding]:
    """Return findings as faults, and texts as faults of the study."""
    return [
        replace(finding, severity=FAULT) for finding in make_findings(findings_or_texts)
    ]


def check_are_faults(findings: Iterable[Finding]) -> None:
    """Raise unless all findings by which a study is refused are faults.

    >>> check_are_faults([Finding("no age", FAULT)])
    """
    for finding in findings:
        if finding.severity != FAULT:
            raise TypeError(
                f"a study is refused because of a finding of the severity "
                f"{finding.severity!r}; give it FAULT: {finding.message}"
            )


def list_grouped_finding_texts(
    findings: Iterable[Finding], folder: str | Path = ""
) -> list[str]:
    r"""Return the texts of findings; those of one kind and message become one text.

    Of what came instead (`got`), which may differ, the first is told. Paths are shown
    relative to `folder`.

    >>> faults = [Finding("no age", scan=f"sub-{n}", got=f"{n}0") for n in (1, 2)]
    >>> texts = list_grouped_finding_texts([*faults, Finding("no scan", scan="sub-3")])
    >>> print("\n".join(texts))
    2 scans: no age; the first got 10
        sub-1, sub-2
    sub-3: no scan
    """
    findings_by_key: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        group_key = (finding.kind, finding.message, finding.advice, *finding.people)
        if not finding.place:
            group_key = (*group_key, finding.got, "of the study")
        findings_by_key.setdefault(group_key, []).append(finding)
    return [
        _similar_findings_text(similar_findings, folder)
        for similar_findings in findings_by_key.values()
    ]


def _similar_findings_text(
    similar_findings: Sequence[Finding], folder: str | Path
) -> str:
    """Return the text of findings that are alike: what it is, and below where."""
    first_finding = similar_findings[0]
    if len(similar_findings) == 1 or not first_finding.place:
        return str(first_finding)
    group_text = join_message(
        first_finding.message,
        first_finding.got,
        first_finding.advice,
        verb="the first got",
    )
    # A person may have a finding for each of several scans.
    finding_places = [
        *dict.fromkeys(
            _short_place_text(finding, folder) for finding in similar_findings
        )
    ]
    if len(finding_places) == 1:
        return f"{first_finding.place}: {group_text}"
    place_lines = textwrap.wrap(
        join_with_commas(finding_places, _MAX_PLACES),
        _LINE_WIDTH,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n    ".join(
        [
            f"{len(finding_places)} {_plural_subject_noun(similar_findings)}: "
            f"{group_text}",
            *place_lines,
        ]
    )


def _plural_subject_noun(similar_findings: Sequence[Finding]) -> str:
    """Return the subject of findings: files, scans or people."""
    if all(finding.path for finding in similar_findings):
        return "files"
    if any(finding.scan for finding in similar_findings):
        return "scans"
    return "people"


def _short_place_text(finding: Finding, folder: str | Path) -> str:
    """Return the place of a finding, a path relative to a folder if it is below it."""
    if not finding.path or not str(folder):
        return finding.place
    # A sheet of a workbook is named behind the path of its file.
    finding_path = Path(finding.place)
    return (
        str(finding_path.relative_to(folder))
        if finding_path.is_relative_to(folder)
        else str(finding_path)
    )


def _message_without_full_stop(message: str) -> str:
    """Return a message without its full stop, as entries of a list have none."""
    is_ellipsis = message.endswith(("..", " ."))
    return message if is_ellipsis else message.removesuffix(".")


__all__ = [
    "ASSUMED",
    "BASELINE",
    "CHANGED_PERSON",
    "CHOICES",
    "CLASSES",
    "FAULT",
    "FIRST_VISIT_VALUE",
    "FOREIGN_IDS",
    "LEFT_OUT",
    "NAMES_WITHHELD",
    "NOTE",
    "NO_LABEL",
    "ONE_ROW",
    "OTHER_CLASSES",
    "ROW_ORDER",
    "SCALES_DIFFER",
    "SHARED_CONNECTOME",
    "WRONG_DATE",
    "Finding",
    "Severity",
    "check_are_faults",
    "list_grouped_finding_texts",
    "make_fault_findings",
    "make_findings",
]
