"""The cohort: scans of people as frozen, aligned arrays with named axes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap._arrays import pack
from brainlsap._scratch import take_rows
from brainlsap.data.atlas import Atlas
from brainlsap.data.cohort_checks import (
    KEY_COLUMNS,
    cohort_faults,
    frozen_array,
    is_shared,
)
from brainlsap.exceptions import CohortError, ParameterError


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """Scans of people: a connectome, regional features and a label for each.

    The arrays are checked once, here, and cannot be written to afterwards. All of
    them follow the same order of scans (`table`) and of regions (`atlas`).

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
        Symmetric, finite, not negative; float64. One matrix for everybody is best
        given as `np.broadcast_to(matrix, (n_scans, n_rois, n_rois))`, which is kept
        as it is and costs the memory of one matrix.
    features : array of shape (n_scans, n_rois, n_features)
        In the units of the files that they come from; NaN where not measured.
    table : DataFrame
        One row per scan: scan (unique), participant (the person), session (visit of
        the person, may be empty) and label, all as text; then any covariates.
    atlas : Atlas
        Names the regions of the second axis.
    feature_names : tuple of str
        Names the last axis of `features`.
    classes : tuple of str
        The labels in order of stage; holds every label of `table`.
    label_name : str
        What the label is, for example `"diagnosis"`.
    notes : tuple of str
        What was mapped, mirrored or dropped while reading.
    provenance : dict
        Where the cohort comes from; must be expressible as JSON.
    truth : DataFrame, optional
        For simulated cohorts: region, seed (bool), effect (float).

    Raises
    ------
    CohortError
        With every fault, where the parts do not fit each other.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> atlas = load_atlas("desikan82")
    >>> n_scans, n_rois = 3, len(atlas)
    >>> table = pd.DataFrame(
    ...     {
    ...         "scan": ["a-1", "a-2", "b-1"],
    ...         "participant": ["a", "a", "b"],
    ...         "session": ["1", "2", "1"],
    ...         "label": ["CN", "CN", "AD"],
    ...     }
    ... )
    >>> cohort = Cohort(
    ...     connectomes=np.broadcast_to(np.eye(n_rois), (n_scans, n_rois, n_rois)),
    ...     features=np.ones((n_scans, n_rois, 1)),
    ...     table=table,
    ...     atlas=atlas,
    ...     feature_names=("thickness",),
    ...     classes=("CN", "AD"),
    ... )
    >>> cohort
    Cohort(3 scans of 2 people, 82 regions of desikan82, thickness, diagnosis)
    >>> cohort.select(cohort.y == "CN").n_scans
    2
    >>> cohort.to_array().shape
    (3, 82, 83)
    """

    connectomes: np.ndarray
    features: np.ndarray
    table: pd.DataFrame
    atlas: Atlas
    feature_names: tuple[str, ...]
    classes: tuple[str, ...]
    label_name: str = "diagnosis"
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    truth: pd.DataFrame | None = None
    classes_ordered: bool = True

    def __post_init__(self) -> None:
        store = object.__setattr__
        store(self, "connectomes", frozen_array(self.connectomes))
        store(self, "features", frozen_array(self.features))
        store(self, "feature_names", tuple(self.feature_names))
        store(self, "classes", tuple(str(name) for name in self.classes))
        store(self, "notes", tuple(self.notes))
        faults = cohort_faults(self)
        if faults:
            raise CohortError("these parts do not make a cohort", faults)
        table = self.table.reset_index(drop=True)
        for column in KEY_COLUMNS:
            table[column] = table[column].astype(object).fillna("").astype(str)
        rest = [name for name in table.columns if name not in KEY_COLUMNS]
        store(self, "table", table[[*KEY_COLUMNS, *rest]])

    def __repr__(self) -> str:
        n_people = self.table["participant"].nunique()
        return (
            f"Cohort({self.n_scans} scans of {n_people} people, {self.n_rois} regions "
            f"of {self.atlas.name}, {', '.join(self.feature_names)}, {self.label_name})"
        )

    @property
    def n_scans(self) -> int:
        """Number of scans."""
        return self.features.shape[0]

    @property
    def n_rois(self) -> int:
        """Number of regions."""
        return self.features.shape[1]

    @property
    def n_features(self) -> int:
        """Number of features of every region."""
        return self.features.shape[2]

    @property
    def region_names(self) -> tuple[str, ...]:
        """Name of every region, in the order of the arrays."""
        return self.atlas.names

    @property
    def y(self) -> np.ndarray:
        """Label of every scan: object array of str, shape (n_scans,)."""
        return self.table["label"].to_numpy(dtype=object)

    @property
    def groups(self) -> np.ndarray:
        """Participant of every scan: object array of str, shape (n_scans,)."""
        return self.table["participant"].to_numpy(dtype=object)

    @property
    def measured(self) -> np.ndarray:
        """Mask of what was measured, shape (n_scans, n_rois, n_features)."""
        return ~np.isnan(self.features)

    @property
    def shares_connectome(self) -> bool:
        """Whether one matrix in memory serves all scans."""
        return is_shared(self.connectomes)

    def select(self, rows: np.ndarray | Sequence[int] | Sequence[bool]) -> "Cohort":
        """Return the cohort of some scans; classes, notes and truth stay.

        Parameters
        ----------
        rows : bool array of shape (n_scans,), or int array
            A mask, or positions in the order wanted (each at most once).

        Returns
        -------
        Cohort

        Raises
        ------
        ParameterError
            Where `rows` is a mask of another length, or points outside.
        """
        index = self._positions(np.asarray(rows))
        if self.shares_connectome:
            shape = (len(index), self.n_rois, self.n_rois)
            connectomes = np.broadcast_to(self.connectomes[0], shape)
        else:
            connectomes = take_rows(self.connectomes, index)
            connectomes.flags.writeable = False  # else the new cohort copies it
        return Cohort(
            connectomes=connectomes,
            features=self.features[index],
            table=self.table.iloc[index],
            atlas=self.atlas,
            feature_names=self.feature_names,
            classes=self.classes,
            label_name=self.label_name,
            notes=self.notes,
            provenance=self.provenance,
            truth=self.truth,
            classes_ordered=self.classes_ordered,
        )

    def _positions(self, rows: np.ndarray) -> np.ndarray:
        if rows.dtype == bool and rows.shape == (self.n_scans,):
            rows = np.flatnonzero(rows)
        if rows.size == 0:
            raise ParameterError("rows must select at least one scan, got none.")
        if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
            raise ParameterError(
                f"rows must be a mask of length {self.n_scans} or positions as whole "
                f"numbers, got an array of {rows.dtype} and shape {rows.shape}."
            )
        outside = rows[(rows < -self.n_scans) | (rows >= self.n_scans)]
        if outside.size:
            raise ParameterError(
                f"rows must lie between 0 and {self.n_scans - 1}, got {outside[0]}."
            )
        return rows

    def to_array(self) -> np.ndarray:
        """Pack connectomes and features for scikit-learn.

        Returns
        -------
        array of shape (n_scans, n_rois, n_rois + n_features)
            A copy; the connectome first, NaN where a feature was not measured.
            Above 500 MB it is mapped to a file (:mod:`brainlsap._scratch`).
        """
        return pack(self.connectomes, self.features)

    def write(self, path: str | Path) -> Path:
        """Write the cohort to one HDF5 file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            An existing file is replaced.

        Returns
        -------
        Path
        """
        from brainlsap.data.cohort_file import write_cohort

        return write_cohort(self, path)

    @staticmethod
    def read(path: str | Path) -> "Cohort":
        """Read a cohort that :meth:`write` has written.

        Parameters
        ----------
        path : str or Path
            Of the file.

        Returns
        -------
        Cohort

        Raises
        ------
        FileFormatError
            Where the file is missing, cut short, or something else.
        """
        from brainlsap.data.cohort_file import read_cohort

        return read_cohort(path)

    def save(self, path: str | Path) -> Path:
        """Write the cohort to one file."""
        return self.write(path)

    load = read

    def write_folder(self, folder: str | Path) -> Path:
        """Write a study folder."""
        from brainlsap.data.subject_folders import write_subject_folders

        return write_subject_folders(self, folder)
