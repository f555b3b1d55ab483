"""A whole study: from the folder of subjects to the report, and where its time goes.

Simulated scans of five stages with repeated visits, one feature, in `destrieux160`;
LSAP-C, the models by evidence and the linear controls, 5 folds, ranking, report. Wall
and processor time of each step (of all processes), and the largest memory of one.
Seconds of models are those of their fits and predictions, summed over folds, which run
side by side. Decomposing is timed by itself; it is a part of the models' time.

    python benchmarks/study.py [--people 600] [--jobs 2] [--permutations 200]
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import keep, table

from brainlsap import load_cohort, make_cohort, run_study, workflow
from brainlsap.graph import Preparation
from brainlsap.graph.laplacian import SpectrumCache
from brainlsap.simulation import write_study_folder

STEPS = ("cross_validate_with_calls", "compare_regions", "write_report")


def busy() -> float:
    """Return the processor seconds of this process and of those that it waited for."""
    used = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    each = [resource.getrusage(one) for one in used]
    return sum(one.ru_utime + one.ru_stime for one in each)


class Clock:
    """Wall and processor seconds of steps by name."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[float, float]] = {}

    def __call__(self, name: str, step: Callable) -> Callable:
        """Return the step, timed."""

        def timed(*given: Any, **named: Any) -> Any:
            start, used = time.perf_counter(), busy()
            found = step(*given, **named)
            took, spent = time.perf_counter() - start, busy() - used
            before = self.rows.get(name, (0.0, 0.0))
            self.rows[name] = before[0] + took, before[1] + spent
            return found

        return timed


def decompose_all(cohort: Any) -> None:
    for _ in SpectrumCache().iter_spectra(cohort.connectomes, Preparation()):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=600)
    parser.add_argument("--scans", type=int, default=1323)
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--permutations", type=int, default=200)
    options = parser.parse_args()
    clock = Clock()
    for name in STEPS:
        setattr(workflow, name, clock(name, getattr(workflow, name)))
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place) / "study", Path(place) / "results"
        made = make_cohort(options.people, feature="fdg", random_state=0)
        n_scans = min(options.scans, made.n_scans)
        write_study_folder(made.select(range(n_scans)), folder)
        cohort = clock("reading", load_cohort)(folder, feature="fdg")
        clock("decomposing, by itself", decompose_all)(cohort)
        how = {"n_jobs": options.jobs, "n_permutations": options.permutations}
        evaluation = clock("run_study", run_study)(cohort, out, **how)
    fits = evaluation.fits.groupby("model", sort=False)
    seconds = fits[["seconds_fit", "seconds_predict"]].sum().sum(axis=1)
    scores = evaluation.scores().groupby("model")["balanced_accuracy"].mean()
    rows = [(name, f"{a:.1f}", f"{b:.1f}") for name, (a, b) in clock.rows.items()]
    models = [
        (name, f"{seconds[name]:.1f}", f"{scores[name]:.3f}") for name in seconds.index
    ]
    of = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    most = max(resource.getrusage(one).ru_maxrss for one in of) / 1e6
    text = (
        f"{cohort.n_scans} scans of {len(set(cohort.groups))} people, "
        f"{options.permutations} permutations; one process took {most:.2f} GB.\n\n"
        + table(("step", "wall s", "processor s"), rows)
        + "\n\n"
        + table(("model", "seconds of fits", "balanced accuracy"), models)
    )
    keep("study", f"A study of {cohort.n_scans} scans", text)


if __name__ == "__main__":
    main()
