"""What is known about regional measures by name: tracers, columns, files, policies.

Thickness and area are measured on the cortical surface; the subcortex has neither.
What stands there instead is one of the policies of `SUBCORTEX`, asked for by name:

- `absent` (default): NaN; the region is not measured, and masked everywhere;
- `mean`: the scan's plain mean over the cortical regions of the same hemisphere;
- `volume`: the region's volume in mm3, in another unit than its neighbours.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from brainlsap.atlas import Atlas
from brainlsap.data.tables import listed
from brainlsap.exceptions import FileFormatError, check_choice

# Policy -> what stands below the cortex for measures of its surface.
SUBCORTEX = {
    "absent": "",
    "mean": "mean of the hemisphere's cortex",
    "volume": "volume in mm3",
}
# Share of a scan's ratios that may be below 0, as corrections for partial volume make
# some; of z-scores half are.
MOST_BELOW_0 = 0.25
# Heads of columns of values that do not say of what.
_VALUES = ("value", "mean", "mean_scalar", "label_value")
_PET_ENDINGS = ("regions.*", "statistics.*", "tacs.*", "timeseries.*")


class Tracer(NamedTuple):
    """One PET tracer; a new one is a row of `TRACERS`."""

    name: str
    feature: str
    entities: tuple[str, ...]
    """What files (behind `trc-`), columns and descriptions call it, in any case."""
    reference: str
    """Region by which uptake is usually divided."""

    @property
    def words(self) -> tuple[str, ...]:
        """Entities in lower case."""
        return tuple(map(str.lower, self.entities))


# Name; feature; what files, columns and descriptions call it; reference region.
_TRACER_ROWS = """\
FDG; fdg; 18FFDG FDG; pons
florbetapir; amyloid; 18FAV45 AV45 AV-45 florbetapir 18FFBP FBP; whole cerebellum
florbetaben; amyloid; 18FFBB FBB florbetaben florbeta; whole cerebellum
flutemetamol; amyloid; 18FFMM FMM flutemetamol; whole cerebellum
PiB; amyloid; 11CPIB PIB; cerebellar cortex
NAV4694; amyloid; 18FNAV4694 NAV4694 AZD4694; whole cerebellum
amyloid; amyloid; amyloid; whole cerebellum
flortaucipir; tau; 18FAV1451 AV1451 AV-1451 flortaucipir 18FFTP FTP 18FT807 T807; \
cerebellar cortex
MK6240; tau; 18FMK6240 MK6240 MK-6240; cerebellar cortex
PI2620; tau; 18FPI2620 PI2620 PI-2620; cerebellar cortex
RO948; tau; 18FRO948 RO948 RO-948; cerebellar cortex
tau; tau; tau; cerebellar cortex"""
TRACERS = tuple(
    Tracer(name, feature, tuple(entities.split()), reference)
    for row in _TRACER_ROWS.splitlines()
    for name, feature, entities, reference in [row.split("; ")]
)
"""Every tracer that reading, building, quality control and ADNI's import know."""

PET_FEATURES = frozenset(tracer.feature for tracer in TRACERS)
_ENTITIES = {re.sub("[^a-z0-9]", "", word): t for t in TRACERS for word in t.words}
_ENTITIES["amy"] = _ENTITIES["amyloid"]
_ISOTOPE = re.compile(r"^(18f|f18|11c|c11)(?=.)|(?<=.)(18f|f18|11c|c11)$")
_MOST_PARTS = 3
"""Of the name of a tracer, such as `[18F]-AV-1451`."""
# With these in it, `amy` in the name of a file is the amygdala.
_STRUCTURES = {"hip", "hipp", "hippo", "hippocampus", "thal", "thalamus", "subfields"}


@lru_cache(maxsize=1024)
def find_tracers(text: str) -> frozenset[Tracer]:
    """Return the tracers that a cell or a name says, without isotopes and signs.

    >>> [tracer.name for tracer in find_tracers("[18F]AV-45 (florbetapir)")]
    ['florbetapir']
    """
    parts = re.findall("[a-z0-9]+", text.lower())
    found = set[Tracer]()
    for start in range(len(parts)):
        for end in range(start + 1, start + 1 + _MOST_PARTS):
            word = "".join(parts[start:end])
            tracer = _ENTITIES.get(word) or _ENTITIES.get(_ISOTOPE.sub("", word))
            is_structure = word == "amy" and not _STRUCTURES.isdisjoint(parts)
            if tracer is not None and not is_structure:
                found.add(tracer)
    exact = {tracer for tracer in found if tracer.name != tracer.feature}
    features = {tracer.feature for tracer in exact}
    return frozenset(exact | {one for one in found if one.feature not in features})


