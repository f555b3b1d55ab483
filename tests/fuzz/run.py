"""Fuzz readers for long: `python -m tests.fuzz.run [NAME ...] --seconds 600`.

Guided by coverage with atheris where it is installed and `--guided` is given (one
reader for each process); else by random faults. Inputs that get through are kept in
`tests/fuzz/found/` and printed with what to run to see them again.
"""

import argparse
import hashlib
import sys
import time
from pathlib import Path

import numpy as np

from tests.fuzz.mutations import mutate
from tests.fuzz.one_input import EscapeError, Place, seed_of
from tests.fuzz.targets import TARGETS

FOUND = Path(__file__).parent / "found"


def fuzz(name: str, seconds: float, runs: int, seed: int) -> tuple[int, int, set[str]]:
    """Return executions, how many were read, and the distinct escapes."""
    place, whole = Place(TARGETS[name]), seed_of(TARGETS[name])
    rng = np.random.default_rng(seed)
    done, good, escapes = 0, 0, set()
    end = time.monotonic() + seconds
    while done < runs and time.monotonic() < end:
        content = mutate(whole, rng)
        try:
            good += place.try_bytes(content)
        except EscapeError as error:
            if _kind(error) not in escapes:
                escapes.add(_kind(error))
                keep(name, content, error)
        done += 1
    place.close()
    return done, good, escapes


def _kind(error: EscapeError) -> str:
    cause = error.__cause__
    if cause is None or cause.__traceback__ is None:
        return str(error)
    trace = cause.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    where = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return f"{type(cause).__name__} at {where}"


def keep(name: str, content: bytes, error: EscapeError) -> None:
    """Keep what got through."""
    FOUND.mkdir(exist_ok=True)
    digest = hashlib.sha256(content).hexdigest()[:12]
    path = FOUND / f"{digest}.{name}"
    path.write_bytes(content)
    print(f"  escape: {_kind(error)}: {error} ({path})", flush=True)


def guided(name: str, arguments: list[str]) -> None:
    """Hand the reader over to atheris, which does not return."""
    import atheris

    place, whole = Place(TARGETS[name]), seed_of(TARGETS[name])
    corpus = FOUND / f"corpus.{name}"
    corpus.mkdir(parents=True, exist_ok=True)
    (corpus / "seed").write_bytes(whole)
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *arguments, str(corpus)], place.try_bytes)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=float, default=600.0, help="for each reader")
    parser.add_argument("--runs", type=int, default=200_000, help="for each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guided", action="store_true")
    options, rest = parser.parse_known_args()
    names = options.names or list(TARGETS)
    if options.guided:
        guided(names[0], [f"-max_total_time={options.seconds:.0f}", *rest])
    bad = 0
    for name in names:
        start = time.monotonic()
        done, good, escapes = fuzz(name, options.seconds, options.runs, options.seed)
        bad += len(escapes)
        took = time.monotonic() - start
        print(f"{name}: {done} executions in {took:.0f} s, {good} read, "
              f"{len(escapes)} kinds of escape", flush=True)  # fmt: skip
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
