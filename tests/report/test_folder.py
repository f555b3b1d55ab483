import stat

import pandas as pd
import pytest

from brainlsap.exceptions import ParameterError
from brainlsap.report.folder import (
    MANIFEST,
    check_results_folder,
    name_filter,
    predictions_table,
    replace_folder,
    scan_codes,
    write_private,
)


def write_one(folder, text):
    with replace_folder(folder) as fresh:
        (fresh / "deep").mkdir()
        (fresh / "deep" / "a.txt").write_text(text)


def test_folder_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    folder = tmp_path / "new" / "results"
    write_one(folder, "first")
    write_one(folder, "second")
    assert (folder / "deep" / "a.txt").read_text() == "second"
    assert [one.name for one in folder.parent.iterdir()] == ["results"]
    assert folder.stat().st_mode & stat.S_IRUSR


def test_an_empty_folder_is_filled(tmp_path):
    write_one(tmp_path, "x")
    assert (tmp_path / MANIFEST).is_file()


def test_failure_leaves_the_former_report(tmp_path):
    folder = tmp_path / "results"
    write_one(folder, "first")
    with pytest.raises(TypeError):
        write_one(folder, 7)  # write_text refuses a number half-way
    assert (folder / "deep" / "a.txt").read_text() == "first"
    assert [one.name for one in tmp_path.iterdir()] == ["results"]


def test_foreign_files_are_never_lost(tmp_path):
    folder = tmp_path / "results"
    write_one(folder, "first")
    (folder / "my_notes.txt").write_text("do not lose")
    with pytest.raises(ParameterError, match=r"no report wrote \(my_notes.txt\)"):
        write_one(folder, "second")
    assert (folder / "my_notes.txt").read_text() == "do not lose"
    (folder / "my_notes.txt").unlink()
    (folder / MANIFEST).write_text("[broken")
    with pytest.raises(ParameterError, match="they would be lost"):
        check_results_folder(folder)


def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(
    tmp_path, monkeypatch
):
    (tmp_path / "note").write_text("")
    with pytest.raises(ParameterError, match=r"note is a file\. Name another"):
        check_results_folder(tmp_path / "note" / "results")
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ParameterError, match=r"may not be written to\. Name another"):
        check_results_folder(tmp_path / "new" / "results")


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(ParameterError, match="is a file; the results need a folder"):
        check_results_folder(tmp_path / "out")


def test_what_is_mounted_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.is_mount", lambda path: path == tmp_path)
    with pytest.raises(ParameterError, match=r"a disk is mounted .* such as .*results"):
        check_results_folder(tmp_path)


def test_codes_are_unique_and_do_not_follow_the_names(evaluation):
    codes = scan_codes(evaluation)
    scans = list(evaluation.cohort.table["scan"])
    in_order = [codes[scan] for scan in scans]
    assert sorted(in_order) == [f"S{k:04d}" for k in range(1, len(scans) + 1)]
    assert in_order != sorted(in_order)
    assert codes == scan_codes(evaluation)


def test_coded_predictions_name_nobody(evaluation):
    codes = scan_codes(evaluation)
    named, coded = predictions_table(evaluation), predictions_table(evaluation, codes)
    assert "anna" in named.to_csv()
    assert "anna" not in coded.to_csv()
    assert list(coded["model"].unique()) == list(evaluation.results)
    key = ["model", "fold", "scan"]
    again = named.assign(scan=named["scan"].map(codes)).drop(columns="participant")
    pd.testing.assert_frame_equal(
        coded.sort_values(key, ignore_index=True),
        again.sort_values(key, ignore_index=True),
    )


def test_private_files_are_for_their_owner_alone(evaluation, tmp_path):
    folder = write_private(evaluation, tmp_path / "private", scan_codes(evaluation))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()}
    assert modes == dict.fromkeys(
        (
            "codes.tsv",
            "predictions.tsv",
            "provenance.json",
            "scans_too_alike.tsv",
            "splits.tsv",
        ),
        0o600,
    )


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("anna003_v0: mirrored", "[name withheld]: mirrored"),
        ("SUB-ANNA003/ses-0", "SUB-[name withheld]/ses-0"),
        ("anna0031 is nobody, banana003 neither", None),
        ("160 regions of 54 scans", None),
    ],
)
def test_names_are_taken_out_of_text(evaluation, text, clean):
    assert name_filter(evaluation)(text) == (clean or text)


def test_short_names_are_taken_out_only_where_they_name(make_evaluation):
    evaluation = make_evaluation()
    table = evaluation.cohort.table
    table["participant"] = table["participant"].str[-2:]
    withhold = name_filter(evaluation)
    assert withhold("sub-03: 12 rows of 160 mirrored") == (
        "[name withheld]: 12 rows of 160 mirrored"
    )
