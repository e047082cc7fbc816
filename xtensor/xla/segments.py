"""Segments: calls of programs that wait for each other, and then run as one program, each kept as it is by itself.

A call of small arrays is noted down: its program, its arguments (arrays, or results of earlier calls), and what it will give, as
`Pending`s. Whoever needs a value has the segment run (`Segment.finish`). Its structure, which programs on what, is found in a tree
as the calls come (`Node`): so a call's results are known by their forms at once, and a segment that came before has its program
at hand. The programs inside it are not fused with each other (`apart`), so that its results have the bits that they have by
themselves, and nobody can tell whether a call waited.

A new structure runs by its calls' own programs, one after the other; those that are missing are compiled beside each other by
threads. Once it has come `hot` times, a thread compiles one program for the whole segment, which answers from then on.

Calls with large arrays run longer than a call takes, and Python goes on beside them: they wait only where their program is still to
be compiled. Calls wait on the first CPU device, in programs of one thread, and only where that is asked for: by `XTENSOR_SEGMENTS=1` in the
environment or `enable(True)`. With `XTENSOR_SEGMENTS=hot` every structure has its program at once, for tests.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, starmap
from typing import Any

import jax

from .apart import apart, convolves
from .cache import BoundedCache, bounded, clear_all
from .executables import form_named, interned
from .jax_internals import programs as inside
from .pending import Pending, Work, Workers, processors, settled, settlers
from .store import form_of
from .threads import others
from .x64 import call, choose, chosen, facts, jit, prepare

__all__ = ["Segment", "Waiter", "enable", "enabled", "finish", "paused", "stats", "waiter"]

MOST = 64
"""Calls of a segment: then it runs."""
LONG = 50.0
"""Microseconds of work, about, after which a segment runs, so that the device has something to do; a call of more does not wait."""
HELD_BYTES = 1 << 28
"""Bytes of the arguments and results of calls that wait for their programs: then they run."""
STRANGE = 64
"""Segments of new structures, one after the other, after which no call waits for a while."""
IDLE = 4096
"""Calls that do not wait then."""
NODES = 1 << 14
"""Nodes of the tree; then it is begun anew."""
ALIASES = 4
"""Other objects for the same forms by which a node is found at once."""

new = object.__new__
references = sys.getrefcount
Array: Any = None if inside is None else inside.Array


class Signature:
    """What is known of a program's calls with arguments of these forms.

    avals: the forms of the results. form: as the store has it. held: of each argument its form, and whether it is tied to its
    device. work: about how many microseconds a call takes. size: the bytes of what it takes and gives. ready: whether the program
    itself is compiled, or on disk. made: what compiles it, once somebody asked for that.
    """

    __slots__ = ("avals", "form", "held", "made", "ready", "size", "work")

    def __init__(self, avals: Sequence[Any], form: Any, held: Any, products: int) -> None:
        self.avals = avals
        self.form = form
        self.held = held
        self.ready = False
        self.made: Work | None = None
        forms = [*[h[0] for h in held if h is not None], *avals]
        self.size = sum([a.size * a.dtype.itemsize for a in forms])
        self.work = self.size * PER_BYTE + products * PER_PRODUCT


PER_BYTE, PER_PRODUCT = 1e-4, 2e-5
"""Microseconds that a byte read or written takes, and a multiplication in a product."""


class Node:
    """A structure: the calls that lead to it from the root of the tree, the last of which is its own.

    sources: of each argument of that call None, a result's number in the segment, from -1 downwards, or 0 for an array from outside.
    first: the number of the call's first result. next: the structures with a call more, by what is asked of that call.
    """

    __slots__ = (
        "aliases",
        "aval",
        "avals",
        "called",
        "committed",
        "ends",
        "first",
        "next",
        "parent",
        "signature",
        "size",
        "sources",
        "structure",
        "waits",
        "work",
    )

    def __init__(self, parent: Node | None, called: Any, signature: Any, sources: tuple[Any, ...]) -> None:
        self.parent = parent
        self.called: Waiter = called
        self.signature: Signature = signature
        self.sources = sources
        self.first = -1 if parent is None else parent.first - len(parent.avals)
        self.waits = parent is not None and not (signature.work > LONG and called.is_ready(signature))
        self.avals: Sequence[Any] = signature.avals if self.waits else ()
        self.aval = self.avals[0] if self.avals else None
        # Whether a segment that comes to here is to run.
        self.size = self.work = 0.0
        if parent is not None and self.waits:
            self.size = parent.size + signature.size
            self.work = parent.work + signature.work
        self.ends = (self.work > LONG and called.is_ready(signature)) or self.size > HELD_BYTES
        self.committed = parent is not None and called.commits(signature)
        self.next: dict[Any, Node] = {}
        self.aliases = 0
        self.structure: Structure | None = None


class Tree:
    """All structures that came: the root, how many nodes there are, and forms whose addresses stand in keys."""

    def __init__(self) -> None:
        self.root = Node(None, None, None, ())
        self.count = 0
        self.held: dict[int, Any] = {}


class Segment:
    """Calls that wait: `(node, arguments, results)` of each, the root's first."""

    __slots__ = ("calls", "lock")
    leaves = ()
    committed = False

    def __init__(self) -> None:
        self.calls: list[Any] = [(state.tree.root, (), ())]
        self.lock = threading.RLock()

    @property
    def sharding(self) -> Any:
        """Where the results will lie."""
        return sharding()

    def finish(self) -> None:
        """Have all results. What is interrupted or fails is done again when it is asked for."""
        with self.lock:
            if state.segment is self:
                begin()
            calls = self.calls
            if len(calls) == 1:
                return
            # As outside of xtensor's own calls: a program's signature is another where 64-bit types are on.
            before = chosen()
            try:
                choose(OUTSIDE)
                if inside is None or inside.is_clean():
                    run(calls)
                else:  # JAX traces something else here
                    with jax.ensure_compile_time_eval():
                        run(calls)
            finally:
                choose(before)
            self.calls = calls[:1]

    _run = finish


