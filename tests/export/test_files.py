"""Exported programs in files: whole, shared with plain JAX, and damaged ones."""

import io
import json
import os
import pathlib
import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import xtensor
from xtensor import nn
from xtensor.export import codec, export, files, load, save
from xtensor.serialization.errors import FileFormatError

pytest.importorskip("flatbuffers")
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.out = nn.Linear(8, 5)
        self.register_buffer("table", xtensor.arange(64), persistent=False)

    def forward(self, x):
        x = self.norm(self.conv(x)).relu().flatten(2).transpose(1, 2) + self.table[:, None] / 64
        x, _ = self.attention(x, x, x, need_weights=False)
        return self.out(x.mean(1))


@pytest.fixture(scope="module")
def saved():
    """A module, its input, and the bytes of its file."""
    xtensor.manual_seed(3)
    net, x = Net().eval(), xtensor.randn(2, 3, 8, 8)
    file = io.BytesIO()
    save(export(net, (x,)), file, extra_files={"note.txt": "hello"})
    return net, x, file.getvalue()


def test_a_file_gives_the_program_back(saved, tmp_path):
    net, x, raw = saved
    extra = {"note.txt": ""}
    program = load(io.BytesIO(raw), extra_files=extra)
    assert extra["note.txt"] == "hello"
    module = program.module()
    assert xtensor.equal(module(x), net(x)) and set(module.state_dict()) == set(net.state_dict())
    assert xtensor.allclose(program.call(x), net(x), atol=1e-6)
    assert isinstance(module.conv.weight, nn.Parameter)
    module(x).sum().backward()
    assert module.conv.weight.grad is not None
    save(program, tmp_path / "again.xtx")
    again = load(tmp_path / "again.xtx")
    assert xtensor.equal(again.module()(x), net(x))
    assert [f.name for f in tmp_path.iterdir()] == ["again.xtx"]


