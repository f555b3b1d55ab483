"""A study from a cohort to its report, and the steps that every fit goes through."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from brainlsap import Cohort, make_cohort, run_study
from brainlsap.data.participants import make_unordered_class_notes
from brainlsap.evaluation import (
    Deconfounder,
    Evaluation,
    connectome_gain,
    read_features,
)
from brainlsap.exceptions import BrainlsapError, CohortError, ParameterError
from brainlsap.options import CONFIGURABLE, WHOLE_NUMBER
from brainlsap.report import page
from brainlsap.workflow import merge_classes
from tests.conftest import make_small_atlas

WRONG = {"cv": 1, "n_epochs": 0, "kernel": "exact", "n_epoch": 2}
pytestmark = pytest.mark.usefixtures("brief_studies")
BRIEF = {"n_epochs": 3, "n_starts": 1, "start": "constant"}


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(24, atlas=make_small_atlas(), n_sites=2, random_state=2)


@pytest.mark.parametrize(
    "name",
    [
        option.name
        for option in CONFIGURABLE
        if option.recipient == "study" and option.kind is WHOLE_NUMBER
    ],
)
def test_whole_numbers_are_checked_before_any_fit(cohort, tmp_path, monkeypatch, name):
    monkeypatch.setattr("brainlsap.workflow.cross_validate_with_calls", pytest.fail)
    with pytest.raises(ParameterError, match=name):
        run_study(cohort, tmp_path / "results", baselines=False, **{name: -1})
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("scores_figure_alone")
def test_a_study_returns_what_it_has_written(cohort, tmp_path):
    how = {"harmonize": "site", "regress_out": ["age"], "n_permutations": 2}
    found = run_study(cohort, tmp_path / "results", cv=2, **how, **BRIEF)
    stored = Evaluation.load(tmp_path / "results" / "private" / "evaluation")
    assert stored.scores().equals(found.scores())
    assert found.models[0] == "LSAP-C"
    assert "global means" in found.baselines
    assert found.settings["steps"]["harmonize"] == "site"
    assert found.ranking["rank"].notna().sum() == cohort.n_rois
    assert len(found.region_tests) == cohort.n_rois
    pd.testing.assert_frame_equal(stored.replicability, found.replicability)
    page = (tmp_path / "results" / "report" / "report.html").read_text("utf-8")
    assert "Replicability" in page
    assert (tmp_path / "results" / "report" / "tables" / "region_tests.tsv").is_file()
    assert not list((tmp_path / "results" / "private").glob("folds/*.partial*"))


@pytest.mark.usefixtures("scores_figure_alone")
def test_a_study_warns_of_a_scan_with_swapped_sides(cohort, tmp_path):
    homotopic = cohort.atlas.homotopic
    shift = np.random.default_rng(0).normal(0, 0.2, cohort.n_rois)
    features = np.array(cohort.features + (shift - shift[homotopic])[:, None])
    features[3] = features[3][homotopic]
    lopsided = replace(cohort, features=features)
    models = {"prior": DummyClassifier()}
    message = f"^In 1 scan, .* swapped: {cohort.table['scan'][3]}\\. "
    with pytest.warns(UserWarning, match=message):
        run_study(lopsided, tmp_path, models, baselines=False, cv=2, n_permutations=2)
    page_text = (tmp_path / "report" / "report.html").read_text("utf-8")
    beware = page_text.partition("Beware:")[2][:300]
    assert "may have been swapped: S0" in beware


def test_a_study_says_what_the_connectome_adds(cohort, tmp_path, monkeypatch):
    def draw_gain(evaluation, _, figure_names):
        if "connectome_gain" not in figure_names:
            return {}
        return {"connectome_gain": page._plot_gain_panels(evaluation)}

    monkeypatch.setattr(page, "draw_figure_by_name", draw_gain)
    models = {"prior": DummyClassifier()}
    options = {"baselines": False, "cv": 2, "merge_classes": "5-to-2"}
    evaluation = run_study(cohort, tmp_path, models, regress_out=["age"], **options)
    merged = merge_classes(cohort, "5-to-2")
    gain = connectome_gain(merged, Deconfounder(regress_out=["age"]))
    stored = Evaluation.load(tmp_path / "private" / "evaluation").connectome_gain
    for table in (evaluation.connectome_gain, stored):
        pd.testing.assert_frame_equal(table, gain.table)
    assert len(gain.table) == 5
    folder = tmp_path / "report"
    assert (folder / "figures" / "connectome_gain.png").is_file()
    assert len(pd.read_csv(folder / "tables" / "connectome_gain.tsv", sep="\t")) == 5


@pytest.fixture
def without_report(monkeypatch):
    """Leave out what takes longest, and is tested on its own."""
    monkeypatch.setattr("brainlsap.workflow.write_report", lambda *_, **__: None)


@pytest.mark.usefixtures("without_report")
def test_one_site_is_left_out_at_a_time(cohort, tmp_path):
    how = {"leave_out": "SITE", "baselines": False}
    found = run_study(cohort, tmp_path / "out", **how, **BRIEF)
    site = cohort.table.set_index("scan")["site"]
    tested = found.predictions.groupby("fold")["scan"].agg(lambda s: set(site[s]))
    assert sorted(len(one) for one in tested) == [1] * site.nunique()


@pytest.mark.usefixtures("scores_figure_alone")
def test_settings_inside_a_pipeline_count_and_are_told(cohort, tmp_path):
    def run(k):
        steps = FunctionTransformer(read_features), SelectKBest(k=k), GaussianNB()
        how = {"baselines": False, "cv": 2}
        return run_study(cohort, tmp_path, {"NB": make_pipeline(*steps)}, **how)

    assert run(5).settings["study_options"]["NB__selectkbest__k"] == 5
    told = json.loads((tmp_path / "report" / "settings.json").read_text())
    assert "selectkbest__k" in str(told)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "No feature was selected" not in page
    with pytest.raises(ParameterError, match=r"NB__selectkbest__k= \(5, now 1\)"):
        run(1)
    with pytest.raises(ParameterError, match="model must be a classifier, such as"):
        run_study(cohort, tmp_path, {"NB": GaussianNB})


def test_a_report_is_compared_by_every_option_that_changes_results(
    cohort, tmp_path, monkeypatch
):
    class ComparedError(Exception):
        """Raised in place of the comparison, with the options that it compares."""

    def refuse(_folder, settings, _hash_data):
        raise ComparedError(settings["study_options"])

    monkeypatch.setattr("brainlsap.workflow.check_same_study", refuse)
    with pytest.raises(ComparedError) as refusal:
        run_study(cohort, tmp_path / "out")
    (study_options,) = refusal.value.args
    options = [option for option in CONFIGURABLE if option.recipient == "study"]
    changing = {option.name for option in options if option.changes_results}
    changing -= {"baselines", "splits"}  # Compared as models and cv.
    assert changing <= {*study_options}
    others = {option.name for option in options if not option.changes_results}
    assert others.isdisjoint(study_options)


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_used_is_refused_and_nothing_written(cohort, tmp_path, name):
    with pytest.raises(BrainlsapError, match=r"\w"):
        run_study(cohort, tmp_path / "out", **{name: WRONG[name]})
    assert not (tmp_path / "out").exists()


def test_classes_are_merged_and_others_left_out(cohort):
    two = merge_classes(cohort, "well=CN, ill = LMCI + AD")
    assert two.classes == ("well", "ill")
    assert two.classes_ordered
    assert two.n_scans == np.isin(cohort.y, ["CN", "LMCI", "AD"]).sum()
    assert "left out" in two.notes[-1]
    assert merge_classes(cohort, {"well": "CN", "ill": "AD"}).classes == two.classes
    # The note has the direction of the option: the new class first.
    assert "classes merged: well = CN, ill = LMCI + AD" in two.notes
    words = {"CN": "Control", "SMC": "SCD", "AD": "other"}
    label = [words.get(one, one) for one in cohort.y]
    classes = tuple(dict.fromkeys(label))
    spelt = replace(cohort, table=cohort.table.assign(label=label), classes=classes)
    three = merge_classes(spelt, "5-to-3")
    assert three.classes == ("CN", "MCI")
    assert three.n_scans == (cohort.y != "AD").sum()
    assert "classes are left out: other (" in three.notes[-1]
    with pytest.raises(ParameterError, match="'CN' in two classes"):
        merge_classes(cohort, {"a": ["CN"], "b": ["CN", "AD"]})
    with pytest.raises(CohortError, match=r"'Ad'; the scans .*mean 'AD'?"):
        merge_classes(cohort, {"a": ["CN"], "b": ["Ad"]})


@pytest.mark.parametrize("merged", ["a=Kontrolle,b=frueh+Demenz", "a=frueh,b=Demenz"])
def test_merged_classes_have_an_order_so_no_note_denies_it(cohort, merged):
    labels = cohort.table["label"].map(
        {"CN": "Kontrolle", "SMC": "Kontrolle", "EMCI": "frueh", "LMCI": "frueh"}
    )
    unordered = Cohort.from_arrays(
        cohort.connectomes,
        cohort.features,
        labels.fillna("Demenz").tolist(),
        groups=cohort.groups,
        atlas=cohort.atlas,
    )
    (order_note,) = make_unordered_class_notes(unordered.classes)
    assert order_note in unordered.findings
    two = merge_classes(unordered, merged)
    assert order_note not in two.findings
    # The other notes remain.
    assert {*two.notes} >= {*unordered.notes} - {str(order_note)}


@pytest.mark.parametrize("number_format", ["{:d}", "{:.1f}"])
def test_numbers_of_classes_may_be_spelt_in_any_way(cohort, number_format):
    class_numbers = [cohort.classes.index(label) for label in cohort.y]
    label_texts = [number_format.format(number) for number in class_numbers]
    spelt = Cohort.from_arrays(
        cohort.connectomes,
        cohort.features,
        label_texts,
        groups=cohort.groups,
        atlas=cohort.atlas,
    )
    expected = np.where(np.array(class_numbers) < 2, "0", "1")
    for merged in (
        {0: [0, 1], 1: [2, 3, 4]},
        {"0": ["0", 1.0], "1": ["2.0", 3, "4"]},
        "0=0+1.0,1=2+3.0+4",
    ):
        assert merge_classes(spelt, merged).y.tolist() == expected.tolist()
    pair = merge_classes(spelt, {"first": 0, "last": np.int64(4)})
    assert pair.n_scans == np.isin(class_numbers, [0, 4]).sum()
    with pytest.raises(ParameterError, match="merge_classes"):
        merge_classes(spelt, {"a": [0, 1], "b": ["1.0"]})
