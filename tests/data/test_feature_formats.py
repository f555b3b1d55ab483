"""Every documented file of regional values goes in and comes out by name."""

import struct

import nibabel as nib
import numpy as np
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.feature_tables import read_feature_table
from brainlsap.data.features import read_feature
from brainlsap.data.vertex_features import read_vertex_feature, read_vertices
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from tests.data import feature_formats as formats

ATLAS = load_atlas("destrieux160")
DESIKAN = load_atlas("desikan82")
VALUES = np.round(np.random.default_rng(8).uniform(0.8, 1.9, len(ATLAS)), 4)
BELOW = (ATLAS.regions["structure"] == "subcortex").to_numpy()


@pytest.mark.parametrize("n_columns", [7, 8])
@pytest.mark.parametrize("seed", [0, 1])
def test_petsurfer_by_name_whatever_the_base_of_labels(tmp_path, n_columns, seed):
    order = np.random.default_rng(seed).permutation(len(ATLAS))
    names = np.array(ATLAS.names)[order]
    path = formats.write_gtm_stats(
        tmp_path / "gtm.stats.dat", names, VALUES[order], n_columns
    )
    found = read_feature(path, "fdg", ATLAS)
    np.testing.assert_array_equal(found.values, VALUES)
    assert found.notes == ("PET: values as mri_gtmpvc scaled them",)


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
    found = read_feature(path, "suvr", ATLAS, reference=reference)
    np.testing.assert_allclose(found.values, VALUES / value)
    assert found.notes == (f"PET: divided by the mean of {reference}",)


def test_petsurfer_refused(tmp_path):
    path = formats.write_gtm_stats(tmp_path / "gtm.stats.dat", ATLAS.names, VALUES)
    with pytest.raises(FileFormatError, match="no region 'left arm' to refer to"):
        read_feature(path, "fdg", ATLAS, reference="left arm")
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(FileFormatError, match="rows of 7 or 8 cells"):
        read_feature(path, "fdg", ATLAS)
    lines = text.splitlines()
    path.write_text("\n".join(lines[:5] + lines[6:]))
    with pytest.raises(FileFormatError, match="rows must be counted 1 to 166"):
        read_feature(path, "fdg", ATLAS)


def test_petsurfer_of_desikan_is_refused_with_the_step(tmp_path):
    names = [n.replace("ctx-lh-", "ctx-lh-") for n in DESIKAN.names]
    path = formats.write_gtm_stats(
        tmp_path / "gtm.stats.dat", names, np.ones(len(names))
    )
    message = r"those of desikan82, not of destrieux160\. .*--ctx-annot aparc\.a2009s"
    with pytest.raises(RegionNameError, match=message):
        read_feature(path, "fdg", ATLAS)
    assert read_feature(path, "fdg", DESIKAN).values.sum() == len(DESIKAN)


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
        found = read_feature(
            path, "suvr", ATLAS, frames=window, reference="cerebellar cortex"
        )
        np.testing.assert_allclose(found.values, VALUES / 4, rtol=1e-8)
    found = read_feature(path, "suvr", ATLAS, frames=(10, 40), reference="Pons")
    np.testing.assert_allclose(found.values, VALUES / 5, rtol=1e-8)


def test_the_reference_may_be_a_file_of_its_own(tmp_path):
    stem = "sub-01_seg-aparc_"
    path = tmp_path / f"{stem}desc-preproc_timeseries.tsv"
    formats.write_time_series(path, ATLAS.names, VALUES)
    own = tmp_path / f"{stem}ref-cerebellum_desc-preproc_timeseries.tsv"
    formats.write_time_series(own, ["cerebellum"], [4.0])
    for reference in (None, own, str(own)):
        found = read_feature(path, "suvr", ATLAS, frames=(10, 40), reference=reference)
        np.testing.assert_allclose(found.values, VALUES / 4, rtol=1e-8)
    formats.write_time_series(own, ["a", "b"], [4.0, 2.0])
    with pytest.raises(FileFormatError, match="a time series of one reference region"):
        read_feature(path, "suvr", ATLAS, frames=(10, 40))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, ParameterError, r"has 4 frames from 0 to 60; .* frames=\(start, end\)"),
        ({"frames": (10, 40)}, ParameterError, "name the region .* by reference="),
        ({"frames": (5, 40)}, FileFormatError, "window 5 to 40 must begin and end"),
        ({"frames": (20, 90)}, FileFormatError, "change at 0, 10, 20, 40, 60"),
        (
            {"frames": (0, 10), "reference": "Pons"},
            FileFormatError,
            "Pons has the mean 0; expected more than 0",
        ),
    ],
)
def test_time_series_refused(tmp_path, options, error, message):
    names, values = [*ATLAS.names, "Pons"], [*VALUES, 5.0]
    path = formats.write_time_series(tmp_path / "x_tacs.tsv", names, values)
    with pytest.raises(error, match=message):
        read_feature(path, "suvr", ATLAS, **options)


