"""An atlas of one's own from an annotation, a table of labels or an image."""

import nibabel as nib
import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import load_atlas
from brainlsap.cli import main
from brainlsap.data.row_order import find_bundled_atlas_and_order, list_row_orders
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.images import make_atlas
from brainlsap.images.parcellation import recognize_label_names


@pytest.fixture
def image(tmp_path):
    """Two cubes of 3 voxels of 2 mm around x = -20 and 20, one in the middle."""
    labels = np.zeros((24, 20, 20), np.int16)
    for value, x in ((7, 1), (9, 21), (30, 11)):
        labels[x : x + 3, 2:5, 4:7] = value
    affine = np.diag([2.0, 2, 2, 1])
    affine[:3, 3] = [-24, 0, 0]
    nib.save(nib.Nifti1Image(labels, affine), tmp_path / "parcels.nii.gz")
    return tmp_path / "parcels.nii.gz"


LABELS = {
    "a.csv": "No,Region,network\n9,Heschl_R,a\n7,Heschl_L,a\n30,Vermis,n/a\n8,Gone,x\n",
    "lut.txt": "#No. Name R G B A\n0 Unknown 0 0 0 0\n9 Heschl_R 1 2 3 0\n"
    "7 Heschl_L 4 5 6 0\n30 Vermis 7 8 9 0\n",
    "b.tsv": "ROI_name\tnumber\themi\nHeschl_R\t9\tr\nHeschl_L\t7\tL\nVermis\t30\tM\n",
    "c.csv": "Label,region_name\n9,Heschl_R\n7,Heschl_L\n30,Vermis\n",
    "d.csv": "roi;no\nHeschl_R;9\nHeschl_L;7\nVermis;30\n",
    # pandas writes 9.0 where a number is missing
    "float.csv": "ROI_abbrev,ROI_ID,MNI_X,MNI_Y,Z_mm\nHeschl_R,9.0,29,6,10\n"
    "Heschl_L,7.0,-20,6,10\nVermis,30.0,,,\nWhole,,,,\n",
    "spm.txt": "1 Heschl_R 9\n2 Heschl_L 7\n3 Vermis 30\n",
    "aal.txt": "HR\tHeschl_R\t9\nHL\tHeschl_L\t7\nV\tVermis\t30\n",
    "last.txt": "Heschl R 9\nHeschl L 7\nVermis 30\n",
    "words.txt": "9 Heschl R\n7 Heschl L\n30 Vermis\n",
    "itk.txt": '0 0 0 0 0 0 0 "Clear Label"\n9 255 0 0 1 1 1 "Heschl R"\n'
    '7 255 0 0 1 1 1 "Heschl L"\n30 9 0 0 1 1 1 "Vermis"\n',
}


def test_full_names_of_a_table_are_those_of_reports(tmp_path, image, write):
    rows = "HR,9,Heschl's gyrus,R\nHL,7,Heschl's gyrus,L\nV,30,Vermis,M\n"
    labels = write("d.csv", "abbrev,no,Full Name,hemi\n" + rows)
    atlas = make_atlas(tmp_path / "own", labels=labels, image=image)
    assert atlas.names == ("HR", "HL", "V")
    assert atlas.full_names[1:] == ("left Heschl's gyrus", "vermis")
    assert atlas.match(["left Heschl's gyrus", "HR", "Vermis"]).tolist() == [1, 0, 2]
    assert atlas.cortex.tolist() == [True, True, False]  # V says it by its full name
    assert recognize_label_names([7, 9, 30], atlas)[0] == {7: "HL", 9: "HR", 30: "V"}
    assert recognize_label_names([1, 2, 3], atlas) is None  # not by position


