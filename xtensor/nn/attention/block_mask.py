"""Masks by blocks: which blocks of keys each block of queries sees wholly or in part, from a function of their indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...func import vmap
from ...ops.create.ingest import as_tensor
from ...ops.create.ranges import arange
from ...ops.shape.joining import broadcast_tensors
from ...tensor import Tensor, host_array

__all__ = ["BlockMask", "and_masks", "create_block_mask", "create_mask", "noop_mask", "or_masks"]

SIZE = 128
MaskFunction = Callable[..., Tensor]


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask in which every query sees every key."""
    return batch.new_ones((), dtype=dtypes.bool)


def and_masks(*mask_mods: MaskFunction) -> MaskFunction:
    """The mask that allows what all of some masks allow.

    Example: `and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k < 8)`.
    """
    return _joined("and_masks", mask_mods, True)


def or_masks(*mask_mods: MaskFunction) -> MaskFunction:
    """The mask that allows what any of some masks allows."""
    return _joined("or_masks", mask_mods, False)


def _joined(name: str, masks: tuple[MaskFunction, ...], all_of: bool) -> MaskFunction:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"All inputs to {name} should be callable mask_mods, got {masks}")

    def mask(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        found = b.new_full((), all_of, dtype=dtypes.bool)
        for one in masks:
            found = found & one(b, h, q, k) if all_of else found | one(b, h, q, k)
        return found

    return mask


def over_indices(
    function: Callable[..., Tensor], indices: tuple[Tensor, ...], score: Tensor | None = None
) -> Tensor:
    """A function of one query and one key, and of their score if there is one, for all of them: `(b, h, q, k)`."""
    first = () if score is None else (0,)
    for place in (3, 2, 1, 0):
        function = vmap(function, (*first, *(0 if i == place else None for i in range(4))))
    return function(*indices) if score is None else function(score, *indices)


def create_mask(
    mod_fn: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: devices.DeviceLike = None,
) -> Tensor:
    """What a mask or a score function gives for every query and key: `(B, H, Q_LEN, KV_LEN)`.

    Example: `create_mask(lambda b, h, q, k: q >= k, None, None, 3, 3)` is the causal mask.
    """
    names = mod_fn.__code__.co_argcount if hasattr(mod_fn, "__code__") else 4
    indices = tuple(arange(n, device=device) for n in (B or 1, H or 1, Q_LEN, KV_LEN))
    shape = tuple(len(i) for i in indices)
    if names == 5:
        score = indices[0].new_zeros(shape, dtype=dtypes.float32)
        made = over_indices(mod_fn, indices, score)
        return made.where(made == -float("inf"), 0.0) if made.dtype is dtypes.bool else made
    return broadcast_tensors(over_indices(mod_fn, indices), indices[0].new_zeros(shape, dtype=dtypes.bool))[0]


def create_block_mask(
    mask_mod: MaskFunction,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: devices.DeviceLike = None,
    BLOCK_SIZE: int | tuple[int, int] = SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    **options: Any,
) -> BlockMask:
    """The blocks of a mask: those without an allowed pair are left out, those with all pairs are told apart.

    mask_mod: of the indices of a batch, a head, a query and a key, whether the query sees the key.

    Example: `create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256).sparsity()`.
    """
    sizes = pair(BLOCK_SIZE)
    allowed = host_array(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)).astype(bool)
    rows, columns = (-(-n // size) for n, size in zip((Q_LEN, KV_LEN), sizes))
    room = ((0, 0), (0, 0), (0, rows * sizes[0] - Q_LEN), (0, columns * sizes[1] - KV_LEN))
    tiles = np.pad(allowed, room).reshape(*allowed.shape[:2], rows, sizes[0], columns, sizes[1])
    some = np.asarray(tiles.any((3, 5)))
    full = np.asarray(tiles.all((3, 5))) if separate_full_blocks else np.zeros_like(some)
    partial = some & ~full
    place = devices.resolve(device)
    number, order = listed(partial, place)
    more = listed(full, place) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(number, order, *more, sizes, mask_mod, (Q_LEN, KV_LEN))


def pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def listed(blocks: np.ndarray[Any, Any], place: Any) -> tuple[Tensor, Tensor]:
    """How many blocks each row has, and their columns, those of the row first."""
    order = np.argsort(~blocks, -1, kind="stable").astype(np.int32)
    return as_tensor(blocks.sum(-1).astype(np.int32), device=place), as_tensor(order, device=place)


def marked(number: Tensor | None, order: Tensor | None) -> np.ndarray[Any, Any] | None:
    """The blocks of lists as flags `(b, h, rows, columns)`."""
    if number is None or order is None:
        return None
    counts, columns = host_array(number), host_array(order)
    taken = np.arange(columns.shape[-1]) < counts[..., None]
    flags = np.zeros(columns.shape, bool)
    np.put_along_axis(flags, columns.astype(np.int64), taken, -1)
    return flags


class BlockMask:
    """A mask as lists of blocks: for each block of queries the blocks of keys that it sees, in part or wholly.

    kv_num_blocks: `(b, h, rows)`; kv_indices: `(b, h, rows, columns)`, those that count first. The lists of full blocks are
    alike; inside the others `mask_mod` decides. q_num_blocks, q_indices and the full ones: the same by blocks of keys.
    """

    LISTS = (
        "kv_num_blocks kv_indices full_kv_num_blocks full_kv_indices q_num_blocks q_indices full_q_num_blocks full_q_indices"
    ).split()

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (SIZE, SIZE),
        mask_mod: MaskFunction = noop_mask,
        **options: Any,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths = (seq_lengths[0], seq_lengths[1])
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = SIZE,
        mask_mod: MaskFunction | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        **options: Any,
    ) -> BlockMask:
        """A mask from the lists of blocks of keys; those of queries follow from them."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        sizes, place = pair(BLOCK_SIZE), kv_indices.device
        turned: Any = []
        for lists in ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices)):
            flags = marked(*lists) if compute_q_blocks else None
            turned += [None, None] if flags is None else listed(np.swapaxes(flags, -1, -2), place)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * sizes[0], kv_indices.shape[-1] * sizes[1])
        lists: Any = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        return cls(seq_lengths, *lists, *turned, BLOCK_SIZE=sizes, mask_mod=mask_mod or noop_mask)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The lengths, the lists, the size of blocks and the function, in the order in which they are made from."""
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *(getattr(self, name) for name in self.LISTS), *size, self.mask_mod)

    def numel(self) -> int:
        """How many pairs of a query and a key there are."""
        return int(np.prod(self.shape))

    def flags(self) -> np.ndarray[Any, Any]:
        """Which blocks are seen in part or wholly, on the host."""
        flags, full = marked(self.kv_num_blocks, self.kv_indices), self.full_flags()
        assert flags is not None
        return flags if full is None else flags | full

    def full_flags(self) -> np.ndarray[Any, Any] | None:
        """Which blocks are seen wholly; None without such lists."""
        return marked(self.full_kv_num_blocks, self.full_kv_indices)

    def sparsity(self) -> float:
        """What share of the pairs lies in blocks that are left out, in percent."""
        computed = int(self.flags().sum()) * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - computed / self.numel())

    def to_dense(self) -> Tensor:
        """Which blocks are seen, as ones and zeros `(b, h, rows, columns)`."""
        return as_tensor(self.flags().astype(np.int32), device=self.kv_indices.device)

    def to(self, device: devices.DeviceLike) -> BlockMask:
        """The mask with its lists on a device."""
        lists: Any = [x if x is None else x.to(device) for x in (getattr(self, name) for name in self.LISTS)]
        return BlockMask(self.seq_lengths, *lists, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def __getitem__(self, index: Any) -> BlockMask:
        index = (index,) if not isinstance(index, tuple) else index
        # A number keeps its dimension: masks have a batch, heads and rows.
        index = tuple([i] if isinstance(i, int) else i for i in index)
        lists: Any = [
            None if x is None else x[index] for x in (getattr(self, name) for name in self.LISTS[:4])
        ]
        return BlockMask.from_kv_blocks(
            *lists,
            BLOCK_SIZE=self.BLOCK_SIZE,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask for fewer queries and keys, or for more up to whole blocks: its upper left corner."""
        rows, columns = (-(-n // size) for n, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        place = self.kv_indices.device
        lists: Any = []
        for flags in (marked(self.kv_num_blocks, self.kv_indices), self.full_flags()):
            lists += [None, None] if flags is None else listed(flags[..., :rows, :columns], place)
        return BlockMask.from_kv_blocks(
            *lists, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, seq_lengths=(new_q_len, new_kv_len)
        )

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Pictures of the first masks, a mark for each block: seen wholly, in part, or not."""
        seen, full = self.flags(), self.full_flags()
        texts = []
        for place in list(np.ndindex(seen.shape[:-2]))[:limit]:
            rows = [
                "".join(
                    "██" if full is not None and full[place][i, j] else "░░" if flag else "  "
                    for j, flag in enumerate(row)
                )
                for i, row in enumerate(seen[place])
            ]
            texts.append("\n".join([str(place), *rows]))
        return "\n\n".join(texts)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string()}\n)"

    def __repr__(self) -> str:
        lists = [f"    {name}={x.shape}," for name in self.LISTS if (x := getattr(self, name)) is not None]
        about = [
            f"    BLOCK_SIZE={self.BLOCK_SIZE},",
            f"    shape={self.shape},",
            f"    sparsity={self.sparsity():.2f}%,",
        ]
        name = getattr(self.mask_mod, "__name__", repr(self.mask_mod))
        return "\n".join(["BlockMask(", *lists, *about, f"    mask_mod={name}", ")"])
