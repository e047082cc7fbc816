"""What a function runs in the place of its program, so that its calls may wait."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax

from ..cache import BoundedCache, bounded
from ..compiles import watched
from ..executables import form_named, interned
from ..jax_internals import programs as inside
from ..memory import LARGE, within
from ..pending import Pending, Work, processors, settled, workers
from ..sizes.spans import Uncut, is_uncut
from ..store import form_of
from ..threads import others
from ..x64 import call, facts, prepare
from .apart import convolves
from .calls import Segment, begin, pass_by, pass_first, wake_first
from .running import form_like, grouped, pended
from .structures import (
    LENGTH,
    NODES,
    Array,
    Node,
    Signature,
    Tree,
    state,
)

__all__ = ["Waiter", "describe", "prompt", "waiter", "waiter_of_tuples"]

new = object.__new__
ALIASES = 4
"""Other objects for the same forms by which a node is found at once."""
PATIENT = "patient"
"""Marks a signature of patient calls where nothing else answers them any more."""

WAIT = """
def wait({parameters}):
    segment = state.segment
    if segment is None or others:
        if not state.idle or pass_by(number) or others:
            return program({parameters})
        segment = state.segment
{flat}{keys}
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
            return program({grouped})
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

    def again(self, args: tuple[Any, ...]) -> Any:
        """The call, once more."""
        return self.function(*args) if self.lengths is None else self.function(*grouped(self.lengths, args))

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
            return (self.again(args),)
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
            kept: Any = held
            if state.patient and signature is not None and (signature.passing or signature.alone):
                # Whether something else still answers such calls.
                kept = held, PATIENT
                signature = self.signatures.get(kept)
            if signature is None:
                signature = self.signature(args, held)
                if type(signature) is not Signature:
                    return signature
                if signature.alone and kept is not held:
                    return (self.at_once(args),)
                self.signatures[kept] = signature
                if not self.is_ready(signature):
                    made = self.making(signature)
                    if processors() > 1:  # it begins while the program goes on
                        workers.submit(made)
                if state.segment is not segment:  # it has run meanwhile
                    return (self.again(args),)
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
    made = program._xt_waiter = made_waiter(program, count, tree, traced, None, gain)
    return made


def waiter_of_tuples(program: Any, tree: Any) -> Callable[..., Any]:
    """As `waiter`, of a program of which some arguments are tuples."""
    if not state.on or getattr(program, "_xt_program", None) is None:
        return prompt(program)
    known: dict[Any, Any] = {}

    def wait(*args: Any) -> Any:
        single = len(args) == 1 and type(args[0]) is tuple
        key: Any = len(args[0]) if single else tuple([len(a) if type(a) is tuple else -1 for a in args])
        found = known.get(key)
        if found is None:
            if len(known) >= LENGTHS:
                return program(*map(settled, args))
            lengths = (key,) if single else key
            found = known[key] = made_waiter(program, sum(map(abs, lengths)), tree, True, lengths)
        return found(*args)

    return wait


def made_waiter(
    program: Any,
    count: int,
    tree: Any,
    traced: bool,
    lengths: tuple[int, ...] | None = None,
    gain: float = 1.0,
) -> Callable[..., Any]:
    """The function that has calls wait with so many arguments, counted as they are laid flat."""
    if state.first:
        wake_first()
    single = tree is not None and tree == SINGLE
    called = Waiter(program, single, next(_number), traced, lengths, gain)
    names = [f"a{i}" for i in range(count)]
    arguments = "".join([f"{name}, " for name in names])
    pieces = grouped(lengths, names)
    laid = [f"({''.join([f'{name}, ' for name in p])})" if type(p) is tuple else p for p in pieces]
    given = [f"p{i}" if type(p) is tuple else p for i, p in enumerate(pieces)]
    check = CHECK if jax.device_count() > 1 or jax.devices()[0].platform != "cpu" else ""
    text = WAIT.format(
        parameters="".join([f"{name}, " for name in given]),
        arguments=arguments,
        flat="".join([f"    {p} = {name}\n" for p, name in zip(laid, given, strict=True) if p is not name]),
        grouped="".join([f"{p}, " for p in laid]),
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
        "program": program,
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
