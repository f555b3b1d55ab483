"""Parse a command, call one function of the package and print what it returned.

:mod:`brainlsap.options` declares the options of every command.
"""

import argparse
import atexit
import gc
import inspect
import os
import shlex
import signal
import sys
import textwrap
import warnings
from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import brainlsap
from brainlsap.exceptions import BrainlsapError, CohortError, ParameterError
from brainlsap.files import check_new_folder, check_outputs, restrict_new_files_to_owner
from brainlsap.findings import (
    CHANGED_PERSON,
    CHOICES,
    FAULT,
    NO_LABEL,
    WRONG_DATE,
    Finding,
    list_grouped_finding_texts,
    make_fault_findings,
    make_findings,
)
from brainlsap.options import (
    COMMANDS,
    CONFIGURABLE,
    Option,
    list_command_options,
    list_settings_option_names,
    read_value_by_option,
)
from brainlsap.text import (
    OptionFormat,
    argument_text,
    count_text,
    join_with_and,
    join_with_commas,
    option_text,
    use_option_format,
)

if TYPE_CHECKING:  # Importing these takes seconds.
    import pandas as pd

    from brainlsap.class_prior import ClassPrior
    from brainlsap.data import Cohort
    from brainlsap.data.check import CohortCheck
    from brainlsap.data.reading_options import ReadingOptions
    from brainlsap.evaluation import Evaluation
    from brainlsap.images.build import BuiltStudy

OptionValues = dict[str, Any]
# Most unusual scans that `fit` lists.
_MAX_UNUSUAL_SCANS = 5

EXIT_CODES = """exit codes:
  0    The command finished.
  1    An internal error occurred in brainlsap. Please report it.
  2    The input is invalid, `brainlsap check` found data leakage,
       or brainlsap cannot write the output.
  130  The command was interrupted."""

HelpFormatter = partial(argparse.RawDescriptionHelpFormatter, max_help_position=25)

# The functions of all commands. COMMANDS lists the options of each by its name.
COMMAND_FUNCTIONS: list[Callable[..., None]] = []


def register_command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a function as a command."""
    COMMAND_FUNCTIONS.append(function)
    return function


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; it stores the function to run as `call`."""
    parser = argparse.ArgumentParser(
        prog="brainlsap",
        description=(
            "Predict disease stages from connectomes and regional measures. LSAP\n"
            "learns how far each region's values diffuse along the connectome. The\n"
            "commands cross-validate models, compare brain regions, draw figures and\n"
            "write a report."
        ),
        epilog=EXIT_CODES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=brainlsap.__version__)
    command_parsers = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND"
    )
    for function in COMMAND_FUNCTIONS:
        command_name = function.__name__.replace("_", "-")
        summary_line, _, examples_text = (inspect.getdoc(function) or "").partition(
            "\n\n"
        )
        usage_words = ["brainlsap", command_name]
        for option_record in list_command_options(function.__name__):
            if option_record.is_positional:
                usage_words.append(option_record.flag)
            elif option_record.is_required:
                usage_words.append(f"{option_record.flag} {option_record.metavar}")
        subparser = command_parsers.add_parser(
            command_name,
            help=summary_line[0].lower() + summary_line[1:].rstrip("."),
            description=summary_line,
            epilog=examples_text,
            usage=" ".join([*usage_words, "[options]"]),
            argument_default=argparse.SUPPRESS,  # The functions hold the defaults.
            formatter_class=HelpFormatter,
            add_help=False,
            allow_abbrev=False,  # Do not read --features as --features-table.
        )
        subparser.set_defaults(call=function)
        subparser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
        for option_group in COMMANDS[function.__name__]:
            argument_group = subparser.add_argument_group(option_group.title)
            for option_record in option_group.options:
                _add_option(argument_group, option_record)
    return parser


def _add_option(argument_group: argparse._ArgumentGroup, option_record: Option) -> None:
    """Add one option to a group of a parser."""
    help_text = option_record.help.replace("%", "%%")  # argparse formats it with %.
    if option_record.is_positional:
        argument_group.add_argument(
            option_record.name, metavar=option_record.flag, help=help_text
        )
        return
    argument_settings: dict[str, Any] = {
        "dest": option_record.name,
        "help": help_text,
        "required": option_record.is_required,
    }
    if option_record.is_required:
        argument_settings["help"] += " (required)"
    if option_record.choices:
        argument_settings["choices"] = option_record.choices
    elif option_record.metavar:
        argument_settings["metavar"] = option_record.metavar
        argument_settings["type"] = partial(_parse_option_value, option_record)
    else:
        argument_settings["action"] = "store_true"
    if option_record.is_repeatable:
        argument_settings["action"] = "append"
    argument_group.add_argument(option_record.flag, **argument_settings)


def _unknown_arguments_message(
    command_name: str, unknown_arguments: Sequence[str]
) -> str:
    """Return a message on unknown arguments, with the most similar flags."""
    message = f"unrecognized arguments: {' '.join(unknown_arguments)}"
    command_flags = [
        option_record.flag
        for option_record in list_command_options(command_name)
        if not option_record.is_positional
    ]
    similar_flags = [
        flag
        for argument in unknown_arguments
        if argument.startswith("--")
        for flag in get_close_matches(argument.partition("=")[0], command_flags, 1)
    ]
    if similar_flags:
        message += f". Similar options: {', '.join(similar_flags)}"
    return f"{message}. brainlsap {command_name.replace('_', '-')} --help lists all"


