"""Tables of many scans: a row per scan, a column per region.

Such are the tables of FreeSurfer's `aparcstats2table` and `asegstats2table`, and any
CSV or TSV whose columns are named by regions. Columns may say their measure
(`lh_cuneus_thickness`), the first head (`lh.aparc.a2009s.thickness`,
`Measure:volume`) or the file's name (`thickness.csv`) may say it for all, or nothing
does.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas
from brainlsap.data.feature_rules import Feature, get_feature
from brainlsap.data.parcellations import GTMSEG, other_parcellation
from brainlsap.data.region_messages import unknown_message
from brainlsap.data.scan_names import ScanName, parse_scan_name
from brainlsap.data.table_columns import (
    find_head_size,
    find_id,
    find_region,
    find_session,
    kind_of_head,
    measure_of_file,
    read_first_head,
    region_of_head,
)
from brainlsap.data.tables import parse_numbers, read_table
from brainlsap.exceptions import FileFormatError


@dataclass(frozen=True, eq=False)
class ScanTable:
    """A table of many scans whose columns are sorted by what they mean.

    Parameters
    ----------
    path : Path
        Separated text with a header, as :func:`.read_table` reads it.
    table : DataFrame
        Every cell as text.
    id_column : str
        Head of the column that names the scans.
    session_column : str or None
        Head of the column that names the visits.
    regions : dict of (measure, position in the atlas) to str
        Columns of regions; the measure is empty where nothing says it.
    strangers : tuple of str
        Columns that name a side but no region of the atlas.
    outside : tuple of str
        Columns that the atlas leaves out on purpose.
    others : tuple of str
        Everything else: labels and covariates.
    """

    path: Path
    table: pd.DataFrame
    id_column: str
    session_column: str | None
    regions: dict[tuple[str, int], str]
    strangers: tuple[str, ...]
    outside: tuple[str, ...]
    others: tuple[str, ...]

    def scan_names(self) -> list[ScanName]:
        """Return who and which visit every row is of.

        Returns
        -------
        list of ScanName

        Raises
        ------
        FileFormatError
            Where a row has no name.
        """
        names = []
        for row, cell in enumerate(self.table[self.id_column]):
            if cell is None:
                raise FileFormatError(
                    f"{self.path}: row {row + 1} below the header has no "
                    f"{self.id_column or 'name in its first column'}."
                )
            names.append(parse_scan_name(cell))
        if self.session_column is None:
            return names
        sessions = self.table[self.session_column]
        return [
            ScanName(name.participant, session or name.session, name.base)
            for name, session in zip(names, sessions, strict=True)
        ]

    def columns_for(
        self, feature: Feature, atlas: Atlas, subcortex: str = "absent"
    ) -> dict[int, str]:
        """Return the column of every region that the table has for a feature.

        Parameters
        ----------
        feature : Feature
            Name of the feature.
        atlas : Atlas
            Names the regions and gives their order.
        subcortex : {"absent", "mean", "volume"}
            What the subcortex has for features of the cortical surface.

        Returns
        -------
        dict of int to str
            From position in the atlas to column. A column that says the feature
            counts before one that says no measure.
        """
        below = (atlas.regions["structure"] == "subcortex").to_numpy()
        columns = {}
        for place in range(len(atlas)):
            measures: tuple[str, ...] = (*feature.measures, "")
            if feature.on_surface and below[place]:
                measures = ("volume", "") if subcortex == "volume" else ()
            for measure in measures:
                if (measure, place) in self.regions:
                    columns[place] = self.regions[measure, place]
                    break
        return columns

    def head_sizes(self) -> np.ndarray | None:
        """Return the intracranial volume (eTIV) of every row, None if there is none.

        Returns
        -------
        float array of shape (n_rows,), or None

        Raises
        ------
        FileFormatError
            Where a volume is not above 0.
        """
        head = find_head_size(list(self.table.columns))
        if head is None:
            return None
        sizes = parse_numbers(self.path, self.table[[head]])[:, 0]
        if (sizes <= 0).any():
            raise FileFormatError(f"{self.path}: {head} must be above 0 in every row.")
        return sizes

    def values(self, columns: dict[int, str], n_rois: int) -> np.ndarray:
        """Return the numbers of some columns in the order of the atlas.

        Parameters
        ----------
        columns : dict of int to str
            As :meth:`columns_for` gives them.
        n_rois : int
            Number of regions of the atlas.

        Returns
        -------
        float array of shape (n_rows, n_rois)
            NaN where the table has no column or no value.

        Raises
        ------
        FileFormatError
            Where a cell is no number.
        """
        values = np.full((len(self.table), n_rois), np.nan)
        cells = self.table[list(columns.values())]
        values[:, list(columns)] = parse_numbers(self.path, cells)
        return values


def open_scan_table(path: str | Path, atlas: Atlas) -> ScanTable:
    """Read a table of many scans and sort its columns by what they mean.

    Parameters
    ----------
    path : str or Path
        Separated text with a header, as :func:`.read_table` reads it.
    atlas : Atlas
        Names the regions and gives their order.

    Returns
    -------
    ScanTable

    Raises
    ------
    FileFormatError
        Where the file is no table, or has no column that names the scans.
    """
    path = Path(path)
    table = read_table(path)
    heads = list(table.columns)
    side, measure, id_column = read_first_head(heads)
    measure = measure or measure_of_file(path)
    id_column = id_column if id_column is not None else find_id(path, heads)
    session_column = find_session(heads)
    regions: dict[tuple[str, int], str] = {}
    kinds: dict[str, list[str]] = {"strangers": [], "outside": [], "others": []}
    for head in heads:
        if head in (id_column, session_column):
            continue
        found, place = find_region(head, atlas, side)
        key = (found or measure, -1 if place is None else place)
        if place is None:
            kinds[kind_of_head(head)].append(head)
        elif key in regions:
            raise FileFormatError(
                f"{path}: the columns {regions[key]!r} and {head!r} are both "
                f"{atlas.names[place]}; expected one."
            )
        else:
            regions[key] = head
    sorted_kinds = {kind: tuple(names) for kind, names in kinds.items()}
    return ScanTable(path, table, id_column, session_column, regions, **sorted_kinds)


def read_feature_table(
    path: str | Path,
    atlas: Atlas,
    feature: str = "thickness",
    *,
    subcortex: str = "absent",
) -> pd.DataFrame:
    r"""Read the regional values of a table of many scans.

    Parameters
    ----------
    path : str or Path
        Separated text with a header, as :func:`.read_table` reads it.
    atlas : Atlas
        Names the regions and gives their order.
    feature : str
        Columns that say another measure are left out.
    subcortex : {"absent", "mean", "volume"}
        `volume` takes the volumes that the table has for the subcortex.

    Returns
    -------
    DataFrame
        Index: the name of every scan as the table writes it; columns: those regions
        of the atlas that the table has, in the order of the atlas. NaN where missing.

    Raises
    ------
    FileFormatError
        Where the file is no such table, or has no region of the atlas.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.data.atlas import load_atlas
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = Path(place) / "thickness.csv"
    ...     _ = path.write_text("id,lh_cuneus,lh_insula\nsub-01,2.5,3.1\n")
    ...     read_feature_table(path, load_atlas("desikan82")).to_dict("index")
    {'sub-01': {'ctx-lh-cuneus': 2.5, 'ctx-lh-insula': 3.1}}
    """
    scans = open_scan_table(path, atlas)
    columns = scans.columns_for(get_feature(feature), atlas, subcortex)
    if not columns:
        raise FileFormatError(
            f"{path}: no column is {feature} of a region of {atlas.name}"
            + (f"; {unknown_columns(scans, atlas)}" if scans.strangers else ".")
        )
    values = scans.values(columns, len(atlas))[:, list(columns)]
    if get_feature(feature).by_head_size:
        sizes = scans.head_sizes()
        if sizes is None:
            raise FileFormatError(f"{path}: {feature} needs a column eTIV.")
        values = values / sizes[:, None]
    index = pd.Index(scans.table[scans.id_column], name=scans.id_column)
    return pd.DataFrame(values, index, [atlas.names[place] for place in columns])


def unknown_columns(scans: ScanTable, atlas: Atlas) -> str:
    """Return the sentence that lists columns which name a side but no region.

    Parameters
    ----------
    scans : ScanTable
        The table.
    atlas : Atlas
        Names the regions and gives their order.

    Returns
    -------
    str
    """
    n_given = len(scans.strangers) + len(scans.regions)
    names = [region_of_head(head) for head in scans.strangers]
    other = other_parcellation(names, atlas)
    if other:
        return f"{other} {GTMSEG}"
    return unknown_message(atlas.name, atlas.names, scans.strangers, n_given)
