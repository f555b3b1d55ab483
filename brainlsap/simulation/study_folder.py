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
nodes; a first line names `labelconvert`'s table), thickness and volumes those of
FreeSurfer, uptake a table of regions. Only features that the cohort has are written
(beside thickness without volumes, everybody has the same subcortical sizes).
"""

from pathlib import Path

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import split_name
from brainlsap.data import Cohort, write_tsv
from brainlsap.data.row_order import row_orders
from brainlsap.data.tables import describe_dataset
from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.files import fill_folder
from brainlsap.simulation.cohort import VOLUME

README = """Simulated data: nobody's brain. Everything was drawn at random by brainlsap.

truth.tsv says in which regions disease was planted (seed), and the change from CN to AD
that is expected in each (effect).
"""


def write_study_folder(
    cohort: Cohort, folder: str | Path, *, style: str = "", verbose: bool = False
) -> Path:
    """Write a simulated cohort as a study's folder, whole or not at all.

    The tree is on the page of :mod:`brainlsap.simulation.study_folder`.

    Parameters
    ----------
    cohort : Cohort
        Simulated, which is to say with a `truth`: the files say that nothing in them
        was measured.
    folder : str or Path
        New, or empty.
    style : {"mrtrix", "named"}, optional
        How connectomes are written: MRtrix's numbers without names (destrieux160 and
        desikan82 only, and the default for them), or whole matrices with region names
        on both sides.
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
    styles = ["mrtrix"] * ("mrtrix" in cohort.atlas.settings) + ["named"]
    style = style or styles[0]
    check_choice(f"style for {cohort.atlas.name}", style, styles)
    if cohort.truth is None:
        raise ParameterError(
            "cohort must be simulated, with a truth: its files say so. "
            "Cohort.save(path) keeps any cohort in one file."
        )
    nodes = mrtrix_nodes(cohort.atlas) if style == "mrtrix" else None
    label = cohort.label_name
    names = {"participant": "participant_id", "session": "session_id", "label": label}
    table = cohort.table.drop(columns="scan").rename(columns=names)
    covariates = [name for name in table if name not in names.values()]
    people = table.groupby("participant_id", sort=False)
    first = people.head(1)[["participant_id", label, *covariates]]
    changing = [name for name in covariates if people[name].nunique().gt(1).any()]
    with fill_folder(folder) as whole:
        by = {"Name": "brainlsap", **cohort.provenance}
        describe_dataset(whole, "Simulated cohort", by)
        _write(whole / "README", README)
        write_tsv(cohort.truth, whole / "truth.tsv")
        write_tsv(first, whole / "participants.tsv")
        for person, scans in people:
            sessions = scans[["session_id", label, *changing]]
            write_tsv(sessions, whole / str(person) / f"{person}_sessions.tsv")
        for row in tqdm(range(cohort.n_scans), "writing", disable=not verbose or None):
            _write_scan(cohort, row, whole, nodes)
    return Path(folder)


def _write_scan(
    cohort: Cohort, row: int, folder: Path, nodes: np.ndarray | None
) -> None:
    """Write one scan's connectome and features."""
    name, subject, session = cohort.table.loc[row, ["scan", "participant", "session"]]
    own, atlas = folder / subject / session, cohort.atlas
    table = pd.DataFrame(cohort.connectomes[row], atlas.names, atlas.names)
    if nodes is not None:
        table = pd.DataFrame(mrtrix_matrix(table.to_numpy(float), nodes))
    table = table.convert_dtypes()  # MRtrix writes counts as whole numbers
    is_named, word = nodes is None, atlas.settings.get("file_words", [atlas.name])[0]
    text = table.to_csv(header=is_named, index=is_named, index_label="region")
    if nodes is not None:  # numbers alone do not say whose order they have
        text = (
            f"# nodes of {atlas.settings['mrtrix']} (labelconvert), simulated\n{text}"
        )
    _write(own / "dwi" / f"{name}_atlas-{word}_connectivity.csv", text)
    values = dict(zip(cohort.feature_names, cohort.features[row].T, strict=True))
    annotation = atlas.settings.get("annotation")
    of_freesurfer = {"thickness", "volume"} if annotation else set()
    measured = {feature: values.pop(feature) for feature in of_freesurfer & {*values}}
    if measured:
        stats = folder / "derivatives" / "freesurfer" / name / "stats"
        for hemisphere in "LR":
            path = stats / f"{hemisphere.lower()}h.{annotation}.stats"
            _write(path, aparc_text(atlas, hemisphere, name, measured))
        _write(stats / "aseg.stats", aseg_text(atlas, name, measured.get("volume")))
    for feature, regional in values.items():
        path, column = own / "anat" / f"{name}_desc-{feature}_regions.tsv", feature
        if feature == "fdg":
            path = own / "pet" / f"{name}_trc-18FFDG_desc-suvr_regions.tsv"
            column = "suvr"
        cells = pd.Series(regional).map("{:.10g}".format, na_action="ignore")
        write_tsv(pd.DataFrame({"region": atlas.names, column: cells}), path)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def mrtrix_nodes(atlas: Atlas) -> np.ndarray:
    """Return the place in the atlas of every node of MRtrix's matrix.

    -1 for nodes that the atlas leaves out: cerebellum, accumbens in destrieux160.
    """
    names = next(one.names for one in row_orders(atlas) if one.tool == "mrtrix")
    found = [atlas.find(name) for name in names]
    return np.array([-1 if place is None else place for place in found])


