"""The view operators and creations that a program may contain."""

from __future__ import annotations

from typing import Any

from tests.fuzz.draw import CREATE, SHAPES, VIEWS, Drawing, entry


def of(g: Drawing, want: Any = None) -> tuple[str, Any] | None:
    """Mostly a tensor that suits the operator, now and then any."""
    if want is not None and not g.chance(0.04):
        return g.tensor(want)
    return g.tensor()


def spelled(g: Drawing, name: str, method: str, arguments: str) -> str:
    """The method or, at times, the function of the same name."""
    if g.chance(0.15) and method not in (
        "view",
        "expand",
        "expand_as",
        "view_as",
        "contiguous",
        "reshape_as",
    ):
        return f"torch.{method}({name}{', ' if arguments else ''}{arguments})"
    return f"{name}.{method}({arguments})"


@entry(CREATE, "arange")
def _(g: Drawing) -> str:
    return g.fresh(g.pick(SHAPES), g.main if g.chance(0.7) else g.other)


@entry(CREATE, "zeros")
def _(g: Drawing) -> str:
    return f"torch.zeros({g.pick(SHAPES)}, dtype=torch.{g.main})"


@entry(CREATE, "tensor")
def _(g: Drawing) -> str:
    return g.pick(
        (
            "torch.tensor([[1, 2], [3, 4]])",
            "torch.tensor([0.5, -1.0, 2.0])",
            "torch.tensor(7)",
            "torch.tensor([True, False])",
        )
    )


def _subscripts(g: Drawing) -> str | None:
    found = of(g)
    if not found:
        return None
    name, x = found
    return f"{name}[{g.subscript(x, False)}]"


for _spelling in ("index", "index again", "index once more"):
    VIEWS[_spelling] = _subscripts


@entry(VIEWS, "as_strided")
def _(g: Drawing) -> str | None:
    found = of(g)
    if not found:
        return None
    name, x = found
    room = x.storage.nbytes() // x.dtype.itemsize
    rank = g.rng.randint(0, 3)
    sizes = tuple(g.pick((1, 2, 2, 3)) for _ in range(rank))
    strides = tuple(g.pick((1, 2, 3, 1, 2, 0)) for _ in range(rank))
    reach = sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
    if reach >= room and not g.chance(0.05):
        return None
    offset = g.pick(("", f", {g.rng.randint(0, max(0, room - reach - 1))}", f", {g.rng.randint(0, 2)}"))
    return spelled(g, name, "as_strided", f"{sizes}, {strides}{offset}")


@entry(VIEWS, "detach")
def _(g: Drawing) -> str:
    return f"{of(g)[0]}.detach()"  # type: ignore[index]


@entry(VIEWS, "diagonal")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 2)
    if not found:
        return None
    name, x = found
    a, b = (g.dim(x), g.dim(x)) if g.chance(0.2) else g.rng.sample(range(max(2, x.dim())), 2)
    return spelled(g, name, "diagonal", g.pick(("", f"{g.rng.randint(-2, 2)}, {a}, {b}", f"0, {a}, {b}")))


@entry(VIEWS, "expand")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.numel() <= 12)
    if not found:
        return None
    name, x = found
    sizes = [g.pick((s, -1)) if s != 1 or g.chance(0.3) else g.pick((2, 3)) for s in x.sizes]
    lead = [g.pick((1, 2, 3)) for _ in range(g.pick((0, 0, 1, 1, 2)) if x.dim() < 3 else 0)]
    if g.chance(0.04) and sizes:
        sizes[g.rng.randrange(len(sizes))] = 4
    return f"{name}.expand({tuple(lead + sizes)})"


@entry(VIEWS, "expand_as")
def _(g: Drawing) -> str | None:
    found, other = of(g, lambda v: v.numel() <= 12), of(g)
    return f"{found[0]}.expand_as({other[0]})" if found and other and g.chance(0.6) else None


def _moved(g: Drawing, method: str) -> str | None:
    found = of(g, lambda v: v.dim() >= 2)
    if not found:
        return None
    name, x = found
    return spelled(g, name, method, f"{g.dim(x)}, {g.dim(x)}")


for _method in ("transpose", "swapaxes", "swapdims"):
    VIEWS[_method] = lambda g, method=_method: _moved(g, method)