def test_a_table_that_ends_in_the_cortex_must_end_its_line(tmp_path):
    path = tmp_path / "r.tsv"
    formats.write_clinica(path, ATLAS.names[:148], VALUES[:148], ("region", "suvr"))
    assert np.isnan(read_feature(path, "suvr", ATLAS).values[-1])
    path.write_text(path.read_text()[:-2])
    with pytest.raises(FileFormatError, match="the last line has no end: the file may"):
        read_feature(path, "suvr", ATLAS)


def test_overlapping_frames_refused(tmp_path):
    (tmp_path / "empty_tacs.tsv").write_text("frame_start\tframe_end\tPons\n")
    with pytest.raises(FileFormatError, match="no frames, or frames without start"):
        read_feature(tmp_path / "empty_tacs.tsv", "suvr", ATLAS, reference="Pons")
    path = tmp_path / "x_tacs.tsv"
    path.write_text("frame_start\tframe_end\tPons\n0\t10\t1\n5\t20\t1\n")
    with pytest.raises(FileFormatError, match="frames must follow each other"):
        read_feature(path, "suvr", ATLAS, frames=(0, 20), reference="Pons")


def test_clinica_long_with_both_sides_in_one_file(tmp_path):
    bare = ATLAS.regions["annot_name"][:74].tolist()
    path = tmp_path / "sub-01_ses-M00_parcellation-destrieux_thickness.tsv"
    sums = ["NumVert", "WhiteSurfArea", "MeanThickness"]
    left, right = VALUES[:74], VALUES[74:148]
    formats.write_clinica(path, [*sums, *bare, *bare], [1e5, 9e4, 2.5, *left, *right])
    found = read_feature(path, "thickness", ATLAS)
    np.testing.assert_allclose(found.values[:148], VALUES[:148])
    swapped = [*bare[1:], bare[0]]
    formats.write_clinica(path, [*bare, *swapped], [*left, *right])
    with pytest.raises(RegionNameError, match="148 of 148 names unknown"):
        read_feature(path, "thickness", ATLAS)


@pytest.mark.parametrize("sides", [("left", "right"), ("L", "R"), ("lh", "rh")])
def test_clinica_with_the_side_in_the_name(tmp_path, sides):
    bare = DESIKAN.regions["annot_name"][:34].tolist()
    stem = "sub-01_hemi-{}_parcellation-desikan_thickness.tsv"
    left, right = (tmp_path / stem.format(side) for side in sides)
    formats.write_clinica(left, bare, np.arange(1.0, 35))
    with pytest.raises(FileFormatError, match=r"34 of 68 cortex regions .* ctx-rh"):
        read_feature(left, "thickness", DESIKAN)
    formats.write_clinica(right, bare[::-1], np.arange(2.0, 36)[::-1])
    for path in (left, right):
        found = read_feature(path, "thickness", DESIKAN).values
        np.testing.assert_array_equal(found[:34], np.arange(1, 35))
        np.testing.assert_array_equal(found[34:68], np.arange(2, 36))


def test_clinica_pet_surface(tmp_path):
    name = "sub-01_ses-M00_trc-18FFDG_pet_space-destrieux_pvc-iy_suvr-pons_stat.tsv"
    path = formats.write_pet_surface(tmp_path / name, ATLAS, VALUES)
    found = read_feature(path, "fdg", ATLAS)
    np.testing.assert_allclose(found.values[~BELOW], VALUES[~BELOW])
    assert np.isnan(found.values[BELOW]).all()


def test_vertices_are_averaged_plainly(tmp_path):
    for atlas in (ATLAS, DESIKAN):
        folder = tmp_path / atlas.name
        means = formats.write_vertices(folder, atlas)
        formats.write_vertices(folder, atlas, "curv")
        found = read_feature(folder, "thickness", atlas)
        np.testing.assert_allclose(found.values, means, atol=5e-7)
        assert found.notes[0] == "thickness: plain mean over the vertices"
        assert np.isfinite(read_feature(folder, "curv", atlas).values[:68]).all()


