"""Packed scans become a fitted classifier: LSAP, and the networks it is held against.

- `settings`: every option, the presets, the paper's hyperparameters.
- `inputs`: packed scans to batches; standardisation over the training scans.
- `propagation`: how signals travel along a graph: heat, and every baseline's way.
- `network`: the one network: layers along the graph, flattened, a perceptron.
- `training`: the one loop, and the starts that are averaged.
- `classifier`: :class:`LSAPClassifier`, :class:`NetworkClassifier`.
- `linear`: logistic regression on diffused features.
- `tuning`, `storage`: settings chosen by inner folds; a fitted model in one file.
"""

from brainlsap.model.classifier import LSAPClassifier, NetworkClassifier
from brainlsap.model.linear import DiffusedLogisticRegression
from brainlsap.model.propagation import NETWORKS
from brainlsap.model.settings import PAPER_HYPERPARAMETERS, PRESETS
from brainlsap.model.storage import ModelOrigin, load_model, save_model
from brainlsap.model.tuning import SPACES, TunedClassifier, tuned

__all__ = [
    "NETWORKS",
    "PAPER_HYPERPARAMETERS",
    "PRESETS",
    "SPACES",
    "DiffusedLogisticRegression",
    "LSAPClassifier",
    "ModelOrigin",
    "NetworkClassifier",
    "TunedClassifier",
    "load_model",
    "save_model",
    "tuned",
]