@entry(VIEWS, "movedim")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 2)
    if not found:
        return None
    name, x = found
    if g.chance(0.5) or x.dim() < 2:
        return spelled(g, name, "movedim", f"{g.dim(x)}, {g.dim(x)}")
    source, target = (tuple(g.rng.sample(range(x.dim()), 2)) for _ in range(2))
    if g.chance(0.05):
        source = (0, 0)
    return spelled(g, name, "movedim", f"{source}, {target}")


@entry(VIEWS, "permute")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 2)
    if not found:
        return None
    name, x = found
    dims = g.rng.sample(range(x.dim()), x.dim())
    dims = [d - x.dim() if g.chance(0.3) else d for d in dims]
    if g.chance(0.04) and dims:
        dims = g.pick((dims[:-1], [dims[0]] * len(dims), [*dims[:-1], 7]))
    return spelled(g, name, "permute", str(tuple(dims)))


@entry(VIEWS, "narrow")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1)
    if not found:
        return None
    name, x = found
    dim = g.dim(x)
    size = g.size(x, dim)
    start = g.number(-size, size)
    length = g.number(0, size - (start % size if start < 0 and size else start))
    return spelled(g, name, "narrow", f"{dim}, {start}, {length}")


@entry(VIEWS, "select")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1 and v.numel() > 0)
    if not found:
        return None
    name, x = found
    dim = g.dim(x)
    size = g.size(x, dim)
    return spelled(g, name, "select", f"{dim}, {g.number(-size, size - 1)}")


@entry(VIEWS, "squeeze")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: 1 in v.sizes)
    if not found:
        return None
    name, x = found
    dims = tuple(sorted(g.rng.sample(range(x.dim()), min(2, x.dim()))))
    return spelled(g, name, "squeeze", g.pick(("", f"{g.dim(x)}", f"{dims}")))


@entry(VIEWS, "unsqueeze")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() <= 3)
    return spelled(g, found[0], "unsqueeze", f"{g.dim(found[1], 1)}") if found else None


@entry(VIEWS, "t")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() <= 2)
    return spelled(g, found[0], "t", "") if found else None


def _attribute(g: Drawing, name: str, want: Any) -> str | None:
    found = of(g, want)
    if not found:
        return None
    if name == "T" and found[1].dim() not in (0, 2) and not g.chance(0.3):
        return None
    return f"{found[0]}.{name}"


for _name, _want in (
    ("T", lambda v: v.dim() == 2),
    ("mT", lambda v: v.dim() >= 2),
    ("H", lambda v: v.dim() == 2),
    ("mH", lambda v: v.dim() >= 2),
    ("real", lambda v: v.dtype.category == 3),
    ("imag", lambda v: v.dtype.category == 3),
):
    VIEWS[_name] = lambda g, name=_name, want=_want: _attribute(g, name, want)


@entry(VIEWS, "adjoint")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 2)
    return spelled(g, found[0], "adjoint", "") if found else None


@entry(VIEWS, "conj")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dtype.category == 3)
    return spelled(g, found[0], "conj", "") if found else None


@entry(VIEWS, "view_as_real")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dtype.category == 3)
    return f"torch.view_as_real({found[0]})" if found else None


@entry(VIEWS, "view_as_complex")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dtype.name in ("float32", "float64") and v.sizes[-1:] == (2,))
    return f"torch.view_as_complex({found[0]})" if found else None


