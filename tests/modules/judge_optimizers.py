"""One entry of PyTorch's `optim_db` after the other: steps, states both ways, copies, groups, errors."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal.common_optimizers import (
    OptimizerErrorEnum,
    _get_optim_inputs_including_global_cliquey_kwargs,
    optim_db,
)

import xtensor

from .compare import Differs, attempt, compare, text
from .translate import ours, tensor

__all__ = ["Case", "cases", "names", "run"]

SHAPES = ((3, 4), (2, 3), (1, 5))
STEPS = 6


class Case(NamedTuple):
    """One set of options of one optimizer."""

    entry: int
    name: str
    dtype: torch.dtype
    index: int
    error: bool = False
    training: bool = True

    @property
    def title(self) -> str:
        """The case in words."""
        kind = "error" if self.error else "options"
        return f"{self.name} {str(self.dtype).removeprefix('torch.')} {kind} {self.index}"


def names() -> list[str]:
    """The names of all entries."""
    return [f"optim.{info.optim_cls.__name__}" for info in optim_db]


def inputs(case: Case) -> list[Any]:
    info = optim_db[case.entry]
    if case.error:
        return list(info.optim_error_inputs_func(device="cpu", dtype=case.dtype))
    return _get_optim_inputs_including_global_cliquey_kwargs("cpu", case.dtype, info)


def cases(entry: int, name: str) -> Iterator[Case]:
    """All options in float32, the first in float64 and, where it can be, complex64; and the errors."""
    info = optim_db[entry]
    first = Case(entry, name, torch.float32, 0)
    count = len(inputs(first))
    for index in range(count):
        yield first._replace(index=index)
    for dtype in (torch.float64, torch.complex64) if info.supports_complex else (torch.float64,):
        for index in range(0, count, 3):
            yield first._replace(dtype=dtype, index=index)
    if info.optim_error_inputs_func is not None:
        for index in range(len(inputs(first._replace(error=True)))):
            yield first._replace(index=index, error=True)


def run(case: Case) -> str | None:
    """None where both libraries agree, else what differs."""
    sample = inputs(case)[case.index]
    try:
        (judge_error if case.error else judge)(case, sample)
    except Differs as difference:
        return str(difference)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
    return None


class Side:
    """An optimizer of one library with its parameters."""

    def __init__(self, library: Any, name: str, start: list[torch.Tensor], options: dict[str, Any]) -> None:
        self.library = library
        self.leaves = [
            library.nn.Parameter(value.clone() if library is torch else tensor(value)) for value in start
        ]
        self.params = [leaf.clone() for leaf in self.leaves] if options.get("differentiable") else self.leaves
        self.options = options
        groups: list[Any] = self.params
        if name != "LBFGS":
            groups = [{"params": self.params[:2]}, {"params": self.params[2:]}]
        self.optimizer = getattr(library.optim, name)(groups, **options)
        self.targets = [(value * 0.5 + 0.25).clone() for value in start]
        if library is xtensor:
            self.targets = [tensor(value) for value in self.targets]

    def closure(self) -> Any:
        """The squared distance from a target, weighed."""
        for param in self.params:
            param.grad = None
        total: Any = 0.0
        for i, (param, target) in enumerate(zip(self.params, self.targets, strict=True)):
            distance = param.detach().requires_grad_() if self.options.get("differentiable") else param
            square = (distance - target).abs() ** 2
            loss = (square * (i + 1) + 0.1 * square * square).sum()
            if self.options.get("differentiable"):
                (param.grad,) = self.library.autograd.grad(loss, distance)
            else:
                loss.backward()
            total = total + loss.detach()
        return total

    def step(self) -> None:
        """One step on fresh gradients."""
        if type(self.optimizer).__name__ == "LBFGS":
            self.optimizer.step(self.closure)
        else:
            self.closure()
            self.optimizer.step()


def judge(case: Case, sample: Any) -> None:
    name = case.name.removeprefix("optim.")
    generator = torch.Generator().manual_seed(7)
    start = [torch.randn(shape, dtype=case.dtype, generator=generator) for shape in SHAPES]
    options = dict(sample.kwargs)
    if name == "LBFGS":
        # Past convergence its state is rounding errors divided by each other.
        options.setdefault("max_iter", 3)
    theirs = Side(torch, name, start, copy.deepcopy(options))
    mine = Side(xtensor, name, start, ours(options))
    for number in range(STEPS):
        _, error = attempt(theirs.step)
        _, our_error = attempt(mine.step)
        if error is not None:
            if type(error) is not type(our_error) or text(str(error)) != text(str(our_error)):
                raise Differs(f"step: {our_error!r} instead of {error!r}")
            return
        if our_error is not None:
            raise our_error
        if number == 2 and not options.get("differentiable"):
            change_rate(theirs, mine)
            exchange_states(theirs, mine, case.dtype)
        if number == 3 and not options.get("differentiable"):
            mine.optimizer = copied(mine, pickle.loads(pickle.dumps((mine.optimizer, mine.params))))
        compare(
            [p.detach() for p in theirs.params],
            [p.detach() for p in mine.params],
            f"parameters, step {number}",
        )
    compare_states(theirs, mine, case.dtype)
    if text(repr(theirs.optimizer)) != text(repr(mine.optimizer)):
        raise Differs(f"repr: {mine.optimizer!r} instead of {theirs.optimizer!r}"[:300])
    if options.get("differentiable"):
        through_the_steps(theirs, mine)


def change_rate(theirs: Side, mine: Side) -> None:
    for side in (theirs, mine):
        group = side.optimizer.param_groups[-1]
        group["lr"] = group["lr"] * 0.5


def copied(side: Side, made: Any) -> Any:
    """The optimizer of a pickled pair, put to work on it."""
    optimizer, params = made
    side.params = side.leaves = params
    return optimizer


def compare_states(theirs: Side, mine: Side, dtype: torch.dtype) -> None:
    one, two = theirs.optimizer.state_dict(), mine.optimizer.state_dict()
    values = True
    if type(theirs.optimizer).__name__ == "LBFGS":
        # Its state is quotients of small differences, which float32 does not determine to the tolerance.
        values = dtype == torch.float64
        one, two = numbers(one), numbers(two)
    compare(one, two, "state_dict", values)


def numbers(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, xtensor.Tensor)) and value.dim() == 0:
        return float(value)
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in sorted(value.items(), key=lambda item: str(item[0]))}
    if isinstance(value, (list, tuple)):
        return [numbers(v) for v in value]
    return value


def exchange_states(theirs: Side, mine: Side, dtype: torch.dtype) -> None:
    """Each loads the other's state."""
    compare_states(theirs, mine, dtype)
    their_state, my_state = theirs.optimizer.state_dict(), mine.optimizer.state_dict()
    theirs.optimizer.load_state_dict(back(copy.deepcopy(my_state)))
    mine.optimizer.load_state_dict(ours(copy.deepcopy(their_state)))


