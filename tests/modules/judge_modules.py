"""One entry of PyTorch's `module_db` after the other: construction, states, forward, backward, copies and errors."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

import xtensor

from .compare import Differs, attempt, compare, text
from .translate import counterpart, ours, tensor

__all__ = ["Case", "cases", "names", "run"]

# Modules whose training output is drawn at random: shapes and dtypes count, and values in evaluation.
RANDOM = re.compile(r"Dropout|RReLU|FractionalMaxPool|Transformer")


class Case(NamedTuple):
    """One construction and call: an entry's number and name, the mode, the dtype, and which of its inputs."""

    entry: int
    name: str
    dtype: torch.dtype
    training: bool
    index: int
    error: bool = False

    @property
    def title(self) -> str:
        """The case in words."""
        kind = "error" if self.error else ("train" if self.training else "eval")
        return f"{self.name} {str(self.dtype).removeprefix('torch.')} {kind} {self.index}"


def names() -> list[str]:
    """The names of all entries; those of one class are numbered."""
    found: list[str] = []
    for info in module_db:
        name = info.name
        count = sum(1 for other in found if other.partition("#")[0] == name)
        found.append(f"{name}#{count + 1}" if count else name)
    return found


def modes(info: Any) -> tuple[bool, ...]:
    return (True, False) if info.train_and_eval_differ else (True,)


def inputs(case: Case) -> list[Any]:
    """The entry's samples, the same ones on every call."""
    torch.manual_seed(case.entry)
    info = module_db[case.entry]
    if case.error:
        return list(
            info.module_error_inputs_func(
                info, device="cpu", dtype=case.dtype, requires_grad=False, training=case.training
            )
        )
    return list(
        info.module_inputs_func(
            info, device="cpu", dtype=case.dtype, requires_grad=True, training=case.training
        )
    )


def cases(entry: int, name: str) -> Iterator[Case]:
    """All cases of an entry: float32 in every mode, float64 in one, and its errors."""
    info = module_db[entry]
    for dtype in (torch.float32, torch.float64):
        if dtype not in info.dtypes:
            continue
        for training in modes(info) if dtype == torch.float32 else modes(info)[:1]:
            first = Case(entry, name, dtype, training, 0)
            for index in range(len(inputs(first))):
                yield first._replace(index=index)
    if info.module_error_inputs_func is not None:
        first = Case(entry, name, torch.float32, True, 0, error=True)
        for index in range(len(inputs(first))):
            yield first._replace(index=index)


def run(case: Case) -> str | None:
    """None where both libraries agree, else what differs."""
    warnings.simplefilter("ignore")
    sample = inputs(case)[case.index]
    try:
        (judge_error if case.error else judge)(case, sample)
    except Differs as difference:
        return str(difference)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
    return None


def judge_error(case: Case, sample: Any) -> None:
    info = module_db[case.entry]
    made = sample.module_error_input
    arguments = made.constructor_input

    def build(library: Any, convert: Any) -> Any:
        cls = info.module_cls if library is torch else counterpart(info.module_cls)
        return cls(*convert(arguments.args), **convert(arguments.kwargs))

    def call(library: Any, convert: Any) -> Any:
        module = build(library, convert)
        if sample.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR:
            return module
        return module(*convert(made.forward_input.args), **convert(made.forward_input.kwargs))

    _, expected = attempt(lambda: call(torch, lambda value: value))
    _, got = attempt(lambda: call(xtensor, ours))
    if expected is None:
        if got is not None:
            raise got
    elif got is None:
        raise Differs(f"no {type(expected).__name__}: {expected}")
    elif type(got).__name__ != type(expected).__name__ or not re.search(sample.error_regex, str(got)):
        raise Differs(f"{type(got).__name__}({got}) instead of {type(expected).__name__}({expected})")


