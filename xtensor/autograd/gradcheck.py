"""`gradcheck` and `gradgradcheck`: analytical gradients against central differences.

Differences are taken by writing the inputs themselves, so that what the function reads elsewhere (a module's
parameters, `requires_grad`) is what it always is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import checks, devices, dtypes
from ..engine import Node, enable_grad, no_grad
from ..gradients import grad
from ..operators.below.dispatching import twin
from ..operators.recording import recorded
from ..sparse.convert import densify
from ..sparse.everywhere import rewrite
from ..sparse.layout import SparseTensor
from ..sparse.layout import put as put_back
from ..storage import WrapperArray
from ..tensor import Tensor, alias, array_of, edge_of, plain_edge, sizes_of, strides_of, wrap
from ..transforms.batches import older_vmap
from .forward_ad import dual_level, make_dual, unpack_dual

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "gradcheck",
    "gradgradcheck",
]


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck`."""


def host(tensor: Any) -> np.ndarray:
    if isinstance(tensor, SparseTensor):
        tensor = densify(twin(tensor))
    if type(tensor._xt_storage.raw) is WrapperArray:  # its class tells one number at a time
        flat = tensor.detach().reshape(-1)
        values = [flat[i].item() for i in range(tensor.numel())]
        return np.array(values, tensor.dtype.numpy).reshape(tuple(sizes_of(tensor)))
    return np.array(array_of(tensor))


def like(values: np.ndarray, tensor: Tensor) -> Tensor:
    return wrap(devices.put(np.asarray(values, dtype=tensor.dtype.numpy), tensor.device))


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def differentiable(outputs: Any) -> tuple[Tensor, ...]:
    return tuple([o for o in as_tuple(outputs) if isinstance(o, Tensor) and o.requires_grad])


def inexact(outputs: Any) -> tuple[Tensor, ...]:
    """The outputs that hold numbers with a derivative."""
    found = [o for o in as_tuple(outputs) if isinstance(o, Tensor)]
    return tuple([o for o in found if o.is_floating_point() or o.is_complex()])


@contextmanager
def moved(x: Tensor, masked: bool) -> Iterator[tuple[np.ndarray, Callable[[np.ndarray], None]]]:
    """A tensor's values, and a function that puts others in their place; the values come back when the block ends.

    masked: whether a sparse tensor gets values only at its own places.
    """
    values = host(x)
    if isinstance(x, SparseTensor):
        before: Any = twin(x)
        try:
            yield (
                values,
                lambda changed: rewrite(x, wrap(devices.put(changed, x.device)), before if masked else None),
            )
        finally:
            put_back(x, before)
        return
    data = x.detach()

    def put(changed: np.ndarray) -> None:
        with no_grad():
            data.data.copy_(like(changed, data))

    try:
        yield values, put
    finally:
        put(values)


def same_form(before: Tensor, after: Tensor, index: int, eps: float) -> None:
    """Refuse a function whose outputs change their form with its inputs' values."""
    if sizes_of(before) != sizes_of(after):
        raise AssertionError(
            "Expected `func` to return outputs with the same shape when inputs are perturbed "
            f"on index {index} by {eps}, but got: shapes {before.shape} and {after.shape}."
        )
    if before.dtype is not after.dtype:
        raise AssertionError(
            "Expected `func` to return outputs with the same dtype when inputs are perturbed "
            f"on index {index} by {eps}, but got: dtypes {before.dtype} and {after.dtype}."
        )


def numerical_jacobian(
    outputs_of: Callable[[], tuple[Tensor, ...]], x: Tensor, eps: float, masked: bool = False
) -> list[np.ndarray]:
    """Per output, its directional derivatives `d out / d x_k`: (elements of x, directions, elements of the output).

    The directions are the real axis, and for a complex x the imaginary one too.
    """
    directions = (1.0, 1j) if x.is_complex() else (1.0,)
    found: list[list[np.ndarray]] = []
    with moved(x, masked) as (values, put):
        for k in range(values.size):
            row = []
            for direction in directions:
                forms, shifted = [], []
                for sign in (-1, 1):
                    changed = values.copy()
                    changed.reshape(-1)[k] += sign * eps * direction
                    put(changed)
                    outputs = outputs_of()
                    forms.append(outputs)
                    # Read at once: an output may be the input itself, or a view of it.
                    shifted.append([host(o).astype(np.complex128) for o in outputs])
                for before, after in zip(*forms, strict=True):
                    same_form(before, after, k, eps)
                row.append([((b - a) / (2 * eps)).reshape(-1) for a, b in zip(*shifted, strict=True)])
            found.append([np.stack(parts) for parts in zip(*row, strict=True)])
        if not found:
            return [np.zeros((0, len(directions), o.numel()), np.complex128) for o in outputs_of()]
    return [np.stack(parts) for parts in zip(*found, strict=True)]


