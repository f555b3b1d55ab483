"""Fuzzed readers of tables and other text: people, ADNI, labels, atlases."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from brainlsap.data import load_atlas
from brainlsap.data.adni_images import find_adni_images
from brainlsap.data.adni_tables import read_adni_tables
from brainlsap.data.feature_tables import read_feature_table
from brainlsap.data.label_tables import read_label_table
from brainlsap.data.participants import read_participants
from brainlsap.data.pet_images import read_pet
from brainlsap.data.spatial_transforms import read_transform
from brainlsap.data.streamline_weights import read_streamline_weights
from brainlsap.data.truth import read_truth
from tests.data import adni_files, feature_formats, test_spatial_transforms
from tests.data import test_reader_properties as readers
from tests.fuzz.target import Target, member

TINY, W, VALUES, NAMES = readers.TINY, readers.W, readers.VALUES, readers.NAMES


def _text(name: str, text: str, read: Callable[[Path], object], reader: str) -> Target:
    return Target(name, lambda path: path.write_text(text), read, reader)


def _participants(name: str) -> Target:
    texts = {
        "participants.tsv": "participant_id\tdiagnosis\tage\nsub-01\tCN\t70.5\n"
        "sub-02\tAD\tn/a\n",
        "sub-01_sessions.tsv": "session_id\tdiagnosis\tdate\nses-M00\tCN\t2011-02-03\n"
        "ses-M12\tMCI\t2012-02-03\n",
    }

    def make(path: Path) -> Path:
        folder = path.parent / "sub-01"
        folder.mkdir(exist_ok=True)
        (path.parent / "participants.tsv").write_text(texts["participants.tsv"])
        (folder / "sub-01_sessions.tsv").write_text(texts["sub-01_sessions.tsv"])
        return path if path.is_file() else folder / path.name

    def read(path: Path) -> object:
        return read_participants(
            path.parent if name == "participants.tsv" else path.parent.parent
        )

    return Target(name, make, read, "people")


def _adni(name: str) -> Target:
    tables = {
        "ADNIMERGE.csv": adni_files.merge_table,
        "DXSUM.csv": adni_files.dxsum_table,
        "ARM.csv": adni_files.arm_table,
        "PTDEMOG.csv": adni_files.demography_table,
    }
    used = ("ADNIMERGE.csv",) if name == "ADNIMERGE.csv" else tuple(tables)[1:]

    def make(path: Path) -> None:
        for other in used:
            tables[other]().to_csv(path.with_name(other), index=False)

    return Target(name, make, lambda path: read_adni_tables(path.parent), "ADNI")


def _adni_sidecar() -> Target:
    told = {"Manufacturer": "GE", "ManufacturersModelName": "M", "EchoTime": 0.1}

    def make(path: Path) -> Path:
        folder = adni_files.write_image(path.parent, *adni_files.IMAGES[0])
        made = folder / path.name
        made.write_text(json.dumps(told))
        return made

    return Target("scan.json", make, lambda p: find_adni_images(p.parents[4]), "ADNI")


def _workbook() -> Target:
    def make(path: Path) -> None:
        import openpyxl

        book = openpyxl.Workbook()
        book.active.append(["participant_id", *NAMES])
        book.active.append(["s1", *VALUES])
        book.save(path)

    return Target(
        "t.xlsx", make, lambda path: read_feature_table(path, TINY, "suvr"), "workbooks"
    )


def _registration(name: str) -> Target:
    import nibabel

    affine = np.diag([2.0, 2, 2, 1])
    images = [nibabel.Nifti1Image(np.ones(s), affine) for s in ((4, 5, 6), (5, 6, 4))]

    def make(path: Path) -> None:
        for image, other in zip(images, ("pet.nii", "t1.nii"), strict=True):
            image.to_filename(path.with_name(other))
        test_spatial_transforms.write(path, images)

    return Target(
        name,
        make,
        lambda p: read_transform(p, p.with_name("pet.nii"), p.with_name("t1.nii")),
        "registrations",
    )


def _frames() -> Target:
    import nibabel

    def make(path: Path) -> None:
        values = np.ones((2, 3, 4, 2), np.float32)
        image = nibabel.Nifti1Image(values, np.eye(4))
        image.to_filename(path.with_suffix(".nii"))
        told = {"FrameTimesStart": [0, 10], "FrameDuration": [10, 10]}
        path.write_text(json.dumps(told))

    return Target(
        "frames.json",
        make,
        lambda path: read_pet(path.with_suffix(".nii"), frames=(0, 20)),
        "sidecars",
    )


def _relmat(name: str) -> Target:
    """Names of a BIDS matrix: its `.json`, or the table that this names."""

    def make(path: Path) -> Path:
        readers.formats.write_relmat(path.parent, W, NAMES)
        return path

    def read(path: Path) -> object:
        return readers.read_matrix(
            path.with_name("sub-01_seg-destrieux_meas-count_relmat.tsv")
        )

    return Target(name, make, read, "sidecars")


def _labels() -> Target:
    def make(path: Path) -> None:
        np.save(path.with_name("c.npy"), W)
        path.write_text("\n".join(NAMES) + "\n")

    return Target(
        "labels.txt",
        make,
        lambda path: readers.read_matrix(path.with_name("c.npy")),
        "sidecars",
    )


def _vertices(name: str) -> Target:
    import nibabel

    atlas = readers.DESIKAN

    def make(path: Path) -> Path:
        feature_formats.write_vertices(path.parent, atlas)
        label = path.parent / "label"
        (label / "lh.cortex.label").write_text(
            "#!ascii label\n3\n0 1.0 2.0 3.0 0\n5 1.0 2.0 3.0 0\n7 1 2 3 0.5\n"
        )
        if name.endswith("mgh"):
            read_back = nibabel.freesurfer.read_morph_data
            values = read_back(path.parent / "surf" / "lh.thickness")
            image = nibabel.MGHImage(values[:, None, None], np.eye(4))
            image.to_filename(path.parent / "surf" / name)
        place = label if name.endswith(("annot", "label")) else path.parent / "surf"
        return place / name

    def read(path: Path) -> object:
        return readers.read_feature(path.parents[1], "thickness", atlas)

    return Target(name, make, read, "surfaces")


def _atlas_surface(name: str) -> Target:
    import nibabel

    def make(path: Path) -> Path:
        folder = path.parent
        (folder / "regions.tsv").write_text(_REGIONS)
        table = np.array([[1, 2, 3, 0, 0], [9, 8, 7, 0, 0]])
        nibabel.freesurfer.write_annot(
            folder / "lh.annot", np.array([0, 1, 1]), table, ["Unknown", "a"], True
        )
        points, faces = np.eye(3, dtype=np.float32), np.array([[0, 1, 2]], np.int32)
        arrays = [
            nibabel.gifti.GiftiDataArray(points, "NIFTI_INTENT_POINTSET"),
            nibabel.gifti.GiftiDataArray(faces, "NIFTI_INTENT_TRIANGLE"),
        ]
        (folder / "meshes").mkdir(exist_ok=True)
        mesh = folder / "meshes" / "lh_a.surf.gii"
        nibabel.gifti.GiftiImage(darrays=arrays).to_filename(mesh)
        return mesh if name.endswith("gii") else folder / name

    def read(path: Path) -> object:
        if name.endswith("gii"):
            return load_atlas(path.parents[1]).meshes()
        return load_atlas(path.parent).vertex_labels("L")

    return Target(name, make, read, "atlases")


_REGIONS = "name\themisphere\tstructure\nlh_a\tL\tcortex\nrh_a\tR\tcortex\n"
_COLOURS = "#No. Label Name: R G B A\n0 Unknown 0 0 0 0\n1 lh_a 25 5 25 0\n"
_SEED = "region\tseed\teffect\n" + "".join(f"{n}\ttrue\t0.5\n" for n in NAMES)

_SIMPLE = (
    _text("regions.tsv:atlas", _REGIONS, load_atlas, "atlases"),
    _text("colours.txt", _COLOURS, lambda p: read_label_table(p, TINY), "sidecars"),
    _text("truth.tsv", _SEED, lambda p: read_truth(p.parent, TINY), "tables"),
    _text("weights.txt", "0.5 1 2\n0.25\n", read_streamline_weights, "tractograms"),
    Target(
        "weights.npy",
        lambda path: np.save(path, np.arange(4.0)),
        read_streamline_weights,
        "tractograms",
    ),
)

TEXTS = (
    *map(_participants, ("participants.tsv", "sub-01_sessions.tsv")),
    *map(_adni, ("ADNIMERGE.csv", "DXSUM.csv", "ARM.csv", "PTDEMOG.csv")),
    _adni_sidecar(),
    _workbook(),
    member(_workbook(), "xl/worksheets/sheet1.xml"),
    *map(_registration, ("ras.lta", "itk.txt", "flirt.mat")),
    _frames(),
    _relmat("sub-01_seg-destrieux_meas-count_relmat.json"),
    _relmat("seg-destrieux_nodes.tsv"),
    _labels(),
    *map(
        _vertices,
        ("lh.thickness", "lh.thickness.mgh", "rh.aparc.annot", "lh.cortex.label"),
    ),
    *map(_atlas_surface, ("lh.annot", "lh_a.surf.gii")),
    *_SIMPLE,
)
