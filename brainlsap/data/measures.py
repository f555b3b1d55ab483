"""Known regional measures: their tracers, columns, files and policies.

Thickness and area are measured on the cortical surface; the subcortex has neither.
A policy of `SUBCORTEX`, chosen by name, gives the subcortex other values:

- `absent` (default): NaN; the region is not measured, and is masked everywhere;
- `mean`: the scan's plain mean over the cortical regions of the same hemisphere;
- `volume`: the region's volume in mm3, in another unit than its neighbours.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple, TypeVar
from unicodedata import combining, normalize

import numpy as np

from brainlsap.atlas import Atlas
from brainlsap.exceptions import FileFormatError, check_choice
from brainlsap.text import (
    count_text,
    format_leave_out_advice,
    join_with_commas,
    option_text,
    verb_form,
)

# Policy -> what the subcortex has for measures of the cortical surface.
SUBCORTEX = {
    "absent": "",
    "mean": "mean of the hemisphere's cortex",
    "volume": "volume in mm3",
}
# Largest share of a scan's ratios below 0. Partial-volume correction makes some ratios
# negative; of z-scores half are.
MAX_SHARE_BELOW_0 = 0.25
# Heads of columns of values that do not name a measure.
VALUE_COLUMNS = ("value", "mean", "mean_scalar", "label_value")
_PET_ENDINGS = ("regions.*", "statistics.*", "tacs.*", "timeseries.*")


_Meaning = TypeVar("_Meaning", bound=Hashable)


class Tracer(NamedTuple):
    """One PET tracer, or all of a measure; a new one is an entry of `TRACERS`."""

    name: str
    feature: str
    """The measure; a new name makes a new measure."""
    entities: tuple[str, ...]
    """Names in files (after `trc-`), columns and descriptions, in any case."""
    plausible_range: tuple[float, float]
    """No brain has regional ratios outside this range."""
    usual_median_range: tuple[float, float]
    """A scan's median over regions outside this range is reported."""
    feature_title: str = ""
    """Title of the measure in reports; required of one tracer of each measure."""

    @property
    def lower_entities(self) -> tuple[str, ...]:
        """Entities in lower case."""
        return tuple(map(str.lower, self.entities))

    @property
    def is_generic(self) -> bool:
        """Whether it stands for every tracer of its measure."""
        return self.name == self.feature


def _get_entity_letters(entity_text: str) -> str:
    """Return the letters and digits of an entity, in lower case."""
    return re.sub("[^a-z0-9]", "", entity_text.lower())


def _join_value_ranges(
    value_ranges: Iterable[tuple[float, float]],
) -> tuple[float, float]:
    """Return the range that holds all ranges."""
    lower_limits, upper_limits = zip(*value_ranges, strict=True)
    return min(lower_limits), max(upper_limits)


