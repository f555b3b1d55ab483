"""Write files and folders completely or not at all; lock folders in use.

An interrupted run leaves no incomplete output, and two runs never write to one folder.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from brainlsap.exceptions import ParameterError, WritingError
from brainlsap.text import join_with_commas, option_text

__all__ = [
    "check_new_folder",
    "check_outputs",
    "check_writable",
    "fill_folder",
    "lock_folder",
    "replace_when_whole",
    "restrict_new_files_to_owner",
]

# Errors of the system for a full disk, or a folder that must not be written to.
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


def check_writable(path: str | Path) -> None:
    """Raise unless a file or folder can be made, or replaced, at a path.

    Call it before a long computation; it writes nothing.

    Parameters
    ----------
    path : str or Path
        Its folder need not exist.

    Raises
    ------
    WritingError
        If the nearest existing folder above it is a file, or may not be written to.
    """
    path = Path(path).expanduser().absolute()
    existing_folder = next(
        parent_folder for parent_folder in path.parents if parent_folder.exists()
    )
    if not existing_folder.is_dir():
        raise WritingError(
            f"{path} cannot be written: {existing_folder} is a file, not a folder. "
            "Choose another folder."
        )
    if not os.access(existing_folder, os.W_OK | os.X_OK):
        raise WritingError(
            f"{path} cannot be written: you have no permission to write to "
            f"{existing_folder}. Choose another folder."
        )


def check_new_folder(folder: str | Path) -> Path:
    """Raise unless a folder is new or empty, and can be written.

    Parameters
    ----------
    folder : str or Path
        Folder to make.

    Returns
    -------
    Path
        The absolute path of the folder.

    Raises
    ------
    ParameterError
        If the folder is not empty, or is a file.
    WritingError
        As of :func:`check_writable`.
    """
    folder = Path(folder).expanduser().resolve()
    if folder.is_file():
        raise ParameterError(f"{folder} is a file; give the path of a folder.")
    if folder.exists() and any(folder.iterdir()):
        raise ParameterError(
            f"{folder} must be new or empty; delete it or choose another folder."
        )
    check_writable(folder)
    return folder


def check_outputs(
    output_paths: Iterable[str | Path],
    *,
    input_values: Iterable[object] = (),
    overwrite: bool = False,
) -> None:
    """Raise unless output files are new, or may be replaced.

    Parameters
    ----------
    output_paths : iterable of path
        Files to write.
    input_values : iterable
        Files, or folders with files, that are read. They are never replaced. Entries
        that are no path, and paths that do not exist, are ignored.
    overwrite : bool
        Whether other existing files may be replaced.

    Raises
    ------
    ParameterError
        If a file exists, is an input, or is a folder.
    WritingError
        If a file cannot be written, as of :func:`check_writable`.
    """
    input_paths = [
        Path(input_value)
        for input_value in input_values
        if isinstance(input_value, str | Path)
    ]
    resolved_input_paths = [
        path.expanduser().resolve() for path in input_paths if os.path.lexists(path)
    ]
    existing_paths = []
    for path in map(Path, output_paths):
        check_writable(path)
        if not os.path.lexists(path):
            continue
        existing_paths.append(path)
        resolved_output_path = path.resolve()
        if path.is_dir():
            raise ParameterError(f"{path} is a folder; give the path of a file.")
        for input_path in resolved_input_paths:
            is_within_input = (
                resolved_output_path == input_path
                or input_path in resolved_output_path.parents
            )
            if is_within_input or (path.exists() and path.samefile(input_path)):
                raise ParameterError(
                    f"{path} is one of the input files and would be replaced. Choose "
                    "another output file."
                )
    if overwrite or not existing_paths:
        return
    if len(existing_paths) == 1:
        raise ParameterError(
            f"{existing_paths[0]} already exists. To replace this file, add "
            f"{option_text('overwrite', True)}. Otherwise, choose another output file."
        )
    raise ParameterError(
        f"{len(existing_paths)} output files already exist: "
        f"{join_with_commas(existing_paths, 5)}. To replace these files, add "
        f"{option_text('overwrite', True)}. Otherwise, choose another output folder."
    )


@contextmanager
def replace_when_whole(path: str | Path) -> Iterator[Path]:
    """Yield a path to write to; rename it to `path` on success.

    Parameters
    ----------
    path : str or Path
        Final path of the file or folder; its parent is created if needed.

    Yields
    ------
    Path
        Temporary path with the same name, in a temporary folder next to the final path
        (so that renaming never crosses file systems).

    Raises
    ------
    WritingError
        If the disk is full, or the folder may not be written to.
    """
    path = Path(path)
    with _explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary_prefix = f".partial-{path.name}-"
        with tempfile.TemporaryDirectory(
            prefix=temporary_prefix, dir=path.parent
        ) as folder:
            partial_path = Path(folder) / path.name
            yield partial_path
            partial_path.replace(path)


@contextmanager
def fill_folder(folder: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield an empty temporary folder; rename it to `folder` on success.

    Temporary folders of killed runs are removed. Hold :func:`lock_folder` around it if
    another run may write to the same folder.

    Parameters
    ----------
    folder : str or Path
        New or empty folder, unless `replace`; its parent is created.
    replace : bool
        Whether to replace an existing folder, after the new one is complete.

    Yields
    ------
    Path
        The folder to fill.

    Raises
    ------
    ParameterError
        If the folder is not empty and may not be replaced, or is a file.
    WritingError
        If the disk is full, or the parent may not be written to.
    """
    folder = Path(folder).expanduser().resolve()
    if folder.is_file() or not replace:
        check_new_folder(folder)
    for old_temporary_folder in folder.parent.glob(f".partial-{folder.name}-????????"):
        shutil.rmtree(old_temporary_folder, ignore_errors=True)
    with replace_when_whole(folder) as partial_folder:
        partial_folder.mkdir()
        yield partial_folder
        if folder.exists():
            folder.rename(partial_folder.with_name("replaced"))


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[Path]:
    """Lock a folder for this process until the end of the block.

    The lock is a hidden file next to the folder. The system releases it when the
    process ends, even if it is killed.

    Parameters
    ----------
    folder : str or Path
        Folder that need not exist; its parent is created.

    Yields
    ------
    Path
        The folder, absolute.

    Raises
    ------
    ParameterError
        If another run has locked it.
    WritingError
        If the lock cannot be written.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder).expanduser().resolve()
    lock_path = folder.parent / f".{folder.name}.lock"
    with _explain_write_errors(lock_path):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # One lock object for each path: a function may lock what its caller has locked.
        file_lock = FileLock(lock_path, timeout=0, is_singleton=True)
        try:
            file_lock.acquire()
        except Timeout:
            raise ParameterError(
                f"{folder} is in use by another run. Wait until this run finishes, or "
                "choose another folder. If no run uses the folder, delete "
                f"{lock_path}."
            ) from None
    try:
        yield folder
    finally:
        if file_lock.lock_counter == 1:
            lock_path.unlink(missing_ok=True)
        file_lock.release()


@contextmanager
def restrict_new_files_to_owner() -> Iterator[None]:
    """Make new files of this process and its children readable by their owner only."""
    previous_umask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(previous_umask)


@contextmanager
def _explain_write_errors(path: Path) -> Iterator[None]:
    """Turn errors of a full disk or a closed folder into a `WritingError`."""
    try:
        yield
    except WritingError:
        raise
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise WritingError(
            f"{path} cannot be written: {os.strerror(error.errno)}. Free disk space, "
            "or choose a folder that you may write to. Existing files are unchanged."
        ) from error
