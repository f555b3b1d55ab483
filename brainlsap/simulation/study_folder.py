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
    known_styles = ["named"]
    if "mrtrix" in cohort.atlas.settings:
        known_styles.insert(0, "mrtrix")
    style = style or known_styles[0]
    check_choice(f"style for {cohort.atlas.name}", style, known_styles)
    if cohort.truth is None:
        raise ParameterError(
            "cohort must be simulated, with a truth: its files say so. "
            "Cohort.save(path) keeps any cohort in one file."
        )
    node_rows = mrtrix_nodes(cohort.atlas) if style == "mrtrix" else None
    with fill_folder(folder) as partial_folder:
        generator = {"Name": "brainlsap", **cohort.provenance}
        describe_dataset(partial_folder, "Simulated cohort", generator)
        _write_text(partial_folder / "README", README)
        write_tsv(cohort.truth, partial_folder / "truth.tsv")
        _write_participants(cohort, partial_folder)
        for scan_row in tqdm(
            range(cohort.n_scans), "writing", disable=not verbose or None
        ):
            _write_scan(cohort, scan_row, partial_folder, node_rows)
    return Path(folder)


def _write_participants(cohort: Cohort, folder: Path) -> None:
    """Write participants.tsv, and the sessions of every participant."""
    label_column = cohort.label_name
    column_headers = {
        "participant": "participant_id",
        "session": "session_id",
        "label": label_column,
    }
    people_table = cohort.table.drop(columns="scan").rename(columns=column_headers)
    covariate_columns = [
        column_name
        for column_name in people_table
        if column_name not in column_headers.values()
    ]
    participants = people_table.groupby("participant_id", sort=False)
    first_visits = participants.head(1)[
        ["participant_id", label_column, *covariate_columns]
    ]
    write_tsv(first_visits, folder / "participants.tsv")
    varying_covariates = [
        column_name
        for column_name in covariate_columns
        if participants[column_name].nunique().gt(1).any()
    ]
    for participant, person_visits in participants:
        session_table = person_visits[["session_id", label_column, *varying_covariates]]
        sessions_path = folder / str(participant) / f"{participant}_sessions.tsv"
        write_tsv(session_table, sessions_path)


def _write_scan(
    cohort: Cohort, scan_row: int, folder: Path, node_rows: np.ndarray | None
) -> None:
    """Write one scan's connectome and features."""
    atlas = cohort.atlas
    scan_keys = cohort.table.loc[scan_row, ["scan", "participant", "session"]]
    scan, participant, session = scan_keys
    scan_folder = folder / participant / session
    _write_text(
        scan_folder / "dwi" / f"{scan}_atlas-{_atlas_word(atlas)}_connectivity.csv",
        _connectome_text(cohort.connectomes[scan_row], atlas, node_rows),
    )
    values_of_feature = dict(
        zip(cohort.feature_names, cohort.features[scan_row].T, strict=True)
    )
    annotation_name = atlas.settings.get("annotation")
    stats_features = (
        {"thickness", "volume"} & {*values_of_feature} if annotation_name else set()
    )
    stats_values = {
        feature_name: values_of_feature.pop(feature_name)
        for feature_name in stats_features
    }
    if stats_values:
        stats_folder = folder / "derivatives" / "freesurfer" / scan / "stats"
        for hemisphere in "LR":
            stats_path = stats_folder / f"{hemisphere.lower()}h.{annotation_name}.stats"
            _write_text(stats_path, aparc_text(atlas, hemisphere, scan, stats_values))
        region_volumes = stats_values.get("volume")
        _write_text(stats_folder / "aseg.stats", aseg_text(atlas, scan, region_volumes))
    for feature_name, regional_values in values_of_feature.items():
        stats_path = scan_folder / "anat" / f"{scan}_desc-{feature_name}_regions.tsv"
        column_name = feature_name
        if feature_name == "fdg":
            stats_path = (
                scan_folder / "pet" / f"{scan}_trc-18FFDG_desc-suvr_regions.tsv"
            )
            column_name = "suvr"
        number_texts = pd.Series(regional_values).map(
            "{:.10g}".format, na_action="ignore"
        )
        write_tsv(
            pd.DataFrame({"region": atlas.names, column_name: number_texts}), stats_path
        )


def _atlas_word(atlas: Atlas) -> str:
    """Return the value of `atlas-` in file names."""
    return atlas.settings.get("file_words", [atlas.name])[0]


