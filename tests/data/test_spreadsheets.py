import io

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainlsap.data.spreadsheets import guard_cells, unguard_cells

ATTACKS = (
    '=HYPERLINK("http://x","y")',
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "\t=1+1",
    "\r=1+1",
)
HARMLESS = ("-1.5", "+1e-5", "-0.02 ± 0.03", "-", "+", "AD", "a=b", "")


@pytest.mark.parametrize("text", ATTACKS)
def test_formulas_become_text(text):
    table = guard_cells(pd.DataFrame({text: [text], "n": [-1.5]}))
    assert list(table) == [f"'{text}", "n"]
    assert table.iloc[0].tolist() == [f"'{text}", -1.5]


def test_numbers_and_other_text_stay():
    table = pd.DataFrame({"cell": list(HARMLESS), "n": range(len(HARMLESS))})
    assert guard_cells(table).equals(table)
    assert guard_cells(table.astype(object)).equals(table.astype(object))


def test_categories_are_text():
    table = pd.DataFrame({"cell": pd.Categorical(["=a", "b"])})
    assert guard_cells(table)["cell"].tolist() == ["'=a", "b"]


def test_missing_cells_stay():
    table = pd.DataFrame({"cell": ["=a", None, "b"]})
    assert guard_cells(table)["cell"].isna().tolist() == [False, True, False]


starts = st.sampled_from(["", "=", "+", "-", "@", "'", "''=", "\t"])
texts = st.builds("{}{}".format, starts, st.text("ab1'=-", max_size=4))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(texts, min_size=1, max_size=5))
def test_what_was_guarded_comes_back(cells):
    table = pd.DataFrame({"cell": cells, "n": 1}, dtype=object)
    guarded = guard_cells(table)
    text = guarded.to_csv(index=False)
    again = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    assert again["cell"].tolist() == guarded["cell"].tolist()
    assert unguard_cells(guarded).equals(table)
