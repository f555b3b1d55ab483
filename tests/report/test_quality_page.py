"""The page of quality: planted faults are on it, names are not, and it is whole."""

import re

import numpy as np
import pandas as pd
import pytest

from brainlsap.cli import main
from brainlsap.data import Cohort, make_cohort, write_subject_folders
from brainlsap.report import write_quality_page
from brainlsap.report.quality_figures import (
    plot_connectomes,
    plot_measures,
    plot_region_values,
)


@pytest.fixture(scope="module")
def clean():
    return make_cohort(14, atlas="desikan82", feature=["fdg", "thickness"])


@pytest.fixture(scope="module")
def cohort(clean):
    """Scan 3 is another's copy, 5 has an isolated region, 7 zeros, 9 thick cortex."""
    W, X = np.array(clean.connectomes), np.array(clean.features)
    table = clean.table.copy()
    W[3] = W[-1]
    W[5, 2] = W[5, :, 2] = 0.0
    X[7, 10:40, 0] = 0.0
    X[9, 4, 1] = 9.5
    first = table["participant"][0]
    notes = (f"{first}: <script>mirrored</script>", f"{table['scan'][3]} was read")
    return Cohort(
        *(W, X, table, clean.atlas, clean.feature_names, clean.classes), notes=notes
    )


@pytest.fixture(scope="module")
def page(cohort, tmp_path_factory):
    return write_quality_page(cohort, tmp_path_factory.mktemp("quality") / "out")


def test_planted_faults_are_on_the_page_under_codes(cohort, page):
    html = page.read_text(encoding="utf-8")
    last = f"S{cohort.n_scans:04d}"
    assert f"connectome identical to {last}" in html
    assert "connectome identical to S0004" in html
    assert "1 regions without links" in html
    assert "fdg filled with zero in 30 regions" in html
    assert "thickness implausible in 1 regions" in html
    table = pd.read_csv(page.parent / "quality_scans.tsv", sep="\t", index_col="scan")
    flags = table["flags"].dropna()
    assert set(flags.index) >= {"S0004", "S0006", "S0008", "S0010", last}
    assert table.loc["S0006", ["isolated", "zero_rows"]].tolist() == [1, 1]
    assert table.loc["S0008", "fdg_zeros"] == 30
    assert (table[["negative", "not_finite"]] == 0).all(axis=None)


def test_regions_that_are_unusual_are_listed(cohort, page):
    regions = pd.read_csv(page.parent / "quality_regions.tsv", sep="\t")
    isolated = regions.set_index("region")["isolated"]
    assert isolated[cohort.region_names[2]] == pytest.approx(1 / cohort.n_scans)
    assert cohort.region_names[2] in page.read_text(encoding="utf-8")


def test_nobody_is_named_unless_asked_for(cohort, page, tmp_path):
    for path in page.parent.iterdir():
        text = path.read_text(encoding="utf-8")
        for name in (*cohort.table["scan"], *cohort.table["participant"]):
            assert name not in text
    html = page.read_text(encoding="utf-8")
    assert "[name withheld]: " in html
    assert "S0004 was read" in html
    assert "names people" not in html
    named = write_quality_page(cohort, tmp_path / "q.html", with_identifiers=True)
    html = named.read_text(encoding="utf-8")
    assert "This page names people" in html
    assert f"connectome identical to {cohort.table['scan'][3]}" in html
    assert [one.name for one in tmp_path.iterdir()] == ["q.html"]


def test_page_needs_nothing_else_and_markup_stays_text(page):
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;mirrored" in html
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', html)
    # measures, connectomes and one picture for each feature
    assert sum(one.startswith("data:image/png;base64,") for one in sources) == 4
    assert all(one.startswith("data:") for one in sources)


def test_shared_connectome_and_no_flags_make_a_page(clean, tmp_path):
    shape = clean.connectomes.shape
    W = np.array(clean.connectomes[0])
    W[3] = W[:, 3] = 0.0
    shared = Cohort(
        np.broadcast_to(W, shape),
        clean.features[..., :1],
        *(clean.table, clean.atlas, ("fdg",), clean.classes),
    )
    html = write_quality_page(shared, tmp_path).read_text(encoding="utf-8")
    assert "0 scans are flagged" in html
    assert "serves everybody: 1 of its regions have no link" in html
    assert html.count("data:image/png") == 2


def test_measures_mark_flagged_scans_and_name_those_far_out():
    values = np.r_[np.linspace(0, 1, 30), 9.0]
    marked = np.zeros(31, dtype=bool)
    marked[[3, 30]] = True
    codes = [f"S{row}" for row in range(31)]
    figure = plot_measures({"a$b": values, "flat": np.ones(31)}, marked, codes)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == 2
    triangles = shown[0].lines[0].get_xdata()
    assert triangles.tolist() == [values[3], 9.0]
    assert [text.get_text() for text in shown[0].texts] == ["S30"]
    assert shown[0].get_title(loc="left") == r"a\$b"


def test_connectomes_stand_beside_their_median(cohort):
    figure = plot_connectomes(cohort, [5, 2], ["five", "two"], [True, False])
    pictures = [ax for ax in figure.axes if ax.images and ax.get_title()]
    assert [ax.get_title() for ax in pictures] == ["median of all scans", "five", "two"]
    np.testing.assert_allclose(
        pictures[0].images[0].get_array(),
        np.log1p(np.median(cohort.connectomes, axis=0)),
    )
    np.testing.assert_allclose(
        pictures[1].images[0].get_array(), np.log1p(cohort.connectomes[5])
    )


def test_values_of_regions_show_band_median_and_what_lies_beyond():
    rng = np.random.default_rng(1)
    values = rng.normal(2.5, 0.1, (40, 5))
    values[7, 3] = 9.0
    values[:, 2] = np.nan
    names, sides = list("abcde"), ["L", "L", "L", "R", ""]
    figure = plot_region_values(
        *(values, names, sides),
        label="thickness",
        plausible=(0.8, 5.0),
        marked=np.arange(40) == 7,
    )
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert labels == ["thickness, left", "thickness, right", "thickness, midline"]
    left, right, _ = figure.axes
    assert [text.get_text() for text in left.get_xticklabels()] == ["a", "b"]
    np.testing.assert_allclose(
        left.lines[0].get_ydata(), np.median(values[:, :2], axis=0)
    )
    flagged = right.lines[2]
    assert flagged.get_ydata().tolist() == [9.0]


def test_check_writes_the_page(clean, tmp_path, capsys):
    folder = write_subject_folders(clean, tmp_path / "study")
    arguments = ["check", str(folder), "--atlas", "desikan82", "--feature", "fdg"]
    assert main([*arguments, "--page", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(f"Quality: {tmp_path / 'out' / 'quality.html'}\n")
    assert "sub-0001" not in (tmp_path / "out" / "quality.html").read_text("utf-8")
    next(folder.rglob("*_connectivity.csv")).unlink()
    assert main([*arguments, "--page", str(tmp_path / "other")]) == 2
    assert "1 fault(s); mend them before a page" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
