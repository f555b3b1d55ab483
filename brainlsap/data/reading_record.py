"""What was asked of a reader, kept so that the same can be read again and compared."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap.data.atlas import Atlas, available_atlases

PLACES = ("connectome", "derivatives", "features_table", "labels", "subjects_dir")


def reading_record(folder: str | Path, atlas: Atlas, **given: Any) -> dict[str, Any]:
    """Return arguments of :func:`.load_cohort` as JSON takes them, paths absolute.

    Parameters
    ----------
    folder : str or Path
        The cohort's folder.
    atlas : Atlas
        As it was loaded; one of a user's own goes by its folder.
    **given
        The other arguments; those that are None or empty are left out.

    Returns
    -------
    dict
        Its paths name places: it is for `private/` only.
    """
    own = atlas.folder is not None and atlas.name not in available_atlases()
    kept = {
        name: _as_json(value, name in PLACES)
        for name, value in given.items()
        if not isinstance(value, np.ndarray) and value not in (None, (), [], {})
    }
    place = str(Path(folder).expanduser().resolve())
    return {"folder": place, "atlas": str(atlas.folder) if own else atlas.name, **kept}


def moved_record(record: Mapping[str, Any], folder: str | Path) -> dict[str, Any]:
    """Return the same record for a cohort that stands elsewhere now.

    Parameters
    ----------
    record : mapping
        From :func:`reading_record`.
    folder : str or Path
        Where the cohort is.

    Returns
    -------
    dict
        Places in the old folder are in the new one.
    """
    before, now = record["folder"], str(Path(folder).expanduser().resolve())
    return {name: _moved(value, before, now) for name, value in record.items()}


def _as_json(value: Any, is_place: bool) -> Any:
    if isinstance(value, Mapping):
        return {str(key): str(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(one, is_place) for one in value]
    if is_place and Path(value).expanduser().exists():
        return str(Path(value).expanduser().resolve())
    return value if isinstance(value, bool | int | float) else str(value)


def _moved(value: Any, before: str, now: str) -> Any:
    if isinstance(value, list):
        return [_moved(one, before, now) for one in value]
    if isinstance(value, str) and (value == before or value.startswith(f"{before}/")):
        return now + value[len(before) :]
    return value
