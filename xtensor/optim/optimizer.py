"""Optimizer: parameter groups, state, hooks, and `state_dict` in PyTorch's layout."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from operator import is_, itemgetter
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from .. import capture, checks, devices, dtypes
from ..engine import PROFILING, enable_grad, modes, record_function
from ..engine.handles import HookDict, RemovableHandle, add_hook
from ..gradients import ask_before
from ..operators.write import view_of, writer_at
from ..ops.create.creation import zeros_like
from ..ops.create.ingest import tensor as make_tensor
from ..storage import MetaArray, Storage
from ..tensor import ARRAY, Tensor, array_of, counter_of, typename
from ..xla.cache import bounded
from ..xla.pending import Pending
from .differentiable import run_differentiable
from .elsewhere import is_elsewhere, run_elsewhere
from .states import State, States, changes, telling
from .update import Layout, Rule, TracedNumber, Work, ahead_of, call, held_by, run, size_of, vector

__all__ = [
    "Optimizer",
    "RuleOptimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

ParamsT = Iterable[Any]


class _RequiredParameter:
    """Stands for a default that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()

pre_hooks_of_all: HookDict = OrderedDict()
post_hooks_of_all: HookDict = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of any optimizer; it may return other arguments."""
    return add_hook(pre_hooks_of_all, hook)


def register_optimizer_step_post_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of any optimizer."""
    return add_hook(post_hooks_of_all, hook)


