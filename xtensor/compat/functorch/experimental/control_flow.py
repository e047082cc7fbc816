"""`functorch.experimental.control_flow`: operators that run functions, by the names they had first."""

from ....control_flow import cond, map

__all__ = ["cond", "map"]
