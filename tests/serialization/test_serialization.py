"""Checkpoints: PyTorch's files read bit for bit, ours read by PyTorch, sharing kept, `map_location`, mapping."""

import collections
import io
import os
import pickle
import stat
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import xtensor as xt
from xtensor import serialization

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
    "float8_e8m0fnu",
]  # fmt: skip
SHAPES = [(), (1,), (5,), (0,), (3, 0), (2, 3), (1, 4, 1), (2, 3, 4, 5)]


def bits(tensor):
    """The bytes under a tensor, of either library."""
    storage = tensor.untyped_storage()
    return storage.tobytes() if isinstance(tensor, xt.Tensor) else bytes(storage)


def assert_same(ours, theirs):
    """Type, geometry, flags and every bit."""
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert tuple(ours.stride()) == tuple(theirs.stride())
    assert ours.storage_offset() == theirs.storage_offset()
    assert ours.requires_grad == theirs.requires_grad
    assert (ours.is_conj(), ours.is_neg()) == (theirs.is_conj(), theirs.is_neg())
    assert ours.is_leaf
    assert bits(ours) == bits(theirs)


def saved(library, value, **options):
    buffer = io.BytesIO()
    library.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


def random_tensor(torch, rng, dtype, shape):
    """Any bits at all, NaNs too, but for bool."""
    kind = getattr(torch, dtype)
    size = torch.empty(0, dtype=kind).element_size()
    raw = rng.integers(0, 2 if dtype == "bool" else 256, size * int(np.prod(shape)), dtype=np.uint8)
    return torch.from_numpy(raw).view(kind).reshape(shape) if raw.size else torch.empty(shape, dtype=kind)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_bit_both_ways(torch, rng, dtype, zipped):
    theirs = {str(shape): random_tensor(torch, rng, dtype, shape) for shape in SHAPES}
    theirs["t"] = random_tensor(torch, rng, dtype, (4, 3)).t()
    theirs["part"] = random_tensor(torch, rng, dtype, (4, 6))[1:3, ::2]
    theirs["spread"] = random_tensor(torch, rng, dtype, (1, 3)).expand(5, 3)
    ours = xt.load(saved(torch, theirs, _use_new_zipfile_serialization=zipped))
    assert list(ours) == list(theirs)
    for name, tensor in theirs.items():
        assert_same(ours[name], tensor)
    back = torch.load(saved(xt, ours), weights_only=True)
    for name, tensor in back.items():
        assert_same(ours[name], tensor)


def everything(torch):
    """What checkpoints hold, sharing and all."""
    base = torch.arange(24.0).reshape(4, 6)
    marked = torch.zeros(3)
    marked.tag = "a tag"
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
    model[2].weight = torch.nn.Parameter(model[0].weight.detach().t())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(5, 3)).sum().backward()
    optimizer.step()
    return {
        "base": base,
        "view": base[1:3, ::2],
        "transposed": base.t(),
        "leaf": torch.ones(2, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.randn(3, 2)),
        "frozen": torch.nn.Parameter(torch.arange(3), requires_grad=False),
        "conj": torch.randn(3, dtype=torch.complex64).conj(),
        "neg": torch.randn(3, dtype=torch.complex64).conj().imag,
        "marked": marked,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "meta": torch.empty(3, 2, device="meta"),
        "ordered": collections.OrderedDict(x=1, y=[1, 2, (3, 4)]),
        "counter": collections.Counter("aab"),
        "set": {1, "two"},
        "bytes": b"a\0\xff",
        "bytearray": bytearray(b"xyz"),
        "complex": 3 + 4j,
        "numbers": [None, True, False, 2**70, -5, 300, 70000, 1.5, float("inf")],
        "text": "grün \ud83d",
        "size": torch.Size([1, 2]),
        "device": torch.device("cuda", 1),
        "dtype": torch.bfloat16,
        "layout": torch.strided,
        (1, "key"): 7,
    }


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_what_checkpoints_hold(torch, zipped):
    theirs = everything(torch)
    ours = xt.load(saved(torch, theirs, _use_new_zipfile_serialization=zipped))
    check_everything(ours, theirs)
    assert (
        ours["dtype"] is xt.bfloat16
        and ours["device"] == xt.device("cuda:1")
        and ours["layout"] is xt.strided
    )
    assert type(ours["size"]) is xt.Size and type(ours["parameter"]) is xt.nn.Parameter
    back = torch.load(saved(xt, ours), weights_only=True)
    check_everything(ours, back)
    assert back["dtype"] is torch.bfloat16 and back["device"] == torch.device("cuda:1")
    assert type(back["size"]) is torch.Size and type(back["parameter"]) is torch.nn.Parameter


