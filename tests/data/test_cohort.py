"""Cohort: checked once, one list of faults, one file, and plain arrays."""

import pickle
import re
import sys
from dataclasses import replace
from functools import cache

import h5py
import numpy as np
import pandas as pd
import pytest

from brainlsap.arrays import pack_scans
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import Cohort, read_connectome, read_study
from brainlsap.data.cohort import NOT_GIVEN
from brainlsap.data.participants import order_rows_by_visit
from brainlsap.data.reading_options import NO_CONNECTOME
from brainlsap.data.stored_cohort import is_cohort_file
from brainlsap.evaluation.subgroups import make_case_mix
from brainlsap.exceptions import CohortError, FileFormatError, ParameterError
from brainlsap.findings import ASSUMED
from brainlsap.report.demographics import sort_scan_table_by_visit
from tests.conftest import raises_kind
from tests.data.conftest import refused

N_SCANS, N_ROIS, N_FEATURES = 6, 5, 2


@cache
def tiny_atlas(n_rois=N_ROIS):
    names = [f"region-{i}" for i in range(n_rois)]
    return Atlas.from_names(names, "L" * n_rois, name="tiny")


def draw_parts(seed=0, **changes):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.poisson(9.0, (N_SCANS, N_ROIS, N_ROIS)), 1).astype(float)
    features = rng.normal(size=(N_SCANS, N_ROIS, N_FEATURES))
    features[1, 2, 0] = np.nan
    table = pd.DataFrame(
        {
            "age": [70.5, 71.5, np.nan, 66.0, 80.0, 75.0],
            "scan": [f"s{i}" for i in range(N_SCANS)],
            "participant": ["a", "a", "b", "c", "d", "e"],
            "session": ["1", "2", "1", None, "1", "1"],
            "label": ["CN", "CN", "AD", "EMCI", "CN", "AD"],
            "sex": ["F", "F", "M", None, "F", "M"],
        }
    )
    parts = {
        "connectomes": upper + upper.transpose(0, 2, 1),
        "features": features,
        "table": table,
        "atlas": tiny_atlas(),
        "feature_names": ("thickness", "fdg"),
        "classes": ("CN", "EMCI", "AD"),
        "findings": ("mirrored 6 matrices",),
        "provenance": {"folder": "somewhere", "n": 6},
    }
    return {**parts, **changes}


def test_names_sizes_and_packed_arrays():
    cohort = Cohort(**draw_parts())
    assert (cohort.n_scans, cohort.n_rois, cohort.n_features) == (6, 5, 2)
    assert cohort.y.tolist() == ["CN", "CN", "AD", "EMCI", "CN", "AD"]
    assert cohort.groups.tolist() == ["a", "a", "b", "c", "d", "e"]
    assert cohort.table["session"].tolist() == ["1", "2", "1", "", "1", "1"]
    assert np.argwhere(~cohort.measured).tolist() == [[1, 2, 0]]
    X = cohort.to_array()
    np.testing.assert_array_equal(X[..., :5], cohort.connectomes)
    np.testing.assert_array_equal(X[..., 5:], cohort.features.astype(np.float32))


def test_arrays_cannot_be_written_to():
    parts = draw_parts()
    cohort = Cohort(**parts)
    for array in (cohort.connectomes, cohort.features):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    # nor through the arrays that were handed in
    parts["features"][0] = 99
    assert cohort.features[0].max() < 99
    parts["table"].loc[0, "label"] = "AD"
    assert cohort.y[0] == "CN"


@pytest.mark.parametrize(
    "rows", [[True, False, False, True, False, True], [0, 3, 5], np.array([0, 3, -1])]
)
def test_select_keeps_rows_together(rows):
    cohort = Cohort(**draw_parts())
    chosen = cohort.select(rows)
    assert chosen.table["scan"].tolist() == ["s0", "s3", "s5"]
    assert chosen.table.index.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(chosen.features, cohort.features[[0, 3, 5]])
    np.testing.assert_array_equal(chosen.connectomes, cohort.connectomes[[0, 3, 5]])
    assert chosen.classes == cohort.classes


@pytest.mark.parametrize(
    "rows", [[0, 6], [True, False], [], [False] * 6, [0.5], [1, 1]]
)
def test_select_refuses(rows):
    with pytest.raises((IndexError, CohortError), match=r"ind|must have a row|once"):
        Cohort(**draw_parts()).select(rows)


def test_shared_connectome_stays_one_matrix():
    W = draw_parts()["connectomes"][0]
    shared = np.broadcast_to(W, (N_SCANS, N_ROIS, N_ROIS))
    cohort = Cohort(**draw_parts(connectomes=shared))
    assert cohort.shares_connectome
    assert cohort.select([2, 4, 5]).shares_connectome
    W[0, 1] = 1e6  # the owner's matrix is no longer ours
    assert cohort.connectomes.max() < 1e6
    assert not Cohort(**draw_parts()).shares_connectome


def swap(array, place, value):
    array = array.copy()
    array[place] = value
    return array


