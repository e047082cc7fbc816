"""`torch.utils._pytree` against PyTorch's."""

from collections import OrderedDict, namedtuple

import pytest

from xtensor.utils import _pytree as ours

Point = namedtuple("Point", "x y")
TREE = {"b": [1, (2, None)], "a": OrderedDict(z=Point(3, [4, 5])), "c": ()}


@pytest.fixture
def theirs():
    return pytest.importorskip("torch.utils._pytree")


def test_leaves_and_back(theirs):
    for tree in (TREE, [], 3, None, [TREE, TREE]):
        leaves, spec = ours.tree_flatten(tree)
        assert leaves == theirs.tree_flatten(tree)[0]
        assert ours.tree_unflatten(leaves, spec) == tree
        assert spec.num_leaves == len(leaves) and spec == ours.tree_structure(tree)


def test_maps(theirs):
    pairs = [
        lambda t: t.tree_map(lambda v: (v or 0) + 1, TREE),
        lambda t: t.tree_map(lambda a, b: (a or 0) + (b or 0), TREE, TREE),
        lambda t: t.tree_map_only(int, lambda v: v * 2, TREE),
        lambda t: t.tree_map(len, [[1, 2], (3,)], is_leaf=lambda v: isinstance(v, tuple) or v == [1, 2]),
        lambda t: (t.tree_all(lambda v: v is not None, TREE), t.tree_any(lambda v: v == 5, TREE)),
        lambda t: [(t.keystr(path), leaf) for path, leaf in t.tree_leaves_with_path(TREE)],
    ]
    for pair in pairs:
        assert pair(ours) == pair(theirs)


def test_classes_that_programs_register():
    class Pair:
        def __init__(self, one, two):
            self.one, self.two = one, two

    ours.register_pytree_node(Pair, lambda p: ([p.one, p.two], None), lambda parts, _: Pair(*parts))
    made = ours.tree_map(lambda v: v * 2, {"k": Pair(1, 2)})
    assert (made["k"].one, made["k"].two) == (2, 4)
    with pytest.raises(ValueError, match="already registered"):
        ours.register_pytree_node(Pair, lambda p: ([], None), lambda parts, _: None)
    with pytest.raises(ValueError, match="holds 2 items"):
        ours.tree_unflatten([1], ours.tree_structure([1, 2]))
