"""The card in a model file: what the model is, on whom it was trained, and its scores.

A card names no person. To refuse people of the training in a test, the file also holds
keyed hashes of their ids and data (:func:`hash_people`, :func:`hash_scans`).
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import brainlsap
from brainlsap.arrays import to_jsonable
from brainlsap.data import Cohort
from brainlsap.evaluation import Deconfounder, Evaluation, bootstrap_scores, main_scores
from brainlsap.evaluation.case_mix import describe_people
from brainlsap.evaluation.results import data_hash
from brainlsap.exceptions import ParameterError
from brainlsap.model import LSAPRidgeClassifier
from brainlsap.model.inputs import PackedClassifier
from brainlsap.model.prediction_sets import LEVEL, MIN_PEOPLE, fit_prediction_sets
from brainlsap.text import with_and

__all__ = ["card_text", "hash_people", "hash_person", "hash_scans", "make_card"]

NOT_FOR = (
    "a diagnosis, or a decision about a person",
    "people unlike those of the training, unless it was evaluated on such people",
)
"""What no stored model is for."""


def make_card(
    model: PackedClassifier,
    cohort: Cohort,
    steps: Deconfounder,
    name: str,
    scores: Evaluation | None = None,
) -> dict[str, Any]:
    """Describe a fitted model and the people of its training, as JSON allows.

    Parameters
    ----------
    model : classifier
        Fitted to `cohort`.
    cohort : Cohort
    steps : Deconfounder
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
    sets = None
    if isinstance(model, LSAPRidgeClassifier):
        sets = fit_prediction_sets(model, cohort.y, cohort.groups)
    card = {
        "model": name,
        "classifier": type(model).__name__,
        "settings": model.get_params(),
        "fit_report": getattr(model, "fit_report_", {}),
        "label": cohort.label_name,
        "classes": cohort.classes,
        "classes_ordered": bool(cohort.classes_ordered),
        "features": cohort.feature_names,
        "atlas": cohort.atlas.name,
        "n_regions": cohort.n_rois,
        "training": describe_people(cohort),
        "is_simulated": cohort.truth is not None,
        "steps": {"harmonize": steps.harmonize, "regress_out": [*steps.regress_out]},
        "scores": None
        if scores is None
        else _read_scores(scores, model, cohort, steps),
        "prediction_sets": sets,
        "version": brainlsap.__version__,
    }
    return to_jsonable(card)


def _read_scores(
    evaluation: Evaluation, model: PackedClassifier, cohort: Cohort, steps: Deconfounder
) -> dict[str, Any]:
    """Return the cross-validated scores of a model of these settings."""
    if evaluation.cohort.data_hash != data_hash(cohort):
        raise ParameterError(
            "the results of the scores are of other data than those of this fit. Give "
            "the results of `run` on the same study with the same options."
        )
    steps_of_scores = evaluation.settings.get("steps") or {}
    for option in ("harmonize", "regress_out"):
        in_fit = to_jsonable(getattr(steps, option)) or []
        in_scores = steps_of_scores.get(option) or []
        if in_fit != in_scores:
            raise ParameterError(
                f"the results of the scores have {option} {in_scores or 'not given'}, "
                f"and this fit has {in_fit or 'not given'}. Use the same in both."
            )
    settings = to_jsonable(model.get_params())
    first_fits = evaluation.fits.drop_duplicates("model").set_index("model")
    names = [
        str(name)
        for name, text in first_fits["settings"].items()
        if json.loads(text) == settings
    ]
    if not names:
        raise ParameterError(
            "the results of the scores have no model with the settings of this one; "
            f"they have {', '.join(evaluation.models)}. Run it there, too."
        )
    intervals = bootstrap_scores(evaluation, names[0]).set_index("score")
    return {
        "folds": evaluation.settings["n_folds"] * evaluation.settings["n_repeats"],
        "leave_out": evaluation.settings.get("leave_out"),
        "values": {
            score: intervals.loc[score, ["estimate", "low", "high"]].tolist()
            for score in main_scores()
        },
    }


def hash_person(person: str, salt: str) -> str:
    """Return the keyed hash of a participant id.

    It keeps the id out of the file. Who has the file and a list of possible ids can
    still test each of them, because the key is in the file.
    """
    return _hash(str(person).encode(), salt)


def hash_people(people: Iterable[str], salt: str) -> list[str]:
    """Return the hashes of participant ids (:func:`hash_person`), sorted, each once."""
    return sorted({hash_person(person, salt) for person in people})


