"""LSAP and the networks as scikit-learn sees them: planted answers, seeds, limits."""

import inspect
import json
import pickle

import numpy as np
import pytest
import sklearn
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold

from brainlsap.arrays import PackedScans, pack_scans, unpack_connectomes_and_features
from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    KERNELS,
    covariance_connectome,
    exact_heat_kernel,
    heat_kernel,
    normalized_laplacian,
)
from brainlsap.model import (
    NETWORKS,
    LSAPClassifier,
    LSAPRidgeClassifier,
    NetworkClassifier,
    classifier,
    inputs,
    training,
)
from brainlsap.model.network import GraphNetwork
from tests.model.conftest import draw_scans

PLANTED, UNMEASURED = 3, 5
STAGES = ("CN", "SMC", "MCI", "AD")
# thirty steps of at most 0.1 do not come to the largest scale
SMALL = {
    "start": "constant",
    "max_scale": 4.5,
    "scale_step": 5.0,
    "hidden_units": 3,
    "readout_units": 6,
    "dropout": 0.1,
    "learning_rate": 0.02,
    "n_starts": 2,
    "n_epochs": 20,
    "patience": 20,
}


def make(**given):
    return LSAPClassifier().set_params(**(SMALL | given))


def fit(scans, **given):
    return make(**given).fit(scans.X, scans.y, groups=scans.people)


def fit_network(scans, network, **given):
    small = {"n_epochs": 30, "patience": 10, "dropout": 0.1, "random_state": 3}
    model = NetworkClassifier(network, **(small | given))
    return model.fit(scans.X, scans.y, groups=scans.people)


@pytest.mark.parametrize(
    ("kernel", "n_layers"), [*((kernel, 1) for kernel in KERNELS), ("chebyshev", 2)]
)
def test_the_planted_classes_are_found(kernel, n_layers):
    known, new = draw_scans(), draw_scans(n_people=16, seed=9)
    model = fit(known, kernel=kernel, n_layers=n_layers, n_epochs=30)
    assert model.score(new.X, new.y) > 0.8
    assert model.scales_by_start_.shape == (2, 7)
    assert_allclose(model.scales_, model.scales_by_start_.mean(axis=0))
    assert len(set(model.scales_.round(4))) > 4


def test_the_only_region_that_matters_keeps_its_heat():
    scans = draw_scans(n_people=40)
    given = {"initial_scale": 2.0, "max_scale": 9.9, "n_epochs": 60, "patience": 60}
    model = fit(scans, scale_step=10.0, **given)
    assert model.scales_.argmin() == PLANTED
    assert model.scales_[PLANTED] < 1.0


@pytest.mark.parametrize("names", [("CN", "AD", "SMC"), (7, 1, 4)])
def test_labels_come_back_as_they_were_given(names):
    scans = draw_scans(n_people=30, classes=names)
    model = fit(scans, n_epochs=40, patience=40, scale_step=0.5)
    assert_array_equal(model.classes_, sorted(names))
    probability = model.predict_proba(scans.X)
    assert_allclose(probability.sum(axis=1), 1.0)
    predicted = model.predict(scans.X)
    assert predicted.dtype == model.classes_.dtype == scans.y.dtype
    assert_array_equal(predicted, model.classes_[probability.argmax(axis=1)])
    assert (predicted == scans.y).mean() > 0.7


def test_same_seed_same_bytes_whatever_the_precision_of_connectomes(scans):
    given = {"dropout": 0.4, "batch_size": 9, "n_epochs": 6}
    models = [fit(scans, random_state=seed, **given) for seed in (3, 3, 4)]
    found = [model.predict_proba(scans.X).tobytes() for model in models]
    assert found[0] == found[1] != found[2]
    assert models[0].scales_.tobytes() == models[1].scales_.tobytes()
    doubles = make(random_state=3, **given)
    doubles.fit(scans.X.astype(np.float64), scans.y, groups=scans.people)
    assert doubles.predict_proba(scans.X).tobytes() == found[0]
    none, zero = (fit(scans, random_state=seed, **given) for seed in (None, 0))
    assert_array_equal(none.predict_proba(scans.X), zero.predict_proba(scans.X))


