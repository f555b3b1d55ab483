"""The leakage audit: what may make a score too good, looked for before it is told."""

from collections.abc import Sequence
from typing import Any

from brainlsap.data import Cohort
from brainlsap.evaluation.findings import Audit
from brainlsap.evaluation.fold_differences import (
    find_fold_differences,
    find_shared_groups,
    find_shared_people,
)
from brainlsap.evaluation.outside_folds import find_choices, find_removed_effects
from brainlsap.evaluation.predictability import find_confounds, find_telling_gaps
from brainlsap.evaluation.splits import Split
from brainlsap.evaluation.telling_features import find_telling_features
from brainlsap.evaluation.twins import find_twins


def audit(
    cohort: Cohort,
    splits: Sequence[Split],
    pipeline: Any = None,
    *,
    whole: Sequence[str] = (),
) -> Audit:
    """Look for everything that lets a model know the answer of a test scan.

    The severities are fixed: an error is a leak, a warning is something other than
    the brain that may explain the score, a note is what a reader should know. They
    stand in :data:`brainlsap.evaluation.findings.CHECKS`:

    ============================= ========
    check                         severity
    ============================= ========
    person in two folds           error
    identical connectomes         error
    identical features            error
    nearly identical connectomes  error
    nearly identical features     error
    group in two folds            error
    family in two folds           warning
    label in the features         error
    clinical score as feature     warning
    fitted outside the folds      error
    fitted before                 warning
    tuned on the test fold        error
    tuned on shared people        warning
    many variants                 warning
    label from one column         warning
    missing values tell the label warning
    folds differ                  warning
    column that is the label      note
    ============================= ========

    An audit that finds nothing is no proof. What it cannot see: scans that were
    chosen by looking at results, settings chosen on these folds in an earlier run, a
    label that was given with the image at hand.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    splits : sequence of (train, test)
        Rows of the cohort, as from :func:`brainlsap.evaluation.make_splits`.
    pipeline : estimator or mapping of str to estimator, optional
        The models that are to be fitted.
    whole : sequence of str
        Columns of the table, such as a family or a site, of which no value may be on
        two sides of a fold.

    Returns
    -------
    Audit
        With `findings`, `pairs` of scans that are too alike, what was `skipped`, and
        `to_frame()`.

    Raises
    ------
    ParameterError
        Where `whole` names no column of the cohort's table.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import make_splits
    >>> cohort = make_cohort(60, atlas="desikan82", random_state=0)
    >>> found = audit(cohort, make_splits(cohort.y, cohort.groups, 3))
    >>> found.is_clean
    True
    """
    twins, pairs, skipped = find_twins(cohort, splits)
    confounds, without_columns = find_confounds(cohort)
    telling, without_classes = find_telling_features(cohort)
    choices, without_model = find_choices(pipeline, cohort)
    findings = [
        *find_shared_people(cohort, splits),
        *twins,
        *find_shared_groups(cohort, splits, whole),
        *telling,
        *find_removed_effects(cohort),
        *choices,
        *confounds,
        *find_telling_gaps(cohort),
        *find_fold_differences(cohort, splits),
    ]
    unasked = {} if whole else {"group in two folds": "no column was named"}
    skipped |= unasked | without_columns | without_classes | without_model
    return Audit(findings, pairs, skipped)
