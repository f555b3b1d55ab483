"""A whole cohort from a folder: what is read, and everything that is refused."""

import csv
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import load_atlas
from brainlsap.data import Cohort, check_cohort, load_cohort
from brainlsap.data.flow import UNKNOWN_IDS, flow_table
from brainlsap.data.reading_options import DEFAULT_OPTIONS
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    FileFormatError,
    ParameterError,
)
from brainlsap.findings import CHOICES, SHARED_CONNECTOME
from brainlsap.options import list_settings_option_names
from brainlsap.simulation import make_cohort, write_study_folder
from tests.conftest import raises_kind
from tests.data import formats
from tests.data.conftest import NAMES, refused

SCANS = [f"sub-0{person}_ses-M{month}" for person in "12" for month in ("00", "12")]
SCANS += [f"sub-0{person}_ses-M00" for person in "345"]
CONNECTOME = "{0}/{1}/dwi/{0}_{1}_connectivity.csv"
PET = "{0}/{1}/pet/{0}_{1}_trc-18FFDG_regions.tsv"


def replace(study, name, old, new, count=1):
    path = study / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def faults_of(study, tiny, **options):
    options = {"feature": "fdg", **options}
    with pytest.raises(CohortError) as error:
        load_cohort(study, tiny, **options)
    return str(error.value), list(error.value.faults)


def test_study_is_read(study, tiny, matrix, capsys):
    cohort = load_cohort(study, tiny, "fdg", verbose=True)
    assert capsys.readouterr() == ("", "")  # bars are shown on terminals alone
    assert cohort.table["scan"].tolist() == SCANS
    assert cohort.groups.tolist() == [scan[:6] for scan in SCANS]
    assert cohort.y.tolist() == ["CN", "CN", "AD", "AD", "CN", "AD", "CN"]
    assert cohort.classes == ("CN", "AD")
    assert cohort.table["age"].tolist() == [70, 70, 71, 71, 72, 73, 74]
    for row in range(7):
        np.testing.assert_array_equal(cohort.connectomes[row], matrix * (row + 1))
        expected = row + 1 + np.arange(7) / 10
        np.testing.assert_allclose(cohort.features[row, :, 0], expected)
    assert cohort.provenance["atlas"] == "tiny"
    assert "connectomes: read by name (7 of 7 scans)" in cohort.notes
    assert not any(person in note for note in cohort.notes for person in ("sub-0",))


def test_several_features(study, tiny, matrix):
    cohort = load_cohort(study, tiny, ["strength", "FDG"])
    assert cohort.feature_names == ("strength", "fdg")
    # a region's links to itself are no links to others
    np.testing.assert_array_equal(cohort.features[2, :, 0], 3 * matrix.sum(axis=0))
    assert cohort.features[2, 0, 1] == 3


def test_classes_choose_and_order(study, tiny):
    replace(study, "participants.tsv", "sub-03\tCN", "sub-03\tn/a")
    cohort = load_cohort(study, tiny, "fdg", classes=["AD", "CN"])
    assert cohort.classes == ("AD", "CN")
    assert "sub-03" not in cohort.groups
    assert (
        "scans are left out because their diagnosis is not one of the classes: n/a (1)"
        in cohort.notes
    )
    _, faults = faults_of(study, tiny, classes=["CN", "MCI"])
    assert faults == ["no scan has the diagnosis 'MCI'; the scans have AD (3), CN (3)"]
    _, faults = faults_of(study, tiny, classes=["cn", "ad"])
    hints = [fault.rpartition(". ")[2] for fault in faults]
    assert hints == ["Did you mean 'CN'?", "Did you mean 'AD'?"]


def test_visits_have_their_own_labels(study, tiny, write):
    write(
        "study/sub-01/sub-01_sessions.tsv",
        "session_id\tdiagnosis\tage\tmmse\n"
        "ses-M00\tCN\t70\t30\nses-M06\tCN\t70\t30\nses-M12\tAD\t71\t25\n",
    )
    write(
        "study/sub-02/sub-02_sessions.tsv",
        "session_id\tdiagnosis\tage\nses-M00\tAD\t71\nses-M12\tAD\t72\n",
    )
    cohort = load_cohort(study, tiny, "fdg")
    assert cohort.y.tolist()[:2] == ["CN", "AD"]
    assert cohort.table["age"].tolist()[:2] == [70, 71]
    assert cohort.table["mmse"].isna().tolist() == [False, False, *[True] * 5]
    told = "1 listed visit was left out, because no files or folders were found for "
    (note,) = (one for one in cohort.findings if one.people)
    assert str(note) == f"{told}sub-01_ses-M06"
    assert (note.severity, note.people) == ("left out", ("sub-01_ses-M06",))
    # a report names nobody who is not in the cohort either
    assert note.shareable_text() == f"{told}[names withheld]"


