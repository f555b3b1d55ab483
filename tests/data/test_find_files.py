"""Which file is of which scan: names, folders, patterns, FreeSurfer subjects."""

import re

import numpy as np
import pytest

from brainlsap.atlas import load_atlas
from brainlsap.data import load_cohort
from brainlsap.data.find_files import (
    Scan,
    ScanIdentity,
    StudyFiles,
    count_files_by_path_pattern,
    make_visit_sort_key,
    parse_scan_identity,
)
from brainlsap.exceptions import CohortError, ParameterError
from brainlsap.options import read_value_by_option
from tests.data.conftest import NAMES, refused
from tests.data.feature_formats import write_clinica


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sub-01_ses-M00_run-2_T1w", ("sub-01", "ses-M00", "")),
        ("sub-01_run-2.nii.gz", ("sub-01", "", "", "_run-2.nii.gz")),
        ("sub-01_V1", ("sub-01", "", "", "_V1")),
        ("sub-01-2", ("sub-01-2", "", "")),
        ("sub-01_2", ("sub-01_2", "", "")),
        ("sub-002_S_0295_bl", ("sub-002_S_0295", "bl", "")),
        ("sub-01_ses-M00.long.sub-01", ("sub-01", "ses-M00", "sub-01")),
        ("C:\\fs\\sub-01", ("sub-01", "", "")),
        ("002_S_0295_2006-04-18", ("002_S_0295", "2006-04-18", "")),
        (" NewYork_a_sub44515 ", ("NewYork_a_sub44515", "", "")),
    ],
)
def test_parse(text, expected):
    assert parse_scan_identity(text) == ScanIdentity(*expected)


def test_keys_equate_spellings():
    assert parse_scan_identity("sub-01_ses-M00").key == ("01", "M00")
    assert ScanIdentity("01", "M00").key == ScanIdentity("sub-01", "ses-M00").key
    for name in ("sub-ADNI002S0295", "002_S_0295", "sub-002S0295"):
        assert ScanIdentity(name).key[0] == "002_S_0295"
    assert ScanIdentity("sub-1").key != ScanIdentity("sub-01").key


@pytest.mark.parametrize(
    ("visit", "name", "expected"),
    [
        ("V2", "sub-01_V2", ("01", "V2")),
        ("V2", "sub-01_V1", ("01", "V1")),  # no scan of the only visit
        ("V2", "sub-01_dwi_bl", ("01", "bl")),
        ("U2", "sub-01_u7.csv", ("01", "u7")),
        ("V2", "sub-01_T1.long", ("01", "")),  # a kind of image
        ("", "sub-01_V1", ("01", "")),  # a study without visits
    ],
)
def test_an_ending_that_is_a_visit_is_not_dropped(tmp_path, visit, name, expected):
    files = StudyFiles(tmp_path, [ScanIdentity("sub-01", visit)])
    assert files.get_scan_key(parse_scan_identity(name)) == expected


def test_visits_in_time():
    given = ["ses-M12", "M6", "ses-M00", "bl", "sc", "ses-M100"]
    expected = ["sc", "bl", "ses-M00", "M6", "ses-M12", "ses-M100"]
    assert sorted(given, key=make_visit_sort_key) == expected
    dates = ["2010-01-02", "2009-12-31", "2010-01-01"]
    assert sorted(dates, key=make_visit_sort_key) == sorted(dates)
    assert sorted(["2", "a", "", "b1"], key=make_visit_sort_key) == ["", "a", "b1", "2"]


def scan_of(files, person="01"):
    return Scan(person, (person, ""), True, files.list_scan_files((person, ""), True))


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
    files = StudyFiles(tmp_path, derivatives=[tmp_path / "extra"])
    assert files.folder_sessions_by_person == {
        "01": {"1": "ses-1", "2": "ses-2", "3": "ses-3"}
    }
    assert names(files.list_scan_files(("01", "1"), False), tmp_path) == [
        "derivatives/pet/sub-01/ses-1/pet/r.tsv",
        "extra/sub-01/ses-1/w.csv",
        "sub-01/ses-1/dwi/x_connectivity.csv",
    ]
    # a list of visits is a file of none of them
    assert files.list_scan_files(("01", ""), False) == ()


