"""Read the pickles that CIFAR comes in without running anything that is in them.

The official files are pickles of dictionaries (bytes keys) of lists, strings and uint8 arrays, written by Python 2.
The NumPy names in them are resolved to stand-ins that only hold the bytes; any other name, and with it any code, is
refused.
"""

# mypy: disable-error-code="attr-defined, assignment"
# The unpickler in Python is private, and its stub incomplete.

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from dign.core.errors import UserError


def read_pickled_dictionary(data: bytes, what: str) -> dict[bytes, Any]:
    """Read the dictionary in a CIFAR pickle; `what` names the file in errors.

    Values are None, numbers, bytes, strings, lists, tuples, dictionaries, and uint8 arrays.
    """
    try:
        found = _DataUnpickler(data).load()
        if not isinstance(found, dict):
            raise UserError("it does not contain a dictionary, as the official file does.")
        return {key: value.array() if hasattr(value, "array") else value for key, value in found.items()}
    except UserError as error:
        raise UserError(f"{what} is refused: {error}") from error
    except Exception as error:  # a damaged pickle can raise anything
        raise UserError(f"{what} is truncated or damaged: remove it and fetch it again.") from error


def _make_stand_ins() -> dict[tuple[str, str], Any]:
    """Make what the permitted names resolve to: new for every file, so that a file cannot change them for the next."""

    class Type:
        def __init__(self, code: Any, *options: Any) -> None:
            self.code = code

        def __setstate__(self, state: Any) -> None:
            """Byte order and alignment: nothing that one-byte numbers have."""

    class Array:
        def __setstate__(self, state: Any) -> None:
            _, self.shape, self.type, self.is_fortran, self.raw = state

        def array(self) -> np.ndarray:
            if self.type.code not in (b"u1", "u1"):
                raise UserError("it contains an array of something other than bytes.")
            flat = np.frombuffer(self.raw, dtype=np.uint8)
            return flat.reshape(self.shape, order="F" if self.is_fortran else "C")

    def reconstruct(*ignored: Any) -> Array:
        return Array()

    return {
        ("numpy", "ndarray"): Array,
        ("numpy", "dtype"): Type,
        ("numpy.core.multiarray", "_reconstruct"): reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): reconstruct,
    }


class _DataUnpickler(pickle._Unpickler):
    """The unpickler written in Python: the one in C can be made to fill the memory by a damaged memo index."""

    dispatch = dict(pickle._Unpickler.dispatch)

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="bytes")
        self._stand_ins = _make_stand_ins()

    def find_class(self, module: str, name: str) -> Any:
        known = self._stand_ins.get((module, name))
        if known is None:
            raise UserError("it refers to code, which a data file must not.")
        return known

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self._set(items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key, value])

    def _set(self, items: list[Any]) -> None:
        """Keys are strings: hashing a key of nested tuples could take forever."""
        target = self.stack[-1]
        if type(target) is not dict or not all(type(key) in (bytes, str) for key in items[::2]):
            raise UserError("it contains something other than a dictionary of names.")
        target.update(zip(items[::2], items[1::2], strict=True))

    def refuse(self) -> None:
        raise UserError("it contains something that the official files do not.")

    dispatch[pickle.SETITEMS[0]] = load_setitems
    dispatch[pickle.SETITEM[0]] = load_setitem
    for _code in (pickle.DICT, pickle.FROZENSET, pickle.ADDITEMS, pickle.EMPTY_SET, pickle.PERSID, pickle.BINPERSID):
        dispatch[_code[0]] = refuse
