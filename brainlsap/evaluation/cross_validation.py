"""Cross-validation of models on folds that never share a person, and its record."""

import hashlib
import json
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from inspect import getsource, signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.arrays import pack
from brainlsap.data import Cohort
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.leakage import audit
from brainlsap.evaluation.metrics import SCORES, score_predictions
from brainlsap.evaluation.splits import Split, check_splits, count_repeats, make_splits
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.files import fill_folder, replace_when_whole

__all__ = ["CohortSummary", "Evaluation", "cross_validate"]

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the training at which scales are kept."""

# pandas' kinds of column, by the words that a saved evaluation keeps.
KINDS = {"b": "yes or no", "i": "whole", "u": "whole", "f": "number"}
MISSING = "n/a"
# Warnings are caught for a whole process: fits in threads of one take turns.
_ALONE = threading.Lock()


@dataclass(frozen=True, eq=False)
class CohortSummary:
    """What an evaluation keeps of a cohort: everything but the arrays.

    Parameters
    ----------
    table : DataFrame
        One row per scan: scan, participant, session, label, then covariates.
    classes : tuple of str
        The labels.
    classes_ordered : bool
        Whether their order is one of stages.
    label_name, atlas_name : str
        What was predicted; which regions.
    region_names : tuple of str
        Of length n_rois.
    measured : bool array of shape (n_rois,)
        Whether any scan has any feature of a region.
    feature_names, notes : tuple of str
        As of the cohort.
    provenance : dict
        As of the cohort.
    truth : DataFrame or None
        Planted regions of a simulated cohort.
    data_hash : str
        SHA-256 of arrays and labels.
    """

    table: pd.DataFrame
    classes: tuple[str, ...]
    classes_ordered: bool
    label_name: str
    atlas_name: str
    region_names: tuple[str, ...]
    measured: np.ndarray
    feature_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    truth: pd.DataFrame | None = None
    data_hash: str = ""

    @classmethod
    def of(cls, cohort: Cohort) -> "CohortSummary":
        """Summarise a cohort."""
        digest = hashlib.sha256()
        one = cohort.shares_connectome
        for array in (
            cohort.connectomes[:1] if one else cohort.connectomes,
            cohort.features,
        ):
            digest.update(repr(array.shape).encode())
            for scan in array:
                digest.update(np.ascontiguousarray(scan).data)
        digest.update("\x00".join(map(str, cohort.y)).encode())
        return cls(
            table=cohort.table.copy(),
            classes=tuple(cohort.classes),
            classes_ordered=cohort.classes_ordered,
            label_name=cohort.label_name,
            atlas_name=cohort.atlas.name,
            region_names=tuple(cohort.region_names),
            measured=cohort.measured.any(axis=(0, 2)),
            feature_names=tuple(cohort.feature_names),
            notes=tuple(cohort.notes),
            provenance=dict(cohort.provenance),
            truth=cohort.truth,
            data_hash=digest.hexdigest(),
        )

    @property
    def n_scans(self) -> int:
        """Number of scans."""
        return len(self.table)

    @property
    def n_participants(self) -> int:
        """Number of people."""
        return int(self.table["participant"].nunique())

    def class_counts(self) -> pd.DataFrame:
        """Return class, participants and scans, one row per class."""
        by_label = self.table.groupby("label")
        counts = {
            "participants": by_label["participant"].nunique(),
            "scans": by_label.size(),
        }
        columns = {
            name: [int(each.get(one, 0)) for one in self.classes]
            for name, each in counts.items()
        }
        return pd.DataFrame({"class": list(self.classes), **columns})


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Models compared on the very same folds of one cohort.

    Parameters
    ----------
    predictions : DataFrame
        Every out-of-fold prediction: model, repeat, fold (both from 1), scan,
        participant, truth, predicted; then `p_` and the name of each class, NaN for
        models that give no probabilities, and `d_` with the decision values of those
        that give these. A fit that failed has no rows.
    scales : DataFrame
        model, repeat, fold, start ("mean", "1", "2" ...), share (of the training: 1
        is the end; 0, 0.25, 0.5 and 0.75 for "mean" only), region, scale.
    fits : DataFrame
        model, role ("model", "baseline", "control"), repeat, fold, n_train, n_test,
        seconds_fit, seconds_predict, seed, epochs, failed (why, "" where it did not),
        settings, warnings and report (JSON).
    cohort : CohortSummary
        Whom it is about.
    settings : dict
        Everything that changes a number, as JSON takes it.
    audit, ranking, comparison : DataFrame, optional
        Of :func:`audit`, :func:`rank_regions` and :func:`compare_models`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.simulation import make_cohort
    >>> cohort = make_cohort(60, atlas="desikan82", random_state=0)
    >>> evaluation = cross_validate(
    ...     {"prior": DummyClassifier()}, cohort, cv=3, baselines=False
    ... )
    >>> evaluation.summary().set_index("score")["mean"].round(2)["balanced_accuracy"]
    np.float64(0.2)
    """

    predictions: pd.DataFrame
    scales: pd.DataFrame
    fits: pd.DataFrame
    cohort: CohortSummary
    settings: dict[str, Any]
    audit: pd.DataFrame | None = None
    ranking: pd.DataFrame | None = None
    comparison: pd.DataFrame | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Names of all models, baselines and controls, in order."""
        return tuple(self.fits["model"].unique())

    @property
    def baselines(self) -> tuple[str, ...]:
        """Names of the baselines, in order."""
        return tuple(self.fits.loc[self.fits["role"] == "baseline", "model"].unique())

    def scores(self) -> pd.DataFrame:
        """Return one row per model and fold: model, repeat, fold, n_test, each score.

        A fit that failed has NaN for every score.
        """
        return self._scores.copy()

    @cached_property
    def _scores(self) -> pd.DataFrame:
        keys, classes = ["model", "repeat", "fold"], self.cohort.classes
        of_fold = dict(list(self.predictions.groupby(keys, sort=False)))
        rows = []
        for key in self.fits[[*keys, "n_test"]].itertuples(index=False):
            scores = dict.fromkeys(SCORES, np.nan)
            if tuple(key[:3]) in of_fold:
                rows_of = of_fold[tuple(key[:3])]
                probability, decision = (
                    rows_of[[f"{kind}_{name}" for name in classes]].to_numpy()
                    for kind in "pd"
                )
                scores = score_predictions(
                    rows_of["truth"],
                    rows_of["predicted"],
                    classes,
                    probability=None if np.isnan(probability).any() else probability,
                    decision=None if np.isnan(decision).any() else decision,
                    ordered=self.cohort.classes_ordered,
                )
            rows.append({**key._asdict(), **scores})
        return pd.DataFrame(rows)

    def summary(self) -> pd.DataFrame:
        """Return model, role, score, mean and s.d. over folds, n_folds, n_failed.

        Where a fit failed, the mean is NaN: that of the other folds would be one of
        chosen folds.
        """
        rows = []
        roles = self.fits.drop_duplicates("model").set_index("model")["role"]
        for model, found in self._scores.groupby("model", sort=False):
            fits = self.fits[self.fits["model"] == model]
            n_failed = int((fits["failed"] != "").sum())
            for score in SCORES:
                values = found[score].to_numpy()
                if n_failed or np.isnan(values).all():
                    mean = sd = np.nan
                else:
                    mean = np.nanmean(values)
                    n_known = (~np.isnan(values)).sum()
                    sd = np.nanstd(values, ddof=1) if n_known > 1 else np.nan
                rows.append(
                    {
                        "model": model,
                        "role": roles[model],
                        "score": score,
                        "mean": mean,
                        "sd": sd,
                        "n_folds": len(found),
                        "n_failed": n_failed,
                    }
                )
        return pd.DataFrame(rows)

    def save(self, folder: str | Path) -> Path:
        """Write tables (TSV) and the rest (`evaluation.json`), whole or not at all.

        Parameters
        ----------
        folder : str or Path
            New, empty, or holding an evaluation, which is replaced. Names people.

        Returns
        -------
        Path
        """
        folder = Path(folder)
        with fill_folder(
            folder, replace=(folder / "evaluation.json").is_file()
        ) as partial:
            tables = {
                name: getattr(self, name)
                for name in (
                    "predictions",
                    "scales",
                    "fits",
                    "audit",
                    "ranking",
                    "comparison",
                )
            } | {"cohort": self.cohort.table, "truth": self.cohort.truth}
            kinds = {
                name: _write_table(table, partial / f"{name}.tsv")
                for name, table in tables.items()
                if table is not None
            }
            cohort = {
                name: plain(value)
                for name, value in vars(self.cohort).items()
                if name not in ("table", "truth")
            }
            kept = {
                "columns": kinds,
                "cohort": cohort,
                "settings": plain(self.settings),
            }
            (partial / "evaluation.json").write_text(
                json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> "Evaluation":
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        folder : str or Path
            Of the evaluation.

        Returns
        -------
        Evaluation

        Raises
        ------
        FileFormatError
            Where a file is missing or holds something else.
        """
        folder = Path(folder)
        try:
            kept = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
            tables = {
                name: _read_table(folder / f"{name}.tsv", kinds)
                for name, kinds in kept["columns"].items()
            }
            cohort: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in kept["cohort"].items()
            }
            cohort["measured"] = np.array(cohort["measured"], dtype=bool)
            summary = CohortSummary(
                table=tables.pop("cohort"), truth=tables.pop("truth", None), **cohort
            )
            return cls(cohort=summary, settings=kept["settings"], **tables)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise FileFormatError(
                f"{folder}: no evaluation can be read there ({error})."
            ) from error


