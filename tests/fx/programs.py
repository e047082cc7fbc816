"""Programs to trace, written once: each is built with the library that it is to run on."""

from __future__ import annotations

import math
import operator
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Program:
    """What is traced, with which concrete arguments, and the inputs that its graph is called with."""

    root: Any
    inputs: tuple[Any, ...] = ()
    concrete: Any = None
    named: dict[str, Any] = field(default_factory=dict)
    tracer: Any = None


PROGRAMS: dict[str, Callable[[Any], Program]] = {}


def program(build: Callable[[Any], Program]) -> Callable[[Any], Program]:
    PROGRAMS[build.__name__] = build
    return build


def values(torch: Any, *shape: int) -> Any:
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(*shape) / 7 + 0.1


@program
def linear_layers(torch):
    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.second(self.first(x).relu()).softmax(dim=-1)

    return Program(Layers(), (values(torch, 2, 3),))


@program
def parameters_and_buffers(torch):
    class Held(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("shift", torch.ones(3))
            self.inner = torch.nn.Linear(3, 3)
            self.constant = torch.tensor([1.0, 2.0, 3.0])

        def forward(self, x):
            x = x * self.weight + self.shift
            x = x + self.inner.weight.sum() + self.inner.bias
            return x * self.constant, self.shift.size(0), self.weight.shape

    return Program(Held(), (values(torch, 2, 3),))


@program
def nested_submodules(torch):
    class Block(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(size, size), torch.nn.Tanh())
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, x):
            return x + self.body(x) * self.scale

    class Stack(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.ModuleList([Block(3) for _ in range(2)])
            self.heads = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 1), "b": torch.nn.Linear(3, 2)})

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return {name: head(x) for name, head in self.heads.items()}

    return Program(Stack(), (values(torch, 2, 3),))


@program
def shared_module(torch):
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.nn.Linear(3, 3)
            self.two = self.one

        def forward(self, x):
            return self.two(self.one(x)) + self.one(x)

    return Program(Shared(), (values(torch, 2, 3),))


@program
def sequential(torch):
    layers = (
        torch.nn.Linear(3, 3),
        torch.nn.ReLU(),
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Sigmoid()),
    )
    return Program(torch.nn.Sequential(*layers), (values(torch, 2, 3),))


@program
def flag_by_concrete_args(torch):
    def f(x, flag=True, other=None):
        if flag:
            x = x + 1
        return x if other is None else x * other

    return Program(f, (values(torch, 3), True, None), {"flag": True, "other": None})


@program
def number_by_concrete_args(torch):
    def f(x, count, *, scale=2.0):
        for _ in range(count):
            x = x * scale
        return x

    return Program(f, (values(torch, 3), 3), {"count": 3})


@program
def containers_by_concrete_args(torch):
    def f(inputs, x, sizes):
        return {"sum": inputs["a"] + inputs["b"][0] * x, "rest": [inputs["b"][1], x.reshape(sizes)]}

    ph = torch.fx.PH
    given = ({"a": values(torch, 2), "b": (values(torch, 2), 5)}, values(torch, 2), (2, 1))
    return Program(f, given, {"inputs": {"a": ph, "b": (ph, 5)}, "sizes": (2, 1)})


@program
def module_with_containers(torch):
    class Pairs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, pair, scale):
            return self.linear(pair[0]) + pair[1] * scale, pair[0]

    given = ((values(torch, 1, 2), values(torch, 1, 2)), 2.0)
    return Program(Pairs(), given, {"pair": (torch.fx.PH, torch.fx.PH)})


@program
def every_kind_of_parameter(torch):
    def f(a, b=2, *rest, c=1.0, d=4.0, **others):
        return a * b + c * d + rest[0] - others["e"]

    # In traced code, `c` and `d` stand before what `*rest` takes.
    return Program(f, (values(torch, 3), 2, 1.0, 4.0, values(torch, 3)), None, {"e": values(torch, 3)})


@program
def annotations(torch):
    def f(x: torch.Tensor, y: int = 3, z: tuple[int, ...] = (1, 2)) -> torch.Tensor:
        return x + y + z[0]

    return Program(f, (values(torch, 3),))


