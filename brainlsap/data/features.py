"""Regional values of every scan: where they are read from, and reading them.

A feature of a cohort comes from one kind of place for all scans, never a mixture: a
table of regions beside each scan, else FreeSurfer's stats, else tables with a row per
scan. Each kind finds what it needs first and lists what is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.find_files import (
    Scan,
    ScanName,
    StudyFiles,
    parse_scan_name,
    visit_order,
)
from brainlsap.data.freesurfer import read_stats
from brainlsap.data.measures import (
    KNOWN,
    Measure,
    check_structures,
    finish,
    get_measure,
)
from brainlsap.data.participants import PEOPLE_FILES
from brainlsap.data.region_tables import (
    ScanTable,
    read_region_values,
    read_scan_table,
    unknown_columns,
)
from brainlsap.exceptions import BrainlsapError, CohortError, FileFormatError

TRUTH_FILE = "truth.tsv"
_Tables = list[tuple[ScanTable, pd.DataFrame]]


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """One feature of one scan in the order of an atlas.

    Parameters
    ----------
    values : array of shape (n_rois,)
        In the unit of the file; NaN where not measured.
    notes : tuple of str
        What was left out or filled; the same words for every file that needed the
        same.
    """

    values: np.ndarray
    notes: tuple[str, ...] = ()


def read_feature(
    path: str | Path,
    feature: str,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    subcortex: str = "absent",
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
) -> FeatureFile:
    r"""Read one feature of one scan.

    Parameters
    ----------
    path : str or Path
        A FreeSurfer subject's folder (or its `stats`), or a table of regions: one row
        per region with a column of names (`region`, `name` ...) and one of values,
        headed like the feature, `suvr` or `value`; one row, a column per region;
        PETSurfer's `gtm.stats.dat`; or activity over time with the start and end of
        frames first.
    feature : str
        `thickness`, `area`, `volume` and `volume_per_etiv` (divided by the
        intracranial volume) are known to FreeSurfer's stats; any other name is
        looked for as a column, or as a measure of vertices (`surf/?h.<feature>`).
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    subcortex : {"absent", "mean", "volume"}
        What the subcortex has where the feature is measured on the surface.
    frames : (float, float), optional
        Start and end of the window over which activity is averaged, in the unit of
        the file (seconds in BIDS).
    reference : str or path, optional
        Region of PET by whose mean values are divided: "pons", "whole cerebellum" ...,
        the name of a region, or a time series of its own.

    Returns
    -------
    FeatureFile

    Raises
    ------
    FileFormatError
        Where the file is missing, cut short, lacks the column or a region.
    RegionNameError
        Where a region is unknown or stands twice.
    ParameterError
        Where activity over time needs `frames` or `reference`.

    Examples
    --------
    >>> import tempfile
    >>> names = load_atlas("desikan82").names
    >>> rows = "".join(f"{name}\t{i}\n" for i, name in enumerate(names))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = Path(place) / "sub-01_trc-18FFDG_regions.tsv"
    ...     _ = path.write_text("region\tsuvr\n" + rows)
    ...     read_feature(path, "fdg", "desikan82").values[:3].tolist()
    [0.0, 1.0, 2.0]
    """
    atlas, measure, path = load_atlas(atlas), get_measure(feature), Path(path)
    if path.is_dir():
        values, notes = read_stats(path, atlas, measure, subcortex)
    else:
        values, notes, places = read_region_values(
            path, atlas, measure, frames=frames, reference=reference
        )
        check_structures(places, atlas, str(path))
    values, more = finish(values, measure, atlas, subcortex)
    return FeatureFile(values, (*notes, *more))


class Places(NamedTuple):
    """Where one feature of every scan is read from, and what that place lacks."""

    places: Sequence[Path | np.ndarray | None]
    """A file, a FreeSurfer subject, or the values of a table's row; None if missing."""
    notes: list[str]
    faults: list[str]


