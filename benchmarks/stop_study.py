"""How soon Ctrl-C and SIGTERM are answered, and a command ends, at random moments.

`build`, `run` and `report` are stopped at random moments: by SIGINT to all processes,
as a terminal sends it, or by SIGTERM to the first one, as a cluster does. Asked of
each: a line within two seconds that says that the same command continues, exit code
130, no process, lock or half-written file left.

    python benchmarks/stop_study.py --stops 4
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from kill_study import RESULTS, Place, prepare, strays

SIGNALS = {"Ctrl-C": signal.SIGINT, "SIGTERM": signal.SIGTERM}
WITHIN = 2.0


def stop(
    command: Sequence[str], sign: str, after: float
) -> tuple[float, float, str, str]:
    """Return seconds to the answer, to the end, what is wrong, and what was said."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    said: list[tuple[float, bytes]] = []

    def listen() -> None:
        while text := os.read(process.stderr.fileno(), 4096):
            said.append((time.monotonic(), text))

    listener = threading.Thread(target=listen)
    listener.start()
    time.sleep(after)
    start = time.monotonic()
    if process.poll() is not None:
        return 0.0, 0.0, "ended before", ""
    if sign == "Ctrl-C":
        os.killpg(process.pid, SIGNALS[sign])
    else:
        process.send_signal(SIGNALS[sign])
    code = process.wait()
    end = time.monotonic() - start
    listener.join(timeout=10)  # others may hold the pipe open
    told = b"".join(text for _, text in said).decode(errors="replace")
    answers = [when - start for when, text in said if b"stopping; a run" in text]
    # a shell says 130 of either: Python ends itself by the signal where it came during
    # an import that makes classes from text
    wrong = [] if code in (130, -signal.SIGINT) else [f"exit code {code}"]
    wrong += [] if "nothing half-written is left" in told else ["no last word"]
    wrong += ["a traceback"] if "Traceback" in told else []
    living = left_after(process.pid, 3.0)
    wrong += [f"{len(living)} processes left"] if living else []
    return answers[0] if answers else float("inf"), end, ", ".join(wrong), told


def left_after(group: int, seconds: float) -> list[str]:
    """Return processes of a group that are there still after some seconds."""
    end = time.monotonic() + seconds
    while True:
        asked = ["pgrep", "-g", str(group)]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if not done.stdout or time.monotonic() > end:
            return done.stdout.split()
        time.sleep(0.1)


def one_row(
    place: Place, jobs: int, sign: str, options: argparse.Namespace, rng: random.Random
) -> list[str]:
    what = place.command[3]
    command = [*place.command, *(["--jobs", str(jobs)] if what != "report" else [])]
    answers, ends, faults = [], [], []
    while len(answers) < options.stops:
        place.start(place.out)
        moment = rng.uniform(0.1, 0.95) * place.seconds
        answer, end, wrong, said = stop(command, sign, moment)
        if wrong == "ended before":
            continue
        left = strays(place)
        answers.append(answer)
        ends.append(end)
        faults += [wrong] if wrong else []
        faults += [f"left {left[:3]}"] if left else []
        line = f"{what} {jobs} {sign} after {moment:.1f}"
        print(f"{line}: {answer:.2f} {end:.2f} {wrong}", flush=True)
        if options.verbose and wrong:
            print(said)
    told = "none" if not faults else "; ".join(sorted(set(faults)))
    if max(answers) > WITHIN:
        told += "; LATE"
    return [
        *(what, str(jobs), sign, str(len(answers))),
        *(f"{max(answers):.2f}", f"{max(ends):.2f}", told),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stops", type=int, default=4, help="of each kind")
    parser.add_argument("--verbose", action="store_true", help="what was said, too")
    parser.add_argument("--people", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS / "stop.md")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    heads = ["command", "processes", "stopped by", "times", "answer, s, at the latest"]
    rows = [[*heads, "end, s, at the latest", "faults"], ["---"] * 7]
    with tempfile.TemporaryDirectory() as root:
        for place in prepare(Path(root).resolve(), options.people, 5):
            for jobs in (1,) if place.command[3] == "report" else (1, 2):
                rows += [one_row(place, jobs, sign, options, rng) for sign in SIGNALS]
            shutil.rmtree(place.out, ignore_errors=True)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    text = f"## Stopped at random moments, {now}\n\n{table}\n"
    print(text)
    with options.out.open("a", encoding="utf-8") as file:
        file.write("\n" + text)


if __name__ == "__main__":
    main()
