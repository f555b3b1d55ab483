"""Parcellations: which label is which region, and what is refused."""

import nibabel
import numpy as np
import pytest

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from brainlsap.images.parcellation import (
    NON_ATLAS_NODES,
    match_label_image,
    read_name_by_label,
)

NUMBERS = [1101, 1102, 1103, 2101, 2102, 2103, 18]
NAMES = ["lh_a", "lh_b", "lh_c", "rh_a", "rh_b", "rh_c", "Left-Amygdala"]


def save(path, labels, kind=np.int32):
    values = np.asarray(labels, dtype=kind)
    nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)
    return path


def whole(labels):
    """Return every label twice, in an image of one row."""
    return np.repeat(np.asarray(labels), 2)[:, None, None]


def test_freesurfer_numbers_are_regions_and_the_rest_is_known(tmp_path, tiny):
    path = save(tmp_path / "a.nii.gz", whole([0, 2, 8, 251, 3005, *NUMBERS]))
    image = match_label_image(path, tiny)
    assert {n: tiny.names[p] for n, p in image.region_index_by_label.items()} == dict(
        zip(NUMBERS, tiny.names, strict=True)
    )
    beside = image.find_label_numbers(NON_ATLAS_NODES)
    assert [image.name_by_label[n] for n in beside] == ["Left-Cerebellum-Cortex"]
    assert image.notes == ("the labels were read as the label numbers of FreeSurfer",)
    assert image.label_voxel_counts[18] == 2


def test_nodes_of_labelconvert_and_order_of_the_atlas(tmp_path):
    atlas = load_atlas("desikan82")
    nodes = match_label_image(save(tmp_path / "n.nii", whole(range(85))), atlas)
    assert "in the order of MRtrix's fs_default.txt (84 nodes)" in nodes.notes[0]
    assert atlas.names[nodes.region_index_by_label[36]] == "Left-Thalamus"
    assert nodes.name_by_label[35] == "Left-Cerebellum-Cortex"
    own = match_label_image(save(tmp_path / "o.nii", whole(range(83))), atlas)
    assert [own.region_index_by_label[k] for k in range(1, 83)] == list(range(82))


@pytest.mark.parametrize("turn", [0, 0.2])
def test_labels_that_only_count_must_lie_where_their_regions_are(tmp_path, turn):
    """UK Biobank's labels are 1 to 84, too: cortex, then Tian's structures."""
    atlas = load_atlas("desikan82")
    regions = atlas.regions
    left, right = (
        np.flatnonzero(atlas.cortex & (regions["hemisphere"] == s)) for s in "LR"
    )
    deep = {
        side: dict(zip("TCUPHAN", range(first, first + 7), strict=True))
        for side, first in (("L", 68), ("R", 75))
    }
    tian = [deep[side][letter] for side in "RL" for letter in "HATTNPUC"]
    below = [*range(68, 82)]
    mrtrix = [*left, None, *below, *right, None]
    turned = np.array(
        [[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]]
    )
    for rows, is_right in ((mrtrix, True), ([*left, *right, *tian], False)):
        values = np.zeros((110, 130, 110), dtype=np.int32)
        for label, region in enumerate(rows, start=1):
            mm = [0, -70, -40] if region is None else atlas.coordinates[region]
            x, y, z = np.round(
                turned @ mm / 2 + [55, 68, 50] + [label % 2, 0, 0]
            ).astype(int)
            values[x, y, z] = label
        affine = np.diag([2.0, 2.0, 2.0, 1.0])
        affine[:3, 3] = -110, -136, -100
        path = tmp_path / "nodes.nii"
        nibabel.save(nibabel.Nifti1Image(values, affine), path)
        if is_right:
            assert "fs_default.txt" in match_label_image(path, atlas).notes[0]
        else:
            with pytest.raises(FileFormatError, match=r"UK Biobank's.*Name the labels"):
                match_label_image(path, atlas)


def test_a_table_names_labels(tmp_path, tiny):
    order = [4, 0, 2, 6, 1, 5, 3]
    given = dict(enumerate((tiny.names[i] for i in order), start=1))
    rows = "".join(f"{k} {name} 23 220 60 0\n" for k, name in given.items())
    (tmp_path / "lut.txt").write_text("# No. Name R G B A\n0 Unknown 0 0 0 0\n" + rows)
    path = save(tmp_path / "a.nii", whole(range(8)))
    for labels in (tmp_path / "lut.txt", given):
        image = match_label_image(path, tiny, labels)
        assert image.region_index_by_label == dict(enumerate(order, start=1))