def _add_generic_tracers(tracers: Sequence[Tracer]) -> tuple[Tracer, ...]:
    """Return tracers, and of every measure the entry that bears its name.

    Raises
    ------
    TypeError
        If two tracers have the same name, or share an entity; if a measure has no
        title, or two; or if a range is empty, or the usual medians are not plausible.
    """
    tracer_name_by_entity: dict[str, str] = {}
    for tracer in tracers:
        lowest_value, highest_value = tracer.plausible_range
        lowest_median, highest_median = tracer.usual_median_range
        if not lowest_value <= lowest_median < highest_median <= highest_value:
            raise TypeError(
                f"the usual_median_range of {tracer.name} must be two increasing "
                "numbers within its plausible_range; got "
                f"{tracer.usual_median_range} and {tracer.plausible_range}."
            )
        for entity in tracer.lower_entities:
            entity_tracer_name = tracer_name_by_entity.setdefault(
                _get_entity_letters(entity), tracer.name
            )
            if entity_tracer_name != tracer.name:
                raise TypeError(
                    f"{entity!r} is an entity of {entity_tracer_name} and "
                    f"{tracer.name}."
                )
    tracer_names = [tracer.name for tracer in tracers]
    if len({*tracer_names}) < len(tracer_names):
        raise TypeError(f"tracers must have different names, got {tracer_names}.")
    generic_tracers = list[Tracer]()
    for feature_name in dict.fromkeys(tracer.feature for tracer in tracers):
        feature_tracers = [
            tracer for tracer in tracers if tracer.feature == feature_name
        ]
        feature_titles = {tracer.feature_title for tracer in feature_tracers} - {""}
        if len(feature_titles) != 1:
            raise TypeError(
                f"all tracers of {feature_name} must share one feature_title, "
                f"for example '{feature_name}-PET SUVR'; got {sorted(feature_titles)}."
            )
        if _get_entity_letters(feature_name) not in tracer_name_by_entity:
            generic_tracers.append(
                Tracer(
                    feature_name,
                    feature_name,
                    (feature_name,),
                    _join_value_ranges(
                        tracer.plausible_range for tracer in feature_tracers
                    ),
                    _join_value_ranges(
                        tracer.usual_median_range for tracer in feature_tracers
                    ),
                )
            )
    return (*tracers, *generic_tracers)


TRACERS = _add_generic_tracers(
    (
        Tracer(
            "FDG",
            "fdg",
            ("18FFDG", "FDG"),
            plausible_range=(0.1, 4.0),
            usual_median_range=(0.5, 3.0),
            feature_title="FDG-PET SUVR",
        ),
        Tracer(
            "florbetapir",
            "amyloid",
            ("18FAV45", "AV45", "AV-45", "florbetapir", "18FFBP", "FBP"),
            plausible_range=(0.2, 6.0),
            usual_median_range=(0.5, 3.0),
            feature_title="amyloid-PET SUVR",
        ),
        Tracer(
            "florbetaben",
            "amyloid",
            ("18FFBB", "FBB", "florbetaben", "florbeta"),
            plausible_range=(0.2, 6.0),
            usual_median_range=(0.5, 3.0),
        ),
        Tracer(
            "flutemetamol",
            "amyloid",
            ("18FFMM", "FMM", "flutemetamol"),
            plausible_range=(0.2, 6.0),
            usual_median_range=(0.5, 3.0),
        ),
        Tracer(
            "PiB",
            "amyloid",
            ("11CPIB", "PIB"),
            plausible_range=(0.2, 6.0),
            usual_median_range=(0.5, 3.0),
        ),
        Tracer(
            "NAV4694",
            "amyloid",
            ("18FNAV4694", "NAV4694", "AZD4694"),
            plausible_range=(0.2, 6.0),
            usual_median_range=(0.5, 3.0),
        ),
        Tracer(
            "flortaucipir",
            "tau",
            (
                *("18FAV1451", "AV1451", "AV-1451", "flortaucipir"),
                *("18FFTP", "FTP", "18FT807", "T807"),
            ),
            plausible_range=(0.1, 8.0),
            usual_median_range=(0.5, 3.0),
            feature_title="tau-PET SUVR",
        ),
        Tracer(
            "MK6240",
            "tau",
            ("18FMK6240", "MK6240", "MK-6240"),
            plausible_range=(0.1, 8.0),
            usual_median_range=(0.5, 3.0),
        ),
        Tracer(
            "PI2620",
            "tau",
            ("18FPI2620", "PI2620", "PI-2620"),
            plausible_range=(0.1, 8.0),
            usual_median_range=(0.5, 3.0),
        ),
        Tracer(
            "RO948",
            "tau",
            ("18FRO948", "RO948", "RO-948"),
            plausible_range=(0.1, 8.0),
            usual_median_range=(0.5, 3.0),
        ),
    )
)
"""Every known tracer.

The order of the tracers has no effect. For each measure, an entry that represents all
of its tracers is added.
"""

