import numpy as np
import pandas as pd
import pytest

from brainlsap.evaluation import rank_regions, rank_scales
from brainlsap.exceptions import ParameterError
from brainlsap.report import (
    demographics_table,
    region_table,
    seed_table,
)


def test_regions_are_named_and_remarked(evaluation, atlas, truth):
    ranking = rank_regions(evaluation, truth=truth)
    table = region_table(ranking, atlas, 3)
    # Scales fall with the number of the region; region 5 was not measured.
    assert list(table["region"]) == ["(R) G&S_r6", "(R) G&S_r4", "(L) G&S_r3"]
    assert list(table["rank"]) == [1, 2, 3]
    assert list(table["remark"]) == ["seed", "", ""]
    assert table["heat scale"][0] == (
        f"{ranking['scale'][6]:.3f} ± {ranking['scale_sd'][6]:.3f}"
    )
    assert table["folds in top"][0] == "100%"
    assert region_table(ranking, atlas, 1, names="long")["region"][0] == "long & wide 6"
    assert list(region_table(ranking, atlas, 99)["remark"])[-1] == "not learned"


def test_regions_tied_with_the_last_are_shown(atlas):
    scales = np.array([[0.1, 0.2, 0.2, 0.2, 0.5, 0.6, 0.7]])
    table = region_table(rank_scales(scales, atlas.names), atlas, 2)
    assert list(table["rank"]) == [1, 2, 2, 2]
    assert list(table["remark"]) == ["", "tied", "tied", "tied"]


def test_seeds_that_were_not_measured_have_no_rank(evaluation, atlas, truth):
    table = seed_table(rank_regions(evaluation, truth=truth), atlas)
    assert list(table["region"]) == ["(R) G&S_r6", "(R) G&S_r5"]
    assert list(table["rank"]) == ["1 of 6", "not measured"]


def test_people_count_once_per_class():
    table = pd.DataFrame(
        {
            "participant": ["a", "a", "b", "c", "d"],
            "label": ["CN", "AD", "CN", "CN", "AD"],
            "age": ["60", "61", "70", "n/a", "80"],
            "sex": ["F", "F", "M", None, "M"],
            "site": ["x", "x", "y", "x", "y"],
        }
    )
    shown = demographics_table(table, ["CN", "AD"]).set_index("class")
    assert shown.loc["CN"].to_dict() == {
        "people": 3,
        "scans": 3,
        "age": "n/a",  # two ages would tell too much
        "sex": "F 1, M 1",
        "sites": 2,
    }
    older = pd.concat([table, table.assign(participant=list("efghi"))])
    assert demographics_table(older, ["CN"])["age"][0] == "65.0 ± 5.8"
    assert list(demographics_table(table[["participant", "label"]], ["AD"])) == [
        "class",
        "people",
        "scans",
    ]


def test_what_cannot_be_made_a_table(evaluation, atlas):
    ranking = rank_regions(evaluation)
    with pytest.raises(ParameterError, match=r"names must be one of .*got 'latin'"):
        region_table(ranking, atlas, names="latin")
    with pytest.raises(ParameterError, match="n_regions must be at least 1, got 0"):
        region_table(ranking, atlas, 0)
    with pytest.raises(ParameterError, match="ranking has no column 'seed'"):
        seed_table(ranking, atlas)
