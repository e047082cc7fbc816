"""`use_deterministic_algorithms` marks what is left uninitialized, unless told not to."""

import pytest

import xtensor as x
from xtensor.utils import deterministic


@pytest.fixture
def asked():
    x.use_deterministic_algorithms(True)
    yield
    x.use_deterministic_algorithms(False)
    deterministic.fill_uninitialized_memory = True


@pytest.mark.parametrize(
    "make",
    [
        lambda dtype: x.empty(2, 3, dtype=dtype),
        lambda dtype: x.empty_like(x.zeros(2, 3, dtype=dtype)),
        lambda dtype: x.empty_strided((2, 3), (1, 2), dtype=dtype),
        lambda dtype: x.empty_permuted((2, 3), (1, 0), dtype=dtype),
    ],
)
def test_values_left_out_are_marked(asked, make):
    assert make(x.float32).isnan().all()
    assert (make(x.int8) == 127).all()
    deterministic.fill_uninitialized_memory = False
    assert not make(x.float32).isnan().any()


def test_the_switch_takes_bools():
    with pytest.raises(RuntimeError, match="expected a bool, but got int"):
        deterministic.fill_uninitialized_memory = 1
    with pytest.raises(TypeError, match="argument 'warn_only' must be bool, not int"):
        x.use_deterministic_algorithms(False, warn_only=1)
