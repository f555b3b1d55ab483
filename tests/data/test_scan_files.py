"""Finding files: roots, visits, patterns, FreeSurfer subjects."""

import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.scan_files import CohortFiles
from brainlsap.exceptions import CohortError, ParameterError


def names(paths, root):
    return [path.relative_to(root).as_posix() for path in paths]


def test_files_of_a_scan_in_all_data_sets(write, tmp_path):
    write("sub-01/ses-1/dwi/x_connectivity.csv", "")
    write("sub-01/ses-2/dwi/y_connectivity.csv", "")
    write("sub-01/sub-01_sessions.tsv", "")
    write("sub-01/ses-1/.hidden/z", "")
    write("derivatives/pet/sub-01/ses-1/pet/r.tsv", "")
    write("derivatives/pet/sub-01/ses-3/pet/r.tsv", "")
    write("extra/sub-01/ses-1/w.csv", "")
    files = CohortFiles(tmp_path, derivatives=[tmp_path / "extra"])
    assert (
        files.sessions("sub-01") == files.sessions("01") == ["ses-1", "ses-2", "ses-3"]
    )
    assert names(files.files("sub-01", "ses-1"), tmp_path) == [
        "derivatives/pet/sub-01/ses-1/pet/r.tsv",
        "extra/sub-01/ses-1/w.csv",
        "sub-01/ses-1/dwi/x_connectivity.csv",
    ]
    assert names(files.files("sub-01", ""), tmp_path) == ["sub-01/sub-01_sessions.tsv"]
    assert names(files.files("sub-01", "2"), tmp_path) == [
        "sub-01/ses-2/dwi/y_connectivity.csv"
    ]


def test_nothing_outside_is_looked_at(write, tmp_path):
    write("outside/ses-1/secret.csv", "")
    write("study/sub-01/ses-1/x.csv", "")
    files = CohortFiles(tmp_path / "study")
    for name in ("../outside", str(tmp_path / "outside"), ".."):
        assert files.files(name, "ses-1") == files.sessions(name) == []
        assert files.files("sub-01", f"../{name}") == []


@pytest.mark.parametrize("place", ["sub-01", "sub-01/ses-1", "sub-01/ses-1/dwi"])
def test_a_link_out_of_the_cohort_is_not_followed(write, tmp_path, place):
    write("other/ses-1/dwi/x_connectivity.csv", "")
    write("study/sub-02/ses-1/dwi/x_connectivity.csv", "")
    inner = place.removeprefix("sub-01").lstrip("/")
    link = tmp_path / "study" / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / "other" / inner)
    said = f"{place} is a link that leads out of the cohort's folder, to .*/other"
    with pytest.raises(CohortError, match=said):
        CohortFiles(tmp_path / "study").files("sub-01", "ses-1")
    named = CohortFiles(tmp_path / "study", derivatives=[tmp_path / "other"])
    assert len(named.files("sub-01", "ses-1")) == 1
    link.unlink()
    link.symlink_to(tmp_path / "study" / "sub-02" / inner)
    assert len(CohortFiles(tmp_path / "study").files("sub-01", "ses-1")) == 1


def test_a_folder_given_twice_counts_once(write, tmp_path):
    write("derivatives/a/sub-01/x.csv", "")
    files = CohortFiles(tmp_path, derivatives=[tmp_path / "derivatives" / "a"])
    assert len(files.files("sub-01", "")) == 1


def test_of_a_freesurfer_subject_only_stats_are_listed(write, tmp_path):
    write("sub-01/stats/lh.aparc.stats", "")
    write("sub-01/surf/lh.white", "")
    files = CohortFiles(tmp_path)
    assert names(files.files("sub-01", ""), tmp_path) == ["sub-01/stats/lh.aparc.stats"]


def test_folders_refused(tmp_path):
    with pytest.raises(CohortError, match="folders that were named do not e") as error:
        CohortFiles(tmp_path, [tmp_path / "a"], tmp_path / "b")
    assert [f.split(": ")[1] for f in error.value.faults] == ["no such folder"] * 2
    with pytest.raises(ParameterError, match=r"pattern of 'fdg' must be text .* got 5"):
        CohortFiles(tmp_path, pattern={"fdg": 5})


