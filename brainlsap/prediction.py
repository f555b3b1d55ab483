"""Fit a model to one cohort, describe it by a card, and predict new participants.

The card in a model file says what the model is, on whom it was trained, and its scores.
It names no person. To refuse people of the training in a test, the file also holds
keyed hashes of their ids and data (:func:`list_person_hashes`,
:func:`list_hashes_by_scan`).
"""

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import brainlsap
from brainlsap.arrays import match_class_name, pack_scans, to_jsonable
from brainlsap.atlas import Atlas, available_atlases
from brainlsap.class_prior import ClassPrior, change_prior, resolve_class_prior
from brainlsap.data import Cohort, order_classes, read_study, suggest_options
from brainlsap.data.check import make_refusal_check
from brainlsap.data.cohort import NOT_GIVEN, check_cohort_given
from brainlsap.data.covariates import (
    KEY_COLUMNS,
    is_categorical_covariate,
)
from brainlsap.data.flow import USED_FOR_TRAINING
from brainlsap.data.load import RefusedStudyError, read_folder
from brainlsap.data.participants import UNLABELLED
from brainlsap.data.quality import (
    MAX_REGION_DEVIATION,
    SideComparison,
    exchanged_sides_text,
    join_texts_by_scan,
    learn_asymmetry_record,
    list_swapped_scan_sentences,
    list_swapped_scans_by_value,
    make_exchanged_scan_mask,
    make_implausible_value_mask,
    make_side_comparison,
    quality_table,
    unknown_sides_text,
)
from brainlsap.data.reading_options import (
    DEFAULT_OPTIONS,
    NO_CONNECTOME,
    ReadingOptions,
    check_option_names,
    get_changed_value_by_option,
)
from brainlsap.data.stored_cohort import (
    get_label_series,
    is_cohort_file,
    make_cohort_without_faulty,
)
from brainlsap.evaluation import (
    Deconfounder,
    Evaluation,
    bootstrap_score_table,
    main_score_names,
    make_models,
)
from brainlsap.evaluation.confounds import (
    STEP_OPTIONS,
    find_covariate_column,
    list_step_phrases,
)
from brainlsap.evaluation.cross_validation import configure_model_for_cohort
from brainlsap.evaluation.leakage import (
    find_visit_like_scans_and_n_people,
    visit_like_ids_text,
)
from brainlsap.evaluation.results import (
    OTHER_VERSION,
    data_hash,
    list_missing_card_names,
)
from brainlsap.evaluation.scores import title_by_score_name
from brainlsap.evaluation.subgroups import make_case_mix
from brainlsap.exceptions import CohortError, ParameterError, check_choice
from brainlsap.files import check_outputs
from brainlsap.findings import FAULT, Finding, list_grouped_finding_texts
from brainlsap.graph.laplacian import (
    learn_connectome_profile,
    make_unlike_mask_by_reason,
)
from brainlsap.model import (
    LSAPClassifier,
    LSAPRidgeClassifier,
    ModelOrigin,
    load_model,
    save_model,
)
from brainlsap.model.inputs import PackedClassifier
from brainlsap.model.prediction_sets import (
    LEVEL,
    MIN_PEOPLE,
    fit_prediction_sets,
    predict_set_membership,
)
from brainlsap.model.storage import CLASSIFIERS
from brainlsap.options import list_settings_option_names
from brainlsap.text import (
    exclusion_option_text,
    join_with_and,
    join_with_commas,
    option_name,
    option_text,
    verb_form,
)

__all__ = [
    "card_text",
    "contribution_table",
    "fit_model",
    "hash_person",
    "list_hashes_by_scan",
    "list_person_hashes",
    "make_model_card",
    "predict_people",
    "read_new_people",
]

# Options of `load_cohort` that are stored with a model. New participants must be read
# with the same value of the first ones.
FIXED_OPTIONS = list_settings_option_names("reading", stored_model=["fixed"])
STORED_OPTIONS = list_settings_option_names(
    "reading", stored_model=["default", "fixed"]
)
# Largest share of the values used in the fit that a new scan may lack.
MAX_MISSING_SHARE = 0.5
# Remark that values are missing if a new scan lacks more than this share.
MAX_UNREMARKED_MISSING_SHARE = 0.1
# Warn if more than this share of a scan's values lie more than 3 standard deviations
# from the mean of the fit. About 1 in 100 scans from the population of the fit does
# (cortical thickness, half of FCON1000).
MAX_OUTLIER_SHARE = 0.1
# Largest number of values that a remark names.
_MAX_NAMED_VALUES = 3
# Column of the classes that a scan may have, at the level of prediction sets.
SET_COLUMN = f"set_{LEVEL * 100}"
SET_JOINER = " + "
EMPTY_SET = "none"

NO_CARD = "no model card"
"""Kind of the error of a model without a card."""

REMARKS = (
    "features unlike the training",
    "connectome unlike the training",
    USED_FOR_TRAINING,
    "site not in the training, so not harmonised",
    "covariate missing, so the mean of the training was used",
    "left and right may have been swapped",
)
"""Remarks on unreliable predictions, in this order: more than a tenth of the values lie
over 3 standard deviations from the mean of the training scans; the connectome differs
from the training connectomes in unit, density, transformation or order of regions; the
person, or the data of the scan, was used for training; ComBat was fitted without scans
of the site; a covariate of the adjustment has no value; the sides of the scan, or of
all scans together, differ as those of the training or of the other scans do, but the
other way round. Remarks that name values or numbers of one scan precede these."""

UNINTENDED_USES = (
    "a diagnosis, or a decision about a person",
    "people unlike the training people, unless the model was evaluated on such people",
)
"""Uses for which no stored model is suitable."""


def fit_model(
    cohort: Cohort,
    out: str | Path,
    model: PackedClassifier | str = "LSAP-C",
    *,
    harmonize: str | None = None,
    regress_out: str | Sequence[str] = (),
    reference_class: str | None = None,
    scores: Evaluation | None = None,
    overwrite: bool = False,
) -> PackedClassifier:
    """Fit a model on all scans of a cohort and store it.

    The file also holds the fitted adjustment for sites and covariates, and the
    connectome if all scans shared one; :func:`predict_people` applies them.

    Parameters
    ----------
    cohort : Cohort
        Training data.
    out : str or Path
        Model file to write (safetensors).
    model : str or classifier, optional
        Name of one of :data:`brainlsap.evaluation.MODELS`, for example "LSAP-R", or an
        unfitted LSAPClassifier, LSAPRidgeClassifier or NetworkClassifier; by default
        "LSAP-C".
    harmonize, regress_out, reference_class
        As in :func:`brainlsap.run_study`. New participants need the same columns. With
        `harmonize` they also need age and sex if the cohort has them, because ComBat
        preserves their effects.
    scores : Evaluation, optional
        Cross-validation of this model on this cohort; its scores go into the model
        card. Without it the card says "not evaluated".
    overwrite : bool
        Whether to replace an existing file. A file that the cohort was read from is
        never replaced.

    Returns
    -------
    LSAPClassifier, LSAPRidgeClassifier or NetworkClassifier
        The fitted model; `origin_` describes the training data. Its own `predict`
        does not apply `harmonize` and `regress_out`: use :func:`predict_people`.

    Raises
    ------
    BrainlsapError
        If the cohort or a setting cannot be used, the model cannot be stored without
        pickle, or the file exists. Nothing is written.
    """
    check_cohort_given(cohort)
    study_folder = cohort.provenance.get("folder")
    check_outputs([out], input_values=[study_folder], overwrite=overwrite)
    if isinstance(model, str):
        model = make_unfitted_model(model)
    check_choice("model", type(model).__name__, CLASSIFIERS)
    configure_model_for_cohort(model, cohort)
    deconfounder = Deconfounder(harmonize, regress_out, reference_class)
    deconfounder.check(cohort.table)
    features = deconfounder.fit_transform(cohort.features, cohort.table)
    model.fit(pack_scans(cohort.connectomes, features), cohort.y, groups=cohort.groups)
    reading_options = cohort.reading_options
    if reading_options.feature is None:
        reading_options = reading_options.change(feature=[*cohort.feature_names])
    # Atlases that are not bundled cannot be read by name.
    if not reading_options.atlas and cohort.atlas.name in available_atlases():
        reading_options = reading_options.change(atlas=cohort.atlas.name)
    model.origin_ = ModelOrigin(
        region_names=cohort.region_names,
        feature_names=cohort.feature_names,
        classes=cohort.classes,
        label_name=cohort.label_name,
        atlas_name=cohort.atlas.name,
        reading=reading_options.to_jsonable(STORED_OPTIONS),
        facts={
            "steps": deconfounder.to_dict(),
            "ranges": {
                covariate_name: _find_covariate_range(cohort, covariate_name)
                for covariate_name in deconfounder.regress_out
            },
            "merged_classes": cohort.provenance.get("merged_classes"),
            "connectomes": _make_connectome_profile(model, cohort),
            "sides": _compute_side_difference_by_name(model, cohort),
            "most_missing": float(
                _compute_missing_shares(model, cohort.features).max()
            ),
            "card": make_model_card(
                model, cohort, deconfounder, _find_model_name(model), scores
            ),
            "people": _make_training_hash_record(cohort),
        },
    )
    save_model(model, out)
    return model