def _parse_option_value(option_record: Option, value_text: str) -> Any:
    """Convert text to the option's value; raise the error that argparse expects."""
    try:
        return option_record.parse(value_text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


class _StreamIgnoringClosedReader:
    """A stream that forgets what is written after its reader has closed it.

    A command of which `head` reads ten lines still writes its files.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write text, or nothing if nobody reads it."""
        with self._discard_if_closed():
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, or discard what it holds if nobody reads it."""
        with self._discard_if_closed():
            self.stream.flush()

    @contextmanager
    def _discard_if_closed(self) -> Iterator[None]:
        """Write to nowhere from now on if the reader has closed the stream."""
        try:
            yield
        except BrokenPipeError:
            # The buffer of the stream is flushed again when Python ends.
            null_device = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null_device, self.stream.fileno())
            os.close(null_device)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit code: 0 finished, 2 invalid input or data leakage found by `check`, 130
        interrupted.
    """
    output_stream = cast("TextIO", _StreamIgnoringClosedReader(sys.stdout))
    error_stream = cast("TextIO", _StreamIgnoringClosedReader(sys.stderr))
    with redirect_stdout(output_stream), redirect_stderr(error_stream):
        try:
            return _run_command(arguments)
        finally:
            output_stream.flush()
            error_stream.flush()


def _run_command(arguments: Sequence[str] | None) -> int:
    """Run one command; return the exit code."""
    parser = build_parser()
    parsed_arguments, unknown_arguments = parser.parse_known_args(arguments)
    value_by_option = vars(parsed_arguments)
    command_function: Callable[..., None] = value_by_option.pop("call")
    if unknown_arguments:
        parser.error(
            _unknown_arguments_message(command_function.__name__, unknown_arguments)
        )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Python looks for cycles at its end. Leave out all objects: this saves a second.
    atexit.register(gc.freeze)
    warnings.formatwarning = lambda text, *_, **__: f"Warning: {text}\n"
    try:
        input_path = value_by_option.get("study", value_by_option.get("results", "."))
        if not Path(input_path).exists():  # Fail before the slow imports.
            raise BrainlsapError(
                "there is no such file or folder. Check the path", path=input_path
            )
        with use_option_format(_make_option_format(command_function.__name__)):
            command_function(**value_by_option)
    except (BrainlsapError, OSError) as error:
        print(f"brainlsap: error: {error}", file=sys.stderr)
        if isinstance(error, CohortError) and command_function in (fit, run):
            print(
                "Run `brainlsap check` on the study. The check suggests options with "
                "which the study can be read.",
                file=sys.stderr,
            )
        if isinstance(error, CohortError) and command_function in (evaluate, predict):
            _print_suggestions_for_model(
                command_function.__name__, value_by_option, error
            )
        return 2
    except KeyboardInterrupt as interruption:
        interruption_notes = getattr(interruption, "__notes__", [])
        if command_function is run and not interruption_notes:
            interruption_notes = ["No fits are stored."]
        message = " ".join(
            [
                "brainlsap: the command was interrupted and left no incomplete files.",
                *interruption_notes,
                "Run the same command again to continue.",
            ]
        )
        print(message, file=sys.stderr)
        return 130
    return 0


def _make_option_format(command_name: str) -> OptionFormat:
    """Return the form of options in messages of a running command: its flags.

    An option without a flag, such as `symmetrize`, becomes a line of a settings file
    if the command reads one.
    """
    flag_by_option = {"folder": "STUDY"}
    flag_by_option |= {
        option_record.name: option_record.flag
        for option_record in list_command_options(command_name)
    }
    configurable_names = (
        {option_record.name for option_record in CONFIGURABLE}
        if "config" in flag_by_option
        else ()
    )

    def format_option(name: str, value: object) -> str:
        if name in flag_by_option:
            has_value = value is not None and value is not True
            if not has_value:
                return flag_by_option[name]
            return f"{flag_by_option[name]} {shlex.quote(str(value))}"
        if name not in configurable_names:
            return argument_text(name, value)
        setting_text = name
        if value is True:
            setting_text = f"{name} = true"
        elif value is not None:
            setting_text = f'{name} = "{value}"'
        return f"{setting_text} (in a --config file)"

    return format_option


@register_command
def demo(
    out: str = "demo", n_people: int = 120, random_state: int = 0, **options: Any
) -> None:
    """Run the complete workflow on simulated data."""
    study_folder = Path(out) / f"study_{n_people}_people_seed_{random_state}"
    results_folder = Path(out) / "results"
    brainlsap.report.check_results_folder(results_folder)
    if not study_folder.is_dir():
        has_results = results_folder.is_dir() and any(results_folder.iterdir())
        if has_results and not options.get("overwrite"):
            raise BrainlsapError(
                f"{results_folder} contains the results of another study. To replace "
                f"these results, add {option_text('overwrite', True)}. To keep these "
                f"results, choose another folder with {option_text('out')}."
            )
        simulate(str(study_folder), n_people=n_people, random_state=random_state)
    run(
        str(study_folder),
        str(results_folder),
        feature="fdg",
        models=["LSAP-C", "Exact"],
        random_state=random_state,
        title="Demo: a simulated study",
        **options,
    )


@register_command
def simulate(out: str, style: str = "", **options: Any) -> None:
    """Write a simulated study in which the affected regions are known."""
    check_new_folder(out)
    cohort = brainlsap.make_cohort(**options)
    brainlsap.simulation.write_study_folder(cohort, out, style=style, verbose=True)
    print(f"Simulated study: {Path(out)}: {cohort}")


@register_command
def atlas(folder: str, **source_by_option: Any) -> None:
    """Create an atlas from a parcellation of your own, for use with --atlas FOLDER."""
    user_atlas = brainlsap.make_atlas(folder, **source_by_option)
    region_table = user_atlas.regions
    structure_counts_text = user_atlas.describe_structure_counts()
    print(f"Atlas: {Path(folder)} ({len(user_atlas)} regions: {structure_counts_text})")
    names_line = f"Names: {join_with_commas(user_atlas.names, 3)}"
    if user_atlas.full_names != user_atlas.names:
        names_line += (
            f". Reports use full names, for example {user_atlas.full_names[0]}"
        )
    print(names_line)
    n_regions_by_hemisphere = Counter(region_table["hemisphere"])
    print(
        f"Hemispheres: {n_regions_by_hemisphere['L']} left, "
        f"{n_regions_by_hemisphere['R']} right, {n_regions_by_hemisphere['M']} midline"
    )
    print(f"Subcortex: {', '.join(region_table['name'][~user_atlas.cortex]) or 'none'}")
    if unknown_names_text := join_with_commas(
        region_table["name"][user_atlas.unknown_structure_mask], 8
    ):
        print(
            f"Treated as cortex, because the structure is unknown: {unknown_names_text}"
        )
        print(
            'To set the structure, add a column "structure" with the values cortex '
            "and subcortex to the label table."
        )
    sided_region_mask = (region_table["hemisphere"] != "M") | region_table["x"].notna()
    if unsided_names_text := join_with_commas(
        region_table["name"][user_atlas.cortex & ~sided_region_mask], 8
    ):
        print(
            "Treated as midline, because the hemisphere is unknown: "
            f"{unsided_names_text}"
        )
    # The report summarizes regions by network.
    if "network" in region_table:
        network_names = (
            region_table["network"].replace(["", "n/a"], None).dropna().unique()
        )
        print(f"Networks: {join_with_commas(network_names, 8) or 'none'}")
    known_columns = (*brainlsap.atlas.atlas.REGION_COLUMNS, "network")
    unused_columns = [
        column_name for column_name in region_table if column_name not in known_columns
    ]
    if unused_columns:
        print(f"Columns not used: {', '.join(unused_columns)}")
    if region_table["x"].isna().all():
        print(
            "Coordinates: none. Figures show one dot per region instead of the brain."
        )
        print(_brain_figures_advice(user_atlas, source_by_option))
    for atlas_note in user_atlas.settings.get("notes", ()):
        print(atlas_note)
    print(f"Next: {_write_command_line('check', 'STUDY', {'atlas': folder})}")


def _brain_figures_advice(
    user_atlas: brainlsap.Atlas, source_by_option: Mapping[str, Any]
) -> str:
    """Return how figures can show the brain for an atlas without coordinates."""
    advice_text = (
        "To show the brain, give --labels together with an image of the regions "
        "(--image) or with FreeSurfer's annotation of their surfaces (--annot "
        "lh.NAME.annot)."
    )
    bundled_name_and_order = brainlsap.data.row_order.find_bundled_atlas_and_order(
        user_atlas
    )
    if bundled_name_and_order is None:
        return advice_text
    bundled_name, row_order_name = bundled_name_and_order
    check_options = {"atlas": bundled_name, "labels": source_by_option.get("labels")}
    if row_order_name:
        check_options = {"atlas": bundled_name, "row_order": row_order_name}
    n_regions = len(brainlsap.load_atlas(bundled_name))
    return (
        f"{advice_text}\nThe names include all {n_regions} regions of the atlas "
        f"{bundled_name}. Figures of this atlas show the brain. To use it instead of "
        f"your folder, run: {_write_command_line('check', 'STUDY', check_options)}"
    )


@register_command
def import_adni(
    tables: str,
    images: str,
    out: str,
    modality: Sequence[tuple[str, str]] = (),
    **options: Any,
) -> None:
    """Create a study folder from tables and images of ADNI."""
    adni_import = brainlsap.adni.import_adni(
        tables, images, out, modalities=dict(modality), **options
    )
    print(*adni_import.notes, f"Study: {adni_import.folder}", sep="\n")
    # Downloaded connectomes can be read at once; images must be processed first.
    dwi_paths = adni_import.folder.glob("sub-*/ses-*/dwi/*")
    has_connectomes = any(map(brainlsap.data.connectomes.is_matrix_file, dwi_paths))
    if has_connectomes:
        print(f"Next: {_write_command_line('check', out, {})}")
    else:
        print(
            "Next: process the images with your pipelines, then "
            f"{_write_command_line('check', out, {})}"
        )
        print(
            "If each scan has a parcellation and a tractogram or PET image, run: "
            f"{_write_command_line('build', out, {})}"
        )


@register_command
def build(study: str, **options: Any) -> None:
    """Compute connectomes and regional PET values (SUVR) from a study's images."""
    option_names_by_group = defaultdict[str, list[str]](list)
    for option_record in list_command_options("build"):
        option_names_by_group[option_record.group].append(option_record.name)
    connectome_options = _select_options(
        options, ["labels", *option_names_by_group["connectomes"]]
    )
    suvr_options = _select_options(options, ["labels", *option_names_by_group["SUVR"]])
    if "same_space" in suvr_options:
        connectome_options["same_space"] = suvr_options["same_space"]
    pattern_options = _select_options(options, option_names_by_group["patterns"])
    special_options = pattern_options | connectome_options | suvr_options
    built_study = brainlsap.images.build_study(
        study,
        **_select_options(options, options.keys() - special_options.keys()),
        patterns=pattern_options,
        connectome=connectome_options,
        suvr=suvr_options,
        verbose=True,
    )
    print(
        f"Built: {built_study.folder} ({len(built_study.new_files)} new files, "
        f"{len(built_study.existing_files)} existing)"
    )
    for missing_line in built_study.missing:
        print(f"Missing: {missing_line}")
    if built_study.new_files or built_study.existing_files:
        check_options = _make_check_options(built_study, options)
        print(f"Next: {_write_command_line('check', study, check_options)}")
    if built_study.faults:
        fault_texts = list_grouped_finding_texts(built_study.faults, study)
        n_scans = len({build_finding.scan for build_finding in built_study.faults})
        raise CohortError(f"{count_text(n_scans, 'scan', 'have')} faults", fault_texts)


def _make_check_options(
    built_study: "BuiltStudy", value_by_option: OptionValues
) -> OptionValues:
    """Return the options of `check` that read the built files."""
    check_options = _select_options(value_by_option, ("atlas", "subjects_dir"))
    derivative_folders = [*value_by_option.get("derivatives", ())]
    if "out" in value_by_option:
        derivative_folders.append(value_by_option["out"])
    if derivative_folders:
        check_options["derivatives"] = derivative_folders
    n_files_by_feature = Counter[str]()
    for built_path in (*built_study.new_files, *built_study.existing_files):
        for tracer in brainlsap.data.TRACERS:
            if any(
                f"_trc-{tracer_entity}_" in built_path.name
                for tracer_entity in tracer.entities
            ):
                n_files_by_feature[tracer.feature] += 1
    if n_files_by_feature:
        check_options["feature"] = n_files_by_feature.most_common(1)[0][0]
    return check_options


@register_command
def check(study: str, **options: Any) -> None:
    """Check a study for errors and data leakage, and list its data and regions."""
    print(f"Checking {study} ...", flush=True)  # The imports take seconds.
    value_by_reading_option, value_by_study_option, _ = _split_options_by_recipient(
        options
    )
    cohort_check = brainlsap.check_cohort(
        study, **value_by_reading_option, verbose=True
    )
    cohort = cohort_check.cohort
    fold_options = _select_options(
        value_by_study_option, _list_command_option_names("check")
    )
    class_merging_spec = fold_options.pop("merge_classes", None)
    if cohort is not None and class_merging_spec is not None:
        cohort = brainlsap.workflow.merge_classes(cohort, class_merging_spec)
        cohort_check = replace(
            brainlsap.check_cohort(cohort), folder=cohort_check.folder
        )
    elif class_merging_spec is not None:
        cohort_check = brainlsap.workflow.merge_classes_in_check(
            cohort_check, class_merging_spec
        )
    print(cohort_check.text(), end="")
    if not Path(study).is_file():
        _print_suggested_commands(study, cohort_check, options, value_by_reading_option)
    if cohort is None:
        _print_unusual_scans_without_labels(
            study, cohort_check, value_by_reading_option
        )
        raise BrainlsapError(
            f"{study} cannot be read because of the errors listed above"
        )
    n_participants_by_class = cohort.table.groupby("label")["participant"].nunique()
    _reject_single_person_classes(study, cohort)
    reason_text = ""
    if not fold_options and n_participants_by_class.min() < 5:
        fold_options["cv"] = max(2, int(n_participants_by_class.min()))
        reason_text = (
            "\n  (5 folds are too many, because class "
            f"{n_participants_by_class.idxmin()} has only {fold_options['cv']} "
            "participants.)"
        )
    splits = brainlsap.workflow.resolve_folds_or_number(cohort, **fold_options)
    if isinstance(splits, int):
        splits = brainlsap.evaluation.make_splits(cohort.y, cohort.groups, splits)
    _print_unusual_scans(cohort)
    unlabelled_cohort = _add_unlabelled_scans(study, cohort, value_by_reading_option)
    _print_other_unusual_scans(unlabelled_cohort, {*cohort.table["scan"]})
    leakage_module = brainlsap.evaluation.leakage
    audit_table = leakage_module.mark_copies_in_audit_table(
        leakage_module.audit(cohort, splits)
    )
    heading_text = "\nData leakage, and variables that could explain a score:"
    print(heading_text, *(_list_audit_lines(audit_table) or ["none found"]), sep="\n  ")
    leak_row_mask = audit_table["severity"] == "error"
    if leak_row_mask.any():
        leak_titles = audit_table.loc[leak_row_mask, "check"].map(
            leakage_module.check_title
        )
        leak_titles_text = ", ".join(sorted(set(leak_titles)))
        raise BrainlsapError(
            f"{study} has data leakage: {leak_titles_text}. The findings above explain "
            "how to correct the study"
        )
    next_command = _write_command_line("run", study, options | fold_options)
    print(f"\nNext: {next_command} --out results{reason_text}")


def _print_unusual_scans(cohort: "Cohort") -> None:
    """Print the scans of a cohort that are unusual, and what could not be judged."""
    quality_table = brainlsap.data.quality_table(cohort)
    text_lines = _list_swapped_scan_lines(quality_table)
    text_lines += _list_unusual_scan_lines(quality_table)
    # Two people under one ID are first seen as contradictions of one person.
    text_lines += list_grouped_finding_texts(
        finding
        for finding in make_findings(cohort.findings)
        if finding.place and finding.kind in (CHANGED_PERSON, WRONG_DATE)
    )
    text_lines = text_lines or ["none"]
    text_lines += [f"({quality_note})" for quality_note in quality_table.attrs["notes"]]
    print("\nUnusual scans:", *text_lines, sep="\n  ")


def _print_other_unusual_scans(
    unlabelled_cohort: "Cohort", labelled_scan_names: set[str]
) -> None:
    """Print the unusual scans of a cohort that are not among the labelled scans.

    The labelled scans are compared with each other alone, as in a report.
    """
    if labelled_scan_names.issuperset(unlabelled_cohort.table["scan"]):
        return
    quality_table = brainlsap.data.quality_table(unlabelled_cohort)
    quality_table = quality_table[~quality_table.index.isin(labelled_scan_names)]
    text_lines = _list_swapped_scan_lines(quality_table)
    text_lines += _list_unusual_scan_lines(quality_table) or ["none"]
    heading_text = "\nUnusual scans without a label, compared with all scans:"
    print(heading_text, *text_lines, sep="\n  ")


def _add_unlabelled_scans(
    study_path: str, cohort: "Cohort", value_by_option: OptionValues
) -> "Cohort":
    """Return the cohort with the scans that were left out as faulty without a label.

    Such people can be predicted. The study is read again only if there are any.
    """
    left_out_table = cohort.left_out
    unlabelled_mask = left_out_table["fate"] == NO_LABEL
    if (
        not value_by_option.get("skip_faulty")
        or not unlabelled_mask.any()
        or Path(study_path).is_file()
    ):
        return cohort
    listed_names = {*cohort.table["scan"], *left_out_table["scan"][unlabelled_mask]}
    try:
        unlabelled_cohort = brainlsap.data.load.read_folder(
            study_path, _make_unlabelled_options(study_path, value_by_option)
        )
    except BrainlsapError:
        return cohort
    listed_mask = unlabelled_cohort.table["scan"].isin(listed_names)
    return unlabelled_cohort.select(listed_mask.to_numpy())


def _make_unlabelled_options(
    study_path: str, value_by_option: OptionValues
) -> "ReadingOptions":
    """Return the options that read a study without labels."""
    return brainlsap.data.reading_options.DEFAULT_OPTIONS.change(
        **value_by_option | {"folder": study_path, "label": None, "classes": None}
    )


def _print_unusual_scans_without_labels(
    study_path: str, cohort_check: "CohortCheck", value_by_option: OptionValues
) -> None:
    """Print unusual scans of a study that cannot be loaded for want of labels.

    Such people can be predicted. Files are not read again because of other faults.
    """
    has_only_label_faults = all(
        finding.kind == NO_LABEL
        for finding in cohort_check.findings
        if finding.severity == FAULT
    )
    if cohort_check.count_texts and not has_only_label_faults:
        return
    reading_options = _make_unlabelled_options(study_path, value_by_option)
    with suppress(BrainlsapError):
        _print_unusual_scans(
            brainlsap.data.load.read_folder(study_path, reading_options)
        )


def _reject_single_person_classes(study_path: str, cohort: "Cohort") -> None:
    """Raise if a class has one participant, who cannot be in training and test."""
    people_table = cohort.table.drop_duplicates(["label", "participant"])
    single_person_row_mask = ~people_table["label"].duplicated(keep=False)
    if not single_person_row_mask.any():
        return
    class_texts = [
        f"{class_name} ({participant_id})"
        for class_name, participant_id in zip(
            people_table["label"][single_person_row_mask],
            people_table["participant"][single_person_row_mask],
            strict=True,
        )
    ]
    raise BrainlsapError(
        f"{study_path} has classes with only one participant: "
        f"{', '.join(class_texts)}. Cross-validation needs at least two participants "
        "of every class. Correct the labels, or merge classes with "
        f"{option_text('merge_classes')}. To leave classes out, name all other classes "
        f"with {option_text('classes')}."
    )


def _print_suggested_commands(
    study_path: str,
    cohort_check: "CohortCheck",
    value_by_option: OptionValues,
    value_by_reading_option: OptionValues,
) -> None:
    """Print the commands that read more of a study than these options do."""
    suggested_options = brainlsap.data.suggest_options(
        cohort_check, value_by_reading_option
    )
    if not suggested_options:
        return
    command_lines = [
        _write_command_line("check", study_path, value_by_option | extra_options)
        for extra_options in suggested_options
    ]
    fault_texts = list[str]()
    if not cohort_check.is_sound:
        changed_options = value_by_reading_option | suggested_options[0]
        changed_check = brainlsap.check_cohort(study_path, **changed_options)
        class_merging_spec = value_by_option.get("merge_classes")
        if class_merging_spec is not None:
            changed_check = brainlsap.workflow.merge_classes_in_check(
                changed_check, class_merging_spec
            )
        fault_texts = _describe_remaining_findings(
            changed_check.findings,
            cohort_check.findings,
            study_path,
        )
    print(
        _suggestions_text(
            command_lines, fault_texts, suggested_options[0].get("row_order")
        )
    )


def _describe_remaining_findings(
    remaining_findings: Iterable[Finding],
    printed_findings: Collection[Finding],
    study_path: str,
) -> list[str]:
    """Return the faults that remain; those that were printed before are cut short."""
    new_findings = list[Finding]()
    for finding in remaining_findings:
        if finding.severity != FAULT:
            continue
        shown_finding = finding
        if finding in printed_findings:
            message_start = textwrap.shorten(finding.message, 72, placeholder=" ...")
            message = f"{message_start} (see above)"
            shown_finding = replace(
                finding, message=message, got="", advice="", people=()
            )
        new_findings.append(shown_finding)
    return list_grouped_finding_texts(new_findings, study_path)


def _print_suggestions_for_model(
    command_name: str, value_by_option: OptionValues, cohort_error: CohortError
) -> None:
    """Print the commands that read more of the people that a command refused.

    `value_by_option` are those of `evaluate` or `predict`.
    """
    from brainlsap.data.load import RefusedStudyError  # after the slow imports

    if not isinstance(cohort_error, RefusedStudyError):
        return
    with use_option_format(_make_option_format(command_name)):
        value_by_reading_option = _select_options(
            value_by_option, list_settings_option_names("reading")
        )
        suggested_options = brainlsap.prediction.list_option_changes(
            value_by_option["model"],
            value_by_option["study"],
            cohort_error,
            **value_by_reading_option,
        )
        if not suggested_options:
            return
        command_lines = [
            _write_command_line(
                command_name, value_by_option["study"], value_by_option | extra_options
            )
            for extra_options in suggested_options
        ]
        changed_options = value_by_reading_option | suggested_options[0]
        proposed_merging = changed_options.pop("merge_classes", None)
        label_name = changed_options.pop("label", None)
        remaining_findings = list[Finding]()
        paths = value_by_option["model"], value_by_option["study"]
        try:
            if command_name == "evaluate" and proposed_merging is None:
                brainlsap.read_labelled_people(
                    *paths,
                    label=label_name,
                    merge_classes=value_by_option.get("merge_classes"),
                    **changed_options,
                )
            else:
                brainlsap.prediction.read_people(
                    *paths, label_name, verbose=False, **changed_options
                )
        except ParameterError as remaining_error:  # of the label alone
            remaining_findings.append(Finding(str(remaining_error), FAULT))
        except RefusedStudyError as remaining_error:
            remaining_findings += remaining_error.findings
        except CohortError as remaining_error:
            remaining_findings += make_fault_findings(remaining_error.faults)
        unresolved_labels = [
            label
            for finding in cohort_error.findings
            for label in finding.values.get("unresolved_labels", ())
        ]
        if unresolved_labels:
            message = (
                f"{count_text(len(unresolved_labels), 'label', 'need')} a class of the "
                f"model: {', '.join(unresolved_labels)}. In "
                f"{option_text('merge_classes')}, replace "
                f"{brainlsap.external.UNKNOWN_CLASS} by a class of the model. If you "
                "remove the entry of a label, scans with this label are left out"
            )
            remaining_findings.append(Finding(message, FAULT))
        fault_texts = _describe_remaining_findings(
            remaining_findings, cohort_error.findings, value_by_option["study"]
        )
        suggestion_text = _suggestions_text(
            command_lines, fault_texts, suggested_options[0].get("row_order")
        )
    print(suggestion_text, file=sys.stderr)


def _suggestions_text(
    command_lines: Sequence[str],
    fault_texts: Sequence[str],
    row_order_name: str | None = None,
) -> str:
    """Return the commands that read more data, and the faults that the first leaves.

    `row_order_name` is the order of rows that the commands take from the weights.
    """
    command_phrase = (
        "one of these commands" if len(command_lines) > 1 else "this command"
    )
    text_lines = [f"\nMore data can be read with {command_phrase}:", *command_lines]
    if fault_texts:
        first_phrase = "the first" if len(command_lines) > 1 else "this"
        text_lines[-1] += (
            f"\nWith {first_phrase} command, {count_text(len(fault_texts), 'fault')} "
            f"{'remains' if len(fault_texts) == 1 else 'remain'}:"
        )
        text_lines += fault_texts
    if row_order_name is not None:
        text_lines[-1] += (
            "\nThe weights of the connectomes fit "
            f"{option_text('row_order', row_order_name)} clearly better than the other "
            "known orders of rows. Check that this tool wrote the files."
        )
    return "\n  ".join(text_lines)


def _list_unusual_scan_lines(quality_table: "pd.DataFrame") -> list[str]:
    """Return a line for each scan with something unusual, the most serious first."""
    sorted_table = quality_table.assign(is_swapped=quality_table["swapped"] != "")
    sorted_table = sorted_table.sort_values(
        ["is_swapped", "unlike"], ascending=False, kind="stable"
    ).query("flags != ''")
    return [
        f"{scan_name}: {flag_text}"
        for scan_name, flag_text in sorted_table["flags"].items()
    ]


def _list_swapped_scan_lines(quality_table: "pd.DataFrame") -> list[str]:
    """Return a line for each value whose left and right may have been swapped."""
    quality_module = brainlsap.data.quality
    return quality_module.list_swapped_scan_sentences(
        quality_module.list_swapped_scans_by_value(quality_table["swapped"])
    )


def _print_data_warnings(
    study_path: str, cohort: "Cohort", value_by_option: OptionValues
) -> None:
    """Print which data of a fit may be wrong: copies, labels as features, odd scans."""
    quality_table = brainlsap.data.quality_table(cohort)
    unusual_lines = _list_unusual_scan_lines(quality_table)
    error_lines = _list_audit_lines(
        brainlsap.evaluation.leakage.make_error_table_without_folds(cohort)
    )
    if not (error_lines or unusual_lines):
        return
    check_options = _select_options(
        value_by_option, _list_command_option_names("check")
    )
    check_command = _write_command_line("check", study_path, check_options)
    n_other_scans = len(unusual_lines) - _MAX_UNUSUAL_SCANS
    other_lines = list[str]()
    if n_other_scans > 0:
        other_lines.append(f"and {count_text(n_other_scans, 'more unusual scan')}")
    print(
        "Warning: the data may have errors. The model is fitted nevertheless. "
        f"Details: {check_command}",
        *error_lines,
        *_list_swapped_scan_lines(quality_table),
        *unusual_lines[:_MAX_UNUSUAL_SCANS],
        *other_lines,
        sep="\n  ",
        flush=True,
    )


def _list_audit_lines(audit_table: "pd.DataFrame") -> list[str]:
    """Return the findings of the audit of a cohort, with duplicate scans."""
    wrapped_lines = list[str]()
    for audit_row in audit_table.itertuples():
        scans_text = advice_text = ""
        if audit_row.second_scan:
            scans_text = f": {audit_row.scans}"
            exclusion_texts = [
                option_text("exclude", scan_name)
                for scan_name in (audit_row.first_scan, audit_row.second_scan)
            ]
            advice_text = f" {' or '.join(exclusion_texts)} leaves out one of them."
        finding_text = (
            f"{audit_row.severity}: {audit_row.finding}{scans_text}. "
            f"{audit_row.what_to_do}{advice_text}"
        )
        wrapped_lines.append(
            textwrap.fill(finding_text, width=96, subsequent_indent="  ")
        )
    return wrapped_lines


@register_command
def run(study: str, out: str, **options: Any) -> None:
    """Cross-validate models, rank regions and write a report.

    for example:
      brainlsap run study --feature fdg --out results
      brainlsap run study --models all --harmonize site --out results
      brainlsap run study --config study.toml --jobs 2 --out results
    """
    brainlsap.report.check_results_folder(out)
    value_by_reading_option, value_by_study_option, value_by_model_option = (
        _split_options_by_recipient(options)
    )
    splits_path = value_by_study_option.pop("splits", None)
    cohort = _load_cohort(study, value_by_reading_option, value_by_study_option)
    if splits_path is not None:
        if "cv" in value_by_study_option:
            raise BrainlsapError(
                "--splits cannot be combined with --folds. Remove one of these two "
                "options."
            )
        scan_names = cohort.table["scan"]
        value_by_study_option["cv"] = brainlsap.evaluation.read_splits(
            splits_path, scan_names
        )
    value_by_study_option.setdefault("n_jobs", -1)
    evaluation = brainlsap.run_study(
        cohort, out, verbose=True, **value_by_study_option, **value_by_model_option
    )
    shown_score_table = brainlsap.score_table(evaluation)
    print(
        shown_score_table.drop(columns="remark", errors="ignore").to_string(index=False)
    )
    for model_name, model_remark in brainlsap.report.tables.find_remark_by_model(
        evaluation
    ).items():
        print(f"{model_name}: {model_remark}")
    error_finding_mask = evaluation.audit["severity"] == "error"
    for finding_text in evaluation.audit.loc[error_finding_mask, "finding"].unique():
        print(f"Data leakage, with details in the report: {finding_text}")
    print(
        "The scores in the table are means over folds. For a paper, take scores and "
        "their intervals from the report."
    )
    print(f"Report: {Path(out) / 'report' / 'report.html'}")


@register_command
def report(
    results: str,
    out: str | None = None,
    title: str | None = None,
    parcellation: str | None = None,
    table1: list[str] | None = None,
    table1_holm: bool | None = None,
    subgroups: list[str] | None = None,
    overwrite: bool = False,
    **folder_by_export: str,
) -> None:
    """Write the report of a study again, or export its maps, tables or figures."""
    evaluation = brainlsap.report.read_results(Path(results))
    if out is not None:
        brainlsap.report.check_results_folder(out)
    has_other_table = table1 is not None or table1_holm is not None
    if has_other_table:
        table1_settings = brainlsap.report.demographics.make_table1_settings(
            evaluation.cohort.table, table1, is_corrected=bool(table1_holm)
        )
        study_settings = evaluation.settings | table1_settings
        evaluation = replace(evaluation, settings=study_settings)
    if subgroups is not None:
        evaluation = brainlsap.report.report.change_subgroups(evaluation, subgroups)
    atlas_folder = evaluation.cohort.atlas_folder
    if atlas_folder and not Path(atlas_folder).is_dir():
        print(
            f"Note: the atlas folder {atlas_folder} no longer exists, so the report "
            "uses only the names of its regions."
        )
    _refuse_existing_exports(evaluation, folder_by_export, overwrite=overwrite)
    export_functions: dict[str, Callable[..., Sequence[Path]]] = {
        "export": partial(brainlsap.report.export_maps, parcellation=parcellation),
        "tables": brainlsap.report.write_tables,
        "figures": brainlsap.report.write_figures,
    }
    for option_key, export_function in export_functions.items():
        if option_key not in folder_by_export:
            continue
        folder = folder_by_export[option_key]
        exported_paths = export_function(evaluation, folder, overwrite=overwrite)
        file_names_text = ", ".join(
            exported_path.name for exported_path in exported_paths
        )
        content_word = "Maps" if option_key == "export" else option_key.capitalize()
        print(f"{content_word}: {folder} ({file_names_text})")
        for export_note in getattr(exported_paths, "notes", ()):
            print(f"Note: {export_note}")
    is_other_folder = out is not None and out != results
    needs_new_page = (
        is_other_folder or title is not None or has_other_table or subgroups is not None
    )
    if not folder_by_export or needs_new_page:
        report_path = brainlsap.write_report(
            evaluation,
            Path(results if out is None else out),
            title=title,
            overwrite=overwrite,
        )
        print(f"Report: {report_path}")


def _refuse_existing_exports(
    evaluation: "Evaluation", folder_by_export: Mapping[str, str], *, overwrite: bool
) -> None:
    """Refuse all existing files of the exports before anything is computed."""
    output_paths: list[Path] = []
    if "export" in folder_by_export:
        output_paths.append(Path(folder_by_export["export"], "regions.tsv"))
    if "tables" in folder_by_export:
        output_paths += brainlsap.report.report.table_paths(folder_by_export["tables"])
    if "figures" in folder_by_export:
        output_paths += brainlsap.report.report.figure_paths(
            evaluation, folder_by_export["figures"]
        )
    check_outputs(output_paths, overwrite=overwrite)


@register_command
def fit(
    study: str,
    out: str,
    overwrite: bool = False,
    models: str | None = None,
    scores: str | None = None,
    **options: Any,
) -> None:
    """Fit one model to a whole study and save it.

    for example:
      brainlsap fit study --models LSAP-R --feature fdg --out model.safetensors
    """
    value_by_reading_option, value_by_study_option, value_by_model_option = (
        _split_options_by_recipient(options)
    )
    overwrite |= value_by_study_option.pop("overwrite", False)  # of the settings file
    check_outputs(
        [out], input_values=[study, options.get("config")], overwrite=overwrite
    )
    value_by_model_option |= _select_options(
        value_by_study_option, ("preset", "random_state")
    )
    file_model_names = value_by_study_option.get("models", [])
    if models is None and len(file_model_names) > 1:
        raise BrainlsapError(
            f"the settings file names {len(file_model_names)} models, but brainlsap "
            "fit stores only one model. Choose one with --models."
        )
    model_name = models or next(iter(file_model_names), "LSAP-C")
    model = brainlsap.prediction.make_unfitted_model(
        model_name, **value_by_model_option
    )
    cohort = _load_cohort(study, value_by_reading_option, value_by_study_option)
    _print_data_warnings(study, cohort, options)
    step_options = _select_options(
        value_by_study_option, brainlsap.evaluation.confounds.STEP_OPTIONS
    )
    if scores is not None:
        step_options["scores"] = brainlsap.report.read_results(scores)
    model = brainlsap.fit_model(cohort, out, model, overwrite=overwrite, **step_options)
    print(f"Model: {out}\nTo print its card: brainlsap show {shlex.quote(str(out))}")
    if not isinstance(model, brainlsap.model.LSAPRidgeClassifier):
        print(
            f"Note: {model_name} provides neither prediction sets nor the "
            "contributions of regions to a prediction. LSAP-R "
            f"({option_text('models', 'LSAP-R')}) provides both."
        )


@register_command
def predict(
    model: str,
    study: str,
    out: str,
    overwrite: bool = False,
    class_prior: "ClassPrior | None" = None,
    explain: str | None = None,
    ids_are_new: bool = False,
    **options: Any,
) -> None:
    """Predict the classes of new participants with a saved model."""
    option_paths = [*options.get("derivatives", ()), *options.values()]
    check_outputs(
        [out], input_values=[model, study, *option_paths], overwrite=overwrite
    )
    classifier = brainlsap.model.load_model(model)
    cohort = brainlsap.prediction.read_new_people(
        classifier, study, verbose=True, **options
    )
    print(f"Study: {cohort}")
    contribution_table_by_path: dict[Path, pd.DataFrame] = {}
    if explain is not None:
        # Refuse a wrong id or model before the table is written.
        contribution_table_by_path = _make_contribution_table_by_path(
            classifier, cohort, explain, out
        )
        check_outputs(contribution_table_by_path, overwrite=overwrite)
    prediction_table = brainlsap.predict_people(
        classifier, cohort, class_prior=class_prior, ids_are_new=ids_are_new
    )
    count_items = prediction_table["predicted"].value_counts().items()
    print(
        "Numbers of scans by predicted class: "
        + ", ".join(f"{class_name} {n_scans}" for class_name, n_scans in count_items)
    )
    share_items = prediction_table.attrs["class_prior"].items()
    assumed_shares_text = ", ".join(
        f"{class_name} {assumed_share:.1%}" for class_name, assumed_share in share_items
    )
    print(
        "The probabilities (columns p_) assume these class shares: "
        f"{assumed_shares_text}. The predicted class is chosen with the class weights "
        "of the fit, not with these shares. It can therefore differ from the class "
        "with the largest probability."
    )
    no_sets_text = prediction_table.attrs["no_sets"]
    if no_sets_text:
        print(f"Prediction sets: {no_sets_text}.")
    else:
        print(
            f"Prediction sets (column {brainlsap.prediction.SET_COLUMN}) contain the "
            "true class of about 90 % of new participants of every class, if new "
            "participants resemble the training participants. `brainlsap evaluate` "
            "measures this share."
        )
        if "label" in prediction_table:
            _print_label_coverage(prediction_table, list(classifier.origin_.classes))
    _print_choice_notes(cohort.findings)
    _print_notes(prediction_table.attrs["side_notes"])
    _print_learned_sites(prediction_table.attrs["learned_sites"])
    if prediction_table["remark"].notna().any():
        print("Some predictions are unreliable. The column remark gives the reasons.")
    with restrict_new_files_to_owner():  # The table contains participant IDs.
        table_path = brainlsap.data.write_tsv(
            prediction_table, out, n_digits=brainlsap.data.tables.PREDICTION_DIGITS
        )
        print(f"Table: {table_path}")
        for figure_path, scan_contribution_table in contribution_table_by_path.items():
            _save_contribution_figure(
                classifier, cohort, scan_contribution_table, figure_path
            )
            print(f"Figure: {figure_path}")


def _print_notes(note_texts: Iterable[str]) -> None:
    """Print what could not be verified, a line each."""
    for note_text in note_texts:
        print(f"Note: {note_text}.")


def _print_learned_sites(site_names: Sequence[str]) -> None:
    """Print that sites were harmonised as sites of the training, if there are any."""
    site_sentence = brainlsap.evaluation.confounds.learned_sites_sentence(site_names)
    if site_sentence:
        print(f"Note: {site_sentence}")


def _print_missing_kinds(external_facts: Mapping[str, Any], cohort: "Cohort") -> None:
    """Print which facts about the training people the test people lack, if any."""
    missing_kinds = brainlsap.evaluation.subgroups.list_missing_kinds(
        external_facts["card"]["training"], external_facts["people"]
    )
    if not missing_kinds:
        return
    covariates_module = brainlsap.data.covariates
    unknown_columns = [
        column_name
        for column_name in cohort.table.columns
        if column_name not in (*covariates_module.KEY_COLUMNS, cohort.label_name)
        and covariates_module.find_acquisition_kind(column_name)
        not in covariates_module.COVARIATES
    ]
    advice_text = ""
    if unknown_columns:
        advice_text = (
            " If one of the columns "
            f"{join_with_commas(map(str, unknown_columns), 8)} contains it, rename "
            f"this column, for example to {missing_kinds[0]}."
        )
    print(
        f"Note: the training data contain {join_with_and(missing_kinds)}, but no such "
        "column was found here, so the report does not compare it with the training."
        f"{advice_text}"
    )


def _print_label_coverage(
    prediction_table: "pd.DataFrame", class_names: list[str]
) -> None:
    """Print the coverage in labelled people, and the labels that are no classes."""
    known_label_series = prediction_table["label"].dropna()
    known_class_mask = prediction_table["label"].isin(class_names)
    training_scan_flags = prediction_table.attrs["is_in_training"]
    measured_scan_flags = [
        has_class and not is_known
        for has_class, is_known in zip(
            known_class_mask, training_scan_flags, strict=True
        )
    ]
    if any(measured_scan_flags):
        coverage_table = brainlsap.external.make_coverage_table(
            prediction_table[measured_scan_flags].rename(columns={"label": "truth"}),
            class_names,
        )
        _print_coverage(coverage_table.to_dict("records"))
    if any(training_scan_flags):
        n_in_training = count_text(sum(training_scan_flags), "scan", "were")
        print(
            f"Note: {n_in_training} used for training, so the measured coverage does "
            "not count them."
        )
    n_scans_by_unknown_label = known_label_series[
        ~known_label_series.isin(class_names)
    ].value_counts()
    if len(n_scans_by_unknown_label):
        labels_text = brainlsap.external.label_counts_text(n_scans_by_unknown_label)
        print(
            f"Note: the labels {labels_text} are not classes of the model, so their "
            "coverage was not measured. `brainlsap evaluate` renames labels with "
            "--merge-classes."
        )


def _print_coverage(class_coverage_records: Sequence[Mapping[Any, Any]]) -> None:
    """Print the number of people of each class with a set that contains their class."""
    for class_coverage_record in class_coverage_records:
        interval_text = (
            f"{class_coverage_record['low']:.0%} to {class_coverage_record['high']:.0%}"
        )
        class_name = class_coverage_record["class"]
        group_text = f"class {class_name}"
        if class_name == brainlsap.external.ALL_CLASSES:
            group_text = class_name
        print(
            f"Measured coverage in {group_text}: the prediction sets "
            f"contain the true class of {class_coverage_record['coverage']:.0%} of "
            f"{count_text(class_coverage_record['people'], 'participant')} (95% "
            f"interval {interval_text}). A set contains "
            f"{class_coverage_record['mean_size']:.1f} classes on average."
        )
    covered_people_counts = [
        class_coverage_record["coverage"] * class_coverage_record["people"]
        for class_coverage_record in class_coverage_records
    ]
    if any(
        abs(n_covered_people - round(n_covered_people)) > 1e-9
        for n_covered_people in covered_people_counts
    ):
        print(
            "If a participant has several scans, the coverage of the participant is "
            "the share of these scans whose set contains the true class."
        )


def _make_contribution_table_by_path(
    classifier: Any, cohort: "Cohort", participant_id: str, table_path: str
) -> "dict[Path, pd.DataFrame]":
    """Return the contribution of every region to the score of a person, by figure path.

    There is a figure for each scan and target.
    """
    participant_scan_mask = cohort.groups == participant_id
    if not participant_scan_mask.any():
        raise BrainlsapError(
            f"{option_text('explain')} is {participant_id!r}, but none of the "
            f"{len(set(cohort.groups))} participants of the study has this ID. An "
            f"example of an ID in this study is {cohort.groups[0]}."
        )
    with warnings.catch_warnings():
        # The predictions of all people give the warnings of these scans, too.
        warnings.simplefilter("ignore", UserWarning)
        contribution_table = brainlsap.contribution_table(
            classifier, cohort.select(participant_scan_mask)
        )
    return {
        Path(table_path).with_name(
            f"{Path(table_path).stem}_{scan_name}_{target_name}.png"
        ): scan_contribution_table
        for (
            scan_name,
            target_name,
        ), scan_contribution_table in contribution_table.groupby(["scan", "target"])
    }


def _save_contribution_figure(
    classifier: Any,
    cohort: "Cohort",
    scan_contribution_table: "pd.DataFrame",
    figure_path: Path,
) -> None:
    """Draw what every region adds to one score of one scan."""
    target_name = scan_contribution_table["target"].iloc[0]
    axis_label = f"contribution to {target_name}"
    if target_name == "stage":
        first_class, *_, last_class = classifier.origin_.classes
        axis_label = (
            f"contribution (negative: towards {first_class}, positive: towards "
            f"{last_class})"
        )
    figure = brainlsap.report.plot_contributions(
        scan_contribution_table, cohort.atlas, axis_label
    )
    figure.savefig(figure_path)


@register_command
def evaluate(
    model: str,
    study: str,
    out: str,
    overwrite: bool = False,
    class_prior: "ClassPrior | None" = None,
    ids_are_new: bool = False,
    subgroups: Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Test a saved model on other participants with known classes.

    for example:
      brainlsap evaluate model.safetensors second_hospital --out evaluation
    """
    brainlsap.report.check_results_folder(out)
    classifier = brainlsap.model.load_model(model)
    cohort = brainlsap.read_labelled_people(classifier, study, verbose=True, **options)
    print(f"Study: {cohort}")
    evaluation = brainlsap.evaluate_model(
        classifier,
        cohort,
        class_prior=class_prior,
        ids_are_new=ids_are_new,
        subgroups=subgroups,
        out=out,
        overwrite=overwrite,
    )
    interval_table = brainlsap.report.tables.interval_table(evaluation)
    print(interval_table.T.to_string(header=False))
    _print_choice_notes(evaluation.cohort.findings)
    external_facts = evaluation.settings["external"]
    if external_facts["no_sets"]:
        print(f"Prediction sets: {external_facts['no_sets']}.")
    _print_coverage(external_facts["coverage"])
    _print_notes(external_facts["side_notes"])
    _print_learned_sites(external_facts["learned_sites"])
    _print_missing_kinds(external_facts, cohort)
    report_path = brainlsap.write_report(
        evaluation,
        out,
        quality=brainlsap.data.quality_table(cohort),
        overwrite=overwrite,
    )
    print(f"Report: {report_path}")


@register_command
def show(model: str) -> None:
    """Print the card of a saved model: its method, training participants and scores.

    for example:
      brainlsap show model.safetensors
    """
    print(brainlsap.card_text(brainlsap.model.load_model(model)))


@register_command
def nodes(
    dataset: str,
    models: Sequence[str] = ("lsap-c", "gcn"),
    data: str | None = None,
    download: bool = False,
    **options: Any,
) -> None:
    """Classify the nodes of a citation or co-purchase graph with several seeds."""
    node_graph = brainlsap.load_nodes(dataset, data, download=download)
    print(
        f"{node_graph.name}: {node_graph.n_nodes} nodes, {node_graph.n_edges} edges, "
        f"{node_graph.n_classes} classes, {node_graph.features.shape[1]} features",
        flush=True,
    )
    model_names = list(brainlsap.nodes.NODE_MODELS) if models == ["all"] else models
    run_table = brainlsap.nodes.run_nodes(
        node_graph, model_names, verbose=True, **options
    )
    print(brainlsap.nodes.summarize_nodes(run_table).round(2).to_string(index=False))


def _load_cohort(
    study_path: str,
    value_by_reading_option: OptionValues,
    value_by_study_option: OptionValues,
) -> "Cohort":
    """Return the cohort to analyse and print a summary.

    Classes are merged here, and `merge_classes` is removed from
    `value_by_study_option`.
    """
    cohort = brainlsap.data.read_study(
        study_path, verbose=True, **value_by_reading_option
    )
    class_merging_spec = value_by_study_option.pop("merge_classes", None)
    cohort = brainlsap.workflow.merge_classes(cohort, class_merging_spec)
    print(f"Study: {cohort}", brainlsap.check_cohort(cohort).count_texts[1], sep="\n")
    for value_sentence in brainlsap.data.quality.list_value_range_sentences(cohort):
        print(f"Values: {value_sentence}", flush=True)
    for odd_unit_text in brainlsap.data.quality.list_odd_unit_texts(cohort):
        print(f"Warning: {odd_unit_text}", flush=True)
    _print_choice_notes(cohort.findings)
    return cohort


def _print_choice_notes(findings: Iterable[Finding]) -> None:
    """Print the notes on what was chosen, assumed or left out for the user."""
    for finding in findings:
        if finding.kind in CHOICES:
            print(f"Note: {finding}", flush=True)


def _write_command_line(
    command_name: str, study_path: str, value_by_option: OptionValues
) -> str:
    """Return a command as a user types it."""
    arguments = ["brainlsap", command_name, study_path]
    if "model" in value_by_option:
        arguments.insert(2, value_by_option["model"])
    flag_by_option = {
        option_record.name: option_record.flag
        for option_record in list_command_options(command_name)
    }
    for option_name, option_value in value_by_option.items():
        if option_name in ("model", "study"):
            continue
        option_flag = flag_by_option.get(
            option_name, f"--{option_name.replace('_', '-')}"
        )
        for option_entry in (
            option_value if option_name == "derivatives" else [option_value]
        ):
            if option_entry is True:
                arguments.append(option_flag)
                continue
            entry_text = str(option_entry)
            if isinstance(option_entry, list | tuple):
                entry_text = ",".join(option_entry)
            if isinstance(option_entry, Mapping):
                entry_text = ",".join(
                    f"{entry_name}={entry_value}"
                    for entry_name, entry_value in option_entry.items()
                )
            arguments += [option_flag, entry_text]
    return shlex.join(arguments)


def _split_options_by_recipient(value_by_option: OptionValues) -> list[OptionValues]:
    """Return the options of load_cohort, run_study and LSAPClassifier.

    Flags take precedence over the settings file.
    """
    value_by_flag_option = dict(value_by_option)
    config_path = value_by_flag_option.pop("config", None)
    value_by_file_option = (
        {} if config_path is None else read_value_by_option(config_path)
    )
    fold_option_names = ("cv", "leave_out", "splits")
    if any(
        fold_option_name in value_by_flag_option
        for fold_option_name in fold_option_names
    ):
        # These options exclude each other: a flag replaces all three of the file.
        for fold_option_name in fold_option_names:
            value_by_file_option.pop(fold_option_name, None)
    value_by_file_option |= value_by_flag_option
    option_names_by_recipient = [
        list_settings_option_names(recipient_name)
        for recipient_name in ("reading", "study", "model")
    ]
    lost_option_names = value_by_file_option.keys() - set(
        chain(*option_names_by_recipient)
    )
    if lost_option_names:
        raise TypeError(
            f"no function takes the options {sorted(lost_option_names)}. Add their "
            "recipients to OPTIONS."
        )
    return [
        _select_options(value_by_file_option, names_to_keep)
        for names_to_keep in option_names_by_recipient
    ]


def _list_command_option_names(command_name: str) -> set[str]:
    """Return the Python names of the options of a command."""
    return {option_record.name for option_record in list_command_options(command_name)}


def _select_options(
    value_by_option: OptionValues, option_names_to_keep: Collection[str]
) -> OptionValues:
    """Return the options with these names, of those that were given."""
    return {
        option_name: option_value
        for option_name, option_value in value_by_option.items()
        if option_name in option_names_to_keep
    }
