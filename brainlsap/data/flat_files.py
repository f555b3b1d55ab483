"""Matrices of a study that lie in one folder and are named by id."""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from brainlsap.data.connectomes import FORMATS
from brainlsap.data.scan_names import ScanName, parse_scan_name
from brainlsap.data.sidecars import NAMES
from brainlsap.exceptions import ParameterError

# Folders that are looked into where no pattern is given.
FOLDERS = ("connectomes", "connectivity", "matrices")
_FIELDS = {
    "participant": r"(?P<participant>.+?)",
    "session": r"(?P<session>[^_/]+)",
    "scan": r"(?P<scan>.+?)",
}


@dataclass(frozen=True)
class FlatFile:
    """A file, and whose it is by its name.

    Parameters
    ----------
    path : Path
        Of the file.
    name : ScanName
        Person and visit.
    """

    path: Path
    name: ScanName


def is_template(pattern: str | None) -> bool:
    """Tell whether a pattern names people by fields such as `{participant}`.

    Parameters
    ----------
    pattern : str or None
        As the caller gives it.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_template("sc/{participant}.csv"), is_template("*_sc.csv")
    (True, False)
    """
    return pattern is not None and "{" in pattern


def find_flat_files(folder: Path, pattern: str | None = None) -> list[FlatFile]:
    """Find the matrices of a study in one folder.

    Parameters
    ----------
    folder : Path
        Of the cohort.
    pattern : str, optional
        Path below the folder, in which `{participant}`, `{session}` or `{scan}` (both
        in one) stand for names and `*` for anything: `sc/{participant}_{session}.csv`.
        By default every matrix in a folder `connectomes`, `connectivity` or
        `matrices`, with names of scans such as `sub-01_ses-M00.csv`.

    Returns
    -------
    list of FlatFile
        In the order of their names.

    Raises
    ------
    ParameterError
        Where the pattern has no or unknown fields, or leaves the folder.

    Examples
    --------
    >>> find_flat_files(Path("no_such_folder"))
    []
    """
    if is_template(pattern):
        return _by_template(folder, str(pattern))
    return [
        FlatFile(path, parse_scan_name(path.name.partition(".")[0]))
        for name in FOLDERS
        for path in sorted((folder / name).glob("*"))
        if path.suffix.lower() in FORMATS
        and path.name not in NAMES
        and not path.name.startswith(".")
    ]


def _by_template(folder: Path, pattern: str) -> list[FlatFile]:
    fields = re.findall(r"\{(.*?)\}", pattern)
    if not {"participant", "scan"} & set(fields) or len(set(fields)) < len(fields):
        raise ParameterError(
            "pattern of connectomes must have one {participant} or one {scan}, got "
            f"{pattern!r}."
        )
    unknown = set(fields) - set(_FIELDS)
    parts = PurePosixPath(pattern)
    if unknown or parts.is_absolute() or ".." in parts.parts:
        raise ParameterError(
            f"pattern of connectomes must be a path below the cohort's folder with "
            f"{', '.join(f'{{{name}}}' for name in _FIELDS)}, got {pattern!r}."
        )
    wanted = re.sub(r"\\\*", "[^/]*?", re.escape(pattern))
    for name, group in _FIELDS.items():
        wanted = wanted.replace(re.escape(f"{{{name}}}"), group)
    found = []
    for path in sorted(folder.glob(re.sub(r"\{.*?\}", "*", pattern))):
        match = re.fullmatch(wanted, path.relative_to(folder).as_posix())
        if match and path.is_file():
            groups = match.groupdict()
            if "scan" in groups:
                scan = parse_scan_name(groups["scan"])
            else:
                scan = ScanName(groups["participant"], groups.get("session", ""))
            found.append(FlatFile(path, scan))
    return found