W, F = draw_parts()["connectomes"], draw_parts()["features"]
TABLE = draw_parts()["table"]
FAULTS = [
    ({"connectomes": W[:, :4, :4]}, r"shape \(6, 5, 5\), for 6 .* got \(6, 4, 4\)"),
    ({"features": F[:5]}, r"features must have shape \(6, 5, 2\), .* got \(5, 5, 2\)"),
    ({"connectomes": swap(W, (3, 1, 2), np.nan)}, "s3: .* must be finite .* got nan"),
    ({"connectomes": swap(W, (3, 1, 2), -1)}, "got -1 from region-1 to region-2"),
    ({"connectomes": swap(W, (3, 1, 2), 70)}, "s3: .* be symmetric; got 70 from"),
    ({"features": swap(F, (4, 1, 1), np.inf)}, "inf for fdg in .* region-1 .* 's4'"),
    ({"table": TABLE.drop(columns="label")}, "columns scan, .*, label, each once; g"),
    ({"table": TABLE.iloc[:0]}, "table must have a row for every scan .* got 0 rows"),
    ({"connectomes": W + np.diag([np.inf] * 5)}, "6 scans: .* diagonal is not; set"),
    ({"table": TABLE.assign(label=None)}, "label is missing in 6 rows"),
    ({"table": TABLE.assign(scan="s")}, "scan 's' occurs more than once"),
    ({"table": TABLE.assign(label="XY")}, "label 'XY' of 6 scans is not among the"),
    (
        {"classes": ("CN", "CN", "AD")},
        "classes must differ.* got CN, CN",
    ),
    (
        {"feature_names": ("fdg", "FDG")},
        "feature_names must differ.* got fdg, FDG",
    ),
    (
        {"table": TABLE.assign(participant=[*"abcdeE"])},
        r"people .* case .* got e, E",
    ),
    (
        {"table": pd.concat([TABLE, TABLE[["age"]]], axis=1)},
        "each once; got 6 rows with .*age.*age",
    ),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS)
def test_parts_that_do_not_fit_are_refused(changes, message):
    with refused(message):
        Cohort(**draw_parts(**changes))


def test_all_faults_in_one_list():
    with pytest.raises(CohortError) as error:
        Cohort(**draw_parts(connectomes=W[:5], features=F[..., :1], classes=("CN",)))
    assert len(error.value.faults) == 4


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("factor", [1, 1e10, 1 / 3])
def test_file_round_trip(tmp_path, shared, factor):
    connectomes = W * factor
    if shared:
        connectomes = np.broadcast_to(connectomes[0], connectomes.shape)
    truth = pd.DataFrame({"region": ["region-1"], "seed": [True], "effect": [-1 / 3]})
    # bytes that look like HDF5's own once made a valid file unreadable
    given = {"truth": truth, "findings": ("GCOL\x01", "TREE", "a" * 100_000)}
    given |= {"connectomes": connectomes, "classes_ordered": False}
    cohort = Cohort(**draw_parts(**given))
    path = cohort.save(tmp_path / "new" / "cohort.h5")
    back = Cohort.load(path)
    assert back.connectomes.dtype == np.float32
    np.testing.assert_array_equal(back.connectomes, cohort.connectomes)
    np.testing.assert_array_equal(back.features, cohort.features)
    pd.testing.assert_frame_equal(back.table, cohort.table)
    pd.testing.assert_frame_equal(back.truth, truth)
    assert back.shares_connectome == shared
    for name in ("feature_names", "classes", "classes_ordered", "label_name", "notes"):
        assert getattr(back, name) == getattr(cohort, name)
    assert back.provenance == cohort.provenance
    assert back.region_names == cohort.region_names
    assert list(tmp_path.rglob("*partial*")) == []


def test_who_was_not_selected_is_counted_and_kept_in_the_file(tmp_path):
    cohort = Cohort(**draw_parts()).select([0, 1, 3]).select([0, 1], fate="other class")
    assert cohort.left_out["scan"].tolist() == ["s2", "s4", "s5", "s3"]
    expected_fates = ["not selected"] * 3 + ["other class"]
    assert cohort.left_out["fate"].tolist() == expected_fates
    loaded = Cohort.load(cohort.save(tmp_path / "cohort.h5"))
    pd.testing.assert_frame_equal(loaded.left_out, cohort.left_out)


def test_file_finds_the_shipped_atlas_again(tmp_path):
    atlas = load_atlas("desikan82")
    W, X = np.ones((82, 82)), np.ones((2, 82))
    cohort = Cohort.from_arrays(W, X, ["CN", "AD"], atlas=atlas)
    back = Cohort.load(cohort.save(tmp_path / "cohort.h5"))
    assert back.atlas.folder == atlas.folder


