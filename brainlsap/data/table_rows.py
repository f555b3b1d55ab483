"""Features from tables of many scans: which tables, and which row is which scan."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.data.feature_rules import (
    FeatureFile,
    check_structures,
    finish_feature,
    get_feature,
)
from brainlsap.data.feature_sources import Scan
from brainlsap.data.feature_tables import ScanTable, unknown_columns
from brainlsap.data.parcellations import GTMSEG, other_parcellation
from brainlsap.data.table_columns import region_of_head
from brainlsap.exceptions import CohortError, FileFormatError


class TableRows:
    """Rows of tables of many scans for one feature.

    Parameters
    ----------
    tables : sequence of ScanTable
        Together they hold the regions; none twice.
    scans : sequence of Scan
        In the order of the cohort.
    feature : str
        Name of the feature.
    atlas : Atlas
        Names the regions and gives their order.
    subcortex : str
        What the subcortex has for features of the cortical surface.

    Raises
    ------
    CohortError, FileFormatError
        Where the tables cannot be used at all.
    """

    def __init__(
        self,
        tables: Sequence[ScanTable],
        scans: Sequence[Scan],
        feature: str,
        atlas: Atlas,
        subcortex: str,
    ) -> None:
        self.atlas, self.subcortex = atlas, subcortex
        self.faults: list[str] = []
        names = ", ".join(table.path.name for table in tables)
        self.notes = [f"{feature}: read from {names}"]
        self.values = np.full((len(scans), len(atlas)), np.nan)
        self.there = np.ones(len(scans), dtype=bool)
        places: list[int] = []
        kinds = set()
        known = get_feature(feature)
        sizes = np.full(len(scans), np.nan)
        for table in tables:
            columns = table.columns_for(get_feature(feature), atlas, subcortex)
            places += columns
            kinds |= {bool(name.base) for name in table.scan_names()}
            values = table.values(columns, len(atlas))
            rows = self._rows(table, scans)
            self.there &= rows >= 0
            given = table.head_sizes() if known.by_head_size else None
            sizes = sizes if given is None else given[rows]
            self.values[:, list(columns)] = values[rows][:, list(columns)]
        if len(kinds) > 1:
            raise CohortError(
                f"{names}: rows of longitudinal ('.long.') and of cross-sectional "
                "FreeSurfer runs; they are never mixed. Keep one kind"
            )
        if known.by_head_size:
            self._divide(feature, names, sizes)
        self._check_regions(tables, np.array(places))
        self._note_unused(tables, feature)

    def _divide(self, feature: str, names: str, sizes: np.ndarray) -> None:
        if np.isnan(sizes[self.there]).any():
            raise FileFormatError(
                f"{feature} needs the intracranial volume of every scan in a column "
                f"eTIV of {names}."
            )
        self.values /= sizes[:, None]

    def _rows(self, table: ScanTable, scans: Sequence[Scan]) -> np.ndarray:
        """Return the row of every scan in a table, -1 where it has none."""
        known: dict[tuple[str, str], list[int]] = {}
        people: dict[str, list[int]] = {}
        for row, name in enumerate(table.scan_names()):
            known.setdefault(name.key, []).append(row)
            people.setdefault(name.key[0], []).append(row)
        result = np.full(len(scans), -1)
        used = 0
        for number, scan in enumerate(scans):
            rows = known.get(scan.key, [])
            if not rows and scan.is_only and scan.key[1]:
                rows = known.get((scan.key[0], ""), [])
            if not rows and not scan.key[1]:
                rows = people.get(scan.key[0], [])
            if len(rows) == 1:
                result[number] = rows[0]
                used += 1
            else:
                reason = f"{len(rows)} rows" if rows else "no row"
                self.faults.append(
                    f"{scan.name}: {reason} in {table.path}; expected one"
                )
        spare = len(table.table) - used
        if spare > 0 and not self.faults:
            self.notes.append(
                f"{table.path.name}: {spare} rows of scans that are not in the cohort"
            )
        return result

    def _check_regions(self, tables: Sequence[ScanTable], places: np.ndarray) -> None:
        names = ", ".join(str(table.path) for table in tables)
        heads = [region_of_head(head) for t in tables for head in t.strangers]
        other = other_parcellation(heads, self.atlas)
        if other and not (self.atlas.regions["structure"][places] == "cortex").any():
            raise FileFormatError(f"{names}: {other} {GTMSEG}")
        try:
            check_structures(places, self.atlas, names)
        except FileFormatError as error:
            unknown = [unknown_columns(t, self.atlas) for t in tables if t.strangers]
            raise FileFormatError(" ".join([str(error), *unknown])) from error

    def _note_unused(self, tables: Sequence[ScanTable], feature: str) -> None:
        below = (self.atlas.regions["structure"] == "subcortex").to_numpy()
        unused = {p for t in tables for m, p in t.regions if below[p] and m != "other"}
        if get_feature(feature).on_surface and self.subcortex != "volume" and unused:
            self.notes.append(
                f"{feature}: {len(unused)} subcortical columns are left out; "
                "subcortex='volume' takes them as volumes"
            )

    def read(self, row: int, feature: str) -> FeatureFile | None:
        """Read one feature of one scan.

        Parameters
        ----------
        row : int
            Of the scan in the cohort.
        feature : str
            Name of the feature.

        Returns
        -------
        FeatureFile or None
            None where the scan's files were not found, which is a fault.
        """
        if not self.there[row]:
            return None
        values, known = self.values[row], get_feature(feature)
        return finish_feature(values, known, self.atlas, self.subcortex)


def choose_tables(
    tables: Sequence[ScanTable], feature: str, atlas: Atlas, subcortex: str
) -> list[ScanTable]:
    """Return the tables that together hold a feature, none of them needless.

    Where a table says the feature's measure, one that says none and has other values
    is of something else. Where two tables hold the same regions, one that names the
    atlas' regions and no others is taken before those that name more.

    Parameters
    ----------
    tables : sequence of ScanTable
        Those that could be used.
    feature : str
        Name of the feature.
    atlas : Atlas
        Names the regions and gives their order.
    subcortex : str
        What the subcortex has for features of the cortical surface.

    Returns
    -------
    list of ScanTable
        Empty where none holds the feature.

    Raises
    ------
    CohortError
        Where two tables hold the same regions.
    """
    known = get_feature(feature)
    found = {t.path: t.columns_for(known, atlas, subcortex) for t in tables}
    columns = {path: set(places) for path, places in found.items()}
    saying = [t for t in tables if any(m in known.measures for m, _ in t.regions)]
    for table in tables:
        if not any(m for m, _ in table.regions) and not all(
            _agree(table, other, found, len(atlas)) for other in saying
        ):
            columns[table.path] = set()
    holding = [table for table in tables if columns[table.path]]
    exact = [t for t in holding if not t.outside and not t.strangers]
    everything = set().union(*columns.values()) if columns else set()
    if len(exact) == 1 and columns[exact[0].path] == everything:
        return exact
    for number, table in enumerate(holding):
        for other in holding[:number]:
            if columns[table.path] & columns[other.path]:
                listed = ", ".join(str(t.path) for t in holding)
                raise CohortError(
                    f"{feature}: more than one table holds the same regions: {listed}; "
                    "say which by features_table="
                )
    return holding


def _agree(
    one: ScanTable, other: ScanTable, found: dict[Path, dict[int, str]], n_rois: int
) -> bool:
    """Tell whether two tables have the same values for what both of them hold."""
    first = {name.key: row for row, name in enumerate(one.scan_names())}
    second = {name.key: row for row, name in enumerate(other.scan_names())}
    common = [key for key in first if key in second]
    a = one.values(found[one.path], n_rois)[[first[key] for key in common]]
    b = other.values(found[other.path], n_rois)[[second[key] for key in common]]
    both = np.isfinite(a) & np.isfinite(b)
    return np.allclose(a[both], b[both], rtol=1e-3)
