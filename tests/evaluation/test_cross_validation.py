"""Every model on the same folds of whole people; finished fits are kept."""

import shutil
import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from joblib import delayed, parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RandomizedSearchCV,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from brainlsap.arrays import pack_scans, unpack_connectomes_and_features
from brainlsap.atlas import load_atlas
from brainlsap.evaluation import (
    Evaluation,
    cross_validate,
    make_models,
    make_splits,
    rank_regions,
)
from brainlsap.evaluation.cross_validation import (
    _reads_two_dimensions,
    configure_model_for_cohort,
    cross_validate_with_calls,
    list_baseline_names,
    warn_of_divided_people,
)
from brainlsap.evaluation.models import (
    BASELINES,
    NESTED_RIDGES,
    RANDOM_CONNECTOME_RIDGE,
)
from brainlsap.evaluation.results import REQUIRED_COLUMNS_BY_TABLE, CohortSummary
from brainlsap.evaluation.splits import list_person_blocks, permute_labels
from brainlsap.exceptions import FileFormatError, ParameterError, SplitError
from brainlsap.workflow import merge_classes

pytestmark = pytest.mark.usefixtures("brief_studies")

LINEAR = make_models("logistic regression")


class Recorder(ClassifierMixin, BaseEstimator):
    """Predicts the first class; keeps what it was given, and may say that it failed."""

    seen: ClassVar[list] = []

    def __init__(self, random_state=None, failing=False, head=None, classes=None):
        self.random_state = random_state
        self.failing = failing
        self.head = head
        self.classes = classes

    def fit(self, X, y, groups=None):
        self.classes_ = np.unique(y.astype(str))
        self.scales_ = np.linspace(1, 2, X.shape[1])
        Recorder.seen.append((X, y, groups, self.random_state, self.classes))
        failed = "it is chance on its training data" if self.failing else None
        self.fit_report_ = {"epochs": 3, "failed": failed}
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


@pytest.fixture
def seen():
    Recorder.seen.clear()
    return Recorder.seen


def test_predictions_are_those_of_models_fitted_by_hand(tiny_cohort):
    found = cross_validate(LINEAR, tiny_cohort, 2, baselines=False)
    splits = make_splits(tiny_cohort.y, tiny_cohort.groups, 2, 0)
    X = pack_scans(tiny_cohort.connectomes, tiny_cohort.features)
    y, people = tiny_cohort.y, tiny_cohort.groups
    for fold, (train, test) in enumerate(splits, start=1):
        model = clone(LINEAR["logistic regression"][0])
        model.fit(X[train], y[train], groups=people[train])
        rows = found.predictions[found.predictions["fold"] == fold]
        wanted = pd.DataFrame(model.predict_proba(X[test]), columns=model.classes_)
        given = rows[[f"p_{name}" for name in model.classes_]].to_numpy()
        np.testing.assert_array_equal(given, wanted.to_numpy())
        np.testing.assert_array_equal(rows["predicted"], model.predict(X[test]))
        scans = tiny_cohort.table["scan"].iloc[test]
        np.testing.assert_array_equal(rows["scan"], scans)


def test_every_scan_is_tested_once_by_every_model_in_every_repeat(example_evaluation):
    table, cohort = example_evaluation.predictions, example_evaluation.cohort
    counts = table.groupby(["model", "repeat"])["scan"].nunique()
    assert (counts == cohort.n_scans).all()
    assert len(table) == len(counts) * cohort.n_scans
    assert example_evaluation.models[0] == "LSAP-C"
    assert example_evaluation.models[1] == "LSAP-R"
    assert example_evaluation.baselines == example_evaluation.models[2:-1]
    assert example_evaluation.models[-1] == RANDOM_CONNECTOME_RIDGE
    scales = example_evaluation.scales
    assert set(scales["start"]) == {"mean", "1", "2", "low", "high"}
    assert set(scales.query("start == 'mean'")["share"]) == {0, 0.25, 0.5, 0.75, 1}
    begun = scales.query("start == 'mean' and share == 0")["scale"]
    assert set(begun) == {1.0}


