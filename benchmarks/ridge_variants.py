"""Variants of LSAP-R beside LSAP-R on the same folds: what was tried, and kept or not.

`averaged`: predictions of the three nested models averaged with the softmax of their
log evidence, in place of the chosen one's; `averaged, 20 to 1`: each richer model is
taken to be 20 times less probable beforehand, as in the choice. `strength`: log node
strength as a further feature of every region, where connectomes differ. `half-Cauchy`:
the prior of the ratio r of noise to signal (ridge over columns) is half-Cauchy with
centre 1, as a density of log r; without draws, and held against LSAP-R without draws.

Designs: FCON1000 (sex; five folds, and training on 50 people drawn at random, tested
on the rest), BNU_1 (sex from strength), the deciding cohorts at high noise, and small
studies like those on mice: 32 people, and a dominant factor balanced against the
label. One of these is of FCON1000 (sex, people under 25 or over 45 years), one is
simulated (`make_crossed_cohort`).

    python benchmarks/ridge_variants.py [--designs "BNU_1, 5 folds" ...] [--seeds N]
    python benchmarks/ridge_variants.py --prior-only  # half-Cauchy, a tenth of the time
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pandas as pd
from benchmark_cohort import make_benchmark_cohort
from measuring import keep, open_cohort, table
from scipy.special import softmax
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from brainlsap.arrays import pack_scans, unpack_connectomes_and_features
from brainlsap.data import Cohort
from brainlsap.evaluation import make_splits
from brainlsap.evaluation.splits import Split
from brainlsap.model import LSAPRidgeClassifier
from brainlsap.model.evidence import (
    MIN_LOG_BAYES_FACTOR,
    NESTED_MODELS,
    LogEvidence,
    _ScalePosterior,
    class_targets,
)
from brainlsap.model.ridge import _fit_class_means_and_precision

N_TRAINED = 32
N_TESTED = 200
N_TRAINED_RANDOM = 50


def average_models(
    models: dict[str, LSAPRidgeClassifier],
    log_prior_odds: float,
    y: np.ndarray,
    groups: np.ndarray,
) -> LSAPRidgeClassifier:
    """Return a ridge whose scores are those of nested ridges, averaged by evidence.

    `log_prior_odds` are those of each nested model against the one before.
    """
    average = LSAPRidgeClassifier()
    average.__dict__.update(models["regions"].__dict__)
    log_evidence = np.array([average.evidence_[name] for name in NESTED_MODELS])
    shares = softmax(log_evidence + log_prior_odds * np.arange(len(NESTED_MODELS)))
    for name in ("left_out_scores_", "coefficients_", "intercept_"):
        parts = [getattr(models[model], name) for model in NESTED_MODELS]
        total = sum(share * part for share, part in zip(shares, parts, strict=True))
        setattr(average, name, total)
    codes = pd.Index(average.stages_).get_indexer(y)
    n_visits = pd.Series(groups).map(pd.Series(groups).value_counts()).to_numpy()
    weights = 1 / n_visits / np.bincount(codes, 1 / n_visits)[codes]
    weights *= len(set(groups)) / weights.sum()
    targets = class_targets(codes, average.fit_report_["ordered"])
    average.means_, average.precision_ = _fit_class_means_and_precision(
        average.left_out_scores_, targets, codes, weights
    )
    return average


def add_strength(X: np.ndarray) -> np.ndarray:
    """Return packed scans with log node strength as a further feature."""
    W, features = unpack_connectomes_and_features(X)
    strength = W.sum(axis=2, dtype=np.float64)
    log_strength = np.log(np.where(strength > 0, strength, np.nan))
    return pack_scans(W, np.concatenate([features, log_strength[:, :, None]], axis=2))


def _no_penalty(log_ridge: float) -> float:  # noqa: ARG001
    return 0.0


class HalfCauchyPosterior(_ScalePosterior):
    """The posterior with the half-Cauchy prior of the ratio of noise to signal."""

    def __init__(self, evidence: LogEvidence, max_scale: float) -> None:
        super().__init__(evidence, max_scale)
        evidence.log_ridge_shortfall_of = _no_penalty  # replaces the usual prior

    def log_prior(self, log_ridge: float) -> tuple[float, float]:
        """Return minus the log of r / (1 + r^2), and its slope in log r."""
        log_ratio = log_ridge - np.log(self.evidence_function.n_columns)
        return float(np.logaddexp(log_ratio, -log_ratio)), float(np.tanh(log_ratio))

    def compute_own_value_and_slope(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value of the model without a network, and its slope."""
        value, slope = super().compute_own_value_and_slope(x)
        penalty, penalty_slope = self.log_prior(x[0])
        return value + penalty, slope + penalty_slope

    def __call__(self, x: np.ndarray, spread: float) -> tuple[float, np.ndarray]:
        """Return the value and its gradient in x."""
        value, slope = super().__call__(x, spread)
        penalty, slope_of_penalty = self.log_prior(x[0])
        slope[0] += slope_of_penalty
        return value + penalty, slope


