"""Samples of distributions whose parameters are tensors, and the methods that fill a tensor with random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray, Tracer

from ... import checks, devices, dtypes, geometry
from ...engine.graph import Node
from ...operators.attach import attach_methods
from ...operators.functions.overloads import of_tensors, overloads, unfit_call
from ...operators.generator import Generator, pick_generator
from ...operators.index_bounds import later
from ...operators.options import into_out, pick_sizes, python_number
from ...operators.recording import edges_to, recorded
from ...operators.write import check_writable, write_out
from ...storage import MetaArray
from ...tensor import Tensor, array_of, sizes_of, wrap
from ...xla.cache import bounded
from ...xla.x64 import call, jit
from ..tensor.conversion import overwrite
from . import draws, poisson_draws, sampling

__all__ = ["bernoulli", "binomial", "multinomial", "normal", "poisson"]


# ---- samples -------------------------------------------------------------------------------------------------------


class SampleNode(Node):
    """The node of a sample: its parameters get gradients of zero."""

    __slots__ = ("aval", "inputs", "title")
    aval: Any
    inputs: Any
    title: str

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def name(self) -> str:
        return self.title

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        (grad,) = grads
        if grad is None:
            return (None,) * len(self._xt_edges)
        return tuple(
            [
                None
                if e is None
                else grad.new_zeros(aval.shape, dtype=dtypes.FROM_NUMPY[np.dtype(aval.dtype)])
                for e, aval in zip(self._xt_edges, self.inputs, strict=True)
            ]
        )


def record(made: Tensor, title: str, inputs: Sequence[Any]) -> Tensor:
    tensors = [t for t in inputs if isinstance(t, Tensor)]
    if (edges := edges_to(tensors)) is None:
        return made
    node = SampleNode(edges)
    node.title = title
    node.aval = ShapedArray(tuple(sizes_of(made)), made.dtype.numpy)
    node.inputs = [ShapedArray(tuple(sizes_of(t)), t.dtype.numpy) for t in tensors]
    return recorded(made, node)


def holds(flag: Any) -> bool:
    """Whether a check computed with the sample came out true; only the CPU's results are waited for."""
    if isinstance(flag, Tracer):
        later(flag, holds)
        return True
    if next(iter(flag.devices())).platform != "cpu":
        return True
    return bool(flag)


@bounded(256)
def tensor_program(kernel: sampling.Kernel, *static: Any) -> Any:
    def run(*values: Any) -> Any:
        return kernel(*values, *static)

    run.__name__ = kernel.__name__.strip("_")
    return jit(run)


def sample(
    function: str, kernel: sampling.Kernel, tensors: Sequence[Any], generator: Any, *static: Any
) -> tuple[Any, Any]:
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


def tossed(function: str, p: Tensor, generator: Any, shape: tuple[int, ...], dtype: Any) -> tuple[Any, Any]:
    """Ones with probabilities and zeros, and whether the probabilities are good; random numbers of all shapes have few programs."""
    if p.is_meta:
        return MetaArray(shape, dtype), None
    source = pick_generator(function, generator, p.device)
    kind = dtypes.float64 if p.dtype is dtypes.float64 else dtypes.uint32
    words = sampling.drawn(sampling.words, shape, kind, p.device, source)
    return call(tensor_program(_bernoulli_of, dtype), words, array_of(p))


def _bernoulli_of(words: Any, p: Any, dtype: Any) -> Any:
    good = jnp.all((p >= 0) & (p <= 1))
    return draws.under(words, jnp.broadcast_to(p, words.shape)).astype(dtype), good


@overloads(
    "Tensor input, *, Generator generator = None, Tensor out = None",
    "Tensor input, float p, *, Generator generator = None",
)
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Ones with the probabilities in `input` (or `p` everywhere) and zeros, in the dtype of `input`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for bool and integer tensors.

    >>> xtensor.bernoulli(xtensor.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("bernoulli", "input", 1, "Tensor", input)
    if p is not None:
        check_probability(p)
        source = pick_generator("bernoulli", generator, input.device)
        array = sampling.drawn(
            sampling.coins, tuple(sizes_of(input)), input.dtype, input.device, source, float(p)
        )
        return wrap(array)
    sampling.check_float("bernoulli_tensor_cpu_p_", input.dtype)
    shape = tuple(sizes_of(input))
    kind = input.dtype if out is None else into_out("bernoulli", out, None, None)[0]
    array, good = tossed("bernoulli", input, generator, shape, kind.numpy)
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
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If "
            "so, please report an enhancement request to PyTorch.)"
        )


