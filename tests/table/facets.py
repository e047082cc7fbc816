"""What is tested of a row. Each facet is a function of a row; an AssertionError carries the call that failed."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from xtensor import devices, dtypes
from xtensor.tensor import Tensor, wrap

from . import ALL, Row
from .bridge import (
    GRADABLE,
    OURS,
    THEIRS,
    Library,
    declared,
    flat,
    operator_named,
    reference_of,
    torch,
)
from .samples import Sample, T, memory_of

EPS = {
    "float16": 1e-3,
    "bfloat16": 8e-3,
    "float32": 1.2e-7,
    "complex64": 1.2e-7,
    "float64": 2.3e-16,
    "complex128": 2.3e-16,
}
# In units of the dtype's rounding: what two correct implementations of one function may differ by.
ROUNDINGS = {
    "float16": 4,
    "bfloat16": 4,
    "float32": 64,
    "complex64": 128,
    "float64": 20_000,
    "complex128": 20_000,
}


@contextlib.contextmanager
def showing(row: Row, sample: Sample, dtype: str, what: str) -> Iterator[None]:
    """Add the call to whatever fails inside."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{what}: {row.name}{sample} with {dtype}")
        raise


def key_of(row: Row, sample: Sample) -> str:
    return f"{row.name}{sample}"


def attempt(function: Any, args: Any, kwargs: Any) -> tuple[Any, BaseException | None]:
    """The result or the error; PyTorch's warnings are not what is compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs), None
        except Exception as error:
            return None, error


def quietly(function: Any, args: Any, kwargs: Any) -> Any:
    """The result; warnings are tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


NUMPY_DTYPES = ("float32", "float64", "complex64", "complex128")
LIMITS = (
    "not implemented for",
    "not supported for",
    "not support",
    "Unsupported dtype",
    "Expected floating",
    "is not implemented",
    "INTERNAL ASSERT",
    "view size is not compatible",
    "Expected X.is_contiguous",
)


def unimplemented(error: BaseException) -> bool:
    """Whether PyTorch's error says only that something of its own is missing: we may do more."""
    return any(sign in str(error) for sign in LIMITS)


def assert_same_error(ours: BaseException | None, theirs: BaseException) -> None:
    if unimplemented(theirs):
        return
    assert ours is not None, f"PyTorch raises {type(theirs).__name__}: {theirs}"
    related = isinstance(ours, type(theirs)) or isinstance(theirs, type(ours))
    assert related, f"{type(ours).__name__}: {ours}; PyTorch raises {type(theirs).__name__}: {theirs}"


def assert_close(actual: np.ndarray, expected: np.ndarray, dtype: str, tolerance: float = 1.0) -> None:
    if actual.dtype.kind not in "fc":
        np.testing.assert_array_equal(actual, expected)
        return
    rtol = EPS[dtype] * ROUNDINGS[dtype] * tolerance
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol, equal_nan=True)


def assert_same(
    row: Row,
    ours: Any,
    theirs: Any,
    library: Library = THEIRS,
    computed_in: str | None = None,
    strides: bool = True,
) -> None:
    """Structure, dtype, shape, strides and values of two results."""
    left, right = flat(ours), flat(theirs)
    assert len(left) == len(right), f"{len(left)} results, expected {len(right)}"
    for a, b in zip(left, right, strict=True):
        if isinstance(a, Tensor) or isinstance(b, library.tensor):
            same = slice(None) if strides else slice(2)
            assert OURS.describe(a)[same] == library.describe(b)[same], "dtype, shape, strides"
            if not (row.random or row.empty):
                name = str(a.dtype).rpartition(".")[2]
                if computed_in in EPS and EPS.get(name, 1) < EPS[computed_in]:
                    name = computed_in
                assert_close(OURS.values(a), library.values(b), name, row.tolerance)
        elif row.random or row.empty:
            assert type(a).__name__ == type(b).__name__
        elif isinstance(b, float):
            assert a == pytest.approx(b, rel=1e-5, nan_ok=True)
        else:
            assert str(a).replace("xtensor", "torch") == str(b).replace("xtensor", "torch")


def dtypes_of(row: Row, full: bool) -> list[tuple[str, bool]]:
    """The dtypes to try, and whether with every sample."""
    found = [(row.dtype, True)]
    for name in dict.fromkeys((*row.others, *(ALL if full and row.others else ()))):
        if name != row.dtype:
            found.append((name, full))
    return found


# -- value


