"""Code that is compiled sooner: XLA's older way to make loops of a program's operations, which LLVM does not unroll, for programs on the CPU whose
bits it keeps.

It takes about half of the processor time. What it makes of small arrays is as fast; of larger ones loops take up to four times as long. So a
program over larger arrays is compiled once more, on a thread, when nothing new has been compiled for a while and it is still called (`store`): a
script that runs once waits less, one that runs for long loses nothing.

Which operations have the same bits either way was found by comparing programs of the operator table, in float32 and float64:
`python -m tests.programs.quick`.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import enum
import functools
import math
import operator
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jaxlib.version
import numpy as np

from .pending import processors
from .threads import OWN

__all__ = ["Quickly", "again", "is_quick", "quickly"]

SPLIT = "xla_cpu_parallel_codegen_split_count"
OPTIONS: Mapping[str, Any] = {"xla_cpu_use_fusion_emitters": False, SPLIT: 1}
"""XLA's, for one program. The second has one thread make the code of all its loops, which is less work where they are few: XLA divides them
among 32 modules otherwise."""
KNOWN = ((0, 10),)
"""The versions of jaxlib, by their first two numbers, for which this was found out."""
MOST = 64
"""Operations of a program that one thread makes the code of; of longer ones each processor makes a part."""
NOT_UNROLLED = ("xla_cpu_disable_loop_unrolling",)
FOR_SIZE = (*NOT_UNROLLED, "xla_cpu_optimize_for_size")
"""LLVM's code as it is written, loop by loop; and besides without vectors where a row has no whole number of them."""
FEW = 1 << 10
"""Elements of a program's largest array, up to which such code is as fast."""
ELEMENTS = 1 << 12
"""Elements up to which the older way is as fast, and code without vectors is good enough for a while: `tanh` of so many takes 32 us, not 5."""
NOTED = 512
"""Programs that are noted at most, each of which is held until then."""
CALM = 5.0
"""Seconds without a new program after which programs that are still called are compiled once more, at the earliest."""
LONGER = 2
"""Times the seconds of their first compiling that have to pass so: a process that ends meanwhile would wait for it."""

KEEPING = frozenset(
    """
abs acos and argmax argmin asin bitcast_convert_type broadcast_in_dim ceil clamp clz complex concatenate conj
conv_general_dilated convert_element_type copy cos cosh cummax cummin div dot_general dynamic_slice dynamic_update_slice eq eq_to erf_inv exp exp2
expand_dims expm1 floor gather ge gt imag integer_pow iota is_finite le le_to log log1p logistic lt lt_to max min mul ne neg nextafter not
optimization_barrier or pad platform_index population_count pow real reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_window_max
reduce_window_min reduce_xor rem reshape rev round rsqrt scatter scatter-add scatter-max scatter-min select_n shift_left shift_right_arithmetic
shift_right_logical sign sin sinh slice sort split sqrt square squeeze stack stop_gradient tanh tile top_k transpose unstack
xla_metadata_value xor
""".split()
)
"""Operations that have the same bits either way."""
PRODUCTS = frozenset(("integer_pow", "mul", "square"))
ADDING = frozenset(("add", "add_any", "sub"))
JOINING = frozenset(("concatenate", "dynamic_update_slice", "pad", "scatter"))
MOVING = JOINING | frozenset(
    "broadcast_in_dim convert_element_type copy expand_dims reshape rev slice split squeeze stack tile transpose unstack".split()
)
RESHAPING = frozenset(("broadcast_in_dim", "reshape", "squeeze"))
NUMBERS = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split())
CALLED = frozenset(
    "jit pjit closed_call core_call custom_jvp_call custom_vjp_call remat remat2 checkpoint cond".split()
)
CURVES = frozenset("acos asin cos cosh erf_inv exp exp2 expm1 log log1p logistic pow sin sinh tanh".split())
"""Functions of float64 by polynomials, which round otherwise where a short array has become a row of elements; one number is none."""
SUMMING = frozenset(("conv_general_dilated", "dot_general", "reduce_sum"))
"""Those that no library makes are additions which LLVM orders anew where it unrolls their loops."""
LIBRARY = 1 << 12
"""Numbers of 32 bits from which their sum is a library's, whoever makes the other loops."""
APART = MOVING | frozenset(
    "abs argmax argmin ceil eq exp exp2 expm1 floor ge gt is_finite le log log1p logistic lt max min ne neg reduce_max reduce_min round select_n "
    "sign sqrt stop_gradient tanh".split()
)
"""Operations whose results are summed up alike either way: the last of what makes them is no product, which would be one rounding with the sum."""
PASSING = MOVING | {"abs", "max", "min", "neg", "select_n", "stop_gradient"}
"""Those of them that hand on what they are given, or a part of it."""


