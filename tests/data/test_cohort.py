"""Cohort: one door, one list of faults, one file."""

import json

import h5py
import numpy as np
import pandas as pd
import pytest

from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.classes import order_classes
from brainlsap.data.cohort import Cohort
from brainlsap.exceptions import CohortError, FileFormatError, ParameterError

N_SCANS, N_ROIS, N_FEATURES = 6, 5, 2


def tiny_atlas(n_rois=N_ROIS):
    regions = pd.DataFrame(
        {
            "name": [f"region-{i}" for i in range(n_rois)],
            "hemisphere": ["L"] * n_rois,
            "x": np.arange(n_rois, dtype=float),
        }
    )
    return Atlas(name="tiny", regions=regions, folder=None)


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
        "notes": ("mirrored 6 matrices",),
        "provenance": {"folder": "somewhere", "n": 6},
    }
    return {**parts, **changes}


def test_names_and_sizes():
    cohort = Cohort(**draw_parts())
    assert (cohort.n_scans, cohort.n_rois, cohort.n_features) == (6, 5, 2)
    assert cohort.region_names == tuple(f"region-{i}" for i in range(5))
    assert cohort.y.tolist() == ["CN", "CN", "AD", "EMCI", "CN", "AD"]
    assert cohort.groups.tolist() == ["a", "a", "b", "c", "d", "e"]
    assert list(cohort.table)[:4] == ["scan", "participant", "session", "label"]
    assert cohort.table["session"].tolist() == ["1", "2", "1", "", "1", "1"]
    assert (~cohort.measured).sum() == 1
    assert not cohort.measured[1, 2, 0]


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


def test_pack_keeps_the_order():
    cohort = Cohort(**draw_parts())
    X = cohort.to_array()
    assert X.shape == (6, 5, 7)
    np.testing.assert_array_equal(X[..., :5], cohort.connectomes)
    np.testing.assert_array_equal(X[..., 5:], cohort.features)


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


def test_select_refuses():
    cohort = Cohort(**draw_parts())
    with pytest.raises(ParameterError, match="between 0 and 5, got 6"):
        cohort.select([0, 6])
    with pytest.raises(ParameterError, match=r"mask of length 6 .* shape \(2,\)"):
        cohort.select([True, False])
    with pytest.raises(ParameterError, match="at least one scan"):
        cohort.select([])
    with pytest.raises(CohortError, match="scan 's1' stands more than once"):
        cohort.select([1, 1])


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
    ({"connectomes": W[:, :4, :4]}, r"shape \(6, 5, 5\) for 6 .* got \(6, 4, 4\)"),
    ({"features": F[:5]}, r"features must have shape \(6, 5, 2\) .* got \(5, 5, 2\)"),
    ({"connectomes": swap(W, (3, 1, 2), np.nan)}, "'s3' must be finite .* got nan"),
    ({"connectomes": swap(W, (3, 1, 2), -1)}, "got -1.0 between region-1 and region-2"),
    ({"connectomes": swap(W, (3, 1, 2), 70)}, "'s3' must be symmetric, got 70.0 from"),
    ({"features": swap(F, (4, 1, 1), np.inf)}, "infinity for fdg of region-1 .* 's4'"),
    ({"table": TABLE.drop(columns="label")}, "must have the columns .* label is miss"),
    ({"table": TABLE.iloc[:0]}, "table has no scans"),
    ({"table": TABLE.assign(label=None)}, "no label in row 0"),
    ({"table": TABLE.assign(scan="s")}, "scan 's' stands more than once"),
    (
        {"table": TABLE.assign(label="XY")},
        "label 'XY' of 6 scan.s. is not among the cl",
    ),
    ({"classes": ("CN", "CN", "AD")}, "classes must be different, got CN, CN, AD"),
    ({"feature_names": ("fdg", "fdg")}, "feature_names must be different names"),
    ({"provenance": {"x": W}}, "provenance must be expressible as JSON"),
    ({"table": pd.concat([TABLE, TABLE[["age"]]], axis=1)}, "two columns of one name"),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS)
