"""One file with all connectomes: whose they are, names of rows, what is refused."""

from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from brainlsap.atlas import load_atlas
from brainlsap.data import check_cohort, load_cohort, suggest_options
from brainlsap.data.connectomes import FORMATS
from brainlsap.data.flow import NO_IMAGE
from brainlsap.exceptions import CohortError
from brainlsap.findings import FAULT, FOREIGN_IDS
from brainlsap.text import option_text

ATLAS = load_atlas("desikan82")
IDS = ["sub-01_ses-M00", "sub-01_ses-M12", "sub-02_ses-M00"]


@pytest.fixture
def study(tmp_path):
    """Two people, one of them seen twice, and the matrices of a third besides."""
    columns = ["participant_id", "session_id", "diagnosis"]
    rows = [[*one.split("_"), label] for one, label in zip(IDS, "aab", strict=True)]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "participants.csv")
    W = np.random.default_rng(0).poisson(5, (4, 82, 82)) + 1.0
    np.save(tmp_path / "W.npy", W + W.transpose(0, 2, 1))
    (tmp_path / "W_ids.txt").write_text("\n".join(["id", "sub-09", *IDS[::-1]]))
    return tmp_path


def load(study, name, **more):
    return load_cohort(study, ATLAS, "strength", connectome=name, **more)


def test_matrices_go_by_ids_and_rows_by_names(study):
    W = np.load(study / "W.npy")
    cohort = load(study, "W.npy", row_order="atlas")
    assert cohort.table["scan"].tolist() == IDS
    np.testing.assert_array_equal(cohort.connectomes, W[:0:-1])
    assert any(
        "taken from W.npy by their IDs (W_ids.txt)" in note for note in cohort.notes
    )
    assert cohort.provenance["connectome"] == "one per scan"
    # MATLAB has scans last; names and ids lie beside the array, in another order
    order = np.random.default_rng(1).permutation(82)
    turned = W[1:, order][:, :, order].transpose(1, 2, 0)
    names = np.array(ATLAS.names, dtype=object)[order]
    ids = np.array(IDS[::-1], dtype=object)
    savemat(study / "W.mat", {"W": turned, "regions": names, "subjects": ids})
    other = load(study, "W.mat")
    np.testing.assert_array_equal(other.connectomes, cohort.connectomes)
    # MATLAB 7.3 writes HDF5, with the axes in reverse order.
    with h5py.File(study / "W.h5", "w") as file:
        file["W"] = turned.T
        file["W"].attrs["MATLAB_class"] = np.bytes_("double")
        file["regions"] = names.astype(h5py.string_dtype())
        file["subjects"] = ids.astype(h5py.string_dtype())
    other = load(study, "W.h5")
    np.testing.assert_array_equal(other.connectomes, cohort.connectomes)
    np.savez(study / "W.npz", W=turned, ids=IDS[::-1])
    (study / "rows.txt").write_text("\n".join(names))
    other = load(study, "W.npz", labels="rows.txt")
    np.testing.assert_array_equal(other.connectomes, cohort.connectomes)


def test_repeated_names_of_rows_are_refused_and_not_ignored(study):
    W = np.load(study / "W.npy")
    names = [ATLAS.names[1], *ATLAS.names[1:]]
    np.savez(study / "W.npz", W=W[1:], ids=IDS[::-1], regions=names)
    with pytest.raises(CohortError, match="occurs more than once") as caught:
        load(study, "W.npz")
    assert "row_order" not in str(caught.value)


def test_a_registered_format_may_hold_many_scans(study, monkeypatch):
    monkeypatch.setitem(FORMATS, ".own", FORMATS[".npy"])
    expected = load(study, "W.npy", row_order="atlas").connectomes
    (study / "W.npy").rename(study / "W.own")
    cohort = load(study, "W.own", row_order="atlas")
    np.testing.assert_array_equal(cohort.connectomes, expected)
    alone = FORMATS[".npy"]._replace(may_hold_many_scans=False)
    monkeypatch.setitem(FORMATS, ".own", alone)
    with pytest.raises(CohortError, match=r"W\.own"):
        load(study, "W.own", row_order="atlas")


