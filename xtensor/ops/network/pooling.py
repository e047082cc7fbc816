"""Pooling: maxima, averages and power means over windows of one to three dimensions.

A window's elements are visited as strided slices of the (padded) input, one for each place in the window, which XLA
fuses into one loop; windows too large for that go through its `reduce_window`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.options import repeated
from ...operators.schema import Array
from ...tensor import Tensor
from ...xla.platforms import on_cpu
from ..reduce.reductions import argument

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
]

UNROLLED = 64  # windows of more elements are not unrolled
WORDS = {1: "one", 2: "two", 3: "three"}


# ---- windows -------------------------------------------------------------------------------------------------------


def per_dim(name: str, what: str, value: Any, n: int) -> tuple[int, ...]:
    found = repeated(value, n)
    if found is None:
        word = WORDS[n]
        raise RuntimeError(f"{name}: {what} must either be a single int, or a tuple of {word} ints")
    return found


class Windows:
    """The windows of a pooling: sizes, strides, padding, dilation and the output they give for an input's shape."""

    def __init__(
        self,
        name: str,
        n: int,
        shape: Sequence[int],
        kernel: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil: bool,
    ) -> None:
        self.name = name
        self.n = n
        self.sizes = tuple(shape[len(shape) - n :])
        self.kernel = per_dim(name, "kernel_size", kernel, n)
        self.stride = self.kernel if stride is None or stride == () else per_dim(name, "stride", stride, n)
        self.padding = per_dim(name, "padding", padding, n)
        self.dilation = per_dim(name, "dilation", dilation, n)
        self._check()
        self.out = tuple([self._output(i, ceil) for i in range(n)])
        self.reach = tuple([d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)])
        # What the last window reaches beyond the input, which ceil_mode makes more than the padding.
        self.high = tuple(
            [
                max(0, (o - 1) * s + r - size - p)
                for o, s, r, size, p in zip(
                    self.out, self.stride, self.reach, self.sizes, self.padding, strict=True
                )
            ]
        )

    def _check(self) -> None:
        for k, p, d in zip(self.kernel, self.padding, self.dilation, strict=True):
            if self.n == 1 and k <= 0:
                raise RuntimeError(f"{self.name}() kernel_size must be greater than zero, but got {k}")
            if p < 0:
                raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
            if self.n == 1 and self.name.startswith("max") and p > k // 2:
                raise RuntimeError(
                    f"{self.name}() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
                )
            if d <= 0:
                names = "TWH"[-self.n :] if self.n < 3 else "THW"
                told = " ".join(
                    f"dilation{a}: {v}"
                    for a, v in zip(names[::-1] if self.n == 2 else names, self.dilation, strict=True)
                )
                raise RuntimeError(f"dilation should be greater than zero, but got {told}")
        for s in self.stride:
            if s <= 0:
                if self.n == 1:
                    raise RuntimeError(f"{self.name}() stride must be greater than zero, but got {s}")
                raise RuntimeError("stride should not be zero")
        for k, p, d in zip(self.kernel, self.padding, self.dilation, strict=True):
            if k <= 0:
                raise RuntimeError(
                    "kernel size should be greater than zero, but got "
                    + " ".join(f"k{a}: {v}" for a, v in zip("THW"[-self.n :], self.kernel, strict=True))
                )
            if p > ((k - 1) * d + 1) // 2:
                raise RuntimeError(
                    f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
                )

    def _output(self, i: int, ceil: bool) -> int:
        size, k, s, p, d = self.sizes[i], self.kernel[i], self.stride[i], self.padding[i], self.dilation[i]
        span = size + 2 * p - d * (k - 1) - 1
        if ceil:
            out = -(-span // s) + 1
            # The last window must start inside the input or its left padding.
            return out - 1 if (out - 1) * s >= size + p else out
        return span // s + 1

    def check_output(self, shape: Sequence[int], indices: bool = False) -> None:
        if any(o < 1 for o in self.out):
            if self.n == 1 and indices:
                # PyTorch pools it as an image one high.
                lead = f"{shape[-2]}x1x"
                raise RuntimeError(
                    f"Given input size: ({lead}{self.sizes[0]}). Calculated output size: ({lead}{self.out[0]}). Output size "
                    "is too small"
                )
            if self.n == 1 and self.name.startswith("max"):
                raise RuntimeError(f"{self.name}() Invalid computed output size: {self.out[0]}")
            if self.name == "avg_pool3d":
                image, kernel = (" ".join(f"{a}: {v}" for a, v in zip("THW", self.sizes, strict=True)),
                                 " ".join(f"k{a}: {v}" for a, v in zip("THW", self.kernel, strict=True)))  # fmt: skip
                raise RuntimeError(f"input image ({image}) smaller than kernel size ({kernel})")
            planes = (shape[-self.n - 1], 1) if self.n == 1 else (shape[-self.n - 1],)
            old = "x".join(map(str, (*planes, *self.sizes)))
            new = "x".join(map(str, (*planes, *self.out)))
            raise RuntimeError(
                f"Given input size: ({old}). Calculated output size: ({new}). Output size is too small"
            )

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    def padded(self, x: Any, fill: Any) -> Any:
        lead = x.ndim - self.n
        config = [(0, 0, 0)] * lead + [(p, h, 0) for p, h in zip(self.padding, self.high, strict=True)]
        return lax.pad(x, jnp.asarray(fill, x.dtype), config) if any(any(c) for c in config) else x

    def places(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.kernel))

    def part(self, padded: Any, place: Sequence[int]) -> Any:
        """The elements that lie at one place of every window, in the shape of the output."""
        lead = padded.ndim - self.n
        start = [i * d for i, d in zip(place, self.dilation, strict=True)]
        limit = [a + (o - 1) * s + 1 for a, o, s in zip(start, self.out, self.stride, strict=True)]
        return lax.slice(
            padded, (0,) * lead + tuple(start), padded.shape[:lead] + tuple(limit), (1,) * lead + self.stride
        )

    def back(self, values: Any, place: Sequence[int]) -> Any:
        """The transpose of `part` after `padded`: values at one place of every window, put into the input's shape."""
        lead = values.ndim - self.n
        config = [(0, 0, 0)] * lead
        for i in range(self.n):
            start = place[i] * self.dilation[i] - self.padding[i]
            stop = start + (self.out[i] - 1) * self.stride[i] + 1
            config.append((start, self.sizes[i] - stop, self.stride[i] - 1))
        return lax.pad(values, jnp.zeros((), values.dtype), config)

    def index(self, place: Sequence[int]) -> np.ndarray[Any, Any]:
        """The flat index in the input's spatial dimensions of the element at one place of every window."""
        flat = np.zeros(self.out, np.int32)
        for i in range(self.n):
            at = np.arange(self.out[i]) * self.stride[i] - self.padding[i] + place[i] * self.dilation[i]
            flat = flat * self.sizes[i] + at.reshape((-1,) + (1,) * (self.n - 1 - i)).astype(np.int32)
        return flat

    def number(self, place: Sequence[int]) -> int:
        """Which place of the window this is, counted in the order of `places`."""
        return int(np.ravel_multi_index(tuple(place), self.kernel))

    def inside(self, place: Sequence[int]) -> np.ndarray[Any, Any]:
        """Whether the element at one place of every window lies in the input, not in its padding."""
        found = np.ones(self.out, bool)
        for i in range(self.n):
            at = np.arange(self.out[i]) * self.stride[i] - self.padding[i] + place[i] * self.dilation[i]
            found &= ((at >= 0) & (at < self.sizes[i])).reshape((-1,) + (1,) * (self.n - 1 - i))
        return found

    def reduce(self, x: Any, fill: Any, combine: Any) -> Any:
        """`combine` over every window through XLA's `reduce_window`."""
        lead = x.ndim - self.n
        ones = (1,) * lead
        border = ((0, 0),) * lead + tuple(zip(self.padding, self.high, strict=True))
        # `high` is what the last window needs; a smaller input side is cut by the output's size.
        out = lax.reduce_window(
            x, np.asarray(fill, x.dtype), combine, ones + self.kernel, ones + self.stride, border,
            window_dilation=ones + self.dilation,
        )  # fmt: skip
        return lax.slice(out, (0,) * out.ndim, out.shape[:lead] + self.out)


