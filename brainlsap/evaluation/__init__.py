"""Room 4: any scikit-learn classifier and a cohort become frozen results.

Folds never share a person, every out-of-fold prediction is kept, and baselines run
through the very same folds.
"""

from brainlsap.evaluation.collapses import (
    COLLAPSES,
    collapse_cohort,
    collapse_result,
)
from brainlsap.evaluation.comparison import (
    adjust_p_values,
    compare_models,
    corrected_t_test,
)
from brainlsap.evaluation.controls import baseline_models
from brainlsap.evaluation.crossval import (
    CohortSummary,
    Evaluation,
    FoldResult,
    ModelResult,
    cross_validate,
)
from brainlsap.evaluation.designs import (
    count_repeats,
    hold_out_split,
    leave_one_out_splits,
    repeat_splits,
    split_scans_ignoring_people,
    whole_groups,
)
from brainlsap.evaluation.divisions import Divisions, score_by_person_and_by_scan
from brainlsap.evaluation.findings import CHECKS, Audit, Finding, severity_table
from brainlsap.evaluation.leakage import audit
from brainlsap.evaluation.metrics import (
    SCORES,
    confusion_counts,
    fold_scores,
    summarise,
)
from brainlsap.evaluation.permutation import permutation_test
from brainlsap.evaluation.pooled import POOLED_SCORES, class_table, pooled_scores
from brainlsap.evaluation.ranking import (
    fold_agreement,
    rank_regions,
    rank_scales,
    ranking_auc,
)
from brainlsap.evaluation.ranking_notes import ranking_notes
from brainlsap.evaluation.ranking_nulls import beats_null, null_p_values
from brainlsap.evaluation.split_files import read_splits, write_splits
from brainlsap.evaluation.splits import (
    check_splits,
    make_splits,
)

__all__ = [
    "CHECKS",
    "COLLAPSES",
    "POOLED_SCORES",
    "SCORES",
    "Audit",
    "CohortSummary",
    "Divisions",
    "Evaluation",
    "Finding",
    "FoldResult",
    "ModelResult",
    "adjust_p_values",
    "audit",
    "baseline_models",
    "beats_null",
    "check_splits",
    "class_table",
    "collapse_cohort",
    "collapse_result",
    "compare_models",
    "confusion_counts",
    "corrected_t_test",
    "count_repeats",
    "cross_validate",
    "fold_agreement",
    "fold_scores",
    "hold_out_split",
    "leave_one_out_splits",
    "make_splits",
    "null_p_values",
    "permutation_test",
    "pooled_scores",
    "rank_regions",
    "rank_scales",
    "ranking_auc",
    "ranking_notes",
    "read_splits",
    "repeat_splits",
    "score_by_person_and_by_scan",
    "severity_table",
    "split_scans_ignoring_people",
    "summarise",
    "whole_groups",
    "write_splits",
]
