"""Lists of names, with and without numbers beside them."""

import pytest

from brainlsap.data.name_lists import in_counted_order, read_names
from brainlsap.exceptions import FileFormatError


def test_names_of_a_label_file(write):
    assert read_names(write("l.txt", "lh_a\nlh_b\n")) == ("lh_a", "lh_b")
    assert read_names(write("l.txt", "1 lh_a\n2 lh_b\n")) == ("lh_a", "lh_b")
    assert read_names(write("l.csv", "id,name,lobe\n1,lh_a,x\n")) == ("lh_a",)
    with pytest.raises(FileFormatError, match="the file is empty; expected names"):
        read_names(write("l.txt", ""))


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_that_count_names_decide_their_order(write, first):
    lines = [f"{first + 1},lh_b", f"{first + 2},lh_c", f"{first},lh_a"]
    wanted = ("lh_a", "lh_b", "lh_c")
    text = "\n".join(lines)
    assert read_names(write("l.csv", text)) == wanted
    assert read_names(write("l.txt", text.replace(",", " "))) == wanted
    for head in ("index,name", "id,region", "label,region", "No.,label"):
        assert read_names(write("l.csv", f"\ufeff{head}\n{text}")) == wanted
    # numbers of labels do not count the rows: the file's order stands
    assert read_names(write("l.txt", "17 lh_b\n10 lh_a\n")) == ("lh_b", "lh_a")
    assert read_names(write("l.csv", "name,lobe\nlh_b,2\nlh_a,9\n")) == ("lh_b", "lh_a")
    assert read_names(write("l.csv", "index,name\n")) == ()


def test_a_number_of_any_length_counts_nothing():
    assert in_counted_order(["9" * 10_000, "1"], ["b", "a"]) == ("b", "a")
