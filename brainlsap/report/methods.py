"""A methods paragraph for a paper: every number in it comes from the run."""

from typing import Any

import numpy as np

from brainlsap.evaluation import Evaluation, RankingEvidence
from brainlsap.report.score_tables import spread_text
from brainlsap.report.words import count

_KERNELS = {
    "exact": "the exact heat kernel, from eigenvectors",
    "chebyshev": "a Chebyshev expansion of the heat kernel",
    "hermite": "a Hermite expansion of the heat kernel",
    "laguerre": "a Laguerre expansion of the heat kernel",
}
_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def methods_text(
    evaluation: Evaluation, version: str, evidence: RankingEvidence | None = None
) -> tuple[str, ...]:
    """Return paragraphs of methods and results, ready to paste into a manuscript.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    version : str
        Of brainlsap.
    evidence : RankingEvidence, optional
        What the ranking of regions is held against.

    Returns
    -------
    tuple of str
        Paragraphs: participants and data, models, evaluation, regions, results.

    Examples
    --------
    See :func:`brainlsap.report.write_report`.
    """
    parts = (
        _people(evaluation),
        _models(evaluation, version),
        _design(evaluation),
        _regions(evaluation, evidence),
        _results(evaluation),
    )
    return tuple(" ".join(part) for part in parts if part)


def _people(evaluation: Evaluation) -> list[str]:
    cohort = evaluation.cohort
    counts = cohort.class_counts()
    groups = ", ".join(
        f"{row['class']} (n = {row['participants']}, {count(row['scans'], 'scan')})"
        for row in counts.to_dict("records")
    )
    measured, n_rois = int(cohort.measured.sum()), len(cohort.region_names)
    sentences = [
        f"We analysed {count(cohort.n_scans, 'scan')} of "
        f"{count(cohort.n_participants, 'person').replace('people', 'participants')} "
        f"in {_word(len(cohort.classes))} groups by {cohort.label_name}: {groups}.",
        f"Every scan was represented by a connectome of {n_rois} regions "
        f"({cohort.atlas_name}) and by {' and '.join(cohort.feature_names)} in "
        f"{'all' if measured == n_rois else measured} of them.",
    ]
    ages = cohort.table.drop_duplicates("participant").get("age")
    if ages is not None:
        known = np.array([_float(one) for one in ages])
        known = known[np.isfinite(known)]
        if len(known) > 2:
            age = spread_text(float(known.mean()), float(known.std(ddof=1)), 1)
            sentences.append(f"Age at the first scan was {age} years (mean ± s.d.).")
    return sentences


def _models(evaluation: Evaluation, version: str) -> list[str]:
    sentences = []
    for name, result in evaluation.results.items():
        report = result.folds[0].details.get("fit_report", {})
        settings = report.get("settings")
        if not settings or name in evaluation.baselines() or "kernel" not in settings:
            continue
        sentences.append(_model_sentence(name, settings))
    if sentences:
        sentences.insert(
            0,
            "Scans were classified with learning-to-approximate adaptive kernel "
            "convolution (LSAP; Sim et al., 2024), a graph network in which every "
            "region learns the scale of its own heat kernel on the connectome",
        )
        sentences[0] += f", as implemented in brainlsap {version}."
    return sentences


def _model_sentence(name: str, settings: dict[str, Any]) -> str:
    kernel = _KERNELS.get(settings["kernel"], settings["kernel"])
    degree = f" of degree {settings['degree']}" if settings.get("degree") else ""
    start = settings["initial_scale"]
    chosen = "chosen on inner validation slices" if isinstance(start, str) else start
    return (
        f"{name} used {kernel}{degree}, {count(settings['n_layers'], 'layer')} of "
        f"{settings['hidden_units']} units and a read-out of "
        f"{settings['readout_units']} units with dropout {settings['dropout']:g}; "
        f"scales started at {chosen} in the first fold and took gradient steps of size "
        f"{settings['scale_step']:g} clipped at {settings['scale_clip']:g}, weights "
        f"were trained with Adam (learning rate {settings['learning_rate']:g}) for at "
        f"most {settings['n_epochs']} epochs"
        + (
            f", stopped after {settings['patience']} epochs without a better "
            "validation loss"
            if settings["patience"]
            else ""
        )
        + f", and {count(settings['n_starts'], 'network')} were averaged."
    ).replace("1 network were", "1 network was")


def _design(evaluation: Evaluation) -> list[str]:
    settings = evaluation.settings
    repeats = settings.get("n_repeats", 1)
    n_folds = len(evaluation.splits) // repeats
    design = f"stratified {n_folds}-fold cross-validation"
    if repeats > 1:
        design += f", repeated {repeats} times"
    apart = (
        "divided by scan, so that scans of one participant stood on both sides"
        if evaluation.people_shared
        else "in which all scans of a participant were kept in one fold"
    )
    sentences = [
        f"Performance was estimated by {design} (seed {settings['random_state']}), "
        f"{apart}; everything, standardisation included, was fitted on training folds "
        "alone."
    ]
    if evaluation.baselines():
        sentences.append(
            f"For comparison, {_listed(evaluation.baselines())} were run on the very "
            "same folds."
        )
    sentences.append(
        "Models were compared by the corrected resampled t-test (Nadeau and Bengio, "
        "2003) on balanced accuracy, with Holm's correction."
    )
    return sentences


def _regions(evaluation: Evaluation, evidence: RankingEvidence | None) -> list[str]:
    if all(one.scales() is None for one in evaluation.results.values()):
        return []
    sentences = [
        "Regions were ranked by their learned scale, averaged over folds, smallest "
        "first."
    ]
    if evidence is not None and evidence.permuted is not None:
        sentences.append(
            f"Scales were tested against {len(evidence.permuted) - 1} refits to labels "
            "permuted between participants, one-sided, with the maximum statistic over "
            "regions for family-wise correction and the Benjamini-Hochberg procedure "
            "for the false discovery rate."
        )
    if evidence is not None and evidence.starts:
        starts = _listed([f"{start:g}" for start in evidence.starts])
        sentences.append(f"The model was refitted from scales of {starts}.")
    return sentences


def _results(evaluation: Evaluation) -> list[str]:
    sentences = []
    for name, result in evaluation.results.items():
        means, told = result.scores().mean(), result.scores().std(ddof=1)
        texts = [
            f"{label} {spread_text(means[score], told[score])}"
            for score, label in (
                ("balanced_accuracy", "a balanced accuracy of"),
                ("auc", "an AUC of"),
            )
            if np.isfinite(means[score])
        ]
        sentences.append(f"{name} reached {' and '.join(texts)}")
    folds = count(len(evaluation.splits), "fold")
    return [f"{'; '.join(sentences)} (mean ± s.d. over {folds})."]


def _listed(names: Any) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _word(number: int) -> str:
    return _SMALL[number] if number < len(_SMALL) else str(number)


def _float(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return float("nan")
