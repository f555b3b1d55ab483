"""Models and folds together: what one command runs."""

from brainlsap.study.models import MODEL_NAMES, study_baselines, study_models
from brainlsap.study.whole_way import run_study, write_study

__all__ = ["MODEL_NAMES", "run_study", "study_baselines", "study_models", "write_study"]
