"""Models and folds together: what one command runs."""

from brainlsap.study.attributions import permutation_importance
from brainlsap.study.compared_models import COMPARED, CONTROLS, find_names
from brainlsap.study.comparing import Comparison, compare_models, write_comparison
from brainlsap.study.evidence import gather_evidence
from brainlsap.study.kernel_shape import mean_kernel
from brainlsap.study.models import MODEL_NAMES, study_baselines, study_models
from brainlsap.study.new_people import (
    fit_model,
    predict_people,
    read_people,
    write_predictions,
)
from brainlsap.study.ranking_nulls import (
    permuted_scales,
    start_scales,
    untrained_scales,
)
from brainlsap.study.ranking_study import rank_cohort
from brainlsap.study.reach import kernel_reach, reach_table
from brainlsap.study.training_history import scale_history
from brainlsap.study.whole_way import run_study, write_study

__all__ = [
    "COMPARED",
    "CONTROLS",
    "MODEL_NAMES",
    "Comparison",
    "compare_models",
    "find_names",
    "fit_model",
    "gather_evidence",
    "kernel_reach",
    "mean_kernel",
    "permutation_importance",
    "permuted_scales",
    "predict_people",
    "rank_cohort",
    "reach_table",
    "read_people",
    "run_study",
    "scale_history",
    "start_scales",
    "study_baselines",
    "study_models",
    "untrained_scales",
    "write_comparison",
    "write_predictions",
    "write_study",
]
