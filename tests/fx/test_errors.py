"""What both libraries say to programs that cannot be traced, and to graphs that are wrong."""

import warnings

import pytest

import xtensor

from .judge import words

ERRORS = {}


def case(function):
    ERRORS[function.__name__] = function
    return function


def traced(torch, function, **options):
    return torch.fx.symbolic_trace(function, **options)


@case
def truth(torch):
    traced(torch, lambda x: 1 if x.sum() > 0 else 2)


@case
def logical_and(torch):
    traced(torch, lambda x: x and 1)


@case
def membership(torch):
    traced(torch, lambda x: 3 in x)


@case
def loop(torch):
    traced(torch, lambda x: [part + 1 for part in x])


@case
def starred(torch):
    traced(torch, lambda x: torch.cat(*x))


@case
def double_starred(torch):
    traced(torch, lambda x: dict(**x))


@case
def length(torch):
    traced(torch, lambda x: len(x))


@case
def integer(torch):
    traced(torch, lambda x: int(x))


@case
def floating(torch):
    traced(torch, lambda x: float(x))


@case
def counted(torch):
    traced(torch, lambda x: range(x))


@case
def rounded(torch):
    traced(torch, lambda x: round(x))


@case
def divided(torch):
    traced(torch, lambda x: divmod(x, 2))


@case
def asserted(torch):
    def f(x):
        assert x.shape[0] == 1
        return x

    traced(torch, f)


@case
def written_by_index(torch):
    def f(x):
        x[0] = 1
        return x

    traced(torch, f)


@case
def an_object(torch):
    traced(torch, lambda x: object())


@case
def a_set(torch):
    traced(torch, lambda x: {1, 2})


@case
def key_of_a_dict(torch):
    traced(torch, lambda x: {x: 1})


@case
def module_from_outside(torch):
    traced(torch, lambda x: torch.nn.ReLU()(x))


@case
def too_many_concrete_args(torch):
    traced(torch, lambda x, y: x, concrete_args=(1, 2, 3))


@case
def missing_argument(torch):
    traced(torch, lambda x, y: x + y)(torch.ones(1))


@case
def specialised(torch):
    traced(torch, lambda x, flag: x, concrete_args={"flag": True})(torch.ones(1), False)


@case
def specialised_to_none(torch):
    traced(torch, lambda x, y: x, concrete_args={"y": None})(torch.ones(1), 3)


@case
def wrap_within_a_function(torch):
    torch.fx.wrap("anything")


@case
def wrap_of_a_number(torch):
    torch.fx.wrap(3)


@case
def two_tracers(torch):
    graphs = [torch.fx.Graph(), torch.fx.Graph()]
    a, b = [torch.fx.Proxy(g.placeholder("x")) for g in graphs]
    try:
        torch.add(a, b)
    except RuntimeError as error:
        raise RuntimeError(str(error).partition("[")[0]) from None


@case
def erase_a_node_in_use(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.relu, (x,))
    graph.erase_node(x)


@case
def unknown_opcode(torch):
    torch.fx.Graph().create_node("other", "x")


@case
def used_before_its_definition(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    with graph.inserting_before(x):
        graph.call_function(torch.relu, (x,))
    graph.lint()


@case
def redefined_name(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.relu, (x,))
    y.name = "x"
    graph.lint()


@case
def missing_target_in_a_dict(torch):
    graph = torch.fx.Graph()
    graph.output(graph.get_attr("weight"))
    torch.fx.GraphModule({}, graph)


@case
def root_of_another_type(torch):
    torch.fx.GraphModule(3, torch.fx.Graph())


@case
def missing_module(torch):
    module = traced(torch, torch.nn.Sequential(torch.nn.ReLU()))
    module.delete_submodule("0")
    module.graph.lint()


@case
def changed_arguments(torch):
    graph = torch.fx.Graph()
    node = graph.call_function(torch.cat, ([graph.placeholder("x")],))
    node.args[0].append(1)


@case
def changed_keywords(torch):
    graph = torch.fx.Graph()
    node = graph.call_function(torch.cat, (), {"tensors": {"a": graph.placeholder("x")}})
    node.kwargs["tensors"]["b"] = 1


@case
def interpreter_without_an_input(torch):
    torch.fx.Interpreter(traced(torch, lambda x: x)).run()


@case
def interpreter_without_an_attribute(torch):
    graph = torch.fx.Graph()
    graph.output(graph.get_attr("weight"))
    torch.fx.Interpreter(torch.nn.Module(), graph=graph).run()


@case
def partitions_in_a_circle(torch):
    module = traced(torch, lambda x: (x + 1).relu() * 2)
    split = __import__(f"{torch.__name__}.fx.passes.split_module", fromlist=["x"]).split_module
    split(module, module, lambda node: int(node.name == "relu"))


def message(library, name):
    with warnings.catch_warnings(), pytest.raises(Exception) as caught:
        warnings.simplefilter("ignore")
        ERRORS[name](library)
    said = words(str(caught.value)).partition("\nUse tlparse")[0]
    return type(caught.value).__name__, said


@pytest.mark.parametrize("name", ERRORS)
def test_the_same_error(torch, name):
    assert message(xtensor, name) == message(torch, name)


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_leaves_modules_as_they_were(name):
    before = xtensor.nn.Module.__call__, xtensor.nn.Module.__getattr__
    message(xtensor, name)
    assert (xtensor.nn.Module.__call__, xtensor.nn.Module.__getattr__) == before
    assert not xtensor.fx._symbolic_trace.is_fx_tracing()


def test_an_error_in_generated_code_shows_its_line(torch, capsys):
    heads = []
    for library in (torch, xtensor):
        module = traced(library, lambda x, y: (x + 1) @ y)
        with pytest.raises(RuntimeError):
            module(library.ones(2, 3), library.ones(2, 3))
        text = capsys.readouterr().err
        heads.append(text.partition("Call using")[2].split("\n")[0])
    assert heads[0] == heads[1] != ""
    shown = text.partition("forward function:\n")[2].split("\n")
    assert shown[:4] == [
        "    add = x + 1;  x = None",
        "    matmul = add @ y;  add = y = None",
        "",
        "~" * len("matmul = add @ y;  add = y = None") + "~~~ <--- HERE",
    ]
