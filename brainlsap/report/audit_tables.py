"""What the leakage audit found, and the model info sheet that it fills in."""

from collections.abc import Callable, Sequence

import pandas as pd

from brainlsap.evaluation import Audit, Evaluation

NOT_BY_PERSON = "folds share people: not a score by person"
"""What marks every output of folds in which a person is on both sides."""

_QUESTIONS = (
    (
        "L1.1 No test set",
        ("tuned on the test fold", "many variants"),
        "Whether settings were chosen by looking at these scores in earlier runs.",
    ),
    (
        "L1.2 Preprocessing on training and test set",
        ("fitted outside the folds", "fitted before"),
        "Every step before the cohort was loaded, and whether it used other scans.",
    ),
    (
        "L1.3 Feature selection on training and test set",
        ("tuned on shared people",),
        "How regions, features and atlas were chosen.",
    ),
    (
        "L1.4 Duplicates in the data",
        (
            "identical connectomes",
            "identical features",
            "nearly identical connectomes",
            "nearly identical features",
        ),
        "Whether cohorts were merged in which a person may have two ids.",
    ),
    (
        "L2 Features that are not legitimate",
        (
            "label in the features",
            "clinical score as feature",
            "missing values tell the label",
        ),
        "Why each feature is known before the label, where the model is to be used.",
    ),
    (
        "L3.1 Temporal leakage",
        (),
        "Whether the model is to tell the present or the future, and that no scan "
        "used for training is later than what it is to tell.",
    ),
    (
        "L3.2 Training and test set depend on each other",
        ("person in two folds", "group in two folds", "family in two folds"),
        "Whether people are related, or share a scanner session.",
    ),
    (
        "L3.3 Test set is not from the population of interest",
        ("label from one column", "folds differ"),
        "The population that the scores are to hold for, and who was left out.",
    ),
)


def audit_table(
    evaluation: Evaluation, withhold: Callable[[str], str] = str
) -> pd.DataFrame:
    """Return the findings of the leakage audit, gravest first.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    withhold : function of str
        Takes names of people out of text.

    Returns
    -------
    DataFrame
        Columns severity, check, evidence, what to do; empty where nothing was found
        or no audit was made.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(60, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 3, baselines=False)
    >>> set(audit_table(evaluation)["severity"])
    {'note'}
    """
    frame = (evaluation.audit or Audit([])).to_frame()
    return frame.assign(evidence=[withhold(text) for text in frame["evidence"]])


def audit_words(evaluation: Evaluation) -> tuple[str, ...]:
    """Say what the audit looked at, and what it could not look at.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.

    Returns
    -------
    tuple of str
        Sentences.
    """
    audit = evaluation.audit
    if audit is None:
        return ("No leakage audit was made.",)
    sentences = [audit.sentence()]
    if audit.passed():
        sentences.append(
            f"Looked for without finding anything: {', '.join(audit.passed())}."
        )
    if audit.skipped:
        told = "; ".join(f"{name} ({why})" for name, why in audit.skipped.items())
        sentences.append(f"Not looked for: {told}.")
    sentences.append(
        "An audit that finds nothing is no proof: it cannot see how scans were chosen, "
        "or what was tried on these folds before."
    )
    return tuple(sentences)


def info_sheet(
    evaluation: Evaluation, withhold: Callable[[str], str] = str
) -> pd.DataFrame:
    """Return a model info sheet on leakage, filled in as far as a program can.

    The rows are the eight kinds of leakage of S. Kapoor and A. Narayanan, Leakage and
    the reproducibility crisis in machine-learning-based science, Patterns 4 (2023)
    100804.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    withhold : function of str
        Takes names of people out of text.

    Returns
    -------
    DataFrame
        Columns kind of leakage, what this run says, left to the authors.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(60, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 3, baselines=False)
    >>> info_sheet(evaluation)["kind of leakage"].iloc[0]
    'L1.1 No test set'
    """
    rows = []
    for kind, checks, left in _QUESTIONS:
        said = [_fact(kind, evaluation), _verdict(evaluation.audit, checks)]
        told = withhold(" ".join(part for part in said if part))
        rows.append((kind, told, left))
    columns = ["kind of leakage", "what this run says", "left to the authors"]
    return pd.DataFrame(rows, columns=columns)


def _fact(kind: str, evaluation: Evaluation) -> str:
    """Say what is known without the audit."""
    cohort, folds = evaluation.cohort, evaluation.settings.get("n_folds")
    people = (
        "Folds share people."
        if evaluation.people_shared
        else "No person is on both sides of a fold."
    )
    return {
        "L1.1": f"Tested in {folds} folds, on scans that were not fitted on.",
        "L1.2": "The baselines standardise inside each training fold.",
        "L1.3": "No feature was selected; baselines are tuned inside training folds.",
        "L2": f"Features: {', '.join(cohort.feature_names)} of each region.",
        "L3.1": "All visits of a person are on one side; the order of dates between "
        "people was not looked at.",
        "L3.2": people,
        "L3.3": f"{cohort.n_participants} people in "
        f"{len(cohort.classes)} classes, as the cohort has them.",
    }.get(kind.split(maxsplit=1)[0], "")


def _verdict(audit: Audit | None, checks: Sequence[str]) -> str:
    """Say what the audit found in some checks."""
    if not checks:
        return ""
    if audit is None:
        return "Not audited."
    found = [
        f"{one.severity}: {one.check} ({one.evidence})."
        for one in audit.findings
        if one.check in checks and one.severity != "note"
    ]
    skipped = [name for name in checks if name in audit.skipped]
    made = [name for name in checks if name in audit.passed()]
    if made:
        found.append(f"Audited, nothing found: {', '.join(made)}.")
    if skipped:
        found.append(f"Not looked for: {', '.join(skipped)}.")
    return " ".join(found)
