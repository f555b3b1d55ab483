"""Region sets: names, order and locations of regions.

- `atlas`: :class:`Atlas`, loading one, its table of regions and its surfaces;
- `region_names`: one name per region, however a tool spells it.
"""

from brainlsap.atlas.atlas import Atlas, available_atlases, load_atlas

__all__ = ["Atlas", "available_atlases", "load_atlas"]
