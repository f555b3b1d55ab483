"""Walk through folders of subjects."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from brainlsap.exceptions import CohortError

FREESURFER_FOLDERS = ("label", "mri", "scripts", "surf", "tmp", "touch", "trash")
DEEPEST = 6


def freesurfer_subjects(root: Path) -> list[tuple[str, Path]]:
    """Return FreeSurfer subjects in a folder, known by the `stats` that they hold.

    Parameters
    ----------
    root : Path
        Of subjects, or of `sub-X/ses-Y` that are subjects.

    Returns
    -------
    list of (str, Path)
        Name and folder; templates of longitudinal runs left out.
    """
    found = []
    for path in sorted(root.iterdir()):
        if (path / "base-tps").exists():  # template of a person, not a scan
            continue
        if (path / "stats").is_dir():
            found.append((path.name, path))
        elif path.name.startswith("sub-") and path.is_dir():
            found += [
                (f"{path.name}_{visit.name}", visit)
                for visit in sorted(path.glob("ses-*"))
                if (visit / "stats").is_dir()
            ]
    return found


def leaves(path: Path, roots: Iterable[Path]) -> bool:
    """Tell whether a folder is a link that leads out of a cohort.

    Who packs a cohort must not decide which folders of another machine are read.

    Parameters
    ----------
    path : Path
        Of the folder.
    roots : iterable of Path
        Of the cohort and of the data sets that were named beside it.

    Returns
    -------
    bool
    """
    if not path.is_symlink():
        return False
    place = path.resolve()
    return not any(place.is_relative_to(root.resolve()) for root in roots)


def walk_files(
    folder: Path,
    skip: str | None = None,
    depth: int = 0,
    roots: Sequence[Path] = (),
) -> list[Path]:
    """List the files below a folder; of a FreeSurfer subject not those that are many.

    Parameters
    ----------
    folder : Path
        To look through, at most six levels deep.
    skip : str, optional
        Folders of the first level whose names start like this are left out.
    depth : int
        How deep the folder is below the first.
    roots : sequence of Path
        Links to folders that lead out of all of these are refused; without any, links
        are followed.

    Returns
    -------
    list of Path

    Raises
    ------
    CohortError
        Where a folder is a link that leads out.
    """
    files, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                if skip is None or not entry.name.startswith(skip):
                    refuse_leaving(Path(entry.path), roots)
                    folders.append(entry)
            else:
                files.append(Path(entry.path))
    if any(entry.name == "stats" for entry in folders):
        folders = [entry for entry in folders if entry.name not in FREESURFER_FOLDERS]
    if depth < DEEPEST:
        for entry in folders:
            files += walk_files(Path(entry.path), None, depth + 1, roots)
    return files


def refuse_leaving(path: Path, roots: Sequence[Path]) -> None:
    """Raise where a folder is a link that leads out of a cohort.

    Parameters
    ----------
    path : Path
        Of the folder.
    roots : sequence of Path
        As for :func:`leaves`; without any, nothing is refused.

    Raises
    ------
    CohortError
        With the link and where it leads.
    """
    if roots and leaves(path, roots):
        raise CohortError(
            f"{path} is a link that leads out of the cohort's folder, to "
            f"{path.resolve()}, and is not followed; move the data there, or name the "
            "other data set by derivatives="
        )
