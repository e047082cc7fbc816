"""Mutations of valid files, each loaded: `python -m tests.fuzz.files --mutations 10000`.

A load either gives an object or raises one of the errors that a damaged file may raise. It runs nothing, takes no more
memory than the file justifies, and ends.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import multiprocessing
import os
import pickle
import shutil
import struct
import sys
import tempfile
import time
import tokenize  # noqa: F401 - NumPy imports it where a header is odd
import tracemalloc
import unicodedata  # noqa: F401 - so does Python, for names that are odd
import weakref
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.fuzz.judging import Hang, time_limit

SECONDS = 10  # one mutation
BATCH = 250
MEMORY = 64 << 20  # bytes, for files of a few kilobytes
EXTREMES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)  # fmt: skip
WATCHED = (
    "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.forkpty", "os.remove", "os.rename", "os.mkdir",
    "os.rmdir", "os.chmod", "os.link", "os.symlink", "os.putenv", "os.kill", "subprocess.Popen", "shutil.rmtree", "exec",
    "import", "socket.connect", "socket.bind", "ctypes.dlopen", "pickle.find_class", "marshal.loads", "builtins.input",
)  # fmt: skip
# Pickle code that a mutation may put anywhere.
SNIPPETS = (
    b"cos\nsystem\nX\x04\0\0\0true\x85R", b"cbuiltins\neval\nX\x03\0\0\x001/0\x85R", b"cposix\nsystem\n", b"\x93", b"(",
    b"t", b"u", b"e", b"s", b"R", b"\x81", b"b", b"Q", b"0", b"2", b"\x85" * 50, b"2\x86" * 40, b"}", b"]", b")", b"\x8f",
    b"\x90", b"j\xff\xff\xff\xff", b"r\xff\xff\xff\x7f", b"\x8b\xff\xff\xff\x7f", b"X\xff\xff\xff\x7f", b"J\xff\xff\xff\xff",
    b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch._utils\n_rebuild_parameter\n", b"ctorch\nSize\n", b"ctorch\nfloat64\n",
    b"ctorch._tensor\n_rebuild_from_type_v2\n", b"ccollections\nOrderedDict\n", b"cbuiltins\nbytearray\n", b"ctorch\ndevice\n",
    b"cxtensor.nn.modules.linear\nLinear\n)\x81", b"}X\x08\0\0\0_storageK\x01sb", b"h\x00", b"h\x01", b"q\x00", b"\x88", b"N",
)  # fmt: skip


@dataclass
class Tally:
    """What came of mutations: how often each kind of file loaded or was refused, and what went wrong."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    slowest: float = 0.0
    memory: int = 0

    def add(self, other: Tally) -> None:
        self.outcomes += other.outcomes
        self.failures += other.failures
        self.slowest = max(self.slowest, other.slowest)
        self.memory = max(self.memory, other.memory)


# ---- valid files ----------------------------------------------------------------------------------------------------


def contents() -> Any:
    """What checkpoints hold, in a few kilobytes."""
    import xtensor as xt

    base = xt.arange(24.0).reshape(4, 6)
    model = xt.nn.Linear(3, 2)
    return {
        "base": base,
        "view": base[1:, ::2],
        "tied": base.t(),
        "model": model.state_dict(),
        "parameter": xt.nn.Parameter(xt.ones(3)),
        "types": [
            xt.ones(2, dtype=d)
            for d in (xt.bfloat16, xt.bool, xt.int64, xt.complex64, xt.uint16, xt.float8_e5m2)
        ],
        "conj": (xt.ones(2) * 1j).conj(),
        "meta": xt.ones(2, 3, device="meta"),
        "numbers": [1, -2, 2**70, 1.5, None, True, 3j],
        "text": "a text",
        "other": [b"bytes", bytearray(b"more"), {1, 2}, xt.Size([1, 2]), xt.device("cpu"), xt.float16],
    }


