"""The record of an evaluation: three tidy tables, the cohort's summary, settings."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import Cohort
from brainlsap.evaluation.metrics import SCORES, Predictions, weighted_scores
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.files import fill_folder
from brainlsap.findings import Finding, as_findings

TABLES = ("predictions", "scales", "fits", "audit", "ranking")
# Probabilities that differ by less are those of the same model, rounded otherwise.
SAME = 1e-4
COHORT_TABLES = ("truth", "class_features", "regions")
MISSING = "n/a"
TSV: dict[str, Any] = {"sep": "\t", "lineterminator": "\n"}
MAIN_SCORES = ("balanced_accuracy", "accuracy", "f1", "auc")
"""Scores in views that are short; the rest is in files."""


@dataclass(frozen=True, eq=False, repr=False)
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
    feature_names : tuple of str
        As of the cohort.
    findings : tuple of Finding
        As of the cohort; texts are plain notes.
    provenance : dict
        As of the cohort.
    truth : DataFrame or None
        Planted regions of a simulated cohort.
    data_hash : str
        SHA-256 of arrays and labels.
    class_features : DataFrame or None
        Every feature of every region by class: feature, region, class, people, mean
        and sd over people (the mean of a person's scans of that class counts). Of
        adjusted features also mean_factor and difference_factor: how much the
        adjustment raises the variance of the mean, and of its difference from the
        first class.
    regions : DataFrame or None
        As of the atlas: what figures know of regions that no atlas on disk has.
    atlas_folder : str or None
        Where the surfaces of the atlas were.
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

    @classmethod
    def of(
        cls, cohort: Cohort, features: np.ndarray, factors: pd.DataFrame | None
    ) -> "CohortSummary":
        """Summarise a cohort, and these features of it by class.

        `factors`: by class, of the variance of means and of differences.
        """
        names = {one.name for one in fields(cls)} & set(dir(cohort))
        kept = {name: getattr(cohort, name) for name in names}
        kept["measured"] = np.asarray(cohort.measured.any(axis=(0, 2)))
        kept["atlas_name"], kept["regions"] = cohort.atlas.name, cohort.atlas.regions
        if cohort.atlas.folder:
            kept["atlas_folder"] = str(cohort.atlas.folder.resolve())
        table = _class_features(cohort, features)
        if factors is not None:
            table = table.merge(factors, left_on="class", right_index=True, how="left")
        return cls(**kept, data_hash=data_hash(cohort), class_features=table)

    def __post_init__(self) -> None:
        object.__setattr__(self, "findings", as_findings(self.findings))

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
        """The atlas, one of one's own by its path or regions; None if neither is."""
        asked = self.provenance.get("asked") or {}
        for name in (self.atlas_name, asked.get("atlas"), self.atlas_folder):
            with suppress(ValueError):  # not known, or not to be read
                atlas = load_atlas(str(name))
                if set(self.region_names) <= set(atlas.names):
                    return atlas
        if self.regions is None:
            return None
        # saved, a lobe that is not known is missing
        return Atlas(self.atlas_name, self.regions.fillna({"lobe": MISSING}))

    def class_counts(self) -> pd.DataFrame:
        """Return class, participants and scans, one row per class."""
        by_label = self.table.groupby("label")["participant"]
        counts = by_label.agg(participants="nunique", scans="size")
        counts = counts.reindex(list(self.classes), fill_value=0)
        return counts.rename_axis("class").reset_index()


def data_hash(cohort: Cohort) -> str:
    """Return the SHA-256 of a cohort's arrays and labels."""
    digest = hashlib.sha256()
    n_matrices = 1 if cohort.shares_connectome else cohort.n_scans
    for array in (cohort.connectomes[:n_matrices], cohort.features):
        digest.update(repr(array.shape).encode())
        for scan in array:
            digest.update(np.ascontiguousarray(scan).data)
    digest.update("\x00".join(map(str, cohort.y)).encode())
    return digest.hexdigest()


def _class_features(cohort: Cohort, features: np.ndarray) -> pd.DataFrame:
    """Return people, mean and s.d. of every feature by region and class."""
    columns = pd.MultiIndex.from_product(
        [cohort.feature_names, cohort.region_names], names=["feature", "region"]
    )
    values = features.transpose(0, 2, 1).reshape(cohort.n_scans, -1)
    table = pd.DataFrame(values.astype(float), columns=columns)
    people = table.groupby([cohort.groups, cohort.y]).mean()
    found = people.groupby(level=1).agg(["count", "mean", "std"])
    found = found.rename_axis("class").stack([0, 1], future_stack=True).reset_index()
    return found.rename(columns={"count": "people", "std": "sd"})


