"""Tables of text, and tables of regions in every layout: what each column means."""

import ast
import datetime as dt
import inspect
import re
import sys

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import load_atlas
from brainlsap.data import measures, region_tables
from brainlsap.data.measures import get_measure_record
from brainlsap.data.region_tables import (
    read_region_values_and_notes,
    read_table_contents,
    unknown_names_sentence,
)
from brainlsap.data.tables import (
    TABLE_SUFFIXES,
    parse_number_array,
    read_lines,
    read_numbered_lines,
    read_table,
    read_table_columns,
    write_tsv,
)
from brainlsap.exceptions import FileFormatError, RegionNameError
from tests.conftest import raises_kind
from tests.data import feature_formats as formats

ATLAS, DESIKAN = load_atlas("destrieux160"), load_atlas("desikan82")
CORTEX = ["lh_a", "lh_b", "lh_c", "rh_a", "rh_b", "rh_c"]


def lines_of(rows, delimiter=","):
    return "".join(delimiter.join(map(str, row)) + "\n" for row in rows)


# ---- tables of text -----------------------------------------------------------------


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", " "])
@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".txt"])
def test_delimiter_is_looked_for(write, delimiter, suffix):
    rows = [["id", "age", "sex"], ["a", "070", "F"], ["b", "n/a", "M"]]
    table = read_table(write(f"t{suffix}", lines_of(rows, delimiter)))
    assert table.columns.tolist() == ["id", "age", "sex"]
    assert table.to_numpy().tolist() == [["a", "070", "F"], ["b", None, "M"]]


def test_comments_quotes_marks_and_line_ends(write):
    text = '\ufeff# made by x\r\nid , site\r\n\r\n a ,"Berlin, Mitte"\r\nb,NULL\r\n'
    records = read_table(write("t.csv", text)).to_dict("records")
    expected = [{"id": "a", "site": "Berlin, Mitte"}, {"id": "b", "site": None}]
    assert records == expected
    one = read_table(write("one.csv", "name\nLeft Amygdala\nVermis\n"))
    assert one.to_numpy().tolist() == [["Left Amygdala"], ["Vermis"]]


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("# only comments\n", "empty table", {}),
        ("a,b,c\n1,2,3\n1,2\n", "number of cells", {"line": 3}),
        ("a,b,a,b,c\n1,2,3,4,5\n", "repeated heads", {"heads": ("a", "b")}),
        (",Clinic A,\nid,label,age\n", "repeated heads", {"heads": ("",)}),
        ("a,b\n1,\0\n", "zero bytes", {"line": 2}),
        ('a,b\n"1,2\n', "open quotation mark", {"line": 2}),
    ],
)
def test_tables_refused(write, text, kind, values):
    with raises_kind(kind, "t.csv", **values):
        read_table(write("t.csv", text))


# ---- every line is a row, or the table is refused with the line ---------------------


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["x", '"', "y", '"', "z"], ["x", '"', "y", '"', "z"]),
        (["x", '"probable', "y", "z"], ["x", '"probable', "y", "z"]),
        (['5" coil', 'a "b" c', '"a"b', '"'], ['5" coil', 'a "b" c', '"a"b', '"']),
        (['"R, ""x"""', '"y"', '""', "z"], ['R, "x"', "y", None, "z"]),
    ],
)
@pytest.mark.parametrize("place", [0, 1])
def test_a_quotation_mark_swallows_no_line_of_a_tsv(write, cells, expected, place):
    rows = [[f"s{i}", cell] for i, cell in enumerate(cells)]
    rows = [row[::-1] if place == 0 else row for row in rows]
    heads = ["note", "code"] if place == 0 else ["code", "note"]
    table = read_table(write("t.tsv", lines_of([heads, *rows], "\t")))
    assert table["note"].tolist() == expected
    assert table["code"].tolist() == [f"s{i}" for i in range(len(cells))]


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize(
    ("rows", "line"),
    [
        # a mark closes in the same column, some lines below
        (["s1|70|x", 's2|71|"', "s3|72|y", 's4|73|"', "s5|74|z"], 3),
        (["s1|70|x", 's2|71|"', 's3|72|"', "s5|74|z"], 3),
        (['s1|"|x', 's2|"|y', "s3|72|z"], 2),
        (['"|70|x', '"|71|y', "s3|72|z"], 2),
        # no mark closes, or text follows the one that does
        (["s1|70|x", 's2|71|"see', "s3|72|y"], 3),
        (["s1|70|x", 's2|71|"see', 's3|72|"probable" AD', "s4|72|y"], 3),
        # a footnote closes it
        (["s1|70|x", 's2|71|"see', "s3|72|y", '* the "end"'], 3),
        (["s1|70|x", 's2|71|"see', "s3|72|y", '* not sure"'], 3),
    ],
)
def test_a_quotation_mark_over_lines_of_a_csv_is_refused(write, rows, line, delimiter):
    text = "\n".join(["code|age|note", *rows, ""]).replace("|", delimiter)
    with raises_kind("open quotation mark", "t.csv", line=line):
        read_table(write("t.csv", text))


