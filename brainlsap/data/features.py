"""Regional values of every scan: where they are read from, and reading them.

A feature of a cohort comes from one kind of source for all scans, never a mixture: a
table of regions beside each scan, else FreeSurfer's stats, else tables with a row per
scan.

Stats files are those of `mris_anatomical_stats` (`?h.aparc*.stats`) and `mri_segstats`
(`aseg.stats`). A measure that stats do not hold is averaged over the vertices of each
region as `ThickAvg` is: plainly, every vertex counts the same however large the area
around it, without those outside `?h.cortex.label`.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.connectomes import is_matrix
from brainlsap.data.covariates import COVARIATES, SCALES, kind_of
from brainlsap.data.find_files import (
    Scan,
    ScanName,
    StudyFiles,
    choose_one,
)
from brainlsap.data.id_columns import (
    NO_CHOICE,
    ChosenColumns,
    find_exchanged_ids,
)
from brainlsap.data.measures import (
    KNOWN,
    PET_FEATURES,
    Measure,
    check_structures,
    find_tracers,
    finish,
    get_measure,
    wrong_tracer,
)
from brainlsap.data.region_tables import (
    ScanTable,
    find_other_atlas,
    find_tracer_columns,
    read_region_values,
    read_sheets,
    unknown_names,
)
from brainlsap.data.tables import ADD_IT, IMPORT_FILES, listed, read_lines
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    FileFormatError,
    check_choice,
    reading,
)
from brainlsap.findings import (
    ASSUMED,
    FAULT,
    LEFT_OUT,
    SCALES_DIFFER,
    Finding,
    as_findings,
)

TRUTH_FILE = "truth.tsv"
HEMISPHERES = {"lh": "L", "rh": "R"}
CORTEX_COLUMNS = {"thickness": "ThickAvg", "area": "SurfArea", "volume": "GrayVol"}
_HEADER = re.compile(
    r"^# (ColHeaders|NRows|hemi|Measure Cortex, NumVert,) (.*)", re.MULTILINE
)
# Share of the vertices that may be in no region of the table (measured: 1e-4).
_UNLABELLED = 5e-4
_RUNS = ("cross-sectional", "longitudinal")
# Column -> entity of names of files that says on which scale values are.
_ENTITIES = {"tracer": "trc", "pvc": "pvc", "reference_region": "suvr"}
_ENTITIES |= {"reference": "ref", "reconstruction": "rec"}
# More values than this say no scale; they may be dates.
_MOST_ORIGINS = 10
# Heads of values of PET, beside those of regions.
_OF_VALUES = re.compile("suvr|uptake|dvr|centiloid", re.IGNORECASE)
_WHICH = "say which by features_table= (--features-table)"
Source = Path | np.ndarray | Finding
"""Of one scan: a file, a FreeSurfer subject, values; or the fault."""
_Columns = dict[int, tuple[ScanTable, str]]
"""Of every region the table that holds it, and the measure in its heads."""


class FeatureFile(NamedTuple):
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
    reference: str | None = None,
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
        `thickness`, `area` and `volume` are known to FreeSurfer's stats; any other
        name is looked for as a column, or as a measure of vertices
        (`surf/?h.<feature>`).
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    subcortex : {"absent", "mean", "volume"}
        What the subcortex has where the feature is measured on the surface.
    frames : (float, float), optional
        Start and end of the window over which activity is averaged, in the unit of
        the file (seconds in BIDS).
    reference : str, optional
        Region of PET by whose mean values are divided: "pons", "whole cerebellum" ...,
        or the name of a region.

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
    >>> rows = "".join(f"{name}\t{1 + i / 100}\n" for i, name in enumerate(names))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = Path(place) / "sub-01_trc-18FFDG_regions.tsv"
    ...     _ = path.write_text("region\tsuvr\n" + rows)
    ...     read_feature(path, "fdg", "desikan82").values[:3].tolist()
    [1.0, 1.01, 1.02]
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


def read_stats(
    folder: str | Path, atlas: Atlas, measure: Measure, subcortex: str = "absent"
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return one measure of a FreeSurfer subject in the order of an atlas, and notes.

    `folder` is the subject's, or its `stats`. Volumes below the cortex are read where
    the measure is one, or `subcortex` asks for them. A measure that stats do not hold
    is averaged over vertices.
    """
    folder = Path(folder)
    stats = folder / "stats" if (folder / "stats").is_dir() else folder
    annotation = atlas.settings.get("annotation")
    if annotation is None:
        raise FileFormatError(
            "FreeSurfer's stats are known for atlases whose atlas.json names "
            f"their annotation, not for atlas {atlas.name}. Give the values as a table "
            "of regions.",
            path=stats,
        )
    name, values = measure.name, np.full(len(atlas.names), np.nan)
    on_surface, notes = measure.on_surface, tuple[str, ...]()
    files: dict[Path, str | None] = {
        stats / f"{side}.{annotation}.stats": letter
        for side, letter in HEMISPHERES.items()
    }
    if name not in CORTEX_COLUMNS or not all(map(Path.is_file, files)):
        subject = stats.parent if stats.name == "stats" else stats
        averaged = _vertex_means(subject, name, atlas, annotation)
        if averaged is None:
            check_choice("feature of FreeSurfer's stats", name, CORTEX_COLUMNS)
        else:
            files, on_surface, values = {}, True, averaged
            notes = (f"{name}: plain mean over the vertices",)
    if not on_surface or subcortex == "volume":
        files[stats / "aseg.stats"] = None
    for path, side in files.items():
        if not path.is_file():
            hint = "."
            for other in sorted(stats.glob(f"{path.name[:2]}.aparc*.stats"))[:1]:
                remake = atlas.settings.get("remake_values", "")
                hint = f"; {other.name} is of another parcellation. {remake}"
            raise FileFormatError(f"no such file{hint}", path=path)
        column = CORTEX_COLUMNS[name] if side else "Volume_mm3"
        found = _read_column(path, column, atlas, side)
        values = np.where(np.isnan(found), values, found)
    return values, notes