def check_everything(ours, theirs):
    assert list(ours) == list(theirs)
    for name in ("base", "view", "transposed", "leaf", "parameter", "frozen", "conj", "neg", "marked"):
        assert_same(ours[name], theirs[name])
    assert ours["marked"].tag == theirs["marked"].tag == "a tag"
    for name, tensor in theirs["model"].items():
        assert_same(ours["model"][name], tensor)
    assert ours["model"]._metadata == theirs["model"]._metadata
    for key, state in theirs["optimizer"]["state"].items():
        for name, tensor in state.items():
            assert_same(ours["optimizer"]["state"][key][name], tensor)
    assert ours["optimizer"]["param_groups"] == theirs["optimizer"]["param_groups"]
    assert ours["meta"].is_meta and tuple(ours["meta"].shape) == (3, 2)
    for name in ("ordered", "counter", "set", "bytes", "bytearray", "complex", "numbers", "text", (1, "key")):
        assert ours[name] == theirs[name] and type(ours[name]) is type(theirs[name])


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_sharing_is_kept(torch, zipped):
    loaded = xt.load(saved(torch, everything(torch), _use_new_zipfile_serialization=zipped))
    loaded["base"][1, 2] = 99.0
    assert loaded["view"][0, 1] == 99.0 and loaded["transposed"][2, 1] == 99.0
    model = loaded["model"]
    model["0.weight"][1, 2] = 5.0
    assert model["2.weight"][2, 1] == 5.0
    back = torch.load(saved(xt, loaded), weights_only=True)
    back["base"][3, 4] = -1.0
    assert back["transposed"][4, 3] == -1.0 and back["view"][0, 1] == 99.0
    assert back["model"]["2.weight"].untyped_storage().data_ptr() == back["model"]["0.weight"].data_ptr()


def test_the_same_object_twice_is_one_object():
    tensor = xt.ones(3)
    first, second = xt.load(saved(xt, [tensor, tensor]))
    assert first is second


def test_states_train_on(torch):
    theirs = torch.nn.Linear(3, 2)
    their_optimizer = torch.optim.Adam(theirs.parameters(), lr=0.1)
    ours = xt.nn.Linear(3, 2)
    our_optimizer = xt.optim.Adam(ours.parameters(), lr=0.1)

    def step(library, model, optimizer):
        optimizer.zero_grad()
        (model(library.ones(4, 3)) ** 2).sum().backward()
        optimizer.step()

    step(torch, theirs, their_optimizer)
    state = xt.load(saved(torch, [theirs.state_dict(), their_optimizer.state_dict()]))
    ours.load_state_dict(state[0])
    our_optimizer.load_state_dict(state[1])
    step(torch, theirs, their_optimizer)
    step(xt, ours, our_optimizer)
    state = torch.load(saved(xt, [ours.state_dict(), our_optimizer.state_dict()]), weights_only=True)
    for name, tensor in theirs.state_dict().items():
        torch.testing.assert_close(state[0][name], tensor)
    their_optimizer.load_state_dict(state[1])
    step(torch, theirs, their_optimizer)


def test_a_history_is_left_behind():
    leaf = xt.ones(2, requires_grad=True)
    loaded = xt.load(saved(xt, leaf * 3))
    assert loaded.is_leaf and loaded.requires_grad and loaded.tolist() == [3.0, 3.0]


def test_one_storage_as_two_types_is_refused(torch):
    tensor = xt.ones(4)
    theirs = torch.ones(4)
    with pytest.raises(RuntimeError) as expected:
        torch.save([theirs, theirs.view(torch.int32)], io.BytesIO())
    with pytest.raises(RuntimeError) as got:
        xt.save([tensor, tensor.view(xt.int32)], io.BytesIO())
    assert str(got.value) == str(expected.value)


def test_storages_themselves(torch):
    storage = xt.load(saved(torch, torch.arange(3, dtype=torch.uint8).untyped_storage()))
    assert storage.tolist() == [0, 1, 2]
    tensor = xt.arange(3, dtype=xt.uint8)
    loaded = xt.load(saved(xt, [tensor.untyped_storage(), tensor]))
    assert loaded[0] == loaded[1].untyped_storage()
    back = torch.load(saved(xt, tensor.untyped_storage()), weights_only=True)
    assert bytes(back._untyped_storage) == b"\0\1\2"


def test_uninitialized_parameters():
    lazy = xt.nn.parameter.UninitializedParameter(dtype=xt.float64)
    loaded = xt.load(saved(xt, lazy))
    assert type(loaded) is type(lazy) and loaded.dtype is xt.float64


# ---- the container --------------------------------------------------------------------------------------------------


