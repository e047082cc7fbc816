"""`torch.backends.quantized`: there are no quantisation engines."""

from __future__ import annotations

engine = "none"
supported_engines = ["none"]
