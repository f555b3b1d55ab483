"""No size decides an order of rows; whatever decides is checked on the weights."""

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import Cohort, load_cohort, order_check, suggest_options
from brainlsap.data.check import make_refusal_check
from brainlsap.data.connectomes import read_connectome
from brainlsap.exceptions import CohortError, FileFormatError
from brainlsap.simulation import make_cohort
from tests.conftest import raises_kind

ATLAS, DESIKAN = load_atlas("destrieux160"), load_atlas("desikan82")
STRUCTURES = "Thalamus Caudate Putamen Pallidum Hippocampus Amygdala Accumbens-area"
TIAN = "Hippocampus Amygdala Thalamus Thalamus Accumbens-area Pallidum Putamen Caudate"
CEREBELLUM = "Cerebellum-Cortex"


def cortex(atlas, side):
    regions = atlas.regions[atlas.cortex & (atlas.regions["hemisphere"] == side)]
    return regions["name"].tolist()


def deep(parts, sides=("Left", "Right")):
    return [f"{side}-{part}" for side in sides for part in parts.split()]


def orders(atlas):
    """Rows of tools, as their documentation lists them."""
    left, right = cortex(atlas, "L"), cortex(atlas, "R")
    numbered = deep(f"{CEREBELLUM} {STRUCTURES}")
    cerebella = deep(CEREBELLUM)
    return {
        "mrtrix": [*left, cerebella[0], *deep(STRUCTURES), *right, cerebella[1]],
        "ukbiobank": [*left, *right, *deep(TIAN, ("Right", "Left"))],
        "labels-cerebellum": [*numbered, *left, *right],
        "aseg-cerebellum": [*left, *right, *deep(STRUCTURES), *cerebella],
    }


def write_rows(matrix, atlas, names):
    """Return a matrix of the atlas' regions with rows of these names; others are 0."""
    places = [atlas.find(name) for name in names]
    n_parts = pd.Series(places).value_counts()
    spread = np.zeros((len(names), len(atlas)))
    for row, region in enumerate(places):
        if region is not None:
            spread[row, region] = 1 / n_parts[region]
    return spread @ matrix @ spread.T


@pytest.fixture(scope="module")
def brains():
    """A brain-like matrix for each atlas: simulated streamlines, longer ones rarer."""
    names = ("destrieux160", "desikan82", "schaefer100")
    made = {
        n: make_cohort(5, atlas=n, visit_shares=(1,), random_state=1) for n in names
    }
    return {name: one.connectomes.mean(axis=0) for name, one in made.items()}


def save(folder, matrix, name="c.csv"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, matrix, "%.6g", ",")
    return path


# ---- UK Biobank ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("atlas", "word"), [(ATLAS, "aparc.a2009s"), (DESIKAN, "aparc")], ids=str
)
def test_uk_biobank_is_read_by_its_path(tmp_path, brains, atlas, word):
    brain = brains[atlas.name]
    ids = [f"{1000000 + i}_2" for i in range(4)]
    rows = {"participant_id": ids, "diagnosis": ["CN", "AD"] * 2}
    pd.DataFrame(rows).to_csv(tmp_path / "participants.tsv", sep="\t", index=False)
    values = np.random.default_rng(0).normal(1.2, 0.1, (4, len(atlas)))
    table = pd.DataFrame(values, ids, [f"{name}_fdg" for name in atlas.names])
    table.to_csv(tmp_path / "fdg.csv", index_label="participant_id")
    matrix = write_rows(brain, atlas, orders(atlas)["ukbiobank"])
    name = f"tractography/connectomes/{word}+Tian_Subcortex_S1_3T/connectome_"
    for person in ids:
        save(tmp_path / person, matrix, f"{name}sift2_fbc_10M.csv")
    cohort = load_cohort(tmp_path, atlas, "fdg")
    expected = brain - np.diag(np.diag(brain))
    found = cohort.connectomes[0] * (1 - np.eye(len(atlas)))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert any("UK Biobank" in note for note in cohort.notes)
    # parts of the thalamus have no common mean
    path = save(tmp_path / "x", matrix, f"{name}mean_FA_10M.csv")
    with raises_kind("parts of means", path.name):
        read_connectome(path, atlas)
    # of another cortex the words say nothing about this one
    path = save(tmp_path / "y", matrix, "Glasser+Tian_Subcortex_S1_3T/c.csv")
    with pytest.raises(FileFormatError, match="row_order='ukbiobank'"):
        read_connectome(path, atlas)


