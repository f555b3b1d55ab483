"""What is told of a cohort once its arrays are gone."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class CohortSummary:
    """What a report tells of a cohort, without its arrays.

    Parameters
    ----------
    table : DataFrame
        One row per scan: scan, participant, session, label, covariates. It names
        people: nothing of it goes into a report but counts and means.
    classes : tuple of str
        All classes, in order of stage.
    label_name : str
        What the label is, for example "diagnosis".
    atlas_name : str
        Name of the region set.
    region_names : tuple of str
        Name of every region.
    measured : array of bool of shape (n_rois,)
        Whether a region was measured in any scan.
    feature_names : tuple of str
        Name of every feature of a region.
    notes : tuple of str
        What was mapped, mirrored or dropped while reading.
    provenance : dict
        Where the cohort comes from.
    data_hash : str
        SHA-256 of connectomes, features and labels.

    Examples
    --------
    See :func:`brainlsap.evaluation.cross_validate`.
    """

    table: pd.DataFrame
    classes: tuple[str, ...]
    label_name: str
    atlas_name: str
    region_names: tuple[str, ...]
    measured: np.ndarray
    feature_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    data_hash: str = ""

    @property
    def n_scans(self) -> int:
        """Number of scans."""
        return len(self.table)

    @property
    def n_participants(self) -> int:
        """Number of people."""
        return int(self.table["participant"].nunique())

    def class_counts(self) -> pd.DataFrame:
        """Return people and scans of every class.

        Returns
        -------
        DataFrame
            Columns class, participants, scans; who changes class counts in each.
        """
        by_label = self.table.groupby("label")
        scans, people = by_label.size(), by_label["participant"].nunique()
        return pd.DataFrame(
            {
                "class": list(self.classes),
                "participants": [int(people.get(name, 0)) for name in self.classes],
                "scans": [int(scans.get(name, 0)) for name in self.classes],
            }
        )
