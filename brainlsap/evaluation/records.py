"""What a cross-validation leaves behind: frozen records that hold every prediction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.evaluation.cohort_record import CohortSummary
from brainlsap.evaluation.findings import Audit
from brainlsap.evaluation.metrics import fold_scores, summarise
from brainlsap.evaluation.scale_paths import mean_scale_path
from brainlsap.evaluation.splits import Split
from brainlsap.exceptions import ParameterError


@dataclass(frozen=True, eq=False)
class FoldResult:
    """One model, fitted on the training scans of one fold, and what it predicted.

    Parameters
    ----------
    fold : int
        Number of the fold, from 0.
    train, test : arrays of int
        Rows of the cohort.
    scans, participants, truth : arrays of str of length n_test
        Scan, person and true class of the test scans.
    probability : array of shape (n_test, n_classes)
        Columns in the order of `classes`.
    classes : tuple of str
        All classes, in order of stage.
    scales : array of shape (n_rois,) or None
        Learned heat scale of every region, for models that have scales.
    scales_start : array of shape (n_rois,) or None
        Where the scales started.
    scale_path : array of shape (21, n_rois) or None
        Scales at even shares of training, from start to end.
    details : dict
        Seed, seconds, settings, warnings, what the model reports of its fit; can be
        written as JSON.

    Examples
    --------
    See :func:`brainlsap.evaluation.cross_validate`.
    """

    fold: int
    train: np.ndarray
    test: np.ndarray
    scans: np.ndarray
    participants: np.ndarray
    truth: np.ndarray
    probability: np.ndarray
    classes: tuple[str, ...]
    scales: np.ndarray | None = None
    scales_start: np.ndarray | None = None
    scale_path: np.ndarray | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def predicted(self) -> np.ndarray:
        """Class of highest probability: object array of str, shape (n_test,)."""
        names = np.array(self.classes, dtype=object)
        return names[self.probability.argmax(axis=1)]

    def predictions(self) -> pd.DataFrame:
        """Return fold (from 1), row, scan, participant, truth and predicted."""
        return pd.DataFrame(
            {
                "fold": self.fold + 1,
                "row": self.test,
                "scan": self.scans,
                "participant": self.participants,
                "truth": self.truth,
                "predicted": self.predicted,
            }
        )

    def scores(self) -> dict[str, float]:
        """Return the scores of this fold; see :func:`fold_scores`."""
        return fold_scores(self.truth, self.probability, self.classes)


@dataclass(frozen=True, eq=False)
class ModelResult:
    """One model over all folds.

    Parameters
    ----------
    name : str
        What tables and figures call the model.
    folds : tuple of FoldResult
        In the order of the folds.
    classes : tuple of str
        All classes, in order of stage.
    region_names : tuple of str
        Name of every region.
    measured : array of bool of shape (n_rois,)
        Whether a region was measured in any scan.

    Examples
    --------
    See :func:`brainlsap.evaluation.cross_validate`.
    """

    name: str
    folds: tuple[FoldResult, ...]
    classes: tuple[str, ...]
    region_names: tuple[str, ...]
    measured: np.ndarray

    def scores(self) -> pd.DataFrame:
        """Return one row per fold: fold (from 1), n_test, then every score."""
        return self._scores.copy()  # kept: a report asks for them some fifty times

    @cached_property
    def _scores(self) -> pd.DataFrame:
        return pd.DataFrame(
            {"fold": one.fold + 1, "n_test": len(one.test), **one.scores()}
            for one in self.folds
        )

    def summary(self) -> pd.DataFrame:
        """Return mean and s.d. of every score; see :func:`summarise`."""
        return summarise(self.scores())

    def predictions(self) -> pd.DataFrame:
        """Return every out-of-fold prediction, one row per test scan.

        Returns
        -------
        DataFrame
            Fold (from 1), row (of the cohort), scan, participant, truth, predicted,
            and the probability of every class as `p_<class>`.
        """
        columns = [f"p_{name}" for name in self.classes]
        parts = [
            one.predictions().join(pd.DataFrame(one.probability, columns=columns))
            for one in self.folds
        ]
        return pd.concat(parts, ignore_index=True)

    def scales(self) -> np.ndarray | None:
        """Return learned scales (n_folds, n_rois), or None for models without."""
        return _stacked([fold.scales for fold in self.folds])

    def scales_start(self) -> np.ndarray | None:
        """Return where the scales started (n_folds, n_rois), or None if not told."""
        return _stacked([fold.scales_start for fold in self.folds])

    def scale_path(self) -> np.ndarray | None:
        """Return scales during training (21, n_rois), mean over folds, or None."""
        return mean_scale_path([one.scale_path for one in self.folds])


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Models compared on the very same folds of one cohort.

    Parameters
    ----------
    results : mapping of str to ModelResult
        By name; first the models that were asked for, then the baselines.
    splits : tuple of (train, test)
        Rows of the cohort in every fold.
    settings : dict
        Number of folds, seed, names of the baselines; can be written as JSON.
    cohort : CohortSummary
        What was evaluated.
    audit : Audit, optional
        What the leakage audit found before anything was fitted.

    Examples
    --------
    See :func:`brainlsap.evaluation.cross_validate`.
    """

    results: Mapping[str, ModelResult]
    splits: tuple[Split, ...]
    settings: dict[str, Any]
    cohort: CohortSummary
    audit: Audit | None = None

    @property
    def people_shared(self) -> bool:
        """Whether some person is on both sides of a fold: not a score by person."""
        return bool(self.settings.get("people_shared", False))

    @property
    def main(self) -> ModelResult:
        """The first model that was asked for."""
        return next(iter(self.results.values()))

    def baselines(self) -> tuple[str, ...]:
        """Return the names of the baselines, in order."""
        return tuple(self.settings.get("baselines", ()))

    def best_baseline(self, score: str = "balanced_accuracy") -> ModelResult | None:
        """Return the baseline of highest mean score, or None without baselines."""
        found = [self.result(name) for name in self.baselines()]
        return max(found, key=lambda one: one.scores()[score].mean(), default=None)

    def result(self, name: str | None = None) -> ModelResult:
        """Return one model by name; by default the first.

        Parameters
        ----------
        name : str, optional
            One of `results`.

        Returns
        -------
        ModelResult

        Raises
        ------
        ParameterError
            Where there is no such model; the message lists them.
        """
        if name is None:
            return self.main
        if name not in self.results:
            raise ParameterError(
                f"model must be one of {', '.join(map(repr, self.results))}; "
                f"got {name!r}."
            )
        return self.results[name]

    def scores(self) -> pd.DataFrame:
        """Return one row per model and fold: model, fold, n_test, every score."""
        parts = [
            result.scores().assign(model=name) for name, result in self.results.items()
        ]
        joined = pd.concat(parts, ignore_index=True)
        return joined[["model", *[name for name in joined if name != "model"]]]


def _stacked(each: list[np.ndarray | None]) -> np.ndarray | None:
    found = [one for one in each if one is not None]
    return np.stack(found) if len(found) == len(each) else None
