"""Make pages from the code: reference, command line, tables."""

import argparse
import importlib
import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brainlsap.options import Option

PACKAGES = {
    "brainlsap": "The package itself",
    "brainlsap.exceptions": "Errors",
    "brainlsap.atlas": "Regions by name",
    "brainlsap.graph": "Laplacians and heat kernels",
    "brainlsap.data": "Studies read as cohorts",
    "brainlsap.simulation": "Simulated cohorts",
    "brainlsap.images": "Connectomes and SUVR from images",
    "brainlsap.adni": "Import of ADNI files",
    "brainlsap.model": "Classifiers of scans",
    "brainlsap.nodes": "Classifiers of nodes",
    "brainlsap.evaluation": "Folds, scores, audits and rankings",
    "brainlsap.report": "Tables, figures and reports",
    "brainlsap.workflow": "Complete studies",
    "brainlsap.prediction": "Stored models and predictions for new people",
    "brainlsap.external": "Evaluation of stored models on other people",
}

# Modules whose own docstring is part of their package's page.
EXPLAINED = {
    "brainlsap.adni": ("brainlsap.adni.convert",),
    "brainlsap.evaluation": (
        "brainlsap.evaluation.region_tests",
        "brainlsap.evaluation.connectome_worth",
        "brainlsap.evaluation.subgroups",
    ),
    "brainlsap.simulation": ("brainlsap.simulation",),
}

BENCHMARKS = Path(__file__).parents[1] / "benchmarks" / "results"
# Results of benchmarks that pages include; a note replaces an absent file.
RESULTS = (
    "bounds",
    "compare",
    "epoch",
    "layers",
    "network_share",
    "node_leak",
    "nodes",
    "quality",
    "reproduction",
    "set_coverage",
)
NONE = "*This benchmark has not been run yet. The command above runs it.*\n"


def write_pages(folder: Path) -> None:
    """Write every page into a folder."""
    shutil.rmtree(folder / "api", ignore_errors=True)  # also of names that are gone
    folder.mkdir(parents=True, exist_ok=True)
    for name, title in PACKAGES.items():
        (folder / f"{name}.rst").write_text(package_page(name, title), encoding="utf-8")
    for name, text in {
        "commands": commands_page(),
        "settings": settings_page(),
        "formats": suffixes(),
        "atlases": atlases(),
        "errors": errors(),
    }.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    for name in RESULTS:
        found = BENCHMARKS / f"{name}.md"
        text = to_rst(found.read_text(encoding="utf-8")) if found.is_file() else NONE
        (folder / f"result_{name}.txt").write_text(text, encoding="utf-8")
    for figure in BENCHMARKS.glob("*.png"):
        shutil.copy(figure, folder / figure.name)


def package_page(name: str, title: str) -> str:
    """Return the page of a package: functions, classes, constants."""
    package = importlib.import_module(name)
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "Constants": []}
    own = [
        one
        for one, it in vars(package).items()
        if getattr(it, "__module__", "") == name
    ]
    for public in sorted(getattr(package, "__all__", own), key=str.lower):
        value = getattr(package, public)
        kind = "Functions" if callable(value) else "Constants"
        kinds["Classes" if inspect.isclass(value) else kind].append(public)
    parts = [heading(f"{name}: {title.lower()}", "="), f".. py:module:: {name}\n"]
    if name == "brainlsap":
        return "\n".join([*parts, _short_names(package)])
    for module_name in EXPLAINED.get(name, ()):
        parts += [f".. automodule:: {module_name}"]
        if module_name == name:  # the page is in the index already
            parts += ["   :no-index:"]
        parts += [""]
    parts += [f".. currentmodule:: {name}\n"]
    for kind in ("Functions", "Classes"):
        if kinds[kind]:
            parts += [heading(kind, "-"), ".. autosummary::", "   :toctree: api", ""]
            parts += [f"   {public}" for public in kinds[kind]] + [""]
    if kinds["Constants"]:
        parts += [heading("Constants", "-")]
        for one in kinds["Constants"]:
            parts += [f".. py:data:: {one}\n", f"   {holds(getattr(package, one))}\n"]
    return "\n".join(parts)


def _short_names(package: object) -> str:
    parts = [
        "These names can be imported from the package; they are loaded on first use.\n"
    ]
    module_of_name = {}
    for module, public_names in package._PUBLIC_NAMES.items():
        for name in public_names.split():
            module_of_name[name] = module
    for name in package.__all__:
        parts += [f".. py:data:: {name}\n"]
        parts += [f"   :obj:`brainlsap.{module_of_name[name]}.{name}`\n"]
    return "\n".join(parts)


def holds(value: object) -> str:
    """Return the value of a constant as a table cell."""
    if isinstance(value, str | int | float):
        return f"``{value}``"
    if isinstance(value, Iterable):
        return ", ".join(f"``{one}``" for one in value)
    return type(value).__name__