@dataclass
class FeatureSources:
    """The places that the features of a study can come from."""

    files: StudyFiles
    atlas: Atlas
    subcortex: str
    given: Sequence[str | Path] | None = None
    """The only tables in which features are looked for."""
    skipped: list[str] = field(default_factory=list)
    """Why tables were not used."""

    @cached_property
    def tables(self) -> list[ScanTable]:
        """Tables of many scans: those given, or those in the study's folders."""
        found = []
        for given in self.given or ():
            inside = self.files.folder / given
            path = Path(given) if Path(given).is_file() else inside
            found.append(read_scan_table(path, self.atlas))
        for path in self.files.tables if self.given is None else ():
            if path.name not in (*PEOPLE_FILES, TRUTH_FILE):
                try:
                    found.append(read_scan_table(path, self.atlas))
                except BrainlsapError as error:
                    self.skipped.append(str(error))
        return found

    def people_table(self, features: Sequence[str], label: str | None) -> ScanTable:
        """Return the one table that holds labels and regions in one.

        Raises a CohortError where there is none, with the reasons, or more than one.
        """
        found, reasons = [], list[str]()
        for table in self.tables:
            heads = [str(head).lower() for head in table.scans]
            if label is None or label.lower() in heads:
                found.append(table)
            else:
                reasons.append(f"{table.path}: has no column {label!r}")
            if table.strangers:
                reasons.append(f"{table.path}: {unknown_columns(table, self.atlas)}")
        if features:
            chosen = self._choose_tables(found, get_measure(features[0]))
            found = [table for table, _ in chosen]
        if len(found) == 1:
            return found[0]
        message = f"{self.files.folder}: no participants.tsv (or .csv, .xlsx)"
        if found:
            listed = ", ".join(str(table.path) for table in found)
            raise CohortError(
                f"{message}; {len(found)} tables could be it: {listed}; say which by "
                "features_table= (--features-table)"
            )
        asked = "" if label is None else f"{label!r} and "
        raise CohortError(
            f"{message}, and no table that holds ids, {asked}regions of "
            f"{self.atlas.name} in its place. Is this the cohort's folder?",
            [f"not used: {reason}" for reason in (*self.skipped, *reasons)],
        )

    @cached_property
    def sessions(self) -> dict[str, list[str]]:
        """Visits of people that FreeSurfer or tables know, in time, by person."""
        names = [name for known in self.files.subjects.values() for name, _ in known]
        if not names or self.given is not None:
            tables = [table for table in self.tables if table.heads]
            names = [name for table in tables for name in _scan_names(table)]
        visits: dict[str, dict[str, str]] = {}
        for name in names:
            if name.session:
                person, visit = name.key
                visits.setdefault(person, {}).setdefault(visit, name.session)
        return {
            person: sorted(known.values(), key=visit_order)
            for person, known in visits.items()
        }

    def locate(self, feature: str, scans: Sequence[Scan]) -> Places:
        """Return where a feature is read from; raise a CohortError if nowhere."""
        measure, refused = get_measure(feature), dict[str, None]()
        if self.given is None:
            pattern = self.files.patterns.get(feature)
            places: list[Path | None] = []
            faults, missing = list[str](), list[str]()
            for scan in scans:
                path = None
                try:
                    path, others = self.files.regions(scan, feature, self.atlas)
                    refused |= dict.fromkeys(others)
                    if path is None:
                        but = f", but {'; '.join(others)}" if others else ""
                        missing.append(
                            f"{scan.name}: no table of regions for {feature}; expected "
                            f"a file {pattern or measure.wanted}{but}"
                        )
                except CohortError as error:
                    faults.append(f"{scan.name}: {error}")
                places.append(path)
            if len(missing) < len(scans):
                note = f"{feature}: read from a table of regions for every scan"
                return Places(places, [note], faults + missing)
            if pattern is not None:
                return Places(places, [], [fits_nothing(feature, pattern, scans)])
            if measure.in_stats:
                subjects = self._freesurfer(scans)
                if subjects is not None:
                    return subjects
        tables = self._choose_tables(self.tables, measure)
        if not tables:
            raise CohortError(self._nowhere(feature, measure, list(refused)))
        return self._table_rows(tables, scans, measure)

    def _freesurfer(  # noqa: C901 (one rule after the other)
        self, scans: Sequence[Scan]
    ) -> Places | None:
        """Return the FreeSurfer subject of every scan, all of one kind of run."""
        options = []
        subjects = self.files.subjects
        for scan in scans:
            (person, visit), known = scan.key, subjects.get(scan.key, [])
            if not known and visit and scan.is_only:
                known = subjects.get((person, ""), [])
            if not known and not visit:
                names = [ScanName(person, s) for s in self.sessions.get(person, [])]
                known = [one for name in names for one in subjects.get(name.key, [])]
            runs = {path: bool(name.base) for name, path in known}
            for path in scan.files if self.files.subjects_dir is None else ():
                if path.suffix == ".stats" and path.name.startswith("lh.aparc"):
                    folder = path.parents[path.parent.name == "stats"]
                    runs[folder] = ".long." in folder.name
            options.append(
                [sorted(p for p in runs if runs[p] == kind) for kind in (0, 1)]
            )
        kinds = ("cross-sectional", "longitudinal")
        counts = [sum(bool(option[kind]) for option in options) for kind in (0, 1)]
        if not any(counts):
            return None
        if min(counts) == len(scans):
            raise CohortError(
                "FreeSurfer: every scan has a cross-sectional and a longitudinal run; "
                "choose one by pattern={'freesurfer': '*.long.*'} or "
                "pattern={'freesurfer': '!*.long.*'}"
            )
        kind, faults = counts.index(max(counts)), []
        for scan, option in zip(scans, options, strict=True):
            if len(option[kind]) > 1:
                faults.append(
                    f"{scan.name}: {len(option[kind])} FreeSurfer subjects could be "
                    f"it: {', '.join(map(str, option[kind]))}; choose by "
                    "subjects_dir= (--subjects-dir) or pattern= (--pattern)"
                )
            elif not option[kind]:
                but = f", but a {kinds[1 - kind]} one; they are never mixed"
                faults.append(
                    f"{scan.name}: no {kinds[kind]} FreeSurfer run"
                    f"{but if option[1 - kind] else ''}; expected a folder of its name "
                    "with stats inside"
                )
        places = [one[kind][0] if len(one[kind]) == 1 else None for one in options]
        return Places(places, [f"FreeSurfer: stats of {kinds[kind]} runs"], faults)

    def _nowhere(self, feature: str, measure: Measure, refused: list[str]) -> str:
        """Say where a feature was looked for, and what was there but not used."""
        if feature not in KNOWN and feature.lower() in KNOWN:
            return f"{feature}: no such feature; did you mean {feature.lower()!r}?"
        folder = self.files.folder
        if self.given is not None:
            listed = ", ".join(map(str, self.given))
            message = f"{feature}: no column of {listed} is {feature} of a region"
        else:
            stats = "FreeSurfer subjects (folders with stats inside), "
            message = (
                f"{feature}: found nowhere; looked for files {measure.wanted} beside "
                f"the scans, {stats if measure.in_stats else ''}tables with a row per "
                f"scan and a column per region in {folder}"
            )
        others = [unknown_columns(t, self.atlas) for t in self.tables if t.strangers]
        unused = [*refused[:5], *self.skipped, *others]
        message += "".join(f"; not used: {reason}" for reason in unused)
        if measure.in_stats and self.files.subjects_dir is None:
            seen = chain(
                folder.glob("*/*/stats"),
                folder.glob("*/*/*/stats"),
                folder.resolve().parent.glob("*[fF]ree[sS]urfer*/*/stats"),
                folder.resolve().parent.glob("*[sS]ubjects*/*/stats"),
            )
            for stats_folder in islice(seen, 1):
                place = stats_folder.parents[1]
                message += (
                    f". FreeSurfer's stats were seen in {place}: name it by "
                    f"subjects_dir= (--subjects-dir {place})"
                )
        return message

    def _values(self, table: ScanTable, measure: Measure) -> pd.DataFrame:
        """Return a feature's values: a row for every row, a column for every region.

        A column that says the feature counts before one that says no measure.
        """
        words = below = (*measure.words, "")
        if measure.on_surface:
            below = ("volume", "") if self.subcortex == "volume" else ()
        columns = {
            place: word
            for places, said in (
                (self.atlas.cortex, words),
                (~self.atlas.cortex, below),
            )
            for word in reversed(said)
            for place in np.flatnonzero(places)
            if (word, place) in table.heads
        }
        long = table.values
        wanted = long["region"].map(pd.Series(columns, dtype=object))
        values = long[long["measure"] == wanted].pivot(
            index="row", columns="region", values="value"
        )
        return values.reindex(range(len(table.scans)))

    def _choose_tables(self, tables: Sequence[ScanTable], measure: Measure) -> _Tables:
        """Return the tables that together hold a feature, none of them needless.

        Where a table says the feature's measure, one that says none and has other
        values is of something else. Where two tables hold the same regions, one that
        names the atlas' regions and no others is taken before those that name more.
        Raises a CohortError where two tables hold the same regions.
        """
        found = [(table, self._values(table, measure)) for table in tables]
        saying = [
            (table, values)
            for table, values in found
            if any(word in measure.words for word, _ in table.heads)
        ]
        holding = [
            (table, values)
            for table, values in found
            if len(values.columns)
            and (
                any(word for word, _ in table.heads)
                or not any(_differ(table, values, *other) for other in saying)
            )
        ]
        places = [place for _, values in holding for place in values.columns]
        exact = [one for one in holding if not one[0].outside + one[0].strangers]
        if len(exact) == 1 and set(exact[0][1].columns) == set(places):
            return exact
        if len(set(places)) < len(places):
            listed = ", ".join(str(table.path) for table, _ in holding)
            raise CohortError(
                f"{measure.name}: more than one table holds the same regions: "
                f"{listed}; say which by features_table= (--features-table)"
            )
        return holding

    def _table_rows(
        self, tables: _Tables, scans: Sequence[Scan], measure: Measure
    ) -> Places:
        """Return the values of every scan in tables with a row per scan."""
        atlas = self.atlas
        names = ", ".join(table.path.name for table, _ in tables)
        listed = ", ".join(str(table.path) for table, _ in tables)
        notes, faults = [f"{measure.name}: read from {names}"], list[str]()
        values = np.full((len(scans), len(atlas)), np.nan)
        sizes = np.full(len(scans), np.nan)
        there = np.ones(len(scans), dtype=bool)
        kinds, unused = set(), set()
        for table, found in tables:
            rows, lacking = _rows_of(table, scans)
            faults += lacking
            there &= rows >= 0
            values[:, found.columns] = found.to_numpy()[rows]
            sizes = sizes if table.head_size is None else table.head_size[rows]
            kinds |= {bool(name.base) for name in _scan_names(table)}
            unused |= {place for word, place in table.heads if word != "other"}
            notes += [f"{table.path.name}: {note}" for note in table.notes]
            spare = len(table.scans) - len(set(rows[rows >= 0].tolist()))
            if spare and not lacking:
                notes.append(
                    f"{table.path.name}: {spare} rows of scans that are not in the "
                    "cohort"
                )
        if len(kinds) > 1:
            raise CohortError(
                f"{names}: rows of longitudinal ('.long.') and of cross-sectional "
                "FreeSurfer runs; they are never mixed. Keep one kind"
            )
        if measure.by_head_size:
            if np.isnan(sizes[there]).any():
                raise FileFormatError(
                    f"{measure.name} needs the intracranial volume of every scan in a "
                    f"column eTIV of {names}."
                )
            values /= sizes[:, None]
        unknown = [unknown_columns(t, atlas) for t, _ in tables if t.strangers]
        places = np.unique([place for _, found in tables for place in found.columns])
        if not atlas.cortex[places].any() and any("those of" in u for u in unknown):
            raise FileFormatError(f"{listed}: {' '.join(unknown)}")
        try:
            check_structures(places, atlas, listed)
        except FileFormatError as error:
            raise FileFormatError(" ".join([str(error), *unknown])) from error
        unused -= set(np.flatnonzero(atlas.cortex))
        if measure.on_surface and self.subcortex != "volume" and unused:
            notes.append(
                f"{measure.name}: {len(unused)} subcortical columns are left out; "
                "subcortex='volume' takes them as volumes"
            )
        rows_or_none = [
            row if is_there else None
            for row, is_there in zip(values, there, strict=True)
        ]
        return Places(rows_or_none, notes, faults)