@pytest.mark.parametrize("name", [*LABELS, "a.xlsx"])
def test_an_image_with_a_table_gives_names_and_centres(
    tmp_path, image, write, capsys, name
):
    labels = write(name, LABELS.get(name, ""))
    if name == "a.xlsx":
        pytest.importorskip("openpyxl", reason="openpyxl is absent")
        pd.read_csv(write("a.csv", LABELS["a.csv"])).to_excel(labels, index=False)
    out = tmp_path / "heschl"
    files = ["--labels", str(labels), "--image", str(image)]
    assert main(["atlas", str(out), *files]) == 0
    atlas = load_atlas(out)
    names = [name.replace(" ", "_") for name in atlas.full_names]
    assert names == ["Heschl_R", "Heschl_L", "Vermis"]
    told = capsys.readouterr().out
    assert "Hemispheres: 1 left, 1 right, 1 midline\nSubcortex: Vermis\n" in told
    assert f"Next: brainlsap check STUDY --atlas {out}" in told
    np.testing.assert_allclose(atlas.coordinates[:, 0], [20, -20, 0])
    np.testing.assert_allclose(atlas.coordinates[:, 1:], [[6, 10]] * 3)
    assert atlas.regions["freesurfer_id"].tolist() == [9, 7, 30]
    assert not atlas.has_surfaces
    assert (out / "parcellation.nii.gz").is_file()
    if name.startswith("a."):
        assert atlas.regions["network"].tolist() == ["a", "a", ""]
        assert "not in the image are left out: Gone" in told


def test_sides_and_places_must_be_those_of_the_brain(tmp_path, image, write):
    def make(*names):
        lines = map("{} {}\n".format, (9, 7, 30), names)
        labels = write("l.txt", "".join(lines))
        return make_atlas(tmp_path / names[0], labels=labels, image=image)

    atlas = make("Heschl droite", "Heschl gauche", "Vermis")
    assert atlas.regions["hemisphere"].tolist() == ["R", "L", "M"]
    said = r"x of 'Heschl L' \(row 1\), .* flipped, .* swapped.* got 20"
    with pytest.raises(FileFormatError, match=said):
        make("Heschl L", "Heschl R", "Vermis")
    voxels = np.asarray(nib.load(image).dataobj)
    nib.save(nib.Nifti1Image(voxels, np.diag([5.0, 5, 5, 1])), image)
    said = (
        r"x of 'x' \(row 1\) must be a coordinate in mm inside the brain .* affine "
        r".* got 110\."
    )
    with pytest.raises(FileFormatError, match=said):
        make("x", "y", "z")


def test_an_image_may_have_an_axis_of_one_and_keeps_its_space(tmp_path, image, write):
    labels, volume = write("d.csv", LABELS["d.csv"]), nib.load(image)
    for n, out in ((1, "own"), (2, "none")):
        voxels = np.stack([np.asarray(volume.dataobj)] * n, axis=3)
        whole = nib.Nifti1Image(voxels, volume.affine)
        whole.set_sform(volume.affine, 4)
        whole.set_qform(volume.affine, 4)
        nib.save(whole, image)
        if n == 1:
            made = make_atlas(tmp_path / out, labels=labels, image=image)
    np.testing.assert_allclose(made.coordinates[:, 0], [20, -20, 0])
    kept = nib.load(tmp_path / "own/parcellation.nii.gz")
    assert (kept.shape, int(kept.header["sform_code"])) == ((24, 20, 20), 4)
    with pytest.raises(FileFormatError, match=r"parcels\..* three axes .*20, 2\)"):
        make_atlas(tmp_path / out, labels=labels, image=image)


def test_heads_and_flags_are_named_as_they_are_typed(tmp_path, write, capsys):
    labels = write("e.csv", "Gebiet,Nr\nHeschl_L,7\n")
    for given, said in (
        (
            ["--labels", labels],
            "must be called name, region, roi, label",
        ),
        ([], "names of the regions are missing. Give --annot or --labels"),
        (["--annot", labels], "error: --annot must be a file lh.NAME.annot"),
    ):
        assert main(["atlas", str(tmp_path / "out"), *map(str, given)]) == 2
        assert said in capsys.readouterr().err
    labels = write("f.csv", "roi,Hemi\nHeschl,L\nHeschl,R\n")
    atlas = make_atlas(tmp_path / "two", labels=labels)
    assert atlas.names == ("lh_Heschl", "rh_Heschl")
    assert main(["atlas", str(tmp_path / "bare"), "--labels", str(labels)]) == 0
    told = capsys.readouterr().out
    assert "Names: lh_Heschl, rh_Heschl\n" in told
    assert "Coordinates: none" in told
    assert "Columns not used" not in told
    write("f.csv", "roi,X_coord,Y_coord,Z_coord,Volume\nHeschl_L,-40,-20,8,5\n")
    assert main(["atlas", str(tmp_path / "placed"), "--labels", str(labels)]) == 0
    told = capsys.readouterr().out
    assert "Columns not used: volume\n" in told
    assert "Coordinates: none" not in told
    labels = write("g.txt", "Background\nHeschl_L\nHeschl_R\n")  # of 0
    atlas = make_atlas(tmp_path / "from-0", labels=labels)
    assert atlas.names == ("Heschl_L", "Heschl_R")


