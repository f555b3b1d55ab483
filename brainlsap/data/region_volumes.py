"""Volumes of regions by name, put in the order of an atlas."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas
from brainlsap.data.features import read_feature
from brainlsap.exceptions import ParameterError, RegionNameError


def region_volumes(
    volumes: Mapping[str, float] | pd.Series | str | Path, atlas: Atlas
) -> np.ndarray:
    """Return the volume of every region, for connectomes divided by volume.

    Parameters
    ----------
    volumes : mapping of str to float, Series, or path
        mm3 by the name of the region, in any spelling that the atlas knows; regions
        of elsewhere are ignored. Or a file or FreeSurfer subject as
        :func:`.read_feature` takes it.
    atlas : Atlas
        Gives the order.

    Returns
    -------
    array of shape (n_rois,)

    Raises
    ------
    RegionNameError
        Where a region stands twice or is missing.
    ParameterError
        Where a volume is not a positive number.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> atlas = load_atlas("desikan82")
    >>> named = {name: 100.0 + i for i, name in enumerate(reversed(atlas.names))}
    >>> region_volumes(named, atlas)[:3].tolist()
    [181.0, 180.0, 179.0]
    """
    if isinstance(volumes, str | Path):
        values = read_feature(volumes, "volume", atlas).values
    else:
        values = _by_name(dict(volumes.items()), atlas)
    bad = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if bad.size:
        raise ParameterError(
            f"volumes must be positive, in mm3; got {values[bad[0]]:g} for "
            f"{atlas.names[bad[0]]}."
        )
    return values


def _by_name(volumes: dict[str, float], atlas: Atlas) -> np.ndarray:
    values = np.full(len(atlas), np.nan)
    seen: dict[int, str] = {}
    for name, volume in volumes.items():
        place = atlas.find(name)
        if place is None:
            continue
        if place in seen:
            raise RegionNameError(
                f"volumes hold {atlas.names[place]} twice, as {seen[place]!r} and "
                f"{name!r}."
            )
        seen[place] = name
        values[place] = float(volume)
    missing = [name for i, name in enumerate(atlas.names) if i not in seen]
    if missing:
        raise RegionNameError(
            f"volumes lack {len(missing)} of the {len(atlas)} regions of {atlas.name}: "
            f"{', '.join(missing[:5])}. Give one for each."
        )
    return values
