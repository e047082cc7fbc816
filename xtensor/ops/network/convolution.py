"""Convolutions of one to three dimensions and their transposes, with stride, padding, dilation and groups.

Gradients are transposes of the same linear programs, so they are exact and can be differentiated again. Depthwise
convolutions run as a sum of shifted products, which XLA turns into one loop on a CPU where its convolution is 30 times
slower.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.functions.overloads import of_tensors
from ...operators.options import repeated
from ...operators.precision import convolution_precision
from ...operators.schema import Array
from ...tensor import Tensor
from ...xla.platforms import on_cpu
from .convolution_cpu import (
    by_columns,
    by_phases,
    columns_weight,
    depthwise_weight,
    has_few_inputs,
    has_few_places,
    has_phases,
    is_pointwise,
    is_row,
    outgrows,
    pointwise,
    pointwise_input,
    pointwise_weight,
    row_weight,
    shifted,
    spread_by_phases,
    spreads,
    unfolded_weight,
)

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]

SHIFTED_TAPS = 128  # kernels of more elements than this are not unrolled


# ---- arguments -----------------------------------------------------------------------------------------------------


def spatial(name: str, value: Any, n: int) -> tuple[int, ...]:
    """An int or a list of ints as one int per spatial dimension."""
    found = repeated(value, n)
    if found is None:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the convolution "
            f"dimensions, but got {name}={list(value)}"
        )
    return found


def paddings(
    padding: Any, n: int, stride: tuple[int, ...], dilation: tuple[int, ...], kernel: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """The zeros before and after each spatial dimension."""
    if isinstance(padding, str):
        if padding == "valid":
            return ((0, 0),) * n
        if padding != "same":
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        if any(s != 1 for s in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple([(total // 2, total - total // 2) for total in totals])
    return tuple([(p, p) for p in spatial("padding", padding, n)])


def check_arguments(
    stride: Any, padding: Any, dilation: Any, groups: int, output_padding: Any = (0,)
) -> None:
    if any(p < 0 for pair in padding for p in pair):
        raise RuntimeError("negative padding is not supported")
    if any(p < 0 for p in output_padding):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def check_operands(
    name: str, n: int, shape: tuple[int, ...], x: Any, weight: Any, bias: Any, groups: int, transposed: bool
) -> None:
    """PyTorch's errors for the shapes and dtypes of a (batched) input, a weight and a bias."""
    w = weight.shape
    if weight.ndim != n + 2:
        raise RuntimeError(
            f"Expected {n + 2}-dimensional weight for {n + 2}-dimensional input {list(x.shape)}, but got weight of size "
            f"{list(w)} instead"
        )
    if w[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(w)} instead"
        )
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
            f"[{list(w)}] instead"
        )
    channels = w[0] if transposed else w[1] * groups
    if x.shape[1] != channels:
        how = f"transposed={int(transposed)}" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {how}, weight of size {list(w)}, expected input{list(shape)} to have {channels} channels, but got "
            f"{x.shape[1]} channels instead"
        )
    out = w[1] * groups if transposed else w[0]
    if bias is not None and (bias.ndim != 1 or bias.shape[0] != out):
        how = "transposed=1" if transposed else ""
        given = f"Given {how}, weight" if how else "Given weight"
        raise RuntimeError(
            f"{given} of size {list(w)}, expected bias to be 1-dimensional with {out} elements, but got bias of size "
            f"{list(bias.shape)} instead"
        )
    a, b = dtype_of(x), dtype_of(weight)
    if a is not b:
        raise RuntimeError(f"expected scalar type {a.scalar_name} but found {b.scalar_name}")
    if bias is not None and dtype_of(bias) is not a:
        names = {dtypes.float32: "float", dtypes.float64: "double"}
        left, right = (names.get(d, d.scalar_name) for d in (a, dtype_of(bias)))
        raise RuntimeError(f"Input type ({left}) and bias type ({right}) should be the same")
    if a is dtypes.bool:
        raise checks.not_implemented_for("slow_conv2d_cpu", a)
    if math.prod(w[2:]) == 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kernel size {list(w[2:])}")


