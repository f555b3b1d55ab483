"""The command line: parse, call one function of the package, print what it returned.

The options of a command stand above its function, in the words of its help.
"""

import argparse
import inspect
import re
import shlex
import signal
import sys
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import brainlsap
from brainlsap.exceptions import BrainlsapError, CohortError, listed, reading
from brainlsap.files import owner_only

Options = dict[str, Any]

EXIT_CODES = """exit codes: 0 done; 1 a fault of brainlsap itself, please report it;
2 bad input, a leak that check finds, or a file that cannot be written;
130 stopped, to be continued"""

# Options of several commands: flag, what stands for its value (READ_AS says how that
# is read; a|b are choices, ... may be repeated), and after two blanks its help. A line
# that ends with a colon begins a group.
STUDY = """
STUDY  folder of a study, or a cohort's file (.h5)"""
DATA = """
--atlas NAME  name, folder or regions.tsv (default: destrieux160)
--feature NAMES  thickness (default), volume, area, fdg, amyloid, tau, strength,
    or columns of your tables
--label COLUMN  to predict (default: diagnosis)
--classes NAMES  labels in order of stage; others are left out
--connectome FILE  one for everybody; none: made of the features
--scans all|baseline  which visits (default: all)
--subcortex absent|mean|volume  for its thickness and area (default: absent)
--subjects-dir FOLDER  FreeSurfer's subjects
--features-table FILE  the only table in which features are looked for
--derivatives FOLDER...  results of other programs; may be repeated
--pattern PATTERN  of connectome files, such as '*_count.csv'
--labels FILE  names of the rows of unnamed matrices
--row-order NAME  of unnamed rows: atlas, labels, mrtrix, ukbiobank, micapipe, enigma
    ... (a refusal lists those that fit)
--negative refuse|drop|absolute  weights of connectomes below 0 (default: refuse)"""
# of people to be predicted
UNLABELLED = re.sub(r"(\n--label COLUMN  ).*\n.*", r"\1to write beside, if known", DATA)
UNLABELLED = re.sub(r" \(default[^)]*\)(?<!all\))", "", UNLABELLED)
CLASSES = """
--merge-classes HOW  5-to-3, 5-to-2, cn-or-ad, early-or-late, or well=CN+SMC,ill=AD"""
MODEL = """
--preset default|paper  training as we do it, or as published
--threshold X  drop weaker links (paper: 10 streamlines)
--weights weighted|log|binary  of links (default: weighted; paper: binary)
--head softmax|ordinal  ordinal: classes in order, CORN
--epochs N  at most
--seed N  of all chance (default: 0)"""
STEPS = """
--harmonize COLUMN  such as site: taken out by ComBat inside the folds
--regress-out NAMES  such as age,sex: regressed out inside the folds"""
FOLDS = """
--folds N  by person (default: 5)
--leave-out COLUMN  such as site: each of its values is a test fold once"""
CONFIG = """
--config FILE  TOML of these and further settings; options given here come first"""
JOBS = """
--jobs N  processes (default: as many as cores)"""

# What an option is called in Python, where that differs.
COUNTS = ("epochs", "jobs", "people", "permutations", "repeats", "seeds", "starts")
IN_PYTHON = {f"--{name}": f"n_{name}" for name in COUNTS} | {
    "--folds": "cv",
    "--merge-classes": "merged_classes",
    "--seed": "random_state",
    "--seed-regions": "seeds",
}


