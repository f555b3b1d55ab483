"""Weights of streamlines: text of tcksift2, arrays, what is refused."""

import numpy as np
import pytest

from brainlsap.data.streamline_weights import read_streamline_weights
from brainlsap.exceptions import FileFormatError


@pytest.mark.parametrize("text", ["1 2.5 0\n", "# tcksift2\n1\n2.5\n0\n", "1,2.5,0"])
def test_numbers_are_read_however_they_are_separated(write, text):
    assert read_streamline_weights(write("w.txt", text)).tolist() == [1, 2.5, 0]


def test_what_is_no_weight_is_refused(write, tmp_path):
    with pytest.raises(FileFormatError, match=r"w\.txt: expected one number for each"):
        read_streamline_weights(write("w.txt", "1 two 3"))
    with pytest.raises(FileFormatError, match=r"x\.txt: no such file"):
        read_streamline_weights(tmp_path / "x.txt")
    for bad in (-1, np.nan, np.inf):
        with pytest.raises(FileFormatError, match="not negative; number 2 is"):
            read_streamline_weights(np.array([1, bad]))
