"""What is found while a study is read: faults, notes, and what was left out.

A finding is a record with fields. Code that groups, suggests or withholds reads the
fields; the text is made once, where it is shown, and may be reworded freely.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from brainlsap.exceptions import BrainlsapError
from brainlsap.text import listed

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
ASSUMED, CLASSES, BASELINE, SCALES_DIFFER = (
    "assumed",
    "classes",
    "baseline",
    "scales differ",
)
OTHER_CLASSES = "other classes"
"""Scans left out, since classes were merged and theirs is not among these."""
CHOICES = frozenset((ASSUMED, CLASSES, OTHER_CLASSES, BASELINE, SCALES_DIFFER))
"""Kinds of notes on what was chosen for the user, whom the command line tells."""
# Most places that are named of findings that are alike.
_MAX_PLACES = 5
_LINE_WIDTH = 84


@dataclass(frozen=True)
class Finding:
    """One fault, note, or statement of what was left out.

    Parameters
    ----------
    message : str
        What was found, and what to do; names neither scan, person nor file.
    severity : {"note", "fault", "left out"}
        "fault" keeps a cohort from being loaded, "left out" says that data were.
    kind : str
        Key of the finding for code that acts on it, such as `FOREIGN_IDS`.
    scan, participant : str
        Whose it is, if it is of one scan or one person.
    path : str or Path, optional
        Of which file it is.
    got : str
        What came in place of what was expected. Findings that are alike may differ in
        it.
    regions : tuple of str
        The regions that it is about.
    values : mapping
        What code that acts on it needs to know, by name, such as `atlas`.
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
    regions: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    people: tuple[str, ...] = ()
    max_people: int = 5

    @classmethod
    def from_error(cls, error: BrainlsapError, scan: str = "") -> "Finding":
        """Return an error as the fault of a scan, or of the study."""
        return cls(
            message=_without_full_stop(error.message),
            severity=FAULT,
            kind=error.kind,
            scan=scan,
            path=error.path,
            got=error.got,
            values=error.values,
        )

    @property
    def place(self) -> str:
        """File, scan or person that the finding is of; empty if it is of the study.

        A file says whose it is.
        """
        return str(self.path or self.scan or self.participant)

    def text(self) -> str:
        """Return the finding without its place."""
        words = [self.message]
        if self.people:
            words.append(listed(self.people, self.max_people))
        text = " ".join(words)
        return f"{text}; got {self.got}" if self.got else text

    def __str__(self) -> str:
        return f"{self.place}: {self.text()}" if self.place else self.text()

    def shareable_text(self) -> str:
        """Return the text without the names that must not leave the house."""
        if not self.people:
            return str(self)
        return f"{self.message} {NAMES_WITHHELD}"

    def to_jsonable(self) -> dict[str, Any]:
        """Return the fields that are not empty, as JSON takes them."""
        fields = {name: value for name, value in asdict(self).items() if value}
        if self.path is not None:
            fields["path"] = str(self.path)
        return fields

    @classmethod
    def from_jsonable(cls, fields: Mapping[str, Any] | str) -> "Finding":
        """Return a finding of :meth:`to_jsonable`, or of a bare text."""
        if isinstance(fields, str):
            return cls(fields)
        sequences = {
            name: tuple(fields[name])
            for name in ("regions", "people")
            if name in fields
        }
        return cls(**{**fields, **sequences})


def as_findings(entries: Iterable[Finding | str]) -> tuple[Finding, ...]:
    """Return findings, and texts as plain notes.

    >>> as_findings(["made from arrays"])[0].severity
    'note'
    """
    return tuple(
        Finding(entry) if isinstance(entry, str) else entry for entry in entries
    )


def as_faults(entries: Iterable[Finding | str]) -> list[Finding]:
    """Return findings as faults, and texts as faults of the study."""
    return [replace(finding, severity=FAULT) for finding in as_findings(entries)]


def group_findings(findings: Iterable[Finding], folder: str | Path = "") -> list[str]:
    r"""Return the texts of findings; those of one kind and message become one text.

    Of what came instead (`got`), which may differ, the first is told. Paths are shown
    relative to `folder`.

    >>> faults = [Finding("no age", scan=f"sub-{n}", got=f"{n}0") for n in (1, 2)]
    >>> print("\n".join(group_findings([*faults, Finding("no scan", scan="sub-3")])))
    2 scans: no age; the first got 10
        sub-1, sub-2
    sub-3: no scan
    """
    alike_findings: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.kind, finding.message, *finding.people)
        if not finding.place:
            key = (*key, finding.got, "of the study")
        alike_findings.setdefault(key, []).append(finding)
    return [_describe_alike(alike, folder) for alike in alike_findings.values()]


def _describe_alike(alike: Sequence[Finding], folder: str | Path) -> str:
    """Return the text of findings that are alike: what it is, and below where."""
    first = alike[0]
    if len(alike) == 1 or not first.place:
        return str(first)
    text = first.message
    if first.got:
        text += f"; the first got {first.got}"
    places = [_shorten_path(finding, folder) for finding in alike]
    lines = textwrap.wrap(
        listed(places, _MAX_PLACES),
        _LINE_WIDTH,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n    ".join([f"{len(alike)} {_plural_noun(alike)}: {text}", *lines])


def _plural_noun(findings: Sequence[Finding]) -> str:
    """Return what findings are of: files, scans or people."""
    if all(finding.path for finding in findings):
        return "files"
    if any(finding.scan for finding in findings):
        return "scans"
    return "people"


def _shorten_path(finding: Finding, folder: str | Path) -> str:
    """Return the place of a finding, a path relative to a folder if it is below it."""
    if not finding.path or not str(folder):
        return finding.place
    # A sheet of a workbook is named behind the path of its file.
    path = Path(finding.place)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _without_full_stop(message: str) -> str:
    """Return a message without its full stop, as entries of a list have none."""
    is_ellipsis = message.endswith(("..", " ."))
    return message if is_ellipsis else message.removesuffix(".")


__all__ = [
    "ASSUMED",
    "BASELINE",
    "CHOICES",
    "CLASSES",
    "FAULT",
    "FOREIGN_IDS",
    "LEFT_OUT",
    "NAMES_WITHHELD",
    "NOTE",
    "OTHER_CLASSES",
    "ROW_ORDER",
    "SCALES_DIFFER",
    "Finding",
    "Severity",
    "as_faults",
    "as_findings",
    "group_findings",
]
