"""The reads that make fresh tensors, and the writes, that a program may contain."""

from __future__ import annotations

import math
from typing import Any

from tests.fuzz.draw import READS, SHAPES, WRITES, Drawing, Impossible, entry
from tests.fuzz.draw_views import of


def _vector(g: Drawing, size: int, unique: bool = False, negative: bool = False) -> tuple[str, int]:
    """A one-dimensional index tensor for a dimension and its length."""
    count = g.rng.randint(0 if g.chance(0.1) else 1, min(max(size, 1), 3) if unique else 3)
    drawn = g.index_list(size, (count,), negative, unique)
    if "dtype" not in drawn and g.chance(0.1):
        drawn = f"{drawn[:-1]}, dtype=torch.int32)"
    return drawn, count


def _index_for(g: Drawing, x: Any, dim: int, sizes: tuple[int, ...], unique: bool = False) -> str:
    """An index tensor for gather and scatter; with `unique`, no place is named twice along `dim`."""
    axis = dim % max(len(x.sizes), 1)
    size = g.size(x, dim)
    if not sizes:
        return g.index_list(size, (), False)
    if not unique:
        return g.index_list(size, sizes, False)
    if sizes[axis] > size or len(sizes) > 2 or not all(sizes):
        raise Impossible
    lines = [g.rng.sample(range(size), sizes[axis]) for _ in range(sizes[1 - axis] if len(sizes) == 2 else 1)]
    if len(sizes) == 1:
        return f"torch.tensor({lines[0]})"
    rows = lines if axis == 1 else [list(row) for row in zip(*lines, strict=True)]
    return f"torch.tensor({rows})"


def _smaller(g: Drawing, x: Any, dim: int) -> tuple[int, ...]:
    axis = dim % max(len(x.sizes), 1)
    return tuple(
        g.rng.randint(1, max(1, s)) if d != axis else g.rng.randint(1, 3) for d, s in enumerate(x.sizes)
    )


# Reads.


def _advanced(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1)
    if not found:
        return None
    return f"{found[0]}[{g.subscript(found[1], True)}]"


READS["advanced index"] = READS["advanced index again"] = _advanced


@entry(READS, "index by comparison")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dtype.category in (1, 2))
    return f"{found[0]}[{found[0]} > {g.rng.randint(0, 3)}]" if found else None


@entry(READS, "index_select")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1)
    if not found:
        return None
    dim = g.dim(found[1])
    return f"{found[0]}.index_select({dim}, {_vector(g, g.size(found[1], dim))[0]})"


@entry(READS, "gather")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.numel() > 0)
    if not found:
        return None
    dim = g.dim(found[1])
    return f"{found[0]}.gather({dim}, {_index_for(g, found[1], dim, _smaller(g, found[1], dim))})"


@entry(READS, "take")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.numel() > 0)
    if not found:
        return None
    return f"{found[0]}.take({g.index_list(found[1].numel(), g.pick(((2,), (3,), (2, 2), ())))})"


@entry(READS, "take_along_dim")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.numel() > 0 and v.dim() >= 1)
    if not found:
        return None
    name, x = found
    if g.chance(0.2):
        return f"torch.take_along_dim({name}, {g.index_list(x.numel(), (2,), False)})"
    dim = g.dim(x)
    axis = dim % max(x.dim(), 1)
    sizes = tuple(g.pick((s, 1)) if d != axis else g.rng.randint(1, 3) for d, s in enumerate(x.sizes))
    return f"{name}.take_along_dim({g.index_list(g.size(x, dim), sizes)}, {dim})"


@entry(READS, "masked_select")
def _(g: Drawing) -> str | None:
    found = of(g)
    return f"{found[0]}.masked_select({g.mask_for(found[1].sizes)})" if found else None


@entry(READS, "clone")
def _(g: Drawing) -> str | None:
    found = of(g)
    return f"{found[0]}.clone()" if found else None


@entry(READS, "arithmetic")
def _(g: Drawing) -> str | None:
    found = of(g)
    if not found:
        return None
    return f"{found[0]} {g.pick('+-*')} {g.operand(found[1].sizes, found[1].dtype.name)}"


@entry(READS, "comparison")
def _(g: Drawing) -> str | None:
    found = of(g)
    return f"{found[0]} {g.pick(('>', '<', '>='))} {g.pick((0, 1, 2, 1.5))}" if found else None


