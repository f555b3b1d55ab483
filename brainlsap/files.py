"""Files and folders appear whole or not at all; a folder has one run at a time."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brainlsap.exceptions import ParameterError, WritingError

__all__ = ["fill_folder", "lock_folder", "owner_only", "replace_when_whole"]


@contextmanager
def replace_when_whole(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` on success.

    Parameters
    ----------
    path : str or Path
        Where the file shall stand; its folder is made if need be.

    Yields
    ------
    Path
        In the same folder (so that the rename never crosses a file system), with the
        same suffixes.

    Raises
    ------
    WritingError
        Where the disk is full, or the folder may not be written to.
    """
    path = Path(path)
    with _naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        suffix = "".join(path.suffixes) or ".tmp"
        handle, name = tempfile.mkstemp(
            prefix=".partial-", suffix=suffix, dir=path.parent
        )
        os.close(handle)
        partial = Path(name)
        try:
            yield partial
            # mkstemp makes files only their owner reads; results follow the umask.
            partial.chmod(0o666 & ~_umask())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


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
        Where the folder holds something and may not be replaced.
    WritingError
        Where the disk is full, or the parent may not be written to.
    """
    folder = Path(folder).expanduser().resolve()
    if not replace and folder.exists() and any(folder.iterdir()):
        raise ParameterError(f"{folder} must be new or empty; name another folder.")
    with _naming(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = folder.parent / f".partial-{folder.name}"
        old = folder.parent / f".old-{folder.name}"
        if old.exists() and not folder.exists():  # killed between the two renames
            old.rename(folder)
        for stray in (partial, old):
            shutil.rmtree(stray, ignore_errors=True)
        partial.mkdir()
        try:
            yield partial
            if folder.exists():
                folder.rename(old)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)


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


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the path, and what to do, where the disk is full or the folder closed."""
    todo = {
        errno.ENOSPC: "no space left on the disk; free some, or name another disk",
        errno.EDQUOT: "the quota of the disk is used up; name another disk",
        errno.EROFS: "the disk is read-only; name a folder that you may write to",
        errno.EACCES: "permission denied; name a folder that you may write to",
        errno.EPERM: "permission denied; name a folder that you may write to",
    }
    try:
        yield
    except WritingError:
        raise
    except OSError as error:
        if error.errno not in todo:
            raise
        raise WritingError(
            f"{path} cannot be written: {todo[error.errno]}. What was written before "
            "is untouched."
        ) from error
