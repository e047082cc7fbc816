"""`broadcast_shapes`: the sizes that NumPy's broadcasting gives, as a Size."""

import numpy as np
import pytest

import xtensor


@pytest.mark.parametrize(
    "shapes", [[(2, 1), (3,)], [(4,), (1, 4)], [(), (0, 1)], [(5, 1, 2), (1, 3, 1)], [()]]
)
def test_sizes_are_numpys(shapes):
    found = xtensor.broadcast_shapes(*shapes)
    assert isinstance(found, xtensor.Size)
    assert tuple(found) == np.broadcast_shapes(*shapes)


def test_numbers_and_no_shapes():
    assert tuple(xtensor.broadcast_shapes(2, (3, 1))) == (3, 2)
    assert tuple(xtensor.broadcast_shapes()) == ()


def test_what_does_not_fit_is_refused():
    with pytest.raises(RuntimeError, match="broadcast a dimension of length 3 at -1"):
        xtensor.broadcast_shapes((2,), (3,))
