"""What an export is made of, and what stands beside every file of it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap._files import write_text
from brainlsap.data.atlas import Atlas
from brainlsap.images.parcellation import LabelImage

# Hemisphere -> FreeSurfer's prefix, the word, Connectome Workbench's structure.
SIDES = {"L": ("lh", "left", "CortexLeft"), "R": ("rh", "right", "CortexRight")}


@dataclass(frozen=True, eq=False)
class Export:
    """What is written, the same for every format.

    Parameters
    ----------
    folder : Path
        Where to.
    atlas : Atlas
        The regions.
    maps : dict of str to ndarray of float, shape (n_rois,)
        By name; NaN where there is no value.
    measure : str
        What the values are.
    unit : str
        Of the values.
    parcellation : LabelImage or None
        Voxels of the regions.
    """

    folder: Path
    atlas: Atlas
    maps: Mapping[str, np.ndarray]
    measure: str
    unit: str
    parcellation: LabelImage | None = None

    def on_vertices(self, values: np.ndarray, side: str) -> np.ndarray:
        """Return the value of every vertex of fsaverage5; NaN on the medial wall."""
        labels = self.atlas.vertex_labels(side)
        return np.append(values, np.nan)[np.where(labels < 0, len(values), labels)]

    def about(self, **more: Any) -> dict[str, Any]:
        """Return what a sidecar says of every file."""
        try:
            number = version("brainlsap")
        except PackageNotFoundError:
            number = "0+unknown"
        return {
            "Description": f"{self.measure}, one value for each region.",
            "Atlas": self.atlas.name,
            "Maps": list(self.maps),
            "Units": self.unit,
            "GeneratedBy": [{"Name": "brainlsap", "Version": number}],
            **more,
        }


def slug(name: str) -> str:
    """Return a name that BIDS allows in a file's name: letters and digits.

    Parameters
    ----------
    name : str
        Such as the name of a model.

    Returns
    -------
    str

    Examples
    --------
    >>> slug("LSAP-C"), slug("")
    ('LSAPC', 'values')
    """
    return re.sub(r"[^0-9A-Za-z]", "", name) or "values"


def write_sidecar(path: Path, about: Mapping[str, Any]) -> Path:
    """Write what a file holds, as JSON of the same name.

    Parameters
    ----------
    path : Path
        The file.
    about : mapping
        What JSON takes.

    Returns
    -------
    Path
        The sidecar.
    """
    stem = path.name.split(".")[0] if path.name.endswith(".gz") else path.stem
    text = json.dumps(about, indent=1, ensure_ascii=False) + "\n"
    # A table in two formats has one sidecar, as BIDS has it.
    return write_text(path.with_name(f"{stem}.json"), text)
