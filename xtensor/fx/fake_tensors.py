"""Tensors with sizes, strides, a dtype and a device, and without values: `torch._subclasses.fake_tensor`.

Within the mode every operator runs on meta tensors, and what it gives says it lies on the device of its operands. So programs find
out what shapes a model makes, for a device that need not be there, without memory for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import devices, dtypes, trees
from ..compat.overrides import DisableTorchFunctionSubclass, TorchFunctionMode
from ..engine import modes
from ..nn.parameter import Parameter
from ..operators.below.aten import packet
from ..operators.below.dispatching import Asked, flat, undispatched
from ..ops.tensor.tensor_methods import make_wrapper_subclass
from ..tensor import Tensor, sizes_of, strides_of
from ..utils._python_dispatch import TorchDispatchMode
from ..utils.weak import WeakIdKeyDictionary

__all__ = ["FAKES", "FakeTensor", "FakeTensorMode"]

META = devices.device("meta")
CONSTANT = 1
"""Elements of a tensor made from Python's values up to which these are kept, so that they can be read."""


class OfOperator(RuntimeError):
    """An error that names the operator which was called (`func`)."""

    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class DataDependentOutputException(OfOperator):
    """What a program asks for depends on values: a number of a tensor."""


class DynamicOutputShapeException(OfOperator):
    """The sizes of a result depend on values."""


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that cannot be a fake one."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class UnsupportedOperatorException(OfOperator):
    """An operator whose results' sizes are not known."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """Operands that say they lie on several devices."""


class FakeTensor(Tensor):
    """A tensor without values that says it lies on a device.

    fake_mode: the mode that made it. fake_device: where it says it lies. elem: a meta tensor of its form. constant: its value, where it
    is a number that the program wrote down.
    """

    fake_mode: FakeTensorMode
    fake_device: devices.device
    elem: Tensor
    constant: Tensor | None

    @staticmethod
    def __new__(
        cls,
        fake_mode: FakeTensorMode,
        elem: Tensor,
        device: Any,
        constant: Tensor | None = None,
        **options: Any,
    ) -> Any:
        device = devices.device(device)
        if device.type not in ("cpu", "meta") and device.index is None:
            device = devices.device(device.type, 0)
        made: Any = make_wrapper_subclass(
            cls,
            sizes_of(elem),
            strides_of(elem),
            elem.storage_offset(),
            dtype=elem.dtype,
            device=device,
            requires_grad=elem.requires_grad,
        )
        made.fake_mode, made.elem, made.constant = fake_mode, elem.detach(), constant
        made.fake_device = made.device
        if constant is not None:
            fake_mode.constants[made] = True
        return made

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """A fake tensor of the form of this one."""
        return fake_mode.from_tensor(t)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Outside of its mode a fake tensor brings it along.
        found = [leaf for leaf in trees.tree_leaves((args, kwargs or {})) if isinstance(leaf, FakeTensor)]
        if len({id(fake.fake_mode) for fake in found}) > 1:
            raise AssertionError("Mixing fake modes NYI")
        with found[0].fake_mode:
            return func(*args, **(kwargs or {}))

    def __getitem__(self, key: Any) -> Any:
        if any(isinstance(k, Tensor) and k.dtype in (dtypes.bool, dtypes.uint8) for k in flat((key,))):
            raise DynamicOutputShapeException(packet("nonzero").overload("default"))
        return super().__getitem__(key)

    def tolist(self) -> Any:
        if self.dim() == 0:
            return self.item()
        return [row.tolist() for row in self.unbind(0)]

    def __repr__(self, **options: Any) -> str:
        text = super().__repr__(**options)
        return f"Parameter({text})" if isinstance(self, Parameter) else text


class FakeTensorMode(TorchDispatchMode):
    """A block in which operators make fake tensors.

    allow_non_fake_inputs: whether plain tensors are taken for fake ones of their form, instead of refused. The other options are PyTorch's.

    Differs from PyTorch: sizes are always numbers, whatever `shape_env` says; views say no more of what they are views.

    >>> from xtensor.fx.fake_tensors import FakeTensorMode
    >>> with FakeTensorMode():
    ...     xtensor.nn.Linear(1_000_000, 1_000_000)(xtensor.empty(2, 1_000_000)).shape
    xtensor.Size([2, 1000000])
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        self.export = export
        self.made = WeakIdKeyDictionary()
        self.constants = WeakIdKeyDictionary()

    def from_tensor(self, tensor: Tensor, **options: Any) -> FakeTensor:
        """The fake tensor of this one's form; the same one for the same tensor, and its gradient's with it.

        Raises: UnsupportedFakeTensorException for layouts that are not strided.
        """
        if isinstance(tensor, FakeTensor):
            assert tensor.fake_mode is self, "mixed fake modes"
            return tensor
        found = self.made.get(tensor)
        if found is not None:
            return found
        if tensor.layout is not dtypes.strided:
            raise UnsupportedFakeTensorException(f"{tensor.layout} tensors have no fake ones")
        with modes.no_grad(), undispatched():
            elem = Tensor.new_empty_strided(
                tensor.detach().as_subclass(Tensor), sizes_of(tensor), strides_of(tensor), device=META
            )
            elem.requires_grad_(tensor.requires_grad)
            found = FakeTensor(self, elem, tensor.device)
        if isinstance(tensor, Parameter):
            found.__dict__["_is_param"] = True
        self.made[tensor] = found
        if tensor.is_leaf and tensor.grad is not None:
            found.grad = self.from_tensor(tensor.grad)
        return found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = func._opname
        if name == "detach" and not isinstance(args[0], FakeTensor):
            return func(*args, **kwargs)
        if name == "_local_scalar_dense":
            known = args[0].constant if isinstance(args[0], FakeTensor) else args[0]
            if known is None:
                raise DataDependentOutputException(func)
            return func(known)
        if name in DYNAMIC:
            raise DynamicOutputShapeException(func)
        fakes: list[FakeTensor] = []
        plain = False

        def lowered(leaf: Any) -> Any:
            nonlocal plain
            if isinstance(leaf, FakeTensor):
                fakes.append(leaf)
                return leaf.elem
            if not isinstance(leaf, Tensor):
                return leaf
            plain = True
            if leaf.device.type == "meta":
                return leaf
            if not (self.allow_non_fake_inputs or leaf.dim() == 0):
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                    f"Found in {func}({', '.join(map(shown, args))})"
                )
            return lowered(self.from_tensor(leaf))

        inner, options = trees.tree_map(lowered, (tuple(args), kwargs))
        place = self.place_of(func, fakes, kwargs)
        if options.get("device") is not None or not (fakes or plain):
            options["device"] = META
        constant = None
        if name in MADE:
            value = func(*args, **{k: v for k, v in kwargs.items() if k != "device"})
            constant = value if value.numel() <= CONSTANT else None
            found: Any = value.to(META)
        else:
            try:
                found = func(*inner, **options)
            except NotImplementedError as error:
                raise UnsupportedOperatorException(func) from error
            constant = self.constant_of(func, fakes, args, kwargs)
        own = {id(fake.elem): fake for fake in fakes}

        def above(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or isinstance(leaf, FakeTensor):
                return leaf
            same = own.get(id(leaf))
            return FakeTensor(self, leaf, place, constant) if same is None else same

        return trees.tree_map(above, found)

    def constant_of(
        self, func: Any, fakes: list[FakeTensor], args: Any, kwargs: dict[str, Any]
    ) -> Tensor | None:
        """The value of a call on numbers that were written down. A write makes what it writes to, and all that share its memory, unknown."""
        written = func._opname.endswith("_") and not func._opname.endswith("__")
        if written and fakes:
            memory = fakes[0].elem._xt_storage
            for fake in list(self.constants):
                if fake.elem._xt_storage is memory:
                    fake.constant = None
        if written or not fakes or any(fake.constant is None for fake in fakes) or func._opname in DRAWN:
            return None
        inner, options = trees.tree_map(
            lambda leaf: leaf.constant if isinstance(leaf, FakeTensor) else leaf, (tuple(args), kwargs)
        )
        options.pop("device", None)
        found = func(*inner, **options)
        return found if isinstance(found, Tensor) and found.numel() <= CONSTANT else None

    def place_of(self, func: Any, fakes: list[FakeTensor], kwargs: dict[str, Any]) -> Any:
        """The device of what a call gives: the one that it names, or its operands', among which numbers of the CPU go along with any."""
        if kwargs.get("device") is not None:
            return kwargs["device"]
        if not fakes:
            return devices.current()
        if func._opname in BY_FIRST:
            return fakes[0].fake_device
        places = {fake.fake_device for fake in fakes if fake.dim() or fake.fake_device.type != "cpu"}
        if len(places) > 1:
            raise FakeTensorDeviceMismatchError(
                f"Unhandled FakeTensor Device Propagation for {func}, found two different devices {', '.join(map(str, places))}"
            )
        return places.pop() if places else fakes[0].fake_device


def shown(value: Any) -> str:
    """An argument in a message: a tensor by its form."""
    return f"tensor(..., size={tuple(value.shape)})" if isinstance(value, Tensor) else repr(value)


DYNAMIC = frozenset("nonzero masked_select unique unique_dim _unique2 unique_consecutive".split())
"""Operators whose results' sizes are found out from values."""
DRAWN = frozenset(
    "bernoulli dropout native_dropout rand_like randn_like randint_like multinomial normal poisson".split()
)
"""Operators whose values are drawn."""
MADE = frozenset("tensor as_tensor asarray scalar_tensor lift_fresh from_numpy".split())
"""What makes a tensor of values."""
BY_FIRST = frozenset(
    "copy_ index index_put index_put_ resize_as_ set_ _index_put_impl_ to _to_copy embedding".split()
)
"""Operators whose result lies where their first tensor does."""


def is_fake(x: Any) -> bool:
    """Whether this is a fake tensor."""
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t: Any) -> FakeTensorMode | None:
    """The mode of a fake tensor; None of another."""
    return t.fake_mode if isinstance(t, FakeTensor) else None


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The mode that is on, or that of the fake tensors among these; None without one."""
    for mode in reversed(modes.state.dispatch_modes):
        if isinstance(mode, FakeTensorMode):
            return mode
    found = [leaf.fake_mode for leaf in trees.tree_leaves(inputs) if isinstance(leaf, FakeTensor)]
    return found[0] if found else None


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """A block without the mode that is on."""
    with Asked(tuple([m for m in modes.state.dispatch_modes if not isinstance(m, FakeTensorMode)])) as before:
        found = [m for m in before if isinstance(m, FakeTensorMode)]
        yield found[-1] if found else None


class FakeCopyMode(TorchFunctionMode):
    """A block in which `copy.deepcopy` and `clone` make fake tensors: `copy.deepcopy(module)` is the module without its memory."""

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        super().__init__()
        self.fake_mode = fake_mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "clone":
            return func(self.fake_mode.from_tensor(args[0]), **(kwargs or {}))
        if name == "__deepcopy__":
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
            return memo[id(tensor)]
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


FAKES: dict[str, Callable[..., Any] | type] = {
    f"_subclasses.fake_tensor.{value.__name__}": value
    for value in (
        DataDependentOutputException,
        DynamicOutputShapeException,
        FakeCopyMode,
        FakeTensor,
        FakeTensorDeviceMismatchError,
        FakeTensorMode,
        UnsupportedFakeTensorException,
        UnsupportedOperatorException,
        is_fake,
        maybe_get_fake_mode,
        unset_fake_temporarily,
    )
} | {"_guards.detect_fake_mode": detect_fake_mode}
