"""Random tensors. Numbers come from a Generator and are drawn inside compiled kernels (see `draws` and `sampling`).

The seed and the number of the draw are runtime operands, so drawing again compiles nothing. The same seed gives the
same numbers, on every device. Differs from PyTorch: the numbers are not PyTorch's.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ... import checks, devices, dtypes, geometry
from ...lowering.sharded import follow
from ...operators.attach import named
from ...operators.functions.overloads import Unfit, overloads
from ...operators.generator import Generator, pick_generator
from ...operators.options import (
    check_layout,
    finish,
    into_out,
    like_strides,
    pick_device,
    pick_dtype,
    pick_sizes,
    storage_shape,
    storing,
)
from ...tensor import Tensor, sizes_of, wrap, wrap_strided
from . import sampling

__all__ = ["rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"]


@overloads(
    "tuple of ints size, *, Generator generator, Tensor out = None, {options}",
    "tuple of ints size, *, Tensor out = None, {options}",
)
def rand(
    *args: Any,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Uniform numbers in [0, 1), of the sizes given one by one or as a sequence.

    Shape: the sizes given.

    Raises: RuntimeError for negative sizes.

    >>> x = xtensor.rand(1000)
    >>> x.shape, bool((x >= 0).all() and (x < 1).all())
    (xtensor.Size([1000]), True)
    """
    sizes = pick_sizes("rand", args, size)
    return sampling.make(
        "rand", sampling.uniform, sizes, generator, out, dtype, layout, device, requires_grad
    )


