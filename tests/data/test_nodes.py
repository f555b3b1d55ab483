"""Node data sets: what files hold, what they leave out, and what is refused."""

import pickle
from collections import defaultdict

import numpy as np
import pytest
from scipy import sparse

from brainlsap.data import node_download
from brainlsap.data.node_graph import NodeGraph
from brainlsap.data.nodes import (
    NODE_FILES,
    check_counts,
    holds_nodes,
    load_nodes,
    make_node_split,
    read_gnn_benchmark,
    read_planetoid,
)
from brainlsap.exceptions import FileFormatError, ParameterError

N_TRAIN, N_ALL, N_FEATURES, N_CLASSES = 4, 9, 5, 3
# node 10 stands in no file, as 15 of Citeseer
TEST = (11, 9, 12)


def planetoid_parts():
    rng = np.random.default_rng(0)
    features = rng.integers(0, 2, (13, N_FEATURES)).astype(float)
    features[:, 0] = np.arange(13)
    classes = np.eye(N_CLASSES)[np.arange(13) % N_CLASSES]
    test = list(TEST)
    graph = defaultdict(list, {i: [i + 1] for i in range(8)})
    graph[1] += [0, 0, 1]  # listed twice, and a self loop
    graph[9] = [12]
    return {
        "x": sparse.csr_matrix(features[:N_TRAIN]),
        "y": classes[:N_TRAIN].astype(int),
        "allx": sparse.csr_matrix(features[:N_ALL]),
        "ally": classes[:N_ALL].astype(int),
        "tx": sparse.csr_matrix(features[test]),
        "ty": classes[test].astype(int),
        "graph": graph,
    }


def write_planetoid(folder, index=TEST, **changed):
    for part, value in {**planetoid_parts(), **changed}.items():
        (folder / f"ind.toy.{part}").write_bytes(pickle.dumps(value, 2))
    lines = "".join(f"{one}\n" for one in index)
    (folder / "ind.toy.test.index").write_text(lines)
    return folder


def gnn_arrays(**changed):
    listed = sparse.csr_matrix(np.triu(np.ones((4, 4))))
    features = sparse.csr_matrix(np.arange(24.0).reshape(4, 6) % 3)
    arrays = {"labels": np.array([0, 1, 1, 0]), "class_names": np.array(["a", "b"])}
    for prefix, matrix in (("adj", listed), ("attr", features)):
        for part in ("data", "indices", "indptr"):
            arrays[f"{prefix}_{part}"] = getattr(matrix, part)
        arrays[f"{prefix}_shape"] = np.array(matrix.shape)
    return {**arrays, **changed}


