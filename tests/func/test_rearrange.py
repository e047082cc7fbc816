"""`torch.func.rearrange` against PyTorch's: patterns, sizes, what is a view, and refusals."""

import pytest

import xtensor

PATTERNS = [
    ("a b c -> c b a", {}),
    ("a b c -> (a b) c", {}),
    ("a (b d) c -> a d b c", {"b": 1}),
    ("(a1 a2) b c -> a1 b (a2 c)", {"a1": 2}),
    ("... c -> c ...", {}),
    ("a ... -> (...) a", {}),
    ("... -> ... 1", {}),
    ("a b c -> a () b c", {}),
    (" a  b c->A c", {}),
    ("A_1 b c->A_1 (b c)", {}),
    ("a b c -> a b", {}),
    ("a b -> b a", {}),
    ("a b c", {}),
    ("a a c -> a c", {}),
    ("a b c -> a b c", {"z": 3}),
    ("a b c -> a b c 2", {}),
    ("a b c -> ((a b) c)", {}),
    ("_ b c -> b c", {}),
    ("a ... c ... -> a", {}),
    ("a b c -> ... a b c", {}),
]


@pytest.mark.parametrize(("pattern", "sizes"), PATTERNS)
def test_as_in_pytorch(torch, pattern, sizes):
    def told(lib):
        x = lib.arange(24.0).reshape(2, 3, 4)
        try:
            found = lib.func.rearrange(x, pattern, **sizes)
        except ValueError as error:
            # The order of a set is nobody's.
            return "".join(sorted(str(error)))
        return tuple(found.shape), found.flatten().tolist(), found._is_view()

    assert told(xtensor) == told(torch)


def test_several_tensors_and_sizes_that_do_not_fit(torch):
    def stacked(lib):
        x = lib.arange(6.0).reshape(2, 3)
        return lib.func.rearrange([x, x + 1], "n a b -> (n a) b").tolist()

    assert stacked(xtensor) == stacked(torch)
    with pytest.raises(ValueError, match="does not evenly fit"):
        xtensor.func.rearrange(xtensor.ones(3), "(a b) -> a b", a=2)
    with pytest.raises(ValueError, match="cannot infer the sizes of two"):
        xtensor.func.rearrange(xtensor.ones(3), "(a b) -> a b")
    batch = xtensor.vmap(lambda x: xtensor.func.rearrange(x, "(a b) -> b a", a=2))(xtensor.ones(5, 6))
    assert batch.shape == (5, 3, 2)
