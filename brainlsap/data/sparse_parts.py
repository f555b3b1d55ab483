"""Sparse matrices made of the arrays of a stranger."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse


def matrix_of_parts(
    data: np.ndarray,
    indices: np.ndarray,
    pointers: np.ndarray,
    shape: Sequence[int],
    layout: type[Any] = sparse.csr_array,
) -> Any:
    """Make a compressed matrix of its three arrays, and check it whole.

    SciPy's compiled loops trust indices and pointers: wrong ones write outside of
    memory. Its own check leaves out pointers that end at 0.

    Parameters
    ----------
    data, indices : arrays of shape (n_entries,)
        Values, and the column (CSR) or row (CSC) of each.
    pointers : int array of shape (n_rows + 1,)
        Where each row (column) begins.
    shape : sequence of two ints
        Of the matrix.
    layout : type
        `scipy.sparse.csr_array` or `csc_array`.

    Returns
    -------
    SciPy sparse array of shape `shape`

    Raises
    ------
    ValueError
        Where the arrays make no matrix.

    Examples
    --------
    >>> parts = np.array([2.0]), np.array([1]), np.array([0, 1, 1])
    >>> matrix_of_parts(*parts, (2, 2)).toarray().tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    matrix = layout((data, indices, pointers), shape=tuple(shape))
    if (np.diff(matrix.indptr) < 0).any():
        raise ValueError("its pointers do not ascend")
    matrix.check_format(full_check=True)
    return matrix
