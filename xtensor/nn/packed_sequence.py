"""Sequences of different lengths: padded to one tensor, or packed without padding."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes, geometry
from ..host.at_hand import at_hand
from ..operators.options import number_array, placed
from ..ops.create.creation import full
from ..ops.create.ingest import as_tensor, from_numpy
from ..ops.tensor.conversion import parse_to
from ..tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):
    """The fields of a PackedSequence."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences laid end to end by time: `data` (sum of lengths, *), and how many sequences reach each time step.

    `batch_sizes` is on the CPU. Where the sequences were sorted by length, `sorted_indices` says how, and
    `unsorted_indices` how to undo it.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Any:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None:
            if batch_sizes.device.type != "cpu":
                raise ValueError(
                    "batch_sizes should always be on CPU. Instances of PackedSequence should never be created "
                    "manually. They should be instantiated by functions like pack_sequence and pack_padded_sequences "
                    "in nn.utils.rnn. https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
                )
            fields = (data, batch_sizes, sorted_indices, unsorted_indices)
        else:
            fields = (data[0], data[1], sorted_indices, unsorted_indices)
        return super().__new__(cls, *fields)  # pyright: ignore[reportArgumentType]

    def pin_memory(self) -> PackedSequence:
        """The same sequences: memory needs no pinning here."""
        return self

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data with another dtype or on another device, the indices beside it."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        options = {k: v for k, v in kwargs.items() if k in ("non_blocking", "copy")}
        indices = [
            None if index is None else index.to(data.device, **options)
            for index in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On a CUDA device."""
        return self._moved("cuda", args, kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On the CPU."""
        return self._moved("cpu", args, kwargs)

    def _moved(self, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PackedSequence:
        device = parse_to(args, dict(kwargs))[1] if args or kwargs else None
        if device is not None and device.type == kind:
            return self.to(*args, **kwargs)
        return self.to(*args, **{**kwargs, "device": kind})

    def double(self) -> PackedSequence:
        """Data as float64."""
        return self.to(dtype=dtypes.float64)

    def float(self) -> PackedSequence:
        """Data as float32."""
        return self.to(dtype=dtypes.float32)

    def half(self) -> PackedSequence:
        """Data as float16."""
        return self.to(dtype=dtypes.float16)

    def long(self) -> PackedSequence:
        """Data as int64."""
        return self.to(dtype=dtypes.int64)

    def int(self) -> PackedSequence:
        """Data as int32."""
        return self.to(dtype=dtypes.int32)

    def short(self) -> PackedSequence:
        """Data as int16."""
        return self.to(dtype=dtypes.int16)

    def char(self) -> PackedSequence:
        """Data as int8."""
        return self.to(dtype=dtypes.int8)

    def byte(self) -> PackedSequence:
        """Data as uint8."""
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another."""
    return None if permutation is None else permutation.argsort()


def host(tensor: Tensor) -> Any:
    """The values of a small integer tensor."""
    return np.asarray(tensor.detach().cpu().numpy())


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded tensor (L, N, *), or (N, L, *) with `batch_first`, of sequences of these lengths.

    The lengths must not grow from one sequence to the next, unless `enforce_sorted` is off: then they are sorted here.
    """
    if isinstance(lengths, Tensor):
        lengths = lengths.to(dtype=dtypes.int64)
    else:
        lengths = as_tensor(lengths, dtype=dtypes.int64, device="cpu")
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.device.type != "cpu" or lengths.dim() != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} Long tensor"
        )
    if input.dim() < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [-1, 0], but got {1})")
    if batch_first:
        input = input.transpose(0, 1)
    sizes = host(lengths)
    longest, batch = input.shape[:2]
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(sizes) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={batch})"
        )
    if (sizes <= 0).any():
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (np.diff(sizes) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if sizes[0] > longest:
        raise RuntimeError(f"Expected length of sequence to be at most {longest}, but got {int(sizes[0])}")
    times = np.arange(sizes[0])
    inside = times[:, None] < sizes[None, :]
    rows = (times[:, None] * batch + np.arange(batch)[None, :])[inside]
    flat = input.reshape(longest * batch, *input.shape[2:])
    data = flat.index_select(0, from_numpy(rows).to(input.device))
    return PackedSequence(data, from_numpy(inside.sum(1)), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded tensor (L, N, *), or (N, L, *) with `batch_first`, and the lengths, in the order before packing."""
    sizes = host(sequence.batch_sizes)
    longest = len(sizes)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        sizes = np.concatenate([sizes, np.zeros(total_length - longest, sizes.dtype)])
        longest = total_length
    batch = int(sizes[0])
    data = sequence.data
    inside = np.arange(batch)[None, :] < sizes[:, None]
    places = np.where(inside, (np.cumsum(sizes) - sizes)[:, None] + np.arange(batch)[None, :], 0)
    lengths = inside.sum(0)
    if sequence.unsorted_indices is not None:
        order = host(sequence.unsorted_indices)
        places, inside, lengths = places[:, order], inside[:, order], lengths[order]
    if batch_first:
        places, inside = places.T, inside.T
    rows = from_numpy(np.ascontiguousarray(places).reshape(-1)).to(data.device)
    padded = data.index_select(0, rows).reshape(*places.shape, *data.shape[1:])
    mask = np.ascontiguousarray(~inside).reshape(*inside.shape, *[1] * (data.dim() - 1))
    return padded.masked_fill(from_numpy(mask).to(data.device), padding_value), from_numpy(lengths)


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (L_i, *) side by side in a tensor (L, N, *), or (N, L, *) with `batch_first`, the rest padded."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    listed = list(sequences)
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = listed[0]
    longest = max(sequence.size(0) for sequence in listed)
    rest = tuple(first.shape[1:])
    shape = (len(listed), longest, *rest) if batch_first else (longest, len(listed), *rest)
    made = padded_on_host(listed, shape, batch_first, padding_value, padding_side == "left")
    if made is not None:
        return made
    out = full(shape, padding_value, dtype=first.dtype, device=first.device)
    for i, sequence in enumerate(listed):
        length = sequence.size(0)
        geometry.broadcast_shapes((length, *rest), tuple(sequence.shape))
        place = slice(longest - length, None) if padding_side == "left" else slice(None, length)
        if batch_first:
            out[i, place] = sequence
        else:
            out[place, i] = sequence
    return out


FEW = 1 << 20
"""Bytes that NumPy puts side by side sooner than a program for every sequence does."""


def padded_on_host(
    sequences: list[Tensor], shape: tuple[int, ...], batch_first: bool, value: float, left: bool
) -> Tensor | None:
    """`pad_sequence` of values that are there, as in a loader; None where a program is to do it."""
    dtype = sequences[0].dtype
    arrays: Any = [at_hand(sequence) for sequence in sequences]
    if any(a is None or a.dtype != dtype.numpy or a.shape[1:] != shape[2:] for a in arrays):
        return None
    if math.prod(shape) * dtype.itemsize > FEW:
        return None
    out = np.full(shape, number_array(value, dtype), dtype.numpy)
    rows = out if batch_first else out.swapaxes(0, 1)
    for row, array in zip(rows, arrays, strict=True):
        row[len(row) - len(array) if left else 0 :][: len(array)] = array
    return placed(out, sequences[0].device)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each of its length; what `pad_sequence` undoes."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [own[: int(n)].clone() for own, n in zip(padded_sequences, host(lengths), strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L_i, *)."""
    lengths = as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one, in the order before packing."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