def _read_column(path: Path, column: str, atlas: Atlas, side: str | None) -> np.ndarray:
    """Return a column of a stats file in the order of an atlas."""
    lines = read_lines(path, comments=True)
    rows = [line.split() for line in lines if line[0] != "#"]
    header = {k: said.strip() for k, said in _HEADER.findall("\n".join(lines))}
    heads = header.get("ColHeaders", "").split()
    n_rows, widths = header.get("NRows", f"{len(rows)}"), [len(row) for row in rows]
    is_whole = {*widths} == {len(heads)} and n_rows == f"{len(rows)}"
    if not (is_whole and {"StructName", column} <= {*heads}):
        raise FileFormatError(
            "expected a FreeSurfer stats file with a line '# ColHeaders' that "
            f"names StructName and {column}, and {n_rows} rows of {len(heads)} cells; "
            f"got {len(rows)} rows of {min(widths, default=0)} or more. It may be cut "
            "short.",
            path=path,
        )
    if HEMISPHERES.get(header.get("hemi", ""), side) != side:
        raise FileFormatError(
            "says that it is of the other hemisphere; the files of the two "
            "may be exchanged.",
            path=path,
        )
    cells = dict(zip(heads, zip(*rows, strict=True), strict=True))
    names, expected = cells["StructName"], ~atlas.cortex
    if side is None:  # what is no region of the atlas is left out
        names = tuple(n if atlas.find(n) is not None else "none" for n in names)
    else:
        expected = atlas.cortex & (atlas.regions["hemisphere"].to_numpy() == side)
    with reading(path, "a stats file"):
        numbers = np.array(cells[column], dtype=float)
        places, _ = atlas.rows(names, side)
    missing = np.flatnonzero(expected & (places < 0))
    # FreeSurfer leaves out a region that a surface lacks: its vertices are in others
    counts = cells.get("NumVert", ()) if missing.size else ()
    n_known = np.array(counts, dtype=float).sum()
    n_vertices = float(header.get("Measure Cortex, NumVert,", ",inf,").split(",")[-2])
    if missing.size and n_known < n_vertices * (1 - _UNLABELLED):
        raise FileFormatError(
            f"{missing.size} of {expected.sum()} regions have no row "
            f"({listed((atlas.names[i] for i in missing), 5)}). The file may be cut "
            "short; run mris_anatomical_stats or mri_segstats again.",
            path=path,
        )
    return np.where(expected & (places >= 0), numbers[places], np.nan)


