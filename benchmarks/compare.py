"""Every model and control on two open data sets.

BNU_1 (98 scans of 49 people, own connectomes, sex from node strength) and FCON1000
(1,078 people, one shared connectome, sex from thickness and volume); the tables and
the times go to benchmarks/results/compare.md, with a date.

    python benchmarks/compare.py [bnu1] [fcon1000] [--full] [--jobs 2]
"""

import argparse
import time

from measuring import OPEN_COHORTS, keep, load, open_cohort

from brainlsap.evaluation import cross_validate, make_models
from brainlsap.report import comparison_table, score_table, table_text

SCORES = ("accuracy", "precision", "balanced_accuracy", "auc", "f1")

FAST = {"n_starts": 1, "start": "constant", "n_epochs": 200}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohorts", nargs="*", choices=OPEN_COHORTS)
    parser.add_argument("--full", action="store_true", help="nothing fixed in advance")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--models", nargs="+", default=["all"])
    parser.add_argument("--epochs", type=int, help="of every network, at the most")
    options = parser.parse_args()
    given = {} if options.full else dict(FAST)
    given |= {"n_epochs": options.epochs} if options.epochs else {}
    for name in options.cohorts or OPEN_COHORTS:
        started, cohort = time.monotonic(), open_cohort(name)
        models = make_models(options.models, **given)
        evaluation = cross_validate(
            models, cohort, baselines=False, n_jobs=options.jobs, verbose=True
        )
        scores = score_table(evaluation, scores=SCORES)
        fits = evaluation.fits.groupby("model", sort=False)["seconds_fit"]
        scores["seconds a fit"] = fits.mean().round(1).to_numpy()
        text = (
            f"5 folds by person; settings "
            f"{'of the default' if options.full else f'fixed ({FAST})'}.\n\n"
            f"{table_text(scores)}\n{table_text(comparison_table(evaluation))}\n"
            f"{(time.monotonic() - started) / 60:.1f} min with {options.jobs} "
            f"processes; {load()}."
        )
        people = len(set(cohort.groups))
        keep("compare", f"{name}: {cohort.n_scans} scans of {people} people", text)


if __name__ == "__main__":
    main()