def test_threads_are_fixed_inside_and_given_back(scans, monkeypatch):
    before, asked = torch.get_num_threads(), []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    fit(scans, n_threads=5, n_epochs=3).predict_proba(scans.X)
    assert asked == [5, before] * 2
    with pytest.raises(ParameterError, match=r"diverged in all 2 starts.*Lower"):
        fit(scans, n_threads=5, learning_rate=1e17, n_epochs=3)
    assert asked == [5, before] * 3


def test_scans_do_not_depend_on_who_is_predicted_beside_them(scans):
    model = fit(scans, n_layers=2)
    together = model.predict_proba(scans.X)
    for row in (0, 31):
        # one scan alone takes the way of a shared graph
        alone = model.predict_proba(scans.X[row : row + 1])[0]
        assert_allclose(alone, together[row], atol=1e-5)
    assert_allclose(model.predict_proba(scans.X[::-1])[::-1], together, atol=1e-5)


# --- scikit-learn -------------------------------------------------------------


def test_it_is_cloned_and_set_without_what_it_learned(scans):
    model = fit(scans, kernel="laguerre", n_starts=1, n_epochs=2)
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "networks_")
    other.set_params(kernel="exact", patience=3)
    assert (other.kernel, other.options["patience"]) == ("exact", 3)
    assert (model.kernel, model.options["patience"]) == ("laguerre", 20)
    with pytest.raises(NotFittedError):
        other.predict(scans.X)
    other = pickle.loads(pickle.dumps(model))
    assert_array_equal(other.predict_proba(scans.X), model.predict_proba(scans.X))
    for one in (LSAPClassifier, NetworkClassifier):
        assert len(inspect.signature(one).parameters) <= 20


def test_grid_search_finds_rare_options_and_hands_people_on(scans, monkeypatch):
    seen, split = [], classifier.make_inner_splits

    def watching(codes, groups, *given):
        seen.append(len(groups))
        return split(codes, groups, *given)

    monkeypatch.setattr(classifier, "make_inner_splits", watching)
    grid = {"scale_mode": ["region", "frozen"], "dropout": [0.1, 0.3]}
    with sklearn.config_context(enable_metadata_routing=True):
        model = make(n_starts=1, n_epochs=4)
        search = GridSearchCV(model, grid, cv=GroupKFold(2), error_score="raise")
        search.fit(scans.X, scans.y, groups=scans.people)
    assert set(seen) == {16, 32}
    assert search.best_params_["dropout"] in (0.1, 0.3)
    best = search.best_estimator_
    assert best.settings_.dropout == search.best_params_["dropout"]


def test_settings_are_known_before_a_fit_and_rare_ones_checked():
    found = make(preset="paper", kernel="hermite", n_layers=1).settings()
    assert (found["degree"], found["n_layers"], found["weights"]) == (30, 1, "binary")
    assert json.loads(json.dumps(found)) == found
    with pytest.raises(ParameterError, match=r"option must be one of .*dropuot"):
        LSAPClassifier(options={"dropuot": 0.1}).settings()


@pytest.mark.parametrize("kernel", KERNELS)
def test_paper_preset_fits(scans, kernel):
    # scales may not rise here: at 2, Laguerre-20 is at the limit of its trust
    model = LSAPClassifier(kernel, preset="paper", n_epochs=4, scale_mode="frozen")
    model.fit(scans.X, scans.y)  # no slice is watched, so no people are asked for
    assert len(model.networks_) == 1
    assert model.history_[0].epoch[-1] == model.fit_report_["epochs"][0] == 3
    assert_array_equal(model.scales_start_, np.full(7, 2.0))
    assert model.settings_.threshold == 10.0
    assert np.isfinite(model.predict_proba(scans.X)).all()


@pytest.mark.parametrize(
    "setting", [{"n_threads": 2.5}, {"random_state": 1.5}, {"n_epochs": 3.0}]
)
def test_a_fraction_where_a_whole_number_is_needed_is_refused(scans, setting):
    (name,) = setting
    with pytest.raises(ParameterError, match=f"^{name} must be a whole number"):
        fit(scans, **setting)


