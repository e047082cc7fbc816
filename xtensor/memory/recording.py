"""Memory over time: what arrays hold after every operator, and a picture of it."""

from __future__ import annotations

import os
from time import perf_counter_ns
from typing import Any, NamedTuple

import jax

from .. import devices
from ..devices import DeviceLike
from ..devices.extras import missing
from ..devices.inspection import shard_bytes
from ..engine import profiler
from .holders import KINDS, memory_snapshot, size_text

__all__ = ["Record", "Sample", "record_memory"]

MIB = 2**20


class Sample(NamedTuple):
    """A moment: seconds since the start, what had just ended, the bytes of all arrays, and of each kind where they were asked for."""

    seconds: float
    name: str
    nbytes: int
    kinds: dict[str, int] | None


class Record:
    """What `record_memory` saw: its samples in order, the first taken before anything ran."""

    def __init__(self, device: devices.device) -> None:
        self.device = device
        self.samples: list[Sample] = []

    @property
    def peak(self) -> Sample:
        """The moment that held most."""
        return max(self.samples, key=lambda sample: sample.nbytes)

    def as_dicts(self) -> list[dict[str, Any]]:
        """The samples as dictionaries that JSON can write."""
        return [sample._asdict() for sample in self.samples]

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw bytes over time, by kind where they were recorded, and write the picture to a file; returns matplotlib's figure.

        Raises: ImportError without matplotlib (`pip install 'xtensor[examples]'`).
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise missing("a picture of memory", "matplotlib", "examples") from error
        figure = Figure(figsize=(9, 4), layout="constrained")
        axes = figure.subplots()
        times = [sample.seconds * 1e3 for sample in self.samples]
        if self.samples[0].kinds is None:
            axes.fill_between(times, [s.nbytes / MIB for s in self.samples], step="post", color="#9db9dd")
        else:
            shown = [k for k in KINDS if any((s.kinds or {}).get(k) for s in self.samples)]
            layers = [[(s.kinds or {}).get(k, 0) / MIB for s in self.samples] for k in shown]
            # Of equal widths: what is recorded by kind spends its time looking.
            times = [*range(len(times))]
            axes.stackplot(times, *layers, labels=shown, step="post")
            axes.legend(loc="upper left", fontsize="small")
        peak = self.peak
        axes.set_title(
            f"{self.device}: at most {size_text(peak.nbytes)}, after {peak.name}", fontsize="medium"
        )
        axes.axhline(peak.nbytes / MIB, color="black", linewidth=0.6, linestyle="--")
        axes.set_xlabel("milliseconds" if self.samples[0].kinds is None else "operators")
        axes.set_ylabel("MiB held by arrays")
        axes.margins(x=0)
        axes.set_ylim(bottom=0)
        if path is not None:
            figure.savefig(path, dpi=120)
        return figure


class record_memory:
    """Record what a device's arrays hold after every operator and backward node of this thread, inside a `with` block.

    kinds: also by who holds them, as `memory_snapshot` tells; each moment then takes some tenths of a second. Backward runs node by node
    meanwhile, as under a profile. What a program takes while it runs is not seen.
    Raises: RuntimeError within a profile, or where there is no such device.

    >>> x = xtensor.ones(1 << 18)
    >>> with xtensor.record_memory() as record:
    ...     y = (x * 2).exp()
    >>> [sample.name for sample in record.samples], record.peak.name
    (['start', 'mul', 'exp'], 'exp')
    """

    def __init__(self, device: DeviceLike = None, *, kinds: bool = False) -> None:
        self.record = Record(devices.resolve(device))
        self.kinds = kinds
        self._found = devices.jax_device(self.record.device)
        self._profile = profiler.profile()
        self._began = 0

    def __enter__(self) -> Record:
        self._began = perf_counter_ns()
        self._sample("start")
        self._profile.start()
        profiler.at_end.append(self._event)
        return self.record

    def __exit__(self, *exc: object) -> None:
        profiler.at_end.remove(self._event)
        self._profile.stop()

    def _event(self, event: profiler.Event) -> None:
        if event.kind != "compile":
            self._sample(event.name)

    def _sample(self, name: str) -> None:
        seconds = (perf_counter_ns() - self._began) / 1e9
        if self.kinds:
            kinds = {k: nbytes for k, (_, nbytes) in memory_snapshot(self.record.device).totals().items()}
            self.record.samples.append(Sample(seconds, name, sum(kinds.values()), kinds))
            return
        nbytes = sum(shard_bytes(array, self._found) for array in jax.live_arrays())
        self.record.samples.append(Sample(seconds, name, nbytes, None))
