"""The options of the command line; light, so that `--help` is quick."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

KERNELS = ("chebyshev", "exact", "hermite", "laguerre")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, instead of the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def _comma_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _window(text: str) -> tuple[float, float]:
    try:
        start, end = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be START,END in seconds, got {text!r}"
        ) from None
    return start, end


def _kernels(text: str) -> list[str]:
    names = list(KERNELS) if text == "all" else _comma_list(text)
    unknown = [name for name in names if name not in KERNELS]
    if unknown or not names:
        what = repr(unknown[0] if unknown else text)
        raise argparse.ArgumentTypeError(
            f"{what} is no kernel; choose from {', '.join(KERNELS)}, or all"
        )
    return list(dict.fromkeys(names))


def _at_least(lowest: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < lowest:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {lowest}, got {text!r}"
            )
        return int(text)

    return number


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; `command` is the one that was given."""
    from brainlsap import __version__

    parser = _Parser(
        prog="brainlsap",
        description="Learnable heat-kernel graph convolution for brain networks: "
        "cross-validated stages, ranked regions, brain figures, a report.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", dest="command"
    )
    _add_demo(commands)
    _add_simulate(commands)
    _add_run(commands)
    check = commands.add_parser(
        "check", help="say what a cohort holds, what is mapped or dropped, every fault"
    )
    check.add_argument("cohort", help="folder of subjects")
    _add_reading(check)
    commands.add_parser("atlases", help="list the atlases that come along")
    return parser


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo", help="simulate a cohort and go the whole way, to a report"
    )
    demo.add_argument("--out", default="demo", help="folder to write (default: demo)")
    demo.add_argument("--people", type=_at_least(1), default=120, help="default: 120")
    _add_fitting(demo, jobs=2)


def _add_simulate(commands: Any) -> None:
    simulate = commands.add_parser(
        "simulate", help="write simulated subject folders with a planted answer"
    )
    simulate.add_argument("out", help="new folder")
    simulate.add_argument("--people", type=_at_least(1), default=120)
    simulate.add_argument("--atlas", default="destrieux160")
    simulate.add_argument(
        "--feature", type=_comma_list, default=["fdg"], help="fdg,thickness,volume"
    )
    simulate.add_argument("--style", choices=("mrtrix", "named"), default="mrtrix")
    simulate.add_argument("--seed", type=_at_least(0), default=0)


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="cross-validate a cohort, rank and draw its regions, write a report",
        description="The report's folder is written whole at the end, or not at all.",
    )
    run.add_argument("cohort", help="folder of subjects")
    run.add_argument("--out", required=True, help="results folder: new, or a report's")
    _add_reading(run)
    run.add_argument(
        "--kernel",
        type=_kernels,
        default=["chebyshev"],
        help=f"one or more of {', '.join(KERNELS)}, with commas, or all",
    )
    run.add_argument("--preset", choices=("default", "paper"), default="default")
    _add_fitting(run, jobs=1)
    run.add_argument("--threshold", type=float, help="drop edges below it")
    run.add_argument("--weights", choices=("weighted", "log", "binary"))
    run.add_argument("--device", help="cpu or cuda")


def _add_fitting(command: argparse.ArgumentParser, jobs: int) -> None:
    command.add_argument("--folds", type=_at_least(2), default=5, help="default: 5")
    command.add_argument("--seed", type=_at_least(0), default=0, help="default: 0")
    command.add_argument(
        "--jobs", type=_at_least(1), default=jobs, help=f"processes (default: {jobs})"
    )
    several = _at_least(1)
    command.add_argument("--epochs", type=several, dest="n_epochs", help="at the most")
    command.add_argument("--starts", type=several, dest="n_starts", help="of networks")


def _add_reading(run: argparse.ArgumentParser) -> None:
    reading = run.add_argument_group("how the cohort is read")
    reading.add_argument("--atlas", default="destrieux160", help="name or regions.tsv")
    reading.add_argument(
        "--feature",
        type=_comma_list,
        default=["thickness"],
        help="thickness, volume, area, fdg, strength or a column; with commas",
    )
    reading.add_argument("--label", default="diagnosis", help="column to predict")
    reading.add_argument(
        "--classes", type=_comma_list, help="labels in order; others are left out"
    )
    reading.add_argument("--connectome", help="one connectome for everybody")
    reading.add_argument("--subjects-dir", help="FreeSurfer's subjects")
    reading.add_argument("--derivatives", action="append", default=[])
    reading.add_argument("--pattern", help="pattern of the connectome files")
    reading.add_argument("--scans", choices=("all", "baseline"), default="all")
    reading.add_argument(
        "--subcortex", choices=("absent", "mean", "volume"), default="absent"
    )
    reading.add_argument("--features-table", help="table of many scans to read")
    reading.add_argument("--labels", help="names of the rows of unnamed matrices")
    reading.add_argument("--measure", help="which matrix, where a file holds several")
    reading.add_argument(
        "--frames", type=_window, help="PET time window, START,END in seconds"
    )
    reading.add_argument("--reference", help="reference region of PET time series")
