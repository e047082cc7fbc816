"""What is compared of an entry. A facet runs samples and raises `Difference`, or returns how many it ran (0: it does not apply)."""

from __future__ import annotations

import functools
import random
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.opinfo.core import OpInfo

import xtensor

from .compare import Difference, drawn_alike, same
from .convert import (
    Missing,
    Unsupported,
    copied,
    leaves,
    method_named,
    named,
    numpy_of,
    ours,
    rebind,
    widened,
)
from .decompositions import REBUILT, TIES
from .entries import DRAWN, RANDOM, UNSET, matches, name_of
from .large import UNCHECKED, enlarged

__all__ = ["FACETS", "LIMITS", "Subject"]

# How many of an entry's samples each facet runs: in float32, and in any other dtype.
LIMITS = {
    "forward": (20, 3),
    "gradient": (10, 1),
    "inplace": (4, 1),
    "out": (3, 1),
    "method": (4, 1),
    "errors": (100, 100),
    "gradgrad": (2, 2),
}
DRAWS = 30  # of each sample of a random operator
UNIMPLEMENTED = ("not implemented for", "not supported for", "INTERNAL ASSERT")


class Subject:
    """An entry in a dtype, with its samples and both libraries' functions."""

    def __init__(self, entry: Any, dtype: str, every: bool = False, large: bool = False) -> None:
        self.entry = entry
        self.name = name_of(entry)
        self.dtype = dtype
        self.every = every
        self.large = large
        self.random = matches(self.name, RANDOM)
        self.unset = matches(self.name, UNSET) or entry.has_nondeterministic_output
        self.theirs: Callable[..., Any] = entry.op
        self.kept: dict[bool, list[Any]] = {}
        self.draws = DRAWN.get(self.name, lambda sample: False)

    def ours(self) -> Callable[..., Any]:
        """Our function: by the operator's dotted name, or PyTorch's own lambda over our library."""
        op = self.entry.op
        if isinstance(op, types.FunctionType) and op.__module__.startswith("torch.testing"):
            return rebind(op)
        if isinstance(op, types.MethodDescriptorType | types.WrapperDescriptorType):
            return method_named(op.__name__)
        if isinstance(op, types.FunctionType) and op.__module__ == "torch._tensor":
            return method_named(op.__name__)
        return named(self.entry.name)

    def samples(self, facet: str, grad: bool = False) -> Iterator[Any]:
        """The samples that a facet runs: evenly chosen, first and last included."""
        if grad not in self.kept:
            seed()
            made = list(self.entry.sample_inputs("cpu", getattr(torch, self.dtype), requires_grad=grad))
            if self.large:
                made = [] if self.name in UNCHECKED else made
                made = list(enlarged(made, self.theirs, self.dtype, self.random or self.unset))
            self.kept[grad] = made
        found = [s for s in self.kept[grad] if not self.draws(s)]
        limit = len(found) if self.every else LIMITS[facet][self.dtype != "float32"]
        if len(found) > limit:
            chosen = np.unique(np.linspace(0, len(found) - 1, limit).round().astype(int))
            found = [found[i] for i in chosen]
        yield from found


def seed() -> None:
    """The same numbers in every run."""
    torch.manual_seed(1)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  # PyTorch's sample makers draw from NumPy's global state


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Exception | None]:
    """The result or the error."""
    try:
        return function(*args, **kwargs), None
    except Missing:
        raise
    except Exception as error:
        return None, error


def shown(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def call_of(sample: Any) -> str:
    """A sample, short enough for a line."""

    def text(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).rpartition('.')[2]}{list(value.shape)}"
        if isinstance(value, list | tuple):
            return f"({', '.join(map(text, value))})"
        return repr(value)[:60]

    parts = [text(sample.input), *map(text, sample.args)]
    parts += [f"{key}={text(value)}" for key, value in sample.kwargs.items()]
    return f"({', '.join(parts)})"[:300]


def ran(sample: Any, check: Callable[[], bool]) -> bool:
    """Whether a check applied; what it raises names the sample."""
    try:
        return check()
    except Unsupported:
        return False
    except Missing as error:
        raise Difference(str(error)) from None
    except Difference as error:
        raise Difference(f"{error} of {call_of(sample)}") from None
    except Exception as error:
        raise Difference(f"{shown(error)} of {call_of(sample)}") from error


def arguments(sample: Any) -> tuple[Any, ...]:
    """Input, positional and keyword arguments."""
    return (sample.input, sample.args, sample.kwargs)


