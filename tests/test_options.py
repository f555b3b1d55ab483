"""One table of options: complete, and of the same words as the functions."""

import ast
import inspect
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import brainlsap
from brainlsap import cli
from brainlsap.atlas import available_atlases
from brainlsap.data.connectomes import (
    FORMATS,
    NEGATIVE,
    SYMMETRIZE,
    read_connectome,
)
from brainlsap.data.measures import PET_FEATURES, SUBCORTEX
from brainlsap.data.reading_options import DEFAULT_OPTIONS, ReadingOptions
from brainlsap.data.region_tables import REFERENCES
from brainlsap.data.tables import TABLE_SUFFIXES
from brainlsap.evaluation import chance_p, make_models, region_tests
from brainlsap.evaluation.models import MODELS
from brainlsap.evaluation.ranking import region_importance
from brainlsap.evaluation.scores import SCORES
from brainlsap.evaluation.splits import EXCHANGE_CONDITIONS, EXCHANGE_PHRASE
from brainlsap.graph import EXPANSIONS
from brainlsap.images import build_connectome, build_study, extract_suvr
from brainlsap.model import NetworkClassifier
from brainlsap.model.network import NETWORKS
from brainlsap.model.settings import PRESETS, Settings
from brainlsap.model.settings import RARE_SETTINGS as OPTIONS_OF_MODELS
from brainlsap.nodes import NODE_MODELS, LSAPNodeClassifier
from brainlsap.nodes.graphs import resolve_node_settings
from brainlsap.options import (
    CLASS_SHARES,
    COMMANDS,
    CONFIGURABLE,
    N_JOBS,
    NUMBER,
    NUMBER_OR_EVIDENCE,
    OPTIONS,
    SWITCH,
    TIME_WINDOW,
    WHOLE_NUMBER,
    Option,
    WholeNumber,
    _check_option_entry,
    _check_unique,
    list_command_options,
    list_settings_option_names,
)
from brainlsap.workflow import resolve_folds_or_number
from tests.data.feature_formats import LAYOUTS


def parameters(function):
    return set(inspect.signature(function).parameters)


def test_every_parameter_of_the_functions_is_an_option():
    reading = set(list_settings_option_names("reading"))
    assert reading == parameters(brainlsap.load_cohort) - {"folder", "verbose"}
    study = set(list_settings_option_names("study")) - {"splits"}  # read into cv
    no_options = {"cohort", "out", "verbose", "classifier_settings"}
    assert study == parameters(brainlsap.run_study) - no_options
    model = {
        *list_settings_option_names("model"),
        *OPTIONS_OF_MODELS,
        "preset",
        "random_state",
    }
    shadowed = {"classes", "connectome", "options"}  # those of load_cohort come first
    assert (
        model
        == (parameters(brainlsap.LSAPClassifier) | {*OPTIONS_OF_MODELS}) - shadowed
    )


@pytest.mark.parametrize(
    "function",
    [brainlsap.load_cohort, brainlsap.run_study, brainlsap.LSAPClassifier],
    ids=lambda function: function.__name__,
)
def test_every_option_of_a_function_is_explained_in_its_docstring(function):
    headings = re.findall(
        r"^    \**(\w[\w, ]*)(?: :.*)?$", function.__doc__, re.MULTILINE
    )
    explained = {name for heading in headings for name in heading.split(", ")}
    missing = parameters(function) - explained
    assert not missing, f"explain {missing} in the docstring of {function.__name__}"


def test_the_record_of_reading_options_has_the_options_and_defaults_of_the_reader():
    record_fields = {field.name for field in fields(ReadingOptions)}
    assert record_fields == {*list_settings_option_names("reading"), "folder"}
    reader = inspect.signature(brainlsap.load_cohort).parameters
    for name in list_settings_option_names("reading"):
        assert getattr(DEFAULT_OPTIONS, name) == reader[name].default, (
            f"write the default of {name} into DEFAULT_OPTIONS of reading_options.py"
        )
    selecting = {*list_settings_option_names(selects_files=True)}
    assert selecting <= {*list_settings_option_names("reading")}