def test_a_cell_of_several_lines_of_a_csv_is_read(write):
    text = 'code,note,age\ns1,"fell,\n\nno injury, ""mild""",70\ns2,5" coil,71\n'
    read = [["s1", 'fell,  no injury, "mild"', "70"], ["s2", '5" coil', "71"]]
    assert read_table(write("t.csv", text)).to_numpy().tolist() == read
    text = 'note,code\n"fell\nno injury",s1\nx,s2\n'
    read = [["fell no injury", "s1"], ["x", "s2"]]
    assert read_table(write("t.csv", text)).to_numpy().tolist() == read


@pytest.mark.parametrize("delimiter", ["\t", ",", ";", " "])
def test_only_leading_lines_are_comments(write, delimiter):
    comment = "# command_history: a, b\n# made by x\n"
    rows = [["dx", "id"], ["CN", "s1"], ["#N/A", "s2"], ["#REF!", "s3"]]
    table = read_table(write("t.csv", comment + lines_of(rows, delimiter)))
    assert table.to_numpy().tolist() == rows[1:]
    rows = [["id", "dx"], ["#01", "CN"], ["#02", "AD"]]
    table = read_table(write("t.csv", comment + lines_of(rows, delimiter)))
    assert table.to_numpy().tolist() == rows[1:]
    # one row alone may have been taken out by its mark
    rows[2][0] = "02"
    with raises_kind("comment among rows", line=4):
        read_table(write("t.csv", comment + lines_of(rows, delimiter)))


@pytest.mark.parametrize("delimiter", ["\t", ",", " "])
@pytest.mark.parametrize("above", ["", "# made by x\n"])
def test_a_header_may_begin_with_a_hash(write, delimiter, above):
    for heads in (["#participant_id", "group"], ["# label", "participant_id"]):
        rows = [heads, ["sub-01", "patient"], ["sub-02", "control"]]
        text = above + lines_of(rows, delimiter)
        table = read_table(write("t.tsv", text))
        assert table.to_numpy().tolist() == rows[1:]
        assert list(table) == [heads[0].lstrip("# "), heads[1]]
    one = read_table(write("one.tsv", f"{above}#participant_id\nsub-01\nsub-02\n"))
    assert one.to_dict("list") == {"participant_id": ["sub-01", "sub-02"]}
    table = read_table(write("t.csv", "# Berlin, 2006\nid,age\ns1,70\n"))
    assert table.to_dict("list") == {"id": ["s1"], "age": ["70"]}
    with raises_kind("two headers", line=2):
        read_table(write("t.csv", "#x,y\nfoo,bar\n1,2\n"))


def test_what_spreadsheets_and_r_write_around_a_table(write):
    expected = [["s1", "1,5"], ["s2", "2"]]
    for text in (
        "sep=;\nid;x\ns1;1,5\ns2;2\n",
        '"sep=|"\nid|x\ns1|1,5\ns2|2\n',
        'id,x,,\n,,,\ns1,"1,5",,\n\n , ,,\ns2,2,,\n,,,\n',
        "id\tx\t\ns1\t1,5\t\n\t\t\ns2\t2\t\n",
    ):
        table = read_table(write("t.csv", text))
        assert list(table) == ["id", "x"]
        assert table.to_numpy().tolist() == expected
    for text in (
        '"a" "b"\n"sub-01" 1.5 "x y"\n"sub-02" 3 "z"\n',
        '"a"\t"b"\n"sub-01"\t1.5\t"x y"\n"sub-02"\t3\t"z"\n',
    ):
        table = read_table(write("t.txt", text))
        assert table.to_dict("list") == {
            "": ["sub-01", "sub-02"],
            "a": ["1.5", "3"],
            "b": ["x y", "z"],
        }


@pytest.mark.parametrize(
    "text",
    [
        "participant_id,age\ns1,70,5\ns2,71,5\n",  # decimal commas
        "code,dx,age\nP1,CN,70,5\nP2,AD,71,5\n",
        "id,age\ns1,70,\ns2,71,\n",
        "Our patients, 2006\nid,dx,age\ns1,CN,70\n",
        "participant_id\tage\na\ts1\t70\nb\ts2\t71\n",
    ],
)
def test_a_cell_more_than_heads_is_not_always_a_name_of_r(write, text):
    with raises_kind("cells beyond the header", line=1):
        read_table(write("t.csv", text))


@pytest.mark.parametrize(
    ("text", "kind", "line", "advice"),
    [
        ("id,x\ns1,1\n# out\ns2,2\n", "number of cells", 3, "delete this line"),
        ("id,x\n\ns1,1\ns2\n", "number of cells", 4, ""),
        ("id,v,x\ns1,4,394,1\ns2,5,1\n", "number of cells", 2, "without a comma"),
        ("id\tx\ns1\t1\ns2,2\n", "number of cells", 3, "by commas"),
        ('id\tx\ns1\t"a\nb"\n', "number of cells", 3, "opens a quotation mark"),
        ("participant_id\ns1,70\ns2,71\n", "undivided header", 1, ""),
        ("id,x\ns1,1\nid,x\ns2,2\n", "repeated header", 3, ""),
    ],
)
def test_the_line_at_fault_is_named(write, text, kind, line, advice):
    with raises_kind(kind, "t.csv", line=line) as caught:
        read_table(write("t.csv", text))
    assert f"line {line} " in str(caught.value) or f"(line {line})" in str(caught.value)
    assert advice in str(caught.value)


