"""The dated table of executions, added up over runs."""

import csv
import platform
from datetime import UTC, datetime
from pathlib import Path

RUNS = Path(__file__).parents[2] / "benchmarks" / "results" / "fuzz_runs.csv"
TABLE = RUNS.with_name("fuzz.md")
ESCAPES = RUNS.with_name("fuzz_escapes.csv")
HEADS = ("date", "reader", "target", "manner", "executions", "seconds", "read")
HEADS += ("escapes",)
INTRODUCTION = """# Fuzzed readers

Changed files that went into every reader (`make fuzz`): executions and processor
seconds since the last escape, added up over runs; and how many of the changed files
were read all the same. An escape is whatever is no error of the package: another
exception, a crash, more than 5 s or 1.5 GB for a file of a few kilobytes. What got
through before stands at the end; every file of it is in `tests/fuzz/corpus/` or among
those that `tests/fuzz/test_fuzz.py` gives to every reader.

"""


def add_run(target, manner: str, outcome) -> None:
    """Add a run, and write the table anew."""
    told = (datetime.now(UTC).date().isoformat(), target.reader, target.name, manner)
    told += (outcome.executions, round(outcome.seconds), outcome.read)
    is_new = not RUNS.is_file()
    with RUNS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(HEADS)
        writer.writerow((*told, len(outcome.escapes)))
    TABLE.write_text(table_text(_rows()), encoding="utf-8")


def runs_of(name: str) -> int:
    """Return how many runs a target has had; seeds follow from it."""
    return sum(row["target"] == name for row in _rows())


def _rows() -> list[dict[str, str]]:
    if not RUNS.is_file():
        return []
    with RUNS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table_text(rows: list[dict[str, str]]) -> str:
    """Return the table: one line a reader, then one a target."""
    text = INTRODUCTION + f"{max((row['date'] for row in rows), default='')}, Python "
    text += f"{platform.python_version()}.\n\n"
    return "\n".join(
        [text + _section(rows, "reader"), _section(rows, "target"), _escapes()]
    )


def _escapes() -> str:
    if not ESCAPES.is_file():
        return ""
    with ESCAPES.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines) + "\n"


def _section(rows: list[dict[str, str]], head: str) -> str:
    lines = [
        f"| {head} | executions | seconds | read |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name in dict.fromkeys(row[head] for row in rows):
        sums = [0, 0, 0]
        for target in dict.fromkeys(r["target"] for r in rows if r[head] == name):
            since = _since_escape([r for r in rows if r["target"] == target])
            for k, what in enumerate(("executions", "seconds", "read")):
                sums[k] += sum(int(row[what]) for row in since)
        lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in sums)} |")
    return "\n".join(lines) + "\n"


def _since_escape(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the runs after the last escape."""
    bad = [k for k, row in enumerate(rows) if int(row["escapes"])]
    return rows[bad[-1] + 1 if bad else 0 :]
