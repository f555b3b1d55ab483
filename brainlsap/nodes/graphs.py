"""Citation and co-purchase graphs: their files, and which nodes are for what."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from brainlsap.arrays import check_choice
from brainlsap.exceptions import FileFormatError, ParameterError, SplitError
from brainlsap.nodes.settings import TABLES

NODE_DATASETS: dict[str, dict[str, Any]] = TABLES["datasets"]
_ALIASES = {"cs": "coauthor-cs", "photo": "amazon-photo"}
_ALIASES["computers"] = "amazon-computers"
NODE_SPLITS = ("public", "per-class", "60-20-20")

# The commit that the checksums in planetoid_sha256.txt belong to.
_PLANETOID = (
    "https://raw.githubusercontent.com/kimiyoung/planetoid/"
    "af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/"
)
_GNN_BENCHMARK = "https://github.com/shchur/gnn-benchmark/tree/master/data/npz"
_PARTS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Three sets of nodes that share none.

    Parameters
    ----------
    train, validation, test : bool arrays of shape (n_nodes,)
        For learning, for choosing the epoch, and for the score at the end.

    Raises
    ------
    SplitError
        Where a set is empty, no mask, or shares a node with another.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def __post_init__(self) -> None:
        masks = {part: np.asarray(getattr(self, part)) for part in _PARTS}
        for part, mask in masks.items():
            if mask.dtype != bool or mask.ndim != 1 or len(mask) != len(masks["train"]):
                raise SplitError(
                    f"{part} must be a mask of shape (n_nodes,) of true and false, "
                    f"got {mask.dtype} of shape {mask.shape}."
                )
            if not mask.any():
                raise SplitError(f"{part} holds no node.")
        for first, second in (_PARTS[:2], _PARTS[1:], _PARTS[::2]):
            shared = masks[first] & masks[second]
            if shared.any():
                raise SplitError(
                    f"{int(shared.sum())} node(s) stand in both {first} and {second}, "
                    f"the first is node {int(shared.argmax())}; masks must not overlap."
                )

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Nodes for training, validation and test."""
        return tuple(int(getattr(self, part).sum()) for part in _PARTS)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """One graph whose nodes have features and classes.

    Parameters
    ----------
    name : str
        Of the data set.
    adjacency : SciPy CSR array of shape (n_nodes, n_nodes)
        Simple: symmetric, 0 and 1, no self loops.
    features : SciPy CSR array of shape (n_nodes, n_features)
        float32.
    labels : int array of shape (n_nodes,)
        Class of every node, -1 where it has none.
    class_names : tuple of str
        In the order of their codes.
    n_listed_edges : int
        As the files list them, duplicates and self loops included.
    public_split : NodeSplit, optional
        The one that comes with the data set.
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


def load_nodes(
    name: str,
    data: str | Path | None = None,
    *,
    download: bool = False,
    check: bool = True,
) -> NodeGraph:
    """Load one of the paper's six node data sets.

    Parameters
    ----------
    name : str
        cora, citeseer, pubmed, amazon-computers, amazon-photo or coauthor-cs.
    data : str or Path, optional
        Folder of its files, or that of `planetoid` and `gnn_npz` folders; by default
        `~/.cache/brainlsap/nodes`.
    download : bool
        Fetch Planetoid files that are not there, each checked by its SHA-256; needs
        internet and the `download` extra.
    check : bool
        Compare the counts with the paper's Table 1.

    Returns
    -------
    NodeGraph

    Raises
    ------
    ParameterError
        For an unknown name.
    FileFormatError
        For files that are not there, cannot be read or are others.
    """
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    key = _ALIASES.get(key, key)
    check_choice("name", key, NODE_DATASETS)
    base = Path(data or Path.home() / ".cache" / "brainlsap" / "nodes")
    file = NODE_DATASETS[key].get("file", f"ind.{key}.x")
    places = [base, base / "planetoid", base / "gnn_npz"]
    place = next((one for one in places if (one / file).is_file()), None)
    if place is None and download and file.startswith("ind."):
        place = _download(key, base)
    if place is None:
        raise FileFormatError(
            f"{base} does not hold {file}; give its folder as data=, or download=True "
            f"for Planetoid files; the others are at {_GNN_BENCHMARK}."
        )
    if file.startswith("ind."):
        graph = read_planetoid(place, key)
    else:
        graph = read_gnn_benchmark(place / file, key)
    found = [graph.n_nodes, graph.n_listed_edges, graph.n_classes, graph.n_features]
    if check and found != NODE_DATASETS[key]["counts"]:
        raise FileFormatError(
            f"{key} has {found} nodes, edges, classes and features; the paper's table "
            f"says {NODE_DATASETS[key]['counts']}. The files are others; check=False "
            "loads them all the same."
        )
    return graph


def _download(name: str, folder: Path) -> Path:
    try:
        import pooch

        store = pooch.create(path=folder, base_url=_PLANETOID, retry_if_failed=1)
        store.load_registry(Path(__file__).with_name("planetoid_sha256.txt"))
        for file in store.registry:
            if f"ind.{name}." in file:
                store.fetch(file)
    except ImportError:
        raise ParameterError(
            "downloading needs the pooch package: pip install pooch. Or give the "
            "folder that holds the files as data=."
        ) from None
    except (OSError, ValueError) as error:
        raise FileFormatError(
            f"{name} could not be downloaded from {_PLANETOID} "
            f"({str(error).splitlines()[0]}). Get the files by hand and give their "
            "folder as data=."
        ) from None
    return folder


class _Matrix:
    """Stands for SciPy's CSR matrix in a pickle: takes its arrays as attributes."""


