"""The command line, as a user types it, on simulated studies."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import brainlsap
from brainlsap import cli
from brainlsap.cli import _make_option_format, build_parser, main
from brainlsap.evaluation import models
from brainlsap.exceptions import ParameterError, check_at_least
from brainlsap.findings import FAULT, Finding
from brainlsap.model import load_model
from brainlsap.report.report import NO_SUBGROUPS, change_subgroups
from brainlsap.simulation import write_study_folder
from brainlsap.text import option_text, use_option_format
from tests.conftest import draw_scores_alone, raises_kind

pytestmark = pytest.mark.usefixtures("brief_studies")
READING = ("--atlas", "desikan82", "--feature", "fdg")
PATTERN = "sc/{participant}.txt"
BRIEF = ("--folds", "2", "--epochs", "3", "--permutations", "9", "--jobs", "1")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Folders of 20 simulated people; only to be read."""
    cohort = brainlsap.make_cohort(20, atlas="desikan82", visit_shares=(0.75, 0.25))
    return write_study_folder(cohort, tmp_path_factory.mktemp("simulated") / "study")


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Settings that make a fit brief; only to be read."""
    path = tmp_path_factory.mktemp("config") / "study.toml"
    text = 'n_starts = 1\n[model]\nstart = "constant"\n[data]\nlabel="group"\n'
    path.write_text(text + '[study]\nleave_out="site"\nbaselines=false\n')
    return path


@pytest.fixture(scope="module")
def results(study, config, tmp_path_factory):
    """Results of two kernels; only to be read."""
    out = tmp_path_factory.mktemp("finished") / "results"
    models = ("--models", "LSAP-C,Exact", "--config", str(config))
    named = ("--label", "diagnosis")
    asked = ["run", str(study), *READING, *BRIEF, *models, *named, "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch:
        draw_scores_alone(patch)
        assert main(asked) == 0
    return out


@pytest.fixture
def own_study(study, tmp_path):
    """Hold a copy that a test may spoil."""
    return Path(shutil.copytree(study, tmp_path / "study"))


def refused(capsys, *arguments):
    """Return the one message of a command that is refused with exit code 2."""
    assert main([str(one) for one in arguments]) == 2
    printed = capsys.readouterr().err
    assert "Traceback" not in printed
    assert printed.startswith("brainlsap: error: ")  # no bars where no terminal is
    return printed


def test_run_writes_a_report_that_names_nobody(results):
    assert (results / "report" / "report.html").is_file()
    for path in (results / "report").rglob("*"):
        if path.is_file() and path.suffix in (".html", ".tsv", ".txt", ".json", ".tex"):
            assert "sub-00" not in path.read_text(encoding="utf-8"), path
    assert (results / "private").stat().st_mode & 0o077 == 0
    # options come before the config file, --folds also before its leave_out
    assert "Exact" in (results / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("scores_figure_alone")
def test_a_report_is_made_anew_from_its_results(results, tmp_path, capsys):
    out = tmp_path / "again"
    asked = ["report", str(results), "--out", str(out), "--title", "Another <title>"]
    assert main(asked) == 0
    page = (out / "report" / "report.html").read_text(encoding="utf-8")
    assert "Another &lt;title&gt;" in page
    assert main(["report", str(results), "--export", str(tmp_path / "maps")]) == 0
    assert list((tmp_path / "maps").rglob("*.gii"))
    printed = capsys.readouterr().out
    assert "Note: the surfaces (.gii) leave out 14 of 82 regions" in printed
    assert "Left-Amygdala" in printed
    assert "--parcellation" in printed


@pytest.mark.usefixtures("scores_figure_alone")
def test_other_subgroups_are_scored_from_stored_results(results, tmp_path, capsys):
    out = tmp_path / "again"
    asked = ["report", str(results), "--subgroups", "sex", "--out", str(out)]
    assert main(asked) == 0
    again = brainlsap.report.read_results(out)
    assert again.settings["subgroups"] == ["sex"]
    stored = brainlsap.report.read_results(results)
    assert "site" in stored.settings["subgroups"]
    table = pd.read_csv(out / "report" / "tables" / "subgroups.tsv", sep="\t")
    assert table["group"].str.startswith("sex").all()
    assert main(asked) == 0  # It may replace a report of the same study.
    for column in ("income", "code"):
        with raises_kind(NO_SUBGROUPS, error=ParameterError):
            change_subgroups(stored, [column])
    assert "brainlsap run" in refused(
        capsys, "report", results, "--subgroups", "income"
    )


def test_check_says_what_a_study_holds(study, capsys):
    for more, counted, folds in (
        (
            ["--merge-classes", "5-to-2"],
            "number of scans by diagnosis: unimpaired (",
            "",
        ),
        (["--leave-out", "site"], "number of scans by diagnosis: CN (", ""),
        ([], "number of scans by diagnosis: CN (", " --folds 2"),
    ):
        assert main(["check", str(study), *READING, *more]) == 0
        printed = capsys.readouterr().out
        assert "20 people" in printed
        assert f"\n  {counted}" in printed
        assert "Unusual scans:" in printed
        assert ("of site in both the training and the test" in printed) == (
            "site" not in more
        )
        _, _, command = printed.partition("\nNext: brainlsap run ")
        asked = " ".join([str(study), *READING, *more])
        assert command.startswith(f"{asked}{folds} --out results\n")
        assert bool(re.search(r"5 folds.* AD .*2 participants", command)) == bool(folds)


def test_check_merges_classes_while_other_faults_remain(own_study, capsys):
    for sessions_path in own_study.rglob("*_sessions.tsv"):
        sessions_path.unlink()
    path = own_study / "participants.tsv"
    table = pd.read_csv(path, sep="\t", dtype=str)
    table["diagnosis"] = [*["gut", "mild", "schwer", "fremd"] * 5]
    table.loc[0, "diagnosis"] = None
    table.to_csv(path, sep="\t", index=False)
    cases = {
        "a=gut,b=mild+schwer": ("a (", "b ("),
        "a=gut,b=XX": ("fremd (", "'XX'"),
        "a=gut": ("fremd (", "at least two classes"),
    }
    for merging, words in cases.items():
        asked = ["check", str(own_study), *READING, "--merge-classes", merging]
        assert main(asked) == 2
        printed = capsys.readouterr().out
        _, _, counts = printed.partition("number of scans by diagnosis: ")
        assert counts.startswith(words[0])
        assert words[1] in printed
        faults = printed.partition("Faults:")[2]
        assert "diagnosis is missing" in faults
        is_merged = words[0] == "a ("
        assert ("--merge-classes" in faults) != is_merged
        assert ("order of stages is unknown" in printed) != is_merged
        assert bool(re.search(r"left out: fremd \(\d+\)", printed)) == is_merged


def test_check_speaks_of_flags_and_shows_exchanged_hemispheres(own_study, capsys):
    path = next(own_study.rglob("*_connectivity.csv"))
    W = np.loadtxt(path, delimiter=",")
    np.savetxt(path, W[:-1, :-1], delimiter=",")
    assert main(["check", str(own_study), *READING]) == 2
    printed = capsys.readouterr().out
    assert "--exclude" in printed
    assert "exclude=" not in printed
    W = np.maximum(W, W.T)
    # fs_default.txt: cortex, cerebellum, structures of the left; then of the right
    order = np.r_[49:83, 83, 42:49, 35:42, 0:34, 34]
    np.savetxt(path, W[np.ix_(order, order)], delimiter=",")
    mrtrix = [*READING, "--row-order", "mrtrix"]
    scan = "_".join(path.name.split("_")[:2])
    first_line = (
        "In 1 scan, left and right of the connectome may have been swapped: "
        f"{scan}. Correct the scan, or leave it out with --exclude."
    )
    assert main(["check", str(own_study), *mrtrix]) == 0
    printed = capsys.readouterr().out
    assert f"\nUnusual scans:\n  {first_line}\n  {scan}: " in printed
    # People without labels can be predicted, so their scans are checked, too.
    for sessions_path in own_study.rglob("*_sessions.tsv"):
        sessions_path.unlink()
    table = pd.read_csv(own_study / "participants.tsv", sep="\t", dtype=str)
    other_ids = table["participant_id"][~table["participant_id"].isin(scan.split("_"))]
    is_other = table["participant_id"] == other_ids.iloc[0]
    for labels in (table["diagnosis"].mask(is_other), None):
        unlabelled = table.drop(columns="diagnosis")
        if labels is not None:
            unlabelled["diagnosis"] = labels
        unlabelled.to_csv(own_study / "participants.tsv", sep="\t", index=False)
        assert main(["check", str(own_study), *mrtrix]) == 2
        printed = capsys.readouterr().out
        assert "Faults:" in printed
        assert f"\nUnusual scans:\n  {first_line}\n" in printed
    # They are also checked if they are left out, but nobody who is excluded.
    is_unusual = table["participant_id"].isin(scan.split("_"))
    table["diagnosis"] = table["diagnosis"].mask(is_unusual)
    table.to_csv(own_study / "participants.tsv", sep="\t", index=False)
    skipping = [*mrtrix, "--skip-faulty"]
    labelled_lists = []
    for more in ([], ["--exclude", scan]):
        assert main(["check", str(own_study), *skipping, *more]) == 0
        printed = capsys.readouterr().out
        assert scan in printed.partition("Dropped:")[2].partition("No faults")[0]
        labelled_list = printed.partition("\nUnusual scans:\n")[2].partition("\n\n")[0]
        labelled_lists.append(labelled_list)
        other_list = printed.partition("\nUnusual scans without a label")[2]
        assert (first_line in other_list) != bool(more)
    # As in a report, labelled scans are compared with labelled scans.
    assert labelled_lists[0] == labelled_lists[1]
    assert scan not in labelled_lists[0]
    # Other faults are those to correct first.
    path.write_text("1 2 3")
    unlabelled.to_csv(own_study / "participants.tsv", sep="\t", index=False)
    assert main(["check", str(own_study), *mrtrix]) == 2
    assert "Unusual scans:" not in capsys.readouterr().out


def test_columns_of_ids_and_visits_are_flags_and_settings(own_study, tmp_path, capsys):
    people = pd.read_csv(own_study / "participants.tsv", sep="\t")
    people = people.rename(columns={"participant_id": "kennung"})
    people.insert(0, "id", range(1, len(people) + 1))
    people.to_csv(own_study / "participants.tsv", sep="\t", index=False)
    assert main(["check", str(own_study), *READING]) == 2
    printed = capsys.readouterr().out
    assert "'id' and 'kennung' could all contain participant IDs" in printed
    assert "--id" in printed
    config = tmp_path / "study.toml"
    config.write_text('[data]\nid = "kennung"\n')
    for flags in (("--id", "pin,kennung"), ("--config", str(config))):
        assert main(["check", str(own_study), *READING, *flags]) == 0
        assert "20 people" in capsys.readouterr().out
    refused(capsys, "fit", own_study, *READING, "--session", "nth", "--out", "model")


def test_check_ends_with_2_where_somebody_is_there_twice(own_study, capsys):
    table = pd.read_csv(own_study / "participants.tsv", sep="\t", dtype=str)
    first = table["participant_id"][0]
    shutil.copytree(own_study / first, own_study / "sub-again")
    for path in sorted((own_study / "sub-again").rglob(f"*{first}*"), reverse=True):
        path.rename(path.with_name(path.name.replace(first, "sub-again")))
    again = table.iloc[:1].assign(participant_id="sub-again")
    pd.concat([table, again]).to_csv(
        own_study / "participants.tsv", sep="\t", index=False
    )
    # printed before the refusal
    assert main(["check", str(own_study), *READING]) == 2
    printed = capsys.readouterr()
    assert "leakage: duplicate scans" in printed.err
    words = " ".join(printed.out.split())
    assert f"{first}_ses-M00, sub-again_ses-M00" in words
    assert "error: two participants have identical" in words
    assert "warning: two participants" not in words
    for scan in (f"{first}_ses-M00", "sub-again_ses-M00"):
        assert f"--exclude {scan}" in words
    options = [*READING, "--exclude", "sub-again_ses-M00"]
    assert main(["check", str(own_study), *options]) == 0


def test_a_fit_warns_of_copies_and_unusual_scans(small_cohort, capsys):
    """It warns of what `check` refuses or lists."""
    cli._print_data_warnings("study", small_cohort, {})
    assert capsys.readouterr().out == ""
    features = np.array(small_cohort.features)
    other = int(np.flatnonzero(small_cohort.groups != small_cohort.groups[0])[0])
    features[other] = features[0]
    connectomes = np.array(small_cohort.connectomes)
    connectomes[2] *= 1e-6
    faulty = replace(small_cohort, features=features, connectomes=connectomes)
    cli._print_data_warnings("study", faulty, {"models": "LSAP-R", "feature": "fdg"})
    printed = " ".join(capsys.readouterr().out.split())
    scans = small_cohort.table["scan"]
    assert f"{scans[0]}, {scans[other]}" in printed
    assert f"{scans[2]}: connectome" in printed
    assert "brainlsap check study --feature fdg " in printed


def test_check_names_the_only_participant_of_a_class(own_study, capsys):
    people = own_study / "participants.tsv"
    table = pd.read_csv(people, sep="\t", dtype=str)
    table.loc[3, "diagnosis"] = "FTD"
    for path in own_study.rglob("*_sessions.tsv"):
        path.unlink()
    table.to_csv(people, sep="\t", index=False)
    assert main(["check", str(own_study), *READING]) == 2
    printed = capsys.readouterr().err
    assert f"FTD ({table['participant_id'][3]})" in printed
    assert "folds" not in printed


@pytest.mark.parametrize("classes", ["control,patient", "control"])
def test_classes_that_nobody_has_are_refused_with_those_there_are(
    study, capsys, classes
):
    assert main(["check", str(study), *READING, "--classes", classes]) == 2
    printed = capsys.readouterr()
    assert "no scan has the diagnosis 'control'; the scans have AD (" in printed.out
    assert "cannot be read" in printed.err


def test_a_simulated_disease_starts_where_it_is_asked_to(tmp_path):
    asked = ("--people", "5", "--atlas", "desikan82", "--seed-regions", "lh_cuneus")
    assert main(["simulate", str(tmp_path / "study"), *asked]) == 0
    truth = pd.read_csv(tmp_path / "study" / "truth.tsv", sep="\t")
    assert truth["region"][truth["seed"]].tolist() == ["ctx-lh-cuneus"]


def test_fit_and_predict(study, tmp_path, capsys):
    model, table = tmp_path / "model.safetensors", tmp_path / "predictions.tsv"
    brief = ("--epochs", "3", "--regress-out", "age,sex", "--merge-classes", "5-to-2")
    classes = ("--classes", "CN,SMC,EMCI,AD")
    fitted = ["fit", str(study), *READING, *brief, *classes, "--out", str(model)]
    assert main(fitted) == 0
    printed = capsys.readouterr().out
    assert (
        "\nNote: scans are left out because their diagnosis is not one of the "
        "classes: LMCI (" in printed
    )
    assert re.search(r"\nNote: LSAP-C .*prediction sets.*LSAP-R", printed)
    assert "--models LSAP-R" in printed
    card = load_model(model).origin_.facts["card"]
    assert (card["model"], card["settings"]["kernel"]) == ("LSAP-C", "chebyshev")
    assert "\nnumber of scans by diagnosis: unimpaired (" in printed
    nowhere = refused(capsys, "predict", tmp_path, study, "--out", table)
    assert "Write the model file first" in nowhere
    explain = ("--out", table, "--explain", "sub-0001")
    assert "is not linear" in refused(capsys, "predict", model, study, *explain)
    assert not table.exists()
    with (
        pytest.warns(UserWarning, match="unlike the training"),  # LMCI
        pytest.warns(UserWarning, match="of 20 people were used for training"),
    ):
        assert main(["predict", str(model), str(study), "--out", str(table)]) == 0
    assert table.stat().st_mode & 0o077 == 0  # it names people
    found = pd.read_csv(table, sep="\t")
    assert {"scan", "predicted", "p_unimpaired", "p_impaired"} <= set(found)
    assert found["remark"].str.contains("used for training").any()
    assert "Numbers of scans by predicted class: " in capsys.readouterr().out


@pytest.mark.usefixtures("scores_figure_alone")
def test_fit_show_and_evaluate(study, tmp_path, capsys):
    model, hospital = tmp_path / "model.safetensors", tmp_path / "hospital"
    fitted = ["fit", str(study), *READING, "--models", "LSAP-R", "--out", str(model)]
    assert main(fitted) == 0
    assert main(["show", str(model)]) == 0
    printed = capsys.readouterr().out
    assert "Note: LSAP-R has no" not in printed
    assert "Model: LSAP-R" in printed
    assert "20 people" in printed
    made = ("--people", "12", "--atlas", "desikan82", "--seed", "7")
    assert main(["simulate", str(hospital), *made]) == 0
    out = tmp_path / "evaluation"
    same_ids = refused(capsys, "evaluate", model, hospital, "--out", out)
    assert "--ids-are-new" in same_ids
    assert not out.exists()
    asked = ["evaluate", str(model), str(hospital), "--ids-are-new", "--out", str(out)]
    with pytest.warns(UserWarning, match="unlike the training"):
        assert main(asked) == 0
    printed = capsys.readouterr().out
    assert "balanced accuracy" in printed
    assert "needs at least 9 training participants" in printed
    assert "Measured coverage" not in printed
    page = (out / "report" / "report.html").read_text(encoding="utf-8")
    assert "Scores in these participants" in page
    assert "sub-00" not in page


def test_a_second_hospital_is_explained_in_one_message(study, tmp_path, capsys):
    """Files, row order, label and classes have other names than in the fit."""
    model = stored_model(study, tmp_path)
    hospital = tmp_path / "hospital"
    (hospital / "sc").mkdir(parents=True)
    people = pd.read_csv(study / "participants.tsv", sep="\t").iloc[:12]
    stages = people["diagnosis"].replace({"CN": "Control", "EMCI": "early"})
    assert {"Control", "early", "SMC"} < set(stages)
    ids = [f"H{row:02d}" for row in range(len(people))]
    table = pd.DataFrame({"patient_id": ids, "Dx": stages, "Age": people["age"]})
    table.to_csv(hospital / "participants.csv", index=False)
    cohort = brainlsap.load_cohort(study, "desikan82", "fdg", scans="baseline")
    heads = [name.replace("ctx-lh-", "lh_") for name in cohort.region_names]
    values = pd.DataFrame(cohort.features[:12, :, 0], ids, heads)
    values.to_csv(hospital / "pet_fdg.csv", index_label="patient_id")
    for new_id, old_id in zip(ids, people["participant_id"], strict=True):
        (path,) = (study / old_id).rglob("*ses-M00*connectivity.csv")
        rows = path.read_text().splitlines(keepends=True)
        matrix = "".join(row for row in rows if not row.startswith("#"))
        (hospital / "sc" / f"{new_id}.txt").write_text(matrix)
    out = tmp_path / "evaluation"
    asked = ["evaluate", model, hospital, "--out", out, "--ids-are-new"]
    message = refused(capsys, *asked)
    for fact in (
        "no connectome: none of 12 scans",
        "no column 'diagnosis'",
        "give --label Dx",
        f"Control ({(stages == 'Control').sum()} scans)",
        "CN=Control",
        "???=early",
        f"--ids-are-new --pattern '{PATTERN}' --row-order mrtrix --label Dx --merge-",
        "1 fault remains:",
        "fit --row-order mrtrix clearly better",
        "1 label needs a class of the model: early",
    ):
        assert fact in message, fact
    assert "--connectome" not in message
    assert "leave --label out" not in message
    named = ("--label", "Dx", "--pattern", PATTERN)
    message = refused(capsys, *asked, *named)
    assert "Control (" in message
    assert "--merge-classes" in message.partition("More data can be read")[2]
    message = refused(capsys, *asked[:5], *named[2:], "--row-order", "mrtrix")
    assert "give --label Dx" in message
    message = refused(capsys, "predict", model, hospital, "--out", out)
    assert f"--out {out} --pattern '{PATTERN}' --row-order mrtrix\n" in message
    people = brainlsap.prediction.read_new_people(
        model, hospital, pattern=PATTERN, row_order="mrtrix"
    )
    assert people.n_scans == 12
    # Every fault of the proposed command is counted, also that of the label.
    table["Dx"] = np.where(stages == "Control", "gesund", "krank")
    for columns, label_option in ((["Dx"], "--label Dx"), (["Dx", "Arm"], "")):
        unknown_table = table.assign(Arm=table["Dx"])
        unknown_table[["patient_id", "Age", *columns]].to_csv(
            hospital / "participants.csv", index=False
        )
        message = refused(capsys, *asked)
        proposal = message.partition("More data can be read")[2]
        assert ("--label" in proposal.partition("fault")[0]) == bool(label_option)
        assert label_option in proposal
        assert "1 fault remains:" in proposal
        named = ("--pattern", PATTERN, "--row-order", "mrtrix")
        if label_option:
            named += ("--label", "Dx")
        # That is the one fault that remains.
        assert "--merge-classes" in refused(capsys, *asked, *named)


def test_a_command_outlives_the_reader_of_its_output(tmp_path, monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as closed_output:
        monkeypatch.setattr(sys, "stdout", closed_output)
        # The first line that check prints finds no reader.
        assert main(["check", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_fault_that_remains_is_printed_once_in_full():
    advice = "Correct the table"
    known = Finding("every row must have an id " * 9, FAULT, path="a.tsv", got="none")
    known = replace(known, advice=advice)
    new = Finding("no age", FAULT, scan="sub-1", advice=advice)
    note = Finding("2 columns are read")
    texts = cli._describe_remaining_findings([known, note, new], [known, note], "study")
    assert texts[0].startswith("a.tsv: every row must have an id every")
    assert texts[0].endswith("... (see above)")
    assert texts[1:] == [str(new)]


def test_options_are_applied_to_the_file_of_a_cohort_or_refused(
    study, tmp_path, capsys
):
    path = tmp_path / "cohort.h5"
    brainlsap.load_cohort(study, "desikan82", ["fdg", "strength"]).save(path)
    asked = ["check", path, "--feature", "strength", "--classes", "CN,AD"]
    assert main([str(word) for word in (*asked, "--atlas", "desikan82")]) == 0
    counted = capsys.readouterr().out.partition("Mapped:")[0]
    assert "strength was read for" in counted
    assert "fdg was read for" not in counted
    assert "number of scans by diagnosis: CN (" in counted
    assert "MCI (" not in counted
    person = brainlsap.load_cohort(study, "desikan82", "fdg").groups[-1]
    assert main([*map(str, asked), "--exclude", person]) == 0
    dropped = capsys.readouterr().out.partition("Dropped:")[2]
    assert person in dropped
    out = tmp_path / "out"
    for command in ("check", "run", "fit", "predict"):
        where = [] if command == "check" else ["--out", out]
        for flag, value in (
            ("--subjects-dir", "fs"),
            ("--feature", "thickness"),
            ("--label", "no_such_column"),
            ("--atlas", "destrieux160"),
        ):
            words = [command, path, flag, value, *where]
            if command == "predict":
                words[1:1] = [stored_model(study, tmp_path)]
            assert main([str(word) for word in words]) == 2, words
            printed = capsys.readouterr()
            assert value in printed.out + printed.err, words
            assert "Traceback" not in printed.err
    assert not out.exists()


def stored_model(study, folder):
    """Return the file of a brief model of a study, made once."""
    path = folder / "brief.safetensors"
    if not path.exists():
        settings = folder / "brief.toml"
        settings.write_text("n_starts = 1\ninitial_scale = 1\nn_epochs = 2\n")
        asked = ("fit", study, *READING, "--config", settings, "--out", path)
        assert main([str(word) for word in asked]) == 0
    return path


@pytest.mark.filterwarnings("ignore:.* were used for training")
def test_labels_that_are_not_known_are_written_as_missing(own_study, tmp_path):
    model = stored_model(own_study, tmp_path)
    path = own_study / "participants.tsv"
    people = pd.read_csv(path, sep="\t", dtype=str)
    for sessions in own_study.glob("sub-*/*_sessions.tsv"):
        table = pd.read_csv(sessions, sep="\t", dtype=str)
        table.drop(columns="diagnosis", errors="ignore").to_csv(
            sessions, sep="\t", index=False
        )
    people["status"] = ["n/a", "FTD", *["CN"] * (len(people) - 2)]
    people.to_csv(path, sep="\t", index=False)
    out = tmp_path / "table.tsv"
    asked = ("predict", model, own_study, "--label", "status", "--out", out)
    assert main([str(word) for word in asked]) == 0
    table = pd.read_csv(out, sep="\t", keep_default_na=False)
    labels = table.groupby("participant")["label"].unique().str.join(" ")
    assert labels[:3].tolist() == ["n/a", "FTD", "CN"]
    assert len(labels) == len(people)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--models", "LSAP-Q"), "LSAP-Q"),
        (("--label", "diagnosys"), "diagnos"),
        (("--atlas", "no-atlas"), "no-atlas"),
        (("--harmonize", "scanner", "--folds", "2"), "scanner"),
        (("--merge-classes", "5-to-4"), "5-to-3"),
        (
            ("--merge-classes", "well=CN"),
            "at least two classes that have scans; got well = CN",
        ),
        (("--merge-classes", "well=CN,ill=Ad"), "'Ad'; the scans have CN ("),
        (("--splits", "nowhere.tsv"), "nowhere.tsv"),
        (
            ("--splits", "nowhere.tsv", "--folds", "2"),
            "--splits cannot be combined with --folds",
        ),
        (
            ("--leave-out", "site", "--folds", "2"),
            "--leave-out cannot be combined with --folds",
        ),
        (("--leave-out", "planet"), "planet"),
        (("--leave-out", "participant"), "no column 'participant'"),
        (("--connectome", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_bad_input_is_one_message_and_nothing_written(
    study, tmp_path, capsys, arguments, words
):
    out = tmp_path / "results"
    base = ("run", study, *READING, "--epochs", "3", "--jobs", "1", "--out", out)
    message = refused(capsys, *base, *arguments)
    assert words in message
    assert not out.exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("baselines = 'no'", "baselines must be true or false, got 'no'"),
        ("overwrite = 1", "overwrite must be true or false, got 1"),
        ("feature = 5", "feature must be a name, or a list of names, got 5"),
        ("classes = ['CN', 1]", "classes must be a name, or a list of names, got"),
        ("label = true", "label must be text, got true"),
        ("folds = 'five'", "folds must be a whole number of at least 0, got 'five'"),
        ("epochs = 1.5", "epochs must be a whole number of at least 0, got 1.5"),
        ("n_permutations = -1", "n_permutations must be a whole number"),
        ("threshold = '10'", "threshold must be a number, got '10'"),
        ("dropout = nan", "dropout must be a number, got nan"),
        ("frames = [1, 2, 3]", "frames must be two numbers, [start, end], got"),
        ("frames = 5", "frames must be two numbers"),
        ("derivatives = [1]", "derivatives must be the path of a folder, or a list"),
        ("features_table = 7", "features_table must be the path of a file, or a list"),
        ("pattern = {connectome = 1}", "pattern must be text, or a table"),
        ("merge-classes = ['CN', 'AD']", "merge-classes must be text, or a table"),
        ("scans = 'first'", "scans must be one of 'all', 'baseline', got 'first'"),
        ("head = 2020-01-01", "head must be one of 'softmax', 'ordinal', got"),
        ("leave_out = 3", "leave_out must be text, got 3"),
        ("[model.options]\npatience = 'x'", "patience must be a whole number"),
        ("data = 5", "data must be a section, [data], got 5"),
        ("n_epoch = 3", "'n_epoch' (nearest: 'n_epochs')"),
        ("feature_ = 'fdg'", "'feature_' (nearest: 'feature')"),
        ("fold = 3", "'fold' (nearest: 'folds')"),
        ("[data_]\nfeature = 'fdg'", "'data_' (nearest: 'data')"),
        (
            "n_epochs = 3\nepochs = 4",
            "epochs and n_epochs name the same option. Keep only one",
        ),
        ("seed = 1\n[study]\nseed = 2", "seed is set twice in the file"),
    ],
)
@pytest.mark.parametrize("command", ["check", "fit"])
def test_a_wrong_setting_of_a_file_is_refused_by_name(
    study, tmp_path, capsys, command, line, words
):
    path = tmp_path / "study.toml"
    path.write_text(line)
    out = ["--out", tmp_path / "out"] if command == "fit" else []
    message = refused(capsys, command, study, *READING, "--config", path, *out)
    assert f"{path}: " in message
    assert words in message


def test_settings_of_a_file_are_read_as_their_flags_are(study, tmp_path, capsys):
    path = tmp_path / "study.toml"
    lines = "atlas = 'desikan82'\nfeature = 'fdg,volume'\nclasses = 'CN,AD'\n"
    path.write_text(lines + "merge-classes = {well = 'CN', ill = ['AD']}\n")
    assert main(["check", str(study), "--config", str(path), "--feature", "fdg"]) == 0
    assert "number of scans by diagnosis: well (" in capsys.readouterr().out
    # a rare setting of the model, too
    path.write_text(lines + "feature_ = 1".replace("_ = 1", "s_table = 'no.tsv'"))
    assert "no.tsv" in refused(
        capsys, "fit", study, "--config", path, "--out", tmp_path / "out"
    )
    path.write_text("n_epochs = 2\nn_starts = 1\npatience = 1\n")
    asked = ("fit", study, *READING, "--config", path, "--out", tmp_path / "out")
    assert main([str(word) for word in asked]) == 0


def test_a_report_of_other_settings_or_people_is_not_replaced(
    results, study, own_study, config, capsys, monkeypatch
):
    before = (results / "report" / "settings.json").read_bytes()
    models = ("--models", "LSAP-C,Exact", "--config", config, "--out", results)
    same = (*READING, *BRIEF, *models, "--label", "diagnosis")
    told = refused(capsys, "run", study, *same, "--repeats", 2, "--harmonize", "site")
    assert "in --harmonize (not given, now site), --repeats (1, now 2)." in told
    assert "Choose another --out, or replace the report with --overwrite" in told
    assert "differs from this study in STUDY (" in refused(
        capsys, "run", own_study, *same
    )
    monkeypatch.setattr("brainlsap.workflow.write_report", lambda *_, **__: None)
    assert main([str(one) for one in ("run", study, *same)]) == 0
    assert (results / "report" / "settings.json").read_bytes() == before


def contents(folder):
    return {one: one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.usefixtures("scores_figure_alone")
def test_results_of_another_study_are_replaced_only_where_asked(
    results, tmp_path, capsys
):
    """A report into another study's folder, and a demo beside its results."""
    other = tmp_path / "results"
    shutil.copytree(results, other)
    record = other / "private" / "evaluation" / "evaluation.json"
    known = record.read_text(encoding="utf-8")
    data_hash = re.search(r'"data_hash": "(\w+)"', known)[1]
    record.write_text(known.replace(data_hash, "ab" * 32), encoding="utf-8")
    before = contents(tmp_path)
    told = refused(capsys, "report", results, "--out", other)
    assert "--overwrite" in told
    assert str(other) in told
    assert "results of another" in refused(capsys, "demo", "--out", tmp_path)
    shutil.rmtree(other / "private")  # as a report that was passed on
    assert "--overwrite" in refused(capsys, "report", results, "--out", other)
    shutil.copytree(results / "private", other / "private")
    record.write_text(known.replace(data_hash, "ab" * 32), encoding="utf-8")
    assert contents(tmp_path) == before
    assert main(["report", str(results), "--out", str(other), "--overwrite"]) == 0
    assert json.loads(record.read_text())["cohort"]["data_hash"] == data_hash
    capsys.readouterr()


