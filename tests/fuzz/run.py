"""Fuzz readers for long: `python -m tests.fuzz.run [NAME ...] --seconds 600`.

By random faults, or guided by coverage with `--guided` (atheris must be installed).
Each target runs in a process of its own, so that a crash of a library or an endless
loop is seen as what it is. Inputs that get through are kept in `tests/fuzz/found/`;
executions are added to the table `benchmarks/results/fuzz.md`.
"""

import argparse
import hashlib
import logging
import multiprocessing
import sys
import tempfile
import time
import warnings
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.fuzz.guided import run_guided
from tests.fuzz.mutations import mutate
from tests.fuzz.one_input import EscapeError, Place
from tests.fuzz.table import add_run, runs_of
from tests.fuzz.targets import TARGETS

FOUND = Path(__file__).parent / "found"
# A process that says nothing for so long hangs where no signal reaches it.
MOST_SILENT = 120.0


@dataclass
class Outcome:
    """What came of a run."""

    executions: int = 0
    read: int = 0
    seconds: float = 0.0
    escapes: tuple[str, ...] = ()


def fuzz(name: str, seconds: float, runs: int, seed: int) -> Outcome:
    """Fuzz one target in a process of its own, by random faults."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    beats = context.Value("L", 0, lock=False)
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        process = context.Process(
            target=_work, args=(name, seconds, runs, seed, folder, there, beats)
        )
        process.start()
        there.close()
        outcome = _listen(process, here, beats)
        if outcome is None:
            files = [p for p in Path(folder).rglob(TARGETS[name].file) if p.is_file()]
            content = files[0].read_bytes() if files else b""
            kept = keep(f"{name}.whole", content)
            why = f"process ended with {process.exitcode} ({kept})"
            outcome = Outcome(beats.value, 0, 0.0, (why,))
    return outcome


def _listen(process, here, beats) -> Outcome | None:
    """Return what the process sends; None where it crashes or hangs."""
    last, since = beats.value, time.monotonic()
    while not here.poll(1.0):
        if not process.is_alive():
            break
        if beats.value != last:
            last, since = beats.value, time.monotonic()
        elif time.monotonic() - since > MOST_SILENT:
            process.kill()
            break
    try:
        outcome = here.recv() if here.poll(0) else None
    except EOFError:
        outcome = None
    process.join()
    return outcome


def _work(name, seconds, runs, seed, folder, there, beats) -> None:
    logging.disable()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    escapes: dict[str, str] = {}
    outcome = Outcome()
    with closing(Place(TARGETS[name], folder)) as place:
        starts = [place.seed, place.seed, *TARGETS[name].corpus()]
        start = time.process_time()
        while outcome.executions < runs and outcome.seconds < seconds:
            content = mutate(starts[int(rng.integers(len(starts)))], rng)
            try:
                outcome.read += place.try_bytes(content)
            except EscapeError as error:
                if kind_of(error) not in escapes:
                    escapes[kind_of(error)] = f"{error!s:.200} ({keep(name, content)})"
            outcome.executions += 1
            beats.value = outcome.executions
            outcome.seconds = time.process_time() - start
    outcome.escapes = tuple(f"{kind}: {text}" for kind, text in escapes.items())
    there.send(outcome)


def kind_of(error: EscapeError) -> str:
    """Tell escapes apart by the error and the line of the package it passed last."""
    cause = error.__cause__
    if cause is None or cause.__traceback__ is None:
        return str(error)
    trace, ours = cause.__traceback__, ""
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "brainlsap" in file.parts:
            ours = f"{file.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(cause).__name__} at {ours}"


def keep(name: str, content: bytes) -> Path:
    """Keep what got through."""
    FOUND.mkdir(exist_ok=True)
    digest = hashlib.sha256(content).hexdigest()[:12]
    path = FOUND / f"{digest}.{name.replace(':', '+')}"
    path.write_bytes(content)
    return path


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=float, default=600.0, help="of each target")
    parser.add_argument("--runs", type=int, default=200_000, help="of each target")
    parser.add_argument("--seed", type=int, help="default: another one each time")
    parser.add_argument("--guided", action="store_true", help="by coverage (atheris)")
    parser.add_argument("--dry", action="store_true", help="leave the table alone")
    options = parser.parse_args()
    bad = 0
    for name in options.names or TARGETS:
        seed = runs_of(name) if options.seed is None else options.seed
        if options.guided:
            outcome = Outcome(*run_guided(name, options.seconds, FOUND))
        else:
            outcome = fuzz(name, options.seconds, options.runs, seed)
        bad += len(outcome.escapes)
        manner = "guided" if options.guided else f"random, seed {seed}"
        if not options.dry:
            add_run(TARGETS[name], manner, outcome)
        told = f"{outcome.executions:7} executions in {outcome.seconds:4.0f} s, "
        told += f"{outcome.read} read, {len(outcome.escapes)} kinds of escape"
        print(f"{name:28} {told}", *outcome.escapes, sep="\n    ", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
