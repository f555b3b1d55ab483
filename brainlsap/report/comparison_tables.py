"""Many models on the same folds as one table: the paper's scores, ours, and tests."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from brainlsap.evaluation import SCORES, Evaluation, compare_models
from brainlsap.report.score_tables import mark_by_scan, score_names, spread_text

PAPER = ("accuracy", "precision", "recall")
"""The scores of the paper's classification table."""

OURS = ("balanced_accuracy", "auc", "f1")
"""What is shown beside them; the first is tested."""

N_DRAWS = 1000


def classification_table(
    evaluation: Evaluation,
    reference: str | None = None,
    *,
    controls: tuple[str, ...] = (),
    not_run: Mapping[str, str] | None = None,
    digits: int = 3,
) -> pd.DataFrame:
    """Return the paper's classification table with ours and tests beside it.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    reference : str, optional
        The model that all others are tested against; by default the first.
    controls : tuple of str
        Which of the models are controls; they follow the models.
    not_run : mapping of str to str, optional
        Models that were not run, and why.
    digits : int
        Decimals.

    Returns
    -------
    DataFrame
        One row per model: model, kind; accuracy, macro precision and macro recall,
        then balanced accuracy, AUC and macro F1, each as mean ± s.d. over folds;
        difference in balanced accuracy to the reference (model minus reference), p of
        the corrected resampled t-test, p after Holm's correction, and seconds to fit
        one fold.

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
    >>> table = classification_table(evaluation, not_run={"GCN": "not run"})
    >>> table.loc[[0, 4], ["model", "kind", "accuracy", "p (Holm)"]]
                 model   kind accuracy   p (Holm)
    0  DummyClassifier  model      ...  reference
    4              GCN  model  not run
    """
    tests = compare_models(
        evaluation, OURS[0], reference=reference, n_draws=N_DRAWS, correction="holm"
    )
    against = evaluation.result(reference).name
    by_name = {} if tests.empty else tests.set_index("model").to_dict("index")
    rows = []
    for name, result in evaluation.results.items():
        kind = "control" if name in controls else "model"
        row = {"model": name, "kind": kind, **_scores(result, digits)}
        seconds = [fold.details.get("seconds_fit", np.nan) for fold in result.folds]
        row |= _test(by_name.get(name), name == against, digits)
        rows.append(row | {"seconds": f"{np.mean(seconds):.1f}"})
    for name, why in (not_run or {}).items():
        kind = "control" if name in controls else "model"
        rows.append({"model": name, "kind": kind, _title("accuracy", result): why})
    table = pd.DataFrame(rows).fillna("")
    order = table["kind"].map({"model": 0, "control": 1})
    table = table.loc[order.sort_values(kind="stable").index].reset_index(drop=True)
    return mark_by_scan(table, evaluation)


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
