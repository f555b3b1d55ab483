"""What the default is worth: decisive cohorts, kernels compared, a real data set.

`cohorts`: the cohorts fixed in advance (disease along each person's weighted
network by the normalised or by Raj's combinatorial operator, planted regions without
a network, labels permuted), 400 people each, seeds 0 to 4, 5 folds. Intervals are t
intervals over the cohorts, which are independent; folds are not.
`kernels`: the four kernels at equal error on one cohort.
`fcon1000`: sex from thickness and volume, on the sites that no setting was chosen on;
interval of the AUC difference by bootstrap over people.

    python benchmarks/quality.py cohorts --noise high --jobs 2
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import keep
from scipy import stats
from sklearn.metrics import roc_auc_score

from brainlsap.data import load_cohort, make_decisive_cohort
from brainlsap.evaluation import Evaluation, cross_validate, rank_regions
from brainlsap.model import LSAPClassifier
from brainlsap.study import study_baselines, study_models

SHARED = Path(__file__).parents[2] / "shared" / "data"
CASES = ("normalized", "combinatorial", "planted", "permuted")
MODES = {"LSAP": "region", "one global scale": "global", "frozen scale": "frozen"}
LINEAR = ("logistic regression", "linear SVM")
DIFFUSED = "diffused logistic regression"


def evaluate(models: dict, cohort, seed: int, jobs: int) -> Evaluation:
    baselines = study_baselines(seed)
    baselines.pop("majority class")
    return cross_validate(
        models, cohort, 5, seed, baselines=baselines, n_jobs=jobs, progress=True
    )


def means(evaluation: Evaluation, score: str = "balanced_accuracy") -> dict[str, float]:
    return {
        name: float(result.summary().loc[score, "mean"])
        for name, result in evaluation.results.items()
    }


def interval(differences: np.ndarray) -> str:
    mean = differences.mean()
    half = stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences)
    return f"{100 * mean:+.1f} [{100 * (mean - half):+.1f}, {100 * (mean + half):+.1f}]"


def cohorts(options: argparse.Namespace) -> tuple[str, list[str]]:
    title, lines = f"Decisive cohorts, {options.noise} noise, {options.seeds} seeds", []
    for case in options.cases:
        rows, found = [], []
        for seed in range(options.seeds):
            cohort = make_decisive_cohort(case, noise=options.noise, random_state=seed)
            # what learning a scale per region adds is asked where it should add most
            modes = MODES if case == "normalized" else {"LSAP": "region"}
            models = {
                name: LSAPClassifier(scale_mode=mode, random_state=seed)
                for name, mode in modes.items()
            }
            evaluation = evaluate(models, cohort, seed, options.jobs)
            rows.append(means(evaluation))
            if case == "planted":
                ranking = rank_regions(evaluation, truth=cohort.truth)
                found.append(int((ranking.nsmallest(10, "rank")["seed"]).sum()))
        table = pd.DataFrame(rows)
        best_linear = table[list(LINEAR)].max(axis=1)
        lines += [f"### {case}\n", "| model | balanced accuracy, mean of cohorts |"]
        lines += ["| --- | --- |"]
        lines += [f"| {name} | {table[name].mean():.3f} |" for name in table]
        rivals = {"best linear model": best_linear}
        others = [name for name in (DIFFUSED, *MODES) if name in table]
        rivals |= {name: table[name] for name in others if name != "LSAP"}
        lines += ["\n| LSAP minus | points [95 % interval] |", "| --- | --- |"]
        lines += [
            f"| {name} | {interval((table['LSAP'] - other).to_numpy())} |"
            for name, other in rivals.items()
        ]
        if found:
            lines.append(f"\nplanted regions among the ten smallest scales: {found}")
        lines.append("")
        print("\n".join(lines[-14:]), flush=True)
    return title, lines


def kernels(options: argparse.Namespace) -> tuple[str, list[str]]:
    cohort = make_decisive_cohort("normalized", noise=options.noise, random_state=0)
    names = ["exact", "chebyshev", "hermite", "laguerre"]
    # a limit that all four reach, so that only the kernel differs
    models = study_models(names, random_state=0, max_scale=5.0)
    evaluation = cross_validate(
        models, cohort, 5, 0, baselines=False, n_jobs=options.jobs, progress=True
    )
    exact = evaluation.result("Exact").scales()
    lines = ["| kernel | degree | balanced accuracy | RMSE of scales to Exact |"]
    lines += ["| --- | --- | --- | --- |"]
    for name, result in evaluation.results.items():
        degree = result.folds[0].details["fit_report"]["degree"]
        rmse = float(np.sqrt(((result.scales() - exact) ** 2).mean()))
        score = result.summary().loc["balanced_accuracy", "mean"]
        lines.append(f"| {name} | {degree} | {score:.3f} | {rmse:.4f} |")
    return "Kernels at equal error, tolerance 1e-4", [*lines, ""]


def fcon1000(options: argparse.Namespace) -> tuple[str, list[str]]:
    cohort = load_cohort(
        SHARED / "fcon1000_destrieux",
        feature="thickness",
        label="sex",
        subcortex="volume",
        connectome=SHARED
        / "tract_mni_destrieux/expected/count_radial4_sym_zerodiag.csv",
    )
    sites = sorted(set(cohort.table["site"]))
    unseen = cohort.table["site"].isin(sites[1::2]).to_numpy()
    cohort = cohort.select(unseen)
    models = {"LSAP": LSAPClassifier(random_state=0)}
    if options.paper:
        models["LSAP, paper preset"] = LSAPClassifier(
            preset="paper", random_state=0, n_epochs=options.paper
        )
    evaluation = evaluate(models, cohort, 0, options.jobs)
    title = (
        f"FCON1000, sex, the {len(sites[1::2])} sites that chose nothing, "
        f"{cohort.n_scans} people"
    )
    lines = [
        "| model | AUC, mean ± s.d. of folds | lowest fold | minus logistic regression,"
        " pooled [95 % interval over people] |",
        "| --- | --- | --- | --- |",
    ]
    pooled = {name: scores(result) for name, result in evaluation.results.items()}
    for name, result in evaluation.results.items():
        folds = [
            roc_auc_score(f.truth == f.classes[1], f.probability[:, 1])
            for f in result.folds
        ]
        cell = f"{np.mean(folds):.3f} ± {np.std(folds, ddof=1):.3f} | {min(folds):.3f}"
        lines.append(f"| {name} | {cell} | {difference(pooled, name)} |")
    return title, [*lines, ""]


def scores(result) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return truth, probability and person of each fold."""
    return [
        (fold.truth == fold.classes[1], fold.probability[:, 1], fold.participants)
        for fold in result.folds
    ]