@bounded(1)
def sharding() -> Any:
    """The one device, as arrays say it."""
    return jax.sharding.SingleDeviceSharding(jax.devices()[0])


class State:
    """The segment that calls join, None where they do not wait; the tree; how many blocks let none wait.

    strange: segments of new structures that ran last. idle: calls that do not wait for that, from now on.
    hot: times that a structure runs by its calls' own programs. background: whether its program is then compiled by a thread.
    """

    def __init__(self) -> None:
        self.tree = Tree()
        self.segment: Segment | None = None
        self.on = inside is not None and told() in ("1", "on", "yes", "true", "hot")
        self.blocks = self.idle = self.strange = 0
        self.hot = 1 if told() == "hot" else 24
        self.background = told() != "hot"


def told() -> str:
    """What the environment says."""
    return os.environ.get("XTENSOR_SEGMENTS", "").lower()


COUNTED = ("whole", "by call", "calls", "compiled")
OUTSIDE = chosen()
counts: dict[str, int] = collections.Counter()
state = State()


def begin() -> None:
    """Let calls wait, where they may."""
    state.segment = Segment() if state.on and not (state.blocks or state.idle) else None


def pass_by() -> None:
    """Count a call that does not wait since structures did not come again."""
    state.idle -= 1
    if not state.idle:
        begin()


begin()


def finish() -> None:
    """Run what waits."""
    segment = state.segment
    if segment is not None and len(segment.calls) > 1:
        segment.finish()


settlers.append(finish)


def waiting() -> bool:
    """Whether some call waits."""
    segment = state.segment
    return segment is not None and len(segment.calls) > 1


def enable(on: bool) -> None:
    """Whether calls may wait from now on."""
    finish()
    if state.on is not (on and inside is not None):
        state.on = not state.on
        clear_all()  # functions hold programs whose calls wait, or those that do not
    begin()


def enabled() -> bool:
    """Whether calls may wait."""
    return state.segment is not None


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


def stats() -> dict[str, int]:
    """Segments that ran as one program, and call by call; the calls of those that ran as one; programs compiled for segments; structures
    known.
    """
    return {**dict.fromkeys(COUNTED, 0), **counts, "structures": state.tree.count}


# -- calls


WAIT = """
def wait({parameters}):
    segment = state.segment
    if segment is None or others:
        if state.idle:
            pass_by()
        return program({arguments})
{keys}
    calls = segment.calls
    node = calls[-1][0].next.get(({number}, {names}))
    if node is None:
        node = learn(segment, ({arguments}), ({names}))
        if type(node) is not Node:
            return node[0]
    if not node.waits:
        return odd(({arguments}))
{results}
    if len(calls) > {most} or node.ends:
        segment.finish()
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

SEVERAL = """
    p = tuple([pended(segment, a, node.first - i) for i, a in enumerate(node.avals)])
    calls.append((node, ({arguments}), p))
