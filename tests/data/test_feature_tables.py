"""Tables of many scans: what each column means."""

import numpy as np
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.feature_rules import get_feature
from brainlsap.data.feature_tables import open_scan_table, read_feature_table
from brainlsap.data.scan_names import ScanName
from brainlsap.exceptions import FileFormatError

CORTEX = ["lh_a", "lh_b", "lh_c", "rh_a", "rh_b", "rh_c"]


def scan_table(write, heads, rows, name="t.csv", delimiter=","):
    lines = [delimiter.join(map(str, row)) for row in [heads, *rows]]
    return write(name, "\n".join(lines) + "\n")


def wide(write, suffix="", name="t.csv", first="participant_id", extra=()):
    heads = [first, *(f"{region}{suffix}" for region in CORTEX), *extra]
    rows = [[f"s{i}", *range(10 * i, 10 * i + len(heads) - 1)] for i in (1, 2, 3)]
    return scan_table(write, heads, rows, name)


@pytest.mark.parametrize("suffix", ["", "_thickness", ".thickness", "_ThickAvg"])
def test_columns_are_regions(write, tiny, suffix):
    found = read_feature_table(wide(write, suffix), tiny, "thickness")
    assert found.columns.tolist() == CORTEX
    assert found.index.tolist() == ["s1", "s2", "s3"]
    np.testing.assert_array_equal(found.loc["s2"], np.arange(20, 26))


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_columns_gives_the_same(write, tiny, seed):
    rng = np.random.default_rng(seed)
    heads = rng.permutation([*CORTEX, "participant_id", "age"])
    values = {name: i for i, name in enumerate(CORTEX)}
    cells = [values.get(head, {"participant_id": "s1"}.get(head, 70)) for head in heads]
    found = read_feature_table(scan_table(write, heads, [cells]), tiny)
    np.testing.assert_array_equal(found.loc["s1"], np.arange(6))


@pytest.mark.parametrize("delimiter", [",", "\t", " "])
def test_aparcstats2table(write, tiny, delimiter):
    heads = ["lh.aparc.a2009s.thickness", "lh_a_thickness", "lh_b_thickness"]
    heads += [
        "lh_c_thickness",
        "lh_MeanThickness_thickness",
        "BrainSegVolNotVent",
        "eTIV",
    ]
    rows = [["/data/sub-01_ses-M00/", 2.1, 2.2, 2.3, 2.5, 1e6, 1.5e6]]
    path = scan_table(write, heads, rows, "lh.txt", delimiter)
    table = open_scan_table(path, tiny)
    assert table.scan_names() == [ScanName("sub-01", "ses-M00")]
    assert table.outside == ("lh_MeanThickness_thickness", "BrainSegVolNotVent")
    assert table.others == ("eTIV",)
    found = read_feature_table(path, tiny, "thickness")
    np.testing.assert_array_equal(found.to_numpy(), [[2.1, 2.2, 2.3]])
    with pytest.raises(
        FileFormatError, match="no column is volume of a region of tiny"
    ):
        read_feature_table(path, tiny, "volume")


def test_names_without_side_take_it_from_the_head(write, tiny):
    path = scan_table(write, ["rh.aparc.volume", "a", "b", "c"], [["s1", 1, 2, 3]])
    found = read_feature_table(path, tiny, "volume")
    assert found.columns.tolist() == ["rh_a", "rh_b", "rh_c"]


def test_asegstats2table(write, tiny):
    heads = ["Measure:volume", "Left-Amygdala", "Left-Lateral-Ventricle", "CSF"]
    path = scan_table(write, heads, [["s1", 1500, 9, 9]], "aseg.txt", "\t")
    assert read_feature_table(path, tiny, "volume").columns.tolist() == [
        "Left-Amygdala"
    ]
    table = open_scan_table(path, tiny)
    assert table.columns_for(get_feature("thickness"), tiny) == {}
    as_policy = table.columns_for(get_feature("thickness"), tiny, "volume")
    assert as_policy == {6: "Left-Amygdala"}


def test_file_names_say_the_measure(write, tiny):
    path = wide(write, name="study_volume.csv")
    assert len(read_feature_table(path, tiny, "volume").columns) == 6
    with pytest.raises(FileFormatError, match="no column is thickness"):
        read_feature_table(path, tiny, "thickness")


def test_a_column_that_says_the_measure_wins(write, tiny):
    heads = ["id", "lh_a", "lh_a_thickness", "lh_a_area", "lh_a_meancurv"]
    path = scan_table(write, heads, [["s1", 1, 2, 3, 4]])
    assert read_feature_table(path, tiny, "thickness").to_numpy().tolist() == [[2]]
    assert read_feature_table(path, tiny, "area").to_numpy().tolist() == [[3]]
    assert read_feature_table(path, tiny, "fdg").to_numpy().tolist() == [[1]]


def test_missing_values(write, tiny):
    path = scan_table(write, ["id", "lh_a", "lh_b"], [["s1", "n/a", 2], ["s2", "", 3]])
    found = read_feature_table(path, tiny)
    assert np.isnan(found["lh_a"]).all()


@pytest.mark.parametrize("session", ["session_id", "VISCODE", "ses"])
def test_sessions(write, tiny, session):
    path = scan_table(write, ["PTID", session, "lh_a"], [["002_S_0295", "m06", 1]])
    assert open_scan_table(path, tiny).scan_names() == [ScanName("002_S_0295", "m06")]


def test_refused(write, tiny):
    two = scan_table(write, ["id", "lh_a", "lh.a"], [["s1", 1, 2]])
    with pytest.raises(FileFormatError, match=r"'lh_a' and 'lh.a' are both lh_a"):
        open_scan_table(two, tiny)
    none = scan_table(write, ["age", "lh_a"], [[70, 2]])
    with pytest.raises(
        FileFormatError, match="no column names the scans; expected one"
    ):
        open_scan_table(none, tiny)
    wrong = scan_table(write, ["id", "lh_q", "lh_r"], [["s1", 1, 2]])
    with pytest.raises(FileFormatError, match=r"no column is thickness .* 'lh_q'"):
        read_feature_table(wrong, tiny)
    gap = scan_table(write, ["id", "lh_a"], [["", 1]])
    with pytest.raises(FileFormatError, match="row 1 below the header has no id"):
        open_scan_table(gap, tiny).scan_names()
    text = scan_table(write, ["id", "lh_a"], [["s1", "x"]])
    with pytest.raises(
        FileFormatError, match="column 'lh_a': expected a number or n/a"
    ):
        read_feature_table(text, tiny)


@pytest.mark.parametrize(
    "name", ["fcon1000_destrieux148_aseg12.csv", "fcon1000_raw.csv"]
)
def test_real_tables_of_two_styles_agree(shared, name):
    atlas = load_atlas("destrieux160")
    path = shared / "fcon1000_destrieux" / name
    found = read_feature_table(path, atlas, "thickness", subcortex="volume")
    assert found.shape == (1078, 160)
    row = found.loc["AnnArbor_a_sub04111"]
    assert row["ctx_lh_G_and_S_frontomargin"] == pytest.approx(2.297, abs=1e-6)
    assert row["Right-Amygdala"] == pytest.approx(1241.6)
