"""ADNI's tables and LONI's folders become a study: made-up people only."""

import json

import pandas as pd
import pytest

from brainlsap.adni import import_adni
from brainlsap.adni.tables import gather_adni_tables, refuse_table_faults
from brainlsap.atlas import load_atlas
from brainlsap.cli import main
from brainlsap.data import load_cohort
from brainlsap.data.tables import IMPORT_FILES
from brainlsap.exceptions import CohortError
from tests.adni import adni_files as made

VISIT = ["participant_id", "session_id", "modality"]


@pytest.fixture
def tables(tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    made.merge_table().to_csv(folder / "ADNIMERGE_01Jan2024.csv", index=False)
    return folder


@pytest.fixture
def images(tmp_path):
    return made.write_images(tmp_path / "ADNI")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "cohort"


def read_adni_tables(folder):
    """Return visits, LONI's list of images and notes, or refuse faults."""
    visits, images, notes, faults = gather_adni_tables(folder)
    refuse_table_faults(folder, faults)
    return visits, images, notes


def read_text(path):
    return pd.read_csv(path, sep="\t", keep_default_na=False, dtype=str)


def sessions_of(out, subject):
    path = out / subject / f"{subject}_sessions.tsv"
    return read_text(path).set_index("session_id")


def test_each_modality_joins_the_nearest_visit_and_no_file_twice(tables, images, out):
    found = import_adni(tables, images, out)
    got = found.pairs.set_index(VISIT)[["image", "days"]].to_dict("index")
    assert {key: tuple(value.values()) for key, value in got.items()} == {
        # two DTI near baseline: the nearer is used, and the other for no later visit
        ("sub-ADNI002S0295", "ses-M000", "dwi"): ("I101", 2),
        ("sub-ADNI002S0295", "ses-M006", "fdg"): ("I102", 13),
        ("sub-ADNI005S4010", "ses-M000", "dwi"): ("I110", 180),
        ("sub-ADNI005S4010", "ses-M072", "dwi"): ("I112", -9),
        ("sub-ADNI005S4020", "ses-M024", "dwi"): ("I120", -14),
        ("sub-ADNI011S6030", "ses-M000", "dwi"): ("I130", 0),
        ("sub-ADNI011S6040", "ses-M000", "anat"): ("I140", 8),
    }
    assert found.unused_images.set_index("image")["reason"].to_dict() == {
        "I100": "another image of this modality is nearer to the visit",
        "I103": "the description names no modality",
        "I111": "the person has no visit within 180 days of the image",  # day 181
        "I150": "the tables do not contain the person",
    }
    kept = read_text(out / "adni_pairing.tsv")
    assert kept["image"].tolist() == found.pairs["image"].tolist()
    assert len(read_text(out / "adni_unused_images.tsv")) == 4


def test_second_image_of_a_day_is_used_for_no_other_visit(tables, tmp_path, out):
    day = "2006-04-20_10_00_00.0"
    root = tmp_path / "ADNI"
    for number in ("I2", "I1"):
        made.write_image(root, "002_S_0295", "ADNI_Brain_PET__Raw_FDG", day, number)
    imported = import_adni(tables, root, out)
    assert imported.pairs[["session_id", "image"]].to_numpy().tolist() == [
        ["ses-M000", "I1"]
    ]
    assert imported.unused_images["image"].tolist() == ["I2"]


def test_people_and_sessions_are_written(tables, images, out):
    import_adni(tables, images, out)
    people = read_text(out / "participants.tsv").set_index("participant_id")
    assert people.index.tolist() == [  # nobody without an image is listed
        f"sub-ADNI{n}"
        for n in ("002S0295", "005S4010", "005S4020", "011S6030", "011S6040")
    ]
    facts = ["ptid", "rid", "sex", "first_phase", "site"]
    first = people.loc["sub-ADNI002S0295", facts]
    assert first.tolist() == ["002_S_0295", "295", "M", "ADNI1", "2"]
    visits = sessions_of(out, "sub-ADNI002S0295")
    assert visits.index.tolist() == ["ses-M000", "ses-M006", "ses-M012"]
    assert visits["exam_date"].tolist() == ["2006-04-18", "2006-10-20", "2007-05-01"]
    assert visits["diagnosis"].tolist() == ["MCI", "MCI", "AD"]
    assert visits["age"].tolist() == ["70.0", "70.5", "71.0"]
    assert visits["scanner"].tolist() == ["3 Tesla MRI"] * 3
    visits = sessions_of(out, "sub-ADNI005S4010")
    assert visits["phase"].tolist() == ["ADNI2", "ADNI3"]
    # the stage is a label of baseline, and MCI without EMCI and LMCI is none
    assert visits["stage"].tolist() == ["SMC", "n/a"]
    assert sessions_of(out, "sub-ADNI011S6030")["stage"].tolist() == ["n/a"]


def test_lost_labels_are_listed(tables, images, out):
    found = import_adni(tables, images, out)
    said = (out / "adni_notes.txt").read_text(encoding="utf-8")
    assert said.splitlines() == [*found.notes]
    for what in (
        "people without a stage, by phase: 1 in ADNI3",
        "Sagittal_3D_FLAIR (1)",
        "1 visit has no date",
    ):
        assert what in said
    table = found.labels.set_index(["phase", "site"])
    assert table.loc[("ADNI2", "5"), ["SMC", "EMCI", "none"]].tolist() == [1, 1, 0]
    assert table.loc[("ADNI3", "11"), ["CN", "none"]].tolist() == [1, 1]


def test_dxsum_and_arm_say_the_same_as_adnimerge(tables, images, out, tmp_path):
    merged = import_adni(tables, images, out)
    folder = tmp_path / "others"
    folder.mkdir()
    made.dxsum_table().to_csv(folder / "DXSUM_PDXCONV_ADNIALL.csv", index=False)
    made.arm_table().to_csv(folder / "ARM.csv", index=False)
    made.demography_table().to_csv(folder / "PTDEMOG.csv", index=False)
    other = import_adni(folder, images, tmp_path / "other")
    columns = [*VISIT, "image", "days"]
    pd.testing.assert_frame_equal(other.pairs[columns], merged.pairs[columns])
    for subject in set(merged.pairs["participant_id"]):
        ours = sessions_of(tmp_path / "other", subject)
        theirs = sessions_of(out, subject)
        for name in ("diagnosis", "stage", "phase"):
            # ADNI3's ARM does not say CN, where ADNIMERGE's DX_bl does
            if name == "stage" and subject == "sub-ADNI011S6040":
                continue
            assert ours[name].tolist() == theirs[name].tolist()
    people = read_text(tmp_path / "other" / "participants.tsv")
    assert people["sex"].tolist() == ["M", "F", "F", "M", "F"]
    assert sessions_of(tmp_path / "other", "sub-ADNI002S0295")["age"].iloc[0] == "70.0"


@pytest.mark.parametrize(
    ("code", "state"),
    [(1, "CN"), (4, "MCI"), (5, "AD"), (7, "CN"), (8, "MCI"), (9, "CN"), (6, "AD")],
)
def test_change_of_diagnosis_is_what_it_led_to(code, state, tmp_path):
    table = made.dxsum_table().drop(columns="DIAGNOSIS").assign(DXCHANGE=code)
    table.to_csv(tmp_path / "DXSUM.csv", index=False)
    visits, _, notes = read_adni_tables(tmp_path)
    assert set(visits["diagnosis"]) == {state}
    assert (
        "the folder contains no ARM table and no column DX_bl, so SMC, EMCI and LMCI "
        "are unknown" in notes
    )


def test_screening_is_baseline_and_odd_codes_are_reckoned(tables, images, out):
    table = made.merge_table()
    table.loc[0, "VISCODE"] = "sc"
    table.loc[1, "VISCODE"] = "v11"
    table.to_csv(next(tables.iterdir()), index=False)
    found = import_adni(tables, images, out)
    visits = sessions_of(out, "sub-ADNI002S0295")
    assert visits.index.tolist() == ["ses-M000", "ses-M006", "ses-M012"]
    assert any(n.startswith("1 visit has no month in the code") for n in found.notes)


def test_a_screen_failure_is_no_visit(tables):
    table = made.merge_table()
    failed = table.iloc[:1].assign(VISCODE="f", EXAMDATE="2006-03-01", DX="CN", MMSE=9)
    alone = failed.assign(RID="9000", PTID="002_S_9000")
    pd.concat([failed, alone, table]).to_csv(next(tables.iterdir()), index=False)
    visits, _, notes = read_adni_tables(tables)
    first = visits[visits["rid"] == "295"].iloc[0]
    assert (first["month"], first["viscode"], first["mmse"]) == (0, "bl", "28")
    assert first["date"] == pd.Timestamp("2006-04-18")
    assert "9000" not in set(visits["rid"])
    assert (
        "2 visits have the VISCODE f (screen failure). Such visits are left out"
        in notes
    )


def test_cohort_is_read_with_people_visits_and_labels(tables, tmp_path, out):
    atlas = load_atlas("desikan82")
    root = made.write_images(tmp_path / "ADNI")
    made.replace_by_connectomes(root, atlas)
    import_adni(tables, root, out, require=("dwi",))
    cohort = load_cohort(out, atlas, "strength", classes=["CN", "MCI"])
    assert cohort.table["participant"].tolist() == [
        "sub-ADNI002S0295",
        *["sub-ADNI005S4010"] * 2,
        "sub-ADNI005S4020",
        "sub-ADNI011S6030",
    ]
    assert cohort.y.tolist() == ["MCI", "CN", "CN", "CN", "MCI"]
    staged = load_cohort(out, atlas, "strength", label="stage", classes=["SMC", "LMCI"])
    assert staged.y.tolist() == ["LMCI", "SMC"]
    assert staged.table["site"].tolist() == [2, 5]


def test_pet_is_named_by_its_tracer(tables, tmp_path, out):
    root, day = tmp_path / "ADNI", "2006-04-20"
    for number, word in enumerate(("AV-45_Coreg,_Avg", "FDG_raw", "AV1451_Coreg")):
        made.write_image(root, "002_S_0295", word, day, f"I{number}")
    made.write_image(root, "005_S_4010", "PIB_Coreg", "2012-02-01", "I10")
    made.write_image(root, "005_S_4020", "Tau_PET", "2012-06-01", "I11")
    import_adni(tables, root, out)
    person = "sub-ADNI002S0295_ses-M000_trc-{}_pet.nii"
    assert {path.name for path in out.rglob("*.nii")} == {
        *map(person.format, ("18FAV45", "18FFDG", "18FAV1451")),
        "sub-ADNI005S4010_ses-M000_trc-11CPIB_pet.nii",
        "sub-ADNI005S4020_ses-M000_trc-tau_pet.nii",
    }


def test_files_are_named_and_linked(tables, images, out):
    first = images / "002_S_0295/Axial_DTI/2006-04-20_08_20_30.0/I101/scan.bval"
    first.write_text("0")
    dicom = images / "011_S_6030/Axial_MB_DTI/2018-09-01_09_00_00.0/I130"
    (dicom / "slice_1.dcm").write_bytes(b"")
    import_adni(tables, images, out)
    visit = "sub-ADNI002S0295/ses-M000/dwi/sub-ADNI002S0295_ses-M000_dwi"
    for ending in (".nii", ".bval"):
        path = out / f"{visit}{ending}"
        assert path.exists()
        assert path.is_symlink()
    folder = out / "sourcedata/sub-ADNI011S6030/ses-M000/dwi/I130"
    assert (folder / "slice_1.dcm").exists()


def test_scanner_comes_from_sidecar_or_lonis_list(tables, images, out):
    place = images / "005_S_4020/Axial_DTI/2014-06-01_09_00_00.0/I120"
    told = {"Manufacturer": "GE", "ManufacturersModelName": "MR750"}
    (place / "scan.json").write_text(json.dumps(told))
    head = '"Image Data ID","Subject","Imaging Protocol"\n'
    row = '"I130","011_S_6030","Manufacturer=SIEMENS;Field Strength=3.0"\n'
    (tables / "idaSearch.csv").write_text(head + row)
    import_adni(tables, images, out)
    assert sessions_of(out, "sub-ADNI005S4020")["scanner"]["ses-M024"] == "GE MR750"
    assert sessions_of(out, "sub-ADNI011S6030")["scanner"]["ses-M000"] == "SIEMENS 3.0"


def test_words_of_a_modality_may_be_given(tables, images, out):
    day = "2012-02-03_09_00_00.0"
    made.write_image(images, "005_S_4010", "Coreg,_Avg", day, "I113")
    found = import_adni(tables, images, out, modalities={"fdg": "coreg, avg"})
    assert "I113" in set(found.pairs["image"])
    assert list(out.rglob("*_trc-18FFDG_pet.nii"))


def test_command_prints_and_writes(tables, images, out, capsys):
    arguments = ["import-adni", str(tables), str(images), str(out), "--window", "30"]
    assert main([*arguments, "--require", "dwi"]) == 0
    printed = capsys.readouterr().out
    assert "4 people, 4 visits with images" in printed
    assert "they lack at least one of these modalities: dwi" in printed
    assert f"Study: {out}\nNext: process the images" in printed
    assert f"then brainlsap check {out}\n" in printed
    assert printed.endswith(f": brainlsap build {out}\n")
    reasons = read_text(out / "adni_unused_images.tsv").set_index("image")["reason"]
    assert reasons["I100"] == "another image of this modality is nearer to the visit"
    assert "30 days" in reasons["I110"]
    assert main(arguments) == 2
    assert "must be new or empty" in capsys.readouterr().err


def test_the_way_after_import(tables, tmp_path, out, capsys):
    """Connectomes are checked next; tables of the import are not called faulty."""
    root = made.write_images(tmp_path / "ADNI")
    made.replace_by_connectomes(root, load_atlas("desikan82"))
    table = made.merge_table()
    table.loc[1, "DX"] = "Probable AD"
    table.to_csv(next(tables.iterdir()), index=False)
    place = [str(one) for one in (tables, root, out)]
    assert main(["import-adni", *place, "--require", "dwi", "--skip-faulty"]) == 0
    assert f"Next: brainlsap check {out}" in capsys.readouterr().out
    written = {path.name for path in out.glob("adni_*")}
    assert written == {*IMPORT_FILES}
    assert main(["check", str(out), "--atlas", "desikan82"]) == 2
    printed = capsys.readouterr().out
    assert "thickness: not found in any" in printed
    assert "adni_" not in printed


def test_tables_that_cannot_be_used_are_refused(tables, images, out, tmp_path):
    path = next(tables.iterdir())
    table = made.merge_table()
    twice = pd.concat([table, table.iloc[:1].assign(DX="CN")])
    for bad, match in (
        (table.assign(EXAMDATE="soon"), "RID 295 at bl: EXAMDATE must be .* 'soon'"),
        (twice, "RID 295 has two diagnoses at bl: MCI and CN"),
        (table.assign(RID="4010None"), "RID must be a whole number .* got '4010None'"),
        (made.arm_table(), "no table of diagnoses. Add ADNIMERGE"),
    ):
        bad.to_csv(path, index=False)
        with pytest.raises(CohortError, match=match):
            import_adni(tables, images, out)
    table.to_csv(path, index=False)
    table.to_csv(tables / "another.csv", index=False)
    with pytest.raises(CohortError, match="another table are both ADNIMERGE"):
        import_adni(tables, images, out)
    with pytest.raises(CohortError, match=r"does not exist, or it contains no \.csv"):
        import_adni(tmp_path / "nowhere", images, out)
    assert not out.exists()


def test_images_that_cannot_be_used_are_refused(tables, images, out, tmp_path):
    def refused(match, place):
        with pytest.raises(CohortError, match=match):
            import_adni(tables, place, out)

    refused(
        r"contains no image. Each image is expected in a folder "
        r"PTID/description/date/I-id",
        tables,
    )
    alone = made.write_images(tmp_path / "alone", [made.IMAGES[-1]])
    refused(r"no visit has an image: 1 image of 1 person", alone)
    scanned = made.write_images(tmp_path / "scanned")
    with pytest.raises(
        CohortError, match=r"required .*tau.*; .* recognised as .*dwi \("
    ):
        import_adni(tables, scanned, out, require=["tau"])
    made.write_image(images, "005_S_4010", "Axial_DTI", "2012-02-03_09_00_00.0", "I100")
    refused(r"I100 .*/I100 and in .*/I100", images)
    made.write_image(alone, "005_S_4010", "Axial_DTI", "someday", "I1")
    refused(r"'someday' is not a date; expected a date such as 2006-04-18", alone)


def read_texts(folder, **texts):
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    return read_adni_tables(folder)[0].to_dict("records")


DX = "RID,VISCODE,PHASE,DIAGNOSIS,EXAMDATE,USERDATE\n"


def test_the_stage_is_of_the_first_phase_in_any_order_of_rows(tmp_path):
    text = DX + "21,bl,ADNI1,2,2006-01-01,\n"
    rows = ["21.0,11,ADNI2,1\n", "21.0,2,ADNI1,1\n", "21.0,3,ADNI5,1\n"]
    for number, lines in enumerate((rows, rows[::-1])):
        arm = "RID,ARM,PHASE,ENROLLED\n" + "".join(lines)
        (visit,) = read_texts(tmp_path / str(number), dx=text, arm=arm)
        assert visit["stage"] == "LMCI"


def test_a_row_without_a_day_does_not_undo_another(tmp_path):
    text = DX + "4010,v03,ADNI2,2,,2012-09-01\n"
    days = "RID,VISCODE,RGSTATUS,EXAMDATE\n4010,v03,1,2012-01-02\n4010,v03,1,\n"
    (visit,) = read_texts(tmp_path, dx=text, registry=days)
    assert visit["date"] == pd.Timestamp("2012-01-02")


@pytest.mark.parametrize("spelling", ["5_S_4010", "005S4010", "sub-005_s_4010"])
def test_person_is_found_in_any_spelling_of_the_ptid(tables, tmp_path, out, spelling):
    table = made.merge_table()
    table["PTID"] = table["PTID"].replace("005_S_4010", spelling)
    table.to_csv(next(tables.iterdir()), index=False)
    root = tmp_path / "ADNI"
    day = "2012-02-01_09_00_00.0"
    made.write_image(root, spelling, "Axial_DTI", day, "I1")
    made.write_image(root, "someone", "Axial_DTI", day, "I2")
    imported = import_adni(tables, root, out)
    assert imported.pairs[["participant_id", "image"]].to_numpy().tolist() == [
        ["sub-ADNI005S4010", "I1"]
    ]
    assert any(note.endswith("005_S_4010): someone") for note in imported.notes)


def test_missing_columns_are_named(tables, images, out):
    path = next(tables.iterdir())
    table = made.merge_table()
    table.drop(columns="DX").to_csv(path, index=False)
    with pytest.raises(CohortError, match=f"{path.name} .* no column DX$"):
        import_adni(tables, images, out)
    table.drop(columns="EXAMDATE").to_csv(path, index=False)
    with pytest.raises(CohortError, match="11 of 11 visits have no date"):
        import_adni(tables, images, out)
    table.drop(columns=["AGE", "PTGENDER"]).to_csv(path, index=False)
    notes = import_adni(tables, images, out).notes
    for fact_name in ("age", "sex"):
        assert any(f"the {fact_name} of all people" in note for note in notes)


def test_two_diagnoses_of_one_month_are_refused_whatever_the_codes(tmp_path):
    rows = "21,bl,ADNI1,1,2006-01-01,\n21,m60,ADNIGO,1,2011-01-01,\n"
    with pytest.raises(CohortError, match="two diagnoses at m60 and v06: CN and AD"):
        read_texts(tmp_path, dx=DX + rows + "21,v06,ADNI2,3,2011-02-01,\n")
    # screening is another matter: baseline counts
    rows = "21,sc,ADNI1,2,2006-01-01,\n21,bl,ADNI1,1,2006-01-05,\n"
    (visit,) = read_texts(tmp_path, dx=DX + rows)
    assert visit["diagnosis"] == "CN"


@pytest.mark.parametrize(
    ("column", "word"),
    [
        ("DX", "Probable AD"),
        ("DX", "4"),  # a code of a change, not of a state
        ("DX", "-9"),
        ("DX_bl", "10"),  # a code of an arm
        ("DX_bl", "MCI due to AD"),
    ],
)
def test_unknown_words_are_refused_with_counts(tables, images, out, column, word):
    table = made.merge_table()
    n_rows = len(table) - (column == "DX")  # one visit has no diagnosis
    table[column] = table[column].mask(table[column] != "", word)
    table.to_csv(next(tables.iterdir()), index=False)
    with pytest.raises(CohortError) as refusal:
        import_adni(tables, images, out)
    (fault,) = refusal.value.faults
    assert f"{column} contains {word!r} in {n_rows} rows" in fault
    assert "skip_faulty" in str(refusal.value)


@pytest.mark.parametrize("arm", ["12", "None"])
def test_an_unknown_arm_is_refused(tmp_path, arm):
    made.dxsum_table().to_csv(tmp_path / "DXSUM.csv", index=False)
    made.arm_table().assign(ARM=f"x{arm}").to_csv(tmp_path / "ARM.csv", index=False)
    with pytest.raises(CohortError, match=rf"ARM .*'x{arm}' in 4 rows"):
        read_adni_tables(tmp_path)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("DEM", "AD"),
        ("  Cognitively  normal ", "CN"),
        ("Conversion: NL to MCI", "MCI"),
        ("Stable: Dementia", "AD"),
        (" 2.0", "MCI"),
    ],
)
def test_words_and_codes_of_other_tables_are_read(tables, word, state):
    path = next(tables.iterdir())
    made.merge_table().assign(DX=word).to_csv(path, index=False)
    visits, _, _ = read_adni_tables(tables)
    assert set(visits["diagnosis"]) == {state}


