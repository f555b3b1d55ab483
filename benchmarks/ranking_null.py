"""Whether rankings find what was planted, and only that.

`recall`: cohorts with ten planted regions of 160, 200 people, 5 folds, one network: how
many of them are among the ten smallest scales, and whether the permutation null (24
refits) rejects.
`null`: cohorts without any effect: 120 people, 40 regions, one graph, 99 permutations
of people's labels, one fit each. The maximum statistic may find a region in 5% of them.
`degree`: scales made by hand that merely follow node degree, which must be flagged, and
the same in random order, which must not.

    python benchmarks/ranking_null.py recall null degree [--cohorts 100] [--keep FILE]

`--keep` holds the p-values of finished cohorts; started again, `null` goes on there.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from brainlsap.data import Atlas, Cohort, make_decisive_cohort
from brainlsap.evaluation import (
    confound_table,
    cross_validate,
    null_p_values,
    rank_regions,
    rank_scales,
    region_properties,
)
from brainlsap.model import LSAPClassifier
from brainlsap.study import permuted_scales, study_models

RESULTS = Path(__file__).parent / "results" / "ranking.md"
N_PEOPLE, N_ROIS, N_PERMUTATIONS = 120, 40, 99
PLANTED_PEOPLE = 200
# What one refit costs decides how many can be made: one network, few epochs.
CHEAP = {
    "n_starts": 1,
    "initial_scale": 1.0,
    "n_epochs": 12,
    "options": {"patience": 0, "learning_rate": 0.05},
}
# Enough to find what is planted; what the default settings find is in quality.md.
BRIEF = {"n_starts": 1, "initial_scale": 1.0, "n_epochs": 80}
N_REFITS = 24


def small_atlas() -> Atlas:
    """Return 40 regions without surfaces."""
    half = N_ROIS // 2
    number = [f"{i + 1:02d}" for i in range(half)]
    columns = {
        "name": [f"ctx_{side}_{n}" for side in ("lh", "rh") for n in number],
        "freesurfer_id": np.arange(N_ROIS) + 1,
        "hemisphere": ["L"] * half + ["R"] * half,
        "structure": "cortex",
        "annot_name": number * 2,
        "long_name": [f"region {n}" for n in number * 2],
        "lobe": "none",
        "short_name": [f"({side}) {n}" for side in "LR" for n in number],
        **dict.fromkeys("xyz", 0.0),
    }
    return Atlas(name="forty", regions=pd.DataFrame(columns), folder=None)


def draw_graph(rng: np.random.Generator) -> np.ndarray:
    """Return one network with hubs: degrees from about 4 to 25."""
    hub = rng.lognormal(0.0, 0.6, N_ROIS)
    chance = np.clip(0.3 * np.outer(hub, hub), 0, 1)
    weight = rng.lognormal(3.0, 0.5, (N_ROIS, N_ROIS))
    edges = np.triu(weight * (rng.random((N_ROIS, N_ROIS)) < chance), 1)
    ring = np.roll(np.eye(N_ROIS), 1, axis=1) * np.exp(3.0)
    return np.maximum(edges + edges.T, ring + ring.T)


def draw_cohort(seed: int) -> Cohort:
    """Return 120 people in two classes that differ in nothing."""
    rng = np.random.default_rng([seed, 7])
    graph = draw_graph(rng)
    label = rng.permutation(np.repeat(["CN", "AD"], N_PEOPLE // 2))
    values = rng.normal(size=(N_PEOPLE, N_ROIS)) + rng.normal(0, 0.5, (N_PEOPLE, 1))
    people = [f"sub-{person:03d}" for person in range(N_PEOPLE)]
    table = {"scan": people, "participant": people, "session": "", "label": label}
    return Cohort(
        connectomes=np.broadcast_to(graph, (N_PEOPLE, N_ROIS, N_ROIS)),
        features=values[:, :, None],
        table=pd.DataFrame(table),
        atlas=small_atlas(),
        feature_names=("value",),
        classes=("CN", "AD"),
    )


def test_one(seed: int) -> float:
    """Return the smallest family-wise p-value of a cohort without effect."""
    found = permuted_scales(
        LSAPClassifier(**CHEAP), draw_cohort(seed), N_PERMUTATIONS, seed
    )
    return float(null_p_values(*found)["p_family"].min())


def null(options: argparse.Namespace) -> list[str]:
    kept = Path(options.keep) if options.keep else None
    smallest: dict[int, float] = {}
    if kept is not None and kept.is_file():
        rows = [json.loads(line) for line in kept.read_text().splitlines()]
        smallest = {row["seed"]: row["p"] for row in rows}
    for seed in tqdm(range(options.cohorts), desc="cohorts"):
        if seed in smallest:
            continue
        smallest[seed] = test_one(seed)
        if kept is not None:
            with kept.open("a") as file:
                file.write(json.dumps({"seed": seed, "p": smallest[seed]}) + "\n")
    values = np.array([p for seed, p in smallest.items() if seed < options.cohorts])
    return [
        f"## No effect: {N_PEOPLE} people, {N_ROIS} regions, one graph, "
        f"{N_PERMUTATIONS} permutations, one fit each\n",
        "| cohorts | with a region at family-wise p < 0.05 | expected by chance |",
        "| --- | --- | --- |",
        f"| {len(values)} | {(values < 0.05).sum()} | {0.04 * len(values):.1f} |",
    ]


def recall(options: argparse.Namespace) -> list[str]:
    lines = [
        f"## Ten planted regions of 160, {PLANTED_PEOPLE} people, low noise\n",
        "| seed | planted among the ten smallest scales | planted at family-wise "
        "p < 0.05 | others at p < 0.05 | smallest p |",
        "| --- | --- | --- | --- | --- |",
    ]
    for seed in range(options.seeds):
        cohort = make_decisive_cohort(
            "planted", noise="low", n_people=PLANTED_PEOPLE, random_state=seed
        )
        models = study_models(["chebyshev"], random_state=seed, **BRIEF)
        evaluation = cross_validate(
            models, cohort, 5, seed, baselines=False, n_jobs=options.jobs, progress=True
        )
        ranking = rank_regions(evaluation, truth=cohort.truth)
        found = int((ranking["seed"] & (ranking["rank"] <= 10)).sum())
        p = null_p_values(
            *permuted_scales(
                models["LSAP-C"],
                cohort,
                N_REFITS,
                seed,
                n_jobs=options.jobs,
                progress=True,
            )
        )["p_family"]
        small, planted = p < 0.05, ranking["seed"].to_numpy()
        lines.append(
            f"| {seed} | {found} | {(small & planted).sum()} | "
            f"{(small & ~planted).sum()} | {p.min():.2f} |"
        )
    return lines


def degree(options: argparse.Namespace) -> list[str]:
    """Flag scales made by hand on drawn networks: after degree, and at random."""
    flagged = {"scale follows degree": 0, "scale is random": 0}
    for seed in range(options.cohorts):
        cohort = draw_cohort(seed)
        properties = region_properties(cohort)
        rng = np.random.default_rng([seed, 11])
        links = properties["degree"].to_numpy()
        after = 2 - links / links.max() + rng.normal(0, 0.2, (5, N_ROIS))
        for name, scales in {
            "scale follows degree": after,
            "scale is random": rng.permuted(after, axis=1),
        }.items():
            ranking = rank_scales(scales, cohort.region_names)
            table = confound_table(ranking, properties).set_index("property")
            flagged[name] += bool(table.loc["degree", "flagged"])
    return [
        "## Scales made by hand on drawn networks of 40 regions: is degree flagged?\n",
        "| scales | flagged | of |",
        "| --- | --- | --- |",
        *(f"| {name} | {n} | {options.cohorts} |" for name, n in flagged.items()),
    ]


PARTS = {"recall": recall, "null": null, "degree": degree}


def append(lines: list[str]) -> str:
    """Add lines and the time to the results, and return them as text."""
    text = "\n".join([*lines, f"\n{datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n"])
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--cohorts", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    options = parser.parse_args()
    for part in options.parts:
        print(append(PARTS[part](options)), flush=True)


if __name__ == "__main__":
    main()
