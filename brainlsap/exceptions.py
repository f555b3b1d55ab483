"""Errors raised for invalid input, and common checks that raise them.

Each error is a `ValueError`, as in scikit-learn. The command line prints any of them on
standard error and exits with code 2.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from pathlib import Path


class BrainlsapError(ValueError):
    """Invalid input of any kind; the message says what came and what to do.

    Examples
    --------
    >>> raise BrainlsapError("n_folds must be at least 2, got 1.")
    Traceback (most recent call last):
    brainlsap.exceptions.BrainlsapError: n_folds must be at least 2, got 1.
    """


class ParameterError(BrainlsapError):
    """An argument has an invalid value."""


class FileFormatError(BrainlsapError):
    """A file cannot be read in the expected format; the message names the file."""


class RegionNameError(BrainlsapError):
    """A region name is unknown, ambiguous or repeated."""


class SplitError(BrainlsapError):
    """The participants cannot be divided into these folds."""


class WritingError(BrainlsapError, OSError):
    """A file cannot be written: the disk is full, or the folder may not be changed."""


class CohortError(BrainlsapError):
    """A cohort is rejected with the list of everything that is wrong.

    Parameters
    ----------
    summary : str
        What is wrong, in one line.
    faults : sequence of str
        Each fault, naming file, region or person.

    Attributes
    ----------
    faults : tuple of str
        The faults.

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
        allowed = ", ".join(repr(choice) for choice in sorted(choices))
        raise ParameterError(f"{name} must be one of {allowed}; got {value!r}.")


def check_at_least(name: str, value: object, lowest: float) -> None:
    """Raise unless `value` is a finite number and at least `lowest`."""
    if not isinstance(value, Real) or not lowest <= float(value) < float("inf"):
        raise ParameterError(f"{name} must be at least {lowest}, got {value!r}.")


@contextmanager
def reading(path: str | Path, content: str) -> Iterator[None]:
    """Turn any exception while a file is read into FileFormatError.

    `content` says what the file should be, for example "an image".
    """
    try:
        yield
    except RegionNameError as error:  # the atlas does not know the file
        raise RegionNameError(f"{path}: {error}") from error
    except BrainlsapError:
        raise
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: no such file.") from error
    except ImportError as error:  # an extra is not installed
        raise FileFormatError(
            f"{path}: cannot be read as {content}: {error}"
        ) from error
    except Exception as error:  # damaged files raise exceptions of any type
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if Path(path).is_dir():
            reason = "it is a folder"
        raise FileFormatError(
            f"{path}: cannot be read as {content}: {reason.rstrip('.')}. The file may "
            "be truncated, or in another format than its name says."
        ) from error
