"""Pruning: masks over parameters, put on by hooks before `forward`, by size, at random or as given.

A pruned parameter `weight` is kept as `weight_orig`, the mask as buffer `weight_mask`.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from ...ops.create.creation import ones_like, zeros_like
from ...ops.create.random import rand, rand_like
from ...ops.reduce.norms import norm
from ...tensor import Tensor
from ..modules.module import Module
from .convert_parameters import parameters_to_vector
from .weight_norm import removed

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """The base of pruning methods, which are hooks: a subclass says what `compute_mask` keeps."""

    PRUNING_TYPE = ""
    _tensor_name: str | None = None

    def __call__(self, module: Module, inputs: Any) -> None:
        assert self._tensor_name is not None
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for `t`, within one that is there already."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter under its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> Any:
        """Prune `module.name`, by scores if given; pruned once more, the methods are combined."""
        earlier = [
            (number, hook)
            for number, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(earlier) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a "
                "PruningContainer."
            )
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        for number, hook in earlier:
            del module._forward_pre_hooks[number]
            container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        assert importance_scores is not None
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            mask = ones_like(original.detach())
        else:
            mask = getattr(module, name + "_mask").detach().clone()
        try:
            made = method.compute_mask(importance_scores.detach(), default_mask=mask)
            module.register_buffer(name + "_mask", made)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """A tensor under the mask that this method gives it."""
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, got "
                f"{importance_scores.shape} vs {t.shape}"
            )
        scores = t if importance_scores is None else importance_scores
        mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned parameter a plain one, its masked values zero."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original: Any = module._parameters[name + "_orig"]
        original.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter: each prunes what the earlier ones left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Append a method on the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                f"PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        method = self._pruning_methods[-1]
        place: Any
        if method.PRUNING_TYPE == "unstructured":
            place = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
                )
            ndim = t.dim()
            dim = method.dim + ndim if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {ndim}")
            kept = default_mask.sum(dim=[d for d in range(ndim) if d != dim]) != 0
            place = tuple(kept if d == dim else slice(None) for d in range(ndim))
        elif method.PRUNING_TYPE == "global":
            place = tuple(slice(None) for _ in range(t.dim()))
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(dtype=t.dtype).clone()
        part = method.compute_mask(t[place], default_mask=default_mask[place])
        mask[place] = part.to(dtype=mask.dtype)
        return mask


# ---- methods --------------------------------------------------------------------------------------------------------


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the parameter a masked one."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().apply(module, name)


def check_amount(amount: Any, tensor_size: int | None = None) -> None:
    """Refuse what is neither a number of elements to prune, at most `tensor_size`, nor a fraction of them."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and float(amount) > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )
    if whole and tensor_size is not None and int(amount) > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def amount_of(amount: Any, tensor_size: int) -> int:
    """How many of `tensor_size` elements an amount is."""
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


class _Amount(BasePruningMethod):
    """Prunes an amount: a number of elements, or a fraction of them."""

    def __init__(self, amount: Any) -> None:
        check_amount(amount)
        self.amount: Any = amount

    def count(self, size: int) -> int:
        """How many of `size` to prune."""
        check_amount(self.amount, size)
        return amount_of(self.amount, size)


class _Unstructured(_Amount):
    """Prunes the elements of least score, one by one."""

    PRUNING_TYPE = "unstructured"

    def scores(self, t: Tensor) -> Tensor:
        """What says which elements go first: those of the smallest."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self.count(t.numel())
        mask = default_mask.clone()
        if count:
            least = self.scores(t).reshape(-1).topk(count, largest=False).indices
            mask.view(-1)[least] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random."""

    def scores(self, t: Tensor) -> Tensor:
        return rand_like(t)

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the smallest elements."""

    def scores(self, t: Tensor) -> Tensor:
        return t.abs()

    @classmethod
    def apply(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls, module: Module, name: str, amount: Any, importance_scores: Tensor | None = None
    ) -> Any:
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_Amount):
    """Prunes whole channels of one dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def kept(self, t: Tensor, count: int) -> Tensor:
        """The channels to keep, as an index."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() <= 1:
            raise ValueError(
                f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} "
                f"with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = self.count(t.shape[self.dim])
        if count == 0:
            return default_mask
        mask = zeros_like(t)
        place: list[Any] = [slice(None)] * t.dim()
        place[self.dim] = self.kept(t, count)
        mask[tuple(place)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Prunes channels at random."""

    def kept(self, t: Tensor, count: int) -> Tensor:
        chance = rand(t.shape[self.dim], device=t.device)
        return chance > chance.kthvalue(count).values

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, dim: int = -1) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the channels of the smallest norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def kept(self, t: Tensor, count: int) -> Tensor:
        own = self.dim % t.dim()
        sizes = norm(t, p=self.n, dim=[d for d in range(t.dim()) if d != own])
        return sizes.topk(t.shape[own] - count, largest=True).indices

    @classmethod
    def apply(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls,
        module: Module,
        name: str,
        amount: Any,
        n: Any,
        dim: int,
        importance_scores: Tensor | None = None,
    ) -> Any:
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes where a mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().apply(module, name, mask=mask)


# ---- as functions ---------------------------------------------------------------------------------------------------


def identity(module: Module, name: str) -> Module:
    """Make a parameter a masked one, nothing pruned."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune a number, or a fraction, of a parameter's elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: Any, importance_scores: Tensor | None = None
) -> Module:
    """Prune a number, or a fraction, of a parameter's elements, the smallest first."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune a number, or a fraction, of a parameter's channels at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune a number, or a fraction, of a parameter's channels, those of the smallest n-norm first."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Any,
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one; the method must be an unstructured one."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    places = list(parameters)
    tensors = [getattr(module, name) for module, name in places]
    chosen = [scores.get(p, own) for p, own in zip(places, tensors, strict=True)]
    vector = parameters_to_vector([values.detach() for values in chosen if values is not None])
    before = parameters_to_vector(
        [
            getattr(module, name + "_mask", ones_like(own.detach()))
            for (module, name), own in zip(places, tensors, strict=True)
        ]
    )
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    mask = container.compute_mask(vector, before)
    start = 0
    for (module, name), own in zip(places, tensors, strict=True):
        custom_from_mask(module, name, mask=mask[start : start + own.numel()].view_as(own))
        start += own.numel()


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter a plain one, its masked values zero."""
    if not removed(module, lambda hook: isinstance(hook, BasePruningMethod) and hook._tensor_name == name):
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    return module


def is_pruned(module: Module) -> bool:
    """Whether anything in a module is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for inner in module.modules()
        for hook in inner._forward_pre_hooks.values()
    )
