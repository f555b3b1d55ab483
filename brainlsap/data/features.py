"""Regional values of every scan: where they are read from, and reading them.

A feature of a cohort comes from one kind of source for all scans, never a mixture: a
table of regions beside each scan, else FreeSurfer's stats, else tables with a row per
scan.

Stats files are those of `mris_anatomical_stats` (`?h.aparc*.stats`) and `mri_segstats`
(`aseg.stats`). A measure that stats do not hold is averaged over the vertices of each
region as `ThickAvg` is: every vertex has the same weight, whatever the area around it,
and those outside `?h.cortex.label` are left out.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.connectomes import is_matrix
from brainlsap.data.covariates import COVARIATES, SCALE_KINDS, kind_of
from brainlsap.data.find_files import (
    Scan,
    ScanName,
    StudyFiles,
    ambiguity_error,
)
from brainlsap.data.id_columns import (
    NO_CHOICE,
    ChosenColumns,
    find_exchanged_ids,
)
from brainlsap.data.measures import (
    KNOWN_MEASURES,
    PET_FEATURES,
    Measure,
    apply_subcortex_policy,
    check_structures,
    find_tracers,
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
from brainlsap.data.tables import ADD_IT, IMPORT_FILES, read_lines
from brainlsap.exceptions import (
    ABSENT,
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
)
from brainlsap.text import listed, option_text

TRUTH_FILE = "truth.tsv"
HEMISPHERES = {"lh": "L", "rh": "R"}
CORTEX_COLUMNS = {"thickness": "ThickAvg", "area": "SurfArea", "volume": "GrayVol"}
_HEADER = re.compile(
    r"^# (ColHeaders|NRows|hemi|Measure Cortex, NumVert,) (.*)", re.MULTILINE
)
# Largest share of the vertices in no region of the table (measured: 1e-4).
_MAX_UNLABELLED = 5e-4
_CROSS_SECTIONAL = "cross-sectional"
_LONGITUDINAL = "longitudinal"
# Column -> entity in names of files. Both may tell on which scale values are.
_SCALE_ENTITIES = {
    "tracer": "trc",
    "pvc": "pvc",
    "reference_region": "suvr",
    "reference": "ref",
    "reconstruction": "rec",
}
# A column with more values names no scales; it may hold dates.
_MAX_SCALES = 10
# Heads of columns of PET values, apart from those of regions.
_PET_HEAD = re.compile("suvr|uptake|dvr|centiloid", re.IGNORECASE)
Source = Path | np.ndarray | Finding
"""Of one scan: a file, a FreeSurfer subject or values; or the fault."""


class _Column(NamedTuple):
    """The column of one region in a table with a row per scan."""

    table: ScanTable
    measure: str
    """The measure in its head, "" if it names none."""


class FeatureFile(NamedTuple):
    """One feature of one scan in the order of an atlas.

    Parameters
    ----------
    values : array of shape (n_rois,)
        In the unit of the file; NaN where not measured.
    notes : tuple of str
        What was left out or filled, in the same words for every file.
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
        What the subcortex has if the feature is measured on the surface.
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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sub-01_trc-18FFDG_regions.tsv"
    ...     _ = path.write_text("region\tsuvr\n" + rows)
    ...     read_feature(path, "fdg", "desikan82").values[:3].tolist()
    [1.0, 1.01, 1.02]
    """
    atlas = load_atlas(atlas)
    measure = get_measure(feature)
    path = Path(path)
    if path.is_dir():
        values, notes = read_stats(path, atlas, measure, subcortex)
    else:
        values, notes, region_index = read_region_values(
            path, atlas, measure, frames=frames, reference=reference
        )
        check_structures(region_index, atlas, str(path))
    values, policy_notes = apply_subcortex_policy(values, measure, atlas, subcortex)
    return FeatureFile(values, (*notes, *policy_notes))


def read_stats(
    folder: str | Path, atlas: Atlas, measure: Measure, subcortex: str = "absent"
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return one measure of a FreeSurfer subject in the order of an atlas, and notes.

    `folder` is the subject's, or its `stats`. Subcortical volumes are read if the
    measure is one, or `subcortex` asks for them. A measure that stats do not hold is
    averaged over vertices.
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
    name = measure.name
    on_surface = measure.on_surface
    values = np.full(len(atlas.names), np.nan)
    notes = tuple[str, ...]()
    side_of_file: dict[Path, str | None] = {
        stats / f"{hemisphere}.{annotation}.stats": side
        for hemisphere, side in HEMISPHERES.items()
    }
    if name not in CORTEX_COLUMNS or not all(map(Path.is_file, side_of_file)):
        subject = stats.parent if stats.name == "stats" else stats
        vertex_means = _vertex_means(subject, name, atlas, annotation)
        if vertex_means is None:
            check_choice("feature of FreeSurfer's stats", name, CORTEX_COLUMNS)
        else:
            values = vertex_means
            on_surface = True
            side_of_file = {}
            notes = (f"{name}: plain mean over the vertices",)
    if not on_surface or subcortex == "volume":
        side_of_file[stats / "aseg.stats"] = None
    for path, side in side_of_file.items():
        if not path.is_file():
            hint = _explain_missing_stats(path, atlas)
            raise FileFormatError(f"no such file{hint}", path=path, kind=ABSENT)
        column = CORTEX_COLUMNS[name] if side else "Volume_mm3"
        file_values = _read_stats_column(path, column, atlas, side)
        values = np.where(np.isnan(file_values), values, file_values)
    return values, notes


def _explain_missing_stats(path: Path, atlas: Atlas) -> str:
    """Return that stats of another parcellation are there, or the end of a sentence."""
    hemisphere = path.name[:2]
    other_paths = sorted(path.parent.glob(f"{hemisphere}.aparc*.stats"))
    if not other_paths:
        return "."
    advice = atlas.settings.get("remake_values", "")
    return f"; {other_paths[0].name} is of another parcellation. {advice}"


def _read_stats_column(
    path: Path, measure_column: str, atlas: Atlas, side: str | None
) -> np.ndarray:
    """Return a column of a stats file in the order of an atlas.

    `side` is None for segmentations, whose cortical regions are left out.
    """
    file_lines = read_lines(path, comments=True)
    row_cells = [line.split() for line in file_lines if line[0] != "#"]
    header = {
        key: value.strip() for key, value in _HEADER.findall("\n".join(file_lines))
    }
    column_heads = header.get("ColHeaders", "").split()
    n_rows = header.get("NRows", f"{len(row_cells)}")
    n_cells = [len(row) for row in row_cells]
    is_complete = {*n_cells} == {len(column_heads)} and n_rows == f"{len(row_cells)}"
    if not (is_complete and {"StructName", measure_column} <= {*column_heads}):
        raise FileFormatError(
            "expected a FreeSurfer stats file with a line '# ColHeaders' that "
            f"names StructName and {measure_column}, and {n_rows} rows of "
            f"{len(column_heads)} cells; got {len(row_cells)} rows of "
            f"{min(n_cells, default=0)} or more. It may be cut short.",
            path=path,
        )
    if HEMISPHERES.get(header.get("hemi", ""), side) != side:
        raise FileFormatError(
            "says that it is of the other hemisphere; the files of the two "
            "may be exchanged.",
            path=path,
        )
    cells_by_head = dict(zip(column_heads, zip(*row_cells, strict=True), strict=True))
    region_names = cells_by_head["StructName"]
    if side is None:
        # Segments that are no region of the atlas are left out.
        region_names = tuple(
            n if atlas.find(n) is not None else "none" for n in region_names
        )
        is_expected = ~atlas.cortex
    else:
        hemisphere = atlas.regions["hemisphere"].to_numpy()
        is_expected = atlas.cortex & (hemisphere == side)
    with reading(path, "a stats file"):
        column_numbers = np.array(cells_by_head[measure_column], dtype=float)
        row_of_region, _ = atlas.rows(region_names, side)
    missing_regions = np.flatnonzero(is_expected & (row_of_region < 0))
    # FreeSurfer has no row for a region that a surface lacks, and its vertices are in
    # other regions. In a file that was cut short, vertices are missing.
    vertex_counts = cells_by_head.get("NumVert", ()) if missing_regions.size else ()
    n_labelled = np.array(vertex_counts, dtype=float).sum()
    n_vertices = float(header.get("Measure Cortex, NumVert,", ",inf,").split(",")[-2])
    if missing_regions.size and n_labelled < n_vertices * (1 - _MAX_UNLABELLED):
        raise FileFormatError(
            f"{missing_regions.size} of {is_expected.sum()} regions have no row "
            f"({listed((atlas.names[i] for i in missing_regions), 5)}). The file may "
            "be cut short; run mris_anatomical_stats or mri_segstats again.",
            path=path,
        )
    is_read = is_expected & (row_of_region >= 0)
    return np.where(is_read, column_numbers[row_of_region], np.nan)


def _vertex_means(
    subject: Path, name: str, atlas: Atlas, annotation: str
) -> np.ndarray | None:
    """Return the plain mean of `surf/?h.<name>` over the vertices of every region.

    Returns None if a hemisphere has no such file.
    """
    from nibabel.freesurfer import read_morph_data

    overlays = {
        hemisphere: subject / "surf" / f"{hemisphere}.{name}"
        for hemisphere in HEMISPHERES
    }
    if not all(map(Path.is_file, overlays.values())):
        return None
    if name in ("area", "volume"):
        raise FileFormatError(
            f"{name} of a region is a sum over faces, not a mean over "
            "vertices; it is read from stats. Run mris_anatomical_stats.",
            path=subject,
        )
    values = np.full(len(atlas.names), np.nan)
    for hemisphere, path in overlays.items():
        with reading(path, "one value a vertex"):
            vertex_values = read_morph_data(path).astype(np.float64)
        annot_path = subject / "label" / f"{hemisphere}.{annotation}.annot"
        vertex_labels = atlas.vertex_labels(HEMISPHERES[hemisphere], annot_path)
        if len(vertex_labels) != len(vertex_values):
            raise FileFormatError(
                f"{len(vertex_values)} vertices, but {annot_path.name} has "
                f"{len(vertex_labels)}; they are not of one surface, or one file is "
                "truncated.",
                path=path,
            )
        is_averaged = vertex_labels >= 0
        cortex_path = subject / "label" / f"{hemisphere}.cortex.label"
        if cortex_path.is_file():
            is_cortex = np.zeros(len(vertex_labels), dtype=bool)
            with reading(cortex_path, "a FreeSurfer label"):
                vertices = np.loadtxt(cortex_path, int, skiprows=2, usecols=0, ndmin=1)
                is_cortex[vertices] = True
            is_averaged &= is_cortex
        averaged_values = pd.Series(vertex_values[is_averaged])
        means = averaged_values.groupby(vertex_labels[is_averaged]).mean()
        values[means.index] = means
    return values


@dataclass
class FeatureSources:
    """The files and tables that the features of a study can come from."""

    files: StudyFiles
    atlas: Atlas
    subcortex: str
    table_paths: Sequence[str | Path] | None = None
    """The only tables in which features are looked for."""
    skip_reasons: list[str] = field(default_factory=list)
    """Why tables were not used."""
    is_named: bool = True
    """Whether the user named features; otherwise tables have to name theirs."""
    features: Sequence[str] = ()
    """All features that are read."""
    people_heads: Collection[str] = ()
    """Columns of the table of people."""
    scale_columns: dict[str, list[str | None]] = field(default_factory=dict)
    """Columns by scan that tell on which scale values are, if they differ by scan."""
    unmatched: Finding | None = None
    """What to do if nobody's files are found; part of the message if anything is wrong.
    """
    chosen_columns: ChosenColumns = NO_CHOICE
    """Columns of ids and visits that the user named."""
    people: ScanTable | None = None
    """The table of people, with which others are compared."""

    @cached_property
    def tables(self) -> list[ScanTable]:
        """Tables of many scans: those that the user named, or those in the study."""
        paths: Iterable[Path]
        if self.table_paths is None:
            other_files = (TRUTH_FILE, *IMPORT_FILES)
            paths = (path for path in self.files.tables if path.name not in other_files)
        else:
            paths = map(self.files.resolve_path, self.table_paths)
        tables = list[ScanTable]()
        for path in paths:
            try:
                sheets, errors = read_sheets(path, self.atlas, self.chosen_columns)
            except BrainlsapError as error:
                if self.table_paths is not None:
                    raise
                # A connectome is not expected to be such a table.
                if not is_matrix(path):
                    self.skip_reasons.append(str(error))
            else:
                tables += sheets
                self.skip_reasons += errors
        return tables

    def people_table(self, label: str | None) -> ScanTable:
        """Return the one table that holds people and labels.

        Of several, prefer those that name no region that the atlas lacks, then those
        without regions. Raises a CohortError if there is none, with the reasons, or
        more than one.
        """
        candidates = [table for table in self.tables if table.has(label)]
        candidates = [table for table in candidates if table.is_exact] or candidates
        candidates = [table for table in candidates if not table.values] or candidates
        files = {table.path for table in candidates}
        # Of the sheets of one workbook, choose that with most of age, sex ...
        n_covariates = [
            len({*map(kind_of, table.facts)} & {*COVARIATES}) for table in candidates
        ]
        if len(files) == 1 and n_covariates.count(max(n_covariates)) == 1:
            candidates = [candidates[n_covariates.index(max(n_covariates))]]
        if len(candidates) == 1:
            return candidates[0]
        problem = f"{self.files.folder}: no participants.tsv (or .csv, .xlsx), and"
        if candidates:
            paths = listed(table.path_and_sheet for table in candidates)
            advice = "keep one of these sheets"
            if len(files) > 1:
                advice = f"say which by {option_text('features_table')}"
            raise CohortError(
                f"{problem} {len(candidates)} tables could be it: {paths}; {advice}"
            )
        reasons = [
            f"{table.path_and_sheet}: has no column {label!r}; found "
            f"{listed(table.facts, 5)}"
            for table in self.tables
            if not (table.facts.empty or is_matrix(table.path))
        ]
        reasons = [*dict.fromkeys((*reasons, *self.skip_reasons))][:5]
        raise CohortError(
            f"{problem} no table that holds ids and {label or 'people'!r} in its "
            "place. Correct the table below, name the label by "
            f"{option_text('label')}, or another folder"
            + "".join(f"\n    not used: {reason}" for reason in reasons)
        )

    def has_data(self, person: str, visit: str) -> bool:
        """Return whether files, FreeSurfer or tables of regions have data of a visit.

        A visit's folder may be empty, or hold lists and questionnaires alone.
        """
        if self.files.files.get((person, visit)):
            return True
        subjects_by_visit = self.files.subjects.get(person, {})
        return visit in subjects_by_visit or visit in self.sessions.get(person, {})

    @cached_property
    def sessions(self) -> dict[str, dict[str, str]]:
        """Visits with FreeSurfer subjects or rows of regional tables, by person."""
        names = [
            name
            for subjects_by_visit in self.files.subjects.values()
            for subjects in subjects_by_visit.values()
            for name, _ in subjects
        ]
        if not names or self.table_paths is not None:
            region_tables = [table for table in self.tables if table.values]
            names = [name for table in region_tables for name in table.names]
        visits: dict[str, dict[str, str]] = {}
        for name in names:
            person, visit = self.files.key_of(name)
            if visit:
                visits.setdefault(person, {}).setdefault(visit, name.session or visit)
        return visits

    def locate(
        self, feature: str, scans: Sequence[Scan]
    ) -> tuple[Sequence[Source], list[Finding | str]]:
        """Return the source of a feature for every scan, and notes.

        Raises a CohortError if there is none for any scan.
        """
        measure = get_measure(feature)
        if self.table_paths is None:
            sources, notes = self._locate_region_files(measure, scans)
            if sources:
                return sources, notes
            if feature in self.files.patterns:
                raise CohortError(self.files.unmatched_pattern_message(feature, scans))
            subjects = [scan.entries(self.files.subjects) for scan in scans]
            if measure.in_stats and any(subjects):
                return self._choose_freesurfer_runs(scans, subjects)
        column_of_region = self._choose_columns(measure)
        if column_of_region:
            return self._read_table_rows(column_of_region, scans, measure)
        search_text = self._explain_search(measure, scans)
        raise CohortError(
            f"{feature}: found nowhere; looked for {search_text}",
            values=find_other_atlas(
                [table.unmatched_names for table in self.tables], self.atlas
            ),
        )

    def _locate_region_files(
        self, measure: Measure, scans: Sequence[Scan]
    ) -> tuple[list[Source], list[Finding | str]]:
        """Return every scan's table of regions, and notes; nothing if no scan has one.

        A scan without a table has a fault instead.
        """
        feature = measure.name
        sources_or_none = list[Source | None]()
        for scan in scans:
            try:
                sources_or_none.append(self.files.regions(scan, feature, self.atlas))
            except CohortError as error:
                sources_or_none.append(Finding.from_error(error, scan.name))
        if not any(sources_or_none):
            return [], []
        expected = self.files.patterns.get(feature, measure.expected_files)
        sources = list[Source]()
        for scan, source in zip(scans, sources_or_none, strict=True):
            if source:
                sources.append(source)
                continue
            message = (
                f"no table of regions for {feature}; expected a file {expected}: "
                f"{ADD_IT}"
            )
            message = "; not used: ".join([message, *_other_tracers(feature, [scan])])
            sources.append(Finding(message, FAULT, scan=scan.name))
        notes: list[Finding | str]
        notes = [f"{feature}: read from a table of regions for every scan"]
        for head, entity in _SCALE_ENTITIES.items():
            pattern = re.compile(f"(?:^|[_/]){entity}-([^_./]+)")
            matches = [pattern.search(str(source)) for source in sources]
            values = [match[1] if match else None for match in matches]
            origin = f"{entity}- in names of files"
            notes += self._keep_scale_column(feature, head, values, origin)
        return sources, notes

    def _explain_search(self, measure: Measure, scans: Sequence[Scan]) -> str:
        """Return where a feature was looked for in vain, what is there, and why not."""
        feature = measure.name
        folders = ", ".join(map(str, self.table_paths or [self.files.folder]))
        search_text = f"a column per region in tables with a row per scan, in {folders}"
        if self.table_paths is None:
            if measure.in_stats:
                search_text = (
                    "FreeSurfer subjects there or in "
                    f"{option_text('subjects_dir')}, {search_text}"
                )
            search_text = (
                f"files {measure.expected_files} beside the scans, {search_text}"
            )
        file_names = " ".join(path.name for scan in scans for path in scan.files)
        table_names = re.findall(r"desc-([a-z0-9]+)_regions", file_names.lower())
        table_names += [
            table.path.stem.lower() for table in self.tables if table.values
        ]
        table_names = sorted({*table_names})
        known_features = {*table_names, *KNOWN_MEASURES} - {feature}
        for similar_feature in get_close_matches(feature.lower(), known_features, 1):
            search_text += f"; did you mean {similar_feature!r}?"
        if table_names:
            search_text += f"; tables there: {listed(table_names, 8)}"
        rejection_reasons = [*_other_tracers(feature, scans), *self.skip_reasons]
        rejection_reasons += [
            table.describe_mismatch(self.atlas) for table in self.tables
        ]
        freesurfer_pattern = self.files.patterns.get("freesurfer")
        if measure.in_stats and self.files.subjects:
            subject_names = listed(self.files.subjects, 3)
            scan_names = listed((scan.name for scan in scans), 3)
            rejection_reasons.append(
                f"FreeSurfer subjects {subject_names}, as scans are {scan_names}: "
                "write the ids alike"
            )
        elif measure.in_stats and freesurfer_pattern:
            rejection_reasons.append(
                f"the pattern {freesurfer_pattern!r} of freesurfer "
                f"({option_text('pattern')}) fits the name of no subject's folder"
            )
        return search_text + "".join(
            f"; not used: {reason}" for reason in rejection_reasons if reason
        )

    def _choose_freesurfer_runs(
        self, scans: Sequence[Scan], subjects: Sequence[list[tuple[ScanName, Path]]]
    ) -> tuple[list[Source], list[Finding | str]]:
        """Return every scan's FreeSurfer subject, all of one kind of run.

        The kind that more scans have is chosen. Longitudinal runs have a base.
        """
        has_cross = [any(not name.base for name, _ in runs) for runs in subjects]
        has_long = [any(name.base for name, _ in runs) for runs in subjects]
        if all(has_cross) and all(has_long):
            raise CohortError(
                "FreeSurfer: every scan has a cross-sectional and a longitudinal run; "
                "choose one by pattern = {freesurfer = '*.long.*'} or pattern = "
                "{freesurfer = '!*.long.*'} in --config (in Python "
                "pattern={'freesurfer': '*.long.*'})"
            )
        is_long = sum(has_long) > sum(has_cross)
        run_kind = _LONGITUDINAL if is_long else _CROSS_SECTIONAL
        other_kind = _CROSS_SECTIONAL if is_long else _LONGITUDINAL
        sources = list[Source]()
        for scan, runs in zip(scans, subjects, strict=True):
            run_paths = [path for name, path in runs if bool(name.base) == is_long]
            if len(run_paths) == 1:
                sources.append(run_paths[0])
                continue
            if run_paths:
                ambiguity_text = f"{len(run_paths)} FreeSurfer subjects could be it"
                error = ambiguity_error(ambiguity_text, "freesurfer", run_paths)
                sources.append(Finding.from_error(error, scan.name))
                continue
            message = f"no {run_kind} FreeSurfer run"
            if runs:
                message += f", but a {other_kind} one; they are never mixed"
            message += (
                "; expected a folder of its name with stats inside, there are "
                f"{listed(self.files.subjects, 3)}: {ADD_IT}"
            )
            sources.append(Finding(message, FAULT, scan=scan.name))
        return sources, [f"FreeSurfer: stats of {run_kind} runs"]

    def add_scale_columns(self, scan_table: pd.DataFrame) -> None:
        """Add the columns that tell on which scale values are to the table of scans."""
        for head, scale_values in self.scale_columns.items():
            if head not in scan_table:
                scan_table[head] = scale_values

    def _keep_scale_column(
        self, feature: str, head: str, scale_values: Sequence[str | None], origin: str
    ) -> list[Finding]:
        """Keep a column that tells on which scale values are, if it differs by scan.

        Return its values with counts as a note, and nothing if the table of people has
        the column.
        """
        scale_names = [
            listed(sorted(tracer.name for tracer in find_tracers(scale_value)))
            or scale_value
            for scale_value in scale_values
            if scale_value
        ]
        scale_counts = Counter(scale_names)
        if len(scale_counts) < 2 or head in self.people_heads:
            return []
        if len(scale_counts) <= _MAX_SCALES:
            if head in self.scale_columns:
                head = f"{feature}_{kind_of(head)}"
            self.scale_columns[head] = list(scale_values)
        count_texts = listed(
            (
                f"{scale_name} ({n_scans})"
                for scale_name, n_scans in scale_counts.most_common()
            ),
            5,
        )
        message = (
            f"{feature}: {origin} has {len(scale_counts)} values, {count_texts}: "
            "values may be on several scales; the audit looks at it"
        )
        return [Finding(message, kind=SCALES_DIFFER)]

    def _check_tracers(
        self,
        measure: Measure,
        table: ScanTable,
        row_index: Sequence[int],
        is_unnamed: bool,
    ) -> None:
        """Raise if rows of a table are of another tracer than a feature's.

        If no column of regions names its tracer (`is_unnamed`), neither the table's
        name nor heads of its other columns may name another.
        """
        feature_name = measure.name
        if feature_name not in (*PET_FEATURES, "suvr"):
            return
        for head in find_tracer_columns(table.facts):
            cell_counts = Counter(table.facts[head].iloc[list(row_index)].dropna())
            features_of_cell = {
                cell: {tracer.feature for tracer in find_tracers(cell)}
                for cell in cell_counts
            }
            tracer_features = sorted(set().union(*features_of_cell.values()))
            has_other = any(
                cell_features not in (set(), {feature_name})
                for cell_features in features_of_cell.values()
            )
            if (has_other and feature_name != "suvr") or len(tracer_features) > 1:
                counts_text = listed(
                    f"{cell} ({n})" for cell, n in cell_counts.most_common()
                )
                raise CohortError(
                    f"{feature_name}: {table.name_and_sheet} has tracers of "
                    f"{' and '.join(tracer_features)} in its column {head!r}: "
                    f"{counts_text}. Keep the rows of one, and name it by "
                    f"{option_text('feature')}"
                )
        pet_heads = [head for head in table.facts if _PET_HEAD.search(head)]
        named_features = {
            tracer.feature
            for name_or_head in (table.name_and_sheet, *pet_heads)
            for tracer in find_tracers(name_or_head)
        }
        is_other = bool(named_features) and named_features != {feature_name}
        if is_unnamed and is_other and feature_name != "suvr":
            raise CohortError(
                f"{feature_name}: the name or the columns of {table.name_and_sheet} "
                f"say {listed(sorted(named_features))}, and the columns of its regions "
                "no tracer. Name the tracer in their heads, or in the name of the file"
            )

    def _choose_columns(self, measure: Measure) -> dict[int, _Column]:
        """Return the column of every region (position in the atlas) of a feature.

        A column that names the feature comes before one that names no measure, and a
        table that names regions of the atlas alone before one that names more. Raises a
        CohortError if two tables are left.
        """
        cortex_measures = (*map(str.lower, measure.head_measures), "")
        subcortex_measures: tuple[str, ...] = cortex_measures
        if measure.on_surface:
            has_volumes = self.subcortex == "volume"
            subcortex_measures = ("volume", "") if has_volumes else ()
        columns_by_region: dict[int, list[tuple[tuple[int, bool, bool], _Column]]] = {}
        for table in self.tables:
            is_named_file = measure.name.lower() in table.name_and_sheet.lower()
            for head_measure, region in table.values:
                is_cortex = self.atlas.cortex[region]
                accepted_measures = cortex_measures if is_cortex else subcortex_measures
                if head_measure not in accepted_measures:
                    continue
                # If heads name no measure, a file's name that does so counts.
                is_unnamed = not (head_measure or is_named_file)
                rank = (
                    accepted_measures.index(head_measure),
                    is_unnamed,
                    not table.is_exact,
                )
                column = _Column(table, head_measure)
                columns_by_region.setdefault(region, []).append((rank, column))
        column_of_region: dict[int, _Column] = {}
        for region, ranked_columns in sorted(columns_by_region.items()):
            best_rank = min(rank for rank, _ in ranked_columns)
            best_columns = [
                column for rank, column in ranked_columns if rank == best_rank
            ]
            if len(best_columns) > 1:
                table_paths = listed(
                    column.table.path_and_sheet for column in best_columns
                )
                # --features-table cannot choose among the sheets of one file.
                is_one_file = len({column.table.path for column in best_columns}) == 1
                advice = f"say which by {option_text('features_table')}"
                if is_one_file:
                    advice = "keep one of them in this file"
                raise CohortError(
                    f"{measure.name}: more than one table holds the same regions: "
                    f"{table_paths}; {advice}"
                )
            column_of_region[region] = best_columns[0]
        return column_of_region

    def _compare_ids(self, table: ScanTable) -> None:
        """Raise if a table gives ids of the table of people to other people.

        The check is skipped if the user named the column of ids.
        """
        if self.people is None or self.chosen_columns.id:
            return
        people_keys = [self.files.key_of(name)[0] for name in self.people.names]
        table_people = [self.files.key_of(name)[0] for name in table.names]
        message = find_exchanged_ids(
            people_keys,
            {**self.people.facts.to_dict("list"), self.people.id_column: people_keys},
            table_people,
            {**table.facts.to_dict("list"), table.id_column: table_people},
            (self.people.id_column, table.id_column),
        )
        if message:
            raise CohortError(
                f"{self.people.name_and_sheet}, {table.name_and_sheet}: {message}"
            )

    def _read_table_rows(
        self,
        column_of_region: dict[int, _Column],
        scans: Sequence[Scan],
        measure: Measure,
    ) -> tuple[list[Source], list[Finding | str]]:
        """Return the values of every scan in tables with a row per scan, and notes.

        A scan without its one row in every table has a fault instead.
        """
        used_tables = [
            *{
                id(column.table): column.table for column in column_of_region.values()
            }.values()
        ]
        table_names = ", ".join(table.name_and_sheet for table in used_tables)
        notes: list[Finding | str] = [f"{measure.name}: read from {table_names}"]
        feature_values = np.full((len(scans), len(self.atlas)), np.nan)
        fault_of_scan = dict[int, Finding]()
        for table in used_tables:
            self._compare_ids(table)
            rows_by_scan, table_faults = self._match_rows(table, scans)
            fault_of_scan |= table_faults
            first_rows = [rows[0] if rows else None for rows in rows_by_scan]
            matched_rows = [row for row in first_rows if row is not None]
            head_measures = {
                column.measure
                for column in column_of_region.values()
                if column.table is table
            }
            is_unnamed = not head_measures.isdisjoint(_unnamed_measures(measure))
            self._check_tracers(measure, table, matched_rows, is_unnamed)
            notes += self._keep_scale_columns(measure, table, first_rows)
            row_index = [row or 0 for row in first_rows]
            for region, column in column_of_region.items():
                if column.table is table:
                    feature_values[:, region] = table.values[column.measure, region][
                        row_index
                    ]
            notes += [replace(note, path=table.name_and_sheet) for note in table.notes]
            notes += self._describe_left_out(table, rows_by_scan)
        unmeasured_regions = [
            self.atlas.names[i]
            for i in column_of_region
            if np.isnan(feature_values[:, i]).all()
        ]
        if unmeasured_regions:
            region_list = listed(unmeasured_regions, 5)
            notes.append(f"{measure.name}: not measured in any scan: {region_list}")
        _check_one_kind_of_run(used_tables, table_names)
        self._check_regions(column_of_region, used_tables)
        notes += self._check_unnamed(
            column_of_region, measure, feature_values, table_names
        )
        notes += self._describe_unused_subcortex(column_of_region, measure, used_tables)
        sources: list[Source] = [
            fault_of_scan.get(i, scan_values)
            for i, scan_values in enumerate(feature_values)
        ]
        return sources, notes

    def _match_rows(
        self, table: ScanTable, scans: Sequence[Scan]
    ) -> tuple[list[list[int]], dict[int, Finding]]:
        """Return the rows of every scan in a table, and faults by scan.

        A fault is no row, or more than one.
        """
        rows_by_person: dict[str, dict[str, list[int]]] = {}
        for row, name in enumerate(table.names):
            person, visit = self.files.key_of(name)
            rows_by_person.setdefault(person, {}).setdefault(visit, []).append(row)
        rows_by_scan = [scan.entries(rows_by_person) for scan in scans]
        fault_of_scan = dict[int, Finding]()
        for i, (scan, rows) in enumerate(zip(scans, rows_by_scan, strict=True)):
            if len(rows) > 1:
                fault_of_scan[i] = Finding(
                    f"more than one row in {table.path_and_sheet}; expected one",
                    FAULT,
                    scan=scan.name,
                    got=f"{len(rows)} rows",
                )
            elif not rows:
                row_hint = _explain_missing_row(scan, table, rows_by_person)
                missing_row_text = (
                    f"no row in {table.path_and_sheet}, whose rows are {row_hint}, "
                    f"{ADD_IT}"
                )
                fault_of_scan[i] = Finding(missing_row_text, FAULT, scan=scan.name)
        return rows_by_scan, fault_of_scan

    def _keep_scale_columns(
        self, measure: Measure, table: ScanTable, row_of_scan: Sequence[int | None]
    ) -> list[Finding]:
        """Keep the columns of a table that tell on which scale its values are."""
        scale_heads = [head for head in table.facts if kind_of(head) in SCALE_KINDS]
        notes = list[Finding]()
        for head in dict.fromkeys([*scale_heads, *find_tracer_columns(table.facts)]):
            column_cells = table.facts[head].to_numpy()
            scale_values = [
                None if row is None else column_cells[row] for row in row_of_scan
            ]
            origin = f"the column {head!r} of {table.name_and_sheet}"
            notes += self._keep_scale_column(measure.name, head, scale_values, origin)
        return notes

    def _describe_left_out(
        self, table: ScanTable, rows_by_scan: Sequence[Sequence[int]]
    ) -> list[Finding]:
        """Return notes on the columns and rows of a table that are not used."""
        notes = list[Finding]()
        known_heads = {*self.people_heads, *self.scale_columns}
        unused_heads = [
            head
            for head in (*table.facts, *table.excluded_heads)
            if head not in known_heads
        ]
        if unused_heads:
            message = (
                f"left out, no regions of {self.atlas.name}: {listed(unused_heads, 5)}"
            )
            notes.append(Finding(message, LEFT_OUT, path=table.name_and_sheet))
        used_rows = {row for rows in rows_by_scan for row in rows}
        n_unused = len(table.names) - len(used_rows)
        if n_unused:
            note = f"{n_unused} rows of scans that are not in the cohort"
            notes.append(Finding(note, path=table.name_and_sheet))
        return notes

    def _check_regions(
        self, column_of_region: dict[int, _Column], used_tables: Sequence[ScanTable]
    ) -> None:
        """Raise if tables have only a part of the cortex, or of the subcortex."""
        paths_text = ", ".join(table.path_and_sheet for table in used_tables)
        unmatched_names = [
            name for table in used_tables for name in table.unmatched_names
        ]
        unknown_names_text = unknown_names(unmatched_names, self.atlas)
        region_index = np.array(list(column_of_region))
        try:
            check_structures(region_index, self.atlas, paths_text)
            if unknown_names_text and not self.atlas.cortex[region_index].any():
                raise FileFormatError("no cortical region.", path=paths_text)
        except FileFormatError as error:
            raise FileFormatError(
                f"{error.message} {unknown_names_text}".rstrip(),
                path=error.path,
                values=find_other_atlas(
                    [table.unmatched_names for table in used_tables], self.atlas
                ),
            ) from error

    def _check_unnamed(
        self,
        columns: dict[int, _Column],
        measure: Measure,
        values: np.ndarray,
        table_names: str,
    ) -> list[Finding]:
        """Check columns of the cortex that do not name the measure; return a note.

        Raises a CohortError unless the user named the feature and the values are
        plausible for it.
        """
        name = measure.name
        unnamed_regions = [
            region
            for region, column in columns.items()
            if self.atlas.cortex[region]
            and column.measure in _unnamed_measures(measure)
        ]
        if not unnamed_regions:
            return []
        median = np.nanmedian(values[:, unnamed_regions])
        low, high = measure.plausible
        is_plausible = low <= median <= high
        kind = "tracer" if columns[unnamed_regions[0]].measure else "measure"
        if self.is_named and is_plausible:
            if name.lower() in table_names.lower():
                return []
            message = f"{name}: {table_names} says no {kind}; taken to be {name}"
            return [Finding(message, kind=ASSUMED)]
        message = f"{table_names}: says no {kind}; values are about {median:.3g}, "
        if is_plausible:
            message += f"as of {name}. Say so by {option_text('feature', name)}"
        else:
            message += (
                f"and {name} is {low:g} to {high:g}. Say what they are, by any name, "
                f"by {option_text('feature')}"
            )
        raise CohortError(message)

    def _describe_unused_subcortex(
        self,
        columns: dict[int, _Column],
        measure: Measure,
        tables: Sequence[ScanTable],
    ) -> list[Finding]:
        """Return a note on subcortical columns that a measure of the surface leaves."""
        unused_columns = {
            (head_measure, region)
            for table in tables
            for head_measure, region in table.values
            if head_measure != "other"
            and not self.atlas.cortex[region]
            and region not in columns
        }
        if not measure.on_surface or not unused_columns:
            return []
        n_regions = len({region for _, region in unused_columns})
        note = f"{measure.name}: {n_regions} subcortical columns are left out"
        volume_regions = {
            region
            for head_measure, region in unused_columns
            if head_measure in ("volume", "")
        }
        has_all_volumes = volume_regions == {*np.flatnonzero(~self.atlas.cortex)}
        # Beside the feature volume they would count twice.
        is_free = self.subcortex != "volume" and "volume" not in self.features
        if is_free and has_all_volumes:
            note += f"; {option_text('subcortex', 'volume')} takes them as volumes"
        return [Finding(note, LEFT_OUT)]


def _unnamed_measures(measure: Measure) -> set[str]:
    """Return what heads say that do not name a measure: nothing, or only a ratio."""
    return {"", "suvr"} - {measure.name}


def _explain_missing_row(
    scan: Scan, table: ScanTable, row_index: dict[str, dict[str, list[int]]]
) -> str:
    """Return which visits a table has of a scan's person, or which people it has."""
    visits = row_index.get(scan.key[0])
    if visits:
        visit_names = listed((visit or "none" for visit in visits), 3)
        return f"of visit {visit_names}; say visits alike, in session_id"
    people = listed((name.participant for name in table.names), 3)
    return f"named {people}; write ids alike (case and zeros count)"


def _check_one_kind_of_run(tables: Sequence[ScanTable], table_names: str) -> None:
    """Raise if rows are of longitudinal and of cross-sectional FreeSurfer runs."""
    is_longitudinal = {bool(name.base) for table in tables for name in table.names}
    if len(is_longitudinal) > 1:
        raise CohortError(
            f"{table_names}: rows of longitudinal ('.long.') and of cross-sectional "
            "FreeSurfer runs; they are never mixed. Keep one kind"
        )


def _other_tracers(feature: str, scans: Sequence[Scan]) -> list[str]:
    """Return which files of scans are of other tracers, at most five."""
    paths = dict.fromkeys(path for scan in scans for path in scan.files)
    tracers = ((path.name, wrong_tracer(path.name, feature)) for path in paths)
    return [f"{name} is of {tracer}" for name, tracer in tracers if tracer][:5]
