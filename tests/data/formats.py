"""Small writers of the layouts that tools document; each tells every weight apart."""

import gzip
import json

import h5py
import nibabel as nib
import numpy as np
from scipy.io import savemat

STRUCTURES = (10, 11, 12, 13, 17, 18, 26, 49, 50, 51, 52, 53, 54, 58)


def telling_matrix(n):
    """Return symmetric whole counts whose every pair tells its two rows."""
    i, j = np.indices((n, n))
    return np.where(i == j, 0, np.minimum(i, j) * 1000 + np.maximum(i, j) + 1.0)


def whole(atlas, ids):
    """Return the telling matrix of rows with these numbers, and what is expected.

    The numbers are FreeSurfer's; None is a row that the atlas lacks.
    """
    full = telling_matrix(len(ids))
    rows = [ids.index(number) for number in atlas.regions["freesurfer_id"].tolist()]
    return full, full[np.ix_(rows, rows)]


def micapipe_ids(n_cerebellar=34):
    """Rows of micapipe's a2009s: structures, cerebellum, cortex with the walls."""
    cortex = [
        None if k == 42 else base + k for base in (11100, 12100) for k in range(1, 76)
    ]
    return [*STRUCTURES, *[None] * n_cerebellar, *cortex]


def write_gii(path, matrix):
    """As micapipe's connectome_slicer: one array, shape intent, float32."""
    array = nib.gifti.GiftiDataArray(
        data=matrix.astype(np.float32), intent=2005, datatype=16
    )
    nib.save(nib.gifti.GiftiImage(darrays=[array]), path)
    return path


def cells(names):
    """MATLAB cells of text, a row."""
    result = np.empty((1, len(names)), dtype=object)
    result[0] = list(names)
    return result


def write_qsirecon(path, matrices, names, prefix="atlas_"):
    """QSIRecon: every measure, ids and labels; older QSIPrep has no `atlas_`."""
    stem = f"{prefix}Destrieux_"
    content = {
        f"{stem}region_ids": np.arange(1, len(names) + 1)[None],
        f"{stem}region_labels": cells(names),
    }
    content |= {f"{stem}{m}_connectivity": W for m, W in matrices.items()}
    savemat(path, content)
    return path


def write_dsi_studio(path, measures, names, current=True):
    """DSI Studio: names as bytes of lines; the key of a matrix may hold a space."""
    joined = np.frombuffer("".join(f"{n}\n" for n in names).encode(), dtype=np.uint8)
    content = {"name": joined[None], "atlas": np.frombuffer(b"a2009s", np.uint8)[None]}
    for measure, matrix in measures.items():
        content[f"{measure} r2r" if current else "connectivity"] = matrix
    if current:
        content["count t2r"] = np.zeros((5, len(names)), dtype=np.uint8)
    savemat(path, content)
    return path


def write_connectoflow(folder, matrix, ids):
    """One folder a scan with square .npy; the ids lie in labels_list.txt above."""
    place = folder / "sub-01" / "Compute_Connectivity"
    place.mkdir(parents=True)
    np.save(place / "sc.npy", matrix)
    (folder / "labels_list.txt").write_text("".join(f"{i}\n" for i in ids))
    return place / "sc.npy"


def write_relmat(folder, matrix, names, packed=False):
    """BEP017: numbers without header, a JSON with NodeFiles and NodeIndices."""
    stem = "sub-01_seg-destrieux_meas-count_relmat"
    text = "".join("\t".join(f"{v:.10g}" for v in row) + "\n" for row in matrix)
    path = folder / (f"{stem}.tsv.gz" if packed else f"{stem}.tsv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    nodes = folder / "seg-destrieux_nodes.tsv"
    rows = "".join(f"{i}\t{name}\n" for i, name in enumerate(names, start=1))
    nodes.write_text("index\tname\n" + rows)
    described = {"NodeFiles": [nodes.name], "NodeIndices": [*range(1, len(names) + 1)]}
    (folder / f"{stem}.json").write_text(json.dumps(described))
    return path


def write_h5(path, matrix, names):
    with h5py.File(path, "w") as file:
        file["group/connectome"] = matrix
        file["group/names"] = np.array(names, dtype=h5py.string_dtype())
    return path


def write_npz(path, matrix, names):
    np.savez_compressed(path, connectome=matrix, names=np.array(names))
    return path
