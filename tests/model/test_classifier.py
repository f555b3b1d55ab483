"""LSAP as scikit-learn sees it: planted answers, seeds, missing values, limits."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from brainlsap._arrays import pack
from brainlsap.exceptions import ParameterError
from brainlsap.graph import KERNELS
from brainlsap.model import HeatNetwork, LSAPClassifier, ensemble
from brainlsap.model.inputs import InputScaler, make_batch

PLANTED, UNMEASURED = 3, 5
# thirty steps of at most 0.1 do not reach the largest scale
SMALL = {
    "initial_scale": 1.0,
    "max_scale": 4.5,
    "scale_step": 5.0,
    "scale_clip": 0.1,
    "n_layers": 1,
    "hidden_units": 3,
    "readout_units": 6,
    "dropout": 0.1,
    "linear_penalty": 0.0,
    "learning_rate": 0.02,
    "n_starts": 2,
    "n_epochs": 20,
    "patience": 20,
}


def make(**given):
    return LSAPClassifier(**(SMALL | given))


def fit(scans, **given):
    return make(**given).fit(scans.X, scans.y, groups=scans.people)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_planted_classes_are_found(draw_scans, kernel, n_layers):
    known, new = draw_scans(), draw_scans(n_people=16, seed=9)
    model = fit(known, kernel=kernel, n_layers=n_layers, n_epochs=30)
    assert model.score(new.X, new.y) > 0.8
    assert model.scales_.shape == (7,)
    assert model.scales_by_start_.shape == (2, 7)
    assert len(set(model.scales_.round(4))) > 4


@pytest.mark.parametrize("seed", [0, 1])
def test_the_only_region_that_tells_keeps_its_heat(draw_scans, seed):
    scans = draw_scans(n_people=40, seed=seed)
    model = fit(
        scans,
        initial_scale=2.0,
        max_scale=9.9,
        scale_step=10.0,
        n_epochs=60,
        patience=60,
    )
    assert model.scales_.argmin() == PLANTED
    assert model.scales_[PLANTED] < 1.0
    assert model.fit_report_["scales_learned"]


@pytest.mark.parametrize(
    "names", [("CN", "AD", "SMC"), (7, 1, 4), (np.int8(0), np.int8(1), np.int8(5))]
)
def test_labels_come_back_as_they_were_given(draw_scans, names):
    scans = draw_scans(n_people=30, classes=names)
    model = fit(scans, n_epochs=40, patience=40, scale_step=0.5)
    assert_array_equal(model.classes_, sorted(names))
    assert model.classes_.dtype == scans.y.dtype
    probability = model.predict_proba(scans.X)
    assert probability.shape == (40, 3)
    assert_allclose(probability.sum(axis=1), 1.0)
    predicted = model.predict(scans.X)
    assert predicted.dtype == scans.y.dtype
    assert_array_equal(predicted, model.classes_[probability.argmax(axis=1)])
    assert (predicted == scans.y).mean() > 0.7


def test_linear_path_learns_too(draw_scans):
    known, new = draw_scans(), draw_scans(n_people=16, seed=9)
    model = fit(known, linear_penalty=0.01, n_epochs=30)
    assert model.score(new.X, new.y) > 0.8
    assert all(net.linear.weight.abs().max() > 0.01 for net in model.networks_)


def test_probability_and_scales_are_the_mean_over_starts(scans):
    model = fit(scans, n_starts=3)
    scaled = InputScaler.learn(scans.features, "region").apply(scans.features)
    batch = make_batch(scans.connectomes, scaled, model.settings_, torch.device("cpu"))
    with torch.no_grad():
        logits = np.array([net(batch).numpy() for net in model.networks_], float)
    each = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    assert len(each) == len(model.history_) == 3
    assert_allclose(model.predict_proba(scans.X), each.mean(axis=0), atol=1e-6)
    assert np.ptp(each, axis=0).max() > 1e-3
    assert_allclose(model.scales_, model.scales_by_start_.mean(axis=0))
    assert np.ptp(model.scales_by_start_, axis=0).max() > 1e-3


def test_same_seed_same_bytes(scans):
    given = {"dropout": 0.4, "batch_size": 9, "n_epochs": 6}
    models = [fit(scans, random_state=seed, **given) for seed in (3, 3, 4)]
    found = [model.predict_proba(scans.X).tobytes() for model in models]
    assert found[0] == found[1] != found[2]
    assert models[0].scales_.tobytes() == models[1].scales_.tobytes()
    again = models[0].fit(scans.X, scans.y, groups=scans.people)
    assert again is models[0]
    assert again.predict_proba(scans.X).tobytes() == found[0]
    none, zero = (fit(scans, random_state=seed, **given) for seed in (None, 0))
    assert_array_equal(none.predict_proba(scans.X), zero.predict_proba(scans.X))


def test_global_generators_are_left_as_they_were(scans):
    torch_state = torch.random.get_rng_state()
    numpy_state = np.random.get_state()[1].copy()  # noqa: NPY002
    fit(scans, n_epochs=3).predict_proba(scans.X)
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


def test_threads_are_fixed_inside_and_given_back(scans, monkeypatch):
    before, asked = torch.get_num_threads(), []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    model = fit(scans, n_threads=5, n_epochs=3)
    model.predict_proba(scans.X)
    assert asked == [5, before] * 2
    with pytest.raises(ParameterError, match="diverged"):
        fit(scans, n_threads=5, learning_rate=1e30, n_epochs=3)
    assert asked == [5, before] * 3


def test_a_fitted_model_can_be_pickled(scans):
    model = fit(scans)
    other = pickle.loads(pickle.dumps(model))
    assert_array_equal(other.predict_proba(scans.X), model.predict_proba(scans.X))


def test_scans_do_not_depend_on_who_is_predicted_beside_them(scans):
    model = fit(scans, n_layers=2)
    together = model.predict_proba(scans.X)
    for row in (0, 5, 31):
        # one scan alone takes the way of a shared graph
        assert_allclose(
            model.predict_proba(scans.X[row : row + 1])[0], together[row], atol=1e-5
        )
    assert_allclose(model.predict_proba(scans.X[::-1])[::-1], together, atol=1e-5)


@pytest.mark.parametrize("kernel", ["exact", "chebyshev"])
def test_one_connectome_for_all_is_the_same_as_one_for_each(scans, kernel):
    """A tiny difference in one scan's graph makes 31 graphs out of one."""
    W = np.repeat(scans.connectomes[:1], 32, axis=0)
    nearly = W * (1 + 1e-9 * np.arange(32))[:, None, None]
    found = [
        make(kernel=kernel, n_layers=2, n_epochs=8)
        .fit(pack(one, scans.features), scans.y, groups=scans.people)
        .predict_proba(pack(W, scans.features))
        for one in (W, nearly)
    ]
    assert_allclose(found[0], found[1], atol=1e-3)


