"""safetensors, `.npz` and Orbax, read and written; and `python -m xtensor.inspect`."""

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

import xtensor as xt
from xtensor import inspect as inspecting
from xtensor import serialization
from xtensor.serialization import FileFormatError, npz, orbax, safetensors
from xtensor.storage import LazyStorage

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "bool", "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
]  # fmt: skip
SHAPES = [(), (5,), (0,), (3, 0), (2, 3), (2, 3, 4, 5)]


def raw(tensor):
    """The bytes of a contiguous tensor of either library."""
    if isinstance(tensor, xt.Tensor):
        return np.ascontiguousarray(np.asarray(tensor._xt_storage.array)).tobytes()
    return bytes(tensor.contiguous().untyped_storage())


# ---- safetensors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
def test_safetensors_every_bit_both_ways(torch, rng, tmp_path, lazy):
    package = pytest.importorskip("safetensors.torch")
    theirs = {}
    for dtype in DTYPES:
        kind = getattr(torch, dtype)
        for shape in SHAPES:
            size = int(np.prod(shape)) * torch.empty(0, dtype=kind).element_size()
            data = torch.from_numpy(rng.integers(0, 2 if dtype == "bool" else 256, size, dtype=np.uint8))
            theirs[f"{dtype}.{shape}"] = (
                data.view(kind).reshape(shape) if size else torch.empty(shape, dtype=kind)
            )
    path, back = tmp_path / "theirs.safetensors", tmp_path / "ours.safetensors"
    package.save_file(theirs, path, metadata={"made by": "torch"})
    ours = safetensors.load_file(path, lazy=lazy)
    assert all(isinstance(t._xt_storage, LazyStorage) for t in ours.values()) == lazy
    safetensors.save_file(ours, back, {"made by": "xtensor"})
    again = package.load_file(back)
    assert set(ours) == set(theirs) == set(again)
    for name, tensor in theirs.items():
        for other in (ours[name], again[name]):
            assert str(other.dtype).split(".")[1] == name.split(".")[0] and tuple(other.shape) == tuple(
                tensor.shape
            )
            assert raw(other) == raw(tensor)


def test_safetensors_one_at_a_time(torch, tmp_path):
    package = pytest.importorskip("safetensors.torch")
    path = tmp_path / "m.safetensors"
    weight = torch.arange(12.0).reshape(3, 4)
    package.save_file({"w": weight, "b": torch.arange(3)}, path, metadata={"format": "pt"})
    with safetensors.safe_open(path, framework="pt", device="cpu:1") as file:
        assert file.keys() == ["b", "w"] and set(file.offset_keys()) == {"b", "w"}
        assert file.metadata() == {"format": "pt"}
        assert str(file.get_tensor("b").device) == "cpu:1"
        part = file.get_slice("w")
        assert part.get_shape() == [3, 4] and part.get_dtype() == "F32"
        assert part[1:, ::2].tolist() == weight[1:, ::2].tolist()
        kept = file.get_tensor("w", lazy=True)
        with pytest.raises(KeyError, match="no tensor 'x'"):
            file.get_tensor("x")
    assert isinstance(kept._xt_storage, LazyStorage)
    assert kept.tolist() == weight.tolist()
    kept.add_(1)
    assert safetensors.load_file(path)["w"].tolist() == weight.tolist()
    with pytest.raises(ValueError, match="not of 'tf'"):
        safetensors.safe_open(path, framework="tf")


def test_safetensors_views_are_written_as_they_read(tmp_path):
    pytest.importorskip("safetensors")
    base = xt.arange(6.0).reshape(2, 3)
    path = tmp_path / "m.safetensors"
    safetensors.save_file(
        {"t": base.t(), "p": xt.nn.Parameter(xt.ones(2)), "c": (xt.ones(2) * 1j).conj()}, path
    )
    loaded = safetensors.load_file(path)
    assert loaded["t"].tolist() == base.t().tolist() and loaded["t"].is_contiguous()
    assert loaded["c"].tolist() == [-1j, -1j]
    with pytest.raises(RuntimeError, match="Some tensors share memory"):
        safetensors.save_file({"a": base, "b": base.t()}, path)
    with pytest.raises(ValueError, match=r"no type for .*complex128"):
        safetensors.save_file({"a": xt.ones(2, dtype=xt.complex128)}, path)
    with pytest.raises(ValueError, match=r"expected xtensor\.Tensor"):
        safetensors.save_file({"a": [1]}, path)
    assert set(safetensors.load_file(path)) == {"t", "p", "c"}
    assert os.listdir(tmp_path) == ["m.safetensors"]


