import hashlib
import runpy
import sys

import numpy as np
import pytest
from nibabel.freesurfer import write_annot

from brainlsap.data.atlas import available_atlases, bundled_atlases, load_atlas
from brainlsap.exceptions import FileFormatError, ParameterError


@pytest.fixture(params=available_atlases())
def atlas(request):
    return load_atlas(request.param)


@pytest.fixture
def tiny(tmp_path):
    """An atlas of three regions, two of them left, drawn on seven vertices."""
    (tmp_path / "regions.tsv").write_text(
        "name\themisphere\nlh_west\tL\nlh_north\tL\nrh_east\tR\n"
    )

    def write(labels, codes):
        table = np.arange(len(labels) * 4).reshape(-1, 4) + 1
        table = np.column_stack([table, np.zeros(len(labels), int)])
        write_annot(tmp_path / "lh.annot", np.array(codes), table, labels, True)
        return load_atlas(tmp_path)

    return write


def test_every_cortical_region_has_vertices_of_its_own_side(atlas):
    for side in ("L", "R"):
        labels = atlas.vertex_labels(side)
        here = np.flatnonzero(
            (atlas.regions["structure"] == "cortex")
            & (atlas.regions["hemisphere"] == side)
        )
        assert labels.shape == (10242,)
        assert set(labels) == {-1, *here}


def test_labels_agree_with_the_annotation_by_name(atlas):
    from nibabel.freesurfer import read_annot

    codes, _, names = read_annot(atlas.folder / "rh.annot")
    labels = atlas.vertex_labels("R")
    for vertex in range(0, 10242, 97):
        written = names[codes[vertex]].decode()
        if labels[vertex] >= 0:
            assert atlas.regions["annot_name"][labels[vertex]] == written
        else:
            assert written.lower() in {"unknown", "medial_wall", "corpuscallosum"}


def test_labels_are_read_by_name_and_not_by_position(tiny):
    atlas = tiny(["Unknown", "north", "west"], [1, 1, 2, 0, 2, -1, 1])
    assert atlas.vertex_labels("L").tolist() == [1, 1, 0, -1, 0, -1, 1]


def test_an_unknown_label_is_refused(tiny):
    atlas = tiny(["Unknown", "nort", "west"], [0, 1, 2, 0, 0, 0, 0])
    with pytest.raises(
        FileFormatError, match=r"label 'nort' is unknown .*nearest: lh_north"
    ):
        atlas.vertex_labels("L")


def test_an_atlas_without_surfaces_says_so(tiny, tmp_path):
    atlas = tiny(["Unknown", "west"], [0, 1, 0, 0, 0, 0, 0])
    with pytest.raises(FileFormatError, match=r"no surface labels .*rh.annot"):
        atlas.vertex_labels("R")
    (tmp_path / "lh.annot").unlink()
    with pytest.raises(FileFormatError, match=r"Put lh\.annot and rh\.annot"):
        load_atlas(tmp_path).vertex_labels("L")


def test_a_side_is_left_or_right(atlas):
    with pytest.raises(ParameterError, match="must be 'L' or 'R', got 'left'"):
        atlas.vertex_labels("left")


def test_every_subcortical_region_has_a_closed_mesh_of_its_place(atlas):
    meshes = atlas.meshes()
    below = atlas.regions[atlas.regions["structure"] == "subcortex"]
    assert set(meshes) == set(below["name"])
    for _, row in below.iterrows():
        vertices, faces = meshes[row["name"]]
        edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        n_edges, uses = np.unique(edges, axis=0, return_counts=True)
        assert set(uses) == {2}  # closed
        assert len(vertices) - len(n_edges) + len(faces) == 2  # in one piece, no holes
        assert 750 <= len(vertices) <= 850
        centre = row[["x", "y", "z"]].to_numpy(float)
        assert np.abs(vertices.mean(axis=0) - centre).max() < 3
        a, b, c = (vertices[faces[:, k]] for k in range(3))
        assert np.sum(a * np.cross(b, c)) > 0  # outside is out


def test_a_broken_mesh_is_refused(tiny, tmp_path):
    tiny(["Unknown", "west"], [0, 1, 0, 0, 0, 0, 0])
    mesh = tmp_path / "meshes" / "lh_west.surf.gii"
    mesh.parent.mkdir()
    mesh.write_text("no mesh")
    with pytest.raises(FileFormatError, match=r"lh_west\.surf\.gii: cannot be read"):
        load_atlas(tmp_path).meshes()
    mesh.write_text("<GIFTI></GIFTI>")
    with pytest.raises(FileFormatError, match=r"a surface needs points .*got \(0,\)"):
        load_atlas(tmp_path).meshes()


def test_the_licence_and_provenance_stand_beside_the_files(atlas):
    licence = (atlas.folder / "LICENSE.txt").read_text()
    assert licence.startswith("All or portions of this licensed product (such portions")
    assert "PART B. DOWNLOADING AGREEMENT" in licence
    readme = (atlas.folder / "README.md").read_text()
    said = " ".join(readme.split())
    assert "have been obtained under license from The General Hospital" in said
    for name in ("lh.annot", "rh.annot"):
        found = hashlib.sha256((atlas.folder / name).read_bytes()).hexdigest()
        assert found in readme
    assert all(f.stat().st_size < 500_000 for f in atlas.folder.rglob("*.*"))


def test_the_mesh_of_a_ball_is_a_ball(tmp_path):
    pytest.importorskip("skimage", reason="scikit-image is for remaking atlases only")
    pytest.importorskip("fast_simplification", reason="as above")
    script = runpy.run_path(str(bundled_atlases() / "aseg_meshes.py"))
    grid = np.indices((41, 43, 45)) - np.array([20, 21, 22])[:, None, None, None]
    mask = np.sum(grid**2, axis=0) <= 12**2
    stray = mask.copy()
    stray[1, 1, 1] = True
    np.testing.assert_array_equal(script["largest_component"](stray), mask)
    affine = np.diag([-1.0, 1.0, 1.0, 1.0])  # a flip turns triangles inside out
    vertices, faces = script["mesh_of"](mask, affine)
    radius = np.linalg.norm(vertices - [-20, 21, 22], axis=1)
    assert abs(radius.mean() - 12) < 0.2
    assert radius.std() < 0.2
    assert abs(script["volume_of"](vertices, faces) / mask.sum() - 1) < 0.05
    assert len(vertices) in range(780, 821)
    for name in ("a.surf.gii", "b.surf.gii"):
        script["write_mesh"](tmp_path / name, vertices, faces, "CortexLeft")
    assert (tmp_path / "a.surf.gii").read_bytes() == (
        tmp_path / "b.surf.gii"
    ).read_bytes()


def test_another_source_file_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(bundled_atlases()), *sys.path])
    script = runpy.run_path(str(bundled_atlases() / "cvu_surfaces.py"))
    other = tmp_path / "cvu-0.5.2.tar.gz"
    other.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"has sha256 .*, expected 737ae6e2"):
        script["unpack"](other, "aparc", tmp_path / "out")
