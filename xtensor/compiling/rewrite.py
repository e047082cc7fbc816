"""A user's function with its reads, writes and calls going by a recorder: the source rewritten, as a code object for the same function.

`a.b` becomes `R.attr(a, "b")`, `a[i]` becomes `R.item(a, i)`, `f(x)` becomes `R.call(f)(x)`; an object that is written to goes by
`R.own`, a list that is made by `R.new`. What cannot be followed so raises `Unfollowable`.
"""

from __future__ import annotations

import ast
import copy
import dis
import inspect
import linecache
import textwrap
import tokenize
import types
from typing import Any

__all__ = [
    "Unfollowable",
    "compiled",
    "keep_tree",
    "owner_of",
    "rewritten",
    "same_code",
    "source_tree",
    "stripped",
]

MARK = "<xtensor recorder>"


class Unfollowable(Exception):
    """Why a function cannot be rewritten."""


def names_read(code: types.CodeType) -> set[str]:
    """The globals that a code object reads, in all functions within it too; Unfollowable where it writes some."""
    found: set[str] = set()
    for op in dis.get_instructions(code):
        if op.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found.add(op.argval)
        elif op.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            raise Unfollowable(f"it sets the global {op.argval}")
        elif op.opname in ("STORE_DEREF", "DELETE_DEREF") and op.argval in code.co_freevars:
            raise Unfollowable(f"it sets {op.argval} of a function around it")
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= names_read(const)
    return found


class _Rewriter(ast.NodeTransformer):
    """Puts the recorder's calls in."""

    def __init__(self, owner: str | None, names: set[str]) -> None:
        self.owner = owner
        self.names = names

    def _call(self, name: str, *args: ast.expr, at: ast.AST) -> Any:
        recorder = ast.Constant(MARK)
        made = ast.Call(ast.Attribute(recorder, name, ast.Load()), list(args), [])
        return ast.fix_missing_locations(ast.copy_location(made, at))

    def _mangled(self, name: str) -> str:
        owner = (self.owner or "").lstrip("_")
        private = name.startswith("__") and not name.endswith("__")
        return f"_{owner}{name}" if private and owner else name

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self.names and isinstance(node.ctx, ast.Load):
            return self._call("named", ast.Constant(node.id), node, at=node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        name = ast.Constant(self._mangled(node.attr))
        if isinstance(node.ctx, ast.Load):
            return self._call("attr", self.visit(node.value), name, at=node)
        node.value = self._call("own", self.visit(node.value), name, at=node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.ctx, ast.Load):
            index = self.visit(node.slice)
            if _has_slices(index):
                index = _as_value(index)
            return self._call("item", self.visit(node.value), index, at=node)
        node.value = self._call("own", self.visit(node.value), ast.Constant(None), at=node.value)
        node.slice = self.visit(node.slice)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return node
        self.generic_visit(node)
        node.func = self._call("call", node.func, at=node.func)
        return node

    def _new(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
            return node
        return self._call("new", node, at=node)

    visit_List = visit_Dict = visit_Set = visit_ListComp = visit_DictComp = visit_SetComp = _new

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if isinstance(node.target, ast.Attribute):
            node.value = self.visit(node.value)
            name = ast.Constant(self._mangled(node.target.attr))
            node.target.value = self._call("grown", self.visit(node.target.value), name, at=node.target)
            node.value = self._call("operand", node.value, at=node)
            return node
        if not isinstance(node.target, ast.Name):
            self.generic_visit(node)
            node.value = self._call("operand", node.value, at=node)
            return node
        node.value = self._call("operand", self.visit(node.value), at=node)
        name = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
        return [ast.copy_location(ast.Expr(self._call("grow", name, at=node)), node), node]

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Any:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(self._call("caught", at=node)), node))
        return node

    def visit_arguments(self, node: ast.arguments) -> Any:
        for each in (*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg):
            if each is not None:
                each.annotation = None
        node.defaults = [self.visit(d) for d in node.defaults]
        node.kw_defaults = [None if d is None else self.visit(d) for d in node.kw_defaults]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        self.generic_visit(node)
        if node.args.kwarg is not None:
            made = self._call("new", ast.Name(node.args.kwarg.arg, ast.Load()), at=node)
            node.body.insert(0, ast.copy_location(ast.Expr(made), node))
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return node
        made = ast.Assign([node.target], node.value)
        return self.visit(ast.copy_location(made, node))

    def _refuse(self, node: Any) -> Any:
        raise Unfollowable(f"it has {type(node).__name__} in line {node.lineno}")

    visit_Match = visit_AsyncFunctionDef = visit_Await = visit_Global = visit_ClassDef = visit_Nonlocal = (
        _refuse
    )


