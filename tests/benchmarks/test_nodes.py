"""The node benchmark: the dense manner is the same convolution, the report is whole."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from brainlsap.graph import diffuse_recurrence, normalized_laplacian

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def nodes(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import nodes

    monkeypatch.setattr(nodes, "RESULTS", tmp_path)
    monkeypatch.setattr(nodes, "RUNS", tmp_path / "nodes_runs.csv")
    yield nodes
    for name in ("nodes", "nodes_dense"):
        sys.modules.pop(name, None)


def one_row(**changed):
    return {
        "dataset": "cora",
        "split": "public",
        "model": "LSAP-C",
        "variant": "global",
        "seed": 0,
        "validation": 82.0,
        "test": 84.0,
        "best_epoch": 3,
        "n_epochs": 9,
        "seconds": 1.0,
        **changed,
    }


def test_the_dense_manner_is_the_same_convolution_and_slope(nodes):
    rng = np.random.default_rng(0)
    W = np.triu(rng.random((17, 17)) < 0.3, 1).astype(np.float32)
    L = normalized_laplacian(W + W.T)
    H = torch.rand(17, 4)
    scale = torch.linspace(0.2, 3, 17)
    slopes = []
    dense = nodes.dense_diffusion(nodes.polynomials(L, 20))
    for diffuse in (
        dense,
        lambda H, s: diffuse_recurrence(L, H, s, "chebyshev", 20),
    ):
        s = scale.clone().requires_grad_()
        out = diffuse(H, s)
        out.square().sum().backward()
        slopes.append((out.detach(), s.grad))
    for one, other in zip(*slopes, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_the_stack_of_pubmed_is_told_in_bytes(nodes):
    assert nodes.stack_bytes(19717, 20) == 21 * 19717**2 * 4


def test_the_report_marks_what_is_not_here(nodes):
    rows = [one_row(), one_row(seed=1, test=85.0), one_row(model="GCN", variant="")]
    nodes.add_rows(nodes.RUNS, rows)
    text = nodes.write_report().read_text()
    table = text.split("## Table 2")[1].split("## Table 3")[0]
    (mine,) = [line for line in table.splitlines() if line.startswith("| LSAP-C ")]
    assert "84.5 ± 0.5 (max 85.0, 2 seeds)" in mine
    assert "87.9" in mine
    assert "as published" in table
    shares = text.split("## Table 3")[1]
    assert "data not held" in shares
    assert "brainlsap nodes coauthor-cs --data FOLDER --models lsap-c" in shares


def test_runs_that_are_there_are_not_run_again(nodes, monkeypatch):
    nodes.add_rows(nodes.RUNS, [one_row(), one_row(seed=1)])
    asked = []
    monkeypatch.setattr(
        nodes, "run_nodes", lambda *_, **given: asked.append(given["first_seed"])
    )
    graph = type("Graph", (), {"name": "cora"})
    nodes.run_missing(graph, ["lsap-c"], 2, "global")
    assert asked == []
    nodes.run_missing(graph, ["lsap-c"], 3, "global")
    nodes.run_missing(graph, ["lsap-c"], 3, "frozen")
    assert asked == [2, 0]
    assert len(pd.read_csv(nodes.RUNS)) == 2
