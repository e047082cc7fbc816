"""Where loaded tensors go, and when their bytes are read: `map_location` and `mmap`."""

import io
import os
import subprocess
import sys

import pytest

import xtensor as xt
from xtensor import serialization
from xtensor.storage import LazyStorage


def saved(library, value, **options):
    buffer = io.BytesIO()
    library.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


# ---- map_location ---------------------------------------------------------------------------------------------------


def cuda_file(torch):
    """A checkpoint as a machine with two CUDA devices writes it."""
    buffer = io.BytesIO()
    from torch import serialization as theirs

    tag = theirs.location_tag
    tags = iter(["cuda:0", "cuda:1", "cuda:1", "cpu"] * 2)
    theirs.location_tag = lambda storage: next(tags)
    try:
        torch.save({name: torch.ones(2) for name in "abcd"}, buffer)
    finally:
        theirs.location_tag = tag
    buffer.seek(0)
    return buffer


def test_map_location(torch):
    assert all(t.device == xt.device("cpu") for t in xt.load(cuda_file(torch), map_location="cpu").values())
    mapped = xt.load(cuda_file(torch), map_location={"cuda:0": "cpu:1", "cuda:1": "cpu"})
    assert [str(t.device) for t in mapped.values()] == ["cpu:1", "cpu", "cpu", "cpu"]
    assert xt.load(cuda_file(torch), map_location=xt.device("cpu:1"))["d"].device == xt.device("cpu:1")
    assert xt.load(cuda_file(torch), map_location="meta")["a"].is_meta
    seen = []

    def choose(storage, location):
        seen.append((storage.nbytes(), location))
        return storage.to("cpu:1") if location == "cuda:1" else storage

    mapped = xt.load(cuda_file(torch), map_location=choose)
    assert [str(t.device) for t in mapped.values()] == ["cpu", "cpu:1", "cpu:1", "cpu"]
    assert seen == [(8, "cuda:0"), (8, "cuda:1"), (8, "cuda:1"), (8, "cpu")]
    assert all(t.tolist() == [1.0, 1.0] for t in mapped.values())
    restore = serialization.default_restore_location
    mapped = xt.load(cuda_file(torch), map_location=lambda storage, location: restore(storage, "cpu"))
    assert {serialization.location_tag(t.untyped_storage()) for t in mapped.values()} == {"cpu"}
    with pytest.raises(TypeError, match="map_location"):
        xt.load(cuda_file(torch), map_location=3)
    with pytest.raises(TypeError, match="must return a storage"):
        xt.load(cuda_file(torch), map_location=lambda storage, location: "cpu")


def test_map_location_of_older_files(torch):
    buffer = saved(torch, [torch.ones(2), torch.zeros(3)], _use_new_zipfile_serialization=False)
    first, second = xt.load(buffer, map_location=lambda storage, location: storage.to("cpu:1"))
    assert str(first.device) == "cpu:1" and first.tolist() == [1.0, 1.0] and second.tolist() == [0.0] * 3


@pytest.mark.skipif(bool(xt.devices.count("gpu")), reason="there is a GPU")
def test_a_device_that_is_missing_is_named(torch):
    with pytest.raises(RuntimeError, match=r"deserialize object on a CUDA device .*map_location"):
        xt.load(cuda_file(torch))
    with pytest.raises(RuntimeError, match=r"don't know how to restore data location .*tagged with mps:0"):
        xt.load(saved(torch, torch.ones(2)), map_location="mps:0")


def test_tensors_of_other_devices_are_tagged():
    loaded = xt.load(saved(xt, xt.ones(2, device="cpu:1")))
    assert loaded.device == xt.device("cpu")  # a file names no CPU but the one that every machine has


# ---- mapping --------------------------------------------------------------------------------------------------------


def unread(tensor):
    return type(tensor._xt_storage) is LazyStorage


