"""A graph that can be called: a Module whose `forward` is generated from it."""

from __future__ import annotations

import builtins
import contextlib
import copy
import itertools
import linecache
import math
import operator
import os
import pathlib
import pickle
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

from .. import checks
from ..nn.modules.module import Module
from ..serialization import save
from .attributes import _assign_attr, _copy_attr, _del_attr, _get_attr, _get_attr_via_attr_list, _has_attr
from .codegen import PythonCode, PyTreeCodeGen
from .graph import Graph
from .names import CUSTOM_BUILTINS
from .node import Node, map_arg

__all__ = [
    "GraphModule",
    "_assign_attr",
    "_copy_attr",
    "_del_attr",
    "_get_attr",
    "_get_attr_via_attr_list",
    "_has_attr",
    "reduce_graph_module",
]

FOLDER = str(pathlib.Path(__file__).resolve().parents[1])
MODULES = os.path.join(FOLDER, "nn", "modules")
FX = os.path.join(FOLDER, "fx")
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
number = itertools.count()


# ---- source --------------------------------------------------------------------------------------------------------


def compiled(code: PythonCode, origin: dict[str, Any]) -> Callable[..., Any]:
    """The function of generated source, whose lines show in tracebacks."""
    name = f"<eval_with_key>.{next(number)}"
    if origin:
        name += f" from {origin['co_filename']}:{origin['co_firstlineno']} in {origin['co_name']}"
    linecache.cache[name] = len(code.src), None, [f"{line}\n" for line in code.src.split("\n")], name
    names = dict(code.globals)
    exec(compile(code.src, name, "exec", dont_inherit=True), names)
    return names["forward"]


def _error_message(frame: traceback.FrameSummary) -> str:
    """Where in the generated code an error came from."""
    line = frame.lineno or 0
    lines = linecache.getlines(frame.filename)
    said = f"Call using an FX-traced Module, line {line} of the traced Module's generated forward function:"
    marker = "~" * len(frame.line or "") + "~~~ <--- HERE"
    before, after = "".join(lines[max(line - 2, 0) : line]), "\n".join(lines[line : line + 2])
    return "\n".join([traceback.format_exc(), said, before, marker, after])


def _is_generated(error: BaseException) -> traceback.FrameSummary | None:
    """The line of generated code that an error came from, where only the library's functions stand below it."""
    frames = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    for frame in reversed(frames):
        if "eval_with_key" in frame.filename:
            return frame
        if not frame.filename.startswith((FOLDER, "<xtensor")) or frame.filename.startswith((MODULES, FX)):
            return None
    return None


def import_block(names: dict[str, Any]) -> str:
    """The statements that import what generated code names."""

    def statement(name: str, value: Any) -> str:
        if name in CUSTOM_BUILTINS:
            return CUSTOM_BUILTINS[name].import_str
        if isinstance(value, types.ModuleType):
            return f"import {value.__name__} as {name}"
        if getattr(value, "__module__", None) == "typing":
            return f"from typing import {value._name} as {name}"
        if not hasattr(value, "__qualname__"):
            return f"{name} = {value!r}"
        module = value.__module__.replace("_operator", "operator")
        head, *rest = value.__qualname__.split(".")
        found = f"from {module} import {head} as {name}"
        return found if not rest else f"{found}\n{name} = {'.'.join([name, *rest])}"

    return "\n".join(sorted(statement(name, value) for name, value in names.items()))


# ---- the module ----------------------------------------------------------------------------------------------------


class WrappedCall:
    """What a call of a GraphModule does: the generated code, and for an error in it the line."""

    def __init__(self, cls: type, cls_call: Callable[..., Any] | None) -> None:
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # pyright: ignore[reportAttributeAccessIssue]
        except Exception as error:
            frame = _is_generated(error)
            if frame is None:
                raise
            print(_error_message(frame), file=sys.stderr)
            raise error.with_traceback(None)  # noqa: B904


