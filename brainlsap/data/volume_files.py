"""Read images of voxels, NIfTI and MGZ, with every fault said in one sentence."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap.exceptions import FileFormatError

SUFFIXES = (".nii", ".nii.gz", ".mgz", ".mgh", ".img", ".hdr")
# What gzip can make of a byte at most, and where headers stand.
_MOST_PACKED, _HEADER = 1032, 4096
# Everything that a cut or changed file makes the decoders raise.
DECODING_ERRORS = (
    *(OSError, EOFError, ValueError, TypeError, KeyError, IndexError, OverflowError),
    *(zlib.error, struct.error, MemoryError),
)


def read_volume(path: str | Path) -> Any:
    """Open an image of voxels.

    Parameters
    ----------
    path : str or Path
        NIfTI (`.nii`, `.nii.gz`) or FreeSurfer's `.mgz`, `.mgh`.

    Returns
    -------
    nibabel image
        With three axes or four, and an affine that can be inverted.

    Raises
    ------
    FileFormatError
        Where there is no such image.
    """
    import nibabel
    from nibabel.filebasedimages import ImageFileError
    from nibabel.freesurfer.mghformat import MGHError
    from nibabel.spatialimages import HeaderDataError

    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file; expected an image.")
    if not path.name.lower().endswith(SUFFIXES):
        raise FileFormatError(
            f"{path}: images are read from {', '.join(SUFFIXES[:4])} files, got "
            f"{path.suffix or 'a name without suffix'}. MRtrix's mrconvert makes .nii "
            "of .mif."
        )
    try:
        image: Any = nibabel.load(path)
        affine = np.asarray(image.affine, dtype=np.float64)
    except (ImageFileError, HeaderDataError, MGHError, *DECODING_ERRORS) as error:
        raise FileFormatError(
            f"{path}: cannot be read as an image: {error}. The file may be cut short."
        ) from error
    if affine.shape != (4, 4) or not np.isfinite(affine).all():
        raise FileFormatError(f"{path}: the affine is not a 4 x 4 matrix of numbers.")
    if abs(np.linalg.det(affine[:3, :3])) < 1e-12:
        raise FileFormatError(f"{path}: the affine is singular; voxels have no volume.")
    if len(image.shape) not in (3, 4) or min(image.shape) < 1:
        raise FileFormatError(
            f"{path}: expected an image of three axes, or four with time, got shape "
            f"{tuple(image.shape)}."
        )
    return image


def read_voxels(image: Any, path: str | Path, frame: int | None = None) -> np.ndarray:
    """Return the values of an image, scaled as its header says.

    Parameters
    ----------
    image : nibabel image
        As :func:`read_volume` gives it.
    path : str or Path
        Of the file, for the message.
    frame : int, optional
        The only one to read of an image with a fourth axis.

    Returns
    -------
    array
        In the type of the file where it has no scaling.

    Raises
    ------
    FileFormatError
        Where the voxels cannot be decoded, or are not numbers.
    """
    _check_size(image, Path(path))
    try:
        data = image.dataobj
        values = np.asarray(data if frame is None else data[..., frame])
    except DECODING_ERRORS as error:
        raise FileFormatError(
            f"{path}: the voxels cannot be read: {error}. The file may be cut short."
        ) from error
    if values.dtype.kind not in "buif":
        raise FileFormatError(
            f"{path}: expected a number in every voxel, got {values.dtype}."
        )
    return values


def _check_size(image: Any, path: Path) -> None:
    """Raise where the header promises more voxels than the file can hold.

    They would be asked of the memory before the first of them is read.
    """
    if not path.is_file():
        return
    promised = np.dtype(image.get_data_dtype()).itemsize
    for n in image.shape:
        promised *= int(n)
    is_packed = path.suffix.lower() in (".gz", ".mgz")
    there = path.stat().st_size * (_MOST_PACKED if is_packed else 1) + _HEADER
    if promised > there and path.suffix.lower() != ".hdr":
        raise FileFormatError(
            f"{path}: the header promises {promised:,} bytes of voxels, and the file "
            f"has {path.stat().st_size:,}. It may be cut short."
        )
