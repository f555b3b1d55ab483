"""Regional values of every scan: where they are read from, and reading them.

A feature of a cohort comes from one kind of place for all scans, never a mixture: a
table of regions beside each scan, else FreeSurfer's stats, else tables with a row per
scan. Each kind finds what it needs first and lists what is missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.arrays import check_choice
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
    SUBCORTEX,
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
    check_choice("subcortex", subcortex, SUBCORTEX)
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

    places: list[Path | np.ndarray | None]
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
        if self.given is not None:
            for given in self.given:
                inside = self.files.folder / given
                is_inside = inside.is_file() and not Path(given).is_file()
                path = inside if is_inside else Path(given)
                found.append(read_scan_table(path, self.atlas))
            return found
        for path in self.files.tables:
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
        heads = {id(t): [str(head).lower() for head in t.scans] for t in self.tables}
        found = [
            table
            for table in self.tables
            if label is None or label.lower() in heads[id(table)]
        ]
        if features:
            measure = get_measure(features[0])
            found = choose_tables(found, measure, self.atlas, self.subcortex)
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
        reasons = [*self.skipped, *self._reasons(label, features)]
        raise CohortError(
            f"{message}, and no table that holds ids, {asked}regions of "
            f"{self.atlas.name} in its place. Is this the cohort's folder?",
            [f"not used: {reason}" for reason in reasons],
        )

    def _reasons(self, label: str | None, features: Sequence[str]) -> list[str]:
        """Say what each table that could be read lacks."""
        reasons = []
        for table in self.tables:
            lacks = []
            if label is not None and label not in table.scans:
                lacks.append(f"has no column {label!r}")
            if table.strangers:
                lacks.append(unknown_columns(table, self.atlas))
            elif features and not table.heads:
                lacks.append(f"names no region of {self.atlas.name}")
            reasons += [f"{table.path}: {'; '.join(lacks)}"] if lacks else []
        return reasons

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
        measure, refused = get_measure(feature), list[str]()
        if self.given is None:
            beside, refused = self._beside(feature, scans)
            if beside is not None:
                return beside
            if measure.in_stats:
                subjects = self._freesurfer(scans)
                if subjects is not None:
                    return subjects
        tables = choose_tables(self.tables, measure, self.atlas, self.subcortex)
        if not tables:
            raise CohortError(self._nowhere(feature, measure, refused))
        return _table_rows(tables, scans, measure, self.atlas, self.subcortex)

    def _beside(
        self, feature: str, scans: Sequence[Scan]
    ) -> tuple[Places | None, list[str]]:
        """Return the tables of regions beside the scans, None where there are none."""
        places: list[Path | np.ndarray | None] = []
        faults: list[str] = []
        refused: list[str] = []
        given = self.files.patterns.get(feature)
        wanted = given or get_measure(feature).wanted
        missing = {}
        for scan in scans:
            path, others = None, list[str]()
            try:
                path, others = self.files.regions(scan, feature, self.atlas)
                if path is None:
                    but = f", but {'; '.join(others)}" if others else ""
                    missing[scan.name] = f"expected a file {wanted}{but}"
            except CohortError as error:
                faults.append(f"{scan.name}: {error}")
            places.append(path)
            refused += [other for other in others if other not in refused]
        if len(missing) == len(scans):
            if given is None:
                return None, refused
            message = fits_nothing(feature, given, scans)
            return Places(places, [], [message]), []
        faults += [
            f"{name}: no table of regions for {feature}; {what}"
            for name, what in missing.items()
        ]
        note = f"{feature}: read from a table of regions for every scan"
        return Places(places, [note], faults), []

    def _freesurfer(self, scans: Sequence[Scan]) -> Places | None:
        """Return the FreeSurfer subject of every scan, all of one kind of run."""
        kinds = ("cross-sectional", "longitudinal")
        options = [self._subjects_of(scan) for scan in scans]
        with_kind = [sum(bool(option[kind]) for option in options) for kind in (0, 1)]
        whole = [kind for kind in (0, 1) if with_kind[kind] == len(scans)]
        nothing: list[Path | np.ndarray | None] = [None] * len(scans)
        if not any(with_kind):
            return None
        if len(whole) == 2:
            return Places(
                nothing,
                [],
                [
                    "FreeSurfer: every scan has a cross-sectional and a longitudinal "
                    "run; choose one by pattern={'freesurfer': '*.long.*'} or "
                    "pattern={'freesurfer': '!*.long.*'}"
                ],
            )
        if not whole and all(with_kind):
            faults = [
                "FreeSurfer: some scans have only a cross-sectional run and others "
                "only a longitudinal one; they are never mixed"
            ]
            for kind in (0, 1):
                faults += [
                    f"{scan.name}: no {kinds[kind]} FreeSurfer run"
                    for scan, option in zip(scans, options, strict=True)
                    if not option[kind]
                ]
            return Places(nothing, [], faults)
        kind = whole[0] if whole else int(np.argmax(with_kind))
        places, faults = nothing, []
        for row, (scan, option) in enumerate(zip(scans, options, strict=True)):
            if len(option[kind]) == 1:
                places[row] = option[kind][0]
            elif option[kind]:
                listed = ", ".join(str(path) for path in option[kind])
                faults.append(
                    f"{scan.name}: {len(option[kind])} FreeSurfer subjects could be "
                    f"it: {listed}; choose by subjects_dir= (--subjects-dir) or "
                    "pattern= (--pattern)"
                )
            else:
                faults.append(
                    f"{scan.name}: no FreeSurfer subject; expected a folder of its "
                    "name with stats inside"
                )
        return Places(places, [f"FreeSurfer: stats of {kinds[kind]} runs"], faults)

    def _subjects_of(self, scan: Scan) -> tuple[list[Path], list[Path]]:
        """Return a scan's cross-sectional and longitudinal FreeSurfer subjects."""
        (person, visit), subjects = scan.key, self.files.subjects
        known = subjects.get(scan.key, [])
        if not known and visit and scan.is_only:
            known = subjects.get((person, ""), [])
        if not known and not visit:
            names = [ScanName(person, name) for name in self.sessions.get(person, [])]
            known = [e for name in names for e in subjects.get(name.key, [])]
        found: tuple[set[Path], set[Path]] = (set(), set())
        for name, path in known:
            found[bool(name.base)].add(path)
        for path in scan.files if self.files.subjects_dir is None else ():
            if path.suffix == ".stats" and path.name.startswith("lh.aparc"):
                folder = path.parent
                folder = folder.parent if folder.name == "stats" else folder
                found[".long." in folder.name].add(folder)
        return sorted(found[0]), sorted(found[1])

    def _nowhere(self, feature: str, measure: Measure, refused: list[str]) -> str:
        """Say where a feature was looked for, and what was there but not used."""
        if feature not in KNOWN and feature.lower() in KNOWN:
            return f"{feature}: no such feature; did you mean {feature.lower()!r}?"
        places = [f"files {measure.wanted} beside the scans"]
        if measure.in_stats:
            places.append("FreeSurfer subjects (folders with stats inside)")
        places.append("tables with a row per scan and a column per region")
        message = f"{feature}: found nowhere; looked for {', '.join(places)}"
        if self.given is not None:
            listed = ", ".join(map(str, self.given))
            message = f"{feature}: no column of {listed} is {feature} of a region"
        others = [unknown_columns(t, self.atlas) for t in self.tables if t.strangers]
        unused = [*refused[:5], *self.skipped, *others]
        message += f" in {self.files.folder}"
        message += "".join(f"; not used: {reason}" for reason in unused)
        if measure.in_stats and self.files.subjects_dir is None:
            message += self._seen_elsewhere()
        return message

    def _seen_elsewhere(self) -> str:
        """Name a folder with FreeSurfer's subjects that was not looked into."""
        folder = self.files.folder
        for start, glob in (
            (folder, "*/*/stats"),
            (folder, "*/*/*/stats"),
            (folder.resolve().parent, "*[fF]ree[sS]urfer*/*/stats"),
            (folder.resolve().parent, "*[sS][uU][bB][jJ][eE][cC][tT][sS]*/*/stats"),
        ):
            for stats in islice(start.glob(glob), 1):
                place = stats.parents[1]
                return (
                    f". FreeSurfer's stats were seen in {place}: name it by "
                    f"subjects_dir= (--subjects-dir {place})"
                )
        return ""


