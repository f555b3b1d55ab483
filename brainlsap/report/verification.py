"""A results folder checked against itself: hashes, scores, splits, every table."""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data.spreadsheets import unguard_cells
from brainlsap.evaluation import SCORES, fold_scores
from brainlsap.evaluation.task_keys import code_version
from brainlsap.exceptions import BrainlsapError, FileFormatError
from brainlsap.report.folder import MANIFEST, PRIVATE, SHAREABLE
from brainlsap.report.folder_files import STORED, entries_of, file_hashes
from brainlsap.report.page import remake_report
from brainlsap.report.record import installed_versions
from brainlsap.report.verified_inputs import compare_inputs

RECORD = f"{SHAREABLE}/results.json"
PREDICTIONS = f"{PRIVATE}/predictions.tsv"
BY_FOLD = f"{SHAREABLE}/scores_by_fold.tsv"
# These tell of the day, the machine or the hashes; what the report is made anew from
# is held by its hash.
_NOT_COMPARED = (MANIFEST, f"{SHAREABLE}/log.txt", f"{PRIVATE}/{STORED}")
_UNLIKE = ("date", "versions", "code_sha256", "environment")
TOLERANCE = 1e-9
# What a column, a class or a fold that is missing or no number makes pandas raise.
_UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Verification:
    """What was recomputed from a results folder, and what differs.

    Parameters
    ----------
    checked : tuple of str
        What was done, in words.
    differences : tuple of str
        What is not as it should be; names files and numbers.
    notes : tuple of str
        What is otherwise than when the folder was written, and is no fault of it.

    Examples
    --------
    >>> Verification(("3 files",), ()).is_sound
    True
    """

    checked: tuple[str, ...]
    differences: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def verify_results(
    folder: str | Path, *, remake: bool = True, cohort: str | Path | None = None
) -> Verification:
    """Recompute what can be recomputed of a results folder, and say what differs.

    Hashes of all files; scores of every fold from the stored predictions; that
    predictions are of the test scans of the splits, and no person is on both sides;
    then the whole report is made anew and compared file by file.

    Parameters
    ----------
    folder : str or Path
        Results folder of `brainlsap run`, with its `private/`.
    remake : bool
        Whether to make the report anew, which takes as long as drawing it, and to
        read the cohort again.
    cohort : path, optional
        Where the cohort is, if elsewhere than when it was run; it is read again.

    Returns
    -------
    Verification
        With `checked`, `differences`, `notes` and `is_sound`.

    Raises
    ------
    FileFormatError
        Where the folder is none of a run, or a table in it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> from brainlsap.report import write_report
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     page = write_report(evaluation, f"{place}/results", atlas=cohort.atlas)
    ...     one = verify_results(f"{place}/results", remake=False)
    ...     scores = Path(place, "results", "report", "scores_by_fold.tsv")
    ...     _ = scores.write_text(scores.read_text().replace("0.2", "0.9"))
    ...     two = verify_results(f"{place}/results", remake=False)
    >>> one.is_sound, two.is_sound
    (True, False)
    """
    folder = Path(folder).expanduser().resolve()
    manifest, record = _read_json(folder / MANIFEST), _read_json(folder / RECORD)
    hashes = manifest.get("sha256")
    if not isinstance(hashes, dict) or "models" not in record:
        raise FileFormatError(
            f"{folder}: no results folder with hashes; expected one that brainlsap run "
            "wrote. An older one: make it anew with brainlsap report."
        )
    told = _read_table(folder / PREDICTIONS)
    checked, differences = _from_predictions(folder, hashes, told, record)
    notes = _environment_notes(record)
    if remake or cohort is not None:
        found = compare_inputs(folder, cohort)
        for kept, more in zip((checked, differences, notes), found, strict=True):
            kept.extend(more)
    if remake:
        unlike = _remade_otherwise(folder)
        checked.append("every table, figure and page, made anew")
        # another version may draw or round otherwise: that is told, not held against
        (notes or differences).extend(unlike)
    return Verification(tuple(checked), tuple(differences), tuple(notes))