def test_door_refuses(changes, message):
    with pytest.raises(CohortError, match=message):
        Cohort(**draw_parts(**changes))


def test_all_faults_in_one_list():
    with pytest.raises(CohortError) as error:
        Cohort(**draw_parts(connectomes=W[:5], features=F[..., :1], classes=("CN",)))
    assert len(error.value.faults) == 4


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("factor", [1, 1e5, 1e10, 0.5, 1 / 3])
def test_file_round_trip(tmp_path, shared, factor):
    connectomes = W * factor
    if shared:
        connectomes = np.broadcast_to(connectomes[0], connectomes.shape)
    truth = pd.DataFrame({"region": ["region-1"], "seed": [True], "effect": [-0.5]})
    cohort = Cohort(**draw_parts(connectomes=connectomes, truth=truth))
    path = cohort.write(tmp_path / "new" / "cohort.h5")
    back = Cohort.read(path)
    np.testing.assert_array_equal(back.connectomes, cohort.connectomes)
    np.testing.assert_array_equal(back.features, cohort.features)
    pd.testing.assert_frame_equal(back.table, cohort.table)
    pd.testing.assert_frame_equal(back.truth, truth)
    assert back.shares_connectome == shared
    for name in ("feature_names", "classes", "label_name", "notes", "provenance"):
        assert getattr(back, name) == getattr(cohort, name)
    assert back.region_names == cohort.region_names
    assert list(tmp_path.rglob("*partial*")) == []


def test_file_finds_the_shipped_atlas_again(tmp_path):
    atlas = load_atlas("desikan82")
    n_rois = len(atlas)
    cohort = Cohort(
        **draw_parts(
            atlas=atlas,
            connectomes=np.ones((N_SCANS, n_rois, n_rois)),
            features=np.ones((N_SCANS, n_rois, N_FEATURES)),
        )
    )
    back = Cohort.read(cohort.write(tmp_path / "cohort.h5"))
    assert back.atlas.folder == atlas.folder


def test_read_refuses_what_is_not_a_cohort(tmp_path):
    with pytest.raises(FileFormatError, match=r"absent\.h5: no such file"):
        Cohort.read(tmp_path / "absent.h5")
    text = tmp_path / "text.h5"
    text.write_text("no HDF5")
    with pytest.raises(FileFormatError, match=r"text\.h5: not a whole cohort file"):
        Cohort.read(text)
    foreign = tmp_path / "foreign.h5"
    with h5py.File(foreign, "w") as file:
        file["x"] = 1
    with pytest.raises(FileFormatError, match="HDF5 file, but not a cohort"):
        Cohort.read(foreign)


def test_read_refuses_other_versions(tmp_path):
    path = Cohort(**draw_parts()).write(tmp_path / "cohort.h5")
    with h5py.File(path, "a") as file:
        file.attrs["format_version"] = 99
    with pytest.raises(FileFormatError, match="version 99; this brainlsap reads"):
        Cohort.read(path)


@pytest.mark.parametrize("name", ["about", "connectomes", "features", "table"])
def test_read_refuses_missing_parts(tmp_path, name):
    path = Cohort(**draw_parts()).write(tmp_path / "cohort.h5")
    with h5py.File(path, "a") as file:
        del file[name]
    with pytest.raises(FileFormatError, match="not a whole cohort file"):
        Cohort.read(path)


def test_read_refuses_parts_that_do_not_fit(tmp_path):
    path = Cohort(**draw_parts()).write(tmp_path / "cohort.h5")
    with h5py.File(path, "a") as file:
        about = json.loads(file["about"][()])
        del file["about"]
        file["about"] = json.dumps({**about, "classes": ["CN"]})
    with pytest.raises(FileFormatError, match=r"(?s)damaged cohort file .*'EMCI'"):
        Cohort.read(path)


