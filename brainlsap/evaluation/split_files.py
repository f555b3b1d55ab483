"""Folds saved to TSV and read back, so that a study can be repeated elsewhere."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap._files import write_text
from brainlsap.data.spreadsheets import guarded_text, unguard_cells
from brainlsap.evaluation.splits import Split
from brainlsap.exceptions import FileFormatError, SplitError

COLUMNS = ("fold", "part", "scan", "participant")
PARTS = ("train", "test", "unused")


def write_splits(
    splits: Sequence[Split],
    path: str | Path,
    *,
    scans: Sequence[str],
    participants: Sequence[str],
) -> Path:
    """Write folds to a TSV file with one row per fold and scan.

    Parameters
    ----------
    splits : sequence of (train, test)
        Row indices, as from :func:`make_splits`.
    path : str or Path
        The file; columns fold (from 1), part (train, test, or unused where a fold
        needs a scan on neither side), scan, participant.
    scans, participants : sequences of length n_scans
        Names of the scans and of the people, by row.

    Returns
    -------
    Path
        The file. It names people: keep it private.

    Examples
    --------
    See :func:`brainlsap.evaluation.read_splits`.
    """
    everything = np.arange(len(scans))
    rows = [
        (number, part, str(scans[row]), str(participants[row]))
        for number, split in enumerate(splits, start=1)
        for part, members in zip(
            PARTS,
            (*split, np.setdiff1d(everything, np.concatenate(split))),
            strict=True,
        )
        for row in members
    ]
    return write_text(path, guarded_text(pd.DataFrame(rows, columns=list(COLUMNS))))


def read_splits(path: str | Path, scans: Sequence[str]) -> tuple[Split, ...]:
    """Read folds that :func:`write_splits` wrote, for the same scans in any order.

    Parameters
    ----------
    path : str or Path
        The TSV file.
    scans : sequence of length n_scans
        Names of the scans of the cohort at hand, by row.

    Returns
    -------
    tuple of (train, test)
        Sorted row indices into `scans`.

    Raises
    ------
    FileFormatError
        Where the file is not such a table.
    SplitError
        Where it does not name every scan of the cohort exactly once in each fold.

    Examples
    --------
    >>> import tempfile
    >>> scans, people = ["a1", "a2", "b1"], ["a", "a", "b"]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = write_splits(
    ...         [([0, 1], [2])], f"{place}/s.tsv", scans=scans, participants=people
    ...     )
    ...     (split,) = read_splits(path, ["b1", "a1", "a2"])
    >>> split
    (array([1, 2]), array([0]))
    """
    path = Path(path)
    try:
        table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
        frame = unguard_cells(table)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be read as splits ({error}).") from None
    if tuple(frame.columns) != COLUMNS or set(frame["part"]) - set(PARTS):
        raise FileFormatError(
            f"{path}: splits need the columns {', '.join(COLUMNS)} with part train, "
            f"test or unused, got {', '.join(frame.columns)}. write_splits writes it."
        )
    names = [str(scan) for scan in scans]
    row_of = {name: row for row, name in enumerate(names)}
    splits: list = []
    for fold, members in frame.groupby("fold", sort=False):
        if sorted(members["scan"]) != sorted(names):
            raise SplitError(_difference(path, str(fold), list(members["scan"]), names))
        rows = members["scan"].map(row_of).to_numpy()
        part = members["part"].to_numpy()
        splits.append(tuple(np.sort(rows[part == one]) for one in ("train", "test")))
    return tuple(splits)


def _difference(path: Path, fold: str, found: list[str], wanted: list[str]) -> str:
    unknown, missing = (
        sorted(set(found) - set(wanted)),
        sorted(set(wanted) - set(found)),
    )
    parts = [
        f"{len(names)} {what} ({', '.join(names[:3])})"
        for names, what in (
            (unknown, "scans that the cohort has not"),
            (missing, "scans of the cohort missing"),
        )
        if names
    ]
    return (
        f"{path}: fold {fold} does not fit the cohort: "
        f"{'; '.join(parts) or 'a scan is named twice'}. Splits belong to one cohort."
    )
