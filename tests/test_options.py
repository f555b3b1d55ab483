"""One table of options: complete, and of the same words as the functions."""

import inspect
from dataclasses import fields
from typing import Literal, get_args, get_origin, get_type_hints

import brainlsap
from brainlsap.data.connectomes import NEGATIVE, SYMMETRIZE
from brainlsap.data.measures import SUBCORTEX
from brainlsap.data.reading_options import DEFAULT_OPTIONS, ReadingOptions
from brainlsap.model.settings import OPTIONS, PRESETS, Settings
from brainlsap.options import COMMANDS, CONFIGURABLE, option_names, options_of


def parameters(function):
    return set(inspect.signature(function).parameters)


def test_every_parameter_of_the_functions_is_an_option():
    reading = set(option_names("reading"))
    assert reading == parameters(brainlsap.load_cohort) - {"folder", "verbose"}
    study = set(option_names("study")) - {"splits"}  # read into cv
    no_options = {"cohort", "out", "verbose", "settings"}
    assert study == parameters(brainlsap.run_study) - no_options
    model = {*option_names("model"), *OPTIONS, "preset", "random_state"}
    shadowed = {"classes", "connectome", "options"}  # those of load_cohort come first
    assert model == (parameters(brainlsap.LSAPClassifier) | {*OPTIONS}) - shadowed


def test_the_record_of_reading_options_has_the_options_and_defaults_of_the_reader():
    record_fields = {field.name for field in fields(ReadingOptions)}
    assert record_fields == {*option_names("reading"), "folder"}
    reader = inspect.signature(brainlsap.load_cohort).parameters
    for name in option_names("reading"):
        assert getattr(DEFAULT_OPTIONS, name) == reader[name].default, name
    selecting = {*option_names(selects_files=True)}
    assert selecting <= {*option_names("reading")}


def test_choices_are_those_that_the_functions_accept():
    choices = {option.name: option.choices for option in CONFIGURABLE}
    assert choices["negative"] == NEGATIVE
    assert choices["symmetrize"] == SYMMETRIZE
    assert set(choices["subcortex"]) == {*SUBCORTEX}
    assert set(choices["preset"]) == {*PRESETS}
    for name, hint in get_type_hints(Settings).items():
        if get_origin(hint) is Literal:
            assert set(choices[name]) == {*get_args(hint)}, name


def test_names_and_flags_are_unique_and_explained():
    names = [option.name for option in CONFIGURABLE]
    assert len(names) == len({*names})
    keys = [key for option in CONFIGURABLE for key in option.keys]
    assert len(keys) == len({*keys})
    for command in COMMANDS:
        flags = [option.flag for option in options_of(command)]
        assert len(flags) == len({*flags})
        assert "" not in flags
