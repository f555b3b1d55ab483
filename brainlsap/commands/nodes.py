"""`brainlsap nodes`: the method's benchmarks on citation and co-purchase graphs."""

import argparse
from typing import Any

from brainlsap.options import at_least, comma_list


def add(commands: Any) -> None:
    """Add the command and its options."""
    nodes = commands.add_parser(
        "nodes",
        help="classify the nodes of a citation or co-purchase graph, many seeds",
        description="Trains each model once a seed, chooses epochs on validation "
        "nodes, and prints accuracy on test nodes: mean, standard deviation, maximum.",
    )
    nodes.add_argument(
        "dataset",
        help="cora, citeseer, pubmed, amazon-computers, amazon-photo or coauthor-cs",
    )
    nodes.add_argument(
        "--data", help="folder of its files (default: ~/.cache/brainlsap/nodes)"
    )
    nodes.add_argument(
        "--download", action="store_true", help="fetch files that are not there"
    )
    nodes.add_argument(
        "--models",
        type=comma_list,
        default=["lsap-c", "gcn"],
        help="with commas: lsap-c, lsap-h, lsap-l, exact, mlp, gcn, gat, sgc, appnp, "
        "gdc, graphheat, adc, gcnii, dagnn, grand, or all (default: lsap-c,gcn)",
    )
    nodes.add_argument(
        "--seeds", type=at_least(1), default=10, help="how many (default: 10)"
    )
    _add_training(nodes)
    nodes.add_argument(
        "--out",
        help="file of comma-separated values, one row a seed; the same command goes on "
        "after the seeds that were finished (kept in OUT.finished)",
    )


def _add_training(nodes: argparse.ArgumentParser) -> None:
    nodes.add_argument(
        "--split",
        help="public, per-class (20 of each), 60-20-20, or an .npz of masks (default: "
        "public where there is one, else 60-20-20)",
    )
    nodes.add_argument(
        "--variant",
        default="chosen",
        help="how LSAP's scales are learned: frozen, global, labels, smooth, "
        "descriptors, consistency, validation, paper (default: as chosen on "
        "validation nodes)",
    )
    nodes.add_argument(
        "--epochs",
        type=at_least(1),
        dest="n_epochs",
        metavar="N",
        help="at the most (default: each model's own)",
    )


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.nodes import NODE_MODELS, load_nodes, run_nodes, summarize_nodes
    from brainlsap.report import table_text

    graph = load_nodes(options.dataset, options.data, download=options.download)
    print(
        f"{graph.name}: {graph.n_nodes} nodes, {graph.n_edges} edges, "
        f"{graph.n_classes} classes, {graph.n_features} features",
        flush=True,
    )
    models = list(NODE_MODELS) if options.models == ["all"] else options.models
    public = "60-20-20" if graph.public_split is None else "public"
    runs = run_nodes(
        graph,
        models,
        n_seeds=options.seeds,
        split=options.split or public,
        variant=options.variant,
        n_epochs=options.n_epochs,
        out=options.out,
        verbose=True,
    )
    print(table_text(summarize_nodes(runs).round(2)), end="")
    if options.out:
        print(f"Runs: {options.out}")