def test_models_get_people_seeds_and_the_order_of_classes(tiny_cohort, seen):
    models = {"own": Recorder(5), "none": Recorder(head="ordinal")}
    for seed in (None, 0, 7):  # None counts as 0, also here
        cross_validate(models, tiny_cohort, 2, baselines=False, random_state=seed)
    X, y, groups, *_ = seen[0]
    assert X.dtype == np.float32
    assert len(X) == len(y) == len(groups)
    assert [one[3] for one in seen] == [5, 5, 0, 0] * 2 + [5, 5, 7, 7]
    np.testing.assert_array_equal(seen[0][0], seen[4][0])
    assert seen[2][4] == tiny_cohort.classes
    seen.clear()
    unordered = replace(tiny_cohort, classes_ordered=False)
    cross_validate(models, unordered, 2, baselines=False)
    assert {one[4] for one in seen} == {None}  # the ordinal head of LSAP refuses


def test_scores_are_given_only_where_order_or_probabilities_are_known(tiny_cohort):
    nominal = replace(tiny_cohort, classes_ordered=False)
    for cohort, known in ((tiny_cohort, True), (nominal, False)):
        model = {"it": DummyClassifier()}
        found = cross_validate(model, cohort, 2, baselines=False).scores()
        assert found["stage_error"].notna().all() == known
        assert found["balanced_accuracy"].notna().all()
    found = cross_validate({"it": Recorder(0)}, tiny_cohort, 2, baselines=False)
    assert found.predictions.filter(regex="^[pd]_").isna().all(axis=None)
    assert found.scores()["brier"].isna().all()  # without probabilities


def test_a_model_that_failed_is_recorded_as_failed(tiny_cohort):
    found = cross_validate({"it": Recorder(0, True)}, tiny_cohort, 2, baselines=False)
    assert set(found.fits["failed"]) == {"it is chance on its training data"}
    assert found.predictions.empty
    assert found.scores()["accuracy"].isna().all()
    assert len(found.scores()) == 2


def test_cv_is_a_number_a_splitter_or_folds(tiny_cohort):
    model, people = {"it": DummyClassifier()}, tiny_cohort.groups
    splits = make_splits(tiny_cohort.y, people, 3, 0, n_repeats=2)
    by_number, given = (
        cross_validate(model, tiny_cohort, cv, n_repeats=n, baselines=False)
        for cv, n in ((3, 2), (splits, 1))
    )
    pd.testing.assert_frame_equal(by_number.predictions, given.predictions)
    for one in (by_number, given):
        assert (one.settings["n_folds"], one.settings["n_repeats"]) == (3, 2)
    split = cross_validate(model, tiny_cohort, GroupKFold(4), baselines=False)
    assert split.settings["cv"].startswith("GroupKFold(n_splits=4")
    assert split.fits["fold"].tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="or an iterable yielding"):
        cross_validate(model, tiny_cohort, "five", baselines=False)
    with pytest.raises(
        ParameterError, match="n_repeats is valid only if cv is a number"
    ):
        cross_validate(model, tiny_cohort, splits, n_repeats=2, baselines=False)


def test_folds_that_share_people_are_refused_or_said_to_be_shared(tiny_cohort):
    scans = np.arange(tiny_cohort.n_scans)
    shared = make_splits(tiny_cohort.y, scans, 2)
    model = {"it": DummyClassifier()}
    with pytest.raises(SplitError, match="people in both training and test scans"):
        cross_validate(model, tiny_cohort, shared, baselines=False)
    how = {"baselines": False, "people_may_be_shared": True}
    found = cross_validate(model, tiny_cohort, shared, **how)
    assert found.settings["people_shared"]
    told = found.audit.loc[0, ["check", "severity"]].tolist()
    assert told == ["person_in_two_folds", "error"]


