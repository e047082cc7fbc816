"""The plan executor: a backward graph whose structure has been seen before runs as one program over its saved arrays.

A plan is the interpreter's own walk, traced: the same programs in the same order, called from one. The structure is
operators, static arguments, edges, shapes and dtypes (`patterns.py`). What has been seen a few times is compiled in the
background, while the interpreter answers. On the CPU, a graph whose nodes would compile several programs that no earlier graph
has made is a plan from its first time on: one program of all of them takes less to compile than they do. What a plan cannot
honour (hooks, anomaly mode, `create_graph`, custom Functions, several devices, ...) it declines with a reason, which
`engine.stats()` counts; errors too are left to the interpreter, which knows their words.

A saved array that nothing but the graph can see any more, and that has the shape and dtype of a leaf's gradient, is donated:
the gradient takes its buffer.

On the CPU each program within a plan is compiled apart, so that a plan rounds as the interpreter does and nobody can
tell from a result which of the two made it, or when the plan was ready. `XTENSOR_PLANS=0` in the environment, or
`executor.enabled = False`, leaves all to the interpreter.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import jax
from jax.core import Tracer

from .. import capture, engine
from ..engine import AccumulateGrad, Fallback, Node, modes
from ..engine.graph import EdgeTuple, Gradients
from ..operators.operator import MANY
from ..ops.tensor.export import copied
from ..storage import UNREAD, MetaArray
from ..tensor import AutogradMeta, array_of, wrap
from ..xla import segments
from ..xla.cache import emptied_too
from ..xla.levels import KINDS, layers
from ..xla.pending import settled
from ..xla.segments import waiter
from ..xla.segments.apart import apart
from ..xla.sizes.terms import varied
from ..xla.x64 import call, jit, prepare
from .donation import donating, matching, owned
from .patterns import Pattern, Patterns

__all__ = ["PlanExecutor", "executor"]

state = modes.state
NO_GRAD = modes.NO_GRAD
set_grad: Any = AutogradMeta.grad.__set__  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
by_age = attrgetter("_xt_sequence_nr")
# Where too many structures are known, one in so many is forgotten.
SHARE = 8
# A graph of which one node in so many would make a program of its own is a plan at once.
DENSE = 4
# Before a graph is compiled it comes `hot - 1` times for every so many of its nodes.
SHORT = 24

DECLINED = {
    reason: Fallback(reason)
    for reason in (
        "anomaly mode or a profile",
        "create_graph",
        "hooks",
        "inputs that are no leaves",
        "nested in another backward",
        "no operator",
        "off",
        "first seen",
        "being compiled",
        "meta tensors",
        "from outside a level",
        "several devices",
        "several roots",
        "too many nodes",
        "within a capture",
        "failed to compile",
    )
}


class Plan:
    """What is known of one structure and the leaves asked for: how often it was seen, and once it is hot its program.

    program: `(root gradients, saved values) -> the gradients of the leaves`. leaves: the order in which they are
    accumulated. ran: the nodes on the way to the `inputs` asked for, None for all. donated: the arguments whose buffers
    become gradients, and where else the same arrays are. plain: whether to do without, since other arrays were there once.
    numbers: whether there are Python's among the arguments, for which 64-bit types are to be on.
    untried: whether the program was neither compiled nor run yet. waits: the program, whose call may wait with those before it.
    """

    __slots__ = (
        "compiling",
        "donated",
        "failed",
        "leaves",
        "numbers",
        "plain",
        "program",
        "ran",
        "seen",
        "untried",
        "waits",
    )

    def __init__(self) -> None:
        self.seen = 0
        self.compiling = self.failed = self.untried = False
        self.program: Callable[..., Any] | None = None
        self.waits: Callable[..., Any] | None = None
        self.leaves: tuple[int, ...] = ()
        self.ran: tuple[int, ...] | None = None
        self.plain = self.numbers = False
        self.donated: tuple[tuple[int, tuple[int, ...]], ...] = ()


class PlanExecutor:
    """Runs backward graphs as whole programs.

    hot: how often a structure must come before it is compiled; one of many nodes, whose program takes seconds to compile, more often. limit: how
    many structures are kept. largest: of how many nodes. background: whether compiling waits for a thread of its own, or is done at once (for
    tests and measurements). at_once: how many programs a graph's nodes must need that are not there for it to be compiled when first seen; 0 for never.
    """

    name = "plan"

    def __init__(self, hot: int = 3, limit: int = 512, largest: int = 2000) -> None:
        self.hot = hot
        self.limit = limit
        self.largest = largest
        self.enabled = os.environ.get("XTENSOR_PLANS", "") not in ("0", "off")
        self.background = True
        self.at_once = 3
        self.patterns = Patterns()
        self.compiled = 0
        self.donated = 0
        self._known = 0
        self._compiler = Compiler()

    def stats(self) -> dict[str, int]:
        """Structures known, programs compiled, and saved arrays whose buffers became gradients."""
        return {"structures": self._count(), "compiled": self.compiled, "donated": self.donated}

    def _count(self) -> int:
        self._known = sum(len(pattern.plans) for pattern in self.patterns)
        return self._known

    def wait(self) -> None:
        """Wait until every structure that is hot has been compiled."""
        self._compiler.wait()

    def clear(self) -> None:
        """Forget every structure, and have what is being compiled end."""
        self.wait()
        self.forget()

    def forget(self) -> None:
        """Forget every structure."""
        self.patterns.clear()
        self._known = 0

    def run(
        self,
        roots: tuple[EdgeTuple, ...],
        grads: Gradients,
        inputs: tuple[EdgeTuple | None, ...] | None,
        keep_graph: bool,
        create_graph: bool,
        accumulate: bool,
    ) -> Gradients | Fallback:
        """Run the graph below `roots` if its program is there; see `Executor.run`."""
        if not self.enabled:
            return DECLINED["off"]
        if create_graph:
            return DECLINED["create_graph"]
        if state.mode & ~NO_GRAD:
            return DECLINED["anomaly mode or a profile"]
        if engine.is_executing():
            return DECLINED["nested in another backward"]
        if len(roots) != 1:
            return DECLINED["several roots"]
        ((root, slot),) = roots
        (grad,) = grads
        array = grad._xt_storage.array
        if grad._xt_view is not None:
            return DECLINED["meta tensors"]
        if type(array) in UNREAD:
            if type(array) is MetaArray:
                return DECLINED["meta tensors"]
            if type(array) in KINDS and any(at.outer for at in layers(array)):
                return DECLINED["from outside a level"]
        if (capture.watchers and capture.running() is not None) or isinstance(array, Tracer):
            return DECLINED["within a capture"]
        if inputs is not None and any(e is not None and type(e[0]) is not AccumulateGrad for e in inputs):
            return DECLINED["inputs that are no leaves"]
        start = (type(root), slot, id(array.aval))
        found = self.patterns.recent(start, root, array)
        recent = found is not None
        if found is None:
            found = self._looked_up(start, root, array)
            if type(found) is Fallback:
                return found
        pattern, nodes, args, leaves = found
        wanted = None if inputs is None else places(inputs, leaves)
        plan = pattern.plans.get(wanted)
        if plan is None or plan.program is None:
            settle(args)
            plan = self._prepared(plan, pattern, slot, nodes, args, leaves, wanted, keep_graph)
            if type(plan) is Fallback:
                return plan
        if not recent:
            self.patterns.ran(pattern)
        waits = plan.waits if segments.waiting() else None
        program: Any = plan.program if waits is None else waits
        if waits is None:
            settle(args)
        if plan.donated and not self._donate(plan, nodes, args, keep_graph):
            return DECLINED["being compiled"]
        try:
            found = call(program, *args) if plan.numbers else program(*args)
        except Exception:
            if not plan.untried:
                raise
            plan.program, plan.failed = None, True
            return DECLINED["failed to compile"]
        if plan.untried:
            plan.untried = False
            self.compiled += 1
        if plan.waits is None and not (plan.donated or plan.numbers):
            plan.waits = waiter(plan.program, len(args), jax.tree.structure(found), False)
        if not keep_graph:
            for node in nodes if plan.ran is None else [nodes[i] for i in plan.ran]:
                node._xt_release()
        if wanted is not None and not accumulate:
            return tuple([None if w is None or found[w] is None else wrap(found[w]) for w in wanted])
        metas: list[Any] = []
        made: list[Any] = []
        others: list[Any] = []
        for i in plan.leaves:
            array = found[i]
            if array is None:
                continue
            target = leaves[i]
            variable = target.variable
            meta = variable._xt_meta
            # What `apply` does for a leaf that lies plainly in memory, wants a gradient still and has none yet.
            if (
                meta is not None
                and meta.grad is None
                and variable._xt_view is None
                and variable._xt_edge is not None
            ):
                metas.append(meta)
                made.append(wrap(array))
            else:
                others.append((target, array))
        # In one call of C: a signal finds all these gradients, or none.
        any(map(set_grad, metas, made))
        if others:
            mode = state.mode
            state.mode = mode | NO_GRAD
            try:
                for target, array in others:
                    target.apply((wrap(array),))
            finally:
                state.mode = mode
        return ()

    def _looked_up(self, start: Any, root: Node, grad: Any) -> Any:
        """What `Patterns.find` finds for the graph below `root`; or why it cannot be a plan."""
        nodes = self._discover(root)
        if type(nodes) is Fallback:
            return nodes
        found = self.patterns.find(start, nodes, grad)
        return DECLINED["no operator"] if found is None else found

    def _discover(self, root: Node) -> Any:
        """The nodes below `root`, leaves aside, in the order in which the interpreter runs them; or why not."""
        if type(root) is AccumulateGrad:
            return DECLINED["no operator"]
        nodes: list[Node] = []
        seen = {root}
        stack = [root]
        device = UNKNOWN
        while stack:
            node = stack.pop()
            if node._xt_meta is not None:
                return DECLINED["hooks"]
            nodes.append(node)
            for edge in node._xt_edges:
                if edge is None:
                    continue
                target = edge[0]
                if target in seen:
                    continue
                seen.add(target)
                if type(target) is not AccumulateGrad:
                    stack.append(target)
                    continue
                if target._xt_meta is not None or target.leaf.post_accumulate:
                    return DECLINED["hooks"]
                if target._xt_device is not device:
                    if device is not UNKNOWN:
                        return DECLINED["several devices"]
                    device = target._xt_device
        if len(nodes) > self.largest:
            return DECLINED["too many nodes"]
        nodes.sort(key=by_age, reverse=True)
        return nodes

    def _prepared(
        self,
        plan: Plan | None,
        pattern: Pattern,
        slot: int,
        nodes: list[Any],
        args: list[Any],
        leaves: list[Any],
        wanted: Any,
        keep_graph: bool,
    ) -> Any:
        """Count a structure that has no program yet; have one compiled when it is hot. The plan, if it can now run."""
        if plan is None:
            if self._known >= self.limit and self._count() >= self.limit:
                self.patterns.forget(SHARE)
                self._count()
            plan = pattern.plans[wanted] = Plan()
            self._known += 1
        plan.seen += 1
        at_once = plan.seen == 1 and self._is_new(nodes, args)
        times = max(self.hot, (self.hot - 1) * len(nodes) // SHORT)
        if plan.seen < times and not at_once and not plan.failed:
            return DECLINED["first seen"]
        if not plan.compiling:
            plan.compiling = True
            leveled = any(type(a) in KINDS for a in args)
            free = {} if keep_graph or plan.plain or leveled else owned(nodes, args)
            run, plan.leaves, plan.ran = build(pattern, nodes, slot, wanted, args)
            plan.donated = matching(free, args, [t for i, t in enumerate(leaves) if i in plan.leaves])
            program = jit(donating(run, plan.donated), donate_argnums=tuple([i for i, _ in plan.donated]))
            plan.numbers = not NUMBERS.isdisjoint(map(type, args))
            examples = [example(a) for a in args]
            for _, others in plan.donated:
                for j in others:
                    examples[j] = None
            if at_once or leveled:
                # Which a trace would note, but a plan that is found on disk is not traced.
                for node in nodes:
                    node.made_within()
                plan.program, plan.untried = program, True
                return plan
            self._compiler.submit(lambda: self._compile(plan, program, examples), self.background)
        if plan.failed:
            return DECLINED["failed to compile"]
        return DECLINED["being compiled"] if plan.program is None else plan

    def _is_new(self, nodes: list[Any], args: list[Any]) -> bool:
        """Whether a graph's nodes would compile so many programs that its plan is made instead: each counts in one graph only."""
        if not self.at_once or isinstance(args[0], Tracer) or next(iter(args[0].devices())).platform != "cpu":
            return False
        # Where sizes vary, the nodes' programs are those of all sizes.
        if any(n in varied for a in args for n in getattr(a, "shape", ())):
            return False
        # The parts of a gradient, which nodes by themselves see where they lie, would each be compiled.
        if any(len(node._xt_edges) >= MANY for node in nodes):
            return False
        unmade = {found for node in nodes if (found := node.unmade()) is not None}
        return len(unmade) >= max(self.at_once, len(nodes) / DENSE)

    def _donate(self, plan: Plan, nodes: list[Any], args: list[Any], keep_graph: bool) -> bool:
        """Ready the arguments that a plan's program takes over; False where other arrays are the same than were then."""
        if any(args[j] is not args[i] for i, others in plan.donated for j in others):
            plan.program, plan.compiling, plan.plain = None, False, True
            return False
        free = {} if keep_graph else owned(nodes, args)
        for i, others in plan.donated:
            if free.get(i) != others:
                args[i] = call(copied, args[i])
            else:
                self.donated += 1
            for j in others:
                args[j] = None
        return True

    def _compile(self, plan: Plan, program: Any, examples: list[Any]) -> None:
        try:
            prepare(program, *examples)
        except Exception:  # what cannot be traced as a whole, the interpreter runs node by node
            plan.failed = True
            return
        plan.program = program
        self.compiled += 1


