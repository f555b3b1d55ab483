"""The classifier of the nodes of one graph, and its training."""

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from brainlsap.exceptions import ParameterError
from brainlsap.model.training import seeded
from brainlsap.nodes.graphs import NodeGraph
from brainlsap.nodes.networks import NodeNetwork
from brainlsap.nodes.settings import NodeSettings, resolve_node_settings

# Indices of labelled nodes, and the codes of their classes.
LabelledNodes = tuple[Tensor, ...]


@dataclass(eq=False, repr=False)
class LSAPNodeClassifier(ClassifierMixin, BaseEstimator):
    """Classify nodes by heat convolutions whose scale is learned for every node.

    Parameters
    ----------
    model : str
        LSAP by its kernel: lsap-c (Chebyshev), lsap-h (Hermite), lsap-l (Laguerre),
        exact (by eigenvectors, up to `max_exact_nodes`). Or a baseline, trained and
        chosen exactly as LSAP is: mlp; gcn (Kipf and Welling 2017); gat (Velickovic
        et al. 2018); sgc (Wu et al. 2019); appnp and gdc (Gasteiger et al. 2019);
        graphheat (Xu et al. 2019); adc (Zhao et al. 2021); gcnii (Chen et al. 2020);
        dagnn (Liu et al. 2020); grand (random propagation, Feng et al. 2020).
    variant : str
        How LSAP's scales are learned: one for each node, moved by the loss of
        training labels ("labels"), by that and the consistency of predictions under
        dropout on all nodes ("consistency"), or by the loss of validation labels,
        which then choose twice ("validation"); one for all ("global"); the start for
        ever ("frozen"); "paper" for the paper's network and hyperparameters. "chosen"
        takes what was chosen on validation nodes of the data set of the graph's
        name, else "consistency".
    n_epochs : int, optional
        At the most; by default the model's own.
    random_state : int
        Seed of weights and dropout.
    device : str
        Where to train, as torch names it.
    options : dict, optional
        Other settings by name, in place of the model's own on this data set. Kernel:
        `degree` (by default the lowest within `tolerance`, the largest error of the
        kernel), `max_exact_nodes`, `self_loops`. Scales: `scale_mode` ("node",
        "global", "frozen"), `scale_signal` (as the variants), `initial_scale`,
        `max_scale`, `scale_step` (the paper's beta_s), `scale_clip` (the most that
        one moves in an epoch), `scale_penalty` ("none", "barrier", "l1") and
        `penalty_weight` (the paper's alpha). Network: `n_layers` (the number K of
        heat convolutions), `hidden_units`, `head` ("linear": a layer without
        diffusion gives the logits; "convolution"), `dropout`,
        `input_dropout`, `node_dropout` (shares of hidden channels, of features, of
        whole nodes), `normalize` ("row", "none": features over their sum). Training:
        `n_views` draws of dropout an epoch, `consistency` (weight of their squared
        distance from their mean, sharpened by `temperature`), `learning_rate`,
        `weight_decay`, `patience` (epochs without a better validation; 0 for no
        early stop).

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Classes of the training nodes.
    scale_ : array of shape (n_nodes,)
        Learned heat scales; of models that diffuse heat.
    best_epoch_ : int
        The epoch that was kept.
    history_ : dict of lists
        `train_loss` and `validation_accuracy` of every epoch.
    settings_ : NodeSettings
        As used, with the degree that was chosen.

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

    model: str = "lsap-c"
    _: KW_ONLY
    variant: str = "chosen"
    n_epochs: int | None = None
    random_state: int = 0
    device: str = "cpu"
    options: dict[str, object] | None = None

    def settings(self, dataset_name: str = "") -> NodeSettings:
        """Return the settings of a fit on a data set of this name, checked.

        Raises
        ------
        ParameterError
            For a setting that is unknown or cannot be used.
        """
        setting_values = {"n_epochs": self.n_epochs, **(self.options or {})}
        return resolve_node_settings(
            self.model, self.variant, setting_values, dataset_name
        )

    def fit(
        self, graph: NodeGraph, train: np.ndarray, validation: np.ndarray | None = None
    ) -> Self:
        """Learn from the training nodes; validation nodes choose the epoch.

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
        if validation is None and settings.scale_signal == "validation":
            raise ParameterError("scale_signal='validation' needs validation nodes.")
        device = torch.device(self.device)
        self.classes_, training_labels, validation_labels = read_node_labels(
            graph, train, validation, device
        )
        with seeded(self.random_state, device):
            network = NodeNetwork(graph, len(self.classes_), settings).to(device)
            best_epoch, self.history_ = train_nodes(
                network, training_labels, validation_labels
            )
        if not np.isfinite(self.history_["train_loss"][-1]):
            raise ParameterError(
                "training diverged; lower learning_rate or scale_step, or look for NaN "
                "and very large numbers in features and adjacency."
            )
        self.network_, self.settings_, self.best_epoch_ = network, settings, best_epoch
        if settings.network == "heat":
            self.scale_ = network.heat().detach().cpu().double().numpy()
        return self

    def predict_proba(self) -> np.ndarray:
        """Return the probability of every class for the nodes of the fit's graph.

        Returns
        -------
        array of shape (n_nodes, n_classes)
        """
        check_is_fitted(self, "network_")
        with torch.no_grad():
            return self.network_(1)[:, 0].softmax(1).cpu().double().numpy()

    def predict(self) -> np.ndarray:
        """Return the class of highest probability of every node."""
        return self.classes_[self.predict_proba().argmax(1)]

    def score(self, graph: NodeGraph, nodes: np.ndarray) -> float:  # type: ignore[override]
        """Return the accuracy on some nodes; only here their labels are read."""
        return float((self.predict() == np.asarray(graph.labels))[nodes].mean())


