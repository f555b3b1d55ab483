"""Verdicts on a stored model when its test people are like those of its training.

    python benchmarks/external_verdicts.py [--cohorts 200]

Every cohort is simulated with its own seed. LSAP-R is cross-validated on a random half
of the people and stored with this score. The other half tests it: nothing has changed,
so "lower" is an error. A second test takes people in whom the disease has half of the
effect. In a third one the classes are drawn from the predicted probabilities, which are
right then: there, "wrong" is an error.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import keep, table

from brainlsap import evaluate_model, fit_model
from brainlsap.data import Cohort
from brainlsap.evaluation import Evaluation, cross_validate, make_models
from brainlsap.evaluation.comparison import calibration_table
from brainlsap.report.conclusions import judge_calibration, judge_score_decline
from brainlsap.simulation import make_cohort

N_PEOPLE = 240
EFFECTS = (0.1, 0.2, 0.27)
N_DRAWS = 10
PEOPLE = "test people"


def split_people(cohort: Cohort, rng: np.random.Generator) -> tuple[Cohort, Cohort]:
    """Return the scans of a random half of the people, and of the others."""
    people = np.unique(cohort.groups)
    half = rng.choice(people, len(people) // 2, replace=False)
    is_in_half = np.isin(cohort.groups, half)
    return cohort.select(is_in_half), cohort.select(~is_in_half)


def judge_score(evaluation: Evaluation) -> dict[str, bool]:
    """Return which verdict the score gets."""
    answer = judge_score_decline(evaluation).answer
    return {"score lower": answer == "NO", "score higher": answer == "YES"}


def judge_probabilities(evaluation: Evaluation) -> dict[str, bool]:
    """Return whether probabilities are called wrong, with and without correction."""
    calibration = calibration_table(evaluation)
    is_off = (calibration["slope_low"] > 1) | (calibration["slope_high"] < 1)
    is_off |= calibration["intercept_low"] > 0
    is_off |= calibration["intercept_high"] < 0
    external = evaluation.settings["external"] | {
        "calibration": calibration.to_dict("records")
    }
    settings = evaluation.settings | {"external": external}
    verdict = judge_calibration(replace(evaluation, settings=settings)).answer
    return {
        "probabilities wrong (corrected)": verdict == "NO",
        "any of the intervals misses": bool(is_off.any()),
    }


def draw_truth(evaluation: Evaluation, rng: np.random.Generator) -> Evaluation:
    """Return one scan a person, whose class is drawn from its probabilities."""
    predictions = evaluation.predictions.drop_duplicates("participant")
    classes = np.array(evaluation.cohort.classes)
    probabilities = predictions[[f"p_{name}" for name in classes]].to_numpy(float)
    thresholds = probabilities.cumsum(axis=1)[:, :-1]
    codes = (rng.random((len(predictions), 1)) > thresholds).sum(axis=1)
    return replace(evaluation, predictions=predictions.assign(truth=classes[codes]))


def measure_cohort(seed: int, effect: float, folder: Path) -> list[dict[str, object]]:
    """Return the verdicts on people like those of the training, and on others."""
    rng = np.random.default_rng(seed)
    options = {"atlas": "desikan82", "visit_shares": (0.7, 0.3)}
    cohort = make_cohort(N_PEOPLE, effect=effect, random_state=seed, **options)
    training, test = split_people(cohort, rng)
    other_cohort = make_cohort(
        N_PEOPLE, effect=effect / 2, random_state=seed + 10_000, **options
    )
    models = make_models("LSAP-R", random_state=seed)
    scores = cross_validate(models, training, random_state=seed, baselines=False)
    ((model, _),) = make_models("LSAP-R", random_state=seed).values()
    model_path = folder / f"{seed}.safetensors"
    fit_model(training, model_path, model, scores=scores)
    alike = evaluate_model(model_path, test, ids_are_new=True)
    other_test = split_people(other_cohort, rng)[0]
    other = evaluate_model(model_path, other_test, ids_are_new=True)
    records = [
        {PEOPLE: "as in training", **judge_score(alike), **judge_probabilities(alike)},
        {PEOPLE: "half the effect", **judge_score(other), **judge_probabilities(other)},
    ]
    records += [
        {
            PEOPLE: "classes drawn from the probabilities",
            **judge_probabilities(draw_truth(alike, rng)),
        }
        for _ in range(N_DRAWS)
    ]
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=200)
    options = parser.parse_args()
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.cohorts):
            effect = EFFECTS[seed % len(EFFECTS)]
            records += measure_cohort(seed, effect, Path(folder))
            print(seed, records[-N_DRAWS - 2 :][:2], flush=True)
    shares = pd.DataFrame(records).groupby(PEOPLE, sort=False).mean()
    head = (PEOPLE, *shares.columns)
    rows = [
        (name, *("" if np.isnan(share) else f"{share:.1%}" for share in row))
        for name, *row in shares.itertuples()
    ]
    text = (
        f"{options.cohorts} cohorts; {N_PEOPLE // 2} people train and {N_PEOPLE // 2} "
        f"test, effects of disease {', '.join(map(str, EFFECTS))} in turn:\n\n"
        f"{table(head, rows)}"
    )
    keep("external_verdicts", "Verdicts on a stored model in other people", text)


if __name__ == "__main__":
    main()