def test_a_table_of_mrtrix_has_two_names_and_bids_lies_beside(tmp_path, tiny):
    (tmp_path / "fs.txt").write_text("3  L.A  lh_a  10 20 30 255\n")
    assert read_name_by_label(tmp_path / "fs.txt", tiny) == {3: "lh_a"}
    path = save(tmp_path / "sub-01_dseg.nii.gz", whole(range(8)))
    rows = "".join(f"{k}\t{n}\n" for k, n in enumerate(tiny.names[::-1], 1))
    (tmp_path / "sub-01_dseg.tsv").write_text("index\tname\n" + rows)
    image = match_label_image(path, tiny)
    assert image.region_index_by_label[1] == 6
    assert image.notes == ("the labels are named by a table",)


def test_absent_regions_are_said(tmp_path, tiny):
    image = match_label_image(save(tmp_path / "a.nii", whole(NUMBERS[1:])), tiny)
    assert image.notes[-1].endswith(" without a voxel in the parcellation: lh_a")


def test_an_image_whose_sides_are_flipped_is_refused(tmp_path, tiny):
    path = save(tmp_path / "a.nii", whole(NUMBERS[5::-1]))
    with pytest.raises(
        FileFormatError, match=r"left .* are to the right of the regions"
    ):
        match_label_image(path, tiny)


DESIKAN = load_atlas("desikan82")


@pytest.mark.parametrize(
    ("atlas", "numbers", "labels", "said"),
    [
        (
            None,
            [5000, *NUMBERS],
            None,
            "the labels 5000 of the image do not belong to tiny",
        ),
        (
            Atlas.from_names(["a_L", "a_R"]),
            DESIKAN.regions["freesurfer_id"],
            None,
            r"labels 1001, .* not belong to own.* Choose the atlas of .* a\.tsv",
        ),
        (None, [0], None, "the labels lie between 0 and 0"),
        (None, range(10), NAMES, "names 7 labels, but not 8, 9, which"),
        (None, range(9), [*NAMES, "lh_d"], r"a\.nii: 1 of 8 names .*'lh_d'"),
        (None, range(9), [*NAMES, "lh.a"], r"a\.nii: .*'lh_a', 'lh\.a'"),
        (DESIKAN, range(11), DESIKAN.names[:10], r"72 of the 82 .* have no voxel"),
        (None, [0.5, 1], None, "0.5 and 1. The image may have been interpolated"),
        (
            None,
            [-1, 3],
            None,
            r"expected whole labels from 0 \(background\) to 1000000",
        ),
        (
            None,
            [0, 2_000_000],
            None,
            r"expected whole labels from 0 \(background\) to 1000000",
        ),
        (
            None,
            [0, np.inf],
            None,
            r"expected whole labels from 0 \(background\) to 1000000",
        ),
    ],
)
def test_what_is_not_known_is_refused(tmp_path, tiny, atlas, numbers, labels, said):
    path = save(tmp_path / "a.nii", whole(numbers), kind=np.float32)
    given = labels and dict(enumerate(labels, start=1))
    with pytest.raises((FileFormatError, RegionNameError), match=said):
        match_label_image(path, atlas or tiny, given)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("1 lh_a\nlh_b\n", "1 of 2 lines begin with a number"),
        ("index\tname\n1.5\tlh_a\n", "names 0 labels, but not 1, 2, which occur"),
        (
            "1 lh_a\n2 lh_b\n1 rh_a\n",
            "label 1 has several names: lh_a and rh_a; expected one",
        ),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path, tiny, table, said):
    (tmp_path / "t.txt").write_text(table)
    path = save(tmp_path / "a.nii", whole([1, 2]))
    with pytest.raises(FileFormatError, match=said):
        match_label_image(path, tiny, tmp_path / "t.txt")


def test_a_list_may_begin_at_label_0_and_is_refused(tiny):
    """nilearn's lists of labels begin with that of label 0."""
    names = [b"Background", *(name.encode() for name in tiny.names)]
    with pytest.raises(ParameterError, match=r"dict\(enumerate.* got list"):
        read_name_by_label(names, tiny)
    assert read_name_by_label(dict(enumerate(names)), tiny)[1] == tiny.names[0]
