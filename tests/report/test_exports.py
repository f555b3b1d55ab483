import json

import nibabel
import numpy as np
import pandas as pd
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.report import write_region_maps
from brainlsap.report.export_images import _distinct

ATLAS = load_atlas("desikan82")


def draw_values(seed=0):
    rng = np.random.default_rng(seed)
    values = pd.Series(rng.uniform(0.2, 1.7, size=len(ATLAS)), index=ATLAS.names)
    values.iloc[4] = np.nan
    return values


def make_parcellation(path):
    """Write an image with two voxels of FreeSurfer's number for each region."""
    numbers = ATLAS.regions["freesurfer_id"].to_numpy()
    data = np.zeros((5, 6, 7), dtype=np.int32)
    data.ravel()[: 2 * len(numbers)] = np.repeat(numbers, 2)
    affine = np.diag([2.0, 2, 2, 1])
    affine[:3, 3] = [-7, 5, 3]
    nibabel.Nifti1Image(data, affine).to_filename(path)
    return data, affine


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    data, affine = make_parcellation(folder / "labels.nii.gz")
    maps = {"LSAP-C": draw_values(1), "Exact": draw_values(2)}
    files = write_region_maps(
        maps,
        folder / "out",
        ATLAS,
        parcellation=folder / "labels.nii.gz",
        measure="heat scale",
        unit="dimensionless",
    )
    return maps, folder / "out", files, (data, affine)


def test_every_file_is_told_and_every_image_has_a_sidecar(exported):
    _, out, files, _ = exported
    assert sorted(files) == sorted(out.iterdir())
    names = {file.name for file in files}
    assert names >= {
        *("regions.tsv", "regions.csv", "regions.json", "ggseg.csv"),
        *("enigma_cortex_fsa5.csv", "enigma_subcortex.csv"),
        *("lh.LSAPC.annot", "rh.Exact.annot", "desc-LSAPC_regions.nii.gz"),
        "desc-LSAPC_regions.json",
        "hemi-L_space-fsaverage5_regions.shape.gii",
        "hemi-R_space-fsaverage5_regions.func.json",
        "space-fsaverage5_regions.dscalar.nii",
        "space-fsaverage5_regions.dscalar.json",
    }
    told = json.loads((out / "hemi-R_space-fsaverage5_regions.func.json").read_text())
    assert told["Maps"] == ["LSAP-C", "Exact"]
    assert (told["Space"], told["MedialWall"]) == ("fsaverage5", "NaN")
    assert told["GeneratedBy"][0]["Name"] == "brainlsap"


def test_cifti_holds_vertices_and_voxels_by_structure(exported):
    maps, out, _, (data, affine) = exported
    image = nibabel.load(out / "space-fsaverage5_regions.dscalar.nii")
    assert image.nifti_header.get_intent()[0] == "ConnDenseScalar"
    scalars, brain = (image.header.get_axis(number) for number in (0, 1))
    assert list(scalars.name) == ["LSAP-C", "Exact"]
    values = np.asarray(image.dataobj)
    assert values.dtype == np.float32
    seen = set()
    for structure, where, axis in brain.iter_structures():
        name = structure.removeprefix("CIFTI_STRUCTURE_")
        seen.add(name)
        if name.startswith("CORTEX"):
            labels = ATLAS.vertex_labels(name[7])
            np.testing.assert_array_equal(axis.vertex, np.flatnonzero(labels >= 0))
            places = labels[labels >= 0]
        else:
            np.testing.assert_allclose(axis.affine, affine)
            numbers = data[tuple(axis.voxel.T)]
            known = list(ATLAS.regions["freesurfer_id"])
            places = [known.index(number) for number in numbers]
            assert len(places) == 2  # two voxels a region
        for row, map_values in enumerate(maps.values()):
            expected = map_values.to_numpy()[places]
            np.testing.assert_allclose(values[row, where], expected, rtol=1e-6)
    n_below = (ATLAS.regions["structure"] != "cortex").sum()
    assert len(seen) == 2 + n_below
    assert {"CORTEX_LEFT", "HIPPOCAMPUS_LEFT", "PUTAMEN_RIGHT"} <= seen


def test_tables_hold_the_values_by_name(exported):
    maps, out, _, _ = exported
    tsv = pd.read_csv(out / "regions.tsv", sep="\t", index_col="region")
    csv = pd.read_csv(out / "regions.csv", index_col="region")
    for name, values in maps.items():
        for table in (tsv, csv):
            np.testing.assert_allclose(table[name], values.loc[table.index])
    assert "n/a" in (out / "regions.tsv").read_text()
    told = json.loads((out / "regions.json").read_text())
    assert set(told) == {"region", *tsv.columns}
    assert told["Exact"] == {"Description": "heat scale", "Units": "dimensionless"}


@pytest.mark.parametrize("kind", ["shape", "func"])
@pytest.mark.parametrize(("side", "name"), [("L", "CortexLeft"), ("R", "CortexRight")])
def test_gifti_is_read_back(exported, kind, side, name):
    maps, out, _, _ = exported
    image = nibabel.load(out / f"hemi-{side}_space-fsaverage5_regions.{kind}.gii")
    assert image.meta["AnatomicalStructurePrimary"] == name
    assert [one.meta["Name"] for one in image.darrays] == list(maps)
    labels = ATLAS.vertex_labels(side)
    for array, values in zip(image.darrays, maps.values(), strict=True):
        assert array.data.shape == (10242,)
        assert array.data.dtype == np.float32
        assert np.isnan(array.data[labels < 0]).all()
        np.testing.assert_allclose(
            array.data[labels >= 0], values.to_numpy()[labels[labels >= 0]], rtol=1e-6
        )