def call(function: Callable[..., Any], given: tuple[Any, ...], **more: Any) -> Any:
    """The function on copied or converted arguments."""
    first, args, kwargs = given
    return function(first, *args, **kwargs, **more)


def agree_on_error(mine: Exception | None, theirs: Exception) -> None:
    """Raise unless our error is of the class of PyTorch's; where PyTorch only lacks a kernel we may do more."""
    if any(sign in str(theirs) for sign in UNIMPLEMENTED):
        return
    if mine is None:
        raise Difference(f"no error, expected {shown(theirs)}")
    if type(mine).__name__ != type(theirs).__name__:
        raise Difference(f"{shown(mine)}; expected {shown(theirs)}")


def compare_calls(
    subject: Subject,
    mine: Callable[..., Any],
    theirs: Callable[..., Any],
    sample: Any,
    where: str = "result",
    rebuild: bool = True,
) -> bool:
    """Run both functions on a sample and compare the outcomes."""
    given = arguments(sample)
    converted, original = ours(given), copied(given)
    expected, error = attempt(call, theirs, original)
    if error is not None:
        agree_on_error(attempt(call, mine, converted)[1], error)
        return True
    actual = call(mine, converted)
    if subject.random or subject.unset:
        alike_in_kind(actual, expected)
        if subject.random:
            compare_draws(mine, theirs, sample)
        return True
    try:
        same(actual, expected, lambda: call(theirs, widened(given)), where)
    except Difference:
        if not rebuild or subject.name not in REBUILT:
            raise
        REBUILT[subject.name](actual, expected, sample)
    return True


def alike_in_kind(actual: Any, expected: Any) -> None:
    """Dtypes and shapes only."""
    left, right = leaves(actual, xtensor.Tensor), leaves(expected, torch.Tensor)
    kinds = [[(str(t.dtype).rpartition(".")[2], tuple(t.shape)) for t in side] for side in (left, right)]
    if kinds[0] != kinds[1]:
        raise Difference(f"{kinds[0]}, expected {kinds[1]}")


def compare_draws(mine: Callable[..., Any], theirs: Callable[..., Any], sample: Any) -> None:
    """Repeat both, each draw from another seed, and compare the distributions of all elements."""
    drawn: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    given = arguments(sample)
    total = 0
    for index in range(DRAWS):
        for side, library, function, make in (
            (0, xtensor, mine, ours),
            (1, torch, theirs, copied),
        ):
            with library_seeded(library, index):
                result = call(function, make(given))
            for leaf in leaves(result, library.Tensor)[:1]:
                drawn[side].append(numpy_of(leaf))
                total += leaf.numel()
        if total > 40_000:
            break
    if drawn[0] and drawn[1]:
        drawn_alike(*drawn)


class library_seeded:
    """Seeds a library, and makes the `manual_seed` that entries call themselves do nothing meanwhile."""

    def __init__(self, library: Any, index: int) -> None:
        self.library, self.seed = library, 1000 + index

    def __enter__(self) -> None:
        self.library.manual_seed(self.seed)
        self.real = self.library.manual_seed
        self.library.manual_seed = lambda seed: None

    def __exit__(self, *_: object) -> None:
        self.library.manual_seed = self.real


# -- the facets


def forward(subject: Subject) -> int:
    """Values, dtypes, shapes and structure."""
    mine, count = found(subject.ours), 0
    for sample in subject.samples("forward"):
        count += ran(sample, lambda: compare_calls(subject, mine, subject.theirs, sample))  # noqa: B023
    return count


def found(look: Callable[[], Any]) -> Any:
    """What a look-up gives; a missing name is a difference."""
    try:
        return look()
    except Missing as error:
        raise Difference(str(error)) from None


UNWRAPPED = OpInfo.__dataclass_fields__["gradcheck_wrapper"].default


