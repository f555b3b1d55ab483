"""SUVR of regions: the slow truth, grids and affines, references, what is refused."""

import nibabel
import numpy as np
import pandas as pd
import pytest
from nibabel.affines import apply_affine
from scipy import ndimage

from brainlsap.atlas import load_atlas
from brainlsap.data.region_tables import REFERENCES
from brainlsap.exceptions import BrainlsapError, FileFormatError, ParameterError
from brainlsap.images import extract_suvr

NUMBERS = [1101, 1102, 1103, 2101, 2102, 2103, 18]
# FreeSurfer's labels of every reference region.
LABELS_BY_REFERENCE = {
    "cerebellar cortex": [8, 47],
    "cerebellar white matter": [7, 46],
    "pons": [174],
    "brain stem": [16],
    "whole cerebellum": [7, 8, 46, 47],
}
BESIDE = sorted(set().union(*LABELS_BY_REFERENCE.values()))
FINE = np.array([[-1.0, 0, 0, 14], [0, 0, 1, -9], [0, -1, 0, 12], [0, 0, 0, 1]])


def save_image(path, values, affine):
    nibabel.save(nibabel.Nifti1Image(values, affine), path)
    return path


@pytest.fixture
def brain(tmp_path):
    """Blocks of labels on a grid of 1 mm, and a PET on a coarse oblique one."""
    rng = np.random.default_rng(6)
    blocks = rng.permutation(np.resize([*NUMBERS, *BESIDE], 7 * 6 * 5))
    labels = np.kron(blocks.reshape(7, 6, 5), np.ones((4, 4, 4), dtype=np.int32))
    parcellation = save_image(tmp_path / "labels.nii.gz", labels.astype("i4"), FINE)
    affine = np.eye(4)
    affine[:3, :3] = nibabel.eulerangles.euler2mat(0.05, 0.1, -0.07) * 2.1
    affine[:3, 3] = -18.3, -14.7, -13.1
    pet = rng.gamma(9, 1, (19, 17, 18))
    return save_image(tmp_path / "pet.nii.gz", pet, affine), parcellation


def rewrite(path, out, change):
    image = nibabel.load(path)
    return save_image(out, *change(image.get_fdata(), image.affine.copy()))


def extract(*given, **more):
    return extract_suvr(*given, **{"same_space": True} | more)


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


def spoil(values, affine):
    """Return an image with holes: nothing is covered where it is 0, NaN or infinite."""
    values[3:6, 4:9, 5:8] = 0
    values[8:10, 8:10, 8:10] = np.nan
    values[1, 5:8, 5] = np.inf
    return values, affine


@pytest.mark.parametrize("has_holes", [False, True])
def test_means_equal_the_slow_truth(brain, tiny, tmp_path, has_holes):
    pet, labels = brain
    pet = rewrite(pet, tmp_path / "spoilt.nii", spoil) if has_holes else pet
    found = extract(pet, labels, tiny)
    slow, counts = slow_means(pet, labels, [*NUMBERS, 8, 47])
    reference = np.average(slow[-2:], weights=[counts[8], counts[47]])
    np.testing.assert_allclose(found.table["mean"], slow[:7], rtol=1e-12)
    np.testing.assert_allclose(found.table["suvr"], slow[:7] / reference, rtol=1e-12)
    assert found.table["n_voxels"].tolist() == [counts[n] for n in NUMBERS]
    assert found.table.loc["rh_b", "suvr"] == found.table["suvr"].iloc[4]
    assert (found.overlap < extract(brain[0], labels, tiny).overlap) == has_holes
    assert np.isnan(found.shift_mm)  # no whole brain


def test_low_coverage_is_refused_unless_accepted(brain, tiny, tmp_path):
    def move(values, affine):
        affine[0, 3] += 8
        return values, affine

    moved = rewrite(brain[0], tmp_path / "moved.nii", move)
    with pytest.raises(FileFormatError, match=r"covers \d\d% of the regions' voxels"):
        extract(moved, brain[1], tiny)
    found = extract(moved, brain[1], tiny, accept_low_coverage=True)
    assert found.overlap < 0.9
    assert "the image covers" in " ".join(found.notes)


