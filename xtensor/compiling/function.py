"""A function that is captured at its second call, and runs as a program from then on, wherever one of its programs fits."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer

from .. import capture, checks, devices, dtypes
from ..engine import ANOMALY, AUTOCAST, DEVICE_CONTEXT, DISPATCH_MODE, FUNCTION_MODE, PROFILING, SAVED_HOOKS
from ..engine.modes import state
from ..storage import cell
from ..tensor import Tensor
from ..xla.x64 import call
from .follow import Follower
from .forms import Form, aliases, capturable, exchanged, plain_skeleton, skeleton_of
from .guards import READS, Guards
from .joint import parts_of
from .numbers import Slot, is_number, key_of, named_numbers, with_numbers
from .program import Program, Unfit
from .reads import Read, reader
from .recorder import Recorder
from .results import Leaves, describe
from .split import Split, line_in, loading, moving_argument, position_of, split_at
from .watch import UNSET, Break, Trace, user_line

__all__ = ["Compiled", "Entry"]

NEVER = PROFILING | ANOMALY | SAVED_HOOKS | FUNCTION_MODE | DISPATCH_MODE | DEVICE_CONTEXT
LIMIT = 8
"""How many programs of one function are made for other shapes or other values before it stays eager."""
SIZES = 64
"""The same where sizes are said to vary (`dynamic=True`): of more, those go that ran longest ago."""
ARGUMENTS = "arguments that are no tensors"
OFTEN = 2
"""How often a number changes before what reads it is left to eager code."""
REFUSED = 4
"""How many forms of arguments are tried that cannot be captured."""
_capturing = threading.RLock()
stance = ["default"]
_all: weakref.WeakSet[Compiled] = weakref.WeakSet()


def forget_all() -> None:
    """Forget the programs of all functions."""
    for compiled in list(_all):
        compiled.forget()


def world() -> tuple[Any, ...]:
    """What all programs depend on and modes and settings say."""
    mode = state.mode
    autocast: Any = None
    if mode & AUTOCAST:
        autocast = (state.autocast_enabled, tuple(sorted(state.autocast_dtypes.items(), key=str)))
    return (mode, dtypes.get_default_dtype(), devices.current(), autocast)


class Entry:
    """A program, and what calls it fits."""

    def __init__(self, program: Program, guards: Guards, forms: list[Form], skeleton: Any, key: Any) -> None:
        self.program = program
        self.guards = guards
        self.forms = forms
        self.skeleton = skeleton
        self.world = key
        self.aliases: tuple[int, ...] = ()
        self.held: set[int] = set()
        self.seconds = (0.0, 0.0)

    def fits_arguments(self, tensors: list[Tensor], skeleton: Any, key: Any) -> bool:
        """Whether arguments are of this form, in this world."""
        if skeleton != self.skeleton or key != self.world or len(tensors) != len(self.forms):
            return False
        for form, tensor in zip(self.forms, tensors):
            if not form.fits(tensor):
                return False
        memory = [id(t._xt_storage) for t in tensors]
        if len(tensors) > 1 and aliases(tensors, memory) != self.aliases:
            return False
        return self.held.isdisjoint(memory)


class Compiled:
    """A function, its programs, and when it runs which.

    most: how many programs it captures. reasons: why it runs eagerly, by the form of its arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool = False,
        dynamic: bool | None = None,
        most: int | None = None,
        name: str | None = None,
    ) -> None:
        self.function = function
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self.most = LIMIT if most is None else most
        _all.add(self)
        owner = getattr(function, "__self__", None)
        if name is not None:
            self.name = name
        elif owner is not None:
            self.name = type(owner).__name__
        else:
            self.name = getattr(function, "__name__", type(function).__name__)
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.entries: list[Entry] = []
        self.refused: list[tuple[Any, Any, list[Form], str]] = []
        self.reasons: dict[str, str] = {}
        self.missed: dict[str, int] = {}
        self.warm = False
        self.gave_up = False
        self.limit = self.most
        self.told = False
        self.later = 0
        self.follower = Follower(self.function)
        self.moving: dict[str, int] = {}
        self.numbered: dict[str, int] = {}
        self.by_value: dict[str, int] = {}
        self.operands: dict[Any, Read] = {}
        self.untried: list[Any] = []
        self.kept_by_value: dict[Any, Read] = {}
        self.slots: dict[Any, Slot] = {}
        self.parts: Split | None = None
        self.head: Compiled | None = None
        self.cut = ""

    skeleton_of = staticmethod(lambda value, tensors: skeleton_of(value, tensors))
    world = staticmethod(lambda: world())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            capture.watchers
            or self.gave_up
            or state.mode & NEVER
            or state.transforms
            or stance[0] == "force_eager"
        ):
            return self.function(*args, **kwargs)
        if self.head is not None:
            return self._in_parts(args, kwargs)
        tensors: list[Tensor] = []
        numbers: list[tuple[Any, Any]] = []
        if self.numbered:
            given, options, numbers = named_numbers(self.numbered, self.slots, args, kwargs)
            skeleton = skeleton_of((tuple(given), options), tensors)
        else:
            skeleton = None if kwargs else plain_skeleton(args, tensors)
            if skeleton is None:
                skeleton = skeleton_of((args, kwargs), tensors)
        key = world()
        for at, entry in enumerate(self.entries):
            if entry.fits_arguments(tensors, skeleton, key) and entry.guards.hold():
                if at:
                    self.entries.insert(0, self.entries.pop(at))
                try:
                    return entry.program(
                        [*tensors, *[v for _, v in numbers]] if numbers else tensors,
                        (self.function, args, kwargs),
                    )
                except Unfit:
                    return self.function(*args, **kwargs)
        return self._other(args, kwargs, tensors, skeleton, key, numbers)

    # -- calls that no program fits

    def _other(
        self,
        args: Any,
        kwargs: Any,
        tensors: list[Tensor],
        skeleton: Any,
        key: Any,
        numbers: list[tuple[Any, Any]],
    ) -> Any:
        """Capture, or run eagerly."""
        if not all(map(capturable, tensors)):
            return self.function(*args, **kwargs)
        if not self.warm:
            with _capturing, self.follower.discovering():
                found = self.function(*args, **kwargs)
            self.warm = True
            return found
        for known, where, forms, _ in self.refused:
            if known == skeleton and where == key and len(forms) == len(tensors):
                if all(form.fits(t) for form, t in zip(forms, tensors)):
                    return self.function(*args, **kwargs)
        if stance[0] == "fail_on_recompile":
            raise RuntimeError(
                f"xtensor.compile: {self.name} has no program for this call, and the stance is fail_on_recompile"
            )
        if stance[0] == "eager_on_recompile":
            return self.function(*args, **kwargs)
        known = len(self.numbered)
        if self._count_misses(tensors, skeleton, key):
            return self._in_parts(args, kwargs)
        if len(self.numbered) > known:
            return self(*args, **kwargs)
        if len(self.entries) >= self.limit:
            if not self.dynamic:
                self._give_up()
                return self.function(*args, **kwargs)
            if not self.told:
                self.told = True
                checks.warn(
                    f"xtensor.compile: {self.name} has {self.limit} programs, and keeps {SIZES}. {self._differed()}",
                    UserWarning,
                )
            del self.entries[SIZES - 1 :]
        with _capturing:
            try:
                entry = self.captured(args, kwargs, tensors, skeleton, key, numbers)
            except Break as reason:
                broken: Any = reason
            else:
                self.entries.insert(0, entry)
                self.untried.clear()
                try:
                    return entry.program([*tensors, *[v for _, v in numbers]], (self.function, args, kwargs))
                except Unfit:
                    return self.function(*args, **kwargs)
        if numbers or self.untried:
            # Compared by value from now on.
            if numbers:
                self.by_value.update(self.numbered)
                self.numbered = {}
            for place in self.untried:
                self.kept_by_value[place] = self.operands.pop(place)
            self.untried.clear()
            return self(*args, **kwargs)
        forms = [Form(t) for t in tensors]
        if broken.line == "later" and self.later < LIMIT:
            self.later += 1  # an eager call makes what is missing
            return self.function(*args, **kwargs)
        if broken.line == "raised":
            # The user's own exception: it is raised again here, or not.
            found = self.function(*args, **kwargs)
            broken = Break(broken.reason, "")
            self._refuse(broken, skeleton, key, forms)
            return found
        if self._cut(broken.at, f"{broken.reason} ({broken.line})"):
            return self._in_parts(args, kwargs)
        self._refuse(broken, skeleton, key, forms)
        return self.function(*args, **kwargs)

    # -- in two parts

    def _cut(self, line: int, why: str) -> bool:
        """From now on capture what stands before a line, and resume eagerly there; False where it cannot be done."""
        parts = None if self.fullgraph else split_at(self.function, line)
        if parts is None:
            return False
        head = Compiled(parts.head, dynamic=self.dynamic)
        head.follower.codes.update(self.follower.codes)
        head.warm = True
        self.entries = []
        self.parts, self.head, self.cut = parts, head, f"from line {parts.line} on: {why}"
        return True

    def _in_parts(self, args: Any, kwargs: Any) -> Any:
        """Run the first part as a program, and the rest eagerly."""
        parts, head = self.parts, self.head
        assert parts is not None and head is not None
        given, options = parts.head_arguments(args, kwargs)
        return parts.rest(head(*given, **options), *args, **kwargs)

    def _refuse(self, broken: Break, skeleton: Any, key: Any, forms: list[Form]) -> None:
        where = f" ({broken.line})" if broken.line else ""
        text = f"xtensor.compile: {self.name} cannot be captured: {broken.reason}{where}"
        if self.fullgraph:
            raise RuntimeError(text)
        self.refused.append((skeleton, key, forms, broken.reason))
        if len(self.refused) > REFUSED:
            self.gave_up = True
        if broken.reason not in self.reasons:
            self.reasons[broken.reason] = broken.line
            checks.warn(f"{text}. It runs eagerly.", UserWarning)

    def _count_misses(self, tensors: list[Tensor], skeleton: Any, key: Any) -> bool:
        """Note why no program fits; True where the function is split before what reads a number that keeps changing."""
        for entry in self.entries:
            name = None
            if entry.fits_arguments(tensors, skeleton, key):
                why = entry.guards.said or "a guard"
                moved = entry.guards.moved()
                adopted = [read for read in moved if self._is_operand(read)]
                if adopted:
                    self.entries.remove(entry)  # the next serves all values
                    self.missed[why] = self.missed.get(why, 0) + 1
                    return False
                if moved and why == READS:
                    name = moved[0][1][-1]
            elif key != entry.world:
                why = "modes, the default dtype or the default device"
            elif skeleton != entry.skeleton:
                why = ARGUMENTS
                name = moving_argument(self.function, entry.skeleton, skeleton)
            else:
                why = "shapes, dtypes, strides or requires_grad of arguments"
            self.missed[why] = self.missed.get(why, 0) + 1
            if name is None:
                return False
            self.moving[name] = self.moving.get(name, 0) + 1
            if why == ARGUMENTS and name not in self.by_value:
                # It is tried as a value of the program, before it is compared by value.
                self.numbered[name] = position_of(self.function, name)
                return False
            if self.moving[name] < OFTEN:
                return False
            return self._cut(loading(self.function, name), f"{name} keeps changing")
        return False

    def _is_operand(self, read: Read) -> bool:
        """Whether something read that is another now is tried as a value of the program, from the next capture on."""
        place = key_of(read)
        if place in self.kept_by_value or not (is_number(read[2]) and is_number(reader(*read[:2])())):
            return False
        if place not in self.operands:
            self.operands[place] = read
            self.untried.append(place)
        return True

    def _give_up(self) -> None:
        """After so many programs: eager from now on."""
        self.gave_up = True
        checks.warn(
            f"xtensor.compile: {self.name} was captured {self.limit} times and runs eagerly from now on. {self._differed()}. Where its "
            "sizes are meant to vary, xtensor.compile(..., dynamic=True) keeps more programs",
            UserWarning,
        )

    def _differed(self) -> str:
        """What no program fitted for, and how often, the most frequent first."""
        often = ", ".join(f"{why}: {n}" for why, n in sorted(self.missed.items(), key=lambda kv: -kv[1]))
        return f"What differed, and how often: {often}"

    def captured(
        self,
        args: Any,
        kwargs: Any,
        tensors: list[Tensor],
        skeleton: Any,
        key: Any,
        numbers: list[tuple[Any, Any]] | None = None,
    ) -> Entry:
        """A program for these arguments; Break where there is none."""
        for _ in range(4):
            missing = len(self.follower.codes)
            try:
                return self._captured(args, kwargs, tensors, skeleton, key, numbers or [])
            except Break:
                # Code that had not run before is followed from now on.
                if len(self.follower.codes) == missing:
                    raise
        raise Break("it runs code that is new at every call", "")

    def _captured(
        self,
        args: Any,
        kwargs: Any,
        tensors: list[Tensor],
        skeleton: Any,
        key: Any,
        numbers: list[tuple[Any, Any]],
    ) -> Entry:
        trace = Trace(tensors)
        recorder = self.follower.recorder(trace, self.operands)
        try:
            return self._traced(trace, recorder, args, kwargs, tensors, skeleton, key, numbers)
        finally:
            # What JAX and frames of errors may still refer to holds no tracer, and no tensor.
            trace.__dict__.clear()
            recorder.__dict__.clear()

    def _traced(
        self,
        trace: Trace,
        recorder: Recorder,
        args: Any,
        kwargs: Any,
        tensors: list[Tensor],
        skeleton: Any,
        key: Any,
        numbers: list[tuple[Any, Any]],
    ) -> Entry:
        began = time.perf_counter()
        forms = [Form(t) for t in tensors]
        found: list[Leaves] = []

        def body() -> Any:
            replaced = {}
            for number, tensor in enumerate(tensors):
                if not forms[number].by_value:
                    _ = tensor._xt_storage
                elif id(tensor) not in replaced:
                    replaced[id(tensor)] = trace.by_value(tensor, number)
            for what, value in self.follower.arguments(args, kwargs):
                recorder.load(value, what)
            more, options = exchanged((args, kwargs), replaced) if replaced else (args, kwargs)
            if numbers:
                more, options = with_numbers(trace, more, options, numbers, len(tensors))
            leaves = describe(trace, self.function(*more, **options))
            recorder.finish()
            if world() != key:
                raise Break("it leaves modes or defaults changed", "")
            found.append(leaves)
            return [*leaves.outs, *leaves.gradients]

        def safe_body() -> Any:
            try:
                with recorder.following(), trace.watching():
                    return body()
            except BaseException as error:
                # JAX keeps what it has of a trace that raises; one that ends it lets go of.
                errors.append(error)
                return []

        errors: list[BaseException] = []
        closed = call(jax.make_jaxpr(safe_body))
        if errors:
            error = errors.pop()
            reason = reason_of(error, trace)
            if isinstance(reason, Break):
                reason.at = line_in(self.function, error) or line_in(self.function, reason)
            raise reason from None
        (leaves,) = found
        held = escaped(trace)
        if held:
            raise Break(f"{held} of the tensors that it makes outlive it", "")
        sent = [n for n, s in enumerate(trace.inputs) if s.kind == "sent"]
        sent.sort(key=lambda n: trace.inputs[n].what)
        parts = parts_of(closed, sent, len(leaves.outs))
        groups = [[h.storage for h in group] for group in trace.groups.values() if len(group) > 1]
        program = Program(self.name, trace.inputs, parts, leaves, groups, trace.elsewhere, trace.sharding)
        program.effects = trace.effects
        guards = program.guards = Guards(
            trace,
            recorder.modules(),
            recorder.valid(),
            recorder.told(),
            recorder.numbers(),
            recorder.operands.attributes(),
        )
        entry = Entry(
            program,
            guards,
            forms,
            skeleton,
            key,
        )
        entry.aliases = aliases(tensors, [id(t._xt_storage) for t in tensors])
        own = {id(t._xt_storage) for t in tensors}
        apart = trace.arguments.keys() | trace.borrowed
        others = {id(m.storage) for k, m in trace.met.items() if k not in apart}
        if own & others:
            raise Break("an argument is also reached by another way", "")
        entry.held = others
        entry.seconds = (time.perf_counter() - began, 0.0)
        return entry


def reason_of(error: BaseException, trace: Trace) -> BaseException:
    """What to raise for an exception within a capture."""
    if trace.broken is not None:
        return trace.broken
    if not isinstance(error, Exception):
        return error
    if isinstance(
        error, (jax.errors.JAXTypeError, jax.errors.JAXIndexError, jax.errors.UnexpectedTracerError)
    ):
        line = user_line(error.__traceback__)
        return Break("it needs a value of a tensor, which is not known in a capture", line)
    text = str(error).strip().partition("\n")[0]
    return Break(f"{type(error).__name__}: {text}", "raised")


def escaped(trace: Trace) -> int:
    """How many tensors that were made in a capture are still alive after it."""

    def alive() -> int:
        storages = [ref() for ref in trace.fresh_storages.values()]
        return sum(1 for s in storages if s is not None and isinstance(cell.__get__(s), Tracer))

    trace.checks = []
    trace.modules.clear()
    trace.metas = {k: found for k, found in trace.metas.items() if found[1] is not UNSET}
    trace.read_only.clear()
    trace.known_counts.clear()
    trace.vectors.clear()
    if alive():
        gc.collect()
    return alive()