# Word at the end of a column's head -> measure; "other" is never read.
WORDS = {
    **dict.fromkeys(("thickness", "thickavg"), "thickness"),
    **dict.fromkeys(("area", "surfarea"), "area"),
    **dict.fromkeys(("volume", "grayvol"), "volume"),
    **{tracer.feature: tracer.feature for tracer in TRACERS},
    "suvr": "suvr",
    **dict.fromkeys(
        ("thicknessstd", "meancurv", "gauscurv", "foldind", "curvind"), "other"
    ),
}


class Measure(NamedTuple):
    """What is known about a measure by its name; any other name is a plain column."""

    name: str
    columns: tuple[str, ...] = ()
    """Heads of columns of values in tables of regions, lower case, best first."""
    plausible: tuple[float, float] = (-np.inf, np.inf)
    """Regional values beyond these are measured in no brain: mm, mm2, mm3, ratios."""
    medians: tuple[float, float] = (-np.inf, np.inf)
    """Medians over a scan's regions beyond these are in another unit."""
    usual_medians: tuple[float, float] = (-np.inf, np.inf)
    """Medians beyond these are worth a sentence."""
    unit: str = ""
    words: tuple[str, ...] = ()
    """Measures in heads of wide tables that are this one, best first."""
    files: tuple[str, ...] = ()
    """Patterns of names of files with one scan's regions, best first, lower case."""
    on_surface: bool = False
    in_stats: bool = False

    @property
    def wanted(self) -> str:
        """What the files are called, in words."""
        entities = [t.entities[0] for t in TRACERS if t.feature == self.name]
        tracer = f"*_trc-{entities[0]}*_regions.tsv, " if entities else ""
        return f"{tracer}{self.files[-2]} or {self.files[-1]}"


def _pet(name: str, low: float, high: float) -> Measure:
    entities = [word for t in TRACERS if t.feature == name for word in t.words]
    files = [f"*{e}*{end}" for e in entities or ["suvr"] for end in _PET_ENDINGS]
    files += ["gtm.stats.dat", "*_tacs.*", "*_timeseries.*"]
    ratio: Any = {"medians": (0.05, 20.0), "usual_medians": (0.5, 3.0)}
    ratio |= {"unit": "ratios to a reference region"}
    words, columns = (name, "suvr"), ("suvr", "uptake")
    return Measure(name, columns, (low, high), words=words, files=tuple(files), **ratio)


_ON_SURFACE: Any = {"on_surface": True, "in_stats": True}
_MEASURES = {
    measure.name: measure
    for measure in (
        _pet("amyloid", 0.2, 6.0),
        _pet("fdg", 0.1, 4.0),
        _pet("tau", 0.1, 8.0),
        _pet("suvr", 0.1, 8.0),
        Measure(
            "area",
            ("surfarea", "area_mm2"),
            (20.0, 15000.0),
            usual_medians=(20.0, 15000.0),
            unit="mm2",
            **_ON_SURFACE,
        ),
        Measure(
            "thickness",
            ("thickavg", "thickness_mm"),
            (0.8, 5.0),
            medians=(0.8, 20.0),
            usual_medians=(0.8, 5.0),
            unit="mm",
            **_ON_SURFACE,
        ),
        Measure(
            "volume",
            ("grayvol", "volume_mm3"),
            (20.0, 60000.0),
            usual_medians=(20.0, 60000.0),
            unit="mm3",
            in_stats=True,
        ),
    )
}
KNOWN = (*_MEASURES, "strength")


@lru_cache(maxsize=64)
def get_measure(name: str) -> Measure:
    """Return what is known about a measure."""
    known, lower = _MEASURES.get(name, Measure(name)), name.lower()
    return known._replace(
        columns=(lower, *known.columns, *_VALUES),
        words=known.words or (name,),
        files=(*known.files, f"*desc-{lower}_regions.*", f"*_{lower}.*"),
    )


