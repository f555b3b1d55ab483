"""Walk through folders of subjects."""

import os
from pathlib import Path

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


def walk_files(folder: Path, skip: str | None = None, depth: int = 0) -> list[Path]:
    """List the files below a folder; of a FreeSurfer subject not those that are many.

    Parameters
    ----------
    folder : Path
        To look through, at most six levels deep.
    skip : str, optional
        Folders of the first level whose names start like this are left out.
    depth : int
        How deep the folder is below the first.

    Returns
    -------
    list of Path
    """
    files, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                if skip is None or not entry.name.startswith(skip):
                    folders.append(entry)
            else:
                files.append(Path(entry.path))
    if any(entry.name == "stats" for entry in folders):
        folders = [entry for entry in folders if entry.name not in FREESURFER_FOLDERS]
    if depth < DEEPEST:
        for entry in folders:
            files += walk_files(Path(entry.path), None, depth + 1)
    return files
