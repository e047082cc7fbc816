"""The extras: what optional packages give, and the one command that brings them."""

from __future__ import annotations

__all__ = ["EXTRAS", "command", "missing"]

EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "cuda": (("jax-cuda13-plugin",), "NVIDIA GPUs"),
    "rocm": (("jax-rocm7-plugin",), "AMD GPUs"),
    "tpu": (("libtpu",), "Google TPUs"),
    "viz": (("pygraphviz",), "drawings of graphs by Graphviz"),
    "safetensors": (("safetensors",), "safetensors files"),
    "orbax": (("orbax-checkpoint",), "checkpoints of JAX programs"),
    "export": (("flatbuffers",), "exported programs in files"),
    "onnx": (("onnx", "onnxruntime"), "models as ONNX files"),
    "tensorboard": (("tensorboard",), "TensorBoard's event files"),
    "examples": (
        ("matplotlib", "nbclient", "scikit-learn", "tqdm"),
        "the programs and notebooks of `examples/`",
    ),
    "parity": (("torch",), "PyTorch, for comparisons and conversions"),
}
"""By extra: the packages that it brings, as they are installed, and what for."""


def command(extra: str) -> str:
    """The command that installs an extra.

    >>> xtensor.devices.extras.command("viz")
    'pip install "xtensor[viz]"'
    """
    return f'pip install "xtensor[{extra}]"'


def missing(what: str, package: str, extra: str) -> ModuleNotFoundError:
    """The error of something that needs a package of an extra which is not installed."""
    return ModuleNotFoundError(f"{what} needs the package {package}: {command(extra)}", name=package)
