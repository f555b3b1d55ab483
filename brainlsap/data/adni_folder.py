"""Write what was imported from ADNI as a cohort's folder, whole or not at all."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap._locks import fill_folder
from brainlsap.data.adni_files import place_files
from brainlsap.data.adni_pairing import session_of, subject_of
from brainlsap.data.spreadsheets import write_tsv

_PERSON = ("ptid", "rid", "sex", "education", "apoe4", "first_phase", "site")
_SESSION = ("viscode", "exam_date", "phase", "age", "mmse", "diagnosis")


@dataclass(frozen=True, eq=False)
class AdniImport:
    """What was imported from ADNI.

    Parameters
    ----------
    folder : Path
        The cohort's folder.
    pairs : DataFrame
        Every image that is used, its visit and the days between.
    unused : DataFrame
        Every other image, and why.
    converters : DataFrame
        Changes of diagnosis between visits.
    labels : DataFrame
        People by phase, site and baseline label.
    notes : tuple of str
        What was left out, reckoned or lost.

    Examples
    --------
    See :func:`brainlsap.data.import_adni`.
    """

    folder: Path
    pairs: pd.DataFrame
    unused: pd.DataFrame
    converters: pd.DataFrame
    labels: pd.DataFrame
    notes: tuple[str, ...]

    def text(self) -> str:
        """Return what was imported, as lines of text."""
        people, scans = self.pairs["participant_id"], self.pairs["session_id"]
        n_scans = len(set(zip(people, scans, strict=True)))
        counts = self.pairs["modality"].value_counts().sort_index()
        kinds = self.converters["kind"].value_counts()
        lines = [
            f"{people.nunique()} people, {n_scans} visits with images",
            "images: " + ", ".join(f"{name} {n}" for name, n in counts.items()),
            f"images that are not used: {len(self.unused)} (adni_unused_images.tsv)",
            f"changes of diagnosis: {kinds.get('conversion', 0)} conversions, "
            f"{kinds.get('reversion', 0)} reversions (adni_converters.tsv)",
            *self.notes,
        ]
        return "\n".join(lines) + "\n"


def write_folder(made: AdniImport, visits: pd.DataFrame, files: str) -> None:
    """Write the folder under a temporary name, and rename it when it is whole.

    Parameters
    ----------
    made : AdniImport
        What to write.
    visits : DataFrame
        Of everybody, with labels.
    files : {"link", "copy", "none"}
        What becomes of the images.
    """
    with fill_folder(made.folder) as whole:
        _write_people(made, visits, whole)
        place_files(made.pairs, whole, files)
        write_tsv(made.pairs, whole / "adni_pairing.tsv")
        write_tsv(made.unused, whole / "adni_unused_images.tsv")
        write_tsv(made.converters, whole / "adni_converters.tsv")
        write_tsv(made.labels, whole / "adni_labels_by_phase.tsv")
        (whole / "adni_notes.txt").write_text(made.text(), encoding="utf-8")


def _write_people(made: AdniImport, visits: pd.DataFrame, folder: Path) -> None:
    described: dict[str, Any] = {
        "Name": "ADNI",
        "BIDSVersion": "1.10.0",
        "DatasetType": "raw",
        "GeneratedBy": [{"Name": "brainlsap import-adni"}],
    }
    (folder / "dataset_description.json").write_text(
        json.dumps(described, indent=2) + "\n", encoding="utf-8"
    )
    kept = visits[visits["ptid"].map(_subject).isin(set(made.pairs["participant_id"]))]
    kept = kept.assign(
        participant_id=kept["ptid"].map(subject_of),
        session_id=kept["month"].map(session_of),
        exam_date=kept["date"],
    )
    scanners = _by_visit(made.pairs, "scanner")
    people = kept.drop_duplicates("participant_id")
    write_tsv(people[["participant_id", *_PERSON]], folder / "participants.tsv")
    keys = zip(kept["participant_id"], kept["session_id"], strict=True)
    scanner = pd.Series([scanners.get(key) for key in keys], index=kept.index)
    kept = kept.assign(scanner=scanner.where(scanner.notna(), kept["field"]))
    columns = ["session_id", *_SESSION, "stage", "stage_carried", "scanner"]
    for name, rows in kept.groupby("participant_id"):
        place = folder / str(name)
        place.mkdir()
        write_tsv(rows[columns], place / f"{name}_sessions.tsv")


def _subject(ptid: str | None) -> str | None:
    return subject_of(ptid) if isinstance(ptid, str) else None


def _by_visit(pairs: pd.DataFrame, column: str) -> dict[tuple[str, str], str]:
    """Return the scanners of a visit, with their modality if they differ."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in pairs[pairs[column].notna()].to_dict("records"):
        key = (row["participant_id"], row["session_id"])
        found.setdefault(key, {})[row["modality"]] = row[column]
    return {
        key: next(iter(told.values()))
        if len(set(told.values())) == 1
        else "; ".join(f"{name}: {what}" for name, what in sorted(told.items()))
        for key, told in found.items()
    }
