"""Laplacians and operators from outside, spectra and their cache."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import sparse

import brainlsap.graph.laplacian as module
from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    LearnedPreparation,
    Preparation,
    SpectrumCache,
    decompose,
    diffuse,
    exact_heat_kernel,
    normalized_laplacian,
)

KINDS = ["weighted", "binary", "disconnected", "ring"]
DENSE_AND_SPARSE = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])


@pytest.mark.parametrize("kind", KINDS)
def test_laplacian_is_the_definition_dense_or_sparse_in_any_unit(draw_graph, kind):
    W = draw_graph(kind, 9)
    expected = np.zeros_like(W)
    degree = W.sum(1)
    for i in range(9):
        for j in range(9):
            if degree[i] and degree[j]:
                expected[i, j] = (i == j) - W[i, j] / np.sqrt(degree[i] * degree[j])
    assert_allclose(normalized_laplacian(W), expected, atol=1e-15)
    L = normalized_laplacian(sparse.csr_array(W))
    assert L.layout == torch.sparse_csr
    assert_allclose(L.to_dense(), expected, atol=1e-15)
    for unit in (1e-15, 1e15):
        scaled = (W * unit).astype(np.float32)
        assert_allclose(normalized_laplacian(scaled), expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_spectrum_lies_between_zero_and_two_and_rebuilds(draw_graph, kind):
    L = normalized_laplacian(draw_graph(kind, 23))
    spectrum = decompose(L[None])
    assert spectrum.eigenvalues.min() >= 0
    assert spectrum.eigenvalues.max() <= 2
    if kind == "disconnected":  # whose first region has no link
        assert_allclose(exact_heat_kernel(L, 3.0)[0], np.eye(23)[0], atol=1e-14)
    U = spectrum.eigenvectors
    rebuilt = (U * spectrum.eigenvalues[:, None]) @ U.mT
    assert_allclose(rebuilt[0], L, atol=1e-13)


def test_read_only_connectomes_give_no_warning(draw_graph):
    W = draw_graph("weighted", 4)
    shared = np.broadcast_to(W, (3, 4, 4))
    W.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # PyTorch warns once a process unless told otherwise
        torch.set_warn_always(True)
        try:
            for one in (W, shared):
                L = normalized_laplacian(one)
            diffuse(L, np.broadcast_to(1.0, (3, 4, 2)), np.broadcast_to(0.5, 4))
        finally:
            torch.set_warn_always(False)
    assert L.shape == (3, 4, 4)


BAD = {
    "not square": (np.ones((2, 3)), r"shape .*, got \(2, 3\)"),
    "asymmetric": (np.triu(np.ones((3, 3))), r"symmetric; symmetrise it as"),
    "nan": (np.full((3, 3), np.nan), r"finite; it holds NaN"),
    "negative": (-np.ones((3, 3)), r"not be negative, its smallest weight is -1"),
}


@pytest.mark.parametrize("case", sorted(BAD))
@DENSE_AND_SPARSE
def test_bad_weights_are_refused(case, form):
    W, message = BAD[case]
    with pytest.raises(ParameterError, match=message):
        normalized_laplacian(form(W))


def combinatorial(W):
    return np.diag(W.sum(1)) - W


@pytest.mark.parametrize("kernel", ["exact", "chebyshev", "hermite", "laguerre"])
@DENSE_AND_SPARSE
def test_operators_with_eigenvalues_outside_are_refused(draw_graph, form, kernel):
    W = draw_graph("weighted", 8)
    for wrong in (combinatorial(W), W / W.max(), 3 * np.eye(8)):
        with pytest.raises(ParameterError, match=r"L has an eigenvalue of about .*W\."):
            diffuse(form(wrong), np.ones((8, 1)), 0.5, kernel=kernel)


@DENSE_AND_SPARSE
def test_operators_that_are_not_symmetric_are_refused(draw_graph, form):
    W = draw_graph("weighted", 8)
    walk = np.eye(8) - W / W.sum(1, keepdims=True)
    for wrong in (walk, np.full((8, 8), np.nan)):
        for call in (diffuse, lambda L, _, scale: exact_heat_kernel(L, scale)):
            with pytest.raises(ParameterError, match="L must be symmetric and finite"):
                call(form(wrong), np.ones((8, 1)), 0.5)


def test_one_wrong_graph_among_many_is_noticed(draw_graph):
    W = [draw_graph("weighted", 5, seed) for seed in range(6)]
    stack = normalized_laplacian(np.stack(W)).numpy()
    assert diffuse(stack, np.ones((6, 5, 1)), 0.5).shape == (6, 5, 1)
    stack[4] = combinatorial(W[4])
    with pytest.raises(ParameterError, match="L has an eigenvalue of about"):
        diffuse(stack, np.ones((6, 5, 1)), 0.5)


def test_eigenvectors_may_take_the_place_of_the_laplacians(draw_graph):
    W = np.stack([draw_graph("weighted", 9, seed) for seed in range(19)])
    L = normalized_laplacian(W).float()
    wanted = decompose(L, torch.float32)
    found = decompose(L, torch.float32, overwrite=True)
    assert found.eigenvectors.data_ptr() == L.data_ptr()
    assert torch.equal(found.eigenvectors, wanted.eigenvectors)
    assert torch.equal(found.eigenvalues, wanted.eigenvalues)


@pytest.fixture
def counted(monkeypatch):
    """How many graphs each call decomposed."""
    found = []

    def counting(L, *given):
        found.append(len(L))
        return decompose(L, *given)

    monkeypatch.setattr(module, "decompose", counting)
    return found


def test_cache_decomposes_each_graph_once(draw_graph, counted):
    cache = SpectrumCache()
    W = np.stack([draw_graph("weighted", 5, seed) for seed in (0, 1, 0, 2)])
    spectrum, graph_of = cache.spectra(W)
    assert graph_of.tolist() == [0, 1, 0, 2]
    assert spectrum.eigenvectors.dtype == torch.float32
    assert spectrum.eigenvalues.dtype == torch.float64
    again, _ = cache.spectra(W[[3, 1]])
    assert sum(counted) == 3
    assert torch.equal(again.eigenvectors, spectrum.eigenvectors[[2, 1]])
    shared, graph_of = cache.spectra(np.broadcast_to(W[0], (6, 5, 5)))
    assert len(shared.eigenvalues) == 1
    assert graph_of.tolist() == [0] * 6
    # in another precision nothing is rounded twice
    double, _ = cache.spectra(W, dtype=torch.float64)
    truth = decompose(normalized_laplacian(W[[0, 1, 3]]))
    assert_allclose(double.eigenvectors, truth.eigenvectors, atol=1e-12)


def test_cache_forgets_the_oldest_when_full(draw_graph, counted):
    graphs = np.stack([draw_graph("weighted", 5, seed) for seed in range(3)])
    cache = SpectrumCache(max_bytes=2 * 4 * 5 * 5)
    for row in (0, 1, 0, 2, 0, 2):
        cache.spectra(graphs[[row]])
    assert sum(counted) == 3
    spectrum, _ = cache.spectra(graphs[[0, 1]])  # the oldest was 1
    assert sum(counted) == 4
    for _ in range(2):  # more than fits is returned all the same, and two are kept
        counted.clear()
        whole, _ = cache.spectra(graphs)
        assert torch.equal(whole.eigenvectors[:2], spectrum.eigenvectors)
        assert sum(counted) == 1


def test_connectomes_are_prepared_on_the_way_and_named_by_their_row(draw_graph):
    graphs = np.stack([draw_graph("weighted", 7, seed) for seed in range(19)])
    learned = LearnedPreparation(Preparation.of(weights="log", threshold=0.2))
    expected, _ = SpectrumCache().spectra(learned.apply(graphs))
    found, _ = SpectrumCache().spectra(graphs, learned.apply)
    assert torch.equal(found.eigenvectors, expected.eigenvectors)
    graphs[17, 0, 1] += 1.0
    refusing = LearnedPreparation(Preparation.of(symmetrize="refuse"))
    with pytest.raises(ParameterError, match="connectome of row 17 is not symmetric"):
        SpectrumCache().spectra(graphs, refusing.apply)