def test_the_labels_of_every_reference_are_known():
    assert LABELS_BY_REFERENCE.keys() == REFERENCES.keys(), (
        "add FreeSurfer's labels of every reference region to LABELS_BY_REFERENCE"
    )


@pytest.mark.parametrize(
    ("name", "numbers"),
    [*LABELS_BY_REFERENCE.items(), ("cerebellar_cortex", [8, 47])],
)
def test_a_reference_by_name_is_its_mask(brain, tiny, tmp_path, name, numbers):
    labels = nibabel.load(brain[1])
    mask = np.isin(np.asarray(labels.dataobj), numbers).astype(np.uint8)
    path = save_image(tmp_path / "mask.nii.gz", mask, labels.affine)
    named, masked = extract(*brain, tiny, name), extract(*brain, tiny, path)
    np.testing.assert_allclose(named.table["suvr"], masked.table["suvr"], rtol=1e-12)
    assert named.reference_coverage == masked.reference_coverage


def test_no_two_references_are_the_same_regions():
    name_by_cores = {frozenset(cores): name for name, cores in REFERENCES.items()}
    assert list(name_by_cores.values()) == list(REFERENCES)


def test_references_that_are_none_are_refused(brain, tiny, tmp_path):
    def regions(values, affine):
        return np.where(np.isin(values, NUMBERS), values, 0).astype("i4"), affine

    empty = save_image(tmp_path / "empty.nii", np.zeros((3, 3, 3)), np.eye(4))
    far = save_image(tmp_path / "far.nii", np.ones((3, 3, 3)), np.diag([1, 1, 90, 1]))
    bare = rewrite(brain[1], tmp_path / "bare.nii", regions)
    negative = rewrite(brain[0], tmp_path / "n.nii", lambda v, a: (-v, a))
    nothing = rewrite(brain[0], tmp_path / "z.nii", lambda v, a: (0 * v, a))
    accept = {"accept_low_coverage": True}
    for pet, labels, reference, said, more in (
        (*brain, "moon", r"reference must be one of .*'moon'", {}),
        (*brain, empty, r"empty\.nii: expected a mask", {}),
        (brain[0], bare, "pons", "no labels for some parts of the .*pons", {}),
        (*brain, far, r"covers \d+% of the reference", {}),
        (negative, brain[1], "pons", "reference region pons is -.*more than 0", {}),
        (nothing, brain[1], "pons", "reference region pons is nan; expected", accept),
    ):
        with pytest.raises(BrainlsapError, match=said):
            extract(pet, labels, tiny, reference, **more)


def test_a_region_that_no_voxel_reaches_is_not_measured(tiny, tmp_path):
    labels = np.resize([*NUMBERS, 8], (16, 6, 6)).astype(np.int32)
    labels[labels == 1102] = 0
    labels[5, 5, 5] = 1102
    parcellation = save_image(tmp_path / "l.nii", labels, np.eye(4))
    values = np.random.default_rng(0).gamma(5, 1, labels.shape)
    values[5, 5, 5] = 0
    pet = save_image(tmp_path / "p.nii", values, np.eye(4))
    found = extract(pet, parcellation, tiny)
    assert found.table["suvr"].isna().tolist() == [n == 1102 for n in NUMBERS]
    assert found.table.loc["lh_b", ["n_voxels", "coverage"]].tolist() == [0, 0]
    assert (
        found.notes[-1] == "regions without a covered voxel count as not measured: lh_b"
    )