def make_crossed_cohort(random_state: int) -> Cohort:
    """Simulate people of two classes, and a stronger factor balanced against them.

    The first 32 are to train on. The factor moves all regions by 3 (s.d. of the error)
    times a pattern of its own, the class 20 of 160 regions by 1. Every person has a
    connectome, which has nothing to do with either.
    """
    n_people = N_TRAINED + N_TESTED
    base = make_benchmark_cohort(
        "permuted", n_people=n_people, random_state=random_state
    )
    rng = np.random.default_rng(random_state)
    is_case, has_factor = np.arange(n_people) % 2, np.arange(n_people) // 2 % 2
    class_effect = np.where(rng.permutation(base.n_rois) < 20, 1.0, 0.0)
    factor_effect = 3 * rng.normal(size=base.n_rois)
    values = rng.normal(size=(n_people, base.n_rois))
    values += np.outer(is_case, class_effect) + np.outer(has_factor, factor_effect)
    y = np.where(is_case == 1, "case", "control")
    return Cohort.from_arrays(
        base.connectomes, values, y, groups=np.arange(n_people), atlas=base.atlas
    )


def fold_cohort(cohort: Cohort, seed: int) -> tuple[Cohort, list[Split]]:
    return cohort, make_splits(cohort.y, cohort.groups, 5, seed)


def draw_people(cohort: Cohort, seed: int) -> tuple[Cohort, list[Split]]:
    """Train on 50 people drawn at random, and test on all others."""
    order = np.random.default_rng(seed).permutation(cohort.n_scans)
    return cohort, [(order[:N_TRAINED_RANDOM], order[N_TRAINED_RANDOM:])]