@pytest.mark.parametrize("suffix", FORMATS)
def test_suffixes_are_registered_as_files_are_looked_up(suffix):
    assert suffix == Path(f"W{suffix}").suffix.lower()


def test_a_list_of_subjects_is_of_ids_and_no_table_of_people(study):
    cohort = load(study, "W.npy", row_order="atlas")
    (study / "W_ids.txt").unlink()
    (study / "subjects.txt").write_text("\n".join(["sub-09", *IDS[::-1]]))
    (study / "participants.csv").rename(study / "clinical.csv")
    other = load(study, "W.npy", row_order="atlas")
    np.testing.assert_array_equal(other.connectomes, cohort.connectomes)
    assert other.table["scan"].tolist() == IDS


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["a", *IDS], None),
        (IDS, "4 connectomes in the file, but 3 IDs in W_ids.txt"),
        (
            ["a", "b", *IDS[1:]],
            "sub-01_ses-M00: the connectome is missing; expected its ID in W",
        ),
        ([IDS[1], *IDS], "W.npy contains 2 connectomes of this scan; expected one"),
    ],
)
def test_ids_that_do_not_fit_are_refused(study, ids, said):
    (study / "W_ids.txt").write_text("\n".join(ids))
    if said is None:
        assert load(study, "W.npy", row_order="atlas").n_scans == 3
    else:
        with pytest.raises(CohortError) as refused:
            load(study, "W.npy", row_order="atlas")
        assert said in str(refused.value).replace("\n", " ").replace("    ", "")


@pytest.mark.parametrize(
    ("participants", "form"),
    [
        (("sub-01", "sub-02"), "{0}_{1}"),
        (("01", "02"), "{0}_{1}"),
        (("01", "02"), "sub-{0}_ses-{1}"),
        (("4132-N", "4133-N"), "{0}_{1}"),
        (("4132-N", "4133-N"), "sub-{0}_ses-{1}"),
        (("KH1_001", "KH1_002"), "{0}-{1}"),
    ],
)
def test_ids_may_join_participant_and_visit_in_any_usual_form(
    study, participants, form
):
    keys = [(participants[0], "U1"), (participants[0], "U2"), (participants[1], "U2")]
    people = pd.DataFrame(keys, columns=["participant_id", "session_id"])
    people.assign(diagnosis=list("aab")).to_csv(study / "participants.csv", index=False)
    W = np.load(study / "W.npy")[:3]
    np.savez(study / "W.npz", W=W[::-1], ids=[form.format(*key) for key in keys[::-1]])
    cohort = load(study, "W.npz", row_order="atlas")
    np.testing.assert_array_equal(cohort.connectomes, W)


@pytest.mark.parametrize(
    ("numbers", "kind"), [((2, 12, 103), FOREIGN_IDS), ((501, 502, 503), NO_IMAGE)]
)
def test_ids_that_lost_their_zeros_are_told_from_those_of_others(study, numbers, kind):
    people = pd.DataFrame({"participant_id": numbers, "session_id": "V1"})
    people.assign(diagnosis=list("aab")).to_csv(study / "participants.csv", index=False)
    stack_ids = ["0103_V1", "0012_V1", "0002_V1"]
    np.savez(study / "W.npz", W=np.load(study / "W.npy")[:3], ids=stack_ids)
    options = {"connectome": "W.npz", "feature": "strength", "row_order": "atlas"}
    checked = check_cohort(study, ATLAS, **options)
    (fault,) = (x for x in checked.findings if x.severity == FAULT)
    assert (fault.kind, Path(fault.path).name) == (kind, "W.npz")
    # a pattern of files is no way to name the entries of one file
    assert option_text("pattern") not in str(fault)
    assert all(text in str(fault) for text in [*stack_ids, *map(str, numbers)])
    assert ("zeros" in fault.message) == (kind == FOREIGN_IDS)
    assert not suggest_options(checked, {"atlas": ATLAS, **options})


