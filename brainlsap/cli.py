"""The command line: parse, call one function of the package, print what it returned.

The options of every command are declared in :mod:`brainlsap.options`.
"""

import argparse
import inspect
import re
import shlex
import signal
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import brainlsap
from brainlsap.exceptions import BrainlsapError, CohortError
from brainlsap.files import check_outputs, owner_only
from brainlsap.findings import CHOICES, group_findings
from brainlsap.options import COMMANDS, Option, option_names, options_of, read_config
from brainlsap.text import listed

Options = dict[str, Any]

EXIT_CODES = """exit codes: 0 done; 1 a fault of brainlsap itself, please report it;
2 bad input, a leak that check finds, or a file that cannot be written;
130 stopped, to be continued"""

Help = partial(argparse.RawDescriptionHelpFormatter, max_help_position=25)

# The function of each command; its options stand in COMMANDS, by its name.
FUNCTIONS: list[Callable[..., None]] = []


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function."""
    FUNCTIONS.append(function)
    return function


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
    for function in FUNCTIONS:
        name = function.__name__.replace("_", "-")
        what, _, examples = (inspect.getdoc(function) or "").partition("\n\n")
        usage = ["brainlsap", name]
        for option in options_of(function.__name__):
            if option.is_positional:
                usage.append(option.flag)
            elif option.is_required:
                usage.append(f"{option.flag} {option.metavar}")
        subparser = commands.add_parser(
            name,
            help=what[0].lower() + what[1:].rstrip("."),
            description=what,
            epilog=examples,
            usage=" ".join([*usage, "[options]"]),
            argument_default=argparse.SUPPRESS,  # the function has the defaults
            formatter_class=Help,
            add_help=False,
            allow_abbrev=False,  # --features is not --features-table
        )
        subparser.set_defaults(call=function)
        subparser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
        for group in COMMANDS[function.__name__]:
            arguments = subparser.add_argument_group(group.title)
            for option in group.options:
                _add_option(arguments, option)
    return parser


def _add_option(group: Any, option: Option) -> None:
    """Add one option to a group of a parser."""
    if option.is_positional:
        group.add_argument(option.name, metavar=option.flag, help=option.help)
        return
    about = option.help + " (required)" * option.is_required
    how: Options = {"dest": option.name, "help": about, "required": option.is_required}
    if option.choices:
        how["choices"] = option.choices
    elif option.metavar:
        how |= {"metavar": option.metavar, "type": partial(_parse, option)}
    else:
        how["action"] = "store_true"
    if option.is_repeatable:
        how["action"] = "append"
    group.add_argument(option.flag, **how)


def _parse(option: Option, text: str) -> Any:
    """Return the value of an option's text, as argparse wants to be told of errors."""
    try:
        return option.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


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
    names = {"folder": "STUDY"}
    names |= {
        option.name: option.flag
        for option in options_of(call.__name__)
        if not option.is_positional
    }

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


@command
def demo(
    out: str = "demo", n_people: int = 120, random_state: int = 0, **how: Any
) -> None:
    """Simulate a study and go the whole way, to a report."""
    study = Path(out) / f"study_{n_people}_people_seed_{random_state}"
    results = Path(out) / "results"
    if not study.is_dir():
        is_used = results.is_dir() and any(results.iterdir())
        if is_used and not how.get("overwrite"):
            raise BrainlsapError(
                f"{results} holds results of another study. Name another out=, or "
                "replace them by overwrite=True."
            )
        simulate(str(study), n_people=n_people, random_state=random_state)
    how |= {"feature": "fdg", "models": ["LSAP-C", "Exact"]}
    how |= {"random_state": random_state, "title": "Demo: a simulated study"}
    run(str(study), str(results), **how)


@command
def simulate(out: str, style: str = "", **how: Any) -> None:
    """Write a simulated study with a planted answer."""
    cohort = brainlsap.make_cohort(**how)
    brainlsap.simulation.write_study_folder(cohort, out, style=style, verbose=True)
    print(f"Simulated: {Path(out)}: {cohort}")


