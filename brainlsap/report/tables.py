"""Numbers become tables: regions and people."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from brainlsap._arrays import check_choice
from brainlsap.data import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.score_tables import spread_text

NAMES = {"short": "short_name", "long": "long_name", "atlas": "name"}
"""How a table may call regions, and the atlas column that holds it."""

P_VALUES = {
    "p_family": "p (family-wise)",
    "p_centred": "p (family-wise, centred)",
    "p_fdr": "p (false discovery rate)",
    "p_untrained": "p (untrained start)",
}
FURTHER_RANKS = {
    "rank_adjusted": "rank without confounds",
    "importance_rank": "rank by importance",
}

FEWEST_PEOPLE = 3
"""Means over fewer people are not shown: they would tell a person's age."""


def region_table(
    ranking: pd.DataFrame,
    atlas: Atlas,
    n_regions: int = 10,
    *,
    names: str = "short",
) -> pd.DataFrame:
    """Return the regions of smallest scale as a table for a paper.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    atlas : Atlas
        Holds the names of the regions.
    n_regions : int
        How many; regions tied with the last are shown too.
    names : {"short", "long", "atlas"}
        The paper's short names, written out, or as files name them.

    Returns
    -------
    DataFrame
        Columns rank, region, hemisphere, lobe, heat scale ("mean ± s.d." over folds),
        folds in top (their part); 95% of fits and ranks of fits, over folds, repeats
        and seeds; where the ranking has them, s.d. over seeds and repeats, spread and
        ranks over starts, corrected p-values, the rank without confounds and the rank
        by importance; and remark (not learned, tied, seed).

    Raises
    ------
    ParameterError
        Where `names` is unknown or `n_regions` is less than 1.

    Examples
    --------
    >>> from brainlsap.data import load_atlas
    >>> from brainlsap.evaluation import rank_scales
    >>> atlas = load_atlas("desikan82")
    >>> ranking = rank_scales(np.arange(82.0)[None], atlas.names)
    >>> region_table(ranking, atlas, 2)[["rank", "region", "heat scale"]]
       rank                       region heat scale
    0     1                 (L) bankssts      0.000
    1     2  (L) caudalanteriorcingulate      1.000
    """
    check_choice("names", names, NAMES)
    if n_regions < 1:
        raise ParameterError(f"n_regions must be at least 1, got {n_regions}.")
    ranked = ranking[ranking["rank"] <= n_regions].sort_values("rank", kind="stable")
    regions = atlas.regions.iloc[atlas.match(list(ranked["region"]))]
    lobes = regions["lobe"] if "lobe" in regions else [""] * len(regions)
    return pd.DataFrame(
        {
            "rank": ranked["rank"].astype(int).to_numpy(),
            "region": list(regions[NAMES[names]]),
            "hemisphere": list(regions["hemisphere"]),
            "lobe": list(lobes),
            "heat scale": [
                spread_text(mean, sd)
                for mean, sd in zip(ranked["scale"], ranked["scale_sd"], strict=True)
            ],
            "folds in top": [f"{share:.0%}" for share in ranked["top_share"]],
            **_stability(ranked),
            "remark": [_remark(row) for row in ranked.to_dict("records")],
        }
    )


def _stability(ranked: pd.DataFrame) -> dict[str, list[str]]:
    """Return intervals, starts, nulls and confounds, as far as they are known."""
    columns = {
        "95% of fits": [
            f"[{low:.3f}, {high:.3f}]"
            for low, high in zip(ranked["scale_low"], ranked["scale_high"], strict=True)
        ],
        "ranks of fits": _ranges(ranked["rank_low"], ranked["rank_high"]),
    }
    if ranked["sd_seeds"].notna().any():
        columns["s.d. over seeds"] = [f"{one:.3f}" for one in ranked["sd_seeds"]]
    if ranked["sd_repeats"].notna().any():
        columns["s.d. over repeats"] = [f"{one:.3f}" for one in ranked["sd_repeats"]]
    if "start_spread" in ranked:
        columns["spread over starts"] = [f"{one:.3f}" for one in ranked["start_spread"]]
        columns["ranks over starts"] = _ranges(
            ranked["start_rank_low"], ranked["start_rank_high"]
        )
    for name, title in P_VALUES.items():
        if name in ranked:
            columns[title] = [f"{one:.3f}" for one in ranked[name]]
    for name, title in FURTHER_RANKS.items():
        if name in ranked:
            columns[title] = [_whole(one) for one in ranked[name]]
    return columns


