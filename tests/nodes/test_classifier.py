"""The classifier of nodes: what it learns, what it never reads, what it refuses."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import sparse

from brainlsap.exceptions import ParameterError
from brainlsap.nodes import LSAPNodeClassifier
from brainlsap.nodes.graphs import NODE_DATASETS

N_NODES, N_CLASSES = 60, 3
TRAIN, VALIDATION, TEST = np.arange(15), np.arange(15, 30), np.arange(30, N_NODES)


def make(model="lsap-c", variant="chosen", random_state=0, n_epochs=30, **options):
    """Return a quick model."""
    return LSAPNodeClassifier(
        model,
        variant=variant,
        n_epochs=n_epochs,
        random_state=random_state,
        options={"hidden_units": 8, **options},
    )


def fit(graph, *given, **options):
    return make(*given, **options).fit(graph, TRAIN, VALIDATION)


class TestLearning:
    @pytest.mark.parametrize("n_layers", [1, 2, 4])
    @pytest.mark.parametrize("head", ["linear", "convolution"])
    def test_any_depth(self, graph, n_layers, head):
        model = fit(graph, n_layers=n_layers, head=head, n_epochs=4)
        assert model.predict_proba().shape == (N_NODES, N_CLASSES)
        assert len(model.network_.weights) == n_layers + (head == "linear")

    def test_probabilities_and_classes_by_name(self, graph):
        names = np.array(["x", "y", "z"])[graph.labels]
        named = SimpleNamespace(**{**vars(graph), "labels": names})
        model = fit(named, n_epochs=3)
        assert model.classes_.tolist() == ["x", "y", "z"]
        assert np.allclose(model.predict_proba().sum(1), 1)
        assert set(model.predict()) <= set("xyz")

    def test_validation_chooses_the_epoch(self, graph):
        model = make(n_epochs=4).fit(graph, TRAIN)
        assert model.best_epoch_ == 3
        assert np.array_equal(model.predict_proba(), model.predict_proba())
        model = fit(graph, n_epochs=200, patience=5)
        accuracies = model.history_["validation_accuracy"]
        assert len(accuracies) == len(model.history_["train_loss"]) < 200
        assert accuracies[model.best_epoch_] == max(accuracies)
        assert model.score(graph, VALIDATION) == pytest.approx(max(accuracies))

    def test_seed_decides_and_the_global_generator_stays(self, graph):
        before = torch.random.get_rng_state()
        one, same, other = (fit(graph, random_state=s, n_epochs=5) for s in (0, 0, 1))
        assert torch.equal(before, torch.random.get_rng_state())
        assert np.array_equal(one.predict_proba(), same.predict_proba())
        assert not np.array_equal(one.predict_proba(), other.predict_proba())


class TestScales:
    def test_what_moves_scales_decides_which_nodes_move(self, graph):
        given = {"scale_step": 1e4, "n_epochs": 3, "consistency": 0.0}
        plain = fit(graph, **given, scale_signal="labels").scale_ != 4.0
        assert plain[TRAIN].any()
        assert not plain.all()
        other = fit(graph, **given, scale_signal="validation").scale_ != 4.0
        assert not np.array_equal(plain, other)
        wide = fit(graph, scale_step=1e3, n_epochs=3).scale_ != 4.0
        assert wide.sum() > plain.sum()

    def test_one_scale_for_all_or_the_start_for_ever(self, graph):
        one = fit(graph, "lsap-c", "global", scale_step=100.0, n_epochs=9).scale_
        assert len(set(one)) == 1
        assert one[0] != 4.0
        frozen = fit(graph, "lsap-c", "frozen", initial_scale=1.5, n_epochs=3)
        assert set(frozen.scale_) == {1.5}

    def test_scales_stay_where_the_kernel_is_trusted(self, graph):
        model = fit(graph, scale_step=1e6, scale_clip=3.0, max_scale=5.0)
        assert 0 <= model.scale_.min() <= model.scale_.max() <= 5


class TestSettings:
    @pytest.mark.parametrize("dataset", sorted(NODE_DATASETS))
    def test_the_papers_hyperparameters_by_data_set(self, dataset):
        settings = LSAPNodeClassifier(variant="paper").settings(dataset)
        for name, value in NODE_DATASETS[dataset]["paper"].items():
            assert getattr(settings, name) == value
        assert (settings.degree, settings.n_layers) == (20, 2)
        assert (settings.initial_scale, settings.dropout) == (2.0, 0.5)

    def test_settings_differ_by_data_set(self):
        gcn, grand = LSAPNodeClassifier("gcn"), LSAPNodeClassifier("grand")
        assert [grand.settings(n).degree for n in ("cora", "citeseer")] == [8, 2]
        for dataset in ("amazon-photo", "coauthor-cs"):  # the one is like the other
            wide = gcn.settings(dataset)
            assert (wide.normalize, wide.hidden_units) == ("none", 64)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"scale_mode": "region"}, "scale_mode must be one of"),
            ({"dropout": 1.0}, r"dropout must be .* to 0\.95; got 1"),
            ({"temperature": 0.0}, "temperature must be .* of at least 1e-06"),
            ({"n_layers": 0}, "n_layers must be .* of at least 1"),
            ({"initial_scale": -1.0}, "initial_scale must be .* of at least 0"),
            ({"initial_scale": 9.0, "max_scale": 8.0}, "initial_scale=9.0 is above"),
            ({"model": "lsap-h", "initial_scale": 4.0}, "above max_scale=2.5"),
            ({"degree": 2}, "of degree 2 can have an error of"),
            ({"scale_stepp": 2}, "option must be one of .*'scale_step'.*'scale_stepp'"),
            ({"model": "lstm"}, r"model must be one of 'adc', .*'lstm'"),
            ({"variant": "best"}, "variant must be one of"),
        ],
    )
    def test_what_cannot_be_used(self, given, said):
        with pytest.raises(ParameterError, match=said):
            make(**given).settings()


@pytest.mark.parametrize(
    ("train", "validation", "model", "said"),
    [
        ([0, 1, 2], [2, 3], make(), r"1 node.* both train and validation: \[2\]"),
        ([0, 3], [6], make(), r"two classes.*classes of train are \[0\]"),
        (
            [0, 1],
            [2],
            make(),
            "1 node.* without a label or with a class that train does not",
        ),
        (
            TRAIN,
            [59],
            make(),
            "1 node.* without a label or with a class that train does not",
        ),
        (TRAIN, None, make(variant="validation"), "requires validation nodes"),
        (TRAIN, None, make("adc"), "requires validation nodes"),
        (TRAIN, None, make("exact", max_exact_nodes=59), r"60 nodes.*=59.*lsap-c"),
    ],
)
def test_nodes_and_fits_that_cannot_be(graph, train, validation, model, said):
    labels = np.where(np.arange(N_NODES) == 59, -1, graph.labels)
    bare = SimpleNamespace(**{**vars(graph), "labels": labels})
    with pytest.raises(ParameterError, match=said):
        model.fit(bare, train, validation)


# --- extreme graphs: finite numbers, or our error ---


def changed(graph, part, change):
    """Return a graph whose adjacency or features are a function of what they were."""
    array = np.array(change(getattr(graph, part).toarray().astype(float)))
    return SimpleNamespace(**{**vars(graph), part: sparse.csr_array(array)})


def put(value, row, column):
    def change(array):
        array[row, column] = value
        return array

    return change


@pytest.mark.parametrize(
    ("model", "variant"), [("lsap-l", "chosen"), ("exact", "paper")]
)
@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("features", lambda X: X * (np.arange(N_NODES) != 3)[:, None]),
        ("features", lambda X: (X - X.mean(1, keepdims=True)) * 1e30),
        ("features", lambda X: (9 * X).astype(int)),
        ("adjacency", lambda W: 0 * W),
        ("adjacency", lambda W: W * np.add.outer(*[np.arange(N_NODES)] * 2)),
    ],
)
def test_extreme_graphs_give_finite_numbers(graph, model, variant, part, change):
    model = make(model, variant, n_epochs=2)
    model.fit(changed(graph, part, change), TRAIN, VALIDATION)
    assert np.allclose(model.predict_proba().sum(1), 1.0, atol=1e-5)
    assert np.isfinite(model.scale_).all()


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("features", put(np.nan, 55, 1), "diverged.* features .* NaN"),
        ("adjacency", put(np.nan, 4, 2), "W must be finite"),
        ("adjacency", put(-1.0, 4, 2), "W must not be negative"),
        ("adjacency", put(7.0, 4, 2), "W must be symmetric"),
    ],
)
def test_impossible_graphs_are_refused(graph, part, change, said):
    with pytest.raises(ParameterError, match=said):
        make(n_epochs=2).fit(changed(graph, part, change), TRAIN)