def test_files_refused(tmp_path):
    with raises_kind("no such file", "absent.tsv"):
        read_table(tmp_path / "absent.tsv")
    with raises_kind("unreadable", tmp_path.name):
        read_table(tmp_path)
    (tmp_path / "latin.csv").write_bytes(b"name\nK\xf6ln\n")
    with raises_kind("not UTF-8", "latin.csv"):
        read_table(tmp_path / "latin.csv")


def test_numbers_and_covariates(write):
    path = write("t.csv", "a,b,c\n1,2.5,x\nn/a,-3e2,2·5\n")
    table = read_table(path)
    np.testing.assert_array_equal(
        parse_number_array(path, table[["a", "b"]]), [[1, 2.5], [np.nan, -300]]
    )
    with raises_kind("not numbers", "t.csv", cells=("x", "2·5")) as caught:
        parse_number_array(path, table)
    assert "'2·5' in row 2 below the header, column 'c'" in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["4,394", "512"], "'4,394' may be 4394 or 4.394"),
        (["-4,394"], "'-4,394' may be -4394 or -4.394"),
        (["4,394", "1,234,567"], "thousands without separators, and decimals with"),
        (["4.394,0"], "thousands without separators, and decimals with a point"),
        (["4,394.5"], "thousands without separators, and decimals with a point"),
        (["4'394"], "thousands without separators"),
        (["4\u2019394"], "thousands without separators"),
        (["4\u202f394", "12 345,5"], "thousands without separators"),
        (["1.234.567"], "thousands without separators"),
        (["4,394", "2,45"], r"with a point\. Read the file in pandas with decimal="),
        (["2,5"], r"with a point\. Read the file in pandas with decimal="),
        (["2,5", "3", "1,75"], r"all numbers have decimal commas, for example '2,5'"),
        (["2,5", "3.5"], r"1 cells must be numbers or n/a: '2,5'"),
        (["#DIV/0!", "2"], "formula failed in the spreadsheet; write n/a"),
        (["12 mm"], r"column 'x'\.$"),
    ],
)
def test_numbers_that_are_written_otherwise_are_told(write, cells, told):
    path = write("t.tsv", lines_of([["id", "x"], *([f"s{c}", c] for c in cells)], "\t"))
    with pytest.raises(FileFormatError, match=told):
        parse_number_array(path, read_table(path)[["x"]])


def test_what_is_written_is_read_again(tmp_path):
    table = pd.DataFrame({"label": ["=1+1", None, "a\tb"], "age": [70.5, 71, 72]})
    read = [["=1+1", "70.5"], [None, "71.0"], ["a\tb", "72.0"]]
    for name, head in (("t.tsv", "label\tage\n"), ("t.csv", "label,age\n")):
        path = write_tsv(table, tmp_path / name)
        assert path.read_text().startswith(head)
        assert read_table(path).to_numpy().tolist() == read


@pytest.fixture
def sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")

    def make(*rows):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        book.create_sheet("second").append(["not", "read"])
        book.save(tmp_path / "t.xlsx")
        return tmp_path / "t.xlsx"

    return make


def test_workbooks_are_read_as_text(sheet):
    """J14: the content of .xlsx is read as that of .tsv is."""
    path = sheet(
        ["Our patients, 2006"],  # a title
        ["id", "age", "date", "note", None],
        ["sub-01", 70.0, dt.datetime(2006, 4, 18), None],
        [],
        [" sub-02 ", 71.5, dt.datetime(2006, 4, 18, 9, 30), True],
    )
    assert read_table(path).to_numpy().tolist() == [
        ["sub-01", "70", "2006-04-18", None],
        ["sub-02", "71.5", "2006-04-18T09:30:00", "True"],
    ]


def test_no_row_of_a_workbook_vanishes(sheet):
    path = sheet(["#participant_id", "dx"], ["s1", "#N/A"], ["s2", "None"])
    columns = read_table_columns(path)
    assert columns == {"participant_id": ["s1", "s2"], "dx": ["#N/A", None]}
    assert columns.missing_words_by_column == {"dx": {1: "None"}}
    with raises_kind("comment among rows", line=3):
        read_table(sheet(["id", "dx"], ["s1", "CN"], ["#s2", "AD"]))
    # a known head with nothing beside it is no title
    assert read_table_columns(sheet(["id", None], ["s1", 3])) == {
        "id": ["s1"],
        "": ["3"],
    }


def test_workbooks_refused(sheet, tmp_path, monkeypatch):
    with raises_kind("empty table", "t.xlsx"):
        read_table(sheet())
    (tmp_path / "bad.xlsx").write_bytes(b"PK not a workbook")
    with raises_kind("unreadable", "bad.xlsx"):
        read_table(tmp_path / "bad.xlsx")
    path = sheet(["a"], [1])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(FileFormatError, match=r"Excel workbook: .*openpyxl(?!.*cut)"):
        read_table(path)


# ---- a row for every scan -----------------------------------------------------------


@pytest.fixture
def scans(write, tiny):
    def read(heads, *rows, name="t.csv", delimiter=",", atlas=tiny):
        return read_table_contents(
            write(name, lines_of([heads, *rows], delimiter)), atlas
        )

    return read