@entry(READS, "pointwise")
def _(g: Drawing) -> str | None:
    found = of(g)
    if not found:
        return None
    name, x = found
    return g.pick(
        (
            f"{name}.neg()",
            f"{name}.abs()",
            f"{name}.maximum({g.operand(x.sizes, x.dtype.name, scalars=False)})",
        )
    )


@entry(READS, "to")
def _(g: Drawing) -> str | None:
    found = of(g)
    return f"{found[0]}.to(torch.{g.pick((g.main, g.other, 'float32', 'int64'))})" if found else None


@entry(READS, "cat")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1 and v.numel() <= 12)
    other = found and g.tensor(lambda v: v.sizes == found[1].sizes and v.dtype is found[1].dtype)
    if not found or not other:
        return None
    return f"torch.{g.pick(('cat', 'stack'))}([{found[0]}, {other[0]}], {g.dim(found[1])})"


# Writes.


def _into(g: Drawing, want: Any = None) -> tuple[str, Any] | None:
    found = of(g, want)
    # Written through a view made on the spot, half of the time.
    if found and found[1].sizes and g.chance(0.25):
        drawn = g.subscript(found[1], False)
        try:
            return f"{found[0]}[{drawn}]", eval(f"x[{drawn}]", {"x": found[1], "torch": g.names["torch"]})
        except Exception as error:
            if not hasattr(error, "torch_class"):
                raise
            return None
    return found


def _arithmetic(g: Drawing) -> str | None:
    found = _into(g)
    if not found:
        return None
    name, x = found
    method = g.pick(("add_", "sub_", "mul_", "add_", "mul_"))
    other = g.operand(x.sizes, x.dtype.name)
    if method != "mul_" and g.chance(0.2):
        return f"{name}.{method}({other}, alpha={g.pick((2, -1, 2, 0.5))})"
    return f"{name}.{method}({other})"


WRITES["arithmetic"] = WRITES["arithmetic again"] = _arithmetic


@entry(WRITES, "augmented")
def _(g: Drawing) -> str | None:
    found = of(g)
    if not found:
        return None
    return f"{found[0]} {g.pick(('+=', '-=', '*='))} {g.operand(found[1].sizes, found[1].dtype.name)}"


@entry(WRITES, "augmented subscript")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dim() >= 1)
    if not found:
        return None
    drawn = g.subscript(found[1], g.chance(0.4))
    return f"{found[0]}[{drawn}] {g.pick(('+=', '-=', '*='))} {g.scalar()}"


@entry(WRITES, "unary")
def _(g: Drawing) -> str | None:
    found = _into(g)
    method = g.pick(("neg_", "abs_", "square_", "logical_not_", "bitwise_not_", "zero_", "neg_"))
    return f"{found[0]}.{method}()" if found else None


@entry(WRITES, "view in place")
def _(g: Drawing) -> str | None:
    found = of(g)
    if not found:
        return None
    name, x = found
    method = g.pick(("t_", "transpose_", "swapdims_", "squeeze_", "unsqueeze_", "resize_", "as_strided_"))
    if method == "resize_":
        smaller = [s for s in SHAPES if math.prod(s) <= x.numel()]
        return f"{name}.resize_({g.pick(smaller)})" if smaller else None
    if method == "as_strided_":
        return f"{name}.as_strided_({g.pick(((2,), (1, 2), ()))}, {g.pick(((1,), (2, 1), (1, 2), ()))})"
    arguments = {"t_": "", "squeeze_": g.pick(("", f"{g.dim(x)}")), "unsqueeze_": f"{g.dim(x, 1)}"}
    return f"{name}.{method}({arguments.get(method, f'{g.dim(x)}, {g.dim(x)}')})"


@entry(WRITES, "clamp_")
def _(g: Drawing) -> str | None:
    found = _into(g)
    return f"{found[0]}.clamp_({g.pick(('min=1', 'max=2', 'min=0, max=3', 'min=0.5'))})" if found else None


@entry(WRITES, "copy_")
def _(g: Drawing) -> str | None:
    found = _into(g)
    return f"{found[0]}.copy_({g.operand(found[1].sizes, found[1].dtype.name)})" if found else None


@entry(WRITES, "fill_")
def _(g: Drawing) -> str | None:
    found = _into(g)
    return f"{found[0]}.fill_({g.pick((g.scalar(), g.scalar(), 'torch.tensor(2)', '1j'))})" if found else None


