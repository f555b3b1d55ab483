"""One changed file goes in; only the package's errors may come out, and soon."""

import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brainlsap.exceptions import BrainlsapError
from tests.fuzz.target import Target

# Small files: none has a reason to take longer, or to hold as much.
MOST_SECONDS = 5.0  # of the processor's time
MOST_BYTES = 1_500_000_000


class EscapeError(AssertionError):
    """A reader let through what is not an error of the package."""


class TooSlowError(BaseException):
    """The time is over; no reader's `except Exception` holds it back."""


class Place:
    """A folder with a target's files, of which one is written again and again."""

    def __init__(self, target: Target, folder: str | Path | None = None) -> None:
        self.target = target
        self._folder = tempfile.TemporaryDirectory(dir=folder)
        self.path = target.write(Path(self._folder.name))
        self._whole = self.path.read_bytes()
        # what the reader needs for itself is loaded before its memory is bounded
        self._read()
        self._limit = _address_space() + MOST_BYTES

    @property
    def seed(self) -> bytes:
        """The whole file, unpacked."""
        return self.target.open(self._whole)

    def try_bytes(self, content: bytes) -> bool:
        """Return whether the content was read; False where it was refused."""
        self.path.write_bytes(self.target.close(self._whole, content))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        try:
            with _bounded(self._limit):
                self._read()
            done = True
        except BrainlsapError:
            done = False
        except TooSlowError as error:
            raise EscapeError(
                f"{self.target.name}: more than {MOST_SECONDS:.0f} s"
            ) from error
        except Exception as error:
            raise EscapeError(
                f"{self.target.name}: {type(error).__name__}: {error}"
            ) from error
        took = time.process_time() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        if took > MOST_SECONDS or grown > MOST_BYTES:
            raise EscapeError(f"{self.target.name}: {took:.1f} s, {grown / 1e9:.1f} GB")
        return done

    def _read(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.target.read(self.path)

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()


@contextmanager
def _bounded(most: int) -> Iterator[None]:
    """Bound the memory that may be asked for, and the processor's time."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, _stop)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, before)


def _stop(number: int, frame: object) -> None:
    del number, frame
    raise TooSlowError


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