def is_named(node, name):
    """Return whether code is a variable or an attribute of this name."""
    return name in (getattr(node, "id", ""), getattr(node, "attr", ""))


def test_every_option_of_the_reader_is_passed_on_and_read(monkeypatch):
    names = list_settings_option_names("reading")
    monkeypatch.setattr(
        "brainlsap.data.load.read_folder", lambda _, options, **__: vars(options)
    )
    values = {name: object() for name in names}
    assert brainlsap.load_cohort("study", **values) == {"folder": "study", **values}
    names_read = {
        node.attr
        for path in Path(brainlsap.data.__file__).parent.glob("*.py")
        if path.name != "reading_options.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and is_named(node.value, "reading_options")
    }
    assert set(names) - names_read == set()


def test_every_option_of_a_study_is_used_and_not_only_recorded():
    (function,) = ast.parse(inspect.getsource(brainlsap.run_study)).body
    (record,) = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and is_named(node.targets[0], "analysis_options")
    ]
    recorded = {id(node) for node in ast.walk(record)}
    names_used = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and id(node) not in recorded
    }
    unused = parameters(brainlsap.run_study) - names_used
    assert not unused, f"pass {unused} on in run_study, beside analysis_options"


# Options that change what is compared or tested, but not the data of a fit.
STUDY_ONLY = {
    *("baselines", "models", "cv", "splits", "leave_out", "n_repeats"),
    *("covariates", "subgroups", "n_permutations", "learning_curve"),
}


def test_options_that_change_data_are_options_of_fit():
    missing = {
        option.name
        for option in OPTIONS
        if option.recipient == "study"
        and option.changes_results
        and "fit" not in option.commands
    }
    assert missing == STUDY_ONLY, (
        "add the command fit to these options, or their names to STUDY_ONLY if they "
        f"do not change the data that models are fitted to: {missing ^ STUDY_ONLY}"
    )


def test_choices_are_those_that_the_functions_accept():
    choices = {option.name: option.choices for option in CONFIGURABLE}
    assert choices["negative"] == NEGATIVE
    assert choices["symmetrize"] == SYMMETRIZE
    assert set(choices["subcortex"]) == {*SUBCORTEX}
    assert set(choices["preset"]) == {*PRESETS}
    for name, hint in get_type_hints(Settings).items():
        if get_origin(hint) is Literal:
            assert set(choices[name]) == {*get_args(hint)}, name


# The functions that a command passes its options to, beside its own parameters.
TARGETS = {
    "demo": [brainlsap.run_study, brainlsap.LSAPClassifier],
    "simulate": [brainlsap.make_cohort],
    "atlas": [brainlsap.make_atlas],
    "import_adni": [brainlsap.adni.import_adni],
    "build": [build_study, build_connectome, extract_suvr],
    "check": [brainlsap.load_cohort, resolve_folds_or_number],
    "run": [brainlsap.load_cohort, brainlsap.run_study, brainlsap.LSAPClassifier],
    "report": [],
    "fit": [
        brainlsap.load_cohort,
        brainlsap.fit_model,
        brainlsap.LSAPClassifier,
    ],
    "predict": [brainlsap.load_cohort],
    "evaluate": [brainlsap.load_cohort, brainlsap.read_labelled_people],
    "show": [],
    "nodes": [brainlsap.nodes.run_nodes, brainlsap.nodes.LSAPNodeClassifier],
}
# Options that a command gives to a function under another name.
RENAMED = {
    "demo": {*OPTIONS_OF_MODELS},
    "build": {"tractogram", "parcellation", "pet", "transform", "streamline_weights"},
    "run": {"config", "splits", *OPTIONS_OF_MODELS},
    "check": {"config", "merge_classes"},
    "fit": {"config", "merge_classes", *OPTIONS_OF_MODELS},
    "report": {"export", "tables", "figures"},
}