def test_layout_is_pytorchs(torch, tmp_path):
    value = {"a": xt.ones(3), "b": xt.zeros(100), "c": xt.ones(0), "d": xt.ones(7, dtype=xt.int8)}
    path = tmp_path / "model.pt"
    xt.save(value, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        entries = archive.infolist()
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        names = [entry.filename for entry in entries]
        assert (
            archive.read("model/version") == b"3\n"
            and archive.read("model/byteorder") == sys.byteorder.encode()
        )
        raw = path.read_bytes()
        for entry in entries:
            at = entry.header_offset
            start = (
                at
                + 30
                + int.from_bytes(raw[at + 26 : at + 28], "little")
                + int.from_bytes(raw[at + 28 : at + 30], "little")
            )
            assert start % 64 == 0
    other = tmp_path / "other.pt"
    torch.save({name: torch.zeros(tuple(t.shape)) for name, t in value.items()}, other)
    with zipfile.ZipFile(other) as archive:
        theirs = {name.removeprefix("other/") for name in archive.namelist()}
    assert {name.removeprefix("model/") for name in names} == theirs - {".data/serialization_id"}


def test_pytorch_computes_where_our_storages_lie(torch, tmp_path, monkeypatch):
    """It counts on the layout of its own writer, byte by byte."""
    config = pytest.importorskip("torch.utils.serialization.config")
    monkeypatch.setenv("TORCH_SERIALIZATION_DEBUG", "1")  # compares with where they are
    xt.save({i: xt.full((i,), float(i)) for i in range(20)}, tmp_path / "m.pt")
    config.load.calculate_storage_offsets = True
    try:
        loaded = torch.load(tmp_path / "m.pt", mmap=True, weights_only=True)
    finally:
        config.load.calculate_storage_offsets = False
    assert all(bool((loaded[i] == i).all()) for i in range(20))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_protocols(torch, protocol):
    value = {"a": [1, {2}, frozenset([3]), b"x", bytearray(b"y"), "z" * 300], "t": torch.ones(3)}
    loaded = xt.load(saved(torch, value, pickle_protocol=protocol))
    assert loaded["a"] == value["a"] and loaded["t"].tolist() == [1.0] * 3
    ours = xt.load(saved(xt, loaded, pickle_protocol=protocol))
    assert ours["a"] == value["a"] and ours["t"].tolist() == [1.0] * 3


def test_files_that_do_not_tell_their_byte_order(torch):
    """As PyTorch wrote them before 2.1."""
    raw = saved(xt, xt.arange(3), _disable_byteorder_record=True)
    assert torch.load(raw, weights_only=True).tolist() == [0, 1, 2]
    raw.seek(0)
    assert xt.load(raw).tolist() == [0, 1, 2]
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    try:
        raw.seek(0)
        assert xt.load(raw).tolist() == [0, 1 << 56, 2 << 56]
    finally:
        serialization.set_default_load_endianness(None)
    assert serialization.get_default_load_endianness() is None
    with pytest.raises(TypeError):
        serialization.set_default_load_endianness("big")


def test_names_of_older_versions(torch):
    """Files of 1.6 to 1.11: tensors with attributes under other names, classes of CUDA's storages."""
    marked = torch.ones(2)
    marked.tag = 5
    raw = saved(torch, [marked], pickle_protocol=2).getvalue()
    for old in (
        b"torch._tensor\n_rebuild_from_type\n",
        b"torch.tensor\n_rebuild_from_type\n",
        b"torch.tensor\n_rebuild_from_type_v2\n",
    ):
        data = replaced(raw, b"torch._tensor\n_rebuild_from_type_v2\n", old)
        (loaded,) = xt.load(data)
        assert loaded.tag == 5 and loaded.tolist() == [1.0, 1.0]
    data = replaced(raw, b"ctorch\nFloatStorage\n", b"ctorch.cuda\nFloatStorage\n")
    assert xt.load(data)[0].tolist() == [1.0, 1.0]


def replaced(raw, old, new):
    """A checkpoint with other bytes in its pickle."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive, zipfile.ZipFile(made, "w") as changed:
        for entry in archive.infolist():
            data = archive.read(entry)
            changed.writestr(
                entry.filename, data.replace(old, new) if entry.filename.endswith(".pkl") else data
            )
    made.seek(0)
    return made


def test_numpy_values_load_when_they_are_allowed():
    value = {"loss": np.float64(0.5), "history": np.arange(3)}
    raw = saved(xt, value)
    with pytest.raises(pickle.UnpicklingError, match=r"numpy\._core\.multiarray"):
        xt.load(raw)
    names = [np.ndarray, np.dtype, type(np.dtype("f8")), type(np.dtype("i8"))]
    core = np._core.multiarray
    raw.seek(0)
    with serialization.safe_globals([*names, core.scalar, core._reconstruct]):
        loaded = xt.load(raw)
    assert loaded["loss"] == 0.5 and loaded["history"].tolist() == [0, 1, 2]


def test_files_of_the_other_byte_order(torch):
    ours = {
        "f": xt.arange(5.0),
        "i": xt.arange(3),
        "c": xt.ones(2, dtype=xt.complex64) * 1j,
        "b": xt.ones(3, dtype=xt.bool),
    }
    raw = io.BytesIO()
    with zipfile.ZipFile(saved(xt, ours)) as archive, zipfile.ZipFile(raw, "w") as swapped:
        for entry in archive.infolist():
            data = archive.read(entry)
            if entry.filename.endswith("byteorder"):
                data = b"big" if sys.byteorder == "little" else b"little"
            elif "/data/" in entry.filename:
                width = {"0": 4, "1": 8, "2": 4, "3": 1}[entry.filename[-1]]
                data = np.frombuffer(data, f"u{width}").byteswap().tobytes()
            swapped.writestr(entry.filename, data)
    raw.seek(0)
    loaded = xt.load(raw)
    for name, tensor in ours.items():
        assert loaded[name].tolist() == tensor.tolist()


def test_streams_and_paths(tmp_path):
    value = {"a": xt.arange(4.0)}
    stream = io.BytesIO(b"before")
    stream.seek(6)
    xt.save(value, stream)
    stream.seek(6)
    assert xt.load(stream)["a"].tolist() == [0.0, 1.0, 2.0, 3.0]
    with open(tmp_path / "a.pt", "wb") as file:
        xt.save(value, file)
    xt.save(value, str(tmp_path / "b.pt"))
    assert xt.load(tmp_path / "a.pt")["a"].tolist() == xt.load(str(tmp_path / "b.pt"))["a"].tolist()
    with open(tmp_path / "a.pt", "rb") as file:
        assert xt.load(file)["a"].tolist() == [0.0, 1.0, 2.0, 3.0]

    class WriteOnly:
        def __init__(self):
            self.pieces = []

        def write(self, data):
            self.pieces.append(bytes(data))

    pieces = WriteOnly()
    xt.save(value, pieces)
    assert xt.load(io.BytesIO(b"".join(pieces.pieces)))["a"].tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(AttributeError, match="'write' attribute"):
        xt.save(value, 3)
    with pytest.raises(AttributeError, match="seekable"):
        xt.load(WriteOnly())
    read, write = os.pipe()
    os.close(write)
    with open(read, "rb") as pipe, pytest.raises(io.UnsupportedOperation, match="seekable"):
        xt.load(pipe)
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        xt.save(value, tmp_path / "no" / "a.pt")
    with pytest.raises(FileNotFoundError):
        xt.load(tmp_path / "no.pt")


def test_older_files_follow_each_other_in_a_stream(torch):
    stream = io.BytesIO()
    for i in range(3):
        torch.save({"i": torch.full((i,), i)}, stream, _use_new_zipfile_serialization=False)
    stream.seek(0)
    assert [xt.load(stream)["i"].tolist() for _ in range(3)] == [[], [1], [2, 2]]


# ---- crashes --------------------------------------------------------------------------------------------------------


class Crash:
    def __reduce__(self):
        raise ZeroDivisionError("in the middle")


def test_an_error_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    xt.save({"a": xt.ones(3)}, path)
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        xt.save({"a": xt.zeros(3), "b": Crash()}, path)

    def broken(handle):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(OSError, match="full"):
            xt.save({"a": xt.zeros(3)}, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.pt"]


KILLED = """
import os, sys
import xtensor as xt
from xtensor.serialization import archive_writer
write = archive_writer.ArchiveWriter.write
def dying(self, name, data):
    write(self, name, data)
    if name == "data/1":
        self.stream.flush()
        os._exit(9)
archive_writer.ArchiveWriter.write = dying
xt.save({i: xt.full((1000,), 7.0) for i in range(4)}, sys.argv[1])
"""


def test_a_killed_process_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "model.pt"
    xt.save({"a": xt.ones(3)}, path)
    run = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, capture_output=True)
    assert run.returncode == 9, run.stderr
    assert xt.load(path)["a"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_links_and_pipes(tmp_path):
    path, link = tmp_path / "model.pt", tmp_path / "latest.pt"
    xt.save(1, path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    link.symlink_to(path)
    xt.save(2, link)
    assert link.is_symlink() and xt.load(path) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    xt.save(3, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(IsADirectoryError):
        xt.save(4, tmp_path)