def commands_page() -> str:
    """Return one section for each command: usage, examples and tables of options."""
    from brainlsap.cli import build_parser
    from brainlsap.options import COMMANDS

    parser = build_parser()
    actions = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    (commands,) = actions
    summaries = {action.dest: action.help or "" for action in commands._choices_actions}
    rows = [(f"``brainlsap {name}``", text) for name, text in summaries.items()]
    parts = [table(("command", "what it does"), rows)]
    for name, command in commands.choices.items():
        usage = command.format_usage().removeprefix("usage: ")
        parts += [heading(f"brainlsap {name}", "-"), f"{command.description}\n"]
        parts += [".. code-block:: text", "", indent(usage), ""]
        groups = COMMANDS[name.replace("-", "_")]
        has_settings_file = any(
            option.name == "config" for group in groups for option in group.options
        )
        n_columns = 3 if has_settings_file else 2
        titles = ("option", "meaning", "key in a settings file")[:n_columns]
        for group in groups:
            parts += [f".. rubric:: {group.title.capitalize()}\n"]
            rows = [option_row(option)[:n_columns] for option in group.options]
            parts += [table(titles, rows)]
        if command.epilog:
            parts += ["Examples:\n", ".. code-block:: text", ""]
            parts += [indent(command.epilog.removeprefix("examples:\n")), ""]
    return "\n".join(parts)


def indent(text: str) -> str:
    """Return lines as the content of a directive."""
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "   ")


def option_row(option: "Option") -> tuple[str, str, str]:
    """Return flag, meaning, and key in a settings file, of one option."""
    placeholder = option.metavar or " | ".join(option.choices)
    meaning = option.help.replace("*", "\\*")
    if option.is_required:
        meaning += " (required)"
    is_key = option.recipient != "command"
    return (
        f"``{f'{option.flag} {placeholder}'.strip()}``",
        meaning,
        f"``{option.name}``" if is_key else "",
    )


def settings_page() -> str:
    """Return the settings that only a settings file can set, by their function."""
    from brainlsap.options import CONFIGURABLE

    functions = {
        "reading": ":func:`brainlsap.data.load_cohort`",
        "study": ":func:`brainlsap.workflow.run_study`",
        "model": ":class:`brainlsap.model.LSAPClassifier`",
    }
    rows = []
    for option in CONFIGURABLE:
        if not option.flag:
            expected = " or ".join(f"``{choice}``" for choice in option.choices)
            function = functions[option.recipient]
            rows.append(
                (f"``{option.name}``", expected or option.kind.expected_text, function)
            )
    return table(("name", "value", "parameter of"), rows)


def suffixes() -> str:
    """Return the suffixes of connectome files."""
    from brainlsap.data import FORMATS

    return ", ".join(f"``{one}``" for one in FORMATS) + "\n"


def atlases() -> str:
    """Return a table of the included atlases."""
    from brainlsap.atlas import available_atlases, load_atlas

    rows = []
    for name in available_atlases():
        atlas = load_atlas(name)
        cortex = int((atlas.regions["structure"] == "cortex").sum())
        rows.append((f"``{name}``", len(atlas), cortex, len(atlas) - cortex))
    return table(("atlas", "regions", "cortical", "subcortical"), rows)


def errors() -> str:
    """Return the largest errors of truncated expansions."""
    from brainlsap.graph import EXPANSIONS

    scales = (1.0, 2.0, 4.0, 6.0, 10.0)
    degrees = {"chebyshev": (12, 20), "hermite": (30,), "laguerre": (20, 40)}
    rows = []
    for kernel in EXPANSIONS:
        for degree in degrees.get(kernel, (20,)):
            found = [f"{truncation_error(kernel, degree, s):.0e}" for s in scales]
            rows.append((f"``{kernel}``, {degree}", *found))
    return table(("kernel, degree", *(f"s = {s:g}" for s in scales)), rows)


def truncation_error(kernel: str, degree: int, scale: float) -> float:
    """Return the largest error over eigenvalues of 0 to 2, in float64."""
    import torch

    from brainlsap.graph import EXPANSIONS, polynomial_values

    eigenvalues = torch.linspace(0, 2, 401, dtype=torch.float64)
    expansion = EXPANSIONS[kernel]
    at = torch.tensor([scale], dtype=torch.float64)
    coefficients = expansion.coefficients(at, degree)[0][0]
    terms = polynomial_values(expansion, eigenvalues, degree)
    axis = 0 if terms.shape[0] == degree + 1 else -1
    made = torch.tensordot(coefficients, terms, dims=([0], [axis]))
    return float((made - torch.exp(-scale * eigenvalues)).abs().max())


def to_rst(markdown: str) -> str:
    """Return the Markdown of a table of results as reStructuredText."""
    parts: list[str] = []
    rows: list[list[str]] = []
    for line in [*markdown.splitlines(), ""]:
        text = re.sub(r"`([^`]+)`", r"``\1``", line)
        if text.startswith("|"):
            cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
            if not all(set(cell) <= set("-: ") for cell in cells) or not rows:
                # A lone "-" would be a list.
                escaped = [cell.replace("*", "\\*") for cell in cells]
                rows.append([r"\-" if cell == "-" else cell for cell in escaped])
            continue
        if rows:
            parts += ["", table(rows[0], [row for row in rows[1:] if any(row)])]
            rows = []
        title = re.match(r"#+ (.*)", text)
        is_name = title is not None and re.fullmatch(r"[a-z_]+", title[1])
        if not is_name:
            parts.append(f"\n.. rubric:: {title[1]}\n" if title else text)
    return "\n".join(parts) + "\n"


def heading(text: str, line: str) -> str:
    """Return a title with its line beneath."""
    return f"{text}\n{line * len(text)}\n"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a list-table."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (head, *rows):
        for place, cell in enumerate(row):
            mark = "* -" if place == 0 else "  -"
            lines.append(f"   {mark} {cell}")
    return "\n".join(lines) + "\n\n"
