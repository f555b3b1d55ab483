"""Where there is nothing to find: how often the tests find something.

`comparison`: 200 simulated cohorts (60 people, two visits for every third) and two
models that are equally good by design: each reads one of two features that are noisy
copies of the same thing, drawn alike. The corrected test of differences over folds may
call at most 18 of 200 significant at 5% (the 99% limit of an exact test); the paired
t-test, which takes folds for independent, is counted beside it.
`permuted`: labels permuted between people, all visits together, 20 times a model, on
open data; the mean of the scores must be within 3 standard errors of chance. Folds are
drawn anew for each permutation, as they would be for the true labels. With
`--models all`, every model and control with one start at a scale of 1, each
permutation on one held-out fold of five, so that 20 cost what four comparisons do.

`intervals`: 200 simulated cohorts of 40 people whose labels are permuted between
people, with two and with five classes of equal size. The 95% intervals of balanced
accuracy that contain chance are counted.

    python benchmarks/null_study.py comparison permuted intervals
    python benchmarks/null_study.py permuted --models all --keep FILE

`--keep` holds the scores of finished permutations; started again, it goes on there.
"""

import argparse
import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import OPEN_COHORTS, keep, open_cohort
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from brainlsap.atlas import load_atlas
from brainlsap.data import Cohort
from brainlsap.evaluation import (
    bootstrap_score_table,
    compare_models,
    corrected_t_test,
    cross_validate,
    make_models,
    make_splits,
)
from brainlsap.evaluation.models import make_standardizer, read_features
from brainlsap.evaluation.splits import list_person_blocks, permute_labels
from brainlsap.model import LSAPClassifier, LSAPRidgeClassifier
from brainlsap.simulation import make_cohort

LIMIT = 18


class OneFeature(TransformerMixin, BaseEstimator):
    """Hands on one feature of every region."""

    def __init__(self, place: int = 0) -> None:
        self.place = place

    def fit(self, X: np.ndarray, y: object = None) -> "OneFeature":  # noqa: ARG002
        self.fitted_ = True
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return X[:, :, X.shape[1] + self.place]


def draw_cohort(seed: int, n_people: int = 60) -> Cohort:
    """Two features that tell the class equally well; one connectome for everybody."""
    rng = np.random.default_rng(seed)
    atlas = load_atlas("desikan82")
    person = np.repeat(np.arange(n_people), 1 + (np.arange(n_people) % 3 == 0))
    code = person % 2
    effect = np.where(np.arange(len(atlas)) < 10, 0.35, 0.0)
    own = rng.normal(size=(n_people, len(atlas), 1))[person]
    noise = rng.normal(size=(len(person), len(atlas), 2))
    features = (code[:, None] * effect)[..., None] + 0.7 * own + 0.7 * noise
    table = pd.DataFrame(
        {
            "scan": [f"s{k}" for k in range(len(person))],
            "participant": [f"p{k}" for k in person],
            "session": "1",
            "label": np.array(["CN", "AD"])[code],
        }
    )
    return Cohort(
        connectomes=np.broadcast_to(np.ones((82, 82)), (len(person), 82, 82)),
        features=features + 10.0,
        table=table,
        atlas=atlas,
        feature_names=("one", "other"),
        classes=("CN", "AD"),
    )


def comparison(options: argparse.Namespace) -> tuple[str, list[str]]:
    models = {
        name: make_pipeline(OneFeature(place), LogisticRegression(C=0.1))
        for place, name in enumerate(("one", "other"))
    }
    lines = ["| design | simulations | corrected test | naive paired t-test |"]
    lines += ["| --- | --- | --- | --- |"]
    for repeats in options.repeats:
        corrected = naive = 0
        for seed in range(options.simulations):
            evaluation = cross_validate(
                models,
                draw_cohort(seed),
                5,
                random_state=seed,
                baselines=False,
                n_repeats=repeats,
            )
            corrected += compare_models(evaluation)["p_value"][0] < 0.05
            one, other = (
                part["balanced_accuracy"].to_numpy()
                for _, part in evaluation.scores().groupby("model")
            )
            naive += corrected_t_test(one - other, 1.0, 0.0).p_value < 0.05
        lines.append(
            f"| 5 folds, {repeats} repeats | {options.simulations} | {corrected} "
            f"({'at most' if corrected <= LIMIT else 'more than'} {LIMIT}) | {naive} |"
        )
        print(lines[-1], flush=True)
    return "False positives of two equal models at 5%", lines


FEATURES = FunctionTransformer(read_features)


def cheap_models(n_epochs: int) -> dict:
    """Return models at settings that make 100 fits of each affordable, untuned."""
    given = {"n_epochs": n_epochs, "n_starts": 1, "start": "constant"}
    return {
        "LSAP-C": LSAPClassifier(**given, random_state=0),
        "logistic regression": make_pipeline(
            FEATURES, make_standardizer(), LogisticRegression(C=0.01, max_iter=1000)
        ),
        "linear SVM": make_pipeline(
            FEATURES, make_standardizer(), LinearSVC(C=0.001, random_state=0)
        ),
        "majority class": DummyClassifier(strategy="prior"),
    }


