"""Indices of an HDF5 file (B-trees of version 1), looked at before its library is.

A node has a head, then keys and places of children in turn. Nodes of groups (kind 0)
have keys of 8 bytes. Those of chunks (kind 1) have a size, a mask and an offset for
each axis: how many axes, only the data set says, which points at the node.
"""

import mmap
import struct
from collections.abc import Iterable

_MARK = b"TREE"
_HEAD = 24
# Kind 1: most axes of a data set, and one for the size of an element.
_MOST_AXES = 33


def first_in_a_circle(held: mmap.mmap, starts: Iterable[int], base: int) -> int | None:
    """Return a node whose neighbours to the right lead back to it, if there is one.

    Parameters
    ----------
    held : mmap.mmap
        The file.
    starts : iterable of int
        Where nodes begin.
    base : int
        Where the file begins; places count from there.

    Returns
    -------
    int or None
    """
    ended: set[int] = set()
    for start in starts:
        way: set[int] = set()
        place = start
        while place not in ended and _is_node(held, place):
            if place in way:
                return place
            way.add(place)
            place = base + struct.unpack_from("<Q", held, place + 16)[0]
        ended |= way
    return None


def children_lead_down(held: mmap.mmap, start: int, base: int) -> bool:
    """Return whether a node's children are one level below it, none of them twice.

    What is no node at all is for the library to refuse.

    Parameters
    ----------
    held : mmap.mmap
        The file.
    start : int
        Where the node begins.
    base : int
        Where the file begins; places count from there.

    Returns
    -------
    bool
    """
    if not _is_node(held, start):
        return True
    kind, level, _ = struct.unpack_from("<BBH", held, start + 4)
    if level == 0 or kind > 1:
        return True
    if kind == 0:
        return _are_below(held, _children(held, start, base, 8), level, strict=False)
    # a node that is sound is so for the number of axes that it has; where it is so for
    # none, it is damaged if it names nodes at all (its mark may stand in data)
    sizes = [8 + 8 * n_axes for n_axes in range(2, _MOST_AXES + 1)]
    ways = [_children(held, start, base, size) for size in sizes]
    if any(_are_below(held, way, level, strict=True) for way in ways):
        return True
    return not any(_is_node(held, place) for way in ways for place in way)


def _is_node(held: mmap.mmap, place: int) -> bool:
    return place + _HEAD <= len(held) and held[place : place + 4] == _MARK


def _children(held: mmap.mmap, start: int, base: int, key: int) -> list[int]:
    """Return where the children would be if keys had so many bytes."""
    (n,) = struct.unpack_from("<H", held, start + 6)
    first, step = start + _HEAD + key, key + 8
    places = range(first, min(first + n * step, len(held) - 7), step)
    return [base + struct.unpack_from("<Q", held, place)[0] for place in places]


def _are_below(held: mmap.mmap, places: list[int], level: int, strict: bool) -> bool:
    """Return whether places are nodes one level down; others count if strict."""
    if len(set(places)) < len(places):
        return False
    for place in places:
        if not _is_node(held, place):
            if strict:
                return False
        elif held[place + 5] != level - 1:
            return False
    return True
