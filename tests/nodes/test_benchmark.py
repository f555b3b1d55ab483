"""Runs on nodes by name: rows, seeds, what was finished before, the command."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.cli import main
from brainlsap.exceptions import ParameterError
from brainlsap.nodes import (
    NODE_MODELS,
    LSAPNodeClassifier,
    NodeGraph,
    load_nodes,
    run_nodes,
    summarize_nodes,
)
from brainlsap.nodes.graphs import NODE_DATASETS, VARIANTS

KERNELS = {"lsap-c": "chebyshev", "lsap-h": "hermite", "lsap-l": "laguerre"}


def test_a_row_for_each_model_and_seed(graph, capsys):
    runs = run_nodes(graph, ["lsap-c", "mlp"], n_seeds=2, n_epochs=20, verbose=True)
    assert runs["model"].tolist() == ["LSAP-C", "LSAP-C", "MLP", "MLP"]
    assert runs["seed"].tolist() == [0, 1, 0, 1]
    assert runs["variant"].tolist() == ["consistency", "consistency", "", ""]
    assert runs.loc[0, "test"] > 50  # chance is a third
    assert "LSAP-C seed 1: validation" in capsys.readouterr().out
    runs["test"] = [80.0, 82.0, 70.0, 74.0]
    row = summarize_nodes(runs).iloc[1]
    assert (row["mean"], row["maximum"], row["seeds"]) == (72, 74, 2)
    assert row["sd"] == pytest.approx(np.std([70, 74], ddof=1))
    with pytest.raises(ParameterError, match="model must be one of"):
        run_nodes(graph, ["lsap-c", "lstm"])


@pytest.mark.parametrize(("name", "sep"), [("runs.csv", ","), ("runs.tsv", "\t")])
def test_an_interrupted_run_goes_on_where_it_stopped(
    graph, tmp_path, monkeypatch, name, sep
):
    asked = {"n_seeds": 3, "n_epochs": 4}
    whole = run_nodes(graph, ["lsap-c", "gcn"], **asked)
    out, fits, fit = tmp_path / name, [], LSAPNodeClassifier.fit

    def stopping(model, *given):
        if len(fits) == 4:
            raise KeyboardInterrupt
        fits.append(model.random_state)
        return fit(model, *given)

    monkeypatch.setattr(LSAPNodeClassifier, "fit", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_nodes(graph, ["lsap-c", "gcn"], out=out, **asked)
    assert len(pd.read_csv(out, sep=sep)) == 4
    fits.clear()
    again = run_nodes(graph, ["lsap-c", "gcn"], out=out, **asked)
    assert fits == [1, 2]
    same = [name for name in whole if name != "seconds"]
    pd.testing.assert_frame_equal(again[same], whole[same], check_dtype=False)
    np.testing.assert_allclose(pd.read_csv(out, sep=sep)["test"], again["test"], 1e-6)
    # nothing of other data or settings is taken for it: it gives way, other splits
    # and options stand beside it
    other = NodeGraph(**{**vars(graph), "labels": graph.labels[::-1].copy()})
    for changed, given, n_rows in [
        (graph, {"n_epochs": 5}, 6),
        (other, {"n_epochs": 4}, 6),
        (graph, {"n_epochs": 4, "split": "60-20-20"}, 7),
        (graph, {"n_epochs": 4, "options": {"hidden_units": 5}}, 8),
    ]:
        fits.clear()
        run_nodes(changed, ["gcn"], n_seeds=1, out=out, **given)
        assert (fits, len(pd.read_csv(out, sep=sep))) == ([0], n_rows)


@pytest.mark.parametrize("name", sorted(NODE_MODELS))
def test_every_model_and_variant_has_settings(name):
    for dataset in ("", *NODE_DATASETS):
        settings = LSAPNodeClassifier(name, n_epochs=7).settings(dataset)
        assert settings.n_epochs == 7
    for variant in VARIANTS if name in KERNELS else ():
        settings = LSAPNodeClassifier(name, variant=variant).settings("cora")
        assert settings.kernel == KERNELS[name]
        assert settings.initial_scale <= settings.max_scale


def test_scores_on_cora_are_those_of_the_first_version(shared):
    """Accuracy in percent after 12 epochs on the public split, seed 0."""
    cora, asked = load_nodes("cora", shared), {"n_seeds": 1, "n_epochs": 12}
    then = {"hidden_units": 64, "n_views": 2, "initial_scale": 4.0}
    heat = run_nodes(cora, ["lsap-c"], variant="global", options=then, **asked)
    runs = pd.concat([heat, run_nodes(cora, ["mlp"], **asked)]).round(1)
    assert runs["test"].tolist() == [77.6, 44.9]
    assert runs["validation"].tolist() == [75.8, 42.0]


def test_a_table_of_something_else_is_not_replaced(graph, tmp_path):
    out = tmp_path / "people.csv"
    out.write_text("participant_id,age\nsub-01,70\n")
    with pytest.raises(ParameterError, match="not written by run_nodes"):
        run_nodes(graph, ["mlp"], n_seeds=1, n_epochs=1, out=out)
    assert out.read_text().startswith("participant_id")


def test_the_command_prints_scores_and_keeps_finished_seeds(
    graph, tmp_path, capsys, monkeypatch
):
    arrays = {"labels": graph.labels}
    for prefix, matrix in (("adj", graph.adjacency), ("attr", graph.features)):
        for part in ("data", "indices", "indptr", "shape"):
            arrays[f"{prefix}_{part}"] = getattr(matrix, part)
    np.savez(tmp_path / "amazon_electronics_photo.npz", **arrays)
    counts = [graph.n_nodes, graph.n_edges, 3, graph.features.shape[1]]
    photo = NODE_DATASETS["amazon-photo"] | {"counts": counts}
    monkeypatch.setitem(NODE_DATASETS, "amazon-photo", photo)
    out = tmp_path / "runs.csv"
    more = ["--data", str(tmp_path), "--split", "60-20-20", "--epochs", "5"]
    more += ["--models", "lsap-c,mlp", "--out", str(out)]
    for seeds in ("1", "2"):
        assert main(["nodes", "photo", "--seeds", seeds, *more]) == 0
    printed = capsys.readouterr().out
    assert f"amazon-photo: 60 nodes, {graph.n_edges} edges, 3 classes" in printed
    assert printed.count("LSAP-C seed 0: validation") == 1
    assert sorted(pd.read_csv(out)["seed"]) == [0, 0, 1, 1]
    assert main(["nodes", "pubmed", "--data", str(tmp_path)]) == 2
    assert "does not contain ind.pubmed.x" in capsys.readouterr().err
