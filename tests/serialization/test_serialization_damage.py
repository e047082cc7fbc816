"""Files that are damaged, hostile or simply not what they claim: a clear error, nothing run, memory bounded."""

import collections
import io
import os
import pickle
import struct
import sys
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

import xtensor as xt
from xtensor import serialization
from xtensor.serialization import FileFormatError

ERRORS = (FileFormatError, pickle.UnpicklingError, EOFError)


def zipped(data, records=None, root="archive", compression=zipfile.ZIP_STORED):
    """A checkpoint with this pickle and these records, its checksums right."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", compression) as archive:
        archive.writestr(f"{root}/data.pkl", data)
        archive.writestr(f"{root}/version", b"3\n")
        for name, content in (records or {}).items():
            archive.writestr(f"{root}/{name}", content)
    raw.seek(0)
    return raw


def checkpoint(value):
    raw = io.BytesIO()
    xt.save(value, raw)
    return raw.getvalue()


def tensor_pickle(
    sizes=(2, 3), strides=(3, 1), offset=0, count=6, kind="FloatStorage", key="0", metadata=None
):
    """The pickle of one tensor, with anything in the place of what is right."""
    body = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\n" + kind.encode() + b"\n"
    body += pickle.dumps(key, 2)[2:-1] + pickle.dumps("cpu", 2)[2:-1] + pickle.dumps(count, 2)[2:-1] + b"tQ"
    for part in (offset, sizes, strides, False):
        body += pickle.dumps(part, 2)[2:-1]
    body += b"ccollections\nOrderedDict\n)R"
    if metadata is not None:
        body += pickle.dumps(metadata, 2)[2:-1]
    return body + b"tR."


def test_the_pickle_of_one_tensor_is_right():
    values = np.arange(6, dtype=np.float32)
    loaded = xt.load(zipped(tensor_pickle(), {"data/0": values.tobytes()}))
    assert loaded.tolist() == values.reshape(2, 3).tolist()


# ---- globals --------------------------------------------------------------------------------------------------------


class Danger:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call[0], self.call[1:]


@pytest.fixture
def nothing_runs():
    """Fails if anything is executed, opened to be written, or imported while a file is loaded."""
    seen = []
    watching = [False]
    watched = {
        "os.system",
        "subprocess.Popen",
        "exec",
        "compile",
        "import",
        "os.exec",
        "os.posix_spawn",
        "socket.connect",
    }

    def watch(event, arguments):
        if watching[0] and event in watched:
            seen.append((event, arguments))

    sys.addaudithook(watch)
    watching[0] = True
    yield seen
    watching[0] = False
    assert seen == []


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    "call",
    [(os.system, "true"), (eval, "1/0"), (exec, "raise SystemExit"), (getattr, "x", "join"), (open, "file", "w"),
     (__import__, "os"), (type, "T", (), {}), (map, print, [1]), (os.unlink, "file"), (pickle.loads, b"")],
    ids=lambda call: call[0].__name__,
)  # fmt: skip
def test_calls_are_refused_by_name(tmp_path, monkeypatch, call, protocol, nothing_runs):
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps({"state": {"a": 1, "b": [1, 2, Danger(*call)]}}, protocol)
    name = call[0].__qualname__
    for file in (zipped(data), io.BytesIO(legacy_header() + data)):
        for options in ({}, {"weights_only": True}, {"weights_only": False}):
            file.seek(0)
            with pytest.raises(
                pickle.UnpicklingError, match=rf"GLOBAL .*\b{name}\b.*at byte \d+ of .*'b'\]\[2\]"
            ):
                xt.load(file, **options)
    assert os.listdir(tmp_path) == []


def legacy_header():
    info = {"protocol_version": 1001, "little_endian": sys.byteorder == "little", "type_sizes": {}}
    return b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, info))


def test_modules_are_refused_by_name(torch):
    raw = io.BytesIO()
    torch.save({"epoch": 3, "model": torch.nn.Linear(2, 3)}, raw)
    raw.seek(0)
    message = r"GLOBAL torch\.nn\.modules\.linear\.Linear was not an allowed global .*at byte \d+ of archive/data\.pkl, in \['model'\]"
    with pytest.raises(pickle.UnpicklingError, match=message):
        xt.load(raw)
    with pytest.raises(
        pickle.UnpicklingError, match=r"xtensor\.nn\.modules\.linear\.Linear was not an allowed"
    ):
        xt.load(io.BytesIO(checkpoint(xt.nn.Linear(2, 3))))


class Settings:
    def __init__(self, rate):
        self.rate = rate


class Slotted:
    __slots__ = ("value",)

    def __init__(self):
        self.value = 5


def test_safe_globals():
    raw = checkpoint({"settings": Settings(0.5), "slotted": Slotted(), "queue": collections.deque([1, 2])})
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[.*Settings\]\)"):
        xt.load(io.BytesIO(raw))
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(raw)) == sorted(
        [f"{__name__}.Settings", f"{__name__}.Slotted", "collections.deque"]
    ) or "copyreg._reconstructor" in serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(raw))
    with serialization.safe_globals([Settings, Slotted, collections.deque]):
        loaded = xt.load(io.BytesIO(raw))
        assert loaded["settings"].rate == 0.5 and loaded["slotted"].value == 5
        assert loaded["queue"] == collections.deque([1, 2])
        assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(raw)) == []
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([(Settings, "elsewhere.Config")])
    try:
        data = b"\x80\x02celsewhere\nConfig\n)\x81}X\x04\0\0\0rateK\x01sb."
        assert xt.load(zipped(data)).rate == 1
        assert serialization.get_safe_globals() == [(Settings, "elsewhere.Config")]
    finally:
        serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError, match=r"elsewhere\.Config"):
        xt.load(zipped(data))
    with pytest.raises(ValueError, match="tuple of length 2"):
        serialization.add_safe_globals([(Settings, "a", "b")])
    with pytest.raises(TypeError, match="second item in tuple to be str"):
        serialization.add_safe_globals([(Settings, 3)])


def test_blocked_modules_stay_blocked():
    raw = zipped(pickle.dumps(Danger(os.system, "true"), 2))
    with (
        serialization.safe_globals([os.system]),
        pytest.raises(pickle.UnpicklingError, match=r"whose module (posix|nt) is blocked"),
    ):
        xt.load(raw)


def test_whole_modules_load_when_their_classes_are_allowed():
    model = xt.nn.Sequential(xt.nn.Linear(2, 3), xt.nn.ReLU())
    raw = checkpoint(model)
    with serialization.safe_globals([xt.nn.Sequential, xt.nn.Linear, xt.nn.ReLU]):
        loaded = xt.load(io.BytesIO(raw), weights_only=False)
    assert loaded(xt.ones(1, 2)).tolist() == model(xt.ones(1, 2)).tolist()


def test_there_is_no_other_pickle():
    assert xt.load(io.BytesIO(checkpoint(1)), pickle_module=pickle) is not None
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module"):
        xt.load(io.BytesIO(checkpoint(1)), pickle_module=pickle, weights_only=True)
    with pytest.raises(ValueError, match="pickle_module cannot be another than pickle"):
        xt.load(io.BytesIO(checkpoint(1)), pickle_module=collections)
    with pytest.raises(ValueError, match="pickle_module cannot be given"):
        xt.save(1, io.BytesIO(), pickle_module=collections)
    with pytest.raises(TypeError, match="unexpected keyword argument 'fix_imports'"):
        xt.load(io.BytesIO(checkpoint(1)), fix_imports=True)


# Pickles that do what no checkpoint does: what is asked of them, and a part of the error.
HOSTILE = {
    "a state for a function": (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}X\x01\0\0\0aK\x01sb.", "Can only build"),
    "a state for a class": (b"\x80\x02ccollections\nOrderedDict\n}X\x01\0\0\0aK\x01sb.", "Can only build"),
    "a call of a tensor class": (b"\x80\x02ctorch\nTensor\n)R.", "unrecognized function"),
    "a call of a string": (b"\x80\x02X\x01\0\0\0a)R.", "unrecognized function"),
    "a call of a dtype": (b"\x80\x02ctorch\nfloat32\n)R.", "unrecognized function"),
    "arguments that are a list": (b"\x80\x02ccollections\nOrderedDict\n]R.", "no tuple"),
    "items of a number": (b"\x80\x02K\x01(K\x01K\x02u.", "Can only SETITEM"),
    "appending to a tuple": (b"\x80\x02)K\x01a.", "Can only append"),
    "a set as a list": (b"\x80\x04\x8f(K\x01e.", "Can only append"),
    "an unknown storage": (b"\x80\x02X\x01\0\0\0aQ.", "persistent_load of storage"),
    "a mark that is missing": (b"\x80\x02t.", "no mark"),
    "an empty stack": (b"\x80\x020.", "no mark"),
    "a text opcode": (b"I1\n.", "Unsupported operand"),
    "an extension": (b"\x80\x02\x82\x01.", "Unsupported operand"),
    "an instance by name": (b"(ios\nsystem\n.", "Unsupported operand"),
    "no end": (b"\x80\x02}", "Ran out of input"),
    "nothing": (b"", "Ran out of input"),
    "a string longer than the file": (b"\x80\x02X\xff\xff\xff\x7fa.", "Ran out of input"),
    "bytes longer than any file": (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fa.", "Ran out of input"),
    "a memo that is not there": (b"\x80\x02j\xff\xff\xff\xff.", "damaged"),
    "a long of negative length": (b"\x80\x02\x8b\xff\xff\xff\xff.", "negative byte count"),
    "text that is none": (b"\x80\x02X\x01\0\0\0\xff.", "utf-8"),
    "a bytearray by its length": (b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.", "expected bytes"),
    "an odd encoding": (b"\x80\x02c_codecs\nencode\nX\x01\0\0\0aX\x04\0\0\0idna\x86R.", "unexpected encoding"),
    "a device that is none": (b"\x80\x02ctorch\ndevice\nX\x03\0\0\0abc\x85R.", "device"),
    "a name without an end": (b"\x80\x02c" + b"a" * 5000 + b"\nb\n.", "more than 4096 bytes"),
    "nested": (b"\x80\x02ctorch._utils\n_rebuild_nested_tensor\n)R.", "missing 4 required"),
    "a tensor by a builtin": (
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nset\nctorch\nTensor\n)}tR.", "rebuilt by one of"
    ),
    "a global with dots": (b"\x80\x04\x8c\x05torch\x8c\x0dutils.os.path\x93.", "not an allowed global"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_pickles(case, nothing_runs):
    data, expected = HOSTILE[case]
    with pytest.raises((*ERRORS, RuntimeError), match=expected):
        xt.load(zipped(data))


def test_keys_that_would_take_for_ever():
    doubled = b"\x80\x02}" + b")" + b"2\x86" * 60 + b"K\x01s."  # a tuple of two tuples of two tuples...
    with pytest.raises(pickle.UnpicklingError, match="too large to be hashed"):
        xt.load(zipped(doubled))
    deep = b"\x80\x02}" + b")" + b"\x85" * 300_000 + b"K\x01s."
    with pytest.raises(pickle.UnpicklingError, match="too large to be hashed"):
        xt.load(zipped(deep))


# ---- tensors that leave their storage -------------------------------------------------------------------------------


WRONG = {
    "too many elements": ({"sizes": (3, 3)}, "out of bounds"),
    "an offset too far": ({"offset": 1}, "out of bounds"),
    "a negative offset": ({"offset": -1}, "sizes"),
    "a negative size": ({"sizes": (-2, 3)}, "negative sizes or strides"),
    "a negative stride": ({"strides": (-3, 1)}, "negative sizes or strides"),
    "a stride too wide": ({"strides": (4, 1)}, "out of bounds"),
    "a huge expanded size": ({"sizes": (1 << 60, 1 << 60), "strides": (0, 0)}, "too large"),
    "sizes and strides of different length": ({"sizes": (6,)}, "strides"),
    "too many dimensions": ({"sizes": (1,) * 65, "strides": (1,) * 65}, "sizes"),
    "sizes that are floats": ({"sizes": (2.0, 3.0)}, "tuples of ints"),
    "a storage larger than its record": ({"count": 7}, "should have 28 bytes"),
    "a storage of a terabyte": ({"count": 1 << 38}, "should have"),
    "a negative storage": ({"count": -1}, "storage is named"),
    "another type": ({"kind": "DoubleStorage"}, "should have 48 bytes"),
    "an unknown type": ({"kind": "QUInt4x2Storage"}, "QUInt4x2Storage"),
    "no such record": ({"key": "../../0"}, "file not found"),
    "odd metadata": ({"metadata": {"conj": True, "x": 1}}, "metadata"),
}


@pytest.mark.parametrize("case", WRONG)
def test_tensors_that_leave_their_storage(case):
    changes, expected = WRONG[case]
    raw = zipped(tensor_pickle(**changes), {"data/0": np.arange(6, dtype=np.float32).tobytes()})
    with pytest.raises(ERRORS, match=expected):
        xt.load(raw)


# ---- containers -----------------------------------------------------------------------------------------------------


VALUE = {"a": np.arange(300.0)}


@pytest.fixture(scope="module")
def good():
    return checkpoint({"a": xt.arange(300.0), "b": xt.ones(7, dtype=xt.int8), "c": [1, 2, 3]})


def test_truncated_anywhere(good):
    for size in [*range(0, len(good), 97), len(good) - 1]:
        with pytest.raises(ERRORS):
            xt.load(io.BytesIO(good[:size]))


def test_a_flipped_bit_anywhere(good, rng):
    """Either an error, or it was in what nobody reads: the padding between records."""
    whole = xt.load(io.BytesIO(good))
    wrong = 0
    for at in [*range(0, len(good), 13)]:
        data = bytearray(good)
        data[at] ^= 1 << int(rng.integers(8))
        try:
            loaded = xt.load(io.BytesIO(bytes(data)))
        except ERRORS:
            wrong += 1
            continue
        assert loaded["a"].tolist() == whole["a"].tolist() and loaded["b"].tolist() == whole["b"].tolist()
        assert loaded["c"] == whole["c"]
    assert wrong > len(good) / 13 / 2


def test_the_checksum_of_a_mapped_storage_is_compared_when_it_is_touched(tmp_path, good):
    data = bytearray(good)
    data[data.index(np.arange(300, dtype=np.float32).tobytes()) + 100] ^= 1
    path = tmp_path / "m.pt"
    path.write_bytes(data)
    loaded = xt.load(path, mmap=True)
    assert loaded["b"].tolist() == [1] * 7
    for _ in range(2):
        with pytest.raises(FileFormatError, match="CRC32"):
            loaded["a"].sum()
    with pytest.raises(FileFormatError, match="CRC32 checksum of the record 'archive/data/0'"):
        xt.load(path)
    serialization.set_crc32_options(False)
    try:
        assert xt.load(path)["a"].tolist() != list(range(300))
    finally:
        serialization.set_crc32_options(True)


def test_files_without_checksums(torch, tmp_path):
    torch.serialization.set_crc32_options(False)
    serialization.set_crc32_options(False)
    try:
        torch.save(torch.ones(3), tmp_path / "m.pt")
        assert xt.load(tmp_path / "m.pt").tolist() == [1.0] * 3
        xt.save(xt.ones(3), tmp_path / "n.pt")
        assert torch.load(tmp_path / "n.pt", weights_only=True).tolist() == [1.0] * 3
    finally:
        torch.serialization.set_crc32_options(True)
        serialization.set_crc32_options(True)
    assert serialization.get_crc32_options()


def test_compressed_records_are_refused():
    bomb = zipped(tensor_pickle(count=1 << 28), {"data/0": bytes(1 << 24)}, compression=zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="is compressed"):
            xt.load(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


def directory_entry(name, offset, size, crc=0, flags=0):
    numbers = (20, 20, flags, 0, 0, 0, crc, size, size, len(name), 0, 0, 0, 0, 0, offset)
    return struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *numbers) + name


def hand_made(entries, body):
    """An archive whose directory says what it likes."""
    directory = b"".join(entries)
    end = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, len(entries), len(entries), len(directory), len(body), 0
    )
    return io.BytesIO(body + directory + end)


def local(name, data, flags=0):
    header = struct.pack(
        "<4s5H3L2H", b"PK\x03\x04", 20, flags, 0, 0, 0, zlib.crc32(data), len(data), len(data), len(name), 0
    )
    return header + name + data


def test_records_that_overlap():
    """The same bytes under many names: a small file that claims to be a large one."""
    body = local(b"a/data.pkl", b"\x80\x02}.") + local(b"a/data/0", bytes(1000))
    names = [b"a/data/0"] * 1
    first = len(local(b"a/data.pkl", b"\x80\x02}."))
    entries = [directory_entry(b"a/data.pkl", 0, 4, zlib.crc32(b"\x80\x02}."))]
    assert xt.load(hand_made([*entries, directory_entry(names[0], first, 1000)], body)) == {}
    inner = local(b"a/data/1", b"")
    body = body[:-500] + inner + body[-500 + len(inner) :]
    entries += [directory_entry(b"a/data/0", first, 1000), directory_entry(b"a/data/1", len(body) - 500, 400)]
    with pytest.raises(FileFormatError, match="overlaps"):
        xt.load(hand_made(entries, body))


@pytest.mark.parametrize(
    "name",
    [
        b"../data.pkl",
        b"/etc/data.pkl",
        b"a/../../data.pkl",
        b"a/./data.pkl",
        b"a//data.pkl",
        b"a\\data.pkl",
        b"a/\xff",
    ],
)
def test_names_that_lead_out(name):
    body = local(name, b"\x80\x02}.")
    with pytest.raises(FileFormatError, match=r"leads out of the archive|not UTF-8"):
        xt.load(hand_made([directory_entry(name, 0, 4, zlib.crc32(b"\x80\x02}."))], body))


def test_directories_that_lie():
    data = b"\x80\x02}."
    body, entry = local(b"a/data.pkl", data), directory_entry(b"a/data.pkl", 0, 4, zlib.crc32(data))
    assert xt.load(hand_made([entry], body)) == {}
    cases = {
        "is there twice": hand_made([entry, entry], body),
        "more than one folder": hand_made(
            [entry, directory_entry(b"b/x", 0, 0)], body.replace(b"a/data.pkl", b"a/data.pkl")
        ),
        "another name in its header": hand_made([directory_entry(b"b/data.pkl", 0, 4)], body),
        "is encrypted": hand_made([directory_entry(b"a/data.pkl", 0, 4, 0, 1)], body),
        "truncated": hand_made([directory_entry(b"a/data.pkl", 0, 1 << 30)], body),
        "has no header": hand_made([directory_entry(b"a/data.pkl", 3, 4)], body),
        "no data.pkl": hand_made([directory_entry(b"a/x", 0, 0)], local(b"a/x", b"")),
        "64-bit sizes": hand_made([directory_entry(b"a/data.pkl", 0xFFFFFFFF, 4)], body),
    }
    cases["more than one folder"] = hand_made(
        [entry, directory_entry(b"b/x", len(body), 0)], body + local(b"b/x", b"")
    )
    for expected, raw in cases.items():
        with pytest.raises(FileFormatError, match=expected):
            xt.load(raw)
    huge = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFE, 0xFFFE, 46, len(body), 0)
    with pytest.raises(FileFormatError, match="claims 65534 entries"):
        xt.load(io.BytesIO(body + entry + huge))


def test_files_that_are_something_else(tmp_path, torch):
    with pytest.raises(EOFError, match="Ran out of input"):
        xt.load(io.BytesIO(b""))
    for data in (
        b"hello world\n" * 100,
        pickle.dumps({"a": 1}),
        bytes(5000),
        b"\x93NUMPY" + bytes(100),
        os.urandom(3000),
    ):
        with pytest.raises(ERRORS):
            xt.load(io.BytesIO(data))
    script = io.BytesIO()
    with pytest.warns(DeprecationWarning):
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), script)
    script.seek(0)
    with pytest.raises(RuntimeError, match="TorchScript"):
        xt.load(script)
    with pytest.raises(FileFormatError, match=r"no data\.pkl"):
        xt.load(zipped(b"", root="a/b"))
    np.savez(tmp_path / "a.npz", a=np.ones(2), b=np.ones(2))
    with pytest.raises(FileFormatError, match=r"serialization\.npz\.load"):
        xt.load(tmp_path / "a.npz")
    pytest.importorskip("safetensors")
    serialization.safetensors.save_file({"a": xt.ones(2)}, tmp_path / "a.safetensors")
    with pytest.raises(FileFormatError, match=r"serialization\.safetensors\.load_file"):
        xt.load(tmp_path / "a.safetensors")


def test_older_files_that_are_damaged(torch):
    raw = io.BytesIO()
    torch.save({"a": torch.arange(100.0), "b": torch.ones(2)}, raw, _use_new_zipfile_serialization=False)
    good = raw.getvalue()
    for size in range(0, len(good), 37):
        with pytest.raises(ERRORS):
            xt.load(io.BytesIO(good[:size]))
    with pytest.raises(pickle.UnpicklingError, match="Invalid magic number"):
        xt.load(io.BytesIO(pickle.dumps(5, 2)))
    with pytest.raises(pickle.UnpicklingError, match="Invalid protocol version"):
        xt.load(io.BytesIO(pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(7, 2)))
    with pytest.raises(FileFormatError, match="larger than the file"):
        xt.load(io.BytesIO(legacy_header() + tensor_pickle(count=1 << 40, sizes=(1,), strides=(1,))))
    with pytest.raises(FileFormatError, match="should have 24 bytes"):
        keys = pickle.dumps(["0"], 2)
        xt.load(io.BytesIO(legacy_header() + tensor_pickle() + keys + struct.pack("<q", 5) + bytes(100)))
    with pytest.raises(FileFormatError, match="does not match the object"):
        xt.load(io.BytesIO(legacy_header() + tensor_pickle() + pickle.dumps([], 2) + bytes(100)))


def test_bools_that_are_neither():
    raw = zipped(tensor_pickle(kind="BoolStorage"), {"data/0": bytes([0, 1, 2, 255, 0, 128])})
    assert xt.load(raw).tolist() == [[False, True, True], [True, False, True]]


def test_nothing_is_half_loaded(tmp_path, good):
    """The last storage is damaged: no tensor comes back."""
    data = bytearray(good)
    data[data.index(b"\1" * 7)] = 0
    with pytest.raises(FileFormatError, match="data/1"):
        xt.load(io.BytesIO(bytes(data)))