@pytest.mark.parametrize("function", cli.COMMAND_FUNCTIONS, ids=lambda f: f.__name__)
def test_every_option_of_a_command_is_passed_to_a_function(function):
    command = function.__name__
    names = {option.name for option in list_command_options(command)}
    parameter_names = set(RENAMED.get(command, ()))
    for target in (function, *TARGETS[command]):
        parameter_names |= parameters(target)
    assert names <= parameter_names


DEFAULT_IN_HELP = re.compile(
    r"\(default: (?:'(?P<quoted>[^']+)'|(?P<bare>[\w.-]+(?:,[\w.-]+)*))[,;)]"
)


@pytest.mark.parametrize("function", cli.COMMAND_FUNCTIONS, ids=lambda f: f.__name__)
def test_a_default_in_a_help_text_is_the_default_of_the_function(function):
    command = function.__name__
    for option in list_command_options(command):
        help_default = DEFAULT_IN_HELP.search(option.help)
        if help_default is None:
            continue
        help_value = option.kind.parse(help_default["quoted"] or help_default["bare"])
        for target in (function, *TARGETS[command]):
            parameter = inspect.signature(target).parameters.get(option.name)
            # A parameter without a default, or with None, gets its value elsewhere.
            if parameter and parameter.default not in (inspect.Parameter.empty, None):
                default = parameter.default
                if isinstance(help_value, list):
                    default = [default] if isinstance(default, str) else [*default]
                assert help_value == default, f"{option.name} of {target.__name__}"


@pytest.mark.parametrize("command", ["run", "fit"])
def test_every_model_option_of_a_command_is_accepted_by_make_models(command):
    defaults = brainlsap.LSAPClassifier().get_params()
    for option in list_command_options(command):
        if option.recipient == "model":
            value = {option.name: defaults[option.name]}
            (made,) = make_models("LSAP-C", **value)
            assert made == "LSAP-C"


@pytest.mark.parametrize(
    ("kind", "setting", "text", "value"),
    [
        (SWITCH, False, "false", False),
        (TIME_WINDOW, [30, 60.5], "30,60.5", (30, 60.5)),
        (N_JOBS, -1, "-1", -1),
        (WHOLE_NUMBER, 12, "12", 12),
        (WholeNumber(1, 10), 10, "10", 10),
        (NUMBER_OR_EVIDENCE, "evidence", "evidence", "evidence"),
        (NUMBER_OR_EVIDENCE, 0.5, "0.5", 0.5),
        (CLASS_SHARES, {"CN": 0.8, "AD": 0.2}, "CN=0.8,AD=0.2", {"CN": 0.8, "AD": 0.2}),
    ],
)
def test_a_value_is_the_same_in_a_file_and_as_a_flag(kind, setting, text, value):
    assert kind.convert(setting) == value
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "setting", "text"),
    [
        (SWITCH, 1, "yes"),
        (TIME_WINDOW, [30], "30"),
        (TIME_WINDOW, ["30", "60"], "30,x"),
        (N_JOBS, -2, "-2"),
        (WHOLE_NUMBER, True, "1.5"),
        (WholeNumber(1, 10), 0, "11"),
        (NUMBER, float("nan"), "inf"),
        (NUMBER_OR_EVIDENCE, "laplace", "laplace"),
        (CLASS_SHARES, {"CN": "most"}, "CN=most"),
    ],
)
def test_a_value_of_another_kind_is_refused_in_a_file_and_as_a_flag(
    kind, setting, text
):
    with pytest.raises(ValueError):  # noqa: PT011
        kind.convert(setting)
    with pytest.raises(ValueError):  # noqa: PT011
        kind.parse(text)


def test_options_without_a_recipient_are_refused():
    with pytest.raises(TypeError, match=r"no function takes the options \['export'\]"):
        cli._split_options_by_recipient({"cv": 5, "export": "maps"})


