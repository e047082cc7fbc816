"""Trees: nested tuples, lists, dicts and what programs register, as leaves and the shape around them.

None is a leaf, and dicts keep their order. Public programs know these names as `torch.utils._pytree`.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple, cast

__all__ = [
    "PyTree",
    "TreeSpec",
    "arg_tree_leaves",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]

PyTree = Any
IsLeaf = Callable[[Any], bool]


@dataclass(frozen=True)
class SequenceKey:
    """A place in a list or tuple."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class MappingKey:
    """A place in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple or of a registered class."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class NodeDef(NamedTuple):
    """How a container comes apart, and together again."""

    flatten: Callable[[Any], tuple[list[Any], Any]]
    unflatten: Callable[[Any, Any], Any]
    keys: Callable[[Any, int], list[Any]]

    @property
    def flatten_fn(self) -> Callable[[Any], tuple[list[Any], Any]]:
        """`flatten`, as packages ask for it."""
        return self.flatten

    @property
    def unflatten_fn(self) -> Callable[[Any, Any], Any]:
        """`unflatten`, as packages ask for it."""
        return self.unflatten


def _indices(context: Any, count: int) -> list[Any]:
    return [SequenceKey(i) for i in range(count)]


def _mapped(context: Any, count: int) -> list[Any]:
    return [MappingKey(key) for key in context]


def _default_keys(context: Any, count: int) -> list[Any]:
    return [MappingKey(key) for key in context[1]]


def _field_keys(context: Any, count: int) -> list[Any]:
    return [GetAttrKey(name) for name in context._fields]


NODES: dict[type, NodeDef] = {
    tuple: NodeDef(lambda x: (list(x), None), lambda c, _: tuple(c), _indices),
    list: NodeDef(lambda x: (list(x), None), lambda c, _: list(c), _indices),
    deque: NodeDef(lambda x: (list(x), x.maxlen), lambda c, maxlen: deque(c, maxlen), _indices),
    dict: NodeDef(
        lambda x: (list(x.values()), list(x)), lambda c, keys: dict(zip(keys, c, strict=True)), _mapped
    ),
    OrderedDict: NodeDef(
        lambda x: (list(x.values()), list(x)), lambda c, keys: OrderedDict(zip(keys, c, strict=True)), _mapped
    ),
    defaultdict: NodeDef(
        lambda x: (list(x.values()), [x.default_factory, list(x)]),
        lambda c, context: defaultdict(context[0], zip(context[1], c, strict=True)),
        _default_keys,
    ),
    namedtuple: NodeDef(lambda x: (list(x), type(x)), lambda c, kind: kind(*c), _field_keys),  # type: ignore[dict-item]
}
SUPPORTED_NODES = NODES


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Any, Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Let a class be a container: `flatten_fn` gives children and context, `unflatten_fn(children, context)` the object."""
    if cls in NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    NODES[cls] = NodeDef(lambda x: _listed(flatten_fn(x)), unflatten_fn, _indices)


_register_pytree_node = register_pytree_node


def _listed(found: tuple[Iterable[Any], Any]) -> tuple[list[Any], Any]:
    return list(found[0]), found[1]


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Let a dataclass be a container of its fields."""
    if not is_dataclass(cls):
        raise ValueError(f"Only dataclasses can be registered with this function: {cls}")
    dropped = set(drop_field_names or ())
    names = field_names or [f.name for f in fields(cls) if f.init and f.name not in dropped]
    NODES[cls] = NodeDef(
        lambda x: ([getattr(x, name) for name in names], names),
        lambda children, context: cls(**dict(zip(context, children, strict=True))),
        lambda context, count: [GetAttrKey(name) for name in context],
    )


def _kind(tree: Any) -> Any:
    kind = type(tree)
    if kind in NODES:
        return kind
    return namedtuple if isinstance(tree, tuple) and hasattr(kind, "_fields") else None


def _get_node_type(tree: Any) -> Any:
    """The class under which a value is looked up: its own, and for named tuples `namedtuple`."""
    return _kind(tree) or type(tree)


class TreeSpec:
    """The shape around leaves: the class of the container, its context, and its children's shapes."""

    __slots__ = ("_children", "context", "num_leaves", "type")

    def __init__(self, type: Any, context: Any = None, children_specs: Iterable[TreeSpec] = ()) -> None:
        self.type, self.context, self._children = type, context, list(children_specs)
        self.num_leaves = 1 if type is None else sum([child.num_leaves for child in self._children])

    @property
    def num_children(self) -> int:
        return len(self._children)

    @property
    def num_nodes(self) -> int:
        return 1 + sum(child.num_nodes for child in self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        """The children's shapes."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """One child's shape."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether this stands for one leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of a tree that stand where the leaves of this shape are; ValueError where it differs."""
        if self.type is None:
            return [tree]
        if _kind(tree) is not self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = NODES[self.type].flatten(tree)
        if self.type in (dict, OrderedDict):
            if set(context) != set(self.context):
                raise ValueError(f"Node keys mismatch; expected {self.context!r}, but got {context!r}.")
            children = [tree[key] for key in self.context]
        if len(children) != len(self._children):
            raise ValueError(f"Node arity mismatch; expected {len(self._children)}, but got {len(children)}.")
        return [
            p for spec, child in zip(self._children, children, strict=True) for p in spec.flatten_up_to(child)
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self._children) == (other.type, other.context, other._children)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, len(self._children)))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self._children})"