def _ranges(low: pd.Series, high: pd.Series) -> list[str]:
    return [
        f"{_whole(a)}\N{EN DASH}{_whole(b)}" for a, b in zip(low, high, strict=True)
    ]


def _whole(rank: float) -> str:
    return "n/a" if pd.isna(rank) else f"{rank:.0f}"


def seed_table(ranking: pd.DataFrame, atlas: Atlas) -> pd.DataFrame:
    """Return where the regions of a simulated cohort's answer key were ranked.

    Parameters
    ----------
    ranking : DataFrame
        With the column seed: `rank_regions(..., truth=cohort.truth)`.
    atlas : Atlas
        Holds the names of the regions.

    Returns
    -------
    DataFrame
        Columns region, rank ("not measured" where there is none), heat scale.

    Raises
    ------
    ParameterError
        Where `ranking` has no column seed.

    Examples
    --------
    >>> from brainlsap.data import load_atlas
    >>> from brainlsap.evaluation import rank_scales
    >>> atlas = load_atlas("desikan82")
    >>> truth = pd.DataFrame({"region": [atlas.names[4]], "seed": [True]})
    >>> ranking = rank_scales(np.arange(82.0)[None], atlas.names, truth=truth)
    >>> seed_table(ranking, atlas)
               region     rank heat scale
    0  (L) entorhinal  5 of 82      4.000
    """
    if "seed" not in ranking:
        raise ParameterError(
            "ranking has no column 'seed'; call rank_regions(..., truth=cohort.truth)."
        )
    seeds = ranking[ranking["seed"]].sort_values("rank", kind="stable")
    known = seeds["measured"].to_numpy(dtype=bool)
    short = np.array(atlas.short_names, dtype=object)
    return pd.DataFrame(
        {
            "region": list(short[atlas.match(list(seeds["region"]))]),
            "rank": [
                f"{rank:.0f} of {int(ranking['measured'].sum())}"
                if one
                else "not measured"
                for rank, one in zip(seeds["rank"], known, strict=True)
            ],
            "heat scale": [
                spread_text(mean, sd) if one else "n/a"
                for mean, sd, one in zip(
                    seeds["scale"], seeds["scale_sd"], known, strict=True
                )
            ],
        }
    )


def demographics_table(table: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Return people, scans, age, sex and sites of every class.

    Parameters
    ----------
    table : DataFrame
        One row per scan: participant, label and, where known, age, sex, site.
    classes : sequence of str
        Order of the rows.

    Returns
    -------
    DataFrame
        One row per class. A person counts once in each class, with the first scan in
        it. Age is mean ± s.d. over people in years, not shown for fewer than three
        people; sexes are counts.

    Examples
    --------
    >>> table = pd.DataFrame({"participant": ["a", "a", "b"], "label": ["CN"] * 3})
    >>> demographics_table(table.assign(sex=["F", "F", "M"]), ["CN"])
      class  people  scans       sex
    0    CN       2      3  F 1, M 1
    """
    rows = []
    for name in classes:
        scans = table[table["label"].astype(str) == name]
        people = scans.drop_duplicates("participant")
        row: dict[str, object] = {
            "class": name,
            "people": len(people),
            "scans": len(scans),
        }
        if "age" in table:
            row["age"] = _age_text(people["age"])
        if "sex" in table:
            counts = people["sex"].dropna().astype(str).value_counts().sort_index()
            row["sex"] = ", ".join(f"{sex} {n}" for sex, n in counts.items()) or "n/a"
        if "site" in table:
            row["sites"] = int(people["site"].nunique())
        rows.append(row)
    return pd.DataFrame(rows)


def _remark(row: dict) -> str:
    moved = row["moved"]
    remarks = {
        "seed": bool(row.get("seed", False)),
        "not learned": pd.notna(moved) and not moved,
        "tied": bool(row["tied"]),
    }
    return ", ".join(name for name, holds in remarks.items() if holds)


def _age_text(ages: pd.Series) -> str:
    known = pd.to_numeric(ages, errors="coerce").dropna()
    few = len(known) < FEWEST_PEOPLE
    return "n/a" if few else spread_text(known.mean(), known.std(ddof=1), 1)
