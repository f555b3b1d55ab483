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
    Preparation,
    decompose,
    diffuse,
    exact_heat_kernel,
    normalized_laplacian,
)
from brainlsap.graph.laplacian import Spectrum, SpectrumCache
from tests.graph.conftest import KINDS, dense_to_csr, draw_graph


@pytest.mark.parametrize("kind", KINDS)
def test_laplacian_is_the_definition_dense_or_sparse_in_any_unit(kind):
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
def test_spectrum_lies_between_zero_and_two_and_rebuilds(kind):
    L = normalized_laplacian(draw_graph(kind, 23))
    spectrum = decompose(L[None])
    assert spectrum.eigenvalues.min() >= 0
    assert spectrum.eigenvalues.max() <= 2
    if kind == "disconnected":  # whose first region has no link
        assert_allclose(exact_heat_kernel(L, 3.0)[0], np.eye(23)[0], atol=1e-14)
    U = spectrum.eigenvectors
    rebuilt = (U * spectrum.eigenvalues[:, None]) @ U.mT
    assert_allclose(rebuilt[0], L, atol=1e-13)


def test_read_only_connectomes_give_no_warning():
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
    "not square": (np.ones((2, 3)), r"shape .* got shape \(2, 3\)"),
    "asymmetric": (np.triu(np.ones((3, 3))), r"symmetric\. Symmetrise it"),
    "nan": (np.full((3, 3), np.nan), r"finite, but it contains NaN"),
    "negative": (-np.ones((3, 3)), r"not be negative; its smallest weight is -1"),
}


@pytest.mark.parametrize("case", sorted(BAD))
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_bad_weights_are_refused(case, form):
    W, message = BAD[case]
    with pytest.raises(ParameterError, match=message):
        normalized_laplacian(form(W))


def combinatorial(W):
    return np.diag(W.sum(1)) - W


@pytest.mark.parametrize("kernel", ["exact", "chebyshev", "hermite", "laguerre"])
@pytest.mark.parametrize("form", [np.asarray, dense_to_csr])
def test_operators_with_eigenvalues_outside_are_refused(form, kernel):
    W = draw_graph("weighted", 8)
    for wrong in (combinatorial(W), W / W.max(), 3 * np.eye(8)):
        with pytest.raises(ParameterError, match=r"L has an eigenvalue of about .*W\."):
            diffuse(form(wrong), np.ones((8, 1)), 0.5, kernel=kernel)


@pytest.mark.parametrize("form", [np.asarray, dense_to_csr])
def test_operators_that_are_not_symmetric_are_refused(form):
    W = draw_graph("weighted", 8)
    walk = np.eye(8) - W / W.sum(1, keepdims=True)
    for wrong in (walk, np.full((8, 8), np.nan)):
        for call in (diffuse, lambda L, _, scale: exact_heat_kernel(L, scale)):
            with pytest.raises(ParameterError, match="L must be symmetric and finite"):
                call(form(wrong), np.ones((8, 1)), 0.5)


def test_one_wrong_graph_among_many_is_noticed():
    W = [draw_graph("weighted", 5, seed) for seed in range(6)]
    stack = normalized_laplacian(np.stack(W)).numpy()
    assert diffuse(stack, np.ones((6, 5, 1)), 0.5).shape == (6, 5, 1)
    stack[4] = combinatorial(W[4])
    with pytest.raises(ParameterError, match="L has an eigenvalue of about"):
        diffuse(stack, np.ones((6, 5, 1)), 0.5)


@pytest.fixture
def counted(monkeypatch):
    """How many graphs each call decomposed."""
    found = []

    def counting(L, *given):
        found.append(len(L))
        return decompose(L, *given)

    monkeypatch.setattr(module, "decompose", counting)
    return found


def whole(cache, W, *given):
    """Return the spectra of all blocks in one."""
    blocks = list(cache.iter_spectra(W, *given))
    assert all(len(one.eigenvalues) <= 16 for one in blocks)
    return Spectrum(*(torch.cat(parts) for parts in zip(*blocks, strict=True)))


def test_cache_decomposes_each_graph_once(counted):
    cache, plain = SpectrumCache(), Preparation()
    W = np.stack([draw_graph("weighted", 5, seed) for seed in (0, 1, 0, *range(2, 20))])
    spectrum = whole(cache, W, plain)
    assert spectrum.eigenvectors.dtype == torch.float32
    assert spectrum.eigenvalues.dtype == torch.float64
    assert torch.equal(spectrum.eigenvectors[0], spectrum.eigenvectors[2])
    again = whole(cache, W[[3, 1]], plain)
    assert sum(counted) == 20
    assert torch.equal(again.eigenvectors, spectrum.eigenvectors[[3, 1]])
    # in another precision nothing is rounded twice
    double = whole(cache, W, plain, torch.float64)
    truth = decompose(normalized_laplacian(W))
    assert_allclose(double.eigenvectors, truth.eigenvectors, atol=1e-12)


def test_what_is_prepared_otherwise_is_another_graph(counted):
    W = np.stack([draw_graph("weighted", 7, seed) for seed in range(19)])
    W[:5, 0, 1] = W[:5, 1, 0] = 0.0
    cache = SpectrumCache()
    for options in ({"weights": "log"}, {"threshold": 0.2}):
        prepared = Preparation(**options)
        expected = decompose(normalized_laplacian(prepared.apply(W)), torch.float32)
        found = whole(cache, W, prepared)
        assert torch.equal(found.eigenvectors, expected.eigenvectors)
    counted.clear()
    features = np.random.default_rng(0).normal(size=(9, 7, 1))
    given = Preparation(connectome="covariance")
    for n_people in (9, 8, 9):  # another network each
        whole(cache, W[:1], given.learn(features[:n_people], np.arange(n_people)))
    assert sum(counted) == 2


def test_a_full_cache_is_emptied_for_another_cohort(counted):
    first, second = (
        np.stack([draw_graph("weighted", 5, seed) for seed in seeds])
        for seeds in (range(20), range(50, 70))
    )
    cache, plain = SpectrumCache(max_bytes=16 * 4 * 5 * 5), Preparation()
    for W, n_made in ((first, 20), (first, 4), (second, 20), (second, 4)):
        counted.clear()
        found = whole(cache, W, plain)
        assert sum(counted) == n_made
        truth = decompose(normalized_laplacian(W), torch.float32)
        assert torch.equal(found.eigenvectors, truth.eigenvectors)
