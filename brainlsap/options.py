"""Options that several commands share; light, so that `--help` is quick."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

KERNELS = ("chebyshev", "exact", "hermite", "laguerre")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, instead of the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        """Say the message and where to read on, and exit with code 2."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def comma_list(text: str) -> list[str]:
    """Parse names with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def collapse(text: str) -> str | dict[str, list[str]]:
    """Parse the name of a collapse, or its classes as NAME=STAGE+STAGE with commas."""
    if "=" not in text:
        return text
    merged: dict[str, list[str]] = {}
    for part in comma_list(text):
        name, _, stages = (one.strip() for one in part.partition("="))
        listed = [one.strip() for one in stages.split("+") if one.strip()]
        if not name or not listed or name in merged:
            raise argparse.ArgumentTypeError(
                f"must be NAME=STAGE+STAGE, ... with every class once, got {part!r}"
            )
        merged[name] = listed
    return merged


def window(text: str) -> tuple[float, float]:
    """Parse START,END in seconds."""
    try:
        start, end = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be START,END in seconds, got {text!r}"
        ) from None
    return start, end


def kernel_list(text: str) -> list[str]:
    """Parse kernels with commas between them, or `all`."""
    names = list(KERNELS) if text == "all" else comma_list(text)
    unknown = [name for name in names if name not in KERNELS]
    if unknown or not names:
        what = repr(unknown[0] if unknown else text)
        raise argparse.ArgumentTypeError(
            f"{what} is no kernel; choose from {', '.join(KERNELS)}, or all"
        )
    return list(dict.fromkeys(names))


def at_least(lowest: int) -> Callable[[str], int]:
    """Return the parser of whole numbers that are not smaller than this."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < lowest:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {lowest}, got {text!r}"
            )
        return int(text)

    return number


def add_fitting(command: argparse.ArgumentParser, jobs: int) -> None:
    """Add how models are fitted: folds, seed, processes, epochs, starts."""
    command.add_argument(
        "--folds", type=at_least(2), default=5, help="by person (default: 5)"
    )
    command.add_argument(
        "--seed", type=at_least(0), default=0, help="of all chance (default: 0)"
    )
    command.add_argument(
        "--jobs", type=at_least(1), default=jobs, help=f"processes (default: {jobs})"
    )
    add_length(command)


def add_length(command: argparse.ArgumentParser) -> None:
    """Add how long a fit trains."""
    command.add_argument(
        "--epochs",
        type=at_least(1),
        dest="n_epochs",
        metavar="N",
        help="passes over the training people, at the most (default: the model's; "
        "LSAP's is 400)",
    )
    command.add_argument(
        "--starts",
        type=at_least(1),
        dest="n_starts",
        metavar="N",
        help="networks of different first weights, whose answers are averaged "
        "(default: the model's; LSAP's is 4)",
    )


def add_confounds(command: argparse.ArgumentParser) -> None:
    """Add what is taken out of the features inside the folds: :data:`CONFOUNDS`."""
    command.add_argument(
        "--harmonize",
        metavar="COLUMN",
        help="site or scanner to take out by ComBat, fitted on training people",
    )
    command.add_argument(
        "--regress-out",
        type=comma_list,
        metavar="COLUMNS",
        help="such as age,sex,etiv: regressed out, fitted on training people",
    )
    command.add_argument(
        "--unseen",
        choices=("keep", "error"),
        help="scans of sites that training did not see: keep them as they are, with a "
        "warning (default), or refuse",
    )


def add_collapse(command: Any) -> None:
    """Add which classes are merged."""
    command.add_argument(
        "--collapse",
        type=collapse,
        metavar="NAME",
        help="merge classes: 5-to-3, 5-to-2, cn-or-ad, early-or-late; or say what each "
        "merges, such as healthy=CN+SMC,ill=EMCI+LMCI+AD",
    )


def add_answers(command: argparse.ArgumentParser) -> None:
    """Add what the classes are and how a model answers: :data:`ANSWERS`."""
    group = command.add_argument_group("classes and answers")
    add_collapse(group)
    group.add_argument(
        "--head",
        choices=("softmax", "ordinal"),
        help="ordinal (CORN) uses the order of the classes (default: softmax, which "
        "does not)",
    )
    group.add_argument(
        "--calibration",
        choices=("none", "temperature"),
        help="temperature: divide logits by a number learned on people held out "
        "inside the training folds (default: none)",
    )
    group.add_argument(
        "--class-weight",
        choices=("balanced", "none"),
        help="balanced: every class counts alike in the loss (default; none with "
        "--preset paper)",
    )