def _poisson_of(seed: Any, draw: Any, rate: Any) -> Any:
    return poisson_draws.poisson(seed, draw, rate).astype(rate.dtype), jnp.all(rate >= 0)


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers with the rates in `input`, in its dtype.

    Raises: TypeError for arguments of other kinds; NotImplementedError for bool and integer tensors.
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("poisson", "input", 1, "Tensor", input)
    sampling.check_float("poisson_cpu", input.dtype)
    array, good = sample("poisson", _poisson_of, [input], generator)
    if good is not None and not holds(good):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return record(wrap(array), "PoissonBackward0", [input])


def _binomial_of(seed: Any, draw: Any, count: Any, prob: Any) -> Any:
    wide = np.float64 if count.dtype == np.float64 else np.float32
    n, p = jnp.broadcast_arrays(count.astype(wide), prob.astype(wide))
    good = jnp.all((n >= 0) & (p >= 0) & (p <= 1))
    return _binomial_drawn(seed, draw, n, p).astype(count.dtype), good


@draws.at_once
def _binomial_drawn(seed: Any, draw: Any, n: Any, p: Any) -> Any:
    key = jax.random.wrap_key_data(jnp.stack(draws.draw_key(seed, draw)), impl="threefry2x32")
    return jax.random.binomial(key, n, p, dtype=n.dtype)


