"""Models, folds that never share a person, scores, tests and rankings of regions."""

from brainlsap.evaluation.baselines import MODELS, make_models
from brainlsap.evaluation.cross_validation import (
    CohortSummary,
    Evaluation,
    cross_validate,
)