def settle(args: list[Any]) -> None:
    """Have the values of what pends among arguments, in the same list: whoever counts references would see another."""
    if segments.enabled():
        args[:] = map(settled, args)


UNKNOWN = object()
NUMBERS = frozenset((bool, int, float, complex))


class Compiler:
    """A thread that compiles what is handed to it, one after the other; it ends with the process."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._guard = threading.RLock()  # see `xla/pending.py: Workers`
        self._idle = threading.Condition(self._guard)
        self._open = 0
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], None], background: bool) -> None:
        if not background:
            job()
            return
        with self._guard:
            self._open += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="xtensor plans", daemon=True)
                self._thread.start()
                atexit.register(self._stop)
        self._jobs.put(job)

    def wait(self) -> None:
        """Wait until nothing is left to do."""
        with self._guard:
            self._idle.wait_for(lambda: self._open == 0)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._guard:
                self._open -= 1
                self._idle.notify_all()

    def _stop(self) -> None:
        # XLA must not be compiling while the process is taken down; what has not begun is let go.
        thread = self._thread
        assert thread is not None
        while not self._jobs.empty():
            self._jobs.get()
        self._jobs.put(None)
        thread.join()


def places(inputs: tuple[EdgeTuple | None, ...], leaves: list[Any]) -> tuple[int | None, ...]:
    """Where `inputs` are among the leaves; None for those that are not."""
    at = {leaf: i for i, leaf in enumerate(leaves)}
    return tuple([None if edge is None else at.get(edge[0]) for edge in inputs])


def example(value: Any) -> Any:
    """What stands for a value when its program is compiled."""
    if type(value) is tuple:
        return tuple([example(v) for v in value])
    if not isinstance(value, jax.Array):
        return value
    aval: Any = value.aval
    sharding = None if isinstance(value, Tracer) or not value.committed else value.sharding
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)


def build(
    pattern: Pattern, nodes: list[Any], slot: int, wanted: Any, args: list[Any]
) -> tuple[Any, tuple[int, ...], tuple[int, ...] | None]:
    """The function of a graph, the order in which the interpreter would accumulate its leaves, and what it would run."""
    steps, n_leaves = pattern.steps, pattern.n_leaves
    platform = next(iter(args[0].devices())).platform
    room = [node._xt_num_inputs for node in nodes]
    counts = []
    for node, (_, own, _) in zip(nodes, steps, strict=True):
        values: list[Any] = []
        node.matches(own, values)
        counts.append(len(values))
    last: dict[int, int] = {}
    for at, (_, _, edges) in enumerate(steps):
        for to, _ in edges:
            if to is not None and to < 0:
                last.pop(to, None)
                last[to] = at
    order = tuple([-1 - to for to in last])
    ran = None
    if wanted is not None:
        order = tuple([i for i in order if i in wanted])
        needed: set[int] = set()
        for at, (_, _, edges) in reversed(list(enumerate(steps))):
            if any(to is not None and (to in needed if to >= 0 else -1 - to in wanted) for to, _ in edges):
                needed.add(at)
        ran = tuple(sorted(needed))

    def walk(grad: Any, *args: Any) -> list[Any]:
        mode = state.mode
        state.mode = NO_GRAD
        try:
            return [None if f is None else array_of(f) for f in gradients(wrap(grad), args)]
        finally:
            state.mode = mode

    def gradients(grad: Any, args: tuple[Any, ...]) -> list[Any]:
        buffers: list[list[Any]] = [[None] * n for n in room]
        found: list[Any] = [None] * n_leaves
        buffers[0][slot] = grad
        start = 0
        for at, (kind, own, edges) in enumerate(steps):
            stop = start + counts[at]
            results = kind.replay(own, tuple(buffers[at]), args[start:stop])
            buffers[at] = []
            start = stop
            for (to, place), result in zip(edges, results, strict=True):
                if to is None or result is None:
                    continue
                into, index = (found, -1 - to) if to < 0 else (buffers[to], place)
                before = into[index]
                into[index] = result if before is None else before + result
        return [f if wanted is None or i in wanted else None for i, f in enumerate(found)]

    def backward(*args: Any) -> Any:
        return apart(walk, args) if platform == "cpu" else walk(*args)

    backward.__name__ = backward.__qualname__ = f"backward_of_{len(steps)}_nodes"
    return backward, order, ran


executor = PlanExecutor()
engine.install(executor)
emptied_too.append(executor.forget)