def sharded(tmp_path, files):
    pytest.importorskip("safetensors")
    names = {}
    for file, tensors in files.items():
        safetensors.save_file(tensors, tmp_path / file)
        names |= dict.fromkeys(tensors, file)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    return names


def test_safetensors_in_shards(tmp_path):
    names = sharded(
        tmp_path,
        {"one.safetensors": {"a": xt.ones(2), "b": xt.zeros(3)}, "two.safetensors": {"c": xt.arange(4)}},
    )
    for index in (tmp_path, tmp_path / "model.safetensors.index.json"):
        loaded = safetensors.load_sharded(index, lazy=True)
        assert all(isinstance(t._xt_storage, LazyStorage) for t in loaded.values())
        assert {name: t.tolist() for name, t in loaded.items()} == {
            "a": [1, 1],
            "b": [0, 0, 0],
            "c": [0, 1, 2, 3],
        }
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": names | {"d": "one.safetensors"}}))
    with pytest.raises(FileFormatError, match="no tensor 'd', which the index promises"):
        safetensors.load_sharded(tmp_path)
    for wrong in ("../one.safetensors", "/etc/passwd", "a\\b", "..", ""):
        index.write_text(json.dumps({"weight_map": {"a": wrong}}))
        with pytest.raises(FileFormatError, match="outside its folder"):
            safetensors.load_sharded(tmp_path)
    for text in ("[]", "{", "null", '{"weight_map": 3}'):
        index.write_text(text)
        with pytest.raises(FileFormatError, match="no index of a sharded checkpoint"):
            safetensors.load_sharded(tmp_path)


def test_safetensors_that_are_damaged(tmp_path):
    pytest.importorskip("safetensors")
    path = tmp_path / "m.safetensors"
    safetensors.save_file({"a": xt.arange(10.0)}, path)
    good = path.read_bytes()
    cases = [good[:size] for size in range(0, len(good), 7)]
    cases += [struct.pack("<Q", size) + good[8:] for size in (0, 1, 1 << 20, 1 << 40, (1 << 64) - 1)]
    cases += [good + b"more", good.replace(b'"shape":[10]', b'"shape":[99]')]
    for data in cases:
        path.write_bytes(data)
        with pytest.raises(FileFormatError):
            safetensors.load_file(path)
        with pytest.raises((FileFormatError, pickle.UnpicklingError)):
            serialization.describe(path)


# ---- npz ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_both_ways(tmp_path, rng, compressed):
    arrays = {}
    for dtype in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "?"]:
        for shape in SHAPES:
            arrays[f"{dtype[-2:]}.{shape}"] = rng.integers(0, 2, shape).astype(dtype)
    arrays["fortran"] = np.asfortranarray(rng.random((3, 4)))
    arrays["big"] = np.arange(5, dtype=">i4")
    path, back = tmp_path / "theirs.npz", tmp_path / "ours.npz"
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    ours = npz.load(path)
    assert set(ours) == set(arrays)
    npz.save(back, ours, compressed=compressed)
    with np.load(back) as again:
        for name, array in arrays.items():
            assert ours[name].dtype is xt.dtypes.FROM_NUMPY[array.dtype.newbyteorder("=")]
            assert ours[name].numpy().tobytes() == again[name].tobytes()
            assert np.array_equal(ours[name].numpy(), array) and again[name].shape == array.shape


def test_npz_views_streams_and_devices():
    buffer = io.BytesIO()
    npz.save(buffer, {"t": xt.arange(6).reshape(2, 3).t(), "p": xt.nn.Parameter(xt.ones(2))})
    buffer.seek(0)
    loaded = npz.load(buffer, device="cpu:1")
    assert loaded["t"].tolist() == [[0, 3], [1, 4], [2, 5]] and str(loaded["t"].device) == "cpu:1"
    with pytest.raises(TypeError, match=r"know no .*bfloat16"):
        npz.save(buffer, {"a": xt.ones(2, dtype=xt.bfloat16)})


