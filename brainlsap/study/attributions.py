"""A second view of which regions matter, apart from the scales."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from brainlsap._arrays import check_at_least
from brainlsap._processes import deaf_to_ctrl_c
from brainlsap.data import Cohort
from brainlsap.evaluation.fitting import class_probabilities, fit_parameters
from brainlsap.evaluation.splits import Split

PERMUTATION = "permutation importance"


def permutation_importance(
    model: Any,
    cohort: Cohort,
    splits: Sequence[Split],
    n_repeats: int = 2,
    random_state: int = 0,
    *,
    n_jobs: int = 1,
    progress: bool = False,
) -> np.ndarray:
    """Return how much worse test scans are told apart without a region's features.

    In every fold a model is fitted on the training scans; then the features of one
    region at a time are exchanged between test scans, connectomes left as they are.
    Regions whose features say the same stand in for one another, so a region that
    matters may have a small importance; none of this is a test.

    Parameters
    ----------
    model : classifier
        Any over the packed array; it is cloned.
    cohort : Cohort
        The scans.
    splits : sequence of (train, test)
        Folds that share nobody.
    n_repeats : int
        Exchanges of every region, averaged.
    random_state : int
        Seed of exchanges, and of models without a seed of their own.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show a bar on standard error.

    Returns
    -------
    array of shape (n_folds, n_rois)
        Rise of the mean log loss in nats; NaN where a region was never measured.

    Raises
    ------
    ParameterError
        Where `n_repeats` is less than 1.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import make_splits
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> splits = make_splits(cohort.y, cohort.groups, 2)
    >>> found = permutation_importance(DummyClassifier(), cohort, splits, 1)
    >>> found.shape, float(abs(found).max())
    ((2, 82), 0.0)
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    check_at_least("n_repeats", n_repeats, 1)
    X, y, groups = cohort.to_array(), cohort.y, cohort.groups
    seeds = np.random.SeedSequence(random_state).generate_state(len(splits)) >> 1
    with deaf_to_ctrl_c(n_jobs):
        done = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_fold_importance)(model, X, y, groups, split, n_repeats, int(seed))
            for split, seed in zip(splits, seeds, strict=True)
        )
    bar = tqdm(done, total=len(splits), desc="importance", disable=not progress)
    found = np.stack(list(bar))
    found[:, ~cohort.measured.any(axis=(0, 2))] = np.nan
    return found


def _fold_importance(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray,
    split: Split,
    n_repeats: int,
    seed: int,
) -> np.ndarray:
    import warnings

    from sklearn.base import clone

    train, test = split
    rng = np.random.default_rng(seed)
    fitted = clone(model)
    if "random_state" in fitted.get_params() and fitted.random_state is None:
        fitted.set_params(random_state=seed)
    n_rois = X.shape[1]
    shown, truth = X[test].copy(), y[test]
    classes = tuple(sorted(set(y)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the evaluation has told them already
        fitted.fit(X[train], y[train], **fit_parameters(fitted, groups[train]))
        whole = _log_loss(fitted, shown, truth, classes)
        rise = np.zeros(n_rois)
        for region in range(n_rois):
            own = shown[:, region, n_rois:].copy()
            for _ in range(n_repeats):
                shown[:, region, n_rois:] = own[rng.permutation(len(own))]
                loss = _log_loss(fitted, shown, truth, classes)
                rise[region] += (loss - whole) / n_repeats
            shown[:, region, n_rois:] = own
    return rise


def _log_loss(
    model: Any, X: np.ndarray, truth: np.ndarray, classes: tuple[str, ...]
) -> float:
    probability, _ = class_probabilities(model, X, classes)
    column = [classes.index(name) for name in truth]
    given = probability[np.arange(len(truth)), column]
    return float(-np.log(np.clip(given, 1e-6, 1)).mean())
