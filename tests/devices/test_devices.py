"""Devices: names, the default and how to change it, moving tensors, mixing devices, what a device is and holds."""

import gc
import os
import pathlib
import re
import subprocess
import sys
import threading
import tomllib

import pytest

import xtensor
from xtensor.devices import placement

ROOT = pathlib.Path(__file__).resolve().parents[2]


def outcome(library, expression: str, **names):
    """What an expression gives, as text that two libraries can agree on; or its error's class and first line."""
    try:
        value = eval(expression, {"lib": library, **names})
    except Exception as error:
        text = str(error).splitlines()[0]
        return type(error).__name__, re.sub(r"\b(xtensor|torch)\.", "", text)
    if isinstance(value, library.Tensor):
        return str(value.dtype).rpartition(".")[2], str(value.device), tuple(value.shape), value.stride()
    return str(value)


# -- names


@pytest.mark.parametrize(
    "expression",
    [
        "lib.device('cpu')",
        "repr(lib.device('cuda:1'))",
        "repr(lib.device('cuda'))",
        "lib.device('cuda', 1) == lib.device('cuda:1')",
        "hash(lib.device('cuda', 1)) == hash(lib.device('cuda:1'))",
        "lib.device('cpu') == lib.device('cpu:0')",
        "lib.device('cpu') == 'cpu'",
        "lib.device('meta').index",
        "lib.device('cpu:1').index",
        "lib.device(type='cpu', index=0)",
        "lib.device(lib.device('cpu:1'))",
        "lib.device('')",
        "lib.device(':1')",
        "lib.device('cpu:')",
        "lib.device('cpu:x')",
        "lib.device('cpu:01')",
        "lib.device('cuda:-1')",
        "lib.device('cuda', -1)",
        "lib.device(-1)",
        "lib.device('cuda:0', 0)",
        "lib.ones(2, device='cpu:0').device",
        "lib.ones(2, device='meta:1').device",
        "lib.ones(2, device='meta').get_device()",
    ],
)
def test_names_are_pytorchs(torch, expression):
    assert outcome(xtensor, expression) == outcome(torch, expression)


def test_an_unknown_device_is_refused_with_the_known_ones():
    with pytest.raises(
        RuntimeError, match=r"Expected one of cpu, cuda, .*tpu.* at start of device string: abacus"
    ):
        xtensor.device("abacus")


# -- where tensors are made


def test_a_default_a_context_and_a_thread_of_its_own():
    assert str(xtensor.get_default_device()) == str(xtensor.ones(1).device) == "cpu"
    with xtensor.device("cpu:1"):
        assert xtensor.devices.current() is xtensor.get_default_device() is xtensor.device("cpu:1")
        made = [
            xtensor.ones(1),
            xtensor.tensor([1]),
            xtensor.randn(1),
            xtensor.arange(2),
            xtensor.nn.Linear(1, 1).weight,
        ]
        assert {str(t.device) for t in made} == {"cpu:1"}
        with xtensor.device("meta"), xtensor.devices.use("cpu"):
            assert str(xtensor.ones(1).device) == "cpu"
        seen = []
        thread = threading.Thread(target=lambda: seen.append(str(xtensor.ones(1).device)))
        thread.start()
        thread.join()
        assert seen == ["cpu"]
    assert str(xtensor.ones(1).device) == "cpu"


def test_a_context_ends_with_an_error_inside():
    with pytest.raises(ZeroDivisionError), xtensor.device("cpu:1"):
        raise ZeroDivisionError
    assert str(xtensor.ones(1).device) == "cpu"


def test_one_call_moves_a_whole_program():
    try:
        xtensor.set_default_device("cpu:1")
        model = xtensor.nn.Sequential(xtensor.nn.Linear(3, 2), xtensor.nn.ReLU())
        loss = model(xtensor.randn(4, 3)).sum()
        loss.backward()
        assert {str(t.device) for t in (loss, *[p.grad for p in model.parameters()])} == {"cpu:1"}
    finally:
        xtensor.set_default_device(None)
    assert str(xtensor.ones(1).device) == "cpu"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )


def test_variables_set_the_default_and_the_number_of_cpu_devices():
    code = "import xtensor as x; print(x.ones(1).device, x.devices.count('cpu'), *x.devices.list())"
    printed = python(code, XTENSOR_DEVICE="cpu:2", JAX_NUM_CPU_DEVICES="3").stdout.split()
    assert printed == ["cpu:2", "3", "cpu", "cpu:1", "cpu:2"]


def test_nothing_is_logged_of_platforms_that_are_not_there():
    code = (
        "from absl import app, logging\nimport xtensor\nlogging.set_verbosity(logging.INFO)\n"
        "app.run(lambda _: print(xtensor.ones(1), xtensor.devices.list()))"
    )
    done = python(code)
    assert "tensor([1.])" in done.stdout
    assert "Unable to initialize backend" not in done.stderr


# -- moving


OTHER = "lib.ones(2, dtype=lib.int32)"
ELSEWHERE = "lib.ones(2, dtype=lib.float64, device='meta')"
IMAGES = "lib.channels_last"


@pytest.mark.parametrize(
    "call",
    [
        "to()",
        "to(None)",
        "to('cpu')",
        "to(lib.device('cpu'))",
        "to(device='cpu')",
        "to(device=None)",
        "to(dtype=None)",
        "to('cpu', lib.float64)",
        "to('cpu', lib.float64, True)",
        "to('cpu', lib.float64, True, True)",
        f"to('cpu', lib.float64, True, True, memory_format={IMAGES})",
        "to('cpu', dtype=lib.float64, copy=True)",
        "to(lib.float64, False, True)",
        "to(lib.float64, non_blocking=True)",
        "to(lib.float32, copy=True)",
        f"to({OTHER})",
        f"to({OTHER}, True, True)",
        f"to({OTHER}, non_blocking=True, copy=True, memory_format={IMAGES})",
        f"to({ELSEWHERE})",
        "to('meta')",
        "to('meta', lib.int8)",
        f"to(memory_format={IMAGES})",
        f"to(lib.float64, memory_format={IMAGES})",
        "to('cpu', None, True)",
        "to(float)",
        "to(int)",
        "to(bool)",
        "to(copy=True, memory_format=lib.contiguous_format)",
        "permute(0, 2, 3, 1).to(lib.float64)",
        "permute(0, 2, 3, 1).to(lib.float64, memory_format=lib.contiguous_format)",
        "cpu()",
        f"cpu(memory_format={IMAGES})",
        f"double(memory_format={IMAGES})",
        "to('meta').to('cpu')",
        "to('meta').cpu()",
        # refused
        "to('cpu', 'cpu')",
        "to(lib.float32, 'cpu')",
        "to(lib.float64, False, False, lib.channels_last)",
        "to(dtype='float32')",
        "to([1])",
        "to(lib.ones(1), lib.ones(1))",
        "to(foo=1)",
        "to('cpu', device='cpu')",
        "to(lib.int32, dtype=lib.int32)",
        "to(non_blocking=1)",
        "to('cpu', lib.float32, 1)",
        "to('cpu:x')",
        "to(-1)",
    ],
)
def test_to_takes_pytorchs_arguments(torch, call):
    def made(library):
        return library.arange(24.0).reshape(1, 2, 3, 4)

    assert outcome(xtensor, f"x.{call}", x=made(xtensor)) == outcome(torch, f"x.{call}", x=made(torch))


def test_to_is_the_tensor_itself_where_nothing_changes():
    x = xtensor.ones(2)
    assert x.to("cpu") is x.to(xtensor.float32) is x.to(xtensor.ones(1)) is x.cpu() is x.float() is x
    moved = x.to("cpu:1")
    assert moved.to("cpu:1") is moved.cpu(1) is moved
    assert str(moved.cpu().device) == "cpu"
    assert x.to("cpu", copy=True) is not x


