"""Region sets with names: which regions, in which order, where they lie.

- `atlas`: :class:`Atlas`, loading one, its table of regions and its surfaces;
- `region_names`: one name per region, however a tool spells it.
"""

from brainlsap.atlas.atlas import Atlas, available_atlases, load_atlas

__all__ = ["Atlas", "available_atlases", "load_atlas"]
