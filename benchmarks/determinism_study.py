"""The whole way under eight combinations of what must not matter: the same bytes.

`brainlsap run` with other numbers of processes and threads, other locales, hash seeds
and time zones. All files are compared with those of the first, as in kill_study.py;
`results.json` also tells the number of threads, which is left out here.

    python benchmarks/determinism_study.py
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from kill_study import BRAINLSAP, RESULTS, TIMED, digests

# Processes, threads, locale, hash seed, time zone.
WAYS = (
    (1, "1", "C.UTF-8", "0", "UTC"),
    (1, "1", "C.UTF-8", "random", "UTC"),
    (2, "1", "C.UTF-8", "0", "UTC"),
    (1, "2", "C.UTF-8", "1", "UTC"),
    (2, "2", "de_DE.UTF-8", "2", "Asia/Kathmandu"),
    (1, "1", "de_DE.UTF-8", "3", "UTC"),
    (2, "1", "tr_TR.UTF-8", "random", "America/St_Johns"),
    (1, "1", "C", "4", "UTC"),
)


def without_threads(out: Path) -> None:
    """Take out of a record how many threads the process had; that is told, not used."""
    path = out / "report" / "results.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record.pop("environment")
    path.write_text(json.dumps(record), encoding="utf-8")
    stored = out / "private" / "evaluation.json"
    record = json.loads(stored.read_text(encoding="utf-8"))
    record["made_with"].pop("environment")
    stored.write_text(json.dumps(record), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--out", type=Path, default=RESULTS / "determinism.md")
    options = parser.parse_args()
    heads = "processes | threads | locale | hash seed | time zone | files | other bytes"
    lines = [f"| {heads} |", "| --- " * 7 + "|"]
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        people = ["--people", str(options.people), "--atlas", "desikan82"]
        subprocess.run(
            [*BRAINLSAP, "simulate", "cohort", *people],
            cwd=root,
            check=True,
            capture_output=True,
        )
        asked = ["--atlas", "desikan82", "--feature", "fdg", "--kernel", "exact"]
        asked += ["--epochs", str(options.epochs), "--starts", "2", "--folds", "3"]
        first: dict[str, str] = {}
        for number, (jobs, threads, name, seed, zone) in enumerate(WAYS):
            told = {"LC_ALL": name, "PYTHONHASHSEED": seed, "TZ": zone}
            command = [*BRAINLSAP, "run", "cohort", "--out", f"out{number}", *asked]
            done = subprocess.run(
                [*command, "--jobs", str(jobs)],
                cwd=root,
                env=os.environ | told | {"OMP_NUM_THREADS": threads},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise SystemExit(done.stderr)
            out = root / f"out{number}"
            without_threads(out)
            found = digests(out)
            first = first or found
            unlike = [k for k in first.keys() | found if first.get(k) != found.get(k)]
            other = ", ".join(sorted(unlike)) or "none"
            row = (jobs, threads, name, seed, zone, len(found), other)
            lines.append(f"| {' | '.join(map(str, row))} |")
            print(lines[-1], flush=True)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = f"## Eight ways to run the same, {now}\n\n" + "\n".join(lines)
    text += f"\n\nOnly asked to be there: {', '.join(TIMED)}.\n"
    with options.out.open("a", encoding="utf-8") as file:
        file.write("\n" + text)
    sys.exit(any(not line.endswith("| none |") for line in lines[2:]))


if __name__ == "__main__":
    main()