class GraphModule(Module):
    """A Module that runs a graph: its `forward` is Python that is generated when `graph` is assigned, or by `recompile()`.

    root: the module that attributes and submodules of the graph are taken from, or a dict of them by path. Every GraphModule has a
    class of its own, named `class_name`. Differs from PyTorch: pickle loads one, `xtensor.load` of a whole GraphModule does not, for
    files do not run what they say; its `state_dict` is loaded like any module's.

    >>> traced = xtensor.fx.symbolic_trace(xtensor.nn.Sequential(xtensor.nn.Flatten(), xtensor.nn.ReLU()))
    >>> print(traced.code.strip())
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, "0")(input_1);  input_1 = None
        _1 = getattr(self, "1")(_0);  _0 = None
        return _1
    """

    _graph: Graph
    _code: str
    meta: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        base = next(kind for kind in cls.__mro__ if kind.__qualname__.rpartition(".")[2] != "GraphModuleImpl")

        class GraphModuleImpl(base):
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [str(n.target) for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for target in sorted(dict.fromkeys(targets), key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._replace_hooks: list[Any] = []
        self._create_node_hooks: list[Any] = []
        self._erase_node_hooks: list[Any] = []
        self._deepcopy_hooks: list[Any] = []
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self.meta = dict(getattr(root, "meta", None) or {}) if isinstance(root, GraphModule) else {}

    @property
    def graph(self) -> Graph:
        """The graph; assigning one generates the code anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source that runs."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Generate the code from the graph; to be called when the graph was changed."""
        codegen = self._graph._codegen
        if isinstance(codegen, PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        code = self._graph.python_code(root_module="self")
        self._code = code.src
        cls: Any = type(self)
        cls.forward = compiled(code, self._graph._co_fields)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = WrappedCall(cls, vars(cls).get("__call__"))

            def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
                return self._wrapped_call(self, *args, **kwargs)

            cls.__call__ = call_wrapped
        return code

    # -- submodules

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module under a path, with modules on the way; False where something else is on the way."""
        *path, name = target.split(".")
        holder: Any = self
        for part in path:
            found = getattr(holder, part, None)
            if found is None:
                found = Module()
                setattr(holder, part, found)
            if not isinstance(found, Module):
                return False
            holder = found
        holder.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take out the module under a path; False where there is none."""
        *path, name = target.split(".")
        holder: Any = self
        for part in path:
            holder = getattr(holder, part, None)
            if not isinstance(holder, Module):
                return False
        if not isinstance(getattr(holder, name, None), Module):
            return False
        delattr(holder, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out the modules that the graph neither calls nor reads from."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                path = str(node.target).split(".")
                used.update(".".join(path[: i + 1]) for i in range(len(path)))
                if node.op == "call_module":
                    try:
                        below = self.get_submodule(str(node.target))
                    except AttributeError:
                        continue
                    used.update(f"{node.target}.{name}" for name, _ in below.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # -- copies and files

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        held = CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(made, held, held.__dict__["_graph"])
        made._graph._co_fields = dict(self._graph._co_fields)
        made.recompile()
        for name in HOOKS:
            if name in self.__dict__:
                made.__dict__[name] = copy.deepcopy(self.__dict__[name], memo)
        made.meta = copy.copy(self.meta)
        for name, value in self.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in self._deepcopy_hooks:
            hook(made)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph, type(self).__name__)
        self.graph.owning_module = self
        made.meta = self.meta
        return made

    def __reduce__(self) -> Any:
        body = {name: value for name, value in self.__dict__.items() if name not in ("_graph", "_code")}
        codegen = self._graph._codegen
        records, index = [], {node: i for i, node in enumerate(self._graph.nodes)}
        for node in index:
            args = map_arg((node.args, node.kwargs), lambda n: Reference(index[n]))
            target = BuiltIn(node.target) if is_built_in(node.target) else node.target
            records.append((node.op, target, args, node.name, node.type, node.meta.get("is_wrapped", False)))
        return reduce_graph_module, (body, records, type(self).__name__, codegen)

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module to a folder, as a package with a class of that name, its submodules and its parameters in files."""
        place = pathlib.Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        save(self.state_dict(), place / "state_dict.pt")
        code = self._graph.python_code(root_module="self")
        lines = [
            import_block(code.globals),
            "",
            "import pathlib",
            "import pickle",
            "",
            "import xtensor",
            "",
            "FOLDER = pathlib.Path(__file__).resolve().parent",
            "",
            "",
            f"class {module_name}(xtensor.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
        ]
        for name, child in self.named_children():
            (place / f"{name}.pkl").write_bytes(pickle.dumps(child))
            lines.append(
                f'        self.add_module({name!r}, pickle.loads((FOLDER / "{name}.pkl").read_bytes()))'
            )
        for name, buffer in self._buffers.items():
            if buffer is not None:
                lines.append(
                    f"        self.register_buffer({name!r}, xtensor.empty({list(buffer.shape)}, dtype=xtensor.{buffer.dtype.name}))"
                )
        for name, param in self._parameters.items():
            if param is not None:
                made = f"xtensor.empty({list(param.shape)}, dtype=xtensor.{param.dtype.name})"
                lines.append(
                    f"        self.{name} = xtensor.nn.Parameter({made}, requires_grad={param.requires_grad})"
                )
        lines.append('        self.load_state_dict(xtensor.load(FOLDER / "state_dict.pt"))')
        wraps, head, body = code.src.partition("\ndef ")
        body = f"{head.strip()} {body}".replace("\n", "\n    ").rstrip()
        lines[1:1] = wraps.strip().split("\n")
        lines += ["", f"    {body}", ""]
        (place / "module.py").write_text("\n".join(lines), "utf-8")
        (place / "__init__.py").write_text("from .module import *\n", "utf-8")

    # -- text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        **options: Any,
    ) -> str:
        """Print the code with dtypes, sizes and lines of origin, where they are known, and that of graphs below; also given."""
        return _print_readable(self, self._get_name(), print_output, include_stride, include_device)

    # -- hooks on changes of the graph

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable[..., Any]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable[..., Any]) -> None:
        self._erase_node_hooks.remove(f)


HOOKS = (
    "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_forward_hooks", "_forward_pre_hooks",
    "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called", "_backward_hooks",
    "_backward_pre_hooks", "_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks",
)  # fmt: skip


class CodeOnlyModule(Module):
    """A module of attributes alone, that a GraphModule is made from."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


_CodeOnlyModule = CodeOnlyModule


BUILT_IN = {"_operator": operator, "builtins": builtins, "math": math}


def is_built_in(target: Any) -> bool:
    """Whether a target is one of Python's own functions, which not every loader finds."""
    return isinstance(target, types.BuiltinFunctionType) and target.__module__ in BUILT_IN


class BuiltIn:
    """One of Python's functions in a pickled graph, by name."""

    def __init__(self, function: Any) -> None:
        self.module, self.name = function.__module__, function.__name__


class Reference:
    """A node's place in a pickled graph."""

    def __init__(self, index: int) -> None:
        self.index = index


def reduce_graph_module(
    body: dict[str, Any], records: list[Any], class_name: str, codegen: Any
) -> GraphModule:
    """The GraphModule of a pickle."""
    graph = Graph()
    graph._codegen = codegen
    nodes: list[Node] = []

    def found(value: Any) -> Any:
        if isinstance(value, Reference):
            return nodes[value.index]
        if isinstance(value, tuple):
            parts = [found(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if isinstance(value, list):
            return [found(part) for part in value]
        if isinstance(value, dict):
            return {key: found(part) for key, part in value.items()}
        if isinstance(value, slice):
            return slice(found(value.start), found(value.stop), found(value.step))
        return value

    for op, target, args, name, kind, wrapped in records:
        given, named = found(args)
        if isinstance(target, BuiltIn):
            target = getattr(BUILT_IN[target.module], target.name)
        node = graph.create_node(op, target, given, named, name, kind)
        if wrapped:
            node.meta["is_wrapped"] = True
        nodes.append(node)
    graph._tracer_cls = body.get("_tracer_cls")
    made = GraphModule(CodeOnlyModule(body), graph, class_name)
    for name, value in body.items():
        if name not in made.__dict__:
            made.__dict__[name] = value
    made.meta = body.get("meta", {})
    return made


def _print_readable(
    module: Any,
    module_name: str,
    print_output: bool = True,
    include_stride: bool = False,
    include_device: bool = False,
    colored: bool = False,
    **options: Any,
) -> str:
    code = module.graph.python_code(
        "self", verbose=True, include_stride=include_stride, include_device=include_device
    ).src.lstrip("\n")
    text = f"class {module_name}({checks.spelled('nn.Module')}):\n{_indented(code)}"
    for name, child in module.named_children():
        if hasattr(child, "graph"):
            text += "\n" + _indented(_print_readable(child, name, False, include_stride, include_device))
    if print_output:
        print(text)
    return text


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line.strip() else "" for line in text.split("\n"))
