"""Errors raised for invalid input, and common checks that raise them.

Each error is a `ValueError`, as in scikit-learn. The command line prints any of them on
standard error and exits with code 2.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from brainlsap.text import join_message, option_name

# Kinds of errors of any file.
ABSENT, UNREADABLE = "no such file", "unreadable"


class BrainlsapError(ValueError):
    """Invalid input of any kind; the message says what came and what to do.

    Parameters
    ----------
    message : str
        Description of the fault. Without `got` and `advice` it may also give the
        solution.
    path : str or Path, optional
        File with the fault, at the beginning of the text.
    got : str
        Actual value, which differs from the expected value. The text gives it after the
        message. Files with the same fault may have different values.
    advice : str
        Solution, in whole sentences, at the end of the text.
    kind : str
        Key of the fault, for code that acts on it.
    values : mapping, optional
        Values for code that acts on the fault, by name.

    Examples
    --------
    >>> raise BrainlsapError("n_folds must be at least 2, got 1.")
    Traceback (most recent call last):
    brainlsap.exceptions.BrainlsapError: n_folds must be at least 2, got 1.
    >>> error = FileFormatError("no column 'region'", path="a.tsv", got="'name'")
    >>> str(error), error.message
    ("a.tsv: no column 'region'; got 'name'", "no column 'region'")
    """

    def __init__(
        self,
        message: object = "",
        *,
        path: str | Path | None = None,
        got: str = "",
        advice: str = "",
        kind: str = "",
        values: Mapping[str, object] | None = None,
    ) -> None:
        self.message = str(message)
        self.path = path
        self.got = got
        self.advice = advice
        self.kind = kind
        self.values = dict(values or {})
        full_message = join_message(self.message, got, advice)
        super().__init__(full_message if path is None else f"{path}: {full_message}")


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
        Description of all faults, in one line.
    faults : sequence of str or Finding
        Each fault, naming file, region or person.

    **fields
        Those of :class:`BrainlsapError`.

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

    def __init__(
        self, summary: str, faults: Sequence[object] = (), **fields: Any
    ) -> None:
        self.faults = tuple(map(str, faults))
        faults_text = "".join(f"\n  {fault}" for fault in self.faults)
        super().__init__(
            f"{summary}:{faults_text}" if faults_text else summary, **fields
        )


def check_choice(
    argument_name: str, argument_value: object, choices: Collection[str]
) -> None:
    """Raise unless `value` is one of `choices`; the message lists them."""
    if argument_value not in choices:
        choices_text = ", ".join(
            repr(allowed_value) for allowed_value in sorted(choices)
        )
        raise ParameterError(
            f"{option_name(argument_name)} must be one of {choices_text}; got "
            f"{argument_value!r}."
        )


def check_at_least(
    argument_name: str, argument_value: object, lower_limit: float
) -> None:
    """Raise unless a value is a finite number and at least `lower_limit`.

    An argument whose name begins with `n_` is a count and needs a whole number.
    """
    is_count = argument_name.startswith("n_")
    number_type = Integral if is_count else Real
    if not isinstance(argument_value, number_type) or not lower_limit <= float(
        argument_value
    ) < float("inf"):
        expected_text = "a whole number of at least" if is_count else "at least"
        raise ParameterError(
            f"{option_name(argument_name)} must be {expected_text} {lower_limit}; got "
            f"{argument_value!r}."
        )


@contextmanager
def convert_reading_errors(path: str | Path, expected_content: str) -> Iterator[None]:
    """Turn any exception while a file is read into FileFormatError.

    `expected_content` says what the file should be, for example "an image".
    """
    try:
        yield
    except RegionNameError as error:
        # An atlas, which matches the names, does not know the file.
        raise RegionNameError(
            error, path=path, kind=error.kind, values=error.values
        ) from error
    except BrainlsapError:
        raise
    except FileNotFoundError as error:
        raise FileFormatError(
            "no such file. Check the path.", path=path, kind=ABSENT
        ) from error
    except ImportError as error:
        # An extra is not installed.
        raise FileFormatError(
            f"cannot be read as {expected_content}: {error}",
            path=path,
            kind=UNREADABLE,
        ) from error
    except Exception as error:
        # Broken files fail in every way there is.
        failure_text = (
            getattr(error, "strerror", None) or str(error) or type(error).__name__
        )
        if Path(path).is_dir():
            failure_text = "the path is a folder"
        raise FileFormatError(
            f"cannot be read as {expected_content}: {failure_text.rstrip('.')}. The "
            "file may be truncated, or its suffix may not match its format.",
            path=path,
            kind=UNREADABLE,
        ) from error