def test_every_command_has_a_function():
    assert {function.__name__ for function in cli.COMMAND_FUNCTIONS} == {*COMMANDS}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"commands": ("fits",)}, "unknown commands"),
        ({"commands": ()}, "both a flag and commands"),
        ({"flag": ""}, "both a flag and commands"),
        ({"help": ""}, "needs a help text"),
        ({"flag": "", "commands": ()}, "no command and no settings file"),
    ],
)
def test_entries_that_contradict_themselves_are_refused(changes, message):
    option = Option("depth", "--depth", WHOLE_NUMBER, "depth", "N", commands=("fit",))
    with pytest.raises(TypeError, match=message):
        _check_option_entry(replace(option, **changes))


def test_two_options_of_one_name_are_refused():
    _check_unique(["seed", "cv"], "brainlsap fit")
    with pytest.raises(
        TypeError, match="2 options of brainlsap fit have the name seed"
    ):
        _check_unique(["seed", "cv", "seed"], "brainlsap fit")


def test_a_stored_option_has_no_default_of_its_own_in_predict():
    helps = {option.name: option.help for option in list_command_options("predict")}
    assert "destrieux160" in help_of("atlas")
    assert "destrieux160" not in helps["atlas"]
    assert "(default" not in helps["atlas"]
    assert "default)" in helps["scans"]


DOCS = Path(__file__).parents[1] / "docs"


def docs_text(page_name):
    return " ".join((DOCS / f"{page_name}.rst").read_text("utf-8").split())


def help_of(name, command=None):
    return " ".join(
        option.help
        for option in OPTIONS
        if option.name == name and (command is None or command in option.commands)
    )


MEASURES = (
    docs_text("features_and_atlases")
    .split("Regional measures ---")[1]
    .split("Atlases ---")[0]
)

CONNECTOMES = (
    docs_text("features_and_atlases")
    .split("File formats of connectomes")[1]
    .split("Regional measures ---")[0]
)

# Registry, and the texts that name each of its entries in words.
NAMED_IN = {
    "formats": (
        FORMATS,
        {
            "read_connectome": read_connectome.__doc__,
            "the table of files of docs/features_and_atlases.rst": CONNECTOMES,
        },
    ),
    "formats of many scans": (
        [suffix for suffix, entry in FORMATS.items() if entry.may_hold_many_scans],
        {"docs/own_data.rst": docs_text("own_data")},
    ),
    "suffixes of tables": (
        TABLE_SUFFIXES,
        {"the section Regional measures of docs/features_and_atlases.rst": MEASURES},
    ),
    "layouts of tables of regions": (
        [layout.docs_phrase for layout in LAYOUTS.values()],
        {"the table Regional measures of docs/features_and_atlases.rst": MEASURES},
    ),
    "reference regions of PET": (
        REFERENCES,
        {"extract_suvr": " ".join(extract_suvr.__doc__.split())},
    ),
    "kernels": (
        EXPANSIONS,
        {
            "LSAPClassifier": brainlsap.LSAPClassifier.__doc__,
            "docs/mathematics.rst": docs_text("mathematics").lower(),
            "docs/glossary.rst": docs_text("glossary").lower(),
        },
    ),
    "table of kernels": (
        [f"``{kernel}``" for kernel in EXPANSIONS],
        {"the table of docs/mathematics.rst": docs_text("mathematics")},
    ),
    "scores": (
        [score.title.lower() for score in SCORES.values()],
        {
            "the section Scores of docs/statistics.rst": docs_text("statistics")
            .split("Scores ---")[1]
            .split("Comparing models ---")[0]
            .lower(),
        },
    ),
    "models whose probabilities have no prior": (
        [name for name, entry in MODELS.items() if entry.probability_sentence],
        {"docs/statistics.rst": docs_text("statistics").split("**Intervals.**")[0]},
    ),
    "measures of PET": (
        PET_FEATURES,
        {
            "load_cohort": brainlsap.load_cohort.__doc__,
            "import_adni": brainlsap.adni.import_adni.__doc__,
        },
    ),
    "atlases": (
        available_atlases(),
        {"docs/figures.rst": docs_text("figures")},
    ),
    "models": (
        [name for name, entry in MODELS.items() if entry.role == "model"],
        {
            f"the help of --models of brainlsap {command}": help_of("models", command)
            for command in ("run", "fit")
        },
    ),
    "models that fit can store": (
        [name for name, entry in MODELS.items() if entry.role == "model"],
        {"docs/stored_model.rst": docs_text("stored_model")},
    ),
    "exchange of permutation tests": (
        [EXCHANGE_PHRASE],
        {
            "docs/statistics.rst": docs_text("statistics"),
            "docs/glossary.rst": docs_text("glossary"),
        },
    ),
    "conditions of an exchange": (
        EXCHANGE_CONDITIONS.values(),
        {
            documented.__name__: " ".join(documented.__doc__.split())
            for documented in (chance_p, region_importance, region_tests)
        },
    ),
    "networks": (NETWORKS, {"NetworkClassifier": NetworkClassifier.__doc__}),
    "titles of networks": (
        [network_kind.title for network_kind in NETWORKS.values()],
        {"NetworkClassifier": NetworkClassifier.__doc__},
    ),
    "networks with a fixed scale": (
        [name for name, network_kind in NETWORKS.items() if network_kind.uses_scale],
        {
            "the parameter scale of NetworkClassifier": NetworkClassifier.__doc__.split(
                "    scale : float"
            )[1].split("    n_epochs,")[0]
        },
    ),
    "networks of nodes": (
        NODE_MODELS,
        {"LSAPNodeClassifier": LSAPNodeClassifier.__doc__},
    ),
}