def test_annotations_keep_the_regions_and_show_the_values(exported):
    maps, out, _, _ = exported
    for short, side in (("lh", "L"), ("rh", "R")):
        codes, table, names = nibabel.freesurfer.read_annot(
            out / f"{short}.Exact.annot"
        )
        labels = ATLAS.vertex_labels(side)
        own = [ATLAS.find(name, side) if name != b"Unknown" else -1 for name in names]
        np.testing.assert_array_equal(np.array(own)[codes], labels)
        values = maps["Exact"].to_numpy()[own[1:]]
        # viridis: the larger the value, the greener
        known = ~np.isnan(values)
        green = table[1:, 1][known]
        assert (np.diff(green[np.argsort(values[known])]) >= -2).all()


def test_equal_values_do_not_become_one_region(tmp_path):
    flat = dict.fromkeys(ATLAS.names, 1.0)
    write_region_maps(flat, tmp_path, ATLAS, formats="annot")
    codes, table, _ = nibabel.freesurfer.read_annot(tmp_path / "lh.values.annot")
    assert len(set(codes)) == 35
    assert np.ptp(table[1:, :3], axis=0).max() <= 16
    colours = np.repeat([[0, 0, 0], [255, 255, 255]], 90, axis=0)
    told = _distinct(colours)[:, :3]
    assert len({tuple(one) for one in told.tolist()}) == 180
    assert np.abs(told - colours).max() <= 16


def test_ggseg_labels_are_those_of_its_atlases(exported):
    maps, out, _, _ = exported
    table = pd.read_csv(out / "ggseg.csv").set_index("label")
    assert table.loc["lh_bankssts", "hemi"] == "left"
    assert table.loc["Right-Putamen", "hemi"] == "right"
    place = ATLAS.find("rh_insula")
    assert table.loc["rh_insula", "Exact"] == pytest.approx(maps["Exact"].iloc[place])
    assert len(table) == len(ATLAS)


def test_enigma_gets_its_vertices_and_its_order(exported):
    maps, out, _, _ = exported
    vertices = pd.read_csv(out / "enigma_cortex_fsa5.csv")
    assert len(vertices) == 20484
    labels = np.concatenate([ATLAS.vertex_labels(side) for side in "LR"])
    assert (vertices["Exact"].isna() == ((labels < 0) | (labels == 4))).all()
    below = pd.read_csv(out / "enigma_subcortex.csv")
    assert below["structure"].tolist()[:4] == [
        "L_Accumbens-area",
        "L_Amygdala",
        "L_Caudate",
        "L_Hippocampus",
    ]
    own = maps["LSAP-C"].loc[["Left-Thalamus", "Right-Accumbens-area"]]
    np.testing.assert_allclose(below["LSAP-C"][[6, 7]], own)


def test_volumes_have_the_grid_and_the_values_of_the_parcellation(exported):
    maps, out, _, (data, affine) = exported
    image = nibabel.load(out / "desc-Exact_regions.nii.gz")
    np.testing.assert_array_equal(image.affine, affine)
    found = image.get_fdata()
    assert np.isnan(found[data == 0]).all()
    for place in (0, 4, 40, 81):
        here = data == ATLAS.regions["freesurfer_id"][place]
        expected = maps["Exact"].iloc[place]
        np.testing.assert_allclose(found[here], [expected] * 2, rtol=1e-6)


def test_an_atlas_without_surfaces_still_has_tables(tmp_path):
    (tmp_path / "mine.tsv").write_text("name\themisphere\nlh_a\tL\nrh_a\tR\n")
    values = {"lh_a": 1.0, "rh_a": 2.0}
    files = write_region_maps(values, tmp_path / "out", tmp_path / "mine.tsv")
    names = [file.name for file in files]
    assert names == ["regions.tsv", "regions.json", "regions.csv", "ggseg.csv"]
    with pytest.raises(ParameterError, match=r"'shape' needs surface labels .*mine"):
        write_region_maps(
            values, tmp_path / "out", tmp_path / "mine.tsv", formats=["shape"]
        )


BAD = [
    ({"formats": "dicom"}, r"formats must be one of .*got 'dicom'"),
    ({"formats": []}, r"formats names none; choose from tsv, csv"),
    ({"formats": "nifti"}, r"'nifti' needs parcellation"),
]


@pytest.mark.parametrize(("how", "message"), BAD)
def test_formats_that_cannot_be_written_are_refused(tmp_path, how, message):
    with pytest.raises(ParameterError, match=message):
        write_region_maps(draw_values(), tmp_path / "out", ATLAS, **how)
    assert not (tmp_path / "out").exists()


def test_maps_of_one_name_and_unknown_regions_are_refused(tmp_path):
    maps = {"LSAP-C": draw_values(), "LSAP C": draw_values()}
    with pytest.raises(ParameterError, match=r"'LSAP-C' and 'LSAP C' would have one"):
        write_region_maps(maps, tmp_path, ATLAS)
    with pytest.raises(RegionNameError, match="nearest: ctx-lh-insula"):
        write_region_maps({"lh_insulla": 1.0}, tmp_path, ATLAS)
    assert not any(tmp_path.iterdir())
