"""Graphs of nodes: their files, which nodes are for what, and settings of a fit.

`settings.json` holds, by data set, what the files hold (nodes; edges, each once: the
paper's Table 1 counts those of Planetoid as listed; classes, features), the `variant`
of how LSAP's scales are learned, and settings: the paper's hyperparameters (its
supplement; its b, 1.41 to 1.65, lies below the largest eigenvalue: ours is 2, where the
bound holds), ours (`lsap`; chosen on validation nodes of the public split, those of the
60/20/20 sets on Amazon Photo and Computers), and each baseline's where they differ from
those of its publication for Cora, which stand in `networks`, with the `title` of models
that brains are not compared with. An entry adds to the one that it is `like`. Features
of hundreds of words a node are not divided by their sum, which would make them too
small to learn from.
"""

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from scipy import sparse

from brainlsap.exceptions import (
    FileFormatError,
    SplitError,
    check_choice,
    convert_reading_errors,
)
from brainlsap.graph.kernels import find_largest_accurate_scale
from brainlsap.model.network import NETWORKS
from brainlsap.model.settings import (
    PAPER_DEGREES,
    HeatSettings,
    check_settings,
    resolve_kernel_settings,
)
from brainlsap.text import option_text

# The commit that the checksums in planetoid_sha256.txt belong to.
_PLANETOID = (
    "https://raw.githubusercontent.com/kimiyoung/planetoid/"
    "af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/"
)
_CSR = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True)
class NodeSettings(HeatSettings):
    """Every setting of one fit; see `LSAPNodeClassifier` for what each means."""

    tolerance: float = 1e-3
    max_exact_nodes: int = 8000
    scale_mode: Literal["node", "global", "frozen"] = "node"
    scale_signal: Literal["labels", "consistency", "validation"] = "consistency"
    initial_scale: float | None = None
    head: Literal["linear", "convolution"] = "linear"
    hidden_units: int = 64
    dropout: float = 0.5
    input_dropout: float = 0.5
    node_dropout: float = 0.5
    n_views: int = 2
    consistency: float = 1.0
    temperature: float = 0.5
    self_loops: bool = True
    normalize: Literal["row", "none"] = "row"
    weight_decay: float = 5e-4
    n_epochs: int = 300
    patience: int = 100


_TABLES = json.loads(Path(__file__).with_name("settings.json").read_text("utf-8"))


def _complete_settings_by_name(settings_by_name: dict[str, Any]) -> dict[str, Any]:
    """Return entries, each completed by the earlier one that its `like` names."""
    complete_settings_by_name: dict[str, Any] = {}
    for entry_name, value_by_setting in settings_by_name.items():
        complete_settings_by_name[entry_name] = (
            complete_settings_by_name.get(value_by_setting.pop("like", ""), {})
            | value_by_setting
        )
    return complete_settings_by_name


def _pop_title_by_network(settings_by_network: dict[str, Any]) -> dict[str, str]:
    """Return titles of the networks that are models, and remove them from `networks`.

    A network that brains are compared with, too, has its title there. One without any
    title only holds settings for others.
    """
    title_by_network: dict[str, str] = {}
    for network_name, value_by_setting in settings_by_network.items():
        network_title = value_by_setting.pop("title", "")
        if network_name in NETWORKS:
            network_title = NETWORKS[network_name].title
        if network_title:
            title_by_network[network_name] = network_title
    return title_by_network


NODE_MODELS = _pop_title_by_network(_TABLES["networks"])
"""Printed names of the models, as in the paper, by the names that users give."""
NODE_DATASETS, _NETWORKS = map(
    _complete_settings_by_name, (_TABLES["datasets"], _TABLES["networks"])
)
# How LSAP's scales are learned without any label of a test node.
VARIANTS: dict[str, dict[str, Any]] = _TABLES["variants"]


def resolve_scale_method_name(
    model: str, variant_name: str = "chosen", dataset: str = ""
) -> str:
    """Return the method that learns a model's scales; "" without own scales."""
    if "kernel" not in _NETWORKS[model]:
        return ""
    if variant_name != "chosen":
        return variant_name
    return str(NODE_DATASETS.get(dataset, {}).get("variant", "consistency"))