@pytest.mark.parametrize("registry", NAMED_IN)
def test_every_entry_is_named_where_readers_look(registry):
    entry_names, text_of_place = NAMED_IN[registry]
    missing = [
        f"name {entry_name!r} in {place}"
        for place, text in text_of_place.items()
        for entry_name in entry_names
        if not re.search(rf"{re.escape(entry_name)}(?!\w)", text)
    ]
    assert not missing


def test_every_layout_has_a_phrase_of_its_own():
    phrases = [layout.docs_phrase for layout in LAYOUTS.values()]
    assert len({*phrases}) == len(phrases)


def test_every_model_has_a_kernel_of_its_own_and_the_same_in_all_lists():
    kernel_by_model = {}
    for name, entry in MODELS.items():
        model = make_models(name)[name][0]
        if entry.role == "model" and isinstance(model, brainlsap.LSAPClassifier):
            kernel_by_model[name] = model.kernel
    kernels = [*kernel_by_model.values()]
    assert len({*kernels}) == len(kernels), "two entries of MODELS have one kernel"
    page = docs_text("mathematics")
    for name, kernel in kernel_by_model.items():
        if kernel in EXPANSIONS:
            assert f"``{kernel}`` ({name})" in page, (
                f"MODELS gives {name} the kernel {kernel}: name both in the table of "
                "docs/mathematics.rst, or correct one of the two"
            )
    for key, title in NODE_MODELS.items():
        if title in kernel_by_model:
            settings = resolve_node_settings(key, "chosen", {})
            assert settings.kernel == kernel_by_model[title], key


def test_help_lists_every_atlas():
    (atlas_option,) = [option for option in OPTIONS if option.flag == "--atlas"]
    for atlas_name in available_atlases():
        assert atlas_name in atlas_option.help


def test_options_of_reading_say_what_a_stored_model_does_with_them():
    # Without `stored_model`, new people would be read unlike those of the training.
    undecided_names = {
        option.name
        for option in OPTIONS
        if option.recipient == "reading"
        and not option.selects_files
        and not option.stored_model
    }
    # New people have their own connectomes, labels of rows and faults.
    assert undecided_names == {"connectome", "labels", "skip_faulty"}
