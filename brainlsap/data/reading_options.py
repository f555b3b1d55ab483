"""The options with which a study is read, as one record.

The fields are the options that `brainlsap.options.CONFIGURABLE` passes to
:func:`.load_cohort`, and the study's folder. One record travels from the caller to the
readers, into the cohort and its file, and from there into the methods text and stored
models.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.arrays import to_jsonable
from brainlsap.atlas import Atlas
from brainlsap.exceptions import ParameterError

NO_CONNECTOME = "none"
"""Value of the option `connectome` for a study that is read without connectomes."""


@dataclass(frozen=True, eq=False)
class ReadingOptions:
    """Options of :func:`.load_cohort`; None or empty where one is not known.

    `DEFAULT_OPTIONS` holds the values by default. Cohorts that were not read from
    a folder know few of them, or none.

    Parameters
    ----------
    folder : str or Path, optional
        The study's folder.
    atlas, feature, label, classes, connectome, subjects_dir, derivatives, pattern
        As :func:`.load_cohort` takes them.
    scans, subcortex, features_table, id_column, session_column, labels, row_order
        As :func:`.load_cohort` takes them.
    measure, symmetrize, negative, frames, reference, exclude, skip_faulty
        As :func:`.load_cohort` takes them.

    Examples
    --------
    >>> DEFAULT_OPTIONS.change(feature="fdg", scans="baseline").scans
    'baseline'
    """

    folder: str | Path | None = None
    atlas: str | Path | Atlas = ""
    feature: str | Sequence[str] | None = None
    label: str | None = None
    classes: Sequence[str] | None = None
    connectome: str | Path | np.ndarray | pd.DataFrame | None = None
    subjects_dir: str | Path | None = None
    derivatives: Sequence[str | Path] = ()
    pattern: str | Mapping[str, str] | None = None
    scans: str = ""
    subcortex: str = ""
    features_table: str | Path | Sequence[str | Path] | None = None
    id_column: str | Sequence[str] | None = None
    session_column: str | Sequence[str] | None = None
    labels: str | Path | Sequence[str] | None = None
    row_order: str | None = None
    measure: str | None = None
    symmetrize: str = ""
    negative: str = ""
    frames: tuple[float, float] | None = None
    reference: str | Path | None = None
    exclude: str | Path | Sequence[str] | None = None
    skip_faulty: bool | None = None

    def change(self, **options: Any) -> "ReadingOptions":
        """Return the record with other values of some options.

        Raises
        ------
        ParameterError
            If an option is unknown.
        """
        check_option_names(options)
        return replace(self, **options)

    def to_jsonable(self, option_names: Iterable[str] = ()) -> dict[str, Any]:
        """Return the options that are known, as JSON takes them.

        `option_names` restricts them to some options. A connectome that is an array or
        a table is left out.
        """
        selected_option_names = {*option_names} or {
            option_field.name for option_field in fields(self)
        }
        if not isinstance(self.connectome, str | Path):
            selected_option_names.discard("connectome")
        return {
            option_name: to_jsonable(
                option_value.name if isinstance(option_value, Atlas) else option_value
            )
            for option_name, option_value in vars(self).items()
            if option_name in selected_option_names and _is_specified(option_value)
        }

    @classmethod
    def from_jsonable(cls, options: Mapping[str, Any] | None) -> "ReadingOptions":
        """Return the record of the options that :meth:`to_jsonable` returned."""
        reading_options = cls(**(options or {}))
        if reading_options.frames is None:
            return reading_options
        frame_start, frame_end = reading_options.frames
        return replace(reading_options, frames=(frame_start, frame_end))


DEFAULT_OPTIONS = ReadingOptions(
    atlas="destrieux160",
    label="diagnosis",
    scans="all",
    subcortex="absent",
    symmetrize="refuse",
    negative="refuse",
    skip_faulty=False,
)
"""Default options for a study that is read from its folder."""


def get_changed_value_by_option(
    reading_options: ReadingOptions, option_names: Iterable[str]
) -> dict[str, Any]:
    """Return the options among `option_names` that are not the default."""
    default_value_by_option = DEFAULT_OPTIONS.to_jsonable()
    return {
        option_name: option_value
        for option_name, option_value in reading_options.to_jsonable(
            option_names
        ).items()
        if option_value != default_value_by_option.get(option_name)
    }


def check_option_names(
    option_names: Iterable[str], further_option_names: Iterable[str] = ()
) -> None:
    """Raise if names are neither reading options nor among `further_option_names`."""
    valid_option_names = [
        *(option_field.name for option_field in fields(ReadingOptions)),
        *further_option_names,
    ]
    for option_name in option_names:
        if option_name in valid_option_names:
            continue
        nearest_option_names = get_close_matches(
            option_name, valid_option_names, n=1, cutoff=0.75
        )
        advice = f"The options are {', '.join(sorted(valid_option_names))}"
        if nearest_option_names:
            advice = f"The nearest name is {nearest_option_names[0]}"
        raise ParameterError(
            f"there is no option {option_name}= for reading a study. {advice}."
        )


def _is_specified(option_value: object) -> bool:
    """Return whether an option has a value that is neither None nor empty."""
    if isinstance(option_value, str | Mapping | list | tuple):
        return bool(option_value)
    return option_value is not None


__all__ = [
    "DEFAULT_OPTIONS",
    "ReadingOptions",
    "check_option_names",
    "get_changed_value_by_option",
]
