"""Draws random autograd programs: leaves, operators, views, in-place writes, hooks, backward and double backward."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz.judging import Program, Step, names_in

Shape = tuple[int, ...]
# Few shapes that broadcast and multiply with one another, so that programs share compiled kernels.
SHAPES: tuple[Shape, ...] = ((), (3,), (2, 3), (3, 2), (3, 3), (1, 3), (2, 1), (2, 2, 3))


class AutogradDrawing:
    """A program in the making and the shape of every name in it; nothing is executed.

    A `smooth` program has a gradient that finite differences can check: no hooks, no detaching, no mistakes.
    """

    def __init__(self, seed: int, smooth: bool = False, rng: random.Random | None = None) -> None:
        self.seed = seed
        self.smooth = smooth
        self.rng = rng or random.Random(seed)
        self.length = self.rng.choice((5, 7, 9, 12, 16))
        self.steps: list[Step] = []
        self.shapes: dict[str, Shape] = {}
        self.leaves: list[str] = []
        self.views: list[str] = []
        self.gradients: list[str] = []
        self.integers: set[str] = set()
        self.memory: dict[str, str] = {}  # per name the tensor whose memory it may share
        self.ancestors: dict[
            str, set[str]
        ] = {}  # per name the differentiable names it comes from, itself included
        self.count = 0

    # Draws.

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, seq: Sequence[Any]) -> Any:
        return self.rng.choice(seq)

    def floats(self) -> list[str]:
        return [n for n in self.shapes if n not in self.integers]

    def tensor(self, want: Callable[[Shape], bool] | None = None, graphed: bool = False) -> str | None:
        """A name, recent ones and gradients more often; `graphed` ones have a history."""
        found = [n for n in self.floats() if want is None or want(self.shapes[n])]
        if graphed:
            found = [n for n in found if self.ancestors[n]]
        if not found:
            return None
        weights = [i + (len(found) if n in self.gradients else 1) for i, n in enumerate(found)]
        return self.rng.choices(found, weights)[0]

    def differentiable(self) -> str | None:
        """Mostly a tensor that has a gradient to compute."""
        return self.tensor(graphed=not self.chance(0.06))

    def partner(self, shape: Shape, target: str) -> str:
        """Something that broadcasts to `shape` and shares no memory with `target`, whose result would be undefined."""
        found = [n for n in self.floats() if _broadcast(self.shapes[n], shape) == shape]
        found = [n for n in found if self.memory[n] != self.memory[target]]
        name = self.pick(found) if found else None
        return name if name and self.chance(0.8) else self.pick(("2.0", "0.5", "-1.5"))

    # Building.

    def add(
        self, kind: str, source: str, shapes: Sequence[Shape] | None = None, integers: Sequence[int] = ()
    ) -> list[str]:
        """Adds a statement; with `shapes` it binds that many new names."""
        read = names_in(source, list(self.shapes))
        recorded = kind not in (
            "detach",
            "no_grad",
            "in-place under no_grad",
            "in-place on detached",
            "zeros",
        )
        history = {a for name in read for a in self.ancestors.get(name, ())} if recorded else set()
        if shapes is None:
            self.steps.append(Step(kind, source, (), read))
            if kind == "in-place" and history:
                self.ancestors[read[0]] = self.ancestors.get(read[0], set()) | history | {read[0]}
            return []
        letter = "d" if kind == "grad" else "t"
        made = [f"{letter}{self.count + i}" for i in range(len(shapes))]
        self.count += len(shapes)
        target = made[0] if len(made) == 1 else f"({', '.join(made)})"
        self.steps.append(Step(kind, source.replace("OUT", target, 1), tuple(made), read))
        self.shapes.update(zip(made, shapes, strict=True))
        self.integers.update(made[i] for i in integers)
        shared = kind in ("view", "several outputs", "detach", "no_grad") and bool(read)
        for name in made:
            self.memory[name] = self.memory[read[0]] if shared else name
            grows = name not in self.integers and (history or "requires_grad" in source)
            self.ancestors[name] = history | {name} if grows else set()
        return made

    def leaf(self) -> None:
        shape = self.pick(SHAPES)
        values = [
            round(self.rng.uniform(0.3, 1.7) * self.pick((1, 1, -1)), 3) for _ in range(math.prod(shape))
        ]
        grad = self.chance(0.8) or not self.leaves
        flag = ", requires_grad=True" if grad else ""
        text = f"OUT = torch.tensor({_nested(values, shape)}, dtype=torch.float64{flag})"
        made = self.add("leaf", text, [shape])
        if grad:
            self.leaves += made

    def program(self) -> Program:
        self.steps.append(Step("log", "log = []"))
        self.leaf()
        self.leaf()
        tables = (
            ((POINTWISE, 30), (STRUCTURE, 22), (SEVERAL, 8), (INPLACE, 16))
            if self.smooth
            else (
                (POINTWISE, 24),
                (STRUCTURE, 20),
                (SEVERAL, 9),
                (INPLACE, 22),
                (GRADIENT, 17),
                (CONTROL, 14),
            )
        )
        while len(self.steps) < self.length:
            if self.chance(0.05):
                self.leaf()
                continue
            table = self.rng.choices([t for t, _ in tables], [w for _, w in tables])[0]
            self.pick(table)(self)
        self.finish()
        return Program(self.seed, tuple(self.steps))

    def finish(self) -> None:
        """A gradient of a sum over recent tensors with respect to the leaves that are left."""
        recent = [n for n in self.floats() if self.ancestors[n] or self.chance(0.05)][-3:] or self.floats()[
            -1:
        ]
        total = " + ".join(f"({name} * {self.pick(('1.0', '0.7', '-1.3'))}).sum()" for name in recent)
        if self.smooth:
            self.add("loss", f"OUT = {total}", [()])
            last = f"t{self.count - 1}"
            inputs = ", ".join(self.leaves)
            self.add("grad", f"gradients = torch.autograd.grad({last}, [{inputs}], allow_unused=True)")
        else:
            self.add("backward", f"({total}).backward()")


def _nested(flat: Sequence[Any], shape: Shape) -> Any:
    if not shape:
        return flat[0]
    step = math.prod(shape[1:])
    return [_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    result = []
    for i in range(max(len(a), len(b))):
        x, y = (s[len(s) - 1 - i] if i < len(s) else 1 for s in (a, b))
        if x != y and 1 not in (x, y):
            return None
        result.append(max(x, y))
    return tuple(reversed(result))


Draw = Callable[[AutogradDrawing], None]
POINTWISE: list[Draw] = []
STRUCTURE: list[Draw] = []
SEVERAL: list[Draw] = []
INPLACE: list[Draw] = []
GRADIENT: list[Draw] = []
CONTROL: list[Draw] = []


def entry(table: list[Draw], times: int = 1) -> Callable[[Draw], Draw]:
    def register(function: Draw) -> Draw:
        table.extend([function] * times)
        return function

    return register


@entry(POINTWISE, 3)
def binary(g: AutogradDrawing) -> None:
    a = g.tensor()
    b = a and g.tensor(lambda s: _broadcast(s, g.shapes[a]) is not None)
    if not a or not b:
        return
    shape = _broadcast(g.shapes[a], g.shapes[b])
    assert shape is not None
    form = g.pick(
        (
            "{a} + {b}",
            "{a} - {b}",
            "{a} * {b}",
            "{a} * {b}",
            "{a} / ({b} * {b} + 1.0)",
            "torch.add({a}, {b}, alpha=0.5)",
        )
    )
    if not g.smooth and g.chance(0.15):
        form = g.pick(
            ("torch.maximum({a}, {b})", "torch.minimum({a}, {b})", "torch.where({a} > 0, {a}, {b})")
        )
    g.add("pointwise", "OUT = " + form.format(a=a, b=b), [shape])


@entry(POINTWISE, 3)
def unary(g: AutogradDrawing) -> None:
    a = g.tensor()
    if not a:
        return
    smooth = [
        *(
            "{a}.tanh()",
            "{a}.sin()",
            "{a}.cos()",
            "-{a}",
            "{a}.sigmoid()",
            "{a} ** 2",
            "({a} * {a} + 1.0).sqrt()",
        ),
        *("{a} * 0.5 + 1.0", "2.0 - {a}", "({a} * {a} + 0.5).log()", "({a} * 0.3).exp()", "{a}.clone()"),
        "({a} * {a} + 1.0).reciprocal()",
    ]
    kinked = [
        "{a}.abs()",
        "{a}.relu()",
        "{a}.clamp(-0.5, 1.0)",
        "{a}.clamp(min=0.1)",
        "{a}.masked_fill({a} > 1, 0.5)",
    ]
    form = g.pick(smooth if g.smooth or g.chance(0.75) else kinked)
    g.add("pointwise", "OUT = " + form.format(a=a), [g.shapes[a]])


@entry(STRUCTURE, 2)
def product(g: AutogradDrawing) -> None:
    a = g.tensor(lambda s: len(s) == 2)
    b = a and g.tensor(lambda s: 1 <= len(s) <= 2 and s[0] == g.shapes[a][1])
    if a and b:
        g.add("matmul", f"OUT = {a} @ {b}", [(g.shapes[a][0], *g.shapes[b][1:])])


@entry(STRUCTURE, 2)
def reduction(g: AutogradDrawing) -> None:
    a = g.tensor(lambda s: len(s) >= 1)
    if not a:
        return
    shape = g.shapes[a]
    names = (
        ["sum", "mean", "sum", "logsumexp", "prod"]
        if g.smooth
        else ["sum", "mean", "sum", "logsumexp", "prod", "amax", "amin"]
    )
    name = g.pick(names)
    if name in ("sum", "mean") and g.chance(0.3):
        g.add("reduction", f"OUT = {a}.{name}()", [()])
        return
    dim = g.rng.randrange(len(shape))
    if g.chance(0.4):
        g.add("reduction", f"OUT = {a}.{name}({dim}, keepdim=True)", [(*shape[:dim], 1, *shape[dim + 1 :])])
    else:
        g.add("reduction", f"OUT = {a}.{name}({dim - len(shape)})", [(*shape[:dim], *shape[dim + 1 :])])


@entry(STRUCTURE)
def along(g: AutogradDrawing) -> None:
    a = g.tensor(lambda s: len(s) >= 1)
    if a:
        g.add(
            "along a dim",
            f"OUT = {a}.{g.pick(('softmax', 'cumsum', 'log_softmax'))}({g.rng.randrange(len(g.shapes[a]))})",
            [g.shapes[a]],
        )


@entry(STRUCTURE, 5)
def view(g: AutogradDrawing) -> None:
    made = draw_view(g, g.tensor())
    if made:
        g.views += g.add("view", f"OUT = {made[0]}", [made[1]])


def draw_view(g: AutogradDrawing, a: str | None) -> tuple[str, Shape] | None:
    """A view expression of a tensor and its shape."""
    if not a:
        return None
    shape = g.shapes[a]
    rank, count = len(shape), math.prod(shape)
    found: list[tuple[str, Shape]] = [
        (f"{a}.unsqueeze(0)", (1, *shape)) if rank < 3 else (f"{a}.flatten()", (count,)),
        (f"{a}.reshape({count})", (count,)),
        (f"{a}.view_as({a})", shape),
        (f"{a}[...]", shape),
    ]
    if rank < 3:
        found.append((f"{a}.expand({(2, *shape)})", (2, *shape)))
    if rank >= 1:
        dim = g.rng.randrange(rank)
        index = g.rng.randrange(shape[dim])
        rest = (*shape[:dim], *shape[dim + 1 :])
        found += [
            (f"{a}.select({dim}, {index})", rest),
            (f"{a}[{index % shape[0]}]", shape[1:]),
            (
                f"{a}.narrow({dim}, {index}, {shape[dim] - index})",
                (*shape[:dim], shape[dim] - index, *shape[dim + 1 :]),
            ),
            (f"{a}[{1 if shape[0] > 1 else 0}:]", (shape[0] - (shape[0] > 1), *shape[1:])),
            (f"{a}[::2]", (-(-shape[0] // 2), *shape[1:])),
        ]
        if 1 in shape:
            found.append((f"{a}.squeeze()", tuple(s for s in shape if s != 1)))
    if rank >= 2:
        found += [
            (f"{a}.transpose(0, {rank - 1})", (shape[-1], *shape[1:-1], shape[0])),
            (f"{a}.transpose(0, {rank - 1})", (shape[-1], *shape[1:-1], shape[0])),
            (f"{a}.permute({tuple(reversed(range(rank)))})", tuple(reversed(shape))),
            (f"{a}.diagonal()", (*shape[2:], min(shape[:2]))),
            (f"{a}[:, {g.rng.randrange(shape[1])}]", (shape[0], *shape[2:])),
            (f"{a}.flatten()", (count,)),
        ]
    if rank == 2:
        found.append((f"{a}.t()", (shape[1], shape[0])))
    if count == 6:
        found += [(f"{a}.reshape({s})", s) for s in ((2, 3), (3, 2))] + [(f"{a}.view(2, 3)", (2, 3))]
    return g.pick(found)


@entry(STRUCTURE)
def picked(g: AutogradDrawing) -> None:
    """Indexing that copies."""
    a = g.tensor(lambda s: len(s) >= 1 and s[0] >= 2)
    if not a:
        return
    shape = g.shapes[a]
    form, made = g.pick(
        (
            (f"{a}[[0, 1, 0]]", (3, *shape[1:])),
            (f"{a}.index_select(0, torch.tensor([1, 0, 1]))", (3, *shape[1:])),
            (f"torch.cat([{a}, {a} * 2.0])", (2 * shape[0], *shape[1:])),
            (f"torch.stack([{a}, {a}])", (2, *shape)),
        )
    )
    if math.prod(made) <= 24 and len(made) <= 3:
        g.add("picked", f"OUT = {form}", [made])


@entry(SEVERAL)
def several(g: AutogradDrawing) -> None:
    a = g.tensor(lambda s: len(s) >= 1 and s[0] in (2, 3))
    if not a:
        return
    shape = g.shapes[a]
    size, rest = shape[0], shape[1:]
    choices: list[tuple[str, list[Shape], tuple[int, ...]]] = [
        (f"{a}.unbind()", [rest] * size, ()),
        (f"{a}.split(1)", [(1, *rest)] * size, ()),
        (f"{a}.split([1, {size - 1}])", [(1, *rest), (size - 1, *rest)], ()),
        (f"{a}.chunk(2)", [((size + 1) // 2, *rest), (size // 2, *rest)], ()),
        (f"{a}.tensor_split(2)", [((size + 1) // 2, *rest), (size // 2, *rest)], ()),
    ]
    if not g.smooth:
        choices += [
            (f"{a}.max(0)", [rest, rest], (1,)),
            (f"{a}.min(0)", [rest, rest], (1,)),
            (f"{a}.sort(0)", [shape, shape], (1,)),
            (f"{a}.topk(1, 0)", [(1, *rest), (1, *rest)], (1,)),
        ]
    source, shapes, integers = g.pick(choices)
    g.add("several outputs", f"OUT = {source}", shapes, integers)


def target(g: AutogradDrawing) -> str | None:
    """What an in-place operator writes to: mostly a result or a view, sometimes a leaf."""
    results = [n for n in g.floats() if n not in g.leaves]
    if g.smooth or (results and g.chance(0.88)):
        return g.pick(results) if results else None
    return g.tensor()


def write(g: AutogradDrawing, name: str) -> str:
    """An in-place statement on a tensor or on a view of it made on the spot."""
    shape = g.shapes[name]
    made = draw_view(g, name) if g.chance(0.3) else None
    if made and ".reshape" not in made[0] and ".expand" not in made[0] and ".flatten" not in made[0]:
        expression, shape = made
    else:
        expression = name
    other = g.partner(shape, name)
    forms = ["{x}.mul_({b})", "{x}.add_({b})", "{x}.sub_({b})", "{x}.copy_({t})", "{x}.zero_()", "{x}.fill_(0.5)",
             "{x}.tanh_()", "{x}.sigmoid_()", "{x}.neg_()", "{x}.mul_(0.5)", "{x}.sin_()"]  # fmt: skip
    if not g.smooth:
        forms += ["{x}.relu_()", "{x}.clamp_(-0.5, 1.0)", "{x}.masked_fill_({x} > 0.5, 0.25)"]
    if expression == name and len(shape) >= 1:
        forms += ["{x}[0] = 0.5", "{x}[[0]] = 0.25", "{x}[0] *= 2.0", "{x} += {b}", "{x} *= 0.5"]
        number = g.tensor(lambda s: not s) if g.chance(0.4) else None
        if number and not g.smooth:
            forms += ["{x}[0] = {n}", "{x}[..., -1] = {n}", "{x}[[0]] = {n}", "{x}[:1].fill_({n})"]
            return g.pick(forms[-4:] if g.chance(0.7) else forms).format(
                x=expression, b=other, t=number, n=number
            )
    tensor = other if other in g.shapes else "torch.tensor(0.5, dtype=torch.float64)"
    return g.pick(forms).format(x=expression, b=other, t=tensor)


@entry(INPLACE, 6)
def inplace(g: AutogradDrawing) -> None:
    name = target(g)
    if name:
        g.add("in-place", write(g, name))


@entry(INPLACE)
def inplace_guarded(g: AutogradDrawing) -> None:
    name = g.tensor() if not g.smooth else None
    if name:
        block = g.pick(("torch.no_grad()", "torch.no_grad()", "torch.set_grad_enabled(False)"))
        g.add("in-place under no_grad", f"with {block}:\n    {write(g, name)}")


@entry(INPLACE)
def fresh_then_written(g: AutogradDrawing) -> None:
    """The common pattern: an empty result filled through its views."""
    a = g.tensor(lambda s: len(s) >= 1)
    if a:
        shape = g.shapes[a]
        made = g.add("zeros", f"OUT = torch.zeros({(2, *shape)}, dtype=torch.float64)", [(2, *shape)])
        g.add("in-place", f"{made[0]}[{g.pick((0, 1))}] = {a}")


@entry(INPLACE)
def inplace_detached(g: AutogradDrawing) -> None:
    name = g.tensor() if not g.smooth else None
    if name:
        g.add("in-place on detached", f"{name}.detach().mul_(0.5)")


def _loss(g: AutogradDrawing, name: str) -> str:
    if not g.shapes[name]:
        return name if g.chance(0.7) else f"({name} * {name})"
    return g.pick((f"{name}.sum()", f"({name} * {name}).sum()", f"{name}.mean()"))


@entry(GRADIENT, 3)
def backward(g: AutogradDrawing) -> None:
    name = g.differentiable()
    if not name:
        return
    keep = g.pick(("", "", "", "retain_graph=True", "create_graph=True"))
    if g.chance(0.12):
        inputs = ", ".join(g.rng.sample(g.leaves, min(len(g.leaves), 2)))
        keep = f"{keep}{', ' if keep else ''}inputs=[{inputs}]"
    if g.chance(0.25):
        g.add("backward", f"{name}.backward({f'{name}.detach() * 0.5'}{', ' if keep else ''}{keep})")
    elif g.chance(0.1):
        g.add("backward", f"{name}.backward({keep})")
    else:
        g.add("backward", f"{_loss(g, name)}.backward({keep})")


@entry(GRADIENT, 4)
def grad(g: AutogradDrawing) -> None:
    name = g.differentiable()
    if not name:
        return
    known = sorted(g.ancestors[name])
    leaves = [n for n in known if n in g.leaves]
    pool = leaves if leaves and g.chance(0.7) else known if known and g.chance(0.9) else g.floats()
    inputs = g.rng.sample(pool, min(len(pool), g.pick((1, 1, 2))))
    options = g.pick(("", ", create_graph=True", ", create_graph=True", ", retain_graph=True"))
    unused = g.chance(0.25)
    if unused:
        options += g.pick((", allow_unused=True", ", materialize_grads=True"))
    call = f"torch.autograd.grad({_loss(g, name)}, [{', '.join(inputs)}]{options})"
    if g.chance(0.15):
        call = (
            f"torch.autograd.grad([{name}], [{', '.join(inputs)}], grad_outputs=[{name}.detach()]{options})"
        )
    if "allow_unused" in options:
        g.add("grad", f"g{g.count} = {call}")
        return
    # Copied, since whether a gradient is fresh, a view or a broadcast is the engine's own affair.
    copied = f"{call}[0].clone()" if len(inputs) == 1 else f"[g.clone() for g in {call}]"
    made = g.add("grad", f"OUT = {copied}", [g.shapes[n] for n in inputs])
    g.gradients += made


@entry(GRADIENT)
def double(g: AutogradDrawing) -> None:
    """The gradient of a function of a gradient, in two lines."""
    name = g.differentiable()
    if not name or not g.leaves:
        return
    leaf = g.pick(sorted(g.ancestors[name]) or g.leaves)
    made = g.add(
        "grad",
        f"OUT = torch.autograd.grad({_loss(g, name)}, {leaf}, create_graph=True)[0].clone()",
        [g.shapes[leaf]],
    )
    g.gradients += made
    g.add("double backward", f"({made[0]} * {made[0]}).sum().backward()")


@entry(CONTROL, 2)
def hook(g: AutogradDrawing) -> None:
    name = g.differentiable()
    if not name:
        return
    number = len(g.steps)
    body = g.pick(("None", f"grad * {g.pick(('2.0', '-0.5'))}", "grad.clamp(-1.0, 1.0)", "grad + 1.0"))
    g.add("hook", f"h{number} = {name}.register_hook(lambda grad: log.append('{name} {number}') or {body})")
    if g.chance(0.15):
        g.add("hook removed", f"h{number}.remove()")


@entry(CONTROL)
def hook_after(g: AutogradDrawing) -> None:
    name = g.pick(g.leaves) if g.chance(0.9) else g.tensor()
    g.add(
        "hook after accumulation",
        f"{name}.register_post_accumulate_grad_hook(lambda p: log.append('after {name}'))",
    )


@entry(CONTROL, 2)
def retained(g: AutogradDrawing) -> None:
    name = g.differentiable()
    if name:
        g.add("retain_grad", f"{name}.retain_grad()")


@entry(CONTROL, 2)
def detached(g: AutogradDrawing) -> None:
    name = g.tensor()
    if not name:
        return
    suffix = g.pick(("", "", ".requires_grad_()", ".clone().requires_grad_()"))
    made = g.add("detach", f"OUT = {name}.detach(){suffix}", [g.shapes[name]])
    if "requires" in suffix:
        g.leaves += made


@entry(CONTROL, 2)
def guarded(g: AutogradDrawing) -> None:
    """A result or a view made without recording, and at times recording inside of that."""
    name = g.tensor()
    if not name:
        return
    drawn = draw_view(g, name) if g.chance(0.5) else (f"{name} * 2.0", g.shapes[name])
    if drawn is None:
        return
    body = f"    OUT = {drawn[0]}"
    if g.chance(0.15):
        body = f"    with torch.enable_grad():\n        OUT = {drawn[0]}"
    g.add("no_grad", f"with torch.no_grad():\n{body}", [drawn[1]])


@entry(CONTROL)
def cleared(g: AutogradDrawing) -> None:
    leaf = g.pick(g.leaves)
    g.add(
        "clear grad",
        g.pick((f"{leaf}.grad = None", f"{leaf}.grad.zero_()", f"{leaf}.grad = torch.ones_like({leaf})")),
    )


@entry(CONTROL)
def flagged(g: AutogradDrawing) -> None:
    name = g.tensor()
    if name:
        g.add("requires_grad_", f"{name}.requires_grad_({g.pick(('', 'False', 'True'))})")
