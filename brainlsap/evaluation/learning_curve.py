"""Would more people help? The score of models by the number of people in training."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data.cohort import Cohort, check_cohort_given
from brainlsap.evaluation.comparison import bootstrap_scores
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.cross_validation import cross_validate
from brainlsap.evaluation.results import Evaluation
from brainlsap.evaluation.scores import balanced_accuracy, weighted_counts
from brainlsap.evaluation.splits import Split
from brainlsap.exceptions import ParameterError

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the training people of each fold, by default."""

FIRST_SHARE_OF_SLOPE = 0.5
"""The slope is that of the last doubling: of shares from this one on."""

MIN_TRAINING_PEOPLE = 2
"""Smallest number of training people of a class, where it has as many."""

SMALLEST_GAIN = 0.02
"""Gain in balanced accuracy by a doubling that is too small to matter."""

YES, NO, UNCLEAR = "yes", "no", "unclear"


def learning_curve(
    cohort: Cohort,
    models: Mapping[str, Any],
    splits: Sequence[Split],
    *,
    shares: Sequence[float] = SHARES,
    random_state: int = 0,
    harmonize: str | None = None,
    regress_out: str | Sequence[str] = (),
    reference_class: str | None = None,
    n_draws: int = 1000,
    n_jobs: int | None = None,
    verbose: bool = False,
    memory: str | Path | None = None,
) -> pd.DataFrame:
    r"""Score models that are fitted to some of the training people of each fold.

    Test people are the same at every share. In each fold, the people of a class are
    put in a random order, and a share takes the first of them, so that smaller sets are
    nested in larger ones. The slope is that of least squares of the balanced accuracy
    on :math:`\log_2` of the number of people, over shares from 0.5 on: the gain by a
    doubling. Its interval draws people with replacement, the same at all shares; it
    holds for these fits and folds.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    models : mapping of str to classifier or (classifier, role)
        As for :func:`brainlsap.cross_validate`.
    splits : sequence of (train, test)
        Row indices, as :func:`brainlsap.evaluation.make_splits` returns them.
    shares : sequence of float
        Shares of the training people, ascending, the last 1.
    random_state : int
        Seed of the order of people, of models and of the bootstrap.
    harmonize, regress_out, reference_class, n_jobs, verbose, memory
        As for :func:`brainlsap.cross_validate`; finished fits are kept in `memory`.
    n_draws : int
        Bootstrap draws.

    Returns
    -------
    DataFrame
        One row per model and share: model, share, n_train_people (mean over folds),
        estimate, low, high (balanced accuracy of all test scans, 95% interval over
        people), slope, slope_low, slope_high (95%), and answer: "yes" where the
        intervals of the slope and of the last score are above 0 and chance, "no" where
        that of the slope is below 0.02, else "unclear".
        Shares at which harmonisation or regression cannot be learned, for example
        because a site has one person, have no rows. A model that failed in a fold has
        NaN.

    Raises
    ------
    ParameterError
        If shares are not ascending up to 1.
    """
    check_cohort_given(cohort)
    shares = [float(share) for share in shares]
    if sorted(set(shares)) != shares or shares[0] <= 0 or shares[-1] != 1:
        raise ParameterError(
            f"shares must ascend from above 0 to 1, for example {SHARES}; got {shares}."
        )
    steps = Deconfounder(harmonize, regress_out, reference_class)
    evaluations: dict[float, Evaluation] = {}
    for share in shares:
        reduced_splits = reduce_training(cohort, splits, share, random_state)
        if share < 1 and not _can_learn(steps, cohort, reduced_splits):
            continue
        evaluations[share] = cross_validate(
            models,
            cohort,
            reduced_splits,
            baselines=False,
            random_state=random_state,
            harmonize=harmonize,
            regress_out=regress_out,
            reference_class=reference_class,
            n_jobs=n_jobs,
            verbose=verbose,
            memory=memory,
        )
    rows = []
    for model_name in models:
        model_rows = []
        for share, evaluation in evaluations.items():
            fits = evaluation.fits[evaluation.fits["model"] == model_name]
            scores = bootstrap_scores(evaluation, model_name, n_draws, random_state)
            score = scores.set_index("score").loc["balanced_accuracy"]
            model_rows.append(
                {
                    "model": model_name,
                    "share": share,
                    "n_train_people": float(fits["n_train_people"].mean()),
                    **score[["estimate", "low", "high"]].to_dict(),
                }
            )
        slope = _bootstrap_slope(evaluations, model_name, n_draws, random_state)
        answer = UNCLEAR
        is_above_chance = model_rows[-1]["low"] > 1 / len(cohort.classes)
        if slope["slope_low"] > 0 and is_above_chance:
            answer = YES
        elif slope["slope_high"] < SMALLEST_GAIN:
            answer = NO
        rows += [row | slope | {"answer": answer} for row in model_rows]
    return pd.DataFrame(rows)


