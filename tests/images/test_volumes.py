"""Images of voxels and registrations: what is read, and what is refused."""

import struct

import nibabel
import numpy as np
import pytest
from nibabel.affines import voxel_sizes

from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.images.volumes import (
    read_transform_affine,
    read_volume_affine_header,
    resample_nearest_volume,
)
from tests.conftest import raises_kind


def save(path, shape=(3, 4, 5), kind=np.int16):
    values = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)
    return path


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "a.mgz"])
def test_cut_images_are_refused(tmp_path, name):
    path = tmp_path / name
    kind = nibabel.MGHImage if name.endswith("mgz") else nibabel.Nifti1Image
    values = np.random.default_rng(0).integers(0, 999, (7, 8, 9)).astype(np.int32)
    nibabel.save(kind(values, np.eye(4)), path)
    np.testing.assert_array_equal(read_volume_affine_header(path)[0], values)
    whole = path.read_bytes()
    for size in (0, 5, 200, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=name):
            read_volume_affine_header(path)


def patch(path, place, *numbers):
    """Write single precision numbers into the header of a NIfTI."""
    data = bytearray(path.read_bytes())
    data[place : place + 4 * len(numbers)] = struct.pack(f"<{len(numbers)}f", *numbers)
    path.write_bytes(data)
    return path


def test_scaling_and_one_frame(tmp_path):
    path = patch(save(tmp_path / "a.nii", (2, 3, 2, 1)), 112, 0.5, 3)
    wanted = np.arange(12).reshape(2, 3, 2) / 2 + 3
    np.testing.assert_allclose(read_volume_affine_header(path)[0], wanted)


def test_what_is_no_image_is_refused(tmp_path):
    (tmp_path / "a.mif").write_text("mrtrix image")
    complex_numbers = save(tmp_path / "e.nii", kind=np.complex64)
    for path, said in (
        (tmp_path / "none.nii", "no such file"),
        (tmp_path / "a.mif", "mrconvert"),
        (save(tmp_path / "b.nii", (3, 4)), "expected three axes"),
        (save(tmp_path / "f.nii", (2, 3, 4, 5)), "Align and average the frames first"),
        (patch(save(tmp_path / "c.nii"), 312, 0, 0, 0, 0), "finite and invertible"),
        (patch(save(tmp_path / "d.nii"), 312, 0, np.nan, 1), "affine must be finite"),
        (complex_numbers, "a number in every voxel; got .* complex64"),
    ):
        with pytest.raises(FileFormatError, match=said):
            read_volume_affine_header(path)


# From RAS of the PET to RAS of the anatomical image.
TRUTH = np.eye(4)
TRUTH[:3, :3] = nibabel.eulerangles.euler2mat(0.3, -0.1, 0.2)
TRUTH[:3, 3] = 5, -7, 9
LAS = np.array([[-1.0, 0, 0, 49], [0, 1, 0, 2], [0, 0, 1, -4], [0, 0, 0, 1]])


@pytest.fixture
def images(tmp_path):
    pet = nibabel.Nifti1Image(np.zeros((20, 22, 24), "f4"), np.diag([3.0, 3, 3, 1]))
    fixed = nibabel.Nifti1Image(np.zeros((50, 51, 52), "f4"), LAS)
    nibabel.save(pet, tmp_path / "pet.nii")
    nibabel.save(fixed, tmp_path / "t1.nii")
    return pet, fixed


def volume_info(name, image):
    size, half = voxel_sizes(image.affine), np.array(image.shape) / 2
    axes = (image.affine[:3, :3] / size).T
    rows = [f"{name} volume info", "valid = 1", f"filename = {name}.nii"]
    rows += [f"volume = {' '.join(map(str, image.shape))}"]
    rows += [f"voxelsize = {' '.join(map(str, size))}"]
    for key, axis in zip(("xras", "yras", "zras"), axes, strict=True):
        rows.append(f"{key}   = {' '.join(map(str, axis))}")
    centre = (image.affine @ [*half, 1])[:3]
    return [*rows, f"cras   = {' '.join(map(str, centre))}"]


