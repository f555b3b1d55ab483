"""Tell files apart by their names."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import CohortError

CONNECTOME_PATTERNS = (
    *("*connectivity.*", "*connectome*.*", "*relmat.*", "*_sc.*", "*desc-sc.*"),
    "Compute_Connectivity/sc.npy",
)
_SIDES = (("left", "right"), ("L", "R"), ("lh", "rh"))
_LEFT = r"(^|_|hemi-)(left|L|lh)(?=[_.])"
# Words in names of files that say the parcellation, and words that say another.
ATLAS_WORDS = {
    "destrieux160": (("destrieux", "a2009s"), ("desikan",)),
    "desikan82": (("desikan", "aparc"), ("destrieux", "a2009s")),
}


def files_like(
    files: Iterable[Path], patterns: Sequence[str], suffixes: Sequence[str] | None
) -> list[Path]:
    """Return the files that fit one of some patterns.

    Parameters
    ----------
    files : iterable of Path
        To choose from.
    patterns : sequence of str
        Of the name; one with `/` is of the end of the path.
    suffixes : sequence of str or None
        That are possible; None for any.

    Returns
    -------
    list of Path

    Examples
    --------
    >>> files = [Path("sub-01/x_sc.csv"), Path("sub-01/x_sc.json")]
    >>> [path.name for path in files_like(files, ["*_sc.*"], [".csv"])]
    ['x_sc.csv']
    """

    def fits(path: Path, glob: str) -> bool:
        return (
            fnmatch(str(path), f"*/{glob}") if "/" in glob else fnmatch(path.name, glob)
        )

    return [
        path
        for path in files
        if (suffixes is None or path.suffix.lower() in suffixes)
        and any(fits(path, glob) for glob in patterns)
    ]


def files_of_atlas(files: list[Path], atlas: Atlas) -> list[Path]:
    """Return the files whose names say the atlas; all where none does.

    Parameters
    ----------
    files : list of Path
        To choose from.
    atlas : Atlas
        Whose name, or whose parcellation's name, is looked for.

    Returns
    -------
    list of Path
    """
    words, others = ATLAS_WORDS.get(atlas.name, ((atlas.name.lower(),), ()))
    fitting = [
        path
        for path in files
        if any(word in path.name.lower() for word in words)
        and not any(word in path.name.lower() for word in others)
    ]
    fitting = fitting or files
    # micapipe writes parts of its matrix beside the whole
    return [path for path in fitting if "full-connectome" in path.name] or fitting


def only_file(found: list[Path], what: str, patterns: Sequence[str]) -> Path:
    """Return the only file of a list.

    Parameters
    ----------
    found : list of Path
        The files that fit.
    what : str
        What they are, for the message.
    patterns : sequence of str
        That they were looked for by.

    Returns
    -------
    Path

    Raises
    ------
    CohortError
        Where there is none, or more than one.
    """
    if len(found) == 1:
        return found[0]
    if not found:
        raise CohortError(f"no {what}; expected one file {' or '.join(patterns)}")
    names = ", ".join(path.name for path in found)
    raise CohortError(
        f"{len(found)} files could be its {what}: {names}; choose by "
        f"pattern={{{what!r}: ...}}"
    )


def other_side(path: Path) -> Path | None:
    """Return the file of the other side beside a file of one side.

    Parameters
    ----------
    path : Path
        Named `..._hemi-left_...`, `hemi-L`, `hemi-lh` or `lh...`, or so for the right.

    Returns
    -------
    Path or None
        None where the name says no side, or there is no such file.

    Examples
    --------
    >>> other_side(Path("sub-01_thickness.tsv")) is None
    True
    """
    for one, other in (*_SIDES, *((right, left) for left, right in _SIDES)):
        name = re.sub(rf"(^|_|hemi-){one}(?=[_.])", rf"\1{other}", path.name)
        if name != path.name and path.with_name(name).is_file():
            return path.with_name(name)
    return None


def without_right_twins(found: list[Path]) -> list[Path]:
    """Leave out files of the right side whose left ones are there: one table in two.

    Parameters
    ----------
    found : list of Path
        Files that fit.

    Returns
    -------
    list of Path
    """
    twins = {other_side(path) for path in found if re.search(_LEFT, path.name)}
    return [path for path in found if path not in twins]
