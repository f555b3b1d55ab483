"""What is known about features by name, and what holds for every source of them.

Thickness and area are measured on the cortical surface; the subcortex has neither.
What stands there instead is one of the policies of `SUBCORTEX`, asked for by name:

- `absent` (default): NaN; the region is not measured, and masked everywhere;
- `mean`: the scan's plain mean over the cortical regions of the same hemisphere;
- `volume`: the region's volume in mm3, in another unit than its neighbours.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.data.measures import TRACERS
from brainlsap.exceptions import FileFormatError

SUBCORTEX = ("absent", "mean", "volume")
VALUE_COLUMNS = ("value", "mean", "mean_scalar", "label_value")
ABSENT_NOTE = "regions of thickness 0 (not found by FreeSurfer) are not measured"
POLICY_NOTES = {
    "absent": "{}: the subcortex has none and is not measured",
    "mean": "{}: the subcortex has the mean of its hemisphere's cortex",
    "volume": "{}: the subcortex has its volume instead",
}


@dataclass(frozen=True)
class Feature:
    """What is known about a feature by its name.

    Parameters
    ----------
    name : str
        As written.
    columns : tuple of str
        Heads of columns of values in tables of regions, lower case.
    files : tuple of str
        Patterns of the names of files with one scan's regions.
    on_surface : bool
        Whether it is measured on the cortex alone.
    in_stats : bool
        Whether FreeSurfer's stats hold it.
    also : tuple of str
        Other measures of columns that are this feature.
    by_head_size : bool
        Whether values are divided by the intracranial volume (eTIV).
    """

    name: str
    columns: tuple[str, ...] = ()
    files: tuple[str, ...] = field(default=())
    on_surface: bool = False
    in_stats: bool = False
    also: tuple[str, ...] = ()
    by_head_size: bool = False

    @property
    def measures(self) -> tuple[str, ...]:
        """Measures of columns that are this feature."""
        return (self.name, *self.also)


_PET_HEADS = ("suvr", "uptake")
_PET_ENDINGS = ("regions.*", "statistics.*", "tacs.*", "timeseries.*")


def _pet(name: str, *tracers: str) -> Feature:
    """Return what is known about uptake; BIDS and Clinica name its tracer."""
    files = [f"*{tracer}*{end}" for tracer in tracers for end in _PET_ENDINGS]
    everybody = ("gtm.stats.dat", "*_tacs.*", "*_timeseries.*")
    return Feature(name, _PET_HEADS, (*files, *everybody), also=("suvr",))



def _entities(feature: str) -> list[str]:
    return [word for t in TRACERS if t.feature == feature for word in t.entities]


FEATURES = {
    "amyloid": _pet("amyloid", *_entities("amyloid")),
    "area": Feature("area", ("surfarea", "area_mm2"), (), True, True),
    "fdg": _pet("fdg", "18FFDG", "[fF][dD][gG]"),
    "suvr": _pet("suvr", "suvr"),
    "tau": _pet("tau", *_entities("tau")),
    "thickness": Feature("thickness", ("thickavg", "thickness_mm"), (), True, True),
    "volume": Feature("volume", ("grayvol", "volume_mm3"), (), False, True),
    "volume_per_etiv": Feature(
        "volume_per_etiv", (), (), False, True, also=("volume",), by_head_size=True
    ),
}


@dataclass(frozen=True, eq=False)
class FeatureFile:
    """One feature of one scan in the order of an atlas.

    Parameters
    ----------
    values : array of shape (n_rois,)
        In the unit of the file; NaN where not measured.
    notes : tuple of str
        What was left out or filled; the same words for every file that needed the
        same.

    Examples
    --------
    See :func:`brainlsap.data.read_feature`.
    """

    values: np.ndarray
    notes: tuple[str, ...] = ()


def get_feature(name: str) -> Feature:
    """Return what is known about a feature; any other name is a plain column.

    Parameters
    ----------
    name : str
        As written.

    Returns
    -------
    Feature

    Examples
    --------
    >>> get_feature("thickness").on_surface, get_feature("amyloid").on_surface
    (True, False)
    """
    known = FEATURES.get(name, Feature(name))
    files = (*known.files, f"*desc-{name}_regions.*", f"*_{name}.*")
    columns = (name.lower(), *known.columns, *VALUE_COLUMNS)
    return replace(known, columns=columns, files=files)


def check_structures(places: np.ndarray, atlas: Atlas, where: str) -> None:
    """Raise where a part of the cortex, or a part of the subcortex, is missing.

    A source may leave out the subcortex as a whole, as surface tools do; one that
    has some of its regions but not all has lost the others.

    Parameters
    ----------
    places : int array
        Positions of the regions that are there.
    atlas : Atlas
        Names the regions and gives their order.
    where : str
        What the message calls the source.

    Raises
    ------
    FileFormatError
    """
    there = np.isin(np.arange(len(atlas)), places)
    structures = atlas.regions["structure"].to_numpy()
    for structure in ("cortex", "subcortex"):
        of_it = structures == structure
        missing = np.flatnonzero(of_it & ~there)
        partly = missing.size > 0 and bool((there & of_it).any())
        if partly or not there.any():
            names = ", ".join(atlas.names[i] for i in missing[:5])
            raise FileFormatError(
                f"{where}: {missing.size} of {int(of_it.sum())} {structure} regions of "
                f"{atlas.name} are missing: {names}"
                f"{' ...' if missing.size > 5 else ''}. Write n/a for a region that "
                "was not measured."
            )


def finish_feature(
    values: np.ndarray, feature: Feature, atlas: Atlas, subcortex: str
) -> FeatureFile:
    """Apply what holds for every source: absent regions, and the subcortex.

    Parameters
    ----------
    values : array of shape (n_rois,)
        As read; NaN where not measured.
    feature : Feature
        What is known about the feature.
    atlas : Atlas
        Names the regions and gives their order.
    subcortex : {"absent", "mean", "volume"}
        What the subcortex has for features of the cortical surface.

    Returns
    -------
    FeatureFile

    Raises
    ------
    FileFormatError
        Where a value is infinite, a size is negative (tables write -4 for what was
        not measured), or `volume` was asked for and there is none.
    """
    if np.isinf(values).any():
        name = atlas.names[int(np.flatnonzero(np.isinf(values))[0])]
        raise FileFormatError(f"{feature.name} of {name} is infinite.")
    if feature.in_stats and (values < 0).any():
        place = int(np.flatnonzero(values < 0)[0])
        raise FileFormatError(
            f"{feature.name} of {atlas.names[place]} is {values[place]:g}; expected at "
            "least 0. Write n/a where it was not measured."
        )
    notes = []
    below = (atlas.regions["structure"] == "subcortex").to_numpy()
    values = values.copy()
    if feature.name == "thickness":
        absent = (values == 0) & ~below
        if absent.any():
            values[absent] = np.nan
            notes.append(ABSENT_NOTE)
    if feature.on_surface and below.any():
        notes.append(POLICY_NOTES[subcortex].format(feature.name))
        if subcortex == "volume":
            if np.isnan(values[below]).all():
                raise FileFormatError(
                    "subcortex='volume' needs volumes of the subcortex, and there are "
                    "none. Add aseg.stats or a table of volumes, or choose 'absent'."
                )
        else:
            values[below] = np.nan
    if feature.on_surface and subcortex == "mean":
        sides = atlas.regions["hemisphere"].to_numpy()
        for side in set(sides[below]):
            # a region on the midline belongs to both
            cortex = ~below if side == "M" else ~below & (sides == side)
            values[below & (sides == side)] = np.nanmean(values[cortex])
    return FeatureFile(values, tuple(notes))