def test_people_may_have_any_name_and_a_folder_counts_once(write, tmp_path):
    write("1000123/dwi/x_connectivity.csv", "")
    write("code/secret.csv", "")
    write("derivatives/a/1000123/x.csv", "")
    twice = [tmp_path / "derivatives" / "a"]
    files = StudyFiles(tmp_path, ["1000123", "../outside"], derivatives=twice)
    assert list(files.files_by_visit) == [("1000123", "")]
    assert len(files.list_scan_files(("1000123", ""), True)) == 2


def test_folders_refused(tmp_path):
    with refused("named folders do not e") as error:
        StudyFiles(tmp_path, (), [tmp_path / "a"], tmp_path / "b")
    assert [f.split(": ")[1] for f in error.value.faults] == ["no such folder"] * 2


@pytest.mark.parametrize("end", ["connectivity.tsv", "x_connectome.csv", "sc.npy"])
def test_a_connectome_is_known_by_its_name(write, tmp_path, tiny, end):
    name = f"sub-01_{end}"
    write(f"sub-01/dwi/{name}", "")
    write("sub-01/dwi/sub-01_connectivity.json", "")
    write("sub-01/dwi/other.csv", "")
    files = StudyFiles(tmp_path)
    assert files.find_connectome_source(scan_of(files), tiny).name == name


def test_the_atlas_chooses_between_connectomes(write, tmp_path, tiny):
    for word in ("destrieux", "aparc-a2009s_x", "desikan", "schaefer"):
        write(f"sub-01/atlas-{word.split('_')[0]}_connectivity.csv", "")
    files = StudyFiles(tmp_path)
    scan = scan_of(files)
    desikan = files.find_connectome_source(scan, load_atlas("desikan82"))
    assert desikan.name == "atlas-desikan_connectivity.csv"
    with refused(r"2 files could be the connectome; got .*a2009s"):
        files.find_connectome_source(scan, load_atlas("destrieux160"))
    with refused(r"4 files .* Choose one with --pattern .* pattern=\{'connectome'"):
        files.find_connectome_source(scan, tiny)
    for pattern in ("*schaefer*", "sub-01/*schaefer*"):
        files = StudyFiles(tmp_path, pattern=pattern)
        assert "schaefer" in files.find_connectome_source(scan, tiny).name
        assert files.find_connectome_source(scan._replace(paths=()), tiny) is None


def test_files_of_one_name_are_chosen_by_the_folders_that_the_advice_names(study, tiny):
    for path in sorted(study.glob("sub-*/*/dwi/*_connectivity.csv")):
        for name in ("first", "second"):
            other = study / "derivatives" / name / path.relative_to(study)
            other.parent.mkdir(parents=True)
            other.write_bytes(path.read_bytes())
        path.unlink()
    with pytest.raises(CohortError) as error:
        load_cohort(study, tiny, "fdg")
    patterns = re.findall(r"--pattern '([^']*)'", str(error.value))
    assert len(patterns) == 2
    for pattern in patterns:
        assert load_cohort(study, tiny, "fdg", pattern=pattern).n_scans == 7


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["P1.csv", "sub-P1.csv"], None),
        (["sub-P1.csv", "sub-P1.npy"], "sub-P1.npy"),
        (["sub-P1_old.csv", "sub-P1_new.csv"], "sub-P1_old.csv"),
    ],
)
def test_of_several_files_in_one_folder_the_advice_decides(
    write, tmp_path, tiny, names, chosen
):
    for name in names:
        write(f"connectomes/{name}", "")
    files = StudyFiles(tmp_path, ["P1"])
    with pytest.raises(CohortError) as error:
        files.find_connectome_source(scan_of(files, "P1"), tiny)
    patterns = re.findall(r"--pattern '([^']*)'", str(error.value))
    assert len(patterns) == (2 if chosen else 0)
    if chosen is None:
        assert "Delete all but one of the files" in str(error.value)
        return
    files = StudyFiles(tmp_path, ["P1"], pattern=patterns[1])
    assert files.find_connectome_source(scan_of(files, "P1"), tiny).name == chosen


