"""Names that stand beside a matrix in one file are found, whatever their key."""

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from brainlsap.data.connectomes import read_connectome
from brainlsap.exceptions import FileFormatError
from tests.data.formats import cells

ORDER = np.array([4, 0, 6, 2, 5, 1, 3])


@pytest.fixture
def shuffled(matrix, tiny):
    """Rows in another order than the atlas', of a size that fits it."""
    return matrix[np.ix_(ORDER, ORDER)], np.array(tiny.names)[ORDER]


@pytest.mark.parametrize(
    "key", ["node_names", "roi_labels", "RegionNames", "ROI", "nodes", "names"]
)
def test_names_under_any_key(tmp_path, tiny, matrix, shuffled, key):
    values, names = shuffled
    np.savez(tmp_path / "c.npz", connectome=values, **{key: names})
    savemat(tmp_path / "c.mat", {"connectome": values, key: cells(names)})
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["connectome"] = values
        file[key] = np.array(names, dtype=h5py.string_dtype())[:, None]
    for suffix in ("npz", "mat", "h5"):
        found = read_connectome(tmp_path / f"c.{suffix}", tiny)
        np.testing.assert_array_equal(found.matrix, matrix)
        assert found.notes == ("read by name",)


@pytest.mark.parametrize("key", ["labels", "region_ids", "ids"])
def test_numbers_of_labels_are_names(tmp_path, tiny, matrix, shuffled, key):
    numbers = tiny.regions["freesurfer_id"].to_numpy()[ORDER]
    np.savez(tmp_path / "c.npz", connectome=shuffled[0], **{key: numbers})
    savemat(tmp_path / "c.mat", {"connectome": shuffled[0], key: numbers * 1.0})
    for suffix in ("npz", "mat"):
        found = read_connectome(tmp_path / f"c.{suffix}", tiny)
        np.testing.assert_array_equal(found.matrix, matrix)
    # what does not tell the rows apart names none of them
    np.savez(tmp_path / "d.npz", connectome=matrix, **{key: numbers > 2000})
    assert "order of tiny" in read_connectome(tmp_path / "d.npz", tiny).notes[0]
    np.savez(tmp_path / "d.npz", connectome=matrix, **{key: np.arange(7) / 2})
    assert "order of tiny" in read_connectome(tmp_path / "d.npz", tiny).notes[0]


def test_names_of_another_matrix_are_not_taken(tmp_path, tiny, matrix, shuffled):
    path = tmp_path / "c.npz"
    other = {"b_count_connectivity": np.ones((3, 3)), "b_region_labels": shuffled[1]}
    np.savez(path, a_connectivity=matrix, **other)
    assert "order of tiny" in read_connectome(path, tiny).notes[0]


def test_names_of_another_number_are_refused(tmp_path, tiny, matrix):
    names = np.array(["Unknown", *tiny.names])
    np.savez(tmp_path / "c.npz", connectome=matrix, names=names)
    with pytest.raises(FileFormatError, match="7 rows of 'connectome', but 'names' na"):
        read_connectome(tmp_path / "c.npz", tiny)
    np.savez(tmp_path / "d.npz", connectome=matrix, names=np.array("counts of a study"))
    assert "order of tiny" in read_connectome(tmp_path / "d.npz", tiny).notes[0]


def test_two_lists_of_names_are_refused(tmp_path, tiny, shuffled):
    lists = {"rows_of": shuffled[1], "nodes": np.array(tiny.names)}
    np.savez(tmp_path / "c.npz", connectome=shuffled[0], **lists)
    with pytest.raises(
        FileFormatError, match=r"'rows_of', 'nodes' could each name the 7 rows; .* one"
    ):
        read_connectome(tmp_path / "c.npz", tiny)


@pytest.mark.parametrize("kind", ["cells", "records", "text"])
def test_names_that_are_not_read_are_refused(tmp_path, tiny, shuffled, kind):
    values, names = shuffled
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["connectome"] = values
        if kind == "cells":
            for place, name in enumerate(names):
                file[f"#refs#/{place}"] = np.frombuffer(name.encode(), np.uint8)
            refs = [[file[f"#refs#/{place}"].ref for place in range(7)]]
            file["names"] = np.array(refs, dtype=h5py.ref_dtype)
        elif kind == "records":
            file["names"] = np.array([(i, 1) for i in range(7)], dtype="i4,i4")
        else:
            file["names"] = np.full((11, 7), 65, dtype=np.uint16)
    with pytest.raises(FileFormatError, match="'names' may name the rows, but is kept"):
        read_connectome(tmp_path / "c.h5", tiny)