@pytest.mark.parametrize(
    ("stack_id_form", "only_zeros_differ"),
    [
        ("P{:03d}_V1", True),
        ("sub-P{:03d}_ses-V1", True),
        ("P{:03d}-V1", True),
        ("p{:d}_v1", False),
        ("p{:03d}_V1", False),
        ("P-{:03d}_V1", False),
    ],
)
def test_only_zeros_are_said_to_differ_where_nothing_else_does(
    study, stack_id_form, only_zeros_differ
):
    numbers = [2, 12, 103]
    people_table = pd.DataFrame({"participant_id": [f"P{n}" for n in numbers]})
    people_table["session_id"] = "V1"
    people_table["diagnosis"] = [*"aab"]
    people_table.to_csv(study / "participants.csv", index=False)
    stack_ids = [stack_id_form.format(n) for n in numbers]
    if only_zeros_differ:
        stack_ids[2] = "other_V1"  # P103 has no zeros to lose
    np.savez(study / "W.npz", W=np.load(study / "W.npy")[:3], ids=stack_ids)
    options = {"connectome": "W.npz", "feature": "strength", "row_order": "atlas"}
    checked = check_cohort(study, ATLAS, **options)
    (fault,) = (x for x in checked.findings if x.severity == FAULT)
    assert (fault.kind == FOREIGN_IDS) == only_zeros_differ
    assert ("zeros" in fault.message) == only_zeros_differ


@pytest.mark.parametrize("visit", ["V1", "U7", "bl"])
def test_a_matrix_of_another_visit_is_not_taken(study, visit):
    people = pd.DataFrame({"participant_id": ["sub-01", "sub-02"], "session_id": "U2"})
    people.assign(diagnosis=list("ab")).to_csv(study / "participants.csv", index=False)
    ids = [f"sub-01_{visit}", "sub-02_U2"]
    np.savez(study / "W.npz", W=np.load(study / "W.npy")[:2], ids=ids)
    with pytest.raises(CohortError) as refused:
        load(study, "W.npz", row_order="atlas")
    assert "sub-01_U2: the connectome is missing" in str(refused.value)
    assert "sub-02" not in str(refused.value)


def write_values_of_visits(study, scan_keys):
    """Write one row for each person, and a table of values with all visits."""
    people = [*dict.fromkeys(participant_id for participant_id, _ in scan_keys)]
    rows = zip(people, "ab", strict=True)
    people_table = pd.DataFrame(rows, columns=["participant_id", "diagnosis"])
    people_table.to_csv(study / "participants.csv", index=False)
    value_table = pd.DataFrame(scan_keys, columns=["participant_id", "visit"])
    rng = np.random.default_rng(2)
    value_table[[*ATLAS.names]] = rng.uniform(0.8, 1.5, (len(scan_keys), len(ATLAS)))
    value_table.to_csv(study / "fdg.csv", index=False)


@pytest.mark.parametrize("form", ["{0}_{1}", "sub-{0}_{1}", "{0}-{1}"])
@pytest.mark.parametrize("prefix", ["", "P"])
def test_visits_may_stand_in_the_table_of_values_alone(study, prefix, form):
    scan_keys = [("0007", "V1"), ("0007", "V2"), ("0012", "V1"), ("0012", "V10")]
    scan_keys = [(prefix + person_id, visit) for person_id, visit in scan_keys]
    write_values_of_visits(study, scan_keys)
    W = np.load(study / "W.npy")
    stack_ids = [form.format(*scan_key) for scan_key in scan_keys]
    order = [2, 0, 3, 1]
    np.savez(study / "W.npz", W=W[order], ids=[stack_ids[i] for i in order])
    cohort = load_cohort(study, ATLAS, "fdg", connectome="W.npz", row_order="atlas")
    assert cohort.table["scan"].tolist() == ["_".join(key) for key in scan_keys]
    np.testing.assert_array_equal(cohort.connectomes, W)


