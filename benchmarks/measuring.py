"""What these programs share: open data, timing, memory, and where results go."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
SHARED = HERE.parents[1] / "shared" / "data"


def open_cohort(name: str) -> Any:
    """Return "bnu1" (98 scans of 49 people) or "fcon1000" (1,078 people); label sex."""
    from brainlsap.data import load_cohort

    if name == "fcon1000":
        template = "tract_mni_destrieux/expected/count_radial4_sym_zerodiag.csv"
        return load_cohort(
            SHARED / "fcon1000_destrieux",
            label="sex",
            connectome=SHARED / template,
            row_order="mrtrix",
            subcortex="volume",
        )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "study"
        script = str(HERE / "bnu1_cohort.py")
        subprocess.run([sys.executable, script, str(folder)], check=True)
        return load_cohort(folder, atlas="desikan82", feature="strength", label="sex")


OPEN_COHORTS = ("bnu1", "fcon1000")


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call, after one that warms up."""
    return beside(call, lambda: None, repeats)[0]


def beside(
    call: Callable[[], object],
    yardstick: Callable[[], object],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Return a call's median time, and the median of its ratio to a yardstick.

    Each is timed right after the other, so that what else the machine does falls on
    both alike.
    """
    call(), yardstick()
    times, ratios = [], []
    for _ in range(repeats):
        start = clock()
        yardstick()
        middle = clock()
        call()
        times.append(clock() - middle)
        ratios.append(times[-1] / (middle - start))
    return median(times), median(ratios)


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def forget_peak() -> None:
    """Start measuring the peak anew."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """Return the most bytes held since :func:`forget_peak`."""
    status = Path("/proc/self/status").read_text().splitlines()
    line = next(one for one in status if one.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def load() -> str:
    """Return what else the machine does, in words."""
    return f"{os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [" | ".join(map(str, row)) for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {line} |" for line in lines)


def keep(name: str, title: str, text: str) -> None:
    """Print a part, and put it into results/NAME.md for an older one of that title."""
    path = RESULTS / f"{name}.md"
    old = "\n" + path.read_text(encoding="utf-8") if path.is_file() else ""
    parts = (part.rstrip() for part in old.split("\n## ")[1:])
    kept = [part for part in parts if part.split("\n")[0].split(" (")[0] != title]
    kept.append(f"{title} ({date.today()})\n\n{text.rstrip()}")
    RESULTS.mkdir(exist_ok=True)
    path.write_text("\n\n## ".join([f"# {name}", *kept]) + "\n", encoding="utf-8")
    print(f"\n{title}\n\n{text}\n\nKept in {path}", flush=True)
