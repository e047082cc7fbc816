"""The plan executor: a backward graph whose structure has been seen before runs as one program over its saved arrays.

A plan is the interpreter's own walk, traced: the same programs in the same order, called from one. The key is the
structure: operators, static arguments, edges, shapes and dtypes. What has been seen a few times is compiled in the
background, while the interpreter answers. What a plan cannot honour (hooks, anomaly mode, `create_graph`, custom
Functions, several devices, ...) it declines with a reason, which `engine.stats()` counts; errors too are left to the
interpreter, which knows their words.

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
from collections import OrderedDict
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import jax
from jax.core import Tracer

from .. import engine
from ..engine import AccumulateGrad, Fallback, Node, modes
from ..engine.graph import EdgeTuple, Gradients
from ..operators.apart import apart
from ..ops.tensor.export import copied
from ..storage import MetaArray
from ..tensor import array_of, wrap
from ..xla.compile_cache import compiling
from ..xla.x64 import call, jit
from .donation import donating, matching, owned
from .patterns import Pattern

__all__ = ["PlanExecutor", "executor"]

state = modes.state
NO_GRAD = modes.NO_GRAD
by_age = attrgetter("sequence_nr")
# An edge in a key: the number of the node it leads to, plus this for every place in its inputs.
SLOT = 1 << 24
# With how many plans a graph is compared before its key is made.
RECENT = 4

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
        "several devices",
        "several roots",
        "too many nodes",
        "failed to compile",
    )
}


class Plan:
    """What is known of one structure: how often it was seen, and once it is hot its program.

    program: `(root gradients, saved values) -> the gradients of the leaves`. leaves: the order in which they are
    accumulated. ran: the nodes on the way to the `inputs` asked for, None for all. keep: the objects whose identities
    the key holds. donated: the arguments whose buffers become gradients, and where else the same arrays are. plain: whether
    to do without, since other arrays were there once. pattern, wanted: for comparing graphs with it, once it has run.
    """

    __slots__ = (
        "compiling",
        "donated",
        "failed",
        "keep",
        "leaves",
        "pattern",
        "plain",
        "program",
        "ran",
        "seen",
        "wanted",
    )

    def __init__(self, keep: Any) -> None:
        self.keep = keep
        self.seen = 0
        self.compiling = self.failed = False
        self.program: Callable[..., Any] | None = None
        self.leaves: tuple[int, ...] = ()
        self.ran: tuple[int, ...] | None = None
        self.plain = False
        self.pattern: Pattern | None = None
        self.wanted: tuple[int | None, ...] | None = None
        self.donated: tuple[tuple[int, tuple[int, ...]], ...] = ()


class PlanExecutor:
    """Runs backward graphs as whole programs.

    hot: how often a structure must come before it is compiled. limit: how many structures are kept. largest: of how many
    nodes. background: whether compiling waits for a thread of its own, or is done at once (for tests and measurements).
    """

    name = "plan"

    def __init__(self, hot: int = 3, limit: int = 512, largest: int = 2000) -> None:
        self.hot = hot
        self.limit = limit
        self.largest = largest
        self.enabled = os.environ.get("XTENSOR_PLANS", "") not in ("0", "off")
        self.background = True
        self.plans: OrderedDict[Any, Plan] = OrderedDict()
        self.recent: dict[Any, list[Plan]] = {}
        self.compiled = 0
        self.donated = 0
        self._compiler = Compiler()

    def stats(self) -> dict[str, int]:
        """Structures known, programs compiled, and saved arrays whose buffers became gradients."""
        return {"structures": len(self.plans), "compiled": self.compiled, "donated": self.donated}

    def wait(self) -> None:
        """Wait until every structure that is hot has been compiled."""
        self._compiler.wait()

    def clear(self) -> None:
        """Forget every structure."""
        self.wait()
        self.plans.clear()
        self.recent.clear()

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
        if grad._xt_view is not None or type(array) is MetaArray:
            return DECLINED["meta tensors"]
        hint = (type(root), slot, id(array.aval), inputs is None)
        found = self._recognized(hint, root, array, inputs)
        if found is None:
            found = self._looked_up(root, slot, array, inputs, keep_graph)
            if type(found) is Fallback:
                return found
            self._remember(hint, *found)
        plan, nodes, args, leaves, wanted = found
        program: Any = plan.program
        if plan.donated and not self._donate(plan, nodes, args, keep_graph):
            return DECLINED["being compiled"]
        found = call(program, *args)
        if not keep_graph:
            for node in nodes if plan.ran is None else [nodes[i] for i in plan.ran]:
                node.release()
        if wanted is not None and not accumulate:
            return tuple([None if w is None or found[w] is None else wrap(found[w]) for w in wanted])
        mode = state.mode
        state.mode = mode | NO_GRAD
        try:
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
                    with target.leaf.lock:
                        meta.grad = wrap(array)
                else:
                    target.apply((wrap(array),))
        finally:
            state.mode = mode
        return ()

    def _looked_up(
        self, root: Node, slot: int, grad: Any, inputs: tuple[EdgeTuple | None, ...] | None, keep_graph: bool
    ) -> Any:
        """The plan whose key is that of a graph, with its nodes, arguments, leaves and the leaves wanted; or why not."""
        nodes = self._discover(root)
        if type(nodes) is Fallback:
            return nodes
        key: list[Any] = [slot, id(grad.aval)]
        args: list[Any] = [grad]
        leaves: dict[Node, int] = {}
        number = {node: i for i, node in enumerate(nodes)}
        get = number.get
        for at, node in enumerate(nodes):
            if not node.plan(key, args):
                return DECLINED["no operator"]
            for edge in node.edges:
                if edge is None:
                    key.append(None)
                    continue
                target, slot = edge
                to = get(target)
                if to is None:
                    to = leaves.get(target)
                    if to is None:
                        to = leaves[target] = -1 - len(leaves)
                elif to <= at:
                    return DECLINED["no operator"]
                key.append(to + SLOT * slot if slot else to)
        wanted = None
        if inputs is not None:
            wanted = self._wanted(inputs, leaves)
            if type(wanted) is Fallback:
                return wanted
            key.append(wanted)
        whole = tuple(key)
        plan = self.plans.get(whole)
        if plan is None or plan.program is None:
            plan = self._prepared(plan, whole, nodes, args, leaves, wanted, keep_graph)
            if isinstance(plan, Fallback):
                return plan
        return plan, nodes, args, list(leaves), wanted

    def _recognized(self, hint: Any, root: Node, grad: Any, inputs: Any) -> Any:
        """What `_looked_up` finds, without a key: by comparing the graph with the plans that ran last and begin as it does."""
        for plan in self.recent.get(hint, ()):
            pattern: Any = plan.pattern
            found = pattern.find(root, grad) if plan.program is not None else None
            if found is None:
                continue
            wanted = None
            if inputs is not None:
                wanted = self._wanted(inputs, {leaf: -1 - i for i, leaf in enumerate(found[2])})
                if wanted != plan.wanted:
                    continue
            return plan, *found, wanted
        return None

    def _remember(self, hint: Any, plan: Plan, nodes: list[Any], args: Any, leaves: Any, wanted: Any) -> None:
        if plan.pattern is None:
            plan.pattern, plan.wanted = Pattern(nodes, leaves), wanted
        others = [p for p in self.recent.get(hint, ()) if p is not plan]
        self.recent[hint] = [plan, *others[: RECENT - 1]]

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
            if node.meta is not None:
                return DECLINED["hooks"]
            nodes.append(node)
            for edge in node.edges:
                if edge is None:
                    continue
                target = edge[0]
                if target in seen:
                    continue
                seen.add(target)
                if type(target) is not AccumulateGrad:
                    stack.append(target)
                    continue
                if target.meta is not None or target.leaf.post_accumulate:
                    return DECLINED["hooks"]
                if target.device is not device:
                    if device is not UNKNOWN:
                        return DECLINED["several devices"]
                    device = target.device
        if len(nodes) > self.largest:
            return DECLINED["too many nodes"]
        nodes.sort(key=by_age, reverse=True)
        return nodes

    def _wanted(self, inputs: tuple[EdgeTuple | None, ...], leaves: dict[Node, int]) -> Any:
        """The places of `inputs` among the leaves; only a leaf's gradient leaves the program."""
        found = []
        for edge in inputs:
            if edge is None:
                found.append(None)
            elif type(edge[0]) is not AccumulateGrad:
                return DECLINED["inputs that are no leaves"]
            else:
                place = leaves.get(edge[0])
                found.append(None if place is None else -1 - place)
        return tuple(found)

    def _prepared(
        self,
        plan: Plan | None,
        key: Any,
        nodes: list[Any],
        args: list[Any],
        leaves: Any,
        wanted: Any,
        keep_graph: bool,
    ) -> Any:
        """Count a structure that has no program yet; have one compiled when it is hot. The plan, if it can now run."""
        if plan is None:
            if len(self.plans) >= self.limit:
                self.plans.popitem(last=False)
                self.recent.clear()
            # Identities in the key stay what they are while these live.
            plan = self.plans[key] = Plan(([n.keep() for n in nodes], [abstract(a)[0] for a in args]))
        plan.seen += 1
        if plan.seen < self.hot:
            return DECLINED["first seen"]
        if not plan.compiling:
            plan.compiling = True
            free = {} if keep_graph or plan.plain else owned(nodes, args)
            run, plan.leaves, plan.ran = build(nodes, key[0], leaves, wanted, args)
            plan.donated = matching(free, args, [t for i, t in enumerate(leaves) if i in plan.leaves])
            program = jit(donating(run, plan.donated), donate_argnums=tuple([i for i, _ in plan.donated]))
            examples = [abstract(a)[1] for a in args]
            for _, others in plan.donated:
                for j in others:
                    examples[j] = None
            self._compiler.submit(lambda: self._compile(plan, program, examples), self.background)
        if plan.failed:
            return DECLINED["failed to compile"]
        return DECLINED["being compiled"] if plan.program is None else plan

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
            with compiling():
                call(lambda: program.lower(*examples).compile())
        except Exception:  # what cannot be traced as a whole, the interpreter runs node by node
            plan.failed = True
            return
        plan.program = program
        self.compiled += 1


