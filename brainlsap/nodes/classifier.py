"""Classifiers of the nodes of one graph, and the training that they share."""

import copy
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from brainlsap.exceptions import ParameterError
from brainlsap.graph import error_bound
from brainlsap.model.training import seeded
from brainlsap.nodes.networks import (
    HeatScale,
    NodeInputs,
    heat_network,
    prepare_nodes,
)
from brainlsap.nodes.settings import NodeSettings, resolve_node_settings

# The released code pushes a scale up where it is below this.
_BARRIER = 0.01
# GCNII's, of the layers between its linear maps.
_DEEP_DECAY = 0.01
# Starts of a network that does not learn its training nodes.
_STARTS = 3
# Of the way from the largest class's share to 1; below, nothing was learned.
_LEARNED = 0.1


class LabelledNodes(NamedTuple):
    """Some nodes and the codes of their classes."""

    nodes: Tensor
    codes: Tensor


class NodeClassifier(ClassifierMixin, BaseEstimator):
    """What every classifier of nodes shares: fit, predict, and what they store."""

    random_state: int
    settings: Callable[..., NodeSettings]
    _make_network: Callable[[NodeInputs, int, NodeSettings], nn.Module]

    def fit(
        self, graph: Any, train: np.ndarray, validation: np.ndarray | None = None
    ) -> Self:
        """Learn from the training nodes; validation nodes choose the epoch.

        A network that does not learn its training nodes is started again, twice; where
        it still does not, that is warned of and stands in `fit_report_["failed"]`.

        Parameters
        ----------
        graph : NodeGraph, or any object with `adjacency`, `features` and `labels`
            Labels of other nodes than the two sets below are not read.
        train, validation : mask of shape (n_nodes,) or numbers of nodes
            Without validation the last epoch is kept.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            For sets that overlap or hold nodes without label, parts that do not fit,
            a signal of validation nodes without them, or training that diverges.
        """
        settings = self.settings(getattr(graph, "name", ""))
        moves = settings.scale_mode in {"node", "global"}
        if validation is None and moves and settings.scale_signal == "validation":
            raise ParameterError(
                "scale_signal='validation' needs validation nodes: give validation=, "
                "or choose scale_signal='consistency' or 'labels'."
            )
        n_nodes = graph.adjacency.shape[0]
        self.classes_, learned, chosen = read_labels(
            graph.labels, train, validation, n_nodes
        )
        inputs = prepare_nodes(graph, settings)
        majority = float(torch.bincount(learned.codes).max() / len(learned.codes))
        wanted = majority + _LEARNED * (1 - majority)
        with seeded(self.random_state, torch.device("cpu")):
            for _ in range(_STARTS):
                network = self._make_network(inputs, len(self.classes_), settings)
                report, history = train_nodes(network, learned, chosen, settings)
                if report["train_accuracy"] >= wanted:
                    break
        if not np.isfinite(history["train_loss"][-1]):
            raise ParameterError(
                "training diverged; lower learning_rate or scale_step, or check the "
                "features."
            )
        failed = None
        if report["train_accuracy"] < wanted:
            failed = (
                f"the network did not learn its training nodes in {_STARTS} starts: "
                f"accuracy {report['train_accuracy']:.2f} on them, {majority:.2f} for "
                "the largest class"
            )
            warnings.warn(f"{failed}.", UserWarning, stacklevel=2)
        self.network_, self.history_, self.settings_ = network, history, settings
        self.n_features_in_ = graph.features.shape[1]
        self.best_epoch_ = report["best_epoch"]
        self.fit_report_: dict[str, Any] = report | {"failed": failed}
        return self

    def predict_proba(self, nodes: np.ndarray | None = None) -> np.ndarray:
        """Return the probability of every class.

        Parameters
        ----------
        nodes : mask or numbers of nodes, optional
            Of the graph of the fit; by default all.

        Returns
        -------
        array of shape (n_nodes, n_classes)
        """
        check_is_fitted(self, "network_")
        with torch.no_grad():
            probability = self.network_(1)[:, 0].softmax(1).double().numpy()
        return probability if nodes is None else probability[np.asarray(nodes)]

    def predict(self, nodes: np.ndarray | None = None) -> np.ndarray:
        """Return the class of highest probability; as :meth:`predict_proba`."""
        probability = self.predict_proba(nodes)
        return self.classes_[probability.argmax(1)]

    def score(self, graph: Any, nodes: np.ndarray) -> float:  # type: ignore[override]
        """Return the accuracy on some nodes; only here their labels are read."""
        truth = np.asarray(graph.labels)[np.asarray(nodes)]
        return float((self.predict(nodes) == truth).mean())


