import numpy as np
import pytest

from brainlsap.data.region_tables import COLUMNS, read_regions
from brainlsap.exceptions import FileFormatError, RegionNameError


def write(path, *lines):
    path.write_text("".join(line.replace(" ", "\t") + "\n" for line in lines))
    return path


def test_what_a_users_table_does_not_say_is_filled(tmp_path):
    path = write(
        tmp_path / "mine.tsv",
        "name hemisphere network",
        "lh_north L salience",
        "Right-Putamen right motor",
        "Brain-Stem M none",
    )
    table = read_regions(path)
    assert list(table.columns) == [*COLUMNS, "network"]
    assert table["hemisphere"].tolist() == ["L", "R", "M"]
    assert table["structure"].tolist() == ["cortex", "subcortex", "cortex"]
    assert table["annot_name"].tolist() == ["north", "Putamen", "Brain-Stem"]
    assert table["short_name"].tolist() == ["(L) north", "(R) Sub.put", "Brain.Stem"]
    assert table["freesurfer_id"].tolist() == [-1, -1, -1]
    assert np.isnan(table[["x", "y", "z"]].to_numpy()).all()


def test_what_it_says_is_kept(tmp_path):
    path = write(
        tmp_path / "mine.tsv",
        "hemisphere name freesurfer_id x y z structure lobe",
        "L a 1001 -1.5 2 n/a subcortex frontal",
    )
    row = read_regions(path).iloc[0]
    assert row[["freesurfer_id", "x", "y"]].tolist() == [1001, -1.5, 2.0]
    assert np.isnan(row["z"])
    assert row[["structure", "lobe"]].tolist() == ["subcortex", "frontal"]


BAD = [
    (["name side", "a L"], "column hemisphere is missing, got 'name', 'side'"),
    (["nom cote", "a L"], "column name and hemisphere is missing"),
    (["name hemisphere"], "has a header but no region"),
    (["name hemisphere", "a L", " L"], "line 3 has no name"),
    (["name hemisphere", "a up"], "hemisphere of 'a' must be L, R or M .*got 'up'"),
    (["name hemisphere", "lh_a R"], "'lh_a' says L, but its hemisphere says R"),
    (["name hemisphere x", "a L far"], "x of 'a' must be a number or n/a, got 'far'"),
    (
        ["name hemisphere freesurfer_id", "a L 7", "b L 8", "c R 7"],
        "freesurfer_id of 'c' must be a whole number that no other region has, got 7",
    ),
    (["name hemisphere freesurfer_id", "a L 1.5"], "of 'a' must be a whole .* got 1.5"),
    (
        ["name hemisphere structure", "a L brain"],
        "must be cortex or subcortex.*'brain'",
    ),
    (["name hemisphere", "a L", "b L R L"], "cannot be read as a tab-separated table"),
    ([], "cannot be read as a tab-separated table"),
]


@pytest.mark.parametrize(("lines", "message"), BAD)
def test_a_table_that_cannot_be_used_is_refused(tmp_path, lines, message):
    path = write(tmp_path / "mine.tsv", *lines)
    with pytest.raises(FileFormatError, match=message) as caught:
        read_regions(path)
    assert str(path) in str(caught.value)


def test_a_doubled_name_is_refused(tmp_path):
    path = write(tmp_path / "mine.tsv", "name hemisphere", "a L", "b L", "a R")
    with pytest.raises(
        RegionNameError, match=r"1 names? .*more than once, such as 'a'"
    ):
        read_regions(path)
