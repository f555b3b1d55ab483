"""The command line: parse, call one function of the package, print what it returned."""

import argparse
import inspect
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from brainlsap.exceptions import BrainlsapError, CohortError
from brainlsap.files import owner_only

Options = dict[str, Any]

EXIT_CODES = """exit codes:
  0    done
  1    a fault of brainlsap itself; please report it, with the text above it
  2    bad input, a leak found by check, or a place that cannot be written
  130  stopped by Ctrl-C or SIGTERM; the same command continues"""

RUN_EXAMPLES = """examples:
  brainlsap run study --feature fdg --out results
  brainlsap run study --models all --harmonize site --permutations 99 --out results
  brainlsap run study --config study.toml --jobs 2 --out results"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit code: 0 done, 2 bad input or a leak, 130 stopped.
    """
    options = vars(build_parser().parse_args(arguments))
    call: Callable[[Options], None] = options.pop("call")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        call(options)
    except (BrainlsapError, OSError) as error:
        print(f"brainlsap: error: {_message(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        told = str(stop) or "stopped; nothing half-written is left."
        print(f"brainlsap: {told}", file=sys.stderr)
        return 130
    return 0


def _message(error: BrainlsapError | OSError) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = str(error)
    if isinstance(error, CohortError) and len(error.faults) == 1:
        text = text.replace(":\n  ", ": ", 1)
    return _in_flags(text)


def _in_flags(text: str) -> str:
    # Messages say "label="; here it is --label. Nothing that is part of a path.
    flag = re.compile(rf"(?<![\w/.=-])({'|'.join(FLAGS)})=(?=[\s.,;:)]|$)")
    text = flag.sub(lambda found: "--" + found[1].replace("_", "-"), text)
    # "label= (--label)" says both: one is enough here
    return re.sub(r"(--[a-z-]+) \((\1[^)]*)\)", r"\2", text)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; options that are not given are left out."""

    def __init__(self, **how: Any) -> None:
        how.setdefault("argument_default", argparse.SUPPRESS)
        how.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**how)

    def error(self, message: str) -> NoReturn:
        """Say the message and where to read on, and exit with code 2."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def comma_list(text: str) -> list[str]:
    """Parse names with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def merged(text: str) -> str | dict[str, list[str]]:
    """Parse the name of a merge of classes, or NAME=CLASS+CLASS,... ."""
    if "=" not in text:
        return text
    found = {}
    for part in comma_list(text):
        name, _, classes = part.partition("=")
        found[name.strip()] = [one.strip() for one in classes.split("+")]
    return found


def window(text: str) -> tuple[float, float]:
    """Parse START,END in seconds."""
    start, end = (float(part) for part in text.split(","))
    return start, end


def natural(text: str) -> int:
    """Parse a whole number that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(text)


# Flag, what it is called in Python where that differs, and how argparse reads it.
DATA: dict[str, dict[str, Any]] = {
    "--atlas": {"help": "name, folder, or regions.tsv (default: destrieux160)"},
    "--feature": {
        "type": comma_list,
        "help": "thickness, volume, area, fdg, amyloid, tau, strength or a column of "
        "your tables; several with commas (default: thickness)",
    },
    "--label": {"help": "column to predict (default: diagnosis)"},
    "--classes": {
        "type": comma_list,
        "help": "labels in order of stage; scans with others are left out",
    },
    "--connectome": {
        "metavar": "FILE",
        "help": "one connectome for everybody; none: a network is made of features",
    },
    "--scans": {
        "choices": ("all", "baseline"),
        "help": "baseline: everybody's baseline visit only (default: all)",
    },
    "--subcortex": {
        "choices": ("absent", "mean", "volume"),
        "help": "what stands for thickness and area below the cortex (default: absent)",
    },
    "--subjects-dir": {"metavar": "FOLDER", "help": "FreeSurfer's subjects"},
    "--derivatives": {
        "action": "append",
        "metavar": "FOLDER",
        "help": "results of other programs outside the study; may be repeated",
    },
    "--pattern": {"help": "of the names of connectome files, such as '*_count.csv'"},
    "--labels": {"metavar": "FILE", "help": "names of the rows of unnamed matrices"},
    "--row-order": {"help": "of unnamed rows: atlas, mrtrix, micapipe, freesurfer"},
}
CLASSES: dict[str, dict[str, Any]] = {
    "--merge-classes": {
        "dest": "merged_classes",
        "type": merged,
        "metavar": "HOW",
        "help": "5-to-3, 5-to-2, cn-or-ad, early-or-late, or healthy=CN+SMC,ill=AD",
    },
}
STEPS: dict[str, dict[str, Any]] = {
    "--harmonize": {
        "metavar": "COLUMN",
        "help": "take out site or scanner by ComBat, fitted inside the folds",
    },
    "--regress-out": {
        "type": comma_list,
        "metavar": "COLUMNS",
        "help": "such as age,sex: regressed out inside the folds",
    },
}
MODEL: dict[str, dict[str, Any]] = {
    "--preset": {
        "choices": ("default", "paper"),
        "help": "training as we do it (default), or as published",
    },
    "--threshold": {"type": float, "help": "drop weaker links (paper: 10 streamlines)"},
    "--weights": {
        "choices": ("weighted", "log", "binary"),
        "help": "of links (default: weighted; paper: binary)",
    },
    "--head": {
        "choices": ("softmax", "ordinal"),
        "help": "ordinal: classes in order, CORN (default: softmax)",
    },
    "--epochs": {
        "dest": "n_epochs",
        "type": natural,
        "metavar": "N",
        "help": "at most",
    },
    "--seed": {
        "dest": "random_state",
        "type": natural,
        "metavar": "N",
        "help": "of all chance (default: 0)",
    },
}
EVALUATION: dict[str, dict[str, Any]] = {
    "--models": {
        "type": comma_list,
        "help": "LSAP-C (default), LSAP-H, LSAP-L, Exact, MLP, GCN, ...; with commas; "
        "or all, models, controls",
    },
    "--folds": {"dest": "cv", "type": natural, "metavar": "N", "help": "default: 5"},
    "--repeats": {
        "dest": "n_repeats",
        "type": natural,
        "metavar": "N",
        "help": "how often folds are drawn anew (default: 1)",
    },
    "--splits": {"metavar": "FILE", "help": "folds of your own: scan, repeat, fold"},
    "--leave-out": {
        "metavar": "COLUMN",
        "help": "one value of a column, such as site, is the test fold at a time",
    },
    "--permutations": {
        "dest": "n_permutations",
        "type": natural,
        "metavar": "N",
        "help": "fits to permuted labels, for the ranking's p-values (default: 0)",
    },
}
CONFIG: dict[str, dict[str, Any]] = {
    "--config": {
        "metavar": "FILE",
        "help": "study.toml; its keys are the parameters of load_cohort, run_study and "
        "LSAPClassifier; options given here come before it",
    },
}
FLAGS = sorted(
    option.get("dest", flag[2:].replace("-", "_"))
    for group in (DATA, CLASSES, STEPS, MODEL, EVALUATION)
    for flag, option in group.items()
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; `call` is the function of the one given."""
    from brainlsap import __version__

    parser = Parser(
        prog="brainlsap",
        description="Learnable heat-kernel graph convolution for brain networks: "
        "cross-validated stages, ranked regions, brain figures, a report.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(call: Callable[[Options], None], what: str, *names: str, **how: Any) -> Any:
        name = call.__name__.replace("_", "-")
        required = ["--out FOLDER"] if call is run else []
        how["usage"] = " ".join(["brainlsap", name, *names, *required, "[options]"])
        command = commands.add_parser(name, help=what, description=what, **how)
        command.set_defaults(call=call)
        for name in names:
            command.add_argument(name.lower(), metavar=name)
        return command

    def group(command: Any, title: str, *parts: dict[str, dict[str, Any]]) -> None:
        place = command.add_argument_group(title)
        for part in parts:
            for flag, how in part.items():
                place.add_argument(flag, **how)

    command = add(demo, "simulate a study and go the whole way, to a report")
    command.add_argument("--out", help="folder to write (default: demo)")
    command.add_argument("--people", type=natural, help="default: 120")
    command.add_argument("--folds", type=natural, help="default: 5")
    command.add_argument("--seed", type=natural, help="default: 0")
    command.add_argument("--jobs", type=natural, help="processes (default: 2)")
    command.add_argument("--epochs", type=natural, dest="n_epochs")
    command.add_argument("--starts", type=natural, dest="n_starts")

    command = add(simulate, "write a simulated study with a planted answer", "OUT")
    command.add_argument("--people", type=natural, help="default: 120")
    command.add_argument("--atlas", help="default: destrieux160")
    command.add_argument("--feature", type=comma_list, help="default: fdg")
    command.add_argument(
        "--style",
        choices=("mrtrix", "named"),
        help="of connectomes: numbers alone (default), or with names of regions",
    )
    command.add_argument("--seed", type=natural, help="default: 0")

    _add_adni(
        add(import_adni, "make a study of ADNI's files", "TABLES", "IMAGES", "OUT")
    )
    _add_build(add(build, "make connectomes and SUVR from a study's images", "STUDY"))

    command = add(
        check, "what a study holds, what is mapped or dropped, faults, leaks", "STUDY"
    )
    group(command, "data", DATA)
    group(
        command, "folds that are looked at", {k: EVALUATION[k] for k in ("--splits",)}
    )
    command.add_argument("--config", **CONFIG["--config"])
    command.add_argument("--out", metavar="FOLDER", help="write the tables there too")

    command = add(
        run,
        "cross-validate, rank regions, write a report",
        "STUDY",
        epilog=RUN_EXAMPLES,
    )
    group(command, "data", DATA, CLASSES)
    group(command, "model", MODEL)
    group(command, "evaluation", EVALUATION, STEPS)
    output = {
        "--out": {"required": True, "metavar": "FOLDER", "help": "results folder"},
        "--jobs": {
            "dest": "n_jobs",
            "type": natural,
            "metavar": "N",
            "help": "processes; the result does not depend on them (default: 1)",
        },
        **CONFIG,
    }
    group(command, "output", output)

    command = add(report, "make a report anew, or export its maps", "RESULTS")
    command.add_argument("--out", help="another folder to write (default: the same)")
    command.add_argument("--title", help="heading of the page")
    command.add_argument(
        "--with-identifiers",
        action="store_true",
        help="name scans and people in report/, which is then not to be shared",
    )
    command.add_argument(
        "--export", metavar="FOLDER", help="write maps of the scales there: GIFTI, TSV"
    )
    command.add_argument(
        "--parcellation", metavar="IMAGE", help="also write NIfTI maps in its space"
    )

    command = add(fit, "fit one model on a whole study and store it", "STUDY")
    group(command, "data", DATA, CLASSES)
    group(command, "model", MODEL, STEPS)
    command.add_argument(
        "--kernel", help="chebyshev (default), exact, hermite, laguerre"
    )
    command.add_argument("--config", **CONFIG["--config"])
    command.add_argument("--out", required=True, help="the model's file")

    command = add(predict, "classes of new people by a stored model", "MODEL", "STUDY")
    group(command, "data (default: as the model's study was read)", DATA)
    command.add_argument("--out", required=True, help="table to write; it names people")

    _add_nodes(add(nodes, "classify the nodes of a citation graph", "DATASET"))
    return parser


def _add_adni(command: Any) -> None:
    command.add_argument(
        "--window", type=natural, help="days between image and visit (default: 180)"
    )
    command.add_argument(
        "--stages",
        choices=("baseline", "carry"),
        help="SMC, EMCI, LMCI: at baseline (default), or carried forward and marked",
    )
    command.add_argument(
        "--require",
        type=comma_list,
        help="modalities that a visit needs: anat, dwi, fdg, amyloid, tau",
    )
    command.add_argument(
        "--modality",
        action="append",
        metavar="NAME=WORDS",
        help="words in a description that mean a modality, such as fdg=Coreg,_Avg",
    )
    command.add_argument(
        "--files", choices=("link", "copy", "none"), help="of images (default: link)"
    )


def _add_build(command: Any) -> None:
    command.add_argument("--out", help="default: derivatives/brainlsap in the study")
    command.add_argument("--atlas", help="default: destrieux160")
    command.add_argument("--derivatives", **DATA["--derivatives"])
    command.add_argument("--subjects-dir", **DATA["--subjects-dir"])
    command.add_argument("--jobs", type=natural, help="scans at once (default: 1)")
    files = command.add_argument_group("patterns of the names of files")
    for name in PATTERNS:
        files.add_argument(f"--{name.replace('_', '-')}", metavar="PATTERN")
    command.add_argument("--labels", help="table of numbers and names of the labels")
    lines = command.add_argument_group("connectomes")
    lines.add_argument(
        "--assignment",
        choices=("end_voxels", "radial", "reverse_search"),
        help="where a streamline's end belongs (default: radial)",
    )
    lines.add_argument("--radius", type=float, help="in mm (default: 4)")
    lines.add_argument(
        "--weight",
        choices=("count", "inverse_length", "inverse_node_volume", "mean_length"),
        help="what a streamline adds (default: count)",
    )
    pet = command.add_argument_group("SUVR")
    pet.add_argument("--reference", help="region or mask (default: cerebellar cortex)")
    pet.add_argument(
        "--grid", choices=("pet", "parcellation"), help="where voxels are averaged"
    )
    pet.add_argument("--frames", type=window, metavar="START,END", help="in seconds")
    pet.add_argument("--erosion", type=natural, help="layers of voxels (default: 0)")
    pet.add_argument("--min-voxels", type=natural, help="of a region (default: 1)")
    for flag, what in {
        "--same-space": "the PET lies in the parcellation's space, whatever its name",
        "--accept-low-coverage": "go on where the PET covers too few regions",
    }.items():
        pet.add_argument(flag, action="store_true", help=what)


def _add_nodes(command: Any) -> None:
    command.add_argument("--data", help="folder of files (default: in ~/.cache)")
    command.add_argument("--download", action="store_true", help="fetch missing files")
    command.add_argument(
        "--models", type=comma_list, help="with commas, or all (default: lsap-c,gcn)"
    )
    command.add_argument("--seeds", type=natural, help="how many (default: 10)")
    command.add_argument("--split", help="public, per-class, 60-20-20, or masks (.npz)")
    command.add_argument("--variant", help="how scales are learned (default: chosen)")
    command.add_argument("--epochs", type=natural, dest="n_epochs", help="at most")
    command.add_argument("--out", help="CSV of one row a run; finished seeds are kept")


PATTERNS = ("tractogram", "parcellation", "pet", "transform", "streamline_weights")
CONNECTOME = ("assignment", "radius", "weight", "labels")
SUVR = (
    *("reference", "grid", "frames", "erosion", "min_voxels", "labels"),
    *("same_space", "accept_low_coverage"),
)


def demo(options: Options) -> None:
    """Simulate a study and go the whole way."""
    from brainlsap.data import load_cohort
    from brainlsap.report import check_results_folder
    from brainlsap.simulation import make_cohort, write_study_folder
    from brainlsap.workflow import run_study

    out = Path(options.pop("out", "demo"))
    people, seed = options.pop("people", 120), options.pop("seed", 0)
    results = check_results_folder(out / "results")
    folder = out / f"study_{people}_people_seed_{seed}"
    if folder.is_dir():
        print(f"Study: {folder} (made before)")
    else:
        made = make_cohort(people, feature="fdg", random_state=seed)
        write_study_folder(made, folder, verbose=True)
        print(f"Study: {folder} ({made.n_scans} scans simulated)")
    evaluation = run_study(
        load_cohort(folder, feature="fdg", verbose=True),
        results,
        ["LSAP-C", "Exact"],
        cv=options.pop("folds", 5),
        random_state=seed,
        n_jobs=options.pop("jobs", 2),
        verbose=True,
        title="Demo: a simulated study",
        **options,
    )
    _print_scores(evaluation, results)


def simulate(options: Options) -> None:
    """Write a simulated study."""
    from brainlsap.simulation import make_cohort, write_study_folder

    cohort = make_cohort(
        options.get("people", 120),
        atlas=options.get("atlas", "destrieux160"),
        feature=options.get("feature", ["fdg"]),
        random_state=options.get("seed", 0),
    )
    style = options.get("style", "mrtrix")
    folder = write_study_folder(cohort, options["out"], style=style, verbose=True)
    print(f"Study: {folder} ({_count(cohort)})")


def import_adni(options: Options) -> None:
    """Make a study of ADNI's tables and images."""
    from brainlsap import adni

    words = {}
    for part in options.pop("modality", []):
        name, _, text = part.partition("=")
        if not name or not text:
            raise BrainlsapError("--modality must be NAME=WORDS, such as fdg=Coreg")
        words[name] = text
    if words:
        options["modalities"] = words
    places = [options.pop(name) for name in ("tables", "images", "out")]
    found = adni.import_adni(*places, **options)
    print(found.text(), end="")
    print(f"Study: {found.folder}")


def build(options: Options) -> None:
    """Make connectomes and SUVR of a study from its images."""
    from brainlsap.images import build_study

    built = build_study(
        options["study"],
        **_some(options, ("atlas", "out", "derivatives", "subjects_dir")),
        patterns=_some(options, PATTERNS),
        connectome=_some(options, CONNECTOME),
        suvr=_some(options, SUVR),
        n_jobs=options.get("jobs", 1),
        verbose=True,
    )
    print(f"Built: {built.folder} ({len(built.made)} made, {len(built.kept)} kept)")
    if built.faults:
        raise CohortError(f"{len(built.faults)} faults", built.faults)


def check(options: Options) -> None:
    """Say what a study holds; look for faults and leaks."""
    _existing(options["study"])
    from brainlsap.data import check_cohort, quality_table, write_tsv
    from brainlsap.evaluation import audit, make_splits, read_splits

    reading, rest = _configured(options, "study", "splits", "out")
    _refuse_unknown(rest)
    found = check_cohort(options["study"], **reading)
    print(_in_flags(found.text()), end="")
    if found.cohort is None:
        n = len(found.faults)
        raise BrainlsapError(f"{options['study']} has {n} fault{'s' * (n > 1)}")
    cohort = found.cohort
    if "splits" in options:
        splits = read_splits(options["splits"], cohort.table["scan"])
    else:
        n_folds = min(5, cohort.table.groupby("label")["participant"].nunique().min())
        splits = make_splits(cohort.y, cohort.groups, max(2, int(n_folds)))
    quality = quality_table(cohort)
    unusual = quality.loc[quality["flags"] != "", "flags"]
    print("\nUnusual scans:")
    for line in [f"{scan}: {flags}" for scan, flags in unusual.items()] or ["none"]:
        print(f"  {line}")
    for note in quality.attrs["notes"]:
        print(f"  ({note})")
    leaks = audit(cohort, splits)
    shown = leaks.drop(columns="scans", errors="ignore")
    print("\nLeaks and other explanations of a score:")
    print(shown.to_string(index=False) if len(shown) else "none found")
    if "out" in options:
        out = Path(options["out"])
        with owner_only():  # both name people
            print(f"Audit: {write_tsv(leaks, out / 'audit.tsv')}")
            print(f"Quality: {write_tsv(quality.reset_index(), out / 'quality.tsv')}")
    # other folds than these would have the two on both sides
    is_leak = (leaks["severity"] == "error") | (leaks["check"] == "duplicate scans")
    if is_leak.any():
        told = ", ".join(sorted(set(leaks.loc[is_leak, "check"])))
        raise BrainlsapError(f"{options['study']} has leaks: {told}")


def run(options: Options) -> None:
    """Cross-validate a study, rank its regions, write the report."""
    _existing(options["study"])
    from brainlsap.evaluation import read_splits
    from brainlsap.report import check_results_folder
    from brainlsap.workflow import run_study

    reading, settings = _configured(options, "study", "splits", "out")
    check_results_folder(options["out"])
    _refuse_unknown(settings, run_study)
    cohort = _load(options["study"], reading)
    if "splits" in options:
        settings["cv"] = read_splits(options["splits"], cohort.table["scan"])
    evaluation = run_study(cohort, options["out"], verbose=True, **settings)
    _print_scores(evaluation, Path(options["out"]))


def report(options: Options) -> None:
    """Make a report anew from its results folder; export its maps."""
    from brainlsap.report import export_maps, read_results, write_report

    results = Path(options["results"])
    evaluation = read_results(results)
    if "export" in options:
        files = export_maps(
            evaluation, options["export"], parcellation=options.get("parcellation")
        )
        print(f"Maps: {options['export']} ({len(files)} files)")
        return
    out = Path(options.get("out", results))
    page = write_report(
        evaluation, out, **_some(options, ("title", "with_identifiers"))
    )
    print(f"Report: {page}")


def fit(options: Options) -> None:
    """Fit one model on a whole study and store it."""
    _existing(options["study"])
    from brainlsap.model import LSAPClassifier
    from brainlsap.prediction import fit_model
    from brainlsap.workflow import merge_classes

    reading, settings = _configured(options, "study", "out")
    steps = _some(settings, ("harmonize", "regress_out", "handle_unknown"))
    classes = settings.pop("merged_classes", None)
    for name in steps:
        del settings[name]
    _refuse_unknown(settings, LSAPClassifier)
    model = LSAPClassifier(**{"random_state": 0, **settings})
    cohort = _load(options["study"], reading)
    if classes is not None:
        cohort = merge_classes(cohort, classes)
    fit_model(cohort, options["out"], model, reading=reading, **steps)
    print(f"Model: {options['out']}")


def predict(options: Options) -> None:
    """Predict the people of a study by a stored model."""
    _existing(options["study"])
    from brainlsap.data import write_tsv
    from brainlsap.model import load_model
    from brainlsap.prediction import predict_people, read_people

    model = load_model(options.pop("model"))
    folder, out = options.pop("study"), options.pop("out")
    cohort = read_people(model, folder, verbose=True, **options)
    print(f"Study: {_count(cohort)}")
    table = predict_people(model, cohort)
    counts = table["predicted"].value_counts()
    print(
        "Predicted: " + ", ".join(f"{name} {count}" for name, count in counts.items())
    )
    with owner_only():  # it names people
        print(f"Table: {write_tsv(table, out)}")


def nodes(options: Options) -> None:
    """Classify the nodes of a citation or co-purchase graph, many seeds."""
    from brainlsap.nodes import NODE_MODELS, load_nodes, run_nodes, summarize_nodes

    graph = load_nodes(
        options["dataset"],
        options.get("data"),
        download=options.get("download", False),
    )
    print(
        f"{graph.name}: {graph.n_nodes} nodes, {graph.n_edges} edges, "
        f"{graph.n_classes} classes, {graph.n_features} features",
        flush=True,
    )
    models = options.get("models", ["lsap-c", "gcn"])
    runs = run_nodes(
        graph,
        list(NODE_MODELS) if models == ["all"] else models,
        n_seeds=options.get("seeds", 10),
        verbose=True,
        **_some(options, ("split", "variant", "n_epochs", "out")),
    )
    print(summarize_nodes(runs).round(2).to_string(index=False))


def _some(options: Options, names: Sequence[str]) -> Options:
    return {name: options[name] for name in names if name in options}


def _count(cohort: Any) -> str:
    return f"{cohort.n_scans} scans of {len(set(cohort.groups))} people"


def _existing(study: str) -> None:
    """Refuse what is not there before anything heavy is imported."""
    if not Path(study).exists():
        raise BrainlsapError(f"{study}: no such file or folder")


def _load(study: str, reading: Options) -> Any:
    from brainlsap.data import Cohort, load_cohort

    if Path(study).suffix == ".h5":
        cohort = Cohort.load(study)
    else:
        cohort = load_cohort(study, verbose=True, **reading)
    print(f"Study: {_count(cohort)}", flush=True)
    return cohort


def _configured(options: Options, *own: str) -> tuple[Options, Options]:
    """Return what load_cohort takes, and the rest, of the config file and options."""
    import tomllib

    from brainlsap.data import load_cohort

    asked: Options = {}
    if "config" in options:
        path = Path(options["config"])
        try:
            asked = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BrainlsapError(f"{path}: not a TOML file ({error})") from error
        for section in [name for name in asked if name in ("data", "study", "model")]:
            asked |= asked.pop(section)  # sections are for the reader only
    asked |= {k: v for k, v in options.items() if k not in (*own, "config")}
    known = set(inspect.signature(load_cohort).parameters) - {"folder", "verbose"}
    reading = {name: value for name, value in asked.items() if name in known}
    return reading, {k: v for k, v in asked.items() if k not in known}


def _refuse_unknown(settings: Options, *functions: Any) -> None:
    """Refuse settings that neither these functions nor LSAPClassifier take."""
    from brainlsap.data import load_cohort
    from brainlsap.model import LSAPClassifier
    from brainlsap.model.settings import OPTIONS

    known: set[str] = set(OPTIONS)
    for one in (*functions, LSAPClassifier, load_cohort):
        known |= set(inspect.signature(one).parameters)
    wrong = sorted(set(settings) - known)
    if wrong:
        near = get_close_matches(wrong[0], known, n=1)
        hint = f"; nearest: {near[0]}" if near else ""
        raise BrainlsapError(
            f"{', '.join(wrong)}: no setting of this command{hint}. The keys of a "
            "config file are the parameters of load_cohort, run_study, LSAPClassifier."
        )


def _print_scores(evaluation: Any, results: Path) -> None:
    from brainlsap.report import score_table

    main_ones = ["balanced_accuracy", "accuracy", "f1", "auc"]  # the rest is in files
    print(score_table(evaluation, main_ones).to_string(index=False))
    print(f"Report: {results / 'report' / 'report.html'}")


if __name__ == "__main__":
    sys.exit(main())
