"""The line search of L-BFGS: a step that meets the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5, 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..tensor import Tensor

__all__ = ["strong_wolfe"]


class Point(NamedTuple):
    """A place on the line: the step to it, the value there, the gradient, and its slope along the line."""

    step: Any
    value: float
    grad: Tensor
    slope: Any


def minimum_of_cubic(a: Point, b: Point, low: Any = None, high: Any = None) -> Any:
    """Where the cubic through two points with their slopes is least, within bounds; their middle if it has no minimum."""
    if low is None:
        low, high = (a.step, b.step) if a.step <= b.step else (b.step, a.step)
    d = a.slope + b.slope - 3 * (a.value - b.value) / (a.step - b.step)
    inside = d**2 - a.slope * b.slope
    if not inside >= 0:
        return (low + high) / 2.0
    root = inside**0.5
    near, far = (a, b) if a.step <= b.step else (b, a)
    place = far.step - (far.step - near.step) * ((far.slope + root - d) / (far.slope - near.slope + 2 * root))
    return min(max(place, low), high)


def strong_wolfe(
    evaluate: Callable[[Any], tuple[float, Tensor]],
    direction: Tensor,
    step: Any,
    value: float,
    grad: Tensor,
    slope: Any,
    *,
    sufficient: float = 1e-4,
    curvature: float = 0.9,
    tolerance: float = 1e-9,
    limit: int = 25,
) -> tuple[float, Tensor, Any, int]:
    """The value, gradient and size of the step found, and how often `evaluate(step)` was called."""
    longest = direction.abs().max()
    calls = 0

    def at(step: Any) -> Point:
        nonlocal calls
        calls += 1
        value, grad = evaluate(step)
        return Point(step, value, grad, grad.dot(direction))

    def rises(point: Point) -> bool:
        return point.value > float(value + sufficient * point.step * slope)

    def flat(point: Point) -> bool:
        return bool(abs(point.slope) <= -curvature * slope)

    start = Point(0, value, grad.clone(), slope)
    last, now = start, at(step)
    turns = 0
    pair: list[Point] = []
    done = False
    while turns < limit:
        if rises(now) or (turns > 1 and now.value >= last.value):
            pair = [last, now]
            break
        if flat(now):
            pair, done = [now], True
            break
        if now.slope >= 0:
            pair = [last, now]
            break
        ahead = minimum_of_cubic(last, now, now.step + 0.01 * (now.step - last.step), now.step * 10)
        last, now = now, at(ahead)
        turns += 1
    if turns == limit:
        pair = [start, now]

    low, high = (0, 1) if pair[0].value <= pair[-1].value else (1, 0)
    stalled = False
    while not done and turns < limit:
        left, right = pair[0].step, pair[1].step
        if abs(right - left) * longest < tolerance:
            break
        step = minimum_of_cubic(pair[0], pair[1])
        least, most = min(left, right), max(left, right)
        margin = 0.1 * (most - least)
        if min(most - step, step - least) < margin:
            # Too near to an end, a second time: a tenth of the way from it instead.
            if stalled or step >= most or step <= least:
                step = most - margin if abs(step - most) < abs(step - least) else least + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        now = at(step)
        turns += 1
        if rises(now) or now.value >= pair[low].value:
            pair[high] = now
            low, high = (0, 1) if pair[0].value <= pair[1].value else (1, 0)
            continue
        if flat(now):
            done = True
        elif now.slope * (pair[high].step - pair[low].step) >= 0:
            pair[high] = pair[low]
        pair[low] = now
    found = pair[low]
    return found.value, found.grad, found.step, calls
