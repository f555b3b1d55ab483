"""The atlas: regions in order, spellings of their names, and their locations."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.atlas.atlas_files import (
    AtlasSettings,
    read_annotation,
    read_atlas_settings,
    read_mesh,
)
from brainlsap.atlas.region_names import (
    HEMISPHERE_WORDS,
    are_default_row_names,
    as_text,
    bare_name,
    find_side,
    find_structure_name,
    is_non_region_name,
    list_nearest_names,
    list_unclear_side_pairs,
    split_side_from_name,
)
from brainlsap.exceptions import (
    BrainlsapError,
    FileFormatError,
    ParameterError,
    RegionNameError,
    check_choice,
    convert_reading_errors,
)
from brainlsap.text import count_text, join_with_commas, option_text, verb_form

# Columns of a table of regions, in the order of an atlas.
REGION_COLUMNS = (
    *("name", "freesurfer_id", "hemisphere", "structure", "annot_name"),
    *("long_name", "lobe", "short_name", "x", "y", "z"),
)
# From fsaverage to MNI152: https://surfer.nmr.mgh.harvard.edu/fswiki/CoordinateSystems
_MNI305_TO_MNI152 = np.array(
    [
        [0.9975, -0.0073, 0.0176, -0.0429],
        [0.0146, 1.0009, -0.0024, 1.5496],
        [-0.0130, -0.0093, 0.9971, 1.1840],
    ]
)
# Regions of unknown structure are treated as cortex.
STRUCTURES = ("cortex", "subcortex", "unknown")
# In mm, the smallest value that the largest coordinate of an atlas can have.
MIN_EXTENT = 20
_STRUCTURE_OF_WORD = {"cortical": "cortex", "subcortical": "subcortex"}
# FreeSurfer's labels of cortical regions, in both of its parcellations.
_CORTEX_LABELS = re.compile(r"[12]0\d\d|1[12]1\d\d")
# Values of a column of sides, in lower case.
_SIDE_OF_WORD = HEMISPHERE_WORDS | dict.fromkeys(
    ("m", "midline", "both", "bilateral"), "M"
)
# Folder of the atlases in the package: of an installation, or else of a checkout.
_PACKAGE = Path(__file__).resolve().parents[1]
_BUNDLED = _PACKAGE / "_atlases"
if not _BUNDLED.is_dir():
    _BUNDLED = _PACKAGE.parent / "atlases"
# Regions within this distance (mm) of x = 0 may be on the midline or on either side.
_MIDLINE_WIDTH = 3.0
# Bounds of region centres in MNI152, in mm.
_BRAIN_BOUNDS = {"x": (-80, 80), "y": (-115, 80), "z": (-80, 90)}
# Largest distance (mm) between a region and its mirrored counterpart; 12 is observed.
_MAX_MIRROR_DISTANCE = 20
# Command that makes an atlas, for messages.
_ATLAS_COMMAND = "brainlsap atlas NAME --labels FILE --image FILE"
# Number of cortical names that another atlas must know to be suggested.
_MIN_KNOWN_NAMES = 20


@dataclass(frozen=True, eq=False)
class Atlas:
    """A region set: names in order, and locations of the regions.

    Parameters
    ----------
    name : str
        For example "destrieux160".
    regions : DataFrame
        One row per region in atlas order; columns `name`, `freesurfer_id` (-1 if
        none), `hemisphere` ("L", "R"; "M" on the midline), `structure` ("cortex",
        "subcortex", or "unknown"), `annot_name`, `long_name`, `lobe`, `short_name`,
        and centroid `x`, `y`, `z` in mm (NaN if unknown).
    folder : Path or None
        Folder of the surface files; None for an atlas made of names only.
    settings : AtlasSettings
        Contents of `atlas.json`, about the files of tools; empty without one.

    Attributes
    ----------
    names, short_names, full_names : tuple of str
        `ctx_rh_G_precuneus`; `(R) G.precuneus`, as in the paper's tables; `right
        precuneus`, for text and tables for readers. Names of user-defined regions are
        not changed.
    coordinates : array of shape (n_rois, 3)
        Centroids in mm, MNI152; NaN if unknown.
    cortex : bool array of shape (n_rois,)
        Whether regions count as cortex, as all do that are not known to be subcortical.
    homotopic : int array of shape (n_rois,)
        Position of the same region on the other side; its own if there is none.
    has_surfaces : bool
        Whether the cortex can be drawn (:meth:`vertex_labels`).

    Examples
    --------
    >>> atlas = load_atlas("destrieux160")
    >>> len(atlas), atlas.names[2], atlas.short_names[2]
    (160, 'ctx_lh_G_and_S_paracentral', '(L) G&S.paracentral')
    >>> atlas.match(["lh.G&S_paracentral", "Right-Thalamus-Proper"])
    array([  2, 154])
    """

    name: str
    regions: pd.DataFrame
    folder: Path | None = None
    settings: AtlasSettings = field(default_factory=AtlasSettings)

    @staticmethod
    def from_names(
        names: Sequence[str],
        hemispheres: Sequence[str] | None = None,
        coordinates: np.ndarray | pd.DataFrame | None = None,
        *,
        name: str = "own",
    ) -> "Atlas":
        """Make a region set of names; everything but surfaces works with it.

        Parameters
        ----------
        names : sequence of str, length n_rois
            Distinct names, in the order of the arrays.
        hemispheres : sequence of {"L", "R", "M"}, optional
            Sides of the regions. By default they come from the names (`Precentral_L`),
            or else from the coordinates; otherwise a region is on the midline (M).
        coordinates : array of shape (n_rois, 3) or DataFrame, optional
            Centroids x, y, z in mm (MNI152), for drawing. An array is in the order of
            `names`; a mapping, or a DataFrame with the names as index, is matched by
            name.
        name : str
            Name of the atlas.

        Raises
        ------
        ParameterError
            If there are no names, names are a mapping, a name occurs twice, two names
            without `hemispheres` and coordinates differ by letters that may mean left
            and right ("G" and "D"), coordinates have another shape or unit, or a
            DataFrame of them does not name the regions.
        RegionNameError
            If coordinates have an unknown region, or lack one.

        Examples
        --------
        >>> atlas = Atlas.from_names(["Precentral_L", "precentral_R", "Vermis"])
        >>> atlas.regions["hemisphere"].tolist(), atlas.homotopic
        (['L', 'R', 'M'], array([1, 0, 2]))
        """
        if isinstance(names, Mapping):
            raise ParameterError(
                "names must be a sequence of region names; got a dict. If its values "
                "are centroids, give list(names) and coordinates=names."
            )
        names = list(map(as_text, names))
        if hemispheres is None and coordinates is None:
            return Atlas(name, _build_region_table(tuple(names)).copy())
        if coordinates is None:
            coordinates = np.full((len(names), 3), np.nan)
        elif isinstance(coordinates, pd.DataFrame | Mapping):
            if isinstance(coordinates, Mapping):
                coordinates = pd.DataFrame.from_dict(coordinates, orient="index")
            atlas = Atlas.from_names(names, hemispheres)
            coordinates = _order_coordinate_table(atlas, coordinates)
        centroids = np.asarray(coordinates, dtype=float)
        expected_shape = (len(names), 3)
        largest_coordinate = find_largest_coordinate(centroids)
        has_mm_extent = (
            MIN_EXTENT <= largest_coordinate <= 150 or np.isnan(centroids).all()
        )
        if centroids.shape != expected_shape or not has_mm_extent:
            raise ParameterError(
                f"coordinates must have shape {expected_shape} and be in mm of "
                "MNI152 space, so that the largest is between 20 and 150; got "
                f"shape {centroids.shape} and a largest coordinate of "
                f"{largest_coordinate:g}."
            )
        region_table = pd.DataFrame(centroids, columns=[*"xyz"]).assign(name=names)
        if hemispheres is None:
            region_table["hemisphere"] = find_region_sides(region_table)
        else:
            region_table["hemisphere"] = list(hemispheres)
        return Atlas(name, fill_region_table(region_table, "names", ParameterError))

    def __len__(self) -> int:
        return len(self.regions)

    def __repr__(self) -> str:
        return f"Atlas({self.name!r}, {len(self)} regions)"

    def _repr_html_(self) -> str:
        n_located_regions = np.isfinite(self.coordinates).all(axis=1).sum()
        value_by_title = {
            "regions": f"{len(self)}, {self.describe_structure_counts()}",
            "coordinates": f"known for {count_text(n_located_regions, 'region')}"
            if n_located_regions
            else "not known",
            "surfaces": "yes" if self.has_surfaces else "no",
        }
        return (
            pd.Series(value_by_title, dtype=object)
            .to_frame(f"Atlas {self.name}")
            .to_html()
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the regions, in atlas order."""
        return tuple(self.regions["name"])

    @property
    def short_names(self) -> tuple[str, ...]:
        """Names as in the paper's tables, for example `(L) Sub.put`."""
        return tuple(self.regions["short_name"])

    @cached_property
    def name_by_label(self) -> dict[str, str]:
        """Name of the region of every label number, as files write the number."""
        label_numbers = self.regions["freesurfer_id"].astype(str)
        return dict(zip(label_numbers, self.names, strict=True))

    @cached_property
    def full_names(self) -> tuple[str, ...]:
        """Names for readers, for example `left amygdala`; own names are unchanged."""
        region_names = self.regions["name"]
        long_names = self.regions["long_name"]
        bracketless_names = long_names.str.replace(r"\s*\([^)]*\)", "", regex=True)
        # Keep the capital of a proper name, for example in "Heschl's gyrus".
        lower_case_names = bracketless_names.str.replace(
            "^[A-Z](?=[a-z][^A-Z']*$)", lambda match: match[0].lower(), regex=True
        )
        readable_names = long_names.where(long_names == region_names, lower_case_names)
        side_prefixes = (
            self.regions["hemisphere"].map({"L": "left ", "R": "right "}).fillna("")
        )
        sided_name_flags = [
            split_side_from_name(readable_name)[0] is not None
            for readable_name in readable_names
        ]
        return tuple(
            readable_names.where(sided_name_flags, side_prefixes + readable_names)
        )

    @cached_property
    def coordinates(self) -> np.ndarray:
        """Centroids in mm, MNI152, shape (n_rois, 3); NaN if unknown."""
        centroids = self.regions[["x", "y", "z"]].to_numpy(float)
        if self.settings.get("space") == "MNI305":
            return centroids @ _MNI305_TO_MNI152[:, :3].T + _MNI305_TO_MNI152[:, 3]
        return centroids

    @property
    def has_surfaces(self) -> bool:
        """Whether the cortex can be drawn."""
        folder = self._surface_folder
        return folder is not None and (folder / "lh.annot").is_file()

    @property
    def _surface_folder(self) -> Path | None:
        """Folder of the annotations: the atlas' own, or that of another beside it."""
        if self.folder is None or "surfaces" not in self.settings:
            return self.folder
        return self.folder.parent / self.settings["surfaces"]

    @cached_property
    def cortex(self) -> np.ndarray:
        """Whether regions count as cortex: bool array of shape (n_rois,).

        Regions of unknown structure count as cortex.
        """
        return (self.regions["structure"] != "subcortex").to_numpy()

    @cached_property
    def unknown_structure_mask(self) -> np.ndarray:
        """Whether structures of regions are unknown: bool array of shape (n_rois,)."""
        return (self.regions["structure"] == "unknown").to_numpy()

    @cached_property
    def structure_part_mask(self) -> np.ndarray:
        """Whether regions are parts of a structure that FreeSurfer has as a whole.

        Bool array of shape (n_rois,).
        """
        parts_by_structure = self.settings.get("parts", {})
        part_names = [
            part_name
            for structure_part_names in parts_by_structure.values()
            for part_name in structure_part_names
        ]
        return np.isin(self.names, part_names)

    def describe_structure_counts(self) -> str:
        """Return the number of regions of each structure as text."""
        structure_adjectives = ("cortical", "subcortical", "of unknown structure")
        n_regions_by_structure = self.regions["structure"].value_counts().to_dict()
        return ", ".join(
            f"{n_regions_by_structure[structure]} {structure_adjective}"
            for structure, structure_adjective in zip(
                STRUCTURES, structure_adjectives, strict=True
            )
            if n_regions_by_structure.get(structure)
        )

    def divides(self, name: str | bytes, hemisphere: str | None = None) -> bool:
        """Return whether the parts of a structure are regions, and not the whole.

        Parameters
        ----------
        name : str or bytes
            In any tool's spelling.
        hemisphere : {"L", "R"} or None
            The side of the file that contains the name, for names without a side.

        Returns
        -------
        bool

        Examples
        --------
        >>> load_atlas("destrieux164").divides("Left-Thalamus-Proper")
        True
        """
        region_side, core_name = split_side_from_name(name)
        return (region_side or hemisphere, core_name) in self._divided_structure_keys

    @cached_property
    def _divided_structure_keys(self) -> set[tuple[str | None, str]]:
        """Side and core of the names of structures whose parts are regions."""
        return {split_side_from_name(name) for name in self.settings.get("parts", {})}

    @cached_property
    def homotopic(self) -> np.ndarray:
        """Position of the same region on the other side; its own if there is none.

        Homotopic regions share a name and, if it is known, their mirrored location:
        parcels numbered on each side need not be mirror images of each other.
        """
        hemispheres = self.regions["hemisphere"].tolist()
        core_names = [
            split_side_from_name(region_name)[1] for region_name in self.names
        ]
        region_index_by_key = {
            (hemisphere, core_name): region_index
            for region_index, (hemisphere, core_name) in enumerate(
                zip(hemispheres, core_names, strict=True)
            )
        }
        opposite_by_hemisphere = {"L": "R", "R": "L", "M": "M"}
        homotopic_indices = np.array(
            [
                region_index_by_key.get(
                    (opposite_by_hemisphere.get(hemisphere), core_name), region_index
                )
                for region_index, (hemisphere, core_name) in enumerate(
                    zip(hemispheres, core_names, strict=True)
                )
            ]
        )
        centroids = self.regions.reindex(columns=[*"xyz"]).to_numpy(float)
        mirrored_centroids = centroids[homotopic_indices] * [-1, 1, 1]
        mirror_distances = np.linalg.norm(centroids - mirrored_centroids, axis=1)
        distant_pair_mask = mirror_distances > _MAX_MIRROR_DISTANCE
        return np.where(distant_pair_mask, np.arange(len(self)), homotopic_indices)

    @cached_property
    def _region_index_by_spelling(self) -> dict[tuple[str | None, str], int | None]:
        """Row by (side or None, core) and by ("", name); None if it is ambiguous.

        A name in reports is a spelling, too, unless it is a name of another region.
        """
        region_index_by_name_key: dict[tuple[str | None, str], int | None] = {}
        hemispheres = self.regions["hemisphere"]
        for region_index, (region_name, hemisphere) in enumerate(
            zip(self.names, hemispheres, strict=True)
        ):
            name_side, core_name = split_side_from_name(region_name)
            if name_side not in (None, hemisphere):
                # On the midline, a letter such as L is part of the name and not a side.
                core_name = "".join(filter(str.isalnum, region_name.lower()))
            for spelling_key in (
                (hemisphere, core_name),
                (None, core_name),
                ("", region_name),
            ):
                region_index_by_name_key[spelling_key] = (
                    None if spelling_key in region_index_by_name_key else region_index
                )
        region_index_by_report_name: dict[tuple[str | None, str], int | None] = {}
        if "long_name" in self.regions:
            for report_names in (
                self.regions["long_name"].astype(str),
                self.full_names,
            ):
                region_index_series = pd.Series(range(len(self)), report_names)
                unique_index_series = region_index_series[
                    ~region_index_series.index.duplicated(keep=False)
                ]
                region_index_by_report_name |= {
                    ("", report_name): region_index
                    for report_name, region_index in unique_index_series.items()
                }
        return region_index_by_report_name | region_index_by_name_key

    def find(self, name: str | bytes, hemisphere: str | None = None) -> int | None:
        """Return the position of a region, in any spelling of its name.

        Parameters
        ----------
        name : str or bytes
            In any tool's spelling, the paper's short name, or one of `full_names`.
        hemisphere : {"L", "R"} or None
            The side of the file that contains the name, for names without a side.

        Returns
        -------
        int or None
            None if the name is unknown, has another side than `hemisphere`, or is
            ambiguous.

        Examples
        --------
        >>> atlas = load_atlas("desikan82")
        >>> atlas.find("lh_bankssts"), atlas.find("bankssts", "R")
        (0, 34)
        """
        region_index = (
            None
            if hemisphere
            else self._region_index_by_spelling.get(("", as_text(name)))
        )
        if region_index is not None:
            return region_index
        region_side, core_name = split_side_from_name(name)
        if region_side and hemisphere and region_side != hemisphere:
            return None
        return self._region_index_by_spelling.get(
            (region_side or hemisphere, core_name)
        )

    def match(
        self, names: Iterable[str | bytes], hemisphere: str | None = None
    ) -> np.ndarray:
        """Return the position of every name.

        Parameters
        ----------
        names : iterable of str or bytes
            In any tool's spelling, each region at most once.
        hemisphere : {"L", "R"} or None
            The side of the file that contains the names, if it has only one.

        Returns
        -------
        int array of shape (n_names,)

        Raises
        ------
        RegionNameError
            If names are unknown (the message has the nearest names, or the atlas that
            knows them), or two names are the same region.

        Examples
        --------
        >>> load_atlas("desikan82").match(["lh_bankssts", "lh_insulla"])
        Traceback (most recent call last):
        brainlsap.exceptions.RegionNameError: 1 of 2 names are not regions of the atlas
        desikan82: 'lh_insulla' (most similar: ctx-lh-insula). ...
        """
        all_spellings = [as_text(region_name) for region_name in names]
        unknown_names: list[str] = []
        spellings_by_region_index: dict[int, list[str]] = {}
        for spelling in all_spellings:
            region_index = self.find(spelling, hemisphere)
            if region_index is None:
                unknown_names.append(spelling)
            else:
                spellings_by_region_index.setdefault(region_index, []).append(spelling)
        if unknown_names:
            raise self._make_unknown_names_error(
                unknown_names, all_spellings, hemisphere
            )
        repeated_region_texts = [
            f"{self.names[region_index]} as {_repeated_spellings_text(spellings)}"
            for region_index, spellings in spellings_by_region_index.items()
            if len(spellings) > 1
        ]
        if repeated_region_texts:
            raise RegionNameError(
                f"{count_text(len(repeated_region_texts), 'region')} of the atlas "
                f"{self.name} {verb_form(len(repeated_region_texts), 'occur')} more "
                f"than once: {join_with_commas(repeated_region_texts, 5)}. Give each "
                "region once."
            )
        return np.array([*spellings_by_region_index], dtype=int)

    def _make_unknown_names_error(
        self,
        unknown_names: list[str],
        all_names: list[str],
        hemisphere: str | None,
    ) -> RegionNameError:
        """Return an error on unknown names, with the nearest, or another atlas."""
        atlas_name = self.find_better_atlas_name(all_names)
        if atlas_name:
            return RegionNameError(
                f"The names belong to {atlas_name}, not to {self.name}.",
                advice="Choose the other atlas with "
                f"{option_text('atlas', atlas_name)}.",
                values={"atlas": atlas_name},
            )
        region_indices_or_none = {self.find(name, hemisphere) for name in all_names}
        absent_region_names = self._list_absent_region_names(
            region_indices_or_none, hemisphere
        )
        name_descriptions, advice_text = self._describe_unknown_names(
            unknown_names, absent_region_names, hemisphere
        )
        matching_atlas_names = [
            other_atlas_name
            for other_atlas_name in available_atlases()
            if load_atlas(other_atlas_name)._has_all_regions(all_names, hemisphere)
        ]
        # A few names do not suffice to propose an atlas by `values`.
        if matching_atlas_names:
            name_descriptions = [*map(repr, unknown_names)]
            advice_text = (
                "All names are regions of the atlas "
                f"{' or '.join(matching_atlas_names)}. Choose this atlas with "
                f"{option_text('atlas', matching_atlas_names[0])}"
            )
        description_text = (
            f"are not regions of the atlas {self.name}: "
            f"{join_with_commas(name_descriptions, 5)}. {advice_text}."
        )
        return RegionNameError(
            f"{len(unknown_names)} of {len(all_names)} names {description_text}",
            values={
                "n_unknown": len(unknown_names),
                "n_names": len(all_names),
                "description": description_text,
            },
        )

    def _describe_unknown_names(
        self,
        unknown_names: list[str],
        absent_region_names: Sequence[str],
        hemisphere: str | None,
    ) -> tuple[list[str], str]:
        """Return a text for each unknown name, and advice on all."""
        label_numbers = [name for name in unknown_names if name in self.name_by_label]
        if label_numbers:
            return [*map(repr, unknown_names)], (
                "Write names instead of numbers, for example "
                f"{self.name_by_label[label_numbers[0]]!r} instead of "
                f"{label_numbers[0]!r}"
            )
        name_descriptions = list(unknown_names)
        has_misspelt_name = False
        names_with_side = list[str]()
        for i, unknown_name in enumerate(unknown_names[:5]):
            similar_names = list_nearest_names(unknown_name, self.names, hemisphere)
            lacks_side = (
                hemisphere is None and split_side_from_name(unknown_name)[0] is None
            )
            if lacks_side:
                names_with_side += [
                    similar_name
                    for similar_name in similar_names
                    if split_side_from_name(similar_name)[0] is not None
                ]
            # A misspelt name stands for a region that no other name is.
            similar_names = [
                name for name in similar_names if name in absent_region_names
            ] or similar_names
            if len(unknown_names) == len(absent_region_names) == 1:
                similar_names = [*absent_region_names]
            has_misspelt_name |= bool(similar_names) and not lacks_side
            name_descriptions[i] = (
                f"{unknown_name!r} (most similar: {', '.join(similar_names) or 'none'})"
            )
        name_advice = (
            f"Write the names as the atlas has them, for example {self.names[0]!r}"
        )
        if has_misspelt_name:
            name_advice = "Correct the spelling"
        elif names_with_side:
            name_advice = (
                "Write the hemisphere into each region name, for example "
                f"{names_with_side[0]!r}"
            )
        if all(map(is_non_region_name, unknown_names)):
            name_advice = "Leave these out"
        if measure_ending := self._find_removable_ending(unknown_names, hemisphere):
            name_descriptions = [*map(repr, unknown_names)]
            name_advice = f"Remove {measure_ending!r} from the names"
        advice_text = (
            f"{name_advice}, or choose another atlas with {option_text('atlas')}"
        )
        return name_descriptions, advice_text

    def _find_removable_ending(
        self, unknown_names: Sequence[str], hemisphere: str | None
    ) -> str:
        """Return the ending, such as "_thickness", without which all names match."""
        name_ending = "_" + unknown_names[0].rpartition("_")[2]
        region_names = [name.removesuffix(name_ending) for name in unknown_names]
        is_common_ending = all(name.endswith(name_ending) for name in unknown_names)
        return (
            name_ending
            if is_common_ending and self._has_all_regions(region_names, hemisphere)
            else ""
        )

    def _list_absent_region_names(
        self,
        region_indices_or_none: Collection[int | None],
        hemisphere: str | None = None,
    ) -> list[str]:
        """Return the regions (of one side, if given) that are in none of some rows."""
        return [
            name
            for region_index, name in enumerate(self.names)
            if region_index not in region_indices_or_none
            and hemisphere in (None, self.regions["hemisphere"].iloc[region_index])
        ]

    def _has_all_regions(
        self, names: Iterable[str | bytes], hemisphere: str | None = None
    ) -> bool:
        """Return whether every name is a region, in any tool's spelling."""
        return all(self.find(as_text(n), hemisphere) is not None for n in names)

    def match_all(self, names: Iterable[str | bytes]) -> np.ndarray:
        """Return the position of every name, like :meth:`match`, for all regions.

        Parameters
        ----------
        names : iterable of str or bytes
            In any tool's spelling, each region once.

        Returns
        -------
        int array of shape (n_rois,)

        Raises
        ------
        RegionNameError
            As :meth:`match`, and if a region is missing.
        """
        region_indices = self.match(names)
        absent_region_names = self._list_absent_region_names({*region_indices.tolist()})
        if absent_region_names:
            raise RegionNameError(
                f"{len(absent_region_names)} of the {len(self)} regions of the atlas "
                f"{self.name} are missing: {join_with_commas(absent_region_names, 5)}. "
                "Add these regions, with NaN where a value is unknown."
            )
        return region_indices

    def find_better_atlas_name(self, names: Sequence[str | bytes]) -> str | None:
        """Return an available atlas that knows more of the names than this one.

        Of several that know the same cortical names, it is that which knows most
        names, then that with the fewest regions. An atlas with exactly these regions
        comes before this one.
        """

        def make_fit_sort_key(atlas: Atlas) -> tuple[int, int, int]:
            known_region_indices = {
                region_index
                for region_name in names
                if (region_index := atlas.find(region_name)) is not None
            }
            n_known_cortical_regions = int(atlas.cortex[[*known_region_indices]].sum())
            return n_known_cortical_regions, len(known_region_indices), -len(atlas)

        best_atlas = max(map(load_atlas, available_atlases()), key=make_fit_sort_key)
        n_known_cortical_regions, n_known_regions, _ = make_fit_sort_key(best_atlas)
        n_self_cortical_regions, n_self_known_regions, _ = make_fit_sort_key(self)
        has_exact_regions = n_known_regions == len(
            best_atlas
        ) and n_self_known_regions < len(self)
        knows_more_names = (
            n_known_cortical_regions > n_self_cortical_regions
            and n_known_cortical_regions >= _MIN_KNOWN_NAMES
        )
        return best_atlas.name if has_exact_regions or knows_more_names else None

    def find_file_rows(
        self, names: Iterable[str | bytes], hemisphere: str | None = None
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the row of each region in a file, and the names that were dropped.

        Parameters
        ----------
        names : iterable of str or bytes
            Names of the file's rows. Names that atlases leave out on purpose (medial
            wall, cerebellum, totals of FreeSurfer's tables ...) are dropped, and
            structures of which it has the parts. If all are whole numbers, they are
            FreeSurfer's labels.
        hemisphere : {"L", "R"} or None
            The side of the file, if it has only one.

        Returns
        -------
        rows : int array of shape (n_rois,)
            Position in the file, -1 for a region without a row.
        dropped : tuple of str

        Raises
        ------
        RegionNameError
            As :meth:`match`.
        """
        return _find_file_rows(self, tuple(names), hemisphere)

    def vertex_labels(
        self, hemisphere: str, path: str | Path | None = None
    ) -> np.ndarray:
        """Return the region of every vertex of one hemisphere.

        Parameters
        ----------
        hemisphere : {"L", "R"}
            The side.
        path : str or Path, optional
            Annotation of another surface, for example a subject's; by default the
            atlas' own, on fsaverage5.

        Returns
        -------
        int array of shape (n_vertices,)
            Position of the region in the atlas; -1 if there is none.

        Raises
        ------
        ParameterError
            If `hemisphere` is neither L nor R.
        FileFormatError
            If the atlas has no surface labels, or they name an unknown region.
        """
        check_choice("hemisphere", hemisphere, ("L", "R"))
        folder = self._surface_folder or self.name
        path = path or Path(folder, f"{hemisphere.lower()}h.annot")
        vertex_name_indices, annotation_names = read_annotation(path)
        try:
            region_file_rows, _ = self.find_file_rows(annotation_names, hemisphere)
        except RegionNameError as error:
            raise FileFormatError(error.message, path=path) from error
        # The last entry serves index -1: vertices without a name.
        name_region_indices = np.full(len(annotation_names) + 1, -1)
        name_region_indices[region_file_rows[region_file_rows >= 0]] = np.flatnonzero(
            region_file_rows >= 0
        )
        return name_region_indices[vertex_name_indices]

    def meshes(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the surfaces of the subcortical regions.

        Files are those in the atlas' folder `meshes`, each named by its region
        (`Left-Putamen.surf.gii`); without that folder, those of the package.

        Returns
        -------
        dict
            From region name to `(vertices, faces)`: float array (n_vertices, 3) in
            mm (surface RAS of fsaverage) and int array (n_faces, 3). Regions
            without a file are absent.

        Raises
        ------
        FileFormatError
            If a file is not a GIFTI surface.
        """
        if self.folder is None:
            return {}
        folder = self.folder / "meshes"
        if not folder.is_dir():
            folder = _BUNDLED / "subcortex"
        mesh_by_region_index = {}
        for mesh_path in folder.glob("*.surf.gii"):
            region_index = self.find(mesh_path.name.removesuffix(".surf.gii"))
            if region_index is not None:
                mesh_by_region_index[region_index] = read_mesh(mesh_path)
        return {
            self.names[region_index]: mesh_by_region_index[region_index]
            for region_index in sorted(mesh_by_region_index)
        }


def _order_coordinate_table(
    atlas: Atlas, coordinate_table: pd.DataFrame
) -> pd.DataFrame:
    """Return x, y, z of every region, by position if the index only counts rows."""
    has_row_numbers = are_default_row_names([*map(str, coordinate_table.index)])
    xyz_table = (
        coordinate_table[[*"xyz"]]
        if {*"xyz"} <= {*coordinate_table}
        else coordinate_table
    )
    numeric_table = coordinate_table if has_row_numbers else xyz_table
    non_numeric_column_names = numeric_table.select_dtypes(exclude="number").columns
    if len(non_numeric_column_names):
        raise ParameterError(
            "the index of a table of coordinates must contain the names of the "
            "regions, and the columns must be x, y and z. For this table, use "
            f".set_index({non_numeric_column_names[0]!r})."
        )
    if has_row_numbers:
        return xyz_table
    return xyz_table.iloc[atlas.match_all(coordinate_table.index).argsort()]


@lru_cache(maxsize=128)  # the files of a cohort repeat one list of names
def _find_file_rows(
    atlas: Atlas, file_row_names: tuple[str | bytes, ...], hemisphere: str | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the result of :meth:`Atlas.find_file_rows`."""
    row_name_texts = [as_text(region_name) for region_name in file_row_names]
    file_region_names = row_name_texts
    if row_name_texts and all(map(str.isdecimal, row_name_texts)):
        file_region_names = [
            atlas.name_by_label.get(row_name_text, "Unknown")
            for row_name_text in row_name_texts
        ]
    file_row_indices = [
        file_row_index
        for file_row_index, region_name in enumerate(file_region_names)
        if atlas.find(region_name, hemisphere) is not None
        or not (
            is_non_region_name(region_name) or atlas.divides(region_name, hemisphere)
        )
    ]
    region_file_rows = np.full(len(atlas.names), -1)
    region_file_rows[
        atlas.match([file_region_names[i] for i in file_row_indices], hemisphere)
    ] = file_row_indices
    region_file_rows.flags.writeable = False
    dropped_names = [
        row_name_text
        for i, row_name_text in enumerate(row_name_texts)
        if i not in file_row_indices
    ]
    return region_file_rows, tuple(dropped_names)


AtlasSource = str | Path | Atlas | Sequence[str]
"""Types that :func:`load_atlas` accepts."""


@lru_cache(maxsize=1)
def available_atlases() -> tuple[str, ...]:
    """Return the names of the atlases that come with the package.

    Returns
    -------
    tuple of str
        Names that :func:`load_atlas` accepts.
    """
    table_paths = _BUNDLED.glob("*/regions.tsv")
    return tuple(sorted(table_path.parent.name for table_path in table_paths))


def load_atlas(name: AtlasSource) -> Atlas:
    """Load an atlas by its name, or an atlas of your own from its folder or table.

    Parameters
    ----------
    name : str, Path, Atlas or sequence of str
        One of :func:`available_atlases`; or the path of a tab-separated table of
        regions, or of a folder that holds it as `regions.tsv`
        (:func:`.make_atlas` makes one). The table needs the columns `name` and
        `hemisphere` (L, R, or M for the midline); further columns are those of
        :class:`Atlas` and are filled if absent. `lh.annot`, `rh.annot` (fsaverage5)
        and `meshes/<name>.surf.gii` beside it are used for drawing, and `atlas.json`
        for the names that tools give the atlas. An `Atlas` is returned unchanged, and
        the atlas of a cohort for a cohort; :meth:`Atlas.from_names` makes one of names.

    Returns
    -------
    Atlas

    Raises
    ------
    ParameterError
        If there is no such atlas and no such file.
    FileFormatError
        If the table cannot be read, lacks a column, is empty, or has an invalid value,
        for example one name for two regions; or if `atlas.json` has an unknown key or
        an invalid value.

    Examples
    --------
    >>> load_atlas("desikan82")
    Atlas('desikan82', 82 regions)
    """
    name = getattr(name, "atlas", name)
    if isinstance(name, Atlas):
        return name
    if not isinstance(name, str | Path | None):
        return Atlas.from_names(name)
    if str(name) in available_atlases():
        return _read_bundled_atlas(_BUNDLED / str(name) / "regions.tsv")
    atlas_path = Path(str(name)).expanduser()
    table_path = atlas_path / "regions.tsv" if atlas_path.is_dir() else atlas_path
    if not table_path.is_file():
        raise ParameterError(
            f"atlas must be one of {', '.join(map(repr, available_atlases()))}, the "
            "path of a regions.tsv, a list of region names, or a folder made by "
            f"`{_ATLAS_COMMAND}`; got {str(name)!r}."
        )
    return _read_atlas(table_path)


def _read_atlas(table_path: Path) -> Atlas:
    folder = table_path.parent
    with convert_reading_errors(
        table_path, f"a tab-separated table of regions (`{_ATLAS_COMMAND}` makes one)"
    ):
        region_table = pd.read_csv(
            table_path, sep="\t", dtype=str, keep_default_na=False
        )
        region_table.columns = region_table.columns.str.lower()
    is_in_atlas_folder = table_path.name == "regions.tsv"
    atlas_name = folder.resolve().name if is_in_atlas_folder else table_path.stem
    region_table = fill_region_table(region_table, str(table_path))
    check_coordinates_in_mm(region_table, table_path)
    atlas = Atlas(atlas_name, region_table, folder)
    settings_path = folder / "atlas.json"
    if not (is_in_atlas_folder and settings_path.is_file()):
        return atlas
    n_cortical_regions = int(atlas.cortex.sum())
    return replace(
        atlas, settings=read_atlas_settings(settings_path, n_cortical_regions)
    )


_read_bundled_atlas = lru_cache(maxsize=32)(_read_atlas)


def find_region_sides(region_table: pd.DataFrame) -> list[str]:
    """Return the sides of regions from their names, or else from their coordinates."""
    x = pd.to_numeric(region_table.reindex(columns=["x"])["x"], errors="coerce")
    left_region_mask = x < -_MIDLINE_WIDTH
    right_region_mask = x > _MIDLINE_WIDTH
    coordinate_sides = np.select(
        [left_region_mask, right_region_mask], ["L", "R"], "M"
    ).tolist()
    return [
        split_side_from_name(region_name)[0] or coordinate_side
        for region_name, coordinate_side in zip(
            region_table["name"], coordinate_sides, strict=True
        )
    ]


def _find_region_structures(region_table: pd.DataFrame) -> list[str]:
    """Return structures from names, long names or FreeSurfer's labels."""
    text_table = region_table.reindex(columns=["long_name", "freesurfer_id"])
    text_table = text_table.astype(object).fillna("").map(str)
    structures = list[str]()
    for region_name, long_name, label_number_text in zip(
        region_table["name"], *text_table.T.to_numpy(), strict=True
    ):
        structure = find_structure_name(region_name)
        if structure != "subcortex":
            long_name_structure = find_structure_name(long_name)
            if long_name_structure != "unknown":
                structure = long_name_structure
        is_surface_name = region_name[:2].lower() in ("lh", "rh")
        if is_surface_name and _CORTEX_LABELS.fullmatch(label_number_text):
            structure = "cortex"
        structures.append(structure)
    return structures


def find_largest_coordinate(centroids: np.ndarray) -> float:
    """Return the largest distance of a region from the origin along an axis."""
    return float(np.abs(centroids[~np.isnan(centroids)]).max(initial=0))


def check_coordinates_in_mm(region_table: pd.DataFrame, path: str | Path) -> None:
    """Raise if all coordinates are so small that they cannot be in mm."""
    centroids = region_table[[*"xyz"]].to_numpy(float)
    largest_coordinate = find_largest_coordinate(centroids)
    if np.isfinite(centroids).any() and largest_coordinate < MIN_EXTENT:
        raise FileFormatError(
            "the coordinates x, y, z must be in mm of MNI152 space, so that the "
            f"largest is at least {MIN_EXTENT}; got {largest_coordinate:g} as the "
            "largest. Convert the coordinates to mm.",
            path=path,
        )


def fill_region_table(
    region_table: pd.DataFrame,
    source_name: str,
    error_type: type[BrainlsapError] = FileFormatError,
) -> pd.DataFrame:
    """Check a table of regions, and fill its missing columns.

    `source_name` is the file or argument that messages name.
    """
    if not {"name", "hemisphere"} <= set(region_table) or region_table.empty:
        raise error_type(
            f"{source_name}: the table must have the columns name and hemisphere, "
            "separated by tabs, and one row for every region; got "
            f"{count_text(len(region_table), 'row')} with the columns "
            f"{', '.join(map(repr, region_table.columns))}."
        )
    original_table = region_table
    region_names = region_table["name"].str.strip()
    region_table = region_table.assign(name=region_names)
    hemispheres = _make_side_series(region_table)
    default_values_by_column = {
        "structure": _find_region_structures(region_table),
        "annot_name": region_names.map(bare_name),
        **dict.fromkeys(("long_name", "short_name"), region_names),
        **dict.fromkeys(("freesurfer_id", "lobe", *"xyz"), "n/a"),
    }
    values_by_missing_column = {
        column_name: column_values
        for column_name, column_values in default_values_by_column.items()
        if column_name not in region_table
    }
    region_table = region_table.assign(
        hemisphere=hemispheres, **values_by_missing_column
    )
    structure_texts = region_table["structure"].astype(str).str.strip().str.lower()
    region_table["structure"] = structure_texts.replace(_STRUCTURE_OF_WORD)
    raw_number_table = region_table[["freesurfer_id", *"xyz"]].astype(object)
    raw_number_table = raw_number_table.replace(
        r"(?i)^\s*(n/?a|nan)?\s*$", np.nan, regex=True
    )
    parsed_number_table = raw_number_table.apply(pd.to_numeric, errors="coerce")
    for column_name, expectation_text, wrong_row_mask in _iter_cell_checks(
        region_table, raw_number_table, parsed_number_table
    ):
        if wrong_row_mask.any():
            wrong_row_indices = np.flatnonzero(wrong_row_mask)
            wrong_region_texts = [
                f"{region_names.iloc[wrong_row_index]!r} (row {wrong_row_index + 1})"
                for wrong_row_index in wrong_row_indices
            ]
            raise error_type(
                f"{source_name}: {column_name} of "
                f"{join_with_commas(wrong_region_texts, 5)} must be "
                f"{expectation_text}; got "
                f"{original_table[column_name].tolist()[wrong_row_indices[0]]!r}."
            )
    region_table = region_table.assign(**parsed_number_table)
    region_table["freesurfer_id"] = (
        parsed_number_table["freesurfer_id"].fillna(-1).astype(int)
    )
    user_column_names = [
        column_name
        for column_name in region_table
        if column_name not in (*REGION_COLUMNS, "index")
    ]
    return region_table[[*REGION_COLUMNS, *user_column_names]]


@lru_cache(maxsize=32)
def _build_region_table(region_names: tuple[str, ...]) -> pd.DataFrame:
    """Return the table of regions of which only the names are known.

    The table is cached, because making it takes longer than making a cohort of arrays,
    and cohorts of one study have the same names. Copy it before changing it.
    """
    unclear_name_pairs = list_unclear_side_pairs(region_names)
    if unclear_name_pairs:
        raise ParameterError(
            f"{count_text(len(unclear_name_pairs), 'pair')} of region names may name "
            "the left and the right side by letters other than L and R, for example "
            f"{' and '.join(map(repr, unclear_name_pairs[0]))}. Give the side of every "
            "region ('L', 'R' or 'M') in hemispheres=, or write L and R in the names."
        )
    region_table = pd.DataFrame(np.nan, range(len(region_names)), columns=[*"xyz"])
    region_table = region_table.assign(name=list(region_names))
    region_table["hemisphere"] = find_region_sides(region_table)
    return fill_region_table(region_table, "names", ParameterError)


def _make_side_series(region_table: pd.DataFrame) -> pd.Series:
    """Return "L", "R" or "M" of every region, None for a text that is none of them.

    Empty cells are filled from names and coordinates.
    """
    side_texts = region_table["hemisphere"].str.strip().str.lower()
    empty_cell_mask = side_texts.isin(("", "n/a"))
    side_texts = side_texts.mask(
        empty_cell_mask, find_region_sides(region_table)
    ).str.lower()
    return side_texts.map(lambda text: _SIDE_OF_WORD.get(text) or find_side(str(text)))


def _iter_cell_checks(
    region_table: pd.DataFrame,
    raw_number_table: pd.DataFrame,
    parsed_number_table: pd.DataFrame,
) -> Iterator[tuple[str, str, pd.Series]]:
    """Yield checks of a table of regions: column, expected value, which rows fail.

    `raw_number_table` holds the cells of the numeric columns, NaN if empty;
    `parsed_number_table` their values, NaN for a cell that is no number.
    """
    region_names = region_table["name"]
    hemispheres = region_table["hemisphere"]
    name_sides = region_names.map(lambda name: split_side_from_name(name)[0])
    yield "name", "a text", region_names == ""
    repeated_name_mask = region_names.str.lower().duplicated(keep=False)
    yield (
        "name",
        "unique (upper and lower case count as the same)",
        repeated_name_mask,
    )
    yield "hemisphere", "L, R or M (midline)", hemispheres.isna()
    contradictory_side_mask = (
        name_sides.notna() & (name_sides != hemispheres) & (hemispheres != "M")
    )
    yield (
        "hemisphere",
        "the side in the name, because the column and the name contradict each other",
        contradictory_side_mask,
    )
    unknown_structure_mask = ~region_table["structure"].isin(STRUCTURES)
    yield "structure", "cortex, subcortex or unknown", unknown_structure_mask
    for column_name in raw_number_table:
        non_numeric_cell_mask = (
            parsed_number_table[column_name].isna()
            & raw_number_table[column_name].notna()
        )
        yield column_name, "a number or n/a", non_numeric_cell_mask
    label_numbers = parsed_number_table["freesurfer_id"].fillna(-1)
    repeated_label_mask = (label_numbers > 0) & label_numbers.duplicated()
    yield (
        "freesurfer_id",
        "a whole number that no other region has, or n/a",
        (label_numbers != label_numbers.round()) | repeated_label_mask,
    )
    for axis_name, (lower_bound, upper_bound) in _BRAIN_BOUNDS.items():
        yield (
            axis_name,
            "a coordinate in mm inside the brain in MNI152 space (the affine of the "
            "image may be wrong)",
            ~parsed_number_table[axis_name].fillna(0).between(lower_bound, upper_bound),
        )
    contralateral_region_mask = (
        parsed_number_table["x"] * hemispheres.map({"L": 1, "R": -1}) > _MIDLINE_WIDTH
    )
    yield (
        "x",
        "on the side that the name of the region gives (the image may be flipped, or "
        "names may have been swapped)",
        contralateral_region_mask,
    )


def _repeated_spellings_text(region_spellings: Sequence[str]) -> str:
    """Return each spelling of a region once, with the number of its repeats."""
    return join_with_commas(
        (
            f"{spelling!r} ({n_repeats} times)" if n_repeats > 1 else repr(spelling)
            for spelling, n_repeats in Counter(region_spellings).items()
        ),
        5,
    )
