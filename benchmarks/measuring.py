"""How these programs measure: pairs with a yardstick, memory, and where results go."""

import resource
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from statistics import median

RESULTS = Path(__file__).parent / "results"


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call, after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times)


def beside(
    call: Callable[[], object], yardstick: Callable[[], object], repeats: int
) -> tuple[float, float]:
    """Return a call's median time, and the median of its ratio to a yardstick.

    Each is timed right after the other, so that what else the machine does falls on
    both alike.
    """
    call(), yardstick()
    times, ratios = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        yardstick()
        middle = time.perf_counter()
        call()
        times.append(time.perf_counter() - middle)
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


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [" | ".join(map(str, row)) for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {line} |" for line in lines)


def keep(name: str, title: str, text: str) -> Path:
    """Put a dated part into results/NAME.md, instead of an older one of that title."""
    path = RESULTS / f"{name}.md"
    old = path.read_text(encoding="utf-8").split("\n## ") if path.is_file() else [""]
    kept = [part for part in old[1:] if part.split("\n")[0].split(" (")[0] != title]
    parts = [f"# {name}\n", *kept, f"{title} ({date.today()})\n\n{text}\n"]
    RESULTS.mkdir(exist_ok=True)
    path.write_text("\n## ".join(part.rstrip("\n") + "\n" for part in parts))
    return path
