"""One step of a graph: what is called, with which arguments, and who uses what it gives."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

from ..compat.assertions import _assert
from ..nn.modules.module import Module
from ..ops.create.distributions import bernoulli, binomial, multinomial, normal, poisson
from ..ops.create.random import rand, rand_like, randint, randint_like, randn, randn_like, randperm
from .immutable_collections import immutable_dict, immutable_list
from .names import shown_target, type_repr
from .operator_schemas import ArgsKwargsPair, normalize_function, normalize_module

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any
"""What a node takes: nodes, plain values, and tuples, lists, dicts and slices of them."""
Target = Callable[..., Any] | str
"""What a node calls: a function, or the name of a method, module or attribute."""
F = TypeVar("F", bound=Callable[..., Any])
OPS = frozenset("placeholder call_method call_module call_function get_attr output root".split())
side_effects: set[Any] = {_assert, operator.setitem}
RANDOM = frozenset(
    (
        bernoulli,
        binomial,
        multinomial,
        normal,
        poisson,
        rand,
        rand_like,
        randint,
        randint_like,
        randn,
        randn_like,
        randperm,
    )
)


def has_side_effect(fn: F) -> F:
    """Keep calls of a function in graphs though nobody uses what it gives; also a decorator."""
    side_effects.add(fn)
    return fn


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """The argument with each node in it replaced by `fn(node)`."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """The argument with each value in it that is no container replaced by `fn(value)`; lists and dicts become immutable."""
    if isinstance(a, tuple):
        parts = [map_aggregate(part, fn) for part in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)  # pyright: ignore[reportCallIssue]
    if isinstance(a, list):
        return immutable_list([map_aggregate(part, fn) for part in a])
    if isinstance(a, dict):
        made = immutable_dict()
        for key, value in a.items():
            dict.__setitem__(made, key, map_aggregate(value, fn))
        return made
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


class Node:
    """One step of a `Graph`: an opcode, a target, arguments and a name that is its value's.

    op: `placeholder`, `get_attr`, `call_function`, `call_module`, `call_method` or `output`. target: the parameter's name, the
    dotted path of an attribute or module, the function, the method's name. `users` are the nodes that take its value, `meta` is a
    dict for whoever works on the graph.

    >>> traced = xtensor.fx.symbolic_trace(lambda x: xtensor.relu(x) + 1)
    >>> for node in traced.graph.nodes:
    ...     print(node.op, node.name, node.args)
    placeholder x ()
    call_function relu (x,)
    call_function add (relu, 1)
    output output (add,)
    """

    graph: Any
    name: str
    op: str
    target: Target

    def __init__(
        self,
        graph: Any,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f'Node [graph = {graph}, name = "{name}"] target {target} has type {type(target).__name__} '
                    "but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f'Node [graph = {graph}, name = "{name}"] target {target} has type {type(target).__name__} '
                "but a str is expected"
            )
        own = self.__dict__
        own.update(graph=graph, name=name, op=op, target=target, type=return_type, users={}, meta={})
        own.update(
            _prev=self, _next=self, _erased=False, _repr_fn=None, _input_nodes={}, _args=(), _kwargs={}
        )
        self._set(map_aggregate(tuple(args), _same), map_aggregate(dict(kwargs), _same))

    type: Any
    users: dict[Node, None]
    meta: dict[str, Any]
    _prev: Node
    _next: Node
    _erased: bool
    _repr_fn: Callable[[Node], str] | None
    _input_nodes: dict[Node, None]
    _args: tuple[Argument, ...]
    _kwargs: dict[str, Argument]

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    # -- places

    @property
    def next(self) -> Node:
        """The node behind this one; the graph's root behind the last."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; the graph's root before the first."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move another node of the graph to before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._unlink()
        before = self._prev
        before.__dict__["_next"], x.__dict__["_prev"] = x, before
        x.__dict__["_next"], self.__dict__["_prev"] = self, x

    def append(self, x: Node) -> None:
        """Move another node of the graph to behind this one."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        before, behind = self._prev, self._next
        before.__dict__["_next"], behind.__dict__["_prev"] = behind, before

    # -- arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._set(map_aggregate(tuple(a), _same), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name; assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._set(self._args, map_aggregate(dict(k), _same))

    def _set(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        """Take these arguments, and be a user of the nodes among them."""
        own = self.__dict__
        for node in self._input_nodes:
            node.users.pop(self, None)
        own["_args"], own["_kwargs"] = args, kwargs
        found: dict[Node, None] = {}
        map_arg(args, lambda n: found.setdefault(n))
        map_arg(kwargs, lambda n: found.setdefault(n))
        own["_input_nodes"] = found
        for node in found:
            node.users.setdefault(self)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, in order."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put an argument before the positional argument at an index."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set one argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Have the users of this node take another one's value; the nodes that were changed.

        delete_user_cb: says of a user whether it is to be changed. propagate_meta: hand `meta` on to the other node.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take another node's value wherever this node takes the first one's."""
        module = self.graph.owning_module
        for hook in getattr(module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)

        def swapped(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self._args, swapped), map_arg(self._kwargs, swapped))

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    # -- questions

    @property
    def stack_trace(self) -> str | None:
        """Where in the program the node was made, if its tracer kept that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node stays in a graph though nobody uses it: inputs, outputs, writes, checks, random numbers."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if schema := getattr(self.target, "_schema", None):
                return schema.is_mutable or self.target in side_effects
            if impure_random and (
                self.target in RANDOM or getattr(self.target, "_nondeterministic_seeded", False)
            ):
                return True
            return self.target in side_effects
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            found = module.get_submodule(str(self.target))
            return getattr(found, "_is_impure", False)
        return False

    def normalized_arguments(
        self,
        root: Module,
        arg_types: tuple[Any] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """The arguments by the target's signature, defaults filled in; None where there is no one signature."""
        if self.op == "call_function":
            assert callable(self.target)
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(
                root, str(self.target), self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None

    # -- text

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: object) -> str:
        return shown_target(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a line of the graph's text.

        placeholder_names, maybe_return_typename: lists that inputs' names and the result's type are put into; such a graph's
        text has no line for them.
        """
        kind = f"{type_repr(self.type)} " if self.type else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={shown_target(self.target)}]"
        if self.op == "placeholder":
            shown = str(self.target) + (f": {type_repr(self.type)}" if self.type else "")
            if placeholder_names:
                placeholder_names.append(shown)
                return None
            return head + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return head
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_repr(self.type)}"
            return f"return {self.args[0]}"
        return f"{head}(args = {format_arg(self.args)}, kwargs = {format_arg(self.kwargs)})"


def _same(value: Argument) -> Argument:
    return value


def format_arg(arg: Argument, max_list_len: float = float("inf")) -> str:
    """An argument as the graph's text shows it: nodes as `%name`, texts without quotation marks."""
    if isinstance(arg, (list, tuple)):
        shown = [format_arg(part, max_list_len) for n, part in enumerate(arg) if n < max_list_len]
        if len(arg) > max_list_len:
            shown.append(f"...[total_len={len(arg)}]")
        if isinstance(arg, list):
            return f"[{', '.join(shown)}]"
        return f"({', '.join(shown)}{',' if len(arg) == 1 else ''})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{key}: {format_arg(value, max_list_len)}' for key, value in arg.items())}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)