@pytest.mark.parametrize("kind", [LSAPClassifier, LSAPRidgeClassifier])
def test_a_threshold_that_leaves_no_connection_is_refused(scans, kind):
    with pytest.raises(ParameterError, match=r"1e.09 leaves no connection; the"):
        kind(threshold=1e9).fit(scans.X, scans.y, groups=np.arange(len(scans.y)))


@pytest.mark.parametrize(
    "model",
    [
        LSAPClassifier(n_epochs=2, n_starts=1),
        LSAPRidgeClassifier("one"),
        NetworkClassifier("gcn", n_epochs=2),
    ],
)
def test_empty_connectomes_are_warned_of_unless_a_choice_was_made(scans, model):
    X, people = (
        pack_scans(0 * scans.connectomes, scans.features),
        np.arange(len(scans.y)),
    )
    with pytest.warns(UserWarning, match="All connectomes are empty"):
        clone(model).fit(X, scans.y, groups=people)
    # Warnings are errors in tests.
    for connectome in ("own", "covariance"):
        clone(model).set_params(connectome=connectome).fit(X, scans.y, groups=people)
    X[3, 0, 1] = X[3, 1, 0] = 1.0
    clone(model).fit(X, scans.y, groups=people)


@pytest.mark.parametrize(
    "model", [LSAPRidgeClassifier("none"), NetworkClassifier("mlp", n_epochs=2)]
)
def test_models_without_connectome_take_empty_ones(scans, model):
    X = pack_scans(0 * scans.connectomes, scans.features)
    model.fit(X, scans.y, groups=np.arange(len(scans.y)))


# --- missing and constant values ----------------------------------------------


@pytest.mark.parametrize("standardize", ["region", "scan"])
def test_a_region_without_values_changes_nothing(scans, standardize):
    given = {"standardize": standardize, "n_epochs": 6}
    plain = fit(scans, **given)
    assert_array_equal(plain.measured_, np.arange(7) != UNMEASURED)
    W = np.pad(scans.connectomes, ((0, 0), (0, 1), (0, 1)))
    features = np.pad(scans.features, ((0, 0), (0, 1), (0, 0)), constant_values=np.nan)
    model = fit(type(scans)(W, features, scans.y, scans.people), **given)
    found = model.predict_proba(pack_scans(W, features))
    assert_allclose(found, plain.predict_proba(scans.X), atol=1e-4)
    assert_allclose(model.scales_[:7], plain.scales_, atol=1e-3)
    assert model.scales_[7] == 1.0
    if standardize == "region":  # a value that turns up later says nothing
        features[:, UNMEASURED] = features[:, 7] = 99.0
        assert_array_equal(model.predict_proba(pack_scans(W, features)), found)


def test_constant_inputs_see_degrees(scans):
    given = {"inputs": "constant", "n_epochs": 12, "n_starts": 1}
    model = fit(scans, **given)
    assert (model.predict_proba(scans.X).std(axis=0) > 1e-4).all()
    # at scale 0 the kernel is the identity, and every scan the same
    with pytest.warns(
        UserWarning, match="diverged or did not learn.*every scan the same"
    ):
        still = fit(scans, scale_mode="frozen", **(given | {"initial_scale": 0.0}))
    assert "every training start failed" in still.fit_report_["failed"]


def test_test_fold_cannot_change_what_preparation_learned(scans):
    learn = scans.people < 16
    given = {"threshold": 0.3, "connectome": "covariance"}
    model = make(n_epochs=4, **given)
    model.fit(scans.X[learn], scans.y[learn], groups=scans.people[learn])
    first = model.predict_proba(scans.X[~learn])
    wild = scans.X[~learn]
    wild[1:, :, :7] = 1e5 * (1 - np.eye(7))
    wild[1:, :, 7:] *= -3
    assert_allclose(model.predict_proba(wild)[0], first[0], atol=1e-6)
    seen = scans.X[learn][..., 7:].astype(np.float64)
    expected = covariance_connectome(seen, scans.people[learn])
    expected[expected < 0.3] = 0.0
    assert_array_equal(model.preparation_.network, expected)


