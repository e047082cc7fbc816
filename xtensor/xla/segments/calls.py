"""Calls that wait: what a function runs in the place of its program, and the segment that notes calls down."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax

from ..cache import BoundedCache, bounded, clear_all
from ..compiles import watched
from ..executables import form_named, interned
from ..jax_internals import programs as inside
from ..jax_internals import started
from ..memory import LARGE, within
from ..pending import Pending, Work, processors, settled, workers
from ..sizes.spans import Uncut, is_uncut
from ..store import form_of, made_anew
from ..threads import OWN, others
from ..x64 import call, choose, chosen, facts, prepare
from .apart import convolves
from .loops import ENOUGH, align, seek
from .running import by_call, form_like, grouped, pended, run, sharding
from .steps import Patience
from .structures import (
    COUNTED,
    IDLE,
    LENGTH,
    LONGEST,
    MOST,
    MOST_PATIENT,
    NODES,
    PASSED,
    WORK,
    Array,
    Node,
    Signature,
    Tree,
    counts,
    ended,
    pace,
    state,
)
from .trial import Trial

__all__ = [
    "Known",
    "Segment",
    "Waiter",
    "begin",
    "close",
    "describe",
    "allowed",
    "enable",
    "enabled",
    "finish",
    "known",
    "patience",
    "paused",
    "prompt",
    "stats",
    "unmade",
    "waiter",
]

ALIASES = 4
"""Other objects for the same forms by which a node is found at once."""
new = object.__new__
OUTSIDE = chosen()
VALUE = "a value"
PATIENT = "patient"
"""Marks a signature of patient calls, where others do not wait."""


class Segment:
    """Calls that wait: `(node, arguments, results)` of each, the root's first. late: whether it was run before. before: as `align` has it.
    closed: what ended it, if it waits longer; after: what is done then, once it has run.
    """

    __slots__ = ("after", "before", "calls", "closed", "late", "lock")

    def __init__(self) -> None:
        self.calls: list[Any] = [(state.tree.root, (), ())]
        self.before: Sequence[Any] = ()
        self.late = False
        self.closed = ""
        self.after: Callable[[], None] | None = None
        self.lock = threading.RLock()

    @property
    def sharding(self) -> Any:
        """Where the results will lie."""
        return sharding()

    def is_committed(self, at: int) -> bool:
        """Whether the result of a number will be tied to its device."""
        node: Node = self.calls[-1][0]
        while node.first < at:
            node = node.parent  # type: ignore[assignment]
        return node.committed

    def finish(self, why: str = VALUE) -> None:
        """Have all results. What is interrupted or fails is done again when it is asked for. why: as `stats` counts it."""
        with self.lock:
            if state.segment is self:
                begin()
            elif state.closed is self:
                state.closed = None
                why = self.closed
            calls = self.calls[:]
            if len(calls) == 1:
                return
            # As outside of xtensor's own calls: a program's signature is another where 64-bit types are on.
            before = chosen()
            told: tuple[Any, ...] = (calls,) if self.late else (calls, why)
            how: Callable[..., bool | None] = by_call if self.late else run
            if not self.late:
                ended[why] += 1
            self.late = True
            try:
                choose(OUTSIDE)
                if inside is None or inside.is_clean():
                    paid = how(*told)
                else:  # JAX traces something else here, in what it keeps for this thread
                    paid = elsewhere(how, *told)
            finally:
                choose(before)
            last: Node = calls[-1][0]
            full = why in (LENGTH, WORK) and len(calls) > ENOUGH
            if full and last.structure is not None and not last.structure.whole:
                align(calls, self.before)
            # What another thread noted down meanwhile runs when it is asked for.
            del self.calls[1 : len(calls)]
            if self.after is not None:
                self.after()
                self.after = None
            if state.patient:
                structure = last.structure
                whole = structure is not None and structure.whole
                # One for other results may be: they come now and then.
                first_one = structure is not None and structure.waits() and not structure.programs
                patience.ran(len(calls) - 1, whole, first_one, why)
                return
            first: Node = calls[1][0]
            paid = paid if paid is None or last.gain >= pace().gain else False
            first.ended(paid)
            rest(1 if paid is None else -2 if paid else 2)
            if state.background:
                try_out(calls, last)

    _run = finish


def try_out(calls: list[Any], last: Node) -> None:
    """Count a segment's calls in a trial, or begin one where segments run as one program."""
    trial = state.trial
    if trial is None:
        if last.structure is not None and last.structure.whole:
            state.ran += 1
            if state.ran >= state.due and not state.making:
                state.trial = Trial(calls[1][0].called.number, switch, judged)
        return
    waits = trial.waits
    for node, _, _ in calls[1:]:
        trial.seen(node.called.number)
        if state.trial is not trial or trial.waits is not waits:
            return