def value(row: Row, full: bool) -> None:
    """Values, dtypes, shapes, strides and errors against PyTorch; without it, values against NumPy."""
    function = operator_named(row.name)
    for dtype, every in dtypes_of(row, full):
        for sample in row.samples if every else row.samples[:1]:
            with showing(row, sample, dtype, "value"):
                args, kwargs, _ = OURS.arguments(sample, key_of(row, sample), dtype)
                if torch is not None:
                    theirs, error = attempt(
                        reference_of(row), *THEIRS.arguments(sample, key_of(row, sample), dtype)[:2]
                    )
                    if error is not None:
                        _, own = attempt(function, args, kwargs)
                        assert_same_error(own, error)
                        continue
                    ours = quietly(function, args, kwargs)
                    assert_same(row, ours, theirs, strides=row.strides)
                else:
                    ours, error = attempt(function, args, kwargs)
                    if error is not None:
                        assert type(error).__module__ == "builtins", repr(error)
                        continue
                    against_numpy(row, sample, dtype, args, kwargs, ours)
                if row.check is not None:
                    row.check(args, kwargs, ours)


def against_numpy(row: Row, sample: Sample, dtype: str, args: Any, kwargs: Any, ours: Any) -> None:
    """The values against the row's NumPy function, in dtypes that NumPy computes as PyTorch does, where it takes the call."""
    if row.numpy is None or row.random or row.empty or dtype not in (row.dtype, *NUMPY_DTYPES):
        return
    if any(isinstance(v, dtypes.dtype) for v in kwargs.values()):
        return  # NumPy's `dtype=` converts in other places

    def array(value: Any) -> Any:
        if isinstance(value, Tensor):
            return OURS.values(value)
        return type(value)([array(v) for v in value]) if type(value) in (list, tuple) else value

    converted = [array(a) for a in args], {k: array(v) for k, v in kwargs.items()}
    with np.errstate(all="ignore"):
        expected, error = attempt(row.numpy, *converted)
    if isinstance(error, (ValueError, TypeError, IndexError)):
        return  # NumPy refuses what PyTorch does not, such as a dimension of a 0-d array
    if error is not None:
        raise error
    for a, b in zip(flat(ours), flat(expected), strict=True):
        if isinstance(a, Tensor):
            name = str(a.dtype).rpartition(".")[2]
            b = np.asarray(b)
            assert tuple(a.shape) == b.shape, "shape"
            assert_close(OURS.values(a), b.astype(OURS.values(a).dtype), name, row.tolerance)
        else:
            assert a == b


# -- layouts


LAYOUTS = ("transposed", "sliced", "expanded")


def layouts(row: Row, full: bool) -> None:
    """The same values from other memory: results must not depend on it, except in their strides."""
    if not row.layouts:
        return
    function = operator_named(row.name)
    chosen = [s for s in row.samples if any(len(t.shape) > 1 and 0 not in t.shape for t in s.tensors)]
    for sample in chosen if full else chosen[:2]:
        for layout in LAYOUTS if row.layouts is True else row.layouts:
            changed = sample.map(lambda t, layout=layout: t.but(layout=layout) if t.values is None else t)
            with showing(row, changed, row.dtype, "layouts"):
                args, kwargs, _ = OURS.arguments(changed, key_of(row, sample), row.dtype)
                if torch is None:
                    ours, error = attempt(function, args, kwargs)
                    if error is None:
                        against_numpy(row, changed, row.dtype, args, kwargs, ours)
                    continue
                theirs, error = attempt(
                    reference_of(row), *THEIRS.arguments(changed, key_of(row, sample), row.dtype)[:2]
                )
                if error is not None:
                    assert_same_error(attempt(function, args, kwargs)[1], error)
                    continue
                assert_same(row, quietly(function, args, kwargs), theirs, strides=row.strides)


# -- gradient


def double(dtype: str) -> str:
    return {"complex64": "complex128"}.get(dtype, "float64" if dtype in GRADABLE else dtype)


def cotangents(library: Library, outputs: list[Any], key: str) -> list[Any]:
    made = []
    for i, out in enumerate(outputs):
        name = str(out.dtype).rpartition(".")[2]
        made.append(library.make(memory_of(T(*out.shape), name, f"{key}/cotangent {i}"), name))
    return made


