"""What tells programs' functions apart: equal for the same function made again, different for whatever a trace can see."""

from __future__ import annotations

import functools
import operator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xtensor import dtypes, interop
from xtensor.operators.operator import REGISTRY
from xtensor.xla.identity import Unknown, digest_of, sources
from xtensor.xla.x64 import jit


def ours(function):
    """The function, as if xtensor had it."""
    function.__module__ = "xtensor.somewhere"
    return function


def adding(number, *, twice=False):
    def add(x):
        return x + number * (2 if twice else 1)

    return ours(add)


def test_the_same_made_again_is_the_same():
    assert digest_of(adding(1)) == digest_of(adding(1))
    key = (2, (1, None), 0.5, np.dtype("float32"), slice(1, None), frozenset({"a", "b"}), dtypes.float32)
    again = (2, (1, None), 0.5, np.dtype("float32"), slice(1, None), frozenset({"b", "a"}), dtypes.float32)
    assert digest_of(key) == digest_of(again)
    tanh = REGISTRY["tanh"]
    assert digest_of(tanh.traced(())) == digest_of(tanh.traced(()))
    assert len(sources()) == 32


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (adding(1), adding(2)),
        (adding(1), adding(1.0)),
        (adding(1), adding(True)),
        (adding(0.0), adding(-0.0)),
        (adding(1), adding(1, twice=True)),
        (adding((1, 2)), adding([1, 2])),
        (adding(np.float32(1)), adding(np.float64(1))),
        (adding(dtypes.float32), adding(dtypes.float64)),
        (adding(jax.ShapeDtypeStruct((2,), "float32")), adding(jax.ShapeDtypeStruct((3,), "float32"))),
        (REGISTRY["tanh"].traced(()), REGISTRY["exp"].traced(())),
        (functools.partial(jnp.dot, 1), functools.partial(jnp.dot, 2)),
        (functools.partial(jnp.dot, 1), functools.partial(jnp.kron, 1)),
        (operator.add, operator.sub),
        (ours(lambda x: x + 1), ours(lambda x: x + 2)),
        (ours(lambda x: x.a), ours(lambda x: x.b)),
        (ours(lambda x, y=1: x + y), ours(lambda x, y=2: x + y)),
    ],
)
def test_what_a_trace_can_see_tells_apart(one, other):
    assert digest_of(one) != digest_of(other)


def test_what_is_known_under_another_name_is_the_same():
    key = dtypes.float32, adding(dtypes.float64)
    before = digest_of(key)
    with interop.installed():
        assert type(dtypes.float32).__module__ == "torch" and digest_of(key) == before


def test_what_is_the_users_is_unknown():
    def theirs(x):
        return x

    for value in (theirs, adding(theirs), adding(object()), adding(jnp.ones(2)), adding(iter(()))):
        with pytest.raises(Unknown):
            digest_of(value)


def test_a_value_that_contains_itself_ends():
    def again(x):
        return again(x - 1) if x else x

    values: list = [1]
    values.append(values)
    assert digest_of(ours(again)) == digest_of(again)
    with pytest.raises(RecursionError):
        digest_of(values)


def test_programs_take_no_static_arguments() -> None:
    """Those of other values of one would be taken for each other: sparse gradients had another matrix's number of elements."""
    with pytest.raises(TypeError, match="no static arguments"):
        jit(lambda x, n: x * n, static_argnums=1)