"""


def pended(segment: Segment, aval: Any, at: int) -> Pending:
    """A result of a call that waits."""
    made = new(Pending)
    made._call, made._value, made.aval, made.at = segment, None, aval, at
    return made


class Waiter:
    """A program's calls, which may wait, with arguments laid flat.

    single: whether it gives one array. traced: whether a trace tells the forms of its results. lengths: of each argument its length
    where it is a tuple, else -1; None where none is one.
    """

    __slots__ = ("function", "lengths", "number", "program", "signatures", "single", "traced")

    def __init__(self, program: Any, single: bool, number: int, traced: bool, lengths: Any) -> None:
        self.program = program
        self.lengths = lengths
        self.traced = traced
        self.single = single
        self.number = number
        self.signatures: BoundedCache[Any, Signature] = BoundedCache(256)

    def at_once(self, args: tuple[Any, ...]) -> Any:
        """A call that does not wait."""
        return self.program(*grouped(self.lengths, [a if type(a) is Array else settled(a) for a in args]))

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
        held = tuple([None if a is None else (f, is_committed(a, parent)) for a, f in zip(args, forms)])
        inner = [type(a) is Pending and a._value is None for a in args]
        key = (
            self.number,
            *[n if i or n is None else id(f) for n, f, i in zip(names, forms, inner, strict=True)],
        )
        node = parent.next.get(key)
        if node is None:
            signature = self.signatures.get(held)
            if signature is None:
                signature = self.signature(args, held)
                if type(signature) is not Signature:
                    return signature
                self.signatures[held] = signature
                if processors() > 1 and not self.is_ready(signature):
                    # It begins while the program goes on.
                    workers.submit(self.making(signature))
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

    def signature(self, args: tuple[Any, ...], held: tuple[Any, ...]) -> Any:
        """What there is to know of calls with such arguments; or, in a tuple, what this one gives."""
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
        sized = self.program.sized
        if sized is not None:
            found, came = call(sized.answer, self.program._fun, tuple(grouped(self.lengths, args)))
            if found is not None:
                return (found,)
            if came:
                return (self.at_once(args),)
        told = facts(self.program, tuple(self.forms(held)), describe)
        if told["effects"]:
            return (self.at_once(args),)
        return Signature(
            [form_named(tuple(s), d, w) for s, d, w in told["results"]], form, held, told["products"]
        )

    def forms(self, held: Sequence[Any]) -> list[Any]:
        """What stands for arguments of these forms when the program is compiled."""
        return grouped(self.lengths, list(map(form_like, held)))

    def making(self, signature: Signature) -> Work:
        """What compiles the program for a signature."""
        if signature.made is None:
            forms = self.forms(signature.held)
            signature.made = Work(lambda: prepare(self.program, *forms))
        return signature.made

    def is_ready(self, signature: Signature) -> bool:
        """Whether the program is compiled for a signature, or on disk."""
        if not signature.ready:
            signature.ready = self.program._xt_program.is_ready(signature.form)
        return signature.ready


def describe(jaxpr: Any) -> dict[str, Any]:
    """What a trace tells of a call: the forms of its results, whether it does more than give them, and its multiplications."""
    return {
        "results": [[list(v.aval.shape), v.aval.dtype.name, bool(v.aval.weak_type)] for v in jaxpr.outvars],
        "effects": bool(jaxpr.effects),
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


def is_home(device: Any) -> bool:
    """Whether calls on a device may wait: it is the first one, and a CPU."""
    return device.platform == "cpu" and device == jax.devices()[0]


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


def waiter(program: Any, count: int, tree: Any, traced: bool = True) -> Callable[..., Any]:
    """`program`, a function of `jit` of so many arguments that are arrays or None, whose calls may wait.

    tree: the structure of what it gives, as JAX has it; None for a flat tuple. traced: whether a trace tells the forms of its
    results; else its first call does.
    """
    if not state.on or getattr(program, "_xt_program", None) is None:
        return program
    made = getattr(program, "_xt_waiter", None)
    if made is not None:
        return made
    made = program._xt_waiter = flat_waiter(program, count, tree, traced)
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
    program: Any, count: int, tree: Any, traced: bool, lengths: tuple[int, ...] | None = None
) -> Callable[..., Any]:
    """The function that has calls with so many arguments laid flat wait."""
    single = tree is not None and tree == SINGLE
    called = Waiter(program, single, next(_number), traced, lengths)
    arguments = "".join([f"a{i}, " for i in range(count)])
    check = CHECK if jax.device_count() > 1 else ""
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
        number=called.number,
        results=(ONE if single else SEVERAL).format(arguments=arguments),
        most=MOST,
        given="p" if single or tree is None else "unflatten(p)",
    )
    namespace: dict[str, Any] = {
        "Array": Array,
        "Node": Node,
        "Pending": Pending,
        "__name__": __name__,
        "at_home": at_home,
        "homes": homes,
        "learn": called.learn,
        "new": new,
        "odd": called.at_once,
        "others": others,
        "pass_by": pass_by,
        "pended": pended,
        "program": program if lengths is None else lambda *flat: program(*grouped(lengths, flat)),
        "state": state,
        "unflatten": None if tree is None else tree.unflatten,
    }
    exec(compile(text, "<xtensor segments>", "exec"), namespace)
    called.function = namespace["wait"]
    return called.function


def grouped(lengths: tuple[int, ...] | None, flat: Sequence[Any]) -> Any:
    """Arguments that were laid flat, with their tuples."""
    if lengths is None:
        return flat
    rest = iter(flat)
    return [next(rest) if n < 0 else tuple([next(rest) for _ in range(n)]) for n in lengths]


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


# -- running


class Step:
    """A call within a segment's program: the program, and where its arguments come from."""

    __slots__ = ("lengths", "program", "sources")
    _xt_identity = ("program", "sources", "lengths")

    def __init__(self, called: Waiter, sources: tuple[Any, ...]) -> None:
        self.program = called.program
        self.lengths = called.lengths
        self.sources = sources