def draw_crossed(cohort: Cohort, seed: int) -> tuple[Cohort, list[Split]]:
    """Train on 32 people, age balanced against sex; test on 200 others, balanced."""
    age = cohort.table["age"].astype(float).to_numpy()
    groups = np.where(age < 25, "young ", np.where(age > 45, "old ", ""))
    cells = pd.Series(groups) + cohort.y
    rng = np.random.default_rng(seed)
    train, test = [], []
    for cell in sorted(set(cells[groups != ""])):
        people = rng.permutation(np.flatnonzero(cells == cell))
        train += [*people[: N_TRAINED // 4]]
        test += [*people[N_TRAINED // 4 :][: N_TESTED // 4]]
    return cohort, [(np.array(train), np.array(test))]


def simulate_crossed(seed: int) -> tuple[Cohort, list[Split]]:
    cohort = make_crossed_cohort(seed)
    rows = np.arange(cohort.n_scans)
    return cohort, [(rows[:N_TRAINED], rows[N_TRAINED:])]


DESIGNS = {
    "FCON1000, 5 folds": (2, lambda seed: fold_cohort(open_once("fcon1000"), seed)),
    "FCON1000, 50 people": (20, lambda seed: draw_people(open_once("fcon1000"), seed)),
    "FCON1000, 32 people, age crossed": (
        40,
        lambda seed: draw_crossed(open_once("fcon1000"), seed),
    ),
    "32 people, factor crossed, simulated": (10, simulate_crossed),
    "BNU_1, 5 folds": (10, lambda seed: fold_cohort(open_once("bnu1"), seed)),
}
"""Number of seeds, and what gives cohort and folds of a seed."""
for _case in ("normalized", "combinatorial", "planted"):
    DESIGNS[f"{_case}, 5 folds"] = (
        3,
        lambda seed, case=_case: fold_cohort(
            make_benchmark_cohort(case, noise="high", random_state=seed), seed
        ),
    )

_opened: dict[str, Cohort] = {}


def open_once(name: str) -> Cohort:
    """Return open data, read once."""
    if name not in _opened:
        _opened[name] = open_cohort(name)
    return _opened[name]


def fit_priors(
    X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: tuple[str, ...] | None
) -> Iterator[tuple[str, LSAPRidgeClassifier, bool]]:
    """Yield LSAP-R without draws at the usual and at the half-Cauchy prior."""
    model = LSAPRidgeClassifier(classes=classes, n_draws=0)
    yield "no draws", model.fit(X, y, groups), False
    model = LSAPRidgeClassifier(classes=classes, n_draws=0)
    with mock.patch("brainlsap.model.evidence._ScalePosterior", HalfCauchyPosterior):
        yield "half-Cauchy", model.fit(X, y, groups), False


def fit_variants(
    X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: tuple[str, ...] | None
) -> Iterator[tuple[str, LSAPRidgeClassifier, bool]]:
    """Yield each variant by name, fitted, and whether it reads strength."""
    names = ("auto", *NESTED_MODELS)
    models = {name: LSAPRidgeClassifier(name, classes=classes) for name in names}
    models["auto"].fit_with([models[name] for name in NESTED_MODELS], X, y, groups)
    yield "LSAP-R", models["auto"], False
    yield "averaged", average_models(models, 0.0, y, groups), False
    average = average_models(models, -MIN_LOG_BAYES_FACTOR, y, groups)
    yield "averaged, 20 to 1", average, False
    if models["auto"].shared_connectome_ is None:
        model = LSAPRidgeClassifier(classes=classes)
        yield "strength", model.fit(add_strength(X), y, groups), True
    yield from fit_priors(X, y, groups, classes)


def score_design(
    design: str, n_seeds: int | None, *, is_prior_only: bool = False
) -> pd.DataFrame:
    """Return scores of each variant and seed, means of the folds."""
    fit_all = fit_priors if is_prior_only else fit_variants
    usual_seeds, make_design = DESIGNS[design]
    rows = []
    for seed in range(n_seeds or usual_seeds):
        cohort, splits = make_design(seed)
        X, y, groups = (
            pack_scans(cohort.connectomes, cohort.features),
            cohort.y,
            cohort.groups,
        )
        classes = cohort.classes if len(cohort.classes) > 2 else None
        for train, test in splits:
            variants = fit_all(X[train], y[train], groups[train], classes)
            for name, model, reads_strength in variants:
                inputs = add_strength(X[test]) if reads_strength else X[test]
                p = model.predict_proba(inputs)
                is_binary = len(model.classes_) == 2
                rows.append(
                    {
                        "variant": name,
                        "seed": seed,
                        "balanced accuracy": balanced_accuracy_score(
                            y[test], model.predict(inputs)
                        ),
                        "AUC": roc_auc_score(
                            y[test], p[:, 1] if is_binary else p, multi_class="ovr"
                        ),
                        "log loss": log_loss(y[test], p, labels=model.classes_),
                    }
                )
    return pd.DataFrame(rows).groupby(["variant", "seed"], sort=False).mean()


def difference_text(scores: pd.DataFrame, variant: str, score: str) -> str:
    """Return a variant's score, and its difference from LSAP-R (s.e.)."""
    reference = "no draws" if variant == "half-Cauchy" else "LSAP-R"
    values = scores.loc[variant, score]
    differences = values - scores.loc[reference, score]
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{values.mean():.3f} ({differences.mean():+.3f} ± {error:.3f})"


def main() -> None:
    """Run what is asked for, print it, and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--seeds", type=int, help="by default as many as each design's")
    parser.add_argument("--prior-only", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    variants = ["averaged", "averaged, 20 to 1", "strength", "half-Cauchy"]
    reference, suffix = "LSAP-R", ""
    if options.prior_only:
        variants, reference, suffix = ["half-Cauchy"], "no draws", ", prior only"
    for design in options.designs:
        start = time.perf_counter()
        scores = score_design(design, options.seeds, is_prior_only=options.prior_only)
        rows = []
        for score in scores:
            row = [score, f"{scores.loc[reference, score].mean():.3f}"]
            for variant in variants:
                is_scored = variant in scores.index.get_level_values(0)
                text = difference_text(scores, variant, score) if is_scored else "n/a"
                row.append(text)
            rows.append(row)
        n_seeds = scores.index.get_level_values(1).nunique()
        text = (
            f"{table(['score', reference, *variants], rows)}\n\nIn brackets: paired "
            f"difference, mean and s.e. over {n_seeds} seeds. "
            f"{time.perf_counter() - start:.0f} s"
        )
        keep("ridge_variants", f"{design}{suffix}", text)


if __name__ == "__main__":
    main()
