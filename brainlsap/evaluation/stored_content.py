"""What a stored evaluation must contain, so that this version can report it."""

from collections.abc import Collection, Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields
from pathlib import Path
from typing import Any

from brainlsap.data.reading_options import ReadingOptions
from brainlsap.exceptions import FileFormatError
from brainlsap.text import join_with_commas

OTHER_VERSION = "results of another version"
"""Kind of the error of results that this version cannot report."""

_CASE_MIX_KEYS = ("n_people", "n_scans", "classes", "numbers", "counts")
REQUIRED_KEYS_BY_RECORD: dict[str, tuple[str, ...]] = {
    "settings": (
        *("cv", "n_folds", "n_repeats", "random_state"),
        *("people_shared", "steps", "version"),
    ),
    "settings.steps": ("harmonize", "regress_out"),
    "settings.external": (
        *("card", "people", "case_mix", "calibration", "coverage", "no_sets"),
        *("n_unlike", "n_unharmonized", "learned_sites", "side_notes"),
        *("swapped_values", "ids_are_new", "n_excluded_training_people"),
    ),
    "settings.external.people": _CASE_MIX_KEYS,
    "settings.external.case_mix": (
        *("characteristic", "training", "test", "difference", "points"),
    ),
    "settings.external.calibration": (
        *("class", "people", "mean_probability", "frequency"),
        *("slope", "slope_low", "slope_high", "p_slope"),
        *("intercept", "intercept_low", "intercept_high", "p_intercept"),
    ),
    "settings.external.coverage": (
        *("class", "people", "coverage", "low", "high", "mean_size"),
    ),
    "settings.external.card": (
        *("model", "classifier", "settings", "fit_report", "label", "classes"),
        *("classes_ordered", "features", "atlas", "n_regions", "training"),
        *("is_simulated", "steps", "scores", "prediction_sets", "version"),
    ),
    "settings.external.card.training": _CASE_MIX_KEYS,
    "settings.external.card.steps": ("harmonize", "regress_out", "reference_class"),
    "settings.external.card.scores": ("folds", "leave_out", "values"),
}
"""Keys of the records of `evaluation.json`; of a list of records, those of each.

A record that an evaluation may lack is checked only if it is there.
"""

REQUIRED_COLUMNS_BY_TABLE: dict[str, tuple[str, ...]] = {
    "cohort": ("scan", "participant", "session", "label"),
    "predictions": (
        *("model", "repeat", "fold", "scan", "participant", "truth", "predicted"),
    ),
    "scales": ("model", "repeat", "fold", "start", "share", "region", "scale"),
    "fits": (
        *("model", "role", "repeat", "fold", "n_train", "n_test"),
        *("epochs", "failed", "settings", "warnings", "report"),
    ),
    "audit": ("check", "severity", "finding", "what_to_do", "scans"),
    "ranking": (
        *("model", "region", "rank", "rank_low", "rank_high", "moved", "scale"),
        *("relative_scale", "relative_low", "relative_high", "measured"),
    ),
    "region_tests": (
        *("region", "feature", "n_people", "n_permutations", "measured"),
        *("effect", "effect_low", "effect_high", "p_effect"),
        *("contrast", "contrast_low", "contrast_high", "contrast_z", "p_contrast"),
    ),
    "replicability": (
        *("statistic", "n_halves", "spearman", "spearman_low", "spearman_high"),
    ),
    "connectome_gain": (
        *("connectome", "n_draws", "scale"),
        *("evidence_gain", "evidence_gain_low", "evidence_gain_high"),
        *("evidence_lead", "evidence_lead_low", "evidence_lead_high"),
        *("error_gain", "error_gain_low", "error_gain_high"),
        *("error_lead", "error_lead_low", "error_lead_high"),
    ),
    "learning_curve": (
        *("model", "share", "n_train_people", "estimate", "low", "high"),
        *("slope", "slope_low", "slope_high", "answer"),
    ),
    "truth": ("region", "seed", "effect"),
    "class_features": ("class", "feature", "region", "people", "mean", "sd"),
    "regions": ("name", "hemisphere", "structure", "lobe", "x", "y", "z"),
    "left_out": ("scan", "participant", "session", "fate", "reason"),
}
"""Columns of the tables of an evaluation, without those of single classes.

A table that an evaluation may lack is checked only if it is there.
"""

JOINT_COLUMNS_BY_TABLE: dict[str, tuple[tuple[str, ...], ...]] = {
    "audit": (("covariate", "balanced_accuracy"),),
    "ranking": (
        ("p_effect", "p_contrast", "n_permutations"),
        ("fit_scale", "fit_low", "fit_high"),
    ),
    "class_features": (("mean_factor", "difference_factor"),),
}
"""Columns that a table may lack only together."""

