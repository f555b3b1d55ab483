"""Region sets with names: which regions, in which order, where they lie."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.data.atlas_surfaces import read_meshes, read_vertex_labels
from brainlsap.data.region_messages import doubled_message, unknown_message
from brainlsap.data.region_names import as_text, is_outside, split_name
from brainlsap.data.region_tables import read_regions
from brainlsap.exceptions import ParameterError, RegionNameError

__all__ = ["Atlas", "available_atlases", "bundled_atlases", "is_outside", "load_atlas"]


@dataclass(frozen=True, eq=False)
class Atlas:
    """A region set: names in order, and where the regions lie.

    Parameters
    ----------
    name : str
        For example "destrieux160".
    regions : DataFrame
        One row per region in atlas order; columns `name`, `freesurfer_id` (-1 if
        none), `hemisphere` ("L", "R"; "M" on the midline), `structure` ("cortex" or
        "subcortex"), `annot_name`, `long_name`, `lobe`, `short_name`, and centroid
        `x`, `y`, `z` in mm (NaN if not known).
    folder : Path or None
        Folder of the surface files; None for a table of names alone.

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

    def __len__(self) -> int:
        return len(self.regions)

    def __repr__(self) -> str:
        return f"Atlas({self.name!r}, {len(self)} regions)"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the regions, in atlas order."""
        return tuple(self.regions["name"])

    @property
    def short_names(self) -> tuple[str, ...]:
        """Names as the paper's tables print them, such as `(L) Sub.put`."""
        return tuple(self.regions["short_name"])

    @cached_property
    def _sides(self) -> tuple[str, ...]:
        return tuple(self.regions["hemisphere"])

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _by_core(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, (name, side) in enumerate(zip(self.names, self._sides, strict=True)):
            said, core = split_name(name)
            if said not in (None, side):
                # On the midline such a letter is part of the name, not a side.
                core = "".join(filter(str.isalnum, name.lower()))
            found.setdefault(core, []).append(place)
        return found

    def find(self, name: str | bytes, hemisphere: str | None = None) -> int | None:
        """Return the position of one region, whatever the spelling of its name.

        Parameters
        ----------
        name : str or bytes
            The region's name in any tool's spelling, or the paper's short name.
        hemisphere : {"L", "R"} or None
            The side of the file that the name stands in, for names that do not say.

        Returns
        -------
        int or None
            Position in the atlas; None if the name is unknown, says the other side
            than `hemisphere`, or could be more than one region.

        Examples
        --------
        >>> atlas = load_atlas("desikan82")
        >>> atlas.find("lh_bankssts"), atlas.find("bankssts", "R")
        (0, 34)
        >>> atlas.find("bankssts") is None
        True
        """
        text = as_text(name)
        if text in self._position:
            place = self._position[text]
            return place if hemisphere in (None, self._sides[place]) else None
        said, core = split_name(text)
        if said and hemisphere and said != hemisphere:
            return None
        side = said or hemisphere
        places = [
            place
            for place in self._by_core.get(core, ())
            if side is None or self._sides[place] == side
        ]
        return places[0] if len(places) == 1 else None

    def match(
        self, names: Iterable[str | bytes], hemisphere: str | None = None
    ) -> np.ndarray:
        """Return the position in the atlas of every given name.

        Parameters
        ----------
        names : iterable of str or bytes
            Names in any tool's spelling, each region at most once.
        hemisphere : {"L", "R"} or None
            The side of the file that the names stand in, if it is of one side.

        Returns
        -------
        ndarray of int, shape (n_names,)
            Position of each name, in the order given.

        Raises
        ------
        RegionNameError
            If a name is unknown, or two names are the same region.

        Examples
        --------
        >>> load_atlas("desikan82").match(["lh_bankssts", "lh_insulla"])
        Traceback (most recent call last):
        brainlsap.exceptions.RegionNameError: 1 of 2 names unknown to atlas desikan82:
        'lh_insulla' (nearest: ctx-lh-insula). ...
        """
        given = [as_text(name) for name in names]
        places = [self.find(name, hemisphere) for name in given]
        unknown = [given[k] for k, place in enumerate(places) if place is None]
        if unknown:
            raise RegionNameError(
                unknown_message(self.name, self.names, unknown, len(given), hemisphere)
            )
        found = np.array(places, dtype=int)
        spelt = {
            self.names[place]: [given[k] for k in np.flatnonzero(found == place)]
            for place, count in Counter(found.tolist()).items()
            if count > 1
        }
        if spelt:
            raise RegionNameError(doubled_message(self.name, spelt))
        return found

    def vertex_labels(self, hemisphere: str) -> np.ndarray:
        """Return the region of every vertex of one hemisphere of fsaverage5.

        Parameters
        ----------
        hemisphere : {"L", "R"}
            The side.

        Returns
        -------
        ndarray of int, shape (n_vertices,)
            Position of the region in the atlas; -1 where there is none.

        Raises
        ------
        ParameterError
            If `hemisphere` is neither L nor R.
        FileFormatError
            If the atlas has no surface labels, or they name an unknown region.

        Examples
        --------
        >>> labels = load_atlas("destrieux160").vertex_labels("L")
        >>> labels.shape, len(set(labels[labels >= 0]))
        ((10242,), 74)
        """
        return read_vertex_labels(self, hemisphere)

    def meshes(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the surfaces of the subcortical regions.

        Returns
        -------
        dict
            From region name to `(vertices, faces)`: float array (n_vertices, 3) in
            mm (surface RAS of fsaverage) and int array (n_faces, 3). Regions
            without a mesh are missing; empty for a table of names alone.

        Examples
        --------
        >>> meshes = load_atlas("destrieux160").meshes()
        >>> len(meshes), meshes["Left-Thalamus"][0].shape[1]
        (12, 3)
        """
        return {} if self.folder is None else read_meshes(self.folder, self.names)


def bundled_atlases() -> Path:
    """Return the folder of the atlases that come with the package.

    Returns
    -------
    Path
        `brainlsap/_atlases` in an installed wheel, else the checkout's `atlases/`.

    Examples
    --------
    >>> (bundled_atlases() / "destrieux160" / "regions.tsv").is_file()
    True
    """
    package = Path(__file__).resolve().parents[1]
    installed = package / "_atlases"
    return installed if installed.is_dir() else package.parent / "atlases"


def available_atlases() -> tuple[str, ...]:
    """Return the names of the atlases that come with the package.

    Returns
    -------
    tuple of str
        Names that :func:`load_atlas` takes.

    Examples
    --------
    >>> available_atlases()
    ('desikan82', 'destrieux160')
    """
    tables = sorted(bundled_atlases().glob("*/regions.tsv"))
    return tuple(table.parent.name for table in tables)


def load_atlas(name: str | Path | Atlas) -> Atlas:
    """Load a region set by name, or a user's own from its table.

    Parameters
    ----------
    name : str, Path or Atlas
        One of :func:`available_atlases`; or the path of a tab-separated table of
        regions, or of a folder that holds it as `regions.tsv`. The table needs the
        columns `name` and `hemisphere` (L, R, or M for the midline); further columns
        are those of :class:`Atlas` and are filled where absent. `lh.annot` and
        `rh.annot` (fsaverage5) and `meshes/<name>.surf.gii` beside it are used for
        drawing. An `Atlas` is returned as it is.

    Returns
    -------
    Atlas
        The region set.

    Raises
    ------
    ParameterError
        If there is no such atlas and no such file.
    FileFormatError
        If the table cannot be read, lacks a column, is empty, or has a wrong value.
    RegionNameError
        If two regions of the table have one name.

    Examples
    --------
    >>> load_atlas("desikan82")
    Atlas('desikan82', 82 regions)
    """
    if isinstance(name, Atlas):
        return name
    if str(name) in available_atlases():
        folder = bundled_atlases() / str(name)
        return Atlas(str(name), read_regions(folder / "regions.tsv"), folder)
    path = Path(name).expanduser()
    table = path / "regions.tsv" if path.is_dir() else path
    if not table.is_file():
        raise ParameterError(
            f"atlas must be one of {', '.join(available_atlases())}, or the path of a "
            f"regions.tsv or of a folder that holds one, got {str(name)!r}."
        )
    folder = table.parent
    drawn = (folder / "lh.annot").is_file() or (folder / "meshes").is_dir()
    title = folder.resolve().name if table.name == "regions.tsv" else table.stem
    return Atlas(title, read_regions(table), folder if drawn else None)
