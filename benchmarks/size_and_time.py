"""Size of the package and what it needs, time to import it, size of a report.

    python benchmarks/size_and_time.py [--report results/report/report.html]

Adds a dated table to benchmarks/results/size_and_time.md. Times are the fastest of some
runs of a new process each, as a user starts it; a busy machine makes them longer, less
so those of the processor.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import brainlsap

RESULT = Path(__file__).parent / "results" / "size_and_time.md"
RUNS = 4
TIMED = {
    "python -c pass": ["-c", "pass"],
    "import brainlsap": ["-c", "import brainlsap"],
    "import brainlsap.data": ["-c", "import brainlsap.data"],
    "from brainlsap import LSAPClassifier": [
        "-c",
        "from brainlsap import LSAPClassifier",
    ],
    "brainlsap --help": ["-m", "brainlsap", "--help"],
    "brainlsap run --help": ["-m", "brainlsap", "run", "--help"],
    "brainlsap atlases": ["-m", "brainlsap", "atlases"],
}


def main() -> None:
    """Measure, print, add to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", type=Path, help="a report.html to weigh")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [("measure", "value"), ("---", "---")]
    for name, words in TIMED.items():
        clock, spent = fastest(words)
        rows.append((f"`{name}`", f"{clock:.2f} s ({spent:.2f} s of the processor)"))
    own = folder_size(Path(brainlsap.__file__).parent)
    sizes = needed_sizes()
    rows.append(("brainlsap itself, atlases left out", f"{own / 1e6:.1f} MB"))
    rows.append(
        (f"the {len(sizes)} packages it needs", f"{sum(sizes.values()):.0f} MB")
    )
    largest = sorted(sizes, key=sizes.get, reverse=True)[:4]
    said = ", ".join(f"{name} {sizes[name]:.0f}" for name in largest)
    rows.append(("the largest of them (MB)", said))
    if options.report:
        weight = options.report.stat().st_size / 1e6
        rows.append(("report.html", f"{weight:.1f} MB"))
    text = "\n".join(
        [
            f"## {datetime.now(UTC):%Y-%m-%d}, Python {sys.version.split()[0]}\n",
            *(f"| {' | '.join(row)} |" for row in rows),
            f"\nFastest of {RUNS} processes; load of the machine before: {load:.1f} "
            f"on {os.cpu_count()} cores.\n",
        ]
    )
    print(text)
    with RESULT.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def fastest(words: list[str]) -> tuple[float, float]:
    """Return the shortest time of a process, by the clock and of the processor."""
    times = []
    for _ in range(RUNS):
        before, start = (
            resource.getrusage(resource.RUSAGE_CHILDREN),
            time.perf_counter(),
        )
        subprocess.run([sys.executable, *words], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        times.append((time.perf_counter() - start, spent))
    return min(one for one, _ in times), min(one for _, one in times)


def folder_size(folder: Path) -> int:
    """Return the bytes of all files but compiled ones."""
    files = (path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return sum(path.stat().st_size for path in files if path.is_file())


def needed_sizes() -> dict[str, float]:
    """Return the MB of every package that a minimal install brings."""
    from packaging.requirements import Requirement

    sizes: dict[str, float] = {}
    waiting = ["brainlsap"]
    while waiting:
        name = waiting.pop()
        for line in requires(name) or []:
            need = Requirement(line)
            key = need.name.lower().replace("_", "-")
            if key in sizes or (
                need.marker and not need.marker.evaluate({"extra": ""})
            ):
                continue
            try:
                found = distribution(need.name)
            except PackageNotFoundError:
                continue
            paths = (Path(str(file.locate())) for file in found.files or [])
            sizes[key] = sum(p.stat().st_size for p in paths if p.is_file()) / 1e6
            waiting.append(need.name)
    return sizes


if __name__ == "__main__":
    main()
