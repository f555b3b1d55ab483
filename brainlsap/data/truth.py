"""The answer that a simulated cohort's folder holds."""

from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas
from brainlsap.data.tables import parse_numbers, read_table
from brainlsap.exceptions import FileFormatError

TRUTH_FILE = "truth.tsv"
_YES_NO = {"true": True, "false": False}


def read_truth(folder: str | Path, atlas: Atlas) -> pd.DataFrame | None:
    """Read the answer of a simulated cohort.

    Parameters
    ----------
    folder : str or Path
        Of the cohort.
    atlas : Atlas
        Names the regions and gives their order.

    Returns
    -------
    DataFrame or None
        Columns region (as the atlas names it), seed (bool), effect and any
        `effect_*` (float), in the order of the atlas; None where there is no
        `truth.tsv`, or where it is about other regions.

    Raises
    ------
    FileFormatError
        Where a column is missing or holds something else.
    """
    path = Path(folder) / TRUTH_FILE
    if not path.is_file():
        return None
    table = read_table(path)
    missing = [name for name in ("region", "seed", "effect") if name not in table]
    if missing:
        raise FileFormatError(
            f"{path}: no column {', '.join(missing)}; expected region, seed and effect "
            "as the simulation writes them. Rename the file if it is something else."
        )
    found = [atlas.find(name or "") for name in table["region"]]
    places = np.array([-1 if place is None else place for place in found], dtype=int)
    if not np.array_equal(np.sort(places), np.arange(len(atlas))):
        return None
    seeds = [_YES_NO.get((cell or "").lower()) for cell in table["seed"]]
    if None in seeds:
        cell = table["seed"][seeds.index(None)]
        raise FileFormatError(f"{path}: seed must be true or false, got {cell!r}.")
    columns = {"region": np.array(atlas.names)[places], "seed": np.array(seeds, bool)}
    for name in table.columns:
        if name == "effect" or name.startswith("effect_"):
            columns[name] = parse_numbers(path, table[[name]])[:, 0]
    return pd.DataFrame(columns).iloc[np.argsort(places)].reset_index(drop=True)
