"""The record of an evaluation: tables, a summary of the cohort, and settings."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, field, fields
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.arrays import to_jsonable
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import Cohort
from brainlsap.data.flow import flow_table, left_out_table
from brainlsap.data.reading_options import ReadingOptions
from brainlsap.evaluation.scores import (
    Predictions,
    fold_scores,
    main_score_names,
    title_by_score_name,
    weighted_scores_by_name,
)
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.files import fill_folder
from brainlsap.findings import Finding, make_findings
from brainlsap.text import count_text, join_with_commas

TABLES = (
    *("predictions", "scales", "fits", "audit"),
    *("ranking", "region_tests", "replicability", "connectome_gain"),
    "learning_curve",
)
"""Tables of an evaluation that are saved."""

COHORT_TABLES = ("truth", "class_features", "regions", "left_out")
"""Tables of the cohort's summary that are saved, besides the table of scans."""

# Largest difference between probabilities that are the same but for rounding.
_SAME_PROBABILITY = 1e-4
# Longest line of the table that the text of an evaluation shows.
_MAX_LINE_LENGTH = 100
MISSING = "n/a"
TSV: dict[str, Any] = {"sep": "\t", "lineterminator": "\n"}
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
        *("n_unlike", "n_implausible", "n_sparse", "feature_shifts"),
        *("n_visit_like_ids", "n_people_of_visits"),
        *("n_unharmonized", "learned_sites", "side_notes"),
        *("swapped_values", "ids_are_new", "n_excluded_training_people"),
        "is_same_study",
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
    "class_features": (
        *("class", "feature", "region", "people", "missing_scans", "mean", "sd"),
    ),
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


@dataclass(frozen=True, eq=False, repr=False)
class CohortSummary:
    """Everything that an evaluation stores of a cohort, without its arrays.

    Parameters
    ----------
    table : DataFrame
        One row per scan: scan, participant, session, label, then covariates.
    classes : tuple of str
        The labels.
    classes_ordered : bool
        Whether they are stages in this order.
    label_name, atlas_name : str
        Name of the label, and of the atlas.
    region_names : tuple of str
        Of length n_rois.
    measured : bool array of shape (n_rois,)
        Whether any scan has any feature of a region.
    feature_names : tuple of str
        That of the cohort.
    findings : tuple of Finding
        Those of the cohort; texts are plain notes.
    provenance : dict
        That of the cohort.
    reading_options : ReadingOptions
        Those of the cohort.
    truth : DataFrame or None
        Planted regions of a simulated cohort.
    data_hash : str
        SHA-256 of arrays and labels.
    class_features : DataFrame or None
        Every feature of every region by class: feature, region, class, people, mean
        and sd over people (the mean of a person's scans of that class counts), and
        missing_scans, the number of scans without the value. Of
        adjusted features also mean_factor and difference_factor: how much the
        adjustment raises the variance of the mean, and of its difference from the
        first class.
    regions : DataFrame or None
        Those of the atlas, for figures of an atlas that is not on this disk.
    atlas_folder : str or None
        Folder of the atlas, with its surfaces.
    left_out : DataFrame or None
        That of the cohort; None in evaluations of earlier versions.
    """

    table: pd.DataFrame
    classes: tuple[str, ...]
    classes_ordered: bool
    label_name: str
    atlas_name: str
    region_names: tuple[str, ...]
    measured: np.ndarray
    feature_names: tuple[str, ...]
    findings: Sequence[Finding | str] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    truth: pd.DataFrame | None = None
    data_hash: str = ""
    class_features: pd.DataFrame | None = None
    regions: pd.DataFrame | None = None
    atlas_folder: str | None = None
    reading_options: ReadingOptions = field(default_factory=ReadingOptions)
    left_out: pd.DataFrame | None = None

    @classmethod
    def from_cohort(
        cls,
        cohort: Cohort,
        features: np.ndarray,
        variance_factor_table: pd.DataFrame | None,
    ) -> "CohortSummary":
        """Summarise a cohort, and these features of it by class.

        `variance_factor_table`: by class, of the variance of means and of differences.
        """
        class_features = make_class_mean_sd_table(
            cohort, features, variance_factor_table
        )
        atlas_folder = cohort.atlas.folder
        return cls(
            table=cohort.table,
            classes=cohort.classes,
            classes_ordered=bool(cohort.classes_ordered),
            label_name=cohort.label_name,
            atlas_name=cohort.atlas.name,
            region_names=cohort.region_names,
            measured=np.asarray(cohort.measured.any(axis=(0, 2))),
            feature_names=cohort.feature_names,
            findings=cohort.findings,
            provenance=cohort.provenance,
            reading_options=cohort.reading_options,
            truth=cohort.truth,
            data_hash=data_hash(cohort),
            class_features=class_features,
            regions=cohort.atlas.regions,
            atlas_folder=str(atlas_folder.resolve()) if atlas_folder else None,
            left_out=cohort.left_out,
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "findings", make_findings(self.findings))

    @property
    def notes(self) -> tuple[str, ...]:
        """The findings as text."""
        return tuple(map(str, self.findings))

    def __repr__(self) -> str:
        return (
            f"{self.n_scans} scans of {self.n_participants} people, "
            f"{len(self.region_names)} regions ({self.atlas_name}), "
            f"{self.label_name}: {', '.join(self.classes)}"
        )

    @property
    def n_scans(self) -> int:
        """Number of scans."""
        return len(self.table)

    @property
    def n_participants(self) -> int:
        """Number of people."""
        return int(self.table["participant"].nunique())

    @property
    def atlas(self) -> Atlas | None:
        """The atlas: by its name, by its path, or made of its regions; else None."""
        for atlas_name_or_path in (
            self.atlas_name,
            self.reading_options.atlas,
            self.atlas_folder,
        ):
            with suppress(ValueError):  # unknown, or unreadable
                atlas = load_atlas(str(atlas_name_or_path))
                if set(self.region_names) <= set(atlas.names):
                    return atlas
        if self.regions is None:
            return None
        # A saved table has unknown lobes as missing values.
        return Atlas(self.atlas_name, self.regions.fillna({"lobe": MISSING}))

    def flow(self) -> pd.DataFrame:
        """Return the numbers of people and scans by fate, as :func:`.flow_table`."""
        left_out = left_out_table() if self.left_out is None else self.left_out
        return flow_table(self.table, left_out)

    def class_counts(self) -> pd.DataFrame:
        """Return class, participants and scans, one row per class."""
        return self._class_counts.copy()

    @cached_property
    def _class_counts(self) -> pd.DataFrame:
        label_groups = self.table.groupby("label")["participant"]
        class_count_table = label_groups.agg(participants="nunique", scans="size")
        class_count_table = class_count_table.reindex(list(self.classes), fill_value=0)
        return class_count_table.rename_axis("class").reset_index()


