"""A cohort of images becomes connectomes and tables that load_cohort reads."""

import errno
import json
import os
import stat

import nibabel
import numpy as np
import pytest
from nibabel.streamlines import Tractogram

from brainlsap._locks import hold_folder
from brainlsap.cli import main
from brainlsap.data import build
from brainlsap.data.atlas import load_atlas
from brainlsap.data.build import build_cohort
from brainlsap.data.load import load_cohort
from brainlsap.exceptions import CohortError, ParameterError

REGIONS = "abcde"
N_SCANS = 5


def write_scan(folder, name, number, labels, affine):
    """Write a parcellation, ten streamlines or more, and PET of one scan."""
    rng = np.random.default_rng(number)
    for place in ("dwi", "anat", "pet"):
        (folder / place).mkdir(parents=True)
    image = nibabel.Nifti1Image(labels, affine)
    nibabel.save(image, folder / f"anat/{name}_atlas-five_dseg.nii.gz")
    ends = rng.uniform(0, 12, (10 + number, 2, 3)).astype(np.float32)
    lines = Tractogram(list(ends), affine_to_rasmm=np.eye(4))
    nibabel.streamlines.save(lines, str(folder / f"dwi/{name}_tractography.tck"))
    pet = nibabel.Nifti1Image(rng.gamma(9, 1, (13, 13, 13)), np.eye(4))
    nibabel.save(pet, folder / f"pet/{name}_trc-18FFDG_pet.nii.gz")


@pytest.fixture
def study(tmp_path):
    """Hold three people, two of them seen twice, and an atlas of five regions."""
    table = "name\themisphere\n" + "".join(f"lh_{r}\tL\n" for r in REGIONS)
    atlas = tmp_path / "five" / "regions.tsv"
    atlas.parent.mkdir()
    atlas.write_text(table)
    names = [*(f"lh_{r}" for r in REGIONS), "Left-Cerebellum-Cortex"]
    rows = "".join(f"{k}\t{n}\n" for k, n in enumerate(names, 1))
    (tmp_path / "labels.tsv").write_text("index\tname\n" + rows)
    labels = np.random.default_rng(0).integers(1, 7, (13, 13, 13)).astype(np.int16)
    scans = [(p, s) for p in ("sub-01", "sub-02") for s in ("ses-M00", "ses-M12")]
    folder = tmp_path / "study"
    for number, (person, session) in enumerate([*scans, ("sub-03", "ses-M00")]):
        place = folder / person / session
        write_scan(place, f"{person}_{session}", number, labels, np.eye(4))
    (folder / "participants.tsv").write_text(
        "participant_id\tdiagnosis\nsub-01\tCN\nsub-02\tAD\nsub-03\tCN\n"
    )
    return folder


def arguments(study):
    return {
        "atlas": study.parent / "five",
        "connectome": {"labels": study.parent / "labels.tsv"},
        "suvr": {"labels": study.parent / "labels.tsv"},
    }


def contents(folder):
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_what_is_built_is_loaded_by_name(study):
    built = build_cohort(study, **arguments(study))
    assert built.folder == study / "derivatives/brainlsap"
    assert (len(built.made), built.kept, built.faults) == (2 * N_SCANS, (), ())
    atlas = study.parent / "five"
    cohort = load_cohort(study, atlas, ["fdg", "strength"])
    assert cohort.n_scans == N_SCANS
    assert cohort.region_names == tuple(f"lh_{r}" for r in REGIONS)
    said = json.loads(built.made[0].with_suffix(".json").read_text())
    assert said["Streamlines"]["Total"] == 10
    kept = cohort.connectomes[0]
    assert np.triu(kept).sum() == said["Streamlines"]["Kept"] > 0
    assert said["Parameters"]["assignment"] == "radial"
    assert np.isfinite(cohort.features).all()
    described = json.loads((built.folder / "dataset_description.json").read_text())
    assert described["DatasetType"] == "derivative"


def test_no_region_of_a_stranger_is_a_formula(study):
    for name in ("five/regions.tsv", "labels.tsv"):
        path = study.parent / name
        path.write_text(path.read_text().replace("lh_a", "=lh_a"))
    built = build_cohort(study, **arguments(study))
    assert len(built.made) == 2 * N_SCANS
    for path in built.made:
        text = path.read_text()
        assert "'=lh_a" in text
        assert not {"\n=", "\t=", ",="} & {text[k : k + 2] for k in range(len(text))}
    cohort = load_cohort(study, study.parent / "five", "fdg")
    assert cohort.region_names[0] == "=lh_a"