# ---- maxima --------------------------------------------------------------------------------------------------------


def check_image(name: str, n: int, x: Any) -> None:
    """PyTorch's errors for an input without the dimensions of an image, or with empty ones."""
    if n == 1 and name.startswith("max"):
        if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
            raise RuntimeError(
                f"{name}: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
                f"{list(x.shape)}"
            )
        return
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    if 0 in x.shape[-n - 1 :]:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(x.shape)}"
        )


def lowest(dtype: Any) -> Any:
    if jnp.issubdtype(dtype, jnp.floating):
        return -jnp.inf
    return jnp.iinfo(dtype).min


def better(candidate: Any, best: Any) -> Any:
    """Whether a later element of a window replaces the best so far: it is larger, or NaN."""
    larger = candidate > best
    return larger | jnp.isnan(candidate) if jnp.issubdtype(candidate.dtype, jnp.floating) else larger


def max_windows(x: Any, w: Windows, indices: bool) -> tuple[Any, Any]:
    """The maximum of every window and, if asked for, its flat index."""
    if not indices and w.taps > UNROLLED:
        found = w.reduce(x, lowest(x.dtype), lax.max)
        if jnp.issubdtype(x.dtype, jnp.floating):
            # XLA makes a fold of one window, which may lose NaN: `xtensor/ops/reduce/extreme_folds.py`.
            unknown = w.reduce(jnp.isnan(x), False, lax.bitwise_or)
            found = jnp.where(unknown, jnp.asarray(jnp.nan, x.dtype), found)
        return found, None
    padded = w.padded(x, lowest(x.dtype))
    best: Any = None
    index: Any = None
    for place in w.places():
        part = w.part(padded, place)
        if best is None:
            best = part
            index = jnp.broadcast_to(jnp.asarray(first_inside(w, w.index)), part.shape) if indices else None
            continue
        if indices:
            take = better(part, best)
            best = jnp.where(take, part, best)
            index = jnp.where(take, jnp.asarray(w.index(place)), index)
        else:
            best = jnp.maximum(best, part)
    return best, None if index is None else index.astype(jnp.int64)


