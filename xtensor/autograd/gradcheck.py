"""`gradcheck` and `gradgradcheck`: analytical gradients against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import devices
from ..engine import enable_grad, no_grad
from ..gradients import grad
from ..tensor import Tensor, array_of, sizes_of, wrap
from ..transforms.batches import vmapped
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


def host(tensor: Tensor) -> np.ndarray:
    return np.array(array_of(tensor))


def like(values: np.ndarray, tensor: Tensor) -> Tensor:
    return wrap(devices.put(np.asarray(values, dtype=tensor.dtype.numpy), tensor.device))


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def differentiable(outputs: Any) -> tuple[Tensor, ...]:
    return tuple([o for o in as_tuple(outputs) if isinstance(o, Tensor) and o.requires_grad])


def numeric_outputs(
    fn: Callable[..., Any], inputs: tuple[Any, ...], places: Sequence[int]
) -> list[np.ndarray]:
    """The values of the outputs at `places`, computed without a graph."""
    with no_grad():
        outputs = as_tuple(fn(*inputs))
    return [host(outputs[i]).astype(np.complex128) for i in places]


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-6
) -> list[list[np.ndarray]]:
    """Per differentiable input and output, the matrix of derivatives by central differences.

    For a complex input the entry is `(dL/dx - i dL/dy)`'s conjugate pair folded as PyTorch does: see `_columns`.
    """
    inputs = as_tuple(inputs)
    outputs = as_tuple(fn(*inputs))
    places = [
        i
        for i, o in enumerate(outputs)
        if isinstance(o, Tensor) and (o.is_floating_point() or o.is_complex())
    ]
    result = []
    for index, x in enumerate(inputs):
        if isinstance(x, Tensor) and x.requires_grad:
            result.append(_columns(fn, inputs, index, places, eps))
    return result


def _columns(
    fn: Callable[..., Any], inputs: tuple[Any, ...], index: int, places: Sequence[int], eps: float
) -> list[np.ndarray]:
    """Directional derivatives `d out / d x_k` along the real axis, and for a complex input along the imaginary too."""
    x = inputs[index]
    values = host(x)
    flat = values.reshape(-1)
    directions = (1.0, 1j) if np.iscomplexobj(values) else (1.0,)
    found: list[list[np.ndarray]] = []
    for k in range(flat.size):
        row = []
        for direction in directions:
            shifted = []
            for sign in (1, -1):
                moved = values.copy()
                moved.reshape(-1)[k] += sign * eps * direction
                changed = list(inputs)
                changed[index] = like(moved, x)
                shifted.append(numeric_outputs(fn, tuple(changed), places))
            row.append([((a - b) / (2 * eps)).reshape(-1) for a, b in zip(*shifted, strict=True)])
        found.append(
            [np.stack(list(parts)) for parts in zip(*row, strict=True)]
        )  # per output: (directions, n)
    if not found:
        return [np.zeros((0, len(directions), 0), np.complex128) for _ in places]
    return [
        np.stack(list(parts)) for parts in zip(*found, strict=True)
    ]  # per output: (inputs, directions, n)


def get_analytical_jacobian(
    inputs: tuple[Any, ...], output: Tensor, factor: complex = 1.0
) -> list[np.ndarray | None]:
    """Per differentiable input, `grad` for each unit vector (times `factor`) as a matrix (inputs, outputs)."""
    chosen = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    count = output.numel()
    columns: list[list[Any]] = [[] for _ in chosen]
    for k in range(count):
        unit = np.zeros(count, dtype=output.dtype.numpy)
        unit[k] = factor
        found = grad(
            output, chosen, like(unit.reshape(sizes_of(output)), output), retain_graph=True, allow_unused=True
        )
        for column, g, x in zip(columns, found, chosen, strict=True):
            column.append(np.zeros(x.numel(), np.complex128) if g is None else host(g).reshape(-1))
    return [
        np.stack(c, axis=1) if c else np.zeros((x.numel(), 0)) for c, x in zip(columns, chosen, strict=True)
    ]


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

    Raises GradcheckError on disagreement unless `raise_exception` is off. Double precision inputs are needed.
    check_forward_ad: forward mode too. check_batched_grad, check_batched_forward_grad: batches of gradients, and of tangents, against
    one after another. Differs from PyTorch: `fast_mode` checks as thoroughly as without.
    """
    inputs = as_tuple(inputs)
    try:
        if check_backward_ad:
            _gradcheck(func, inputs, eps, atol, rtol, nondet_tol, check_undefined_grad)
        if check_forward_ad:
            check_forward(func, inputs, eps, atol, rtol)
        if check_batched_forward_grad:
            check_batched_forward(func, inputs, atol, rtol)
        if check_batched_grad:
            check_batched(func, inputs, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _gradcheck(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    check_undefined_grad: bool,
) -> None:
    chosen = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not chosen:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    for x in chosen:
        x.retain_grad()
    all_outputs = as_tuple(func(*inputs))
    outputs = [o for o in all_outputs if isinstance(o, Tensor) and (o.is_floating_point() or o.is_complex())]
    numerical = get_numerical_jacobian(func, inputs, eps=eps)
    for o, output in enumerate(outputs):
        real_part = [n[o] for n in numerical]
        factors: tuple[complex, ...] = (1.0, 1j) if output.is_complex() else (1.0,)
        for factor in factors:
            if not output.requires_grad:
                analytical: list[Any] = [np.zeros((x.numel(), output.numel())) for x in chosen]
            else:
                analytical = get_analytical_jacobian(inputs, output, factor)
                again = get_analytical_jacobian(inputs, output, factor)
                for a, b in zip(analytical, again, strict=True):
                    if np.abs(a - b).max(initial=0.0) > nondet_tol:
                        raise GradcheckError(
                            "Backward is not reentrant, i.e., running backward with same input and "
                            "grad_output multiple "
                            "times gives different values, although analytical gradient matches numerical "
                            "gradient."
                        )
            for i, (a, n, x) in enumerate(zip(analytical, real_part, chosen, strict=True)):
                # For L = Re(conj(factor) * out): PyTorch's gradient is dL/dRe(x) + i dL/dIm(x).
                projected = np.real(np.conj(factor) * n)
                expected = projected[:, 0] + (1j * projected[:, 1] if x.is_complex() else 0)
                if not np.allclose(a, expected, rtol, atol, equal_nan=True):
                    raise GradcheckError(
                        f"Jacobian mismatch for output {o} with respect to input {i},\n"
                        f"numerical:{np.asarray(expected)}\nanalytical:{np.asarray(a)}\n"
                    )
    if check_undefined_grad and len(outputs) > 1:
        _check_undefined(func, inputs, chosen)


def _check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...], chosen: list[Tensor]) -> None:
    """Outputs that get no gradient must count as zero."""
    outputs = differentiable(func(*inputs))
    for o in outputs:
        try:
            grad(
                o.sum() if not o.is_complex() else o.abs().sum(), chosen, retain_graph=True, allow_unused=True
            )
        except RuntimeError as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. Please look at 'Notes about "
                "undefined "
                f"output gradients' in 'tools/autograd/derivatives.yaml': {error}"
            ) from error


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
    inputs = as_tuple(inputs)
    outputs = differentiable(func(*inputs))
    if grad_outputs is None:
        random = np.random.default_rng(0)
        made = []
        for o in outputs:
            values = random.standard_normal(sizes_of(o))
            if o.is_complex():
                values = values + 1j * random.standard_normal(sizes_of(o))
            made.append(like(values, o).requires_grad_())
        grad_outputs = tuple(made)
    else:
        grad_outputs = as_tuple(grad_outputs)
    chosen = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    count = len(inputs)

    def first(*arguments: Any) -> tuple[Any, ...]:
        own, grads = list(arguments[:count]), arguments[count:]
        for i in chosen:
            if not own[i].requires_grad:
                own[i] = own[i].view_as(own[i]).requires_grad_()
        from_graph = modes_enabled(func, own)
        found = grad(from_graph, [own[i] for i in chosen], grads, create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradcheck(
        first,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )


# ---- forward mode, and batches


def tangents_of(
    func: Callable[..., Any], inputs: tuple[Any, ...], place: int, direction: Tensor
) -> list[Tensor]:
    """The tangents of the differentiable outputs along a direction of one input."""
    given = list(inputs)
    with dual_level():
        given[place] = make_dual(given[place].detach(), direction)
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
    numerical = get_numerical_jacobian(func, inputs, eps=eps)
    for at, place in enumerate(chosen):
        x = inputs[place]
        for k in range(x.numel()):
            for d, factor in enumerate((1.0, 1j) if x.is_complex() else (1.0,)):
                unit = np.zeros(x.numel(), x.dtype.numpy)
                unit[k] = factor
                along = tangents_of(func, inputs, place, like(unit.reshape(sizes_of(x)), x))
                for o, t in enumerate(along):
                    expected, found = numerical[at][o][k, d], host(t).reshape(-1)
                    if not np.allclose(found, expected, rtol, atol, equal_nan=True):
                        raise GradcheckError(
                            f"Jacobian computed with forward mode mismatch for output {o} with respect to input {at},\n"
                            f"numerical:{expected}\nanalytical:{found}\n"
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
            found = vmapped(along, None)(rows)
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n{BATCHED_FORWARD}"
            ) from error
        for o, t in enumerate(found):
            if not np.allclose(host(t), np.stack([host(row[o]) for row in each]), rtol, atol):
                raise GradcheckError(f"For output {o} and input {i}:\n\n{BATCHED_FORWARD}")


def modes_enabled(func: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Tensor, ...]:
    """The differentiable outputs of `func`, recorded whatever the grad mode."""
    with enable_grad():
        return differentiable(func(*arguments))
