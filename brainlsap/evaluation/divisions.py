"""The same models by person and by scan, side by side: what sharing people is worth."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from brainlsap._arrays import check_choice
from brainlsap.data import Cohort
from brainlsap.evaluation.crossval import cross_validate
from brainlsap.evaluation.designs import split_scans_ignoring_people
from brainlsap.evaluation.metrics import SCORES
from brainlsap.evaluation.records import Evaluation
from brainlsap.exceptions import ParameterError


@dataclass(frozen=True, eq=False)
class Divisions:
    """The same models, tested on folds of people and on folds of scans.

    Parameters
    ----------
    by_person : Evaluation
        On folds that never share a person: the honest one.
    by_scan : Evaluation
        On folds in which visits of a person stand on both sides; it is marked.

    Examples
    --------
    See :func:`brainlsap.evaluation.score_by_person_and_by_scan`.
    """

    by_person: Evaluation
    by_scan: Evaluation

    def to_frame(self, score: str = "balanced_accuracy") -> pd.DataFrame:
        """Return both scores of every model, and the gap.

        Parameters
        ----------
        score : str
            One of :data:`brainlsap.evaluation.SCORES`.

        Returns
        -------
        DataFrame
            Columns model, by_person and by_scan (means over folds), gap (by scan minus
            by person).
        """
        check_choice("score", score, SCORES)
        rows = []
        for name, result in self.by_person.results.items():
            honest = float(result.scores()[score].mean())
            shared = float(self.by_scan.result(name).scores()[score].mean())
            rows.append((name, honest, shared, shared - honest))
        return pd.DataFrame(rows, columns=["model", "by_person", "by_scan", "gap"])


def score_by_person_and_by_scan(
    model: Any,
    cohort: Cohort,
    n_folds: int = 5,
    random_state: int = 0,
    **settings: Any,
) -> Divisions:
    """Cross-validate models by person and by scan, to show what the gap is.

    A model that is better by scan than by person knows people and not their disease;
    scores by scan in the literature are inflated by about this gap.

    Parameters
    ----------
    model : classifier or mapping of str to classifier
        As for :func:`brainlsap.evaluation.cross_validate`.
    cohort : Cohort
        With people who have several scans.
    n_folds : int
        Folds of both divisions.
    random_state : int
        Seed of both.
    **settings
        Further settings of :func:`brainlsap.evaluation.cross_validate`.

    Returns
    -------
    Divisions
        With `by_person`, `by_scan` and `to_frame()`.

    Raises
    ------
    ParameterError
        Where everybody has one scan: the divisions are then the same.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> both = score_by_person_and_by_scan(
    ...     DummyClassifier(), make_cohort(60, atlas="desikan82"), 3, baselines=False
    ... )
    >>> both.to_frame().round(2)
                 model  by_person  by_scan  gap
    0  DummyClassifier        0.2      0.2  0.0
    >>> both.by_person.people_shared, both.by_scan.people_shared
    (False, True)
    """
    if len(set(cohort.groups)) == cohort.n_scans:
        raise ParameterError(
            f"everybody of the {cohort.n_scans} people has one scan; by person and by "
            "scan is then the same."
        )
    by_person = cross_validate(model, cohort, n_folds, random_state, **settings)
    by_scan = cross_validate(
        model,
        cohort,
        random_state=random_state,
        splits=split_scans_ignoring_people(cohort.y, n_folds, random_state),
        people_may_be_shared=True,
        **settings,
    )
    return Divisions(by_person, by_scan)