def make_unfitted_model(
    name: str,
    *,
    preset: str = "default",
    random_state: int = 0,
    **model_settings: object,
) -> PackedClassifier:
    """Return an unfitted model of a name that `fit_model` can store.

    Parameters
    ----------
    name : str
        One of :data:`brainlsap.evaluation.MODELS`; case, blanks and hyphens do not
        matter.
    preset, random_state, **settings
        As of :func:`brainlsap.evaluation.make_models`.

    Raises
    ------
    ParameterError
        If the name stands for several models, is unknown, or is that of a model that
        only pickle could store.
    """
    model_by_name = make_models(
        name, preset=preset, random_state=random_state, **model_settings
    )
    if len(model_by_name) > 1:
        raise ParameterError(
            f"{name!r} names {len(model_by_name)} models, but a model file can "
            "contain only one. Name one model of "
            f"{', '.join(list_storable_models())}."
        )
    ((model_title, (model, _)),) = model_by_name.items()
    if type(model).__name__ not in CLASSIFIERS:
        raise ParameterError(
            f"{model_title} cannot be stored, because it uses covariates or consists "
            "of steps of scikit-learn. Only pickle files can store such a model, and a "
            "pickle file can run any program when it is opened. Choose one model of "
            f"{', '.join(list_storable_models())}."
        )
    return model


def _find_model_name(model: PackedClassifier) -> str:
    """Return the name in `MODELS` of what kind of model this is, else its class."""
    kind_settings = _collect_kind_settings(model)
    for model_name, (candidate_model, _) in make_models("all").items():
        if type(candidate_model) is not type(model):
            continue
        if _collect_kind_settings(candidate_model) == kind_settings:
            return model_name
    return type(model).__name__


def _collect_kind_settings(model: PackedClassifier) -> dict[str, object]:
    """Return the settings that distinguish the kinds of models of one class."""
    model_settings: dict[str, object] = model.get_params()
    if isinstance(model, LSAPClassifier):
        model_settings = vars(model.resolve())  # Includes the values of defaults.
    setting_names = ("kernel", "scales", "network", "scale_mode", "inputs")
    return {
        setting_name: model_settings.get(setting_name) for setting_name in setting_names
    }


def _make_training_hash_record(cohort: Cohort) -> dict[str, Any]:
    """Return the keyed hashes of the people and scans of a training."""
    salt = make_salt(cohort)
    connectomes = None if cohort.shares_connectome else cohort.connectomes
    scan_hash_lists = list_hashes_by_scan(cohort.features, connectomes, salt)
    return {
        "salt": salt,
        "ids": list_person_hashes(cohort.groups, salt),
        "scans": sorted(
            {scan_hash for scan_hashes in scan_hash_lists for scan_hash in scan_hashes}
        ),
    }


def list_storable_models() -> list[str]:
    """Return the names of the models that `fit_model` can store."""
    return [
        model_name
        for model_name, (model, _) in make_models("all").items()
        if type(model).__name__ in CLASSIFIERS
    ]


def _make_connectome_profile(
    model: PackedClassifier, cohort: Cohort
) -> dict[str, Any] | None:
    """Return the properties of the connectomes, or None if the model stores one."""
    if not _uses_own_connectomes(model):
        return None
    return learn_connectome_profile(cohort.connectomes)


def _regional_values_by_name(
    model: PackedClassifier,
    feature_names: Sequence[str],
    features: np.ndarray,
    connectomes: np.ndarray,
) -> dict[str, np.ndarray]:
    """Return regional values by name: features, and strengths of own connectomes."""
    regional_values_by_name = {
        feature_name: features[..., feature_index]
        for feature_index, feature_name in enumerate(feature_names)
    }
    if _uses_own_connectomes(model):
        # The logarithm makes the asymmetry independent of the unit of weights.
        node_strengths = connectomes.sum(axis=2, dtype=np.float64)
        node_strengths -= connectomes.diagonal(axis1=1, axis2=2)
        linked_region_mask = node_strengths > 0
        regional_values_by_name["connectome"] = np.log(
            node_strengths,
            out=np.full(node_strengths.shape, np.nan),
            where=linked_region_mask,
        )
    return regional_values_by_name


def _compute_side_difference_by_name(
    model: PackedClassifier, cohort: Cohort
) -> dict[str, Any]:
    """Return how the hemispheres differ in the values that a model uses, by name."""
    regional_values_by_name = _regional_values_by_name(
        model, cohort.feature_names, cohort.features, cohort.connectomes
    )
    return {
        value_name: learn_asymmetry_record(
            region_values, cohort.groups, cohort.atlas.homotopic
        )
        for value_name, region_values in regional_values_by_name.items()
    }


def _list_swapped_names_and_side_notes(
    model: PackedClassifier,
    cohort: Cohort,
    connectomes: np.ndarray,
    features: np.ndarray,
) -> tuple[list[str], list[str]]:
    """Warn of values whose sides may be swapped; return these, and notes on unknown.

    Nothing is known of the sides in files of models that hold no asymmetry.
    """
    model_origin = model.origin_
    regional_values_by_name = _regional_values_by_name(
        model, model_origin.feature_names, features, connectomes
    )
    swapped_value_names, note_texts = list[str](), list[str]()
    for value_name, side_record in model_origin.facts.get("sides", {}).items():
        side_comparison = make_side_comparison(
            regional_values_by_name[value_name], cohort.groups, side_record
        )
        if side_comparison is SideComparison.EXCHANGED:
            swapped_value_names.append(value_name)
            warnings.warn(f"{exchanged_sides_text(value_name)}.", stacklevel=3)
        elif side_comparison is SideComparison.UNKNOWN:
            note_texts.append(unknown_sides_text(value_name))
    return swapped_value_names, note_texts


def _list_swapped_scans_by_value(
    model: PackedClassifier,
    cohort: Cohort,
    connectomes: np.ndarray,
    features: np.ndarray,
    unlike_connectome_mask: np.ndarray,
) -> dict[str, list[str]]:
    """Return the scans in which single values may have swapped sides, by value.

    Scans are compared with the other scans of the cohort, and with the training.
    Connectomes unlike the training cannot be compared with it.
    """
    scan_series = cohort.table["scan"]
    scan_names_by_value = list_swapped_scans_by_value(quality_table(cohort)["swapped"])
    regional_values_by_name = _regional_values_by_name(
        model, model.origin_.feature_names, features, connectomes
    )
    for value_name, side_record in model.origin_.facts.get("sides", {}).items():
        exchanged_scan_mask = make_exchanged_scan_mask(
            regional_values_by_name[value_name], side_record
        )
        if value_name == "connectome":
            exchanged_scan_mask &= ~unlike_connectome_mask
        exchanged_scan_mask |= scan_series.isin(scan_names_by_value.get(value_name, []))
        scan_names_by_value[value_name] = list(scan_series[exchanged_scan_mask])
    return {
        value_name: scan_names
        for value_name, scan_names in scan_names_by_value.items()
        if scan_names
    }


def _compute_missing_shares(
    model: PackedClassifier, features: np.ndarray
) -> np.ndarray:
    """Return the share of the values used in the fit that each scan lacks."""
    missing_value_mask = np.isnan(features[:, model.measured_])
    return missing_value_mask.mean(axis=(1, 2))


def _find_sparse_scan_faults(
    model: PackedClassifier, features: np.ndarray, scan_names: pd.Series
) -> list[Finding]:
    """Return a fault for each scan that lacks most values of the fit."""
    missing_shares = _compute_missing_shares(model, features)
    refused_scan_mask = missing_shares > MAX_MISSING_SHARE
    return [
        Finding(
            f"the scan lacks {missing_share:.0%} of the values that were used in the "
            "fit",
            FAULT,
            scan=scan_name,
        )
        for scan_name, missing_share in zip(
            scan_names[refused_scan_mask],
            missing_shares[refused_scan_mask],
            strict=True,
        )
    ]


