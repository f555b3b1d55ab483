"""Whatever is done to a file: the right values or a clear error, never a crash.

Examples are few and the same on every run; BRAINLSAP_EXAMPLES=400 in the environment
makes as many and other ones.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.connectomes import read_connectome
from brainlsap.data.feature_tables import read_feature_table
from brainlsap.data.features import read_feature
from brainlsap.data.freesurfer_text import aparc_text, aseg_text
from brainlsap.exceptions import BrainlsapError
from tests.data import feature_formats, formats
from tests.data.conftest import NAMES, SIDES

MANY = os.environ.get("BRAINLSAP_EXAMPLES")
few = settings(
    max_examples=int(MANY or 12),
    deadline=None,
    derandomize=MANY is None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TINY = Atlas(
    "tiny",
    pd.DataFrame(
        {
            "name": NAMES,
            "freesurfer_id": [1101, 1102, 1103, 2101, 2102, 2103, 18],
            "hemisphere": SIDES,
            "structure": ["cortex"] * 6 + ["subcortex"],
            "short_name": NAMES,
        }
    ),
)
DESIKAN = load_atlas("desikan82")
W = np.triu(np.arange(11.0, 60).reshape(7, 7), 1)
W = W + W.T
VALUES = np.array([1.25, 2.5, 3.75, 4.125, 5.5, 6.25, 7.75])


def write_named_text(path, matrix, names):
    lines = [
        ",".join([name, *(f"{v:g}" for v in row)])
        for name, row in zip(names, matrix, strict=True)
    ]
    path.write_text("\n".join([",".join(["", *names]), *lines]) + "\n")
    return path


def write_gii_with_labels(path, matrix, names):
    formats.write_gii(path, matrix)
    path.with_name("labels.txt").write_text("\n".join(names) + "\n")
    return path


def write_npy_with_labels(path, matrix, names):
    np.save(path, matrix)
    path.with_name("labels_list.txt").write_text("\n".join(names) + "\n")
    return path


MATRICES = {
    "c.csv": write_named_text,
    "c.gii": write_gii_with_labels,
    "c.h5": formats.write_h5,
    "c.npy": write_npy_with_labels,
    "c.npz": formats.write_npz,
    "d.mat": lambda p, M, n: formats.write_dsi_studio(p, {"count": M}, n),
    "q.mat": lambda p, M, n: formats.write_qsirecon(p, {"radius2_count": M}, n),
    "r.tsv": lambda p, M, n: formats.write_relmat(p.parent, M, n),
    "r.gz": lambda p, M, n: formats.write_relmat(p.parent, M, n, packed=True),
}


def write_scan_table(path, names, values):
    heads = ",".join(["participant_id", *(f"{name}_suvr" for name in names), "age"])
    cells = ",".join(["s1", *map(str, values), "70"])
    path.write_text(f"{heads}\n{cells}\n")
    return path


TABLES = {
    "regions.tsv": lambda p, n, v: feature_formats.write_clinica(
        p, n, v, ("region", "suvr")
    ),
    "clinica.tsv": feature_formats.write_clinica,
    "gtm.stats.dat": feature_formats.write_gtm_stats,
    "x_tacs.tsv": lambda p, n, v: feature_formats.write_time_series(
        p, [*n, "Pons"], [*v, 2.0]
    ),
    "wide.csv": write_scan_table,
}
PET = {"x_tacs.tsv": {"frames": (20, 40), "reference": "Pons"}}


def read_table(path):
    values = read_feature(path, "suvr", TINY, **PET.get(path.name, {})).values
    return values * 2 if path.name in PET else values


def outcome(read, path):
    """Return what was read, or None where it was refused with words."""
    try:
        return read(path)
    except BrainlsapError:
        return None


def read_matrix(path):
    return read_connectome(path, TINY).matrix


@pytest.mark.parametrize("name", MATRICES)
@few
@given(order=st.permutations(range(7)))
def test_any_order_of_named_rows_gives_the_same_matrix(name, order):
    with tempfile.TemporaryDirectory() as folder:
        names = [NAMES[i] for i in order]
        path = MATRICES[name](Path(folder) / name, W[np.ix_(order, order)], names)
        np.testing.assert_array_equal(read_matrix(path), W)


@pytest.mark.parametrize("name", TABLES)
@few
@given(order=st.permutations(range(7)))
def test_any_order_of_named_values_gives_the_same(name, order):
    with tempfile.TemporaryDirectory() as folder:
        names = [NAMES[i] for i in order]
        path = TABLES[name](Path(folder) / name, names, VALUES[list(order)])
        np.testing.assert_allclose(read_table(path), VALUES)


@pytest.mark.parametrize("name", MATRICES)
@few
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_cut_matrix_is_refused_or_right(name, share):
    with tempfile.TemporaryDirectory() as folder:
        path = MATRICES[name](Path(folder) / name, W, NAMES)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        found = outcome(read_matrix, path)
        assert found is None or np.array_equal(found, W)


@pytest.mark.parametrize("name", TABLES)
@few
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_cut_table_is_refused_or_right(name, share):
    """All cuts but one inside the last number, which no text can show.

    A cut before the subcortex leaves a table such as surface tools write: what is
    left is right, the rest is not measured.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = TABLES[name](Path(folder) / name, NAMES, VALUES)
        whole = path.read_bytes()
        end = len(whole.rstrip()) - len(whole.split()[-1])
        path.write_bytes(whole[: int(share * end)])
        found = outcome(read_table, path)
        if found is not None:
            there = ~np.isnan(found)
            assert there[:6].all()
            np.testing.assert_allclose(found[there], VALUES[there])