def resolve_node_settings(
    model: str, variant: str, options: dict[str, Any], dataset: str = ""
) -> NodeSettings:
    """Return the settings of a model on a data set, changed by `options` (not None)."""
    check_choice("model", model, NODE_MODELS)
    check_choice("variant", variant, (*VARIANTS, "chosen"))
    variant = resolve_scale_method_name(model, variant, dataset)
    for setting_name in options:
        check_choice(
            "option",
            setting_name,
            {setting_field.name for setting_field in fields(NodeSettings)},
        )
    dataset_settings = NODE_DATASETS.get(dataset, {})
    value_by_setting = dict(_NETWORKS[model])
    if variant == "paper":
        value_by_setting |= VARIANTS[variant] | dataset_settings.get("paper", {})
        value_by_setting["degree"] = PAPER_DEGREES.get(value_by_setting["kernel"])
    elif variant:
        value_by_setting |= VARIANTS[variant] | dataset_settings.get("lsap", {})
    else:
        value_by_setting |= dataset_settings.get(
            "baselines", {}
        ) | dataset_settings.get(model, {})
    value_by_setting |= {
        setting_name: setting_value
        for setting_name, setting_value in options.items()
        if setting_value is not None
    }
    node_settings = NodeSettings(**value_by_setting)
    check_settings(node_settings)
    return (
        _complete_scale_settings(node_settings)
        if node_settings.network == "heat"
        else node_settings
    )


