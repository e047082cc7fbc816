"""Jacobians, Hessians and their products with vectors, by reverse mode (twice where forward mode would serve)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine import enable_grad, is_grad_enabled
from ..gradients import grad
from ..ops.create.ranges import eye
from ..ops.shape.joining import stack
from ..storage import WrapperArray
from ..tensor import Tensor, sizes_of
from ..transforms.forward import jacfwd
from ..transforms.reverse import grad as func_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def as_tuple(value: Any, what: str, name: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether a tuple was given, and its tensors."""
    given = isinstance(value, tuple)
    values = value if given else (value,)
    for i, v in enumerate(values):
        if not isinstance(v, Tensor):
            if given:
                raise TypeError(
                    f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the "
                    "value at index "
                    f"{i} has type {type(v)}."
                )
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the given "
                f"{what} has type {type(v)}."
            )
    return given, tuple(values)


def prepared(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Inputs whose gradients can be asked for: views in the caller's graph, or leaves cut off from it."""
    if create_graph:
        return tuple([x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in inputs])
    return tuple([x.detach().requires_grad_() for x in inputs])


def _construct_standard_basis_for(tensors: tuple[Tensor, ...], numels: tuple[int, ...]) -> tuple[Tensor, ...]:
    """The columns of one identity matrix, each tensor's own in its dtype and on its device: a basis for all of them at once."""
    total, start, found = sum(numels), 0, []
    for tensor, count in zip(tensors, numels, strict=True):
        whole = eye(total, dtype=tensor.dtype, device=tensor.device)
        found.append(whole.narrow(1, start, count))
        start += count
    return tuple(found)


def zeros(x: Tensor) -> Tensor:
    return x.new_zeros(tuple(sizes_of(x)))


def filled(
    found: Any, inputs: tuple[Tensor, ...], strict: bool, message: str, constant: str = ""
) -> tuple[Tensor, ...]:
    """Gradients, zeros where there are none; `constant` is what strict mode says of those that depend on no input."""
    result = []
    for i, (g, x) in enumerate(zip(found, inputs, strict=True)):
        if strict and g is None:
            raise RuntimeError(message.format(i=i))
        if strict and constant and not g.requires_grad:
            raise RuntimeError(constant.format(i=i))
        if g is None:
            g = zeros(x)
        result.append(g)
    return tuple(result)


def released(values: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    return values if create_graph else tuple([v.detach() for v in values])


def shaped(given: bool, values: tuple[Any, ...]) -> Any:
    return values if given else values[0]


def checked_vector(v: Any, against: tuple[Tensor, ...], name: str, what: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(against) != 1 or against[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {what} to the user-provided function is a single "
                "Tensor with a "
                "single element."
                if name != "vjp"
                else "The vector v can only be None if the user-provided function returns a single Tensor with a "
                "single element."
            )
        return (against[0].new_ones(tuple(sizes_of(against[0]))),)
    _, vs = as_tuple(v, "v", name)
    if len(vs) != len(against) and len(against) == 1:
        raise RuntimeError("The given v should contain a single Tensor.")
    if len(vs) != len(against):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(against)} but got {len(vs)}.")
    for i, (a, b) in enumerate(zip(vs, against, strict=True)):
        if sizes_of(a) != sizes_of(b):
            raise RuntimeError(
                f"v has invalid size: should be {b.size()} but got {a.size()}."
                if len(vs) == 1
                else f"Entry {i} of v has invalid size: should be {b.size()} but got {a.size()}."
            )
    return vs


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of `func`, and the product of `v` with its Jacobian."""
    with enable_grad():
        given, ins = as_tuple(inputs, "inputs", "vjp")
        ins = prepared(ins, create_graph)
        many, outs = as_tuple(func(*ins), "outputs of the user-provided function", "vjp")
        refuse_detached(outs, strict)
        vs = checked_vector(v, outs, "vjp", "output")
        found = grad_of(outs, ins, vs, create_graph, strict, "Output of the user-provided function")
        result = filled(
            found,
            ins,
            strict,
            "The output of the user-provided function is independent of input {i}. This is not allowed in "
            "strict mode.",
            CONSTANT if create_graph else "",
        )
    keep = create_graph or (is_grad_enabled() and create_graph)
    return shaped(many, released(outs, keep)), shaped(given, released(result, keep))


def refuse_detached(outs: tuple[Tensor, ...], strict: bool) -> None:
    for i, out in enumerate(outs):
        if strict and not out.requires_grad:
            raise RuntimeError(DETACHED.format(output=i))


def grad_of(
    outs: tuple[Tensor, ...], ins: tuple[Tensor, ...], vs: Any, create_graph: bool, strict: bool, what: str
) -> tuple[Any, ...]:
    chosen = [(o, v) for o, v in zip(outs, vs, strict=True) if o.requires_grad]
    if not chosen:
        return (None,) * len(ins)
    return grad(
        [o for o, _ in chosen], ins, [v for _, v in chosen], create_graph=create_graph, allow_unused=True
    )


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of `func`, and the product of its Jacobian with `v`, by differentiating the backward pass."""
    with enable_grad():
        _, ins = as_tuple(inputs, "inputs", "jvp")
        ins = prepared(ins, create_graph)
        vs = checked_vector(v, ins, "jvp", "input")
        many, outs = as_tuple(func(*ins), "outputs of the user-provided function", "jvp")
        refuse_detached(outs, strict)
        dual = tuple([zeros(o).requires_grad_() for o in outs])
        found = grad_of(outs, ins, dual, True, strict, "jvp")
        back = filled(
            found,
            ins,
            strict,
            "The output of the user-provided function is independent of input {i}. This is not allowed in "
            "strict mode.",
        )
        pairs = [(g, w) for g, w in zip(back, vs, strict=True) if g.requires_grad]
        if pairs:
            products = grad(
                [g for g, _ in pairs],
                dual,
                [w for _, w in pairs],
                create_graph=create_graph,
                allow_unused=True,
            )
        else:
            products = (None,) * len(dual)
        result = filled(products, outs, strict, TRICK, CONSTANT if create_graph else "")
    return shaped(many, released(outs, create_graph)), shaped(many, released(result, create_graph))


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for each output and input, a tensor of the output's sizes followed by the input's.

    vectorize: all rows in one pass over a batch of them. strategy: "forward-mode" takes the columns instead, by a batch of
    tangents; it needs `vectorize`.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
                'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        return columns_of(func, inputs, strict, vectorize)
    return strict_jacobian(func, inputs, create_graph, strict, DETACHED, INDEPENDENT, vectorize)


def columns_of(func: Callable[..., Any], inputs: Any, strict: bool, vectorize: bool) -> Any:
    """The Jacobian by its columns."""
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together '
            '(yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
        )
    given, ins = as_tuple(inputs, "inputs", "jacobian")
    if any(type(t._xt_storage.raw) is WrapperArray for t in ins):
        return strict_jacobian(func, inputs, False, False, DETACHED, INDEPENDENT)
    many = False

    def function(*values: Tensor) -> tuple[Tensor, ...]:
        nonlocal many
        many, outs = as_tuple(func(*values), "outputs of the user-provided function", "jacobian")
        return outs

    table = jacfwd(function, tuple(range(len(ins))))(*[x.detach() for x in ins])
    return shaped(many, tuple([shaped(given, released(row, False)) for row in table]))


DETACHED = (
    "Output {output} of the user-provided function does not require gradients. The outputs must be "
    "computed in a "
    "differentiable manner from the input when running in strict mode."
)
INDEPENDENT = (
    "Output {output} of the user-provided function is independent of input {i}. This is not allowed in "
    "strict mode."
)
CONSTANT = (
    "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
    "create_graph=True."
)
TRICK = (
    "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double backward trick "
    "to compute forward mode gradients. This is not allowed in strict mode."
)
LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to "
    "input {output} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is "
    "twice "
    "differentiable and that the jacobian depends on the inputs (this would be violated by a linear "
    "function for example)."
)


