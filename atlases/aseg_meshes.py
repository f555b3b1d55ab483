"""Smooth closed meshes of the regions of a segmentation, for `cvu_surfaces.py`."""

from pathlib import Path

import numpy as np
from nibabel import GiftiImage
from nibabel.affines import apply_affine
from nibabel.gifti import GiftiCoordSystem, GiftiDataArray, GiftiMetaData
from scipy import ndimage

N_VERTICES = 800
BLUR = 0.7  # voxels (1 mm): enough to take the steps of the voxels away
DECIMALS = 2  # hundredths of a mm, so that rounding noise does not reach the file


def largest_component(mask: np.ndarray) -> np.ndarray:
    """Return the largest part of a mask; the right caudate has stray voxels.

    Parameters
    ----------
    mask : ndarray of bool, shape (n_x, n_y, n_z)
        Voxels of a region.

    Returns
    -------
    ndarray of bool, shape (n_x, n_y, n_z)
        Voxels of its largest part; voxels touch by faces.
    """
    labels, n_parts = ndimage.label(mask)
    sizes = ndimage.sum_labels(mask, labels, np.arange(1, n_parts + 1))
    return labels == np.argmax(sizes) + 1


def mesh_of(mask: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a smooth closed surface around a mask.

    Parameters
    ----------
    mask : ndarray of bool, shape (n_x, n_y, n_z)
        Voxels of a region, in one piece.
    affine : ndarray, shape (4, 4)
        From voxels to mm.

    Returns
    -------
    vertices : ndarray of float, shape (about N_VERTICES, 3)
        In mm; surface RAS, which is scanner RAS in this image.
    faces : ndarray of int, shape (n_faces, 3)
        Counter-clockwise seen from outside.
    """
    import fast_simplification
    from skimage.measure import marching_cubes

    low = np.argwhere(mask).min(axis=0) - 4
    high = np.argwhere(mask).max(axis=0) + 5
    box = mask[tuple(map(slice, low, high))].astype(float)
    blurred = ndimage.gaussian_filter(box, BLUR)
    # The level that keeps the region's volume, so that thin tails do not shrink;
    # between two voxels' values, or corners would fall onto voxels and coincide.
    values = np.unique(blurred)
    inside = np.searchsorted(values, np.sort(blurred, axis=None)[-int(box.sum())])
    level = values[inside - 1 : inside + 1].mean()
    vertices, faces, _, _ = marching_cubes(blurred, level)
    vertices, faces = largest_surface(vertices, faces)
    share = 1 - 2 * (N_VERTICES - 2) / len(faces)  # a closed mesh: F = 2 (V - 2)
    vertices, faces = fast_simplification.simplify(
        vertices.astype(np.float32), faces.astype(np.int32), target_reduction=share
    )
    vertices = apply_affine(affine, vertices + low)
    if volume_of(vertices, faces) < 0:
        faces = faces[:, ::-1]
    return np.round(vertices, DECIMALS).astype(np.float32), faces.astype(np.int32)


def largest_surface(
    vertices: np.ndarray, faces: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest connected part of a mesh.

    Parameters
    ----------
    vertices : ndarray, shape (n_vertices, 3)
        Any mesh.
    faces : ndarray of int, shape (n_faces, 3)
        Its triangles.

    Returns
    -------
    vertices, faces : ndarray
        The part with the most vertices; blurring may cut off or hollow out a voxel.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = np.vstack([faces[:, [0, 1]], faces[:, [1, 2]]])
    shape = (len(vertices), len(vertices))
    graph = coo_array((np.ones(len(links)), tuple(links.T)), shape=shape)
    parts = connected_components(graph, directed=False)[1]
    kept = parts == np.bincount(parts).argmax()
    number = np.cumsum(kept) - 1
    return vertices[kept], number[faces[kept[faces[:, 0]]]]


def volume_of(vertices: np.ndarray, faces: np.ndarray) -> float:
    """Return the volume inside a closed mesh; negative if it is inside out.

    Parameters
    ----------
    vertices : ndarray, shape (n_vertices, 3)
        In mm.
    faces : ndarray of int, shape (n_faces, 3)
        Triangles.

    Returns
    -------
    float
        Cubic mm.
    """
    a, b, c = (vertices[faces[:, k]].astype(float) for k in range(3))
    return float(np.sum(a * np.cross(b, c)) / 6)


def write_mesh(path: Path, vertices: np.ndarray, faces: np.ndarray, side: str) -> None:
    """Write a mesh as GIFTI, without dates, so that equal meshes are equal files.

    Parameters
    ----------
    path : Path
        File to write.
    vertices : ndarray of float32, shape (n_vertices, 3)
        In mm.
    faces : ndarray of int32, shape (n_faces, 3)
        Triangles.
    side : {"CortexLeft", "CortexRight"}
        GIFTI has no word for a subcortical side; viewers read the side from this.
    """
    meta = GiftiMetaData(
        AnatomicalStructurePrimary=side,
        Description="Modified from FreeSurfer's fsaverage aseg.mgz; see README.md",
    )
    points = GiftiDataArray(
        vertices,
        intent="NIFTI_INTENT_POINTSET",
        datatype="NIFTI_TYPE_FLOAT32",
        meta=meta,
        coordsys=GiftiCoordSystem(3, 3),  # Talairach space, as FreeSurfer declares it
    )
    triangles = GiftiDataArray(
        faces, intent="NIFTI_INTENT_TRIANGLE", datatype="NIFTI_TYPE_INT32"
    )
    GiftiImage(darrays=[points, triangles]).to_filename(path)