class Trait(enum.Flag):
    """What is known of a value within a program."""

    MOVED = enum.auto()
    """What is computed elsewhere, by a library or before the program, its elements moved at most."""
    JOINED = enum.auto()
    """Parts that were put together of what was computed."""
    PLAIN = enum.auto()
    """Neither a product nor a sum."""
    CHOSEN = enum.auto()
    """A choice between products or sums."""
    PRODUCT = enum.auto()
    SUM = enum.auto()
    MERGED = enum.auto()
    """Of dimensions that a reshape made one: XLA sums up along all of them instead."""


NOTHING, ALL = Trait(0), ~Trait(0)
ENTERING, LEAVING = Trait.PLAIN | Trait.JOINED, Trait.PLAIN | Trait.JOINED | Trait.CHOSEN
"""Traits that values keep where a called jaxpr begins, and where it ends."""


def is_quick(device: Any, jaxpr: Any) -> bool:
    """Whether a program for a device is compiled so."""
    known = jaxlib.version.__version_info__[:2] in KNOWN and device.platform == "cpu"
    return known and keeps(jaxpr)


def keeps(jaxpr: Any) -> bool:
    """Whether all operations of a program have the same bits either way."""
    return traits_within(jaxpr, dict.fromkeys(jaxpr.invars, Trait.PLAIN)) is not None


def traits_within(jaxpr: Any, known: dict[Any, Trait]) -> dict[Any, Trait] | None:
    """The traits of a jaxpr's values, where all its operations have the same bits either way; else None, as for shorter floats and complex
    numbers, which may not, and loops. known: what is known of its arguments.

    Where a product meets an addition, LLVM makes them one rounding. A short sum of products or of sums, which becomes a row of additions, may
    have other such pairs, and so may an addition of parts that were put together of what was computed: the two ways branch otherwise there, unless a
    library comes between. A choice between products may become a choice between such pairs, and of two products of float64 either may be the one.
    """
    traits = {v: known.get(v, NOTHING) | Trait.MOVED for v in jaxpr.invars}
    for equation in jaxpr.eqns:
        if any(
            v.aval.dtype.name not in NUMBERS
            for v in (*equation.invars, *equation.outvars)
            if hasattr(v.aval, "dtype")
        ):
            return None
        given = [traits.get(v, NOTHING) for v in equation.invars if is_variable(v)]
        if not keeps_bits(equation, given):
            return None
        traits.update(dict.fromkeys(equation.outvars, traits_of(equation, given)))
        if equation.primitive.name in CALLED:
            made = called_traits(equation, traits)
            if made is None:
                return None
            for variable, more in made.items():
                traits[variable] |= more
    return traits


def is_variable(value: Any) -> bool:
    """Whether a value is no constant."""
    return not hasattr(value, "val")


def traits_of(equation: Any, given: list[Trait]) -> Trait:
    """What is known of an operation's results. given: what is of its arguments, constants aside."""
    name, library = equation.primitive.name, is_library(equation)
    every = functools.reduce(operator.and_, given, ALL)
    some = functools.reduce(operator.or_, given, NOTHING)
    made = NOTHING
    if library or (name in MOVING and Trait.MOVED in every):
        made |= Trait.MOVED
    elif name in JOINING or (name not in CALLED and Trait.JOINED in some):
        made |= Trait.JOINED
    if is_merging(equation) or (not library and Trait.MERGED in some):
        made |= Trait.MERGED
    if name in APART and (name not in PASSING or Trait.PLAIN in every):
        made |= Trait.PLAIN
    if (name == "select_n" and Trait.PLAIN not in every) or (name in MOVING and Trait.CHOSEN in some):
        made |= Trait.CHOSEN
    if name in PRODUCTS or (name in MOVING and Trait.PRODUCT in some):
        made |= Trait.PRODUCT
    if name == "reduce_sum" or (name in RESHAPING and given and Trait.SUM in given[0]):
        made |= Trait.SUM
    return made