# --- scales and their limits ---------------------------------------------------


def test_scale_path_leads_from_the_start_to_what_was_learned(scans):
    model = fit(scans, n_epochs=17, patience=0, scale_step=50.0)
    path = model.scale_path_
    assert path.shape == (5, 7)
    assert_array_equal(path[0], model.scales_start_)
    assert_array_equal(path[-1], model.scales_)
    # looked at in epochs 1, 3 ... 15, 16: quarters are at 1, 4.75, 8.5, 12.25
    seen = np.mean([run.scales for run in model.history_], axis=0)
    assert_allclose(path[1], seen[1] + (4.75 - 3) / 2 * (seen[2] - seen[1]), rtol=1e-5)
    assert_allclose(path[2], seen[3] + (8.5 - 7) / 2 * (seen[4] - seen[3]), rtol=1e-5)


def test_scales_start_at_those_of_highest_evidence():
    scans = draw_scans(n_people=40)
    given = {"start": "ridge", "n_epochs": 2, "network_weight": 1.0}
    for mode in ("region", "global", "frozen"):
        model = fit(scans, scale_mode=mode, **given)
        ridge = LSAPRidgeClassifier(
            "auto" if mode == "region" else "one", max_scale=4.5
        ).fit(scans.X, scans.y, groups=scans.people)
        found = ridge.scales_ if ridge.chosen_ != "none" else np.full(7, 0.2)
        assert_allclose(model.scales_start_, found, rtol=1e-6)
        # a network whose output is nothing leaves half of the ridge's log-odds
        for network in model.networks_:
            for weights in network.output.parameters():
                torch.nn.init.zeros_(weights)
        left = model.predict_proba(scans.X)
        half = np.sqrt(ridge.predict_proba(scans.X))
        assert_allclose(left, half / half.sum(axis=1, keepdims=True), rtol=1e-4)


def test_no_ridge_tells_constant_inputs_the_features():
    scans = draw_scans(n_people=40)
    model = fit(scans, start=None, inputs="constant", n_epochs=2)
    W, features = unpack_connectomes_and_features(scans.X)
    others = pack_scans(W, np.random.default_rng(1).normal(size=features.shape))
    assert_array_equal(model.predict_proba(scans.X), model.predict_proba(others))


def test_scale_modes(scans):
    for mode, n_scales in (("region", 7), ("global", 1), ("frozen", 1)):
        found = fit(scans, scale_mode=mode, n_epochs=6, n_starts=1).scales_
        assert len(set(found)) == n_scales
        assert (found == 1.0).all() == (mode == "frozen")


def test_hermite_of_degree_30_never_returns_a_kernel_at_scale_six(scans):
    given = {"kernel": "hermite", "degree": 30, "max_scale": 6.0}
    with pytest.raises(ParameterError, match=r"can have an error of .*_scale=6.0"):
        fit(scans, initial_scale=6.0, **given)
    # steps of 1 would carry some scale there
    with pytest.warns(UserWarning, match=r"scales reached .* were kept there") as seen:
        model = fit(scans, initial_scale=2.5, scale_step=1e4, scale_clip=1.0, **given)
    assert len(seen) == 1
    report, largest = model.fit_report_, model.settings_.max_scale
    assert report["warnings"] == [str(seen[0].message)]
    assert 2.5 < largest < 3.2
    assert report["n_projected"] > 0
    assert model.scales_by_start_.min() >= 0
    assert model.scales_by_start_.max() <= largest + 1e-6
    assert report["error_bound"] <= 1e-4 * 1.001


@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"exact"}))
def test_reported_error_bounds_the_true_one_at_the_learned_scales(scans, kernel):
    # five steps of at most 0.1 stay below the largest scale
    model = fit(scans, kernel=kernel, tolerance=1e-3, max_scale=1.6, n_epochs=5)
    report = model.fit_report_
    L = normalized_laplacian(scans.connectomes)
    worst = 0.0
    for scale in torch.from_numpy(model.scales_by_start_):
        got = heat_kernel(L, scale, kernel=kernel, degree=model.settings_.degree)
        worst = max(worst, float((got - exact_heat_kernel(L, scale)).abs().max()))
    assert 1e-9 < worst <= report["error_bound"] <= 1e-3
    assert json.loads(json.dumps(report, allow_nan=False)) == report