def switch(waits: bool) -> None:
    """Have calls wait, or not, in a trial."""
    state.idle = 0 if waits else 1
    state.seeking = 0
    begin()
    if waits:
        seek()


def judged(pays: bool | None) -> None:
    """End a trial. pays: whether calls shall wait; None where it says nothing."""
    state.trial, state.ran, state.seeking = None, 0, 0
    if pays is False:
        state.idle, state.segment = state.away, None
        state.away = min(4 * state.away, LONGEST)
        return
    if pays:
        state.due *= 8
        state.passed, state.away = 0, 4 * IDLE
    state.idle = 0
    begin()
    seek()


def be_patient(on: bool) -> None:
    """Have calls wait for a whole step, or no longer. Structures are other ones then: what a segment ends with, and which calls wait."""
    finish()
    state.patient = on
    state.most = MOST_PATIENT if on else MOST
    state.tree, state.other = state.other, state.tree
    state.trial = state.start = None
    state.passed = state.idle = state.seeking = 0
    begin()


patience = Patience(be_patient)


def elsewhere(how: Callable[..., bool | None], *told: Any) -> bool | None:
    """Have calls made by a thread of their own."""
    failed: list[BaseException] = []
    found: list[bool | None] = []

    def work() -> None:
        try:
            found.append(how(*told))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name=f"{OWN}segments")
    thread.start()
    thread.join()
    if failed:
        raise failed.pop()
    return found.pop()


def begin() -> None:
    """Let calls wait, where they may."""
    state.segment = Segment() if state.on and not (state.blocks or state.idle) else None


def pass_by(number: int) -> bool:
    """Count a call that does not wait since structures did not come again, or a trial is on, or a loop's turn has not begun; False where this
    one begins it.
    """
    if state.trial is not None:
        state.trial.seen(number)
    elif not state.seeking:
        state.idle -= 1
        if not state.idle:
            state.epoch += 1
            begin()
            seek()
        return True
    if state.seeking:
        if (state.last, number) == state.start:
            state.idle = state.seeking = 0
            begin()
            return state.segment is None
        state.last = number
        state.seeking -= 1
        if not state.seeking:
            state.start, state.idle = None, 0
            begin()
    return True


def pass_first(node: Node) -> None:
    """Count a call that does not wait since segments which begin with it gained nothing."""
    node.unpaid = 0 if node.epoch != state.epoch else node.unpaid + 1
    node.waits = not node.unpaid
    rest(2)


def rest(much: int) -> None:
    """Count what gained nothing, less what did. Past some no call waits, each time for longer."""
    state.passed += much
    if state.passed <= 0:
        state.passed, state.rest = 0, IDLE
    elif state.passed >= PASSED and state.background:
        state.rest = min(2 * state.rest, LONGEST)
        state.passed, state.idle, state.seeking, state.segment = 0, state.rest, 0, None


def wake() -> None:
    """A program was compiled: what comes next may have to be compiled too, which calls that wait do beside each other."""
    if state.idle and not state.making:
        state.trial = None
        state.idle = state.seeking = 0
        state.epoch += 1
        begin()


made_anew.append(wake)


def wake_first() -> None:
    """Let calls wait from the beginning where each takes long to launch."""
    state.first = False
    if pace().reads and state.background:
        state.idle = 0
        begin()


def close(why: str, after: Callable[[], None]) -> None:
    """Let what waits wait until one of its results is needed, though no call joins it any more: what nobody can see by then is not given.

    after: what is done once it has run. At most one such segment waits.
    """
    before, segment = state.closed, state.segment
    if segment is None or len(segment.calls) == 1:
        after()
        return
    segment.closed, segment.after = why, after
    state.closed = segment
    begin()
    if before is not None:
        before.finish()


