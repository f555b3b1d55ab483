"""SUVR of regions: the slow truth, grids and affines, references, what is refused."""

import json

import nibabel
import numpy as np
import pytest
from nibabel.affines import apply_affine

from brainlsap.data.atlas import load_atlas
from brainlsap.data.suvr import extract_suvr
from brainlsap.exceptions import FileFormatError, ParameterError

NUMBERS = [1101, 1102, 1103, 2101, 2102, 2103, 18]
BESIDE = [7, 8, 46, 47, 174]
FINE = np.array([[-1.0, 0, 0, 14], [0, 0, 1, -9], [0, -1, 0, 12], [0, 0, 0, 1]])


def save(path, values, affine):
    nibabel.save(nibabel.Nifti1Image(values, affine), path)
    return path


@pytest.fixture
def brain(tmp_path):
    """Blocks of labels on a grid of 1 mm, and a PET on a coarse oblique one."""
    rng = np.random.default_rng(6)
    blocks = rng.permutation(np.resize([*NUMBERS, *BESIDE], 7 * 6 * 5))
    labels = np.kron(blocks.reshape(7, 6, 5), np.ones((4, 4, 4), dtype=np.int32))
    parcellation = save(tmp_path / "labels.nii.gz", labels.astype(np.int32), FINE)
    turn = nibabel.eulerangles.euler2mat(0.05, 0.1, -0.07)
    affine = np.eye(4)
    affine[:3, :3] = turn * 2.1
    affine[:3, 3] = -18.3, -14.7, -13.1
    pet = rng.gamma(9, 1, (19, 17, 18))
    return save(tmp_path / "pet.nii.gz", pet, affine), parcellation


def slow_means(pet, parcellation, numbers):
    """Return means over covered voxels, one voxel at a time."""
    pet, labels = nibabel.load(pet), nibabel.load(parcellation)
    values, codes = pet.get_fdata(), np.asarray(labels.dataobj)
    sums, counts = dict.fromkeys(numbers, 0.0), dict.fromkeys(numbers, 0)
    back = np.linalg.inv(labels.affine) @ pet.affine
    for voxel in np.ndindex(*values.shape):
        place = np.round(apply_affine(back, voxel), 6)
        inside = all(0 <= p <= n - 1 for p, n in zip(place, codes.shape, strict=True))
        number = int(codes[tuple(np.floor(place + 0.5).astype(int))]) if inside else 0
        if number in sums and np.isfinite(values[voxel]) and values[voxel] != 0:
            sums[number] += values[voxel]
            counts[number] += 1
    return np.array([sums[n] / counts[n] for n in numbers]), counts


def test_means_equal_the_slow_truth(brain, tiny):
    found = extract_suvr(*brain, tiny)
    slow, counts = slow_means(*brain, [*NUMBERS, 8, 47])
    reference = (slow[-2] * counts[8] + slow[-1] * counts[47]) / (
        counts[8] + counts[47]
    )
    np.testing.assert_allclose(found.means, slow[:7], rtol=1e-12)
    np.testing.assert_allclose(found.values, slow[:7] / reference, rtol=1e-12)
    assert found.n_voxels.tolist() == [counts[n] for n in NUMBERS]
    assert found.to_frame().loc["rh_b", "suvr"] == found.values[4]
    assert found.overlap > 0.95
    assert found.parameters["reference"] == "cerebellar cortex"


def rewrite(path, out, change):
    image = nibabel.load(path)
    values, affine = change(image.get_fdata(), image.affine.copy())
    return save(out, values, affine)


def flip(values, affine):
    step = np.eye(4)
    step[1, 1], step[1, 3] = -1, values.shape[1] - 1
    return values[:, ::-1], affine @ step


def swap(values, affine):
    return values.transpose(2, 0, 1), affine[:, [2, 0, 1, 3]]


def pad(values, affine):
    step = np.eye(4)
    step[:3, 3] = -2, -1, -3
    return np.pad(values, ((2, 0), (1, 2), (3, 1))), affine @ step


@pytest.mark.parametrize("change", [flip, swap, pad])
@pytest.mark.parametrize("grid", ["pet", "parcellation"])
def test_the_same_image_on_other_axes_gives_the_same(
    brain, tiny, tmp_path, change, grid
):
    other = rewrite(brain[0], tmp_path / "other.nii", change)
    one = extract_suvr(*brain, tiny, grid=grid)
    two = extract_suvr(other, brain[1], tiny, grid=grid)
    # trilinear values at the very edge may have one neighbour more
    tolerance = 1e-6 if grid == "pet" or change is not pad else 0.02
    np.testing.assert_allclose(two.values, one.values, rtol=tolerance)


