"""Tables become text for a file or a manuscript."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap._arrays import check_choice
from brainlsap._files import write_text
from brainlsap.data.spreadsheets import guarded_text

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": "$-$",
    "\N{RIGHTWARDS ARROW}": r"$\to$",
}


def table_text(frame: pd.DataFrame, style: str = "markdown") -> str:
    r"""Return a table as text that goes into a file or a manuscript.

    Parameters
    ----------
    frame : DataFrame
        Its index is not printed.
    style : {"csv", "latex", "markdown", "tsv"}
        LaTeX needs the package booktabs; everything special is escaped.

    Returns
    -------
    str
        Ends with a line break.

    Raises
    ------
    ParameterError
        Where `style` is unknown.

    Examples
    --------
    >>> frame = pd.DataFrame({"region": ["G&S_front"], "scale": [0.5]})
    >>> print(table_text(frame, "latex"), end="")
    \begin{tabular}{lr}
    \toprule
    region & scale \\
    \midrule
    G\&S\_front & 0.5 \\
    \bottomrule
    \end{tabular}
    """
    check_choice("style", style, TEXT_STYLES)
    return TEXT_STYLES[style](frame)


def _cell(value: Any) -> str:
    return "" if pd.isna(value) else re.sub(r"\s+", " ", str(value))


def _markdown(frame: pd.DataFrame) -> str:
    def line(cells: Sequence[object]) -> str:
        texts = [_cell(one).replace("\\", "\\\\").replace("|", r"\|") for one in cells]
        return f"| {' | '.join(texts)} |\n"

    rule = ["---:" if numeric else "---" for numeric in _numeric(frame)]
    rows = frame.itertuples(index=False, name=None)
    return line(list(frame)) + f"| {' | '.join(rule)} |\n" + "".join(map(line, rows))


def _latex(frame: pd.DataFrame) -> str:
    def line(cells: Sequence[object]) -> str:
        texts = ["".join(_LATEX.get(c, c) for c in _cell(one)) for one in cells]
        return f"{' & '.join(texts)} \\\\\n"

    columns = "".join("r" if numeric else "l" for numeric in _numeric(frame))
    body = "".join(map(line, frame.itertuples(index=False, name=None)))
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{line(list(frame))}\\midrule\n"
        f"{body}\\bottomrule\n\\end{{tabular}}\n"
    )


def _numeric(frame: pd.DataFrame) -> list[bool]:
    return [pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]


TEXT_STYLES: dict[str, Callable[[pd.DataFrame], str]] = {
    "csv": partial(guarded_text, separator=","),
    "latex": _latex,
    "markdown": _markdown,
    "tsv": guarded_text,
}
"""Every style that :func:`table_text` can write."""
ENDINGS = {"csv": "csv", "latex": "tex", "markdown": "md", "tsv": "tsv"}
"""How the name of a file in each style ends."""


def write_every_style(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write tables in every style.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        By the name of their files.
    folder : Path
        Where to; it is made if need be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_every_style({"t": pd.DataFrame({"scale": [0.5]})}, Path(place))
    ...     sorted(one.name for one in Path(place).iterdir())
    ['t.csv', 't.md', 't.tex', 't.tsv']
    """
    for name, table in tables.items():
        for style, ending in ENDINGS.items():
            write_text(folder / f"{name}.{ending}", table_text(table, style))
