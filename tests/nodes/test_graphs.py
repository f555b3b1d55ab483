"""Node data sets: what files hold, what they leave out, what is refused; splits."""

import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import brainlsap.nodes.graphs as module
from brainlsap.exceptions import FileFormatError, ParameterError, SplitError
from brainlsap.nodes import (
    NodeSplit,
    load_nodes,
    make_node_split,
    read_gnn_benchmark,
    read_planetoid,
    split_per_class,
)
from brainlsap.nodes.graphs import split_by_share

N_TRAIN, N_ALL, N_FEATURES, N_CLASSES = 4, 9, 5, 3
# node 10 stands in no file, as 15 of Citeseer
TEST = (11, 9, 12)


def write_planetoid(folder, index=TEST, protocol=2, **changed):
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, (13, N_FEATURES)).astype(float)
    features[:, 0] = np.arange(13)
    classes = np.eye(N_CLASSES)[np.arange(13) % N_CLASSES].astype(int)
    graph = defaultdict(list, {i: [i + 1] for i in range(8)})
    graph[1] += [0, 0, 1]  # listed twice, and a self loop
    graph[9] = [12]
    parts = {"graph": graph}
    nodes = ("", range(N_TRAIN)), ("all", range(N_ALL)), ("t", TEST)
    for name, some in nodes:
        parts[f"{name}x"] = sparse.csr_matrix(features[list(some)])
        parts[f"{name}y"] = classes[list(some)]
    for part, value in {**parts, **changed}.items():
        (folder / f"ind.toy.{part}").write_bytes(pickle.dumps(value, protocol))
    lines = "".join(f"{one}\n" for one in index)
    (folder / "ind.toy.test.index").write_text(lines)
    return folder


def broken(part, value):
    matrix = sparse.csr_matrix(np.eye(N_ALL, N_FEATURES))
    getattr(matrix, part)[-1] = value
    return matrix


@pytest.mark.parametrize("protocol", range(5))
def test_planetoid_files_of_every_protocol(tmp_path, protocol):
    graph = read_planetoid(write_planetoid(tmp_path, protocol=protocol), "toy")
    held = [i for i in range(13) if i != 10]
    features = graph.features.toarray()
    assert features[held, 0].tolist() == held
    assert graph.labels[held].tolist() == [i % 3 for i in held]
    # the node that the files leave out
    assert graph.labels[10] == -1
    assert not features[10].any()
    W = graph.adjacency.toarray()
    assert_array_equal(W, W.T)
    assert set(np.unique(W)) == {0, 1}
    assert np.trace(W) == 0
    assert graph.n_edges == 9
    split = make_node_split(graph)
    assert np.flatnonzero(split.train).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(split.validation).tolist() == [4, 5, 6, 7, 8]
    assert np.flatnonzero(split.test).tolist() == sorted(TEST)


@pytest.mark.parametrize(
    "changed",
    [
        {"x": [1, 2]},
        {"ty": np.arange(3)},
        {"ty": np.array([{}] * 3, dtype=object)},
        {"graph": {0: [40]}},
        {"graph": {0: [-4]}},
        {"allx": broken("indices", 9_000)},
        # SciPy's own check passes it; its loops then write outside of memory
        {"allx": broken("indptr", 0)},
        {"tx": sparse.csr_matrix(np.ones((3, 6)))},
        {"tx": sparse.csr_matrix(np.full((3, N_FEATURES), np.nan))},
        {"index": (9, 11, 11)},
        {"index": (9, 11, "x")},
        {"index": (9, 11, 10**9)},
    ],
)
def test_planetoid_parts_that_do_not_fit(tmp_path, changed):
    with pytest.raises(FileFormatError, match=r"ind\.toy\."):
        read_planetoid(write_planetoid(tmp_path, **changed), "toy")


