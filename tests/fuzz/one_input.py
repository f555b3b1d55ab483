"""One changed file goes in; only the package's errors may come out, and soon."""

import resource
import tempfile
import time
import warnings
from pathlib import Path

from brainlsap.exceptions import BrainlsapError
from tests.fuzz.targets import Target, pack, unpack

# Small files: none has a reason to take longer, or to hold as much.
MOST_SECONDS = 5.0  # of the processor's time
MOST_BYTES = 1_500_000_000


class EscapeError(AssertionError):
    """A reader let through what is not an error of the package."""


def seed_of(target: Target) -> bytes:
    """Return the whole file, unpacked."""
    with tempfile.TemporaryDirectory() as place:
        return unpack(target.name, target.write(Path(place)).read_bytes())


class Place:
    """A folder with a target's files, of which one is written again and again."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._folder = tempfile.TemporaryDirectory()
        self.path = target.write(Path(self._folder.name))

    def try_bytes(self, content: bytes) -> bool:
        """Return whether the content was read; False where it was refused."""
        self.path.write_bytes(pack(self.target.name, content))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.target.read(self.path)
            done = True
        except BrainlsapError:
            done = False
        except Exception as error:
            raise EscapeError(
                f"{self.target.name}: {type(error).__name__}: {error}"
            ) from error
        took = time.process_time() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        if took > MOST_SECONDS or grown > MOST_BYTES:
            raise EscapeError(f"{self.target.name}: {took:.1f} s, {grown / 1e9:.1f} GB")
        return done

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()
