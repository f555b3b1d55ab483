"""The error family: everything that bad input can raise, and what raises it often.

Each is a `ValueError`, so that scikit-learn's habits hold; the command line turns
any of them into one line on standard error and exit code 2.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from pathlib import Path


class BrainlsapError(ValueError):
    """Bad input of any kind; the message says what came and what to do.

    Examples
    --------
    >>> raise BrainlsapError("n_folds must be at least 2, got 1.")
    Traceback (most recent call last):
    brainlsap.exceptions.BrainlsapError: n_folds must be at least 2, got 1.
    """


class ParameterError(BrainlsapError):
    """An argument has a value that cannot be used."""


class FileFormatError(BrainlsapError):
    """A file cannot be read as what it should be; the message names the file."""


class RegionNameError(BrainlsapError):
    """A region name is unknown, ambiguous or doubled."""


class SplitError(BrainlsapError):
    """The people cannot be divided into folds as asked."""


class WritingError(BrainlsapError, OSError):
    """A file cannot be written: the disk is full, or the folder may not be changed."""


class CohortError(BrainlsapError):
    """A cohort is refused, once, with the list of everything that is wrong.

    Parameters
    ----------
    summary : str
        What is wrong, in one line.
    faults : sequence of str
        Each fault, naming file, region or person.

    Attributes
    ----------
    faults : tuple of str
        Each fault, as given.

    Examples
    --------
    >>> error = CohortError("1 subject cannot be read", ["sub-07: no connectome"])
    >>> error.faults
    ('sub-07: no connectome',)
    """

    def __init__(self, summary: str, faults: Sequence[str] = ()) -> None:
        self.faults = tuple(faults)
        lines = "".join(f"\n  {fault}" for fault in self.faults)
        super().__init__(f"{summary}:{lines}" if lines else summary)


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise unless `value` is one of `choices`; the message lists them."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in sorted(choices))
        raise ParameterError(f"{name} must be one of {known}; got {value!r}.")


def check_at_least(name: str, value: object, lowest: float) -> None:
    """Raise unless `value` is a finite number and at least `lowest`."""
    if not isinstance(value, Real) or not lowest <= float(value) < float("inf"):
        raise ParameterError(f"{name} must be at least {lowest}, got {value!r}.")


@contextmanager
def reading(path: str | Path, what: str) -> Iterator[None]:
    """Turn whatever a library raises while it reads a file into FileFormatError."""
    try:
        yield
    except RegionNameError as error:  # of an atlas, which knows no file
        raise RegionNameError(f"{path}: {error}") from error
    except BrainlsapError:
        raise
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: no such file.") from error
    except ImportError as error:  # an extra is not installed
        raise FileFormatError(f"{path}: cannot be read as {what}: {error}") from error
    except Exception as error:  # broken files fail in every way there is
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        reason = "it is a folder" if Path(path).is_dir() else reason
        raise FileFormatError(
            f"{path}: cannot be read as {what}: {reason.rstrip('.')}. The file may be "
            "cut short, or something else than its name says."
        ) from error
