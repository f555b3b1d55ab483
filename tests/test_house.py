"""Rules of the house that a machine can hold: sizes, names, what code must not do."""

import ast
import importlib
from pathlib import Path

import pytest

import brainlsap

PACKAGE = Path(brainlsap.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = ("data", "graph", "model", "evaluation", "report")

LONGEST_MODULE, LONGEST_BODY = 300, 40
ATTICS = {"utils", "util", "helpers", "misc", "common", "tools"}
# Whoever opens a stranger's file must not run what is in it.
NEVER_CALLED = {"eval", "exec", "compile", "__import__"}
NEVER_IMPORTED = {"pickle", "dill", "cloudpickle", "shelve", "marshal"}


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def functions_in(tree):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def body_lines(function):
    """Count the lines of a body, from after the docstring to the last statement."""
    body = function.body[ast.get_docstring(function) is not None :]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def dotted(node):
    """Return `a.b.c` of an expression, and "" of anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def calls_in(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def imported_by(tree):
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {one.name.split(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_there_is_something_to_guard():
    assert {name_of(path).split("/")[0] for path in MODULES} >= set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_is_short_and_named_for_what_it_is(path):
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= LONGEST_MODULE
    assert path.stem.strip("_") not in ATTICS


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_functions_are_short(path):
    long = {
        function.name: body_lines(function)
        for function in functions_in(tree_of(path))
        if body_lines(function) > LONGEST_BODY
    }
    assert long == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_code_neither_asserts_nor_runs_what_it_reads(path):
    tree = tree_of(path)
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    assert imported_by(tree).isdisjoint(NEVER_IMPORTED)
    for call in calls_in(tree):
        name = dotted(call.func)
        assert name not in NEVER_CALLED
        assert name not in {"torch.load", "pd.read_pickle", "joblib.load"}
        if name in {"np.load", "numpy.load"}:
            refused = {one.arg: ast.unparse(one.value) for one in call.keywords}
            assert refused.get("allow_pickle") == "False"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_touches_a_global_seed(path):
    tree = tree_of(path)
    # what is seeded inside fork_rng is put back at its end
    forked = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        and any(
            dotted(getattr(one.context_expr, "func", one)) == "torch.random.fork_rng"
            for one in node.items
        )
    ]
    allowed = {id(call) for block in forked for call in calls_in(block)}
    touched = [dotted(call.func) for call in calls_in(tree) if id(call) not in allowed]
    assert set(touched).isdisjoint(
        {"np.random.seed", "numpy.random.seed", "random.seed", "torch.manual_seed"}
    )


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_door_of_a_room_is_a_sentence_imports_and_a_sorted_list(room):
    module = importlib.import_module(f"brainlsap.{room}".rstrip("."))
    names = list(module.__all__)
    # as ruff sorts: constants, then classes, then the rest, each by the alphabet
    kind = [0 if name.isupper() else 1 if name[0].isupper() else 2 for name in names]
    assert list(zip(kind, names, strict=True)) == sorted(zip(kind, names, strict=True))
    assert len(set(names)) == len(names)
    assert all(hasattr(module, name) for name in names)
    assert module.__doc__.strip().splitlines()[0].endswith((".", ";", ","))


@pytest.mark.parametrize("room", ROOMS)
def test_door_of_a_room_holds_no_code(room):
    tree = tree_of(PACKAGE / room / "__init__.py")
    kinds = {type(node) for node in tree.body[1:]}
    assert kinds <= {ast.ImportFrom, ast.Assign}
    assert ast.get_docstring(tree)
