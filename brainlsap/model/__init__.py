"""Fit classifiers to packed scans: LSAP, and the networks it is compared with.

- `settings`: every option, the presets, the paper's hyperparameters.
- `inputs`: packed scans to batches; standardisation over the training scans.
- `propagation`: how signals propagate along a graph: heat, and the baselines.
- `network`: the network of all models: graph layers, flattened, a perceptron.
- `training`: the training loop, and the starts that are averaged.
- `classifier`: :class:`LSAPClassifier`, :class:`NetworkClassifier`.
- `evidence`: the marginal likelihood of scales, and its derivatives.
- `nested_models`: no network, one scale, a scale per region, fitted by evidence.
- `scale_sampler`: the posterior of the scales by Gibbs sampling.
- `ridge`: :class:`LSAPRidgeClassifier`, which uses these three.
- `storage`: a fitted model in one file.
"""

from brainlsap.model.classifier import LSAPClassifier, NetworkClassifier
from brainlsap.model.nested_models import NESTED_MODELS
from brainlsap.model.propagation import NETWORKS
from brainlsap.model.ridge import LSAPRidgeClassifier
from brainlsap.model.settings import PRESETS
from brainlsap.model.storage import ModelOrigin, load_model, save_model

__all__ = [
    "NESTED_MODELS",
    "NETWORKS",
    "PRESETS",
    "LSAPClassifier",
    "LSAPRidgeClassifier",
    "ModelOrigin",
    "NetworkClassifier",
    "load_model",
    "save_model",
]
