"""The old place of :mod:`brainlsap.atlas.region_names`."""

from brainlsap.atlas.region_names import *  # noqa: F403
