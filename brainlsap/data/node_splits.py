"""Which nodes are learned from, which choose, and which are scored at the end."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from brainlsap.exceptions import FileFormatError, SplitError

_PARTS = ("train", "validation", "test")


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """Three sets of nodes that share none.

    Parameters
    ----------
    train : bool array of shape (n_nodes,)
        Learned from.
    validation : bool array of shape (n_nodes,)
        Choose epochs and settings.
    test : bool array of shape (n_nodes,)
        Scored once, at the end.

    Raises
    ------
    SplitError
        If masks overlap, are empty, or have other lengths.

    Examples
    --------
    >>> masks = np.eye(3, dtype=bool)
    >>> NodeSplit(*masks).sizes
    (1, 1, 1)
    >>> NodeSplit(masks[0], masks[0], masks[2])
    Traceback (most recent call last):
    brainlsap.exceptions.SplitError: 1 node(s) stand in both train and validation...
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    def __post_init__(self) -> None:
        masks = {part: np.asarray(getattr(self, part)) for part in _PARTS}
        for part, mask in masks.items():
            if mask.dtype != bool or mask.ndim != 1 or len(mask) != len(masks["train"]):
                raise SplitError(
                    f"{part} must be a mask of shape (n_nodes,) of true and false, "
                    f"got {mask.dtype} of shape {mask.shape}."
                )
            if not mask.any():
                raise SplitError(f"{part} holds no node.")
        for first, second in (_PARTS[:2], _PARTS[1:], _PARTS[::2]):
            shared = masks[first] & masks[second]
            if shared.any():
                raise SplitError(
                    f"{int(shared.sum())} node(s) stand in both {first} and {second}, "
                    f"the first is node {int(shared.argmax())}; masks must not overlap."
                )

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Nodes for training, validation and test."""
        return tuple(int(getattr(self, part).sum()) for part in _PARTS)  # type: ignore[return-value]


def split_per_class(
    labels: np.ndarray,
    n_per_class: int = 20,
    n_validation: int = 500,
    n_test: int | None = 1000,
    random_state: int = 0,
) -> NodeSplit:
    """Draw so many training nodes of every class, the rest from all others.

    Parameters
    ----------
    labels : int array of shape (n_nodes,)
        Classes; negative where there is none (such nodes stand in no set).
    n_per_class : int
        Training nodes of each class.
    n_validation : int
        Validation nodes.
    n_test : int or None
        Test nodes; None takes all that are left.
    random_state : int
        Seed.

    Returns
    -------
    NodeSplit

    Raises
    ------
    SplitError
        If there are too few nodes, of a class or altogether.

    Examples
    --------
    >>> split_per_class(np.arange(60) % 3, 5, 10, 20).sizes
    (15, 10, 20)
    """
    rng = np.random.default_rng(random_state)
    labels = np.asarray(labels)
    train = np.zeros(len(labels), bool)
    for code in np.unique(labels[labels >= 0]):
        members = np.flatnonzero(labels == code)
        if len(members) <= n_per_class:
            raise SplitError(
                f"class {code} has {len(members)} nodes; more than {n_per_class} are "
                "needed to train on so many. Lower n_per_class."
            )
        train[rng.choice(members, n_per_class, replace=False)] = True
    others = rng.permutation(np.flatnonzero((labels >= 0) & ~train))
    wanted = n_validation + (1 if n_test is None else n_test)
    if len(others) < wanted:
        raise SplitError(
            f"{len(others)} nodes are left for validation and test, {wanted} are "
            "needed. Lower n_validation or n_test."
        )
    last = None if n_test is None else wanted
    return NodeSplit(
        train,
        _mask(labels, others[:n_validation]),
        _mask(labels, others[n_validation:last]),
    )


def split_by_share(
    labels: np.ndarray,
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2),
    random_state: int = 0,
) -> NodeSplit:
    """Draw shares of every class for training, validation and test.

    Parameters
    ----------
    labels : int array of shape (n_nodes,)
        Classes; negative where there is none (such nodes stand in no set).
    shares : tuple of three float
        Positive, together 1.
    random_state : int
        Seed.

    Returns
    -------
    NodeSplit

    Raises
    ------
    SplitError
        If the shares are not positive or do not sum to 1.

    Examples
    --------
    >>> split_by_share(np.arange(50) % 2).sizes
    (30, 10, 10)
    """
    if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9 or len(shares) != 3:
        raise SplitError(
            f"shares must be three positive numbers that sum to 1, got {shares}."
        )
    rng = np.random.default_rng(random_state)
    labels = np.asarray(labels)
    parts: tuple[list, list, list] = ([], [], [])
    for code in np.unique(labels[labels >= 0]):
        members = rng.permutation(np.flatnonzero(labels == code))
        ends = np.round(np.cumsum(shares[:2]) * len(members)).astype(int)
        for part, drawn in zip(parts, np.split(members, ends), strict=True):
            part.append(drawn)
    return NodeSplit(*(_mask(labels, np.concatenate(part)) for part in parts))


def read_node_split(path: str | Path, n_nodes: int) -> NodeSplit:
    """Read a split from an .npz file with `train_mask`, `val_mask`, `test_mask`.

    Parameters
    ----------
    path : str or Path
        The file; masks may be of 0 and 1.
    n_nodes : int
        Nodes of the graph.

    Returns
    -------
    NodeSplit

    Raises
    ------
    FileFormatError
        If the file is no .npz of such masks; object arrays are refused.
    SplitError
        If masks overlap, are empty, or belong to another number of nodes.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "split.npz"
    >>> names = ("train_mask", "val_mask", "test_mask")
    >>> np.savez(path, **dict(zip(names, np.eye(3), strict=True)))
    >>> read_node_split(path, 3).sizes
    (1, 1, 1)
    """
    masks = [
        read_numbers(path, name) for name in ("train_mask", "val_mask", "test_mask")
    ]
    for part, mask in zip(_PARTS, masks, strict=True):
        if mask.shape != (n_nodes,) or not np.isin(mask, (0, 1)).all():
            raise SplitError(
                f"{path}: {part} must be {n_nodes} values of 0 and 1, one for every "
                f"node, got shape {mask.shape}."
            )
    try:
        return NodeSplit(*(mask.astype(bool) for mask in masks))
    except SplitError as error:
        raise SplitError(f"{path}: {error}") from None


def read_numbers(path: str | Path, name: str) -> np.ndarray:
    """Read one numeric array of an .npz file; nothing pickled is opened."""
    try:
        # numpy leaves its own file open where the archive is damaged
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            found = arrays[name]
    except KeyError:
        raise FileFormatError(f"{path} has no array {name!r}.") from None
    except FileNotFoundError:
        raise FileFormatError(f"{path} is not there.") from None
    except Exception as error:  # of zip, zlib and NumPy's header; of every kind
        raise _unreadable(path, name, error) from None
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "biuf":
        kind = getattr(found, "dtype", type(found).__name__)
        raise FileFormatError(f"{path}: {name!r} must hold numbers, got type {kind}.")
    return found


def _unreadable(path: str | Path, name: str, error: Exception) -> FileFormatError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return FileFormatError(
        f"{path}: {name!r} cannot be read as an array of numbers ({reason}); pickled "
        "objects are never opened."
    )


def _mask(labels: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    mask = np.zeros(len(labels), bool)
    mask[nodes] = True
    return mask
