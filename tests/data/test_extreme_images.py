"""Extreme images either give finite numbers, or are refused by the package's errors."""

import nibabel
import numpy as np
import pytest

from brainlsap.data import build_connectome, extract_suvr
from brainlsap.exceptions import BrainlsapError

NAMES = ("lh_a", "lh_b", "rh_a", "Left-Cerebellum-Cortex")


def put(value, *where):
    def change(image):
        image[where] = value

    return change


def times(unit):
    def change(image):
        image *= unit

    return change


HOLDS = {
    "plain": times(1.0),
    "constant": put(3.0),
    "of 1e-30": times(1e-30),
    "of 1e30": times(1e30),
    "of 1e-300": times(1e-300),
    "of 1e300": times(1e300),
    "a region without uptake": put(1e-300, 1),
    "a negative region": put(-4.0, 2),
    "a region that is NaN": put(np.nan, 1, 0),
    "a voxel that is infinite": put(np.inf, 1, 0, 0),
    "a huge voxel": put(1e300, 1, 0, 0),
}
REFUSED = {
    "zero": put(0.0),
    "NaN": put(np.nan),
    "infinite": put(-np.inf),
    "a reference of 0": put(0.0, 4),
    "a negative reference": put(-1.0, 4),
    "a reference that is NaN": put(np.nan, 4),
    "too small a reference": put(1e-310, 4),
    "too large a region": put(1e308, 1),
    "a sum beyond every number": put(1e308),
}


@pytest.fixture
def folder(tmp_path):
    labels = np.zeros((5, 4, 6), dtype=np.int16)
    for code in range(1, 5):
        labels[code] = code
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4)), tmp_path / "labels.nii")
    rows = ("name\themisphere", "lh_a\tL", "lh_b\tL", "rh_a\tR", "")
    (tmp_path / "regions.tsv").write_text("\n".join(rows))
    return tmp_path


def measured(folder, change, grid):
    rng = np.random.default_rng(4)
    image = rng.uniform(1.0, 2.0, (5, 4, 6))
    change(image)
    nibabel.save(nibabel.Nifti1Image(image, np.eye(4)), folder / "pet.nii")
    return extract_suvr(
        folder / "pet.nii",
        folder / "labels.nii",
        folder / "regions.tsv",
        labels=NAMES,
        grid=grid,
        accept_low_coverage=True,
    )


@pytest.mark.parametrize("grid", ["pet", "parcellation"])
@pytest.mark.parametrize("case", HOLDS)
def test_uptake_holds(folder, case, grid):
    found = measured(folder, HOLDS[case], grid)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.means).all()
    assert found.reference_mean > 0


@pytest.mark.parametrize("unit", [1e-300, 1e-30, 1e30, 1e300])
def test_uptake_has_no_unit(folder, unit):
    plain = measured(folder, times(1.0), "pet").values
    np.testing.assert_allclose(
        measured(folder, times(unit), "pet").values, plain, rtol=1e-12
    )


@pytest.mark.parametrize("grid", ["pet", "parcellation"])
@pytest.mark.parametrize("case", REFUSED)
def test_uptake_that_cannot_be_is_refused(folder, case, grid):
    with pytest.raises(BrainlsapError, match=r"pet\.nii: .*(reference|cover|region)"):
        measured(folder, REFUSED[case], grid)


def walk(*ends, size=5):
    return np.linspace(*ends, size).astype(np.float32)


HELD_LINES = {
    "plain": [walk([1, 1, 1], [3, 1, 2])],
    "none": [],
    "a single point": [walk([1, 1, 1], [1, 1, 1], size=1)],
    "no length": [walk([2, 2, 2], [2, 2, 2])],
    "a tiny length": [walk([1, 1, 1], [1, 1, 1 + 1e-7])],
    "far away": [walk([1e30, 0, 0], [-1e30, 1e30, 0])],
    "from here to far": [walk([1, 1, 1], [3e38, 0, 0], size=2)],
    "many alike": [walk([1, 1, 1], [3, 1, 2])] * 3000,
}
WEIGHTED = ("count", "inverse_length", "inverse_node_volume", "mean_length")


def built(folder, lines, weight="count", **given):
    tractogram = nibabel.streamlines.Tractogram(lines, affine_to_rasmm=np.eye(4))
    nibabel.streamlines.save(tractogram, str(folder / "tracks.tck"))
    table, labels = folder / "regions.tsv", folder / "labels.nii"
    return build_connectome(
        folder / "tracks.tck", labels, table, labels=NAMES, weight=weight, **given
    )


@pytest.mark.parametrize("weight", WEIGHTED)
@pytest.mark.parametrize("case", HELD_LINES)
def test_streamlines_hold(folder, case, weight):
    found = built(folder, HELD_LINES[case], weight)
    assert np.isfinite(found.matrix).all()
    assert found.n_streamlines == len(HELD_LINES[case])
    rule = built(folder, HELD_LINES[case], weight, assignment="reverse_search")
    assert np.isfinite(rule.matrix).all()


@pytest.mark.parametrize("weight", WEIGHTED)
@pytest.mark.parametrize("unit", [0.0, 1e-300, 1e-30, 1e30, 1e300])
def test_streamlines_weigh_what_they_are_said_to(folder, weight, unit):
    lines = HELD_LINES["many alike"][:3]
    found = built(folder, lines, weight, streamline_weights=np.full(3, unit))
    plain = built(folder, lines, weight).matrix
    if weight != "mean_length":
        plain = plain * unit
    elif unit == 0:
        plain = np.zeros_like(plain)
    np.testing.assert_allclose(found.matrix, plain, rtol=1e-12)


@pytest.mark.parametrize("weight", ["count", "mean_length"])
def test_streamlines_that_weigh_too_much_are_refused(folder, weight):
    lines = HELD_LINES["many alike"][:3]
    with pytest.raises(BrainlsapError, match=r"tracks\.tck: .*weights"):
        built(folder, lines, weight, streamline_weights=np.full(3, 1e308))