# All that a pickle may name, in any module; each is something harmless of ours.
_ALLOWED: dict[str, Any] = {
    "_reconstruct": lambda *_: np.zeros(0),  # an array; its state comes later
    "_reconstructor": lambda kind, *_: kind(),
    "csr_matrix": _Matrix,
    "defaultdict": lambda *_: {},
    "dtype": np.dtype,
    "encode": lambda text, _: text.encode("latin-1"),
    "scalar": lambda kind, content: np.frombuffer(content, kind)[0],
    **dict.fromkeys(("ndarray", "object", "list")),
}


class _ArrayUnpickler(pickle.Unpickler):
    """Knows nothing but arrays, CSR matrices, dictionaries and lists."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name here."""
        if name not in _ALLOWED:
            raise pickle.UnpicklingError(
                f"it names {module}.{name}; only arrays, CSR matrices, dictionaries "
                "and lists are read, and nothing of it was run"
            )
        return _ALLOWED[name]


def _unpickle(path: Path) -> Any:
    """Read a pickle of arrays without running anything that is in it."""
    try:
        with path.open("rb") as file:
            found = _ArrayUnpickler(file, encoding="latin1").load()
        if isinstance(found, _Matrix):
            names = ("data", "indices", "indptr", "_shape")
            return _matrix(*(getattr(found, name) for name in names))
        return found
    except FileNotFoundError:
        raise FileFormatError(
            f"{path} is not there; a Planetoid data set has eight files ind.NAME.*."
        ) from None
    except Exception as error:  # a damaged pickle can raise whatever there is
        raise FileFormatError(
            f"{path} cannot be read as a pickle of arrays ({error}); get it again."
        ) from None


def _matrix(
    data: np.ndarray, indices: np.ndarray, pointers: np.ndarray, shape: Any
) -> sparse.csr_array:
    """Make a matrix of its three arrays, and check it whole."""
    shape = tuple(int(n) for n in shape)
    matrix = sparse.csr_array((data, indices, pointers), shape=shape)
    if (np.diff(matrix.indptr) < 0).any():  # SciPy's check passes these
        raise ValueError("its pointers do not ascend")
    matrix.check_format(full_check=True)
    if not np.isfinite(matrix.data).all():
        raise ValueError("it holds NaN or infinite values")
    return matrix


