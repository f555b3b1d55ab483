"""Scales by evidence: time, coverage of intervals, false claims, a small cohort.

`coverage`: networks, features and scales are drawn, targets from the model itself; the
share of true log scales within their 95 % intervals, 1,000 scales of 20 cohorts.
`null`: labels permuted between people; how often a richer model is accepted.
`bnu1`: 49 people with two scans each, sex from strength: AUC over 20 repeats of 5 folds
by person, beside logistic regression.
`sampler`: the same people, 20 seeds of the sampler: how much the posterior mean of a
region's log scale varies between them.
`time`: one fit at 1,323 scans (terms given), 5 folds with everything, 20,000 scans, and
LSAP in the same run.

    python benchmarks/ridge.py coverage null bnu1 sampler time
"""

import argparse
import time
import warnings

import numpy as np
from benchmark_cohort import make_benchmark_cohort
from measuring import forget_peak, keep, load, open_cohort, peak, resident, table
from scipy.stats import binomtest, rankdata
from sklearn.metrics import roc_auc_score

from brainlsap.arrays import pack_scans
from brainlsap.data import Cohort
from brainlsap.evaluation import make_models, make_splits
from brainlsap.evaluation.cross_validation import configure_model_for_cohort
from brainlsap.graph import Preparation
from brainlsap.model import LSAPClassifier, LSAPRidgeClassifier
from brainlsap.model.evidence import (
    LogEvidence,
    diffusion_terms,
    fit_scales_by_nested_model,
    term_basis,
)
from brainlsap.model.scale_sampler import sample_scales

MAX_SCALE = 10.0


def share(count: int, total: int) -> str:
    low, high = binomtest(count, total).proportion_ci(method="wilson")
    return f"{count} of {total} ({100 * low:.1f} to {100 * high:.1f} %)"


def draw_terms(rng: np.random.Generator, n_scans: int, n_rois: int) -> np.ndarray:
    shape = (n_scans, n_rois, n_rois)
    W = rng.gamma(0.3, size=shape) * (rng.random(shape) < 0.3)
    X = rng.normal(size=(n_scans, n_rois, 1))
    return diffusion_terms(W, X, Preparation(), term_basis(MAX_SCALE))


def coverage(_: argparse.Namespace) -> tuple[str, str]:
    rows = []
    for n_scans, noise, spread in ((400, 0.5, 0.5), (800, 0.3, 1.0), (400, 1.0, 0.5)):
        inside = {"curvature": 0, "30 draws": 0, "200 draws": 0}
        for seed in range(20):
            rng = np.random.default_rng(seed)
            terms = draw_terms(rng, n_scans, 50)
            truth = np.clip(
                0.3 + spread * rng.normal(size=50), np.log(0.01), np.log(MAX_SCALE)
            )
            u = np.ones(n_scans)
            blank = LogEvidence(
                terms, u[:, None], u, 1, term_basis(MAX_SCALE), uses_scan_matrix=True
            )
            signal = blank.standardized_columns_and_slopes(np.exp(truth))[
                0
            ] @ rng.normal(size=50)
            t = signal / signal.std() + noise * rng.normal(size=n_scans)
            evidence = LogEvidence(terms, t[:, None], u, 1, term_basis(MAX_SCALE))
            fit = fit_scales_by_nested_model(evidence, "regions", MAX_SCALE)["regions"]
            fits = [fit]
            fits += [sample_scales(evidence, fit, n, MAX_SCALE, rng) for n in (30, 200)]
            for name, one in zip(inside, fits, strict=True):
                low, high = np.log(one.interval).T
                inside[name] += int(((low <= truth) & (truth <= high)).sum())
        told = [share(count, 1000) for count in inside.values()]
        rows.append([n_scans, noise, spread, *told])
    heads = ["scans", "noise", "spread of log scales", "by curvature"]
    heads += ["30 draws, as the model", "200 draws"]
    return "95 % intervals of scales that hold the truth, 50 regions", table(
        heads, rows
    )