def test_a_second_run_keeps_what_is_the_same(study):
    first = build_cohort(study, **arguments(study))
    before = contents(first.folder)
    again = build_cohort(study, **arguments(study), n_jobs=2)
    assert (again.made, len(again.kept)) == ((), 2 * N_SCANS)
    assert contents(first.folder) == before
    # other parameters, another input, and a file without its sidecar
    other = arguments(study)
    other["connectome"]["weight"] = "mean_length"
    assert len(build_cohort(study, **other).made) == N_SCANS
    pet = next((study / "sub-03").rglob("*_pet.nii.gz"))
    image = nibabel.load(pet)
    nibabel.save(nibabel.Nifti1Image(image.get_fdata() * 2, image.affine), pet)
    (made,) = build_cohort(study, **other).made
    assert "sub-03" in made.name
    made.with_suffix(".json").unlink()
    assert build_cohort(study, **other).made == (made,)


def test_the_result_does_not_depend_on_processes(study, tmp_path):
    one = build_cohort(study, **arguments(study), out=tmp_path / "one")
    two = build_cohort(study, **arguments(study), out=tmp_path / "two", n_jobs=2)
    assert [p.name for p in one.made] == [p.name for p in two.made]
    for a, b in zip(one.made, two.made, strict=True):
        assert a.read_bytes() == b.read_bytes()


def command(study, *more):
    folder = study.parent
    given = ["--atlas", str(folder / "five"), "--labels", str(folder / "labels.tsv")]
    return ["build", str(study), *given, *more]


def test_one_line_for_each_scan_that_fails(study, capsys):
    broken = next((study / "sub-02/ses-M12").rglob("*.tck"))
    broken.write_bytes(broken.read_bytes()[:-12])
    missing = next((study / "sub-03").rglob("*_dseg.nii.gz"))
    missing.unlink()
    assert main(command(study)) == 2
    printed = capsys.readouterr()
    lines = printed.err.strip().splitlines()
    said = [line for line in lines if line.startswith("  sub-")]
    assert "2 scans failed" in printed.err
    assert len(said) == 2
    assert "sub-02_ses-M12: " in said[0]
    assert "the mark at the end is missing" in said[0]
    assert "sub-03_ses-M00: no parcellation of five" in said[1]
    assert "(7 made, 0 kept)" in printed.out
    names = [p.name for p in (study / "derivatives").rglob("*") if p.is_file()]
    assert not any(name.startswith(".partial") for name in names)
    assert not any("sub-02_ses-M12" in n and "connectivity" in n for n in names)


def test_two_tractograms_are_a_fault_and_a_pattern_chooses(study, capsys):
    first = next((study / "sub-01/ses-M00").rglob("*.tck"))
    first.with_name("sub-01_ses-M00_other.tck").write_bytes(first.read_bytes())
    assert main(command(study)) == 2
    assert "2 files could be its tractogram" in capsys.readouterr().err
    assert main(command(study, "--tractogram", "*_tractography.tck")) == 0
    assert "kept)" in capsys.readouterr().out


def write_freesurfer(folder):
    """Write a FreeSurfer subject of desikan82 with PET and streamlines in it."""
    numbers = load_atlas("desikan82").regions["freesurfer_id"].tolist()
    labels = np.resize([*numbers, 2, 8, 47], (12, 12, 12)).astype(np.int32)
    for name in ("mri", "stats", "pet", "dwi"):
        (folder / name).mkdir(parents=True)
    image = nibabel.MGHImage(labels, np.eye(4))
    nibabel.save(image, folder / "mri/aparc+aseg.mgz")
    rng = np.random.default_rng(3)
    pet = nibabel.Nifti1Image(rng.gamma(9, 1, labels.shape), np.eye(4))
    nibabel.save(pet, folder / "pet/rest_trc-18FFDG_pet.nii")
    ends = rng.uniform(0, 11, (9, 2, 3)).astype(np.float32)
    lines = Tractogram(list(ends), affine_to_rasmm=np.eye(4))
    nibabel.streamlines.save(lines, str(folder / "dwi/whole.trk"))


