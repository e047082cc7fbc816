"""Each program traced by both libraries: nodes, code, texts, and what the traced module gives."""

import pytest

import xtensor

from .judge import code, described, same_values, words
from .programs import PROGRAMS, Program


def traced(fx, made: Program):
    if made.tracer is None:
        return fx.symbolic_trace(made.root, concrete_args=made.concrete)
    graph = made.tracer.trace(made.root, made.concrete)
    return fx.GraphModule(made.tracer.root, graph, "Traced")


def copied(source, target) -> None:
    """Give one library's module the other's parameters and buffers."""
    if hasattr(source, "state_dict"):
        target.load_state_dict({k: xtensor.tensor(v.numpy().copy()) for k, v in source.state_dict().items()})


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_graph_code_and_results(torch, name):
    theirs, ours = PROGRAMS[name](torch), PROGRAMS[name](xtensor)
    copied(theirs.root, ours.root)
    expected, got = traced(torch.fx, theirs), traced(xtensor.fx, ours)
    got.graph.lint()
    assert described(got.graph) == described(expected.graph)
    assert code(got) == code(expected)
    assert words(str(got.graph)) == words(str(expected.graph))
    assert words(str(got)) == words(str(expected))
    assert words(got.print_readable(False)) == words(expected.print_readable(False))
    wanted = expected(*theirs.inputs, **theirs.named)
    same_values(wanted, got(*ours.inputs, **ours.named))
    if not ours.named:
        same_values(wanted, ours.root(*ours.inputs))
        same_values(wanted, xtensor.fx.Interpreter(got).run(*ours.inputs))


@pytest.mark.parametrize("name", ["linear_layers", "nested_submodules", "functions", "wrapped_functions"])
def test_traced_code_is_traced_again(name):
    made = PROGRAMS[name](xtensor)
    first = traced(xtensor.fx, made)
    again = xtensor.fx.symbolic_trace(first)
    if name != "wrapped_functions":  # the wrapped names are those of the generated code now
        assert code(again) == code(first)
    same_values(first(*made.inputs), again(*made.inputs))


TABLE = """
opcode         name    target                           args            kwargs
-------------  ------  -------------------------------  --------------  --------
placeholder    x       x                                ()              {}
call_module    layer   layer                            (x,)            {}
call_function  add     <built-in function add>          (layer, 1)      {}
call_method    sum_1   sum                              (add,)          {'dim': 0}
output         output  output                           (sum_1,)        {}
""".strip()


class Tabled(xtensor.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = xtensor.nn.ReLU()

    def forward(self, x):
        return (self.layer(x) + 1).sum(dim=0)


def test_print_tabular(capsys):
    xtensor.fx.symbolic_trace(Tabled()).graph.print_tabular()
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line for i, line in enumerate(lines) if i != 1] == [
        line.split() for i, line in enumerate(TABLE.splitlines()) if i != 1
    ]


def test_print_tabular_as_pytorch_does(torch, capsys):
    pytest.importorskip("tabulate")
    for name in ("linear_layers", "nested_submodules", "operators", "every_kind_of_parameter"):
        texts = []
        for library in (torch, xtensor):
            traced(library.fx, PROGRAMS[name](library)).graph.print_tabular()
            texts.append(words(capsys.readouterr().out))
        assert texts[0] == texts[1]