def fits_nothing(what: str, pattern: str, scans: Sequence[Scan]) -> str:
    """Say that a pattern fits no file of any scan, and what there is."""
    names = dict.fromkeys(path.name for scan in scans for path in scan.files)
    return (
        f"{what}: the pattern {pattern!r} (pattern=, --pattern) fits no file of any "
        f"of {len(scans)} scans; their files are "
        f"{', '.join(islice(names, 5)) or 'none'}{' ...' if len(names) > 5 else ''}"
    )


def _scan_names(table: ScanTable) -> list[ScanName]:
    """Return who and which visit every row is of."""
    names = [parse_scan_name(name) for name in table.scans["scan"]]
    return [
        name._replace(session=session or name.session)
        for name, session in zip(names, table.scans["session"], strict=True)
    ]


def _differ(
    table: ScanTable, values: pd.DataFrame, other: ScanTable, others: pd.DataFrame
) -> bool:
    """Say whether two tables have different values for the same scan and region."""
    sides = []
    for one, frame in ((table, values), (other, others)):
        named = frame.set_axis([name.key for name in _scan_names(one)])
        sides.append(named[~named.index.duplicated()])
    a, b = sides[0].align(sides[1], join="inner")
    return bool(((a - b).abs() > 1e-8 + 1e-3 * b.abs()).to_numpy().any())


def _rows_of(table: ScanTable, scans: Sequence[Scan]) -> tuple[np.ndarray, list[str]]:
    """Return the row of every scan in a table, -1 where it has none, and the faults."""
    known: dict[tuple[str, str], list[int]] = {}
    people: dict[str, list[int]] = {}
    for row, name in enumerate(_scan_names(table)):
        known.setdefault(name.key, []).append(row)
        people.setdefault(name.key[0], []).append(row)
    result, faults = np.full(len(scans), -1), []
    for number, scan in enumerate(scans):
        person, visit = scan.key
        rows = known.get(scan.key, [])
        if not rows and scan.is_only and visit:
            rows = known.get((person, ""), [])
        if not rows and not visit:
            rows = people.get(person, [])
        if len(rows) == 1:
            result[number] = rows[0]
        else:
            reason = f"{len(rows)} rows" if rows else "no row"
            faults.append(f"{scan.name}: {reason} in {table.path}; expected one")
    return result, faults
