"""Where a cohort's features come from: one source for all scans, never a mixture.

A source finds what it needs for every scan first and lists what is missing; then it
reads scan by scan.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from brainlsap.data.atlas import Atlas
from brainlsap.data.feature_rules import FeatureFile
from brainlsap.data.features import read_region_table, read_stats_feature
from brainlsap.data.freesurfer import SubjectStats
from brainlsap.data.scan_files import CohortFiles

KINDS = ("cross-sectional", "longitudinal")


@dataclass(frozen=True)
class Scan:
    """One scan of a cohort, and its files.

    Parameters
    ----------
    name : str
        Of the scan, such as `sub-01_ses-M00`.
    participant, session : str
        As the tables write them.
    key : tuple of str
        Person and visit in the spelling that names are compared by.
    is_only : bool
        Whether the person has no other scan.
    files : tuple of Path
        Of this scan.
    """

    name: str
    participant: str
    session: str
    key: tuple[str, str]
    is_only: bool
    files: tuple[Path, ...] = field(default=(), repr=False)


class FeatureSource(Protocol):
    """What :func:`~brainlsap.data.folders.load_cohort` asks of a source."""

    faults: list[str]
    notes: list[str]

    def read(self, row: int, feature: str) -> FeatureFile | None:
        """Read one feature of one scan.

        Parameters
        ----------
        row : int
            Of the scan in the cohort.
        feature : str
            Name of the feature.

        Returns
        -------
        FeatureFile or None
            None where the scan's files were not found, which is a fault.
        """


class RegionFiles:
    """A table of regions for every scan.

    Parameters
    ----------
    paths : list of Path or None
        Of every scan.
    scans : sequence of Scan
        In the order of the cohort.
    feature : str
        Name of the feature.
    atlas : Atlas
        Names the regions and gives their order.
    subcortex : str
        What the subcortex has for features of the cortical surface.
    patterns : sequence of str
        That the files were looked for by.
    frames, reference : optional
        Of PET, as :func:`.read_feature` takes them.
    """

    def __init__(
        self,
        paths: list[Path | None],
        scans: Sequence[Scan],
        feature: str,
        atlas: Atlas,
        subcortex: str,
        patterns: Sequence[str],
        frames: tuple[float, float] | None = None,
        reference: str | Path | None = None,
    ) -> None:
        self.frames, self.reference = frames, reference
        self.paths, self.atlas, self.subcortex = paths, atlas, subcortex
        self.notes = [f"{feature}: read from a table of regions for every scan"]
        wanted = " or ".join(patterns)
        self.faults = [
            f"{scan.name}: no table of regions for {feature}; expected a file {wanted}"
            for scan, path in zip(scans, paths, strict=True)
            if path is None
        ]

    def read(self, row: int, feature: str) -> FeatureFile | None:
        """Read one feature of one scan.

        Parameters
        ----------
        row : int
            Of the scan in the cohort.
        feature : str
            Name of the feature.

        Returns
        -------
        FeatureFile or None
            None where the scan's files were not found, which is a fault.
        """
        path = self.paths[row]
        if path is None:
            return None
        return read_region_table(
            path,
            feature,
            self.atlas,
            subcortex=self.subcortex,
            frames=self.frames,
            reference=self.reference,
        )


class FreeSurferSubjects:
    """FreeSurfer's stats for every scan, all of one kind of run.

    Parameters
    ----------
    scans : sequence of Scan
        In the order of the cohort.
    files : CohortFiles
        Of this scan.
    atlas : Atlas
        Names the regions and gives their order.
    subcortex : str
        What the subcortex has for features of the cortical surface.
    """

    def __init__(
        self, scans: Sequence[Scan], files: CohortFiles, atlas: Atlas, subcortex: str
    ) -> None:
        self.atlas, self.subcortex = atlas, subcortex
        self.faults: list[str] = []
        self.notes: list[str] = []
        options = [self._options(scan, files) for scan in scans]
        self.found = any(any(option.values()) for option in options)
        self.folders: list[Path | None] = [None] * len(scans)
        self._last: tuple[int, SubjectStats] | None = None
        if self.found:
            self._choose(scans, options)

    @staticmethod
    def _options(scan: Scan, files: CohortFiles) -> dict[str, list[Path]]:
        """Return the FreeSurfer subjects of a scan, by kind of run."""
        person, visit = scan.key
        known = files.freesurfer.get(scan.key, [])
        if not known and visit and scan.is_only:
            known = files.freesurfer.get((person, ""), [])
        if not known and not visit:
            known = [
                entry
                for key, entries in files.freesurfer.items()
                if key[0] == person
                for entry in entries
            ]
        options: dict[str, list[Path]] = {kind: [] for kind in KINDS}
        for name, path in known:
            options[KINDS[bool(name.base)]].append(path)
        if files.subjects is None:
            for path in scan.files:
                if path.name.startswith("lh.aparc") and path.suffix == ".stats":
                    folder = path.parent
                    folder = folder.parent if folder.name == "stats" else folder
                    options[KINDS[".long." in folder.name]].append(folder)
        return {kind: sorted(set(paths)) for kind, paths in options.items()}

    def _choose(
        self, scans: Sequence[Scan], options: Sequence[dict[str, list[Path]]]
    ) -> None:
        counts = {kind: sum(bool(o[kind]) for o in options) for kind in KINDS}
        whole = [kind for kind in KINDS if counts[kind] == len(scans)]
        if len(whole) == 2:
            self.faults.append(
                "FreeSurfer: every scan has a cross-sectional and a longitudinal run; "
                "choose one by pattern={'freesurfer': '*.long.*'} or "
                "pattern={'freesurfer': '!*.long.*'}"
            )
            return
        if not whole and all(counts.values()):
            self.faults += _mixture(scans, options)
            return
        kind = whole[0] if whole else max(KINDS, key=lambda name: counts[name])
        for row, (scan, option) in enumerate(zip(scans, options, strict=True)):
            if len(option[kind]) == 1:
                self.folders[row] = option[kind][0]
            elif option[kind]:
                listed = ", ".join(str(path) for path in option[kind])
                self.faults.append(
                    f"{scan.name}: {len(option[kind])} FreeSurfer subjects could be "
                    f"it: {listed}; choose by subjects_dir= or pattern="
                )
            else:
                self.faults.append(
                    f"{scan.name}: no FreeSurfer subject; expected a folder named "
                    f"{scan.name} with stats inside"
                )
        self.notes.append(f"FreeSurfer: stats of {kind} runs")

    def read(self, row: int, feature: str) -> FeatureFile | None:
        """Read one feature of one scan; the files of the last scan are kept.

        Parameters
        ----------
        row : int
            Of the scan in the cohort.
        feature : str
            Name of the feature.

        Returns
        -------
        FeatureFile or None
            None where the scan's files were not found, which is a fault.
        """
        folder = self.folders[row]
        if folder is None:
            return None
        if self._last is None or self._last[0] != row:
            self._last = row, SubjectStats(folder, self.atlas)
        return read_stats_feature(self._last[1], feature, self.subcortex)


def _mixture(
    scans: Sequence[Scan], options: Sequence[dict[str, list[Path]]]
) -> list[str]:
    """List who has which kind of run, where neither kind is complete."""
    faults = []
    for kind in KINDS:
        without = [s.name for s, o in zip(scans, options, strict=True) if not o[kind]]
        faults += [f"{name}: no {kind} FreeSurfer run" for name in without]
    return [
        "FreeSurfer: some scans have only a cross-sectional run and others only a "
        "longitudinal one; they are never mixed",
        *faults,
    ]
