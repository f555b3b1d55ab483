"""Compressed matrices of a stranger's arrays."""

import numpy as np
import pytest
from scipy import sparse

from brainlsap.data.sparse_parts import matrix_of_parts


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_array])
def test_whole_matrices_come_back(layout):
    whole = np.random.default_rng(2).poisson(0.4, (5, 7))
    made = layout(whole)
    parts = made.data, made.indices, made.indptr
    np.testing.assert_array_equal(
        matrix_of_parts(*parts, (5, 7), layout).toarray(), whole
    )


@pytest.mark.parametrize(
    ("indices", "pointers", "said"),
    [
        ([0, 1], [0, 2, 0], "pointers do not ascend"),
        ([0, 1], [0, 9, 2], "pointers do not ascend"),
        ([0, 1], [0, 1, 9], "last value of index pointer|Last value"),
        ([0, 9], [0, 1, 2], "< 3"),
        ([0, -1], [0, 1, 2], ">= 0"),
        ([0, 1], [0, 2], "index pointer size"),
    ],
)
def test_arrays_that_make_no_matrix(indices, pointers, said):
    with pytest.raises(ValueError, match=said):
        matrix_of_parts(np.ones(2), np.array(indices), np.array(pointers), (2, 3))