def read_planetoid(folder: str | Path, name: str) -> NodeGraph:
    """Read the eight files `ind.NAME.*` of a Planetoid data set.

    They are pickles of Python 2; only arrays and matrices in them are read. Test nodes
    that the files leave out (15 of Citeseer) get no features and no label.

    Parameters
    ----------
    folder : str or Path
        Where they are.
    name : str
        As in the files' names.

    Returns
    -------
    NodeGraph
        With its public split.

    Raises
    ------
    FileFormatError
        Naming the file that is not there, or that does not fit.
    """
    base = Path(folder) / f"ind.{name}"
    x, y, tx, ty, allx, ally, graph = (
        _unpickle(base.with_name(f"{base.name}.{part}"))
        for part in ("x", "y", "tx", "ty", "allx", "ally", "graph")
    )
    index = base.with_name(f"{base.name}.test.index")
    try:
        test = np.array([int(n) for n in index.read_text("ascii").split()], np.int64)
    except (OSError, ValueError, OverflowError) as error:
        raise FileFormatError(
            f"{index} must hold one node number a line ({error})."
        ) from None
    try:
        n_known, n_train = allx.shape[0], x.shape[0]
        shapes = [one.shape for one in (x, tx, allx, y, ty, ally)]
        if len({s[1] for s in shapes[:3]}) > 1 or len({s[1] for s in shapes[3:]}) > 1:
            raise ValueError("files differ in the number of features or classes")
        if [s[0] for s in shapes[:3]] != [s[0] for s in shapes[3:]]:
            raise ValueError("files of features and of classes differ in their nodes")
        if len(np.unique(test)) != tx.shape[0] or len(test) != tx.shape[0]:
            raise ValueError(f"test.index must list each of {tx.shape[0]} nodes once")
        if test.min() < n_known or test.max() - n_known >= 2 * len(test):
            raise ValueError(
                f"test.index lists nodes {test.min()} to {test.max()}; those from "
                f"{n_known} on were expected"
            )
        n_nodes = int(test.max()) + 1
        one_hot = np.zeros((n_nodes, ally.shape[1]))
        one_hot[:n_known], one_hot[test] = ally, ty
        place = sparse.csr_array(
            (np.ones(len(test), np.float32), (test - n_known, np.arange(len(test)))),
            shape=(n_nodes - n_known, len(test)),
        )
        stacked = [sparse.csr_array(allx, dtype=np.float32), place @ tx]
        features = sparse.csr_array(sparse.vstack(stacked), dtype=np.float32)
        features.sort_indices()
        ends = [(one, other) for one, others in graph.items() for other in others]
        pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
        if not len(pairs) or pairs.min() < 0 or pairs.max() >= n_nodes:
            raise ValueError(f"the graph must join nodes from 0 to {n_nodes - 1}")
        listed = sparse.csr_array(
            (np.ones(len(pairs)), pairs.T), shape=(n_nodes, n_nodes)
        )
    except Exception as error:  # whatever parts of another kind or shape raise
        raise FileFormatError(f"{base}.*: {error}.") from None
    labels = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)
    masks = np.zeros((3, n_nodes), bool)
    masks[0, :n_train] = True
    masks[1, n_train : min(n_train + 500, n_known)] = True
    masks[2, test] = True
    masks &= labels >= 0
    return NodeGraph(
        name,
        _simple_graph(listed),
        features,
        labels,
        tuple(f"class {code}" for code in range(ally.shape[1])),
        int(listed.sum()) // 2,
        NodeSplit(*masks) if masks.any(axis=1).all() else None,
    )


