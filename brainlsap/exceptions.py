"""The error family: everything that bad input can raise.

Each is a `ValueError`, so that scikit-learn's habits hold; the command line turns
any of them into one line on standard error and exit code 2.
"""

from collections.abc import Sequence


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
