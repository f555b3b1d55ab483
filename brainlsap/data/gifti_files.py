"""Open GIFTI files without trusting what they say of their size and place."""

import re
from pathlib import Path
from typing import Any

from brainlsap.exceptions import FileFormatError

# Arrays of connectomes and surfaces have two axes; nibabel counts all that are said.
_MOST_AXES = 6
_AXES = re.compile(rb"Dimensionality\s*=\s*[\"']([^\"']*)[\"']")


def read_gifti(path: str | Path) -> Any:
    """Read a GIFTI file.

    Parameters
    ----------
    path : str or Path
        A `.gii` file that holds its data itself, as tools write it.

    Returns
    -------
    nibabel.gifti.GiftiImage
        With its arrays.

    Raises
    ------
    FileFormatError
        Where the file is broken, promises arrays of very many axes, or names another
        file that holds the data: what lies elsewhere is never read.

    Examples
    --------
    >>> read_gifti("nowhere.gii")
    Traceback (most recent call last):
    brainlsap.exceptions.FileFormatError: nowhere.gii: cannot be read as a GIFTI...
    """
    from nibabel.gifti import GiftiImage

    path = Path(path)
    try:
        content = path.read_bytes()
        _check(content)
        return GiftiImage.from_bytes(content)
    except Exception as error:  # the XML, base64, zlib and NumPy parsers each have own
        reason = (str(error) or type(error).__name__).rstrip(".")
        raise FileFormatError(
            f"{path}: cannot be read as a GIFTI file: {reason}. The file may be cut "
            "short."
        ) from error


def _check(content: bytes) -> None:
    if b"\0" in content:
        raise ValueError("it is no text in UTF-8")
    if b"ExternalFileBinary" in content:
        raise ValueError("its data are said to lie in another file, which is not read")
    for said in _AXES.findall(content):
        if not said.isdigit() or int(said) > _MOST_AXES:
            raise ValueError(f"an array of {said.decode('utf-8', 'replace'):.20} axes")