def fits_nothing(what: str, pattern: str, scans: Sequence[Scan]) -> str:
    """Say that a pattern fits no file of any scan, and what there is."""
    names = dict.fromkeys(path.name for scan in scans for path in scan.files)
    seen = ", ".join(islice(names, 5)) or "none"
    return (
        f"{what}: the pattern {pattern!r} (pattern=, --pattern) fits no file of any "
        f"of {len(scans)} scans; their files are {seen}"
        f"{' ...' if len(names) > 5 else ''}"
    )


def _scan_names(table: ScanTable) -> list[ScanName]:
    """Return who and which visit every row is of."""
    names = [parse_scan_name(name) for name in table.scans["scan"]]
    return [
        name._replace(session=session or name.session)
        for name, session in zip(names, table.scans["session"], strict=True)
    ]


def _columns_for(
    table: ScanTable, measure: Measure, atlas: Atlas, subcortex: str
) -> dict[int, str]:
    """Return, for every region that the table has, the measure that its column says.

    A column that says the feature counts before one that says no measure.
    """
    columns = {}
    below: tuple[str, ...] = (*measure.words, "")
    if measure.on_surface:
        below = ("volume", "") if subcortex == "volume" else ()
    for place in range(len(atlas)):
        for word in (*measure.words, "") if atlas.cortex[place] else below:
            if (word, place) in table.heads:
                columns[place] = word
                break
    return columns


