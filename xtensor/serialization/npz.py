"""NumPy's `.npz` files: arrays by name, read within bounds and without pickles."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from .. import devices, dtypes
from ..tensor import Tensor, host_array, wrap
from .atomic import replacing
from .errors import FileFormatError
from .source import FileLike, Source, aligned
from .storages import place

__all__ = ["load", "save"]

LARGEST_HEADER = 10_000
# What a compressed file may grow to without being asked for: so many times its size, or so many bytes.
GROWTH, SMALL = 64, 1 << 28


def save(f: FileLike, tensors: Mapping[str, Tensor], *, compressed: bool = False) -> None:
    """Write tensors by name to a path (replaced only once it is whole) or a stream.

    Raises TypeError for bfloat16 and float8, which the format does not know.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, tensor in tensors.items():
        if tensor.dtype is dtypes.bfloat16 or tensor.dtype in dtypes.FLOAT8:
            raise TypeError(
                f".npz files know no {tensor.dtype} (tensor {name!r}): use xtensor.save or safetensors"
            )
        arrays[name] = host_array(tensor.detach())
    if isinstance(f, (str, os.PathLike)):
        with replacing(f) as stream:
            write(stream, arrays, compressed)
    else:
        write(f, arrays, compressed)


def write(stream: IO[bytes], arrays: dict[str, np.ndarray[Any, Any]], compressed: bool) -> None:
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", kind, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as record:
                npy.write_array(record, array, allow_pickle=False)


def load(
    f: FileLike, device: devices.DeviceLike = None, *, max_bytes: int | None = None
) -> dict[str, Tensor]:
    """The tensors of a path or a seekable stream by name.

    max_bytes: what the arrays may take together; by default 64 times the file's size, and 256 MiB in any case.
    """
    where = devices.resolve(device)
    with checked(f) as archive:
        arrays = read(archive, max_bytes)
    return {name: wrap(place(array, where)) for name, array in arrays.items()}


@contextmanager
def checked(f: FileLike) -> Iterator[zipfile.ZipFile]:
    """The archive, to be read inside: whatever the libraries say of a damaged file becomes a FileFormatError."""
    with Source.open(f) as source:
        try:
            with zipfile.ZipFile(source.stream) as archive:
                yield archive
        except FileFormatError:
            raise
        except Exception as error:
            raise FileFormatError(f"the file is no .npz file, or a damaged one: {error}") from error


def read(archive: zipfile.ZipFile, max_bytes: int | None) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an archive, after its directory was found to be within bounds."""
    entries = archive.infolist()
    packed, unpacked = sum(e.compress_size for e in entries), sum(e.file_size for e in entries)
    limit = max(SMALL, GROWTH * packed) if max_bytes is None else max_bytes
    if unpacked > limit:
        raise FileFormatError(
            f"the file of {packed} bytes would grow to {unpacked} bytes: pass max_bytes to load it nevertheless"
        )
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for entry in entries:
        name = entry.filename.removesuffix(".npy")
        if name in arrays or name == entry.filename:
            raise FileFormatError(
                f"the archive holds {entry.filename[:80]!r}, which is no array or there twice"
            )
        with archive.open(entry) as stream:
            arrays[name] = read_array(stream, entry, name)
    return arrays


def read_header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Sizes, order and type of an array, whose bytes come next."""
    version = npy.read_magic(stream)
    readers: dict[Any, Any] = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise FileFormatError(f"the array {name[:80]!r} has the format version {version}, which is unknown")
    return readers[version](stream, max_header_size=LARGEST_HEADER)


def read_array(stream: IO[bytes], entry: zipfile.ZipInfo, name: str) -> np.ndarray[Any, Any]:
    shape, fortran, dtype = read_header(stream, name)
    if dtype.hasobject:
        raise FileFormatError(f"the array {name[:80]!r} holds pickled Python objects, which are not read")
    if dtype.newbyteorder("=") not in dtypes.FROM_NUMPY:
        raise FileFormatError(f"the array {name[:80]!r} has the type {dtype}, which no tensor has")
    nbytes = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or len(shape) > 64 or nbytes != entry.file_size - stream.tell():
        raise FileFormatError(f"the array {name[:80]!r} of sizes {shape} does not fit its record")
    data = aligned(nbytes)
    done = 0
    while done < nbytes:
        piece = stream.read(min(nbytes - done, 1 << 24))
        if not piece:
            raise FileFormatError(f"the array {name[:80]!r} is truncated")
        data[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    stream.read(1)  # the end: zipfile compares the checksum there
    values = data.view(dtype)
    if not dtype.isnative:
        values = values.astype(dtype.newbyteorder("="))
    if dtype == np.bool_:
        values = data != 0
    return np.ascontiguousarray(values.reshape(shape, order="F" if fortran else "C")).reshape(shape)