# --- heads ----------------------------------------------------------------------


def staged():
    scans = draw_scans(n_people=60)
    stage = scans.people % 4
    features = scans.features.copy()
    features[:, 3] = 2.0 * stage[:, None] + 0.3 * features[:, 0]
    y = np.array(STAGES)[stage]
    return type(scans)(scans.connectomes, features, y, scans.people)


def test_the_ordinal_head_learns_stages_in_the_order_given():
    scans = staged()
    given = {"head": "ordinal", "n_starts": 1, "initial_scale": 0.2}
    model = fit(scans, classes=STAGES, n_epochs=80, **given)
    assert model.stages_.tolist() == list(STAGES)
    assert model.classes_.tolist() == sorted(STAGES)
    assert_allclose(model.predict_proba(scans.X).sum(1), 1, atol=1e-9)
    pairs = zip(model.predict(scans.X), scans.y, strict=True)
    off = [abs(STAGES.index(a) - STAGES.index(b)) for a, b in pairs]
    assert np.mean(off) < 0.5
    assert model.networks_[0].output.out_features == 3
    # CN, MCI, AD would be sorted to AD, CN, MCI
    with pytest.raises(ParameterError, match=r"order of stage with classes="):
        fit(scans, **given)


@pytest.mark.parametrize("kind", [LSAPClassifier, LSAPRidgeClassifier])
def test_scores_of_scikit_learn_take_the_columns_of_the_classes_they_mean(kind):
    scans = staged()
    stages = STAGES[::2] + STAGES[1::2]  # CN, MCI, SMC, AD
    rows = scans.y != "SMC"
    y = scans.y[rows]
    brief = {"n_epochs": 30, "n_starts": 1} if kind is LSAPClassifier else {}
    model = kind(classes=stages, **brief).fit(
        scans.X[rows], y, groups=scans.people[rows]
    )
    auc = get_scorer("roc_auc_ovr")(model, scans.X[rows], y)
    assert auc > 0.9
    two = np.isin(scans.y, ("CN", "AD"))
    given = scans.X[two], scans.y[two]
    model = kind(classes=("CN", "AD"), **brief).fit(*given, groups=scans.people[two])
    first = model.predict_proba(given[0])[:, 0]
    assert ((first > 0.5) == (given[1] == "AD")).mean() > 0.9


# --- starts that die -----------------------------------------------------------


class Spoilt(GraphNetwork):
    """The first `n_spoilt` networks are dead, or not numbers."""

    n_made, n_spoilt, value = 0, 4, -1.0

    def __init__(self, *given):
        super().__init__(*given)
        type(self).n_made += 1
        if self.n_made <= self.n_spoilt:
            torch.nn.init.zeros_(self.readout.weight)
            torch.nn.init.constant_(self.readout.bias, self.value)


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_start_that_stays_dead_is_left_out_and_named(scans, monkeypatch, value):
    monkeypatch.setattr(
        training, "GraphNetwork", type("S", (Spoilt,), {"value": value})
    )
    with pytest.warns(UserWarning, match="1 of 3 training starts") as seen:
        model = fit(scans, n_starts=3, n_epochs=6)
    assert len(seen) == 1
    assert len(model.networks_) == len(model.scales_by_start_) == 2
    assert (model.fit_report_["n_unhealthy"], model.fit_report_["n_restarts"]) == (1, 3)
    assert model.fit_report_["failed"] is None
    assert np.isfinite(model.predict_proba(scans.X)).all()


# --- what cannot be used --------------------------------------------------------


def test_unknown_people_are_warned_of_where_a_slice_is_watched(scans):
    with pytest.warns(UserWarning, match=r"separate person.*groups=") as seen:
        make(n_starts=1, n_epochs=2).fit(scans.X, scans.y)
    assert seen[0].filename == __file__  # it points at the call
    with pytest.raises(ParameterError, match=r"groups must have shape \(32,\).*\(30,"):
        make().fit(scans.X, scans.y, groups=scans.people[2:])


