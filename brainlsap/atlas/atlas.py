"""The atlas: regions in order, spellings of their names, and their locations."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.atlas.region_names import (
    HEMISPHERE_WORDS,
    are_counts,
    as_text,
    bare_name,
    find_side,
    find_structure,
    is_outside,
    nearest_names,
    split_name,
)
from brainlsap.atlas.settings import AtlasSettings, read_settings
from brainlsap.atlas.surfaces import read_annotation, read_mesh
from brainlsap.exceptions import (
    BrainlsapError,
    FileFormatError,
    ParameterError,
    RegionNameError,
    check_choice,
    reading,
)
from brainlsap.text import listed

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
        Which regions count as cortex: all that are not known to be subcortical.
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
            If there are no names, a name occurs twice, coordinates have another shape
            or unit, or a DataFrame of them does not name the regions.
        RegionNameError
            If coordinates have an unknown region, or lack one.

        Examples
        --------
        >>> atlas = Atlas.from_names(["Precentral_L", "precentral_R", "Vermis"])
        >>> atlas.regions["hemisphere"].tolist(), atlas.homotopic
        (['L', 'R', 'M'], array([1, 0, 2]))
        """
        names = list(map(as_text, names))
        if coordinates is None:
            coordinates = np.full((len(names), 3), np.nan)
        elif isinstance(coordinates, pd.DataFrame | Mapping):
            if isinstance(coordinates, Mapping):
                coordinates = pd.DataFrame.from_dict(coordinates, orient="index")
            atlas = Atlas.from_names(names, hemispheres)
            coordinates = _coordinates_by_name(atlas, coordinates)
        centres = np.asarray(coordinates, dtype=float)
        shape = (len(names), 3)
        largest = np.abs(centres[~np.isnan(centres)]).max(initial=0)
        is_unit_mm = 20 <= largest <= 150 or np.isnan(centres).all()
        if centres.shape != shape or not is_unit_mm:
            raise ParameterError(
                f"coordinates must have shape {shape} and be mm of MNI152, the largest "
                f"20 to 150; got {centres.shape}, up to {largest:g}."
            )
        table = pd.DataFrame(centres, columns=[*"xyz"]).assign(name=names)
        if hemispheres is None:
            table["hemisphere"] = find_sides(table)
        else:
            table["hemisphere"] = list(hemispheres)
        return Atlas(name, complete_regions(table, "names", ParameterError))

    def __len__(self) -> int:
        return len(self.regions)

    def __repr__(self) -> str:
        return f"Atlas({self.name!r}, {len(self)} regions)"

    def _repr_html_(self) -> str:
        n_located = np.isfinite(self.coordinates).all(axis=1).sum()
        facts = {
            "regions": f"{len(self)}, {self.count_structures()}",
            "coordinates": f"of {n_located} regions" if n_located else "not known",
            "surfaces": "yes" if self.has_surfaces else "no",
        }
        return pd.Series(facts, dtype=object).to_frame(f"Atlas {self.name}").to_html()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the regions, in atlas order."""
        return tuple(self.regions["name"])

    @property
    def short_names(self) -> tuple[str, ...]:
        """Names as in the paper's tables, for example `(L) Sub.put`."""
        return tuple(self.regions["short_name"])

    @cached_property
    def full_names(self) -> tuple[str, ...]:
        """Names for readers, for example `left amygdala`; own names are unchanged."""
        names = self.regions["name"]
        long_names = self.regions["long_name"]
        without_brackets = long_names.str.replace(r"\s*\([^)]*\)", "", regex=True)
        # Keep the capital of a proper name, for example in "Heschl's gyrus".
        lower_case = without_brackets.str.replace(
            "^[A-Z](?=[a-z][^A-Z']*$)", lambda match: match[0].lower(), regex=True
        )
        texts = long_names.where(long_names == names, lower_case)
        sides = self.regions["hemisphere"].map({"L": "left ", "R": "right "}).fillna("")
        has_side = [split_name(text)[0] is not None for text in texts]
        return tuple(texts.where(has_side, sides + texts))

    @cached_property
    def coordinates(self) -> np.ndarray:
        """Centroids in mm, MNI152, shape (n_rois, 3); NaN if unknown."""
        centres = self.regions[["x", "y", "z"]].to_numpy(float)
        if self.settings.get("space") == "MNI305":
            return centres @ _MNI305_TO_MNI152[:, :3].T + _MNI305_TO_MNI152[:, 3]
        return centres

    @property
    def has_surfaces(self) -> bool:
        """Whether the cortex can be drawn."""
        return self.folder is not None and (self.folder / "lh.annot").is_file()

    @cached_property
    def cortex(self) -> np.ndarray:
        """Which regions count as cortex: bool array of shape (n_rois,).

        Regions of unknown structure count as cortex.
        """
        return (self.regions["structure"] != "subcortex").to_numpy()

    @cached_property
    def is_unknown(self) -> np.ndarray:
        """Which regions are not known to be cortex: bool array of shape (n_rois,)."""
        return (self.regions["structure"] == "unknown").to_numpy()

    def count_structures(self) -> str:
        """Return the number of regions of each structure as text."""
        adjectives = ("cortical", "subcortical", "of unknown structure")
        counts = self.regions["structure"].value_counts().to_dict()
        return ", ".join(
            f"{counts[structure]} {adjective}"
            for structure, adjective in zip(STRUCTURES, adjectives, strict=True)
            if counts.get(structure)
        )

    @cached_property
    def homotopic(self) -> np.ndarray:
        """Position of the same region on the other side; its own if there is none.

        Homotopic regions share a name and, if it is known, their mirrored location:
        parcels numbered on each side need not be mirror images of each other.
        """
        sides = self.regions["hemisphere"].tolist()
        cores = [split_name(name)[1] for name in self.names]
        row_of_region = {
            (side, core): row
            for row, (side, core) in enumerate(zip(sides, cores, strict=True))
        }
        opposite_side = {"L": "R", "R": "L", "M": "M"}
        counterparts = np.array(
            [
                row_of_region.get((opposite_side.get(side), core), row)
                for row, (side, core) in enumerate(zip(sides, cores, strict=True))
            ]
        )
        centres = self.regions.reindex(columns=[*"xyz"]).to_numpy(float)
        mirrored_centres = centres[counterparts] * [-1, 1, 1]
        distances = np.linalg.norm(centres - mirrored_centres, axis=1)
        is_distant = distances > _MAX_MIRROR_DISTANCE
        return np.where(is_distant, np.arange(len(self)), counterparts)

    @cached_property
    def _spellings(self) -> dict[tuple[str | None, str], int | None]:
        """Row by (side or None, core) and by ("", name); None if it is ambiguous.

        A name in reports is a spelling, too, unless it is a name of another region.
        """
        row_of_name: dict[tuple[str | None, str], int | None] = {}
        sides = self.regions["hemisphere"]
        for row, (name, side) in enumerate(zip(self.names, sides, strict=True)):
            name_side, core = split_name(name)
            if name_side not in (None, side):
                # On the midline, a letter such as L is part of the name and not a side.
                core = "".join(filter(str.isalnum, name.lower()))
            for key in ((side, core), (None, core), ("", name)):
                row_of_name[key] = None if key in row_of_name else row
        row_of_text: dict[tuple[str | None, str], int | None] = {}
        if "long_name" in self.regions:
            for texts in (self.regions["long_name"].astype(str), self.full_names):
                rows = pd.Series(range(len(self)), texts)
                unique_rows = rows[~rows.index.duplicated(keep=False)]
                row_of_text |= {("", text): row for text, row in unique_rows.items()}
        return row_of_text | row_of_name

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
        row = None if hemisphere else self._spellings.get(("", as_text(name)))
        if row is not None:
            return row
        name_side, core = split_name(name)
        if name_side and hemisphere and name_side != hemisphere:
            return None
        return self._spellings.get((name_side or hemisphere, core))

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
        brainlsap.exceptions.RegionNameError: 1 of 2 names unknown to atlas desikan82:
        'lh_insulla' (nearest: ctx-lh-insula). ...
        """
        texts = [as_text(name) for name in names]
        unknown_names: list[str] = []
        spellings_of_row: dict[int, list[str]] = {}
        for text in texts:
            row = self.find(text, hemisphere)
            if row is None:
                unknown_names.append(text)
            else:
                spellings_of_row.setdefault(row, []).append(text)
        if unknown_names:
            raise self._unknown_names_error(unknown_names, texts, hemisphere)
        repeated_regions = [
            f"{self.names[row]} as {', '.join(map(repr, spellings))}"
            for row, spellings in spellings_of_row.items()
            if len(spellings) > 1
        ]
        if repeated_regions:
            raise RegionNameError(
                f"{len(repeated_regions)} of the regions of atlas {self.name} came "
                f"more than once: {listed(repeated_regions, 5)}. Keep one name per "
                "region."
            )
        return np.array([*spellings_of_row], dtype=int)

    def _unknown_names_error(
        self, unknown_names: list[str], names: list[str], hemisphere: str | None
    ) -> RegionNameError:
        """Return an error on unknown names, with the nearest, or another atlas."""
        atlas_name = self.other_atlas(names)
        if atlas_name:
            return RegionNameError(
                f"The names are those of {atlas_name}, not of {self.name}.",
                values={"atlas": atlas_name},
            )
        texts = list(unknown_names)
        for i, name in enumerate(unknown_names[:5]):
            nearest = nearest_names(name, self.names, hemisphere)
            texts[i] = f"{name!r} (nearest: {', '.join(nearest) or 'none'})"
        description = (
            f"unknown to atlas {self.name}: {listed(texts, 5)}. Give each region with "
            f"its side, for example {self.names[0]!r}, or name another atlas=."
        )
        return RegionNameError(
            f"{len(unknown_names)} of {len(names)} names {description}",
            values={
                "n_unknown": len(unknown_names),
                "n_names": len(names),
                "description": description,
            },
        )

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
        rows = self.match(names)
        missing = [name for row, name in enumerate(self.names) if row not in rows]
        if missing:
            raise RegionNameError(
                f"{len(missing)} of the {len(self)} regions of {self.name} are "
                f"missing: {listed(missing, 5)}. Write NaN where nothing is known."
            )
        return rows

    def other_atlas(self, names: Sequence[str | bytes]) -> str | None:
        """Return an available atlas that knows more of the names than this one."""

        def count_cortex(atlas: Atlas) -> int:
            rows = [row for name in names if (row := atlas.find(name)) is not None]
            return int(atlas.cortex[rows].sum())

        best = max(map(load_atlas, available_atlases()), key=count_cortex)
        n_required = max(_MIN_KNOWN_NAMES, count_cortex(self) + 1)
        return best.name if count_cortex(best) >= n_required else None

    def rows(
        self, names: Iterable[str | bytes], hemisphere: str | None = None
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the row of each region in a file, and the names that were dropped.

        Parameters
        ----------
        names : iterable of str or bytes
            Names of the file's rows. Names that atlases leave out on purpose (medial
            wall, cerebellum, totals of FreeSurfer's tables ...) are dropped. If all are
            whole numbers, they are FreeSurfer's labels.
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
        return _find_rows(self, tuple(names), hemisphere)

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
        path = path or Path(self.folder or self.name, f"{hemisphere.lower()}h.annot")
        name_of_vertex, names = read_annotation(path)
        try:
            rows, _ = self.rows(names, hemisphere)
        except RegionNameError as error:
            raise FileFormatError(error.message, path=path) from error
        # The last entry serves index -1: vertices without a name.
        region_of_name = np.full(len(names) + 1, -1)
        region_of_name[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
        return region_of_name[name_of_vertex]

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
        mesh_of_row = {}
        for path in folder.glob("*.surf.gii"):
            row = self.find(path.name.removesuffix(".surf.gii"))
            if row is not None:
                mesh_of_row[row] = read_mesh(path)
        return {self.names[row]: mesh_of_row[row] for row in sorted(mesh_of_row)}


def _coordinates_by_name(atlas: Atlas, table: pd.DataFrame) -> pd.DataFrame:
    """Return x, y, z of every region, by position if the index only counts rows."""
    is_counted = are_counts([*map(str, table.index)])
    coordinates = table[[*"xyz"]] if {*"xyz"} <= {*table} else table
    numeric_table = table if is_counted else coordinates
    text_columns = numeric_table.select_dtypes(exclude="number").columns
    if len(text_columns):
        raise ParameterError(
            "coordinates of a table are read by its index, which must be the names of "
            "the regions, beside numbers x, y, z: try "
            f".set_index({text_columns[0]!r})."
        )
    if is_counted:
        return coordinates
    return coordinates.iloc[atlas.match_all(table.index).argsort()]


@lru_cache(maxsize=128)  # the files of a cohort repeat one list of names
def _find_rows(
    atlas: Atlas, names: tuple[str | bytes, ...], hemisphere: str | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return what :meth:`Atlas.rows` does."""
    texts = [as_text(name) for name in names]
    region_names = texts
    if texts and all(map(str.isdecimal, texts)):
        labels = atlas.regions["freesurfer_id"].astype(str)
        name_of_label = dict(zip(labels, atlas.names, strict=True))
        region_names = [name_of_label.get(text, "Unknown") for text in texts]
    file_rows = [
        file_row
        for file_row, name in enumerate(region_names)
        if not is_outside(name) or atlas.find(name, hemisphere) is not None
    ]
    rows = np.full(len(atlas.names), -1)
    rows[atlas.match([region_names[i] for i in file_rows], hemisphere)] = file_rows
    rows.flags.writeable = False
    dropped_names = [text for i, text in enumerate(texts) if i not in file_rows]
    return rows, tuple(dropped_names)