def _connectome_text(
    connectome: np.ndarray, atlas: Atlas, node_rows: np.ndarray | None
) -> str:
    """Return a connectome as CSV: MRtrix's matrix of nodes, or with region names."""
    # Counts become whole numbers, as MRtrix writes them.
    if node_rows is None:
        connectome_table = pd.DataFrame(
            connectome, atlas.names, atlas.names
        ).convert_dtypes()
        return connectome_table.to_csv(index_label="region")
    node_matrix = mrtrix_matrix(connectome.astype(float), node_rows)
    connectome_table = pd.DataFrame(node_matrix).convert_dtypes()
    # Numbers alone do not tell the order of rows.
    header = f"# nodes of {atlas.settings['mrtrix']} (labelconvert), simulated\n"
    return header + connectome_table.to_csv(header=False, index=False)


def _write_text(file_path: Path, file_text: str) -> None:
    file_path.parent.mkdir(parents=True, exist_ok=True)
    file_path.write_text(file_text.rstrip("\n") + "\n", encoding="utf-8")


def mrtrix_nodes(atlas: Atlas) -> np.ndarray:
    """Return the position in the atlas of every node of MRtrix's matrix.

    -1 for nodes that the atlas leaves out: cerebellum, and accumbens in destrieux160.
    """
    row_order = next(
        row_order for row_order in row_orders(atlas) if row_order.tool == "mrtrix"
    )
    atlas_positions = [atlas.find(region_name) for region_name in row_order.names]
    return np.array(
        [
            -1 if atlas_position is None else atlas_position
            for atlas_position in atlas_positions
        ]
    )


def mrtrix_matrix(connectome: np.ndarray, node_rows: np.ndarray) -> np.ndarray:
    """Return a connectome as `tck2connectome -zero_diagonal` writes it.

    It has the upper triangle only. Nodes that the atlas lacks have no connections.
    """
    # Index -1 is the added node, which has no connections.
    with_empty_node = np.pad(connectome, (0, 1))
    return np.triu(with_empty_node[np.ix_(node_rows, node_rows)], 1)


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
    atlas: Atlas, hemisphere: str, scan: str, values_of_feature: dict[str, np.ndarray]
) -> str:
    """Return the `?h.aparc*.stats` of one hemisphere in FreeSurfer's layout.

    Values have ten digits, unlike FreeSurfer's four, so that reading returns the
    simulated values. By default thickness is 2.5 mm, and volume is area times
    thickness.
    """
    is_on_side = atlas.regions["hemisphere"].to_numpy() == hemisphere
    region_rows = np.flatnonzero(atlas.cortex & is_on_side)
    mean_thickness = values_of_feature.get("thickness", np.full(len(atlas), 2.5))[
        region_rows
    ]
    # Areas in mm^2 are arbitrary, but differ between regions.
    surface_areas = 600 + 24 * (np.arange(len(region_rows)) * 7 % 40)
    n_vertices = surface_areas * 3 // 2
    gray_volumes = (
        values_of_feature["volume"][region_rows]
        if "volume" in values_of_feature
        else surface_areas * mean_thickness
    )
    # FreeSurfer leaves out a region that a brain does not have.
    is_measured = np.isfinite(mean_thickness) & np.isfinite(gray_volumes)
    annot_names = atlas.regions["annot_name"].to_numpy()[region_rows]
    header = _APARC_HEADER.format(
        scan=scan,
        side=f"{hemisphere.lower()}h",
        n_vertices=n_vertices[is_measured].sum(),
    )
    return header + "\n".join(
        f"{annot_names[i]:<36s} {n_vertices[i]:6d} {surface_areas[i]:6d} "
        f"{gray_volumes[i]:16.9f} {mean_thickness[i]:13.10f}  0.550     0.130     "
        "0.028       18     2.0"
        for i in np.flatnonzero(is_measured).tolist()
    )


def aseg_text(atlas: Atlas, scan: str, region_volumes: np.ndarray | None) -> str:
    """Return an `aseg.stats`; without volumes everybody has the same sizes."""
    if region_volumes is None:
        core_names = [split_name(region_name)[1] for region_name in atlas.names]
        region_volumes = np.array(
            [VOLUME.get(core_name, 1000.0) for core_name in core_names]
        )
    labels = atlas.regions["freesurfer_id"].to_numpy()
    region_rows = np.flatnonzero(~atlas.cortex & np.isfinite(region_volumes))
    region_rows = region_rows[np.argsort(labels[region_rows])]
    return _ASEG_HEADER.format(scan=scan) + "\n".join(
        f"{line_number:3d} {labels[region_row]:3d} {region_volumes[region_row]:9.0f} "
        f"{region_volumes[region_row]:18.9f}  {atlas.names[region_row]:<32s} 70.0000 "
        "10.0000 20.0000 110.0000 90.0000"
        for line_number, region_row in enumerate(region_rows, start=1)
    )