def hash_scans(
    features: np.ndarray, connectomes: np.ndarray | None, salt: str
) -> list[list[str]]:
    """Return the keyed hashes of every scan's features and own connectome."""
    hashes: list[list[str]] = []
    for scan_index, values in enumerate(features):
        # All NaN are the same.
        numbers = np.where(np.isnan(values), np.float64(np.nan), values)
        scan_hashes = [_hash(b"features" + numbers.astype("<f8").tobytes(), salt)]
        if connectomes is not None:
            numbers = np.ascontiguousarray(connectomes[scan_index], dtype="<f4")
            scan_hashes.append(_hash(b"connectome" + numbers.tobytes(), salt))
        hashes.append(scan_hashes)
    return hashes


def _hash(content: bytes, salt: str) -> str:
    """Return a keyed hash of 64 bits."""
    return hashlib.blake2b(content, key=bytes.fromhex(salt), digest_size=8).hexdigest()


def make_salt(cohort: Cohort) -> str:
    """Return a key that differs from cohort to cohort, so that hashes cannot be joined.

    It depends on the data alone: the same fit gives the same file.
    """
    return hashlib.sha256(f"people {data_hash(cohort)}".encode()).hexdigest()[:32]


def card_text(model: PackedClassifier) -> str:
    """Return the card of a stored model as text, one statement a line.

    Parameters
    ----------
    model : classifier
        From :func:`brainlsap.model.load_model`.

    Raises
    ------
    ParameterError
        If the file has no card.
    """
    card = getattr(model, "origin_", None) and model.origin_.facts.get("card")
    if not card:
        raise ParameterError(
            "the model has no card; fit it by `brainlsap fit`, or fit_model in Python."
        )
    training = card["training"]
    order = "in order of stage" if card["classes_ordered"] else "without an order"
    shares = ", ".join(f"{name} {n}" for name, n in training["classes"].items())
    simulated = " (simulated)" if card["is_simulated"] else ""
    lines = [
        f"Model: {card['model']} ({card['classifier']}), brainlsap {card['version']}",
        f"Predicts: {card['label']}, {order}: {', '.join(card['classes'])}",
        f"Reads: {', '.join(card['features'])} of {card['n_regions']} regions "
        f"({card['atlas']})",
        f"Trained on: {training['n_people']} people, {training['n_scans']} scans"
        f"{simulated}: {shares}",
    ]
    for name, numbers in training["numbers"].items():
        lines.append(
            f"  {name}: {numbers['mean']:.4g} (s.d. {numbers['sd']:.3g}, "
            f"{numbers['n']} people)"
        )
    for kind, counts in training["counts"].items():
        counts_text = ", ".join(f"{value} {n}" for value, n in counts.items())
        lines.append(f"  {kind}: {counts_text}")
    lines += [f"Steps: {_steps_text(card['steps'])}"]
    lines += _score_lines(card)
    lines += [f"Prediction sets: {sets_text(card)}"]
    lines += [f"Not for: {'; '.join(NOT_FOR)}", "Settings:"]
    lines += [f"  {name}: {value}" for name, value in card["settings"].items()]
    return "\n".join(lines)


def _steps_text(steps: Mapping[str, Any]) -> str:
    """Return the steps before the model."""
    texts = []
    if steps["harmonize"]:
        texts.append(f"ComBat of {steps['harmonize']}")
    if steps["regress_out"]:
        texts.append(f"regression of {with_and(steps['regress_out'])}")
    return ", then ".join(texts) or "none"


def _score_lines(card: Mapping[str, Any]) -> list[str]:
    """Return the lines of the scores."""
    scores = card["scores"]
    if scores is None:
        return ["Scores: not evaluated"]
    folds = f"{scores['folds']} folds"
    if scores["leave_out"]:
        folds += f", each one {scores['leave_out']}"
    lines = [f"Scores: cross-validated in the people of the training ({folds})"]
    for name, (estimate, low, high) in scores["values"].items():
        title = name.replace("_", " ")
        lines.append(f"  {title}: {estimate:.3f} [{low:.3f}, {high:.3f}]")
    return lines


def sets_text(card: Mapping[str, Any]) -> str:
    """Return at what level the model gives prediction sets, or why it gives none."""
    reason = reason_without_sets(card)
    return reason or f"{float(LEVEL):.0%}, by class"


def reason_without_sets(card: Mapping[str, Any]) -> str:
    """Return why a model gives no prediction sets; "" if it does."""
    sets = card.get("prediction_sets")
    if sets is None:
        return (
            f"no set: {card['model']} has no left-out scores; LSAP-R and other ridges "
            "have"
        )
    classes: Sequence[str] = sets["classes"]
    small_classes = [
        name
        for name, quantile in zip(classes, sets["quantiles"], strict=True)
        if quantile is None
    ]
    if not small_classes:
        return ""
    return (
        f"no set at this level: fewer than {MIN_PEOPLE} people of "
        f"{with_and(small_classes)} in training"
    )
