"""Goes with the report's verification, its only user."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


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


def _moved(value: Any, before: str, now: str) -> Any:
    if isinstance(value, list):
        return [_moved(one, before, now) for one in value]
    if isinstance(value, str) and (value == before or value.startswith(f"{before}/")):
        return now + value[len(before) :]
    return value
