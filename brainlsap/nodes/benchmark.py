"""Runs of the node task by names: many models, many seeds, one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import hash as hash_of

from brainlsap.files import replace_when_whole
from brainlsap.nodes.classifier import LSAPNodeClassifier
from brainlsap.nodes.graphs import NodeGraph, make_node_split
from brainlsap.nodes.settings import NODE_MODELS, chosen_variant

# What a row is about; a later run of the same takes its place in a file.
_ABOUT = ["dataset", "split", "model", "variant", "options", "seed"]

_SCORES = "{model} seed {seed}: validation {validation:.1f} %, test {test:.1f} %"


def run_nodes(
    graph: NodeGraph,
    models: Sequence[str] = ("lsap-c", "gcn"),
    *,
    n_seeds: int = 10,
    split: str = "public",
    variant: str = "chosen",
    n_epochs: int | None = None,
    options: dict[str, Any] | None = None,
    device: str = "cpu",
    out: str | Path | None = None,
    verbose: bool = False,
) -> pd.DataFrame:
    """Train models on the nodes of a graph, for several seeds.

    Test labels are read once for each row, by its score. A seed draws weights, dropout
    and, where the split is drawn, the split: the same for every model.

    Parameters
    ----------
    graph : NodeGraph
        With labels.
    models : sequence of str
        Keys of `NODE_MODELS`.
    n_seeds : int
        Seeds 0 to `n_seeds - 1` are run.
    split : str
        As :func:`make_node_split` takes it.
    variant, n_epochs, options, device
        As :class:`LSAPNodeClassifier` takes them.
    out : str or Path, optional
        CSV file that each row is added to when it is there: a run that was stopped
        goes on after them, and several data sets may share one. A row of other data,
        splits or settings is not mixed up with those asked for, but replaced.
    verbose : bool
        Print a line a seed.

    Returns
    -------
    DataFrame
        One row a model and seed: dataset, split, model, variant, options, seed,
        accuracy in percent (validation, test), best_epoch, n_epochs, seconds, and a
        hash of all that the scores depend on.

    Raises
    ------
    ParameterError
        For unknown names, before anything is trained.
    """
    common: dict[str, Any] = {"n_epochs": n_epochs, "options": options}
    made = [
        LSAPNodeClassifier(
            name, variant=variant, random_state=seed, device=device, **common
        )
        for name in models
        for seed in range(n_seeds)
    ]
    settings = [model.settings(graph.name) for model in made]
    table, asked = pd.DataFrame(columns=[*_ABOUT, "hash"]), []
    if out is not None and Path(out).is_file():
        table = pd.read_csv(out, keep_default_na=False)
    matrices = [graph.adjacency, graph.features]
    data = [graph.labels, *([M.data, M.indices, M.indptr] for M in matrices)]
    for model, used in zip(made, settings, strict=True):
        parts = make_node_split(graph, split, model.random_state)
        about = {
            "dataset": graph.name,
            "split": split,
            "model": NODE_MODELS[model.model],
            "variant": chosen_variant(model.model, variant, graph.name),
            "options": " ".join(f"{k}={v}" for k, v in (options or {}).items()),
            "seed": model.random_state,
        }
        held = (data, vars(parts), vars(used), model.random_state)
        asked.append(hash_of(held)[:12])
        if asked[-1] in set(table["hash"]):
            continue
        model.fit(graph, parts.train, parts.validation)
        report = model.fit_report_
        row = {
            **about,
            "validation": 100 * report["validation_accuracy"],
            "test": 100 * model.score(graph, parts.test),
            **{name: report[name] for name in ("best_epoch", "n_epochs", "seconds")},
            "hash": asked[-1],
        }
        same = (table[_ABOUT] == list(about.values())).all(axis=1)
        fresh = pd.DataFrame([row])
        table = pd.concat([table[~same], fresh]) if len(table) else fresh
        if out is not None:
            with replace_when_whole(out) as partial:
                table.to_csv(partial, index=False, float_format="%.7g")
        if verbose:
            print(_SCORES.format(**row), flush=True)  # noqa: T201
    return table.set_index("hash", drop=False).loc[asked].reset_index(drop=True)


def summarize_nodes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation and maximum of runs over seeds.

    Parameters
    ----------
    runs : DataFrame
        From :func:`run_nodes`.

    Returns
    -------
    DataFrame
        One row a data set, split, model, variant and options.
    """
    groups = runs.groupby(_ABOUT[:-1], sort=False)
    return groups.agg(
        seeds=("test", "size"),
        validation=("validation", "mean"),
        mean=("test", "mean"),
        sd=("test", lambda one: one.std(ddof=0)),
        maximum=("test", "max"),
        seconds=("seconds", "mean"),
    ).reset_index()
