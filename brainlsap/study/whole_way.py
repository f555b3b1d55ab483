"""The whole way from a cohort to a report."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from brainlsap.data import Cohort
from brainlsap.evaluation import Evaluation, RankingEvidence, cross_validate
from brainlsap.model import tuned
from brainlsap.report import check_results_folder, write_report
from brainlsap.report.common_regions import mean_scales
from brainlsap.study.confounds import without_confounds
from brainlsap.study.evidence import gather_evidence, scan_flags
from brainlsap.study.holding import hold_results
from brainlsap.study.models import study_baselines, study_models


def run_study(
    cohort: Cohort,
    out: str | Path,
    kernels: Sequence[str] = ("chebyshev",),
    *,
    n_folds: int = 5,
    random_state: int = 0,
    preset: str = "default",
    tune: str | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    title: str | None = None,
    harmonize: str | None = None,
    regress_out: Sequence[str] = (),
    unseen: str = "keep",
    cache: str | Path | None = None,
    backend: str = "processes",
    scheduler: str | None = None,
    tell: Callable[[str], None] | None = None,
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
    tune : {"default", "paper"}, optional
        Space of :data:`brainlsap.model.SPACES` that settings are chosen from, by inner
        folds of each training fold.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show a bar on standard error.
    title : str, optional
        Heading of the report.
    harmonize : str, optional
        Column of the site or scanner whose effect on the features is taken out, by
        ComBat fitted on the training scans of each fold.
    regress_out : sequence of str
        Columns, such as age, sex and etiv, that are regressed out inside the folds.
    unseen : {"keep", "error"}
        Whether scans of sites that a training fold does not have are left as they
        are, with a warning, or refused.
    cache : str or Path, optional
        Folder of finished tasks, by default `private/tasks` in the results folder. A
        run that was stopped, in whatever way, continues from there.
    backend, scheduler, tell : optional
        As for :func:`brainlsap.evaluation.cross_validate`.
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
    out = check_results_folder(out)
    models = study_models(kernels, preset=preset, random_state=random_state, **settings)
    baselines = study_baselines(random_state, settings.get("preparation"))
    confounds: dict[str, Any] = {"harmonize": harmonize, "regress_out": regress_out}
    steps = confounds | {"unseen": unseen}
    asked: dict[str, Any] = dict(models)
    if tune is not None:
        asked = {
            name: tuned(one, tune, random_state=random_state)
            for name, one in models.items()
        }
    with hold_results(out, cache) as tasks:
        evaluation = cross_validate(
            without_confounds(asked, cohort.table, **steps),
            cohort,
            n_folds,
            random_state,
            baselines=without_confounds(baselines, cohort.table, **steps),
            n_jobs=n_jobs,
            progress=progress,
            cache=tasks,
            backend=backend,
            scheduler=scheduler,
            tell=tell,
        )
        evaluation.settings.update({k: v for k, v in confounds.items() if v})
        evidence = gather_evidence(models, cohort, evaluation)
        return write_study(evaluation, cohort, out, title=title, evidence=evidence)


def write_study(
    evaluation: Evaluation,
    cohort: Cohort,
    out: str | Path,
    *,
    title: str | None = None,
    evidence: RankingEvidence | None = None,
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
    evidence : RankingEvidence, optional
        What the ranking is held against; see :func:`brainlsap.study.gather_evidence`.

    Returns
    -------
    Path
        The report's page.

    Examples
    --------
    See :func:`brainlsap.study.run_study`.
    """
    return write_report(
        evaluation,
        out,
        atlas=cohort.atlas,
        truth=cohort.truth,
        title=title,
        surface_maps=mean_scales(evaluation),
        evidence=evidence,
        quality=scan_flags(cohort),
    )
