"""The leakage audit: how a model could know a test label, and what else explains it."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum, StrEnum, auto
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import kruskal, random_table
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from brainlsap.arrays import compute_robust_deviations, match_class_name
from brainlsap.data import Cohort
from brainlsap.data.cohort import NOT_GIVEN
from brainlsap.data.covariates import (
    COVARIATES,
    KEY_COLUMNS,
    SCALE_KINDS,
    find_acquisition_kind,
    find_covariate_kind,
    is_categorical_covariate,
    to_group_text_series,
)
from brainlsap.data.participants import order_rows_by_visit
from brainlsap.data.quality import MIN_SCANS, list_odd_unit_texts
from brainlsap.evaluation.comparison import adjust_p_values
from brainlsap.evaluation.confounds import find_covariate_column
from brainlsap.evaluation.splits import Split, find_session_ids_and_n_people
from brainlsap.text import count_text, join_with_commas, p_phrase


class CheckKey(StrEnum):
    """Key of a check, as it stands in the audit's column `check`; code compares keys.

    Reports show `CHECKS[key].title` instead.
    """

    PERSON_IN_TWO_FOLDS = "person_in_two_folds"
    PEOPLE_NOT_STATED = "people_not_stated"
    VISITS_TAKEN_FOR_PEOPLE = "visits_taken_for_people"
    DUPLICATE_SCANS = "duplicate_scans"
    COPIED_VISITS = "copied_visits"
    LABEL_IN_FEATURES = "label_in_features"
    CLINICAL_SCORE_AS_FEATURE = "clinical_score_as_feature"
    FAMILY_IN_TWO_FOLDS = "family_in_two_folds"
    SITE_IN_TWO_FOLDS = "site_in_two_folds"
    MISSING_VALUES_PREDICT_LABEL = "missing_values_predict_label"
    COVARIATE_PREDICTS_LABEL = "covariate_predicts_label"
    SEVERAL_SCALES = "several_scales"
    UNUSUAL_UNIT = "unusual_unit"
    COVARIATES_MISSING = "covariates_missing"
    OUTSIDE_REFERENCE = "outside_reference"


class CheckText(NamedTuple):
    """Texts of a check, and the usual severity of its findings."""

    title: str
    severity: str
    advice: str


# From the gravest.
SEVERITIES = ("error", "warning", "note")

CHECKS = {
    CheckKey.PERSON_IN_TWO_FOLDS: CheckText(
        "person in two folds",
        "error",
        "Divide people, not scans, into folds (make_splits).",
    ),
    CheckKey.PEOPLE_NOT_STATED: CheckText(
        "participants not stated",
        "note",
        "If some participants were scanned more than once, use groups= to give the "
        "participant ID of every scan.",
    ),
    CheckKey.VISITS_TAKEN_FOR_PEOPLE: CheckText(
        "visits treated as people",
        "error",
        "If the IDs are names of visits, give participant_id and session_id in the "
        "table of participants, or groups= in Python.",
    ),
    CheckKey.DUPLICATE_SCANS: CheckText(
        "duplicate scans",
        "error",
        "Compare the data of both scans with their source, because a file may have "
        "been copied, or rows of a table may have moved to the next participant. If "
        "both scans are of one participant, give them the same participant ID.",
    ),
    CheckKey.COPIED_VISITS: CheckText(
        "identical visits of one participant",
        "warning",
        "Look for the files of the other visit, or leave one visit out.",
    ),
    CheckKey.LABEL_IN_FEATURES: CheckText(
        "label in the features",
        "error",
        "Leave the feature out, because it is derived from the label.",
    ),
    CheckKey.CLINICAL_SCORE_AS_FEATURE: CheckText(
        "clinical score as feature",
        "warning",
        "Leave the score out if the labels were derived from it.",
    ),
    CheckKey.FAMILY_IN_TWO_FOLDS: CheckText(
        "family in two folds",
        "warning",
        "Keep the members of a family together by join_groups.",
    ),
    CheckKey.SITE_IN_TWO_FOLDS: CheckText(
        "site in two folds",
        "note",
        "Use leave_out= (--leave-out) to test on sites that the training does not "
        "contain.",
    ),
    CheckKey.MISSING_VALUES_PREDICT_LABEL: CheckText(
        "missing values predict the label",
        "warning",
        "Find out why values are missing, or leave these values out.",
    ),
    CheckKey.COVARIATE_PREDICTS_LABEL: CheckText(
        "how well one covariate predicts the label",
        "warning",
        "Report this score beside the score of the model. You can regress the "
        "covariate out, but this also removes class differences that are correlated "
        "with the covariate. If the covariate is the site or the scanner, you can also "
        "use each site or scanner as a test fold (--leave-out).",
    ),
    CheckKey.SEVERAL_SCALES: CheckText(
        "values on several scales",
        "warning",
        "Keep the scans of one scale, or remove the difference with harmonize= "
        "(--harmonize).",
    ),
    CheckKey.UNUSUAL_UNIT: CheckText(
        "values in another unit",
        "warning",
        "Convert the values, or give the feature another name.",
    ),
    CheckKey.COVARIATES_MISSING: CheckText(
        "covariates missing",
        "note",
        "Add the covariates to the table of participants.",
    ),
    CheckKey.OUTSIDE_REFERENCE: CheckText(
        "covariates outside the reference class",
        "warning",
        "The features of these people are adjusted by extrapolation from the reference "
        "class. Match the classes, or restrict the range of the covariate.",
    ),
}

# Advice that depends on the finding.
SMALL_GAIN_ADVICE = (
    "The classes differ in this covariate, but it predicts the classes by less "
    "than 0.05 above chance."
)
REMOVED_ADVICE = (
    "The adjustment also removed class differences that are correlated with this "
    "covariate. Compare with a run without the adjustment."
)
REFERENCE_ADVICE = (
    "The adjustment kept class differences that are correlated with this "
    "covariate, because its effect was estimated in the reference class alone. "
    "Report this score beside the score of the model."
)
HELD_OUT_ADVICE = (
    "The model cannot use this covariate alone, because its values in test scans "
    "do not occur in training scans."
)
NO_DIFFERENCE_ADVICE = (
    "No difference between classes was shown. This does not prove that there is no "
    "difference. Report this score."
)
MANY_PAIRS_ADVICE = (
    "Some scans may be copies, or have another unit than the other scans. The table "
    "of unusual scans lists candidates."
)

# A missing one of these is reported.
EXPECTED_COVARIATES = ("age", "sex", "site")
# Covariates that are tested on their own against the label.
TESTED_COVARIATES = (
    *EXPECTED_COVARIATES,
    *("scanner", "phase", "head size", "motion"),
    *SCALE_KINDS,
)

# Names of scores by which dementia is staged, and of the label itself.
CLINICAL_SCORE = re.compile(
    r"(?:^|[_\W])(?:mmse|moca|cdr(?:sb|global)?|adas(?:1[13])?|faq|gds|dx|diagnosis|"
    r"label|stage)(?:$|[_\W])",
    re.IGNORECASE,
)

# A feature with this eta squared, or more, is taken to be derived from the label.
MAX_ETA_SQUARED = 0.99
# Classes of fewer scans do not count for eta squared.
MIN_CLASS_SCANS = 5

# Two scans are nearly identical if their squared distance is at most this part of the
# expected one of two unrelated scans.
MAX_RELATIVE_DISTANCE = 0.01
# With fewer values only identical scans are found.
MIN_DISTANCE_VALUES = 10
# Scans whose median deviation, in MADs scaled to a standard deviation, is larger are
# left out of the scale of distances, if there are `MIN_SCANS` scans.
MAX_ROW_DEVIATION = 6.0
# Distances are taken over at most as many values.
MAX_DISTANCE_VALUES = 500
# Principal components by which most pairs of scans are ruled out.
N_COMPONENTS = 64
# Scans that are compared with all others at once.
N_ROWS_AT_ONCE = 256
# More pairs of similar participants are reported in one line.
MAX_LISTED_PAIRS = 50

# Folds in which a single covariate predicts the label.
N_FOLDS = 5
# Permutations of the chi-squared test of a covariate against the label.
N_PERMUTATIONS = 9_999
# Bins of a numeric covariate.
N_COVARIATE_BINS = 8
# Largest share of people whose covariate is outside the range of the reference class.
MAX_OUTSIDE_SHARE = 0.1
# Smallest gain over chance at which a covariate is a warning.
MIN_GAIN = 0.05
# Significance level of a difference between classes.
MAX_P_VALUE = 0.05


class AuditFinding(NamedTuple):
    """One row of the audit."""

    check: str
    severity: str
    finding: str
    what_to_do: str
    scans: str
    covariate: str = ""
    """Column that was tested alone; "" for other checks."""
    balanced_accuracy: float = np.nan
    """Balanced accuracy of the label predicted from this column alone."""
    p_value: float = np.nan
    """p-value of a difference between classes in this column, without correction."""
    first_scan: str = ""
    second_scan: str = ""
    """Two scans that are copies; "" for other checks."""


class BlockKind(Enum):
    """Kind of the values that are compared between scans."""

    ALL_FEATURES = auto()
    CONNECTOMES = auto()
    FEATURE = auto()
    HEMISPHERE = auto()


class ScanBlock(NamedTuple):
    """Values of all scans that are searched for copies."""

    kind: BlockKind
    title: str
    """Name of the values in a finding; features can have the same name."""
    value_matrix: np.ndarray
    """Shape (n_scans, n_values)."""


class TestedColumn(NamedTuple):
    """A covariate, or a pattern of missing values, that is tested against the label."""

    title: str
    """Name in the finding."""
    value_series: pd.Series
    covariate_name: str
    """The covariate whose values these are; "" for patterns of missing values."""


def audit(
    cohort: Cohort,
    splits: Sequence[Split],
    adjusted_covariates: Sequence[str] = (),
    reference_class: str | None = None,
) -> pd.DataFrame:
    r"""Search for leakage, and for variables that alone predict the label.

    The checks are, by their keys:

    - `person_in_two_folds`: a participant has scans in training and test.
    - `people_not_stated`: participants were not given, so that every scan counts as a
      person.
    - `visits_taken_for_people`: ids differ in one part only, for example `P01_V1` and
      `P01_V2`, and the sexes agree; where the part is no word for a visit, labels agree
      as well.
    - `duplicate_scans`: connectomes, features or one feature of two participants are
      the same, or their squared distance is below a hundredth of that of unrelated
      scans; or a feature is the same in the whole cortex of one hemisphere. Scans far
      from all others are left out of the scale of distances, and of these scans only
      copies are found.
    - `copied_visits`: connectomes or features of two visits of one participant are the
      same.
    - `label_in_features`: classes explain :math:`\eta^2 \ge 0.99` of a feature's or an
      edge's variance; `clinical_score_as_feature`: a feature is named like a clinical
      score.
    - `family_in_two_folds`, `site_in_two_folds`: people of one family or site are in
      training and test.
    - `covariate_predicts_label`: balanced accuracy of the label predicted from site,
      scanner, phase, tracer, processing, age, sex, head size or motion alone. Each
      value (or eighth of the values of a number) predicts the class of whose training
      people the largest share has it, in five folds of people. A covariate is warned
      of by its own p-value of a difference between classes, because a correction
      would hide the more the more columns a table has; the Holm-corrected p-value of
      all columns is shown beside it. `missing_values_predict_label`: the same for what
      was not measured, by the corrected p-value. Numbers of
      sites, scanners and phases are names of groups, whatever their coding
      (`brainlsap.data.covariates.is_categorical_covariate`).
    - `several_scales`: scans have several tracers, reference regions, corrections for
      partial volume, or versions of a pipeline.
    - `unusual_unit`: ratios or sizes that no brain has.
    - `covariates_missing`: the cohort has no age, sex or site to test.
    - `outside_reference`: more than a tenth of the people have a number that was taken
      out, such as age, outside the range of the reference class.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    splits : sequence of (train, test)
        Folds, as :func:`make_splits` makes them.
    adjusted_covariates : sequence of str
        Columns that are regressed out, or harmonised, inside the folds.
    reference_class : str, optional
        Class from which alone their effects are learned.

    Returns
    -------
    DataFrame
        check (its key), severity ("error": a leak; "warning": what may explain a score;
        "note"), finding, what_to_do, scans: names of the scans concerned, separated
        by ", ", where there are any; and of a covariate that was tested alone:
        covariate (its column), balanced_accuracy and p_value (without correction). No
        column but scans names anybody.
    """
    adjusted_column_set = {
        find_covariate_column(cohort.table, covariate_name)
        for covariate_name in adjusted_covariates
    }
    audit_findings = [
        *_iter_shared_group_findings(cohort, splits),
        *_iter_unstated_people_findings(cohort),
        *_iter_visit_id_findings(cohort),
        *_iter_duplicate_findings(cohort, splits),
        *_iter_label_feature_findings(cohort),
        *_iter_scale_findings(cohort, adjusted_column_set),
        *(
            _make_finding(CheckKey.UNUSUAL_UNIT, unit_text)
            for unit_text in list_odd_unit_texts(cohort)
        ),
        *_iter_missing_covariate_findings(cohort),
        *_iter_predictive_column_findings(
            cohort, adjusted_column_set, splits, reference_class
        ),
    ]
    if reference_class is not None:
        audit_findings += _iter_outside_reference_findings(
            cohort, adjusted_column_set, reference_class
        )
    return _make_finding_table(audit_findings)


def make_error_table_without_folds(cohort: Cohort) -> pd.DataFrame:
    """Return the rows of :func:`audit` that are errors for some folds of a cohort.

    Duplicate scans are errors even if some folds keep them together, because other
    folds may not.
    """
    audit_findings = [
        *_iter_visit_id_findings(cohort),
        *_iter_duplicate_findings(cohort, ()),
        *_iter_label_feature_findings(cohort),
    ]
    return mark_copies_in_audit_table(_make_finding_table(audit_findings)).query(
        "severity == 'error'"
    )


def mark_copies_in_audit_table(audit_table: pd.DataFrame) -> pd.DataFrame:
    """Return an audit in which all duplicate scans are errors, from the gravest."""
    copy_row_mask = audit_table["check"] == CheckKey.DUPLICATE_SCANS
    severity_series = audit_table["severity"].mask(copy_row_mask, "error")
    severity_rank_series = severity_series.map(SEVERITIES.index)
    return audit_table.assign(severity=severity_series).iloc[
        severity_rank_series.argsort(kind="stable")
    ]


def _make_finding_table(audit_findings: Sequence[AuditFinding]) -> pd.DataFrame:
    """Return findings as a table, from the gravest."""
    sorted_findings = sorted(
        audit_findings, key=lambda finding: SEVERITIES.index(finding.severity)
    )
    audit_table = pd.DataFrame(
        sorted_findings, columns=list(AuditFinding._fields), dtype=object
    )
    return audit_table.astype({"balanced_accuracy": float, "p_value": float})


def check_title(check_key: str) -> str:
    """Return the title of a check, as reports show it, from its key."""
    return CHECKS[CheckKey(check_key)].title


def _make_finding(
    audit_check: CheckKey,
    finding_text: str,
    *,
    scans_text: str = "",
    severity: str = "",
    advice: str = "",
    first_scan_name: str = "",
    second_scan_name: str = "",
) -> AuditFinding:
    """Return a row of the audit; severity and advice are the check's unless given."""
    check_text = CHECKS[audit_check]
    return AuditFinding(
        check=audit_check.value,
        severity=severity or check_text.severity,
        finding=finding_text,
        what_to_do=advice or check_text.advice,
        scans=scans_text,
        first_scan=first_scan_name,
        second_scan=second_scan_name,
    )


