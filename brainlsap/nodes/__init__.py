"""The method on citation and co-purchase graphs; the brain half does not need it."""

from brainlsap.nodes.baselines import NODE_BASELINES, NodeBaseline
from brainlsap.nodes.benchmark import (
    NODE_MODELS,
    node_model,
    run_nodes,
    summarize_nodes,
)
from brainlsap.nodes.classifier import LSAPNodeClassifier
from brainlsap.nodes.graphs import (
    NODE_DATASETS,
    NodeGraph,
    NodeSplit,
    load_nodes,
    make_node_split,
    read_gnn_benchmark,
    read_node_split,
    read_planetoid,
    split_by_share,
    split_per_class,
)

__all__ = [
    "NODE_BASELINES",
    "NODE_DATASETS",
    "NODE_MODELS",
    "LSAPNodeClassifier",
    "NodeBaseline",
    "NodeGraph",
    "NodeSplit",
    "load_nodes",
    "make_node_split",
    "node_model",
    "read_gnn_benchmark",
    "read_node_split",
    "read_planetoid",
    "run_nodes",
    "split_by_share",
    "split_per_class",
    "summarize_nodes",
]