def old_file(value: Any) -> bytes:
    """A checkpoint as PyTorch wrote it before 1.6."""
    from xtensor.serialization import saving

    body = io.BytesIO()
    pickler = saving.Pickler(body, 2)
    pickler.dump(value)
    info = {"protocol_version": 1001, "little_endian": sys.byteorder == "little", "type_sizes": {}}
    parts = [pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, info)]
    parts += [body.getvalue(), pickle.dumps([str(key) for key in range(len(pickler.storages))], 2)]
    for storage, dtype in pickler.storages.items():
        parts += [struct.pack("=q", storage.nbytes() // dtype.itemsize), saving.bytes_of(storage).tobytes()]
    return b"".join(parts)


def valid_files() -> dict[str, bytes]:
    """The files that are mutated, by kind; safetensors where its package is installed."""
    import xtensor as xt
    from xtensor.serialization import npz, safetensors

    value = contents()
    files = {"older": old_file(value)}
    for kind, protocol in (("zip", 2), ("zip of protocol 4", 4)):
        stream = io.BytesIO()
        xt.save(value, stream, pickle_protocol=protocol)
        files[kind] = stream.getvalue()
    plain = {
        "a": xt.arange(12.0).reshape(3, 4),
        "b": xt.ones(5, dtype=xt.int8),
        "c": xt.ones(2, dtype=xt.complex64),
    }
    for kind, compressed in (("npz", False), ("npz compressed", True)):
        stream = io.BytesIO()
        npz.save(stream, plain, compressed=compressed)
        files[kind] = stream.getvalue()
    if importlib.util.find_spec("safetensors") is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "m.safetensors")
            safetensors.save_file({**plain, "h": xt.ones(3, dtype=xt.bfloat16)}, path, {"made": "here"})
            files["safetensors"] = path.read_bytes()
    return files


# ---- mutations ------------------------------------------------------------------------------------------------------


def flip(data: bytearray, draw: Random, other: bytes) -> None:
    for _ in range(draw.choice((1, 1, 1, 4, 32))):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def overwrite(data: bytearray, draw: Random, other: bytes) -> None:
    at, count = draw.randrange(len(data)), draw.choice((1, 2, 4, 8, 64))
    data[at : at + count] = draw.randbytes(len(data[at : at + count]))


def extreme(data: bytearray, draw: Random, other: bytes) -> None:
    width = draw.choice((1, 2, 4, 8))
    at = draw.randrange(len(data))
    value = draw.choice(EXTREMES) & ((1 << 8 * width) - 1)
    data[at : at + width] = value.to_bytes(width, draw.choice(("little", "big")))


def cut(data: bytearray, draw: Random, other: bytes) -> None:
    at = draw.randrange(len(data))
    del data[at : at + draw.choice((1, 2, 8, 64, len(data)))]


def repeat(data: bytearray, draw: Random, other: bytes) -> None:
    at = draw.randrange(len(data))
    data[at:at] = data[at : at + draw.choice((1, 4, 64, 512))] * draw.choice((1, 2, 20))


def splice(data: bytearray, draw: Random, other: bytes) -> None:
    start, at = draw.randrange(len(other)), draw.randrange(len(data))
    data[at : at + draw.choice((0, 16, 256))] = other[start : start + draw.choice((4, 64, 512))]


def insert(data: bytearray, draw: Random, other: bytes) -> None:
    at = draw.randrange(len(data))
    data[at : at + draw.choice((0, 0, 1, 8))] = draw.choice(SNIPPETS)


MUTATORS: tuple[Callable[[bytearray, Random, bytes], None], ...] = (
    flip,
    overwrite,
    extreme,
    cut,
    repeat,
    splice,
    insert,
)


def scrambled(data: bytes, draw: Random, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        if changed:
            draw.choice(MUTATORS)(changed, draw, other)
    return bytes(changed)


def rezipped(data: bytes, draw: Random, other: bytes, suffix: str) -> bytes:
    """One record changed, with the checksum that belongs to it: what is inside gets to be read."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(made, "w") as changed:
        entries = archive.infolist()
        chosen = draw.choice([e for e in entries if e.filename.endswith(suffix)] or entries)
        for entry in entries:
            record = archive.read(entry)
            if entry is chosen:
                record = scrambled(record, draw, other)
            changed.writestr(entry.filename, record, entry.compress_type)
    return made.getvalue()


def reheaded(data: bytes, draw: Random) -> bytes:
    """A safetensors file whose header says something else, in valid JSON."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    entry = header[draw.choice([name for name in header if name != "__metadata__"])]
    key = draw.choice(("dtype", "shape", "data_offsets"))
    numbers = [draw.choice((0, 1, 3, -1, 1 << 20, 1 << 62, 1 << 64)) for _ in range(draw.randrange(4))]
    entry[key] = draw.choice(("F64", "F4", "BOOL", "X", 3)) if key == "dtype" else numbers
    raw = json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data[8 + size :]


def mutation(index: int, files: dict[str, bytes]) -> tuple[str, bytes]:
    """The mutation of a number: the kind of the file, and its bytes."""
    draw = Random(index)
    kind = draw.choice(sorted(files))
    data, other = files[kind], files[draw.choice(sorted(files))]
    if kind.startswith("zip") and draw.random() < 0.7:
        return kind, rezipped(data, draw, other, draw.choice(("data.pkl", "data.pkl", "data.pkl", "")))
    if kind.startswith("npz") and draw.random() < 0.6:
        return kind, rezipped(data, draw, other, ".npy")
    if kind == "safetensors" and draw.random() < 0.4:
        return kind, reheaded(data, draw)
    return kind, scrambled(data, draw, other)


# ---- judgement ------------------------------------------------------------------------------------------------------

_seen: list[str] = []
_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and (event in WATCHED or (event == "open" and writes(arguments))):
        _seen.append(f"{event}{arguments!r:.200}")


def writes(arguments: tuple[Any, ...]) -> bool:
    mode, flags = (*arguments, None, None)[1:3]
    by_mode = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    return by_mode or bool(isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR))


class Court:
    """Loads mutations in this process; the audit hook that watches it cannot be taken away again."""

    def __init__(self) -> None:
        import xtensor as xt
        from xtensor import serialization

        self.allowed = (serialization.FileFormatError, pickle.UnpicklingError, EOFError)
        self.files = valid_files()
        folder = tempfile.mkdtemp(prefix="mutations-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.path = Path(folder, "file")
        self.load, self.serialization, self.tensor = xt.load, serialization, xt.Tensor
        sys.addaudithook(_watch)
        # What is imported or generated at first use is not the file's doing.
        for kind, data in self.files.items():
            for way in self.ways(kind, data):
                self.touch(way())

    def ways(self, kind: str, data: bytes) -> Iterator[Callable[[], Any]]:
        """Everything that reads a file of that kind."""
        self.path.write_bytes(data)
        if kind == "safetensors":
            yield lambda: self.serialization.safetensors.load_file(self.path)
            yield lambda: self.serialization.safetensors.load_file(self.path, lazy=True)
        elif kind.startswith("npz"):
            yield lambda: self.serialization.npz.load(io.BytesIO(data))
        else:
            yield lambda: self.load(io.BytesIO(data), map_location="cpu")
            if kind.startswith("zip"):
                yield lambda: self.load(self.path, map_location="cpu", mmap=True)
        yield lambda: self.serialization.describe(self.path)

    def touch(self, value: Any) -> None:
        """Read every small tensor in what was loaded."""
        waiting, seen = [value], set()
        while waiting:
            item = waiting.pop()
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, self.tensor):
                if not item.is_meta:
                    np.asarray(item._xt_storage.array).tobytes()
            elif isinstance(item, dict):
                waiting += item.values()
            elif isinstance(item, (list, tuple, set, frozenset)):
                waiting += item

    def judge(self, index: int, tally: Tally) -> None:
        """Load one mutation in every way, and say what is wrong with how it went."""
        global _watching
        kind, data = mutation(index, self.files)
        if data == self.files[kind]:
            return
        for way in self.ways(kind, data):
            _seen.clear()
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            start = time.perf_counter()
            problem = None
            try:
                with time_limit(SECONDS):
                    _watching = True
                    try:
                        made = way()
                    finally:
                        _watching = False
                    self.touch(made)
                outcome = "loaded"
            except self.allowed:
                outcome = "refused"
            except Hang:
                outcome, problem = "hang", f"took more than {SECONDS} s"
            except (Exception, RecursionError) as error:
                outcome, problem = "failed", f"{type(error).__module__}.{type(error).__qualname__}: {error}"
            made = None
            used = tracemalloc.get_traced_memory()[1] - before
            tally.slowest = max(tally.slowest, time.perf_counter() - start)
            tally.memory = max(tally.memory, used)
            tally.outcomes[kind, outcome] += 1
            if _seen:
                problem = f"ran {_seen[0]}"
            elif used > MEMORY:
                problem = f"took {used >> 20} MiB"
            if problem is not None:
                tally.failures.append(f"mutation {index} ({kind}): {problem}")


_court: Court | None = None


def judge(start: int, stop: int) -> Tally:
    """The mutations of these numbers, in this process."""
    global _court
    if _court is None:
        _court = Court()
    tally = Tally()
    tracemalloc.start()
    try:
        for index in range(start, stop):
            _court.judge(index, tally)
    finally:
        tracemalloc.stop()
    return tally


def main(arguments: list[str] | None = None) -> int:
    """The command: totals by kind of file, and every failure with the number that repeats it."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.files", description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0, help="the number of the first mutation")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args(arguments)
    total, began = Tally(), time.monotonic()
    stop = options.start + options.mutations
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, context) as pool:
        batches = [(at, min(at + BATCH, stop)) for at in range(options.start, stop, BATCH)]
        jobs = [(batch, pool.submit(judge, *batch)) for batch in batches]
        for (first, last), job in jobs:
            try:
                total.add(job.result())
            except BrokenProcessPool:
                total.failures.append(f"a process died in mutations {first} to {last - 1}")
                break
    for (kind, outcome), count in sorted(total.outcomes.items()):
        print(f"{kind:20} {outcome:10} {count:7}")
    print(
        f"{options.mutations} mutations, {sum(total.outcomes.values())} loads in {time.monotonic() - began:.0f} s; slowest "
        f"{total.slowest:.2f} s, most memory {total.memory / 2**20:.1f} MiB; {len(total.failures)} failures"
    )
    for failure in total.failures[:50]:
        print(failure)
    return int(bool(total.failures))


if __name__ == "__main__":
    sys.exit(main())