def test_a_pattern_of_a_feature_is_advised_as_a_config_file_takes_it(
    study, tiny, tmp_path
):
    for path in sorted(study.glob("sub-*/*/pet/*_regions.tsv")):
        stem = path.name.partition("_trc")[0]
        for run in ("run-1", "run-2"):
            other = path.with_name(f"{stem}_{run}_desc-my mark_regions.tsv")
            other.write_text(path.read_text().replace("suvr", "my mark"))
        path.unlink()
    with pytest.raises(CohortError) as error:
        load_cohort(study, tiny, "my mark")
    line = re.search(r"Choose .*?(pattern = .*?) in --config", str(error.value))[1]
    (tmp_path / "config.toml").write_text(line.rpartition(" or ")[2])
    cohort = load_cohort(
        study, tiny, "my mark", **read_value_by_option(tmp_path / "config.toml")
    )
    assert cohort.n_scans == 7


def test_tables_of_regions(write, tmp_path, tiny):
    write("sub-01/pet/sub-01_trc-18FFDG_desc-suvr_regions.tsv", "")
    write("sub-01/pet/sub-01_trc-18FFDG_desc-suvr_regions.json", "")
    write("sub-01/anat/sub-01_desc-thickness_regions.tsv", "")
    write("sub-01/anat/sub-01_desc-tau_regions.tsv", "")
    write("sub-01/anat/sub-01_tau.tsv", "")

    def regions(feature, **options):
        files = StudyFiles(tmp_path, **options)
        path = files.find_region_table_path(scan_of(files), feature, tiny)
        return path and path.name

    assert "18FFDG" in regions("fdg")
    assert regions("tau") == "sub-01_desc-tau_regions.tsv"
    assert regions("area") is None
    write("sub-01/pet/sub-01_run-2_trc-18FFDG_regions.tsv", "")
    with refused("the fdg; got .* Choose one with pattern = {fdg = '.*'} in --config"):
        regions("fdg")
    assert "run-2" in regions("fdg", pattern={"fdg": "*run-2*"})


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("sub-01_trc-18FAV45_pvc-agtm_tacs.tsv", "amyloid"),
        ("sub-01_trc-11CPIB_desc-suvr_regions.tsv", "amyloid"),
        ("sub-01_trc-18FMK6240_timeseries.tsv", "tau"),
        # as import-adni names PET, and build what it makes of it
        ("sub-01_trc-amyloid_atlas-destrieux_desc-suvr_regions.tsv", "amyloid"),
        ("sub-01_trc-tau_atlas-destrieux_desc-suvr_regions.tsv", "tau"),
        ("sub-01_trc-18ffdg_desc-suvr_regions.tsv", "fdg"),
    ],
)
def test_a_table_of_another_tracer_is_refused(write, tmp_path, tiny, name, feature):
    write(f"sub-01/pet/{name}", "")
    files = StudyFiles(tmp_path)
    for asked in ("fdg", "amyloid", "tau"):
        path = files.find_region_table_path(scan_of(files), asked, tiny)
        assert (path is not None) == (asked == feature)
    assert files.find_region_table_path(scan_of(files), "suvr", tiny) is not None


