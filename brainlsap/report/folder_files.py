"""The files of a results folder: which a report wrote, which are finished tasks."""

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from brainlsap.evaluation.task_store import NAME as TASK_NAME
from brainlsap.exceptions import FileFormatError

TASKS = "private/tasks"
"""Where a run keeps its finished tasks; they outlive the report."""

STORED = "evaluation.json"
"""What a report is made of, in `private/`."""


def entries_of(folder: Path) -> set[str]:
    """Return every file of a results folder but its finished tasks.

    Parameters
    ----------
    folder : Path
        Of the results.

    Returns
    -------
    set of str
        Paths inside, with "/" between.
    """
    return {
        one.relative_to(folder).as_posix()
        for one in folder.rglob("*")
        if (not one.is_dir() or one.is_symlink()) and not _is_task(folder, one)
    }


def file_hashes(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of some files of a folder.

    Parameters
    ----------
    folder : Path
        Of the results.
    names : iterable of str
        Paths inside.

    Returns
    -------
    dict of str to str
    """
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names
    }


def check_stored(folder: str | Path) -> Path:
    """Return the file of a results folder that holds its evaluation.

    Parameters
    ----------
    folder : str or Path
        Results folder, with its `private/`.

    Returns
    -------
    Path

    Raises
    ------
    FileFormatError
        Where there is none.
    """
    path = Path(folder).expanduser() / "private" / STORED
    if not path.is_file():
        raise FileFormatError(
            f"{folder} holds no stored evaluation ({path} is missing). Give the "
            "results folder of `brainlsap run`, with its folder private."
        )
    return path


def carry_tasks(folder: Path, fresh: Path) -> None:
    """Give the finished tasks of the old folder to the new one as well.

    Parameters
    ----------
    folder, fresh : Path
        The old and the new results folder.
    """
    for task in (folder / TASKS).glob("*"):
        if _is_task(folder, task) and not task.name.startswith("."):
            copy = fresh / TASKS / task.name
            copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                copy.hardlink_to(task)
            except OSError:  # a file system without links
                shutil.copy2(task, copy)


def _is_task(folder: Path, path: Path) -> bool:
    name = path.name
    return path.parent == folder / TASKS and (
        bool(TASK_NAME.fullmatch(name)) or name.startswith(".partial-")
    )
