"""Models and folds together: what one command runs."""

from brainlsap.study.models import MODEL_NAMES, study_baselines, study_models
from brainlsap.study.ranking_nulls import (
    permuted_scales,
    start_scales,
    untrained_scales,
)
from brainlsap.study.whole_way import run_study, write_study

__all__ = [
    "MODEL_NAMES",
    "permuted_scales",
    "run_study",
    "start_scales",
    "study_baselines",
    "study_models",
    "untrained_scales",
    "write_study",
]