def read_node_labels(
    graph: NodeGraph,
    train: np.ndarray,
    validation: np.ndarray | None = None,
    device: str | torch.device = "cpu",
) -> tuple[np.ndarray, LabelledNodes, LabelledNodes | None]:
    """Read the labels of training and validation nodes, and no others."""
    labels = np.asarray(graph.labels)
    node_sets = [nodes for nodes in (train, validation) if nodes is not None]
    index_sets = [np.arange(len(labels))[nodes] for nodes in node_sets]
    shared_nodes = np.intersect1d(*index_sets) if len(index_sets) > 1 else []
    if len(shared_nodes):
        raise ParameterError(
            f"{len(shared_nodes)} node(s) stand in both train and validation: "
            f"{shared_nodes[:5]}."
        )
    classes = np.unique(labels[index_sets[0]])
    if classes.dtype.kind in "if":  # negative or NaN stands for no label
        classes = classes[classes >= 0]
    is_unknown = ~np.isin(labels[np.concatenate(index_sets)], classes)
    if is_unknown.any() or len(classes) < 2:
        raise ParameterError(
            "train must hold two classes, and validation no others: "
            f"{is_unknown.sum()} node(s) have no label, or one that no training node "
            f"has; train has the classes {classes.tolist()}."
        )
    labelled_sets = []
    for nodes in index_sets:
        class_codes = np.searchsorted(classes, labels[nodes])
        labelled_sets.append(
            (
                torch.from_numpy(nodes).to(device),
                torch.from_numpy(class_codes).to(device),
            )
        )
    return (
        classes,
        labelled_sets[0],
        labelled_sets[1] if validation is not None else None,
    )