LEAF = TreeSpec(None)


def LeafSpec() -> TreeSpec:
    """The shape of one leaf."""
    return LEAF


def treespec_leaf() -> TreeSpec:
    """The shape of one leaf."""
    return LEAF


def tree_is_leaf(tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether a value is a leaf: no container, or one that `is_leaf` says is."""
    return (is_leaf is not None and is_leaf(tree)) or _kind(tree) is None


_is_leaf = tree_is_leaf


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves, in order, and the shape around them."""
    leaves: list[Any] = []
    return leaves, _walk(tree, is_leaf, leaves)


def _walk(tree: Any, is_leaf: IsLeaf | None, leaves: list[Any]) -> TreeSpec:
    kind = _kind(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    children, context = NODES[kind].flatten(tree)
    return TreeSpec(kind, context, [_walk(child, is_leaf, leaves) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a shape with these leaves; ValueError if their number is another."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type "
            f"{type(treespec)}."
        )
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(values)} but the spec refers to a pytree "
            f"that holds {treespec.num_leaves} items ({treespec})."
        )
    return _built(iter(values), treespec)


def _built(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    return NODES[spec.type].unflatten([_built(leaves, child) for child in spec._children], spec.context)


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: IsLeaf | None = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of a call's arguments, in order."""
    return tree_leaves((args, kwargs))


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> TreeSpec:
    """The shape around the leaves."""
    return tree_flatten(tree, is_leaf)[1]


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: IsLeaf | None = None
) -> list[Any] | None:
    """A value for each leaf of a shape, given for leaves or for parts of it; None where it does not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.type is None or _kind(tree) != treespec.type:
        return None
    children, context = NODES[treespec.type].flatten(tree)
    parts = treespec.children_specs
    if len(children) != len(parts):
        return None
    if context != treespec.context:
        if not isinstance(tree, dict) or set(tree) != set(_keys(treespec)):
            return None
        children = [tree[key] for key in _keys(treespec)]  # dicts are the same in any order
    found: list[Any] = []
    for child, part in zip(children, parts, strict=True):
        values = _broadcast_to_and_flatten(child, part, is_leaf)
        if values is None:
            return None
        found += values
    return found


def _keys(treespec: TreeSpec) -> Any:
    """The keys of a shape of dicts."""
    return treespec.context[1] if treespec.type is defaultdict else treespec.context


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The tree with `func` of each leaf, and of those of `rests` in the same places."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten([func(*values) for values in zip(leaves, *others, strict=True)], spec)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None) -> Any:
    """`func` called on each leaf; the tree itself comes back."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _matching(kind: Any) -> Callable[[Any], bool]:
    if isinstance(kind, (type, tuple)) or not callable(kind):
        return lambda value: isinstance(value, kind)
    return cast(Callable[[Any], bool], kind)


def tree_map_only(kind: Any, func: Any = None, tree: Any = None, is_leaf: IsLeaf | None = None) -> Any:
    """`tree_map` over the leaves of a class, or that a predicate names; the others stay."""
    wanted = _matching(kind)
    return tree_map(lambda value: func(value) if wanted(value) else value, tree, is_leaf=is_leaf)


def tree_map_only_(kind: Any, func: Any, tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """`func` called on the leaves of a class; the tree itself comes back."""
    tree_map_only(kind, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `pred` holds of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `pred` holds of any leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kind: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `pred` holds of all leaves of a class."""
    return all(pred(leaf) for leaf in filter(_matching(kind), tree_leaves(tree, is_leaf)))


def tree_any_only(kind: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `pred` holds of any leaf of a class."""
    return any(pred(leaf) for leaf in filter(_matching(kind), tree_leaves(tree, is_leaf)))


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> list[tuple[tuple[Any, ...], Any]]:
    """The leaves, each with the keys that lead to it."""
    return list(_paths(tree, (), is_leaf))


def _paths(tree: Any, path: tuple[Any, ...], is_leaf: IsLeaf | None) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = NODES[_kind(tree)]
    children, context = node.flatten(tree)
    for key, child in zip(node.keys(context, len(children)), children, strict=True):
        yield from _paths(child, (*path, key), is_leaf)


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf | None = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """The leaves with the keys that lead to them, and the shape around them."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """`tree_map` with the path of each leaf as the first argument of `func`."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    made = [func(path, leaf, *rest) for (path, leaf), *rest in zip(found, *others, strict=True)]
    return tree_unflatten(made, spec)


def keystr(kp: Iterable[Any]) -> str:
    """A path as Python would write it."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What stands at the end of a path."""
    for key in kp:
        if isinstance(key, GetAttrKey):
            obj = getattr(obj, key.name)
        else:
            obj = obj[key.idx if isinstance(key, SequenceKey) else key.key]
    return obj