def test_cut_or_damaged_files_never_give_other_numbers(tmp_path):
    cohort = Cohort(**draw_parts())
    whole = cohort.save(tmp_path / "cohort.h5").read_bytes()
    path = tmp_path / "cut.h5"
    for share in (0.1, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(FileFormatError, match=r"cut\.h5"):
            Cohort.load(path)
    for values in (cohort.features[0], cohort.connectomes[1]):
        place = whole.index(values.tobytes())
        path.write_bytes(whole[:place] + b"\x01" + whole[place + 1 :])
        with raises_kind("unreadable"):
            Cohort.load(path)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_cohort_travels_with_a_shared_connectome_once(is_shared):
    W = np.ones((40, 40) if is_shared else (300, 40, 40))
    labels, features = ["CN", "AD"] * 150, np.ones((300, 40))
    cohort = Cohort.from_arrays(W, features, labels, atlas=tiny_atlas(40))
    text = pickle.dumps(cohort)
    assert (len(text) < cohort.connectomes.nbytes / 2) == is_shared
    again = pickle.loads(text)
    assert again.shares_connectome == is_shared
    assert not again.connectomes.flags.writeable
    np.testing.assert_array_equal(again.connectomes, cohort.connectomes)
    pd.testing.assert_frame_equal(again.table, cohort.table)


def test_a_cohort_is_as_large_as_what_travels(small_cohort):
    # Dask pickles what is small for every task
    arrays = small_cohort.connectomes.nbytes + small_cohort.features.nbytes
    assert arrays <= sys.getsizeof(small_cohort) < arrays + 1000
    W = small_cohort.connectomes[0]
    shared = replace(
        small_cohort, connectomes=np.broadcast_to(W, small_cohort.connectomes.shape)
    )
    arrays = W.nbytes + shared.features.nbytes
    assert arrays <= sys.getsizeof(shared) < arrays + 1000


def test_many_connectomes_stay_in_their_file(tmp_path, monkeypatch):
    cohort = Cohort(**draw_parts())
    path = cohort.save(tmp_path / "cohort.h5")
    monkeypatch.setattr("brainlsap.data.cohort.MAPPED_BYTES", 0)
    mapped = Cohort.load(path)
    assert isinstance(mapped.connectomes.base, np.memmap)
    assert not mapped.connectomes.flags.writeable
    np.testing.assert_array_equal(mapped.connectomes, cohort.connectomes)
    np.testing.assert_array_equal(mapped.to_array(), cohort.to_array())
    with h5py.File(path, "a") as file:
        file["connectomes"][2, 0, 1] += 1
    with raises_kind("unreadable"):
        Cohort.load(path)


def test_arrays_that_are_promised_and_not_there_are_refused(tmp_path):
    path = Cohort(**draw_parts()).save(tmp_path / "cohort.h5")
    with h5py.File(path, "a") as file:
        del file["connectomes"]
        one = (1, N_ROIS, N_ROIS)
        # a header of 200 terabytes costs nothing
        file.create_dataset("connectomes", (10**12, *one[1:]), float, chunks=one)
    with pytest.raises(
        FileFormatError, match="has fewer values than its header states"
    ):
        Cohort.load(path)
    with h5py.File(path, "a") as file:
        file.attrs["format_version"] = 99
    with pytest.raises(FileFormatError, match=r"version are .*99.*; expected"):
        Cohort.load(path)


def test_codes_for_what_is_missing_are_refused():
    values = np.array(F)
    values[2, 3, 1] = 9999
    with refused(
        "s2: fdg is 9999 .first in region-3., but most other .*; write n/a for a v"
    ):
        Cohort(**draw_parts(features=values))
    values[:, :, 1] = 9500 + 400 * F[:, :, 1]
    values[2, 3, 1] = 9999  # among others like it
    Cohort(**draw_parts(features=values))


def test_covariates_are_checked_wherever_they_stand():
    table = draw_parts()["table"].assign(age=[70, 71, 72, 999, 74, 75])
    assert table.columns[0] == "age"  # before the keys
    with refused("s3: age is far outside 70 to 75.*got 999"):
        Cohort(**draw_parts(table=table))


def test_arrays_make_a_cohort():
    labels = ["MCI", "CN", "AD", "CN", "MCI", "AD"]
    given = {"groups": list("aabcde"), "feature_names": ["thickness", "fdg"]}
    given["covariates"] = {"age": range(60, 66), "sex": list("FFMFMF")}
    given["atlas"] = [f"area{i}_{side}" for i, side in enumerate("LRLRL")]
    cohort = Cohort.from_arrays(W, F, labels, **given)
    assert cohort.classes == ("CN", "MCI", "AD")
    assert cohort.classes_ordered
    assert cohort.groups.tolist() == list("aabcde")
    assert cohort.table["age"].tolist() == list(range(60, 66))
    by_person = pd.DataFrame({"age": range(5)}, index=list("dcabe"))
    given["covariates"] = by_person.loc[given["groups"]]
    again = Cohort.from_arrays(W, F, labels, **given)
    assert again.table["age"].tolist() == [2, 2, 3, 1, 0, 4]
    np.testing.assert_array_equal(cohort.connectomes, W)
    np.testing.assert_array_equal(cohort.features, F)
    assert not Cohort.from_arrays(
        W, F, list("xyzxyz"), atlas=cohort.atlas
    ).classes_ordered
    one = Cohort.from_arrays(W[0], F[..., 1], labels, atlas=cohort.atlas)
    assert one.shares_connectome
    assert one.feature_names == ("feature",)
    kw = {"feature_names": "fdg", "atlas": cohort.atlas}
    assert Cohort.from_arrays(W, F[..., 1], labels, **kw).feature_names == ("fdg",)
    with refused("'AD' of 2 .* CN, MCI; add this label to classes=, or leave"):
        Cohort.from_arrays(W, F[..., 1], labels, classes=["CN", "MCI"], **kw)
    with refused("label is missing in 2 rows .counted from 0.: 2, 4. Leave .*notna"):
        Cohort.from_arrays(W, F[..., 1], [0, 1, np.nan, 1, None, 1], **kw)
    with refused("participant is missing in 1 row .counted from 0.: 5"):
        Cohort.from_arrays(W, F[..., 1], labels, groups=[*"abcde", None], **kw)
    with refused(r"only one triangle is filled; mirror it by np\.maximum"):
        Cohort.from_arrays(np.triu(W), F[..., 1], labels, **kw)
    with pytest.raises(ParameterError, match=r"give features\[np\.newaxis\]"):
        Cohort.from_arrays(W[0], F[0, :, 1], None, **kw)


def test_arrays_without_connectomes_have_one_made_of_the_features():
    atlas = tiny_atlas()
    cohort = Cohort.from_arrays(None, F, ["CN", "AD"] * 3, atlas=atlas)
    assert cohort.shares_connectome
    assert not cohort.connectomes.any()
    assert cohort.provenance["connectome"] == NO_CONNECTOME


def test_a_cohort_of_arrays_notes_that_no_region_has_a_side():
    own_names = [f"ROI_{k:02d}" for k in range(5)]
    for names, is_noted in ((own_names, True), (["insula_L", *own_names[1:]], False)):
        cohort = Cohort.from_arrays(W, F, ["CN", "AD"] * 3, atlas=names)
        noted = [note for note in cohort.notes if "hemispheres=" in note]
        assert bool(noted) == is_noted


def test_negative_weights_of_correlations_need_an_option():
    signed = W * np.where(np.add.outer(range(5), range(5)) % 2, -1, 1)
    names = list("abcde")
    with pytest.raises(ParameterError, match=r"not be neg.* 72 .*negative='drop' se"):
        Cohort.from_arrays(signed, F, list("xyzxyz"), atlas=names)
    for how, expected in (("drop", np.maximum(signed, 0)), ("absolute", W)):
        cohort = Cohort.from_arrays(
            signed, F, list("xyzxyz"), atlas=names, negative=how
        )
        np.testing.assert_array_equal(cohort.connectomes, expected)
        assert "negative weights" in cohort.notes[1]


def test_a_cohort_file_has_a_suffix_by_which_it_is_known(tmp_path):
    cohort = Cohort(**draw_parts())
    with pytest.raises(ParameterError, match=r"must end with \.h5 or \.hdf5; got 'c.n"):
        cohort.save(tmp_path / "c.npz")
    assert [*tmp_path.iterdir()] == []
    path = cohort.save(tmp_path / "c.hdf5")
    assert is_cohort_file(path)


def test_labels_of_another_number_are_named():
    with pytest.raises(ParameterError, match="labels has 5 entries; connectomes and f"):
        Cohort.from_arrays(W, F, list("xyzxy"), atlas=list("abcde"))


def test_arrays_that_do_not_fit_are_refused():
    shapes = "must have shape {}, for 6 scans and 5 regions (own); got {}.".format
    whole = {"connectomes": W, "features": F, "labels": list("xyzxyz")}
    for name, given, expected, got in (
        ("labels", np.array([*"xyzxyz"])[:, None], "(6,)", "(6, 1)"),
        ("features", F[:5], "(6, 5) or (6, 5, n_features)", "(5, 5, 2)"),
        ("features", F[0, :, 0], "(6, 5) or (6, 5, n_features)", "(5,)"),
        ("connectomes", W[:, :3, :3], "(6, 5, 5) or (5, 5)", "(6, 3, 3)"),
        ("groups", list("abcde"), "(6,)", "(5,)"),
    ):
        with pytest.raises(ParameterError, match=re.escape(shapes(expected, got))):
            Cohort.from_arrays(**whole | {name: given}, atlas=list("abcde"))
    for wrong, hint in (
        ({"covariates": {"age": [70] * 4}}, r"\['age'\] must have shape \(6,\), for 6"),
        ({"covariates": [70] * 6}, "a DataFrame or dict; got list"),
        ({"connectomes": F[..., 0], "features": W}, "Give connectomes first, then f"),
        ({"connectomes": W[:, :3, :3] - 9}, "connectomes must have shape"),
        ({"groups": list("abcde")}, r"\(5,\)\. Give the participant ID of each of"),
        ({"features": [F[..., 0]] * 2}, r"\(6, 5, n_features\), .* got \(2, 6, 5\)"),
        ({"features": [{}] * 6}, "features must be an array of numbers, got list"),
        (
            {"features": [pd.Series(one) for one in F[..., 0]]},
            "For one feature, give one DataFrame",
        ),
        ({"connectomes": {"P1": W[0]}}, r"connectomes must have .* got \(1, 5, 5\)"),
        (
            {"connectomes": pd.DataFrame(W[0, :4])},
            r"must be square; got shape \(4, 5\)",
        ),
        (
            {"covariates": {"Diagnosis": list("yxyzxz")}},
            "scan1: the label is 'y' in column Diagnosis of covariates, but 'x' in "
            "labels=.* 5 of 6",
        ),
    ):
        with pytest.raises(ParameterError, match=hint):
            Cohort.from_arrays(**whole | wrong, atlas=list("abcde"))
    with pytest.raises(CohortError, match=r"is continuous \(6 values from 70.5 to"):
        Cohort.from_arrays(W, F, np.arange(6) + 70.5, atlas=list("abcde"))


def test_columns_outside_the_atlas_are_left_out_with_a_note():
    atlas = load_atlas("desikan82")
    names = ["Left-Cerebellum-Cortex", *atlas.names[::-1]]
    values = np.random.default_rng(0).random((6, 83))
    cohort = Cohort.from_arrays(
        None, pd.DataFrame(values, columns=names), [*"xyzxyz"], atlas=atlas
    )
    assert cohort.features[0, :, 0].tolist() == values[0, :0:-1].tolist()
    assert any("Left-Cerebellum-Cortex" in note for note in cohort.notes)


def test_regions_of_tables_travel_by_name():
    names, mixed = list("abcde"), list("dbaec")
    table, given = pd.DataFrame(F[..., 0], columns=names), {"labels": [*"xyzxyz"]}
    given["atlas"] = names
    frames = [pd.DataFrame(one, names, names).loc[names[::-1], mixed] for one in W]
    cohort = Cohort.from_arrays(frames, table[mixed], **given)
    np.testing.assert_array_equal(cohort.connectomes, W)
    np.testing.assert_array_equal(cohort.features[..., 0], F[..., 0])
    two = {"fdg": table[mixed], "tau": F[..., 1]}
    both = Cohort.from_arrays(frames, two, **given)
    assert both.feature_names == ("fdg", "tau")
    np.testing.assert_array_equal(both.features, F)
    given["feature_names"] = ["tau", "fdg"]
    again = Cohort.from_arrays(frames, two, **given)
    np.testing.assert_array_equal(again.features, F[..., ::-1])
    del given["feature_names"]
    one = frames[0].loc[mixed].reset_index(drop=True)  # columns name the rows, too
    shared = Cohort.from_arrays(one, table, **given)
    np.testing.assert_array_equal(shared.connectomes[5], W[0])
    with pytest.raises(ValueError, match=r"1 of 5 names .* atlas own: 'f'"):
        Cohort.from_arrays(W, table.rename(columns={"e": "f"}), **given)
    with pytest.raises(ValueError, match=r"1 of the 5 regions .* own are missing: d"):
        Cohort.from_arrays(W, table.drop(columns="d"), **given)


def test_connectomes_by_scan_are_in_the_order_of_the_tables():
    names, people = list("abcde"), [f"P{i}" for i in range(6)]
    table = pd.DataFrame(F[..., 0], people, names)
    frames = [pd.DataFrame(one, names, names) for one in W]
    by_scan = dict(zip(people, frames, strict=True))
    for given in (by_scan, pd.Series([*W], people)):
        cohort = Cohort.from_arrays(given, table, [*"xyzxyz"], atlas=names)
        np.testing.assert_array_equal(cohort.connectomes, W)
        assert cohort.table["participant"].tolist() == people
    turned = dict([*by_scan.items()][::-1])
    told = "1 of features and row 1 of connectomes belong .* people: 'P0' and 'P5'"
    with pytest.raises(ParameterError, match=told):
        Cohort.from_arrays(turned, table, [*"xyzxyz"], atlas=names)


def test_classes_labels_and_values_are_those_that_there_are():
    y, names = [*"xyzxyz"], list("abcde")
    shadow = {"label": [*"zzzzzz"], "age": [*range(6)]}
    cohort = Cohort.from_arrays(W, F, y, covariates=shadow, atlas=names)
    assert cohort.y.tolist() == y
    assert cohort.table["label_given"].tolist() == shadow["label"]
    assert cohort.select(cohort.y != "y").classes == ("x", "z")
    with pytest.raises(
        CohortError, match=r"no scan has the diagnosis 'w'; the scans have"
    ):
        Cohort.from_arrays(W, F, y, classes=[*"xyzw"], atlas=names)
    empty = W * (np.arange(len(W)) != 4)[:, None, None]
    with pytest.raises(CohortError, match=r"scan5: the connectome has no connection"):
        Cohort.from_arrays(empty, F, y, atlas=names)
    values = np.array(F, dtype=float)
    values[2] = np.nan
    with pytest.raises(CohortError, match=r"scan3 has no value of any feature; leave"):
        Cohort.from_arrays(W, values, y, atlas=names)
    values = {"a": F[..., 0], "b": np.full(F.shape[:2], np.nan)}
    with pytest.raises(
        CohortError, match="b has no value in any scan; leave this feature out"
    ):
        Cohort.from_arrays(W, values, y, atlas=names)


def test_people_in_another_order_are_refused():
    y, mixed, names = pd.Series([*"xyzxyz"]), [3, 1, 2, 0, 4, 5], list("abcde")
    ages, people = pd.DataFrame({"age": range(6)}, mixed), pd.Series(range(6), mixed)
    for more in ({"covariates": ages}, {"groups": people}):
        with pytest.raises(
            ParameterError, match=r"row 1 of .* belong to different people"
        ):
            Cohort.from_arrays(W, F, y, atlas=names, **more)
    with raises_kind("rows reordered", error=ParameterError):
        Cohort.from_arrays(W, F, [*y], covariates=ages, atlas=names)
    alike = {"covariates": ages, "groups": pd.Series([*"abcabc"], mixed)}
    both = Cohort.from_arrays(W, F, [*y], atlas=names, **alike)
    assert both.table["age"].tolist() == [*range(6)]
    named = pd.DataFrame(F[..., 0], [*"uvwxyz"])
    assert [*Cohort.from_arrays(W, named, y, atlas=names).groups] == [*"uvwxyz"]
    assert Cohort.from_arrays(W, named, None, atlas=names).classes == ("unlabelled",)
    with pytest.raises(ParameterError, match="row 1 of labels belong to different"):
        Cohort.from_arrays(W, named, y.set_axis([*"zyxwvu"]), atlas=names)
    with pytest.raises(
        ParameterError, match=r"has the index 'u', but groups= names 'z'"
    ):
        Cohort.from_arrays(W, named, y, groups=[*"zyxwvu"], atlas=names)
    visits = named.set_axis([*"uuvwxy"])  # of somebody who came twice
    with pytest.raises(
        ParameterError,
        match=r"index of features has .* a repeated entry.* groups=",
    ):
        Cohort.from_arrays(W, visits, y, atlas=names)
    people = pd.DataFrame({"participant_id": visits.index, "age": range(6)})
    cohort = Cohort.from_arrays(W, visits, y, atlas=names, covariates=people)
    assert cohort.groups.tolist() == [*"uuvwxy"]
    told = {"scan": "scan2", "id_in_groups": "v", "id_in_index": "u"}
    with raises_kind("other participant", error=ParameterError, **told):
        Cohort.from_arrays(W, F, y, groups=[*"uvvwxy"], atlas=names, covariates=people)
    both = people["participant_id"], people.drop(columns="age")  # other ids, and alike
    for kept in (pd.factorize(both[0])[0], both[0]):
        Cohort.from_arrays(W, F, y, groups=kept, atlas=names, covariates=both[1])


def draw_scans(n_scans=30):
    """Return one connectome and values of three regions for every scan, and labels."""
    rng = np.random.default_rng(0)
    labels = rng.choice(["CN", "AD"], n_scans).tolist()
    return np.ones((3, 3)), rng.random((n_scans, 3)), labels


THREE = ["area_L", "area_R", "stem"]


@pytest.mark.parametrize("values", [["yes", "no"], [0, 1], [True, False], ["J", "N"]])
@pytest.mark.parametrize("head", ["Patient", "subject"])
def test_a_covariate_of_yes_and_no_is_a_group(head, values):
    covariates = pd.DataFrame({head: values * 15})
    cohort = Cohort.from_arrays(*draw_scans(), covariates=covariates, atlas=THREE)
    assert cohort.table["participant"].nunique() == 30
    assert cohort.table[head].tolist() == values * 15
    covariates["eid"] = np.repeat(np.arange(15) + 1000, 2)
    cohort = Cohort.from_arrays(*draw_scans(), covariates=covariates, atlas=THREE)
    assert cohort.table["participant"].nunique() == 15


def test_covariates_that_may_name_people_are_asked_for():
    scans = draw_scans()
    codes = [f"K{k // 2:02d}" for k in range(30)]
    several = {"record_id": range(1, 31), "code": codes}
    with pytest.raises(ParameterError, match=r"'record_id' and 'code' .* groups="):
        Cohort.from_arrays(*scans, covariates=several, atlas=THREE)
    with pytest.raises(
        ParameterError, match=r"'subject' has 3 different values .* groups="
    ):
        Cohort.from_arrays(*scans, covariates={"subject": [*"abc"] * 10}, atlas=THREE)
    people = [f"P{k // 3}" for k in range(30)]
    several["NACCID"] = people  # what repeats, and says whose, comes before a counter
    del several["code"]
    cohort = Cohort.from_arrays(*scans, covariates=several, atlas=THREE)
    assert cohort.groups.tolist() == people
    several["subject"] = [*"abc"] * 10
    cohort = Cohort.from_arrays(*scans, covariates=several, groups=people, atlas=THREE)
    assert cohort.groups.tolist() == people


def test_an_index_of_people_has_the_order_of_groups():
    people, names = [*"uuvwxy"], list("abcde")
    moved = np.array([3, 0, 1, 2, 4, 5])
    index = np.array(people)[moved]
    visits = pd.MultiIndex.from_arrays([index, np.array([*"121111"])[moved]])
    values, ages = pd.DataFrame(F[..., 0]), pd.DataFrame({"age": range(6)})
    for other in (index, visits, [f"sub-{one}_ses-{i}" for i, one in enumerate(index)]):
        given = {"features": values.set_axis(other), "labels": [*"xyzxyz"]}
        for change in (
            {},
            {"features": values, "labels": pd.Series([*"xyzxyz"], other)},
            {"features": values, "covariates": ages.set_axis(other)},
        ):
            with pytest.raises(ParameterError, match="groups= names 'u' for this row"):
                Cohort.from_arrays(W, groups=people, atlas=names, **given | change)


def test_groups_keep_the_people_of_an_index_together():
    people, names = [*"uuvwxy"], list("abcde")
    scans = [f"sub-{one}_ses-{k}" for k, one in enumerate(people)]
    given = pd.DataFrame(F[..., 0], scans), [*"xyzxyz"]
    with raises_kind("several IDs of a person", error=ParameterError):
        Cohort.from_arrays(W, *given, groups=range(6), atlas=names)
    ages = pd.DataFrame({"age": range(70, 75)}, [*"yxwvu"])
    how = {"groups": people, "covariates": ages.loc[people], "atlas": names}
    cohort = Cohort.from_arrays(W, *given, **how)
    assert cohort.table["age"].tolist() == [74, 74, 73, 72, 71, 70]


def test_an_index_of_scans_says_whose_they_are():
    names, people, y = list("abcde"), [*"uuvwxy"], [*"xyzxyz"]
    scans = [f"{one}_ses-{k}" for k, one in enumerate(people)]
    values, who = pd.DataFrame(F[..., 0], scans), {"participant_id": [*"vuuwxy"]}
    cohort = Cohort.from_arrays(W, values, y, atlas=names)
    assert [*cohort.groups] == people
    assert cohort.table["scan"].tolist() == scans
    assert "groups= not given" in cohort.notes[-1]
    assert "index" in cohort.notes[-1]
    for wrong in ({"covariates": who}, {"groups": scans}):
        with pytest.raises(
            ParameterError,
            match=r"Row 1 of .* has the index|groups= must contain participant IDs",
        ):
            Cohort.from_arrays(W, values, y, atlas=names, **wrong)
    values.index = pd.MultiIndex.from_arrays([people, range(6)])
    with pytest.raises(ParameterError, match=r"several levels .* groups="):
        Cohort.from_arrays(W, values, y, atlas=names)
    cohort = Cohort.from_arrays(W, values, y, groups=people, atlas=names)
    assert cohort.table["scan"][0] == "u_0"


@pytest.mark.parametrize(
    ("index", "are_people_known"),
    [
        (pd.Index([0, 2, 3, 5, 8, 9]), False),
        (pd.Index([0, 2, 3, 5, 8, 9], name="row"), False),
        (pd.Index([3, 1, 12, 7, 44, 6], name="RID"), True),
        (pd.Index([3, 1, 12, 7, 44, 6], name="Pat_Nr"), True),
        (pd.Index(["0003", "0001", "0012", "0007", "0044", "0006"]), True),
    ],
)
def test_row_numbers_with_gaps_name_nobody(index, are_people_known):
    """Selected rows of a table were taken for as many people."""
    covariates = pd.DataFrame({"age": range(70, 76)}, index)
    cohort = Cohort.from_arrays(
        W, F, [*"xyzxyz"], covariates=covariates, atlas=[*"abcde"]
    )
    assert (cohort.provenance["people"] == NOT_GIVEN) is not are_people_known
    assert ("every scan counts" in cohort.notes[-1]) is not are_people_known
    assert cohort.table["scan"].tolist() == [*map(str, index)]
    features = pd.DataFrame(F[..., 0], index.rename(None))
    both = Cohort.from_arrays(
        W, features, [*"xyzxyz"], covariates=covariates, atlas=[*"abcde"]
    )
    assert both.provenance["people"] == cohort.provenance["people"]


def test_an_index_with_the_name_of_an_id_is_one_although_it_counts():
    y, names = [*"xyzxyz"], list("abcde")
    ids = pd.Index([*range(1, 7)], name="participant_id")
    values, ages = pd.DataFrame(F[..., 0]), pd.DataFrame({"age": range(6)})
    for change in (
        {"features": values.set_axis(ids)},
        {"covariates": ages.set_axis(ids)},
        {"covariates": ages.set_axis(pd.RangeIndex(1, 7, name="subject"))},
        # the other arrays have no index, and are in the order of these ids
        {"covariates": ages.set_axis(ids[::-1])},
    ):
        given = {"features": values, "labels": y} | change
        cohort = Cohort.from_arrays(W, **given, atlas=names)
        people = [*map(str, next(iter(change.values())).index)]
        assert cohort.groups.tolist() == people
        assert cohort.provenance["people"] == "given"
    for index in (ids, ids.rename(None), ids.rename("id")):
        for change in (
            {"features": values.set_axis(index), "groups": range(6, 0, -1)},
            {"features": values, "labels": pd.Series(y, index), "groups": [*"213456"]},
            {
                "features": values.set_axis(index),
                "covariates": {"participant_id": [2, 1, 3, 4, 5, 6]},
            },
        ):
            with pytest.raises(ParameterError, match="for this row"):
                Cohort.from_arrays(W, **{"labels": y} | change, atlas=names)
    # a new index from 0 counts rows
    cohort = Cohort.from_arrays(W, values, y, groups=[*"105432"], atlas=names)
    assert cohort.groups.tolist() == [*"105432"]


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([7, 7, 8, 9, 10, 11], name="RID"),
        pd.MultiIndex.from_arrays(
            [[7, 7, 8, 9, 10, 11], [*"121111"]], names=["subject", "visit"]
        ),
    ],
)
def test_visits_of_people_are_read_from_an_index_with_the_name_of_an_id(index):
    ages = pd.DataFrame({"age": range(6)}, index)
    cohort = Cohort.from_arrays(W, F, [*"xyzxyz"], covariates=ages, atlas=list("abcde"))
    assert cohort.groups.tolist() == ["7", "7", "8", "9", "10", "11"]
    assert cohort.provenance["people"] == "given"
    with raises_kind("several IDs of a person", error=ParameterError):
        Cohort.from_arrays(
            W,
            F,
            [*"xyzxyz"],
            groups=range(6),
            covariates=ages,
            atlas=list("abcde"),
        )