@program
def annotations_of_containers(torch):
    def f(x, a=None, b=1, c=(), d=None, e=None):
        return x + b

    kinds = {
        "x": "torch.Tensor",
        "a": "Optional[torch.Tensor]",
        "b": "Union[int, str]",
        "c": "Tuple[int, ...]",
        "d": "Dict[str, torch.Tensor]",
        "e": "torch.nn.Linear | None",
        "return": "List[torch.Tensor]",
    }
    names = {"torch": torch} | vars(typing)
    f.__annotations__.update({name: eval(kind, names) for name, kind in kinds.items()})
    return Program(f, (values(torch, 3),))


@program
def method_chains(torch):
    def f(x):
        x = x.view(2, -1).transpose(0, 1).contiguous().unsqueeze(0).expand(2, -1, -1)
        return x.sum(dim=(0, 1), keepdim=True).squeeze().to(torch.float64), x.permute(2, 0, 1).flatten(1)

    return Program(f, (values(torch, 6),))


@program
def operators(torch):
    def f(x, y):
        a = x + y - 2 * x / (y + 1) ** 2
        b = -x + 1 // y - 3 % y + 2**x
        c = (x < y) & (x != 1) | ~(y >= 2) ^ (x < 1)
        return a, b, c, abs(x), +x, x @ y, x == y, 5 - x, 1 / y

    return Program(f, (values(torch, 4), values(torch, 4) + 1))


@program
def integer_operators(torch):
    def f(x):
        return x << 1, x >> 1, 2 << x, x & 6, 5 | x, x ^ 3, 7 // x, -x // 2, x % 3

    return Program(f, (torch.arange(1, 5),))


@program
def in_place_operators(torch):
    def f(x, y):
        x = x * 1
        x += y
        x *= 2
        x -= 1
        x /= 3
        y = y.clone().add_(x).mul_(2)
        return torch.relu_(x), y

    return Program(f, (values(torch, 4), values(torch, 4)))


@program
def constants_on_the_left(torch):
    def f(x):
        t = torch.ones(4)
        return t + x, t - x, t * x, t / x, t @ x, t // x, t % x, t

    return Program(f, (values(torch, 4),))


@program
def slices_and_indices(torch):
    def f(x, i):
        a = x[0], x[1:], x[..., ::2], x[:, None], x[i], x[0, 1:3], x[-1][1]
        return a, x[[0, 1]], x[:, [1, 2]]

    return Program(f, (values(torch, 3, 4), torch.tensor([2, 0])))


@program
def unpacked(torch):
    def f(x):
        a, b = x.split(2)
        (c, d), e = (a, b), x.max(dim=0)
        top, at = e
        return a * b + c - d, top, at

    return Program(f, (values(torch, 4, 2),))


@program
def attributes_of_values(torch):
    def f(x):
        rows, columns = x.shape[0], x.size(1)
        return x.T.reshape(columns, rows), x.dtype, x.device, x.ndim, x.view(rows * columns)

    return Program(f, (values(torch, 2, 3),))


@program
def functions(torch):
    def f(x):
        functional = torch.nn.functional
        a = torch.cat([x, x], 1), torch.stack((x, x), dim=1), torch.where(x > 0.5, x, 0.0), torch.split(x, 1)
        b = (
            torch.einsum("ij,kj->ik", x, x) + torch.einsum("ij,kj->ik", [x, x]),
            torch.matmul(x, x.t()),
            torch.norm(x),
            torch.flatten(x, 1),
        )
        c = (
            functional.relu(x),
            functional.gelu(x),
            functional.softmax(x, dim=1),
            functional.silu(x, inplace=False),
        )
        d = (
            functional.layer_norm(x, (3,)),
            functional.pad(x, (1, 1)),
            functional.linear(x, x),
            functional.normalize(x),
        )
        e = (
            functional.leaky_relu(x, 0.2),
            functional.hardtanh(x),
            functional.elu(x),
            functional.log_softmax(x, 1),
        )
        return a, b, c, d, e, torch.relu(x), torch.sigmoid(x), torch.tanh(x), torch.clamp(x, 0.2)

    return Program(f, (values(torch, 2, 3),))


