"""The switches of PyTorch's libraries: programs set them, and XLA, which has none of these libraries, goes on.

What a switch would choose is chosen elsewhere: precision by `set_float32_matmul_precision`, kernels by XLA.
"""

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "mha",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]