def test_errors_on_people_name_covariates_that_have_them():
    y, names = [*"xyzxyz"], list("abcde")
    index = [f"p{i}" for i in range(6)]
    values = pd.DataFrame(F[..., 0], index)
    swapped = {"participant_id": ["p1", "p0", *index[2:]]}
    scans = {"participant_id": [f"sub-{i}_ses-1" for i in range(6)]}
    missing = {"participant_id": [None, *index[1:]]}
    short = pd.DataFrame({"participant_id": index[1:]})
    for features, covariates in (
        (values, swapped),
        (values, pd.DataFrame(swapped)),
        (values, pd.DataFrame(swapped, [*index[1:], index[0]])),
        (F, scans),
        (F, missing),
        (F, short),
    ):
        with pytest.raises((ParameterError, CohortError)) as caught:
            Cohort.from_arrays(W, features, y, covariates=covariates, atlas=names)
        assert "groups" not in str(caught.value)
    assert "one row for each of the 6 scans" in str(caught.value)


def test_numbers_as_labels_are_said_to_be_ordered():
    names = list("abcde")
    told = Cohort.from_arrays(W, F, [0, 1, 2, 0, 1, 2], atlas=names).notes
    assert any("the classes 0 < 1 < 2 are numbers" in note for note in told)
    for labels in ([0, 1] * 3, [*"xyzxyz"], ["CN", "MCI", "AD"] * 2):
        notes = Cohort.from_arrays(W, F, labels, atlas=names).notes
        assert "ordered" not in " ".join(notes)


