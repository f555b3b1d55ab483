"""The results folder: made whole or not at all, safe to share but for `private/`."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap._files import current_umask, saying_where
from brainlsap._locks import PARTIAL, hold_on
from brainlsap.data.spreadsheets import write_tsv
from brainlsap.evaluation import Evaluation, write_splits
from brainlsap.exceptions import ParameterError
from brainlsap.report.exchange import exchange_folders
from brainlsap.report.folder_files import (
    carry_tasks,
    entries_of,
    file_hashes,
)
from brainlsap.report.score_tables import mark_by_scan

MANIFEST = "brainlsap-report.json"
SHAREABLE, PRIVATE = "report", "private"
# Shorter names ("1", "b") stand in any text by chance; they are taken out only where
# a word such as "sub-" goes before.
SHORTEST_NAME = 4
_BEFORE_NAME = r"(?:(?:sub|ses|scan|person|participant|subject|session)[-_ ]?)"


def check_results_folder(folder: str | Path) -> Path:
    """Raise unless a report may be written to `folder`; ask before a long run.

    Parameters
    ----------
    folder : str or Path
        New, empty, or written by an earlier report and not added to since.

    Returns
    -------
    Path
        The folder, absolute.

    Raises
    ------
    ParameterError
        Where the folder cannot be made or replaced, is a file, or holds what no
        report wrote.

    Examples
    --------
    >>> check_results_folder("/etc")
    Traceback (most recent call last):
    brainlsap.exceptions.ParameterError: /etc holds files that no report wrote ...
    """
    folder = Path(folder).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder} is a file; the results need a folder.")
    if folder.is_mount():
        raise ParameterError(
            f"{folder} is where a disk is mounted and cannot be replaced as a whole; "
            f"name a folder in it, such as {folder / 'results'}."
        )
    foreign = sorted(entries_of(folder) - _listed(folder))
    if foreign:
        shown = ", ".join(foreign[:3]) + (" ..." if len(foreign) > 3 else "")
        raise ParameterError(
            f"{folder} holds files that no report wrote ({shown}); they would be "
            "lost. Name a new folder, or move them away."
        )
    above = next(one for one in folder.parents if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        why = "may not be written to" if above.is_dir() else "is a file"
        what = "replaced" if folder.exists() else "made"
        raise ParameterError(f"{folder} cannot be {what}: {above} {why}. Name another.")
    return folder


@contextmanager
def replace_folder(folder: str | Path) -> Iterator[Path]:
    """Yield an empty folder beside `folder`, and put it in its place on success.

    Parameters
    ----------
    folder : str or Path
        As :func:`check_results_folder` allows; an earlier report is replaced.

    Yields
    ------
    Path
        The folder to fill. A list of its files, by which a later report knows that
        it may replace them, is added at the end.

    Raises
    ------
    ParameterError
        Where the folder holds what no report wrote, or another run is in it.
    WritingError
        Where the disk is full, or the folder may not be written to.
    """
    folder = check_results_folder(folder)
    with hold_on(folder), saying_where(folder):
        name = tempfile.mkdtemp(prefix=f".{PARTIAL}-{folder.name}-", dir=folder.parent)
        fresh = Path(name)
        try:
            yield fresh
            _add_manifest(fresh)
            # mkdtemp's are entered by their owner only; results follow the umask
            fresh.chmod(0o777 & ~current_umask())
            carry_tasks(folder, fresh)
            exchange_folders(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def _add_manifest(fresh: Path) -> None:
    files = sorted({*entries_of(fresh), MANIFEST})
    hashes = file_hashes(fresh, sorted(entries_of(fresh)))
    manifest = {"written_by": "brainlsap", "files": files, "sha256": hashes}
    text = json.dumps(manifest, indent=1)
    (fresh / MANIFEST).write_text(text + "\n", encoding="utf-8")


def scan_codes(evaluation: Evaluation) -> dict[str, str]:
    """Return a code for every scan that tells nothing of the person.

    Parameters
    ----------
    evaluation : Evaluation
        Its seed draws the order, so that codes do not follow the order of names.

    Returns
    -------
    dict of str to str
        From scan to code, S0001 and so on.
    """
    scans = list(evaluation.cohort.table["scan"])
    rng = np.random.default_rng(evaluation.settings["random_state"])
    width = max(4, len(str(len(scans))))
    return {
        scans[row]: f"S{number:0{width}d}"
        for number, row in enumerate(rng.permutation(len(scans)), start=1)
    }


def write_private(evaluation: Evaluation, folder: Path, codes: dict[str, str]) -> Path:
    """Write what names people: splits, predictions, the key of the codes.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    folder : Path
        Made here, for its owner's eyes only.
    codes : dict of str to str
        From scan to code.

    Returns
    -------
    Path
        The folder.
    """
    table = evaluation.cohort.table
    folder.mkdir(mode=0o700)
    write_tsv(predictions_table(evaluation), folder / "predictions.tsv")
    key = table[["scan", "participant"]].assign(code=table["scan"].map(codes))
    write_tsv(key, folder / "codes.tsv")
    write_splits(
        evaluation.splits,
        folder / "splits.tsv",
        scans=list(table["scan"]),
        participants=list(table["participant"]),
    )
    if evaluation.audit is not None and len(evaluation.audit.pairs):
        write_tsv(evaluation.audit.pairs, folder / "scans_too_alike.tsv")
    provenance = json.dumps(evaluation.cohort.provenance, indent=1, default=str)
    (folder / "provenance.json").write_text(provenance + "\n", encoding="utf-8")
    for file in folder.iterdir():
        file.chmod(0o600)
    folder.chmod(0o700)
    return folder


def predictions_table(
    evaluation: Evaluation, codes: dict[str, str] | None = None
) -> pd.DataFrame:
    """Return the out-of-fold predictions of all models.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    codes : dict of str to str, optional
        From scan to code. Given, codes stand for scans and no person is named.

    Returns
    -------
    DataFrame
        Columns model, fold, scan (and participant), truth, predicted, `p_<class>`;
        with codes in the order of the codes.
    """
    parts = [
        result.predictions().drop(columns="row").assign(model=name)
        for name, result in evaluation.results.items()
    ]
    frame = pd.concat(parts, ignore_index=True)
    frame = frame[["model", *[name for name in frame if name != "model"]]]
    frame = mark_by_scan(frame, evaluation)
    if codes is None:
        return frame
    frame = frame.drop(columns="participant")
    frame["scan"] = frame["scan"].map(codes)
    place = {name: number for number, name in enumerate(evaluation.results)}
    order = frame.assign(place=frame["model"].map(place))
    return frame.loc[order.sort_values(["place", "scan", "fold"]).index]


def name_filter(evaluation: Evaluation) -> Callable[[str], str]:
    """Return a function that takes the names of people and scans out of text.

    Parameters
    ----------
    evaluation : Evaluation
        Its table knows the names.

    Returns
    -------
    function of str
        Puts "[name withheld]" in the place of every name, for example in notes of
        the reader of files and in warnings.
    """
    table = evaluation.cohort.table
    names = {str(name) for column in ("scan", "participant") for name in table[column]}
    names |= {name.removeprefix("sub-") for name in names}
    patterns = [
        re.escape(name)
        if len(name) >= SHORTEST_NAME
        else _BEFORE_NAME + re.escape(name)
        for name in sorted(names - {""}, key=lambda name: (-len(name), name))
    ]
    expression = re.compile(
        rf"(?<![0-9A-Za-z])(?:{'|'.join(patterns)})(?![0-9A-Za-z])", re.IGNORECASE
    )
    return lambda text: expression.sub("[name withheld]", text)


def _listed(folder: Path) -> set[str]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return set(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