def test_results_are_the_same_on_every_device(scans, device):
    # dropout is drawn on the device, by the device's own generator
    given = {"n_layers": 2, "n_epochs": 8, "batch_size": 9, "dropout": 0.0}
    model, here = fit(scans, device=device, **given), fit(scans, **given)
    expected = here.predict_proba(scans.X)
    assert_allclose(model.predict_proba(scans.X), expected, atol=2e-2)
    assert model.scales_.dtype == np.float64
    for name in NETWORKS:
        probability = fit_network(scans, name, device=device, n_epochs=2, patience=0)
        assert np.isfinite(probability.predict_proba(scans.X)).all()


# --- the networks to compare ------------------------------------------------------


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_each_network_learns_a_planted_region_and_repeats_itself(scans, network):
    model = fit_network(scans, network, n_epochs=60, patience=0)
    assert (model.predict(scans.X) == scans.y).mean() > 0.8
    assert model.fit_report_["failed"] is None
    assert model.history_[0].scales == []
    one, two = (fit_network(scans, network, n_epochs=6, patience=2) for _ in "ab")
    assert_array_equal(one.predict_proba(scans.X), two.predict_proba(scans.X))
    assert_allclose(one.predict_proba(scans.X).sum(1), 1, atol=1e-12)


def test_a_network_that_cannot_learn_is_a_failed_fit(scans):
    """On five classes GAT was at chance, and that was printed as its score."""
    given = {"learning_rate": 0.0, "n_epochs": 2, "n_starts": 2}
    with pytest.warns(UserWarning, match="2 of 2 training starts .* did not learn"):
        model = fit_network(scans, "gat", **given)
    assert model.fit_report_["n_restarts"] == 6
    assert "every training start failed" in model.fit_report_["failed"]
    assert "chance is 0.50" in model.fit_report_["failed"]


# --- what training starts from --------------------------------------------------


def test_start_says_whether_there_is_a_ridge_and_initial_scale_where_scales_begin():
    scans = draw_scans(n_people=24)
    brief = {"n_epochs": 2, "n_starts": 1, "random_state": 0}

    def fit_brief(**given):
        model = LSAPClassifier(**brief, **given)
        return model.fit(scans.X, scans.y, groups=scans.people)

    plain = fit_brief(start="constant")
    assert plain.ridge_ is None
    assert set(plain.scales_start_) == {1.0}
    assert set(fit_brief(start="constant", initial_scale=2.0).scales_start_) == {2.0}
    both = fit_brief(initial_scale=2.0)
    assert set(both.scales_start_) == {2.0}
    assert both.ridge_ is not None
    assert fit_brief().ridge_ is not None


@pytest.mark.parametrize(
    "given",
    [
        {"start": "nothing"},
        {"start": "constant", "initial_scale": "evidence"},
        {"start": "ridge", "options": {"inputs": "constant"}},
        {"start": "constant", "options": {"network_weight": 0.5}},
    ],
)
def test_starts_that_contradict_themselves_are_refused(given):
    with pytest.raises(ParameterError, match="start"):
        LSAPClassifier(**given).settings()


@pytest.mark.parametrize("class_weight", ["balanced", "none"])
def test_with_weight_zero_the_ridge_predicts(class_weight):
    scans = draw_scans(n_people=30, classes=STAGES)
    model = LSAPClassifier(
        classes=STAGES,
        class_weight=class_weight,
        n_epochs=2,
        n_starts=1,
        options={"network_weight": 0.0},
    ).fit(scans.X, scans.y, groups=scans.people)
    ridge = LSAPRidgeClassifier(classes=STAGES)
    ridge.fit(scans.X, scans.y, groups=scans.people)
    assert model.network_weight_ == 0.0
    assert_allclose(model.predict_proba(scans.X), ridge.predict_proba(scans.X))


