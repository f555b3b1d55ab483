"""Images of voxels: what is refused, and how it is said."""

import gzip
import struct

import nibabel
import numpy as np
import pytest

from brainlsap.data.volume_files import read_volume, read_voxels
from brainlsap.exceptions import FileFormatError


def save(path, shape=(3, 4, 5), kind=np.int16):
    values = np.arange(np.prod(shape)).reshape(shape).astype(kind)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)
    return path


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "a.mgz"])
def test_cut_and_changed_images_are_refused_or_read(tmp_path, name):
    path = tmp_path / name
    kind = nibabel.MGHImage if name.endswith("mgz") else nibabel.Nifti1Image
    values = np.random.default_rng(0).integers(0, 999, (7, 8, 9)).astype(np.int32)
    nibabel.save(kind(values, np.eye(4)), path)
    np.testing.assert_array_equal(read_voxels(read_volume(path), path), values)
    whole = path.read_bytes()
    for size in (0, 5, 200, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=name):
            read_voxels(read_volume(path), path)


def patch(path, place, *numbers):
    """Write single precision numbers into the header of a NIfTI."""
    data = bytearray(path.read_bytes())
    data[place : place + 4 * len(numbers)] = struct.pack(f"<{len(numbers)}f", *numbers)
    path.write_bytes(data)
    return path


def test_scaling_and_one_frame(tmp_path):
    path = patch(save(tmp_path / "a.nii", (2, 3, 2, 2)), 112, 0.5, 3)
    found = read_voxels(read_volume(path), path, 1)
    np.testing.assert_allclose(found, np.arange(1, 24, 2).reshape(2, 3, 2) / 2 + 3)


def test_what_is_no_image_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="no such file; expected an image"):
        read_volume(tmp_path / "none.nii")
    (tmp_path / "a.mif").write_text("mrtrix image")
    with pytest.raises(FileFormatError, match=r"got \.mif.*mrconvert"):
        read_volume(tmp_path / "a.mif")
    with pytest.raises(FileFormatError, match="three axes, or four with time"):
        read_volume(save(tmp_path / "b.nii", (3, 4)))
    path = patch(save(tmp_path / "c.nii"), 312, 0, 0, 0, 0)
    with pytest.raises(FileFormatError, match="affine is singular"):
        read_volume(path)
    with pytest.raises(FileFormatError, match="affine is not a 4 x 4 matrix of num"):
        read_volume(patch(path, 312, 0, np.nan, 1, 0))
    path = save(tmp_path / "e.nii", kind=np.complex64)
    with pytest.raises(FileFormatError, match="a number in every voxel, got complex64"):
        read_voxels(read_volume(path), path)


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz", "a.mgz"])
def test_a_header_that_promises_terabytes_asks_for_no_memory(tmp_path, name):
    path = tmp_path / name
    kind = nibabel.MGHImage if name.endswith("mgz") else nibabel.Nifti1Image
    image = kind(np.zeros((3, 4, 5), np.int16), np.eye(4))
    image.to_filename(path)
    content = path.read_bytes()
    content = gzip.decompress(content) if name != "a.nii" else content
    if name == "a.mgz":  # three sizes behind the version, big-endian
        content = content[:4] + struct.pack(">3i", 9999, 9999, 9999) + content[16:]
    else:  # the number of axes, then the sizes
        content = content[:40] + struct.pack("<4h", 3, *[9999] * 3) + content[48:]
    path.write_bytes(gzip.compress(content) if name != "a.nii" else content)
    with pytest.raises(FileFormatError, match=r"the header promises [\d,]+ bytes"):
        read_voxels(read_volume(path), path)
