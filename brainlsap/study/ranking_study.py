"""From a cohort to a ranking of regions with everything that it is held against."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap.data import Cohort, quality_table
from brainlsap.evaluation import cross_validate
from brainlsap.report import check_results_folder, write_report
from brainlsap.study.evidence import gather_evidence
from brainlsap.study.models import study_baselines, study_models


def rank_cohort(
    cohort: Cohort,
    out: str | Path,
    kernels: Sequence[str] = ("chebyshev",),
    *,
    n_permutations: int = 99,
    n_folds: int = 5,
    random_state: int = 0,
    preset: str = "default",
    n_jobs: int = 1,
    progress: bool = False,
    title: str | None = None,
    **settings: Any,
) -> Path:
    """Cross-validate, rank regions, and test the ranking by refits.

    What :func:`brainlsap.study.run_study` does, and then: fits to permuted labels,
    untrained networks, other starts of the scales, and the importance of regions. A
    ranking that is not better than its null is said to be so in the report's first
    line.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    out : str or Path
        Results folder: new, empty, or an earlier report, which is replaced.
    kernels : sequence of {"exact", "chebyshev", "hermite", "laguerre"}
        One LSAP model for each; the first is the one that is ranked and refitted.
    n_permutations : int
        Fits to permuted labels; the smallest p-value is 1 / (1 + n_permutations).
        With 0 there is no null, and no refit of any kind.
    n_folds : int
        Stratified folds that never share a person.
    random_state : int
        Seed of folds, models and permutations.
    preset : {"default", "paper"}
        Settings of the models.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show bars on standard error.
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
    ...     page = rank_cohort(
    ...         cohort, f"{place}/results", n_permutations=0, n_folds=2, n_epochs=4
    ...     )
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
    evidence = gather_evidence(
        models,
        cohort,
        evaluation,
        n_permutations=n_permutations,
        random_state=random_state,
        n_jobs=n_jobs,
        progress=progress,
    )
    return write_report(
        evaluation,
        out,
        atlas=cohort.atlas,
        truth=cohort.truth,
        title=title,
        evidence=evidence,
        quality=scan_flags(cohort),
    )


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
