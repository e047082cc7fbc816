"""Creation of tensors: arguments, dtypes, strides and errors as PyTorch's, and what is our own."""

from __future__ import annotations

import gc
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from tests.expressions import answer, expressions
from xtensor.operators import options

test_from_data = expressions(
    """
    T.tensor([[1,2],[3]])
    T.tensor([1,[2]])
    T.tensor([[1],2])
    T.tensor('a')
    T.tensor(['a'])
    T.tensor(None)
    T.tensor([None])
    T.tensor(object())
    T.tensor([1,2.5], dtype=T.int64)
    T.tensor(1.5, dtype=T.int64)
    T.tensor(2**63)
    T.tensor(2**64, dtype=T.float64)
    T.tensor([2**63-1,2**64])
    T.tensor([300], dtype=T.uint8)
    T.tensor([-1], dtype=T.uint8)
    T.tensor([200], dtype=T.int8)
    T.tensor(2**63, dtype=T.uint64)
    T.tensor(-1, dtype=T.uint64)
    T.tensor([1e300], dtype=T.float32)
    T.tensor([70000.], dtype=T.float16)
    T.tensor(1+2j, dtype=T.float32)
    T.tensor([1+2j], dtype=T.int64)
    T.tensor([1+2j], dtype=T.bool)
    T.tensor([2,0], dtype=T.bool)
    T.tensor([2.5,float('nan')], dtype=T.bool)
    T.tensor([float('nan')], dtype=T.int64)
    T.tensor([float('inf')], dtype=T.int32)
    T.tensor([1e20], dtype=T.int64)
    T.tensor([])
    T.tensor([[],[]])
    T.tensor([[],[1]])
    T.tensor(())
    T.tensor([True,2])
    T.tensor([True,2.])
    T.tensor([np.float64(1),2])
    T.tensor([np.float32(1),2.0])
    T.tensor(np.float64(1))
    T.tensor(np.int32(1))
    T.tensor([np.int32(1), np.int8(3)])
    T.tensor([np.array([1,2]),np.array([3,4])])
    T.tensor(np.array(['a']))
    T.tensor(np.array([1,2],dtype='>i4'))
    T.tensor(np.arange(4)[::-1])
    T.tensor(np.arange(4).reshape(2,2).T)
    T.from_numpy(np.arange(4).reshape(2,2).T)
    T.from_numpy(np.arange(4)[::-1])
    T.from_numpy([1])
    T.tensor([T.tensor(1,dtype=T.int32), 2.0])
    T.tensor([T.tensor([1,2]), T.tensor([3,4])])
    T.tensor([T.tensor([1,2]), T.tensor([3])])
    T.tensor([T.tensor(1.,requires_grad=True)])
    T.tensor(T.ones(2))
    T.tensor(T.ones(2,requires_grad=True), requires_grad=True)
    T.tensor(range(3))
    T.tensor({1:2})
    T.tensor({1,2})
    T.tensor(b'abc')
    T.tensor(bytearray(b'abc'))
    T.tensor([b'abc'])
    T.tensor(1, requires_grad=True)
    T.zeros(2,dtype=T.int64,requires_grad=True)
    T.tensor([1.], dtype=float)
    T.tensor([1.], dtype=3)
    T.tensor([1.], dtype='float32')
    T.tensor([1],device=3.5)
    T.tensor(3)+T.tensor([1,2],dtype=T.int8)
    T.as_tensor([1,2.])
    T.as_tensor(T.ones(2,requires_grad=True))
    T.as_tensor(np.arange(3),dtype=T.float32)
    T.asarray([1,2],requires_grad=True)
    T.asarray(np.float32(2))
    T.asarray(b'abcd',dtype=T.uint8)
    T.asarray([1,2],copy=False)
    T.asarray(T.ones(2),dtype=T.int32,copy=False)
    T.scalar_tensor(3)
    T.scalar_tensor(3, dtype=T.int64)
    T.scalar_tensor(3.5)
    T.scalar_tensor(True)
    T.scalar_tensor([3.5])
    T.frombuffer(b'abcdefgh',dtype=T.int32)
    T.frombuffer(bytearray(b'abcdefgh'),dtype=T.int32)
    T.frombuffer(bytearray(b'abcdefgh'),dtype=T.int16,count=2,offset=2)
    T.frombuffer(bytearray(b''),dtype=T.int16)
    T.frombuffer(bytearray(b'abc'),dtype=T.int16)
    T.frombuffer(bytearray(b'abc'),dtype=T.int16,count=4)
    T.frombuffer(bytearray(b'abc'),dtype=T.int16,offset=4)
    T.frombuffer(bytearray(b'abc'),dtype=T.int16,count=0)
    """
)

