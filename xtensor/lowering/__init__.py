"""How a strided view over a storage becomes XLA.

A storage holds one array of any shape; its row-major elements are what sizes, strides and an offset index. `recipe_for`
turns a geometry into a `Recipe`, `read`, `write` and `scatter_add` turn a recipe into lax operations. A recipe never contains
the offset, which is a runtime operand: all views that differ only in where they start share one program.

There are four ways to reach the elements, tried in this order:

- reshape: the view covers the array, in some order of its dimensions. No offset at all.
- digits: split an element's index into digits (by the array's own dimensions, or by the view's strides). The view is a
  rectangle of digits, so a dynamic slice, provided that no digit carries; only that depends on the offset.
- window: take the stretch of memory from the view's first element to its last, where everything else is static.
  Works for every view whose elements do not overlap (a diagonal, strides that do not divide one another).
- gather: computed indices, for views whose elements overlap.

Overlap usually comes from one or two small dimensions (the windows of `unfold`): then every value of those gives a
view without overlap at a static distance from the offset, and the view is the stack of them.
"""

from .float8 import FLOAT8, host_float8, to_float8
from .host import HostAdjoint, HostWriter
from .recipes import Access, Digits, Recipe, recipe_for
from .transfers import Stats, later_program, read, read_program, scatter_add, stats, write, write_program
from .transposes import transpose
