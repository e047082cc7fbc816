"""Operators that programs add, as classes and modes below autograd are asked about them: their forms, schemas and own rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...engine.modes import DISPATCH_MODE, state
from .aten import AliasInfo, Argument, FunctionSchema, OpOverload
from .dispatching import asked_about, below, dispatched

__all__ = ["AddedOverload", "asked_below", "parsed"]


class AddedOverload(OpOverload):
    """One form of an operator that a program added: `torch.ops.<namespace>.<name>.default`."""

    @property
    def _schema(self) -> FunctionSchema:  # pyright: ignore[reportIncompatibleVariableOverride]
        packet: Any = self._overloadpacket
        shown = "" if self._overloadname == "default" else self._overloadname
        return parsed(f"{self.namespace}::{self._opname}", shown, packet.schema or "() -> ()")

    @property
    def op(self) -> Callable[..., Any]:
        """What a call runs."""
        return self

    @property
    def is_view(self) -> bool:
        """Whether the result shares the first argument's memory, as its schema says."""
        return any(a.alias_info is not None and not a.alias_info.is_write for a in self._schema.arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        packet: Any = self._overloadpacket
        return packet.asked(self, args, kwargs)

    def __reduce__(self) -> Any:
        packet: Any = self._overloadpacket
        return getattr, (packet, self._overloadname)


def pieces(text: str) -> list[str]:
    """A list of a schema, cut at the commas outside of brackets."""
    return [part.strip() for part in re.split(r",(?![^\[(]*[\])])", text) if part.strip()]


def parsed(name: str, overload: str, schema: str) -> FunctionSchema:
    """The schema that a text such as `(Tensor x, int n=1) -> Tensor` spells."""
    inside, _, after = schema[schema.index("(") :].rpartition("->")
    arguments: list[Argument] = []
    keyword = False
    for part in pieces(inside.strip()[1:-1]):
        if part == "*":
            keyword = True
            continue
        declared, equals, default = part.partition("=")
        kind, _, label = declared.strip().rpartition(" ")
        plain, alias = alias_of(kind)
        arguments.append(Argument(label, plain, default.strip() if equals else None, keyword, alias))
    results = after.strip()
    listed = pieces(results[1:-1]) if results.startswith("(") else [results]
    returns = [Argument("", kind, alias=alias) for kind, alias in map(alias_of, listed)]
    return FunctionSchema(name, overload, arguments, returns)


def alias_of(kind: str) -> tuple[str, AliasInfo | None]:
    """The type of an argument without the mark of what it shares, and that mark."""
    found = re.search(r"\((\w+)(!?)[^)]*\)", kind)
    if found is None:
        return kind, None
    return kind.replace(found[0], "", 1), AliasInfo(bool(found[2]))


def asked_below(overload: OpOverload, rules: dict[type, Callable[..., Any]], args: Any, kwargs: Any) -> Any:
    """What the modes and classes that are asked below autograd make of a call; NotImplemented where none is asked."""
    if not state.mode & DISPATCH_MODE and asked_about((*args, *kwargs.values())) is None:
        return NotImplemented
    relevant: Sequence[Any] = asked_about((*args, *kwargs.values())) or []
    if rules:
        kinds = tuple([type(value) for value in relevant])
        if state.mode & DISPATCH_MODE:
            mode = state.dispatch_modes[-1]
            rule = rules.get(type(mode))
            if rule is not None:
                with below(state.dispatch_modes[:-1]):
                    return rule(mode, overload, kinds, args, kwargs)
        elif (rule := next((rules[k] for k in kinds if k in rules), None)) is not None:
            with below(state.dispatch_modes):
                return rule(kinds[0], overload, kinds, args, kwargs)
    return dispatched(overload, relevant, args, kwargs)