def test_one_connectome_for_everybody(study, tiny, matrix, tmp_path):
    np.save(tmp_path / "w.npy", np.triu(matrix))
    np.save(study / "inside.npy", np.triu(matrix))
    for given in (tmp_path / "w.npy", "inside.npy", matrix):
        cohort = load_cohort(study, tiny, "fdg", connectome=given)
        assert cohort.shares_connectome
        np.testing.assert_array_equal(cohort.connectomes[3], matrix)
    (note,) = [x for x in cohort.findings if x.kind == SHARED_CONNECTOME]
    assert str(note) == "one connectome is used for all participants"
    assert note.kind in CHOICES  # the command line prints it
    with refused(r"'strength' is the same for every scan"):
        load_cohort(study, tiny, ["fdg", "strength"], connectome=matrix)


def test_folders_without_sessions(study, tiny):
    for person in ("sub-03", "sub-04", "sub-05"):
        for kind in ("dwi", "pet"):
            (study / person / "ses-M00" / kind).rename(study / person / kind)
        (study / person / "ses-M00").rmdir()
    cohort = load_cohort(study, tiny, "fdg")
    assert cohort.table["scan"].tolist()[4:] == ["sub-03", "sub-04", "sub-05"]
    assert cohort.table["session"].tolist()[4:] == ["", "", ""]


def test_a_table_in_place_of_its_folder_is_refused_with_the_folder(study, tiny):
    with pytest.raises(CohortError) as error:
        load_cohort(study / "participants.tsv", tiny, "fdg")
    assert repr(str(study)) in error.value.advice


def test_people_who_are_not_listed_are_left_out(study, tiny, write):
    write("study/sub-99/dwi/x_connectivity.csv", "")
    write("study/derivatives/freesurfer/p98_T1w/stats/aseg.stats", "")
    write("study/derivatives/freesurfer/01_T1w/stats/aseg.stats", "")
    cohort = load_cohort(study, tiny, "fdg")
    longer = (
        "FreeSurfer folders with a suffix in their names were assigned to "
        "participants: sub-01 (01_T1w)"
    )
    for note in (
        "files and folders were left out, because their participants are not in "
        "participants.tsv: 99, p98_T1w",
        longer,
    ):
        assert note in cohort.notes
        (finding,) = (one for one in cohort.findings if str(one) == note)
        shareable = finding.shareable_text()
        assert shareable.endswith(": [names withheld]")
        for name in ("01", "98", "99"):
            assert name not in shareable


def test_faults_of_the_list_are_told_together(study, tiny):
    replace(study, "participants.tsv", "sub-03\tCN", "sub-01\tCN")
    replace(study, "participants.tsv", "sub-04\tAD", "sub-04\tcn")
    replace(study, "participants.tsv", "sub-05\tCN", "sub-05\tn/a")
    _, faults = faults_of(study, tiny)
    assert "sub-01: " in faults[0]
    assert faults[1].startswith("sub-05_ses-M00: diagnosis is missing")
    assert faults[2].startswith("diagnosis is written in several ways: CN (")
    assert "'cn' is written for sub-04" in faults[2]


def test_codes_for_what_is_missing_and_a_changing_sex_are_refused(study, tiny):
    table = pd.read_csv(study / "participants.tsv", sep="\t")
    table["Sex"] = ["F", "M", *["F"] * (len(table) - 2)]
    replace(study, "participants.tsv", "\t74", "\t999")
    _, faults = faults_of(study, tiny)
    (fault,) = faults
    assert fault.startswith("sub-05_ses-M00: age is far outside 70 to 73")
    assert "; got 999." in fault
    visits = "session_id\tsex\nses-M00\tF\nses-M12\tM\n"
    table["Gender"] = ["M", "male", *["F"] * (len(table) - 2)]
    table.drop(columns="Sex").to_csv(study / "participants.tsv", sep="\t", index=False)
    _, faults = faults_of(study, tiny)
    (fault,) = faults
    assert fault.startswith(
        "Gender is written in several ways: M (2), male (2); 'M' is written for"
    )
    replace(study, "participants.tsv", "\tmale", "\tM")
    (study / "sub-01/sub-01_sessions.tsv").write_text(visits)
    _, faults = faults_of(study, tiny)
    assert any(fault.startswith("sub-01: sex differs between vis") for fault in faults)


def test_columns_have_the_name_that_the_first_table_gives_them(study, tiny):
    table = pd.read_csv(study / "participants.tsv", sep="\t")
    table = table.rename(columns={"age": "Age"}).assign(Scanner="A")
    table.to_csv(study / "participants.tsv", sep="\t", index=False)
    for person in ("sub-01", "sub-02"):
        (study / person / f"{person}_sessions.tsv").write_text(
            "session_id\tage\nses-M00\t50\nses-M12\t51\n"
        )
    cohort = load_cohort(study, tiny, "fdg")
    assert {"Age", "Scanner"} <= {*cohort.table.columns}
    assert not {"age", "scanner"} & {*cohort.table.columns}
    ages = cohort.table.set_index("scan")["Age"]
    assert ages["sub-01_ses-M12"] == 51


