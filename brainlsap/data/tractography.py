"""From a tractogram and a parcellation to a connectome.

Every streamline is given to two nodes by its ends, and adds to the connection between
them. Rules and weights are those of MRtrix 3.0.3's `tck2connectome`, cell for cell. The
tractogram is read in blocks, so it may be larger than memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.atlas_order import ConnectomeFile
from brainlsap.data.endpoint_assignment import assign_ends
from brainlsap.data.label_images import NODES_BESIDE, read_label_image
from brainlsap.data.node_images import NodeImage
from brainlsap.data.streamline_files import read_streamlines
from brainlsap.data.streamline_sums import WEIGHTS, Sums, sum_blocks
from brainlsap.data.streamline_weights import read_streamline_weights
from brainlsap.exceptions import FileFormatError

ASSIGNMENTS = ("end_voxels", "radial", "reverse_search")
_ALIASES = {
    "radial_search": "radial",
    "invlength": "inverse_length",
    "invnodevol": "inverse_node_volume",
}


@dataclass(frozen=True, eq=False)
class BuiltConnectome(ConnectomeFile):
    """A connectome made from streamlines, and what became of them.

    Parameters
    ----------
    matrix : array of shape (n_rois, n_rois)
        Symmetric, in atlas order; the diagonal holds streamlines within a region.
    notes : tuple of str
        What the labels were taken for, and what was dropped.
    names : tuple of str
        Of the regions.
    n_streamlines : int
        In the tractogram.
    n_kept : int
        Both ends lie in regions of the atlas.
    n_unassigned : int
        An end at least lies in no node.
    n_outside : int
        Both ends lie in nodes, but one is left out by the atlas (cerebellum,
        accumbens).
    parameters : dict
        How it was made.

    Examples
    --------
    See :func:`brainlsap.data.build_connectome`.
    """

    names: tuple[str, ...] = ()
    n_streamlines: int = 0
    n_kept: int = 0
    n_unassigned: int = 0
    n_outside: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def n_dropped(self) -> int:
        """Streamlines that are not in the matrix."""
        return self.n_streamlines - self.n_kept

    def to_frame(self) -> pd.DataFrame:
        """Return the matrix with the regions' names on both sides."""
        return pd.DataFrame(self.matrix, index=self.names, columns=self.names)


def build_connectome(
    tractogram: str | Path,
    parcellation: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    assignment: str = "radial",
    radius: float = 4.0,
    weight: str | Path | np.ndarray = "count",
    *,
    streamline_weights: str | Path | np.ndarray | None = None,
    labels: str | Path | Mapping[int, str] | Sequence[str] | None = None,
    n_threads: int = 2,
) -> BuiltConnectome:
    r"""Build a connectome from streamlines and a parcellation, by name.

    Parameters
    ----------
    tractogram : str or Path
        `.tck`, `.trk`, `.trk.gz` or `.trx`, in the space of the parcellation.
    parcellation : str or Path
        NIfTI or MGZ of labels: FreeSurfer's `aparc.a2009s+aseg`, the nodes of
        MRtrix's `labelconvert`, or any other with `labels`. White matter, fluid and
        whatever is no grey matter is no node.
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    assignment : {"radial", "end_voxels", "reverse_search"}
        Which node an end belongs to: the nearest within `radius`, that of the voxel,
        or the first on the way back along the streamline.
    radius : float
        In mm: of the radial search, or longest way of the reverse search (there 0
        means to the middle).
    weight : {"count", "inverse_length", "inverse_node_volume", "mean_length"}
        What a streamline adds: 1; 1 / length in mm; 2 / voxels of both nodes; or the
        mean length in mm of the streamlines of a connection. Or a path or an array,
        which is the same as `streamline_weights` with "count".
    streamline_weights : path or array of shape (n_streamlines,), optional
        A factor for every streamline, such as the output of MRtrix's `tcksift2`.
    labels : path, mapping of int to str, or sequence of str, optional
        Names of the labels: a lookup table of FreeSurfer's or MRtrix's form, or of
        the columns `index` and `name`; or names by number; or those of 1, 2, 3 ...
    n_threads : int
        At once; the result does not depend on it.

    Returns
    -------
    BuiltConnectome
        With `matrix` in atlas order, `names`, and the numbers of streamlines kept and
        dropped.

    Raises
    ------
    FileFormatError
        Where a file cannot be read, is cut short, or its labels are not known.
    RegionNameError
        Where labels have names that are no regions, or regions are missing.
    ParameterError
        Where an argument cannot be used.

    Examples
    --------
    >>> import tempfile, nibabel
    >>> from nibabel.streamlines import Tractogram, save
    >>> labels = np.zeros((6, 1, 1), dtype=np.int16)
    >>> labels[[0, 5], 0, 0] = 1, 2
    >>> lines = [np.array([[0, 0, 0], [2, 0, 0], [5, 0, 0]], dtype=np.float32)]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), f"{place}/two.nii")
    ...     save(Tractogram(lines, affine_to_rasmm=np.eye(4)), f"{place}/one.tck")
    ...     table = Path(place) / "regions.tsv"
    ...     _ = table.write_text("name\themisphere\nlh_a\tL\nrh_a\tR\n")
    ...     made = build_connectome(f"{place}/one.tck", f"{place}/two.nii", table)
    >>> made.to_frame().loc["lh_a", "rh_a"], made.n_kept, made.n_dropped
    (np.float64(1.0), 1, 0)
    """
    atlas = load_atlas(atlas)
    if not isinstance(weight, str) or Path(weight).is_file():
        weight, streamline_weights = "count", weight
    assignment, weight = (_word(text) for text in (assignment, weight))
    check_choice("assignment", assignment, ASSIGNMENTS)
    check_choice("weight", weight, WEIGHTS)
    check_at_least("radius", radius, 0)
    check_at_least("n_threads", n_threads, 1)
    image = read_label_image(parcellation, atlas, labels)
    beside = image.with_cores(NODES_BESIDE)
    ends_at = sorted({*image.places, *beside})
    codes = {label: code for code, label in enumerate(ends_at, start=1)}
    factors = read_streamline_weights(streamline_weights)
    nodes = NodeImage(image.recoded(codes), image.affine)
    sums = sum_blocks(
        read_streamlines(tractogram),
        assign_ends(nodes, assignment, float(radius)),
        weight,
        np.array([0, *(image.counts[label] for label in ends_at)]),
        factors,
        n_threads,
    )
    _check_sums(sums, factors, tractogram)
    place = np.array([-1, *(image.places.get(label, -1) for label in ends_at)])
    parameters = {
        "tractogram": str(tractogram),
        "parcellation": str(parcellation),
        "atlas": atlas.name,
        "assignment": assignment,
        "radius_mm": None if assignment == "end_voxels" else float(radius),
        "weight": weight,
        "streamline_weights": _said(streamline_weights),
    }
    return _finish(sums.matrix(), sums.counts, place, image.notes, atlas, parameters)