def train_nodes(
    network: NodeNetwork, train: LabelledNodes, validation: Any
) -> tuple[int, dict[str, list[float]]]:
    """Train until validation stops improving; the network ends at its best epoch.

    Returns that epoch, and every epoch's training loss and validation
    accuracy.
    """
    settings, parameters = network.settings, dict(network.named_parameters())
    parameters.pop("heat.raw_scale")
    deep_weights = [
        parameters.pop(parameter_name)
        for parameter_name in [*parameters]
        if parameter_name.startswith("deep.")
    ]
    # the inner weights of GCNII have a decay of their own
    parameter_groups = (
        {"params": parameters.values()},
        {"params": deep_weights, "weight_decay": 0.01},
    )
    learning_rate, weight_decay = settings.learning_rate, settings.weight_decay
    optimizer = torch.optim.Adam(
        parameter_groups, learning_rate, weight_decay=weight_decay
    )
    history: dict[str, list[float]] = {"train_loss": [], "validation_accuracy": []}
    best_score, best_epoch, best_state = (-1.0, 0.0), -1, {}
    for epoch in range(settings.n_epochs):
        epoch_results = [train_epoch(network, optimizer, train, validation)]
        if validation is not None:
            epoch_results += evaluate_nodes(network, validation)
        # the only synchronisation with the device in an epoch
        loss, *validation_scores = torch.stack(epoch_results).tolist()
        history["train_loss"].append(loss)
        history["validation_accuracy"] += validation_scores[:1]
        epoch_score = (0.0, float(epoch))
        if validation_scores:
            epoch_score = (validation_scores[0], -validation_scores[1])
        if epoch_score > best_score:
            best_score, best_epoch = epoch_score, epoch
            best_state = copy.deepcopy(network.state_dict())
        is_stale = settings.patience and epoch - best_epoch >= settings.patience
        if is_stale or not np.isfinite(loss):
            break
    network.load_state_dict(best_state)
    network.eval()
    return best_epoch, history


@torch.no_grad()
def evaluate_nodes(
    network: nn.Module, labelled_nodes: LabelledNodes
) -> tuple[Tensor, Tensor]:
    """Return accuracy and cross-entropy of labelled nodes, without dropout."""
    network.eval()
    logits, (node_index, class_codes) = network(1), labelled_nodes
    node_accuracy = (logits[node_index, 0].argmax(1) == class_codes).float().mean()
    return node_accuracy, label_loss(logits, labelled_nodes)


def train_epoch(
    network: NodeNetwork,
    optimizer: torch.optim.Adam,
    train: LabelledNodes,
    validation: Any,
) -> Tensor:
    """Train one full-batch epoch with both updates; return the loss of the labels."""
    settings = network.settings
    network.train()
    network.zero_grad()
    logits = network(settings.n_views)
    loss = total_loss = label_loss(logits, train)
    if settings.consistency:
        consistency_loss = inconsistency(logits, settings.temperature)
        total_loss = loss + settings.consistency * consistency_loss
    scale_loss = total_loss
    scale = network.heat.raw_scale
    scale_signal = settings.scale_signal
    if scale.requires_grad and scale_signal != "consistency":
        scale_loss = (
            loss if scale_signal == "labels" else label_loss(network(1), validation)
        )
    total_loss.backward(retain_graph=scale_loss is loss)
    if scale_loss is not total_loss:
        (scale.grad,) = torch.autograd.grad(scale_loss, scale)
    optimizer.step()
    network.heat.step_(settings)
    return loss.detach()


def label_loss(logits: Tensor, labelled_nodes: LabelledNodes) -> Tensor:
    """Return the mean cross-entropy of the labelled nodes over all views."""
    node_index, class_codes = labelled_nodes
    class_codes = class_codes[:, None].expand(-1, logits.shape[1]).flatten()
    return nn.functional.cross_entropy(logits[node_index].flatten(0, 1), class_codes)


def inconsistency(logits: Tensor, temperature: float) -> Tensor:
    """Return how far views differ from their own sharpened mean, over all nodes."""
    probabilities = logits.softmax(-1)
    sharpened_mean = probabilities.mean(1).pow(1 / temperature)
    target_probabilities = (
        sharpened_mean / sharpened_mean.sum(1, keepdim=True)
    ).detach()
    return (probabilities - target_probabilities[:, None]).square().sum(-1).mean()