def analytical_jacobian(chosen: Sequence[Tensor], output: Tensor, factor: complex = 1.0) -> list[np.ndarray]:
    """Per input, `grad` for each unit vector (times `factor`) as a matrix (inputs, outputs)."""
    count = output.numel()
    columns: list[list[Any]] = [[] for _ in chosen]
    for k in range(count):
        unit = np.zeros(count, dtype=output.dtype.numpy)
        unit[k] = factor
        found = grad(
            output, chosen, like(unit.reshape(sizes_of(output)), output), retain_graph=True, allow_unused=True
        )
        for column, g, x in zip(columns, found, chosen, strict=True):
            if g is not None and sizes_of(g) != sizes_of(x):
                raise GradcheckError("Analytical gradient has incorrect size")
            column.append(np.zeros(x.numel(), np.complex128) if g is None else host(g).reshape(-1))
    return [
        np.stack(c, axis=1) if c else np.zeros((x.numel(), 0)) for c, x in zip(columns, chosen, strict=True)
    ]


def deprecated(name: str, grad_out: float) -> None:
    checks.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it "
        "will be removed in a future version of PyTorch.",
        FutureWarning,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def get_numerical_jacobian(
    fn: Callable[[Any], Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """Deprecated: per differentiable tensor of `target` (the inputs), the derivatives of `fn(inputs)`'s first output.

    Each is a matrix (elements of the tensor, elements of the output).
    """
    deprecated("get_numerical_jacobian", grad_out)
    wanted = as_tuple(inputs if target is None else target)
    found = []
    for x in wanted:
        if isinstance(x, Tensor) and x.requires_grad:
            first = as_tuple(fn(inputs))[0]
            if first.is_complex():
                raise ValueError(
                    "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that "
                    "return complex outputs."
                )
            jacobian = numerical_jacobian(lambda: (as_tuple(fn(inputs))[0],), x, eps)[0]
            found.append(like(folded(jacobian, 1.0, x), x if x.is_complex() else first))
    return tuple(found)


def get_analytical_jacobian(
    inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """Deprecated: the derivatives of one output, whether they come out twice the same, and whether sizes and dtypes fit."""
    deprecated("get_analytical_jacobian", grad_out)
    chosen = [x for x in as_tuple(inputs) if isinstance(x, Tensor) and x.requires_grad]
    first, second = analytical_jacobian(chosen, output), analytical_jacobian(chosen, output)
    grads = grad(output, chosen, output.detach() * 0, retain_graph=True, allow_unused=True)
    pairs = [(g, x) for g, x in zip(grads, chosen, strict=True) if g is not None]
    return (
        tuple([like(j, x) for j, x in zip(first, chosen, strict=True)]),
        agree(first, second, nondet_tol),
        all(sizes_of(g) == sizes_of(x) for g, x in pairs),
        all(g.dtype is x.dtype for g, x in pairs),
    )


def agree(first: Sequence[np.ndarray], second: Sequence[np.ndarray], tolerance: float) -> bool:
    return all(np.abs(a - b).max(initial=0.0) <= tolerance for a, b in zip(first, second, strict=True))


def folded(numerical: np.ndarray, factor: complex, x: Tensor) -> np.ndarray:
    """PyTorch's gradient of `L = Re(conj(factor) * out)`: `dL/dRe(x) + i dL/dIm(x)`, per element of x and of the output."""
    projected = np.real(np.conj(factor) * numerical)
    return projected[:, 0] + (1j * projected[:, 1] if x.is_complex() else 0)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether analytical gradients of `func` agree with central differences, for inputs that require grad.

    The inputs are written in place while differences are taken, and get their values back. Raises GradcheckError on
    disagreement unless `raise_exception` is off. Double precision inputs are needed. check_forward_ad: forward mode too.
    check_batched_grad, check_batched_forward_grad: batches of gradients, and of tangents, against one after another.
    masked: whether the elements that a sparse input does not store are no variables; otherwise they are, as zeros.
    Differs from PyTorch: `fast_mode` checks as thoroughly as without.

    >>> layer = xtensor.nn.Linear(2, 3, dtype=xtensor.float64)
    >>> x = xtensor.ones(4, 2, dtype=xtensor.float64)
    >>> xtensor.autograd.gradcheck(lambda *parameters: layer(x), tuple(layer.parameters()))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    given = as_tuple(inputs)
    chosen = checked_inputs(given)
    outputs = as_tuple(func(*given))
    if any(isinstance(o, SparseTensor) for o in outputs):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn "
            "for gradcheck."
        )
    try:
        if check_backward_ad:
            check_backward(
                func, given, chosen, outputs, eps, atol, rtol, nondet_tol, check_grad_dtypes, bool(masked)
            )
            if check_undefined_grad:
                check_undefined(func, given, chosen)
        if check_forward_ad:
            check_forward(func, given, eps, atol, rtol)
            if check_undefined_grad:
                check_undefined_forward(func, given, atol, rtol)
        if check_batched_forward_grad:
            check_batched_forward(func, given, atol, rtol)
        if check_batched_grad:
            check_batched(func, given, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def checked_inputs(inputs: tuple[Any, ...]) -> list[Tensor]:
    """The inputs that require grad; errors where none does, or where an element lies in memory that others share."""
    chosen = []
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        if x.dtype.name not in ("float64", "complex128"):
            checks.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or complex. "
            )
        if not isinstance(x, SparseTensor) and any(
            s == 0 and n > 1 for s, n in zip(strides_of(x), sizes_of(x), strict=True)
        ):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
        x.retain_grad()
        chosen.append(x)
    if not chosen:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    return chosen


def check_backward(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    chosen: list[Tensor],
    results: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_dtypes: bool,
    masked: bool,
) -> None:
    """Compare the gradient of each differentiable output with differences."""
    outputs = differentiable(results)
    if not outputs:
        check_constant(func, inputs, chosen, eps)
        return
    numerical = [numerical_jacobian(lambda: differentiable(func(*inputs)), x, eps, masked) for x in chosen]
    any_complex = any(o.is_complex() for o in outputs)
    for factor, part in ((1j, "imaginary"), (1.0, "real")) if any_complex else ((1.0, ""),):
        about = f"While considering the {part} part of complex outputs only, " if any_complex else ""
        for o, output in enumerate(outputs):
            if factor == 1j and not output.is_complex():
                continue
            analytical = analytical_jacobian(chosen, output, factor)
            for i, (found, n, x) in enumerate(zip(analytical, numerical, chosen, strict=True)):
                expected = folded(n[o], factor, x)
                if not np.allclose(found, expected, rtol, atol, equal_nan=True):
                    raise GradcheckError(
                        f"{about}Jacobian mismatch for output {o} with respect to input {i},\n"
                        f"numerical:{like(expected, x)}\nanalytical:{like(found, x)}\n"
                    )
            if not agree(analytical, analytical_jacobian(chosen, output, factor), nondet_tol):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                    "times gives different values, although analytical gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {nondet_tol}."
                )
    check_linear(func, inputs, chosen, check_dtypes)


def check_constant(
    func: Callable[..., Any], inputs: tuple[Any, ...], chosen: list[Tensor], eps: float
) -> None:
    """Where no output is differentiable, no output may depend on the inputs."""
    for x in chosen:
        for jacobian in numerical_jacobian(lambda: inexact(func(*inputs)), x, eps):
            if np.any(jacobian != 0):
                raise GradcheckError("Numerical gradient for function expected to be zero")


def check_linear(
    func: Callable[..., Any], inputs: tuple[Any, ...], chosen: list[Tensor], check_dtypes: bool
) -> None:
    """Zero gradients of the outputs must give zero gradients, of the inputs' form."""
    outputs = differentiable(func(*inputs))
    zeros = [like(np.zeros(sizes_of(o)), o) for o in outputs]
    for g, x in zip(grad(outputs, chosen, zeros, allow_unused=True), chosen, strict=True):
        if g is None:
            continue
        if g.layout != x.layout and not isinstance(x, SparseTensor):
            raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
        if g.layout is dtypes.sparse_coo:
            for what in ("sparse_dim", "dense_dim"):
                found, wanted = getattr(g, what)(), getattr(x, what)()
                if found != wanted:
                    raise GradcheckError(
                        f"grad is sparse tensor, but has incorrect {what} {found}, expected {wanted}"
                    )
        if np.any(host(g) != 0):
            raise GradcheckError("backward not multiplied by grad_output")
        if check_dtypes and g.dtype is not x.dtype:
            raise GradcheckError("grad is incorrect type")
        if g.device != x.device:
            raise GradcheckError("grad is incorrect device")
        if sizes_of(g) != sizes_of(x):
            raise GradcheckError("grad is incorrect size")


class UndefinedGrad(Node):
    """Sends no gradient, whatever it is given."""

    __slots__ = ("form",)

    def __init__(self, of: Tensor) -> None:
        super().__init__((plain_edge(edge_of(of)),))
        self.form = of.detach()

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.form,)

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        return (None,)


