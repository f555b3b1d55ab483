"""Declare every option of the commands and of `--config` once.

An :class:`Option` holds the Python name of an option, its flag, the kind of its value,
its help text, the function that it is passed to, and whether it changes results. The
command line (:mod:`brainlsap.cli`), settings files (:func:`read_value_by_option`), the
reader of studies and stored models use this table.

A new option is one entry of :data:`OPTIONS`. The entry says which commands take it,
under which title, and which function it is passed to; the rest of the tables is derived
and checked when this module is imported.
"""

import difflib
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Literal

from brainlsap.exceptions import BrainlsapError, ParameterError, convert_reading_errors
from brainlsap.text import option_name


@dataclass(frozen=True)
class OptionKind:
    """The type of an option's value.

    Attributes
    ----------
    expected_text
        Description of a valid value, for messages: "<option> must be <expected_text>".
    convert
        Function that checks a value of a settings file (TOML) and returns it as a
        Python value. It raises ValueError for a value of another type.
    parse
        Function that converts text from the command line to a Python value. It raises
        ValueError for invalid text.
    """

    expected_text: str
    convert: Callable[[object], object]
    parse: Callable[[str], object]


class WholeNumber(OptionKind):
    """The type of a whole number between two limits.

    Parameters
    ----------
    minimum : int
    maximum : int or None
        None for no limit.
    """

    def __init__(self, minimum: int = 0, maximum: int | None = None) -> None:
        limits_text = f"of at least {minimum}"
        if maximum is not None:
            limits_text = f"from {minimum} to {maximum}"

        def convert(option_value: object) -> int:
            return _convert_whole_number(option_value, minimum, maximum)

        def parse(number_text: str) -> int:
            return convert(_parse_whole_number(number_text))

        super().__init__(f"a whole number {limits_text}", convert, parse)


def _convert_text(option_value: object) -> str:
    if not isinstance(option_value, str):
        raise ValueError
    return option_value


def _split_names(names_text: str) -> list[str]:
    return [
        split_name.strip() for split_name in names_text.split(",") if split_name.strip()
    ]


def _convert_names(option_value: object) -> list[str]:
    if isinstance(option_value, str):  # Accept the syntax of the command line: "CN,AD".
        return _split_names(option_value)
    return _convert_texts(option_value)


def _convert_texts(option_value: object) -> list[str]:
    if isinstance(option_value, str):
        return [option_value]
    if not isinstance(option_value, list):
        raise ValueError
    return [_convert_text(list_entry) for list_entry in option_value]


def _convert_text_or_texts(option_value: object) -> str | list[str]:
    return (
        option_value if isinstance(option_value, str) else _convert_texts(option_value)
    )


def _convert_whole_number(
    option_value: object, minimum: int = 0, maximum: int | None = None
) -> int:
    # NumPy's whole numbers, too.
    if isinstance(option_value, bool) or not isinstance(option_value, Integral):
        raise ValueError
    whole_number = int(option_value)
    if whole_number < minimum or (maximum is not None and whole_number > maximum):
        raise ValueError
    return whole_number


def _parse_whole_number(number_text: str) -> int:
    if not (number_text.isascii() and number_text.isdecimal()):
        raise ValueError
    return int(number_text)


def _convert_n_jobs(option_value: object) -> int:
    return -1 if option_value == -1 else _convert_whole_number(option_value)


def _parse_n_jobs(number_text: str) -> int:
    return -1 if number_text == "-1" else _parse_whole_number(number_text)


def _convert_number(option_value: object) -> float:
    if not isinstance(option_value, int | float) or isinstance(option_value, bool):
        raise ValueError
    if not math.isfinite(option_value):
        raise ValueError
    return option_value


def _parse_number(number_text: str) -> float:
    return _convert_number(float(number_text))


def _convert_scale(option_value: object) -> float | str:
    return option_value if option_value == "evidence" else _convert_number(option_value)


def _parse_scale(scale_text: str) -> float | str:
    return scale_text if scale_text == "evidence" else _parse_number(scale_text)


def _convert_bool(option_value: object) -> bool:
    if not isinstance(option_value, bool):
        raise ValueError
    return option_value


def _parse_bool(bool_text: str) -> bool:
    if bool_text not in ("true", "false"):
        raise ValueError
    return bool_text == "true"


def _convert_window(option_value: object) -> tuple[float, float]:
    if not isinstance(option_value, list) or len(option_value) != 2:
        raise ValueError
    return _convert_number(option_value[0]), _convert_number(option_value[1])


def _parse_window(window_text: str) -> tuple[float, float]:
    return _convert_window(
        [float(number_text) for number_text in window_text.split(",")]
    )


def _convert_patterns(option_value: object) -> str | dict[str, str]:
    if isinstance(option_value, dict):
        return {
            feature_name: _convert_text(pattern)
            for feature_name, pattern in option_value.items()
        }
    return _convert_text(option_value)


def _convert_class_merging_spec(option_value: object) -> str | dict[str, list[str]]:
    if not isinstance(option_value, dict):
        return _convert_text(option_value)
    return {
        class_name: _convert_texts(original_classes)
        for class_name, original_classes in option_value.items()
    }


def _parse_key_and_value(pair_text: str) -> tuple[str, str]:
    pair_key, pair_value = pair_text.split("=", 1)
    return pair_key, pair_value


def _convert_shares(option_value: object) -> str | dict[str, float]:
    if isinstance(option_value, dict):
        return {
            class_name: _convert_number(share)
            for class_name, share in option_value.items()
        }
    return _parse_shares(_convert_text(option_value))


def _parse_shares(shares_text: str) -> str | dict[str, float]:
    if "=" not in shares_text:
        return shares_text
    share_by_class = {}
    for assignment in _split_names(shares_text):
        class_name, _, share_text = assignment.rpartition("=")
        share_by_class[class_name.strip()] = _parse_number(share_text)
    return share_by_class