def _complete_scale_settings(node_settings: Any) -> Any:
    """Fill in degree, start and largest scale, so that each is known and accurate."""
    kernel_name = node_settings.kernel
    initial_scale = node_settings.initial_scale
    max_scale = node_settings.max_scale
    resolved_max_scale = (
        max(8.0, initial_scale or 0.0) if max_scale is None else max_scale
    )
    if kernel_name != "exact":
        # signals on large graphs are float32
        max_accurate_scale = find_largest_accurate_scale(kernel_name, torch.float32)
        resolved_max_scale = min(resolved_max_scale, max_accurate_scale)
    initial_scale = (
        min(4.0, resolved_max_scale) if initial_scale is None else initial_scale
    )
    if node_settings.scale_mode == "frozen" and max_scale is None:
        resolved_max_scale = min(resolved_max_scale, max(initial_scale, 1e-3))
    return resolve_kernel_settings(
        replace(
            node_settings, initial_scale=initial_scale, max_scale=resolved_max_scale
        )
    )


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Training, validation and test nodes, without a node in two sets.

    Parameters
    ----------
    train, validation, test : bool arrays of shape (n_nodes,)
        For learning, for choosing the epoch, and for the score at the end.

    Raises
    ------
    SplitError
        If a set is empty, no mask, or shares a node with another.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def __post_init__(self) -> None:
        split_masks = np.array(list(vars(self).values()))
        has_no_empty_set = split_masks.any(axis=1).all()
        has_shared_node = (split_masks.sum(axis=0) > 1).any()
        if split_masks.dtype != bool or not has_no_empty_set or has_shared_node:
            raise SplitError(
                "train, validation and test must be disjoint boolean masks with at "
                f"least one node each; got {split_masks.dtype} masks of sizes "
                f"{self.sizes}."
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Nodes for training, validation and test."""
        return tuple(int(split_mask.sum()) for split_mask in vars(self).values())


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
    public_split : NodeSplit, optional
        The one that comes with the data set.
    """

    name: str
    adjacency: sparse.csr_array
    features: sparse.csr_array
    labels: np.ndarray
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
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1


def load_nodes(
    name: str, data: str | Path | None = None, *, download: bool = False
) -> NodeGraph:
    """Load one of the six node data sets of the paper, and check its counts.

    Parameters
    ----------
    name : str
        cora, citeseer, pubmed, amazon-computers, amazon-photo or coauthor-cs.
    data : str or Path, optional
        Folder of its files, or one above it; by default `~/.cache/brainlsap/nodes`.
    download : bool
        Fetch Planetoid files that are not there, each checked by its SHA-256; needs
        internet and the `download` extra.

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
    dataset_name = name.strip().lower().replace("_", "-").replace(" ", "-")
    # photo, computers and cs will do
    dataset_name = next(
        (dataset for dataset in NODE_DATASETS if dataset.endswith(f"-{dataset_name}")),
        dataset_name,
    )
    check_choice("name", dataset_name, NODE_DATASETS)
    data_folder = Path(data or "~/.cache/brainlsap/nodes").expanduser()
    file_name = NODE_DATASETS[dataset_name]["file"]
    is_planetoid = file_name.startswith("ind.")
    dataset_paths = [*data_folder.glob(file_name), *data_folder.glob(f"*/{file_name}")]
    if not dataset_paths and download and is_planetoid:
        dataset_paths = [_download_planetoid(dataset_name, data_folder) / file_name]
    if not dataset_paths:
        raise FileFormatError(
            f"{data_folder} does not contain {file_name}. Name the folder of this "
            f"file with {option_text('data')}, or download the Planetoid files with "
            f"{option_text('download', True)}. The other files are at "
            "github.com/shchur/gnn-benchmark."
        )
    if is_planetoid:
        graph = read_planetoid(dataset_paths[0].parent, dataset_name)
    else:
        graph = read_gnn_benchmark(dataset_paths[0], dataset_name)
    graph_counts = [
        graph.n_nodes,
        graph.n_edges,
        graph.n_classes,
        graph.features.shape[1],
    ]
    if graph_counts != NODE_DATASETS[dataset_name]["counts"]:
        raise FileFormatError(
            f"{dataset_paths[0]} is another version of {dataset_name}. The file "
            f"contains {graph_counts} nodes, edges, classes and features; expected "
            f"{NODE_DATASETS[dataset_name]['counts']}."
        )
    return graph


def _download_planetoid(dataset_name: str, data_folder: Path) -> Path:
    try:
        import pooch

        downloader = pooch.create(
            path=data_folder, base_url=_PLANETOID, retry_if_failed=1
        )
        downloader.load_registry(Path(__file__).with_name("planetoid_sha256.txt"))
        for file_name in downloader.registry:
            if f"ind.{dataset_name}." in file_name:
                downloader.fetch(file_name)
    except (ImportError, OSError, ValueError) as error:
        raise FileFormatError(
            f"{dataset_name} could not be downloaded from {_PLANETOID} ({error}). "
            "Install pooch if it is missing (pip install pooch), or name the folder "
            f"of the files with {option_text('data')}."
        ) from None
    return data_folder


class _PickledMatrix:
    """Stands for SciPy's CSR matrix in a pickle: takes its arrays as attributes."""


# All that a pickle may name, in any module; each is something harmless of ours.
_ALLOWED: dict[str, Any] = {
    "_reconstruct": lambda *_: np.zeros(0),  # an array; its state comes later
    "_reconstructor": lambda kind, *_: kind(),
    "csr_matrix": _PickledMatrix,
    "defaultdict": lambda *_: {},
    "dtype": np.dtype,
    "encode": lambda text, _: text.encode("latin-1"),
    "scalar": lambda kind, content: np.frombuffer(content, kind)[0],
    **dict.fromkeys(("ndarray", "object", "list")),
}


class _ArrayUnpickler(pickle.Unpickler):
    """Knows nothing but arrays, CSR matrices, dictionaries and lists."""

    def find_class(self, module_name: str, class_name: str) -> Any:
        """Return the object that replaces a name here."""
        if class_name not in _ALLOWED:
            raise pickle.UnpicklingError(
                f"the file refers to {module_name}.{class_name}. Only arrays, CSR "
                "matrices, dictionaries and lists are read, and no code of the "
                "file was run"
            )
        return _ALLOWED[class_name]


def _unpickle_arrays(pickle_path: Path) -> Any:
    """Read a pickle of arrays without running anything that is in it."""
    with (
        convert_reading_errors(pickle_path, "a pickle of arrays"),
        pickle_path.open("rb") as pickle_file,
    ):
        unpickled_object = _ArrayUnpickler(pickle_file, encoding="latin1").load()
        if isinstance(unpickled_object, _PickledMatrix):
            return _build_csr_matrix(
                *(
                    vars(unpickled_object)[attribute_name]
                    for attribute_name in (*_CSR[:3], "_shape")
                )
            )
        return unpickled_object


def _build_csr_matrix(*csr_arrays: np.ndarray) -> sparse.csr_array:
    """Make a matrix of the arrays that `_CSR` lists, and check it whole."""
    csr_matrix = sparse.csr_array(csr_arrays[:3], shape=tuple(map(int, csr_arrays[3])))
    csr_matrix.check_format(full_check=True)
    # SciPy's check passes pointers that fall back to 0 at the end
    if (np.diff(csr_matrix.indptr) < 0).any() or not np.isfinite(csr_matrix.data).all():
        raise ValueError(
            "the pointers of the sparse matrix do not increase, or it contains NaN or "
            "infinite values"
        )
    return csr_matrix


def read_planetoid(folder: str | Path, name: str) -> NodeGraph:
    """Read the eight files `ind.NAME.*` of a Planetoid data set.

    They are pickles of Python 2; only arrays and matrices in them are read. Test nodes
    that the files leave out (15 of Citeseer) get no features and no label.

    Parameters
    ----------
    folder : str or Path
        Folder of the files.
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
    path_prefix = f"{folder}/ind.{name}"
    file_keys = ("x", "tx", "ty", "allx", "ally", "graph")
    (
        train_features,
        test_features,
        test_one_hot_labels,
        allx_features,
        allx_one_hot_labels,
        neighbours_by_node,
    ) = (_unpickle_arrays(Path(f"{path_prefix}.{file_key}")) for file_key in file_keys)
    with convert_reading_errors(f"{path_prefix}.*", "parts of one graph"):
        test_node_indices = np.loadtxt(f"{path_prefix}.test.index", dtype=int, ndmin=1)
        n_allx_nodes = allx_features.shape[0]
        n_train_nodes = train_features.shape[0]
        n_nodes = int(test_node_indices.max()) + 1
        has_consistent_nodes = (
            test_node_indices.min() >= n_allx_nodes
            and n_nodes <= n_allx_nodes + 2 * len(test_node_indices)
        )
        if (
            not has_consistent_nodes
            or len(np.unique(test_node_indices)) != test_features.shape[0]
        ):
            raise ValueError(
                f"test.index must list {test_features.shape[0]} nodes, each once"
            )
        # rows of the files as nodes of the graph; the nodes left out get none
        row_node_indices = np.r_[:n_allx_nodes, test_node_indices]
        X = sparse.vstack(
            [allx_features, test_features], format="coo", dtype=np.float32
        )
        coordinate_indices = (row_node_indices[X.row], X.col)
        features_shape = (n_nodes, X.shape[1])
        features = sparse.csr_array((X.data, coordinate_indices), shape=features_shape)
        one_hot_labels, node_labels = (
            np.vstack([allx_one_hot_labels, test_one_hot_labels]),
            np.full(n_nodes, -1),
        )
        node_labels[row_node_indices] = np.where(
            one_hot_labels.any(axis=1), one_hot_labels.argmax(axis=1), -1
        )
        edge_pairs = np.array(
            [
                (node_index, neighbour_index)
                for node_index in neighbours_by_node
                for neighbour_index in neighbours_by_node[node_index]
            ]
        ).T
        edge_weights = np.ones(edge_pairs.shape[1])
        directed_adjacency = sparse.csr_array(
            (edge_weights, edge_pairs), shape=(n_nodes, n_nodes)
        )
    node_index_arrays = (
        np.r_[:n_train_nodes],
        np.r_[n_train_nodes : min(n_train_nodes + 500, n_allx_nodes)],
        test_node_indices,
    )
    split_masks = _make_split_masks(n_nodes, *node_index_arrays) & (node_labels >= 0)
    public_split = NodeSplit(*split_masks) if split_masks.any(axis=1).all() else None
    return NodeGraph(
        name,
        _make_simple_adjacency(directed_adjacency),
        features,
        node_labels,
        public_split,
    )


def _make_split_masks(n_nodes: int, *node_index_arrays: np.ndarray) -> np.ndarray:
    return np.array(
        [
            np.isin(np.arange(n_nodes), set_node_indices)
            for set_node_indices in node_index_arrays
        ]
    )


def read_gnn_benchmark(path: str | Path, name: str | None = None) -> NodeGraph:
    """Read a graph in the layout of the gnn-benchmark .npz files.

    Parameters
    ----------
    path : str or Path
        With `adj_*` and `attr_*` (the arrays of CSR matrices) and `labels`. Pickled
        objects are never opened.
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
    array_keys = [
        f"{matrix_prefix}_{array_name}"
        for matrix_prefix in ("adj", "attr")
        for array_name in _CSR
    ]
    # nothing pickled is opened
    with convert_reading_errors(path, "arrays of a graph"):
        # numpy leaves its own file open where the archive is damaged
        with (
            Path(path).open("rb") as npz_file,
            np.load(npz_file, allow_pickle=False) as npz_archive,
        ):
            *csr_arrays, node_labels = (
                npz_archive[array_name] for array_name in (*array_keys, "labels")
            )
        directed_adjacency = _build_csr_matrix(*csr_arrays[:4])
        features = _build_csr_matrix(*csr_arrays[4:])
        distinct_node_counts = {
            *directed_adjacency.shape,
            features.shape[0],
            node_labels.size,
        }
        has_whole_number_labels = (
            node_labels.dtype.kind in "iu"
            and node_labels.max() < max(node_labels.size, 2)
        )
        if len(distinct_node_counts) > 1 or not has_whole_number_labels:
            raise ValueError("labels must be a whole number from 0 for every node")
    graph_arrays = (
        _make_simple_adjacency(directed_adjacency),
        features.astype(np.float32),
        node_labels.astype(np.int64),
    )
    return NodeGraph(name or Path(path).stem, *graph_arrays)


def _make_simple_adjacency(directed_adjacency: sparse.sparray) -> sparse.csr_array:
    """Return listed edges as a simple graph: symmetric, 0 and 1, no self loops."""
    adjacency = sparse.csr_array(
        abs(directed_adjacency) + abs(directed_adjacency).T > 0, dtype=np.float32
    )
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    return adjacency


def make_node_split(
    graph: NodeGraph, split: str = "public", random_state: int = 0
) -> NodeSplit:
    """Return a split of a graph by name.

    Parameters
    ----------
    graph : NodeGraph
        With labels.
    split : {"public", "per-class", "60-20-20"}
        That of the data set; 20 training nodes of each class; shares of each class.
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
        If no node is left for a set.
    """
    split_function_by_name: dict[str, Callable[..., NodeSplit]] = {
        "per-class": split_per_class,
        "60-20-20": split_by_share,
    }
    public_split_by_name = (
        {} if graph.public_split is None else {"public": graph.public_split}
    )
    check_choice("split", split, split_function_by_name | public_split_by_name)
    if split in public_split_by_name:
        return public_split_by_name[split]
    return split_function_by_name[split](graph.labels, random_state=random_state)


def split_per_class(
    labels: np.ndarray,
    n_per_class: int = 20,
    n_validation: int = 500,
    n_test: int | None = 1000,
    random_state: int = 0,
) -> NodeSplit:
    """Draw the same number of training nodes per class, then other nodes for each set.

    Parameters
    ----------
    labels : int array of shape (n_nodes,)
        -1 where a node has no class; it is in no set.
    n_per_class, n_validation, n_test : int
        Nodes to draw, test nodes at the most; `n_test=None` takes all that are left.
    random_state : int
        Seed.

    Returns
    -------
    NodeSplit

    Raises
    ------
    SplitError
        If a class has fewer nodes than asked for, or no node is left for a set.
    """
    rng, class_node_arrays = (
        np.random.default_rng(random_state),
        _list_class_node_indices(labels),
    )
    n_nodes_by_class = {
        int(labels[class_node_indices[0]]): len(class_node_indices)
        for class_node_indices in class_node_arrays
    }
    small_class_texts = [
        f"{class_code}: {n}"
        for class_code, n in n_nodes_by_class.items()
        if n < n_per_class
    ]
    if small_class_texts:
        raise SplitError(
            f"some classes have fewer nodes than the {n_per_class} training nodes "
            f"per class (class: nodes): {', '.join(small_class_texts)}. Use at most "
            f"n_per_class={min(n_nodes_by_class.values())}, or set the labels of small "
            "classes to -1."
        )
    train_node_indices = np.concatenate(
        [
            rng.choice(class_node_indices, n_per_class, replace=False)
            for class_node_indices in class_node_arrays
        ]
    )
    remaining_node_indices = rng.permutation(
        np.setdiff1d(np.concatenate(class_node_arrays), train_node_indices)
    )
    node_index_arrays = (
        train_node_indices,
        remaining_node_indices[:n_validation],
        remaining_node_indices[n_validation:][:n_test],
    )
    return NodeSplit(*_make_split_masks(len(labels), *node_index_arrays))


def split_by_share(node_labels: np.ndarray, random_state: int = 0) -> NodeSplit:
    """Draw 60 % of every class for training, 20 % for validation and 20 % for test.

    Parameters
    ----------
    node_labels : int array of shape (n_nodes,)
        -1 where a node has no class; it is in no set.
    random_state : int
        Seed.

    Returns
    -------
    NodeSplit
    """
    rng, class_split_arrays = np.random.default_rng(random_state), []
    for class_node_indices in _list_class_node_indices(node_labels):
        split_positions = np.round(
            np.cumsum((0.6, 0.2)) * len(class_node_indices)
        ).astype(int)
        class_split_arrays.append(
            np.split(rng.permutation(class_node_indices), split_positions)
        )
    node_index_arrays = map(np.concatenate, zip(*class_split_arrays, strict=True))
    return NodeSplit(*_make_split_masks(len(node_labels), *node_index_arrays))


def _list_class_node_indices(node_labels: np.ndarray) -> list[np.ndarray]:
    """Return the nodes of every class."""
    return [
        np.flatnonzero(node_labels == class_code)
        for class_code in np.unique(node_labels[node_labels >= 0])
    ]
