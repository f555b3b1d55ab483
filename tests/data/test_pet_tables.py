"""PETSurfer's stats and activity over time: by name, averaged, over a reference."""

import numpy as np
import pytest

from brainlsap.atlas import load_atlas
from brainlsap.data.measures import get_measure_record
from brainlsap.data.region_tables import read_region_values_and_notes
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from tests.conftest import raises_kind
from tests.data import feature_formats as formats

ATLAS, DESIKAN = load_atlas("destrieux160"), load_atlas("desikan82")
VALUES = np.round(np.random.default_rng(8).uniform(0.8, 1.9, len(ATLAS)), 4)


def read(path, atlas=ATLAS, feature="suvr", **options):
    return read_region_values_and_notes(
        path, atlas, get_measure_record(feature), **options
    )


@pytest.mark.parametrize("n_columns", [7, 8])
def test_petsurfer_by_name_in_any_order(tmp_path, n_columns):
    order = np.random.default_rng(0).permutation(len(ATLAS))
    names = np.array(ATLAS.names)[order]
    path = tmp_path / "gtm.stats.dat"
    formats.write_gtm_stats(path, names, VALUES[order], n_columns)
    values, notes, places = read(path, feature="fdg")
    np.testing.assert_array_equal(values, VALUES)
    assert notes == ("PET: values have the scaling of mri_gtmpvc",)
    assert len(places) == len(ATLAS)


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("cerebellar cortex", (2 + 3 * 6) / 4),  # by voxels
        ("Pons", 5.0),
        ("brain stem", 9.5),
        ("whole cerebellum", (2 + 3 * 6 + 3 + 3) / 6),
        ("Left-Cerebellum-Cortex", 2.0),
    ],
)
def test_petsurfer_is_rescaled(tmp_path, reference, value):
    path = formats.write_gtm_stats(tmp_path / "gtm.stats.dat", ATLAS.names, VALUES)
    values, notes, _ = read(path, reference=reference)
    np.testing.assert_allclose(values, VALUES / value)
    assert notes == (f"PET: values were divided by the mean of {reference}",)


def test_petsurfer_of_another_tracer_is_refused(tmp_path):
    path = tmp_path / "sub-01_trc-AV45_gtm.stats.dat"
    formats.write_gtm_stats(path, ATLAS.names, VALUES)
    with pytest.raises(FileFormatError, match=r"AV45 .*not fdg"):
        read(path, feature="fdg")


def test_petsurfer_refused(tmp_path):
    path = formats.write_gtm_stats(tmp_path / "gtm.stats.dat", ATLAS.names, VALUES)
    with pytest.raises(FileFormatError, match="unknown reference region 'left arm'"):
        read(path, reference="left arm")
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(FileFormatError, match="7 or 8 cells in each row"):
        read(path)
    lines = text.splitlines()
    path.write_text("\n".join(lines[:5] + lines[6:]))
    with pytest.raises(FileFormatError, match="in the first column"):
        read(path)
    formats.write_gtm_stats(path, DESIKAN.names, np.ones(82))
    message = r"belong to desikan82, not to destrieux160\. .*--ctx-annot aparc\.a2009s"
    with pytest.raises(RegionNameError, match=message):
        read(path)
    assert read(path, DESIKAN)[0].sum() == 82


@pytest.mark.parametrize(
    "heads", [("frame_start", "frame_end"), ("FrameTimesStart", "FrameTimesEnd")]
)
def test_time_series_are_averaged_and_divided(tmp_path, heads):
    order = np.random.default_rng(2).permutation(len(ATLAS))
    names = [*np.array(ATLAS.names)[order], *formats.OTHERS]
    values = [*VALUES[order], *formats.OTHERS.values()]
    path = tmp_path / "sub-01_seg-gtmseg_tacs.tsv"
    formats.write_time_series(path, names, values, heads)
    for window in ((10, 40), (20, 40)):
        found = read(path, frames=window, reference="cerebellar cortex")[0]
        np.testing.assert_allclose(found, VALUES / 4, rtol=1e-8)
    found = read(path, frames=(10, 40), reference="Pons")[0]
    np.testing.assert_allclose(found, VALUES / 5, rtol=1e-8)


def test_the_whole_cerebellum_of_a_time_series_is_refused(tmp_path):
    """J5: grey and white matter counted alike, whatever their sizes."""
    path = tmp_path / "x_tacs.tsv"
    values = [*VALUES, *formats.OTHERS.values()]
    formats.write_time_series(path, [*ATLAS.names, *formats.OTHERS], values)
    with raises_kind("parts without volumes", "x_tacs.tsv", n_parts=4):
        read(path, frames=(20, 40), reference="whole cerebellum")


def test_petprep_writes_the_reference_beside_it(tmp_path):
    stem = "sub-01_seg-aparc_"
    path = tmp_path / f"{stem}desc-preproc_timeseries.tsv"
    formats.write_time_series(path, ATLAS.names, VALUES)
    own = tmp_path / f"{stem}ref-cerebellum_desc-preproc_timeseries.tsv"
    formats.write_time_series(own, ["cerebellum"], [4.0])
    found = read(path, frames=(10, 40))[0]
    np.testing.assert_allclose(found, VALUES / 4, rtol=1e-8)
    formats.write_time_series(own, ["a", "b"], [4.0, 2.0])
    with pytest.raises(FileFormatError, match="a time series of one reference region"):
        read(path, frames=(10, 40))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ParameterError, ": the 4 frames change .* 40, 60. Choose .* with frames="),
        ({"frames": (10, 40)}, ParameterError, "Name the reference .* with reference="),
        ({"frames": (5, 40)}, FileFormatError, "window from 5 to 40 must begin"),
        ({"frames": (20, 90)}, FileFormatError, "begin or end at 0, 10, 20, 40, 60"),
        (
            {"frames": (0, 10), "reference": "Pons"},
            FileFormatError,
            "Pons must be above 0; got 0",
        ),
    ],
)
def test_time_series_refused(tmp_path, options, error, message):
    path = tmp_path / "x_tacs.tsv"
    formats.write_time_series(path, [*ATLAS.names, "Pons"], [*VALUES, 5.0])
    with pytest.raises(error, match=message):
        read(path, **options)


@pytest.mark.parametrize("rows", ["", "0\t10\t1\n5\t20\t1\n"])
def test_frames_refused(write, rows):
    path = write("x_tacs.tsv", f"frame_start\tframe_end\tPons\n{rows}")
    with raises_kind("frame window", "x_tacs.tsv"):
        read(path, frames=(0, 20), reference="Pons")


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 1, 3], [3, 2, 1, 0]])
def test_activity_over_time_is_known_wherever_its_frames_stand(write, tiny, order):
    """A column that counts rows, put in front, made activity pass for a ratio."""
    values = np.arange(7) + 1.5
    parts = [["frame_start", "0"], ["frame_end", "60"], ["", "0"], ["pons", "4"]]
    columns = [parts[i] for i in order]
    columns += [list(pair) for pair in zip(tiny.names, map(str, values), strict=True)]
    text = "\n".join("\t".join(row) for row in zip(*columns, strict=True)) + "\n"
    path = write("x_tacs.tsv", text)
    np.testing.assert_allclose(read(path, tiny, reference="pons")[0], values / 4)
    with pytest.raises(ParameterError, match=r"activity over time\. Name the ref"):
        read(path, tiny)
