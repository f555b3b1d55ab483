"""From a cohort to a ranking of regions with everything that it is held against."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brainlsap.data import Cohort
from brainlsap.evaluation import cross_validate
from brainlsap.report import check_results_folder
from brainlsap.study.evidence import gather_evidence
from brainlsap.study.holding import hold_results
from brainlsap.study.models import study_baselines, study_models
from brainlsap.study.whole_way import write_study


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

    What :func:`brainlsap.study.run_study` does (its finished folds are taken over), and
    then: fits to permuted labels,
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
    out = check_results_folder(out)
    models = study_models(kernels, preset=preset, random_state=random_state, **settings)
    how: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
    with hold_results(out) as tasks:
        evaluation = cross_validate(
            models,
            cohort,
            n_folds,
            random_state,
            baselines=study_baselines(random_state, settings.get("preparation")),
            cache=tasks,
            **how,
        )
        evidence = gather_evidence(
            models,
            cohort,
            evaluation,
            n_permutations=n_permutations,
            random_state=random_state,
            **how,
        )
        return write_study(evaluation, cohort, out, title=title, evidence=evidence)
