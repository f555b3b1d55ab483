"""Say what a study's folder holds, and how else it could be read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainlsap.data.cohort import Cohort
from brainlsap.data.load import RefusedStudyError, count_people, load_cohort
from brainlsap.exceptions import CohortError, FileFormatError


@dataclass(frozen=True, eq=False)
class CohortCheck:
    """What a folder holds, before anything is computed with it.

    Parameters
    ----------
    folder : Path
        That was looked at.
    found : tuple of str
        People, scans, labels and files, counted.
    notes : tuple of str
        What was read by name or order, mirrored, filled or left out, with counts.
    faults : tuple of str
        Everything that keeps the cohort from being loaded; what many scans share is
        said once.
    cohort : Cohort or None
        None where there are faults.
    """

    folder: Path
    found: tuple[str, ...]
    notes: tuple[str, ...]
    faults: tuple[str, ...]
    cohort: Cohort | None = None

    @property
    def is_sound(self) -> bool:
        """Whether the cohort can be loaded."""
        return not self.faults

    def text(self) -> str:
        """Return everything as lines of text."""
        lines = [str(self.folder)]
        dropped = [note for note in self.notes if "left out" in note]
        for title, entries in (
            ("Found", self.found),
            ("Mapped", [note for note in self.notes if note not in dropped]),
            ("Dropped", dropped),
            ("Faults", self.faults),
        ):
            if entries:
                lines += [f"{title}:", *(f"  {entry}" for entry in entries)]
        if self.is_sound:
            lines.append("No faults: the cohort can be loaded.")
        return "\n".join(lines) + "\n"


def check_cohort(folder: str | Path, *args: Any, **options: Any) -> CohortCheck:
    """Read a cohort's folder as :func:`load_cohort` does; list faults, raise none.

    Parameters
    ----------
    folder : str or Path
        The cohort's folder.
    *args, **options : see :func:`load_cohort`
        Its other arguments.

    Returns
    -------
    CohortCheck

    Raises
    ------
    ParameterError
        Where an argument cannot be used.
    """
    cohort: Cohort | None = None
    found: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    try:
        cohort = load_cohort(folder, *args, **options)
        notes = cohort.notes
        found = count_people(cohort.table, cohort.label_name, cohort.classes)
        own = cohort.provenance["connectome"] == "one per scan"
        for name in (*(["connectome"] if own else []), *cohort.feature_names):
            found[name] = f"{cohort.n_scans} of {cohort.n_scans} scans"
    except RefusedStudyError as error:
        found, notes, faults = error.found, error.notes, error.faults
    except (CohortError, FileFormatError) as error:
        # a list of people that cannot be used; nothing else can be said
        faults = (str(error),)
    lines = [f"{name}: {what}" if name else what for name, what in found.items()]
    return CohortCheck(Path(folder), tuple(lines), notes, faults, cohort)