def test_mapped_storages_are_read_when_they_are_touched(torch, tmp_path):
    path = tmp_path / "m.pt"
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 3))
    torch.save(
        {
            "state": model.state_dict(),
            "p": torch.nn.Parameter(torch.ones(3)),
            "b": torch.tensor([True, False]),
        },
        path,
    )
    loaded = xt.load(path, mmap=True)
    tensors = [*loaded["state"].values(), loaded["p"], loaded["b"]]
    for t in tensors:
        _ = (
            t.shape,
            t.dtype,
            t.device,
            t.stride(),
            t.requires_grad,
            t.is_meta,
            t.nbytes,
            t.is_contiguous(),
        )
        _ = (
            t.detach(),
            t[1:],
            t.is_leaf,
            t.layout,
            t.numel(),
            t.t() if t.dim() == 2 else t,
            t.is_floating_point(),
        )
        assert xt.nn.Parameter(t, requires_grad=False).shape == t.shape
        assert unread(t)
    weight = loaded["state"]["0.weight"]
    part = weight[1:]
    assert part.tolist() == model[0].weight[1:].tolist()
    assert not unread(weight) and unread(loaded["state"]["0.bias"])
    before = path.read_bytes()
    weight.add_(1)  # the file is never written
    loaded["state"]["1.bias"].zero_()
    assert path.read_bytes() == before
    assert part.tolist() == (model[0].weight[1:] + 1).tolist()
    assert loaded["b"].tolist() == [True, False]
    ours = xt.nn.Sequential(xt.nn.Linear(3, 4), xt.nn.Linear(4, 3))
    ours.load_state_dict(xt.load(path, mmap=True)["state"], assign=True)
    assert unread(ours[0].weight)
    out = ours(xt.ones(2, 3))
    out.sum().backward()
    torch.testing.assert_close(torch.tensor(out.tolist()), model(torch.ones(2, 3)).detach())
    assert ours[0].weight.grad is not None


def test_mapped_files_may_be_replaced_while_they_are_used(tmp_path):
    path = tmp_path / "m.pt"
    xt.save({"a": xt.ones(1000)}, path)
    loaded = xt.load(path, mmap=True)
    xt.save({"a": loaded["a"] + 1, "b": loaded["a"]}, path)
    assert loaded["a"].sum() == 1000.0
    again = xt.load(path, mmap=True)
    assert again["a"].sum() == 2000.0 and again["b"].sum() == 1000.0


def test_mapping_needs_a_path_and_a_zip_file(torch, tmp_path):
    with pytest.raises(ValueError, match="f must be a file path"):
        xt.load(saved(xt, 1), mmap=True)
    torch.save(torch.ones(2), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        xt.load(tmp_path / "old.pt", mmap=True)


def test_mapped_to_another_device_stays_unread(tmp_path):
    xt.save({"a": xt.arange(4.0)}, tmp_path / "m.pt")
    loaded = xt.load(tmp_path / "m.pt", mmap=True, map_location="cpu:1")["a"]
    assert str(loaded.device) == "cpu:1" and unread(loaded)
    assert (loaded + 1).tolist() == [1.0, 2.0, 3.0, 4.0] and str((loaded + 1).device) == "cpu:1"


MEMORY = """
import sys
import xtensor as xt

def held(kind):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(kind)) / 1024

float((xt.ones(3) + 1).sum())
before = held("VmRSS")
loaded = xt.load(sys.argv[1], mmap=True)
names = [(name, t.shape, t.dtype, t.device) for name, t in loaded.items()]
untouched = held("VmHWM") - before
first = float(loaded["layer0"].sum())
print(len(names), untouched, held("VmRSS") - before, first)
"""


@pytest.mark.full
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_two_gigabytes_map_in_little_memory(tmp_path):
    path, part = tmp_path / "big.pt", xt.ones(20, 1 << 18)
    xt.save({f"layer{i}": part + i for i in range(100)}, path)
    assert path.stat().st_size > 2_000_000_000
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path)], check=True, capture_output=True, text=True
    )
    count, untouched, touched, first = run.stdout.split()
    print(f"{untouched} MiB until touched, {touched} MiB with one of 100 tensors touched")
    assert (count, float(first)) == ("100", 20.0 * (1 << 18))
    assert float(untouched) < 300 and float(touched) < 300
