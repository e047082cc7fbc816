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
import math
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


def is_quick(device: Any, jaxpr: Any) -> bool:
    """Whether a program for a device is compiled so."""
    known = jaxlib.version.__version_info__[:2] in KNOWN and device.platform == "cpu"
    return known and keeps(jaxpr, set(jaxpr.invars), set(), set())


def keeps(jaxpr: Any, plain: set[Any], joined: set[Any], chosen: set[Any]) -> bool:
    """Whether all operations of a jaxpr have the same bits either way; those of shorter floats and complex ones may not, nor may loops.

    Where a product meets an addition, LLVM makes them one rounding. A short sum of products or of sums, which becomes a row of additions, may
    have other such pairs, and so may an addition of parts that were put together of what was computed: the two ways branch otherwise there, unless a
    library comes between. A choice between products may become a choice between such pairs, and of two products of float64 either may be the one.

    plain: the arguments that are no products or sums; results are put there that are none. joined: those that were put together, likewise.
    chosen: where results are put that are a choice between products or sums.
    """
    moved, sums, products, merged = set(jaxpr.invars), set[Any](), set[Any](), set[Any]()
    for equation in jaxpr.eqns:
        values = [v for v in (*equation.invars, *equation.outvars) if hasattr(v.aval, "dtype")]
        if any(v.aval.dtype.name not in NUMBERS for v in values):
            return False
        name = equation.primitive.name
        if name in CURVES and any(v.aval.dtype == np.float64 and v.aval.size > 1 for v in values):
            return False
        variables = [v for v in equation.invars if not hasattr(v, "val")]
        apart = is_library(equation)
        if apart or (name in MOVING and moved.issuperset(variables)):
            moved.update(equation.outvars)
        elif name in JOINING or not (name in CALLED or joined.isdisjoint(variables)):
            joined.update(equation.outvars)
        if is_merging(equation) or (not apart and not merged.isdisjoint(variables)):
            merged.update(equation.outvars)
        if name in APART and (name not in PASSING or plain.issuperset(variables)):
            plain.update(equation.outvars)
        if name in ("broadcast_in_dim", "reshape", "squeeze") and variables[:1] and variables[0] in sums:
            sums.update(equation.outvars)
        if name in PRODUCTS or (name in MOVING and not products.isdisjoint(variables)):
            products.update(equation.outvars)
        if (name == "select_n" and not plain.issuperset(variables)) or (
            name in MOVING and not chosen.isdisjoint(variables)
        ):
            chosen.update(equation.outvars)
        if name == "reduce_sum":
            (value,) = equation.invars
            exact = value.aval.dtype.kind in "biu"
            # A sum of sums is one sum.
            if (
                not exact
                and (value.aval.dtype != np.float32 or value.aval.size < LIBRARY)
                and value not in sums
                and not (
                    value.aval.dtype == np.float32
                    and value in plain
                    and value not in merged
                    and is_one_row(equation)
                )
            ):
                return False
            sums.update(equation.outvars)
        elif name in ADDING:
            (made,) = equation.outvars
            either = made.aval.dtype == np.float64 and made.aval.size > 1 and products.issuperset(variables)
            parted = not (joined | chosen).isdisjoint(variables)
            if made.aval.dtype.kind not in "biu" and (parted or (either and len(variables) == 2)):
                return False
        elif name not in KEEPING and (name not in CALLED or not calls_keep(equation, plain, joined, chosen)):
            return False
    return True


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


def calls_keep(equation: Any, plain: set[Any], joined: set[Any], chosen: set[Any]) -> bool:
    """Whether what an operation calls keeps its bits; see `keeps`."""
    called = inner(equation)
    for jaxpr in called:
        alike = len(jaxpr.invars) == len(equation.invars)
        pairs = list(zip(jaxpr.invars, equation.invars)) if alike else []
        known = {i for i, v in pairs if hasattr(v, "val") or v in plain}
        parts = {i for i, v in pairs if not hasattr(v, "val") and v in joined}
        if not alike and not joined.isdisjoint(v for v in equation.invars if not hasattr(v, "val")):
            return False
        choices = set[Any]()
        if not keeps(jaxpr, known, parts, choices):
            return False
        made = [(o, i) for o, i in zip(equation.outvars, jaxpr.outvars) if not hasattr(i, "val")]
        if len(called) == 1:
            plain.update(o for o, i in made if i in known)
        joined.update(o for o, i in made if i in parts)
        chosen.update(o for o, i in made if i in choices)
    return True


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
        self._some = threading.Condition()
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
        with self._some:
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
        with self._some:
            self._jobs.append((program, renew))
            self._some.notify_all()

    def look(self) -> None:
        """Have all that were noted come by at their next calls."""
        with self._some:
            noted, self._noted = self._noted, {}
        for (_, form), (program, entry) in noted.items():
            program.look(form, entry)

    def work(self) -> float:
        """Compile the next program that was asked for; the seconds that it took, 0 where none is."""
        with self._working:
            began = time.monotonic()
            with self._some:
                if not self._jobs:
                    return 0.0
                program, renew = self._jobs.popleft()
            with contextlib.suppress(Exception):  # then it stays as it is
                renew()
            with self._some:
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
            with self._some:
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
        with self._some:
            self._ended = True
            self._some.notify_all()
        if self._thread is not None:
            self._thread.join()

    def alone(self) -> None:
        """In a child process, which has no such thread."""
        self._some, self._working = threading.Condition(), threading.Lock()
        self._noted, self._thread = {}, None
        self._jobs.clear()


again = Again()

atexit.register(again.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=again.alone)
