"""A ranking beside another map of the brain, with rotations of the cortex as null."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.data import Atlas
from brainlsap.data.tables import read_table
from brainlsap.evaluation import adjust_p_values, spin_test
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.report.common_regions import mean_scales
from brainlsap.report.stored import read_results

REGION_HEADS = ("region", "name", "label", "roi")


def read_maps(
    path: str | Path, atlas: Atlas, column: str | None = None
) -> dict[str, pd.Series]:
    r"""Read maps of the brain: columns of a table by region, or a results folder.

    Parameters
    ----------
    path : str or Path
        A table with a column `region` (or `name`, `label`, `roi`) and columns of
        numbers, such as ranking.tsv or an exported regions.tsv; or a results folder,
        whose mean scales are taken.
    atlas : Atlas
        Whose regions are named; a row that names none is refused.
    column : str, optional
        The column, or model, that counts; by default all.

    Returns
    -------
    dict of str to Series
        One value per region name of the atlas.

    Raises
    ------
    FileFormatError
        Where the file has no regions or no numbers.
    RegionNameError
        Where a region is unknown or stands twice.
    ParameterError
        Where `column` is not there.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.data import load_atlas
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = Path(place) / "map.tsv"
    ...     _ = path.write_text("region\tgenes\nLeft-Putamen\t2.5\n")
    ...     read_maps(path, load_atlas("desikan82"))["genes"].to_dict()
    {'Left-Putamen': 2.5}
    """
    path = Path(path)
    if path.is_dir():  # says itself where nothing is stored
        return _chosen(mean_scales(read_results(path).evaluation), column, path)
    table = read_table(path)
    heads = {str(name).strip().lower(): str(name) for name in table.columns}
    head = next((heads[name] for name in REGION_HEADS if name in heads), None)
    if head is None:
        raise FileFormatError(
            f"{path}: no column of regions; expected {', '.join(REGION_HEADS)}, found "
            f"{', '.join(map(str, table.columns))}."
        )
    rows = table[table[head].notna()]
    names = [atlas.names[place] for place in atlas.match(rows[head].tolist())]
    maps = {
        str(name): values.set_axis(names)
        for name in rows.columns
        if name != head and (values := _numbers(rows[name])) is not None
    }
    return _chosen(maps, column, path)


def compare_maps(
    ranking: pd.DataFrame,
    maps: Mapping[str, pd.Series],
    atlas: Atlas,
    *,
    n_spins: int = 1000,
    random_state: int = 0,
) -> pd.DataFrame:
    """Compare the scales of a ranking with other maps by the spin test.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    maps : mapping of str to Series
        One value per region name.
    atlas : Atlas
        With vertex labels on fsaverage5.
    n_spins : int
        Rotations of the cortex; regions below it are permuted among themselves.
    random_state : int
        Seed.

    Returns
    -------
    DataFrame
        One row a map: map, n_regions, spearman, p_spin (two-sided), p_holm over the
        maps, n_spins.

    Raises
    ------
    ParameterError
        Where a map shares fewer than five regions with the ranking, or is constant.
    FileFormatError
        Where the atlas has no surface labels.

    Examples
    --------
    >>> from brainlsap.data import load_atlas
    >>> atlas = load_atlas("desikan82")
    >>> y = pd.Series(atlas.regions["y"].to_numpy(), index=list(atlas.names))
    >>> ranking = pd.DataFrame({"region": y.index, "scale": -y.values, "measured": 1})
    >>> compare_maps(ranking, {"y": y}, atlas, n_spins=9)["p_spin"].tolist()
    [0.1]
    """
    scale = ranking["scale"].where(ranking["measured"].astype(bool))
    own = pd.Series(scale.to_numpy(), index=list(ranking["region"])).dropna()
    rows = []
    for name, values in maps.items():
        found = spin_test(own, values.dropna(), atlas, n_spins, random_state)
        rows.append((name, found.n_regions, found.correlation, found.p_value))
    table = pd.DataFrame(rows, columns=["map", "n_regions", "spearman", "p_spin"])
    table["p_holm"] = adjust_p_values(table["p_spin"].to_numpy(dtype=float))
    return table.assign(n_spins=n_spins)


def comparison_words(table: pd.DataFrame, model: str) -> str:
    """Say what a comparison of maps found.

    Parameters
    ----------
    table : DataFrame
        From :func:`compare_maps`.
    model : str
        Whose scales were compared.

    Returns
    -------
    str
        One sentence a map, and how the null was made.
    """
    told = [
        f"Scales of {model} and {row['map']}: Spearman {row['spearman']:+.2f} over "
        f"{row['n_regions']} regions, spin test p = {row['p_spin']:.3g}"
        + (f" ({row['p_holm']:.3g} by Holm)." if len(table) > 1 else ".")
        for row in table.to_dict("records")
    ]
    how = (
        f"Null: {table['n_spins'].iloc[0]} rotations of the cortex; regions below it "
        "are permuted among themselves. Small scales matter most: a map that is large "
        "where it matters goes with a negative correlation."
    )
    return "\n".join([*told, how])


def _numbers(cells: pd.Series) -> pd.Series | None:
    """Return a column as numbers, or None where it is text or says nothing."""
    try:
        values = np.array([float("nan" if cell is None else cell) for cell in cells])
    except ValueError:
        return None
    return pd.Series(values) if np.isfinite(values).any() else None


def _chosen(
    maps: Mapping[str, pd.Series], column: str | None, path: Path
) -> dict[str, pd.Series]:
    if not maps:
        raise FileFormatError(f"{path}: no column of numbers by region; nothing to do.")
    if column is None:
        return dict(maps)
    if column not in maps:
        raise ParameterError(
            f"{path} has no column {column!r} of numbers; there are {', '.join(maps)}."
        )
    return {column: maps[column]}