def _iter_shared_group_findings(
    cohort: Cohort, splits: Sequence[Split]
) -> Iterator[AuditFinding]:
    """Look for people, families and sites with scans in training and test."""
    check_by_kind = {
        "person": CheckKey.PERSON_IN_TWO_FOLDS,
        "family": CheckKey.FAMILY_IN_TWO_FOLDS,
        "site": CheckKey.SITE_IN_TWO_FOLDS,
    }
    kind_by_column = {"participant": "person", **_make_kind_by_column(cohort)}
    for column_name, covariate_kind in kind_by_column.items():
        if covariate_kind not in check_by_kind:
            continue
        shared_value_sets = _list_shared_value_sets(cohort.table[column_name], splits)
        if shared_value_sets:
            n_groups = len(set.union(*shared_value_sets))
            if covariate_kind == "person":
                group_text = count_text(n_groups, "person")
            else:
                group_text = f"{count_text(n_groups, 'value')} of {column_name}"
            fold_text = f"{len(shared_value_sets)} of {count_text(len(splits), 'fold')}"
            yield _make_finding(
                check_by_kind[covariate_kind],
                f"{group_text} in both the training and the test scans of {fold_text}",
            )


def _list_shared_value_sets(
    covariate_series: pd.Series, splits: Sequence[Split]
) -> list[set[Any]]:
    """Return the values that training and test share, of each fold that shares any."""
    known_value_mask = covariate_series.notna().to_numpy()
    scan_values = covariate_series.to_numpy(dtype=object)
    shared_value_sets = []
    for train_index, test_index in splits:
        known_train_index = np.asarray(train_index)[known_value_mask[train_index]]
        known_test_index = np.asarray(test_index)[known_value_mask[test_index]]
        train_value_set = set(scan_values[known_train_index])
        shared_value_set = train_value_set & set(scan_values[known_test_index])
        if shared_value_set:
            shared_value_sets.append(shared_value_set)
    return shared_value_sets