def _vertex_means(
    subject: Path, name: str, atlas: Atlas, annotation: str
) -> np.ndarray | None:
    """Return the plain mean of `surf/?h.<name>` over the vertices of every region.

    None where a hemisphere has no such file.
    """
    from nibabel.freesurfer import read_morph_data

    overlays = {side: subject / "surf" / f"{side}.{name}" for side in HEMISPHERES}
    if not all(map(Path.is_file, overlays.values())):
        return None
    if name in ("area", "volume"):
        raise FileFormatError(
            f"{name} of a region is a sum over faces, not a mean over "
            "vertices; it is read from stats. Run mris_anatomical_stats.",
            path=subject,
        )
    values = np.full(len(atlas.names), np.nan)
    for side, path in overlays.items():
        with reading(path, "one value a vertex"):
            per_vertex = read_morph_data(path).astype(np.float64)
        annot = subject / "label" / f"{side}.{annotation}.annot"
        regions = atlas.vertex_labels(HEMISPHERES[side], annot)
        if len(regions) != len(per_vertex):
            raise FileFormatError(
                f"{len(per_vertex)} vertices, but {annot.name} has "
                f"{len(regions)}; they are not of one surface, or one was cut short.",
                path=path,
            )
        counted = regions >= 0
        cortex = subject / "label" / f"{side}.cortex.label"
        if cortex.is_file():
            inside = np.zeros(len(regions), dtype=bool)
            with reading(cortex, "a FreeSurfer label"):
                inside[np.loadtxt(cortex, int, skiprows=2, usecols=0, ndmin=1)] = True
            counted &= inside
        means = pd.Series(per_vertex[counted]).groupby(regions[counted]).mean()
        values[means.index] = means
    return values