def differentiate(
    library: Library, function: Any, sample: Sample, key: str, dtype: str, second: bool
) -> dict[str, list[Any]] | None:
    """First (and second) gradients of a call with respect to its inputs; None where nothing asks for one."""
    args, kwargs, leaves = library.arguments(sample, key, dtype, grad=True)
    if not leaves:
        return None
    result = function(*args, **kwargs)
    outputs = [o for o in flat(result) if isinstance(o, library.tensor)]
    asking = [o.requires_grad for o in outputs]
    outputs = [o for o in outputs if o.requires_grad]
    if not outputs:
        return {"requires_grad": asking}
    weights = cotangents(library, outputs, key)
    if second:
        for w in weights:
            w.requires_grad_()
    first = library.grad(outputs, leaves, weights, second)
    found: dict[str, list[Any]] = {"requires_grad": asking, "first": first}
    again = [g for g in first if g is not None and g.requires_grad]
    if second and again:
        inputs = [*leaves, *weights]
        found["second"] = library.grad(again, inputs, cotangents(library, again, key + "/second"), False)
        found["inputs"] = inputs
    return found


def gradient(row: Row, full: bool) -> None:
    """The gradient of every input; against PyTorch, kinks included, or finite differences."""
    differentiated(row, full, second=False)


def second_gradient(row: Row, full: bool) -> None:
    """The gradient of the gradient."""
    if row.second:
        differentiated(row, full, second=True)


def differentiated(row: Row, full: bool, second: bool) -> None:
    if not row.grad or row.random or row.empty:
        return
    function = operator_named(row.name)
    chosen = list(row.samples)
    if not full:
        # The plainest sample, and for first gradients the one with kinks.
        chosen = chosen[:1] if second else chosen[:2] + [s for s in chosen[2:] if not s.smooth][:1]
    main = double(row.dtype)
    for dtype in (
        (main, "complex128") if full and "complex64" in row.others and row.dtype == "float32" else (main,)
    ):
        for sample in chosen:
            with showing(row, sample, dtype, "second gradient" if second else "gradient"):
                if torch is not None and not row.differences:
                    compare_gradients(row, function, sample, dtype, second)
                elif row.slopes and sample.smooth and dtype == "float64":
                    with suppress_undefined():
                        finite_differences(row, function, sample, dtype, second)


def compare_gradients(row: Row, function: Any, sample: Sample, dtype: str, second: bool) -> None:
    key = key_of(row, sample)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = differentiate(THEIRS, reference_of(row), sample, key, dtype, second)
        except Exception:
            return  # the value facet compares errors
        ours = differentiate(OURS, function, sample, key, dtype, second)
    if ours is None or theirs is None:
        return
    assert ours["requires_grad"] == theirs["requires_grad"], "which results require grad"
    for i, (a, b) in enumerate(zip(ours.get("first", ()), theirs.get("first", ()), strict=True)):
        with noting(f"gradient of tensor {i}"):
            same_gradient(a, b, row)
    if not second or ("second" not in ours and "second" not in theirs):
        return
    count = len(ours.get("second") or theirs["second"])
    pairs = zip(ours.get("second", [None] * count), theirs.get("second", [None] * count), strict=True)
    for i, (a, b) in enumerate(pairs):
        with noting(f"second gradient of tensor {i} (inputs first, then the gradients given)"):
            same_gradient(a, b, row, zero_is_none=True)


@contextlib.contextmanager
def suppress_undefined() -> Iterator[None]:
    """An operator whose derivative PyTorch does not define raises, and so do we: the gradient facet compares that."""
    try:
        yield
    except RuntimeError as error:
        if "derivative for" not in str(error):
            raise


@contextlib.contextmanager
def noting(note: str) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        error.add_note(note)
        raise


def same_gradient(a: Any, b: Any, row: Row, zero_is_none: bool = False) -> None:
    if zero_is_none and (a is None or b is None):
        known = OURS.values(a) if a is not None else THEIRS.values(b) if b is not None else np.zeros(())
        assert not np.nan_to_num(known).any(), f"PyTorch's is {b}, ours {a}"
        return
    assert (a is None) == (b is None), f"PyTorch's is {b}, ours {a}"
    if a is not None:
        assert OURS.describe(a)[:2] == THEIRS.describe(b)[:2], "dtype, shape"
        assert_close(OURS.values(a), THEIRS.values(b), OURS.describe(a)[0], row.grad_tolerance)