def keeps_bits(equation: Any, given: list[Trait]) -> bool:
    """Whether an operation does by itself, given what is known of its arguments; of what it calls, `called_traits` tells."""
    name = equation.primitive.name
    if name == "reduce_sum":
        value, traits = equation.invars[0].aval, given[0] if given else NOTHING
        if value.dtype.kind in "biu" or Trait.SUM in traits:  # a sum of sums is one sum
            return True
        if value.dtype != np.float32:
            return False
        plain = Trait.PLAIN in traits and Trait.MERGED not in traits
        return value.size >= LIBRARY or (plain and is_one_row(equation))
    if name in ADDING:
        made = equation.outvars[0].aval
        if made.dtype.kind in "biu":
            return True
        either = made.dtype == np.float64 and made.size > 1 and len(given) == 2
        if either and all(Trait.PRODUCT in t for t in given):
            return False
        return not any((Trait.JOINED | Trait.CHOSEN) & t for t in given)
    if name in CURVES and any(
        v.aval.dtype == np.float64 and v.aval.size > 1 for v in (*equation.invars, *equation.outvars)
    ):
        return False
    return name in KEEPING or name in CALLED


def is_one_row(equation: Any) -> bool:
    """Whether a reduction goes along one dimension: of several the two ways make loops of other lengths."""
    shape = equation.invars[0].aval.shape
    return sum(shape[axis] > 1 for axis in equation.params["axes"]) <= 1


def is_library(equation: Any) -> bool:
    """Whether an operation is no part of the loops around it: convolutions and products of matrices, not those with vectors."""
    if equation.primitive.name != "dot_general":
        return equation.primitive.name == "conv_general_dilated"
    (contracted, _), (batch, _) = equation.params["dimension_numbers"]
    left, right = [v.aval for v in equation.invars]
    common = math.prod([left.shape[d] for d in (*contracted, *batch)])
    return min(left.size, right.size) > common


def is_merging(equation: Any) -> bool:
    """Whether dimensions become one: XLA sums up along all of them instead."""
    if equation.primitive.name != "reshape":
        return False
    given, made = [sum(n > 1 for n in v.aval.shape) for v in (equation.invars[0], equation.outvars[0])]
    return made < given


def called_traits(equation: Any, traits: dict[Any, Trait]) -> dict[Any, Trait] | None:
    """What is known of the results of what an operation calls, by that; None where it does not keep its bits."""
    found: dict[Any, Trait] = {}
    called = inner(equation)
    for jaxpr in called:
        alike = len(jaxpr.invars) == len(equation.invars)
        if not alike and any(
            Trait.JOINED in traits.get(v, NOTHING) for v in equation.invars if is_variable(v)
        ):
            return None
        pairs = zip(jaxpr.invars, equation.invars) if alike else ()
        known = {i: traits.get(v, NOTHING) & ENTERING if is_variable(v) else Trait.PLAIN for i, v in pairs}
        within = traits_within(jaxpr, known)
        if within is None:
            return None
        for outer, result in zip(equation.outvars, jaxpr.outvars):
            if is_variable(result):
                more = within.get(result, NOTHING) & LEAVING
                # Of several branches each may be the one.
                found[outer] = found.get(outer, NOTHING) | (more if len(called) == 1 else more & ~Trait.PLAIN)
    return found


def inner(equation: Any) -> list[Any]:
    """The jaxprs that an operation runs: where the platform chooses, that of CPUs."""
    params = dict(equation.params)
    platforms = params.pop("branches_platforms", None)
    if platforms is not None:
        here = [names is None or "cpu" in names for names in platforms].index(True)
        params["branches"] = params["branches"][here]
    found = jax.tree.leaves(list(params.values()), is_leaf=lambda v: hasattr(v, "eqns"))
    return [getattr(v, "jaxpr", v) for v in found if hasattr(v, "eqns")]


def count(jaxpr: Any) -> int:
    """How many operations there are."""
    return sum([1 + sum(map(count, inner(e))) for e in jaxpr.eqns])


class Quickly(NamedTuple):
    """How a program is compiled sooner: XLA's options, those of its CPU compiler, and whether it is compiled once more."""

    options: dict[str, Any]
    extra: tuple[str, ...]
    again: bool


def quickly(jaxpr: Any, again: bool) -> Quickly | None:
    """How a program is compiled sooner that keeps its bits so; None where it is not.

    again: whether it can be compiled once more.
    """
    options = dict(OPTIONS)
    if count(jaxpr) > MOST:
        options[SPLIT] = min(max(processors(), 2), 32)
    size, loops = largest(jaxpr), not operations(jaxpr) & SUMMING
    if size <= (FEW if loops else ELEMENTS):
        return Quickly(options, FOR_SIZE if loops else (), False)
    if again:
        extra = () if not loops else FOR_SIZE if size <= ELEMENTS else NOT_UNROLLED
        return Quickly(options, extra, True)
    return Quickly(options, (), False) if size <= ELEMENTS else None