@dataclass
class FeatureSources:
    """The files and tables that the features of a study can come from."""

    files: StudyFiles
    atlas: Atlas
    subcortex: str
    given: Sequence[str | Path] | None = None
    """The only tables in which features are looked for."""
    skipped: list[str] = field(default_factory=list)
    """Why tables were not used."""
    is_named: bool = True
    """Whether features were asked for: else tables have to say what they hold."""
    features: Sequence[str] = ()
    """All features that are read."""
    known: Collection[str] = ()
    """Columns of the table of people."""
    origins: dict[str, list[str | None]] = field(default_factory=dict)
    """Columns that say on which scale values are, by scan, where they differ."""
    unmatched: Finding | None = None
    """What to do where nobody's files are found; told where anything is at fault."""
    chosen: ChosenColumns = NO_CHOICE
    """Columns of ids and visits that the user named."""
    people: ScanTable | None = None
    """The table of people, with which others are compared."""

    @cached_property
    def tables(self) -> list[ScanTable]:
        """Tables of many scans: those given, or those in the study's folders."""
        others = (TRUTH_FILE, *IMPORT_FILES)
        found, paths = [], [p for p in self.files.tables if p.name not in others]
        for path in paths if self.given is None else map(self.files.inside, self.given):
            try:
                sheets, errors = read_sheets(path, self.atlas, self.chosen)
                found += sheets
                self.skipped += errors
            except BrainlsapError as error:
                if self.given is not None:
                    raise
                if not is_matrix(path):  # a connectome is no such table
                    self.skipped.append(str(error))
        return found

    def people_table(self, label: str | None) -> ScanTable:
        """Return the one table that holds people and labels.

        Of several, the one that names no region that the atlas lacks, or no region at
        all. Raises a CohortError where there is none, with the reasons, or more than
        one.
        """
        found = [one for one in self.tables if one.has(label)]
        found = [one for one in found if one.is_exact] or found
        found = [one for one in found if not one.values] or found
        # of sheets of one workbook that with age, sex ...
        books = {str(one.path).partition(", sheet ")[0] for one in found}
        usual = [len({*map(kind_of, one.facts)} & {*COVARIATES}) for one in found]
        if len(books) == 1 and usual.count(max(usual)) == 1:
            found = [found[usual.index(max(usual))]]
        if len(found) == 1:
            return found[0]
        told = f"{self.files.folder}: no participants.tsv (or .csv, .xlsx), and"
        if found:
            paths = listed(str(table.path) for table in found)
            which = _WHICH if len(books) > 1 else "keep one of these sheets"
            raise CohortError(
                f"{told} {len(found)} tables could be it: {paths}; {which}"
            )
        rest = [t for t in self.tables if not (t.facts.empty or is_matrix(t.path))]
        what = f"has no column {label!r}; found"
        without = [f"{one.path}: {what} {listed(one.facts, 5)}" for one in rest]
        reasons = [*dict.fromkeys((*without, *self.skipped))][:5]
        raise CohortError(
            f"{told} no table that holds ids and {label or 'people'!r} in its place. "
            "Correct the table below, name the label by label= (--label), or another "
            "folder" + "".join(f"\n    not used: {reason}" for reason in reasons)
        )

    def has_data(self, person: str, visit: str) -> bool:
        """Return whether files, FreeSurfer or tables of regions have data of a visit.

        A folder of a visit may be empty, or hold lists and questionnaires alone.
        """
        if self.files.files.get((person, visit)):
            return True
        subjects = self.files.subjects.get(person, {})
        return visit in subjects or visit in self.sessions.get(person, {})

    @cached_property
    def sessions(self) -> dict[str, dict[str, str]]:
        """Visits of people that FreeSurfer or tables of regions know, by person."""
        visited = chain(*(known.values() for known in self.files.subjects.values()))
        names = [name for runs in visited for name, _ in runs]
        if not names or self.given is not None:
            names = [name for one in self.tables if one.values for name in one.names]
        visits: dict[str, dict[str, str]] = {}
        for name in names:
            person, visit = self.files.key_of(name)
            if visit:
                visits.setdefault(person, {}).setdefault(visit, name.session or visit)
        return visits

    def locate(  # noqa: C901 (one place after the other)
        self, feature: str, scans: Sequence[Scan]
    ) -> tuple[Sequence[Source], list[Finding | str]]:
        """Return the source of a feature for every scan, and notes.

        Raises a CohortError where there is none for any scan.
        """
        measure, found = get_measure(feature), list[Any]()
        for scan in scans if self.given is None else ():
            try:
                found.append(self.files.regions(scan, feature, self.atlas))
            except CohortError as error:
                found.append(Finding.from_error(error, scan.name))
        if any(found):
            wanted = self.files.patterns.get(feature, measure.wanted)
            missing = f"no table of regions for {feature}; expected a file {wanted}: "
            missing += ADD_IT
            for row in [row for row, source in enumerate(found) if not source]:
                others = _other_tracers(feature, scans[row : row + 1])
                message = "; not used: ".join([missing, *others])
                found[row] = Finding(message, FAULT, scan=scans[row].name)
            notes: list[Finding | str]
            notes = [f"{feature}: read from a table of regions for every scan"]
            for head, entity in _ENTITIES.items():
                pattern = re.compile(f"(?:^|[_/]){entity}-([^_./]+)")
                entities = [pattern.search(str(source)) for source in found]
                values = [match[1] if match else None for match in entities]
                where = f"{entity}- in names of files"
                notes += self._add_origin(feature, head, values, where)
            return found, notes
        if self.given is None:
            if feature in self.files.patterns:
                raise CohortError(self.files.fits_nothing(feature, scans))
            subjects = [scan.entries(self.files.subjects) for scan in scans]
            if measure.in_stats and any(subjects):
                return self._runs(scans, subjects)
        if chosen := self._choose_columns(measure):
            return self._table_rows(chosen, scans, measure)
        lower, names = feature.lower(), (path.name for s in scans for path in s.files)
        said = re.findall(r"desc-([a-z0-9]+)_regions", " ".join(names).lower())
        said += [one.path.stem.lower() for one in self.tables if one.values]
        held = sorted({*said})
        places = ", ".join(map(str, self.given or [self.files.folder]))
        where = f"a column per region in tables with a row per scan, in {places}"
        if self.given is None:
            stats = "FreeSurfer subjects there or in subjects_dir=, " * measure.in_stats
            where = f"files {measure.wanted} beside the scans, {stats}{where}"
        near = get_close_matches(lower, {*held, *KNOWN} - {feature}, 1)
        where += "".join(f"; did you mean {name!r}?" for name in near)
        where += f"; tables there: {listed(held, 8)}" if held else ""
        unknown = [table.holds(self.atlas) for table in self.tables]
        if measure.in_stats and self.files.subjects:
            whose = listed(self.files.subjects, 3), listed((s.name for s in scans), 3)
            told = "FreeSurfer subjects {}, as scans are {}: write the ids alike"
            unknown.append(told.format(*whose))
        elif measure.in_stats and (given := self.files.patterns.get("freesurfer")):
            message = f"the pattern {given!r} of freesurfer (pattern=) fits the name of"
            unknown.append(f"{message} no subject's folder")
        reasons = [*_other_tracers(feature, scans), *self.skipped, *unknown]
        where += "".join(f"; not used: {reason}" for reason in reasons if reason)
        raise CohortError(
            f"{feature}: found nowhere; looked for {where}",
            values=find_other_atlas(
                [table.strangers for table in self.tables], self.atlas
            ),
        )

    def _runs(
        self, scans: Sequence[Scan], subjects: Sequence[list[tuple[ScanName, Path]]]
    ) -> tuple[list[Source], list[Finding | str]]:
        """Return every scan's FreeSurfer subject, all of one kind of run."""
        kinds = [{bool(run.base) for run, _ in known} for known in subjects]
        n_cross, n_long = (sum(kind in of for of in kinds) for kind in (False, True))
        if n_cross == n_long == len(scans):
            raise CohortError(
                "FreeSurfer: every scan has a cross-sectional and a longitudinal run; "
                "choose one by pattern = {freesurfer = '*.long.*'} or pattern = "
                "{freesurfer = '!*.long.*'} in --config (in Python pattern="
                "{'freesurfer': '*.long.*'})"
            )
        is_long, chosen = n_long > n_cross, list[Source]()
        kind, other = _RUNS[is_long], _RUNS[not is_long]
        for scan, known in zip(scans, subjects, strict=True):
            own = [path for run, path in known if bool(run.base) == is_long]
            if len(own) == 1:
                chosen.append(own[0])
                continue
            fault = f"no {kind} FreeSurfer run"
            fault += f", but a {other} one; they are never mixed" if known else ""
            there = listed(self.files.subjects, 3)
            fault += "; expected a folder of its name with stats inside, there are "
            fault += f"{there}: {ADD_IT}"
            if own:
                message = f"{len(own)} FreeSurfer subjects could be it"
                error = choose_one(message, "freesurfer", own)
                chosen.append(Finding.from_error(error, scan.name))
                continue
            chosen.append(Finding(fault, FAULT, scan=scan.name))
        return chosen, [f"FreeSurfer: stats of {kind} runs"]

    def add_origins(self, table: pd.DataFrame) -> None:
        """Add the columns that say on which scale values are to the table of scans."""
        for head, values in self.origins.items():
            if head not in table:
                table[head] = values

    def _add_origin(
        self, feature: str, head: str, values: Sequence[str | None], where: str
    ) -> list[Finding]:
        """Keep what says on which scale values are, if that differs between scans.

        Return it as a note with counts. The table of people may say it already.
        """
        names = [
            listed(sorted(tracer.name for tracer in find_tracers(value))) or value
            for value in values
            if value
        ]
        counts = Counter(names)
        if len(counts) < 2 or head in self.known:
            return []
        if len(counts) <= _MOST_ORIGINS:
            head = head if head not in self.origins else f"{feature}_{kind_of(head)}"
            self.origins[head] = list(values)
        numbers = listed((f"{name} ({n})" for name, n in counts.most_common()), 5)
        what = "values may be on several scales; the audit looks at it"
        message = f"{feature}: {where} has {len(counts)} values, {numbers}: {what}"
        return [Finding(message, kind=SCALES_DIFFER)]

    def _check_tracers(
        self, measure: Measure, table: ScanTable, rows: Sequence[int], unnamed: bool
    ) -> None:
        """Raise where rows of a table are of another tracer than a feature's.

        Where no column of values says its tracer (`unnamed`), the table's name and
        heads of its other columns must not say another.
        """
        name = measure.name
        if name not in (*PET_FEATURES, "suvr"):
            return
        for head in find_tracer_columns(table.facts):
            cells = Counter(table.facts[head].iloc[list(rows)].dropna())
            features = {c: {t.feature for t in find_tracers(c)} for c in cells}
            others = [c for c in cells if features[c] and features[c] != {name}]
            all_features = sorted(set().union(*features.values()))
            if (others and name != "suvr") or len(all_features) > 1:
                told = listed(f"{cell} ({n})" for cell, n in cells.most_common())
                raise CohortError(
                    f"{name}: {table.path.name} has tracers of "
                    f"{' and '.join(all_features)} in its column {head!r}: {told}. "
                    "Keep the rows of one, and name it by feature= (--feature)"
                )
        heads = [head for head in table.facts if _OF_VALUES.search(head)]
        said = {
            t.feature for text in (table.path.name, *heads) for t in find_tracers(text)
        }
        if unnamed and said and said != {name} and name != "suvr":
            raise CohortError(
                f"{name}: the name or the columns of {table.path.name} say "
                f"{listed(sorted(said))}, and the columns of its regions no tracer. "
                "Name the tracer in their heads, or in the name of the file"
            )

    def _choose_columns(self, measure: Measure) -> _Columns:
        """Return the table and the measure in its heads of every region of a feature.

        A column that says the feature counts before one that says no measure, and a
        table that names regions of the atlas alone before one that names more. Raises
        a CohortError where two tables are left.
        """
        words = below = (*map(str.lower, measure.words), "")
        if measure.on_surface:
            below = ("volume", "") if self.subcortex == "volume" else ()
        found: dict[int, list[tuple[tuple[Any, ...], ScanTable, str]]] = {}
        for table in self.tables:
            for word, place in table.values:
                order = words if self.atlas.cortex[place] else below
                if word in order:
                    # the file's name counts where heads say no measure
                    is_said = word or measure.name.lower() in table.path.name.lower()
                    rank = order.index(word), not is_said, not table.is_exact
                    found.setdefault(place, []).append((rank, table, word))
        chosen: _Columns = {}
        for place, columns in sorted(found.items()):
            best = min(rank for rank, *_ in columns)
            same = [(table, word) for rank, table, word in columns if rank == best]
            if len(same) > 1:
                paths = listed(str(table.path) for table, _ in same)
                # --features-table chooses among files, and not in one
                books = {str(t.path).partition(", sheet ")[0] for t, _ in same}
                which = _WHICH if len(books) > 1 else "keep one of them in this file"
                raise CohortError(
                    f"{measure.name}: more than one table holds the same regions: "
                    f"{paths}; {which}"
                )
            chosen[place] = same[0]
        return chosen

    def _compare_ids(self, table: ScanTable) -> None:
        """Raise where a table gives ids of the table of people to other people.

        Unless the user named the column of ids.
        """
        if self.people is None or self.chosen.id:
            return
        keys = [
            [self.files.key_of(name)[0] for name in one.names]
            for one in (self.people, table)
        ]
        columns = [
            one.facts.to_dict("list") | {one.id_column: people}
            for one, people in zip((self.people, table), keys, strict=True)
        ]
        message = find_exchanged_ids(
            *(keys[0], columns[0]),
            *(keys[1], columns[1]),
            (self.people.id_column, table.id_column),
        )
        if message:
            raise CohortError(f"{self.people.path.name}, {table.path.name}: {message}")

    def _table_rows(  # noqa: C901 (one question after the other)
        self, chosen: _Columns, scans: Sequence[Scan], measure: Measure
    ) -> tuple[list[Source], list[Finding | str]]:
        """Return the values of every scan in tables with a row per scan."""
        atlas, name, places = self.atlas, measure.name, np.array(list(chosen))
        tables = [*{id(table): table for table, _ in chosen.values()}.values()]
        names = ", ".join(table.path.name for table in tables)
        notes: list[Finding | str] = [f"{name}: read from {names}"]
        values = np.full((len(scans), len(atlas)), np.nan)
        found: list[Source] = list(values)  # rows of the array; some become faults
        for table in tables:
            index: dict[str, dict[str, list[int]]] = {}
            keys = [*map(self.files.key_of, table.names)]
            self._compare_ids(table)
            for row, (person, visit) in enumerate(keys):
                index.setdefault(person, {}).setdefault(visit, []).append(row)
            rows = [scan.entries(index) for scan in scans]
            own = listed((who.participant for who in table.names), 3)
            for i, known in enumerate(rows):
                if len(known) > 1:
                    fault = f"{len(known)} rows in {table.path}; expected one"
                    found[i] = Finding(fault, FAULT, scan=scans[i].name)
                elif not known:
                    visits = index.get(scans[i].key[0])
                    which = f"named {own}; write ids alike (case and zeros count)"
                    if visits:
                        told = listed((visit or "none" for visit in visits), 3)
                        which = f"of visit {told}; say visits alike, in session_id"
                    fault = f"no row in {table.path}, whose rows are {which}, {ADD_IT}"
                    found[i] = Finding(fault, FAULT, scan=scans[i].name)
            first = [known[0] if known else 0 for known in rows]
            in_cohort = [known[0] for known in rows if known]
            words = {word for its_table, word in chosen.values() if its_table is table}
            is_unnamed = not words.isdisjoint({"", "suvr"} - {name})
            self._check_tracers(measure, table, in_cohort, is_unnamed)
            heads = [head for head in table.facts if kind_of(head) in SCALES]
            for head in dict.fromkeys([*heads, *find_tracer_columns(table.facts)]):
                column = table.facts[head].to_numpy()
                known_values = [column[known[0]] if known else None for known in rows]
                where = f"the column {head!r} of {table.path.name}"
                notes += self._add_origin(name, head, known_values, where)
            for place, (its_table, word) in chosen.items():
                if its_table is table:
                    values[:, place] = table.values[word, place][first]
            notes += [
                replace(note, path=table.path.name) for note in as_findings(table.notes)
            ]
            known_heads = {*self.known, *self.origins}
            out = [h for h in (*table.facts, *table.outside) if h not in known_heads]
            if out:
                message = f"left out, no regions of {atlas.name}: {listed(out, 5)}"
                notes.append(Finding(message, LEFT_OUT, path=table.path.name))
            spare = len(table.names) - len({row for known in rows for row in known})
            if spare:
                what = f"{spare} rows of scans that are not in the cohort"
                notes.append(f"{table.path.name}: {what}")
        if gone := [atlas.names[i] for i in chosen if np.isnan(values[:, i]).all()]:
            notes.append(f"{name}: not measured in any scan: {listed(gone, 5)}")
        if len({bool(who.base) for table in tables for who in table.names}) > 1:
            raise CohortError(
                f"{names}: rows of longitudinal ('.long.') and of cross-sectional "
                "FreeSurfer runs; they are never mixed. Keep one kind"
            )
        paths = ", ".join(str(table.path) for table in tables)
        unknown = unknown_names([n for one in tables for n in one.strangers], atlas)
        try:
            check_structures(places, atlas, paths)
            if unknown and not atlas.cortex[places].any():
                raise FileFormatError("no cortical region.", path=paths)
        except FileFormatError as error:
            raise FileFormatError(
                f"{error.message} {unknown}".rstrip(),
                path=error.path,
                values=find_other_atlas([table.strangers for table in tables], atlas),
            ) from error
        said = {i: word for i, (_, word) in chosen.items() if atlas.cortex[i]}
        unnamed = [i for i, word in said.items() if word in {"", "suvr"} - {name}]
        if unnamed:
            middle, (low, high) = np.nanmedian(values[:, unnamed]), measure.plausible
            what = "tracer" if said[unnamed[0]] else "measure"
            is_like = low <= middle <= high
            if not (self.is_named and is_like):
                told = f"{names}: says no {what}; values are about {middle:.3g}, "
                if is_like:
                    told += (
                        f"as of {name}. Say so by feature={name!r} (--feature {name})"
                    )
                else:
                    told += f"and {name} is {low:g} to {high:g}. Say what they are, by "
                    told += "any name, by feature= (--feature)"
                raise CohortError(told)
            if name.lower() not in names.lower():
                message = f"{name}: {names} says no {what}; taken to be {name}"
                notes.append(Finding(message, kind=ASSUMED))
        below = {
            (word, place)
            for table in tables
            for word, place in table.values
            if word != "other" and not atlas.cortex[place] and place not in chosen
        }
        if measure.on_surface and below:
            unused = {place for _, place in below}
            note = f"{name}: {len(unused)} subcortical columns are left out"
            takers = {place for word, place in below if word in ("volume", "")}
            # beside the feature volume they would count twice
            is_free = self.subcortex != "volume" and "volume" not in self.features
            if is_free and takers == {*np.flatnonzero(~atlas.cortex)}:
                note += "; subcortex='volume' takes them as volumes"
            notes.append(Finding(note, LEFT_OUT))
        return found, notes


def _other_tracers(feature: str, scans: Sequence[Scan]) -> list[str]:
    """Say of which tracers other files of scans are; of five at most."""
    paths = dict.fromkeys(path for scan in scans for path in scan.files)
    said = ((path.name, wrong_tracer(path.name, feature)) for path in paths)
    return [f"{name} is of {tracer}" for name, tracer in said if tracer][:5]