AtlasSource = str | Path | Atlas | Sequence[str]
"""What :func:`load_atlas` accepts."""


@lru_cache(maxsize=1)
def available_atlases() -> tuple[str, ...]:
    """Return the names of the atlases that come with the package.

    Returns
    -------
    tuple of str
        Names that :func:`load_atlas` accepts.
    """
    tables = _BUNDLED.glob("*/regions.tsv")
    return tuple(sorted(table.parent.name for table in tables))


def load_atlas(name: AtlasSource) -> Atlas:
    """Load a region set by name, or a user-defined one from its table.

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
    path = Path(str(name)).expanduser()
    table_path = path / "regions.tsv" if path.is_dir() else path
    if not table_path.is_file():
        raise ParameterError(
            f"atlas must be one of {', '.join(available_atlases())}, a regions.tsv, "
            f"names of regions, or a folder made by {_ATLAS_COMMAND}; "
            f"got {str(name)!r}."
        )
    return _read_atlas(table_path)


def _read_atlas(path: Path) -> Atlas:
    folder = path.parent
    with reading(
        path, f"a tab-separated table of regions ({_ATLAS_COMMAND} makes one)"
    ):
        table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
        table.columns = table.columns.str.lower()
    is_folder = path.name == "regions.tsv"
    name = folder.resolve().name if is_folder else path.stem
    atlas = Atlas(name, complete_regions(table, str(path)), folder)
    settings_path = folder / "atlas.json"
    if not (is_folder and settings_path.is_file()):
        return atlas
    n_cortex = int(atlas.cortex.sum())
    return replace(atlas, settings=read_settings(settings_path, n_cortex))


_read_bundled_atlas = lru_cache(maxsize=32)(_read_atlas)


def find_sides(table: pd.DataFrame) -> list[str]:
    """Return the sides of regions from their names, or else from their coordinates."""
    x = pd.to_numeric(table.reindex(columns=["x"])["x"], errors="coerce")
    is_left = x < -_MIDLINE_WIDTH
    is_right = x > _MIDLINE_WIDTH
    sides_by_x = np.select([is_left, is_right], ["L", "R"], "M").tolist()
    return [
        split_name(name)[0] or side_by_x
        for name, side_by_x in zip(table["name"], sides_by_x, strict=True)
    ]


def _find_structures(table: pd.DataFrame) -> list[str]:
    """Return structures from names, long names or FreeSurfer's labels."""
    columns = table.reindex(columns=["long_name", "freesurfer_id"])
    columns = columns.astype(object).fillna("").map(str)
    structures = list[str]()
    for name, long_name, label in zip(
        table["name"], *columns.T.to_numpy(), strict=True
    ):
        structure = find_structure(name)
        if structure != "subcortex":
            structure_of_long_name = find_structure(long_name)
            if structure_of_long_name != "unknown":
                structure = structure_of_long_name
        is_on_surface = name[:2].lower() in ("lh", "rh")
        if is_on_surface and _CORTEX_LABELS.fullmatch(label):
            structure = "cortex"
        structures.append(structure)
    return structures


