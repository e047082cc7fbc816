"""Elements of XLA's arrays as Python's numbers, read where they lie: by `struct`, in half the time that an array of NumPy's around them takes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["element"]

READ: dict[Any, tuple[Callable[..., tuple[Any, ...]], int]] = {
    np.dtype(code): (struct.Struct(code).unpack_from, struct.calcsize(code)) for code in "?bBhHiIqQefd"
}
"""How an element of a dtype that Python's numbers stand for is read, and its bytes; `struct` and NumPy have the same names for them."""


def element(array: Any, offset: int) -> Any:
    """The number at a place of a dense array; None where it does not lie in one piece of memory that Python sees, or has been given up.

    A program that makes it is waited for.
    """
    found = READ.get(array.dtype)
    if found is None:
        return None
    read, size = found
    try:
        return read(array, offset * size)[0]
    except BufferError:
        return None