def test_labels_as_a_grid_interpolate_the_image(tiny, tmp_path):
    labels = np.kron(np.resize([*NUMBERS, 8], (4, 4, 4)), np.ones((3, 3, 3))).astype(
        "i4"
    )
    parcellation = save(tmp_path / "l.nii", labels, np.eye(4))
    # a plane: trilinear interpolation is exact on it
    coarse = np.diag([2.0, 2.0, 2.0, 1.0])
    coarse[:3, 3] = -3
    x, y, z = np.indices((10, 10, 10))
    pet = save(tmp_path / "p.nii", 50 + 2.0 * x + y - z, coarse)
    found = extract_suvr(pet, parcellation, tiny, grid="parcellation")
    voxels = np.array(np.nonzero(labels == 1102))
    a, b, c = (voxels + 3) / 2
    assert found.means[1] == pytest.approx((50 + 2 * a + b - c).mean(), rel=1e-12)
    assert found.n_voxels[1] == voxels.shape[1]


def test_zero_and_nan_are_not_covered(brain, tiny, tmp_path):
    def spoil(values, affine):
        values[3:6, 4:9, 5:8] = 0
        values[8:10, 8:10, 8:10] = np.nan
        values[1, 5:8, 5] = np.inf
        return values, affine

    spoilt = rewrite(brain[0], tmp_path / "spoilt.nii", spoil)
    found = extract_suvr(spoilt, brain[1], tiny)
    slow, _ = slow_means(spoilt, brain[1], NUMBERS)
    np.testing.assert_allclose(found.means, slow, rtol=1e-12)
    whole = extract_suvr(*brain, tiny)
    assert (found.coverage < whole.coverage).any()
    assert found.overlap < whole.overlap
    assert (found.n_voxels <= whole.n_voxels).all()


def test_low_coverage_is_refused_unless_accepted(brain, tiny, tmp_path):
    def move(values, affine):
        affine[0, 3] += 8
        return values, affine

    moved = rewrite(brain[0], tmp_path / "moved.nii", move)
    with pytest.raises(FileFormatError, match=r"covers \d\d% of the regions' voxels"):
        extract_suvr(moved, brain[1], tiny)
    found = extract_suvr(moved, brain[1], tiny, accept_low_coverage=True)
    assert found.overlap < 0.9
    assert "accepted: the image covers" in " ".join(found.notes)


def test_references_by_name_and_by_mask(brain, tiny, tmp_path):
    labels = nibabel.load(brain[1])
    codes = np.asarray(labels.dataobj)
    for name, numbers in [
        ("pons", [174]),
        ("whole cerebellum", [7, 8, 46, 47]),
        ("cerebellar_cortex", [8, 47]),
    ]:
        mask = np.isin(codes, numbers).astype(np.uint8)
        path = save(tmp_path / f"{name}.nii.gz", mask, labels.affine)
        named = extract_suvr(*brain, tiny, name)
        masked = extract_suvr(*brain, tiny, path)
        np.testing.assert_allclose(named.values, masked.values, rtol=1e-12)
        assert named.reference_coverage == masked.reference_coverage
    with pytest.raises(ParameterError, match=r"reference must be one of .*'moon'"):
        extract_suvr(*brain, tiny, "moon")
    empty = save(tmp_path / "empty.nii", np.zeros((3, 3, 3)), np.eye(4))
    with pytest.raises(FileFormatError, match=r"empty\.nii: expected a mask"):
        extract_suvr(*brain, tiny, empty)
    some = np.where(np.isin(codes, NUMBERS), codes, 0)
    bare = save(tmp_path / "bare.nii", some, labels.affine)
    with pytest.raises(FileFormatError, match="no label for the pons"):
        extract_suvr(brain[0], bare, tiny, "pons")
    far = save(tmp_path / "far.nii", np.ones((3, 3, 3)), np.diag([1, 1, 90, 1]))
    with pytest.raises(FileFormatError, match=r"covers \d+% of the reference"):
        extract_suvr(*brain, tiny, far)
    negative = rewrite(brain[0], tmp_path / "n.nii", lambda v, a: (-v, a))
    with pytest.raises(FileFormatError, match=r"reference pons is -.*more than 0"):
        extract_suvr(negative, brain[1], tiny, "pons")


