"""The only things that a restricted pickle may name, made by constructors of ours."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from brainlsap.data.sparse_parts import matrix_of_parts

# Signed, unsigned, floating and boolean; no objects, no records.
_NUMERIC = "biuf"
# Of a type: order, kind and bytes. NumPy takes longer texts for records or for Python.
_CODE = re.compile(r"[<>=|]?[A-Za-z][0-9]{0,5}")


class Buildable:
    """Something that comes empty and is given its state afterwards."""

    value: Any = None

    def build(self, state: Any) -> None:
        """Take the state; raise where it does not fit."""
        raise NotImplementedError


class DType(Buildable):
    """A numeric type of array elements."""

    def __init__(self, code: str, *_: object) -> None:
        if not _CODE.fullmatch(str(code)):
            raise TypeError(f"arrays of type {code!r} are not numeric")
        self.value = np.dtype(str(code))
        if self.value.kind not in _NUMERIC:
            raise TypeError(f"arrays of type {code!r} are not numeric")

    def build(self, state: Any) -> None:
        """Take the byte order; the rest belongs to types that are refused."""
        order = state[1]
        if order in {"<", ">"}:
            self.value = self.value.newbyteorder(order)


class Array(Buildable):
    """An array that is made of its bytes."""

    def __init__(self, *_: object) -> None:
        self.value = np.empty(0)

    def build(self, state: Any) -> None:
        """Take shape, type, order and bytes."""
        _, shape, dtype, fortran, content = state
        self.value = _array(content, dtype, shape, "F" if fortran else "C")


class Matrix(Buildable):
    """A CSR or CSC matrix that is made of its three arrays."""

    layout: type = sparse.csr_array

    def __init__(self, *_: object) -> None:
        pass

    def build(self, state: Any) -> None:
        """Take data, indices, pointers and shape."""
        parts = [plain_value(state[name]) for name in ("data", "indices", "indptr")]
        shape = tuple(int(plain_value(n)) for n in state["_shape"])
        if not all(isinstance(part, np.ndarray) for part in parts):
            raise TypeError("a matrix is not made of arrays")
        data, indices, pointers = parts
        self.value = matrix_of_parts(data, indices, pointers, shape, self.layout)


class ColumnMatrix(Matrix):
    """A CSC matrix."""

    layout = sparse.csc_array


def plain_value(found: Any) -> Any:
    """Return what was built, without the records that it was built in."""
    return _plain(found, {})


def _plain(found: Any, done: dict[int, Any]) -> Any:
    """Unwrap each container once: a small file can name one a million times."""
    if isinstance(found, Buildable):
        return found.value
    if not isinstance(found, list | tuple | dict):
        return found
    if id(found) not in done:
        # a container inside itself would go on for ever
        done[id(found)] = None
        if isinstance(found, dict):
            made: Any = {_plain(k, done): _plain(v, done) for k, v in found.items()}
        else:
            made = type(found)(_plain(one, done) for one in found)
        done[id(found)] = made
    return done[id(found)]


def _bytes(content: Any) -> bytes:
    # text of Python 2 is bytes, and its reader hands them over as Latin-1
    return content.encode("latin-1") if isinstance(content, str) else bytes(content)


def _array(content: Any, dtype: Any, shape: Any, order: str) -> np.ndarray:
    if not isinstance(dtype, DType):
        raise TypeError("the type of an array is missing")
    if not isinstance(content, str | bytes | bytearray):
        raise TypeError("the elements of an array are no bytes")
    flat = np.frombuffer(_bytes(content), dtype.value)
    return flat.reshape(tuple(shape), order="F" if order == "F" else "C").copy()


def _from_buffer(content: Any, dtype: Any, shape: Any, order: Any) -> Array:
    made = Array()
    made.value = _array(content, dtype, shape, str(order))
    return made


def _scalar(dtype: Any, content: Any) -> Any:
    return _array(content, dtype, (), "C")[()]


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in {"latin1", "latin-1"}:
        raise TypeError("text is encoded in another way than arrays are")
    return text.encode("latin-1")


def _reconstruct(made: Any, *_: object) -> Any:
    if made is not Array and not (isinstance(made, type) and issubclass(made, Matrix)):
        raise TypeError("something else than an array is made")
    return made()


def _dictionary(*_: object) -> dict:
    return {}


def _list(*_: object) -> list:
    return []


def _object(*_: object) -> None:
    return None


_MULTIARRAY = ("numpy.core.multiarray", "numpy._core.multiarray")
_NUMERICS = ("numpy.core.numeric", "numpy._core.numeric")

# By the names that Python 2 and 3, NumPy 1 and 2, and SciPy old and new write.
ADMITTED: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): DType,
    ("numpy", "ndarray"): Array,
    ("_codecs", "encode"): _encode,
    ("collections", "defaultdict"): _dictionary,
    ("copy_reg", "_reconstructor"): _reconstruct,
    ("copyreg", "_reconstructor"): _reconstruct,
    ("__builtin__", "object"): _object,
    ("builtins", "object"): _object,
    ("__builtin__", "list"): _list,
    ("builtins", "list"): _list,
    **{(module, "_reconstruct"): _reconstruct for module in _MULTIARRAY},
    **{(module, "scalar"): _scalar for module in _MULTIARRAY},
    **{(module, "_frombuffer"): _from_buffer for module in _NUMERICS},
    **{
        (f"scipy.sparse{module}", f"{layout}_{kind}"): made
        for layout, made in (("csr", Matrix), ("csc", ColumnMatrix))
        for module in ("", f".{layout}", f"._{layout}")
        for kind in ("matrix", "array")
    },
}
