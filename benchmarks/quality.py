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

import numpy as np
import pandas as pd
from benchmark_cohort import make_benchmark_cohort
from measuring import keep, open_cohort, table
from scipy import stats
from sklearn.metrics import roc_auc_score

from brainlsap.evaluation import (
    Evaluation,
    cross_validate,
    make_models,
    rank_regions,
)
from brainlsap.graph import choose_degree
from brainlsap.model import LSAPClassifier

CASES = ("normalized", "combinatorial", "planted", "permuted")
MODES = {"LSAP": "region", "one global scale": "global", "frozen scale": "frozen"}
LINEAR = ("logistic regression", "linear SVM")
RIDGES = (
    "ridge without connectome",
    "ridge with one scale",
    "ridge with a scale per region",
    "LSAP-R",
)


def evaluate(
    models: dict, cohort, seed: int, options: argparse.Namespace
) -> Evaluation:
    rivals = make_models([*LINEAR, *RIDGES], random_state=seed)
    return cross_validate(
        models | rivals,
        cohort,
        5,
        random_state=seed,
        baselines=False,
        n_jobs=options.jobs,
        verbose=True,
    )


def interval(differences: np.ndarray) -> str:
    mean = differences.mean()
    half = stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences)
    return f"{100 * mean:+.1f} [{100 * (mean - half):+.1f}, {100 * (mean + half):+.1f}]"


def cohorts(options: argparse.Namespace) -> tuple[str, list[str]]:
    title, lines = f"Decisive cohorts, {options.noise} noise, {options.seeds} seeds", []
    for case in options.cases:
        rows, found = [], []
        for seed in range(options.seeds):
            cohort = make_benchmark_cohort(
                case,
                noise=options.noise,
                n_people=options.people,
                random_state=seed,
            )
            # what learning a scale per region adds is asked where it should add most
            modes = MODES if case == "normalized" else {"LSAP": "region"}
            models = {
                name: LSAPClassifier(
                    scale_mode=mode, random_state=seed, **options.given
                )
                for name, mode in modes.items()
            }
            evaluation = evaluate(models, cohort, seed, options)
            scores = evaluation.scores().groupby("model")["balanced_accuracy"]
            rows.append(scores.mean()[list(evaluation.models)])
            if case == "planted":
                counts = []
                for name in ("LSAP", "ridge with a scale per region"):
                    ranking = rank_regions(evaluation, name)
                    top = ranking.nsmallest(10, "rank")["planted"]
                    counts.append(int(top.sum()))
                found.append(tuple(counts))
        scores = pd.DataFrame(rows)
        best_linear = scores[[*LINEAR, RIDGES[0]]].max(axis=1)
        means = [(name, f"{scores[name].mean():.3f}") for name in scores]
        head = ("model", "balanced accuracy, mean of cohorts")
        lines += [f"### {case}\n", table(head, means), ""]
        rivals = {"best model without a network": best_linear}
        others = [name for name in (*RIDGES, *MODES) if name in scores]
        rivals |= {name: scores[name] for name in others if name != "LSAP"}
        ahead = [
            (name, interval((scores["LSAP"] - other).to_numpy()))
            for name, other in rivals.items()
        ]
        lines.append(table(("LSAP minus", "points [95 % interval]"), ahead))
        if found:
            lines.append(
                f"\nplanted among the ten smallest scales (LSAP, ridge): {found}"
            )
        lines.append("")
        print("\n".join(lines[-14:]), flush=True)
    return title, lines


def kernels(options: argparse.Namespace) -> tuple[str, list[str]]:
    cohort = make_benchmark_cohort(
        "normalized", noise=options.noise, n_people=options.people, random_state=0
    )
    # a limit that all four reach, so that only the kernel differs
    names = ["Exact", "LSAP-C", "LSAP-H", "LSAP-L"]
    models = make_models(names, random_state=0, max_scale=5.0, **options.given)
    evaluation = cross_validate(
        models, cohort, 5, baselines=False, n_jobs=options.jobs, verbose=True
    )
    learned = evaluation.scales.query("start == 'mean' and share == 1")
    scales = learned.pivot(
        index=["repeat", "fold", "region"], columns="model", values="scale"
    )
    score = evaluation.scores().groupby("model")["balanced_accuracy"].mean()
    rows = []
    for name in names:
        rmse = float(np.sqrt(((scales[name] - scales["Exact"]) ** 2).mean()))
        kernel = models[name][0].kernel
        degree = "" if name == "Exact" else choose_degree(kernel, 5.0, 1e-4)
        rows.append((name, degree, f"{score[name]:.3f}", f"{rmse:.4f}"))
    head = ("kernel", "degree", "balanced accuracy", "RMSE of scales to Exact")
    return "Kernels at equal error, tolerance 1e-4", [table(head, rows), ""]


def fcon1000(options: argparse.Namespace) -> tuple[str, list[str]]:
    cohort = open_cohort("fcon1000")
    sites = sorted(set(cohort.table["site"]))
    cohort = cohort.select(cohort.table["site"].isin(sites[1::2]).to_numpy())
    models = {"LSAP": LSAPClassifier(random_state=0, **options.given)}
    if options.paper:
        models["LSAP, paper preset"] = LSAPClassifier(
            preset="paper", random_state=0, n_epochs=options.paper
        )
    evaluation = evaluate(models, cohort, 0, options)
    title = (
        f"FCON1000, sex, the {len(sites[1::2])} sites that chose nothing, "
        f"{cohort.n_scans} people"
    )
    second = cohort.classes[1]
    answers = {
        name: [
            ((fold["truth"] == second).to_numpy(), score_of(fold, second))
            for _, fold in part.groupby("fold")
        ]
        for name, part in evaluation.predictions.groupby("model", sort=False)
    }
    rows = []
    for name, folds in answers.items():
        auc = [roc_auc_score(*fold) for fold in folds]
        difference = auc_difference(folds, answers["logistic regression"])
        spread = f"{np.mean(auc):.3f} ± {np.std(auc, ddof=1):.3f}"
        rows.append((name, spread, f"{min(auc):.3f}", difference))
    head = ("model", "AUC, mean ± s.d. of folds", "lowest fold")
    head += ("minus logistic regression [95 % interval over people]",)
    return title, [table(head, rows), ""]


def score_of(fold: pd.DataFrame, second: str) -> np.ndarray:
    """Return probabilities, or decision values, of the second class."""
    probability = fold[f"p_{second}"]
    return (fold[f"d_{second}"] if probability.isna().all() else probability).to_numpy()


def auc_difference(mine: list, other: list, draws: int = 2000) -> str:
    """Bootstrap people within folds; the AUC is the mean of the folds' AUCs."""
    rng = np.random.default_rng(0)
    found = []
    for draw in range(draws + 1):
        each = []
        for (truth, one), (_, another) in zip(mine, other, strict=True):
            rows = rng.integers(0, len(truth), len(truth)) if draw else slice(None)
            each.append(
                roc_auc_score(truth[rows], one[rows])
                - roc_auc_score(truth[rows], another[rows])
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
    parser.add_argument("--people", type=int, default=400)
    parser.add_argument("--epochs", type=int, help="of LSAP, for a quick look")
    options = parser.parse_args()
    options.given = {"n_epochs": options.epochs} if options.epochs else {}
    warnings.simplefilter("ignore")
    for name in options.parts:
        start = time.time()
        title, lines = parts[name](options)
        lines.append(f"{time.time() - start:.0f} s")
        keep("quality", title, "\n".join(lines))


if __name__ == "__main__":
    main()
