"""What all tests of plans begin with."""

from __future__ import annotations

import pytest

from xtensor.xla.sizes import forget


@pytest.fixture(autouse=True)
def no_size_has_varied() -> None:
    """Programs of one size, whatever ran before: those of all sizes round in another order, and make plans from the first time on needless."""
    forget()