@entry(VIEWS, "unflatten")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: 1 <= v.dim() <= 3 and v.numel() > 0)
    if not found:
        return None
    name, x = found
    dim = g.dim(x)
    size = g.size(x, dim)
    factor = g.pick([f for f in (1, 2, 3, 5) if size % f == 0])
    sizes = g.pick(((factor, size // factor), (-1, factor), (factor, -1), (size,)))
    if g.chance(0.04):
        sizes = (2, 4)
    return spelled(g, name, "unflatten", f"{dim}, {sizes}")


@entry(VIEWS, "flatten")
def _(g: Drawing) -> str | None:
    found = of(g)
    if not found:
        return None
    a, b = g.dim(found[1]), g.dim(found[1])
    return spelled(g, found[0], "flatten", g.pick(("", f"{a}", f"{a}, {b}")))


@entry(VIEWS, "ravel")
def _(g: Drawing) -> str | None:
    found = of(g)
    return spelled(g, found[0], "ravel", "") if found else None


@entry(VIEWS, "unfold")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() <= 3 and v.numel() > 0)
    if not found:
        return None
    name, x = found
    dim = g.dim(x)
    size = g.size(x, dim)
    return f"{name}.unfold({dim}, {g.number(1, min(size, 3))}, {g.number(1, 2)})"


def _new_shape(g: Drawing, x: Any) -> tuple[int, ...]:
    shape = g.shape_of(x.numel())
    if g.chance(0.3) and shape:
        at = g.rng.randrange(len(shape))
        shape = (*shape[:at], -1, *shape[at + 1 :])
    if g.chance(0.03):
        shape = g.pick(((7,), (-1, -1), (2, -2), (4, -1)))
    return shape


@entry(VIEWS, "view")
def _(g: Drawing) -> str | None:
    found = of(g)
    return f"{found[0]}.view({_new_shape(g, found[1])})" if found else None


@entry(VIEWS, "view dtype")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dtype.category > 0)
    if not found:
        return None
    # A handful of pairs: every pair of widths, without compiling every pair of dtypes.
    table = {
        "float32": ("int32", "float32", "int16", "float64", "complex64"),
        "int64": ("float64", "int32", "complex64"),
        "complex64": ("float32", "int64"),
        "float64": ("int64", "float32"),
        "int32": ("float32", "uint8"),
        "bool": ("uint8", "bool"),
        "uint8": ("int16", "uint8"),
        "int16": ("bfloat16", "uint8"),
    }
    return f"{found[0]}.view(torch.{g.pick(table.get(found[1].dtype.name, ('int16', 'float32')))})"


@entry(VIEWS, "view_as")
def _(g: Drawing) -> str | None:
    found = of(g)
    other = g.tensor(lambda v: found is not None and v.numel() == found[1].numel())
    return f"{found[0]}.view_as({other[0]})" if found and other else None


@entry(VIEWS, "reshape")
def _(g: Drawing) -> str | None:
    found = of(g)
    return spelled(g, found[0], "reshape", str(_new_shape(g, found[1]))) if found else None


@entry(VIEWS, "reshape_as")
def _(g: Drawing) -> str | None:
    found = of(g)
    other = g.tensor(lambda v: found is not None and v.numel() == found[1].numel())
    return f"{found[0]}.reshape_as({other[0]})" if found and other else None


@entry(VIEWS, "contiguous")
def _(g: Drawing) -> str | None:
    found = of(g)
    return f"{found[0]}.contiguous()" if found else None


@entry(VIEWS, "channels_last")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() == 4)
    if not found:
        return None
    return f"{found[0]}.{g.pick(('contiguous', 'clone'))}(memory_format=torch.channels_last)"


@entry(VIEWS, "unbind")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1 and v.numel() > 0)
    return spelled(g, found[0], "unbind", g.pick(("", f"{g.dim(found[1])}"))) if found else None


def _sections(g: Drawing, size: int) -> tuple[int, ...]:
    cut = g.rng.randint(0, size)
    sections = (cut, size - cut)
    return g.pick((sections, sections, sections, (size,), (cut, size - cut, 0), (size, 1)))


@entry(VIEWS, "split")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1)
    if not found:
        return None
    dim = g.dim(found[1])
    size = g.size(found[1], dim)
    given = g.pick((str(g.number(1, max(1, size))), str(list(_sections(g, size)))))
    return spelled(g, found[0], "split", f"{given}, {dim}")


@entry(VIEWS, "chunk")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1)
    return spelled(g, found[0], "chunk", f"{g.number(1, 3)}, {g.dim(found[1])}") if found else None


@entry(VIEWS, "tensor_split")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1)
    if not found:
        return None
    given = g.pick((str(g.number(1, 3)), str(g.pick(((1,), (1, 2), (-1,), (0, 9), (2, 1), (-9, 1))))))
    return spelled(g, found[0], "tensor_split", f"{given}, {g.dim(found[1])}")


def _named_split(g: Drawing, method: str, rank: int) -> str | None:
    found = of(g, lambda v: v.dim() >= rank)
    if not found:
        return None
    x = found[1]
    size = g.size(x, 2 if rank == 3 else 0 if rank == 2 or x.dim() == 1 else 1)
    fitting = [n for n in (1, 2, 3, 5) if size % n == 0]
    return spelled(
        g, found[0], method, str(g.pick((g.pick(fitting), g.pick(fitting), 2, (1,), (1, 2), (-1,))))
    )


for _method, _rank in (("hsplit", 1), ("vsplit", 2), ("dsplit", 3)):
    VIEWS[_method] = lambda g, method=_method, rank=_rank: _named_split(g, method, rank)
