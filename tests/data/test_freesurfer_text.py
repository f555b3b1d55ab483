"""The text of FreeSurfer's tables, read as a stranger would, beside real samples."""

from pathlib import Path

import numpy as np
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.freesurfer_text import aparc_text, aseg_text

SHARED = Path(__file__).parents[2].parent / "shared"
SAMPLES = SHARED / "data" / "fs_stats_samples" / "soichi" / "stats"


def read_rows(text):
    """Rows of a stats file by the names of its `# ColHeaders` line."""
    head = next(line for line in text.splitlines() if line.startswith("# ColHeaders"))
    columns = head.split()[2:]
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return [dict(zip(columns, row, strict=True)) for row in rows]


@pytest.fixture(params=["destrieux160", "desikan82"])
def atlas(request):
    return load_atlas(request.param)


def draw_values(atlas, low, high):
    return np.random.default_rng(0).uniform(low, high, len(atlas))


@pytest.mark.parametrize("hemisphere", ["L", "R"])
def test_aparc_holds_the_values_of_one_hemisphere(atlas, hemisphere):
    thickness, volume = draw_values(atlas, 1.5, 4), draw_values(atlas, 500, 9000)
    text = aparc_text(
        atlas, hemisphere, "sub-1", {"thickness": thickness, "volume": volume}
    )
    rows = read_rows(text)
    assert len(rows) == {"destrieux160": 74, "desikan82": 34}[atlas.name]
    for row in rows:
        position = atlas.find(row["StructName"], hemisphere)
        assert float(row["ThickAvg"]) == pytest.approx(thickness[position], abs=1e-9)
        assert float(row["GrayVol"]) == pytest.approx(volume[position], abs=1e-8)
    assert f"# hemi {hemisphere.lower()}h" in text
    n_vertices = sum(int(row["NumVert"]) for row in rows)
    assert f"Number of Vertices, {n_vertices}, unitless" in text


def test_aparc_fills_what_is_not_given():
    atlas = load_atlas("desikan82")
    thickness = draw_values(atlas, 1.5, 4)
    by_thickness = read_rows(aparc_text(atlas, "L", "a", {"thickness": thickness}))
    for row in by_thickness:
        product = float(row["SurfArea"]) * float(row["ThickAvg"])
        assert float(row["GrayVol"]) == pytest.approx(product)
    by_volume = read_rows(aparc_text(atlas, "L", "a", {"volume": 1000 * thickness}))
    assert {float(row["ThickAvg"]) for row in by_volume} == {2.5}


def test_regions_that_are_absent_have_no_row():
    atlas = load_atlas("desikan82")
    thickness = draw_values(atlas, 1.5, 4)
    thickness[3] = np.nan
    text = aparc_text(atlas, "L", "a", {"thickness": thickness})
    names = [row["StructName"] for row in read_rows(text)]
    n_vertices = sum(int(row["NumVert"]) for row in read_rows(text))
    assert f"Number of Vertices, {n_vertices}, unitless" in text
    assert len(names) == 33
    assert "cuneus" not in names
    volume = draw_values(atlas, 500, 9000)
    volume[atlas.find("Left-Amygdala")] = np.nan
    names = [row["StructName"] for row in read_rows(aseg_text(atlas, "a", volume))]
    assert "Left-Amygdala" not in names
    assert "Right-Amygdala" in names


def test_aseg_holds_the_atlas_and_more(atlas):
    volume = draw_values(atlas, 500, 9000)
    rows = read_rows(aseg_text(atlas, "sub-1", volume))
    found = {row["StructName"]: float(row["Volume_mm3"]) for row in rows}
    below = atlas.regions[atlas.regions["structure"] == "subcortex"]
    for position, name in below["name"].items():
        assert found[name] == pytest.approx(volume[position], abs=1e-8)
    assert {"Brain-Stem", "Left-Accumbens-area", "Right-Cerebellum-Cortex"} <= set(
        found
    )
    numbers = [int(row["SegId"]) for row in rows]
    assert numbers == sorted(set(numbers))
    assert [int(row["Index"]) for row in rows] == list(range(1, len(rows) + 1))


def test_aseg_without_volumes_has_the_usual_sizes():
    atlas = load_atlas("destrieux160")
    first = read_rows(aseg_text(atlas, "a", None))
    assert first == read_rows(aseg_text(atlas, "b", None))
    sizes = {row["StructName"]: float(row["Volume_mm3"]) for row in first}
    assert sizes["Left-Hippocampus"] == sizes["Right-Hippocampus"] == 3850.0


@pytest.mark.skipif(not SAMPLES.is_dir(), reason=f"needs the samples in {SAMPLES}")
@pytest.mark.parametrize(
    "name", ["lh.aparc.a2009s.stats", "rh.aparc.a2009s.stats", "aseg.stats"]
)
def test_layout_is_that_of_a_real_file(name):
    atlas = load_atlas("destrieux160")
    if name == "aseg.stats":
        text = aseg_text(atlas, "sub-1", None)
    else:
        text = aparc_text(atlas, name[0].upper(), "sub-1", {})
    real = (SAMPLES / name).read_text()
    assert list(read_rows(text)[0]) == list(read_rows(real)[0])
    names, real_names = (
        [row["StructName"] for row in read_rows(t)] for t in (text, real)
    )
    if name == "aseg.stats":
        assert set(names) <= set(real_names)
        number = {row["StructName"]: row["SegId"] for row in read_rows(real)}
        assert all(number[row["StructName"]] == row["SegId"] for row in read_rows(text))
    else:
        assert names == real_names
    # "TableCol" lines: blanks at their ends and doubled differ between versions.
    columns, real_columns = (
        [line.split() for line in t.splitlines() if line.startswith("# TableCol")]
        for t in (text, real)
    )
    assert len(columns) == len(real_columns)
    for ours, theirs in zip(columns, real_columns, strict=True):
        assert ours[:4] == theirs[:4]