def _iter_unstated_people_findings(cohort: Cohort) -> Iterator[AuditFinding]:
    """Report that every scan counts as a person, as participants were not given."""
    if cohort.provenance.get("people") == NOT_GIVEN:
        yield _make_finding(
            CheckKey.PEOPLE_NOT_STATED,
            f"the participants of the {count_text(cohort.n_scans, 'scan')} were not "
            "given, so each scan counts as a separate person",
        )


def find_visit_like_scans_and_n_people(cohort: Cohort) -> tuple[list[str], int]:
    """Return scans of people whose ids may name visits, and the number of their people.

    One scan is returned for each of these ids. They differ only in a part that may be
    the visit.
    """
    people_table = cohort.table.drop_duplicates("participant").reset_index(drop=True)
    sex_column_names = [
        column_name
        for column_name, covariate_kind in _make_kind_by_column(cohort).items()
        if covariate_kind == "sex"
    ]
    person_sexes = (
        people_table[sex_column_names[0]].tolist() if sex_column_names else []
    )
    visit_like_indices, n_people = find_session_ids_and_n_people(
        people_table["participant"].tolist(),
        people_table["label"].tolist(),
        person_sexes,
    )
    return people_table["scan"][visit_like_indices].tolist(), n_people


def visit_like_ids_text(n_ids: int, n_people: int) -> str:
    """Return that ids which count as people may name visits of fewer people."""
    return (
        f"{count_text(n_ids, 'person')} have IDs that differ only in one part, which "
        "may be the visit. These IDs may be visits of only "
        f"{count_text(n_people, 'person')}"
    )


