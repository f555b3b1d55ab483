"""Models, folds that never share a person, scores, tests and rankings of regions."""

from brainlsap.evaluation.comparison import (
    bootstrap_scores,
    class_table,
    compare_models,
    corrected_t_test,
    ladder_table,
)
from brainlsap.evaluation.confounds import (
    CombatHarmonizer,
    ConfoundRegressor,
    Deconfounder,
    find_column,
)
from brainlsap.evaluation.cross_validation import cross_validate
from brainlsap.evaluation.leakage import audit
from brainlsap.evaluation.metrics import (
    INTERVAL_SCORES,
    LOWER_IS_BETTER,
    ORDINAL_SCORES,
    SCORES,
    confusion_counts,
    score_predictions,
)
from brainlsap.evaluation.models import (
    MODELS,
    ConfoundsOnlyClassifier,
    ShuffledEdges,
    TunedLinearClassifier,
    make_models,
)
from brainlsap.evaluation.ranking import (
    NULL_HEADING,
    agreement_table,
    common_regions,
    confound_table,
    permutation_null,
    permute_labels,
    rank_regions,
    ranking_auc,
    ranking_verdict,
    region_properties,
)
from brainlsap.evaluation.results import CohortSummary, Evaluation
from brainlsap.evaluation.spin import SpinTest, spin_test
from brainlsap.evaluation.splits import (
    join_groups,
    leave_one_out_splits,
    make_splits,
    read_splits,
    write_splits,
)

__all__ = [
    "INTERVAL_SCORES",
    "LOWER_IS_BETTER",
    "MODELS",
    "NULL_HEADING",
    "ORDINAL_SCORES",
    "SCORES",
    "CohortSummary",
    "CombatHarmonizer",
    "ConfoundRegressor",
    "ConfoundsOnlyClassifier",
    "Deconfounder",
    "Evaluation",
    "ShuffledEdges",
    "SpinTest",
    "TunedLinearClassifier",
    "agreement_table",
    "audit",
    "bootstrap_scores",
    "class_table",
    "common_regions",
    "compare_models",
    "confound_table",
    "confusion_counts",
    "corrected_t_test",
    "cross_validate",
    "find_column",
    "join_groups",
    "ladder_table",
    "leave_one_out_splits",
    "make_models",
    "make_splits",
    "permutation_null",
    "permute_labels",
    "rank_regions",
    "ranking_auc",
    "ranking_verdict",
    "read_splits",
    "region_properties",
    "score_predictions",
    "spin_test",
    "write_splits",
]