class TestPlanetoid:
    def test_every_node_gets_its_own_features_and_class(self, tmp_path):
        graph = read_planetoid(write_planetoid(tmp_path), "toy")
        held = [i for i in range(13) if i != 10]
        first = graph.features.toarray()[:, 0]
        assert first[held].tolist() == held
        assert graph.labels[held].tolist() == [i % 3 for i in held]

    def test_a_node_that_the_files_leave_out(self, tmp_path):
        graph = read_planetoid(write_planetoid(tmp_path), "toy")
        assert graph.labels[10] == -1
        assert graph.features.toarray()[10].tolist() == [0] * N_FEATURES
        assert graph.isolated[10]
        split = graph.public_split
        assert not (split.train | split.validation | split.test)[10]

    def test_the_graph_is_simple_and_edges_are_counted_as_listed(self, tmp_path):
        graph = read_planetoid(write_planetoid(tmp_path), "toy")
        W = graph.adjacency.toarray()
        assert np.array_equal(W, W.T)
        assert set(np.unique(W)) == {0, 1}
        assert np.trace(W) == 0
        assert (graph.n_edges, graph.n_listed_edges) == (9, 6)

    def test_public_split(self, tmp_path):
        split = make_node_split(read_planetoid(write_planetoid(tmp_path), "toy"))
        assert np.flatnonzero(split.train).tolist() == [0, 1, 2, 3]
        assert np.flatnonzero(split.validation).tolist() == [4, 5, 6, 7, 8]
        assert np.flatnonzero(split.test).tolist() == sorted(TEST)

    def test_a_missing_file(self, tmp_path):
        (write_planetoid(tmp_path) / "ind.toy.ally").unlink()
        with pytest.raises(FileFormatError, match=r"ind\.toy\.ally is not there"):
            read_planetoid(tmp_path, "toy")

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"x": [1, 2]}, r"toy\.x must hold a matrix of features, got list"),
            ({"ty": np.arange(3)}, r"toy\.ty must hold one row of 0 and 1"),
            ({"graph": [1]}, r"toy\.graph must hold a dictionary"),
            ({"graph": {0: [40]}}, "joins node 40, but the features have 13"),
            ({"graph": {0: ["a"]}}, "nodes must be numbers"),
            ({"graph": {0: [1], (2, 3): [4]}}, "nodes must be numbers"),
            ({"graph": {0: [10**30]}}, "joins node 1000000000"),
            ({"graph": {0: [-4]}}, "joins node -4, but"),
            ({"y": np.eye(3)}, r"ind\.toy\.x has 4 nodes, ind\.toy\.y has 3"),
            ({"tx": sparse.csr_matrix(np.ones((3, 6)))}, "differ in the number"),
            ({"index": (9, 11)}, r"lists 2 nodes from 9 on; 3 were expected"),
            ({"index": (9, 11, 11)}, "each once; got 3 numbers, 2 different"),
            ({"index": (9, 11, "x")}, "one node number a line"),
            ({"index": (9, 11, 10**9)}, "leaves out more nodes than it lists"),
        ],
    )
    def test_parts_that_do_not_fit(self, tmp_path, changed, said):
        with pytest.raises(FileFormatError, match=said):
            read_planetoid(write_planetoid(tmp_path, **changed), "toy")

    def test_features_that_are_not_finite(self, tmp_path):
        bad = sparse.csr_matrix(np.full((3, N_FEATURES), np.nan))
        with pytest.raises(FileFormatError, match="features hold NaN or infinite"):
            read_planetoid(write_planetoid(tmp_path, tx=bad), "toy")

    def test_a_malicious_file_runs_nothing(self, tmp_path):
        target = tmp_path / "touched"
        write_planetoid(tmp_path)
        evil = f"cos\nsystem\n(S'touch {target}'\ntR.".encode()
        (tmp_path / "ind.toy.graph").write_bytes(evil)
        with pytest.raises(FileFormatError, match=r"toy\.graph: it names os\.system"):
            read_planetoid(tmp_path, "toy")
        assert not target.exists()


class TestGnnBenchmark:
    def test_a_directed_graph_is_made_simple(self, tmp_path):
        np.savez(tmp_path / "g.npz", **gnn_arrays())
        graph = read_gnn_benchmark(tmp_path / "g.npz")
        assert np.array_equal(graph.adjacency.toarray(), 1 - np.eye(4))
        assert (graph.n_edges, graph.n_listed_edges) == (6, 6)
        assert graph.class_names == ("a", "b")
        assert graph.features.toarray()[1].tolist() == [0, 1, 2, 0, 1, 2]

    def test_pickled_class_names_are_left_closed(self, tmp_path):
        names = np.array(["a", {}], dtype=object)
        np.savez(tmp_path / "g.npz", **gnn_arrays(class_names=names))
        graph = read_gnn_benchmark(tmp_path / "g.npz")
        assert graph.class_names == ("class 0", "class 1")

    @pytest.mark.parametrize("name", ["labels", "adj_data", "attr_indices"])
    def test_object_arrays_are_refused(self, tmp_path, name):
        changed = {name: np.array([{}] * 4)}
        np.savez(tmp_path / "g.npz", **gnn_arrays(**changed))
        with pytest.raises(FileFormatError, match=f"'{name}' cannot be .* never open"):
            read_gnn_benchmark(tmp_path / "g.npz")

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"adj_shape": np.array([4, 4, 4])}, r"adj_\* make no CSR matrix"),
            ({"adj_indices": np.full(10, 77)}, r"adj_\* make no CSR matrix"),
            ({"adj_indptr": np.array([0, 3, 2, 0])}, r"adj_\* make no CSR matrix"),
            ({"labels": np.array([0, 1, 1])}, "do not belong to the same nodes"),
            ({"labels": np.array([0.5, 1, 1, 0])}, "one whole number for every node"),
            ({"labels": np.array([0, 1, 1, 10**15])}, "must number the classes from 0"),
            ({"attr_data": np.full(16, np.inf)}, "features hold NaN or infinite"),
        ],
    )
    def test_parts_that_do_not_fit(self, tmp_path, changed, said):
        np.savez(tmp_path / "g.npz", **gnn_arrays(**changed))
        with pytest.raises(FileFormatError, match=said):
            read_gnn_benchmark(tmp_path / "g.npz")


