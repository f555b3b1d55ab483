"""Sides and measures of a scan's table are read from where it says them."""

import numpy as np
import pytest

from brainlsap.data.features import read_feature
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError

BARE = ("a", "b", "c", "a", "b", "c", "Amygdala")
SIDES = ("L", "L", "L", "R", "R", "R", "L")
VALUES = np.arange(7) + 1.5
RIGHT_FIRST = [3, 4, 5, 0, 1, 2]


def table(rows, head="hemisphere", words=SIDES):
    lines = [f"{BARE[i]}\t{words[i]}\t{VALUES[i]}" for i in rows]
    return f"region\t{head}\tsuvr\n" + "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("rows", [RIGHT_FIRST, [6, 0, 3, 1, 4, 2, 5]])
@pytest.mark.parametrize(
    ("head", "words"), [("hemisphere", {}), ("Hemi", {"L": "lh", "R": "Right"})]
)
def test_a_column_says_the_sides(write, tiny, rows, head, words):
    said = [words.get(side, side) for side in SIDES]
    found = read_feature(write("x_suvr.tsv", table(rows, head, said)), "suvr", tiny)
    expected = np.where(np.isin(np.arange(7), rows), VALUES, np.nan)
    np.testing.assert_array_equal(found.values, expected)


@pytest.mark.parametrize("head", ["session_id", "subject"])
def test_a_second_scan_is_not_the_other_side(write, tiny, head):
    rows = [f"{scan}\t{name}\t{k}" for k, scan in enumerate("12") for name in "abc"]
    text = "\n".join([f"{head}\tregion\tsuvr", *rows, ""])
    with pytest.raises(FileFormatError, match=f"'{head}' has 2 values, such as '1' an"):
        read_feature(write("x_suvr.tsv", text), "suvr", tiny)
    one = text.replace("\n2\t", "\n1\t")
    assert read_feature(write("x_suvr.tsv", one), "suvr", tiny).values[3] == 1


def test_a_name_and_its_side_must_agree(write, tiny):
    text = table(range(7)).replace("a\tR", "lh_a\tR")
    with pytest.raises(RegionNameError, match=r"'lh_a' says L, but its hemi.* says R"):
        read_feature(write("x_suvr.tsv", text), "suvr", tiny)


@pytest.mark.parametrize("reverse", [False, True])
def test_of_two_columns_for_a_region_the_measure_decides(write, tiny, reverse):
    heads = [f"{name}_suvr" for name in tiny.names] + list(tiny.names)
    heads += [f"{name}_volume" for name in tiny.names]
    cells = [*VALUES, *(VALUES + 100), *(VALUES + 900)]
    if reverse:
        heads, cells = heads[::-1], cells[::-1]
    text = "\t".join(heads) + "\n" + "\t".join(map(str, cells)) + "\n"
    found = read_feature(write("x_amyloid.tsv", text), "suvr", tiny)
    np.testing.assert_array_equal(found.values, VALUES)


def test_two_columns_of_one_region_are_refused(write, tiny):
    heads = "\t".join((*tiny.names, "Amygdala_L"))
    path = write("x_suvr.tsv", heads + "\n" + "\t".join("12345678") + "\n")
    with pytest.raises(
        FileFormatError, match="'Left-Amygdala' and 'Amygdala_L' are both Left-Amy"
    ):
        read_feature(path, "suvr", tiny)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 1, 3], [3, 2, 1, 0]])
def test_activity_over_time_is_known_wherever_its_frames_stand(write, tiny, order):
    """A column that counts rows, put in front, made activity pass for a ratio."""
    parts = [["frame_start", "0"], ["frame_end", "60"], ["", "0"], ["pons", "4"]]
    columns = [parts[i] for i in order]
    columns += [list(pair) for pair in zip(tiny.names, map(str, VALUES), strict=True)]
    text = "\n".join("\t".join(row) for row in zip(*columns, strict=True)) + "\n"
    path = write("x_tacs.tsv", text)
    found = read_feature(path, "suvr", tiny, reference="pons")
    np.testing.assert_allclose(found.values, VALUES / 4)
    with pytest.raises(ParameterError, match="activity over time; name the region"):
        read_feature(path, "suvr", tiny)
