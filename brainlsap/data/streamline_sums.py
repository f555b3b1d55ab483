"""Add up what the streamlines of all blocks give to the connections."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from brainlsap.data.streamline_blocks import StreamlineBlock

WEIGHTS = ("count", "inverse_length", "inverse_node_volume", "mean_length")
# From the ends of a block's streamlines to the codes of nodes, 0 for none.
EndFinder = Callable[[StreamlineBlock], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over streamlines for every pair of nodes, the smaller code first.

    Parameters
    ----------
    counts : int array of shape (n_nodes + 1, n_nodes + 1)
        Streamlines.
    values : array of shape (n_nodes + 1, n_nodes + 1)
        What they add.
    shares : array of shape (n_nodes + 1, n_nodes + 1) or None
        What a mean is divided by.
    """

    counts: np.ndarray
    values: np.ndarray
    shares: np.ndarray | None

    @property
    def n_streamlines(self) -> int:
        """All of them, whether or not their ends have nodes."""
        return int(self.counts.sum())

    @property
    def are_numbers(self) -> bool:
        """Whether no sum is NaN or beyond every number."""
        parts = [self.values] if self.shares is None else [self.values, self.shares]
        return all(bool(np.isfinite(part).all()) for part in parts)

    def matrix(self) -> np.ndarray:
        """Return the sums, or the means, of all pairs."""
        if self.shares is None:
            return self.values
        some = self.shares > 0
        nothing = np.zeros_like(self.values)
        return np.divide(self.values, self.shares, nothing, where=some)


def sum_blocks(
    blocks: Iterable[StreamlineBlock],
    ends: EndFinder,
    weight: str,
    volumes: np.ndarray,
    factors: np.ndarray | None = None,
    n_threads: int = 1,
) -> Sums:
    """Add up all blocks of a tractogram.

    Parameters
    ----------
    blocks : iterable of StreamlineBlock
        In the order of the file.
    ends : callable
        Gives the nodes of both ends.
    weight : str
        One of :data:`WEIGHTS`.
    volumes : array of shape (n_nodes + 1,)
        Voxels of every node.
    factors : array of shape (n_streamlines,), optional
        For every streamline.
    n_threads : int
        At once.

    Returns
    -------
    Sums
        The same for any number of threads.
    """
    n = len(volumes)
    counts = np.zeros(n * n, dtype=np.int64)
    values, shares = np.zeros((2, n * n))

    def of_block(block: StreamlineBlock) -> tuple[np.ndarray, ...]:
        return _sum_block(block, ends, weight, volumes, factors)

    for pair, here, value, share in _in_turn(of_block, blocks, n_threads):
        counts[pair] += here
        values[pair] += value
        shares[pair] += share
    square = (n, n)
    divisor = shares.reshape(square) if weight == "mean_length" else None
    return Sums(counts.reshape(square), values.reshape(square), divisor)


def _in_turn(
    call: Callable[[StreamlineBlock], tuple[np.ndarray, ...]],
    blocks: Iterable[StreamlineBlock],
    n_threads: int,
) -> Iterator[tuple[np.ndarray, ...]]:
    """Call for every block in threads; yield in the order of blocks."""
    with ThreadPoolExecutor(n_threads) as pool:
        waiting: deque = deque()
        for block in blocks:
            waiting.append(pool.submit(call, block))
            if len(waiting) > n_threads:  # no more blocks in memory than that
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _sum_block(
    block: StreamlineBlock,
    ends: EndFinder,
    weight: str,
    volumes: np.ndarray,
    factors: np.ndarray | None,
) -> tuple[np.ndarray, ...]:
    """Return pairs of nodes, and the counts, values and shares of each."""
    n = len(volumes)
    numbers = np.arange(block.first, block.first + len(block))
    has_points = block.stops > block.starts
    one, two = np.zeros((2, len(block)), dtype=np.int64)
    some = block if has_points.all() else block.select(has_points)
    one[has_points], two[has_points] = ends(some)
    given = np.ones(len(block))
    if factors is not None:
        inside = numbers < len(factors)
        given[inside] = factors[numbers[inside]]
    value = np.zeros(len(block))
    value[has_points] = given[has_points]
    if weight in ("mean_length", "inverse_length"):
        lengths = some.lengths
        if weight == "inverse_length":
            # a single point has no length, and adds nothing
            lengths = np.divide(1.0, lengths, np.zeros_like(lengths), where=lengths > 0)
        with np.errstate(over="ignore"):  # a sum that is no number is refused
            value[has_points] *= lengths
    elif weight == "inverse_node_volume":
        both = volumes[one] + volumes[two]
        value *= np.divide(2.0, both, np.zeros(len(both)), where=both > 0)
    key = np.minimum(one, two) * n + np.maximum(one, two)
    size = n * n
    counts = np.bincount(key, minlength=size)
    pair = np.flatnonzero(counts)
    sums = np.bincount(key, value, minlength=size)[pair]
    shares = np.bincount(key, given, minlength=size)[pair]
    return pair, counts[pair], sums, shares
