"""Names of scans as tools write them, taken apart into person and visit."""

import re
from dataclasses import dataclass
from pathlib import Path

_PTID = re.compile(r"(?P<person>(?:sub-)?\d{3}_S_\d{4,5})(?:[_-](?P<visit>.+))?")
# What follows begins with a letter, as entities and suffixes do: sub-01_2 and sub-01-2
# are other people than sub-01.
_BIDS = re.compile(
    r"(?P<person>sub-[A-Za-z0-9]+)(?:_(?P<visit>ses-[A-Za-z0-9]+))?"
    r"(?:(?:_(?!ses-)[A-Za-z]|\.).*)?"
)
# BIDS names hold letters and digits only, so a PTID loses its underscores there.
_FLAT_PTID = re.compile(r"(?:ADNI)?(\d{3})S(\d{4,5})")


@dataclass(frozen=True)
class ScanName:
    """Who was scanned, at which visit, and by which kind of FreeSurfer run.

    Parameters
    ----------
    participant : str
        The person, as written.
    session : str
        The visit, empty where the name has none.
    base : str
        Base template of a longitudinal run, empty for a cross-sectional one.
    """

    participant: str
    session: str = ""
    base: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Person and visit in the one spelling that names are compared by."""
        return person_key(self.participant), visit_key(self.session)


def parse_scan_name(text: str) -> ScanName:
    """Take the name of a scan, of its folder or of its row apart.

    Parameters
    ----------
    text : str
        `sub-X_ses-Y`, `PTID_date` of ADNI, either with `.long.<base>` of
        FreeSurfer's longitudinal stream, or any other name, which then is the
        person's. A path counts by its last part; a slash at its end is dropped.

    Returns
    -------
    ScanName

    Examples
    --------
    >>> parse_scan_name("/data/sub-01_ses-M00.long.sub-01/")
    ScanName(participant='sub-01', session='ses-M00', base='sub-01')
    >>> parse_scan_name("002_S_0295_2006-04-18")
    ScanName(participant='002_S_0295', session='2006-04-18', base='')
    >>> parse_scan_name("NewYork_a_sub44515")
    ScanName(participant='NewYork_a_sub44515', session='', base='')
    """
    name = Path(text.strip().replace("\\", "/").rstrip("/")).name
    name, _, base = name.partition(".long.")
    for pattern in (_PTID, _BIDS):
        found = pattern.fullmatch(name)
        if found:
            return ScanName(found["person"], found["visit"] or "", base)
    return ScanName(name, "", base)


def is_folder_name(name: str) -> bool:
    """Tell whether a name is that of a folder and stays where it is.

    Parameters
    ----------
    name : str
        As written.

    Returns
    -------
    bool
        Letters, digits, `-`, `_` and `.`, no point first: no path, no `..`.

    Examples
    --------
    >>> [is_folder_name(name) for name in ("sub-01", "../sub-01", "/etc", "..", "")]
    [True, False, False, False, False]
    """
    return re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name) is not None


def person_key(participant: str) -> str:
    """Return a person's name in the one spelling that names are compared by.

    Parameters
    ----------
    participant : str
        As written.

    Returns
    -------
    str
        Without `sub-`; ADNI's numbers with their underscores.

    Examples
    --------
    >>> person_key("sub-ADNI002S0295") == person_key("002_S_0295")
    True
    """
    name = participant.strip().removeprefix("sub-")
    flat = _FLAT_PTID.fullmatch(name)
    return f"{flat[1]}_S_{flat[2]}" if flat else name


def visit_key(session: str) -> str:
    """Return a visit's name in the one spelling that names are compared by.

    Parameters
    ----------
    session : str
        As written.

    Returns
    -------
    str
        Without `ses-`.

    Examples
    --------
    >>> visit_key("ses-M00")
    'M00'
    """
    return session.strip().removeprefix("ses-")


def visit_order(session: str) -> tuple[object, ...]:
    """Return the key by which the visits of a person are sorted in time.

    Parameters
    ----------
    session : str
        A name with numbers (`ses-M06`), a date, or `bl`, `sc`, `baseline`,
        `screening`, which come first.

    Returns
    -------
    tuple
        Numbers count by value: M6 before M12.

    Examples
    --------
    >>> sorted(["ses-M12", "ses-M6", "bl"], key=visit_order)
    ['bl', 'ses-M6', 'ses-M12']
    """
    name = visit_key(session).lower()
    first = ("sc", "screening", "bl", "baseline", "init")
    rank = first.index(name) if name in first else len(first)
    parts = re.split(r"(\d+)", name)
    return rank, *((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts if p)