PET_FEATURES = tuple(dict.fromkeys(tracer.feature for tracer in TRACERS))
PET_FEATURE_TITLES = {
    tracer.feature: tracer.feature_title for tracer in TRACERS if tracer.feature_title
}
_TRACER_OF_ENTITY = {
    _get_entity_letters(entity): tracer
    for tracer in TRACERS
    for entity in tracer.entities
}
# In free text a short form counts, too.
_TRACER_OF_MENTION = _TRACER_OF_ENTITY | {"amy": _TRACER_OF_ENTITY["amyloid"]}
_HYPHENATED_ENTITY = re.compile(
    "|".join(
        re.escape(entity)
        for tracer in TRACERS
        for entity in tracer.entities
        if "-" in entity
    ),
    re.IGNORECASE,
)
_ISOTOPE = re.compile(r"^(18f|f18|11c|c11)(?=.)|(?<=.)(18f|f18|11c|c11)$")
# A tracer's name has at most this many parts, for example `[18F]-AV-1451`.
_MAX_NAME_PARTS = 3
# If a file's name has one of these, `amy` in it is the amygdala.
_BRAIN_STRUCTURES = {
    "hip",
    "hipp",
    "hippo",
    "hippocampus",
    "thal",
    "thalamus",
    "subfields",
}


@lru_cache(maxsize=1024)
def find_tracers(cell_text: str) -> frozenset[Tracer]:
    """Return the tracers that a cell or a name mentions; isotopes do not count.

    >>> [tracer.name for tracer in find_tracers("[18F]AV-45 (florbetapir)")]
    ['florbetapir']
    """
    text_parts = re.findall("[a-z0-9]+", cell_text.lower())
    tracers = set[Tracer]()
    for start_index in range(len(text_parts)):
        for end_index in range(start_index + 1, start_index + 1 + _MAX_NAME_PARTS):
            entity = "".join(text_parts[start_index:end_index])
            tracer = _TRACER_OF_MENTION.get(entity)
            tracer = tracer or _TRACER_OF_MENTION.get(_ISOTOPE.sub("", entity))
            is_amygdala = entity == "amy" and not _BRAIN_STRUCTURES.isdisjoint(
                text_parts
            )
            if tracer is not None and not is_amygdala:
                tracers.add(tracer)
    return _drop_redundant_generic_tracers(tracers)


def find_longest_tracer(searched_text: str, feature_name: str = "") -> Tracer | None:
    """Return the tracer of which a text holds the longest entity, wherever it stands.

    A tracer precedes the entry for all tracers of its measure. `feature_name` restricts
    the search to the tracers of one measure.

    >>> find_longest_tracer("amyloid_AV1451").name
    'flortaucipir'
    """
    lower_text = searched_text.lower()
    ranked_matches = [
        (not tracer.is_generic, len(entity), entity, tracer)
        for tracer in TRACERS
        for entity in tracer.lower_entities
        if entity in lower_text and feature_name in ("", tracer.feature)
    ]
    return max(ranked_matches)[-1] if ranked_matches else None


# Ordinary words contain these entities ("restaurant"), so only known words may
# surround them.
_SHORT_ENTITIES = frozenset({"amy", "tau", "area"})
_WORD_AROUND_ENTITY = (
    "ucberkeley|berkeley|ucb|adni|suvr|suv|pet|pvc|mean|avg|rois?|regions?|regional|"
    "values?|data|table|surface|cortical|total|[0-9]+(?:mm)?"
)
_SUBJECT_IN_NAME = re.compile(r"(?<![A-Za-z0-9])(?:sub|ses)-[A-Za-z0-9]+")
_CASE_BORDER = re.compile("(?<=[a-z])(?=[A-Z])")


def _build_entity_pattern(entity: str) -> str:
    """Return the pattern of an entity within a word of a file's name."""
    if entity[-1].isdigit():
        return f"{entity}(?![0-9])"
    if re.match(_WORD_AROUND_ENTITY, entity):
        # "ucbjan" is "ucb" and a month, not UCB-J.
        return f"{entity}(?=(?:{_WORD_AROUND_ENTITY})*$)"
    return entity