@pytest.mark.parametrize(
    ("pet", "parcellation", "is_said"),
    [
        ("sub-1_pet.nii", "aparc+aseg.mgz", False),
        ("sub-1_space-T1w_pet.nii", "aparc+aseg.mgz", True),
        ("sub-1_space-anat_pet.nii", "sub-1_space-T1w_dseg.nii", True),
        ("sub-1_space-MNI152Lin_pet.nii", "aparc+aseg.mgz", False),
        ("sub-1_space-MNI152Lin_pet.nii", "tpl_space-MNI152Lin_dseg.nii", True),
        ("sub-1_space-T1w_pet.nii", "sub-1_space-MNI152Lin_dseg.nii", False),
    ],
)
def test_pet_must_be_in_the_space_of_the_parcellation(
    tiny, tmp_path, pet, parcellation, is_said
):
    labels = np.resize([*NUMBERS, 8], (4, 4, 4)).astype("i4")
    image = nibabel.MGHImage if parcellation.endswith("mgz") else nibabel.Nifti1Image
    nibabel.save(image(labels, np.eye(4)), tmp_path / parcellation)
    save_image(tmp_path / pet, np.full((4, 4, 4), 2.0), np.eye(4))
    files = tmp_path / pet, tmp_path / parcellation
    if not is_said:
        with pytest.raises(
            ParameterError,
            match=r"does not contain the space of the parc.*same_space=True",
        ):
            extract_suvr(*files, tiny)
        for consent in ({"same_space": True}, {"transform": np.eye(4)}):
            assert (extract_suvr(*files, tiny, **consent).table["suvr"] == 1).all()
    else:
        assert (extract_suvr(*files, tiny).table["suvr"] == 1).all()


def simulated_head(labels, affine):
    """Return FDG of a whole head, smooth, with scalp and noise, and its affine."""
    whole = np.pad(labels, 10)
    brain = ndimage.binary_fill_holes(ndimage.binary_closing(whole > 0, iterations=3))
    depth = ndimage.distance_transform_edt(~brain)
    uptake = np.where(whole >= 1000, 1.3, np.where(np.isin(whole, (8, 47)), 1.0, 0.5))
    uptake = np.where((whole > 0) | brain, uptake, 0.0)
    uptake[(depth > 4) & (depth < 8)] = 0.4
    uptake = ndimage.gaussian_filter(uptake, 1.5) + 0.05
    uptake += np.random.default_rng(0).normal(0, 0.1, uptake.shape)
    start = affine.copy()
    start[:3, 3] -= affine[:3, :3].sum(axis=1) * 10
    return uptake.astype("f4"), start


def test_a_shift_of_the_whole_head_is_noticed(shared, tmp_path):
    image = nibabel.load(shared / "fs_ds004230_PS11/aparc.a2009s+aseg.mgz")
    labels = np.asarray(image.dataobj)[::4, ::4, ::4]
    coarse = image.affine @ np.diag([4.0, 4.0, 4.0, 1.0])
    path = save_image(tmp_path / "labels.nii", labels, coarse)
    uptake, affine = simulated_head(labels, coarse)
    pet = save_image(tmp_path / "pet.nii", uptake, affine)
    assert extract(pet, path).shift_mm < 4
    for shift in ((0, 0, -14), (0, 8, 12)):
        moved = affine.copy()
        moved[:3, 3] += shift
        save_image(pet, uptake, moved)
        with pytest.raises(
            FileFormatError, match="matches the labels best when it is moved by"
        ):
            extract(pet, path)
    found = extract(pet, path, accept_low_coverage=True)
    assert found.overlap > 0.99
    assert found.shift_mm == pytest.approx(14.4, abs=3)
    assert "the image matches the labels best when it is moved" in found.notes[-1]
    back = np.eye(4)
    back[:3, 3] = 0, -8, -12
    assert extract_suvr(pet, path, transform=back).shift_mm < 4


def test_fdopa_equals_nilearn(shared):
    resampling = pytest.importorskip("nilearn.image", reason="nilearn is absent")
    atlas = load_atlas("destrieux160")
    pet = shared / "pet_mni/juspace_FDOPA_f18.nii"
    parcellation = shared / "fs_cvs_avg35_inMNI152/aparc.a2009s+aseg.mgz"
    mask = shared / "pet_mni/clinica_region-pons_eroded-6mm_mask.nii.gz"
    found = extract(pet, parcellation, atlas, mask)
    image = nibabel.load(pet)
    labels = resampling.resample_to_img(
        nibabel.load(parcellation),
        image,
        interpolation="nearest",
        force_resample=True,
        copy_header=True,
    )
    values = pd.Series(image.get_fdata().ravel()).replace(0, np.nan)
    means = values.groupby(labels.get_fdata().ravel()).mean()
    wanted = means[atlas.regions["freesurfer_id"]]
    np.testing.assert_allclose(found.table["mean"], wanted, rtol=1e-6)
    assert found.shift_mm < 4