def test_frames_are_averaged_by_duration(brain, tiny, tmp_path):
    image = nibabel.load(brain[0])
    one = image.get_fdata()
    four = np.stack([one * 9, one, one[::-1], one * 7], axis=3)
    path = save(tmp_path / "tacs.nii.gz", four, image.affine)
    times = [(0, 100), (100, 200), (200, 500), (500, 600)]
    mean = save(tmp_path / "mean.nii", (one + 3 * one[::-1]) / 4, image.affine)
    wanted = extract_suvr(mean, brain[1], tiny)
    given = extract_suvr(path, brain[1], tiny, frames=(100, 500), frame_times=times)
    np.testing.assert_allclose(given.values, wanted.values, rtol=1e-12)
    with pytest.raises(ParameterError, match="has 4 frames; say which to average"):
        extract_suvr(path, brain[1], tiny)
    with pytest.raises(ParameterError, match="times of its frames are not known"):
        extract_suvr(path, brain[1], tiny, frames=(100, 500))
    with pytest.raises(FileFormatError, match=r"4 frames, but times of shape \(3, 2\)"):
        extract_suvr(path, brain[1], tiny, frames=(0, 9), frame_times=times[1:])
    start, end = np.array(times).T
    said = {"FrameTimesStart": start.tolist(), "FrameDuration": (end - start).tolist()}
    (tmp_path / "tacs.json").write_text(json.dumps(said))
    beside = extract_suvr(path, brain[1], tiny, frames=(100, 500))
    np.testing.assert_array_equal(beside.values, given.values)
    with pytest.raises(FileFormatError, match="must begin and end where frames do"):
        extract_suvr(path, brain[1], tiny, frames=(150, 500))


def test_erosion_and_fewest_voxels(tiny, tmp_path):
    labels = np.zeros((30, 7, 7), dtype=np.int32)
    for k, number in enumerate([*NUMBERS, 8]):
        labels[1 + 3 * k : 4 + 3 * k, 1:6, 1:6] = number
    labels[4:7] = 0
    labels[5, 3, 3] = 1102  # a single voxel
    parcellation = save(tmp_path / "l.nii", labels, np.eye(4))
    values = np.random.default_rng(0).gamma(5, 1, labels.shape)
    pet = save(tmp_path / "p.nii", values, np.eye(4))
    found = extract_suvr(pet, parcellation, tiny, erosion=1, min_voxels=2)
    assert found.n_voxels.tolist() == [9, 0, 9, 9, 9, 9, 9]
    assert found.means[2] == pytest.approx(values[8, 2:5, 2:5].mean(), rel=1e-12)
    assert np.isnan(found.values[1])
    assert found.notes[-1] == "not measured, fewer than 2 covered voxels: lh_b"
    few = extract_suvr(pet, parcellation, tiny, min_voxels=2)
    assert few.n_voxels[1] == 1
    assert np.isnan(few.values[1])
    with pytest.raises(ParameterError, match="erosion must be at least 0"):
        extract_suvr(pet, parcellation, tiny, erosion=-1)
    with pytest.raises(ParameterError, match="grid must be one of"):
        extract_suvr(pet, parcellation, tiny, grid="mni")


def test_fdopa_equals_nilearn_and_a_moved_affine_is_refused(shared, tmp_path):
    resampling = pytest.importorskip("nilearn.image", reason="nilearn is absent")
    atlas = load_atlas("destrieux160")
    pet = shared / "pet_mni/juspace_FDOPA_f18.nii"
    parcellation = shared / "fs_cvs_avg35_inMNI152/aparc.a2009s+aseg.mgz"
    mask = shared / "pet_mni/clinica_region-pons_eroded-6mm_mask.nii.gz"
    found = extract_suvr(pet, parcellation, atlas, mask)
    image = nibabel.load(pet)
    labels = resampling.resample_to_img(
        nibabel.load(parcellation),
        image,
        interpolation="nearest",
        force_resample=True,
        copy_header=True,
    )
    codes, values = np.asarray(labels.dataobj), image.get_fdata()
    frame = found.to_frame()
    for name, number in zip(atlas.names, atlas.regions["freesurfer_id"], strict=True):
        inside = values[codes == number]
        mean = float(np.mean(inside[inside != 0], dtype=np.float64))
        assert frame.loc[name, "mean"] == pytest.approx(mean, rel=1e-6)
    step = np.eye(4)
    step[1, 3] = 3
    other = rewrite(pet, tmp_path / "other.nii", lambda v, a: flip(v[:, 3:], a @ step))
    again = extract_suvr(other, parcellation, atlas, mask)
    np.testing.assert_allclose(again.values, found.values, rtol=1e-6)
    moved = image.affine.copy()
    moved[0, 3] += 20
    path = save(tmp_path / "moved.nii", values, moved)
    with pytest.raises(FileFormatError, match=r"covers 6\d% of the regions' voxels"):
        extract_suvr(path, parcellation, atlas, mask)
