"""Every option of the commands and of `--config`, declared once.

An :class:`Option` is one record: what it is called in Python, as a flag and in a file
of settings, how its value is written, its help, which function takes it, and whether it
changes results. The command line (:mod:`brainlsap.cli`), files of settings
(:func:`read_config`), the reader of studies and stored models read this table.

To add an option to several commands, add a record to one of the tuples below; to a
single command, to its entry of :data:`COMMANDS`.
"""

import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from brainlsap.exceptions import BrainlsapError, reading


@dataclass(frozen=True)
class Kind:
    """How the value of an option is written.

    Attributes
    ----------
    expected
        What a value must be, for messages: "<option> must be <expected>".
    convert
        Check a value of a TOML file and return it as Python takes it; raise ValueError
        where it has another type.
    parse
        Return the value that a text of the command line stands for; raise ValueError
        where it stands for none.
    """

    expected: str
    convert: Callable[[Any], Any]
    parse: Callable[[str], Any]


def _convert_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _split_names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _convert_names(value: Any) -> list[str]:
    if isinstance(value, str):  # as on the command line
        return _split_names(value)
    return _convert_texts(value)


def _convert_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise ValueError
    return [_convert_text(entry) for entry in value]


def _convert_text_or_texts(value: Any) -> str | list[str]:
    return value if isinstance(value, str) else _convert_texts(value)


def _convert_whole_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError
    return value


def _parse_whole_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError
    return int(text)


def _convert_n_jobs(value: Any) -> int:
    return -1 if value == -1 else _convert_whole_number(value)


def _parse_n_jobs(text: str) -> int:
    return -1 if text == "-1" else _parse_whole_number(text)


def _convert_number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise ValueError
    return value


def _parse_number(text: str) -> float:
    return _convert_number(float(text))


def _convert_scale(value: Any) -> float | str:
    return value if value == "evidence" else _convert_number(value)


def _parse_scale(text: str) -> float | str:
    return text if text == "evidence" else _parse_number(text)


def _convert_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _parse_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError
    return text == "true"