def test_to_is_differentiable():
    x = xtensor.tensor([1.0, 2.0, 3.0], dtype=xtensor.float64, requires_grad=True)
    moved = x.to("cpu:1", xtensor.float32)
    assert str(moved.device) == "cpu:1" and moved.requires_grad
    back = (moved**3).to("cpu")
    (first,) = xtensor.autograd.grad(back.sum(), x, create_graph=True)
    assert (str(first.device), first.dtype, first.tolist()) == ("cpu", xtensor.float64, [3.0, 12.0, 27.0])
    (second,) = xtensor.autograd.grad(first.sum(), x)
    assert (str(second.device), second.tolist()) == ("cpu", [6.0, 12.0, 18.0])


def test_gradients_of_both_devices_meet():
    x = xtensor.ones(3, requires_grad=True)
    y = xtensor.ones(3, device="cpu:1", requires_grad=True)
    ((x * 2).to("cpu:1") * y + x.to("cpu:1") + y).sum().backward()
    assert (x.grad.tolist(), str(x.grad.device)) == ([3.0] * 3, "cpu")
    assert (y.grad.tolist(), str(y.grad.device)) == ([3.0] * 3, "cpu:1")


def test_views_move_as_they_are_seen():
    x = xtensor.arange(6.0).reshape(2, 3)
    for seen in (x.t(), x[:, ::2], x[1], x.expand(2, 2, 3), x[None]):
        moved = seen.to("cpu:1")
        assert moved.tolist() == seen.tolist() and moved.cpu().stride() == seen.clone().stride()


# -- mixing


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a + b,
        lambda a, b: a.add_(b),
        lambda a, b: a @ b,
        lambda a, b: xtensor.cat([a, b]),
        lambda a, b: xtensor.stack([a, b]),
        lambda a, b: xtensor.where(a > 0, a, b),
        lambda a, b: xtensor.add(a, a, out=b),
        lambda a, b: xtensor.nn.functional.linear(a, b),
        lambda a, b: xtensor.nn.functional.mse_loss(a, b),
        lambda a, b: a.index_select(0, b.long()[0]),
        lambda a, b: a.gather(0, b.long()),
        lambda a, b: a.masked_fill(b > 0, 1.0),
        lambda a, b: xtensor.einsum("ij,jk", a, b),
        lambda a, b: xtensor.nn.functional.embedding(a.long(), b),
        lambda a, b: xtensor.addmm(a, a, b),
        lambda a, b: xtensor.lerp(a, b, 0.5),
        lambda a, b: a.scatter(0, b.long(), b),
        lambda a, b: a.put_(b.long(), b),
        lambda a, b: xtensor.searchsorted(a, b),
        lambda a, b: xtensor.nn.functional.cross_entropy(a, b),
        lambda a, b: xtensor.equal(a, b),
    ],
)
@pytest.mark.parametrize("other", ["cpu:1", "meta"])
def test_mixing_devices_names_both(call, other):
    for places in (("cpu", other), (other, "cpu")):
        a, b = (xtensor.ones(2, 2, device=place) for place in places)
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as refused:
            call(a, b)
        assert re.findall(r"(?:cpu:1|cpu|meta)\b", str(refused.value)) in ([*places], [*places[::-1]])


def test_a_number_on_the_cpu_joins_any_device():
    far = xtensor.ones(2, device="cpu:1")
    assert str((far * xtensor.tensor(2.0)).device) == "cpu:1"
    assert str((xtensor.tensor(2.0) * far).device) == "cpu:1"
    far.add_(xtensor.tensor(1.0))
    assert far.tolist() == [2.0, 2.0]


def test_writes_cross_devices():
    x = xtensor.zeros(2, 3)
    x[0] = xtensor.ones(3, device="cpu:1")
    x[1].copy_(xtensor.full((3,), 2.0, device="cpu:1"))
    assert x.tolist() == [[1.0] * 3, [2.0] * 3] and str(x.device) == "cpu"


# -- what is not there


@pytest.mark.parametrize("kind", ["cuda", "rocm", "tpu"])
def test_a_missing_backend_names_the_extra_that_brings_it(kind):
    if xtensor.devices.is_available(kind):
        pytest.skip(f"this machine has a {kind} device")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert kind in extras
    for call in (lambda: xtensor.ones(1, device=kind), lambda: xtensor.ones(1).to(kind)):
        with pytest.raises(RuntimeError, match=re.escape(f'pip install "xtensor[{kind}]"')):
            call()