@command
def atlas(folder: str, **of_what: Any) -> None:
    """Make an atlas of your own, for --atlas FOLDER."""
    made = brainlsap.make_atlas(folder, **of_what)
    left, right, middle = (sum(made.regions["hemisphere"] == one) for one in "LRM")
    print(f"Atlas: {Path(folder)} ({len(made)} regions: {made.count_structures()})")
    full = "" if made.full_names == made.names else f"; in reports {made.full_names[0]}"
    print(f"Names: {listed(made.names, 3)}{full}")
    print(f"Sides: {left} left, {right} right, {middle} in the middle")
    print(f"Subcortex: {', '.join(made.regions['name'][~made.cortex]) or 'none'}")
    if unknown := listed(made.regions["name"][made.is_unknown], 8):
        print(f"Not known to be cortex, but counted with it: {unknown}")
        print("A column structure (cortex, subcortex) in the table of labels says it.")
    is_sided = (made.regions["hemisphere"] != "M") | made.regions["x"].notna()
    if sideless := listed(made.regions["name"][made.cortex & ~is_sided], 8):
        print(f"No side in name, column or place, so taken for the middle: {sideless}")
    if made.regions["x"].isna().all():
        print("Coordinates: none, so figures show dots in place of the brain")
    print("".join(f"{note}\n" for note in made.settings.get("notes", ())), end="")
    print(f"Next: {_command('check', 'STUDY', {'atlas': folder})}")


@command
def import_adni(tables: str, images: str, out: str, **how: Any) -> None:
    """Make a study of ADNI's tables and images."""
    how["modalities"] = dict(how.pop("modality", ()))
    found = brainlsap.adni.import_adni(tables, images, out, **how)
    print(*found.notes, f"Study: {found.folder}", sep="\n")
    # connectomes that were downloaded in place of images are ready to be read
    files = found.folder.glob("sub-*/ses-*/dwi/*")
    is_ready = any(map(brainlsap.data.connectomes.is_matrix, files))
    print(f"Next: {_command('check' if is_ready else 'build', out, {})}")


@command
def build(study: str, **options: Any) -> None:
    """Make connectomes and SUVR from a study's images."""
    some = partial(_some, options)
    built = brainlsap.images.build_study(
        study,
        **some("atlas out derivatives subjects_dir n_jobs id_column"),
        patterns=some("tractogram parcellation pet transform streamline_weights"),
        connectome=some("assignment radius weight labels same_space"),
        suvr=some("reference labels same_space accept_low_coverage"),
        verbose=True,
    )
    print(f"Built: {built.folder} ({len(built.made)} made, {len(built.kept)} kept)")
    for line in built.missing:
        print(f"Missing: {line}")
    if built.made or built.kept:
        print(f"Next: {_command('check', study, _options_after_build(built, options))}")
    if built.faults:
        faults = group_findings(built.faults)
        raise CohortError(f"{len(built.faults)} scans have faults", faults)


def _options_after_build(built: Any, options: Options) -> Options:
    """Return the options of `check` that read what was built."""
    after = _some(options, "atlas subjects_dir")
    folders = [*options.get("derivatives", ())]
    if "out" in options:
        folders.append(options["out"])
    if folders:
        after["derivatives"] = folders
    features = Counter(
        tracer.feature
        for path in (*built.made, *built.kept)
        for tracer in brainlsap.data.TRACERS
        if any(f"_trc-{entity}_" in path.name for entity in tracer.entities)
    )
    if features:
        after["feature"] = features.most_common(1)[0][0]
    return after


@command
def check(study: str, **options: Any) -> None:
    """Say what a study holds, what is mapped or dropped; its faults and leaks."""
    print(f"Looking at {study} ...", flush=True)  # imports take seconds
    data, studying, _ = _configured(options)
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
    leakage = brainlsap.evaluation.leakage
    leaks = leakage.audit(cohort, folds)
    is_copy = leaks["check"] == leakage.Check.DUPLICATE_SCANS
    has_names = is_copy & (leaks["scans"] != "")
    who = (": " + leaks["scans"]).where(has_names, "") + ". "
    told = leaks["severity"] + ": " + leaks["finding"] + who + leaks["what_to_do"]
    fill = partial(textwrap.fill, width=96, subsequent_indent="  ")
    lines = [fill(_in_flags(one, run)) for one in told] or ["none found"]
    print("\nLeaks and other explanations of a score:", *lines, sep="\n  ")
    # other folds than these would have the two on both sides
    is_leak = (leaks["severity"] == "error") | is_copy
    if is_leak.any():
        titles = leaks.loc[is_leak, "check"].map(leakage.check_title)
        raise BrainlsapError(f"{study} has leaks: {', '.join(sorted(set(titles)))}")
    print(f"\nNext: {_command('run', study, options | how)} --out results{why}")


@command
def run(study: str, out: str, **options: Any) -> None:
    """Cross-validate, rank regions, write a report.

    for example:
      brainlsap run study --feature fdg --out results
      brainlsap run study --models all --harmonize site --out results
      brainlsap run study --config study.toml --jobs 2 --out results
    """
    brainlsap.report.check_results_folder(out)
    data, studying, model = _configured(options)
    splits = studying.pop("splits", None)
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


