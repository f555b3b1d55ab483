"""Find the reference region of PET: labels of the parcellation, or a mask."""

from pathlib import Path

import numpy as np

from brainlsap.data.label_images import LabelImage
from brainlsap.data.pet_tables import REFERENCES
from brainlsap.data.volume_files import read_volume, read_voxels
from brainlsap.exceptions import FileFormatError, ParameterError


def find_reference(
    reference: str | Path, image: LabelImage
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the mask of a reference region.

    Parameters
    ----------
    reference : str or Path
        A key of :data:`.REFERENCES`, or the path of an image in the space of the
        parcellation, of which voxels above 0 count.
    image : LabelImage
        The parcellation.

    Returns
    -------
    mask : int32 array of shape (n_x, n_y, n_z)
        1 in the region, else 0.
    affine : array of shape (4, 4)
        Of the mask.
    said : str
        What it is.

    Raises
    ------
    FileFormatError
        Where the parcellation has no such label, or the mask is empty.
    ParameterError
        Where it is neither a known name nor a file.
    """
    word = str(reference).lower().replace("_", " ").replace("-", " ")
    if word in REFERENCES:
        return _from_labels(word, image)
    path = Path(reference)
    if not path.is_file():
        raise ParameterError(
            f"reference must be one of {', '.join(map(repr, REFERENCES))}, or the path "
            f"of a mask; got {str(reference)!r}, and there is no such file."
        )
    mask = read_volume(path)
    values = read_voxels(mask, path)
    if values.ndim == 4 and values.shape[3] == 1:
        values = values[..., 0]
    if values.ndim != 3 or not (values > 0).any():
        raise FileFormatError(
            f"{path}: expected a mask of three axes with voxels above 0, got shape "
            f"{values.shape} with {int((values > 0).sum())}."
        )
    affine = np.asarray(mask.affine, dtype=np.float64)
    return (values > 0).astype(np.int32), affine, str(path)


def _from_labels(word: str, image: LabelImage) -> tuple[np.ndarray, np.ndarray, str]:
    found = [image.with_cores(frozenset((part,))) for part in REFERENCES[word]]
    if not all(found):
        raise FileFormatError(
            f"{image.path}: the parcellation has no label for "
            f"{'the pons' if word == 'pons' else 'every part of the ' + word}. Give "
            "the reference as a mask, an image in the same space, by reference=."
        )
    codes = {label: 1 for labels in found for label in labels}
    return image.recoded(codes), image.affine, word
