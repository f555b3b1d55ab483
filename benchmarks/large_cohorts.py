"""Time and memory of cohorts up to the size of UK Biobank: 20,000 scans.

Simulated people in `destrieux160`, one feature, each scan with a connectome of its
own. Every size has a file and a process of its own, which loads the file, trains one
epoch of two layers of 16 units, and cross-validates: five folds, one epoch of the
default network each, beside tuned logistic regression. Time and memory of the audit
before the folds are part of it. Peak resident memory is the kernel's VmHWM, set back
before every step.

    python benchmarks/large_cohorts.py [--sizes 1000 2000 5000 20000] [--folder KEPT]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import forget_peak, keep, load, peak, table

PIECE = 500
STEPS = ("load", "train", "cross-validate")
HEAD = ("step", "scans", "seconds of the processor", "seconds", "peak resident, GB")


def write_files(folder: Path, sizes: list[int]) -> None:
    """Write one cohort of the largest size, piece by piece, and its first scans."""
    from brainlsap.data import Cohort
    from brainlsap.simulation import make_cohort

    missing = [n for n in sizes if not (folder / f"{n}.h5").is_file()]
    if not missing:
        return
    n_scans, tables, started = max(missing), [], time.perf_counter()
    W = np.empty((n_scans, 160, 160), np.float32)
    X = np.empty((n_scans, 160, 1))
    for number, start in enumerate(range(0, n_scans, PIECE)):
        rows = slice(start, min(start + PIECE, n_scans))
        n_people = rows.stop - start
        piece = make_cohort(max(n_people, 20), visit_shares=(1.0,), random_state=number)
        piece = piece.select(range(n_people))
        W[rows], X[rows] = piece.connectomes, piece.features
        names = {k: f"{number}-" + piece.table[k] for k in ("scan", "participant")}
        tables.append(piece.table.assign(**names))
        spent = time.perf_counter() - started
        print(f"made {rows.stop} scans, {spent:.0f} s", flush=True)
    W.flags.writeable = X.flags.writeable = False
    people = pd.concat(tables, ignore_index=True)
    whole = Cohort(W, X, people, piece.atlas, piece.feature_names, piece.classes)
    for n in missing:
        (whole if n == n_scans else whole.select(range(n))).save(folder / f"{n}.h5")


@contextmanager
def measured(told: dict[str, list[float]], step: str) -> Iterator[None]:
    """Tell the seconds, of the processor and by the clock, and the peak in GB."""
    forget_peak()
    start, busy = time.perf_counter(), time.process_time()
    yield
    took = time.process_time() - busy, time.perf_counter() - start
    told[step] = [*took, peak() / 1e9]


def go_the_way(path: Path, steps: list[str]) -> None:
    """Load, train and cross-validate; print what each took as JSON."""
    from brainlsap.data import Cohort
    from brainlsap.evaluation import cross_validate, make_models
    from brainlsap.model import LSAPClassifier

    told: dict[str, list[float]] = {}
    one = {"n_epochs": 1, "n_starts": 1, "start": "constant", "random_state": 0}
    with measured(told, "load"):
        cohort = Cohort.load(path)
    if "train" in steps:
        with measured(told, "train"):
            model = LSAPClassifier(n_layers=2, options={"hidden_units": 16}, **one)
            model.fit(cohort.to_array(), cohort.y, groups=cohort.groups)
    if "cross-validate" in steps:
        models = {"LSAP": LSAPClassifier(**one)} | make_models("logistic regression")
        with measured(told, "cross-validate"):
            cross_validate(models, cohort, baselines=False)
    print(json.dumps(told))


def measure(path: Path, steps: list[str]) -> dict[str, list[float]]:
    command = [sys.executable, __file__, "--measure", str(path), "--steps", *steps]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    print(path.name, done.stdout, flush=True)
    return json.loads(done.stdout.splitlines()[-1])


def report(folder: Path, sizes: list[int], steps: list[str]) -> None:
    found, rows = {n: measure(folder / f"{n}.h5", steps) for n in sizes}, []
    for step in found[sizes[0]]:
        values = np.array([found[n][step] for n in sizes])
        rows += [
            (step, n, f"{busy:.1f}", f"{took:.1f}", f"{most:.2f}")
            for n, (busy, took, most) in zip(sizes, values, strict=True)
        ]
        if len(sizes) > 1:
            powers = np.polyfit(np.log(sizes), np.log(values), 1)[0]
            rows.append((step, "power of n", *(f"{one:.2f}" for one in powers)))
    size = (folder / f"{max(sizes)}.h5").stat().st_size / 1e9
    text = (
        f"{table(HEAD, rows)}\n\nThe file of {max(sizes):,} scans has {size:.2f} GB. "
        f"One process, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'all')}; "
        f"{load()}. The audit's search for scans that are too alike compares all "
        "pairs, by few numbers of each first."
    )
    keep("large_cohorts", f"Up to {max(sizes):,} scans", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = [1000, 2000, 5000, 20000]
    parser.add_argument("--sizes", type=int, nargs="+", default=sizes)
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--folder", type=Path, help="of the files, kept")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        go_the_way(options.measure, options.steps)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = options.folder or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        write_files(folder, options.sizes)
        report(folder, options.sizes, options.steps)


if __name__ == "__main__":
    main()
