"""Names of scans: participant, visit and kind of run."""

import pytest

from brainlsap.data.scan_names import (
    ScanName,
    is_folder_name,
    parse_scan_name,
    person_key,
    visit_key,
    visit_order,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sub-01", ("sub-01", "", "")),
        ("sub-01_ses-M00", ("sub-01", "ses-M00", "")),
        ("sub-01_ses-M00_run-2_T1w", ("sub-01", "ses-M00", "")),
        ("sub-01_run-2.nii.gz", ("sub-01", "", "")),
        ("sub-01_T1w", ("sub-01", "", "")),
        ("sub-01-2", ("sub-01-2", "", "")),
        ("sub-01_2", ("sub-01_2", "", "")),
        ("sub-01_ses-M00-2", ("sub-01_ses-M00-2", "", "")),
        ("sub-002_S_0295", ("sub-002_S_0295", "", "")),
        ("sub-002_S_0295_bl", ("sub-002_S_0295", "bl", "")),
        ("/data/fs/sub-01_ses-M00/", ("sub-01", "ses-M00", "")),
        ("sub-01_ses-M00.long.sub-01", ("sub-01", "ses-M00", "sub-01")),
        ("C:\\fs\\sub-01", ("sub-01", "", "")),
        ("002_S_0295", ("002_S_0295", "", "")),
        ("002_S_0295_2006-04-18", ("002_S_0295", "2006-04-18", "")),
        ("002_S_0295_bl", ("002_S_0295", "bl", "")),
        (
            "002_S_0295_2006-04-18.long.002_S_0295",
            ("002_S_0295", "2006-04-18", "002_S_0295"),
        ),
        (" NewYork_a_sub44515 ", ("NewYork_a_sub44515", "", "")),
        ("1042", ("1042", "", "")),
    ],
)
def test_parse(text, expected):
    assert parse_scan_name(text) == ScanName(*expected)


def test_keys_equate_spellings():
    assert parse_scan_name("sub-01_ses-M00").key == ("01", "M00")
    assert person_key("01") == person_key("sub-01")
    assert person_key("sub-ADNI002S0295") == person_key("002_S_0295")
    assert person_key("sub-002S0295") == "002_S_0295"
    assert visit_key("M00") == visit_key("ses-M00")
    assert person_key("sub-1") != person_key("sub-01")


def test_visits_in_time():
    given = ["ses-M12", "M6", "ses-M00", "bl", "sc", "ses-M100"]
    expected = ["sc", "bl", "ses-M00", "M6", "ses-M12", "ses-M100"]
    assert sorted(given, key=visit_order) == expected
    dates = ["2010-01-02", "2009-12-31", "2010-01-01"]
    assert sorted(dates, key=visit_order) == sorted(dates)
    assert sorted(["2", "a", "", "b1"], key=visit_order) == ["", "a", "b1", "2"]


@pytest.mark.parametrize(
    "name",
    ["../x", "a/b", "/x", ".", "..", ".hidden", "a\\b", "a b", "a\n", "", "~", "*"],
)
def test_names_that_leave_their_folder(name):
    assert not is_folder_name(name)


def test_names_of_folders():
    assert is_folder_name("sub-01")
    assert is_folder_name("002_S_0295.v2")