def test_classes_without_an_order_are_noted_until_one_is_given(tmp_path):
    labels = ["témoin", "MCI", "MA"] * 2
    cohort = Cohort.from_arrays(W, F, labels, atlas=list("abcde"))
    (note,) = [note for note in cohort.notes if "order of stages is unknown" in note]
    assert "MA, is the reference of all differences" in note
    path = cohort.save(tmp_path / "cohort.h5")
    classes = ["témoin", "MCI", "MA"]
    for ordered in (
        Cohort.from_arrays(W, F, labels, atlas=list("abcde"), classes=classes),
        read_study(path, classes=classes),
    ):
        assert "order of stages is unknown" not in " ".join(ordered.notes)


def test_notebooks_show_who_is_in_it_and_nobody_s_name():
    names = ["<b>_L", "c_R", *"xyz"]
    table = TABLE.assign(participant=[f"Doe{i}" for i in range(6)])
    cohort = Cohort(
        **draw_parts(atlas=Atlas.from_names(names, name="<i>"), table=table)
    )
    shown = cohort._repr_html_()
    assert "CN 3, EMCI 1, AD 2" in shown
    assert "5 (&lt;i&gt;)" in shown
    assert "Doe" not in shown
    assert "<i>" not in cohort.atlas._repr_html_()


