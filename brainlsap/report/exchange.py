"""One folder in the place of another, at once."""

import ctypes
import os
import shutil
import tempfile
from pathlib import Path

from brainlsap._locks import OLD

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def exchange_folders(fresh: Path, folder: Path) -> None:
    """Put `fresh` in the place of `folder`; at no time is there none.

    Where the system can exchange two names at once (Linux), it does; elsewhere the
    old folder is moved aside first, and put back if the new one cannot be moved.

    Parameters
    ----------
    fresh : Path
        The new folder; afterwards the old one may stand there.
    folder : Path
        Need not exist.
    """
    if not folder.exists():
        fresh.rename(folder)
        return
    if _exchanged(fresh, folder):
        return
    old = Path(tempfile.mkdtemp(prefix=f".{OLD}-{folder.name}-", dir=folder.parent))
    try:
        folder.rename(old / folder.name)
        try:
            fresh.rename(folder)
        except OSError:
            (old / folder.name).rename(folder)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _exchanged(fresh: Path, folder: Path) -> bool:
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system, or an old one
        return False
    names = os.fsencode(fresh), os.fsencode(folder)
    return rename(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0
