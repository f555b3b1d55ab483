from dataclasses import replace

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from brainlsap.data import make_cohort
from brainlsap.evaluation import score_by_person_and_by_scan
from brainlsap.evaluation.controls import RegionStandardizer
from brainlsap.exceptions import ParameterError


@pytest.fixture
def repeated():
    """Three visits of a person are alike; nothing tells the classes."""
    rng = np.random.default_rng(0)
    cohort = make_cohort(50, atlas="desikan82", visits=(0, 0, 1))
    _, person = np.unique(cohort.groups, return_inverse=True)
    own = rng.normal(size=(50, cohort.n_rois, 1))
    noise = rng.normal(0, 0.5, cohort.features.shape)
    return replace(cohort, features=own[person] + noise)


def test_what_knows_people_gains_by_scan(repeated):
    nearest = make_pipeline(RegionStandardizer(), KNeighborsClassifier(1))
    both = score_by_person_and_by_scan(
        {"nearest": nearest}, repeated, 5, baselines=False
    )
    table = both.to_frame().set_index("model").loc["nearest"]
    assert table["gap"] > 0.5
    assert table["by_person"] < 0.4
    assert table["gap"] == pytest.approx(table["by_scan"] - table["by_person"])
    assert both.by_person.audit.is_clean
    assert not both.by_scan.audit.is_clean
    assert both.by_scan.people_shared


def test_one_visit_each_is_refused(cohort, nearest_mean):
    first = cohort.select(~cohort.table["participant"].duplicated().to_numpy())
    with pytest.raises(ParameterError, match="30 people has one scan"):
        score_by_person_and_by_scan(nearest_mean, first)


def test_unknown_scores_are_refused(cohort, nearest_mean):
    both = score_by_person_and_by_scan(nearest_mean, cohort, 2, baselines=False)
    with pytest.raises(ParameterError, match=r"score must be one of .*got 'x'"):
        both.to_frame("x")
