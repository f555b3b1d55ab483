"""Options that many commands share."""

import argparse

import pytest

import brainlsap.graph
from brainlsap import options


def test_the_kernels_of_the_command_line_are_those_of_the_package():
    # a list of its own: the command line must not import torch to print its help
    assert sorted(options.KERNELS) == sorted(brainlsap.graph.KERNELS)


def test_a_window_is_two_times():
    assert options.window("2400, 3000") == (2400.0, 3000.0)
    for wrong in ("2400", "a,b", "1,2,3"):
        with pytest.raises(
            argparse.ArgumentTypeError, match=rf"must be START,END in .*got '{wrong}'"
        ):
            options.window(wrong)
