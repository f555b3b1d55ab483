"""An evaluation of a tiny cohort, made by hand: names to be hidden, nothing fitted."""

import json
import re
from itertools import combinations, product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from brainlsap.atlas import Atlas
from brainlsap.evaluation import Evaluation
from brainlsap.evaluation.results import CohortSummary

CLASSES = ("CN", "R&D_<50%>", "AD")
SETTINGS = {"kernel": "chebyshev", "degree": 20, "initial_scale": 2.0, "head": None}
N_ROIS = 7


def draw_table(classes, n_people=36):
    """One visit of every even person, two of every odd one."""
    person = np.repeat(np.arange(n_people), 1 + np.arange(n_people) % 2)
    visit = np.arange(len(person)) - np.searchsorted(person, person)
    return pd.DataFrame(
        {
            "scan": [f"anna{p:03d}_v{v}" for p, v in zip(person, visit, strict=True)],
            "participant": [f"anna{p:03d}" for p in person],
            "session": [f"berta-{v}" for v in visit],
            "label": np.array(classes, dtype=object)[person % len(classes)],
            "AGE": 60.0 + person % 11,
            "SEX": np.where(person % 3 == 0, "F", "M"),
            "SITE": np.where(person % 2 == 0, "north", "south"),
        }
    )


def draw_predictions(table, classes, model, skill, rng):
    fold = pd.factorize(table["participant"])[0] // len(classes) % 3 + 1
    true_code = np.array([classes.index(label) for label in table["label"]])
    probabilities = rng.dirichlet(np.ones(len(classes)), len(table))
    probabilities[np.arange(len(table)), true_code] += skill
    probabilities = probabilities.clip(1e-3)  # a skill may be negative
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    predictions = pd.DataFrame({"model": model, "repeat": 1, "fold": fold})
    predictions = predictions.assign(
        scan=table["scan"], participant=table["participant"]
    )
    predictions["truth"] = table["label"]
    predictions["predicted"] = np.array(classes, dtype=object)[
        probabilities.argmax(axis=1)
    ]
    for kind in "pd":
        for code, name in enumerate(classes):
            is_known = (kind == "d") == (model == "linear SVM")
            predictions[f"{kind}_{name}"] = (
                probabilities[:, code] if is_known else np.nan
            )
    return predictions


def draw_scales(model, regions, rng):
    """Learned scales fall from region to region; the sixth is not measured."""
    frames = []
    for fold in (1, 2, 3):
        learned = 2 - 0.2 * np.arange(len(regions)) % 1.8 + rng.normal(0, 0.01)
        for start, share in [("mean", 1.0), ("1", 1.0), ("2", 1.0), ("mean", 0.0)]:
            scale = learned * rng.uniform(0.98, 1.02, len(regions)) if share else 2.0
            fold_scales = {"model": model, "repeat": 1, "fold": fold, "start": start}
            fold_scales |= {"share": share, "region": regions, "scale": scale}
            frames.append(pd.DataFrame(fold_scales))
    return pd.concat(frames, ignore_index=True)


def draw_features(classes, regions, rng):
    """Features fall from class to class; one class of one region has two people."""
    keys = pd.MultiIndex.from_product([classes, ["thickness"], regions])
    table = keys.to_frame(index=False, name=["class", "feature", "region"])
    code = table["class"].map(classes.index)
    table = table.assign(people=12, missing_scans=0)
    table = table.assign(mean=rng.normal(3 - code, 0.1), sd=0.5)
    table.loc[len(regions) + 1, ["people", "missing_scans"]] = 2, 15
    return table


def draw_evaluation(
    classes=CLASSES,
    models=("LSAP-C", "Exact"),
    ordered=False,
    regions=None,
    atlas_name="tiny",
    skill=0.9,
    failed=(),
):
    rng = np.random.default_rng(0)
    table = draw_table(classes)
    regions = regions or [f"region_{k}" for k in range(N_ROIS)]
    names = {**dict.fromkeys(models, skill), "majority": -0.5, "linear SVM": 0.3}
    predictions, scales = [], []
    for name, skill_of_model in names.items():
        model_predictions = draw_predictions(table, classes, name, skill_of_model, rng)
        predictions.append(
            model_predictions[
                ~model_predictions["fold"].isin([2] if name in failed else [])
            ]
        )
        if name in models:
            scales.append(draw_scales(name, regions, rng))
    fits = pd.MultiIndex.from_product([names, (1, 2, 3)], names=["model", "fold"])
    fits = fits.to_frame(index=False).assign(repeat=1, n_train=36, n_test=18, seed=5)
    is_model = fits["model"].isin(models)
    report = {"settings": {**SETTINGS, "head": "softmax"}, "error_bound": 3e-9}
    report["losses"] = {"epoch": [0, 1], "training": [2, 1], "validation": [2, None]}
    fits["role"] = np.where(is_model, "model", "baseline")
    fits["epochs"] = np.where(is_model, 10.0, np.nan)
    is_failed = fits["model"].isin(failed) & (fits["fold"] == 2)
    fits["failed"] = np.where(is_failed, "did not learn", "")
    fits["settings"] = np.where(is_model, json.dumps(SETTINGS), "{}")
    fits["warnings"] = np.where(is_model, '["anna003_v0 is odd"]', "[]")
    fits["report"] = np.where(is_model, json.dumps(report), "{}")
    fits = fits.assign(seconds_fit=0.5, seconds_predict=0.1)
    cohort = CohortSummary(
        table=table,
        classes=classes,
        classes_ordered=ordered,
        label_name="diagnosis",
        atlas_name=atlas_name,
        region_names=tuple(regions),
        measured=np.arange(len(regions)) != 5,
        feature_names=("thickness",),
        findings=("anna003_v0: mirrored", "sub-anna004: 1 region dropped, 2021-03-04"),
        provenance={"folder": "/data/clara/sub-anna001", "subcortex": "absent"},
        data_hash="ab" * 32,
        class_features=draw_features(classes, regions, rng),
        regions=Atlas.from_names(regions).regions,
    )
    columns = ["check", "severity", "finding", "what_to_do"]
    twice = ["duplicate_scans", "error", "1 pair", "leave one out"]
    note = ["covariate_predicts_label", "note", "age alone: 0.34", "report it"]
    audit = pd.DataFrame([twice, note], columns=columns)
    audit["scans"] = ["anna003_v0, anna008_v0", ""]
    settings = {"cv": "stratified folds of whole people", "n_folds": 3, "n_repeats": 1}
    settings |= {"random_state": 0, "people_shared": False, "version": "0.1"}
    steps = {"harmonize": None, "regress_out": []}
    settings["steps"] = steps
    return Evaluation(
        predictions=pd.concat(predictions, ignore_index=True),
        scales=pd.concat(scales, ignore_index=True),
        fits=fits,
        cohort=cohort,
        settings=settings,
        audit=audit,
    )


