"""Poisson numbers inside a kernel, right for rates from 0 to 1e17: by inversion below 10, by rejection from there on.

The rejection is Hoermann's PTRS ("The transformed rejection method for generating Poisson random variables", Insurance:
Mathematics and Economics 12, 1993). The logarithm of the probability that it compares with is computed as a deviance, as
by Loader ("Fast and accurate computation of binomial probabilities", 2000): differences of terms as large as the rate
would leave nothing of it, and with them the variance is wrong from rates of a million on.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from .draws import uniform

__all__ = ["poisson"]

SMALL = 10.0
# A rate below 10 gives more than this with a probability below 1e-60, an acceptance of 0.9 this many refusals never.
MOST, ROUNDS = 120, 512


def poisson(seed: Any, draw: Any, rate: Any) -> Any:
    """Poisson numbers of the given rates, as float64: whole numbers."""
    rate = lax.convert_element_type(rate, np.float64)
    low = _inverted(uniform(seed, draw, rate.shape, np.float64), jnp.where(rate < SMALL, rate, 0))
    high = _rejected(seed, draw, jnp.where(rate < SMALL, SMALL, rate))
    return jnp.where(rate < SMALL, low, jnp.where(jnp.isfinite(rate), high, rate))


def _inverted(u: Any, rate: Any) -> Any:
    """How many of the distribution's sums of probabilities a uniform number has reached."""

    def unfinished(state: Any) -> Any:
        count, _, sums = state
        return jnp.any(u >= sums) & (count[0] < MOST)

    def step(state: Any) -> Any:
        (k, found), term, sums = state
        found = found + (u >= sums)
        term = term * rate / (k + 1)
        return (k + 1, found), term, sums + term

    first = jnp.exp(-rate)
    start = ((np.float64(0), jnp.zeros(rate.shape, np.float64)), first, first)
    return lax.while_loop(unfinished, step, start)[0][1]


def _rejected(seed: Any, draw: Any, rate: Any) -> Any:
    b = 0.931 + 2.53 * jnp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    scale = 1.1239 + 1.1328 / (b - 3.4)
    inside = 0.9277 - 3.6224 / (b - 2)

    def unfinished(state: Any) -> Any:
        turn, _, done = state
        return ~jnp.all(done) & (turn < ROUNDS)

    def step(state: Any) -> Any:
        turn, found, done = state
        stream = 2 * turn + 1
        u = uniform(seed, draw, rate.shape, np.float64, stream) - 0.5
        v = uniform(seed, draw, rate.shape, np.float64, stream + 1)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + rate + 0.43)
        bound = jnp.log(v * scale / (a / (us * us) + b))
        good = (us >= 0.07) & (v <= inside)
        good |= (k >= 0) & ((us >= 0.013) | (v <= us)) & (bound <= _log_probability(jnp.maximum(k, 0), rate))
        return turn + 1, jnp.where(good & ~done, k, found), done | good

    start = (np.uint32(0), jnp.floor(rate), jnp.zeros(rate.shape, bool))
    return lax.while_loop(unfinished, step, start)[1]


def _log_probability(k: Any, rate: Any) -> Any:
    """The logarithm of the probability of `k`, to some 1e-9 for rates of any size."""
    away = (k - rate) / rate
    deviance = rate * ((1 + away) * jnp.log1p(away) - away)
    large = jnp.maximum(k, 10.0)
    square = 1 / (large * large)
    correction = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / large
    far = -deviance - correction - 0.5 * jnp.log(2 * math.pi * large)
    return jnp.where(k < 10, k * jnp.log(rate) - rate - lax.lgamma(k + 1), far)