@dataclass(frozen=True, eq=False, repr=False)
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
        model, repeat, fold, start ("mean", "1", "2" ...; "low" and "high": the 95%
        interval), share (of the training: 1 is the end; 0, 0.25, 0.5 and 0.75 for
        "mean" only), region, scale.
    fits : DataFrame
        model, role ("model", "baseline", "control"), repeat, fold, n_train, n_test
        (scans), n_train_people, seconds_fit (ridges of one ladder share theirs),
        seconds_predict, epochs, failed (why, "" where it did not), settings, warnings
        and report (JSON).
    cohort : CohortSummary
        Whom it is about.
    settings : dict
        Everything that changes a number, as JSON takes it.
    audit : DataFrame, optional
        Of :func:`audit`.
    ranking : DataFrame, optional
        Of :func:`rank_regions`, of the one model that its column `model` names: the
        ridge with a scale per region where it was run, whatever models come first.
        `rank_regions(evaluation, name)` ranks by another.

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

    @property
    def models(self) -> tuple[str, ...]:
        """Names of all models, baselines and controls, in order."""
        return tuple(self.fits["model"].unique())

    @property
    def baselines(self) -> tuple[str, ...]:
        """Names of the baselines, in order."""
        return tuple(self.fits.loc[self.fits["role"] == "baseline", "model"].unique())

    @cached_property
    def same_as(self) -> dict[str, str]:
        """Models that predicted the very same as another in every fold, and that one.

        So does "LSAP-R" where it chose the same ridge throughout, and Exact where its
        expansion is as good. A baseline or control is never the same as a model, but a
        model the same as it.
        """
        by_role = self.fits.sort_values("role", kind="stable")["model"].unique()
        rows = dict(list(self.predictions.groupby("model")))
        keys = ["repeat", "fold", "scan", "predicted"]

        def are_same(one: str, other: str) -> bool:
            a, b = (rows[name].reset_index(drop=True) for name in (one, other))
            values = (part.filter(regex="^[pd]_").to_numpy(float) for part in (a, b))
            near: Any = {"rtol": 0, "atol": SAME, "equal_nan": True}
            return a[keys].equals(b[keys]) and np.allclose(*values, **near)

        found: dict[str, str] = {}
        for name in (one for one in by_role if one in rows):
            alike = (other for other in found.values() if are_same(name, other))
            found[name] = next(alike, name)
        return {name: other for name, other in found.items() if name != other}

    def scores(self) -> pd.DataFrame:
        """Return one row per model and fold: model, repeat, fold, n_test, each score.

        A fit that failed has NaN for every score.
        """
        return self._scores.copy()

    @cached_property
    def _scores(self) -> pd.DataFrame:
        keys, found = ["model", "repeat", "fold"], []
        for key, rows in self.predictions.groupby(keys):
            each = weighted_scores(self.as_predictions(rows), np.ones((1, len(rows))))
            found.append((*key, *(each[name].item() for name in SCORES)))
        scores = pd.DataFrame(found, columns=[*keys, *SCORES])
        scores = scores.astype(dict.fromkeys(SCORES, float))
        return self.fits[[*keys, "n_test"]].merge(scores, "left", keys)

    def as_predictions(self, rows: pd.DataFrame) -> Predictions:
        """Return rows of the table of predictions as arrays."""
        names = pd.Index(self.cohort.classes)
        both = (
            rows[[f"{kind}_{name}" for name in names]].to_numpy(float) for kind in "pd"
        )
        probability, decision = (None if np.isnan(one).any() else one for one in both)
        return Predictions(
            names.get_indexer(rows["truth"]),
            names.get_indexer(rows["predicted"]),
            probability,
            decision if probability is None else probability,
            rows.groupby(["repeat", "fold"]).ngroup().to_numpy(),
            len(names),
            self.cohort.classes_ordered,
        )

    def class_priors(self) -> dict[str, Any]:
        """Return what the probabilities of each model assume of class shares.

        The `class_prior` of models that have one and give probabilities: "training",
        "balanced", or shares by class. Scores of probabilities (Brier score,
        calibration) are computed with it.
        """
        columns = [f"p_{name}" for name in self.cohort.classes]
        is_known = self.predictions[columns].notna().all(axis=1)
        has_probability = is_known.groupby(self.predictions["model"]).any()
        priors: dict[str, Any] = {}
        for model, fits in self.fits.groupby("model", sort=False):
            settings = json.loads(fits["settings"].iloc[0])
            for key, prior in settings.items():
                is_prior = key.rsplit("__")[-1] == "class_prior" and prior is not None
                if is_prior and has_probability.get(model, False):
                    priors[str(model)] = prior
        return priors

    def summary(self) -> pd.DataFrame:
        """Return model, role, score, mean and s.d. over folds, n_folds, n_failed.

        Where a fit failed, the mean is NaN: that of the other folds would be one of
        chosen folds.
        """
        table = self._scores.melt(
            ["model"], list(SCORES), var_name="score", value_name="value"
        )
        each = table.groupby(["model", "score"], sort=False)["value"]
        summary = each.agg(mean="mean", sd="std", n_folds="size")
        summary = summary.reindex(self.models, level="model").reset_index()
        by_model = self.fits.assign(failed=self.fits["failed"] != "").groupby("model")
        summary.insert(1, "role", summary["model"].map(by_model["role"].first()))
        summary["n_failed"] = summary["model"].map(by_model["failed"].sum())
        summary.loc[summary["n_failed"] > 0, ["mean", "sd"]] = np.nan
        return summary

    def _overview(self) -> tuple[str, pd.DataFrame]:
        """Return a line of what was evaluated, and mean and s.d. of the main scores."""
        rows = self.summary().set_index(["model", "score"])[["mean", "sd"]]
        text = rows.apply(lambda one: "{:.3f} ± {:.3f}".format(*one), axis=1).unstack()
        table = text.reindex(self.models)[list(MAIN_SCORES)].rename(columns=SCORES)
        table = table.rename_axis(index=None, columns=None)
        n_folds, n_repeats = (self.settings[f"n_{one}"] for one in ("folds", "repeats"))
        times = f", {n_repeats} times" if n_repeats > 1 else ""
        told = f"{self.cohort!r}; {n_folds} folds{times}"
        if self.ranking is not None:
            told += f"; regions ranked by {self.ranking['model'].iloc[0]}"
        return told, table

    def __repr__(self) -> str:
        told, table = self._overview()
        return f"{told}\n{table.to_string()}"

    def _repr_html_(self) -> str:
        told, table = self._overview()
        return f"<p>{escape(told)}</p>{table.to_html(border=0)}"

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
        tables = {name: getattr(self, name) for name in TABLES}
        tables |= {name: getattr(self.cohort, name) for name in COHORT_TABLES}
        tables["cohort"] = self.cohort.table
        columns = {
            name: {str(key): str(kind) for key, kind in table.dtypes.items()}
            for name, table in tables.items()
            if table is not None
        }
        facts = vars(self.cohort) | dict.fromkeys(("table", *COHORT_TABLES))
        findings = as_findings(self.cohort.findings)
        facts["findings"] = [finding.to_jsonable() for finding in findings]
        kept = plain({"columns": columns, "cohort": facts, "settings": self.settings})
        is_older = (folder / "evaluation.json").is_file()
        with fill_folder(folder, replace=is_older) as partial:
            for name in columns:
                path = partial / f"{name}.tsv"
                tables[name].to_csv(path, index=False, na_rep=MISSING, **TSV)
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
                name: pd.read_csv(
                    folder / f"{name}.tsv",
                    dtype={k: v if v == "bool" else "object" for k, v in kinds.items()},
                    keep_default_na=False,
                    na_values=[MISSING],
                    **TSV,
                ).astype(kinds)  # text to numbers, the same to the last bit
                for name, kinds in kept["columns"].items()
            }
            cohort = kept["cohort"] | {"table": tables.pop("cohort")}
            cohort |= {name: tables.pop(name, None) for name in COHORT_TABLES}
            for name, value in cohort.items():
                cohort[name] = tuple(value) if isinstance(value, list) else value
            # Evaluations of earlier versions have texts.
            notes = cohort.pop("findings", None) or cohort.pop("notes", ())
            cohort["findings"] = [Finding.from_jsonable(note) for note in notes]
            cohort["measured"] = np.array(cohort["measured"], dtype=bool)
            summary = CohortSummary(**cohort)
            return cls(cohort=summary, settings=kept["settings"], **tables)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise FileFormatError(
                f"{folder}: no evaluation can be read there ({error}). Name the folder "
                "that `run` wrote; in Python, its private/evaluation."
            ) from error


def check_evaluation_given(evaluation: object) -> None:
    """Raise where a function got something else, such as a table, for an evaluation."""
    if not hasattr(evaluation, "as_predictions"):  # of a module loaded anew, too
        raise ParameterError(
            f"evaluation must be an Evaluation; got {type(evaluation).__name__}. "
            "cross_validate or run_study makes one."
        )


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
    return getattr(value, "__name__", type(value).__name__)  # of functions their own
