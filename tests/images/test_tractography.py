"""Connectomes from streamlines: the slow truth, MRtrix, names, what is refused.

`benchmarks/tractography.py` compares every rule with an installed MRtrix, cell by cell.
"""

import json
import zipfile

import nibabel
import numpy as np
import pandas as pd
import pytest
from nibabel.streamlines import Tractogram

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.connectomes import read_connectome
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.images.tractography import WEIGHTS, build_connectome
from tests.images.slow_tractography import RULES, slow_connectome

N_LABELS = 7
SHAPE = (9, 10, 11)
# Oblique, with voxels of three sizes; and one whose arithmetic is exact.
TURN = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
OBLIQUE = np.eye(4)
OBLIQUE[:3, :3] = TURN @ np.diag([1.5, -2.0, 2.5])
OBLIQUE[:3, 3] = 4.0, -7.0, 2.0
LAS = np.array([[-2.0, 0, 0, 9], [0, 0, 2, -8], [0, -2, 0, 10], [0, 0, 0, 1]])


@pytest.fixture
def counted():
    """Return an atlas of seven regions without FreeSurfer's numbers."""
    names = [f"lh_r{i}" for i in range(N_LABELS)]
    table = pd.DataFrame({"name": names, "freesurfer_id": -1, "hemisphere": "L"})
    return Atlas("counted", table.assign(structure="cortex", short_name=names))


