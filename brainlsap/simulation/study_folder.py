"""A simulated cohort as the folder that a study has on disk.

The tree is BIDS-like, and :func:`~brainlsap.data.load_cohort` reads it::

    dataset_description.json  README  participants.tsv  truth.tsv
    sub-0001/
        sub-0001_sessions.tsv
        ses-M00/dwi/sub-0001_ses-M00_atlas-destrieux_connectivity.csv
        ses-M00/pet/sub-0001_ses-M00_trc-18FFDG_desc-suvr_regions.tsv
    derivatives/freesurfer/sub-0001_ses-M00/stats/
        lh.aparc.a2009s.stats  rh.aparc.a2009s.stats  aseg.stats

Connectomes are those of MRtrix's `tck2connectome` (upper triangle, no names, 164 or 84
nodes), thickness and volumes those of FreeSurfer, uptake a table of regions. Only
features that the cohort has are written (beside thickness without volumes, everybody
has the same subcortical sizes); people without sessions have no `ses-` folder.
"""

import json
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from brainlsap.arrays import check_choice
from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import split_name
from brainlsap.data import Cohort, write_tsv
from brainlsap.data.row_order import row_orders
from brainlsap.exceptions import ParameterError
from brainlsap.files import fill_folder
from brainlsap.simulation.cohort import SUBCORTEX_VOLUME

STYLES = ("mrtrix", "named")
FREESURFER_FEATURES = ("thickness", "volume")
# Feature -> folder, end of the file's name, and heading of its values.
REGION_FILES = {"fdg": ("pet", "trc-18FFDG_desc-suvr_regions.tsv", "suvr")}
README = """Simulated data: nobody's brain. Everything was drawn at random by brainlsap.

truth.tsv says in which regions disease was planted (seed), and the change from CN to AD
that is expected in each (effect).
"""


def write_study_folder(
    cohort: Cohort, folder: str | Path, *, style: str = "mrtrix", verbose: bool = False
) -> Path:
    """Write a simulated cohort as a study's folder, whole or not at all.

    The tree is on the page of :mod:`brainlsap.simulation.study_folder`.

    Parameters
    ----------
    cohort : Cohort
        Simulated, which is to say with a `truth`: the files say that nothing in them
        was measured, and nodes that the atlas lacks get invented counts.
    folder : str or Path
        New, or empty.
    style : {"mrtrix", "named"}
        How connectomes are written: MRtrix's numbers without names (destrieux160 and
        desikan82 only), or whole matrices with region names on both sides.
    verbose : bool
        Whether to show a bar on standard error.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ParameterError
        Where `folder` holds something, or the cohort cannot be written in this style
        or is not simulated.
    """
    check_choice("style", style, STYLES)
    if cohort.truth is None:
        raise ParameterError(
            "cohort must be simulated, with a truth: its files say so, and parts of "
            "them are invented. Cohort.save(path) keeps any cohort in one file."
        )
    nodes = mrtrix_nodes(cohort.atlas) if style == "mrtrix" else None
    with fill_folder(folder) as whole:
        _write_dataset(cohort, whole)
        rows = range(cohort.n_scans)
        for row in tqdm(rows, "writing", disable=None if verbose else True):
            _write_scan(cohort, row, whole, nodes)
    return Path(folder)


def _write_dataset(cohort: Cohort, folder: Path) -> None:
    """Write what describes the whole cohort, and the sessions of every person."""
    description = {
        "Name": "Simulated cohort",
        "BIDSVersion": "1.10.0",
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "brainlsap", **cohort.provenance}],
    }
    _write(folder / "dataset_description.json", json.dumps(description, indent=2))
    _write(folder / "README", README)
    write_tsv(cohort.truth, folder / "truth.tsv")
    label = cohort.label_name
    names = {"participant": "participant_id", "session": "session_id", "label": label}
    table = cohort.table.drop(columns="scan").rename(columns=names)
    covariates = [name for name in table if name not in names.values()]
    people = table.groupby("participant_id", sort=False)
    first = people.head(1)[["participant_id", label, *covariates]]
    write_tsv(first, folder / "participants.tsv")
    changing = [name for name in covariates if people[name].nunique().gt(1).any()]
    for person, scans in people:
        place = folder / str(person)
        place.mkdir()
        if (scans["session_id"] != "").all():
            sessions = scans[["session_id", label, *changing]]
            write_tsv(sessions, place / f"{person}_sessions.tsv")


