"""Compiled training steps exported, and resumed by plain JAX."""

import json
import zipfile

import jax
import numpy as np
import pytest
from jax import export as jax_export

import xtensor
from xtensor import nn
from xtensor.export import export_step

pytest.importorskip("flatbuffers")
F = nn.functional


def training(seed, **options):
    xtensor.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.2), nn.ReLU(), nn.Linear(4, 2))
    optimizer = xtensor.optim.Adam(model.parameters(), lr=1e-2, **options)

    @xtensor.compile
    def step(x, y):
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        return {"loss": loss.detach(), "out": out.detach()}

    return model, optimizer, step


def test_a_step_is_resumed_by_plain_jax(seed, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    model, optimizer, step = training(seed, amsgrad=True)
    x, y = xtensor.randn(6, 3), xtensor.tensor([0, 1, 1, 0, 1, 0])
    made = export_step(step, x, y)
    assert {"model.0.weight", "model.1.running_mean", "optimizer.model.0.weight.exp_avg"} <= set(made.state)
    made.save(tmp_path / "step.xtx")
    expected = [step(x, y)["loss"].item() for _ in range(4)]

    with zipfile.ZipFile(tmp_path / "step.xtx") as file:
        program = jax_export.deserialize(bytearray(file.read("export/program.jax")))
        state = safetensors.load(file.read("export/state.safetensors"))
        assert json.loads(file.read("export/signature.json"))["format"] == "xtensor.export.step"
    losses = []
    with jax.enable_x64(True):
        for _ in range(4):
            (loss, out), state = program.call(state, [x.numpy(), y.numpy()])
            losses.append(float(loss))
    # The same numbers are dropped: seed and draws are part of the state.
    np.testing.assert_allclose(losses, expected, 1e-6)
    assert out.shape == (6, 2)
    np.testing.assert_allclose(state["model.0.weight"], model[0].weight.detach().numpy(), 1e-5, 1e-6)
    np.testing.assert_allclose(state["model.1.running_var"], model[1].running_var.numpy(), 1e-5)
    assert int(state["model.1.num_batches_tracked"]) == model[1].num_batches_tracked.item()
    assert optimizer.state[model[0].weight]["step"].item() == float(state["optimizer.model.0.weight.step"])
    with pytest.raises(RuntimeError, match="holds a training step, which JAX calls"):
        xtensor.export.load(tmp_path / "step.xtx")


def test_an_exported_step_runs_here_and_leaves_the_model(seed):
    model, _, step = training(seed)
    x, y = xtensor.randn(6, 3), xtensor.tensor([0, 1, 1, 0, 1, 0])
    made = export_step(step, x, y, names={"net": model})
    before = model[0].weight.detach().clone()
    first = [made(x, y)[0].item() for _ in range(3)]
    assert xtensor.equal(model[0].weight, before)
    np.testing.assert_allclose([step(x, y)["loss"].item() for _ in range(3)], first, 1e-6)
    assert "net.4.bias" in made.state


def test_what_cannot_be_resumed_is_refused():
    linear = nn.Linear(2, 1)
    optimizer = xtensor.optim.SGD(linear.parameters(), lr=0.1)
    with pytest.raises(TypeError, match=r"torch\.compile"):
        export_step(lambda x: x, xtensor.ones(2))

    @xtensor.compile
    def accumulates(x):
        linear(x).sum().backward()

    with pytest.raises(RuntimeError, match=r"accumulates.*call zero_grad\(\) within it"):
        export_step(accumulates, xtensor.ones(3, 2))
    linear.zero_grad()
    scheduler = xtensor.optim.lr_scheduler.StepLR(optimizer, 2)

    @xtensor.compile
    def schedules(x):
        optimizer.zero_grad()
        linear(x).sum().backward()
        optimizer.step()
        scheduler.step()

    with pytest.raises(RuntimeError, match=r"schedules.*leave schedulers"):
        export_step(schedules, xtensor.ones(3, 2))
