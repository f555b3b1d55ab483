"""A lock that keeps two runs out of one results folder."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from brainlsap.exceptions import ParameterError


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[Path]:
    """Hold a results folder for this process until the end of the block.

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

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with lock_folder(f"{place}/results") as lock:
    ...         lock.name
    '.results.lock'
    """
    folder = Path(folder).expanduser().resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.parent / f".{folder.name}.lock"
    handle = _acquire(path, folder)
    try:
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
        held = not _system_lock(handle)
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


def _system_lock(handle: int) -> bool:
    """Lock an open file for this process; say whether that could be done."""
    try:
        import fcntl
    except ImportError:  # not on this system: the file alone must do
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _holder() -> dict[str, object]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": platform.node(), "since": now}


def _read_holder(path: Path) -> dict[str, object]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
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
