"""Batches on a device before they are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from ... import devices

__all__ = ["Ahead", "placed"]

# One batch is in use, and the next is on its way.
DEPTH = 2


def placed(value: Any, device: devices.device) -> Any:
    """A batch with all its tensors (and what else has a method `to`) on a device."""
    if hasattr(value, "to"):
        return value.to(device)
    if isinstance(value, Mapping):
        made = {key: placed(item, device) for key, item in value.items()}
        try:
            return type(value)(made)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        except TypeError:
            return made
    if isinstance(value, tuple):
        items = [placed(item, device) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [placed(item, device) for item in value]
    return value


class Ahead:
    """The batches of another iterator, each sent to the device while the one before it is in use.

    Transfers do not wait for one another; an error shows when the turn of its batch comes.
    """

    def __init__(self, batches: Any, device: devices.device) -> None:
        self.batches, self.device = batches, device
        self.waiting: deque[Any] = deque()
        self.failure: BaseException | None = None

    def fill(self) -> None:
        while self.failure is None and len(self.waiting) < DEPTH:
            try:
                self.waiting.append(placed(next(self.batches), self.device))
            except (StopIteration, Exception) as error:
                self.failure = error

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.fill()
        if self.waiting:
            batch = self.waiting.popleft()
            self.fill()
            return batch
        assert self.failure is not None
        raise self.failure

    def __len__(self) -> int:
        return len(self.batches)
