"""Programs by signature: in memory for those in use, on disk for the next process, compiled where neither has one.

JAX's compiled call keeps what ran last, `CAPACITY` programs of all together. A signature that it does not know comes here:

    kept        what was made ahead for this signature, was handed out lately, or is large and asks for memory at every call
    the folder  an executable under a digest of the function (`identity.py`), of the arguments' form, and of all settings that
                traces depend on: it is loaded and runs, and nothing is traced or lowered
    compiling   the plain way; the executable goes to the folder, and what runs from then on is loaded from those bytes, which
                takes a tenth of the memory

What cannot be told apart in another process (functions of the user's), has effects, or runs on several devices is compiled in
each process, by JAX's own way where need be.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import math
import time
import types
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from . import compile_cache
from .cache import BoundedCache, bounded, settings
from .compiles import found_on_disk, watched
from .executables import Entry, as_compiled, dtype_named, from_bytes, is_simple, to_bytes
from .extra_options import extra
from .identity import Unknown, digest_of
from .jax_internals import programs as inside
from .lowering_context import sharing
from .memory import ASKED, LARGE, SMALL, check, needed, sizes, temporaries
from .pending import Pending, Work, workers
from .quick import again, is_quick, quickly

__all__ = ["CAPACITY", "Checker", "Program", "checker", "made_anew", "remembered", "signatures"]

CAPACITY = 2048
"""Programs in memory, of all operators together: some 0.1 MiB and four memory maps each. Those used longest ago go first.

One that goes takes some 30 ms of CPU: libgcc looks for its unwind tables in a list of all.
"""

signatures: Any = None if inside is None else inside.Signatures(capacity=CAPACITY)
_handed = [0]
_numbers = itertools.count()
_latest: BoundedCache[tuple[int, Form], Entry] = BoundedCache(512)
"""Those that JAX's compiled call was handed last, by the function's number: it may have to forget all of a function's signatures."""
made_anew: list[Callable[[], None]] = []
"""Told of each program that has to be compiled."""
FACTS = "-facts"
NUMBERS = (bool, int, float, complex)
# Settings under which JAX looks at every call itself.
WATCHING = ("jax_debug_nans", "jax_debug_infs", "jax_disable_jit", "jax_no_tracing", "jax_debug_key_reuse")
# Settings that say nothing about a program.
ASIDE = ("jax_enable_x64", "jax_compilation_cache_dir", "jax_logging_level", "jax_traceback_filtering")


class Checker:
    """Compiles every program that is found on disk once more, and compares JAX's key of it with the one it was kept with."""

    def __init__(self) -> None:
        self.enabled = False
        self.compared = 0
        self.different: list[str] = []


checker = Checker()


def figures() -> dict[str, float]:
    """How many programs JAX's compiled call keeps, and how many that it was handed it has no more."""
    size = 0 if signatures is None else signatures.size()
    return {"programs": size, "evicted": max(_handed[0] - size, 0)}


compile_cache.figures.append(figures)