def test_vertices_outside_the_cortex_label_do_not_count(tmp_path):
    formats.write_vertices(tmp_path, ATLAS)
    labels, _, names = nib.freesurfer.read_annot(
        tmp_path / "label/lh.aparc.a2009s.annot"
    )
    values = nib.freesurfer.read_morph_data(tmp_path / "surf/lh.thickness")
    kept = np.arange(0, len(labels), 2)
    rows = "".join(f"{i}  0.0  0.0  0.0 0.0\n" for i in kept)
    label = tmp_path / "label/lh.cortex.label"
    label.write_text(
        f"#!ascii label  , from subject x vox2ras=TkReg\n{len(kept)}\n{rows}"
    )
    found = read_vertex_feature(tmp_path, "thickness", ATLAS)
    index = names.index(b"G_cuneus")
    mean = values[kept][labels[kept] == index].astype(float).mean()
    assert found[ATLAS.find("lh_G_cuneus")] == pytest.approx(mean, abs=1e-6)
    label.write_text("#!ascii\n1\n999999 0 0 0 0\n")
    with pytest.raises(FileFormatError, match="names vertices outside 0 to 3039"):
        read_vertex_feature(tmp_path, "thickness", ATLAS)
    label.write_text("#!ascii\n1\nx\n")
    with pytest.raises(FileFormatError, match="no FreeSurfer label file"):
        read_vertex_feature(tmp_path, "thickness", ATLAS)


def test_overlays_may_be_images(tmp_path):
    means = formats.write_vertices(tmp_path, ATLAS)
    for side in ("lh", "rh"):
        path = tmp_path / f"surf/{side}.thickness"
        values = nib.freesurfer.read_morph_data(path).astype(np.float32)
        image = nib.MGHImage(values.reshape(-1, 1, 1), np.eye(4))
        suffix = {"lh": "mgh", "rh": "mgz"}[side]
        nib.save(image, tmp_path / f"surf/{side}.pet.{suffix}")
    found = read_feature(tmp_path, "pet", ATLAS)
    np.testing.assert_allclose(found.values, means, atol=5e-7)
    (tmp_path / "surf/lh.pet.mgh").write_bytes(b"no image")
    with pytest.raises(FileFormatError, match=r"lh\.pet\.mgh: cannot be read"):
        read_feature(tmp_path, "pet", ATLAS)
    flat = nib.MGHImage(np.ones((4, 5, 1), np.float32), np.eye(4))
    nib.save(flat, tmp_path / "surf/lh.pet.mgh")
    with pytest.raises(FileFormatError, match="expected one value a vertex"):
        read_feature(tmp_path, "pet", ATLAS)


def test_vertices_refused(tmp_path, tiny):
    formats.write_vertices(tmp_path, ATLAS)
    with pytest.raises(FileFormatError, match="area of a region is a sum over faces"):
        read_vertex_feature(tmp_path, "area", ATLAS)
    with pytest.raises(FileFormatError, match="not for atlas tiny"):
        read_vertex_feature(tmp_path, "thickness", tiny)
    with pytest.raises(FileFormatError, match=r"surf: no files lh\.sulc and rh\.sulc"):
        read_vertex_feature(tmp_path, "sulc", ATLAS)
    with pytest.raises(FileFormatError, match=r"lh\.aparc\.annot: no such file"):
        read_vertex_feature(tmp_path, "thickness", DESIKAN)
    path = tmp_path / "surf/lh.thickness"
    whole = path.read_bytes()
    for cut, message in ((2, "no file of values"), (-4, "may be cut short")):
        path.write_bytes(whole[:cut])
        with pytest.raises(FileFormatError, match=message):
            read_vertex_feature(tmp_path, "thickness", ATLAS)
    nib.freesurfer.write_morph_data(path, np.ones(5, np.float32))
    with pytest.raises(FileFormatError, match=r"5 vertices, but .* has 3040"):
        read_vertex_feature(tmp_path, "thickness", ATLAS)
    path.write_bytes(whole)
    annot = tmp_path / "label/lh.aparc.a2009s.annot"
    data = annot.read_bytes()
    for broken in (b"", b"\x7f\xff\xff\xff", data[:100]):
        annot.write_bytes(broken)
        with pytest.raises(FileFormatError, match=r"a2009s\.annot: cannot be read"):
            read_vertex_feature(tmp_path, "thickness", ATLAS)
    labels, table, names = [1, 0], np.zeros((2, 5), int), ["Unknown", "not_a_region"]
    table[:, 0] = [1, 2]
    nib.freesurfer.write_annot(annot, np.array(labels), table, names, fill_ctab=True)
    nib.freesurfer.write_morph_data(path, np.ones(2, np.float32))
    with pytest.raises(RegionNameError, match=r"a2009s\.annot: .*'not_a_region'"):
        read_vertex_feature(tmp_path, "thickness", ATLAS)


def adni_table(tmp_path, name, columns):
    heads, values = ["RID", "VISCODE", "VISCODE2", *columns], columns.values()
    rows = [["4001", "v03", "bl", *values], ["4002", "v03", "m12", *values]]
    text = "\n".join(",".join(map(str, row)) for row in [heads, *rows])
    (tmp_path / name).write_text(text + "\n")
    return tmp_path / name