def test_a_matrix_with_a_row_more_than_others_is_refused(tmp_path):
    cohort = make_cohort(5, atlas="desikan82", visit_shares=[1])
    folder = write_study_folder(cohort, tmp_path / "study")
    path = next((folder / "sub-0003").rglob("*_connectivity.csv"))
    head, *_ = path.read_text().splitlines()
    rows = np.pad(np.loadtxt(path, delimiter=","), (1, 0))
    np.savetxt(path, rows, "%d", ",", header=head, comments="")
    _, (fault,) = faults_of(folder, "desikan82")
    assert fault.startswith(
        "connectomes have different orders of rows, read in the order"
    )
    assert "label 0, because its path or first line names this tool (sub-0003_" in fault


@pytest.mark.parametrize("row_order", [None, "mrtrix"])
def test_a_matrix_of_another_size_than_most_is_a_fault_of_its_scan(tmp_path, row_order):
    cohort = make_cohort(5, atlas="desikan82", visit_shares=[1])
    folder = write_study_folder(cohort, tmp_path / "study")
    options = {} if row_order is None else {"row_order": row_order}
    for index, path in enumerate(sorted(folder.rglob("*_connectivity.csv"))):
        n_rows = 83 if index == 3 else 84
        weights = np.ones((n_rows, n_rows)) - np.eye(n_rows)
        np.savetxt(path, weights, "%d", ",")
    _, faults = faults_of(folder, "desikan82", **options)
    (odd,) = [fault for fault in faults if "83 x 83" in fault]
    assert "sub-0004" in odd
    assert "4 other scans have 84 x 84" in odd
    assert "--exclude" in odd or "exclude=" in odd
    assert "Lausanne" not in odd
    if row_order:
        assert faults == [odd]
        read = load_cohort(folder, "desikan82", "fdg", skip_faulty=True, **options)
        assert read.n_scans == 4


def test_a_label_of_the_first_visit_only_leads_to_baseline_scans(
    tmp_path, tiny, matrix
):
    visits = "id,visit,diagnosis\na,M0,CN\na,M6,\nb,M0,AD\nb,M6,\n"
    (tmp_path / "people.csv").write_text(visits)
    rows = "".join(f"{name},1,2,3,4,5,6\n" for name in ("a_M0", "a_M6", "b_M0", "b_M6"))
    heads = ",".join(["id", *NAMES[:6]])
    (tmp_path / "volume.csv").write_text(f"{heads}\n{rows}")
    with pytest.raises(CohortError, match="use scans='baseline'"):
        load_cohort(tmp_path, tiny, "volume", connectome=matrix)


def test_everything_wrong_is_in_one_list(study, tiny, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    (study / CONNECTOME.format("sub-01", "ses-M12")).unlink()
    (study / PET.format("sub-02", "ses-M00")).unlink()
    replace(study, CONNECTOME.format("sub-03", "ses-M00"), ",5,", ",nan,")
    replace(study, PET.format("sub-04", "ses-M00"), "lh_b", "lh_bb")
    replace(study, "participants.tsv", "sub-05\tCN", "sub-05\tn/a")
    message, faults = faults_of(study, tiny)
    assert "study cannot be loaded because of 5 faults" in message
    expected = [
        "sub-05_ses-M00: diagnosis is missing (n/a)",
        "sub-01_ses-M12: the connectome is missing; expected a file *connectivity.*",
        "sub-03_ses-M00_connectivity.csv: connection weights must be finite",
        "sub-02_ses-M00: the table of regions for fdg is missing; expected a file "
        "*_trc-18FFDG*",
        "sub-04_ses-M00_trc-18FFDG_regions.tsv: 1 of 7 names ",
    ]
    for fault, start in zip(faults, expected, strict=True):
        assert start in fault
    assert faults == faults_of(study, tiny)[1]  # the same order each time
    assert len(sorted(tmp_path.rglob("*"))) == len(before) - 2  # nothing was written


def test_a_shared_connectome_that_cannot_be_read_is_a_fault(study, tiny):
    _, faults = faults_of(study, tiny, connectome="absent.csv")
    assert faults == ["absent.csv: no such file. Check the path"]
    _, faults = faults_of(study, tiny, connectome="template.tck")
    assert faults[0].startswith("template.tck: the name of a connectome file must")
    _, faults = faults_of(study, tiny, connectome=np.ones((3, 3)))
    assert faults[0].startswith(
        "connectome=: the matrix has 3 rows, but the list contains 7 names"
    )


def test_folder_refused(tmp_path, tiny, write):
    with refused("absent: the folder does not exist. Check the path"):
        load_cohort(tmp_path / "absent", tiny)
    with refused(r"no participants\.tsv .*, and no other table"):
        load_cohort(tmp_path, tiny)
    write("participants.tsv", "participant_id\tdiagnosis\n")
    with refused(
        r"no scan is left for the analysis\. Reasons: participants\.tsv lists no scan"
    ):
        load_cohort(tmp_path, tiny)
    write("participants.tsv", "participant_id\tdiagnosis\ns1\tCN\n")
    with refused("has no column 'dx' for the label; its columns are diagnosis"):
        load_cohort(tmp_path, tiny, label="dx")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scans": "first"}, "scans must be one of 'all', 'baseline'; got 'first'"),
        ({"subcortex": "zero"}, "subcortex must be one of"),
        ({"feature": []}, "feature must be one name or a list of different names"),
        ({"feature": ["fdg", "fdg"]}, "list of different names; got"),
        ({"classes": ["CN", "CN"]}, "classes contains 'CN' more than once"),
        ({"atlas": "none"}, "atlas must be one of"),
    ],
)
def test_arguments_refused(study, tiny, options, message):
    options = {"atlas": tiny, "feature": "fdg", **options}
    with pytest.raises(ParameterError, match=message):
        load_cohort(study, **options)


