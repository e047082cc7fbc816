"""The bases of data pipes, and the decorator that makes a pipe a method of them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator
from typing import Any, Self

from ....ops.create.random import randint
from ..dataset import Dataset, IterableDataset

__all__ = [
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]


class _Chained:
    """Methods that pipes were registered as."""

    functions: dict[str, Callable[..., Any]]

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make a function of a pipe a method of all pipes of this kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Callable[..., Any], enable_df_api_tracing: bool = False
    ) -> None:
        """Make a class of pipes a method: the pipe it is called on is the class's first argument."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __getattr__(self, name: str) -> Any:
        if name in type(self).functions:
            return functools.partial(type(self).functions[name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return type(self).__name__


class IterDataPipe(_Chained, IterableDataset[Any]):
    """A pipe that is read from its beginning to its end."""

    functions = {}

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")

    def reset(self) -> None:
        """Called by some programs before a new pass; pipes here begin anew by themselves."""


class Shuffling:
    """What pipes that shuffle are told: whether to, and by which seed the next pass."""

    enabled = True
    seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Shuffle from the next pass on, or not."""
        self.enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """The seed of the next pass."""
        self.seed = seed
        return self

    def _source(self) -> random.Random:
        seed = self.seed if self.seed is not None else int(randint(0, 2**62, ()).item())
        self.seed = None
        return random.Random(seed)


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames."""


class MapDataPipe(_Chained, Dataset[Any]):
    """A pipe that is read by index."""

    functions = {}

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]


class DataChunk(list[Any]):
    """A batch as a list of its own class."""

    def __init__(self, items: Any) -> None:
        super().__init__(items)
        self.items = list(items)

    def as_str(self, indent: str = "") -> str:
        """The items on one line."""
        return f"{indent}[{', '.join(str(i) for i in self)}]"

    def raw_iterator(self) -> Iterator[Any]:
        """The items, one after the other."""
        yield from self.items


class functional_datapipe:
    """A class decorator: pipes of the class's kind get it as a method of this name."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name, self.tracing = name, enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        if not (isinstance(cls, type) and issubclass(cls, (IterDataPipe, MapDataPipe))):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        base = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        base.register_datapipe_as_function(self.name, cls, self.tracing)
        return cls


class _Determinism:
    required = False


class guaranteed_datapipes_determinism(ContextDecorator):
    """A block in which pipes that are not deterministic are refused."""

    def __init__(self) -> None:
        self.before = _Determinism.required

    def __enter__(self) -> None:
        self.before, _Determinism.required = _Determinism.required, True

    def __exit__(self, *error: object) -> None:
        _Determinism.required = self.before


class non_deterministic:
    """A decorator of pipes whose order may differ from pass to pass, always or where a predicate says so."""

    def __init__(self, arg: Any) -> None:
        self.cls = arg if isinstance(arg, type) else None
        self.predicate = None if isinstance(arg, type) else arg

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            if _Determinism.required:
                raise TypeError(
                    f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You can "
                    "turn off determinism for this DataPipe if that is acceptable for your application."
                )
            return self.cls(*args, **kwargs)
        (cls,), predicate = args, self.predicate
        assert predicate is not None

        @functools.wraps(cls, updated=())
        def make(*given: Any, **named: Any) -> Any:
            if _Determinism.required and predicate(*given, **named):
                raise TypeError(
                    f"{cls.__name__} is non-deterministic with the inputs, but you set "
                    "'guaranteed_datapipes_determinism'."
                )
            return cls(*given, **named)

        return make


class runtime_validation_disabled(ContextDecorator):
    """A block without checks of what pipes yield: no pipe is checked here anyway."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: annotations of pipes are for type checkers."""
    return f


runtime_validation = argument_validation