def _iter_visit_id_findings(cohort: Cohort) -> Iterator[AuditFinding]:
    """Look for people whose ids differ only in what may be a visit."""
    scan_names, n_people = find_visit_like_scans_and_n_people(cohort)
    if scan_names:
        yield _make_finding(
            CheckKey.VISITS_TAKEN_FOR_PEOPLE,
            visit_like_ids_text(len(scan_names), n_people),
            scans_text=", ".join(scan_names),
        )


def _iter_duplicate_findings(
    cohort: Cohort, splits: Sequence[Split]
) -> Iterator[AuditFinding]:
    """Look for scans with the same, or nearly the same, connectome or features."""
    reported_pairs = set[tuple[int, int]]()
    for block_kind, data_title, value_matrix in [
        *_list_whole_scan_blocks(cohort),
        *_list_feature_blocks(cohort),
    ]:
        if block_kind is BlockKind.HEMISPHERE:
            scan_index_pairs = _find_identical_index_pairs(value_matrix)
        else:
            scan_index_pairs = _find_similar_index_pairs(
                value_matrix, is_connectome=block_kind is BlockKind.CONNECTOMES
            )
        if block_kind is not BlockKind.CONNECTOMES:
            new_pair_flags = [
                tuple(index_pair) not in reported_pairs
                for index_pair in scan_index_pairs
            ]
            scan_index_pairs = scan_index_pairs[np.array(new_pair_flags, dtype=bool)]
            reported_pairs |= {
                (first_index, second_index)
                for first_index, second_index in scan_index_pairs
            }
        same_person_pair_mask = np.equal(*cohort.groups[scan_index_pairs].T)
        yield from _iter_copied_visit_findings(
            cohort, data_title, value_matrix, scan_index_pairs[same_person_pair_mask]
        )
        two_people_index_pairs = scan_index_pairs[~same_person_pair_mask]
        if len(two_people_index_pairs) > MAX_LISTED_PAIRS:
            pairs_text = count_text(len(two_people_index_pairs), "pair")
            yield _make_finding(
                CheckKey.DUPLICATE_SCANS,
                f"{pairs_text} of scans of different participants have nearly the same "
                f"{data_title}",
                advice=MANY_PAIRS_ADVICE,
            )
        else:
            yield from _iter_similar_people_findings(
                cohort, data_title, value_matrix, two_people_index_pairs, splits
            )


def _iter_copied_visit_findings(
    cohort: Cohort,
    data_title: str,
    value_matrix: np.ndarray,
    scan_index_pairs: np.ndarray,
) -> Iterator[AuditFinding]:
    """Report pairs of scans of one person that are identical."""
    for scan_index_pair in scan_index_pairs:
        first_values, second_values = value_matrix[scan_index_pair]
        if np.array_equal(first_values, second_values, equal_nan=True):
            first_scan_name, second_scan_name = cohort.table["scan"].iloc[
                scan_index_pair
            ]
            yield _make_finding(
                CheckKey.COPIED_VISITS,
                f"two visits of a participant have identical {data_title}",
                scans_text=f"{first_scan_name}, {second_scan_name}",
                first_scan_name=first_scan_name,
                second_scan_name=second_scan_name,
            )


def _iter_similar_people_findings(
    cohort: Cohort,
    data_title: str,
    value_matrix: np.ndarray,
    scan_index_pairs: np.ndarray,
    splits: Sequence[Split],
) -> Iterator[AuditFinding]:
    """Report pairs of scans of two people; an error if a fold separates them."""
    for scan_index_pair in scan_index_pairs:
        first_scan_name, second_scan_name = cohort.table["scan"].iloc[scan_index_pair]
        first_values, second_values = value_matrix[scan_index_pair]
        is_identical = np.array_equal(first_values, second_values, equal_nan=True)
        has_dividing_fold = any(
            np.isin(scan_index_pair, train_index).any()
            and np.isin(scan_index_pair, test_index).any()
            for train_index, test_index in splits
        )
        likeness_text = "identical" if is_identical else "nearly identical"
        fold_text = "are in the training and the test scans of a fold"
        if not has_dividing_fold:
            fold_text = "could be in the training and the test scans of another fold"
        yield _make_finding(
            CheckKey.DUPLICATE_SCANS,
            f"two participants have {likeness_text} {data_title} and {fold_text}",
            scans_text=f"{first_scan_name}, {second_scan_name}",
            first_scan_name=first_scan_name,
            second_scan_name=second_scan_name,
            severity="error" if has_dividing_fold else "warning",
        )


def _list_whole_scan_blocks(cohort: Cohort) -> list[ScanBlock]:
    """Return all features and, if scans have their own, connectomes."""
    scan_blocks = [
        ScanBlock(
            BlockKind.ALL_FEATURES,
            "features",
            cohort.features.reshape(cohort.n_scans, -1),
        )
    ]
    if not cohort.shares_connectome:
        edge_values = cohort.connectomes.reshape(cohort.n_scans, -1)
        scan_blocks.append(ScanBlock(BlockKind.CONNECTOMES, "connectomes", edge_values))
    return scan_blocks


def _list_feature_blocks(cohort: Cohort) -> list[ScanBlock]:
    """Return every feature, if there are several, and every hemisphere of a feature."""
    scan_blocks = list[ScanBlock]()
    if len(cohort.feature_names) > 1:
        # A file of one feature may have been copied to another person.
        scan_blocks += [
            ScanBlock(
                BlockKind.FEATURE, feature_name, cohort.features[..., feature_index]
            )
            for feature_index, feature_name in enumerate(cohort.feature_names)
        ]
    # FreeSurfer's stats of the cortex are a file for each hemisphere.
    region_side_letters = cohort.atlas.regions["hemisphere"].to_numpy()
    for feature_index, feature_name in enumerate(cohort.feature_names):
        for side_letter, side_title in (("L", "left"), ("R", "right")):
            side_region_mask = cohort.atlas.cortex & (
                region_side_letters == side_letter
            )
            scan_blocks.append(
                ScanBlock(
                    BlockKind.HEMISPHERE,
                    f"{feature_name} in the {side_title} hemisphere",
                    cohort.features[:, side_region_mask, feature_index],
                )
            )
    return scan_blocks