def _from_predictions(
    folder: Path, hashes: dict[str, str], told: pd.DataFrame, record: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """Return what was checked, and what differs, without anything made anew."""
    try:
        differences = [
            *_changed_files(folder, hashes),
            *_other_scores(folder, told, record),
            *_other_splits(folder, told, record),
        ]
        checked = [
            f"{len(hashes)} files by their SHA-256",
            f"{len(SCORES)} scores of {told['model'].nunique()} models in "
            f"{told['fold'].nunique()} folds, from {len(told)} predictions",
            "splits: whose predictions they are, nobody on both sides",
        ]
    except _UNFIT as error:
        if isinstance(error, BrainlsapError):
            raise
        raise FileFormatError(
            f"{folder}: its predictions, splits and record do not fit together "
            f"({error!r:.120}); they are not what a run wrote."
        ) from error
    return checked, differences


def _changed_files(folder: Path, hashes: dict[str, str]) -> Iterator[str]:
    there = entries_of(folder) - {MANIFEST}
    for name in sorted(set(hashes) - there):
        yield f"{name}: missing"
    for name in sorted(there - set(hashes)):
        yield f"{name}: not written by the run"
    for name, digest in file_hashes(folder, sorted(there & set(hashes))).items():
        if digest != hashes[name]:
            yield f"{name}: changed since it was written"


def _other_scores(
    folder: Path, told: pd.DataFrame, record: dict[str, Any]
) -> Iterator[str]:
    classes = [one["class"] for one in record["cohort"]["classes"]]
    columns = [f"p_{name}" for name in classes]
    written = _read_table(folder / BY_FOLD)
    for (model, fold), rows in told.groupby(["model", "fold"], sort=False):
        probability = rows[columns].to_numpy(dtype=float)
        found = fold_scores(list(rows["truth"].astype(str)), probability, classes)
        best = np.array(classes, dtype=object)[probability.argmax(axis=1)]
        if (best != rows["predicted"].astype(str).to_numpy()).any():
            yield f"{PREDICTIONS}: {model}, fold {fold}: predicted is not the likeliest"
        here = written[(written["model"] == model) & (written["fold"] == fold)]
        stored = record["models"].get(model, {}).get("scores", {})
        for name, value in found.items():
            places = {BY_FOLD: here[name].to_numpy(dtype=float)}
            listed = stored.get(name, {}).get("folds", [])
            places[RECORD] = np.array(listed[int(fold) - 1 : int(fold)], dtype=float)
            for place, kept in places.items():
                if kept.shape != (1,) or not _alike(kept[0], value):
                    shown = kept[0] if len(kept) else "nothing"
                    yield (
                        f"{place}: {name} of {model}, fold {fold}, is {shown}; the "
                        f"predictions give {value:.6g}"
                    )


def _other_splits(
    folder: Path, told: pd.DataFrame, record: dict[str, Any]
) -> Iterator[str]:
    name = f"{PRIVATE}/splits.tsv"
    splits = _read_table(folder / name)
    for fold, rows in splits.groupby("fold", sort=False):
        sides = {part: rows[rows["part"] == part] for part in ("train", "test")}
        people = [set(one["participant"]) for one in sides.values()]
        shared = len(people[0] & people[1])
        if shared and not record["settings"].get("people_shared"):
            yield f"{name}: fold {fold} has {shared} people on both sides"
        wanted = sorted(sides["test"]["scan"].astype(str))
        mine = told[told["fold"].astype(str) == str(fold)]
        for model, predicted in mine.groupby("model", sort=False):
            if sorted(predicted["scan"].astype(str)) != wanted:
                yield (
                    f"{PREDICTIONS}: {model} does not predict the test scans of fold "
                    f"{fold} in {name}"
                )


def _environment_notes(record: dict[str, Any]) -> list[str]:
    notes = []
    if record.get("code_sha256") != code_version():
        notes.append("the code that fits and predicts is another than that of the run")
    before, now = record.get("versions", {}), installed_versions()
    notes += [
        f"{name} was {before.get(name)}, and is {now[name]}"
        for name in now
        if before.get(name) != now[name]
    ]
    return notes


def _remade_otherwise(folder: Path) -> list[str]:
    """Make the report anew elsewhere, and name what comes out otherwise."""
    identified = "participant" in _read_table(folder / SHAREABLE / "predictions.tsv")
    with tempfile.TemporaryDirectory() as place:
        again = Path(place).resolve() / "again"
        try:
            remake_report(folder, again, with_identifiers=identified)
        except BrainlsapError as error:
            return [f"the report cannot be made anew ({error})"]
        one, two = (entries_of(one) - set(_NOT_COMPARED) for one in (folder, again))
        found = [f"{name}: not made anew" for name in sorted(one - two)]
        found += [f"{name}: made anew, but not there" for name in sorted(two - one)]
        day = [_read_json(place / RECORD).get("date", "") for place in (folder, again)]
        for name in sorted(one & two):
            before, after = ((place / name).read_bytes() for place in (folder, again))
            if name == RECORD:
                before, after = (_lasting(text) for text in (before, after))
            elif name.endswith((".html", ".txt")):
                before = before.replace(day[0].encode(), day[1].encode())
            if before != after:
                found.append(f"{name}: comes out otherwise when made anew")
    return found


def _lasting(text: bytes) -> bytes:
    """Return a record without what tells of the day and the machine."""
    record = json.loads(text)
    return json.dumps({k: v for k, v in record.items() if k not in _UNLIKE}).encode()


def _alike(one: float, other: float) -> bool:
    return bool(np.isclose(one, other, rtol=0, atol=TOLERANCE, equal_nan=True))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileFormatError(
            f"{path}: no such file; expected the results folder of brainlsap run, "
            "rank or compare, whole."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: cannot be read ({error}).") from None
    return found if isinstance(found, dict) else {}


def _read_table(path: Path) -> pd.DataFrame:
    text = {"scan": str, "participant": str, "truth": str, "predicted": str}
    try:
        # labels such as "NA" are labels; a score that is missing is n/a
        table = pd.read_csv(
            path, sep="\t", dtype=text, keep_default_na=False, na_values=["n/a"]
        )
        return unguard_cells(table)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path}: cannot be read ({error}).") from None
