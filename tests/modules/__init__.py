"""Every module and optimizer of PyTorch's own test databases, run on both libraries from the same weights.

    python -m tests.modules [--only NAME ...] [--json FILE]

prints a row per entry and the totals. It needs the CPU build of PyTorch and its test dependency `expecttest`.
"""
