"""`torch.utils.flop_counter`: how many floating-point operations the products of a block take, forward and backward."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from ..nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from ..operators.below.aten import packet
from ..operators.below.dispatching import flat
from ..tensor import Tensor
from ._python_dispatch import TorchDispatchMode

__all__ = ["FlopCounterMode", "register_flop_formula"]

Formula = Callable[[Sequence[Any], Any], int]
FORMULAS: dict[str, Formula] = {}


def shapes(args: Sequence[Any]) -> list[tuple[int, ...]]:
    return [tuple(a.shape) for a in flat(args) if isinstance(a, Tensor)]


def products(args: Sequence[Any], out: Any) -> int:
    """Two for each pair of elements that a matrix product multiplies, and of its gradients."""
    first, second, *_ = shapes(args)
    result = tuple(out.shape)
    if len(first) < 2 or len(second) < 2:
        return 2 * max(math.prod(first), math.prod(second), math.prod(result))
    # Rows, columns and what is summed over are each in two of the three shapes; a batch is in all three.
    batch = math.prod(result[:-2]) if len(first) == len(second) == len(result) > 2 else 1
    return 2 * math.isqrt(math.prod(first) * math.prod(second) * math.prod(result) // batch)


def added_products(args: Sequence[Any], out: Any) -> int:
    """A product that is added to something."""
    return products(args[1:], out)


def convolution(args: Sequence[Any], out: Any) -> int:
    """Two for each weight and each place of the result; of a transposed convolution, of the input."""
    return 2 * math.prod(out.shape) * math.prod(args[1].shape[1:])


def transposed_convolution(args: Sequence[Any], out: Any) -> int:
    """Two for each weight and each place of the input."""
    return 2 * math.prod(args[0].shape) * math.prod(args[1].shape[1:])


def attention(args: Sequence[Any], out: Any) -> int:
    """The two products of attention."""
    (*batch, length, width), (*_, others, _), (*_, values) = shapes(args)[:3]
    return 2 * math.prod(batch) * length * others * (width + values)


for _name in "mm bmm matmul linear einsum mv dot tensordot".split():
    FORMULAS[_name] = products
for _name in "addmm baddbmm addmv addbmm".split():
    FORMULAS[_name] = added_products
for _name in ("conv1d", "conv2d", "conv3d"):
    FORMULAS[_name] = convolution
for _name in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
    FORMULAS[_name] = transposed_convolution
FORMULAS["scaled_dot_product_attention"] = FORMULAS["attention_weights"] = attention


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A decorator: `formula(*shapes_of_arguments, out_shape=...)` counts the operations of these operators."""

    def register(formula: Any) -> Any:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            FORMULAS[target.__name__] = formula if get_raw else by_shape(formula)
        return formula

    return register


def by_shape(formula: Callable[..., int]) -> Formula:
    """A formula of shapes as one of tensors."""

    def count(args: Sequence[Any], out: Any) -> int:
        given = [tuple(a.shape) if isinstance(a, Tensor) else a for a in args]
        made = [tuple(o.shape) for o in flat((out,)) if isinstance(o, Tensor)]
        return formula(*given, out_shape=made[0] if len(made) == 1 else made)

    return count


class FlopCounterMode(TorchDispatchMode):
    """A block that counts the floating-point operations of products, convolutions and attention, by module and operator.

    Gradients count as `<name>_backward`. Differs from PyTorch: what the backward pass computes counts for the whole, not for the
    modules, and the table has no colours or units.

    >>> from xtensor.utils.flop_counter import FlopCounterMode
    >>> layer = xtensor.nn.Linear(4, 8)
    >>> with FlopCounterMode(display=False) as counter:
    ...     out = layer(xtensor.ones(3, 4))
    >>> counter.get_total_flops()
    192
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None
    ) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.formulas = dict(FORMULAS)
        for target, formula in (custom_mapping or {}).items():
            self.formulas[target.__name__] = (
                formula if getattr(formula, "_get_raw", False) else by_shape(formula)
            )
        self.parents: list[str] = ["Global"]
        self.names: dict[Module, str] = {}
        self.handles: list[Any] = []

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.handles = [
            register_module_forward_pre_hook(self._entered),
            register_module_forward_hook(self._left, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for handle in self.handles:
            handle.remove()
        if self.display:
            print(self.get_table(self.depth))

    def _entered(self, module: Module, inputs: Any) -> None:
        if module not in self.names:
            root = type(module).__name__
            self.names.update({m: f"{root}.{n}" if n else root for n, m in module.named_modules()})
        self.parents.append(self.names[module])

    def _left(self, module: Module, inputs: Any, output: Any) -> None:
        self.parents.pop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func._opname
        formula = self.formulas.get(name)
        if formula is None and func.of is not None and func.of[0].name in self.formulas:
            formula = gradient_formula(func.of, self.formulas[func.of[0].name])
        if formula is not None:
            count = formula(args, out)
            for parent in dict.fromkeys(self.parents):
                self.flop_counts[parent][packet(name)] += count
        return out

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Operations by module and operator."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, modules down to a depth."""
        depth = self.depth if depth is None else depth
        total = max(1, self.get_total_flops())
        lines = [f"{'Module':<32} {'FLOP':>16} {'% Total':>8}"]
        for module, counts in self.flop_counts.items():
            if module != "Global" and module.count(".") >= depth:
                continue
            for label, count in [
                (module, sum(counts.values())),
                *((f" - {p}", n) for p, n in counts.items()),
            ]:
                lines.append(f"{label:<32} {count:>16,} {count / total:>8.2%}")
        return "\n".join(lines)


def gradient_formula(of: tuple[Any, str], forward: Formula) -> Formula | None:
    """The formula of an operator that gives the gradient for an argument: of a product, a product."""
    argument = of[1]
    if forward is products or forward is added_products:
        factors = {
            "input",
            "weight",
            "other",
            "mat2",
            "batch1",
            "batch2",
            "mat1",
            "vec",
            "vec2",
            "operands",
            "a",
            "b",
        }
        wanted = factors - {"input"} if forward is added_products else factors
        return products if argument in wanted else None
    if forward is convolution or forward is transposed_convolution:
        if argument not in ("input", "weight"):
            return None

        def count(args: Sequence[Any], out: Any) -> int:
            # The gradient comes first among the arguments, then what was saved: the other factor.
            weight = out if argument == "weight" else args[1]
            places = args[0] if forward is convolution else (args[1] if argument == "weight" else out)
            return 2 * math.prod(places.shape) * math.prod(weight.shape[1:])

        return count
    return None
