"""One graph whose nodes have features and classes."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from brainlsap.data.node_splits import NodeSplit
from brainlsap.exceptions import FileFormatError

UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """A graph, the features of its nodes and their classes.

    Parameters
    ----------
    name : str
        Of the data set.
    adjacency : SciPy CSR array of shape (n_nodes, n_nodes)
        Symmetric, 1 where two nodes are joined, no self loops; float32.
    features : SciPy CSR array of shape (n_nodes, n_features)
        As the files hold them; float32.
    labels : int array of shape (n_nodes,)
        Class of every node, -1 where the files hold none.
    class_names : tuple of str
        In the order of the labels.
    n_listed_edges : int
        As published tables count them: the entries of the files, duplicates and
        self loops with them.
    public_split : NodeSplit or None
        The split that comes with the files.

    Examples
    --------
    >>> graph = NodeGraph(
    ...     "pair",
    ...     sparse.csr_array(np.array([[0, 1.0], [1, 0]])),
    ...     sparse.csr_array(np.eye(2)),
    ...     np.array([0, 1]),
    ...     ("a", "b"),
    ... )
    >>> graph.n_nodes, graph.n_edges, graph.n_classes
    (2, 1, 2)
    """

    name: str
    adjacency: sparse.csr_array
    features: sparse.csr_array
    labels: np.ndarray
    class_names: tuple[str, ...]
    n_listed_edges: int = 0
    public_split: NodeSplit | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges, each once, without self loops."""
        return self.adjacency.nnz // 2

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.features.shape[1]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def isolated(self) -> np.ndarray:
        """Nodes without any edge, a mask of shape (n_nodes,)."""
        return np.diff(self.adjacency.indptr) == 0


def simple_graph(listed: sparse.sparray) -> sparse.csr_array:
    """Return listed edges as a simple graph: symmetric, 0 and 1, no self loops."""
    both = sparse.csr_array(abs(listed) + abs(listed).T)
    both.setdiag(0)
    both.eliminate_zeros()
    both.sort_indices()
    both.data = np.ones(both.nnz, np.float32)
    return both.astype(np.float32)


def check_node_arrays(
    path: object,
    adjacency: sparse.sparray,
    features: sparse.sparray,
    labels: np.ndarray,
) -> None:
    """Raise unless graph, features and labels belong to the same nodes."""
    n_nodes = len(labels)
    square = adjacency.shape[0] == adjacency.shape[1]
    if not (square and adjacency.shape[0] == n_nodes == features.shape[0]):
        raise FileFormatError(
            f"{path}: graph {adjacency.shape}, features {features.shape} and "
            f"{n_nodes} labels do not belong to the same nodes."
        )
    for what, values in (("edges", adjacency.data), ("features", features.data)):
        if not np.isfinite(values).all():
            raise FileFormatError(f"{path}: {what} hold NaN or infinite values.")