def _values(table: ScanTable, columns: Mapping[int, str], n_rois: int) -> np.ndarray:
    """Return the numbers of some columns: array of shape (n_rows, n_rois)."""
    values = np.full((len(table.scans), n_rois), np.nan)
    long = table.values
    kept = long[long["measure"] == long["region"].map(pd.Series(columns, dtype=object))]
    values[kept["row"], kept["region"]] = kept["value"]
    return values


def choose_tables(
    tables: Sequence[ScanTable], measure: Measure, atlas: Atlas, subcortex: str
) -> list[ScanTable]:
    """Return the tables that together hold a feature, none of them needless.

    Where a table says the feature's measure, one that says none and has other values
    is of something else. Where two tables hold the same regions, one that names the
    atlas' regions and no others is taken before those that name more. Raises a
    CohortError where two tables hold the same regions.
    """
    found = {id(t): _columns_for(t, measure, atlas, subcortex) for t in tables}
    columns = {key: set(places) for key, places in found.items()}
    saying = [t for t in tables if any(word in measure.words for word, _ in t.heads)]

    def agree(one: ScanTable, other: ScanTable) -> bool:
        first, second = (
            {name.key: row for row, name in enumerate(_scan_names(t))}
            for t in (one, other)
        )
        common = [key for key in first if key in second]
        a = _values(one, found[id(one)], len(atlas))[[first[key] for key in common]]
        b = _values(other, found[id(other)], len(atlas))
        b = b[[second[key] for key in common]]
        both = np.isfinite(a) & np.isfinite(b)
        return np.allclose(a[both], b[both], rtol=1e-3)

    for table in tables:
        silent = not any(word for word, _ in table.heads)
        if silent and not all(agree(table, other) for other in saying):
            columns[id(table)] = set()
    holding = [table for table in tables if columns[id(table)]]
    exact = [t for t in holding if not t.outside and not t.strangers]
    everything = set().union(*columns.values())
    if len(exact) == 1 and columns[id(exact[0])] == everything:
        return exact
    for number, table in enumerate(holding):
        for other in holding[:number]:
            if columns[id(table)] & columns[id(other)]:
                listed = ", ".join(str(t.path) for t in holding)
                raise CohortError(
                    f"{measure.name}: more than one table holds the same regions: "
                    f"{listed}; say which by features_table= (--features-table)"
                )
    return holding


def _table_rows(
    tables: Sequence[ScanTable],
    scans: Sequence[Scan],
    measure: Measure,
    atlas: Atlas,
    subcortex: str,
) -> Places:
    """Return the values of every scan in tables with a row per scan."""
    names = ", ".join(table.path.name for table in tables)
    notes, faults = [f"{measure.name}: read from {names}"], list[str]()
    values = np.full((len(scans), len(atlas)), np.nan)
    there = np.ones(len(scans), dtype=bool)
    sizes = np.full(len(scans), np.nan)
    places: set[int] = set()
    kinds = set()
    for table in tables:
        columns = _columns_for(table, measure, atlas, subcortex)
        rows, lacking = _rows_of(table, scans)
        faults += lacking
        there &= rows >= 0
        places |= set(columns)
        kinds |= {bool(name.base) for name in _scan_names(table)}
        of_table = _values(table, columns, len(atlas))[rows]
        values[:, list(columns)] = of_table[:, list(columns)]
        sizes = sizes if table.head_size is None else table.head_size[rows]
        notes += [f"{table.path.name}: {note}" for note in table.notes]
        spare = len(table.scans) - len(set(rows[rows >= 0].tolist()))
        if spare and not lacking:
            notes.append(
                f"{table.path.name}: {spare} rows of scans that are not in the cohort"
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
    listed = ", ".join(str(table.path) for table in tables)
    unknown = [unknown_columns(t, atlas) for t in tables if t.strangers]
    if not atlas.cortex[sorted(places)].any() and any("those of" in u for u in unknown):
        raise FileFormatError(f"{listed}: {' '.join(unknown)}")
    try:
        check_structures(np.array(sorted(places)), atlas, listed)
    except FileFormatError as error:
        raise FileFormatError(" ".join([str(error), *unknown])) from error
    unused = {
        place
        for table in tables
        for word, place in table.heads
        if not atlas.cortex[place] and word != "other"
    }
    if measure.on_surface and subcortex != "volume" and unused:
        notes.append(
            f"{measure.name}: {len(unused)} subcortical columns are left out; "
            "subcortex='volume' takes them as volumes"
        )
    rows_or_none = [values[row] if there[row] else None for row in range(len(scans))]
    return Places(list(rows_or_none), notes, faults)


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
