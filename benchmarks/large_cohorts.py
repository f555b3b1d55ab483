"""Time and memory of cohorts up to the size of UK Biobank: 20,000 scans.

Simulated people in `destrieux160`, one feature, each scan with a connectome of its
own. Every size has a file and a process of its own, which loads the file, trains one
epoch of two layers of 16 units, and cross-validates: five folds, one epoch of the
default network each, beside tuned logistic regression. Time and memory of the audit
before the folds are part of it.

Peak resident memory is the kernel's VmHWM, set back before every step; it counts the
pages of mapped files, too, which the system can take back at any time. The part that
it cannot take back (RssAnon) is looked at 50 times a second.

What was measured is kept beside the files; `--kept` takes it from there.

    python benchmarks/large_cohorts.py [--sizes 1000 2000 5000 20000] [--folder KEPT]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import forget_peak, keep, peak, table

PIECE = 500
STEPS = ("load", "train", "cross-validate")
MEASURES = ("busy", "seconds", "peak", "anonymous")


def make_pieces(n_scans: int) -> Iterator:
    """Yield cohorts of people who come once, together so many scans."""
    from brainlsap.data import make_cohort

    for number, start in enumerate(range(0, n_scans, PIECE)):
        wanted = min(PIECE, n_scans - start)
        yield make_cohort(max(wanted, 20), visits=(1.0,), random_state=number).select(
            np.arange(wanted)
        )


def write_files(folder: Path, sizes: list[int]) -> None:
    """Write one cohort of the largest size, piece by piece, and its first scans."""
    from brainlsap._scratch import new_array, release
    from brainlsap.data import Cohort

    missing = [n for n in sizes if not (folder / f"{n}.h5").is_file()]
    if not missing:
        return
    n_scans, tables = max(missing), []
    W, X = new_array((n_scans, 160, 160)), np.empty((n_scans, 160, 1))
    started = time.perf_counter()
    for number, piece in enumerate(make_pieces(n_scans)):
        rows = slice(number * PIECE, number * PIECE + piece.n_scans)
        W[rows], X[rows] = piece.connectomes, piece.features
        for column in ("scan", "participant"):
            piece.table[column] = f"{number}-" + piece.table[column]
        tables.append(piece.table)
        release()
        print(
            f"made {rows.stop} scans, {time.perf_counter() - started:.0f} s", flush=True
        )
    W.flags.writeable = X.flags.writeable = False
    whole = Cohort(
        W, X, pd.concat(tables), piece.atlas, piece.feature_names, piece.classes
    )
    for n in missing:
        whole.select(np.arange(n)).save(folder / f"{n}.h5")


@contextmanager
def measured(told: dict, step: str) -> Iterator[None]:
    """Tell the seconds and the peaks of what is done inside."""
    forget_peak()
    most, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], anonymous())

    watcher = threading.Thread(target=look)
    watcher.start()
    start, busy = time.perf_counter(), time.process_time()
    yield
    told[step] = {
        "seconds": time.perf_counter() - start,
        "busy": time.process_time() - busy,
        "peak": peak(),
        "kept": anonymous(),
    }
    done.set()
    watcher.join()
    told[step]["anonymous"] = most[0]


def anonymous() -> int:
    """Return the bytes of this process that belong to no file."""
    status = Path("/proc/self/status").read_text().splitlines()
    line = next(one for one in status if one.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def go_the_way(path: Path) -> None:
    """Load, train and cross-validate; keep what each took beside the file."""
    from brainlsap._scratch import release
    from brainlsap.data import Cohort
    from brainlsap.evaluation import baseline_models, cross_validate
    from brainlsap.model import LSAPClassifier

    told: dict[str, dict] = {}
    one = {"n_epochs": 1, "n_starts": 1, "initial_scale": 1.0, "random_state": 0}
    with measured(told, "load"):
        cohort = Cohort.load(path)
    release()
    with measured(told, "train"):
        model = LSAPClassifier(n_layers=2, hidden_units=16, **one)
        model.fit(cohort.to_array(), cohort.y, groups=cohort.groups)
    release()
    with measured(told, "cross-validate"):
        evaluation = cross_validate(
            {"LSAP": LSAPClassifier(**one)},
            cohort,
            5,
            baselines={"LR": baseline_models()["logistic regression"]},
        )
    for name, result in evaluation.results.items():
        fits = [fold.details["seconds_fit"] for fold in result.folds]
        told["cross-validate"][name] = float(np.sum(fits))
    told["machine"] = {
        "load": os.getloadavg()[0],
        "threads": os.environ.get("OMP_NUM_THREADS", "all"),
    }
    print(json.dumps(told))
    path.with_suffix(".json").write_text(json.dumps(told))


def in_process(path: Path, *, kept: bool) -> dict:
    known = path.with_suffix(".json")
    if not (kept and known.is_file()):
        command = [sys.executable, __file__, "--measure", str(path)]
        subprocess.run(command, check=True)
    return json.loads(known.read_text())


def growth(sizes: list[int], values: list[float]) -> str:
    """Return the power with which values grow with sizes."""
    if len(sizes) < 2:
        return "-"
    return f"{np.polyfit(np.log(sizes), np.log(values), 1)[0]:.2f}"


def tables_of(found: dict[int, dict]) -> str:
    sizes, rows = list(found), []
    for step in STEPS:
        columns = [[found[n][step][name] for n in sizes] for name in MEASURES]
        for n, busy, took, most, own in zip(sizes, *columns, strict=True):
            cells = (
                f"{busy:.1f}",
                f"{took:.1f}",
                f"{most / 1e9:.2f}",
                f"{own / 1e9:.2f}",
            )
            rows.append((step, n, *cells))
        rows.append((step, "power of n", *(growth(sizes, one) for one in columns)))
    head = (
        "step",
        "scans",
        "seconds of the processor",
        "seconds",
        "peak resident, GB",
        "of it not of files, GB",
    )
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1000, 2000, 5000, 20000]
    )
    parser.add_argument("--folder", type=Path, help="of the files, kept")
    parser.add_argument("--make-only", action="store_true")
    parser.add_argument("--kept", action="store_true", help="earlier figures count")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        go_the_way(options.measure)
        return
    folder = options.folder or Path(tempfile.mkdtemp(prefix="brainlsap-cohorts-"))
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder, options.sizes)
    if not options.make_only:
        report(folder, options.sizes, kept=options.kept)
    if options.folder is None:
        shutil.rmtree(folder)


def report(folder: Path, sizes: list[int], *, kept: bool) -> None:
    found = {n: in_process(folder / f"{n}.h5", kept=kept) for n in sizes}
    size = (folder / f"{max(sizes)}.h5").stat().st_size / 1e9
    loads = [one["machine"]["load"] for one in found.values()]
    text = (
        f"{tables_of(found)}\n\nThe file of {max(sizes):,} scans has {size:.2f} GB. "
        f"One process, OMP_NUM_THREADS={found[max(sizes)]['machine']['threads']}; "
        f"{os.cpu_count()} cores with a load of {min(loads):.0f} to {max(loads):.0f}, "
        "so that seconds are those of a machine that does other work beside this; "
        "those of the processor are this process's own. Arrays above 500 MB are mapped "
        "to files. The audit's search for scans that are too alike compares all pairs, "
        "by few numbers of each first."
    )
    print(text)
    print(keep("large_cohorts", "Load, train and cross-validate", text))


if __name__ == "__main__":
    main()