def comma_list(text: str) -> list[str]:
    """Parse names with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def pair(text: str) -> tuple[str, str]:
    """Parse NAME=WORDS."""
    name, words = text.split("=", 1)
    return name, words


def window(text: str) -> tuple[float, ...]:
    """Parse START,END in seconds."""
    return tuple(float(part) for part in text.split(","))


def whole_number(text: str) -> int:
    """Parse a number that is not negative."""
    if not text.isdecimal():
        told = f"must be a whole number of at least 0, got {text!r}"
        raise argparse.ArgumentTypeError(told)
    return int(text)


READ_AS = {
    "N": whole_number,
    "X": float,
    "NAMES": comma_list,
    "NAME=WORDS": pair,
    "START,END": window,
}

Help = partial(argparse.RawDescriptionHelpFormatter, max_help_position=25)

# The function of each command, and its options.
COMMANDS: dict[Callable[..., None], str] = {}


def command(text: str) -> Callable:
    """Make a command of a function, with these options."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        COMMANDS[function] = text
        return function

    return add


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; `call` is the function of the one given."""
    parser = argparse.ArgumentParser(
        prog="brainlsap",
        description="Learnable heat-kernel graph convolution for brain networks: "
        "cross-validated stages, ranked regions, brain figures, a report.",
        epilog=EXIT_CODES,
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=brainlsap.__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for function, text in COMMANDS.items():
        name = function.__name__.replace("_", "-")
        what, _, examples = (inspect.getdoc(function) or "").partition("\n\n")
        needed = re.findall(r"(?m)^[A-Z]+(?=  )|^--.*(?=  .*\(required\))", text)
        one = commands.add_parser(
            name,
            help=what[0].lower() + what[1:].rstrip("."),
            description=what,
            epilog=examples,
            usage=" ".join(["brainlsap", name, *needed, "[options]"]),
            argument_default=argparse.SUPPRESS,  # the function has the defaults
            formatter_class=Help,
            add_help=False,
            allow_abbrev=False,  # --features is not --features-table
        )
        one.set_defaults(call=function)
        one.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
        _add_options(one, text)
    return parser


def _add_options(parser: argparse.ArgumentParser, text: str) -> None:
    group = parser.add_argument_group("options")
    for option in re.findall(r"^\S.*(?:\n .*)*", text, re.MULTILINE):
        head, _, what = option.replace("\n   ", " ").partition("  ")
        flag, _, value = head.partition(" ")
        how: Options = {"help": " ".join(what.split())}
        if option.endswith(":"):
            group = parser.add_argument_group(option[:-1])
            continue
        if not flag.startswith("--"):
            group.add_argument(flag.lower(), metavar=flag, **how)
            continue
        how |= {"dest": _in_python(flag), "required": "(required)" in what}
        if "|" in value:
            how["choices"] = value.split("|")
        elif value:
            kind = value.removesuffix("...")
            how |= {"metavar": kind, "type": READ_AS.get(kind, str)}
        if not value or value.endswith("..."):
            how["action"] = "append" if value else "store_true"
        group.add_argument(flag, **how)


def _in_python(flag: str) -> str:
    return IN_PYTHON.get(flag, flag[2:].replace("-", "_"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit code: 0 done, 2 bad input or a leak that `check` finds, 130 stopped.
    """
    options = vars(build_parser().parse_args(arguments))
    call: Callable[..., None] = options.pop("call")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warnings.formatwarning = lambda text, *_, **__: f"Warning: {text}\n"
    try:
        given = options.get("study", options.get("results", "."))
        if not Path(given).exists():  # before heavy imports
            raise BrainlsapError(f"{given}: no such file or folder")
        call(**options)
    except BrokenPipeError:  # nobody reads on, as behind `| head`
        return 141
    except (BrainlsapError, OSError) as error:
        print(f"brainlsap: error: {_in_flags(str(error), call)}", file=sys.stderr)
        if isinstance(error, CohortError) and call in (fit, run):
            print("`brainlsap check` looks for what would read it.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        told = "nothing half-written is left; the same command continues"
        print(f"brainlsap: stopped; {told}.", file=sys.stderr)
        return 130
    return 0


def _in_flags(text: str, call: Callable[..., None]) -> str:
    """Say --label where a message for a command says "label=" (but not in a path)."""
    flags = re.findall(r"^--[a-z-]+", COMMANDS[call], re.MULTILINE)
    names = {"folder": "STUDY"} | {_in_python(flag): flag for flag in flags}

    def say(found: re.Match[str]) -> str:
        flag, value = names.get(found[1]), found[2]
        if flag or "config" not in names:
            return f"{flag} {value or ''}".rstrip() if flag else found[0]
        line = f' = "{value}"' if value else " = true" * found[0].endswith("True")
        return f"{found[1]}{line} (in a --config file)"

    text = re.sub(rf"^({'|'.join(names)})(?= must be )", r"\1=", text)
    text = re.sub(r"(?<![\w/.=-])(\w+)=(?:'([\w-]+)'|True)?(?=[\s.,;:)]|$)", say, text)
    # "label= (--label)" says both: one is enough here
    return re.sub(r"(--[a-z-]+) \((\1[^)]*)\)", r"\2", text)


@command(
    f"""
--out FOLDER  to write (default: demo)
--people N  simulated (default: 120)
--folds N  default: 5
--seed N  default: 0
--epochs N  at most
--starts N  of each fit{JOBS}"""
)
def demo(
    out: str = "demo", n_people: int = 120, random_state: int = 0, **how: Any
) -> None:
    """Simulate a study and go the whole way, to a report."""
    study = Path(out) / f"study_{n_people}_people_seed_{random_state}"
    if not study.is_dir():
        simulate(str(study), n_people=n_people, random_state=random_state)
    how |= {"feature": "fdg", "models": ["LSAP-C", "Exact"], "overwrite": True}
    how |= {"random_state": random_state, "title": "Demo: a simulated study"}
    run(str(study), str(Path(out) / "results"), **how)


@command(
    """
OUT  folder to write
--people N  default: 120
--atlas NAME  default: destrieux160
--feature NAMES  of fdg, thickness, volume (default: fdg)
--style mrtrix|named  of connectomes (default: mrtrix, numbers, where it knows them)
--seed-regions NAMES  where disease starts (default: medial temporal lobe)
--seed N  default: 0"""
)
def simulate(out: str, style: str = "", **how: Any) -> None:
    """Write a simulated study with a planted answer."""
    cohort = brainlsap.make_cohort(**how)
    brainlsap.simulation.write_study_folder(cohort, out, style=style, verbose=True)
    print(f"Simulated: {Path(out)}: {cohort}")


@command(
    """
FOLDER  to make
of what:
--annot FILE  lh.NAME.annot on fsaverage; rh.NAME.annot lies beside it
--labels FILE  names of the regions: a table, list or FreeSurfer's lookup table
--image FILE  NIfTI of their numbers, in MNI152"""
)
def atlas(folder: str, **of_what: Any) -> None:
    """Make an atlas of your own, for --atlas FOLDER."""
    made = brainlsap.make_atlas(folder, **of_what)
    left, right, middle = (sum(made.regions["hemisphere"] == one) for one in "LRM")
    print(f"Atlas: {Path(folder)} ({len(made)} regions, {made.cortex.sum()} cortical)")
    full = "" if made.full_names == made.names else f"; in reports {made.full_names[0]}"
    print(f"Names: {listed(made.names, 3)}{full}")
    print(f"Sides: {left} left, {right} right, {middle} in the middle")
    print(f"Subcortex: {', '.join(made.regions['name'][~made.cortex]) or 'none'}")
    if made.regions["x"].isna().all():
        print("Coordinates: none, so figures show dots in place of the brain")
    print("".join(f"{note}\n" for note in made.settings.get("notes", ())), end="")
    print(f"Next: {_command('check', 'STUDY', {'atlas': folder})}")


@command(
    """
TABLES  folder of ADNI's tables
IMAGES  folder of LONI's images
OUT  study to write
--window N  days between image and visit (default: 180)
--require NAMES  modalities of a visit: anat, dwi, fdg, amyloid, tau
--modality NAME=WORDS...  what descriptions of it say, such as fdg=Coreg,_Avg"""
)
def import_adni(tables: str, images: str, out: str, **how: Any) -> None:
    """Make a study of ADNI's tables and images."""
    how["modalities"] = dict(how.pop("modality", ()))
    found = brainlsap.adni.import_adni(tables, images, out, **how)
    print(*found.notes, f"Study: {found.folder}", sep="\n")


@command(
    """
STUDY  folder of a study
--out FOLDER  default: derivatives/brainlsap in the study
--atlas NAME  name, folder or regions.tsv (default: destrieux160)
--derivatives FOLDER...  results of other programs; may be repeated
--subjects-dir FOLDER  FreeSurfer's subjects
--jobs N  scans at once (default: 1)
--labels FILE  numbers and names of the labels
names of files:
--tractogram PATTERN
--parcellation PATTERN
--pet PATTERN
--transform PATTERN
--streamline-weights PATTERN
connectomes:
--assignment end_voxels|radial  of ends to regions (default: radial)
--radius X  in mm (default: 4)
--weight count|inverse_length|inverse_node_volume|mean_length
    what a streamline adds (default: count)
SUVR:
--reference NAME  region or mask (default: cerebellar cortex)
--same-space  the PET lies in the parcellation's space, whatever its name
--accept-low-coverage  go on where the PET covers too few regions"""
)
def build(study: str, **options: Any) -> None:
    """Make connectomes and SUVR from a study's images."""
    some = partial(_some, options)
    built = brainlsap.images.build_study(
        study,
        **some("atlas out derivatives subjects_dir n_jobs"),
        patterns=some("tractogram parcellation pet transform streamline_weights"),
        connectome=some("assignment radius weight labels"),
        suvr=some("reference labels same_space accept_low_coverage"),
        verbose=True,
    )
    print(f"Built: {built.folder} ({len(built.made)} made, {len(built.kept)} kept)")
    if built.faults:
        raise CohortError(f"{len(built.faults)} faults", built.faults)


@command(
    f"""
data:
STUDY  folder of a study{DATA}{CLASSES}
options:{FOLDS}{CONFIG}"""
)
def check(study: str, **options: Any) -> None:
    """Say what a study holds, what is mapped or dropped; its faults and leaks."""
    print(f"Looking at {study} ...", flush=True)  # imports take seconds
    data, studying, _ = _configured(options)
    if Path(study).suffix == ".h5":
        found = brainlsap.check_cohort(brainlsap.data.Cohort.load(study))
    else:
        found = brainlsap.check_cohort(study, **data, verbose=True)
    cohort, merged = found.cohort, studying.get("merged_classes")
    if cohort is not None and merged is not None:
        cohort = brainlsap.workflow.merge_classes(cohort, merged)
        found = replace(brainlsap.check_cohort(cohort), folder=found.folder)
    print(_in_flags(found.text(), check), end="")
    others = (
        [] if Path(study).is_file() else brainlsap.data.suggest_options(found, data)
    )
    if others:
        lines = [_command("check", study, options | one) for one in others]
        which = ", one of:" if len(lines) > 1 else ":"
        print(f"\nMore can be read by{which}", *lines, sep="\n  ")
    if cohort is None:
        raise BrainlsapError(f"{study} cannot be read; its faults are listed above")
    n_people = cohort.table.groupby("label")["participant"].nunique()
    how, why = _some(studying, "cv leave_out"), ""
    if not how and n_people.min() < 5:
        how["cv"] = max(2, int(n_people.min()))
        why = f"\n  (5 folds are too many: {n_people.idxmin()} has {how['cv']} people)"
    folds = brainlsap.workflow.choose_folds(cohort, **how)
    if isinstance(folds, int):
        folds = brainlsap.evaluation.make_splits(cohort.y, cohort.groups, folds)
    quality = brainlsap.data.quality_table(cohort)
    unusual = quality.loc[quality["flags"] != "", "flags"]
    lines = [f"{scan}: {flags}" for scan, flags in unusual.items()] or ["none"]
    lines += [f"({note})" for note in quality.attrs["notes"]]
    print("\nUnusual scans:", *lines, sep="\n  ")
    leaks = brainlsap.evaluation.audit(cohort, folds)
    has_names = (leaks["check"] == "duplicate scans") & (leaks["scans"] != "")
    who = (": " + leaks["scans"]).where(has_names, "") + ". "
    told = leaks["severity"] + ": " + leaks["finding"] + who + leaks["what_to_do"]
    fill = partial(textwrap.fill, width=96, subsequent_indent="  ")
    lines = [fill(_in_flags(one, run)) for one in told] or ["none found"]
    print("\nLeaks and other explanations of a score:", *lines, sep="\n  ")
    # other folds than these would have the two on both sides
    is_leak = (leaks["severity"] == "error") | (leaks["check"] == "duplicate scans")
    if is_leak.any():
        told = ", ".join(sorted(set(leaks.loc[is_leak, "check"])))
        raise BrainlsapError(f"{study} has leaks: {told}")
    print(f"\nNext: {_command('run', study, options | how)} --out results{why}")


@command(
    f"""
data:{STUDY}{DATA}{CLASSES}
model:{MODEL}
evaluation:
--models NAMES  LSAP-C (default), LSAP-H, LSAP-L, Exact, MLP, GCN ...;
    or all, models, controls{FOLDS}
--repeats N  how often folds are drawn anew (default: 1)
--splits FILE  folds of your own: scan, repeat, fold
--permutations N  of labels, for p-values of regions (default: 200){STEPS}
output:
--out FOLDER  results (required){JOBS}{CONFIG}"""
)
def run(study: str, out: str, splits: str | None = None, **options: Any) -> None:
    """Cross-validate, rank regions, write a report.

    for example:
      brainlsap run study --feature fdg --out results
      brainlsap run study --models all --harmonize site --out results
      brainlsap run study --config study.toml --jobs 2 --out results
    """
    brainlsap.report.check_results_folder(out)
    data, studying, model = _configured(options)
    cohort = _load(study, data, studying)
    if splits is not None:
        if "cv" in studying:
            raise BrainlsapError("--splits goes without --folds")
        studying["cv"] = brainlsap.evaluation.read_splits(splits, cohort.table["scan"])
    how: Options = {"n_jobs": -1} | studying | model
    evaluation = brainlsap.run_study(cohort, out, verbose=True, **how)
    table = brainlsap.score_table(evaluation)
    print(table.drop(columns="remark", errors="ignore").to_string(index=False))
    for name, remark in brainlsap.report.tables.model_remarks(evaluation).items():
        print(f"{name}: {remark}")
    leaks: Any = evaluation.audit
    for leak in leaks.query("severity == 'error'")["finding"].unique():
        print(f"A leak, see the report: {leak}")
    print(f"Report: {Path(out) / 'report' / 'report.html'}")


@command(
    """
RESULTS  folder that run wrote
--out FOLDER  another folder to write (default: the same)
--title TEXT  heading of the page
--export FOLDER  write maps of the scales there: GIFTI or NIfTI, and TSV
--parcellation IMAGE  also write NIfTI maps in its space
--tables FOLDER  write numbered tables there for manuscripts: LaTeX, Markdown
--figures FOLDER  write every figure there for manuscripts: PDF"""
)
def report(results: str, **how: Any) -> None:
    """Make a report anew, or export its maps, tables or figures."""
    evaluation = brainlsap.report.read_results(Path(results))
    image, out = how.pop("parcellation", None), how.pop("out", results)
    export_maps = partial(brainlsap.report.export_maps, parcellation=image)
    tables, figures = brainlsap.report.write_tables, brainlsap.report.write_figures
    place = evaluation.cohort.atlas_folder
    if place and not Path(place).is_dir():
        print(
            f"Note: the atlas {place} is no longer there; its regions are known alone."
        )
    exports = {"export": export_maps, "tables": tables, "figures": figures}
    asked = {option: how.pop(option) for option in exports if option in how}
    for option, folder in asked.items():
        names = ", ".join(path.name for path in exports[option](evaluation, folder))
        what = option.replace("export", "maps").capitalize()
        print(f"{what}: {folder} ({names})")
    if not asked or out != results or how:
        print(f"Report: {brainlsap.write_report(evaluation, Path(out), **how)}")


@command(
    f"""
data:{STUDY}{DATA}{CLASSES}
model:{MODEL}
--kernel NAME  chebyshev (default), exact, hermite, laguerre{STEPS}
output:
--out FILE  the model's file (required){CONFIG}"""
)
def fit(study: str, out: str, **options: Any) -> None:
    """Fit one model on a whole study and store it."""
    data, studying, settings = _configured(options)
    settings |= {"random_state": 0} | _some(studying, "preset random_state")
    model = brainlsap.LSAPClassifier(**settings)
    cohort = _load(study, data, studying)
    steps = _some(studying, "harmonize regress_out")
    brainlsap.fit_model(cohort, out, model, **steps)
    print(f"Model: {out}")


@command(
    f"""
MODEL  file that fit wrote{STUDY}
--out FILE  table to write (.csv, .tsv); it names people (required)
data, by default as in the fit; where files are is said anew:{UNLABELLED}"""
)
def predict(model: str, study: str, out: str, **options: Any) -> None:
    """Predict the classes of new people by a stored model."""
    fitted = brainlsap.model.load_model(model)
    cohort = brainlsap.prediction.read_people(fitted, study, verbose=True, **options)
    print(f"Study: {cohort}")
    table = brainlsap.predict_people(fitted, cohort)
    counts = table["predicted"].value_counts().items()
    print("Predicted: " + ", ".join(f"{name} {count}" for name, count in counts))
    with owner_only():  # it names people
        print(f"Table: {brainlsap.data.write_tsv(table, out)}")


@command(
    """
DATASET  such as cora
--data FOLDER  of its files (default: in ~/.cache)
--download  fetch missing files
--models NAMES  or all (default: lsap-c,gcn)
--seeds N  how many (default: 10)
--split NAME  public (default), per-class or 60-20-20
--variant NAME  how scales are learned (default: chosen)
--epochs N  at most
--device NAME  where to train (default: cpu)
--out FILE  table (.csv, .tsv) of one row a run; finished seeds are kept"""
)
def nodes(dataset: str, models: Sequence[str] = ("lsap-c", "gcn"), **how: Any) -> None:
    """Classify the nodes of a citation or co-purchase graph, many seeds."""
    where = how.pop("data", None), how.pop("download", False)
    graph = brainlsap.load_nodes(dataset, where[0], download=where[1])
    print(
        f"{graph.name}: {graph.n_nodes} nodes, {graph.n_edges} edges, "
        f"{graph.n_classes} classes, {graph.features.shape[1]} features",
        flush=True,
    )
    names = list(brainlsap.nodes.NODE_MODELS) if models == ["all"] else models
    runs = brainlsap.nodes.run_nodes(graph, names, verbose=True, **how)
    print(brainlsap.nodes.summarize_nodes(runs).round(2).to_string(index=False))


def _load(study: str, data: Options, studying: Options) -> Any:
    """Return the cohort that is analysed, and say who is in it."""
    if Path(study).suffix == ".h5":
        cohort = brainlsap.data.Cohort.load(study)
    else:
        cohort = brainlsap.load_cohort(study, verbose=True, **data)
    merged = studying.pop("merged_classes", None)
    cohort = brainlsap.workflow.merge_classes(cohort, merged)
    print(f"Study: {cohort}", brainlsap.check_cohort(cohort).found[1], sep="\n")
    told = r"taken (to be|for)|classes|at baseline"
    for note in (one for one in cohort.notes if re.search(told, one)):
        print(f"Note: {note}", flush=True)
    return cohort


def _command(name: str, study: str, options: Options) -> str:
    """Return a command as it is typed."""
    words, flags = ["brainlsap", name, study], {v: k for k, v in IN_PYTHON.items()}
    for option, value in options.items():
        for one in value if option == "derivatives" else [value]:
            text = ",".join(one) if isinstance(one, list | tuple) else str(one)
            words += [flags.get(option, f"--{option.replace('_', '-')}"), text]
    return shlex.join(words)


def _configured(options: Options) -> list[Options]:
    """Return what load_cohort, run_study and LSAPClassifier are told by file and flags.

    What none of them knows is refused.
    """
    asked, options = dict[str, Any](), dict(options)
    if (config := options.pop("config", None)) is not None:
        with reading(config, "a TOML file"):
            asked = tomllib.loads(Path(config).read_text(encoding="utf-8"))
        for section in {"data", "study", "model"} & set(asked):
            asked |= asked.pop(section)  # sections are for the reader only
    # keys may be spelt as flags are
    spelt = {name: _in_python(f"--{name.replace('_', '-')}") for name in asked}
    if twice := [name for name, one in spelt.items() if name != one in asked]:
        raise BrainlsapError(f"{config}: {twice[0]} is {spelt[twice[0]]}; keep one.")
    asked = {spelt[name]: value for name, value in asked.items()}
    folds = {"cv", "leave_out"}  # one given here rules out the other of the file
    if folds & {*options}:
        asked = {name: value for name, value in asked.items() if name not in folds}
    asked |= options
    others = {"folder", "cohort", "out", "settings"}
    called = (brainlsap.load_cohort, brainlsap.run_study)
    data, studying = (set(inspect.signature(one).parameters) - others for one in called)
    if model := set(asked) - data - studying:  # only this needs PyTorch
        known = set(inspect.signature(brainlsap.LSAPClassifier).parameters)
        known |= set(brainlsap.model.settings.OPTIONS)
        if unknown := sorted(model - known):
            raise BrainlsapError(
                f"no settings: {', '.join(unknown)}. A config file has flags without "
                "--, and parameters of load_cohort, run_study, LSAPClassifier."
            )
    each = (data, studying, model)
    return [{k: v for k, v in asked.items() if k in names} for names in each]


def _some(options: Options, names: str) -> Options:
    return {name: options[name] for name in names.split() if name in options}
