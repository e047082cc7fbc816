"""A function in two parts: what can be captured as a function of its own, and what is resumed eagerly from the statement that cannot be.

The first part returns the local variables that the second one reads. Both are compiled from the function's own statements, with its lines.
"""

from __future__ import annotations

import ast
import copy
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .rewrite import Unfollowable, compiled, keep_tree, owner_of, same_code, source_tree, stripped

__all__ = ["Split", "line_in", "loading", "moving_argument", "split_at"]

LIVE = "xt_live"
PEEKING = frozenset(("locals", "vars", "eval", "exec", "dir", "super", "globals"))
NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Split(NamedTuple):
    """A function's parts. head: the first one; rest: what follows, given the live variables and the arguments. line: where it begins.

    unread: positions and names of parameters that the head does not read.
    """

    head: Callable[..., Any]
    rest: Callable[..., Any]
    line: int
    unread: frozenset[Any]

    def head_arguments(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments for the head: None for those that it does not read."""
        unread = self.unread
        if not unread:
            return args, kwargs
        given = [None if at in unread else value for at, value in enumerate(args)]
        return given, {name: None if name in unread else value for name, value in kwargs.items()}


def function_of(function: Any) -> Any:
    """The plain function of a function or method, None for other callables."""
    if isinstance(function, types.MethodType):
        function = function.__func__
    return function if isinstance(function, types.FunctionType) else None


def line_in(function: Any, error: BaseException) -> int:
    """The line of a function that an exception passed, 0 without."""
    plain = function_of(function)
    if plain is None:
        return 0
    code, trace, line = plain.__code__, error.__traceback__, 0
    while trace is not None:
        known = trace.tb_frame.f_code
        if known.co_name == code.co_name and known.co_firstlineno == code.co_firstlineno:
            if known.co_filename == code.co_filename:
                line = trace.tb_lineno
        trace = trace.tb_next
    return line


def body_of(function: Any) -> list[ast.stmt]:
    """The statements of a function, none where its source is not known."""
    plain = function_of(function)
    if plain is None:
        return []
    try:
        tree = source_tree(plain.__code__)
    except Unfollowable:
        return []
    return tree.body if isinstance(tree, ast.FunctionDef) else []


def loading(function: Any, name: str) -> int:
    """The line of a function's first statement that reads a variable or an attribute of this name, 0 without."""
    for statement in body_of(function):
        for node in ast.walk(statement):
            named = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
            if named == name and isinstance(node, (ast.Name, ast.Attribute)):
                return statement.lineno
    return 0


def moving_argument(function: Any, before: Any, now: Any) -> str | None:
    """The parameter whose value is another: by the arguments without their tensors."""
    plain = function_of(function)
    if plain is None or len(before[1]) != len(now[1]) or len(before[2]) != len(now[2]):
        return None
    names = plain.__code__.co_varnames
    offset = isinstance(function, types.MethodType)
    for at, (a, b) in enumerate(zip(before[1][1:], now[1][1:])):
        if a != b:
            return names[at + offset] if at + offset < plain.__code__.co_argcount else None
    return next((b[0] for a, b in zip(before[2][1:], now[2][1:]) if a != b and a[0] == b[0]), None)


def split_at(function: Any, line: int) -> Split | None:
    """A function split before the statement that has a line, None where that cannot be done."""
    plain = function_of(function)
    if plain is None or not line:
        return None
    code = plain.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE) or "__class__" in code.co_freevars:
        return None
    try:
        return _split(function, plain, stripped(source_tree(code)), line)
    except Unfollowable:
        return None


def _split(function: Any, plain: Any, tree: Any, line: int) -> Split | None:
    code = plain.__code__
    if not isinstance(tree, ast.FunctionDef):
        return None
    owner = owner_of(code)
    if not same_code(compiled(tree, code, owner), code):
        return None
    body = tree.body
    at = next((n for n, s in enumerate(body) if s.lineno <= line <= (s.end_lineno or s.lineno)), 0)
    before, after = body[:at], body[at:]
    if not any(isinstance(node, ast.Call) for s in before for node in ast.walk(s)):
        return None
    if any(leaves(s) for s in before) or PEEKING & read_in(body):
        return None
    parameters = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
    more = [a.arg for a in (tree.args.vararg, tree.args.kwarg) if a is not None]
    free = set(code.co_freevars)
    written = stored_in(before) - free
    sure = surely(before)
    live = sorted(read_first(after, set()) & written)
    if any(name not in sure and name not in (*parameters, *more) for name in live):
        return None
    load = ast.Load()
    out = ast.Return(ast.Tuple([ast.Name(n, load) for n in live], load))
    first = ast.FunctionDef(tree.name, tree.args, [*before, placed(out, before[-1])], [], **fields(tree))
    arguments = copy.deepcopy(tree.args)
    (arguments.posonlyargs if arguments.posonlyargs else arguments.args).insert(0, ast.arg(LIVE))
    taken: list[ast.stmt] = []
    if live:
        target = ast.Tuple([ast.Name(n, ast.Store()) for n in live], ast.Store())
        taken = [placed(ast.Assign([target], ast.Name(LIVE, load)), after[0])]
    second = ast.FunctionDef(tree.name, arguments, [*taken, *after], [], **fields(tree))
    head = made(first, plain, owner)
    keep_tree(head.__code__, first)
    rest = made(second, plain, owner)
    needed = read_in(before)
    offset = 0
    if isinstance(function, types.MethodType):
        head, rest, offset = types.MethodType(head, function.__self__), Bound(rest, function.__self__), 1
    unread = {p for p in parameters if p not in needed and p not in live}
    places = {
        n - offset
        for n, p in enumerate(parameters[: len(tree.args.posonlyargs) + len(tree.args.args)])
        if p in unread
    }
    return Split(head, rest, after[0].lineno, frozenset(unread | {p for p in places if p >= 0}))


