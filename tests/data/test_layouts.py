"""All layouts of tables of regions: the same values, and the same faults refused."""

import re
from fnmatch import fnmatchcase

import numpy as np
import pytest

from brainlsap.data import load_cohort
from brainlsap.data.region_tables import SCAN_TABLE_LAYOUTS, _RowRegions
from brainlsap.exceptions import BrainlsapError, CohortError
from tests.data.conftest import NAMES
from tests.data.feature_formats import LAYOUTS, Row

SCANS = ("sub-01", "sub-02", "sub-03")
FAULTY_SCAN = "sub-02"


@pytest.fixture
def values():
    return np.random.default_rng(0).uniform(0.8, 1.9, (len(SCANS), len(NAMES)))


@pytest.fixture
def rows_by_scan(values):
    return {
        scan: [
            Row(region, f"{value:.6f}", 60 + i)
            for region, value in zip(NAMES, values[i], strict=True)
        ]
        for i, scan in enumerate(SCANS)
    }


@pytest.fixture
def load(write, tmp_path, tiny, matrix):
    def write_and_load(layout_name, rows_by_scan, cut_share=1.0):
        layout = LAYOUTS[layout_name]
        labels = "".join(
            f"{scan}\t{'AD' * (i % 2) or 'CN'}\n" for i, scan in enumerate(SCANS)
        )
        write("participants.tsv", "participant_id\tdiagnosis\n" + labels)
        layout.write(tmp_path, rows_by_scan)
        if cut_share < 1:
            path = find_table(tmp_path, layout)
            text = path.read_text()
            path.write_text(text[: int(cut_share * len(text))])
        return load_cohort(
            tmp_path, tiny, "fdg", connectome=matrix, reference=layout.reference
        )

    return write_and_load


def find_table(folder, layout):
    """Return the table that has the values of the faulty scan."""
    if layout.scan_table_layout:
        return folder / "fdg.tsv"
    return next((folder / FAULTY_SCAN / "pet").iterdir())


def lose_region(rows):
    return [*rows[:2], *rows[3:]]


def lose_end(rows):
    return rows[:-3]


def repeat_region(rows):
    return [*rows, rows[2]._replace(value="1.234")]


def write_text(rows):
    return [*rows[:2], rows[2]._replace(value="abc"), *rows[3:]]


def change_age(rows):
    return [*rows[:2], rows[2]._replace(age=99), *rows[3:]]


FAULTS = (lose_region, lose_end, repeat_region, write_text, change_age)


@pytest.mark.parametrize("layout_name", LAYOUTS)
def test_shuffled_rows_and_regions_give_the_same_values(
    load, rows_by_scan, values, layout_name
):
    rng = np.random.default_rng(1)
    order = rng.permutation(len(NAMES))
    shuffled = {
        SCANS[i]: [rows_by_scan[SCANS[i]][j] for j in order]
        for i in rng.permutation(len(SCANS))
    }
    cohort = load(layout_name, shuffled)
    assert cohort.table["participant"].tolist() == [*SCANS]
    np.testing.assert_allclose(cohort.features[:, :, 0], values, atol=1e-6)


@pytest.mark.parametrize(
    ("layout_name", "fault"),
    [
        (layout_name, fault)
        for layout_name, layout in LAYOUTS.items()
        for fault in FAULTS
        if fault is not change_age or layout.has_facts
    ],
)
def test_a_fault_of_one_scan_is_refused_with_its_file(
    load, rows_by_scan, tmp_path, layout_name, fault
):
    rows_by_scan[FAULTY_SCAN] = fault(rows_by_scan[FAULTY_SCAN])
    with pytest.raises(BrainlsapError) as error:
        load(layout_name, rows_by_scan)
    table_path = find_table(tmp_path, LAYOUTS[layout_name])
    assert table_path.name in str(error.value)
    if fault is write_text:
        assert "'abc'" in str(error.value)
        assert FAULTY_SCAN in str(error.value)


@pytest.mark.parametrize("layout_name", LAYOUTS)
def test_numbers_that_only_count_are_no_regions(
    load, rows_by_scan, tmp_path, layout_name
):
    """The last of the numbers is the label of a region, by chance."""
    for scan, rows in rows_by_scan.items():
        rows_by_scan[scan] = [
            row._replace(region=str(number)) for number, row in enumerate(rows, 12)
        ]
    with pytest.raises(BrainlsapError) as error:
        load(layout_name, rows_by_scan)
    assert find_table(tmp_path, LAYOUTS[layout_name]).name in str(error.value)


def test_a_new_layout_cannot_read_numbers_that_only_count(
    load, rows_by_scan, monkeypatch
):
    """A function of a layout that checks nothing itself."""

    def find_numbered_regions(_, scan_rows, atlas):
        numbers = scan_rows.text_table["region"]
        names = [atlas.name_by_label.get(number, number) for number in numbers]
        return _RowRegions(names, ["region"])

    monkeypatch.setitem(SCAN_TABLE_LAYOUTS, "numbered", find_numbered_regions)
    for scan, rows in rows_by_scan.items():
        rows_by_scan[scan] = [
            row._replace(region=str(number)) for number, row in enumerate(rows, 12)
        ]
    with pytest.raises(CohortError) as error:
        load("long", rows_by_scan)
    assert "few regions" in {finding.kind for finding in error.value.findings}


@pytest.mark.parametrize("layout_name", LAYOUTS)
def test_an_unknown_region_is_told(load, rows_by_scan, values, layout_name):
    for scan, rows in rows_by_scan.items():
        rows_by_scan[scan] = [*rows, Row("lh_unknown9", "1.5", rows[0].age)]
    if LAYOUTS[layout_name].scan_table_layout is None:
        with pytest.raises(BrainlsapError, match="lh_unknown9"):
            load(layout_name, rows_by_scan)
        return
    cohort = load(layout_name, rows_by_scan)
    np.testing.assert_allclose(cohort.features[:, :, 0], values, atol=1e-6)
    assert any("lh_unknown9" in note for note in cohort.notes)


@pytest.mark.parametrize("cut_share", [0.5, 0.7])
@pytest.mark.parametrize("layout_name", LAYOUTS)
def test_a_table_that_was_cut_short_is_refused(
    load, rows_by_scan, tmp_path, layout_name, cut_share
):
    with pytest.raises(BrainlsapError) as error:
        load(layout_name, rows_by_scan, cut_share)
    assert find_table(tmp_path, LAYOUTS[layout_name]).name in str(error.value)


@pytest.mark.parametrize("layout_name", LAYOUTS)
def test_files_have_the_names_that_the_documentation_gives(
    rows_by_scan, tmp_path, layout_name
):
    patterns = re.findall("``(.+?)``", LAYOUTS[layout_name].docs_phrase)
    LAYOUTS[layout_name].write(tmp_path, rows_by_scan)
    name = find_table(tmp_path, LAYOUTS[layout_name]).name
    is_named = any(fnmatchcase(name, pattern) for pattern in patterns)
    assert is_named or not patterns, (
        f"write {layout_name} into a file of a name like {' or '.join(patterns)}, "
        f"not {name}"
    )


def test_every_layout_of_tables_of_many_scans_has_its_tests():
    tested = {layout.scan_table_layout for layout in LAYOUTS.values()} - {None}
    assert tested == {*SCAN_TABLE_LAYOUTS}, "add a writer to LAYOUTS of feature_formats"