def read_gnn_benchmark(path: str | Path, name: str | None = None) -> NodeGraph:
    """Read a graph in the layout of the gnn-benchmark .npz files.

    Parameters
    ----------
    path : str or Path
        With `adj_*` and `attr_*` (the arrays of CSR matrices), `labels`, and
        `class_names` where they are text. Pickled objects are never opened.
    name : str, optional
        Of the data set; by default the file's.

    Returns
    -------
    NodeGraph

    Raises
    ------
    FileFormatError
        For arrays that are not there or do not fit.
    """
    parts = {}
    for prefix in ("adj", "attr"):
        names = [f"{prefix}_{one}" for one in ("data", "indices", "indptr", "shape")]
        arrays = [_read_numbers(path, one) for one in names]
        try:
            parts[prefix] = _matrix(*arrays)
        except (IndexError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"{path}: {prefix}_* make no CSR matrix: {error}."
            ) from None
    listed, features = parts["adj"], parts["attr"].astype(np.float32)
    labels = _read_numbers(path, "labels")
    n_nodes = labels.size
    if not (listed.shape == (n_nodes, n_nodes) and features.shape[0] == n_nodes):
        raise FileFormatError(
            f"{path}: graph {listed.shape}, features {features.shape} and {n_nodes} "
            "labels do not belong to the same nodes."
        )
    if not np.array_equal(labels, np.floor(labels)) or labels.max() >= max(n_nodes, 2):
        raise FileFormatError(
            f"{path}: 'labels' must be one whole number for every node, from 0."
        )
    n_classes = int(labels.max()) + 1
    class_names = tuple(f"class {code}" for code in range(n_classes))
    try:
        with np.load(path, allow_pickle=False) as arrays:
            text = arrays["class_names"].astype(str)
            class_names = tuple(text) if len(text) == n_classes else class_names
    except (KeyError, ValueError):  # names are worth having; numbers do without
        pass
    graph = _simple_graph(listed)
    return NodeGraph(
        name or Path(path).stem,
        graph,
        features,
        labels.astype(np.int64),
        class_names,
        graph.nnz // 2,
    )


def _simple_graph(listed: sparse.sparray) -> sparse.csr_array:
    """Return listed edges as a simple graph: symmetric, 0 and 1, no self loops."""
    both = sparse.csr_array(abs(listed) + abs(listed).T)
    both.setdiag(0)
    both.eliminate_zeros()
    both.sort_indices()
    both.data = np.ones(both.nnz, np.float32)
    return both.astype(np.float32)


def make_node_split(
    graph: NodeGraph, split: str | Path = "public", random_state: int = 0
) -> NodeSplit:
    """Return a split of a graph by name, or from a file.

    Parameters
    ----------
    graph : NodeGraph
        With labels.
    split : {"public", "per-class", "60-20-20"} or path of an .npz file
        That of the data set; 20 training nodes of each class; shares of each class;
        or :func:`read_node_split`.
    random_state : int
        Seed of the two that are drawn.

    Returns
    -------
    NodeSplit

    Raises
    ------
    ParameterError
        For an unknown name, or where the graph has no public split.
    SplitError
        Where there are too few nodes.
    """
    if str(split).endswith(".npz"):
        return read_node_split(split, graph.n_nodes)
    check_choice("split", str(split), NODE_SPLITS)
    if split == "per-class":
        return split_per_class(graph.labels, random_state=random_state)
    if split == "60-20-20":
        return split_by_share(graph.labels, random_state=random_state)
    if graph.public_split is None:
        raise ParameterError(
            f"{graph.name} has no public split; use split='per-class' or '60-20-20'."
        )
    return graph.public_split


