"""One cohort in one HDF5 file: arrays, names and provenance, nothing pickled.

Layout, version 1: the attributes `format`, `format_version` and `about` (JSON: names,
classes, notes, provenance, the order of columns) on the root; the datasets
`connectomes` (one matrix where all scans share it) and `features`; the groups
`table`, `regions` and `truth` with one dataset per column. A connectome is stored in
the smallest type that holds it exactly, so counts of streamlines take 2 bytes each.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from brainlsap._files import replace_when_whole
from brainlsap._scratch import new_array, row_blocks
from brainlsap.data.atlas import Atlas, available_atlases, load_atlas
from brainlsap.data.cohort_checks import is_shared
from brainlsap.data.hdf_heaps import check_texts
from brainlsap.data.hdf_structure import check_structure
from brainlsap.exceptions import BrainlsapError, FileFormatError

if TYPE_CHECKING:
    import h5py

    from brainlsap.data.cohort import Cohort

FORMAT = "brainlsap cohort"
FORMAT_VERSION = 1
CHUNK_BYTES = 1 << 20


def write_cohort(cohort: "Cohort", path: str | Path) -> Path:
    """Write a cohort to one HDF5 file, whole or not at all.

    Parameters
    ----------
    cohort : Cohort
        What is written.
    path : str or Path
        Of the file; one that exists is replaced or read.

    Returns
    -------
    Path
    """
    import h5py

    path = Path(path)
    W = cohort.connectomes
    with (
        replace_when_whole(path) as partial,
        h5py.File(
            # the new file is locked already, and a lock does not know its owner again
            partial,
            "w",
            locking=False,
        ) as file,
    ):
        file.attrs["format"] = FORMAT
        file.attrs["format_version"] = FORMAT_VERSION
        W = W[:1] if is_shared(W) else W
        _write_array(file, "connectomes", W, _smallest(W))
        _write_array(file, "features", cohort.features, np.float64)
        columns = {
            "table": _write_table(file, "table", cohort.table),
            "regions": _write_table(file, "regions", cohort.atlas.regions),
        }
        if cohort.truth is not None:
            columns["truth"] = _write_table(file, "truth", cohort.truth)
        about = {
            "atlas": cohort.atlas.name,
            "classes": cohort.classes,
            "columns": columns,
            "feature_names": cohort.feature_names,
            "label_name": cohort.label_name,
            "notes": cohort.notes,
            "provenance": cohort.provenance,
        }
        # a dataset, since attributes end at 64 kB
        file["about"] = json.dumps(about)
    return path


def read_cohort(path: str | Path) -> "Cohort":
    """Read a cohort that :func:`write_cohort` has written.

    Parameters
    ----------
    path : str or Path
        Of the file; one that exists is replaced or read.

    Returns
    -------
    Cohort

    Raises
    ------
    FileFormatError
        Where the file is missing, cut short, damaged, or something else.
    """
    import h5py

    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file; expected a cohort file (.h5).")
    check_structure(path)
    try:
        with h5py.File(path, "r") as file:
            _check_format(path, file)
            return _read_parts(file)
    except BrainlsapError as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"{path}: damaged cohort file ({error})") from error
    except (
        OSError,
        KeyError,
        AttributeError,
        ValueError,
        TypeError,
        RuntimeError,
    ) as error:
        raise FileFormatError(
            f"{path}: not a whole cohort file; expected HDF5 written by Cohort.write, "
            f"got: {error}. Write the cohort again."
        ) from error


def _check_format(path: Path, file: "h5py.File") -> None:
    kind = _attribute(file, "format")
    version = _attribute(file, "format_version")
    if kind != FORMAT:
        raise FileFormatError(
            f"{path}: an HDF5 file, but not a cohort; expected the attribute "
            f"format={FORMAT!r}, got {kind!r}."
        )
    if version != FORMAT_VERSION:
        raise FileFormatError(
            f"{path}: cohort file of version {version}; this brainlsap reads version "
            f"{FORMAT_VERSION}. Read it with the brainlsap that wrote it."
        )


def _attribute(file: "h5py.File", name: str) -> Any:
    """Return an attribute of text or a number; None for any other."""
    import h5py

    if name not in file.attrs:
        return None
    kind = file.attrs.get_id(name).dtype
    # HDF5 died of lists of any length that stood where texts are expected
    is_read = kind.kind in "iu" or h5py.check_string_dtype(kind) is not None
    return file.attrs[name] if is_read else None


def _read_texts(dataset: "h5py.Dataset") -> Any:
    import h5py

    if h5py.check_string_dtype(dataset.dtype) is None:
        raise ValueError(f"{dataset.name} holds {dataset.dtype}, expected text")
    _check_promise(dataset)
    return dataset.asstr()[()]


def _read_parts(file: "h5py.File") -> "Cohort":
    from brainlsap.data.cohort import Cohort

    about = json.loads(_read_texts(file["about"]))
    columns = about["columns"]
    table = _read_table(file["table"], columns["table"])
    regions = _read_table(file["regions"], columns["regions"])
    connectomes = _read_array(file["connectomes"])
    if len(connectomes) == 1 < len(table):
        shape = (len(table), *connectomes.shape[1:])
        connectomes = np.broadcast_to(connectomes[0], shape)
    return Cohort(
        connectomes=connectomes,
        features=_read_array(file["features"]),
        table=table,
        atlas=_find_atlas(about["atlas"], regions),
        feature_names=tuple(about["feature_names"]),
        classes=tuple(about["classes"]),
        label_name=about["label_name"],
        notes=tuple(about["notes"]),
        provenance=about["provenance"],
        truth=_read_table(file["truth"], columns["truth"])
        if "truth" in columns
        else None,
    )


def _find_atlas(name: str, regions: pd.DataFrame) -> Atlas:
    """Return the shipped atlas of these regions, or one that has only their names."""
    if name in available_atlases():
        atlas = load_atlas(name)
        if atlas.names == tuple(regions["name"]):
            return atlas
    return Atlas(name=name, regions=regions, folder=None)


def _smallest(W: np.ndarray) -> Any:
    """Return the smallest type that holds every number exactly."""
    dtypes: list[Any] = [np.uint16, np.uint32, np.float32]
    for part in row_blocks(W):
        while dtypes and not _holds(dtypes[0], W[part]):
            del dtypes[0]
    return dtypes[0] if dtypes else np.float64


def _holds(dtype: Any, W: np.ndarray) -> bool:
    limits = np.finfo(dtype) if dtype is np.float32 else np.iinfo(dtype)
    # scan by scan, so that nothing as large as W is made in vain
    return bool(W.max() <= limits.max) and all(
        np.array_equal(one.astype(dtype), one) for one in W
    )


def _write_array(file: "h5py.File", name: str, values: np.ndarray, dtype: Any) -> None:
    bytes_each = values[0].size * np.dtype(dtype).itemsize
    rows = max(1, min(len(values), CHUNK_BYTES // max(1, bytes_each)))
    # the checksum turns a damaged file into an error instead of other numbers
    dataset = file.create_dataset(
        name,
        shape=values.shape,
        dtype=dtype,
        chunks=(rows, *values.shape[1:]),
        fletcher32=True,
    )
    for part in row_blocks(values):
        dataset[part] = values[part]


def _read_array(dataset: "h5py.Dataset") -> np.ndarray:
    _check_promise(dataset)
    values = new_array(dataset.shape)
    for part in row_blocks(values):
        values[part] = dataset[part]
    values.flags.writeable = False
    return values


def _check_promise(dataset: "h5py.Dataset") -> None:
    promised = dataset.size * dataset.dtype.itemsize
    if dataset.compression is None and dataset.id.get_storage_size() < promised:
        raise ValueError(f"{dataset.name} holds less than its header promises")
    check_texts(dataset)


def _write_table(file: "h5py.File", name: str, table: pd.DataFrame) -> list[str]:
    import h5py

    group = file.create_group(name)
    for number, column in enumerate(table.columns):
        values = table[column]
        if pd.api.types.is_numeric_dtype(values.dtype):
            has_gaps = bool(values.isna().any())
            group[str(number)] = values.to_numpy(dtype=float if has_gaps else None)
        else:
            # text that is missing is told apart from empty text by its mask
            group[f"{number}-missing"] = values.isna().to_numpy()
            text = ["" if pd.isna(value) else str(value) for value in values]
            group.create_dataset(str(number), data=text, dtype=h5py.string_dtype())
    return [str(column) for column in table.columns]


def _read_table(group: "h5py.Group", columns: list[str]) -> pd.DataFrame:
    table: dict[str, Any] = {}
    for number, column in enumerate(columns):
        dataset = group[str(number)]
        if f"{number}-missing" in group:
            missing = _read_numbers(group[f"{number}-missing"])
            text = pd.Series(list(_read_texts(dataset)), dtype="str")
            table[column] = text.mask(missing)
        else:
            table[column] = _read_numbers(dataset)
    return pd.DataFrame(table)


def _read_numbers(dataset: "h5py.Dataset") -> np.ndarray:
    if dataset.dtype.kind not in "biuf":
        raise ValueError(f"{dataset.name} holds {dataset.dtype}, expected numbers")
    _check_promise(dataset)
    return np.asarray(dataset[()])
