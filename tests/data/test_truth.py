"""The answer of a simulated folder."""

import pytest

from brainlsap.data.truth import read_truth
from brainlsap.exceptions import FileFormatError


def truth_file(write, tiny, seed="true", head="region\tseed\teffect\teffect_fdg"):
    rows = [f"{name}\t{seed}\t{-i}\t{i / 4}" for i, name in enumerate(tiny.names)]
    return write("truth.tsv", "\n".join([head, *rows[::-1]]) + "\n").parent


def test_rows_come_in_the_order_of_the_atlas(write, tiny):
    truth = read_truth(truth_file(write, tiny), tiny)
    assert truth["region"].tolist() == list(tiny.names)
    assert truth["effect"].tolist() == [-i for i in range(7)]
    assert truth["effect_fdg"].tolist() == [i / 4 for i in range(7)]
    assert truth["seed"].dtype == bool
    assert truth["seed"].all()


def test_no_truth(tmp_path, tiny, write):
    assert read_truth(tmp_path, tiny) is None
    write("truth.tsv", "region\tseed\teffect\nlh_a\ttrue\t0\n")
    assert read_truth(tmp_path, tiny) is None


def test_refused(write, tiny):
    with pytest.raises(FileFormatError, match=r"truth\.tsv: no column seed; expected"):
        read_truth(truth_file(write, tiny, head="region\tx\teffect\ty"), tiny)
    with pytest.raises(
        FileFormatError, match="seed must be true or false, got 'maybe'"
    ):
        read_truth(truth_file(write, tiny, seed="maybe"), tiny)
