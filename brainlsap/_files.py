"""Files appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    suffix = "".join(path.suffixes) or ".tmp"
    handle, name = tempfile.mkstemp(prefix=".partial-", suffix=suffix, dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        # mkstemp makes files that only their owner reads; results follow the umask.
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o666 & ~umask)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> Path:
    """Write UTF-8 text to `path`, whole or not at all; return the path."""
    with replace_when_whole(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return Path(path)
