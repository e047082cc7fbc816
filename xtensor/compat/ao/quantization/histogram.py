"""`HistogramObserver`: the range in which quantising a distribution of numbers loses least, found from its histogram."""

# Parameters have the names that PyTorch gives them, class by class.
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Any

import numpy as np

from .... import checks, dtypes
from ....ops.create.creation import zeros
from ....ops.create.ingest import tensor
from ....sparse.layout import host
from ....tensor import Tensor
from .limits import EPS, UniformQuantizationObserverBase, limits_of

__all__ = ["HistogramObserver"]

FINER = 16
"""Parts into which a bin is cut where its numbers go to bins of another width."""
STEP = 1e-5
"""What is cut off the tails of a distribution at a time."""


def counted(values: Any, bins: int, low: Any, high: Any) -> Any:
    """How many numbers fall into each of equal bins between two, float32."""
    if low == high:
        low, high = low - np.float32(1), high + np.float32(1)
    values = values.ravel()
    values = values[(values >= low) & (values <= high)]
    place = ((values - low) / (high - low) * np.float32(bins)).astype(np.int64)
    return np.bincount(np.minimum(place, bins - 1), minlength=bins).astype(np.float32)


def widened(counts: Any, old: tuple[Any, Any], new: tuple[Any, Any]) -> Any:
    """Counts in bins over a range as counts in as many bins over a wider one."""
    bins = len(counts)
    if old[0] == old[1]:
        return counted(np.asarray([old[0]], np.float32), bins, *new) * counts.sum()
    edges = np.linspace(old[0], old[1], bins * FINER + 1, dtype=np.float32)[:-1]
    middles = edges + np.float32(0.5) * (old[1] - old[0]) / np.float32(bins * FINER)
    bounds = np.linspace(new[0], new[1], bins + 1, dtype=np.float32)
    place = np.clip(np.searchsorted(bounds, middles, side="right") - 1, 0, bins - 1)
    parts = np.repeat(counts, FINER) / np.float32(FINER)
    return np.bincount(place, weights=parts, minlength=bins).astype(np.float32)


def lost(counts: Any, width: float, first: int, last: int, levels: int) -> float:
    """The squared error of quantising to `levels` numbers between the bins `first` and `last`, for bins filled evenly."""
    step = width * (last - first + 1) / levels
    if step == 0:
        return 0.0
    begin = (np.arange(len(counts)) - first).astype(np.float32) * np.float32(width)
    end = begin + np.float32(width)
    half, step = np.float32(step / 2), np.float32(step)
    at_begin = np.clip(np.floor(begin / step), 0, levels - 1)
    at_end = np.clip(np.floor(end / step), 0, levels - 1)

    def moment(low: Any, high: Any) -> Any:
        return (high * high * high - low * low * low) / np.float32(3)

    # Of each bin: what is left of its first level, the levels that it covers, and what it has of its last.
    parts = moment(begin - (at_begin + np.float32(0.5)) * step, half)
    parts = parts + (at_end - at_begin - 1) * moment(-half, half)
    parts = parts + moment(-half, end - (at_end * step + half))
    return float((parts * (counts / np.float32(width))).sum())


def narrowed(counts: Any, low: Any, high: Any, levels: int) -> tuple[int, int]:
    """The first and the last bin of the range that loses least, found by cutting the longer tail while that helps."""
    bins, width = len(counts), (float(high) - float(low)) / len(counts)
    total, below = float(counts.sum()), np.cumsum(counts, dtype=np.float64).astype(np.float32)
    first, last, best = 0, bins - 1, np.inf
    alpha, beta = 0.0, 1.0
    while alpha < beta:
        left, right = alpha + STEP, beta - STEP
        start = max(first, min(int(np.searchsorted(below, np.float32(left * total), side="left")), last))
        stop = min(last, max(int(np.searchsorted(below, np.float32(right * total), side="right")) - 1, first))
        if start - first > last - stop:
            tried, alpha = (start, last), left
        else:
            tried, beta = (first, stop), right
        if tried == (first, last):
            continue
        error = lost(counts, width, *tried, levels)
        if error > best:
            break
        best, (first, last) = error, tried
    return first, last


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of the numbers seen; the range is that in which quantising them loses least.

    >>> observer = xtensor.ao.quantization.HistogramObserver()
    >>> _ = observer(xtensor.linspace(-1, 1, 1001))
    >>> observer.calculate_qparams()
    (tensor([0.0078]), tensor([128], dtype=xtensor.int32))
    """

    histogram: Tensor

    def __init__(
        self,
        bins: int = 2048,
        dtype: Any = dtypes.quint8,
        qscheme: dtypes.qscheme = dtypes.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: Any = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **options: Any,
    ) -> None:
        if not qscheme.name.startswith("per_tensor"):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric \\\n"
                "                    and torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(
            dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **options
        )
        self.bins = bins
        self.register_buffer("histogram", zeros(bins, **self.factory))
        self.register_buffer("min_val", tensor(float("inf"), **self.factory))
        self.register_buffer("max_val", tensor(float("-inf"), **self.factory))
        least, most = limits_of(dtype)
        self.dst_nbins = most - least + 1
        self.upsample_rate = FINER

    def forward(self, x_orig: Tensor) -> Tensor:
        """The input, after a look at it."""
        values = host(x_orig.detach()).astype(np.float32)
        if np.isinf(values).any():
            checks.warn("torch.inf detected in input tensor, ignoring input")
            values = values[~np.isinf(values)]
        if values.size:
            low, high = values.min(), values.max()
            old = (host(self.min_val)[()], host(self.max_val)[()])
            if old[0] == np.inf or old[1] == -np.inf:
                counts = counted(values, self.bins, low, high)
            else:
                low, high = min(old[0], low), max(old[1], high)
                before = host(self.histogram)
                before = before if (low, high) == old else widened(before, old, (low, high))
                counts = counted(values, self.bins, low, high) + before
            self.histogram.copy_(tensor(counts))
            self.min_val.copy_(tensor(low))
            self.max_val.copy_(tensor(high))
        return x_orig

    def calculate_qparams(self, **options: Any) -> tuple[Tensor, Tensor]:
        """The scale and the zero point that lose least of what was seen."""
        low, high = host(self.min_val)[()], host(self.max_val)[()]
        if low == np.inf and high == -np.inf:
            checks.warn(
                "must run observer before calling calculate_qparams.                                    "
                "Returning default scale and zero point "
            )
            return tensor([1.0]), tensor([0])
        if self.bins != len(self.histogram):
            raise AssertionError(
                "The number of bins in histogram should be equal to the number of bins supplied while making this observer"
            )
        first, last = narrowed(host(self.histogram), low, high, self.dst_nbins)
        width = (high - low) / np.float32(self.bins)
        least, most = low + width * np.float32(first), low + width * np.float32(last + 1)
        return self._calculate_qparams(tensor(least), tensor(most))

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("min_val", "max_val"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        version = local_metadata.get("version")
        for name in ("min_val", "max_val"):
            found = state_dict.get(prefix + name)
            if found is not None and (version is None or version < 3) and found.shape == (1,):
                state_dict[prefix + name] = found.reshape(())
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"