def first_inside(w: Windows, name: Any) -> np.ndarray[Any, Any]:
    """What `name` calls every window's first place in the input: its maximum where nothing exceeds minus infinity."""
    found = np.zeros(w.out, np.int32)
    for place in reversed(list(w.places())):
        found = np.where(w.inside(place), name(place), found)
    return found


def max_grad(grad: Any, x: Any, w: Windows) -> Any:
    """The gradient put at the first maximum (or last NaN) of every window.

    Where scatters run one after the other that is the faster way, by far: in a sum of all places XLA looks for each maximum anew.
    """

    def scattered(grad: Any, x: Any) -> Any:
        _, index = max_windows(x, w, True)
        return scatter_flat(grad, index, x.shape, w.n)

    if w.taps > UNROLLED:
        return scattered(grad, x)
    return on_cpu("max_pool_grad", scattered, lambda grad, x: summed_places(grad, x, w), grad, x)


def summed_places(grad: Any, x: Any, w: Windows) -> Any:
    """`max_grad` as a sum over the places of a window."""
    padded = w.padded(x, lowest(x.dtype))
    best: Any = None
    chosen: Any = None
    for number, place in enumerate(w.places()):
        part = w.part(padded, place)
        if best is None:
            best, chosen = part, jnp.broadcast_to(jnp.asarray(first_inside(w, w.number)), part.shape)
            continue
        take = better(part, best)
        best = jnp.where(take, part, best)
        chosen = jnp.where(take, number, chosen)
    total: Any = None
    zero = jnp.zeros((), grad.dtype)
    for number, place in enumerate(w.places()):
        placed = w.back(jnp.where(chosen == number, grad, zero), place)
        total = placed if total is None else total + placed
    return total


def scatter_flat(grad: Any, index: Any, shape: Sequence[int], n: int) -> Any:
    """Gradients added at flat indices of the last `n` dimensions of a tensor of zeros."""
    lead = math.prod(shape[: len(shape) - n])
    flat = math.prod(shape[len(shape) - n :])
    if grad.size == 0:
        return jnp.zeros(tuple(shape), grad.dtype)
    rows = jnp.arange(lead, dtype=jnp.int32)[:, None]
    zeros = jnp.zeros((lead, flat), grad.dtype)
    return (
        zeros.at[rows, index.reshape((lead, -1)).astype(jnp.int32)]
        .add(grad.reshape((lead, -1)))
        .reshape(tuple(shape))
    )


