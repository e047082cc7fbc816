"""What `torch.__version__` and `torch.version` are: the PyTorch version whose interface this is, as a truthful build."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion", "cuda", "debug", "git_version", "hip", "xpu"]


class TorchVersion(str):
    """A version that compares as versions do, with strings and with tuples: `torch.__version__ >= "2.1"`."""

    __slots__ = ()

    @property
    def release(self) -> tuple[int, ...]:
        """The numbers before anything else, without zeros at the end."""
        return _numbers(self)

    def _against(self, other: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        if isinstance(other, str):
            return _numbers(self), _numbers(other)
        if isinstance(other, (tuple, list)):
            return _numbers(self), _numbers(".".join(map(str, other)))
        release = getattr(other, "release", None)  # packaging.version.Version
        return None if release is None else (_numbers(self), _numbers(".".join(map(str, release))))

    def __lt__(self, other: Any) -> bool:
        pair = self._against(other)
        return NotImplemented if pair is None else pair[0] < pair[1]

    def __le__(self, other: Any) -> bool:
        pair = self._against(other)
        return NotImplemented if pair is None else pair[0] <= pair[1]

    def __gt__(self, other: Any) -> bool:
        pair = self._against(other)
        return NotImplemented if pair is None else pair[0] > pair[1]

    def __ge__(self, other: Any) -> bool:
        pair = self._against(other)
        return NotImplemented if pair is None else pair[0] >= pair[1]

    def __eq__(self, other: object) -> bool:
        if str.__eq__(self, other) is True:
            return True
        pair = self._against(other)
        return NotImplemented if pair is None else pair[0] == pair[1]

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = str.__hash__


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"\s*v?(\d+(?:\.\d+)*)", text)
    numbers = [int(n) for n in found.group(1).split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


__version__ = TorchVersion("2.13.0+xtensor")
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug = False
git_version = "Unknown"