TEXT = OptionKind("text", _convert_text, str)
FILE_PATH = OptionKind("the path of a file, as text", _convert_text, str)
FOLDER_PATH = OptionKind("the path of a folder, as text", _convert_text, str)
FOLDER_PATHS = OptionKind(
    "the path of a folder, or a list of them", _convert_texts, str
)
FILE_PATHS = OptionKind("the path of a file, or a list of them", _convert_texts, str)
FILE_PATH_OR_NAMES = OptionKind(
    "a path, or a list of names", _convert_text_or_texts, str
)
NAMES = OptionKind("a name, or a list of names", _convert_names, _split_names)
WHOLE_NUMBER = WholeNumber()
N_JOBS = OptionKind(
    "a whole number of at least 0, or -1 for all cores", _convert_n_jobs, _parse_n_jobs
)
NUMBER = OptionKind("a number", _convert_number, _parse_number)
NUMBER_OR_EVIDENCE = OptionKind("a number, or 'evidence'", _convert_scale, _parse_scale)
SWITCH = OptionKind("true or false", _convert_bool, _parse_bool)
TIME_WINDOW = OptionKind("two numbers, [start, end]", _convert_window, _parse_window)
FILE_PATTERNS = OptionKind(
    "text, or a table with texts for 'connectome', 'freesurfer' or features",
    _convert_patterns,
    str,
)
CLASS_GROUPS = OptionKind(
    "text, or a table with a list of classes for each new class",
    _convert_class_merging_spec,
    str,
)
NAME_AND_TEXT = OptionKind("NAME=TEXT", _convert_text, _parse_key_and_value)
CLASS_SHARES = OptionKind(
    "'training', 'balanced', or a share for each class (CN=0.8,AD=0.2)",
    _convert_shares,
    _parse_shares,
)


Recipient = Literal["reading", "study", "model", "command"]


