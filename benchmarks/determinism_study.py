"""The whole way under eight combinations of what must not matter: the same bytes.

`brainlsap run` with other numbers of processes and threads, other locales, hash seeds
and time zones. All files are compared with those of the first; of those that hold
seconds, and of records of the machine, all else in them; the codes of scans are drawn
anew by every run, so scans stand for them, and rows are compared in sorted order.

    python benchmarks/determinism_study.py
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import keep, table

BRAINLSAP = (sys.executable, "-m", "brainlsap")
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
# What in tables and records tells times.
TIMES = ("seconds_fit", "seconds_predict", "environment")


def without_times(value: object) -> object:
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if k not in TIMES}
    return [without_times(v) for v in value] if isinstance(value, list) else value


def content(path: Path, scan_of: dict[str, str]) -> bytes:
    """Return the bytes of a file without the times in them, codes as their scans."""
    if path.suffix == ".json":
        return json.dumps(without_times(json.loads(path.read_text()))).encode()
    if path.suffix == ".tsv":
        rows = [line.split("\t") for line in path.read_text("utf-8").split("\n")]
        kept = [k for k, name in enumerate(rows[0]) if name not in (*TIMES, "code")]
        cells = [[row[k] for k in kept if k < len(row)] for row in rows]
        named = [[scan_of.get(cell, cell) for cell in row] for row in cells]
        return repr(sorted(named)).encode()
    return path.read_bytes()


def digests(out: Path) -> dict[str, str]:
    """Return the hash of every file of a folder, by its path inside."""
    codes = (out / "private" / "codes.tsv").read_text("utf-8").splitlines()[1:]
    scan_of = dict(line.split("\t")[:2] for line in codes)
    files = {p.relative_to(out).as_posix(): p for p in out.rglob("*") if p.is_file()}
    return {
        name: hashlib.sha256(content(path, scan_of)).hexdigest()
        for name, path in sorted(files.items())
    }


def run(root: Path, words: list[str], **environment: str) -> None:
    done = subprocess.run(
        [*BRAINLSAP, *words],
        cwd=root,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--ways", type=int, default=len(WAYS), help="the first so many")
    options = parser.parse_args()
    rows, first = [], {}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        people = ["--people", str(options.people), "--atlas", "desikan82"]
        run(root, ["simulate", "cohort", *people])
        asked = ["--atlas", "desikan82", "--feature", "fdg", "--models", "exact"]
        asked += ["--epochs", str(options.epochs), "--folds", "3"]
        for number, way in enumerate(WAYS[: options.ways]):
            jobs, threads, name, seed, zone = way
            out = f"out{number}"
            run(
                root,
                ["run", "cohort", "--out", out, *asked, "--jobs", str(jobs)],
                LC_ALL=name,
                PYTHONHASHSEED=seed,
                TZ=zone,
                OMP_NUM_THREADS=threads,
            )
            found = digests(root / out)
            first = first or found
            unlike = [k for k in first.keys() | found if first.get(k) != found.get(k)]
            rows.append((*way, len(found), ", ".join(sorted(unlike)) or "none"))
            print(*rows[-1], flush=True)
    head = "processes", "threads", "locale", "hash seed", "time zone", "files", "other"
    keep("determinism", "Eight ways to run the same", table(head, rows))
    sys.exit(any(row[-1] != "none" for row in rows))


if __name__ == "__main__":
    main()