def npy(header, data=b""):
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def archived(name, data, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.writestr(name, data)
    buffer.seek(0)
    return buffer


def test_npz_that_are_hostile(tmp_path):
    np.savez(tmp_path / "objects.npz", a=np.array([{}, print], dtype=object))
    with pytest.raises(FileFormatError, match="pickled Python objects"):
        npz.load(tmp_path / "objects.npz")
    huge = "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }"
    with pytest.raises(FileFormatError, match="does not fit its record"):
        npz.load(archived("a.npy", npy(huge, bytes(16))))
    with pytest.raises(FileFormatError, match=r"no \.npz file, or a damaged one"):
        npz.load(archived("a.npy", npy("{'descr': __import__('os').system('true')}")))
    with pytest.raises(FileFormatError, match="which no tensor has"):
        npz.load(
            archived("a.npy", npy("{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }", bytes(16)))
        )
    with pytest.raises(FileFormatError, match="which is no array"):
        npz.load(archived("a.txt", b"hello"))
    with pytest.raises(FileFormatError):
        npz.load(io.BytesIO(b"hello"))
    with pytest.raises(FileNotFoundError):
        npz.load(tmp_path / "no.npz")


def test_npz_bombs_are_refused():
    count = 100_000_000
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({count},), }}"
    bomb = archived("a.npy", npy(header, bytes(count)), zipfile.ZIP_DEFLATED)
    assert len(bomb.getvalue()) < 200_000
    assert npz.load(bomb)["a"].numel() == count  # below what any machine can bear
    with pytest.raises(FileFormatError, match="would grow to 100000128 bytes: pass max_bytes"):
        npz.load(bomb, max_bytes=1000)


# ---- Orbax ----------------------------------------------------------------------------------------------------------


def test_orbax_both_ways(tmp_path):
    checkpointing = pytest.importorskip("orbax.checkpoint")
    jax = pytest.importorskip("jax")
    model = xt.nn.Linear(3, 2)
    optimizer = xt.optim.Adam(model.parameters())
    model(xt.ones(1, 3)).sum().backward()
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "wide": xt.arange(3) * 2**40,
        "double": xt.ones(2, dtype=xt.float64) / 3,
        "half": xt.ones(2, dtype=xt.bfloat16) / 3,
        "nested": [xt.ones(()), (1, 2.5, "text", None)],
    }
    orbax.save(tmp_path / "ours", state)
    for loaded in (orbax.load(tmp_path / "ours"), orbax.load(tmp_path / "ours", like=state)):
        assert loaded["wide"].tolist() == state["wide"].tolist() and loaded["double"].tolist() == [1 / 3] * 2
        assert loaded["half"].dtype is xt.bfloat16 and loaded["nested"][0].tolist() == 1.0
        assert list(loaded["nested"][1]) == [1, 2.5, "text", None]
        assert loaded["model"]["weight"].tolist() == model.weight.tolist()
    assert type(loaded["nested"][1]) is tuple and list(loaded["optimizer"]["state"]) == [0, 1]
    optimizer.load_state_dict(loaded["optimizer"])
    with checkpointing.PyTreeCheckpointer() as checkpointer:
        theirs = checkpointer.restore(tmp_path / "ours")
        checkpointer.save(tmp_path / "theirs", {"w": jax.numpy.ones((2, 3)), "k": [jax.numpy.arange(3)]})
    assert np.array_equal(np.asarray(theirs["model"]["weight"]), model.weight.detach().numpy())
    read = orbax.load(tmp_path / "theirs", device="cpu:1")
    assert read["w"].tolist() == [[1.0] * 3] * 2 and str(read["k"][0].device) == "cpu:1"
    with pytest.raises(ValueError, match="other keys"):
        orbax.load(tmp_path / "theirs", like={"w": 1})
    with pytest.raises(ValueError, match=r"(?i)exists"):
        orbax.save(tmp_path / "ours", state)
    orbax.save(tmp_path / "ours", {"a": xt.ones(2)}, force=True)
    assert list(orbax.load(tmp_path / "ours")) == ["a"]


# ---- inspect --------------------------------------------------------------------------------------------------------


class Secret:
    def __init__(self, tensor):
        self.inner = tensor


@pytest.fixture
def mixed(torch):
    base = torch.arange(24.0).reshape(4, 6)
    return {
        "model": {"weight": base, "tied": base.t(), "bias": torch.nn.Parameter(torch.zeros(3))},
        "steps": [torch.tensor(5), 7, "text"],
        "odd": Secret(base[1:2]),
        "none": torch.zeros(0, 2, dtype=torch.bfloat16),
    }


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_inspect_tells_without_loading(torch, mixed, tmp_path, zipped):
    path = tmp_path / "m.pt"
    torch.save(mixed, path, _use_new_zipfile_serialization=zipped)
    contents = serialization.describe(path)
    found = {entry.name: entry for entry in contents.tensors}
    assert list(found) == ["model.weight", "model.tied", "model.bias", "steps[0]", "odd.inner", "none"]
    assert found["model.tied"].shape == (6, 4) and found["model.tied"].stride == (1, 6)
    assert found["model.weight"].stride is None and found["model.weight"].dtype == "float32"
    assert found["odd.inner"].offset == 6 and found["odd.inner"].nbytes == 24
    assert found["model.bias"].parameter and found["model.bias"].requires_grad
    assert list(contents.shared().values()) == [["model.weight", "model.tied", "odd.inner"]]
    assert [refused.name for refused in contents.refused] == [f"{__name__}.Secret"]
    assert "['odd']" in contents.refused[0].where
    assert sorted(contents.storages.values()) == [0, 8, 12, 96]
    assert contents.values == {"steps[1]": "int", "steps[2]": "str", "odd": f"{__name__}.Secret"}
    assert serialization.get_unsafe_globals_in_checkpoint(path) == [f"{__name__}.Secret"]