def _find_entity_meanings(
    file_name: str, meaning_by_entity: Mapping[str, _Meaning]
) -> set[_Meaning]:
    """Return what the entities within the words of a file's name stand for.

    A word may be glued to an entity (`UCBERKELEYAV45`); ids of people do not count.
    """
    # T807 is the end of "sheet807", so two letters must begin an entity.
    long_entity_patterns = [
        _build_entity_pattern(entity)
        for entity in sorted(meaning_by_entity, key=len, reverse=True)
        if entity[:2].isalpha() and entity not in _SHORT_ENTITIES
    ]
    short_entity_regex = "|".join(_SHORT_ENTITIES & meaning_by_entity.keys())
    surrounded_pattern = re.compile(
        f"(?:{_WORD_AROUND_ENTITY})*({short_entity_regex})(?:{_WORD_AROUND_ENTITY})*"
    )
    name_without_ids = _SUBJECT_IN_NAME.sub(" ", file_name)
    # AV-1451 is written AV1451, too.
    name_without_ids = _HYPHENATED_ENTITY.sub(
        lambda entity_match: entity_match[0].replace("-", ""), name_without_ids
    )
    meanings = set[_Meaning]()
    for name_variant in {name_without_ids, _CASE_BORDER.sub(" ", name_without_ids)}:
        for name_word in re.findall("[a-z0-9]+", name_variant.lower()):
            entities = re.findall("|".join(long_entity_patterns), name_word)
            if entity_match := surrounded_pattern.fullmatch(name_word):
                entities.append(entity_match[1])
            meanings |= {meaning_by_entity[entity] for entity in entities}
    return meanings


@lru_cache(maxsize=1024)
def find_tracers_of_file(file_name: str) -> frozenset[Tracer]:
    """Return the tracers that a file's name mentions, also glued to other words.

    >>> [t.name for t in find_tracers_of_file("UCBERKELEYAV45_8mm_02_17_23.csv")]
    ['florbetapir']
    """
    name_words = re.findall("[a-z0-9]+", file_name.lower())
    tracer_by_entity = _TRACER_OF_MENTION
    if not _BRAIN_STRUCTURES.isdisjoint(name_words):
        tracer_by_entity = _TRACER_OF_ENTITY  # without "amy"
    return _drop_redundant_generic_tracers(
        find_tracers(_SUBJECT_IN_NAME.sub(" ", file_name))
        | _find_entity_meanings(file_name, tracer_by_entity)
    )


def _drop_redundant_generic_tracers(tracers: Set[Tracer]) -> frozenset[Tracer]:
    """Return tracers without the entries that stand for all tracers of a measure.

    A named tracer says more than the kind of tracers it belongs to.
    """
    specific_tracers = {tracer for tracer in tracers if not tracer.is_generic}
    feature_names = {tracer.feature for tracer in specific_tracers}
    generic_tracers = {
        tracer for tracer in tracers if tracer.feature not in feature_names
    }
    return frozenset(specific_tracers | generic_tracers)


# Last word of a column's name -> measure; "other" is never read.
MEASURE_OF_WORD = {
    **dict.fromkeys(("thickness", "thickavg"), "thickness"),
    **dict.fromkeys(("area", "surfarea"), "area"),
    **dict.fromkeys(("volume", "grayvol"), "volume"),
    **{feature: feature for feature in PET_FEATURES},
    "suvr": "suvr",
    **dict.fromkeys(
        ("thicknessstd", "meancurv", "gauscurv", "foldind", "curvind"), "other"
    ),
}

# Spellings in file names, apart from those of PET.
_GLUED_MEASURES = {
    **{
        name_word: measure_name
        for name_word, measure_name in MEASURE_OF_WORD.items()
        if measure_name not in (*PET_FEATURES, "suvr")
    },
    "surfacearea": "area",
}


