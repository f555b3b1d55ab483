"""Runs on nodes by name: rows, seeds, what the paper printed, and the command."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from brainlsap.cli import main
from brainlsap.data import NodeGraph, NodeSplit, load_nodes, make_node_split
from brainlsap.data.nodes import NODE_DATASETS
from brainlsap.exceptions import ParameterError
from brainlsap.study import NODE_MODELS, node_model, run_nodes, summarize_nodes
from brainlsap.study.node_models import (
    CHOSEN_VARIANT,
    LSAP_NAMES,
    SETTINGS,
    VARIANTS,
)
from brainlsap.study.node_published import (
    PUBLISHED_MAXIMA,
    PUBLISHED_PLANETOID,
    PUBLISHED_SHARES,
)

SHARED = Path(__file__).parents[3] / "shared" / "data"
N_NODES = 30


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


def test_a_row_for_each_model_and_seed(graph):
    told = []
    runs = run_nodes(graph, ["lsap-c", "mlp"], n_seeds=2, n_epochs=8, tell=told.append)
    assert runs["model"].tolist() == ["LSAP-C", "LSAP-C", "MLP", "MLP"]
    assert runs["seed"].tolist() == [0, 1, 0, 1]
    assert runs["variant"].tolist() == ["global", "global", "", ""]
    assert runs["test"].between(0, 100).all()
    assert runs.loc[0, "test"] > 90
    assert told == runs.to_dict("records")


def test_seeds_can_go_on_where_they_stopped(graph):
    whole = run_nodes(graph, ["lsap-c"], n_seeds=3, n_epochs=4)
    rest = run_nodes(graph, ["lsap-c"], n_seeds=3, first_seed=2, n_epochs=4)
    columns = ["seed", "validation", "test", "best_epoch"]
    assert rest[columns].values.tolist() == whole[columns].values[2:].tolist()


def test_a_random_split_differs_by_seed_and_not_by_model(graph, monkeypatch):
    drawn = []

    def draw(graph, split, seed):
        drawn.append((split, seed))
        return graph.public_split

    monkeypatch.setattr("brainlsap.study.node_runs.make_node_split", draw)
    run_nodes(graph, ["lsap-c", "mlp"], n_seeds=2, split="60-20-20", n_epochs=1)
    assert drawn == [("60-20-20", 0), ("60-20-20", 1)] * 2


def test_test_labels_are_met_in_the_score_only(graph):
    """Noise in place of test labels changes the score and nothing else."""
    noise = np.where(graph.public_split.test, 1, graph.labels)
    noisy = NodeGraph(**{**vars(graph), "labels": noise})
    one, other = (
        run_nodes(each, ["lsap-c"], n_seeds=1, n_epochs=8).iloc[0]
        for each in (graph, noisy)
    )
    same = ["validation", "best_epoch", "n_epochs"]
    assert one[same].tolist() == other[same].tolist()
    assert one["test"] > other["test"]


def test_summary_by_hand():
    keys = {"dataset": "cora", "split": "public", "model": "GCN", "variant": ""}
    rest = {"seconds": 2.0, "n_epochs": 10, "validation": 80.0}
    runs = pd.DataFrame([{**keys, **rest, "test": one} for one in (80.0, 81.0, 85.0)])
    (row,) = summarize_nodes(runs).to_dict("records")
    assert (row["mean"], row["maximum"], row["seeds"]) == (82.0, 85.0, 3)
    assert row["sd"] == pytest.approx(np.std([80, 81, 85]))


class TestNames:
    @pytest.mark.parametrize("name", sorted(NODE_MODELS))
    @pytest.mark.parametrize("dataset", ["", "cora", "pubmed"])
    def test_every_model_has_settings(self, name, dataset):
        model = node_model(name, dataset, random_state=3, n_epochs=7)
        settings = model.settings(dataset)
        assert (model.random_state, settings.n_epochs) == (3, 7)

    @pytest.mark.parametrize("variant", sorted(VARIANTS))
    @pytest.mark.parametrize("kernel", sorted(LSAP_NAMES))
    def test_every_variant_of_every_kernel(self, variant, kernel):
        settings = node_model(kernel, "cora", variant=variant).settings("cora")
        assert settings.kernel == LSAP_NAMES[kernel][0]
        assert settings.initial_scale <= settings.max_scale

    def test_choices_name_what_there_is(self):
        assert set(CHOSEN_VARIANT.values()) <= set(VARIANTS)
        assert set(SETTINGS) == set(NODE_DATASETS)

    @pytest.mark.parametrize("name", ["LSAP-L", "laguerre", " lsap-l"])
    def test_capitals_and_kernels_will_do(self, name):
        assert node_model(name).kernel == "laguerre"
        assert node_model("LSAP").kernel == "chebyshev"

    def test_unknown_names(self):
        with pytest.raises(ParameterError, match="model must be one of"):
            node_model("lstm")
        with pytest.raises(ParameterError, match="variant must be one of"):
            node_model("lsap-c", variant="best")
        with pytest.raises(ParameterError, match="the baseline gcn was given n_layers"):
            node_model("gcn", n_layers=3)

    def test_nothing_is_run_where_a_name_is_wrong(self, graph):
        told = []
        with pytest.raises(ParameterError, match="model must be one of"):
            run_nodes(graph, ["lsap-c", "lstm"], n_seeds=1, tell=told.append)
        assert told == []


def test_published_rows_name_the_models_that_are_run():
    shared = set(PUBLISHED_PLANETOID) & set(NODE_MODELS.values())
    assert len(shared) == 14
    assert PUBLISHED_PLANETOID["LSAP-C"] == (87.9, 76.5, 83.3)
    assert PUBLISHED_SHARES["Exact"][1] == "96.41 ± 1.54"
    assert set(PUBLISHED_MAXIMA) == set(PUBLISHED_SHARES) - {"DSF"}


class TestCommand:
    @pytest.fixture
    def folder(self, graph, tmp_path, monkeypatch):
        """The blocks as Planetoid files under the name of Cora."""
        one_hot = np.eye(3)[graph.labels]
        order = np.argsort(np.arange(N_NODES) % 10, kind="stable")
        W = graph.adjacency.toarray()[np.ix_(order, order)]
        x = sparse.csr_matrix(np.eye(N_NODES))
        y = one_hot[order]
        parts = {
            "x": x[:6],
            "y": y[:6],
            "allx": x[:20],
            "ally": y[:20],
            "tx": x[20:],
            "ty": y[20:],
            "graph": {i: np.flatnonzero(row).tolist() for i, row in enumerate(W)},
        }
        for part, value in parts.items():
            (tmp_path / f"ind.cora.{part}").write_bytes(pickle.dumps(value, 2))
        lines = "".join(f"{i}\n" for i in range(20, N_NODES))
        (tmp_path / "ind.cora.test.index").write_text(lines)
        counts = (N_NODES, 135, 3, N_NODES)
        monkeypatch.setitem(NODE_DATASETS, "cora", counts)
        return tmp_path

    def test_scores_are_printed_and_runs_written(self, folder, capsys):
        out = folder / "runs.csv"
        arguments = ["--models", "lsap-c,mlp", "--seeds", "2", "--epochs", "5"]
        code = main(
            ["nodes", "cora", "--data", str(folder), "--out", str(out), *arguments]
        )
        printed = capsys.readouterr().out
        assert code == 0
        assert "cora: 30 nodes, 135 edges, 3 classes" in printed
        assert "LSAP-C seed 1: validation" in printed
        assert "| cora | public | MLP |" in printed
        assert pd.read_csv(out)["seed"].tolist() == [0, 1, 0, 1]

    def test_files_that_are_not_there(self, tmp_path, capsys):
        assert main(["nodes", "pubmed", "--data", str(tmp_path)]) == 2
        assert "give their folder as --data" in capsys.readouterr().err

    def test_a_split_file_with_overlapping_masks(self, folder, capsys):
        masks = dict.fromkeys(("train_mask", "val_mask", "test_mask"), np.ones(N_NODES))
        np.savez(folder / "s.npz", **masks)
        split = ["--split", str(folder / "s.npz")]
        assert main(["nodes", "cora", "--data", str(folder), *split]) == 2
        assert "30 node(s) stand in both" in capsys.readouterr().err

    def test_an_unknown_model(self, folder, capsys):
        assert main(["nodes", "cora", "--data", str(folder), "--models", "x"]) == 2
        assert "model must be one of" in capsys.readouterr().err


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"{SHARED} is not here")
@pytest.mark.parametrize("dataset", ["cora", "citeseer", "pubmed", "amazon-photo"])
def test_the_expansions_train_on_the_papers_graphs(dataset):
    graph = load_nodes(dataset, SHARED)
    split = "60-20-20" if dataset == "amazon-photo" else "public"
    parts = make_node_split(graph, split)
    for name in ("lsap-c", "lsap-h", "lsap-l"):
        model = node_model(name, dataset, n_epochs=2, hidden_units=4)
        model.fit(graph, parts.train, parts.validation)
        probability = model.predict_proba(nodes=parts.test)
        assert probability.shape == (parts.sizes[2], graph.n_classes)
        assert np.isfinite(probability).all()
        assert model.fit_report_["kernel_error"] <= 1e-2
    if graph.n_nodes > 8000:
        with pytest.raises(ParameterError, match=r"19717 nodes.*=8000.*chebyshev"):
            node_model("exact", dataset).fit(graph, parts.train, parts.validation)