@pytest.mark.parametrize("stack_id", ["sub-0012_V2", "0012_V2"])
def test_a_visit_of_the_table_of_values_gets_no_matrix_of_another(study, stack_id):
    scan_keys = [("0007", "V1"), ("0012", "V1")]
    write_values_of_visits(study, scan_keys)
    stack_ids = ["0007_V1", stack_id]
    np.savez(study / "W.npz", W=np.load(study / "W.npy")[:2], ids=stack_ids)
    with pytest.raises(CohortError) as refused:
        load_cohort(study, ATLAS, "fdg", connectome="W.npz", row_order="atlas")
    assert "0012_V1: the connectome is missing" in str(refused.value)
    assert "0007" not in str(refused.value)


def test_without_ids_or_names_it_is_said_what_to_write(study):
    with pytest.raises(CohortError, match="82 x 82 without names cannot be mapped"):
        load(study, "W.npy")
    (study / "W_ids.txt").unlink()
    with pytest.raises(CohortError, match=r"but 0 IDs .*write them into W_ids.txt"):
        load(study, "W.npy", row_order="atlas")


# ---- which list is which ------------------------------------------------------------


def save_stack(path, **arrays):
    """Write arrays in this order, as the format of the path keeps it."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".mat":
        texts = {k: v.astype(object) for k, v in arrays.items() if v.dtype.kind == "U"}
        savemat(path, arrays | texts)
    else:
        with h5py.File(path, "w") as file:
            for key, values in arrays.items():
                is_text = values.dtype.kind == "U"
                file[key] = [*map(str, values)] if is_text else values


@pytest.fixture
def numbered(tmp_path):
    """Twelve people called 1 to 12, whose matrices are in another order."""
    people = [str(i) for i in range(1, 13)]
    rows = {"participant_id": people, "diagnosis": ["a", "b"] * 6}
    pd.DataFrame(rows).to_csv(tmp_path / "participants.csv", index=False)
    order = np.random.default_rng(0).permutation(12)
    W = np.random.default_rng(1).poisson(5, (12, 82, 82)) + 1.0
    W = W + W.transpose(0, 2, 1)
    return tmp_path, W, W[order], np.array(people)[order]


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".h5"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"index": np.arange(1, 13)},
        {"a_row": np.arange(1, 13), "zz": np.arange(12), "age": np.arange(60, 72)},
        {"scan_number": np.arange(12, 0, -1)},
        {
            "sex": np.array(["F", "M"] * 6),
            "site": np.array([f"x{i}" for i in range(12)]),
        },
    ],
)
def test_texts_that_are_the_study_s_ids_win_over_numbers(numbered, suffix, more):
    folder, W, stored, ids = numbered
    for arrays in (more | {"whose": ids}, {"whose": ids} | more):
        save_stack(folder / f"W{suffix}", **{"W": stored} | arrays)
        cohort = load(folder, f"W{suffix}", row_order="atlas")
        np.testing.assert_array_equal(cohort.connectomes, W)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (
            {"a": [*"123456789", "10", "11", "12"]},
            "lists 'a' and 'whose' both contain IDs",
        ),
        (
            {"whose": [2, 1, *range(3, 13)], "ids": range(12, 0, -1)},
            "both contain IDs of this study",
        ),
        ({"whose": ["x"] * 12, "sex": ["F"] * 12}, "none of the lists 'sex', 'whose'"),
        (
            {"whose": ["x"], "row": range(1, 13)},
            "12 connectomes in the file, but 0 IDs in the file",
        ),
    ],
)
def test_lists_that_leave_whose_it_is_open_are_refused(numbered, lists, message):
    folder, _, stored, ids = numbered
    arrays = {"whose": ids} | {key: np.array(one) for key, one in lists.items()}
    save_stack(folder / "W.h5", W=stored, **arrays)
    with pytest.raises(CohortError, match=message):
        load(folder, "W.h5", row_order="atlas")


def test_a_list_beside_the_file_may_not_contradict_one_in_it(numbered):
    folder, W, stored, ids = numbered
    save_stack(folder / "W.npz", W=stored, subjects=ids)
    (folder / "W_ids.txt").write_text("\n".join(ids))
    cohort = load(folder, "W.npz", row_order="atlas")
    np.testing.assert_array_equal(cohort.connectomes, W)
    (folder / "W_ids.txt").write_text("\n".join(sorted(ids)))
    with pytest.raises(
        CohortError, match=r"lists 'subjects' and 'W_ids\.txt' both contain"
    ):
        load(folder, "W.npz", row_order="atlas")


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".h5"])
@pytest.mark.parametrize("first", [0, 1, 100])
def test_region_names_win_over_an_index(numbered, suffix, first):
    folder, W, stored, ids = numbered
    order = np.random.default_rng(2).permutation(82)
    names = np.array(ATLAS.names)[order]
    stored = stored[:, order][:, :, order]
    index = {"a_index": np.arange(first, first + 82)}
    for lists in (index | {"region_names": names}, {"region_names": names} | index):
        save_stack(folder / f"W{suffix}", W=stored, ids=ids, **lists)
        cohort = load(folder, f"W{suffix}")
        np.testing.assert_array_equal(cohort.connectomes, W)
    both = {"names": np.array(ATLAS.names), "region_names": names}
    save_stack(folder / f"W{suffix}", W=stored, ids=ids, **both)
    with pytest.raises(CohortError, match="'names' and 'region_names' contradict"):
        load(folder, f"W{suffix}")


def test_as_many_scans_as_regions(tmp_path):
    """The axis of scans is that along which matrices are symmetric."""
    people = [f"sub-{i:02d}" for i in range(1, 83)]
    rows = {"participant_id": people, "diagnosis": ["a", "b"] * 41}
    pd.DataFrame(rows).to_csv(tmp_path / "participants.csv", index=False)
    W = np.random.default_rng(0).poisson(5, (82, 82, 82)) + 1.0
    W = W + W.transpose(0, 2, 1)
    for stack in (W, np.moveaxis(W, 0, 2)):
        np.savez(tmp_path / "W.npz", W=stack, ids=people)
        cohort = load(tmp_path, "W.npz", row_order="atlas")
        np.testing.assert_array_equal(cohort.connectomes, W)
    np.savez(tmp_path / "W.npz", W=np.ones_like(W), ids=people)
    with pytest.raises(CohortError, match="axis of the scans is unclear"):
        load(tmp_path, "W.npz", row_order="atlas")


def test_matrices_of_other_regions_in_one_file_are_refused(study, monkeypatch):
    matrices = FORMATS[".npy"].read_matrices(study / "W.npy")
    names = tuple(ATLAS.names)
    named = [matrix._replace(row_names=names) for matrix in matrices]
    smaller = [*matrices[:-1], matrices[-1]._replace(weights=np.eye(81))]
    other = [*named[:-1], named[-1]._replace(row_names=names[::-1])]
    crossed = [matrix._replace(column_names=names[::-1]) for matrix in named]

    def register(raw_matrices):
        own = FORMATS[".npy"]._replace(read_matrices=lambda _: raw_matrices)
        monkeypatch.setitem(FORMATS, ".npy", own)

    for raw_matrices in (smaller, other, crossed):
        register(raw_matrices)
        with pytest.raises(CohortError, match="the same regions"):
            load(study, "W.npy", row_order="atlas")
    register(named)
    cohort = load(study, "W.npy")
    np.testing.assert_array_equal(cohort.connectomes, np.load(study / "W.npy")[:0:-1])
