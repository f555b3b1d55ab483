"""The method on citation and co-purchase graphs; the brain half does not need it."""

from brainlsap.nodes.classifier import LSAPNodeClassifier, run_nodes, summarize_nodes
from brainlsap.nodes.graphs import (
    NODE_MODELS,
    NodeGraph,
    NodeSplit,
    load_nodes,
    make_node_split,
    read_gnn_benchmark,
    read_planetoid,
    split_per_class,
)

__all__ = [
    "NODE_MODELS",
    "LSAPNodeClassifier",
    "NodeGraph",
    "NodeSplit",
    "load_nodes",
    "make_node_split",
    "read_gnn_benchmark",
    "read_planetoid",
    "run_nodes",
    "split_per_class",
    "summarize_nodes",
]
