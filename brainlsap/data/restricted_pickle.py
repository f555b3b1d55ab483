"""Read pickled arrays and SciPy matrices without running anything that is in them.

A pickle is a program, and Python's own reader runs it. Here its instructions are only
listed, and a small stack machine follows those that build numbers, text, lists,
dictionaries, numeric arrays and sparse matrices. Every constructor is one of ours;
any other name in the file is refused before anything is made of it.
"""

import pickletools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brainlsap.data.pickled_parts import ADMITTED, Buildable, plain_value
from brainlsap.exceptions import FileFormatError

_MARK: Any = object()

# Constants stand in the instruction's argument.
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"),
    *("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    "MARK": lambda: _MARK,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = {"PROTO", "FRAME"}


class _RefusedError(Exception):
    """What the file asks for has no place in arrays and matrices."""


def read_restricted_pickle(path: str | Path) -> Any:
    r"""Read a pickle that holds arrays, SciPy matrices, lists and dictionaries only.

    Nothing in the file is run or imported: a stack machine of this package follows
    its instructions and knows numeric arrays, CSR and CSC matrices, numbers, text
    and containers of them. Pickles of Python 2 and of any protocol are read.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    object
        Arrays, SciPy sparse arrays, or lists and dictionaries of these.

    Raises
    ------
    FileFormatError
        If the file is truncated, no pickle, or asks for anything else (a function
        to call, arrays of objects): the message names what.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "two.pickle"
    >>> _ = path.write_bytes(b"(lp0\nI1\naI2\na.")
    >>> read_restricted_pickle(path)
    [1, 2]
    """
    content = Path(path).read_bytes()
    try:
        return plain_value(_Machine().run(content))
    except _RefusedError as error:
        raise FileFormatError(
            f"{path}: {error}. Only numeric arrays, SciPy matrices, numbers, text "
            "and lists or dictionaries of them are read from a pickle; nothing of "
            "it was run."
        ) from None
    except (
        # what numbers, shapes and stacks that do not fit can raise
        *(ArithmeticError, AttributeError, LookupError, MemoryError, TypeError),
        *(RecursionError, ValueError, struct.error),
    ) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileFormatError(
            f"{path} is no whole pickle of arrays ({reason}); it is truncated or "
            "something else. Get the file again."
        ) from None


class _Machine:
    """The stack, the marks and the memory of a pickle that is being followed."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        """Follow every instruction; return what STOP leaves."""
        for operation, argument, _ in pickletools.genops(content):
            name = operation.name
            if name == "STOP":
                (found,) = self.stack
                return found
            if name in _LITERALS:
                self.stack.append(argument)
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name]())
            elif name not in _IGNORED:
                self._act(name, argument)
        raise ValueError("it has no end")

    def _act(self, name: str, argument: Any) -> None:
        action = _ACTIONS.get(name)
        if action is not None:
            action(self)
        elif name in _TUPLES:
            self._gather(_TUPLES[name])
        elif name in {"PUT", "BINPUT", "LONG_BINPUT"}:
            self.memory[int(argument)] = self.stack[-1]
        elif name in {"GET", "BINGET", "LONG_BINGET"}:
            self.stack.append(self.memory[int(argument)])
        elif name == "GLOBAL":
            self._name(*argument.split(" ", 1))
        else:
            raise _RefusedError(f"the instruction {name} has no place here")

    def _gather(self, size: int) -> None:
        if len(self.stack) < size:
            raise ValueError("its stack runs empty")
        parts = tuple(self.stack[len(self.stack) - size :])
        del self.stack[len(self.stack) - size :]
        self.stack.append(parts)

    def _since_mark(self) -> list[Any]:
        start = len(self.stack) - 1
        while self.stack[start] is not _MARK:
            start -= 1
            if start < 0:
                raise ValueError("a mark is missing")
        parts = self.stack[start + 1 :]
        del self.stack[start:]
        return parts

    def _name(self, module: str, name: str) -> None:
        if (module, name) not in ADMITTED:
            raise _RefusedError(f"it names {module}.{name}")
        self.stack.append(ADMITTED[module, name])

    def _stack_name(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self._name(module, name)

    def _make(self) -> None:
        arguments, maker = self.stack.pop(), self.stack.pop()
        # only what `_name` put there may be called; text and numbers may not
        if not any(maker is one for one in ADMITTED.values()):
            raise _RefusedError("it calls something that is no array or matrix")
        if not isinstance(arguments, tuple):
            raise TypeError("arguments are no tuple")
        self.stack.append(maker(*arguments))

    def _build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], Buildable):
            raise _RefusedError("it sets the state of something that is no array")
        self.stack[-1].build(state)

    def _append(self, parts: list[Any]) -> None:
        if not isinstance(self.stack[-1], list):
            raise TypeError("only lists are appended to")
        self.stack[-1].extend(parts)

    def _fill(self, parts: list[Any]) -> None:
        if not isinstance(self.stack[-1], dict):
            raise TypeError("only dictionaries have items")
        self.stack[-1].update(zip(parts[::2], parts[1::2], strict=True))


def _pop_pair(machine: _Machine) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine._fill([key, value])


def _new_dict(machine: _Machine) -> None:
    parts = machine._since_mark()
    machine.stack.append({})
    machine._fill(parts)


_ACTIONS: dict[str, Callable[[_Machine], Any]] = {
    "POP": lambda machine: machine.stack.pop(),
    "POP_MARK": _Machine._since_mark,
    "DUP": lambda machine: machine.stack.append(machine.stack[-1]),
    "LIST": lambda machine: machine.stack.append(machine._since_mark()),
    "TUPLE": lambda machine: machine.stack.append(tuple(machine._since_mark())),
    "DICT": _new_dict,
    "APPEND": lambda machine: machine._append([machine.stack.pop()]),
    "APPENDS": lambda machine: machine._append(machine._since_mark()),
    "SETITEM": _pop_pair,
    "SETITEMS": lambda machine: machine._fill(machine._since_mark()),
    "MEMOIZE": lambda machine: machine.memory.__setitem__(
        len(machine.memory), machine.stack[-1]
    ),
    "STACK_GLOBAL": _Machine._stack_name,
    "REDUCE": _Machine._make,
    "NEWOBJ": _Machine._make,
    "BUILD": _Machine._build,
}