def finite_differences(row: Row, function: Any, sample: Sample, dtype: str, second: bool) -> None:
    """Directional derivatives along random directions, against the gradient's own product with them."""
    key = key_of(row, sample)
    args, kwargs, leaves = OURS.arguments(sample, key, dtype, grad=True)
    if not leaves:
        return
    result, error = attempt(function, args, kwargs)
    if error is not None:
        return  # the value facet has the errors
    outputs = [o for o in flat(result) if isinstance(o, Tensor) and o.requires_grad]
    # Differences need every digit, and real numbers.
    if not outputs or any(o.dtype is not dtypes.float64 for o in outputs):
        return
    weights = [OURS.values(w) for w in cotangents(OURS, outputs, key)]
    start = [OURS.values(leaf) for leaf in leaves]

    def at(values: list[np.ndarray]) -> tuple[list[Any], list[Any]]:
        replaced = iter(values)
        made: list[Any] = []

        def fresh(t: T) -> T:
            name = t.dtype or dtype
            return t.but(values=next(replaced), dtype=t.dtype) if t.grad and name in GRADABLE else t

        a, k, inputs = OURS.arguments(sample.map(fresh), key, dtype, grad=True, made=made)
        return [o for o in flat(quietly(function, a, k)) if isinstance(o, Tensor) and o.requires_grad], inputs

    def scalar(values: list[np.ndarray]) -> float:
        return float(sum((OURS.values(o) * w).sum() for o, w in zip(at(values)[0], weights, strict=True)))

    def first(values: list[np.ndarray], keep: bool) -> tuple[list[Any], list[Any]]:
        outs, inputs = at(values)
        given = [wrap(devices.put(w, devices.device("cpu"))) for w in weights]
        return OURS.grad(outs, inputs, given, keep), inputs

    def product(gradients: list[Any], directions: list[np.ndarray]) -> float:
        return float(
            sum(
                (OURS.values(g) * d).sum()
                for g, d in zip(gradients, directions, strict=True)
                if g is not None
            )
        )

    rng = np.random.default_rng(7)
    directions = [rng.uniform(-1, 1, s.shape) for s in start]
    step = 1e-6

    def moved(sign: int) -> list[np.ndarray]:
        return [s + sign * step * d for s, d in zip(start, directions, strict=True)]

    if not second:
        numeric = (scalar(moved(1)) - scalar(moved(-1))) / (2 * step)
        np.testing.assert_allclose(product(first(start, False)[0], directions), numeric, rtol=1e-5, atol=1e-6)
        return
    mixing = [rng.uniform(-1, 1, s.shape) for s in start]
    found, inputs = first(start, True)
    again = [(g, m) for g, m in zip(found, mixing, strict=True) if g is not None and g.requires_grad]
    if not again:
        return
    given = [wrap(devices.put(m, devices.device("cpu"))) for _, m in again]
    exact = product(OURS.grad([g for g, _ in again], inputs, given, False), directions)
    numeric = (product(first(moved(1), False)[0], mixing) - product(first(moved(-1), False)[0], mixing)) / (
        2 * step
    )
    np.testing.assert_allclose(exact, numeric, rtol=1e-5, atol=1e-6)


# -- in-place


def inplace(row: Row, full: bool) -> None:
    """The in-place form: value, identity, version, strides, what a base sees, gradient."""
    name = row.name.rpartition(".")[2] + "_"
    method = getattr(Tensor, name, None)
    if method is None or row.random or row.empty or "inplace" in row.without:
        return
    reference = getattr(torch.Tensor, name, None) if torch is not None else None
    for sample in row.samples if full else row.samples[:3]:
        if not sample.args or not isinstance(sample.args[0], T):
            continue
        with showing(row, sample, row.dtype, "in-place"):
            written = written_inplace(OURS, method, sample, key_of(row, sample), row.dtype, False)
            expected = expected_inplace(row, reference, sample)
            if expected is None:
                continue
            if isinstance(expected, Exception):
                assert isinstance(written, Exception), f"expected {expected!r}"
                assert_same_error(written, expected)
                continue
            if tuple(expected[2].shape) != sample.args[0].shape:
                continue  # PyTorch resizes the target, with a warning that it will not
            if isinstance(written, Exception):
                raise written
            compare_written(row, written, expected)
    sample = row.samples[0]
    if (
        reference is not None
        and row.grad
        and not row.differences
        and sample.args
        and isinstance(sample.args[0], T)
    ):
        inplace_gradients(row, method, reference, sample)


