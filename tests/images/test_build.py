"""A study's images become connectomes and tables that load_cohort reads."""

import json

import nibabel
import numpy as np
import pytest
from nibabel.streamlines import Tractogram

from brainlsap.atlas import load_atlas
from brainlsap.cli import main
from brainlsap.data import load_cohort
from brainlsap.exceptions import CohortError, ParameterError
from brainlsap.images import build, build_study

REGIONS = "abcde"
N_SCANS = 5


def write_images(folder, name, number, labels, tracers=("18FFDG",)):
    """Write a parcellation, ten streamlines or more, and PET of one scan."""
    rng = np.random.default_rng(number)
    for place in ("dwi", "anat", "pet"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    image = nibabel.Nifti1Image(labels, np.eye(4))
    nibabel.save(image, folder / f"anat/{name}_atlas-five_dseg.nii.gz")
    ends = rng.uniform(0, 12, (10 + number, 2, 3)).astype(np.float32)
    lines = Tractogram(list(ends), affine_to_rasmm=np.eye(4))
    nibabel.streamlines.save(lines, str(folder / f"dwi/{name}_tractography.tck"))
    for tracer in tracers:
        pet = nibabel.Nifti1Image(rng.gamma(9, 1, labels.shape), np.eye(4))
        nibabel.save(pet, folder / f"pet/{name}_trc-{tracer}_space-T1w_pet.nii.gz")


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
        write_images(folder / person / session, f"{person}_{session}", number, labels)
    (folder / "participants.tsv").write_text(
        "participant_id\tdiagnosis\nsub-01\tCN\nsub-02\tAD\nsub-03\tCN\n"
    )
    return folder


def arguments(study):
    labels = {"labels": study.parent / "labels.tsv"}
    return {
        "atlas": study.parent / "five",
        "connectome": dict(labels),
        "suvr": dict(labels),
    }


def command(study, *more):
    folder = study.parent
    given = ["--atlas", str(folder / "five"), "--labels", str(folder / "labels.tsv")]
    return ["build", str(study), *given, *more]


def contents(folder):
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_what_is_built_is_loaded_by_name(study):
    built = build_study(study, **arguments(study))
    assert built.folder == study / "derivatives/brainlsap"
    assert (len(built.new_files), built.existing_files, built.faults) == (
        2 * N_SCANS,
        (),
        (),
    )
    cohort = load_cohort(study, study.parent / "five", ["fdg", "strength"])
    assert cohort.n_scans == N_SCANS
    assert cohort.region_names == tuple(f"lh_{r}" for r in REGIONS)
    assert np.isfinite(cohort.features).all()
    said = json.loads(built.new_files[0].with_suffix(".json").read_text())
    assert said["n_streamlines"] == 10
    kept = said["n_kept"]
    assert np.triu(cohort.connectomes[0]).sum() == kept > 0
    assert said["Parameters"]["assignment"] == "radial"
    described = json.loads((built.folder / "dataset_description.json").read_text())
    assert described["DatasetType"] == "derivative"


def test_a_second_run_keeps_what_is_the_same(study):
    first = build_study(study, **arguments(study))
    before = contents(first.folder)
    (first.folder / "sub-01" / ".partial-abcd").mkdir()
    (first.folder / "sub-01" / ".partial-abcd" / "half.csv").write_text("half")
    again = build_study(study, **arguments(study))
    assert (again.new_files, len(again.existing_files)) == ((), 2 * N_SCANS)
    assert contents(first.folder) == before
    # nor does the number of processes matter
    two = build_study(study, **arguments(study), out=study.parent / "two", n_jobs=2)
    assert list(contents(two.folder).values()) == list(before.values())
    assert [one.name for one in first.folder.parent.iterdir()] == ["brainlsap"]
    # other parameters, another input, and a file without its sidecar
    other = arguments(study)
    other["connectome"]["weight"] = "mean_length"
    assert len(build_study(study, **other).new_files) == N_SCANS
    pet = next((study / "sub-03").rglob("*_pet.nii.gz"))
    image = nibabel.load(pet)
    nibabel.save(nibabel.Nifti1Image(image.get_fdata() * 2, image.affine), pet)
    (made,) = build_study(study, **other).new_files
    assert "sub-03" in made.name
    made.with_suffix(".json").unlink()
    assert build_study(study, **other).new_files == (made,)


def test_only_a_folder_that_was_built_of_the_study_is_written_to(study, tmp_path):
    other = tmp_path / "fmriprep"
    other.mkdir()
    (other / "dataset_description.json").write_text('{"Name": "fMRIPrep"}')
    for place in (other, study, study / "participants.tsv"):
        before = contents(tmp_path)
        with pytest.raises(ParameterError, match="out="):
            build_study(study, **arguments(study), out=place)
        assert contents(tmp_path) == before
    built = build_study(study, **arguments(study), out=tmp_path / "built")
    twin = study.rename(tmp_path / "another")
    before = contents(built.folder)
    with pytest.raises(ParameterError, match="another study"):
        build_study(twin, **arguments(twin), out=built.folder)
    assert contents(built.folder) == before


def test_every_tracer_of_a_visit_has_its_table(study):
    labels = nibabel.load(next(study.rglob("*_dseg.nii.gz"))).get_fdata()
    place = study / "sub-03/ses-M00"
    write_images(place, "sub-03_ses-M00", 4, labels.astype("i2"), ["18FAV45", "11CPIB"])
    built = build_study(study, **arguments(study))
    tables = [
        p.name for p in built.new_files if "sub-03" in p.name and p.suffix == ".tsv"
    ]
    assert tables == [
        f"sub-03_ses-M00_trc-{tracer}_atlas-five_desc-suvr_regions.tsv"
        for tracer in ("11CPIB", "18FAV45", "18FFDG")
    ]


def test_pet_of_an_unsaid_space_needs_consent_or_a_transform(study, capsys):
    pet = next((study / "sub-03").rglob("*_pet.nii.gz"))
    pet.rename(pet.with_name(pet.name.replace("_space-T1w", "")))
    assert main(command(study)) == 2
    said = capsys.readouterr().err
    assert "the file name of the PET image does not contain the space" in said
    assert "got parcellation sub-03_ses-M00_atlas-five_dseg.nii.gz" in said
    assert "--same-space" in said
    assert main(command(study, "--same-space")) == 0


def test_one_line_for_each_scan_that_fails(study, capsys):
    broken = next((study / "sub-02/ses-M12").rglob("*.tck"))
    broken.write_bytes(broken.read_bytes()[:-12])
    next((study / "sub-03").rglob("*_dseg.nii.gz")).unlink()
    first = next((study / "sub-01/ses-M00").rglob("*.tck"))
    first.with_name("sub-01_ses-M00_other.tck").write_bytes(first.read_bytes())
    assert main(command(study)) == 2
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if line.startswith("  ")]
    assert f"  {broken}: " in lines[1]
    for line, part in zip(
        lines,
        (
            "sub-01_ses-M00: 2 files could be the tractogram",
            "does not end with the end mark",
            "sub-03_ses-M00: there is no parcellation of five",
        ),
        strict=True,
    ):
        assert part in line
    assert "(5 new files, 0 existing)" in printed.out
    names = [p.name for p in (study / "derivatives").rglob("*") if p.is_file()]
    assert not any("partial" in n or "sub-02_ses-M12_atlas" in n for n in names)
    assert main(command(study, "--tractogram", "*_tractography.tck")) == 2
    assert "sub-01" not in capsys.readouterr().err


