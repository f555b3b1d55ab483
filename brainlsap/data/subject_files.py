"""The text of one scan's connectome and of a table of regional values."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.data.spreadsheets import guard_cell
from brainlsap.exceptions import ParameterError

# FreeSurfer's numbers in the order of MRtrix's labelconvert (fs_default.txt and
# fs_a2009s.txt): cortex, cerebellum, subcortex left; subcortex, cortex, cerebellum
# right.
CEREBELLUM = (8, 47)
SUBCORTEX_LEFT = (10, 11, 12, 13, 17, 18, 26)
SUBCORTEX_RIGHT = (49, 50, 51, 52, 53, 54, 58)
# Word for the atlas in file names; MRtrix has a node list for these.
ATLAS_WORDS = {"destrieux160": "destrieux", "desikan82": "desikan"}


def mrtrix_nodes(atlas: Atlas) -> np.ndarray:
    """Return, for every node of MRtrix's matrix, its position in the atlas.

    Parameters
    ----------
    atlas : Atlas
        Either destrieux160 (164 nodes) or desikan82 (84 nodes).

    Returns
    -------
    int array of shape (n_nodes,)
        -1 for nodes that the atlas leaves out: cerebellum, and accumbens in
        destrieux160.

    Raises
    ------
    ParameterError
        Where MRtrix has no node list for the atlas.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> nodes = mrtrix_nodes(load_atlas("destrieux160"))
    >>> len(nodes), int((nodes < 0).sum())
    (164, 4)
    """
    if atlas.name not in ATLAS_WORDS:
        raise ParameterError(
            f"style 'mrtrix' is known for {', '.join(ATLAS_WORDS)} only, not for atlas "
            f"{atlas.name!r}. Pass style='named' to write names into the files."
        )
    regions = atlas.regions
    number = regions["freesurfer_id"].astype(int).tolist()
    cortex = regions["structure"] == "cortex"
    left = sorted(regions.loc[cortex & (regions["hemisphere"] == "L"), "freesurfer_id"])
    right = sorted(
        regions.loc[cortex & (regions["hemisphere"] == "R"), "freesurfer_id"]
    )
    wanted = [*left, CEREBELLUM[0], *SUBCORTEX_LEFT, *SUBCORTEX_RIGHT]
    wanted += [*right, CEREBELLUM[1]]
    position = {fs_id: i for i, fs_id in enumerate(number)}
    return np.array([position.get(int(fs_id), -1) for fs_id in wanted])


def mrtrix_text(matrix: np.ndarray, nodes: np.ndarray, scan: str) -> str:
    """Return a connectome as `tck2connectome -zero_diagonal` writes it.

    The upper triangle only, separated by commas, no names. Nodes that the atlas
    lacks get counts like those of the nodes beside them.

    Parameters
    ----------
    matrix : array of shape (n_rois, n_rois)
        In atlas order.
    nodes : int array of shape (n_nodes,)
        As :func:`mrtrix_nodes` gives them.
    scan : str
        Name of the scan; it draws the counts of nodes that the atlas lacks.

    Returns
    -------
    str

    Examples
    --------
    >>> W = np.array([[0.0, 7], [7, 0]])
    >>> print(mrtrix_text(W, np.array([1, 0]), "sub-01"), end="")
    0,7
    0,0
    """
    known = nodes >= 0
    full = np.zeros((len(nodes), len(nodes)))
    full[np.ix_(known, known)] = matrix[np.ix_(nodes[known], nodes[known])]
    rng = np.random.default_rng(crc32(scan.encode()))
    for node in np.flatnonzero(~known):
        links = rng.poisson(0.3 * full[node - 1]).astype(float)
        links[[node - 1, node]] = rng.poisson(50), 0.0
        full[node], full[:, node] = links, links
    return _matrix_text(np.triu(full, 1))


def named_text(matrix: np.ndarray, names: Sequence[str]) -> str:
    """Return a whole symmetric connectome with the regions' names on both sides.

    Parameters
    ----------
    matrix : array of shape (n_rois, n_rois)
        The connectome, in atlas order.
    names : sequence of str of length n_rois
        The regions' names.

    Returns
    -------
    str

    Examples
    --------
    >>> print(named_text(np.array([[0.0, 7], [7, 0]]), ["a", "b"]), end="")
    region,a,b
    a,0,7
    b,7,0
    """
    lines = _matrix_text(matrix).splitlines()
    safe = [str(guard_cell(name)) for name in names]
    rows = [f"{name},{line}\n" for name, line in zip(safe, lines, strict=True)]
    return "region," + ",".join(safe) + "\n" + "".join(rows)


def _matrix_text(matrix: np.ndarray) -> str:
    # MRtrix writes counts as whole numbers.
    whole = np.array_equal(matrix, np.rint(matrix))
    cells = matrix.astype(np.int64) if whole else matrix
    return "".join(",".join(map(str, row)) + "\n" for row in cells.tolist())


def region_text(names: Sequence[str], values: np.ndarray, column: str) -> str:
    """Return a table of one value per region, separated by tabs.

    Parameters
    ----------
    names : sequence of str
        The regions' names.
    values : array of shape (n_rois,)
        NaN is written as n/a.
    column : str
        Heading of the values.

    Returns
    -------
    str

    Examples
    --------
    >>> print(region_text(["a", "b"], np.array([1.25, np.nan]), "suvr"), end="")
    region	suvr
    a	1.25
    b	n/a
    """
    cells = ["n/a" if np.isnan(v) else f"{v:.10g}" for v in values.tolist()]
    safe = [str(guard_cell(name)) for name in (column, *names)]
    rows = [f"{name}\t{cell}\n" for name, cell in zip(safe[1:], cells, strict=True)]
    return f"region\t{safe[0]}\n" + "".join(rows)