@pytest.mark.usefixtures("scores_figure_alone")
@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--export", "regions.tsv"),
        ("--tables", "scores.tex"),
        ("--figures", "scores.pdf"),
    ],
)
def test_exports_replace_nothing_unless_asked(results, tmp_path, capsys, option, name):
    (tmp_path / name).write_text("of an atlas")
    asked = ["report", results, option, tmp_path]
    assert "--overwrite" in refused(capsys, *asked)
    assert contents(tmp_path) == {tmp_path / name: b"of an atlas"}
    assert main([*map(str, asked), "--overwrite"]) == 0
    assert (tmp_path / name).read_bytes() != b"of an atlas"
    capsys.readouterr()


def test_existing_exports_are_refused_together_before_anything_is_made(
    results, tmp_path, capsys, monkeypatch
):
    def fail(*_, **__):
        raise AssertionError

    monkeypatch.setattr("brainlsap.report.page.make_report_table_by_name", fail)
    monkeypatch.setattr("brainlsap.report.page.draw_figure_by_name", fail)
    names = ("tables/scores.tex", "tables/flow.md", "figures/classes.pdf")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    folders = ("--tables", tmp_path / "tables", "--figures", tmp_path / "figures")
    message = refused(capsys, "report", results, *folders)
    assert all(str(tmp_path / name) in message for name in names)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_files_that_are_read_are_never_written(own_study, tmp_path, capsys, more):
    """Not the model, not a file of the study, nor another name of it."""
    model, link = tmp_path / "model.safetensors", tmp_path / "people.tsv"
    model.write_bytes(b"a model")
    table = own_study / "participants.tsv"
    link.symlink_to(table)
    before = contents(tmp_path)
    for out in (model, table, link):
        refused(capsys, "predict", model, own_study, "--out", out, *more)
    refused(capsys, "fit", own_study, *READING, "--out", table, *more)
    refused(capsys, "fit", model, "--out", model, *more)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "command",
    [
        "run {study} --out {out}",
        "fit {study} --out {out}",
        "predict {model} {study} --out {out}",
        "evaluate {model} {study} --out {out}",
        "report {results} --out {out}",
        "simulate {out}",
        "demo --out {out}",
        "atlas {out} --labels {study}/participants.tsv",
        "import-adni {study} {study} {out}",
        "build {study} --out {out}",
    ],
)
def test_what_cannot_be_written_is_refused_before_it_is_computed(
    study, results, tmp_path, monkeypatch, capsys, command
):
    """Not even the model or the study is read."""
    for name in (
        "brainlsap.data.read_study",
        "brainlsap.model.load_model",
        "brainlsap.make_cohort",
        "brainlsap.write_report",
        "brainlsap.images.parcellation._read_region_list",
        "brainlsap.adni.convert.gather_adni_tables",
        "brainlsap.images.build.build_file",
    ):
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("It was computed."))
    (tmp_path / "file").write_text("mine")
    model, out = tmp_path / "model.safetensors", tmp_path / "file" / "out"
    model.write_bytes(b"a model")
    before = contents(tmp_path)
    arguments = command.format(study=study, model=model, results=results, out=out)
    assert "is a file, not a folder" in refused(capsys, *arguments.split())
    assert contents(tmp_path) == before