def add_tasks(command: argparse.ArgumentParser) -> None:
    """Add where tasks are kept and run: :data:`TASKS`."""
    command.add_argument(
        "--cache",
        metavar="FOLDER",
        help="keep finished tasks there (default: private/tasks in the results)",
    )
    command.add_argument(
        "--backend", choices=("processes", "dask"), help="default: processes"
    )
    command.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a Dask cluster, tcp://HOST:PORT"
    )


def add_reading(command: argparse.ArgumentParser, from_model: bool = False) -> None:
    """Add how a cohort is read: :data:`COHORT` and :data:`PLACES`.

    Where a model knows how its cohort was read, that is the default.
    """

    def add(flag: str, default: Any, text: str, **how: Any) -> None:
        said = ",".join(default) if isinstance(default, list) else default
        said, default = ("the model's", None) if from_model else (said, default)
        reading.add_argument(
            flag, default=default, help=f"{text} (default: {said})", **how
        )

    reading = command.add_argument_group("how the cohort is read")
    add("--atlas", "destrieux160", "name or regions.tsv")
    names = "thickness, volume, area, fdg, amyloid, tau, strength or a column; with"
    add("--feature", ["thickness"], f"{names} commas", type=comma_list)
    add("--label", "diagnosis", "column to predict")
    reading.add_argument(
        "--classes",
        type=comma_list,
        help="labels in order; others are left out (default: all that are there)",
    )
    reading.add_argument(
        "--connectome", metavar="FILE", help="one connectome for everybody"
    )
    reading.add_argument(
        "--scans",
        choices=("all", "baseline"),
        default="all",
        help="baseline: everybody's first visit only (default: all)",
    )
    policies = ("absent", "mean", "volume")
    about = "below the cortex, where thickness and area do not exist: nothing (absent)"
    also = "the mean of the hemisphere's cortex, or the region's volume"
    add("--subcortex", "absent", f"{about}, {also}", choices=policies)
    _add_files(reading)


def _add_files(reading: Any) -> None:
    reading.add_argument(
        "--subjects-dir",
        metavar="FOLDER",
        help="FreeSurfer's subjects, where they are not in derivatives",
    )
    reading.add_argument(
        "--derivatives",
        action="append",
        default=[],
        metavar="FOLDER",
        help="results of other programs outside the cohort's folder; may be repeated",
    )
    reading.add_argument(
        "--pattern", help="of the names of connectome files, such as '*_count.csv'"
    )
    reading.add_argument(
        "--features-table",
        metavar="FILE",
        help="table of regions of many scans, in place of files beside the scans",
    )
    reading.add_argument(
        "--labels", metavar="FILE", help="names of the rows of unnamed matrices"
    )
    reading.add_argument("--measure", help="which matrix, where a file holds several")
    reading.add_argument(
        "--frames",
        type=window,
        metavar="START,END",
        help="window of PET time series to average, in seconds",
    )
    reading.add_argument(
        "--reference", help="reference region of PET time series, whose uptake is 1"
    )


def add_preset(command: argparse.ArgumentParser) -> None:
    """Add which settings a fit starts from, and where it computes."""
    command.add_argument(
        "--preset",
        choices=("default", "paper"),
        default="default",
        help="settings of training: ours (default) or those of the paper, with its "
        "threshold and binary weights; options that are given come before either",
    )
    command.add_argument("--device", help="cpu (default) or cuda")


# Options that functions of the rooms take by the same name.
PET = ("frames", "reference")
READ = ("atlas", "feature", "label", "measure", "scans", "subcortex")
COHORT = ("classes", "pattern", *PET, *READ)
FILES = ("features_table", "labels", "subjects_dir")
PLACES = ("connectome", "derivatives", *FILES)
CONFOUNDS = ("harmonize", "regress_out", "unseen")
TASKS = ("backend", "cache", "scheduler")
ANSWERS = ("calibration", "class_weight", "head")
SETTINGS = (*ANSWERS, "device", "n_epochs", "n_starts", "threshold", "weights")


def add_owner_only(command: argparse.ArgumentParser) -> None:
    """Add whether results are for nobody else on the machine."""
    command.add_argument(
        "--owner-only",
        action="store_true",
        help="let nobody else on this machine read what is written",
    )


def given(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Return the options that were given, as arguments of the function called."""
    found = {name: getattr(options, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}
