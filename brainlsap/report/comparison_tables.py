"""Many models on the same folds as one table: the paper's scores, ours, and tests."""

import numpy as np
import pandas as pd

from brainlsap.evaluation import SCORES, Evaluation, compare_models
from brainlsap.report.score_tables import mark_by_scan, score_names, spread_text

PAPER = ("accuracy", "precision", "recall")
"""The scores of the paper's classification table."""

OURS = ("balanced_accuracy", "auc", "f1")
"""What is shown beside them; the first is tested."""

KINDS = ("model", "baseline", "control")

CHOSEN = ("C", "class_weight", "scale")
"""What models that are always tuned say of their choice."""

N_DRAWS = 1000


def classification_table(
    evaluation: Evaluation,
    reference: str | None = None,
    digits: int = 3,
) -> pd.DataFrame:
    """Return the paper's classification table with ours and tests beside it.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    reference : str, optional
        The model that all others are tested against; by default the first.
    digits : int
        Decimals.

    Returns
    -------
    DataFrame
        One row per model: model, kind (model, baseline, or control, in that order,
        the last as the evaluation's settings list them); accuracy, macro precision
        and recall, then balanced accuracy, AUC and macro F1, each as mean ± s.d. over
        folds; difference in balanced accuracy to the reference (model minus
        reference), p of the corrected resampled t-test, p after Holm's correction,
        and seconds to fit one fold. Models that were not run say why.

    Raises
    ------
    ParameterError
        Where there is no such reference.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 2)
    >>> table = classification_table(evaluation)
    >>> table.loc[:1, ["model", "kind", "p (Holm)"]]
                 model      kind   p (Holm)
    0  DummyClassifier     model  reference
    1   majority class  baseline      1.000
    """
    tests = compare_models(
        evaluation, OURS[0], reference=reference, n_draws=N_DRAWS, correction="holm"
    )
    against = evaluation.result(reference).name
    by_name = {} if tests.empty else tests.set_index("model").to_dict("index")
    rows = []
    for name, result in evaluation.results.items():
        row = {"model": name, "kind": _kind(evaluation, name)}
        seconds = [fold.details.get("seconds_fit", np.nan) for fold in result.folds]
        row |= _scores(result, digits)
        row |= _test(by_name.get(name), name == against, digits)
        rows.append(row | {"seconds": f"{np.mean(seconds):.1f}"})
    for name, why in evaluation.settings.get("not_run", {}).items():
        kind = _kind(evaluation, name)
        rows.append({"model": name, "kind": kind, SCORES["accuracy"]: why})
    table = pd.DataFrame(rows).fillna("")
    order = table["kind"].map({name: place for place, name in enumerate(KINDS)})
    table = table.loc[order.sort_values(kind="stable").index].reset_index(drop=True)
    return mark_by_scan(table, evaluation)


def chosen_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the settings that models chose inside each training fold.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    DataFrame
        One row per model, fold (from 1) and setting: model, fold, setting, value;
        empty where nothing was chosen.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import baseline_models, cross_validate
    >>> models = {"linear SVM": baseline_models()["linear SVM"]}
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> chosen_table(cross_validate(models, cohort, 2, baselines=False))["setting"][0]
    'C'
    """
    rows = []
    for name, result in evaluation.results.items():
        for fold in result.folds:
            report = fold.details.get("fit_report") or {}
            chosen = (report.get("tuned") or {}).get("chosen", {})
            chosen |= {one: report[one] for one in CHOSEN if one in report}
            rows += [
                {"model": name, "fold": fold.fold + 1, "setting": one, "value": value}
                for one, value in chosen.items()
            ]
    return pd.DataFrame(rows, columns=["model", "fold", "setting", "value"])


def comparison_numbers(
    evaluation: Evaluation, reference: str | None = None
) -> pd.DataFrame:
    """Return what :func:`classification_table` shows, as numbers.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    reference : str, optional
        As for :func:`classification_table`.

    Returns
    -------
    DataFrame
        One row per model: `<score>_mean` and `<score>_sd` of every score, then the
        columns of :func:`brainlsap.evaluation.compare_models`.

    Examples
    --------
    See :func:`brainlsap.report.classification_table`.
    """
    rows = []
    for name, result in evaluation.results.items():
        row: dict[str, object] = {"model": name}
        for score, summary in result.summary().iterrows():
            row[f"{score}_mean"], row[f"{score}_sd"] = summary["mean"], summary["sd"]
        rows.append(row)
    tests = compare_models(evaluation, OURS[0], reference=reference, n_draws=N_DRAWS)
    scores = pd.DataFrame(rows)
    if tests.empty:
        return mark_by_scan(scores, evaluation)
    return mark_by_scan(scores.merge(tests, on="model", how="left"), evaluation)


def _kind(evaluation: Evaluation, name: str) -> str:
    if name in evaluation.settings.get("controls", ()):
        return "control"
    return "baseline" if name in evaluation.baselines() else "model"


def _title(score: str, result: object) -> str:
    names = score_names(len(result.classes))  # type: ignore[attr-defined]
    return names.get(score, SCORES[score])


def _scores(result: object, digits: int) -> dict[str, str]:
    summary = result.summary()  # type: ignore[attr-defined]
    return {
        _title(name, result): spread_text(
            summary.loc[name, "mean"], summary.loc[name, "sd"], digits
        )
        for name in (*PAPER, *OURS)
    }


def _test(found: dict | None, is_reference: bool, digits: int) -> dict[str, str]:
    if found is None:
        told = "reference" if is_reference else ""
        return {"difference": "", "p (corrected)": "", "p (Holm)": told}
    return {
        "difference": f"{round(-found['difference'], digits) + 0.0:+.{digits}f}",
        "p (corrected)": _p_text(found["p_value"]),
        "p (Holm)": _p_text(found["p_adjusted"]),
    }


def _p_text(p_value: float) -> str:
    if not np.isfinite(p_value):
        return "n/a"
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