@pytest.mark.parametrize("name", MATRICES)
@few
@given(data=st.data())
def test_no_changed_byte_of_a_matrix_crashes(name, data):
    with tempfile.TemporaryDirectory() as folder:
        path = MATRICES[name](Path(folder) / name, W, NAMES)
        path.write_bytes(changed(data, path.read_bytes()))
        found = outcome(read_matrix, path)
        assert found is None or found.shape == W.shape


@pytest.mark.parametrize("name", TABLES)
@few
@given(data=st.data())
def test_no_changed_byte_of_a_table_crashes(name, data):
    with tempfile.TemporaryDirectory() as folder:
        path = TABLES[name](Path(folder) / name, NAMES, VALUES)
        path.write_bytes(changed(data, path.read_bytes()))
        found = outcome(read_table, path)
        assert found is None or found.shape == VALUES.shape


def changed(data, whole):
    """Replace, drop or double a few bytes.

    The place is a share: files with the hour in them are not always of one length.
    """
    place = int(data.draw(st.floats(0, 1, exclude_max=True)) * len(whole))
    length = data.draw(st.integers(0, 8))
    new = data.draw(st.binary(max_size=8))
    return whole[:place] + new + whole[place + length :]


@pytest.mark.parametrize("half", [True, False])
@few
@given(data=st.data())
def test_a_changed_digit_changes_its_cell_and_no_other(half, data):
    with tempfile.TemporaryDirectory() as folder:
        matrix = np.triu(W) if half else W
        path = write_named_text(Path(folder) / "c.csv", matrix, NAMES)
        i = data.draw(st.integers(0, 5))
        j = data.draw(st.integers(i + 1, 6))
        lines = path.read_text().splitlines()
        cells = lines[1 + i].split(",")
        cells[1 + j] = cells[1 + j][:-1] + str((int(cells[1 + j][-1]) + 1) % 10)
        lines[1 + i] = ",".join(cells)
        path.write_text("\n".join(lines) + "\n")
        found = outcome(read_matrix, path)
        if not half:
            assert found is None
            return
        places = np.argwhere(found != W).tolist()
        assert places == [[i, j], [j, i]]


