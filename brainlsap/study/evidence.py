"""Everything that a ranking of regions is held against, gathered for a report."""

from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.data import Cohort, quality_table
from brainlsap.evaluation import (
    Evaluation,
    ModelResult,
    RankingEvidence,
    rank_one_share,
    region_properties,
)
from brainlsap.evaluation.class_order import told_order
from brainlsap.exceptions import ParameterError
from brainlsap.graph import mean_connectome
from brainlsap.model import LSAPClassifier
from brainlsap.study.attributions import PERMUTATION, permutation_importance
from brainlsap.study.kernel_shape import mean_kernel
from brainlsap.study.ranking_nulls import (
    STARTS,
    permuted_scales,
    start_scales,
    untrained_scales,
)

N_UNTRAINED = 19
N_REACH = 3
"""Of how many regions of smallest scale the reach is kept."""


# sums in one order, whatever the machine: a last digit followed the threads
@threadpool_limits.wrap(limits=1)
def gather_evidence(
    models: dict[str, LSAPClassifier],
    cohort: Cohort,
    evaluation: Evaluation,
    *,
    n_permutations: int = 0,
    refits: bool | None = None,
    random_state: int = 0,
    n_jobs: int = 1,
    progress: bool = False,
) -> RankingEvidence:
    """Return what the first model's ranking is held against.

    What regions are apart from the label, and the shape of the kernel at the learned
    scales, cost seconds and are always there. The rest are refits.

    Parameters
    ----------
    models : dict of str to LSAPClassifier
        As they were evaluated; the first is ranked.
    cohort : Cohort
        The scans.
    evaluation : Evaluation
        Of these models.
    n_permutations : int
        Fits to permuted labels; 0 for no null.
    refits : bool, optional
        Whether the model is also fitted from other starts, untrained, and for the
        importance of regions; by default where there are permutations.
    random_state : int
        Seed.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show bars on standard error.

    Returns
    -------
    RankingEvidence

    Raises
    ------
    ParameterError
        Where no model is given.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> models = {"LSAP-C": LSAPClassifier(n_epochs=4, n_starts=1)}
    >>> evaluation = cross_validate(models, cohort, 2, baselines=False)
    >>> evidence = gather_evidence(models, cohort, evaluation)
    >>> list(evidence.rank_one), evidence.permuted is None
    (['LSAP-C'], True)
    """
    if not models:
        raise ParameterError("models must name at least one LSAPClassifier, got none.")
    # refits are not told the order of the classes by a cross-validation
    models = {one: told_order(model, cohort.classes) for one, model in models.items()}
    name, model = next(iter(models.items()))
    threshold = float(model.settings()["threshold"] or 0.0)
    kernels = _kernels(models, cohort, evaluation)
    n_matrices = 1 if cohort.shares_connectome else cohort.n_scans
    parts: dict[str, Any] = {
        "properties": region_properties(cohort, threshold),
        "rank_one": {one: rank_one_share(kernel) for one, kernel in kernels.items()},
        "connectome": mean_connectome(cohort.connectomes[:n_matrices]),
        "reach": _reach(evaluation.result(name), kernels.get(name)),
    }
    how: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
    if n_permutations:
        found = permuted_scales(model, cohort, n_permutations, random_state, **how)
        parts["permuted"] = np.vstack(found)
    if refits or (refits is None and n_permutations):
        parts |= _refits(model, cohort, evaluation, random_state, how)
    return RankingEvidence(name, evaluation.result(name).region_names, **parts)


def scan_flags(cohort: Cohort) -> pd.DataFrame:
    """Return what is unusual about every scan, as a report takes it.

    Parameters
    ----------
    cohort : Cohort
        The scans.

    Returns
    -------
    DataFrame
        Columns scan and flags (in words; empty where nothing is).

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> list(scan_flags(make_cohort(10, atlas="desikan82")))
    ['scan', 'flags']
    """
    return quality_table(cohort)["flags"].reset_index()


def _kernels(
    models: dict[str, LSAPClassifier], cohort: Cohort, evaluation: Evaluation
) -> dict[str, np.ndarray]:
    """Return the mean kernel of every model at the mean scales of its folds."""
    found = {name: evaluation.result(name).scales() for name in models}
    return {
        name: mean_kernel(models[name], cohort, scales.mean(axis=0))
        for name, scales in found.items()
        if scales is not None
    }


def _reach(result: ModelResult, kernel: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return how far the regions of smallest and of largest scale look."""
    scales = result.scales()
    if kernel is None or scales is None:
        return {}
    known = np.flatnonzero(result.measured)
    order = known[np.argsort(scales.mean(axis=0)[known], kind="stable")]
    chosen = dict.fromkeys([*order[:N_REACH].tolist(), *order[-1:].tolist()])
    return {result.region_names[place]: kernel[place] for place in chosen}


def _refits(
    model: LSAPClassifier,
    cohort: Cohort,
    evaluation: Evaluation,
    random_state: int,
    how: dict[str, Any],
) -> dict[str, Any]:
    highest = model.settings()["max_scale"]
    starts = [one for one in STARTS if highest is None or one <= highest]
    untrained = untrained_scales(model, cohort, N_UNTRAINED, random_state, **how)
    importance = permutation_importance(
        model, cohort, evaluation.splits, 1, random_state, **how
    )
    return {
        "starts": start_scales(model, cohort, evaluation, starts, **how),
        "untrained": np.vstack(untrained),
        "importance": importance.mean(axis=0),
        "importance_kind": PERMUTATION,
    }
