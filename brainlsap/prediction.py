"""A model for new people: fitted on one cohort, asked about another."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.arrays import pack
from brainlsap.atlas import Atlas, available_atlases
from brainlsap.class_prior import ClassPrior, change_prior, resolve_class_prior
from brainlsap.data import Cohort, load_cohort, order_classes, read_study
from brainlsap.data.cohort import check_cohort_given
from brainlsap.data.covariates import KEY_COLUMNS, has_groups
from brainlsap.data.load import NO_CONNECTOME
from brainlsap.data.participants import UNLABELLED
from brainlsap.data.stored_cohort import is_cohort_file, label_column
from brainlsap.evaluation import Deconfounder
from brainlsap.evaluation.confounds import find_covariate_column
from brainlsap.evaluation.cross_validation import configure_for_cohort
from brainlsap.evaluation.results import to_jsonable
from brainlsap.exceptions import CohortError, ParameterError, check_choice
from brainlsap.files import check_outputs
from brainlsap.findings import Finding, group_findings
from brainlsap.graph.summary import find_unlike, learn_kind
from brainlsap.model import LSAPClassifier, ModelOrigin, load_model, save_model
from brainlsap.model.storage import CLASSIFIERS
from brainlsap.options import option_names
from brainlsap.text import listed

__all__ = ["fit_model", "predict_people", "read_people"]

# Options of `load_cohort` that decide what the numbers mean; kept with a model.
MEANING = option_names("reading", stored_model=["fixed"])
KEPT = option_names("reading", stored_model=["default", "fixed"])
# Share of the values of the fit that a scan may lack, and share beyond those that
# scans of the fit lacked of which is warned.
MOST_MISSING, MANY_MISSING = 0.5, 0.1


def fit_model(
    cohort: Cohort,
    out: str | Path,
    model: LSAPClassifier | None = None,
    *,
    harmonize: str | None = None,
    regress_out: str | Sequence[str] = (),
    overwrite: bool = False,
) -> LSAPClassifier:
    """Fit a model on all scans of a cohort and store it.

    What takes out sites and covariates is fitted with it and stored in its file, and
    so is a connectome that served everybody; :func:`predict_people` applies them.

    Parameters
    ----------
    cohort : Cohort
        The people to learn from.
    out : str or Path
        The model's file (safetensors).
    model : LSAPClassifier, optional
        Not fitted; by default with its own settings.
    harmonize, regress_out
        As for :func:`brainlsap.run_study`. New people need the same columns, and of
        `harmonize` age and sex, too, where the cohort has them: ComBat preserves these.
    overwrite : bool
        Whether an existing file may be replaced; never one that the cohort came from.

    Returns
    -------
    LSAPClassifier
        Fitted; `origin_` says on what. Its own `predict` knows nothing of `harmonize`
        and `regress_out`: new people go through :func:`predict_people`.

    Raises
    ------
    BrainlsapError
        Where the cohort or a setting cannot be used, or the file is there already;
        nothing is written then.
    """
    check_cohort_given(cohort)
    source = cohort.provenance.get("folder")
    check_outputs([out], inputs=[source], overwrite=overwrite)
    model = LSAPClassifier(random_state=0) if model is None else model
    check_choice("model", type(model).__name__, CLASSIFIERS)
    configure_for_cohort(model, cohort)
    steps = Deconfounder(harmonize, regress_out)
    steps.check(cohort.table)
    steps.fit(cohort.features, cohort.table)
    features = steps.transform(cohort.features, cohort.table)
    model.fit(pack(cohort.connectomes, features), cohort.y, groups=cohort.groups)
    asked: dict[str, Any] = {"feature": [*cohort.feature_names]}
    asked |= cohort.provenance.get("asked") or {}
    if cohort.atlas.name in available_atlases():  # others have no name to read by
        asked.setdefault("atlas", cohort.atlas.name)
    model.origin_ = ModelOrigin(
        region_names=cohort.region_names,
        feature_names=cohort.feature_names,
        classes=cohort.classes,
        label_name=cohort.label_name,
        atlas_name=cohort.atlas.name,
        reading={k: v for k, v in asked.items() if k in KEPT},
        facts={
            "steps": steps.to_dict(),
            "ranges": {name: _range(cohort, name) for name in steps.regress_out},
            "merged_classes": cohort.provenance.get("merged_classes"),
            "connectomes": _learn_connectomes(model, cohort),
            "most_missing": float(_missing_share(model, cohort.features).max()),
        },
    )
    save_model(model, out)
    return model


def _learn_connectomes(model: LSAPClassifier, cohort: Cohort) -> dict[str, Any] | None:
    """Return the kind of connectomes of the fit; None if the model has its own."""
    if model.shared_connectome_ is not None or model.preparation_.network is not None:
        return None
    return learn_kind(cohort.connectomes)


def _missing_share(model: LSAPClassifier, features: np.ndarray) -> np.ndarray:
    """Return the share of the values that the fit had which each scan lacks."""
    is_missing = np.isnan(features[:, model.measured_])
    return is_missing.mean(axis=(1, 2))


def _check_measured(
    model: LSAPClassifier, features: np.ndarray, scans: pd.Series
) -> None:
    """Refuse scans that lack most values of the fit; warn of those that lack many."""
    missing = _missing_share(model, features)
    is_refused = missing > MOST_MISSING
    if is_refused.any():
        faults = [
            Finding(f"{share:.0%} of the values of the fit are missing", scan=scan)
            for scan, share in zip(scans[is_refused], missing[is_refused], strict=True)
        ]
        raise CohortError(
            f"{is_refused.sum()} of {len(scans)} scans lack more than "
            f"{MOST_MISSING:.0%} of the values and cannot be predicted; leave these "
            "scans out, or read the missing regions",
            group_findings(faults),
        )
    usual = model.origin_.facts.get("most_missing", 1.0)
    is_sparse = missing > usual + MANY_MISSING
    if is_sparse.any():
        message = (
            f"{is_sparse.sum()} of {len(scans)} scans ({listed(scans[is_sparse], 5)}) "
            f"lack up to {missing.max():.0%} of the values of the fit, which lacked "
            f"{usual:.0%} at most: the means of the fit stand for them."
        )
        warnings.warn(message, stacklevel=3)


def _check_connectomes(
    model: LSAPClassifier, connectomes: np.ndarray, scans: pd.Series
) -> None:
    """Warn of connectomes of another kind than those of the fit."""
    kind = model.origin_.facts.get("connectomes")
    if kind is None:
        return
    reasons = find_unlike(connectomes, kind)
    if reasons:
        is_unlike = np.any([*reasons.values()], axis=0)
        message = (
            f"{is_unlike.sum()} of {len(scans)} scans ({listed(scans[is_unlike], 5)}) "
            f"have connectomes unlike those of the fit: {'; '.join(reasons)}. Make "
            "them as those of the fit were made, or do not trust the predictions."
        )
        warnings.warn(message, stacklevel=3)


def _range(cohort: Cohort, name: str) -> tuple[float, float]:
    """Return the ends of a covariate; NaN of one that has no numbers."""
    values = cohort.table[find_covariate_column(cohort.table, name)]
    numbers = np.array([]) if has_groups(name, values) else values.astype(float)
    return tuple(pd.Series(numbers, dtype=float).agg(["min", "max"]).tolist())


def read_people(
    model: LSAPClassifier | str | Path, folder: str | Path | None = None, **options: Any
) -> Cohort:
    """Read people to predict, in the way in which those of the fit were read.

    Parameters
    ----------
    model : LSAPClassifier, str or Path
        From :func:`brainlsap.model.load_model`, or its file.
    folder : str or Path, optional
        Of the study, or a cohort's file (.h5). No label is needed. None for arrays.
    **options
        Of :func:`brainlsap.load_cohort`; those of the fit where not given. `label` is
        a column to write beside the predictions; it may lack entries. A model that was
        fitted with one connectome for everybody brings it along. For arrays
        those of :meth:`.Cohort.from_arrays`: `connectomes=` and `features=` in the
        order of the model's regions, and `covariates=` that the fit took out.

    Returns
    -------
    Cohort

    Raises
    ------
    ParameterError
        Where an option says another thing than the model was fitted on.
    CohortError
        Where the folder cannot be read.
    """
    model = _read_model(model)
    origin, shared = model.origin_, model.shared_connectome_
    wanted = dict(origin.reading)
    _check_reading(wanted, options)
    if folder is not None and is_cohort_file(folder):
        label = options.pop("label", None)
        # predict_people knows how it was read
        return _with_label(read_study(folder, **options), label, folder)
    place = Path(str(wanted.get("atlas", "")))
    is_bundled = str(place) in available_atlases()
    if not (is_bundled or "atlas" in options or place.exists()):
        raise ParameterError(
            f"the atlas of the fit, {place}, is no longer there; say where by atlas= "
            "(--atlas)."
        )
    if folder is None:
        own = Atlas.from_names(origin.region_names, name=origin.atlas_name)
        arrays = {
            "labels": None,
            "label_name": origin.label_name,
            "atlas": wanted.get("atlas", own),
            "negative": wanted.get("negative", "refuse"),
        }
        if shared is not None:
            arrays["connectomes"] = shared
        arrays |= options
        if absent := sorted({"connectomes", "features"} - {*arrays}):
            raise ParameterError(
                f"read_people needs the folder of a study, or arrays: {absent[0]}= is "
                f"missing ({len(origin.region_names)} regions in the model's order)."
            )
        is_named = isinstance(arrays["features"], Mapping) or "feature_names" in arrays
        if len(origin.feature_names) > 1 and not is_named:
            raise ParameterError(
                f"features= must say which is which: {{name: array}} of "
                f"{', '.join(origin.feature_names)}."
            )
        arrays.setdefault("feature_names", origin.feature_names)
        return Cohort.from_arrays(**arrays)
    if shared is not None:
        names = list(origin.region_names)
        wanted["connectome"] = NO_CONNECTOME
        if shared.any():
            wanted["connectome"] = pd.DataFrame(shared, names, names)
    label = options.pop("label", None)
    people = load_cohort(folder, **(wanted | {"label": None} | options))
    return _with_label(people, label, folder)


def _with_label(cohort: Cohort, column: str | None, folder: str | Path) -> Cohort:
    """Return people with the labels of a column, where these are known."""
    if column is None:
        return cohort
    labels = label_column(cohort, column)
    if labels is None:
        heads = cohort.table.columns[len(KEY_COLUMNS) :]
        raise ParameterError(
            f"{folder}: the label {column!r} is no column of the table of people; "
            f"found {', '.join(map(str, heads)) or 'none besides the id'}. Name the "
            "column by label=, or leave label= out."
        )
    labels = labels.fillna(UNLABELLED)
    # all labels are only written beside: none has a place in an order
    return replace(
        cohort,
        table=cohort.table.assign(label=labels),
        classes=order_classes(labels.tolist())[0],
        classes_ordered=True,
        label_name=column,
    )


def _read_model(model: LSAPClassifier | str | Path) -> LSAPClassifier:
    """Return a model that knows what it was fitted on, from its file or as it is."""
    model = load_model(model) if isinstance(model, str | Path) else model
    if not hasattr(model, "origin_"):
        raise ParameterError(
            "model must be one that fit_model or load_model returned, or its file; got "
            f"{type(model).__name__}, which does not say what it was fitted on."
        )
    return model


def _check_reading(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise where people were read in another way than those of the fit."""
    for name in wanted.keys() & given.keys() & {*MEANING}:
        if to_jsonable(given[name]) not in (
            wanted[name],
            "refuse",
        ):  # it was not needed
            raise ParameterError(
                f"{name} must be {wanted[name]!r}, as in the fit of the model; got "
                f"{given[name]!r}. Leave {name}= out: read_people takes the model's."
            )