def test_a_feature_that_is_nowhere(study, tiny):
    with refused(r"thickness: not found .* expected files .*or in subjects_dir=,"):
        load_cohort(study, tiny, "thickness")
    for wrong, right in (
        ("fdgs", "fdg"),
        ("strengths", "strength"),
        ("tikness", "thickness"),
    ):
        with refused(f"a similar name is '{right}"):
            load_cohort(study, tiny, wrong)


@pytest.mark.parametrize("pattern", [{"fdg": "*PiB*"}, "*_sift2.csv"])
def test_a_pattern_that_finds_nothing_is_a_fault(study, tiny, pattern):
    _, (fault,) = faults_of(study, tiny, pattern=pattern)
    assert "(pattern=) fits no file of any of 7 scans; their files are sub-01" in fault
    assert "sub-02_ses-M00_connectivity.csv and 9 more" in fault


def test_real_table_of_1078_people(shared):
    folder = shared / "fcon1000_destrieux"
    template = shared / "tract_mni_destrieux/expected/count_radial4_sym_zerodiag.csv"
    options = {"label": "sex", "connectome": template, "row_order": "mrtrix"}
    cohort = load_cohort(folder, **options)
    assert (cohort.n_scans, cohort.n_rois, cohort.classes) == (1078, 160, ("0", "1"))
    assert (cohort.y == "0").sum() == 589
    assert cohort.table["site"].nunique() == 23
    assert cohort.table.columns.tolist()[4:] == ["age", "site", "eTIV"]
    # two regions are absent, and the subcortex has no thickness
    assert (~cohort.measured).sum() == 2 + 12 * 1078
    assert any("12 subcortical columns are left out" in note for note in cohort.notes)
    raw = load_cohort(folder, features_table="fcon1000_raw.csv", **options)
    np.testing.assert_allclose(raw.features, cohort.features, atol=1e-3)


def test_what_many_scans_share_is_said_once(study, tiny):
    """As the check says it; a wrong atlas once was 112 lines."""
    for path in study.glob("sub-*/ses-*/pet/*.tsv"):
        path.write_text(path.read_text().replace("lh_a", "lh_q"))
        path.rename(path.with_name("fdg_regions.tsv"))  # which does not name the scan
    with pytest.raises(CohortError) as error:
        load_cohort(study, tiny, "fdg")
    assert error.value.faults == check_cohort(study, tiny, "fdg").faults
    assert error.value.faults[0].startswith("7 files: 1 of 7 names ")
    assert "sub-01/ses-M00/pet/" in error.value.faults[0]
    assert "study cannot be loaded because of 1 fault:" in str(error.value)
    for path in study.glob("sub-0[1-4]/ses-*/pet/*.tsv"):
        path.unlink()
    fault, other = check_cohort(study, tiny, "fdg").faults
    assert fault.startswith(
        "6 scans: the table of regions for fdg is missing; expected"
    )
    assert "\n    sub-01_ses-M00, sub-01_ses-M12, sub-02_ses-M00" in fault
    assert "sub-05" in other


def test_ids_that_no_file_has_are_shown_beside_those_of_files(study, tiny):
    replace(study, "participants.tsv", "sub-0", "P", count=5)
    fault = faults_of(study, tiny)[1][0]
    assert fault.startswith(
        "participants.tsv: no person in the table has files. The IDs in "
        "the table look like 'P1', "
        "and the IDs of files and folders like '01'. Write the IDs in participants.tsv"
    )


@pytest.mark.parametrize("ids", ["001", "1"])
def test_ids_inside_file_names_are_explained_once(tmp_path, tiny, matrix, ids):
    heads = "\t".join(tiny.names)
    rows = [f"{int(ids) + i:0{len(ids)}d}\tCN\t" for i in range(3)]
    values = "\t".join(["1"] * 7)
    (tmp_path / "participants.tsv").write_text(
        f"id\tdiagnosis\t{heads}\n" + "".join(f"{row}{values}\n" for row in rows)
    )
    (tmp_path / "connectomes").mkdir()
    for i in range(3):
        path = tmp_path / f"connectomes/{i + 1:03d}_sc.csv"
        np.savetxt(path, matrix, delimiter=",")
    options = {"feature": "gmv", "row_order": "atlas"}
    _, faults = faults_of(tmp_path, tiny, **options)
    pattern = "connectomes/{participant}_sc.csv"
    if ids == "001":
        assert pattern in faults[0]
        load_cohort(tmp_path, tiny, **options, pattern=pattern)
    else:  # a spreadsheet dropped the zeros, and the pattern alone is no remedy
        (fault,) = faults
        before, _, after = fault.partition("exactly as in the file names")
        assert pattern in after
        assert "pattern" not in before
        _, faults = faults_of(tmp_path, tiny, **options, pattern=pattern)
        assert not [fault for fault in faults if "pattern" in fault]