def test_other_words_that_are_not_understood_are_counted(tables):
    table = made.merge_table().assign(COLPROT="ADNI9", PTGENDER="Divers", AGE="old")
    table.to_csv(next(tables.iterdir()), index=False)
    (tables / "MMSE.csv").write_text("RID,SCORE\n1,2\n")
    _, _, notes = read_adni_tables(tables)
    said = "\n".join(notes)
    for fact in (f"ADNI9 ({len(table)})", "Divers (11)", "old (11)", "MMSE.csv"):
        assert fact in said


def test_codes_of_phases_that_tell_no_stage_are_counted(tmp_path):
    made.dxsum_table().to_csv(tmp_path / "DXSUM.csv", index=False)
    made.arm_table().to_csv(tmp_path / "ARM.csv", index=False)
    _, _, notes = read_adni_tables(tmp_path)
    assert any("ARM" in note and "ADNI3 (2)" in note for note in notes)


def test_faulty_visits_are_skipped_and_listed_where_asked(tables, images, out, capsys):
    table = made.merge_table()
    table.loc[1, "DX"] = "Probable AD"
    table.loc[4, "EXAMDATE"] = "soon"
    again = table.iloc[5:6].assign(DX="Dementia")
    pd.concat([table, again]).to_csv(next(tables.iterdir()), index=False)
    made.write_image(images, "005_S_4010", "Axial_DTI", "2012-02-03_09_00_00.0", "I100")
    place = [str(one) for one in (tables, images, out)]
    assert main(["import-adni", *place]) == 2
    assert "--skip-faulty" in capsys.readouterr().err
    assert main(["import-adni", *place, "--skip-faulty"]) == 0
    assert "the tables have 3 faults" in capsys.readouterr().out
    skipped = read_text(out / "adni_skipped.tsv").set_index("rid")
    assert skipped["kind"].to_dict() == {
        "295": "unknown word",
        "4010": "no day",
        "4020": "two diagnoses",
    }
    # the visit is left out, and no other visit takes its images
    assert sessions_of(out, "sub-ADNI002S0295").index.tolist() == [
        "ses-M000",
        "ses-M012",
    ]
    reasons = read_text(out / "adni_unused_images.tsv").set_index("image")["reason"]
    assert "skipped" in reasons["I102"]
    assert reasons["I100"].iloc[0].count("/I100") == 2


