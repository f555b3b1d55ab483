"""The baselines of the node task, behind the face and the loop of LSAP."""

from dataclasses import replace
from typing import Any

from torch import nn

from brainlsap._arrays import check_choice
from brainlsap.model.node_base import NodeClassifier
from brainlsap.model.node_baseline_networks import NODE_NETWORKS
from brainlsap.model.node_graph_inputs import NodeInputs
from brainlsap.model.node_settings import (
    NodeSettings,
    check_node_settings,
    settle_kernel,
)

# One setting for every data set unless named: that of each publication for Cora.
_COMMON = NodeSettings(
    n_views=1,
    consistency=0.0,
    node_dropout=0.0,
    self_loops=True,
    hidden_units=16,
    scale_mode="frozen",
)

NODE_BASELINES = {
    "mlp": replace(_COMMON, hidden_units=64),
    "gcn": _COMMON,
    "gat": replace(
        _COMMON, hidden_units=8, dropout=0.6, input_dropout=0.6, learning_rate=0.005
    ),
    "sgc": replace(_COMMON, input_dropout=0.0, learning_rate=0.2, weight_decay=1e-5),
    "appnp": replace(_COMMON, hidden_units=64),
    "gdc": _COMMON,
    # scale and self-loops of both by validation accuracy on Cora
    "graphheat": replace(_COMMON, n_layers=2, head="convolution", initial_scale=2.0),
    "adc": replace(
        _COMMON,
        n_layers=2,
        head="convolution",
        initial_scale=2.0,
        scale_mode="global",
        scale_signal="validation",
        scale_step=1.0,
    ),
    "gcnii": replace(
        _COMMON, hidden_units=64, n_layers=16, dropout=0.6, input_dropout=0.6
    ),
    "dagnn": replace(_COMMON, hidden_units=64, dropout=0.8, weight_decay=5e-3),
    # its order of propagation stands in `degree`
    "grand": replace(
        _COMMON,
        hidden_units=32,
        node_dropout=0.5,
        n_views=4,
        consistency=1.0,
        degree=8,
        n_layers=1,
        head="linear",
    ),
}

# Where a publication names others for a data set.
_BY_DATASET: dict[tuple[str, str], dict[str, Any]] = {
    ("gat", "pubmed"): {"weight_decay": 1e-3, "learning_rate": 0.01},
    ("dagnn", "citeseer"): {"weight_decay": 2e-2},
    ("grand", "citeseer"): {
        "n_views": 2,
        "degree": 2,
        "temperature": 0.3,
        "consistency": 0.7,
        "input_dropout": 0.0,
        "dropout": 0.2,
    },
    ("grand", "pubmed"): {
        "degree": 5,
        "temperature": 0.2,
        "input_dropout": 0.6,
        "dropout": 0.8,
        "learning_rate": 0.05,
    },
}
# Their nodes have hundreds of words, which a row's sum would make too small to learn
# from, and thousands of labels; by validation accuracy on Amazon Photo.
for _name, _own in NODE_BASELINES.items():
    _wide = {"normalize": "none", "weight_decay": min(5e-5, _own.weight_decay)}
    if _own.hidden_units == _COMMON.hidden_units:
        _wide["hidden_units"] = 64
    for _dataset in ("amazon-computers", "amazon-photo", "coauthor-cs"):
        _BY_DATASET[_name, _dataset] = _wide


class NodeBaseline(NodeClassifier):
    """A baseline of the node task, trained and chosen exactly as LSAP is.

    Layers come from PyTorch Geometric (the `baselines` extra), but for the
    perceptron, GraphHeat, ADC and GRAND; settings are those of each publication.
    ADC's scale moves with the loss of the validation labels, as its authors do.

    Parameters
    ----------
    model : str
        One of `NODE_BASELINES`: mlp, gcn, gat, sgc, appnp, gdc, graphheat, adc,
        gcnii, dagnn, grand.
    random_state : int
        Seed of weights and dropout.
    n_epochs, patience : int, optional
        At the most; and without a better validation.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Classes of the training nodes.
    best_epoch_ : int
        The epoch that was kept.
    history_ : NodeRun
        What training went through.
    fit_report_ : dict
        Epoch and validation, as plain numbers.

    Examples
    --------
    >>> NodeBaseline("gcn").settings("cora").hidden_units
    16
    """

    def __init__(
        self,
        model: str = "gcn",
        *,
        random_state: int = 0,
        n_epochs: int | None = None,
        patience: int | None = None,
    ) -> None:
        self.model = model
        self.random_state = random_state
        self.n_epochs = n_epochs
        self.patience = patience

    def settings(self, dataset: str = "") -> NodeSettings:
        """Return the settings of a fit, checked.

        Parameters
        ----------
        dataset : str
            Name of the graph, where publications tell data sets apart.

        Returns
        -------
        NodeSettings

        Raises
        ------
        ParameterError
            For an unknown baseline, and settings that cannot be used.
        """
        check_choice("model", self.model, NODE_BASELINES)
        settings = NODE_BASELINES[self.model]
        named = _BY_DATASET.get((self.model, dataset), {})
        settings = replace(settings, **named)
        for name in ("n_epochs", "patience"):
            if getattr(self, name) is not None:
                settings = replace(settings, **{name: getattr(self, name)})
        check_node_settings(settings)
        return settings if self.model == "grand" else settle_kernel(settings)

    def _make_network(
        self, inputs: NodeInputs, n_classes: int, settings: NodeSettings
    ) -> nn.Module:
        return NODE_NETWORKS[self.model](inputs, n_classes, settings)