def finish(why: str = "a pause") -> None:
    """Run what waits."""
    closed = state.closed
    if closed is not None:
        closed.finish()
    segment = state.segment
    if segment is not None and len(segment.calls) > 1:
        segment.finish(why)


def finish_before_fork() -> None:
    """Run what waits, and wait for what runs: a process that is forked has none of XLA's threads, which would end it."""
    finish()
    if started is None or not started():  # asking for arrays would start XLA, which a child cannot have
        return
    for array in jax.live_arrays():
        with contextlib.suppress(RuntimeError):  # what failed, or was given up meanwhile
            array.block_until_ready()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=finish_before_fork)


def unmade() -> bool:
    """Whether some call waits whose program is being compiled."""
    segment = state.segment
    return segment is not None and segment.calls[-1][0].unmade


def waiting() -> bool:
    """Whether some call waits."""
    segment = state.segment
    return segment is not None and len(segment.calls) > 1


def enable(on: bool) -> None:
    """Whether calls may wait from now on."""
    finish()
    state.trial = None
    state.idle = state.passed = state.seeking = 0
    state.start = None
    if state.on is not (on and inside is not None):
        state.on = not state.on
        clear_all()  # functions hold programs whose calls wait, or those that do not
    begin()


def enabled() -> bool:
    """Whether calls may wait."""
    return state.segment is not None


def allowed() -> bool:
    """Whether calls may wait here, though at the time none does since that would not pay."""
    return state.on and not state.blocks


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Within the block no call waits; what waited before has run."""
    finish()
    state.blocks += 1
    state.segment = None
    try:
        yield
    finally:
        state.blocks -= 1
        begin()


def stats() -> dict[str, Any]:
    """Segments that ran as one program, and call by call; the calls of those that ran as one; programs compiled for segments; structures
    known; and how many were ended by what: a value that was needed, their length or work, a pause.
    """
    return {**dict.fromkeys(COUNTED, 0), **counts, "structures": state.tree.count, "ended by": dict(ended)}


class Known(NamedTuple):
    """A structure of segments that ran: the programs of its calls; how often they ran, as one program and one by one; what ended them,
    and how often; how many programs were compiled for it.
    """

    names: tuple[str, ...]
    whole: int
    by_call: int
    ended: dict[str, int]
    compiled: int

    def __str__(self) -> str:
        return (
            f"{len(self.names)} calls ({', '.join(self.names)}): ran {self.whole} times as one program and {self.by_call} one by one; "
            f"ended by {', '.join([f'{why} ({n})' for why, n in self.ended.items()])}; programs compiled: {self.compiled}"
        )


def known(programs: Iterable[Any]) -> list[Known]:
    """The structures in which calls of some programs ran, those that ran most often first."""
    found: list[Known] = []
    asked = set(map(id, programs))
    nodes = [state.tree.root]
    while nodes:
        node = nodes.pop()
        nodes += {id(n): n for n in list(node.next.values())}.values()
        structure = node.structure
        if structure is not None and any(id(n.called.program) in asked for n in structure.nodes):
            ran = sum(structure.ended.values())
            found.append(
                Known(
                    tuple(structure.names()),
                    structure.runs,
                    ran - structure.runs,
                    dict(structure.ended),
                    len(structure.programs),
                )
            )
    return sorted(found, key=lambda k: -(k.whole + k.by_call))


WAIT = """
def wait({parameters}):
    segment = state.segment
    if segment is None or others:
        if not state.idle or pass_by(number) or others:
            return program({arguments})
        segment = state.segment
{keys}
    calls = segment.calls
    node = calls[-1][0].next.get((number, {names}))
    if node is None:
        node = learn(segment, ({arguments}), ({names}))
        if type(node) is not Node:
            return node[0]
    if not node.waits:
        if state.trial is not None:
            state.trial.seen(number)
        if node.unpaid < 0:
            pass_first(node)
        if len(calls) == 1:
            return program({arguments})
        return odd(({arguments}))
{results}
    if len(calls) > state.most or node.ends:{keep}
        segment.finish(node.ends or LENGTH)
    return {given}