def mrtrix_matrix(matrix: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return a connectome as `tck2connectome -zero_diagonal` writes it.

    The upper triangle only. Nodes that the atlas lacks have no connections.
    """
    padded = np.pad(matrix, (0, 1))  # the last one, -1, is of no region
    return np.triu(padded[np.ix_(nodes, nodes)], 1)


_HEAD = """# generating_program brainlsap (simulated, nobody's data)
# subjectname {scan}
# ColHeaders Index SegId NVoxels Volume_mm3 StructName normMean normStdDev normMin \
normMax normRange
"""
_SIDE_HEAD = """# generating_program brainlsap (simulated, nobody's data)
# subjectname {scan}
# hemi {side}
# Measure Cortex, NumVert, Number of Vertices, {n_vertices}, unitless
# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg ThickStd MeanCurv GausCurv \
FoldInd CurvInd
"""


def aparc_text(
    atlas: Atlas, hemisphere: str, scan: str, values: dict[str, np.ndarray]
) -> str:
    """Return the `?h.aparc*.stats` of one hemisphere, as FreeSurfer lays it out.

    Values have ten digits where FreeSurfer prints four, so that what is read back is
    what was simulated. Thickness that is not given is 2.5 mm, volume area times it.
    """
    is_here = atlas.regions["hemisphere"].to_numpy() == hemisphere
    rows = np.flatnonzero(atlas.cortex & is_here)
    thickness = values.get("thickness", np.full(len(atlas), 2.5))[rows]
    # Regions of the atlas differ in size; which is which does not matter here.
    area = 600 + 24 * (np.arange(len(rows)) * 7 % 40)
    vertices = area * 3 // 2
    volume = values["volume"][rows] if "volume" in values else area * thickness
    # FreeSurfer leaves out a region that a brain does not have.
    found = np.flatnonzero(np.isfinite(thickness) & np.isfinite(volume)).tolist()
    names, side = atlas.regions["annot_name"].to_numpy()[rows], f"{hemisphere.lower()}h"
    n_vertices = vertices[found].sum()
    return _SIDE_HEAD.format(scan=scan, side=side, n_vertices=n_vertices) + "\n".join(
        f"{names[i]:<36s} {vertices[i]:6d} {area[i]:6d} {volume[i]:16.9f} "
        f"{thickness[i]:13.10f}  0.550     0.130     0.028       18     2.0"
        for i in found
    )


def aseg_text(atlas: Atlas, scan: str, volume: np.ndarray | None) -> str:
    """Return an `aseg.stats`; without volumes everybody has the same sizes."""
    if volume is None:
        volume = np.array([VOLUME.get(split_name(n)[1], 1000.0) for n in atlas.names])
    numbers = atlas.regions["freesurfer_id"].to_numpy()
    found = np.flatnonzero(~atlas.cortex & np.isfinite(volume))
    found = found[np.argsort(numbers[found])]
    return _HEAD.format(scan=scan) + "\n".join(
        f"{place:3d} {numbers[i]:3d} {volume[i]:9.0f} {volume[i]:18.9f}  "
        f"{atlas.names[i]:<32s} 70.0000 10.0000 20.0000 110.0000 90.0000"
        for place, i in enumerate(found, start=1)
    )
