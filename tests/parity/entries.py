"""The entries of PyTorch's OpInfo database, by name, and what is known of them that it does not say."""

from __future__ import annotations

import fnmatch
import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch

__all__ = [
    "DTYPES",
    "RANDOM",
    "REASONS",
    "dtypes_of",
    "entries",
    "family",
    "left_out",
    "name_of",
    "select",
]

DTYPES = (
    "float32",
    "float64",
    "int64",
    "int32",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "bfloat16",
    "float16",
)

# Entries that are not run, and why.
REASONS = {
    "jiterator_*": "compiles CUDA source: there is no such thing on the CPU or on XLA",
    "torch.ops.aten._flash_attention_forward": "a CUDA kernel's internal entry, without a CPU dtype",
    "torch.ops.aten._efficient_attention_forward": "a CUDA kernel's internal entry, without a CPU dtype",
    "torch.ops.aten._safe_softmax.default": "internal: torch.ops.aten has it, torch does not",
    "slice": "internal: torch.ops.aten has it, torch does not",
    "_batch_norm_with_update": "internal: torch.ops.aten has it, torch does not",
    "_upsample_bilinear2d_aa": "internal: torch.ops.aten has it, torch does not",
    "native_dropout_backward": "internal: torch.ops.aten has it, torch does not",
    "max_pool2d_with_indices_backward": "internal: torch.ops.aten has it, torch does not",
    "torch._scaled_mm*": "private, for float8 alone",
    "nn.functional.batch_norm.without_cudnn": "switches cuDNN off; it has no CPU dtype",
    "bmm.triton_optimized": "a CUDA kernel's variant, without a CPU dtype",
    "sparse.*": "sparse layouts: every tensor here is strided",
    "to_sparse": "sparse layouts: every tensor here is strided",
}

# Entries whose values are drawn: shape, dtype and distribution are compared.
RANDOM = (
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "normal*",
    "uniform",
    "randn*",
    "rand_like",
    "randint*",
    "multinomial",
    "bernoulli",
    "nn.functional.dropout*",
    "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout.with_train",
    "nn.functional.rrelu",
    "nn.functional.fractional_max_pool*",
)

# Samples that are left away since their values depend on what is drawn.
DRAWN: dict[str, Callable[[Any], bool]] = {
    "svd_lowrank": lambda sample: sample.kwargs.get("M") is not None,
    "nn.functional.scaled_dot_product_attention": lambda sample: bool(sample.kwargs.get("dropout_p")),
    # dropout_p is the tenth argument after the query.
    "nn.functional.multi_head_attention_forward": lambda sample: (
        bool(sample.args[9]) and sample.kwargs.get("training", True)
    ),
}

# Entries whose values are unset memory.
UNSET = ("empty*", "new_empty*")


@functools.cache
def entries() -> dict[str, Any]:
    """Every entry by its full name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_utils
        from torch.testing._internal.common_methods_invocations import op_db
        from torch.testing._internal.opinfo import core
    # Each sample maker looks for the test that asks by reading the source of the whole stack: half of a run's time.
    common_utils.extract_test_fn = core.extract_test_fn = lambda: None
    return {name_of(entry): entry for entry in op_db}


def name_of(entry: Any) -> str:
    """The entry's name, with that of its variant."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else entry.name


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name is one of the patterns."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def left_out(name: str) -> str | None:
    """Why an entry is not run, or None."""
    return next((reason for pattern, reason in REASONS.items() if fnmatch.fnmatchcase(name, pattern)), None)


def family(entry: Any) -> str:
    """The module that an entry's operator lives in."""
    known = ("nn.functional", "linalg", "fft", "special", "signal.windows", "masked", "sparse")
    return next((prefix for prefix in known if entry.name.startswith(prefix + ".")), "top level")


def dtypes_of(entry: Any) -> list[str]:
    """The dtypes of ours that PyTorch's CPU has for an entry."""
    return [name for name in DTYPES if getattr(torch, name) in entry.dtypes]


def select(patterns: list[str]) -> list[str]:
    """The names that any pattern means: a full name, an operator's name, or a glob."""
    found = []
    for name, entry in entries().items():
        if not patterns or any(p in (name, entry.name) or fnmatch.fnmatchcase(name, p) for p in patterns):
            found.append(name)
    return found