REQUIRED_TABLES = (
    *("cohort", "predictions", "scales", "fits", "class_features", "regions"),
)


def check_stored_content(
    stored_record: Mapping[str, Any], cohort_class: type, folder: Path
) -> None:
    """Raise if results lack what this version needs, or have what it does not know.

    `stored_record` is the content of `evaluation.json`; `cohort_class` the class of its
    summary of the cohort.
    """
    missing_names = _list_missing_names(stored_record)
    stored_cohort = stored_record["cohort"]
    cohort_field_set = {
        # Earlier versions stored findings as texts.
        "notes",
        *(cohort_field.name for cohort_field in fields(cohort_class)),
    }
    missing_names += [
        f"cohort.{cohort_field.name}"
        for cohort_field in fields(cohort_class)
        if cohort_field.default is NO_DEFAULT
        and cohort_field.default_factory is NO_DEFAULT
        and cohort_field.name not in stored_cohort
    ]
    unknown_names = _list_unknown_names("cohort", stored_cohort, cohort_field_set)
    unknown_names += _list_unknown_names(
        "cohort.reading_options",
        stored_cohort.get("reading_options") or {},
        {option_field.name for option_field in fields(ReadingOptions)},
    )
    difference_texts = []
    if missing_names:
        difference_texts.append(
            f"lack what this version needs ({join_with_commas(missing_names, 5)})"
        )
    if unknown_names:
        difference_texts.append(
            "contain what this version does not know "
            f"({join_with_commas(unknown_names, 5)})"
        )
    if not difference_texts:
        return
    stored_settings = stored_record.get("settings", {})
    command_name = "evaluate" if "external" in stored_settings else "run"
    raise FileFormatError(
        "the stored results were written by another version of brainlsap, and "
        f"{' and '.join(difference_texts)}. Run `brainlsap {command_name}` again",
        path=folder,
        kind=OTHER_VERSION,
        values={"missing": missing_names, "unknown": unknown_names},
    )


def list_missing_card_names(model_card: Mapping[str, Any]) -> list[str]:
    """Return the keys that the card of a stored model lacks."""
    card_name = "settings.external.card"
    missing_names = _list_missing_keys({"settings": {"external": {"card": model_card}}})
    return [
        name.removeprefix(f"{card_name}.")
        for name in missing_names
        if name.startswith(card_name)
    ]


def _list_missing_keys(stored_record: Mapping[str, Any]) -> list[str]:
    """Return the keys that the records of `evaluation.json` lack."""
    return [
        f"{record_name}.{key}"
        for record_name, required_keys in REQUIRED_KEYS_BY_RECORD.items()
        for inner_record in _list_inner_records(stored_record, record_name)
        for key in required_keys
        if key not in inner_record
    ]


def _list_missing_names(stored_record: Mapping[str, Any]) -> list[str]:
    """Return the keys, tables and columns that results lack."""
    missing_names = _list_missing_keys(stored_record)
    stored_settings = stored_record.get("settings", {})
    # Both are of `run_study`; the report names the compared covariates.
    if "n_permutations" in stored_settings and "covariates" not in stored_settings:
        missing_names.append("settings.covariates")
    columns_by_table = stored_record["columns"]
    for table_name, required_columns in REQUIRED_COLUMNS_BY_TABLE.items():
        if table_name in columns_by_table:
            stored_columns = columns_by_table[table_name].keys()
            needed_columns = list(required_columns)
            for joint_columns in JOINT_COLUMNS_BY_TABLE.get(table_name, ()):
                if not stored_columns.isdisjoint(joint_columns):
                    needed_columns += joint_columns
            missing_names += [
                f"{table_name}.tsv: column {column_name}"
                for column_name in needed_columns
                if column_name not in stored_columns
            ]
        elif table_name in REQUIRED_TABLES:
            missing_names.append(f"{table_name}.tsv")
    return list(dict.fromkeys(missing_names))


def _list_inner_records(
    stored_record: Mapping[str, Any], record_name: str
) -> list[Mapping[str, Any]]:
    """Return the record of this name, such as "settings.steps", or its rows; or []."""
    inner_value: Any = stored_record
    for key in record_name.split("."):
        inner_value = inner_value.get(key) if isinstance(inner_value, Mapping) else None
    if isinstance(inner_value, list):
        return inner_value
    return [] if inner_value is None else [inner_value]


def _list_unknown_names(
    record_name: str, inner_record: Mapping[str, Any], known_key_set: Collection[str]
) -> list[str]:
    """Return the names of keys of a record that are not among the known ones."""
    return [f"{record_name}.{key}" for key in inner_record if key not in known_key_set]