def _has_slices(index: Any) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(p, (ast.Slice, ast.Starred)) for p in parts)


def _as_value(index: Any) -> Any:
    """An index with slices as an expression that stands anywhere."""
    if isinstance(index, ast.Slice):
        none = ast.Constant(None)
        parts = [index.lower or none, index.upper or none, index.step or none]
        return ast.copy_location(
            ast.Call(ast.Attribute(ast.Constant(MARK), "slice", ast.Load()), parts, []), index
        )
    if isinstance(index, ast.Tuple):
        index.elts = [_as_value(e) for e in index.elts]
    return index


_trees: dict[int, tuple[types.CodeType, Any]] = {}


def keep_tree(code: types.CodeType, tree: Any) -> None:
    """What `source_tree` gives for a code object that is no file's."""
    _trees[id(code)] = code, tree


def source_tree(code: types.CodeType) -> Any:
    """The definition or lambda that a code object was compiled from."""
    kept = _trees.get(id(code))
    if kept is not None:
        return copy.deepcopy(kept[1])
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise Unfollowable("its source is not there")
    if code.co_name == "<lambda>":
        return _lambda_of(code, lines)
    try:
        block = inspect.getblock(lines[code.co_firstlineno - 1 :])
        tree = ast.parse(textwrap.dedent("".join(block)))
    except (SyntaxError, IndexError, OSError, inspect.EndOfBlock, tokenize.TokenError):
        raise Unfollowable("its source cannot be read") from None
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    found = tree.body[0] if tree.body else None
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name:
        raise Unfollowable("its source is another's")
    return found


def _lambda_of(code: types.CodeType, lines: list[str]) -> Any:
    """The lambda in a file that compiles to the same code."""
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        raise Unfollowable("its source cannot be read") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and node.lineno <= code.co_firstlineno <= (node.end_lineno or 0):
            if compiled(node, code, None).co_code == code.co_code:
                return node
    raise Unfollowable("its source is another's")


_imported: dict[str, tuple[int, list[str]]] = {}


def imported(file: str) -> list[str]:
    """The names that a file imports for all of itself."""
    lines = linecache.getlines(file)
    found = _imported.get(file)
    if found is not None and found[0] == len(lines):
        return found[1]
    names: list[str] = []
    try:
        stack: list[Any] = list(ast.parse("".join(lines)).body)
    except SyntaxError:
        stack = []
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names += [(a.asname or a.name).partition(".")[0] for a in node.names if a.name != "*"]
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)
    _imported[file] = (len(lines), sorted(set(names)))
    return _imported[file][1]