"""
KEY = """
    t = type(a{i})
    if t is Array:{check}
        k{i} = id(a{i}.aval)
    elif t is Pending:
        if a{i}._call is segment and a{i}._value is None:
            k{i} = a{i}.at
        else:
            if type(a{i}._call) is not Uncut:
                a{i} = a{i}.value()
            k{i} = id(a{i}.aval)
    elif a{i} is None:
        k{i} = None
    else:
        return odd(({arguments}))
"""
CHECK = """
        if id(a{i}.sharding) not in homes and not at_home(a{i}):
            return odd(({arguments}))"""
"""Where there are several devices."""
ONE = """
    p = new(Pending)
    p._call = segment
    p._value = None
    p.aval = node.aval
    p.at = node.first
    calls.append((node, ({arguments}), p))
"""
KEEP = """
        kept = [*p]"""
"""Whoever counts references to results finds that these are wanted."""
SEVERAL = """
    p = tuple([pended(segment, a, node.first - i) for i, a in enumerate(node.avals)])
    calls.append((node, ({arguments}), p))
"""


class Waiter:
    """A program's calls, which may wait, with arguments laid flat.

    single: whether it gives one array. traced: whether a trace tells the forms of its results. lengths: of each argument its length
    where it is a tuple, else -1; None where none is one. gain: of a call within one program, where that of an operator on whole
    arrays is 1.
    """

    __slots__ = ("function", "gain", "lengths", "met", "number", "program", "signatures", "single", "traced")

    def __init__(
        self, program: Any, single: bool, number: int, traced: bool, lengths: Any, gain: float
    ) -> None:
        self.program = program
        self.gain = gain
        self.lengths = lengths
        self.traced = traced
        self.single = single
        self.number = number
        self.signatures: BoundedCache[Any, Signature] = BoundedCache(256)
        # Forms whose programs were there when they came first.
        self.met: BoundedCache[Any, bool] = BoundedCache(256)

    def at_once(self, args: tuple[Any, ...]) -> Any:
        """A call that does not wait."""
        flat = [a if type(a) is Array else come(a) for a in args]
        return self.program(*flat) if self.lengths is None else self.program(*grouped(self.lengths, flat))

    def learn(self, segment: Segment, args: tuple[Any, ...], names: tuple[Any, ...]) -> Any:
        """The node of a call that is not found by its arguments; or, in a tuple, what the call gives."""
        tree = state.tree
        if tree.count >= NODES:
            segment.finish()
            state.tree = Tree()
            begin()
            return (self.function(*args),)
        parent = segment.calls[-1][0]
        forms = tuple([None if a is None else interned(a.aval) for a in args])
        held = tuple([None if a is None else (f, a.committed) for a, f in zip(args, forms)])
        inner = [type(a) is Pending and a._value is None and a._call is segment for a in args]
        key = (
            self.number,
            *[n if i or n is None else id(f) for n, f, i in zip(names, forms, inner, strict=True)],
        )
        node = parent.next.get(key)
        if node is None:
            signature = self.signatures.get(held)
            patient = state.patient and signature is not None and signature.passing
            if patient:
                signature = self.signatures.get((held, PATIENT))
            if signature is None:
                signature = self.signature(args, held, patient)
                if type(signature) is not Signature:
                    return signature
                self.signatures[(held, PATIENT) if patient else held] = signature
                if not self.is_ready(signature):
                    made = self.making(signature)
                    if processors() > 1:  # it begins while the program goes on
                        workers.submit(made)
                if state.segment is not segment:  # it has run meanwhile
                    return (self.function(*args),)
            sources = tuple([n if i or n is None else 0 for n, i in zip(names, inner, strict=True)])
            node = parent.next[key] = Node(parent, self, signature, sources)
            tree.count += 1
            tree.held.update({id(f): f for f in forms if f is not None})
        if node.aliases < ALIASES:
            node.aliases += 1
            tree.held.update({id(a.aval): a.aval for a in args if a is not None})
            parent.next[self.number, *names] = node
        return node

    def commits(self, signature: Signature) -> bool:
        """Whether results of such calls are tied to their device."""
        return "out_shardings" in self.program._xt_program.options or any(
            h is not None and h[1] for h in signature.held
        )

    def signature(self, args: tuple[Any, ...], held: tuple[Any, ...], patient: bool = False) -> Any:
        """What there is to know of calls with such arguments; or, in a tuple, what this one gives. patient: by its own program, whatever
        answers the first ones.
        """
        made = self.program._xt_program
        leaves, structure = jax.tree.flatten(tuple(grouped(self.lengths, args)))
        form = form_of(leaves, structure, made.options)
        if form is None or not is_home(form.device):
            return (self.at_once(args),)
        if not self.traced:
            found = self.at_once(args)
            avals = [interned(a.aval) for a in jax.tree.leaves(found)]
            made = self.signatures[held] = Signature(avals, form, held, 0)
            made.ready = True
            return (found,)
        sized = None if patient else self.program.sized
        if sized is not None:
            own = tuple(grouped(self.lengths, args))
            expected = call(sized.expected, self.program, own)
            if expected is not None:
                signature = Signature(expected.forms, form, held, 0, not expected.exact)
                prepare = expected.prepare
                signature.ready = prepare is None
                if prepare is not None:
                    told = watched(self.program.__name__)
                    signature.made = Work(lambda: prepared(signature, prepare, told))
                return signature
            found, came = call(sized.answer, self.program, own)
            if came:  # JAX's cache has it as a signature that always comes by
                self.program._clear_cache()
            if found is not None or came:
                # Programs over other sizes answer such calls, at once.
                self.never(form, held).passing = True
                return (self.at_once(args) if found is None else found,)
        if state.background and form not in self.met and made.is_ready(form):
            # Loaded here it is used sooner than by a thread, and a program that runs once needs no more than that.
            self.met[form] = True
            return (self.at_once(args),)
        told = facts(self.program, tuple(self.forms(held)), describe)
        if told["effects"] or told["size"] > LARGE:  # what may find no memory fails at once
            self.never(form, held)
            return (self.at_once(args),)
        return Signature(
            [form_named(tuple(s), d, w) for s, d, w in told["results"]], form, held, told["products"]
        )

    def never(self, form: Any, held: Any) -> Signature:
        """Keep that calls with such arguments do not wait."""
        signature = self.signatures[held] = Signature((), form, held, 1 << 62)
        signature.ready = True
        return signature

    def forms(self, held: Sequence[Any]) -> list[Any]:
        """What stands for arguments of these forms when the program is compiled."""
        return grouped(self.lengths, list(map(form_like, held)))

    def making(self, signature: Signature) -> Work:
        """What compiles the program for a signature."""
        if signature.made is None:
            forms = self.forms(signature.held)
            told = watched(self.program.__name__)  # of the line that asks now
            signature.made = Work(lambda: prepare(self.program, *forms, told=told))
        return signature.made

    def is_ready(self, signature: Signature) -> bool:
        """Whether the program is compiled for a signature, or on disk."""
        if not signature.ready:
            signature.ready = self.program._xt_program.is_ready(signature.form)
        return signature.ready


def prepared(signature: Signature, prepare: Callable[[Any], None], told: Any) -> None:
    """Have the program that answers calls of a signature compiled."""
    prepare(told)
    signature.ready = True


def describe(jaxpr: Any) -> dict[str, Any]:
    """What a trace tells of a call: its results' forms, whether it does more than give them, its values' bytes, its multiplications."""
    return {
        "results": [[list(v.aval.shape), v.aval.dtype.name, bool(v.aval.weak_type)] for v in jaxpr.outvars],
        "effects": bool(jaxpr.effects),
        "size": within(jaxpr),
        "products": products(jaxpr),
    }


def products(jaxpr: Any) -> int:
    """About how many multiplications a program makes in products of matrices; very many where it convolves, sorts or loops."""
    found = 0
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            sizes = [equation.invars[0].aval.shape[dim] for dim in contracted]
            found += equation.outvars[0].aval.size * math.prod(sizes)
        elif name in MANY or convolves(equation):
            found += 1 << 30
        else:
            for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=is_jaxpr):
                if is_jaxpr(inner):
                    found += products(inner)
    return found


MANY = ("while", "scan", "sort", "custom_call", "ffi_call")


def is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns")


def come(value: Any) -> Any:
    """An argument that is there, or `Uncut`."""
    if type(value) is Pending and value._value is not None:
        return value._value
    return value if is_uncut(value) else settled(value)


def is_home(device: Any) -> bool:
    """Whether calls on a device may wait: it is the first one."""
    return device == jax.devices()[0]


homes: BoundedCache[int, Any] = BoundedCache(256)
"""Shardings of arrays on that device, by their addresses."""


def at_home(array: Any) -> bool:
    """Whether an array lies on the device whose calls may wait."""
    placed = array.sharding
    if inside is None or type(placed) is not inside.Single or not is_home(placed._device):
        return False
    homes[id(placed)] = placed
    return True


_number = iter(range(1, sys.maxsize))


def waiter(program: Any, count: int, tree: Any, traced: bool = True, gain: float = 1.0) -> Callable[..., Any]:
    """`program`, a function of `jit` of so many arguments that are arrays or None, whose calls may wait.

    tree: the structure of what it gives, as JAX has it; None for a flat tuple. traced: whether a trace tells the forms of its
    results; else its first call does. gain: as `Waiter` has it.
    """
    if not state.on or getattr(program, "_xt_program", None) is None:
        return program
    made = getattr(program, "_xt_waiter", None)
    if made is not None:
        return made
    made = program._xt_waiter = flat_waiter(program, count, tree, traced, None, gain)
    return made


def waiter_of_tuples(program: Any, tree: Any) -> Callable[..., Any]:
    """As `waiter`, of a program of which some arguments are tuples."""
    if not state.on or getattr(program, "_xt_program", None) is None:
        return prompt(program)
    known: dict[tuple[int, ...], Any] = {}

    def wait(*args: Any) -> Any:
        lengths = tuple([len(a) if type(a) is tuple else -1 for a in args])
        found = known.get(lengths)
        if found is None:
            if len(known) >= LENGTHS:
                return program(*map(settled, args))
            found = known[lengths] = flat_waiter(program, sum(map(abs, lengths)), tree, True, lengths)
        flat: list[Any] = []
        for a in args:
            if type(a) is tuple:
                flat += a
            else:
                flat.append(a)
        return found(*flat)

    return wait


def flat_waiter(
    program: Any,
    count: int,
    tree: Any,
    traced: bool,
    lengths: tuple[int, ...] | None = None,
    gain: float = 1.0,
) -> Callable[..., Any]:
    """The function that has calls with so many arguments laid flat wait."""
    if state.first:
        wake_first()
    single = tree is not None and tree == SINGLE
    called = Waiter(program, single, next(_number), traced, lengths, gain)
    arguments = "".join([f"a{i}, " for i in range(count)])
    check = CHECK if jax.device_count() > 1 or jax.devices()[0].platform != "cpu" else ""
    text = WAIT.format(
        parameters=arguments,
        arguments=arguments,
        keys="".join(
            [
                KEY.format(i=i, arguments=arguments, check=check.format(i=i, arguments=arguments))
                for i in range(count)
            ]
        ),
        names="".join([f"k{i}, " for i in range(count)]),
        results=(ONE if single else SEVERAL).format(arguments=arguments),
        keep="" if single else KEEP,
        given="p" if single or tree is None else "unflatten(p)",
    )
    namespace: dict[str, Any] = {
        "Array": Array,
        "LENGTH": LENGTH,
        "Node": Node,
        "Pending": Pending,
        "Uncut": Uncut,
        "__name__": __name__,
        "at_home": at_home,
        "homes": homes,
        "learn": called.learn,
        "new": new,
        "number": called.number,
        "odd": called.at_once,
        "others": others,
        "pass_by": pass_by,
        "pass_first": pass_first,
        "pended": pended,
        "program": program if lengths is None else lambda *flat: program(*grouped(lengths, flat)),
        "state": state,
        "unflatten": None if tree is None else tree.unflatten,
    }
    exec(code_of(text), namespace)
    called.function = namespace["wait"]
    return called.function


@bounded(128)
def code_of(text: str) -> Any:
    """The code of a function that has calls wait: one for all programs of so many arguments and such results."""
    return compile(text, "<xtensor segments>", "exec")


LENGTHS = 16
"""Structures of arguments for which a program's calls may wait."""


def prompt(program: Any) -> Callable[..., Any]:
    """`program`, whose calls may have arguments that are pending and do not wait."""
    if not state.on:
        return program  # it waits for them itself, where it does not know their signature

    def at_once(*args: Any) -> Any:
        return program(*[a if type(a) is Array else settled(a) for a in args])

    return at_once


SINGLE: Any = jax.tree.structure(0)
"""The structure of one array."""

begin()