def test_an_existing_model_or_table_is_replaced_only_where_asked(
    study, tmp_path, capsys
):
    model, table = tmp_path / "model", tmp_path / "table.tsv"
    model.write_bytes(b"another model")
    asked = ["fit", study, *READING, "--epochs", 3, "--out", model]
    assert "--overwrite" in refused(capsys, *asked)
    assert model.read_bytes() == b"another model"
    assert main([*map(str, asked), "--overwrite"]) == 0
    assert model.read_bytes() != b"another model"
    table.write_text("another table")
    asked = ["predict", model, study, "--out", table]
    assert "--overwrite" in refused(capsys, *asked)
    assert table.read_text() == "another table"
    with pytest.warns(UserWarning, match="were used for training"):
        assert main([*map(str, asked), "--overwrite"]) == 0
    assert table.read_text() != "another table"
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--merge-class", "5-to-3"), "unrecognized arguments: --merge-class 5-to-3"),
        (("--features", "fdg"), "Similar options: --feature. brainlsap run --help"),
        (("--epochs", "-3"), "--epochs: must be a whole number of at least 0"),
    ],
)
def test_flags_that_are_misspelt_are_told(study, capsys, arguments, words):
    with pytest.raises(SystemExit) as stop:
        main(["run", str(study), "--out", "x", *arguments])
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


