"""Open data that lie beside the checkout, read and run; skipped where they are not."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from brainlsap.data import load_cohort
from brainlsap.evaluation import cross_validate
from brainlsap.model import LSAPClassifier

pytestmark = pytest.mark.usefixtures("brief_studies")
ROOT = Path(__file__).parents[1]
BNU1, SCAN = "bnu1_connectomes", "sub-0025865_ses-2"


@pytest.fixture(scope="module")
def fcon1000(shared):
    template = shared / "tract_mni_destrieux/expected/count_radial4_sym_zerodiag.csv"
    how = {"label": "sex", "connectome": template, "subcortex": "volume"}
    how["row_order"] = "mrtrix"
    return load_cohort(shared / "fcon1000_destrieux", **how)


@pytest.fixture(scope="module")
def bnu1(shared, tmp_path_factory):
    script = ROOT / "benchmarks" / "bnu1_cohort.py"
    if not (script.is_file() and (shared / BNU1).is_dir()):
        pytest.skip("the program or the data of BNU1 are not here")
    folder = tmp_path_factory.mktemp("bnu1") / "study"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", [str(script), str(folder)])
        runpy.run_path(str(script), run_name="__main__")
    return load_cohort(folder, atlas="desikan82", feature="strength", label="sex")


def quick_fit(cohort):
    """Return the evaluation of a few epochs on two folds, and check the folds."""
    model = LSAPClassifier(n_epochs=6, n_starts=1, random_state=0)
    evaluation = cross_validate({"LSAP-C": model}, cohort, 2, baselines=False)
    told = evaluation.predictions
    assert sorted(told["scan"]) == sorted(cohort.table["scan"])
    assert (told.groupby("participant")["fold"].nunique() == 1).all()
    assert (told.groupby("fold")["truth"].nunique() == len(cohort.classes)).all()
    return evaluation


def test_fcon1000_holds_thickness_and_volumes(fcon1000):
    below = (fcon1000.atlas.regions["structure"] == "subcortex").to_numpy()
    assert below.sum() == 12
    assert (~fcon1000.measured).sum() == 2  # two regions of cortex are absent
    thickness = fcon1000.features[:, ~below, 0]
    assert 1.5 < np.nanmin(thickness.mean(axis=0)) < np.nanmax(thickness) < 6
    assert fcon1000.features[:, below, 0].min() > 200  # mm3


def test_fcon1000_is_classified(fcon1000):
    every_fifth = fcon1000.select(np.arange(0, fcon1000.n_scans, 5))
    evaluation = quick_fit(every_fifth)
    assert (evaluation.scores()["auc"] > 0.6).all()  # 0.87 is known to be possible
    final = evaluation.scales.query("start == 'mean' and share == 1")
    assert len(final) == 2 * 160


def test_bnu1_is_read_whole(bnu1, shared):
    assert bnu1.connectomes.shape == (98, 82, 82)
    assert bnu1.features.shape == (98, 82, 1)
    people, visits = np.unique(bnu1.groups.astype(str), return_counts=True)
    assert len(people) == 49
    assert set(visits) == {2}
    assert bnu1.classes == ("0", "1")
    assert [int((bnu1.y == one).sum()) for one in "01"] == [46, 52]
    own = np.einsum("nii->ni", bnu1.connectomes)
    strength = bnu1.connectomes.sum(axis=2) - own
    np.testing.assert_allclose(bnu1.features[:, :, 0], strength, rtol=1e-6)
    with np.load(next((shared / BNU1).glob("*.npz")), allow_pickle=False) as archive:
        raw = archive["count"][archive["scan_id"].tolist().index(SCAN)]
    mine = bnu1.connectomes[bnu1.table["scan"].tolist().index(SCAN)]
    left, right, below = mine[0, 4], mine[34, 81], mine[3, 67]
    assert (left, right, below) == (raw[0, 5], raw[35, 83], raw[4, 69])


def test_bnu1_keeps_the_visits_of_a_person_together(bnu1):
    assert quick_fit(bnu1).predictions["participant"].nunique() == 49
