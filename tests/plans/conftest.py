"""What all tests of plans begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from xtensor.xla.sizes import forget, paused


@pytest.fixture(autouse=True)
def programs_of_one_size() -> Iterator[None]:
    """Whatever ran before: programs of all sizes round in another order, and make plans from the first time on needless."""
    forget()
    with paused():
        yield
