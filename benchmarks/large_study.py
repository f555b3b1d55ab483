"""A whole study of up to 40,000 people: time, processor and memory of every step.

Simulated people in `destrieux160` with one feature; one person in eight is scanned
twice, each scan with a connectome of its own. Scans are drawn in blocks from the base
network of :func:`brainlsap.make_cohort`: every weight has a log-normal factor of the
person, counting is normal noise with the variance of a Poisson count, and disease
spreads along the person's own network. Every size has a cohort file, which is written
once, and a process of its own, which loads the file and calls `run_study`: LSAP-C,
LSAP-R and the usual baselines, five folds, region ranking, report.

Processor seconds and memory are those of all processes of the study together, sampled
five times a second. Memory is the sum of their own pages, plus the pages of shared
memory of the process that has most of them. Pages of files, which the system can drop,
are not counted.
The reference is one-threaded `numpy.linalg.eigh` of the Laplacians of all scans, in
float64, in a process of its own right after the study.

    python benchmarks/large_study.py [--people 1176 5000 10000 20000 40000]
        [--permutations 200] [--device cuda] [--jobs 2] [--folder FILES]
"""

import argparse
import atexit
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
import pandas as pd
from measuring import RESULTS, keep, load, table

P = ParamSpec("P")
T = TypeVar("T")

N_SCANS_AT_ONCE = 250
# One person in so many is scanned twice.
SECOND_SCAN_EVERY = 8
# Functions of brainlsap.workflow that are steps of a study, and their names in the
# table. What is left of the study runs in processes, partly beside the first two.
OTHER_STEPS = "replicability, gain, scales, quality"
STUDY_STEPS = {
    "cross_validate_with_calls": "cross_validate",
    "compare_regions": "compare_regions",
    "region_properties": "region_properties",
    "write_report": "write_report",
}
# Steps whose growth is drawn.
DRAWN_STEPS = ("load", "cross_validate", OTHER_STEPS, "whole command")
SAMPLES_PER_SECOND = 5
HEAD = (
    "step",
    "scans",
    "seconds",
    "seconds of the processor",
    "cores busy, %",
    "peak memory, GB",
)


class StepUse(NamedTuple):
    """Wall and processor seconds of a step, and peak memory in GB."""

    seconds: float
    processor_seconds: float
    peak_gb: float


