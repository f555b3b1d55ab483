"""What the networks of LSAP-C add to the ridge that they start from.

LSAP-C and LSAP-R on the same folds, all defaults. `40`, `60`, `100`: simulated stages
(`make_cohort`, 82 regions, FDG-PET) of so many people. `normalized`, `combinatorial`,
`planted`, `permuted`: the cohorts on which methods are judged, 400 people, high noise.
`direction` and `interplay`: 400 people, half of them patients, and effects that no
linear model has: patients deviate from the others upwards or downwards in the same
eight regions; or two groups of four regions go together in some people and against each
other in patients. `bnu1`, `fcon1000`: sex on open data. Cohorts are independent, folds
are not: standard errors are over cohorts. Open data are divided into folds anew for
every seed, which says nothing about other people. `--epochs` and `--starts` are for a
quick look.

    python benchmarks/network_share.py 40 60 100 --seeds 20
"""

import argparse
import json
import time
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from benchmark_cohort import make_benchmark_cohort
from joblib import Parallel, delayed
from measuring import OPEN_COHORTS, keep, load, open_cohort, table

from brainlsap.data import Cohort
from brainlsap.evaluation import Evaluation, cross_validate, make_models
from brainlsap.simulation import make_cohort, make_random_generator

STAGED = ("40", "60", "100")
DECISIVE = ("normalized", "combinatorial", "planted", "permuted")
NONLINEAR = ("direction", "interplay")
MODELS = ("LSAP-C", "LSAP-R")
N_AFFECTED = 8
# Deviation of affected regions, in standard deviations over people.
DEVIATION = 1.0


def make_nonlinear_cohort(case: str, random_state: int, n_people: int = 400) -> Cohort:
    """Simulate patients and controls whose regions have the same means.

    Parameters
    ----------
    case : {"direction", "interplay"}
        "direction": eight regions of a patient deviate by one standard deviation, all
        upwards or all downwards, at random; controls do not deviate. "interplay": in
        everybody four regions deviate upwards or downwards, at random, and four others
        deviate, too: the same way in controls, the other way in patients.
    random_state : int
        Seed.
    n_people : int
        Half of them patients, one scan each.
    """
    cohort = make_cohort(
        n_people,
        atlas="desikan82",
        effect=0.0,
        visit_shares=(1,),
        shares={"CN": 0.5, "AD": 0.5},
        random_state=random_state,
    )
    rng = make_random_generator(random_state, "nonlinear")
    is_patient = cohort.table["label"].to_numpy() == "AD"
    direction = rng.permutation(np.where(np.arange(n_people) % 2, 1.0, -1.0))
    regions = rng.permutation(cohort.n_rois)[:N_AFFECTED]
    deviations = np.tile(direction[:, None], N_AFFECTED)
    if case == "direction":
        deviations[~is_patient] = 0.0
    else:
        deviations[is_patient, N_AFFECTED // 2 :] *= -1
    features = np.array(cohort.features)
    spread = features[:, regions, 0].std(axis=0)
    features[:, regions, 0] += DEVIATION * spread * deviations
    return replace(cohort, features=features)


def make_case(case: str, seed: int) -> Cohort:
    if case in STAGED:
        return make_cohort(
            int(case), atlas="desikan82", feature="fdg", random_state=seed
        )
    if case in OPEN_COHORTS:
        return open_cohort(case)
    if case in NONLINEAR:
        return make_nonlinear_cohort(case, seed)
    return make_benchmark_cohort(case, noise="high", random_state=seed)


class Difference(NamedTuple):
    """One cohort: scores of LSAP-R, LSAP-C minus LSAP-R, and weights of the folds."""

    accuracy: float
    accuracy_gain: float
    auc_gain: float
    weights: list[float]
    seconds: float


def compare_models(case: str, seed: int, settings: dict[str, int | None]) -> Difference:
    """Cross-validate both models on one cohort."""
    warnings.simplefilter("ignore")
    models = make_models(MODELS, random_state=seed, **settings)
    evaluation = cross_validate(
        models, make_case(case, seed), 5, random_state=seed, baselines=False
    )
    return summarize_evaluation(evaluation)


def summarize_evaluation(evaluation: Evaluation) -> Difference:
    scores = evaluation.scores().groupby("model")[["balanced_accuracy", "auc"]].mean()
    network, ridge = (scores.loc[name] for name in MODELS)
    fits = evaluation.fits[evaluation.fits["model"] == "LSAP-C"]
    weights = [json.loads(report)["network_weight"] for report in fits["report"]]
    gains = 100 * (network - ridge)
    return Difference(
        accuracy=ridge["balanced_accuracy"],
        accuracy_gain=gains["balanced_accuracy"],
        auc_gain=gains["auc"],
        weights=weights,
        seconds=fits["seconds_fit"].sum(),
    )


def mean_with_error(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):+.2f} ({error:.2f})"


def summarize(case: str, differences: list[Difference]) -> tuple[str, ...]:
    accuracy_gains = [difference.accuracy_gain for difference in differences]
    weights = np.concatenate([difference.weights for difference in differences])
    return (
        case,
        str(len(differences)),
        f"{np.mean([difference.accuracy for difference in differences]):.3f}",
        mean_with_error(accuracy_gains),
        f"{min(accuracy_gains):+.1f}, {max(accuracy_gains):+.1f}",
        mean_with_error([difference.auc_gain for difference in differences]),
        f"{(weights > 0).sum()} of {len(weights)}",
        f"{weights[weights > 0].mean():.2f}" if weights.any() else "",
    )


HEAD = (
    "cohorts",
    "n",
    "balanced accuracy of LSAP-R",
    "LSAP-C minus LSAP-R, points (s.e.)",
    "smallest, largest",
    "AUC, points (s.e.)",
    "folds with a network",
    "its mean weight",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    choices = (*STAGED, *DECISIVE, *NONLINEAR, *OPEN_COHORTS)
    parser.add_argument("cases", nargs="+", choices=choices)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="cohorts side by side")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--starts", type=int)
    options = parser.parse_args()
    settings = {"n_epochs": options.epochs, "n_starts": options.starts}
    for case in options.cases:
        start = time.time()
        differences = []
        comparisons = Parallel(options.jobs, return_as="generator")(
            delayed(compare_models)(case, seed, settings)
            for seed in range(options.seeds)
        )
        for seed, difference in enumerate(comparisons):
            differences.append(difference)
            print(seed, *summarize(case, differences), sep=" | ", flush=True)
        text = table(HEAD, [summarize(case, differences)])
        seconds = sum(difference.seconds for difference in differences)
        text += (
            f"\n\nFits of LSAP-C took {seconds:.0f} s of processes' time, "
            f"{time.time() - start:.0f} s in all with {options.jobs} processes"
        )
        keep("network_share", f"Cohorts {case}", f"{text}; {load()}.")


if __name__ == "__main__":
    main()
