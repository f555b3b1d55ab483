"""Room 4: any scikit-learn classifier and a cohort become frozen results.

Folds never share a person, every out-of-fold prediction is kept, and baselines run
through the very same folds.
"""

from brainlsap.evaluation.collapses import (
    COLLAPSES,
    collapse_cohort,
    collapse_result,
    find_collapse,
)
from brainlsap.evaluation.comparison import (
    adjust_p_values,
    compare_models,
    corrected_t_test,
)
from brainlsap.evaluation.control_steps import (
    CovariatesAsFeatures,
    PermutedLabels,
    ShuffledEdges,
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
from brainlsap.evaluation.harmonisation import CombatHarmonizer
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
    rank_regions,
    rank_scales,
    ranking_auc,
)
from brainlsap.evaluation.ranking_agreement import (
    agreement_table,
    fold_agreement,
    rank_correlation,
    top_k_overlap,
)
from brainlsap.evaluation.ranking_confounds import (
    confound_table,
    rank_without,
    region_properties,
)
from brainlsap.evaluation.ranking_evidence import (
    RankingEvidence,
    add_evidence,
    untrained_agreement,
)
from brainlsap.evaluation.ranking_groups import group_ranking
from brainlsap.evaluation.ranking_notes import ranking_notes, ranking_verdict
from brainlsap.evaluation.ranking_nulls import beats_null, null_p_values
from brainlsap.evaluation.ranking_reach import rank_one_share
from brainlsap.evaluation.ranking_spread import scale_spread, start_spread
from brainlsap.evaluation.residuals import ConfoundRegressor
from brainlsap.evaluation.spin import spin_test
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
    "CombatHarmonizer",
    "ConfoundRegressor",
    "CovariatesAsFeatures",
    "Divisions",
    "Evaluation",
    "Finding",
    "FoldResult",
    "ModelResult",
    "PermutedLabels",
    "RankingEvidence",
    "ShuffledEdges",
    "add_evidence",
    "adjust_p_values",
    "agreement_table",
    "audit",
    "baseline_models",
    "beats_null",
    "check_splits",
    "class_table",
    "collapse_cohort",
    "collapse_result",
    "compare_models",
    "confound_table",
    "confusion_counts",
    "corrected_t_test",
    "count_repeats",
    "cross_validate",
    "find_collapse",
    "fold_agreement",
    "fold_scores",
    "group_ranking",
    "hold_out_split",
    "leave_one_out_splits",
    "make_splits",
    "null_p_values",
    "permutation_test",
    "pooled_scores",
    "rank_correlation",
    "rank_one_share",
    "rank_regions",
    "rank_scales",
    "rank_without",
    "ranking_auc",
    "ranking_notes",
    "ranking_verdict",
    "read_splits",
    "region_properties",
    "repeat_splits",
    "scale_spread",
    "score_by_person_and_by_scan",
    "severity_table",
    "spin_test",
    "split_scans_ignoring_people",
    "start_spread",
    "summarise",
    "top_k_overlap",
    "untrained_agreement",
    "whole_groups",
    "write_splits",
]
