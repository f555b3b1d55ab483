"""Every public name has a page: its shapes, its errors, and an example that runs."""

import importlib
import inspect
import re
from dataclasses import fields

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

# The extended summary, "See Also", two blank lines and the like are left to the
# writer; whether examples are there is asked below.
IGNORED = {"ES01", "EX01", "GL01", "GL02", "RT03", "SA01", "SS06", "YD01"}
ROOMS = ("data", "graph", "model", "evaluation", "report")
OTHERS = (
    "cli.main",
    "study.Comparison",
    "study.compare_models",
    "study.find_names",
    "study.run_study",
    "study.study_baselines",
    "study.study_models",
    "study.write_comparison",
    "study.write_study",
)

# One page explains all settings of a fit; a test below holds the two together.
ELSEWHERE = {"model.Settings": "model.LSAPClassifier"}


def public_objects():
    """Return every documented name of every room, and of the roof, by its path."""
    found = {}
    for room in ROOMS:
        module = importlib.import_module(f"brainlsap.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found[f"{room}.{name}"] = value
    for path in OTHERS:
        module, name = path.rsplit(".", 1)
        found[path] = getattr(importlib.import_module(f"brainlsap.{module}"), name)
    return found


def own_methods(value):
    """Return the names of public methods that brainlsap itself wrote."""
    if not inspect.isclass(value):
        return []
    return [
        name
        for name, member in vars(value).items()
        if not name.startswith("_")
        and (
            inspect.isfunction(member)
            or isinstance(member, property | staticmethod | classmethod)
        )
    ]


OBJECTS = public_objects()
METHODS = [
    f"{path}.{name}" for path, value in OBJECTS.items() for name in own_methods(value)
]


def is_one_sentence(path):
    """Tell whether a method is so small that one sentence says all.

    It takes one argument at most, and the sentence says what it returns.
    """
    room, name, method = path.split(".")
    function = inspect.getattr_static(OBJECTS[f"{room}.{name}"], method)
    function = getattr(function, "__func__", function)
    if isinstance(function, property):
        return False
    names = set(inspect.signature(function).parameters) - {"self", "cls"}
    return len(names) <= 1 and "\n\n" not in inspect.getdoc(function)


def test_pages_are_found():
    assert len(OBJECTS) > 60
    assert "data.Cohort.select" in METHODS


@pytest.mark.parametrize("path", sorted(set(OBJECTS) - set(ELSEWHERE)))
def test_page_of_a_name_follows_numpydoc(path):
    errors = validate(f"brainlsap.{path}")["errors"]
    assert [(code, text) for code, text in errors if code not in IGNORED] == []


@pytest.mark.parametrize("path", METHODS)
def test_page_of_a_method_follows_numpydoc(path):
    ignored = IGNORED | ({"PR01", "RT01"} if is_one_sentence(path) else set())
    errors = validate(f"brainlsap.{path}")["errors"]
    assert [(code, text) for code, text in errors if code not in ignored] == []


@pytest.mark.parametrize("path", sorted(set(OBJECTS) - set(ELSEWHERE)))
def test_public_name_has_an_example(path):
    example = inspect.getdoc(OBJECTS[path]).partition("Examples\n--------")[2]
    other = re.search(r"See :func:`brainlsap\.(.*)`", example)
    if other:
        example = inspect.getdoc(OBJECTS[other[1]])
    assert ">>> " in example


@pytest.mark.parametrize(("path", "page"), ELSEWHERE.items())
def test_what_is_explained_elsewhere_is(path, page):
    documented = NumpyDocString(inspect.getdoc(OBJECTS[page]))["Parameters"]
    names = {name for one in documented for name in one.name.split(", ")}
    assert {one.name for one in fields(OBJECTS[path])} <= names
