"""Runs of models on nodes: many seeds, one row each; test labels scored once."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap._arrays import check_at_least
from brainlsap.data import NodeGraph, make_node_split
from brainlsap.study.node_models import (
    NODE_MODELS,
    chosen_variant,
    model_key,
    node_model,
)


def run_nodes(
    graph: NodeGraph,
    models: Sequence[str] = ("lsap-c", "gcn"),
    *,
    n_seeds: int = 10,
    first_seed: int = 0,
    split: str | Path = "public",
    variant: str = "chosen",
    n_epochs: int | None = None,
    tell: Callable[[dict[str, Any]], None] | None = None,
) -> pd.DataFrame:
    """Train models on the nodes of a graph, for several seeds.

    A random split is drawn anew for every seed, the same for all models. Labels of
    test nodes are read once each run, when it is over, for the score.

    Parameters
    ----------
    graph : NodeGraph
        With labels.
    models : sequence of str
        Names as in `NODE_MODELS`.
    n_seeds : int
        Runs of each model.
    first_seed : int
        Seed of the first; the last is `n_seeds - 1`.
    split : str or Path
        As for :func:`brainlsap.data.make_node_split`.
    variant : str
        Of LSAP, as for :func:`node_model`.
    n_epochs : int, optional
        At the most.
    tell : callable, optional
        Called with every row as soon as it is there.

    Returns
    -------
    DataFrame
        A row for each model and seed: accuracies, epochs, seconds.

    Raises
    ------
    ParameterError
        For unknown models, variants or splits.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from brainlsap.data import NodeGraph, NodeSplit
    >>> W = np.kron(np.eye(2), np.ones((6, 6)) - np.eye(6)).astype(np.float32)
    >>> node = np.arange(12)
    >>> graph = NodeGraph(
    ...     "pair",
    ...     sparse.csr_array(W),
    ...     sparse.csr_array(np.eye(12, dtype=np.float32)),
    ...     node // 6,
    ...     ("a", "b"),
    ...     public_split=NodeSplit(node % 6 == 0, node % 6 == 1, node % 6 > 1),
    ... )
    >>> run_nodes(graph, ["lsap-c"], n_seeds=2, n_epochs=5)["seed"].tolist()
    [0, 1]
    """
    check_at_least("n_seeds", n_seeds, 1)
    for name in models:
        node_model(name, graph.name, variant=variant).settings(graph.name)
    rows = []
    for row in _runs(
        graph, models, range(first_seed, n_seeds), split, variant, n_epochs
    ):
        rows.append(row)
        if tell is not None:
            tell(row)
    return pd.DataFrame(rows)


def _runs(
    graph: NodeGraph,
    models: Sequence[str],
    seeds: Sequence[int],
    split: str | Path,
    variant: str,
    n_epochs: int | None,
) -> Iterator[dict[str, Any]]:
    for name in models:
        for seed in seeds:
            parts = make_node_split(graph, split, seed)
            model = node_model(
                name, graph.name, variant=variant, random_state=seed, n_epochs=n_epochs
            )
            model.fit(graph, parts.train, parts.validation)
            report = model.fit_report_
            yield {
                "dataset": graph.name,
                "split": str(split),
                "model": NODE_MODELS[model_key(name)],
                "variant": _variant(graph.name, variant) if "kernel" in report else "",
                "seed": seed,
                "validation": 100 * report["validation_accuracy"],
                "test": 100 * model.score(graph, parts.test),
                "best_epoch": report["best_epoch"],
                "n_epochs": report["n_epochs"],
                "seconds": report["seconds"],
            }


def _variant(dataset: str, variant: str) -> str:
    return chosen_variant(dataset) if variant == "chosen" else variant


def summarize_nodes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation and maximum of runs over seeds.

    Parameters
    ----------
    runs : DataFrame
        From :func:`run_nodes`.

    Returns
    -------
    DataFrame
        A row for each data set, split, model and variant; accuracies in percent.
        The deviation is that of the runs (divided by their number).

    Examples
    --------
    >>> one = {"dataset": "cora", "split": "public", "model": "GCN", "variant": ""}
    >>> each = {"validation": 80.0, "seconds": 1.0, "n_epochs": 9}
    >>> runs = pd.DataFrame(
    ...     [{**one, **each, "test": 81.0}, {**one, **each, "test": 83.0}]
    ... )
    >>> summarize_nodes(runs)[["mean", "sd", "maximum"]].values.tolist()
    [[82.0, 1.0, 83.0]]
    """
    keys = ["dataset", "split", "model", "variant"]
    groups = runs.groupby(keys, sort=False, dropna=False)
    return groups.agg(
        seeds=("test", "size"),
        validation=("validation", "mean"),
        mean=("test", "mean"),
        sd=("test", lambda one: one.std(ddof=0)),
        maximum=("test", "max"),
        epochs=("n_epochs", "mean"),
        seconds=("seconds", "mean"),
    ).reset_index()
