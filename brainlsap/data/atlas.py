"""The old place of :mod:`brainlsap.atlas`."""

from brainlsap.atlas.atlas import (  # noqa: F401
    Atlas,
    available_atlases,
    bundled_atlases,
    load_atlas,
)
from brainlsap.atlas.region_names import is_outside  # noqa: F401
