"""Random tensors. Numbers come from a Generator and are drawn inside compiled kernels (see `draws`).

The seed and the number of the draw are runtime operands, so drawing again compiles nothing. The same seed gives the
same numbers, on every device. Differs from PyTorch: the numbers are not PyTorch's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.sharding import SingleDeviceSharding

from .. import checks, devices, dtypes, geometry
from ..engine import anomaly, modes
from ..engine.graph import Node
from ..storage import MetaArray
from ..tensor import Tensor, array_of, edge_of, plain_edge, sizes_of, wrap, wrap_strided
from ..x64 import call
from . import draws
from .conversion import overwrite
from .generator import Generator, pick_generator
from .options import (
    C_NAMES,
    check_layout,
    finish,
    into_out,
    like_strides,
    pick_device,
    pick_dtype,
    pick_sizes,
    python_number,
    storage_shape,
)
from .write import write_out

__all__ = [
    "bernoulli",
    "binomial",
    "multinomial",
    "normal",
    "poisson",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]


# ---- programs ------------------------------------------------------------------------------------------------------


def _real(number: Any, dtype: Any) -> Any:
    """A runtime number in the precision in which a distribution of `dtype` is computed."""
    return lax.convert_element_type(number, np.float64 if np.dtype(dtype) == np.float64 else np.float32)


def _uniform(seed: Any, draw: Any, shape: Any, dtype: Any) -> Any:
    return draws.uniform(seed, draw, shape, dtype)


def _between(seed: Any, draw: Any, shape: Any, dtype: Any, low: Any, high: Any) -> Any:
    low, high = _real(low, dtype), _real(high, dtype)
    if dtype.kind == "c":
        return draws.uniform(seed, draw, shape, dtype) * (high - low) + low
    u = draws.uniform(seed, draw, shape, low.dtype)
    # Rounding may reach the upper bound, which the interval does not have.
    value = (u * (high - low) + low).astype(dtype)
    top = high.astype(dtype)
    return jnp.where((value >= top) & (low < high), low.astype(dtype), value)


def _standard_normal(seed: Any, draw: Any, shape: Any, dtype: Any) -> Any:
    return draws.normal(seed, draw, shape, dtype)


def _normal(seed: Any, draw: Any, shape: Any, dtype: Any, mean: Any, std: Any) -> Any:
    kind = _real(0, dtype).dtype
    if dtype.kind == "c":
        return (draws.normal(seed, draw, shape, dtype) * _real(std, dtype) + _real(mean, dtype)).astype(dtype)
    return (draws.normal(seed, draw, shape, kind) * std.astype(kind) + mean.astype(kind)).astype(dtype)


def _log_normal(seed: Any, draw: Any, shape: Any, dtype: Any, mean: Any, std: Any) -> Any:
    mean, std = _real(mean, dtype), _real(std, dtype)
    return jnp.exp(draws.normal(seed, draw, shape, mean.dtype) * std + mean).astype(dtype)


def _exponential(seed: Any, draw: Any, shape: Any, dtype: Any, rate: Any) -> Any:
    return (draws.exponential(seed, draw, shape, dtype) / _real(rate, dtype)).astype(dtype)


def _cauchy(seed: Any, draw: Any, shape: Any, dtype: Any, median: Any, sigma: Any) -> Any:
    u = draws.inner(seed, draw, shape, dtype)
    return (_real(median, dtype) + _real(sigma, dtype) * jnp.tan((u - 0.5) * math.pi)).astype(dtype)


def _geometric(seed: Any, draw: Any, shape: Any, dtype: Any, p: Any) -> Any:
    wide = np.float64 if np.dtype(dtype).itemsize == 8 else np.float32
    u = draws.inner(seed, draw, shape, wide)
    trials = jnp.ceil(jnp.log(u) / jnp.log1p(-lax.convert_element_type(p, np.float64))).astype(wide)
    return jnp.maximum(trials, 1).astype(dtype)


def _bernoulli(seed: Any, draw: Any, shape: Any, dtype: Any, p: Any) -> Any:
    return draws.below(seed, draw, shape, p, dtype).astype(dtype)


def _integers(seed: Any, draw: Any, shape: Any, dtype: Any, low: Any, span: Any) -> Any:
    return _shifted(draws.bits_below(seed, draw, shape, span, False), low, dtype)


def _wide_integers(seed: Any, draw: Any, shape: Any, dtype: Any, low: Any, span: Any) -> Any:
    return _shifted(draws.bits_below(seed, draw, shape, span, True), low, dtype)


def _shifted(words: Any, low: Any, dtype: Any) -> Any:
    return lax.convert_element_type(words, np.int64).__add__(lax.convert_element_type(low, np.int64)).astype(dtype)


def _permutation(seed: Any, draw: Any, shape: Any, dtype: Any) -> Any:
    return draws.permutation(seed, draw, shape[0]).astype(dtype)


Kernel = Callable[..., Any]


@lru_cache(maxsize=2048)
def program(kernel: Kernel, shape: tuple[int, ...], dtype: dtypes.dtype, place: devices.device) -> Any:
    """A kernel for one shape, dtype and device as a jitted function of seed, draw and numbers."""

    def run(seed: Any, draw: Any, *numbers: Any) -> Any:
        values = [lax.convert_element_type(n, np.result_type(n)) for n in numbers]
        return kernel(seed, draw, shape, dtype.numpy, *values)

    run.__name__ = kernel.__name__.strip("_")
    return jax.jit(run, out_shardings=SingleDeviceSharding(devices.jax_device(place)))


def drawn(
    kernel: Kernel,
    shape: tuple[int, ...],
    dtype: dtypes.dtype,
    place: devices.device,
    generator: Generator,
    *numbers: Any,
) -> Any:
    """An array of random numbers."""
    if place.type == "meta":
        return MetaArray(shape, dtype.numpy)
    seed, draw = generator.next_draw()
    return call(program(kernel, shape, dtype, place), seed, draw, *numbers)


def check_float(name: str, dtype: dtypes.dtype) -> None:
    if not (dtype.is_floating_point or dtype.is_complex) or dtype in dtypes.FLOAT8:
        raise checks.not_implemented_for(name, dtype)


# ---- rand, randn, randint, randperm --------------------------------------------------------------------------------


def make(
    function: str,
    kernel: Kernel,
    sizes: tuple[int, ...],
    generator: Any,
    out: Tensor | None,
    dtype: Any,
    default: dtypes.dtype | None,
    layout: Any,
    device: Any,
    requires_grad: Any,
    check: Callable[[dtypes.dtype], None],
    *numbers: Any,
) -> Tensor:
    """The body of the functions that take sizes."""
    if layout is not None:
        check_layout(function, layout)
    if out is not None:
        dtype, device = into_out(function, out, dtype, device)
    chosen, place = pick_dtype(function, dtype, default), pick_device(function, device)
    check(chosen)
    source = pick_generator(function, generator, place)
    made = wrap(drawn(kernel, sizes, chosen, place, source, *numbers))
    if out is not None:
        write_out(function, out, made, [])
        return out
    return made if requires_grad is False else finish(function, made, requires_grad)


def _check_uniform(dtype: dtypes.dtype) -> None:
    check_float("check_uniform_bounds", dtype)


def _check_normal(dtype: dtypes.dtype) -> None:
    check_float("normal_kernel_cpu", dtype)


def _no_check(dtype: dtypes.dtype) -> None:
    pass


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
    """Uniform numbers in [0, 1), of the sizes given one by one or as a sequence."""
    sizes = pick_sizes("rand", args, size)
    return make(
        "rand", _uniform, sizes, generator, out, dtype, None, layout, device, requires_grad, _check_uniform
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
    """Normal numbers of mean 0 and variance 1 (of a complex number: both parts together)."""
    sizes = pick_sizes("randn", args, size)
    return make(
        "randn", _standard_normal, sizes, generator, out, dtype, None, layout, device, requires_grad, _check_normal
    )


_INT_NAMES = {
    dtypes.bool: "bool",
    dtypes.uint8: "unsigned char",
    dtypes.int8: "signed char",
    dtypes.int16: "short",
    dtypes.int64: "long",
    dtypes.uint16: "unsigned short",
    dtypes.uint32: "unsigned int",
    dtypes.uint64: "unsigned long",
}


def integer_range(low: int, high: int, dtype: dtypes.dtype) -> tuple[Kernel, int, int]:
    """The kernel for integers in [low, high) of a dtype, and its operands; RuntimeError where there are none."""
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if dtype.is_floating_point:
        least, most = -(2**63), 2**63
    elif dtype is dtypes.bool:
        least, most = 0, 1
    else:
        limits = dtypes.iinfo(dtype)
        least, most = limits.min, limits.max
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {_INT_NAMES.get(dtype, C_NAMES.get(dtype, dtype.name))}")
    span = high - low
    return (_wide_integers if span > 2**32 else _integers), signed(low), signed(span)


def signed(value: int) -> int:
    """A 64-bit integer as a signed one."""
    value %= 2**64
    return value - 2**64 if value >= 2**63 else value


RANDINT_OPTIONS = (
    "torch.Generator generator = None, Tensor out = None, xtensor.dtype dtype = None, xtensor.layout layout = None, "
    "xtensor.device device = None, bool pin_memory = False, bool requires_grad = False"
).replace("torch.", "xtensor.")
RANDINT_SIGNATURES = (
    f"int high, tuple of ints size, *, {RANDINT_OPTIONS}",
    f"int low, int high, tuple of ints size, *, {RANDINT_OPTIONS}",
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
    """Integers in [low, high): `randint(high, size)` or `randint(low, high, size)`; int64 unless a dtype is given."""
    given = list(args)
    if size is None and given and isinstance(given[-1], (list, tuple)):
        size = given.pop()
    bounds = given if high is None else [*given, high]
    if low is not None:
        bounds = [low, *bounds]
    if size is None or not 1 <= len(bounds) <= 2:
        raise checks.combination_error("randint", args, {}, RANDINT_SIGNATURES)
    bottom, top = bounds if len(bounds) == 2 else (0, bounds[0])
    for name, value in (("low", bottom), ("high", top)):
        if not hasattr(value, "__index__"):
            raise checks.argument_error("randint", name, len(bounds) if name == "high" else 1, "int", value)
    chosen = pick_dtype("randint", out.dtype if dtype is None and out is not None else dtype, dtypes.int64)
    kernel, *numbers = integer_range(operator.index(bottom), operator.index(top), chosen)
    sizes = pick_sizes("randint", (size,))
    return make(
        "randint", kernel, sizes, generator, out, chosen, None, layout, device, requires_grad, _no_check, *numbers
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
    """The integers from 0 up to but without `n`, in random order."""
    if not hasattr(n, "__index__"):
        raise checks.argument_error("randperm", "n", 1, "int", n)
    count = operator.index(n)
    sizes = pick_sizes("randperm", (count,))
    if out is not None and dtype is dtypes.int64:
        dtype = None

    def check(chosen: dtypes.dtype) -> None:
        limit = dtypes.iinfo(chosen).max if chosen.is_integral else 2**53
        if count > limit:
            raise RuntimeError(f"value cannot be converted to type {C_NAMES[chosen]} without overflow")

    return make(
        "randperm", _permutation, sizes, generator, out, dtype, dtypes.int64, layout, device, requires_grad, check
    )


def make_like(
    function: str,
    kernel: Kernel,
    input: Any,
    generator: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
    memory_format: Any,
    check: Callable[[dtypes.dtype], None],
    *numbers: Any,
) -> Tensor:
    """The body of the `_like` functions: numbers in the order of memory."""
    if not isinstance(input, Tensor):
        raise checks.argument_error(function, "input", 1, "Tensor", input)
    check_layout(function, layout)
    chosen = input.dtype if dtype is None else pick_dtype(function, dtype)
    place = input.device if device is None else pick_device(function, device)
    check(chosen)
    source = pick_generator(function, generator, place)
    sizes, strides = tuple(sizes_of(input)), like_strides(input, memory_format)
    if strides is None or strides == geometry.contiguous_strides(sizes):
        made = wrap(drawn(kernel, sizes, chosen, place, source, *numbers))
    else:
        array = drawn(kernel, storage_shape(sizes, strides), chosen, place, source, *numbers)
        made = wrap_strided(array, sizes, strides)
    return finish(function, made, requires_grad)


def rand_like(
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
    """Uniform numbers in [0, 1) with the sizes, dtype and device of `input`."""
    return make_like(
        "rand_like",
        _uniform,
        input,
        generator,
        dtype,
        layout,
        device,
        requires_grad,
        memory_format,
        _check_uniform,
    )


def randn_like(
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
    """Standard normal numbers with the sizes, dtype and device of `input`."""
    return make_like(
        "randn_like",
        _standard_normal,
        input,
        generator,
        dtype,
        layout,
        device,
        requires_grad,
        memory_format,
        _check_normal,
    )


def randint_like(
    input: Tensor,
    low: int,
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
    """Integers in [low, high), or below `low` if it is alone, with the sizes, dtype and device of `input`."""
    bottom, top = (0, low) if high is None else (low, high)
    chosen = input.dtype if dtype is None else pick_dtype("randint_like", dtype)
    kernel, *numbers = integer_range(int(bottom), int(top), chosen)
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
        _no_check,
        *numbers,
    )


# ---- distributions with tensors for parameters ---------------------------------------------------------------------


class SampleNode(Node):
    """The node of a sample: its parameters get gradients of zero."""

    __slots__ = ("aval", "inputs", "title")
    aval: Any
    inputs: Any
    title: str

    @property
    def input_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def name(self) -> str:
        return self.title

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        (grad,) = grads
        if grad is None:
            return (None,) * len(self.edges)
        return tuple(
            [
                None if e is None else grad.new_zeros(aval.shape, dtype=dtypes.FROM_NUMPY[np.dtype(aval.dtype)])
                for e, aval in zip(self.edges, self.inputs, strict=True)
            ]
        )


def record(made: Tensor, title: str, inputs: Sequence[Any]) -> Tensor:
    if modes.state.mode & modes.NO_GRAD:
        return made
    tensors = [t for t in inputs if isinstance(t, Tensor)]
    edges = [edge_of(t) for t in tensors]
    if any(e is not None for e in edges):
        node = SampleNode(tuple([plain_edge(e) for e in edges]))
        node.title = title
        node.aval = ShapedArray(tuple(sizes_of(made)), made.dtype.numpy)
        node.inputs = [ShapedArray(tuple(sizes_of(t)), t.dtype.numpy) for t in tensors]
        made._edge = (node, 0)
        if modes.state.mode & modes.ANOMALY:
            anomaly.record(node)
    return made


def holds(flag: Any) -> bool:
    """Whether a check computed with the sample came out true; only the CPU's results are waited for."""
    if isinstance(flag, jax.core.Tracer) or next(iter(flag.devices())).platform != "cpu":
        return True
    return bool(flag)


