"""Whether code that is compiled sooner has the bits of the other (`xtensor/xla/quick.py`): every program, run both ways at its first call.

    python -m tests.programs.quick                      # the table of all operators, and their derivatives
    python -m tests.programs.quick tests/nn -k norm     # whatever tests are named, in pytest's words

It compiles all twice, so nothing is kept on disk, and prints the programs whose results differ; the exit status is 1 where there are some.
"""

from __future__ import annotations

import collections
import os
import sys
from typing import Any

import numpy as np

TESTS = ("tests/ops/test_table.py", "tests/ops/test_long_arrays.py")


class Compared:
    """The programs that were run both ways, by name, and those of them that differ."""

    def __init__(self) -> None:
        self.same: collections.Counter[str] = collections.Counter()
        self.different: list[str] = []

    def pytest_sessionstart(self) -> None:
        """Have every program that is compiled quickly compiled the other way too; JAX is imported after the tests' settings."""
        from xtensor.xla import store

        plain = store.Program._compiled
        made = self

        def compiled(self: Any, name: Any, form: Any, args: Any, once_more: bool = False) -> Any:
            entry = plain(self, None, form, args, once_more)
            if entry is not None and entry.quick:
                other = plain(self, None, form, args, True)
                quick = entry.run

                def run(leaves: list[Any]) -> Any:
                    expected = other.run([copied(leaf) for leaf in leaves])
                    found = quick(leaves)
                    if all(map(same, expected, found)):
                        made.same[self.jitted.__name__] += 1
                    else:
                        made.different.append(f"{self.jitted.__name__}{form.leaves}")
                    return found

                entry.run = run
            return entry

        store.Program._compiled = compiled  # type: ignore[method-assign]
        # Large ones too, for which a folder is needed otherwise.
        store.is_large = lambda jaxpr: False

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was found."""
        write = terminalreporter.write_line
        write(f"{sum(self.same.values())} programs of {len(self.same)} names have the same bits either way")
        for told in self.different:
            write(f"different: {told}")


def copied(leaf: Any) -> Any:
    """An argument that may be given up."""
    import jax

    return jax.device_put(leaf, leaf.sharding, may_alias=False) if isinstance(leaf, jax.Array) else leaf


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have the same bits, but for what a NaN carries."""
    x, y = np.asarray(a), np.asarray(b)
    if x.tobytes() == y.tobytes():
        return True
    words = np.dtype(f"u{x.dtype.itemsize}") if x.dtype.kind != "c" else np.dtype(f"u{x.dtype.itemsize // 2}")
    numbers = x.dtype if x.dtype.kind != "c" else x.real.dtype
    x, y = np.ascontiguousarray(x).reshape(-1), np.ascontiguousarray(y).reshape(-1)
    equal = x.view(words) == y.view(words)
    return bool(np.all(equal | (np.isnan(x.view(numbers)) & np.isnan(y.view(numbers)))))


def main(arguments: list[str]) -> int:
    """Run tests with all programs compared."""
    os.environ["XTENSOR_COMPILE_CACHE"] = "off"
    os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
    import pytest

    compared = Compared()
    named = [a for a in arguments if not a.startswith("-")]
    pytest.main(["-q", "-n", "0", *arguments, *([] if named else TESTS)], plugins=[compared])
    return int(bool(compared.different))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