def differentiate(
    library: Any,
    subject: Subject,
    function: Callable[..., Any],
    process: Callable[..., Any],
    wrapper: Callable[..., Any] | None,
    given: tuple[Any, ...],
    weights: Callable[[list[Any]], list[Any]],
    second: bool,
) -> dict[str, Any]:
    """First (and second) derivatives of a call with respect to the tensors that ask for them."""
    inputs = [leaf for leaf in leaves(given, library.Tensor) if leaf.requires_grad]
    first, args, kwargs = given
    result = (
        function(first, *args, **kwargs) if wrapper is None else wrapper(function, first, *args, **kwargs)
    )
    result = process(result)
    outputs = leaves(result, library.Tensor)
    asking = [bool(o.requires_grad) for o in outputs]
    outputs = [o for o in outputs if o.requires_grad]
    if not inputs or not outputs:
        return {"asking": asking, "first": []}
    cotangents = weights(outputs)
    if second:
        for cotangent in cotangents:
            cotangent.requires_grad_()
    gradients = library.autograd.grad(
        outputs, inputs, cotangents, create_graph=second, retain_graph=True, allow_unused=True
    )
    made: dict[str, Any] = {"asking": asking, "first": list(gradients)}
    if second:
        # Weights for every input, so that both sides draw the same where one gradient is a constant.
        pairs = zip(gradients, weights(inputs), strict=True)
        again = [(g, w) for g, w in pairs if g is not None and g.requires_grad]
        made["second"] = (
            list(
                library.autograd.grad(
                    [g for g, _ in again], [*inputs, *cotangents], [w for _, w in again], allow_unused=True
                )
            )
            if again
            else []
        )
    return made