def test_networks_and_words_of_structures_are_read(tmp_path, write, capsys):
    rows = "Caudate_L,cortical,DMN\nHeschl_R,Subcortical,\n"
    labels = write("f.csv", f"roi,structure,Network\n{rows}")
    assert main(["atlas", str(tmp_path / "own"), "--labels", str(labels)]) == 0
    printed = capsys.readouterr().out
    assert "Networks: DMN\n" in printed
    assert "Columns not used" not in printed
    regions = load_atlas(tmp_path / "own").regions
    assert regions["structure"].tolist() == ["cortex", "subcortex"]


def test_coordinates_in_cm_are_refused(tmp_path, write):
    labels = write("f.csv", "roi,x,y,z\nHeschl_L,-4,-2,0.8\nHeschl_R,4,-2,0.8\n")
    with pytest.raises(FileFormatError, match=r"must be in mm .* got 4 as the largest"):
        make_atlas(tmp_path / "cm", labels=labels)


def annotation(folder, n_vertices, names=("unknown", "north", "south")):
    """Write a pair whose every vertex is of a region that its number tells."""
    for side in ("lh", "rh"):
        codes = np.arange(n_vertices) % len(names)
        table = np.arange(4 * len(names)).reshape(-1, 4) + 1
        path = folder / f"{side}.mine.annot"
        nib.freesurfer.write_annot(path, codes, table, list(names), fill_ctab=True)
    return folder / "lh.mine.annot"


@pytest.mark.parametrize("n_vertices", [10242, 40962])
def test_annotations_give_surfaces_names_and_centres(tmp_path, n_vertices):
    atlas = make_atlas(tmp_path / "two", annot=annotation(tmp_path, n_vertices))
    assert atlas.names == ("lh_north", "lh_south", "rh_north", "rh_south")
    assert atlas.settings["annotation"] == "mine"
    expected = np.array([-1, 2, 3])[np.arange(10242) % 3]
    np.testing.assert_array_equal(atlas.vertex_labels("R"), expected)
    assert (atlas.coordinates[:, 0] * [-1, -1, 1, 1] > 20).all()


def test_an_annotation_gives_the_centres_of_the_bundled_atlas(tmp_path):
    known = load_atlas("desikan82")
    for side in "lr":
        content = (known.folder / f"{side}h.annot").read_bytes()
        (tmp_path / f"{side}h.aparc.annot").write_bytes(content)
    names = tmp_path / "names.txt"
    names.write_text("\n".join(known.names))  # with the subcortex
    atlas = make_atlas(
        tmp_path / "own", annot=tmp_path / "lh.aparc.annot", labels=names
    )
    assert atlas.names == known.names
    assert atlas.meshes().keys() == known.meshes().keys()
    np.testing.assert_allclose(atlas.coordinates[:68], known.coordinates[:68])
    np.testing.assert_array_equal(atlas.vertex_labels("L"), known.vertex_labels("L"))


def test_one_name_serves_both_sides_and_places_say_which(tmp_path, image, write):
    labels = write("a.csv", "No,name\n7,Heschl\n9,Heschl\n30,Vermis\n")
    atlas = make_atlas(tmp_path / "own", labels=labels, image=image)
    assert atlas.names == ("lh_Heschl", "rh_Heschl", "Vermis")


def test_regions_without_a_surface_are_told(tmp_path, write):
    names = ["lh_north", "lh_south", "rh_north", "rh_south", "lh_west"]
    labels = write("a.txt", "\n".join(names))
    annot = annotation(tmp_path, 10242)
    atlas = make_atlas(tmp_path / "own", annot=annot, labels=labels)
    told = "regions that are not in the annotation have no surface: lh_west"
    assert atlas.settings["notes"] == [told]


