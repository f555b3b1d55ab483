"""The paper's classification table beside what honest folds give.

By default on a simulated cohort of the published composition; on a folder of subjects,
ADNI's for one, with --cohort: that fills in the column that we cannot. Every model runs
twice: on folds of people, and, to show what that is worth, on folds of scans, in which
visits of one person stand on both sides.

    python benchmarks/reproduction.py                  # as many scans as published
    python benchmarks/reproduction.py --people 60 --models "linear SVM,LSAP-C"
    python benchmarks/reproduction.py --cohort ADNI --feature fdg --full

Adds a dated table to benchmarks/results/reproduction.md. What stands under "published"
is the paper's; it is for five stages of ADNI, whose people are not here.
"""

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from brainlsap.data import Cohort, load_cohort, make_cohort
from brainlsap.evaluation import Evaluation, score_by_person_and_by_scan
from brainlsap.report import demographics_table, table_text
from brainlsap.study import COMPARED, find_names
from brainlsap.study.compared_models import Settings

RESULT = Path(__file__).parent / "results" / "reproduction.md"
# As many people make about the paper's 1,385 scans with FDG (1,323 with thickness).
PEOPLE = 750

# Accuracy (%), precision and recall of the paper's table, mean and s.d. over 5 folds.
PUBLISHED = {
    "fdg": {
        "linear SVM": ("85.27 ± 2.09", "0.857 ± 0.027", "0.869 ± 0.021"),
        "MLP": ("87.51 ± 1.62", "0.882 ± 0.024", "0.882 ± 0.014"),
        "GCN": ("68.81 ± 1.95", "0.677 ± 0.028", "0.697 ± 0.025"),
        "GAT": ("69.24 ± 7.13", "0.670 ± 0.106", "0.736 ± 0.037"),
        "GDC": ("86.21 ± 3.24", "0.867 ± 0.033", "0.870 ± 0.029"),
        "GraphHeat": ("76.97 ± 2.42", "0.775 ± 0.035", "0.773 ± 0.010"),
        "ADC": ("88.60 ± 2.81", "0.708 ± 0.062", "0.753 ± 0.053"),
        "LSAP-C": ("89.24 ± 2.23", "0.895 ± 0.022", "0.904 ± 0.023"),
        "LSAP-H": ("90.11 ± 2.44", "0.903 ± 0.027", "0.910 ± 0.022"),
        "LSAP-L": ("90.40 ± 1.38", "0.909 ± 0.018", "0.914 ± 0.015"),
        "Exact": ("90.18 ± 2.67", "0.907 ± 0.028", "0.907 ± 0.028"),
    },
    "thickness": {
        "linear SVM": ("82.39 ± 2.73", "0.822 ± 0.033", "0.852 ± 0.025"),
        "MLP": ("78.76 ± 2.21", "0.792 ± 0.036", "0.799 ± 0.026"),
        "GCN": ("61.37 ± 3.09", "0.598 ± 0.025", "0.626 ± 0.044"),
        "GAT": ("64.17 ± 5.46", "0.627 ± 0.067", "0.668 ± 0.046"),
        "GDC": ("77.10 ± 4.25", "0.769 ± 0.050", "0.785 ± 0.044"),
        "GraphHeat": ("70.90 ± 3.17", "0.703 ± 0.030", "0.718 ± 0.026"),
        "ADC": ("82.10 ± 2.41", "0.776 ± 0.019", "0.728 ± 0.067"),
        "LSAP-C": ("87.00 ± 2.16", "0.868 ± 0.027", "0.885 ± 0.027"),
        "LSAP-H": ("85.41 ± 2.32", "0.859 ± 0.031", "0.867 ± 0.030"),
        "LSAP-L": ("85.64 ± 1.86", "0.859 ± 0.022", "0.866 ± 0.022"),
        "Exact": ("86.24 ± 1.96", "0.866 ± 0.017", "0.867 ± 0.023"),
    },
}
SCORES = {"accuracy": 100, "precision": 1, "recall": 1}


def main() -> None:
    """Run what is asked for, print it, and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cohort", help="folder of subjects, such as ADNI's")
    parser.add_argument("--feature", default="fdg", choices=sorted(PUBLISHED))
    parser.add_argument("--people", type=int, default=PEOPLE, help="to simulate")
    parser.add_argument("--atlas", default="destrieux160")
    parser.add_argument("--models", default=",".join(PUBLISHED["fdg"]))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="choose settings inside")
    options = parser.parse_args()
    cohort = find_cohort(options)
    start = time.perf_counter()
    table = compare(cohort, options)
    text = describe(cohort, table, options, time.perf_counter() - start)
    print(text)
    with RESULT.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def find_cohort(options: argparse.Namespace) -> Cohort:
    """Return the user's cohort, or a simulated one."""
    if options.cohort:
        return load_cohort(options.cohort, atlas=options.atlas, feature=options.feature)
    return make_cohort(
        options.people,
        atlas=options.atlas,
        feature=options.feature,
        random_state=options.seed,
    )


def compare(cohort: Cohort, options: argparse.Namespace) -> pd.DataFrame:
    """Return a row for each model: published, by person, by scan."""
    names = find_names([name.strip() for name in options.models.split(",")])
    settings = Settings(options.seed, fast=not options.full)
    both = score_by_person_and_by_scan(
        {name: COMPARED[name].make(settings) for name in names},
        cohort,
        options.folds,
        options.seed,
        baselines=False,
        n_jobs=options.jobs,
    )
    published = PUBLISHED[options.feature]
    rows = []
    for name in names:
        row = {"model": name}
        for place, score in enumerate(SCORES):
            said = score + (" (%)" if place == 0 else "")
            row[f"{said}, published"] = published.get(name, ("-",) * 3)[place]
            row[f"{said}, by person"] = mean_and_sd(both.by_person, name, score)
            row[f"{said}, by scan"] = mean_and_sd(both.by_scan, name, score)
        rows.append(row)
    return pd.DataFrame(rows)


def mean_and_sd(evaluation: Evaluation, name: str, score: str) -> str:
    """Return a score over folds, as the paper prints it."""
    values = evaluation.result(name).scores()[score] * SCORES[score]
    digits = 2 if SCORES[score] == 100 else 3
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def describe(
    cohort: Cohort, table: pd.DataFrame, options: argparse.Namespace, seconds: float
) -> str:
    """Return what was run and what came out, as Markdown."""
    people = len(set(cohort.groups))
    kind = "own cohort" if options.cohort else "simulated"
    how = "chosen inside the folds" if options.full else "fixed (fast)"
    return "\n".join(
        [
            f"## Classification, {options.feature}, {kind}: {cohort.n_scans} scans of "
            f"{people} people, {cohort.n_rois} regions\n",
            f"{options.folds} folds, seed {options.seed}, settings {how}.\n",
            table_text(table, "markdown"),
            "\nDemographics:\n",
            table_text(demographics_table(cohort.table, cohort.classes), "markdown"),
            f"\n{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {seconds:.0f} s\n",
        ]
    )


if __name__ == "__main__":
    main()
