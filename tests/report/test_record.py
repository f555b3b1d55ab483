import json

from brainlsap.report.folder import name_filter
from brainlsap.report.record import (
    approximation_errors,
    fit_table,
    fit_warnings,
    installed_versions,
    run_record,
    timing_table,
)


def test_record_is_json_and_names_nobody(evaluation):
    record = run_record(evaluation, name_filter(evaluation))
    text = json.dumps(record, allow_nan=False)
    assert "anna" not in text
    assert record["cohort"]["data_sha256"] == "ab" * 32
    assert record["cohort"]["classes"][1] == {
        "class": "R&D_50%",
        "participants": 12,
        "scans": 18,
    }
    assert record["cohort"]["regions_measured"] == 6
    scores = record["models"]["LSAP_x"]["scores"]["accuracy"]
    assert len(scores["folds"]) == 3
    assert record["models"]["linear"]["folds"][2]["settings"] == {"degree": 20}


def test_versions_are_told_without_importing():
    versions = installed_versions()
    assert versions["numpy"].startswith("2.")
    assert {"python", "system", "brainlsap", "torch"} <= set(versions)


def test_fit_is_told_by_fold(evaluation):
    table = fit_table(evaluation.main)
    assert list(table.columns) == ["fold", "approximation error"]
    assert table.loc[2].tolist() == [3, "9e-09"]


def test_seconds_stand_in_a_table_of_their_own(evaluation):
    table = timing_table(evaluation)
    assert len(table) == 9
    assert table.loc[0, ["model", "fold", "seconds_fit"]].tolist() == [
        "LSAP_x",
        1,
        0.123456,
    ]
    assert table["seconds_predict"].isna().all()
    assert "0.1234" not in json.dumps(run_record(evaluation))
    assert "seconds" not in json.dumps(run_record(evaluation))


def test_largest_error_and_every_warning_once(evaluation):
    assert approximation_errors(evaluation.main) == {"approximation_error": 9e-9}
    assert fit_warnings(evaluation, name_filter(evaluation)) == {
        "LSAP_x": ["scan [name withheld] looks odd"]
    }
