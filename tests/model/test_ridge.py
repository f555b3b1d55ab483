"""Scales by evidence: the evidence against a dense truth, and what is made of it."""

import numpy as np
import pytest
import torch

from brainlsap.arrays import pack_scans
from brainlsap.exceptions import ParameterError
from brainlsap.graph import Preparation, exact_heat_kernel, normalized_laplacian
from brainlsap.model import NESTED_MODELS, LSAPRidgeClassifier
from brainlsap.model.evidence import (
    LogEvidence,
    diffusion_terms,
    fit_scales_by_nested_model,
    term_basis,
)
from brainlsap.model.scale_sampler import sample_scales

N_SCANS, N_ROIS, N_FEATURES, N_TARGETS = 31, 7, 2, 3
B = term_basis(10.0)


def networks(n_scans, n_rois, rng):
    W = rng.gamma(0.5, size=(n_scans, n_rois, n_rois)) * 10
    W = W + W.transpose(0, 2, 1)
    W[:, np.arange(n_rois), np.arange(n_rois)] = 0
    return W


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def problem(rng):
    """Networks, features, targets and unequal weights; scales that differ."""
    W = networks(N_SCANS, N_ROIS, rng)
    W[3, 2] = W[3, :, 2] = 0  # a region without links
    X = rng.normal(size=(N_SCANS, N_ROIS, N_FEATURES))
    targets = rng.normal(size=(N_SCANS, N_TARGETS))
    weights = rng.uniform(0.2, 1.0, N_SCANS)
    scale = rng.uniform(0.0, 6.0, N_ROIS)
    terms = diffusion_terms(W, X, Preparation(), B)
    return W, X, terms, targets, weights, scale


def diffused(W, X, scale):
    kernels = [
        exact_heat_kernel(normalized_laplacian(w), torch.tensor(scale)) for w in W
    ]
    return np.stack([k.numpy() for k in kernels]) @ X


def test_terms_give_the_exact_kernel(problem):
    W, X, terms, *_, scale = problem
    c = LogEvidence(
        terms, np.ones((N_SCANS, 1)), np.ones(N_SCANS), 2, B
    ).column_coefs_and_slopes(scale)
    found = np.einsum("rnd,rd->nd", terms, c[0]).reshape(X.shape)
    np.testing.assert_allclose(found, diffused(W, X, scale), atol=1e-5)


@pytest.mark.parametrize("by_scans", [True, False])
def test_evidence_is_the_density_of_the_targets(problem, by_scans, monkeypatch):
    # the Gram matrix adds over blocks of scans
    monkeypatch.setattr("brainlsap.model.evidence._ROWS_AT_ONCE", 10)
    _, _, terms, t, u, scale = problem
    ridge = 2.7
    evidence = LogEvidence(terms, t, u, N_FEATURES, B, by_scans)
    Z = np.einsum("rnd,rd->nd", terms, evidence.column_coefs_and_slopes(scale)[0])
    Z -= u @ Z / u.sum()
    Z /= np.sqrt(u @ Z**2 / u.sum())
    K, centred = Z @ Z.T / ridge + np.diag(1 / u), t - u @ t / u.sum()
    n_free = u.sum() - 1
    noise = np.trace(centred.T @ np.linalg.solve(K, centred)) / n_free / N_TARGETS
    log_det = np.linalg.slogdet(K)[1] + np.log(u).sum()
    truth = N_TARGETS / 2 * (n_free * np.log(2 * np.pi * np.e * noise) + log_det)
    value, slope, by_ridge = evidence(scale, ridge)
    assert value == pytest.approx(truth, rel=1e-10)
    step = 1e-5
    for p in range(N_ROIS):
        up, down = scale + step * (np.arange(N_ROIS) == p), scale.copy()
        down[p] -= step
        numeric = (evidence(up, ridge)[0] - evidence(down, ridge)[0]) / (2 * step)
        assert slope[p] == pytest.approx(numeric, rel=1e-5, abs=1e-7)
    numeric = evidence(scale, ridge + step)[0] - evidence(scale, ridge - step)[0]
    assert by_ridge == pytest.approx(numeric / (2 * step), rel=1e-5)


def test_both_forms_agree(problem):
    _, _, terms, t, u, scale = problem
    forms = [LogEvidence(terms, t, u, N_FEATURES, B, form) for form in (True, False)]
    for one, other in zip(*(form.moments(scale, True) for form in forms), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)
    one, other = (form.information(scale, 2.0) for form in forms)
    np.testing.assert_allclose(one, other, atol=1e-8)
    assert np.linalg.eigvalsh(one).min() > -1e-8
    for name, fit in fit_scales_by_nested_model(forms[0], "regions", 10.0).items():
        again = fit_scales_by_nested_model(forms[1], "regions", 10.0)[name]
        assert fit.log_evidence == pytest.approx(again.log_evidence, abs=1e-3)