def operations(jaxpr: Any) -> set[str]:
    """The names of the operations that there are."""
    own = {e.primitive.name for e in jaxpr.eqns}
    return own.union(*[operations(j) for e in jaxpr.eqns for j in inner(e)])


def largest(jaxpr: Any) -> int:
    """The elements of the largest array in a program."""
    values = [v for e in jaxpr.eqns for v in (*e.invars, *e.outvars)]
    return max([getattr(v.aval, "size", 0) for v in values], default=0)


class Again:
    """Programs that may be compiled once more, and the thread that does it, one after the other and half of the time.

    When nothing new has come for a while, each is had to come by at its next call (`look`), which tells that it is still called. Then it is
    compiled (`renew`), and once the last of a function's programs is, the function's next call takes them (`forget`).
    """

    def __init__(self) -> None:
        self.on = processors() > 1
        self._guard = threading.RLock()  # see `xla/pending.py: Workers`
        self._some = threading.Condition(self._guard)
        self._noted: dict[tuple[int, Any], tuple[Any, Any]] = {}
        self._jobs: collections.deque[tuple[Any, Callable[[], None]]] = collections.deque()
        self._working = threading.Lock()
        self._last = 0.0
        self._thread: threading.Thread | None = None
        self._ended = False

    def _calm(self) -> float:
        """Seconds without a new program that tell of a process which runs for long beside what compiling those that were noted took."""
        return max(CALM, LONGER * sum([entry.seconds for _, entry in self._noted.values()]))

    def put_off(self) -> None:
        """Something new has been compiled."""
        self._last = time.monotonic()

    def note(self, program: Any, form: Any, entry: Any) -> None:
        """A program for a form may be compiled once more, when it has become calm."""
        key = id(program), form
        with self._guard:
            if self.on and not self._ended and key not in self._noted and len(self._noted) < NOTED:
                self._last = time.monotonic()
                self._noted[key] = program, entry
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._serve, name=f"{OWN}compiles again", daemon=True
                    )
                    self._thread.start()
                self._some.notify_all()

    def ask(self, program: Any, renew: Callable[[], None]) -> None:
        """Have a program that is still called compiled once more."""
        with self._guard:
            self._jobs.append((program, renew))
            self._some.notify_all()

    def look(self) -> None:
        """Have all that were noted come by at their next calls."""
        with self._guard:
            noted, self._noted = self._noted, {}
        for (_, form), (program, entry) in noted.items():
            program.look(form, entry)

    def work(self) -> float:
        """Compile the next program that was asked for; the seconds that it took, 0 where none is."""
        with self._working:
            began = time.monotonic()
            with self._guard:
                if not self._jobs:
                    return 0.0
                program, renew = self._jobs.popleft()
            with contextlib.suppress(Exception):  # then it stays as it is
                renew()
            with self._guard:
                more = any(p is program for p, _ in self._jobs)
            if not more:
                program.forget()
            return time.monotonic() - began

    def settle(self, run: Callable[[], Any]) -> None:
        """Have all that `run()` calls compiled for good now: what is measured then does not change any more."""
        self.look()
        run()
        while self.work():
            pass

    def _serve(self) -> None:
        rest = 0.0
        while True:
            with self._guard:
                self._some.wait_for(lambda: self._ended, rest)
                rest = 0.0
                while not (self._jobs or self._ended):
                    left = self._last + self._calm() - time.monotonic()
                    if self._noted and left <= 0:
                        break
                    self._some.wait(left if self._noted else None)
                if self._ended:
                    return
                busy = bool(self._jobs)
            if busy:
                rest = self.work()
            else:
                self.look()

    def end(self) -> None:
        """Let what was begun come to its end, and begin nothing more."""
        with self._guard:
            self._ended = True
            self._some.notify_all()
        if self._thread is not None:
            self._thread.join()

    def alone(self) -> None:
        """In a child process, which has no such thread."""
        self._guard, self._working = threading.RLock(), threading.Lock()
        self._some = threading.Condition(self._guard)
        self._noted, self._thread = {}, None
        self._jobs.clear()


again = Again()

atexit.register(again.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=again.alone)
