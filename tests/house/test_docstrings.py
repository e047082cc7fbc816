"""The examples in docstrings run and print what they say, and what users meet first has one, with its shapes."""

from __future__ import annotations

import ast
import doctest
import functools
import inspect
import pathlib
import re
from collections.abc import Iterator

import pytest

import xtensor
import xtensor.nn.functional as F
from xtensor import nn
from xtensor.explain.catalog import exported, namespaces
from xtensor.operators.operator import REGISTRY

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "xtensor"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

DEPRECATED = "deprecated: making one warns"
# The modules whose docstring has no example, and why.
WITHOUT_EXAMPLE = {"Container": DEPRECATED, "NLLLoss2d": DEPRECATED}

# The operators that programs use most, as they are found in `xtensor` (or only on Tensor) and in `nn.functional`.
COMMON = """
    abs add addmm all amax any arange argmax argmin argsort bincount bmm broadcast_to cat chunk clamp cos cumprod cumsum
    diag div dot einsum empty eq exp expand eye flatten flip floor floor_divide from_numpy full full_like gather
    index_add index_select isnan lerp linspace log log_softmax logsumexp lt masked_fill masked_select matmul max maximum
    mean meshgrid min minimum mm movedim mul narrow neg nonzero norm ones ones_like outer permute pow prod rand randint
    randn relu remainder repeat reshape roll round rsqrt scatter scatter_add select sigmoid sign sin softmax sort split
    sqrt squeeze stack std sub sum t take_along_dim tanh tensor topk transpose tril triu unbind unique unsqueeze var view
    where zeros zeros_like
""".split()
FUNCTIONAL = """
    adaptive_avg_pool2d avg_pool2d batch_norm binary_cross_entropy binary_cross_entropy_with_logits conv1d conv2d
    conv_transpose2d cosine_similarity cross_entropy dropout embedding gelu group_norm interpolate kl_div l1_loss
    layer_norm leaky_relu linear log_softmax max_pool2d mse_loss nll_loss normalize one_hot pad relu
    scaled_dot_product_attention silu smooth_l1_loss softmax
""".split()


def namespace() -> dict[str, object]:
    """What an example may name without importing it."""
    return {"xtensor": xtensor, "nn": nn, "F": F}


