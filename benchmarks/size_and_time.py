"""Size of the package and what it needs, time to import it, the demo and its report.

    python benchmarks/size_and_time.py [--brief]

Adds a dated table to benchmarks/results/size_and_time.md. Times are the fastest of some
runs of a new process each, as a user starts it; a busy machine makes them longer, less
so those of the processor. The demo is run once, unless --brief is given.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
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
    parser.add_argument("--brief", action="store_true", help="without the demo")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [("measure", "value"), ("---", "---")]
    for name, words in TIMED.items():
        rows.append((f"`{name}`", said(fastest(words))))
    own = folder_size(Path(brainlsap.__file__).parent)
    sizes = needed_sizes()
    rows.append(("brainlsap itself, atlases left out", f"{own / 1e6:.1f} MB"))
    rows.append(
        (f"the {len(sizes)} packages it needs", f"{sum(sizes.values()):.0f} MB")
    )
    largest = sorted(sizes, key=sizes.get, reverse=True)[:4]
    told = ", ".join(f"{name} {sizes[name]:.0f}" for name in largest)
    rows.append(("the largest of them (MB)", told))
    if not options.brief:
        rows += demo_rows()
    text = "\n".join(
        [
            f"## {datetime.now(UTC):%Y-%m-%d}, Python {sys.version.split()[0]}\n",
            *(f"| {' | '.join(row)} |" for row in rows),
            f"\nFastest of {RUNS} processes, the demo once; load of the machine before "
            f"it: {load:.1f} on {os.cpu_count()} cores.\n",
        ]
    )
    print(text)
    with RESULT.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def fastest(words: list[str]) -> tuple[float, float]:
    """Return the shortest time of a process, by the clock and of the processor."""
    times = [times_of(words) for _ in range(RUNS)]
    return min(one for one, _ in times), min(one for _, one in times)


def times_of(words: list[str]) -> tuple[float, float]:
    """Return the time of a process and its children, by the clock and the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, spent


def said(times: tuple[float, float]) -> str:
    clock, spent = times
    return f"{clock:.2f} s ({spent:.2f} s of the processor)"


def demo_rows() -> list[tuple[str, str]]:
    """Return how long the demo takes, and how large what it makes is."""
    with tempfile.TemporaryDirectory() as place:
        times = times_of(["-m", "brainlsap", "demo", "--out", f"{place}/demo"])
        page = next(Path(place).rglob("report.html")).stat().st_size
        whole = folder_size(Path(place) / "demo")
    return [
        ("`brainlsap demo`", said(times)),
        ("its report.html", f"{page / 1e6:.1f} MB"),
        ("all that it writes", f"{whole / 1e6:.1f} MB"),
    ]


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
