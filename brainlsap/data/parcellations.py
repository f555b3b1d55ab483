"""Tell which parcellation names are of, where they are not of the one asked for."""

from collections.abc import Sequence
from functools import lru_cache

from brainlsap.data.atlas import Atlas, available_atlases, load_atlas

LABELCONVERT = (
    "Make the connectome again with the nodes of the other: for destrieux160, "
    "'labelconvert aparc.a2009s+aseg.mgz FreeSurferColorLUT.txt fs_a2009s.txt "
    "nodes.mif' before tck2connectome; for desikan82, the same with aparc+aseg.mgz and "
    "fs_default.txt."
)
GTMSEG = (
    "Make the values again with the other: for destrieux160, PET by 'gtmseg --s "
    "SUBJECT --ctx-annot aparc.a2009s 11100 12100' before mri_gtmpvc, and stats by "
    "'recon-all -s SUBJECT -cortparc2 -parcstats2'; or choose the atlas that fits."
)
# Names of the cortex alone count: both parcellations have the same subcortex.
_FEWEST = 20


def other_parcellation(names: Sequence[str], atlas: Atlas) -> str | None:
    """Say which bundled atlas some names are of, where not of the one asked for.

    Parameters
    ----------
    names : sequence of str
        Of regions, as a file has them.
    atlas : Atlas
        The one asked for.

    Returns
    -------
    str or None
        A sentence; None where no other atlas fits better.

    Examples
    --------
    >>> desikan = load_atlas("desikan82")
    >>> other_parcellation(desikan.names, load_atlas("destrieux160"))
    'The names are those of desikan82, not of destrieux160.'
    """
    own = _count_cortex(tuple(names), atlas)
    for name in available_atlases():
        other = _bundled(name)
        if name == atlas.name:
            continue
        found = _count_cortex(tuple(names), other)
        if found >= _FEWEST and found > 2 * own:
            return f"The names are those of {name}, not of {atlas.name}."
    return None


@lru_cache(maxsize=8)
def _bundled(name: str) -> Atlas:
    return load_atlas(name)


def _count_cortex(names: tuple[str, ...], atlas: Atlas) -> int:
    cortex = (atlas.regions["structure"] == "cortex").to_numpy()
    places = [atlas.find(name) for name in names]
    return sum(place is not None and bool(cortex[place]) for place in places)
