"""Control flow that programs can hold: `cond`, `scan`, `map`, `while_loop`, `associative_scan`, with gradients.

In eager code they are Python's own `if` and `for`. In a function that is captured or exported they are one step of the program, where Python's
would need a value that is not known yet, or write every step of a loop into the program.
"""

from .branches import cond
from .loops import associative_scan, map, scan, while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