@pytest.mark.parametrize("by_scans", [True, False])
@pytest.mark.parametrize("n_classes", [3, 4])
def test_classes_without_order_count_as_often_as_contrasts_hold_them(
    problem, rng, by_scans, n_classes
):
    _, _, terms, _, u, scale = problem
    codes = np.arange(N_SCANS) % n_classes
    columns = np.eye(n_classes)[codes]
    # an orthonormal basis of all contrasts, and another one
    contrasts = np.linalg.svd(np.eye(n_classes) - 1 / n_classes)[0][:, :-1]
    rotation = np.linalg.qr(rng.normal(size=(n_classes - 1, n_classes - 1)))[0]
    evidences = [
        LogEvidence(terms, targets, u, N_FEATURES, B, by_scans)
        for targets in (columns @ contrasts, columns @ contrasts @ rotation, columns)
    ]
    for one, slopes, by_ridge in (e(scale, 2.7) for e in evidences[1:]):
        expected = evidences[0](scale, 2.7)
        assert one == pytest.approx(expected[0], rel=1e-10)
        np.testing.assert_allclose(slopes, expected[1], rtol=1e-7, atol=1e-9)
        assert by_ridge == pytest.approx(expected[2])
    information = [e.information(scale, 2.7) for e in evidences]
    np.testing.assert_allclose(information[2], information[0], rtol=1e-8, atol=1e-10)
    start = fit_scales_by_nested_model(evidences[0], "regions", 10.0)["regions"]
    draws = [
        sample_scales(e, start, 3, 10.0, np.random.default_rng(0)) for e in evidences
    ]
    for fit in draws[1:]:
        np.testing.assert_allclose(fit.scales, draws[0].scales, rtol=1e-6)
        assert fit.ridge == pytest.approx(draws[0].ridge)


def cohort(rng, n_people=60, n_rois=12, visits=2):
    """Stages that follow the diffused feature of four regions; visits of people."""
    W = networks(n_people, n_rois, rng)
    X = rng.normal(size=(n_people, n_rois, 1))
    signal = diffused(W, X, np.full(n_rois, 2.0))[:, :4, 0]
    signal = (signal / signal.std(0)).sum(axis=1)
    stage = np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3]))
    again = np.repeat(np.arange(n_people), visits)
    noisy = X[again] + 0.05 * rng.normal(size=(len(again), n_rois, 1))
    return (
        pack_scans(W[again], noisy),
        np.array(["CN", "MCI", "AD"])[stage][again],
        again,
    )


def test_scales_of_some_scans_are_those_of_a_fit_to_them(rng):
    X, y, people = cohort(rng)
    settings = {"n_draws": 0, "classes": ("CN", "MCI", "AD")}
    half = LSAPRidgeClassifier("regions", **settings).fit(X, y, people)
    is_selected = np.arange(2 * len(X)) < len(X)
    # The same people again are standardised alike; only the spread is another.
    again = np.r_[people, people + people.max() + 1]
    whole = LSAPRidgeClassifier("regions", **settings)
    whole.fit(np.tile(X, (2, 1, 1)), np.tile(y, 2), again)
    whole.fit_report_["spread"] = half.fit_report_["spread"]
    scales = whole.refit_scales(
        np.tile(X, (2, 1, 1)), np.tile(y, 2), again, is_selected
    )
    np.testing.assert_allclose(scales, half.scales_, rtol=0.02)
    assert np.ptp(scales) > 0.1
    everybody = np.ones(len(X), bool)
    for name in ("one", "none"):
        fit = LSAPRidgeClassifier(name, **settings).fit(X, y, people)
        scales = fit.refit_scales(X, y, people, everybody)
        np.testing.assert_allclose(scales, fit.scales_, rtol=0.01)


