"""Accuracy against the number of layers K: the paper's figure, by honest folds.

    python benchmarks/layers.py [--seeds 2] [--people 400]

The simulated cohort whose disease spreads along each person's network (normalised
operator, high noise); LSAP-C with K = 1 to 4 and otherwise the default's settings, at
one fixed start of the scales so that K alone differs; logistic regression beside it.
"""

import argparse

import numpy as np
from benchmark_cohort import make_benchmark_cohort
from matplotlib.figure import Figure
from measuring import RESULTS, keep, table

from brainlsap.evaluation import cross_validate, make_models
from brainlsap.model import LSAPClassifier

DEPTHS = (1, 2, 3, 4)


def scores(seeds: int, people: int, jobs: int) -> dict[str, list[np.ndarray]]:
    """Return balanced accuracies of the folds, one array for each seed."""
    found: dict[str, list[np.ndarray]] = {}
    for seed in range(seeds):
        cohort = make_benchmark_cohort(
            "normalized", noise="high", n_people=people, random_state=seed
        )
        models = {
            f"K = {k}": LSAPClassifier(
                n_layers=k,
                start="constant",
                initial_scale=2.0,
                n_starts=1,
                random_state=seed,
            )
            for k in DEPTHS
        }
        models |= make_models("logistic regression", random_state=seed)
        done = cross_validate(
            models, cohort, 5, random_state=seed, baselines=False, n_jobs=jobs
        )
        for name, part in done.scores().groupby("model", sort=False):
            values = part["balanced_accuracy"].to_numpy()
            found.setdefault(name, []).append(values)
            print(seed, name, values.mean().round(3), flush=True)
    return found


def draw_figure(found: dict[str, list[np.ndarray]]) -> None:
    figure = Figure(figsize=(4.2, 3.0), layout="constrained")
    ax = figure.subplots()
    folds = {name: np.concatenate(values) for name, values in found.items()}
    mine = [folds[f"K = {k}"] for k in DEPTHS]
    ax.errorbar(
        DEPTHS, [v.mean() for v in mine], [v.std(ddof=1) for v in mine],
        marker="o", capsize=3, color="#2c6fbb", label="LSAP-C (mean ± s.d. of folds)",
    )  # fmt: skip
    ax.axhline(
        folds["logistic regression"].mean(),
        color="#b5542c",
        linestyle="--",
        label="logistic regression",
    )
    ax.axhline(0.2, color="0.6", linestyle=":", label="chance")
    ax.set_xticks(DEPTHS)
    ax.set_xlabel("heat convolutions K")
    ax.set_ylabel("balanced accuracy, 5 stages")
    ax.set_ylim(0, 1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small", loc="upper right")
    figure.savefig(RESULTS / "accuracy_by_layers.png", dpi=200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--people", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    found = scores(options.seeds, options.people, options.jobs)
    rows = [
        (name, f"{np.mean(v):.3f}", f"{np.concatenate(v).std(ddof=1):.3f}")
        for name, v in found.items()
    ]
    text = table(("model", "balanced accuracy", "s.d. of folds"), rows)
    draw_figure(found)
    keep("layers", f"{options.people} people, {options.seeds} seeds", text)


if __name__ == "__main__":
    main()