def written() -> Iterator[tuple[str, str, int, str]]:
    """File, name, line and text of the package's docstrings that have an example."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        if ">>> " not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                doc = ast.get_docstring(node)
                if doc is not None and ">>> " in doc:
                    name = getattr(node, "name", path.stem)
                    yield path.relative_to(ROOT).as_posix(), name, node.body[0].lineno, doc


def shown_in(doc: str) -> str:
    """The examples of a docstring, to which a declaration may have added errors."""
    return doc[doc.index(">>> ") :].strip()


def composed() -> Iterator[tuple[str, str, int, str]]:
    """The same of functions whose docstring is put together when they are made."""
    literal = {shown_in(doc) for _, _, _, doc in written()}
    spaces = {f"xtensor.{space}".rstrip("."): exported(module) for space, module in namespaces().items()}
    spaces |= {"xtensor": exported(xtensor), "xtensor.Tensor": vars(xtensor.Tensor)}
    for space, held in spaces.items():
        for name, function in held.items():
            doc = inspect.getdoc(function) or ""
            if ">>> " in doc and shown_in(doc) not in literal:
                literal.add(shown_in(doc))
                yield space, name, 0, doc


@functools.cache
def examples() -> tuple[doctest.DocTest, ...]:
    parse = doctest.DocTestParser().get_doctest
    return tuple(
        parse(doc, namespace(), f"{file}:{name}", file, line)
        for file, name, line, doc in (*written(), *composed())
    )


def failures(found: tuple[doctest.DocTest, ...]) -> str:
    """What the examples print that they should not: nothing where all are right."""
    told: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    for example in found:
        runner.run(example, out=told.append)
    return "".join(told)


def part_of(example: doctest.DocTest) -> str:
    """Modules are long to run, so are operators: each part is a test."""
    parts = str(example.filename).split("/")
    return parts[1] if parts[1:2] in (["nn"], ["ops"]) else "others"


@pytest.mark.parametrize("part", ["nn", "ops", "others"])
def test_examples_print_what_they_say(part):
    found = tuple(example for example in examples() if part_of(example) == part)
    assert found
    if told := failures(found):
        pytest.fail(told, pytrace=False)


def test_a_wrong_example_is_found():
    parse = doctest.DocTestParser().get_doctest
    right, wrong = ">>> xtensor.ones(2)\ntensor([1., 1.])\n", ">>> xtensor.ones(2)\ntensor([1., 2.])\n"
    assert failures((parse(right, namespace(), "right", None, 0),)) == ""
    assert "tensor([1., 2.])" in failures((parse(wrong, namespace(), "wrong", None, 0),))


def has_example(doc: str) -> bool:
    return bool(doctest.DocTestParser().get_examples(doc))


def has_shapes(doc: str) -> bool:
    return any(line.startswith("Shape: ") for line in doc.splitlines())


def modules() -> dict[str, type[nn.Module]]:
    return {n: v for n, v in vars(nn).items() if inspect.isclass(v) and issubclass(v, nn.Module)}


def test_every_module_has_shapes_and_an_example():
    docs = {name: inspect.cleandoc(value.__doc__ or "") for name, value in modules().items()}
    assert len(docs) > 150
    assert {n for n, doc in docs.items() if not has_example(doc)} == set(WITHOUT_EXAMPLE)
    assert [n for n, doc in docs.items() if not has_shapes(doc)] == []


def test_the_commonest_operators_have_shapes_and_an_example():
    found = {name: getattr(xtensor, name, None) or getattr(xtensor.Tensor, name) for name in COMMON}
    found |= {f"nn.functional.{name}": getattr(F, name) for name in FUNCTIONAL}
    docs = {name: inspect.getdoc(function) or "" for name, function in found.items()}
    assert len(docs) == len(COMMON) + len(FUNCTIONAL) >= 50
    assert [n for n, doc in docs.items() if not has_example(doc)] == []
    assert [n for n, doc in docs.items() if not has_shapes(doc)] == []


def test_operators_of_elements_and_their_in_place_forms_have_shapes():
    kinds = {
        op.name: op for op in REGISTRY.values() if op.kind == "pointwise" and op.name in vars(xtensor.Tensor)
    }
    assert len(kinds) > 80
    lacking = [name for name in kinds if not has_shapes(inspect.getdoc(vars(xtensor.Tensor)[name]) or "")]
    assert lacking == []
    written = {
        f"{name}_": op.inplace for name, op in kinds.items() if getattr(op, "inplace", None) is not None
    }
    assert len(written) > 50
    assert [
        name for name, function in written.items() if not has_shapes(inspect.getdoc(function) or "")
    ] == []


def public_names() -> dict[str, object]:
    """Every name that the reference has, methods and properties of Tensor included."""
    found: dict[str, object] = {f"Tensor.{n}": v for n, v in vars(xtensor.Tensor).items() if n[0] != "_"}
    for space, module in {"": xtensor, **namespaces()}.items():
        found |= {f"{space}.{name}".lstrip("."): function for name, function in exported(module).items()}
    found |= {f"nn.{name}": module for name, module in modules().items()}
    return {n: v for n, v in found.items() if callable(v) or isinstance(v, property)}


def test_every_public_name_has_a_docstring():
    docs = {name: inspect.getdoc(value) or "" for name, value in public_names().items()}
    assert len(docs) > 1000
    assert [name for name, doc in docs.items() if not doc] == []


# Queries typed Any, for what they give depends on their argument: numbers, sizes, names of kinds.
QUERIES = {"Tensor.grad_dtype", "Tensor.layout", "Tensor.size", "Tensor.stride"}


def gives_no_tensor(value: object) -> bool:
    """Whether a function's or a property's annotation says that what it gives is no tensor: a number, a name, nothing."""
    function: object = value.fget if isinstance(value, property) else value
    if not callable(function) or inspect.isclass(function):
        return False
    given = str(inspect.signature(function).return_annotation)
    return not re.search(r"\b(Any|Tensor|Array|_empty)\b", given)


def test_every_public_name_has_shapes_or_none_to_say():
    names = public_names()
    lacking = {name for name, value in names.items() if not has_shapes(inspect.getdoc(value) or "")}
    unsaid = {name for name in lacking if not gives_no_tensor(names[name])}
    assert unsaid == QUERIES


def test_what_gives_a_tensor_is_known():
    assert gives_no_tensor(xtensor.Tensor.dim) and gives_no_tensor(xtensor.Tensor.shape)
    assert not any(map(gives_no_tensor, (xtensor.add, xtensor.Tensor.T, xtensor.Tensor.size, nn.Linear)))
    assert has_shapes("Sums.\n\nShape: result `()`.") and not has_shapes("Sums of any Shape: see there.")


def test_three_hundred_names_have_an_example():
    """Counted once each, whatever the names under which it is found."""
    assert len({example.docstring for example in examples()}) >= 300


def commonest() -> list[str]:
    """The names that public programs use most, one a line, as they are found in `xtensor`."""
    return (pathlib.Path(__file__).parent / "commonest.txt").read_text("utf-8").split()


def test_the_commonest_names_have_an_example():
    names = commonest()
    assert len(set(names)) == len(names) >= 300
    lacking = []
    for name in names:
        found: object = functools.reduce(getattr, name.split("."), xtensor)
        doc = inspect.getdoc(found.fget if isinstance(found, property) else found) or ""
        lacking += [] if has_example(doc) else [name]
    assert lacking == []


def test_an_operators_example_is_told_wherever_users_ask():
    for name in ("add", "sum", "permute", "matmul", "max"):
        assert ">>> " in xtensor.ops.explain(name).doc, name
        assert ">>> " in (inspect.getdoc(getattr(xtensor.Tensor, name)) or ""), name


def test_the_first_line_says_it_all_the_same():
    """Stubs and tables of names show a docstring's first line only: no shapes and no example begin there."""
    for example in examples():
        first, _, rest = (example.docstring or "").partition("\n")
        assert first, example.name
        assert not first.startswith((">>>", "Shape:", "Raises:", "Source:")), example.name
        assert rest, example.name


def test_the_reference_shows_examples_as_code():
    page = (ROOT / "docs" / "reference" / "arithmetic.md").read_text("utf-8")
    assert "```python\n>>> xtensor.tensor([5, 7]) - xtensor.tensor([1, 2])\ntensor([4, 5])\n```\n" in page
    for path in sorted((ROOT / "docs" / "reference").glob("*.md")):
        lines = path.read_text("utf-8").splitlines()
        fenced = False
        for before, line in zip(["", *lines], lines, strict=False):
            if line.strip().startswith("```"):
                fenced = not fenced
            assert not line.startswith(">>> ") or fenced, f"{path.name}: {line} after {before}"


def test_the_reference_cuts_no_rule():
    """A derivative's rule is shown by its name or as a whole: never by the first line of a longer text."""
    for path in sorted((ROOT / "docs" / "reference").glob("*.md")):
        cut = [line for line in path.read_text("utf-8").splitlines() if re.match(r"- `.*: `(def |@)", line)]
        assert cut == [], path.name
    page = (ROOT / "docs" / "reference" / "convolution.md").read_text("utf-8")
    assert "- `bias`, saves nothing:\n\n  ```python\n  def rule(grad: Any) -> Any:\n      axes = " in page
