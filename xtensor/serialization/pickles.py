"""A pickle machine that runs nothing of what it reads.

It knows containers, numbers, strings and the calls it was told of. What a global means, and what may be called or
given a state, a Policy decides; every name must come from there, so nothing is imported and nothing looked up.
"""

from __future__ import annotations

import pickle
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError, decode_long
from typing import Any, Protocol

from .errors import FileFormatError
from .source import Source

__all__ = ["Global", "Machine", "Policy", "Reader"]


class Global:
    """What stands for a name in a pickle: a value, and what a call of it does (None: it cannot be called)."""

    __slots__ = ("call", "value")

    def __init__(self, value: Any, call: Callable[..., Any] | None = None) -> None:
        self.value, self.call = value, call


class Policy(Protocol):
    """Who decides what a pickle may do."""

    def find(self, name: str, where: Callable[[], str]) -> Global:
        """What `name` (module and qualified name) stands for; UnpicklingError refuses it."""
        ...

    def trusts(self, kind: type[Any]) -> bool:
        """Whether objects of this class may be filled and given a state as they like it."""
        ...

    def persistent(self, saved: Any) -> Any:
        """The storage that a persistent id names."""
        ...


class Reader:
    """The bytes of a source in order, a few kilobytes at a time."""

    def __init__(self, source: Source, start: int, stop: int, name: str) -> None:
        self.source, self.stop, self.name = source, stop, name
        self.next = start
        self.buffer, self.at = b"", 0

    @property
    def position(self) -> int:
        return self.next - len(self.buffer) + self.at

    def take(self, count: int) -> bytes:
        at = self.at
        data = self.buffer[at : at + count]
        if len(data) == count:
            self.at = at + count
            return data
        position = self.position
        if count > self.stop - position:
            raise EOFError(f"Ran out of input: {count} bytes expected at byte {position} of {self.name}")
        ahead = min(max(count, 1 << 16), self.stop - position)
        self.buffer = self.source.read(position, ahead)
        self.next = position + ahead
        self.at = count
        return self.buffer[:count]

    def line(self) -> str:
        found = bytearray()
        while (byte := self.take(1)) != b"\n":
            found += byte
            if len(found) > 4096:
                raise UnpicklingError(
                    f"a name of more than 4096 bytes at byte {self.position} of {self.name}"
                )
        return found.decode("utf-8")


MAPPINGS = (dict, OrderedDict, Counter)
MOST_KEY_PARTS = 10_000


