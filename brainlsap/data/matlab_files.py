"""Read the arrays of MATLAB files of level 4 and 5 without trusting a byte of them.

Level 5 (MATLAB 5 to 7) is a row of tagged elements, possibly compressed; level 4 (DSI
Studio) a row of plain arrays. Read are full arrays of real numbers, text and cells of
text; structures, sparse and complex arrays are passed over. Every length is checked
against what is there: the usual reader may end the process on a broken file.
"""

import zlib
from collections.abc import Iterator

import numpy as np

# Number types of level 5 by code, and of level 4 by the third digit of its first word.
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
_TYPES |= {12: "i8", 13: "u8", 16: "u1", 17: "u2", 18: "u4"}
_TYPES_4 = ("f8", "f4", "i4", "i2", "u2", "u1")
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2"}
_CLASSES |= {12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_MATRIX, _COMPRESSED, _UTF8, _UTF16 = 14, 15, 16, 17
_CELL, _CHAR = 1, 4
_MOST_AXES = 3


def parse_matlab(data: bytes, most_bytes: int) -> dict[str, np.ndarray]:
    r"""Return the arrays of a MATLAB file by name.

    Parameters
    ----------
    data : bytes
        The file, level 4 or 5.
    most_bytes : int
        More than this is not unpacked.

    Returns
    -------
    dict of str to array
        Numbers in their type; text as an array of its rows; cells as an array of
        objects.

    Raises
    ------
    ValueError
        Where the bytes are no such file, or cut short.

    Examples
    --------
    >>> head = np.array([0, 1, 2, 0, 2], dtype="<i4").tobytes()
    >>> parse_matlab(head + b"W\0" + np.array([3.0, 4]).tobytes(), 100)
    {'W': array([[3., 4.]])}
    """
    if len(data) >= 128 and data[126:128] in (b"IM", b"MI"):
        order = "<" if data[126:128] == b"IM" else ">"
        return dict(_arrays_5(data[128:], order, most_bytes))
    return dict(_arrays_4(data))


def _arrays_4(data: bytes) -> Iterator[tuple[str, np.ndarray]]:
    place = 0
    while place < len(data):
        head = data[place : place + 20]
        if len(head) < 20:
            raise ValueError("an array's header is cut short")
        words = np.frombuffer(head, "<i4").tolist()
        order = "<" if 0 <= words[0] < 1000 else ">"
        kind, rows, columns, is_complex, n_name = np.frombuffer(
            head, f"{order}i4"
        ).tolist()
        digits = f"{kind % 1000:03d}"
        if not 0 <= kind < 5000 or min(rows, columns, n_name) < 0 or digits[0] != "0":
            raise ValueError("neither a MATLAB file of level 4 nor of level 5")
        if int(digits[1]) >= len(_TYPES_4) or is_complex not in (0, 1):
            raise ValueError("an array of unknown numbers")
        dtype = np.dtype(f"{order}{_TYPES_4[int(digits[1])]}")
        place += 20
        name = _take(data, place, n_name).rstrip(b"\0").decode("latin-1")
        size = rows * columns * dtype.itemsize
        content = _take(data, place + n_name, size)
        place += n_name + size * (1 + is_complex)
        values = np.frombuffer(content, dtype).reshape(rows, columns, order="F")
        if digits[2] == "1":
            codes = values.astype(np.uint32) if (values >= 0).all() else values * 0
            # rows of no characters may be as many as a number can say
            rows_held = codes[: codes.size]
            yield name, np.array(["".join(_chars(row)) for row in rows_held], dtype=str)
        elif digits[2] == "0" and not is_complex:
            yield name, values


def _chars(codes: np.ndarray) -> list[str]:
    return [chr(int(code)) for code in codes if 0 < code < 0x110000]


def _take(data: bytes, start: int, length: int) -> bytes:
    if start + length > len(data):
        raise ValueError(
            f"expected {length} bytes at {start}, {len(data) - start} left"
        )
    return data[start : start + length]


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Give the type and the content of every element in a row of them."""
    place = 0
    while place < len(data):
        first, second = np.frombuffer(_take(data, place, 8), f"{order}u4").tolist()
        if first >> 16:  # four bytes or less stand in the tag itself
            if first >> 16 > 4:
                raise ValueError("a small element of more than 4 bytes")
            yield first & 0xFFFF, data[place + 4 : place + 4 + (first >> 16)]
            place += 8
            continue
        yield first, _take(data, place + 8, second)
        place += 8 + second
        place += 0 if first == _COMPRESSED else -second % 8


def _arrays_5(
    data: bytes, order: str, most_bytes: int
) -> Iterator[tuple[str, np.ndarray]]:
    left = most_bytes
    for kind, content in _elements(data, order):
        if kind == _COMPRESSED:
            unpacker = zlib.decompressobj()
            unpacked = unpacker.decompress(content, left + 1)
            left -= len(unpacked)
            if left < 0:
                raise ValueError(f"it unpacks to more than {most_bytes >> 20} MiB")
            if not unpacker.eof:
                raise ValueError("compressed content is cut short")
            found = list(_elements(unpacked, order))
        else:
            found = [(kind, content)]
        for inner, matrix in found:
            if inner == _MATRIX:
                name, array = _parse_matrix(matrix, order)
                if array is not None:
                    yield name, array


def _parse_matrix(data: bytes, order: str) -> tuple[str, np.ndarray | None]:
    """Return name and array; None for a kind that is passed over."""
    parts = list(_elements(data, order))
    if len(parts) < 3 or len(parts[0][1]) != 8:
        raise ValueError("an array without its three headers")
    flags = int(np.frombuffer(parts[0][1][:4], f"{order}u4")[0])
    kind, is_complex = flags & 0xFF, bool(flags & 0x0800)
    shape = tuple(_numbers(parts[1], order).tolist())
    name = parts[2][1].decode("latin-1")
    if not 2 <= len(shape) <= _MOST_AXES or min(shape) < 0 or is_complex:
        return name, None
    if kind == _CELL:
        cells = [_parse_matrix(content, order)[1] for _, content in parts[3:]]
        array = np.empty(len(cells), dtype=object)
        array[:] = [_as_text(cell) for cell in cells]
        return name, array
    if kind == _CHAR and len(parts) > 3:
        return name, _text_rows(parts[3], shape, order)
    if kind in _CLASSES and len(parts) > 3:
        values = _numbers(parts[3], order)
        if values.size != np.prod([float(n) for n in shape]):
            raise ValueError(f"{name}: {values.size} numbers for the shape {shape}")
        return name, values.reshape(shape, order="F").astype(_CLASSES[kind])
    return name, None


def _numbers(part: tuple[int, bytes], order: str) -> np.ndarray:
    kind, content = part
    if kind not in _TYPES:
        raise ValueError(f"numbers of the unknown type {kind}")
    return np.frombuffer(content, np.dtype(f"{order}{_TYPES[kind]}"))


def _text_rows(
    part: tuple[int, bytes], shape: tuple[int, ...], order: str
) -> np.ndarray:
    """Return the rows of text, which MATLAB keeps by columns."""
    kind, content = part
    if kind == _UTF8:
        text = content.decode("utf-8", "replace")
    elif kind == _UTF16:
        text = content.decode({"<": "utf-16-le", ">": "utf-16-be"}[order], "replace")
    else:
        text = "".join(_chars(_numbers(part, order)))
    n_rows = shape[0]
    if n_rows <= 1 or not text or len(text) % n_rows:
        return np.array([text])
    return np.array([text[row::n_rows] for row in range(n_rows)])


def _as_text(cell: np.ndarray | None) -> str:
    if cell is None or cell.size == 0:
        return ""
    return str(cell.ravel()[0]) if cell.size == 1 else "".join(map(str, cell.ravel()))
