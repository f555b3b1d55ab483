"""Lists of region names, as tools and people write them."""

import os

import pytest

from brainlsap.data import region_lists
from brainlsap.data.region_lists import (
    drop_background_name,
    read_region_list,
    read_row_names,
)
from brainlsap.exceptions import FileFormatError
from tests.conftest import raises_kind


def test_names_of_a_label_file(write):
    assert read_row_names(write("l.txt", "lh_a\nlh_b\n")) == ("lh_a", "lh_b")
    assert read_row_names(write("l.txt", "1 lh_a\n2 lh_b\n")) == ("lh_a", "lh_b")
    text = "Region_ID,Struct-Name,lobe\n1.0,lh_a,x\n2.0,lh_b,y\n"
    assert read_row_names(write("l.csv", text)) == ("lh_a", "lh_b")
    with pytest.raises(
        FileFormatError, match="the file is empty; expected region names"
    ):
        read_row_names(write("l.txt", ""))


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_that_count_names_decide_their_order(write, first):
    lines = [f"{first + 1},lh_b", f"{first + 2},lh_c", f"{first},lh_a"]
    expected = ("lh_a", "lh_b", "lh_c")
    text = "\n".join(lines)
    assert read_row_names(write("l.csv", text)) == expected
    assert read_row_names(write("l.txt", text.replace(",", " "))) == expected
    for head in ("index,name", "id,region", "label,region", "No.,label", "ROI_ID,node"):
        assert read_row_names(write("l.csv", f"\ufeff{head}\n{text}")) == expected
    # other numbers are no order, but may not say another than the lines
    kept = ("lh_b", "lh_a")
    text = "no,region,hemi,roi\n1,Pole,L,P_L\n2,Pole,R,P_R\n"
    assert read_row_names(write("l.csv", text)) == (
        "P_L",
        "P_R",
    )  # which tells them apart
    assert read_row_names(write("l.txt", "10 lh_b\n17 lh_a\n")) == kept
    with pytest.raises(FileFormatError, match="not in ascending order"):
        read_row_names(write("l.txt", "17 lh_b\n10 lh_a\n"))
    assert read_row_names(write("l.csv", "name,lobe\nlh_b,2\nlh_a,9\n")) == kept
    assert read_row_names(write("l.csv", "index,name\n")) == ()


NAMES = ("Brodmann area 44 L", "Brodmann area 44 R")
LISTS = {
    "plain": "{}\n{}\n",
    "index before": "1 {}\n2 {}\n",
    "index and a sign": "1: {}\n2: {}\n",
    "index, colours": "1 {} 25 5 25 0\n2 {} 25 60 25 0\n",
    "colours as fractions (FSL)": "1 0.5 0.0 0.25 {}\n2 0.5 1.0 0.25 {}\n",
    "ITK-SNAP": '1 25 5 25 0.5 1 1 "{}"\n2 25 60 25 1 1 1 "{}"\n',
    "Connectome Workbench": "{}\n1 25 5 25 255\n{}\n2 25 60 25 255\n",
    "place behind": "{} -50.5 10 20\n{} 51 12 20\n",
    "index, place in brackets": "1 {} (-50.5, 10, 20)\n2 {} (51, 12, 20)\n",
    "place before": "-50.5 10 20 {}\n51 12 20 {}\n",
    "index and place, with commas": "1,{},-50.5,10,20\n2,{},51,12,20\n",
}


@pytest.mark.parametrize("kind", LISTS)
def test_numbers_beside_names_are_no_part_of_them(write, kind):
    """ "Brodmann area 44 L" became "Brodmann area L"; places became parts of names."""
    table, has_header = read_region_list(write("l.txt", LISTS[kind].format(*NAMES)))
    assert not has_header
    assert tuple(table["name"]) == NAMES
    assert table["index"].tolist() == (["1", "2"] if kind[0] in "icIC" else ["", ""])
    if "place" in kind:
        places = table[[*"xyz"]].astype(float).to_numpy().tolist()
        assert places == [[-50.5, 10, 20], [51, 12, 20]]
    else:
        assert "x" not in table


def test_numbers_that_may_be_names_or_anything_are_refused(write):
    assert (
        read_row_names(write("l.txt", "LH Vis 1\nLH Vis 2\nRH Vis 1\n"))[1]
        == "LH Vis 2"
    )
    assert read_row_names(write("l.txt", "44 L\n44 R\n45 L\n45 R\n"))[2] == "45 L"
    with raises_kind("numbers without a heading", "l.txt"):
        read_row_names(write("l.txt", "a_L -50 10 20 3.5\na_R 51 12 20 3.4\n"))
    with pytest.raises(FileFormatError, match="1 of 2 lines begin with a number"):
        read_row_names(write("l.txt", "44 L\nHippocampus L\n"))


def test_a_folder_is_listed_again_only_after_a_change(tmp_path, monkeypatch):
    n_listings = []
    scan_folder = region_lists._list_folder_file_names
    monkeypatch.setattr(
        region_lists,
        "_list_folder_file_names",
        lambda *arguments: n_listings.append(1) or scan_folder(*arguments),
    )
    for name in ("b.json", "a.json", "labels.txt"):
        (tmp_path / name).touch()
    # A time that is not yet two seconds old may hide another change.
    for _ in range(2):
        assert [*region_lists._list_file_names(tmp_path, ".json")] == [
            "a.json",
            "b.json",
        ]
    assert len(n_listings) == 2
    os.utime(tmp_path, (1, 1))
    for _ in range(3):
        assert [*region_lists._list_file_names(tmp_path, ".json")] == [
            "a.json",
            "b.json",
        ]
    assert len(n_listings) == 3
    (tmp_path / "c.json").touch()
    assert "c.json" in region_lists._list_file_names(tmp_path, ".json")


def test_numbers_of_two_names_in_a_lookup_table_are_synonyms(write):
    """The names became "L.CU ctx-lh-cuneus" where the thalamus has two names."""
    lines = [
        "0 ??? Unknown 0 0 0 0",
        "1 L.CU ctx-lh-cuneus 25 100 40 255",
        "2 L.TH Left-Thalamus 25 100 40 255",
        "2 L.TH Left-Thalamus-Proper 25 100 40 255",
        "3 R.CU ctx-rh-cuneus 25 100 40 255",
    ]
    path = write("fs_default.txt", "\n".join(lines))
    table = read_region_list(path).table
    assert table["index"].tolist() == ["0", "1", "2", "3"]
    names = ("ctx-lh-cuneus", "Left-Thalamus", "ctx-rh-cuneus")
    assert tuple(table["name"][1:]) == names
    assert drop_background_name(read_row_names(path), 3) == names
    assert len(drop_background_name(read_row_names(path), 4)) == 4
    lines[3] = lines[3].replace("L.TH", "L.PU")
    with pytest.raises(FileFormatError, match="number 2 is given to 'Left-Thalamus'"):
        read_region_list(write("fs_default.txt", "\n".join(lines)))