class Machine:
    """Reads one pickle: `Machine(reader, policy).load()`."""

    def __init__(self, reader: Reader, policy: Policy, encoding: str = "utf-8") -> None:
        self.reader, self.policy, self.encoding = reader, policy, encoding
        self.take = reader.take
        self.stack: list[Any] = []
        self.frames: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.callable: dict[int, Global] = {}
        self.protocol = 0

    def load(self) -> Any:
        """The object; UnpicklingError, EOFError or what a trusted callable raises where there is none."""
        take = self.take
        while True:
            code = take(1)[0]
            if code == STOP:
                if not self.stack:
                    raise self.error("unpickling stack underflow")
                return self.pop()
            if code == PERSISTENT:
                # What goes wrong with a storage is no fault of the pickle.
                self.push(self.policy.persistent(self.stack.pop() if self.stack else None))
                continue
            action = ACTIONS[code]
            if action is None:
                raise self.error(f"Unsupported operand {code}")
            try:
                action(self)
            except (IndexError, KeyError) as problem:
                raise self.error(f"the pickle is damaged ({type(problem).__name__})") from problem
            except (TypeError, ValueError, struct.error, OverflowError, AttributeError) as problem:
                raise self.error(str(problem)) from problem

    def error(self, what: str) -> UnpicklingError:
        return UnpicklingError(f"{what} ({self.where()})")

    # ---- where ---------------------------------------------------------------------------------------------------

    def where(self) -> str:
        """Byte and path of what is read now, for errors."""
        path = "".join(f"[{shown(key)}]" for key in self.trail())
        return f"at byte {self.reader.position} of {self.reader.name}" + (f", in {path}" if path else "")

    def trail(self) -> list[Any]:
        """The keys that lead to what is read now, as far as the stack tells."""
        path: list[Any] = []
        frames = [*self.frames, self.stack]
        for depth, items in enumerate(frames):
            last = depth == len(frames) - 1
            holder = frames[depth - 1][-1] if depth and frames[depth - 1] else None
            at = len(items)
            if type(holder) in MAPPINGS and items:
                at = len(items) - 1 if last and len(items) % 2 else (len(items) - 2) // 2 * 2
                path.append(items[max(at, 0)])
            elif type(holder) is list:
                path.append(len(holder) + (len(items) if last else max(len(items) - 1, 0)))
            else:
                at = -1
            # A dict of one item has no mark.
            for item, key in zip(items[at + 1 :], items[at + 2 :]):
                if type(item) in MAPPINGS and isinstance(key, (str, int)):
                    path.append(key)
        return path

    def start(self) -> None:
        self.protocol = self.take(1)[0]

    # ---- stack ---------------------------------------------------------------------------------------------------

    def pop(self) -> Any:
        return self.stack.pop()

    def marked(self) -> list[Any]:
        items = self.stack
        if not self.frames:
            raise self.error("the pickle is damaged (no mark)")
        self.stack = self.frames.pop()
        return items

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def push_marked(self, kind: Callable[[list[Any]], Any]) -> None:
        items = self.marked()
        self.stack.append(kind(items))

    def mark(self) -> None:
        self.frames.append(self.stack)
        self.stack = []

    def get(self, index: int) -> None:
        self.stack.append(self.memo[index])

    def put(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def tuple(self, count: int) -> None:
        if len(self.stack) < count:
            raise self.error("the pickle is damaged (stack too short)")
        self.stack[-count:] = [tuple(self.stack[-count:])]

    # ---- numbers and strings -------------------------------------------------------------------------------------

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def long(self, layout: str) -> None:
        count = self.number(layout)
        if count < 0:
            raise self.error("LONG pickle has negative byte count")
        self.push(decode_long(self.take(count)))

    def text(self, layout: str) -> None:
        self.push(str(self.take(self.number(layout)), "utf-8", "surrogatepass"))

    def binary(self, layout: str, kind: Callable[[bytes], Any] = bytes) -> None:
        self.push(kind(self.take(self.number(layout))))

    def string(self, layout: str) -> None:
        """A Python 2 string."""
        count = self.number(layout)
        if count < 0:
            raise self.error("BINSTRING pickle has negative byte count")
        data = self.take(count)
        self.push(data if self.encoding == "bytes" else data.decode(self.encoding))

    # ---- containers ----------------------------------------------------------------------------------------------

    def extend(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list and not self.policy.trusts(type(target)):
            raise self.error(f"Can only append to lists, but got {type(target)}")
        if type(target) is list or hasattr(target, "extend"):
            target.extend(items)
        else:
            for item in items:
                target.append(item)

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) not in MAPPINGS and not self.policy.trusts(type(target)):
            raise self.error(
                "Can only SETITEM for dict, collections.OrderedDict, collections.Counter, but got "
                f"{type(target)}"
            )
        if len(items) % 2:
            raise self.error("the pickle is damaged (a key without a value)")
        for i in range(0, len(items), 2):
            target[checked_key(items[i])] = items[i + 1]

    def add_items(self) -> None:
        items = self.marked()
        target = self.stack[-1]
        if type(target) is not set and not self.policy.trusts(type(target)):
            raise self.error(f"Can only add items to sets, but got {type(target)}")
        for item in items:
            target.add(checked_key(item))

    def one_item(self) -> None:
        value, key = self.pop(), self.pop()
        self.set_items([key, value])

    # ---- globals and calls ---------------------------------------------------------------------------------------

    def find(self, module: str, name: str) -> None:
        if self.protocol < 3:
            # Named as Python 2 did, by Python 3 too.
            module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        found = self.policy.find(f"{module}.{name}", self.where)
        if found.call is not None:
            self.callable[id(found.value)] = found
        self.push(found.value)

    def stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        if type(name) is not str or type(module) is not str:
            raise self.error("STACK_GLOBAL requires str")
        self.find(module, name)

    def call_of(self, function: Any) -> Global:
        found = self.callable.get(id(function))
        if found is None or found.call is None:
            raise self.error(
                f"Trying to call reduce for unrecognized function of type {type(function).__name__}"
            )
        return found

    def reduce(self) -> None:
        arguments, function = self.pop(), self.stack[-1]
        call = self.call_of(function).call
        if type(arguments) is not tuple or call is None:
            raise self.error("the pickle is damaged (arguments that are no tuple)")
        self.stack[-1] = self.called(call, *arguments)

    def new_object(self, keywords: bool) -> None:
        named = self.pop() if keywords else {}
        arguments, kind = self.pop(), self.pop()
        call = self.call_of(kind).call
        if type(arguments) is not tuple or type(named) is not dict or call is None:
            raise self.error("the pickle is damaged (arguments that are no tuple)")
        if call is kind and isinstance(kind, type):
            self.push(self.called(kind.__new__, kind, *arguments, **named))
        else:
            self.push(self.called(call, *arguments, **named))

    def called(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except FileFormatError as problem:
            raise FileFormatError(f"{problem} ({self.where()})") from None
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError) as problem:
            name = getattr(function, "__qualname__", type(function).__name__)
            raise self.error(f"{name}: {type(problem).__name__}: {problem}") from problem

    def build(self) -> None:
        state = self.pop()
        target = self.stack[-1]
        if type(target) is OrderedDict:
            if type(state) is not dict:
                raise self.error("the pickle is damaged (a state that is no dict)")
            target.__dict__.update(state)
        elif not self.policy.trusts(type(target)):
            raise self.error(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{type(target)}"
            )
        elif hasattr(target, "__setstate__"):
            self.called(target.__setstate__, state)
        else:
            set_state(target, state)


def set_state(target: Any, state: Any) -> None:
    """What pickle does with the state of an object that has no `__setstate__`."""
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def shown(key: Any) -> str:
    text = repr(key) if isinstance(key, (str, int, float, bytes)) else f"<{type(key).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}..."


def checked_key(key: Any) -> Any:
    """`key`, unless it is so large or deep that hashing it would take for ever."""
    if type(key) not in (tuple, frozenset):
        return key
    parts, waiting = 0, [(key, 0)]
    while waiting:
        part, depth = waiting.pop()
        parts += len(part)
        if parts > MOST_KEY_PARTS or depth > 100:
            raise UnpicklingError("a key is too large to be hashed")
        waiting += [(inner, depth + 1) for inner in part if type(inner) in (tuple, frozenset)]
    return key


STOP, PERSISTENT = pickle.STOP[0], pickle.BINPERSID[0]


def _actions() -> list[Callable[[Machine], None] | None]:
    table: dict[bytes, Callable[[Machine], Any]] = {
        pickle.PROTO: Machine.start,
        pickle.FRAME: lambda m: m.take(8),
        pickle.MARK: Machine.mark,
        pickle.POP: lambda m: m.pop() if m.stack else m.marked(),
        pickle.POP_MARK: Machine.marked,
        pickle.DUP: lambda m: m.push(m.stack[-1]),
        pickle.NONE: lambda m: m.push(None),
        pickle.NEWTRUE: lambda m: m.push(True),
        pickle.NEWFALSE: lambda m: m.push(False),
        pickle.BININT: lambda m: m.push(m.number("<i")),
        pickle.BININT1: lambda m: m.push(m.take(1)[0]),
        pickle.BININT2: lambda m: m.push(m.number("<H")),
        pickle.LONG1: lambda m: m.long("<B"),
        pickle.LONG4: lambda m: m.long("<i"),
        pickle.BINFLOAT: lambda m: m.push(m.number(">d")),
        pickle.BINUNICODE: lambda m: m.text("<I"),
        pickle.SHORT_BINUNICODE: lambda m: m.text("<B"),
        pickle.BINUNICODE8: lambda m: m.text("<Q"),
        pickle.BINSTRING: lambda m: m.string("<i"),
        pickle.SHORT_BINSTRING: lambda m: m.string("<B"),
        pickle.BINBYTES: lambda m: m.binary("<I"),
        pickle.SHORT_BINBYTES: lambda m: m.binary("<B"),
        pickle.BINBYTES8: lambda m: m.binary("<Q"),
        pickle.BYTEARRAY8: lambda m: m.binary("<Q", bytearray),
        pickle.EMPTY_TUPLE: lambda m: m.push(()),
        pickle.TUPLE: lambda m: m.push_marked(tuple),
        pickle.TUPLE1: lambda m: m.tuple(1),
        pickle.TUPLE2: lambda m: m.tuple(2),
        pickle.TUPLE3: lambda m: m.tuple(3),
        pickle.EMPTY_LIST: lambda m: m.push([]),
        pickle.APPEND: lambda m: m.extend([m.pop()]),
        pickle.APPENDS: lambda m: m.extend(m.marked()),
        pickle.EMPTY_DICT: lambda m: m.push({}),
        pickle.SETITEM: Machine.one_item,
        pickle.SETITEMS: lambda m: m.set_items(m.marked()),
        pickle.EMPTY_SET: lambda m: m.push(set()),
        pickle.ADDITEMS: Machine.add_items,
        pickle.FROZENSET: lambda m: m.push_marked(lambda items: frozenset(map(checked_key, items))),
        pickle.BINGET: lambda m: m.get(m.take(1)[0]),
        pickle.LONG_BINGET: lambda m: m.get(m.number("<I")),
        pickle.BINPUT: lambda m: m.put(m.take(1)[0]),
        pickle.LONG_BINPUT: lambda m: m.put(m.number("<I")),
        pickle.MEMOIZE: lambda m: m.put(len(m.memo)),
        pickle.GLOBAL: lambda m: m.find(m.reader.line(), m.reader.line()),
        pickle.STACK_GLOBAL: Machine.stack_global,
        pickle.REDUCE: Machine.reduce,
        pickle.NEWOBJ: lambda m: m.new_object(False),
        pickle.NEWOBJ_EX: lambda m: m.new_object(True),
        pickle.BUILD: Machine.build,
    }
    actions: list[Callable[[Machine], None] | None] = [None] * 256
    for code, action in table.items():
        actions[code[0]] = action
    return actions


ACTIONS = _actions()
