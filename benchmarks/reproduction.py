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

import numpy as np
import pandas as pd
from measuring import keep
from published import PUBLISHED

from brainlsap.data import Cohort, load_cohort
from brainlsap.evaluation import Evaluation, cross_validate, make_models, make_splits
from brainlsap.report import demographics_table, table_text
from brainlsap.simulation import make_cohort

# As many people make about the paper's 1,385 scans with FDG (1,323 with thickness).
PEOPLE = 750
# Score: its name in the paper, and what it is multiplied by.
SCORES = {
    "accuracy": ("accuracy (%)", 100),
    "precision": ("precision", 1),
    "balanced_accuracy": ("recall", 1),
}


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
    reading = {"atlas": options.atlas, "feature": options.feature}
    if options.cohort:
        cohort = load_cohort(options.cohort, **reading)
    else:
        cohort = make_cohort(options.people, random_state=options.seed, **reading)
    people, kind = len(set(cohort.groups)), "own" if options.cohort else "simulated"
    text = "\n".join(
        [
            f"{options.folds} folds, seed {options.seed}, settings "
            f"{'chosen inside the folds' if options.full else 'fixed (fast)'}.\n",
            table_text(compare(cohort, options)),
            "\nDemographics:\n",
            table_text(demographics_table(cohort.table, cohort.classes)),
        ]
    )
    title = f"Classification, {options.feature}, {kind}: {cohort.n_scans} scans of "
    keep("reproduction", f"{title}{people} people, {cohort.n_rois} regions", text)


def compare(cohort: Cohort, options: argparse.Namespace) -> pd.DataFrame:
    """Return a row for each model: published, by person, by scan."""
    seed, names = options.seed, [name.strip() for name in options.models.split(",")]
    fast = {"n_starts": 1, "start": "constant", "n_epochs": 200}
    models = make_models(names, random_state=seed, **({} if options.full else fast))
    found = {}
    for way, groups in (
        ("by person", cohort.groups),
        ("by scan", np.arange(cohort.n_scans)),
    ):
        found[way] = cross_validate(
            models,
            cohort,
            make_splits(cohort.y, groups, options.folds, seed),
            random_state=seed,
            baselines=False,
            people_may_be_shared=way == "by scan",
            n_jobs=options.jobs,
        )
    rows = []
    for name in models:
        row = {"model": name}
        for place, (score, (title, _)) in enumerate(SCORES.items()):
            printed = PUBLISHED[options.feature].get(name, ("-",) * 3)
            row[f"{title}, published"] = printed[place]
            for way, evaluation in found.items():
                row[f"{title}, {way}"] = mean_and_sd(evaluation, name, score)
        rows.append(row)
    return pd.DataFrame(rows)


def mean_and_sd(evaluation: Evaluation, name: str, score: str) -> str:
    """Return a score over folds, as the paper prints it."""
    factor = SCORES[score][1]
    values = evaluation.scores().set_index("model").loc[name, score] * factor
    digits = 2 if factor == 100 else 3
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


if __name__ == "__main__":
    main()
