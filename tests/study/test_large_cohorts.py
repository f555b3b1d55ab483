"""A cohort that is mapped to files gives the numbers of one in memory, bit for bit."""

import tempfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import brainlsap._scratch as scratch
from brainlsap.data import Cohort, make_cohort
from brainlsap.evaluation import audit, baseline_models, cross_validate
from brainlsap.model import DiffusedLogisticRegression, LSAPClassifier
from brainlsap.model.propagation import SPECTRA as _SPECTRA

MODELS = {
    "one layer": LSAPClassifier(n_epochs=3, n_starts=2),
    "two layers": LSAPClassifier(
        "exact",
        n_layers=2,
        n_epochs=3,
        n_starts=1,
        options={
            "batch_size": 8,
            "normalization": "random_walk",
            "preparation": {"consensus": 0.5, "isolated": "strongest"},
        },
    ),
    "diffused": DiffusedLogisticRegression(scales=(0.5, 1.0), n_inner_folds=2),
    "linear": baseline_models()["logistic regression"],
}


@pytest.fixture(scope="module")
def cohort_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cohort") / "cohort.h5"
    return make_cohort(26, atlas="desikan82", random_state=3).write(path)


@pytest.fixture
def forget_spectra():
    """Let graphs be decomposed anew: else both ways would share what one has made."""
    _SPECTRA.__init__()
    yield
    _SPECTRA.__init__()


def answers(path, n_jobs=1):
    _SPECTRA.__init__()
    whole = Cohort.read(path)
    cohort = whole.select(np.arange(1, whole.n_scans))
    evaluation = cross_validate(MODELS, cohort, 2, baselines=False, n_jobs=n_jobs)
    found = {
        (name, fold.fold): fold.probability
        for name, result in evaluation.results.items()
        for fold in result.folds
    }
    return cohort, evaluation, found


@pytest.mark.usefixtures("forget_spectra")
def test_mapped_and_in_memory_agree_bit_for_bit(cohort_file, monkeypatch, tmp_path):
    plain, known, expected = answers(cohort_file)
    assert scratch.map_of(plain.connectomes) is None
    monkeypatch.setenv(scratch.LARGE_VARIABLE, "0")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mapped, evaluation, found = answers(cohort_file)
    assert scratch.map_of(mapped.connectomes) is not None
    assert scratch.map_of(mapped.to_array()) is not None
    assert_array_equal(mapped.to_array(), plain.to_array())
    assert evaluation.cohort.data_hash == known.cohort.data_hash
    assert found.keys() == expected.keys()
    for key, probability in expected.items():
        assert probability.tobytes() == found[key].tobytes(), key


def test_a_mapped_cohort_cannot_be_written_to_and_is_written_again(
    cohort_file, monkeypatch, tmp_path
):
    expected = Cohort.read(cohort_file)
    monkeypatch.setenv(scratch.LARGE_VARIABLE, "0")
    monkeypatch.setattr(scratch, "BLOCK_BYTES", 3 * 82 * 82 * 8)
    cohort = Cohort.read(cohort_file)
    with pytest.raises(ValueError, match="read-only"):
        cohort.connectomes[0] = 1.0
    again = Cohort.read(cohort.write(tmp_path / "again.h5"))
    assert_array_equal(again.connectomes, expected.connectomes)
    assert_array_equal(again.features, expected.features)
    splits = [(np.arange(13), np.arange(13, 26))]
    assert audit(again, splits).sentence() == audit(expected, splits).sentence()
