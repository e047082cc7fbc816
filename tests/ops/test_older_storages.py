"""Typed storages and the numbers and branches of PyTorch's compilers, as PyTorch's."""

import copy
import warnings

import numpy as np
import pytest

import xtensor
from tests.oracle import attempt
from xtensor.interop.private import NAMES


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


def words(error):
    """An error's words, without those that name modules."""
    return (
        type(error).__name__,
        str(error).split("Expected one of")[0].replace("xtensor", "torch"),
        str(error)[-40:],
    )


CALLS = """
T.FloatStorage(device='cpu')
T.FloatStorage(np.int32(3)).size()
T.FloatStorage(dtype=T.float32)
T.FloatStorage(0, 0)
T.FloatStorage('text')
T.FloatStorage(2.5)
T.FloatStorage(0, wrap_storage=T.UntypedStorage(8))
T.TypedStorage(0, wrap_storage=T.UntypedStorage(8), dtype=T.int32)
T.TypedStorage(wrap_storage=T.UntypedStorage(8))
T.TypedStorage(wrap_storage=T.UntypedStorage(8), dtype=T.int32, device='cpu')
T.TypedStorage(0, 0, dtype=T.int32)
T.IntStorage(wrap_storage=T.UntypedStorage([1, 0, 0, 0])).tolist()
T.TypedStorage([1, 2], dtype=T.int32).double().tolist()
T.IntStorage([-1, 0, 2]).byte().tolist()
T.IntStorage([-1, 0, 2]).bool().type()
T.ones(2).storage().type()
isinstance(T.ones(2).storage(), T.FloatStorage), isinstance(T.ones(2).storage(), T.IntStorage)
T.FloatStorage.dtype.itemsize
T.FloatStorage(2)[5]
T.FloatStorage([1, 2]).pickle_storage_type()
T.FloatStorage([1, 2]).half().nbytes()
T.ByteStorage.from_buffer(bytearray([1, 2])).tolist()
T.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), 'big').tolist()
T.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), 'little').tolist()
T.ShortStorage.from_buffer(bytearray(4))
T.ShortStorage.from_buffer(bytearray(4), 'middle')
T.BoolStorage.from_buffer(bytearray([0, 1, 9]), 'big').tolist()
T.is_storage(T.FloatStorage(1)), T.is_storage(T.UntypedStorage(1)), T.is_storage(1)
T.UntypedStorage([1, 2, 255]).tolist()
T.UntypedStorage(3).fill_(7).tolist()
T.UntypedStorage([1, 2]).copy_(T.UntypedStorage([3, 4])).tolist()
T.UntypedStorage(2).copy_(T.UntypedStorage(3))
T.UntypedStorage(2.5)
T.UntypedStorage('ab')
T.UntypedStorage(0).new().nbytes(), T.UntypedStorage(0).is_cuda, T.UntypedStorage(0).is_shared()
"""


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_storages_answer_as_pytorch_s(torch, call):
    def found(t):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return eval(call, {"T": t, "np": np})
            except Exception as error:
                return words(error)

    assert found(xtensor) == found(torch)


def test_a_storage_is_one_object_while_it_is_held():
    x = xtensor.arange(4.0)
    bytes_of = x.untyped_storage()
    bytes_of.mark = 3
    assert x[1:].untyped_storage() is bytes_of and x.untyped_storage().mark == 3
    assert x.clone().untyped_storage() is not bytes_of


def test_bytes_are_written_and_turned_around():
    x = xtensor.tensor([1, 2], dtype=xtensor.int32)
    bytes_of = x.untyped_storage()
    bytes_of[1] = 1
    assert x.tolist() == [257, 2]
    bytes_of.byteswap(xtensor.int32)
    assert bytes_of.tolist() == [0, 0, 1, 1, 0, 0, 0, 2]
    assert repr(xtensor.UntypedStorage([5])) == " 5\n[xtensor.storage.UntypedStorage(device=cpu) of size 1]"
    storage = x.storage()
    storage.resize_(3)
    assert storage.size() == 3 and x.untyped_storage().nbytes() == 12


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


def test_deep_copies_of_storages_and_tensors_share_memory(torch):
    def found(t):
        x = t.arange(4.0).view(2, 2)
        parts = [x, x.storage(), x.untyped_storage(), x.view(4)]
        again, turned = copy.deepcopy(parts), copy.deepcopy(parts[::-1])
        again[0].zero_()
        turned[0].zero_()
        return (
            (again[1].tolist(), again[2].tolist(), again[3].tolist(), turned[2].tolist(), turned[3].tolist()),
            (again[0].untyped_storage() is again[2], x.tolist()),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found(xtensor) == found(torch)


def test_a_tensor_made_of_a_storage_shares_its_bytes(torch):
    def found(t):
        storage = t.UntypedStorage(8)
        made = t.tensor(storage, dtype=t.int32).fill_(7)
        return (
            (storage.tolist(), made.untyped_storage() is storage, t.tensor(storage).tolist()),
            t.ones(1).new(storage).shape,
            [attempt(lambda: t.tensor(t.ones(2).storage(), dtype=t.int64))],
            [attempt(lambda: t.ones(2).new(t.ones(2, dtype=t.int64)))],
            (t.empty(2, device="meta").data_ptr(), attempt(lambda: t.UntypedStorage(2, device="meta")[0])),
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = found(xtensor), found(torch)
    assert ours[:3] == theirs[:3] and ours[4] == theirs[4]
    assert ours[3][0][1] == theirs[3][0][1] == "TypeError"


def test_base_classes_of_tensors_and_storages():
    TensorBase, StorageBase = NAMES["_C.TensorBase"], NAMES["_C.StorageBase"]
    assert isinstance(xtensor.ones(1), TensorBase) and isinstance(xtensor.UntypedStorage(1), StorageBase)
    for base in (TensorBase, StorageBase):
        with pytest.raises(RuntimeError, match="Cannot directly construct"):
            base()
    with pytest.raises(RuntimeError, match="Cannot subclass _TensorBase directly"):
        type("Mine", (TensorBase,), {})

    class Mine(StorageBase):
        pass

    bytes_ = xtensor.UntypedStorage([1, 2])
    mine = Mine(bytes_)
    mine.fill_(3)
    assert bytes_.tolist() == [3, 3] and isinstance(mine, StorageBase) and Mine(4).nbytes() == 4