def judge(case: Case, sample: Any) -> None:
    info = module_db[case.entry]
    random = case.training and RANDOM.search(info.module_cls.__name__) is not None
    arguments, call = sample.constructor_input, sample.forward_input
    cls = counterpart(info.module_cls)
    our_args, our_kwargs = ours(arguments.args), ours(arguments.kwargs)
    theirs = info.module_cls(*arguments.args, **arguments.kwargs)
    mine = cls(*our_args, **our_kwargs)
    for module in (theirs, mine):
        module.train(case.training)
    if info.is_lazy:
        theirs, mine = theirs.to(case.dtype), mine.to(ours(case.dtype))
        with torch.no_grad():
            theirs(*call.args, **call.kwargs)
        with xtensor.no_grad():
            mine(*ours(call.args), **ours(call.kwargs))
    theirs, mine = theirs.to(case.dtype), mine.to(ours(case.dtype))
    if text(repr(theirs)) != text(repr(mine)):
        raise Differs(f"repr: {mine!r} instead of {theirs!r}"[:300])
    exchange_states(theirs, mine)
    forward_backward(theirs, mine, call, values=not random)
    again = [copy.deepcopy(mine.eval()), pickle.loads(pickle.dumps(mine))]
    if call is None:
        return
    with xtensor.no_grad():
        reference = mine(*ours(call.args), **ours(call.kwargs))
        for other in again:
            stochastic = info.module_cls.__name__.startswith("FractionalMaxPool")
            values = not (stochastic or info.module_cls.__name__ == "RReLU")
            same_result(reference, other(*ours(call.args), **ours(call.kwargs)), values)


def same_result(expected: Any, got: Any, values: bool) -> None:
    compare(expected, got, "a copy's result", values)


def exchange_states(theirs: Any, mine: Any) -> None:
    """The same keys, shapes and dtypes; each loads the other's state; both end with PyTorch's values."""
    expected = theirs.state_dict()
    compare(dict(expected), dict(mine.state_dict()), "state_dict", values=False)
    compare(
        [name for name, _ in theirs.named_modules()],
        [name for name, _ in mine.named_modules()],
        "named_modules",
    )
    start = {key: value.clone() for key, value in expected.items() if isinstance(value, torch.Tensor)}
    own = {key: torch.from_numpy(value.detach().numpy().copy()) for key, value in mine.state_dict().items()}
    theirs.load_state_dict(own)
    theirs.load_state_dict(start)
    mine.load_state_dict({key: tensor(value) for key, value in start.items()})


def tensors(value: Any) -> list[Any]:
    """All tensors in nested results."""
    if isinstance(value, (torch.Tensor, xtensor.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for one in value for found in tensors(one)]
    return []


def forward_backward(theirs: Any, mine: Any, call: Any, values: bool) -> None:
    """Both results and all gradients, compared."""
    if call is None:
        return
    our_args, our_kwargs = ours(call.args), ours(call.kwargs)
    expected, error = attempt(lambda: theirs(*call.args, **call.kwargs))
    got, our_error = attempt(lambda: mine(*our_args, **our_kwargs))
    if error is not None:
        if our_error is None or type(our_error).__name__ != type(error).__name__:
            raise Differs(f"{our_error!r} instead of {error!r}")
        return
    if our_error is not None:
        raise our_error
    compare(expected, got, "forward", values)
    weigh_and_backward(expected, got, values)
    compare(dict(theirs.state_dict()), dict(mine.state_dict()), "state after forward", values)
    for (name, a), (_, b) in zip(theirs.named_parameters(), mine.named_parameters(), strict=True):
        compare(a.grad, b.grad, f"gradient of {name}", values)
    for i, (a, b) in enumerate(
        zip(tensors((call.args, call.kwargs)), tensors((our_args, our_kwargs)), strict=True)
    ):
        if a.requires_grad and a.is_leaf:
            compare(a.grad, b.grad, f"gradient of input {i}", values)


def weigh_and_backward(expected: Any, got: Any, values: bool) -> None:
    """Backward through a weighted sum of all results that have a gradient."""
    ones, twos = tensors(expected), tensors(got)
    for a, b in zip(ones, twos, strict=True):
        if a.requires_grad != b.requires_grad:
            raise Differs(f"requires_grad {b.requires_grad} instead of {a.requires_grad}")
    pairs = [(a, b) for a, b in zip(ones, twos, strict=True) if a.requires_grad]
    if not pairs:
        return
    weights = [torch.randn(a.shape, dtype=a.dtype) for a, _ in pairs]
    for a in (0, 1):
        outputs = [pair[a] for pair in pairs]
        grads = weights if a == 0 else [tensor(w) for w in weights]
        (torch if a == 0 else xtensor).autograd.backward(outputs, grads)
