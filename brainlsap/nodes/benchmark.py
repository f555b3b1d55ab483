"""The node task by names: models, how LSAP was chosen, runs over many seeds."""

import hashlib
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.arrays import check_at_least, check_choice
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole
from brainlsap.nodes.baselines import NODE_BASELINES, NodeBaseline
from brainlsap.nodes.classifier import LSAPNodeClassifier, NodeClassifier
from brainlsap.nodes.graphs import NodeGraph, make_node_split
from brainlsap.nodes.settings import TABLES

_KERNELS = {
    "lsap-c": "chebyshev",
    "lsap-h": "hermite",
    "lsap-l": "laguerre",
    "exact": "exact",
}
NODE_MODELS: dict[str, str] = TABLES["models"]
"""Printed names of the models, as in the paper, by the names that are asked for."""

# How scales are learned without any label of a test node.
VARIANTS: dict[str, dict[str, Any]] = TABLES["variants"]


def model_key(name: str) -> str:
    """Return the key of a model in `NODE_MODELS`; capitals do not matter."""
    key = name.strip().lower()
    check_choice("model", key, NODE_MODELS)
    return key


def chosen_variant(dataset: str) -> str:
    """Return the variant that was chosen on a data set's validation nodes."""
    return str(TABLES["datasets"].get(dataset, {}).get("variant", "global"))


