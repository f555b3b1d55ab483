"""What the connectome adds: against dense float64 truth, and in planted cohorts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import Atlas
from brainlsap.data import Cohort
from brainlsap.evaluation import ConnectomeGain, connectome_gain, connectome_worth
from brainlsap.evaluation.connectome_worth import (
    MIN_LOG_CREDIT,
    _compute_column_products,
    _GainComputation,
    _iter_diffused_signals,
    _OwnValueModel,
    _PersonRows,
    draw_donor_indices,
    rewire_connectomes,
)
from brainlsap.exceptions import CohortError, ParameterError
from brainlsap.graph import Preparation

SCALE, RATIO = 0.5, 0.7


def draw_connectomes(n_scans, n_rois, rng):
    upper = np.triu(rng.lognormal(0, 1.5, (n_scans, n_rois, n_rois)), 1)
    return (upper + upper.swapaxes(1, 2)).astype(np.float32)


def make_own_cohort(W, x, code, groups=None):
    """Return a cohort of two classes, one feature, and regions a, b, c ..."""
    scans = [f"s{i:03d}" for i in range(len(x))]
    table = {"scan": scans, "participant": scans if groups is None else groups}
    table |= {"session": scans, "label": np.array(["CN", "AD"])[code]}
    return Cohort(
        connectomes=W,
        features=x[:, :, None],
        table=pd.DataFrame(table),
        atlas=Atlas.from_names([f"region {i}" for i in range(x.shape[1])]),
        feature_names=("value",),
        classes=("CN", "AD"),
    )


def heat(W, scale):
    """Return exp(-s L) by eigenvectors; a region without a link keeps its value."""
    d = W.sum(axis=1)
    root = np.where(d > 0, 1 / np.sqrt(np.where(d > 0, d, 1)), 0)
    L = np.diag((d > 0).astype(float)) - root[:, None] * W * root
    eigenvalues, vectors = np.linalg.eigh(L)
    return (vectors * np.exp(-scale * eigenvalues)) @ vectors.T


@pytest.fixture(params=[5, 40], ids=["fewer columns than people", "more columns"])
def rows_and_columns(request):
    rng = np.random.default_rng(request.param)
    n, n_columns = 30, request.param
    codes = np.arange(n) % 3
    own = rng.normal(size=(n, n_columns)) + 0.5 * rng.normal(size=(n, 1))
    rows = _PersonRows(
        region_values=own,
        feature_means=own.mean(axis=1, keepdims=True),
        targets=codes[:, None].astype(float),
        class_codes=codes,
        person_codes=np.arange(n),
        scan_shares=rng.uniform(0.5, 1.5, n),
    )
    columns = own @ rng.normal(size=(n_columns, n_columns)) + rng.normal(size=own.shape)
    return rows, columns


def slow_residuals(rows, columns):
    """Least squares of each diffused column on intercept, mean and own value."""
    root = np.sqrt(rows.compute_row_weights())
    residuals = np.empty_like(columns)
    for p in range(columns.shape[1]):
        design = np.column_stack(
            [np.ones(len(root)), rows.feature_means, rows.region_values[:, p]]
        )
        slopes = np.linalg.lstsq(
            root[:, None] * design, root * columns[:, p], rcond=None
        )[0]
        residuals[:, p] = columns[:, p] - design @ slopes
    return residuals


def test_residual_columns_are_those_of_least_squares(rows_and_columns):
    rows, columns = rows_and_columns
    model = _OwnValueModel(rows)
    products = _compute_column_products(columns, rows, rows.compute_row_weights())
    residual = model.compute_residual_products(products)
    R = np.sqrt(rows.compute_row_weights())[:, None] * slow_residuals(rows, columns)
    tolerance = {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(residual.RtR, R.T @ R, **tolerance)
    np.testing.assert_allclose(residual.RtX, R.T @ model.X, **tolerance)
    np.testing.assert_allclose(residual.Rtt, R.T @ model.t, **tolerance)


def test_products_without_a_group_are_those_of_the_other_rows(rows_and_columns):
    rows, columns = rows_and_columns
    people = np.arange(len(rows.class_codes))
    splits = [(people[people % 2 != g], people[people % 2 == g]) for g in (0, 1)]
    computation = _GainComputation(rows, splits)
    products = computation._iter_product_matrices(columns)
    for train in (people, *(train for train, _ in splits)):
        train_rows = rows.select_rows(train)
        expected = _compute_column_products(
            columns[train], train_rows, train_rows.compute_row_weights()
        )
        np.testing.assert_allclose(next(products), expected, atol=1e-10)


def test_gain_and_predictions_are_those_of_dense_covariances(
    rows_and_columns, monkeypatch
):
    rows, columns = rows_and_columns
    train, test = np.arange(24), np.arange(24, 30)
    monkeypatch.setattr(connectome_worth, "_SCALES", (SCALE,))
    monkeypatch.setattr(connectome_worth, "_SIGNAL_RATIOS", np.array([RATIO]))
    monkeypatch.setattr(connectome_worth, "_RIDGE_FACTORS", (2.0,))
    model = _OwnValueModel(rows.select_rows(train))
    fit = model.fit_network([columns[train]])
    # Dense: weighted rows, intercept and mean integrated out (orthonormal contrasts).
    weights = rows.select_rows(train).compute_row_weights()
    root = np.sqrt(weights)
    mean = weights @ rows.region_values[train] / weights.sum()
    sd = np.sqrt(weights @ (rows.region_values[train] - mean) ** 2 / weights.sum())
    F = np.column_stack([np.ones(30), rows.feature_means])
    X = rows.region_values / sd
    # Residual columns of all rows, with slopes of the training rows.
    R = np.empty_like(columns)
    for p in range(columns.shape[1]):
        design = np.column_stack([F, rows.region_values[:, p]])
        slopes = np.linalg.lstsq(
            root[:, None] * design[train], root * columns[train, p], rcond=None
        )[0]
        R[:, p] = columns[:, p] - design @ slopes
    R /= np.sqrt((weights[:, None] * R[train] ** 2).sum() / weights.sum())
    Q, _ = np.linalg.qr(root[:, None] * F[train], mode="complete")
    contrasts = Q[:, 2:]
    t = rows.targets[train, 0]

    def log_evidence(K):
        K = contrasts.T @ (root[:, None] * K * root + np.eye(24)) @ contrasts
        y = contrasts.T @ (root * t)
        rss = y @ np.linalg.solve(K, y)
        dof = weights.sum() - 2
        return -(dof * np.log(rss) + np.linalg.slogdet(K)[1]) / 2

    def log_prior(ridge):
        excess = max(np.log(0.3 * columns.shape[1]) - np.log(ridge), 0)
        return -(excess**2) / 2

    own = X @ X.T / model.ridge
    network = X @ X.T / (2 * model.ridge) + RATIO * R @ R.T
    gain = log_evidence(network[:24, :24]) + log_prior(2 * model.ridge)
    gain -= log_evidence(own[:24, :24]) + log_prior(model.ridge)
    assert fit.log_evidence == pytest.approx(gain)
    for K, predicted in (
        (own, model.predict(rows.select_rows(test))),
        (network, model.predict(rows.select_rows(test), fit, [columns[test]])),
    ):
        inverse = np.linalg.inv(K[:24, :24] + np.diag(1 / weights))
        information = F[train].T @ inverse @ F[train]
        gamma = np.linalg.solve(information, F[train].T @ inverse @ t)
        expected = F[test] @ gamma + K[24:, :24] @ inverse @ (t - F[train] @ gamma)
        np.testing.assert_allclose(predicted[:, 0], expected)


def test_a_network_that_only_averages_the_brain_has_no_residual(rows_and_columns):
    rows, _ = rows_and_columns
    columns = 0.3 * rows.region_values + 2 * rows.feature_means
    fit = _OwnValueModel(rows).fit_network([columns] * 3)
    assert fit.log_evidence < 1e-3


def test_connectomes_are_diffused_relabelled_and_exchanged_between_people():
    rng = np.random.default_rng(0)
    W = draw_connectomes(6, 5, rng)
    W[2, 3], W[2, :, 3] = 0, 0  # a region without a link
    x = rng.normal(size=(6, 5))
    groups = np.array(["p", "p", "q", "r", "r", "r"])
    cohort = make_own_cohort(W, x, np.array([0, 0, 1, 0, 0, 0]), groups)
    measured_region_mask = np.array([True, True, True, True, False])
    diffused = {}
    for name, values in _iter_diffused_signals(
        cohort,
        x[:, :, None],
        measured_region_mask,
        Preparation(),
        1,
        np.random.default_rng(1),
    ):
        diffused[name] = values[..., 0]
    rng = np.random.default_rng(1)
    order = np.append(rng.permutation(4), 4)  # the last region is not measured
    pair_order = rng.permutation(10)
    donor = draw_donor_indices(groups, rng)
    mean = W.astype(float)
    mean = (mean[:2].mean(axis=0) + mean[2] + mean[3:].mean(axis=0)) / 3
    inverse = order.argsort()
    expected_connectomes = {
        "original": W,
        "relabelled": W[:, inverse][:, :, inverse],
        "rewired": rewire_connectomes(W, pair_order),
        "exchanged": W[donor],
        "group mean": np.broadcast_to(mean, W.shape),
    }
    assert list(diffused) == list(expected_connectomes)
    for name, connectomes in expected_connectomes.items():
        for i, scale in enumerate(connectome_worth._SCALES):
            slow = [
                heat(w.astype(float), scale) @ v
                for w, v in zip(connectomes, x, strict=True)
            ]
            np.testing.assert_allclose(diffused[name][i], slow, atol=2e-5)


def test_connectomes_are_exchanged_only_between_people():
    groups = np.array([*"aabcccdde"])
    for seed in range(20):
        donor = draw_donor_indices(groups, np.random.default_rng(seed))
        assert (groups[donor] != groups).all()
        pairs = set(zip(groups, groups[donor], strict=True))
        # Each person has the connectomes of one other, and gives to one other.
        assert len(pairs) == len({giver for _, giver in pairs}) == 5


@pytest.mark.parametrize("n_scans", [1, 2])
def test_nobody_gets_the_own_connectome_as_an_exchanged_one(n_scans):
    with pytest.raises(CohortError, match="1 participant would keep the own"):
        draw_donor_indices(np.array(["a"] * n_scans), np.random.default_rng(0))


def test_rewired_connectomes_keep_strengths_and_move_the_same_pairs():
    rng = np.random.default_rng(0)
    W = draw_connectomes(3, 12, rng)
    rewired = rewire_connectomes(W, rng.permutation(66))
    np.testing.assert_allclose(rewired.sum(axis=2), W.sum(axis=2), rtol=0.02)
    np.testing.assert_array_equal(rewired, rewired.swapaxes(1, 2))
    assert (np.diagonal(rewired, axis1=1, axis2=2) == 0).all()
    pairs = np.triu_indices(12, 1)
    assert abs(np.corrcoef(np.log(W[0][pairs]), np.log(rewired[0][pairs]))[0, 1]) < 0.6
    one = W[:1].copy()
    one[0, 0, :] = one[0, :, 0] = 0  # a region without links has none afterwards
    assert (rewire_connectomes(one, rng.permutation(66))[0, 0] == 0).all()


def draw_planted(n, seed, source):
    """Return a cohort whose label follows a diffused value, an own value or nothing.

    `source` says which connectomes the cohort gets: those that carry the effect, or
    others.
    """
    rng = np.random.default_rng(seed)
    W, x = draw_connectomes(n, 8, rng), rng.normal(size=(n, 8))
    diffused = np.stack(
        [heat(w.astype(float), 1.0) @ v for w, v in zip(W, x, strict=True)]
    )
    signal = {"network": diffused[:, 2] - x[:, 2] * 0.4, "own": x[:, 2]}[source]
    code = (signal > np.median(signal)).astype(int)
    return make_own_cohort(W, x, code)


def test_a_planted_network_is_found_and_is_each_persons_own():
    gain = connectome_gain(draw_planted(150, 0, "network"), n_draws=2)
    assert gain.network.answer == "yes"
    assert gain.own_connectome.answer == "yes"
    rows = gain.table.set_index("connectome")
    assert rows["evidence_gain"].idxmax() == rows["error_gain"].idxmax() == "original"
    assert rows.loc["original", "error_gain_low"] > 0


def test_no_network_gets_no_credit():
    cohort = draw_planted(150, 0, "own")
    gain = connectome_gain(cohort, n_draws=2)
    assert gain.network.answer == "no"
    assert gain.own_connectome.answer == "no"
    shared = replace(
        cohort, connectomes=np.broadcast_to(cohort.connectomes[0], (150, 8, 8))
    )
    gain = connectome_gain(shared, n_draws=2)
    assert gain.own_connectome is None
    assert list(gain.table["connectome"]) == ["original", "relabelled", "rewired"]


def test_the_same_seed_gives_the_same_gain():
    cohort = draw_planted(20, 1, "network")
    tables = [connectome_gain(cohort, n_draws=1).table for _ in range(2)]
    pd.testing.assert_frame_equal(*tables)


def test_repeated_scans_of_a_person_count_once():
    cohort = draw_planted(20, 1, "network")
    twice = np.repeat(np.arange(20), 2)
    repeated = make_own_cohort(
        cohort.connectomes[twice],
        cohort.features[twice, :, 0],
        (cohort.y == "AD").astype(int)[twice],
        groups=cohort.groups[twice],
    )
    first = connectome_gain(cohort, n_draws=1).table.iloc[0]
    second = connectome_gain(repeated, n_draws=1).table.iloc[0]
    numbers = ["evidence_gain", "error_gain", "evidence_gain_low"]
    np.testing.assert_allclose(
        second[numbers].astype(float), first[numbers].astype(float), rtol=1e-4
    )


@pytest.mark.parametrize(
    ("gain", "lead", "half_width", "answer"),
    [
        (8.0, 8.0, 4.0, "yes"),
        (8.0, 8.0, 9.0, "unclear"),
        (2.0, 4.0, 1.0, "unclear"),  # the null is worse than no connectome
        (8.0, 0.0, 2.0, "no"),
        (-1.0, 0.0, 2.0, "no"),
    ],
)
def test_verdicts_need_a_large_lead_over_every_null(gain, lead, half_width, answer):
    rows = [{"connectome": "original", "evidence_gain": gain}]
    for name, extra in (("relabelled", 0.0), ("rewired", 5.0)):
        rows.append(
            {
                "connectome": name,
                "evidence_gain": gain - lead - extra,
                "evidence_lead": lead + extra,
                "evidence_lead_low": lead + extra - half_width,
                "evidence_lead_high": lead + extra + half_width,
            }
        )
    verdict = ConnectomeGain(pd.DataFrame(rows)).network
    assert verdict.answer == answer
    assert (verdict.compared_with, verdict.lead) == ("relabelled", lead)
    assert np.exp(MIN_LOG_CREDIT) == pytest.approx(20)


def test_a_class_of_three_people_is_rejected():
    cohort = draw_planted(30, 0, "own")
    is_selected = (cohort.y == "CN") | (np.cumsum(cohort.y == "AD") <= 3)
    with pytest.raises(ParameterError, match="smallest class has 3"):
        connectome_gain(cohort.select(is_selected))
