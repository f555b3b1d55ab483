import numpy as np
import pytest
import torch
from scipy import sparse

from brainlsap.exceptions import ParameterError
from brainlsap.graph import diffuse, exact_heat_kernel, normalized_laplacian

EXPANSIONS = ("chebyshev", "hermite", "laguerre")


def draw(n_rois, seed=0):
    rng = np.random.default_rng(seed)
    W = np.triu(rng.gamma(1.0, 20.0, (n_rois, n_rois)), 1)
    W *= rng.random((n_rois, n_rois)) < 0.4
    return W + W.T


def combinatorial(W):
    return np.diag(W.sum(1)) - W


@pytest.mark.parametrize("engine", ["spectral", "recurrence"])
@pytest.mark.parametrize("kernel", EXPANSIONS)
def test_engines_take_any_two_precisions(kernel, engine):
    L = normalized_laplacian(draw(7))
    X = np.random.default_rng(1).normal(size=(7, 2))
    truth = exact_heat_kernel(L, 0.8) @ torch.from_numpy(X)
    given = {"kernel": kernel, "engine": engine, "tolerance": 1e-9}
    for one, other, found in [
        (L, X.astype(np.float32), torch.float64),
        (L.float(), X, torch.float64),
        (L.float(), X.astype(np.float32), torch.float32),
        (L.float(), X.astype(np.float16), torch.float32),
    ]:
        out = diffuse(one, other, 0.8, **given)
        assert out.dtype == found
        torch.testing.assert_close(out.double(), truth, atol=2e-3, rtol=0)


def test_whole_numbers_are_signals_too():
    L = normalized_laplacian(draw(6))
    whole = np.arange(12).reshape(6, 2)
    out = diffuse(L, whole, 1.1, tolerance=1e-9)
    torch.testing.assert_close(
        out, diffuse(L, whole.astype(float), 1.1, tolerance=1e-9)
    )


def test_scipy_and_torch_sparse_operators_agree_with_dense():
    L = normalized_laplacian(draw(9))
    X = torch.randn(9, 3, dtype=torch.float64, generator=torch.manual_seed(0))
    truth = diffuse(L, X, 1.3)
    for one in (sparse.csr_matrix(L.numpy()), sparse.coo_array(L.numpy())):
        torch.testing.assert_close(diffuse(one, X, 1.3), truth)
    torch.testing.assert_close(diffuse(L.to_sparse_coo(), X, 1.3), truth)


def test_entries_of_sparse_operators_come_in_any_order_and_in_parts():
    L = normalized_laplacian(draw(5)).numpy()
    rows, columns = (ends.ravel()[::-1] for ends in np.indices(L.shape))
    halves = np.concatenate([0.25 * L[rows, columns], 0.75 * L[rows, columns]])
    indptr = np.arange(0, 51, 10)
    order = np.argsort(np.tile(rows, 2), kind="stable")
    columns = np.tile(columns, 2)[order]
    mixed = sparse.csr_array((halves[order], columns, indptr))
    X = np.arange(10.0).reshape(5, 2)
    torch.testing.assert_close(diffuse(mixed, X, 1.3), diffuse(L, X, 1.3))
    assert mixed.nnz == 50  # what was given is left as it came


@pytest.mark.parametrize("kernel", ["exact", *EXPANSIONS])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_operators_with_eigenvalues_outside_are_refused(stored, kernel):
    W = draw(8)
    X = np.ones((8, 1))
    for wrong in (combinatorial(W), W / W.max(), 3 * np.eye(8)):
        with pytest.raises(ParameterError, match=r"L has an eigenvalue of about .*W\."):
            diffuse(stored(wrong), X, 0.5, kernel=kernel)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_operators_that_are_not_symmetric_are_refused(stored):
    W = draw(8) + 1 - np.eye(8)
    walk = np.eye(8) - W / W.sum(1, keepdims=True)
    with pytest.raises(ParameterError, match="L must be symmetric, entries differ"):
        diffuse(stored(walk), np.ones((8, 1)), 0.5)


def test_the_truth_refuses_them_as_well():
    with pytest.raises(ParameterError, match="L must be symmetric"):
        exact_heat_kernel(np.triu(np.ones((4, 4))), 1.0)
    with pytest.raises(ParameterError, match="L holds NaN or infinite values"):
        exact_heat_kernel(np.full((3, 3), np.nan), 1.0)


def test_one_wrong_graph_among_many_is_noticed():
    stack = np.stack([normalized_laplacian(draw(5, seed)).numpy() for seed in range(6)])
    assert diffuse(stack, np.ones((6, 5, 1)), 0.5).shape == (6, 5, 1)
    stack[4] = combinatorial(draw(5, 4))
    with pytest.raises(ParameterError, match="L has an eigenvalue of about"):
        diffuse(stack, np.ones((6, 5, 1)), 0.5)


def test_graphs_without_edges_and_rings_pass():
    ring = np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0)
    for W in (np.zeros((6, 6)), ring):
        out = diffuse(normalized_laplacian(W), np.eye(6), 0.7)
        assert torch.isfinite(out).all()
