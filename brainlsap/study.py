"""Models and folds together: what one command runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap._arrays import check_choice
from brainlsap.data import Cohort
from brainlsap.evaluation import (
    Evaluation,
    baseline_models,
    cross_validate,
    rank_regions,
)
from brainlsap.exceptions import ParameterError
from brainlsap.graph import KERNELS
from brainlsap.model import DiffusedLogisticRegression, LSAPClassifier
from brainlsap.report import check_results_folder, write_report

MODEL_NAMES = {
    "exact": "Exact",
    "chebyshev": "LSAP-C",
    "hermite": "LSAP-H",
    "laguerre": "LSAP-L",
}


def study_models(
    kernels: Sequence[str] = ("chebyshev",),
    *,
    preset: str = "default",
    random_state: int = 0,
    **settings: Any,
) -> dict[str, LSAPClassifier]:
    """Return LSAP models by the paper's names, unfitted.

    Parameters
    ----------
    kernels : sequence of {"exact", "chebyshev", "hermite", "laguerre"}
        One model for each.
    preset : {"default", "paper"}
        As for :class:`brainlsap.model.LSAPClassifier`.
    random_state : int
        Seed of every model.
    **settings
        Further settings of :class:`brainlsap.model.LSAPClassifier`.

    Returns
    -------
    dict of str to LSAPClassifier

    Raises
    ------
    ParameterError
        For an unknown kernel or setting that cannot be used.

    Examples
    --------
    >>> list(study_models(["exact", "chebyshev"]))
    ['Exact', 'LSAP-C']
    """
    for kernel in kernels:
        check_choice("kernel", kernel, KERNELS)
    models = {
        MODEL_NAMES[kernel]: LSAPClassifier(
            kernel, preset=preset, random_state=random_state, **settings
        )
        for kernel in kernels
    }
    for model in models.values():
        model.settings()  # raises for what cannot be used, before any work is done
        _check_device(model.device)
    return models


def _check_device(device: str) -> None:
    import torch

    try:
        torch.empty(1, device=device)
    except (AssertionError, RuntimeError) as error:  # torch raises both
        reason = str(error).splitlines()[0].rstrip(".")
        raise ParameterError(
            f"device {device!r} cannot be used here ({reason}); leave it at 'cpu'."
        ) from None


def run_study(
    cohort: Cohort,
    out: str | Path,
    kernels: Sequence[str] = ("chebyshev",),
    *,
    n_folds: int = 5,
    random_state: int = 0,
    preset: str = "default",
    n_jobs: int = 1,
    progress: bool = False,
    title: str | None = None,
    **settings: Any,
) -> Path:
    """Cross-validate, rank regions, draw and report: the whole way.

    The baselines (majority class, logistic regression, linear SVM, and logistic
    regression on features diffused at one tuned scale) run through the same folds.

    Parameters
    ----------
    cohort : Cohort
        From :func:`brainlsap.data.load_cohort` or `make_cohort`.
    out : str or Path
        Results folder: new, empty, or an earlier report, which is replaced.
    kernels : sequence of {"exact", "chebyshev", "hermite", "laguerre"}
        One LSAP model for each; the first is the one that is ranked.
    n_folds : int
        Stratified folds that never share a person.
    random_state : int
        Seed of folds and models.
    preset : {"default", "paper"}
        Settings of the models.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show a bar on standard error.
    title : str, optional
        Heading of the report.
    **settings
        Further settings of :class:`brainlsap.model.LSAPClassifier`.

    Returns
    -------
    Path
        The report's page.

    Raises
    ------
    BrainlsapError
        For input that cannot be used; nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.data import make_cohort
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> with tempfile.TemporaryDirectory() as place:
    ...     page = run_study(cohort, f"{place}/results", n_folds=2, n_epochs=4)
    >>> page.name
    'report.html'
    """
    check_results_folder(out)
    models = study_models(kernels, preset=preset, random_state=random_state, **settings)
    evaluation = cross_validate(
        models,
        cohort,
        n_folds,
        random_state,
        baselines=study_baselines(random_state),
        n_jobs=n_jobs,
        progress=progress,
    )
    return write_study(evaluation, cohort, out, title=title)


def study_baselines(random_state: int = 0) -> dict[str, Any]:
    """Return the baselines of every study, unfitted, by name.

    Parameters
    ----------
    random_state : int
        Seed of their inner folds.

    Returns
    -------
    dict of str to classifier

    Examples
    --------
    >>> list(study_baselines())[-1]
    'diffused logistic regression'
    """
    return {
        **baseline_models(random_state),
        "diffused logistic regression": DiffusedLogisticRegression(
            random_state=random_state
        ),
    }


def write_study(
    evaluation: Evaluation,
    cohort: Cohort,
    out: str | Path,
    *,
    title: str | None = None,
) -> Path:
    """Write the report of an evaluation, with each model's scales on the brain.

    Parameters
    ----------
    evaluation : Evaluation
        With at least one model that has scales.
    cohort : Cohort
        The scans that it was made on.
    out : str or Path
        Results folder.
    title : str, optional
        Heading of the report.

    Returns
    -------
    Path
        The report's page.

    Examples
    --------
    See :func:`brainlsap.study.run_study`.
    """
    maps = {}
    for name, result in evaluation.results.items():
        if result.scales() is None:
            continue
        ranking = rank_regions(result)
        shown = ranking["scale"].where(ranking["measured"])
        maps[name] = pd.Series(shown.to_numpy(), index=list(ranking["region"]))
    return write_report(
        evaluation,
        out,
        atlas=cohort.atlas,
        truth=cohort.truth,
        title=title,
        surface_maps=maps,
    )
