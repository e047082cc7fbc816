"""`torch.backends.quantized`: there are no quantisation engines."""

engine = "none"
supported_engines = ["none"]
