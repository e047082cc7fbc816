"""Modules called with other parameters, and stacked ones, against PyTorch's: what is tied, strict, missing, written."""

from collections.abc import Callable
from typing import Any

import pytest

import xtensor


def modules(lib: Any) -> tuple[Any, Any]:
    nn = lib.nn

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.b.weight = self.a.weight
            self.plain = lib.ones(2)
            self.register_buffer("offset", lib.zeros(2))
            self.register_buffer("nothing", None)
            with lib.no_grad():
                for at, p in enumerate(self.parameters()):
                    p.fill_(at + 0.5)

        def forward(self, x, *, factor=1):
            return self.b(self.a(x)) * factor + self.offset + self.plain

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", lib.zeros(1))
            self.weight = nn.Parameter(lib.ones(1))

        def forward(self, x):
            self.count = self.count + 1
            self.count.add_(1)
            return x * self.count * self.weight

    return Tied(), Counting()


def called(lib: Any, given: Callable[[Any], Any], *args: Any, **options: Any) -> Any:
    """The result of the first module with what `given` makes of ones and all of its state."""
    module = modules(lib)[0]
    own = {name: p.detach() * 0 + 1 for name, p in module.named_parameters()}
    return lib.func.functional_call(module, given((lib.ones(2, 2), own)), args or (lib.ones(2),), **options)


def counted(lib: Any, several: bool) -> Any:
    module, given = modules(lib)[1], {"count": lib.zeros(1)}
    found = lib.func.functional_call(module, [given] if several else given, (lib.ones(2),))
    return found, given["count"], module.count


def found_within(lib: Any, given: dict[str, Any]) -> Any:
    """What a module sees of names that it does not have."""

    class Looking(lib.nn.Module):
        def forward(self, x):
            return x * 0 + hasattr(self, "new"), len(list(self.parameters()))

    module = Looking()
    return *lib.func.functional_call(module, given, (lib.ones(1),)), hasattr(module, "new")


def batch_norms(lib: Any) -> Any:
    pair = [lib.nn.BatchNorm1d(2) for _ in range(2)]
    for one in pair:
        one.weight.requires_grad_(False)
    parameters, buffers = lib.func.stack_module_state(pair)
    return [(name, t.requires_grad, t.is_leaf, tuple(t.shape)) for name, t in (parameters | buffers).items()]


def one_frozen(lib: Any) -> Any:
    pair = [lib.nn.Linear(2, 2) for _ in range(2)]
    pair[1].weight.requires_grad_(False)
    return lib.func.stack_module_state(pair)


CALLS: dict[str, Callable[[Any], Any]] = {
    "one name of a tied one": lambda L: called(L, lambda s: {"b.weight": s[0]}),
    "both names": lambda L: called(L, lambda s: {"a.weight": s[0], "b.weight": s[0]}),
    "both names apart": lambda L: called(L, lambda s: {"a.weight": s[0], "b.weight": s[0] * 2}),
    "untied": lambda L: called(L, lambda s: {"a.weight": s[0], "b.weight": s[0] * 2}, tie_weights=False),
    "a name that is not there": lambda L: called(L, lambda s: {"new": s[0]}),
    "a name within that is not there": lambda L: called(L, lambda s: {"a.new": s[0]}),
    "a module that is not there": lambda L: called(L, lambda s: {"c.weight": s[0]}),
    "no name": lambda L: called(L, lambda s: {"": s[0]}),
    "a plain attribute": lambda L: called(L, lambda s: {"plain": s[0][0] * 5}),
    "a module's name": lambda L: called(L, lambda s: {"training": s[0]}),
    "strict, some missing": lambda L: called(L, lambda s: {"a.weight": s[0]}, strict=True),
    "strict, one too many": lambda L: called(L, lambda s: {**s[1], "new": s[0]}, strict=True),
    "strict": lambda L: called(L, lambda s: [s[1], {"offset": s[0][0]}], strict=True),
    "in two dicts": lambda L: called(L, lambda s: ({"a.weight": s[0]}, {"a.weight": s[0]})),
    "a number of dicts": lambda L: called(L, lambda s: 3),
    "numbers": lambda L: called(L, lambda s: [3]),
    "keywords": lambda L: called(L, lambda s: s[1], kwargs={"factor": 3}),
    "no tensor": lambda L: called(L, lambda s: {"a.weight": 3.0}),
    "None": lambda L: called(L, lambda s: {"a.bias": None}),
    "a buffer that is None": lambda L: called(L, lambda s: {"nothing": s[0]}),
    "what is written": lambda L: counted(L, False),
    "what is written, of several": lambda L: counted(L, True),
    "a new one": lambda L: found_within(L, {"new": L.ones(1)}),
    "a new parameter": lambda L: found_within(L, {"new": L.nn.Parameter(L.ones(1))}),
    "stacked": batch_norms,
    "one frozen": one_frozen,
    "no models": lambda L: L.func.stack_module_state([]),
    "other modes": lambda L: L.func.stack_module_state([L.nn.Linear(1, 1).eval(), L.nn.Linear(1, 1)]),
    "other classes": lambda L: L.func.stack_module_state([L.nn.Linear(1, 1), L.nn.ReLU()]),
}


def told(lib: Any, call: Callable[[Any], Any]) -> Any:
    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        return value.tolist() if hasattr(value, "tolist") else value

    try:
        return plain(call(lib))
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", CALLS)
def test_as_in_pytorch(torch, name):
    assert told(xtensor, CALLS[name]) == told(torch, CALLS[name])