class Optimizer:
    """The base of all optimizers: it holds groups of parameters with their options, and a state for each parameter.

    `params` are Tensors, `(name, Tensor)` pairs, or dictionaries of them under "params" with options of their own.
    """

    _HOOKS = (
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
        "_optimizer_state_dict_pre_hooks",
        "_optimizer_state_dict_post_hooks",
        "_optimizer_load_state_dict_pre_hooks",
        "_optimizer_load_state_dict_post_hooks",
    )
    _optimizer_step_pre_hooks: HookDict
    _optimizer_step_post_hooks: HookDict
    _optimizer_state_dict_pre_hooks: HookDict
    _optimizer_state_dict_post_hooks: HookDict
    _optimizer_load_state_dict_pre_hooks: HookDict
    _optimizer_load_state_dict_post_hooks: HookDict

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in self._HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.state: defaultdict[Any, Any] = States()
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        capture.moved()
        self.__dict__.update(state)
        self.state = telling(self.state)
        for name in self._HOOKS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {i}\n")
            lines += [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
        return f"{type(self).__name__} ({''.join(lines)})"

    # -- groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a dictionary of parameters under "params", with options; what it does not give is the default."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        params = param_group["params"] = [p[1] if isinstance(p, tuple) else p for p in params]
        if names:
            if len(names) != len(params):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are missing"
                )
            param_group["param_names"] = names
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is " + typename(param)
                )
            if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        if len(params) != len(set(params)):
            checks.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
            )
        known: set[Tensor] = set()
        for group in self.param_groups:
            known.update(group["params"])
            if ("param_names" in param_group) != ("param_names" in group):
                which = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{which} to the optimizer"
                )
        if not known.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)
        capture.moved()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                meta = param._xt_meta
                if meta is None or meta.grad is None:
                    continue
                if set_to_none:
                    meta.grad = None
                    continue
                grad = meta.grad
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # -- steps

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters; `closure` computes the loss anew, with its gradients, and is called first."""
        raise NotImplementedError

    def _patch_step_function(self) -> None:
        """Put the hooks around the class's `step`, once."""
        cls: Any = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True  # pyright: ignore[reportFunctionMemberAccess]

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """`func`, a step, with the step hooks around it, and seen by the profiler."""

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self: Any = args[0]
            if modes.state.mode & PROFILING:
                with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                    return hooked(self, args, kwargs)
            return hooked(self, args, kwargs)

        def hooked(self: Any, args: Any, kwargs: Any) -> Any:
            if capture.watchers:
                capture.stepping(self)
            for hook in (*pre_hooks_of_all.values(), *self._optimizer_step_pre_hooks.values()):
                found = hook(self, args, kwargs)
                if found is None:
                    continue
                if not (isinstance(found, tuple) and len(found) == 2):
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), but got {found}."
                    )
                args, kwargs = found
            result = func(*args, **kwargs)
            for hook in (*self._optimizer_step_post_hooks.values(), *post_hooks_of_all.values()):
                hook(self, args, kwargs)
            return result

        return wrapper

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before every step; it may return other arguments."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after every step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    # -- state

    def register_state_dict_pre_hook(
        self, hook: Callable[[Any], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return ordered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; what it returns replaces the state."""
        return ordered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; what it returns replaces the state."""
        return ordered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Any], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return ordered(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self) -> dict[str, Any]:
        """The groups and the states, with parameters as their numbers; states share memory with the optimizer's."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, param in enumerate(group["params"], start):
                numbers.setdefault(id(param), i)
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            start += len(packed["params"])
            groups.append(packed)
        state = {
            numbers[id(k)] if isinstance(k, Tensor) else k: dict(v) if type(v) is State else v
            for k, v in self.state.items()
        }
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            made = hook(self, result)
            result = result if made is None else made
        return result

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor, value: Tensor, param_id: Any, param_groups: list[dict[Any, Any]], key: Hashable = None
    ) -> Tensor:
        """A loaded state with its parameter's dtype and device; step counts keep theirs unless on the device."""
        on_device = False
        for group in param_groups:
            if param_id in group["params"]:
                on_device = bool(group.get("fused") or group.get("capturable"))
                break
        if key == "step":
            return value.to(dtype=dtypes.float32, device=param.device) if on_device else value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over groups' options and states; the groups must have as many parameters as those saved."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            made = hook(self, state_dict)
            state_dict = state_dict if made is None else made
        groups = self.param_groups
        saved = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = dict(
            zip(chain(*(s["params"] for s in saved)), chain(*(g["params"] for g in groups)), strict=True)
        )

        def cast(param: Tensor, value: Any, number: Any, key: Hashable = None) -> Any:
            if isinstance(value, Tensor):
                return self._process_value_according_to_param_policy(
                    param, value, number, state_dict["param_groups"], key
                )
            if isinstance(value, dict):
                return {k: cast(param, v, number, k) for k, v in value.items()}
            if isinstance(value, Iterable) and not isinstance(value, str):
                kind: Any = type(value)
                return kind(cast(param, v, number) for v in value)
            return value

        state: defaultdict[Any, Any] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in params:
                state[params[number]] = cast(params[number], value, number)
            else:
                state[number] = value
        for group, new in zip(groups, saved):
            new["params"] = group["params"]
            if "param_names" in group and "param_names" not in new:
                new["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def ordered(hooks: HookDict, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
    handle = add_hook(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


PLAIN = frozenset((Tensor,))


class Kept(NamedTuple):
    """A step that was made, and what it depended on.

    told: what says whether a state changed since. groups: each one's parameters, flags and states' names.
    storages, writes: of the tensors that it wrote, and how often each had been written to. counts: where the rule counts nothing.
    """

    told: object
    groups: list[tuple[tuple[Tensor, ...], tuple[Any, ...], tuple[str, ...]]]
    params: list[Tensor]
    storages: list[Storage]
    writes: list[int]
    counts: list[float]
    layout: Layout


class RuleOptimizer(Optimizer):
    """An optimizer that is a rule: its step is one compiled call over all parameters.

    A subclass names its rule, the options that are numbers and those that the program depends on, and its states.
    `counted` says whether each parameter's state holds a "step".
    """

    rule: Rule
    counted = True
    option_defaults: dict[str, Any] = {}

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(params, defaults)
        ask_before(self._ahead)

    def _ahead(self) -> None:
        """Have threads compile the first step, while the program still looks for the gradients."""
        kind = type(self)
        plain = kind.first_state is RuleOptimizer.first_state and kind.states_for is RuleOptimizer.states_for
        asked = ("capturable", "differentiable", "fused")
        if (
            self.state
            or not plain
            or modes.state.mode & PROFILING
            or any(group.get(name) for group in self.param_groups for name in asked)
        ):
            return
        work: list[Work] = []
        for group in self.param_groups:
            params = [p for p in group["params"] if p.requires_grad]
            if not all(type(p._xt_storage.raw) in (ARRAY, Pending) and p._xt_view is None for p in params):
                return
            numbers = tuple([as_float(n) for n in self.numbers_of(group)])
            states: list[Sequence[Tensor]] = [[p] * len(self.states_of(group)) for p in params]
            if params:
                work.append(
                    Work(
                        kind.rule,
                        self.flags_of(group),
                        numbers,
                        params,
                        params,
                        states,
                        [0.0] * len(params),
                        [],
                    )
                )
        ahead_of(work, self.counted)

    def numbers_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """The options that are runtime operands."""
        raise NotImplementedError

    def flags_of(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """The options that the program depends on."""
        return bool(group["maximize"]), group["weight_decay"] != 0

    def states_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        """The names of the states that the rule takes, in its order."""
        raise NotImplementedError

    def states_for(self, group: dict[str, Any], param: Tensor) -> tuple[str, ...]:
        """The names of a parameter's states, where they depend on it: overridden instead of `states_of`."""
        return self.states_of(group)

    def first_state(self, name: str, group: dict[str, Any], param: Tensor) -> Tensor:
        """A state before the first step: zeros unless overridden."""
        return zeros_like(param)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in self.option_defaults.items():
                group.setdefault(name, default)
            for param in group["params"]:
                # Older states count in Python numbers.
                own = self.state.get(param)
                if self.counted and own and not isinstance(own.get("step"), Tensor):
                    own["step"] = self.count_tensor(group, param, float(own["step"]))

    def count_tensor(self, group: dict[str, Any], param: Tensor, value: float) -> Tensor:
        """A step count: on the CPU, unless the options ask for the parameter's device."""
        if group.get("fused"):
            return make_tensor(value, dtype=dtypes.float32, device=param.device)
        double = dtypes.get_default_dtype() is dtypes.float64
        place = param.device if group.get("capturable") else devices.device("cpu")
        return make_tensor(value, dtype=dtypes.float64 if double else dtypes.float32, device=place)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters; `closure` computes the loss anew, with its gradients, and is called first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if self.defaults.get("differentiable"):
            with enable_grad():
                self._update()
        else:
            before = modes.state.mode
            modes.state.mode = before | modes.NO_GRAD
            try:
                self._update()
            finally:
                modes.state.mode = before
        return loss

    def _update(self) -> None:
        new: list[tuple[Tensor, Any]] = []
        try:
            self._run(new)
        except BaseException:
            # A step that was not made leaves no states behind, by which the next would not be the first.
            for param, array in new:
                if param._xt_storage.array is array:
                    self.state.pop(param, None)
            raise

    def _again(self, kept: Kept) -> bool:
        """Make the step if it is the last one with other gradients, counts and numbers: nothing else is looked at then."""
        groups = self.param_groups
        if kept.told is not changes[0] or len(groups) != len(kept.groups) or capture.running() is not None:
            return False
        operands: list[Any] = []
        for group, (params, flags, names) in zip(groups, kept.groups):
            own = group["params"]
            if (
                len(own) != len(params)
                or not all(map(is_, own, params))
                or self.flags_of(group) != flags
                or self.states_of(group) != names
                or group.get("fused")
            ):
                return False
            operands += self.numbers_of(group)
        tensors = kept.layout.tensors
        storages = [tensor._xt_storage for tensor in tensors]
        if (
            storages != kept.storages
            or [storage.writes for storage in storages] != kept.writes
            or any(map(view_of, tensors))
        ):
            return False
        grads: list[Any] = [param.grad for param in kept.params]
        if not PLAIN.issuperset(map(type, grads)):
            return False
        counts = kept.counts
        if self.counted:
            counts = self._counts(kept.layout.counters)
            if counts.count(counts[0]) != len(counts):
                return False
        numbers = tuple([n if type(n) is float else as_float(n) for n in operands])
        writer = writer_at(f"{type(self).__name__}.step", 3)
        self._known = call(kept.layout, grads, counts, counts[:1], numbers, writer, self.counted)
        kept.writes[:] = [storage.writes for storage in storages]
        return True

    def _keep(self, work: list[Work], layout: Layout) -> None:
        """Keep what the step after this one is compared with, where nothing but numbers is likely to differ."""
        state = self.state
        groups = [
            (tuple(group["params"]), self.flags_of(group), self.states_of(group))
            for group in self.param_groups
        ]
        params = [param for own, _, _ in groups for param in own]
        if (
            not (layout.alike and layout.plain)
            or type(state) is not States
            or not all(type(state.get(p)) in (State, NoneType) for p in params)
            or sum([len(each.params) for each in work]) != len(params)
            or any(group.get("fused") for group in self.param_groups)
        ):
            return
        storages = [tensor._xt_storage for tensor in layout.tensors]
        # Rules that count nothing are told whether a parameter's states are new.
        counts = [1.0 if groups[0][2] else 0.0] * len(params)
        written = [storage.writes for storage in storages]
        state.kept = Kept(changes[0], groups, params, storages, written, counts, layout)

    def _run(self, new: list[tuple[Tensor, Any]]) -> None:
        """Make a step; `new` is told of every parameter whose first it is, with its array from before."""
        if type(self.state) is States and self.state.kept is not None:
            if self._again(self.state.kept):
                return
            self.state.kept = None
        differentiable = self.defaults.get("differentiable")
        watcher = capture.running()
        if watcher is not None and differentiable:
            watcher.refuse("an optimizer is differentiable")
        traced: Any = None if watcher is None else watcher.numbers(self)
        first = 0
        work: list[Work] = []
        state, counted, rule = self.state, self.counted, type(self).rule
        alike = type(self).states_for is RuleOptimizer.states_for
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            states: list[Sequence[Tensor]] = []
            counts: list[float] = []
            counters: list[Tensor] = []
            names = self.states_of(group) if alike else ()
            take = taker(names)
            elsewhere = False
            for param in group["params"]:
                grad = param.grad
                if grad is not None:
                    if type(grad) is not Tensor and grad.is_sparse:
                        self.sparse_step(group, param, grad, new)
                        continue
                    elsewhere = elsewhere or (type(grad) is not Tensor and is_elsewhere(param))
                    params.append(param)
                    grads.append(grad)
            if group.get("fused"):
                check_fused_places(params)
            if alike and not (names or counted):
                states, counts = [[]] * len(params), [0.0] * len(params)
            else:
                for param in params:
                    if not alike:
                        take = taker(self.states_for(group, param))
                    own = state[param]
                    fresh = not own
                    if fresh:
                        new.append((param, param._xt_storage.array))
                        self.init_state(own, group, param)
                    states.append(take(own))
                    if counted:
                        counters.append(own["step"])
                    else:
                        counts.append(0.0 if fresh else 1.0)
                if counted:
                    counts = self._counts(counters) if watcher is None else watcher.counts(counters)
            operands = self.numbers_of(group) if params or watcher is not None else ()
            first += len(operands)
            if params:
                if watcher is None:
                    numbers: Any = tuple([n if type(n) is float else as_float(n) for n in operands])
                else:
                    numbers = tuple([TracedNumber(traced, i) for i in range(first - len(operands), first)])
                own_work = Work(rule, self.flags_of(group), numbers, params, grads, states, counts, counters)
                if elsewhere:
                    run_elsewhere(own_work, operands)
                    if counted:
                        advance(counters, counts)
                    continue
                work.append(own_work)
                if differentiable:
                    run_differentiable(own_work, operands)
        if not work:
            return
        if differentiable:
            for group in work if counted else ():
                advance(group.counters, group.counts)
            return
        lengths = tuple([len(group.params) for group in work])
        if lengths != self._measured[0]:
            self._measured = lengths, size_of(work)
        self._known, layout = run(work, f"{type(self).__name__}.step", counted, self._measured[1])
        if layout is not None and alike and watcher is None and not new:
            self._keep(work, layout)

    def sparse_step(
        self, group: dict[str, Any], param: Tensor, grad: Any, new: list[tuple[Tensor, Any]]
    ) -> None:
        """Make the step of one parameter with a sparse gradient; RuntimeError where the optimizer has none."""
        name = type(self).__name__
        instead = ", please consider SparseAdam instead" if name in ("Adam", "Adamax") else ""
        raise RuntimeError(f"{name} does not support sparse gradients{instead}")

    def init_state(self, own: dict[str, Any], group: dict[str, Any], param: Tensor) -> None:
        """Fill a parameter's state before its first step."""
        if self.counted:
            own["step"] = self.count_tensor(group, param, 0.0)
        for name in self.states_for(group, param):
            own[name] = self.first_state(name, group, param)

    def operand_vector(self, place: devices.device) -> Any:
        """The numbers of all groups, as `run` hands them to a program."""
        numbers = [n for group in self.param_groups for n in self.numbers_of(group)]
        return vector(tuple([n if type(n) is float else as_float(n) for n in numbers]), place)

    def facts(self) -> Any:
        """What a program that a step is part of depends on, but for the numbers."""
        alike = type(self).states_for is RuleOptimizer.states_for
        return [
            (
                len(group["params"]),
                len(self.numbers_of(group)),
                self.flags_of(group),
                self.states_of(group) if alike else (),
            )
            for group in self.param_groups
        ]

    # Arrays of counts whose value the host knows, by identity, so that reading one waits for nothing.
    _known: dict[int, tuple[Any, float]] = {}
    # How many parameters each group had last, and the bytes that a step writes.
    _measured: tuple[tuple[int, ...], int] = (), 0

    def _counts(self, counters: list[Tensor]) -> list[float]:
        """What the counters say; those of one array, which is the usual case, are looked up once."""
        counts: list[float] = []
        last, count = None, 0.0
        for counter in counters:
            array = held_by(counter._xt_storage) if counter._xt_view is None else array_of(counter)
            if array is not last:
                last, found = array, self._known.get(id(array))
                if found is not None and found[0] is array:
                    count = found[1]
                else:
                    count = 0.0 if isinstance(array, MetaArray) else float(np.asarray(array))
            counts.append(count)
        return counts


@bounded(64)
def taker(names: tuple[str, ...]) -> Callable[[dict[str, Any]], tuple[Tensor, ...]]:
    """What takes these of a parameter's states."""
    if len(names) > 1:
        return itemgetter(*names)
    return (lambda own: (own[names[0]],)) if names else (lambda own: ())


def advance(counters: list[Tensor], counts: list[float]) -> None:
    """Give counters the value after their counts."""
    for counter, count in zip(counters, counts, strict=True):
        counter_of(counter).version += 1
        if not counter.is_meta:
            counter._xt_storage.replace(devices.put(np.array(count + 1, counter.dtype.numpy), counter.device))


def options_of(given: dict[str, Any], names: str) -> dict[str, Any]:
    """The defaults of an optimizer's groups, in this order, from the `locals()` of its constructor."""
    return {name: given[name] for name in names.split()}


def as_float(value: Any) -> float:
    """An option that is a number, or a Tensor of one element."""
    return float(value.item()) if isinstance(value, Tensor) else float(value)


def check_option(valid: Any, what: str, value: Any) -> None:
    """ValueError `Invalid <what>: <value>` unless valid."""
    if not valid:
        raise ValueError(f"Invalid {what}: {value}")


def check_one_element(lr: Any) -> None:
    """Refuse a learning rate that is a Tensor of several."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_least(what: str, value: Any, least: int = 0) -> None:
    """ValueError `<what> should be >= <least> but is: <value>` where it is below."""
    if not value >= least:
        raise ValueError(f"{what} should be >= {least} but is: {value}")


def check_options(**values: Any) -> None:
    """Refuse learning rates and other options below zero, and decay rates outside of [0, 1), in PyTorch's words."""
    for name, value in values.items():
        if name == "lr":
            check_one_element(value)
            check_option(value >= 0.0, "learning rate", value)
        elif name == "betas":
            for i, beta in enumerate(value):
                check_option(0.0 <= beta < 1.0, f"beta parameter at index {i}", beta)
        else:
            check_option(value >= 0.0, f"{name} value", value)


def check_fused_places(params: Sequence[Tensor]) -> None:
    """Refuse parameters without values where `fused` was asked for."""
    for param in params:
        if param.is_meta:
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                f"['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia'] but {param.dtype} and {param.device.type}"
            )


def check_fused(fused: Any, foreach: Any, differentiable: Any) -> None:
    """Refuse options that exclude each other."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