@lru_cache(maxsize=1024)
def find_measure_names_of_file(file_name: str) -> frozenset[str]:
    """Return the known measures that a file's name mentions, also glued to words.

    >>> sorted(find_measure_names_of_file("UCBERKELEYFDG_meanThickness.csv"))
    ['fdg', 'thickness']
    """
    tracer_feature_names = {
        tracer.feature for tracer in find_tracers_of_file(file_name)
    }
    return frozenset(
        tracer_feature_names | _find_entity_meanings(file_name, _GLUED_MEASURES)
    )


# Ends of words for measures in German, French, Italian and Spanish, without accents.
_MEASURE_OF_TRANSLATION = {
    **dict.fromkeys(
        ("dicke", "epaisseur", "epaisseurs", "spessore", "spessori", "grosor"),
        "thickness",
    ),
    **dict.fromkeys(("volumen", "volumina", "volumes", "volumi"), "volume"),
    **dict.fromkeys(("flache", "flaeche", "superficie"), "area"),
}
_TRANSLATION_PATTERN = re.compile(
    f"[a-z]*?({'|'.join(sorted(_MEASURE_OF_TRANSLATION, key=len, reverse=True))})"
)


@lru_cache(maxsize=4096)
def find_translated_measures(name: str) -> frozenset[str]:
    """Return the measures that words of other languages in a name may stand for.

    They are proposed to the user, and are not read unless the user names the measure.

    >>> [*find_translated_measures("mittlere_Rindendicke")]
    ['thickness']
    >>> [*find_translated_measures("épaisseur corticale")]
    ['thickness']
    """
    letters = normalize("NFKD", name.lower())
    plain_name = "".join(letter for letter in letters if not combining(letter))
    word_matches = map(_TRANSLATION_PATTERN.fullmatch, re.findall("[a-z]+", plain_name))
    return frozenset(
        _MEASURE_OF_TRANSLATION[word_match[1]]
        for word_match in word_matches
        if word_match is not None
    )


class MeasureRecord(NamedTuple):
    """Properties of a measure with a known name; other names are plain columns."""

    name: str
    value_column_names: tuple[str, ...] = ()
    """Heads of columns of values in tables of regions, lower case, best first."""
    plausible_range: tuple[float, float] = (-np.inf, np.inf)
    """No brain has regional values outside this range: mm, mm2, mm3, ratios."""
    plausible_median_range: tuple[float, float] = (-np.inf, np.inf)
    """A scan with a median over regions outside this range has another unit."""
    usual_median_range: tuple[float, float] = (-np.inf, np.inf)
    """A scan with a median over regions outside this range is reported."""
    unit: str = ""
    header_measures: tuple[str, ...] = ()
    """Measures that column names may contain instead of this one, best first."""
    file_patterns: tuple[str | tuple[str, ...], ...] = ()
    """Patterns, or groups of patterns, for names of files with the regions of one scan.

    The best come first, all in lower case.
    """
    is_on_surface: bool = False
    is_in_stats: bool = False

    @property
    def is_independent_of_size(self) -> bool:
        """Whether large and small regions have similar values: not a volume or area."""
        return self.unit not in ("", "mm2", "mm3")

    @property
    def expected_files_text(self) -> str:
        """Names of the files with this measure, as a phrase for messages."""
        # Name the tracers in one order, whatever that of the entries.
        entities = sorted(
            t.entities[0]
            for t in TRACERS
            if t.feature == self.name and not t.is_generic
        )
        tracer_text = ""
        if entities:
            tracer_text = f"*_trc-{entities[0]}*_regions.tsv"
            if len(entities) > 1:
                tracer_text += f" (or trc- with {join_with_commas(entities[1:], 8)})"
            tracer_text += ", "
        return f"{tracer_text}{self.file_patterns[-2]} or {self.file_patterns[-1]}"