def _leave_out_sparse_scans(model: PackedClassifier, cohort: Cohort) -> Cohort:
    """Return the cohort without scans that lack most values, if faults are skipped."""
    if not cohort.reading_options.skip_faulty:
        return cohort
    _, features = match_connectomes_and_features(model, cohort)
    fault_findings = _find_sparse_scan_faults(model, features, cohort.table["scan"])
    return make_cohort_without_faulty(
        cohort, {fault_finding.scan: fault_finding for fault_finding in fault_findings}
    )


def _check_missing_values(
    model: PackedClassifier, features: np.ndarray, scan_names: pd.Series
) -> None:
    """Raise for scans that lack most values of the fit; warn if many are missing."""
    missing_shares = _compute_missing_shares(model, features)
    fault_findings = _find_sparse_scan_faults(model, features, scan_names)
    if fault_findings:
        exclude_option_text = exclusion_option_text(
            [fault_finding.scan for fault_finding in fault_findings]
        )
        raise CohortError(
            f"{len(fault_findings)} of {len(scan_names)} scans cannot be predicted, "
            f"because more than {MAX_MISSING_SHARE:.0%} of their values are missing. "
            "Add the missing regions, or leave these scans out with "
            f"{exclude_option_text} or {option_text('skip_faulty', True)}",
            list_grouped_finding_texts(fault_findings),
        )
    sparse_scan_mask = missing_shares > MAX_UNREMARKED_MISSING_SHARE
    if sparse_scan_mask.any():
        max_share_in_fit = model.origin_.facts.get("most_missing", 1.0)
        message = (
            f"{sparse_scan_mask.sum()} of {len(scan_names)} scans "
            f"({join_with_commas(scan_names[sparse_scan_mask], 5)}) "
            f"{verb_form(sparse_scan_mask.sum(), 'lack')} up to "
            f"{missing_shares.max():.0%} of the values that the model uses; no "
            f"training scan lacked more than {max_share_in_fit:.0%}. Missing values "
            "are replaced by the means over the training scans."
        )
        warnings.warn(message, stacklevel=3)


def _list_missing_region_remarks(
    model: PackedClassifier, features: np.ndarray
) -> list[str]:
    """Return how many regions each scan lacks; "" if at most a tenth."""
    missing_value_mask = np.isnan(features[:, model.measured_])
    n_values = missing_value_mask[0].size
    missing_noun = "regions" if features.shape[2] == 1 else "regional values"
    return [
        f"{n_missing_values} of {n_values} {missing_noun} missing"
        if n_missing_values > MAX_UNREMARKED_MISSING_SHARE * n_values
        else ""
        for n_missing_values in missing_value_mask.sum(axis=(1, 2))
    ]


def _make_implausible_feature_mask(
    model: PackedClassifier, cohort: Cohort
) -> np.ndarray:
    """Return which values of scans no brain has, in the order of the model."""
    model_origin = model.origin_
    region_indices = cohort.atlas.match_all(model_origin.region_names)
    implausible_value_masks = [
        make_implausible_value_mask(cohort, feature_name)[:, region_indices]
        for feature_name in model_origin.feature_names
    ]
    implausible_feature_mask = np.stack(implausible_value_masks, axis=2)
    # The model does not use the other regions.
    implausible_feature_mask[:, ~model.measured_] = False
    return implausible_feature_mask


def _list_value_remarks(
    model: PackedClassifier,
    features: np.ndarray,
    described_value_mask: np.ndarray,
    remark_text: str,
) -> list[str]:
    """Return a remark on the described values of each scan; "" if it has none.

    `remark_text` contains "{noun}", which becomes "value" or "values".
    """
    model_origin = model.origin_
    remark_texts = [""] * len(features)
    for scan_index in np.flatnonzero(described_value_mask.any(axis=(1, 2))):
        region_texts = list[str]()
        for region_index, feature_index in np.argwhere(
            described_value_mask[scan_index]
        ):
            region_name = model_origin.region_names[region_index]
            value_text = f"{features[scan_index, region_index, feature_index]:.7g}"
            if len(model_origin.feature_names) > 1:
                value_text = f"{model_origin.feature_names[feature_index]} {value_text}"
            region_texts.append(f"{region_name} ({value_text})")
        value_noun = "value" if len(region_texts) == 1 else "values"
        remark_texts[scan_index] = (
            f"{remark_text.format(noun=value_noun)} in "
            f"{join_with_commas(region_texts, _MAX_NAMED_VALUES)}"
        )
    return remark_texts


def _warn_of_values(
    scan_names: pd.Series, remark_texts: Sequence[str], advice_text: str
) -> None:
    """Warn which scans have remarks on single values."""
    scan_texts = [
        f"{scan_name}: {remark_text}"
        for scan_name, remark_text in zip(scan_names, remark_texts, strict=True)
        if remark_text
    ]
    if not scan_texts:
        return
    shown_scans_text = "; ".join(scan_texts[:5])
    if len(scan_texts) > 5:
        shown_scans_text += f"; and {len(scan_texts) - 5} more scans"
    warnings.warn(
        f"The predictions of {len(scan_texts)} of {len(scan_names)} scans are "
        f"unreliable ({shown_scans_text}). {advice_text}.",
        stacklevel=3,
    )


def _make_unlike_connectome_mask(
    model: PackedClassifier, connectomes: np.ndarray, scan_names: pd.Series
) -> np.ndarray:
    """Return and warn which connectomes differ in kind from those of the fit."""
    unlike_scan_mask = np.zeros(len(scan_names), dtype=bool)
    connectome_profile = model.origin_.facts.get("connectomes")
    if connectome_profile is None:
        return unlike_scan_mask
    unlike_mask_by_reason = make_unlike_mask_by_reason(connectomes, connectome_profile)
    if unlike_mask_by_reason:
        unlike_scan_mask = np.any([*unlike_mask_by_reason.values()], axis=0)
        message = (
            f"{unlike_scan_mask.sum()} of {len(scan_names)} scans "
            f"({join_with_commas(scan_names[unlike_scan_mask], 5)}) have connectomes "
            f"unlike the training connectomes: {'; '.join(unlike_mask_by_reason)}. The "
            "predictions are unreliable. Compute these connectomes by the method used "
            "for the training data."
        )
        warnings.warn(message, stacklevel=3)
    return unlike_scan_mask