def test_a_process_ends_with_2_where_the_study_is_not_there(tmp_path):
    words = [sys.executable, "-m", "brainlsap", "run", "/nowhere", "--out", "x"]
    how = {"capture_output": True, "text": True, "cwd": tmp_path}
    done = subprocess.run(words, check=False, **how)
    assert done.returncode == 2
    assert "/nowhere" in done.stderr


def test_ctrl_c_says_how_to_continue_and_the_run_continues(
    study, tmp_path, monkeypatch, capsys
):
    from brainlsap import workflow

    out, config = tmp_path / "results", tmp_path / "study.toml"
    config.write_text("n_starts = 1\n[study]\nbaselines = false\n")
    words = ("run", study, *READING, *BRIEF, "--config", config, "--out", out)
    asked = [str(word) for word in words]

    def stop(*_, **__):
        raise KeyboardInterrupt

    def first_result_alone(_, calls):
        function, arguments, keywords = next(iter(calls))
        yield function(*arguments, **keywords)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(workflow, "cross_validate_with_calls", stop)
        assert main(asked) == 130
        assert "No fits are stored" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(joblib.Parallel, "__call__", first_result_alone)
        assert main(asked) == 130
        assert " 1 of 2 fits are stored. " in capsys.readouterr().err
    monkeypatch.setattr(workflow, "write_report", stop)
    assert main(asked) == 130
    printed = capsys.readouterr().err
    assert "Run the same command again" in printed
    assert "1 of 2 fits were stored already" in printed
    assert "All fits of the cross-validation are stored" in printed
    kept = {one: one.stat().st_mtime_ns for one in out.rglob("*.json")}
    assert len(kept) == 2  # folds
    monkeypatch.setattr(workflow, "write_report", lambda *_, **__: None)
    assert main(asked) == 0
    assert {one: one.stat().st_mtime_ns for one in out.rglob("*.json")} == kept


