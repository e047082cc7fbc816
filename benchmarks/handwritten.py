"""The models of `steps.py` by hand in `jax.numpy`, each training step one `jax.jit` with donated buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

__all__ = ["step_of"]

Params = dict[str, Any]


def linear(p: Params, name: str, x: Any) -> Any:
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def convolution(p: Params, name: str, x: Any, stride: int = 1, padding: int = 1, groups: int = 1) -> Any:
    borders = [(padding, padding)] * 2
    y = lax.conv_general_dilated(
        x, p[f"{name}.weight"], (stride, stride), borders, feature_group_count=groups
    )
    return y + p[f"{name}.bias"][:, None, None] if f"{name}.bias" in p else y


def batch_norm(p: Params, name: str, x: Any) -> Any:
    mean = x.mean((0, 2, 3), keepdims=True)
    var = ((x - mean) ** 2).mean((0, 2, 3), keepdims=True)
    scale, shift = (p[f"{name}.{k}"][:, None, None] for k in ("weight", "bias"))
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale + shift


def layer_norm(p: Params, name: str, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def mlp(p: Params, x: Any) -> Any:
    for name in ("0", "2"):
        x = jax.nn.relu(linear(p, name, x))
    return linear(p, "4", x)


def cnn(p: Params, x: Any) -> Any:
    for name in ("0", "3"):
        x = pool(jax.nn.relu(convolution(p, name, x)))
    return linear(p, "9", jax.nn.relu(linear(p, "7", x.reshape(len(x), -1))))


def depthwise(p: Params, x: Any) -> Any:
    x = jax.nn.relu(batch_norm(p, "1", convolution(p, "0", x, stride=2)))
    at = 3
    for stride in (1, 2, 1):
        x = convolution(p, str(at), x, stride, groups=x.shape[1])
        x = jax.nn.relu(batch_norm(p, str(at + 1), x))
        x = convolution(p, str(at + 3), x, padding=0)
        x = jax.nn.relu(batch_norm(p, str(at + 4), x))
        at += 6
    return linear(p, str(at + 2), x.mean((2, 3)))


def lstm_loop(p: Params, x: Any) -> Any:
    def cell(state: Any, x: Any) -> Any:
        h, c = state
        gates = x @ p["cell.weight_ih"].T + p["cell.bias_ih"] + h @ p["cell.weight_hh"].T + p["cell.bias_hh"]
        i, f, g, o = jnp.split(gates, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((x.shape[1], p["cell.weight_hh"].shape[1]))
    return linear(p, "head", lax.scan(cell, (zeros, zeros), x)[0][0])


def gpt(heads: int, layers: int) -> Callable[[Params, Any], Any]:
    def model(p: Params, ids: Any) -> Any:
        b, t = ids.shape
        x = p["tokens.weight"][ids] + p["places.weight"][:t]
        mask = jnp.tril(jnp.ones((t, t), bool))
        for i in range(layers):
            at = f"blocks.{i}."
            parts = jnp.split(linear(p, at + "qkv", layer_norm(p, at + "first", x)), 3, 2)
            q, k, v = (z.reshape(b, t, heads, -1).transpose(0, 2, 1, 3) for z in parts)
            scores = jnp.where(mask, q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]).astype(np.float32), -jnp.inf)
            y = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
            x = x + linear(p, at + "out", y)
            up = jax.nn.gelu(linear(p, at + "up", layer_norm(p, at + "second", x)), approximate=False)
            x = x + linear(p, at + "down", up)
        return linear(p, "head", layer_norm(p, "last", x)).reshape(b * t, -1)

    return model


def update(optimizer: str, p: Any, g: Any, m: Any, v: Any, count: Any) -> tuple[Any, Any, Any]:
    if optimizer == "SGD":
        return p - 1e-3 * g, m, v
    if optimizer == "AdamW":
        p = p * (1 - 1e-3 * 1e-2)
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    root = jnp.sqrt(v) / jnp.sqrt(1 - 0.999**count) + 1e-8
    return p - 1e-3 / (1 - 0.9**count) * m / root, m, v


def step_of(
    model: Callable[[Params, Any], Any],
    weights: dict[str, Any],
    data: Any,
    optimizer: str,
    clip: bool,
    gradients: bool = False,
    place: Callable[[str, Any], Any] = lambda name, array: array,
) -> Callable[[], Any]:
    """A training step as a function without arguments, which returns the loss.

    gradients: it gives its gradients back, too. place: puts an array on devices: a parameter, by its name, `x` or `y`; the state then stays there.
    """
    params = {
        k: place(k, jnp.array(a))
        for k, a in weights.items()
        if np.asarray(a).dtype == np.float32 and "running" not in k
    }
    x, y = (place(name, jnp.asarray(a)) for name, a in zip("xy", data, strict=True))

    def loss_of(p: Params, x: Any, y: Any) -> Any:
        logits = jax.nn.log_softmax(model(p, x))
        return -jnp.take_along_axis(logits, y[:, None], 1).mean()

    def step(state: Any, x: Any, y: Any) -> Any:
        p, m, v, count = state
        loss, g = jax.value_and_grad(loss_of)(p, x, y)
        if clip:
            norm = jnp.sqrt(sum(jnp.vdot(a, a) for a in g.values()))
            g = {k: a * jnp.minimum(1.0, 1.0 / (norm + 1e-6)) for k, a in g.items()}
        made = {k: update(optimizer, p[k], g[k], m[k], v[k], count) for k in p}
        return (
            loss,
            (*({k: a[i] for k, a in made.items()} for i in range(3)), count + 1),
            g if gradients else None,
        )

    zeros = [{k: place(k, jnp.zeros_like(a)) for k, a in params.items()} for _ in range(2)]
    state: list[Any] = [(params, *zeros, jnp.float32(1))]
    places = {k: a.sharding for k, a in params.items()}
    options: dict[str, Any] = {"donate_argnums": 0}
    if any(len(where.device_set) > 1 for where in places.values()):
        options["out_shardings"] = (None, (places, places, places, None), places if gradients else None)
    jitted = jax.jit(step, **options)
    kept = [None]

    def run() -> Any:
        loss, state[0], kept[0] = jitted(state[0], x, y)
        return loss

    run.traced = lambda: jax.jit(lambda *a: step(*a)).trace(state[0], x, y)  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    run.lowered = lambda: jitted.lower(state[0], x, y)  # type: ignore[attr-defined]  # pyright: ignore[reportFunctionMemberAccess]
    return run