def wide(table, n_rois):
    """Return the values of a table as {measure: array of shape (n_rows, n_rois)}."""
    found = {}
    for (measure, place), column in table.values_by_measure_region.items():
        array = found.setdefault(
            measure, np.full((len(table.scan_identities), n_rois), np.nan)
        )
        array[:, place] = column
    return found


@pytest.mark.parametrize("suffix", ["", "_thickness", ".thickness", "_ThickAvg"])
@pytest.mark.parametrize("seed", range(2))
def test_columns_are_regions_in_any_order(scans, suffix, seed):
    rng = np.random.default_rng(seed)
    columns = {f"{name}{suffix}": i for i, name in enumerate(CORTEX)}
    columns |= {"participant_id": "s1", "VISCODE": "m06", "age": 70, "eTIV": 15}
    heads = rng.permutation(list(columns)).tolist()
    table = scans(heads, [columns[head] for head in heads])
    values = wide(table, 7)["thickness" if suffix else ""]
    np.testing.assert_array_equal(values[0], [*range(6), np.nan])
    assert [name[:2] for name in table.scan_identities] == [("s1", "m06")]
    assert table.text_table.iloc[0].to_dict() == {"age": "70", "eTIV": "15"}


@pytest.mark.parametrize("delimiter", [",", "\t", " "])
def test_aparcstats2table(scans, delimiter):
    heads = ["lh.aparc.a2009s.thickness", *(f"lh_{x}_thickness" for x in "abc")]
    heads += ["lh_MeanThickness_thickness", "BrainSegVolNotVent", "eTIV"]
    row = ["/data/sub-01_ses-M00/", 2.1, 2.2, 2.3, 2.5, 1e6, 1.5e6]
    table = scans(heads, row, name="lh.txt", delimiter=delimiter)
    assert [name[:2] for name in table.scan_identities] == [("sub-01", "ses-M00")]
    assert table.excluded_column_names == (
        "lh_MeanThickness_thickness",
        "BrainSegVolNotVent",
    )
    assert list(table.text_table) == ["eTIV"]
    np.testing.assert_array_equal(wide(table, 3)["thickness"], [[2.1, 2.2, 2.3]])


def test_the_head_or_the_file_says_side_and_measure(scans):
    table = scans(["rh.aparc.volume", "a", "b", "c"], ["s1", 1, 2, 3])
    assert list(table.values_by_measure_region) == [
        ("volume", 3),
        ("volume", 4),
        ("volume", 5),
    ]
    heads = ["Measure:volume", "Left-Amygdala", "Left-Lateral-Ventricle", "CSF"]
    assert list(scans(heads, ["s1", 1500, 9, 9]).values_by_measure_region) == [
        ("volume", 6)
    ]
    named = scans(["id", "lh_a", "lh_b_meancurv"], ["s", 1, 2], name="my_area.csv")
    assert list(named.values_by_measure_region) == [("area", 0), ("other", 1)]


def test_every_doubled_region_is_named_at_once(scans):
    """J25: one pair a run, twelve runs."""
    heads = ["id", "lh_a", "lh.a", "rh_b", "R b", "rh_b.1", "lh_c"]
    message = r"2 regions .* 'lh_a' and 'lh.a' \(lh_a\), 'rh_b' and 'R b' and 'rh_b.1'"
    with pytest.raises(FileFormatError, match=message):
        scans(heads, ["s1", 1, 2, 3, 4, 5, 6])


def test_copies_and_regions_without_values_are_named(scans):
    """J25: columns `.1` of zeros became covariates; a region of zeros was not named."""
    heads = ["id", "lh_a.1", "lh_a", "lh_b", "lh_b.1", "lh_c", "age", "CSF.1"]
    table = scans(heads, ["s1", 0, 5, 2, 2, 0, 70, 3], ["s2", 0, 6, 4, 4, 0, 71, 3])
    assert list(table.text_table) == ["age", "CSF.1"]
    assert wide(table, 3)[""].tolist() == [[5, 2, 0], [6, 4, 0]]
    assert "2 columns with the values of another column, or with 0" in str(
        table.notes[0]
    )
    assert "lh_a.1, lh_b.1" in str(table.notes[0])
    assert "1 region is 0 in every row; write n/a for" in str(table.notes[1])


def test_scan_tables_refused(scans, tiny):
    with pytest.raises(
        FileFormatError,
        match=r"no column was recognised as the column of participant IDs.*id_column=",
    ):
        scans(["age", "lh_a"], [70, 2])
    with pytest.raises(FileFormatError, match=r"id must contain .* row 3 \(empty\)"):
        scans(["id", "lh_a"], ["s1", 2], ["n/a", 3])
    with raises_kind("not numbers", cells=("x", "y")):
        scans(["id", "lh_a"], ["s1", "x"], ["s2", "y"])
    with raises_kind("not numbers", cells=("1,459",)):
        scans(["Patient ID", "lh_a"], ["s1", '"1,459"'])
    table = scans(["id", "lh_q", "lh_a"], ["s1", 1, "n/a"])
    assert table.unmatched_region_names == ("lh_q",)
    message = unknown_names_sentence(table.unmatched_region_names, tiny)
    assert "atlas tiny: 'lh_q'" in message
    assert np.isnan(wide(table, 1)[""]).all()
    names = [f"{name}_suvr" for name in DESIKAN.names]
    table = scans(["id", *names], ["s", *range(82)], atlas=ATLAS)
    message = unknown_names_sentence(table.unmatched_region_names, ATLAS)
    assert "belong to desikan82, not to destrieux160. Make the values again" in message