def null(_: argparse.Namespace) -> tuple[str, str]:
    rows = []
    for name in ("normalized", "bnu1"):
        cohort = (
            open_cohort("bnu1")
            if name == "bnu1"
            else make_benchmark_cohort(name, noise="high", n_people=400, random_state=0)
        )
        X = pack_scans(cohort.connectomes, cohort.features)
        people, first, inverse = np.unique(
            cohort.groups, return_index=True, return_inverse=True
        )
        order = cohort.classes if len(cohort.classes) > 2 else None
        claims = {"one": 0, "regions": 0}
        for seed in range(100):
            shuffled = np.random.default_rng(seed).permutation(cohort.y[first])
            model = LSAPRidgeClassifier(classes=order, n_draws=0)
            model.fit(X, shuffled[inverse], groups=cohort.groups)
            for scales in claims:
                claims[scales] += model.chosen_ == scales
        averaging = claims["one"] + claims["regions"]
        rows.append(
            [name, len(people), share(averaging, 100), share(claims["regions"], 100)]
        )
    heads = ["cohort, labels permuted", "people", "averaging chosen", "regions differ"]
    return "False claims", table(heads, rows)


def bnu1(_: argparse.Namespace) -> tuple[str, str]:
    cohort = open_cohort("bnu1")
    X, y, groups = (
        pack_scans(cohort.connectomes, cohort.features),
        cohort.y,
        cohort.groups,
    )
    found: dict[str, list[float]] = {}
    for seed in range(20):
        (linear, _), *_ = make_models(
            ["logistic regression"], random_state=seed
        ).values()
        models = {"logistic regression": linear} | {
            f"ridge, {scales}": LSAPRidgeClassifier(scales, random_state=seed)
            for scales in ("none", "one", "regions", "auto")
        }
        for train, test in make_splits(y, groups, 5, seed):
            for name, model in models.items():
                model.fit(X[train], y[train], groups=groups[train])
                p = model.predict_proba(X[test])[:, 1]
                found.setdefault(name, []).append(
                    roc_auc_score(y[test] == model.classes_[1], p)
                )
    rows = [[name, f"{np.mean(auc):.3f}"] for name, auc in found.items()]
    title = "BNU_1, sex from strength, 20 repeats of 5 folds by person"
    return title, table(["model", "AUC, mean of folds"], rows)


