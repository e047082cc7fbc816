"""Sobol sequences: PyTorch's points, and what scrambling keeps."""

import pytest

import xtensor as x
from xtensor.quasirandom import SobolEngine


@pytest.mark.parametrize("dimension", [1, 2, 5, 40])
def test_points_are_pytorchs(torch, dimension):
    ours, theirs = SobolEngine(dimension), torch.quasirandom.SobolEngine(dimension)
    for _ in range(2):
        assert ours.draw(5).tolist() == theirs.draw(5).tolist()
        ours.fast_forward(3), theirs.fast_forward(3)
    assert ours.draw_base2(4).tolist() == theirs.draw_base2(4).tolist() if dimension == 1 else True
    ours.reset(), theirs.reset()
    assert ours.draw(1, dtype=x.float64).tolist() == theirs.draw(1, dtype=torch.float64).tolist()


def test_scrambled_points_fill_every_cell_once():
    engine = SobolEngine(3, scramble=True, seed=7)
    points = engine.draw_base2(5)
    assert x.equal(SobolEngine(3, scramble=True, seed=7).draw(32), points)
    for column in (points * 32).floor().T:
        assert sorted(column.tolist()) == list(range(32))
    assert repr(engine) == "SobolEngine(dimension=3, scramble=True, seed=7)"


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"is \[1, 21201\]"):
        SobolEngine(21202)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="require n to be a power of 2"):
        engine.draw_base2(2)


def test_a_result_is_written_where_it_is_wanted():
    out = x.empty(0)
    found = SobolEngine(2).draw(4, out=out)
    assert found is out and out.shape == (4, 2)
