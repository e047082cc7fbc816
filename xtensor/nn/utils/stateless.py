"""A module called with other parameters and buffers than its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ... import checks
from ...tensor import Tensor
from ..modules.module import Module

__all__ = ["functional_call"]

Spot = tuple[Any, str]
"""Where a tensor is held: a mapping, and its name there."""

ABSENT: Any = object()


class Attributes:
    """A module's plain attributes as a mapping."""

    __slots__ = ("module",)

    def __init__(self, module: Module) -> None:
        self.module = module

    def get(self, name: str, default: Any) -> Any:
        """The attribute; TypeError where it is neither a tensor nor None."""
        found = getattr(self.module, name, default)
        if found is not default and not (found is None or isinstance(found, Tensor)):
            raise TypeError(f"attribute `{name}`: {found} is not an instance of torch.Tensor")
        return found

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.module, name, value)

    def pop(self, name: str) -> None:
        """Remove the attribute."""
        delattr(self.module, name)


def spots_of(
    module: Module, prefix: str = "", found: dict[str, Spot] | None = None, around: tuple[Module, ...] = ()
) -> dict[str, Spot]:
    """Where a module and those within it hold parameters and buffers, by their names: all but those that lead in circles."""
    if found is None:
        found = {}
    parameters, buffers = module._parameters, module._buffers
    for name in parameters:
        found[prefix + name] = (parameters, name)
    for name in buffers:
        found[prefix + name] = (buffers, name)
    for name, child in module._modules.items():
        if child is not None and child is not module and child not in around:
            spots_of(child, f"{prefix}{name}.", found, (*around, module))
    return found


def spot_of(module: Module, path: str, tensor: Any, spots: dict[str, Spot]) -> Spot:
    """Where a tensor of this name is held, or is to be."""
    if not (tensor is None or isinstance(tensor, Tensor)):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    found = spots.get(path)
    if found is not None:
        return found
    owner, _, name = path.rpartition(".")
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    holder = module.get_submodule(owner)
    for members in (holder._parameters, holder._buffers):
        if name in members:
            return members, name
    return Attributes(holder), name


def untied(given: dict[str, Any], spots: dict[str, Spot]) -> dict[str, Any]:
    """What is given, and the same for all names of the same tensor."""
    names: dict[int, list[str]] = {}
    for path, (holder, name) in spots.items():
        tensor = holder[name]
        if tensor is not None:
            names.setdefault(id(tensor), []).append(path)
    if sum(map(len, names.values())) == len(names):
        return given
    found = dict(given)
    for group in names.values():
        own = [path for path in group if path in given]
        if len({id(given[path]) for path in own}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(own)}, which are tied. Consider using "
                "tie_weights=False"
            )
        if own:
            found.update(dict.fromkeys(group, given[own[0]]))
    return found


def check_names(module: Module, given: Iterable[str], spots: dict[str, Spot]) -> None:
    """RuntimeError unless exactly the module's parameters and buffers are given."""
    own = {path for path, (holder, name) in spots.items() if holder[name] is not None}
    errors = []
    for what, keys in (("Unexpected", set(given) - own), ("Missing", own - set(given))):
        if keys:
            errors.append(f"{what} key(s): {', '.join(map(repr, sorted(keys)))}.")
    if errors:
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(errors))


def exchanged(places: list[Spot], values: list[Any]) -> list[Any]:
    """Put values into places; what was there, `ABSENT` where nothing was."""
    before = []
    for (holder, name), value in zip(places, values):
        before.append(holder.get(name, ABSENT))
        if value is ABSENT:
            holder.pop(name)
        else:
            holder[name] = value
    return before


class Exchange:
    """What is put in the place of a module's parameters and buffers, and taken away again."""

    __slots__ = ("before", "dictionary", "places", "values")

    def __init__(
        self, module: Module, dictionary: dict[str, Any], tie_weights: bool = False, strict: bool = False
    ) -> None:
        spots = spots_of(module)
        given = untied(dictionary, spots) if tie_weights else dictionary
        if strict:
            check_names(module, given, spots)
        self.places = [spot_of(module, path, tensor, spots) for path, tensor in given.items()]
        self.before = [holder.get(name, ABSENT) for holder, name in self.places]
        self.values = given
        self.dictionary = dictionary

    def begin(self) -> None:
        """Put them there."""
        exchanged(self.places, list(self.values.values()))

    def end(self) -> None:
        """Put back what was there; what the module has written in the meantime is seen in the dictionary."""
        new = dict(zip(self.values, exchanged(self.places, self.before)))
        self.dictionary.update({path: new[path] for path in self.dictionary if new[path] is not ABSENT})


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[None]:
    """Within this block the module has these parameters and buffers; what it writes to them is seen in the dictionary."""
    exchange = Exchange(module, parameters_and_buffers, tie_weights, strict)
    try:
        exchange.begin()
        yield
    finally:
        exchange.end()


def call_with(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with these parameters and buffers in the places of its own of those names."""
    values = () if args is None else args if isinstance(args, tuple) else (args,)
    exchange = Exchange(module, parameters_and_buffers, tie_weights, strict)
    try:
        exchange.begin()
        return module(*values, **(kwargs or {}))
    finally:
        exchange.end()


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The deprecated name of `xtensor.func.functional_call`."""
    checks.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return call_with(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