def test_adni_s_tables(scans):
    # UCSF, published: 24 left entorhinal, 83 right; 29 and 88 hippocampus; 129 insula
    published = {24: "ctx-lh-entorhinal", 83: "ctx-rh-entorhinal"}
    published |= {51: "ctx-lh-precentral", 110: "ctx-rh-precentral"}
    published |= {59: "ctx-lh-supramarginal", 118: "ctx-rh-supramarginal"}
    published |= {129: "ctx-lh-insula", 130: "ctx-rh-insula", 13: "ctx-lh-bankssts"}
    below = {29: "Left-Hippocampus", 88: "Right-Hippocampus", 120: "Right-Thalamus"}
    columns = {"RID": "4001", "VISCODE": "v03", "VISCODE2": "bl", "ST10CV": 1500.0}
    columns |= {f"ST{n}TA": n / 100 for n in published} | {"ST24TS": 0.5}
    columns |= {f"ST{n}SV": n for n in below} | {"STATUS": "complete"}
    table = scans(list(columns), list(columns.values()), atlas=DESIKAN)
    values = wide(table, 82)
    for measure, known in (("thickness", published), ("volume", below)):
        scale = 100 if measure == "thickness" else 1
        found = {DESIKAN.names[i]: values[measure][0, i] for i in range(82)}
        for number, name in known.items():
            assert found.pop(name) == number / scale
        assert np.isnan(list(found.values())).all()
    assert table.scan_identities[0].session == "bl"
    # UC Berkeley: CTX_LH_..._SUVR and volumes beside them
    upper = [name.upper().replace("-", "_") for name in DESIKAN.names]
    heads = ["RID", *(f"{n}_SUVR" for n in upper), *(f"{n}_VOLUME" for n in upper)]
    table = scans([*heads, "BRAAK1_SUVR"], ["4", *range(164), 7], atlas=DESIKAN)
    np.testing.assert_array_equal(wide(table, 82)["suvr"][0], np.arange(82))


# Fields of UK Biobank, copied from its Data Showcase: number, title, where it goes.
UKBIOBANK_FIELDS = """
    27329; Area of G+S-frontomargin (left hemisphere); area; lh_G_and_S_frontomargin
    27402; Area of S-temporal-transverse (left hemisphere); area; lh_S_temporal_transverse
    27414; Mean thickness of G-front-inf-Opercular (left hemisphere); thickness; lh_G_front_inf-Opercular
    27432; Mean thickness of G-precuneus (left hemisphere); thickness; lh_G_precuneus
    27458; Mean thickness of S-intrapariet+P-trans (left hemisphere); thickness; lh_S_intrapariet_and_P_trans
    27654; Mean thickness of G-precuneus (right hemisphere); thickness; rh_G_precuneus
    27688; Mean thickness of S-orbital-H-Shaped (right hemisphere); thickness; rh_S_orbital-H_Shaped
    27493; Volume of G-Ins-lg+S-cent-ins (left hemisphere); volume; lh_G_Ins_lg_and_S_cent_ins
    27772; Volume of S-temporal-transverse (right hemisphere); volume; rh_S_temporal_transverse
    26562; Volume of Hippocampus (left hemisphere); volume; Left-Hippocampus
    26590; Volume of Caudate (right hemisphere); volume; Right-Caudate
"""  # noqa: E501
# Regions of other parcellations, or that atlases leave out.
OTHER_UKBIOBANK_TITLES = (
    "Mean thickness of precuneus (left hemisphere)",
    "Volume of Whole-hippocampus (left hemisphere)",
    "Area of TotalSurface (right hemisphere)",
)


@pytest.mark.parametrize(
    "head",
    [
        *("{field}-{visit}.0", "f.{field}.{visit}.0", "p{field}_i{visit}"),
        *("participant.p{field}_i{visit}", "{title} | Instance {visit}"),
    ],
)
@pytest.mark.parametrize("atlas", ["destrieux160", "destrieux164"])
def test_fields_of_uk_biobank_are_of_a_person_and_a_visit(scans, head, atlas):
    atlas = load_atlas(atlas)
    fields = [line.split("; ") for line in UKBIOBANK_FIELDS.strip().splitlines()]
    fields = [[cell.strip() for cell in field] for field in fields]
    # the first person has both visits, the second the later one, the third none
    numbers = np.arange(1.0, 4 * len(fields) + 1).reshape(len(fields), 2, 2)
    heads = ["Participant ID" if "title" in head else "f.eid"]
    rows = [["1000011"], ["1000027"], ["1000035"]]
    for (field, title, *_), cells in zip(fields, numbers, strict=True):
        for visit in (2, 3):
            heads.append(head.format(field=field, title=title, visit=visit))
            rows[0].append(cells[0, visit - 2])
            rows[1].append("" if visit == 2 else cells[1, 1])
            rows[2].append("")
    table = scans(heads, *rows, atlas=atlas)
    names = [("1000011", "2"), ("1000011", "3"), ("1000027", "3"), ("1000035", "")]
    assert [name[:2] for name in table.scan_identities] == names
    assert len(table.values_by_measure_region) == len(fields)
    for (*_, measure, region), cells in zip(fields, numbers, strict=True):
        values = table.values_by_measure_region[measure, atlas.find(region)]
        expected = [*cells[0], cells[1, 1], np.nan]
        np.testing.assert_array_equal(values, expected, err_msg=region)


