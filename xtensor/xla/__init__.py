"""What adapts JAX and XLA: 64-bit calls, internals in use, host settings, the compile cache, choices per platform."""