# --- scikit-learn -------------------------------------------------------------


def test_clone_keeps_every_parameter_and_nothing_learned(scans):
    model = fit(scans, kernel="laguerre", n_starts=1)
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "networks_")
    other.set_params(kernel="exact", n_layers=2)
    assert (other.kernel, other.n_layers, model.kernel) == ("exact", 2, "laguerre")
    with pytest.raises(NotFittedError):
        other.predict(scans.X)


def test_fitting_leaves_the_parameters_alone(scans):
    model = make(preset="paper", n_epochs=3)
    before = model.get_params()
    model.fit(scans.X, scans.y, groups=scans.people)
    assert model.get_params() == before


def test_cross_validation_with_people_kept_whole(scans):
    predicted = cross_val_predict(
        make(n_epochs=30),
        scans.X,
        scans.y,
        groups=scans.people,
        cv=GroupKFold(4),
        params={"groups": scans.people},
    )
    assert predicted.shape == scans.y.shape
    assert (predicted == scans.y).mean() > 0.75


def test_grid_search_hands_people_on(scans, monkeypatch):
    seen = []
    split = ensemble.inner_split

    def watching(codes, groups, *given):
        seen.append(groups)
        return split(codes, groups, *given)

    monkeypatch.setattr(ensemble, "inner_split", watching)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make(n_starts=1).set_fit_request(groups=True),
            {"scale_mode": ["region", "global", "frozen"]},
            cv=GroupKFold(2),
        )
        search.fit(scans.X, scans.y, groups=scans.people)
    splits = GroupKFold(2).split(scans.X, scans.y, scans.people)
    cut = {len(train) for train, _ in splits}
    assert {len(people) for people in seen} == {len(scans.people), *cut}
    assert_array_equal(seen[-1], scans.people)
    assert search.best_params_["scale_mode"] in {"region", "global", "frozen"}
    assert search.predict(scans.X[:3]).shape == (3,)