def _make_pet_measure_record(measure_name: str) -> MeasureRecord:
    """Return a measure of PET in ratios; "suvr" is that of an unknown tracer.

    Files that name a tracer precede those that name the measure. Several files that
    name tracers are ambiguous.
    """
    tracers = [tracer for tracer in TRACERS if measure_name in (tracer.feature, "suvr")]
    specific_words = list[str]()
    generic_words = list[str]()
    for tracer in tracers:
        name_words = generic_words if tracer.is_generic else specific_words
        name_words += tracer.lower_entities
    word_groups = (
        [["suvr"]] if measure_name == "suvr" else [specific_words, generic_words]
    )
    file_patterns = [
        tuple(f"*{name_word}*{file_ending}" for name_word in name_words)
        for name_words in word_groups
        for file_ending in _PET_ENDINGS
    ]
    return MeasureRecord(
        measure_name,
        value_column_names=("suvr", "uptake"),
        plausible_range=_join_value_ranges(
            tracer.plausible_range for tracer in tracers
        ),
        plausible_median_range=(0.05, 20.0),
        usual_median_range=_join_value_ranges(
            tracer.usual_median_range for tracer in tracers
        ),
        unit="ratios to a reference region",
        header_measures=(measure_name, "suvr"),
        file_patterns=(*file_patterns, "gtm.stats.dat", "*_tacs.*", "*_timeseries.*"),
    )


_RECORD_BY_MEASURE = {
    measure.name: measure
    for measure in (
        *map(_make_pet_measure_record, (*PET_FEATURES, "suvr")),
        MeasureRecord(
            "area",
            value_column_names=("surfarea", "area_mm2"),
            plausible_range=(20.0, 15000.0),
            usual_median_range=(20.0, 15000.0),
            unit="mm2",
            is_on_surface=True,
            is_in_stats=True,
        ),
        MeasureRecord(
            "thickness",
            value_column_names=("thickavg", "thickness_mm"),
            plausible_range=(0.8, 5.0),
            plausible_median_range=(0.8, 20.0),
            usual_median_range=(0.8, 5.0),
            unit="mm",
            is_on_surface=True,
            is_in_stats=True,
        ),
        MeasureRecord(
            "volume",
            value_column_names=("grayvol", "volume_mm3"),
            plausible_range=(20.0, 60000.0),
            usual_median_range=(20.0, 60000.0),
            unit="mm3",
            is_in_stats=True,
        ),
    )
}
KNOWN_MEASURE_NAMES = (*_RECORD_BY_MEASURE, "strength")


@lru_cache(maxsize=64)
def get_measure_record(measure_name: str) -> MeasureRecord:
    """Return the known properties of a measure."""
    measure_record = _RECORD_BY_MEASURE.get(measure_name, MeasureRecord(measure_name))
    lower_name = measure_name.lower()
    return measure_record._replace(
        value_column_names=(
            lower_name,
            *measure_record.value_column_names,
            *VALUE_COLUMNS,
        ),
        header_measures=measure_record.header_measures or (measure_name,),
        file_patterns=(
            *measure_record.file_patterns,
            f"*desc-{lower_name}_regions.*",
            f"*_{lower_name}.*",
        ),
    )


def wrong_tracer_text(file_name: str, measure_name: str) -> str | None:
    """Return the tracer in a file's name if it is not of `measure_name`.

    >>> wrong_tracer_text("sub-01_trc-18FAV45_tacs.tsv", "fdg")
    'trc-18FAV45 (florbetapir)'
    >>> wrong_tracer_text("sub-01_AV45_tacs.tsv", "fdg")
    'florbetapir'
    """
    if measure_name not in PET_FEATURES:
        return None
    entity_match = re.search(r"(?:^|_)trc-([A-Za-z0-9]+)", file_name)
    if entity_match is None:
        tracers = find_tracers_of_file(file_name)
        if any(tracer.feature == measure_name for tracer in tracers):
            return None
        return join_with_commas(sorted(tracer.name for tracer in tracers)) or None
    tracer = _TRACER_OF_ENTITY.get(entity_match[1].lower())
    if tracer is None:
        return f"trc-{entity_match[1]} (not a tracer that gives {measure_name})"
    if tracer.feature == measure_name:
        return None
    return f"trc-{entity_match[1]} ({tracer.name})"