class Program:
    """A function, the options of its `jit`, and the way to its executables."""

    __slots__ = (
        "_digest",
        "_jitted",
        "_keeping",
        "_traced",
        "begun",
        "came",
        "forget",
        "function",
        "hot",
        "kept",
        "looked",
        "name",
        "number",
        "options",
        "times",
    )

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", "program")
        self._jitted: Any = None
        self.options = options
        # Whether it is known to be called often, so that nothing is gained by compiling it sooner.
        self.hot: bool = getattr(function, "hot", False)
        self.number = next(_numbers)
        self.kept: BoundedCache[Any, Entry] = BoundedCache(64)
        # What threads compile ahead, by form.
        self.begun: BoundedCache[Form, Work] = BoundedCache(64)
        # Forms whose programs are compiled once more if they are called again, and whether they were.
        self.looked: BoundedCache[Form, bool] = BoundedCache(256)
        # The form that came last, how often in a row, and what has JAX's compiled call forget this function's signatures.
        self.came: Form | None = None
        self.times = 0
        self.forget: Callable[[], Any] = lambda: None
        self._digest: bytes | bool | None = False
        self._keeping: bytes | bool | None = False
        self._traced: tuple[Form, Any] | None = None

    @property
    def jitted(self) -> Any:
        """What `jax.jit` makes of the function, for what is to be traced or compiled."""
        if self._jitted is None:
            self._jitted = jax.jit(self.function, **self.options)
        return self._jitted

    @property
    def digest(self) -> Any:
        """What tells the function and its options apart in any process; None where nothing does."""
        if self._digest is False:
            try:
                self._digest = digest_of(identity_of(self.function, self.options))
            except Unknown:
                self._digest = None
        return self._digest

    def __call__(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The results for a signature that JAX's compiled call does not know, and what it needs to know it."""
        leaves, tree = jax.tree.flatten(args)
        form = form_of(leaves, tree, self.options)
        # JAX sends a signature here at every call where its first one was interrupted or failed, and takes nothing for it. A form may
        # be two signatures to JAX, of arrays that were placed and of those that a program gave.
        self.times = self.times + 1 if form is not None and form == self.came else 1
        self.came = form
        if self.times > 2:
            self.came = None
            self.forget()
        entry = None if form is None else self._entry(form, args)
        if form is None or entry is None:
            return self._plainly(args)
        if entry.again:
            self._again(form, entry, args)
        check(entry.size)
        outs = jax.tree.unflatten(entry.tree, entry.run(leaves))
        if entry.size <= LARGE:
            self.kept.pop(form, None)
            _latest[self.number, form] = entry
            return outs, entry.fast, False
        # What is made is there before the free memory is asked for next. Without what its fast path needs, a large program comes
        # by here at every call.
        self.kept[form] = entry
        self.came = None
        return jax.block_until_ready(outs), None, False

    def _entry(self, form: Form, args: tuple[Any, ...]) -> Entry | None:
        """The executable of a form: made ahead, handed out lately, found or made."""
        if form in self.begun:
            with contextlib.suppress(Exception):  # it is compiled here, and fails here
                self.begun.pop(form).result()
        entry = self.kept.get(form) or _latest.get((self.number, form))
        if entry is None:
            entry = self._ready(form, args)
            _handed[0] += 1
        return entry

    def prepare(self, *examples: Any) -> None:
        """Have the executable for these forms ready (arrays, or `jax.ShapeDtypeStruct`s of them): a first call only runs it."""
        leaves, tree = jax.tree.flatten(examples)
        form = form_of(leaves, tree, self.options)
        begun = None if form is None else self.begun.pop(form, None)
        if begun is not None:
            begun.result()
        else:
            self._prepare(form, examples)

    def _prepare(self, form: Form | None, examples: tuple[Any, ...]) -> None:
        if form is None:
            with sharing, compile_cache.compiling():
                self.jitted.lower(*examples).compile()
        elif form not in self.kept and (self.number, form) not in _latest:
            entry = self._ready(form, examples)
            if entry is not None:
                self.kept[form] = entry

    def ahead(self, *examples: Any) -> None:
        """Have a thread compile the executable for these forms, where it is neither there nor on disk: the first call waits for it."""
        leaves, tree = jax.tree.flatten(examples)
        form = form_of(leaves, tree, self.options)
        if form is None or form in self.begun or (self.number, form) in _latest or self.is_ready(form):
            return
        told = watched(self.name)

        def work() -> None:
            with told, jax.enable_x64(True):
                self._prepare(form, examples)

        self.begun[form] = made = Work(work)
        workers.submit(made)

    def _again(self, form: Form, entry: Entry, args: tuple[Any, ...]) -> None:
        """Note that a program may be compiled once more, or have it done."""
        if form not in self.looked:
            again.note(self, form, entry)
        elif not self.looked[form]:
            self.looked[form] = True
            examples = jax.tree.map(stand_in, args)
            again.ask(self, lambda: self.renew(form, examples))

    def look(self, form: Form, entry: Entry) -> None:
        """See whether the program for a form is called again: then it is to be compiled once more."""
        self.looked[form] = False
        self.kept[form] = entry
        self.forget()

    def renew(self, form: Form, examples: tuple[Any, ...]) -> None:
        """Compile a form's program once more, with XLA's newer way to make loops; it is taken once JAX has forgotten the other."""
        with watched(self.name), jax.enable_x64(True):
            leaves, tree = jax.tree.flatten(examples)
            if form_of(leaves, tree, self.options) == form:  # else this thread's JAX is set otherwise
                made = self._compiled(self._name(form), form, examples, True)
                if made is not None:
                    self.kept[form] = made

    def is_ready_for(self, *examples: Any) -> bool:
        """Whether the executable for these forms is made ahead, or on disk."""
        leaves, tree = jax.tree.flatten(examples)
        form = form_of(leaves, tree, self.options)
        return form is not None and self.is_ready(form)

    def is_ready(self, form: Form) -> bool:
        """Whether the executable of a form is made ahead, or on disk."""
        if form in self.kept:
            return True
        name = self._name(form)
        return name is not None and compile_cache.has(name)

    def facts(self, args: tuple[Any, ...], tell: Callable[[Any], Any]) -> Any:
        """What `tell(jaxpr)` says of the function traced for these arguments, as JSON has it: on disk, under the name of `tell`, or by
        tracing.

        The trace is kept for the program that may be compiled next.
        """
        leaves, tree = jax.tree.flatten(args)
        form = form_of(leaves, tree, self.options)
        name = None if form is None else self._name(form)
        own = None if name is None else f"{name}-{tell.__name__.strip('<>')}{FACTS}"
        content = None if own is None else compile_cache.read(own)
        if content is None:
            kept = self._traced
            if form is None:
                traced = self.jitted.trace(*args)
            elif kept is not None and kept[0] == form:
                traced = kept[1]
            else:
                traced = self._trace(args)
            if form is not None:
                self._traced = form, traced
            told = tell(traced.jaxpr.jaxpr)
            try:
                content = json.dumps(told).encode()
            except TypeError:  # of sizes left open, which are this trace's
                return told
            if own is not None:
                compile_cache.write(own, content)
        return json.loads(content)

    def forget_trace(self) -> None:
        """Let go of the trace that is kept for the program that may be compiled next."""
        self._traced = None

    def _trace(self, args: tuple[Any, ...]) -> Any:
        # A function of its own: what JAX remembers of it by weak references (traces, lowered modules) goes with it.
        return jax.jit(copy_of(self.function), **self.options).trace(*args)

    def _ready(self, form: Form, args: tuple[Any, ...]) -> Entry | None:
        """The executable of a form, found or made; None where JAX has to run it in its own way."""
        name = self._name(form)
        content = None if name is None else compile_cache.read(name)
        own = None if content is None else loaded(content, form)
        entry = own or self._spare(form)
        if entry is None:
            return self._compiled(name, form, args)
        self._traced = None
        count_found(entry)
        if checker.enabled and own is not None:
            made = self._compiled(None, form, args, not entry.quick)
            checker.compared += 1
            if made is None or made.key != entry.key:
                checker.different.append(f"{self.name}{form.leaves}")
        return entry

    def _compiled(
        self, name: str | None, form: Form, args: tuple[Any, ...], once_more: bool = False
    ) -> Entry | None:
        """The executable compiled, of a trace that is there or is made here, and kept under a name."""
        before, self._traced = self._traced, None
        traced = before[1] if before is not None and before[0] == form else self._trace(args)
        size, within = sizes(traced)
        if form.device.platform != "cpu":  # whose own memory XLA asks, and raises where there is too little
            size = within = 0
        check(size)
        if traced.jaxpr.effects:
            return None
        if not once_more:
            again.put_off()
            for told in made_anew:
                told()
        jaxpr = traced.jaxpr.jaxpr
        way = None
        if not once_more and is_quick(form.device, jaxpr):
            # What is to be compiled once more has to be found on disk when JAX forgets it.
            way = quickly(jaxpr, again.on and self._name(form) is not None)
            if way is not None and way.again and self.hot:
                way = None
        began = time.perf_counter()
        with sharing, compile_cache.compiling() as seen:
            lowered: Any = traced.lower()
            with extra(way.extra if way else ()):
                compiled: Any = lowered.compile(way.options if way else None)
        executable: Any = compiled._executable
        seconds = time.perf_counter() - began
        compile_cache.count("seconds", seconds)
        count = len(form.leaves)
        if not is_simple(executable, count):
            return None
        if within > ASKED:
            size += temporaries(compiled)
        known = lowered.out_tree, lowered._lowering.compile_args["committed"], count
        facts = {
            "key": seen.key,
            "seconds": round(seconds, 4),
            "size": size,
            "quick": way is not None,
            "again": way is not None and way.again,
        }
        code = seen.content
        if code is None and inside is not None and not compile_cache.in_use():
            with contextlib.suppress(jax.errors.JaxRuntimeError):  # what XLA cannot spell
                code = inside.packed(executable.xla_executable)
        content = None if code is None else to_bytes(executable, code, *known, facts)
        entry = None if content is None else loaded(content, form)
        if entry is None or content is None:
            return as_compiled(executable, *known, facts)
        if name is not None and seen.content is not None:
            compile_cache.write(name, content)
        return entry

    def _plainly(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """JAX's own way."""
        with sharing, compile_cache.compiling():
            try:
                size = needed(self.jitted.trace(*args)) if on_host(args) else 0
                found = self.jitted._cache_miss(*args)
            except BaseException:
                self.forget()
                raise
        return found if size <= LARGE else (jax.block_until_ready(found[0]), None, *found[2:])

    @property
    def keeping(self) -> Any:
        """What tells the same function apart where it gives no buffers up; None where this one gives up none."""
        if self._keeping is False:
            options = {n: () if n == "donate_argnums" else o for n, o in self.options.items()}
            gives = self.digest is not None and options != self.options
            self._keeping = digest_of(identity_of(self.function, options)) if gives else None
        return self._keeping

    def has_spare(self, *examples: Any) -> bool:
        """Whether the executable for these forms that gives up no buffers is on disk, and this one is not."""
        leaves, tree = jax.tree.flatten(examples)
        form = form_of(leaves, tree, self.options)
        if form is None or self.keeping is None or self.is_ready(form):
            return False
        name = self._name(form, self.keeping)
        return name is not None and compile_cache.has(name)

    def _spare(self, form: Form) -> Entry | None:
        """The executable on disk for small arrays that gives up none of their buffers, where this one's is not.

        A first start that had such calls wait for each other needed that one.
        """
        if self.keeping is None or sum(map(bytes_of, form.leaves)) >= SMALL:
            return None
        name = self._name(form, self.keeping)
        content = None if name is None else compile_cache.read(name)
        return None if content is None else loaded(content, form)

    def _name(self, form: Form, digest: bytes | None = None) -> str | None:
        """What the executable of a form is kept under; or that of a program that another digest tells apart."""
        digest = self.digest if digest is None else digest
        if compile_cache.directory() is None or digest is None:
            return None
        place = form.device.platform, form.device.device_kind, form.device.id
        # What is kept of a program that gives buffers up says how much it takes beside them.
        taken = ("beside",) if any(n.startswith("donate") for n in self.options) else ()
        told = repr((str(form.tree), form.leaves, _surroundings(place, form.context), *taken))
        found = hashlib.blake2b(told.encode(), key=digest, digest_size=20)
        found.update(compile_options())
        name = self.name
        return f"{compile_cache.CALL}{name if name.isidentifier() else 'program'}-{found.hexdigest()}"


def remembered(what: str, identity: Any, find: Callable[[], Any]) -> Any:
    """What `find()` says, as JSON has it: of something that `identity` tells apart in any process, on disk for later ones."""
    name = None
    if inside is not None and compile_cache.directory() is not None:
        with contextlib.suppress(Unknown):
            told = _surroundings(None, inside.context()[:-1])
            digest = hashlib.blake2b(told.encode(), key=digest_of(identity), digest_size=20)
            name = f"{compile_cache.CALL}{what}-{digest.hexdigest()}{FACTS}"
    content = None if name is None else compile_cache.read(name)
    if content is None:
        content = json.dumps(find()).encode()
        if name is not None:
            compile_cache.write(name, content)
    return json.loads(content)


def stand_in(leaf: Any) -> Any:
    """What stands for an argument of a program that is compiled once more."""
    if isinstance(leaf, jax.Array):
        place = leaf.sharding if leaf.committed else None
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.aval.weak_type, sharding=place)
    return leaf


def bytes_of(leaf: Any) -> int:
    """Of an argument, as its form tells it."""
    return math.prod(leaf[0]) * dtype_named(leaf[1]).itemsize if type(leaf) is tuple and len(leaf) == 4 else 0


def identity_of(function: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a function with options apart."""
    return function, *[(n, repr(o)) for n, o in options.items()]


def count_found(entry: Entry) -> None:
    """Count an executable that was on disk."""
    found_on_disk()
    compile_cache.count("hits")
    compile_cache.count("saved", entry.seconds)


def loaded(content: bytes, form: Form) -> Entry | None:
    """The executable that these bytes are; None where XLA cannot make it of them."""
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        return from_bytes(content, form.device)
    return None


# -- signatures


class Form:
    """The form of a call's arguments: their structure, the leaves' shapes, dtypes and the like, their device, JAX's context."""

    __slots__ = ("_key", "context", "device", "leaves", "tree")

    def __init__(self, tree: Any, leaves: tuple[Any, ...], device: Any, context: Any) -> None:
        self.tree = tree
        self.leaves = leaves
        self.device = device
        self.context = context
        self._key = (tree, leaves, device, context)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and self._key == other._key


def form_of(leaves: list[Any], tree: Any, options: dict[str, Any]) -> Form | None:
    """The form of arguments, None where JAX has to look at them itself."""
    if inside is None or not inside.is_clean() or any(getattr(jax.config, name, False) for name in WATCHING):
        return None
    wanted = options.get("out_shardings")
    if wanted is not None and type(wanted) is not inside.Single:
        return None
    device = None if wanted is None else wanted._device
    found = []
    for leaf in leaves:
        kind = type(leaf)
        if kind is inside.Array:
            told, sharding, committed = leaf.aval, leaf.sharding, leaf._committed
        elif kind is Pending:
            told, sharding, committed = leaf.aval, leaf.sharding, leaf.committed
        elif kind is jax.ShapeDtypeStruct:
            told, sharding, committed = leaf, leaf.sharding, leaf.sharding is not None
        elif kind in NUMBERS:
            found.append(kind.__name__)
            continue
        elif isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "biufc":
            # JAX puts it where it puts what is tied to no device.
            found.append((leaf.shape, leaf.dtype.name, False, False))
            continue
        else:
            return None
        if sharding is not None:
            if type(sharding) is not inside.Single or sharding.memory_kind not in MEMORIES:
                return None
            device = sharding._device if device is None else device
            if sharding._device is not device:
                return None
        found.append((told.shape, told.dtype.name, bool(told.weak_type), bool(committed)))
    if device is None:
        device = jax.config.jax_default_device or jax.local_devices()[0]  # pyright: ignore[reportAttributeAccessIssue]
        if not isinstance(device, jax.Device):
            return None
    return Form(tree, tuple(found), device, inside.context()[:-1])


def on_host(args: Any) -> bool:
    """Whether a program of these arguments takes memory of the host."""
    leaves = jax.tree.leaves(args)
    arrays = [a for a in leaves if isinstance(a, jax.Array) and not isinstance(a, Tracer)]
    platforms = {device.platform for array in arrays for device in array.devices()}
    return "cpu" in (platforms or {jax.default_backend()})


MEMORIES = (None, "device", "unpinned_host")


def in_words(context: Sequence[Any]) -> tuple[Any, ...]:
    """JAX's context with what its objects hold in the place of those that only tell their addresses, as an AxisEnv does."""
    return tuple(
        [
            [(n, getattr(x, n)) for n in type(x).__slots__ if n != "__weakref__"]
            if type(x).__repr__ is object.__repr__ and hasattr(type(x), "__slots__")
            else x
            for x in context
        ]
    )


def _surroundings(place: Any, context: tuple[Any, ...]) -> str:
    """A digest of all that a program depends on besides its function and the form of its arguments: JAX's context and settings, ours, and
    where it runs; with the processor, since a folder that the user names may serve several machines.
    """
    values = jax.config.values
    configured, digests = _latest_digests[0]
    if values != configured:
        # Both in one assignment: threads may be configured otherwise.
        digests = BoundedCache(64)
        _latest_digests[0] = values, digests
    key = place and (place, compile_cache.machine()), context, settings()
    found = digests.get(key)
    if found is None:
        told = key[0], in_words(context), key[2]
        own = [(name, repr(value)) for name, value in values.items() if name not in ASIDE]
        digest = hashlib.blake2b(repr((told, own)).encode(), digest_size=20)
        found = digests[key] = digest.hexdigest()
    return found


_latest_digests: list[tuple[dict[str, Any], BoundedCache[Any, str]]] = [({}, BoundedCache(64))]
"""How JAX was configured last, and the digests made then."""


@bounded(1)
def compile_options() -> bytes:
    """XLA's options with the flags that it has read."""
    assert inside is not None
    return inside.compile_options()


def copy_of(function: Any) -> Callable[..., Any]:
    """The same function as another object."""
    if type(function) is functools.partial:
        return functools.partial(function.func, *function.args, **function.keywords)
    code, names = function.__code__, function.__globals__
    made = types.FunctionType(code, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    made.__module__ = function.__module__
    return made