def test_uk_biobank_s_own_atlas_has_every_row(tmp_path, brains):
    """Parts of the thalamus stay apart, so that their means can be read, too."""
    atlas = load_atlas("destrieux164")
    rng = np.random.default_rng(0)
    matrix = write_rows(brains["destrieux160"], ATLAS, orders(ATLAS)["ukbiobank"])
    noise = rng.uniform(0.9, 1.1, matrix.shape)
    matrix = matrix * (noise + noise.T)
    folder = "aparc.a2009s+Tian_Subcortex_S1_3T/connectome_"
    for name in ("streamline_count", "mean_FA"):
        path = save(tmp_path, matrix, f"{folder}{name}_10M.csv")
        connectome = read_connectome(path, atlas)
        expected = matrix - np.diag(np.diag(matrix))
        np.testing.assert_allclose(connectome.matrix, expected, rtol=1e-4)
        assert "fits the weights best" in connectome.notes[-1]
    path = save(tmp_path, matrix, f"x/{folder}count.csv")
    with raises_kind("another order fits better"):
        read_connectome(path, atlas, row_order="hemispheres")
    # of other tools 164 rows have no parts of the thalamus
    path = save(tmp_path, matrix, "plain.csv")
    with pytest.raises(FileFormatError, match=r"of the Destrieux.*atlas destrieux160"):
        read_connectome(path, atlas, row_order="mrtrix")


# ---- a size decides nothing ---------------------------------------------------------


@pytest.mark.parametrize(
    ("atlas", "size", "candidates"),
    [
        ("destrieux160", 160, ["atlas", "labels", "hemispheres", "Dosenbach"]),
        ("destrieux160", 162, ["aseg", "enigma", "two medial walls"]),
        ("destrieux160", 164, ["mrtrix", "ukbiobank", "labels-cerebellum", "micapipe"]),
        ("destrieux160", 165, ["mrtrix", "labels-ventraldc", "aseg-ventraldc"]),
        ("destrieux160", 167, ["tvb-recon"]),
        ("destrieux160", 192, ["micapipe", "Virtual Brain"]),
        ("destrieux160", 198, ["micapipe"]),
        ("desikan82", 84, ["mrtrix", "ukbiobank", "aseg-ventraldc", "walls"]),
        ("desikan82", 85, ["mrtrix", "labels-ventraldc"]),
        ("desikan82", 112, ["micapipe", "Harvard-Oxford"]),
        ("schaefer100", 114, ["atlas", "aseg", "17networks", "Cammoun"]),
        ("schaefer100", 116, ["mrtrix", "ukbiobank", "AAL"]),
        ("schaefer100", 152, ["4S"]),
        ("schaefer200", 214, ["aseg", "17networks-enigma"]),
        ("schaefer200", 216, ["mrtrix", "ukbiobank"]),
        ("schaefer400", 416, ["mrtrix", "ukbiobank"]),
    ],
)
def test_rows_that_nothing_names_are_refused_with_all_they_may_be(
    tmp_path, atlas, size, candidates
):
    np.save(tmp_path / "c.npy", np.random.default_rng(0).gamma(1, size=(size, size)))
    with pytest.raises(FileFormatError) as refused:
        read_connectome(tmp_path / "c.npy", atlas, symmetrize="mean")
    assert all(one in str(refused.value) for one in candidates)


def test_a_study_is_refused_once_with_what_the_weights_say(tmp_path, brains):
    ids = [f"sub-{i}" for i in range(4)]
    rows = {"participant_id": ids, "diagnosis": ["CN", "AD"] * 2}
    pd.DataFrame(rows).to_csv(tmp_path / "participants.tsv", sep="\t", index=False)
    matrix = write_rows(brains["desikan82"], DESIKAN, orders(DESIKAN)["ukbiobank"])
    for person in ids:
        save(tmp_path / person, matrix, f"dwi/{person}_connectome.csv")
    with pytest.raises(CohortError) as refused:
        load_cohort(tmp_path, DESIKAN, "strength")
    (fault,) = refused.value.faults
    assert "3 other matrices" in fault
    assert fault.index("row_order='ukbiobank'") < fault.index("row_order='mrtrix'")
    assert fault.count("best fit: row_order='ukbiobank'") == 1
    assert fault.count("best fit:") == 1
    options = {"atlas": DESIKAN, "feature": "strength"}
    check = make_refusal_check(tmp_path, refused.value)
    assert suggest_options(check, options) == [{"row_order": "ukbiobank"}]
    cohort = load_cohort(tmp_path, DESIKAN, "strength", row_order="ukbiobank")
    assert any("fits the weights best" in note for note in cohort.notes)
    with pytest.raises(CohortError, match=r"(?s)fit better:.*row_order='ukbiobank'"):
        load_cohort(tmp_path, DESIKAN, "strength", row_order="mrtrix")


