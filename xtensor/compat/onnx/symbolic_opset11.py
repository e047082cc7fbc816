"""`torch.onnx.symbolic_opset11`: importable, and empty, since nothing is exported."""

from __future__ import annotations

__all__: list[str] = []
