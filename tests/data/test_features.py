"""One scan's features: tables of regions, policies for the subcortex."""

import numpy as np
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.feature_rules import check_structures, finish_feature, get_feature
from brainlsap.data.features import read_feature, read_stats_feature
from brainlsap.data.freesurfer import SubjectStats
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError

VALUES = {
    "lh_a": 1.0,
    "lh_b": 2.0,
    "lh_c": 6.0,
    "rh_a": 4.0,
    "rh_b": 5.0,
    "rh_c": 9.0,
    "Left-Amygdala": 7.0,
}


def region_table(write, values, head="region\tsuvr", name="r.tsv"):
    rows = "".join(f"{region}\t{value}\n" for region, value in values.items())
    return write(name, f"{head}\n{rows}")


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_rows_gives_the_same(write, tiny, seed):
    order = np.random.default_rng(seed).permutation(list(VALUES))
    path = region_table(write, {name: VALUES[name] for name in order})
    found = read_feature(path, "fdg", tiny)
    np.testing.assert_array_equal(found.values, list(VALUES.values()))
    assert found.notes == ()


@pytest.mark.parametrize(
    ("head", "feature"),
    [
        ("region\tfdg", "fdg"),
        ("name\tSUVR", "fdg"),
        ("label_name\tmean_scalar", "fdg"),
        ("StructName\tvalue", "amyloid"),
        ("region\tamyloid", "amyloid"),
        ("label_name\tlabel_value", "volume"),
    ],
)
def test_heads_of_columns(write, tiny, head, feature):
    found = read_feature(region_table(write, VALUES, head), feature, tiny)
    np.testing.assert_array_equal(found.values, list(VALUES.values()))


def test_the_feature_named_wins_over_a_plain_value(write, tiny):
    rows = "".join(f"{name},{v},0\n" for name, v in VALUES.items())
    path = write("r.csv", f"region,amyloid,value\n{rows}")
    assert read_feature(path, "amyloid", tiny).values[5] == 9


def test_a_table_may_lie_in_one_row(write, tiny):
    def lie(values, suffix=""):
        heads = "\t".join(f"{name}{suffix}" for name in values)
        cells = "\t".join(str(v) for v in values.values())
        return write("r.tsv", f"participant_id\t{heads}\tCSF\nsub-01\t{cells}\t5\n")

    for suffix in ("", "_suvr"):
        found = read_feature(lie(VALUES, suffix), "fdg", tiny)
        np.testing.assert_array_equal(found.values, list(VALUES.values()))
    with pytest.raises(RegionNameError, match=r"r\.tsv: .*'lh_q'"):
        read_feature(lie({**VALUES, "lh_q": 1}), "fdg", tiny)
    with pytest.raises(FileFormatError, match="6 of 6 cortex regions of tiny are miss"):
        read_feature(lie(VALUES, "_area"), "fdg", tiny)


def test_missing_and_outside(write, tiny):
    path = region_table(write, {**VALUES, "lh_b": "n/a", "Brain-Stem": 3, "Unknown": 1})
    values = read_feature(path, "fdg", tiny).values
    assert np.flatnonzero(np.isnan(values)).tolist() == [1]


def test_the_whole_subcortex_may_be_missing(write, tiny):
    cortex = {name: v for name, v in VALUES.items() if name != "Left-Amygdala"}
    values = read_feature(region_table(write, cortex), "fdg", tiny).values
    assert np.isnan(values[6])
    assert np.isfinite(values[:6]).all()


@pytest.mark.parametrize(
    ("changes", "drop", "message"),
    [
        ({}, "lh_b", "1 of 6 cortex regions of tiny are missing: lh_b. Write n/a"),
        ({"rh_c": "x"}, None, "fdg of rh_c must be a number or n/a, got 'x'"),
        ({"rh_c": "inf"}, None, "fdg of rh_c is infinite"),
    ],
)
def test_tables_refused(write, tiny, changes, drop, message):
    values = {k: v for k, v in {**VALUES, **changes}.items() if k != drop}
    with pytest.raises(FileFormatError, match=message):
        read_feature(region_table(write, values), "fdg", tiny)


def test_names_refused(write, tiny):
    with pytest.raises(RegionNameError, match=r"r\.tsv: .*'lh_q'"):
        read_feature(region_table(write, {**VALUES, "lh_q": 1}), "fdg", tiny)
    with pytest.raises(RegionNameError, match=r"r\.tsv: .*more than once"):
        read_feature(region_table(write, {**VALUES, "lh.a": 1}), "fdg", tiny)