def test_annotations_must_tell_regions_apart_and_be_named(tmp_path, write):
    annot = annotation(tmp_path, 10242)
    for rows in ("index,name\n1,north\n2,south\n", "name\nlh_north\nrh_north\n"):
        with pytest.raises(
            FileFormatError, match=r"a\.csv: the table does not name all regions of"
        ):
            make_atlas(tmp_path / "own", annot=annot, labels=write("a.csv", rows))
    rows = "index,name,hemi\n1,north,L\n2,south,L\n1,north,R\n2,south,R\n"
    atlas = make_atlas(tmp_path / "own", annot=annot, labels=write("a.csv", rows))
    assert atlas.names == ("lh_north", "lh_south", "rh_north", "rh_south")
    codes, colours, names = nib.freesurfer.read_annot(annot)
    colours[2] = colours[1]
    nib.freesurfer.write_annot(annot, codes, colours, names)
    with pytest.raises(FileFormatError, match="north and south have the same colour"):
        make_atlas(tmp_path / "other", annot=annot)


def test_what_makes_no_atlas_is_refused_and_leaves_nothing(tmp_path, image, write):
    labels = write("a.csv", "No,name\n7,Heschl_L\n")
    said = r"no name for 9, 30\. .* names for the labels 7 to 7 .* from 1.. Add"
    with pytest.raises(FileFormatError, match=said):
        make_atlas(tmp_path / "out", labels=labels, image=image)
    for text, said in (
        (
            "No,name\n7,A_L\n7,B_L\n9,C_R\n",
            r"b\.csv: several of the regions A_L, B_L have the same number;",
        ),
        ("No,name\n0,A_L\n7,B_L\n9,C_R\n30,V\n", "region A_L has the number 0"),
        ("7,HL,Heschl,L\n9,HR,Heschl,R\n", "none of the columns '7', 'HL', "),
        (
            "No,name,x,y,z\n7,Heschl_L,20,6,10\n9,Heschl_R,20,6,10\n30,Vermis,,,\n",
            r"1 of 3 .* 20 mm .* Heschl_L at \(20, 6, 10\), not \(-20, 6, 10\)\. Names",
        ),
    ):
        with pytest.raises(FileFormatError, match=said):
            make_atlas(tmp_path / "out", labels=write("b.csv", text), image=image)
    with pytest.raises(
        ParameterError, match=r"must not have the name of an atlas .*desikan82"
    ):
        make_atlas(tmp_path / "desikan82", labels=labels, image=image)
    picture = nib.load(image)
    blurred = nib.Nifti1Image(picture.get_fdata() * 0.9, picture.affine)
    nib.save(blurred, tmp_path / "blurred.nii.gz")
    with pytest.raises(
        FileFormatError, match="labels of this parcellation are not whole numbers"
    ):
        make_atlas(tmp_path / "out", labels=labels, image=tmp_path / "blurred.nii.gz")
    lines = write("l.txt", "Heschl_R\nHeschl_L\n")
    with pytest.raises(
        FileFormatError, match=r"1 to 2 .* image does not contain Heschl_R"
    ):
        make_atlas(tmp_path / "out", labels=lines, image=image)
    with pytest.raises(FileFormatError, match=r"atlas NAME --labels FILE --im"):
        load_atlas(image)
    with pytest.raises(ParameterError, match="names of the regions are missing"):
        make_atlas(tmp_path / "out", image=image)
    with pytest.raises(FileFormatError, match="contains 9 vertices; expected one of"):
        make_atlas(tmp_path / "out", annot=annotation(tmp_path, 9))
    with pytest.raises(ParameterError, match=r"a file lh\.NAME\.annot; got a\.csv"):
        make_atlas(tmp_path / "out", annot=labels)
    with pytest.raises(FileFormatError, match=r"b\.txt: name of '.* case"):
        make_atlas(tmp_path / "out", labels=write("b.txt", "a\na\n"))
    odd = write("odd.csv", "Label,Anatomical name\n9,Heschl_R\n7,Heschl_L\n")
    with pytest.raises(
        FileFormatError, match=r"'label' contains numbers .* 'anatomical name'"
    ):
        make_atlas(tmp_path / "out", labels=odd, image=image)
    xml = write("fsl.xml", '<?xml version="1.0"?>\n<label index="0">Heschl</label>\n')
    with pytest.raises(
        FileFormatError, match=r"fsl\.xml: the file is XML; expected a table"
    ):
        make_atlas(tmp_path / "out", labels=xml)
    names = write("c.txt", "lh_north\nrh_north\n")
    with pytest.raises(
        FileFormatError, match=r"c\.txt: the table does not name .*'south'"
    ):
        make_atlas(tmp_path / "out", annot=annotation(tmp_path, 10242), labels=names)
    assert not (tmp_path / "out").exists()


