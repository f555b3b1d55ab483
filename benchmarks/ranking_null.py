"""Whether rankings find what was planted, and only that.

`recall`: cohorts with ten planted regions of 160, 200 people, 5 folds: how many of them
are among the ten smallest relative scales, and how many are significant among 24
permutations.
`null`: cohorts without any effect: 120 people, 82 regions, one graph, 99 permutations
of people's labels. At most 5% of cohorts may have a significant region; the rate stands
with its 95% interval.
`demo`: the demo's cohort (120 people, FDG) and its first model, for five seeds: the AUC
of the planted regions among all by relative scale.

    python benchmarks/ranking_null.py recall null demo [--cohorts 100] [--keep FOLDER]

`--keep` holds finished fits; started again, all parts go on there.
"""

import argparse

import numpy as np
import pandas as pd
from benchmark_cohort import make_benchmark_cohort
from measuring import keep, table
from tqdm import tqdm

from brainlsap.atlas import load_atlas
from brainlsap.data import Cohort
from brainlsap.evaluation import (
    cross_validate,
    make_models,
    permutation_null,
    rank_regions,
    ranking_auc,
)
from brainlsap.evaluation.comparison import wilson_interval
from brainlsap.evaluation.ranking import ALPHA
from brainlsap.evaluation.results import data_hash
from brainlsap.simulation import make_cohort

N_PEOPLE, N_ROIS, N_PERMUTATIONS = 120, 82, 99
# Enough to find what is planted; what the default settings find is in quality.md.
BRIEF = {"n_starts": 1, "start": "constant", "n_epochs": 80}


def draw_cohort(seed: int) -> Cohort:
    """Return 120 people in two classes that differ in nothing, one graph with hubs."""
    rng = np.random.default_rng([seed, 7])
    hub = rng.lognormal(0.0, 0.6, N_ROIS)
    chance = np.clip(0.2 * np.outer(hub, hub), 0, 1)
    weight = rng.lognormal(3.0, 0.5, (N_ROIS, N_ROIS))
    edges = np.triu(weight * (rng.random((N_ROIS, N_ROIS)) < chance), 1)
    ring = np.roll(np.eye(N_ROIS), 1, axis=1) * np.exp(3.0)
    graph = np.maximum(edges + edges.T, ring + ring.T)
    label = rng.permutation(np.repeat(["CN", "AD"], N_PEOPLE // 2))
    values = rng.normal(size=(N_PEOPLE, N_ROIS)) + rng.normal(0, 0.5, (N_PEOPLE, 1))
    people = [f"sub-{person:03d}" for person in range(N_PEOPLE)]
    table = {"scan": people, "participant": people, "session": "", "label": label}
    return Cohort(
        connectomes=np.broadcast_to(graph, (N_PEOPLE, N_ROIS, N_ROIS)),
        features=values[:, :, None],
        table=pd.DataFrame(table),
        atlas=load_atlas("desikan82"),
        feature_names=("value",),
        classes=("CN", "AD"),
    )


def null(options: argparse.Namespace) -> tuple[str, str]:
    """Count the cohorts without effect in which a region is significant."""
    rejected = 0
    for seed in tqdm(range(options.cohorts), desc="cohorts"):
        cohort = draw_cohort(seed)
        ranking = pd.DataFrame(
            {
                "model": "LSAP-C",
                "region": list(cohort.region_names),
                "measured": cohort.measured.any(axis=(0, 2)),
            }
        )
        ranking.attrs["steps"] = {"harmonize": None, "regress_out": ()}
        ranking.attrs["data_hash"] = data_hash(cohort)
        ranking = permutation_null(ranking, cohort, N_PERMUTATIONS, random_state=seed)
        rejected += ranking["p"].min() < ALPHA
    low, high = wilson_interval(rejected, options.cohorts)
    title = (
        f"No effect: {N_PEOPLE} people, {N_ROIS} regions, one graph, "
        f"{N_PERMUTATIONS} permutations"
    )
    rate = f"{rejected / options.cohorts:.3f}"
    row = (options.cohorts, rejected, rate, f"{low:.3f} to {high:.3f}")
    return title, table(
        ("cohorts", "with a significant region", "rate", "95% interval"), [row]
    )


def recall(options: argparse.Namespace) -> tuple[str, str]:
    """Count the planted regions among the smallest scales."""
    rows = []
    for seed in range(options.seeds):
        cohort = make_benchmark_cohort("planted", n_people=200, random_state=seed)
        models = make_models("lsap-c", random_state=seed, **BRIEF)
        how = {"random_state": seed, "n_jobs": options.jobs, "memory": options.keep}
        evaluation = cross_validate(models, cohort, 5, baselines=False, **how)
        ranking = rank_regions(evaluation)
        ranking = permutation_null(ranking, cohort, 24, random_state=seed)
        planted, small = ranking["planted"], ranking["p"] < 0.05
        rows.append(
            (
                seed,
                (planted & (ranking["rank"] <= 10)).sum(),
                f"{ranking_auc(ranking):.3f}",
                (small & planted).sum(),
                (small & ~planted).sum(),
            )
        )
        print(*rows[-1], flush=True)
    head = ("seed", "planted among the ten smallest relative scales", "AUC")
    head += ("planted at family-wise p < 0.05", "others at p < 0.05")
    return "Ten planted regions of 160, 200 people, low noise", table(head, rows)


def demo(options: argparse.Namespace) -> tuple[str, str]:
    """Ask how well the smallest scales find the seeds of the demo's cohorts."""
    rows = []
    for seed in range(options.seeds):
        cohort = make_cohort(120, feature="fdg", random_state=seed)
        models = make_models("LSAP-C", random_state=seed)
        how = {"random_state": seed, "n_jobs": options.jobs, "memory": options.keep}
        evaluation = cross_validate(models, cohort, 5, baselines=False, **how)
        score = evaluation.scores()["balanced_accuracy"].mean()
        auc = ranking_auc(rank_regions(evaluation))
        rows.append((seed, f"{score:.3f}", f"{auc:.3f}"))
        print(*rows[-1], flush=True)
    head = ("simulator's seed", "balanced accuracy", "AUC of the planted regions")
    return "The demo's cohort, 120 people", table(head, rows)


PARTS = {"recall": recall, "null": null, "demo": demo}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--cohorts", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    options = parser.parse_args()
    for part in options.parts:
        keep("ranking", *PARTS[part](options))


if __name__ == "__main__":
    main()
