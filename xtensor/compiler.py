"""`torch.compile` and `torch.compiler`: functions captured as one program, and how they are told not to be."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from . import capture
from .compiling.explain import Explanation, explain
from .compiling.function import Compiled, forget_all, stance
from .compiling.modules import OptimizedModule
from .nn.modules.module import Module

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "explain",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]

BACKENDS = ("inductor", "xla")

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Explains(Protocol[P, R_co]):
    """A function with `explain` at its side, as `compile` is one."""

    explain: Callable[[Any], Callable[..., Explanation]]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


def explained(function: Callable[P, R_co]) -> Explains[P, R_co]:
    made = cast("Explains[P, R_co]", function)
    made.explain = explain
    return made


@explained
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
) -> Any:
    """A function as one XLA program: forward, backward, optimizer step, writes and random numbers of its eager code.

    The first call runs as it is. The second is captured: the Python code runs once, and from then on the program runs wherever the arguments,
    modes, modules and the numbers that the function read are as they were. What cannot be captured (a value read by `.item()`, a list
    appended to) runs eagerly, with one warning that names the line; with `fullgraph` it raises RuntimeError.

    Of a module it gives an `OptimizedModule` around it; `model.compile()` compiles the module's own calls instead.

    name: what warnings and reports call it. recompile_limit: how many programs are captured (8), after which it runs eagerly, with a warning.

    Differs from PyTorch: any `backend` but "eager" (or a function as one), `mode` and `options` give the same program of XLA's; each call of
    `compile` counts and keeps its own programs, as with `isolate_recompiles`; past the limit `fullgraph` warns too.

    Raises: RuntimeError for what cannot be called.

    >>> @xtensor.compile
    ... def double(x):
    ...     return x * 2
    >>> double(xtensor.ones(2)), double(xtensor.ones(2))
    (tensor([2., 2.]), tensor([2., 2.]))
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            name=name,
            disable=disable,
            recompile_limit=recompile_limit,
            isolate_recompiles=isolate_recompiles,
        )
    if not callable(model):
        raise RuntimeError(f"torch.compile expects a function or a module, but got {type(model).__name__}")
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, backend == "eager", fullgraph, dynamic, recompile_limit, name)
    if backend == "eager":
        return model
    if isinstance(model, (type, types.BuiltinFunctionType)) or getattr(model, "_xt_disabled", False):
        return model
    return compiled(model, fullgraph, dynamic, recompile_limit, name)


def compiled(
    function: Callable[..., Any],
    fullgraph: bool = False,
    dynamic: bool | None = None,
    recompile_limit: int | None = None,
    name: str | None = None,
) -> Callable[..., Any]:
    """A function's captured form, as a function of its name."""
    inner = getattr(function, "_xt_compiled", None)
    made = Compiled(
        inner.function if inner is not None else function, fullgraph, dynamic, recompile_limit, name
    )

    def run(*args: Any, **kwargs: Any) -> Any:
        return made(*args, **kwargs)

    functools.update_wrapper(run, function, updated=())
    run._xt_compiled = made  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    run._torchdynamo_orig_callable = made.function  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return run


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """A function that ends a capture that reaches it: it runs eagerly, and what calls it too.

    >>> @xtensor.compiler.disable
    ... def shown(x):
    ...     print(x.sum().item())
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, **options)
    if isinstance(fn, Module):
        fn._compiled_call_impl = None
        fn.forward = disable(fn.forward)
        return fn

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        watcher = capture.running()
        if watcher is not None:
            watcher.refuse(f"it calls {getattr(fn, '__qualname__', fn)}, which is not to be compiled")
        return fn(*args, **kwargs)

    run._xt_disabled = True  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    return run


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


assume_constant_result = allow_in_graph


def is_compiling() -> bool:
    """Whether a function is being captured."""
    return capture.running() is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """False: programs are not exported."""
    return False


def reset() -> None:
    """Forget the programs of all functions, and why some run eagerly."""
    forget_all()


def cudagraph_mark_step_begin() -> None:
    """Nothing: a program of XLA's is launched as a whole."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names that `compile` knows; all are XLA."""
    return list(BACKENDS)


class set_stance:
    """How compiled functions run from now on, within the block, or in the decorated function.

    "default"; "force_eager": as they are; "eager_on_recompile": as they are where no program fits; "fail_on_recompile": RuntimeError there.
    """

    def __init__(self, stance: str = "default", **options: Any) -> None:
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}")
        self.stance = stance
        self.before = _stance[0]
        _stance[0] = stance

    def __enter__(self) -> None:
        _stance[0] = self.stance

    def __exit__(self, *exc: object) -> None:
        _stance[0] = self.before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _stance[0] = self.before

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return function(*args, **kwargs)

        return run


_stance = stance
STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")