class Structure:
    """How the segments that end with a node run.

    nodes: of all their calls. outside: where the arguments from outside stand: of which call, and at which place. used: how often a
    result is an argument within. programs: by the results that they give.
    """

    def __init__(self, leaf: Node) -> None:
        nodes: list[Node] = []
        node = leaf
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        nodes.reverse()
        self.nodes = nodes
        self.outside = [(i, j) for i, n in enumerate(nodes, 1) for j, s in enumerate(n.sources) if s == 0]
        self.single = all(n.called.single for n in nodes)
        self.used = [0] * sum(len(n.avals) for n in nodes)
        for node in nodes:
            for source in node.sources:
                if source:
                    self.used[-1 - source] += 1
        self.programs: dict[tuple[int, ...], Any] = {}
        self.making: set[tuple[int, ...]] = set()
        self.came = 0
        self.seen: list[int] = []
        self.last: tuple[int, ...] = ()

    def program(self, wanted: tuple[int, ...]) -> Any:
        """The program that gives these results, or None where the calls run by themselves."""
        for given, program in self.programs.items():
            if set(given) >= set(wanted):
                return given, program
        self.came += 1
        if self.came > 1:
            state.strange = 0
        elif len(self.nodes) > 1:
            state.strange += 1
            if state.strange >= STRANGE:
                # From then on sooner.
                state.strange, state.idle, state.segment = STRANGE * 7 // 8, IDLE, None
        new = {(n.called.number, n.signature): n for n in self.nodes if not n.called.is_ready(n.signature)}
        compile_all(list(new.values()))
        if self.came < state.hot or not wanted or len(self.nodes) == 1 or wanted in self.making:
            return None
        self.making.add(wanted)
        if state.background:
            workers.submit(Work(lambda: self.make(wanted)))
            return None
        self.make(wanted)
        return wanted, self.programs[wanted]

    def make(self, wanted: tuple[int, ...]) -> None:
        """Compile a program; by a thread."""
        program = self.made(wanted)
        prepare(program, *[form_like(self.nodes[i - 1].signature.held[j]) for i, j in self.outside])
        counts["compiled"] += 1
        self.programs[wanted] = program

    def made(self, wanted: tuple[int, ...]) -> Any:
        """The program that gives these results, of all arguments from outside."""
        steps: list[Step] = []
        taken = 0
        for node in self.nodes:
            sources: list[Any] = []
            for source in node.sources:
                if source == 0:
                    sources.append(taken)
                    taken += 1
                else:
                    sources.append(source)
            steps.append(Step(node.called, tuple(sources)))
        return jit(chained(tuple(steps), wanted))