def written_inplace(
    library: Library, method: Any, sample: Sample, key: str, dtype: str, through: bool
) -> Any:
    """(result is the target, versions, target, base) after the call on a row of a larger base; or the error."""
    args, kwargs, _ = library.arguments(sample, key, dtype)
    target = args[0]
    sizes = tuple(target.shape)
    first = memory_of(T(2, *sizes, low=0.1, high=0.9), str(target.dtype).rpartition(".")[2], key + "/base")
    base = library.make(first, str(target.dtype).rpartition(".")[2])
    view = base.select(0, 1)
    before, before_view = target._version, view._version
    result, error = attempt(method, args, kwargs)
    if error is not None:
        return error
    result_view, error = attempt(method, [view, *args[1:]], kwargs)
    if error is not None:
        return error
    return (
        result is target and result_view is view,
        (target._version - before, view._version - before_view, base._version - before_view),
        target,
        base,
    )


def expected_inplace(row: Row, reference: Any, sample: Sample) -> Any:
    if reference is not None:
        return written_inplace(THEIRS, reference, sample, key_of(row, sample), row.dtype, False)
    # PyTorch has no word on it: what the function says, where the target can hold it; a view's in-place form moves it.
    if getattr(declared(row.name), "kind", None) != "pointwise":
        return None
    args, kwargs, _ = OURS.arguments(sample, key_of(row, sample), row.dtype)
    result, error = attempt(operator_named(row.name), args, kwargs)
    if error is not None:
        return error
    if tuple(result.shape) != tuple(args[0].shape) or not dtypes.can_cast(result.dtype, args[0].dtype):
        return RuntimeError("a result that the target cannot hold")
    if result.dtype is not args[0].dtype:
        return None
    return (True, (1, 1, 1), result, None)


def compare_written(row: Row, ours: Any, theirs: Any) -> None:
    assert ours[0], "the result is the target itself"
    assert ours[1] == theirs[1], f"versions rose by {ours[1]}, expected {theirs[1]}"
    assert_same(row, ours[2], theirs[2], THEIRS if theirs[3] is not None else OURS)
    if theirs[3] is not None:
        with noting("the base of the view that was written"):
            assert_same(row, ours[3], theirs[3])


def inplace_gradients(row: Row, method: Any, reference: Any, sample: Sample) -> None:
    """Gradients through a write to a computed tensor, and through a write to a view of one."""
    dtype = double(row.dtype)
    key = key_of(row, sample)

    def run(library: Library, call: Any, through_view: bool) -> Any:
        args, kwargs, leaves = library.arguments(sample, key, dtype, grad=True)
        if not leaves:
            return None
        target = args[0]
        copied = target * library.make(memory_of(T(values=1.0), dtype, ""), dtype)
        written = copied.transpose(0, -1) if through_view and copied.dim() > 1 else copied
        if written is not copied:
            call(
                written,
                *[a.transpose(0, -1) if i in same(args, target) else a for i, a in enumerate(args[1:])],
                **kwargs,
            )
        else:
            call(copied, *args[1:], **kwargs)
        if not copied.requires_grad:
            return []
        return library.grad([copied], leaves, cotangents(library, [copied], key), False)

    def same(args: list[Any], target: Any) -> list[int]:
        return [
            i for i, a in enumerate(args[1:]) if hasattr(a, "shape") and tuple(a.shape) == tuple(target.shape)
        ]

    op = declared(row.name)
    for through in (False, True) if op is not None and op.kind == "pointwise" else (False,):
        with showing(row, sample, dtype, f"gradient of the in-place form{' through a view' * through}"):
            theirs, error = attempt(run, (THEIRS, reference, through), {})
            ours, own = attempt(run, (OURS, method, through), {})
            if error is not None:
                assert_same_error(own, error)
                continue
            if own is not None:
                raise own
            for a, b in zip(ours or (), theirs or (), strict=True):
                same_gradient(a, b, row, zero_is_none=True)


# -- out=


def out(row: Row, full: bool) -> None:
    """`out=`: an empty tensor, one of the right size (strided too), of the wrong size (warns), of other dtypes."""
    function = operator_named(row.name)
    if not takes_out(function):
        return
    for sample in row.samples if full else row.samples[:1]:
        with showing(row, sample, row.dtype, "out="):
            args, kwargs, _ = OURS.arguments(sample, key_of(row, sample), row.dtype)
            plain, error = attempt(function, args, kwargs)
            if error is not None:
                continue
            results = [r for r in flat(plain) if isinstance(r, Tensor)]
            for kind in row.outs:
                with noting(f"out of kind '{kind}'"):
                    one_out(row, function, sample, results, kind)


def takes_out(function: Any) -> bool:
    return "out" in inspect.signature(function).parameters or getattr(function, "takes_out", False)