@of_tensors()
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials succeed, each with probability `prob`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for bool
    and integer tensors.
    """
    sampling.check_float("binomial_cpu", count.dtype)
    if prob.dtype is not count.dtype:
        raise RuntimeError(f"Found dtype {prob.dtype.scalar_name} but expected {count.dtype.scalar_name}")
    geometry.broadcast_shapes(count.shape, prob.shape)  # refuses in our words
    array, good = sample("binomial", _binomial_of, [count, prob], generator)
    if good is not None and not holds(good):
        raise RuntimeError("invalid binomial count or probability")
    return record(wrap(array), "BinomialBackward0", [count, prob])


def _normal_of(seed: Any, draw: Any, mean: Any, std: Any, dtype: Any) -> Any:
    shape = geometry.broadcast_shapes(jnp.shape(mean), jnp.shape(std))
    good = jnp.all(jnp.asarray(std) >= 0)
    complexes = dtype.kind == "c"
    kind = dtype if complexes else sampling.precise(0, dtype).dtype
    unit = draws.normal(seed, draw, shape, kind)
    # As in reverse mode nothing is followed through a draw: `distributions.Normal.rsample` is there for that.
    mean, std = lax.stop_gradient(mean), lax.stop_gradient(std)
    return (unit * lax.convert_element_type(std, kind) + lax.convert_element_type(mean, kind)).astype(
        dtype
    ), good


NORMAL_SIGNATURES = (
    "Tensor mean, Tensor std, *, Generator generator = None, Tensor out = None",
    "Tensor mean, float std = 1, *, Generator generator = None, Tensor out = None",
    "float mean, Tensor std, *, Generator generator = None, Tensor out = None",
    "float mean, float std, tuple of ints size, *, Generator generator = None, Tensor out = None, {options}",
)


@overloads(*NORMAL_SIGNATURES)
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
    """Normal numbers with the means and standard deviations given, as tensors (broadcast) or, with `size`, numbers.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool and integer tensors;
    RuntimeError for complex tensors.

    >>> xtensor.normal(0.0, 1.0, (2, 3)).shape
    xtensor.Size([2, 3])
    """
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors:
        if size is None:
            raise unfit_call("normal", (mean, std), {}, NORMAL_SIGNATURES)
        check_std(std)
        sizes, numbers = pick_sizes("normal", (size,)), (float(mean), float(std))
        kernel = sampling.shifted_normal
        return sampling.make(
            "normal", kernel, sizes, generator, out, dtype, layout, device, requires_grad, *numbers
        )
    if isinstance(std, Tensor):
        if std.dtype.is_complex:
            raise RuntimeError("normal expects standard deviation to be non-complex")
    else:
        check_std(std)
    chosen = mean.dtype if isinstance(mean, Tensor) else std.dtype
    sampling.check_drawable(sampling.standard_normal, chosen)
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


def _multinomial_of(numbers: Any, weights: Any, count: int, replacement: bool) -> Any:
    p = weights.astype(numbers.dtype)
    good = jnp.all(jnp.isfinite(p) & (p >= 0))
    filled = jnp.all(jnp.sum(p, axis=-1) > 0)
    if count == 1 or not replacement:
        # The order of p / exponential is the order of a sample without replacement.
        scores = p / numbers
        if count == 1:
            return jnp.argmax(scores, axis=-1, keepdims=True).astype(np.int64), good, filled
        return lax.top_k(scores, count)[1].astype(np.int64), good, filled
    sums = jnp.cumsum(p, axis=-1)
    u = numbers * sums[..., -1:]
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
    """Indices into each row of `input` (of one or two dimensions), drawn with probabilities in proportion to it.

    Shape: `input` `(n)` or `(m, n)`, result `(num_samples)` or `(m, num_samples)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for complex, bool and integer tensors.

    >>> xtensor.multinomial(xtensor.tensor([0.0, 1.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("multinomial", "input", 1, "Tensor", input)
    if not 1 <= input.dim() <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not input.dtype.is_floating_point:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {input.dtype.scalar_name}"
        )
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.scalar_name}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if input.is_meta:
        made = wrap(MetaArray((*tuple(sizes_of(input))[:-1], num_samples), np.dtype(np.int64)))
    else:
        source = pick_generator("multinomial", generator, input.device)
        count, sizes = int(num_samples), tuple(sizes_of(input))
        kind = dtypes.float64 if input.dtype is dtypes.float64 else dtypes.float32
        if count == 1 or not replacement:
            numbers = sampling.drawn(sampling.exponential, sizes, kind, input.device, source, 1.0)
        else:
            numbers = sampling.drawn(sampling.uniform, (*sizes[:-1], count), kind, input.device, source)
        run = tensor_program(_multinomial_of, count, bool(replacement))
        array, good, filled = call(run, numbers, array_of(input))
        if not holds(good):
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        if not holds(filled):
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        made = wrap(array)
    if out is not None:
        write_out("multinomial", out, made, [input], "general")
        return out
    return made


# ---- in place ------------------------------------------------------------------------------------------------------


def refill(
    self: Tensor, function: str, title: str, generator: Any, kernel: sampling.Kernel, *numbers: Any
) -> Tensor:
    """Replace all values of a tensor by random ones."""
    check_writable(self)
    source = pick_generator(function, generator, self.device)
    return overwrite(
        self,
        function,
        title,
        lambda: sampling.drawn(
            kernel, tuple(sizes_of(self)), self.dtype, self.device, source, *numbers, later=True
        ),
    )


def number(function: str, name: str, position: int, value: Any) -> float:
    return float(python_number(function, name, position, value))  # type: ignore[arg-type]


def uniform_(
    self: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None, **named: Any
) -> Tensor:
    """Fill with uniform numbers in [from, to).

    Shape: that of the tensor itself, which stays.

    Raises: NotImplementedError for bool and integer tensors.

    >>> xtensor.empty(2, 3).uniform_().shape
    xtensor.Size([2, 3])
    """
    if "from" in named:
        from_ = named.pop("from")
    if named:
        raise checks.unexpected_error("uniform_", next(iter(named)))
    sampling.check_float("check_uniform_bounds", self.dtype)
    if from_ == 0 and to == 1:
        return refill(self, "uniform_", "UniformBackward0", generator, sampling.uniform)
    low, high = number("uniform_", "from", 1, from_), number("uniform_", "to", 2, to)
    limit = dtypes.finfo(self.dtype).max
    for name, value in (("from", low), ("to", high)):
        if not -limit <= value <= limit:
            raise RuntimeError(f"{name} is out of bounds for {dtypes.c_name(self.dtype.to_real())}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{self.dtype.to_real().scalar_name}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )
    return refill(self, "uniform_", "UniformBackward0", generator, sampling.between, low, high)


def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers.

    Shape: that of the tensor itself, which stays.

    Raises: NotImplementedError for bool and integer tensors.

    >>> xtensor.empty(2, 3).normal_().shape
    xtensor.Size([2, 3])
    """
    middle, width = number("normal_", "mean", 1, mean), number("normal_", "std", 2, std)
    check_std(width)
    sampling.check_float("normal_kernel_cpu", self.dtype)
    if middle == 0 and width == 1:
        return refill(self, "normal_", "NormalBackward0", generator, sampling.standard_normal)
    return refill(self, "normal_", "NormalBackward0", generator, sampling.shifted_normal, middle, width)


def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponential numbers of rate `lambd`.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for complex, bool and integer tensors.
    """
    if not self.dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {self.dtype.scalar_name}"
        )
    rate = number("exponential_", "lambd", 1, lambd)
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    return refill(self, "exponential_", "ExponentialBackward0", generator, sampling.exponential, rate)


def cauchy_(
    self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers of a Cauchy distribution.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for complex, bool and integer tensors.
    """
    if not self.dtype.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {dtypes.c_name(self.dtype)}"
        )
    middle, width = number("cauchy_", "median", 1, median), number("cauchy_", "sigma", 2, sigma)
    if not width > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={width:g}")
    return refill(self, "cauchy_", "CauchyBackward0", generator, sampling.cauchy, middle, width)


def log_normal_(
    self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers whose logarithms are normal with `mean` and `std`.

    Shape: that of the tensor itself, which stays.

    Raises: NotImplementedError for bool and integer tensors.
    """
    middle, width = number("log_normal_", "mean", 1, mean), number("log_normal_", "std", 2, std)
    if not width > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={width:g}")
    sampling.check_float("log_normal_cpu", self.dtype)
    return refill(self, "log_normal_", "LogNormalBackward0", generator, sampling.log_normal, middle, width)


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the numbers of trials until the first success, of probability `p`.

    Shape: that of the tensor itself, which stays.

    Raises: NotImplementedError for complex tensors.
    """
    chance = number("geometric_", "p", 1, p)
    if not 0 < chance < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={chance:g}")
    if self.dtype.is_complex:
        raise checks.not_implemented_for("geometric_cpu", self.dtype)
    return refill(self, "geometric_", "GeometricBackward0", generator, sampling.geometric, chance)


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones, of probability `p` (a number, or a tensor of them), and zeros.

    Shape: that of the tensor itself, which stays; a tensor `p` is broadcast to it.

    Raises: RuntimeError for a leaf that requires grad.
    """
    if not isinstance(p, Tensor):
        chance = number("bernoulli_", "p", 1, p)
        check_probability(chance)
        return refill(self, "bernoulli_", "BernoulliBackward2", generator, sampling.coins, chance)
    check_writable(self)
    shape = tuple(sizes_of(self))
    probabilities = p.expand(shape)
    sampling.check_float("bernoulli_tensor_cpu_p_", p.dtype)
    array, good = tossed("bernoulli_", probabilities, generator, shape, self.dtype.numpy)
    check_probabilities(good)
    return overwrite(self, "bernoulli_", "BernoulliBackward1", lambda: array)


@overloads(
    "*, Generator generator = None",
    "int from, int to, *, Generator generator = None",
    "int to, *, Generator generator = None",
)
def random_(
    self: Tensor,
    from_: int | None = None,
    to: Any = ...,
    *,
    generator: Generator | None = None,
    **named: Any,
) -> Tensor:
    """Fill with integers in [from, to), or [0, to) if one is given, or all that the dtype holds exactly from 0 on.

    to: None for all that the dtype holds exactly, from `from` on.

    Shape: that of the tensor itself, which stays.

    Raises: TypeError for arguments of other kinds; RuntimeError for complex tensors.
    """
    if "from" in named:
        from_ = named.pop("from")
    if named:
        raise checks.unexpected_error("random_", next(iter(named)))
    top = most(self.dtype)
    if from_ is None and (to is None or to is ...):
        bounds, title = (0, top + 1), "RandomBackward2"
    elif to is ...:
        bounds, title = (0, int(from_)), "RandomBackward1"  # type: ignore[arg-type]
    else:
        bounds, title = (int(from_ or 0), top + 1 if to is None else int(to)), "RandomBackward0"
    if self.dtype.is_floating_point:
        warn_beyond_exact(*bounds, self.dtype)
    kernel, *numbers = sampling.integer_range(*bounds, self.dtype)
    return refill(self, "random_", title, generator, kernel, *numbers)


def warn_beyond_exact(low: int, high: int, dtype: dtypes.dtype) -> None:
    """A warning for each end of [low, high) beyond which a float type does not hold every integer."""
    top = most(dtype)
    bits = top.bit_length() - 1
    for name, end in (("from", low), ("to - 1", high - 1)):
        if abs(end) > top:
            checks.warn(
                f"{name} is out of bounds [-(2^{bits}), 2^{bits}]. Due to precision limitations {dtypes.c_name(dtype)} can support "
                "discrete uniform distribution only within this range. This warning will become an error in version 1.7 "
                "release, please fix the code in advance"
            )


def most(dtype: dtypes.dtype) -> int:
    """The largest integer that `random_()` gives."""
    if dtype is dtypes.bool:
        return 1
    if dtype.is_floating_point:
        return 1 << draws.MANTISSA.get(dtype.name, 4)
    return dtypes.iinfo(dtype).max if dtype.is_integral else 0


attach_methods(
    bernoulli,
    bernoulli_,
    cauchy_,
    exponential_,
    geometric_,
    log_normal_,
    multinomial,
    normal_,
    random_,
    uniform_,
)