@entry(WRITES, "out=")
def _(g: Drawing) -> str | None:
    target = _into(g)
    if not target:
        return None
    out, y = target
    same = g.tensor(lambda v: v.sizes == y.sizes and (v.dtype is y.dtype or g.chance(0.2)))
    if not same:
        return None
    name, x = same
    if g.chance(0.25):
        return f"torch.{g.pick(('neg', 'abs'))}({name}, out={out})"
    if g.chance(0.6) or not x.sizes or not x.numel():
        other = g.operand(x.sizes, x.dtype.name)
        return f"torch.{g.pick(('add', 'sub', 'mul'))}({name}, {other}, out={out})"
    dim = g.rng.randrange(x.dim())
    draw = g.pick(("index_select", "gather", "take", "cat"))
    if draw == "index_select":
        return f"torch.index_select({name}, {dim}, {g.index_list(x.sizes[dim], (x.sizes[dim],), False)}, out={out})"
    if draw == "gather":
        return f"torch.gather({name}, {dim}, {_index_for(g, x, dim, x.sizes)}, out={out})"
    if draw == "take":
        return f"torch.take({name}, {g.index_list(x.numel(), x.sizes)}, out={out})"
    cut = g.rng.randint(0, x.sizes[dim])
    a, b = f"{name}.narrow({dim}, 0, {cut})", f"{name}.narrow({dim}, {cut}, {x.sizes[dim] - cut})"
    return f"torch.cat([{b}, {a}], {dim}, out={out})"


def _setitem(g: Drawing, advanced: bool) -> str | None:
    found = of(g, (lambda v: v.dim() >= 1) if advanced else None)
    if not found:
        return None
    name, x = found
    drawn = g.subscript(x, advanced)
    try:
        shape = eval(f"x[{drawn}]", {"x": x, "torch": g.names["torch"]}).sizes
    except Exception as error:
        if not hasattr(error, "torch_class"):
            raise
        shape = ()
    return f"{name}[{drawn}] = {g.operand(shape, x.dtype.name)}"


for _label in ("setitem", "setitem again"):
    WRITES[_label] = lambda g: _setitem(g, False)
for _label in ("setitem advanced", "setitem advanced again"):
    WRITES[_label] = lambda g: _setitem(g, True)


@entry(WRITES, "setitem by comparison")
def _(g: Drawing) -> str | None:
    found = of(g, lambda v: v.dtype.category in (1, 2))
    return f"{found[0]}[{found[0]} > {g.rng.randint(0, 3)}] = {g.scalar()}" if found else None


@entry(WRITES, "index_put_")
def _(g: Drawing) -> str | None:
    found = _into(g, lambda v: 1 <= v.dim() <= 3 and v.numel() > 0)
    if not found or not found[1].sizes:
        return None
    name, x = found
    accumulate = g.chance(0.5)
    count = g.rng.randint(1, x.dim())
    if g.chance(0.2):
        indices, shape = g.mask_for(x.sizes[:count]), None
    else:
        rows = [g.index_list(s, (2,)) for s in x.sizes[:count]]
        indices, shape = ", ".join(rows), (2, *x.sizes[count:])
    if shape is None or g.chance(0.2):
        values = g.fresh((), x.dtype.name)
        values = f"torch.tensor({g.pick((1, 2))}, dtype=torch.{x.dtype.name})" if g.chance(0.8) else values
    else:
        values = g.operand(shape, x.dtype.name, scalars=False)
    return f"{name}.index_put_(({indices},), {values}{', accumulate=True' if accumulate else ''})"


def _rows(g: Drawing, unique: bool) -> tuple[str, Any, int, str, str] | None:
    """Target, dim, index and source of an index_add_ or index_copy_."""
    found = _into(g, lambda v: v.dim() >= 1)
    if not found or not found[1].sizes:
        return None
    name, x = found
    dim = g.dim(x)
    drawn = _vector(g, g.size(x, dim), unique)
    axis = dim % max(x.dim(), 1)
    sizes = tuple(drawn[1] if d == axis else s for d, s in enumerate(x.sizes))
    if g.chance(0.04):
        sizes = sizes[1:]
    source = g.fresh(sizes, x.dtype.name if g.chance(0.96) else g.other)
    same = g.tensor(lambda v: v.sizes == sizes and v.dtype is x.dtype)
    return name, x, dim, drawn[0], same[0] if same and g.chance(0.5) else source


@entry(WRITES, "index_add_")
def _(g: Drawing) -> str | None:
    drawn = _rows(g, False)
    if not drawn:
        return None
    name, _, dim, index, source = drawn
    return f"{name}.index_add_({dim}, {index}, {source}{g.pick(('', '', ', alpha=2'))})"