def _find_identical_index_pairs(value_matrix: np.ndarray) -> np.ndarray:
    """Return pairs (n_pairs, 2) of rows that are the same in at least ten values.

    Values that all scans have in common do not count.
    """
    constant_column_mask = (value_matrix == value_matrix[0]).all(axis=0)
    varying_value_matrix = value_matrix[:, ~constant_column_mask]
    row_measured_counts = (~np.isnan(varying_value_matrix)).sum(axis=1)
    row_indices_by_bytes = defaultdict[bytes, list[int]](list)
    for row_index in np.flatnonzero(
        row_measured_counts >= MIN_DISTANCE_VALUES
    ).tolist():
        row_indices_by_bytes[varying_value_matrix[row_index].tobytes()].append(
            row_index
        )
    index_pairs = [
        index_pair
        for equal_row_indices in row_indices_by_bytes.values()
        for index_pair in combinations(equal_row_indices, 2)
    ]
    return np.array(sorted(index_pairs), dtype=np.int64).reshape(-1, 2)


def _find_similar_index_pairs(
    value_matrix: np.ndarray, *, is_connectome: bool
) -> np.ndarray:
    """Return pairs (n_pairs, 2) of rows of values that are (nearly) the same."""
    measured_row_mask = np.zeros(len(value_matrix), dtype=bool)
    column_nonzero_counts = np.zeros(value_matrix.shape[1], dtype=np.int64)
    for row_slice in _iter_row_slices(len(value_matrix)):
        measured_row_mask[row_slice] = ~np.isnan(value_matrix[row_slice]).all(axis=1)
        column_nonzero_counts += np.count_nonzero(value_matrix[row_slice], axis=0)
    measured_row_indices = np.flatnonzero(measured_row_mask)
    # Take the values that most scans have.
    densest_column_indices = np.argsort(-column_nonzero_counts, kind="stable")[
        :MAX_DISTANCE_VALUES
    ]
    z = np.empty((len(measured_row_indices), len(densest_column_indices)))
    for row_slice in _iter_row_slices(len(z)):
        z[row_slice] = value_matrix[
            np.ix_(measured_row_indices[row_slice], densest_column_indices)
        ]
    if is_connectome:
        z = np.log1p(z)
    if np.isnan(z).any():
        z = SimpleImputer(keep_empty_features=True).fit_transform(z)
    z = z[:, np.ptp(z, axis=0) > 1e-10 * np.abs(z).max(axis=0)]
    n_values = z.shape[1]
    if n_values < 2:
        return np.empty((0, 2), dtype=np.int64)
    far_row_mask = _make_far_row_mask(z)
    # A scan in another unit would stretch the scale, and all others would be alike.
    z = StandardScaler().fit(z[~far_row_mask]).transform(z)
    # Two unrelated standardised scans have an expected squared distance of 2 n_values.
    max_squared_distance = 1e-20
    if n_values >= MIN_DISTANCE_VALUES:
        max_squared_distance = MAX_RELATIVE_DISTANCE * 2 * n_values
    near_index_pairs = find_near_index_pairs(z, max_squared_distance)
    # The scale of others does not hold for these scans, of which only copies are found.
    copied_pair_mask = np.array(
        [
            np.array_equal(z[first_index], z[second_index])
            for first_index, second_index in near_index_pairs
        ],
        dtype=bool,
    )
    near_index_pairs = near_index_pairs[
        copied_pair_mask | ~far_row_mask[near_index_pairs].any(axis=1)
    ]
    return measured_row_indices[near_index_pairs]


def _make_far_row_mask(value_matrix: np.ndarray) -> np.ndarray:
    """Return whether rows are far from the median row in most of the columns."""
    absolute_deviations = np.abs(compute_robust_deviations(value_matrix))
    varying_column_mask = np.median(absolute_deviations, axis=0) > 0
    if len(value_matrix) < MIN_SCANS or not varying_column_mask.any():
        return np.zeros(len(value_matrix), dtype=bool)
    return (
        np.median(absolute_deviations[:, varying_column_mask], axis=1)
        > MAX_ROW_DEVIATION
    )


def _iter_row_slices(n_rows: int) -> Iterator[slice]:
    """Yield rows that are handled at once."""
    for start_index in range(0, n_rows, N_ROWS_AT_ONCE):
        yield slice(start_index, min(start_index + N_ROWS_AT_ONCE, n_rows))


def find_near_index_pairs(z: np.ndarray, max_squared_distance: float) -> np.ndarray:
    """Return pairs of rows of z (n_rows, n_values) at most this far apart.

    A projection on orthonormal axes lengthens no distance, so that a few principal
    components rule out nearly all pairs. Only the others are computed from all values.

    Parameters
    ----------
    z : float64 array of shape (n_rows, n_values)
    max_squared_distance : float

    Returns
    -------
    int array of shape (n_pairs, 2)
        The smaller row first, sorted.
    """
    component_matrix = _project_on_components(z).astype(np.float32)
    squared_norms = (component_matrix**2).sum(axis=1)
    # Products in float32 are wrong by less than this share of the two squares.
    squared_norms = squared_norms * np.float32(1 - 1e-5)
    rounding_slack = 1e-5
    pair_arrays = [np.empty((0, 2), dtype=np.int64)]
    for row_slice in _iter_row_slices(len(z)):
        later_component_matrix = component_matrix[row_slice.start :]
        squared_distances = (
            squared_norms[row_slice, None] + squared_norms[row_slice.start :]
        )
        squared_distances -= 2 * (
            component_matrix[row_slice] @ later_component_matrix.T
        )
        first_indices, second_indices = np.nonzero(
            squared_distances <= max_squared_distance + rounding_slack
        )
        ordered_pair_mask = first_indices < second_indices
        candidate_pairs = (
            np.column_stack([first_indices, second_indices])[ordered_pair_mask]
            + row_slice.start
        )
        for start_index in range(0, len(candidate_pairs), N_ROWS_AT_ONCE):
            pair_block = candidate_pairs[start_index : start_index + N_ROWS_AT_ONCE]
            row_differences = z[pair_block[:, 0]] - z[pair_block[:, 1]]
            near_pair_mask = (row_differences**2).sum(axis=1) <= max_squared_distance
            pair_arrays.append(pair_block[near_pair_mask])
    return np.concatenate(pair_arrays)


def _project_on_components(z: np.ndarray) -> np.ndarray:
    """Return the projections of rows of z on the `N_COMPONENTS` principal axes.

    The smaller one of the two Gram matrices is decomposed.
    """
    n_rows, n_values = z.shape
    if n_values <= n_rows:
        _, principal_axes = np.linalg.eigh(z.T @ z)
        return z @ principal_axes[:, -N_COMPONENTS:]
    eigenvalues, eigenvectors = np.linalg.eigh(z @ z.T)
    singular_values = np.sqrt(np.maximum(eigenvalues[-N_COMPONENTS:], 0.0))
    return eigenvectors[:, -N_COMPONENTS:] * singular_values


