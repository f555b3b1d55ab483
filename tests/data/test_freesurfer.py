"""FreeSurfer's stats and measures of vertices: by name, whole, of the right side."""

import nibabel as nib
import numpy as np
import pytest

from brainlsap.atlas import load_atlas
from brainlsap.data.features import read_stats_values_and_notes
from brainlsap.data.measures import get_measure_record
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from tests.conftest import raises_kind
from tests.data import feature_formats as formats

ATLAS, DESIKAN = load_atlas("destrieux160"), load_atlas("desikan82")
VALUES = np.arange(82) / 100 + 1


@pytest.fixture
def subject(tmp_path):
    """Stats in which the thickness of a region is its position / 100 + 1."""
    return formats.write_stats(tmp_path / "sub-01", DESIKAN, VALUES)


def read(subject, feature="thickness", atlas=DESIKAN, subcortex="absent"):
    return read_stats_values_and_notes(
        subject, atlas, get_measure_record(feature), subcortex
    )[0]


def edit(path, change):
    """Change the rows of a stats file, not its header."""
    lines = path.read_text().splitlines()
    head = [line for line in lines if line.startswith("#")]
    rows = [line for line in lines if not line.startswith("#")]
    path.write_text("\n".join(head + change(rows)) + "\n")


def without(*names):
    return lambda rows: [row for row in rows if row.split()[0] not in names]


def test_values_come_by_name_in_any_order(subject):
    for _ in range(2):
        np.testing.assert_allclose(read(subject)[:68], VALUES[:68])
        assert np.isnan(read(subject)[68:]).all()
        np.testing.assert_allclose(read(subject / "stats", "volume"), 1e3 * VALUES)
        np.testing.assert_allclose(
            read(subject, subcortex="volume")[68:], 1e3 * VALUES[68:]
        )
        np.testing.assert_array_equal(read(subject, "area")[[0, 67]], [70, 137])
        edit(subject / "stats/lh.aparc.stats", lambda rows: rows[::-1])


def test_a_region_that_freesurfer_did_not_find_is_not_measured(subject):
    path = subject / "stats/lh.aparc.stats"
    edit(path, without("cuneus"))
    with pytest.raises(FileFormatError, match="1 of 34 regions have no row"):
        read(subject)  # its vertices are not in the sum: the row was lost
    path.write_text(path.read_text().replace("Vertices, 3400", "Vertices, 3300"))
    missing = np.flatnonzero(np.isnan(read(subject)[:68])).tolist()
    assert missing == [DESIKAN.find("lh_cuneus")]


LOBES = ("cuneus", "lingual", "fusiform", "precuneus", "entorhinal")


def exchange(old, new):
    return lambda rows: [row.replace(old, new) for row in rows]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("lh.aparc", without("insula"), r"1 of 34 regions have no row .ctx-lh-insula"),
        ("rh.aparc", without(*LOBES), r"5 of 34 regions have no row .ctx-rh-cun"),
        ("aseg", lambda rows: rows[:-1], r"16 rows of 6 cells; got 15 rows"),
        ("aseg", lambda rows: [*rows[:-1], rows[0]], "more than once"),
        ("lh.aparc", exchange("cuneus ", "cunnus "), "atlas desikan82: 'cunnus'"),
        (
            "lh.aparc",
            lambda rows: [*rows[:-1], "insula 2 3"],
            "6 cells; got 34 rows of 3",
        ),
        ("lh.aparc", exchange(".0", "x"), "could not convert string to float"),
        ("lh.aparc", lambda rows: rows[:0], "not a complete FreeSurfer stats file"),
    ],
)
def test_rows_refused(subject, name, change, message):
    edit(subject / f"stats/{name}.stats", change)
    with pytest.raises((FileFormatError, RegionNameError), match=message) as error:
        read(subject, "volume")
    assert f"{name}.stats: " in str(error.value)


def test_other_names_of_the_thalamus_and_lost_structures(subject):
    path = subject / "stats/aseg.stats"
    whole = path.read_text()
    path.write_text(whole.replace("Left-Thalamus ", "Left-Thalamus-Proper "))
    np.testing.assert_allclose(read(subject, "volume"), 1e3 * VALUES)
    path.write_text(whole.replace("Left-Amygdala", "Left-Vessel"))
    with pytest.raises(FileFormatError, match=r"no row \(Left-Amygdala\)"):
        read(subject, "volume")


def test_hemispheres_that_were_exchanged_are_refused(subject):
    left, right = (subject / f"stats/{side}.aparc.stats" for side in ("lh", "rh"))
    left.write_text(right.read_text())
    with pytest.raises(
        FileFormatError, match=r"lh\.aparc\.stats: .* belongs to the other hemi"
    ):
        read(subject)


