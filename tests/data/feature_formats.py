"""Small writers of the layouts in which tools write regional values."""

from collections.abc import Callable
from typing import NamedTuple

import nibabel as nib
import numpy as np

OTHERS = {"Brain-Stem": 9.5, "Left-Cerebellum-Cortex": 2.0}
OTHERS |= {"Right-Cerebellum-Cortex": 6.0, "Pons": 5.0, "Vermis": 4.5}
OTHERS |= {"Left-Cerebellum-White-Matter": 3.0, "Right-Cerebellum-White-Matter": 3.0}


def write_gtm_stats(path, names, values, n_columns=8):
    """PETSurfer: no header; counted rows of segment, tissue, voxels and uptake."""
    rows = []
    segments = {**dict(zip(names, values, strict=True)), **OTHERS}
    for i, (name, value) in enumerate(segments.items(), start=1):
        voxels = 100 if name != "Right-Cerebellum-Cortex" else 300
        cells = [i, 1000 + i, name, "cortex", voxels, 0.5, f"{value:.6f}", 0.01]
        rows.append("  ".join(map(str, cells[:n_columns])))
    path.write_text("\n".join(rows) + "\n")
    return path


def write_time_series(path, names, values, heads=("frame_start", "frame_end")):
    """PETPrep and petprep_extract_tacs: frames of 10, 10, 20 and 20 s.

    Activity is half of `values` in the second frame and one and a half times in the
    third; the average over both is 7/6 of `values`.
    """
    lines = ["\t".join([*heads, *names])]
    frames = [(0, 10, 0), (10, 20, 0.5), (20, 40, 1.5), (40, 60, 9)]
    for start, end, factor in frames:
        cells = [f"{value * factor:.9g}" for value in values]
        lines.append("\t".join([str(start), str(end), *cells]))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_clinica(path, names, values):
    rows = [f"{name}\t{value:.9g}" for name, value in zip(names, values, strict=True)]
    path.write_text("\n".join(["label_name\tlabel_value", *rows]) + "\n")
    return path


