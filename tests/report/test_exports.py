from dataclasses import replace

import nibabel
import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.evaluation import Evaluation
from brainlsap.exceptions import ParameterError
from brainlsap.report.exports import export_maps

ATLAS = load_atlas("desikan82")


def draw_values(seed=0):
    rng = np.random.default_rng(seed)
    values = pd.Series(rng.uniform(0.2, 1.7, size=len(ATLAS)), index=ATLAS.names)
    values.iloc[4] = np.nan
    return values.sample(frac=1, random_state=seed)  # by name, in any order


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    maps = {"LSAP-C": draw_values(1), "Exact": draw_values(2)}
    files = export_maps(maps, folder, ATLAS)
    return maps, folder, files


def test_the_table_has_the_values_and_the_names_that_tools_know(exported):
    maps, folder, files = exported
    assert sorted(files) == sorted(folder.iterdir())
    table = pd.read_csv(folder / "regions.tsv", sep="\t", index_col="name")
    assert list(table.index) == list(ATLAS.names)
    for name, values in maps.items():
        np.testing.assert_allclose(table[name], values.loc[table.index])
    # ggseg 1.6: dk$data$label, aseg$data$label
    named = table[["label", "hemi"]].agg(" ".join, axis=1)
    assert named["ctx-rh-bankssts"] == "rh_bankssts right"
    assert named["Left-Thalamus"] == "Left-Thalamus-Proper left"
    assert table["label"].is_unique
    assert "n/a" in (folder / "regions.tsv").read_text()


@pytest.mark.parametrize(("side", "name"), [("L", "CortexLeft"), ("R", "CortexRight")])
def test_gifti_is_read_back(exported, side, name):
    maps, folder, _ = exported
    image = nibabel.load(folder / f"hemi-{side}_space-fsaverage5_regions.shape.gii")
    assert image.meta["AnatomicalStructurePrimary"] == name
    assert [one.meta["Name"] for one in image.darrays] == list(maps)
    labels = ATLAS.vertex_labels(side)
    for array, values in zip(image.darrays, maps.values(), strict=True):
        expected = values.loc[list(ATLAS.names)].to_numpy()[labels]
        expected[labels < 0] = np.nan
        np.testing.assert_allclose(array.data, expected, rtol=1e-6)


def test_regions_that_images_leave_out_are_named_and_can_be_had(exported, tmp_path):
    (note,) = exported[2].notes
    subcortex = [name for name in ATLAS.names if "-" in name and "ctx" not in name]
    assert f"leave out {len(subcortex)} of 81 regions" in note
    assert all(name in note for name in subcortex)
    assert "parcellation=" in note
    assert note in repr(exported[2])
    # the advice: an image with them
    make_parcellation(tmp_path / "labels.nii.gz")
    how = {"parcellation": tmp_path / "labels.nii.gz"}
    assert export_maps(draw_values(), tmp_path / "maps", ATLAS, **how).notes == ()
    # an image that lacks one of them says so
    image = nibabel.load(tmp_path / "labels.nii.gz")
    labels = np.asarray(image.dataobj).copy()
    number = ATLAS.regions["freesurfer_id"][ATLAS.find("Left-Amygdala")]
    labels[labels == number] = 0
    nibabel.Nifti1Image(labels, image.affine).to_filename(tmp_path / "labels.nii.gz")
    how["overwrite"] = True
    (note,) = export_maps(draw_values(), tmp_path / "maps", ATLAS, **how).notes
    assert "leave out 1 of 81 regions" in note
    assert "Left-Amygdala" in note
    # where all values are drawn there is nothing to say
    cortex = draw_values().loc[[name for name in ATLAS.names if "ctx" in name]]
    assert export_maps(cortex, tmp_path / "cortex", ATLAS).notes == ()


def make_parcellation(path):
    """Write an image with two voxels of FreeSurfer's number for each region."""
    numbers = ATLAS.regions["freesurfer_id"].to_numpy()
    data = np.zeros((9, 10, 11), dtype=np.int32)
    inner = np.zeros((5, 6, 7), dtype=np.int32)
    inner.flat[: 2 * len(numbers)] = np.repeat(numbers, 2)
    data[2:7, 2:8, 2:9] = inner
    affine = np.diag([2.0, 2, 2, 1])
    affine[:3, 3] = [-7, 5, 3]
    image = nibabel.Nifti1Image(data, affine)
    image.set_sform(affine, "mni")
    image.to_filename(path)
    return data, affine