def lta(path, matrix, kind, images):
    rows = [f"type = {kind}", "nxforms = 1", "mean = 0 0 0", "sigma = 1"]
    rows += ["1 4 4", *(" ".join(f"{x:.15e}" for x in row) for row in matrix)]
    for name, image in zip(("src", "dst"), images, strict=True):
        rows += volume_info(name, image)
    path.write_text("\n".join(rows) + "\n")


def fsl_space(image):
    """Return FSL's coordinates from voxels: mm, x turned where the grid is not."""
    scaled = np.diag([*voxel_sizes(image.affine), 1])
    if np.linalg.det(image.affine) > 0:
        turn = np.diag([-1.0, 1, 1, 1])
        turn[0, 3] = (image.shape[0] - 1) * scaled[0, 0]
        scaled = turn @ scaled
    return scaled


def write(path, images):
    pet, fixed = images
    voxels = np.linalg.inv(fixed.affine) @ TRUTH @ pet.affine
    lps = np.diag([-1.0, -1, 1, 1])
    pull = lps @ np.linalg.inv(TRUTH) @ lps
    if path.name == "ras.lta":
        lta(path, TRUTH, 1, images)
    elif path.name == "voxel.lta":
        lta(path, voxels, 0, images)
    elif path.name == "flirt.mat":
        back = np.linalg.inv(fsl_space(pet))
        np.savetxt(path, fsl_space(fixed) @ voxels @ back)
    else:
        numbers = [*pull[:3, :3].ravel(), *pull[:3, 3]]
        path.write_text(
            "#Insight Transform File V1.0\n#Transform 0\n"
            "Transform: AffineTransform_double_3_3\n"
            f"Parameters: {' '.join(f'{x:.15g}' for x in numbers)}\n"
            "FixedParameters: 0 0 0\n"
        )


@pytest.mark.parametrize("name", ["ras.lta", "voxel.lta", "flirt.mat", "itk.txt"])
@pytest.mark.filterwarnings("ignore")  # of nitransforms and what it imports
def test_every_form_is_the_same_matrix(tmp_path, images, name):
    pytest.importorskip("nitransforms", reason="nitransforms is absent")
    write(tmp_path / name, images)
    found = read_transform_affine(
        tmp_path / name, tmp_path / "pet.nii", tmp_path / "t1.nii"
    )
    np.testing.assert_allclose(found, TRUTH, atol=1e-4)


def test_matrices_are_taken_and_none_is_the_same_space():
    np.testing.assert_array_equal(read_transform_affine(TRUTH, "a", "b"), TRUTH)
    np.testing.assert_array_equal(read_transform_affine(None, "a", "b"), np.eye(4))
    for wrong in (np.eye(3), np.zeros((4, 4)), np.full((4, 4), np.nan)):
        with pytest.raises(ParameterError, match="invertible 4 x 4 matrix"):
            read_transform_affine(wrong, "a", "b")


@pytest.mark.filterwarnings("ignore")
def test_what_is_no_registration_is_refused(tmp_path):
    pytest.importorskip("nitransforms", reason="nitransforms is absent")
    with pytest.raises(FileFormatError, match=r"a\.lta: "):
        read_transform_affine(tmp_path / "a.lta", "a", "b")
    (tmp_path / "b.txt").write_text("no registration\n")
    with raises_kind("unreadable", "b.txt"):
        read_transform_affine(tmp_path / "b.txt", "a", "b")


def test_halves_go_up_and_edges_are_as_in_scipy():
    values = np.arange(1, 5).reshape(4, 1, 1)
    other = np.diag([0.5, 1, 1, 1])
    other[0, 3] = -0.5
    found = resample_nearest_volume(values, np.eye(4), (9, 1, 1), other)[:, 0, 0]
    assert found.tolist() == [0, 1, 2, 2, 3, 3, 4, 4, 0]