def test_training_goes_on_elsewhere(saved):
    net, x, _ = saved
    file = io.BytesIO()
    save(export(net.train(), (x,)), file)
    net.eval()
    module = load(io.BytesIO(file.getvalue())).module()
    before = module.norm.running_mean.clone()
    optimizer = xtensor.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = module(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > losses[1] > losses[2]
    assert module.norm.num_batches_tracked == 3 and not xtensor.equal(before, module.norm.running_mean)


# docs/export.md has the same lines.
PLAIN = """
import json, sys, zipfile
sys.modules["xtensor"] = None  # importing it raises ImportError
import jax
import numpy as np
from jax import export
from safetensors.numpy import load

def read(path):
    with zipfile.ZipFile(path) as file:
        program = export.deserialize(bytearray(file.read("export/program.jax")))
        weights = load(file.read("export/weights.safetensors"))
        inputs = json.loads(file.read("export/signature.json"))["inputs"]
    state = {entry["target"]: weights[entry["target"]] for entry in inputs if entry["target"]}
    def call(*arrays):
        with jax.enable_x64(True):
            results, written = program.call(state, list(arrays))
        return results
    return call

(result,) = read(sys.argv[1])(np.load(sys.argv[2]))
np.save(sys.argv[3], np.asarray(result))
assert not any(name.startswith("xtensor.") for name in sys.modules)
"""


def by_plain_jax(raw, x, folder):
    """The one result of a file's program for an input, by plain JAX in a process where xtensor cannot be imported."""
    (folder / "net.xtx").write_bytes(raw)
    np.save(folder / "x.npy", x.numpy())
    run = subprocess.run(
        [sys.executable, "-c", PLAIN, "net.xtx", "x.npy", "y.npy"],
        cwd=folder,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return np.load(folder / "y.npy")


def test_plain_jax_runs_it_without_xtensor(saved, tmp_path):
    net, x, raw = saved
    found = by_plain_jax(raw, x, tmp_path)
    np.testing.assert_allclose(found, net(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_random_numbers_are_operands():
    file = io.BytesIO()
    save(export(nn.Dropout(0.5), (xtensor.ones(64),)), file)
    program = load(io.BytesIO(file.getvalue()))
    x = xtensor.ones(64)
    xtensor.manual_seed(1)
    first, second = program.call(x), program.call(x)
    assert not xtensor.equal(first, second)
    xtensor.manual_seed(1)
    assert xtensor.equal(first, nn.Dropout(0.5)(x)) and xtensor.equal(second, nn.Dropout(0.5)(x))


def test_a_program_without_names_for_its_operators():
    class Halves(nn.Module):
        def forward(self, x):
            return xtensor.jax.from_jax(lambda a: a / 2)(x) + 1

    file = io.BytesIO()
    with pytest.raises(RuntimeError, match="made by other means"):
        save(export(Halves(), (xtensor.ones(2),)), file)


def test_a_program_with_an_added_operator():
    @xtensor.library.custom_op("exporting::half", mutates_args=())
    def half(x: xtensor.Tensor) -> xtensor.Tensor:
        return xtensor.jax.from_jax(lambda a: a / 2)(x)

    class Halves(nn.Module):
        def forward(self, x):
            return half(x) + 1

    file = io.BytesIO()
    save(export(Halves(), (xtensor.ones(2),)), file)
    file.seek(0)
    assert xtensor.equal(load(file).module()(xtensor.full((2,), 4.0)), xtensor.full((2,), 3.0))


def rewritten(raw, name, change):
    """The file with one of its records changed, its checksums right again."""
    with zipfile.ZipFile(io.BytesIO(raw)) as old:
        records = {n: old.read(n) for n in old.namelist()}
    records[name] = change(records[name])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as new:
        for each, data in records.items():
            new.writestr(each, data)
    return made.getvalue()


def edited(raw, edit):
    """The file with another signature."""

    def change(data):
        told = json.loads(data)
        edit(told)
        return json.dumps(told).encode()

    return rewritten(raw, "export/signature.json", change)


def first(told, target):
    return next(n for n in told["graph"] if n["target"].startswith(target))


HOSTILE = {
    "an operator that is none": lambda t: t["graph"][0].update(target="aten.save.default"),
    "a function of Python": lambda t: t["graph"][0].update(target="builtins.eval"),
    "a function of the library": lambda t: t["graph"][0].update(target="functional.os"),
    "a dunder": lambda t: t["graph"][0].update(target="aten.__class__.default"),
    "a node that is not there": lambda t: t["graph"][0].update(args={"tuple": [{"node": "nobody"}]}),
    "two words": lambda t: t["graph"][0].update(args={"tuple": [{"node": "x", "slot": 0}]}),
    "deep arguments": lambda t: t["graph"][0].update(args=json.loads('{"list":[' * 80 + "1" + "]}" * 80)),
    "a size that is code": lambda t: t["inputs"][-1].update(val=[["().__class__"], "float32"]),
    "another size": lambda t: t["inputs"][-1].update(val=[[2, 3, 8, 9], "float32"]),
    "another dtype": lambda t: t["inputs"][-1].update(val=[[2, 3, 8, 8], "float64"]),
    "a weight that is not there": lambda t: t["inputs"][0].update(target="other"),
    "too few arguments": lambda t: t.update(arguments={"tuple": [{"tuple": []}, {"dict": []}]}),
    "a result that is not there": lambda t: t.update(result={"slot": 7}),
    "another version": lambda t: t.update(version=2),
    "another format": lambda t: t.update(format="other"),
    "no results": lambda t: t.update(results={"tuple": []}),
    "a name twice": lambda t: t["graph"][1].update(name=t["graph"][0]["name"]),
    "random numbers": lambda t: t.update(random=3),
    "sizes": lambda t: t.update(sizes={"a b": [1, 2]}),
    "modules that are none": lambda t: t.update(stacks=[[["key", 3, "kind"]]]),
    "the number of modules that are not there": lambda t: t["graph"][0].update(stack=1000),
    "a call of no form": lambda t: t["modules"].append(["layer", [[], [], {"list": []}, None, None]]),
    "a call with other arguments": lambda t: t["modules"].append(
        ["layer", [[["x"]], [], {"tuple": [{"tuple": []}, {"dict": []}]}, {"tuple": []}, None]]
    ),
    "a call with a node that is not there": lambda t: t["modules"].append(
        [
            "layer",
            [[["nobody"]], [], {"tuple": [{"tuple": [{"slot": 0}]}, {"dict": []}]}, {"tuple": []}, None],
        ]
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_signature_is_refused(saved, what):
    with pytest.raises(FileFormatError):
        load(io.BytesIO(edited(saved[2], HOSTILE[what])))


def test_damaged_files_are_refused(saved, seed):
    net, x, raw = saved
    chance = random.Random(seed)
    for _ in range(40):
        data = bytearray(raw)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        try:
            program = load(io.BytesIO(bytes(data)))
        except (FileFormatError, RuntimeError):
            continue
        assert xtensor.equal(program.module()(x), net(x))  # a byte of padding
    for end in (0, 3, 100, len(raw) // 2, len(raw) - 1):
        with pytest.raises(FileFormatError):
            load(io.BytesIO(raw[:end]))
    for name in ("export/program.jax", "export/weights.safetensors", "export/signature.json"):
        for change in (lambda d: d[: len(d) // 2], lambda d: b"", lambda d: d[::-1]):
            with pytest.raises(FileFormatError):
                load(io.BytesIO(rewritten(raw, name, change)))
    with pytest.raises(FileFormatError, match=r"load its weights with xtensor\.load"):
        file = io.BytesIO()
        xtensor.save({"a": x}, file)
        load(io.BytesIO(file.getvalue()))


def test_a_program_may_call_kernels_of_linear_algebra_alone():
    class Fake:
        def __init__(self, name):
            self.name = name

        def mlir_module(self):
            return f"%0 = stablehlo.custom_call @{self.name}(%arg0)"

    files.check_calls(Fake("lapack_sgetrf_ffi"))
    for name in (
        "xla_python_cpu_callback",
        "xla_ffi_python_cpu_callback",
        "my_kernel",
        "__gpu$xla.gpu.triton",
    ):
        with pytest.raises(FileFormatError, match="which is no kernel"):
            files.check_calls(Fake(name))


def test_archives_of_code_are_refused_in_words_that_say_what_to_do(torch):
    packed = io.BytesIO()
    with torch.package.PackageExporter(packed) as exporter:
        exporter.save_pickle("model", "model.pkl", [1])
    with pytest.raises(RuntimeError, match=r"archive of torch\.package.*state_dict.*export\.save"):
        xtensor.load(io.BytesIO(packed.getvalue()))
    for kind in (xtensor.package.PackageImporter, xtensor.package.PackageExporter):
        with pytest.raises(NotImplementedError, match=r"torch\.export\.save.*state_dict"):
            kind(packed)


def test_values_have_words():
    values = [
        None,
        True,
        3,
        2.5,
        float("inf"),
        1 + 2j,
        "a",
        (1, [2]),
        {"k": slice(None, 3)},
        Ellipsis,
        xtensor.float32,
    ]
    assert [codec.decode(codec.encode(v), {}) for v in values] == values
    assert codec.decode(codec.encode(xtensor.contiguous_format), {}) is xtensor.contiguous_format
    with pytest.raises(codec.Unkept):
        codec.encode(object())