def test_cut_or_damaged_files_never_give_other_numbers(tmp_path):
    cohort = Cohort(**draw_parts())
    whole = cohort.write(tmp_path / "cohort.h5").read_bytes()
    path = tmp_path / "cut.h5"
    for share in (0.1, 0.5, 0.9, 0.999):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(FileFormatError, match=r"cut\.h5"):
            Cohort.read(path)
    place = whole.index(cohort.features.tobytes())
    path.write_bytes(whole[:place] + b"\x01" + whole[place + 1 :])
    with pytest.raises(FileFormatError, match="not a whole cohort file"):
        Cohort.read(path)


def test_nothing_is_pickled(tmp_path):
    path = Cohort(**draw_parts()).write(tmp_path / "cohort.h5")
    with h5py.File(path) as file:
        kinds = []
        file.visititems(
            lambda _, item: kinds.append(item.dtype) if hasattr(item, "dtype") else None
        )
    assert all(kind.kind in "uifb" or h5py.check_string_dtype(kind) for kind in kinds)


@pytest.mark.parametrize(
    ("labels", "classes", "expected"),
    [
        (["AD", "CN", "EMCI"], None, ("CN", "EMCI", "AD")),
        (["MCI", "CN", "AD"], None, ("AD", "CN", "MCI")),
        (["1", "0", "10", "2"], None, ("0", "1", "2", "10")),
        (["b", "a"], ("b", "a"), ("b", "a")),
    ],
)
def test_order_of_classes(labels, classes, expected):
    assert order_classes(labels, classes) == expected


def test_order_of_classes_refuses_doubles():
    with pytest.raises(ParameterError, match="classes names 'CN' more than once"):
        order_classes(["CN"], ("CN", "CN"))


def test_read_refuses_arrays_that_are_promised_and_not_there(tmp_path):
    path = Cohort(**draw_parts()).write(tmp_path / "cohort.h5")
    with h5py.File(path, "a") as file:
        del file["connectomes"]
        one = (1, N_ROIS, N_ROIS)
        # a header of 200 terabytes costs nothing
        file.create_dataset("connectomes", (10**12, *one[1:]), float, chunks=one)
    with pytest.raises(FileFormatError, match="holds less than its header promises"):
        Cohort.read(path)


def test_read_refuses_columns_that_are_promised_and_not_there(tmp_path):
    path = Cohort(**draw_parts()).write(tmp_path / "cohort.h5")
    with h5py.File(path, "a") as file:
        texts = next(k for k in file["table"] if f"{k}-missing" in file["table"])
        del file["table"][texts]
        kind = h5py.string_dtype()
        file["table"].create_dataset(texts, (10**14,), kind, chunks=(1000,))
    with pytest.raises(FileFormatError, match=r"/table/\d+ holds less than its header"):
        Cohort.read(path)


@pytest.mark.parametrize("name", ["about", "table/0", "table/5", "regions/0-missing"])
def test_read_refuses_parts_of_another_kind(tmp_path, name):
    """HDF5 died of lists of any length where texts were expected."""
    path = Cohort(**draw_parts()).write(tmp_path / "cohort.h5")
    with h5py.File(path, "a") as file:
        size = file[name].shape
        del file[name]
        file.create_dataset(name, size, h5py.vlen_dtype(np.uint8))
    with pytest.raises(FileFormatError, match=rf"/{name} holds .*expected (text|num)"):
        Cohort.read(path)


def test_read_refuses_attributes_of_another_kind(tmp_path):
    path = Cohort(**draw_parts()).write(tmp_path / "cohort.h5")
    with h5py.File(path, "a") as file:
        lists = np.empty(1, dtype=object)
        lists[0] = np.arange(3, dtype=np.uint8)
        file.attrs.create("format", lists, dtype=h5py.vlen_dtype(np.uint8))
    with pytest.raises(FileFormatError, match=r"not a cohort; .* got None"):
        Cohort.read(path)