def draw_gain_table(lead, half_width, is_shared=False):
    """Table of a gain of 9 nats, with the same lead over every null connectome."""
    names = ["original", "relabelled", "rewired"]
    names += [] if is_shared else ["exchanged", "group mean"]
    table = pd.DataFrame({"connectome": names, "n_draws": 3, "scale": 1.0})
    is_null = table["connectome"] != "original"
    leads = np.where(is_null, lead, np.nan)
    for score in ("evidence", "error"):
        gains = 9.0 - np.where(is_null, lead, 0.0)
        for name, values in ((f"{score}_gain", gains), (f"{score}_lead", leads)):
            table[name] = values
            table[f"{name}_low"] = values - half_width
            table[f"{name}_high"] = values + half_width
    return table


def draw_learning_curve(models=("LSAP-C",), slope=0.06, half_width=0.1, answer="yes"):
    """Scores that rise with the number of training people."""
    table = pd.DataFrame({"share": [0.25, 0.5, 0.75, 1.0]})
    table["n_train_people"] = 24 * table["share"]
    table["estimate"] = 0.5 + slope * np.log2(table["share"])
    table["low"] = table["estimate"] - half_width
    table["high"] = table["estimate"] + half_width
    slopes = {"slope": slope, "slope_low": slope - 0.05, "slope_high": slope + 0.05}
    table = table.assign(**slopes, answer=answer)
    return pd.concat([table.assign(model=name) for name in models], ignore_index=True)


def draw_region_tests(evaluation, effects=None, differing=(), peaks=()):
    """Tests of all regions; those that differ and the peaks have a small p."""
    regions = list(evaluation.cohort.region_names)
    if effects is None:
        effects = np.linspace(-0.5, 0.4, len(regions))
    table = pd.DataFrame({"region": regions, "n_people": 36})
    table.insert(1, "feature", evaluation.cohort.feature_names[0])
    contrasts = -np.array(effects) / 2
    for statistic, values in (("effect", effects), ("contrast", contrasts)):
        table[statistic] = values
        table[f"{statistic}_low"] = table[statistic] - 0.05
        table[f"{statistic}_high"] = table[statistic] + 0.05
    table["contrast_z"] = table["contrast"]
    table["p_effect"] = np.where(table["region"].isin(differing), 0.01, 0.4)
    table["p_contrast"] = np.where(table["region"].isin(peaks), 0.02, 0.7)
    table["n_permutations"] = 99
    table["measured"] = True
    for code, name in enumerate(evaluation.cohort.classes[1:], start=1):
        table[f"d_{name}"] = code * table["effect"]
        table[f"d_{name}_low"] = table[f"d_{name}"] - 0.3
        table[f"d_{name}_high"] = table[f"d_{name}"] + 0.3
    return table


def assert_heads_match_cells(page_text):
    """Check that every row of every table of a page has a cell below each head."""
    page_tables = re.findall("<table.*?</table>", page_text, re.DOTALL)
    assert page_tables
    for table_text in page_tables:
        n_heads = table_text.count('scope="col"')
        rows = re.findall("<tr>(.*?)</tr>", table_text, re.DOTALL)
        for row in rows:
            assert len(re.findall("<t[hd][ >]", row)) == n_heads, row


def check_letters(figure):
    """Check that texts are whole and apart, none small; return their sizes."""
    figure.draw_without_rendering()
    texts = {text for text in figure.findobj(Text) if text.get_text()}
    for axes, name in product(figure.axes, ("xaxis", "yaxis")):
        axis = getattr(axes, name)
        low, high = sorted(axis.get_view_interval())
        ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        visible = {
            text for place, text in ticks if axes.axison and low <= place <= high
        }
        texts -= {*axis.get_ticklabels()} - visible
    boxes = {
        first: Text.get_window_extent(first) for first in texts if first.get_visible()
    }
    page = figure.bbox
    for text, box in boxes.items():
        assert text.get_fontsize() >= 6, text
        assert page.x0 <= box.x0 < box.x1 <= page.x1, text
        assert page.y0 <= box.y0 < box.y1 <= page.y1, text
    upright = [text for text in boxes if text.get_rotation() % 90 == 0]
    for first, second in combinations(upright, 2):
        assert not boxes[first].overlaps(boxes[second]), (first, second)
    return [first.get_fontsize() for first in boxes]


@pytest.fixture(scope="session")
def make_evaluation():
    return draw_evaluation


@pytest.fixture(scope="session")
def evaluation():
    """Only to be read."""
    return draw_evaluation()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")
