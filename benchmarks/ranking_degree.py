"""Whether a scale that follows degree is flagged, end to end through `brainlsap rank`.

Cohorts of `brainlsap simulate` (desikan82, 100 people), written as subject folders and
read again by the command: as they are, and with the disease exchanged for one that
shows in the half of the regions that has the fewest connections. Beside them the
planted cohorts that methods are judged on (160 regions, 200 people), by its functions.

    python benchmarks/ranking_degree.py [--seeds 5]
"""

import argparse
import contextlib
import io
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from ranking_null import BRIEF, PLANTED_PEOPLE, append

from brainlsap.cli import main as brainlsap
from brainlsap.data import (
    Cohort,
    make_cohort,
    make_decisive_cohort,
    write_subject_folders,
)
from brainlsap.evaluation import (
    confound_table,
    cross_validate,
    rank_regions,
    region_properties,
)
from brainlsap.study import study_models

N_PEOPLE, THRESHOLD = 100, 10
DEEPEST = 5.0
"""Standard deviations by which regions of few connections are lower in AD."""


def draw(seed: int) -> Cohort:
    return make_cohort(N_PEOPLE, atlas="desikan82", visits=(1.0,), random_state=seed)


def follow_degree(cohort: Cohort, seed: int) -> Cohort:
    """Return the cohort with a disease of the regions of few connections."""
    rng = np.random.default_rng([seed, 17])
    degree = region_properties(cohort, THRESHOLD)["degree"]
    few = (degree < degree.median()).to_numpy()
    severity = np.array([cohort.classes.index(one) for one in cohort.y]) / 4
    values = rng.normal(1.2, 0.1, size=(cohort.n_scans, cohort.n_rois))
    values -= 0.1 * DEEPEST * severity[:, None] * few
    truth = cohort.truth.assign(seed=few, effect=-0.1 * DEEPEST * few)
    return replace(cohort, features=values[:, :, None], truth=truth)


def by_command(cohort: Cohort) -> pd.Series:
    """Return the row of degree that `brainlsap rank` reports, and what it says."""
    with tempfile.TemporaryDirectory() as place:
        write_subject_folders(cohort, f"{place}/study")
        asked = ["rank", f"{place}/study", "--out", f"{place}/out", "--atlas"]
        asked += ["desikan82", "--feature", "fdg", "--permutations", "0"]
        asked += ["--starts", "1", "--epochs", str(BRIEF["n_epochs"])]
        asked += ["--threshold", str(THRESHOLD)]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            if brainlsap(asked) != 0:
                raise SystemExit("brainlsap rank failed")
        table = Path(place) / "out" / "report" / "tables" / "confounds.csv"
        row = pd.read_csv(table).set_index("property").loc["degree"]
    note = next((x for x in said.getvalue().split("\n") if "Scale follows" in x), "")
    return row.rename(str("degree (Spearman" in note))


def by_functions(seed: int) -> tuple[float, bool]:
    cohort = make_decisive_cohort(
        "planted", noise="low", n_people=PLANTED_PEOPLE, random_state=seed
    )
    models = study_models(["chebyshev"], random_state=seed, **BRIEF)
    evaluation = cross_validate(models, cohort, 5, seed, baselines=False)
    ranking = rank_regions(evaluation)
    table = confound_table(ranking, region_properties(cohort)).set_index("property")
    row = table.loc["degree"]
    return float(row["spearman"]), bool(row["flagged"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "## Degree, end to end: Spearman of learned scale and degree, and whether "
        "`brainlsap rank` flags it\n",
        "| seed | disease where degree is low | as simulated | planted, 160 regions |",
        "| --- | --- | --- | --- |",
    ]
    for seed in range(options.seeds):
        cohort = draw(seed)
        cells = []
        for one in (follow_degree(cohort, seed), cohort):
            row = by_command(one)
            rho = row["Spearman with scale"]
            cells.append(f"{rho}, {'flagged' * (row.name == 'True')}")
        rho, flagged = by_functions(seed)
        cells.append(f"{rho:+.2f}, {'flagged' if flagged else ''}")
        told = " | ".join(cell.removesuffix(", ") for cell in cells)
        lines.append(f"| {seed} | {told} |")
        print(lines[-1], flush=True)
    append(lines)


if __name__ == "__main__":
    main()
