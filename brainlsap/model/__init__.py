"""Fit classifiers to packed scans: LSAP, and the networks it is compared with.

- `settings`: every option, the presets, the paper's hyperparameters.
- `inputs`: packed scans to batches; standardisation over the training scans.
- `network`: graph layers (heat, and the baselines), flattened, and a perceptron.
- `training`: the training loop, and the starts that are averaged.
- `classifier`: :class:`LSAPClassifier`, :class:`NetworkClassifier`.
- `evidence`: the marginal likelihood of scales, its derivatives, and nested models of
  scales fitted by it.
- `scale_sampler`: the posterior of the scales by Gibbs sampling.
- `ridge`: :class:`LSAPRidgeClassifier`, which uses these three.
- `storage`: a fitted model in one file.
"""

from brainlsap.model.classifier import LSAPClassifier, NetworkClassifier
from brainlsap.model.evidence import NESTED_MODELS
from brainlsap.model.network import NETWORKS
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