def check_output(x: Any, kernel: Sequence[int], padding: Any, dilation: Sequence[int]) -> None:
    padded = [size + low + high for size, (low, high) in zip(x.shape[2:], padding, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if any(r > p for r, p in zip(reach, padded, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
            f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
        )
    if 0 not in x.shape[:2] and 0 in x.shape[2:]:
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}"
        )


# ---- linear programs -----------------------------------------------------------------------------------------------


def is_depthwise(x: Any, weight: Any, groups: int) -> bool:
    return (
        groups == x.shape[1]
        and groups > 1
        and weight.shape[1] == 1
        and math.prod(weight.shape[2:]) <= SHIFTED_TAPS
    )


def correlate(
    x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int, input_dilation: Any = None
) -> Any:
    """The cross-correlation of `(N, C, *)` with `(O, C / groups, *)`."""
    if input_dilation is None and is_depthwise(x, weight, groups):
        return depthwise(x, weight, stride, padding, dilation)
    return lax.conv_general_dilated(
        x,
        weight,
        stride,
        padding,
        lhs_dilation=input_dilation,
        rhs_dilation=dilation,
        feature_group_count=groups,
        precision=convolution_precision(),
    )


def correlate_planes(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """`correlate` of volumes: for every plane of the kernel a convolution of the planes that it meets."""
    batch, channels, _, *sizes = x.shape
    (low, high), step, gap = padding[0], stride[0], dilation[0]
    planes = jnp.swapaxes(x, 1, 2)
    none = (0, 0, 0)
    planes = lax.pad(planes, jnp.zeros((), x.dtype), (none, (low, high, 0), none, none, none))
    depth = (planes.shape[1] - gap * (weight.shape[2] - 1) - 1) // step + 1
    total: Any = None
    for i in range(weight.shape[2]):
        start = i * gap
        met = lax.slice_in_dim(planes, start, start + (depth - 1) * step + 1, step, axis=1)
        images = met.reshape((batch * depth, channels, *sizes))
        term = correlate(images, weight[:, :, i], stride[1:], padding[1:], dilation[1:], groups)
        total = term if total is None else total + term
    return jnp.swapaxes(total.reshape((batch, depth, *total.shape[1:])), 1, 2)


def depthwise(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """A convolution of every channel with kernels of its own, as a sum of shifted products."""
    batch, channels = x.shape[:2]
    multiplier = weight.shape[0] // channels
    kernel = weight.shape[2:]
    taps = weight.reshape((channels, multiplier, math.prod(kernel)))
    total: Any = None
    for index, part in enumerate(shifted(x, kernel, stride, padding, dilation)):
        tap = taps[None, :, :, index]
        term = part[:, :, None] * tap.reshape(tap.shape + (1,) * len(kernel))
        total = term if total is None else total + term
    out = total.shape[3:]
    return total.reshape((batch, channels * multiplier, *out))


def depthwise_transpose(grad: Any, weight: Any, sizes: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """The transpose of `depthwise` in its input: one more depthwise convolution, which is one loop where pads are not."""
    reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    borders = [(0, 0, 0), (0, 0, 0)]
    for size, out, far, step, (low, _) in zip(sizes, grad.shape[2:], reach, stride, padding, strict=True):
        borders.append((far - low, size + low - ((out - 1) * step + 1), step - 1))
    grad = lax.pad(grad, jnp.zeros((), grad.dtype), borders)
    flipped = lax.rev(weight, tuple(range(2, weight.ndim)))
    ones, none = (1,) * len(reach), ((0, 0),) * len(reach)
    return depthwise(grad, flipped, ones, none, dilation)


def transposed_weight(weight: Any, groups: int) -> Any:
    """The weight `(C, O / groups, *)` of a transposed convolution as that of a convolution: `(O, C / groups, *)`."""
    c, o, *kernel = weight.shape
    w = weight.reshape((groups, c // groups, o, *kernel))
    w = jnp.swapaxes(w, 1, 2).reshape((groups * o, c // groups, *kernel))
    return lax.rev(w, tuple(range(2, w.ndim)))


def expand_product(
    x: Any, weight: Any, stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int
) -> Any:
    """The transposed convolution of `(N, C, *)` with `(C, O / groups, *)`."""
    kernel = weight.shape[2:]
    borders = [
        (d * (k - 1) - low, d * (k - 1) - high + extra)
        for d, k, (low, high), extra in zip(dilation, kernel, padding, output_padding, strict=True)
    ]
    ones = (1,) * len(kernel)
    return correlate(x, transposed_weight(weight, groups), ones, borders, dilation, groups, stride)


MOST_PLANES = 16
"""Planes of a kernel up to which volumes are convolved plane by plane on a CPU."""
MOST_GROUPS = 64
"""Groups up to which each is convolved by itself on a CPU: a program has a convolution for every one."""


class Convolution:
    """The arguments of a convolution, resolved; `run` is linear in the input and in the weight."""

    def __init__(
        self,
        n: int,
        weight_shape: Sequence[int],
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int,
        output_padding: Any = None,
    ) -> None:
        self.n = n
        self.groups = groups
        self.transposed = output_padding is not None
        self.stride = spatial("stride", stride, n)
        self.dilation = spatial("dilation", dilation, n)
        self.output_padding = spatial("output_padding", output_padding, n) if self.transposed else (0,) * n
        self.padding = paddings(padding, n, self.stride, self.dilation, weight_shape[2:])

    def run(self, x: Any, weight: Any, planes: bool = False) -> Any:
        # Products of short floats accumulate in float32, as PyTorch's do.
        short = x.dtype.itemsize == 2 and jnp.issubdtype(x.dtype, jnp.floating)
        if x.ndim == self.n + 1:
            return self.run(x[None], weight, planes)[0]
        if short:
            return self.run(x.astype(jnp.float32), weight.astype(jnp.float32), planes).astype(x.dtype)
        if self.transposed:
            return expand_product(
                x, weight, self.stride, self.padding, self.output_padding, self.dilation, self.groups
            )
        if planes:
            return correlate_planes(x, weight, self.stride, self.padding, self.dilation, self.groups)
        return correlate(x, weight, self.stride, self.padding, self.dilation, self.groups)

    def splits(self, shape: Any, weight_shape: Any) -> bool:
        """Whether the groups of `(N, C, *)` may be convolved one by one: few, and not all of one channel."""
        shifts = (
            weight_shape[1] == 1 and self.groups == shape[1] and math.prod(weight_shape[2:]) <= SHIFTED_TAPS
        )
        return (
            1 < self.groups <= MOST_GROUPS
            and len(shape) == self.n + 2
            and 0 not in shape
            and (self.transposed or not shifts)
        )

    def by_groups(self, x: Any, weight: Any) -> Any:
        """`run`, each group by itself."""
        one = copy.copy(self)
        one.groups = 1
        parts = zip(jnp.split(x, self.groups, 1), jnp.split(weight, self.groups, 0), strict=True)
        return jnp.concatenate([one.run(a, w, planes=self.n == 3) for a, w in parts], 1)

    def by_planes(self, x: Any, weight: Any) -> Any:
        """`run` of volumes, as sums of convolutions of their planes."""
        return self.run(x, weight, planes=True)

    def by_columns(self, x: Any, weight: Any) -> Any:
        """`run`, as a product with the unfolded input."""
        return by_columns(x, weight, self.stride, self.padding, self.dilation)

    def has_few_places(self, shape: Any, weight_shape: Any) -> bool:
        """Whether `(N, C, *)` has so few places that unfolding them pays."""
        out = [
            (size + low + high - d * (k - 1) - 1) // s + 1
            for size, k, (low, high), s, d in zip(
                shape[2:], weight_shape[2:], self.padding, self.stride, self.dilation, strict=True
            )
        ]
        return has_few_places(shape[0], shape[2:], out, weight_shape, self.groups)

    def has_planes(self, shape: Any, weight_shape: Any) -> bool:
        """Whether a convolution is one of volumes `(N, C, D, H, W)`, and not done channel by channel or group by group."""
        volumes = self.n == 3 and not self.transposed and len(shape) == 5 and 0 not in shape
        return volumes and self.groups == 1 and weight_shape[2] <= MOST_PLANES

    def pull_input(self, grad: Any, weight: Any, shape: Any) -> Any:
        """The gradient of the input: the transpose of `run` in its first argument."""
        like = jax.ShapeDtypeStruct(tuple(shape), weight.dtype)
        w = jnp.conj(weight)
        if self.alone(shape, weight):
            short = w.dtype.itemsize == 2
            g, w = (a.astype(jnp.float32) if short else a for a in (grad.astype(w.dtype), w))
            pulled = depthwise_transpose(g, w, shape[2:], self.stride, self.padding, self.dilation)
            return pulled.astype(weight.dtype)
        grad = grad.astype(weight.dtype)

        def general(grad: Any, w: Any, run: Any = self.run) -> Any:
            (pulled,) = jax.linear_transpose(lambda x: run(x, w), like)(grad)
            return pulled

        if self.splits(shape, w.shape):
            return on_cpu("grouped convolution", lambda g, w: general(g, w, self.by_groups), general, grad, w)
        products = not self.transposed and len(shape) == self.n + 2 and w.dtype.itemsize > 2 and grad.size
        if products and is_pointwise(shape[2:], w.shape, self.stride, self.padding, self.groups):
            return on_cpu("pointwise convolution", pointwise_input, general, grad, w)
        if products and self.groups == 1 and outgrows(w.shape[2:], grad.shape[2:]):
            return on_cpu(
                "convolution of few places", lambda g, w: general(g, w, self.by_columns), general, grad, w
            )
        if self.has_planes(shape, w.shape):
            return on_cpu(
                "convolution of volumes", lambda g, w: general(g, w, self.by_planes), general, grad, w
            )
        return general(grad, w)

    def alone(self, shape: Any, weight: Any) -> bool:
        """Whether every channel of `(N, C, *)` has one kernel, applied as a sum of shifted products."""
        depthwise = self.groups == shape[1] == weight.shape[0] > 1 and weight.shape[1] == 1
        return (
            not self.transposed
            and len(shape) == self.n + 2
            and depthwise
            and math.prod(weight.shape[2:]) <= SHIFTED_TAPS
        )

    def forward(self, x: Any, weight: Any) -> Any:
        """`run` in the way that the platform is best at."""
        way: Any = None
        kernel = weight.shape[2:]
        if self.splits(x.shape, weight.shape):
            way = "grouped convolution", self.by_groups
        elif not self.transposed and x.ndim == self.n + 2 and x.dtype.itemsize > 2 and x.size:
            if is_pointwise(x.shape[2:], weight.shape, self.stride, self.padding, self.groups):
                way = "pointwise convolution", pointwise
            elif has_few_inputs(x.shape[1], kernel, self.groups):
                way = "convolution of few channels", self.by_columns
            elif self.has_few_places(x.shape, weight.shape):
                way = "convolution of few places", self.by_columns
            elif has_phases(x.shape[2:], weight.shape, self.stride, self.dilation, self.groups):
                way = "strided convolution", lambda x, w: by_phases(x, w, self.stride, self.padding)
        elif self.transposed and x.ndim == self.n + 2 and x.dtype.itemsize > 2 and x.size:
            out = [
                (size - 1) * s + k - low - high + more
                for size, s, k, (low, high), more in zip(
                    x.shape[2:], self.stride, kernel, self.padding, self.output_padding, strict=True
                )
            ]
            if spreads(x.shape, weight.shape, self.stride, self.dilation, self.groups, out):
                way = (
                    "transposed convolution by phases",
                    lambda x, w: spread_by_phases(x, w, self.stride, self.padding, out),
                )
        if way is None and self.has_planes(x.shape, weight.shape):
            way = "convolution of volumes", self.by_planes
        return self.run(x, weight) if way is None else on_cpu(*way, self.run, x, weight)

    def pull_weight(self, grad: Any, x: Any, shape: Any) -> Any:
        """The gradient of the weight: the transpose of `run` in its second argument."""
        grad = grad.astype(x.dtype)
        if self.transposed:
            return jnp.conj(self.adjoint().pull_weight(x, grad, shape))
        if self.splits(x.shape, shape):
            return on_cpu(
                "grouped convolution",
                lambda g, x: self.transpose_weight(g, x, shape, self.by_groups),
                lambda g, x: self.transpose_weight(g, x, shape),
                grad,
                x,
            )

        def general(grad: Any, x: Any) -> Any:
            return self.transpose_weight(grad, x, shape)

        def by_planes(grad: Any, x: Any) -> Any:
            return self.transpose_weight(grad, x, shape, self.by_planes)

        if x.dtype.itemsize <= 2 or x.ndim != self.n + 2 or not x.size:
            if self.has_planes(x.shape, shape):
                return on_cpu("convolution of volumes", by_planes, general, grad, x)
            return general(grad, x)
        if is_pointwise(x.shape[2:], shape, self.stride, self.padding, self.groups):
            return on_cpu(
                "pointwise convolution",
                lambda g, x: pointwise_weight(g, jnp.conj(x), shape),
                general,
                grad,
                x,
            )
        if self.alone(x.shape, jax.ShapeDtypeStruct(tuple(shape), x.dtype)):
            where = self.stride, self.padding, self.dilation
            return on_cpu(
                "depthwise convolution",
                lambda g, x: depthwise_weight(g, jnp.conj(x), shape, *where),
                general,
                grad,
                x,
            )
        if has_few_inputs(x.shape[1], shape[2:], self.groups):
            return on_cpu(
                "convolution of few channels",
                lambda g, x: columns_weight(g, jnp.conj(x), shape, self.stride, self.padding, self.dilation),
                general,
                grad,
                x,
            )
        name = way = None
        if self.groups == 1 and is_row(grad.shape[2:]):
            name, way = "convolution of a row", row_weight
        elif self.has_few_places(x.shape, shape):
            name, way = "convolution of few places", unfolded_weight
        if name is not None and way is not None:
            where = shape, self.stride, self.padding, self.dilation
            return on_cpu(name, lambda g, x: way(g, jnp.conj(x), *where), general, grad, x)
        if self.has_planes(x.shape, shape):
            return on_cpu("convolution of volumes", by_planes, general, grad, x)
        return general(grad, x)

    def adjoint(self) -> Convolution:
        """Of a transposed convolution, the one that it is the transpose of: from its results to its input."""
        one = copy.copy(self)
        one.transposed, one.output_padding = False, (0,) * self.n
        # What only the output's padding reaches meets no weight.
        one.padding = [
            (low, high - more) for (low, high), more in zip(self.padding, self.output_padding, strict=True)
        ]
        return one

    def transpose_weight(self, grad: Any, x: Any, shape: Any, run: Any = None) -> Any:
        run = run or self.run
        like = jax.ShapeDtypeStruct(tuple(shape), x.dtype)
        fixed = jnp.conj(x)
        (pulled,) = jax.linear_transpose(lambda w: run(fixed, w), like)(grad.astype(x.dtype))
        return pulled


def convolve(
    n: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    name = f"conv{n}d"
    check_rank(name, n, input)
    # PyTorch takes the number of spatial dimensions from the weight.
    convolution = Convolution(weight.ndim - 2, weight.shape, stride, padding, dilation, groups)
    check_arguments(convolution.stride, convolution.padding, convolution.dilation, groups)
    x = input if input.ndim == n + 2 else input[None]
    check_operands(name, n, input.shape, x, weight, bias, groups, False)
    check_output(x, weight.shape[2:], convolution.padding, convolution.dilation)
    return with_bias(convolution.forward(input, weight), bias, n)


def convolve_transposed(
    n: int,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Any:
    name = f"conv_transpose{n}d"
    if isinstance(padding, str):
        raise checks.argument_error(name, "padding", 5, "tuple of ints", padding)
    check_rank(name, n, input)
    convolution = Convolution(n, weight.shape, stride, padding, dilation, groups, output_padding)
    check_arguments(
        convolution.stride, convolution.padding, convolution.dilation, groups, convolution.output_padding
    )
    x = input if input.ndim == n + 2 else input[None]
    check_operands(name, n, input.shape, x, weight, bias, groups, True)
    if any(
        o >= s and o >= d
        for o, s, d in zip(convolution.output_padding, convolution.stride, convolution.dilation, strict=True)
    ):
        described = " ".join(
            f"{what}_{axis}: {value}"
            for what, values in (
                ("output_padding", convolution.output_padding),
                ("stride", convolution.stride),
                ("dilation", convolution.dilation),
            )
            for axis, value in zip(
                ("depth", "height", "width")[-max(n, 2) :], (1,) * (n == 1) + values, strict=True
            )
        )
        raise RuntimeError(
            f"output padding must be smaller than either stride or dilation, but got {described}"
        )
    sizes = [
        (size - 1) * s - 2 * p[0] + d * (k - 1) + o + 1
        for size, s, p, d, k, o in zip(
            x.shape[2:],
            convolution.stride,
            convolution.padding,
            convolution.dilation,
            weight.shape[2:],
            convolution.output_padding,
            strict=True,
        )
    ]
    if any(s < 1 for s in sizes):
        raise RuntimeError(
            f"Given input size per channel: ({' x '.join(map(str, x.shape[2:]))}). Calculated output size per channel: "
            f"({' x '.join(map(str, sizes))}). Output size is too small"
        )
    return with_bias(convolution.forward(input, weight), bias, n)


def check_rank(name: str, n: int, input: Any) -> None:
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )


def with_bias(out: Any, bias: Any, n: int) -> Any:
    return out if bias is None else out + bias.reshape(bias.shape + (1,) * n)


def bias_rule(n: int) -> Any:
    def rule(grad: Any) -> Any:
        axes = tuple(d for d in range(grad.ndim) if d != grad.ndim - n - 1)
        return jnp.sum(grad.astype(dtypes.compute_type(dtype_of(grad)).numpy), axis=axes)

    return rule


def rules(n: int) -> dict[str, Any]:
    """The derivative rules of the convolution of `n` dimensions."""

    def input_rule(
        grad: Any, weight: Any, input_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        return Convolution(n, weight.shape, stride, padding, dilation, groups).pull_input(
            grad, weight, input_shape
        )

    def weight_rule(
        grad: Any, input: Any, weight_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        return Convolution(n, weight_shape, stride, padding, dilation, groups).pull_weight(
            grad, input, weight_shape
        )

    return {"input": input_rule, "weight": weight_rule, "bias": bias_rule(n)}


def transposed_rules(n: int) -> dict[str, Any]:
    """The derivative rules of the transposed convolution of `n` dimensions."""

    def input_rule(
        grad: Any,
        weight: Any,
        input_shape: Any,
        stride: Any,
        padding: Any,
        output_padding: Any,
        groups: int,
        dilation: Any,
    ) -> Any:
        convolution = Convolution(n, weight.shape, stride, padding, dilation, groups, output_padding)
        return convolution.pull_input(grad, weight, input_shape)

    def weight_rule(
        grad: Any,
        input: Any,
        weight_shape: Any,
        stride: Any,
        padding: Any,
        output_padding: Any,
        groups: int,
        dilation: Any,
    ) -> Any:
        convolution = Convolution(n, weight_shape, stride, padding, dilation, groups, output_padding)
        return convolution.pull_weight(grad, input, weight_shape)

    return {"input": input_rule, "weight": weight_rule, "bias": bias_rule(n)}


# ---- operators -----------------------------------------------------------------------------------------------------


@general(autocast="short", node="Convolution", derivatives=rules(1), several=True)
def conv1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """The convolution of `(N, C, L)` or `(C, L)` with a weight `(O, C / groups, K)`.

    Shape: result `(N, O, L_out)` or `(O, L_out)` with
    `L_out = (L + 2 * padding - dilation * (K - 1) - 1) // stride + 1`; `bias` `(O)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> F.conv1d(xtensor.tensor([[1.0, 2.0, 3.0, 4.0]]), xtensor.tensor([[[1.0, -1.0]]]))
    tensor([[-1., -1., -1.]])
    """
    return convolve(1, input, weight, bias, stride, padding, dilation, groups)


@general(formats=2, autocast="short", node="Convolution", derivatives=rules(2), several=True)
def conv2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """The convolution of `(N, C, H, W)` or `(C, H, W)` with a weight `(O, C / groups, KH, KW)`.

    Shape: result `(N, O, H_out, W_out)` or `(O, H_out, W_out)` with
    `H_out = (H + 2 * padding - dilation * (KH - 1) - 1) // stride + 1`, and so for W; `bias` `(O)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> F.conv2d(xtensor.zeros(2, 3, 16, 16), xtensor.zeros(8, 3, 3, 3), stride=2, padding=1).shape
    xtensor.Size([2, 8, 8, 8])
    """
    return convolve(2, input, weight, bias, stride, padding, dilation, groups)


@general(formats=2, autocast="short", node="Convolution", derivatives=rules(3), several=True)
def conv3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """The convolution of `(N, C, D, H, W)` or `(C, D, H, W)` with a weight `(O, C / groups, KD, KH, KW)`.

    Shape: `input` `(N, C, D, H, W)`, result `(N, O, D_out, H_out, W_out)`, as of `conv2d` in each dimension.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.
    """
    return convolve(3, input, weight, bias, stride, padding, dilation, groups)


@general(autocast="short", node="Convolution", derivatives=transposed_rules(1))
def conv_transpose1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Array:
    """The transposed convolution of `(N, C, L)` or `(C, L)` with a weight `(C, O / groups, K)`.

    Shape: `input` `(N, C, L)`, result `(N, O, L_out)`, as of `conv_transpose2d` in each dimension.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.
    """
    return convolve_transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@general(formats=2, autocast="short", node="Convolution", derivatives=transposed_rules(2))
def conv_transpose2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Array:
    """The transposed convolution of `(N, C, H, W)` or `(C, H, W)` with a weight `(C, O / groups, KH, KW)`.

    Shape: result `(N, O, H_out, W_out)` or `(O, H_out, W_out)` with
    `H_out = (H - 1) * stride - 2 * padding + dilation * (KH - 1) + output_padding + 1`, and so for W; `bias`
    `(O)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> F.conv_transpose2d(xtensor.zeros(2, 8, 5, 5), xtensor.zeros(8, 3, 2, 2), stride=2).shape
    xtensor.Size([2, 3, 10, 10])
    """
    return convolve_transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@general(formats=2, autocast="short", node="Convolution", derivatives=transposed_rules(3))
def conv_transpose3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Array:
    """The transposed convolution of `(N, C, D, H, W)` or `(C, D, H, W)` with a weight `(C, O / groups, KD, KH, KW)`.

    Shape: `input` `(N, C, D, H, W)`, result `(N, O, D_out, H_out, W_out)`, as of `conv_transpose2d` in each
    dimension.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.
    """
    return convolve_transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


@of_tensors()
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """A convolution over time of `(T, N, C)` with `weight` `(K, C, out)`, `pad` zeros at both ends.

    Shape: `input` `(T, N, C)`, `weight` `(K, C, out)`, `bias` `(out)`, result `(T + 2 * pad - K + 1, N,
    out)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for bool
    tensors.
    """
    if input.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    made = conv1d(input.permute((1, 2, 0)), weight.permute((2, 1, 0)), bias, padding=pad)
    return made.permute((2, 0, 1)).contiguous()
