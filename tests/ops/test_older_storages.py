"""Typed storages and the numbers and branches of PyTorch's compilers, as PyTorch's."""

import warnings

import pytest

import xtensor


def test_a_typed_storage_is_the_whole_memory(torch):
    def found(t):
        x = t.arange(6.0).view(2, 3)
        part = x[1, 1:]
        storage = part.storage()
        storage[0] = 9.0
        made = t.FloatStorage([1, 2, 3])
        return (
            (storage.tolist(), len(storage), storage.nbytes(), storage.element_size(), x[0, 0].item()),
            (storage.data_ptr() == x.storage().data_ptr(), storage[2]),
            (made.tolist(), str(made.dtype)[6:].lstrip("."), t.LongStorage(2).size(), made.fill_(4).tolist()),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, which it gives once
        theirs = found(torch)
    ours = found(xtensor)
    assert ours[:2] == theirs[:2]
    assert ours[2][0] == theirs[2][0] and ours[2][2:] == theirs[2][2:]


def test_numbers_and_branches(torch):
    def found(t):
        return (
            (t.sym_int(-2.7), t.sym_float(3), t.sym_max(2, 3.0), t.sym_min(2, 3.0), t.sym_not(True)),
            (t.sym_ite(True, 1, 2), t.sym_sum([1, 2, 3]), isinstance(3, t.SymInt)),
            t.cond(t.tensor(True), lambda x: x + 1, lambda x: x - 1, (t.ones(1),)).tolist(),
        )

    assert found(xtensor) == found(torch)
    made = xtensor.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (xtensor.tensor(0), xtensor.ones(2))
    )
    assert [m.tolist() for m in made] == [3, [8.0, 8.0]]
    with pytest.raises(RuntimeError, match="single-element tensor"):
        xtensor.cond(xtensor.ones(2), abs, abs)


def test_a_storage_is_known_by_a_number():
    values = xtensor.arange(3.0)
    typed, bytes_ = values.storage(), values.untyped_storage()
    assert typed._cdata == bytes_._cdata == typed._untyped_storage._cdata == values[1:].storage()._cdata
    assert typed._cdata != values.clone().storage()._cdata
