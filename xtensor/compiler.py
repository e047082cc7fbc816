"""`torch.compile` and `torch.compiler`: every operator is compiled by XLA already, so functions stay as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """The function or module itself: it runs operator by operator, each a program that XLA has compiled.

    Differs from PyTorch: nothing is traced, so nothing can break a graph; a module keeps its class and its names.
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, disable=disable
        )
    return model


def _itself(function: Any = None, **options: Any) -> Any:
    return (lambda f: f) if function is None else function


def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
    """The function itself: nothing is compiled as a whole."""
    return _itself(fn)


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


assume_constant_result = allow_in_graph


def is_compiling() -> bool:
    """False: nothing is traced."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Nothing to forget."""


def cudagraph_mark_step_begin() -> None:
    """Nothing: there are no CUDA graphs."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """None: XLA is the only one."""
    return []


class set_stance:
    """A context and decorator that changes nothing."""

    def __init__(self, stance: str = "default", **options: Any) -> None:
        self.stance = stance

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function
