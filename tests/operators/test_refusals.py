"""Values that PyTorch refuses on a CPU: integer divisors of zero, probabilities outside [0, 1]."""

import itertools

import pytest

import xtensor

DTYPES = ("uint8", "int8", "int16", "int32", "int64", "bool", "float32")
DIVISIONS = {
    "//": lambda t, a, b: a // b,
    "%": lambda t, a, b: a % b,
    "r//": lambda t, a, b: 5 // b,
    "r%": lambda t, a, b: 5 % b,
    "floor_divide": lambda t, a, b: t.floor_divide(a, b),
    "floor": lambda t, a, b: t.div(a, b, rounding_mode="floor"),
    "trunc": lambda t, a, b: a.div(b, rounding_mode="trunc"),
    "true": lambda t, a, b: a / b,
    "fmod": lambda t, a, b: t.fmod(a, b),
    "remainder": lambda t, a, b: a.remainder(b),
    "floor_divide_": lambda t, a, b: a.floor_divide_(b),
    "trunc_": lambda t, a, b: a.div_(b, rounding_mode="trunc"),
    "fmod_": lambda t, a, b: a.fmod_(b),
    "remainder_": lambda t, a, b: a.remainder_(b),
    "out": lambda t, a, b: t.remainder(a, b, out=t.zeros_like(a)),
}
DIVISORS = {
    "tensor": lambda t, d: t.tensor([3, 0, 2, 0]).to(d),
    "no zero": lambda t, d: t.tensor([3, 1, 2, 5]).to(d),
    "0-d": lambda t, d: t.tensor(0).to(d),
    "0-d of 64 bits": lambda t, d: t.tensor(2**40),
    "number": lambda t, d: 0,
    "bool": lambda t, d: False,
    "float": lambda t, d: 0.0,
    "as wide as a byte": lambda t, d: 256,
    "view": lambda t, d: t.arange(8).to(d)[::2],
    "view past the zero": lambda t, d: t.arange(9).to(d)[1::2],
    "transposed": lambda t, d: t.tensor([[1, 0], [2, 3], [1, 1], [1, 4]]).to(d).t(),
}


def outcome(t, division, divisor, dtype, size=4):
    """The values, or the class of the error and whether it is about zero."""
    dtype = getattr(t, dtype)
    try:
        found = DIVISIONS[division](t, t.tensor([7, 8, 9, 10][:size]).to(dtype), DIVISORS[divisor](t, dtype))
    except Exception as error:
        return type(error), str(error) == "ZeroDivisionError"
    return str(found.dtype).split(".")[-1], found.double().nan_to_num(99, 98, 97).tolist()


NUMBERS = ("number", "bool", "float", "as wide as a byte")


def makes_sense(name, divisor, dtype):
    """Not two numbers, and nothing that is refused for its dtype or shape as well."""
    if name in ("r//", "r%"):
        return divisor not in NUMBERS
    writes = name.endswith("_") or name == "out"
    return not writes or (dtype != "bool" and divisor != "transposed")


CASES = [case for case in itertools.product(DIVISIONS, DIVISORS, DTYPES) if makes_sense(*case)]


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.one_in(2)
def test_division_by_zero(torch, division):
    for name, divisor, dtype in CASES:
        if name == division:
            expected = outcome(torch, name, divisor, dtype)
            # Again and again: later calls of a signature take shorter paths.
            for _ in range(3):
                assert outcome(xtensor, name, divisor, dtype) == expected, (divisor, dtype)


def test_nothing_is_divided_by_zero():
    empty = xtensor.zeros(0, dtype=xtensor.int64)
    assert (empty // 0).shape == (empty % xtensor.tensor([0])).shape == (0,)
    assert (xtensor.zeros(2, dtype=xtensor.int64, device="meta") // 0).shape == (2,)


def test_a_refused_division_changes_nothing():
    for make in (lambda: xtensor.arange(4), lambda: xtensor.arange(8)[::2]):
        x = make()
        before, version = x.tolist(), x._version
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"^ZeroDivisionError$"):
                x %= xtensor.tensor([1, 0, 1, 1])
        assert x.tolist() == before and x._version == version


def test_a_divisor_that_was_looked_at_is_looked_at_again_once_written():
    x, y = xtensor.arange(4), xtensor.tensor([1, 2, 3, 4])
    assert (x % y).tolist() == (x % y).tolist() == [0, 1, 2, 3]
    y[2] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x % y


UNIT = [[0.0, 1.0, 0.5], [0.5, 1.5, 0.5], [-0.1, 0.5, 1.0], [0.5, 0.5, float("nan")], [-0.0, 1.0, 0.0], []]


@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "bfloat16"))
def test_probabilities(torch, dtype):
    def found(t, x, y, **options):
        x, y = (t.tensor(v, dtype=getattr(t, dtype)) for v in (x, y))
        try:
            return t.nn.functional.binary_cross_entropy(x, y, **options).double().tolist()
        except RuntimeError as error:
            return str(error)

    for values, reduction in itertools.product(UNIT, ("none", "mean", "sum")):
        inside = [0.5] * len(values)
        for pair in ((values, inside), (inside, values)):
            expected = found(torch, *pair, reduction=reduction)
            for _ in range(2):
                ours = found(xtensor, *pair, reduction=reduction)
                assert ours == (
                    expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-2, nan_ok=True)
                )


def test_probabilities_of_a_model_and_of_a_view():
    x = xtensor.tensor([[0.2, 3.0], [0.7, -1.0]], requires_grad=True)
    y = xtensor.tensor([0.0, 1.0])
    loss = xtensor.nn.BCELoss()
    loss(x[:, 0], y).backward()
    assert x.grad[:, 1].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        loss(x[:, 1], y)
    with pytest.raises(RuntimeError, match="all elements of target should be between 0 and 1"):
        loss(x[:, 0], y * 2)
