"""Time and memory of building a connectome, against MRtrix's tck2connectome.

At least a million streamlines are made by jittered copies of a real tractogram. Both
programs run as processes of their own with two threads, in turn; the table has the
fastest of the repeats, from the start of the process to its end (for Python with the
imports; "call" is build_connectome alone), the processor time, and the peak memory.
Ratios travel, seconds do not; on a machine with other work only the ratio of processor
time means anything. The matrices are compared cell for cell.

    python benchmarks/tractography.py [--streamlines 1000000] [--repeats 3]

Needs `tck2connectome` (apt-get install mrtrix3) and ../shared/data/tract_mni_destrieux;
says so and stops where one is absent.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import nibabel
import numpy as np
from measuring import SHARED, keep, load, table

from brainlsap.data import read_connectome

DATA = SHARED / "tract_mni_destrieux"
HEAD = ("assignment", "ours s", "MRtrix s", "ratio", "call s", "call ratio")
HEAD += ("ours CPU s", "MRtrix CPU s", "CPU ratio", "ours peak MB", "matrices")
SETTINGS = {
    "end voxels": ("end_voxels", 0.0, "count", ["-assignment_end_voxels"]),
    "radial 2 mm": ("radial", 2.0, "count", ["-assignment_radial_search", "2"]),
    "radial 4 mm": ("radial", 4.0, "count", ["-assignment_radial_search", "4"]),
    "radial 4 mm, mean length": (
        *("radial", 4.0, "mean_length"),
        ["-assignment_radial_search", "4", "-scale_length", "-stat_edge", "mean"],
    ),
    "radial 2 mm, inverse length": (
        *("radial", 2.0, "inverse_length"),
        ["-assignment_radial_search", "2", "-scale_invlength"],
    ),
    "end voxels, inverse node volume": (
        *("end_voxels", 0.0, "inverse_node_volume"),
        ["-assignment_end_voxels", "-scale_invnodevol"],
    ),
}
OURS = """
import sys, time
import numpy as np
from brainlsap.images import build_connectome
tracks, nodes, rule, radius, weight, out = sys.argv[1:]
start = time.perf_counter()
made = build_connectome(tracks, nodes, "destrieux160", rule, float(radius), weight)
took = time.perf_counter() - start
np.savez(out, matrix=made.matrix, seconds=took)
"""


@dataclass(frozen=True)
class Cost:
    seconds: float
    processor: float
    megabytes: float


def write_copies(path: Path, n_wanted: int) -> int:
    """Write copies of the real streamlines, moved at random by about 0.7 mm."""
    lines = nibabel.streamlines.load(DATA / "stroke.trk.gz").streamlines
    n_copies = -(-n_wanted // len(lines))
    ends = np.cumsum([len(line) for line in lines])
    points = np.concatenate(list(lines))
    gaps = ends + np.arange(len(ends))
    is_point = np.ones(len(points) + len(ends), dtype=bool)
    is_point[gaps] = False
    block = np.full((len(is_point), 3), np.nan, dtype="<f4")
    rng = np.random.default_rng(0)
    n = n_copies * len(lines)
    head = f"mrtrix tracks\ncount: {n:010d}\ndatatype: Float32LE\nfile: . 100\nEND\n"
    with path.open("wb") as file:
        file.write(head.encode().ljust(100, b"\0"))
        for copy in range(n_copies):
            block[is_point] = points + rng.normal(0, 0.7 * (copy > 0), points.shape)
            file.write(block.tobytes())
        file.write(np.full((1, 3), np.inf, dtype="<f4").tobytes())
    return n


def run(command: list[str]) -> Cost:
    """Run a command to its end and return what it took."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed")
    return Cost(took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def best(costs: list[Cost]) -> Cost:
    return Cost(
        min(one.seconds for one in costs),
        min(one.processor for one in costs),
        max(one.megabytes for one in costs),
    )


def compare(name: str, tracks: Path, folder: Path, repeats: int) -> tuple[str, ...]:
    """Return a row of the table."""
    rule, radius, weight, options = SETTINGS[name]
    nodes = str(DATA / "nodes164.nii.gz")
    theirs = ["tck2connectome", "-quiet", "-force", "-symmetric", "-nthreads", "2"]
    theirs += [*options, str(tracks), nodes, str(folder / "peer.csv")]
    ours = [sys.executable, "-c", OURS, str(tracks), nodes, rule, str(radius), weight]
    ours += [str(folder / "ours.npz")]
    costs: tuple[list[Cost], list[Cost]] = [], []
    calls = []
    for _ in range(repeats):
        costs[0].append(run(theirs))
        costs[1].append(run(ours))
        with np.load(folder / "ours.npz", allow_pickle=False) as saved:
            made, took = saved["matrix"], float(saved["seconds"])
        calls.append(took)
    peer, own = best(costs[0]), best(costs[1])
    path = folder / "peer.csv"
    matrix = read_connectome(path, "destrieux160", row_order="mrtrix").matrix
    if weight == "count":
        same = f"{np.count_nonzero(made != matrix)} cells differ"
    else:
        off = np.abs(made - matrix) / np.where(matrix > 0, matrix, 1)
        same = f"at most {off.max():.0e} relative"
    figures = (
        *(own.seconds, peer.seconds, own.seconds / peer.seconds),
        *(min(calls), min(calls) / peer.seconds),
        *(own.processor, peer.processor, own.processor / peer.processor),
    )
    return (name, *(f"{one:.2f}" for one in figures), f"{own.megabytes:.0f}", same)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streamlines", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=[*SETTINGS])
    options = parser.parse_args()
    if shutil.which("tck2connectome") is None:
        print("skipped: tck2connectome is not installed (apt-get install mrtrix3)")
        return
    if not DATA.is_dir():
        print(f"skipped: {DATA} is not here")
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        n = write_copies(folder / "tracks.tck", options.streamlines)
        about = (
            f"{n} streamlines, 164 nodes, 2 threads; fastest of {options.repeats}, "
            f"whole processes in turn; {load()} before."
        )
        rows = []
        for name in options.settings:
            rows.append(compare(name, folder / "tracks.tck", folder, options.repeats))
            print(*rows[-1], flush=True)
    title = "Connectomes from streamlines, against tck2connectome -nthreads 2"
    keep("tractography", title, f"{about}\n\n{table(HEAD, rows)}")


if __name__ == "__main__":
    main()
