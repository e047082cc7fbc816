"""Draws random programs of views, reads, writes and indexing, guided by the NumPy model and by nothing else."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz import model
from tests.fuzz.judging import Program, Step, names_in
from tests.fuzz.strided import ModelError, Strided, Undefined

# Few shapes and dtypes, so that programs share compiled kernels.
SHAPES: tuple[tuple[int, ...], ...] = (
    (), (1,), (2,), (3,), (5,), (6,), (0,),
    (2, 3), (3, 2), (3, 3), (1, 3), (3, 1), (5, 2), (2, 2), (2, 0), (6, 5),
    (2, 3, 2), (2, 2, 3), (3, 1, 2), (1, 2, 5), (2, 3, 5), (2, 2, 2),
    (2, 3, 1, 2), (1, 2, 3, 2), (2, 1, 2, 2), (2, 3, 2, 2),
)  # fmt: skip
DTYPES = (
    "float32",
    "int64",
    "float64",
    "int32",
    "bool",
    "complex64",
    "uint8",
    "bfloat16",
    "float16",
    "int16",
)
WEIGHTS = (40, 18, 8, 6, 6, 10, 4, 4, 2, 2)
SCALARS = ("0", "1", "2", "-1", "3", "0.5", "-2.0", "True")
LIVE = 9


class Impossible(Exception):
    """What was to be drawn does not exist: an index into nothing."""


class Drawing:
    """A program in the making: the statements so far and the model's state after them."""

    def __init__(self, seed: int, rng: random.Random | None = None) -> None:
        self.seed = seed
        self.rng = rng or random.Random(seed)
        self.length = self.rng.choice((4, 6, 8, 10, 12, 16))
        self.names: dict[str, Any] = {"torch": model}
        self.steps: list[Step] = []
        self.count = 0
        self.errors = 0
        self.main = self.rng.choices(DTYPES, WEIGHTS)[0]
        self.other = self.rng.choices(DTYPES, WEIGHTS)[0]

    # Draws.

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, seq: Sequence[Any]) -> Any:
        return self.rng.choice(seq)

    def live(self) -> list[str]:
        return [n for n, v in self.names.items() if isinstance(v, Strided)]

    def tensor(self, want: Callable[[Any], bool] | None = None) -> tuple[str, Any] | None:
        """A live tensor, recent ones more often."""
        found = [n for n in self.live() if want is None or want(self.names[n])]
        if not found:
            return None
        name = self.rng.choices(found, range(1, len(found) + 1))[0]
        return name, self.names[name]

    def dim(self, x: Any, extra: int = 0) -> int:
        """A dimension of `x`, from either end, now and then one that it does not have."""
        rank = max(x.dim() + extra, 1)
        if self.chance(0.02):
            return self.pick((rank, -rank - 1))
        return self.rng.randrange(-rank, rank)

    def size(self, x: Any, dim: int) -> int:
        return x.sizes[dim] if x.sizes and -len(x.sizes) <= dim < len(x.sizes) else 1

    def number(self, low: int, high: int) -> int:
        """An integer in range, now and then just outside."""
        if self.chance(0.03):
            return self.pick((low - 1, high + 1))
        return self.rng.randint(low, max(low, high))

    def shape_of(self, count: int) -> tuple[int, ...]:
        """A shape with `count` elements."""
        fitting = [s for s in SHAPES if math.prod(s) == count]
        return self.pick([*fitting, (count,)])

    def scalar(self) -> str:
        return self.pick(SCALARS)

    def fresh(self, shape: tuple[int, ...], dtype: str) -> str:
        """An expression for a new contiguous tensor with distinct small values."""
        count = math.prod(shape)
        if dtype == "bool":
            base = f"(torch.arange({count}) > {count // 2})"
        elif dtype.startswith("complex"):
            part = "float32" if dtype == "complex64" else "float64"
            ramp = f"torch.arange({count}, dtype=torch.{part})"
            base = f"torch.complex({ramp}, {ramp} + 1)"
        else:
            base = f"torch.arange({count}, dtype=torch.{dtype})"
        return base if len(shape) == 1 else f"{base}.reshape({shape})"

    def operand(self, shape: tuple[int, ...], dtype: str, scalars: bool = True) -> str:
        """Something that broadcasts to `shape`: a number, a live tensor, or a new one."""
        if scalars and self.chance(0.35):
            return self.scalar()
        if self.chance(0.45):

            def usable(v: Any) -> bool:
                return _broadcasts(v.sizes, shape) and (v.dtype.name == dtype or self.chance(0.15))

            found = self.tensor(usable)
            if found:
                return found[0]
        smaller = tuple(s if self.chance(0.8) else 1 for s in shape)
        smaller = smaller[self.pick((0, 0, 0, 1)) :]
        if self.chance(0.03):
            smaller = self.pick(SHAPES)
        return self.fresh(smaller, dtype if self.chance(0.92) else self.other)

    # Building.

    def run(self, kind: str, expression: str, keep: bool) -> bool:
        """Evaluates a statement on the model and, if it has one meaning, adds it to the program."""
        read = names_in(expression, list(self.names))
        try:
            if keep:
                value = eval(expression, self.names)
            else:
                exec(expression, self.names)
                value = None
        except Undefined:
            return False
        except ModelError:
            if self.errors >= 3 or (self.errors and not self.chance(0.5)):
                return False
            self.errors += 1
            source = f"t{self.count} = {expression}" if keep else expression
            self.steps.append(Step(kind, source, (), read))
            return True
        if not keep:
            self.steps.append(Step(kind, expression, (), read))
            return True
        several = isinstance(value, tuple)
        values = list(value)[:3] if several else [value]
        if not values:
            return False
        made = [f"t{self.count + i}" for i in range(len(values))]
        self.count += len(values)
        self.names.update(zip(made, values, strict=True))
        target = made[0]
        if several:
            target = f"({', '.join(made)}{',' if len(value) == 1 else ', *_' if len(value) > 3 else ''})"
        self.steps.append(Step(kind, f"{target} = {expression}", tuple(made), read))
        return True

    def program(self) -> Program:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.create()
            for _ in range(6 * self.length):
                if len(self.steps) >= self.length:
                    break
                self.step()
        return Program(self.seed, tuple(self.steps))

    def step(self) -> None:
        live = self.live()
        if len(live) > LIVE or (len(live) > 3 and self.chance(0.03)):
            name = self.pick(live)
            del self.names[name]
            self.steps.append(Step("del", f"del {name}", (), (name,)))
            return
        table = self.rng.choices((CREATE, VIEWS, READS, WRITES), (4, 42, 14, 40))[0]
        kind = self.pick(list(table))
        try:
            drawn = table[kind](self)
        except Impossible:
            return
        if drawn is None:
            return
        prefix = {id(CREATE): "new", id(VIEWS): "view", id(READS): "read", id(WRITES): "write"}[id(table)]
        self.run(f"{prefix}:{kind}", drawn, table is not WRITES)

    def create(self) -> None:
        shape = self.pick(SHAPES)
        while math.prod(shape) == 0 and self.chance(0.8):
            shape = self.pick(SHAPES)
        self.run("new:fresh", self.fresh(shape, self.main), True)

    # Indices.

    def index_list(
        self, size: int, shape: tuple[int, ...], negative: bool = True, unique: bool = False
    ) -> str:
        """A `torch.tensor(...)` of valid indices (now and then one out of range) in a given shape."""
        count = math.prod(shape)
        if size == 0 and count:
            raise Impossible
        low = -size if negative else 0
        if unique:
            if count > size:
                raise Impossible
            flat = self.rng.sample(range(size), count)
            flat = [v - size if negative and self.chance(0.2) else v for v in flat]
        else:
            flat = [self.rng.randint(low, size - 1) for _ in range(count)]
        if count and self.chance(0.03):
            flat[self.rng.randrange(count)] = self.pick((size, -size - 1, size + 3))
        return f"torch.tensor({_nested(flat, shape)}{', dtype=torch.int64' if not count else ''})"

    def subscript(self, x: Any, advanced: bool) -> str:
        """What goes between the brackets: ints, slices, None, ellipsis, and with `advanced` arrays and masks."""
        items: list[str] = []
        dim = 0
        rank = x.dim()
        inner = self.pick(((2,), (2,), (3,), (1,), (2, 2), (2, 1), (0,)))
        stop_at = self.rng.randint(0 if not advanced else min(1, rank), rank)
        used_array = used_ellipsis = False
        while dim < stop_at:
            size = x.sizes[dim]
            draw = self.rng.random()
            if draw < 0.06:
                items.append("None")
                continue
            if draw < 0.12 and not used_ellipsis and not used_array:
                used_ellipsis = True
                items.append("...")
                dim = self.rng.randint(dim, stop_at)
                continue
            if advanced and draw < 0.55:
                used_array = True
                if draw < 0.2:
                    reach = self.rng.randint(1, max(1, min(2, rank - dim)))
                    drawn = self.mask_for(x.sizes[dim : dim + reach])
                    items.append(drawn)
                    dim += reach
                    continue
                shape = inner if self.chance(0.7) else self.pick(((1,), inner[-1:], ()))
                drawn = self.index_list(size, shape)
                if shape and math.prod(shape) and self.chance(0.4):
                    drawn = drawn[len("torch.tensor(") : -1]
                elif len(shape) == 2 and self.chance(0.3):
                    drawn += ".t()" if shape == (2, 2) else ""
                elif self.chance(0.1) and "dtype" not in drawn:
                    drawn = drawn[:-1] + ", dtype=torch.int32)"
                items.append(drawn)
            elif draw < 0.75:
                if size == 0:
                    items.append(":")
                else:
                    items.append(str(self.number(-size, size - 1)))
            else:
                items.append(self.slice(size))
            dim += 1
        if self.chance(0.05):
            items.append("None")
        if advanced and self.chance(0.04):
            items.append(self.pick(("True", "False", "torch.tensor(True)")))
        if self.chance(0.015):
            items.append("0")
        if not items:
            return self.pick(("...", "()", "None"))
        return ", ".join(items)

    def slice(self, size: int) -> str:
        start = self.pick(("", "", "1", str(self.rng.randint(-size - 1, size + 1))))
        stop = self.pick(("", "", "-1", str(self.rng.randint(-size - 1, size + 1))))
        step = self.pick(("", "", ":2", ":1", ":3"))
        if self.chance(0.01):
            step = self.pick((":0", ":-1"))
        return f"{start}:{stop}{step}"

    def mask_for(self, sizes: Sequence[int]) -> str:
        """A boolean mask of the given shape, written out."""
        shape = tuple(sizes)
        if self.chance(0.04):
            shape = self.pick(SHAPES)
        if math.prod(shape) == 0:
            return f"torch.zeros({shape}, dtype=torch.bool)"
        return f"torch.tensor({_nested([self.chance(0.5) for _ in range(math.prod(shape))], shape)})"


def _nested(flat: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    step = math.prod(shape[1:])
    return [_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def _broadcasts(sizes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(sizes) <= len(shape) and all(
        s in (1, t) for s, t in zip(reversed(sizes), reversed(shape), strict=False)
    )


# Filled by the modules that hold the operators, each entry a function from a drawing to a statement or None.
Draw = Callable[[Drawing], "str | None"]
CREATE: dict[str, Draw] = {}
VIEWS: dict[str, Draw] = {}
READS: dict[str, Draw] = {}
WRITES: dict[str, Draw] = {}


def entry(table: dict[str, Draw], name: str) -> Callable[[Draw], Draw]:
    """Registers a function that draws one kind of statement."""

    def register(function: Draw) -> Draw:
        table[name] = function
        return function

    return register
