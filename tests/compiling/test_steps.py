"""Training steps as one program: every number, gradient, version and draw as eager code has it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor import nn
from xtensor.storage import LazyStorage
from xtensor.utils.checkpoint import checkpoint

F = nn.functional


def model_of(drop: float = 0.0, norm: bool = False) -> nn.Sequential:
    xtensor.manual_seed(0)
    layers: list[Any] = [nn.Linear(8, 16)]
    layers += [nn.BatchNorm1d(16)] if norm else []
    layers += [nn.ReLU()]
    layers += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*layers, nn.Linear(16, 4))


def batches(count: int) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    x = [xtensor.tensor(rng.normal(size=(6, 8)).astype("f")) for _ in range(count)]
    return [(a, xtensor.tensor(rng.integers(0, 4, 6))) for a in x]


def copies(values: Any) -> list[Any]:
    return [None if v is None else v.detach().numpy().copy() for v in values]


def trained(make: Callable[[], Any], compiled: bool, steps: int = 6) -> Any:
    """The losses, states, gradients, versions and random state after some steps; and what was compiled."""
    xtensor.manual_seed(1)
    model, step, *more = make()
    run = xtensor.compile(step) if compiled else step
    xtensor.manual_seed(7)
    losses = []
    for number, (x, y) in enumerate(batches(steps)):
        losses.append(run(x, y).item())
        for after in more:
            after(number)
    found = (
        losses,
        copies(model.state_dict().values()),
        copies([p.grad for p in model.parameters()]),
        [p._version for p in model.parameters()],
        xtensor.get_rng_state().tolist(),
    )
    return found, getattr(run, "_xt_compiled", None)


def close(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    if a is None or b is None:
        return a is b
    return bool(np.allclose(a, b, rtol=2e-5, atol=2e-6))


def same_trained(make: Callable[[], Any], programs: int = 1, steps: int = 6) -> Any:
    """Compare; the compiled step must have run as so many programs."""
    (eager, _), (fast, inner) = trained(make, False, steps), trained(make, True, steps)
    assert close(list(eager[:3]), list(fast[:3])), (eager[0], fast[0])
    assert eager[3:] == fast[3:]
    assert len(inner.entries) == programs, (inner.reasons, inner.missed)
    return inner


def plain(
    optimizer: str = "SGD",
    clip: bool = False,
    drop: float = 0.0,
    norm: bool = False,
    **options: Any,
) -> Callable[[], Any]:
    """What makes a model and an ordinary step."""

    def make() -> Any:
        model = model_of(drop, norm)
        opt = getattr(xtensor.optim, optimizer)(model.parameters(), lr=1e-2, **options)

        def step(x: Any, y: Any) -> Any:
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            opt.step()
            return loss.detach()

        return model, step

    return make


def test_dropout_batch_norm_and_clipping(no_tracers: Any) -> None:
    inner = same_trained(plain(clip=True, drop=0.4, norm=True, momentum=0.9))
    assert inner.entries[0].program.calls == 5
    no_tracers()


RULES = [
    "Adam",
    "AdamW",
    "RMSprop",
    "Adagrad",
    "NAdam",
    "RAdam",
    "Adamax",
    "Rprop",
    "ASGD",
    "Adadelta",
    "Adafactor",
]


@pytest.mark.parametrize("optimizer", RULES)
def test_every_optimizer(optimizer: str) -> None:
    same_trained(plain(optimizer))


def test_gradients_that_accumulate() -> None:
    def make() -> Any:
        model = model_of()
        opt = xtensor.optim.SGD(model.parameters(), lr=1e-2)

        def step(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            return loss.detach()

        return model, step

    same_trained(make)


def test_a_scheduler_outside_moves_the_rate() -> None:
    def make() -> Any:
        model, step = plain("Adam")()
        opt = next(
            c.cell_contents for c in step.__closure__ if isinstance(c.cell_contents, xtensor.optim.Optimizer)
        )
        schedule = xtensor.optim.lr_scheduler.StepLR(opt, 2, 0.5)
        return model, step, lambda number: schedule.step()

    same_trained(make)


def test_a_scheduler_inside_steps_at_every_call() -> None:
    made = []

    def make() -> Any:
        model = model_of()
        opt = xtensor.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
        schedule = xtensor.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
        made.append(schedule)

        def step(x: Any, y: Any) -> Any:
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            schedule.step()
            return loss.detach()

        return model, step

    same_trained(make)
    assert made[0].last_epoch == made[1].last_epoch == 6
    assert made[0].get_last_lr() == made[1].get_last_lr()


def test_grad_scaler_and_autocast(no_tracers: Any) -> None:
    scalers = []

    def make() -> Any:
        model = model_of()
        opt = xtensor.optim.SGD(model.parameters(), lr=1e-2)
        scaler = xtensor.amp.GradScaler("cpu", growth_interval=2)
        scalers.append(scaler)

        def step(x: Any, y: Any) -> Any:
            opt.zero_grad()
            with xtensor.autocast("cpu", dtype=xtensor.bfloat16):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            return loss.detach()

        return model, step

    same_trained(make)
    assert scalers[0].state_dict() == scalers[1].state_dict()
    no_tracers()


def test_a_step_whose_gradients_are_not_finite_is_skipped() -> None:
    def after(compiled: bool) -> Any:
        weight = nn.Parameter(xtensor.ones(3))
        opt = xtensor.optim.Adam([weight], lr=0.1)
        scaler = xtensor.amp.GradScaler("cpu", init_scale=4.0)

        def step(x: Any) -> None:
            opt.zero_grad()
            scaler.scale((weight * x).sum()).backward()
            scaler.step(opt)
            scaler.update()

        run = xtensor.compile(step) if compiled else step
        for value in (1.0, 2.0, float("inf"), 3.0):
            run(xtensor.full((3,), value))
        return weight.tolist(), scaler.get_scale(), opt.state[weight]["step"].item()

    assert after(True) == after(False)


def test_ema_and_writes_to_views() -> None:
    def make() -> Any:
        model = model_of()
        mean = model_of().requires_grad_(False)
        opt = xtensor.optim.SGD(model.parameters(), lr=1e-2)
        log = xtensor.zeros(3, 4)
        row, turned = log[1], log.t()
        _ = turned.contiguous(), row + 1  # kept from before

        def step(x: Any, y: Any) -> Any:
            opt.zero_grad()
            row.add_(1.0)
            log[2] = row * 2
            loss = F.cross_entropy(model(x), y) + (turned @ xtensor.ones(3)).sum() * 0.001
            loss.backward()
            opt.step()
            with xtensor.no_grad():
                for a, b in zip(mean.parameters(), model.parameters(), strict=True):
                    a.lerp_(b, 0.1)
            return loss.detach()

        return nn.ModuleList([model, mean]), step

    same_trained(make)


def test_checkpointing_tying_hooks_and_custom_functions(no_tracers: Any) -> None:
    class Square(xtensor.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grads[0]

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 4), nn.Linear(8, 4)
            self.second.weight = self.first.weight
            self.drop = nn.Dropout(0.2)

        def forward(self, x: Any) -> Any:
            return Square.apply(checkpoint(self.part, x, use_reentrant=False)) + self.second(x)

        def part(self, x: Any) -> Any:
            return self.drop(self.first(x))

    def make() -> Any:
        model = Tied()
        model.first.weight.register_hook(lambda grad: grad * 2)
        model.drop.register_full_backward_hook(lambda module, inputs, outputs: None)
        opt = xtensor.optim.AdamW(model.parameters(), lr=1e-2)

        def step(x: Any, y: Any) -> Any:
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            return loss.detach()

        return model, step

    same_trained(make)
    no_tracers()


def test_train_and_eval_are_two_programs() -> None:
    def make() -> Any:
        model, step = plain(norm=True)()
        return model, step, lambda number: model.train(number % 3 != 0)

    inner = same_trained(make, programs=2)
    assert inner.missed == {"Sequential.training": 1}


def test_batches_that_are_views_need_one_program() -> None:
    _model, step = plain()()
    data, labels = xtensor.randn(12, 8), xtensor.randint(0, 4, (12,))
    run = xtensor.compile(step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in (0, 3, 6, 9):
            run(data[start : start + 3], labels[start : start + 3])
    assert len(run._xt_compiled.entries) == 1
    assert run._xt_compiled.entries[0].program.calls == 3


def test_values_that_operators_refuse_are_looked_at_by_every_call() -> None:
    """As eager code does, and before anything is written."""
    written = xtensor.zeros(())

    @xtensor.compile(fullgraph=True)
    def solved(x: Any, q: Any) -> Any:
        written.add_(1)
        return xtensor.quantile(xtensor.linalg.inv(x), q)

    good, half = xtensor.eye(3) * 2, xtensor.tensor(0.5)
    for _ in range(4):
        assert solved(good, half) == 0
    with pytest.raises(xtensor.linalg.LinAlgError, match="diagonal element 1 is zero"):
        solved(xtensor.zeros(3, 3), half)
    with pytest.raises(RuntimeError, match="quantile"):
        solved(good, half * 3)
    assert written == 6
    assert solved(good, half) == 0


def test_code_whose_source_does_not_stand_alone_runs_as_it_is(tmp_path: Any, monkeypatch: Any) -> None:
    """Such as a comprehension of a module that the first call imports."""
    (tmp_path / "imported_late.py").write_text("TABLE = dict(\n    a={k: k for k in range(3)}\n)\n")
    monkeypatch.syspath_prepend(tmp_path)

    @xtensor.compile(fullgraph=True)
    def added(x: Any) -> Any:
        import imported_late

        return x + imported_late.TABLE["a"][2]

    for _ in range(3):
        assert added(xtensor.ones(2)).tolist() == [3, 3]


def test_counts_of_steps_in_double_precision():
    def train(way):
        xtensor.manual_seed(0)
        model = xtensor.nn.Linear(2, 2)
        optimizer = xtensor.optim.AdamW(model.parameters(), lr=0.01)

        def step():
            optimizer.zero_grad()
            loss = model(xtensor.ones(1, 2)).pow(2).sum()
            loss.backward()
            optimizer.step()
            return loss

        run = way(step)
        losses = [run().item() for _ in range(4)]
        counts = [optimizer.state[p]["step"] for p in model.parameters()]
        assert [c.item() for c in counts] == [4, 4] and counts[0].dtype is xtensor.float64
        return losses

    xtensor.set_default_dtype(xtensor.float64)
    try:
        alone = train(lambda f: f)
        assert train(lambda f: xtensor.compile(f, fullgraph=True)) == pytest.approx(alone, rel=1e-12)
    finally:
        xtensor.set_default_dtype(xtensor.float32)


def test_counts_that_lie_elsewhere_wait_there_until_they_are_asked_for():
    if len(xtensor.devices.list()) < 2:
        pytest.skip("one device")

    def trained(compiled):
        xtensor.manual_seed(0)
        model = nn.Sequential(nn.Linear(7, 9), nn.ReLU(), nn.Linear(9, 3)).to("cpu:1")
        optimizer = xtensor.optim.Adam(model.parameters(), lr=0.1)
        x = xtensor.ones(5, 7, device="cpu:1")

        def step():
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run = xtensor.compile(step, fullgraph=True) if compiled else step
        losses = [run().item() for _ in range(5)]
        counters = [state["step"] for state in optimizer.state.values()]
        if compiled:  # to read one would wait for the step
            assert {type(c._xt_storage) for c in counters} == {LazyStorage}
        assert [c.item() for c in counters] == [5] * 4
        assert {str(c.device) for c in counters} == {"cpu"}
        losses += [run().item(), step().item()]
        return losses, [c.item() for c in counters]

    (eager, counts), (compiled, others) = trained(False), trained(True)
    assert compiled == pytest.approx(eager, rel=1e-5)
    assert counts == others == [7] * 4
