"""Graphs built, changed, cut, replaced and run in other ways: each script runs on both libraries and tells what it saw."""

import copy
import importlib
import operator
import pickle
import warnings

import pytest

import xtensor

from .judge import leaves, words

SCRIPTS = {}


def script(function):
    SCRIPTS[function.__name__] = function
    return function


def told(value):
    """A script's tale as text: numbers of tensors rounded."""
    shown = []
    for leaf in leaves(value):
        if hasattr(leaf, "detach"):
            shown.append([round(float(v), 4) for v in leaf.detach().flatten().tolist()])
        else:
            shown.append(words(str(leaf)))
    return shown


def model(torch):
    torch.manual_seed(0)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.p = torch.nn.Parameter(torch.ones(2))
            self.register_buffer("b", torch.ones(2))
            self.body = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
            with torch.no_grad():
                for n, p in enumerate(self.parameters()):
                    p.copy_(torch.arange(p.numel()).reshape(p.shape) / 3 - n / 5)

        def forward(self, x, y=None):
            a = self.linear(x)
            b = a + self.p
            c = torch.relu(b) * a
            d = self.body(c) + self.b
            return d, c

    return Model()


def submodule(torch, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(f"{torch.__name__}.fx.{path}")


@script
def build_by_hand(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x", torch.Tensor)
    y = graph.placeholder("y", default_value=2)
    w = graph.get_attr("weight")
    a = graph.call_function(operator.iadd, (x, 1))
    graph.call_function(operator.setitem, (x, 0, 5.0))
    b = graph.call_method("mul", (x, w), {})
    c = graph.call_module("act", (b,))
    d = graph.create_node("call_function", torch.add, (c, y), {"alpha": 2}, name="total")
    graph.output((d, [a, {"k": c}]), type_expr=tuple)
    module = torch.fx.GraphModule(
        {"weight": torch.nn.Parameter(torch.ones(2)), "act": torch.nn.ReLU()}, graph
    )
    nodes = [[repr(n), n.prev.name, n.next.name, list(n.users), n.all_input_nodes] for n in graph.nodes]
    return module.code, graph, nodes, module(torch.ones(2)), module, len(graph.nodes)


@script
def insert_move_and_erase(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.relu, (x,))
    out = graph.output(a)
    with graph.inserting_before(a):
        b = graph.call_method("neg", (x,))
        c = graph.call_method("abs", (b,))
    with graph.inserting_after(a):
        d = graph.call_function(torch.sigmoid, (a,))
    with graph.inserting_before():
        graph.placeholder("first")
    out.replace_input_with(a, d)
    a.update_arg(0, c)
    seen = [str(graph)]
    b.replace_all_uses_with(x)
    graph.erase_node(b)
    d.prepend(graph.call_function(torch.tanh, (a,)))
    d.args = (a.next,)
    d.update_kwarg("out", None)
    a.append(d.prev)
    seen += [str(graph), [n.name for n in reversed(graph.nodes)]]
    c.insert_arg(1, 3)
    return (
        seen,
        str(graph),
        graph.find_nodes(op="call_method"),
        graph.find_nodes(op="call_function", target=torch.tanh),
    )


@script
def replaced_users(torch):
    traced = torch.fx.symbolic_trace(lambda x: (x + 1, x + 2, [x + 3, x]))
    x, one = list(traced.graph.nodes)[:2]
    changed = x.replace_all_uses_with(one, lambda user: user is not one)
    traced.recompile()
    return changed, traced.code, x.users, one.users


@script
def dead_code(torch):
    def f(x):
        y = x + 1
        y.relu()
        torch.sigmoid(y)
        torch._assert(x, "positive")
        torch.rand_like(x)
        x.add_(1)
        return x

    graph = torch.fx.symbolic_trace(f).graph
    seen = [[n.name, n.is_impure()] for n in graph.nodes]
    return seen, graph.eliminate_dead_code(), graph, graph.eliminate_dead_code()


@script
def dead_code_as_told(torch):
    graph = torch.fx.symbolic_trace(lambda x: (x.relu(), x.neg())[0]).graph
    return graph.eliminate_dead_code(lambda n: n.name == "neg" or n.op in ("output", "placeholder")), graph


@script
def graphs_copied(torch):
    source = torch.fx.symbolic_trace(lambda x, y: torch.relu(x) + y).graph
    graph = torch.fx.Graph()
    a = graph.placeholder("a")
    values = {next(iter(source.nodes)): a}
    made = graph.graph_copy(source, values)
    graph.output(graph.call_method("neg", (made,)))
    source.node_copy(next(iter(source.nodes)))
    return graph, source, copy.deepcopy(graph), sorted(f"{k}:{v}" for k, v in values.items())


@script
def submodules(torch):
    traced = torch.fx.symbolic_trace(model(torch))
    seen = [traced.add_submodule("new.part", torch.nn.ReLU()), traced.add_submodule("p.q", torch.nn.ReLU())]
    seen += [traced, traced.delete_submodule("new.none"), traced.delete_submodule("none")]
    traced.delete_all_unused_submodules()
    return seen, traced, traced.delete_submodule("body.0"), sorted(traced.state_dict())


@script
def modules_copied(torch):
    traced = torch.fx.symbolic_trace(model(torch)).eval()
    traced.meta["note"] = 3
    other = copy.deepcopy(traced)
    with torch.no_grad():
        other.p.add_(1)
    x = torch.ones(1, 2)
    shallow = copy.copy(traced)
    return (
        traced(x),
        other(x),
        other.code == traced.code,
        type(other).__name__,
        other.training,
        other.meta,
        shallow(x),
    )


@script
def methods_of_functions(torch):
    found = submodule(torch, "node")
    nested = found.map_aggregate(
        {"a": [1, (2, slice(3, 4, None))]}, lambda x: x + 1 if isinstance(x, int) else x
    )
    return nested, type(nested).__name__, type(nested["a"]).__name__, found.map_arg((1, [2]), lambda n: n)


@script
def generated_lines(torch):
    traced = torch.fx.symbolic_trace(lambda x: x + 1)
    with traced.graph.on_generate_code(lambda before: lambda lines: ["y = x * 3\n", *lines]):
        traced.recompile()
        first = traced.code
    traced.recompile()
    traced.graph.on_generate_code(lambda before: lambda lines: ["x = x * 3\n", *lines])
    traced.graph.on_generate_code(lambda before: lambda lines: before(["x = x + 1\n", *lines]))
    traced.recompile()
    return first, traced.code, traced(torch.ones(2))


@script
def another_codegen(torch):
    class Listed(torch.fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation, **options):
            lines = f"def forward(self, args_list){maybe_return_annotation}:\n    {', '.join(free_vars)}, = args_list"
            return lines + "\n    scale = helper(2)"

        def additional_globals(self):
            return [("helper", float)]

        def process_inputs(self, *inputs):
            return inputs[0]

        def generate_output(self, output_args, **options):
            return f"return [{output_args!r}, scale]"

    traced = torch.fx.symbolic_trace(lambda x, y: x + y)
    traced.graph.set_codegen(Listed())
    traced.recompile()
    again = copy.deepcopy(traced)
    given = [torch.ones(2), torch.ones(2)]
    return traced.code, traced(given), again(given), torch.fx.Interpreter(traced).run(given)


@script
def interpreters(torch):
    class Negated(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.neg if target is torch.sigmoid else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            of = args[0]
            return of.abs() if target == "neg" else super().call_method(target, args, kwargs)

    traced = torch.fx.symbolic_trace(lambda x: torch.sigmoid(x) + x.neg())
    run = Negated(traced)
    nodes = list(traced.graph.nodes)
    known = torch.fx.Interpreter(traced).run(torch.ones(2), initial_env={nodes[1]: torch.zeros(2)})
    return run.run(torch.ones(2)), run.env, known, torch.fx.Interpreter(traced).boxed_run([torch.ones(2)])


@script
def transformers(torch):
    class Swapped(torch.fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.sigmoid if target is torch.relu else target, args, kwargs)

        def call_module(self, target, args, kwargs):
            return super().call_module(target, args, kwargs) * 2

    traced = torch.fx.symbolic_trace(model(torch))
    made = Swapped(traced).transform()
    return made.code, made(torch.ones(1, 2), None), made


@script
def patterns(torch):
    def f(x, w1, w2):
        return x + torch.cat([w1, w2]).sum() + torch.max(torch.cat([w1, w2]).sum())

    traced = torch.fx.symbolic_trace(f)
    found = torch.fx.replace_pattern(
        traced, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b]).max()
    )
    return traced.code, [[m.anchor, {str(k): str(v) for k, v in m.nodes_map.items()}] for m in found]


@script
def patterns_that_overlap(torch):
    def f(x, y):
        a = torch.relu(x + y)
        b = torch.relu(a + y)
        return a, b, torch.relu(b + b)

    codes = []
    for before, after in (
        (lambda a, b: torch.relu(a + b), lambda a, b: torch.sigmoid(a) * b),
        (lambda a, b: a + b, lambda a, b: a - b),
        (lambda a, b: torch.relu(torch.relu(a) + b), lambda a, b: a),
    ):
        traced = torch.fx.symbolic_trace(f)
        codes += [len(torch.fx.replace_pattern(traced, before, after)), traced.code]
    return codes


@script
def patterns_with_filters(torch):
    replace = submodule(torch, "subgraph_rewriter").replace_pattern_with_filters

    def f(x):
        return torch.relu(x + 3) + torch.relu(x + 1)

    seen = []
    for options in (
        {"match_filters": [lambda match, graph, pattern: "1" in str(next(iter(match.nodes_map.values())))]},
        {"ignore_literals": True},
    ):
        traced = torch.fx.symbolic_trace(f)
        found = replace(traced, lambda x: torch.relu(x + 7), lambda x: x * 2, **options)
        seen += [traced.code, [one.replacements for one in found]]
    return seen


@script
def patterns_of_modules(torch):
    class Old(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return torch.relu(self.linear(x))

    class New(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.other = torch.nn.Identity()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.other(x) * self.weight

    traced = torch.fx.symbolic_trace(Old())
    torch.fx.replace_pattern(traced, Old(), torch.fx.symbolic_trace(New()))
    return traced.code, traced, traced(torch.ones(2))


@script
def several_results_in_a_pattern(torch):
    traced = torch.fx.symbolic_trace(lambda x, y: (torch.relu(x + 1), torch.relu(y + 1)))
    found = torch.fx.replace_pattern(
        traced, lambda a, b: (torch.relu(a), torch.relu(b)), lambda a, b: (a - 1, b - 2)
    )
    return traced.code, len(found)


@script
def shapes(torch):
    ShapeProp = submodule(torch, "passes.shape_prop").ShapeProp
    traced = torch.fx.symbolic_trace(model(torch))
    result = ShapeProp(traced).propagate(torch.ones(3, 2), None)
    seen = []
    for n in traced.graph.nodes:
        meta = n.meta.get("tensor_meta")
        for one in (
            (meta if isinstance(meta, tuple) and not hasattr(meta, "shape") else [meta]) if meta else []
        ):
            seen.append(
                [n.name, tuple(one.shape), one.dtype, one.stride, one.requires_grad, one.memory_format]
            )
    return result, seen, [n.meta["type"].__name__ for n in traced.graph.nodes], traced.print_readable(False)


@script
def shapes_in_channels_last(torch):
    ShapeProp = submodule(torch, "passes.shape_prop").ShapeProp
    traced = torch.fx.symbolic_trace(lambda x: x.contiguous(memory_format=torch.channels_last) * 2)
    ShapeProp(traced).propagate(torch.ones(1, 2, 3, 3))
    return [n.meta["tensor_meta"].memory_format for n in traced.graph.nodes if n.op != "output"]


@script
def cut_into_modules(torch):
    split = submodule(torch, "passes.split_module").split_module
    whole, seen = model(torch), []
    traced = torch.fx.symbolic_trace(whole)
    for options in ({}, {"keep_original_order": True}, {"partition_affix": "part"}):
        count, paths = [0], {}

        def third(node, count=count):
            count[0] += 1
            return (count[0] - 1) // 3

        made = split(traced, whole, third, paths, **options)
        seen += [made.code, paths, *[c.code for c in made.children()], made.print_readable(False), made]
        seen.append(made(torch.ones(1, 2)))
    return seen


@script
def cut_by_tags(torch):
    split = submodule(torch, "passes.split_utils").split_by_tags
    traced = torch.fx.symbolic_trace(model(torch))
    tags = {"linear": "a", "add": "a", "relu": "b", "mul": "b", "body_0": "c", "body_1": "c", "add_1": "c"}
    for node in traced.graph.nodes:
        if node.name in tags:
            node.tag = tags[node.name]
    made, paths = split(traced, ["a", "b", "c"], return_fqn_mapping=True)
    return [c.code for c in made.children()], paths, made(torch.ones(1, 2), None)


@script
def fused(torch):
    optimization = submodule(torch, "experimental.optimization")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(1, 2, 1), torch.nn.BatchNorm2d(2)
            self.drop = torch.nn.Dropout()
            self.rest = torch.nn.Sequential(torch.nn.Conv2d(2, 2, 1), torch.nn.BatchNorm2d(2))
            with torch.no_grad():
                for p in self.parameters():
                    p.copy_(torch.arange(p.numel()).reshape(p.shape) / 5 + 0.1)
                self.norm.running_mean.add_(0.3)

        def forward(self, x):
            return self.rest(torch.relu(self.drop(self.norm(self.conv(x)))))

    net = Net().eval()
    made, x = optimization.fuse(net), torch.ones(1, 1, 2, 2)
    return made.code, made(x), net(x), optimization.remove_dropout(net).code


@script
def normalized(torch):
    functional = torch.nn.functional

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return functional.dropout(functional.relu(self.linear(input=x)), 0.3)

    net = Net()
    traced, seen = torch.fx.symbolic_trace(net), []
    for node in traced.graph.nodes:
        for by_name in (False, True):
            found = node.normalized_arguments(net, normalize_to_only_use_kwargs=by_name)
            seen.append(None if found is None else [found.args, sorted(found.kwargs.items())])
    schemas = submodule(torch, "operator_schemas")
    hints = (
        schemas.create_type_hint([int, int]),
        schemas.create_type_hint((int, bool)),
        schemas.type_matches(int, int),
    )
    return (
        seen,
        hints,
        schemas.normalize_function(operator.add, (1, 2)),
        schemas.normalize_function(lambda x, y=3: 1, (1,)),
    )


@script
def managed_passes(torch):
    infra = submodule(torch, "passes.infra.pass_manager")
    base = submodule(torch, "passes.infra.pass_base")

    def swap(module, old, new):
        changed = False
        for node in module.graph.nodes:
            if node.target is old:
                node.target, changed = new, True
        module.recompile()
        return base.PassResult(module, changed)

    def first(module):
        return swap(module, operator.add, operator.mul)

    def second(module):
        return swap(module, operator.mul, operator.sub)

    traced = torch.fx.symbolic_trace(lambda x: x + 2)
    order = infra.this_before_that_pass_constraint(first, second)
    manager = infra.PassManager([second, first], [order], steps=3)
    result = manager(traced)
    return traced.code, result.modified, [p.__name__ for p in manager.passes]


@script
def sorted_again(torch):
    tools = submodule(torch, "passes.tools_common")
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.relu, (x,))
    b = graph.call_function(torch.sigmoid, (x,))
    graph.output(a)
    a.args = (b,)
    return tools.legalize_graph(torch.fx.GraphModule({}, graph)).code


@script
def metadata(torch):
    tracer = torch.fx.Tracer()
    whole = model(torch)
    graph = tracer.trace(whole)
    stacks = [
        [[k, v[0], v[1].__name__] for k, v in n.meta.get("nn_module_stack", {}).items()] for n in graph.nodes
    ]
    scopes = {n: [s[0], getattr(s[1], "__name__", None)] for n, s in tracer.node_name_to_scope.items()}
    return stacks, [scopes[n.name] for n in graph.nodes]


@script
def hooks_on_changes(torch):
    traced, seen = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1), []
    traced._register_create_node_hook(lambda node: seen.append(["made", node.name]))
    traced._register_erase_node_hook(lambda node: seen.append(["gone", node.name]))
    relu = next(n for n in traced.graph.nodes if n.name == "relu")
    with (
        traced.graph.inserting_after(relu),
        traced._set_replace_hook(lambda old, new, user: seen.append([old.name, new, user.name])),
    ):
        relu.replace_all_uses_with(traced.graph.call_function(torch.sigmoid, relu.args))
    traced.graph.erase_node(relu)
    return seen


@script
def graphs_in_place(torch):
    """The operators of the tutorials: other functions, inverses, and a graph by hand from a graph."""
    inverse = {torch.sin: torch.asin, torch.exp: torch.log}
    traced = torch.fx.symbolic_trace(lambda x: torch.exp(torch.sin(x)))
    graph, values = torch.fx.Graph(), {}
    (out,) = traced.graph.find_nodes(op="output")
    values[out.args[0]] = graph.placeholder("out")
    for node in reversed(traced.graph.nodes):
        if node.op == "call_function":
            values[node.args[0]] = graph.call_function(inverse[node.target], (values[node],))
    graph.output(values[next(iter(traced.graph.nodes))])
    inverted = torch.fx.GraphModule(traced, graph)
    return inverted.code, inverted(traced(torch.ones(2)))


@script
def functions_replaced(torch):
    """A tutorial: every `add` becomes a `mul`, however it is called."""
    patterns = {operator.add, torch.add, "add"}
    traced = torch.fx.symbolic_trace(lambda x, y: (x + y, torch.add(x, y), x.add(y)))
    for node in traced.graph.nodes:
        if any(node.target == pattern for pattern in patterns):
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(torch.bitwise_and, node.args, node.kwargs)
                node.replace_all_uses_with(new)
            traced.graph.erase_node(node)
    traced.recompile()
    return traced.code, traced(torch.tensor([True, False]), torch.tensor([True, True]))


@script
def calls_timed(torch):
    """A tutorial: an interpreter that counts what runs, and how often."""

    class Counting(torch.fx.Interpreter):
        def __init__(self, module):
            super().__init__(module)
            self.counts = {}

        def run_node(self, n):
            result = super().run_node(n)
            self.counts[n.name] = self.counts.get(n.name, 0) + 1
            return result

    counting = Counting(torch.fx.symbolic_trace(model(torch)))
    for _ in range(2):
        result = counting.run(torch.ones(1, 2), None)
    return counting.counts, result


@script
def decomposed(torch):
    """A tutorial: functions written by others, through proxies on a new graph."""
    functional = torch.nn.functional
    rules = {functional.relu: lambda x: (x > 0) * x}
    traced = torch.fx.symbolic_trace(lambda x: functional.relu(x).neg() + 1)
    graph, values = torch.fx.Graph(), {}
    tracer = submodule(torch, "proxy").GraphAppendingTracer(graph)
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target in rules:
            args = [
                torch.fx.Proxy(values[a], tracer) if isinstance(a, torch.fx.Node) else a for a in node.args
            ]
            values[node] = rules[node.target](*args).node
        else:
            values[node] = graph.node_copy(node, lambda n: values[n])
    made = torch.fx.GraphModule(traced, graph)
    return made.code, made(torch.tensor([-1.0, 2.0]))


@script
def folded_by_hand(torch):
    """A tutorial: batch normalization taken into the convolution before it."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(1, 2, 1), torch.nn.BatchNorm2d(2)
            with torch.no_grad():
                self.conv.weight.copy_(torch.ones(2, 1, 1, 1))
                self.conv.bias.copy_(torch.tensor([0.5, -0.5]))
                self.norm.running_mean.add_(0.25)

        def forward(self, x):
            return self.norm(self.conv(x))

    net, x = Net().eval(), torch.ones(1, 1, 2, 2)
    traced = torch.fx.symbolic_trace(net)
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op == "call_module" and type(modules[node.target]) is torch.nn.BatchNorm2d:
            conv, norm = modules[node.args[0].target], modules[node.target]
            scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            with torch.no_grad():
                conv.weight.mul_(scale.reshape(-1, 1, 1, 1))
                conv.bias.copy_((conv.bias - norm.running_mean) * scale + norm.bias)
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced.code, traced, traced(x)


@script
def proxies_on_a_graph(torch):
    graph = torch.fx.Graph()
    tracer = submodule(torch, "proxy").GraphAppendingTracer(graph)
    x = torch.fx.Proxy(graph.placeholder("x"), tracer)
    y = torch.fx.Proxy(graph.placeholder("y"), tracer)
    result = torch.relu(x @ y).sum() + x.shape[0] * y[0]
    graph.output(result.node)
    return torch.fx.GraphModule({}, graph).code, repr(result), repr(x.shape)


@script
def readable_immutable_lists(torch):
    held = submodule(torch, "immutable_collections")
    made = held.immutable_list([1, held.immutable_dict({"a": 2})])
    again = pickle.loads(pickle.dumps(made))
    return made, again, type(again).__name__, hash(made) == hash(again), [*made, 3]


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_tale(torch, name):
    expected, got = told(SCRIPTS[name](torch)), told(SCRIPTS[name](xtensor))
    assert got == expected
