"""Methods that run Python functions over elements, or answer what programs ask of any tensor: against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import xtensor

CALLS = """
T.arange(6.).view(2,3).apply_(lambda v: v * v - 1)
T.arange(6).view(2,3).t().apply_(lambda v: v // 2)
(lambda x: (x[:, 1].apply_(lambda v: -v), x)[1])(T.arange(6.).view(2,3))
T.ones(3).map_(T.arange(3.), lambda a, b: a + 2 * b)
T.ones(2,3).map_(T.arange(3.), lambda a, b: a + b)
T.ones(3).map2_(T.arange(3.), T.arange(3.) + 1, lambda a, b, c: a + b * c)
T.ones(3,requires_grad=True).apply_(lambda v: v)
T.ones(3).map_(T.ones(3,requires_grad=True), lambda a, b: a)
T.ones(2,3,4).dim_order()
[p.tolist() for p in T.arange(6).split(split_size=[2, 4], dim=-1)]
[p.tolist() for p in T.split(tensor=T.arange(6), split_size_or_sections=4)]
T.ones(2,3,4).permute(2,0,1).dim_order()
T.ones(2,3,4,5).to(memory_format=T.channels_last).dim_order()
T.ones(3).module_load(T.arange(3.))
T.ones(2).is_same_size(T.zeros(2)), T.ones(2).is_same_size(T.zeros(2,1))
T.complex(T.ones(2),T.ones(2)).conj().view(T.float32)
T.ones(3).expand(2,3).fill_(T.tensor(2.))
T.ones(3).expand(2,3).fill_(2.)
(lambda x: x.index_copy_(-3, T.tensor([0]), x))(T.ones(2,2))
T.complex(T.ones(2),T.ones(2)).conj().imag.view(T.int32)
""".strip().splitlines()


def outcome(library: Any, call: str) -> Any:
    try:
        found = eval(call, {"T": library})
    except Exception as error:
        return type(error).__name__, str(error)
    return (found.tolist(), tuple(found.stride())) if hasattr(found, "tolist") else found


@pytest.mark.parametrize("call", CALLS)
def test_as_in_pytorch(call: str, torch: Any) -> None:
    assert outcome(xtensor, call) == outcome(torch, call)


def test_a_subclass_shares_memory_and_history() -> None:
    class Named(xtensor.Tensor):
        pass

    x = xtensor.ones(3, requires_grad=True) * 2
    made = x.as_subclass(Named)
    assert type(made) is Named
    assert made.data_ptr() == x.data_ptr()
    assert made.requires_grad
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        x.as_subclass(int)


@pytest.mark.parametrize(
    "name", ["add", "radd", "mul", "rmul", "and", "ror", "rdiv", "rtruediv", "lt", "floordiv"]
)
def test_an_operator_called_by_hand_on_a_number(name: str, torch: Any) -> None:
    def by_hand(library: Any) -> Any:
        try:
            return getattr(library.Tensor, f"__{name}__")(2, library.ones(3, dtype=library.int64)).tolist()
        except (AttributeError, TypeError) as error:
            return type(error).__name__, str(error).replace("torch._C.TensorBase", "xtensor.Tensor")

    assert by_hand(xtensor) == by_hand(torch)