def test_every_option_is_explained():
    commands = build_parser()._subparsers._group_actions[0].choices
    names = "demo simulate atlas import-adni build check run report fit predict nodes"
    assert set(commands) == {*names.split(), "evaluate", "show"}
    for name in ("run", "check", "fit", "predict", "evaluate"):
        for option in commands[name]._actions:
            assert option.help, (name, option.option_strings)


def test_help_of_every_command_is_printed(capsys):
    for name in build_parser()._subparsers._group_actions[0].choices:
        with pytest.raises(SystemExit, match=r"^0$"):
            main([name, "--help"])
        assert "usage:" in capsys.readouterr().out.lower()


@pytest.mark.parametrize(
    ("command", "setting", "text"),
    [
        ("run", ("feature", None), "--feature"),
        ("run", ("cv", None), "--folds"),
        ("run", ("folder", None), "STUDY"),
        ("run", ("row_order", "atlas"), "--row-order atlas"),
        ("run", ("measure", None), "measure (in a --config file)"),
        ("run", ("symmetrize", "mean"), 'symmetrize = "mean" (in a --config file)'),
        ("predict", ("measure", None), "measure="),
        ("nodes", ("download", True), "--download"),
    ],
)
def test_messages_name_the_options_of_the_command(command, setting, text):
    with use_option_format(_make_option_format(command)):
        assert option_text(*setting) == text
    assert option_text("scans", "all") == "scans='all'"