# ---- masked arrays, and pandas' nullable types --------------------------------------

SIDED = ["a_L", "b_L", "a_R", "b_R"]
STAGE = ["CN", "AD"] * 4
MASKED = np.zeros((8, 4), dtype=bool)
MASKED[[1, 4, 4], [0, 2, 3]] = True
SUVR = np.random.default_rng(0).integers(100, 200, (8, 4)) / 64


@pytest.mark.parametrize(
    "make",
    [
        lambda X, m: np.ma.array(X, mask=m),
        lambda X, m: {"fdg": np.ma.array(X, mask=m), "tau": X + 1},
        lambda X, m: np.ma.array(X[..., None], mask=m[..., None]),
        lambda X, m: [np.ma.array(x, mask=k) for x, k in zip(X, m, strict=True)],
        lambda X, m: np.ma.array(X, mask=m).tolist(),
        lambda X, m: [list(row) for row in np.ma.array(X, mask=m)],
        lambda X, m: pd.DataFrame(X, columns=SIDED).astype("Float64").mask(m),
        lambda X, m: pd.DataFrame(X, columns=SIDED).astype(object).mask(m, pd.NA),
        lambda X, m: pd.DataFrame(X, columns=SIDED).astype("string").mask(m),
        lambda X, m: pd.DataFrame(X, columns=SIDED).mask(m).astype("category"),
    ],
)
def test_what_is_masked_or_na_was_not_measured(make):
    cohort = Cohort.from_arrays(np.ones((4, 4)), make(SUVR, MASKED), STAGE, atlas=SIDED)
    assert np.isnan(cohort.features[..., 0]).tolist() == MASKED.tolist()
    np.testing.assert_array_equal(
        cohort.features[..., 0], np.where(MASKED, np.nan, SUVR)
    )
    counts = np.ma.array((SUVR * 64).astype(int), mask=MASKED)
    for whole in (counts, pd.DataFrame(counts.data).astype("Int64").mask(MASKED)):
        cohort = Cohort.from_arrays(np.ones((4, 4)), whole, STAGE, atlas=SIDED)
        assert np.isnan(cohort.features[..., 0]).tolist() == MASKED.tolist()
    masked = np.ma.array(cohort.features, mask=MASKED[..., None])
    parts = cohort.connectomes, cohort.table, cohort.atlas
    own = Cohort(parts[0], masked, *parts[1:], ("fdg",), cohort.classes)
    assert np.isnan(own.features[..., 0]).tolist() == MASKED.tolist()
    packed = pack_scans(cohort.connectomes, masked)
    assert np.isnan(packed[..., 4]).tolist() == MASKED.tolist()
    assert not np.isnan(packed[..., :4]).any()


