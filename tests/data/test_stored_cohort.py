"""A cohort's file with the options of a folder: applied, or refused by name."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainlsap import check_cohort, load_cohort, make_cohort
from brainlsap.data import read_study
from brainlsap.data.flow import flow_table
from brainlsap.exceptions import BrainlsapError, CohortError, ParameterError
from brainlsap.findings import EXCLUDED, FAULTY, FIRST_VISIT_VALUE
from brainlsap.simulation import write_study_folder

READING = {"atlas": "desikan82", "feature": ["fdg", "volume"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A simulated study with two features; only to be read."""
    cohort = make_cohort(16, atlas="desikan82", feature=["fdg", "volume"])
    path = tmp_path_factory.mktemp("simulated") / "study"
    return write_study_folder(cohort, path)


@pytest.fixture(scope="module")
def stored(folder):
    """The file of that study; only to be read."""
    return load_cohort(folder, **READING).save(folder.parent / "cohort.h5")


def flow_of(cohort):
    """Return people and scans by fate; they add up."""
    flow = flow_table(cohort.table, cohort.left_out).set_index("fate")
    counts = flow[["participants", "scans"]]
    assert (counts.drop(index="listed").sum() == counts.loc["listed"]).all()
    return counts


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"feature": "volume"},
        {"feature": ["volume", "fdg"]},
        {"classes": ["AD", "CN"]},
        {"label": "sex"},
        {"label": "site", "classes": ["site-2", "site-1"]},
        {"label": "Diagnosis"},
        {"scans": "baseline"},
        {"scans": "baseline", "label": "sex", "feature": "fdg"},
        {"connectome": "none", "classes": ["CN", "AD"]},
        {"exclude": "sub-0001,0002"},
        {"exclude": ["sub-0001_ses-M00"], "scans": "baseline"},
        {"exclude": ["0003"], "scans": "baseline", "classes": ["CN", "AD"]},
        {"exclude": ["0004"], "label": "sex", "skip_faulty": True},
    ],
)
def test_a_file_gives_what_the_folder_gives_with_the_same_options(
    folder, stored, options
):
    from_folder = load_cohort(folder, **READING | options)
    from_file = read_study(stored, **options)
    np.testing.assert_array_equal(from_file.features, from_folder.features)
    np.testing.assert_array_equal(from_file.connectomes, from_folder.connectomes)
    assert from_file.shares_connectome == from_folder.shares_connectome
    assert from_file.feature_names == from_folder.feature_names
    assert from_file.classes == from_folder.classes
    assert from_file.classes_ordered == from_folder.classes_ordered
    assert from_file.label_name == from_folder.label_name
    columns = from_folder.table.columns
    assert {*from_file.table} == {*columns}
    assert from_file.table[columns].equals(from_folder.table)
    options_of_file = from_file.reading_options.to_jsonable()
    options_of_folder = from_folder.reading_options.to_jsonable()
    for name in options:
        assert options_of_file[name] == options_of_folder[name], name
    pd.testing.assert_frame_equal(flow_of(from_file), flow_of(from_folder))
    fates = [
        cohort.left_out.set_index("scan")["fate"].sort_index()
        for cohort in (from_file, from_folder)
    ]
    pd.testing.assert_series_equal(*fates)


def test_exclusions_add_up_over_two_readings(folder, stored, tmp_path):
    first = read_study(stored, exclude="sub-0001", scans="baseline")
    path = first.save(tmp_path / "first.h5")
    # A later visit and an excluded person are named again: each has one fate.
    second = read_study(path, exclude="0002,0001,0003_M12", skip_faulty=True)
    from_folder = load_cohort(
        folder, **READING, scans="baseline", exclude="0001,0002,0003_M12"
    )
    pd.testing.assert_frame_equal(flow_of(second), flow_of(from_folder))
    (note,) = (x for x in second.findings if x.kind == EXCLUDED)
    is_excluded = second.left_out["fate"] == EXCLUDED
    assert {*note.people} == {*second.left_out["scan"][is_excluded]}
    # The options that are stored read the same people from the folder.
    exclude = second.reading_options.exclude
    again = load_cohort(folder, **READING, scans="baseline", exclude=exclude)
    pd.testing.assert_frame_equal(again.table, second.table)
    with pytest.raises(ParameterError):
        read_study(path, exclude="sub-0099")
    with pytest.raises(CohortError):
        read_study(path, exclude=[*first.table["scan"]])


def test_a_class_without_people_is_dropped_or_refused(stored, tmp_path):
    cohort = read_study(stored)
    others = cohort.classes[1:]
    people = {*cohort.groups[cohort.table["label"] == cohort.classes[0]]}
    remaining = read_study(stored, exclude=sorted(people))
    assert remaining.classes == tuple(
        name for name in others if name in {*remaining.table["label"]}
    )
    path = read_study(stored, classes=list(cohort.classes)).save(tmp_path / "c.h5")
    with pytest.raises(CohortError):
        read_study(path, exclude=sorted(people))


