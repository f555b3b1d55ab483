"""The slow truth of tractography: one streamline, one voxel at a time, float64."""

from itertools import pairwise

import numpy as np


def half_away(x):
    return int(np.trunc(x + np.copysign(0.5, x)))


def label_at(labels, voxel):
    inside = all(0 <= v < n for v, n in zip(voxel, labels.shape, strict=True))
    return int(labels[tuple(voxel)]) if inside else 0


def voxel_of(point, affine):
    x = np.linalg.inv(affine) @ [*np.asarray(point, float), 1]
    return np.array([half_away(v) for v in x[:3]])


def end_voxel(line, labels, affine, at_end, radius):  # noqa: ARG001
    return label_at(labels, voxel_of(line[-1 if at_end else 0], affine))


def radial(line, labels, affine, at_end, radius):
    """Return the label of the nearest centre; of the first by distance, z, y, x."""
    point = np.asarray(line[-1 if at_end else 0], float)
    own = voxel_of(point, affine)
    spacing = np.linalg.norm(affine[:3, :3], axis=0)
    voxels = np.argwhere(labels)
    centres = voxels @ affine[:3, :3].T + affine[:3, 3]
    distance = np.round(np.linalg.norm(point - centres, axis=1), 9)
    around = np.round(np.linalg.norm((voxels - own) * spacing, axis=1), 9)
    x, y, z = (voxels - own).T
    first = np.lexsort((x, y, z, around, distance))[0]
    return int(labels[tuple(voxels[first])]) if distance[first] < radius else 0


RULES = {"end_voxels": end_voxel, "radial": radial}


def slow_connectome(lines, labels, affine, rule, radius, weight, factors):
    """Return the matrix of labels 1 to n, and how many streamlines have two nodes."""
    n = int(labels.max())
    total, share = np.zeros((2, n, n))
    n_kept = 0
    for line, factor in zip(lines, factors, strict=True):
        if not len(line):
            continue
        ends = [RULES[rule](line, labels, affine, end, radius) for end in (False, True)]
        if 0 in ends:
            continue
        n_kept += 1
        steps = pairwise(np.asarray(line, float))
        length = sum(np.linalg.norm(b - a) for a, b in steps)
        voxels = sum(int((labels == end).sum()) for end in ends)
        value = {
            "count": 1.0,
            "inverse_length": 1 / length if length else 0.0,
            "inverse_node_volume": 2 / voxels,
            "mean_length": length,
        }[weight]
        for a, b in {(ends[0], ends[1]), (ends[1], ends[0])}:
            total[a - 1, b - 1] += value * factor
            share[a - 1, b - 1] += factor
    if weight == "mean_length":
        total = np.divide(total, share, np.zeros_like(total), where=share > 0)
    return total, n_kept