def test_uc_berkeley(tmp_path):
    columns = {"SUMMARY_SUVR": 1.2, "WHOLECEREBELLUM_SUVR": 1, "CTX_BANKSSTS_SUVR": 9}
    for i, name in enumerate(DESIKAN.names):
        head = name.upper().replace("-", "_").replace("THALAMUS", "THALAMUS_PROPER")
        columns |= {f"{head}_SUVR": i + 0.5, f"{head}_VOLUME": 1000 + i}
    columns |= {"LEFT_CEREBELLUM_CORTEX_SUVR": 1, "BRAAK1_SUVR": 7}
    path = adni_table(tmp_path, "UCBERKELEY_AMY_6MM.csv", columns)
    for feature in ("amyloid", "suvr", "tau"):
        found = read_feature_table(path, DESIKAN, feature)
        assert found.columns.tolist() == list(DESIKAN.names)
        np.testing.assert_array_equal(found.loc["4002"], np.arange(82) + 0.5)
    found = read_feature_table(path, DESIKAN, "volume")
    np.testing.assert_array_equal(found.loc["4001"], np.arange(82) + 1000)
    with pytest.raises(FileFormatError, match="of desikan82, not of destrieux160"):
        read_feature_table(path, ATLAS, "thickness")


def test_ucsf_freesurfer(tmp_path):
    # published: 24 left entorhinal, 83 right; 29 and 88 hippocampus; 129, 130 insula
    published = {24: "ctx-lh-entorhinal", 83: "ctx-rh-entorhinal"}
    published |= {51: "ctx-lh-precentral", 110: "ctx-rh-precentral"}
    published |= {59: "ctx-lh-supramarginal", 118: "ctx-rh-supramarginal"}
    published |= {121: "ctx-rh-transversetemporal", 129: "ctx-lh-insula"}
    published |= {130: "ctx-rh-insula", 13: "ctx-lh-bankssts"}
    below = {29: "Left-Hippocampus", 88: "Right-Hippocampus", 120: "Right-Thalamus"}
    columns = {f"ST{n}TA": n / 100 for n in published}
    columns |= {f"ST{n}CV": n for n in published} | {f"ST{n}SV": n for n in below}
    columns |= {"ST24TS": 0.5, "ST10CV": 1500.0, "ST1SV": 1, "STATUS": "complete"}
    path = adni_table(tmp_path, "UCSFFSX7.csv", columns)
    thickness = read_feature_table(path, DESIKAN, "thickness").loc["4001"]
    assert thickness.to_dict() == {name: n / 100 for n, name in published.items()}
    volume = read_feature_table(path, DESIKAN, "volume").loc["4001"]
    expected = {name: n for n, name in (published | below).items()}
    assert volume.to_dict() == expected
    shares = read_feature_table(path, DESIKAN, "volume_per_etiv").loc["4001"]
    np.testing.assert_allclose(
        shares[list(expected)], np.array([*expected.values()]) / 1500
    )


def test_volumes_divided_by_the_head_size(tmp_path, shared):
    folder = shared / "fs_stats_samples" / "soichi"
    volume = read_feature(folder, "volume", ATLAS).values
    line = next(
        text
        for text in (folder / "stats/aseg.stats").read_text().splitlines()
        if "EstimatedTotalIntraCranialVol" in text
    )
    size = float(line.split(",")[3])
    share = read_feature(folder, "volume_per_etiv", ATLAS).values
    np.testing.assert_allclose(share, volume / size)
    assert 0.001 < np.nansum(share) < 1
    path = formats.write_clinica(tmp_path / "volume.tsv", ATLAS.names, VALUES)
    with pytest.raises(FileFormatError, match="needs the intracranial volume, which"):
        read_feature(path, "volume_per_etiv", ATLAS)
    table = tmp_path / "t.csv"
    heads = ["id", *(f"{name}_volume" for name in ATLAS.names)]
    table.write_text(",".join(heads) + "\na," + ",".join(map(str, VALUES)) + "\n")
    with pytest.raises(FileFormatError, match="volume_per_etiv needs a column eTIV"):
        read_feature_table(table, ATLAS, "volume_per_etiv")
    heads.append("eTIV")
    table.write_text(",".join(heads) + "\na," + ",".join(map(str, VALUES)) + ",0\n")
    with pytest.raises(FileFormatError, match="eTIV must be above 0 in every row"):
        read_feature_table(table, ATLAS, "volume_per_etiv")


def test_an_overlay_that_promises_terabytes_asks_for_no_memory(tmp_path):
    path = tmp_path / "lh.thickness.mgh"
    image = nib.MGHImage(np.ones((5, 1, 1), np.float32), np.eye(4))
    image.to_filename(path)
    assert read_vertices(path).tolist() == [1] * 5
    content = bytearray(path.read_bytes())
    content[4:16] = struct.pack(">3i", 2**30, 2**10, 1)
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"header promises .* values"):
        read_vertices(path)