def draw_labels(affine, share, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(1, N_LABELS + 1, SHAPE) * (rng.random(SHAPE) < share)
    labels.ravel()[:N_LABELS] = np.arange(1, N_LABELS + 1)
    return nibabel.Nifti1Image(labels.astype(np.int16), affine)


def draw_lines(image, n, seed=1, grid=None):
    """Return random walks, some outside the image; on a grid, distances tie."""
    rng = np.random.default_rng(seed)
    lines = []
    for k in range(n):
        size = 1 + k % 9
        start = rng.uniform(-2, np.array(SHAPE) + 1)
        walk = start + np.cumsum(rng.normal(0, 0.8, (size, 3)), axis=0)
        points = nibabel.affines.apply_affine(image.affine, walk)
        if grid:
            points = np.round(points / grid) * grid
        lines.append(points.astype(np.float32))
    return lines


def save(folder, image, lines):
    nibabel.save(image, folder / "nodes.nii.gz")
    made = Tractogram(lines, affine_to_rasmm=np.eye(4))
    nibabel.streamlines.save(made, str(folder / "tracks.tck"))
    return folder / "tracks.tck", folder / "nodes.nii.gz"


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("radius", [1.2, 3.0])
@pytest.mark.parametrize(
    ("affine", "share", "grid"), [(OBLIQUE, 0.15, None), (LAS, 0.2, 1.0)]
)
def test_every_rule_equals_the_slow_truth(
    tmp_path, counted, rule, radius, affine, share, grid
):
    image = draw_labels(affine, share)
    lines = draw_lines(image, 150, grid=grid)
    near = nibabel.as_closest_canonical(image)
    labels = np.asarray(near.dataobj)
    slow, n_kept = slow_connectome(
        lines, labels, near.affine, rule, radius, "count", np.ones(150)
    )
    made = build_connectome(*save(tmp_path, image, lines), counted, rule, radius)
    np.testing.assert_array_equal(made.matrix, slow)
    assert (made.n_streamlines, made.n_kept) == (150, n_kept)
    assert made.n_unassigned == 150 - n_kept
    assert n_kept > 0


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_every_weight_equals_the_slow_truth(tmp_path, counted, weight, is_weighted):
    image = draw_labels(OBLIQUE, 0.5)
    lines = draw_lines(image, 120)
    factors = np.random.default_rng(5).gamma(2, 1, 120) if is_weighted else np.ones(120)
    near = nibabel.as_closest_canonical(image)
    slow, _ = slow_connectome(
        lines, np.asarray(near.dataobj), near.affine, "radial", 2.0, weight, factors
    )
    files = save(tmp_path, image, lines)
    given = tmp_path / "sift.txt" if is_weighted else None
    np.savetxt(tmp_path / "sift.txt", factors, header="command_history: tcksift2")
    rule = (counted, "radial", 2.0, weight)
    made = build_connectome(*files, *rule, streamline_weights=given)
    np.testing.assert_allclose(made.matrix, slow, rtol=1e-6)
    assert (slow > 0).sum() > 10
    with pytest.raises(FileFormatError, match=r"120 streamlines, .* 119 weights"):
        build_connectome(*files, *rule, streamline_weights=factors[1:])


def test_blocks_and_threads_do_not_matter(tmp_path, counted, monkeypatch):
    image = draw_labels(OBLIQUE, 0.4)
    files = save(tmp_path, image, draw_lines(image, 90))
    whole = build_connectome(*files, counted, weight="inverse_length", n_threads=1)
    monkeypatch.setattr("brainlsap.images.tractography.BLOCK_POINTS", 13)
    one = build_connectome(*files, counted, weight="inverse_length", n_threads=1)
    three = build_connectome(*files, counted, weight="inverse_length", n_threads=3)
    np.testing.assert_array_equal(one.matrix, three.matrix)
    np.testing.assert_allclose(one.matrix, whole.matrix, rtol=1e-12)
    assert one.n_kept == whole.n_kept > 0


def test_regions_come_by_name_and_others_are_counted(tmp_path, tiny):
    labels = np.zeros((8, 1, 1), dtype=np.int32)
    # lh_a, cerebellum, white matter, rh_a, and the five others
    labels[:, 0, 0] = 1101, 8, 2, 2101, 1102, 1103, 2102, 2103
    labels = np.concatenate([labels, np.full((1, 1, 1), 18, np.int32)])
    image = nibabel.Nifti1Image(labels, np.eye(4))
    ends = [(0, 3), (3, 0), (0, 1), (2, 0), (8, 8), (4, 20)]
    lines = [np.array([[a, 0, 0], [b, 0, 0]], dtype=np.float32) for a, b in ends]
    made = build_connectome(*save(tmp_path, image, lines), tiny, "end_voxels")
    frame = made.to_frame()
    assert frame.loc["lh_a", "rh_a"] == frame.loc["rh_a", "lh_a"] == 2
    assert frame.loc["Left-Amygdala", "Left-Amygdala"] == 1
    assert frame.to_numpy().sum() == 5
    assert (made.n_kept, made.n_unassigned, made.n_outside) == (3, 2, 1)
    assert "3 of 6 streamlines" in made.notes[-1]
    # by the radial search, white matter is no node: the nearest is cerebellum or rh_a
    near = build_connectome(*save(tmp_path, image, lines), tiny, "radial", 1.5)
    assert near.n_unassigned == 1


def test_committed_matrices_of_mrtrix_are_met(shared):
    atlas, folder = load_atlas("destrieux160"), shared / "tract_mni_destrieux"
    lines, expected = folder / "stroke.trk.gz", folder / "expected"
    ends = build_connectome(lines, folder / "nodes164.nii.gz", atlas, "end_voxels")
    path = expected / "count_endvoxels.csv"
    known = read_connectome(path, atlas, row_order="mrtrix").matrix
    np.testing.assert_array_equal(ends.matrix, known)
    # the nodes are also made from FreeSurfer's own labels
    labels = shared / "fs_cvs_avg35_inMNI152/aparc.a2009s+aseg.mgz"
    radial = build_connectome(lines, labels, atlas)
    path = expected / "count_radial4_sym_zerodiag.csv"
    known = read_connectome(path, atlas, row_order="mrtrix").matrix
    np.fill_diagonal(radial.matrix, 0)
    np.testing.assert_array_equal(radial.matrix, known)
    assert radial.n_streamlines == 36763


# A ball of labels, as large as a brain: 32 voxels of 4 mm, its centre at 0 mm.
BRAIN = np.diag([4.0, 4.0, 4.0, 1.0])
BRAIN[:3, 3] = -62.0


@pytest.fixture(scope="module")
def brain():
    """Return labels of a ball 96 mm wide, and streamlines that end in it."""
    voxels = np.indices((32, 32, 32)).reshape(3, -1).T
    radius = np.linalg.norm(nibabel.affines.apply_affine(BRAIN, voxels), axis=1)
    rng = np.random.default_rng(0)
    labels = np.where(radius < 48, rng.integers(1, N_LABELS + 1, len(voxels)), 0)
    image = nibabel.Nifti1Image(labels.reshape(32, 32, 32).astype(np.int16), BRAIN)
    directions = rng.normal(size=(60, 2, 3))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    lines = directions * rng.uniform(20, 46, size=(60, 2, 1))
    return image, [line.astype(np.float32) for line in lines]


def save_as(folder, brain, move, name="tracks.tck", affine=None, shape=(32, 32, 32)):
    """Save labels and moved streamlines; with an affine in their header."""
    image, lines = brain
    nibabel.save(image, folder / "nodes.nii.gz")
    header = None
    if affine is not None:
        header = {
            "voxel_to_rasmm": affine,
            "dimensions": shape,
            "voxel_sizes": nibabel.affines.voxel_sizes(affine),
            "voxel_order": "".join(nibabel.aff2axcodes(affine)),
        }
    made = Tractogram([move(line) for line in lines], affine_to_rasmm=np.eye(4))
    nibabel.streamlines.save(made, str(folder / name), header=header)
    return folder / name, folder / "nodes.nii.gz"


def stay(points):
    return points


@pytest.mark.parametrize(
    ("move", "words"),
    [
        (
            lambda points: points + 500,
            "0.0% of the streamline ends are inside a region",
        ),
        (lambda points: points * 1.8, "outside the brain"),
        (lambda points: points + np.array([0, 40, 0]), "outside the brain"),
        (lambda points: points / 1000, "end within 0.088 mm of each other"),
        (lambda points: points / 10, "end within 8.8 mm of each other"),
    ],
)
def test_streamlines_that_lie_elsewhere_are_refused(
    tmp_path, brain, counted, move, words
):
    files = save_as(tmp_path, brain, lambda points: move(points).astype(np.float32))
    with pytest.raises(FileFormatError, match=words):
        build_connectome(*files, counted)
    assert build_connectome(*files, counted, same_space=True).n_streamlines == 60


def test_shares_of_ends_are_said_beside_what_is_usual(tmp_path, brain, counted):
    made = build_connectome(*save_as(tmp_path, brain, stay), counted)
    assert made.ends_in_nodes == 1
    assert made.ends_outside_brain == 0
    assert (
        "100% of the ends of streamlines are inside a region (usually about 80%)"
        in made.notes[1]
    )
    some = build_connectome(
        *save_as(tmp_path, brain, lambda x: x + np.float32([0, 8, 0])), counted
    )
    assert 0 < some.ends_outside_brain < 0.2
    assert 0.8 < some.ends_in_nodes < 1


def test_a_tractogram_without_streamlines_is_refused(tmp_path, brain, counted):
    files = save_as(tmp_path, (brain[0], []), stay)
    with pytest.raises(FileFormatError, match="contains no streamline"):
        build_connectome(*files, counted)


def shifted(mm):
    affine = BRAIN.copy()
    affine[1, 3] += mm
    return affine


@pytest.mark.parametrize("name", ["tracks.trk", "tracks.trx"])
def test_the_image_of_a_header_must_be_where_the_labels_are(
    tmp_path, brain, counted, name
):
    def saved(affine, shape=(32, 32, 32)):
        if name.endswith(".trx"):
            return save_trx(tmp_path, brain, affine, shape)
        return save_as(tmp_path, brain, stay, name, affine, shape)

    fine = np.diag([2.0, 2.0, 2.0, 1.0])
    fine[:3, 3] = -64.0
    mirrored = BRAIN @ np.array(
        [[-1, 0, 0, 31], [0, 1, 0, 0], [0, 0, 1, 0], [0] * 3 + [1]]
    )
    for affine, shape in (
        (BRAIN, (32, 32, 32)),
        (mirrored, (32, 32, 32)),  # the same image, stored from the other side
        (fine, (64, 64, 60)),  # of other voxels in the same place
        (np.eye(4), (1, 1, 1)),  # not filled in
    ):
        assert build_connectome(*saved(affine, shape), counted).n_kept > 0
    for affine, shape, words in (
        (shifted(20), (32, 32, 32), "20 mm apart"),
        (np.array(fine), (20, 64, 64), "covers .*% of the labelled"),
    ):
        files = saved(affine, shape)
        with pytest.raises(FileFormatError, match=words):
            build_connectome(*files, counted)
        assert build_connectome(*files, counted, same_space=True).n_kept > 0


def save_trx(folder, brain, affine, shape):
    """Write a .trx by hand: a header, points, and the first point of each line."""
    image, lines = brain
    nibabel.save(image, folder / "nodes.nii.gz")
    points = np.concatenate(lines).astype("<f4")
    header = {"DIMENSIONS": list(shape), "VOXEL_TO_RASMM": affine.tolist()}
    header |= {"NB_VERTICES": len(points), "NB_STREAMLINES": len(lines)}
    offsets = np.arange(0, len(points) + 1, 2, dtype="<u4")
    with zipfile.ZipFile(folder / "tracks.trx", "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("positions.3.float32", points.tobytes())
        archive.writestr("offsets.uint32", offsets.tobytes())
    return folder / "tracks.trx", folder / "nodes.nii.gz"


@pytest.mark.parametrize(
    ("lines", "labels", "is_refused"),
    [
        ("sub-01_space-MNI152NLin2009cAsym_tractography.tck", "nodes.nii.gz", True),
        ("sub-01_space-MNI152_tracks.tck", "sub-01_space-T1w_dseg.nii.gz", True),
        ("sub-01_space-T1w_tracks.tck", "space-MNI152NLin6Asym_dseg.nii.gz", True),
        ("sub-01_space-ACPC_tracks.tck", "aparc.a2009s+aseg.nii.gz", True),
        ("sub-01_space-T1w_tracks.tck", "aparc.a2009s+aseg.nii.gz", False),
        ("sub-01_space-ACPC_tracks.tck", "sub-01_space-acpc_dseg.nii.gz", False),
        ("sub-01_space-individual_tracks.tck", "sub-01_space-T1w_dseg.nii.gz", False),
        ("sub-01_space-RASMM_tracks.tck", "nodes.nii.gz", False),
        ("sub-01_tracks.tck", "sub-01_space-MNI152_dseg.nii.gz", True),
        ("sub-01_tracks.tck", "sub-01_space-dwi_dseg.nii.gz", False),
        ("sub-01_tracks.tck", "nodes.nii.gz", False),
    ],
)
def test_names_that_say_two_spaces_are_refused(
    tmp_path, brain, counted, lines, labels, is_refused
):
    tracks, nodes = save_as(tmp_path, brain, stay)
    files = tracks.rename(tmp_path / lines), nodes.rename(tmp_path / labels)
    if is_refused:
        with pytest.raises(ParameterError, match="give same_space=True"):
            build_connectome(*files, counted)
    assert build_connectome(*files, counted, same_space=is_refused).n_kept > 0
