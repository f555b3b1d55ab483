"""A cohort's file with the options of a folder: applied, or refused by name."""

from dataclasses import replace

import numpy as np
import pytest

from brainlsap import check_cohort, load_cohort, make_cohort
from brainlsap.data import read_study
from brainlsap.exceptions import BrainlsapError
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"feature": "thickness"}, "holds the features fdg, volume, and not thickness"),
        (
            {"label": "stage"},
            "the label 'stage' is not a column of its table",
        ),
        ({"label": "scan"}, "the label 'scan' is not a column"),
        ({"label": "age"}, "age is continuous"),
        ({"classes": ["CN", "ad"]}, "no scan has the diagnosis 'ad'"),
        ({"classes": ["control", "patient"]}, "no scan has the diagnosis 'control'"),
        ({"atlas": "destrieux160"}, "atlas= names destrieux160 .160 regions."),
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
    assert any("1 people without a visit of that name" in x for x in chosen.notes)
    with pytest.raises(BrainlsapError, match="scans='all' cannot be applied"):
        read_study(chosen.save(tmp_path / "chosen.h5"), scans="all")
    sessions = [f"visit{'ab'[i % 2]}" for i in range(cohort.n_scans)]
    named = replace(cohort, table=cohort.table.assign(session=sessions))
    with pytest.raises(BrainlsapError, match="which visit is the first is not known"):
        read_study(named.save(tmp_path / "named.h5"), scans="baseline")


def test_whole_numbers_are_labels_without_a_point(stored, tmp_path):
    cohort = read_study(stored)
    codes = np.where(np.arange(cohort.n_scans) % 2, 1.0, 2.0)
    table = cohort.table.assign(converter=codes)
    path = replace(cohort, table=table).save(tmp_path / "codes.h5")
    assert read_study(path, label="converter").classes == ("1", "2")
    table.loc[0, "converter"] = np.nan
    path = replace(cohort, table=table).save(tmp_path / "codes.h5")
    with pytest.raises(BrainlsapError, match=r"no converter \(n/a"):
        read_study(path, label="converter")
    known = read_study(path, label="converter", classes=["2", "1"])
    assert known.n_scans == cohort.n_scans - 1
    assert known.classes == ("2", "1")
