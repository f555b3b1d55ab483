import numpy as np
import pandas as pd
import pytest

from brainlsap.data import load_atlas
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from brainlsap.report import compare_maps, read_maps
from brainlsap.report.map_comparison import comparison_words

ATLAS = load_atlas("desikan82")
Y = pd.Series(ATLAS.regions["y"].to_numpy(), index=list(ATLAS.names))


@pytest.fixture
def table(tmp_path):
    """Two maps and a column of text; rows in another order, one value missing."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "Region": Y.index,
            "lobe": "none",
            "front": Y.to_numpy(),
            "chance": rng.normal(size=len(Y)),
        }
    ).sample(frac=1, random_state=2)
    frame.loc[frame["Region"] == "Left-Putamen", "front"] = np.nan
    path = tmp_path / "map.tsv"
    frame.to_csv(path, sep="\t", index=False, na_rep="n/a")
    return path


def ranking_of(scale):
    measured = np.arange(len(Y)) != 7
    return pd.DataFrame({"region": Y.index, "scale": scale, "measured": measured})


def test_maps_are_read_by_name(table):
    maps = read_maps(table, ATLAS)
    assert list(maps) == ["front", "chance"]
    front = maps["front"].loc[list(Y.index)]
    assert np.isnan(front["Left-Putamen"])
    np.testing.assert_allclose(front.dropna(), Y.drop("Left-Putamen"))
    assert list(read_maps(table, ATLAS, "chance")) == ["chance"]


def test_maps_that_cannot_be_read(table, tmp_path):
    with pytest.raises(ParameterError, match="no column 'lobe' of numbers; there are"):
        read_maps(table, ATLAS, "lobe")
    bad = tmp_path / "bad.tsv"
    bad.write_text("who\tvalue\nLeft-Putamen\t1\n")
    with pytest.raises(FileFormatError, match=r"no column of regions; .* found who"):
        read_maps(bad, ATLAS)
    bad.write_text("region\tvalue\nLeft-Putamen\thigh\n")
    with pytest.raises(FileFormatError, match="no column of numbers by region"):
        read_maps(bad, ATLAS)
    bad.write_text("region\tvalue\nLeft-Putamin\t1\n")
    with pytest.raises(RegionNameError, match="Left-Putamin"):
        read_maps(bad, ATLAS)


def test_a_smooth_map_is_told_from_itself_and_from_chance(table):
    maps = read_maps(table, ATLAS)
    found = compare_maps(ranking_of(-Y.to_numpy()), maps, ATLAS, n_spins=19)
    row = found.set_index("map").loc["front"]
    # 82 regions, one not measured, one missing
    assert row["n_regions"] == 80
    assert row["spearman"] == pytest.approx(-1)
    assert row["p_spin"] == pytest.approx(1 / 20)
    assert row["p_holm"] == pytest.approx(2 / 20)
    told = comparison_words(found, "LSAP-C")
    assert "Scales of LSAP-C and front: Spearman -1.00 over 80 regions" in told
    assert "Null: 19 rotations of the cortex" in told
    again = compare_maps(ranking_of(-Y.to_numpy()), maps, ATLAS, n_spins=19)
    pd.testing.assert_frame_equal(found, again)


def test_maps_of_too_few_regions_are_refused():
    few = {"few": Y.head(4)}
    with pytest.raises(ParameterError, match="at least five common"):
        compare_maps(ranking_of(Y.to_numpy()), few, ATLAS, n_spins=3)
