"""Runs on nodes by name: rows, seeds, what was finished before, the command."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import brainlsap.nodes.benchmark as module
import brainlsap.nodes.graphs as graphs
from brainlsap.cli import main
from brainlsap.exceptions import ParameterError
from brainlsap.nodes import (
    NODE_DATASETS,
    NODE_MODELS,
    NodeGraph,
    NodeSplit,
    node_model,
    run_nodes,
    summarize_nodes,
)

N_NODES = 30
KERNELS = {"lsap-c": "chebyshev", "lsap-h": "hermite", "lsap-l": "laguerre"}


@pytest.fixture
def graph():
    labels = np.arange(N_NODES) // 10
    W = (labels[:, None] == labels).astype(np.float32) - np.eye(N_NODES)
    place = np.arange(N_NODES) % 10
    return NodeGraph(
        "blocks",
        sparse.csr_array(W, dtype=np.float32),
        sparse.csr_array(np.eye(N_NODES, dtype=np.float32)),
        labels,
        ("a", "b", "c"),
        public_split=NodeSplit(place < 2, (place > 1) & (place < 5), place > 4),
    )


def test_a_row_for_each_model_and_seed(graph, capsys):
    runs = run_nodes(graph, ["lsap-c", "mlp"], n_seeds=2, n_epochs=8, verbose=True)
    assert runs["model"].tolist() == ["LSAP-C", "LSAP-C", "MLP", "MLP"]
    assert runs["seed"].tolist() == [0, 1, 0, 1]
    assert runs["variant"].tolist() == ["global", "global", "", ""]
    assert runs.loc[0, "test"] > 90
    assert "LSAP-C seed 1: validation" in capsys.readouterr().out
    rest = run_nodes(graph, ["lsap-c"], n_seeds=2, first_seed=1, n_epochs=8)
    columns = ["seed", "validation", "test", "best_epoch"]
    assert rest[columns].values.tolist() == runs[columns].values[1:2].tolist()


def test_an_interrupted_run_goes_on_where_it_stopped(graph, tmp_path, monkeypatch):
    asked = {"n_seeds": 3, "n_epochs": 4}
    whole = run_nodes(graph, ["lsap-c", "gcn"], **asked)
    out, finished = tmp_path / "runs.csv", tmp_path / "runs.csv.finished"
    fits, run = [], module._run

    def stopping(graph, model, split, seed):
        if len(fits) == 4:
            raise KeyboardInterrupt
        fits.append(seed)
        return run(graph, model, split, seed)

    monkeypatch.setattr(module, "_run", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_nodes(graph, ["lsap-c", "gcn"], out=out, **asked)
    assert len(list(finished.iterdir())) == 4
    assert not out.exists()
    fits.clear()
    again = run_nodes(graph, ["lsap-c", "gcn"], out=out, **asked)
    assert fits == [1, 2]
    same = [name for name in whole if name != "seconds"]
    pd.testing.assert_frame_equal(again[same], whole[same])
    assert pd.read_csv(out)["test"].tolist() == again["test"].tolist()
    # nothing of other data, settings or splits is taken for it
    monkeypatch.setattr(module, "_run", run)
    other = NodeGraph(**{**vars(graph), "labels": graph.labels[::-1].copy()})
    run_nodes(graph, ["gcn"], n_seeds=1, n_epochs=5, out=out)
    run_nodes(other, ["gcn"], n_seeds=1, n_epochs=4, out=out)
    run_nodes(graph, ["gcn"], n_seeds=1, n_epochs=4, split="60-20-20", out=out)
    assert len(list(finished.iterdir())) == 9


def test_networks_that_fail_have_no_score(graph, tmp_path):
    bare = NodeGraph(**{**vars(graph), "features": 0 * graph.features})
    for _ in range(2):  # the second time as remembered
        runs = run_nodes(bare, ["gcn"], n_seeds=2, n_epochs=3, out=tmp_path / "r.csv")
        assert runs["test"].isna().all()
        assert runs["failed"].str.contains("did not learn its training nodes").all()
    runs = pd.concat([runs] * 2, ignore_index=True)
    runs["test"] = [80.0, 81.0, 85.0, np.nan]
    (row,) = summarize_nodes(runs).to_dict("records")
    assert (row["mean"], row["maximum"], row["seeds"]) == (82.0, 85.0, 4)
    assert row["failed"] == 1
    assert row["sd"] == pytest.approx(np.std([80, 81, 85]))


def test_a_random_split_differs_by_seed_and_not_by_model(graph, monkeypatch):
    drawn = []

    def draw(graph, split, seed):
        drawn.append((split, seed))
        return graph.public_split

    monkeypatch.setattr(module, "make_node_split", draw)
    run_nodes(graph, ["lsap-c", "mlp"], n_seeds=2, split="60-20-20", n_epochs=1)
    assert drawn == [("60-20-20", 0), ("60-20-20", 1)] * 2


@pytest.mark.parametrize("name", sorted(NODE_MODELS))
def test_every_model_and_variant_has_settings(name):
    for dataset in ("", *NODE_DATASETS):
        model = node_model(name, dataset, random_state=3, n_epochs=7)
        settings = model.settings(dataset)
        assert (model.random_state, settings.n_epochs) == (3, 7)
    if name not in KERNELS:
        return
    for variant in module.VARIANTS:
        settings = node_model(name, "cora", variant=variant).settings("cora")
        assert settings.kernel == KERNELS[name]
        assert settings.initial_scale <= settings.max_scale


def test_names_in_capitals_will_do_and_unknown_ones_are_refused(graph):
    assert node_model(" LSAP-L").kernel == "laguerre"
    for call, said in [
        (lambda: node_model("lstm"), "model must be one of"),
        (lambda: node_model("lsap-c", variant="best"), "variant must be one of"),
        (lambda: node_model("gcn", n_layers=3), "baseline gcn was given n_layers"),
        (lambda: run_nodes(graph, ["lsap-c", "lstm"]), "model must be one of"),
    ]:
        with pytest.raises(ParameterError, match=said):
            call()


def test_scores_on_cora_are_those_of_the_first_version():
    """Accuracy in percent after 12 epochs on the public split, seed 0."""
    folder = graphs.Path(__file__).parents[3] / "shared" / "data"
    if not (folder / "planetoid").is_dir():
        pytest.skip("no data here")
    cora = graphs.load_nodes("cora", folder)
    models = ["lsap-c", "lsap-l", "mlp"]
    runs = run_nodes(cora, models, n_seeds=1, n_epochs=12).round(1)
    assert runs["test"].tolist() == [77.6, 77.6, 44.9]
    assert runs["validation"].tolist() == [75.8, 75.8, 42.0]


def test_the_command_prints_scores_and_keeps_finished_seeds(
    graph, tmp_path, capsys, monkeypatch
):
    arrays = {"labels": graph.labels}
    for prefix, matrix in (("adj", graph.adjacency), ("attr", graph.features)):
        for part in ("data", "indices", "indptr", "shape"):
            arrays[f"{prefix}_{part}"] = getattr(matrix, part)
    np.savez(tmp_path / "amazon_electronics_photo.npz", **arrays)
    counts = {"counts": [N_NODES, 135, 3, N_NODES]}
    photo = {**NODE_DATASETS["amazon-photo"], **counts}
    monkeypatch.setitem(NODE_DATASETS, "amazon-photo", photo)
    out = tmp_path / "runs.csv"
    more = ["--data", str(tmp_path), "--split", "60-20-20", "--epochs", "5"]
    more += ["--models", "lsap-c,mlp", "--out", str(out)]
    for seeds in ("1", "2"):
        assert main(["nodes", "photo", "--seeds", seeds, *more]) == 0
    printed = capsys.readouterr().out
    assert "amazon-photo: 30 nodes, 135 edges, 3 classes" in printed
    assert "LSAP-C seed 1: validation" in printed
    assert pd.read_csv(out)["seed"].tolist() == [0, 1, 0, 1]
    assert len(list(tmp_path.glob("runs.csv.finished/*.json"))) == 4
    assert main(["nodes", "pubmed", "--data", str(tmp_path)]) == 2
    assert "does not hold ind.pubmed.x" in capsys.readouterr().err
