"""Planetoid and gnn-benchmark files become a :class:`NodeGraph`."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from brainlsap.data.named_arrays import is_text
from brainlsap.data.node_graph import (
    UNLABELLED,
    NodeGraph,
    check_node_arrays,
    simple_graph,
)
from brainlsap.data.node_splits import NodeSplit, read_numbers
from brainlsap.data.restricted_pickle import read_restricted_pickle
from brainlsap.data.sparse_parts import matrix_of_parts
from brainlsap.exceptions import FileFormatError

# Nodes after the training nodes that the public split keeps for validation.
_N_VALIDATION = 500


def read_planetoid(folder: str | Path, name: str) -> NodeGraph:
    """Read the eight files `ind.NAME.*` of a Planetoid data set.

    Test nodes that the files leave out (15 of Citeseer, without any edge) get rows
    of zeros and no label, and stand in no set of the split.

    Parameters
    ----------
    folder : str or Path
        Where the files are.
    name : str
        As in their names, such as `cora`.

    Returns
    -------
    NodeGraph
        With the public split: the first labelled nodes train, the next 500 choose,
        those of `test.index` are scored.

    Raises
    ------
    FileFormatError
        If a file is missing, truncated, no pickle of arrays, or does not fit.

    Examples
    --------
    >>> read_planetoid("nowhere", "cora")
    Traceback (most recent call last):
    brainlsap.exceptions.FileFormatError: nowhere/ind.cora.x is not there...
    """
    base = Path(folder)
    paths = {
        part: base / f"ind.{name}.{part}"
        for part in ("x", "y", "tx", "ty", "allx", "ally", "graph")
    }
    index_path = base / f"ind.{name}.test.index"
    for path in (*paths.values(), index_path):
        if not path.is_file():
            raise FileFormatError(
                f"{path} is not there; a Planetoid data set has eight files "
                f"ind.{name}.*."
            )
    found = {part: read_restricted_pickle(path) for part, path in paths.items()}
    for part in ("x", "tx", "allx"):
        found[part] = _matrix(found[part], paths[part])
    for part in ("y", "ty", "ally"):
        found[part] = _one_hot(found[part], paths[part])
    test = _test_index(index_path)
    _check_parts(found, test, base, name)
    features, labels = _assemble(found, test)
    listed = _listed_edges(found["graph"], len(labels), paths["graph"])
    check_node_arrays(base / f"ind.{name}", listed, features, labels)
    n_train = len(found["y"])
    return NodeGraph(
        name,
        simple_graph(listed),
        features,
        labels,
        tuple(f"class {code}" for code in range(found["ally"].shape[1])),
        int(listed.sum()) // 2,
        _public_split(labels, n_train, len(found["ally"]), test),
    )


def _matrix(found: Any, path: Path) -> sparse.csr_array:
    if not sparse.issparse(found) and not (
        isinstance(found, np.ndarray) and found.ndim == 2
    ):
        raise FileFormatError(
            f"{path} must hold a matrix of features, got {type(found).__name__}."
        )
    return sparse.csr_array(found, dtype=np.float32)


def _one_hot(found: Any, path: Path) -> np.ndarray:
    found = found.toarray() if sparse.issparse(found) else found
    if not isinstance(found, np.ndarray) or found.ndim != 2:
        raise FileFormatError(
            f"{path} must hold one row of 0 and 1 for every node's class, got "
            f"{type(found).__name__}."
        )
    return found


def _test_index(path: Path) -> np.ndarray:
    try:
        numbers = [int(line) for line in path.read_text(encoding="ascii").split()]
        test = np.array(numbers, np.int64)
    except (ValueError, OverflowError) as error:
        raise FileFormatError(
            f"{path} must hold one node number a line ({error})."
        ) from None
    if not len(test) or test.min() < 0 or len(np.unique(test)) != len(test):
        raise FileFormatError(
            f"{path} must hold node numbers that are not negative, each once; got "
            f"{len(test)} numbers, {len(np.unique(test))} different."
        )
    return test


def _check_parts(
    found: dict[str, Any], test: np.ndarray, base: Path, name: str
) -> None:
    """Raise unless the parts describe one set of nodes."""
    for features, classes in (("x", "y"), ("tx", "ty"), ("allx", "ally")):
        if found[features].shape[0] != len(found[classes]):
            raise FileFormatError(
                f"{base}: ind.{name}.{features} has {found[features].shape[0]} nodes, "
                f"ind.{name}.{classes} has {len(found[classes])}."
            )
    widths = {found[part].shape[1] for part in ("x", "tx", "allx")}
    kinds = {found[part].shape[1] for part in ("y", "ty", "ally")}
    if len(widths) > 1 or len(kinds) > 1:
        raise FileFormatError(
            f"{base}: the files of {name} differ in the number of features "
            f"({sorted(widths)}) or classes ({sorted(kinds)})."
        )
    if len(test) != found["tx"].shape[0] or test.min() < found["allx"].shape[0]:
        raise FileFormatError(
            f"{base}/ind.{name}.test.index lists {len(test)} nodes from {test.min()} "
            f"on; {found['tx'].shape[0]} were expected, from "
            f"{found['allx'].shape[0]} on."
        )
    if test.max() - found["allx"].shape[0] >= 2 * len(test):
        raise FileFormatError(
            f"{base}/ind.{name}.test.index leaves out more nodes than it lists (up "
            f"to {test.max()})."
        )


def _assemble(
    found: dict[str, Any], test: np.ndarray
) -> tuple[sparse.csr_array, np.ndarray]:
    """Put the test nodes in their places; those left out get zeros, no label."""
    first, n_nodes = found["allx"].shape[0], int(test.max()) + 1
    rows = np.zeros(n_nodes - first, bool)
    rows[test - first] = True
    place = sparse.csr_array(
        (np.ones(len(test), np.float32), (test - first, np.arange(len(test)))),
        shape=(n_nodes - first, len(test)),
    )
    features = sparse.csr_array(sparse.vstack([found["allx"], place @ found["tx"]]))
    features.sort_indices()
    one_hot = np.zeros((n_nodes, found["ally"].shape[1]))
    one_hot[:first] = found["ally"]
    one_hot[test] = found["ty"]
    labels = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNLABELLED)
    return features, labels


def _listed_edges(graph: Any, n_nodes: int, path: Path) -> sparse.csr_array:
    """Return how often each edge is listed, duplicates and self loops with them."""
    if not isinstance(graph, dict) or not all(
        isinstance(one, list) for one in graph.values()
    ):
        raise FileFormatError(
            f"{path} must hold a dictionary of each node's neighbours, got "
            f"{type(graph).__name__}."
        )
    flat = [neighbour for one in graph.values() for neighbour in one]
    named = [*graph, *flat]
    if not flat or not all(isinstance(one, int | np.integer) for one in named):
        raise FileFormatError(f"{path}: nodes must be numbers, and some be joined.")
    # as Python's numbers: one of a stranger may not fit into 64 bits
    if min(named) < 0 or max(named) >= n_nodes:
        wrong = min(named) if min(named) < 0 else max(named)
        raise FileFormatError(
            f"{path} joins node {wrong}, but the features have {n_nodes} nodes."
        )
    rows = np.repeat(
        np.array(list(graph), np.int64), [len(one) for one in graph.values()]
    )
    columns = np.array(flat, np.int64)
    ones = np.ones(len(rows))
    return sparse.csr_array((ones, (rows, columns)), shape=(n_nodes, n_nodes))


def _public_split(
    labels: np.ndarray, n_train: int, n_all: int, test: np.ndarray
) -> NodeSplit | None:
    masks = np.zeros((3, len(labels)), bool)
    masks[0, :n_train] = True
    masks[1, n_train : min(n_train + _N_VALIDATION, n_all)] = True
    masks[2, test] = True
    masks &= labels >= 0
    return NodeSplit(*masks) if masks.any(axis=1).all() else None


def read_gnn_benchmark(path: str | Path, name: str | None = None) -> NodeGraph:
    """Read a graph in the key layout of the gnn-benchmark .npz files.

    The stored graph may be directed: it is symmetrised, set to 0 and 1, and self
    loops are dropped. Pickled arrays are never opened; names of classes that are
    pickled are replaced by numbers.

    Parameters
    ----------
    path : str or Path
        The file.
    name : str, optional
        Of the data set; by default that of the file.

    Returns
    -------
    NodeGraph
        Without a public split: there is none.

    Raises
    ------
    FileFormatError
        If the file is no such .npz, holds objects, or parts do not fit.

    Examples
    --------
    >>> read_gnn_benchmark("nowhere.npz")
    Traceback (most recent call last):
    brainlsap.exceptions.FileFormatError: nowhere.npz is not there.
    """
    listed = _stored_matrix(path, "adj")
    features = _stored_matrix(path, "attr").astype(np.float32)
    labels = read_numbers(path, "labels")
    if labels.ndim != 1 or not np.array_equal(labels, np.floor(labels)):
        raise FileFormatError(
            f"{path}: 'labels' must be one whole number for every node, got shape "
            f"{labels.shape} of type {labels.dtype}."
        )
    if not labels.size or labels.max() >= max(len(labels), 2):
        raise FileFormatError(
            f"{path}: 'labels' must number the classes from 0, got "
            f"{labels.max() if labels.size else 'none'} for {len(labels)} nodes."
        )
    labels = labels.astype(np.int64)
    check_node_arrays(path, listed, features, labels)
    graph = simple_graph(listed)
    return NodeGraph(
        name or Path(path).stem,
        graph,
        features,
        labels,
        _class_names(path, int(labels.max()) + 1),
        graph.nnz // 2,
    )


def _stored_matrix(path: str | Path, prefix: str) -> sparse.csr_array:
    data, indices, pointers, shape = (
        read_numbers(path, f"{prefix}_{part}") for part in _CSR
    )
    try:
        return matrix_of_parts(data, indices, pointers, shape.tolist())
    except (IndexError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{path}: {prefix}_* make no CSR matrix ({error})."
        ) from None


_CSR = ("data", "indices", "indptr", "shape")


def _class_names(path: str | Path, n_classes: int) -> tuple[str, ...]:
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = arrays["class_names"]
        names = tuple(map(str, found)) if is_text(found) else ()
    except Exception:  # names are worth having; numbers do without
        names = ()
    if len(names) != n_classes:
        return tuple(f"class {code}" for code in range(n_classes))
    return names