def make_training_scan_masks(
    model: PackedClassifier,
    cohort: Cohort,
    connectomes: np.ndarray,
    features: np.ndarray,
    *,
    ids_are_new: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return whether scans have the data, and whether they have an id, of the training.

    Parameters
    ----------
    model : classifier
        With an origin.
    cohort : Cohort
    connectomes, features : arrays
        Those of the cohort in the order of the model, before any step.
    ids_are_new : bool
        Whether equal ids belong to other people, so that no scan has a training id.

    Returns
    -------
    training_data_scan_mask, training_id_scan_mask : bool arrays of shape (n_scans,)
        All False for files of models that hold no hashes.
    """
    training_hash_record = model.origin_.facts.get("people")
    if not training_hash_record:
        training_scan_mask = np.zeros(cohort.n_scans, dtype=bool)
        return training_scan_mask, training_scan_mask
    salt = training_hash_record["salt"]
    own_connectomes = None if cohort.shares_connectome else connectomes
    scan_hash_set = set(training_hash_record["scans"])
    training_data_flags = [
        not scan_hash_set.isdisjoint(scan_hashes)
        for scan_hashes in list_hashes_by_scan(features, own_connectomes, salt)
    ]
    id_hash_set = set(training_hash_record["ids"])
    # Ids that were not given are row numbers.
    if ids_are_new or cohort.provenance.get("people") == NOT_GIVEN:
        id_hash_set = set()
    training_id_flags = [
        hash_person(person_id, salt) in id_hash_set for person_id in cohort.groups
    ]
    return np.array(training_data_flags), np.array(training_id_flags)


def _warn_of_training_people(
    cohort: Cohort, data_person_scan_mask: np.ndarray, training_id_scan_mask: np.ndarray
) -> None:
    """Warn how many people of a cohort were in the training.

    The masks are of scans of people with the data, and with an id, of the training.
    """
    person_ids = list(
        dict.fromkeys(cohort.groups[data_person_scan_mask | training_id_scan_mask])
    )
    if not person_ids:
        return
    id_only_scan_mask = training_id_scan_mask & ~data_person_scan_mask
    id_only_person_ids = list(dict.fromkeys(cohort.groups[id_only_scan_mask]))
    reason_text = "the data of a scan are the same"
    advice_text = ""
    if training_id_scan_mask.any():
        reason_text = "an ID or the data of a scan are the same"
    if id_only_person_ids:
        advice_text = (
            f" {len(id_only_person_ids)} of these people "
            f"{verb_form(len(id_only_person_ids), 'have')} the ID of a training person "
            f"but other data ({join_with_commas(id_only_person_ids, 3)}). If equal IDs "
            "belong to different people, for example because both studies number their "
            f"people from 1, give {option_text('ids_are_new', True)}. Only people with "
            "the same data are then marked."
        )
    warnings.warn(
        f"{len(person_ids)} of {len(set(cohort.groups))} people were used for "
        f"training the model ({join_with_commas(person_ids, 3)}), because "
        f"{reason_text}. "
        "Predictions for these people do not show how the model predicts new people."
        f"{advice_text}",
        stacklevel=3,
    )


def _count_and_warn_of_visit_like_ids(cohort: Cohort) -> tuple[int, int]:
    """Warn if ids of people may name visits; return these ids and people as numbers."""
    scan_names, n_people = find_visit_like_scans_and_n_people(cohort)
    if scan_names:
        warnings.warn(
            f"{visit_like_ids_text(len(scan_names), n_people)} "
            f"({join_with_commas(scan_names, 3)}). If the IDs name visits, each visit "
            "counts as a person, and intervals are too narrow. Write people and visits "
            f"in two columns, and name these with {option_text('id_column')} and "
            f"{option_text('session_column')}.",
            stacklevel=3,
        )
    return len(scan_names), n_people


def _list_scan_remarks(
    remark_lists: Sequence[Sequence[str]], mask_by_remark: Mapping[str, np.ndarray]
) -> list[str | None]:
    """Return the remarks that apply to each scan, or None where none does.

    `remark_lists` has remarks that differ between scans; "" where none applies.
    """
    remark_arrays = [np.array(remark_texts) for remark_texts in remark_lists]
    remark_arrays += [
        np.where(remark_mask, remark_text, "")
        for remark_text, remark_mask in mask_by_remark.items()
    ]
    return [
        scan_remark or None for scan_remark in join_texts_by_scan(remark_arrays, "; ")
    ]


def _find_covariate_range(cohort: Cohort, covariate_name: str) -> tuple[float, float]:
    """Return the smallest and largest value of a covariate; NaN for categories."""
    covariate_series = cohort.table[find_covariate_column(cohort.table, covariate_name)]
    if is_categorical_covariate(covariate_name, covariate_series):
        return np.nan, np.nan
    number_series = covariate_series.astype(float)
    return float(number_series.min()), float(number_series.max())


def read_new_people(
    model: PackedClassifier | str | Path,
    folder: str | Path | None = None,
    *,
    verbose: bool = False,
    **options: Any,
) -> Cohort:
    """Read new participants in the way in which the training data were read.

    Parameters
    ----------
    model : classifier, str or Path
        From :func:`brainlsap.model.load_model`, or its file.
    folder : str or Path, optional
        Study folder, or a cohort's file (.h5); None for arrays. No label is needed.
    verbose : bool
        Whether to show progress on standard error while a folder is read.
    **options
        Options of :func:`brainlsap.load_cohort`; by default those of the fit. `label`
        names a column that is copied to the predictions; it may have missing values.
        A model that was fitted with one connectome for all participants provides it.
        For arrays, options of :meth:`.Cohort.from_arrays`: `connectomes=` and
        `features=` in the order of the model's regions, and `covariates=` for which
        the fit was adjusted.

    Returns
    -------
    Cohort

    Raises
    ------
    ParameterError
        If an option contradicts the fit of the model.
    CohortError
        If the folder cannot be read.
    """
    label_name = None if folder is None else options.pop("label", None)
    cohort = read_people(model, folder, label_name, verbose=verbose, **options)
    return add_labels(cohort, label_name, "arrays" if folder is None else folder)


def read_people(
    model: PackedClassifier | str | Path,
    folder: str | Path | None,
    label_name: str | None,
    *,
    verbose: bool,
    **options: Any,
) -> Cohort:
    """Return the cohort of :func:`read_new_people` before the labels are added.

    The table of people is that with the column `label_name`, if a table has it.
    """
    model = load_fitted_model(model)
    if folder is not None:
        check_option_names(options, ("verbose",))
    stored_reading_options = ReadingOptions.from_jsonable(model.origin_.reading)
    _check_fixed_options(stored_reading_options, options)
    if folder is not None and is_cohort_file(folder):
        # The options of the fit are left out: `predict_people` compares them with
        # those stored in the cohort.
        return _leave_out_sparse_scans(model, read_study(folder, **options))
    stored_atlas_name = str(stored_reading_options.atlas)
    is_atlas_bundled = str(Path(stored_atlas_name)) in available_atlases()
    if not (is_atlas_bundled or "atlas" in options or Path(stored_atlas_name).exists()):
        raise ParameterError(
            f"the model was fitted with the atlas {Path(stored_atlas_name)}, which was "
            f"not found. Give its location with {option_text('atlas')}."
        )
    if folder is None:
        return _make_cohort_from_arrays(model, options)
    reading_options = make_reading_options(model, folder, **options)
    try:
        cohort = read_folder(
            folder, reading_options, copied_label_name=label_name, verbose=verbose
        )
    except RefusedStudyError as error:
        if not _uses_own_connectomes(model):
            raise
        findings = [
            _adapt_finding_to_model(
                finding, ignores_connectomes=_ignores_connectomes(model)
            )
            for finding in error.findings
        ]
        raise error.with_findings(folder, findings) from None
    return _leave_out_sparse_scans(model, cohort)


def _uses_own_connectomes(model: PackedClassifier) -> bool:
    """Return whether a model was fitted with a connectome for each scan."""
    return model.shared_connectome_ is None and model.preparation_.network is None


def _adapt_finding_to_model(
    finding: Finding, *, ignores_connectomes: bool = False
) -> Finding:
    """Return a finding whose advice fits a model of a connectome for each scan.

    One connectome for all participants, and another way to symmetrise than in the fit,
    are refused.
    """
    advised_option_name = finding.values.get("advised_option")
    if advised_option_name == "symmetrize":
        advice_text = "Symmetrise the matrix, for example by (W + W.T) / 2"
    elif advised_option_name == "connectome":
        advice_text = (
            "The model was fitted with a connectome for each scan. Name the files of "
            f"the connectomes with {option_text('pattern')}"
        )
        if ignores_connectomes:
            advice_text += (
                ". The chosen ridge regression does not use the connectome, so the "
                "connectomes do not affect the predictions. A model that requires no "
                "connectomes is one fitted to a study that was read with "
                f"{option_text('connectome', NO_CONNECTOME)}"
            )
    else:
        return finding
    return replace(finding, advice=advice_text, values={})


def make_reading_options(
    model: PackedClassifier, folder: str | Path, **options: Any
) -> ReadingOptions:
    """Return the options with which the folder of new people is read, without labels.

    They are those of the fit, except where `options` has others.
    """
    stored_reading_options = ReadingOptions.from_jsonable(model.origin_.reading)
    reading_options = DEFAULT_OPTIONS.change(
        **stored_reading_options.to_jsonable(), folder=folder, label=None
    )
    shared_connectome = model.shared_connectome_
    if shared_connectome is not None and shared_connectome.any():
        region_names = list(model.origin_.region_names)
        connectome_table = pd.DataFrame(shared_connectome, region_names, region_names)
        reading_options = reading_options.change(connectome=connectome_table)
    elif shared_connectome is not None:
        reading_options = reading_options.change(connectome=NO_CONNECTOME)
    return reading_options.change(**options)


def list_option_changes(
    model: PackedClassifier | str | Path,
    folder: str | Path,
    error: RefusedStudyError,
    **options: Any,
) -> list[dict[str, Any]]:
    """Return changes of options by which more of the new people can be read.

    Parameters
    ----------
    model : classifier, str or Path
        From :func:`brainlsap.model.load_model`, or its file.
    folder : str or Path
        Study folder that :func:`read_new_people` refused.
    error : RefusedStudyError
        Its error.
    **options
        The options that it was called with.

    Returns
    -------
    list of dict
        As of :func:`brainlsap.data.suggest_options`, without changes that contradict
        the fit: another feature, another atlas, or no connectomes. The label and
        `merge_classes` too, if the error names the column and the classes of the
        model.
    """
    model = load_fitted_model(model)
    reading_options = make_reading_options(model, folder, **options)
    nondefault_options = {
        option_name: option_value
        for option_name, option_value in vars(reading_options).items()
        if option_value is not getattr(ReadingOptions, option_name)
        and option_name != "folder"
    }
    nondefault_options["label"] = None
    suggested_options = suggest_options(
        make_refusal_check(Path(folder), error), nondefault_options
    )
    label_options: dict[str, Any] = {}
    for finding in error.findings:
        label_options |= {
            option_name: finding.values[option_name]
            for option_name in ("label", "merge_classes")
            if option_name in finding.values
        }
    allowed_changes = []
    for option_changes in suggested_options or [{}]:
        if option_changes.keys() & {"feature", "atlas"}:
            continue
        if option_changes.get("connectome") == NO_CONNECTOME:
            del option_changes["connectome"]
        allowed_changes.append(option_changes | label_options)
    return [option_changes for option_changes in allowed_changes if option_changes]


def _make_cohort_from_arrays(
    model: PackedClassifier, array_arguments: Mapping[str, Any]
) -> Cohort:
    """Return a cohort of arrays with the regions and features of a model."""
    model_origin = model.origin_
    stored_reading_options = ReadingOptions.from_jsonable(model_origin.reading)
    atlas = Atlas.from_names(model_origin.region_names, name=model_origin.atlas_name)
    cohort_arguments = {
        "labels": None,
        "label_name": model_origin.label_name,
        "atlas": stored_reading_options.atlas or atlas,
        "negative": stored_reading_options.negative or "refuse",
    }
    shared_connectome = model.shared_connectome_
    if shared_connectome is not None:
        has_weights = shared_connectome.any()
        cohort_arguments["connectomes"] = shared_connectome if has_weights else None
    cohort_arguments |= array_arguments
    for argument_name in ("connectomes", "features"):
        if argument_name not in cohort_arguments:
            raise ParameterError(
                "read_new_people requires the folder of a study, or arrays. The "
                f"argument {argument_name}= is missing; give an array with the "
                f"{len(model_origin.region_names)} regions in the order of the model."
            )
    is_named = isinstance(cohort_arguments["features"], Mapping)
    is_named = is_named or "feature_names" in cohort_arguments
    if len(model_origin.feature_names) > 1 and not is_named:
        raise ParameterError(
            "features= must be a dict with one array for each of: "
            f"{', '.join(model_origin.feature_names)}."
        )
    cohort_arguments.setdefault("feature_names", model_origin.feature_names)
    return Cohort.from_arrays(**cohort_arguments)


def add_labels(cohort: Cohort, label_name: str | None, folder: str | Path) -> Cohort:
    """Return the cohort with the labels of a column, if one is given."""
    if label_name is None:
        return cohort
    label_series = get_label_series(cohort, label_name)
    if label_series is None:
        covariates_text = join_with_commas(cohort.table.columns[len(KEY_COLUMNS) :], 8)
        raise ParameterError(
            f"{folder}: the label {label_name!r} is not a column of the participants "
            f"table; its columns are {covariates_text or 'none besides the ID'}. Name "
            f"the column with {option_text('label')}, or leave {option_text('label')} "
            "out."
        )
    label_series = label_series.fillna(UNLABELLED)
    # The labels are only copied to the predictions; their order does not matter.
    return replace(
        cohort,
        table=cohort.table.assign(label=label_series),
        classes=order_classes(label_series.tolist())[0],
        classes_ordered=True,
        label_name=label_name,
    )


def load_fitted_model(model: PackedClassifier | str | Path) -> PackedClassifier:
    """Return a model, from its file if a path is given; check that it has an origin."""
    model = load_model(model) if isinstance(model, str | Path) else model
    if not hasattr(model, "origin_"):
        raise ParameterError(
            "model must be a result of fit_model or load_model, or the path of a model "
            f"file; got {type(model).__name__}. Only the results of fit_model and "
            "load_model record to which data the model was fitted."
        )
    return model


def _check_fixed_options(
    stored_reading_options: ReadingOptions, new_value_by_option: Mapping[str, Any]
) -> None:
    """Raise if options contradict those with which the data of the fit were read."""
    stored_value_by_option = stored_reading_options.to_jsonable(FIXED_OPTIONS)
    for new_option_name, stored_value in stored_value_by_option.items():
        if new_option_name not in new_value_by_option:
            continue
        new_value = to_jsonable(new_value_by_option[new_option_name])
        # "refuse" changes nothing: data that need another value are not read.
        if new_value not in (stored_value, "refuse"):
            raise ParameterError(
                f"{option_name(new_option_name)} must be {stored_value!r}, because the "
                "training data were read with this value; got "
                f"{new_value_by_option[new_option_name]!r}. Leave "
                f"{option_text(new_option_name)} out to use {stored_value!r}."
            )


def predict_people(
    model: PackedClassifier | str | Path,
    cohort: Cohort,
    *,
    class_prior: ClassPrior | None = None,
    ids_are_new: bool = False,
) -> pd.DataFrame:
    """Predict the class of every scan; regions and features are matched by name.

    Parameters
    ----------
    model : classifier, str or Path
        From :func:`brainlsap.model.load_model`, or its file.
    cohort : Cohort
        New participants with the regions and features of the fit, in any order.
    class_prior : {"training", "balanced"} or dict of class to share, optional
        Class shares that the probabilities assume: those of the training scans, equal
        shares, or your own, which sum to 1. By default those of the model, which are
        "training" unless it was fitted with others.
    ids_are_new : bool
        Whether people with the id of a person of the training are other people, as in
        two studies that both count from 1.

    Returns
    -------
    DataFrame
        Columns scan, participant, session, predicted and `p_<class>` in order of
        stage; `set_90`, the classes that the person may have ("CN + SMC"), such that
        the set of about 90 % of new people of every class holds their class ("none"
        where a scan is unlike all classes; no column where the model gives no sets,
        and `attrs["no_sets"]` says why); label too, if the cohort has labels (None: not
        known); remark, why a prediction is unreliable: implausible values, values far
        from the training, missing regions, and `REMARKS` (None: nothing was noticed).
        `attrs["class_prior"]` holds the class shares that the probabilities assume,
        `attrs["side_notes"]` the values whose sides could not be verified,
        `attrs["swapped_values"]` the values whose sides may have been swapped in all
        scans, `attrs["swapped_scans"]` the scans in which the sides of a value may have
        been swapped, by value,
        `attrs["is_in_training"]` a bool for each scan, `attrs["n_visit_like_ids"]` the
        number of ids that may name visits, and `attrs["n_people_of_visits"]` the number
        of people to whom these visits belong.
        `predicted` does not depend on them. As in cross-validation it is the likeliest
        class under the class weights of the fit, so that rare classes are predicted,
        too; another class can have the largest probability.

    Raises
    ------
    CohortError
        If scans lack more than half of the values used in the fit.
    RegionNameError
        If regions are missing or unknown.
    ParameterError
        If a feature or a covariate is missing, a site was not in the training data and
        the model does not accept new sites, the shared connectome or the reading
        options differ from those of the fit, or `class_prior` does not have the classes
        of the model.

    Warns
    -----
    UserWarning
        For people who were in the training, ids of people that may name visits, scans
        with implausible values, features or
        covariates far from those of the fit, or many missing values, connectomes of
        another kind (unit, density, transformation, order of regions), and values whose
        differences between left and right are opposite to those of the fit, in all
        scans or in single scans.
    """
    check_cohort_given(cohort)
    model = load_fitted_model(model)
    model_origin = model.origin_
    prior_shares = _resolve_class_shares(model, class_prior)
    _check_fixed_options(
        ReadingOptions.from_jsonable(model_origin.reading),
        cohort.reading_options.to_jsonable(),
    )
    connectomes, features = match_connectomes_and_features(model, cohort)
    scan_names = cohort.table["scan"]
    _check_missing_values(model, features, scan_names)
    unlike_connectome_mask = _make_unlike_connectome_mask(
        model, connectomes, scan_names
    )
    swapped_value_names, side_notes = _list_swapped_names_and_side_notes(
        model, cohort, connectomes, features
    )
    # Where all scans are swapped, the warning above says so.
    scan_names_by_swapped_value = {
        value_name: swapped_scan_names
        for value_name, swapped_scan_names in _list_swapped_scans_by_value(
            model, cohort, connectomes, features, unlike_connectome_mask
        ).items()
        if value_name not in swapped_value_names
    }
    for swapped_sentence in list_swapped_scan_sentences(scan_names_by_swapped_value):
        warnings.warn(swapped_sentence, stacklevel=2)
    swapped_scan_mask = scan_names.isin(
        set().union(*scan_names_by_swapped_value.values())
    ).to_numpy()
    training_data_scan_mask, training_id_scan_mask = make_training_scan_masks(
        model, cohort, connectomes, features, ids_are_new=ids_are_new
    )
    # Other visits of a person of the training are no new person, either.
    data_person_scan_mask = np.isin(
        cohort.groups, cohort.groups[training_data_scan_mask]
    )
    training_scan_mask = data_person_scan_mask | training_id_scan_mask
    _warn_of_training_people(cohort, data_person_scan_mask, training_id_scan_mask)
    n_visit_like_ids, n_people_of_visits = _count_and_warn_of_visit_like_ids(cohort)
    measured_features = features
    features = _deconfound_features(model, cohort, features)
    deconfounder = _load_deconfounder(model)
    unharmonized_scan_mask = ~deconfounder.make_learned_site_mask(cohort.table)
    missing_covariate_scan_mask = np.zeros(cohort.n_scans, dtype=bool)
    for covariate_name, min_and_max_in_fit in model_origin.facts.get(
        "ranges", {}
    ).items():
        missing_covariate_scan_mask |= _make_missing_covariate_mask(
            cohort, covariate_name, min_and_max_in_fit
        )
    z_scores = model.scaler_.compute_z_scores(features)
    implausible_value_mask = _make_implausible_feature_mask(model, cohort)
    implausible_remarks = _list_value_remarks(
        model, measured_features, implausible_value_mask, "implausible {noun}"
    )
    _warn_of_values(
        scan_names, implausible_remarks, "Correct the values, or write n/a instead"
    )
    outlier_scan_mask = (np.abs(z_scores) > 3).mean(axis=(1, 2)) > MAX_OUTLIER_SHARE
    if outlier_scan_mask.any():
        warnings.warn(
            f"{outlier_scan_mask.sum()} of {len(scan_names)} scans are unlike the "
            f"training scans ({join_with_commas(scan_names[outlier_scan_mask], 5)}): "
            "more than a tenth of their values are over 3 standard deviations from the "
            "means of the training scans. The probabilities of these scans are "
            "unreliable.",
            stacklevel=2,
        )
    # Implausible values, and scans that are far as a whole, are named above.
    far_value_mask = (np.abs(z_scores) > MAX_REGION_DEVIATION) & ~implausible_value_mask
    far_value_mask[outlier_scan_mask] = False
    far_value_remarks = _list_value_remarks(
        model, measured_features, far_value_mask, "{noun} unlike the training"
    )
    _warn_of_values(
        scan_names,
        far_value_remarks,
        f"These values lie more than {MAX_REGION_DEVIATION:g} standard deviations from "
        "the means of the training scans. Check the images and the table",
    )
    missing_region_remarks = _list_missing_region_remarks(model, measured_features)
    X = pack_scans(connectomes, features)
    model_probabilities = model.predict_proba(X)
    class_probabilities = change_prior(
        model_probabilities, model.class_prior_, prior_shares
    )
    class_names = [str(class_name) for class_name in model.classes_]
    predicted_classes = np.array(class_names)[
        model.choose_class_indices(model_probabilities)
    ]
    ordered_classes = [
        class_name for class_name in model_origin.classes if class_name in class_names
    ]
    probability_table = pd.DataFrame(class_probabilities, columns=class_names)[
        ordered_classes
    ]
    prediction_table = cohort.table[["scan", "participant", "session"]].copy()
    prediction_table["predicted"] = predicted_classes
    prediction_table = prediction_table.join(probability_table.add_prefix("p_"))
    model_card = model_origin.facts.get("card") or {}
    reason_without_set = (
        missing_prediction_sets_reason(model_card)
        if model_card
        else "no prediction set can be computed, because the model has no model card"
    )
    if not reason_without_set:
        set_record = model_card["prediction_sets"]
        set_membership_mask = predict_set_membership(
            model, set_record, model.decision_scores(X)
        )
        set_class_names = np.array(set_record["classes"])
        prediction_table[SET_COLUMN] = [
            SET_JOINER.join(set_class_names[set_class_mask]) or EMPTY_SET
            for set_class_mask in set_membership_mask
        ]
    true_labels = list_merged_labels(model, cohort)
    if any(true_label != UNLABELLED for true_label in true_labels):
        prediction_table["label"] = [
            None if true_label == UNLABELLED else true_label
            for true_label in true_labels
        ]
    remark_masks = (
        outlier_scan_mask,
        unlike_connectome_mask,
        training_scan_mask,
        unharmonized_scan_mask,
        missing_covariate_scan_mask,
        swapped_scan_mask | bool(swapped_value_names),
    )
    prediction_table["remark"] = _list_scan_remarks(
        [implausible_remarks, far_value_remarks, missing_region_remarks],
        dict(zip(REMARKS, remark_masks, strict=True)),
    )
    share_by_class = dict(zip(class_names, prior_shares.tolist(), strict=True))
    prediction_table.attrs["class_prior"] = {
        class_name: share_by_class[class_name] for class_name in ordered_classes
    }
    prediction_table.attrs["no_sets"] = reason_without_set
    prediction_table.attrs["side_notes"] = side_notes
    prediction_table.attrs["swapped_values"] = swapped_value_names
    prediction_table.attrs["swapped_scans"] = scan_names_by_swapped_value
    prediction_table.attrs["is_in_training"] = training_scan_mask.tolist()
    prediction_table.attrs["n_visit_like_ids"] = n_visit_like_ids
    prediction_table.attrs["n_people_of_visits"] = n_people_of_visits
    prediction_table.attrs["n_unlike"] = {
        "features": int((outlier_scan_mask | far_value_mask.any(axis=(1, 2))).sum()),
        "connectomes": int(unlike_connectome_mask.sum()),
    }
    prediction_table.attrs["n_implausible"] = sum(map(bool, implausible_remarks))
    prediction_table.attrs["n_sparse"] = sum(map(bool, missing_region_remarks))
    prediction_table.attrs["n_unharmonized"] = int(unharmonized_scan_mask.sum())
    prediction_table.attrs["learned_sites"] = deconfounder.list_learned_sites(
        cohort.table
    )
    return prediction_table


def contribution_table(
    model: PackedClassifier | str | Path, cohort: Cohort
) -> pd.DataFrame:
    """Return the exact contribution of every region to the score of every scan.

    Parameters
    ----------
    model : LSAPRidgeClassifier, str or Path
        From :func:`brainlsap.model.load_model`, or its file; a ridge such as LSAP-R.
    cohort : Cohort
        As of :func:`predict_people`.

    Returns
    -------
    DataFrame
        scan, participant, region, target and contribution, see
        :meth:`.LSAPRidgeClassifier.region_contributions`. With ordered classes or two,
        `target` is "stage", and contributions are in units of the class number: above 0
        they point to later classes. Otherwise `target` is each class.

    Raises
    ------
    ParameterError
        If the model is not linear.
    """
    check_cohort_given(cohort)
    model = load_fitted_model(model)
    if not isinstance(model, LSAPRidgeClassifier):
        raise ParameterError(
            f"{type(model).__name__} is not linear, so exact contributions of "
            "regions do not exist. Fit LSAP-R or another ridge model."
        )
    connectomes, features = match_connectomes_and_features(model, cohort)
    features = _deconfound_features(model, cohort, features)
    contribution_array = model.region_contributions(pack_scans(connectomes, features))
    n_scans, _, n_targets = contribution_array.shape
    target_names = (
        ["stage"]
        if n_targets == 1
        else [str(class_name) for class_name in model.stages_]
    )
    row_multiindex = pd.MultiIndex.from_product(
        [range(n_scans), model.origin_.region_names, target_names],
        names=["row", "region", "target"],
    )
    region_contribution_table = pd.DataFrame(
        {"contribution": contribution_array.ravel()}, row_multiindex
    ).reset_index()
    scan_table = cohort.table[["scan", "participant"]].reset_index(drop=True)
    column_names = ["scan", "participant", "region", "target", "contribution"]
    return region_contribution_table.join(scan_table, on="row")[column_names]


def match_connectomes_and_features(
    model: PackedClassifier, cohort: Cohort
) -> tuple[np.ndarray, np.ndarray]:
    """Return connectomes and features in the order of the model; raise if they differ.

    Regions and features are matched by name.
    """
    model_origin = model.origin_
    region_indices = cohort.atlas.match_all(model_origin.region_names)
    missing_features = sorted(
        set(model_origin.feature_names) - set(cohort.feature_names)
    )
    if missing_features:
        raise ParameterError(
            f"the model requires the feature {missing_features[0]!r}, but the "
            f"features of the cohort are {', '.join(cohort.feature_names)}. Name the "
            f"feature with {option_text('feature')} (for arrays in Python: with "
            "feature_names=)"
        )
    feature_indices = [
        cohort.feature_names.index(feature_name)
        for feature_name in model_origin.feature_names
    ]
    connectomes = cohort.connectomes[:, region_indices][:, :, region_indices]
    shared_connectome = model.shared_connectome_
    if shared_connectome is not None and not np.array_equal(
        connectomes, np.broadcast_to(shared_connectome, connectomes.shape)
    ):
        raise ParameterError(
            "the model was fitted with one connectome for all participants, but the "
            "cohort has several connectomes. Leave "
            f"{option_text('connectome')} out, because the model file contains the "
            "connectome."
        )
    if _uses_own_connectomes(model) and cohort.shares_connectome:
        raise ParameterError(
            "the model was fitted with a connectome for every scan, but the cohort "
            "has one for all participants. Give each scan its own connectome."
        )
    features = cohort.features[:, region_indices][:, :, feature_indices]
    return connectomes, features


def _load_deconfounder(model: PackedClassifier) -> Deconfounder:
    """Return the steps that were fitted before the model; without effect if none."""
    stored_parameters = model.origin_.facts.get("steps")
    return (
        Deconfounder.from_dict(stored_parameters)
        if stored_parameters
        else Deconfounder()
    )


def _deconfound_features(
    model: PackedClassifier, cohort: Cohort, features: np.ndarray
) -> np.ndarray:
    """Return features after the steps that were fitted before the model."""
    if not model.origin_.facts.get("steps"):
        return features
    deconfounder = _load_deconfounder(model)
    deconfounder.check_people(cohort.table)
    return deconfounder.transform(features, cohort.table)


def _make_missing_covariate_mask(
    cohort: Cohort, covariate_name: str, min_and_max_in_fit: tuple[float, float]
) -> np.ndarray:
    """Warn if values of a covariate are missing or far outside the range of the fit.

    Returns which scans have no value.
    """
    new_minimum, new_maximum = _find_covariate_range(cohort, covariate_name)
    fit_minimum, fit_maximum = min_and_max_in_fit
    # Half of the range of the fit is tolerated below and above it.
    if (
        new_minimum < 1.5 * fit_minimum - fit_maximum / 2
        or new_maximum > 1.5 * fit_maximum - fit_minimum / 2
    ):
        warnings.warn(
            f"{covariate_name} ranges from {new_minimum:g} to {new_maximum:g} in the "
            f"new people, but from {fit_minimum:g} to {fit_maximum:g} in the fit. The "
            "units may be different",
            stacklevel=3,
        )
    covariate_series = cohort.table[find_covariate_column(cohort.table, covariate_name)]
    missing_value_mask = covariate_series.isna().to_numpy()
    if missing_value_mask.any():
        scans_text = join_with_commas(cohort.table["scan"][missing_value_mask], 5)
        warnings.warn(
            f"{missing_value_mask.sum()} of {len(missing_value_mask)} scans "
            f"{verb_form(missing_value_mask.sum(), 'have')} no {covariate_name} "
            f"({scans_text}). The mean over the training scans is used instead.",
            stacklevel=3,
        )
    return missing_value_mask


def list_merged_labels(model: PackedClassifier, cohort: Cohort) -> list[Any]:
    """Return the labels of scans, as classes of the model after merging in its fit."""
    model_origin = model.origin_
    originals_by_class = model_origin.facts.get("merged_classes") or {}
    class_by_original = {
        str(original_class): new_class
        for new_class, original_classes in originals_by_class.items()
        for original_class in original_classes
    }
    known_labels = [*class_by_original, *map(str, model_origin.classes)]
    class_by_label: dict[Any, Any] = {}
    for scan_label in {*cohort.y}:
        known_label = match_class_name(scan_label, known_labels)
        class_by_label[scan_label] = class_by_original.get(known_label, known_label)
    return [class_by_label[scan_label] for scan_label in cohort.y]


def _resolve_class_shares(
    model: PackedClassifier, class_prior: ClassPrior | None
) -> np.ndarray:
    """Return the class shares that the probabilities of new scans assume."""
    if class_prior is None:
        return model.class_prior_
    if isinstance(class_prior, Mapping):
        class_names = [str(class_name) for class_name in model.classes_]
        unknown_names = [
            str(class_name)
            for class_name in class_prior
            if match_class_name(class_name, class_names) not in class_names
        ]
        if unknown_names:
            raise ParameterError(
                f"{option_name('class_prior')} names {', '.join(unknown_names)}, but "
                f"the classes of the model are {', '.join(class_names)}. Give a "
                "share for each of these classes."
            )
    return resolve_class_prior(class_prior, model.classes_, model.training_shares_)


def make_model_card(
    model: PackedClassifier,
    cohort: Cohort,
    deconfounder: Deconfounder,
    model_name: str,
    scores: Evaluation | None = None,
) -> dict[str, Any]:
    """Describe a fitted model and the people of its training, as JSON allows.

    Parameters
    ----------
    model : classifier
        Fitted to `cohort`.
    cohort : Cohort
    deconfounder : Deconfounder
        Fitted to `cohort`.
    name : str
        Name of the model.
    scores : Evaluation, optional
        Cross-validation of a model of these settings on the same data.

    Raises
    ------
    ParameterError
        If `scores` is of other data, settings or steps.
    """
    set_record = None
    if isinstance(model, LSAPRidgeClassifier):
        set_record = fit_prediction_sets(model, cohort.y, cohort.groups)
    model_card = {
        "model": model_name,
        "classifier": type(model).__name__,
        "settings": model.get_params(),
        "fit_report": getattr(model, "fit_report_", {}),
        "label": cohort.label_name,
        "classes": cohort.classes,
        "classes_ordered": bool(cohort.classes_ordered),
        "features": cohort.feature_names,
        "atlas": cohort.atlas.name,
        "n_regions": cohort.n_rois,
        "training": make_case_mix(cohort),
        "is_simulated": cohort.truth is not None,
        "steps": {
            step_option: getattr(deconfounder, step_option)
            for step_option in STEP_OPTIONS
        },
        "scores": None
        if scores is None
        else _make_score_record(scores, model, cohort, deconfounder),
        "prediction_sets": set_record,
        "version": brainlsap.__version__,
    }
    return to_jsonable(model_card)


def _make_score_record(
    evaluation: Evaluation,
    model: PackedClassifier,
    cohort: Cohort,
    deconfounder: Deconfounder,
) -> dict[str, Any]:
    """Return the cross-validated scores of a model of these settings."""
    if evaluation.cohort.data_hash != data_hash(cohort):
        raise ParameterError(
            "this model was fitted to other data than the results given as "
            f"{option_text('scores')}. Give the results of `brainlsap run` on the same "
            "study with the same options."
        )
    value_by_step_option = evaluation.settings.get("steps") or {}
    for step_option in STEP_OPTIONS:
        fitted_setting = to_jsonable(getattr(deconfounder, step_option)) or []
        scored_setting = value_by_step_option.get(step_option) or []
        if fitted_setting != scored_setting:
            raise ParameterError(
                f"{step_option} was {scored_setting or 'not given'} in the run that "
                f"computed the scores, but is {fitted_setting or 'not given'} in this "
                "fit. Use the same value in the run and in the fit."
            )
    model_settings = to_jsonable(model.get_params())
    first_fit_table = evaluation.fits.drop_duplicates("model").set_index("model")
    model_names = [
        str(model_name)
        for model_name, settings_json in first_fit_table["settings"].items()
        if json.loads(settings_json) == model_settings
    ]
    if not model_names:
        raise ParameterError(
            f"no model in the results given as {option_text('scores')} has the same "
            "settings as the fitted model. The results contain "
            f"{', '.join(evaluation.models)}. Give results of a `brainlsap run` that "
            "includes the fitted model."
        )
    interval_table = bootstrap_score_table(evaluation, model_names[0]).set_index(
        "score"
    )
    shown_titles = title_by_score_name(
        len(evaluation.cohort.classes), is_ordered=evaluation.cohort.classes_ordered
    )
    return {
        "folds": evaluation.settings["n_folds"] * evaluation.settings["n_repeats"],
        "leave_out": evaluation.settings.get("leave_out"),
        "values": {
            score_name: interval_table.loc[
                score_name, ["estimate", "low", "high"]
            ].tolist()
            for score_name in main_score_names()
            if score_name in shown_titles
        },
    }


def hash_person(person_id: str, salt: str) -> str:
    """Return the keyed hash of a participant id.

    It keeps the id out of the file. Who has the file and a list of possible ids can
    still test each of them, because the key is in the file. The ids `sub-01` and `01`
    have the same hash, because tables and folders of one study write either.
    """
    return _compute_keyed_hash(
        str(person_id).strip().removeprefix("sub-").encode(), salt
    )


def list_person_hashes(person_ids: Iterable[str], salt: str) -> list[str]:
    """Return the hashes of participant ids (:func:`hash_person`), sorted, each once."""
    return sorted({hash_person(person_id, salt) for person_id in person_ids})


def list_hashes_by_scan(
    features: np.ndarray, connectomes: np.ndarray | None, salt: str
) -> list[list[str]]:
    """Return the keyed hashes of every scan's features and own connectome."""
    scan_hash_lists: list[list[str]] = []
    for scan_index, scan_values in enumerate(features):
        # All NaN are the same.
        hashed_values = np.where(np.isnan(scan_values), np.float64(np.nan), scan_values)
        scan_hashes = [
            _compute_keyed_hash(
                b"features" + hashed_values.astype("<f8").tobytes(), salt
            )
        ]
        if connectomes is not None:
            hashed_values = np.ascontiguousarray(connectomes[scan_index], dtype="<f4")
            scan_hashes.append(
                _compute_keyed_hash(b"connectome" + hashed_values.tobytes(), salt)
            )
        scan_hash_lists.append(scan_hashes)
    return scan_hash_lists


def _compute_keyed_hash(content_bytes: bytes, salt: str) -> str:
    """Return a keyed hash of 64 bits."""
    return hashlib.blake2b(
        content_bytes, key=bytes.fromhex(salt), digest_size=8
    ).hexdigest()


def make_salt(cohort: Cohort) -> str:
    """Return a key that differs from cohort to cohort, so that hashes cannot be joined.

    It depends on the data alone: the same fit gives the same file.
    """
    return hashlib.sha256(f"people {data_hash(cohort)}".encode()).hexdigest()[:32]


def get_model_card(model: PackedClassifier) -> dict[str, Any]:
    """Return the card of a stored model; raise if it lacks what this version needs."""
    model_card = getattr(model, "origin_", None) and model.origin_.facts.get("card")
    if not model_card:
        raise ParameterError(
            "the stored model has no model card. Fit the model with `brainlsap fit`, "
            "or with fit_model in Python.",
            kind=NO_CARD,
        )
    missing_names = list_missing_card_names(model_card)
    if missing_names:
        raise ParameterError(
            "the model was fitted by another version of brainlsap, and its model card "
            f"lacks what this version needs ({join_with_commas(missing_names, 5)}). "
            "Fit the model again.",
            kind=OTHER_VERSION,
            values={"missing": missing_names},
        )
    return dict(model_card)


def card_text(model: PackedClassifier) -> str:
    """Return the card of a stored model as text, one statement a line.

    Parameters
    ----------
    model : classifier
        From :func:`brainlsap.model.load_model`.

    Raises
    ------
    ParameterError
        If the model has no model card, or a card that lacks what this version needs.
    """
    model_card = get_model_card(model)
    training_facts = model_card["training"]
    order_text = (
        "in order of stage" if model_card["classes_ordered"] else "without an order"
    )
    shares_text = ", ".join(
        f"{class_name} {n}" for class_name, n in training_facts["classes"].items()
    )
    simulated_text = " (simulated)" if model_card["is_simulated"] else ""
    card_lines = [
        f"Model: {model_card['model']} ({model_card['classifier']}), brainlsap "
        f"{model_card['version']}",
        f"Predicts: {model_card['label']}, {order_text}: "
        f"{', '.join(model_card['classes'])}",
        f"Reads: {', '.join(model_card['features'])} of {model_card['n_regions']} "
        f"regions ({model_card['atlas']})",
        f"Trained on: {training_facts['n_people']} people, {training_facts['n_scans']} "
        f"scans{simulated_text}: {shares_text}",
    ]
    changed_value_by_option = get_changed_value_by_option(
        ReadingOptions.from_jsonable(model.origin_.reading), FIXED_OPTIONS
    )
    if changed_value_by_option:
        option_texts = [
            f"{option_name} = {option_value}"
            for option_name, option_value in changed_value_by_option.items()
        ]
        card_lines.insert(-1, f"Reads with: {'; '.join(option_texts)}")
    for quantity_name, number_facts in training_facts["numbers"].items():
        card_lines.append(
            f"  {quantity_name}: {number_facts['mean']:.4g} (s.d. "
            f"{number_facts['sd']:.3g}, {number_facts['n']} people)"
        )
    for covariate_kind, value_counts in training_facts["counts"].items():
        category_counts_text = ", ".join(
            f"{category} {n}" for category, n in value_counts.items()
        )
        card_lines.append(f"  {covariate_kind}: {category_counts_text}")
    card_lines += _list_choice_lines(model_card)
    card_lines += [f"Steps: {_adjustment_text(model_card['steps'])}"]
    card_lines += _list_score_lines(model_card)
    card_lines += [f"Prediction sets: {prediction_sets_text(model_card)}"]
    card_lines += [f"Not for: {'; '.join(UNINTENDED_USES)}", "Settings:"]
    card_lines += [
        f"  {setting_name}: {_setting_text(model, setting_name, setting_value)}"
        for setting_name, setting_value in model_card["settings"].items()
    ]
    return "\n".join(card_lines)


CHOICE_PHRASES = {
    "none": "ridge regression without the connectome. The connectome does not affect "
    "the predictions",
    "one": "ridge regression with one scale for all regions",
    "regions": "ridge regression with a scale for every region",
}
"""What a ridge regression with `scales="auto"` may have chosen in its fit."""


def _list_choice_lines(model_card: Mapping[str, Any]) -> list[str]:
    """Return the line with the ridge regression that the fit chose, if it chose one."""
    if model_card["settings"].get("scales") != "auto":
        return []
    chosen_scales = model_card["fit_report"].get("chosen")
    if chosen_scales not in CHOICE_PHRASES:
        return []
    return [f"Chosen: {CHOICE_PHRASES[chosen_scales]}"]


def _ignores_connectomes(model: PackedClassifier) -> bool:
    """Return whether a stored ridge regression was fitted without the connectome."""
    if not isinstance(model, LSAPRidgeClassifier):
        return False
    fit_report = (model.origin_.facts.get("card") or {}).get("fit_report") or {}
    return fit_report.get("chosen") == "none"


def _setting_text(
    model: PackedClassifier, setting_name: str, setting_value: object
) -> str:
    """Return the value of a setting, with the meaning of a connectome of None."""
    if setting_name != "connectome" or setting_value is not None:
        return str(setting_value)
    return "one for each scan" if _uses_own_connectomes(model) else "one for all scans"


def _adjustment_text(value_by_step_option: Mapping[str, Any]) -> str:
    """Return the steps before the model."""
    steps_text = ", then ".join(list_step_phrases(value_by_step_option)) or "none"
    # Files of earlier versions have no reference class.
    reference_class_name = value_by_step_option.get("reference_class")
    if reference_class_name is not None:
        steps_text += f", learned from {reference_class_name} alone"
    return steps_text


def _list_score_lines(model_card: Mapping[str, Any]) -> list[str]:
    """Return the lines of the scores."""
    score_record = model_card["scores"]
    if score_record is None:
        return ["Scores: not evaluated"]
    folds_text = f"{score_record['folds']} folds"
    if score_record["leave_out"]:
        folds_text += f", each fold tests one {score_record['leave_out']}"
    title_by_score = title_by_score_name(
        len(model_card["classes"]), is_ordered=model_card["classes_ordered"]
    )
    score_lines = [f"Scores: cross-validation of the training people ({folds_text})"]
    for score_name, (estimate, lower_bound, upper_bound) in score_record[
        "values"
    ].items():
        # Cards of other versions may have other scores.
        score_title = title_by_score.get(score_name, score_name.replace("_", " "))
        score_lines.append(
            f"  {score_title}: {estimate:.3f} [{lower_bound:.3f}, {upper_bound:.3f}]"
        )
    return score_lines


def prediction_sets_text(model_card: Mapping[str, Any]) -> str:
    """Return at what level the model gives prediction sets, or why it gives none."""
    reason_text = missing_prediction_sets_reason(model_card)
    return reason_text or f"{float(LEVEL):.0%}, by class"


def missing_prediction_sets_reason(model_card: Mapping[str, Any]) -> str:
    """Return the reason for which a model gives no prediction sets, or ""."""
    set_record = model_card.get("prediction_sets")
    if set_record is None:
        return (
            "no prediction set can be computed, because the fit of "
            f"{model_card['model']} does not predict left-out people; the fits of "
            "LSAP-R and other ridge models do"
        )
    class_names: Sequence[str] = set_record["classes"]
    small_class_texts = [
        f"{class_name} ({n_people})"
        for class_name, class_quantile, n_people in zip(
            class_names, set_record["quantiles"], set_record["n_people"], strict=True
        )
        if class_quantile is None
    ]
    if not small_class_texts:
        return ""
    return (
        "a 90% prediction set needs at least "
        f"{MIN_PEOPLE} training participants of every class, and the training had "
        f"fewer of {join_with_and(small_class_texts)}"
    )