def compiled(node: Any, code: types.CodeType, owner: str | None) -> types.CodeType:
    """The code object of a definition or lambda, with the same free variables."""
    free = [n for n in code.co_freevars if n != "__class__" or owner is None]
    body: list[ast.stmt] = [ast.Return(node) if isinstance(node, ast.Lambda) else node]
    if owner is not None:
        body = [ast.ClassDef(owner, [], [], body, [], **_type_params())]
    for name in free:
        body.insert(0, ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)))
    # A function that calls itself, and a class that its methods name, are globals.
    named = {getattr(node, "name", owner), owner} - {None, *free}
    if named:
        body.insert(0, ast.Global(sorted(named)))
    none = ast.arguments([], [], None, [], [], None, [])
    maker = ast.FunctionDef("make", none, body, [], **_type_params())
    # CPython compiles calls of what a module imports in a way of their own.
    known = [ast.Import([ast.alias(name)]) for name in imported(code.co_filename)]
    module = ast.fix_missing_locations(ast.Module([*known, maker], []))
    flags = code.co_flags & 0x1FE0000  # of `from __future__`
    try:
        whole = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, TypeError) as error:
        raise Unfollowable(f"its source cannot be compiled again: {error}") from None
    stack = [whole]
    while stack:
        for const in stack.pop().co_consts:
            if isinstance(const, types.CodeType):
                if const.co_name == code.co_name and const.co_firstlineno >= code.co_firstlineno - 1:
                    return const
                stack.append(const)
    raise Unfollowable("its source cannot be compiled again")


def _type_params() -> dict[str, Any]:
    return {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}


def with_recorder(code: types.CodeType, recorder: Any) -> types.CodeType:
    """The code with the recorder where its mark stands."""
    consts = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            const = with_recorder(const, recorder)
        elif type(const) is str and const == MARK:
            const = recorder
        consts.append(const)
    return code.replace(co_consts=tuple(consts))


def owner_of(code: types.CodeType) -> str | None:
    """The name of the class that a function was defined in."""
    parts = getattr(code, "co_qualname", code.co_name).split(".")
    return parts[-2] if len(parts) > 1 and parts[-2].isidentifier() else None


def stripped(tree: Any) -> Any:
    """A definition without decorators, annotations and the values of defaults."""
    if isinstance(tree, ast.FunctionDef):
        tree.decorator_list = []
        tree.returns = None
        given = tree.args
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if each is not None:
                each.annotation = None
        given.defaults = [ast.Constant(None) for _ in given.defaults]
        given.kw_defaults = [None if d is None else ast.Constant(None) for d in given.kw_defaults]
    return tree


def names_bound(code: types.CodeType) -> set[str]:
    """The names that are variables of the code's own, or of a function within it."""
    found = {*code.co_varnames, *code.co_cellvars}
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= names_bound(const)
    return found


def rewritten(code: types.CodeType, recorder: Any, names: set[str]) -> types.CodeType:
    """A code object that does what this one does, and tells the recorder; Unfollowable where there is none.

    names: of variables from outside whose values the recorder gives.
    """
    names_read(code)
    owner = owner_of(code)
    tree = stripped(source_tree(code))
    if isinstance(tree, ast.FunctionDef) and not same_code(compiled(tree, code, owner), code):
        raise Unfollowable("its source is not what it was compiled from")
    rewriter = _Rewriter(owner, names - names_bound(code))
    if isinstance(tree, ast.Lambda):
        tree.body = rewriter.visit(tree.body)
    else:
        body: list[ast.stmt] = []
        for statement in tree.body:
            found = rewriter.visit(statement)
            body += found if isinstance(found, list) else [found]
        enter: list[ast.stmt] = []
        if tree.args.kwarg is not None:
            enter.append(ast.Expr(rewriter._call("new", ast.Name(tree.args.kwarg.arg, ast.Load()), at=tree)))
        tree.body = [*enter, *body]
    ast.fix_missing_locations(tree)
    made = compiled(tree, code, owner)
    if made.co_freevars != code.co_freevars or made.co_argcount != code.co_argcount:
        raise Unfollowable("its free variables are others")
    return with_recorder(made, recorder)


def same_code(a: types.CodeType, b: types.CodeType) -> bool:
    """Whether two code objects do the same."""
    return a.co_code == b.co_code and a.co_names == b.co_names and a.co_varnames == b.co_varnames
