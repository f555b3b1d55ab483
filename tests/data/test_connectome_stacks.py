"""One file with all connectomes: whose they are, names of rows, what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

from brainlsap.atlas import load_atlas
from brainlsap.data import load_cohort
from brainlsap.exceptions import CohortError

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
    assert any("taken from W.npy by ids (W_ids.txt)" in note for note in cohort.notes)
    assert cohort.provenance["connectome"] == "one per scan"
    # MATLAB has scans last; names and ids lie beside the array, in another order
    order = np.random.default_rng(1).permutation(82)
    turned = W[1:, order][:, :, order].transpose(1, 2, 0)
    names = np.array(ATLAS.names, dtype=object)[order]
    ids = np.array(IDS[::-1], dtype=object)
    savemat(study / "W.mat", {"W": turned, "regions": names, "subjects": ids})
    other = load(study, "W.mat")
    np.testing.assert_array_equal(other.connectomes, cohort.connectomes)
    np.savez(study / "W.npz", W=turned, ids=IDS[::-1])
    (study / "rows.txt").write_text("\n".join(names))
    other = load(study, "W.npz", labels="rows.txt")
    np.testing.assert_array_equal(other.connectomes, cohort.connectomes)


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
        (IDS, "4 connectomes, but 3 ids (W_ids.txt); expected one for each"),
        (["a", "b", *IDS[1:]], "sub-01_ses-M00: no connectome; expected an id of it"),
        ([IDS[1], *IDS], "W.npy has 2 connectomes of it; expected one, under an id"),
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


def test_without_ids_or_names_it_is_said_what_to_write(study):
    with pytest.raises(CohortError, match="82 x 82 without names cannot be mapped"):
        load(study, "W.npy")
    (study / "W_ids.txt").unlink()
    with pytest.raises(CohortError, match=r"but 0 ids .*lines of W_ids.txt beside"):
        load(study, "W.npy", row_order="atlas")