test_filled = expressions(
    """
    T.zeros()
    T.zeros(-1)
    T.zeros(2,-3)
    T.zeros(2.0)
    T.zeros((2,3.0))
    T.zeros((2,'a'))
    T.zeros('a')
    T.zeros([2],3)
    T.zeros(2,[3])
    T.zeros(None)
    T.zeros(2,dtype=3)
    T.zeros(2,device=3.5)
    T.zeros(2,foo=3)
    T.zeros(2,layout=3)
    T.zeros(T.tensor(2), T.tensor(3))
    T.zeros(np.int64(2), True)
    T.zeros(T.tensor([2,3]))
    T.zeros(2**40,2**40)
    T.zeros(size=(2,3))
    T.zeros(2,3,out=T.empty(0))
    T.zeros(2,out=T.empty(0),dtype=T.int32)
    T.zeros(2,out=T.empty(0,dtype=T.int32))
    T.ones(2,dtype=T.bool)
    T.ones(2,names=None)
    T.empty(2,3,memory_format=T.channels_last)
    T.empty(1,2,3,4,memory_format=T.preserve_format)
    T.full((2,),1)
    T.full((2,),True)
    T.full((2,),1.5)
    T.full((2,),1j)
    T.full((2,),T.tensor(3))
    T.full((2,),T.tensor(3.,requires_grad=True))
    T.full((2,),T.tensor([3]))
    T.full((2,),300,dtype=T.uint8)
    T.full((2,),-1,dtype=T.uint8)
    T.full((2,),1.7,dtype=T.int32)
    T.full((2,),1e300,dtype=T.float32)
    T.full((2,),70000.,dtype=T.float16)
    T.full((2,),float('inf'),dtype=T.float16)
    T.full((2,),float('nan'),dtype=T.int32)
    T.full((2,),1j,dtype=T.float32)
    T.full((2,),2**63)
    T.full((2,),2**63, dtype=T.uint64)
    T.full(2,1)
    T.full((2,),'a')
    T.full((2,),None)
    T.full((2,),1.5,out=T.empty(0,dtype=T.int32))
    T.full(size=(2,),fill_value=7)
    T.zeros_like(T.ones(2,3).t())
    T.zeros_like(T.ones(2,3).t(),memory_format=T.contiguous_format)
    T.zeros_like(T.ones(2,3)[:, ::2])
    T.zeros_like(T.ones(2,1).expand(2,3))
    T.zeros_like(3)
    T.zeros_like(T.ones(2),dtype=T.int32)
    T.zeros_like(T.ones(2,requires_grad=True))
    T.zeros_like(T.ones(2),requires_grad=True)
    T.full_like(T.ones(2,dtype=T.int32),2.5)
    T.full_like(T.ones(2,dtype=T.int32),2.5,dtype=T.float32)
    T.ones(2).new_zeros(2,3)
    T.ones(2).new_zeros((2,3),dtype=T.int32)
    T.ones(2).new_full((2,3),7)
    T.ones(2,dtype=T.int32).new_full((2,),7.5)
    T.ones(2).new_ones((2,3))
    T.ones(2).new_ones(size=(2,3))
    T.ones(2).new_tensor([1,2])
    T.ones(2).new_tensor([1,2],dtype=T.int32)
    T.ones(2).new_tensor([1.5,2],requires_grad=True)
    T.ones(2,dtype=T.int32).new_tensor([1.5,2])
    T.ones(2,dtype=T.int32).new_tensor(T.ones(2))
    T.ones(2).new([1,2])
    T.ones(2).new()
    T.empty_strided((2,3),(1,))
    T.empty_strided((2,3),(-1,2))
    T.empty_permuted((2,3,4),(1,2))
    T.empty_permuted((2,3,4),(1,1,0))
    T.eye(3)
    T.eye(2,3)
    T.eye(0)
    T.eye(-1)
    T.eye(2,-1)
    T.eye(2.5)
    T.eye(2,dtype=T.int64)
    T.eye(2,dtype=T.bool)
    T.eye(2,3,out=T.empty(0))
    T.complex(T.ones(2),T.ones(2))
    T.complex(T.ones(2),T.ones(2).double())
    T.complex(T.ones(2).int(),T.ones(2).int())
    T.complex(T.ones(2).bfloat16(),T.ones(2).bfloat16())
    T.polar(T.ones(2),T.ones(2))
    T.polar(T.ones(2),T.ones(2,dtype=T.float64))
    T.polar(T.ones(2).half(),T.ones(2).half())
    T.complex(T.ones(2),1.)
    """
)