@overloads(
    "tuple of ints size, *, Generator generator, Tensor out = None, {options}",
    "tuple of ints size, *, Tensor out = None, {options}",
)
def randn(
    *args: Any,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers of mean 0 and variance 1 (of a complex number: both parts together).

    Shape: the sizes given.

    Raises: RuntimeError for negative sizes.

    >>> xtensor.randn(2, 3).shape
    xtensor.Size([2, 3])
    """
    sizes = pick_sizes("randn", args, size)
    return sampling.make(
        "randn", sampling.standard_normal, sizes, generator, out, dtype, layout, device, requires_grad
    )


RANDINT_OPTIONS = (
    "xtensor.Generator generator = None, Tensor out = None, xtensor.dtype dtype = None, xtensor.layout layout = None, "
    "xtensor.device device = None, bool pin_memory = False, bool requires_grad = False"
)
RANDINT_SIGNATURES = (
    f"int high, tuple of ints size, *, {RANDINT_OPTIONS}",
    f"int low, int high, tuple of ints size, *, {RANDINT_OPTIONS}",
)


@overloads(
    "int high, tuple of ints size, *, Generator generator, Tensor out = None, {options}",
    "int high, tuple of ints size, *, Tensor out = None, {options}",
    "int low, int high, tuple of ints size, *, Generator generator, Tensor out = None, {options}",
    "int low, int high, tuple of ints size, *, Tensor out = None, {options}",
)
def randint(
    *args: Any,
    low: int | None = None,
    high: int | None = None,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Integers in [low, high): `randint(high, size)` or `randint(low, high, size)`; int64 unless a dtype is given.

    Shape: `size`.

    Raises: RuntimeError where there is no integer from `low` to `high`.

    >>> x = xtensor.randint(3, 5, (2, 2))
    >>> x.shape, x.dtype, set(x.flatten().tolist()) <= {3, 4}
    (xtensor.Size([2, 2]), xtensor.int64, True)
    """
    plain = (
        low is high is size is generator is out is dtype is layout is device is None
        and requires_grad is False
        and set(map(type, args[:-1])) == {int}
        and type(args[-1]) is tuple
        and set(map(type, args[-1])) <= {int}
    )
    again = ("randint", *args)
    if plain and (made := sampling.drawn_again(again)) is not None:
        return made
    given = list(args)
    if size is None and given and isinstance(given[-1], (list, tuple)):
        size = given.pop()
    bounds = given if high is None else [*given, high]
    if low is not None:
        bounds = [low, *bounds]
    if size is None or not 1 <= len(bounds) <= 2:
        raise checks.combination_error("randint", args, {}, RANDINT_SIGNATURES)
    bottom, top = bounds if len(bounds) == 2 else (0, bounds[0])
    if type(bottom) is not int or type(top) is not int:
        for name, value in (("low", bottom), ("high", top)):
            if not hasattr(value, "__index__"):
                raise checks.argument_error(
                    "randint", name, len(bounds) if name == "high" else 1, "int", value
                )
    chosen = pick_dtype("randint", out.dtype if dtype is None and out is not None else dtype, dtypes.int64)
    kernel, *numbers = sampling.integer_range(operator.index(bottom), operator.index(top), chosen)
    sizes = pick_sizes("randint", (size,))
    made = sampling.make(
        "randint", kernel, sizes, generator, out, chosen, layout, device, requires_grad, *numbers
    )
    if plain:
        sampling.keep_ahead(again, kernel, made, tuple(numbers))
    return made


@overloads(
    "int n, *, Generator generator, Tensor out = None, {options}",
    "int n, *, Tensor out = None, {options}",
)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = dtypes.int64,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The integers from 0 up to but without `n`, in random order.

    Raises: RuntimeError for a negative `n`.

    >>> xtensor.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
    if not hasattr(n, "__index__"):
        raise checks.argument_error("randperm", "n", 1, "int", n)
    count = operator.index(n)
    sizes = pick_sizes("randperm", (count,))
    if out is not None and dtype is dtypes.int64:
        dtype = None

    dtype, device = into_out("randperm", out, dtype, device)
    chosen = pick_dtype("randperm", dtype, dtypes.int64)
    named = {
        dtypes.float16: (2**11, "2049"),
        dtypes.float32: (2**24, "2^24+1"),
        dtypes.float64: (2**53, "2^53+1"),
    }
    if chosen in named and count > named[chosen][0] + 1:
        raise RuntimeError(f"n cannot be greater than {named[chosen][1]} for {chosen.scalar_name} type.")
    if chosen.is_integral and count > dtypes.iinfo(chosen).max + 1:
        raise RuntimeError(
            f"value cannot be converted to type {dtypes.c_name(chosen, sized=True)} without overflow"
        )
    return sampling.make(
        "randperm", sampling.permutation, sizes, generator, out, chosen, layout, device, requires_grad
    )


def make_like(
    function: str,
    kernel: sampling.Kernel,
    input: Any,
    generator: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
    memory_format: Any,
    *numbers: Any,
) -> Tensor:
    """The body of the `_like` functions: numbers in the order of memory."""
    if not isinstance(input, Tensor):
        raise checks.argument_error(function, "input", 1, "Tensor", input)
    check_layout(function, layout)
    chosen = input.dtype if dtype is None else pick_dtype(function, dtype)
    place = input.device if device is None else pick_device(function, device)
    sampling.check_drawable(kernel, chosen)
    source = pick_generator(function, generator, place)
    sizes, strides = tuple(sizes_of(input)), like_strides(input, memory_format)
    if chosen is dtypes.complex32:
        made = storing.converted(
            wrap(sampling.drawn(kernel, sizes, dtypes.complex64, place, source, *numbers)), chosen
        )
    elif strides is None or strides == geometry.contiguous_strides(sizes):
        made = wrap(sampling.drawn(kernel, sizes, chosen, place, source, *numbers, later=True))
    else:
        array = sampling.drawn(kernel, storage_shape(sizes, strides), chosen, place, source, *numbers)
        made = wrap_strided(array, sizes, strides)
    if place.sharding is not None:
        follow(made._xt_storage, input._xt_storage)
    return finish(function, made, requires_grad)


LIKE = """{numbers} with the sizes, dtype and device of `input`.

Shape: `input` `(*)`, result `(*)`.

Raises: TypeError for arguments of other kinds; NotImplementedError for bool and integer tensors.

>>> xtensor.{name}(xtensor.ones(2, 3)).shape
xtensor.Size([2, 3])"""


def like_of(name: str, kernel: sampling.Kernel, numbers: str) -> Any:
    """A function of random numbers in the form of a tensor."""

    def random_like(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: dtypes.dtype | None = None,
        layout: dtypes.layout | None = None,
        device: devices.DeviceLike = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        memory_format: dtypes.memory_format | None = dtypes.preserve_format,
    ) -> Tensor:
        return make_like(name, kernel, input, generator, dtype, layout, device, requires_grad, memory_format)

    return overloads(
        "Tensor input, *, Generator generator, memory_format memory_format = None, {options}",
        "Tensor input, *, memory_format memory_format = None, {options}",
    )(named(random_like, name, LIKE.format(numbers=numbers, name=name)))


rand_like = like_of("rand_like", sampling.uniform, "Uniform numbers in [0, 1)")
randn_like = like_of("randn_like", sampling.standard_normal, "Standard normal numbers")


@overloads(
    "Tensor input, int low, int high, *, Generator generator, memory_format memory_format = None, {options}",
    "Tensor input, int low, int high, *, memory_format memory_format = None, {options}",
    "Tensor input, Tensor high, *, Generator generator, memory_format memory_format = None, {options}",
    "Tensor input, Tensor high, *, memory_format memory_format = None, {options}",
    "Tensor input, int high, *, Generator generator, memory_format memory_format = None, {options}",
    "Tensor input, int high, *, memory_format memory_format = None, {options}",
)
def randint_like(
    input: Tensor,
    low: int | None = None,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: dtypes.memory_format | None = dtypes.preserve_format,
) -> Tensor:
    """Integers in [low, high), or below `low` if it is alone, with the sizes, dtype and device of `input`.

    Raises: TypeError for arguments of other kinds; RuntimeError for complex and bool tensors.
    """
    ends = [end for end in (low, high) if end is not None]
    if not ends or any(isinstance(end, float) for end in ends):
        raise Unfit
    bottom, top = (0, *ends)[-2:]
    chosen = input.dtype if dtype is None else pick_dtype("randint_like", dtype)
    kernel, *numbers = sampling.integer_range(int(bottom), int(top), chosen)
    return make_like(
        "randint_like",
        kernel,
        input,
        generator,
        chosen,
        layout,
        device,
        requires_grad,
        memory_format,
        *numbers,
    )
