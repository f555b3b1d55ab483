"""A finished evaluation of a tiny cohort, made by hand, without fitting anything."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.data import Atlas
from brainlsap.evaluation import (
    Audit,
    CohortSummary,
    Evaluation,
    Finding,
    FoldResult,
    ModelResult,
)

CLASSES = ("CN", "R&D_50%", "AD")
N_ROIS = 7


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
            short_name=[f"({side}) G&S_r{k}" for k, side in enumerate(sides)],
            x=0.0,
            y=0.0,
            z=0.0,
        ),
    )


def draw_table(n_people, classes):
    person = np.repeat(np.arange(n_people), 1 + np.arange(n_people) % 2)
    visit = np.arange(len(person)) - np.searchsorted(person, person)
    return pd.DataFrame(
        {
            "scan": [f"anna{p:03d}_v{v}" for p, v in zip(person, visit, strict=True)],
            "participant": [f"anna{p:03d}" for p in person],
            "session": [str(v) for v in visit],
            "label": np.array(classes, dtype=object)[person % len(classes)],
            "age": 60.25 + person % 11,
            "sex": np.where(person % 3 == 0, "F", "M"),
            "site": np.where(person % 2 == 0, "north", "south"),
        }
    )


def deal_by_hand(participants, n_classes, n_folds=3):
    # Not make_splits: how well it deals must not decide what these tests read.
    person = pd.factorize(participants)[0]
    fold = person // n_classes % n_folds
    return [
        (np.flatnonzero(fold != one), np.flatnonzero(fold == one))
        for one in range(n_folds)
    ]


def draw_result(name, table, splits, classes, skill, scales=False, seed=0):
    rng = np.random.default_rng(seed)
    measured = np.arange(N_ROIS) != 5
    folds = []
    for fold, (train, test) in enumerate(splits):
        truth = table["label"].to_numpy(dtype=object)[test]
        right = np.array([classes.index(label) for label in truth])
        probability = rng.dirichlet(np.ones(len(classes)), len(test))
        probability[np.arange(len(test)), right] += skill
        probability /= probability.sum(axis=1, keepdims=True)
        learned = 2 - 0.2 * np.arange(N_ROIS) + rng.normal(0, 0.01, N_ROIS)
        learned[0] = 2.0
        folds.append(
            FoldResult(
                fold=fold,
                train=train,
                test=test,
                scans=table["scan"].to_numpy(dtype=object)[test],
                participants=table["participant"].to_numpy(dtype=object)[test],
                truth=truth,
                probability=probability,
                classes=classes,
                scales=learned if scales else None,
                scales_start=np.full(N_ROIS, 2.0) if scales else None,
                details={
                    "seed": 5,
                    "seconds_fit": 0.123456,
                    "settings": {"degree": 20},
                    "warnings": ["scan anna003_v0 looks odd"] if scales else [],
                    "fit_report": {"approximation_error": 3e-9 * (fold + 1)},
                },
            )
        )
    regions = tuple(f"region_{k}" for k in range(N_ROIS))
    return ModelResult(name, tuple(folds), classes, regions, measured)


def draw_audit():
    return Audit(
        [
            Finding("identical features", "1 pair of scans, of anna003 and another"),
            Finding("label from one column", "site alone: 0.59"),
            Finding("label from one column", "age alone: 0.34", "note"),
        ],
        pd.DataFrame(
            [("identical features", "anna003_v0", "anna008_v0")],
            columns=["check", "scan", "other_scan"],
        ),
        {"many variants": "no model was given"},
    )


def draw_evaluation(classes=CLASSES, n_people=36, skill=0.9, name="LSAP_x"):
    table = draw_table(n_people, classes)
    splits = deal_by_hand(table["participant"], len(classes))
    models = {
        name: draw_result(name, table, splits, classes, skill, scales=True),
        "majority": draw_result("majority", table, splits, classes, -0.5, seed=1),
        "linear": draw_result("linear", table, splits, classes, -0.25, seed=2),
    }
    summary = CohortSummary(
        table=table,
        classes=classes,
        label_name="diagnosis",
        atlas_name="tiny",
        region_names=models[name].region_names,
        measured=models[name].measured,
        feature_names=("thickness",),
        notes=("anna003_v0: mirrored", "sub-anna004: 1 region dropped"),
        provenance={"folder": "/data/sub-anna001"},
        data_hash="ab" * 32,
    )
    settings = {
        "n_folds": 3,
        "random_state": 0,
        "splits": "drawn",
        "baselines": ["majority", "linear"],
    }
    return Evaluation(models, splits, settings, summary, draw_audit())


@pytest.fixture
def evaluation():
    return draw_evaluation()


@pytest.fixture(scope="session")
def atlas():
    return draw_atlas()


@pytest.fixture(scope="session")
def truth():
    return pd.DataFrame(
        {
            "region": [f"region_{k}" for k in range(N_ROIS)],
            "seed": np.arange(N_ROIS) > 4,
        }
    )


@pytest.fixture(scope="session")
def make_evaluation():
    return draw_evaluation