test_ranges_and_grids = expressions(
    """
    T.arange(5)
    T.arange(5.)
    T.arange(1,5)
    T.arange(1,2.5,0.5)
    T.arange(0,1,0.1,dtype=T.float64)
    T.arange(0,1,0.1)
    T.arange(5,dtype=T.int32)
    T.arange(5.5,dtype=T.int32)
    T.arange(True)
    T.arange(5,1)
    T.arange(5,1,-1)
    T.arange(5,1,-2)
    T.arange(1,5,0)
    T.arange(1,5,-1)
    T.arange(float('inf'))
    T.arange(0,float('nan'))
    T.arange(3,device='meta')
    T.arange(end=3)
    T.arange(start=1,end=3)
    T.arange(start=1)
    T.arange()
    T.arange(1,2,3,4)
    T.arange(T.tensor(3))
    T.arange(T.tensor(3.))
    T.arange(np.int64(3))
    T.arange(np.float32(3))
    T.arange('a')
    T.arange(1j)
    T.arange(3,dtype=T.complex64)
    T.arange(3,dtype=T.bool)
    T.arange(3,dtype=T.float16)
    T.arange(3,dtype=T.bfloat16)
    T.arange(3,requires_grad=True)
    T.arange(3.,requires_grad=True)
    T.arange(3,out=T.empty(0))
    T.arange(2**53,2**53+3)
    T.arange(-2**63,-2**63+2)
    T.arange(0,2,0.3,dtype=T.int64)
    T.arange(1,3,dtype=T.uint8)
    T.arange(1,300,100,dtype=T.uint8)
    T.arange(0,-1,-0.1)
    T.range(1,5)
    T.range(1,5,2)
    T.range(0,1,0.3)
    T.range(5)
    T.range(1,5,dtype=T.int64)
    T.range(5,1)
    T.linspace(0,1,5)
    T.linspace(0,1,1)
    T.linspace(0,1,0)
    T.linspace(0,1,-1)
    T.linspace(0,10,5,dtype=T.int64)
    T.linspace(0,10,4,dtype=T.int32)
    T.linspace(-10,10,4,dtype=T.int32)
    T.linspace(0,1j,3)
    T.linspace(T.tensor(0.),T.tensor(1.),3)
    T.linspace(T.tensor([0.]),1,3)
    T.linspace(0,1,3,dtype=T.float16)
    T.linspace(3,1,3,dtype=T.uint8)
    T.linspace(0,1,3,dtype=T.bool)
    T.linspace(0,1,2.5)
    T.linspace(0,1,steps=3,out=T.empty(0))
    T.logspace(0,2,3)
    T.logspace(0,2,3,base=2)
    T.logspace(0,2,3,dtype=T.int64)
    T.logspace(0,2,1)
    T.logspace(0,2,0)
    T.logspace(0,2,3,base=-2)
    T.logspace(0,1j,3)
    T.tril_indices(3,3)
    T.tril_indices(3,4,1)
    T.tril_indices(3,2,-1)
    T.tril_indices(3,2,-5)
    T.triu_indices(3,4,1,dtype=T.int32)
    T.triu_indices(3,4,-1)
    T.triu_indices(0,4)
    T.triu_indices(-1,4)
    T.tril_indices(2,2,dtype=T.float32)
    T.meshgrid(T.arange(2),T.arange(3))
    T.meshgrid(T.arange(2),T.arange(3),indexing='xy')
    T.meshgrid([T.arange(2),T.tensor(3)],indexing='ij')
    T.meshgrid(T.arange(2),T.ones(3),indexing='ij')
    T.meshgrid(indexing='ij')
    T.meshgrid(T.arange(2),indexing='foo')
    T.meshgrid(T.arange(2),T.arange(3),T.arange(4),indexing='xy')[0].stride()
    T.cartesian_prod(T.arange(2),T.arange(3))
    T.cartesian_prod(T.arange(2))
    T.cartesian_prod(T.ones(2,2))
    T.cartesian_prod()
    T.vander(T.tensor([1,2,3]))
    T.vander(T.tensor([1.,2,3]),2,increasing=True)
    T.vander(T.ones(2,2))
    T.vander(T.tensor([1,2]),N=0)
    T.vander(T.tensor([1,2]),N=-1)
    T.combinations(T.tensor([1,2,3]))
    T.zeros(2,requires_grad=1)
    T.eye(3,requires_grad=True)
    T.ones(2,2,dtype=T.cfloat,requires_grad=True)
    """
)