class Bound:
    """The rest of a method: its object stands behind the live variables."""

    def __init__(self, function: Any, owner: Any) -> None:
        self.function = function
        self.owner = owner

    def __call__(self, live: Any, *args: Any, **kwargs: Any) -> Any:
        return self.function(live, self.owner, *args, **kwargs)


def fields(tree: ast.FunctionDef) -> dict[str, Any]:
    """Where a definition stands."""
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    found = {name: getattr(tree, name) for name in names}
    if "type_params" in ast.FunctionDef._fields:
        found["type_params"] = []
    return found


def placed(node: Any, like: ast.stmt) -> Any:
    """A new statement in the line of another."""
    return ast.fix_missing_locations(ast.copy_location(node, like))


def made(tree: ast.FunctionDef, like: Any, owner: str | None) -> Any:
    """The function of a definition, with the globals and cells of another one."""
    code = compiled(copy.deepcopy(tree), like.__code__, owner)
    cells = dict(zip(like.__code__.co_freevars, like.__closure__ or ()))
    if any(name not in cells for name in code.co_freevars):
        raise Unfollowable("its free variables are others")
    closure = tuple([cells[name] for name in code.co_freevars])
    function = types.FunctionType(code, like.__globals__, like.__name__, like.__defaults__, closure)
    function.__kwdefaults__ = like.__kwdefaults__
    function.__module__, function.__qualname__ = like.__module__, like.__qualname__
    return function


def walk_own(statement: ast.AST) -> Any:
    """The nodes of a statement, without functions within it and the variables of comprehensions."""
    yield statement
    if isinstance(statement, ast.comprehension):
        for child in (statement.iter, *statement.ifs):
            yield from walk_own(child)
    elif not isinstance(statement, NESTED):
        for child in ast.iter_child_nodes(statement):
            yield from walk_own(child)


def leaves(statement: ast.stmt) -> bool:
    """Whether a statement may leave the function, or forget a variable."""
    return any(
        isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Delete, ast.Global, ast.Nonlocal))
        for node in walk_own(statement)
    )


def read_in(nodes: Sequence[ast.AST], bound: frozenset[str] = frozenset()) -> set[str]:
    """The names of the function's that are read, in functions within too; a name that is augmented is read."""
    found: set[str] = set()
    for node in nodes:
        own = bound
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Store) and node.id not in bound:
                found.add(node.id)
            continue
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found |= {node.target.id} - bound
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            found |= read_in([node.generators[0].iter], bound)
            own = bound | names_in([g.target for g in node.generators])
        elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
            given = node.args
            every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
            own = bound | {a.arg for a in every if a is not None}
            if isinstance(node, ast.FunctionDef):
                own |= stored_in(node.body)
        found |= read_in(list(ast.iter_child_nodes(node)), own)
    return found


def names_in(nodes: Sequence[ast.AST]) -> set[str]:
    """All names."""
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def read_first(statements: Sequence[ast.stmt], stored: set[str]) -> set[str]:
    """The names that are read before they are surely set; `stored` gets those that are set in the end."""
    found: set[str] = set()
    for node in statements:
        if isinstance(node, ast.For):
            found |= read_in([node.iter]) - stored
            found |= read_first(node.body, stored | names_in([node.target]))
            found |= read_first(node.orelse, set(stored))
        elif isinstance(node, (ast.If, ast.While)):
            found |= read_in([node.test]) - stored
            found |= read_first(node.body, set(stored)) | read_first(node.orelse, set(stored))
        elif isinstance(node, ast.With):
            found |= read_in(node.items) - stored
            found |= read_first(node.body, stored | surely([ast.With(node.items, [])]))
        else:
            found |= read_in([node]) - stored
        stored |= surely([node])
    return found


def stored_in(statements: Sequence[ast.stmt]) -> set[str]:
    """The local variables that are set."""
    found: set[str] = set()
    for statement in statements:
        for node in walk_own(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                found |= {(a.asname or a.name).partition(".")[0] for a in node.names}
            elif (isinstance(node, ast.ExceptHandler) and node.name) or (
                isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name
            ):
                found.add(node.name)
    return found


def surely(statements: Sequence[ast.stmt]) -> set[str]:
    """The local variables that are set whatever happens."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            found |= surely(statement.body) & surely(statement.orelse)
        elif isinstance(statement, ast.With):
            items = [item.optional_vars for item in statement.items if item.optional_vars is not None]
            found |= stored_in([ast.Expr(item) for item in items]) | surely(statement.body)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.FunctionDef)):
            found |= stored_in([statement])
    return found