def complete_regions(
    table: pd.DataFrame,
    source: str,
    error_type: type[BrainlsapError] = FileFormatError,
) -> pd.DataFrame:
    """Check a table of regions, and fill its missing columns.

    `source` is the file or argument that messages name.
    """
    if not {"name", "hemisphere"} <= set(table) or table.empty:
        raise error_type(
            f"{source}: expected the columns name and hemisphere, separated by tabs, "
            f"and a row for every region; got {len(table)} rows of "
            f"{', '.join(map(repr, table.columns))}."
        )
    original = table
    names = table["name"].str.strip()
    table = table.assign(name=names)
    sides = _read_sides(table)
    defaults = {
        "structure": _find_structures(table),
        "annot_name": names.map(bare_name),
        **dict.fromkeys(("long_name", "short_name"), names),
        **dict.fromkeys(("freesurfer_id", "lobe", *"xyz"), "n/a"),
    }
    absent = {name: column for name, column in defaults.items() if name not in table}
    table = table.assign(hemisphere=sides, **absent)
    cells = table[["freesurfer_id", *"xyz"]].astype(object)
    cells = cells.replace(r"(?i)^\s*(n/?a|nan)?\s*$", np.nan, regex=True)
    numbers = cells.apply(pd.to_numeric, errors="coerce")
    for column, expected, is_wrong in _find_wrong_cells(table, cells, numbers):
        if is_wrong.any():
            rows = np.flatnonzero(is_wrong)
            regions = [f"{names.iloc[row]!r} (row {row + 1})" for row in rows]
            raise error_type(
                f"{source}: {column} of {listed(regions, 5)} must be {expected}, "
                f"got {original[column].tolist()[rows[0]]!r}."
            )
    table = table.assign(**numbers)
    table["freesurfer_id"] = numbers["freesurfer_id"].fillna(-1).astype(int)
    own_columns = [name for name in table if name not in (*REGION_COLUMNS, "index")]
    return table[[*REGION_COLUMNS, *own_columns]]


