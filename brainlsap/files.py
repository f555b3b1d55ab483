"""Write files and folders completely or not at all; lock folders against other runs."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from brainlsap.exceptions import ParameterError, WritingError

__all__ = [
    "check_outputs",
    "fill_folder",
    "lock_folder",
    "owner_only",
    "replace_when_whole",
]

# Error numbers of a full disk or a place without permission to write.
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


def check_outputs(
    paths: Iterable[str | Path],
    *,
    inputs: Iterable[object] = (),
    overwrite: bool = False,
) -> None:
    """Raise unless files are new, or may be overwritten and are not inputs.

    Parameters
    ----------
    paths : iterable of path
        Files to write.
    inputs : iterable
        Files that are read, and folders with files that are read. They are never
        replaced. Other values, and paths that do not exist, are ignored.
    overwrite : bool
        Whether existing files other than inputs may be replaced.

    Raises
    ------
    ParameterError
        If a file exists, is an input, or is a folder.
    """
    sources = [
        Path(name).expanduser().resolve()
        for name in inputs
        if isinstance(name, str | Path) and os.path.lexists(name)
    ]
    for path in map(Path, paths):
        if not os.path.lexists(path):
            continue
        target = path.resolve()
        if path.is_dir():
            raise ParameterError(f"{path} is a folder; name a file.")
        for source in sources:
            is_input = target == source or source in target.parents
            if is_input or (path.exists() and path.samefile(source)):
                raise ParameterError(
                    f"{path} is among the files that are read, and would be replaced. "
                    "Name another file."
                )
        if not overwrite:
            raise ParameterError(
                f"{path} is there already. Name another file, or replace it by "
                "overwrite=True."
            )


@contextmanager
def replace_when_whole(path: str | Path) -> Iterator[Path]:
    """Yield a path to write to; rename it to `path` on success.

    Parameters
    ----------
    path : str or Path
        The file; its folder is made if it does not exist.

    Yields
    ------
    Path
        A file of the same name in a temporary folder beside it, so that the rename
        never crosses a file system.

    Raises
    ------
    WritingError
        If the disk is full, or the folder is not writable.
    """
    path = Path(path)
    with _name_unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".partial-{path.name}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=path.parent) as temporary:
            partial = Path(temporary) / path.name
            yield partial
            partial.replace(path)


@contextmanager
def fill_folder(folder: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield an empty folder beside `folder`; rename it to `folder` on success.

    Incomplete folders that a killed run left behind are removed. Hold
    :func:`lock_folder` around it if another run may write to the same place.

    Parameters
    ----------
    folder : str or Path
        New or empty folder, unless `replace`; its parent is made.
    replace : bool
        Whether an existing folder is replaced, at the end.

    Yields
    ------
    Path
        The folder to fill.

    Raises
    ------
    ParameterError
        If the folder is not empty and may not be replaced, or is a file.
    WritingError
        If the disk is full, or the parent folder is not writable.
    """
    folder = Path(folder).expanduser().resolve()
    if folder.is_file():
        raise ParameterError(f"{folder} is a file; name a folder.")
    if not replace and folder.exists() and any(folder.iterdir()):
        raise ParameterError(
            f"{folder} must be new or empty; delete it or name another."
        )
    for stray in folder.parent.glob(f".partial-{folder.name}-????????"):
        shutil.rmtree(stray, ignore_errors=True)
    with replace_when_whole(folder) as partial:
        partial.mkdir()
        yield partial
        if folder.exists():
            folder.rename(partial.with_name("replaced"))


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[Path]:
    """Hold a folder for this process until the end of the block.

    The lock is a hidden file beside the folder. The operating system releases it when
    the process ends for any reason.

    Parameters
    ----------
    folder : str or Path
        Folder, which need not exist; its parent is made.

    Yields
    ------
    Path
        The folder as an absolute path.

    Raises
    ------
    ParameterError
        If another run holds it.
    WritingError
        If no lock can be written beside it.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder).expanduser().resolve()
    path = folder.parent / f".{folder.name}.lock"
    with _name_unwritable(path):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # A singleton per path: a function may hold the same lock as its caller.
        lock = FileLock(path, timeout=0, is_singleton=True)
        try:
            lock.acquire()
        except Timeout:
            raise ParameterError(
                f"{folder} is in use by another run. Wait for it, or name another "
                f"folder; if that run is gone, remove {path}."
            ) from None
    try:
        yield folder
    finally:
        if lock.lock_counter == 1:
            path.unlink(missing_ok=True)
        lock.release()


@contextmanager
def owner_only() -> Iterator[None]:
    """Make new files of this process and its children readable by their owner only."""
    previous_mask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(previous_mask)


@contextmanager
def _name_unwritable(path: Path) -> Iterator[None]:
    """Turn errors of a full disk or a missing permission into WritingError."""
    try:
        yield
    except WritingError:
        raise
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise WritingError(
            f"{path} cannot be written: {os.strerror(error.errno)}. Free some space or "
            "name a folder that you may write to; what was there before is untouched."
        ) from error
