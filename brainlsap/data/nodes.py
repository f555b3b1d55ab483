"""Citation and co-purchase graphs by name, counted against the paper's Table 1."""

from pathlib import Path

from brainlsap._arrays import check_choice
from brainlsap.data.node_download import GNN_BENCHMARK, download_planetoid
from brainlsap.data.node_files import read_gnn_benchmark, read_planetoid
from brainlsap.data.node_graph import NodeGraph
from brainlsap.data.node_splits import (
    NodeSplit,
    read_node_split,
    split_by_share,
    split_per_class,
)
from brainlsap.exceptions import FileFormatError, ParameterError

# Nodes, edges, classes and features as the paper's Table 1 prints them.
NODE_DATASETS = {
    "cora": (2708, 5429, 7, 1433),
    "citeseer": (3327, 4732, 6, 3703),
    "pubmed": (19717, 44338, 3, 500),
    "amazon-computers": (13752, 245861, 10, 767),
    "amazon-photo": (7650, 119081, 8, 745),
    "coauthor-cs": (18333, 81894, 15, 6805),
}

# Names of the gnn-benchmark files.
NODE_FILES = {
    "amazon-computers": "amazon_electronics_computers.npz",
    "amazon-photo": "amazon_electronics_photo.npz",
    "coauthor-cs": "ms_academic_cs.npz",
}

# Shorter names that people use.
_ALIASES = {
    "computers": "amazon-computers",
    "photo": "amazon-photo",
    "cs": "coauthor-cs",
    **{Path(file).stem.replace("_", "-"): name for name, file in NODE_FILES.items()},
}

NODE_SPLITS = ("public", "per-class", "60-20-20")

__all__ = [
    "NODE_DATASETS",
    "NODE_FILES",
    "NODE_SPLITS",
    "NodeGraph",
    "NodeSplit",
    "check_counts",
    "holds_nodes",
    "load_nodes",
    "make_node_split",
    "read_gnn_benchmark",
    "read_node_split",
    "read_planetoid",
    "split_by_share",
    "split_per_class",
]


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
    name : {"cora", "citeseer", "pubmed", "amazon-computers", "amazon-photo", \
"coauthor-cs"}
        Which; capitals and underscores do not matter, and `photo`, `computers` and
        `cs` will do.
    data : str or Path, optional
        Where its files are: `ind.NAME.*` or the .npz of gnn-benchmark, there or one
        folder below. By default the cache of the user.
    download : bool
        Whether to fetch Planetoid files that are not there.
    check : bool
        Whether to compare nodes, edges, classes and features with the paper's
        Table 1.

    Returns
    -------
    NodeGraph

    Raises
    ------
    ParameterError
        For an unknown name.
    FileFormatError
        If files are missing or damaged, or the counts are others.

    Examples
    --------
    >>> load_nodes("karate")
    Traceback (most recent call last):
    brainlsap.exceptions.ParameterError: name must be one of 'amazon-computers', ...
    """
    key = _key(name)
    check_choice("name", key, NODE_DATASETS)
    place = _find(key, data)
    if place is None and download:
        place = download_planetoid(key, data or _cache())
    if place is None:
        raise FileFormatError(_missing(key, data))
    graph = (
        read_gnn_benchmark(place / NODE_FILES[key], key)
        if key in NODE_FILES
        else read_planetoid(place, key)
    )
    if check:
        check_counts(graph)
    return graph


def holds_nodes(name: str, data: str | Path | None = None) -> bool:
    """Tell whether a folder holds the files of a data set.

    Parameters
    ----------
    name : str
        As for :func:`load_nodes`.
    data : str or Path, optional
        As for :func:`load_nodes`.

    Returns
    -------
    bool

    Examples
    --------
    >>> holds_nodes("cora", "nowhere")
    False
    """
    return _find(_key(name), data) is not None


def check_counts(graph: NodeGraph) -> None:
    """Raise unless a graph has the counts of the paper's Table 1.

    Edges are counted as the table does: the entries of Planetoid's lists over 2,
    duplicates and self loops with them; of the others, undirected edges.

    Parameters
    ----------
    graph : NodeGraph
        Named as in `NODE_DATASETS`.

    Raises
    ------
    FileFormatError
        If a count is another.

    Examples
    --------
    See :func:`brainlsap.data.load_nodes`.
    """
    found = (graph.n_nodes, graph.n_listed_edges, graph.n_classes, graph.n_features)
    wanted = NODE_DATASETS[graph.name]
    if found != wanted:
        raise FileFormatError(
            f"{graph.name} has {found} nodes, edges, classes and features; the "
            f"published table says {wanted}. The files are others; check=False loads "
            "them all the same."
        )


def make_node_split(
    graph: NodeGraph, split: str | Path = "public", random_state: int = 0
) -> NodeSplit:
    """Return a split of a graph by name, or from a file.

    Parameters
    ----------
    graph : NodeGraph
        The nodes.
    split : {"public", "per-class", "60-20-20"} or path
        The split of the files; 20 random nodes of each class, 500 to choose and
        1,000 to score; random shares of each class; or an .npz file of masks.
    random_state : int
        Seed of the random ones.

    Returns
    -------
    NodeSplit

    Raises
    ------
    ParameterError
        If the data set has no public split, or the name is unknown.

    Examples
    --------
    See :func:`brainlsap.data.split_per_class`.
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


def _key(name: str) -> str:
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    return _ALIASES.get(key, key)


def _find(key: str, folder: str | Path | None) -> Path | None:
    base = _cache() if folder is None else Path(folder)
    wanted = NODE_FILES.get(key, f"ind.{key}.x")
    for place in (base, base / "planetoid", base / "gnn_npz"):
        if (place / wanted).is_file():
            return place
    return None


def _cache() -> Path:
    return Path.home() / ".cache" / "brainlsap" / "nodes"


def _missing(key: str, folder: str | Path | None) -> str:
    base = _cache() if folder is None else Path(folder)
    if key in NODE_FILES:
        return (
            f"{base} does not hold {NODE_FILES[key]}; get it from {GNN_BENCHMARK} and "
            "give its folder as data=."
        )
    return (
        f"{base} does not hold ind.{key}.*; give their folder as data=, or "
        "download=True (--download) where there is internet."
    )