test_legacy_constructors_and_queries = expressions(
    """
    T.empty(-1)
    T.ones(-1)
    T.full((-1,),1)
    T.randn(-1)
    T.randint(3,(-1,))
    T.empty_strided((-1,),(1,))
    T.ones(2).new_zeros(-1)
    T.ones(2).new_empty(-1)
    T.ones(2).new_full((-1,),1)
    T.normal(0.,1.,(-1,))
    T.empty_permuted((-1,),(0,))
    T.empty(2,-3,4)
    T.Tensor(2,3).shape
    T.Tensor(-1)
    T.Tensor([1,2])
    T.Tensor(2.5)
    T.Tensor((1,2))
    T.Tensor(T.Size([2])).shape
    T.Tensor()
    T.Tensor(T.ones(2))
    T.Tensor(np.ones(2))
    T.Tensor(np.ones(2,dtype=np.float32))
    T.Tensor([[1,2],[3]])
    T.FloatTensor([1,2])
    T.LongTensor([1,2])
    T.LongTensor([1.5,2])
    T.LongTensor(2).shape
    T.BoolTensor([1,0])
    T.ByteTensor([1,0])
    isinstance(T.ones(2),T.FloatTensor)
    isinstance(T.ones(2),T.LongTensor)
    isinstance(T.ones(2),T.Tensor)
    T.is_tensor(3)
    T.is_tensor(T.ones(2))
    T.numel(T.ones(2,3))
    T.is_floating_point(T.ones(2))
    T.is_complex(T.ones(2))
    T.is_storage(3)
    T.result_type(T.ones(2),3)
    T.result_type(T.ones(2,dtype=T.int32),3.5)
    T.result_type(T.tensor(1),T.ones(2,dtype=T.int8))
    T.result_type(1,2.)
    T.result_type(1,'a')
    T.can_cast(T.float32,T.int32)
    T.promote_types(T.int8,T.float16)
    T.get_default_dtype()
    T.get_default_device()
    T.is_conj(T.ones(2))
    T.is_inference(T.ones(2))
    T.is_same_size(T.ones(2),T.ones(2))
    T.zeros_like(T.ones(2,3)[:,::2]).stride()
    T.empty_like(T.ones(4,5,6)[:,::2].permute(2,0,1)).stride()
    T.arange(3).new_tensor(5)
    T.full((),5)
    T.zeros(())
    T.zeros([])
    T.tensor(5)
    T.tensor(2.5)
    T.tensor(True)
    T.tensor(-0.0)
    T.tensor(1j)
    T.tensor(5,dtype=T.bfloat16)
    T.tensor(5,dtype=T.uint8)
    T.tensor(300,dtype=T.uint8)
    T.tensor(1e300,dtype=T.float32)
    T.tensor(3.7,dtype=T.int64)
    T.tensor([0.1],dtype=T.float64)
    T.tensor([2**53+1])
    T.tensor(2**62)
    T.tensor([0.1,0.2],dtype=T.bfloat16).tolist()
    T.tensor([1.5],dtype=T.float8_e4m3fn)
    T.zeros(2,dtype=T.float8_e5m2)
    T.zeros(2,dtype=T.uint16)
    T.tensor([1,2],dtype=T.uint32)
    T.as_tensor(np.float32(3))
    T.as_tensor([T.tensor(1.),T.tensor(2.)])
    T.as_tensor(3,dtype=T.float64)
    T.as_tensor([1,2],device='cpu')
    T.asarray(T.ones(2,requires_grad=True)).requires_grad
    T.asarray(T.ones(2,requires_grad=True),requires_grad=True).requires_grad
    T.asarray(3)
    T.asarray([1.,2])
    T.asarray('a')
    T.arange(2**63)
    T.arange(2**64)
    T.arange(2**63-3,2**63-1)
    T.arange(-2**63,-2**63+3)
    T.arange(-2**63-1)
    T.arange(0,2.**64,2.**62)
    T.full((2,),2**63)
    T.full((2,),2**64)
    T.full((2,),2**64,dtype=T.float32)
    T.full((2,),-2**63-1)
    T.full_like(T.ones(2),2**64)
    T.ones(2).new_full((2,),2**64)
    T.ones(2).fill_(2**64-1)
    T.ones(2).fill_(2**64)
    T.linspace(0,2**64,3)
    T.where(T.tensor([True,False]),2**63,0.)
    T.where(T.tensor([True,False]),2**63,T.ones(2))
    T.abs_(input=T.tensor([-1.]))
    T.detach_(input=T.ones(2))
    """
)


