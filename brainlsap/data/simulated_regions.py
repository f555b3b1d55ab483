"""What a simulation must know of an atlas: twins, hubs and the seeds of disease."""

from collections.abc import Sequence

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.data.region_names import split_name
from brainlsap.data.simulated_people import random_stream
from brainlsap.exceptions import ParameterError

# The medial temporal lobe, where tau pathology starts (Braak and Braak 1991).
SEEDS = ("goctempmedparahip", "entorhinal", "hippocampus", "amygdala")
# The bihemispheric hubs of van den Heuvel and Sporns 2011 (J Neurosci 31:15775).
HUBS = (
    "gprecuneus",
    "gfrontsup",
    "gparietalsup",
    "precuneus",
    "superiorfrontal",
    "superiorparietal",
    "hippocampus",
    "putamen",
    "thalamus",
)
HUB_STRENGTH = 1.5


def structure_names(atlas: Atlas) -> list[str]:
    """Return every region's name without hemisphere, case and separators.

    Parameters
    ----------
    atlas : Atlas
        The region set.

    Returns
    -------
    list of str of length n_rois
        Twins have the same name.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> names = structure_names(load_atlas("destrieux160"))
    >>> names[0], names[148]
    ('gsfrontomargin', 'thalamus')
    """
    return [split_name(name)[1] for name in atlas.names]


def find_twins(atlas: Atlas) -> np.ndarray:
    """Return the position of every region's twin in the other hemisphere.

    Parameters
    ----------
    atlas : Atlas
        The region set.

    Returns
    -------
    int array of shape (n_rois,)
        -1 where there is none.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> atlas = load_atlas("destrieux160")
    >>> atlas.names[find_twins(atlas)[0]]
    'ctx_rh_G_and_S_frontomargin'
    """
    sides = atlas.regions["hemisphere"].tolist()
    keys = list(zip(sides, structure_names(atlas), strict=True))
    position = {key: i for i, key in enumerate(keys)}
    other = {"L": "R", "R": "L"}
    return np.array([position.get((other.get(s, ""), name), -1) for s, name in keys])


def hub_strength(atlas: Atlas) -> np.ndarray:
    """Return 1.5 for the hubs of the literature and 1 for every other region.

    Parameters
    ----------
    atlas : Atlas
        The region set.

    Returns
    -------
    array of shape (n_rois,)
    """
    is_hub = [name in HUBS for name in structure_names(atlas)]
    return np.where(is_hub, HUB_STRENGTH, 1.0)


def hemisphere_factor(atlas: Atlas, across: float) -> np.ndarray:
    """Return `across` for pairs of regions in two hemispheres and 1 within one.

    Parameters
    ----------
    atlas : Atlas
        The region set.
    across : float
        Factor between the hemispheres.

    Returns
    -------
    array of shape (n_rois, n_rois)
    """
    side = atlas.regions["hemisphere"].map({"L": -1, "R": 1}).fillna(0).to_numpy()
    # The midline (0) belongs to both sides.
    return np.where(side[:, None] * side[None, :] < 0, across, 1.0)


def region_positions(atlas: Atlas) -> np.ndarray:
    """Return the centroids of the regions.

    Parameters
    ----------
    atlas : Atlas
        The region set.

    Returns
    -------
    array of shape (n_rois, 3)
        In mm.

    Raises
    ------
    ParameterError
        Where the atlas has none.
    """
    columns = [axis for axis in "xyz" if axis in atlas.regions]
    positions = atlas.regions[columns].to_numpy(dtype=float)
    if len(columns) < 3 or not np.isfinite(positions).all():
        raise ParameterError(
            f"atlas {atlas.name!r} has no centroid for every region, and simulated "
            "connectomes need distances. Add columns x, y, z (mm) to its regions.tsv."
        )
    return positions


def choose_seeds(
    atlas: Atlas, seeds: Sequence[str] | int | None, random_state: int
) -> np.ndarray:
    """Mark the regions in which disease starts.

    Parameters
    ----------
    atlas : Atlas
        The region set.
    seeds : sequence of str, int or None
        Names of regions; or a number of regions to draw; or None for those of the
        medial temporal lobe that the atlas has: parahippocampal gyrus or entorhinal
        cortex, hippocampus and amygdala.
    random_state : int
        Seed of the whole cohort.

    Returns
    -------
    bool array of shape (n_rois,)

    Raises
    ------
    ParameterError
        Where no seed is in the atlas, or more are asked for than there are regions.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> int(choose_seeds(load_atlas("destrieux160"), None, 0).sum())
    6
    """
    chosen = np.zeros(len(atlas), dtype=bool)
    if seeds is None:
        chosen[[name in SEEDS for name in structure_names(atlas)]] = True
        if not chosen.any():
            raise ParameterError(
                f"atlas {atlas.name!r} has none of the regions in which disease starts "
                "by default. Name some with seeds=."
            )
    elif isinstance(seeds, (int, np.integer)):
        if not 1 <= seeds <= len(atlas):
            raise ParameterError(
                f"seeds must be between 1 and {len(atlas)}, the regions of atlas "
                f"{atlas.name!r}; got {seeds}."
            )
        rng = random_stream(random_state, "seeds")
        chosen[rng.choice(len(atlas), size=seeds, replace=False)] = True
    else:
        chosen[atlas.match(list(seeds))] = True
    return chosen
