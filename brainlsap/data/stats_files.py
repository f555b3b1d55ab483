"""Read one `stats` file of FreeSurfer as a table."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from brainlsap.data.text_lines import read_all_lines
from brainlsap.exceptions import FileFormatError

_HEAD_SIZES = (
    "# Measure EstimatedTotalIntraCranialVol,",
    "# Measure IntraCranialVol,",
)


@dataclass(frozen=True, eq=False)
class StatsTable:
    """One `stats` file.

    Parameters
    ----------
    path : Path
        Of the file.
    columns : tuple of str
        Heads of the columns.
    rows : tuple of tuple of str
        Cells, one row a structure.
    n_vertices : int or None
        Of the whole cortex, where the file says it.
    head_size : float or None
        Intracranial volume (eTIV) in mm3, where the file says it.
    side : str or None
        "lh" or "rh", where the file says it.
    """

    path: Path
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_vertices: int | None = None
    head_size: float | None = None
    side: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Name of every structure."""
        place = self.columns.index("StructName")
        return tuple(row[place] for row in self.rows)

    def numbers(self, column: str) -> np.ndarray:
        """Return one column as numbers.

        Parameters
        ----------
        column : str
            Head of the column.

        Returns
        -------
        float array of shape (n_rows,)

        Raises
        ------
        FileFormatError
            Where there is no such column, or a cell is no number.
        """
        if column not in self.columns:
            raise FileFormatError(
                f"{self.path}: no column {column}; found {', '.join(self.columns)}."
            )
        place = self.columns.index(column)
        try:
            return np.array([row[place] for row in self.rows], dtype=float)
        except ValueError as error:
            raise FileFormatError(
                f"{self.path}: column {column} must hold numbers: {error}."
            ) from error


def read_stats(path: str | Path) -> StatsTable:
    """Read one `stats` file of FreeSurfer 5 to 8.

    Parameters
    ----------
    path : str or Path
        `?h.aparc*.stats` or `aseg.stats`.

    Returns
    -------
    StatsTable

    Raises
    ------
    FileFormatError
        Where the file is missing, cut short, or something else.
    """
    path = Path(path)
    header: dict[str, str] = {}
    rows = []
    columns: tuple[str, ...] = ()
    for line in read_all_lines(path):
        if not line.startswith("#"):
            rows.append(tuple(line.split()))
        elif line.startswith("# ColHeaders"):
            columns = tuple(line.split()[2:])
        else:
            header |= _said(line)
    if "StructName" not in columns or not rows:
        raise FileFormatError(
            f"{path}: expected a FreeSurfer stats file with a line '# ColHeaders' that "
            "names StructName, and rows below it. The file may be cut short."
        )
    short = [row for row in rows if len(row) != len(columns)]
    if short or header.get("rows", str(len(rows))) != str(len(rows)):
        raise FileFormatError(
            f"{path}: cut short; expected {header.get('rows', 'complete')} rows of "
            f"{len(columns)} cells, got {len(rows)} rows"
            + (f", one of {len(short[0])} cells." if short else ".")
        )
    try:
        vertices = int(header["vertices"]) if "vertices" in header else None
        head = float(header["head"]) if "head" in header else None
    except ValueError as error:
        raise FileFormatError(
            f"{path}: a '# Measure' line must hold a number: {error}."
        ) from error
    return StatsTable(path, columns, tuple(rows), vertices, head, header.get("side"))


def _said(line: str) -> dict[str, str]:
    """Return what a line of the header says, where it is of use."""
    if line.startswith("# NRows"):
        return {"rows": line.rsplit(maxsplit=1)[-1]}
    if line.startswith("# hemi "):
        return {"side": line.rsplit(maxsplit=1)[-1]}
    if line.startswith("# Measure Cortex, NumVert"):
        return {"vertices": _field(line, 3)}
    return {"head": _field(line, -2)} if line.startswith(_HEAD_SIZES) else {}


def _field(line: str, place: int) -> str:
    """Return a field of a line with commas; nothing where the line is too short."""
    fields = line.split(",")
    return fields[place].strip() if len(fields) > 3 else ""