def test_pipeline_hands_people_on(scans):
    double = FunctionTransformer(lambda X: 2 * X)
    model = make_pipeline(double, make(n_starts=1))
    model.fit(scans.X, scans.y, lsapclassifier__groups=scans.people)
    alone = make(n_starts=1).fit(2 * scans.X, scans.y, groups=scans.people)
    assert_array_equal(model.predict_proba(scans.X), alone.predict_proba(2 * scans.X))


def test_covariates_are_taken_and_not_looked_at(scans):
    given = [None, object()]
    found = [
        make(n_epochs=4)
        .fit(scans.X, scans.y, groups=scans.people, covariates=one)
        .predict_proba(scans.X)
        for one in given
    ]
    assert_array_equal(found[0], found[1])


def test_settings_are_told_before_a_fit():
    told = make(preset="paper", kernel="hermite").settings()
    assert told["degree"] == 30
    assert told["n_layers"] == 1  # given
    assert told["weights"] == "binary"  # the preset's


@pytest.mark.parametrize("kernel", KERNELS)
def test_paper_preset_fits(scans, kernel):
    # scales may not rise here: at 2, Laguerre-20 is at the limit of its trust
    model = LSAPClassifier(kernel, preset="paper", n_epochs=4, scale_mode="frozen")
    model.fit(scans.X, scans.y)  # no slice is watched, so no people are asked for
    assert len(model.networks_) == 1
    assert model.history_[0].epoch[-1] == model.fit_report_["best_epochs"][0] == 3
    assert_array_equal(model.scales_start_, np.full(7, 2.0))
    assert model.settings_.threshold == 10.0
    assert np.isfinite(model.predict_proba(scans.X)).all()


# --- missing and constant values ----------------------------------------------


def test_regions_never_measured_are_not_read_out(scans):
    model = fit(scans)
    assert_array_equal(model.measured_, np.arange(7) != UNMEASURED)
    for network in model.networks_:
        assert network.readout.first.in_features == 6 * 3
    # a value that turns up there later tells nothing
    later = scans.features.copy()
    later[:, UNMEASURED] = 99.0
    assert_array_equal(
        model.predict_proba(pack(scans.connectomes, later)),
        model.predict_proba(scans.X),
    )


@pytest.mark.parametrize("standardize", ["region", "scan"])
def test_a_lonely_region_without_values_changes_nothing(scans, standardize):
    """Neither fit nor prediction may see it, wherever the NaN stands."""
    given = {"standardize": standardize, "n_epochs": 6}
    plain = fit(scans, **given)
    W = np.pad(scans.connectomes, ((0, 0), (0, 1), (0, 1)))
    features = np.pad(scans.features, ((0, 0), (0, 1), (0, 0)), constant_values=np.nan)
    wider = type(scans)(W, features, scans.y, scans.people)
    model = fit(wider, **given)
    assert_allclose(
        model.predict_proba(wider.X), plain.predict_proba(scans.X), atol=1e-4
    )
    assert_allclose(model.scales_[:7], plain.scales_, atol=1e-3)
    assert model.scales_[7] == 1.0


