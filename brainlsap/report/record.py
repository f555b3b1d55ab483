"""What a run was: versions, settings, data and scores, as JSON takes them."""

import hashlib
import os
import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.evaluation import Evaluation, ModelResult
from brainlsap.evaluation.fitting import plain
from brainlsap.evaluation.task_keys import code_version

PACKAGES = (
    "brainlsap",
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "torch",
    "nibabel",
    "nilearn",
    "matplotlib",
)
TIMES = ("seconds_fit", "seconds_predict")


def made_with() -> dict[str, Any]:
    """Return what a run is made with, to be kept when its report is made anew.

    Returns
    -------
    dict
        Keys date (UTC), versions, code_sha256 (of the rooms that fit and predict)
        and environment.
    """
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": installed_versions(),
        "code_sha256": code_version(),
        "environment": {"threads_per_task": 1, "omp_num_threads": _openmp()},
    }


def run_record(
    evaluation: Evaluation,
    withhold: Callable[[str], str] = str,
    made: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what it takes to know a run again, without a person's name.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    withhold : function of str
        Takes names out of text, as :func:`brainlsap.report.folder.name_filter` does.
    made : mapping, optional
        From :func:`made_with`, when the models were fitted; by default now.

    Returns
    -------
    dict
        What the run was made with, and the keys inputs (hashes), cohort, settings and
        models, ready for JSON.
    """
    cohort = evaluation.cohort
    record = {
        **(made or made_with()),
        "inputs": {
            "data_sha256": cohort.data_hash,
            "table_sha256": _sha256(cohort.table.to_csv(index=False)),
            "splits_sha256": _sha256(
                repr([[rows.tolist() for rows in one] for one in evaluation.splits])
            ),
        },
        "cohort": {
            "scans": cohort.n_scans,
            "participants": cohort.n_participants,
            "classes": cohort.class_counts().to_dict("records"),
            "label": cohort.label_name,
            "atlas": cohort.atlas_name,
            "regions": len(cohort.region_names),
            "regions_measured": int(cohort.measured.sum()),
            "features": list(cohort.feature_names),
            "data_sha256": cohort.data_hash,
            "notes": list(cohort.notes),
        },
        "settings": evaluation.settings,
        "models": {
            name: _model_record(result) for name, result in evaluation.results.items()
        },
    }
    return _without_names(plain(record), withhold)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _openmp() -> str | None:
    return os.environ.get("OMP_NUM_THREADS")


def installed_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter, unimported.

    Returns
    -------
    dict of str to str

    Examples
    --------
    >>> sorted(installed_versions())[:3]
    ['brainlsap', 'matplotlib', 'nibabel']
    """
    versions = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def fit_table(result: ModelResult) -> pd.DataFrame:
    """Return what a model reported of its fit, one row per fold.

    Parameters
    ----------
    result : ModelResult
        One model over all folds.

    Returns
    -------
    DataFrame
        Columns fold, and every single value of the model's own `fit_report_`; seconds
        are in :func:`timing_table`, so that this is the same every time.
    """
    rows = []
    for fold in result.folds:
        report = fold.details.get("fit_report", {})
        single = {
            name.replace("_", " "): _short(value)
            for name, value in report.items()
            if isinstance(value, bool | int | float | str)
        }
        single.pop("seconds", None)
        rows.append({"fold": fold.fold + 1, **single})
    return pd.DataFrame(rows).fillna("n/a")


def timing_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return how long every fit took, which is another time each time.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    DataFrame
        Columns model, fold (from 1), seconds_fit and seconds_predict.
    """
    return pd.DataFrame(
        [
            {
                "model": name,
                "fold": fold.fold + 1,
                **{one: fold.details.get(one, np.nan) for one in TIMES},
            }
            for name, result in evaluation.results.items()
            for fold in result.folds
        ]
    )


def approximation_errors(result: ModelResult) -> dict[str, float]:
    """Return the largest error over folds of everything a model reports as error.

    Parameters
    ----------
    result : ModelResult
        One model over all folds.

    Returns
    -------
    dict of str to float
        By the name in the model's `fit_report_`; empty where it reports none.
    """
    found: dict[str, list[float]] = {}
    for fold in result.folds:
        for name, value in fold.details.get("fit_report", {}).items():
            if "error" in name and isinstance(value, int | float):
                found.setdefault(name, []).append(float(value))
    return {name: max(values) for name, values in found.items()}


def fit_warnings(
    evaluation: Evaluation, withhold: Callable[[str], str] = str
) -> dict[str, list[str]]:
    """Return what every model warned of while it was fitted, without repeats.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    withhold : function of str
        Takes names out of text.

    Returns
    -------
    dict of str to list of str
        Models that warned, and their messages.
    """
    told = {
        name: sorted(
            {
                withhold(text)
                for one in result.folds
                for text in one.details.get("warnings", ())
            }
        )
        for name, result in evaluation.results.items()
    }
    return {name: messages for name, messages in told.items() if messages}


def _model_record(result: ModelResult) -> dict[str, Any]:
    scores, summary = result.scores(), result.summary()
    return {
        "scores": {
            name: {"mean": row["mean"], "sd": row["sd"], "folds": list(scores[name])}
            for name, row in summary.iterrows()
        },
        "folds": [
            {"fold": one.fold + 1}
            | {key: value for key, value in one.details.items() if key not in TIMES}
            for one in result.folds
        ],
    }


def _without_names(value: Any, withhold: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _without_names(one, withhold) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_names(one, withhold) for one in value]
    return withhold(value) if isinstance(value, str) else value


def _short(value: Any) -> Any:
    """Return a float with four digits that matter; anything else as it is."""
    if isinstance(value, float) and np.isfinite(value):
        return f"{value:.4g}"
    return value
