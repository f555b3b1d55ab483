"""Rankings by lobe and by network."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from brainlsap.data import Atlas
from brainlsap.exceptions import ParameterError


def group_ranking(
    ranking: pd.DataFrame,
    atlas: Atlas,
    by: str | Mapping[str, str] = "lobe",
    *,
    top_k: int = 10,
) -> pd.DataFrame:
    """Return scale and rank of the regions of every lobe, network or other group.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    atlas : Atlas
        The regions; its columns name groups, such as lobe, hemisphere or structure,
        and network where its regions.tsv has one.
    by : str or mapping of str to str
        Column of the atlas, or the group of every region by name, for example a
        functional network; regions without a group are left out.
    top_k : int
        How many regions are the top.

    Returns
    -------
    DataFrame
        One row per group, smallest mean rank first: group; regions (measured);
        scale, mean_rank and best_rank over them; top, how many of the top k are in
        it; and top_expected, how many would be if the top k were drawn at random.

    Raises
    ------
    ParameterError
        Where the atlas has no such column, or no measured region has a group.

    Examples
    --------
    >>> from brainlsap.data import load_atlas
    >>> from brainlsap.evaluation import rank_scales
    >>> atlas = load_atlas("desikan82")
    >>> ranking = rank_scales(np.arange(82.0)[None], atlas.names)
    >>> group_ranking(ranking, atlas, "hemisphere")[["group", "regions", "top"]]
      group  regions  top
    0     L       41   10
    1     R       41    0
    """
    names = list(ranking["region"])
    if isinstance(by, str):
        if by not in atlas.regions:
            raise ParameterError(
                f"by must name a column of the atlas, got {by!r}; there are "
                f"{', '.join(map(str, atlas.regions))}. Or give each region's group."
            )
        group = atlas.regions[by].iloc[atlas.match(names)].to_numpy(dtype=object)
    else:
        places = atlas.match(list(by))
        found = dict(zip((atlas.names[p] for p in places), by.values(), strict=True))
        group = np.array([found.get(atlas.names[p]) for p in atlas.match(names)])
    frame = ranking.assign(group=group)[ranking["measured"].to_numpy(dtype=bool)]
    frame = frame[frame["group"].notna()]
    if frame.empty:
        raise ParameterError("by gives no measured region a group.")
    grouped = frame.groupby("group", sort=True)
    table = pd.DataFrame(
        {
            "regions": grouped.size(),
            "scale": grouped["scale"].mean(),
            "mean_rank": grouped["rank"].mean(),
            "best_rank": grouped["rank"].min(),
            "top": grouped["rank"].apply(lambda rank: int((rank <= top_k).sum())),
        }
    ).reset_index()
    share = table["regions"] / len(frame)
    table["top_expected"] = share * int((frame["rank"] <= top_k).sum())
    return table.sort_values("mean_rank", kind="stable", ignore_index=True)
