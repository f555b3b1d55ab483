"""Write a simulated cohort as a study folder on disk.

The tree is BIDS-like, and :func:`~brainlsap.data.load_cohort` reads it::

    dataset_description.json  README  participants.tsv  truth.tsv
    sub-0001/
        sub-0001_sessions.tsv
        ses-M00/dwi/sub-0001_ses-M00_atlas-destrieux_connectivity.csv
        ses-M00/pet/sub-0001_ses-M00_trc-18FFDG_desc-suvr_regions.tsv
    derivatives/freesurfer/sub-0001_ses-M00/stats/
        lh.aparc.a2009s.stats  rh.aparc.a2009s.stats  aseg.stats

Connectomes are in the form of MRtrix's `tck2connectome` (upper triangle, no names, 164
or 84 nodes; the first line names `labelconvert`'s table), thickness and volumes in
FreeSurfer's form, and uptake is a table of regions. Only the cohort's features are
written; for thickness without volumes, everybody has the same subcortical sizes.
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
    """Write a simulated cohort as a study folder, completely or not at all.

    The tree is described in :mod:`brainlsap.simulation.study_folder`.

    Parameters
    ----------
    cohort : Cohort
        A simulated cohort (one with a `truth`): the files state that nothing in them
        was measured.
    folder : str or Path
        New or empty folder.
    style : {"mrtrix", "named"}, optional
        How connectomes are written: MRtrix's numbers without names (destrieux160 and
        desikan82 only, and the default for them), or full matrices with region names
        on both axes.
    verbose : bool
        Whether to show a progress bar on standard error.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ParameterError
        If `folder` is not empty, or the cohort is not simulated or cannot be written
        in this style.
    """
    styles = ["named"]
    if "mrtrix" in cohort.atlas.settings:
        styles.insert(0, "mrtrix")
    style = style or styles[0]
    check_choice(f"style for {cohort.atlas.name}", style, styles)
    if cohort.truth is None:
        raise ParameterError(
            "cohort must be simulated, with a truth: its files say so. "
            "Cohort.save(path) keeps any cohort in one file."
        )
    nodes = mrtrix_nodes(cohort.atlas) if style == "mrtrix" else None
    with fill_folder(folder) as partial:
        generator = {"Name": "brainlsap", **cohort.provenance}
        describe_dataset(partial, "Simulated cohort", generator)
        _write_text(partial / "README", README)
        write_tsv(cohort.truth, partial / "truth.tsv")
        _write_participants(cohort, partial)
        for row in tqdm(range(cohort.n_scans), "writing", disable=not verbose or None):
            _write_scan(cohort, row, partial, nodes)
    return Path(folder)


def _write_participants(cohort: Cohort, folder: Path) -> None:
    """Write participants.tsv, and the sessions of every participant."""
    label = cohort.label_name
    headers = {"participant": "participant_id", "session": "session_id", "label": label}
    table = cohort.table.drop(columns="scan").rename(columns=headers)
    covariates = [name for name in table if name not in headers.values()]
    participants = table.groupby("participant_id", sort=False)
    first_visits = participants.head(1)[["participant_id", label, *covariates]]
    write_tsv(first_visits, folder / "participants.tsv")
    varying_covariates = [
        name for name in covariates if participants[name].nunique().gt(1).any()
    ]
    for participant, visits in participants:
        sessions = visits[["session_id", label, *varying_covariates]]
        path = folder / str(participant) / f"{participant}_sessions.tsv"
        write_tsv(sessions, path)


def _write_scan(
    cohort: Cohort, row: int, folder: Path, nodes: np.ndarray | None
) -> None:
    """Write one scan's connectome and features."""
    atlas = cohort.atlas
    identity = cohort.table.loc[row, ["scan", "participant", "session"]]
    scan, participant, session = identity
    scan_folder = folder / participant / session
    _write_text(
        scan_folder / "dwi" / f"{scan}_atlas-{_atlas_word(atlas)}_connectivity.csv",
        _connectome_text(cohort.connectomes[row], atlas, nodes),
    )
    values = dict(zip(cohort.feature_names, cohort.features[row].T, strict=True))
    annotation = atlas.settings.get("annotation")
    stats_features = {"thickness", "volume"} & {*values} if annotation else set()
    stats_values = {feature: values.pop(feature) for feature in stats_features}
    if stats_values:
        stats = folder / "derivatives" / "freesurfer" / scan / "stats"
        for hemisphere in "LR":
            path = stats / f"{hemisphere.lower()}h.{annotation}.stats"
            _write_text(path, aparc_text(atlas, hemisphere, scan, stats_values))
        volume = stats_values.get("volume")
        _write_text(stats / "aseg.stats", aseg_text(atlas, scan, volume))
    for feature, regional_values in values.items():
        path = scan_folder / "anat" / f"{scan}_desc-{feature}_regions.tsv"
        column = feature
        if feature == "fdg":
            path = scan_folder / "pet" / f"{scan}_trc-18FFDG_desc-suvr_regions.tsv"
            column = "suvr"
        cells = pd.Series(regional_values).map("{:.10g}".format, na_action="ignore")
        write_tsv(pd.DataFrame({"region": atlas.names, column: cells}), path)