def chained(steps: tuple[Step, ...], wanted: tuple[int, ...]) -> Callable[..., Any]:
    """The function that makes these calls one after the other."""

    def calls(*outside: Any) -> Any:
        found: list[Any] = []
        for step in steps:
            args = [None if s is None else found[-1 - s] if s < 0 else outside[s] for s in step.sources]
            found += jax.tree.leaves(step.program(*grouped(step.lengths, args)))
        return tuple([found[i] for i in wanted])

    def segment(*outside: Any) -> Any:
        return apart(calls, outside)

    segment.__name__ = segment.__qualname__ = f"segment_of_{len(steps)}_calls"
    return segment


def compile_all(nodes: Sequence[Node]) -> None:
    """Have the calls' own programs compiled: those here that no thread has begun."""
    for node in nodes:
        node.called.making(node.signature).result()
        node.signature.made = None


def form_like(held: Any) -> Any:
    """What stands for an argument of a form when a program is compiled."""
    if held is None:
        return None
    form, committed = held
    place = sharding() if committed else None
    return jax.ShapeDtypeStruct(form.shape, form.dtype, weak_type=form.weak_type, sharding=place)


def is_committed(value: Any, node: Node) -> bool:
    """Whether an argument is tied to its device; of a result that waits, by the call that gives it, `node` or one before it."""
    if type(value) is not Pending or value._value is not None:
        return value.committed
    while node.first < value.at:
        node = node.parent  # type: ignore[assignment]
    return node.committed


set_value: Any = Pending._value.__set__  # type: ignore[attr-defined]


def run(calls: list[Any]) -> None:
    """Give the results of waiting calls their values."""
    leaf: Node = calls[-1][0]
    structure = leaf.structure
    if structure is None:
        structure = leaf.structure = Structure(leaf)
    results: list[Pending] = [c[2] for c in calls[1:]] if structure.single else flat(calls)
    seen = list(map(references, results))
    if seen == structure.seen:
        wanted = structure.last
    else:
        wanted = tuple([i for i, (n, u) in enumerate(zip(seen, structure.used)) if n > u + HELD])
        structure.seen, structure.last = seen, wanted
    found = structure.program(wanted)
    for watcher in watchers:
        watcher([n.called.program.__name__ for n in structure.nodes], found is not None)
    if found is None:
        counts["by call"] += 1
        by_call(calls)
        return
    given, program = found
    counts["whole"] += 1
    counts["calls"] += len(calls) - 1
    outside = [calls[i][1][j] for i, j in structure.outside]
    # In one call of C, so that a signal finds all results, or none.
    any(map(set_value, [results[i] for i in given], chain.from_iterable(starmap(program, (outside,)))))


watchers: list[Callable[[Sequence[str], bool], None]] = []
"""Told of every segment that runs: the programs that it calls, and whether as one program."""


def flat(calls: list[Any]) -> list[Pending]:
    """All results of calls."""
    found: list[Pending] = []
    for _, _, made in calls[1:]:
        if type(made) is Pending:
            found.append(made)
        else:
            found += made
    return found


def by_call(calls: list[Any]) -> None:
    """Make the calls one after the other."""
    for node, args, made in calls[1:]:
        if type(made) is Pending:
            if made._value is None:
                made._value = node.called.at_once(args)
        elif made[0]._value is None:
            for result, value in zip(made, jax.tree.leaves(node.called.at_once(args)), strict=True):
                result._value = value
        node.signature.ready = True
        if node.signature.work > LONG:
            node.waits = False
        node.ends = node.ends or node.work > LONG


def held() -> int:
    """How many references a result has that only the segment and `run` see."""
    made = pended(None, None, 0)  # type: ignore[arg-type]
    calls: list[Any] = [None, (None, (), made)]
    del made
    results = [c[2] for c in calls[1:]]
    return next(map(references, results))


HELD = held()
workers = Workers(min(processors(), 4))
atexit.register(workers.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=workers.alone)