def _iter_label_feature_findings(cohort: Cohort) -> Iterator[AuditFinding]:
    """Look for features and edges that are a function of the label."""
    for feature_name in filter(CLINICAL_SCORE.search, cohort.feature_names):
        yield _make_finding(
            CheckKey.CLINICAL_SCORE_AS_FEATURE,
            f"the feature {feature_name!r} has the name of a label or of a clinical "
            "score",
        )
    region_names = cohort.region_names
    for block_kind, _, value_matrix in _list_whole_scan_blocks(cohort):
        column_eta_squared = compute_class_eta_squared(value_matrix, cohort.y)
        predictive_column_indices = np.flatnonzero(
            column_eta_squared >= MAX_ETA_SQUARED
        )
        if not predictive_column_indices.size:
            continue
        # Columns are regions by features, or regions by regions.
        has_feature_columns = block_kind is BlockKind.ALL_FEATURES
        column_names = cohort.feature_names if has_feature_columns else region_names
        column_noun = "feature" if has_feature_columns else "edge"
        example_texts = []
        for flat_index in predictive_column_indices[:3]:
            row_index, column_index = divmod(flat_index, len(column_names))
            example_texts.append(
                f"{region_names[row_index]} {column_names[column_index]}"
            )
        ellipsis_text = (
            " ..." if predictive_column_indices.size > len(example_texts) else ""
        )
        yield _make_finding(
            CheckKey.LABEL_IN_FEATURES,
            f"classes explain {column_eta_squared.max():.1%} of the variance of "
            f"{count_text(predictive_column_indices.size, column_noun)}: "
            f"{', '.join(example_texts)}{ellipsis_text}",
        )


def compute_class_eta_squared(
    value_matrix: np.ndarray, class_labels: np.ndarray
) -> np.ndarray:
    """Return the share of each column's variance that classes explain.

    Classes of fewer than five scans are left out. A column is 0 where a class has fewer
    than five values, or where nothing varies.
    """
    _, class_codes, class_scan_counts = np.unique(
        class_labels.astype(str), return_inverse=True, return_counts=True
    )
    large_class_scan_indices = np.flatnonzero(
        class_scan_counts[class_codes] >= MIN_CLASS_SCANS
    )
    large_class_codes = np.flatnonzero(class_scan_counts >= MIN_CLASS_SCANS)
    # Sums of each class and column, of deviations from a constant of the column.
    sums_shape = len(large_class_codes), value_matrix.shape[1]
    class_value_counts, class_sums, class_square_sums = (
        np.zeros(sums_shape) for _ in range(3)
    )
    column_offsets = np.zeros(sums_shape[1])
    for row_slice in _iter_row_slices(len(large_class_scan_indices)):
        row_indices = large_class_scan_indices[row_slice]
        block_matrix = value_matrix[row_indices].astype(float)
        class_indicator_matrix = (
            class_codes[row_indices] == large_class_codes[:, None]
        ).astype(float)
        # One sum of everything is NaN where a value is: a mask of all takes longer.
        has_missing_values = bool(np.isnan(block_matrix.sum()))
        if has_missing_values:
            known_value_mask = ~np.isnan(block_matrix)
            block_matrix[~known_value_mask] = 0.0
            block_column_counts = known_value_mask.sum(axis=0)
            class_value_counts += class_indicator_matrix @ known_value_mask
        else:
            block_column_counts = np.full(sums_shape[1], len(block_matrix))
            class_value_counts += class_indicator_matrix.sum(axis=1, keepdims=True)
        if not row_slice.start:
            column_offsets = block_matrix.sum(axis=0) / np.maximum(
                block_column_counts, 1
            )
        block_matrix -= column_offsets
        if has_missing_values:
            block_matrix[~known_value_mask] = 0.0
        class_sums += class_indicator_matrix @ block_matrix
        class_square_sums += class_indicator_matrix @ np.square(
            block_matrix, out=block_matrix
        )
    column_known_counts, column_sums = (
        class_value_counts.sum(axis=0),
        class_sums.sum(axis=0),
    )
    count_denominators = np.maximum(column_known_counts, 1)
    total_square_sums = (
        class_square_sums.sum(axis=0) - column_sums**2 / count_denominators
    )
    within_square_sums = (
        class_square_sums - class_sums**2 / np.maximum(class_value_counts, 1)
    ).sum(axis=0)
    raw_square_sums = class_square_sums.sum(axis=0) + column_offsets * (
        2 * column_sums + column_known_counts * column_offsets
    )
    filled_column_mask = (class_value_counts >= MIN_CLASS_SCANS).all(axis=0)
    explainable_column_mask = filled_column_mask & (
        total_square_sums > 1e-20 * raw_square_sums
    )
    explained_shares = 1 - within_square_sums / np.where(
        explainable_column_mask, total_square_sums, 1.0
    )
    return np.where(explainable_column_mask, explained_shares, 0.0)


def _iter_scale_findings(
    cohort: Cohort, adjusted_column_set: set[str]
) -> Iterator[AuditFinding]:
    """Look for columns by whose values features may be on several scales."""
    for column_name, covariate_kind in _make_kind_by_column(cohort).items():
        group_series = cohort.table[column_name].dropna().astype(str)
        n_values = group_series.nunique()
        if covariate_kind not in SCALE_KINDS or n_values < 2:
            continue
        value_texts = (
            f"{group_name} ({count_text(n_scans, 'scan')})"
            for group_name, n_scans in group_series.value_counts().items()
        )
        is_adjusted_for = column_name in adjusted_column_set
        yield _make_finding(
            CheckKey.SEVERAL_SCALES,
            f"{column_name} has {n_values} values: {join_with_commas(value_texts, 5)}",
            severity="note" if is_adjusted_for else "",
            advice=REMOVED_ADVICE if is_adjusted_for else "",
        )