def learn_log_scales(
    cohort: Cohort, n_draws: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means of log scales, and s.d. by the width of intervals."""
    model = LSAPRidgeClassifier("regions", n_draws=n_draws, random_state=seed)
    model = configure_model_for_cohort(model, cohort)
    model.fit(cohort.to_array(), cohort.y, groups=cohort.groups)
    low, high = np.log(np.reshape(model.scales_interval_, (-1, 2)).T)
    return np.log(model.scales_), (high - low) / 3.92


def sampler(_: argparse.Namespace) -> tuple[str, str]:
    """Measure the Monte Carlo standard error of the posterior means of scales."""
    fcon1000 = open_cohort("fcon1000")
    chosen = np.random.default_rng(0).permutation(fcon1000.n_scans)[:200]
    cohorts = {
        "FCON1000, sex, 200 people": fcon1000.select(np.sort(chosen)),
        "normalized, 200 people": make_benchmark_cohort("normalized", n_people=200),
    }
    rows = []
    for title, cohort in cohorts.items():
        posterior_sd = learn_log_scales(cohort, 300, 1000)[1]
        for n_draws in (30, 120):
            runs = np.array(
                [learn_log_scales(cohort, n_draws, seed)[0] for seed in range(20)]
            )
            # Reports divide scales by that of the median region.
            relative_runs = runs - np.median(runs, axis=1, keepdims=True)
            ratios, relative_ratios = (
                np.std(values, axis=0, ddof=1) / posterior_sd
                for values in (runs, relative_runs)
            )
            agreement = np.corrcoef(rankdata(runs, axis=1))
            pairs = agreement[np.triu_indices(len(runs), 1)]
            rows.append(
                [
                    title,
                    n_draws,
                    f"{np.median(posterior_sd):.2f}",
                    f"{np.median(ratios):.2f} ({ratios.max():.2f})",
                    f"{np.median(relative_ratios):.2f} ({relative_ratios.max():.2f})",
                    f"{pairs.mean():.2f} ({pairs.min():.2f})",
                ]
            )
            print(*rows[-1], sep=" | ", flush=True)
    heads = ["cohort", "draws", "posterior s.d. of a log scale"]
    heads += ["standard error, in s.d.", "the same, relative to the median region"]
    heads += ["rank correlation of two seeds"]
    note = (
        "Median over regions (largest); rank correlation: mean over pairs (smallest). "
        "The standard error is the standard deviation of the posterior mean over 20 "
        "seeds. The posterior s.d. is that of 300 draws."
    )
    title = "Monte Carlo standard error of the posterior mean of a log scale"
    return title, f"{table(heads, rows)}\n\n{note}"


def times(options: argparse.Namespace) -> tuple[str, str]:
    rng, rows = np.random.default_rng(0), []
    cohort = make_benchmark_cohort("normalized", noise="high", n_people=400)
    again = np.resize(np.arange(400), options.scans)
    noisy = cohort.features[again] + 0.1 * rng.normal(size=(len(again), 160, 1))
    X, y = pack_scans(cohort.connectomes[again], noisy), cohort.y[again]
    groups = np.arange(len(again))
    terms = diffusion_terms(
        X[:, :, :160], noisy - noisy.mean(0), Preparation(), term_basis(MAX_SCALE)
    )
    codes = np.searchsorted(cohort.classes, y)[:, None].astype(float)

    def clock(name: str, call) -> None:
        wall, used = time.perf_counter(), time.process_time()
        call()
        wall, used = time.perf_counter() - wall, time.process_time() - used
        rows.append([name, f"{wall:.1f}", f"{used:.1f}"])

    def fit_scales(n_draws: int) -> None:
        evidence = LogEvidence(terms, codes, np.ones(len(y)), 1, term_basis(MAX_SCALE))
        fit = fit_scales_by_nested_model(evidence, "regions", MAX_SCALE)["regions"]
        if n_draws:
            sample_scales(evidence, fit, n_draws, MAX_SCALE, rng)

    def folds(model) -> None:
        for train, test in make_splits(y, groups, 5):
            model.fit(X[train], y[train], groups=groups[train])
            model.predict_proba(X[test])

    clock(
        f"nested models by evidence, {len(y)} scans, terms given", lambda: fit_scales(0)
    )
    clock("the same and 30 draws of all scales", lambda: fit_scales(30))
    clock("LSAP-R, 5 folds", lambda: folds(LSAPRidgeClassifier(classes=cohort.classes)))
    clock("LSAP-C, 5 folds", lambda: folds(LSAPClassifier()))
    again = np.resize(np.arange(400), options.large)
    large = np.empty((len(again), 160, 161), dtype=np.float32)
    for start in range(0, len(again), 400):
        part = again[start : start + 400]
        large[start : start + 400] = X[part]
    large[:, :, 160] += 0.1 * rng.normal(size=(len(again), 160))
    before = resident()
    forget_peak()
    model = LSAPRidgeClassifier(classes=cohort.classes)
    given = {"groups": np.arange(len(again))}
    clock(f"LSAP-R, {len(again)} scans", lambda: model.fit(large, y[again], **given))
    text = table(["what", "wall, s", "processor, s"], rows)
    text += (
        f"\n\nPeak {peak() / 1e9:.1f} GB; {before / 1e9:.1f} GB before the large fit."
    )
    return "Times, one thread", f"{text}\n\n{load()}"


PARTS = {
    "coverage": coverage,
    "null": null,
    "bnu1": bnu1,
    "sampler": sampler,
    "time": times,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--scans", type=int, default=1323)
    parser.add_argument("--large", type=int, default=20_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.parts:
        start = time.perf_counter()
        title, text = PARTS[name](options)
        keep("ridge", title, f"{text}\n\n{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