def test_values_missing_here_and_there_count_as_the_mean(scans):
    features = scans.features.copy()
    features[[2, 11, 20], 1, 0] = np.nan
    model = fit(scans.with_features(features))
    assert model.measured_[1]
    filled = features.copy()
    filled[[2, 11, 20], 1, 0] = np.nanmean(features[:, 1, 0])
    assert_allclose(
        model.predict_proba(pack(scans.connectomes, filled)),
        model.predict_proba(pack(scans.connectomes, features)),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("standardize", "value"), [("region", 1e6 + 0.1), ("scan", 0.3)]
)
def test_a_constant_region_leaves_everything_finite(scans, standardize, value):
    features = scans.features.copy()
    features[:, 1] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(scans.with_features(features), standardize=standardize)
        probability = model.predict_proba(pack(scans.connectomes, features))
    assert np.isfinite(probability).all()
    assert np.isfinite(model.scales_).all()
    for network in model.networks_:
        assert all(torch.isfinite(p).all() for p in network.parameters())


def test_scans_given_are_left_alone(scans):
    X, y = scans.X, scans.y.copy()
    before = X.copy()
    make(threshold=20.0, weights="binary").fit(X, y, groups=scans.people)
    assert_array_equal(X, before)
    assert_array_equal(y, scans.y)


# --- scales and their limits ---------------------------------------------------


def test_scale_modes(scans):
    found = {
        mode: fit(scans, scale_mode=mode).scales_by_start_
        for mode in ("region", "global", "frozen")
    }
    assert np.ptp(found["region"], axis=1).min() > 1e-3
    assert np.ptp(found["global"], axis=1).max() == 0
    assert (found["global"] != 1.0).all()
    assert (found["frozen"] == 1.0).all()


def test_hermite_of_degree_30_never_returns_a_kernel_at_scale_six(scans):
    with pytest.raises(
        ParameterError, match=r"hermite kernel of degree 30 can be wrong by .*_scale 6"
    ):
        fit(scans, kernel="hermite", degree=30, initial_scale=6.0, max_scale=6.0)
    # steps of 1 would carry some scale there
    with pytest.warns(UserWarning, match=r"scales reached .* were kept there") as told:
        model = fit(
            scans,
            kernel="hermite",
            degree=30,
            initial_scale=2.5,
            max_scale=6.0,
            scale_step=1e4,
            scale_clip=1.0,
        )
    assert len(told) == 1
    report = model.fit_report_
    assert 2.5 < report["largest_scale"] < 3.2
    assert report["n_projected"] > 0
    assert model.scales_by_start_.max() <= report["largest_scale"] + 1e-6
    assert model.scales_by_start_.min() >= 0.0
    assert report["approximation_error"] <= 1e-4 * 1.001


def test_scales_stay_below_what_was_asked_for(scans):
    with pytest.warns(UserWarning, match=r"scales reached 1.2, the largest"):
        model = fit(scans, max_scale=1.2, scale_step=1e3)
    assert model.scales_by_start_.max() <= np.float32(1.2)


# --- starts that die -----------------------------------------------------------


class Spoilt(HeatNetwork):
    """The first `n_spoilt` networks are dead, or not numbers."""

    n_made, n_spoilt, value = 0, 4, -1.0

    def __init__(self, *given):
        super().__init__(*given)
        type(self).n_made += 1
        if self.n_made <= self.n_spoilt:
            torch.nn.init.zeros_(self.readout.first.weight)
            torch.nn.init.constant_(self.readout.first.bias, self.value)