def test_what_is_missing_is_said_once_and_counted(study, capsys):
    for path in study.rglob("*_dseg.nii.gz"):
        path.unlink()
    next((study / "sub-01/ses-M00").rglob("*.tck")).unlink()
    for person in ("sub-01", "sub-02"):
        next((study / person / "ses-M12").rglob("*_pet.nii.gz")).unlink()
    assert main(command(study)) == 2
    printed = capsys.readouterr()
    lines = [x for x in printed.out.splitlines() if x.startswith("Missing: ")]
    for line, fact in zip(
        lines,
        (
            "1 of 5 scans have no tractogram",
            "2 of 5 scans have no PET",
            "5 of 5 scans have no parcellation",
        ),
        strict=True,
    ):
        assert fact in line
    assert printed.err.count("no parcellation of five") == 1
    for path in [*study.rglob("*.tck"), *study.rglob("*_pet.nii.gz")]:
        path.unlink()
    image = study / "sub-02/ses-M00/dwi/sub-02_ses-M00_dwi.nii.gz"
    image.write_bytes(b"")
    with pytest.raises(CohortError) as refusal:
        build_study(study, **arguments(study))
    assert [one.split(" (")[0] for one in refusal.value.faults] == [
        "5 of 5 scans have no tractogram",
        "5 of 5 scans have no PET",
        "5 of 5 scans have no parcellation",
    ]