class ProcessMeter:
    """Samples the processor time and memory of a process and its descendants."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processor_ticks: dict[tuple[int, str], int] = {}
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")
        self.peak_bytes = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            self.sample()
            time.sleep(1 / SAMPLES_PER_SECOND)

    def sample(self) -> None:
        """Read all processes once."""
        with self._lock:
            n_own_bytes, n_shared_bytes = 0, 0
            for pid in list_family(os.getpid()):
                try:
                    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
                    # To read smaps_rollup takes 15 ms for a GB: a tenth of the study.
                    status = Path(f"/proc/{pid}/status").read_text()
                except OSError:  # the process has ended
                    continue
                fields = stat.split()
                ticks = int(fields[11]) + int(fields[12])
                self._processor_ticks[pid, fields[19]] = ticks
                n_kilobytes = {
                    line.split()[0]: int(line.split()[1])
                    for line in status.splitlines()
                    if line.startswith(("RssAnon:", "RssShmem:"))
                }
                n_own_bytes += n_kilobytes.get("RssAnon:", 0) * 1024
                n_shared_bytes = max(
                    n_shared_bytes, n_kilobytes.get("RssShmem:", 0) * 1024
                )
            self.peak_bytes = max(self.peak_bytes, n_own_bytes + n_shared_bytes)

    def processor_seconds(self) -> float:
        """Return the processor time of all processes so far, ended ones included."""
        self.sample()
        return sum(self._processor_ticks.values()) / self._ticks_per_second

    def n_processes(self) -> int:
        """Return how many processes there have been."""
        return len(self._processor_ticks)


def list_family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    family = [pid]
    for member in family:
        for task in Path(f"/proc/{member}/task").glob("*/children"):
            try:
                family += [int(child) for child in task.read_text().split()]
            except OSError:  # the thread has ended
                continue
    return family


class StepTable:
    """Uses of named steps, measured one after the other."""

    def __init__(self, meter: ProcessMeter) -> None:
        self.meter = meter
        self.uses: dict[str, StepUse] = {}

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        """Measure what is done inside; a step that comes again is added."""
        outer_peak, self.meter.peak_bytes = self.meter.peak_bytes, 0
        processor_start = self.meter.processor_seconds()
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        processor_seconds = self.meter.processor_seconds() - processor_start
        before = self.uses.get(step, StepUse(0.0, 0.0, 0.0))
        self.uses[step] = StepUse(
            before.seconds + seconds,
            before.processor_seconds + processor_seconds,
            max(before.peak_gb, self.meter.peak_bytes / 1e9),
        )
        self.meter.peak_bytes = max(outer_peak, self.meter.peak_bytes)

    def wrap(self, step: str, function: Callable[P, T]) -> Callable[P, T]:
        """Return the function, measured."""

        @wraps(function)
        def measured(*args: P.args, **kwargs: P.kwargs) -> T:
            with self.measure(step):
                return function(*args, **kwargs)

        return measured


def write_cohort_file(path: Path, n_people: int) -> None:
    """Draw a cohort in blocks, and write its file."""
    from brainlsap import make_cohort
    from brainlsap.data import Cohort

    template = make_cohort(200, visit_shares=(1.0,), random_state=0)
    rng = np.random.default_rng(n_people)
    n_rois = template.n_rois
    rows, columns = np.triu_indices(n_rois, 1)
    base_weights = template.connectomes.mean(axis=0)[rows, columns]
    is_healthy = template.y == template.classes[0]
    healthy_means = template.features[is_healthy, :, 0].mean(axis=0)
    is_seed = template.truth["seed"].to_numpy(bool)
    stage = rng.choice(
        len(template.classes), n_people, p=np.array([345, 186, 461, 231, 162]) / 1385
    )
    n_visits = np.where(np.arange(n_people) % SECOND_SCAN_EVERY, 1, 2)
    person = np.repeat(np.arange(n_people), n_visits)
    is_second = np.r_[False, person[1:] == person[:-1]]
    n_scans = len(person)
    age = rng.normal(72, 7, n_people).round(1)
    sex = rng.choice(["F", "M"], n_people)
    site = rng.integers(1, 5, n_people)
    scan_table = pd.DataFrame(
        {
            "scan": [
                f"sub-{p:05d}_ses-{2 if second else 1}"
                for p, second in zip(person, is_second, strict=True)
            ],
            "participant": [f"sub-{p:05d}" for p in person],
            "session": np.where(is_second, "ses-2", "ses-1"),
            "label": np.array(template.classes)[stage[person]],
            "age": age[person] + is_second,
            "sex": sex[person],
            "site": [f"site-{number}" for number in site[person]],
        }
    )
    severity = stage / 4 * rng.lognormal(-0.02, 0.2, n_people)
    person_effect = rng.normal(0, 0.04, (n_people, 1))
    features = np.empty((n_scans, n_rois, 1))
    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        W = np.lib.format.open_memmap(
            Path(place) / "connectomes.npy",
            mode="w+",
            dtype=np.float32,
            shape=(n_scans, n_rois, n_rois),
        )
        for start in range(0, n_scans, N_SCANS_AT_ONCE):
            block = slice(start, min(start + N_SCANS_AT_ONCE, n_scans))
            people = person[block]
            shape = len(people), len(rows)
            weights = base_weights * np.exp(
                0.5 * rng.standard_normal(shape, dtype=np.float32)
            )
            # The second scan of a person has the true network of the first.
            for i in np.flatnonzero(is_second[block]):
                if i:
                    weights[i] = weights[i - 1]
            counts = weights + np.sqrt(weights) * rng.standard_normal(
                shape, dtype=np.float32
            )
            matrices = np.zeros((len(people), n_rois, n_rois), np.float32)
            matrices[:, rows, columns] = np.maximum(np.round(counts), 0)
            matrices += matrices.swapaxes(1, 2)
            W[block] = matrices
            # x = exp(-t H) x0 by its first terms, with H = (D - W) / mean degree
            strength = matrices.sum(axis=2)
            pattern = np.tile(is_seed.astype(np.float32), (len(people), 1))
            term = pattern
            for n in range(1, 7):
                spread = np.matmul(matrices, term[:, :, None])[:, :, 0]
                lost = strength * term - spread
                term = -0.5 / n * lost / strength.mean(axis=1, keepdims=True)
                pattern = pattern + term
            pattern = pattern / pattern[:, is_seed].mean()
            noise = person_effect[people] + rng.normal(0, 0.055, pattern.shape)
            loss = np.minimum(0.27 * severity[people][:, None] * pattern, 0.95)
            features[block, :, 0] = healthy_means * (1 + noise) * (1 - loss)
        W.flush()
        cohort = Cohort(
            connectomes=np.load(W.filename, mmap_mode="r"),
            features=features,
            table=scan_table,
            atlas=template.atlas,
            feature_names=template.feature_names,
            classes=template.classes,
            findings=("simulated: nobody's data",),
            provenance={"simulated": "large_study", "n_people": n_people},
            truth=template.truth,
        )
        cohort.save(path)


def run_measured(options: argparse.Namespace) -> None:
    """Load a cohort file and run the study; print what every step used as JSON."""
    atexit.register(gc.freeze)  # as `brainlsap run` does
    steps = StepTable(ProcessMeter())
    with steps.measure("import"):
        from brainlsap import run_study, workflow
        from brainlsap.data.stored_cohort import read_study
    for function_name, step in STUDY_STEPS.items():
        function = getattr(workflow, function_name)
        setattr(workflow, function_name, steps.wrap(step, function))
    with steps.measure("load"):
        cohort = read_study(options.measure)
    settings: dict[str, Any] = {}
    if options.device:
        settings["device"] = options.device
    before_study = set(steps.uses)
    with (
        tempfile.TemporaryDirectory() as place,
        steps.measure("run_study"),
        warnings.catch_warnings(record=True) as caught_warnings,
    ):
        warnings.simplefilter("always")
        evaluation = run_study(
            cohort,
            Path(place) / "results",
            n_jobs=options.jobs,
            n_permutations=options.permutations,
            **settings,
        )
    whole_study = steps.uses.pop("run_study")
    parts = [use for step, use in steps.uses.items() if step not in before_study]
    steps.uses[OTHER_STEPS] = StepUse(
        whole_study.seconds - sum(use.seconds for use in parts),
        whole_study.processor_seconds - sum(use.processor_seconds for use in parts),
        whole_study.peak_gb,
    )
    fits = evaluation.fits.groupby("model", sort=False)
    fit_seconds = fits[["seconds_fit", "seconds_predict"]].sum().sum(axis=1)
    scores = evaluation.scores().groupby("model")["balanced_accuracy"].mean()
    answer = {
        "n_scans": cohort.n_scans,
        "uses": steps.uses,
        "n_processes": steps.meter.n_processes(),
        "warnings": [str(warning.message) for warning in caught_warnings],
        "fit_seconds": fit_seconds.to_dict(),
        "balanced_accuracy": scores.to_dict(),
    }
    print(json.dumps(answer))


def run_reference(path: Path) -> None:
    """Decompose the Laplacian of every scan; print the seconds of the processor."""
    import h5py
    from threadpoolctl import threadpool_limits

    from brainlsap.graph import normalized_laplacian

    seconds = 0.0
    with h5py.File(path, "r") as hdf_file, threadpool_limits(1):
        W = hdf_file["connectomes"]
        for start in range(0, len(W), N_SCANS_AT_ONCE):
            L = normalized_laplacian(W[start : start + N_SCANS_AT_ONCE]).numpy()
            L = L.astype(np.float64)
            begin = time.process_time()
            np.linalg.eigh(L)
            seconds += time.process_time() - begin
    print(json.dumps(seconds))


def call_itself(*arguments: str) -> Any:
    """Run this program with other arguments; return the last line that it prints."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure_study(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run the study of a cohort file, then the reference."""
    arguments = ["--measure", str(path), "--permutations", str(options.permutations)]
    if options.jobs:
        arguments += ["--jobs", str(options.jobs)]
    if options.device:
        arguments += ["--device", options.device]
    start = time.perf_counter()
    answer = call_itself(*arguments)
    seconds = time.perf_counter() - start
    uses = {step: StepUse(*use) for step, use in answer["uses"].items()}
    uses["whole command"] = StepUse(
        seconds,
        sum(use.processor_seconds for use in uses.values()),
        max(use.peak_gb for use in uses.values()),
    )
    answer["uses"] = uses
    answer["reference"] = call_itself("--reference", str(path))
    print(path.name, json.dumps(answer), flush=True)
    return answer


