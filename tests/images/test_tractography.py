"""Connectomes from streamlines: the slow truth, MRtrix, names, what is refused.

`benchmarks/tractography.py` compares every rule with an installed MRtrix, cell by cell.
"""

import nibabel
import numpy as np
import pandas as pd
import pytest
from nibabel.streamlines import Tractogram

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.connectomes import read_connectome
from brainlsap.exceptions import FileFormatError
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
    with pytest.raises(FileFormatError, match=r"120 streamlines, but 119 weights in"):
        build_connectome(*files, *rule, streamline_weights=factors[1:])


def test_blocks_and_threads_do_not_matter(tmp_path, counted, monkeypatch):
    image = draw_labels(OBLIQUE, 0.4)
    files = save(tmp_path, image, draw_lines(image, 90))
    whole = build_connectome(*files, counted, weight="inverse_length", n_threads=1)
    monkeypatch.setattr("brainlsap.images.streamlines.BLOCK", 13)
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
    assert "3 of 6 streamlines kept" in made.notes[-1]
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
