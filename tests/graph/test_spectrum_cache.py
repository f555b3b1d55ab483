"""The cache of spectra: in memory and on disk, by blocks, the oldest dropped first."""

import numpy as np
import pytest
import torch

import brainlsap.graph.spectrum_cache as module
from brainlsap import _scratch
from brainlsap.exceptions import ParameterError
from brainlsap.graph import LearnedPreparation, Preparation, SpectrumCache


@pytest.fixture
def graphs(draw_graph):
    return np.stack([draw_graph("weighted", 7, seed) for seed in (0, 1, 2, 1, 3)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_disk_and_by_blocks_it_is_the_same(graphs, dtype, monkeypatch):
    expected, graph_of = SpectrumCache().spectra(graphs, dtype=dtype)
    assert expected.eigenvectors.dtype == dtype
    assert expected.eigenvalues.dtype == torch.float64
    monkeypatch.setenv(_scratch.LARGE_VARIABLE, "0")
    monkeypatch.setattr(_scratch, "BLOCK_BYTES", 2 * 7 * 7 * 8)
    cache = SpectrumCache()
    for _ in range(2):
        found, rows = cache.spectra(graphs, dtype=dtype)
        assert rows.tolist() == graph_of.tolist() == [0, 1, 2, 1, 3]
        assert torch.equal(found.eigenvalues, expected.eigenvalues)
        assert torch.equal(found.eigenvectors, expected.eigenvectors)
    values, rows = cache.eigenvalues(graphs[::-1])
    assert torch.equal(values[rows], expected.eigenvalues[graph_of[::-1].copy()])


def test_connectomes_are_prepared_on_the_way(graphs):
    learned = LearnedPreparation(Preparation.of(weights="log", threshold=0.2))
    expected, _ = SpectrumCache().spectra(learned.apply(graphs))
    found, _ = SpectrumCache().spectra(graphs, learned.apply)
    assert torch.equal(found.eigenvectors, expected.eigenvectors)


def test_what_is_refused_has_the_row_of_the_cohort(graphs, monkeypatch):
    monkeypatch.setattr(_scratch, "BLOCK_BYTES", 2 * 7 * 7 * 8)
    learned = LearnedPreparation(Preparation.of(symmetrize="refuse"))
    graphs[4, 0, 1] += 1.0
    with pytest.raises(ParameterError, match="connectome of row 4 is not symmetric"):
        SpectrumCache().spectra(graphs, learned.apply)


@pytest.mark.parametrize("limit", ["0", "1000000"])
def test_the_oldest_go_first_in_memory_and_on_disk(graphs, limit, monkeypatch):
    monkeypatch.setenv(_scratch.LARGE_VARIABLE, limit)
    monkeypatch.setattr(module, "_MOST_ON_DISK", 2 * 8 * 7 * 7)
    cache = SpectrumCache(max_bytes=2 * 8 * 7 * 7)
    for row in (0, 1, 0, 2):
        cache.spectra(graphs[[row]])
    decomposed = []
    decompose = module.decompose
    monkeypatch.setattr(
        module, "decompose", lambda L: decomposed.append(len(L)) or decompose(L)
    )
    cache.spectra(graphs[[0, 2]])
    assert decomposed == []
    cache.spectra(graphs[[1]])
    assert decomposed == [1]
