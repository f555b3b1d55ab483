"""How often the connectome gets credit, where it deserves some and where it does not.

Three kinds of cohorts, 20 of each:

- `random`: 200 people, 82 regions, two classes that differ by 0.3 s.d. in every region.
  Connectomes are drawn at random: of each person in even seeds, one for all in odd.
- `planted`: 400 people in five stages that differ in 10 of 160 regions; the connectomes
  have nothing to do with it.
- `normalized`: the same, but disease spreads from 6 regions along each person's own
  connectome, by exp(-3 L).

Each is judged with its own connectomes; ten of each of the last two also with regions
relabelled, or connectomes rewired, in place of them (and one draw of each null): then
nothing may be credited to the network. `open`: sex in the open data sets FCON1000 and
BNU_1.

`scores` asks the same of the score: LSAP-R is cross-validated beside LSAP-R with
shuffled edges, with the connectomes given and rewired.

    python benchmarks/connectome_worth.py cohorts open summary
        [--seeds 20] --runs FILE.csv
    python benchmarks/connectome_worth.py scores scores-summary
        [--seeds 20] --runs SCORES.csv

Every run adds a row to the file, and what is there is not computed again. Summaries
go to benchmarks/results/connectome_worth.md.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from benchmark_cohort import make_benchmark_cohort
from measuring import OPEN_COHORTS, keep, open_cohort, table

from brainlsap.atlas import load_atlas
from brainlsap.data import Cohort
from brainlsap.evaluation import (
    compare_by_person,
    connectome_gain,
    cross_validate,
    make_models,
)
from brainlsap.evaluation.connectome_worth import rewire_connectomes
from brainlsap.evaluation.models import NESTED_RIDGES, RANDOM_CONNECTOME_RIDGE

KINDS = ("random", "planted", "normalized")
CONNECTOMES = ("given", "relabelled", "rewired")
N_PEOPLE, EFFECT = 200, 0.3


def draw_random_cohort(seed: int) -> Cohort:
    """Return people in two classes that differ everywhere, and random connectomes."""
    rng = np.random.default_rng([seed, 3])
    atlas = load_atlas("desikan82")
    n_rois = len(atlas)
    code = rng.permutation(np.arange(N_PEOPLE) % 2)
    offset = rng.normal(0.0, 0.5, (N_PEOPLE, 1))
    values = rng.normal(size=(N_PEOPLE, n_rois)) + offset + EFFECT * code[:, None]
    shape = (1 if seed % 2 else N_PEOPLE, n_rois, n_rois)
    weight = rng.lognormal(0.0, 1.0, shape) * (rng.random(shape) < 0.5)
    upper = np.triu(weight, 1).astype(np.float32)
    connectomes = upper + upper.swapaxes(1, 2)
    people = [f"sub-{person:03d}" for person in range(N_PEOPLE)]
    label = np.array(["CN", "AD"])[code]
    columns = {"scan": people, "participant": people, "session": "", "label": label}
    return Cohort(
        connectomes=np.broadcast_to(connectomes, (N_PEOPLE, n_rois, n_rois)),
        features=values[:, :, None],
        table=pd.DataFrame(columns),
        atlas=atlas,
        feature_names=("value",),
        classes=("CN", "AD"),
    )


def replace_connectomes(cohort: Cohort, connectomes: str, seed: int) -> Cohort:
    """Return the cohort with relabelled or rewired connectomes in place of its own."""
    rng = np.random.default_rng([seed, 11])
    W = cohort.connectomes
    n_rois = cohort.n_rois
    if connectomes == "relabelled":
        order = rng.permutation(n_rois)
        W = W[:, order][:, :, order]
    elif connectomes == "rewired":
        W = rewire_connectomes(W, rng.permutation(n_rois * (n_rois - 1) // 2))
    return replace(cohort, connectomes=W)


def judge(cohort: Cohort, seed: int, n_draws: int = 3) -> dict[str, object]:
    """Return verdicts and gains of a cohort as a row of numbers."""
    start = time.process_time()
    gain = connectome_gain(cohort, n_draws=n_draws, random_state=seed)
    row: dict[str, object] = {"seconds": round(time.process_time() - start, 1)}
    questions = {"network": gain.network, "own": gain.own_connectome}
    for question, verdict in questions.items():
        if verdict is not None:
            row[question] = verdict.answer
            row |= {f"{question}_{k}": round(getattr(verdict, k), 2) for k in BOUNDS}
    for values in gain.table.to_dict("records"):
        name = str(values["connectome"])
        for score in ("evidence_gain", "error_gain"):
            for suffix in ("", "_low", "_high"):
                row[f"{name}: {score}{suffix}"] = round(values[score + suffix], 4)
    return row


BOUNDS = ("lead", "low", "high")


def run_cohorts(options: argparse.Namespace) -> None:
    """Judge all cohorts that are not in the file yet."""
    for seed in range(options.seeds):
        for kind in options.kinds:
            # Random connectomes in place of random ones would be the same cohorts.
            is_replaced = kind != "random" and seed < options.replaced
            replacements = CONNECTOMES if is_replaced else CONNECTOMES[:1]
            keys = [
                {"kind": kind, "connectomes": connectomes, "seed": seed}
                for connectomes in replacements
            ]
            keys = [key for key in keys if not is_stored(options.runs, key)]
            if not keys:
                continue
            if kind == "random":
                cohort = draw_random_cohort(seed)
            else:
                cohort = make_benchmark_cohort(kind, random_state=seed)
            for key in keys:
                connectomes = key["connectomes"]
                n_draws = 3 if connectomes == "given" else 1
                replaced = replace_connectomes(cohort, connectomes, seed)
                store(options.runs, key | judge(replaced, seed, n_draws))


def run_open(options: argparse.Namespace) -> None:
    """Judge the open data sets."""
    for name in OPEN_COHORTS:
        key = {"kind": name, "connectomes": "given", "seed": 0}
        if not is_stored(options.runs, key):
            store(options.runs, key | judge(open_cohort(name), seed=0))


def run_scores(options: argparse.Namespace) -> None:
    """Compare LSAP-R with its control in all cohorts that are not in the file yet."""
    for seed in range(options.seeds):
        for kind in options.kinds:
            for connectomes in SCORED_CONNECTOMES[kind]:
                key = {"kind": kind, "connectomes": connectomes, "seed": seed}
                if is_stored(options.runs, key):
                    continue
                if kind == "random":
                    cohort = draw_random_cohort(seed)
                else:
                    cohort = make_benchmark_cohort(kind, random_state=seed)
                cohort = replace_connectomes(cohort, connectomes, seed)
                store(options.runs, key | score(cohort, seed))


def score(cohort: Cohort, seed: int) -> dict[str, object]:
    """Return the scores of LSAP-R minus those of its controls as a row of numbers."""
    start = time.process_time()
    models = make_models(["LSAP-R", *CONTROLS], random_state=seed)
    evaluation = cross_validate(
        models, cohort, cv=5, baselines=False, random_state=seed
    )
    comparisons = compare_by_person(evaluation, "LSAP-R").set_index("model")
    row: dict[str, object] = {"seconds": round(time.process_time() - start, 1)}
    reports = evaluation.fits.loc[evaluation.fits["model"] == "LSAP-R", "report"]
    kinds = [json.loads(report)["chosen"] for report in reports]
    row["folds_with_connectome"] = len(kinds) - kinds.count("none")
    for control in CONTROLS:
        for name in ("difference", "low", "high", "p_value"):
            row[f"{control}: {name}"] = round(comparisons.loc[control, name], 4)
    return row


def summarise_scores(runs: pd.DataFrame) -> tuple[str, str]:
    """Return title and text of the differences of scores."""
    rows = []
    for (kind, connectomes), cohorts in runs.groupby(
        ["kind", "connectomes"], sort=False
    ):
        cells = [kind, connectomes, len(cohorts)]
        cells.append(f"{cohorts['folds_with_connectome'].mean():.1f}")
        for control in CONTROLS:
            low, high, p_value = (
                cohorts[f"{control}: {name}"] for name in ("low", "high", "p_value")
            )
            is_better = (low > 0) & (p_value < ALPHA)
            is_worse = (high < 0) & (p_value < ALPHA)
            differences = cohorts[f"{control}: difference"]
            cells.append(f"{differences.mean():+.3f} ({differences.std():.3f})")
            cells.append(f"{is_better.sum()} / {is_worse.sum()}")
        rows.append((*cells, f"{cohorts['seconds'].mean():.0f}"))
    head = ["cohorts", "connectomes", "n", "folds of 5 with a connectome"]
    for control in CONTROLS:
        head += [f"LSAP-R minus {control}: mean (s.d.)", "shown better / worse"]
    text = table([*head, "seconds of CPU"], rows)
    return "Balanced accuracy of LSAP-R minus that of its controls", text


CONTROLS = (NESTED_RIDGES[0], RANDOM_CONNECTOME_RIDGE)
ALPHA = 0.05
SCORED_CONNECTOMES = {
    "random": ("given",),
    "planted": ("given",),
    "normalized": ("given", "rewired"),
}


def is_stored(path: Path, key: dict[str, object]) -> bool:
    """Return whether the file has a row of this key."""
    if not path.is_file():
        return False
    rows = pd.read_csv(path, usecols=[*key]).astype(str)
    return bool((rows == pd.Series(key).astype(str)).all(axis=1).any())


def store(path: Path, row: dict[str, object]) -> None:
    """Add a row to the file and print its verdicts."""
    rows = pd.DataFrame([row])
    if path.is_file():
        rows = pd.concat([pd.read_csv(path), rows])
    rows.to_csv(path, index=False)
    facts = ("kind", "connectomes", "seed", "network", "network_lead", "network_low")
    print(
        *(row.get(name) for name in (*facts, "own", "own_lead", "seconds")), flush=True
    )


def summarise(runs: pd.DataFrame) -> tuple[str, str]:
    """Return title and text of the verdicts and gains of all runs."""
    rows = []
    simulated = runs[runs["kind"].isin(KINDS)]
    for kind in KINDS:
        for connectomes in CONNECTOMES:
            cohorts = simulated.query("kind == @kind and connectomes == @connectomes")
            if cohorts.empty:
                continue
            answers = [
                " / ".join(
                    str((cohorts[question] == answer).sum()) for answer in ANSWERS
                )
                for question in ("network", "own")
            ]
            gains = cohorts["original: evidence_gain"]
            quartiles = gains.quantile([0, 0.5, 1]).map("{:.1f}".format)
            error = 100 * cohorts["original: error_gain"].mean()
            # Half of a 90 % interval by the jackknife over ten groups is 1.83 s.e.
            half_width = cohorts["network_high"] - cohorts["network_lead"]
            spread = (
                f"{cohorts['network_lead'].std():.1f} / {half_width.mean() / 1.83:.1f}"
            )
            row = (kind, connectomes, len(cohorts), *answers, " / ".join(quartiles))
            seconds = f"{cohorts['seconds'].mean():.1f}"
            rows.append((*row, spread, f"{error:.1f}", seconds))
    head = ["cohorts", "connectomes", "n", "network: yes / unclear / no"]
    head += [
        "own connectome: yes / unclear / no",
        "gain in nats: least / median / most",
    ]
    head += ["s.d. of the lead over cohorts / mean s.e. by the jackknife"]
    head += ["left-out error removed (%)", "seconds of CPU"]
    text = table(head, rows)
    open_rows = [
        (
            row["kind"],
            f"{row['network']}: {interval_of(row, 'network')}",
            f"{row['own']}: {interval_of(row, 'own')}" if pd.notna(row["own"]) else "-",
            *(
                f"{row[f'{name}: evidence_gain']:.1f}"
                if pd.notna(row.get(f"{name}: evidence_gain"))
                else "-"
                for name in ("original", "relabelled", "rewired", "exchanged")
            ),
        )
        for row in runs[runs["kind"].isin(OPEN_COHORTS)].to_dict("records")
    ]
    if open_rows:
        head = ["data, sex", "network (lead, nats) [90%]", "own connectome [90%]"]
        head += ["gain", "relabelled", "rewired", "exchanged"]
        text += "\n\n" + table(head, open_rows)
    return "Credit to the connectome by residual columns", text


ANSWERS = ("yes", "unclear", "no")


def interval_of(row: dict[str, object], question: str) -> str:
    """Return the lead of a verdict with its interval."""
    lead, low, high = (row[f"{question}_{bound}"] for bound in BOUNDS)
    return f"{lead:.1f} [{low:.1f}, {high:.1f}]"


PARTS = ("cohorts", "open", "summary", "scores", "scores-summary")


def main() -> None:
    """Run what is asked for, and summarise all rows of the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=PARTS)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--replaced", type=int, default=10, help="seeds of these")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--runs", type=Path, required=True)
    options = parser.parse_args()
    if "open" in options.parts:
        run_open(options)
    if "cohorts" in options.parts:
        run_cohorts(options)
    if "scores" in options.parts:
        run_scores(options)
    if "scores-summary" in options.parts:
        keep("connectome_worth", *summarise_scores(pd.read_csv(options.runs)))
    if "summary" in options.parts:
        keep("connectome_worth", *summarise(pd.read_csv(options.runs)))


if __name__ == "__main__":
    main()