def reduce_training(
    cohort: Cohort, splits: Sequence[Split], share: float, random_state: int = 0
) -> list[Split]:
    """Return folds with a share of their training people, stratified by class.

    A class keeps at least two people, where it has as many. The people of a smaller
    share are among those of a larger one.
    """
    if share == 1:
        return list(splits)
    people, labels = np.asarray(cohort.groups), np.asarray(cohort.y)
    reduced_splits = []
    for fold, (train_index, test_rows) in enumerate(splits):
        rng = np.random.default_rng([random_state, fold])
        train_rows = np.asarray(train_index)
        train_people, first_rows = np.unique(people[train_rows], return_index=True)
        # A person with scans of several classes counts in that of the first.
        class_of_person = labels[train_rows][first_rows]
        chosen_people: list[Any] = []
        for class_name in np.unique(labels[train_rows]):
            class_people = rng.permutation(train_people[class_of_person == class_name])
            n_chosen = max(MIN_TRAINING_PEOPLE, int(np.ceil(share * len(class_people))))
            chosen_people += list(class_people[:n_chosen])
        is_chosen = np.isin(people[train_rows], chosen_people)
        reduced_splits.append((train_rows[is_chosen], np.asarray(test_rows)))
    return reduced_splits


def _can_learn(steps: Deconfounder, cohort: Cohort, splits: Sequence[Split]) -> bool:
    """Return whether adjustments can be learned from the training of all folds."""
    try:
        steps.check(cohort.table, splits)
    except ParameterError:  # A site has too few people.
        return False
    return True


def _bootstrap_slope(
    evaluations: Mapping[float, Evaluation],
    model_name: str,
    n_draws: int,
    random_state: int,
) -> dict[str, float]:
    """Return the slope over the last doubling with its interval; NaN if undefined."""
    log_sizes, score_draws = [], []
    for share, evaluation in evaluations.items():
        is_model = evaluation.predictions["model"] == model_name
        fits = evaluation.fits[evaluation.fits["model"] == model_name]
        if share < FIRST_SHARE_OF_SLOPE or (fits["failed"] != "").any():
            continue
        rows = evaluation.predictions[is_model]
        person_codes = pd.factorize(rows["participant"], sort=True)[0]
        n_people = person_codes.max() + 1
        rng = np.random.default_rng(random_state)
        draws = rng.multinomial(n_people, np.full(n_people, 1 / n_people), n_draws)
        weights = np.vstack([np.ones(n_people), draws])[:, person_codes]
        counts = weighted_counts(evaluation.as_predictions(rows), weights)
        score_draws.append(balanced_accuracy(counts))
        log_sizes.append(np.log2(fits["n_train_people"].mean()))
    x = np.array(log_sizes)
    if len(x) < 2 or np.ptp(x) < 1e-9:
        return dict.fromkeys(("slope", "slope_low", "slope_high"), np.nan)
    x_centred = x - x.mean()
    slopes = x_centred @ np.array(score_draws) / (x_centred @ x_centred)
    low, high = np.quantile(slopes[1:], [0.025, 0.975])
    return {
        "slope": float(slopes[0]),
        "slope_low": float(min(low, slopes[0])),
        "slope_high": float(max(high, slopes[0])),
    }