def test_a_cohort_without_connectomes_is_one_line(study, tiny):
    for path in study.glob("sub-*/ses-*/dwi/*connectivity*"):
        path.unlink()
    _, faults = faults_of(study, tiny, feature="fdg")
    assert len(faults) == 1
    assert faults[0].startswith("no connectome: none of 7 scans has a file *con")
    assert "connectome=" in faults[0]
    cohort = load_cohort(study, tiny, "fdg", connectome="none")
    assert cohort.shares_connectome
    assert not cohort.connectomes.any()
    assert any("no connectome was read" in note for note in cohort.notes)


def write_weights(study, **weights_by_measure):
    """Replace the connectome of the first scan by a file of these measures."""
    path = study / CONNECTOME.format("sub-01", "ses-M00")
    path.unlink()
    formats.write_qsirecon(path.with_suffix(".mat"), weights_by_measure, NAMES)


def write_weight(study, matrix, weight, *places):
    changed = matrix.copy()
    for place in places:
        changed[place] = weight
    write_weights(study, count=changed)


def write_frames(study, _):
    """Give the first scan two frames of PET, and two regions that are not measured."""
    path = study / PET.format("sub-01", "ses-M00")
    path.unlink()
    heads = ["frame_start", "frame_end", *NAMES, "Pons", "Vermis"]
    rows = [[0, 10, *[20] * 7, 5, 2], [10, 20, *[60] * 7, 5, 2]]
    path.with_name(path.name.replace("regions", "tacs")).write_text(
        "\n".join("\t".join(map(str, row)) for row in (heads, *rows))
    )


def write_volumes(study, _):
    rows = [[*scan.split("_"), 2, 2, 2, 3, 3, 3, 700] for scan in SCANS]
    table = pd.DataFrame(rows, columns=["participant_id", "session_id", *NAMES])
    table.to_csv(study / "regions.csv", index=False)


def weight_of_first_scan(cohort):
    return cohort.connectomes[0, 1, 4]


def amygdala_of_first_scan(cohort):
    return cohort.features[0, 6, 0]


class ReadingExample(NamedTuple):
    """Values of an option that change what is read, and the value of each.

    `change_study(folder, matrix)` changes the files of the fixture `study`. The values
    of the option should include the default, if the study can be read with it.
    """

    change_study: Callable
    quantity: Callable
    expected_by_value: dict
    options: dict


# Of every option whose value a stored model keeps. The weight of the first scan is 9.
READING_EXAMPLES = {
    "subcortex": ReadingExample(
        write_volumes,
        amygdala_of_first_scan,
        {"absent": np.nan, "mean": 2, "volume": 700},
        {"feature": "thickness"},
    ),
    "negative": ReadingExample(
        lambda study, matrix: write_weight(study, matrix, -9, (1, 4), (4, 1)),
        weight_of_first_scan,
        {"drop": 0, "absolute": 9},
        {"feature": "fdg"},
    ),
    "symmetrize": ReadingExample(
        lambda study, matrix: write_weight(study, matrix, 13, (1, 4)),
        weight_of_first_scan,
        {"mean": 11, "max": 13},
        {"feature": "fdg"},
    ),
    "measure": ReadingExample(
        lambda study, matrix: write_weights(study, count=matrix, fa=matrix / 2),
        weight_of_first_scan,
        {None: 9, "count": 9, "fa": 4.5},
        {"feature": "fdg"},
    ),
    "frames": ReadingExample(
        write_frames,
        amygdala_of_first_scan,
        {(0, 10): 4, (10, 20): 12, (0, 20): 8},
        {"feature": "fdg", "reference": "Pons"},
    ),
    "reference": ReadingExample(
        write_frames,
        amygdala_of_first_scan,
        {"Pons": 4, "Vermis": 10},
        {"feature": "fdg", "frames": (0, 10)},
    ),
}


@pytest.mark.parametrize(
    "name", list_settings_option_names("reading", stored_model=("fixed",))
)
def test_every_option_that_a_model_keeps_changes_what_is_read(
    study, tiny, matrix, name
):
    assert name in READING_EXAMPLES, (
        f"add an example of {name} to READING_EXAMPLES of tests/data/test_load.py"
    )
    example = READING_EXAMPLES[name]
    example.change_study(study, matrix)
    default = getattr(DEFAULT_OPTIONS, name)
    if default not in example.expected_by_value:
        with pytest.raises(BrainlsapError):
            load_cohort(study, tiny, **example.options)
    for value, expected in example.expected_by_value.items():
        cohort = load_cohort(study, tiny, **example.options, **{name: value})
        np.testing.assert_allclose(example.quantity(cohort), expected, err_msg=value)
    assert len({*example.expected_by_value.values()}) > 1