def _write_scan(
    cohort: Cohort, row: int, folder: Path, nodes: np.ndarray | None
) -> None:
    """Write one scan's connectome and features."""
    name, subject, session = cohort.table.loc[row, ["scan", "participant", "session"]]
    place, atlas = folder / subject / session, cohort.atlas
    matrix = cohort.connectomes[row].astype(float)
    if nodes is None:
        lines = _matrix_lines(matrix)
        rows = [",".join(row) for row in zip(atlas.names, lines, strict=True)]
        lines = [",".join(("region", *atlas.names)), *rows]
    else:
        lines = _matrix_lines(mrtrix_matrix(matrix, nodes, name))
    word = atlas.settings.get("file_words", [atlas.name])[0]
    path = place / "dwi" / f"{name}_atlas-{word}_connectivity.csv"
    _write(path, "\n".join(lines))
    values = dict(zip(cohort.feature_names, cohort.features[row].T, strict=True))
    annotation = atlas.settings.get("annotation")
    if annotation:
        measured = {k: values.pop(k) for k in FREESURFER_FEATURES if k in values}
        if measured:
            stats = folder / "derivatives" / "freesurfer" / name / "stats"
            for side, hemisphere in (("lh", "L"), ("rh", "R")):
                path = stats / f"{side}.{annotation}.stats"
                _write(path, aparc_text(atlas, hemisphere, name, measured))
            _write(stats / "aseg.stats", aseg_text(atlas, name, measured.get("volume")))
    for feature, regional in values.items():
        usual = ("anat", f"desc-{feature}_regions.tsv", feature)
        kind, ending, column = REGION_FILES.get(feature, usual)
        cells = ["n/a" if np.isnan(v) else f"{v:.10g}" for v in regional.tolist()]
        table = pd.DataFrame({"region": atlas.names, column: cells})
        (place / kind).mkdir(parents=True, exist_ok=True)
        write_tsv(table, place / kind / f"{name}_{ending}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _matrix_lines(matrix: np.ndarray) -> list[str]:
    # MRtrix writes counts as whole numbers.
    whole = np.array_equal(matrix, np.rint(matrix))
    cells = matrix.astype(np.int64) if whole else matrix
    return [",".join(map(str, row)) for row in cells.tolist()]


def mrtrix_nodes(atlas: Atlas) -> np.ndarray:
    """Return the place in the atlas of every node of MRtrix's matrix.

    -1 for nodes that the atlas leaves out: cerebellum, accumbens in destrieux160.
    """
    names = [order.names for order in row_orders(atlas) if order.tool == "mrtrix"]
    if not names:
        raise ParameterError(
            f"style 'mrtrix' is known for atlases of FreeSurfer only, not for atlas "
            f"{atlas.name!r}. Pass style='named' to write names into the files."
        )
    found = [atlas.find(name) for name in names[0]]
    return np.array([-1 if place is None else place for place in found])


def mrtrix_matrix(matrix: np.ndarray, nodes: np.ndarray, scan: str) -> np.ndarray:
    """Return a connectome as `tck2connectome -zero_diagonal` writes it.

    The upper triangle only. Nodes that the atlas lacks get counts like those of the
    nodes beside them, drawn by the name of the scan.
    """
    known = nodes >= 0
    full = np.zeros((len(nodes), len(nodes)))
    full[np.ix_(known, known)] = matrix[np.ix_(nodes[known], nodes[known])]
    rng = np.random.default_rng(crc32(scan.encode()))
    for node in np.flatnonzero(~known):
        links = rng.poisson(0.3 * full[node - 1]).astype(float)
        links[[node - 1, node]] = rng.poisson(50), 0.0
        full[node], full[:, node] = links, links
    return np.triu(full, 1)


# Structures of aseg.stats that atlases may lack: number, name, mm3 in an adult.
OTHER_STRUCTURES = (
    (4, "Left-Lateral-Ventricle", 12000),
    (7, "Left-Cerebellum-White-Matter", 15000),
    (8, "Left-Cerebellum-Cortex", 52000),
    (16, "Brain-Stem", 21000),
    (26, "Left-Accumbens-area", 500),
    (47, "Right-Cerebellum-Cortex", 53000),
    (58, "Right-Accumbens-area", 520),
)
APARC_COLUMNS = (
    "StructName NumVert SurfArea GrayVol ThickAvg ThickStd MeanCurv GausCurv FoldInd "
    "CurvInd"
)
ASEG_COLUMNS = (
    "Index SegId NVoxels Volume_mm3 StructName normMean normStdDev normMin normMax "
    "normRange"
)


def aparc_text(
    atlas: Atlas, hemisphere: str, scan: str, values: dict[str, np.ndarray]
) -> str:
    """Return the `?h.aparc*.stats` of one hemisphere, as FreeSurfer lays it out.

    Values have ten digits where FreeSurfer prints four, so that what is read back is
    what was simulated. Thickness that is not given is 2.5 mm, volume area times it.
    """
    rows = atlas.regions[
        (atlas.regions["structure"] == "cortex")
        & (atlas.regions["hemisphere"] == hemisphere)
    ]
    thickness = values.get("thickness", np.full(len(atlas), 2.5))[rows.index]
    # Regions of the atlas differ in size; which is which does not matter here.
    area = 600 + 24 * (np.arange(len(rows)) * 7 % 40)
    vertices = area * 3 // 2
    volume = values["volume"][rows.index] if "volume" in values else area * thickness
    # FreeSurfer leaves out a region that a brain does not have.
    found = np.flatnonzero(np.isfinite(thickness) & np.isfinite(volume)).tolist()
    side = {"L": "lh", "R": "rh"}[hemisphere]
    lines = [
        "# Table of FreeSurfer cortical parcellation anatomical statistics",
        "# generating_program brainlsap (simulated, nobody's data)",
        "# anatomy_type surface",
        f"# subjectname {scan}",
        f"# hemi {side}",
        f"# AnnotationFile ../label/{side}.{atlas.settings['annotation']}.annot",
        "# Measure Cortex, NumVert, Number of Vertices, "
        f"{vertices[found].sum()}, unitless",
        f"# ColHeaders {APARC_COLUMNS}",
    ]
    names = rows["annot_name"].tolist()
    lines += [
        f"{names[i]:<36s} {vertices[i]:6d} {area[i]:6d} {volume[i]:16.9f} "
        f"{thickness[i]:13.10f}  0.550     0.130     0.028       18     2.0"
        for i in found
    ]
    return "\n".join(lines)


def aseg_text(atlas: Atlas, scan: str, volume: np.ndarray | None) -> str:
    """Return an `aseg.stats`: the atlas' structures, and some that it lacks.

    Without volumes everybody has the same size of each structure.
    """
    below = atlas.regions[atlas.regions["structure"] == "subcortex"]
    found = {}
    for i in below.index.tolist():
        name = atlas.names[i]
        usual = SUBCORTEX_VOLUME.get(split_name(name)[1], 1000.0)
        size = usual if volume is None else float(volume[i])
        if np.isfinite(size):
            found[int(below["freesurfer_id"][i])] = name, size
    for number, name, size in OTHER_STRUCTURES:
        found.setdefault(number, (name, float(size)))
    lines = [
        "# Title Segmentation Statistics",
        "# generating_program brainlsap (simulated, nobody's data)",
        "# anatomy_type volume",
        f"# subjectname {scan}",
        "# VoxelVolume_mm3 1",
        f"# ColHeaders {ASEG_COLUMNS}",
    ]
    lines += [
        f"{index:3d} {number:3d} {size:9.0f} {size:18.9f}  {name:<32s}"
        " 70.0000 10.0000 20.0000 110.0000 90.0000"
        for index, (number, (name, size)) in enumerate(sorted(found.items()), start=1)
    ]
    return "\n".join(lines)