@lru_cache(maxsize=256)
def tensor_program(kernel: Kernel, *static: Any) -> Any:
    def run(seed: Any, draw: Any, *values: Any) -> Any:
        return kernel(seed, draw, *values, *static)

    run.__name__ = kernel.__name__.strip("_")
    return jax.jit(run)


def sample(function: str, kernel: Kernel, tensors: Sequence[Any], generator: Any, *static: Any) -> tuple[Any, Any]:
    """Run a kernel of tensors (and numbers): the sample and whether its parameters were good."""
    first = next(t for t in tensors if isinstance(t, Tensor))
    checks.check_same_device(function, [t for t in tensors if isinstance(t, Tensor)])
    source = pick_generator(function, generator, first.device)
    arrays = [array_of(t) if isinstance(t, Tensor) else t for t in tensors]
    if first.device.type == "meta":
        shape = geometry.broadcast_shapes(*[tuple(sizes_of(t)) for t in tensors if isinstance(t, Tensor)])
        return MetaArray(shape, first.dtype.numpy), None
    seed, draw = source.next_draw()
    return call(tensor_program(kernel, *static), seed, draw, *arrays)


def _bernoulli_of(seed: Any, draw: Any, p: Any, shape: Any, dtype: Any) -> Any:
    good = jnp.all((p >= 0) & (p <= 1))
    return draws.below(seed, draw, shape, jnp.broadcast_to(p, shape), p.dtype).astype(dtype), good


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Ones with the probabilities in `input` (or `p` everywhere) and zeros, in the dtype of `input`."""
    if not isinstance(input, Tensor):
        raise checks.argument_error("bernoulli", "input", 1, "Tensor", input)
    if p is not None:
        check_probability(p)
        source = pick_generator("bernoulli", generator, input.device)
        array = drawn(_bernoulli, tuple(sizes_of(input)), input.dtype, input.device, source, float(p))
        return wrap(array)
    check_float("bernoulli_tensor_cpu_p_", input.dtype)
    shape = tuple(sizes_of(input))
    array, good = sample("bernoulli", _bernoulli_of, [input], generator, shape, input.dtype.numpy)
    check_probabilities(good)
    made = wrap(array)
    if out is not None:
        write_out("bernoulli", out, made, [])
        return out
    return record(made, "BernoulliBackward0", [input])


def check_probability(p: Any) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def check_probabilities(good: Any) -> None:
    if good is not None and not holds(good):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, "
            "please report an enhancement request to PyTorch.)"
        )


def _poisson_of(seed: Any, draw: Any, rate: Any) -> Any:
    wide = rate.astype(np.float64 if rate.dtype == np.float64 else np.float32)
    return draws.poisson(seed, draw, wide).astype(rate.dtype), jnp.all(rate >= 0)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers with the rates in `input`, in its dtype."""
    if not isinstance(input, Tensor):
        raise checks.argument_error("poisson", "input", 1, "Tensor", input)
    check_float("poisson_cpu", input.dtype)
    array, good = sample("poisson", _poisson_of, [input], generator)
    if good is not None and not holds(good):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return record(wrap(array), "PoissonBackward0", [input])