def test_what_uk_biobank_asked_once_counts_for_every_visit(scans):
    heads = ["eid", "31-0.0", "21003-0.0", "21003-2.0", "21003-3.0", "27432-2.0"]
    heads += ["27432-3.0", "27432-2.1", "26558-2.0", "diagnosis", "25781-2.0"]
    rows = [
        ["1000011", 1, 50, 60, 63, 2.5, 2.4, 9, 7000, "CN", 5],
        ["1000027", 0, 51, 61, "", "", "", "", "", "AD", ""],
    ]
    table = scans(heads, *rows, atlas=load_atlas("destrieux164"))
    # age alone is no visit with images
    assert [name[:2] for name in table.scan_identities] == [
        ("1000011", "2"),
        ("1000011", "3"),
        ("1000027", ""),
    ]
    facts = table.text_table.astype(object).where(table.text_table.notna(), None)
    assert facts["sex"].tolist() == ["1", "1", "0"]
    assert facts["age"].tolist() == ["60", "63", None]
    assert facts["diagnosis"].tolist() == ["CN", "CN", "AD"]
    assert facts["27432_a1"].tolist() == ["9", None, None]
    # the whole thalamus is none of its parts
    assert table.excluded_column_names == ("26558",)
    assert len(table.values_by_measure_region) == 1


def test_fields_of_other_parcellations_are_not_taken(scans):
    heads = [f"{title} | Instance 2" for title in OTHER_UKBIOBANK_TITLES]
    rows = [["1000011", 2.5, 700, 90000]]
    table = scans(["eid", *heads], *rows, atlas=ATLAS)
    assert table.excluded_column_names == OTHER_UKBIOBANK_TITLES
    assert not table.values_by_measure_region
    # Desikan's parcellation and DKT have one title: neither is taken
    assert not scans(["eid", *heads], *rows, atlas=DESIKAN).values_by_measure_region
    # a column of visits says them already
    rows = [["1000011", "2", 2.5]]
    table = scans(["eid", "visit", "27432-2.0"], *rows, atlas=ATLAS)
    assert [name[:2] for name in table.scan_identities] == [("1000011", "2")]
    assert not table.values_by_measure_region


# ---- one scan's table ---------------------------------------------------------------

REGIONS = (*CORTEX, "Left-Amygdala")
VALUES = np.arange(7) + 1.5


@pytest.fixture
def read(write, tiny):
    def read(text, feature="suvr", name="x_suvr.tsv"):
        return read_region_values_and_notes(
            write(name, text), tiny, get_measure_record(feature)
        )[0]

    return read


def upright(values=VALUES, names=REGIONS, head="region\tsuvr"):
    rows = [[name, value] for name, value in zip(names, values, strict=True)]
    return f"{head}\n{lines_of(rows, chr(9))}"


