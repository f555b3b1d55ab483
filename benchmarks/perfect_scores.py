"""Coverage of 95% intervals of scores where many studies are classified perfectly.

    python benchmarks/perfect_scores.py [--studies 400]

Each person has a value, normal around the number of their class times a distance;
the nearest class is predicted. The truth is the score of 200,000 more people. The
first figure of each score is the coverage of bootstrap percentiles alone, the second
that of `bootstrap_score_table`, which takes exact bounds where all draws are the same.
"""

import argparse

import numpy as np
import pandas as pd
from measuring import keep, table

from brainlsap.evaluation import Evaluation, bootstrap_score_table
from brainlsap.evaluation.results import CohortSummary
from brainlsap.evaluation.scores import Predictions, weighted_scores_by_name

SCORES = ("balanced_accuracy", "f1", "auc", "kappa", "stage_error")
DESIGNS = (
    *((2, 5, d) for d in (2.0, 3.0, 4.0)),
    *((2, 10, d) for d in (2.0, 3.0, 4.0)),
    *((2, 20, d) for d in (3.0, 4.0)),
    *((4, 10, d) for d in (3.0, 4.0, 5.0)),
)
N_FOLDS, N_DRAWS, N_TRUTH = 5, 500, 200_000


def classify(
    codes: np.ndarray, n_classes: int, distance: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted classes and decision values (n_people, n_classes)."""
    values = codes * distance + rng.normal(size=len(codes))
    decision = -np.abs(values[:, None] - np.arange(n_classes) * distance)
    return decision.argmax(axis=1), decision


def true_scores(n_classes: int, distance: float) -> dict[str, float]:
    codes = np.arange(N_TRUTH) % n_classes
    predicted, decision = classify(codes, n_classes, distance, np.random.default_rng(1))
    fold = np.zeros(N_TRUTH, dtype=int)
    whole = Predictions(codes, predicted, None, decision, fold, n_classes, True)
    scores = weighted_scores_by_name(whole, np.ones((1, N_TRUTH)))
    return {name: scores[name].item() for name in SCORES}


def make_evaluation(
    n_classes: int, n_per_class: int, distance: float, rng: np.random.Generator
) -> Evaluation:
    codes = np.repeat(np.arange(n_classes), n_per_class)
    names = np.array([f"stage{code}" for code in range(n_classes)])
    predicted, decision = classify(codes, n_classes, distance, rng)
    people = [f"P{number}" for number in range(len(codes))]
    predictions = pd.DataFrame(
        {
            "model": "it",
            "repeat": 1,
            "fold": np.arange(len(codes)) % N_FOLDS + 1,
            "scan": people,
            "participant": people,
            "truth": names[codes],
            "predicted": names[predicted],
        }
    )
    for code, name in enumerate(names):
        predictions[f"p_{name}"] = np.nan
        predictions[f"d_{name}"] = decision[:, code]
    scan_table = predictions[["scan", "participant"]].assign(label=names[codes])
    cohort = CohortSummary(
        table=scan_table,
        classes=tuple(names),
        classes_ordered=True,
        label_name="stage",
        atlas_name="none",
        region_names=("a",),
        measured=np.ones(1, dtype=bool),
        feature_names=("x",),
    )
    fits = pd.DataFrame({"model": ["it"], "failed": [""]})
    settings = {"n_repeats": 1}
    return Evaluation(predictions, pd.DataFrame(), fits, cohort, settings)


def is_within(interval: pd.Series, truth: float) -> bool:
    return bool(interval["low"] - 1e-9 <= truth <= interval["high"] + 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400)
    options = parser.parse_args()
    rows = []
    for n_classes, n_per_class, distance in DESIGNS:
        truth = true_scores(n_classes, distance)
        percentile = dict.fromkeys(SCORES, 0)
        covered = dict.fromkeys(SCORES, 0)
        n_perfect = 0
        for seed in range(options.studies):
            rng = np.random.default_rng([seed, n_classes, n_per_class])
            evaluation = make_evaluation(n_classes, n_per_class, distance, rng)
            found = bootstrap_score_table(evaluation, "it", N_DRAWS, seed)
            found = found.set_index("score")
            is_perfect = found.loc["balanced_accuracy", "estimate"] == 1
            n_perfect += is_perfect
            for name in SCORES:
                interval = found.loc[name]
                is_covered = is_within(interval, truth[name])
                covered[name] += is_covered
                is_extreme = interval["estimate"] == (name != "stage_error")
                percentile[name] += is_covered and not is_extreme
        figures = [
            f"{percentile[name] / options.studies:.2f}, "
            f"{covered[name] / options.studies:.2f}"
            for name in SCORES
        ]
        accuracy = f"{truth['balanced_accuracy']:.3f}"
        perfect = f"{n_perfect / options.studies:.2f}"
        rows.append((n_classes, n_per_class, accuracy, perfect, *figures))
        print(*rows[-1], flush=True)
    head = (
        "classes",
        "people in each",
        "true balanced accuracy",
        "perfect studies",
        *(name.replace("_", " ") for name in SCORES),
    )
    text = (
        f"{options.studies} studies a row, {N_DRAWS} draws. Coverage of bootstrap "
        "percentiles, then of the intervals with exact bounds.\n\n"
    )
    keep("perfect_scores", "Coverage at perfect scores", text + table(head, rows))


if __name__ == "__main__":
    main()