def _binomial_of(seed: Any, draw: Any, count: Any, prob: Any) -> Any:
    wide = np.float64 if count.dtype == np.float64 else np.float32
    key = jax.random.wrap_key_data(jnp.stack(draws.draw_key(seed, draw)), impl="threefry2x32")
    n, p = jnp.broadcast_arrays(count.astype(wide), prob.astype(wide))
    good = jnp.all((n >= 0) & (p >= 0) & (p <= 1))
    return jax.random.binomial(key, n, p, dtype=wide).astype(count.dtype), good


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`."""
    check_float("binomial_cpu", count.dtype)
    if prob.dtype is not count.dtype:
        raise RuntimeError(
            f"Found dtype {prob.dtype.scalar_name} but expected {count.dtype.scalar_name}"
        )
    array, good = sample("binomial", _binomial_of, [count, prob], generator)
    if good is not None and not holds(good):
        raise RuntimeError("invalid binomial count or probability")
    return record(wrap(array), "BinomialBackward0", [count, prob])


def _normal_of(seed: Any, draw: Any, mean: Any, std: Any, dtype: Any) -> Any:
    shape = geometry.broadcast_shapes(jnp.shape(mean), jnp.shape(std))
    good = jnp.all(jnp.asarray(std) >= 0)
    complexes = dtype.kind == "c"
    kind = dtype if complexes else _real(0, dtype).dtype
    unit = draws.normal(seed, draw, shape, kind)
    return (unit * lax.convert_element_type(std, kind) + lax.convert_element_type(mean, kind)).astype(dtype), good


NORMAL_SIGNATURES = (
    "Tensor mean, Tensor std, *, xtensor.Generator generator = None, Tensor out = None",
    "Tensor mean, float std = 1, *, xtensor.Generator generator = None, Tensor out = None",
    "float mean, Tensor std, *, xtensor.Generator generator = None, Tensor out = None",
    "float mean, float std, tuple of ints size, *, xtensor.Generator generator = None, Tensor out = None, "
    "xtensor.dtype dtype = None, xtensor.layout layout = None, xtensor.device device = None, "
    "bool pin_memory = False, bool requires_grad = False",
)


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Normal numbers with the means and standard deviations given, as tensors (broadcast) or, with `size`, numbers."""
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors:
        if size is None:
            raise checks.combination_error("normal", (mean, std), {}, NORMAL_SIGNATURES)
        check_std(std)
        return make(
            "normal",
            _normal,
            pick_sizes("normal", (size,)),
            generator,
            out,
            dtype,
            None,
            layout,
            device,
            requires_grad,
            _check_normal,
            float(mean),
            float(std),
        )
    if isinstance(std, Tensor):
        if std.dtype.is_complex:
            raise RuntimeError("normal expects standard deviation to be non-complex")
    else:
        check_std(std)
    chosen = mean.dtype if isinstance(mean, Tensor) else std.dtype
    _check_normal(chosen)
    if isinstance(mean, Tensor) and isinstance(std, Tensor):
        geometry.broadcast_shapes(tuple(sizes_of(mean)), tuple(sizes_of(std)))
    array, good = sample("normal", _normal_of, [_loose(mean), _loose(std)], generator, chosen.numpy)
    if good is not None and isinstance(std, Tensor) and not holds(good):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    made = wrap(array)
    if out is not None:
        write_out("normal", out, made, [])
        return out
    kind = 3 if len(tensors) == 2 else 1 if isinstance(mean, Tensor) else 2
    return record(made, f"NormalBackward{kind}", tensors)


def _loose(value: Any) -> Any:
    return value if isinstance(value, Tensor) else float(value)


def check_std(std: Any) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


def _multinomial_of(seed: Any, draw: Any, weights: Any, count: int, replacement: bool) -> Any:
    p = weights.astype(np.float64 if weights.dtype == np.float64 else np.float32)
    good = jnp.all(jnp.isfinite(p) & (p >= 0))
    filled = jnp.all(jnp.sum(p, axis=-1) > 0)
    if count == 1 or not replacement:
        # The order of p / exponential is the order of a sample without replacement.
        scores = p / draws.exponential(seed, draw, p.shape, p.dtype)
        if count == 1:
            return jnp.argmax(scores, axis=-1, keepdims=True).astype(np.int64), good, filled
        return lax.top_k(scores, count)[1].astype(np.int64), good, filled
    sums = jnp.cumsum(p, axis=-1)
    u = draws.uniform(seed, draw, (*p.shape[:-1], count), p.dtype) * sums[..., -1:]
    find = jnp.vectorize(lambda s, v: jnp.searchsorted(s, v, side="right"), signature="(k),(n)->(n)")
    last = p.shape[-1] - 1 - jnp.argmax(jnp.flip(p > 0, -1), axis=-1, keepdims=True)
    return jnp.minimum(find(sums, u), last).astype(np.int64), good, filled


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Indices into each row of `input` (of one or two dimensions), drawn with probabilities in proportion to it."""
    if not isinstance(input, Tensor):
        raise checks.argument_error("multinomial", "input", 1, "Tensor", input)
    if not 1 <= input.dim() <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {input.dtype.scalar_name}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if input.is_meta:
        made = wrap(MetaArray((*tuple(sizes_of(input))[:-1], num_samples), np.dtype(np.int64)))
    else:
        source = pick_generator("multinomial", generator, input.device)
        seed, draw = source.next_draw()
        run = tensor_program(_multinomial_of, int(num_samples), bool(replacement))
        array, good, filled = call(run, seed, draw, array_of(input))
        if not holds(good):
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        if not holds(filled):
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        made = wrap(array)
    if out is not None:
        write_out("multinomial", out, made, [input])
        return out
    return made


# ---- in place ------------------------------------------------------------------------------------------------------


def refill(
    self: Tensor, function: str, title: str, generator: Any, kernel: Kernel, *numbers: Any
) -> Tensor:
    """Replace all values of a tensor by random ones."""
    source = pick_generator(function, generator, self.device)
    return overwrite(
        self,
        function,
        title,
        lambda: drawn(kernel, tuple(sizes_of(self)), self.dtype, self.device, source, *numbers),
    )


def number(function: str, name: str, position: int, value: Any) -> float:
    return float(python_number(function, name, position, value))  # type: ignore[arg-type]


def uniform_(self: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with uniform numbers in [from, to)."""
    if "from" in named:
        from_ = named.pop("from")
    if named:
        raise checks.unexpected_error("uniform_", next(iter(named)))
    check_float("check_uniform_bounds", self.dtype)
    if from_ == 0 and to == 1:
        return refill(self, "uniform_", "UniformBackward0", generator, _uniform)
    low, high = number("uniform_", "from", 1, from_), number("uniform_", "to", 2, to)
    limit = dtypes.finfo(self.dtype).max
    for name, value in (("from", low), ("to", high)):
        if not -limit <= value <= limit:
            raise RuntimeError(f"{name} is out of bounds for {C_NAMES[self.dtype]}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    return refill(self, "uniform_", "UniformBackward0", generator, _between, low, high)


def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers."""
    middle, width = number("normal_", "mean", 1, mean), number("normal_", "std", 2, std)
    check_std(width)
    check_float("normal_kernel_cpu", self.dtype)
    if middle == 0 and width == 1:
        return refill(self, "normal_", "NormalBackward0", generator, _standard_normal)
    return refill(self, "normal_", "NormalBackward0", generator, _normal, middle, width)


def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponential numbers of rate `lambd`."""
    if not self.dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {self.dtype.scalar_name}"
        )
    rate = number("exponential_", "lambd", 1, lambd)
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    return refill(self, "exponential_", "ExponentialBackward0", generator, _exponential, rate)


def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of a Cauchy distribution."""
    if not self.dtype.is_floating_point:
        names = {dtypes.int64: "long int", dtypes.int32: "int", dtypes.bool: "bool"}
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {names.get(self.dtype, self.dtype.scalar_name)}"
        )
    middle, width = number("cauchy_", "median", 1, median), number("cauchy_", "sigma", 2, sigma)
    if not width > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={width:g}")
    return refill(self, "cauchy_", "CauchyBackward0", generator, _cauchy, middle, width)


def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithms are normal with `mean` and `std`."""
    middle, width = number("log_normal_", "mean", 1, mean), number("log_normal_", "std", 2, std)
    if not width > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={width:g}")
    check_float("log_normal_cpu", self.dtype)
    return refill(self, "log_normal_", "LogNormalBackward0", generator, _log_normal, middle, width)


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the numbers of trials until the first success, of probability `p`."""
    chance = number("geometric_", "p", 1, p)
    if not 0 < chance < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={chance:g}")
    if self.dtype.is_complex:
        raise checks.not_implemented_for("geometric_cpu", self.dtype)
    return refill(self, "geometric_", "GeometricBackward0", generator, _geometric, chance)


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones, of probability `p` (a number, or a tensor of them), and zeros."""
    if not isinstance(p, Tensor):
        chance = number("bernoulli_", "p", 1, p)
        check_probability(chance)
        return refill(self, "bernoulli_", "BernoulliBackward2", generator, _bernoulli, chance)
    shape = tuple(sizes_of(self))
    probabilities = p.expand(shape)
    check_float("bernoulli_tensor_cpu_p_", p.dtype)
    array, good = sample("bernoulli_", _bernoulli_of, [probabilities], generator, shape, self.dtype.numpy)
    check_probabilities(good)
    return overwrite(self, "bernoulli_", "BernoulliBackward1", lambda: array)


def random_(
    self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None, **named: Any
) -> Tensor:
    """Fill with integers in [from, to), or [0, to) if one is given, or all that the dtype holds exactly from 0 on."""
    if "from" in named:
        from_ = named.pop("from")
    if named:
        raise checks.unexpected_error("random_", next(iter(named)))
    top = most(self.dtype)
    if from_ is None and to is None:
        bounds, title = (0, top + 1), "RandomBackward2"
    elif to is None and not named:
        bounds, title = (0, int(from_)), "RandomBackward1"  # type: ignore[arg-type]
    else:
        bounds, title = (int(from_ or 0), int(to)), "RandomBackward0"  # type: ignore[arg-type]
    kernel, *numbers = integer_range(*bounds, self.dtype)
    return refill(self, "random_", title, generator, kernel, *numbers)


def most(dtype: dtypes.dtype) -> int:
    """The largest integer that `random_()` gives."""
    if dtype is dtypes.bool:
        return 1
    if dtype.is_floating_point:
        return 1 << draws.MANTISSA.get(dtype.name, 4)
    return dtypes.iinfo(dtype).max if dtype.is_integral else 0


METHODS: dict[str, Any] = {
    "bernoulli": bernoulli,
    "bernoulli_": bernoulli_,
    "cauchy_": cauchy_,
    "exponential_": exponential_,
    "geometric_": geometric_,
    "log_normal_": log_normal_,
    "multinomial": multinomial,
    "normal_": normal_,
    "random_": random_,
    "uniform_": uniform_,
}
