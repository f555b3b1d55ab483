"""Packed scans become a fitted classifier: LSAP, and the networks it is held against.

- `settings`: every option, the presets, the paper's hyperparameters.
- `inputs`: packed scans to batches; standardisation over the training scans.
- `propagation`: how signals travel along a graph: heat, and every baseline's way.
- `network`: the one network: layers along the graph, flattened, a perceptron.
- `training`: the one loop, and the starts that are averaged.
- `classifier`: :class:`LSAPClassifier`, :class:`NetworkClassifier`.
- `ridge`: :class:`LSAPRidgeClassifier`, scales by marginal likelihood.
- `storage`: a fitted model in one file.
"""

from brainlsap.model.classifier import LSAPClassifier, NetworkClassifier
from brainlsap.model.propagation import NETWORKS
from brainlsap.model.ridge import RUNGS, LSAPRidgeClassifier
from brainlsap.model.settings import PRESETS
from brainlsap.model.storage import ModelOrigin, load_model, save_model

__all__ = [
    "NETWORKS",
    "PRESETS",
    "RUNGS",
    "LSAPClassifier",
    "LSAPRidgeClassifier",
    "ModelOrigin",
    "NetworkClassifier",
    "load_model",
    "save_model",
]