def test_freesurfer_subjects(write, tmp_path):
    for name in ("sub-01_ses-1", "sub-01_ses-1.long.sub-01", "sub-01", "sub-02/ses-1"):
        write(f"derivatives/freesurfer/{name}/stats/aseg.stats", "")
    write("derivatives/freesurfer/sub-01/base-tps", "")
    write("derivatives/freesurfer/fsaverage/surf/x", "")
    found = StudyFiles(tmp_path).subjects_by_person
    assert sorted((k, *v) for k, v in found.items()) == [("01", "1"), ("02", "1")]
    assert [name.template_name for name, _ in found["01"]["1"]] == ["", "sub-01"]
    for glob, bases in (("*.long.*", ["sub-01"]), ("!*.long.*", [""])):
        files = StudyFiles(tmp_path, pattern={"freesurfer": glob})
        assert [
            name.template_name for name, _ in files.subjects_by_person["01"]["1"]
        ] == bases


def test_subjects_dir_is_the_only_place(write, tmp_path):
    write("study/derivatives/freesurfer/sub-01/stats/aseg.stats", "")
    write("subjects/002_S_0295_2006-04-18/stats/aseg.stats", "")
    found = StudyFiles(
        tmp_path / "study", subjects_dir=tmp_path / "subjects"
    ).subjects_by_person
    assert [(k, *v) for k, v in found.items()] == [("002_S_0295", "2006-04-18")]


def test_subjects_may_be_named_by_an_id_and_more(write, tmp_path):
    for name in ("P1_T1w", "P2", "P2_T1w", "P1_2", "P3_T1w"):
        write(f"freesurfer/{name}/stats/aseg.stats", "")
    files = StudyFiles(tmp_path, ["P1", "P2"], subjects_dir=tmp_path / "freesurfer")
    assert files.study_name_by_subject == {"P1_T1w": "P1", "P2_T1w": "P2"}
    found = {
        person: len(visits[""]) for person, visits in files.subjects_by_person.items()
    }
    assert found == {"P1": 1, "P2": 2, "P1_2": 1, "P3_T1w": 1}  # two are refused


@pytest.fixture
def flat(tmp_path, matrix):
    """Five scans of four people, matrices without names; values tell the scan."""
    folder = tmp_path / "flat"
    (folder / "connectomes").mkdir(parents=True)
    scans = ["p1_ses-1", "p1_ses-2", "p2_ses-1", "p3_ses-1", "p4_ses-1"]
    rows = []
    for number, scan in enumerate(scans, start=1):
        np.savetxt(folder / f"connectomes/sub-{scan}.csv", matrix * number, "%d", ",")
        rows.append(f"sub-{scan}," + ",".join(str(number + i / 10) for i in range(7)))
    header = "scan," + ",".join(NAMES)
    (folder / "fdg.csv").write_text("\n".join([header, *rows]) + "\n")
    people = "".join(f"sub-p{i}\t{'AD' if i % 2 else 'CN'}\n" for i in range(1, 5))
    (folder / "participants.tsv").write_text(f"participant_id\tdiagnosis\n{people}")
    return folder


def test_visits_of_the_table_take_joined_names_apart(write, tmp_path):
    for name in ("P1_V1", "P1-V2", "P2V1", "P2_v3", "P3_T1w", "P1_V1_old", "P01_V1"):
        write(f"freesurfer/{name}/stats/aseg.stats", "")
    visits = [
        ScanIdentity("P1", "V1"),
        ScanIdentity("P1", "V2"),
        ScanIdentity("P2", "V1"),
        "P3",
    ]
    files = StudyFiles(tmp_path, visits, subjects_dir=tmp_path / "freesurfer")
    found = {
        person: sorted(visits) for person, visits in files.subjects_by_person.items()
    }
    assert found["P2"] == ["V1", "v3"]  # a visit that nobody listed is no other one
    assert found["P01_V1"] == [""]  # of somebody else
    assert found["P1"] == ["V1", "V2"]
    assert [len(files.subjects_by_person["P1"][visit]) for visit in ("V1", "V2")] == [
        2,
        1,
    ]
    assert found["P3"] == [""]
    assert files.study_name_by_subject == {"P3_T1w": "P3", "P1_V1_old": "P1"}