@few
@given(place=st.integers(0, 6), value=st.floats(0.01, 99).map(lambda v: round(v, 3)))
def test_a_changed_value_changes_its_region_and_no_other(place, value):
    for name, write in TABLES.items():
        with tempfile.TemporaryDirectory() as folder:
            values = VALUES.copy()
            values[place] = value
            path = write(Path(folder) / name, NAMES, values)
            np.testing.assert_allclose(read_table(path), values, rtol=1e-5)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", " "])
@few
@given(
    keep=st.integers(0, 6),
    what=st.sampled_from(["drop row", "double row", "drop cell", "double cell"]),
)
def test_lost_or_doubled_parts_of_text_are_refused(delimiter, keep, what):
    with tempfile.TemporaryDirectory() as folder:
        rows = [[f"{v:g}" for v in row] for row in W]
        if "row" in what:
            rows[keep : keep + 1] = [rows[keep]] * (2 if "double" in what else 0)
        else:
            row = rows[keep]
            row[3:4] = [row[3]] * (2 if "double" in what else 0)
        path = Path(folder) / "c.txt"
        path.write_text("".join(delimiter.join(row) + "\n" for row in rows))
        assert outcome(read_matrix, path) is None


@few
@given(share=st.floats(0, 1, exclude_max=True), which=st.integers(0, 2))
def test_cut_stats_are_refused_or_right(share, which):
    values = np.random.default_rng(0).uniform(2, 3, len(DESIKAN)).round(3)
    measured = {"thickness": values, "volume": values * 1000}
    with tempfile.TemporaryDirectory() as folder:
        stats = Path(folder) / "stats"
        stats.mkdir()
        texts = {
            "lh.aparc.stats": aparc_text(DESIKAN, "L", "s", measured),
            "rh.aparc.stats": aparc_text(DESIKAN, "R", "s", measured),
            "aseg.stats": aseg_text(DESIKAN, "s", values * 1000),
        }
        for number, (name, text) in enumerate(texts.items()):
            n = int(share * (len(text) - 30)) if number == which else len(text)
            (stats / name).write_text(text[:n])
        found = outcome(lambda p: read_feature(p, "volume", DESIKAN).values, stats)
        assert found is None or np.allclose(found, values * 1000)


@few
@given(order=st.permutations(range(12)), data=st.data())
def test_tables_of_scans_in_any_order_of_columns(order, data):
    heads = ["participant_id", *(f"{name}_thickness" for name in NAMES[:6])]
    heads += ["age", "sex", "eTIV", "lh_MeanThickness_thickness", "site"]
    cells = ["s1", *map(str, VALUES[:6]), "70", "F", "1500000", "2.5", "a"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        text = (
            "\n".join(",".join(row[i] for i in order) for row in (heads, cells)) + "\n"
        )
        path.write_text(text)
        found = read_feature_table(path, TINY)
        np.testing.assert_array_equal(found.to_numpy(), [VALUES[:6]])
        path.write_bytes(changed(data, text.encode()))
        outcome(lambda p: read_feature_table(p, TINY), path)


@few
@given(data=st.data())
def test_no_changed_byte_of_a_workbook_crashes(data):
    openpyxl = pytest.importorskip("openpyxl")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.xlsx"
        book = openpyxl.Workbook()
        book.active.append(["participant_id", *NAMES])
        book.active.append(["s1", *VALUES])
        book.save(path)
        path.write_bytes(changed(data, path.read_bytes()))
        outcome(lambda p: read_feature_table(p, TINY, "suvr"), path)


@few
@given(data=st.data())
def test_no_changed_byte_of_surface_files_crashes(data):
    with tempfile.TemporaryDirectory() as folder:
        feature_formats.write_vertices(Path(folder), DESIKAN)
        name = data.draw(st.sampled_from(["surf/lh.thickness", "label/rh.aparc.annot"]))
        path = Path(folder) / name
        path.write_bytes(changed(data, path.read_bytes()))
        outcome(lambda p: read_feature(p, "thickness", DESIKAN).values, Path(folder))
