"""FreeSurfer's stats: both name styles, absent regions, cut files."""

import re

import numpy as np
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.freesurfer import SubjectStats
from brainlsap.data.freesurfer_text import aparc_text, aseg_text
from brainlsap.data.stats_files import read_stats
from brainlsap.exceptions import FileFormatError, RegionNameError


@pytest.fixture(scope="module")
def desikan():
    return load_atlas("desikan82")


@pytest.fixture
def subject(tmp_path, desikan):
    """Stats in which the thickness of a region is its position / 100."""
    values = np.arange(len(desikan)) / 100 + 1
    stats = tmp_path / "sub-01" / "stats"
    stats.mkdir(parents=True)
    for side, hemisphere in (("lh", "L"), ("rh", "R")):
        text = aparc_text(
            desikan, hemisphere, "sub-01", {"thickness": values, "volume": values * 1e3}
        )
        (stats / f"{side}.aparc.stats").write_text(text)
    (stats / "aseg.stats").write_text(aseg_text(desikan, "sub-01", values * 1e3))
    return stats.parent


def drop_rows(path, *names):
    lines = path.read_text().splitlines()
    kept = [
        line for line in lines if line.startswith("#") or line.split()[0] not in names
    ]
    path.write_text("\n".join(kept) + "\n")


def test_values_come_by_name(subject, desikan):
    stats = SubjectStats(subject, desikan)
    expected = np.arange(82) / 100 + 1
    np.testing.assert_allclose(stats.cortex("thickness")[:68], expected[:68])
    assert np.isnan(stats.cortex("thickness")[68:]).all()
    np.testing.assert_allclose(stats.cortex("volume")[:68], 1e3 * expected[:68])
    np.testing.assert_allclose(stats.subcortex_volume()[68:], 1e3 * expected[68:])


def test_order_of_rows_does_not_matter(subject, desikan):
    before = SubjectStats(subject, desikan).cortex("thickness")
    path = subject / "stats" / "lh.aparc.stats"
    lines = path.read_text().splitlines()
    head = [line for line in lines if line.startswith("#")]
    rows = [line for line in lines if not line.startswith("#")]
    path.write_text("\n".join(head + rows[::-1]) + "\n")
    np.testing.assert_array_equal(
        SubjectStats(subject, desikan).cortex("thickness"), before
    )


def test_a_region_that_freesurfer_did_not_find_is_not_measured(subject, desikan):
    path = subject / "stats" / "lh.aparc.stats"
    drop_rows(path, "cuneus")
    total = int(read_stats(path).numbers("NumVert").sum())
    path.write_text(
        re.sub(r"(NumVert, Number of Vertices), \d+", rf"\1, {total}", path.read_text())
    )
    values = SubjectStats(subject, desikan).cortex("thickness")
    place = desikan.find("lh_cuneus")
    assert np.flatnonzero(np.isnan(values[:68])).tolist() == [place]


def test_a_table_cut_at_its_end_is_refused(subject, desikan):
    path = subject / "stats" / "lh.aparc.stats"
    drop_rows(path, "insula")
    with pytest.raises(
        FileFormatError, match=r"lh\.aparc\.stats: 1 of 34 regions have"
    ):
        SubjectStats(subject, desikan).cortex("thickness")


def test_many_absent_regions_are_refused(subject, desikan):
    names = ["cuneus", "lingual", "fusiform", "precuneus", "entorhinal"]
    drop_rows(subject / "stats" / "rh.aparc.stats", *names)
    with pytest.raises(
        FileFormatError, match=r"5 of 34 regions have no row .ctx-rh-cun"
    ):
        SubjectStats(subject, desikan).cortex("thickness")


def test_vertices_tell_a_lost_row_from_an_absent_region(subject, desikan):
    path = subject / "stats" / "lh.aparc.stats"
    assert read_stats(path).n_vertices
    drop_rows(path, "cuneus")
    with pytest.raises(FileFormatError, match="1 of 34 regions have no row"):
        SubjectStats(subject, desikan).cortex("thickness")


def test_unknown_region_is_refused(subject, desikan):
    path = subject / "stats" / "lh.aparc.stats"
    path.write_text(path.read_text().replace("cuneus ", "cunnus "))
    with pytest.raises(RegionNameError, match=r"lh\.aparc\.stats: .*cunnus"):
        SubjectStats(subject, desikan).cortex("thickness")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lh.aparc.stats", "no such file"),
        ("aseg.stats", "no such file"),
    ],
)
def test_missing_file_is_named(subject, desikan, name, message):
    (subject / "stats" / name).unlink()
    stats = SubjectStats(subject, desikan)
    with pytest.raises(FileFormatError, match=f"{name}: {message}"):
        stats.cortex("thickness") if "aparc" in name else stats.subcortex_volume()


def test_other_parcellation_is_named(subject):
    with pytest.raises(
        FileFormatError, match=r"lh\.aparc\.stats is of another .*-parcs"
    ):
        SubjectStats(subject, load_atlas("destrieux160")).cortex("thickness")


def test_atlas_without_parcellation_of_freesurfer(subject, tiny):
    with pytest.raises(
        FileFormatError, match="known for destrieux160, desikan82, not for"
    ):
        SubjectStats(subject, tiny).cortex("thickness")


