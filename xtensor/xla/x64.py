"""64-bit types for xtensor's own calls, with the user's JAX left as it was.

JAX reads `jax_enable_x64` while tracing, lowering and matching signatures, so a whole call must run under it.
Choosing the thread-local value costs 0.3 us; entering `jax.enable_x64(True)` as a context costs 0.8 us. A program
that `jit` makes needs neither where all its arguments are JAX arrays: it turns the types on to trace and compile only.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer

from .cache import BoundedCache
from .compiles import watched
from .jax_internals import jitting, programs
from .levels import KINDS
from .memory import LARGE, has_room
from .pending import Pending, Work, settled, workers
from .sizes import Families, Sized
from .sizes.families import SOON
from .sizes.spans import is_uncut, like
from .store import SMALL, Program, signatures
from .threads import others

KEYS = tuple(
    f"{place}_{part}"
    for place in ("in_shardings", "out_shardings", "in_layouts", "out_layouts")
    for part in ("treedef", "leaves")
) + ("donate_argnums", "donate_argnames", "device", "backend", "compiler_options_kvs")

__all__ = ["call", "choose", "chosen", "facts", "is_ready", "jit", "prepare", "x64"]

# Set by `transformed`: the value of a program for arguments at levels of function transforms.
leveled: Any = None

chosen: Callable[[], Any] = jax.enable_x64.get_local
choose: Callable[[Any], None] = jax.enable_x64.set_local


def x64() -> Any:
    """A context in which JAX keeps 64-bit types."""
    return jax.enable_x64(True)


def call(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` with 64-bit types on."""
    previous = chosen()  # before anything is chosen: a signal may come after any call
    try:
        choose(True)
        found = function(*args)
    finally:
        choose(previous)
    return found


def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`jax.jit(function, **options)` whose calls with arrays alone have 64-bit types, whatever the caller's JAX is set to.

    Python and NumPy numbers need `call`: JAX would narrow them on their way in. Compiled programs are kept on disk.

    Raises: TypeError for static arguments: programs are told apart by their arrays alone.
    """
    if not {"static_argnums", "static_argnames"}.isdisjoint(options):
        raise TypeError("jit() takes no static arguments: make a function for each of their values")
    if jitting is not None:
        with contextlib.suppress(AttributeError, TypeError):  # a JAX in which the names mean something else
            return _with_own_miss(function, options)
    # Without a miss of our own nothing is given up: an interrupt in its midst would lose it.
    jitted: Any = jax.jit(function, **{n: o for n, o in options.items() if not n.startswith("donate")})

    @functools.wraps(function)
    def swapped(*args: Any) -> Any:
        if not KINDS.isdisjoint(map(type, jax.tree.leaves(args))):
            return leveled(swapped, args)
        return call(jitted, *args)

    swapped._fun = function  # pyright: ignore[reportAttributeAccessIssue]
    return swapped


def copied(array: Any) -> Any:
    """An array in memory of its own; what is no array is as it is."""
    if isinstance(array, jax.Array) and not isinstance(array, Tracer):
        made = jax.device_put(array, array.sharding, may_alias=False)
        # `device_put` ties what it makes to its device, and then it would be of another signature.
        return made if programs is None or array.committed else programs.free(made, array.aval)
    return array


def spare(array: Any) -> Any:
    """`copied`, where memory has room for it."""
    held = isinstance(array, jax.Array) and not isinstance(array, Tracer)
    return array if held and not has_room(array.nbytes) else copied(array)


def _info(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What JAX knows of a function that it compiles before it is called; without options, that of another, but where it stands: what JAX
    looks at besides takes as long as all else here.
    """
    compiled: Any = jax.jit
    if not _plain:
        _plain.append(compiled(lambda *args: args)._jit_info)
    if options or not {"fun_sourceinfo", "fun_signature"} <= set(getattr(_plain[0], "_fields", ())):
        return compiled(function, **options)._jit_info
    code = getattr(function, "__code__", None)
    told = "" if code is None else f" at {code.co_filename}:{code.co_firstlineno}"
    return _plain[0]._replace(fun_sourceinfo=getattr(function, "__name__", "") + told, fun_signature=None)


_plain: list[Any] = []