def _read_sides(table: pd.DataFrame) -> pd.Series:
    """Return "L", "R" or "M" of every region, None for a text that is none of them.

    Empty cells are filled from names and coordinates.
    """
    texts = table["hemisphere"].str.strip().str.lower()
    is_empty = texts.isin(("", "n/a"))
    texts = texts.mask(is_empty, find_sides(table)).str.lower()
    return texts.map(lambda text: _SIDE_OF_WORD.get(text) or find_side(str(text)))


def _find_wrong_cells(
    table: pd.DataFrame, cells: pd.DataFrame, numbers: pd.DataFrame
) -> Iterator[tuple[str, str, pd.Series]]:
    """Yield checks of a table of regions: column, expected value, which rows fail.

    `cells` are the numeric columns, NaN if empty; `numbers` the same as numbers, NaN if
    they are not.
    """
    names = table["name"]
    sides = table["hemisphere"]
    name_sides = names.map(lambda name: split_name(name)[0])
    yield "name", "a text", names == ""
    is_repeated = names.str.lower().duplicated(keep=False)
    yield "name", "that of no other, also in another case", is_repeated
    yield "hemisphere", "L, R or M (midline)", sides.isna()
    is_other_side = name_sides.notna() & (name_sides != sides) & (sides != "M")
    yield "hemisphere", "the side that its name says", is_other_side
    is_unknown_structure = ~table["structure"].isin(STRUCTURES)
    yield "structure", "cortex or subcortex, or unknown", is_unknown_structure
    for column in cells:
        is_text = numbers[column].isna() & cells[column].notna()
        yield column, "a number or n/a", is_text
    labels = numbers["freesurfer_id"].fillna(-1)
    is_repeated_label = (labels > 0) & labels.duplicated()
    yield (
        "freesurfer_id",
        "a whole number that no other region has, or n/a",
        (labels != labels.round()) | is_repeated_label,
    )
    for axis, (lowest, highest) in _BRAIN_BOUNDS.items():
        yield (
            axis,
            "inside of the brain in MNI152, in mm (is the affine of the image right?)",
            ~numbers[axis].fillna(0).between(lowest, highest),
        )
    is_crossed = numbers["x"] * sides.map({"L": 1, "R": -1}) > _MIDLINE_WIDTH
    yield "x", "on the side of its name (image flipped, names exchanged?)", is_crossed