def fill_subcortex_with_notes(
    region_values: np.ndarray,
    measure_record: MeasureRecord,
    atlas: Atlas,
    subcortex_policy: str,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Check one scan's values and fill the subcortex by a policy; add notes.

    Raises FileFormatError if no value is known, one is infinite, a size is negative
    (tables write -4 for what was not measured), or volumes were asked for and there are
    none.
    """
    check_choice("subcortex", subcortex_policy, SUBCORTEX)
    _check_region_values(region_values, measure_record, atlas)
    check_unit(region_values, measure_record, atlas)
    region_values = region_values.copy()
    subcortical_region_mask = ~atlas.cortex
    note_texts = list[str]()
    zero_cortex_region_mask = (region_values == 0) & ~subcortical_region_mask
    if measure_record.name == "thickness" and zero_cortex_region_mask.any():
        region_values[zero_cortex_region_mask] = np.nan
        note_texts.append(
            "regions of thickness 0 were not found by FreeSurfer, and count as not "
            "measured"
        )
    n_unknown_regions = atlas.unknown_structure_mask.sum()
    if measure_record.is_on_surface and n_unknown_regions:
        note_texts.append(
            f"{measure_record.name}: {count_text(n_unknown_regions, 'region')} of "
            f"unknown structure {verb_form(n_unknown_regions, 'are')} read as cortex"
        )
    if not measure_record.is_on_surface or not subcortical_region_mask.any():
        note_texts += _list_missing_structure_notes(
            region_values, measure_record, atlas
        )
        return region_values, tuple(note_texts)
    if (
        subcortex_policy == "volume"
        and np.isnan(region_values[subcortical_region_mask]).all()
    ):
        raise FileFormatError(
            f"{option_text('subcortex', 'volume')} requires volumes of subcortical "
            "regions, but the study contains none. Add aseg.stats or a table of "
            f"volumes, or choose {option_text('subcortex', 'absent')}."
        )
    if subcortex_policy != "volume":
        region_values[subcortical_region_mask] = np.nan
    if subcortex_policy == "mean":
        _fill_with_cortex_means(region_values, atlas)
    if SUBCORTEX[subcortex_policy]:
        note_texts.append(
            f"{measure_record.name}: each subcortical region has the "
            f"{SUBCORTEX[subcortex_policy]} as its value"
        )
    note_texts += _list_missing_structure_notes(region_values, measure_record, atlas)
    return region_values, tuple(note_texts)


def _list_missing_structure_notes(
    region_values: np.ndarray, measure_record: MeasureRecord, atlas: Atlas
) -> list[str]:
    """Return a note if one scan has no value in the whole cortex, or subcortex."""
    note_texts = list[str]()
    for adjective, structure_region_mask in (
        ("cortical", atlas.cortex),
        ("subcortical", ~atlas.cortex),
    ):
        n_missing_regions = structure_region_mask.sum()
        if n_missing_regions and np.isnan(region_values[structure_region_mask]).all():
            note_texts.append(
                f"{measure_record.name}: {n_missing_regions} of {len(atlas)} "
                f"regions (all {adjective}) {verb_form(n_missing_regions, 'have')} no "
                f"value and {verb_form(n_missing_regions, 'count')} as not measured"
            )
    return note_texts


def _check_region_values(
    region_values: np.ndarray, measure_record: MeasureRecord, atlas: Atlas
) -> None:
    """Raise if no value is known, or one is infinite or a negative size."""
    if np.isnan(region_values).all():
        raise FileFormatError(
            f"{measure_record.name} has no value in any region of {atlas.name}. "
            f"Add the values, or {format_leave_out_advice()}."
        )
    invalid_region_mask = np.isinf(region_values) | (
        (region_values < 0) & measure_record.is_in_stats
    )
    if invalid_region_mask.any():
        region_index = int(np.flatnonzero(invalid_region_mask)[0])
        expected_text = (
            "a size of at least 0" if measure_record.is_in_stats else "a finite number"
        )
        raise FileFormatError(
            f"{measure_record.name} of {atlas.names[region_index]} is "
            f"{region_values[region_index]:g}; expected {expected_text}. Write n/a "
            "for a region that was not measured."
        )


def _fill_with_cortex_means(region_values: np.ndarray, atlas: Atlas) -> None:
    """Give every subcortical region the mean of its hemisphere's cortex, in place."""
    hemispheres = atlas.regions["hemisphere"].to_numpy()
    for hemisphere in set(hemispheres[~atlas.cortex]):
        hemisphere_region_mask = hemispheres == hemisphere
        # A region on the midline gets the mean over both hemispheres.
        averaged_region_mask = atlas.cortex & (
            hemisphere_region_mask | (hemisphere == "M")
        )
        region_values[~atlas.cortex & hemisphere_region_mask] = np.nanmean(
            region_values[averaged_region_mask]
        )


def check_unit(
    region_values: np.ndarray, measure_record: MeasureRecord, atlas: Atlas
) -> None:
    """Raise if one scan's values cannot be in the unit of their measure.

    No brain has such a median over regions; or more than a few ratios are below 0, as
    z-scores are.
    """
    measured_values = region_values[
        atlas.cortex if measure_record.is_on_surface else slice(None)
    ]
    measured_values = measured_values[~np.isnan(measured_values)]
    if not measured_values.size:
        return
    lowest_median, highest_median = measure_record.plausible_median_range
    median_value = np.median(measured_values)
    share_below_0 = (measured_values < 0).mean()
    has_many_negatives = bool(measure_record.unit) and share_below_0 > MAX_SHARE_BELOW_0
    if lowest_median <= median_value <= highest_median and not has_many_negatives:
        return
    sign_text = f" and {share_below_0:.0%} of values below 0" if share_below_0 else ""
    raise FileFormatError(
        f"the unit of {measure_record.name} is probably not "
        f"{measure_record.unit}: expected values above 0 and a median over regions "
        f"from {lowest_median:g} to {highest_median:g}",
        got=f"a median of {median_value:.4g}{sign_text}",
        advice="Convert the values to this unit. If the values are meant to have "
        "another unit, give the columns and the feature another name, for example "
        f"feature='{measure_record.name}_z'.",
    )


def check_structures_complete(
    region_indices: np.ndarray, atlas: Atlas, source_name: str
) -> None:
    """Raise if a source has some, but not all, regions of cortex or subcortex.

    A source may leave out the subcortex as a whole, as surface tools do. One that has
    some of its regions has lost the others.
    """
    present_region_mask = np.isin(np.arange(len(atlas)), region_indices)
    name_mask_pairs = (("cortex", atlas.cortex), ("subcortex", ~atlas.cortex))
    for structure_name, structure_region_mask in name_mask_pairs:
        missing_region_names = [
            atlas.names[i]
            for i in np.flatnonzero(structure_region_mask & ~present_region_mask)
        ]
        is_incomplete = (
            present_region_mask & structure_region_mask
        ).any() or not present_region_mask.any()
        if missing_region_names and is_incomplete:
            raise FileFormatError(
                f"{len(missing_region_names)} of the {structure_region_mask.sum()} "
                f"{structure_name} regions of {atlas.name} are missing: "
                f"{join_with_commas(missing_region_names, 5)}. Write n/a for a region "
                "that was not measured.",
                path=source_name,
            )