def test_expressions_can_fail(torch):
    assert answer(xtensor, "T.ones(2)") != answer(torch, "T.ones(3)")
    assert answer(xtensor, "T.ones(2)") != answer(torch, "T.ones(2, dtype=T.float64)")
    assert answer(xtensor, "T.ones(2, 2)") != answer(torch, "T.ones(2, 2).t()")
    assert answer(xtensor, "T.ones(-1)") != answer(torch, "T.ones(-2)")


# -- what is our own


def test_what_is_shared_with_numpy_memory_and_what_is_not():
    """Arrays of many sizes and alignments: JAX may alias host memory, and its owner writes to it later."""
    for count in (1, 5, 64, 4096, 70_000):
        raw = np.zeros(4 * count + 64, np.uint8)
        start = -raw.ctypes.data % 64
        for shift in (0, 4):
            data = raw[start + shift : start + shift + 4 * count].view(np.float32)
            data[:] = 1
            made = [
                xtensor.tensor(data),
                xtensor.asarray(data, copy=True),
                xtensor.asarray(memoryview(data), dtype=xtensor.float32, copy=True),
            ]
            shared = [
                xtensor.from_numpy(data),
                xtensor.as_tensor(data),
                xtensor.asarray(data),
                xtensor.asarray(memoryview(data), dtype=xtensor.float32, copy=False),
                xtensor.frombuffer(data, dtype=xtensor.float32),
            ]
            programs = [t + 0 for t in shared]
            data[:] = 2
            assert all(bool((t == 1).all()) for t in (*made, *programs))
            assert all(bool((t == 2).all()) for t in shared)


