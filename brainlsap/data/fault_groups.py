"""Say a fault that many scans share once, with the list of them."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

_WIDTH = 86


def fault_lines(faults: Sequence[str], folder: Path) -> list[str]:
    r"""Return faults as lines of text; those that differ only in whose are joined.

    Parameters
    ----------
    faults : sequence of str
        Each `scan: what` or `file: what`.
    folder : Path
        Of the cohort; files inside are listed by their path below it.

    Returns
    -------
    list of str
        In the order of the faults. Below a fault that several share stand the names
        of all of them.

    Examples
    --------
    >>> faults = ["sub-01: no connectome", "sub-02: no age", "sub-03: no connectome"]
    >>> print("\n".join(fault_lines(faults, Path("study"))))
    2 scans: no connectome
      sub-01, sub-03
    sub-02: no age
    """
    shared: dict[str, list[str]] = {}
    for fault in faults:
        where, _, what = fault.partition(": ")
        shared.setdefault(what or fault, []).append(where)
    lines = []
    for fault in faults:
        where, _, what = fault.partition(": ")
        places = shared.pop(what or fault, None)
        if places is None:
            continue
        lines += [fault] if len(places) == 1 else _group(places, what, folder)
    return lines


def _group(places: Sequence[str], what: str, folder: Path) -> list[str]:
    files = all("/" in place or "\\" in place for place in places)
    names = [_below(place, folder) for place in places]
    head = f"{len(names)} {'files' if files else 'scans'}: {what}"
    if files:
        return [head, *(f"  {name}" for name in names)]
    return [
        head,
        *textwrap.wrap(
            ", ".join(names),
            _WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        ),
    ]


def _below(place: str, folder: Path) -> str:
    path = Path(place)
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else place