def test_masked_weights_and_people_are_refused():
    W = np.ma.masked_equal(np.ones((8, 4, 4)), 0)
    W[3, 0, 1] = W[3, 1, 0] = np.ma.masked
    with pytest.raises(CohortError, match=r"scan4: .* finite .*got nan from a_L"):
        Cohort.from_arrays(W, SUVR, STAGE, atlas=SIDED)
    with pytest.raises(FileFormatError, match=r"NaN or infinite.* a_L and b_L"):
        read_connectome(W[3], load_atlas(SIDED))
    masked = [False, True, *[False] * 6]
    for argument, what in (("labels", "label"), ("groups", "participant")):
        given = {"labels": STAGE, "groups": [f"p{i}" for i in range(8)]}
        given[argument] = np.ma.array(given[argument], mask=masked)
        with pytest.raises(CohortError, match=f"{what} is missing in 1 row .*: 1"):
            Cohort.from_arrays(np.ones((4, 4)), SUVR, atlas=SIDED, **given)


def test_masked_and_nullable_covariates_are_missing():
    masked = [False, True, *[False] * 6]
    age, sex = [70, 999, *[71] * 6], ["F", "M"] * 4
    nullable = pd.DataFrame({"age": age, "sex": sex, "smoker": [True] * 8, "site": sex})
    nullable = nullable.astype({"age": "Int64", "sex": "string", "smoker": "boolean"})
    nullable = nullable.astype({"site": "category"})
    nullable.iloc[1] = pd.NA
    plain = {
        "age": np.ma.array(age, mask=masked),
        "sex": np.ma.array(sex, mask=masked),
        "smoker": [True, np.ma.masked, *[True] * 6],
        "site": np.ma.array(sex, mask=masked),
    }
    for covariates in (nullable, plain):
        cohort = Cohort.from_arrays(
            np.ones((4, 4)), SUVR, STAGE, atlas=SIDED, covariates=covariates
        )
        table = cohort.table[["age", "sex", "smoker", "site"]]
        assert table.isna().sum(axis=1).tolist() == [0, 4, *[0] * 6]
        assert cohort.table["age"].dtype == float
        assert not any(x is pd.NA for x in table.to_numpy().ravel())
    renamed = cohort.table.assign(age=nullable["age"], sex=nullable["sex"])
    own = Cohort(
        cohort.connectomes, cohort.features, renamed, cohort.atlas, ("x",), STAGE[:2]
    )
    pd.testing.assert_frame_equal(own.table, cohort.table)