def test_a_wrong_choice_is_named_by_its_flag_and_paths_stay(tmp_path, capsys):
    path = tmp_path / "label=" / "study"
    path.mkdir(parents=True)
    with use_option_format(_make_option_format("run")):
        with pytest.raises(ParameterError, match=r"^--repeats must be a whole number"):
            check_at_least("n_repeats", 0, 1)
    assert f"{path}" in refused(capsys, "check", path)


def test_one_mistake_in_many_files_is_one_short_message(study, tmp_path, capsys):
    asked = ("--atlas", "destrieux160", "--feature", "fdg", "--out", tmp_path / "out")
    assert len(refused(capsys, "run", study, *asked).splitlines()) < 20


@pytest.mark.usefixtures("scores_figure_alone")
def test_a_results_folder_of_the_demo_is_whole(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(models, "BASELINES", ("majority class", "global means"))
    brief = ("--people", "20", "--folds", "2", "--epochs", "2", "--starts", "1")
    assert main(["demo", *brief, "--jobs", "1"]) == 0
    printed, told = capsys.readouterr()
    fitted = [line for line in told.splitlines() if line.startswith("fitted ")]
    assert "%|" not in told
    n_models = sum(" ± " in line for line in printed.splitlines())
    assert len(fitted) == 2  # a line a fold, no bars: no terminal is
    assert fitted[-1].startswith(f"fitted {2 * n_models} of {2 * n_models}, last ")
    assert printed.count("Study: ") == 1
    page = re.search(r"Report: (.*)", printed)[1]
    assert Path(page).is_file()
    assert "LSAP-C" in printed


def test_the_first_lines_of_a_run_say_units(tmp_path, capsys):
    """PET in another unit was read as SUVR, and only a folded table said so."""
    cohort = brainlsap.make_cohort(20, atlas="desikan82")
    replace(cohort, features=cohort.features * 5).save(tmp_path / "odd.h5")
    cli._load_cohort(str(tmp_path / "odd.h5"), {}, {})
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("Values: fdg (ratios") for line in lines)
    assert any(line.startswith("Warning: fdg may not be") for line in lines)