@pytest.mark.parametrize(
    "name",
    [
        "sub-01_connectivity.tsv",
        "sub-01_desc-x_connectome.csv",
        "sub-01_relmat.tsv",
        "sub-01_sc.npy",
        "connectome.txt",
    ],
)
def test_a_connectome_is_known_by_its_name(write, tmp_path, tiny, name):
    write(f"sub-01/dwi/{name}", "")
    write("sub-01/dwi/sub-01_connectivity.json", "")
    write("sub-01/dwi/other.csv", "")
    files = CohortFiles(tmp_path)
    found = files.connectome(files.files("sub-01", ""), tiny)
    assert found.name == name


def test_the_atlas_chooses_between_connectomes(write, tmp_path, tiny):
    for word in ("destrieux", "aparc-a2009s_x", "desikan", "schaefer"):
        write(f"sub-01/atlas-{word.split('_')[0]}_connectivity.csv", "")
    files = CohortFiles(tmp_path)
    listed = files.files("sub-01", "")
    desikan = files.connectome(listed, load_atlas("desikan82"))
    assert desikan.name == "atlas-desikan_connectivity.csv"
    with pytest.raises(CohortError, match=r"2 files could be its connectome: .*a2009s"):
        files.connectome(listed, load_atlas("destrieux160"))
    with pytest.raises(
        CohortError, match=r"4 files .* choose by pattern=\{'connectome'"
    ):
        files.connectome(listed, tiny)
    files = CohortFiles(tmp_path, pattern="*schaefer*")
    assert "schaefer" in files.connectome(listed, tiny).name
    with pytest.raises(CohortError, match=r"no connectome; expected one file .*schaef"):
        files.connectome([], tiny)
    files = CohortFiles(tmp_path, pattern="sub-01/*schaefer*")
    assert "schaefer" in files.connectome(listed, tiny).name


def test_tables_of_regions(write, tmp_path, tiny):
    write("sub-01/pet/sub-01_trc-18FFDG_desc-suvr_regions.tsv", "")
    write("sub-01/pet/sub-01_trc-18FFDG_desc-suvr_regions.json", "")
    write("sub-01/anat/sub-01_desc-thickness_regions.tsv", "")
    write("sub-01/anat/sub-01_desc-tau_regions.tsv", "")
    write("sub-01/anat/sub-01_tau.tsv", "")
    files = CohortFiles(tmp_path)
    listed = files.files("sub-01", "")
    assert "18FFDG" in files.regions(listed, "fdg", tiny).name
    assert files.regions(listed, "tau", tiny).name == "sub-01_desc-tau_regions.tsv"
    assert files.regions(listed, "area", tiny) is None
    write("sub-01/pet/sub-01_run-2_trc-18FFDG_regions.tsv", "")
    listed = files.files("sub-01", "")
    with pytest.raises(CohortError, match="2 files could be its fdg"):
        files.regions(listed, "fdg", tiny)
    files = CohortFiles(tmp_path, pattern={"fdg": "*run-2*"})
    assert "run-2" in files.regions(listed, "fdg", tiny).name


def test_freesurfer_subjects(write, tmp_path):
    for name in ("sub-01_ses-1", "sub-01_ses-1.long.sub-01", "sub-01", "sub-02/ses-1"):
        write(f"derivatives/freesurfer/{name}/stats/aseg.stats", "")
    write("derivatives/freesurfer/sub-01/base-tps", "")
    write("derivatives/freesurfer/fsaverage/surf/x", "")
    found = CohortFiles(tmp_path).freesurfer
    assert sorted(found) == [("01", "1"), ("02", "1")]
    assert [name.base for name, _ in found["01", "1"]] == ["", "sub-01"]
    for glob, bases in (("*.long.*", ["sub-01"]), ("!*.long.*", [""])):
        files = CohortFiles(tmp_path, pattern={"freesurfer": glob})
        assert [name.base for name, _ in files.freesurfer["01", "1"]] == bases


def test_subjects_dir_is_the_only_place(write, tmp_path):
    write("study/derivatives/freesurfer/sub-01/stats/aseg.stats", "")
    write("subjects/002_S_0295_2006-04-18/stats/aseg.stats", "")
    found = CohortFiles(
        tmp_path / "study", subjects_dir=tmp_path / "subjects"
    ).freesurfer
    assert list(found) == [("002_S_0295", "2006-04-18")]
