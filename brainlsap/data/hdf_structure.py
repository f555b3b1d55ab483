"""A look at an HDF5 file before its library reads it.

HDF5 (1.14) trusts the places that a file writes. In a damaged or hostile file of a few
kilobytes they may lead in a circle: the library then never returns, or calls itself
until the process dies, and no handler of Python's can stop either. What is walked
without a limit is therefore walked here first.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

from brainlsap.data.hdf_heaps import free_space_ends, texts_can_be_walked
from brainlsap.data.hdf_trees import children_lead_down, first_in_a_circle
from brainlsap.exceptions import FileFormatError

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# Where a file may begin, after a block of the user's (MATLAB's is 512 bytes).
_BEGINNINGS = (0, *(512 << k for k in range(20)))
_NODE = b"TREE"
# Marks (with the version behind them), what must hold where one stands, and what is
# said where it does not.
_CHECKS = (
    (b"GCOL\x01", texts_can_be_walked, "a collection of texts"),
    (b"HEAP\x00", free_space_ends, "the names of a group"),
    (_NODE, children_lead_down, "an index"),
)


def check_structure(path: str | Path) -> None:
    """Refuse a file whose indices, names or texts would keep HDF5 busy for ever.

    Parameters
    ----------
    path : str or Path
        An HDF5 file; any other passes, for the library to refuse.

    Raises
    ------
    FileFormatError
        Where something leads in a circle, or places are not written in 8 bytes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"no HDF5 at all")
    ...     file.flush()
    ...     check_structure(file.name)
    """
    path = Path(path)
    if not path.is_file() or path.stat().st_size == 0:
        return
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held,
    ):
        base = _beginning(path, held)
        if base is None:
            return
        for mark, holds, what in _CHECKS:
            # looked for once: the largest files are gigabytes
            places = list(_places(held, mark, base))
            wrong = next((k for k in places if not holds(held, k, base)), None)
            if wrong is None and mark == _NODE:
                wrong = first_in_a_circle(held, places, base)
            if wrong is not None:
                raise FileFormatError(
                    f"{path}: {what} in this HDF5 file cannot be read: it is damaged "
                    f"(byte {wrong}). Write or copy the file again."
                )


def _places(held: mmap.mmap, mark: bytes, base: int) -> Iterator[int]:
    start = held.find(mark, base)
    while start >= 0:
        yield start
        start = held.find(mark, start + 1)


def _beginning(path: Path, held: mmap.mmap) -> int | None:
    """Return where the file begins; refuse places of other than 8 bytes."""
    for start in _BEGINNINGS:
        if held[start : start + 8] == _SIGNATURE and start + 15 <= len(held):
            sizes = start + (13 if held[start + 8] < 2 else 9)
            if tuple(held[sizes : sizes + 2]) != (8, 8):
                raise FileFormatError(
                    f"{path}: this HDF5 file writes places and lengths in "
                    f"{held[sizes]} and {held[sizes + 1]} bytes; expected 8 and 8, as "
                    "all programs do that we know. Write it again with h5py."
                )
            return start
    return None
