import io
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from brainlsap.exceptions import ParameterError
from brainlsap.report import common_region_table, short_region_table, table_text
from brainlsap.report.common_regions import RMSE_ROW

NAMES = [f"region_{k}" for k in range(7)]


def scales(*values):
    return pd.Series(values, index=NAMES)


@pytest.fixture
def models():
    return {
        "LSAP-C": scales(0.1, 0.2, 0.9, 0.3, 0.8, 0.7, np.nan),
        "Exact": scales(0.15, 0.3, 0.2, 0.9, 0.8, 0.7, 0.1),
        "LSAP-H": scales(0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.6),
    }


def test_regions_are_grouped_by_how_many_models_have_them(models, atlas):
    table = common_region_table(models, atlas, 3)
    assert list(table) == ["# of common models", "ROI", "Exact", "LSAP-C", "LSAP-H"]
    # region 6 lacks a scale in one model and counts nowhere
    assert table["# of common models"].tolist() == ["3", "2", "2", ""]
    assert table["ROI"].tolist() == [
        "(L) G&S_r0",
        "(L) G&S_r2",
        "(L) G&S_r1",
        RMSE_ROW,
    ]
    assert table["LSAP-C"].tolist()[:3] == ["0.100", "-", "0.200"]
    known = [one.to_numpy()[:6] for one in models.values()]
    rmse = np.sqrt(np.mean((known[0] - known[1]) ** 2))
    assert table.iloc[3].tolist()[2:4] == ["-", f"{rmse:.3f}"]


def test_short_table_has_the_best_worst_ranks(models, atlas):
    table = short_region_table(models, atlas, 2, names="long", digits=2)
    assert table["ROI"].tolist() == ["long & wide 0", "long & wide 5"]
    assert table["Exact"][0] == "0.15"
    assert len(short_region_table(models, atlas, 99)) == 6


def test_several_biomarkers_stand_below_one_another(models, atlas, make_evaluation):
    both = {"Thickness": models, "FDG": {k: v + 1 for k, v in models.items()}}
    table = common_region_table(both, atlas, 3)
    assert table["biomarker"].tolist() == ["Thickness"] * 4 + ["FDG"] * 4
    assert table.iloc[4]["Exact"] == "1.150"
    with pytest.raises(ParameterError, match="at least two models with scales, got 1"):
        common_region_table(make_evaluation(), atlas)
    with pytest.raises(ParameterError, match=r"reference must be one of .*'LSAP-X'"):
        common_region_table(models, atlas, reference="LSAP-X")
    with pytest.raises(ParameterError, match="n_smallest must be at least 1"):
        common_region_table(models, atlas, 0)
    with pytest.raises(ParameterError, match="n_regions must be at least 1"):
        short_region_table(models, atlas, 0)


def test_latex_holds_the_printed_digits(models, atlas):
    table = common_region_table(models, atlas, 3)
    rows = [
        [cell.strip() for cell in line.removesuffix(r" \\").split("&")]
        for line in table_text(table, "latex").replace(r"\&", "+").splitlines()
        if line.endswith(r"\\")
    ]
    told = [[cell.replace("+", "&") for cell in row] for row in rows[1:]]
    shown = table.map(lambda cell: cell.replace("_", r"\_")).to_numpy().tolist()
    assert told == shown
    again = pd.read_csv(io.StringIO(table_text(table, "csv")), dtype=str)
    assert again.fillna("").to_numpy().tolist() == table.to_numpy().tolist()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX engine here")
def test_latex_compiles(models, atlas, tmp_path):
    names = {k: v.rename(lambda n: n) for k, v in models.items()}
    text = table_text(common_region_table({"A_&%": names}, atlas, 3), "latex")
    ranking = pd.DataFrame({"x_&": ["0.1 ± 0.2", "a|b<c>~^\\{}#$"], "n": [1, 2]})
    document = (
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n"
        f"{text}\n\n{table_text(ranking, 'latex')}\\end{{document}}\n"
    )
    (tmp_path / "table.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode("latin-1")[-800:]
    assert not re.search(rb"Missing character", done.stdout)
    assert (tmp_path / "table.pdf").stat().st_size > 5000