class Touch:
    """Whoever unpickles it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_runs_nothing(tmp_path, protocol):
    target = tmp_path / "touched"
    evil = pickle.dumps(Touch(target), protocol)
    system = f"cos\nsystem\n(S'touch {target}'\ntR.".encode()
    for content, named in ((evil, r"\w*\.open"), (system, r"os\.system")):
        write_planetoid(tmp_path)
        (tmp_path / "ind.toy.graph").write_bytes(content)
        with pytest.raises(
            FileFormatError, match=rf"toy\.graph: .*the file refers to {named}"
        ):
            read_planetoid(tmp_path, "toy")
        assert not target.exists()


@pytest.mark.parametrize("kept", [200, 0])
def test_planetoid_files_that_are_cut_short(tmp_path, kept):
    path = write_planetoid(tmp_path) / "ind.toy.allx"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(FileFormatError, match=r"ind\.toy\.allx"):
        read_planetoid(tmp_path, "toy")
    path.unlink()
    with pytest.raises(FileFormatError, match=r"ind\.toy\.allx"):
        read_planetoid(tmp_path, "toy")


def write_gnn(path, **changed):
    listed = sparse.csr_matrix(np.triu(np.ones((4, 4))))
    features = sparse.csr_matrix(np.arange(24.0).reshape(4, 6) % 3)
    arrays = {"labels": np.array([0, 1, 1, 0])}
    for prefix, matrix in (("adj", listed), ("attr", features)):
        for part in ("data", "indices", "indptr"):
            arrays[f"{prefix}_{part}"] = getattr(matrix, part)
        arrays[f"{prefix}_shape"] = np.array(matrix.shape)
    np.savez(path, **{**arrays, **changed})
    return path


def test_a_directed_graph_of_gnn_benchmark_is_made_simple(tmp_path):
    graph = read_gnn_benchmark(write_gnn(tmp_path / "g.npz"))
    assert_array_equal(graph.adjacency.toarray(), 1 - np.eye(4))
    assert graph.n_edges == 6
    assert graph.n_classes == 2
    assert graph.features.toarray()[1].tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"adj_indptr": np.array([0, 3, 2, 0])}, "g.npz: "),
        ({"labels": np.array([0, 1, 1])}, "whole number from 0 for every node"),
        ({"labels": np.array([0.5, 1, 1, 0])}, "whole number from 0 for every node"),
        ({"labels": np.array([0, 1, 1, 10**15])}, "whole number from 0"),
        ({"attr_data": np.full(16, np.inf)}, "NaN or infinite"),
        ({"labels": np.array([{}] * 4)}, "allow_pickle"),
    ],
)
def test_gnn_benchmark_parts_that_do_not_fit(tmp_path, changed, said):
    with pytest.raises(FileFormatError, match=said):
        read_gnn_benchmark(write_gnn(tmp_path / "g.npz", **changed))


def test_data_sets_are_found_by_name_and_counted(tmp_path):
    write_gnn(tmp_path / "amazon_electronics_photo.npz")
    for name, error, said in [
        ("Photo", FileFormatError, r"\[4, 6, 2, 6\]"),
        ("AMAZON_PHOTO", FileFormatError, r"\[4, 6, 2, 6\]"),
        ("karate", ParameterError, "'amazon-photo', .*'karate'"),
        ("cora", FileFormatError, r"contain ind\.cora"),
        ("cs", FileFormatError, r"ms_academic_cs\.npz"),
    ]:
        with pytest.raises(error, match=said):
            load_nodes(name, tmp_path)


@pytest.mark.parametrize("offline", [True, False])
def test_a_download_of_other_bytes_or_without_internet(tmp_path, monkeypatch, offline):
    pooch = pytest.importorskip("pooch")

    def fetch(_, url, output_file, *__):
        if offline or not url.startswith("https://"):
            raise OSError("no route")
        Path(output_file).write_bytes(b"something else")

    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", fetch)
    said = "no route" if offline else "hash"
    with pytest.raises(FileFormatError, match=f"could not be downloaded.*{said}"):
        load_nodes("cora", tmp_path, download=True)
    assert not list(tmp_path.glob("ind.*"))


def test_checksums_are_those_of_the_files(shared, tmp_path):
    pooch = pytest.importorskip("pooch")
    store = pooch.create(path=tmp_path, base_url="")
    store.load_registry(Path(module.__file__).with_name("planetoid_sha256.txt"))
    assert len(store.registry) == 24
    for name, wanted in store.registry.items():
        assert f"sha256:{pooch.file_hash(shared / 'planetoid' / name)}" == wanted


@pytest.mark.parametrize(
    ("name", "n_edges", "n_unlabelled"),
    [
        ("cora", 5278, 0),
        ("citeseer", 4552, 15),
        ("pubmed", 44324, 0),
        ("amazon-photo", 119081, 0),
        ("coauthor-cs", 81894, 0),
    ],
)
def test_the_papers_data_sets(shared, name, n_edges, n_unlabelled):
    graph = load_nodes(name, shared)  # counts are checked there
    assert graph.n_edges == n_edges
    assert (graph.labels < 0).sum() == n_unlabelled
    if graph.public_split is not None:
        assert graph.public_split.sizes == (20 * graph.n_classes, 500, 1000)


# --- splits ---

N_NODES = 90
LABELS = np.arange(N_NODES) % 3


def parts(split):
    return np.array(list(vars(split).values()))


def test_splits_take_as_many_of_each_class_as_asked():
    labels = np.where(np.arange(N_NODES) < 6, -1, LABELS)  # these stand in no set
    split = split_per_class(labels, 5, 20, 30)
    assert np.bincount(labels[split.train]).tolist() == [5, 5, 5]
    assert split.sizes == (15, 20, 30)
    assert not parts(split)[:, :6].any()
    assert split_per_class(labels, 5, 20, None).sizes == (15, 20, 49)
    split = split_by_share(LABELS, random_state=3)
    for mask, share in zip(parts(split), (0.6, 0.2, 0.2), strict=True):
        assert np.bincount(LABELS[mask]).tolist() == [30 * share] * 3
    assert not parts(split_by_share(labels))[:, :6].any()


def test_draws_are_those_of_the_first_version():
    """Published runs name their splits by seed."""
    split = split_by_share(LABELS, random_state=4)
    assert np.flatnonzero(split.test)[:6].tolist() == [2, 5, 9, 12, 13, 17]
    split = split_per_class(LABELS, 2, 9, 9, random_state=4)
    assert np.flatnonzero(split.train).tolist() == [8, 43, 63, 84, 85, 86]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda _: split_per_class(LABELS, 25, 15, 9), r"sizes \(75, 15, 0\)"),
        (
            lambda _: split_per_class(np.repeat([-1, 0, 2, 5], [3, 10, 50, 19]), 20),
            r"0: 10, 5: 19\. Use at most n_per_class=10",
        ),
        (
            lambda _: NodeSplit(*np.eye(3, 5, 1)),
            "must be disjoint boolean masks .* got float64",
        ),
        (
            lambda _: NodeSplit(*np.ones((3, 2), bool)),
            r"disjoint boolean masks .* \(2, 2, 2\)",
        ),
        (make_node_split, "split must be one of '60-20-20', 'per-class'; got 'public'"),
    ],
)
def test_splits_that_cannot_be(tmp_path, call, said):
    graph = read_gnn_benchmark(write_gnn(tmp_path / "g.npz"))
    with pytest.raises((SplitError, ParameterError), match=said):
        call(graph)