def strict_jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool,
    strict: bool,
    detached: str,
    independent: str,
    vectorize: bool = False,
) -> Any:
    """The body of `jacobian`, with what it says in strict mode of outputs that depend on nothing or not on an input."""
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
            "either set `strict=False` or `vectorize=False`."
        )
    with enable_grad():
        given, ins = as_tuple(inputs, "inputs", "jacobian")
        ins = prepared(ins, create_graph)
        many, outs = as_tuple(func(*ins), "outputs of the user-provided function", "jacobian")
        table = []
        for i, out in enumerate(outs):
            if strict and not out.requires_grad:
                raise RuntimeError(detached.format(output=i))
            message = independent.replace("{output}", str(i))
            batched = vectorize and out.requires_grad and out.numel() > 0
            table.append(
                batched_rows(out, ins, create_graph)
                if batched
                else rows_of(out, ins, create_graph, strict, message)
            )
    result = tuple([shaped(given, released(row, create_graph)) for row in table])
    return shaped(many, result)


def batched_rows(out: Tensor, ins: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """The Jacobian of one output, all rows at once."""
    count, sizes = out.numel(), tuple(sizes_of(out))
    basis = eye(count, dtype=out.dtype, device=out.device).reshape((count, *sizes))
    found = grad(
        out,
        ins,
        basis,
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=True,
    )
    return tuple(
        [
            x.new_zeros((*sizes, *sizes_of(x))) if g is None else g.reshape((*sizes, *sizes_of(x)))
            for g, x in zip(found, ins, strict=True)
        ]
    )


def rows_of(
    out: Tensor, ins: tuple[Tensor, ...], create_graph: bool, strict: bool, message: str
) -> tuple[Tensor, ...]:
    """The Jacobian of one output, a row per element."""
    sizes = tuple(sizes_of(out))
    flat = out.reshape(-1)
    rows: list[list[Tensor]] = [[] for _ in ins]
    for k in range(out.numel()):
        found: tuple[Any, ...] = (None,) * len(ins)
        if out.requires_grad:
            found = grad(flat[k], ins, retain_graph=True, create_graph=create_graph, allow_unused=True)
        constant = CONSTANT if create_graph else ""
        for row, g in zip(rows, filled(found, ins, strict, message, constant), strict=True):
            row.append(g)
    result = []
    for row, x in zip(rows, ins, strict=True):
        shape = (*sizes, *sizes_of(x))
        if not row:
            result.append(out.new_zeros(shape))
            continue
        if type(row[0]) is not Tensor:  # a class may keep its values elsewhere: nothing is written into those
            result.append(stack(row).reshape(shape))
            continue
        table = row[0].new_zeros((len(row), *sizes_of(x)))
        for k, g in enumerate(row):
            table[k] = g
        result.append(table.reshape(shape))
    return tuple(result)


def scalar(func: Callable[..., Any], name: str) -> Callable[..., Tensor]:
    """`func`, checked to return one number."""

    def checked(*inputs: Tensor) -> Tensor:
        out = func(*inputs)
        many, outs = as_tuple(out, "outputs of the user-provided function", name)
        if many or not isinstance(out, Tensor):
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if out.numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {name} should contain a single element"
            )
        return outs[0].squeeze()

    return checked


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function of one number: for each pair of inputs, a tensor of both sizes."""
    given, ins = as_tuple(inputs, "inputs", "hessian")
    single = scalar(func, "hessian")

    def checked(*arguments: Tensor) -> Tensor:
        out = single(*arguments)
        refuse_detached((out,), strict)
        return out

    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    forward = outer_jacobian_strategy == "forward-mode"

    def first(*arguments: Tensor) -> Any:
        if forward:
            return hessian_rows(checked, arguments, given)
        gradients = jacobian(checked, tuple(arguments), create_graph=True)
        return gradients if given else gradients[0]

    whole = inputs if given else ins[0]
    if forward:
        return jacobian(first, whole, create_graph, strict, vectorize, outer_jacobian_strategy)
    return strict_jacobian(first, whole, create_graph, strict, LINEAR, INDEPENDENT, vectorize)


def hessian_rows(func: Callable[..., Any], arguments: tuple[Tensor, ...], given: bool) -> Any:
    """The gradient of a function of one number, which forward mode goes on to differentiate."""
    found = func_grad(func, tuple(range(len(arguments))))(*arguments)
    return found if given else found[0]


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a function of one number, and the product of its Hessian with `v`."""
    return vhp(func, inputs, v, create_graph, strict, name="hvp")


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
    name: str = "vhp",
) -> tuple[Any, Any]:
    """The value of a function of one number, and the product of `v` with its Hessian."""
    with enable_grad():
        given, ins = as_tuple(inputs, "inputs", name)
        ins = prepared(ins, create_graph)
        vs = checked_vector(v, ins, name, "input")
        out = scalar(func, name)(*ins)
        refuse_detached((out,), strict)
        first = filled(
            grad(out, ins, create_graph=True, allow_unused=True) if out.requires_grad else (None,) * len(ins),
            ins,
            strict,
            "The output of the user-provided function is independent of input {i}. This is not allowed in "
            "strict mode.",
            LINEAR.replace("{output}", "{i}"),
        )
        found = grad_of(first, ins, vs, create_graph, strict, name)
        result = filled(
            found, ins, strict, "The hessian is independent of input {i}. This is not allowed in strict mode."
        )
    return released((out,), create_graph)[0], shaped(given, released(result, create_graph))