def test_folders_of_series_are_read(tables, out, tmp_path):
    root, day = tmp_path / "ADNI", "2006-04-20_08_20_30.0"
    name = "ADNI_002_S_0295_MR_Axial_DTI_Br_2006_S12_{}.nii"
    place = "002_S_0295", "Axial_DTI", day, "S12"
    made.write_image(root, *place, name=name.format("I40657"))
    day = "2012-02-01_09_00_00.0"
    made.write_image(root, "005_S_4010", "Axial_DTI", day, "S13")
    made.write_image(root, "005_s_4020", "Axial_DTI", "2014-06-01", "S14/I77")
    for image in ("I1", "I2"):
        folder = root / "011_S_6030" / "Axial_DTI" / "2018-09-01" / "S15"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"a_{image}.nii").touch()
    made.write_image(root, "011_S_6040", "Axial_DTI", "2018-10-09", "raw")
    found = import_adni(tables, root, out)
    assert found.pairs["image"].tolist() == ["I40657", "S13", "I77"]
    reasons = found.unused_images.set_index("ptid")["reason"]
    assert "several images" in reasons["011_S_6030"]
    assert "not I or S" in reasons["011_S_6040"]


@pytest.mark.parametrize("number", ["I130", "130"])
def test_the_newer_list_of_images_is_read(tables, images, out, number):
    facts = {"subject_id": "011_S_6030", "image_id": number, "image_date": "2018-09-01"}
    facts |= {"manufacturer": "SIEMENS", "mfg_model": "Prisma", "field_strength": "3"}
    rows = [facts, facts | {"image_id": "999"}]
    pd.DataFrame(rows).to_csv(tables / "images.csv", index=False)
    found = import_adni(tables, images, out)
    scanner = sessions_of(out, "sub-ADNI011S6030")["scanner"]["ses-M000"]
    assert scanner == "SIEMENS Prisma 3"
    assert "1 image of the LONI image list is not in the folder" in found.notes