def write_pet_surface(path, atlas, values):
    """Clinica pet-surface: index, interleaved sides, medial wall, no subcortex."""
    names = ["Unknown", *atlas.regions["annot_name"][:74], "Medial_wall"]
    lines = ["index\tlabel_name\tmean_scalar"]
    for name in names:
        for side in ("lh", "rh"):
            place = atlas.find(f"{side}_{name}")
            value = 0.7 if place is None else values[place]
            lines.append(f"{len(lines) - 1}\t{name}_{side}\t{value:.9g}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_vertices(folder, atlas, measure="thickness"):
    """A FreeSurfer subject with values at vertices; return the plain means."""
    rng = np.random.default_rng(0)
    means = np.full(len(atlas), np.nan)
    (folder / "surf").mkdir(parents=True, exist_ok=True)
    (folder / "label").mkdir(exist_ok=True)
    for side, hemisphere in (("lh", "L"), ("rh", "R")):
        rows = atlas.cortex & (atlas.regions["hemisphere"] == hemisphere)
        names = ["Unknown", *atlas.regions.loc[rows, "annot_name"], "Medial_wall"]
        labels = rng.integers(0, len(names), 40 * len(names))
        values = rng.gamma(9, 0.3, len(labels)).astype(np.float32)
        nib.freesurfer.write_morph_data(folder / f"surf/{side}.{measure}", values)
        table = np.zeros((len(names), 5), dtype=int)
        table[:, :3] = 1 + rng.permutation(250)[:, None][: len(names)]
        path = folder / f"label/{side}.{atlas.settings['annotation']}.annot"
        nib.freesurfer.write_annot(path, labels, table, names, fill_ctab=True)
        for i, place in enumerate(np.flatnonzero(rows), start=1):
            means[place] = values[labels == i].astype(float).mean()
    return means


def write_stats(folder, atlas, values):
    """A FreeSurfer subject: thickness is the value, volume 1000 times as much."""
    stats = folder / "stats"
    stats.mkdir(parents=True, exist_ok=True)
    regions = atlas.regions
    for side, hemisphere in (("lh", "L"), ("rh", "R")):
        rows = np.flatnonzero(atlas.cortex & (regions["hemisphere"] == hemisphere))
        lines = [
            f"# hemi {side}",
            f"# Measure Cortex, NumVert, Number of Vertices, {len(rows)}00, unitless",
            "# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg ThickStd",
        ]
        for i in rows:
            cells = (100, 70 + i, f"{1000 * values[i]:.4f}", f"{values[i]:.4f}", 0.5)
            lines.append(
                f"{regions['annot_name'][i]:<36s} {'  '.join(map(str, cells))}"
            )
        path = stats / f"{side}.{atlas.settings['annotation']}.stats"
        path.write_text("\n".join(lines) + "\n")
    below = np.flatnonzero(~atlas.cortex)
    structures = {atlas.names[i]: 1000 * values[i] for i in below}
    structures |= {"Left-Lateral-Ventricle": 9e3, "Left-Cerebellum-Cortex": 5e4}
    lines = [
        "# Measure EstimatedTotalIntraCranialVol, eTIV, Estimated, 1500000.0, mm^3",
        f"# NRows {len(structures)}",
        "# ColHeaders Index SegId NVoxels Volume_mm3 StructName normMean",
    ]
    for i, (name, volume) in enumerate(structures.items(), start=1):
        lines.append(f"{i} {i + 9} 99 {volume:.4f} {name} 70.0")
    (stats / "aseg.stats").write_text("\n".join(lines) + "\n")
    return folder


class Row(NamedTuple):
    """The value of one region of one scan, and the age in its row."""

    region: str
    value: object
    age: int


def _write_lines(path, rows):
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


def _scan_path(folder, scan, name=""):
    path = folder / scan / "pet" / (name or f"{scan}_trc-18FFDG_regions.tsv")
    path.parent.mkdir(parents=True)
    return path


def write_region_rows(folder, rows_by_scan):
    for scan, rows in rows_by_scan.items():
        cells = [(row.region, row.value) for row in rows]
        path = _scan_path(folder, scan, f"{scan}_trc-18FFDG_statistics.tsv")
        _write_lines(path, [("region", "suvr"), *cells])


def write_single_rows(folder, rows_by_scan):
    for scan, rows in rows_by_scan.items():
        heads = [row.region for row in rows]
        _write_lines(_scan_path(folder, scan), [heads, [row.value for row in rows]])


def write_all_gtm_stats(folder, rows_by_scan):
    for scan, rows in rows_by_scan.items():
        lines = [
            (i, 1000 + i, row.region, "cortex", 100, 0.5, row.value)
            for i, row in enumerate(rows, start=1)
        ]
        _write_lines(_scan_path(folder, scan, "gtm.stats.dat"), lines)


def write_all_time_series(folder, rows_by_scan):
    """One frame, and the pons with the value 1 as the reference."""
    for scan, rows in rows_by_scan.items():
        heads = ["frame_start", "frame_end", "Pons", *(row.region for row in rows)]
        cells = [0, 10, 1, *(row.value for row in rows)]
        _write_lines(_scan_path(folder, scan, f"{scan}_tacs.tsv"), [heads, cells])


def write_wide_table(folder, rows_by_scan):
    """Heads of the scan with most regions; a lost region is a lost cell."""
    longest = max(rows_by_scan.values(), key=len)
    lines = [("participant_id", *(row.region for row in longest), "age")]
    for scan, rows in rows_by_scan.items():
        value_of_region = {row.region: row.value for row in rows}
        regions = {*value_of_region}
        cells = [
            value_of_region.pop(region, value)
            for region, value, _ in longest
            if region in regions
        ]
        lines.append((scan, *cells, rows[0].age))
    _write_lines(folder / "fdg.tsv", lines)


def write_long_table(folder, rows_by_scan):
    lines = [("participant_id", "age", "region", "fdg")]
    for scan, rows in rows_by_scan.items():
        lines += [(scan, row.age, row.region, row.value) for row in rows]
    _write_lines(folder / "fdg.tsv", lines)


class Layout(NamedTuple):
    """A layout of tables of regions: how tests write it."""

    write: Callable[..., None]
    """write(folder, {scan: list of Row}); a test gives regions that no atlas has."""
    docs_phrase: str
    """Words of its own row of the table in docs/features_and_atlases.rst.

    Patterns of files in these words must match the name of the file that is written.
    """
    reference: str | None = None
    """An option of `load_cohort`."""
    scan_table_layout: str | None = None
    """The key in `SCAN_TABLE_LAYOUTS`, if a file has many scans."""
    has_facts: bool = False
    """Whether a scan has several rows, and each of them its age."""


# Every layout that the package reads; each is tested with the same faults.
LAYOUTS = {
    "region rows": Layout(write_region_rows, "``*_statistics.tsv``"),
    "single rows": Layout(
        write_single_rows, "with the region's name or its label in the atlas"
    ),
    "PETSurfer": Layout(write_all_gtm_stats, "``gtm.stats.dat``"),
    "time series": Layout(write_all_time_series, "``*_tacs.tsv``", "pons"),
    "wide": Layout(
        write_wide_table,
        "a row for each scan, and a column for each region",
        scan_table_layout="one row per scan and one column per region",
    ),
    "long": Layout(
        write_long_table,
        "one row for each region of each scan",
        scan_table_layout="one row per scan and region",
        has_facts=True,
    ),
}
