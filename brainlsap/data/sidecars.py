"""Find the names of a matrix's rows in a file beside it.

BIDS (BEP017) writes a `.json` of the same name with `NodeFiles` and `NodeIndices`;
scilpy and Connectoflow a `labels_list.txt`; people a `labels.txt` or `labels.csv`.
"""

import json
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from brainlsap.data.name_lists import in_counted_order, read_names
from brainlsap.data.tables import read_table
from brainlsap.exceptions import FileFormatError

NAMES = ("labels.txt", "labels.csv", "labels.tsv", "labels_list.txt")
# The labels of a study may lie above the folders of its scans.
FOLDERS_ABOVE = 2
_INDEX_HEADS = ("index", "node_index", "id")
_NAME_HEADS = ("name", "label", "region")


@dataclass(frozen=True)
class Sidecar:
    """Names of rows, and where they are from.

    Parameters
    ----------
    names : tuple of str
        Of every row.
    note : str
        Says the file.
    """

    names: tuple[str, ...]
    note: str


def find_sidecar(path: Path, n: int) -> Sidecar | None:
    """Return the names of a matrix's rows from a file beside it.

    Parameters
    ----------
    path : Path
        Of the matrix.
    n : int
        Number of rows.

    Returns
    -------
    Sidecar or None
        None where there is no such file. Files of another length in folders above
        are not of this matrix, and are passed over.

    Raises
    ------
    FileFormatError
        Where a file beside the matrix names another number of rows, or is broken.
    """
    stem = path.name
    while (suffix := Path(stem).suffix.lower()) in (".gz", ".tsv", ".csv", ".txt"):
        stem = stem[: -len(suffix)]
    described = path.with_name(f"{stem}.json")
    if stem != path.name and described.is_file():
        names = _described_nodes(described)
        if names is not None:
            _check_length(described, names, path, n)
            return Sidecar(names, "rows named by the .json beside the matrix")
    own = [f"{Path(stem).stem}_labels{s}" for s in (".txt", ".csv", ".tsv")]
    for level, folder in enumerate([path.parent, *path.parent.parents]):
        if level > FOLDERS_ABOVE:
            break
        for name in (*own, *NAMES) if level == 0 else NAMES:
            if (folder / name).is_file() and folder / name != path:
                names = read_names(folder / name)
                if level == 0:
                    _check_length(folder / name, names, path, n)
                if len(names) == n:
                    return Sidecar(names, f"rows named by {name}")
    return None


def _check_length(file: Path, names: tuple[str, ...], path: Path, n: int) -> None:
    if len(names) != n:
        raise FileFormatError(
            f"{path}: {n} rows, but {file.name} beside it names {len(names)}; expected "
            "one name for each row. Correct it, or give the names by labels=."
        )


def _described_nodes(path: Path) -> tuple[str, ...] | None:
    """Return the names of the nodes that a BIDS sidecar gives, None where none."""
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path}: cannot be read as JSON: {error}.") from error
    if not isinstance(described, dict):
        return None
    indices = described.get("NodeIndices")
    files = described.get("NodeFiles", described.get("NodeFile"))
    files = [files] if isinstance(files, str) else files
    if not indices and not files:
        return None
    if files is not None and not (
        isinstance(files, list) and all(isinstance(name, str) for name in files)
    ):
        raise FileFormatError(f"{path}: NodeFiles must be names of files, got {files}.")
    if indices is not None and not (
        isinstance(indices, list) and all(isinstance(i, int | str) for i in indices)
    ):
        raise FileFormatError(f"{path}: NodeIndices must list numbers or names.")
    if not files:
        return tuple(str(index) for index in indices or ())
    return _nodes_of_files(path, [_locate(path, name) for name in files], indices)


def _nodes_of_files(
    path: Path, files: list[Path], indices: list[Any] | None
) -> tuple[str, ...]:
    known: dict[str, str] = {}
    for file in files:
        table = read_table(file)
        heads = {str(head).lower(): head for head in table.columns}
        index = next((heads[head] for head in _INDEX_HEADS if head in heads), None)
        name = next((heads[head] for head in _NAME_HEADS if head in heads), None)
        if name is None:
            raise FileFormatError(
                f"{file}: no column {' or '.join(_NAME_HEADS)} that names the nodes."
            )
        numbers = range(1, len(table) + 1) if index is None else table[index]
        for number, region in zip(map(str, numbers), table[name], strict=True):
            if number in known:
                raise FileFormatError(
                    f"{file}: the node {number} is {known[number]} and {region}; "
                    "expected every index once. Give each node its own index."
                )
            known[number] = str(region)
    if indices is None:
        return in_counted_order(list(known), list(known.values()))
    unknown = [str(i) for i in indices if str(i) not in known]
    if unknown:
        raise FileFormatError(
            f"{path}: NodeIndices names the node {unknown[0]}, which is not in "
            f"{', '.join(file.name for file in files)}."
        )
    return tuple(known[str(index)] for index in indices)


def _locate(path: Path, name: str) -> Path:
    """Return a file that BIDS names: relative, or from the root of the data set."""
    inside = name.removeprefix("bids:").lstrip(":")
    if PurePath(inside).is_absolute() or ".." in PurePath(inside).parts:
        raise FileFormatError(
            f"{path}: NodeFiles names {name}; expected a path below the data set."
        )
    for folder in [path.parent, *path.parent.parents][:6]:
        if (folder / inside).is_file():
            return folder / inside
    raise FileFormatError(f"{path}: NodeFiles names {name}, which does not exist.")