def test_equal_constants_share_an_array_but_not_a_tensor():
    a, b = xtensor.zeros(3, 5), xtensor.zeros(3, 5)
    assert a._xt_storage.array is b._xt_storage.array
    a.add_(1)
    a.mul_(4)
    b[0] = 7
    assert a.tolist() == [[4.0] * 5] * 3
    assert b.tolist() == [[7.0] * 5, [0.0] * 5, [0.0] * 5]
    assert xtensor.zeros(3, 5).tolist() == [[0.0] * 5] * 3
    assert xtensor.arange(4).tolist() == (xtensor.arange(4).add_(1) - 1).tolist()


def test_small_constants_that_come_again_are_kept_and_nobody_writes_them():
    for turn in range(3):
        a, b, c = xtensor.full((3,), 2.75), xtensor.full((3,), 2.75), xtensor.zeros(3).fill_(2.75)
        if turn:
            assert a._xt_storage.array is b._xt_storage.array is c._xt_storage.array
        a.add_(1)
        b.numpy()[1] = 7
        c[0] = 5
        assert (a.tolist(), b.tolist(), c.tolist()) == ([3.75] * 3, [2.75, 7, 2.75], [5, 2.75, 2.75])
    # What is equal is not the same: signs of zeros, kinds and dtypes.
    for _ in range(3):
        assert [float(1 / xtensor.full((), zero)) for zero in (0.0, -0.0, 0, False)] == [
            *(np.inf, -np.inf),
            *(np.inf, np.inf),
        ]
        dtypes = [str(xtensor.full((2,), one).dtype) for one in (1, 1.0, True)]
        assert dtypes == ["xtensor.int64", "xtensor.float32", "xtensor.bool"]
        with pytest.raises(RuntimeError, match="uint8"):
            xtensor.full((2,), 256, dtype=xtensor.uint8)
        assert xtensor.full((2,), 256, dtype=xtensor.int16).tolist() == [256] * 2