# ---- the check ----------------------------------------------------------------------


@pytest.mark.parametrize("true", orders(DESIKAN))
@pytest.mark.parametrize("atlas", [ATLAS, DESIKAN], ids=str)
def test_the_true_order_fits_the_weights_best(tmp_path, brains, atlas, true):
    rows = orders(atlas)[true]
    path = save(tmp_path, write_rows(brains[atlas.name], atlas, rows))
    connectome = read_connectome(path, atlas, row_order=true)
    assert "fits the weights best" in connectome.notes[-1]


@pytest.mark.parametrize(("true", "asked"), [*permutations(orders(DESIKAN), 2)])
def test_a_wrong_order_is_refused_with_the_true_one(tmp_path, brains, true, asked):
    rows = orders(DESIKAN)[true]
    path = save(tmp_path, write_rows(brains["desikan82"], DESIKAN, rows))
    with raises_kind("another order fits better") as caught:
        read_connectome(path, DESIKAN, row_order=asked)
    assert true in caught.value.values["row_orders"]
    assert f"row_order='{true}'" in str(caught.value)


def test_words_of_the_path_are_checked_too(tmp_path, brains):
    matrix = write_rows(brains["desikan82"], DESIKAN, orders(DESIKAN)["ukbiobank"])
    path = save(tmp_path, matrix, "mrtrix/connectome.csv")
    with pytest.raises(FileFormatError, match=r"(?s)because its path.*'ukbiobank'"):
        read_connectome(path, DESIKAN)


def test_arrays_are_checked_for_the_order_of_their_atlas(brains):
    """ENIGMA's alphabet against FreeSurfer's numbers: only 14 rows differ."""
    atlas = load_atlas("schaefer100")
    brain, labels = brains["schaefer100"], ["CN", "AD"] * 3
    X = np.random.default_rng(0).random((6, len(atlas)))
    left, right = cortex(atlas, "L"), cortex(atlas, "R")
    for names in ([*left, *right, *deep(STRUCTURES)], atlas.names[::-1]):
        W = np.repeat(write_rows(brain, atlas, names)[None], 6, axis=0)
        with raises_kind("another order fits better") as refusal:
            Cohort.from_arrays(W, X, labels, atlas="schaefer100")
        # from_arrays has no argument row_order.
        assert "pd.DataFrame" in str(refusal.value)
    assert Cohort.from_arrays(brain, X, labels, atlas="schaefer100").n_scans == 6


def test_random_weights_are_taken_as_they_are_named(tmp_path):
    rng = np.random.default_rng(0)
    for size in (82, 84):
        W = rng.gamma(0.5, size=(size, size))
        path = save(tmp_path, W + W.T, f"{size}.csv")
        order = {82: "atlas", 84: "mrtrix"}[size]
        found = read_connectome(path, DESIKAN, row_order=order)
        assert "do not show whether" in found.notes[-1]
    X = rng.random((4, 160))
    W = rng.random((4, 160, 160))
    cohort = Cohort.from_arrays(W + W.swapaxes(1, 2), X, ["CN", "AD"] * 2)
    assert cohort.n_scans == 4


def test_an_atlas_without_surfaces_is_checked_by_its_hemispheres(tmp_path):
    """Left and right agree and are linked: by turns in the file, not in blocks."""
    rng = np.random.default_rng(0)
    names = [f"area{k}_{side}" for side in "LR" for k in range(30)]
    half = rng.gamma(1, size=(30, 30))
    W = np.kron(np.eye(2), half + half.T) + 20 * np.kron(1 - np.eye(2), np.eye(30))
    by_turns = np.arange(60).reshape(2, 30).T.ravel()
    path = save(tmp_path, W[np.ix_(by_turns, by_turns)])
    atlas = Atlas.from_names(names)
    found = read_connectome(path, atlas, row_order="interleaved")
    np.testing.assert_allclose(found.matrix, W, rtol=1e-4)
    with raises_kind("another order fits better") as caught:
        read_connectome(path, atlas, row_order="atlas")
    assert "interleaved" in caught.value.values["row_orders"]


# ---- lists beside a matrix ----------------------------------------------------------


