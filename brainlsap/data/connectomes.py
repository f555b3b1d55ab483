"""Read one connectome and put its rows and columns in the order of an atlas.

The order comes from names, wherever there are any; from the size where it is that of
a documented order (:mod:`brainlsap.data.layouts`); from nothing else. Tools that write
one triangle are mirrored. Weights are kept as they are, the diagonal included.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.data.atlas_order import ConnectomeFile, in_atlas_order
from brainlsap.data.layouts import known_layouts
from brainlsap.data.matrices import (
    NamedMatrix,
    read_npy_matrix,
    read_text_matrix,
)
from brainlsap.data.matrix_files import (
    alone,
    read_gii_matrix,
    read_gz_matrix,
    read_hdf_matrices,
    read_mat_matrices,
    read_npz_matrices,
)
from brainlsap.data.name_lists import are_counts, read_names
from brainlsap.data.sidecars import find_sidecar
from brainlsap.data.weights import check_weights, make_symmetric
from brainlsap.exceptions import FileFormatError, ParameterError

FORMATS: dict[str, Callable[[str | Path], tuple[NamedMatrix, ...]]] = {
    ".csv": alone(read_text_matrix),
    ".dat": alone(read_text_matrix),
    ".gii": read_gii_matrix,
    ".gz": read_gz_matrix,
    ".h5": read_hdf_matrices,
    ".hdf5": read_hdf_matrices,
    ".mat": read_mat_matrices,
    ".npy": alone(read_npy_matrix),
    ".npz": read_npz_matrices,
    ".tsv": alone(read_text_matrix),
    ".txt": alone(read_text_matrix),
}
# Of several measures in one file, these are taken unless another is asked for.
USUAL_MEASURES = ("sift_radius2_count", "radius2_count", "count")


def read_connectome(
    path: str | Path,
    atlas: Atlas,
    *,
    labels: str | Path | Sequence[str] | None = None,
    measure: str | None = None,
) -> ConnectomeFile:
    """Read a connectome of any tool into the order of an atlas.

    Parameters
    ----------
    path : str or Path
        A matrix as text (`.csv`, `.tsv`, `.txt`, `.dat`, also `.gz`, whatever the
        delimiter), `.npy`, `.npz`, `.mat`, `.h5` or `.gii`.
    atlas : Atlas
        Names the regions and gives their order.
    labels : sequence of str or path, optional
        Name of every row, or a file with one a line, for matrices without names. By
        default a file `labels.txt`, `labels.csv`, `labels_list.txt` or
        `<name>_labels.*` beside the matrix or in one of the two folders above.
    measure : str, optional
        Which matrix to take from a file of several, such as `radius2_meanlength`.

    Returns
    -------
    ConnectomeFile

    Raises
    ------
    FileFormatError
        Where the file is no connectome of this atlas: another format, odd size,
        NaN, infinite or negative weights, or two triangles that differ.
    RegionNameError
        Where a name is unknown or stands twice, or a region is missing.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.data.atlas import load_atlas
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "connectome.csv"
    ...     np.savetxt(path, np.triu(np.ones((84, 84)), 1), "%d", ",")
    ...     connectome = read_connectome(path, load_atlas("desikan82"))
    >>> connectome.matrix.shape, int(connectome.matrix.sum())
    ((82, 82), 6642)
    """
    path = Path(path)
    reader = FORMATS.get(path.suffix.lower())
    if reader is None:
        raise FileFormatError(
            f"{path}: connectomes are read from {', '.join(sorted(FORMATS))} files, "
            f"got {path.suffix or 'a name without suffix'}."
        )
    raw, notes = _choose(reader(path), atlas, measure, path)
    if labels is not None:
        names = read_names(labels) if isinstance(labels, str | Path) else tuple(labels)
        if len(names) != len(raw.values):
            raise FileFormatError(
                f"{path}: {len(raw.values)} rows, but {len(names)} labels were given; "
                "expected one label for each row."
            )
        raw = replace(raw, rows=names, columns=names)
    elif raw.rows is None or are_counts(raw.rows):
        sidecar = find_sidecar(path, len(raw.values))
        if sidecar is not None:
            raw = replace(raw, rows=sidecar.names, columns=sidecar.names)
            notes += (sidecar.note,)
    found = in_atlas_order(raw, atlas, path)
    return ConnectomeFile(found.matrix, notes + found.notes)


def check_connectome(
    matrix: np.ndarray, atlas: Atlas, where: str = "connectome"
) -> ConnectomeFile:
    """Check a matrix that is already in the order of an atlas.

    Parameters
    ----------
    matrix : array of shape (n_rois, n_rois)
        Symmetric, or one triangle.
    atlas : Atlas
        Names the regions and gives their order.
    where : str
        What the message calls the matrix.

    Returns
    -------
    ConnectomeFile

    Raises
    ------
    ParameterError
        Where the shape is another.
    FileFormatError
        Where weights are NaN, infinite or negative, or the triangles differ.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> check_connectome(np.triu(np.ones((82, 82))), load_atlas("desikan82")).notes
    ('only the upper triangle is filled: mirrored',)
    """
    values = np.array(matrix, dtype=np.float64)
    if values.shape != (len(atlas), len(atlas)):
        raise ParameterError(
            f"{where} must have shape {(len(atlas), len(atlas))} for {atlas.name}, "
            f"got {values.shape}."
        )
    check_weights(values, atlas.names, where)
    matrix, note = make_symmetric(values, values, atlas.names, where)
    return ConnectomeFile(matrix, note)


def _choose(
    found: Sequence[NamedMatrix], atlas: Atlas, measure: str | None, path: Path
) -> tuple[NamedMatrix, tuple[str, ...]]:
    """Return the one matrix of a file that was asked for, or that is usual."""
    measures = ", ".join(sorted({raw.measure for raw in found if raw.measure}))
    if measure is not None and measures:
        asked = [raw for raw in found if raw.measure.lower() == measure.lower()]
        if not asked:
            raise FileFormatError(f"{path}: no measure {measure!r}; found {measures}.")
        found = asked
    fitting = [raw for raw in found if _fits(raw, atlas)] or list(found)
    if len(fitting) == 1:
        return fitting[0], ()
    for usual in USUAL_MEASURES:
        chosen = [raw for raw in fitting if raw.measure == usual]
        if len(chosen) == 1:
            rest = sorted({raw.measure for raw in fitting} - {usual})
            note = f"took {usual}; measure= takes another of {', '.join(rest)}"
            return chosen[0], (note,)
    raise FileFormatError(
        f"{path}: {len(fitting)} matrices could be the connectome; choose by measure= "
        f"one of {measures or 'them, and give each a name'}."
    )


def _fits(raw: NamedMatrix, atlas: Atlas) -> bool:
    if raw.rows is None or are_counts(raw.rows):
        return len(raw.values) in known_layouts(atlas)
    known = sum(atlas.find(name) is not None for name in raw.rows)
    return known >= len(atlas) / 2 or all(name.isdecimal() for name in raw.rows)
