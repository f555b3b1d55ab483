"""A fault that many share is said once, and nobody's name is lost."""

from pathlib import Path

from brainlsap.data.cohort_check import check_cohort
from brainlsap.data.fault_groups import fault_lines

STUDY = Path("/data/study")
ADVICE = "3 of 82 names unknown; give each region by its name"


def test_names_of_all_scans_stand_below_the_fault_that_they_share():
    names = [f"sub-{number:04d}_ses-M00" for number in range(1, 15)]
    faults = [f"{name}: no connectome; expected one file" for name in names]
    faults.insert(3, "sub-0099: no diagnosis (n/a)")
    head, *below, last = fault_lines(faults, STUDY)
    assert head == "14 scans: no connectome; expected one file"
    assert " ".join(line.strip() for line in below).split(", ") == names
    assert all(len(line) <= 86 for line in below)
    assert last == "sub-0099: no diagnosis (n/a)"


def test_files_are_listed_by_their_path_below_the_cohort():
    faults = [f"{STUDY}/sub-{n}/pet/table.tsv: {ADVICE}" for n in (1, 2)]
    faults.append(f"/elsewhere/sub-3/table.tsv: {ADVICE}")
    assert fault_lines(faults, STUDY) == [
        f"3 files: {ADVICE}",
        "  sub-1/pet/table.tsv",
        "  sub-2/pet/table.tsv",
        "  /elsewhere/sub-3/table.tsv",
    ]


def test_faults_that_differ_stay_apart_and_in_order():
    faults = [
        "sub-1: weight -3",
        "sub-2: weight -4",
        "no scan has the label",
        "a: b: c",
    ]
    assert fault_lines(faults, STUDY) == faults


def test_check_of_a_folder_says_a_shared_fault_once(study, tiny):
    for path in sorted(study.glob("sub-*/ses-*/dwi/*")):
        path.unlink()
    check = check_cohort(study, tiny, "fdg")
    assert len(check.faults) == 7
    text = check.text()
    assert text.count("no connectome; expected") == 1
    assert "Faults (7):\n  7 scans: no connectome; expected" in text
    for fault in check.faults:
        assert fault.split(": ")[0] in text