def growth_power(answers: list[dict[str, Any]], step: str, column: str) -> float:
    """Return the power of the number of scans with which a step's use grows."""
    n_scans = [answer["n_scans"] for answer in answers]
    values = [max(getattr(answer["uses"][step], column), 1e-3) for answer in answers]
    return float(np.polyfit(np.log(n_scans), np.log(values), 1)[0])


def device_name(device: str | None) -> str:
    """Return the device of LSAP-C, and which graphics card it is."""
    if device != "cuda":
        return "cpu"
    import torch

    return f"cuda ({torch.cuda.get_device_name()})"


def make_text(answers: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """Return the tables of all sizes."""
    rows: list[tuple[object, ...]] = []
    for step in answers[0]["uses"]:
        for answer in answers:
            use = answer["uses"][step]
            n_cores = options.jobs or os.cpu_count() or 1
            share = use.processor_seconds / max(use.seconds * n_cores, 1e-3)
            rows.append(
                (
                    step,
                    answer["n_scans"],
                    f"{use.seconds:.1f}",
                    f"{use.processor_seconds:.1f}",
                    f"{100 * share:.0f}",
                    f"{use.peak_gb:.2f}",
                )
            )
        if len(answers) > 1:
            powers = [growth_power(answers, step, name) for name in StepUse._fields]
            seconds, processor, memory = (f"{power:.2f}" for power in powers)
            rows.append((step, "power", seconds, processor, "", memory))
    model_rows = [
        (
            name,
            answer["n_scans"],
            f"{seconds:.1f}",
            f"{answer['balanced_accuracy'].get(name, np.nan):.3f}",
        )
        for name in answers[0]["fit_seconds"]
        for answer in answers
        for seconds in [answer["fit_seconds"][name]]
    ]
    ratios = []
    for answer in answers:
        whole, reference = answer["uses"]["whole command"], answer["reference"]
        ratios.append(
            (
                answer["n_scans"],
                f"{reference:.1f}",
                f"{whole.seconds / reference:.1f}",
                f"{whole.processor_seconds / reference:.1f}",
                answer["n_processes"],
            )
        )
    ratio_head = (
        "scans",
        "eigh, seconds of the processor",
        "whole command / eigh",
        "its processor / eigh",
        "processes",
    )
    return (
        f"{options.permutations} permutations, device {device_name(options.device)}; "
        f"{load()}.\n\n"
        f"{table(ratio_head, ratios)}\n\n{table(HEAD, rows)}\n\n"
        + table(("model", "scans", "seconds of fits", "balanced accuracy"), model_rows)
    )


def draw_growth(answers: list[dict[str, Any]], path: Path) -> None:
    """Draw processor seconds and memory of steps over the number of scans."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.3, 3.6), layout="constrained")
    time_axes, memory_axes = figure.subplots(1, 2)
    n_scans = [answer["n_scans"] for answer in answers]
    for step, marker in zip(DRAWN_STEPS, "o^sD", strict=True):
        uses = [answer["uses"][step] for answer in answers]
        seconds = [use.processor_seconds for use in uses]
        power = growth_power(answers, step, "processor_seconds")
        line_style = {"marker": marker, "fillstyle": "none"}
        label = f"{step}, power {power:.2f}"
        time_axes.loglog(n_scans, seconds, label=label, **line_style)
        memory_axes.plot(n_scans, [use.peak_gb for use in uses], **line_style)
    time_axes.set(xlabel="scans", ylabel="seconds of the processor")
    memory_axes.set(xlabel="scans", ylabel="peak memory (GB)", ylim=(0, None))
    memory_axes.set_xscale("log")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    for axes in (time_axes, memory_axes):
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xticks(n_scans, [f"{n:,}" for n in n_scans], fontsize="x-small")
        axes.set_xticks([], minor=True)
    figure.savefig(path, dpi=200)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = [1176, 5000, 10000, 20000, 40000]
    parser.add_argument("--people", type=int, nargs="+", default=sizes)
    parser.add_argument("--permutations", type=int, default=200)
    parser.add_argument("--jobs", type=int, help="processes; by default one a core")
    parser.add_argument("--device", help="of LSAP-C: cpu or cuda")
    parser.add_argument("--folder", type=Path, help="of cohort files that are kept")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--reference", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        run_measured(options)
        return
    if options.reference:
        run_reference(options.reference)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = options.folder or Path(place)
        folder.mkdir(parents=True, exist_ok=True)
        answers = []
        for n_people in sorted(options.people):
            path = folder / f"{n_people}.h5"
            if not path.is_file():
                start = time.perf_counter()
                write_cohort_file(path, n_people)
                print(f"wrote {path}, {time.perf_counter() - start:.0f} s", flush=True)
            answers.append(measure_study(path, options))
    largest, smallest = answers[-1]["n_scans"], answers[0]["n_scans"]
    device = options.device or "cpu"
    machine = f"{device}, {options.jobs or os.cpu_count()} cores"
    title = f"{smallest:,} to {largest:,} scans, {machine}"
    if len(answers) == 1:
        title = f"{largest:,} scans, {machine}"
    keep("large_study", title, make_text(answers, options))
    if len(answers) > 1:
        draw_growth(answers, RESULTS / f"large_study_{device}.png")


if __name__ == "__main__":
    main()