class TestByName:
    def test_unknown_names_list_the_known(self):
        with pytest.raises(ParameterError, match=r"'amazon-photo', .*got 'karate'"):
            load_nodes("karate")

    @pytest.mark.parametrize(
        ("name", "said"),
        [("cora", r"does not hold ind\.cora"), ("coauthor-cs", r"ms_academic_cs\.npz")],
    )
    def test_files_that_are_not_there(self, tmp_path, name, said):
        assert not holds_nodes(name, tmp_path)
        with pytest.raises(FileFormatError, match=said):
            load_nodes(name, tmp_path)

    def test_counts_are_compared_with_the_published_ones(self, tmp_path):
        np.savez(tmp_path / NODE_FILES["amazon-photo"], **gnn_arrays())
        with pytest.raises(FileFormatError, match=r"has \(4, 6, 2, 6\) .* 119081"):
            load_nodes("Amazon_Photo", tmp_path)
        assert load_nodes("amazon-photo", tmp_path, check=False).n_nodes == 4

    @pytest.mark.parametrize("name", ["Photo", "amazon photo", "AMAZON_PHOTO"])
    def test_shorter_names(self, tmp_path, name):
        np.savez(tmp_path / NODE_FILES["amazon-photo"], **gnn_arrays())
        assert holds_nodes(name, tmp_path)
        assert load_nodes(name, tmp_path, check=False).name == "amazon-photo"

    def test_splits_by_name(self, tmp_path):
        np.savez(tmp_path / "g.npz", **gnn_arrays())
        graph = read_gnn_benchmark(tmp_path / "g.npz")
        with pytest.raises(ParameterError, match="g has no public split"):
            make_node_split(graph, "public")
        with pytest.raises(ParameterError, match="split must be one of"):
            make_node_split(graph, "private")
        masks = dict(
            zip(("train_mask", "val_mask", "test_mask"), np.eye(4), strict=False)
        )
        np.savez(tmp_path / "s.npz", **masks)
        assert make_node_split(graph, tmp_path / "s.npz").sizes == (1, 1, 1)

    def test_random_splits_by_name(self):
        n = 1700
        graph = NodeGraph(
            "many",
            sparse.csr_array((n, n)),
            sparse.csr_array((n, 2)),
            np.arange(n) % 4,
            tuple("abcd"),
        )
        assert make_node_split(graph, "per-class", 1).sizes == (80, 500, 1000)
        assert make_node_split(graph, "60-20-20", 1).sizes == (1020, 340, 340)


class TestDownload:
    def test_without_pooch_the_way_out_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "pooch", None)
        with pytest.raises(ParameterError, match="pip install pooch"):
            load_nodes("cora", tmp_path, download=True)

    def test_no_internet_is_an_error_of_ours(self, tmp_path, monkeypatch):
        pytest.importorskip("pooch")
        monkeypatch.setattr(node_download, "_PLANETOID", "http://127.0.0.1:9/")
        with pytest.raises(FileFormatError, match=r"cora\..* could not be downloaded"):
            node_download.download_planetoid("cora", tmp_path)

    def test_checksums_are_those_of_the_files(self, shared):
        import hashlib

        for name, wanted in node_download.SHA256.items():
            content = (shared / "planetoid" / name).read_bytes()
            assert hashlib.sha256(content).hexdigest() == wanted


@pytest.mark.parametrize(
    ("name", "n_edges", "n_unlabelled"),
    [
        ("cora", 5278, 0),
        ("citeseer", 4552, 15),
        ("pubmed", 44324, 0),
        ("amazon-photo", 119081, 0),
    ],
)
def test_the_papers_data_sets(shared, name, n_edges, n_unlabelled):
    graph = load_nodes(name, shared)  # counts are checked there
    check_counts(graph)
    assert graph.n_edges == n_edges
    assert (graph.labels < 0).sum() == n_unlabelled
    if name != "amazon-photo":
        n_train = 20 * graph.n_classes
        assert graph.public_split.sizes == (n_train, 500, 1000)