def test_networks_take_over_the_polynomials_of_the_ridge(monkeypatch):
    scans = draw_scans(n_people=30)
    n_computed = []
    compute = inputs.iter_rows_and_polynomials

    def count_calls(*given, **named):
        n_computed.append(1)
        return compute(*given, **named)

    monkeypatch.setattr(inputs, "iter_rows_and_polynomials", count_calls)

    def fit_after_ridge(threshold, keeps_polynomials):
        rows = np.arange(len(scans.y))
        X = PackedScans(scans.connectomes, scans.features, rows)
        X.connectomes.keeps_polynomials = keeps_polynomials
        model = LSAPClassifier(n_epochs=4, n_starts=1, threshold=threshold)
        ridge = LSAPRidgeClassifier().fit(X, scans.y, groups=scans.people)
        n_computed.clear()
        model.fit_from_ridge(ridge, X, scans.y, scans.people)
        return model, sum(n_computed)

    expected, n_computed_anew = fit_after_ridge(0.0, keeps_polynomials=False)
    model, n_computed_again = fit_after_ridge(0.0, keeps_polynomials=True)
    assert (n_computed_anew, n_computed_again) == (1, 0)
    assert model.history_[0].train_loss == expected.history_[0].train_loss
    assert_array_equal(model.scales_, expected.scales_)
    # those of other connectomes are not taken
    other, n_computed_of_others = fit_after_ridge(30.0, keeps_polynomials=True)
    assert n_computed_of_others == 1
    assert other.history_[0].train_loss != expected.history_[0].train_loss


def draw_directions(n_people=150):
    """Patients whose region 0 deviates upwards or downwards: no linear effect."""
    rng = np.random.default_rng(0)
    code = np.arange(n_people) % 2
    features = rng.normal(size=(n_people, 5, 1))
    features[:, 0, 0] += 4.0 * code * rng.choice([-1.0, 1.0], n_people)
    W = np.broadcast_to(1 - np.eye(5), (n_people, 5, 5))
    return pack_scans(W, features), np.array(["CN", "AD"])[code]


def test_networks_have_the_weight_that_left_out_people_give_them():
    X, y = draw_directions()
    train, people = slice(0, 100), np.arange(100)
    model = LSAPClassifier(n_epochs=30, n_starts=2, options={"learning_rate": 0.05})
    model.fit(X[train], y[train], groups=people)
    assert model.network_weight_ > 0.3
    report = model.fit_report_
    assert report["network_weight"] == model.network_weight_
    assert report["network_gain"] > 2 * report["network_gain_se"] > 0
    assert (model.predict(X[100:]) == y[100:]).mean() > 0.75
    assert (model.ridge_.predict(X[100:]) == y[100:]).mean() < 0.65
    # labels exchanged between people: nothing to gain
    permuted = np.random.default_rng(1).permutation(y[train])
    model.fit(X[train], permuted, groups=people)
    assert model.network_weight_ == 0.0


def test_without_left_out_people_networks_have_no_weight(scans):
    few = scans.people < 16
    model = LSAPClassifier(n_epochs=2, n_starts=1)
    model.fit(scans.X[few], scans.y[few], groups=scans.people[few])
    assert model.network_weight_ == 0.0
    assert model.fit_report_["network_gain"] is None


def test_networks_assume_the_class_shares_that_are_named():
    rng = np.random.default_rng(0)
    is_ill = np.arange(120) % 6 == 0
    features = rng.normal(size=(120, 5, 1))
    features[is_ill, 0] += 1.5
    X = pack_scans(np.broadcast_to(1 - np.eye(5), (120, 5, 5)), features)
    y = np.where(is_ill, "AD", "CN")
    for kind, given in (
        (LSAPClassifier, {"start": "constant"}),
        (LSAPClassifier, {"start": "constant", "class_weight": "none"}),
        (NetworkClassifier, {}),
    ):
        model = kind(n_epochs=40, n_starts=1, random_state=0, **given)
        model.fit(X, y, groups=np.arange(120))
        mean = model.predict_proba(X)[:, 0].mean()
        assert abs(mean - 1 / 6) < 0.05
        balanced = clone(model).set_params(class_prior="balanced")
        balanced.fit(X, y, groups=np.arange(120))
        assert balanced.predict_proba(X)[:, 0].mean() > mean + 0.1
        assert_array_equal(balanced.predict(X), model.predict(X))