def test_one_fault_of_many_scans_is_said_once_and_the_next_command_is(study, capsys):
    for pet in [*study.rglob("*_pet.nii.gz")]:
        pet.rename(pet.with_name(pet.name.replace("_space-T1w", "")))
    out = study.parent / "built"
    assert main(command(study, "--out", str(out))) == 2
    assert (
        capsys.readouterr().err.count(
            "the file name of the PET image does not contain the space"
        )
        == 1
    )
    assert main(command(study, "--out", str(out), "--same-space")) == 0
    (line,) = (
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("Next: brainlsap check ")
    )
    for option in ("--atlas ", f"--derivatives {out}", "--feature fdg"):
        assert option in line
    main(line.removeprefix("Next: brainlsap ").split())  # too few people for folds
    assert "No faults: the cohort can be loaded." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("subject", "person", "session"),
    [("bert", "bert", ""), ("sub-7_ses-2", "sub-7", "ses-2")],
)
def test_parcellations_of_freesurfer_subjects(
    tmp_path, subject, person, session, capsys
):
    study, folder = tmp_path / "study", tmp_path / "subjects" / subject
    numbers = load_atlas("desikan82").regions["freesurfer_id"].tolist()
    labels = np.resize([*numbers, 2, 8, 47], (12, 12, 12)).astype(np.int32)
    write_images(study / person / session, "rest", 3, labels)
    next(study.rglob("*_dseg.nii.gz")).unlink()
    (study / "participants.csv").write_text(f"participant_id,dx\n{person},CN\n")
    for name in ("mri", "stats"):
        (folder / name).mkdir(parents=True)
    image = nibabel.MGHImage(labels, np.eye(4))
    nibabel.save(image, folder / "mri/aparc+aseg.mgz")
    given = ["--subjects-dir", str(folder.parent), "--atlas", "desikan82"]
    assert main(["build", str(study), *given]) == 0
    assert "(2 new files, 0 existing)" in capsys.readouterr().out
    cohort = load_cohort(study, "desikan82", "fdg", "dx")
    assert cohort.features.shape == (1, 82, 1)
    assert cohort.connectomes.sum() > 0


def test_nothing_to_build_is_said(tmp_path):
    (tmp_path / "sub-01").mkdir()
    with pytest.raises(CohortError, match=r"contains no tractogram \(\.tck, .* in its"):
        build_study(tmp_path)
    with pytest.raises(CohortError, match="nowhere: no such folder"):
        build_study(tmp_path / "nowhere")
    with pytest.raises(
        ParameterError, match=r"n_jobs must be a whole number .* 1; got 0"
    ):
        build_study(tmp_path, n_jobs=0)


def test_a_build_that_is_stopped_keeps_what_is_finished(study, monkeypatch):
    real, seen = build.build_file, []

    def stop_at_third(task, *rest):
        seen.append(task.scan)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(task, *rest)

    monkeypatch.setattr(build, "build_file", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        build_study(study, **arguments(study))
    place = study / "derivatives" / "brainlsap"
    assert len([*place.rglob("*.csv"), *place.rglob("*.tsv")]) == 2
    assert list(place.parent.rglob(".*")) == []