def test_why_tables_were_not_used_is_said(tmp_path, tiny, write):
    write("odd.csv", "a,b\n1\n")
    write("people.csv", "Subject ID,sex\ns1,F\n")
    write("s1_connectome.csv", "0,1,1,1,1,1\n" * 6)
    with refused(r"no other table with IDs and") as error:
        load_cohort(tmp_path, tiny)
    assert "odd.csv: line 2 has 1 cell;" in str(error.value)
    assert "people.csv has no column 'diagnosis'; its columns are sex" in str(
        error.value
    )
    assert "connectome.csv" not in str(error.value)


def test_the_options_of_reading_are_stored_with_the_cohort(study, tiny, tmp_path):
    cohort = load_cohort(study, tiny, "fdg", classes=("CN", "AD"), derivatives=[study])
    stored_cohort = Cohort.load(cohort.save(tmp_path / "cohort.h5"))
    for options in (cohort.reading_options, stored_cohort.reading_options):
        assert options.folder == str(study.resolve())
        assert options.classes == ["CN", "AD"]
        assert options.derivatives == [str(study)]
        assert (options.scans, options.negative) == ("all", "refuse")
        assert options.row_order is None


def test_an_array_of_connectomes_is_not_stored_as_an_option(study, tiny):
    connectome = np.ones((7, 7)) - np.eye(7)
    cohort = load_cohort(study, tiny, "fdg", connectome=connectome)
    assert cohort.reading_options.connectome is None
    assert cohort.provenance["connectome"] == "array"


def test_without_a_label_everybody_is_listed(study, tiny):
    labelled = load_cohort(study, tiny, "fdg")
    people = study / "participants.tsv"
    kept = [line.split("\t")[0] for line in people.read_text().splitlines()]
    people.write_text("\n".join(kept) + "\n")
    cohort = load_cohort(study, tiny, "fdg", label=None)
    assert (cohort.classes, cohort.label_name) == (("unlabelled",), "none")
    np.testing.assert_array_equal(cohort.features, labelled.features)


def truth_file(write, tiny, seed="true", head="region\tseed\teffect\teffect_fdg"):
    rows = [f"{name}\t{seed}\t{-i}\t{i / 4}" for i, name in enumerate(tiny.names)]
    write("study/truth.tsv", "\n".join([head, *rows[::-1]]) + "\n")


def test_truth_comes_in_the_order_of_the_atlas(study, tiny, write):
    assert load_cohort(study, tiny, "fdg").truth is None
    truth_file(write, tiny)
    truth = load_cohort(study, tiny, "fdg").truth
    assert truth["region"].tolist() == list(tiny.names)
    assert truth["effect"].tolist() == [-i for i in range(7)]
    assert truth["effect_fdg"].tolist() == [i / 4 for i in range(7)]
    assert truth["seed"].dtype == bool
    truth_file(write, tiny, seed="maybe")
    message = r"truth\.tsv: .* region, seed and effect"
    with pytest.raises(FileFormatError, match=message):
        load_cohort(study, tiny, "fdg")


def test_an_atlas_of_one_s_own_can_be_read_again(tmp_path):
    table = load_atlas("desikan82").regions[["name", "hemisphere"]]
    table.to_csv(tmp_path / "mine.tsv", sep="\t", index=False)
    folder = write_study_folder(
        make_cohort(5, atlas="desikan82"), tmp_path / "study", style="named"
    )
    cohort = load_cohort(folder, tmp_path / "mine.tsv", "fdg")
    assert load_atlas(cohort.reading_options.atlas).names == cohort.region_names


@pytest.mark.parametrize("word", ["None", "NA", "null", "#N/A", "#REF!"])
def test_a_label_that_counts_as_missing_is_named_by_its_word(study, tiny, word):
    replace(study, "participants.tsv", "\tCN", f"\t{word}", 3)
    _, faults = faults_of(study, tiny)
    (fault,) = faults
    assert f"diagnosis is {word!r}, " in fault
    assert "sub-01_ses-M00" in fault
    # the word as a class
    _, faults = faults_of(study, tiny, classes=[word.lower(), "AD"])
    (fault,) = faults
    assert f"participants.tsv has {word!r} for 4 scans" in fault
    assert "write another name" in fault
    # left out by that word
    cohort = load_cohort(study, tiny, "fdg", classes=["AD"])
    assert (
        f"scans are left out because their diagnosis is not one of the classes: "
        f"{word} (4)" in cohort.notes
    )


def test_a_label_in_front_that_failed_takes_no_person_away(study, tiny):
    path = study / "participants.tsv"
    table = pd.read_csv(path, sep="\t")
    table["age"] = [70, "#DIV/0!", 72, 73, 74]
    table.loc[2, "diagnosis"] = "#N/A"
    table = table[["diagnosis", "participant_id", "age"]]
    table.to_csv(path, sep="\t", index=False)
    _, faults = faults_of(study, tiny)
    assert len(faults) == 1
    assert faults[0].startswith(
        "sub-03_ses-M00: diagnosis is '#N/A', the result of a failed"
    )
    table.loc[2, "diagnosis"] = "CN"
    table.to_csv(path, sep="\t", index=False)
    cohort = load_cohort(study, tiny, "fdg")
    assert cohort.table["age"].isna().sum() == 2  # both visits of sub-02
    assert any("'#DIV/0!', the result of a failed formula" in x for x in cohort.notes)
    for head in ("participant_id", "diagnosis"):
        odd = table.astype(object)
        odd.loc[2, head] = '"'
        odd.to_csv(path, sep="\t", index=False, quoting=csv.QUOTE_NONE)
        with pytest.raises(BrainlsapError, match=r'row 4 \("\)|sub-03.*got "'):
            load_cohort(study, tiny, "fdg")