def split_per_class(
    labels: np.ndarray,
    n_per_class: int = 20,
    n_validation: int = 500,
    n_test: int | None = 1000,
    random_state: int = 0,
) -> NodeSplit:
    """Draw so many training nodes of every class, the rest from all others.

    Parameters
    ----------
    labels : int array of shape (n_nodes,)
        -1 where a node has no class; it is in no set.
    n_per_class, n_validation, n_test : int
        Nodes to draw; `n_test=None` takes all that are left.
    random_state : int
        Seed.

    Returns
    -------
    NodeSplit

    Raises
    ------
    SplitError
        Where there are too few nodes.
    """
    rng = np.random.default_rng(random_state)
    labels = np.asarray(labels)
    masks = np.zeros((3, len(labels)), bool)
    for code in np.unique(labels[labels >= 0]):
        members = np.flatnonzero(labels == code)
        if len(members) <= n_per_class:
            raise SplitError(
                f"class {code} has {len(members)} nodes; more than {n_per_class} are "
                "needed to train on so many. Lower n_per_class."
            )
        masks[0, rng.choice(members, n_per_class, replace=False)] = True
    others = rng.permutation(np.flatnonzero((labels >= 0) & ~masks[0]))
    wanted = n_validation + (1 if n_test is None else n_test)
    if len(others) < wanted:
        raise SplitError(
            f"{len(others)} nodes are left for validation and test, {wanted} are "
            "needed. Lower n_validation or n_test."
        )
    masks[1, others[:n_validation]] = True
    masks[2, others[n_validation : None if n_test is None else wanted]] = True
    return NodeSplit(*masks)


def split_by_share(
    labels: np.ndarray,
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2),
    random_state: int = 0,
) -> NodeSplit:
    """Draw shares of every class for training, validation and test.

    Parameters
    ----------
    labels : int array of shape (n_nodes,)
        -1 where a node has no class; it is in no set.
    shares : tuple of float
        Summing to 1.
    random_state : int
        Seed.

    Returns
    -------
    NodeSplit

    Raises
    ------
    SplitError
        For shares that do not sum to 1.
    """
    if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
        raise SplitError(
            f"shares must be three positive numbers that sum to 1, got {shares}."
        )
    rng = np.random.default_rng(random_state)
    labels = np.asarray(labels)
    masks = np.zeros((3, len(labels)), bool)
    for code in np.unique(labels[labels >= 0]):
        members = rng.permutation(np.flatnonzero(labels == code))
        ends = np.round(np.cumsum(shares[:2]) * len(members)).astype(int)
        for mask, drawn in zip(masks, np.split(members, ends), strict=True):
            mask[drawn] = True
    return NodeSplit(*masks)


def read_node_split(path: str | Path, n_nodes: int) -> NodeSplit:
    """Read a split from an .npz file with `train_mask`, `val_mask`, `test_mask`.

    Parameters
    ----------
    path : str or Path
        Of masks with one 0 or 1 for every node.
    n_nodes : int
        Of the graph.

    Returns
    -------
    NodeSplit

    Raises
    ------
    FileFormatError, SplitError
        Naming the file.
    """
    names = ("train_mask", "val_mask", "test_mask")
    masks = [_read_numbers(path, name) for name in names]
    for part, mask in zip(_PARTS, masks, strict=True):
        if mask.shape != (n_nodes,) or not np.isin(mask, (0, 1)).all():
            raise SplitError(
                f"{path}: {part} must be {n_nodes} values of 0 and 1, one for every "
                f"node, got shape {mask.shape}."
            )
    try:
        return NodeSplit(*(mask.astype(bool) for mask in masks))
    except SplitError as error:
        raise SplitError(f"{path}: {error}") from None


def _read_numbers(path: str | Path, name: str) -> np.ndarray:
    """Read one numeric array of an .npz file; nothing pickled is opened."""
    try:
        # numpy leaves its own file open where the archive is damaged
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = arrays[name]
        if found.dtype.kind not in "biuf":
            raise TypeError(f"it holds {found.dtype}")
    except KeyError:
        raise FileFormatError(f"{path} has no array {name!r}.") from None
    except FileNotFoundError:
        raise FileFormatError(f"{path} is not there.") from None
    except Exception as error:  # of zip, zlib and NumPy's header; of every kind
        raise FileFormatError(
            f"{path}: {name!r} cannot be read as an array of numbers ({error}); "
            "pickled objects are never opened."
        ) from None
    return found