@dataclass(frozen=True)
class Option:
    """One option of a command or of a settings file.

    Attributes
    ----------
    name
        Name of the Python parameter, and key in a settings file.
    flag
        `--flag` on the command line; its spelling without dashes is a second key in
        settings files. A name in capitals is an argument without a flag. "" is an
        option without `commands`.
    kind
        Type of its value.
    help
        Help text on the command line; required for every option with a flag.
    metavar
        Placeholder of the value in the help text; "" for a flag without a value.
    choices
        All valid values, for options that have only a few.
    recipient
        The function that it is passed to: "reading" for :func:`brainlsap.load_cohort`,
        "study" for :func:`brainlsap.run_study`, "model" for
        :class:`brainlsap.LSAPClassifier`, "command" for options of a single command.
        Settings files may set all options except those of a single command.
    commands
        The functions of the commands that take it, for example ("check", "run"); none
        for an option that only settings files can set.
    group
        Group of options in the help text, a key of :data:`GROUP_TITLES`.
    changes_results
        Whether another value may change a number in the results (beyond rounding).
    selects_files
        Whether it selects the participants of a study or the files that are read. These
        options are those that :func:`brainlsap.data.load.open_scans_and_sources` needs.
    stored_model
        Use of the value of the fit for new participants: "default" uses it unless
        another value is given, "fixed" rejects another value, "" ignores it.
    is_required, is_repeatable
        Whether the command line requires it, and accepts it more than once.
    """

    name: str
    flag: str
    kind: OptionKind
    help: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    recipient: Recipient = "command"
    commands: tuple[str, ...] = ()
    group: str = ""
    changes_results: bool = True
    selects_files: bool = False
    stored_model: Literal["", "default", "fixed"] = ""
    is_required: bool = False
    is_repeatable: bool = False

    @property
    def is_positional(self) -> bool:
        """Whether it is an argument without a flag."""
        return bool(self.flag) and not self.flag.startswith("--")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return its keys in a settings file, the Python name first."""
        flag_key = self.flag.removeprefix("--").replace("-", "_")
        return tuple(
            dict.fromkeys(
                option_key for option_key in (self.name, flag_key) if option_key
            )
        )

    def parse(self, text: str) -> object:
        """Convert text from the command line to a Python value."""
        try:
            return self.kind.parse(text)
        except ValueError as error:
            raise ValueError(
                f"must be {self.kind.expected_text}, got {text!r}"
            ) from error

    def convert(self, value: object) -> object:
        """Check a value of a settings file and return it as a Python value."""
        value_text = repr(value)
        if isinstance(value, bool):  # TOML writes true, Python writes True.
            value_text = value_text.lower()
        if self.choices and (not isinstance(value, str) or value not in self.choices):
            choices_text = ", ".join(map(repr, self.choices))
            raise ValueError(f"must be one of {choices_text}, got {value_text}")
        try:
            return self.kind.convert(value)
        except ValueError as error:
            raise ValueError(
                f"must be {self.kind.expected_text}, got {value_text}"
            ) from error


MODEL_COMMANDS = ("predict", "evaluate")
"""Commands that read other people for a stored model."""

READING_COMMANDS = ("check", "run", "fit", *MODEL_COMMANDS)
"""Commands that read a study."""

_TITLES_WITH_MODEL = {
    "": "options",
    "probabilities": "probabilities (default: the value used in the fit)",
    "data": (
        "data (defaults: the values used in the fit; options that locate files must "
        "be given again)"
    ),
}

GROUP_TITLES: dict[str, dict[str, str]] = {
    "demo": {"": "options"},
    "simulate": {"": "options"},
    "atlas": {"": "options", "source": "source of the regions"},
    "import_adni": {"": "options"},
    "build": {
        "": "options",
        "patterns": "file-name patterns",
        "connectomes": "connectomes",
        "SUVR": "SUVR",
    },
    "check": {"data": "data", "": "options"},
    "run": {
        "data": "data",
        "model": "model",
        "evaluation": "evaluation",
        "output": "output",
    },
    "report": {"": "options"},
    "fit": {
        "data": "data",
        "model": "model",
        "evaluation": "model",
        "output": "output",
    },
    "predict": _TITLES_WITH_MODEL,
    "evaluate": _TITLES_WITH_MODEL,
    "show": {"": "options"},
    "nodes": {"": "options"},
}
"""Titles in the help text of each command, by group; "" is that of all other groups."""

OPTIONS: tuple[Option, ...] = (
    # Inputs and outputs, whose help differs from command to command.
    Option(
        "model",
        "MODEL",
        FILE_PATH,
        "model file written by brainlsap fit",
        commands=(*MODEL_COMMANDS, "show"),
    ),
    Option(
        "study",
        "STUDY",
        FOLDER_PATH,
        "study folder, or a cohort file (.h5) written by Cohort.save",
        group="data",
        commands=("check", "run", "fit"),
    ),
    Option(
        "study",
        "STUDY",
        FOLDER_PATH,
        "study folder, or a cohort file (.h5) written by Cohort.save",
        commands=MODEL_COMMANDS,
    ),
    Option(
        "study",
        "STUDY",
        FOLDER_PATH,
        "study folder",
        group="data",
        commands=("build",),
    ),
    Option(
        "out",
        "--out",
        FOLDER_PATH,
        "output folder (default: demo)",
        "FOLDER",
        changes_results=False,
        commands=("demo",),
    ),
    Option("out", "OUT", FOLDER_PATH, "output folder", commands=("simulate",)),
    Option("folder", "FOLDER", FOLDER_PATH, "output folder", commands=("atlas",)),
    Option(
        "tables",
        "TABLES",
        FOLDER_PATH,
        "folder of ADNI tables",
        commands=("import_adni",),
    ),
    Option(
        "images",
        "IMAGES",
        FOLDER_PATH,
        "folder with the images that were downloaded from the archive of ADNI (LONI)",
        commands=("import_adni",),
    ),
    Option(
        "out", "OUT", FOLDER_PATH, "study folder to write", commands=("import_adni",)
    ),
    Option(
        "out",
        "--out",
        FOLDER_PATH,
        "output folder (default: derivatives/brainlsap in the study)",
        "FOLDER",
        changes_results=False,
        commands=("build",),
    ),
    Option(
        "results",
        "RESULTS",
        FOLDER_PATH,
        "results folder written by brainlsap run",
        commands=("report",),
    ),
    Option(
        "out",
        "--out",
        FOLDER_PATH,
        "output folder (default: RESULTS)",
        "FOLDER",
        changes_results=False,
        commands=("report",),
    ),
    Option(
        "dataset",
        "DATASET",
        TEXT,
        "name of the data set, for example cora",
        commands=("nodes",),
    ),
    Option(
        "out",
        "--out",
        FOLDER_PATH,
        "results folder",
        "FOLDER",
        changes_results=False,
        is_required=True,
        group="output",
        commands=("run", "evaluate"),
    ),
    Option(
        "out",
        "--out",
        FILE_PATH,
        "model file",
        "FILE",
        changes_results=False,
        is_required=True,
        group="output",
        commands=("fit",),
    ),
    Option(
        "out",
        "--out",
        FILE_PATH,
        "output table (.csv, .tsv); it contains participant IDs",
        "FILE",
        changes_results=False,
        is_required=True,
        commands=("predict",),
    ),
    # Options of a single command.
    Option(
        "n_people",
        "--people",
        WHOLE_NUMBER,
        "number of simulated participants (default: 120)",
        "N",
        commands=("demo",),
    ),
    Option(
        "n_starts",
        "--starts",
        WHOLE_NUMBER,
        "number of networks that each fit trains; the predictions are their average",
        "N",
        commands=("demo",),
    ),
    Option(
        "n_people",
        "--people",
        WHOLE_NUMBER,
        "number of participants (default: 120)",
        "N",
        commands=("simulate",),
    ),
    Option(
        "feature",
        "--feature",
        NAMES,
        "features to simulate: one or more of 'fdg', 'thickness' and 'volume' "
        "(default: 'fdg')",
        "NAMES",
        commands=("simulate",),
    ),
    Option(
        "style",
        "--style",
        TEXT,
        "format of the connectome files: 'mrtrix' (rows in MRtrix's order, without "
        "region names) or 'named' (rows with region names); default: 'mrtrix' if "
        "MRtrix has an order for the atlas, otherwise 'named'",
        choices=("mrtrix", "named"),
        commands=("simulate",),
    ),
    Option(
        "seeds",
        "--seed-regions",
        NAMES,
        "regions in which the simulated disease starts (default: medial temporal lobe)",
        "NAMES",
        commands=("simulate",),
    ),
    Option(
        "annot",
        "--annot",
        FILE_PATH,
        "FreeSurfer annotation lh.NAME.annot of fsaverage; rh.NAME.annot must be in "
        "the same folder",
        "FILE",
        group="source",
        commands=("atlas",),
    ),
    Option(
        "labels",
        "--labels",
        FILE_PATH,
        "file with the region names: a table, a list or a FreeSurfer lookup table",
        "FILE",
        group="source",
        commands=("atlas",),
    ),
    Option(
        "image",
        "--image",
        FILE_PATH,
        "NIfTI image in MNI152 space in which every region has its own number",
        "FILE",
        group="source",
        commands=("atlas",),
    ),
    Option(
        "window",
        "--window",
        WHOLE_NUMBER,
        "maximum number of days between image and visit (default: 180)",
        "N",
        commands=("import_adni",),
    ),
    Option(
        "require",
        "--require",
        NAMES,
        "modalities that a visit must have (other visits are left out): one or more "
        "of 'anat', 'dwi', 'fdg', 'amyloid' and 'tau'",
        "NAMES",
        commands=("import_adni",),
    ),
    Option(
        "modality",
        "--modality",
        NAME_AND_TEXT,
        "assign images to the modality NAME if their descriptions contain TEXT, for "
        "example fdg=Coreg,_Avg; the option may be repeated",
        "NAME=TEXT",
        is_repeatable=True,
        commands=("import_adni",),
    ),
    Option(
        "skip_faulty",
        "--skip-faulty",
        SWITCH,
        "leave out entries that cannot be used, for example two diagnoses of one visit "
        "or unknown codes; the command lists these entries",
        commands=("import_adni",),
    ),
    Option(
        "n_jobs",
        "--jobs",
        N_JOBS,
        "number of scans processed in parallel (default: 1)",
        "N",
        changes_results=False,
        commands=("build",),
    ),
    Option(
        "labels",
        "--labels",
        FILE_PATH,
        "table with the number and the name of every region in the parcellation",
        "FILE",
        commands=("build",),
    ),
    Option(
        "tractogram",
        "--tractogram",
        TEXT,
        "file-name pattern of tractograms",
        "PATTERN",
        group="patterns",
        commands=("build",),
    ),
    Option(
        "parcellation",
        "--parcellation",
        TEXT,
        "file-name pattern of the parcellations, or the path of one parcellation for "
        "all participants",
        "PATTERN",
        group="patterns",
        commands=("build",),
    ),
    Option(
        "pet",
        "--pet",
        TEXT,
        "file-name pattern of PET images",
        "PATTERN",
        group="patterns",
        commands=("build",),
    ),
    Option(
        "transform",
        "--transform",
        TEXT,
        "file-name pattern of the spatial transforms from PET space to the space of "
        "the parcellation",
        "PATTERN",
        group="patterns",
        commands=("build",),
    ),
    Option(
        "streamline_weights",
        "--streamline-weights",
        TEXT,
        "file-name pattern of the files that contain the weight of every streamline",
        "PATTERN",
        group="patterns",
        commands=("build",),
    ),
    Option(
        "assignment",
        "--assignment",
        TEXT,
        "rule that assigns an end of a streamline to a region: 'radial' (default) "
        "takes the nearest region within --radius; 'end_voxels' takes the region of "
        "the voxel in which the streamline ends",
        choices=("end_voxels", "radial"),
        group="connectomes",
        commands=("build",),
    ),
    Option(
        "radius",
        "--radius",
        NUMBER,
        "largest distance in mm between a streamline end and the region that it is "
        "assigned to (default: 4)",
        "X",
        group="connectomes",
        commands=("build",),
    ),
    Option(
        "weight",
        "--weight",
        TEXT,
        "weight of a connection: number of streamlines ('count', default), mean length "
        "of the streamlines ('mean_length'); or, summed over the streamlines, 1/length "
        "('inverse_length') or 2/(number of voxels in the two regions together) "
        "('inverse_node_volume')",
        choices=("count", "inverse_length", "inverse_node_volume", "mean_length"),
        group="connectomes",
        commands=("build",),
    ),
    Option(
        "reference",
        "--reference",
        TEXT,
        "reference region of the SUVR, or the path of its mask image (default: "
        "'cerebellar cortex')",
        "NAME",
        group="SUVR",
        commands=("build",),
    ),
    Option(
        "same_space",
        "--same-space",
        SWITCH,
        "confirm that PET and tractogram are aligned with the parcellation (needed if "
        "the file names do not show this)",
        group="SUVR",
        commands=("build",),
    ),
    Option(
        "accept_low_coverage",
        "--accept-low-coverage",
        SWITCH,
        "also use PET images that do not cover the parcellation, or that do not seem "
        "to be aligned with it",
        group="SUVR",
        commands=("build",),
    ),
    Option(
        "title", "--title", TEXT, "title of the report", "TEXT", commands=("report",)
    ),
    Option(
        "export",
        "--export",
        FOLDER_PATH,
        "write maps of the diffusion scales to this folder, both as images (GIFTI or "
        "NIfTI) and as a table (TSV)",
        "FOLDER",
        commands=("report",),
    ),
    Option(
        "parcellation",
        "--parcellation",
        FILE_PATH,
        "parcellation image; --export then also writes NIfTI maps in the space of this "
        "image",
        "IMAGE",
        commands=("report",),
    ),
    Option(
        "tables",
        "--tables",
        FOLDER_PATH,
        "write tables for a manuscript to this folder, as LaTeX and Markdown",
        "FOLDER",
        commands=("report",),
    ),
    Option(
        "figures",
        "--figures",
        FOLDER_PATH,
        "write figures for a manuscript to this folder, as PDF",
        "FOLDER",
        commands=("report",),
    ),
    Option(
        "data",
        "--data",
        FOLDER_PATH,
        "folder with the files of the data set (default: a folder in ~/.cache)",
        "FOLDER",
        commands=("nodes",),
    ),
    Option(
        "download",
        "--download",
        SWITCH,
        "download missing files of the data set",
        commands=("nodes",),
    ),
    Option(
        "models",
        "--models",
        NAMES,
        "models to compare, separated by commas, or 'all' (default: lsap-c,gcn)",
        "NAMES",
        commands=("nodes",),
    ),
    Option(
        "n_seeds",
        "--seeds",
        WHOLE_NUMBER,
        "number of random seeds; every model is trained once per seed (default: 10)",
        "N",
        commands=("nodes",),
    ),
    Option(
        "split",
        "--split",
        TEXT,
        "division into training, validation and test nodes: 'public' (default), "
        "'per-class' or '60-20-20'",
        "NAME",
        commands=("nodes",),
    ),
    Option(
        "variant",
        "--variant",
        TEXT,
        "method that learns the diffusion scales (default: the method that was chosen "
        "on the validation nodes of this data set)",
        "NAME",
        commands=("nodes",),
    ),
    Option(
        "out",
        "--out",
        FILE_PATH,
        "output table (.csv, .tsv) with one row for each training run; rows are added "
        "to an existing table",
        "FILE",
        changes_results=False,
        commands=("nodes",),
    ),
    # Options of load_cohort.
    Option(
        "atlas",
        "--atlas",
        TEXT,
        "parcellation: 'desikan82', 'destrieux164', 'schaefer100', 'schaefer200', "
        "'schaefer400', an atlas folder or a file regions.tsv (default: "
        "'destrieux160')",
        "NAME",
        recipient="reading",
        stored_model="default",
        group="data",
        commands=("simulate", "build", *READING_COMMANDS),
    ),
    Option(
        "feature",
        "--feature",
        NAMES,
        "regional measures to analyse: 'thickness' (default), 'volume', 'area', "
        "'fdg', 'amyloid', 'tau', 'strength' (sum of a region's connection weights), "
        "or columns of your tables",
        "NAMES",
        recipient="reading",
        stored_model="default",
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "label",
        "--label",
        TEXT,
        "table column to predict (default: 'diagnosis')",
        "COLUMN",
        recipient="reading",
        selects_files=True,
        group="data",
        commands=("check", "run", "fit"),
    ),
    Option(
        "label",
        "--label",
        TEXT,
        "table column with the known classes, if there is one; its values are copied "
        "into the output",
        "COLUMN",
        group="data",
        commands=("predict",),
    ),
    Option(
        "label",
        "--label",
        TEXT,
        "table column with the known classes (default: the column used in the fit)",
        "COLUMN",
        group="data",
        commands=("evaluate",),
    ),
    Option(
        "classes",
        "--classes",
        NAMES,
        "classes to analyse, in order of disease stage; scans of all other classes "
        "are left out",
        "NAMES",
        recipient="reading",
        selects_files=True,
        group="data",
        commands=("check", "run", "fit"),
    ),
    Option(
        "connectome",
        "--connectome",
        FILE_PATH,
        "file with one connectome for all participants, or with the connectomes of all "
        "scans; without this option, every scan has its own file; 'none' estimates the "
        "connectome from the features",
        "FILE",
        recipient="reading",
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "scans",
        "--scans",
        TEXT,
        "visits to analyse: all visits ('all', default), or the first visit of each "
        "participant ('baseline')",
        choices=("all", "baseline"),
        recipient="reading",
        selects_files=True,
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "exclude",
        "--exclude",
        FILE_PATH_OR_NAMES,
        "participants or scans to leave out: IDs separated by commas, or a file with "
        "IDs",
        "FILE or IDS",
        recipient="reading",
        selects_files=True,
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "skip_faulty",
        "--skip-faulty",
        SWITCH,
        "leave out scans with an error, for example a damaged file or a missing label; "
        "the command lists these scans",
        recipient="reading",
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "subcortex",
        "--subcortex",
        TEXT,
        "value of thickness and area in subcortical regions, which have neither: no "
        "value ('absent', default), the cortical mean of the hemisphere ('mean'), or "
        "the volume of the region ('volume')",
        choices=("absent", "mean", "volume"),
        recipient="reading",
        selects_files=True,
        stored_model="fixed",
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "subjects_dir",
        "--subjects-dir",
        FOLDER_PATH,
        "folder of FreeSurfer results (SUBJECTS_DIR)",
        "FOLDER",
        recipient="reading",
        selects_files=True,
        group="data",
        commands=("build", *READING_COMMANDS),
    ),
    Option(
        "features_table",
        "--features-table",
        FILE_PATHS,
        "table with the features; brainlsap then reads no features from other tables",
        "FILE",
        recipient="reading",
        selects_files=True,
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "id_column",
        "--id",
        NAMES,
        "table column with the participant ID, for example eid",
        "COLUMNS",
        recipient="reading",
        selects_files=True,
        stored_model="default",
        group="data",
        commands=("build", *READING_COMMANDS),
    ),
    Option(
        "session_column",
        "--session",
        NAMES,
        "table column with the visit, for example wave",
        "COLUMNS",
        recipient="reading",
        selects_files=True,
        stored_model="default",
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "derivatives",
        "--derivatives",
        FOLDER_PATHS,
        "folder with the results of another program; the option may be repeated",
        "FOLDER",
        recipient="reading",
        selects_files=True,
        is_repeatable=True,
        group="data",
        commands=("build", *READING_COMMANDS),
    ),
    Option(
        "pattern",
        "--pattern",
        FILE_PATTERNS,
        "file-name pattern of connectomes, for example '*_count.csv'",
        "PATTERN",
        recipient="reading",
        selects_files=True,
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "labels",
        "--labels",
        FILE_PATH_OR_NAMES,
        "file that lists the region of every row, for connectomes without region names",
        "FILE",
        recipient="reading",
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "row_order",
        "--row-order",
        TEXT,
        "order of the rows in connectomes without region names, for example 'atlas', "
        "'labels', 'mrtrix', 'ukbiobank', 'micapipe' or 'enigma'; if the option is "
        "missing, an error message lists the orders that fit the connectomes",
        "NAME",
        recipient="reading",
        stored_model="default",
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "negative",
        "--negative",
        TEXT,
        "what to do if a connectome has negative weights: reject the connectome "
        "('refuse', default), set the weights to 0 ('drop'), or use their absolute "
        "values ('absolute')",
        choices=("refuse", "drop", "absolute"),
        recipient="reading",
        stored_model="fixed",
        group="data",
        commands=READING_COMMANDS,
    ),
    Option(
        "measure", "", TEXT, recipient="reading", stored_model="fixed", group="data"
    ),
    Option(
        "symmetrize",
        "",
        TEXT,
        choices=("refuse", "mean", "max"),
        recipient="reading",
        stored_model="fixed",
        group="data",
    ),
    Option(
        "frames",
        "",
        TIME_WINDOW,
        recipient="reading",
        stored_model="fixed",
        group="data",
    ),
    Option(
        "reference", "", TEXT, recipient="reading", stored_model="fixed", group="data"
    ),
    Option(
        "merge_classes",
        "--merge-classes",
        CLASS_GROUPS,
        "scheme that merges classes: '5-to-3', '5-to-2', 'cn-or-ad', 'early-or-late', "
        "or your own scheme, for example healthy=CN+SMC,ill=AD",
        "SCHEME",
        recipient="study",
        group="data",
        commands=("check", "run", "fit"),
    ),
    Option(
        "merge_classes",
        "--merge-classes",
        CLASS_GROUPS,
        "rename labels of this study to classes of the model, for example "
        "CN=Control,AD=Dementia; scans are left out if their label, after renaming, is "
        "not a class of the model",
        "SCHEME",
        group="data",
        commands=("evaluate",),
    ),
    Option(
        "explain",
        "--explain",
        TEXT,
        "draw how much every region contributes to the prediction for this participant "
        "(only for ridge regressions, for example LSAP-R); the figure contains "
        "personal data; it is saved in the folder of the output table",
        "ID",
        changes_results=False,
        commands=("predict",),
    ),
    Option(
        "ids_are_new",
        "--ids-are-new",
        SWITCH,
        "confirm that a new participant and a training participant with the same ID "
        "are different people",
        commands=("predict", "evaluate"),
    ),
    # Options of LSAPClassifier, preset and seed also of run_study.
    Option(
        "preset",
        "--preset",
        TEXT,
        "settings of the LSAP networks: those of brainlsap ('default') or of Sim et "
        "al. 2024 ('paper')",
        choices=("default", "paper"),
        recipient="study",
        group="model",
        commands=("run", "fit"),
    ),
    Option(
        "threshold",
        "--threshold",
        NUMBER,
        "remove connections with a weight below this value (default: 0, so that all "
        "connections are kept; with --preset paper: 10)",
        "X",
        recipient="model",
        group="model",
        commands=("run", "fit"),
    ),
    Option(
        "weights",
        "--weights",
        TEXT,
        "connection weights: as in the connectome ('weighted', default), log(1 + "
        "weight) ('log'), or 1 for every connection ('binary', used by --preset paper)",
        choices=("weighted", "log", "binary"),
        recipient="model",
        group="model",
        commands=("run", "fit"),
    ),
    Option(
        "head",
        "--head",
        TEXT,
        "output layer of the network: 'softmax' (default), or 'ordinal' (CORN loss); "
        "only 'ordinal' uses the order of the classes",
        choices=("softmax", "ordinal"),
        recipient="model",
        group="model",
        commands=("run", "fit"),
    ),
    Option(
        "n_epochs",
        "--epochs",
        WHOLE_NUMBER,
        "maximum number of training epochs",
        "N",
        recipient="model",
        group="model",
        commands=("demo", "run", "fit", "nodes"),
    ),
    Option(
        "random_state",
        "--seed",
        WHOLE_NUMBER,
        "seed of all random numbers (default: 0)",
        "N",
        recipient="study",
        group="model",
        commands=("demo", "simulate", "run", "fit"),
    ),
    Option(
        "device",
        "--device",
        TEXT,
        "device for training: 'cpu' (default) or 'cuda'",
        "NAME",
        recipient="model",
        changes_results=False,
        group="model",
        commands=("run", "fit", "nodes"),
    ),
    Option(
        "class_prior",
        "--class-prior",
        CLASS_SHARES,
        "assumed shares of the classes among new participants: the shares in the "
        "training data ('training', default), equal shares ('balanced'), or your own "
        "shares, for example CN=0.8,AD=0.2; predicted probabilities depend on these "
        "shares",
        "SHARES",
        recipient="model",
        group="model",
        commands=("fit",),
    ),
    Option(
        "class_prior",
        "--class-prior",
        CLASS_SHARES,
        "assumed shares of the classes among new participants: the shares in the "
        "training data ('training'), equal shares ('balanced'), or your own shares, "
        "for example CN=0.8,AD=0.2; predicted probabilities depend on these shares",
        "SHARES",
        group="probabilities",
        commands=MODEL_COMMANDS,
    ),
    Option(
        "start",
        "",
        TEXT,
        choices=("ridge", "constant"),
        recipient="model",
        group="model",
    ),
    Option("kernel", "", TEXT, recipient="model", group="model"),
    Option(
        "scale_mode",
        "",
        TEXT,
        choices=("region", "global", "frozen"),
        recipient="model",
        group="model",
    ),
    Option("initial_scale", "", NUMBER_OR_EVIDENCE, recipient="model", group="model"),
    Option("max_scale", "", NUMBER, recipient="model", group="model"),
    Option("n_layers", "", WHOLE_NUMBER, recipient="model", group="model"),
    Option("hidden_units", "", WHOLE_NUMBER, recipient="model", group="model"),
    Option(
        "class_weight",
        "",
        TEXT,
        choices=("balanced", "none"),
        recipient="model",
        group="model",
    ),
    Option("n_starts", "", WHOLE_NUMBER, recipient="model", group="model"),
    Option(
        "n_threads",
        "",
        WHOLE_NUMBER,
        recipient="model",
        changes_results=False,
        group="model",
    ),
    Option("degree", "", WHOLE_NUMBER, recipient="model", group="model"),
    Option("tolerance", "", NUMBER, recipient="model", group="model"),
    Option("scale_step", "", NUMBER, recipient="model", group="model"),
    Option("scale_clip", "", NUMBER, recipient="model", group="model"),
    Option(
        "scale_penalty",
        "",
        TEXT,
        choices=("none", "barrier", "l1"),
        recipient="model",
        group="model",
    ),
    Option("penalty_weight", "", NUMBER, recipient="model", group="model"),
    Option("readout_units", "", WHOLE_NUMBER, recipient="model", group="model"),
    Option(
        "standardize",
        "",
        TEXT,
        choices=("region", "scan"),
        recipient="model",
        group="model",
    ),
    Option("dropout", "", NUMBER, recipient="model", group="model"),
    Option("learning_rate", "", NUMBER, recipient="model", group="model"),
    Option("weight_decay", "", NUMBER, recipient="model", group="model"),
    Option("readout_penalty", "", NUMBER, recipient="model", group="model"),
    Option("patience", "", WHOLE_NUMBER, recipient="model", group="model"),
    Option("validation_fraction", "", NUMBER, recipient="model", group="model"),
    Option("batch_size", "", WHOLE_NUMBER, recipient="model", group="model"),
    Option(
        "inputs",
        "",
        TEXT,
        choices=("constant", "features"),
        recipient="model",
        group="model",
    ),
    # Options of run_study.
    Option(
        "models",
        "--models",
        NAMES,
        "models to compare, by name or by group; names: for example LSAP-C (default), "
        "LSAP-R, LSAP-H, LSAP-L, Exact, MLP or GCN; groups: 'models' (all models), "
        "'controls' (LSAP-C and its controls) or 'all' (all models and controls)",
        "NAMES",
        recipient="study",
        group="evaluation",
        commands=("run",),
    ),
    Option(
        "models",
        "--models",
        TEXT,
        "model to fit: LSAP-C (default), LSAP-R, LSAP-H, LSAP-L, Exact, or the name "
        "of any other network or ridge regression of the report",
        "NAME",
        group="model",
        commands=("fit",),
    ),
    Option(
        "scores",
        "--scores",
        FOLDER_PATH,
        "results folder that brainlsap run wrote for this study; brainlsap copies the "
        "scores of the model from this folder into the model card",
        "RESULTS",
        group="model",
        changes_results=False,
        commands=("fit",),
    ),
    Option(
        "cv",
        "--folds",
        WHOLE_NUMBER,
        "number of folds into which participants are divided for cross-validation "
        "(default: 5)",
        "N",
        recipient="study",
        group="evaluation",
        commands=("demo", "check", "run"),
    ),
    Option(
        "leave_out",
        "--leave-out",
        TEXT,
        "make one test fold for each value of this column, for example for each site; "
        "the fold contains all participants with this value",
        "COLUMN",
        recipient="study",
        group="evaluation",
        commands=("check", "run"),
    ),
    Option(
        "n_repeats",
        "--repeats",
        WHOLE_NUMBER,
        "number of cross-validations, each with new folds (default: 1)",
        "N",
        recipient="study",
        group="evaluation",
        commands=("run",),
    ),
    Option(
        "splits",
        "--splits",
        FILE_PATH,
        "table with your own folds, in the columns scan, repeat and fold",
        "FILE",
        recipient="study",
        group="evaluation",
        commands=("run",),
    ),
    Option(
        "covariates",
        "--covariates",
        NAMES,
        "test whether brain features improve a prediction from these covariates, for "
        "example age,sex,education (default: age and sex, if the table has them)",
        "NAMES",
        recipient="study",
        group="evaluation",
        commands=("run",),
    ),
    Option(
        "subgroups",
        "--subgroups",
        NAMES,
        "compute the score of the main model in the groups of participants that these "
        "table columns define (default: sex, age, site and scanner, if the table has "
        "them); a numeric column divides the participants into thirds",
        "COLUMNS",
        recipient="study",
        group="evaluation",
        commands=("run",),
    ),
    Option(
        "subgroups",
        "--subgroups",
        NAMES,
        "compute the score of the model in the groups of participants that these table "
        "columns define (default: sex, age, site and scanner, if the table has them); "
        "a numeric column divides the participants into thirds",
        "COLUMNS",
        commands=("evaluate",),
    ),
    Option(
        "subgroups",
        "--subgroups",
        NAMES,
        "compute the score of the main model in the groups of participants that these "
        "columns of the stored table define (default: the columns of the last report); "
        "a numeric column divides the participants into thirds",
        "COLUMNS",
        commands=("report",),
    ),
    Option(
        "n_permutations",
        "--permutations",
        WHOLE_NUMBER,
        "number of label permutations in the tests of regions (default: 200)",
        "N",
        recipient="study",
        group="evaluation",
        commands=("run",),
    ),
    Option(
        "harmonize",
        "--harmonize",
        TEXT,
        "remove the effect of this column, for example site, from the features; the "
        "method is ComBat, fitted to the training scans",
        "COLUMN",
        recipient="study",
        group="evaluation",
        commands=("run", "fit"),
    ),
    Option(
        "regress_out",
        "--regress-out",
        NAMES,
        "remove the effects of these covariates, for example age,sex, from the "
        "features; the method is linear regression, fitted to the training scans; "
        "class differences that are correlated with the covariates are removed, too",
        "NAMES",
        recipient="study",
        group="evaluation",
        commands=("run", "fit"),
    ),
    Option(
        "learning_curve",
        "--learning-curve",
        SWITCH,
        "estimate whether more participants would improve the score: also fit the main "
        "model and LSAP-R to 25, 50 and 75% of the training participants, with four "
        "random subsets for each percentage",
        recipient="study",
        group="evaluation",
        commands=("run",),
    ),
    Option(
        "table1",
        "--table1",
        NAMES,
        "covariates in the table of participants, for example age,sex,education "
        "(default: age, sex and site, if the study has them; default of `brainlsap "
        "report`: the covariates of the last report)",
        "NAMES",
        recipient="study",
        changes_results=False,
        group="output",
        commands=("run", "report"),
    ),
    Option(
        "table1_holm",
        "--table1-holm",
        SWITCH,
        "add p-values with Holm's correction for the number of tests to the table of "
        "participants",
        recipient="study",
        changes_results=False,
        group="output",
        commands=("run", "report"),
    ),
    Option(
        "reference_class",
        "--reference-class",
        TEXT,
        "learn the corrections of --harmonize and --regress-out from the training "
        "participants of this class only, for example CN; all participants are "
        "corrected (W-scores)",
        "CLASS",
        recipient="study",
        group="evaluation",
        commands=("run", "fit"),
    ),
    Option("baselines", "", SWITCH, recipient="study", group="evaluation"),
    Option(
        "title", "", TEXT, recipient="study", changes_results=False, group="evaluation"
    ),
    Option(
        "overwrite",
        "--overwrite",
        SWITCH,
        "replace existing output, including the output of another study",
        recipient="study",
        changes_results=False,
        group="output",
        commands=("demo", "run", "report", "fit", *MODEL_COMMANDS),
    ),
    Option(
        "n_jobs",
        "--jobs",
        N_JOBS,
        "number of parallel processes (default: all cores)",
        "N",
        recipient="study",
        changes_results=False,
        group="output",
        commands=("demo", "run"),
    ),
    Option(
        "config",
        "--config",
        FILE_PATH,
        "settings file (TOML) that can set these options, and also settings that have "
        "no option; options on the command line take precedence over the file",
        "FILE",
        group="output",
        commands=("check", "run", "fit"),
    ),
)
"""Every option of the commands and of settings files, in the order of help texts."""

CONFIGURABLE = tuple(
    option_record for option_record in OPTIONS if option_record.recipient != "command"
)
"""Every option that a settings file may set."""


@dataclass(frozen=True)
class OptionGroup:
    """Options of a command that its help text lists under one title."""

    title: str
    options: tuple[Option, ...]


def _adapt_option_to_command(option_record: Option, command_name: str) -> Option:
    """Return an option as a command describes it.

    For a stored model the default of a stored option is that of the fit.
    """
    if command_name not in MODEL_COMMANDS or not option_record.stored_model:
        return option_record
    text_before, _, text_after = option_record.help.partition(" (default")
    return replace(option_record, help=text_before + text_after.partition(")")[2])


def _make_option_groups(command_name: str) -> tuple[OptionGroup, ...]:
    """Return the options of a command by their titles in its help text."""
    title_by_group = GROUP_TITLES[command_name]
    options_by_title: dict[str, list[Option]] = {
        group_title: [] for group_title in title_by_group.values()
    }
    for option_record in OPTIONS:
        if command_name in option_record.commands:
            group_title = title_by_group.get(option_record.group) or title_by_group[""]
            options_by_title[group_title].append(
                _adapt_option_to_command(option_record, command_name)
            )
    return tuple(
        OptionGroup(group_title, tuple(group_options))
        for group_title, group_options in options_by_title.items()
    )


def _check_option_entry(option_record: Option) -> None:
    """Raise where an entry contradicts itself, or names an unknown command."""
    unknown_commands = {*option_record.commands} - {*GROUP_TITLES}
    has_command = bool(option_record.commands)
    problem_text = ""
    if unknown_commands:
        problem_text = f"unknown commands {sorted(unknown_commands)}"
    elif has_command != bool(option_record.flag):
        problem_text = "an option must have both a flag and commands, or neither"
    elif has_command and not option_record.help:
        problem_text = "an option with a flag needs a help text"
    elif not has_command and option_record.recipient == "command":
        problem_text = (
            "no command and no settings file can set this option; give it a recipient"
        )
    if problem_text:
        raise TypeError(f"option {option_record.name!r}: {problem_text}.")


def _check_options() -> None:
    """Raise where a command, or settings files, would have two options of one name."""
    for option_record in OPTIONS:
        _check_option_entry(option_record)
    for command_name in COMMANDS:
        command_options = list_command_options(command_name)
        _check_unique([o.name for o in command_options], f"brainlsap {command_name}")
        _check_unique([o.flag for o in command_options], f"brainlsap {command_name}")
    _check_unique(
        [option_key for o in CONFIGURABLE for option_key in o.keys], "settings files"
    )


def _check_unique(all_names: Sequence[str], place_text: str) -> None:
    """Raise where a name occurs twice in a place."""
    for name, n_uses in Counter(all_names).items():
        if n_uses > 1:
            raise TypeError(f"{n_uses} options of {place_text} have the name {name}.")


def list_command_options(command_name: str) -> tuple[Option, ...]:
    """Return all options of a command."""
    return tuple(
        option_record
        for option_group in COMMANDS[command_name]
        for option_record in option_group.options
    )


COMMANDS: dict[str, tuple[OptionGroup, ...]] = {
    command: _make_option_groups(command) for command in GROUP_TITLES
}
"""The options of every command, by the name of its function."""
_check_options()


def check_whole_numbers(value_by_option: Mapping[str, object]) -> None:
    """Raise ParameterError for a whole number that is none or outside its limits."""
    for option_record in CONFIGURABLE:
        option_value = value_by_option.get(option_record.name)
        if not isinstance(option_record.kind, WholeNumber) or option_value is None:
            continue
        try:
            option_record.kind.convert(option_value)
        except ValueError:
            raise ParameterError(
                f"{option_name(option_record.name)} must be "
                f"{option_record.kind.expected_text}; got {option_value!r}."
            ) from None


def list_settings_option_names(
    recipient: str = "",
    *,
    selects_files: bool = False,
    changes_results: bool = False,
    stored_model: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return the Python names of options of settings files that meet all conditions.

    Parameters
    ----------
    recipient : str
        As :attr:`Option.recipient`; "" for any.
    selects_files : bool
        Only options that select files or participants.
    changes_results : bool
        Only options that may change a number in the results.
    stored_model : iterable of str
        Only options with one of these values of :attr:`Option.stored_model`; none for
        any.
    """
    stored_model_values = tuple(stored_model)
    selected_options: tuple[Option, ...] = CONFIGURABLE
    if recipient:
        selected_options = tuple(
            o for o in selected_options if o.recipient == recipient
        )
    if selects_files:
        selected_options = tuple(o for o in selected_options if o.selects_files)
    if changes_results:
        selected_options = tuple(o for o in selected_options if o.changes_results)
    if stored_model_values:
        selected_options = tuple(
            o for o in selected_options if o.stored_model in stored_model_values
        )
    return tuple(option_record.name for option_record in selected_options)