def test_names_that_weights_contradict_are_refused(tmp_path, brains):
    path = save(tmp_path, brains["desikan82"])
    names = [*DESIKAN.names]
    (tmp_path / "labels.txt").write_text("\n".join(names))
    assert read_connectome(path, DESIKAN).notes == ("rows named by labels.txt",)
    shifted = [names[-1], *names[:-1]]
    (tmp_path / "labels.txt").write_text("\n".join(shifted))
    with pytest.raises(FileFormatError, match="shifted up by one row"):
        read_connectome(path, DESIKAN)
    found = read_connectome(path, DESIKAN, row_order="names")
    assert found.matrix[1, 2] == pytest.approx(brains["desikan82"][2, 3])


def test_brainlife_s_labels_have_an_entry_more_than_rows(tmp_path, brains):
    rows = orders(DESIKAN)["aseg-cerebellum"][:82]
    path = save(tmp_path, write_rows(brains["desikan82"], DESIKAN, rows), "csv/c.csv")
    for first in ({"name": None}, {"name": "self-loop"}):
        entries = [first, *({"name": name} for name in rows)]
        for label, entry in enumerate(entries):
            entry |= {"label": str(label), "voxel_value": label}
        (tmp_path / "label.json").write_text(json.dumps(entries))
        found = read_connectome(path, DESIKAN)
        np.testing.assert_allclose(found.matrix, brains["desikan82"], rtol=1e-4)
    # one that is no entry of the diagonal is a name too many
    entries[0]["name"] = "ctx-lh-unknown"
    (path.parent / "label.json").write_text(json.dumps(entries))
    with pytest.raises(
        FileFormatError, match="82 rows, but the list contains 83 names"
    ):
        read_connectome(path, DESIKAN)


def test_centres_of_the_virtual_brain_name_rows(tmp_path, brains):
    order = np.random.default_rng(0).permutation(82)
    matrix = brains["desikan82"][np.ix_(order, order)]
    path = save(tmp_path, matrix, "weights.txt")
    names = np.array(DESIKAN.names)[order]
    text = "".join(f"{name} {k} -1.5 20.25\n" for k, name in enumerate(names))
    (tmp_path / "centres.txt").write_text(text)
    found = read_connectome(path, DESIKAN)
    np.testing.assert_allclose(found.matrix, brains["desikan82"], rtol=1e-4)
    with pytest.raises(
        FileFormatError, match=r"centres.txt contradict row_order='atlas'"
    ):
        read_connectome(path, DESIKAN, row_order="atlas")
    # the toolbox VBI has two of them, in different orders
    other = "".join(f"{name} 0 0 0\n" for name in DESIKAN.names)
    (tmp_path / "centers.txt").write_text(other)
    with pytest.raises(
        FileFormatError, match=r"centres.txt and centers.txt in the same folder"
    ):
        read_connectome(path, DESIKAN)


def test_real_connectomes_are_told_apart(shared):
    """BNU_1 has 68 cortical regions, then 14 structures as FreeSurfer counts them."""
    name = "BNU_1_track_proba_csd_aparc68+subcort.npz"
    with np.load(shared / "bnu1_connectomes" / name) as file:
        counts = file["count"][::35].astype(float)
    kept = [row for row in range(84) if row not in (3, 38)]
    W = counts[:, kept][:, :, kept]
    X, labels = np.ones((len(W), 82)), ["a", "b"] * (len(W) // 2)
    X[:, 0] = np.arange(len(W))
    assert Cohort.from_arrays(W, X, labels, atlas=DESIKAN).n_scans == len(W)
    by_number = DESIKAN.regions["freesurfer_id"].argsort()
    alphabetic = [*range(68)]
    for first in (68, 75):
        alphabetic += [first + k for k in (6, 5, 1, 4, 3, 2, 0)]
    for order in (by_number, alphabetic, [*range(1, 82), 0]):
        wrong = W[:, order][:, :, order]
        with raises_kind("another order fits better"):
            Cohort.from_arrays(wrong, X, labels, atlas=DESIKAN)


@pytest.mark.parametrize("share_missing", [0, 0.3])
def test_ranks_are_those_of_pandas(share_missing):
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 6, (15, 15)).astype(float)
    weights[rng.random(weights.shape) < share_missing] = np.nan
    values = weights[np.isfinite(weights)]
    assert len(np.unique(values)) < len(values)  # equal values share a rank
    ranks = order_check._compute_ranks(values)
    np.testing.assert_array_equal(ranks, pd.Series(values).rank())
    for matrix in (weights, weights.T):
        ranks = order_check._compute_rank_by_row(matrix.diagonal(), matrix)
        expected_ranks = pd.DataFrame(matrix).rank(axis=1).to_numpy().diagonal()
        np.testing.assert_array_equal(ranks, expected_ranks)
