"""What a captured program depends on besides its arguments, asked at every call, or again once the epoch has moved."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from operator import is_
from typing import Any

from .. import capture
from ..nn.hooks import everywhere
from ..nn.modules.module import Module
from ..optim.optimizer import Optimizer, post_hooks_of_all, pre_hooks_of_all
from ..optim.states import State, States, changes
from ..storage import cell
from ..xla.cache import settings
from .reads import Comparisons, Read, holds, same
from .watch import UNSET, Trace, grad_slot, hooks_of, storage_slot

__all__ = ["Guards"]

CHAIN = 100
"""Objects that are compared in one expression, each with the next one."""
END = {0: object()}
"""Stands last, so that members of another count are other members."""
REPLACED = "a parameter, a buffer or an optimizer's state is another tensor"
READS = "a number, a container or an object that the function reads"


def hooks_of_all() -> tuple[Any, ...]:
    """The hooks that are registered for all modules and optimizers."""
    own: Any = vars(everywhere)
    dicts = [*[own[n] for n in sorted(own) if isinstance(own[n], dict)], pre_hooks_of_all, post_hooks_of_all]
    return tuple([tuple(map(id, d.values())) for d in dicts])


def options_of(optimizer: Optimizer) -> Comparisons:
    """The groups of an optimizer and their options as they are; of learning rates, which programs are given, the type."""
    found = Comparisons()
    found.add(
        f"{{0}}.param_groups is {{1}} and len({{1}}) == {len(optimizer.param_groups)}",
        optimizer,
        optimizer.param_groups,
    )
    for at, group in enumerate(optimizer.param_groups):
        found.add(f"{{0}}[{at}] is {{1}}", optimizer.param_groups, group)
        rate = group.get("lr", UNSET)
        rest = {k: v for k, v in group.items() if k != "lr"}
        found.add(f"len({{0}}) == {len(group)}", group)
        found.members(rest, False, group)
        if rate is not UNSET:
            found.add("type({0}['lr']) is {1}", group, type(rate))
        params = group["params"]
        if all(p.numel() > 1 for p in params):
            # Lists compare by identity first; another tensor of several elements gives no truth value, but an error.
            found.add("{0} == {1}", params, list(params))
        else:
            found.members(dict(enumerate(params)), False, params)
            found.add(f"len({{0}}) == {len(params)}", params)
    return found


class _Held:
    """A module as it was: its attributes and all that is registered."""

    __slots__ = ("aside", "dicts", "module", "own")

    def __init__(self, module: Module, apart: set[tuple[int, str]]) -> None:
        self.module = module
        self.own = dict(module.__dict__)
        self.aside = [n for n in self.own if (id(module), n) in apart]
        for name in self.aside:
            del self.own[name]
        self.dicts = [(n, dict(v)) for n, v in self.own.items() if isinstance(v, dict)]

    def differs(self) -> str | None:
        """The name of an attribute that is another now."""
        now = self.module.__dict__
        if len(now) - len(self.aside) != len(self.own) or now.keys() ^ self.own.keys() ^ set(self.aside):
            return next(iter(now.keys() ^ self.own.keys() ^ set(self.aside)), "an attribute")
        for name, value in self.own.items():
            if not same(now[name], value):
                return name
        for name, members in self.dicts:
            present = now[name]
            if len(present) != len(members) or any(
                present.get(k, UNSET) is not v for k, v in members.items()
            ):
                return name
        return None


class Guards:
    """The guards of one program. reads: tells whether what the function read of Python's world is as it was."""

    def __init__(
        self,
        trace: Trace,
        modules: list[Module],
        reads: Callable[[], bool],
        told: list[str],
        named: list[Read],
        operands: set[tuple[int, str]],
    ) -> None:
        self.epoch = capture.epoch[0]
        self.reads = reads
        self.named = named
        self.told = told
        self.hooks = hooks_of_all()
        slots = [(m, g) for m, g in trace.metas.values() if g is not UNSET]
        steppers: dict[int, Any] = dict(trace.optimizers)
        # Of a gradient that is dropped or replaced unread nothing counts but that it is there.
        read = {id(h.storage) for h in trace.held.values()}
        there = [(m, g) for m, g in slots if g is not None]
        self.full = [(m, self._form(g)) for m, g in there if id(storage_slot.__get__(g)) in read]
        params = [(o, p) for o in steppers.values() for group in o.param_groups for p in group["params"]]
        # Optimizers whose options, but for the learning rate, are compared one by one; those whose options change often are loose.
        self.fixed = [(o, o.facts()) for o in steppers.values()]
        self.loose: list[list[Any]] = []
        self.tensors = [
            (m.tensor, m.storage, m.view, m.edge is None, hooks_of(m.edge))
            for k, m in trace.met.items()
            if k not in trace.arguments and k not in trace.grads and k not in trace.borrowed
        ]
        seen: dict[int, Module] = {}
        for module in modules:
            for each in module.modules():
                seen[id(each)] = each
        apart = {*trace.sets, *operands}
        self.modules = [_Held(m, apart) for m in seen.values()]
        gone, found, members, alike, bare, noted = (Comparisons() for _ in range(6))
        for meta, grad in slots:
            if grad is None:
                gone.add("{0}.grad is None", meta)
            elif id(storage_slot.__get__(grad)) not in read:
                found.add("{0}.grad is not None", meta)
        # What may be replaced without a word: members of modules, and of states that do not tell.
        for optimizer, param in params:
            states: Any = optimizer.state
            if param in states:
                own = states[param]
                known = noted if type(states) is States and type(own) is State else members
                known.add("{0}[{1}] is {2}", states, param, own)
                known.members(own, False)
            if param._xt_meta is None:
                bare.add("{0}._xt_meta is None", param)
        for module in seen.values():
            for own in (module._parameters, module._buffers):
                if own:
                    members.members(own, True)
        for group in trace.groups.values():
            storages = [held.storage for held in group]
            for at in range(0, len(storages) - 1, CHAIN):
                some = storages[at : at + CHAIN + 1]
                alike.add(" is ".join(f"{{{i}}}.array" for i in range(len(some))), *some)
        self.parts = [
            (gone, "a gradient is there that was None"),
            (found, "a gradient is None that was there"),
            (members, REPLACED),
            (alike, "tensors that held the same array hold different ones"),
            (bare, "a parameter has a gradient that had none"),
        ]
        for o in steppers.values():
            states = Comparisons()
            states.add(f"{{0}}.state is {{1}} and len({{1}}) == {len(o.state)}", o, o.state)
            self.parts.append((states, f"the state of {type(o).__name__}"))
        self.changes, self.noted = changes[0], noted
        self.states: list[Callable[[], bool]] | None = None
        self.options = [(o, facts, options_of(o)) for o, facts in self.fixed]
        self.fast = self._joined()
        self.settings = settings()
        self.said = ""
        self.changed: tuple[_Held, str] | None = None

    @staticmethod
    def _form(grad: Any) -> Any:
        array = cell.__get__(storage_slot.__get__(grad))
        view = grad._xt_view
        return (
            array.aval,
            None if view is None else (view.sizes, view.strides, view.offset, view.dtype),
            grad._xt_edge is None,
        )

    @staticmethod
    def _values(optimizer: Optimizer) -> list[Any]:
        return list(chain.from_iterable(map(dict.values, (*optimizer.param_groups, END))))

    def _joined(self) -> list[Callable[[], bool]]:
        """All that is written out, as few functions."""
        whole = Comparisons()
        for part in (*[c for c, _ in self.parts], *[c for *_, c in self.options]):
            whole.extend(part)
        return whole.made()

    def _differing(self) -> bool:
        """Whether something written out differs; an optimizer whose program is the same is compared loosely from now on."""
        try:
            for comparisons, said in self.parts:
                if not all(fast() for fast in comparisons.made()):
                    self.said = said
                    return True
        except KeyError:
            self.said = "a state of an optimizer is gone"
            return True
        for option in list(self.options):
            optimizer, facts, comparisons = option
            try:
                same = all(fast() for fast in comparisons.made())
            except Exception:
                same = False
            if not same:
                if optimizer.facts() != facts:
                    self.said = f"options of {type(optimizer).__name__}"
                    return True
                self.options.remove(option)
                self.loose.append([optimizer, facts, self._values(optimizer)])
                self.fast = self._joined()
        return False

    def hold(self) -> bool:
        """Whether all is as it was."""
        if capture.epoch[0] != self.epoch and not self._again():
            return False
        if changes[0] is not self.changes and not self._states():
            return False
        try:
            for fast in self.fast:
                if not fast():
                    if self._differing():
                        return False
                    break
        except Exception:
            if self._differing():
                return False
        for meta, form in self.full:
            grad = grad_slot.__get__(meta)
            if grad is None or self._form(grad) != form:
                self.said = "a gradient is None, or of another form"
                return False
        for found in self.loose:
            optimizer, facts, values = found
            groups = optimizer.param_groups
            if not all(map(is_, chain.from_iterable(map(dict.values, (*groups, END))), values)):
                if optimizer.facts() != facts:
                    self.said = f"options of {type(optimizer).__name__}"
                    return False
                found[2] = self._values(optimizer)
        if not self.reads():
            self.said = READS
            return False
        return True

    def _states(self) -> bool:
        """Whether optimizers' states are the tensors that they were, although some state was changed."""
        latest = changes[0]
        if self.states is None:
            self.states = self.noted.made()
        try:
            if all(unchanged() for unchanged in self.states):
                self.changes = latest
                return True
        except KeyError:
            pass
        self.said = REPLACED
        return False

    def moved(self) -> list[Read]:
        """What the function reads by a name or as a module's attribute, and is another now."""
        if self.said == READS:
            return [read for read in self.named if not holds(*read)]
        if self.changed is not None:
            held, name = self.changed
            if name in held.own:
                return [("attr", (held.module, name), held.own[name])]
        return []

    def _again(self) -> bool:
        """Whether modules, hooks and tensors are as they were, although something moved the epoch."""
        epoch, self.changed = capture.epoch[0], None
        if settings() != self.settings:
            self.said = "settings"
            return False
        if hooks_of_all() != self.hooks:
            self.said = "hooks of all modules or optimizers"
            return False
        for held in self.modules:
            name = held.differs()
            if name is not None:
                self.said = f"{type(held.module).__name__}.{name}"
                self.changed = (held, name)
                return False
        for tensor, storage, view, plain, hooks in self.tensors:
            edge = tensor._xt_edge
            if (
                tensor._xt_storage is not storage
                or tensor._xt_view is not view
                or (edge is None) is not plain
                or hooks_of(edge) != hooks
            ):
                self.said = "a tensor's memory, sizes, hooks or requires_grad"
                return False
        self.epoch = epoch
        return True
