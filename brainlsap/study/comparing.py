"""Every model and control through the same folds, and the table that compares them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap.data import Cohort
from brainlsap.evaluation import Evaluation, cross_validate, rank_regions
from brainlsap.exceptions import ParameterError
from brainlsap.report import classification_table, write_report
from brainlsap.study.compared_models import (
    COMPARED,
    CONTROLS,
    Settings,
    find_names,
    full_work,
)
from brainlsap.study.models import MODEL_NAMES

NOT_RUN = "not run (install brainlsap[baselines])"


@dataclass(frozen=True, eq=False)
class Comparison:
    """What a comparison of models found.

    Parameters
    ----------
    evaluation : Evaluation
        Every model on the same folds; the first is the reference.
    table : DataFrame
        As from :func:`brainlsap.report.classification_table`.
    not_run : dict of str to str
        Models that were left out, and why.
    fast : bool
        Whether settings were fixed instead of chosen.
    n_jobs : int
        Processes.

    Examples
    --------
    See :func:`brainlsap.study.compare_models`.
    """

    evaluation: Evaluation
    table: pd.DataFrame
    not_run: dict[str, str]
    fast: bool
    n_jobs: int

    @property
    def settings(self) -> str:
        """Say how models were set, in one sentence."""
        folds = self.evaluation.settings["n_folds"]
        how = (
            "fixed (--fast): one start, LSAP's scales from 1, at most 200 epochs, "
            "60 of other networks; linear models choose C inside"
            if self.fast
            else "the default: scales' start chosen inside, four starts averaged; "
            "linear models choose C inside"
        )
        return f"{folds} folds by person; {how}."

    def times(self, elapsed: float) -> str:
        """Say how long it took, and the full default would take.

        Parameters
        ----------
        elapsed : float
            Seconds from start to end.

        Returns
        -------
        str
        """
        told = f"Took {elapsed / 60:.1f} min with {self.n_jobs} processes"
        if not self.fast:
            return f"{told}."
        full = self.full_seconds() / 60
        return (
            f"{told}; the full default would take about {full:.0f} min, estimated "
            "from the number of networks that it trains."
        )

    def seconds(self) -> dict[str, float]:
        """Return seconds of fitting and predicting of every model, over all folds."""
        return {
            name: sum(
                fold.details["seconds_fit"] + fold.details["seconds_predict"]
                for fold in result.folds
            )
            for name, result in self.evaluation.results.items()
        }

    def full_seconds(self) -> float:
        """Return how long the full default would take, from what this one took."""
        return (
            sum(
                seconds * (full_work(name) if self.fast else 1)
                for name, seconds in self.seconds().items()
                if name in COMPARED
            )
            / self.n_jobs
        )


def compare_models(
    cohort: Cohort,
    models: str | Sequence[str] = "all",
    *,
    n_folds: int = 5,
    random_state: int = 0,
    fast: bool = False,
    n_epochs: int | None = None,
    n_starts: int | None = None,
    reference: str | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    **further: Any,
) -> Comparison:
    """Run models and controls through the same folds, and compare them.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    models : str or sequence of str
        "all", "models", "controls", or names of
        :data:`brainlsap.study.COMPARED`, such as "LSAP-C" or "linear-svm". With the
        first three, models whose extra is not installed are left out and named.
    n_folds : int
        Stratified folds that never share a person.
    random_state : int
        Seed of folds and models.
    fast : bool
        Fix settings (one start, scales starting at 1, fewer epochs) instead of
        choosing them inside.
    n_epochs, n_starts : int, optional
        Of every network, in place of its own.
    reference : str, optional
        What the others are tested against; by default the first of the models.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show a bar on standard error.
    **further
        For :func:`brainlsap.evaluation.cross_validate`, such as `cache`.

    Returns
    -------
    Comparison

    Raises
    ------
    ParameterError
        For unknown names, or a model asked for by name whose extra is missing.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> cohort = make_cohort(40, atlas="desikan82")
    >>> found = compare_models(
    ...     cohort, ["logistic regression", "majority class"], n_folds=2
    ... )
    >>> found.table["model"].tolist()
    ['logistic regression', 'majority class']
    """
    names = find_names(models)
    not_run: dict[str, str] = {}
    settings = Settings(random_state, fast, n_epochs, n_starts)
    chosen = [name for name in names if name not in not_run]
    first = chosen[0] if reference is None else find_names(reference)[0]
    if first not in chosen:
        raise ParameterError(
            f"reference must be one of the models that are run "
            f"({', '.join(chosen)}), got {reference!r}."
        )
    order = [first, *(name for name in chosen if name != first)]
    evaluation = cross_validate(
        {name: COMPARED[name].make(settings) for name in order},
        cohort,
        n_folds,
        random_state,
        baselines=False,
        n_jobs=n_jobs,
        progress=progress,
        **further,
    )
    controls = [name for name in names if name in CONTROLS]
    evaluation.settings.update({"controls": controls, "not_run": not_run})
    table = classification_table(evaluation)
    return Comparison(evaluation, table, not_run, fast, n_jobs)


def write_comparison(
    comparison: Comparison,
    cohort: Cohort,
    out: str | Path,
    *,
    title: str | None = None,
) -> Path:
    """Write the report of a comparison.

    Parameters
    ----------
    comparison : Comparison
        From :func:`compare_models`.
    cohort : Cohort
        The scans that it was made on.
    out : str or Path
        Results folder: new, empty, or an earlier report, which is replaced.
    title : str, optional
        Heading of the report.

    Returns
    -------
    Path
        The report's page; the table lies beside it as CSV, Markdown and LaTeX
        (`tables/classification.*`), and what was chosen inside (`tables/chosen.*`).

    Raises
    ------
    ParameterError
        Where the folder holds what no report wrote.

    Examples
    --------
    See :func:`brainlsap.study.compare_models`.
    """
    evaluation = comparison.evaluation
    return write_report(
        evaluation,
        out,
        atlas=cohort.atlas,
        truth=cohort.truth,
        title=title,
        surface_maps=_scale_maps(evaluation),
    )


def _scale_maps(evaluation: Evaluation) -> dict[str, pd.Series]:
    maps = {}
    for name, result in evaluation.results.items():
        if name not in MODEL_NAMES.values() or result.scales() is None:
            continue
        ranking = rank_regions(result)
        shown = ranking["scale"].where(ranking["measured"])
        maps[name] = pd.Series(shown.to_numpy(), index=list(ranking["region"]))
    return maps