def test_inspect_as_a_command(torch, mixed, tmp_path):
    path = tmp_path / "m.pt"
    torch.save(mixed, path)
    run = subprocess.run(
        [sys.executable, "-m", "xtensor.inspect", str(path), str(tmp_path / "no.pt")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1 and "No such file" in run.stderr
    lines = run.stdout.splitlines()
    assert "PyTorch zip" in lines[0] and "6 tensors in 4 storages of 116 bytes" in lines[0]
    assert lines[1].split() == ["model.weight", "float32", "4x6", "96"]
    assert any(
        line.startswith("shared: storage 0 of 96 bytes by model.weight, model.tied, odd.inner")
        for line in lines
    )
    assert any(line.startswith(f"refused: {__name__}.Secret (at byte ") for line in lines)


def test_inspect_other_formats(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", x=np.ones((2, 3)), y=np.array([None, 1], dtype=object))
    assert inspecting.main(["--json", str(tmp_path / "a.npz")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["format"] == ".npz" and [t["name"] for t in told["tensors"]] == ["x", "y"]
    assert told["tensors"][0]["nbytes"] == 48 and told["refused"][0]["name"] == "pickled Python objects"
    sharded(tmp_path, {"one.safetensors": {"a": xt.ones(2)}, "two.safetensors": {"c": xt.arange(4)}})
    assert inspecting.main([str(tmp_path), str(tmp_path / "one.safetensors")]) == 0
    text = capsys.readouterr().out
    assert "safetensors in shards" in text and "2 tensors in 2 storages of 40 bytes" in text
    (tmp_path / "x.txt").write_text("hello, this is no checkpoint")
    assert inspecting.main([str(tmp_path / "x.txt")]) == 1
    assert "starts neither as a zip archive" in capsys.readouterr().err


def test_inspect_prints_no_escapes(tmp_path, capsys):
    xt.save({"a\x1b[31m\n": xt.ones(2), "l" * 500: xt.ones(1)}, tmp_path / "m.pt")
    assert inspecting.main([str(tmp_path / "m.pt")]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text and all(len(line) < 200 for line in text.splitlines())


def test_inspect_reads_no_tensor(tmp_path):
    """A file whose storages are damaged is told as any other."""
    path = tmp_path / "m.pt"
    xt.save({"a": xt.arange(100.0)}, path)
    data = bytearray(path.read_bytes())
    data[data.index(np.arange(100, dtype=np.float32).tobytes()) + 17] ^= 255
    path.write_bytes(data)
    assert [entry.name for entry in serialization.describe(path).tensors] == ["a"]
    with pytest.raises(FileFormatError, match="CRC32"):
        xt.load(path)


def test_the_older_format_is_written_too(torch):
    base = xt.arange(6.0)
    state = {
        "base": base,
        "part": base[2:4],
        "short": xt.ones(2, dtype=xt.bfloat16),
        "none": xt.zeros(0),
        "n": 3,
    }
    file = io.BytesIO()
    xt.save(state, file, _use_new_zipfile_serialization=False)
    xt.save("next", file, _use_new_zipfile_serialization=False)
    for library in (torch, xt):
        file.seek(0)
        found = library.load(file)
        assert library.load(file) == "next"  # one file holds several, each read from where the last one ended
        found["base"][2] = 9
        assert found["part"].tolist() == [9, 3] and found["short"].dtype is library.bfloat16
        assert found["none"].shape == (0,) and found["n"] == 3


def test_a_stream_is_flushed(tmp_path):
    with open(tmp_path / "state.pt", "wb") as file:
        xt.save({"a": xt.ones(2)}, file)
        assert xt.load(tmp_path / "state.pt")["a"].tolist() == [1, 1]


@pytest.mark.parametrize("zipped", [True, False])
def test_storages_with_types_are_saved_as_storages(torch, zipped):
    values = xt.arange(4.0)
    file = io.BytesIO()
    xt.save([values.storage(), values[1:3]], file, _use_new_zipfile_serialization=zipped)
    for library in (torch, xt):
        file.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's, about typed storages
            storage, part = library.load(file)
            assert storage.dtype is library.float32 and len(storage) == 4
            storage[1] = 7.0
        assert part.tolist() == [7, 2]