def cross_validate(
    model: Any,
    cohort: Cohort,
    cv: int | Any = 5,
    *,
    random_state: int = 0,
    baselines: bool | Mapping[str, Any] = True,
    n_repeats: int = 1,
    harmonize: str | None = None,
    regress_out: Sequence[str] = (),
    handle_unknown: str = "keep",
    people_may_be_shared: bool = False,
    n_jobs: int | None = None,
    verbose: bool = False,
    memory: str | Path | None = None,
) -> Evaluation:
    """Fit and test models on stratified folds that never share a person.

    Every model is cloned for every fold and sees the training scans only. Harmonisation
    and regression are learned from the training scans of the fold. The person of each
    scan is handed to models whose `fit` takes `groups`. A `random_state` that is None
    gets a seed drawn from `random_state` and the fold. :func:`audit` looks at cohort
    and folds before anything is fitted.

    Parameters
    ----------
    model : classifier, or mapping of str to classifier or (classifier, role)
        Scikit-learn classifiers over the packed array of :meth:`Cohort.to_array`, or
        what :func:`make_models` returns. The predicted class is the one of highest
        probability, or of highest decision value.
    cohort : Cohort
        The scans.
    cv : int, splitter or iterable of (train, test)
        Number of folds; a splitter of scikit-learn, asked for `split(X, y, groups)`;
        or row indices, as :func:`make_splits` and :func:`read_splits` return them.
    random_state : int
        Seed of the folds and of models without a seed of their own.
    baselines : bool or mapping
        Whether the usual baselines run through the same folds, or which do.
    n_repeats : int
        How often folds are drawn anew, where `cv` is a number.
    harmonize : str, optional
        Column of the cohort's table, such as a site, whose effect ComBat takes out.
    regress_out : sequence of str
        Columns whose linear effect is taken out.
    handle_unknown : {"keep", "error"}
        What to do with test scans of sites that were not trained on.
    people_may_be_shared : bool
        Whether given folds may have one person on both sides; the settings tell it.
    n_jobs : int, optional
        Processes; by default those of the user's `joblib.parallel_config`, which may
        name any backend. The result does not depend on it.
    verbose : bool
        Whether to show a bar, with the time left, on standard error.
    memory : str or Path, optional
        Folder in which every finished fit is kept, by a hash of code, data and
        settings; those found there are not computed again. It names people.

    Returns
    -------
    Evaluation

    Raises
    ------
    SplitError
        Where people cannot be divided as asked, or given folds share a person.
    ParameterError
        For no model, a name used twice, or steps that cannot work with the cohort.
    """
    models = _named_models(model, baselines, random_state, cohort)
    splits, n_repeats, described = _resolve_cv(cv, cohort, n_repeats, random_state)
    # Scans that count as people of their own share nobody; rows are still checked.
    people = np.arange(cohort.n_scans) if people_may_be_shared else cohort.groups
    splits = check_splits(splits, people)
    steps = Deconfounder(harmonize, tuple(regress_out), handle_unknown)
    steps.check(cohort.table, splits)
    findings = audit(cohort, splits)
    summary = CohortSummary.of(cohort)
    tasks = [
        (name, fold, role, one, split, _fold_seed(random_state, fold))
        for name, (one, role) in models.items()
        for fold, split in enumerate(splits)
    ]
    results = _run(tasks, cohort, steps, summary, n_jobs, verbose, memory)
    per_repeat = max(1, len(splits) // n_repeats)
    tables: dict[str, list] = {"predictions": [], "scales": [], "fits": []}
    for (name, fold, role, *_), result in zip(tasks, results, strict=True):
        key = {
            "model": name,
            "repeat": fold // per_repeat + 1,
            "fold": fold % per_repeat + 1,
        }
        _append_tables(tables, key, role, result, splits[fold], summary)
    settings = {
        "cv": described,
        "n_folds": per_repeat,
        "n_repeats": n_repeats,
        "random_state": random_state,
        "people_shared": _shares_people(splits, cohort.groups),
        "steps": steps.describe(cohort.table),
        "version": _version("brainlsap"),
    }
    return Evaluation(
        predictions=_concat(tables["predictions"]),
        scales=_concat(tables["scales"])
        if tables["scales"]
        else pd.DataFrame(
            columns=["model", "repeat", "fold", "start", "share", "region", "scale"]
        ),
        fits=pd.DataFrame(tables["fits"]),
        cohort=summary,
        settings=settings,
        audit=findings,
    )


def _named_models(
    model: Any, baselines: bool | Mapping[str, Any], seed: int, cohort: Cohort
) -> dict[str, tuple[Any, str]]:
    """Return every model by name, with its role; ordinal heads know the order."""
    from sklearn.base import clone

    from brainlsap.evaluation.baselines import make_models

    if baselines is True:
        baselines = make_models("baselines", random_state=seed)
    given = model if isinstance(model, Mapping) else {type(model).__name__: model}
    both = [(name, one, "model") for name, one in given.items()]
    both += [(name, one, "baseline") for name, one in (baselines or {}).items()]
    found: dict[str, tuple[Any, str]] = {}
    for name, one, usual in both:
        estimator, role = one if isinstance(one, tuple) else (one, usual)
        if name in found:
            raise ParameterError(
                f"a model must not have the name of a baseline, got {name!r}. Rename "
                "it, or pass baselines=False."
            )
        if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
            raise ParameterError(
                f"model {name!r} must be a scikit-learn classifier with fit and "
                f"get_params, got {type(estimator).__name__}."
            )
        parameters = estimator.get_params(deep=True)
        orders = [
            key.removesuffix("head") + "classes"
            for key, value in parameters.items()
            if key.endswith("head") and isinstance(value, str) and value == "ordinal"
        ]
        unset = [key for key in orders if key in parameters and parameters[key] is None]
        if unset and not cohort.classes_ordered:
            raise ParameterError(
                f"the ordinal head of {name} needs the order of the classes, which is "
                f"not known for {', '.join(cohort.classes)}; give it, as classes= "
                f"(--classes {','.join(cohort.classes)} in the order of stages)."
            )
        fresh = clone(estimator)
        fresh.set_params(**dict.fromkeys(unset, cohort.classes))
        found[name] = (fresh, role)
    if not given:
        raise ParameterError("model must name at least one classifier, got none.")
    return found


def _resolve_cv(
    cv: Any, cohort: Cohort, n_repeats: int, random_state: int
) -> tuple[Sequence[Split], int, str]:
    """Return folds, the number of repeats, and the words for how they were made."""
    if isinstance(cv, int | np.integer):
        splits = make_splits(cohort.y, cohort.groups, int(cv), n_repeats, random_state)
        return splits, n_repeats, "stratified folds of whole people"
    if n_repeats != 1:
        raise ParameterError(
            "n_repeats goes with a number of folds; give cv all folds of all repeats."
        )
    if hasattr(cv, "split"):
        rows = np.zeros((cohort.n_scans, 1))
        splits = list(cv.split(rows, cohort.y, cohort.groups))
        described = repr(cv)
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        splits, described = list(cv), "given"
    else:
        raise ParameterError(
            "cv must be a number of folds, a splitter of scikit-learn, or pairs of "
            f"training and test rows, got {cv!r}."
        )
    repeats = count_repeats(splits) if splits else 1
    return splits, repeats if len(splits) % repeats == 0 else 1, described


def _fold_seed(random_state: int, fold: int) -> int:
    # Seeds of neighbouring folds and of neighbouring runs must not coincide.
    return int(np.random.SeedSequence([random_state, fold]).generate_state(1)[0] >> 1)


def _shares_people(splits: Sequence[Split], groups: np.ndarray) -> bool:
    return any(set(groups[train]) & set(groups[test]) for train, test in splits)


def _run(
    tasks: list[tuple],
    cohort: Cohort,
    steps: Deconfounder,
    summary: CohortSummary,
    n_jobs: int | None,
    verbose: bool,
    memory: str | Path | None,
) -> list[dict[str, Any]]:
    """Return the result of every task, in their order; keep each as it is finished."""
    from joblib import Parallel, delayed
    from tqdm import tqdm

    results: dict[int, dict[str, Any]] = {}
    paths: dict[int, Path] = {}
    if memory is not None:
        Path(memory).mkdir(parents=True, exist_ok=True, mode=0o700)
        table = summary.table.to_csv(index=False)
        for number, (_, _, _, model, split, seed) in enumerate(tasks):
            key = _task_key(model, split, seed, steps, (summary.data_hash, table))
            if key is not None:
                paths[number] = Path(memory) / f"{key}.json"
                kept = _read_result(paths[number])
                results |= {} if kept is None else {number: kept}
    todo = [number for number in range(len(tasks)) if number not in results]
    scans = (cohort.connectomes, cohort.features, cohort.table, tuple(cohort.classes))
    calls = (
        delayed(_fit_numbered)(number, *tasks[number][3:], steps, *scans)
        for number in todo
    )
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    with tqdm(
        total=len(tasks), initial=len(results), desc="folds", disable=not verbose
    ) as bar:
        for number, result in parallel(calls) if todo else ():
            results[number] = result
            if number in paths:
                with replace_when_whole(paths[number]) as partial:
                    partial.write_text(json.dumps(result), encoding="utf-8")
                paths[number].chmod(0o600)
            bar.update()
    return [results[number] for number in range(len(tasks))]


def _fit_numbered(number: int, *arguments: Any) -> tuple[int, dict[str, Any]]:
    with _ALONE:
        return number, fit_fold(*arguments)


def fit_fold(
    model: Any,
    split: Split,
    seed: int,
    steps: Deconfounder,
    connectomes: np.ndarray,
    features: np.ndarray,
    table: pd.DataFrame,
    classes: tuple[str, ...],
) -> dict[str, Any]:
    """Fit a clone on the training scans, predict the test scans; JSON takes the result.

    The deconfounding steps come first, learned from the training scans.
    """
    from sklearn.base import clone
    from threadpoolctl import threadpool_limits

    model = seeded(clone(model), seed)
    (train, test), y = split, table["label"].to_numpy(dtype=object)
    covariates = [table.iloc[rows] for rows in split]
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        started = time.perf_counter()
        values = [features[rows] for rows in split]
        if steps:
            fitted = clone(steps).fit(values[0], covariates[0])
            values = [fitted.transform(*pair) for pair in zip(values, covariates)]
        X = _pack_rows(connectomes, values[0], train)
        people = covariates[0]["participant"].to_numpy(dtype=object)
        given = fit_parameters(model, people, covariates[0])
        model.fit(X, y[train], **given)
        after_fit = time.perf_counter()
        X = _pack_rows(connectomes, values[1], test)
        answers = class_answers(model, X, classes, covariates[1])
        finished = time.perf_counter()
    inner = _inner_model(model)
    report = plain(getattr(inner, "fit_report_", {}))
    return {
        **{name: value.tolist() for name, value in answers.items()},
        "scales": _scales_of(inner, features.shape[1]),
        "seconds_fit": after_fit - started,
        "seconds_predict": finished - after_fit,
        "seed": seed,
        "settings": plain(model.get_params(deep=False)),
        "warnings": sorted({str(one.message) for one in caught}),
        "report": report,
    }


def _pack_rows(
    connectomes: np.ndarray, features: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Pack the connectomes of some rows with features that are those rows' already."""
    shared = connectomes.strides[0] == 0
    n_rois = features.shape[1]
    chosen = (
        np.broadcast_to(connectomes[0], (len(rows), n_rois, n_rois))
        if shared
        else connectomes[rows]
    )
    return pack(chosen, features)


def seeded(model: Any, seed: int) -> Any:
    """Give a seed to every `random_state` of a model that is None."""
    unset = [
        name
        for name, value in model.get_params(deep=True).items()
        if value is None and name.rsplit("__")[-1] == "random_state"
    ]
    return model.set_params(**dict.fromkeys(unset, seed))


def fit_parameters(
    model: Any, groups: np.ndarray, covariates: pd.DataFrame
) -> dict[str, Any]:
    """Return what a model's `fit` takes of persons and covariates, as keywords."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        step, last = model.steps[-1]
        if last in (None, "passthrough"):
            return {}
        inside = fit_parameters(last, groups, covariates)
        return {f"{step}__{name}": value for name, value in inside.items()}
    if "Group" in type(getattr(model, "cv", None)).__name__:
        return {"groups": groups}
    given = {"groups": groups, "covariates": covariates}
    known = signature(model.fit).parameters
    return {name: value for name, value in given.items() if name in known}


def class_answers(
    model: Any, X: np.ndarray, classes: tuple[str, ...], covariates: pd.DataFrame
) -> dict[str, np.ndarray]:
    """Return predicted codes, and probability or decision values (n_scans, n_classes).

    Both are in the order of `classes`; NaN where the model does not give them.
    """
    known = [str(name) for name in model.classes_]
    foreign = sorted(set(known) - set(classes))
    if foreign:
        raise ParameterError(
            f"{type(model).__name__} knows the class {foreign[0]!r}; expected classes "
            f"of the cohort: {', '.join(classes)}."
        )
    place = [classes.index(name) for name in known]
    shape = (len(X), len(classes))
    probability, decision = np.full(shape, np.nan), np.full(shape, np.nan)
    if hasattr(model, "predict_proba"):
        asked = signature(model.predict_proba).parameters
        more = {"covariates": covariates} if "covariates" in asked else {}
        probability[:] = 0.0
        probability[:, place] = model.predict_proba(X, **more)
        best = probability
    elif hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), dtype=np.float64)
        if values.ndim == 1:
            values = np.column_stack([np.zeros_like(values), values])
        decision[:] = values.min() - 1e3  # a class that was never seen
        decision[:, place] = values
        best = decision
    else:
        answer = np.asarray(model.predict(X)).astype(str)
        best = np.array(answer[:, None] == np.array(classes)[None, :], dtype=float)
    if not np.isfinite(best).all():
        raise ParameterError(
            f"{type(model).__name__} predicts NaN; expected finite probabilities of "
            f"the classes {', '.join(classes)}."
        )
    return {
        "predicted": best.argmax(1),
        "probability": probability,
        "decision": decision,
    }


def _inner_model(model: Any) -> Any:
    """Return the fitted model at the heart of a search or a pipeline."""
    if hasattr(model, "best_estimator_"):
        return _inner_model(model.best_estimator_)
    return _inner_model(model.steps[-1][1]) if hasattr(model, "steps") else model


def _scales_of(model: Any, n_rois: int) -> dict[str, Any] | None:
    """Return a fitted model's scales: mean, by start, and during the training."""
    if getattr(model, "scales_", None) is None:
        return None

    def spread(value: Any) -> list[float]:
        return np.broadcast_to(np.asarray(value, float), (n_rois,)).tolist()

    by_start = getattr(model, "scales_by_start_", None)
    path = getattr(model, "scale_path_", None)
    if path is None:
        path = _path_from_history(model, n_rois)
    return {
        "mean": spread(model.scales_),
        "starts": [] if by_start is None else [spread(one) for one in by_start],
        "path": None if path is None else [spread(one) for one in path],
    }


def _path_from_history(model: Any, n_rois: int) -> np.ndarray | None:
    # Until every model has scale_path_: the mean over starts at quarters of training.
    runs = [one for one in getattr(model, "history_", ()) if len(one.scales)]
    best = getattr(model, "fit_report_", {}).get("best_epochs", [])
    if not runs or len(runs) != len(best):
        return None
    paths = []
    for run, last in zip(runs, best, strict=True):
        epochs = np.asarray(run.epoch, dtype=float)
        scales = np.array([np.broadcast_to(one, (n_rois,)) for one in run.scales])
        wanted = epochs[0] + np.array(SHARES) * (max(last, epochs[0]) - epochs[0])
        paths.append(np.stack([np.interp(wanted, epochs, s) for s in scales.T], 1))
    path = np.mean(paths, axis=0)
    path[0], path[-1] = model.scales_start_, model.scales_
    return path


def _append_tables(
    tables: dict[str, list],
    key: dict[str, Any],
    role: str,
    result: dict[str, Any],
    split: Split,
    cohort: CohortSummary,
) -> None:
    """Add one finished fit to the tables of an evaluation."""
    train, test = split
    report = result["report"] if isinstance(result["report"], dict) else {}
    failed = str(report.get("failed") or "")
    found = [report.get(n) for n in ("epochs", "best_epochs", "best_epoch")]
    epochs = next((one for one in found if one not in (None, [])), np.nan)
    tables["fits"].append(
        {
            **key,
            "role": role,
            "n_train": len(train),
            "n_test": len(test),
            "seconds_fit": result["seconds_fit"],
            "seconds_predict": result["seconds_predict"],
            "seed": result["seed"],
            "epochs": float(np.mean(epochs)),
            "failed": failed,
            **{n: json.dumps(result[n]) for n in ("settings", "warnings", "report")},
        }
    )
    if failed:
        return
    rows = cohort.table.iloc[test]
    names = np.array(cohort.classes, dtype=object)
    tables["predictions"].append(
        pd.DataFrame(
            {
                **key,
                "scan": rows["scan"].to_numpy(),
                "participant": rows["participant"].to_numpy(),
                "truth": rows["label"].to_numpy(),
                "predicted": names[result["predicted"]],
                **{
                    f"{kind[0]}_{name}": np.array(result[kind], dtype=float)[:, code]
                    for kind in ("probability", "decision")
                    for code, name in enumerate(cohort.classes)
                },
            }
        )
    )
    scales = result["scales"]
    if scales is None:
        return
    parts = [("mean", 1.0, scales["mean"])]
    parts += [(str(k), 1.0, one) for k, one in enumerate(scales["starts"], start=1)]
    earlier = zip(SHARES[:-1], (scales["path"] or [])[:-1], strict=False)
    parts += [("mean", share, one) for share, one in earlier]
    tables["scales"] += [
        pd.DataFrame(
            {
                **key,
                "start": start,
                "share": share,
                "region": list(cohort.region_names),
                "scale": values,
            }
        )
        for start, share, values in parts
    ]


def _concat(tables: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def plain(value: Any) -> Any:
    """Turn settings and reports into what JSON can hold; what is not finite is None."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return type(value).__name__


def _write_table(table: pd.DataFrame, path: Path) -> dict[str, str]:
    """Write a table; return the kind of every column, by which it is read again."""
    table.to_csv(path, sep="\t", index=False, na_rep=MISSING, lineterminator="\n")
    text = {True: "text", False: "object"}
    return {
        str(name): KINDS.get(one.kind, text[isinstance(one, pd.StringDtype)])
        for name, one in table.dtypes.items()
    }


def _read_table(path: Path, kinds: dict[str, str]) -> pd.DataFrame:
    types: dict[str, Any] = {"object": object, "text": str, "whole": np.int64}
    types |= {"number": np.float64, "yes or no": bool}
    return pd.read_csv(
        path,
        sep="\t",
        dtype={name: types[kind] for name, kind in kinds.items()},
        na_values=[MISSING],
        keep_default_na=False,
        float_precision="round_trip",
        lineterminator="\n",
    )


def _task_key(
    model: Any, split: Split, seed: int, steps: Deconfounder, data: tuple[str, ...]
) -> str | None:
    """Return what tells a fit from all others, or None for what cannot be described."""
    from joblib import hash as hash_of

    told = [type(one) for one in (model, *model.get_params(deep=True).values())]
    own = {one for one in told if not _is_versioned(one)}
    try:
        sources = sorted(getsource(one) for one in own)
        described = hash_of((model, steps, [rows.tolist() for rows in split], seed))
    except Exception:  # noqa: BLE001 (no source, or nothing that pickle takes)
        return None
    parts = (_code_version(), described, *sources, *data)
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def _is_versioned(kind: type) -> bool:
    return kind.__module__.split(".")[0] in (
        "brainlsap",
        "builtins",
        "numpy",
        "sklearn",
    )


@cache
def _code_version() -> str:
    """Return a hash of the code that fits, and of the versions of what it rests on."""
    package = Path(__file__).parents[1]
    sources = [package / "arrays.py"]
    for folder in ("evaluation", "graph", "model"):
        sources += sorted((package / folder).glob("*.py"))
    told = [one.read_text(encoding="utf-8") for one in sources]
    told += [_version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")]
    return hashlib.sha256("\x00".join(told).encode()).hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _read_result(path: Path) -> dict[str, Any] | None:
    """Return a finished fit, or None where there is none or it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