UNKNOWN = object()


class Compiler:
    """A thread that compiles what is handed to it, one after the other; it ends with the process."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = threading.Condition()
        self._open = 0
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], None], background: bool) -> None:
        if not background:
            job()
            return
        with self._idle:
            self._open += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="xtensor plans", daemon=True)
                self._thread.start()
                atexit.register(self._stop)
        self._jobs.put(job)

    def wait(self) -> None:
        """Wait until nothing is left to do."""
        with self._idle:
            self._idle.wait_for(lambda: self._open == 0)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._idle:
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


def abstract(value: Any) -> tuple[Any, Any]:
    """The aval that a key names, and what stands for a value when its program is compiled."""
    if type(value) is tuple:
        parts = [abstract(v) for v in value]
        return [p[0] for p in parts], tuple([p[1] for p in parts])
    if isinstance(value, jax.Array):
        aval: Any = value.aval
        sharding = None if isinstance(value, Tracer) or not value.committed else value.sharding
        return aval, jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)
    return None, value


def build(
    nodes: list[Any], slot: int, leaves: dict[Node, int], wanted: Any, args: list[Any]
) -> tuple[Any, tuple[int, ...], tuple[int, ...] | None]:
    """The function of a graph, the order in which the interpreter would accumulate its leaves, and what it would run."""
    number = {node: i for i, node in enumerate(nodes)}
    platform = next(iter(args[0].devices())).platform
    bare = [node.bare() for node in nodes]
    room = [node.num_inputs for node in nodes]
    counts = []
    for node in nodes:
        own_args: list[Any] = []
        node.plan([], own_args)
        counts.append(len(own_args))
    edges: list[list[tuple[int, int] | None]] = []
    last: dict[int, int] = {}
    for at, node in enumerate(nodes):
        own: list[tuple[int, int] | None] = []
        for edge in node.edges:
            if edge is None:
                own.append(None)
                continue
            to = number.get(edge[0])
            if to is None:
                to = leaves[edge[0]]
                last.pop(to, None)
                last[to] = at
            own.append((to, edge[1]))
        edges.append(own)
    order = tuple([-1 - to for to in last])
    ran = None
    if wanted is not None:
        order = tuple([i for i in order if i in wanted])
        needed: set[int] = set()
        for at in reversed(range(len(nodes))):
            if any(
                e is not None and (e[0] in needed if e[0] >= 0 else -1 - e[0] in wanted) for e in edges[at]
            ):
                needed.add(at)
        ran = tuple(sorted(needed))
    n_leaves = len(leaves)

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
        for at, node in enumerate(bare):
            stop = start + counts[at]
            results = node.replay(tuple(buffers[at]), args[start:stop])
            buffers[at] = []
            start = stop
            for target, result in zip(edges[at], results, strict=True):
                if target is None or result is None:
                    continue
                to, place = target
                into, index = (found, -1 - to) if to < 0 else (buffers[to], place)
                before = into[index]
                into[index] = result if before is None else before + result
        return [f if wanted is None or i in wanted else None for i, f in enumerate(found)]

    def backward(*args: Any) -> Any:
        return apart(walk, args) if platform == "cpu" else walk(*args)

    backward.__name__ = backward.__qualname__ = f"backward_of_{len(nodes)}_nodes"
    return backward, order, ran


executor = PlanExecutor()
engine.install(executor)