def _convert_window(value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError
    return _convert_number(value[0]), _convert_number(value[1])


def _parse_window(text: str) -> tuple[float, float]:
    return _convert_window([float(part) for part in text.split(",")])


def _convert_patterns(value: Any) -> str | dict[str, str]:
    if isinstance(value, dict):
        return {name: _convert_text(pattern) for name, pattern in value.items()}
    return _convert_text(value)


def _convert_merged_classes(value: Any) -> str | dict[str, list[str]]:
    if not isinstance(value, dict):
        return _convert_text(value)
    return {name: _convert_texts(classes) for name, classes in value.items()}


def _parse_pair(text: str) -> tuple[str, str]:
    name, words = text.split("=", 1)
    return name, words


def _convert_shares(value: Any) -> str | dict[str, float]:
    if isinstance(value, dict):
        return {name: _convert_number(share) for name, share in value.items()}
    return _parse_shares(_convert_text(value))


def _parse_shares(text: str) -> str | dict[str, float]:
    if "=" not in text:
        return text
    shares = {}
    for part in _split_names(text):
        name, _, share = part.rpartition("=")
        shares[name.strip()] = _parse_number(share)
    return shares


TEXT = Kind("text", _convert_text, str)
FILE = Kind("the path of a file, as text", _convert_text, str)
FOLDER = Kind("the path of a folder, as text", _convert_text, str)
FOLDERS = Kind("the path of a folder, or a list of them", _convert_texts, str)
FILES = Kind("the path of a file, or a list of them", _convert_texts, str)
FILE_OR_NAMES = Kind("a path, or a list of names", _convert_text_or_texts, str)
NAMES = Kind("a name, or a list of names", _convert_names, _split_names)
WHOLE_NUMBER = Kind(
    "a whole number of at least 0", _convert_whole_number, _parse_whole_number
)
N_JOBS = Kind(
    "a whole number of at least 0, or -1 for all cores", _convert_n_jobs, _parse_n_jobs
)
NUMBER = Kind("a number", _convert_number, _parse_number)
SCALE = Kind('a number, or "evidence"', _convert_scale, _parse_scale)
YES_NO = Kind("true or false", _convert_bool, _parse_bool)
WINDOW = Kind("two numbers, [start, end]", _convert_window, _parse_window)
PATTERNS = Kind(
    "text, or a table of text by connectome, feature or freesurfer",
    _convert_patterns,
    str,
)
MERGED_CLASSES = Kind(
    "text, or a table with a list of classes for each new class",
    _convert_merged_classes,
    str,
)
PAIR = Kind("NAME=WORDS", _convert_text, _parse_pair)
SHARES = Kind(
    "training, balanced, or a share for each class (CN=0.8,AD=0.2)",
    _convert_shares,
    _parse_shares,
)


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes
    ----------
    name
        Parameter in Python, and key of a file of settings.
    flag
        `--flag` on the command line, where its name without dashes is a second key of
        files; in capitals an argument without a flag; "" in files of settings only.
    kind
        How its value is written.
    help
        What the command line says about it; required where it has a flag.
    metavar
        What stands for the value in the help; "" for a flag without a value.
    choices
        All values, where these are a few words.
    takes
        The function that takes it: "reading" for :func:`brainlsap.load_cohort`,
        "study" for :func:`brainlsap.run_study`, "model" for
        :class:`brainlsap.LSAPClassifier`, "command" for that command alone. All but
        those of "command" may stand in a file of settings.
    changes_results
        Whether another value may change a number of the results (beyond rounding).
    selects_files
        Whether it decides who is in a study and which files are read: these are the
        parameters of :func:`brainlsap.data.load.open_study`.
    stored_model
        What a stored model does with it: "default" reads new people with the value of
        the fit unless told otherwise; "fixed" refuses another value; "" forgets it.
    is_required, is_repeatable
        On the command line.
    """

    name: str
    flag: str
    kind: Kind
    help: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    takes: Literal["reading", "study", "model", "command"] = "command"
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
        """Return the keys of a file of settings, the Python name first."""
        spelling = self.flag.removeprefix("--").replace("-", "_")
        return tuple(dict.fromkeys(key for key in (self.name, spelling) if key))

    def parse(self, text: str) -> Any:
        """Return the value of a text of the command line."""
        try:
            return self.kind.parse(text)
        except ValueError as error:
            raise ValueError(f"must be {self.kind.expected}, got {text!r}") from error

    def convert(self, value: Any) -> Any:
        """Return the value of a file of settings as Python takes it."""
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        if self.choices and (not isinstance(value, str) or value not in self.choices):
            choices = ", ".join(map(repr, self.choices))
            raise ValueError(f"must be one of {choices}, got {shown}")
        try:
            return self.kind.convert(value)
        except ValueError as error:
            raise ValueError(f"must be {self.kind.expected}, got {shown}") from error


@dataclass(frozen=True)
class Group:
    """Options of a command that stand below one title in its help."""

    title: str
    options: tuple[Option, ...]


# Options of load_cohort. New ones that people see go to DATA, rare ones to READING.
STUDY = Option("study", "STUDY", FOLDER, "folder of a study, or a cohort's file (.h5)")
ATLAS = Option(
    "atlas",
    "--atlas",
    TEXT,
    "name, folder or regions.tsv (default: destrieux160)",
    "NAME",
    takes="reading",
    stored_model="default",
)
SUBJECTS_DIR = Option(
    "subjects_dir",
    "--subjects-dir",
    FOLDER,
    "FreeSurfer's subjects",
    "FOLDER",
    takes="reading",
    selects_files=True,
)
DERIVATIVES = Option(
    "derivatives",
    "--derivatives",
    FOLDERS,
    "results of other programs; may be repeated",
    "FOLDER",
    takes="reading",
    selects_files=True,
    is_repeatable=True,
)
ID_COLUMN = Option(
    "id_column",
    "--id",
    NAMES,
    "of tables, that name people, such as eid",
    "COLUMNS",
    takes="reading",
    selects_files=True,
    stored_model="default",
)
DATA = (
    ATLAS,
    Option(
        "feature",
        "--feature",
        NAMES,
        "thickness (default), volume, area, fdg, amyloid, tau, strength, or columns "
        "of your tables",
        "NAMES",
        takes="reading",
        stored_model="default",
    ),
    Option(
        "label",
        "--label",
        TEXT,
        "to predict (default: diagnosis)",
        "COLUMN",
        takes="reading",
        selects_files=True,
    ),
    Option(
        "classes",
        "--classes",
        NAMES,
        "labels in order of stage; others are left out",
        "NAMES",
        takes="reading",
        selects_files=True,
    ),
    Option(
        "connectome",
        "--connectome",
        FILE,
        "one for everybody; none: made of the features",
        "FILE",
        takes="reading",
    ),
    Option(
        "scans",
        "--scans",
        TEXT,
        "which visits (default: all)",
        choices=("all", "baseline"),
        takes="reading",
        selects_files=True,
    ),
    Option(
        "subcortex",
        "--subcortex",
        TEXT,
        "for its thickness and area (default: absent)",
        choices=("absent", "mean", "volume"),
        takes="reading",
        selects_files=True,
        stored_model="fixed",
    ),
    SUBJECTS_DIR,
    Option(
        "features_table",
        "--features-table",
        FILES,
        "the only table in which features are looked for",
        "FILE",
        takes="reading",
        selects_files=True,
    ),
    ID_COLUMN,
    Option(
        "session_column",
        "--session",
        NAMES,
        "of tables, that name visits",
        "COLUMNS",
        takes="reading",
        selects_files=True,
        stored_model="default",
    ),
    DERIVATIVES,
    Option(
        "pattern",
        "--pattern",
        PATTERNS,
        "of connectome files, such as '*_count.csv'",
        "PATTERN",
        takes="reading",
        selects_files=True,
    ),
    Option(
        "labels",
        "--labels",
        FILE_OR_NAMES,
        "names of the rows of unnamed matrices",
        "FILE",
        takes="reading",
    ),
    Option(
        "row_order",
        "--row-order",
        TEXT,
        "of unnamed rows: atlas, labels, mrtrix, ukbiobank, micapipe, enigma ... (a "
        "refusal lists those that fit)",
        "NAME",
        takes="reading",
        stored_model="default",
    ),
    Option(
        "negative",
        "--negative",
        TEXT,
        "weights of connectomes below 0 (default: refuse)",
        choices=("refuse", "drop", "absolute"),
        takes="reading",
        stored_model="fixed",
    ),
)
READING = (
    Option("measure", "", TEXT, takes="reading", stored_model="fixed"),
    Option(
        "symmetrize",
        "",
        TEXT,
        choices=("refuse", "mean", "max"),
        takes="reading",
        stored_model="fixed",
    ),
    Option("frames", "", WINDOW, takes="reading", stored_model="fixed"),
    Option("reference", "", TEXT, takes="reading", stored_model="fixed"),
)

OVERWRITE = Option(
    "overwrite",
    "--overwrite",
    YES_NO,
    "replace what stands there, also of another study",
    takes="study",
    changes_results=False,
)

# Options of run_study.
MERGE_CLASSES = Option(
    "merged_classes",
    "--merge-classes",
    MERGED_CLASSES,
    "5-to-3, 5-to-2, cn-or-ad, early-or-late, or well=CN+SMC,ill=AD",
    "HOW",
    takes="study",
)
STEPS = (
    Option(
        "harmonize",
        "--harmonize",
        TEXT,
        "such as site: taken out by ComBat inside the folds",
        "COLUMN",
        takes="study",
    ),
    Option(
        "regress_out",
        "--regress-out",
        NAMES,
        "such as age,sex: regressed out inside the folds",
        "NAMES",
        takes="study",
    ),
)
FOLDS = (
    Option("cv", "--folds", WHOLE_NUMBER, "by person (default: 5)", "N", takes="study"),
    Option(
        "leave_out",
        "--leave-out",
        TEXT,
        "such as site: each of its values is a test fold once",
        "COLUMN",
        takes="study",
    ),
)
MODELS = Option(
    "models",
    "--models",
    NAMES,
    "LSAP-C (default), LSAP-H, LSAP-L, Exact, MLP, GCN ...; or all, models, controls",
    "NAMES",
    takes="study",
)
REPEATS = Option(
    "n_repeats",
    "--repeats",
    WHOLE_NUMBER,
    "how often folds are drawn anew (default: 1)",
    "N",
    takes="study",
)
SPLITS = Option(
    "splits",
    "--splits",
    FILE,
    "folds of your own: scan, repeat, fold",
    "FILE",
    takes="study",
)
PERMUTATIONS = Option(
    "n_permutations",
    "--permutations",
    WHOLE_NUMBER,
    "of labels, for p-values of regions (default: 200)",
    "N",
    takes="study",
)
JOBS = Option(
    "n_jobs",
    "--jobs",
    N_JOBS,
    "processes (default: as many as cores)",
    "N",
    takes="study",
    changes_results=False,
)
STUDYING = (
    Option("baselines", "", YES_NO, takes="study"),
    Option("title", "", TEXT, takes="study", changes_results=False),
    OVERWRITE,
)

# Options of LSAPClassifier; preset and seed are also those of run_study.
EPOCHS = Option("n_epochs", "--epochs", WHOLE_NUMBER, "at most", "N", takes="model")
SEED = Option(
    "random_state",
    "--seed",
    WHOLE_NUMBER,
    "of all chance (default: 0)",
    "N",
    takes="study",
)
MODEL = (
    Option(
        "preset",
        "--preset",
        TEXT,
        "training as we do it, or as published",
        choices=("default", "paper"),
        takes="study",
    ),
    Option(
        "threshold",
        "--threshold",
        NUMBER,
        "drop weaker links (paper: 10 streamlines)",
        "X",
        takes="model",
    ),
    Option(
        "weights",
        "--weights",
        TEXT,
        "of links (default: weighted; paper: binary)",
        choices=("weighted", "log", "binary"),
        takes="model",
    ),
    Option(
        "head",
        "--head",
        TEXT,
        "ordinal: classes in order, CORN",
        choices=("softmax", "ordinal"),
        takes="model",
    ),
    EPOCHS,
    SEED,
)
KERNEL = Option(
    "kernel",
    "--kernel",
    TEXT,
    "chebyshev (default), exact, hermite, laguerre",
    "NAME",
    takes="model",
)
CLASS_PRIOR = Option(
    "class_prior",
    "--class-prior",
    SHARES,
    "of classes, which probabilities assume: training (default), balanced, or such as "
    "CN=0.8,AD=0.2",
    "SHARES",
    takes="model",
)
TRAINING = (
    Option("start", "", TEXT, choices=("ridge", "constant"), takes="model"),
    Option(
        "scale_mode",
        "",
        TEXT,
        choices=("region", "global", "frozen"),
        takes="model",
    ),
    Option("initial_scale", "", SCALE, takes="model"),
    Option("max_scale", "", NUMBER, takes="model"),
    Option("n_layers", "", WHOLE_NUMBER, takes="model"),
    Option("hidden_units", "", WHOLE_NUMBER, takes="model"),
    Option("class_weight", "", TEXT, choices=("balanced", "none"), takes="model"),
    Option("n_starts", "", WHOLE_NUMBER, takes="model"),
    Option("device", "", TEXT, takes="model", changes_results=False),
    Option("n_threads", "", WHOLE_NUMBER, takes="model", changes_results=False),
    Option("degree", "", WHOLE_NUMBER, takes="model"),
    Option("tolerance", "", NUMBER, takes="model"),
    Option("scale_step", "", NUMBER, takes="model"),
    Option("scale_clip", "", NUMBER, takes="model"),
    Option("scale_penalty", "", TEXT, choices=("none", "barrier", "l1"), takes="model"),
    Option("penalty_weight", "", NUMBER, takes="model"),
    Option("readout_units", "", WHOLE_NUMBER, takes="model"),
    Option("standardize", "", TEXT, choices=("region", "scan"), takes="model"),
    Option("dropout", "", NUMBER, takes="model"),
    Option("learning_rate", "", NUMBER, takes="model"),
    Option("weight_decay", "", NUMBER, takes="model"),
    Option("readout_penalty", "", NUMBER, takes="model"),
    Option("patience", "", WHOLE_NUMBER, takes="model"),
    Option("validation_fraction", "", NUMBER, takes="model"),
    Option("batch_size", "", WHOLE_NUMBER, takes="model"),
    Option("inputs", "", TEXT, choices=("constant", "features"), takes="model"),
)
CONFIGURABLE = (
    *DATA,
    *READING,
    MERGE_CLASSES,
    *STEPS,
    *FOLDS,
    MODELS,
    REPEATS,
    SPLITS,
    PERMUTATIONS,
    JOBS,
    *STUDYING,
    *MODEL,
    KERNEL,
    CLASS_PRIOR,
    *TRAINING,
)
"""Every option that may stand in a file of settings."""


def _for_new_people(option: Option) -> Option:
    """Return an option of `predict`, whose default is the value of the fit."""
    if option.name == "label":
        return replace(option, help="to write beside, if known")
    if option.name == "scans":
        return option
    text, _, rest = option.help.partition(" (default")
    return replace(option, help=text + rest.partition(")")[2])


CONFIG = Option(
    "config",
    "--config",
    FILE,
    "TOML of these and further settings; options given here come first",
    "FILE",
)
OUT_FOLDER = Option("out", "--out", FOLDER, metavar="FOLDER", changes_results=False)
OUT_FILE = Option("out", "--out", FILE, metavar="FILE", changes_results=False)

DEMO = (
    replace(OUT_FOLDER, help="to write (default: demo)"),
    Option("n_people", "--people", WHOLE_NUMBER, "simulated (default: 120)", "N"),
    replace(FOLDS[0], help="default: 5"),
    replace(SEED, help="default: 0"),
    EPOCHS,
    Option("n_starts", "--starts", WHOLE_NUMBER, "of each fit", "N"),
    JOBS,
    OVERWRITE,
)
SIMULATE = (
    Option("out", "OUT", FOLDER, "folder to write"),
    Option("n_people", "--people", WHOLE_NUMBER, "default: 120", "N"),
    replace(ATLAS, help="default: destrieux160"),
    Option(
        "feature",
        "--feature",
        NAMES,
        "of fdg, thickness, volume (default: fdg)",
        "NAMES",
    ),
    Option(
        "style",
        "--style",
        TEXT,
        "of connectomes (default: mrtrix, numbers, where it knows them)",
        choices=("mrtrix", "named"),
    ),
    Option(
        "seeds",
        "--seed-regions",
        NAMES,
        "where disease starts (default: medial temporal lobe)",
        "NAMES",
    ),
    replace(SEED, help="default: 0"),
)
MAKE_ATLAS = (
    Option(
        "annot",
        "--annot",
        FILE,
        "lh.NAME.annot on fsaverage; rh.NAME.annot lies beside it",
        "FILE",
    ),
    Option(
        "labels",
        "--labels",
        FILE,
        "names of the regions: a table, list or FreeSurfer's lookup table",
        "FILE",
    ),
    Option("image", "--image", FILE, "NIfTI of their numbers, in MNI152", "FILE"),
)
IMPORT_ADNI = (
    Option("tables", "TABLES", FOLDER, "folder of ADNI's tables"),
    Option("images", "IMAGES", FOLDER, "folder of LONI's images"),
    Option("out", "OUT", FOLDER, "study to write"),
    Option(
        "window",
        "--window",
        WHOLE_NUMBER,
        "days between image and visit (default: 180)",
        "N",
    ),
    Option(
        "require",
        "--require",
        NAMES,
        "modalities of a visit: anat, dwi, fdg, amyloid, tau",
        "NAMES",
    ),
    Option(
        "modality",
        "--modality",
        PAIR,
        "what descriptions of it say, such as fdg=Coreg,_Avg",
        "NAME=WORDS",
        is_repeatable=True,
    ),
    Option(
        "skip_faulty",
        "--skip-faulty",
        YES_NO,
        "leave out and list what the tables say and cannot be used, for example two "
        "diagnoses of one visit or unknown words",
    ),
)
BUILD = (
    replace(STUDY, help="folder of a study"),
    replace(OUT_FOLDER, help="default: derivatives/brainlsap in the study"),
    ATLAS,
    DERIVATIVES,
    SUBJECTS_DIR,
    replace(ID_COLUMN, help="of the table of people, that name them, such as eid"),
    replace(JOBS, help="scans at once (default: 1)"),
    Option("labels", "--labels", FILE, "numbers and names of the labels", "FILE"),
)
BUILD_PATTERNS = tuple(
    Option(name.replace("-", "_"), f"--{name}", TEXT, metavar="PATTERN")
    for name in (
        "tractogram",
        "parcellation",
        "pet",
        "transform",
        "streamline-weights",
    )
)
BUILD_CONNECTOMES = (
    Option(
        "assignment",
        "--assignment",
        TEXT,
        "of ends to regions (default: radial)",
        choices=("end_voxels", "radial"),
    ),
    Option("radius", "--radius", NUMBER, "in mm (default: 4)", "X"),
    Option(
        "weight",
        "--weight",
        TEXT,
        "what a streamline adds (default: count)",
        choices=("count", "inverse_length", "inverse_node_volume", "mean_length"),
    ),
)
BUILD_SUVR = (
    Option(
        "reference",
        "--reference",
        TEXT,
        "region or mask (default: cerebellar cortex)",
        "NAME",
    ),
    Option(
        "same_space",
        "--same-space",
        YES_NO,
        "PET and tractogram lie in the parcellation's space, whatever their names",
    ),
    Option(
        "accept_low_coverage",
        "--accept-low-coverage",
        YES_NO,
        "go on where the PET covers too few regions",
    ),
)
REPORT = (
    Option("results", "RESULTS", FOLDER, "folder that run wrote"),
    replace(OUT_FOLDER, help="another folder to write (default: the same)"),
    Option("title", "--title", TEXT, "heading of the page", "TEXT"),
    Option(
        "export",
        "--export",
        FOLDER,
        "write maps of the scales there: GIFTI or NIfTI, and TSV",
        "FOLDER",
    ),
    Option(
        "parcellation",
        "--parcellation",
        FILE,
        "also write NIfTI maps in its space",
        "IMAGE",
    ),
    Option(
        "tables",
        "--tables",
        FOLDER,
        "write numbered tables there for manuscripts: LaTeX, Markdown",
        "FOLDER",
    ),
    Option(
        "figures",
        "--figures",
        FOLDER,
        "write every figure there for manuscripts: PDF",
        "FOLDER",
    ),
    OVERWRITE,
)
NODES = (
    Option("dataset", "DATASET", TEXT, "such as cora"),
    Option("data", "--data", FOLDER, "of its files (default: in ~/.cache)", "FOLDER"),
    Option("download", "--download", YES_NO, "fetch missing files"),
    Option("models", "--models", NAMES, "or all (default: lsap-c,gcn)", "NAMES"),
    Option("n_seeds", "--seeds", WHOLE_NUMBER, "how many (default: 10)", "N"),
    Option("split", "--split", TEXT, "public (default), per-class or 60-20-20", "NAME"),
    Option(
        "variant",
        "--variant",
        TEXT,
        "how scales are learned (default: chosen)",
        "NAME",
    ),
    EPOCHS,
    Option("device", "--device", TEXT, "where to train (default: cpu)", "NAME"),
    replace(
        OUT_FILE,
        help="table (.csv, .tsv) of one row a run; finished seeds are kept",
    ),
)
COMMANDS: dict[str, tuple[Group, ...]] = {
    "demo": (Group("options", DEMO),),
    "simulate": (Group("options", SIMULATE),),
    "atlas": (
        Group("options", (Option("folder", "FOLDER", FOLDER, "to make"),)),
        Group("of what", MAKE_ATLAS),
    ),
    "import_adni": (Group("options", IMPORT_ADNI),),
    "build": (
        Group("options", BUILD),
        Group("names of files", BUILD_PATTERNS),
        Group("connectomes", BUILD_CONNECTOMES),
        Group("SUVR", BUILD_SUVR),
    ),
    "check": (
        Group("data", (replace(STUDY, help="folder of a study"), *DATA, MERGE_CLASSES)),
        Group("options", (*FOLDS, CONFIG)),
    ),
    "run": (
        Group("data", (STUDY, *DATA, MERGE_CLASSES)),
        Group("model", MODEL),
        Group("evaluation", (MODELS, *FOLDS, REPEATS, SPLITS, PERMUTATIONS, *STEPS)),
        Group(
            "output",
            (
                replace(OUT_FOLDER, help="results", is_required=True),
                OVERWRITE,
                JOBS,
                CONFIG,
            ),
        ),
    ),
    "report": (Group("options", REPORT),),
    "fit": (
        Group("data", (STUDY, *DATA, MERGE_CLASSES)),
        Group("model", (*MODEL, KERNEL, CLASS_PRIOR, *STEPS)),
        Group(
            "output",
            (
                replace(OUT_FILE, help="the model's file", is_required=True),
                OVERWRITE,
                CONFIG,
            ),
        ),
    ),
    "predict": (
        Group(
            "options",
            (
                Option("model", "MODEL", FILE, "file that fit wrote"),
                STUDY,
                replace(
                    OUT_FILE,
                    help="table to write (.csv, .tsv); it names people",
                    is_required=True,
                ),
                OVERWRITE,
            ),
        ),
        Group(
            "probabilities, by default as in the fit",
            (replace(CLASS_PRIOR, help=CLASS_PRIOR.help.replace(" (default)", "")),),
        ),
        Group(
            "data, by default as in the fit; where files are is said anew",
            tuple(_for_new_people(o) for o in DATA if o.name != "classes"),
        ),
    ),
    "nodes": (Group("options", NODES),),
}
"""The options of every command, by the name of its function."""


def options_of(command: str) -> tuple[Option, ...]:
    """Return all options of a command."""
    return tuple(option for group in COMMANDS[command] for option in group.options)


def option_names(
    takes: str = "",
    *,
    selects_files: bool = False,
    stored_model: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return the Python names of options of files of settings that fulfil all of this.

    Parameters
    ----------
    takes : str
        As :attr:`Option.takes`; "" for any.
    selects_files : bool
        Only those that decide which files are read.
    stored_model : iterable of str
        Only those of which a stored model makes one of these uses; none for any.
    """
    uses = tuple(stored_model)
    return tuple(
        option.name
        for option in CONFIGURABLE
        if takes in ("", option.takes)
        and (option.selects_files or not selects_files)
        and (not uses or option.stored_model in uses)
    )


# Tables of a file of settings: they are for the reader of the file only.
SECTIONS = ("data", "study", "model", "options")


def read_config(path: str | Path) -> dict[str, Any]:
    """Read a file of settings; return values by Python name.

    Raises
    ------
    FileFormatError
        Where the file is no TOML.
    BrainlsapError
        Where a key is unknown or stands twice, or a value has another type than its
        option declares.
    """
    with reading(path, "a TOML file"):
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    by_key = {key: option for option in CONFIGURABLE for key in option.keys}
    settings: dict[str, Any] = {}
    first_keys: dict[str, str] = {}
    unknown: list[str] = []
    for key, value in _entries(path, content):
        option = by_key.get(key.replace("-", "_"))
        if option is None:
            unknown.append(f"{key!r} (nearest: {_nearest(key, by_key)!r})")
            continue
        if option.name in settings:
            first = first_keys[option.name]
            twice = "" if first == key else f" {key} is {first}."
            raise BrainlsapError(
                f"{path}: {key} stands in the file twice.{twice} Keep one."
            )
        try:
            settings[option.name] = option.convert(value)
        except ValueError as error:
            raise BrainlsapError(f"{path}: {key} {error}.") from error
        first_keys[option.name] = key
    if unknown:
        raise BrainlsapError(
            f"{path}: unknown settings: {', '.join(unknown)}. Keys are flags without "
            "--, and parameters of load_cohort, run_study and LSAPClassifier."
        )
    return settings


def _entries(path: str | Path, content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a file, those of sections too."""
    for key, value in content.items():
        if key not in SECTIONS:
            yield key, value
        elif isinstance(value, dict):
            yield from _entries(path, value)
        else:
            raise BrainlsapError(
                f"{path}: {key} must be a section, [{key}], got {value!r}."
            )


def _nearest(key: str, known: Iterable[str]) -> str:
    """Return the known key whose spelling is most like this one."""
    names = [*known, *SECTIONS]
    return difflib.get_close_matches(key.replace("-", "_"), names, n=1, cutoff=0.0)[0]
