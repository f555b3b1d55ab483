"""Files and folders appear whole or not at all; a folder has one run at a time."""

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

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


def check_outputs(
    paths: Iterable[str | Path],
    *,
    inputs: Iterable[object] = (),
    overwrite: bool = False,
) -> None:
    """Raise unless files may be written: they are new, or replacing them was asked for.

    Parameters
    ----------
    paths : iterable of path
        The files to write.
    inputs : iterable
        What is read for them: files, and folders whose files are read. These are never
        replaced. What is no path, or not there, is passed over.
    overwrite : bool
        Whether other existing files may be replaced.

    Raises
    ------
    ParameterError
        Where a file is there already, is an input, or is a folder.
    """
    names = [Path(name) for name in inputs if isinstance(name, str | Path)]
    sources = [name.expanduser().resolve() for name in names if os.path.lexists(name)]
    for path in map(Path, paths):
        if not os.path.lexists(path):
            continue
        target = path.resolve()
        if path.is_dir():
            raise ParameterError(f"{path} is a folder; name a file.")
        for source in sources:
            is_same = target == source or source in target.parents
            if is_same or (path.exists() and path.samefile(source)):
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
        Where the file shall stand; its folder is made if need be.

    Yields
    ------
    Path
        Of the same name, in a folder beside (so that the rename never crosses a file
        system).

    Raises
    ------
    WritingError
        Where the disk is full, or the folder may not be written to.
    """
    path = Path(path)
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".partial-{path.name}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=path.parent) as beside:
            partial = Path(beside) / path.name
            yield partial
            partial.replace(path)


@contextmanager
def fill_folder(folder: str | Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield an empty folder beside `folder`; it takes that place on success.

    What a killed run left half-filled there is removed. Hold :func:`lock_folder`
    around it where another run may write to the same place.

    Parameters
    ----------
    folder : str or Path
        New or empty, unless `replace`; its parent is made.
    replace : bool
        Whether an existing folder gives way, at the very end.

    Yields
    ------
    Path
        The folder to fill.

    Raises
    ------
    ParameterError
        Where the folder holds something and may not be replaced, or is a file.
    WritingError
        Where the disk is full, or the parent may not be written to.
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

    The lock is a hidden file beside the folder, given up by the system when the
    process ends, however that comes about.

    Parameters
    ----------
    folder : str or Path
        Need not exist; its parent is made.

    Yields
    ------
    Path
        The folder, absolute.

    Raises
    ------
    ParameterError
        Where another run holds it.
    WritingError
        Where no lock can be written beside it.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder).expanduser().resolve()
    path = folder.parent / f".{folder.name}.lock"
    with _naming(path):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # one a path: a function may hold what its caller holds already
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
    """Let new files of this process, and of those it starts, be read by nobody else."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the path, and what to do, where the disk is full or the folder closed."""
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
