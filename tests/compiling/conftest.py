"""What tests of compiled functions share."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
from jax.core import Tracer


@pytest.fixture
def no_tracers() -> Callable[[], None]:
    """A check that no tracer lives which did not live when the test began: an error within nested traces of JAX leaves some for good."""

    def living() -> set[int]:
        gc.collect()
        return {id(o) for o in gc.get_objects() if issubclass(type(o), Tracer)}

    before = living()

    def check() -> None:
        assert not living() - before

    return check