@pytest.mark.parametrize("word", ["None", "NA", "null"])
def test_a_label_that_counts_as_missing_is_named(word):
    with pytest.raises(ParameterError, match=f"labels= contains '{word}' for 4 scans"):
        Cohort.from_arrays(np.ones((4, 4)), SUVR, [word, "AD"] * 4, atlas=SIDED)


@pytest.mark.parametrize(
    ("column_name", "visits"),
    [
        ("session", ["M12", "bl", "bl"]),
        ("Visit", [2, 1, 1]),
        ("VISCODE", ["m12", "bl", "bl"]),
        ("wave", [2.0, 1.0, 1.0]),
        ("scan_date", pd.to_datetime(["2021-03-01", "2020-02-01", "2020-05-05"])),
        ("Untersuchungsdatum", ["01.03.2021", "14.02.2020", "05.05.2020"]),
    ],
)
def test_the_first_scan_of_arrays_is_the_earliest_visit(column_name, visits):
    table = pd.DataFrame({"age": [71.0, 70.0, 60.0], column_name: visits})
    labels = ["AD", "AD", "CN"]
    cohort = Cohort.from_arrays(
        np.ones((3, 3)),
        np.eye(3),
        labels,
        groups=["a", "a", "b"],
        covariates=table,
        atlas=["area_L", "area_R", "stem"],
    )
    assert ASSUMED not in {finding.kind for finding in cohort.findings}
    assert (cohort.table["session"] != "").all()
    assert cohort.table["age"].tolist() == [71, 70, 60]  # in the order of the arrays
    assert order_rows_by_visit(cohort.table).tolist() == [1, 0, 2]
    first_scans = sort_scan_table_by_visit(cohort.table).drop_duplicates("participant")
    assert sorted(first_scans["age"]) == [60, 70]
    assert make_case_mix(cohort)["numbers"]["age"]["mean"] == 65


@pytest.mark.parametrize(
    ("columns", "date_column"),
    [
        ({}, None),
        ({"visit_date": ["x", "y", "z"]}, "visit_date"),
        ({"wave": [1, 1, 1]}, None),
    ],
)
def test_unknown_visits_of_arrays_are_noted(columns, date_column):
    def make_cohort(groups):
        return Cohort.from_arrays(
            np.ones((3, 3)),
            np.eye(3),
            ["AD", "AD", "CN"],
            groups=groups,
            covariates={"age": [71, 70, 60], **columns},
            atlas=["area_L", "area_R", "stem"],
        )

    notes = [x for x in make_cohort(["a", "a", "b"]).findings if x.kind == ASSUMED]
    assert len(notes) == 1
    assert date_column is None or date_column in notes[0].advice
    assert ASSUMED not in {x.kind for x in make_cohort([*"abc"]).findings}
