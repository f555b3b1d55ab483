"""Files appear whole or not at all; what cannot be written is said with its path."""

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brainlsap.exceptions import WritingError

_PARTIAL = re.compile(r"\.partial-[a-z0-9_]+(\..*)?")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)


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
        The temporary file, with the same suffixes, in the same folder (so that
        the rename never crosses a file system).

    Raises
    ------
    WritingError
        Where the disk is full, or the folder may not be written to.
    """
    path = Path(path)
    with saying_where(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        suffix = "".join(path.suffixes) or ".tmp"
        handle, name = tempfile.mkstemp(
            prefix=".partial-", suffix=suffix, dir=path.parent
        )
        partial = Path(name)
        try:
            try_lock(handle)  # what is not locked was left by a process that is gone
            yield partial
            # mkstemp makes files only their owner reads; results follow the umask.
            partial.chmod(0o666 & ~current_umask())
            partial.replace(path)
        finally:
            os.close(handle)
            partial.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> Path:
    """Write UTF-8 text to `path`, whole or not at all; return the path."""
    with replace_when_whole(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def remove_partials(folder: Path) -> None:
    """Remove what killed processes left half-written in a folder and below it.

    Parameters
    ----------
    folder : Path
        Need not exist. What another process is writing at this moment stays.
    """
    for partial in folder.rglob(".partial-*"):
        if _PARTIAL.fullmatch(partial.name) is None or not partial.is_file():
            continue
        try:
            handle = os.open(partial, os.O_RDWR)
        except FileNotFoundError:
            continue
        try:
            if try_lock(handle):
                partial.unlink(missing_ok=True)
        finally:
            os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file for this process; say whether that could be done.

    Parameters
    ----------
    handle : int
        Of the system. The lock ends when it is closed, or its process ends.

    Returns
    -------
    bool
        True, too, where the system or the file system has no locks.
    """
    try:
        import fcntl
    except ImportError:  # not on this system
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def current_umask() -> int:
    """Return what this process takes away from the permissions of new files."""
    umask = os.umask(0)
    os.umask(umask)
    return umask


@contextmanager
def owner_only() -> Iterator[None]:
    """Let new files of this process, and of those it starts, be read by nobody else."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def saying_where(path: Path) -> Iterator[None]:
    """Let a full disk or a closed folder be said with the path, and what to do.

    Parameters
    ----------
    path : Path
        What is being written, or the folder that it is in.

    Raises
    ------
    WritingError
        In place of the system's error, which often names no file.
    """
    try:
        yield
    except WritingError:
        raise
    except OSError as error:
        told = _what_to_do(error, path)
        if told is None:
            raise
        raise WritingError(f"{path} cannot be written: {told}") from error


def _what_to_do(error: OSError, path: Path) -> str | None:
    """Return why, and what to do; None for what has nothing to do with the path."""
    why = os.strerror(error.errno) if error.errno else str(error)
    kept = "what was written before is untouched."
    if error.errno in _FULL or "No space left" in str(error):
        return (
            f"no space left on the disk. Free some and give the same command again, or "
            f"name a place on another disk; {kept}"
        )
    named = None if error.filename is None else Path(os.fsdecode(error.filename))
    elsewhere = named is not None and path.parent not in (named, *named.parents)
    if error.errno in _CLOSED and not elsewhere:
        return f"{why.lower()}. Name a folder that you may write to; {kept}"
    return None
