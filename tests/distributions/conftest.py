"""What the tests of distributions share."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def validated() -> None:
    """PyTorch checks its arguments: the first ``torch.compile`` of a process turns that off there."""
    module = sys.modules.get("torch")
    if module is not None and getattr(module, "__name__", "") == "torch":
        module.distributions.Distribution.set_default_validate_args(True)
