"""A tiny cohort with a planted answer, and a classifier that has scales."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from brainlsap._arrays import unpack
from brainlsap.data import Atlas, Cohort

N_ROIS = 7


class NearestMean(ClassifierMixin, BaseEstimator):
    """Classifies by the nearest class mean; its scales tell which regions differ."""

    def __init__(self, start=2.0, random_state=None):
        self.start = start
        self.random_state = random_state

    def fit(self, X, y, groups=None):
        self.groups_ = groups
        self.noise_ = np.random.default_rng(self.random_state).normal()
        self.classes_ = np.unique(y)
        _, features = unpack(X)
        values = np.nan_to_num(features[..., 0])
        self.means_ = np.stack([values[y == one].mean(axis=0) for one in self.classes_])
        self.scales_start_ = self.start
        self.scales_ = self.start / (1 + np.ptp(self.means_, axis=0))
        self.fit_report_ = {"kernel_error": np.float32(1e-6), "epochs": 3}
        return self

    def predict_proba(self, X):
        values = np.nan_to_num(unpack(X)[1][..., 0])
        distance = ((values[:, None, :] - self.means_[None]) ** 2).sum(axis=2)
        weight = np.exp(-distance + distance.min(axis=1, keepdims=True))
        return weight / weight.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def draw_atlas():
    sides = ["L"] * 4 + ["R"] * 3
    regions = pd.DataFrame({"name": [f"region_{k}" for k in range(N_ROIS)]})
    return Atlas(
        "tiny",
        regions.assign(
            freesurfer_id=-1,
            hemisphere=sides,
            structure="cortex",
            annot_name="",
            long_name=[f"long & wide {k}" for k in range(N_ROIS)],
            lobe="frontal",
            short_name=[f"({side}) r_{k}" for k, side in enumerate(sides)],
            x=0.0,
            y=0.0,
            z=0.0,
        ),
    )


def draw_cohort(n_people=30, classes=("CN", "AD"), seed=0):
    """Region 2 tells the classes; region 5 is not measured; region 4 is constant."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), 1 + np.arange(n_people) % 2)
    code = person % len(classes)
    n_scans = len(person)
    features = rng.normal(size=(n_scans, N_ROIS, 1))
    features[:, 2, 0] += 4.0 * code
    features[:, 5, 0] = np.nan
    features[:, 4, 0] = 3.3
    half = rng.uniform(size=(n_scans, N_ROIS, N_ROIS))
    visit = np.arange(n_scans) - np.searchsorted(person, person)
    table = pd.DataFrame(
        {
            "scan": [f"anna{p:03d}_v{v}" for p, v in zip(person, visit, strict=True)],
            "participant": [f"anna{p:03d}" for p in person],
            "session": [str(v) for v in visit],
            "label": np.array(classes, dtype=object)[code],
            "age": 60.0 + person % 11,
            "sex": np.where(person % 3 == 0, "F", "M"),
        }
    )
    return Cohort(
        connectomes=half + half.transpose(0, 2, 1),
        features=features,
        table=table,
        atlas=draw_atlas(),
        feature_names=("thickness",),
        classes=classes,
        notes=("anna003_v0: mirrored",),
        provenance={"made": "for tests"},
    )


@pytest.fixture
def cohort():
    return draw_cohort()


@pytest.fixture
def nearest_mean():
    return NearestMean()