@pytest.mark.parametrize("platforms", ["cuda", "tpu", "nonsense"])
def test_platforms_that_are_not_there_name_the_variable(platforms):
    if platforms != "nonsense" and xtensor.devices.is_available(platforms):
        pytest.skip(f"{platforms} is there")
    text = (
        "import xtensor\nprint(xtensor.cuda.is_available(), xtensor.devices.list())\n"
        "try:\n    xtensor.ones(3)\nexcept RuntimeError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=os.environ | {"JAX_PLATFORMS": platforms},
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.strip().split("\n")
    assert first == "False ()"
    assert second.startswith(f"JAX_PLATFORMS={platforms} names no platform that this machine has")
    assert second.endswith("Available without it: cpu. Unset it, or set JAX_PLATFORMS=cpu")


@pytest.mark.parametrize(
    ("allowed", "present", "asked", "message"),
    [
        (
            "cuda",
            "cuda",
            "cpu",
            r"JAX_PLATFORMS=cuda leaves out the device cpu; available with it: cuda.*JAX_PLATFORMS=cuda,cpu$",
        ),
        (
            "cpu",
            "cpu",
            "tpu",
            r"leaves out the device tpu; available with it: cpu.*pip install \"xtensor\[tpu\]\"",
        ),
        ("gpu,cpu", "cpu", "cuda", r"xtensor has no cuda backend here"),
    ],
)
def test_platforms_that_are_left_out_name_the_variable(monkeypatch, allowed, present, asked, message):
    def local(platform):
        if platform != present:
            raise RuntimeError("Unknown backend")
        return [object()]

    monkeypatch.setattr(placement, "local_devices", local)
    monkeypatch.setattr(placement, "_allowed", lambda: allowed)
    with pytest.raises(RuntimeError, match=message):
        placement._find(placement.device(asked))


def test_a_missing_cpu_device_names_the_setting():
    with pytest.raises(RuntimeError, match="JAX_NUM_CPU_DEVICES=100"):
        xtensor.ones(1, device="cpu:99")


def test_a_failed_move_leaves_the_default_alone():
    with pytest.raises(RuntimeError):
        xtensor.ones(1, device="cpu:99")
    with xtensor.device("cpu:99"), pytest.raises(RuntimeError, match="cpu:99 does not exist"):
        xtensor.ones(1)
    assert str(xtensor.ones(1).device) == "cpu"


# -- what there is


def test_devices_are_counted_and_described():
    found = xtensor.devices.list("cpu")
    assert found[:2] == (xtensor.device("cpu"), xtensor.device("cpu:1"))
    assert xtensor.devices.count("cpu") == len(found) <= xtensor.devices.count()
    assert xtensor.devices.is_available("cpu") and xtensor.devices.is_available("meta")
    one, other = (xtensor.devices.properties(place) for place in found[:2])
    assert (one.device, other.device) == found[:2]
    assert one.platform == "cpu" and one.name and one.platform_version
    assert one.cores == os.cpu_count() and one.total_memory > 1 << 20


def test_memory_counts_what_tensors_hold():
    def held(place: str) -> int:
        gc.collect()
        return xtensor.devices.memory(place).allocated

    kept = 4096  # constants that stay with compiled programs come and go
    before, elsewhere = held("cpu:1"), held("cpu")
    big = xtensor.ones(1000, 250, device="cpu:1")
    assert big.nbytes == 1_000_000
    assert held("cpu:1") - before == pytest.approx(big.nbytes, abs=kept)
    assert held("cpu") - elsewhere < big.nbytes / 4
    view = big[::2].t()
    assert held("cpu:1") - before == pytest.approx(big.nbytes, abs=kept)
    del big, view
    assert held("cpu:1") == pytest.approx(before, abs=kept)


def test_synchronize_waits_for_what_was_asked():
    x = xtensor.ones(300, 300)
    for _ in range(5):
        x = x @ x / 300
    xtensor.devices.synchronize("cpu")
    assert x._xt_storage.array.is_ready()
    xtensor.devices.synchronize("meta")
    xtensor.devices.synchronize()
