"""A model for new people: fitted on one cohort, asked about another."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap._arrays import pack
from brainlsap.data import Cohort, load_cohort
from brainlsap.data.spreadsheets import write_tsv
from brainlsap.evaluation import collapse_cohort
from brainlsap.evaluation.class_order import told_order
from brainlsap.evaluation.cohort_summary import summarise_cohort
from brainlsap.evaluation.covariate_steps import transform_with
from brainlsap.evaluation.fitted_steps import keep_step, restore_step
from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.model import LSAPClassifier, ModelOrigin, save_model
from brainlsap.study.confounds import confound_steps

READING = ("atlas", "feature", "subcortex", "measure", "frames", "reference")
"""Options of `load_cohort` that decide what the numbers mean; kept with a model."""


def fit_model(
    cohort: Cohort,
    out: str | Path,
    model: LSAPClassifier | None = None,
    *,
    reading: Mapping[str, Any] | None = None,
    collapse: str | Mapping | None = None,
    **confounds: Any,
) -> LSAPClassifier:
    """Fit a model on all scans of a cohort and store it.

    What takes out sites and covariates is fitted with it and stored in its file;
    :func:`predict_people` applies it to new people. The model alone, asked by its
    `predict`, takes arrays as they are.

    Parameters
    ----------
    cohort : Cohort
        The people to learn from.
    out : str or Path
        The model's file.
    model : LSAPClassifier, optional
        Unfitted; by default with its own settings.
    reading : mapping, optional
        The options of `load_cohort` by which the cohort was read.
    collapse : str or mapping, optional
        Classes to merge, where they are not merged already; see
        :func:`brainlsap.evaluation.collapse_cohort`.
    **confounds
        `harmonize`, `regress_out` and `unseen`, as for
        :func:`brainlsap.study.confounds.without_confounds`. New people need the same
        columns.

    Returns
    -------
    LSAPClassifier
        Fitted; `origin_` says on what.

    Raises
    ------
    BrainlsapError
        Where the cohort or a setting cannot be used; nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.model import load_model
    >>> cohort = make_cohort(20, atlas="desikan82")
    >>> short = LSAPClassifier("exact", n_epochs=2, n_starts=1)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     _ = fit_model(cohort, f"{place}/model", short)
    ...     told = predict_people(load_model(f"{place}/model"), cohort)
    >>> list(told.columns)[:4], len(told) == cohort.n_scans
    (['scan', 'participant', 'session', 'predicted'], True)
    """
    model = LSAPClassifier(random_state=0) if model is None else model
    facts: dict[str, Any] = {}
    if collapse is not None:
        cohort = collapse_cohort(cohort, collapse)
    if "collapse" in cohort.provenance:
        facts["collapse"] = cohort.provenance["collapse"]
    X, facts["steps"] = _fit_steps(cohort, confounds)
    model = told_order(model, cohort.classes)
    model.fit(X, cohort.y, groups=cohort.groups)
    kept: dict[str, Any] = {
        "atlas": cohort.atlas.name,
        "feature": list(cohort.feature_names),
        "subcortex": cohort.provenance.get("subcortex"),
    }
    kept |= {k: v for k, v in (reading or {}).items() if k in READING}
    facts |= {
        "scans": cohort.n_scans,
        "participants": len(set(cohort.groups)),
        "data_sha256": summarise_cohort(cohort).data_hash,
    }
    if cohort.shares_connectome:
        facts["shared_connectome"] = _matrix_hash(cohort.connectomes[0])
    model.origin_ = ModelOrigin(
        region_names=cohort.region_names,
        feature_names=cohort.feature_names,
        classes=cohort.classes,
        label_name=cohort.label_name,
        atlas_name=cohort.atlas.name,
        reading={name: value for name, value in kept.items() if value is not None},
        facts=facts,
    )
    save_model(model, out)
    return model


def read_people(model: LSAPClassifier, folder: str | Path, **options: Any) -> Cohort:
    """Read people to predict, in the way in which those of the fit were read.

    Parameters
    ----------
    model : LSAPClassifier
        From :func:`brainlsap.model.load_model`.
    folder : str or Path
        Of the cohort, or a cohort's file (.h5). No label is needed.
    **options
        Of :func:`brainlsap.data.load_cohort`; those of the fit where not given.

    Returns
    -------
    Cohort

    Raises
    ------
    ParameterError
        Where an option says another thing than the model was fitted on.
    CohortError
        Where the folder cannot be read.

    Examples
    --------
    See :func:`brainlsap.study.fit_model`.
    """
    wanted = dict(model.origin_.reading)
    if Path(folder).suffix == ".h5" and Path(folder).is_file():
        cohort = Cohort.load(folder)
        said = cohort.provenance | (cohort.provenance.get("asked") or {})
        _check_reading(wanted, said, f"Read {folder} again without it.")
        return cohort
    _check_reading(wanted, options, "Leave it out.")
    if "frames" in wanted:
        wanted["frames"] = _plain(wanted["frames"])
    return load_cohort(folder, **(wanted | {"label": None} | options))


def _check_reading(wanted: dict[str, Any], given: dict[str, Any], todo: str) -> None:
    """Refuse numbers that mean another thing than those of the fit."""
    for name in ("subcortex", "measure", "frames", "reference"):
        before, now = wanted.get(name), given.get(name)
        if None not in (before, now) and _plain(now) != _plain(before):
            raise ParameterError(
                f"{name} must be {_plain(before)!r}, as in the fit of the model; got "
                f"{_plain(now)!r}. {todo}"
            )


def _plain(said: Any) -> Any:
    return tuple(said) if isinstance(said, list) else said


def predict_people(model: LSAPClassifier, cohort: Cohort) -> pd.DataFrame:
    """Predict the class of every scan; regions and features are matched by name.

    Parameters
    ----------
    model : LSAPClassifier
        From :func:`brainlsap.model.load_model`.
    cohort : Cohort
        The same regions and features as in the fit, in any order.

    Returns
    -------
    DataFrame
        Columns scan, participant, session, predicted and `p_<class>` in order of
        stage; label too, where the cohort has labels of the model's classes.

    Raises
    ------
    RegionNameError
        Where regions are missing or unknown.
    ParameterError
        Where a feature or a covariate is missing, a site was not seen and the model
        refuses that, or the connectomes are of another kind.

    Examples
    --------
    See :func:`brainlsap.study.fit_model`.
    """
    X = pack(*_as_fitted(model.origin_, cohort))
    for step in map(restore_step, model.origin_.facts.get("steps", [])):
        X = transform_with(step, X, cohort.table)
    probability = model.predict_proba(X)
    names = [str(name) for name in model.classes_]
    classes = [name for name in model.origin_.classes if name in names] or names
    table = cohort.table[["scan", "participant", "session"]].copy()
    table["predicted"] = np.array(names, dtype=object)[probability.argmax(axis=1)]
    for name in classes:
        table[f"p_{name}"] = probability[:, names.index(name)]
    label = _merged_label(cohort.y, model.origin_.facts.get("collapse"))
    if set(label) & set(names):
        table["label"] = label
    return table


def write_predictions(table: pd.DataFrame, path: str | Path) -> Path:
    r"""Write predictions as TSV, whole or not at all; they name people.

    Parameters
    ----------
    table : DataFrame
        From :func:`predict_people`.
    path : str or Path
        The file; an existing one is replaced.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = write_predictions(pd.DataFrame({"scan": ["a"]}), f"{place}/p.tsv")
    ...     path.read_text()
    'scan\na\n'
    """
    return write_tsv(table, path)


def _fit_steps(cohort: Cohort, asked: Mapping[str, Any]) -> tuple[np.ndarray, list]:
    """Return the scans behind the steps asked for, and the fitted steps, kept."""
    X, kept = cohort.to_array(), []
    for _, step in confound_steps(cohort.table, **asked):
        step.fit(X, covariates=cohort.table)
        X = transform_with(step, X, cohort.table)
        kept.append(keep_step(step))
    return X, kept


def _merged_label(label: np.ndarray, merged: Mapping[str, Any] | None) -> np.ndarray:
    if merged is None:
        return label
    class_of = {stage: name for name, stages in merged.items() for stage in stages}
    return np.array([class_of.get(str(one), one) for one in label], dtype=object)


def _as_fitted(origin: ModelOrigin, cohort: Cohort) -> tuple[np.ndarray, np.ndarray]:
    """Return connectomes and features in the order of the fit."""
    rows = _places_of(origin.region_names, cohort)
    missing = sorted(set(origin.feature_names) - set(cohort.feature_names))
    if missing:
        raise ParameterError(
            f"the model needs the feature {missing[0]!r}, and the cohort has "
            f"{', '.join(cohort.feature_names)}. Read it with feature="
        )
    columns = [cohort.feature_names.index(name) for name in origin.feature_names]
    # in one order of memory too: sums are then the same to the last bit
    connectomes = np.ascontiguousarray(cohort.connectomes[:, rows][:, :, rows])
    _check_kind(origin, cohort, connectomes)
    return connectomes, np.ascontiguousarray(cohort.features[:, rows][:, :, columns])


def _places_of(names: Sequence[str], cohort: Cohort) -> np.ndarray:
    """Return where each region of the model stands in the cohort."""
    if len(names) != cohort.n_rois:
        unknown = sorted(set(cohort.region_names) ^ set(names))
        raise RegionNameError(
            f"the model was fitted on {len(names)} regions, and the cohort has "
            f"{cohort.n_rois} of {cohort.atlas.name}; they differ in "
            f"{', '.join(unknown[:3])}. Read the cohort with the atlas of the fit."
        )
    return cohort.atlas.match(names)


def _check_kind(origin: ModelOrigin, cohort: Cohort, connectomes: np.ndarray) -> None:
    """Raise where one connectome served everybody in the fit, and it is another one."""
    wanted = origin.facts.get("shared_connectome")
    if wanted is None:
        return
    alike = cohort.shares_connectome or cohort.n_scans == 1
    if not alike or _matrix_hash(connectomes[0]) != wanted:
        raise ParameterError(
            "the model was fitted with one connectome for everybody, and the cohort "
            "has another, or one for each scan. Give that file by connectome="
        )


def _matrix_hash(matrix: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(matrix).tobytes()).hexdigest()