@pytest.mark.parametrize("of_atlas", [False, True])
def test_volumes_lie_where_the_parcellation_does(tmp_path, of_atlas):
    path = tmp_path / "own" / "parcellation.nii.gz"
    path.parent.mkdir()
    data, affine = make_parcellation(path)
    atlas, values = ATLAS, draw_values()
    if of_atlas:
        atlas = replace(ATLAS, folder=path.parent)
    given = None if of_atlas else path
    named = values.rename("t map") if of_atlas else values
    files = export_maps(named, tmp_path / "out", atlas, parcellation=given)
    image = nibabel.load(files[-1])
    told = "tmap" if of_atlas else "value"
    assert files[-1].name == f"desc-{told}_regions.nii.gz"
    assert image.header["sform_code"] == 4
    np.testing.assert_array_equal(image.affine, affine)
    numbers = ATLAS.regions["freesurfer_id"]
    known = pd.Series(values.loc[list(ATLAS.names)].to_numpy(), index=numbers)
    expected = known.fillna(0).reindex(data.ravel(), fill_value=0).to_numpy()
    np.testing.assert_allclose(image.get_fdata().ravel(), expected, rtol=1e-6)


def test_numbers_of_an_image_are_not_taken_for_the_order_of_names(tmp_path):
    names = ["Insula_L", "Insula_R", "Stem"]
    data = np.arange(4, dtype=np.int32).repeat(16).reshape(4, 4, 4)
    path = tmp_path / "image.nii.gz"
    nibabel.Nifti1Image(data, np.eye(4)).to_filename(path)
    own, values = Atlas.from_names(names), pd.Series([1.0, 2.0, 3.0], names)
    with pytest.raises(ParameterError, match="the regions of the labels are unknown"):
        export_maps(values, tmp_path / "maps", own, parcellation=path)
    rows = "index\tname\n1\tStem\n2\tInsula_L\n3\tInsula_R\n"
    (tmp_path / "image.tsv").write_text(rows)
    files = export_maps(values, tmp_path / "maps", own, parcellation=path)
    found = nibabel.load(files[-1]).get_fdata()[:, 0, 0]
    assert found.tolist() == [0.0, 3.0, 1.0, 2.0]


def test_values_below_the_cortex_make_no_empty_surface(tmp_path):
    files = export_maps({"Left-Hippocampus": 3.2}, tmp_path, ATLAS)
    assert [path.name for path in files] == ["regions.tsv"]
    assert "Left-Hippocampus" in files.notes[0]


def test_an_atlas_of_names_is_exported_as_a_table_alone(tmp_path):
    regions = ATLAS.regions.assign(annot_name="")
    atlas = replace(ATLAS, name="own", folder=None, regions=regions)
    files = export_maps(draw_values(), tmp_path, atlas)
    assert [file.name for file in files] == ["regions.tsv"]
    assert "no image was written" in files.notes[0]
    table = pd.read_csv(files[0], sep="\t")
    assert (table["label"].str.replace("-Proper", "") == table["name"]).all()


@pytest.mark.parametrize("names", [("a b", "ab"), ("lobe", "x")])
def test_names_that_collide_are_refused_before_anything_is_written(tmp_path, names):
    maps = {name: draw_values() for name in names}
    with pytest.raises(ParameterError, match="differ"):
        export_maps(maps, tmp_path / "out", ATLAS)
    assert not (tmp_path / "out").exists()


def test_an_atlas_is_not_written_over(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "regions.tsv").write_text("name\themisphere\na\tL\nb\tR\n")
    before = (folder / "regions.tsv").read_bytes()
    own = load_atlas(folder)
    for overwrite in (False, True):
        with pytest.raises(ParameterError):
            export_maps({"a": 1.0}, folder, own, overwrite=overwrite)
    with pytest.raises(ParameterError, match="overwrite=True"):
        export_maps(draw_values(), folder, ATLAS)
    assert (folder / "regions.tsv").read_bytes() == before


def test_an_evaluation_is_exported_relative_to_the_median(make_evaluation, tmp_path):
    evaluation = make_evaluation(regions=list(ATLAS.names), atlas_name="desikan82")
    export_maps(evaluation, tmp_path)
    table = pd.read_csv(tmp_path / "regions.tsv", sep="\t", index_col="name")
    scales = evaluation.scales.query("start == 'mean' and share == 1")
    scales = scales[scales["region"] != ATLAS.names[5]]  # not measured
    for name, own in scales.groupby("model"):
        relative = own["scale"] / own.groupby("fold")["scale"].transform("median")
        expected = relative.groupby(own["region"]).mean()
        np.testing.assert_allclose(table.loc[expected.index, name], expected)
        assert np.isnan(table.loc[ATLAS.names[5], name])


def test_an_atlas_of_names_is_kept_with_an_evaluation(make_evaluation, tmp_path):
    places = [[-40, 0, 0], [40, 40, 40]]
    own = Atlas.from_names(["Insula_L", "Insula_R"], coordinates=places)
    evaluation = make_evaluation(regions=list(own.names), atlas_name="own")
    cohort = replace(evaluation.cohort, regions=own.regions)
    replace(evaluation, cohort=cohort).save(tmp_path / "evaluation")
    found = load_atlas(Evaluation.load(tmp_path / "evaluation").cohort)
    pd.testing.assert_frame_equal(found.regions, own.regions)