@pytest.mark.parametrize(
    ("head", "feature"),
    [
        ("name\tSUVR", "fdg"),
        ("label_name\tmean_scalar", "fdg"),
        ("StructName\tvalue", "amyloid"),
        ("Region\tThickAvg", "thickness"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_heads_of_columns_and_any_order_of_rows(read, head, feature, seed):
    order = np.random.default_rng(seed).permutation(7)
    text = upright(VALUES[order], np.array(REGIONS)[order], head)
    np.testing.assert_array_equal(read(text, feature), VALUES)
    numbered = [f"{i}\t{row}" for i, row in enumerate(text.splitlines()[1:], start=1)]
    text = "\n".join([f"label\t{head}", *numbered, ""])  # which are no names
    np.testing.assert_array_equal(read(text, feature), VALUES)


def test_the_feature_named_wins_over_a_plain_value(read):
    rows = [[name, value, 0] for name, value in zip(REGIONS, VALUES, strict=True)]
    text = lines_of([["region", "amyloid", "value"], *rows], "\t")
    np.testing.assert_array_equal(read(text, "amyloid"), VALUES)


def test_a_table_may_lie_in_one_row(read):
    for suffix in ("", "_suvr"):
        heads = ["participant_id", *(f"{name}{suffix}" for name in REGIONS), "CSF"]
        text = lines_of([heads, ["sub-01", *VALUES, 5]], "\t")
        np.testing.assert_array_equal(read(text), VALUES)
    with pytest.raises(RegionNameError, match=r"x_suvr\.tsv: .*'lh_q'"):
        read(text.replace("CSF", "lh_q"))


@pytest.mark.parametrize("reverse", [False, True])
def test_of_two_columns_for_a_region_the_measure_decides(read, reverse):
    heads = [f"{n}{word}" for word in ("_suvr", "", "_volume") for n in REGIONS]
    cells = [*VALUES, *(VALUES + 100), *(VALUES + 900)]
    step = -1 if reverse else 1
    text = lines_of([heads[::step], cells[::step]], "\t")
    np.testing.assert_array_equal(read(text, name="x_amyloid.tsv"), VALUES)
    text = lines_of([[*REGIONS, "Amygdala_L", "a_L"], range(9)], "\t")
    message = "2 regions have .*'lh_a' and 'a_L' .*'Left-Amygdala' and 'Amygdala_L'"
    with pytest.raises(FileFormatError, match=message):
        read(text)


BARE, SIDES = ("a", "b", "c", "a", "b", "c", "Amygdala"), "LLLRRRL"


@pytest.mark.parametrize("rows", [[3, 4, 5, 0, 1, 2], [6, 0, 3, 1, 4, 2, 5]])
@pytest.mark.parametrize(
    ("head", "words"), [("hemisphere", {}), ("Hemi", {"L": "lh", "R": "Right"})]
)
def test_a_column_says_the_sides(read, rows, head, words):
    lines = [[BARE[i], words.get(SIDES[i], SIDES[i]), VALUES[i]] for i in rows]
    text = lines_of([["region", head, "suvr"], *lines], "\t")
    expected = np.where(np.isin(np.arange(7), rows), VALUES, np.nan)
    np.testing.assert_array_equal(read(text), expected)
    message = f"'{head}' and the name .* opposite sides in 1 row: 'lh_c'"
    with pytest.raises(RegionNameError, match=message):
        read(text.replace("c\tR", "lh_c\tR"))


@pytest.mark.parametrize(
    ("head", "right", "left"),
    [
        ("hemi", "right hemisphere", "left hemisphere"),
        ("Seite", "rechts", "links"),
        ("h", "R", "L"),
        ("part", "ctx-rh", "ctx-lh"),
        ("côté", "droit", "gauche"),
        ("latéralité", "D (droite)", "G (gauche)"),
        ("HEMISPHERE", "Right (R)", "Left (L)"),
    ],
)
def test_a_column_of_words_tells_regions_of_one_name_apart(read, head, right, left):
    """The right half stood first and was read as the left, whatever a column said."""
    words = [right, left]
    lines = [[BARE[i], words[SIDES[i] == "L"], VALUES[i]] for i in [3, 4, 5, 0, 1, 2]]
    text = lines_of([["region", head, "suvr"], *lines], "\t")
    np.testing.assert_array_equal(read(text)[:6], VALUES[:6])
    with pytest.raises(FileFormatError, match=rf"'{head}' .*, but .* the opposite"):
        read(text, name="sub-01_hemi-L_suvr.tsv")
    lines = [[*line, "RL"[k > 2]] for k, line in enumerate(lines)]
    same = lines_of([["region", head, "suvr", "side"], *lines], "\t")
    np.testing.assert_array_equal(read(same)[:6], VALUES[:6])
    other = same.replace("\tR\n", "\tL\n", 1)
    with pytest.raises(FileFormatError, match="another column gives the opposite side"):
        read(other)


@pytest.mark.parametrize("head", ["hemisphere", "network", "Seite", "code"])
@pytest.mark.parametrize(
    "values", [("2", "1"), ("0", "1"), ("G", "D"), ("a", "b"), ("R", "")]
)
def test_a_column_whose_words_are_not_known_is_named(read, head, values):
    lines = [[name, values[k], k] for k in (0, 1) for name in "abc"]
    text = lines_of([["region", head, "suvr"], *lines], "\t")
    with pytest.raises(FileFormatError, match=rf"the column '{head}' .*'{values[0]}'"):
        read(text)


@pytest.mark.parametrize("head", ["session_id", "subject"])
def test_a_second_scan_is_not_the_other_side(read, head):
    rows = [[scan, name, k] for k, scan in enumerate("12") for name in "abc"]
    text = lines_of([[head, "region", "suvr"], *rows], "\t")
    with pytest.raises(
        FileFormatError, match=f"'{head}' contains 2 different values, such as '1' an"
    ):
        read(text)
    with pytest.raises(FileFormatError, match="3 regions, such as 'a', occur twice"):
        read(text.replace("\n2\t", "\n1\t"))  # nor is the first half the left


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (upright([*VALUES[:6], "x"]), FileFormatError, "'x' .*suvr of Left-Amygdala"),
        (upright(names=[*REGIONS[:6], "lh_q"]), RegionNameError, "'lh_q'"),
        (upright(names=[*REGIONS[:6], "lh.a"]), RegionNameError, "more than once"),
        (
            upright(head="x\tsuvr"),
            FileFormatError,
            "no column has one of the names name, .* are x",
        ),
        (
            upright(head="name\tx"),
            FileFormatError,
            "no column has one of the names suvr, .* are na",
        ),
    ],
)
def test_tables_of_one_scan_refused(read, text, error, message):
    with pytest.raises(error, match=rf"x_suvr\.tsv: .*{message}"):
        read(text)


@pytest.mark.parametrize("names", [(), ("Brain-Stem", "Unknown")])
def test_a_table_without_any_region_is_refused(read, names):
    with raises_kind("no regions", "x_suvr.tsv"):
        read(upright([1.5] * len(names), names))


def test_missing_and_outside(read):
    values = ["n/a" if i == 1 else value for i, value in enumerate(VALUES)]
    text = upright([*values, 3, "x"], [*REGIONS, "Brain-Stem", "Unknown"])
    assert np.flatnonzero(np.isnan(read(text))).tolist() == [1]


def test_clinica_long_with_both_sides_in_one_file(tmp_path):
    bare = ATLAS.regions["annot_name"][:74].tolist()
    path = tmp_path / "sub-01_ses-M00_parcellation-destrieux_thickness.tsv"
    sums = ["NumVert", "WhiteSurfArea", "MeanThickness"]
    values = np.arange(1, 149) / 50
    measure = get_measure_record("thickness")
    formats.write_clinica(path, [*sums, *bare, *bare], [1e5, 9e4, 2.5, *values])
    found = read_region_values_and_notes(path, ATLAS, measure)[0]
    np.testing.assert_allclose(found[:148], values)
    formats.write_clinica(path, [*bare, *bare[1:], bare[0]], values)
    with pytest.raises(RegionNameError, match=r"names are not .* and 143 more"):
        read_region_values_and_notes(path, ATLAS, measure)


@pytest.mark.parametrize("sides", [("left", "right"), ("L", "R"), ("lh", "rh")])
@pytest.mark.parametrize("layout", ["long", "wide"])
def test_clinica_with_the_side_in_the_name(tmp_path, sides, layout):
    bare = DESIKAN.regions["annot_name"][:34].tolist()
    order = np.random.default_rng(1).permutation(34)
    paths = []
    for k, side in enumerate(sides):
        path = tmp_path / f"sub-01_hemi-{side}_parcellation-desikan_thickness.tsv"
        names, values = np.array(bare)[order], (order + 1.0 + 34 * k)
        if layout == "long":
            formats.write_clinica(path, names, values)
        else:
            path.write_text(lines_of([names, values], "\t"))
        paths.append(path)
    for path in paths:
        found = read_region_values_and_notes(
            path, DESIKAN, get_measure_record("thickness")
        )
        np.testing.assert_array_equal(found[0][:68], np.arange(1, 69))
    paths[1].unlink()
    places = read_region_values_and_notes(
        paths[0], DESIKAN, get_measure_record("thickness")
    )[2]
    assert places.tolist() == list(range(34))


def test_clinica_pet_surface_interleaves_the_sides(tmp_path):
    name = "sub-01_ses-M00_trc-18FFDG_pet_space-destrieux_pvc-iy_suvr-pons_stat.tsv"
    values = np.random.default_rng(8).uniform(0.8, 1.9, 160)
    path = formats.write_pet_surface(tmp_path / name, ATLAS, values)
    found = read_region_values_and_notes(path, ATLAS, get_measure_record("fdg"))[0]
    np.testing.assert_allclose(found[:148], values[:148])
    assert np.isnan(found[148:]).all()


@pytest.mark.parametrize(
    ("pattern", "feature"),
    [
        ("FDG_{}", "fdg"),
        ("Mean.{}", "mean"),
        ("SUVR {}", "fdg"),
        ("FDG-SUVR_{}", "fdg"),
        ("FDG_{}_SUVR", "fdg"),
        ("mean_{}_suvr", "fdg"),
        ("thickness.{}", "thickness"),
        ("gm_vol_{}", "gm_vol"),
        ("{}_w.score", "w.score"),
        ("thickness_std_{}", "thickness_std"),
    ],
)
@pytest.mark.parametrize("dotted", [False, True])
def test_words_around_full_names_are_a_measure(write, pattern, feature, dotted):
    """`FDG_ctx-lh-insula` was of "fdg_ctx", `Mean.Left.Thalamus` was no region."""
    names = [name.replace("-", ".") if dotted else name for name in DESIKAN.names]
    rows = [[f"sub-0{i}", *np.arange(82) + i] for i in (1, 2)]
    heads = ["participant_id", *map(pattern.format, names)]
    path = write("scans_fdg.csv", lines_of([heads, *rows], ","))
    table = read_table_contents(path, DESIKAN)
    assert {word for word, _ in table.values_by_measure_region} == {feature}
    assert [table.values_by_measure_region[feature, i][0] for i in range(82)] == [
        *range(1, 83)
    ]
    assert table.has_only_atlas_regions


def test_a_word_that_says_a_side_is_no_measure(write):
    rows = [["sub-01", *range(68)]]
    heads = ["lh.aparc.thickness", *(f"rh_x_{n}" for n in DESIKAN.names[:68])]
    table = read_table_contents(write("t.csv", lines_of([heads, *rows], ",")), DESIKAN)
    assert not table.values_by_measure_region


def test_every_suffix_that_readers_name_is_one_of_tables():
    """A file of another suffix would be read by its path, but never searched for."""
    texts = {
        node.value
        for module in (region_tables, measures)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    suffixes = {
        match[1]
        for text in texts
        if (match := re.fullmatch(r"[*\w.-]*(\.[a-z]+)", text))
    }
    assert {".dat", ".xlsx"} <= suffixes
    missing = suffixes - {*TABLE_SUFFIXES}
    assert not missing, f"add {missing} to TABLE_SUFFIXES of brainlsap/data/tables.py"


def test_lines_keep_their_numbers_beside_empty_lines_and_comments(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n# comment\n \nfirst\nsecond\n")
    assert read_numbered_lines(path) == [(2, "# comment"), (4, "first"), (5, "second")]
    assert read_lines(path) == ["first", "second"]
