"""How long a cohort takes to load: from subject folders, and from its one file.

Simulated people in `destrieux160`: MRtrix's CSV connectomes (164 nodes, upper
triangle), FreeSurfer's stats, a table of PET for every scan. Each load is a process of
its own, as a user's first one is; loading is timed in it, imports left out.

    python benchmarks/loading.py [--scans 1323] [--folder KEPT]
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from measuring import keep, load, table

TIMED = """
import json, resource, sys, time
from brainlsap.data import Cohort, load_cohort
kind, path, feature = sys.argv[1:]
start, busy = time.perf_counter(), time.process_time()
if kind == "folders":
    cohort = load_cohort(path, feature=feature.split(","), verbose=True)
else:
    cohort = Cohort.load(path)
took, busy = time.perf_counter() - start, time.process_time() - busy
if kind == "folders":
    cohort.save(f"{path}.h5")
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
told = {"seconds": took, "busy": busy, "scans": cohort.n_scans, "bytes": most}
print(json.dumps(told))
"""


def make_folders(folder: Path, n_scans: int) -> Path:
    """Write simulated subject folders, unless they are there."""
    if folder.is_dir():
        return folder
    from brainlsap.simulation import make_cohort, write_study_folder

    cohort = make_cohort(n_scans, feature=["fdg", "thickness"], random_state=0)
    return write_study_folder(cohort.select(range(n_scans)), folder, verbose=True)


def timed_load(kind: str, path: Path, feature: str) -> dict[str, float]:
    """Load in a fresh process; return what it says."""
    command = [sys.executable, "-c", TIMED, kind, str(path), feature]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def read_all(folder: Path) -> float:
    """Return the seconds that reading the bytes of all files takes: the floor."""
    start = time.perf_counter()
    for path in folder.rglob("*.*"):
        if path.is_file():
            path.read_bytes()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scans", type=int, default=1323)
    parser.add_argument("--folder", type=Path, help="kept, and used again")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--make-only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = make_folders(options.folder or Path(place) / "study", options.scans)
        if options.make_only:
            return
        measure(folder, options.repeats)


def measure(folder: Path, repeats: int) -> None:
    rows = []
    file = Path(f"{folder}.h5")
    for name, kind, path, feature in (
        ("folders, thickness", "folders", folder, "thickness"),
        ("folders, thickness and FDG", "folders", folder, "thickness,fdg"),
        ("one .h5 file of these", "file", file, ""),
    ):
        runs = [timed_load(kind, path, feature) for _ in range(repeats)]
        took = [one["seconds"] for one in runs]
        busy = median(one["busy"] for one in runs)
        most = max(one["bytes"] for one in runs)
        cells = [
            f"{value:.2f}" for value in (median(took), max(took), busy, most / 1e9)
        ]
        rows.append((name, int(runs[0]["scans"]), *cells))
    head = (
        "from",
        "scans",
        f"seconds (median of {repeats})",
        "slowest",
        "of the processor",
        "peak memory, GB",
    )
    floor = read_all(folder)
    size = file.stat().st_size / 1e6
    about = (
        f"Python {platform.python_version()}, one process, imports left out; {load()}."
    )
    text = (
        f"{table(head, rows)}\n\nReading the bytes of all files alone takes "
        f"{floor:.2f} s. The .h5 file has {size:.0f} MB. {about}"
    )
    keep("loading", "Loading a cohort", text)
    file.unlink()


if __name__ == "__main__":
    main()
