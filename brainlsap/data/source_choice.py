"""Choose, for each feature, the one place that a cohort's values are read from."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from brainlsap.data.atlas import Atlas
from brainlsap.data.feature_rules import FEATURES, get_feature
from brainlsap.data.feature_sources import (
    FeatureSource,
    FreeSurferSubjects,
    RegionFiles,
    Scan,
)
from brainlsap.data.feature_tables import ScanTable, open_scan_table, unknown_columns
from brainlsap.data.parcellations import GTMSEG
from brainlsap.data.participants import PARTICIPANTS_FILE
from brainlsap.data.scan_files import CohortFiles
from brainlsap.data.scan_names import visit_order
from brainlsap.data.table_rows import TableRows, choose_tables
from brainlsap.data.tables import TABLE_SUFFIXES
from brainlsap.exceptions import CohortError, FileFormatError

_NO_TABLES = (PARTICIPANTS_FILE, "truth.tsv")


class SourceChoice:
    """The places that features can come from.

    Parameters
    ----------
    files : CohortFiles
        Of the cohort.
    atlas : Atlas
        Names the regions and gives their order.
    subcortex : {"absent", "mean", "volume"}
        What the subcortex has for features of the cortical surface.
    features_table : path or sequence of path, optional
        The only tables to look at.
    frames, reference : optional
        Of PET, as :func:`.read_feature` takes them.
    """

    def __init__(
        self,
        files: CohortFiles,
        atlas: Atlas,
        subcortex: str,
        features_table: str | Path | Sequence[str | Path] | None = None,
        frames: tuple[float, float] | None = None,
        reference: str | Path | None = None,
    ) -> None:
        self.frames, self.reference = frames, reference
        self.files, self.atlas, self.subcortex = files, atlas, subcortex
        if isinstance(features_table, str | Path):
            features_table = [features_table]
        self.given = None if features_table is None else list(features_table)
        self.skipped: list[str] = []
        self._subjects: FreeSurferSubjects | None = None

    @cached_property
    def tables(self) -> list[ScanTable]:
        """Tables of many scans: those given, or those in the cohort's folders."""
        if self.given is not None:
            return [open_scan_table(self._locate(p), self.atlas) for p in self.given]
        folders = [*self.files.roots, self.files.subjects]
        found = []
        for folder in (place for place in folders if place is not None):
            for path in sorted(folder.iterdir()):
                if path.suffix not in TABLE_SUFFIXES or path.name in _NO_TABLES:
                    continue
                try:
                    found.append(open_scan_table(path, self.atlas))
                except FileFormatError as error:
                    self.skipped.append(str(error))
        return found

    def find(self, feature: str, scans: Sequence[Scan]) -> FeatureSource:
        """Return the source of a feature.

        Parameters
        ----------
        feature : str
            Name of the feature.
        scans : sequence of Scan
            In the order of the cohort.

        Returns
        -------
        FeatureSource

        Raises
        ------
        CohortError
            Where there is none, or it cannot be told which.
        """
        if self.given is None:
            beside = self._beside(feature, scans)
            if beside is not None:
                return beside
            if get_feature(feature).in_stats:
                subjects = self._subjects or FreeSurferSubjects(
                    scans, self.files, self.atlas, self.subcortex
                )
                self._subjects = subjects
                if subjects.found:
                    return subjects
        tables = choose_tables(self.tables, feature, self.atlas, self.subcortex)
        if not tables:
            raise CohortError(self._nowhere(feature))
        return TableRows(tables, scans, feature, self.atlas, self.subcortex)

    def people_table(self, features: Sequence[str], label: str | None) -> ScanTable:
        """Return the one table that holds labels and regions in one.

        Parameters
        ----------
        features : sequence of str
            The first decides which tables have regions; none: any table will do.
        label : str or None
            Column that is to be predicted, if one is read.

        Returns
        -------
        ScanTable

        Raises
        ------
        CohortError
            Where there is none, or more than one.
        """
        found = [
            one for one in self.tables if label is None or label in one.table.columns
        ]
        if features:
            found = choose_tables(found, features[0], self.atlas, self.subcortex)
        if len(found) == 1:
            return found[0]
        listed = ", ".join(str(table.path) for table in found)
        found_some = f"{len(found)} tables could be it: {listed}; say which by "
        asked = "" if label is None else f"{label!r} and "
        raise CohortError(
            f"{self.files.folder}: no {PARTICIPANTS_FILE}, and no table that holds "
            f"ids, {asked}regions of {self.atlas.name} in its place. Is this "
            "the cohort's folder?"
            if not found
            else f"{self.files.folder}: no {PARTICIPANTS_FILE}; {found_some}"
            "features_table="
        )

    def sessions(self, key: str) -> list[str]:
        """Return the visits of a person that tables or FreeSurfer know, in time.

        Parameters
        ----------
        key : str
            Of the person, as :func:`.person_key` gives it.

        Returns
        -------
        list of str
        """
        return self._visits.get(key, [])

    @cached_property
    def _visits(self) -> dict[str, list[str]]:
        names = [
            name for entries in self.files.freesurfer.values() for name, _ in entries
        ]
        if not names or self.given is not None:
            tables = [table for table in self.tables if table.regions]
            names = [name for table in tables for name in table.scan_names()]
        visits: dict[str, dict[str, str]] = {}
        for name in names:
            if name.session:
                person, visit = name.key
                visits.setdefault(person, {}).setdefault(visit, name.session)
        return {
            person: sorted(known.values(), key=visit_order)
            for person, known in visits.items()
        }

    def _beside(self, feature: str, scans: Sequence[Scan]) -> RegionFiles | None:
        """Return the tables of regions beside the scans, None where there are none."""
        paths: list[Path | None] = []
        faults = []
        for scan in scans:
            try:
                paths.append(self.files.regions(scan.files, feature, self.atlas))
            except CohortError as error:
                faults.append(f"{scan.name}: {error}")
                paths.append(None)
        asked_for = feature in self.files.patterns
        if not faults and not any(paths) and not asked_for:
            return None
        patterns = self.files.region_patterns(feature)
        source = RegionFiles(
            *(paths, scans, feature, self.atlas, self.subcortex, patterns),
            frames=self.frames,
            reference=self.reference,
        )
        ambiguous = {fault.split(":")[0] for fault in faults}
        rest = [f for f in source.faults if f.split(":")[0] not in ambiguous]
        source.faults = faults + rest
        return source

    def _locate(self, path: str | Path) -> Path:
        inside = self.files.folder / path
        return inside if inside.is_file() and not Path(path).is_file() else Path(path)

    def _nowhere(self, feature: str) -> str:
        known = get_feature(feature)
        if feature not in FEATURES and feature.lower() in (*FEATURES, "strength"):
            return f"{feature}: no such feature; did you mean {feature.lower()!r}?"
        places = [f"files {' or '.join(known.files)} beside the scans"]
        if known.in_stats:
            places.append("FreeSurfer subjects (folders with stats inside)")
        places.append("tables with a row per scan and a column per region")
        message = f"{feature}: found nowhere; looked for {', '.join(places)}"
        if self.given is not None:
            listed = ", ".join(str(path) for path in self.given)
            message = f"{feature}: no column of {listed} is {feature} of a region"
        others = [unknown_columns(t, self.atlas) for t in self.tables if t.strangers]
        self.skipped += [reason for reason in others if GTMSEG in reason]
        unread = "".join(f"; not used: {reason}" for reason in self.skipped)
        return f"{message} in {self.files.folder}{unread}"