def _max_pool(
    n: int, input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, indices: bool
) -> tuple[Any, Any]:
    name = f"max_pool{n}d"
    w = Windows(name, n, input.shape, kernel, stride, padding, dilation, ceil) if input.ndim >= n else None
    check_image(name, n, input)
    assert w is not None
    w.check_output(input.shape, indices)
    dtype = dtype_of(input)
    if dtype is dtypes.bool or dtype.is_complex or (n == 1 and not indices and not dtype.is_floating_point):
        raise checks.not_implemented_for(name if n > 1 else "max_pool1d_impl", dtype)
    return max_windows(input, w, indices)


def max_pools(n: int) -> tuple[Any, Any]:
    """Declare max pooling of `n` dimensions: the public function, and the one that always gives indices."""
    dims = ("dimension", "two dimensions", "three dimensions")[n - 1]

    def windows(
        x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Windows:
        return Windows(f"max_pool{n}d", n, x.shape, kernel_size, stride, padding, dilation, ceil_mode)

    def rule(
        grads: Any, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        return max_grad(grads[0], input, windows(input, kernel_size, stride, padding, dilation, ceil_mode))

    def values(
        input: Array,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Array:
        return _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, False)[0]

    def indexed(
        input: Array,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> tuple[Array, ...]:
        return _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    def pool(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        made = of_pairs if return_indices else of_values
        return made(input, kernel_size, stride, padding, dilation, ceil_mode)

    def with_indices(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = True,
    ) -> Any:
        return of_pairs(input, kernel_size, stride, padding, dilation, ceil_mode)

    name = f"max_pool{n}d"
    values.__doc__, indexed.__doc__ = f"`{name}` without indices.", f"`{name}` with indices."
    cast = dict(cpu="float32") if n == 3 else None
    declared = functools.partial(general, formats=True, derivatives=dict(input=rule))
    title = f"MaxPool{n}DWithIndices" if n > 1 else "SqueezeBackward1"
    of_values = declared(name=f"{name}_values", node=title, autocast=cast)(values)
    of_pairs = declared(name=f"{name}_indexed", node=title)(indexed)
    for function, title in ((pool, name), (with_indices, f"{name}_with_indices")):
        function.__name__ = function.__qualname__ = title
        function.__module__ = "xtensor"
    kinds = "Raises: TypeError for arguments of other kinds; NotImplementedError for"
    raises = f"{kinds} complex, bool and integer tensors." if n == 1 else f"{kinds} complex and bool tensors."
    with_indices.__doc__ = (
        f"The maximum of every window and its flat index in the last {dims}.\n\n"
        f"Shape: `input` of {n + 1} or {n + 2} dimensions; maxima and indices both as of `{name}`.\n\n"
        f"{kinds} complex and bool tensors."
    )
    pool.__doc__ = (
        f"The maximum of every window over the last {n} dimension(s); with `return_indices` also where it lies, as flat "
        "indices.\n\n"
        f"Shape: `input` `(*, S, ...)` of {n + 1} or {n + 2} dimensions, the last {n} with "
        f"`S_out = (S + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`.\n\n{raises}\n\n"
        f">>> F.max_pool{n}d(xtensor.zeros(1, 3, {', '.join(['8'] * n)}), 2).shape\n"
        f"{checks.spelled('Size')}([1, 3, {', '.join(['4'] * n)}])"
    )
    return pool, with_indices


max_pool1d, max_pool1d_with_indices = max_pools(1)
max_pool2d, max_pool2d_with_indices = max_pools(2)
max_pool3d, max_pool3d_with_indices = max_pools(3)


# ---- averages ------------------------------------------------------------------------------------------------------


def divisors(w: Windows, include_pad: bool, override: int | None) -> np.ndarray[Any, Any]:
    """What the sum of every window is divided by."""
    if override is not None:
        return np.full(w.out, override, np.int64)
    total = np.ones(w.out, np.int64)
    for i in range(w.n):
        start = np.arange(w.out[i]) * w.stride[i] - w.padding[i]
        stop = np.minimum(start + w.kernel[i], w.sizes[i] + w.padding[i])
        if not include_pad:
            start, stop = np.maximum(start, 0), np.minimum(stop, w.sizes[i])
        total *= (stop - start).reshape((-1,) + (1,) * (w.n - 1 - i))
    return total


def average(x: Any, w: Windows, include_pad: bool, override: int | None) -> Any:
    """The mean of every window; linear in `x`."""
    own = x.dtype
    x = x.astype(dtypes.compute_type(dtype_of(x)).numpy)
    if w.taps > UNROLLED:
        total = w.reduce(x, 0, lax.add)
    else:
        padded = w.padded(x, 0)
        total = jnp.zeros((), x.dtype)
        for place in w.places():
            total = total + w.part(padded, place)
    divisor = divisors(w, include_pad, override)
    by = divisor.flat[0] if divisor.size and (divisor == divisor.flat[0]).all() else divisor
    return (total / jnp.asarray(by, x.dtype)).astype(own)


def _avg_pool(
    n: int,
    input: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil: bool,
    include_pad: bool,
    override: int | None = None,
) -> Any:
    name = f"avg_pool{n}d"
    if n == 1:
        checks.check_dim_range(name, argument(input, "self", 1), 2, 3)
    if override == 0:
        raise RuntimeError("divisor must be not zero")
    check_image(name, n, input)
    w = Windows(name, n, input.shape, kernel, stride, padding, 1, ceil)
    w.check_output(input.shape)
    dtype = dtype_of(input)
    if dtype is dtypes.bool or not (dtype.is_floating_point or dtype is dtypes.int64):
        raise checks.not_implemented_for("avg_pool2d" if n < 3 else "avg_pool3d_out_frame", dtype)
    if dtype is dtypes.int64:
        summed = average(input.astype(jnp.float64), w, include_pad, override)
        return jnp.trunc(summed).astype(jnp.int64)
    return average(input, w, include_pad, override)


def avg_rule(n: int) -> Any:
    def rule(
        grad: Any,
        input_shape: Any,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        w = Windows(f"avg_pool{n}d", n, input_shape, kernel_size, stride, padding, 1, ceil_mode)
        like = jax.ShapeDtypeStruct(tuple(input_shape), grad.dtype)
        run = jax.linear_transpose(lambda x: average(x, w, count_include_pad, divisor_override), like)
        return run(grad)[0]

    return {"input": rule}


def avg_rule_1d(
    grad: Any,
    input_shape: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Any:
    return avg_rule(1)["input"](
        grad, input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, None
    )


@general(node="SqueezeBackward1", derivatives=dict(input=avg_rule_1d))
def avg_pool1d(
    input: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The mean of every window over the last dimension.

    Shape: `input` `(*, S)`, result `(*, S_out)` with `S_out = (S + 2 * padding - kernel_size) // stride + 1`.

    Raises: NotImplementedError for complex and bool tensors.
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@general(formats=True, out="exact", node="AvgPool2D", derivatives=avg_rule(2))
def avg_pool2d(
    input: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of every window over the last two dimensions.

    Shape: `input` `(N, C, H, W)` or `(C, H, W)`; result with
    `H_out = (H + 2 * padding - kernel_size) // stride + 1`, and so for W.

    Raises: NotImplementedError for complex and bool tensors.

    >>> F.avg_pool2d(xtensor.arange(16.0).reshape(1, 4, 4), 2)
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@general(autocast=dict(cpu="float32"), out="exact", node="AvgPool3D", derivatives=avg_rule(3))
def avg_pool3d(
    input: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The mean of every window over the last three dimensions.

    Shape: `input` `(*, D, H, W)`, each S of the three `(S + 2 * padding - kernel_size) // stride + 1` in the
    result.

    Raises: NotImplementedError for complex and bool tensors.
    """
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


# ---- power means ---------------------------------------------------------------------------------------------------


def _lp_pool(n: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    count = math.prod(kernel_size) if isinstance(kernel_size, (tuple, list)) else kernel_size**n
    pool = (avg_pool1d, avg_pool2d, avg_pool3d)[n - 1]
    out = pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return (out.sign() * out.abs().relu()).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: int | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm of every window over the last dimension.

    Shape: `input` `(*, S)`, result `(*, S_out)` with `S_out = (S - kernel_size) // stride + 1`.

    Raises: NotImplementedError for complex tensors.
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of every window over the last two dimensions.

    Shape: `input` `(*, H, W)`, each S of the two `(S - kernel_size) // stride + 1` in the result.

    Raises: NotImplementedError for complex tensors.
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The p-norm of every window over the last three dimensions.

    Shape: `input` `(*, D, H, W)`, each S of the three `(S - kernel_size) // stride + 1` in the result.

    Raises: NotImplementedError for complex tensors.
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
