"""`load`: which kind of file it is, and the way from there to its object."""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

import numpy as np

from .. import devices, dtypes
from . import legacy, options
from .archive import Archive, Record, first_name, is_zip
from .errors import FileFormatError
from .pickles import Machine, Policy, Reader
from .places import MapLocation
from .rebuild import Rebuilder
from .source import FileLike, MappedSource, Source
from .storages import FileStorage

__all__ = ["Checkpoint", "load", "read_zip"]


def load(
    f: FileLike,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """The object that `save` (PyTorch's or ours) wrote to a path or a seekable stream.

    Nothing in the file is run: it may name what is on a closed list, and what `serialization.add_safe_globals` added.
    weights_only: False says that the file is trusted: it may then make objects of all classes that can be imported.
    mmap: map the file (a path) into memory, and read a storage only when one of its tensors is touched.
    map_location: where storages go: a device, a dict from the file's locations, or a function `(storage, location)`.

    Differs from PyTorch: with `weights_only=False` too no function is called that a file names, those aside that rebuild
    NumPy's values, and no class of modules that start processes or run code is made.

    Raises: FileNotFoundError where there is no file; UnpicklingError for what is no file of tensors, and for
    classes that are not allowed.

    >>> import io
    >>> file = io.BytesIO()
    >>> xtensor.save({"step": 3}, file)
    >>> _ = file.seek(0)
    >>> xtensor.load(file)
    {'step': 3}
    """
    if pickle_module is not None:
        if pickle_module is not pickle:
            raise ValueError(
                "xtensor.load reads pickles by itself and runs nothing of them: pickle_module cannot be another than pickle"
            )
        if weights_only:
            raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
        weights_only = False
    encoding = pickle_load_args.pop("encoding", "utf-8")
    if pickle_load_args:
        raise TypeError(f"load() got an unexpected keyword argument '{next(iter(pickle_load_args))}'")
    if mmap:
        if not isinstance(f, (str, os.PathLike)):
            raise ValueError("f must be a file path in order to use the mmap argument")
        # The mapping lives as long as a storage in it; only its file is closed.
        with MappedSource(f) as source:
            return load_source(source, map_location, encoding, True, weights_only is False)
    with Source.open(f) as source:
        return load_source(source, map_location, encoding, False, weights_only is False)


def load_source(
    source: Source, map_location: MapLocation, encoding: str, mapped: bool, trusting: bool
) -> Any:
    if source.size == 0:
        raise EOFError("Ran out of input: the file is empty")
    if is_zip(source):
        checkpoint = read_zip(source)
        rebuilder = Rebuilder(checkpoint.opener(mapped), map_location, trusting)
        made = checkpoint.unpickle(rebuilder, encoding)
        if not mapped:
            rebuilder.finish()
        return made
    if mapped:
        raise FileFormatError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please "
            "torch.save your checkpoint with this option in order to use mmap."
        )
    if source.size > 8 and source.read(8, 1) == b"{" and source.read(7, 1) == b"\0":
        raise FileFormatError(
            "this is a safetensors file: xtensor.serialization.safetensors.load_file reads it"
        )
    return legacy.load(source, map_location, encoding, trusting)


class Checkpoint:
    """A zip file of PyTorch's: its archive, and the byte order of its storages."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.swapped = byte_order(archive) != sys.byteorder

    def unpickle(self, policy: Policy, encoding: str = "utf-8") -> Any:
        """The object of the archive, by what `policy` allows."""
        record = self.archive.record("data.pkl")
        # Compared once before anything is made of it.
        self.archive.read("data.pkl")
        name = f"{self.archive.root}/data.pkl"
        reader = Reader(self.archive.source, record.start, record.start + record.size, name)
        return Machine(reader, policy, encoding).load()

    def record(self, key: str, nbytes: int) -> Record:
        """Where a storage lies; it must have the size that the pickle says."""
        record = self.archive.record(f"data/{key}")
        if record.size != nbytes:
            raise FileFormatError(
                f"the storage {key!r} should have {nbytes} bytes, and its record has {record.size}"
            )
        return record

    def opener(self, mapped: bool) -> Any:
        def open_storage(key: str, nbytes: int, dtype: dtypes.dtype, device: devices.device) -> FileStorage:
            record = self.record(key, nbytes)

            def fetch() -> np.ndarray[Any, Any]:
                return self.archive.read_array(record)

            return FileStorage(fetch, nbytes, dtype, device, self.swapped, mapped)

        return open_storage


def read_zip(source: Source) -> Checkpoint:
    """The checkpoint in a zip file, its container checked."""
    if first_name(source).endswith(".npy"):
        raise FileFormatError("this is a .npz file: xtensor.serialization.npz.load reads it")
    archive = Archive(source)
    if "constants.pkl" in archive:
        raise RuntimeError(
            "the file is a TorchScript archive, which holds a program: save the module's state_dict instead"
        )
    if ".data/extern_modules" in archive:
        raise RuntimeError(
            "the file is an archive of torch.package, which holds code: save the module's state_dict instead, or a program with export.save"
        )
    if "data.pkl" not in archive:
        raise FileFormatError("the zip archive holds no data.pkl: it is no checkpoint")
    return Checkpoint(archive)


def byte_order(archive: Archive) -> str:
    if "byteorder" in archive:
        found = archive.read("byteorder")
        if found not in (b"little", b"big"):
            raise FileFormatError(f"Unknown endianness type: {found[:40]!r}")
        return found.decode()
    assumed = options.get_default_load_endianness()
    if assumed is options.LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if assumed is options.LoadEndianness.BIG else "little"