def _atlas_word(atlas: Atlas) -> str:
    """Return the value of `atlas-` in file names."""
    return atlas.settings.get("file_words", [atlas.name])[0]


def _connectome_text(
    connectome: np.ndarray, atlas: Atlas, nodes: np.ndarray | None
) -> str:
    """Return a connectome as CSV: MRtrix's matrix of nodes, or with region names."""
    # Counts become whole numbers, as MRtrix writes them.
    if nodes is None:
        table = pd.DataFrame(connectome, atlas.names, atlas.names).convert_dtypes()
        return table.to_csv(index_label="region")
    matrix = mrtrix_matrix(connectome.astype(float), nodes)
    table = pd.DataFrame(matrix).convert_dtypes()
    # Numbers alone do not tell the order of rows.
    header = f"# nodes of {atlas.settings['mrtrix']} (labelconvert), simulated\n"
    return header + table.to_csv(header=False, index=False)


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def mrtrix_nodes(atlas: Atlas) -> np.ndarray:
    """Return the position in the atlas of every node of MRtrix's matrix.

    -1 for nodes that the atlas leaves out: cerebellum, and accumbens in destrieux160.
    """
    order = next(order for order in row_orders(atlas) if order.tool == "mrtrix")
    positions = [atlas.find(name) for name in order.names]
    return np.array([-1 if position is None else position for position in positions])


def mrtrix_matrix(matrix: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return a connectome as `tck2connectome -zero_diagonal` writes it.

    It has the upper triangle only. Nodes that the atlas lacks have no connections.
    """
    with_empty_node = np.pad(matrix, (0, 1))  # index -1 is a node without connections
    return np.triu(with_empty_node[np.ix_(nodes, nodes)], 1)


_ASEG_HEADER = """# generating_program brainlsap (simulated, nobody's data)
# subjectname {scan}
# ColHeaders Index SegId NVoxels Volume_mm3 StructName normMean normStdDev normMin \
normMax normRange
"""
_APARC_HEADER = """# generating_program brainlsap (simulated, nobody's data)
# subjectname {scan}
# hemi {side}
# Measure Cortex, NumVert, Number of Vertices, {n_vertices}, unitless
# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg ThickStd MeanCurv GausCurv \
FoldInd CurvInd
"""


def aparc_text(
    atlas: Atlas, hemisphere: str, scan: str, values: dict[str, np.ndarray]
) -> str:
    """Return the `?h.aparc*.stats` of one hemisphere in FreeSurfer's layout.

    Values have ten digits, unlike FreeSurfer's four, so that reading returns the
    simulated values. By default thickness is 2.5 mm, and volume is area times
    thickness.
    """
    is_on_side = atlas.regions["hemisphere"].to_numpy() == hemisphere
    rows = np.flatnonzero(atlas.cortex & is_on_side)
    thickness = values.get("thickness", np.full(len(atlas), 2.5))[rows]
    # Areas in mm^2 are arbitrary, but differ between regions.
    area = 600 + 24 * (np.arange(len(rows)) * 7 % 40)
    n_vertices = area * 3 // 2
    volume = values["volume"][rows] if "volume" in values else area * thickness
    # FreeSurfer leaves out a region that a brain does not have.
    is_measured = np.isfinite(thickness) & np.isfinite(volume)
    names = atlas.regions["annot_name"].to_numpy()[rows]
    header = _APARC_HEADER.format(
        scan=scan,
        side=f"{hemisphere.lower()}h",
        n_vertices=n_vertices[is_measured].sum(),
    )
    return header + "\n".join(
        f"{names[i]:<36s} {n_vertices[i]:6d} {area[i]:6d} {volume[i]:16.9f} "
        f"{thickness[i]:13.10f}  0.550     0.130     0.028       18     2.0"
        for i in np.flatnonzero(is_measured).tolist()
    )


def aseg_text(atlas: Atlas, scan: str, volume: np.ndarray | None) -> str:
    """Return an `aseg.stats`; without volumes everybody has the same sizes."""
    if volume is None:
        cores = [split_name(name)[1] for name in atlas.names]
        volume = np.array([VOLUME.get(core, 1000.0) for core in cores])
    labels = atlas.regions["freesurfer_id"].to_numpy()
    rows = np.flatnonzero(~atlas.cortex & np.isfinite(volume))
    rows = rows[np.argsort(labels[rows])]
    return _ASEG_HEADER.format(scan=scan) + "\n".join(
        f"{line_number:3d} {labels[row]:3d} {volume[row]:9.0f} {volume[row]:18.9f}  "
        f"{atlas.names[row]:<32s} 70.0000 10.0000 20.0000 110.0000 90.0000"
        for line_number, row in enumerate(rows, start=1)
    )
