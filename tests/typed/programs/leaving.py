"""Export, JAX, profiles, graphs."""

import jax
import jax.numpy as jnp

import xtensor
from xtensor import fx, nn
from xtensor.export import Dim, export, load, save
from xtensor.profiler import profile

model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
x = xtensor.rand(3, 2)
program = export(model, (x,), dynamic_shapes=({0: Dim("batch", min=2)},))
save(program, "model.xtx")
print(load("model.xtx").module()(x), program.graph, program.state_dict, program.graph_signature)
function, parameters = xtensor.jax.to_jax(model)
example: jax.Array = x.__jax_array__()
print(function(parameters, example))
soft = xtensor.jax.from_jax(jnp.tanh)
print(soft(x))
traced = fx.symbolic_trace(model)
print(traced.code, [node.op for node in traced.graph.nodes], traced(x))
with profile() as seen:
    model(x)
print(seen.key_averages().table(sort_by="cpu_time_total"))
print(xtensor.utils.benchmark.Timer("f(x)", globals={"f": model, "x": x}).timeit(3).median)
print(xtensor.compiler.explain(model)(x))
print(xtensor.compile.explain(model)(x).programs)
