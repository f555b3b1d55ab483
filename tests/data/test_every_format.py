"""Layouts of tools that the other tests of formats leave out; copies in disorder.

Where rows have names a permuted or mirrored copy comes out right. Where they have
none the reader cannot know; the quality table of the cohort does.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from brainlsap.data import (
    load_cohort,
    make_cohort,
    quality_table,
    write_subject_folders,
)
from brainlsap.data.atlas import load_atlas
from brainlsap.data.connectomes import read_connectome
from brainlsap.data.feature_tables import read_feature_table
from brainlsap.data.features import read_feature
from brainlsap.data.label_images import read_label_image
from brainlsap.data.mirror import mirror_positions
from brainlsap.exceptions import FileFormatError
from tests.data import formats
from tests.data.feature_formats import write_clinica

ATLAS = load_atlas("destrieux160")
N = len(ATLAS)
EXPECTED = formats.telling_matrix(N)
VALUES = np.round(np.random.default_rng(8).uniform(1.8, 2.9, N), 4)
BARE = ATLAS.regions["annot_name"][:74].tolist()


@pytest.mark.parametrize("person", ["fs_ds004230_PS11", "fs_cvs_avg35_inMNI152"])
def test_real_parcellations_give_exactly_the_160_regions(shared, person):
    image = read_label_image(shared / person / "aparc.a2009s+aseg.mgz", ATLAS)
    assert sorted(image.places.values()) == list(range(160))
    counts = np.bincount(image.values.ravel(), minlength=13000)
    for label, place in image.places.items():
        assert ATLAS.regions["freesurfer_id"][place] == label
        assert image.counts[label] == counts[label] > 0


# ---- connectomes ------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [164, 165])
@pytest.mark.parametrize(
    ("suffix", "delimiter"),
    [(".csv", ","), (".csv", " "), (".tsv", "\t"), (".txt", " ")],
)
def test_mrtrix_before_and_since_3(tmp_path, n_rows, suffix, delimiter):
    """Upper triangle, perhaps a first row 0, a comment, any delimiter."""
    left = [8, 10, 11, 12, 13, 17, 18, 26]
    right = [49, 50, 51, 52, 53, 54, 58, 47]
    cortex = [[base + k for k in range(1, 76) if k != 42] for base in (11100, 12100)]
    ids = [*cortex[0], *left, *right[:-1], *cortex[1], right[-1]]
    full, expected = formats.whole(ATLAS, ids)
    if n_rows == 165:
        full = np.pad(full, (1, 0), constant_values=3.0)
    path = tmp_path / f"c{suffix}"
    head = "command_history: tck2connectome a.tck nodes.mif c.csv"
    np.savetxt(path, np.triu(full), "%d", delimiter, header=head, comments="# ")
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, expected)


@pytest.mark.parametrize("kind", ["atlas", "parcellation"])
def test_clinica_connectomes_of_code_and_of_documents(tmp_path, kind):
    cohort = make_cohort(5, random_state=2)
    folder = write_subject_folders(cohort, tmp_path / "study")
    for path in folder.rglob("*_connectivity.csv"):
        name = path.name.split("_atlas")[0]
        end = f"_space-T1w_model-CSD_{kind}-destrieux_connectivity.tsv"
        path.rename(path.with_name(name + end))
    loaded = load_cohort(folder, feature="fdg")
    np.testing.assert_array_equal(loaded.connectomes, cohort.connectomes)


def test_micapipe_lengths_and_cortex_alone(tmp_path):
    full, expected = formats.whole(ATLAS, formats.micapipe_ids())
    path = tmp_path / "sub-01_desc-iFOD2-10M-SIFT2_full-edgeLengths.shape.gii"
    formats.write_gii(path, np.triu(full))
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, expected)
    cortex = tmp_path / "sub-01_desc-iFOD2-10M-SIFT2_cor-connectome.txt"
    np.savetxt(cortex, np.triu(formats.telling_matrix(150)), "%d")
    message = r"150 rows could be: cortex with a medial wall on each side, without sub"
    with pytest.raises(FileFormatError, match=message):
        read_connectome(cortex, ATLAS)


def test_connectogram_of_dsi_studio_is_refused_with_what_to_read(tmp_path):
    heads = ["data\tdata\t" + "\t".join(map(str, row)) for row in (range(3), "abc")]
    path = tmp_path / "s.a2009s.count.end.connectogram.txt"
    path.write_text("\n".join([*heads, "1\ta\t0\t1\t2"]) + "\n")
    with pytest.raises(
        FileFormatError, match=r"connectogram of DSI .*connectivity\.mat"
    ):
        read_connectome(path, ATLAS)


ORDER = np.random.default_rng(6).permutation(N)
MIRROR = mirror_positions(ATLAS)


def write_connectoflow_csv(folder, matrix, names):
    path = formats.write_connectoflow(folder, matrix, names).with_suffix(".csv")
    np.savetxt(path, matrix, delimiter=",")
    return path


def write_plain_mat(folder, matrix, names):
    savemat(folder / "c.mat", {"W": matrix, "names": formats.cells(names)})
    return folder / "c.mat"


def write_listed(suffix):
    def write(folder, matrix, names):
        path = folder / f"c{suffix}"
        writers = {".gii": formats.write_gii, ".npy": np.save}
        writers.get(suffix, np.savetxt)(path, matrix)
        (folder / "labels.txt").write_text("\n".join(names))
        return path

    return write


def write_named_csv(folder, matrix, names):
    pd.DataFrame(matrix, names, names).to_csv(folder / "c.csv")
    return folder / "c.csv"


def write_triangle_npz(folder, matrix, names):
    return formats.write_npz(folder / "c.npz", np.triu(matrix), np.array(names))


LISTED = {
    "connectoflow.csv": write_connectoflow_csv,
    "named.csv": write_named_csv,
    "plain.mat": write_plain_mat,
    "list.gii": write_listed(".gii"),
    "list.npy": write_listed(".npy"),
    "list.txt": write_listed(".txt"),
    "triangle.npz": write_triangle_npz,
}


@pytest.mark.parametrize("rows", [ORDER, MIRROR], ids=["permuted", "mirrored"])
@pytest.mark.parametrize("name", LISTED)
def test_copies_with_names_come_out_in_order(tmp_path, name, rows):
    names = np.array(ATLAS.names)[rows].tolist()
    path = LISTED[name](tmp_path, EXPECTED[np.ix_(rows, rows)], names)
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, EXPECTED)


@pytest.fixture(scope="module")
def mrtrix_cohort():
    return make_cohort(16, random_state=5)


@pytest.mark.parametrize(
    ("rows", "flag"),
    [(ORDER, "far from the others"), (MIRROR, "left and right were swapped")],
    ids=["permuted", "mirrored"],
)
def test_copies_without_names_are_caught_in_the_cohort(
    mrtrix_cohort, tmp_path, rows, flag
):
    folder = write_subject_folders(mrtrix_cohort, tmp_path / "study")
    path = sorted(folder.rglob("*_connectivity.csv"))[4]
    W = mrtrix_cohort.connectomes[4][np.ix_(rows, rows)]
    np.savetxt(path, np.triu(W), "%d", ",")  # the atlas' own 160 rows
    loaded = load_cohort(folder, feature="fdg")
    np.testing.assert_array_equal(loaded.connectomes[4], W)
    flags = quality_table(loaded)["flags"]
    assert f"connectome looks as if {flag}" in flags.iloc[4] or (
        f"connectome {flag}" in flags.iloc[4]
    )
    assert set(flags.drop(flags.index[4])) == {""}


# ---- regional values --------------------------------------------------------------


@pytest.mark.parametrize("order", ["as they are", "permuted"])
def test_clinica_wide_as_its_documents_say(tmp_path, order):
    rows = np.arange(74)
    if order == "permuted":
        rows = np.random.default_rng(1).permutation(74)
    for side, first in (("left", 0), ("right", 74)):
        path = tmp_path / f"sub-01_hemi-{side}_parcellation-destrieux_thickness.tsv"
        cells = VALUES[first : first + 74][rows]
        heads = np.array(BARE)[rows]
        path.write_text("\t".join(heads) + "\n" + "\t".join(map(str, cells)) + "\n")
    found = read_feature(path, "thickness", ATLAS)
    np.testing.assert_array_equal(found.values[:148], VALUES[:148])
    assert np.isnan(found.values[148:]).all()


def test_clinica_segmentation_volumes(tmp_path):
    below = list(ATLAS.names[148:])
    others = ["Left-Lateral-Ventricle", "BrainSegVol", "EstimatedTotalIntraCranialVol"]
    path = tmp_path / "sub-01_ses-M00_segmentationVolumes.tsv"
    sizes = np.arange(1000.0, 1000 + len(below))
    write_clinica(path, [*below[::-1], *others], [*sizes[::-1], 5e3, 9e5, 1.5e6])
    found = read_feature(path, "volume", ATLAS)
    np.testing.assert_array_equal(found.values[148:], sizes)


@pytest.mark.parametrize("joined", ["&", "_and_"])
@pytest.mark.parametrize(
    "name", ["sub-01_ses-M00.long.sub-01/", "/data/sub-01_ses-M00"]
)
def test_aparcstats2table_of_both_name_styles(tmp_path, joined, name):
    heads = [f"lh_{bare.replace('_and_', joined)}_thickness" for bare in BARE]
    more = ["lh_MeanThickness_thickness", "BrainSegVolNotVent", "eTIV"]
    path = tmp_path / "lh.aparc.a2009s.thickness.txt"
    rows = np.random.default_rng(4).permutation(74)
    line = [name, *VALUES[:74][rows], 2.5, 1e6, 1.5e6]
    head = ["lh.aparc.a2009s.thickness", *np.array(heads)[rows], *more]
    path.write_text("\t".join(head) + "\n" + "\t".join(map(str, line)) + "\n")
    found = read_feature_table(path, ATLAS, "thickness").iloc[0]
    assert dict(found) == dict(zip(ATLAS.names[:74], VALUES[:74], strict=True))


@pytest.mark.parametrize("style", ["{s}_{n}", "{n}_{s}", "ctx-{s}-{n}", "{s}.{n}"])
def test_names_of_every_style_find_their_region(style):
    for place, name in enumerate(ATLAS.regions["annot_name"][:148]):
        side = "lh" if place < 74 else "rh"
        for spelled in (name, name.replace("_and_", "&"), name.lower()):
            text = style.format(s=side, n=spelled)
            assert ATLAS.find(text) == ATLAS.find(text.encode()) == place
