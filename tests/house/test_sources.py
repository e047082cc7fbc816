"""What is a formula says where it is from: optimizers, distributions, special functions, layers, losses, windows."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import xtensor
from tests.house.test_docstrings import modules
from xtensor.distributions import Distribution
from xtensor.explain.catalog import exported
from xtensor.optim import Optimizer
from xtensor.optim.lr_scheduler import LRScheduler

# A year, a section of the Digital Library of Mathematical Functions, or a chapter of a handbook.
SOURCE = re.compile(r"\b(?:19|20)\d\d\b|\bDLMF \d+\.\d+|\bchapter \d+")
# The files of `nn/modules` whose classes are formulas.
LAYERS = "activation attention batchnorm dropout instancenorm loss normalization rnn rnncell sequence_loss transformer".split()

# They are no formulas, or their docstring has all of a formula that is nobody's.
ELEMENTARY = {
    "distributions": "Distribution Independent MixtureSameFamily TransformedDistribution",
    "lr_scheduler": """
        ChainedScheduler ConstantLR ExponentialLR LRScheduler LambdaLR LinearLR MultiStepLR MultiplicativeLR PolynomialLR
        ReduceLROnPlateau SequentialLR StepLR
    """,
    "init": "calculate_gain constant_ eye_ normal_ ones_ trunc_normal_ uniform_ zeros_",
    "optim": "Optimizer",
    "special": "expit round xlog1py xlogy",
    "nn": """
        CosineEmbeddingLoss HingeEmbeddingLoss L1Loss LinearCrossEntropyLoss LogSigmoid MSELoss
        MultiLabelMarginLoss MultiLabelSoftMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss RNNBase RNNCellBase Sigmoid
        SoftMarginLoss Tanhshrink Threshold
    """,
    "windows": "",
}


def source(value: object) -> str:
    """Where a docstring says that its formula is from; nothing where it does not."""
    for paragraph in (inspect.getdoc(value) or "").split("\n\n"):
        if paragraph.startswith("Source: "):
            return " ".join(paragraph.removeprefix("Source: ").split())
    return ""


def classes(module: object, kind: type) -> dict[str, object]:
    return {
        n: v for n, v in vars(module).items() if inspect.isclass(v) and issubclass(v, kind) and n[0] != "_"
    }


def formulas() -> Iterator[tuple[str, str, object]]:
    """Space, name and object of what may be a formula."""
    spaces: dict[str, dict[str, object]] = {
        "distributions": classes(xtensor.distributions, Distribution),
        "lr_scheduler": classes(xtensor.optim.lr_scheduler, LRScheduler),
        "init": {n: v for n, v in exported(xtensor.nn.init).items() if f"{n}_" not in vars(xtensor.nn.init)},
        "optim": classes(xtensor.optim, Optimizer),
        "special": dict(exported(xtensor.special)),
        "nn": {n: v for n, v in modules().items() if v.__module__.rpartition(".")[2] in LAYERS},
        "windows": dict(exported(xtensor.signal.windows)),
    }
    for space, names in spaces.items():
        yield from ((space, name, value) for name, value in names.items())


def test_every_formula_has_its_source():
    found = list(formulas())
    assert len(found) > 200
    lacking = {space: set() for space in ELEMENTARY}
    for space, name, value in found:
        if not SOURCE.search(source(value)):
            lacking[space].add(name)
    assert lacking == {space: set(names.split()) for space, names in ELEMENTARY.items()}


def test_a_function_has_the_source_of_its_module():
    of_modules = {source(value) for space, _, value in formulas() if space == "nn"}
    functions = [f for f in exported(xtensor.nn.functional).values() if source(f)]
    assert len(functions) > 40
    apart = {
        "affine_grid",
        "channel_shuffle",
        "grid_sample",
        "gumbel_softmax",
        "multi_head_attention_forward",
    }
    apart |= {"pixel_shuffle"}
    assert {f.__name__ for f in functions if source(f) not in of_modules} <= apart


def test_a_source_is_told_from_its_absence():
    def told():
        """Sums, as Euler 1748 has them.

        Source: Gauss 1801, Disquisitiones
        Arithmeticae.
        """

    def untold():
        """Sums, as Euler 1748 has them."""

    assert source(told) == "Gauss 1801, Disquisitiones Arithmeticae." and source(untold) == ""
    assert SOURCE.search("DLMF 7.2") and not SOURCE.search("a paper, pages 3 to 17")