def test_a_matrix_without_a_visit_of_people_with_several_is_told(flat, tiny):
    people = "participant_id\tvisit\tdiagnosis\n" + "".join(
        f"sub-p{i}\t{visit}\t{'AD' if i % 2 else 'CN'}\n"
        for i in range(1, 5)
        for visit in ("1", "2")[: 2 if i == 1 else 1]
    )
    (flat / "participants.tsv").write_text(people)
    (flat / "connectomes" / "sub-p1_ses-1.csv").rename(flat / "connectomes/sub-p1.csv")
    (flat / "connectomes" / "sub-p1_ses-2.csv").unlink()
    (flat / "sub-p1" / "ses-2").mkdir(parents=True)
    with refused(
        "sub-p1_ses-2: the connectome is missing; expected a file with the name of the "
    ):
        load_cohort(flat, tiny, "fdg")


def check(cohort, matrix):
    assert cohort.n_scans == 5
    numbers = np.arange(1, 6)
    np.testing.assert_array_equal(cohort.connectomes, matrix * numbers[:, None, None])
    expected = np.add.outer(numbers, np.arange(7) / 10)
    np.testing.assert_allclose(cohort.features[..., 0], expected)


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("connectomes/sub-{p}_{s}.csv", None),  # found by itself
        ("sc/{p}_{s}_weights.csv", "sc/{participant}_{session}_weights.csv"),
        ("sc/{s}/net-{p}.csv", "sc/{session}/net-{participant}.csv"),
        ("sc/sub-{p}_{s}.csv", "sc/{scan}.csv"),
        ("sc/run1_sub-{p}_{s}.csv", "sc/*_{scan}.csv"),
    ],
)
def test_a_template_names_people(flat, tiny, matrix, name, template):
    for path in (flat / "connectomes").iterdir():
        person, session = path.stem.removeprefix("sub-").split("_")
        target = flat / name.format(p=person, s=session)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    check(load_cohort(flat, tiny, "fdg", pattern=template), matrix)


def test_labels_and_measure_reach_the_reader(flat, tiny, matrix):
    order = [3, 1, 0, 2, 6, 5, 4]
    for path in (flat / "connectomes").iterdir():
        values = np.loadtxt(path, delimiter=",")[np.ix_(order, order)]
        np.savez(path.with_suffix(".npz"), count=values, length=values * 2)
        path.unlink()
    labels = flat / "rows.txt"
    labels.write_text("\n".join(NAMES[i] for i in order))
    check(load_cohort(flat, tiny, "fdg", labels="rows.txt", measure="count"), matrix)
    found = load_cohort(flat, tiny, "fdg", labels=labels, measure="length")
    np.testing.assert_array_equal(found.connectomes[0], matrix * 2)


def test_a_missing_matrix_is_told(flat, tiny):
    (flat / "connectomes/sub-p4_ses-1.csv").unlink()
    with refused(r"sub-p4_ses-1: the connectome is missing; .* in the folder of .*csv"):
        load_cohort(flat, tiny, "fdg")


def test_a_file_without_visit_is_of_the_only_one(flat, tiny, matrix):
    (flat / "connectomes/sub-p4_ses-1.csv").rename(flat / "connectomes/sub-p4.csv")
    (flat / "sub-p4").mkdir()
    (flat / "sub-p4" / "ses-1").mkdir()
    check(load_cohort(flat, tiny, "fdg"), matrix)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("sc/{session}.csv", r"must contain \{scan\} once; got"),
        ("sc/{participant}_{run}.csv", "inside the folder of the study"),
        ("/data/{participant}.csv", "inside the folder of the study"),
    ],
)
def test_templates_refused(tmp_path, template, message):
    with pytest.raises(ParameterError, match=message):
        StudyFiles(tmp_path, pattern=template)