def score_brief(cohort: Cohort, seed: int, n_epochs: int) -> dict[str, float]:
    """Return balanced accuracy of models at cheap settings, mean of five folds."""
    models = cheap_models(n_epochs)
    evaluation = cross_validate(models, cohort, 5, random_state=seed, baselines=False)
    return evaluation.scores().groupby("model")["balanced_accuracy"].mean().to_dict()


def score_all(cohort: Cohort, seed: int, n_epochs: int) -> dict[str, float]:
    """Return balanced accuracy of all models and controls on one fold of five."""
    given = {"n_starts": 1, "start": "constant", "n_epochs": n_epochs}
    models = make_models("all", random_state=seed, **given)
    splits = make_splits(cohort.y, cohort.groups, 5, seed)[:1]
    evaluation = cross_validate(
        models, cohort, splits, random_state=seed, baselines=False
    )
    return evaluation.scores().set_index("model")["balanced_accuracy"].to_dict()


SCORES = {
    "brief": (score_brief, "mean of five folds"),
    "all": (score_all, "one held-out fold of five"),
}


def permute_cohort(cohort: Cohort, seed: int) -> Cohort:
    """Return a cohort whose labels are permuted between people."""
    rng = np.random.default_rng(seed)
    labels = permute_labels(cohort.y, list_person_blocks(cohort.groups), rng)
    return replace(cohort, table=cohort.table.assign(label=labels))


def permuted_scores(name: str, options: argparse.Namespace) -> pd.DataFrame:
    """Return one row a permutation, one column a model; kept ones are taken over."""
    found: dict[int, dict[str, float]] = {}
    if options.keep is not None and options.keep.is_file():
        rows = [json.loads(line) for line in options.keep.read_text().splitlines()]
        found = {row["seed"]: row["scores"] for row in rows if row["data"] == name}
    cohort = open_cohort(name)
    for seed in range(options.permutations):
        if seed in found:
            continue
        drawn = permute_cohort(cohort, seed)
        found[seed] = SCORES[options.models][0](drawn, seed, options.epochs)
        row = {"data": name, "seed": seed, "scores": found[seed]}
        print(json.dumps(row), flush=True)
        if options.keep is not None:
            with options.keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    return pd.DataFrame([found[seed] for seed in range(options.permutations)])


def permuted(options: argparse.Namespace) -> tuple[str, list[str]]:
    how = SCORES[options.models][1]
    lines = [
        f"At most {options.epochs} epochs.\n",
        "| data | model | mean | standard error | distance from chance |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in options.data:
        table = permuted_scores(name, options)
        for model in table:
            mean = table[model].mean()
            error = table[model].std(ddof=1) / np.sqrt(len(table))
            gap = mean - 0.5  # both cohorts have two classes
            told = f"{gap / error:+.1f} standard errors" if error else f"{gap:+.3f}"
            lines.append(f"| {name} | {model} | {mean:.4f} | {error:.4f} | {told} |")
    times = options.permutations
    return f"Labels permuted between people, {times} times, {how}", lines


def chance_in_intervals(classes: tuple[str, ...], seed: int) -> dict[str, bool]:
    """Return by model whether the interval of balanced accuracy contains chance."""
    shares = dict.fromkeys(classes, 1 / len(classes))
    cohort = make_cohort(40, atlas="desikan82", shares=shares, random_state=seed)
    cohort = permute_cohort(cohort, seed)
    models = {
        "LSAP-R": LSAPRidgeClassifier(random_state=0),
        "logistic regression": cheap_models(0)["logistic regression"],
    }
    evaluation = cross_validate(models, cohort, 5, random_state=seed, baselines=False)
    contains_chance = {}
    for model in models:
        intervals = bootstrap_score_table(evaluation, model, 1000, seed).set_index(
            "score"
        )
        low, high = intervals.loc["balanced_accuracy", ["low", "high"]]
        contains_chance[model] = bool(low <= 1 / len(classes) <= high)
    return contains_chance


def intervals(options: argparse.Namespace) -> tuple[str, list[str]]:
    lines = ["| classes | model | cohorts | intervals that contain chance |"]
    lines += ["| --- | --- | --- | --- |"]
    for classes in (("CN", "AD"), ("CN", "SMC", "EMCI", "LMCI", "AD")):
        counts = pd.DataFrame(
            [chance_in_intervals(classes, seed) for seed in range(options.simulations)]
        ).sum()
        for model, n_intervals in counts.items():
            share = n_intervals / options.simulations
            lines.append(
                f"| {len(classes)} | {model} | {options.simulations} | {share:.1%} |"
            )
            print(lines[-1], flush=True)
    return "Intervals of balanced accuracy without an effect, 40 people", lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = {"comparison": comparison, "permuted": permuted, "intervals": intervals}
    parser.add_argument("parts", nargs="+", choices=sorted(parts))
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--repeats", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--permutations", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--models", choices=SCORES, default="brief")
    parser.add_argument("--keep", type=Path)
    parser.add_argument(
        "--data", nargs="+", choices=OPEN_COHORTS, default=list(OPEN_COHORTS)
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.parts:
        title, lines = parts[name](options)
        keep("null", title, "\n".join(lines))


if __name__ == "__main__":
    main()
