"""The text of `?h.aparc*.stats` and `aseg.stats`, as FreeSurfer lays them out.

Values have ten significant digits where FreeSurfer prints four, so that what is read
back is what was simulated.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.data.region_names import split_name
from brainlsap.data.simulated_features import SUBCORTEX_VOLUME

# Annotation of FreeSurfer for each atlas that has one.
ANNOTATIONS = {"destrieux160": "aparc.a2009s", "desikan82": "aparc"}
# Structures of aseg.stats that atlases may lack: number, name, mm3 in an adult.
OTHER_STRUCTURES = (
    (4, "Left-Lateral-Ventricle", 12000),
    (7, "Left-Cerebellum-White-Matter", 15000),
    (8, "Left-Cerebellum-Cortex", 52000),
    (16, "Brain-Stem", 21000),
    (26, "Left-Accumbens-area", 500),
    (28, "Left-VentralDC", 3900),
    (43, "Right-Lateral-Ventricle", 11000),
    (46, "Right-Cerebellum-White-Matter", 15000),
    (47, "Right-Cerebellum-Cortex", 53000),
    (58, "Right-Accumbens-area", 520),
    (60, "Right-VentralDC", 3900),
    (85, "Optic-Chiasm", 180),
)
APARC_COLUMNS = (
    ("StructName", "Structure Name", "NA"),
    ("NumVert", "Number of Vertices", "unitless"),
    ("SurfArea", "Surface Area", "mm^2"),
    ("GrayVol", "Gray Matter Volume", "mm^3"),
    ("ThickAvg", "Average Thickness", "mm"),
    ("ThickStd", "Thickness StdDev", "mm"),
    ("MeanCurv", "Integrated Rectified Mean Curvature", "mm^-1"),
    ("GausCurv", "Integrated Rectified Gaussian Curvature", "mm^-2"),
    ("FoldInd", "Folding Index", "unitless"),
    ("CurvInd", "Intrinsic Curvature Index", "unitless"),
)
ASEG_COLUMNS = (
    ("Index", "Index", "NA"),
    ("SegId", "Segmentation Id", "NA"),
    ("NVoxels", "Number of Voxels", "unitless"),
    ("Volume_mm3", "Volume", "mm^3"),
    ("StructName", "Structure Name", "NA"),
    ("normMean", "Intensity normMean", "MR"),
    ("normStdDev", "Intensity normStdDev", "MR"),
    ("normMin", "Intensity normMin", "MR"),
    ("normMax", "Intensity normMax", "MR"),
    ("normRange", "Intensity normRange", "MR"),
)


def aparc_text(
    atlas: Atlas, hemisphere: str, scan: str, values: Mapping[str, np.ndarray]
) -> str:
    """Return the `?h.aparc*.stats` of one hemisphere.

    Parameters
    ----------
    atlas : Atlas
        The region set.
    hemisphere : {"L", "R"}
        Which side.
    scan : str
        Name of the subject in the header.
    values : mapping of str to array of shape (n_rois,)
        `"thickness"` in mm and `"volume"` in mm3, either or both; what is not given
        is written as 2.5 mm, or as area times thickness.

    Returns
    -------
    str
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
        "#",
        "# generating_program brainlsap (simulated, nobody's data)",
        "# anatomy_type surface",
        f"# subjectname {scan}",
        f"# hemi {side}",
        f"# AnnotationFile ../label/{side}.{ANNOTATIONS[atlas.name]}.annot",
        "# Measure Cortex, NumVert, Number of Vertices, "
        f"{vertices[found].sum()}, unitless",
        *_column_lines(APARC_COLUMNS),
    ]
    names = rows["annot_name"].tolist()
    lines += [
        f"{names[i]:<36s} {vertices[i]:6d} {area[i]:6d} {volume[i]:16.9f} "
        f"{thickness[i]:13.10f}  0.550     0.130     0.028       18     2.0"
        for i in found
    ]
    return "\n".join(lines) + "\n"


def aseg_text(atlas: Atlas, scan: str, volume: np.ndarray | None) -> str:
    """Return an `aseg.stats` with the atlas' structures and some that it lacks.

    Parameters
    ----------
    atlas : Atlas
        The region set.
    scan : str
        Name of the subject in the header.
    volume : array of shape (n_rois,) or None
        In mm3; None writes the same size of each structure for everybody.

    Returns
    -------
    str
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
        "#",
        "# generating_program brainlsap (simulated, nobody's data)",
        "# anatomy_type volume",
        f"# subjectname {scan}",
        "# VoxelVolume_mm3 1",
        *_column_lines(ASEG_COLUMNS, n_rows=len(found)),
    ]
    lines += [
        f"{index:3d} {number:3d} {size:9.0f} {size:18.9f}  {name:<32s}"
        " 70.0000 10.0000 20.0000 110.0000 90.0000"
        for index, (number, (name, size)) in enumerate(sorted(found.items()), start=1)
    ]
    return "\n".join(lines) + "\n"


def _column_lines(
    columns: Sequence[tuple[str, str, str]], n_rows: int | None = None
) -> list[str]:
    lines = [] if n_rows is None else [f"# NRows {n_rows}"]
    lines.append(f"# NTableCols {len(columns)}")
    for i, (head, field, unit) in enumerate(columns, start=1):
        lines.append(f"# TableCol {i:2d} ColHeader {head}")
        lines.append(f"# TableCol {i:2d} FieldName {field}")
        lines.append(f"# TableCol {i:2d} Units     {unit}")
    lines.append("# ColHeaders " + " ".join(head for head, _, _ in columns))
    return lines
