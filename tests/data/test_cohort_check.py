"""What a folder holds is said at once, faults and all."""

import pytest

from brainlsap.data.cohort_check import check_cohort
from brainlsap.exceptions import ParameterError


def test_a_sound_folder(study, tiny):
    check = check_cohort(study, tiny, ["fdg", "strength"])
    assert check.is_sound
    assert check.found == (
        "5 people, 7 scans",
        "diagnosis: CN (4), AD (3)",
        "connectome: 7 of 7 scans",
        "fdg: 7 of 7 scans",
        "covariates: age",
    )
    assert "connectomes: read by name (7 of 7)" in check.mapped
    assert check.dropped == ()
    assert check.cohort is not None
    assert check.cohort.n_scans == 7
    text = check.text()
    assert text.startswith(f"{study}\nFound:\n  5 people, 7 scans\n")
    assert text.endswith("No faults: the cohort can be loaded.\n")
    assert "Faults" not in text


def test_every_fault_is_listed_beside_what_was_found(study, tiny):
    files = sorted(study.glob("sub-*/ses-*/dwi/*"))
    files[0].unlink()
    files[1].write_text("not a matrix")
    table = next(study.glob("sub-05/ses-*/pet/*"))
    table.write_text("region\tsuvr\nlh_a\t1\n")
    check = check_cohort(study, tiny, "fdg", classes=["CN", "AD"])
    assert not check.is_sound
    assert check.cohort is None
    assert len(check.faults) == 3
    assert "sub-01_ses-M00: no connectome" in check.faults[0]
    assert check.found[2:4] == ("connectome: 5 of 7 scans", "fdg: 6 of 7 scans")
    assert "Faults (3):\n  sub-01_ses-M00: no connectome" in check.text()


def test_what_was_dropped_is_told_apart(study, tiny):
    check = check_cohort(study, tiny, "fdg", classes=["CN", "SMC", "AD"])
    assert check.faults == (
        "no scan has the diagnosis 'SMC' of classes; found AD (3), CN (4)",
    )
    people = study / "participants.tsv"
    people.write_text(people.read_text().replace("sub-05\tCN", "sub-05\tother"))
    check = check_cohort(study, tiny, "fdg", classes=["CN", "AD"])
    assert check.dropped == ("left out, diagnosis is not among the classes: other (1)",)


def test_nothing_can_be_said_without_people(tmp_path, study, tiny):
    check = check_cohort(tmp_path / "nowhere", tiny)
    assert check.faults == (f"{tmp_path / 'nowhere'}: no such folder",)
    assert check.found == ()
    (study / "participants.tsv").write_text("participant_id\tdiagnosis\n../x\tCN\n")
    check = check_cohort(study, tiny)
    assert "must be the name of a subject" in check.faults[0]
    with pytest.raises(ParameterError, match="scans must be one of"):
        check_cohort(study, tiny, scans="some")
