"""Write xtensor/ops/pointwise/chebyshev_tables.py: Chebyshev coefficients of special functions, computed in 45 digits by mpmath.

python tools/chebyshev_tables.py
"""

from __future__ import annotations

import pathlib
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports, reportMissingModuleSource]

TARGET = (
    pathlib.Path(__file__).resolve().parent.parent / "xtensor" / "ops" / "pointwise" / "chebyshev_tables.py"
)
HEAD = '''"""Chebyshev coefficients of special functions on [-1, 1]; written by tools/chebyshev_tables.py.

What each expands, and in what, stands where it is used: `bessel.py`, `probability.py`.
"""

from __future__ import annotations

# fmt: off
'''


def coefficients(function: Callable[[Any], Any], points: int) -> list[Any]:
    """The coefficients of the interpolant at Chebyshev's points, without those under 1e-18 of the largest."""
    angles = [mp.pi * (k + mp.mpf(1) / 2) / points for k in range(points)]
    values = [function(mp.cos(a)) for a in angles]
    found = [
        2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / points
        for j in range(points)
    ]
    found[0] /= 2
    least = max(abs(c) for c in found) * mp.mpf(10) ** -18
    while abs(found[-1]) < least:
        found.pop()
    return found


def even(top: int, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of x on [0, top] as one of u, where x^2 = top^2 (u + 1) / 2."""
    return lambda u: function(top * mp.sqrt((u + 1) / 2))


def bessel_far(order: int, part: str) -> Callable[[Any], Any]:
    """P and Q of `J = sqrt(2 / pi x) (P cos c - Q sin c)`, `Y = ... (P sin c + Q cos c)`; u = 2 (8 / x)^2 - 1."""

    def of(u: Any) -> Any:
        x = 8 / mp.sqrt((u + 1) / 2)
        angle = x - mp.pi / 4 - order * mp.pi / 2
        j, y, scale = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
        if part == "P":
            return scale * (j * mp.cos(angle) + y * mp.sin(angle))
        return scale * (y * mp.cos(angle) - j * mp.sin(angle)) * x / 8

    return of


def modified_far(order: int) -> Callable[[Any], Any]:
    def of(u: Any) -> Any:
        x = 4 / (u + 1)
        return mp.sqrt(x) * mp.exp(x) * mp.besselk(order, x)

    return of


def scaled_erfc(u: Any) -> Any:
    x = mp.mpf("3.75") * (1 + u) / (1 - u)
    if x < 200:
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)
    series = mp.fsum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(6))
    return (1 + 2 * x) * series / (x * mp.sqrt(mp.pi))


def power(x: Any) -> Any:
    return mp.mpf(2) / 3 * mp.mpf(x) ** mp.mpf("1.5")


def airy_decay(u: Any) -> Any:
    zeta = power(2) / ((u + 1) / 2)
    x = (mp.mpf(3) / 2 * zeta) ** (mp.mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi) * x ** mp.mpf("0.25") * mp.exp(zeta) * mp.airyai(x)


def airy_waves(part: str) -> Callable[[Any], Any]:
    def of(u: Any) -> Any:
        zeta = power(5) / mp.sqrt((u + 1) / 2)
        x = (mp.mpf(3) / 2 * zeta) ** (mp.mpf(2) / 3)
        a, b, scale = mp.airyai(-x), mp.airybi(-x), mp.sqrt(mp.pi) * x ** mp.mpf("0.25")
        angle = zeta + mp.pi / 4
        if part == "sine":
            return scale * (a * mp.sin(angle) + b * mp.cos(angle))
        return scale * (b * mp.sin(angle) - a * mp.cos(angle)) * zeta / power(5)

    return of


def tables() -> dict[str, list[Any]]:
    log, pi = mp.log, mp.pi
    j, y, i, k = mp.besselj, mp.bessely, mp.besseli, mp.besselk
    return {
        "J0_NEAR": coefficients(even(8, lambda x: j(0, x)), 50),
        "J1_NEAR": coefficients(even(8, lambda x: j(1, x) / x), 50),
        "Y0_NEAR": coefficients(even(8, lambda x: y(0, x) - 2 / pi * log(x) * j(0, x)), 50),
        "Y1_NEAR": coefficients(even(8, lambda x: (y(1, x) - 2 / pi * (log(x) * j(1, x) - 1 / x)) / x), 50),
        "P0_FAR": coefficients(bessel_far(0, "P"), 40),
        "Q0_FAR": coefficients(bessel_far(0, "Q"), 40),
        "P1_FAR": coefficients(bessel_far(1, "P"), 40),
        "Q1_FAR": coefficients(bessel_far(1, "Q"), 40),
        "K0_NEAR": coefficients(even(2, lambda x: k(0, x) + log(x / 2) * i(0, x)), 30),
        "K1_NEAR": coefficients(even(2, lambda x: x * (k(1, x) - log(x / 2) * i(1, x))), 30),
        "K0_FAR": coefficients(modified_far(0), 50),
        "K1_FAR": coefficients(modified_far(1), 50),
        "ERFCX": coefficients(scaled_erfc, 70),
        "AI_MIDDLE": coefficients(lambda u: mp.airyai((7 * u - 3) / 2), 60),
        "AI_DECAY": coefficients(airy_decay, 50),
        "AI_SINE": coefficients(airy_waves("sine"), 40),
        "AI_COSINE": coefficients(airy_waves("cosine"), 40),
    }


def rows(items: Iterable[str]) -> str:
    return textwrap.fill(", ".join(items) + ",", 110, initial_indent="    ", subsequent_indent="    ")


def main() -> None:
    mp.mp.dps = 45
    found = tables()
    text = HEAD + f"__all__ = [\n{rows(repr(name) for name in sorted(found))}\n]\n".replace("'", '"')
    for name, values in found.items():
        text += f"\n{name} = (\n{rows(repr(float(v)) for v in values)}\n)\n"
    TARGET.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