@pytest.mark.parametrize("cell", ["1,543,210", "1'543'210", "1.543.210,5", "1543210,5"])
def test_a_covariate_with_marks_in_its_numbers_is_no_word(study, tiny, cell):
    path = study / "participants.tsv"
    table = pd.read_csv(path, sep="\t").assign(
        brain=[1543211, cell, 1600000, "n/a", cell]
    )
    table.to_csv(path, sep="\t", index=False)
    _, faults = faults_of(study, tiny)
    (fault,) = faults
    assert "brain must be a number" in fault
    assert repr(cell) in fault


def fates_of(cohort):
    return dict(zip(cohort.left_out["scan"], cohort.left_out["fate"], strict=True))


def test_people_and_scans_are_excluded_by_id_or_file(study, tiny, tmp_path):
    cohort = load_cohort(study, tiny, "fdg", exclude="sub-01_ses-M12, 03")
    expected = dict.fromkeys(["sub-01_ses-M12", "sub-03_ses-M00"], "excluded")
    assert fates_of(cohort) == expected
    path = tmp_path / "excluded.tsv"
    path.write_text("participant_id\twhy\nsub-03\tmoved\n01_M12\tmoved\n")
    again = load_cohort(study, tiny, "fdg", exclude=path)
    pd.testing.assert_frame_equal(again.table, cohort.table)
    with pytest.raises(ParameterError) as refusal:
        load_cohort(study, tiny, "fdg", exclude=["sub-09", "sub-03", "sub-01_ses-M99"])
    assert "sub-09, sub-01_ses-M99" in str(refusal.value)
    # Faults of who is excluded do not matter.
    (study / CONNECTOME.format("sub-03", "ses-M00")).write_text("broken")
    assert load_cohort(study, tiny, "fdg", exclude="sub-03").n_scans == 6


@pytest.mark.parametrize(
    "file_text",
    [
        "sub-01_ses-M12,sub-03\n",
        "03;01_M12",
        "03\t01_M12\n",
        "03 01_M12\n",
        "\ufeff\"sub-03\"\r\n\r\n'01_M12'\r\n",
        "Proband;Grund\r\n03;bewegt, zweimal\r\n01_M12;\r\n",
        "why,Subject ID\nmoved twice,03\n,01_M12\n",
        "PTID\tVISCODE\twhy\n01\tM12\tmoved\n03\tn/a\n",
        "participants\n03,01_M12\n",
        "# by the radiologist\n03,moved\n01_M12,moved\n",
    ],
)
def test_files_of_excluded_ids_are_read_whole(study, tiny, tmp_path, file_text):
    path = tmp_path / "excluded.txt"
    path.write_bytes(file_text.encode())
    cohort = load_cohort(study, tiny, "fdg", exclude=path)
    expected = dict.fromkeys(["sub-01_ses-M12", "sub-03_ses-M00"], "excluded")
    assert fates_of(cohort) == expected


@pytest.mark.parametrize(
    ("file_text", "unknown_ids"),
    [
        ("03\n01, 99\n", ["99 (excluded.txt, line 2)"]),
        ("03\n\n01 99\n", ["01 99 (excluded.txt, line 3)"]),
        ("03,moved 3 mm\n", ["moved 3 mm (excluded.txt, line 1)"]),
        ("unlisted word\n03\n", ["unlisted word (excluded.txt, line 1)"]),
        ("why,id\na,b,03\n", ["a (excluded.txt, line 2)", "b (excluded.txt, line 2)"]),
    ],
)
def test_lines_of_excluded_ids_that_nobody_has_are_named(
    study, tiny, tmp_path, file_text, unknown_ids
):
    path = tmp_path / "excluded.txt"
    path.write_text(file_text)
    with raises_kind(UNKNOWN_IDS, error=ParameterError, ids=unknown_ids):
        load_cohort(study, tiny, "fdg", exclude=path)


def test_scans_with_faults_are_skipped_on_request_only(study, tiny):
    (study / CONNECTOME.format("sub-01", "ses-M12")).write_text("broken")
    (study / CONNECTOME.format("sub-03", "ses-M00")).unlink()
    replace(study, "participants.tsv", "sub-04\tAD", "sub-04\t")
    _, faults = faults_of(study, tiny)
    assert len(faults) == 3
    cohort = load_cohort(study, tiny, "fdg", skip_faulty=True)
    assert fates_of(cohort) == {
        "sub-01_ses-M12": "fault",
        "sub-03_ses-M00": "no image",
        "sub-04_ses-M00": "no label",
    }
    assert cohort.left_out["reason"].str.len().min() > 0
    # Where all scans have one fault, nothing is skipped.
    for path in study.rglob("*_regions.tsv"):
        path.unlink()
    with pytest.raises(CohortError):
        load_cohort(study, tiny, "fdg", skip_faulty=True)


