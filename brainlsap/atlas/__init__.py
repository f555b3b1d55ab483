"""Region sets (forwarding until the packages are merged)."""

from brainlsap.data.atlas import Atlas, available_atlases, load_atlas

__all__ = ["Atlas", "available_atlases", "load_atlas"]
