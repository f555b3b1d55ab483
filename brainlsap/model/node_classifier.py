"""LSAP on the nodes of one graph, behind scikit-learn's face."""

from typing import Any

import numpy as np
from torch import nn

from brainlsap.graph import error_bound
from brainlsap.model.node_base import NodeClassifier
from brainlsap.model.node_graph_inputs import NodeInputs
from brainlsap.model.node_network import NodeNetwork
from brainlsap.model.node_scale import make_scale, node_descriptors
from brainlsap.model.node_settings import NodeSettings, resolve_node_settings

# Scales that stay this near their start were not learned.
_UNMOVED = 0.05


class LSAPNodeClassifier(NodeClassifier):
    """Classify nodes by heat convolutions whose range is learned for every node.

    One scale for each node cannot be learned from a few labels alone: a node that no
    labelled one looks at never sees a slope. `scale_mode`, `scale_signal` and
    `scale_smoothness` are the honest ways around it; none of them reads the label
    of a node that is neither for training nor for validation.

    Parameters
    ----------
    kernel : {"chebyshev", "exact", "hermite", "laguerre"}
        How the heat kernel is made; `exact` needs eigenvectors, up to
        `max_exact_nodes`.
    preset : {"default", "paper"}
        Random propagation with consistency, or the paper's network and its
        hyperparameters by the name of the graph. The settings below are None for
        the preset's.
    random_state : int
        Seed of weights and dropout.
    degree : int, optional
        Degree of the expansion; by default the lowest within `tolerance`.
    tolerance : float, optional
        Largest error of the kernel, whose values never exceed 1.
    max_scale : float, optional
        Largest scale.
    max_exact_nodes : int, optional
        The exact kernel is refused above so many nodes.
    scale_mode : {"node", "global", "descriptors", "frozen"}, optional
        One scale for each node, one for all, a logistic function of label-free
        descriptors of each node, or the start for ever.
    scale_signal : {"labels", "consistency", "validation"}, optional
        What moves the scales: the loss of training labels; that and the
        consistency of predictions under dropout on all nodes; or the loss of
        validation labels (which then choose twice). Descriptors' scales are weights
        and move with all losses of training.
    initial_scale : float, optional
        Where scales start; dimensionless.
    scale_step : float, optional
        Step size of the scales (the paper's beta_s).
    scale_clip : float, optional
        The most that a scale moves in an epoch.
    scale_smoothness : float, optional
        Heat scale by which the slope of the scales is spread over the graph, so
        that nodes move with their neighbours; 0 for none.
    scale_penalty : {"none", "barrier", "l1"}, optional
        The paper's term on scales, as in :class:`LSAPClassifier`.
    penalty_weight : float, optional
        Its weight (the paper's alpha).
    n_layers : int, optional
        Number K of heat convolutions.
    head : {"linear", "convolution"}, optional
        Whether a layer without diffusion gives the logits, or the last
        convolution.
    hidden_units : int, optional
        Channels between layers.
    dropout, input_dropout, node_dropout : float, optional
        Shares dropped while training: of hidden channels, of features, and of
        whole nodes' features.
    n_views : int, optional
        Draws of that dropout in each epoch.
    consistency : float, optional
        Weight of the views' squared distance from their sharpened mean.
    temperature : float, optional
        Of the sharpening; 1 for none.
    self_loops : bool, optional
        Whether every node is its own neighbour too.
    normalize : {"row", "none"}, optional
        Whether the features of each node are divided by their sum.
    learning_rate, weight_decay : float, optional
        Of Adam, for the weights.
    n_epochs, patience : int, optional
        At the most; and without a better validation (0 for no early stop).
    watch : {"accuracy", "loss"}, optional
        What of the validation nodes chooses the epoch; ties by the other.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Classes of the training nodes.
    scale_ : array of shape (n_nodes,)
        Learned heat scales.
    best_epoch_ : int
        The epoch that was kept.
    history_ : NodeRun
        What training went through.
    settings_ : NodeSettings
        As used, with the degree that was chosen.
    fit_report_ : dict
        Epoch, validation, scales and the kernel's error at them, as plain numbers.

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
        random_state: int = 0,
        degree: int | None = None,
        tolerance: float | None = None,
        max_scale: float | None = None,
        max_exact_nodes: int | None = None,
        scale_mode: str | None = None,
        scale_signal: str | None = None,
        initial_scale: float | None = None,
        scale_step: float | None = None,
        scale_clip: float | None = None,
        scale_smoothness: float | None = None,
        scale_penalty: str | None = None,
        penalty_weight: float | None = None,
        n_layers: int | None = None,
        head: str | None = None,
        hidden_units: int | None = None,
        dropout: float | None = None,
        input_dropout: float | None = None,
        node_dropout: float | None = None,
        n_views: int | None = None,
        consistency: float | None = None,
        temperature: float | None = None,
        self_loops: bool | None = None,
        normalize: str | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        n_epochs: int | None = None,
        patience: int | None = None,
        watch: str | None = None,
    ) -> None:
        self.kernel = kernel
        self.preset = preset
        self.random_state = random_state
        self.degree = degree
        self.tolerance = tolerance
        self.max_scale = max_scale
        self.max_exact_nodes = max_exact_nodes
        self.scale_mode = scale_mode
        self.scale_signal = scale_signal
        self.initial_scale = initial_scale
        self.scale_step = scale_step
        self.scale_clip = scale_clip
        self.scale_smoothness = scale_smoothness
        self.scale_penalty = scale_penalty
        self.penalty_weight = penalty_weight
        self.n_layers = n_layers
        self.head = head
        self.hidden_units = hidden_units
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.node_dropout = node_dropout
        self.n_views = n_views
        self.consistency = consistency
        self.temperature = temperature
        self.self_loops = self_loops
        self.normalize = normalize
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.n_epochs = n_epochs
        self.patience = patience
        self.watch = watch

    def settings(self, dataset: str = "") -> NodeSettings:
        """Return the settings of a fit, checked.

        Parameters
        ----------
        dataset : str
            Name of the graph, for the paper's hyperparameters.

        Returns
        -------
        NodeSettings

        Raises
        ------
        ParameterError
            For settings that cannot be used.
        """
        return resolve_node_settings(self.preset, self.get_params(), dataset)

    def _make_network(
        self, inputs: NodeInputs, n_classes: int, settings: NodeSettings
    ) -> nn.Module:
        heat = make_scale(
            settings,
            inputs.adjacency.shape[0],
            lambda: node_descriptors(inputs.adjacency, inputs.raw_features),
        )
        return NodeNetwork(inputs.features, inputs.diffusion, heat, n_classes, settings)

    def _report(self) -> dict[str, Any]:
        settings = self.settings_
        heat = self.network_.get_submodule("heat")
        self.scale_ = heat().detach().double().numpy().copy()
        start, largest = float(settings.initial_scale or 0), float(self.scale_.max())
        moved = np.abs(self.scale_ - start) > _UNMOVED * max(start, 1e-9)
        return {
            **super()._report(),
            "kernel": settings.kernel,
            "degree": settings.degree,
            "kernel_error": error_bound(settings.kernel, largest, settings.degree),
            "scale_mean": float(self.scale_.mean()),
            "scale_smallest": float(self.scale_.min()),
            "scale_largest": largest,
            "share_of_scales_moved": float(moved.mean()),
        }