def wrong_tracer(file_name: str, measure: str) -> str | None:
    """Return the tracer that a file's `trc-` entity says, where it is of another kind.

    >>> wrong_tracer("sub-01_trc-18FAV45_tacs.tsv", "fdg")
    'trc-18FAV45 (florbetapir)'
    """
    found = re.search(r"(?:^|_)trc-([A-Za-z0-9]+)", file_name)
    if found is None or measure not in PET_FEATURES:
        return None
    kinds = {word: one for one in TRACERS for word in one.words}
    tracer = kinds.get(found[1].lower())
    if tracer is None:
        return f"trc-{found[1]} (not a known tracer of {measure})"
    return None if tracer.feature == measure else f"trc-{found[1]} ({tracer.name})"


def finish(
    values: np.ndarray, measure: Measure, atlas: Atlas, subcortex: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Apply what holds for every source: absent regions, and the subcortex.

    Raises a FileFormatError where no value is known, one is infinite, a size is
    negative (tables write -4 for what was not measured), or volumes were asked for and
    there are none.
    """
    check_choice("subcortex", subcortex, SUBCORTEX)
    if np.isnan(values).all():
        raise FileFormatError(
            f"{measure.name} has no value in any region of {atlas.name}. Leave the "
            "scan out (its rows in tables, its folder)."
        )
    bad = np.isinf(values) | ((values < 0) & measure.in_stats)
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        expected = "a size of at least 0" if measure.in_stats else "a finite number"
        raise FileFormatError(
            f"{measure.name} of {atlas.names[place]} is {values[place]:g}; expected "
            f"{expected}. Write n/a where it was not measured."
        )
    check_unit(values, measure, atlas)
    values, below, notes = values.copy(), ~atlas.cortex, list[str]()
    if measure.name == "thickness" and (values[~below] == 0).any():
        values[(values == 0) & ~below] = np.nan
        notes.append("regions of thickness 0 (not found by FreeSurfer): not measured")
    if measure.on_surface and (n_unknown := atlas.is_unknown.sum()):
        told = "regions that are not known to be cortex are read as cortex"
        notes.append(f"{measure.name}: {n_unknown} {told}")
    if not measure.on_surface or not below.any():
        return values, tuple(notes)
    if subcortex == "volume" and np.isnan(values[below]).all():
        raise FileFormatError(
            "subcortex='volume' needs volumes of the subcortex, and there are none. "
            "Add aseg.stats or a table of volumes, or choose 'absent'."
        )
    if subcortex != "volume":
        values[below] = np.nan
    if subcortex == "mean":
        sides = atlas.regions["hemisphere"].to_numpy()
        for side in set(sides[below]):
            # a region on the midline belongs to both
            cortex = ~below if side == "M" else ~below & (sides == side)
            values[below & (sides == side)] = np.nanmean(values[cortex])
    below_it = SUBCORTEX[subcortex] or "none and is not measured"
    return values, (*notes, f"{measure.name}: the subcortex has {below_it}")


def check_unit(values: np.ndarray, measure: Measure, atlas: Atlas) -> None:
    """Raise where one scan's values cannot be in the unit of their measure.

    So are ratios and thicknesses whose median over regions no brain has, and ratios
    below 0 in more than a few regions, as z-scores are.
    """
    known = values[atlas.cortex if measure.on_surface else slice(None)]
    known = known[~np.isnan(known)]
    if not known.size:
        return
    low, high = measure.medians
    median, share_below = np.median(known), (known < 0).mean()
    is_signed = bool(measure.unit) and share_below > MOST_BELOW_0
    if low <= median <= high and not is_signed:
        return
    told = f" and {share_below:.0%} of them below 0" if share_below else ""
    raise FileFormatError(
        f"{measure.name} is not measured in {measure.unit}: expected values above 0 "
        f"and a median over regions of {low:g} to {high:g}",
        got=f"a median of {median:.4g}{told}. Convert the values, or give them a head "
        f"and a name of their own (feature='{measure.name}_z').",
    )


def check_structures(places: np.ndarray, atlas: Atlas, where: str) -> None:
    """Raise where a part of the cortex, or a part of the subcortex, is missing.

    A source may leave out the subcortex as a whole, as surface tools do; one that has
    some of its regions but not all has lost the others.
    """
    there = np.isin(np.arange(len(atlas)), places)
    for structure, of_it in (("cortex", atlas.cortex), ("subcortex", ~atlas.cortex)):
        missing = [atlas.names[i] for i in np.flatnonzero(of_it & ~there)]
        if missing and ((there & of_it).any() or not there.any()):
            raise FileFormatError(
                f"{len(missing)} of {of_it.sum()} {structure} regions of "
                f"{atlas.name} are missing: {listed(missing, 5)}. Write n/a for a "
                "region that was not measured.",
                path=where,
            )