def test_scans_without_the_label_of_a_file_are_skipped_on_request(stored, tmp_path):
    cohort = read_study(stored)
    codes = np.where(np.arange(cohort.n_scans) % 2, "yes", "no").astype(object)
    codes[[0, 3]] = None
    table = cohort.table.assign(converter=codes)
    path = replace(cohort, table=table).save(tmp_path / "codes.h5")
    with pytest.raises(CohortError):
        read_study(path, label="converter")
    skipped = read_study(path, label="converter", skip_faulty=True)
    assert skipped.left_out["scan"].tolist() == [*cohort.table["scan"].iloc[[0, 3]]]
    assert {*skipped.left_out["fate"]} == {"no label"}
    assert skipped.left_out["reason"].str.len().min() > 0
    assert skipped.reading_options.skip_faulty
    (note,) = (x for x in skipped.findings if x.kind == FAULTY)
    assert {*note.people} == {*skipped.left_out["scan"]}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"feature": "thickness"},
            "contains the features fdg, volume, but not thickness",
        ),
        (
            {"label": "stage"},
            "the table has no column 'stage' for the label",
        ),
        ({"label": "scan"}, "no column 'scan' for the label"),
        ({"label": "age"}, "age is continuous"),
        ({"classes": ["CN", "ad"]}, "no scan has the diagnosis 'ad'"),
        ({"classes": ["control", "patient"]}, "no scan has the diagnosis 'control'"),
        ({"atlas": "destrieux160"}, "160 regions of destrieux160 .atlas=."),
        ({"atlas": "no-atlas"}, "no-atlas"),
        ({"scans": "first"}, "scans must be one of"),
        ({"connectome": "group.csv"}, "connectome= can only be 'none'"),
        ({"subcortex": "mean"}, "subcortex= .'mean'; the file has 'absent'"),
        ({"subjects_dir": "fs"}, "subjects_dir= .'fs'; the file has no value"),
        ({"features_table": "table.csv"}, "features_table="),
        ({"derivatives": ["other"]}, "derivatives="),
        ({"pattern": "*.csv"}, "pattern="),
        ({"labels": "names.txt"}, "labels="),
        ({"row_order": "mrtrix"}, "row_order="),
        ({"measure": "count", "frames": (0, 9)}, "measure= .* frames="),
        ({"symmetrize": "mean"}, "symmetrize= .'mean'; the file has 'refuse'"),
    ],
)
def test_what_a_file_cannot_give_is_refused_by_name(stored, options, words):
    with pytest.raises(BrainlsapError, match=words):
        read_study(stored, **options)
    if "label" in options:
        assert not check_cohort(stored, **options).is_sound


def test_negative_weights_that_were_dropped_do_not_come_back(folder, stored, tmp_path):
    # none was negative: nothing is to be dropped
    for negative in ("refuse", "drop", "absolute"):
        assert read_study(stored, negative=negative).n_scans
    dropped = load_cohort(folder, **READING, negative="drop").save(tmp_path / "c.h5")
    assert read_study(dropped, negative="drop").n_scans
    for negative in ("refuse", "absolute"):
        with pytest.raises(BrainlsapError, match=r"negative= .*; the file has 'drop'"):
            read_study(dropped, negative=negative)


def test_the_baseline_of_a_file_is_the_visit_of_that_name(stored, tmp_path):
    cohort = read_study(stored)
    person = cohort.groups == "sub-0001"
    assert person.sum() > 1
    later = cohort.select(~(person & (cohort.table["session"] == "ses-M00")))
    chosen = read_study(later.save(tmp_path / "later.h5"), scans="baseline")
    assert "sub-0001" not in chosen.groups
    assert {*chosen.table["session"]} == {"ses-M00"}
    assert any("1 person without a baseline visit" in x for x in chosen.notes)
    with pytest.raises(BrainlsapError, match="scans='all' cannot be applied"):
        read_study(chosen.save(tmp_path / "chosen.h5"), scans="all")
    sessions = [f"visit{'ab'[i % 2]}" for i in range(cohort.n_scans)]
    named = replace(cohort, table=cohort.table.assign(session=sessions))
    with pytest.raises(BrainlsapError, match="the first visit of a person is unknown"):
        read_study(named.save(tmp_path / "named.h5"), scans="baseline")


def test_notes_on_first_visits_are_those_of_the_scans_of_a_file(stored, tmp_path):
    cohort = read_study(stored)
    table = cohort.table
    is_converter = (table["participant"] == "sub-0001") & (
        table["session"] != "ses-M00"
    )
    diagnosis = table["label"].mask(is_converter, cohort.classes[0])
    assert (diagnosis != table["label"]).any()
    changed = replace(cohort, table=table.assign(dx=diagnosis))
    file = changed.save(tmp_path / "changed.h5")
    (note,) = [x for x in read_study(file).findings if x.kind == FIRST_VISIT_VALUE]
    assert note.values == {"column": "dx", "n_people": 1}
    for options in ({"scans": "baseline"}, {"label": "dx"}):
        kinds = [x.kind for x in read_study(file, **options).findings]
        assert FIRST_VISIT_VALUE not in kinds


def test_whole_numbers_are_labels_without_a_point(stored, tmp_path):
    cohort = read_study(stored)
    codes = np.where(np.arange(cohort.n_scans) % 2, 1.0, 2.0)
    table = cohort.table.assign(converter=codes)
    path = replace(cohort, table=table).save(tmp_path / "codes.h5")
    assert read_study(path, label="converter").classes == ("1", "2")
    table.loc[0, "converter"] = np.nan
    path = replace(cohort, table=table).save(tmp_path / "codes.h5")
    with pytest.raises(BrainlsapError, match=r"converter is missing \(n/a"):
        read_study(path, label="converter")
    known = read_study(path, label="converter", classes=["2", "1"])
    assert known.n_scans == cohort.n_scans - 1
    assert known.classes == ("2", "1")
