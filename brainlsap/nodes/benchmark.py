"""Runs of the node task by names: many models, many seeds, one table."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import hash as hash_of

from brainlsap.exceptions import ParameterError, reading
from brainlsap.files import replace_when_whole
from brainlsap.nodes.classifier import LSAPNodeClassifier
from brainlsap.nodes.graphs import NodeGraph, make_node_split
from brainlsap.nodes.settings import NODE_MODELS, chosen_variant

# Columns that identify a row; a later run with the same values replaces it in a file.
_ABOUT = ["dataset", "split", "model", "variant", "options", "seed"]


def run_nodes(
    graph: NodeGraph,
    models: Sequence[str] = ("lsap-c", "gcn"),
    *,
    n_seeds: int = 10,
    split: str = "public",
    variant: str = "chosen",
    out: str | Path | None = None,
    verbose: bool = False,
    **classifier_options: Any,
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
    variant : str
        As :class:`LSAPNodeClassifier` takes it.
    out : str or Path, optional
        CSV (or `.tsv`) file that each row is added to when it is there: a run that was
        stopped goes on after them, and several data sets may share one. A row of other
        data, splits or settings is not mixed up with those asked for, but replaced.
    verbose : bool
        Print a line a seed.
    **classifier_options
        `n_epochs`, `options` and `device`, as :class:`LSAPNodeClassifier` takes them.

    Returns
    -------
    DataFrame
        One row a model and seed: dataset, split, model, variant, options, seed,
        accuracy in percent (validation, test), best_epoch, n_epochs, seconds, and a
        hash of all that the scores depend on.

    Raises
    ------
    ParameterError
        For unknown names, or a file that is no such table, before anything is trained.
    """
    classifiers = [
        LSAPNodeClassifier(
            model_name, variant=variant, random_state=seed, **classifier_options
        )
        for model_name in models
        for seed in range(n_seeds)
    ]
    settings = [model.settings(graph.name) for model in classifiers]
    options_text = " ".join(
        f"{k}={v}" for k, v in (classifier_options.get("options") or {}).items()
    )
    row_of_run = {}
    run_keys = []
    column_separator = "\t" if str(out).endswith(".tsv") else ","
    if out is not None and Path(out).is_file():
        with reading(out, "a table that run_nodes wrote"):
            score_table = pd.read_csv(out, sep=column_separator, keep_default_na=False)
        if not {*_ABOUT, "hash"} <= {*score_table}:
            raise ParameterError(
                f"{out} is there already, and is no table that run_nodes wrote. Name "
                "another file by out=."
            )
        row_of_run = {
            tuple(run_row[k] for k in _ABOUT): run_row
            for run_row in score_table.to_dict("records")
        }
    matrices = [graph.adjacency, graph.features]
    hashed_data = [
        graph.labels,
        *([matrix.data, matrix.indices, matrix.indptr] for matrix in matrices),
    ]
    for model, node_settings in zip(classifiers, settings, strict=True):
        seed, title = model.random_state, NODE_MODELS[model.model]
        node_split = make_node_split(graph, split, seed)
        used_variant = chosen_variant(model.model, variant, graph.name)
        run_keys.append((graph.name, split, title, used_variant, options_text, seed))
        fit_hash = hash_of((hashed_data, vars(node_split), vars(node_settings), seed))[
            :12
        ]
        if row_of_run.get(run_keys[-1], {}).get("hash") == fit_hash:
            continue
        start_time = time.perf_counter()
        model.fit(graph, node_split.train, node_split.validation)
        training_losses, validation_accuracies = model.history_.values()
        run_row = row_of_run[run_keys[-1]] = {
            **dict(zip(_ABOUT, run_keys[-1], strict=True)),
            "validation": 100 * max(validation_accuracies),
            "test": 100 * model.score(graph, node_split.test),
            "best_epoch": model.best_epoch_,
            "n_epochs": len(training_losses),
            "seconds": time.perf_counter() - start_time,
            "hash": fit_hash,
        }
        if out is not None:
            with replace_when_whole(out) as partial_path:
                score_table = pd.DataFrame(row_of_run.values())
                score_table.to_csv(
                    partial_path, sep=column_separator, index=False, float_format="%.7g"
                )
        if verbose:
            scores = "validation {validation:.1f} %, test {test:.1f} %".format(
                **run_row
            )
            print(f"{title} seed {seed}: {scores}", flush=True)  # noqa: T201
    return pd.DataFrame([row_of_run[run_key] for run_key in run_keys])


def summarize_nodes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean, sample standard deviation and maximum of runs over seeds.

    Parameters
    ----------
    runs : DataFrame
        From :func:`run_nodes`.

    Returns
    -------
    DataFrame
        One row a data set, split, model, variant and options; sd is NaN of one seed.
    """
    runs_by_setting = runs.groupby(_ABOUT[:-1], sort=False)
    return runs_by_setting.agg(
        seeds=("test", "size"),
        validation=("validation", "mean"),
        mean=("test", "mean"),
        sd=("test", "std"),
        maximum=("test", "max"),
        seconds=("seconds", "mean"),
    ).reset_index()
