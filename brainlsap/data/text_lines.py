"""Read text as lines, and tell what separates the cells of one."""

from pathlib import Path

from brainlsap.exceptions import FileFormatError

DELIMITERS = {"\t": "tabs", ",": "commas", ";": "semicolons"}


def read_lines(path: str | Path) -> list[str]:
    """Read the lines of a text file that are neither empty nor comments (`#`).

    Parameters
    ----------
    path : str or Path
        Of the file.

    Returns
    -------
    list of str
        Without line ends.

    Raises
    ------
    FileFormatError
        Where the file is missing or not text.
    """
    return [line for line in read_all_lines(path) if not line.startswith("#")]


def read_all_lines(path: str | Path) -> list[str]:
    """Read the lines of a text file that are not empty.

    Parameters
    ----------
    path : str or Path
        Of the file.

    Returns
    -------
    list of str
        Without line ends.

    Raises
    ------
    FileFormatError
        Where the file is missing or not text.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: no such file.") from error
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror}).") from error
    return split_lines(path, data)


def split_lines(path: str | Path, data: bytes) -> list[str]:
    r"""Return the lines of a text that are not empty.

    Parameters
    ----------
    path : str or Path
        Of the file, for the message.
    data : bytes
        The text in UTF-8.

    Returns
    -------
    list of str
        Without line ends.

    Raises
    ------
    FileFormatError
        Where the bytes are not text.

    Examples
    --------
    >>> split_lines("a.txt", b"1,2\r\n\n3,4")
    ['1,2', '3,4']
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text file in UTF-8.") from error
    if "\0" in text:
        raise FileFormatError(f"{path}: not a text file (it holds zero bytes).")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [line for line in lines if line and not line.isspace()]


def sniff_delimiter(line: str) -> str | None:
    """Return the delimiter of a line, or None where white space separates.

    Parameters
    ----------
    line : str
        Of text.

    Returns
    -------
    str or None

    Examples
    --------
    >>> sniff_delimiter("1,2,3"), sniff_delimiter("1 2 3")
    (',', None)
    """
    for delimiter in DELIMITERS:
        if delimiter in line:
            return delimiter
    return None


def ends_with_line(path: str | Path) -> bool:
    r"""Tell whether a file ends with a line end, as tools write them.

    Parameters
    ----------
    path : str or Path
        Of the file.

    Returns
    -------
    bool
        False for a file that may have been cut inside its last cell.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv"
    ...     _ = path.write_text("1,2\n3,4")
    ...     ends_with_line(path)
    False
    """
    with Path(path).open("rb") as file:
        file.seek(max(0, Path(path).stat().st_size - 1))
        return file.read(1) in (b"\n", b"\r")
