"""Every model by name; linear models, controls and what they must not see."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from torch import nn

from brainlsap.arrays import PackedScans, pack_scans, unpack_connectomes_and_features
from brainlsap.data import Cohort
from brainlsap.evaluation import (
    MODELS,
    added_value_table,
    choose_covariate_columns,
    cross_validate,
    make_models,
    read_global_means,
)
from brainlsap.evaluation.cross_validation import configure_model_for_cohort
from brainlsap.evaluation.models import (
    ADDED_VALUE_MODELS,
    GlobalMeansClassifier,
    TunedLinearClassifier,
    compute_input_f_values,
    fit_coefs_and_intercepts,
    reads_packed_scans,
    remove_edges,
    shuffle_edges,
)
from brainlsap.exceptions import ParameterError
from brainlsap.model import NETWORKS, LSAPRidgeClassifier
from brainlsap.model.network import NetworkKind

VARIANTS = [name for name, entry in MODELS.items() if entry.is_variant]


def draw(seed=0, n=60):
    """Return packed scans of six regions, labels told by one region, and people."""
    rng = np.random.default_rng(seed)
    edges = rng.gamma(1.0, 5.0, (n, 6, 6))
    features = rng.normal(size=(n, 6, 2))
    y = np.where(features[:, 2, 1] + 0.3 * rng.normal(size=n) > 0, "AD", "CN")
    return pack_scans(edges + edges.transpose(0, 2, 1), features), y, np.arange(n)


def test_every_model_is_made_by_its_name_or_a_group():
    everything = make_models("all", random_state=3, n_epochs=5)
    assert list(everything) == list(MODELS)
    assert everything["LSAP-C"][0].kernel == "chebyshev"
    assert everything["LSAP-C"][0].n_epochs == 5 == everything["GCN"][0].n_epochs
    assert everything["one global scale"][0].scale_mode == "global"
    for estimator, role in everything.values():
        clone(estimator)
        assert role in ("model", "baseline", "control")
    controls = [name for name, one in MODELS.items() if one.role == "control"]
    assert list(make_models(["controls"])) == ["LSAP-C", *controls]


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_differs_from_lsap_c_in_one_input_or_setting(name):
    study_models = make_models(["LSAP-C", name], random_state=3)
    variant, reference = study_models[name][0], study_models["LSAP-C"][0]
    steps = variant if isinstance(variant, Pipeline) else [variant]
    assert type(steps[-1]) is type(reference), f"set is_variant=False for {name}"
    settings = steps[-1].get_params()
    different = {k for k, v in reference.get_params().items() if settings[k] != v}
    assert len(different) == 1, f"set is_variant=False for {name}: {different}"
    default = make_models()
    assert list(default) == ["LSAP-C", *make_models("baselines")]
    assert make_models("lsap-c", n_starts=1)["LSAP-C"][0].n_starts == 1
    with pytest.raises(
        ParameterError, match=r"names from 'LSAP-C', 'LSAP-H'.*got 'lasp'"
    ):
        make_models("lasp")
    made = make_models(threshold=3.0, weights="log")
    for name in ("LSAP-C", "LSAP-R"):  # ridges prepare networks as the models do
        assert (made[name][0].threshold, made[name][0].weights) == (3.0, "log")


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_predicts_a_scan_alone_as_among_others(name):
    X, y, _ = draw(n=24)
    variant = make_models([name], n_epochs=1, n_starts=1, random_state=0)[name][0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a single epoch, scans as people
        variant.fit(X, y)
        together = variant.predict_proba(X)
        alone = np.concatenate([variant.predict_proba(X[[k]]) for k in range(3)])
    np.testing.assert_allclose(alone, together[:3], atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_fits_a_few_scans_in_any_unit(name):
    """Training sets of 8 scans, as small groups and learning curves have them."""
    rng = np.random.default_rng(0)
    y = np.repeat(["CN", "AD"], 8)
    features = rng.normal(size=(16, 6, 1))
    features[:, 2, 0] += 3 * (y == "AD")
    edges = rng.gamma(1.0, 5.0, (16, 6, 6))
    cohort = Cohort.from_arrays(
        edges + edges.transpose(0, 2, 1),
        features,
        y,
        atlas=[f"area{k}_{side}" for k in range(3) for side in "LR"],
        covariates={"age": rng.normal(70, 5, 16), "sex": ["F", "M"] * 8},
    )
    # Two even and two odd rows of every four, so that both sexes are in both halves.
    halves = [np.flatnonzero(np.arange(16) // 2 % 2 == k) for k in (0, 1)]
    splits = [(halves[0], halves[1]), (halves[1], halves[0])]
    models = make_models([name], n_epochs=30, n_starts=1, random_state=0)
    if name == "random forest":
        models[name][0].set_params(randomforestclassifier__n_estimators=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few epochs and people
        evaluation = cross_validate(models, cohort, splits, baselines=False)
    assert evaluation.fits["failed"].tolist() == ["", ""]
    predictions = evaluation.predictions
    assert set(predictions["predicted"]) <= {"AD", "CN"}
    if hasattr(models[name][0], "predict_proba"):
        assert np.isfinite(predictions[["p_CN", "p_AD"]]).all(axis=None)
    # Means over regions depend on units. A variant has the steps of LSAP-C.
    if name == "global means" or MODELS[name].is_variant:
        return
    features[:, 4] *= 1024  # a power of 2, so that standardised values are the same
    other_unit = replace(cohort, features=features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = cross_validate(models, other_unit, splits[:1], baselines=False)
    same_fold = predictions[predictions["scan"].isin(other.predictions["scan"])]
    assert len(same_fold) == 8
    message = f"{name} predicts other classes after a region changes its unit"
    assert dict(zip(same_fold["scan"], same_fold["predicted"], strict=True)) == dict(
        zip(other.predictions["scan"], other.predictions["predicted"], strict=True)
    ), message


BASELINES_WITH_INPUTS = [
    name
    for name, entry in MODELS.items()
    if entry.role == "baseline" and name != "majority class"
]


@pytest.mark.parametrize("name", BASELINES_WITH_INPUTS)
def test_every_baseline_predicts_a_rare_class_that_its_input_tells(name):
    rng = np.random.default_rng(0)
    y = np.tile(["AD", "CN", "CN", "CN", "CN"], 12)  # 12 and 48 scans
    features = rng.normal(size=(60, 6, 1))
    features[:, 2, 0] += 3 * (y == "AD")
    age = rng.normal(70, 5, 60)
    if name == "covariates":  # the only one that does not read regions
        age += 20 * (y == "AD")
    edges = rng.gamma(1.0, 5.0, (60, 6, 6))
    cohort = Cohort.from_arrays(
        edges + edges.transpose(0, 2, 1),
        features,
        y,
        atlas=[f"area{k}_{side}" for k in range(3) for side in "LR"],
        covariates={"age": age, "sex": ["F", "M"] * 30},
    )
    splits = [(np.arange(40), np.arange(40, 60))]
    models = make_models([name], n_epochs=30, n_starts=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few epochs
        evaluation = cross_validate(models, cohort, splits, baselines=False)
    assert "AD" in set(evaluation.predictions["predicted"])


class MeanOfOthers(nn.Module):
    """A toy layer: every region gets the weighted sum over its neighbours."""

    def __init__(self, n_channels):
        super().__init__()
        self.width = n_channels

    def forward(self, H, W):
        return W @ H


def test_a_registered_network_is_a_baseline_of_studies(monkeypatch):
    n_models = len(MODELS)
    toy = NetworkKind(
        "Toy-Net",
        "Toy-Net averaged all other regions.",
        MeanOfOthers,
        lambda W, _: (torch.from_numpy(W),),
    )
    monkeypatch.setitem(NETWORKS, "toy", toy)
    assert len(MODELS) == n_models + 1
    assert MODELS["Toy-Net"].role == "baseline"
    names = list(MODELS)
    assert names.index("ADC") < names.index("Toy-Net") < names.index("features only")
    assert "Toy-Net" in make_models("all")
    ((name, (model, role)),) = make_models(
        "TOYNET", random_state=1, n_epochs=3, n_starts=1
    ).items()
    assert (name, role, model.network) == ("Toy-Net", "baseline", "toy")
    X, y, people = draw()
    probability = model.fit(X, y, groups=people).predict_proba(X)
    assert np.isfinite(probability).all()


def test_an_unknown_setting_that_is_a_flag_is_translated():
    message = r"\. --permutations of the command line is n_permutations= of run_study\."
    with pytest.raises(ParameterError, match=message):
        make_models(["LSAP-C"], permutations=99, preset="default")


def test_two_models_of_one_name_are_refused(monkeypatch):
    entry = MODELS["LSAP-C"]
    with pytest.raises(ParameterError, match="role must be one of"):
        MODELS["new"] = entry._replace(role="rival")
    for fields in ({}, {"phrase": "blind"}, {"is_variant": True}):
        with pytest.raises(ParameterError, match="the control 'new' requires phrase="):
            MODELS["new"] = entry._replace(role="control", **fields)
    monkeypatch.setitem(NETWORKS, "toy", NetworkKind("Linear SVM", "A copy."))
    with pytest.raises(ParameterError, match="linear SVM and Linear SVM"):
        make_models()


@pytest.mark.parametrize("kind", ["logistic", "svm"])
@pytest.mark.parametrize("reads", ["features", "edges"])
def test_linear_models_are_tuned_inside_and_predict_classes(kind, reads):
    X, y, people = draw()
    model = TunedLinearClassifier(kind, reads=reads).fit(X, y, groups=people)
    assert hasattr(model, "predict_proba") == (kind == "logistic")
    assert hasattr(model, "decision_function") == (kind == "svm")
    accuracy = (model.predict(X) == y).mean()
    assert accuracy > (0.85 if reads == "features" else 0.5)
    assert model.fit_report_["C"] in [10.0**power for power in range(-5, 2)]


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (TunedLinearClassifier(), {"kind": ["logistic", "svm"]}),
        (LSAPRidgeClassifier("none", n_draws=0), {"max_scale": [1.0, 2.0]}),
    ],
)
def test_searches_hand_people_on_without_a_warning(model, grid):
    X, y, people = draw()
    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(model, grid, cv=GroupKFold(2), error_score="raise")
        assert set(search.fit(X, y, groups=people // 2).predict(X)) <= {"AD", "CN"}


def test_a_tuned_model_is_plain_logistic_regression_at_the_chosen_penalty():
    X, y, people = draw()
    model = TunedLinearClassifier().fit(X, y, groups=people)
    values = unpack_connectomes_and_features(X)[1].reshape(len(X), -1).astype(float)
    plain = LogisticRegression(C=model.fit_report_["C"], tol=1e-8, max_iter=2000)
    if model.fit_report_["class_weight"] != "none":
        plain.set_params(class_weight="balanced")
    wanted = plain.fit(StandardScaler().fit_transform(values), y)
    np.testing.assert_allclose(model.model_[-1].coef_, wanted.coef_, rtol=1e-4)


@pytest.mark.parametrize("n_inputs", [4, 60])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("kind", ["logistic", "svm"])
def test_linear_models_of_all_penalties_are_those_of_scikit_learn(
    kind, class_weight, n_classes, n_inputs
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, n_inputs)) + rng.normal(size=(40, 1))  # correlated
    codes = np.minimum(rng.integers(2 * n_classes, size=40), n_classes - 1)
    X[:, 0] += codes
    fits = fit_coefs_and_intercepts(kind, X, codes, [0.01, 1.0], class_weight, 1e-7)
    for C, (coefficients, intercepts) in zip([0.01, 1.0], fits, strict=True):
        plain = LogisticRegression(C=C, class_weight=class_weight, tol=1e-9)
        if kind == "svm":
            plain = LinearSVC(C=C, class_weight=class_weight, tol=1e-9, dual=False)
        plain.set_params(max_iter=100_000).fit(X, codes)
        assert coefficients.shape == plain.coef_.shape
        np.testing.assert_allclose(coefficients, plain.coef_, atol=1e-4)
        np.testing.assert_allclose(intercepts, plain.intercept_, atol=1e-4)


@pytest.mark.parametrize("weight", [0, 1])
def test_edges_that_all_share_tell_nothing(weight):
    X, y, people = draw()
    X = pack_scans(
        np.full((len(y), 6, 6), float(weight)), unpack_connectomes_and_features(X)[1]
    )
    model = TunedLinearClassifier(reads="edges").fit(X, y, groups=people)
    assert np.ptp(model.predict_proba(X), axis=0).max() == 0


def test_rotating_edges_changes_nothing_of_the_probabilities():
    X, y, people = draw()
    model = TunedLinearClassifier(reads="edges").fit(X, y, groups=people)
    row, column = np.triu_indices(6, 1)
    edges = np.log1p(
        unpack_connectomes_and_features(X)[0][:, row, column].astype(float)
    )
    plain = clone(model.model_[-1]).fit(StandardScaler().fit_transform(edges), y)
    wanted = plain.predict_proba(StandardScaler().fit_transform(edges))
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=2e-3)


def test_gaps_flat_regions_and_rare_classes_do_no_harm():
    X, y, people = draw()
    X[:5, 0, 6], X[:, 1, 6], X[:, 3, 7] = np.nan, np.nan, 2.5
    model = TunedLinearClassifier().fit(X, y, groups=people)
    assert np.isfinite(model.predict_proba(X)).all()
    lone = np.where(people == 0, "SMC", y)
    assert TunedLinearClassifier().fit(X, lone, groups=people).fit_report_["C"] == 0.01
    with pytest.warns(UserWarning, match="treats every scan as a separate person"):
        TunedLinearClassifier().fit(X, y)


def test_models_without_a_class_prior_say_what_their_probabilities_are():
    missing = []
    for name, (model, _) in make_models("all").items():
        names = {key.rsplit("__")[-1] for key in model.get_params()}
        # The probabilities of the majority class are the class shares themselves.
        if "class_prior" not in names and name != "majority class":
            gives_probabilities = hasattr(model, "predict_proba")
            if gives_probabilities and not MODELS[name].probability_sentence:
                missing.append(name)
    assert not missing, f"give the entries {missing} of MODELS a probability_sentence="


def test_the_forest_sees_features_only():
    X, y, _ = draw()
    forest, _ = make_models("random forest")["random forest"]
    forest.set_params(randomforestclassifier__n_estimators=30)
    other = X.copy()
    other[..., :6] = 1.0
    fitted = clone(forest).fit(X, y)
    assert fitted.score(X, y) == 1.0
    np.testing.assert_array_equal(fitted.predict_proba(X), fitted.predict_proba(other))


def test_confounds_only_tells_numbered_sites_apart():
    X, _, people = draw()
    site = np.arange(60) % 20 + 1
    y = np.where(site % 2, "AD", "CN")  # no line through the numbers tells them
    table = pd.DataFrame({"site_no": site})
    model = TunedLinearClassifier(reads="covariates").fit(X, y, people, table)
    assert len(model.design_["site_no"]) == 20
    assert (model.predict(X, table) == y).mean() > 0.9


def test_confounds_only_sees_covariates_and_the_size_of_the_network():
    X, y, people = draw()
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "scan": people.astype(str),
            "label": y,
            "diagnosis": np.where(y == "AD", "sick", "well"),  # the label renamed
            "site": np.where(rng.random(60) < 0.8, y, "other"),
            "age": rng.normal(70, 5, 60),
            "comment": [f"text {k}" for k in range(60)],
            "birth_date": [f"day {person}" for person in people],
        }
    )
    model = TunedLinearClassifier(reads="covariates").fit(X, y, people, table)
    assert set(model.design_) == {"site", "age"}
    changed = X.copy()
    changed[..., 6:] = rng.normal(size=changed[..., 6:].shape)
    both = (model.predict_proba(one, table) for one in (X, changed))
    np.testing.assert_array_equal(*both)
    assert (model.predict(X, table) == y).mean() > 0.7


def test_shuffled_edges_keep_weights_and_features_and_stay_the_same():
    X, _, _ = draw()
    found = shuffle_edges(X, 3)
    W, moved = (
        unpack_connectomes_and_features(X)[0],
        unpack_connectomes_and_features(found)[0],
    )
    row, column = np.triu_indices(6, 1)
    both = (np.sort(one[:, row, column]) for one in (W, moved))
    np.testing.assert_allclose(*both)
    assert not np.allclose(W, moved)
    np.testing.assert_array_equal(moved, moved.transpose(0, 2, 1))
    np.testing.assert_array_equal(found[..., 6:], X[..., 6:])
    np.testing.assert_array_equal(shuffle_edges(X[4:5], 3)[0], found[4])


@pytest.mark.parametrize("edit_edges", [shuffle_edges, remove_edges])
def test_scans_of_a_cohort_are_edited_when_read(edit_edges):
    X, _, _ = draw()
    rows = np.array([7, 2, 5])
    scans = PackedScans(*unpack_connectomes_and_features(X), rows)
    edited = edit_edges(scans, random_state=3)
    expected = edit_edges(X, random_state=3)[rows]
    np.testing.assert_array_equal(np.asarray(edited), expected)
    np.testing.assert_array_equal(edited.connectomes[1], expected[1, :, :6])
    np.testing.assert_array_equal(np.asarray(scans), X[rows].astype(np.float32))


def test_pipelines_that_edit_edges_read_scans_of_a_cohort():
    models = make_models(["shuffled edges", "features only", "random forest"])
    assert [reads_packed_scans(model) for model, _ in models.values()] == [
        False,  # the forest
        True,
        True,
    ]


def test_removed_edges_leave_the_features_and_the_scans_as_they_were():
    X, _, _ = draw()
    unchanged = X.copy()
    W, features = unpack_connectomes_and_features(remove_edges(X))
    assert not W.any()
    np.testing.assert_array_equal(features, unpack_connectomes_and_features(X)[1])
    np.testing.assert_array_equal(X, unchanged)


def test_kernels_that_run_together_start_alike():
    rng = np.random.default_rng(0)
    y = np.repeat(["CN", "AD"], 20)
    # every region carries the same trace of the class: to average all is best
    features = rng.normal(size=(40, 12, 1)) + 0.9 * (y == "AD")[:, None, None]
    W = np.broadcast_to(1 - np.eye(12), (40, 12, 12))
    X = pack_scans(W, features)
    names = ["LSAP-C", "LSAP-H", "LSAP-L", "Exact"]
    models = make_models(names, n_epochs=2, n_starts=1)
    starts = {
        name: model.fit(X, y, groups=np.arange(40)).scales_start_
        for name, (model, _) in models.items()
    }
    assert starts["Exact"].max() == 2.5
    for scales in starts.values():
        np.testing.assert_allclose(scales, starts["Exact"])
    assert {model.max_scale for model, _ in models.values()} == {5.0}
    assert make_models("LSAP-C")["LSAP-C"][0].max_scale is None
    mine = make_models(names, max_scale=4.0)
    assert {model.max_scale for model, _ in mine.values()} == {4.0}


def test_logistic_regression_assumes_the_shares_of_training_at_any_class_weight():
    X, y, people = draw(n=90)
    rare = (y == "CN") | (np.arange(len(y)) % 5 == 0)
    X, y, people = X[rare], y[rare], people[rare]
    share = np.mean(y == "AD")
    for weight in ("balanced", None):
        model = make_models("logistic regression")["logistic regression"][0]
        model.fit(X, y, groups=people)
        model.model_[-1].set_params(class_weight=weight)
        model.model_.fit(model._read_inputs(X), y)
        model._learn_prior(y, model.class_prior, is_balanced=weight == "balanced")
        assert abs(model.predict_proba(X)[:, 0].mean() - share) < 0.06


SIDES = ("L", "L", "L", "R", "R", "M")
STRUCTURES = ("cortex", "cortex", "cortex", "cortex", "subcortex", "subcortex")


def test_global_means_are_of_measured_regions_by_side_and_structure():
    X, _, _ = draw()
    X[0, 0, 6] = X[1, 3, 6] = np.nan
    values = read_global_means(X, SIDES, STRUCTURES).reshape(len(X), 5, 2, 2)
    features = unpack_connectomes_and_features(X)[1].astype(float)
    groups = ([0, 1, 2, 3], [0, 1, 2], [3], [4, 5], [4])  # none is subcortical on L
    for position, regions in enumerate(groups):
        means = [np.nanmean(scan[regions], 0) for scan in features[2:]]
        np.testing.assert_allclose(values[2:, position, 0], means)
    np.testing.assert_allclose(values[0, 1, 0, 0], features[0, 1:3, 0].mean())
    np.testing.assert_allclose(values[0, 1, 1, 0], features[0, 1:3, 0].sum())
    assert np.isnan(values[1, 2, :, 0]).all()
    with pytest.raises(ParameterError, match="6 entries"):
        read_global_means(X, SIDES[1:])


def test_global_means_see_no_region():
    X, y, people = draw()
    model = GlobalMeansClassifier(hemispheres=SIDES, structures=STRUCTURES)
    model.fit(X, y, groups=people)
    within, across = X.copy(), X.copy()
    within[:, :3, 6:] = X[:, [2, 0, 1], 6:]  # regions of the left cortex
    across[:, [0, 3], 6:] = X[:, [3, 0], 6:]
    edgeless = pack_scans(np.zeros((60, 6, 6)), unpack_connectomes_and_features(X)[1])
    expected = model.predict_proba(X)
    for same in (within, edgeless):
        np.testing.assert_allclose(model.predict_proba(same), expected, rtol=1e-6)
    assert np.abs(model.predict_proba(across) - expected).max() > 0.01


def test_sides_of_global_means_come_from_the_names_of_the_atlas():
    rng = np.random.default_rng(0)
    names = ["area_R", "stem", "area_L", "field_L", "field_R"]
    y = np.repeat(["CN", "AD"], 20)
    features = rng.normal(size=(40, 5))
    features[:, [0, 4]] += 3 * (y == "AD")[:, None]
    features[:, [2, 3]] -= 3 * (y == "AD")[:, None]  # the mean of the brain stays
    cohort = Cohort.from_arrays(np.ones((5, 5)), features, y, atlas=names)
    model = configure_model_for_cohort(GlobalMeansClassifier(), cohort)
    assert model.hemispheres == ("R", "M", "L", "L", "R")
    (name, (model, role)), *_ = make_models("global means").items()
    evaluation = cross_validate({name: (model, role)}, cohort, 2, baselines=False)
    assert evaluation.scores()["balanced_accuracy"].min() > 0.9
    assert "hemispheres" not in TunedLinearClassifier().get_params()


def test_features_are_selected_inside_the_folds():
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=(60, 400, 1)), np.repeat(["AD", "CN"], 30)
    X = pack_scans(np.zeros((60, 400, 400)), noise)
    (model, _), *_ = make_models("selected features").values()
    model.fit(X, y, groups=np.arange(60))
    strongest = np.argsort(compute_input_f_values(noise[:, :, 0], y))[-80:]
    seen = TunedLinearClassifier().fit(
        pack_scans(np.zeros((60, 80, 80)), noise[:, strongest]), y, groups=np.arange(60)
    )
    # features selected on all scans would tell labels of inner test scans
    assert seen.fit_report_["inner_balanced_accuracy"] > 0.9
    assert model.fit_report_["inner_balanced_accuracy"] < 0.7


def test_selection_learns_nothing_of_test_scans():
    X, y, people = draw()
    train = np.arange(60) < 40
    X[~train, 5, 6] = 9.0 * (y[~train] == "AD")
    X[:, 4, 7] = 1.0  # constant
    model = TunedLinearClassifier(n_selected=[1, 3])
    model.fit(X[train], y[train], groups=people[train])
    chosen = model.model_[1].get_support().reshape(6, 2)
    assert chosen[2, 1]
    assert not chosen[5, 0]
    assert not chosen[4, 1]
    assert chosen.sum() == model.fit_report_["n_selected"]
    assert (model.predict(X[~train]) == y[~train]).mean() > 0.7


def draw_aged_cohort(brain_effect, n_people=60, seed=0):
    """Make people whose class shows in their age, and in one region."""
    rng = np.random.default_rng(seed)
    is_ill = rng.random(n_people) < 0.5
    features = rng.normal(size=(n_people, 4))
    features[:, 1] += brain_effect * is_ill
    covariates = {"age": rng.normal(70, 4, n_people) + 4 * is_ill, "sex": ["F", "M"]}
    covariates["sex"] = rng.choice(covariates["sex"], n_people)
    covariates["age"][3] = np.nan
    return Cohort.from_arrays(
        np.ones((4, 4)) - np.eye(4),
        features,
        np.where(is_ill, "AD", "CN"),
        covariates=covariates,
        atlas=[*"abcd"],
        classes=("CN", "AD"),
    )


def run_added_value(cohort, models=ADDED_VALUE_MODELS):
    return cross_validate(make_models(models), cohort, 3, baselines=False, n_jobs=1)


def test_brain_and_covariates_are_one_model_whether_fitted_together_or_alone():
    cohort = draw_aged_cohort(1.5)
    both = ADDED_VALUE_MODELS[-1]
    together = run_added_value(cohort)
    alone = run_added_value(cohort, [both])
    rows = together.predictions.query("model == @both").reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, alone.predictions)
    gains = added_value_table(together).set_index("model")
    assert gains.loc["covariates", "difference"] > 0
    assert list(gains.index) == ["covariates", "LSAP-R"]
    assert added_value_table(alone).empty


def test_covariates_find_a_middle_class_of_the_youngest():
    # A model that is linear in age, or in the number of the class, misses it.
    rng = np.random.default_rng(0)
    stages = rng.integers(0, 3, 120)
    age = rng.normal(70, 4, 120) - 10 * (stages == 1)
    classes = ("CN", "MCI", "AD")
    cohort = Cohort.from_arrays(
        np.zeros((4, 4)),
        rng.normal(size=(120, 4)) - age[:, None] / 10,
        np.array(classes)[stages],
        covariates=pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], 120)}),
        atlas=[*"abcd"],
        classes=classes,
    )
    study = run_added_value(cohort)
    rows = study.predictions.query("model == 'covariates'")
    is_right = rows["truth"] == rows["predicted"]
    assert is_right[rows["truth"] == "MCI"].mean() > 0.7
    # The brain shows age only, so it adds nothing.
    assert not added_value_table(study).set_index("model").loc["covariates", "low"] > 0


def test_covariates_alone_do_not_depend_on_the_brain():
    answers = [
        run_added_value(draw_aged_cohort(effect), ["covariates"]).predictions
        for effect in (0.0, 1.5)
    ]
    pd.testing.assert_frame_equal(*answers)
    assert (answers[0]["truth"] == answers[0]["predicted"]).mean() > 0.6


def test_a_brain_without_signal_has_no_negative_weight():
    cohort = draw_aged_cohort(0.0, n_people=30)
    model, _ = make_models(ADDED_VALUE_MODELS[-1])[ADDED_VALUE_MODELS[-1]]
    is_read = []
    for seed in range(8):
        y = np.random.default_rng(seed).permutation(cohort.y)
        model.fit(cohort.to_array(), y, cohort.groups, cohort.table)
        is_read.append(model.fit_report_["reads_brain"])
        if model.brain_ is not None:
            assert model._sum_brain_score_weights(1) > 0
    assert not all(is_read)


def test_covariates_are_age_and_sex_or_those_named():
    table = draw_aged_cohort(0.0).table.assign(school=12.0)
    table["disease"] = np.where(table["label"] == "AD", "yes", "no")
    assert choose_covariate_columns(table) == ("age", "sex")
    assert choose_covariate_columns(table.assign(sex="F")) == ("age",)
    assert choose_covariate_columns(table, "school") == ("school",)
    with pytest.raises(ParameterError, match="disease, which is a copy of the label"):
        choose_covariate_columns(table, ["sex", "disease"])
