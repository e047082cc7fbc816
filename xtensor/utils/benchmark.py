"""`torch.utils.benchmark`: how long a statement takes, waited for on the device."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from .. import devices

__all__ = ["Measurement", "Timer"]

UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))

MOST = 1_000_000
"""Runs in one measurement, where the number is not given."""


def timer() -> float:
    """The time in seconds, once all that was asked of the device is computed."""
    devices.synchronize()
    return perf_counter()


def unit_of(seconds: float) -> tuple[str, float]:
    """The unit in which a time has at least one digit before the point, and its seconds."""
    return next(((name, scale) for name, scale in UNITS if seconds >= scale), UNITS[-1])


class Measurement:
    """What a Timer measured.

    number_per_run: how often the statement ran in each measurement. raw_times: the seconds of each. times: the seconds of a run.

    >>> found = xtensor.utils.benchmark.Measurement(10, [0.02, 0.03, 0.04])
    >>> found.median, found.times[0]
    (0.003, 0.002)
    """

    def __init__(
        self,
        number_per_run: int,
        raw_times: Sequence[float],
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        stmt: str = "",
        setup: str = "",
    ) -> None:
        self.number_per_run = number_per_run
        self.raw_times = list(raw_times)
        self.label, self.sub_label, self.description, self.env = label, sub_label, description, env
        self.num_threads, self.stmt, self.setup = num_threads, stmt, setup

    @property
    def times(self) -> list[float]:
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of `times`, in seconds."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median of `times`, in seconds."""
        return statistics.median(self.times)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile of `times`, in seconds."""
        times = self.times
        if len(times) == 1:
            return times[0], times[0]
        first, _, third = statistics.quantiles(times, n=4, method="inclusive")
        return first, third

    @property
    def iqr(self) -> float:
        """The distance of the quartiles, in seconds."""
        first, third = self.quartiles
        return third - first

    @property
    def title(self) -> str:
        """What was measured, in a line."""
        return " ".join(part for part in (self.label or self.stmt, self.sub_label, self.description) if part)

    def __repr__(self) -> str:
        name, scale = unit_of(self.median)
        lines = [f"<{type(self).__module__}.{type(self).__name__} object at {hex(id(self))}>", self.title]
        if self.setup and self.setup != "pass":
            lines.append(f"setup: {self.setup}")
        count = len(self.raw_times)
        if count == 1:
            lines.append(f"  {self.median / scale:.2f} {name}")
            lines.append(f"  1 measurement, {self.number_per_run} runs , {self.num_threads} thread")
        else:
            first, third = self.quartiles
            lines.append(f"  Median: {self.median / scale:.2f} {name}")
            lines.append(
                f"  IQR:    {self.iqr / scale:.2f} {name} ({first / scale:.2f} to {third / scale:.2f})"
            )
            lines.append(
                f"  {count} measurements, {self.number_per_run} runs per measurement, {self.num_threads} thread"
            )
        if self.num_threads > 1:
            lines[-1] += "s"
        if self.iqr > 0.1 * self.median:
            lines.append(
                f"  WARNING: Interquartile range is {self.iqr / self.median:.1%} of the median measurement: take it with care."
            )
        return "\n".join(lines)


class Timer:
    """Measures a Python statement; every measurement ends when the device has computed all of it.

    stmt, setup: Python source; `globals` are its names. label, sub_label, description, env: what the Measurement is called.

    Differs from PyTorch: `num_threads` is only noted, since XLA's threads are set when it starts; C++ statements raise.

    >>> found = xtensor.utils.benchmark.Timer("x + 1", globals={"x": xtensor.ones(3)}).timeit(5)
    >>> found.number_per_run, len(found.times)
    (5, 1)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if str(getattr(language, "value", language)).lower() not in ("python", "py", "0"):
            raise NotImplementedError("Timer measures Python statements alone")
        if global_setup:
            raise ValueError(
                "global_setup is C++ only, and is only used in C++ timers. Use setup for Python timers."
            )
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=globals)
        self._clock = timer
        self._names: dict[str, Any] = dict(
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
            stmt=stmt,
            setup=setup,
        )

    def _measured(self, number: int, times: Sequence[float]) -> Measurement:
        return Measurement(number, times, **self._names)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs, after some to warm up."""
        self._timer.timeit(max(number // 100, 2))
        return self._measured(number, [self._timer.timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> Any:
        """Not offered, as in PyTorch: `blocked_autorange` and `adaptive_autorange` measure several times."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> Any:
        """Not offered, as in PyTorch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, min_run_time: float) -> int:
        """How many runs a measurement shall have, so that reading the clock costs little."""
        overhead = statistics.median([timeit.Timer(timer=self._clock).timeit(0) for _ in range(5)])
        number = 1
        while True:
            taken = self._timer.timeit(number)
            enough = taken > max(overhead * 1e3, min_run_time / 1000)
            if enough or taken >= min_run_time or number >= MOST:
                return number
            number *= 10

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """As many measurements as fit into `min_run_time` seconds; `callback(number, seconds)` hears of each."""
        number = self._block(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measurements until the distance of their quartiles is less than `threshold` of the median, or time is up."""
        number = self._block(0.05)
        times: list[float] = []
        while True:
            times.append(self._timer.timeit(number))
            if callback is not None:
                callback(number, times[-1])
            found = self._measured(number, times)
            spent = sum(times)
            steady = len(times) > 3 and found.iqr < threshold * found.median
            if spent > max_run_time or (spent > min_run_time and steady):
                return found