def test_white_matter_and_fluid_in_a_list_are_refused_without_an_image(
    tmp_path, image, write
):
    """FreeSurfer's lookup table made an atlas of 130 "regions"."""
    rows = "4 Left-Lateral-Ventricle 1 2 3 0\n7 ctx-lh-cuneus 1 2 3 0\n"
    rows += "9 wm-rh-cuneus 1 2 3 0\n16 Brain-Stem 1 2 3 0\n30 CSF 1 2 3 0\n"
    labels = write("FreeSurferColorLUT.txt", rows)
    with pytest.raises(FileFormatError, match=r"3 of the 5 names .*wm-rh-cuneus, CSF;"):
        make_atlas(tmp_path / "out", labels=labels)
    atlas = make_atlas(tmp_path / "out", labels=labels, image=image)
    assert any(
        "These names count as regions" in note for note in atlas.settings["notes"]
    )


def test_the_atlas_of_the_package_with_the_same_regions_is_named(
    tmp_path, write, capsys
):
    rows = "\n".join([*load_atlas("desikan82").names, "Left-Cerebellum-Cortex"])
    labels = write("own.txt", rows)
    assert main(["atlas", str(tmp_path / "own"), "--labels", str(labels)]) == 0
    told = capsys.readouterr().out
    assert f"STUDY --atlas desikan82 --labels {labels}" in told
    mrtrix = next(
        order
        for order in list_row_orders(load_atlas("desikan82"))
        if order.tool_name == "mrtrix"
    )
    assert find_bundled_atlas_and_order(load_atlas(mrtrix.names)) == (
        "desikan82",
        "mrtrix",
    )
    assert find_bundled_atlas_and_order(load_atlas(mrtrix.names[1:])) is None


def test_one_number_of_two_regions_of_one_side_is_refused(tmp_path, write):
    both = write("both.txt", "1 lh_a\n2 lh_b\n1 rh_a\n2 rh_b\n")
    assert len(make_atlas(tmp_path / "both", labels=both)) == 4
    same = write("same.txt", "1 lh_a\n1 lh_b\n")
    with pytest.raises(FileFormatError, match="number 1 is given to 'lh_a', 'lh_b'"):
        make_atlas(tmp_path / "same", labels=same)


def test_regions_of_unknown_structure_are_counted_and_named(tmp_path, write, capsys):
    """All 246 regions of Brainnetome were called cortical."""
    text = "1 A8m_L\n2 A8m_R\n3 mAmyg_L\n4 mAmyg_R\n5 Insula_L\n6 Insula_R\n7 Middle\n"
    labels = write("bn.txt", text)
    assert main(["atlas", str(tmp_path / "bn"), "--labels", str(labels)]) == 0
    told = capsys.readouterr().out
    assert "7 regions: 2 cortical, 2 subcortical, 3 of unknown structure" in told
    assert "Subcortex: mAmyg_L, mAmyg_R\n" in told
    assert (
        "Treated as cortex, because the structure is unknown: A8m_L, A8m_R, Middle\n"
        in told
    )
    assert "Treated as midline, because the hemisphere is unknown: Middle\n" in told
    atlas = load_atlas(tmp_path / "bn")
    assert atlas.cortex.tolist() == [True, True, False, False, True, True, True]
    assert atlas.unknown_structure_mask.sum() == 3
    labels = write("said.csv", "name,structure\nA8m_L,cortex\nX_L,unknown\n")
    assert make_atlas(
        tmp_path / "said", labels=labels
    ).unknown_structure_mask.tolist() == [*(False, True)]
    own = make_atlas(tmp_path / "two", annot=annotation(tmp_path, 10242))
    assert not own.unknown_structure_mask.any()  # what has a surface is cortex


def test_places_of_a_list_without_heads_are_read_and_told(tmp_path, write):
    labels = write("centres.txt", "ctx-lh-insula -35 4 -2\nctx-rh-insula 36 5 -2\n")
    atlas = make_atlas(tmp_path / "two", labels=labels)
    assert atlas.names == ("ctx-lh-insula", "ctx-rh-insula")
    assert atlas.coordinates.tolist() == [[-35, 4, -2], [36, 5, -2]]
    assert any("x, y, z" in note for note in atlas.settings["notes"])
    labels = write("exchanged.txt", "ctx-lh-insula 35 4 -2\nctx-rh-insula -36 5 -2\n")
    with pytest.raises(FileFormatError, match="on the side that the name"):
        make_atlas(tmp_path / "other", labels=labels)
