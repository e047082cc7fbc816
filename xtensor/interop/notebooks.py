"""Errors in IPython and its notebooks: the frames of the user's program, and at most two of the package's.

Between a cell and the line that raised lie frames of modules, generated functions and their call paths. A local that hides a
frame costs every call that does not raise; here, only what raised pays. Scripts show every frame, and so does `%xmode Verbose`.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from .. import checks

__all__ = ["install", "shorten"]


def shorten(error: BaseException) -> None:
    """Take the package's frames out of an error's traceback, and of those that it followed, but where it was entered last and raised."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        following.__traceback__ = _joined(_shown(_listed(following.__traceback__)))
        following = following.__cause__ or following.__context__


def _listed(traceback: TracebackType | None) -> list[TracebackType]:
    found: list[TracebackType] = []
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found


def _is_own(traceback: TracebackType) -> bool:
    return checks.is_own(traceback.tb_frame.f_globals.get("__name__", ""))


def _shown(frames: list[TracebackType]) -> list[TracebackType]:
    others = [at for at, frame in enumerate(frames) if not _is_own(frame)]
    last = others[-1] + 1 if others else 0
    inner = frames[last:]
    return [frames[at] for at in others] + (inner[:1] + inner[-1:] if len(inner) > 2 else inner)


def _joined(frames: list[TracebackType]) -> TracebackType | None:
    made = None
    for frame in reversed(frames):
        made = TracebackType(made, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return made


def _show(
    shell: Any, kind: type[BaseException], error: BaseException, traceback: Any, tb_offset: Any = None
) -> None:
    """IPython's own display of an error that it has caught."""
    if getattr(shell.InteractiveTB, "mode", "") != "Verbose" and any(map(_is_own, _listed(traceback))):
        shorten(error)
        traceback = error.__traceback__
    shell.showtraceback((kind, error, traceback), tb_offset=tb_offset, running_compiled_code=True)


def install() -> None:
    """Shorten what the running IPython shows, if there is one and nobody else handles its errors."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _show)


install()
