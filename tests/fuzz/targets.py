"""What is fuzzed: every reader, with files to start from.

A target is a whole file, made by the writers of the tests, and a function that reads
it. Only the package's errors may come out.
"""

from pathlib import Path

import h5py
import nibabel
import numpy as np
from scipy.io import savemat

from brainlsap.data import read_feature, read_gnn_benchmark, read_planetoid
from brainlsap.data.feature_tables import read_feature_table
from brainlsap.data.freesurfer_text import aparc_text, aseg_text
from brainlsap.data.node_splits import read_node_split
from brainlsap.data.streamline_files import read_streamlines
from brainlsap.data.volume_files import read_volume, read_voxels
from tests.data import formats, test_nodes, test_streamline_files
from tests.data import test_reader_properties as readers
from tests.fuzz.result_targets import RESULTS
from tests.fuzz.target import Target, member, packed
from tests.fuzz.text_targets import TEXTS

TINY, W, VALUES = readers.TINY, readers.W, readers.VALUES
DESIKAN = readers.DESIKAN
NAMES = list(TINY.names)


_KINDS = {".h5": ".h5", ".mat": ".mat", ".gii": ".gii", ".npy": ".npy and .npz"}
_KINDS |= {".npz": ".npy and .npz"}


def _matrix(name: str) -> Target:
    write = readers.MATRICES[name]
    reader = _KINDS.get(Path(name).suffix, "matrices in text")
    target = Target(
        name, lambda path: write(path, W, NAMES), readers.read_matrix, reader
    )
    return packed(target) if name.endswith(".gz") else target


def _matlab_4(path: Path) -> None:
    lines = np.frombuffer("".join(f"{n}\n" for n in NAMES).encode(), dtype=np.uint8)
    savemat(path, {"connectivity": W, "name": lines[None]}, format="4")


def _matlab_7_3(path: Path) -> None:
    """Write HDF5 behind MATLAB's 512 bytes."""
    with h5py.File(path, "w", userblock_size=512) as file:
        file["connectome"] = W
        file["names"] = np.array(NAMES, dtype=h5py.string_dtype())
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(126) + b"\0\2IM")


def _other_matrices() -> tuple[Target, ...]:
    read, one = readers.read_matrix, _matrix("c.npz")

    def compressed(path: Path) -> None:
        formats.write_dsi_studio(path, {"count": W}, NAMES)
        savemat(
            path,
            {"connectivity": W, "name": formats.cells(NAMES)},
            do_compression=True,
        )

    return (
        Target("four.mat", _matlab_4, read, ".mat"),
        Target("seven.mat", _matlab_7_3, read, ".mat"),
        Target("packed.mat", compressed, read, ".mat"),
        member(one, "connectome.npy"),
        member(one, "names.npy"),
    )


def _table(name: str) -> Target:
    write = readers.TABLES[name]
    return Target(
        name,
        lambda path: write(path, NAMES, VALUES),
        readers.read_table,
        "gtm" if "gtm" in name else "tables",
    )


def _streamlines(name: str) -> Target:
    content = test_streamline_files.WRITERS[name](test_streamline_files.draw()[:6])
    target = Target(
        name,
        lambda path: path.write_bytes(content),
        lambda path: list(read_streamlines(path)),
        "tractograms",
    )
    return packed(target) if name.endswith(".gz") else target


def _volume(name: str) -> Target:
    def make(path: Path) -> None:
        voxels = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
        kind = nibabel.MGHImage if ".mg" in name else nibabel.Nifti1Image
        kind(voxels, np.eye(4)).to_filename(path)

    target = Target(
        name, make, lambda path: read_voxels(read_volume(path), path), "NIfTI and MGZ"
    )
    return packed(target) if name.endswith((".gz", ".mgz")) else target


def _stats(name: str) -> Target:
    values = np.random.default_rng(0).uniform(2, 3, len(DESIKAN)).round(3)
    measured = {"thickness": values, "volume": values * 1000}
    texts = {
        "lh.aparc.stats": aparc_text(DESIKAN, "L", "s", measured),
        "rh.aparc.stats": aparc_text(DESIKAN, "R", "s", measured),
        "aseg.stats": aseg_text(DESIKAN, "s", values * 1000),
    }

    def make(path: Path) -> None:
        for other, text in texts.items():
            (path.parent / other).write_text(text)

    return Target(
        name, make, lambda path: read_feature(path.parent, "volume", DESIKAN), "stats"
    )


def _planetoid(part: str) -> Target:
    return Target(
        f"ind.toy.{part}",
        lambda path: test_nodes.write_planetoid(path.parent),
        lambda path: read_planetoid(path.parent, "toy"),
        "Planetoid",
    )


def _gnn() -> Target:
    def make(path: Path) -> None:
        np.savez(path, **test_nodes.gnn_arrays())

    return Target("toy.npz", make, read_gnn_benchmark, "node .npz")


def _node_split() -> Target:
    def make(path: Path) -> None:
        names = ("train_mask", "val_mask", "test_mask")
        np.savez(path, **dict(zip(names, np.eye(3), strict=True)))

    return Target("split.npz", make, lambda p: read_node_split(p, 3), "node .npz")


def _wide() -> Target:
    def make(path: Path) -> None:
        readers.write_scan_table(path, NAMES, VALUES)

    return Target(
        "scans.csv", make, lambda path: read_feature_table(path, TINY, "suvr"), "tables"
    )


_TRX = _streamlines("stored.trx")

TARGETS = {
    target.name: target
    for target in (
        *map(_matrix, readers.MATRICES),
        *_other_matrices(),
        *map(_table, readers.TABLES),
        _wide(),
        *map(_streamlines, ("le.tck", "plain.trk", "more.trk", "plain.trk.gz")),
        _TRX,
        *(member(_TRX, name) for name in ("header.json", "offsets.uint64")),
        *map(_volume, ("image.nii", "image.nii.gz", "image.mgz")),
        *map(_stats, ("lh.aparc.stats", "aseg.stats")),
        *map(_planetoid, ("graph", "allx", "ty", "test.index")),
        _gnn(),
        *(member(_gnn(), f"{n}.npy") for n in ("adj_indices", "class_names", "labels")),
        _node_split(),
        *TEXTS,
        *RESULTS,
    )
}
"""Every target by its name."""