@entry(WRITES, "index_copy_")
def _(g: Drawing) -> str | None:
    drawn = _rows(g, True)
    return f"{drawn[0]}.index_copy_({drawn[2]}, {drawn[3]}, {drawn[4]})" if drawn else None


@entry(WRITES, "index_reduce_")
def _(g: Drawing) -> str | None:
    drawn = _rows(g, False)
    if not drawn:
        return None
    name, _, dim, index, source = drawn
    how = g.pick(("prod", "amax", "amin", "mean"))
    return f"{name}.index_reduce_({dim}, {index}, {source}, '{how}'{g.pick(('', ', include_self=False'))})"


@entry(WRITES, "index_fill_")
def _(g: Drawing) -> str | None:
    found = _into(g, lambda v: v.dim() >= 1)
    if not found:
        return None
    dim = g.dim(found[1])
    drawn = _vector(g, g.size(found[1], dim), negative=True)
    return f"{found[0]}.index_fill_({dim}, {drawn[0]}, {g.pick((g.scalar(), g.scalar(), 'torch.tensor(3)'))})"


def _scatter(g: Drawing, unique: bool) -> tuple[str, Any, int, str, str] | None:
    found = _into(g, lambda v: v.numel() > 0 and v.dim() <= 3)
    if not found:
        return None
    name, x = found
    dim = g.dim(x)
    sizes = _smaller(g, x, dim)
    if g.chance(0.03):
        sizes = (*sizes, 2)
    index = _index_for(g, x, dim, sizes, unique)
    if "dtype" not in index and g.chance(0.05):
        index = f"{index[:-1]}, dtype=torch.int32)"
    larger = tuple(s + g.pick((0, 0, 0, 1)) for s in sizes)
    return name, x, dim, index, g.fresh(larger, x.dtype.name if g.chance(0.97) else g.other)


@entry(WRITES, "scatter_")
def _(g: Drawing) -> str | None:
    number = g.chance(0.4)
    drawn = _scatter(g, not number)
    if not drawn:
        return None
    name, _, dim, index, source = drawn
    if g.chance(0.15):
        return f"{name}.scatter_({dim}, {index}, {source}, reduce='{g.pick(('add', 'multiply'))}')"
    return f"{name}.scatter_({dim}, {index}, {g.scalar() if number else source})"


@entry(WRITES, "scatter_add_")
def _(g: Drawing) -> str | None:
    drawn = _scatter(g, False)
    return f"{drawn[0]}.scatter_add_({drawn[2]}, {drawn[3]}, {drawn[4]})" if drawn else None


@entry(WRITES, "scatter_reduce_")
def _(g: Drawing) -> str | None:
    drawn = _scatter(g, False)
    if not drawn:
        return None
    name, _, dim, index, source = drawn
    how = g.pick(("sum", "prod", "amax", "amin", "mean", "sum", "amax"))
    how = "median" if g.chance(0.02) else how
    return f"{name}.scatter_reduce_({dim}, {index}, {source}, '{how}'{g.pick(('', ', include_self=False'))})"


@entry(WRITES, "masked_fill_")
def _(g: Drawing) -> str | None:
    found = _into(g)
    if not found:
        return None
    sizes = tuple(s if g.chance(0.85) else 1 for s in found[1].sizes)[g.pick((0, 0, 0, 1)) :]
    return (
        f"{found[0]}.masked_fill_({g.mask_for(sizes)}, {g.pick((g.scalar(), g.scalar(), 'torch.tensor(2)'))})"
    )


@entry(WRITES, "masked_scatter_")
def _(g: Drawing) -> str | None:
    found = _into(g)
    if not found:
        return None
    name, x = found
    source = g.fresh(x.sizes if g.chance(0.9) else (2,), x.dtype.name)
    return f"{name}.masked_scatter_({g.mask_for(x.sizes)}, {source})"


@entry(WRITES, "put_")
def _(g: Drawing) -> str | None:
    found = _into(g, lambda v: v.numel() > 0)
    if not found:
        return None
    name, x = found
    accumulate = g.chance(0.5)
    shape = g.pick(((2,), (3,), (2, 2)))
    drawn = g.index_list(x.numel(), shape, True, not accumulate)
    source = g.fresh(shape if g.chance(0.95) else (1,), x.dtype.name)
    return f"{name}.put_({drawn}, {source}{', accumulate=True' if accumulate else ''})"
