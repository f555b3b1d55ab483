"""One connectome for everybody, by name, and none at all."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from brainlsap.data import (
    load_cohort,
    make_cohort,
    shared_connectome,
    write_subject_folders,
)
from brainlsap.exceptions import ParameterError, RegionNameError


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(5, atlas="desikan82", random_state=3)


@pytest.fixture
def template(cohort):
    names = list(cohort.region_names)
    return pd.DataFrame(cohort.connectomes[2] + 1.0, names, names)


def check(cohort, shared, template):
    assert shared.shares_connectome
    assert_array_equal(shared.connectomes[3], template)
    assert_array_equal(shared.features, cohort.features)
    assert shared.table.equals(cohort.table)


def test_named_template_is_put_in_order(cohort, template):
    order = np.random.default_rng(0).permutation(len(template))
    mixed = template.iloc[order, order[::-1]]
    check(cohort, shared_connectome(cohort, mixed), template)
    with pytest.raises(RegionNameError, match=r"1 of the 82 regions .* are missing"):
        shared_connectome(cohort, template.iloc[1:, 1:])


def test_template_is_read_from_a_file(cohort, template, tmp_path):
    path = tmp_path / "template.csv"
    template.iloc[::-1, ::-1].to_csv(path)
    shared = shared_connectome(cohort, path)
    check(cohort, shared, template)
    assert f"one connectome for everybody: {path}" in shared.notes
    assert shared.provenance["connectome"] == str(path)


def test_matrix_of_another_size_is_refused(cohort):
    with pytest.raises(
        ParameterError, match=r"shape \(82, 82\) for desikan82, got \(3, 3"
    ):
        shared_connectome(cohort, np.ones((3, 3)))


def test_tractogram_needs_a_parcellation(cohort):
    with pytest.raises(
        ParameterError, match=r"template.tck is a tractogram; give parc"
    ):
        shared_connectome(cohort, "template.tck")


def test_cohort_without_any_connectome_can_be_loaded(cohort, tmp_path):
    folder = write_subject_folders(cohort, tmp_path / "study")
    for path in folder.rglob("*connectivity*"):
        path.unlink()
    loaded = load_cohort(
        folder, "desikan82", cohort.feature_names[0], connectome="none"
    )
    assert loaded.shares_connectome
    assert not loaded.connectomes.any()
    assert any("none was read" in note for note in loaded.notes)