def test_missing_files_and_other_parcellations_are_named(subject, tiny):
    with pytest.raises(FileFormatError, match=r"lh\.aparc\.stats belongs to another"):
        read(subject, atlas=ATLAS)
    with pytest.raises(FileFormatError, match=r"atlas\.json of tiny"):
        read(subject, atlas=tiny)
    with pytest.raises(ParameterError, match="must be one of 'area', 'thickness', 'v"):
        read(subject, "curvature")
    for name, feature in (("aseg", "volume"), ("rh.aparc", "thickness")):
        (subject / f"stats/{name}.stats").unlink()
        with raises_kind("no such file", f"{name}.stats"):
            read(subject, feature)


def test_every_cut_is_refused(subject):
    path = subject / "stats" / "rh.aparc.stats"
    whole = path.read_text()
    for length in range(0, len(whole), 199):
        path.write_text(whole[:length])
        with pytest.raises((FileFormatError, RegionNameError)):
            read(subject)


@pytest.mark.parametrize("person", ["soichi", "fabian"])
@pytest.mark.parametrize("atlas", [ATLAS, DESIKAN], ids=["destrieux", "desikan"])
def test_real_stats_of_both_name_styles(shared, person, atlas):
    folder = shared / "fs_stats_samples" / person
    values = read(folder, atlas=atlas)
    found = 0
    for side in ("lh", "rh"):  # the slow, plain way
        path = folder / "stats" / f"{side}.{atlas.settings['annotation']}.stats"
        for line in path.read_text().splitlines():
            if not line.startswith("#"):
                cells = line.split()
                name = f"{side}_{cells[0].replace('&', '_and_')}"
                assert values[atlas.find(name)] == float(cells[4])
                found += 1
    assert found == np.isfinite(values).sum() == atlas.cortex.sum()


# ---- measures of vertices -----------------------------------------------------------


@pytest.mark.parametrize("atlas", [ATLAS, DESIKAN], ids=["destrieux", "desikan"])
def test_vertices_are_averaged_plainly(tmp_path, atlas):
    means = formats.write_vertices(tmp_path, atlas)
    formats.write_vertices(tmp_path, atlas, "curv")
    values, notes = read_stats_values_and_notes(
        tmp_path, atlas, get_measure_record("thickness")
    )
    np.testing.assert_allclose(values, means, atol=5e-7)
    assert notes == ("thickness: a region has the plain mean over its vertices",)
    assert np.isfinite(read(tmp_path, "curv", atlas)[atlas.cortex]).all()
    formats.write_vertices(tmp_path, atlas, "area")
    with pytest.raises(FileFormatError, match="is a sum over faces, not a mean over"):
        read(tmp_path, "area", atlas)


def test_vertices_outside_the_cortex_label_do_not_count(tmp_path):
    formats.write_vertices(tmp_path, ATLAS)
    annot = tmp_path / "label/lh.aparc.a2009s.annot"
    labels, _, names = nib.freesurfer.read_annot(annot)
    per_vertex = nib.freesurfer.read_morph_data(tmp_path / "surf/lh.thickness")
    inside = np.arange(len(labels)) % 3 > 0
    rows = "".join(f"{i}  0.0 0.0 0.0 0.0\n" for i in np.flatnonzero(inside))
    label = tmp_path / "label/lh.cortex.label"
    label.write_text(f"#!ascii label\n{inside.sum()}\n{rows}")
    place = names.index(b"G_and_S_frontomargin")
    expected = per_vertex[(labels == place) & inside].astype(float).mean()
    assert read(tmp_path, "thickness", ATLAS)[0] == pytest.approx(expected)
    label.write_text("#\n1\n99999 0\n")
    with pytest.raises(FileFormatError, match=r"cortex\.label: .* out of bounds"):
        read(tmp_path, "thickness", ATLAS)


def test_files_of_vertices_refused(tmp_path):
    formats.write_vertices(tmp_path, ATLAS)
    with pytest.raises(FileFormatError, match=r"lh\.aparc\.annot: .*o such file"):
        read(tmp_path, "thickness", DESIKAN)
    path = tmp_path / "surf/lh.thickness"
    whole = path.read_bytes()
    for cut in (2, 20, -4):
        path.write_bytes(whole[:cut])
        with pytest.raises(
            FileFormatError, match=r"lh\.thickness: .* (truncated|incomplete)"
        ):
            read(tmp_path, "thickness", ATLAS)
    nib.freesurfer.write_morph_data(path, np.ones(5, np.float32))
    with pytest.raises(FileFormatError, match=r"5 vertices, but .* contains 3040"):
        read(tmp_path, "thickness", ATLAS)