@pytest.mark.parametrize(
    ("subject", "person", "session"),
    [("bert", "bert", ""), ("sub-7_ses-2", "sub-7", "ses-2")],
)
def test_freesurfer_subjects_have_everything(
    tmp_path, subject, person, session, capsys
):
    study, subjects = tmp_path / "study", tmp_path / "subjects"
    study.mkdir()
    (study / "participants.tsv").write_text(f"participant_id\tdx\n{person}\tCN\n")
    write_freesurfer(subjects / subject)
    given = ["--subjects-dir", str(subjects), "--atlas", "desikan82"]
    assert main(["build", str(study), *given]) == 0
    assert "(2 made, 0 kept)" in capsys.readouterr().out
    place = study / "derivatives/brainlsap" / person / session
    (table,) = place.glob("pet/*_desc-suvr_regions.tsv")
    assert len(table.read_text().splitlines()) == 83
    cohort = load_cohort(study, "desikan82", "fdg", "dx")
    assert cohort.n_scans == 1
    assert cohort.connectomes.sum() > 0


def test_participants_tell_who_has_other_names(study):
    (study / "sub-03").rename(study / "control")
    text = (study / "participants.tsv").read_text().replace("sub-03", "control")
    (study / "participants.tsv").write_text(text)
    built = build_cohort(study, **arguments(study))
    assert [p.name for p in built.made if "control" in p.parts] == [
        "control_ses-M00_atlas-five_connectivity.csv",
        "control_ses-M00_trc-18FFDG_atlas-five_desc-suvr_regions.tsv",
    ]


def test_nothing_to_build_is_said(tmp_path):
    (tmp_path / "sub-01").mkdir()
    with pytest.raises(CohortError, match=r"no tractogram \(\.tck, .* was found"):
        build_cohort(tmp_path)
    with pytest.raises(CohortError, match="nowhere: no such folder"):
        build_cohort(tmp_path / "nowhere")
    with pytest.raises(ParameterError, match="n_jobs must be at least 1, got 0"):
        build_cohort(tmp_path, n_jobs=0)


def asked_on_the_command_line(study):
    given = arguments(study)
    labels = str(given["connectome"]["labels"])
    return ["build", str(study), "--atlas", str(given["atlas"]), "--labels", labels]


def test_what_is_built_may_be_for_its_owner(study):
    before = os.umask(0o022)
    try:
        assert main([*asked_on_the_command_line(study), "--jobs", "2"]) == 0
        place = study / "derivatives" / "brainlsap"
        next(place.rglob("*.csv")).unlink()
        assert main([*asked_on_the_command_line(study), "--owner-only"]) == 0
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(p.stat().st_mode) for p in place.rglob("*.csv")}
    assert modes == {0o600, 0o644}  # made now; and before, which nobody reaches
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_two_builds_in_one_folder_are_refused(study, capsys):
    place = study / "derivatives" / "brainlsap"
    with hold_folder(place):
        assert main(asked_on_the_command_line(study)) == 2
    assert "brainlsap is in use by another run" in capsys.readouterr().err
    assert not place.exists()


def test_what_killed_builds_left_is_removed(study):
    built = build_cohort(study, **arguments(study))
    before = contents(built.folder)
    (built.folder / "sub-01" / ".partial-abcd_123.csv").write_text("half")
    (built.folder.parent / ".brainlsap.lock").write_text("")
    build_cohort(study, **arguments(study))
    assert contents(built.folder) == before
    assert [one.name for one in built.folder.parent.iterdir()] == ["brainlsap"]


def test_a_build_that_is_stopped_says_how_to_continue(study, monkeypatch, capsys):
    real, seen = build.build_scan, []

    def stop_at_third(scan, *rest):
        seen.append(scan.name)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(scan, *rest)

    monkeypatch.setattr(build, "build_scan", stop_at_third)
    assert main(asked_on_the_command_line(study)) == 130
    place = study / "derivatives" / "brainlsap"
    told = (
        f"Run the same command again to continue: what is finished is kept in {place}"
    )
    assert told in capsys.readouterr().err
    assert len(list(place.rglob("*.csv"))) == 2
    assert list(place.rglob(".*")) == []
    assert not list(place.parent.glob(".*"))


def test_a_full_disk_ends_a_build_once(study, monkeypatch, capsys):
    real = os.replace

    def fail(self, target):
        if str(target).endswith(".csv"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, target)

    monkeypatch.setattr("pathlib.Path.replace", fail)
    assert main(asked_on_the_command_line(study)) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert "sub-01_ses-M00_atlas-five_connectivity.csv cannot be written: no" in told
    assert "Free some and give the same command again" in told
    assert list((study / "derivatives").rglob(".*")) == []