def test_left_out_scores_are_those_of_a_fit_without_the_person(rng):
    X, y, people = cohort(rng, n_people=20)
    y = np.where(y == "AD", 1.0, 0.0)
    model = LSAPRidgeClassifier("one").fit(X, y, groups=people)
    evidence_scale, ridge = model.scales_, model.fit_report_["ridge"]
    # by hand: the same columns, weights and ridge, without the first person
    signals = model.scaler_.apply(X[:, :, 12:].astype(float))
    terms = diffusion_terms(X[:, :, :12], signals, model.preparation_, B)
    counts = np.bincount(y.astype(int))
    u = 1 / counts[y.astype(int)] * 20 / 2
    columns, _, _ = LogEvidence(
        terms, y[:, None], u, 1, B
    ).standardized_columns_and_slopes(evidence_scale)
    Z, kept = columns / np.sqrt(u)[:, None], people != people[0]
    A = np.column_stack([np.ones(kept.sum()), Z[kept]])
    M = A.T @ (u[kept, None] * A) + ridge * np.diag([0.0] + [1.0] * 12)
    w = np.linalg.solve(M, A.T @ (u[kept] * y[kept]))
    np.testing.assert_allclose(
        model.left_out_scores_[~kept, 0], w[0] + Z[~kept] @ w[1:], atol=1e-6
    )


def test_the_network_is_found_where_it_matters(rng):
    X, y, people = cohort(rng, n_people=150)
    model = LSAPRidgeClassifier(classes=["CN", "MCI", "AD"]).fit(X, y, groups=people)
    assert model.chosen_ != "none"
    assert 0.8 < np.median(model.scales_) < 5
    assert (model.predict(X) == y).mean() > 0.8
    probability = model.predict_proba(X)
    assert probability.shape == (300, 3)
    np.testing.assert_allclose(probability.sum(1), 1)
    low, high = model.scales_interval_.T
    assert (low <= model.scales_).all()
    assert (model.scales_ <= high).all()


def test_permuted_labels_leave_the_network_out(rng):
    X, y, people = cohort(rng, n_people=80, visits=1)
    model = LSAPRidgeClassifier().fit(X, rng.permutation(y), groups=people)
    assert model.chosen_ == "none"
    assert (model.scales_ == 0).all()
    # left-out scores point away from classes without a signal; they are not followed
    for _ in range(6):
        model.fit(X, rng.permutation(y == "AD"), groups=people)
        assert model.means_[1] > model.means_[0]


def test_visits_do_not_count_as_people(rng):
    X, y, people = cohort(rng, n_people=40, visits=1)
    given = {"classes": ["CN", "MCI", "AD"]}
    once = LSAPRidgeClassifier("one", **given).fit(X, y, groups=people)
    thrice = LSAPRidgeClassifier("one", **given).fit(
        np.repeat(X, 3, 0), np.repeat(y, 3), groups=np.repeat(people, 3)
    )
    for name, evidence in once.evidence_.items():
        assert thrice.evidence_[name] == pytest.approx(evidence, abs=1e-4)
    np.testing.assert_allclose(
        once.predict_proba(X), thrice.predict_proba(X), atol=1e-3
    )


def test_classes_without_order_are_targets_of_their_own(rng):
    X, y, people = cohort(rng, n_people=90)
    model = LSAPRidgeClassifier("regions", n_draws=6, random_state=3)
    model.fit(X, y, groups=people)
    assert model.decision_scores(X).shape == (180, 3)
    assert not model.fit_report_["ordered"]
    assert list(model.classes_) == ["AD", "CN", "MCI"]
    # the same again, also if all nested models are fitted at once
    nested_models = [
        LSAPRidgeClassifier(n, n_draws=6, random_state=3) for n in NESTED_MODELS
    ]
    LSAPRidgeClassifier(n_draws=6, random_state=3).fit_with(nested_models, X, y, people)
    alone = LSAPRidgeClassifier("one", n_draws=6, random_state=3).fit(X, y, people)
    for one, again in ((model, nested_models[2]), (alone, nested_models[1])):
        assert (one.predict_proba(X) == again.predict_proba(X)).all()
        assert one.fit_report_ == again.fit_report_


def test_a_region_without_values_has_no_say(rng):
    X, y, people = cohort(rng, n_people=40)
    X[:, 5, -1] = np.nan
    model = LSAPRidgeClassifier("one", classes=["CN", "MCI", "AD"])
    assert not model.fit(X, y, groups=people).measured_[5]
    assert np.isfinite(model.predict_proba(X)).all()
    with pytest.raises(ParameterError, match="scales must be"):
        LSAPRidgeClassifier("two").fit(X, y, groups=people)


def test_few_people_are_not_overtrusted(rng):
    stage = np.arange(230) % 3
    values = rng.normal(size=(230, 40, 2))
    values[:, :4] += stage[:, None, None]
    X = pack_scans(networks(230, 40, rng), values)
    for n_draws in (0, 6):
        model = LSAPRidgeClassifier("regions", classes=range(3), n_draws=n_draws)
        model.fit(X[:30], stage[:30], groups=np.arange(30))
        told = model.predict_proba(X[30:])[np.arange(200), stage[30:]]
        assert -np.log(told).mean() < 0.9  # 1.1 for saying nothing


