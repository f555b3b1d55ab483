"""How far a region looks: its row of the heat kernel, by name."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.exceptions import ParameterError, RegionNameError


def kernel_reach(
    connectome: np.ndarray | pd.DataFrame,
    scale: Any,
    regions: str | Sequence[str] | None = None,
    *,
    region_names: Sequence[str] | None = None,
    kernel: str = "exact",
    share: bool = False,
) -> pd.DataFrame:
    r"""Return what every region adds to the diffused value of some regions.

    Row :math:`p` of the heat kernel, :math:`K_{pq} = [e^{-s_p L}]_{pq}`, with the
    scale :math:`s_p` of the region that looks. A scale of 0 sees nothing but itself.

    Parameters
    ----------
    connectome : array of shape (n_rois, n_rois), or DataFrame with names
        Symmetric, non-negative weights.
    scale : float, array of shape (n_rois,), Series or mapping by name
        Heat scale of every region. Dimensionless.
    regions : str, sequence of str or None
        Whose reach, by the names of the rows; None means all.
    region_names : sequence of str or None
        Name of every row; None takes a data frame's own.
    kernel : {"exact", "chebyshev", "hermite", "laguerre"}
        As for :func:`brainlsap.graph.heat_kernel`.
    share : bool
        Divide each row by the sum of its sizes, so that it adds up to 1.

    Returns
    -------
    DataFrame
        A row for each of `regions`, a column for every region.

    Raises
    ------
    ParameterError
        If rows have no names, or scales or connectome do not fit them.
    RegionNameError
        If a region is none of the rows, or a name stands twice.

    Examples
    --------
    >>> weights = pd.DataFrame([[0.0, 9], [9, 0]], index=["a", "b"], columns=["a", "b"])
    >>> kernel_reach(weights, {"a": 0.0, "b": 50.0}).round(3).to_numpy().tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    from brainlsap.graph import heat_kernel, normalized_laplacian

    weights, names = _named(connectome, region_names)
    scales = _scales(scale, names)
    laplacian = normalized_laplacian(weights)
    import torch

    rows = heat_kernel(laplacian, torch.as_tensor(scales), kernel=kernel).numpy()
    if share:
        rows = rows / np.abs(rows).sum(axis=1, keepdims=True)
    wanted = [regions] if isinstance(regions, str) else regions
    chosen = names if wanted is None else list(wanted)
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise RegionNameError(
            f"{unknown[0]!r} is none of the {len(names)} regions of the connectome; "
            f"they are named as {names[0]!r}."
        )
    return pd.DataFrame(rows, index=names, columns=names).loc[chosen]


def reach_table(reach: pd.DataFrame) -> pd.DataFrame:
    r"""Summarise how far regions look, in three numbers each.

    Parameters
    ----------
    reach : DataFrame
        As from :func:`kernel_reach`.

    Returns
    -------
    DataFrame
        One row a region: region; own_share, its own value's share of the whole row;
        effective_regions, :math:`e^H` of the row's shares with entropy :math:`H` (1:
        it sees itself alone; n_rois: all alike); and strongest_other, the other region
        that adds most.

    Examples
    --------
    >>> reach = pd.DataFrame([[0.5, 0.5]], index=["a"], columns=["a", "b"])
    >>> reach_table(reach).round(2).values.tolist()
    [['a', 0.5, 2.0, 'b']]
    """
    sizes = reach.abs()
    shares = sizes.div(sizes.sum(axis=1), axis=0).to_numpy()
    logs = np.log(np.where(shares > 0, shares, 1.0))
    places = reach.columns.get_indexer(reach.index)
    others = shares.copy()
    others[np.arange(len(reach)), places] = -1.0
    return pd.DataFrame(
        {
            "region": list(reach.index),
            "own_share": shares[np.arange(len(reach)), places],
            "effective_regions": np.exp(-(shares * logs).sum(axis=1)),
            "strongest_other": reach.columns[others.argmax(axis=1)],
        }
    )


def _named(
    connectome: np.ndarray | pd.DataFrame, region_names: Sequence[str] | None
) -> tuple[np.ndarray, list[str]]:
    if isinstance(connectome, pd.DataFrame) and region_names is None:
        if list(connectome.index) != list(connectome.columns):
            raise ParameterError(
                "connectome's rows and columns must have the same names in the same "
                "order."
            )
        region_names = list(connectome.index)
    if region_names is None:
        raise ParameterError(
            "an array has no names: give region_names, one for each row."
        )
    weights, names = np.array(connectome, dtype=float), list(region_names)
    if weights.shape != (len(names), len(names)):
        raise ParameterError(
            f"connectome must have shape (n_rois, n_rois) for {len(names)} region "
            f"names, got {weights.shape}."
        )
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise RegionNameError(f"region {double!r} stands twice in region_names.")
    return weights, names


def _scales(scale: Any, names: list[str]) -> np.ndarray:
    if isinstance(scale, dict | pd.Series):
        given = pd.Series(scale, dtype=float)
        missing = [name for name in names if name not in given.index]
        if missing:
            raise ParameterError(
                f"scale has no value for {missing[0]!r} ({len(missing)} missing); give "
                "one for every region of the connectome."
            )
        scale = given.loc[names].to_numpy()
    scales = np.asarray(scale, dtype=float)
    if scales.ndim and scales.shape != (len(names),):
        raise ParameterError(
            f"scale must be one number or one for each of {len(names)} regions, got "
            f"shape {scales.shape}."
        )
    return np.broadcast_to(scales, (len(names),)).copy()