def test_large_constants_are_made_on_the_device(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a large constant went through host memory")

    monkeypatch.setattr(options, "_WRITTEN", 3 * 300 * 400 * 4)
    options._seen.clear()
    for value in range(3):  # the first ones of a shape are written on the CPU, whose memory it is
        assert xtensor.full((300, 400), float(value)).sum().item() == 120_000 * value
    monkeypatch.setattr(options.devices, "put", refuse)
    assert xtensor.zeros(300, 400).sum().item() == 0
    assert xtensor.full((300, 400), 2.0).sum().item() == 240_000
    assert xtensor.arange(100_000)[-1].item() == 99_999
    assert xtensor.eye(300)[7].sum().item() == 1


def test_new_values_and_hot_shapes_compile_nothing_new():
    """The host path and the compiled path of small constants agree."""
    seen = {tuple(xtensor.full((3,), float(i)).tolist()) for i in range(2 * options._HOT)}
    assert seen == {(float(i),) * 3 for i in range(2 * options._HOT)}
    lists = [xtensor.tensor([i, i + 1]).tolist() for i in range(2 * options._HOT)]
    assert lists == [[i, i + 1] for i in range(2 * options._HOT)]


def test_jax_arrays_are_taken_without_a_copy_and_never_changed():
    for source in (jnp.arange(6.0), jax.device_put(jnp.arange(6.0), jax.devices()[0])):
        before = np.array(source)
        t = xtensor.interop.from_jax(source)
        assert t._xt_storage.array.unsafe_buffer_pointer() == source.unsafe_buffer_pointer()
        c = t.clone()
        for _ in range(3):
            t.add_(1)
            c.mul_(2)
        del t
        gc.collect()
        c.add_(1)
        assert np.array_equal(np.array(source), before)
    with pytest.raises(TypeError, match=r"expected jax\.Array"):
        xtensor.interop.from_jax([1])


def test_default_dtype_decides_what_floats_become():
    assert xtensor.get_default_dtype() is xtensor.float32
    try:
        xtensor.set_default_dtype(xtensor.float64)
        assert xtensor.tensor(0.1).dtype is xtensor.float64
        assert xtensor.tensor([1, 0.1]).dtype is xtensor.float64
        assert xtensor.zeros(2).dtype is xtensor.float64
        assert xtensor.tensor(1j).dtype is xtensor.complex128
        assert xtensor.arange(0, 1, 0.5).dtype is xtensor.float64
        assert xtensor.tensor(1).dtype is xtensor.int64
        assert xtensor.tensor(0.1).item() == 0.1
    finally:
        xtensor.set_default_dtype(xtensor.float32)


def test_device_context_and_arguments():
    with xtensor.device("meta"):
        assert xtensor.zeros(2).is_meta
        assert xtensor.tensor([1.0]).is_meta
        assert xtensor.arange(3).is_meta
        assert xtensor.rand(3).is_meta
        assert xtensor.zeros(2, device="cpu").is_cpu
    assert str(xtensor.zeros(2, device="cpu:1").device) == "cpu:1"
    assert str(xtensor.zeros_like(xtensor.zeros(2, device="cpu:1")).device) == "cpu:1"
    assert str(xtensor.ones(2, device="cpu:1").new_tensor([1]).device) == "cpu:1"
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        xtensor.zeros(2, device="nonsense")


def test_meta_tensors_keep_strides():
    x = xtensor.empty_strided((2, 3), (1, 2), device="meta")
    assert (x.stride(), xtensor.ones_like(x).stride(), x.double().stride()) == ((1, 2),) * 3
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"


def test_created_in_inference_mode():
    with xtensor.inference_mode():
        assert xtensor.ones(2).is_inference()
        assert xtensor.tensor([1.0]).is_inference()
    assert not xtensor.ones(2).is_inference()


def test_tensor_types_survive_pickling():
    for value in (xtensor.float32, xtensor.device("cpu"), xtensor.Size((2, 3)), xtensor.strided):
        assert pickle.loads(pickle.dumps(value)) == value


def test_buffers_are_shared(torch):
    """A write to the one shows in the other; what is read-only is copied, with PyTorch's warning."""

    def found(T):
        memory = bytearray(12)
        t = T.frombuffer(memory, dtype=T.int16, count=4, offset=2)
        leaf = T.frombuffer(memory, dtype=T.float32, requires_grad=True)
        t[0] = 257
        memory[4] = 9
        return bytes(memory), t.tolist(), leaf.tolist(), leaf.is_leaf

    assert found(xtensor) == found(torch)
    with pytest.warns(UserWarning, match="The given buffer is not writable, and PyTorch does not support"):
        assert xtensor.frombuffer(b"ab", dtype=xtensor.uint8).tolist() == [97, 98]
    data = np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Float' into dtype 'Double'"):
        xtensor.asarray(data, dtype=xtensor.float64, copy=False)


@pytest.mark.parametrize("count", [999_999, 1_000_000])
def test_whole_numbers_of_long_spaces_are_those(count: int) -> None:
    """By a step that was multiplied with the reciprocal of a count half of them were one less."""
    made = xtensor.linspace(0, count - 1, count, dtype=xtensor.int64)
    np.testing.assert_array_equal(made.numpy(), np.arange(count))
    parts = xtensor.histogram(xtensor.linspace(0, 999_999, 1000, dtype=xtensor.float64), 999_999)
    np.testing.assert_array_equal(parts.bin_edges.numpy(), np.arange(1_000_000.0))


def test_a_capsule_is_read_as_an_array_is() -> None:
    source = np.arange(3.0)
    made = xtensor.asarray(source.__dlpack__(), dtype=xtensor.float32)
    assert made.dtype is xtensor.float32 and made.tolist() == [0, 1, 2]
    ours = xtensor.arange(4)
    made = xtensor.asarray(ours.__dlpack__())
    made[0] = 7
    assert made.tolist() == [7, 1, 2, 3] and ours[0].item() == 0


def test_every_name_that_dir_lists_is_there() -> None:
    x = xtensor.ones(2, 2)
    assert [name for name in dir(x) if name != "imag" and not hasattr(x, name)] == []