class LSAPNodeClassifier(NodeClassifier):
    """Classify nodes by heat convolutions whose scale is learned for every node.

    Parameters
    ----------
    kernel : {"chebyshev", "exact", "hermite", "laguerre"}
        How the heat kernel is made; `exact` needs eigenvectors, up to
        `max_exact_nodes`.
    preset : {"default", "paper"}
        Random propagation with consistency, or the paper's network and its
        hyperparameters by the name of the graph. The settings below are None for
        the preset's.
    scale_mode : {"node", "global", "descriptors", "frozen"}, optional
        One scale for each node, one for all, a logistic function of label-free
        descriptors of each node, or the start for ever.
    scale_signal : {"labels", "consistency", "validation"}, optional
        What moves the scales: the loss of training labels; that and the
        consistency of predictions under dropout on all nodes; or the loss of
        validation labels (which then choose twice). Descriptors' scales are weights
        and move with all losses of training.
    initial_scale, max_scale : float, optional
        Where scales start, and the largest; dimensionless.
    n_layers : int, optional
        Number K of heat convolutions.
    hidden_units : int, optional
        Channels between layers.
    n_epochs, patience : int, optional
        At the most; and without a better validation (0 for no early stop).
    random_state : int
        Seed of weights and dropout.
    options : dict, optional
        Rarer settings by name. Kernel: `degree` (by default the lowest within
        `tolerance`, the largest error of the kernel), `max_exact_nodes`. Scales:
        `scale_step` (the paper's beta_s), `scale_clip` (the most that one moves in an
        epoch), `scale_smoothness` (heat scale by which their slope is spread over the
        graph), `scale_penalty` ("none", "barrier", "l1") and `penalty_weight` (the
        paper's alpha). Network: `head` ("linear": a layer without diffusion gives the
        logits; "convolution"), `dropout`, `input_dropout`, `node_dropout` (shares of
        hidden channels, of features, of whole nodes), `self_loops`, `normalize`
        ("row", "none": features over their sum). Training: `n_views` draws of dropout
        an epoch, `consistency` (weight of their squared distance from their mean,
        sharpened by `temperature`), `learning_rate`, `weight_decay`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Classes of the training nodes.
    scale_ : array of shape (n_nodes,)
        Learned heat scales.
    best_epoch_ : int
        The epoch that was kept.
    history_ : dict of lists
        `train_loss` and `validation_accuracy` of every epoch.
    settings_ : NodeSettings
        As used, with the degree that was chosen.
    fit_report_ : dict
        Epoch, accuracies, kernel and its error at the scales, as plain numbers;
        `failed` says why where the network did not learn.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from scipy import sparse
    >>> W = np.kron(np.eye(2), np.ones((6, 6)) - np.eye(6)).astype(np.float32)
    >>> graph = SimpleNamespace(
    ...     adjacency=sparse.csr_array(W),
    ...     features=sparse.csr_array(np.eye(12, dtype=np.float32)),
    ...     labels=np.repeat([0, 1], 6),
    ... )
    >>> model = LSAPNodeClassifier(n_epochs=40, random_state=1)
    >>> model.fit(graph, train=np.array([0, 6]), validation=np.array([1, 7]))
    LSAPNodeClassifier(n_epochs=40, random_state=1)
    >>> model.score(graph, np.array([2, 3, 4, 5, 8, 9, 10, 11]))
    1.0
    """

    def __init__(
        self,
        kernel: str = "chebyshev",
        *,
        preset: str = "default",
        scale_mode: str | None = None,
        scale_signal: str | None = None,
        initial_scale: float | None = None,
        max_scale: float | None = None,
        n_layers: int | None = None,
        hidden_units: int | None = None,
        n_epochs: int | None = None,
        patience: int | None = None,
        random_state: int = 0,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.kernel = kernel
        self.preset = preset
        self.scale_mode = scale_mode
        self.scale_signal = scale_signal
        self.initial_scale = initial_scale
        self.max_scale = max_scale
        self.n_layers = n_layers
        self.hidden_units = hidden_units
        self.n_epochs = n_epochs
        self.patience = patience
        self.random_state = random_state
        self.options = options

    def settings(self, dataset: str = "") -> NodeSettings:
        """Return the settings of a fit on a data set of this name, checked.

        Raises
        ------
        ParameterError
            For a setting that is unknown or cannot be used.
        """
        named = self.get_params(deep=False)
        for name in ("preset", "random_state", "options"):
            del named[name]
        given = {**named, **(self.options or {})}
        return resolve_node_settings(self.preset, given, dataset)

    _make_network = staticmethod(heat_network)

    def fit(
        self, graph: Any, train: np.ndarray, validation: np.ndarray | None = None
    ) -> Self:
        """Learn; as `NodeBaseline.fit`, which documents the parameters."""
        super().fit(graph, train, validation)
        settings = self.settings_
        heat = self.network_.get_submodule("heat")
        self.scale_ = heat().detach().double().numpy().copy()
        largest = float(self.scale_.max())
        self.fit_report_ |= {
            "kernel": settings.kernel,
            "degree": settings.degree,
            "kernel_error": error_bound(settings.kernel, largest, settings.degree),
        }
        return self


def read_labels(
    labels: Any, train: Any, validation: Any, n_nodes: int
) -> tuple[np.ndarray, LabelledNodes, LabelledNodes | None]:
    """Read the labels of training and validation nodes, and no others."""
    sets = {"train": _numbers("train", train, n_nodes)}
    if validation is not None:
        sets["validation"] = _numbers("validation", validation, n_nodes)
        shared = np.intersect1d(sets["train"], sets["validation"])
        if len(shared):
            raise ParameterError(
                f"{len(shared)} node(s) stand in both train and validation, the first "
                f"is node {int(shared[0])}; they must not overlap."
            )
    classes = np.unique(np.asarray(labels)[sets["train"]])
    found = {}
    for name, nodes in sets.items():
        mine = np.asarray(labels)[nodes]
        known = np.isin(mine, classes)
        if mine.dtype.kind in "if":  # negative or NaN stands for no label
            known &= mine >= 0
        if not known.all():
            raise ParameterError(
                f"{int((~known).sum())} node(s) of {name} have no label, or one that "
                "no training node has; leave them out."
            )
        codes = torch.from_numpy(np.searchsorted(classes, mine))
        found[name] = LabelledNodes(torch.from_numpy(nodes), codes)
    if len(classes) < 2:
        raise ParameterError(
            f"train holds the class {classes[0]!s} only; at least 2 are needed."
        )
    return classes, found["train"], found.get("validation")


def _numbers(name: str, nodes: Any, n_nodes: int) -> np.ndarray:
    """Return the numbers of nodes given by mask or number, checked."""
    given = np.asarray(nodes)
    if given.dtype == bool and given.shape == (n_nodes,):
        given = np.flatnonzero(given)
    inside = given.dtype.kind in "iu" and np.isin(given, np.arange(n_nodes)).all()
    if not inside or given.ndim != 1 or not len(given) == len(np.unique(given)) > 0:
        raise ParameterError(
            f"{name} must be a mask of shape ({n_nodes},), or numbers of nodes from 0 "
            f"to {n_nodes - 1}, each once; got {given.dtype} of shape {given.shape}."
        )
    return given


def train_nodes(
    network: nn.Module,
    train: LabelledNodes,
    validation: LabelledNodes | None,
    settings: NodeSettings,
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Train until validation stops improving; the network is left at its best."""
    groups = weight_groups(network, settings.weight_decay)
    adam = torch.optim.Adam(groups, lr=settings.learning_rate)
    start = time.perf_counter()
    losses: list[float] = []
    accuracies: list[float] = []
    best = (-1.0, 0.0)  # accuracy, and the loss times -1
    best_epoch, kept = -1, None
    for epoch in range(settings.n_epochs):
        losses.append(take_epoch(network, train, settings, adam, validation))
        if not np.isfinite(losses[-1]):
            break
        if validation is None:
            best_epoch = epoch
            continue
        accuracy, loss = look(network, validation)
        accuracies.append(accuracy)
        if (accuracy, -loss) > best:
            best, best_epoch = (accuracy, -loss), epoch
            kept = copy.deepcopy(network.state_dict())
        elif settings.patience and epoch - best_epoch >= settings.patience:
            break
    if kept is not None:
        network.load_state_dict(kept)
    report = {
        "best_epoch": best_epoch,
        "n_epochs": len(losses),
        "train_accuracy": look(network, train)[0],
        "validation_accuracy": best[0] if accuracies else float("nan"),
        "validation_loss": -best[1] if accuracies else float("nan"),
        "seconds": time.perf_counter() - start,
    }
    return report, {"train_loss": losses, "validation_accuracy": accuracies}


@torch.no_grad()
def look(network: nn.Module, nodes: LabelledNodes) -> tuple[float, float]:
    """Return accuracy and cross-entropy of some nodes, nothing dropped."""
    network.eval()
    mine = network(1)[nodes.nodes, 0]
    right = (mine.argmax(1) == nodes.codes).float().mean()
    return float(right), float(nn.functional.cross_entropy(mine, nodes.codes))


def weight_groups(network: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Return weights by their decay: the settings', or that of GCNII's deep layers."""
    groups: dict[float, list[Tensor]] = {}
    for name, weight in network.named_parameters():
        if "raw_scale" not in name:
            own = _DEEP_DECAY if name.startswith("deep.") else decay
            groups.setdefault(own, []).append(weight)
    return [{"params": group, "weight_decay": d} for d, group in groups.items()]


def take_epoch(
    network: nn.Module,
    train: LabelledNodes,
    settings: NodeSettings,
    adam: torch.optim.Optimizer,
    validation: LabelledNodes | None = None,
) -> float:
    """Take one full-batch epoch with both updates; return the loss of the labels."""
    network.train()
    network.zero_grad()
    logits = network(settings.n_views)
    loss = total = label_loss(logits, train)
    if settings.consistency:
        apart = inconsistency(logits, settings.temperature)
        total = loss + settings.consistency * apart
    heat, slope = getattr(network, "heat", None), None
    if not isinstance(heat, HeatScale) or not heat.raw_scale.requires_grad:
        heat = None  # frozen, or weights like the others
    signal = settings.scale_signal
    if heat is not None and signal == "labels" and settings.consistency:
        (slope,) = torch.autograd.grad(loss, heat.raw_scale, retain_graph=True)
    total.backward()
    if heat is not None and signal == "validation" and validation is not None:
        chosen = label_loss(network(1), validation)
        (slope,) = torch.autograd.grad(chosen, heat.raw_scale)
    adam.step()
    if heat is not None:
        slope = heat.raw_scale.grad if slope is None else slope
        _step_scales(network, heat, slope, settings)
    return float(loss.detach())


def label_loss(logits: Tensor, train: LabelledNodes) -> Tensor:
    """Return the mean cross-entropy of the labelled nodes over all views."""
    mine = logits[train.nodes]
    codes = train.codes[:, None].expand(mine.shape[:2])
    return nn.functional.cross_entropy(mine.flatten(0, 1), codes.flatten())


def inconsistency(logits: Tensor, temperature: float) -> Tensor:
    """Return how far views differ from their own sharpened mean, over all nodes."""
    probability = logits.softmax(-1)
    sharp = probability.mean(1).pow(1 / temperature)
    target = (sharp / sharp.sum(1, keepdim=True)).detach()
    return (probability - target[:, None]).square().sum(-1).mean()


@torch.no_grad()
def _step_scales(
    network: nn.Module, heat: HeatScale, slope: Tensor | None, settings: NodeSettings
) -> None:
    """Smooth the slope over the graph if asked for, add the penalty's, and step."""
    if slope is None:
        return
    if settings.scale_smoothness and len(slope) > 1:
        # steepest descent where distance between scale vectors counts roughness:
        # nodes far from any label move with those near one
        width = torch.full_like(slope, min(settings.scale_smoothness, heat.largest))
        slope = network.diffuse(slope[:, None], width)[:, 0]  # type: ignore[operator]
    if settings.scale_penalty == "l1":
        slope = slope + settings.penalty_weight
    elif settings.scale_penalty == "barrier":
        slope = slope - settings.penalty_weight * (heat.raw_scale < _BARRIER)
    heat.raw_scale.grad = slope
    heat.step_(settings.scale_step, settings.scale_clip)