FLATTEN = FunctionTransformer(
    lambda X: unpack_connectomes_and_features(X)[1].reshape(len(X), -1)
)


@pytest.fixture
def search():
    """A search with inner folds of scans."""
    grid = {"dummyclassifier__strategy": ["prior", "most_frequent"]}
    return GridSearchCV(make_pipeline(FLATTEN, DummyClassifier()), grid, cv=2)


def test_steps_of_a_pipeline_are_fitted_inside(tiny_cohort):
    models = {"piped": make_pipeline(FLATTEN, DummyClassifier())}
    evaluation = cross_validate(models, tiny_cohort, 2, baselines=False)
    assert evaluation.scores()["balanced_accuracy"].tolist() == [0.2, 0.2]


def test_inner_folds_of_scans_are_warned_of_once(tiny_cohort, search):
    """Whatever the number of models, and of what else has inner folds."""
    calibrated = make_pipeline(
        FLATTEN, SimpleImputer(), CalibratedClassifierCV(LogisticRegression(), cv=2)
    )
    models = {"search": search, "again": search, "calibrated": calibrated}
    with pytest.warns(UserWarning, match="divide scans") as caught:
        cross_validate(models, tiny_cohort, 2, baselines=False)
    (message,) = {str(warning.message) for warning in caught}
    assert len(caught) == 1
    assert message.startswith("GridSearchCV, CalibratedClassifierCV divide scans")


def test_inner_folds_of_people_are_not_warned_of(tiny_cohort, search):
    """Where everybody has one scan, scans are people; warnings are errors here."""
    is_first = ~tiny_cohort.table["participant"].duplicated()
    single = tiny_cohort.select(np.flatnonzero(is_first))
    cross_validate({"search": search}, single, 2, baselines=False)
    search.set_params(cv=GroupKFold(2))
    evaluation = cross_validate({"search": search}, tiny_cohort, 2, baselines=False)
    assert not evaluation.fits["warnings"].str.contains("groups").any()


@pytest.mark.parametrize(
    ("models", "message"),
    [
        *(
            (wrong, r"such as LSAPClassifier\(\), or")
            for wrong in ([LINEAR], "LSAP-C", {"it": DummyClassifier})
        ),
        (LogisticRegression(), r"FunctionTransformer\(read_features\)"),
        (
            {"linear SVM": DummyClassifier()},
            "the name of a baseline model; got linear SVM",
        ),
    ],
    ids=["list", "name", "class", "no reader", "name of a baseline"],
)
def test_what_are_no_models_is_refused(tiny_cohort, models, message):
    with pytest.raises(ParameterError, match=message):
        cross_validate(models, tiny_cohort, 2)


class SplitterWithoutGroups:
    """A splitter that takes no groups."""

    def split(self, X, _y):
        return [(np.arange(1, len(X)), np.arange(1))]


class OwnSplitter:
    """Folds of people, or of scans, that are no class of scikit-learn."""

    def __init__(self, keeps_people):
        self.keeps_people = keeps_people

    def get_n_splits(self, *_, **__):
        return 2

    def split(self, X, y=None, groups=None):
        if self.keeps_people:
            return GroupKFold(2).split(X, y, groups)
        return KFold(2, shuffle=True, random_state=0).split(X)