def _iter_missing_covariate_findings(cohort: Cohort) -> Iterator[AuditFinding]:
    """Report which of age, sex and site the cohort does not have."""
    covariate_kind_set = {
        covariate_kind
        for column_name, covariate_kind in _make_kind_by_column(cohort).items()
        if cohort.table[column_name].notna().any()
    }
    covariate_kind_set.add(find_covariate_kind(cohort.label_name))
    if "scanner" in covariate_kind_set:
        covariate_kind_set.add("site")
    missing_kinds = sorted({*EXPECTED_COVARIATES} - covariate_kind_set)
    if missing_kinds:
        example_texts = [
            f"{', '.join(COVARIATES[covariate_kind][:3])} ... for {covariate_kind}"
            for covariate_kind in missing_kinds
        ]
        yield _make_finding(
            CheckKey.COVARIATES_MISSING,
            "the audit did not test how well "
            f"{' or '.join(missing_kinds)} alone predicts the label, because the table "
            "has no column with such values; expected columns are "
            f"{'; '.join(example_texts)}",
        )


def _iter_predictive_column_findings(
    cohort: Cohort,
    adjusted_column_set: set[str],
    splits: Sequence[Split],
    reference_class_name: str | None,
) -> Iterator[AuditFinding]:
    """Test covariates, and what was not measured, alone against the label."""
    tested_columns = [
        tested_column
        for tested_column in _iter_tested_columns(cohort)
        if tested_column.value_series.nunique() > 1
    ]
    row_index = order_rows_by_visit(cohort.table)
    accuracy_and_p_triples = [
        compute_accuracy_chance_and_p(
            tested_column.value_series.iloc[row_index],
            cohort.y[row_index],
            cohort.groups[row_index],
        )
        for tested_column in tested_columns
    ]
    corrected_p_values = adjust_p_values(
        [p_value for _, _, p_value in accuracy_and_p_triples]
    )
    for tested_column, (mean_accuracy, chance_accuracy, p_value), corrected_p in zip(
        tested_columns, accuracy_and_p_triples, corrected_p_values, strict=True
    ):
        p_value_text = p_phrase(p_value)
        if len(tested_columns) > 1:
            p_value_text += f", Holm {p_phrase(corrected_p)}"
        finding_text = (
            f"{tested_column.title}: balanced accuracy {mean_accuracy:.2f}, chance "
            f"{chance_accuracy:.2f} (difference between classes: {p_value_text})"
        )
        # A covariate is warned of by its own p, so that a long table hides none.
        # Patterns of missing values are many and rarely suspected beforehand.
        deciding_p = p_value if tested_column.covariate_name else corrected_p
        has_class_difference = deciding_p < MAX_P_VALUE
        is_predictive = (
            has_class_difference and mean_accuracy >= chance_accuracy + MIN_GAIN
        )
        if tested_column.covariate_name:
            covariate_finding = _make_covariate_finding(
                cohort,
                tested_column,
                finding_text,
                has_class_difference=has_class_difference,
                is_predictive=is_predictive,
                is_adjusted_for=tested_column.covariate_name in adjusted_column_set,
                reference_class_name=reference_class_name,
                splits=splits,
            )
            yield covariate_finding._replace(
                covariate=tested_column.covariate_name,
                balanced_accuracy=mean_accuracy,
                p_value=p_value,
            )
        elif is_predictive:
            yield _make_finding(CheckKey.MISSING_VALUES_PREDICT_LABEL, finding_text)


def _iter_tested_columns(cohort: Cohort) -> Iterator[TestedColumn]:
    """Yield covariates and patterns of missing values to test against the label."""
    for column_name, covariate_kind in _make_kind_by_column(cohort).items():
        covariate_series = cohort.table[column_name]
        number_series = pd.to_numeric(covariate_series, errors="coerce")
        is_numeric = number_series.count() >= 0.9 * covariate_series.count()
        if is_numeric and not is_categorical_covariate(column_name, number_series):
            covariate_series = number_series  # words among the numbers count as missing
        else:
            covariate_series = to_group_text_series(covariate_series)
        if covariate_kind in TESTED_COVARIATES:
            yield TestedColumn(
                f"{column_name} alone", covariate_series, covariate_name=column_name
            )
        yield TestedColumn(
            f"missing {column_name}", covariate_series.isna(), covariate_name=""
        )
    missing_value_mask = np.isnan(cohort.features).reshape(cohort.n_scans, -1)
    missing_value_mask = missing_value_mask[
        :, missing_value_mask.any(axis=0) & ~missing_value_mask.all(axis=0)
    ]
    missing_count_series = pd.Series(missing_value_mask.sum(axis=1))
    yield TestedColumn(
        "the number of missing values", missing_count_series, covariate_name=""
    )
    pattern_codes = np.unique(missing_value_mask, axis=0, return_inverse=True)[
        1
    ].reshape(-1)
    pattern_series = pd.Series(pattern_codes.astype(str))
    yield TestedColumn("which values are missing", pattern_series, covariate_name="")


def _make_covariate_finding(
    cohort: Cohort,
    tested_column: TestedColumn,
    finding_text: str,
    *,
    has_class_difference: bool,
    is_predictive: bool,
    is_adjusted_for: bool,
    reference_class_name: str | None,
    splits: Sequence[Split],
) -> AuditFinding:
    """Return a covariate's finding, with whether it is missing, removed or held out."""
    covariate_name = tested_column.covariate_name
    n_people_without_value = (
        tested_column.value_series.isna().groupby(cohort.groups).all().sum()
    )
    if n_people_without_value:
        finding_text += (
            f"; the covariate {covariate_name} is missing for "
            f"{count_text(n_people_without_value, 'person')}"
        )
    if is_adjusted_for:
        finding_text += "; its effect was removed from the features inside the folds"
        if reference_class_name is not None:
            finding_text += f", as estimated in {reference_class_name} alone"
    covariate_series = cohort.table[covariate_name]
    has_unseen_test_values = is_categorical_covariate(
        covariate_name, covariate_series
    ) and not _list_shared_value_sets(covariate_series, splits)
    if has_unseen_test_values:
        finding_text += "; its values in test scans do not occur in training scans"
    severity_word = "note" if has_unseen_test_values or not is_predictive else ""
    if not is_predictive:
        advice_text = (
            SMALL_GAIN_ADVICE if has_class_difference else NO_DIFFERENCE_ADVICE
        )
    elif has_unseen_test_values:
        advice_text = HELD_OUT_ADVICE
    elif is_adjusted_for and reference_class_name is not None:
        advice_text = REFERENCE_ADVICE
    elif is_adjusted_for:
        advice_text = REMOVED_ADVICE
    else:
        advice_text = ""
    return _make_finding(
        CheckKey.COVARIATE_PREDICTS_LABEL,
        finding_text,
        severity=severity_word,
        advice=advice_text,
    )