def compare_gradients(subject: Subject, mine: Callable[..., Any], sample: Any, second: bool) -> bool:
    """Derivatives of one sample on both sides."""
    given = arguments(sample)
    wrapper = subject.entry.gradcheck_wrapper
    if wrapper is UNWRAPPED or wrapper.__name__.startswith("gradcheck_wrapper_masked"):
        wrapper = None
    process = sample.output_process_fn_grad
    drawn: list[torch.Tensor] = []

    def weigh(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(len(drawn))
        made = []
        for out in outputs:
            dtype = torch.complex128 if out.is_complex() else torch.float64
            # Sixteen bits of a number: the same in every dtype.
            made.append((torch.randn(out.shape, dtype=dtype, generator=generator) * 64).round() / 64)
        drawn.extend(made)
        return [m.to(o.dtype) for m, o in zip(made, outputs, strict=True)]

    def theirs(values: tuple[Any, ...]) -> dict[str, Any]:
        drawn.clear()
        return differentiate(torch, subject, subject.theirs, process, wrapper, values, weigh, second)

    converted, original = ours(given), copied(given)
    expected, error = attempt(theirs, original)
    if error is not None:
        return False  # the entry or the dtype has no such derivative in PyTorch
    if not expected["first"] and not any(expected["asking"]):
        wanted = None
    else:
        wanted = [d.clone() for d in drawn]

    def mirrored(outputs: list[Any]) -> list[Any]:
        start = mirrored.used  # type: ignore[attr-defined]
        taken = (wanted or [])[start : start + len(outputs)]
        mirrored.used += len(outputs)  # type: ignore[attr-defined]
        if [tuple(t.shape) for t in taken] != [tuple(o.shape) for o in outputs]:
            raise Difference(
                f"shapes that have derivatives: {[tuple(o.shape) for o in outputs]}, expected {[tuple(t.shape) for t in taken]}"
            )
        return [ours(t).to(o.dtype) for t, o in zip(taken, outputs, strict=True)]

    mirrored.used = 0  # type: ignore[attr-defined]
    actual = differentiate(
        xtensor, subject, mine, rebind(process), wrapper and rebind(wrapper), converted, mirrored, second
    )
    if actual["asking"] != expected["asking"]:
        raise Difference(f"results require grad: {actual['asking']}, expected {expected['asking']}")
    if not expected["first"]:
        return False
    compare_lists(
        subject, actual["first"], expected["first"], lambda: theirs(widened(given))["first"], "gradient"
    )
    if second:
        compare_lists(
            subject,
            actual["second"],
            expected["second"],
            lambda: theirs(widened(given))["second"],
            "second derivative",
            zero_is_none=True,
        )
    return True


def compare_lists(
    subject: Subject,
    actual: list[Any],
    expected: list[Any],
    reference: Callable[[], list[Any]],
    where: str,
    zero_is_none: bool = False,
) -> None:
    """Derivatives, one by one; None where an input has none."""
    if not actual or not expected:
        for name, side in (("ours", actual), ("expected", expected)):
            if any(g is not None and np.nan_to_num(numpy_of(g)).any() for g in side):
                raise Difference(f"{where}: only {name} is there")
        return
    for index, (a, b) in enumerate(zip(actual, expected, strict=True)):
        place = f"{where} {index}"
        if zero_is_none and (a is None or b is None):
            known = a if a is not None else b
            if known is not None and np.nan_to_num(numpy_of(known)).any():
                raise Difference(f"{place}: {'none' if a is None else 'not zero'}, expected the opposite")
            continue
        if (a is None) != (b is None):
            raise Difference(f"{place}: {'None' if a is None else 'a tensor'}, expected the opposite")
        if a is None:
            continue
        if subject.random:
            alike_in_kind(a, b)
            continue
        try:
            same(a, b, lambda index=index: reference()[index], place)
        except Difference:
            # Among equal elements, which one has the gradient is open; what there is of it is not.
            if subject.name not in TIES or not np.array_equal(*(np.sort(numpy_of(g), None) for g in (a, b))):
                raise


def differentiable(subject: Subject) -> bool:
    return subject.entry.supports_autograd and (subject.dtype.startswith(("float", "bfloat", "complex")))


def gradient(subject: Subject) -> int:
    """The gradient of every input that asks for one."""
    if not differentiable(subject):
        return 0
    mine, count = found(subject.ours), 0
    for sample in subject.samples("gradient", grad=True):
        count += ran(sample, lambda: compare_gradients(subject, mine, sample, False))  # noqa: B023
    return count


def gradgrad(subject: Subject) -> int:
    """The gradient of the gradient."""
    if not (differentiable(subject) and subject.entry.supports_gradgrad) or subject.random:
        return 0
    mine, count = found(subject.ours), 0
    for sample in subject.samples("gradgrad", grad=True):
        count += ran(sample, lambda: compare_gradients(subject, mine, sample, True))  # noqa: B023
    return count


def counterpart(variant: Any) -> Callable[..., Any]:
    """Our function for a method or an in-place variant that an entry names."""
    if isinstance(variant, functools.partial):
        return functools.partial(counterpart(variant.func), *variant.args, **variant.keywords)
    if isinstance(variant, types.FunctionType) and (variant.__module__ or "").startswith("torch.nn"):
        return found(lambda: rebind(variant))
    if isinstance(variant, types.FunctionType) and variant.__module__.startswith("torch.testing"):
        return found(lambda: rebind(variant))
    return found(lambda: method_named(variant.__name__))


def inplace(subject: Subject) -> int:
    """The in-place form: values, identity, gradient."""
    theirs = subject.entry.get_inplace()
    if theirs is None:
        return 0
    mine, count = counterpart(theirs), 0
    for sample in subject.samples("inplace"):
        if sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
            continue
        count += ran(sample, lambda: compare_inplace(subject, mine, theirs, sample))  # noqa: B023
    if count and differentiable(subject) and subject.entry.supports_inplace_autograd and not subject.random:
        shadow = Subject(subject.entry, subject.dtype, subject.every)
        shadow.theirs = lambda x, *args, **kwargs: theirs(x.clone(), *args, **kwargs)

        def on_clone(x: Any, *args: Any, **kwargs: Any) -> Any:
            return mine(x.clone(), *args, **kwargs)

        for sample in list(subject.samples("inplace", grad=True))[:2]:
            if not sample.broadcasts_input:
                ran(sample, lambda: compare_gradients(shadow, on_clone, sample, False))  # noqa: B023
    return count


def compare_inplace(
    subject: Subject, mine: Callable[..., Any], theirs: Callable[..., Any], sample: Any
) -> bool:
    """One in-place call on both sides."""
    given = arguments(sample)
    converted, original = ours(given), copied(given)
    expected, error = attempt(call, theirs, original)
    if error is not None:
        agree_on_error(attempt(call, mine, converted)[1], error)
        return True
    actual = call(mine, converted)
    if expected is original[0] and actual is not converted[0]:
        raise Difference("the in-place form does not return its input")
    if subject.random or subject.unset:
        alike_in_kind(actual, expected)
        return True
    same(actual, expected, lambda: call(theirs, widened(given)), "in-place")
    same(
        converted[0],
        original[0],
        None if subject.dtype in ("float64",) else lambda: widest(theirs, given),
        "input",
    )
    return True


def widest(theirs: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """The input after an in-place call in double precision."""
    values = widened(given)
    call(theirs, values)
    return values[0]


def out(subject: Subject) -> int:
    """`out=`: of the right size, of a wrong one, of another dtype."""
    if not subject.entry.supports_out:
        return 0
    mine, count = found(subject.ours), 0
    for index, sample in enumerate(subject.samples("out")):
        for kind in ("right", "size", "dtype") if index == 0 and subject.dtype == "float32" else ("right",):
            count += ran(sample, lambda: compare_out(subject, mine, sample, kind))  # noqa: B023
    return count


def compare_out(subject: Subject, mine: Callable[..., Any], sample: Any, kind: str) -> bool:
    """One call with `out=` on both sides."""
    given = arguments(sample)
    if "out" in sample.kwargs:
        return False
    expected, error = attempt(call, subject.theirs, copied(given))
    tensors = leaves(expected, torch.Tensor)
    if error is not None or not tensors or isinstance(expected, list):
        return False

    def buffer(t: torch.Tensor) -> torch.Tensor:
        if kind == "size":
            return torch.ones((*t.shape, 2), dtype=t.dtype)
        if kind == "dtype":
            return torch.empty(t.shape, dtype=torch.int64 if t.dtype != torch.int64 else torch.uint8)
        return torch.ones(t.shape, dtype=t.dtype)

    single = isinstance(expected, torch.Tensor)
    theirs = buffer(expected) if single else tuple(map(buffer, tensors))
    made = ours(theirs)
    result, error = attempt(call, subject.theirs, copied(given), out=theirs)
    got, wrong = attempt(call, mine, ours(given), out=made)
    if error is not None:
        agree_on_error(wrong, error)
        return True
    if wrong is not None:
        raise Difference(f"out= ({kind}): {shown(wrong)}")
    if subject.random or subject.unset:
        alike_in_kind(made, theirs)
        return True
    if single and result is theirs and got is not made:
        raise Difference("the result is not `out`")
    try:
        if result is not None:  # PyTorch's copies of several views return nothing then
            same(got, result, lambda: call(subject.theirs, widened(given)), f"out= ({kind})")
        if kind != "dtype":
            same(
                made,
                theirs,
                lambda: call(subject.theirs, widened(given)),
                f"the tensor given as out= ({kind})",
            )
    except Difference:
        if subject.name not in REBUILT or kind == "dtype":
            raise
        REBUILT[subject.name](got, result, sample)
    return True


def method(subject: Subject) -> int:
    """The method, the operators of Python, and the aliases."""
    entry, count = subject.entry, 0
    theirs = entry.get_method()
    if theirs is not None:
        mine = counterpart(theirs)
        for sample in subject.samples("method"):
            if isinstance(sample.input, torch.Tensor):
                count += ran(sample, lambda: compare_calls(subject, mine, theirs, sample, "method"))  # noqa: B023
    operators = [entry.operator_variant, entry.inplace_operator_variant]
    for which, function in enumerate(operators):
        if function is None or not callable(function):
            continue
        for sample in list(subject.samples("method"))[:2]:
            if sample.kwargs or len(sample.args) > 1 or (which and sample.broadcasts_input):
                continue
            where = f"operator.{function.__name__}"
            count += ran(sample, lambda: compare_calls(subject, function, function, sample, where))  # noqa: B023
    for alias in entry.aliases:
        if alias.op is None:
            continue
        mine = found(lambda: named(alias.name.removeprefix("torch.")))  # noqa: B023
        for variant in (alias.method_variant, alias.inplace_variant):
            if variant is not None:
                counterpart(variant)
        for sample in list(subject.samples("method"))[:1]:
            count += ran(sample, lambda: compare_calls(subject, mine, alias.op, sample, alias.name))  # noqa: B023
    return count


def errors(subject: Subject) -> int:
    """The class of the error of inputs that must fail."""
    if subject.entry.error_inputs_func is None:
        return 0
    mine, count = found(subject.ours), 0
    seed()
    try:
        given = list(subject.entry.error_inputs("cpu"))
    except Exception:
        return 0
    for wrong in given:
        sample = wrong.sample_input
        count += ran(sample, lambda: compare_error(subject, mine, sample))  # noqa: B023
    return count


def compare_error(subject: Subject, mine: Callable[..., Any], sample: Any) -> bool:
    """One input that must fail, on both sides."""
    given = arguments(sample)
    converted, original = ours(given), copied(given)
    _, theirs = attempt(call, subject.theirs, original)
    if theirs is None:
        return False
    _, error = attempt(call, mine, converted)
    if error is None:
        raise Difference(f"no error, expected {shown(theirs)}")
    if type(error).__name__ != type(theirs).__name__:
        raise Difference(f"{shown(error)}; expected {shown(theirs)}")
    return True


FACETS: dict[str, Callable[[Subject], int]] = {
    "forward": forward,
    "gradient": gradient,
    "inplace": inplace,
    "out": out,
    "method": method,
    "errors": errors,
    "gradgrad": gradgrad,
}


def run(subject: Subject, facet: str) -> tuple[str, str, int]:
    """A facet's verdict: "agree", "differ" or "none" (it does not apply), the difference, and the samples that agreed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            count = FACETS[facet](subject)
        except Difference as error:
            return "differ", str(error), 0
    return ("agree" if count else "none"), "", count
