"""What every classifier of the nodes of one graph shares."""

import copy
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from brainlsap.exceptions import ParameterError
from brainlsap.model.node_graph_inputs import NodeInputs, prepare_nodes
from brainlsap.model.node_labels import check_node_labels, check_nodes
from brainlsap.model.node_settings import NodeSettings
from brainlsap.model.node_training import NodeRun, train_nodes


class NodeClassifier(ClassifierMixin, BaseEstimator):
    """What every classifier of nodes shares: fit, predict, and what they store.

    A subclass says its settings and makes its network.
    """

    random_state: int

    def settings(self, dataset: str = "") -> NodeSettings:
        """Return the settings of a fit on a data set of this name."""
        raise NotImplementedError

    def _make_network(
        self, inputs: NodeInputs, n_classes: int, settings: NodeSettings
    ) -> nn.Module:
        raise NotImplementedError

    def fit(
        self, graph: Any, train: np.ndarray, validation: np.ndarray | None = None
    ) -> "NodeClassifier":
        """Learn from the training nodes; validation nodes choose the epoch.

        No other label is read: those of test nodes may be wrong or absent.

        Parameters
        ----------
        graph : NodeGraph
            Anything with `adjacency`, `features` and `labels` (and a `name`).
        train : bool array of shape (n_nodes,), or int array of nodes
            Learned from.
        validation : bool array of shape (n_nodes,), or int array of nodes, optional
            Chooses the epoch; without it the last one is kept.

        Returns
        -------
        NodeClassifier
            Itself.

        Raises
        ------
        ParameterError
            For settings, nodes or labels that cannot be used.
        """
        settings = self.settings(getattr(graph, "name", ""))
        n_nodes = graph.adjacency.shape[0]
        self.classes_, learned, chosen = check_node_labels(
            graph.labels, *check_nodes(train, validation, n_nodes)
        )
        inputs = prepare_nodes(graph, settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            self.network_ = self._make_network(inputs, len(self.classes_), settings)
            self.history_: NodeRun = train_nodes(
                self.network_, learned, chosen, settings
            )
        if not np.isfinite(self.history_.train_loss[-1]):
            raise ParameterError(
                "training diverged; lower learning_rate or scale_step, or check the "
                "features."
            )
        self.settings_, self.graph_ = settings, graph
        self.n_features_in_ = graph.features.shape[1]
        self.best_epoch_ = self.history_.best_epoch
        self.fit_report_ = self._report()
        return self

    def predict_proba(
        self, graph: Any = None, nodes: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the probability of every class.

        Parameters
        ----------
        graph : NodeGraph, optional
            By default the one of the fit; another must have as many nodes and
            features.
        nodes : bool array of shape (n_nodes,), or int array of nodes, optional
            By default all.

        Returns
        -------
        array of shape (n_nodes, n_classes)
            Of the nodes asked for.
        """
        check_is_fitted(self, "network_")
        network = self.network_
        if graph is not None and graph is not self.graph_:
            network = self._on(graph)
        with torch.no_grad():
            probability = network(1)[:, 0].softmax(1).double().numpy()
        return probability if nodes is None else probability[np.asarray(nodes)]

    def predict(self, graph: Any = None, nodes: np.ndarray | None = None) -> np.ndarray:
        """Return the class of highest probability.

        Parameters
        ----------
        graph : NodeGraph, optional
            As for :meth:`predict_proba`.
        nodes : bool array of shape (n_nodes,), or int array of nodes, optional
            By default all.

        Returns
        -------
        array of shape (n_nodes,)
            Of the nodes asked for.
        """
        probability = self.predict_proba(graph, nodes)
        return self.classes_[probability.argmax(1)]

    def score(self, graph: Any, nodes: np.ndarray) -> float:  # type: ignore[override]
        """Return the accuracy on some nodes; here their labels are read.

        Parameters
        ----------
        graph : NodeGraph
            With labels.
        nodes : bool array of shape (n_nodes,), or int array of nodes
            Which are scored.

        Returns
        -------
        float
            Share that is right.
        """
        truth = np.asarray(graph.labels)[np.asarray(nodes)]
        return float((self.predict(graph, nodes) == truth).mean())

    def _on(self, graph: Any) -> nn.Module:
        """Return the fitted network over another graph."""
        fitted = self.graph_
        wanted = (fitted.adjacency.shape[0], self.n_features_in_)
        found = (graph.adjacency.shape[0], graph.features.shape[1])
        if found != wanted:
            raise ParameterError(
                f"the fit saw {wanted[0]} nodes of {wanted[1]} features, got "
                f"{found[0]} of {found[1]}."
            )
        inputs = prepare_nodes(graph, self.settings_)
        # weights are drawn and then replaced: nobody's generator moves on for that
        with torch.random.fork_rng(devices=[]):
            network = self._make_network(inputs, len(self.classes_), self.settings_)
        network.load_state_dict(copy.deepcopy(self.network_.state_dict()))
        return network.eval()

    def _report(self) -> dict[str, Any]:
        run = self.history_
        return {
            "best_epoch": run.best_epoch,
            "n_epochs": run.n_epochs,
            "validation_accuracy": run.validation_accuracy,
            "validation_loss": run.validation_loss,
            "seconds": run.seconds,
        }