def _iter_outside_reference_findings(
    cohort: Cohort, adjusted_column_set: set[str], reference_class_name: str
) -> Iterator[AuditFinding]:
    """Report people whose covariates lie outside the range of the reference class."""
    sorted_table = cohort.table.iloc[order_rows_by_visit(cohort.table)]
    people_table = sorted_table.drop_duplicates("participant")
    reference_label = match_class_name(reference_class_name, cohort.classes)
    reference_person_mask = people_table["label"].astype(str) == reference_label
    for column_name in sorted(adjusted_column_set):
        if is_categorical_covariate(column_name, people_table[column_name]):
            continue
        person_number_series = pd.to_numeric(people_table[column_name], errors="coerce")
        reference_minimum, reference_maximum = (
            person_number_series[reference_person_mask].min(),
            person_number_series[reference_person_mask].max(),
        )
        n_people_outside = int(
            (
                (person_number_series < reference_minimum)
                | (person_number_series > reference_maximum)
            ).sum()
        )
        if n_people_outside > MAX_OUTSIDE_SHARE * len(people_table):
            yield _make_finding(
                CheckKey.OUTSIDE_REFERENCE,
                f"{column_name} of {n_people_outside} of "
                f"{count_text(len(people_table), 'person')} is outside the range of "
                f"the class {reference_class_name} ({reference_minimum:g} to "
                f"{reference_maximum:g})",
            )


def compute_accuracy_chance_and_p(
    column_values: ArrayLike, class_labels: ArrayLike, groups: ArrayLike
) -> tuple[float, float, float]:
    """Return the accuracy of a prediction from one column, chance and p-value.

    Each value (or eighth of the values of a number) predicts the class of whose
    training people the largest share has it. The p-value is of a difference between
    classes: by the Kruskal-Wallis test for numbers, by a permutation test of Pearson's
    chi-squared for groups. Of each person the first scan with a value counts.

    Parameters
    ----------
    column_values, class_labels, groups : array-like of length n_scans
        The column, the class and the person of each scan.

    Returns
    -------
    accuracy : float
        Balanced accuracy in five folds of people.
    chance : float
        One over the number of classes.
    p_value : float
    """
    scan_table = pd.DataFrame(
        {"value": np.asarray(column_values), "label": np.asarray(class_labels)}
    )
    person_table = scan_table.assign(person=groups).dropna().drop_duplicates("person")
    bin_series = person_table["value"]
    is_numeric = (
        pd.api.types.is_numeric_dtype(bin_series)
        and bin_series.nunique() > N_COVARIATE_BINS
    )
    if is_numeric:
        bin_series = pd.qcut(
            bin_series, N_COVARIATE_BINS, labels=False, duplicates="drop"
        )
    bin_codes = pd.factorize(bin_series)[0]
    class_names, y = np.unique(person_table["label"].astype(str), return_inverse=True)
    n_classes = len(class_names)
    rng = np.random.default_rng(0)
    person_folds = _draw_person_fold_codes(y, rng)
    fold_bin_class_counts = np.zeros((N_FOLDS, bin_codes.max() + 1, n_classes))
    np.add.at(fold_bin_class_counts, (person_folds, bin_codes, y), 1)
    # A p-value of the cross-validated accuracy would have little power.
    if is_numeric and n_classes > 1:
        value_series_list = [x for _, x in person_table.groupby("label")["value"]]
        p_value = kruskal(*value_series_list).pvalue
    else:
        p_value = _compute_chi_squared_p(fold_bin_class_counts.sum(axis=0), rng)
    return _majority_accuracy(fold_bin_class_counts), 1 / n_classes, float(p_value)


def _draw_person_fold_codes(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the fold of each person; folds have nearly the same shares of classes."""
    person_folds = np.empty(len(y), dtype=np.int64)
    shuffled_indices = rng.permutation(len(y))
    class_sorted_indices = shuffled_indices[
        np.argsort(y[shuffled_indices], kind="stable")
    ]
    person_folds[class_sorted_indices] = np.arange(len(y)) % N_FOLDS
    return person_folds


def _majority_accuracy(fold_bin_class_counts: np.ndarray) -> float:
    """Return cross-validated balanced accuracy of counts by fold, code and class.

    A code predicts the class of whose training people the largest share has it.
    """
    bin_class_counts = fold_bin_class_counts.sum(axis=0)
    train_bin_class_counts = bin_class_counts - fold_bin_class_counts
    train_class_totals = train_bin_class_counts.sum(axis=1, keepdims=True)
    train_class_shares = np.round(
        train_bin_class_counts / np.maximum(train_class_totals, 1), 12
    )
    predicted_class_mask = train_class_shares == train_class_shares.max(
        axis=2, keepdims=True
    )
    # Tied classes share the prediction, so that an uninformative column is at chance.
    n_tied_classes = predicted_class_mask.sum(axis=2, keepdims=True)
    class_correct_counts = (
        fold_bin_class_counts * predicted_class_mask / n_tied_classes
    ).sum(axis=(0, 1))
    return float((class_correct_counts / bin_class_counts.sum(axis=0)).mean())


def _compute_chi_squared_p(
    bin_class_counts: np.ndarray, rng: np.random.Generator
) -> float:
    """Return the p-value of a contingency table among random ones of its margins.

    Each person counts once, so all labels may be permuted. A random table counts the
    people after a permutation.
    """
    bin_and_class_totals = [
        bin_class_counts.sum(axis=sum_axis).astype(int) for sum_axis in (1, 0)
    ]
    random_bin_class_counts = random_table(*bin_and_class_totals, seed=rng).rvs(
        N_PERMUTATIONS
    )
    # Chi-squared is sum(O^2 / E) up to constants.
    stacked_bin_class_counts = np.concatenate(
        [bin_class_counts[None], random_bin_class_counts]
    )
    squared_ratios = stacked_bin_class_counts**2 / np.outer(*bin_and_class_totals)
    chi_squared_statistics = squared_ratios.sum(axis=(1, 2))
    return float(
        (chi_squared_statistics >= chi_squared_statistics[0] * (1 - 1e-12)).mean()
    )


def _make_kind_by_column(cohort: Cohort) -> dict[str, str]:
    """Return the kind of each column that is neither a key nor the label's own name."""
    key_column_set = {*KEY_COLUMNS, cohort.label_name}
    column_names = [
        str(column_name)
        for column_name in cohort.table.columns
        if column_name not in key_column_set
    ]
    return {
        column_name: find_acquisition_kind(column_name) for column_name in column_names
    }