def difference(pooled: dict, name: str, draws: int = 2000) -> str:
    """Bootstrap people within folds; the AUC is the mean of the folds' AUCs."""
    rng = np.random.default_rng(0)
    found = []
    pairs = list(zip(pooled[name], pooled["logistic regression"], strict=True))
    for draw in range(draws + 1):
        each = []
        for (truth, mine, _), (_, other, _) in pairs:
            rows = rng.integers(0, len(truth), len(truth)) if draw else slice(None)
            each.append(
                roc_auc_score(truth[rows], mine[rows])
                - roc_auc_score(truth[rows], other[rows])
            )
        found.append(np.mean(each))
    low, high = np.quantile(found[1:], [0.025, 0.975])
    return f"{found[0]:+.4f} [{low:+.4f}, {high:+.4f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = {"cohorts": cohorts, "kernels": kernels, "fcon1000": fcon1000}
    parser.add_argument("parts", nargs="+", choices=sorted(parts))
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--noise", choices=("low", "high"), default="high")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--paper", type=int, default=0, help="epochs of the paper preset; 0: without"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.parts:
        start = time.time()
        title, lines = parts[name](options)
        lines.append(f"{time.time() - start:.0f} s")
        text = "\n".join(lines)
        print(text, flush=True)
        print(keep("quality", title, text))


if __name__ == "__main__":
    main()