def outs_for(library: Library, results: list[Any], kind: str) -> list[Any]:
    made = []
    for r in results:
        dtype = kind if kind in ALL else str(r.dtype).rpartition(".")[2]
        shape = tuple(r.shape)
        if kind == "empty":
            shape = (0,)
        elif kind == "wrong":
            shape = (4, *shape)
        t = T(*shape, low=0.1, high=0.9, layout="transposed" if kind == "strided" else "contiguous")
        made.append(library.make(memory_of(t, dtype, "out"), dtype))
    return made


def one_out(row: Row, function: Any, sample: Sample, results: list[Any], kind: str) -> None:
    args, kwargs, _ = OURS.arguments(sample, key_of(row, sample), row.dtype)
    targets = outs_for(OURS, results, kind)
    versions = [t._version for t in targets]
    ours, error, warned = write_to(function, args, kwargs, targets)
    if torch is not None:
        theirs_targets = outs_for(THEIRS, results, kind)
        arguments = THEIRS.arguments(sample, key_of(row, sample), row.dtype)
        theirs, refused, warned_there = write_to(reference_of(row), *arguments[:2], theirs_targets)
        if refused is not None:
            if "out" in str(refused) and isinstance(refused, TypeError):
                return  # PyTorch's takes no out=
            assert_same_error(error, refused)
            return
        if error is not None:
            raise error
        assert warned or not warned_there, "PyTorch warns that `out` was resized"
        assert_same(row, ours, theirs, computed_in=row.dtype, strides=row.strides)
    elif error is not None:
        assert kind in ("int32", "float64", "complex128"), repr(error)
        return
    elif not (row.random or row.empty):
        for target, result in zip(targets, results, strict=True):
            assert tuple(target.shape) == tuple(result.shape), "shape"
            values = OURS.values(result).astype(OURS.values(target).dtype)
            names = [str(t.dtype).rpartition(".")[2] for t in (target, result)]
            coarser = max(names, key=lambda name: EPS.get(name, 0))
            assert_close(OURS.values(target), values, coarser)
    assert all(a is b for a, b in zip(flat(ours), targets, strict=True)), "the result is `out` itself"
    for target, version in zip(targets, versions, strict=True):
        assert target._version > version, "writing to `out` counts as a write"


def write_to(function: Any, args: Any, kwargs: Any, targets: list[Any]) -> tuple[Any, Any, bool]:
    given = targets[0] if len(targets) == 1 else tuple(targets)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, error = function(*args, **kwargs, out=given), None
        except Exception as e:
            result, error = None, e
    return result, error, any("resized" in str(w.message) for w in caught)


# -- variants


def variants(row: Row, full: bool) -> None:
    """The method, in-place form and `out=` that PyTorch has; a method gives what the function gives."""
    name = row.name.rpartition(".")[2]
    function = operator_named(row.name)
    op = declared(row.name)
    if op is not None:
        for alias in op.aliases:
            if op.is_method:
                assert getattr(Tensor, alias) is getattr(Tensor, name), f"alias {alias}"
    if torch is not None:
        for variant, method in (("method", name), ("inplace", name + "_")):
            if hasattr(torch.Tensor, method) and variant not in row.without:
                assert hasattr(Tensor, method), f"PyTorch has Tensor.{method}"
        public = getattr(torch, name, None)
        has_out = public is not None and " out=" in (public.__doc__ or "").split("\n\n")[0].split("->")[0]
        if has_out and "out" not in row.without:
            assert takes_out(function), f"PyTorch's {name} takes out="
    sample = row.samples[0]
    if (
        "method" not in row.without
        and hasattr(Tensor, name)
        and sample.args
        and isinstance(sample.args[0], T)
    ):
        with showing(row, sample, row.dtype, "method"):
            args, kwargs, _ = OURS.arguments(sample, key_of(row, sample), row.dtype)
            plain, error = attempt(function, args, kwargs)
            if isinstance(vars(Tensor).get(name), property):
                called, own = attempt(getattr, (args[0], name), {})
            else:
                called, own = attempt(getattr(args[0], name), args[1:], kwargs)
            if error is not None or own is not None:
                assert type(own) is type(error), f"the method: {own!r}; the function: {error!r}"
            else:
                assert_same(row, called, plain, OURS)


FACETS = {
    "value": value,
    "layouts": layouts,
    "gradient": gradient,
    "second_gradient": second_gradient,
    "inplace": inplace,
    "out": out,
    "variants": variants,
}
