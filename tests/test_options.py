"""Options that many commands share."""

import brainlsap.graph
from brainlsap import options


def test_the_kernels_of_the_command_line_are_those_of_the_package():
    # a list of its own: the command line must not import torch to print its help
    assert sorted(options.KERNELS) == sorted(brainlsap.graph.KERNELS)