def check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...], chosen: list[Tensor]) -> None:
    """Outputs that get no gradient, all of them and each by itself, must count as zero."""
    count = len(differentiable(func(*inputs)))
    for undefined in [range(count), *([i] for i in range(count) if count > 1)]:
        outputs = list(differentiable(func(*inputs)))
        zeros = [like(np.zeros(sizes_of(o)), o) for o in outputs]
        for i in undefined:
            o = outputs[i]
            twin = alias(o, tuple(sizes_of(o)), tuple(strides_of(o)), o.storage_offset())
            outputs[i] = recorded(twin, UndefinedGrad(o))
        if not outputs:
            return
        try:
            found = grad(outputs, chosen, zeros, allow_unused=True)
        except RuntimeError as error:
            warn_about_undefined()
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. Please look at 'Notes about undefined "
                "output gradients' in 'tools/autograd/derivatives.yaml'"
            ) from error
        if any(g is not None and np.any(host(g) != 0) for g in found):
            warn_about_undefined()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                "Please look at 'Notes about undefined output gradients' in 'tools/autograd/derivatives.yaml'"
            )


def warn_about_undefined() -> None:
    checks.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
        "break existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature'
    )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Whether second derivatives agree with central differences of the first; see `gradcheck`."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    given = as_tuple(inputs)
    outputs = differentiable(func(*given))
    if grad_outputs is None:
        grads = tuple([random_like(o, gen_non_contig_grad_outputs, i) for i, o in enumerate(outputs)])
    else:
        grads = as_tuple(grad_outputs)
    chosen = [i for i, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad]
    count = len(given)

    def first(*arguments: Any) -> tuple[Any, ...]:
        own = list(arguments[:count])
        for i in chosen:
            if not own[i].requires_grad:  # the primal of forward mode
                own[i] = own[i].view_as(own[i])._ask_grad(True)
        with enable_grad():
            made = differentiable(func(*own))
            found = grad(
                made, [own[i] for i in chosen], arguments[count:], create_graph=True, allow_unused=True
            )
        return tuple([g for g in found if g is not None])

    return gradcheck(
        first,
        (*given, *grads),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad and check_rev_over_rev,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )


def random_like(output: Tensor, apart: bool, seed: int) -> Tensor:
    """A gradient for an output, of normal numbers; apart: with gaps between its elements."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(sizes_of(output))
    if output.is_complex():
        values = values + 1j * random.standard_normal(sizes_of(output))
    if apart:
        return like(np.stack([values, values], -1), output)[..., 0]._ask_grad(True)
    return like(values, output)._ask_grad(True)


# ---- forward mode, and batches


def tangents_of(
    func: Callable[..., Any], inputs: tuple[Any, ...], place: int, direction: Tensor
) -> list[Tensor]:
    """The tangents of the differentiable outputs along a direction of one input: all others have zeros."""
    zeros = {
        i: direction.new_zeros(sizes_of(x), dtype=x.dtype)
        for i, x in enumerate(inputs)
        if isinstance(x, Tensor) and x.requires_grad
    }
    return tangents_along(func, inputs, {**zeros, place: direction})


def tangents_along(
    func: Callable[..., Any], inputs: tuple[Any, ...], tangents: dict[int, Tensor]
) -> list[Tensor]:
    """The tangents of the differentiable outputs, from those of the inputs at some places."""
    given = [x.detach() if isinstance(x, Tensor) and x.requires_grad else x for x in inputs]
    with dual_level():
        for i, along_it in tangents.items():
            given[i] = make_dual(given[i], along_it)
        outputs = [o for o in as_tuple(func(*given)) if isinstance(o, Tensor)]
        found = []
        for o in outputs:
            if not (o.is_floating_point() or o.is_complex()):
                continue
            along = unpack_dual(o).tangent
            found.append(o.new_zeros(tuple(sizes_of(o))) if along is None else along.detach())
    return found


def check_forward(
    func: Callable[..., Any], inputs: tuple[Any, ...], eps: float, atol: float, rtol: float
) -> None:
    """Tangents along every element of every input against differences."""
    chosen = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    for at, place in enumerate(chosen):
        x = inputs[place]
        numerical = numerical_jacobian(lambda: inexact(func(*inputs)), x, eps)
        for k in range(x.numel()):
            for d, factor in enumerate((1.0, 1j) if x.is_complex() else (1.0,)):
                unit = np.zeros(x.numel(), x.dtype.numpy)
                unit[k] = factor
                along = tangents_of(func, inputs, place, like(unit.reshape(sizes_of(x)), x))
                for o, t in enumerate(along):
                    expected, found = numerical[o][k, d], host(t).reshape(-1)
                    if not np.allclose(found, expected, rtol, atol, equal_nan=True):
                        raise GradcheckError(
                            f"Jacobian computed with forward mode mismatch for output {o} with respect to input {at},\n"
                            f"numerical:{expected}\nanalytical:{found}\n"
                        )


def check_undefined_forward(
    func: Callable[..., Any], inputs: tuple[Any, ...], atol: float, rtol: float
) -> None:
    """A tangent of zeros of every input, along directions of the others, against one zero for all; of nothing else, zeros."""
    chosen = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    for place in chosen:
        others = {i: directions(inputs[i], 1)[0] for i in chosen if i != place}
        zeros = inputs[place].detach().new_zeros(sizes_of(inputs[place]))
        defined = tangents_along(func, inputs, {**others, place: zeros})
        one = zeros.new_zeros(()).expand(tuple(sizes_of(zeros)))
        undefined = (
            tangents_along(func, inputs, {**others, place: one})
            if others
            else [d.new_zeros(d.shape) for d in defined]
        )
        for o, (with_zeros, without) in enumerate(zip(defined, undefined, strict=True)):
            if not np.allclose(host(with_zeros), host(without), rtol, atol, equal_nan=True):
                raise GradcheckError(
                    f"Expected forward mode to treat all tangents of zeros alike, but output {o} differs for input {place}"
                )


BATCHED = "gradcheck or gradgradcheck failed while testing batched gradient computation."
BATCHED_FORWARD = "gradcheck failed while testing batched forward gradient computation."


def directions(tensor: Tensor, count: int = 2) -> Tensor:
    """Random directions, along a first dimension."""
    random = np.random.default_rng(0)
    values = random.standard_normal((count, *sizes_of(tensor)))
    if tensor.is_complex():
        values = values + 1j * random.standard_normal(values.shape)
    return like(values, tensor)


def check_batched(func: Callable[..., Any], inputs: tuple[Any, ...], atol: float, rtol: float) -> None:
    """A batch of gradients against one after another."""
    chosen = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    for o, output in enumerate(differentiable(func(*inputs))):
        rows = directions(output)
        options: Any = dict(retain_graph=True, allow_unused=True)
        each = [grad(output, chosen, row, **options) for row in rows]
        try:
            found = grad(output, chosen, rows, is_grads_batched=True, **options)
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED}") from error
        for i, g in enumerate(found):
            expected: Any = [row[i] for row in each]
            if (g is None) != (expected[0] is None) or (
                g is not None and not np.allclose(host(g), np.stack(list(map(host, expected))), rtol, atol)
            ):
                raise GradcheckError(f"For output {o} and input {i}:\n\n{BATCHED}")


def check_batched_forward(
    func: Callable[..., Any], inputs: tuple[Any, ...], atol: float, rtol: float
) -> None:
    """A batch of tangents against one after another."""
    for i, x in enumerate(inputs):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        rows = directions(x)

        def along(direction: Tensor, place: int = i) -> tuple[Tensor, ...]:
            return tuple(tangents_of(func, inputs, place, direction))

        each = [along(row) for row in rows]
        try:
            found = older_vmap(along)(rows)
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n{BATCHED_FORWARD}"
            ) from error
        for o, t in enumerate(found):
            if not np.allclose(host(t), np.stack([host(row[o]) for row in each]), rtol, atol):
                raise GradcheckError(f"For output {o} and input {i}:\n\n{BATCHED_FORWARD}")
