import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from brainlsap.data import make_cohort
from brainlsap.evaluation import (
    RankingEvidence,
    cross_validate,
    make_splits,
    rank_one_share,
)
from brainlsap.exceptions import ParameterError
from brainlsap.graph import decompose, normalized_laplacian, prepare_connectomes
from brainlsap.model import LSAPClassifier
from brainlsap.study.attributions import permutation_importance
from brainlsap.study.evidence import gather_evidence
from brainlsap.study.kernel_shape import mean_kernel


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(24, atlas="desikan82", random_state=2)


def own_features(X):
    return X[:, :, X.shape[1]]


def test_importance_is_that_of_what_a_linear_model_reads(cohort):
    splits = make_splits(cohort.y == "CN", cohort.groups, 2)
    model = make_pipeline(FunctionTransformer(own_features), LogisticRegression(C=50))
    model[-1].set_params(max_iter=2000)
    found = permutation_importance(model, cohort, splits, 2)
    again = permutation_importance(model, cohort, splits, 2)
    np.testing.assert_array_equal(found, again)
    weight = []
    for train, _ in splits:
        fitted = model.fit(cohort.to_array()[train], cohort.y[train])
        weight.append(
            np.abs(fitted[-1].coef_).max(0) * own_features(cohort.to_array()).std(0)
        )
    used = np.mean(weight, 0)
    # what the model hardly reads cannot matter
    least = np.argsort(used)[:20]
    assert np.abs(found.mean(0)[least]).mean() < np.abs(found.mean(0)).mean()


def test_mean_kernel_is_the_mean_of_the_slow_ones(cohort):
    scale = np.linspace(0.1, 3, 82)
    model = LSAPClassifier(threshold=10.0, weights="log")
    prepared = prepare_connectomes(cohort.connectomes, threshold=10.0, weights="log")
    spectrum = decompose(normalized_laplacian(prepared))
    U, lam = spectrum.eigenvectors, spectrum.eigenvalues
    E = torch.exp(-torch.from_numpy(scale)[None, :, None] * lam[:, None])
    slow = ((U * E) @ U.mT).mean(0).numpy()
    np.testing.assert_allclose(mean_kernel(model, cohort, scale), slow, atol=1e-10)


def test_evidence_holds_every_part(cohort):
    models = {
        "LSAP-C": LSAPClassifier("chebyshev", n_epochs=4, n_starts=1, random_state=0),
        "Exact": LSAPClassifier("exact", n_epochs=4, n_starts=1, random_state=0),
    }
    evaluation = cross_validate(models, cohort, 2, baselines=False)
    found = gather_evidence(models, cohort, evaluation, n_permutations=2)
    assert found.model == "LSAP-C"
    assert found.permuted.shape == (3, 82)
    assert found.untrained.shape == (20, 82)
    assert list(found.starts) == [0.3, 1.0, 2.0]
    assert found.importance.shape == (82,)
    scales = evaluation.main.scales().mean(0)
    share = rank_one_share(mean_kernel(models["LSAP-C"], cohort, scales))
    assert found.rank_one["LSAP-C"] == pytest.approx(share)
    short = gather_evidence(models, cohort, evaluation, n_permutations=1, refits=False)
    assert short.importance is None
    assert short.permuted.shape == (2, 82)


def test_what_gives_no_evidence(cohort):
    with pytest.raises(ParameterError, match="models must name at least one"):
        gather_evidence({}, cohort, None)
    with pytest.raises(ParameterError, match="n_repeats must be at least 1"):
        permutation_importance(LogisticRegression(), cohort, [], 0)


def test_network_and_reach_are_kept_by_name():
    cohort = make_cohort(24, atlas="desikan82")
    models = {"x": LSAPClassifier("exact", n_epochs=6, n_starts=1)}
    evaluation = cross_validate(models, cohort, 2, baselines=False)
    evidence = gather_evidence(models, cohort, evaluation)
    mean = cohort.connectomes.mean(axis=0)
    np.testing.assert_allclose(evidence.connectome, mean, rtol=1e-5)
    scales = evaluation.main.scales().mean(axis=0)
    order = [cohort.region_names[place] for place in np.argsort(scales, kind="stable")]
    assert list(evidence.reach) == [*order[:3], order[-1]]
    kernel = mean_kernel(models["x"], cohort, scales)
    for name, row in evidence.reach.items():
        place = cohort.region_names.index(name)
        np.testing.assert_allclose(row, kernel[place], rtol=1e-5, atol=1e-12)
    again = RankingEvidence.from_record(json.loads(json.dumps(evidence.to_record())))
    np.testing.assert_array_equal(again.connectome, evidence.connectome)
    for name, row in evidence.reach.items():
        np.testing.assert_array_equal(again.reach[name], row)
    shared = np.broadcast_to(cohort.connectomes[0], cohort.connectomes.shape)
    one = replace(cohort, connectomes=shared)
    of_one = gather_evidence(models, one, evaluation)
    np.testing.assert_array_equal(of_one.connectome, cohort.connectomes[0])
