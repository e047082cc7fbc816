"""Export, JAX, profiles, graphs, the compiler."""

from typing import Any

import jax
import jax.numpy as jnp

import xtensor
from xtensor import fx, nn, profiler
from xtensor.export import Dim, ExportedProgram, dims, draw, export, load, save
from xtensor.profiler import profile, record_function

model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
x = xtensor.rand(3, 2)
program: ExportedProgram = export(model, (x,), dynamic_shapes=({0: Dim("batch", min=2)},))
save(program, "model.xtx")
print(load("model.xtx").module()(x), program.graph, program.state_dict, program.graph_signature)
print(dims("rows", "columns"), draw(program), xtensor.export.explain(program))

# JAX
function, parameters = xtensor.jax.to_jax(model)
example: jax.Array = x.__jax_array__()
print(function(parameters, example))
soft = xtensor.jax.from_jax(jnp.tanh)
assert soft(x).equal(x.tanh())

# Graphs
traced: fx.GraphModule = fx.symbolic_trace(model)
nodes: list[fx.Node] = list(traced.graph.nodes)
assert traced(x).equal(model(x)) and nodes[0].op == "placeholder"
print(traced.code, fx.Interpreter(traced).run(x), fx.Transformer(traced).transform())


class Counter(fx.Interpreter):
    def run_node(self, n: fx.Node) -> Any:
        print(n.name)
        return super().run_node(n)


Counter(traced).run(x)
graph: fx.Graph = fx.Tracer().trace(model)
graph.lint()

# Profiles
with profile() as seen, record_function("forward"):
    model(x)
print(seen.key_averages().table(sort_by="cpu_time_total"), profiler.supported_activities())
print(xtensor.utils.benchmark.Timer("f(x)", globals={"f": model, "x": x}).timeit(3).median)

# The compiler
print(xtensor.compiler.explain(model)(x))
print(xtensor.compile.explain(model)(x).programs, xtensor.compiler.list_backends())


@xtensor.compiler.disable
def outside(x: xtensor.Tensor) -> bool:
    return xtensor.compiler.is_compiling()


assert not outside(x)
xtensor.compiler.reset()
