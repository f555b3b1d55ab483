"""Refits that a ranking is held against: permuted labels, no training, other starts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from brainlsap._arrays import check_at_least
from brainlsap._processes import deaf_to_ctrl_c
from brainlsap.data import Cohort
from brainlsap.evaluation import Evaluation, cross_validate
from brainlsap.evaluation.permutation import permute_labels
from brainlsap.exceptions import ParameterError
from brainlsap.model import LSAPClassifier

STARTS = (0.3, 1.0, 2.0)
# One start for every refit: a start chosen by validation would differ between them.
REFIT_START = 1.0


class ScaleNull(NamedTuple):
    """Scales of one fit to the true labels, and of the fits that it is held against."""

    observed: np.ndarray
    null: np.ndarray


def permuted_scales(
    model: LSAPClassifier,
    cohort: Cohort,
    n_permutations: int = 99,
    random_state: int = 0,
    *,
    n_jobs: int = 1,
    progress: bool = False,
) -> ScaleNull:
    """Fit once to the true labels, and again to labels permuted between people.

    All fits are alike: on all scans, one network, one seed, one start of the scales
    (1 where the model would choose). Labels of a person move together.

    Parameters
    ----------
    model : LSAPClassifier
        Its settings are kept but for `n_starts` and an automatic `initial_scale`.
    cohort : Cohort
        The scans.
    n_permutations : int
        How many; the smallest p-value is 1 / (1 + n_permutations).
    random_state : int
        Seed of permutations and fits.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show a bar on standard error.

    Returns
    -------
    ScaleNull
        observed (n_rois,) and null (n_permutations, n_rois), for
        :func:`brainlsap.evaluation.null_p_values`.

    Raises
    ------
    ParameterError
        Where `n_permutations` is less than 1.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> cohort = make_cohort(20, atlas="desikan82")
    >>> permuted_scales(LSAPClassifier(n_epochs=4), cohort, 2).null.shape
    (2, 82)
    """
    check_at_least("n_permutations", n_permutations, 1)
    rng = np.random.default_rng(random_state)
    labels = [cohort.y] + [
        permute_labels(cohort.y, cohort.groups, rng) for _ in range(n_permutations)
    ]
    one = refit_model(model).set_params(random_state=random_state)
    scales = _fit_all([(one, label) for label in labels], cohort, n_jobs, progress)
    return ScaleNull(scales[0], scales[1:])


def untrained_scales(
    model: LSAPClassifier,
    cohort: Cohort,
    n_fits: int = 20,
    random_state: int = 0,
    *,
    n_jobs: int = 1,
    progress: bool = False,
) -> ScaleNull:
    """Fit once, and take single steps from untrained networks of other seeds.

    The first step of the scales is what graph, features and random weights ask for
    before anything was learned. A ranking that it already has was not learned.

    Parameters
    ----------
    model : LSAPClassifier
        As for :func:`permuted_scales`.
    cohort : Cohort
        The scans.
    n_fits : int
        How many untrained networks.
    random_state : int
        Seed.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show a bar on standard error.

    Returns
    -------
    ScaleNull
        observed (n_rois,) and null (n_fits, n_rois).

    Raises
    ------
    ParameterError
        Where `n_fits` is less than 1.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> cohort = make_cohort(20, atlas="desikan82")
    >>> untrained_scales(LSAPClassifier(n_epochs=4), cohort, 3).null.shape
    (3, 82)
    """
    check_at_least("n_fits", n_fits, 1)
    seeds = np.random.SeedSequence([random_state, 1]).generate_state(n_fits) >> 1
    trained = refit_model(model).set_params(random_state=random_state)
    fits = [(trained, cohort.y)]
    for seed in seeds.tolist():
        untrained = refit_model(model).set_params(random_state=seed, n_epochs=1)
        fits.append((untrained, cohort.y))
    scales = _fit_all(fits, cohort, n_jobs, progress)
    return ScaleNull(scales[0], scales[1:])


def start_scales(
    model: LSAPClassifier,
    cohort: Cohort,
    evaluation: Evaluation,
    starts: Sequence[float] = STARTS,
    *,
    n_jobs: int = 1,
    progress: bool = False,
) -> dict[float, np.ndarray]:
    """Fit on the same folds from several starts of the scales.

    Parameters
    ----------
    model : LSAPClassifier
        Its settings are kept but for `initial_scale` and `n_starts`.
    cohort : Cohort
        The scans.
    evaluation : Evaluation
        Whose folds are used.
    starts : sequence of float
        Where all scales start.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show a bar on standard error.

    Returns
    -------
    dict of float to array of shape (n_folds, n_rois)
        Learned scales by start.

    Raises
    ------
    ParameterError
        Where there are fewer than two starts.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> model = LSAPClassifier(n_epochs=4, n_starts=1)
    >>> evaluation = cross_validate(model, cohort, 2, baselines=False)
    >>> found = start_scales(model, cohort, evaluation, [0.3, 2.0])
    >>> found[0.3].shape
    (2, 82)
    """
    if len(set(starts)) < 2:
        raise ParameterError(
            f"starts must hold at least two different scales, got {list(starts)}."
        )
    models = {f"{start:g}": refit_model(model, start) for start in starts}
    again = cross_validate(
        models,
        cohort,
        splits=evaluation.splits,
        random_state=evaluation.settings["random_state"],
        people_may_be_shared=evaluation.people_shared,
        baselines=False,
        n_jobs=n_jobs,
        progress=progress,
    )
    found = {start: again.result(f"{start:g}").scales() for start in starts}
    return {start: scales for start, scales in found.items() if scales is not None}


def refit_model(model: LSAPClassifier, start: float | None = None) -> LSAPClassifier:
    """Return a clone that fits one network, from one start of the scales.

    Parameters
    ----------
    model : LSAPClassifier
        Left as it is.
    start : float, optional
        By default the model's, or 1 where it would choose.

    Returns
    -------
    LSAPClassifier

    Examples
    --------
    >>> refit_model(LSAPClassifier()).initial_scale
    1.0
    """
    from sklearn.base import clone

    if start is None:
        own = model.settings()["initial_scale"]
        start = REFIT_START if isinstance(own, str) else float(own)
    return clone(model).set_params(n_starts=1, initial_scale=float(start))


def _fit_all(
    fits: list[tuple[LSAPClassifier, np.ndarray]],
    cohort: Cohort,
    n_jobs: int,
    progress: bool,
) -> np.ndarray:
    """Return the scales (n_fits, n_rois) of models fitted on all scans."""
    from joblib import Parallel, delayed
    from tqdm import tqdm

    X, groups = cohort.to_array(), cohort.groups
    with deaf_to_ctrl_c(n_jobs):
        done = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_fit_scales)(model, X, label, groups) for model, label in fits
        )
    bar = tqdm(done, total=len(fits), desc="refits", disable=not progress)
    return np.stack(list(bar))


def _fit_scales(
    model: LSAPClassifier, X: np.ndarray, label: np.ndarray, groups: Any
) -> np.ndarray:
    import warnings

    with warnings.catch_warnings():
        # a limit that one of a hundred refits touches is no news to the reader
        warnings.simplefilter("ignore")
        return model.fit(X, label, groups=groups).scales_
