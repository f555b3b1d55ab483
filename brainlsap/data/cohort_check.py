"""Say what a cohort's folder holds: found, mapped, dropped, and every fault at once."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainlsap.data.cohort import Cohort
from brainlsap.data.cohort_reader import STRENGTH
from brainlsap.data.fault_groups import fault_lines
from brainlsap.data.folder_reading import FolderReading, read_folder
from brainlsap.exceptions import CohortError


@dataclass(frozen=True, eq=False)
class CohortCheck:
    """What a folder holds, before anything is computed with it.

    Parameters
    ----------
    folder : Path
        That was looked at.
    found : tuple of str
        People, scans, labels and files, counted.
    mapped : tuple of str
        What was read by name or order, mirrored or filled, with counts of scans.
    dropped : tuple of str
        What was left out.
    faults : tuple of str
        Everything that keeps the cohort from being loaded.
    cohort : Cohort or None
        None where there are faults.

    Examples
    --------
    >>> check = CohortCheck(Path("study"), (), (), (), ("sub-01: no connectome",))
    >>> check.is_sound
    False
    >>> print(check.text(), end="")
    study
    Faults (1):
      sub-01: no connectome
    """

    folder: Path
    found: tuple[str, ...]
    mapped: tuple[str, ...]
    dropped: tuple[str, ...]
    faults: tuple[str, ...]
    cohort: Cohort | None = None

    @property
    def is_sound(self) -> bool:
        """Whether the cohort can be loaded."""
        return not self.faults

    def text(self) -> str:
        """Return everything as lines of text; what many scans share is said once.

        Returns
        -------
        str
        """
        lines = [str(self.folder)]
        faults = fault_lines(self.faults, self.folder)
        for title, entries in (
            ("Found", self.found),
            ("Mapped", self.mapped),
            ("Dropped", self.dropped),
            ("Faults", faults),
        ):
            if entries:
                count = f" ({len(self.faults)})" if title == "Faults" else ""
                lines += [f"{title}{count}:", *(f"  {entry}" for entry in entries)]
        if self.is_sound:
            lines.append("No faults: the cohort can be loaded.")
        return "\n".join(lines) + "\n"


def check_cohort(
    folder: str | Path,
    atlas: Any = "destrieux160",
    feature: Any = "thickness",
    label: str = "diagnosis",
    **options: Any,
) -> CohortCheck:
    """Read a cohort's folder as :func:`.load_cohort` does; list faults, raise none.

    Parameters
    ----------
    folder : str or Path
        The cohort's folder.
    atlas, feature, label : see :func:`.load_cohort`
        What is read.
    **options : see :func:`.load_cohort`
        Its other arguments.

    Returns
    -------
    CohortCheck

    Raises
    ------
    ParameterError
        Where an argument cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.simulation import make_cohort
    >>> from brainlsap.simulation import write_study_folder as write_subject_folders
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = write_subject_folders(make_cohort(6), f"{place}/study")
    ...     check = check_cohort(folder, feature="fdg")
    >>> check.is_sound, check.found[0], check.found[2]
    (True, '6 people, 12 scans', 'connectome: 12 of 12 scans')
    """
    try:
        reading = read_folder(folder, atlas, feature, label, **options)
    except CohortError as error:
        # a list of people that cannot be used; nothing else can be said
        return CohortCheck(Path(folder), (), (), (), error.faults or (str(error),))
    faults = tuple(reading.reader.faults)
    cohort = None if faults else reading.to_cohort()
    dropped = tuple(note for note in reading.notes if "left out" in note)
    mapped = tuple(note for note in reading.notes if note not in dropped)
    return CohortCheck(Path(folder), _count(reading), mapped, dropped, faults, cohort)


def _count(reading: FolderReading) -> tuple[str, ...]:
    table = reading.listed.table
    n_scans, n_people = len(table), table["participant"].nunique()
    labels = Counter(table["label"].dropna().tolist())
    counted = ", ".join(f"{c} ({labels[c]})" for c in reading.listed.classes)
    lines = [f"{n_people} people, {n_scans} scans", f"{reading.label}: {counted}"]
    if reading.provenance["connectome"] == "one per scan":
        n_found = reading.reader.found["connectome"]
        lines.append(f"connectome: {n_found} of {n_scans} scans")
    lines += [
        f"{name}: {reading.reader.found[name]} of {n_scans} scans"
        for name in reading.feature_names
        if name != STRENGTH
    ]
    covariates = [str(name) for name in table.columns[4:]]
    if covariates:
        lines.append(f"covariates: {', '.join(covariates)}")
    return tuple(lines)