@program
def network_functions(torch):
    def f(x, target):
        functional = torch.nn.functional
        w = torch.ones(1, 1, 2, 2)
        a = functional.conv2d(x, w), functional.max_pool2d(x, 2), functional.avg_pool2d(x, 2)
        b = (
            functional.adaptive_avg_pool2d(x, 1),
            functional.interpolate(x, scale_factor=2),
            functional.dropout(x, 0.0),
        )
        pooled, at = functional.max_pool2d(x, 2, return_indices=True)
        flat = x.flatten(1)
        c = (
            functional.cross_entropy(flat, target),
            functional.mse_loss(flat, flat * 2),
            functional.one_hot(target, 3),
        )
        d = functional.batch_norm(x, None, None, training=True), functional.group_norm(x, 1)
        return a, b, pooled, at, c, d, functional.embedding(target, flat)

    return Program(f, (values(torch, 1, 1, 4, 4), torch.tensor([0])))


@program
def made_of_sizes(torch):
    def f(x):
        n = x.size(0)
        return (
            torch.zeros((n, 2)) + torch.arange(n)[:, None],
            torch.full((2,), 3.0) * x.sum(),
            torch.ones(x.shape),
        )

    return Program(f, (values(torch, 3),))


@program
def mathematics(torch):
    def f(x, n):
        return x * math.sqrt(n) + math.floor(n)

    return Program(f, (values(torch, 3), 5.5))


@program
def results_of_many_kinds(torch):
    def f(x):
        return {
            "a": x,
            "b": [x, (1, 2.5, None)],
            "c": slice(x, None),
            "d": torch.float32,
            "e": "text",
            "f": ...,
            "g": 1j,
        }

    return Program(f, (values(torch, 3),))


@program
def keyword_names(torch):
    def f(input, len, self_):
        sum = input + len
        input_1 = sum * self_
        return input_1 + sum

    return Program(f, (values(torch, 2), 2, 3))


@program
def names_taken(torch):
    def f(x, add, relu_1):
        y = x + add
        z = torch.relu(y) + torch.relu(relu_1) + x.relu()
        return z + y.add(1)

    return Program(f, (values(torch, 2), values(torch, 2), values(torch, 2)))


@program
def unused_values(torch):
    def f(x, unused):
        y = x + 1
        y.relu()
        torch.sigmoid(y)
        return x

    return Program(f, (values(torch, 2), 1))


@program
def deep_tracer(torch):
    class Deep(torch.fx.Tracer):
        def is_leaf_module(self, module, path):
            return False

    root = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.LayerNorm(2))
    return Program(root, (values(torch, 2, 3),), tracer=Deep())


@program
def proxied_buffers(torch):
    class Buffers(torch.fx.Tracer):
        proxy_buffer_attributes = True

    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            return x + self.count * 2 + self.count

    return Program(Counts(), (values(torch, 2),), tracer=Buffers())


@program
def shapes_of_parameters(torch):
    class Shaped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2, 3))

        def forward(self, x):
            if self.weight.shape[0] == 2 and self.weight.dim() == 2:
                x = x * self.weight.numel()
            return x @ self.weight

    return Program(Shaped(), (values(torch, 1, 2),), tracer=torch.fx.Tracer(param_shapes_constant=True))


@program
def operator_functions(torch):
    def f(x):
        return operator.add(x, 1), operator.getitem(x, 0), operator.neg(x), operator.matmul(x, x)

    return Program(f, (values(torch, 3),))


@program
def proxyable_class(torch):
    class Pair(metaclass=torch.fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

        def total(self):
            return self.left + self.right

    def f(x, y):
        return Pair(x, y).total()

    return Program(f, (values(torch, 2), values(torch, 2)))


def wrapping_module(torch: Any) -> types.ModuleType:
    """A module that wraps functions of its own, as programs do at their top."""
    made = types.ModuleType("wrapping")
    made.__dict__["torch"] = torch
    exec(compile(WRAPPING, "wrapping.py", "exec"), made.__dict__)
    return made


WRAPPING = """
@torch.fx.wrap
def halved(x, n=2):
    return x[: len(x) // n]

def total(x):
    return x.sum() if x.sum() > 0 else x

torch.fx.wrap("total")
torch.fx.wrap("len")

def f(x):
    return total(halved(x)) + halved(x, n=1) * len(x)
"""


@program
def wrapped_functions(torch):
    return Program(wrapping_module(torch).f, (values(torch, 4),))