@command
def report(results: str, **how: Any) -> None:
    """Make a report anew, or export its maps, tables or figures."""
    evaluation = brainlsap.report.read_results(Path(results))
    image, out = how.pop("parcellation", None), how.pop("out", results)
    overwrite = how.pop("overwrite", False)
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
        files: Any = exports[option](evaluation, folder, overwrite=overwrite)
        names = ", ".join(path.name for path in files)
        what = option.replace("export", "maps").capitalize()
        print(f"{what}: {folder} ({names})")
        for note in getattr(files, "notes", ()):
            print(_in_flags(f"Note: {note}", report))
    if not asked or out != results or how:
        how["overwrite"] = overwrite
        print(f"Report: {brainlsap.write_report(evaluation, Path(out), **how)}")


@command
def fit(study: str, out: str, overwrite: bool = False, **options: Any) -> None:
    """Fit one model on a whole study and store it."""
    check_outputs([out], inputs=[study, options.get("config")], overwrite=overwrite)
    data, studying, settings = _configured(options)
    settings |= {"random_state": 0} | _some(studying, "preset random_state")
    model = brainlsap.LSAPClassifier().set_params(**settings)
    cohort = _load(study, data, studying)
    steps = _some(studying, "harmonize regress_out")
    brainlsap.fit_model(cohort, out, model, overwrite=overwrite, **steps)
    print(f"Model: {out}")


@command
def predict(
    model: str,
    study: str,
    out: str,
    overwrite: bool = False,
    class_prior: Any = None,
    **options: Any,
) -> None:
    """Predict the classes of new people by a stored model."""
    others = [*options.get("derivatives", ()), *options.values()]
    check_outputs([out], inputs=[model, study, *others], overwrite=overwrite)
    fitted = brainlsap.model.load_model(model)
    cohort = brainlsap.prediction.read_people(fitted, study, verbose=True, **options)
    print(f"Study: {cohort}")
    table = brainlsap.predict_people(fitted, cohort, class_prior=class_prior)
    counts = table["predicted"].value_counts().items()
    print("Predicted: " + ", ".join(f"{name} {count}" for name, count in counts))
    prior = table.attrs["class_prior"].items()
    shares = ", ".join(f"{name} {share:.1%}" for name, share in prior)
    print(
        f"Probabilities (p_) assume these class shares: {shares}. The predicted class "
        "weighs classes as the fit did, so it can differ from the largest p_."
    )
    with owner_only():  # it names people
        print(f"Table: {brainlsap.data.write_tsv(table, out)}")


@command
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
    cohort = brainlsap.data.read_study(study, verbose=True, **data)
    merged = studying.pop("merged_classes", None)
    cohort = brainlsap.workflow.merge_classes(cohort, merged)
    print(f"Study: {cohort}", brainlsap.check_cohort(cohort).found[1], sep="\n")
    for sentence in brainlsap.data.quality.describe_values(cohort):
        print(f"Values: {sentence}", flush=True)
    for finding in brainlsap.data.quality.find_odd_units(cohort):
        print(f"Warning: {finding}", flush=True)
    for finding in cohort.findings:
        if finding.kind in CHOICES:
            print(f"Note: {finding}", flush=True)
    return cohort


def _command(name: str, study: str, options: Options) -> str:
    """Return a command as it is typed."""
    words = ["brainlsap", name, study]
    flags = {option.name: option.flag for option in options_of(name)}
    for option, value in options.items():
        for one in value if option == "derivatives" else [value]:
            text = ",".join(one) if isinstance(one, list | tuple) else str(one)
            words += [flags.get(option, f"--{option.replace('_', '-')}"), text]
    return shlex.join(words)


def _configured(options: Options) -> list[Options]:
    """Return what load_cohort, run_study and LSAPClassifier get of file and flags."""
    flagged = dict(options)
    config = flagged.pop("config", None)
    settings = {} if config is None else read_config(config)
    if {"cv", "leave_out", "splits"} & {*flagged}:  # they rule out those of the file
        for name in ("cv", "leave_out", "splits"):
            settings.pop(name, None)
    settings |= flagged
    return [
        {name: settings[name] for name in option_names(takes) if name in settings}
        for takes in ("reading", "study", "model")
    ]


def _some(options: Options, names: str) -> Options:
    return {name: options[name] for name in names.split() if name in options}
