"""Matrices named by id in one folder, beside tables with a row for every scan."""

import numpy as np
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.flat_files import find_flat_files
from brainlsap.data.folders import load_cohort
from brainlsap.exceptions import CohortError, ParameterError
from tests.data.conftest import NAMES
from tests.data.feature_formats import write_clinica


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


def check(cohort, matrix):
    assert cohort.n_scans == 5
    numbers = np.arange(1, 6)
    np.testing.assert_array_equal(cohort.connectomes, matrix * numbers[:, None, None])
    np.testing.assert_allclose(
        cohort.features[..., 0], numbers[:, None] + np.arange(7) / 10
    )


def test_a_flat_cohort_is_found_by_itself(flat, tiny, matrix):
    check(load_cohort(flat, tiny, "fdg"), matrix)


@pytest.mark.parametrize(
    ("name", "template"),
    [
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


def test_a_workbook_holds_the_table(flat, tiny, matrix):
    openpyxl = pytest.importorskip("openpyxl")
    lines = (flat / "fdg.csv").read_text().splitlines()
    book = openpyxl.Workbook()
    book.active.append(lines[0].split(","))
    for line in lines[1:]:
        name, *values = line.split(",")
        book.active.append([name, *map(float, values)])
    book.save(flat / "fdg.xlsx")
    (flat / "fdg.csv").unlink()
    check(load_cohort(flat, tiny, "fdg"), matrix)


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
    with pytest.raises(CohortError, match=r"sub-p4_ses-1: no files; .* beside .*csv"):
        load_cohort(flat, tiny, "fdg")


def test_a_file_without_visit_is_of_the_only_one(flat, tiny, matrix):
    (flat / "connectomes/sub-p4_ses-1.csv").rename(flat / "connectomes/sub-p4.csv")
    (flat / "sub-p4").mkdir()
    (flat / "sub-p4" / "ses-1").mkdir()
    check(load_cohort(flat, tiny, "fdg"), matrix)


def test_two_files_of_one_scan_are_told(flat, tiny, matrix):
    np.save(flat / "connectomes/sub-p4_ses-1.npy", matrix)
    with pytest.raises(CohortError, match=r"2 files could be its connectome"):
        load_cohort(flat, tiny, "fdg")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("sc/{session}.csv", r"one \{participant\} or one \{scan\}, got 'sc/"),
        ("sc/{participant}_{participant}.csv", "must have one"),
        ("sc/{participant}_{run}.csv", "below the cohort's folder with"),
        ("../{participant}.csv", "below the cohort's folder with"),
        ("/data/{participant}.csv", "below the cohort's folder with"),
    ],
)
def test_templates_refused(tmp_path, template, message):
    with pytest.raises(ParameterError, match=message):
        find_flat_files(tmp_path, template)


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
    assert "PET: divided by the mean of Pons (7 of 7)" in cohort.notes
    with pytest.raises(CohortError, match=r"7 faults(.|\n)*say which to average"):
        load_cohort(study, tiny, "suvr")


def test_a_table_of_another_parcellation_is_told(flat):
    desikan = load_atlas("desikan82")
    heads = ["scan", *(f"{name}_thickness" for name in desikan.names)]
    (flat / "fdg.csv").write_text(",".join(heads) + "\np1," + "1," * 81 + "1\n")
    with pytest.raises(CohortError, match=r"desikan82, not of destrieux160.*recon-all"):
        load_cohort(flat, "destrieux160", "thickness")


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
                path = stats / (
                    f"{scan}_hemi-{side}_parcellation-{parcellation}_thickness.tsv"
                )
                names = atlas.regions["annot_name"][first : first + 74]
                write_clinica(path, names, values[person][first : first + 74])
    cohort = load_cohort(caps, atlas, "thickness")
    np.testing.assert_allclose(cohort.features[:, :148, 0], [*values.values()])
    assert "connectomes: only the upper triangle is filled: mirrored (3 of 3)" in (
        cohort.notes
    )
