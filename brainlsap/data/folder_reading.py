"""Read everything below a cohort's folder, whether or not it makes a cohort."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap._arrays import check_choice
from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.cohort import Cohort
from brainlsap.data.cohort_reader import STRENGTH, CohortReader
from brainlsap.data.feature_rules import SUBCORTEX
from brainlsap.data.reading_record import reading_record
from brainlsap.data.scan_files import CohortFiles
from brainlsap.data.scan_list import ScanList, list_scans
from brainlsap.data.source_choice import SourceChoice
from brainlsap.exceptions import CohortError, ParameterError


@dataclass(frozen=True, eq=False)
class FolderReading:
    """What was read below a folder, with its faults.

    Parameters
    ----------
    listed : ScanList
        Who is in it.
    reader : CohortReader
        Knows faults and notes.
    connectomes, features : array
        As :class:`.Cohort` has them; 0 and NaN where there was a fault.
    feature_names : tuple of str
        Of the last axis of `features`.
    label : str
        What the label is.
    provenance : dict
        Where the cohort comes from.
    """

    listed: ScanList
    reader: CohortReader
    connectomes: np.ndarray
    features: np.ndarray
    feature_names: tuple[str, ...]
    label: str
    provenance: dict[str, Any]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was mapped, mirrored or dropped."""
        return (*self.listed.notes, *self.reader.all_notes())

    def to_cohort(self) -> Cohort:
        """Return the cohort of a reading without faults.

        Returns
        -------
        Cohort

        Raises
        ------
        CohortError
            Where the parts do not fit each other.
        """
        from brainlsap.simulation import read_truth

        return Cohort(
            connectomes=self.connectomes,
            features=self.features,
            table=self.listed.table,
            atlas=self.reader.atlas,
            feature_names=self.feature_names,
            classes=self.listed.classes,
            label_name=self.label,
            notes=self.notes,
            provenance=self.provenance,
            truth=read_truth(self.reader.files.folder, self.reader.atlas),
        )


def read_folder(
    folder: str | Path,
    atlas: str | Path | Atlas,
    feature: str | Sequence[str],
    label: str | None,
    *,
    classes: Sequence[str] | None = None,
    connectome: str | Path | np.ndarray | None = None,
    subjects_dir: str | Path | None = None,
    derivatives: Sequence[str | Path] = (),
    pattern: str | Mapping[str, str] | None = None,
    scans: str = "all",
    subcortex: str = "absent",
    features_table: str | Path | Sequence[str | Path] | None = None,
    labels: str | Path | Sequence[str] | None = None,
    measure: str | None = None,
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
    progress: bool = False,
) -> FolderReading:
    """Read everything below a cohort's folder.

    Parameters
    ----------
    folder, atlas, feature, label : see :func:`.load_cohort`
        What is read.
    classes, connectome, subjects_dir, derivatives : see :func:`.load_cohort`
        Which labels, and where files are.
    pattern, scans, subcortex, features_table : see :func:`.load_cohort`
        Which files, visits and tables.
    labels, measure, frames, reference, progress : see :func:`.load_cohort`
        What is in the files.

    Returns
    -------
    FolderReading
        Faults of single scans are in its reader.

    Raises
    ------
    CohortError
        Where nothing can be read at all: no folder, no list of people, no label.
    ParameterError, RegionNameError
        Where an argument cannot be used.
    """
    check_choice("scans", scans, ("all", "baseline"))
    check_choice("subcortex", subcortex, SUBCORTEX)
    names = _feature_names(feature)
    atlas = load_atlas(atlas)
    asked = reading_record(
        *(folder, atlas),
        feature=list(names),
        label=label,
        classes=classes,
        scans=scans,
        connectome=connectome,
        subjects_dir=subjects_dir,
        frames=frames,
        derivatives=derivatives,
        pattern=pattern,
        subcortex=subcortex,
        features_table=features_table,
        labels=labels,
        measure=measure,
        reference=reference,
    )
    files = CohortFiles(_check_folder(folder), derivatives, subjects_dir, pattern)
    choice = SourceChoice(files, atlas, subcortex, features_table, frames, reference)
    read_names = [name for name in names if name != STRENGTH]
    listed = list_scans(files, choice, read_names, label, classes=classes, which=scans)
    reader = CohortReader(listed, files, choice, labels, measure)
    connectomes, features = reader.read(names, connectome, progress)
    provenance = {
        "folder": str(folder),
        "atlas": atlas.name,
        "connectome": _describe(connectome),
        "scans": scans,
        "subcortex": subcortex,
        "brainlsap": _version(),
        "asked": asked,
    }
    return FolderReading(
        listed, reader, connectomes, features, names, label or "none", provenance
    )


def _feature_names(feature: str | Sequence[str]) -> tuple[str, ...]:
    names = (feature,) if isinstance(feature, str) else tuple(feature)
    if not names or len(set(names)) < len(names) or not all(names):
        raise ParameterError(
            f"feature must be a name or a list of different names, got {feature!r}."
        )
    return names


def _check_folder(folder: str | Path) -> Path:
    path = Path(folder)
    if path.is_file():
        raise CohortError(
            f"{path} is a file; expected a cohort's folder. Cohort.read reads .h5 files"
        )
    if not path.is_dir():
        raise CohortError(f"{path}: no such folder")
    return path


def _describe(connectome: str | Path | np.ndarray | None) -> str:
    if connectome is None:
        return "one per scan"
    return "array" if isinstance(connectome, np.ndarray) else str(connectome)


def _version() -> str:
    try:
        return version("brainlsap")
    except PackageNotFoundError:  # a checkout that was never installed
        return "unknown"
