"""Extreme inputs either give finite numbers, or are refused by the package's errors.

Every case goes through the public functions of the rooms. Warnings are errors here,
so that no overflow and no division by zero passes unseen.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone

from brainlsap.data import Atlas, Cohort, quality_table, region_quality_table
from brainlsap.evaluation import (
    CombatHarmonizer,
    ConfoundRegressor,
    CovariatesAsFeatures,
    PermutedLabels,
    ShuffledEdges,
    audit,
    class_table,
    cross_validate,
    fold_scores,
    make_splits,
    pooled_scores,
)
from brainlsap.evaluation.controls import TunedLinearClassifier
from brainlsap.exceptions import BrainlsapError
from brainlsap.graph import (
    KERNELS,
    LearnedPreparation,
    Preparation,
    SpectralEngine,
    SpectrumCache,
    connectome_summary,
    covariance_connectome,
    decompose,
    diffuse,
    error_bound,
    heat_kernel,
    mean_connectome,
    normalized_laplacian,
    prepare_connectomes,
)
from brainlsap.model import (
    DiffusedLogisticRegression,
    LSAPClassifier,
    NetworkClassifier,
)

N_SCANS, N_ROIS, N_FEATURES = 12, 6, 2


class Parts(dict):
    """Arrays of a case: W, X, y and people; `packed` is what scikit-learn sees."""

    @property
    def packed(self):
        joined = np.concatenate([self["W"], self["X"]], axis=2)
        return joined.astype(np.result_type(self["W"], self["X"]))


def draw(seed=0):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.gamma(1.0, 20.0, (N_SCANS, N_ROIS, N_ROIS)), 1)
    X = rng.normal(2.5, 0.3, (N_SCANS, N_ROIS, N_FEATURES))
    y = np.where(np.arange(N_SCANS) % 2, "AD", "CN")
    people = np.array([f"p{row}" for row in range(N_SCANS)])
    return Parts(W=W + W.swapaxes(1, 2), X=X, y=y, people=people)


def link(weight, *, alone=False):
    def change(W):
        W = np.zeros_like(W) if alone else W.copy()
        W[:, 0, 1] = W[:, 1, 0] = weight
        return W

    return change


def put(value, *where):
    def change(array):
        array = array.copy()
        array[where] = value
        return array

    return change


def isolate(W):
    W = W.copy()
    W[:, 2], W[:, :, 2] = 0.0, 0.0
    return W


def first_of_all(array):
    return np.broadcast_to(array[:1], array.shape).copy()


EVERY = slice(None)
HOLDS = {
    "plain": {},
    "constant features": {"X": put(2.5)},
    "zero features": {"X": put(0.0)},
    "a region zero everywhere": {"X": put(0.0, EVERY, 3)},
    "a region not measured": {"X": put(np.nan, EVERY, 1)},
    "a feature not measured": {"X": put(np.nan, EVERY, EVERY, 0)},
    "a scan not measured": {"X": put(np.nan, 4)},
    "features of 1e-30": {"X": lambda X: X * 1e-30},
    "features of 1e30": {"X": lambda X: X * 1e30},
    "features of 1e-200": {"X": lambda X: X * 1e-200},
    "one edge": {"W": link(3.0, alone=True)},
    "one tiny edge": {"W": link(1e-12, alone=True)},
    "a million streamlines": {"W": link(1e6)},
    "1e-12 streamlines": {"W": link(1e-12)},
    "empty graphs": {"W": put(0.0)},
    "an isolated region": {"W": isolate},
    "weights of 1e-30": {"W": lambda W: W * 1e-30},
    "weights of 1e30": {"W": lambda W: W * 1e30},
    "weights of 1e-310": {"W": lambda W: W * 1e-310},
    "duplicated scans": {"W": first_of_all, "X": first_of_all},
    "integers": {"W": lambda W: W.astype(int), "X": lambda X: X.astype(int)},
    "halves": {"W": np.float16, "X": np.float16},
    "floats": {"W": np.float32, "X": np.float32},
    "a class of one": {"y": put("LM", 5)},
    "two people": {"people": lambda people: people[np.arange(N_SCANS) % 2]},
}
REFUSED = {
    "weights of 1e200": {"W": lambda W: W * 1e200},
    "a weight that is not finite": {"W": put(np.inf, 3, 0, 1)},
    "a weight that is NaN": {"W": put(np.nan, 3, 0, 1)},
    "negative weights": {"W": np.negative},
    "features of 1e200": {"X": lambda X: X * 1e200},
    "a feature that is not finite": {"X": put(-np.inf, 1, 1, 1)},
}


def parts_of(changes):
    parts = draw()
    for name, change in changes.items():
        parts[name] = np.asarray(change(parts[name]))
    return parts


def numbers_in(value):
    """Yield every array of numbers in what a function returned."""
    if isinstance(value, torch.Tensor):
        yield value.detach().to_dense().numpy()
    elif isinstance(value, pd.DataFrame):
        yield value.select_dtypes("number").to_numpy(dtype=float)
    elif isinstance(value, dict):
        yield from numbers_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from numbers_in(one)
    elif isinstance(value, np.ndarray | float):
        yield np.asarray(value)


def assert_finite(value):
    for numbers in numbers_in(value):
        if numbers.dtype.kind == "f":
            assert np.isfinite(numbers).all()


SCALE = torch.linspace(0.0, 2.0, N_ROIS, dtype=torch.float64)
OPTIONS = (
    {"weights": "log"},
    {"weights": "binary", "threshold": 0.5, "threshold_unit": "density"},
    {"isolated": "strongest", "threshold": 0.2, "threshold_unit": "share"},
    {"symmetrize": "max", "volumes": [1e-30] * N_ROIS},
    {"symmetrize": "refuse"},
    {"consensus": 0.5},
    {"group_density": 0.3, "isolated": "mean"},
    {"connectome": "covariance"},
)


def prepared_by(options, parts):
    options = Preparation.of(**options)
    W, X, people = parts["W"], parts["X"], parts["people"]
    return LearnedPreparation.learn(W, X, people, options).apply(W)


def diffused(parts):
    L = normalized_laplacian(parts["W"])
    X = np.nan_to_num(np.asarray(parts["X"], dtype=np.float64), posinf=0, neginf=0)
    engine = SpectralEngine(decompose(L), kernel="exact", max_scale=3.0)
    small = torch.from_numpy(X / max(np.abs(X).max(), 1.0)).float()
    return (
        [heat_kernel(L, SCALE, kernel=kernel) for kernel in KERNELS],
        diffuse(L, X, SCALE, kernel="laguerre"),
        engine.diffuse(small, SCALE.float()),
    )


GRAPH = {
    "laplacian": lambda p: normalized_laplacian(p["W"]),
    "sparse laplacian": lambda p: normalized_laplacian(
        sparse.csr_array(p["W"][3].astype(np.float64))
    ),
    "spectra": lambda p: SpectrumCache().spectra(p["W"])[0].eigenvectors,
    "diffused": diffused,
    "prepared": lambda p: prepare_connectomes(p["W"]),
    "learned": lambda p: [prepared_by(one, p) for one in OPTIONS[:7]],
    "mean": lambda p: mean_connectome(p["W"], p["people"]),
    "summary": lambda p: connectome_summary(prepare_connectomes(p["W"])),
}


@pytest.mark.parametrize("case", HOLDS)
def test_graphs_hold(case):
    parts = parts_of(HOLDS[case])
    for function in GRAPH.values():
        assert_finite(function(parts))
    if case != "two people":
        assert_finite(covariance_connectome(parts["X"], parts["people"]))
        assert_finite(prepared_by(OPTIONS[7], parts))


@pytest.mark.parametrize("case", [one for one in REFUSED if "weight" in one])
@pytest.mark.parametrize("name", [one for one in GRAPH if "lapl" not in one])
def test_graphs_that_cannot_be_are_refused(name, case):
    # a Laplacian has no unit, and 1e200 is as good as 1
    if case == "weights of 1e200" and name in ("spectra", "diffused"):
        assert_finite(GRAPH[name](parts_of(REFUSED[case])))
        return
    with pytest.raises(BrainlsapError, match=r"finite|negative"):
        GRAPH[name](parts_of(REFUSED[case]))


def test_a_laplacian_has_no_unit():
    W = draw()["W"]
    expected = normalized_laplacian(W)
    for unit in (2.0**-900, 2.0**-300, 2.0**400, 2.0**1000):
        assert torch.equal(normalized_laplacian(W * unit), expected)
        single = sparse.csr_array(W[0] * unit)
        close = normalized_laplacian(single).to_dense()
        torch.testing.assert_close(close, expected[0], rtol=0, atol=1e-15)
    small = torch.from_numpy(W).float()
    for unit in (2.0**-80, 2.0**110):
        assert torch.equal(
            normalized_laplacian(small * unit), normalized_laplacian(small)
        )


def test_one_graph_of_another_unit_does_not_hide_that_another_is_not_symmetric():
    W = draw()["W"]
    W[0] *= 1e12
    W[3, 0, 1] += 1.0
    with pytest.raises(BrainlsapError, match="W must be symmetric"):
        normalized_laplacian(W)


@pytest.mark.parametrize("kernel", KERNELS)
def test_float32_agrees_with_float64_within_the_stated_error(kernel):
    for case in ("plain", "one edge", "an isolated region", "1e-12 streamlines"):
        W = np.asarray(parts_of(HOLDS[case])["W"], dtype=np.float64)
        exact = heat_kernel(normalized_laplacian(W), SCALE, kernel="exact")
        half = normalized_laplacian(W.astype(np.float32))
        found = heat_kernel(half, SCALE.float(), kernel=kernel, tolerance=1e-5)
        assert (found - exact).abs().max() <= 5e-6 + 1e-5


def test_the_bound_is_a_number_at_the_ends():
    for scale in (0.0, 1e-300, 1.0):
        for kernel in KERNELS:
            if kernel != "exact":
                assert np.isfinite(error_bound(kernel, scale, 20))


MODELS = {
    "LSAP": LSAPClassifier(n_epochs=3, n_starts=1),
    "paper": LSAPClassifier("exact", preset="paper", n_epochs=2),
    "ordinal": LSAPClassifier(
        "laguerre",
        head="ordinal",
        weights="log",
        options={"normalization": "random_walk"},
        calibration="temperature",
        n_epochs=2,
        n_starts=1,
        initial_scale=1.0,
    ),
    "diffused": DiffusedLogisticRegression(scales=(0.5, 2.0)),
    "graphheat": NetworkClassifier("graphheat", n_epochs=2, n_starts=1),
    "mlp": NetworkClassifier("mlp", n_epochs=2, n_starts=1),
    "logistic": TunedLinearClassifier("logistic", n_inner_folds=2),
    "edges": TunedLinearClassifier("svm", n_inner_folds=2, reads="edges"),
    "permuted": PermutedLabels(TunedLinearClassifier("svm", n_inner_folds=2)),
}


def ask(model, X):
    probability = model.predict_proba(X)
    assert np.isfinite(probability).all()
    np.testing.assert_allclose(probability.sum(1), 1.0, atol=1e-6)
    assert set(model.predict(X)) <= set(model.classes_)


@pytest.fixture(scope="module")
def fitted():
    parts = draw()
    groups = {"groups": parts["people"]}
    return {
        n: clone(m).fit(parts.packed, parts["y"], **groups) for n, m in MODELS.items()
    }


@pytest.mark.parametrize("case", HOLDS)
def test_models_learn_and_answer(case, fitted):
    parts = parts_of(HOLDS[case])
    known = sorted(set(parts["y"]))
    for name, model in MODELS.items():
        with warnings.catch_warnings():
            # "scales not learned" and its like: said to the user, and no matter here
            warnings.simplefilter("ignore", UserWarning)
            told = clone(model)
            if name == "ordinal":
                told.set_params(classes=known)
            told.fit(parts.packed, parts["y"], groups=parts["people"])
            ask(told, parts.packed)
            assert_finite([v for k, v in vars(told).items() if k.startswith("scales")])
            # learned from ordinary scans, and asked about these
            ask(fitted[name], parts.packed)


@pytest.mark.parametrize("case", REFUSED)
def test_models_refuse(case, fitted):
    parts = parts_of(REFUSED[case])
    kind = "connectomes" if "weight" in case else "features"
    reads = {"edges"} if kind == "connectomes" else {"logistic", "permuted"}
    reads |= set(MODELS) - {"edges", "logistic", "permuted"}
    for name in reads:
        with pytest.raises(BrainlsapError, match=f"{kind} must be finite"):
            clone(MODELS[name]).fit(parts.packed, parts["y"], groups=parts["people"])
        with pytest.raises(BrainlsapError, match=f"{kind} must be finite"):
            fitted[name].predict_proba(parts.packed)


TABLE = pd.DataFrame(
    {
        "site": ["a", "b"] * 6,
        "age": np.linspace(60.0, 80.0, N_SCANS),
        "same": np.ones(N_SCANS),
    }
)
STEPS = {
    "combat": CombatHarmonizer(),
    "regressor": ConfoundRegressor(("age", "same")),
    "covariates": CovariatesAsFeatures(),
    "shuffled": ShuffledEdges(),
}


@pytest.mark.parametrize("case", HOLDS)
def test_steps_hold(case):
    parts = parts_of(HOLDS[case])
    X = parts.packed.astype(np.float64)
    for name, step in STEPS.items():
        given = {} if name == "shuffled" else {"covariates": TABLE}
        out = clone(step).fit(X, parts["y"], **given).transform(X, **given)
        if name == "covariates":
            assert np.isfinite(out[:, 0]).all()
        else:
            np.testing.assert_array_equal(np.isnan(out), np.isnan(X))


def cohort_of(parts):
    names = [f"{side}_r{number}" for side in "LR" for number in range(3)]
    regions = pd.DataFrame(
        {"name": names, "hemisphere": list("LLLRRR"), "x": np.arange(6.0) - 2.5}
    )
    table = pd.DataFrame(
        {
            "scan": [f"s{row}" for row in range(N_SCANS)],
            "participant": parts["people"],
            "session": "1",
            "label": parts["y"],
            "age": TABLE["age"],
            "site": TABLE["site"],
        }
    )
    return Cohort(
        connectomes=parts["W"],
        features=parts["X"],
        table=table,
        atlas=Atlas(name="tiny", regions=regions, folder=None),
        feature_names=("thickness", "fdg"),
        classes=tuple(sorted(set(parts["y"]))),
    )


@pytest.mark.parametrize("case", HOLDS)
def test_cohorts_are_evaluated(case):
    parts = parts_of(HOLDS[case])
    cohort = cohort_of(parts)
    quality_table(cohort), region_quality_table(cohort)
    if case in ("a class of one", "two people"):
        with pytest.raises(BrainlsapError, match="people"):
            cross_validate(MODELS["LSAP"], cohort, 2)
        return
    splits = make_splits(cohort.y, cohort.groups, 2)
    assert audit(cohort, splits).sentence().startswith("The leakage audit found")
    evaluation = cross_validate(
        {"LSAP": LSAPClassifier(n_epochs=2, n_starts=1)},
        cohort,
        splits=splits,
        baselines={"linear": TunedLinearClassifier("logistic", n_inner_folds=2)},
    )
    for result in evaluation.results.values():
        assert_finite(pooled_scores(result, 10))
        assert len(class_table(result, 10)) == 2
        for fold in result.folds:
            assert_finite(fold.probability)
            assert_finite(fold_scores(fold.truth, fold.probability, fold.classes))


@pytest.mark.parametrize("case", REFUSED)
def test_cohorts_are_refused_with_the_place(case):
    with pytest.raises(BrainlsapError, match=r"finite.*(L_r0|r1 in scan|'s3')"):
        cohort_of(parts_of(REFUSED[case]))