def draw_rare(n_scans, rng, share=0.1, n_rois=8):
    """People of whom few have AD, which one region tells imperfectly."""
    y = (rng.random(n_scans) < share).astype(int)
    features = rng.normal(size=(n_scans, n_rois, 1))
    features[:, 0, 0] += 1.5 * y
    W = np.broadcast_to(1 - np.eye(n_rois), (n_scans, n_rois, n_rois))
    return pack_scans(W, features), np.array(["CN", "AD"])[y]


def p_of_ad(model, X):
    return model.predict_proba(X)[:, list(model.classes_).index("AD")]


def test_of_a_rare_class_as_many_are_right_as_probabilities_say():
    probability, is_ad = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = draw_rare(400, rng)
        new_X, new_y = draw_rare(2000, rng)
        model = LSAPRidgeClassifier("none", classes=["CN", "AD"])
        model.fit(X, y, groups=np.arange(len(y)))
        probability.append(p_of_ad(model, new_X))
        is_ad.append(new_y == "AD")
    probability, is_ad = np.concatenate(probability), np.concatenate(is_ad)
    assert abs(probability.mean() - is_ad.mean()) < 0.01
    for low, high in ((0.0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1.0)):
        rows = (low <= probability) & (probability <= high)
        assert rows.sum() > 100
        assert abs(probability[rows].mean() - is_ad[rows].mean()) < 0.08


def test_a_class_prior_changes_probabilities_and_no_decision():
    X, y = draw_rare(200, np.random.default_rng(0))
    people = np.arange(len(y))
    shares = {"CN": 0.7, "AD": 0.3}
    balanced, training, own = (
        LSAPRidgeClassifier("none", class_prior=prior).fit(X, y, groups=people)
        for prior in ("balanced", "training", shares)
    )
    assert training.class_prior_.tolist() == [np.mean(y == "AD"), np.mean(y == "CN")]
    assert balanced.class_prior_.tolist() == [0.5, 0.5]
    assert own.fit_report_["class_prior"] == pytest.approx(shares)
    odds = {name: p_of_ad(one, X) for name, one in (("own", own), ("even", balanced))}
    odds = {name: p / (1 - p) for name, p in odds.items()}
    np.testing.assert_allclose(odds["own"], odds["even"] * 0.3 / 0.7)
    for model in (training, own):
        assert (model.predict(X) == balanced.predict(X)).all()
    # balanced: the most probable class, of which many are rare
    most_probable = balanced.predict_proba(X).argmax(axis=1)
    assert (balanced.predict(X) == balanced.classes_[most_probable]).all()
    assert np.mean(training.predict(X) == "AD") > 1.5 * np.mean(y == "AD")


@pytest.mark.parametrize("prior", [{1.0: 0.3, 0: 0.7}, {"1": 0.3, "0.0": 0.7}])
@pytest.mark.parametrize("spelling", [str, int, lambda label: f"{label}.0"])
def test_a_class_prior_may_spell_the_numbers_of_classes_in_another_way(prior, spelling):
    X, y = draw_rare(60, np.random.default_rng(0))
    labels = np.array([spelling(int(label == "AD")) for label in y])
    model = LSAPRidgeClassifier("none", class_prior=prior)
    model.fit(X, labels, groups=np.arange(len(y)))
    assert model.class_prior_.tolist() == [0.7, 0.3]
    twice = LSAPRidgeClassifier("none", class_prior={0: 0.7, 1: 0.2, "1.00": 0.1})
    with pytest.raises(ParameterError, match="two shares for the class 1"):
        twice.fit(X, labels, groups=np.arange(len(y)))


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("uniform", "class_prior must be 'training', 'balanced'.*got 'uniform'"),
        ({"CN": 0.9}, "but not for AD"),
        ({"CN": 0.9, "AD": 0.9}, "sum to 1; got CN=0.9, AD=0.9"),
        ({"CN": 1.0, "AD": 0.0}, "above 0"),
        ({"CN": 90, "AD": 10}, "sum to 1"),
        (None, "class_prior must be .* got None"),
    ],
)
def test_a_class_prior_that_is_none_is_refused(prior, message):
    X, y = draw_rare(60, np.random.default_rng(0))
    model = LSAPRidgeClassifier("none", class_prior=prior)
    with pytest.raises(ParameterError, match=message):
        model.fit(X, y, groups=np.arange(len(y)))
