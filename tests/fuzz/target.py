"""What one fuzzed reader is: files to start from, and how one is read."""

import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
"""Inputs that once got through, or that lie about their size: a folder a target."""


def _as_is(content: bytes) -> bytes:
    return content


def _inner_alone(whole: bytes, inner: bytes) -> bytes:
    del whole
    return inner


@dataclass(frozen=True)
class Target:
    """One kind of file.

    Parameters
    ----------
    name : str
        Of the file, with the suffix that tells its format; behind a colon, the part
        of it that is changed.
    make : callable
        Writes a whole file into a folder, under `file`.
    read : callable
        Reads it.
    reader : str
        What it counts as in the table of executions.
    open, close : callable
        Where bytes are better changed before they are packed or sealed: from the
        file's bytes to those that are changed, and from both back to a file.
    """

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]
    reader: str
    open: Callable[[bytes], bytes] = field(default=_as_is)
    close: Callable[[bytes, bytes], bytes] = field(default=_inner_alone)

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.name.partition(":")[0]

    def write(self, folder: Path) -> Path:
        """Write the whole file, and return where (some formats name it themselves)."""
        made = self.make(folder / self.file)
        return made if isinstance(made, Path) and made.is_file() else folder / self.file

    def corpus(self) -> list[bytes]:
        """Return the kept inputs, unpacked."""
        return [path.read_bytes() for path in sorted((CORPUS / self.slug).glob("*"))]

    @property
    def slug(self) -> str:
        """The name without what some file systems cannot have."""
        return self.name.replace(":", "+").replace("/", "+")


def packed(target: Target) -> Target:
    """Return a target whose bytes are changed before gzip packs them."""
    return Target(
        target.name,
        target.make,
        target.read,
        target.reader,
        gzip.decompress,
        lambda _, inner: gzip.compress(inner, 1, mtime=0),
    )


def member(target: Target, inside: str) -> Target:
    """Return a target that changes one member of a zip archive.

    Checksums of archives refuse nearly every change of their bytes; what reads the
    members is reached in this way only.
    """

    def take(whole: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            return archive.read(inside)

    def put(whole: bytes, inner: bytes) -> bytes:
        out = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(whole)) as archive,
            zipfile.ZipFile(out, "w") as changed,
        ):
            for name in archive.namelist():
                changed.writestr(name, inner if name == inside else archive.read(name))
        return out.getvalue()

    name = f"{target.name}:{inside.rpartition('/')[2]}"
    return Target(name, target.make, target.read, target.reader, take, put)
