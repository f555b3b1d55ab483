"""Splits of nodes share none, and say so where a file's do."""

from functools import partial

import numpy as np
import pytest

from brainlsap.data.node_splits import (
    NodeSplit,
    read_node_split,
    split_by_share,
    split_per_class,
)
from brainlsap.exceptions import FileFormatError, SplitError

N_NODES = 90
LABELS = np.arange(N_NODES) % 3


def parts(split):
    return split.train, split.validation, split.test


def write_masks(path, **changed):
    masks = np.zeros((3, 11), bool)
    masks[0, :4], masks[1, 4:6], masks[2, 6:] = True, True, True
    names = ("train_mask", "val_mask", "test_mask")
    np.savez(path, **{**dict(zip(names, masks, strict=True)), **changed})
    return path


class TestDrawing:
    def test_per_class_takes_as_many_of_each(self):
        split = split_per_class(LABELS, 5, 20, 30, random_state=1)
        assert np.bincount(LABELS[split.train]).tolist() == [5, 5, 5]
        assert split.sizes == (15, 20, 30)
        assert np.sum(parts(split), axis=0).max() == 1

    def test_per_class_can_leave_all_others_for_the_test(self):
        assert split_per_class(LABELS, 5, 20, None).sizes == (15, 20, 55)

    def test_shares_hold_in_every_class(self):
        split = split_by_share(LABELS, random_state=3)
        for mask, share in zip(parts(split), (0.6, 0.2, 0.2), strict=True):
            assert np.bincount(LABELS[mask]).tolist() == [30 * share] * 3
        assert np.sum(parts(split), axis=0).tolist() == [1] * N_NODES

    @pytest.mark.parametrize(
        "draw", [split_by_share, partial(split_per_class, n_validation=9, n_test=9)]
    )
    def test_seed_decides_and_nodes_without_class_stand_in_no_set(self, draw):
        labels = np.where(np.arange(N_NODES) < 7, -1, LABELS)
        one, same, other = (draw(labels, random_state=s) for s in (0, 0, 1))
        assert np.array_equal(parts(one), parts(same))
        assert not np.array_equal(parts(one), parts(other))
        assert not np.any(parts(one), axis=0)[:7].any()

    def test_too_few_nodes_of_a_class(self):
        with pytest.raises(SplitError, match="class 0 has 30 nodes; more than 30"):
            split_per_class(LABELS, 30, 1, 1)

    def test_too_few_nodes_altogether(self):
        with pytest.raises(SplitError, match=r"75 nodes are left .* 80 are needed"):
            split_per_class(LABELS, 5, 50, 30)

    def test_shares_that_are_none(self):
        with pytest.raises(SplitError, match="three positive numbers that sum to 1"):
            split_by_share(LABELS, (0.6, 0.2, 0.3))


class TestMasks:
    @pytest.mark.parametrize("pair", [(0, 1), (1, 2), (0, 2)])
    def test_overlap_is_refused_with_the_first_node(self, pair):
        masks = np.zeros((3, 8), bool)
        masks[[0, 1, 2], [1, 2, 3]] = True
        masks[list(pair), 6] = True
        with pytest.raises(SplitError, match=r"1 node.* both .* first is node 6"):
            NodeSplit(*masks)

    def test_an_empty_set_is_refused(self):
        masks = np.eye(3, 5, dtype=bool)
        with pytest.raises(SplitError, match="validation holds no node"):
            NodeSplit(masks[0], np.zeros(5, bool), masks[2])

    def test_numbers_are_no_masks(self):
        with pytest.raises(SplitError, match=r"train must be a mask .* got int64"):
            NodeSplit(np.arange(3), np.arange(3), np.arange(3))


class TestFiles:
    def test_masks_are_read(self, tmp_path):
        split = read_node_split(write_masks(tmp_path / "s.npz"), 11)
        assert split.sizes == (4, 2, 5)

    def test_overlapping_masks_name_the_file(self, tmp_path):
        path = write_masks(tmp_path / "s.npz", val_mask=np.arange(11) == 2)
        with pytest.raises(SplitError, match=r"s\.npz: 1 node.* both train and valid"):
            read_node_split(path, 11)

    @pytest.mark.parametrize("mask", [np.ones(10), np.full(11, 2), np.ones((11, 2))])
    def test_masks_of_another_graph(self, tmp_path, mask):
        path = write_masks(tmp_path / "s.npz", test_mask=mask)
        with pytest.raises(SplitError, match="test must be 11 values of 0 and 1"):
            read_node_split(path, 11)

    def test_object_arrays_are_not_opened(self, tmp_path):
        path = write_masks(tmp_path / "s.npz", test_mask=np.array([{}] * 11))
        with pytest.raises(FileFormatError, match="pickled objects are never opened"):
            read_node_split(path, 11)

    def test_text_is_no_number(self, tmp_path):
        path = write_masks(tmp_path / "s.npz", train_mask=np.array(["a"] * 11))
        with pytest.raises(FileFormatError, match="must hold numbers, got type <U1"):
            read_node_split(path, 11)

    def test_a_missing_array(self, tmp_path):
        np.savez(tmp_path / "s.npz", train_mask=np.ones(11))
        with pytest.raises(FileFormatError, match="has no array 'val_mask'"):
            read_node_split(tmp_path / "s.npz", 11)

    def test_a_truncated_file(self, tmp_path):
        path = write_masks(tmp_path / "s.npz")
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(FileFormatError, match="cannot be read as an array"):
            read_node_split(path, 11)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(FileFormatError, match="is not there"):
            read_node_split(tmp_path / "s.npz", 11)
