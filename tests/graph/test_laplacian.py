"""Laplacians, spectra, preparation, the cache of spectra."""

import numpy as np
import pytest
import torch
from scipy import sparse

from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    SpectrumCache,
    decompose,
    exact_heat_kernel,
    normalized_laplacian,
)

KINDS = ["weighted", "binary", "disconnected", "ring"]


@pytest.mark.parametrize("kind", KINDS)
def test_laplacian_is_the_definition(draw_graph, kind):
    W = draw_graph(kind, 9)
    expected = np.zeros_like(W)
    degree = W.sum(1)
    for i in range(9):
        for j in range(9):
            if degree[i] and degree[j]:
                expected[i, j] = (i == j) - W[i, j] / np.sqrt(degree[i] * degree[j])
    np.testing.assert_allclose(normalized_laplacian(W), expected, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
def test_spectrum_lies_between_zero_and_two(draw_graph, kind):
    L = normalized_laplacian(draw_graph(kind, 23))
    spectrum = decompose(L[None])
    assert spectrum.eigenvalues.min() >= 0
    assert spectrum.eigenvalues.max() <= 2
    U = spectrum.eigenvectors
    rebuilt = (U * spectrum.eigenvalues[:, None]) @ U.mT
    np.testing.assert_allclose(rebuilt[0], L, atol=1e-13)


def test_isolated_region_keeps_its_own_value(draw_graph):
    W = draw_graph("disconnected", 8)
    L = normalized_laplacian(W)
    assert not L[0].any()
    np.testing.assert_allclose(exact_heat_kernel(L, 3.0)[0], np.eye(8)[0], atol=1e-14)


def test_many_graphs_are_the_same_as_one_by_one(draw_graph):
    W = np.stack([draw_graph(kind, 6) for kind in KINDS])
    together = normalized_laplacian(W)
    for one, L in zip(W, together, strict=True):
        np.testing.assert_array_equal(normalized_laplacian(one), L)


def test_sparse_and_dense_laplacians_agree(draw_graph):
    for kind in KINDS:
        W = draw_graph(kind, 11)
        L = normalized_laplacian(sparse.csr_array(W))
        assert L.layout == torch.sparse_csr
        np.testing.assert_allclose(L.to_dense(), normalized_laplacian(W), atol=1e-15)


def test_precision_follows_the_input(draw_graph):
    W = draw_graph("weighted", 4)
    assert normalized_laplacian(W.astype(np.float32)).dtype == torch.float32
    assert normalized_laplacian(W.astype(int)).dtype == torch.float64
    assert normalized_laplacian(sparse.csr_array(W.astype(int))).dtype == torch.float64


BAD = {
    "not square": (np.ones((2, 3)), r"shape .*, got \(2, 3\)"),
    "asymmetric": (np.triu(np.ones((3, 3))), r"symmetric; symmetrise it as"),
    "nan": (np.full((3, 3), np.nan), r"finite; it holds NaN"),
    "negative": (-np.ones((3, 3)), r"not be negative, its smallest weight is -1"),
}


@pytest.mark.parametrize("case", sorted(BAD))
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_bad_weights_are_refused(case, form):
    W, message = BAD[case]
    with pytest.raises(ParameterError, match=message):
        normalized_laplacian(form(W))


def test_eigenvectors_may_take_the_place_of_the_laplacians(draw_graph):
    W = np.stack([draw_graph("weighted", 9, seed) for seed in range(19)])
    L = normalized_laplacian(W).float()
    wanted = decompose(L, torch.float32)
    found = decompose(L, torch.float32, overwrite=True)
    assert found.eigenvectors.data_ptr() == L.data_ptr()
    assert torch.equal(found.eigenvectors, wanted.eigenvectors)
    assert torch.equal(found.eigenvalues, wanted.eigenvalues)
    with pytest.raises(ParameterError, match=r"of torch\.float64 into L, which is"):
        decompose(L, overwrite=True)


def test_cache_decomposes_each_graph_once(draw_graph, monkeypatch):
    import brainlsap.graph.spectrum_cache as module

    decomposed = []

    def counting(L):
        decomposed.append(len(L))
        return decompose(L)

    monkeypatch.setattr(module, "decompose", counting)
    cache = SpectrumCache()
    W = np.stack([draw_graph("weighted", 5, seed) for seed in (0, 1, 0, 2)])
    spectrum, graph_of = cache.spectra(W)
    assert graph_of.tolist() == [0, 1, 0, 2]
    assert len(spectrum.eigenvalues) == 3
    again, graph_of = cache.spectra(W[[3, 1]])
    assert decomposed == [3]
    torch.testing.assert_close(again.eigenvalues, spectrum.eigenvalues[[2, 1]])
    shared, graph_of = cache.spectra(np.broadcast_to(W[0], (6, 5, 5)))
    assert len(shared.eigenvalues) == 1
    assert graph_of.tolist() == [0] * 6


def test_cache_forgets_the_oldest_when_full(draw_graph):
    one_graph = 8 * 5 * 5
    cache = SpectrumCache(max_bytes=2 * one_graph)
    for seed in range(4):
        cache.spectra(draw_graph("weighted", 5, seed)[None])
    assert len(cache._shelves) == 2