# Section headings that a settings file may use; they have no effect.
SECTIONS = ("data", "study", "model", "options")


def read_value_by_option(path: str | Path) -> dict[str, object]:
    """Read a settings file; return its values by Python name.

    Raises
    ------
    FileFormatError
        If the file is not valid TOML.
    BrainlsapError
        If a key is unknown or set twice, or a value has the wrong type.
    """
    with convert_reading_errors(path, "a TOML file"):
        file_content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    option_by_key = {
        option_key: option_record
        for option_record in CONFIGURABLE
        for option_key in option_record.keys
    }
    value_by_file_option: dict[str, object] = {}
    first_key_by_option: dict[str, str] = {}
    unknown_keys: list[str] = []
    for file_key, file_value in _iter_settings(path, file_content):
        option_record = option_by_key.get(file_key.replace("-", "_"))
        if option_record is None:
            nearest_key = _find_nearest_key(file_key, option_by_key)
            unknown_keys.append(f"{file_key!r} (nearest: {nearest_key!r})")
            continue
        if option_record.name in value_by_file_option:
            first_key = first_key_by_option[option_record.name]
            alias_note = ""
            if first_key != file_key:
                alias_note = f" {file_key} and {first_key} name the same option."
            raise BrainlsapError(
                f"{file_key} is set twice in the file.{alias_note} Keep only one of "
                "these lines.",
                path=path,
            )
        try:
            value_by_file_option[option_record.name] = option_record.convert(file_value)
        except ValueError as error:
            raise BrainlsapError(f"{file_key} {error}.", path=path) from error
        first_key_by_option[option_record.name] = file_key
    if unknown_keys:
        raise BrainlsapError(
            f"unknown settings: {', '.join(unknown_keys)}. A setting must have the "
            "name of a command-line option without --, or the name of a parameter of "
            "load_cohort, run_study or LSAPClassifier.",
            path=path,
        )
    return value_by_file_option


def _iter_settings(
    path: str | Path, file_content: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    """Yield the keys and values of a settings file, including those in sections."""
    for entry_key, entry_value in file_content.items():
        if entry_key not in SECTIONS:
            yield entry_key, entry_value
        elif isinstance(entry_value, dict):
            yield from _iter_settings(path, entry_value)
        else:
            raise BrainlsapError(
                f"{entry_key} must be a section, [{entry_key}], got {entry_value!r}.",
                path=path,
            )


def _find_nearest_key(unknown_key: str, valid_keys: Iterable[str]) -> str:
    """Return the valid key or section with the most similar spelling."""
    valid_names = [*valid_keys, *SECTIONS]
    return difflib.get_close_matches(
        unknown_key.replace("-", "_"), valid_names, n=1, cutoff=0.0
    )[0]
