"""The atlas: regions in order, the spellings of their names, where they lie."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

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
from brainlsap.atlas.surfaces import read_annotation, read_mesh
from brainlsap.exceptions import (
    BrainlsapError,
    FileFormatError,
    ParameterError,
    RegionNameError,
    check_choice,
    listed,
    reading,
)

COLUMNS = (
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
# Regions whose structure is unknown count with the cortex.
STRUCTURES = ("cortex", "subcortex", "unknown")
# FreeSurfer's label numbers of the cortex in both of its parcellations.
_CORTEX_LABELS = re.compile(r"[12]0\d\d|1[12]1\d\d")
_SIDES = HEMISPHERE_WORDS | dict.fromkeys(("m", "midline", "both", "bilateral"), "M")
# The atlases that come with the package: of an installation, else of a checkout.
_PACKAGE = Path(__file__).resolve().parents[1]
_BUNDLED = _PACKAGE / "_atlases"
_BUNDLED = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parent / "atlases"
# Regions within so many mm of x = 0 lie on the midline, or on the side that they say.
_MIDLINE = 3.0
# Between these lie the centres of all regions of the brain in MNI152, in mm.
_BRAIN = {"x": (-80, 80), "y": (-115, 80), "z": (-80, 90)}
# mm between a region and the mirror image of that on the other side (measured: 12).
_FARTHEST_MIRROR = 20
_MADE_BY = "brainlsap atlas NAME --labels FILE --image FILE"
# Cortical names that another atlas must know to be suggested.
_FEWEST_OF_OTHER = 20


@dataclass(frozen=True, eq=False)
class Atlas:
    """A region set: names in order, and where the regions lie.

    Parameters
    ----------
    name : str
        For example "destrieux160".
    regions : DataFrame
        One row per region in atlas order; columns `name`, `freesurfer_id` (-1 if
        none), `hemisphere` ("L", "R"; "M" on the midline), `structure` ("cortex",
        "subcortex", or "unknown"), `annot_name`, `long_name`, `lobe`, `short_name`,
        and centroid `x`, `y`, `z` in mm (NaN if not known).
    folder : Path or None
        Folder of the surface files; None for names alone.
    settings : dict
        What its `atlas.json` says about the files of tools; empty without one.

    Attributes
    ----------
    names, short_names, full_names : tuple of str
        `ctx_rh_G_precuneus`; `(R) G.precuneus`, as the paper's tables print it;
        `right precuneus`, as a text or a table for readers says it. Names of one's
        own stay as they are written.
    coordinates : array of shape (n_rois, 3)
        Centroids in mm, MNI152; NaN where not known.
    cortex : bool array of shape (n_rois,)
        Which regions count as cortex: all that are not known to lie below it.
    homotopic : int array of shape (n_rois,)
        Position of the same region on the other side; its own where there is none.
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
    settings: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def from_names(
        names: Sequence[str],
        hemispheres: Sequence[str] | None = None,
        coordinates: np.ndarray | pd.DataFrame | None = None,
        *,
        name: str = "own",
    ) -> "Atlas":
        """Make a region set of names alone; everything but surfaces works with it.

        Parameters
        ----------
        names : sequence of str, length n_rois
            Different names, in the order of the arrays.
        hemispheres : sequence of {"L", "R", "M"}, optional
            Sides of the regions. By default their names say them (`Precentral_L`), or
            the coordinates; a region of which neither does lies on the midline (M).
        coordinates : array of shape (n_rois, 3) or DataFrame, optional
            Centroids x, y, z in mm (MNI152), for drawing; of an array in the order of
            `names`. A mapping, or a DataFrame with the names as index, is read by name.
        name : str
            Of the atlas.

        Raises
        ------
        ParameterError
            Where there are no names, a name stands twice, or coordinates are of
            another shape or unit, or in a DataFrame that does not name the regions.
        RegionNameError
            Where coordinates are of an unknown region, or lack one.

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
            found = Atlas.from_names(names, hemispheres)
            coordinates = _coordinates_by_name(found, coordinates)
        places = np.asarray(coordinates, dtype=float)
        known, shape = np.abs(places[~np.isnan(places)]), (len(names), 3)
        if places.shape != shape or (known.size and not 20 <= known.max() <= 150):
            raise ParameterError(
                f"coordinates must have shape {shape} and be mm of MNI152, the largest "
                f"20 to 150; got {places.shape}, up to {known.max(initial=0):g}."
            )
        table = pd.DataFrame(places, columns=[*"xyz"]).assign(name=names)
        sides = find_sides(table) if hemispheres is None else list(hemispheres)
        table["hemisphere"] = sides
        return Atlas(name, complete_regions(table, "names", ParameterError))

    def __len__(self) -> int:
        return len(self.regions)

    def __repr__(self) -> str:
        return f"Atlas({self.name!r}, {len(self)} regions)"

    def _repr_html_(self) -> str:
        known = np.isfinite(self.coordinates).all(axis=1).sum()
        facts = {
            "regions": f"{len(self)}, {self.count_structures()}",
            "coordinates": f"of {known} regions" if known else "not known",
            "surfaces": "yes" if self.has_surfaces else "no",
        }
        return pd.Series(facts, dtype=object).to_frame(f"Atlas {self.name}").to_html()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the regions, in atlas order."""
        return tuple(self.regions["name"])

    @property
    def short_names(self) -> tuple[str, ...]:
        """Names as the paper's tables print them, such as `(L) Sub.put`."""
        return tuple(self.regions["short_name"])

    @cached_property
    def full_names(self) -> tuple[str, ...]:
        """Names for readers, such as `left amygdala`; own names as they are written."""
        names, texts = self.regions["name"], self.regions["long_name"]
        lower = texts.str.replace(r"\s*\([^)]*\)", "", regex=True).str.replace(
            "^[A-Z](?=[a-z][^A-Z']*$)", lambda first: first[0].lower(), regex=True
        )
        texts = texts.where(texts == names, lower)
        sides = self.regions["hemisphere"].map({"L": "left ", "R": "right "}).fillna("")
        has_side = [split_name(text)[0] is not None for text in texts]
        return tuple(texts.where(has_side, sides + texts))

    @cached_property
    def coordinates(self) -> np.ndarray:
        """Centroids in mm, MNI152, shape (n_rois, 3); NaN where not known."""
        places = self.regions[["x", "y", "z"]].to_numpy(float)
        if self.settings.get("space") == "MNI305":
            return places @ _MNI305_TO_MNI152[:, :3].T + _MNI305_TO_MNI152[:, 3]
        return places

    @property
    def has_surfaces(self) -> bool:
        """Whether the cortex can be drawn."""
        return self.folder is not None and (self.folder / "lh.annot").is_file()

    @cached_property
    def cortex(self) -> np.ndarray:
        """Which regions count as cortex: bool array of shape (n_rois,).

        Those whose structure is unknown do.
        """
        return (self.regions["structure"] != "subcortex").to_numpy()

    @cached_property
    def is_unknown(self) -> np.ndarray:
        """Which regions are not known to be cortex: bool array of shape (n_rois,)."""
        return (self.regions["structure"] == "unknown").to_numpy()

    def count_structures(self) -> str:
        """Return how many regions are of which structure, in words."""
        n_regions = self.regions["structure"].value_counts().reindex(STRUCTURES)
        words = ("cortical", "subcortical", "of unknown structure")
        counts = zip(n_regions.fillna(0).astype(int), words, strict=True)
        return ", ".join(f"{number} {word}" for number, word in counts if number)

    @cached_property
    def homotopic(self) -> np.ndarray:
        """Position of the same region on the other side; its own where none is.

        Such regions share a name and, where it is known, their place: parcels that
        are counted on each side may be far from each other's mirror image.
        """
        sides = self.regions["hemisphere"]
        cores = [split_name(name)[1] for name in self.names]
        rows = {key: row for row, key in enumerate(zip(sides, cores, strict=True))}
        facing = sides.map({"L": "R", "R": "L", "M": "M"})
        mirrored = enumerate(zip(facing, cores, strict=True))
        other = np.array([rows.get(key, row) for row, key in mirrored])
        places = self.regions.reindex(columns=[*"xyz"]).to_numpy(float)
        gap = np.linalg.norm(places - places[other] * [-1, 1, 1], axis=1)
        return np.where(gap > _FARTHEST_MIRROR, np.arange(len(self)), other)

    @cached_property
    def _spellings(self) -> dict[tuple[str | None, str], int | None]:
        """Region by (side or None, core) and ("", name); None where it is not one.

        What reports call a region is a name, too, where it is no name of another.
        """
        found: dict[tuple[str | None, str], int | None] = {}
        sides = self.regions["hemisphere"]
        for row, (name, side) in enumerate(zip(self.names, sides, strict=True)):
            said, core = split_name(name)
            if said not in (None, side):
                # on the midline such a letter is part of the name, not a side
                core = "".join(filter(str.isalnum, name.lower()))
            for key in ((side, core), (None, core), ("", name)):
                found[key] = None if key in found else row
        spare: dict[tuple[str | None, str], int | None] = {}
        if "long_name" in self.regions:
            for texts in (self.regions["long_name"].astype(str), self.full_names):
                which = pd.Series(range(len(self)), texts)
                alone = which[~which.index.duplicated(keep=False)]
                spare |= {("", text): row for text, row in alone.items()}
        return spare | found

    def find(self, name: str | bytes, hemisphere: str | None = None) -> int | None:
        """Return the position of one region, whatever the spelling of its name.

        Parameters
        ----------
        name : str or bytes
            In any tool's spelling, the paper's short name, or one of `full_names`.
        hemisphere : {"L", "R"} or None
            The side of the file that the name stands in, for names that do not say.

        Returns
        -------
        int or None
            None if the name is unknown, says the other side than `hemisphere`, or
            could be more than one region.

        Examples
        --------
        >>> atlas = load_atlas("desikan82")
        >>> atlas.find("lh_bankssts"), atlas.find("bankssts", "R")
        (0, 34)
        """
        row = None if hemisphere else self._spellings.get(("", as_text(name)))
        if row is not None:
            return row
        said, core = split_name(name)
        if said and hemisphere and said != hemisphere:
            return None
        return self._spellings.get((said or hemisphere, core))

    def match(
        self, names: Iterable[str | bytes], hemisphere: str | None = None
    ) -> np.ndarray:
        """Return the position of every name.

        Parameters
        ----------
        names : iterable of str or bytes
            In any tool's spelling, each region at most once.
        hemisphere : {"L", "R"} or None
            The side of the file that the names stand in, if it is of one side.

        Returns
        -------
        int array of shape (n_names,)

        Raises
        ------
        RegionNameError
            If names are unknown (with the nearest, or the atlas that they are of), or
            two names are the same region.

        Examples
        --------
        >>> load_atlas("desikan82").match(["lh_bankssts", "lh_insulla"])
        Traceback (most recent call last):
        brainlsap.exceptions.RegionNameError: 1 of 2 names unknown to atlas desikan82:
        'lh_insulla' (nearest: ctx-lh-insula). ...
        """
        spelt: dict[int | None, list[str]] = {}
        texts = [as_text(name) for name in names]
        for text in texts:
            spelt.setdefault(self.find(text, hemisphere), []).append(text)
        unknown = spelt.pop(None, [])
        if unknown and (other := self.other_atlas(texts)):
            raise RegionNameError(
                f"The names are those of {other}, not of {self.name}.",
                values={"atlas": other},
            )
        if unknown:
            shown = [
                f"{name!r} (nearest: {', '.join(near) or 'none'})"
                for name in unknown[:5]
                for near in [nearest_names(name, self.names, hemisphere)]
            ]
            description = (
                f"unknown to atlas {self.name}: {listed(shown + unknown[5:], 5)}. "
                f"Give each region with its side, such as {self.names[0]!r}, or name "
                "another atlas=."
            )
            raise RegionNameError(
                f"{len(unknown)} of {len(texts)} names {description}",
                values={
                    "n_unknown": len(unknown),
                    "n_names": len(texts),
                    "description": description,
                },
            )
        shown = [
            f"{self.names[row]} as {', '.join(map(repr, known))}"
            for row, known in spelt.items()
            if row is not None and len(known) > 1
        ]
        if shown:
            raise RegionNameError(
                f"{len(shown)} of the regions of atlas {self.name} came more than "
                f"once: {listed(shown, 5)}. Keep one name per region."
            )
        return np.array([*spelt], dtype=int)  # each once, in their order

    def match_all(self, names: Iterable[str | bytes]) -> np.ndarray:
        """Return the position of every name, as :meth:`match`, of names of all regions.

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
            As :meth:`match`, and where a region is missing.
        """
        rows = self.match(names)
        if missing := [n for i, n in enumerate(self.names) if i not in rows]:
            raise RegionNameError(
                f"{len(missing)} of the {len(self)} regions of {self.name} are "
                f"missing: {listed(missing, 5)}. Write NaN where nothing is known."
            )
        return rows

    def other_atlas(self, names: Sequence[str | bytes]) -> str | None:
        """Return the available atlas that knows more of the names than this one."""

        def count_cortex(atlas: Atlas) -> int:
            rows = [row for name in names if (row := atlas.find(name)) is not None]
            return int(atlas.cortex[rows].sum())

        best = max(map(load_atlas, available_atlases()), key=count_cortex)
        fewest = max(_FEWEST_OF_OTHER, count_cortex(self) + 1)
        return best.name if count_cortex(best) >= fewest else None

    def rows(
        self, names: Iterable[str | bytes], hemisphere: str | None = None
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return where each region stands in a file, and the names that were dropped.

        Parameters
        ----------
        names : iterable of str or bytes
            Of the file's rows. Names that atlases leave out on purpose (medial wall,
            cerebellum, sums of FreeSurfer's tables ...) are dropped. Where all are
            whole numbers, they are FreeSurfer's labels.
        hemisphere : {"L", "R"} or None
            The side of the file, if it is of one side.

        Returns
        -------
        rows : int array of shape (n_rois,)
            Position in the file, -1 for a region that the file does not have.
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
            Annotation of another surface, such as a subject's; by default that of the
            atlas, on fsaverage5.

        Returns
        -------
        int array of shape (n_vertices,)
            Position of the region in the atlas; -1 where there is none.

        Raises
        ------
        ParameterError
            If `hemisphere` is neither L nor R.
        FileFormatError
            If the atlas has no surface labels, or they name an unknown region.
        """
        check_choice("hemisphere", hemisphere, ("L", "R"))
        path = path or Path(self.folder or self.name, f"{hemisphere.lower()}h.annot")
        codes, labels = read_annotation(path)
        try:
            rows, _ = self.rows(labels, hemisphere)
        except RegionNameError as error:
            raise FileFormatError(error.message, path=path) from error
        places = np.full(len(labels) + 1, -1)  # the last one answers code -1: no label
        places[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
        return places[codes]

    def meshes(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the surfaces of the subcortical regions.

        Files are those of the atlas' folder `meshes`, each named by its region
        (`Left-Putamen.surf.gii`); without one, those that come with the package.

        Returns
        -------
        dict
            From region name to `(vertices, faces)`: float array (n_vertices, 3) in
            mm (surface RAS of fsaverage) and int array (n_faces, 3). Regions
            without a file are missing.

        Raises
        ------
        FileFormatError
            If a file is no GIFTI surface.
        """
        if self.folder is None:
            return {}
        own, found = self.folder / "meshes", {}
        folder = own if own.is_dir() else _BUNDLED / "subcortex"
        for path in folder.glob("*.surf.gii"):
            row = self.find(path.name.removesuffix(".surf.gii"))
            if row is not None:
                found[row] = read_mesh(path)
        return {self.names[row]: found[row] for row in sorted(found)}


def _coordinates_by_name(atlas: Atlas, given: pd.DataFrame) -> pd.DataFrame:
    """Return x, y, z of every region; by position where an index only counts."""
    is_counted = are_counts([*map(str, given.index)])
    places = given[[*"xyz"]] if {*"xyz"} <= {*given} else given
    texts = (given if is_counted else places).select_dtypes(exclude="number").columns
    if len(texts):
        raise ParameterError(
            "coordinates of a table are read by its index, which must be the names of "
            f"the regions, beside numbers x, y, z: try .set_index({texts[0]!r})."
        )
    if is_counted:
        return places
    return places.iloc[atlas.match_all(given.index).argsort()]


@lru_cache(maxsize=128)  # files of a cohort repeat one list of names
def _find_rows(
    atlas: Atlas, names: tuple[str | bytes, ...], hemisphere: str | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    texts = spelt = [as_text(name) for name in names]
    if texts and all(map(str.isdecimal, texts)):
        labels = atlas.regions["freesurfer_id"].astype(str)
        known = dict(zip(labels, atlas.names, strict=True))
        spelt = [known.get(text, "Unknown") for text in texts]
    kept = [
        i
        for i, one in enumerate(spelt)
        if not is_outside(one) or atlas.find(one, hemisphere) is not None
    ]
    rows = np.full(len(atlas.names), -1)
    rows[atlas.match([spelt[i] for i in kept], hemisphere)] = kept
    rows.flags.writeable = False
    return rows, tuple(text for i, text in enumerate(texts) if i not in kept)


@lru_cache(maxsize=1)
def available_atlases() -> tuple[str, ...]:
    """Return the names of the atlases that come with the package.

    Returns
    -------
    tuple of str
        Names that :func:`load_atlas` takes.
    """
    return tuple(sorted(p.parent.name for p in _BUNDLED.glob("*/regions.tsv")))


def load_atlas(name: str | Path | Atlas | Sequence[str]) -> Atlas:
    """Load a region set by name, or a user's own from its table.

    Parameters
    ----------
    name : str, Path, Atlas or sequence of str
        One of :func:`available_atlases`; or the path of a tab-separated table of
        regions, or of a folder that holds it as `regions.tsv`
        (:func:`.make_atlas` makes one). The table needs the columns `name` and
        `hemisphere` (L, R, or M for the midline); further columns are those of
        :class:`Atlas` and are filled where absent. Beside it, `lh.annot`, `rh.annot`
        (fsaverage5) and `meshes/<name>.surf.gii` are used for drawing, and
        `atlas.json` for what tools call the atlas. An `Atlas` is returned as it is, of
        a cohort its own; of names alone :meth:`Atlas.from_names` makes one.

    Returns
    -------
    Atlas

    Raises
    ------
    ParameterError
        If there is no such atlas and no such file.
    FileFormatError
        If the table cannot be read, lacks a column, is empty, or has a wrong value,
        such as one name for two regions.

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
        return _read_once(_BUNDLED / str(name) / "regions.tsv")
    path = Path(str(name)).expanduser()
    table = path / "regions.tsv" if path.is_dir() else path
    if not table.is_file():
        raise ParameterError(
            f"atlas must be one of {', '.join(available_atlases())}, a regions.tsv, "
            f"names of regions, or a folder made by {_MADE_BY}; got {str(name)!r}."
        )
    return _read_atlas(table)


def _read_atlas(path: Path) -> Atlas:
    folder, settings = path.parent, {}
    with reading(path, f"a tab-separated table of regions ({_MADE_BY} makes one)"):
        table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
        table.columns = table.columns.str.lower()
    if path.name == "regions.tsv" and (folder / "atlas.json").is_file():
        with reading(folder / "atlas.json", "JSON"):
            settings = json.loads((folder / "atlas.json").read_text(encoding="utf-8"))
    title = folder.resolve().name if path.name == "regions.tsv" else path.stem
    return Atlas(title, complete_regions(table, str(path)), folder, settings)


_read_once = lru_cache(maxsize=32)(_read_atlas)


def find_sides(table: pd.DataFrame) -> list[str]:
    """Return the sides that names say, or else their places, if there are any."""
    x = pd.to_numeric(table.reindex(columns=["x"])["x"], errors="coerce")
    side = np.select([x < -_MIDLINE, x > _MIDLINE], ["L", "R"], "M").tolist()
    return [split_name(n)[0] or s for n, s in zip(table["name"], side, strict=True)]


def _find_structures(table: pd.DataFrame) -> list[str]:
    """Return the structures that names, long names or FreeSurfer's numbers say."""
    columns = table.reindex(columns=["long_name", "freesurfer_id"])
    columns = columns.astype(object).fillna("").map(str)
    structures = list[str]()
    for name, long_name, number in zip(
        table["name"], *columns.T.to_numpy(), strict=True
    ):
        structure = find_structure(name)
        if structure != "subcortex":
            in_full = find_structure(long_name)
            structure = in_full if in_full != "unknown" else structure
        is_on_surface = name[:2].lower() in ("lh", "rh")
        if is_on_surface and _CORTEX_LABELS.fullmatch(number):
            structure = "cortex"
        structures.append(structure)
    return structures


def complete_regions(
    given: pd.DataFrame, where: str, refusal: type[BrainlsapError] = FileFormatError
) -> pd.DataFrame:
    """Check a table of regions, and fill what it does not say."""
    if not {"name", "hemisphere"} <= set(given) or given.empty:
        raise refusal(
            f"{where}: expected the columns name and hemisphere, separated by tabs, "
            f"and a row for every region; got {len(given)} rows of "
            f"{', '.join(map(repr, given.columns))}."
        )
    names = given["name"].str.strip()
    sides = given["hemisphere"].str.strip().str.lower()
    own = find_sides(given.assign(name=names))  # where a table leaves it out
    sides = sides.mask(sides.isin(("", "n/a")), own).str.lower()
    sides = sides.map(lambda word: _SIDES.get(word) or find_side(str(word)))
    parts = pd.DataFrame(map(split_name, names), columns=["side", "core"])
    usual = {
        "structure": _find_structures(given.assign(name=names)),
        "annot_name": names.map(bare_name),
        **dict.fromkeys(("long_name", "short_name"), names),
        **dict.fromkeys(("freesurfer_id", "lobe", *"xyz"), "n/a"),
    }
    table = given.assign(**{k: v for k, v in usual.items() if k not in given})
    cells = table[["freesurfer_id", *"xyz"]].astype(object)
    cells = cells.replace(r"(?i)^\s*(n/?a|nan)?\s*$", np.nan, regex=True)
    numbers = cells.apply(pd.to_numeric, errors="coerce")
    labels = numbers["freesurfer_id"].fillna(-1)
    no_whole = (labels != labels.round()) | ((labels > 0) & labels.duplicated())
    other_side = parts["side"].notna() & (parts["side"] != sides) & (sides != "M")
    is_crossed = numbers["x"] * sides.map({"L": 1, "R": -1}) > _MIDLINE
    near = "inside of the brain in MNI152, in mm (is the affine of the image right?)"
    is_again = names.str.lower().duplicated(keep=False)
    no_structure = ~table["structure"].isin(STRUCTURES)
    wrong = [
        ("name", "a text", names == ""),
        ("name", "that of no other, also in another case", is_again),
        ("hemisphere", "L, R or M (midline)", sides.isna()),
        ("hemisphere", "the side that its name says", other_side),
        ("structure", "cortex or subcortex, or unknown", no_structure),
        *((c, "a number or n/a", numbers[c].isna() & cells[c].notna()) for c in cells),
        ("freesurfer_id", "a whole number that no other region has, or n/a", no_whole),
        *((c, near, ~numbers[c].fillna(0).between(*_BRAIN[c])) for c in _BRAIN),
        ("x", "on the side of its name (image flipped, names exchanged?)", is_crossed),
    ]
    for column, expected, is_wrong in wrong:
        if is_wrong.any():
            rows = np.flatnonzero(is_wrong)
            shown = listed([f"{names[i]!r} (row {i + 1})" for i in rows], 5)
            raise refusal(
                f"{where}: {column} of {shown} must be {expected}, "
                f"got {given[column].tolist()[rows[0]]!r}."
            )
    table = table.assign(name=names, hemisphere=sides, **numbers)
    table["freesurfer_id"] = labels.astype(int)
    return table[[*COLUMNS, *(c for c in table if c not in (*COLUMNS, "index"))]]