def test_the_most_frequent_fault_is_given_where_no_scan_remains(study, tiny):
    paths = sorted(study.rglob("*_connectivity.csv"))
    paths[0].unlink()
    for path in paths[1:]:
        path.write_text(",cuneus,pons\ncuneus,0,1\npons,1,0\n")
    with pytest.raises(
        CohortError, match="no scan is left for the analysis"
    ) as refusal:
        load_cohort(study, tiny, "fdg", skip_faulty=True)
    message = str(refusal.value)
    assert f"fault ({len(paths) - 1} of {len(paths)}) is: " in message
    assert "cuneus" in message


def test_every_visit_has_one_fate(study, tiny):
    sessions = "session_id\nses-M00\nses-M12\nses-M24\n"
    (study / "sub-01" / "sub-01_sessions.tsv").write_text(sessions)
    table = study / "participants.tsv"
    table.write_text(table.read_text().replace("sub-05\tCN", "sub-05\tFTD"))
    options = {"scans": "baseline", "classes": ["CN", "AD"]}
    cohort = load_cohort(study, tiny, "fdg", **options)
    assert fates_of(cohort) == {
        "sub-01_ses-M24": "no image",
        "sub-01_ses-M12": "later visit",
        "sub-02_ses-M12": "later visit",
        "sub-05_ses-M00": "other class",
    }
    flow = flow_table(cohort.table, cohort.left_out).set_index("fate")
    assert flow.loc["listed", ["participants", "scans"]].tolist() == [5, 8]
    assert flow.loc["analysed", ["participants", "scans"]].tolist() == [4, 4]
    assert flow.loc["later visit", ["participants", "scans"]].tolist() == [0, 2]


@pytest.mark.parametrize("fate", ["excluded", "no image", "fault"])
def test_a_person_has_the_fate_of_the_baseline_scan(study, tiny, fate):
    """A person is left out because of later visits only if there are no others."""
    options = {"skip_faulty": True}
    path = next((study / "sub-01/ses-M00").rglob("*_connectivity.csv"))
    if fate == "excluded":
        options = {"exclude": "sub-01_ses-M00"}
    elif fate == "no image":
        path.unlink()
    else:
        path.write_text("no matrix")
    # The table lists M12 alone, so neither scan of this person is the baseline.
    (study / "sub-02/sub-02_sessions.tsv").write_text("session_id\nses-M12\n")
    cohort = load_cohort(study, tiny, "fdg", scans="baseline", **options)
    flow = flow_table(cohort.table, cohort.left_out).set_index("fate")
    assert flow[["participants", "scans"]].T.to_dict("list") == {
        "listed": [5, 7],
        "later visit": [1, 3],
        fate: [1, 1],
        "analysed": [3, 3],
    }


def test_a_folder_whose_id_differs_in_zeros_is_named_with_its_person(study, tiny):
    people = study / "participants.tsv"
    people.write_text(people.read_text().replace("sub-05", "sub-005"))
    with pytest.raises(CohortError) as error:
        load_cohort(study, tiny, "fdg")
    notes = [x.message for x in error.value.findings if "the similar ID" in x.message]
    assert notes[0].startswith("no files have the ID '005' of participants.tsv")
    assert "the similar ID '05'" in notes[0]


@pytest.mark.parametrize("scans", ["all", "baseline"])
def test_files_without_visits_of_people_with_several_are_named(
    tmp_path, tiny, matrix, scans
):
    ids = [f"005_S_{4010 + row}" for row in range(6)]
    rows = [f"{one},{visit},CN\n" for one in ids for visit in ("bl", "m06")]
    people = tmp_path / "participants.csv"
    people.write_text("PTID,VISCODE,diagnosis\n" + "".join(rows))
    (tmp_path / "dti").mkdir()
    for one in ids:
        pd.DataFrame(matrix, NAMES, NAMES).to_csv(tmp_path / f"dti/{one}.csv")
    options = {"pattern": "dti/{participant}.csv", "scans": scans}
    check = check_cohort(tmp_path, tiny, "strength", id_column="PTID", **options)
    (fault,) = [x for x in check.faults if "fits no file" in x]
    assert "it fits 6 files of the participants, but these names contain no visit" in (
        fault
    )
    assert "Add the visit to the names of the files" in fault
    # Both ways that the message gives read the files.
    people.write_text("PTID,diagnosis\n" + "".join(f"{one},CN\n" for one in ids))
    read_text = "connectomes were read for 6 of 6 scans"
    check = check_cohort(tmp_path, tiny, "strength", id_column="PTID", **options)
    assert read_text in check.count_texts
    people.write_text("PTID,VISCODE,diagnosis\n" + "".join(rows))
    for path in (tmp_path / "dti").iterdir():
        path.rename(path.with_name(f"{path.stem}_bl.csv"))
    options["pattern"] = "dti/{participant}_{session}.csv"
    check = check_cohort(tmp_path, tiny, "strength", id_column="PTID", **options)
    assert read_text in check.count_texts