def _check_sums(sums: Sums, factors: np.ndarray | None, tractogram: str | Path) -> None:
    if factors is not None and len(factors) != sums.n_streamlines:
        raise FileFormatError(
            f"{tractogram}: {sums.n_streamlines} streamlines, but {len(factors)} "
            "weights in streamline_weights=; expected one for each."
        )
    if not sums.are_numbers:
        raise FileFormatError(
            f"{tractogram}: the weights of its streamlines add up to no number; "
            "expected smaller ones in streamline_weights=, and lengths in mm."
        )


def _word(text: str) -> str:
    """Return a rule's name, also where it is spelt as MRtrix does or with spaces."""
    word = text.strip().lower().replace(" ", "_").replace("-", "_")
    return _ALIASES.get(word, word)


def _said(weights: str | Path | np.ndarray | None) -> str | None:
    if weights is None:
        return None
    return str(weights) if isinstance(weights, str | Path) else "given as an array"


def _finish(
    values: np.ndarray,
    counts: np.ndarray,
    place: np.ndarray,
    notes: tuple[str, ...],
    atlas: Atlas,
    parameters: dict[str, Any],
) -> BuiltConnectome:
    """Put the nodes in the order of the atlas, and count what is left out.

    Parameters
    ----------
    values, counts : arrays of shape (n_nodes + 1, n_nodes + 1)
        Upper triangles; row and column 0 are of ends without a node.
    place : int array of shape (n_nodes + 1,)
        Position in the atlas; -1 for none.
    notes : tuple of str
        On the labels.
    atlas : Atlas
        Names the regions.
    parameters : dict
        How it was made.
    """
    kept = np.flatnonzero(place >= 0)
    matrix = np.zeros((len(atlas), len(atlas)))
    both = values + np.triu(values, 1).T
    matrix[np.ix_(place[kept], place[kept])] = both[np.ix_(kept, kept)]
    n_streamlines = int(counts.sum())
    n_unassigned = n_streamlines - int(counts[1:, 1:].sum())
    n_kept = int(counts[np.ix_(kept, kept)].sum())
    n_outside = n_streamlines - n_unassigned - n_kept
    said = (
        f"{n_kept} of {n_streamlines} streamlines kept; {n_unassigned} have an end in "
        f"no node, {n_outside} one in a node that {atlas.name} leaves out",
    )
    return BuiltConnectome(
        matrix,
        notes + said,
        atlas.names,
        n_streamlines,
        n_kept,
        n_unassigned,
        n_outside,
        parameters,
    )