@pytest.mark.parametrize(
    ("cv", "is_warned"),
    [
        (None, True),
        ("prefit", False),
        # Nothing is known of the rows of fixed folds.
        ([([0, 1], [2, 3])], True),
        (SplitterWithoutGroups(), True),
        (StratifiedKFold(2), True),
        (OwnSplitter(keeps_people=False), True),
        (OwnSplitter(keeps_people=True), False),
        (StratifiedGroupKFold(2), False),
        (LeaveOneGroupOut(), False),
    ],
)
def test_only_inner_folds_that_may_divide_people_are_warned_of(
    tiny_cohort, cv, is_warned
):
    grid = {"C": [1.0]}
    models = [
        GridSearchCV(LogisticRegression(), grid, cv=cv),
        make_pipeline(RandomizedSearchCV(LogisticRegression(), grid, cv=cv)),
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_divided_people(models, tiny_cohort)
    assert len(caught) == is_warned


def saved_bytes(evaluation, folder):
    """Return every file but what a clock says, as text."""
    timed = replace(evaluation, fits=evaluation.fits.filter(regex="^(?!seconds)"))
    timed.save(folder)
    return {one.name: one.read_bytes() for one in sorted(folder.iterdir())}


def test_a_study_that_was_stopped_continues_to_the_same_bytes(tiny_cohort, tmp_path):
    models = make_models("LSAP-C", n_epochs=2, n_starts=1, start="constant")
    models["prior"] = (DummyClassifier(), "baseline")
    asked = {"cohort": tiny_cohort, "cv": 2, "baselines": False}
    whole = cross_validate(models, **asked)
    memory = tmp_path / "folds"
    first = cross_validate(models, **asked, memory=memory)
    kept = sorted(memory.iterdir())
    assert len(kept) == 4
    assert all(one.stat().st_mode & 0o077 == 0 for one in kept)
    kept[0].unlink()  # not reached before the stop
    kept[1].write_text("{cut sh")
    before = kept[2].read_bytes()
    again = cross_validate(models, **asked, memory=memory)
    assert sorted(memory.iterdir()) == kept
    assert kept[2].read_bytes() == before
    wanted = saved_bytes(whole, tmp_path / "whole")
    assert saved_bytes(first, tmp_path / "first") == wanted
    assert saved_bytes(again, tmp_path / "again") == wanted


def test_another_seed_label_model_or_covariate_is_computed_anew(tiny_cohort, tmp_path):
    def count(model, cohort, **more):
        how = {"baselines": False, "memory": tmp_path} | more
        cross_validate({"it": model}, cohort, 2, **how)
        return len(list(tmp_path.iterdir()))

    table = tiny_cohort.table
    blocks = list_person_blocks(tiny_cohort.groups)
    moved = permute_labels(tiny_cohort.y, blocks, np.random.default_rng(0))
    assert count(DummyClassifier(), tiny_cohort) == 2
    assert count(DummyClassifier(), tiny_cohort) == 2
    assert count(DummyClassifier(strategy="most_frequent"), tiny_cohort) == 4
    assert count(DummyClassifier(), tiny_cohort, random_state=1) == 6
    relabelled = replace(tiny_cohort, table=table.assign(label=moved))
    assert count(DummyClassifier(), relabelled) == 8
    older = replace(tiny_cohort, table=table.assign(age=table["age"] + 1))
    assert count(DummyClassifier(), older, regress_out=["age"]) == 10


def test_the_number_and_kind_of_workers_change_nothing(tiny_cohort, tmp_path):
    models = make_models("LSAP-C", n_epochs=2, n_starts=1, start="constant")
    one = cross_validate(models, tiny_cohort, 2, baselines=False)
    with parallel_config("threading", n_jobs=2):
        threads = cross_validate(models, tiny_cohort, 2, baselines=False)
    assert saved_bytes(one, tmp_path / "a") == saved_bytes(threads, tmp_path / "b")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_later_calls_give_their_results_and_change_nothing(tiny_cohort, n_jobs):
    calls = {"sum": delayed(sum)([1, 2]), "text": delayed(str)(3)}
    how = {"cv": 2, "baselines": False}
    with parallel_config("threading", n_jobs=n_jobs):
        evaluation, results = cross_validate_with_calls(
            calls, LINEAR, tiny_cohort, **how
        )
    assert dict(results) == {"sum": 3, "text": "3"}
    alone = cross_validate(LINEAR, tiny_cohort, **how)
    pd.testing.assert_frame_equal(evaluation.predictions, alone.predictions)


def test_an_evaluation_is_loaded_as_it_was_saved(example_evaluation, tmp_path):
    ranking = pd.DataFrame(columns=REQUIRED_COLUMNS_BY_TABLE["ranking"])
    ranking = ranking.assign(region=["a", "nan"], rank=[1, 2])
    ranked = replace(example_evaluation, ranking=ranking)
    folder = ranked.save(tmp_path / "evaluation")
    loaded = Evaluation.load(folder)
    for name in ("predictions", "scales", "fits", "audit", "ranking"):
        pd.testing.assert_frame_equal(getattr(loaded, name), getattr(ranked, name))
    for name in ("table", "truth", "class_features"):
        both = (getattr(one.cohort, name) for one in (loaded, ranked))
        pd.testing.assert_frame_equal(*both)
    assert loaded.settings == ranked.settings
    assert loaded.cohort.classes == ranked.cohort.classes
    pd.testing.assert_frame_equal(loaded.summary(), ranked.summary())
    again = loaded.save(folder)  # in the place of the other
    for one in folder.iterdir():
        assert one.read_bytes() == (again / one.name).read_bytes()
    with pytest.raises(FileFormatError, match="no readable evaluation"):
        Evaluation.load(tmp_path)
    (tmp_path / "letters.txt").write_text("mine")
    with pytest.raises(ParameterError, match="must be new or empty"):
        ranked.save(tmp_path)


def test_an_atlas_of_ones_own_keeps_its_surfaces(small_cohort, tmp_path):
    folder = shutil.copytree(small_cohort.atlas.folder, tmp_path / "mine")
    regions = small_cohort.atlas.regions.assign(name=lambda x: "my_" + x["name"])
    regions.to_csv(folder / "regions.tsv", sep="\t", index=False, na_rep="n/a")
    cohort = replace(small_cohort, atlas=load_atlas(folder), truth=None)
    kept = CohortSummary.from_cohort(cohort, cohort.features, None)
    assert kept.atlas.has_surfaces
    shutil.rmtree(folder)
    assert not kept.atlas.has_surfaces
    assert kept.atlas.names == cohort.region_names


def test_an_evaluation_shows_its_scores_and_nobody(example_evaluation):
    text, html = repr(example_evaluation), example_evaluation._repr_html_()
    lines = text.splitlines()[1:]
    # Scores beyond the width of a line follow in further blocks.
    n_table_lines = len([line for line in lines if line])
    assert n_table_lines % (1 + len(example_evaluation.models)) == 0
    assert all(len(line) <= 100 and "..." not in line for line in lines)
    mean = example_evaluation.scores().groupby("model")["accuracy"].mean()["LSAP-C"]
    for shown in (text, html):
        assert "LSAP-C" in shown
        assert f"{mean:.3f} ±" in shown
        assert "2 folds, 2 times" in shown
        assert not any(one in shown for one in example_evaluation.cohort.table["scan"])
    ranked = replace(example_evaluation, ranking=rank_regions(example_evaluation))
    assert f"2 times; regions ranked by {NESTED_RIDGES[-1]}\n" in repr(ranked)
    odd = example_evaluation.fits.replace({"model": {"LSAP-C": "<b>"}})
    assert "<b>" not in replace(example_evaluation, fits=odd)._repr_html_()


def test_permuted_labels_are_at_chance(tiny_cohort):
    scores = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        label = permute_labels(
            tiny_cohort.y, list_person_blocks(tiny_cohort.groups), rng
        )
        permuted = replace(tiny_cohort, table=tiny_cohort.table.assign(label=label))
        found = cross_validate(LINEAR, permuted, 2, baselines=False)
        scores.append(found.scores()["balanced_accuracy"].mean())
    true = cross_validate(LINEAR, tiny_cohort, 3, baselines=False).scores()
    assert np.mean(scores) == pytest.approx(0.2, abs=0.07)
    assert true["balanced_accuracy"].mean() > 0.26


@pytest.mark.parametrize("merged", ["5-to-2", None])
def test_the_auc_without_probabilities_is_of_decision_values(tiny_cohort, merged):
    cohort = merge_classes(tiny_cohort, merged)
    found = cross_validate(make_models("linear SVM"), cohort, 3, baselines=False)
    scores = found.scores().set_index("fold")["auc"]
    for fold, rows in found.predictions.groupby("fold"):
        names = rows["truth"].unique()
        assert rows[[f"d_{name}" for name in names]].nunique().min() > 1
        each = [roc_auc_score(rows["truth"] == n, rows[f"d_{n}"]) for n in names]
        assert scores[fold] == pytest.approx(np.mean(each))


def test_a_leak_that_the_audit_finds_is_warned_of(tiny_cohort):
    people = tiny_cohort.table["participant"]
    visit = people.groupby(people).cumcount() + 1
    names = [f"{one}_V{k}" for one, k in zip(people, visit, strict=True)]
    table = tiny_cohort.table.assign(participant=names, sex="F")
    with pytest.warns(
        UserWarning, match="found data leakage: visits treated as people"
    ):
        cross_validate(LINEAR, replace(tiny_cohort, table=table), 2, baselines=False)


def test_without_connectomes_networks_are_made_of_features(tiny_cohort):
    alike = {"provenance": {"connectome": "none"}, "truth": None}
    nothing = np.broadcast_to(np.float32(0), tiny_cohort.connectomes.shape)
    cohort = replace(tiny_cohort, connectomes=nothing, **alike)
    models = make_models(["LSAP-C", "GCN", "ridge with one scale"], n_epochs=1)
    found = cross_validate(models, cohort, 2, baselines=False)
    assert not found.twin_of_model
    assert found.fits["settings"].str.contains("covariance").all()
    assert {*BASELINES} - {*list_baseline_names(cohort)} == {RANDOM_CONNECTOME_RIDGE}
    assert list_baseline_names(tiny_cohort) == BASELINES
    own = configure_model_for_cohort(
        models["LSAP-C"][0].set_params(connectome="own"), cohort
    )
    assert own.connectome == "own"


def test_scores_of_probabilities_name_the_class_shares_that_they_assume(tiny_cohort):
    models = make_models(["ridge without connectome", "majority class"])
    even = make_models("ridge without connectome", class_prior="balanced")
    models["even"] = even["ridge without connectome"]
    evaluation = cross_validate(models, tiny_cohort, cv=2, baselines=False)
    priors = {"ridge without connectome": "training", "even": "balanced"}
    assert evaluation.class_priors() == priors
    rows = {
        name: part.reset_index(drop=True)
        for name, part in evaluation.predictions.groupby("model")
    }
    ridge, even = rows["ridge without connectome"], rows["even"]
    assert ridge["predicted"].equals(even["predicted"])
    columns = [f"p_{name}" for name in tiny_cohort.classes]
    assert (ridge[columns] - even[columns]).abs().to_numpy().max() > 0.01
    # those with equal shares are of the predicted class
    largest = even[columns].idxmax(axis=1).str.removeprefix("p_")
    assert largest.equals(even["predicted"].astype(largest.dtype))
    # the confidence is that of the predicted class, not the largest of all
    predictions = evaluation.as_predictions(ridge)
    expected = [row[f"p_{row['predicted']}"] for _, row in ridge.iterrows()]
    np.testing.assert_allclose(predictions.confidence(), expected)


@pytest.mark.parametrize(
    ("model", "is_advised"),
    [
        (LogisticRegression(), True),
        (GridSearchCV(LogisticRegression(), {}), True),
        (make_pipeline(SimpleImputer(), LogisticRegression()), True),
        # These pass on arrays of any shape.
        (make_pipeline(FunctionTransformer(), LogisticRegression()), False),
        (Recorder(), False),
    ],
)
def test_advice_on_features_is_for_models_of_tables(model, is_advised):
    assert _reads_two_dimensions(model) == is_advised
