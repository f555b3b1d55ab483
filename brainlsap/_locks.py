"""A folder held by one process: no second run in it, and nothing stray beside it."""

import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

from brainlsap._files import saying_where, try_lock
from brainlsap.exceptions import ParameterError

PARTIAL, OLD = "partial", "old"
_HELD: ContextVar[frozenset[Path]] = ContextVar("folders held", default=frozenset())


@contextmanager
def hold_folder(folder: str | Path) -> Iterator[Path]:
    """Lock a folder and remove what a killed run left beside it.

    Parameters
    ----------
    folder : str or Path
        Need not exist.

    Yields
    ------
    Path
        The folder, absolute.

    Raises
    ------
    ParameterError
        Where another run holds it.
    WritingError
        Where its parent may not be written to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with hold_folder(f"{place}/results") as folder, hold_on(folder):
    ...         folder.name
    'results'
    """
    folder = Path(folder).expanduser().resolve()
    with lock_folder(folder):
        _HELD.set(_HELD.get() | {folder})
        try:
            clean_after_kill(folder)
            yield folder
        finally:
            _HELD.set(_HELD.get() - {folder})


@contextmanager
def hold_on(folder: str | Path) -> Iterator[Path]:
    """Hold a folder as :func:`hold_folder` does, unless the caller does already.

    Parameters
    ----------
    folder : str or Path
        Need not exist.

    Yields
    ------
    Path
        The folder, absolute.
    """
    folder = Path(folder).expanduser().resolve()
    if folder in _HELD.get():
        yield folder
        return
    with hold_folder(folder):
        yield folder


@contextmanager
def fill_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder beside a new one, and rename it to that on success.

    Parameters
    ----------
    folder : Path
        New or empty; its parent is made.

    Yields
    ------
    Path
        The folder to fill, of the same name.

    Raises
    ------
    ParameterError
        Where another process fills it.
    WritingError
        Where the disk is full, or the parent may not be written to.
    """
    with hold_folder(folder) as folder, saying_where(folder):
        prefix = f".{PARTIAL}-{folder.name}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as place:
            whole = Path(place) / folder.name
            whole.mkdir()
            yield whole
            if folder.exists():
                folder.rmdir()
            whole.rename(folder)


def clean_after_kill(folder: Path) -> None:
    """Remove what a killed run left beside a folder; the lock must be held.

    Parameters
    ----------
    folder : Path
        Absolute. If it was moved aside and nothing stands in its place, it is put
        back.
    """
    name = re.compile(rf"\.({PARTIAL}|{OLD})-{re.escape(folder.name)}-[a-z0-9_]{{8}}")
    if not folder.parent.is_dir():
        return
    for stray in sorted(folder.parent.iterdir()):
        found = name.fullmatch(stray.name)
        if found is None or not stray.is_dir():
            continue
        if found[1] == OLD and (stray / folder.name).is_dir() and not folder.exists():
            (stray / folder.name).rename(folder)
        shutil.rmtree(stray, ignore_errors=True)


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[Path]:
    """Hold a folder for this process until the end of the block.

    The lock is a hidden file beside the folder, which may be replaced while it is
    held; it says which process on which machine holds it. The system gives it up when
    the process ends, however that comes about: what a killed run leaves is taken over.

    Parameters
    ----------
    folder : str or Path
        Need not exist; its parent is made.

    Yields
    ------
    Path
        The lock's file.

    Raises
    ------
    ParameterError
        Where another run holds it; the message says which.
    WritingError
        Where no lock can be written beside it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with lock_folder(f"{place}/results") as lock:
    ...         lock.name
    '.results.lock'
    """
    folder = Path(folder).expanduser().resolve()
    path = folder.parent / f".{folder.name}.lock"
    with saying_where(path):
        folder.parent.mkdir(parents=True, exist_ok=True)
        handle = _acquire(path, folder)
    try:
        with saying_where(path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, (json.dumps(_holder()) + "\n").encode(), 0)
        yield path
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _acquire(path: Path, folder: Path) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        known = _read_holder(path)
        held = not try_lock(handle)
        # a lock of the system is not seen from another machine; what it says is
        elsewhere = known.get("host") not in {None, platform.node()}
        if held or elsewhere:
            os.close(handle)
            raise ParameterError(_refusal(path, folder, known))
        try:
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)  # given up by another run meanwhile: that file is gone


def _holder() -> dict[str, object]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": platform.node(), "since": now}


def _read_holder(path: Path) -> dict[str, object]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _refusal(path: Path, folder: Path, known: dict[str, object]) -> str:
    who = (
        f"process {known.get('pid', 'unknown')} on {known.get('host', 'this machine')}"
    )
    return (
        f"{folder} is in use by another run ({who}, since "
        f"{known.get('since', 'a moment ago')}). Wait for it, or name another folder; "
        f"if that run is gone, remove {path}."
    )
