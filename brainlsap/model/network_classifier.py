"""The networks that LSAP is compared with, behind one scikit-learn face."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.exceptions import ParameterError
from brainlsap.model.diffusion_networks import (
    heat_kernels,
    make_adc,
    make_graph_heat,
    spectra,
)
from brainlsap.model.graph_networks import (
    adjacency_with_loops,
    diffused_adjacency,
    geometric_layers,
    make_gat,
    make_gcn,
)
from brainlsap.model.graph_scans import GraphScans, prepare_scans
from brainlsap.model.inner_split import inner_split
from brainlsap.model.inputs import (
    InputScaler,
    check_groups,
    check_labels,
    check_packed,
    check_same_size,
    threads,
)
from brainlsap.model.network_training import logits_of, train_module
from brainlsap.model.packed_classifier import PackedClassifier
from brainlsap.model.plain_networks import (
    BrainNetwork,
    Perceptron,
    log_edges,
    no_graphs,
)

GraphReader = Callable[[np.ndarray], tuple[Tensor, ...]]


class NetworkKind(NamedTuple):
    """How a network is made, what it keeps of a graph, and whether it needs PyG."""

    make: Callable[[int, int, Any, Tensor], nn.Module]
    read_graphs: GraphReader
    geometric: bool = False


NETWORKS = {
    "mlp": NetworkKind(Perceptron, no_graphs),
    "gcn": NetworkKind(make_gcn, adjacency_with_loops, geometric=True),
    "gat": NetworkKind(make_gat, adjacency_with_loops, geometric=True),
    "gdc": NetworkKind(make_gcn, diffused_adjacency, geometric=True),
    # heat_kernels is given the scale of the settings
    "graphheat": NetworkKind(make_graph_heat, spectra),
    "adc": NetworkKind(make_adc, spectra),
    "brainnetcnn": NetworkKind(BrainNetwork, log_edges),
}
"""Every network by name."""

_LOWEST = {
    "hidden_units": 1,
    "n_layers": 1,
    "learning_rate": 0.0,
    "weight_decay": 0.0,
    "scale": 0.0,
    "n_epochs": 1,
    "patience": 0,
    "batch_size": 1,
    "n_starts": 1,
    "threshold": 0.0,
    "n_threads": 1,
}


class NetworkClassifier(PackedClassifier):
    """Classify scans by a network from the literature, to compare LSAP with.

    All networks get the same standardised features, the same flattened read-out of
    two layers and the same early stopping on a slice of the training people; they
    differ in how they use the connectome. Defaults are the paper's (two layers of 16
    units, dropout 0.5, Adam with 0.01 and weight decay 5e-4).

    Parameters
    ----------
    network : {"mlp", "gcn", "gat", "gdc", "graphheat", "adc", "brainnetcnn"}
        A perceptron on features alone; graph convolution, attention, and convolution
        on graphs rewired by PageRank (these three need the extra `baselines`); one
        fixed heat kernel; a learned heat radius for each layer and channel; filters
        over edges beside the features.
    hidden_units, n_layers : int
        Units of each layer and of the read-out; graph layers.
    dropout : float
        Share of units dropped in training.
    learning_rate, weight_decay : float
        Of Adam.
    scale : float
        Heat scale of `graphheat`.
    n_epochs, patience : int
        Passes at the most, and without better validation loss (0: never stop early).
    batch_size : int
        Scans a step.
    validation_fraction : float
        Share of the training people that each start watches.
    n_starts : int
        Networks to average, each watching another slice.
    class_weight : {"balanced", "none"}
        Whether rare classes weigh more in the loss.
    threshold : float
        Edges below it are dropped, in the connectome's unit.
    weights : {"weighted", "log", "binary"}
        What becomes of the edges that stay.
    random_state : int, optional
        Seed; None counts as 0.
    n_threads : int
        CPU threads of one fit.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    networks_ : list of nn.Module
        One a start.
    fit_report_ : dict
        Epochs, losses and number of parameters.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(40, 5, 6))
    >>> y = np.where(np.arange(40) % 2, "AD", "CN")
    >>> X[y == "AD", 2, 5] += 5
    >>> model = NetworkClassifier("mlp", dropout=0.1, random_state=0)
    >>> model.fit(X, y, groups=np.arange(40)).predict(X[:2]).tolist()
    ['CN', 'AD']
    """

    def __init__(
        self,
        network: str = "mlp",
        *,
        hidden_units: int = 16,
        n_layers: int = 2,
        dropout: float = 0.5,
        learning_rate: float = 0.01,
        weight_decay: float = 5e-4,
        scale: float = 2.0,
        n_epochs: int = 200,
        patience: int = 20,
        batch_size: int = 64,
        validation_fraction: float = 0.2,
        n_starts: int = 1,
        class_weight: str = "balanced",
        threshold: float = 0.0,
        weights: str = "weighted",
        random_state: int | None = None,
        n_threads: int = 1,
    ) -> None:
        self.network, self.hidden_units, self.n_layers = network, hidden_units, n_layers
        self.dropout, self.learning_rate = dropout, learning_rate
        self.weight_decay, self.scale = weight_decay, scale
        self.n_epochs, self.patience = n_epochs, patience
        self.batch_size, self.validation_fraction = batch_size, validation_fraction
        self.n_starts, self.class_weight = n_starts, class_weight
        self.threshold, self.weights = threshold, weights
        self.random_state, self.n_threads = random_state, n_threads

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None = None,
        covariates: object = None,  # noqa: ARG002
    ) -> "NetworkClassifier":
        """Train every start.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            From :meth:`brainlsap.data.Cohort.to_array`; NaN marks features that
            were not measured.
        y : array of shape (n_scans,)
            Class of every scan.
        groups : array of shape (n_scans,), optional
            Participant of every scan, so that the slice that stops training early
            shares nobody with the rest.
        covariates : object, optional
            Declared for metadata routing; not looked at here.

        Returns
        -------
        NetworkClassifier

        Raises
        ------
        ParameterError
            For settings or arrays that cannot be used, a single class, or a network
            whose extra is not installed.
        """
        self._check_settings()
        connectomes, features = check_packed(X)
        self.classes_, codes = check_labels(y, len(features))
        groups = check_groups(groups, len(features), self)
        self.scaler_ = InputScaler.learn(features, "region")
        self.n_rois_, self.n_features_ = features.shape[1:]
        with threads(self.n_threads):
            scans = self._prepare(connectomes, features)
            runs = [
                self._train(scans, codes, groups, number)
                for number in range(self.n_starts)
            ]
        self.networks_ = [run.network for run in runs]
        self.fit_report_ = {
            "best_epoch": [run.best_epoch for run in runs],
            "n_epochs": [run.n_epochs for run in runs],
            "validation_loss": [run.best_loss for run in runs],
            "n_parameters": sum(p.numel() for p in self.networks_[0].parameters()),
        }
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of every class, the mean over starts.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            With the regions and features of the fit.

        Returns
        -------
        array of shape (n_scans, n_classes)

        Raises
        ------
        ParameterError
            If regions or features are not as many as the model was fitted on.
        """
        check_is_fitted(self, "networks_")
        connectomes, features = check_packed(X)
        check_same_size(features, self.n_rois_, self.n_features_)
        with threads(self.n_threads):
            scans = self._prepare(connectomes, features)
            each = [
                torch.softmax(logits_of(net, scans).double(), 1)
                for net in self.networks_
            ]
        return torch.stack(each).mean(0).numpy()

    def _prepare(self, connectomes: np.ndarray, features: np.ndarray) -> GraphScans:
        reader = NETWORKS[self.network].read_graphs
        if self.network == "graphheat":
            reader = partial(heat_kernels, scale=self.scale)
        return prepare_scans(
            connectomes,
            self.scaler_.apply(features),
            reader,
            threshold=self.threshold,
            weights=self.weights,
        )

    def _train(
        self, scans: GraphScans, codes: np.ndarray, groups: np.ndarray, number: int
    ) -> Any:
        seed = self.random_state or 0
        learn, watch = inner_split(
            codes, groups, self.validation_fraction, number, seed
        )
        if self.patience == 0:
            learn, watch = np.arange(len(codes)), watch[:0]
        measured = torch.from_numpy(self.scaler_.measured)
        make = NETWORKS[self.network].make
        return train_module(
            lambda: make(self.n_features_, len(self.classes_), self, measured),
            scans,
            codes,
            (learn, watch),
            self,
            seed + 7919 * number,
        )

    def _check_settings(self) -> None:
        check_choice("network", self.network, NETWORKS)
        check_choice("class_weight", self.class_weight, ("balanced", "none"))
        for name, lowest in _LOWEST.items():
            check_at_least(name, getattr(self, name), lowest)
        for name in ("dropout", "validation_fraction"):
            if not 0 <= getattr(self, name) < 1:
                raise ParameterError(
                    f"{name} must be at least 0 and below 1, "
                    f"got {getattr(self, name)!r}."
                )
        if NETWORKS[self.network].geometric:
            geometric_layers()