def back(value: Any) -> Any:
    """A state of xtensor's as PyTorch's."""
    if isinstance(value, xtensor.Tensor):
        return torch.from_numpy(value.detach().numpy().copy())
    if isinstance(value, dict):
        return {k: back(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(back(v) for v in value)
    return value


def through_the_steps(theirs: Side, mine: Side) -> None:
    """The gradients of the parameters before the first step, through all steps, where PyTorch can compute them."""
    for side in (theirs, mine):
        total = sum((p.abs() ** 2).sum() for p in side.params)
        _, error = attempt(total.backward)
        if error is not None and side is theirs:
            return
        if error is not None:
            raise error
    compare([p.grad for p in theirs.leaves], [p.grad for p in mine.leaves], "gradients through the steps")


def judge_error(case: Case, sample: Any) -> None:
    name = case.name.removeprefix("optim.")
    made = sample.optimizer_error_input

    def call(library: Any, convert: Any) -> None:
        params = made.params
        if params is None:
            params = [torch.nn.Parameter(torch.zeros(2, 2))]
        optimizer = getattr(library.optim, name)(convert(shared(params)), **convert(made.kwargs))
        if sample.error_on == OptimizerErrorEnum.STEP_ERROR:
            optimizer.step()

    if sample.error_type is UserWarning:
        for library, convert in ((torch, lambda v: v), (xtensor, once())):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                call(library, convert)
            if not any(re.search(sample.error_regex, str(w.message)) for w in seen):
                raise Differs(f"no warning {sample.error_regex}")
        return
    _, expected = attempt(lambda: call(torch, lambda value: value))
    _, got = attempt(lambda: call(xtensor, once()))
    if expected is None:
        if got is not None:
            raise got
    elif got is None:
        raise Differs(f"no {type(expected).__name__}: {expected}")
    elif type(got).__name__ != type(expected).__name__ or not re.search(sample.error_regex, str(got)):
        raise Differs(f"{type(got).__name__}({got}) instead of {type(expected).__name__}({expected})")


def shared(params: Any) -> Any:
    return list(params) if not isinstance(params, torch.Tensor) and not isinstance(params, list) else params


def once() -> Any:
    """A translation in which one tensor of PyTorch's stays one tensor."""
    known: dict[int, Any] = {}

    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return known.setdefault(id(value), tensor(value))
        if isinstance(value, (list, tuple)):
            return type(value)(convert(v) for v in value)
        if isinstance(value, dict):
            return {k: convert(v) for k, v in value.items()}
        return ours(value)

    return convert