def data_hash(cohort: Cohort) -> str:
    """Return the SHA-256 of a cohort's arrays and labels."""
    sha256_hash = hashlib.sha256()
    n_matrices = 1 if cohort.shares_connectome else cohort.n_scans
    for data_array in (cohort.connectomes[:n_matrices], cohort.features):
        sha256_hash.update(repr(data_array.shape).encode())
        for scan_array in data_array:
            sha256_hash.update(np.ascontiguousarray(scan_array).data)
    sha256_hash.update("\x00".join(map(str, cohort.y)).encode())
    return sha256_hash.hexdigest()


def make_class_mean_sd_table(
    cohort: Cohort,
    features: np.ndarray,
    variance_factor_table: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return people, missing scans, mean and s.d. of features by region and class.

    `features` and `variance_factor_table` are those of
    :func:`.adjust_features_with_factor_table`.
    """
    value_matrix = features.transpose(0, 2, 1).reshape(cohort.n_scans, -1)
    value_table = pd.DataFrame(value_matrix.astype(float))
    person_mean_table = value_table.groupby([cohort.groups, cohort.y]).mean()
    class_groups = person_mean_table.groupby(level=1)
    class_count_table = class_groups.count()
    # A row per class, feature and region, in the order of the columns above.
    row_multiindex = pd.MultiIndex.from_product(
        [class_count_table.index, cohort.feature_names, cohort.region_names],
        names=["class", "feature", "region"],
    )
    summary_table = row_multiindex.to_frame(index=False)
    summary_table["people"] = class_count_table.to_numpy().ravel()
    missing_count_table = value_table.isna().groupby(cohort.y).sum()
    summary_table["missing_scans"] = missing_count_table.to_numpy().ravel()
    summary_table["mean"] = class_groups.mean().to_numpy().ravel()
    summary_table["sd"] = class_groups.std().to_numpy().ravel()
    if variance_factor_table is None:
        return summary_table
    return summary_table.merge(
        variance_factor_table, left_on="class", right_index=True, how="left"
    )


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Results of models that were compared on the same folds of one cohort.

    Parameters
    ----------
    predictions : DataFrame
        Every out-of-fold prediction: model, repeat, fold (both from 1), scan,
        participant, truth, predicted; then columns `p_<class>` with probabilities and
        `d_<class>` with decision values, NaN for models that do not give them. A failed
        fit has no rows.
    scales : DataFrame
        model, repeat, fold, start ("mean", "1", "2" ...; "low" and "high": the 95%
        interval), share (of the training: 1 is the end; 0, 0.25, 0.5 and 0.75 for
        "mean" only), region, scale.
    fits : DataFrame
        model, role ("model", "baseline", "control"), repeat, fold, n_train, n_test
        (scans), n_train_people, seconds_fit (ridges that differ in `scales` only, and
        the network that starts from one of them, share those of the ridges),
        seconds_predict, epochs, failed (why, "" where it did not), settings, warnings
        and report (JSON).
    cohort : CohortSummary
        The scans, people and regions.
    settings : dict
        Everything that changes a number, in types of JSON.
    audit : DataFrame, optional
        Of :func:`audit`.
    ranking : DataFrame, optional
        Of :func:`rank_regions`, by the model in its column `model`: the ridge with a
        scale per region where it was run, else the first model with scales.
        `rank_regions(evaluation, name)` ranks by another.
    region_tests : DataFrame, optional
        Of :func:`compare_regions`: effect and contrast of every region and feature.
    replicability : DataFrame, optional
        Of :func:`replicability_table`: how well effects, contrasts and scales agree
        between halves of the people.
    connectome_gain : DataFrame, optional
        The table of :class:`ConnectomeGain`, of :func:`connectome_gain`.
    learning_curve : DataFrame, optional
        Of :func:`learning_curve`: the score by the number of people in training.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.evaluation import cross_validate
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
    region_tests: pd.DataFrame | None = None
    replicability: pd.DataFrame | None = None
    connectome_gain: pd.DataFrame | None = None
    learning_curve: pd.DataFrame | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Names of all models, baselines and controls, in order."""
        return tuple(self.fits["model"].unique())

    @property
    def baselines(self) -> tuple[str, ...]:
        """Names of the baselines, in order."""
        return tuple(self.fits.loc[self.fits["role"] == "baseline", "model"].unique())

    @cached_property
    def twin_of_model(self) -> dict[str, str]:
        """Models with the same predictions as another in every fold, and that other.

        For example "LSAP-R" where it chose one ridge throughout, or Exact where an
        expansion is as good. A model may be the same as a baseline or control, never
        the other way round.
        """
        sorted_model_names = self.fits.sort_values("role", kind="stable")[
            "model"
        ].unique()
        table_by_model = {
            model_name: prediction_table.reset_index(drop=True)
            for model_name, prediction_table in self.predictions.groupby("model")
        }
        first_by_model: dict[str, str] = {}
        for model_name in sorted_model_names:
            if model_name not in table_by_model:
                continue
            first_by_model[model_name] = model_name
            for candidate_name in [*first_by_model.values()][:-1]:
                if _have_equal_predictions(
                    table_by_model[model_name],
                    table_by_model[candidate_name],
                ):
                    first_by_model[model_name] = candidate_name
                    break
        return {
            model_name: twin_name
            for model_name, twin_name in first_by_model.items()
            if model_name != twin_name
        }

    def have_same_predictions(self, first_model: str, second_model: str) -> bool:
        """Return whether two models have the same predictions in every fold."""
        twin_by_model = self.twin_of_model
        return twin_by_model.get(first_model, first_model) == twin_by_model.get(
            second_model, second_model
        )

    def scores(self) -> pd.DataFrame:
        """Return one row per model and fold: model, repeat, fold, n_test, each score.

        A fit that failed has NaN for every score.
        """
        return self._scores.copy()

    @cached_property
    def _scores(self) -> pd.DataFrame:
        key_columns = ["model", "repeat", "fold"]
        score_names = fold_scores()
        score_records = []
        for fold_key, prediction_table in self.predictions.groupby(key_columns):
            unit_weights = np.ones((1, len(prediction_table)))
            values_by_score = weighted_scores_by_name(
                self.as_predictions(prediction_table), unit_weights
            )
            score_records.append(
                (
                    *fold_key,
                    *(values_by_score[score_name].item() for score_name in score_names),
                )
            )
        score_table = pd.DataFrame(score_records, columns=[*key_columns, *score_names])
        score_table = score_table.astype(dict.fromkeys(score_names, float))
        return self.fits[[*key_columns, "n_test"]].merge(
            score_table, "left", key_columns
        )

    def as_predictions(self, prediction_table: pd.DataFrame) -> Predictions:
        """Return rows of the table of predictions as arrays, classes as codes."""
        class_names = pd.Index(self.cohort.classes)
        class_probabilities = _get_complete_matrix_or_none(
            prediction_table, [f"p_{class_name}" for class_name in class_names]
        )
        decision_values = _get_complete_matrix_or_none(
            prediction_table, [f"d_{class_name}" for class_name in class_names]
        )
        return Predictions(
            actual_codes=class_names.get_indexer(prediction_table["truth"]),
            predicted_codes=class_names.get_indexer(prediction_table["predicted"]),
            class_probabilities=class_probabilities,
            ranking_scores=decision_values
            if class_probabilities is None
            else class_probabilities,
            fold_numbers=_compute_fold_numbers(
                prediction_table["repeat"], prediction_table["fold"]
            ),
            n_classes=len(class_names),
            is_ordered=self.cohort.classes_ordered,
        )

    def class_priors(self) -> dict[str, Any]:
        """Return the class shares that the probabilities of each model assume.

        The `class_prior` of models that have one and give probabilities: "training",
        "balanced", or shares by class. Scores of probabilities (Brier score,
        calibration) are computed with it.
        """
        probability_columns = [f"p_{class_name}" for class_name in self.cohort.classes]
        complete_row_mask = self.predictions[probability_columns].notna().all(axis=1)
        probability_model_mask = complete_row_mask.groupby(
            self.predictions["model"]
        ).any()
        prior_by_model: dict[str, Any] = {}
        for model, model_fits in self.fits.groupby("model", sort=False):
            model_settings = json.loads(model_fits["settings"].iloc[0])
            for setting_name, class_prior in model_settings.items():
                is_class_prior_setting = (
                    setting_name.rsplit("__")[-1] == "class_prior"
                    and class_prior is not None
                )
                if is_class_prior_setting and probability_model_mask.get(model, False):
                    prior_by_model[str(model)] = class_prior
        return prior_by_model

    def summary(self) -> pd.DataFrame:
        """Return model, role, score, mean and s.d. over folds, n_folds, n_failed.

        `n_folds` counts the folds in which the score has a value. If a fit failed, the
        mean is NaN: the mean over the other folds would be a mean over selected folds.
        """
        return self._summary.copy()

    @cached_property
    def _summary(self) -> pd.DataFrame:
        score_table = self._scores.melt(
            ["model"], fold_scores(), var_name="score", value_name="value"
        )
        score_value_groups = score_table.groupby(["model", "score"], sort=False)[
            "value"
        ]
        summary_table = score_value_groups.agg(mean="mean", sd="std", n_folds="count")
        summary_table = summary_table.reindex(self.models, level="model").reset_index()
        fit_groups = self.fits.assign(failed=self.fits["failed"] != "").groupby("model")
        summary_table.insert(
            1, "role", summary_table["model"].map(fit_groups["role"].first())
        )
        summary_table["n_failed"] = summary_table["model"].map(
            fit_groups["failed"].sum()
        )
        summary_table.loc[summary_table["n_failed"] > 0, ["mean", "sd"]] = np.nan
        return summary_table

    def _overview_line_and_table(self) -> tuple[str, pd.DataFrame]:
        """Return a line of what was evaluated, and mean and s.d. of the main scores."""
        summary_table = self.summary().set_index(["model", "score"])
        n_folds, n_repeats = self.settings["n_folds"], self.settings["n_repeats"]
        is_one_fold = n_folds * n_repeats == 1  # There is no s.d. over folds.
        score_text_series = pd.Series(
            [
                f"{summary_row.mean:.3f}"
                if is_one_fold
                else f"{summary_row.mean:.3f} ± {summary_row.sd:.3f}"
                for summary_row in summary_table.itertuples()
            ],
            summary_table.index,
        )
        title_by_score = title_by_score_name(
            len(self.cohort.classes), is_ordered=self.cohort.classes_ordered
        )
        title_by_main_score = {
            score_name: title_by_score[score_name]
            for score_name in main_score_names()
            if score_name in title_by_score
        }
        score_text_table = score_text_series.unstack().reindex(self.models)[
            list(title_by_main_score)
        ]
        score_text_table = score_text_table.rename(
            columns=title_by_main_score
        ).rename_axis(index=None, columns=None)
        repeats_text = f", {n_repeats} times" if n_repeats > 1 else ""
        heading_text = f"{self.cohort!r}; {count_text(n_folds, 'fold')}{repeats_text}"
        if self.ranking is not None:
            heading_text += f"; regions ranked by {self.ranking['model'].iloc[0]}"
        return heading_text, score_text_table

    def __repr__(self) -> str:
        heading_text, score_text_table = self._overview_line_and_table()
        table_text = score_text_table.to_string(line_width=_MAX_LINE_LENGTH)
        return f"{heading_text}\n{table_text}"

    def _repr_html_(self) -> str:
        heading_text, score_text_table = self._overview_line_and_table()
        return f"<p>{escape(heading_text)}</p>{score_text_table.to_html(border=0)}"

    def save(self, folder: str | Path) -> Path:
        """Write tables (TSV) and the rest (`evaluation.json`), whole or not at all.

        Parameters
        ----------
        folder : str or Path
            New, empty, or with an evaluation, which is replaced. The files name people.

        Returns
        -------
        Path
        """
        folder = Path(folder)
        table_by_name = {table_name: getattr(self, table_name) for table_name in TABLES}
        table_by_name |= {
            table_name: getattr(self.cohort, table_name) for table_name in COHORT_TABLES
        }
        table_by_name["cohort"] = self.cohort.table
        dtypes_by_table = {
            table_name: {
                str(column_name): str(column_dtype)
                for column_name, column_dtype in table.dtypes.items()
            }
            for table_name, table in table_by_name.items()
            if table is not None
        }
        value_by_cohort_field = {
            cohort_field.name: getattr(self.cohort, cohort_field.name)
            for cohort_field in fields(self.cohort)
        }
        value_by_cohort_field |= dict.fromkeys(("table", *COHORT_TABLES))
        findings = make_findings(self.cohort.findings)
        value_by_cohort_field["findings"] = [
            finding.to_jsonable() for finding in findings
        ]
        value_by_cohort_field["reading_options"] = (
            self.cohort.reading_options.to_jsonable()
        )
        json_content = to_jsonable(
            {
                "columns": dtypes_by_table,
                "cohort": value_by_cohort_field,
                "settings": self.settings,
            }
        )
        has_evaluation = (folder / "evaluation.json").is_file()
        with fill_folder(folder, replace=has_evaluation) as partial_folder:
            for table_name in dtypes_by_table:
                table_path = partial_folder / f"{table_name}.tsv"
                table_by_name[table_name].to_csv(
                    table_path, index=False, na_rep=MISSING, **TSV
                )
            (partial_folder / "evaluation.json").write_text(
                json.dumps(json_content, indent=1, ensure_ascii=False) + "\n",
                encoding="utf-8",
            )
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> "Evaluation":
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        folder : str or Path
            Folder that :meth:`save` wrote.

        Returns
        -------
        Evaluation

        Raises
        ------
        FileFormatError
            If a file is missing or unreadable, or was written by a version whose
            evaluations lack something that this version needs.
        """
        folder = Path(folder)
        try:
            json_text = (folder / "evaluation.json").read_text(encoding="utf-8")
            json_content = json.loads(json_text)
            check_stored_content(json_content, folder)
            table_by_name = {
                table_name: pd.read_csv(
                    folder / f"{table_name}.tsv",
                    dtype={
                        column_name: column_dtype
                        if column_dtype == "bool"
                        else "object"
                        for column_name, column_dtype in dtype_by_column.items()
                    },
                    keep_default_na=False,
                    na_values=[MISSING],
                    **TSV,
                ).astype(dtype_by_column)  # numbers from text keep their last bit
                for table_name, dtype_by_column in json_content["columns"].items()
            }
            value_by_cohort_field = json_content["cohort"] | {
                "table": table_by_name.pop("cohort")
            }
            value_by_cohort_field |= {
                table_name: table_by_name.pop(table_name, None)
                for table_name in COHORT_TABLES
            }
            for field_name, stored_value in value_by_cohort_field.items():
                value_by_cohort_field[field_name] = (
                    tuple(stored_value)
                    if isinstance(stored_value, list)
                    else stored_value
                )
            # Evaluations of earlier versions have texts.
            jsonable_findings = value_by_cohort_field.pop(
                "findings", None
            ) or value_by_cohort_field.pop("notes", ())
            value_by_cohort_field["findings"] = [
                Finding.from_jsonable(jsonable_finding)
                for jsonable_finding in jsonable_findings
            ]
            value_by_cohort_field["reading_options"] = ReadingOptions.from_jsonable(
                value_by_cohort_field.pop("reading_options", None)
            )
            value_by_cohort_field["measured"] = np.array(
                value_by_cohort_field["measured"], dtype=bool
            )
            cohort_summary = CohortSummary(**value_by_cohort_field)
            return cls(
                cohort=cohort_summary,
                settings=json_content["settings"],
                **table_by_name,
            )
        except FileFormatError:
            raise
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise FileFormatError(
                f"the folder contains no readable evaluation ({error}). Name the "
                "results folder of `run`, or in Python its subfolder "
                "private/evaluation.",
                path=folder,
            ) from error


def _have_equal_predictions(
    first_prediction_table: pd.DataFrame, second_prediction_table: pd.DataFrame
) -> bool:
    """Return whether two models predict the same, but for rounding."""
    # Most pairs of models differ in the first of these columns.
    for column_name in ("predicted", "scan", "repeat", "fold"):
        if not first_prediction_table[column_name].equals(
            second_prediction_table[column_name]
        ):
            return False
    first_output_matrix = first_prediction_table.filter(regex="^[pd]_").to_numpy(float)
    second_output_matrix = second_prediction_table.filter(regex="^[pd]_").to_numpy(
        float
    )
    return np.allclose(
        first_output_matrix,
        second_output_matrix,
        rtol=0,
        atol=_SAME_PROBABILITY,
        equal_nan=True,
    )


def _compute_fold_numbers(
    repeat_series: pd.Series, fold_series: pd.Series
) -> np.ndarray:
    """Return the number of each row's fold, from 0, counted over all repeats."""
    _, repeat_codes = np.unique(repeat_series, return_inverse=True)
    distinct_folds, fold_codes = np.unique(fold_series, return_inverse=True)
    repeat_fold_codes = repeat_codes * len(distinct_folds) + fold_codes
    return np.unique(repeat_fold_codes, return_inverse=True)[1]


def _get_complete_matrix_or_none(
    prediction_table: pd.DataFrame, column_names: list[str]
) -> np.ndarray | None:
    """Return columns as an array, None where a value is missing."""
    value_matrix = prediction_table[column_names].to_numpy(float)
    return None if np.isnan(value_matrix).any() else value_matrix


def check_evaluation_given(evaluation: object) -> None:
    """Raise where an argument is no evaluation but, for example, a table."""
    # A module that was reloaded has another class of the same name.
    if not hasattr(evaluation, "as_predictions"):
        raise ParameterError(
            f"evaluation must be an Evaluation; got {type(evaluation).__name__}. Use "
            "cross_validate or run_study to create one."
        )


def check_stored_content(stored_record: Mapping[str, Any], folder: Path) -> None:
    """Raise if results lack what this version needs, or have what it does not know.

    `stored_record` is the content of `evaluation.json`.
    """
    missing_names = _list_missing_names(stored_record)
    stored_cohort = stored_record["cohort"]
    cohort_field_set = {
        # Earlier versions stored findings as texts.
        "notes",
        *(cohort_field.name for cohort_field in fields(CohortSummary)),
    }
    missing_names += [
        f"cohort.{cohort_field.name}"
        for cohort_field in fields(CohortSummary)
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