def test_hemispheres_that_were_exchanged_are_refused(subject, desikan):
    left, right = (subject / "stats" / f"{side}.aparc.stats" for side in ("lh", "rh"))
    left.write_text(right.read_text())
    with pytest.raises(FileFormatError, match=r"lh\.aparc\.stats: says .* of rh; exp"):
        SubjectStats(subject, desikan).cortex("thickness")


def test_a_structure_that_stands_twice_is_refused(subject, desikan):
    path = subject / "stats" / "aseg.stats"
    lines = [x for x in path.read_text().splitlines() if not x.startswith("# NRows")]
    again = next(x for x in lines if " Left-Thalamus " in x)
    again = again.replace("Left-Thalamus ", "Left-Thalamus-Proper ")
    path.write_text("\n".join([*lines, again]) + "\n")
    with pytest.raises(RegionNameError, match=r"aseg\.stats: 1 of .* more than once"):
        SubjectStats(subject, desikan).subcortex_volume()


def test_aseg_cut_short_is_refused(subject, desikan):
    path = subject / "stats" / "aseg.stats"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]))
    with pytest.raises(
        FileFormatError, match=r"aseg\.stats: cut short; expected \d+ rows"
    ):
        SubjectStats(subject, desikan).subcortex_volume()
    drop_rows(path, *[str(i) for i in range(5, 40)])
    path.write_text(path.read_text().replace("# NRows", "# Rows"))
    with pytest.raises(FileFormatError, match=r"aseg\.stats: no row for .*Amygdala"):
        SubjectStats(subject, desikan).subcortex_volume()


def test_a_head_without_a_size_is_refused(subject, desikan):
    path = subject / "stats" / "aseg.stats"
    size = "# Measure EstimatedTotalIntraCranialVol, eTIV, Size, {}, mm^3\n"
    text = path.read_text()
    path.write_text(size.format(1.5e6) + text)
    assert SubjectStats(subject, desikan).head_size() == 1.5e6
    for without in (size.format(0) + text, text):
        path.write_text(without)
        with pytest.raises(FileFormatError, match=r"aseg\.stats: no line '# Measure"):
            SubjectStats(subject, desikan).head_size()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a FreeSurfer stats file"),
        ("# ColHeaders StructName ThickAvg\n", "expected a FreeSurfer stats file"),
        ("# ColHeaders StructName ThickAvg\ninsula\n", "cut short; .* one of 1 cells"),
        (
            "# Measure Cortex, NumVert, Number of Vertices, many, unitless\n"
            "# ColHeaders StructName ThickAvg\ninsula 2\n",
            "a '# Measure' line must hold a number: .*'many'",
        ),
    ],
)
def test_stats_refused(write, text, message):
    with pytest.raises(FileFormatError, match=rf"x\.stats: {message}"):
        read_stats(write("x.stats", text))


def test_columns_refused(write):
    table = read_stats(write("x.stats", "# ColHeaders StructName ThickAvg\na 1x\n"))
    with pytest.raises(
        FileFormatError, match="no column SurfArea; found StructName, T"
    ):
        table.numbers("SurfArea")
    with pytest.raises(
        FileFormatError, match=r"column ThickAvg must hold numbers: .*1x"
    ):
        table.numbers("ThickAvg")


def test_every_cut_is_refused_or_gives_the_same(subject, desikan):
    path = subject / "stats" / "rh.aparc.stats"
    whole = path.read_text()
    truth = SubjectStats(subject, desikan).cortex("thickness")
    for length in range(0, len(whole), 397):
        path.write_text(whole[:length])
        with pytest.raises((FileFormatError, RegionNameError)):
            SubjectStats(subject, desikan).cortex("thickness")
    path.write_text(whole.rstrip("\n"))
    np.testing.assert_array_equal(
        SubjectStats(subject, desikan).cortex("thickness"), truth
    )


@pytest.mark.parametrize("person", ["soichi", "fabian"])
@pytest.mark.parametrize(
    ("atlas", "annotation"), [("destrieux160", "aparc.a2009s"), ("desikan82", "aparc")]
)
def test_real_stats_of_both_name_styles(shared, person, atlas, annotation):
    folder = shared / "fs_stats_samples" / person
    atlas = load_atlas(atlas)
    values = SubjectStats(folder, atlas).cortex("thickness")
    found = 0
    for side in ("lh", "rh"):  # the slow, plain way
        path = folder / "stats" / f"{side}.{annotation}.stats"
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                cells = line.split()
                name = f"{side}_{cells[0].replace('&', '_and_')}"
                assert values[atlas.find(name)] == float(cells[4])
                found += 1
    assert (
        found
        == np.isfinite(values).sum()
        == (atlas.regions.structure == "cortex").sum()
    )


def test_real_aseg(shared):
    atlas = load_atlas("destrieux160")
    stats = SubjectStats(shared / "fs_stats_samples" / "soichi", atlas)
    volumes = stats.subcortex_volume()
    assert volumes[atlas.find("Left-Thalamus")] == 8178.8
    assert np.isfinite(volumes).sum() == 12