def _with_own_miss(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """The function compiled as `jax.jit` does, whose way into Python on a signature not seen before has 64-bit types on.

    JAX's own cache of signatures serves it: a call from a thread with other settings is another signature.
    """
    info = _info(function, options)
    donated = frozenset(info.donate_argnums)
    program = Program(function, options)
    name = program.name
    plain = all(option == "donate_argnums" for option in options)
    sized = None if not plain else getattr(function, "sized", None) or Sized(Families(jit, prepare), (), None)

    undonated = Undonated(function, options) if donated and plain else None

    def cache_miss(*args: Any) -> Any:
        leaves = jax.tree.leaves(args)
        pends = Pending in map(type, leaves)
        if pends and (sized is None or donated or not any(map(is_uncut, leaves))):
            # A copy where a buffer may be given up: others hold what pended.
            args = tuple(
                [jax.tree.map(copied, settled(a)) if i in donated else settled(a) for i, a in enumerate(args)]
            )
            return made(*args), None, False
        if not KINDS.isdisjoint(map(type, leaves)):
            return leveled(made, args), None, False
        traced = any(isinstance(leaf, Tracer) for leaf in leaves)
        if sized is not None and not traced:
            found, came = call(sized.answer, made, args)
            if came:
                built._clear_cache()
            if found is not None:
                return (
                    found if made._xt_may_pend and not others else jax.tree.map(settled, found),
                    None,
                    False,
                )
        if pends:
            return made(*settled(args)), None, False
        if undonated is not None and not traced:
            found = call(undonated.answer, made, args)
            if found is not None:
                return found, None, False
        if donated:
            # Python runs between this call and the storing of its results: what an interrupt loses there are copies, as far as
            # there is room for them.
            args = tuple([jax.tree.map(spare, a) if i in donated else a for i, a in enumerate(args)])
        if traced:
            return call(program.jitted._cache_miss, *args)
        with watched(name):
            return call(program, args)

    key = jitting.keys(**{name: getattr(info, name) for name in KEYS})
    built = jitting.make(
        name,
        function,
        cache_miss,
        info.static_argnums,
        info.static_argnames,
        key,
        jitting.registry,
        jitting.shard,
        signatures if signatures is not None else jitting.signatures(key.contains_explicit_attributes),
    )
    # Not the method itself: it would hide a cycle from the collector.
    program.forget = lambda: built._clear_cache()
    made: Any = functools.wraps(function)(built)
    # What `lower` and the like, which all such objects have, look for; and what `prepare` does.
    made._fun, made._jit_info, made._xt_program = function, info, program
    made.sized = sized
    # Whether whoever calls it takes results that pend (`Uncut`).
    made._xt_may_pend = False
    made._xt_undonated = undonated
    return made


class Undonated:
    """What answers the first calls of a program that gives buffers up: the same without that, where it is on disk and the program is not.

    A write that waited has no buffer to give up, and in a second process, or a loop's second turn, it need not wait: it would be compiled
    once more. A thread does, once it has come often.
    """

    __slots__ = ("function", "met", "options", "program")

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self.function = function
        self.options = {**options, "donate_argnums": ()}
        self.program: Any = None
        # How many calls of a signature are still answered so, and what compiles its program then.
        self.met: BoundedCache[Any, list[Any]] = BoundedCache(256)

    def answer(self, program: Any, args: tuple[Any, ...]) -> Any:
        """What a call gives, None where the program is to be run."""
        leaves, tree = jax.tree.flatten(args)
        if not all(isinstance(leaf, jax.Array) for leaf in leaves):
            return None
        key = tree, *[(leaf.aval, leaf.sharding, leaf.committed) for leaf in leaves]
        met = self.met.get(key)
        if met is None:
            met = self.met[key] = [SOON if self.serves(program, args, leaves) else 0, None]
        left, work = met
        if not left:
            return None
        if left > 1:
            met[0] = left - 1
        elif work is None:
            examples = jax.tree.map(like, args)
            work = met[1] = Work(lambda: prepare(program, *examples))
            workers.submit(work)
        elif work.done:
            met[0] = 0
            return None
        return self.program(*args)

    def serves(self, program: Any, args: tuple[Any, ...], leaves: list[Any]) -> bool:
        """Whether the other one is there alone, for arrays that are not large, nor so small that the store takes it for good."""
        if not SMALL <= sum([leaf.nbytes for leaf in leaves]) < LARGE or workers.count < 2:
            return False
        found = program._xt_program.has_spare(*args)
        if found and self.program is None:
            self.program = jit(self.function, **self.options)
        return found


def facts(program: Any, args: tuple[Any, ...], tell: Callable[[Any], Any]) -> Any:
    """What `tell(jaxpr)` says of a program of `jit` traced for these arguments, as JSON has it; on disk for later processes."""
    made: Program | None = getattr(program, "_xt_program", None)
    if made is None:
        return json.loads(json.dumps(tell(call(jax.make_jaxpr(program), *args).jaxpr)))
    return call(made.facts, args, tell)


def is_ready(program: Any, *examples: Any) -> bool:
    """Whether a program of `jit` need not be compiled for these arguments: it is made ahead, or on disk."""
    made: Program | None = getattr(program, "_xt_program", None)
    return made is not None and call(made.is_ready_for, *examples)


def ahead(program: Any, *examples: Any) -> None:
    """Have a thread compile a program of `jit` for arguments of these forms (`jax.ShapeDtypeStruct`s), which it will be called with.

    Not where another answers its first calls (`Undonated`).
    """
    made: Program | None = getattr(program, "_xt_program", None)
    if made is not None and not (program._xt_undonated is not None and call(made.has_spare, *examples)):
        call(made.ahead, *examples)


def prepare(program: Any, *examples: Any, told: Any = None) -> None:
    """Have a program of `jit` ready for these arguments, given as arrays or `jax.ShapeDtypeStruct`s: its first call only runs it.

    told: who is told, of the line that asked before.
    """
    made: Program | None = getattr(program, "_xt_program", None)
    if made is not None:
        with watched(made.name) if told is None else told:
            call(made.prepare, *examples)
