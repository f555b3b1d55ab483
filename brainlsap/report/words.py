"""Numbers become sentences: what a report says first, and what the folds promise."""

import numpy as np
import pandas as pd

from brainlsap.evaluation import (
    Evaluation,
    ModelResult,
    corrected_t_test,
)
from brainlsap.report.ranking_tables import p_text
from brainlsap.report.score_tables import spread_text

HEADLINE = "balanced_accuracy"
ALPHA = 0.05


def default_title(evaluation: Evaluation) -> str:
    """Return the heading of a report: what is told from what by which model.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.

    Returns
    -------
    str
    """
    cohort = evaluation.cohort
    told = f"{cohort.label_name} from {' and '.join(cohort.feature_names)}"
    return f"{told[:1].upper()}{told[1:]}: {evaluation.main.name}"


def headline(evaluation: Evaluation) -> tuple[str, ...]:
    """Return the first sentences of a report: who, how well, and against what.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    tuple of str
        Sentences.
    """
    cohort, main = evaluation.cohort, evaluation.main
    sentences = []
    if evaluation.people_shared:
        sentences.append(
            "People have scans in training and in test folds: a model can know the "
            "answer by knowing the person, and these scores say nothing of new people."
        )
    guess = 1 / len(cohort.classes)
    sentences.append(
        f"{main.name} tells {len(cohort.classes)} classes of {cohort.label_name} "
        f"({', '.join(cohort.classes)}) apart with a balanced accuracy of "
        f"{_spread(main)} (mean ± s.d. over {len(main.folds)} folds; guessing gives "
        f"{guess:.3f}), in {count(cohort.n_scans, 'scan')} of "
        f"{count(cohort.n_participants, 'person')}."
    )
    best = evaluation.best_baseline(HEADLINE)
    if best is None:
        return (
            *sentences,
            "No baseline was run, so this figure has nothing beside it.",
            *_audit_sentence(evaluation),
        )
    sentences.append(
        f"The best baseline on the same folds, {best.name}, reaches {_spread(best)}."
    )
    return (*sentences, comparison(main, best), *_audit_sentence(evaluation))


def _audit_sentence(evaluation: Evaluation) -> tuple[str, ...]:
    """Return what the audit found, in the summary only where that is grave."""
    audit = evaluation.audit
    if audit is None or audit.is_clean:
        return ()
    return (f"{audit.sentence()[:-1]}: {', '.join(audit.checks_of('error'))}.",)


def comparison(one: ModelResult, other: ModelResult) -> str:
    """Say whether one model is better than another on the same folds.

    Better means: the corrected resampled t-test of the differences of balanced
    accuracy (:func:`brainlsap.evaluation.corrected_t_test`) has p < 0.05.

    Parameters
    ----------
    one, other : ModelResult
        Two models on the same folds.

    Returns
    -------
    str
        One sentence.
    """
    difference = (one.scores()[HEADLINE] - other.scores()[HEADLINE]).to_numpy()
    n_train, n_test = (
        float(np.mean([len(getattr(fold, side)) for fold in one.folds]))
        for side in ("train", "test")
    )
    test = corrected_t_test(difference, n_train, n_test)
    wins, n_folds = int((difference > 0).sum()), len(difference)
    p_value = p_text(test.p_value)
    equals = "" if p_value.startswith("<") else "= "
    told = (
        f"the mean difference is {test.mean:+.3f} (corrected t-test: "
        f"p {equals}{p_value}), and {one.name} is higher in {wins} of {n_folds} folds"
    )
    if not test.p_value < ALPHA:
        return f"No clear difference between the two: {told}."
    verdict = "beats" if test.mean > 0 else "does not beat"
    return f"{one.name} {verdict} {other.name}: {told}."


def count(number: int, noun: str) -> str:
    """Return a number with its noun, as in "1 person", "2 people".

    Parameters
    ----------
    number : int
        How many.
    noun : str
        In the singular.

    Returns
    -------
    str

    Examples
    --------
    >>> count(1, "scan"), count(1234, "person")
    ('1 scan', '1,234 people')
    """
    plural = {"person": "people", "class": "classes"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else plural}"


def promises(evaluation: Evaluation) -> tuple[str, ...]:
    """Say what the folds guarantee and what they do not.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.

    Returns
    -------
    tuple of str
        Sentences.
    """
    drawn = evaluation.settings.get("splits", "drawn") == "drawn"
    origin = (
        f"Folds were drawn with seed {evaluation.settings['random_state']}, each class "
        "spread over them as evenly as whole people allow."
        if drawn
        else "Folds were given by the user."
    )
    repeats = evaluation.settings.get("n_repeats", 1)
    if repeats > 1:
        origin += f" Every scan is tested {repeats} times, in folds drawn anew."
    whole = (
        "Folds divide scans and not people: visits of one person stand on both sides."
        if evaluation.people_shared
        else "No person is in both the training and the test scans of a fold; this was "
        "checked before anything was fitted."
    )
    return (
        whole,
        origin,
        "Every model was fitted anew in every fold, on the training scans alone, and "
        "all models saw the very same folds. The linear baselines choose their "
        "settings on inner folds of the training scans, people kept whole there too.",
        "Folds share most of their training scans, so the s.d. over folds is no "
        "standard error and understates what another sample would change.",
        "Not guaranteed: that the label is not confounded with site, scanner, age or "
        "sex, and that nobody chose settings of the model by looking at these scores.",
    )


def fold_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return people and scans in every fold, by class.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.

    Returns
    -------
    DataFrame
        One row per fold: fold, training people and scans, test people and scans, and
        test scans of every class.
    """
    table = evaluation.cohort.table
    person, label = table["participant"].to_numpy(), table["label"].to_numpy()
    rows = []
    for number, (train, test) in enumerate(evaluation.splits, start=1):
        row: dict[str, object] = {
            "fold": number,
            "training people": len(set(person[train])),
            "training scans": len(train),
            "test people": len(set(person[test])),
            "test scans": len(test),
        }
        for name in evaluation.cohort.classes:
            row[f"test {name}"] = int((label[test] == name).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def _spread(result: ModelResult) -> str:
    values = result.scores()[HEADLINE]
    return spread_text(float(values.mean()), float(values.std(ddof=1)))