def node_model(
    name: str,
    dataset: str = "",
    *,
    variant: str = "chosen",
    random_state: int = 0,
    n_epochs: int | None = None,
    **given: Any,
) -> LSAPNodeClassifier | NodeBaseline:
    """Return a model of the node task by name, unfitted.

    Parameters
    ----------
    name : str
        A key of `NODE_MODELS`; capitals do not matter.
    dataset : str
        Whose settings to take.
    variant : str
        How LSAP's scales are learned: a key of `VARIANTS`, or `chosen` on the data
        set's validation nodes.
    random_state : int
        Seed.
    n_epochs : int, optional
        At the most; by default each model's own.
    **given
        Other settings of :class:`LSAPNodeClassifier`, its rarer options included.

    Returns
    -------
    LSAPNodeClassifier or NodeBaseline

    Raises
    ------
    ParameterError
        For an unknown name, or settings given to a baseline.
    """
    name = model_key(name)
    if name in NODE_BASELINES:
        if given:
            raise ParameterError(
                f"settings are for LSAP only; the baseline {name} was given "
                f"{', '.join(given)}."
            )
        return NodeBaseline(name, random_state=random_state, n_epochs=n_epochs)
    check_choice("variant", variant, (*VARIANTS, "chosen"))
    if variant == "chosen":
        variant = chosen_variant(dataset)
    own = TABLES["datasets"].get(dataset, {}).get("lsap", {})
    settings = {**({} if variant == "paper" else own), **VARIANTS[variant], **given}
    if n_epochs is not None:
        settings["n_epochs"] = n_epochs
    named = LSAPNodeClassifier().get_params(deep=False)
    options = {key: settings.pop(key) for key in [*settings] if key not in named}
    return LSAPNodeClassifier(
        _KERNELS[name], random_state=random_state, options=options or None, **settings
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
    n_seeds, first_seed : int
        Seeds `first_seed` to `n_seeds - 1` are run.
    split : str or Path
        As :func:`make_node_split` takes it.
    variant : str
        As :func:`node_model` takes it.
    n_epochs : int, optional
        At the most; by default each model's own.
    out : str or Path, optional
        CSV file of the rows. Beside it, in the folder `OUT.finished`, is one small file
        a finished seed of a model: a run that was stopped goes on after them. Seeds of
        other data or settings are not mixed up.
    verbose : bool
        Print a line a seed.

    Returns
    -------
    DataFrame
        One row a model and seed: dataset, split, model, variant, seed, accuracy in
        percent (train, validation, test), best_epoch, n_epochs, seconds, failed. Where
        the network did not learn its training nodes `failed` says so, and `test` is
        NaN.

    Raises
    ------
    ParameterError
        For unknown names, before anything is trained.
    """
    check_at_least("n_seeds", n_seeds, 1)
    for name in models:
        node_model(name, graph.name, variant=variant).settings(graph.name)
    data = "" if out is None else _digest(graph, split)
    rows = []
    for name in map(model_key, models):
        for seed in range(first_seed, n_seeds):
            model = node_model(
                name, graph.name, variant=variant, random_state=seed, n_epochs=n_epochs
            )
            asked = repr((data, str(split), model, model.settings(graph.name)))
            key = hashlib.blake2b(asked.encode(), digest_size=8).hexdigest()
            file = f"{graph.name}-{name}-seed{seed}-{key}.json"
            path = Path(f"{out}.finished") / file
            if out is not None and path.is_file():
                row = json.loads(path.read_text("utf-8"))
            else:
                row = _run(graph, model, split, seed)
                if out is not None:
                    with replace_when_whole(path) as partial:
                        partial.write_text(json.dumps(row), encoding="utf-8")
            used = chosen_variant(graph.name) if variant == "chosen" else variant
            start = {
                "dataset": graph.name,
                "split": str(split),
                "model": NODE_MODELS[name],
                "variant": used if name in _KERNELS else "",
                "seed": seed,
            }
            rows.append(start | row)
            if verbose:
                score = row["failed"] or f"test {row['test']:.1f} %"
                print(  # noqa: T201
                    f"{NODE_MODELS[name]} seed {seed}: validation "
                    f"{row['validation']:.1f} %, {score}, epoch {row['best_epoch']} of "
                    f"{row['n_epochs']}, {row['seconds']:.0f} s",
                    flush=True,
                )
    runs = pd.DataFrame(rows).astype({"test": float})
    if out is not None:
        with replace_when_whole(out) as partial:
            runs.to_csv(partial, index=False)
    return runs


def _digest(graph: NodeGraph, split: str | Path) -> str:
    """Return a hash of all that the scores of a graph depend on."""
    parts = [graph.labels]
    for matrix in (graph.adjacency, graph.features):
        parts += [matrix.data, matrix.indices, matrix.indptr]
    if graph.public_split is not None:
        parts += vars(graph.public_split).values()
    content = b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
    if str(split).endswith(".npz"):
        content += Path(split).read_bytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _run(
    graph: NodeGraph, model: NodeClassifier, split: str | Path, seed: int
) -> dict[str, Any]:
    parts = make_node_split(graph, split, seed)
    with warnings.catch_warnings():
        # stands in the row
        warnings.filterwarnings("ignore", "the network did not learn", UserWarning)
        model.fit(graph, parts.train, parts.validation)
    report = model.fit_report_
    failed = report["failed"]
    return {
        "train": 100 * report["train_accuracy"],
        "validation": 100 * report["validation_accuracy"],
        "test": None if failed else 100 * model.score(graph, parts.test),
        **{name: report[name] for name in ("best_epoch", "n_epochs", "seconds")},
        "failed": failed or "",
    }


def summarize_nodes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return mean, standard deviation and maximum of runs over seeds.

    Parameters
    ----------
    runs : DataFrame
        From :func:`run_nodes`.

    Returns
    -------
    DataFrame
        One row a data set, split, model and variant. Seeds that failed are counted in
        `failed` and have no part in the scores.
    """
    keys = ["dataset", "split", "model", "variant"]
    groups = runs.groupby(keys, sort=False, dropna=False)
    return groups.agg(
        seeds=("test", "size"),
        failed=("test", lambda one: int(one.isna().sum())),
        validation=("validation", "mean"),
        mean=("test", "mean"),
        sd=("test", lambda one: one.std(ddof=0)),
        maximum=("test", "max"),
        epochs=("n_epochs", "mean"),
        seconds=("seconds", "mean"),
    ).reset_index()