def predict_people(
    model: LSAPClassifier | str | Path,
    cohort: Cohort,
    *,
    class_prior: ClassPrior | None = None,
) -> pd.DataFrame:
    """Predict the class of every scan; regions and features are matched by name.

    Parameters
    ----------
    model : LSAPClassifier, str or Path
        From :func:`brainlsap.model.load_model`, or its file.
    cohort : Cohort
        The same regions and features as in the fit, in any order.
    class_prior : {"training", "balanced"} or dict of class to share, optional
        Which share of the new scans each class is expected to have: as among those of
        the fit, the same for all, or shares of your own that sum to 1. Probabilities
        assume it. By default what the model was fitted with, which is "training"
        unless it was set.

    Returns
    -------
    DataFrame
        Columns scan, participant, session, predicted and `p_<class>` in order of
        stage; label too, where the cohort has labels (None: not known).
        `attrs["class_prior"]` has the shares that probabilities assume. `predicted`
        does not depend on them: as in cross-validation it is the likeliest class where
        classes weigh as in the fit, so that rare classes are predicted, too; the
        largest probability can be that of another class. Warns of scans whose features,
        or whose covariates that are regressed out, are far from those of the fit, of
        scans that lack many values, and of connectomes of another kind than those of
        the fit (unit, density, transformation, order of regions).

    Raises
    ------
    CohortError
        Where scans lack more than half of the values of the fit.
    RegionNameError
        Where regions are missing or unknown.
    ParameterError
        Where a feature or a covariate is missing, a site was not seen and the model
        refuses that, the connectome is another than that of the fit, people were read
        in another way, or `class_prior` does not name the classes of the model.
    """
    check_cohort_given(cohort)
    model = _read_model(model)
    origin = model.origin_
    prior = _new_prior(model, class_prior)
    _check_reading(origin.reading, cohort.provenance.get("asked") or {})
    rows = cohort.atlas.match_all(origin.region_names)
    missing = sorted(set(origin.feature_names) - set(cohort.feature_names))
    if missing:
        raise ParameterError(
            f"the model needs the feature {missing[0]!r}, and the cohort has "
            f"{', '.join(cohort.feature_names)}. Name it by feature= or feature_names="
        )
    columns = [cohort.feature_names.index(name) for name in origin.feature_names]
    connectomes = cohort.connectomes[:, rows][:, :, rows]
    shared = model.shared_connectome_
    if shared is not None and not np.array_equal(
        connectomes, np.broadcast_to(shared, connectomes.shape)
    ):
        raise ParameterError(
            "the model was fitted with one connectome for everybody, and the cohort "
            "has others. Leave connectome= out: the model brings its own."
        )
    has_own = shared is None and model.preparation_.network is None
    if has_own and cohort.shares_connectome:
        raise ParameterError(
            "the model was fitted with a connectome for every scan, and the cohort has "
            "one for everybody. Give each scan its own."
        )
    features = cohort.features[:, rows][:, :, columns]
    _check_measured(model, features, cohort.table["scan"])
    _check_connectomes(model, connectomes, cohort.table["scan"])
    if origin.facts.get("steps"):
        steps = Deconfounder.from_dict(origin.facts["steps"])
        steps.check_people(cohort.table)
        features = steps.transform(features, cohort.table)
        for name in steps.regress_out:
            ends, (low, high) = _range(cohort, name), origin.facts["ranges"][name]
            if ends[0] < 1.5 * low - high / 2 or ends[1] > 1.5 * high - low / 2:
                told = f"{name} is {ends[0]:g} to {ends[1]:g}, in the fit {low:g} to"
                warnings.warn(f"{told} {high:g}: is it another unit?", stacklevel=2)
            column = find_covariate_column(cohort.table, name)
            if n := cohort.table[column].isna().sum():
                told = f"{n} of {len(features)} scans have no {name}"
                warnings.warn(
                    f"{told}: the mean of the fit stands for it.", stacklevel=2
                )
    # of people like those of the fit about 1 in 100 (thickness, half of FCON1000)
    far = (np.abs(model.scaler_.apply(features)) > 3).mean(axis=(1, 2)) > 0.1
    if far.any():
        who = listed(cohort.table["scan"][far], 5)
        told = f"{far.sum()} of {len(far)} scans are unlike those of the fit ({who}): "
        told += "over a tenth of their values lie 3 standard deviations from its means"
        warnings.warn(f"{told}; do not trust their probabilities.", stacklevel=2)
    names = [str(name) for name in model.classes_]
    own_probability = model.predict_proba(pack(connectomes, features))
    new_probability = change_prior(own_probability, model.class_prior_, prior)
    probability = pd.DataFrame(new_probability, columns=names)
    table = cohort.table[["scan", "participant", "session"]].copy()
    table["predicted"] = np.array(names)[model.choose_classes(own_probability)]
    ordered = [name for name in origin.classes if name in names]
    table = table.join(probability[ordered].add_prefix("p_"))
    merged = origin.facts.get("merged_classes") or {}
    new_of = {str(old): new for new, some in merged.items() for old in some}
    label = [new_of.get(str(one), one) for one in cohort.y]
    if {*label} != {UNLABELLED}:
        table["label"] = [None if name == UNLABELLED else name for name in label]
    shares = dict(zip(names, prior.tolist(), strict=True))
    table.attrs["class_prior"] = {name: shares[name] for name in ordered}
    return table


def _new_prior(model: LSAPClassifier, class_prior: ClassPrior | None) -> np.ndarray:
    """Return the share of every class of a model that new probabilities assume."""
    if class_prior is None:
        return model.class_prior_
    if isinstance(class_prior, Mapping):
        names = [str(name) for name in model.classes_]
        unknown = [str(name) for name in class_prior if str(name) not in names]
        if unknown:
            raise ParameterError(
                f"class_prior names {', '.join(unknown)}, and the classes of the model "
                f"are {', '.join(names)}. Give a share of each of these."
            )
    return resolve_class_prior(class_prior, model.classes_, model.training_shares_)
