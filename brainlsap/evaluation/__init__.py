"""Models, folds that never share a person, scores, tests and rankings of regions."""

from brainlsap.evaluation.comparison import (
    added_value_table,
    bootstrap_score_table,
    chance_p,
    class_table,
    compare_by_person,
    compare_models,
    corrected_t_test,
    nested_model_table,
)
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.connectome_worth import ConnectomeGain, connectome_gain
from brainlsap.evaluation.cross_validation import cross_validate
from brainlsap.evaluation.leakage import audit
from brainlsap.evaluation.learning_curve import learning_curve
from brainlsap.evaluation.models import (
    MODELS,
    choose_covariate_columns,
    make_models,
    read_features,
    read_global_means,
)
from brainlsap.evaluation.ranking import (
    add_region_tests,
    agreement_table,
    common_regions,
    confound_table,
    fit_scale_table,
    rank_regions,
    ranking_auc,
    ranking_verdict,
    region_importance,
    region_properties,
    replicability_table,
    spin_test,
)
from brainlsap.evaluation.region_tests import compare_regions
from brainlsap.evaluation.results import Evaluation
from brainlsap.evaluation.scores import SCORES, Score, fold_scores, main_score_names
from brainlsap.evaluation.splits import (
    join_groups,
    leave_one_out_splits,
    make_splits,
    read_splits,
)
from brainlsap.evaluation.subgroups import (
    choose_subgroup_columns,
    subgroup_gap_table,
    subgroup_table,
)

__all__ = [
    "MODELS",
    "SCORES",
    "ConnectomeGain",
    "Deconfounder",
    "Evaluation",
    "Score",
    "add_region_tests",
    "added_value_table",
    "agreement_table",
    "audit",
    "bootstrap_score_table",
    "chance_p",
    "choose_covariate_columns",
    "choose_subgroup_columns",
    "class_table",
    "common_regions",
    "compare_by_person",
    "compare_models",
    "compare_regions",
    "confound_table",
    "connectome_gain",
    "corrected_t_test",
    "cross_validate",
    "fit_scale_table",
    "fold_scores",
    "join_groups",
    "learning_curve",
    "leave_one_out_splits",
    "main_score_names",
    "make_models",
    "make_splits",
    "nested_model_table",
    "rank_regions",
    "ranking_auc",
    "ranking_verdict",
    "read_features",
    "read_global_means",
    "read_splits",
    "region_importance",
    "region_properties",
    "replicability_table",
    "spin_test",
    "subgroup_gap_table",
    "subgroup_table",
]
