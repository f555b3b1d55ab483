"""Read the arrays of a cohort, scan by scan; gather faults and notes on the way."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from brainlsap._scratch import new_array, release, row_blocks
from brainlsap.data.atlas_order import ConnectomeFile
from brainlsap.data.connectomes import (
    check_connectome,
    read_connectome,
)
from brainlsap.data.feature_sources import FeatureSource, Scan
from brainlsap.data.name_lists import read_names
from brainlsap.data.scan_files import CohortFiles
from brainlsap.data.scan_list import ScanList
from brainlsap.data.source_choice import SourceChoice
from brainlsap.exceptions import BrainlsapError

STRENGTH = "strength"
NO_CONNECTOME = "none"
# Of a cohort that is mapped to a file, so many scans are in memory at once.
_ROWS_HELD = 256


class CohortReader:
    """Reads connectomes and features of listed scans.

    Parameters
    ----------
    listed : ScanList
        The scans to read.
    files : CohortFiles
        Of the cohort.
    choice : SourceChoice
        Knows where features come from.
    labels : sequence of str or path, optional
        Names of the rows of connectomes that have none.
    measure : str, optional
        Which matrix to take from files of several.

    Attributes
    ----------
    faults : list of str
        Everything that keeps the cohort from being loaded, in the order of scans.
    found : Counter of str
        Number of scans whose connectome, and whose feature, could be read.
    """

    def __init__(
        self,
        listed: ScanList,
        files: CohortFiles,
        choice: SourceChoice,
        labels: str | Path | Sequence[str] | None = None,
        measure: str | None = None,
    ) -> None:
        if isinstance(labels, str | Path):
            inside = files.folder / labels
            labels = read_names(inside if inside.is_file() else labels)
        self.labels, self.measure = labels, measure
        self.scans, self.files, self.choice = listed.scans, files, choice
        self.atlas = choice.atlas
        self.faults = list(listed.faults)
        self._notes: list[str] = []
        self._counts: Counter[str] = Counter()
        self.found: Counter[str] = Counter()

    def read(
        self,
        names: Sequence[str],
        connectome: str | Path | np.ndarray | None,
        progress: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Read connectomes and features.

        Parameters
        ----------
        names : sequence of str
            Of the features.
        connectome : path, array or None
            One for everybody, or None.
        progress : bool
            Whether to show a bar on standard error.

        Returns
        -------
        connectomes : array of shape (n_scans, n_rois, n_rois)
            A broadcast view where one serves everybody. Read-only.
        features : array of shape (n_scans, n_rois, n_features)
            Read-only.
        """
        n_scans, n_rois = len(self.scans), len(self.atlas)
        sources = self._choose(names)
        if connectome is None:
            W = new_array((n_scans, n_rois, n_rois))
        else:
            W = np.broadcast_to(
                self._read_shared(connectome), (n_scans, n_rois, n_rois)
            )
        X = np.full((n_scans, n_rois, len(names)), np.nan)
        for row in self._count(progress):
            if connectome is None:
                self._read_connectome(row, W)
            for column, name in enumerate(names):
                self._read_feature(row, name, sources.get(name), X[row, :, column])
            if row % _ROWS_HELD == 0:
                release()
        if STRENGTH in names:
            # a region's links to itself are no links to others
            for part in row_blocks(W):
                own = W[part].diagonal(axis1=1, axis2=2)
                X[part, :, names.index(STRENGTH)] = W[part].sum(axis=2) - own
        self._check_apart(names, X)
        if connectome is None:
            self._note_twins(W)
            W.flags.writeable = False
        X.flags.writeable = False
        return W, X

    def all_notes(self) -> list[str]:
        """Return what was mapped, mirrored or dropped, with counts of scans.

        Returns
        -------
        list of str
        """
        n_scans = len(self.scans)
        counted = [f"{note} ({n} of {n_scans})" for note, n in self._counts.items()]
        return self._notes + counted

    def _choose(self, names: Sequence[str]) -> dict[str, FeatureSource]:
        """Choose the source of every feature; list what it lacks."""
        sources: dict[str, FeatureSource] = {}
        if not self.scans:
            return sources  # why none is left is a fault already
        for name in names:
            if name == STRENGTH:
                self._notes.append("strength: sum of the connectome's weights")
                continue
            try:
                source = self.choice.find(name, self.scans)
            except BrainlsapError as error:
                self._add_fault(str(error))
                continue
            if not any(source is known for known in sources.values()):
                self._notes += source.notes
                for fault in source.faults:
                    self._add_fault(fault)
            sources[name] = source
        return sources

    def _count(self, progress: bool) -> Iterable[int]:
        from tqdm import tqdm

        rows = range(len(self.scans))
        return tqdm(
            rows, desc="reading", unit="scan", file=sys.stderr, disable=not progress
        )

    def _read_shared(self, connectome: str | Path | np.ndarray) -> np.ndarray:
        try:
            found = self._shared_file(connectome)
        except BrainlsapError as error:
            self._add_fault(str(error))
            return np.zeros((len(self.atlas), len(self.atlas)))
        self._notes.append("one connectome for everybody")
        self._notes += [f"the connectome: {note}" for note in found.notes]
        found.matrix.flags.writeable = False
        return found.matrix

    def _shared_file(self, connectome: str | Path | np.ndarray) -> ConnectomeFile:
        if isinstance(connectome, str) and connectome == NO_CONNECTOME:
            note = "none was read; the model has to make one, as of covariance"
            n_rois = len(self.atlas)
            return ConnectomeFile(np.zeros((n_rois, n_rois)), (note,))
        if isinstance(connectome, np.ndarray):
            return check_connectome(connectome, self.atlas, "connectome=")
        path, inside = Path(connectome), self.files.folder / connectome
        if not path.is_file() and inside.is_file():
            path = inside
        return self._read_file(path)

    def _read_file(self, path: Path) -> ConnectomeFile:
        return read_connectome(
            path, self.atlas, labels=self.labels, measure=self.measure
        )

    def _read_connectome(self, row: int, W: np.ndarray) -> None:
        scan = self.scans[row]
        W[row] = 0.0
        if not scan.files:
            wanted = f"below {self.files.folder / scan.participant / scan.session}"
            if self.files.flat:
                somewhere = next(iter(self.files.flat.values()))[0].path
                wanted = f"beside {somewhere}"
            self._add_fault(f"{scan.name}: no files; expected them {wanted}")
            return
        try:
            path = self.files.connectome(scan.files, self.atlas)
            found = self._read_file(path)
        except BrainlsapError as error:
            self._add_fault(str(error), scan)
            return
        W[row] = found.matrix
        self.found["connectome"] += 1
        self._counts.update(f"connectomes: {note}" for note in found.notes)

    def _read_feature(
        self, row: int, name: str, source: FeatureSource | None, values: np.ndarray
    ) -> None:
        if source is None:
            return
        try:
            found = source.read(row, name)
        except BrainlsapError as error:
            self._add_fault(str(error), self.scans[row])
            return
        if found is not None:
            values[:] = found.values
            self.found[name] += 1
            self._counts.update(found.notes)

    def _check_apart(self, names: Sequence[str], X: np.ndarray) -> None:
        """Refuse two features that were read from the very same numbers."""
        for column, name in enumerate(names):
            for other in range(column):
                one, two = X[:, :, column], X[:, :, other]
                both = np.isfinite(one) & np.isfinite(two)
                if both.any() and np.array_equal(one[both], two[both]):
                    self._add_fault(
                        f"{names[other]} and {name} have the same value in every "
                        "region of every scan; expected two measures. Say in the "
                        "names of the columns or files which is which"
                    )

    def _note_twins(self, W: np.ndarray) -> None:
        """Note identical connectomes of different people: a file copied by mistake."""
        owners: dict[int, set[str]] = {}
        for part in row_blocks(W):
            for scan, matrix in zip(self.scans[part], W[part], strict=True):
                owners.setdefault(hash(matrix.tobytes()), set()).add(scan.key[0])
        n_twins = sum(len(people) for people in owners.values() if len(people) > 1)
        if n_twins and not self.faults:
            self._notes.append(
                f"{n_twins} people have the very connectome of somebody else: "
                "look for files that were copied"
            )

    def _add_fault(self, message: str, scan: Scan | None = None) -> None:
        message = message.rstrip(".")
        if scan is not None and scan.name not in message:
            message = f"{scan.name}: {message}"
        if message not in self.faults:
            self.faults.append(message)
