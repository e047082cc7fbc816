"""The bodies of a program's training loops, as functions: what a user would do by hand to have them compiled.

In the body of an innermost loop that calls `backward`, the longest run of statements around that call which reads nothing on the host
becomes a function. What the loop assigns it takes as arguments, what is used outside of it returns.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

__all__ = ["hoisted"]

HOST = ("item", "tolist", "append", "insert", "extend", "update_bn", "remove")
DRAWS = ("tensor", "classes", "numbers")
STEPS = 20


def calls(node: ast.AST, *names: str) -> bool:
    """Whether a method or function of one of these names is called somewhere within."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            called = each.func
            if (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) in names:
                return True
    return False


def names_of(nodes: Sequence[ast.AST], kind: type) -> set[str]:
    """The names that are loaded, or stored, somewhere within; a name that is augmented is both."""
    found: set[str] = set()
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, kind):
                found.add(each.id)
            elif isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
                found.add(each.target.id)
    return found


def loaded_first(body: Sequence[ast.stmt], stored: set[str]) -> set[str]:
    """The names that are loaded before they are stored; `stored` gets those that surely are in the end."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.For):
            found |= names_of([node.iter], ast.Load) - stored
            within = stored | names_of([node.target], ast.Store)
            found |= loaded_first(node.body, within)
        elif isinstance(node, (ast.If, ast.While)):
            found |= names_of([node.test], ast.Load) - stored
            branches = set(stored), set(stored)
            found |= loaded_first(node.body, branches[0]) | loaded_first(node.orelse, branches[1])
            stored |= branches[0] & branches[1]
        elif isinstance(node, ast.With):
            found |= names_of([*node.items], ast.Load) - stored
            stored |= names_of([*node.items], ast.Store)
            found |= loaded_first(node.body, stored)
        else:
            found |= names_of([node], ast.Load) - stored
            stored |= names_of([node], ast.Store)
    return found


def bound_within(nodes: Sequence[ast.AST]) -> set[str]:
    """Names that comprehensions and lambdas bind for themselves."""
    found: set[str] = set()
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.comprehension):
                found |= names_of([each.target], ast.Store)
            elif isinstance(each, ast.Lambda):
                found |= {a.arg for a in each.args.args}
    return found


def on_host(statement: ast.stmt) -> bool:
    """Whether a statement reads values on the host, or changes Python's world."""
    if calls(statement, *HOST) or isinstance(statement, (ast.Return, ast.Break, ast.Continue, ast.Assert)):
        return True
    leaving = (ast.Break, ast.Continue, ast.Return, ast.FunctionDef, ast.ClassDef, ast.Yield)
    return any(isinstance(each, leaving) for each in ast.walk(statement))


class _Inputs(ast.NodeTransformer):
    """Data that a body draws become arguments."""

    def __init__(self, stored: set[str]) -> None:
        self.stored = stored
        self.found: list[ast.expr] = []

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in DRAWS:
            if not names_of([node], ast.Load) & self.stored:
                self.found.append(node)
                return ast.Name(f"data_{len(self.found) - 1}", ast.Load())
        return node


class _Hoister(ast.NodeTransformer):
    """Moves what it finds."""

    def __init__(self) -> None:
        self.made = 0
        self.functions: list[ast.FunctionDef] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.functions.append(node)
        self.generic_visit(node)
        self.functions.pop()
        return node

    def visit_For(self, node: ast.For) -> Any:
        before = self.made
        self.generic_visit(node)
        if self.made > before or not self.functions or not calls(node, "backward"):
            return node
        run = self._run(node.body)
        if run is None:
            return node
        first, last = run
        body = node.body[first:last]
        node.body[first:last] = []
        whole = self.functions[-1].body
        outside = loaded_first(whole, set()) | names_of(
            whole[: whole.index(node)] if node in whole else whole, ast.Store
        )
        self.made += 1
        iterated = node.iter
        if isinstance(iterated, ast.Call) and getattr(iterated.func, "id", "") == "range":
            if len(iterated.args) == 1 and isinstance(iterated.args[0], ast.Constant):
                iterated.args[0] = ast.Constant(STEPS)
        inputs = _Inputs(names_of(body, ast.Store))
        body = [inputs.visit(statement) for statement in body]
        own = bound_within(body)
        stored = names_of(body, ast.Store) - own
        of_loop = names_of([node.target, *node.body, *body], ast.Store)
        drawn = [f"data_{number}" for number in range(len(inputs.found))]
        carried = {
            n for n in names_of(body, ast.Load) - own if n in of_loop and n in loaded_first(body, set())
        }
        given, left = sorted(carried), sorted(n for n in stored if n in outside | carried)
        name = f"step_{self.made}"
        # Made before the loop, so that it is one function for all of its turns.
        arguments = ast.arguments([], [ast.arg(n) for n in (*given, *drawn)], None, [], [], None, [])
        result = ast.Return(ast.Tuple([ast.Name(n, ast.Load()) for n in left], ast.Load()))
        options: dict[str, Any] = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}
        function = ast.FunctionDef(name, arguments, [*body, result], [], **options)
        taken = ast.Assign(
            [ast.Name(name, ast.Store())],
            ast.Call(ast.Name("_taken_out", ast.Load()), [ast.Name(name, ast.Load())], []),
        )
        call: Any = ast.Call(
            ast.Name(name, ast.Load()), [*[ast.Name(n, ast.Load()) for n in given], *inputs.found], []
        )
        target = ast.Tuple([ast.Name(n, ast.Store()) for n in left], ast.Store())
        call = ast.Assign([target], call) if left else ast.Expr(call)
        node.body[first:first] = [call]
        return [function, taken, node]

    @staticmethod
    def _run(body: list[ast.stmt]) -> tuple[int, int] | None:
        found = None
        for at, statement in enumerate(body):
            if calls(statement, "backward") and not on_host(statement):
                first = last = at
                while first > 0 and not on_host(body[first - 1]):
                    first -= 1
                while last + 1 < len(body) and not on_host(body[last + 1]):
                    last += 1
                found = (first, last + 1)
        return found


def hoisted(text: str) -> tuple[str, int]:
    """A program's text with its training steps as functions, each given to `_taken_out`, and how many there are."""
    hoister = _Hoister()
    tree = hoister.visit(ast.parse(text))
    return ast.unparse(ast.fix_missing_locations(tree)), hoister.made