def spoil(monkeypatch, **given):
    monkeypatch.setattr(ensemble, "HeatNetwork", type("Some", (Spoilt,), given))


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_start_that_stays_dead_is_left_out_and_told_of(scans, monkeypatch, value):
    spoil(monkeypatch, n_spoilt=4, value=value)
    with pytest.warns(UserWarning, match=r"1 starts stayed dead or diverged") as told:
        model = fit(scans, n_starts=3)
    assert len(told) == 1
    assert len(model.networks_) == len(model.scales_by_start_) == 2
    assert len(model.history_) == 3
    assert (model.fit_report_["n_unhealthy"], model.fit_report_["n_restarts"]) == (1, 3)
    assert np.isfinite(model.predict_proba(scans.X)).all()


def test_a_start_that_comes_back_is_counted(scans, monkeypatch):
    spoil(monkeypatch, n_spoilt=2)
    model = fit(scans)
    assert (model.fit_report_["n_unhealthy"], model.fit_report_["n_restarts"]) == (0, 2)
    assert len(model.networks_) == 2


def test_dead_starts_alone_predict_the_same_for_everybody(scans, monkeypatch):
    spoil(monkeypatch, n_spoilt=99)
    with pytest.warns(UserWarning, match=r"2 starts stayed dead or diverged"):
        model = fit(scans, n_epochs=4)
    assert np.ptp(model.predict_proba(scans.X), axis=0).max() < 1e-6


def test_a_fit_that_diverges_everywhere_is_refused(scans):
    with pytest.raises(
        ParameterError, match=r"diverged in every start \(2\).*Lower learning_rate"
    ):
        fit(scans, learning_rate=1e30)


# --- what cannot be used --------------------------------------------------------


def test_unknown_people_are_warned_of_where_a_slice_is_watched(scans):
    with pytest.warns(
        UserWarning, match=r"every scan for a person of its own.*groups=participants"
    ) as told:
        make(n_starts=1, n_epochs=2).fit(scans.X, scans.y)
    assert told[0].filename == __file__  # it points at the call
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(n_starts=1, n_epochs=2, patience=0).fit(scans.X, scans.y)


def test_labels_and_people_must_fit_the_scans(scans):
    model = make()
    with pytest.raises(
        ParameterError, match=r"y must have shape \(32,\), one label a scan, got \(31,"
    ):
        model.fit(scans.X, scans.y[1:], groups=scans.people)
    with pytest.raises(ParameterError, match=r"two classes, got only 'CN'\."):
        model.fit(scans.X, np.full(32, "CN"), groups=scans.people)
    with pytest.raises(
        ParameterError, match=r"groups must have shape \(32,\), one .* got \(30,\)"
    ):
        model.fit(scans.X, scans.y, groups=scans.people[2:])


def test_settings_are_checked_by_fit_not_before(scans):
    model = make(kernel="fourier", n_threads=0)
    with pytest.raises(ParameterError, match=r"kernel must be one of .*got 'fourier'"):
        model.fit(scans.X, scans.y, groups=scans.people)
    model.set_params(kernel="exact")
    with pytest.raises(ParameterError, match=r"n_threads must be at least 1, got 0"):
        model.fit(scans.X, scans.y, groups=scans.people)


def test_scans_of_another_size_are_refused(scans, draw_scans):
    model = fit(scans, n_epochs=2)
    with pytest.raises(
        ParameterError, match=r"7 regions and 2 features, as in fit; got 8 and 2"
    ):
        model.predict(draw_scans(n_rois=8).X)
    with pytest.raises(ParameterError, match=r"as in fit; got 7 and 3"):
        model.predict_proba(draw_scans(n_features=3).X)


def test_results_are_the_same_on_every_device(scans, device):
    model = fit(scans, n_layers=2, n_epochs=8, device=device)
    here = fit(scans, n_layers=2, n_epochs=8)
    assert_allclose(
        model.predict_proba(scans.X), here.predict_proba(scans.X), atol=2e-2
    )
    assert model.scales_.dtype == np.float64
