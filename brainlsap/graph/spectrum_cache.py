"""Spectra kept for later folds, kernels and starts; large ones on disk."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from brainlsap._scratch import map_of, new_array, release, row_blocks
from brainlsap.graph.laplacian import (
    Spectrum,
    decompose,
    new_tensor,
    normalized_laplacian,
)

# Graphs decomposed in one go.
_AT_ONCE = 16
# Graphs whose eigenvectors are held at once where they are copied.
_COPIED_AT_ONCE = 256
_MOST_ON_DISK = 20_000_000_000
# A bar is shown to whom waits longer than these seconds at a terminal.
_PATIENCE = 5.0


@dataclass(frozen=True, eq=False)
class _Shelf:
    """Spectra that were made in one call, in float64.

    Attributes
    ----------
    eigenvalues : array of shape (n_graphs, n_rois)
    eigenvectors : array of shape (n_graphs, n_rois, n_rois)
    row_of : dict of bytes to int
        Row of every graph, by its hash.
    """

    eigenvalues: np.ndarray
    eigenvectors: np.ndarray
    row_of: dict[bytes, int]

    @property
    def on_disk(self) -> bool:
        return map_of(self.eigenvectors) is not None


class SpectrumCache:
    """Spectra by the hash of the prepared connectome, the oldest dropped first.

    Folds, kernels and seeds see the same graphs again and again, and a shared
    connectome is one graph however many people use it. What is large is mapped to a
    file (:mod:`brainlsap._scratch`); connectomes are looked at some at a time, so that
    those of a large cohort can stay where they are.

    Parameters
    ----------
    max_bytes : int
        Memory to use at the most; files may hold 20 GB. Spectra of the call at hand
        are kept even if they are more.

    Examples
    --------
    >>> W = np.broadcast_to(1.0 - np.eye(3), (5, 3, 3))
    >>> spectrum, graph_of = SpectrumCache().spectra(W)
    >>> spectrum.eigenvalues.shape, graph_of.tolist()
    (torch.Size([1, 3]), [0, 0, 0, 0, 0])
    """

    def __init__(self, max_bytes: int = 1_000_000_000) -> None:
        self.max_bytes = max_bytes
        self._shelves: OrderedDict[int, _Shelf] = OrderedDict()
        self._shelf_of: dict[bytes, int] = {}
        self._n_made = 0

    def spectra(
        self,
        W: np.ndarray,
        prepare: Callable[[np.ndarray, int], np.ndarray] | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> tuple[Spectrum, np.ndarray]:
        """Return the spectra of the distinct graphs, and each scan's graph.

        Parameters
        ----------
        W : array of shape (n_scans, n_rois, n_rois)
            Connectomes; prepared ones where `prepare` is not given.
        prepare : callable, optional
            Takes some connectomes and the number of the first of them, and returns
            them prepared.
        dtype : torch.dtype
            What the eigenvectors are wanted in.

        Returns
        -------
        spectrum : Spectrum
            Of the distinct graphs; eigenvalues in float64.
        graph_of : int array of shape (n_scans,)
            Row of `spectrum` that belongs to each scan.
        """
        distinct, graph_of = self._find(W, prepare)
        shape = (len(distinct), *W.shape[1:])
        vectors = new_tensor(shape, dtype)
        for start in range(0, len(distinct), _COPIED_AT_ONCE):
            for row in range(start, min(start + _COPIED_AT_ONCE, len(distinct))):
                shelf, place = self._place(distinct[row])
                vectors[row] = torch.from_numpy(shelf.eigenvectors[place])
            release()
        return Spectrum(self._eigenvalues(distinct), vectors), graph_of

    def eigenvalues(
        self,
        W: np.ndarray,
        prepare: Callable[[np.ndarray, int], np.ndarray] | None = None,
    ) -> tuple[Tensor, np.ndarray]:
        """Return the eigenvalues of the distinct graphs, and each scan's graph.

        Parameters
        ----------
        W : array of shape (n_scans, n_rois, n_rois)
            As for :meth:`spectra`.
        prepare : callable, optional
            As for :meth:`spectra`.

        Returns
        -------
        eigenvalues : Tensor of shape (n_graphs, n_rois)
            In float64.
        graph_of : int array of shape (n_scans,)
        """
        distinct, graph_of = self._find(W, prepare)
        return self._eigenvalues(distinct), graph_of

    def _eigenvalues(self, keys: Sequence[bytes]) -> Tensor:
        places = [self._place(key) for key in keys]
        return torch.from_numpy(np.stack([s.eigenvalues[row] for s, row in places]))

    def _place(self, key: bytes) -> tuple[_Shelf, int]:
        shelf = self._shelves[self._shelf_of[key]]
        return shelf, shelf.row_of[key]

    def _find(
        self, W: np.ndarray, prepare: Callable[[np.ndarray, int], np.ndarray] | None
    ) -> tuple[list[bytes], np.ndarray]:
        """Decompose what is new; return the distinct graphs' keys, and each scan's."""
        shared = len(W) > 1 and W.strides[0] == 0
        told = W[:1] if shared else W
        keys: list[bytes] = []
        for part in row_blocks(told):
            keys += map(_key, _prepared(told[part], part.start, prepare))
        first: dict[bytes, int] = {}
        for row, key in enumerate(keys):
            first.setdefault(key, row)
        fresh = {k: row for k, row in first.items() if k not in self._shelf_of}
        wanted = {self._shelf_of[k] for k in first if k in self._shelf_of}
        for number in wanted:
            self._shelves.move_to_end(number)
        if fresh:
            self._keep(_decompose_rows(told, fresh, prepare), wanted)
        distinct = list(first)
        number_of = {key: number for number, key in enumerate(distinct)}
        graph_of = np.array([number_of[key] for key in keys])
        return distinct, np.zeros(len(W), dtype=np.int64) if shared else graph_of

    def _keep(self, shelf: _Shelf, wanted: set[int]) -> None:
        self._n_made += 1
        self._shelves[self._n_made] = shelf
        self._shelf_of.update(dict.fromkeys(shelf.row_of, self._n_made))
        limits = {False: self.max_bytes, True: _MOST_ON_DISK}
        held = {kind: self._bytes(on_disk=kind) for kind in limits}
        for number, one in list(self._shelves.items()):
            kind = one.on_disk
            if number in {*wanted, self._n_made} or held[kind] <= limits[kind]:
                continue
            held[kind] -= one.eigenvectors.nbytes
            del self._shelves[number]
            for key in one.row_of:
                del self._shelf_of[key]

    def _bytes(self, *, on_disk: bool) -> int:
        shelves = self._shelves.values()
        return sum(s.eigenvectors.nbytes for s in shelves if s.on_disk == on_disk)


def _decompose_rows(
    W: np.ndarray,
    row_of: dict[bytes, int],
    prepare: Callable[[np.ndarray, int], np.ndarray] | None,
) -> _Shelf:
    """Decompose some of the graphs, a few at a time."""
    rows = np.array(list(row_of.values()))
    values = np.empty((len(rows), W.shape[-1]))
    vectors = new_array((len(rows), *W.shape[1:]))
    starts = range(0, len(rows), _AT_ONCE)
    for start in tqdm(
        starts,
        "decomposing",
        unit="graph",
        unit_scale=_AT_ONCE,
        delay=_PATIENCE,
        leave=False,
        disable=None,
    ):
        part = slice(start, start + _AT_ONCE)
        few = np.concatenate([_prepared(W[r : r + 1], r, prepare) for r in rows[part]])
        spectrum = decompose(normalized_laplacian(few))
        values[part] = spectrum.eigenvalues.numpy()
        vectors[part] = spectrum.eigenvectors.numpy()
        if start % (16 * _AT_ONCE) == 0:
            release(W)
    release(W)
    return _Shelf(values, vectors, {key: k for k, key in enumerate(row_of)})


def _prepared(
    W: np.ndarray,
    first_row: int,
    prepare: Callable[[np.ndarray, int], np.ndarray] | None,
) -> np.ndarray:
    return W if prepare is None else prepare(W, first_row)


def _key(W: np.ndarray) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(W).tobytes(), digest_size=16).digest()
