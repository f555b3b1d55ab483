"""What is fuzzed: every reader, with files to start from.

A target is a name, a few whole files (the seed corpus, made by the writers of the
tests), and a function that reads one. Only the package's errors may come out.
"""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nibabel
import numpy as np

from brainlsap.data import (
    make_cohort,
    read_feature,
    read_gnn_benchmark,
    read_planetoid,
)
from brainlsap.data.cohort import Cohort
from brainlsap.data.feature_tables import read_feature_table
from brainlsap.data.freesurfer_text import aparc_text, aseg_text
from brainlsap.data.streamline_files import read_streamlines
from brainlsap.data.volume_files import read_volume, read_voxels
from tests.data import test_nodes, test_streamline_files
from tests.data import test_reader_properties as readers

TINY, W, VALUES = readers.TINY, readers.W, readers.VALUES
NAMES = list(TINY.names)


@dataclass(frozen=True)
class Target:
    """One kind of file.

    Parameters
    ----------
    name : str
        Of the file, with the suffix that tells its format.
    make : callable
        Writes a whole file of that name into a folder.
    read : callable
        Reads it.
    """

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], object]

    def write(self, folder: Path) -> Path:
        """Write the whole file, and return where (some formats name it themselves)."""
        made = self.make(folder / self.name)
        return made if isinstance(made, Path) and made.is_file() else folder / self.name


def _matrix(name: str) -> Target:
    write = readers.MATRICES[name]
    return Target(name, lambda path: write(path, W, NAMES), readers.read_matrix)


def _table(name: str) -> Target:
    write = readers.TABLES[name]
    return Target(name, lambda path: write(path, NAMES, VALUES), readers.read_table)


def _streamlines(name: str) -> Target:
    lines = test_streamline_files.draw()
    content = test_streamline_files.WRITERS[name](lines)
    return Target(
        name,
        lambda path: path.write_bytes(content),
        lambda path: list(read_streamlines(path)),
    )


def _volume(name: str) -> Target:
    def make(path: Path) -> None:
        voxels = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
        kind = nibabel.MGHImage if ".mg" in name else nibabel.Nifti1Image
        kind(voxels, np.eye(4)).to_filename(path)

    return Target(name, make, lambda path: read_voxels(read_volume(path), path))


def _stats(name: str) -> Target:
    atlas = readers.DESIKAN
    values = np.random.default_rng(0).uniform(2, 3, len(atlas)).round(3)
    measured = {"thickness": values, "volume": values * 1000}
    texts = {
        "lh.aparc.stats": aparc_text(atlas, "L", "s", measured),
        "rh.aparc.stats": aparc_text(atlas, "R", "s", measured),
        "aseg.stats": aseg_text(atlas, "s", values * 1000),
    }

    def make(path: Path) -> None:
        for other, text in texts.items():
            (path.parent / other).write_text(text)

    return Target(name, make, lambda path: read_feature(path.parent, "volume", atlas))


@cache
def _cohort_bytes() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        cohort = make_cohort(5, atlas="desikan82", random_state=0)
        return cohort.write(Path(place) / "c.h5").read_bytes()


@cache
def _model_bytes() -> bytes:
    import tempfile

    from brainlsap.model import LSAPClassifier, save_model

    rng = np.random.default_rng(0)
    graphs = np.broadcast_to(1.0 - np.eye(3), (8, 3, 3))
    X = np.concatenate([graphs, rng.normal(size=(8, 3, 1))], axis=2)
    model = LSAPClassifier(n_epochs=2, n_starts=1, initial_scale=1.0)
    groups = np.array([f"p{k}" for k in range(8)])
    model.fit(X, np.array(["CN", "AD"] * 4), groups=groups)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "m.safetensors"
        save_model(model, path, region_names=list("abc"), feature_names=["thickness"])
        return path.read_bytes()


def _load_model(path: Path) -> object:
    from brainlsap.model import load_model

    return load_model(path)


def _planetoid(part: str) -> Target:
    name = f"ind.toy.{part}"
    return Target(
        name,
        lambda path: test_nodes.write_planetoid(path.parent),
        lambda path: read_planetoid(path.parent, "toy"),
    )


def _gnn() -> Target:
    def make(path: Path) -> None:
        np.savez(path, **test_nodes.gnn_arrays())

    return Target("toy.npz", make, read_gnn_benchmark)


def _wide() -> Target:
    def make(path: Path) -> None:
        readers.write_scan_table(path, NAMES, VALUES)

    return Target(
        "scans.csv", make, lambda path: read_feature_table(path, TINY, "suvr")
    )


TARGETS = {
    target.name: target
    for target in (
        *map(_matrix, readers.MATRICES),
        *map(_table, readers.TABLES),
        _wide(),
        *map(_streamlines, ("le.tck", "plain.trk", "plain.trk.gz", "stored.trx")),
        *map(_volume, ("image.nii", "image.nii.gz", "image.mgz")),
        *map(_planetoid, ("graph", "allx", "ty", "test.index")),
        _gnn(),
        *map(_stats, ("lh.aparc.stats", "aseg.stats")),
        Target("c.cohort.h5", lambda p: p.write_bytes(_cohort_bytes()), Cohort.read),
        Target("m.safetensors", lambda p: p.write_bytes(_model_bytes()), _load_model),
    )
}


def packed(name: str) -> bool:
    """Return whether bytes are better changed before packing."""
    return name.endswith((".gz", ".mgz"))


def unpack(name: str, content: bytes) -> bytes:
    return gzip.decompress(content) if packed(name) else content


def pack(name: str, content: bytes) -> bytes:
    return gzip.compress(content, 1, mtime=0) if packed(name) else content
