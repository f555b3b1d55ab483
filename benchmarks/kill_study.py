"""Runs that are killed at random moments and started again: the same bytes at the end.

A simulated cohort is run once undisturbed. Then, several times over, the same command
is started and killed with SIGKILL at a random moment of a run, `kills` times in all;
each series ends with a run that is left alone. Predictions must be the same bytes as
the undisturbed run's, no task may be computed twice, and nothing stray may be left.

    python benchmarks/kill_study.py --kills 10 --series 2
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
BRAINLSAP = (sys.executable, "-m", "brainlsap")


def run_whole(command: Sequence[str]) -> tuple[float, str]:
    """Run a command to its end; return its seconds and what it printed."""
    start = time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.monotonic() - start, done.stdout


def run_and_kill(command: Sequence[str], seconds: float) -> bool:
    """Kill a command, and all that it started, after a while; False if it ended."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def strays(place: Path, out: Path) -> list[str]:
    """Return what stands beside a results folder, or half-written in it."""
    patterns = (f".{out.name}*", ".old-*", "**/.partial-*")
    return [one.name for pattern in patterns for one in place.glob(pattern)]


def study(options: argparse.Namespace, place: Path) -> list[str]:
    cohort = place / "cohort"
    people = ["--people", str(options.people), "--atlas", "desikan82"]
    run_whole([*BRAINLSAP, "simulate", str(cohort), *people])
    asked = ["--atlas", "desikan82", "--feature", "fdg", "--kernel", "exact,chebyshev"]
    asked += ["--epochs", str(options.epochs), "--starts", "2"]
    asked += ["--folds", "3", "--jobs", str(options.jobs)]

    def command(out: Path) -> list[str]:
        return [*BRAINLSAP, "run", str(cohort), "--out", str(out), *asked]

    seconds, _ = run_whole(command(place / "undisturbed"))
    wanted = (place / "undisturbed" / "private" / "predictions.tsv").read_bytes()
    rng = random.Random(options.seed)
    lines = ["| series | killed after (s) | tasks kept | reused at last | same bytes |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for series in range(options.series):
        out = place / f"killed{series}"
        moments, kept = [], []
        while len(moments) < options.kills // options.series:
            moment = rng.uniform(0.1, 1.0) * seconds
            if not run_and_kill(command(out), moment):
                # it was done before; from there on little would be left to kill
                shutil.rmtree(out)
                moments, kept, seconds = [], [], 0.9 * seconds
                continue
            moments.append(f"{moment:.1f}")
            kept.append(len(list(out.glob("private/tasks/*.safetensors"))))
        _, said = run_whole(command(out))
        reused = re.search(r"Tasks: (\d+) of (\d+) reused", said)
        told = f"{reused[1]} of {reused[2]}" if reused else "none"
        same = (out / "private" / "predictions.tsv").read_bytes() == wanted
        left = strays(place, out)
        verdict = "yes" if same and not left else f"NO {left}"
        when, counts = ", ".join(moments), ", ".join(map(str, kept))
        lines.append(f"| {series + 1} | {when} | {counts} | {told} | {verdict} |")
        print(lines[-1], flush=True)
    lines.append(f"\nUndisturbed: {seconds:.0f} s with {options.jobs} processes.")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--series", type=int, default=2)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "kill.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        lines = study(options, Path(place))
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = "\n".join([f"## {options.kills} kills, {now}\n", *lines, ""])
    print(text)
    with options.out.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main()
