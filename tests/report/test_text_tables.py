import csv
import io
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from brainlsap.exceptions import ParameterError
from brainlsap.report import table_text

NASTY = pd.DataFrame(
    {"na_me #1": ["50% & more", r"a\b{c}|d"], "x^2 ~ $": [0.5, np.nan], "n": [3, 11]}
)


def test_latex_escapes_everything_special():
    lines = table_text(NASTY, "latex").splitlines()
    assert lines[0] == r"\begin{tabular}{lrr}"
    assert lines[2] == (
        r"na\_me \#1 & x\textasciicircum{}2 \textasciitilde{} \$ & n \\"
    )
    assert lines[4] == r"50\% \& more & 0.5 & 3 \\"
    assert lines[5] == r"a\textbackslash{}b\{c\}\textbar{}d &  & 11 \\"
    assert r"$\pm$" in table_text(pd.DataFrame({"a": ["1 ± 2"]}), "latex")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX on this machine")
def test_latex_compiles(tmp_path):
    text = table_text(NASTY, "latex")
    page = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{text}"
    (tmp_path / "t.tex").write_text(page + r"\end{document}")
    command = ["pdflatex", "-halt-on-error", "t.tex"]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0


def test_markdown_and_csv_hold_the_same_cells():
    lines = table_text(NASTY, "markdown").splitlines()
    assert lines[1] == "| --- | ---: | ---: |"
    assert lines[3] == r"| a\\b{c}\|d |  | 11 |"
    rows = list(csv.reader(io.StringIO(table_text(NASTY, "csv"))))
    assert rows == [["na_me #1", "x^2 ~ $", "n"], ["50% & more", "0.5", "3"],
                    [r"a\b{c}|d", "", "11"]]  # fmt: skip
    assert table_text(NASTY, "tsv").splitlines()[1] == "50% & more\t0.5\t3"


def test_unknown_style():
    with pytest.raises(ParameterError, match=r"style must be one of .*got 'word'"):
        table_text(NASTY, "word")