def test_columns_refused(write, tiny):
    with pytest.raises(
        FileFormatError, match=r"no column for names of regions; .* found x"
    ):
        read_feature(region_table(write, VALUES, "x\tsuvr"), "fdg", tiny)
    with pytest.raises(
        FileFormatError, match=r"no column for zinc; .*headed zinc, value"
    ):
        read_feature(region_table(write, VALUES, "region\tsuvr"), "zinc", tiny)


@pytest.mark.parametrize(
    ("policy", "expected", "note"),
    [
        ("absent", np.nan, "the subcortex has none and is not measured"),
        ("mean", 3.0, "the mean of its hemisphere's cortex"),
        ("volume", 7.0, "has its volume instead"),
    ],
)
def test_policies(write, tiny, policy, expected, note):
    path = region_table(write, VALUES, "region\tthickness")
    found = read_feature(path, "thickness", tiny, subcortex=policy)
    np.testing.assert_array_equal(found.values[6], expected)
    np.testing.assert_array_equal(found.values[:6], list(VALUES.values())[:6])
    assert note in found.notes[0]


def test_policies_leave_other_features_alone(write, tiny):
    found = read_feature(region_table(write, VALUES), "fdg", tiny, subcortex="mean")
    assert found.values[6] == 7
    assert found.notes == ()


def test_policy_refused(write, tiny):
    path = region_table(write, {**VALUES, "Left-Amygdala": "n/a"}, "region\tthickness")
    with pytest.raises(
        FileFormatError, match="subcortex='volume' needs volumes of the"
    ):
        read_feature(path, "thickness", tiny, subcortex="volume")
    with pytest.raises(ParameterError, match=r"subcortex must be one of .* got 'zero'"):
        read_feature(path, "thickness", tiny, subcortex="zero")


def test_thickness_of_zero_is_not_measured(write, tiny):
    path = region_table(write, {**VALUES, "rh_a": 0}, "region\tthickness")
    found = read_feature(path, "thickness", tiny)
    assert np.isnan(found.values[3])
    assert (
        "regions of thickness 0 (not found by FreeSurfer) are not measured"
        in found.notes
    )
    assert (
        read_feature(region_table(write, {**VALUES, "rh_a": 0}), "fdg", tiny).values[3]
        == 0
    )


def test_a_negative_size_is_refused(write, tiny):
    """Tables of ADNI write -4 for what was not measured."""
    path = region_table(write, {**VALUES, "rh_a": -4}, "region\tthickness")
    with pytest.raises(FileFormatError, match=r"of rh_a is -4; expected at least 0\."):
        read_feature(path, "thickness", tiny)
    path = region_table(write, {**VALUES, "rh_a": -4})
    assert read_feature(path, "fdg", tiny).values[3] == -4


def test_the_midline_takes_the_mean_of_both_sides(tiny):
    regions = tiny.regions.assign(hemisphere=["L"] * 3 + ["R"] * 3 + ["M"])
    atlas = type(tiny)("midline", regions, None)
    values = np.array([1.0, 1, 1, 4, 4, np.nan, 0])
    found = finish_feature(values, get_feature("thickness"), atlas, "mean")
    assert found.values[6] == pytest.approx(2.2)


def test_structures_are_whole_or_absent(tiny):
    check_structures(np.arange(6), tiny, "x")
    check_structures(np.array([6]), tiny, "x")
    with pytest.raises(FileFormatError, match="x: 6 of 6 cortex regions of tiny are"):
        check_structures(np.array([], dtype=int), tiny, "x")


def test_features_of_freesurfer(shared):
    atlas = load_atlas("destrieux160")
    folder = shared / "fs_stats_samples" / "soichi"
    for feature, first, last in (
        ("thickness", 3.043, np.nan),
        ("area", 721.0, np.nan),
        ("volume", 2753.0, 1665.5),
    ):
        values = read_feature(folder, feature, atlas).values
        np.testing.assert_array_equal(values[[0, -1]], [first, last])
    mixed = read_feature(
        folder / "stats", "thickness", atlas, subcortex="volume"
    ).values
    np.testing.assert_array_equal(mixed[[0, -1]], [3.043, 1665.5])
    with pytest.raises(
        ParameterError, match="must be one of 'area', 'thickness', 'vol"
    ):
        read_stats_feature(SubjectStats(folder, atlas), "curvature")