def test_time_series_beside_scans_make_a_cohort(study, tiny):
    for number, path in enumerate(sorted(study.glob("sub-*/ses-*/pet/*.tsv")), start=1):
        stem = path.name.removesuffix("_trc-18FFDG_regions.tsv")
        lines = ["\t".join(["FrameTimesStart", "FrameTimesEnd", *NAMES, "Pons"])]
        lines += [
            "\t".join(map(str, [start, start + 10, *[v * number] * 7, 2]))
            for start, v in ((0, 1), (10, 3))
        ]
        target = path.with_name(f"{stem}_seg-x_desc-preproc_timeseries.tsv")
        target.write_text("\n".join(lines) + "\n")
        path.unlink()
    options = {"frames": (0, 20), "reference": "Pons"}
    cohort = load_cohort(study, tiny, "suvr", **options)
    np.testing.assert_array_equal(cohort.features[:, 3, 0], np.arange(1, 8))
    assert "PET: values were divided by the mean of Pons (7 of 7 scans)" in cohort.notes
    with refused(r"1 fault:\n  7 files: the 2 frames .* the frames to average"):
        load_cohort(study, tiny, "suvr")


def test_a_caps_tree_of_clinica(tmp_path):
    """Connectomes, thickness of both parcellations, in CAPS below subjects/."""
    atlas = load_atlas("destrieux160")
    caps = tmp_path / "caps"
    rng = np.random.default_rng(0)
    values, people = {}, ["sub-A1", "sub-A2", "sub-A3"]
    rows = "".join(f"{p}\t{'AD' if p == 'sub-A2' else 'CN'}\n" for p in people)
    caps.mkdir()
    (caps / "participants.tsv").write_text(f"participant_id\tdiagnosis\n{rows}")
    for person in people:
        scan = f"{person}_ses-M00"
        folder = caps / "subjects" / person / "ses-M00"
        dwi = folder / "dwi" / "connectome_based_processing"
        stats = folder / "t1/freesurfer_cross_sectional/regional_measures"
        dwi.mkdir(parents=True)
        stats.mkdir(parents=True)
        name = f"{scan}_space-b0_model-CSD_atlas-%s_connectivity.tsv"
        for parcellation, n in (("destrieux", 164), ("desikan", 84)):
            counts = np.triu(rng.poisson(9, (n, n)))
            np.savetxt(dwi / (name % parcellation), counts, "%d", "\t")
        values[person] = rng.uniform(2, 3, 148).round(4)
        for parcellation in ("destrieux", "desikan"):
            for side, first in (("left", 0), ("right", 74)):
                name = f"{scan}_hemi-{side}_parcellation-{parcellation}_thickness.tsv"
                names = atlas.regions["annot_name"][first : first + 74]
                write_clinica(stats / name, names, values[person][first : first + 74])
    cohort = load_cohort(caps, atlas, "thickness")
    np.testing.assert_allclose(cohort.features[:, :148, 0], [*values.values()])
    note = (
        "connectomes: only one triangle of the matrix was filled, so it was copied to "
        "the other (3 of 3 scans)"
    )
    assert note in cohort.notes


def test_all_files_of_a_form_are_counted(tmp_path, matrix):
    """People have one to two visits; files and scans are named by dates."""
    scans = list[Scan]()
    for number in range(1, 13):
        dates = ["2018-01-05", f"2019-02-{number + 10}"][: 1 + number % 2]
        for date in [f"{dates[0][:8]}{number + 10}", *dates[1:]]:
            name = f"{number:03d}_{date}"
            np.savetxt(tmp_path / f"{name}.csv", matrix, delimiter=",")
            scans.append(Scan(name, (f"{number:03d}", date), False, ()))
    n_files_by_pattern = count_files_by_path_pattern(tmp_path, scans)
    assert n_files_by_pattern["{participant}_{session}.csv"] == len(scans) == 18
