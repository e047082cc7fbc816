"""Conversions, copies, writes and exports: as PyTorch's, and what is shared with whom."""

from __future__ import annotations

import copy
import gc
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from tests.expressions import expressions
from tests.oracle import Cases
from xtensor import interop, printing
from xtensor.ops.tensor import display

case = Cases()

test_conversions = expressions(
    """
    T.ones(2).to()
    T.ones(2).to(float)
    T.ones(2).to(T.float64,True,True)
    T.ones(2).to('cpu',T.int32)
    T.ones(2).to(device='cpu',dtype=T.int32)
    T.ones(2).to(T.ones(1,dtype=T.int8))
    T.ones(2).to(other=T.ones(1,dtype=T.int8))
    T.ones(2).to(None)
    T.ones(2).to(dtype=None)
    T.ones(2).to('meta')
    T.ones(2,device='meta').to('cpu')
    T.ones(2,device='meta').cpu()
    T.ones(2,device='meta').item()
    T.ones(2,device='meta').tolist()
    T.ones(1,device='meta').item()
    T.ones(2,device='meta').numpy()
    bool(T.ones(1,device='meta'))
    T.ones(2,3).t().to(T.float64)
    T.ones(2,3,4)[:,::2].to(T.float64)
    T.ones(2,1).expand(2,3).to(T.float64)
    T.ones(1,2,3,4).to(memory_format=T.channels_last)
    T.ones(2,3).to(memory_format=T.channels_last)
    T.ones(2).type()
    T.ones(2).type(T.int32)
    T.ones(2).type('T.DoubleTensor')
    T.ones(2).type(T.DoubleTensor)
    T.ones(2).type('foo')
    T.ones(2).type_as(T.ones(2).int())
    T.tensor([300.,-1.,1e10,float('nan'),2.9,-2.9]).to(T.uint8)
    T.tensor([300.,-1.,1e10,float('nan'),2.9,-2.9]).to(T.int8)
    T.tensor([300.,-1.,1e10,float('nan'),2.9,-2.9]).to(T.int16)
    T.tensor([300.,-1.,1e10,float('nan'),2.9,-2.9,3e9]).to(T.int32)
    T.tensor([300.,-1.,1e20,float('nan'),2.9,-2.9]).to(T.int64)
    T.tensor([300.,-1.,1e10,float('nan'),float('inf')]*20).to(T.uint8)[:5]
    T.tensor([300.,-1.,1e10,float('nan'),float('inf')]*20).to(T.int8)[:5]
    T.tensor([300.,-1.,1e10,float('nan'),float('inf')]*20).to(T.int32)[:5]
    T.tensor([300.,-1.,1e10,float('nan'),float('inf')]).to(T.bool)
    T.tensor([300,-1,70000]).to(T.uint8)
    T.tensor([300,-1,70000]).to(T.int16)
    T.tensor([1+2j,0j,1j]).to(T.bool)
    T.tensor([1+2j]).to(T.float32)
    T.tensor([1+2j]).float()
    T.tensor([1e300],dtype=T.float64).to(T.float16)
    T.ones(3).copy_(T.ones(2))
    T.ones(3).copy_(T.ones(2,3))
    T.ones(2,3).copy_(T.ones(3))
    T.ones(3).copy_(2)
    T.ones(3).copy_([1,2,3])
    T.ones(3).copy_(T.tensor(4.))
    T.ones(3,dtype=T.int32).copy_(T.tensor(4.7))
    T.ones(3).copy_(T.tensor(4.7j))
    T.ones(3)[:2].copy_(T.ones(3)[1:])
    (lambda x: x[:2].copy_(x[1:]))(T.arange(3.))
    (lambda x: x.expand(2,3).copy_(T.ones(2,3)))(T.arange(3.))
    T.ones(3).expand(2,3).fill_(2)
    T.ones(3,dtype=T.uint8).fill_(300)
    T.ones(3,dtype=T.uint8).fill_(-1)
    T.ones(3,dtype=T.int32).fill_(2.7)
    T.ones(3).fill_(1j)
    T.ones(3).fill_(T.tensor([1.]))
    T.ones(3).fill_(T.tensor(5))
    T.ones(3,dtype=T.int32).fill_(T.tensor(5.7))
    T.ones(3).fill_('a')
    T.ones(3,requires_grad=True).fill_(2)
    (T.ones(3,requires_grad=True)*1).fill_(2)
    (T.ones(3,requires_grad=True)*1).zero_()
    (T.ones(3,requires_grad=True)*1).fill_(T.tensor(2.))
    (T.ones(3,requires_grad=True)*1).copy_(T.tensor(2.))
    (T.ones(3)*1).copy_(T.tensor(2.,requires_grad=True))
    T.ones(3,requires_grad=True).to(T.float64)
    T.ones(3,requires_grad=True).clone()
    T.ones(2,3,requires_grad=True).t().contiguous()
    T.ones(3,requires_grad=True).to(T.int32)
    T.ones(2,3)[:0].t().double()
    T.tensor(1.).mT
    (lambda y: y.__setitem__(Ellipsis,y))(T.arange(3).reshape(3,1).as_strided((2,1,2),(1,2,0)))
    (lambda x: T.take(x,T.tensor([-3,3,2]),out=x))(T.ones(3))
    (lambda x: T.index_select(x,0,T.tensor([0,5]),out=x))(T.ones(3))
    (lambda x: T.gather(x,0,T.tensor([0,5]),out=x))(T.ones(3))
    (lambda x: x.reshape(1).__setitem__((T.tensor([0,-1]),False),x))(T.arange(1).reshape(()))
    T.ones(2,3)[:0,:1].to(T.int64)
    T.fill(T.ones(3),2)
    T.ones(2,3).t().clone()
    T.ones(2,3).t().clone(memory_format=T.contiguous_format)
    T.ones(2,3).t().contiguous()
    T.ones(2,3).clone(memory_format=T.channels_last)
    T.ones(1,2,3,4).clone(memory_format=T.channels_last)
    T.ones(1,2,3,4).contiguous(memory_format=T.channels_last)
    T.ones(2,3).contiguous(memory_format=T.preserve_format)
    T.ones(2,1).expand(2,3).clone()
    T.ones(2,requires_grad=True).resize_(3)
    T.arange(4.).resize_(2)
    T.arange(4.).resize_(2,2)
    T.arange(4.).resize_((2,1))
    T.arange(4.).resize_as_(T.ones(2,2))
    T.arange(4.).resize_(1,2,2,1,memory_format=T.channels_last)
    T.ones(3).set_()
    T.ones(3).set_(T.arange(4.))
    T.ones(3).set_(T.arange(4.).untyped_storage(),1,(2,),(2,))
    T.ones(3).set_(T.arange(4.).untyped_storage())
    T.ones(2).item()
    T.ones(1).item()
    T.ones(1,dtype=T.bfloat16).item()
    T.ones(0).item()
    bool(T.ones(0))
    bool(T.ones(2))
    int(T.ones(2))
    float(T.tensor(1j))
    int(T.tensor(1.9))
    int(T.tensor(float('nan')))
    complex(T.tensor(1.9))
    [1,2,3][T.tensor(1)]
    [1,2,3][T.tensor(1.)]
    [1,2,3][T.tensor([1,2])]
    [1,2,3][T.tensor([1])]
    [1,2,3][T.tensor(True)]
    '{:.2f}'.format(T.tensor(1.234))
    '{}'.format(T.tensor(1.234))
    '{:.2f}'.format(T.ones(2))
    f'{T.tensor(5):05d}'
    f'{T.tensor(1.5,requires_grad=True)}'
    f'{T.tensor(1.5,requires_grad=True):.1f}'
    f'{T.ones(2)}'
    3 in T.arange(4)
    T.tensor(7) in T.arange(4)
    'a' in T.arange(4)
    list(T.arange(2))
    list(T.tensor(1))
    reversed(T.arange(3))
    len(T.tensor(1))
    T.ones(2,requires_grad=True).numpy()
    T.ones(2,requires_grad=True).numpy(force=True)
    T.ones(2,dtype=T.cfloat).conj().numpy()
    T.ones(2,dtype=T.bfloat16).numpy()
    np.asarray(T.ones(2,requires_grad=True))
    np.array(T.arange(3),dtype=np.float32)
    np.sin(T.ones(2))
    np.add(T.ones(2),np.ones(2))
    np.ones(2)+T.ones(2)
    np.float64(2)*T.ones(2)
    np.float32(2)*T.ones(2)
    T.ones(2)*np.float64(2)
    np.ones(2)*T.ones(2,requires_grad=True)
    T.ones(2)*np.ones(2)
    np.float64(2)*T.ones(2,requires_grad=True)
    T.tensor([1,2]).tolist()
    T.tensor(1.5,dtype=T.bfloat16).tolist()
    T.tensor(3).tolist()
    T.is_nonzero(T.tensor([1.]))
    T.is_nonzero(T.tensor([1.,2]))
    T.is_nonzero(T.tensor([]))
    T.equal(T.ones(2),T.ones(3))
    T.equal(T.ones(2),T.ones(2).int())
    T.ones(2).__dlpack_device__()
    T.ones(2,requires_grad=True).__dlpack__()
    T.ones(2,dtype=T.cfloat).conj().__dlpack__()
    T.ones(2).is_pinned()
    T.ones(2).is_shared()
    """
)

test_layouts_and_numbers = expressions(
    """
    T.zeros(3).type(T.LongTensor)
    T.clone(T.ones(4,5,6)[:,::2].permute(2,0,1)).stride()
    T.ones(4,5,6)[:,::2].permute(2,0,1).double().stride()
    T.ones(4,1,6).expand(4,5,6).permute(2,0,1).double().stride()
    T.ones(4,1,6).expand(4,5,6).permute(2,0,1).clone().stride()
    T.ones(4,1,6).permute(2,1,0).double().stride()
    T.ones(4,0,6).permute(2,1,0).clone().stride()
    T.ones(2,3,4,5).to(memory_format=T.channels_last).clone().stride()
    T.ones(2,3,4,5).to(memory_format=T.channels_last).double().stride()
    T.ones(2,3,4,5).to(T.float64,memory_format=T.channels_last).stride()
    T.ones(2,3,4,5,6).contiguous(memory_format=T.channels_last_3d).stride()
    T.ones(2,3,4,5).is_contiguous(memory_format=T.channels_last)
    T.ones(2,1,4,5).is_contiguous(memory_format=T.channels_last)
    T.ones(2,3,4,5).to(memory_format=T.channels_last).is_contiguous(memory_format=T.channels_last)
    T.arange(120.).view(2,3,4,5).contiguous(memory_format=T.channels_last)[1,2,3]
    T.arange(24.).view(2,3,4).permute(2,0,1).clone()
    T.arange(24).view(2,3,4).permute(2,0,1)[1:].double()
    T.full((2,),float('nan'))
    T.tensor(float('nan'),dtype=T.int64)
    T.tensor([0.1]).double()
    float(T.ones(1,requires_grad=True))
    T.ones(2,3).T.numpy().strides
    T.ones(2,3)[:,1].numpy().strides
    T.arange(6).view(2,3)[:,1:].numpy()
    T.tensor([1+1j]).imag.numpy()
    T.view_as_real(T.tensor([1+1j])).numpy()
    T.tensor([1,2,3]).view(T.int32).numpy()
    np.asarray(T.tensor([True]))
    np.array([T.tensor(1),T.tensor(2)])
    np.array(T.ones(2,2)).shape
    T.ones(2).__array__(np.float64)
    T.from_numpy(np.float32(3))
    T.frombuffer(np.arange(3),dtype=T.int64)
    T.asarray(np.arange(3)[::-1])
    """
)

test_printing = expressions(
    """
    T.arange(2000.)
    T.arange(4000.).view(40,100)
    T.ones(3,400,5)
    T.ones(2,3,requires_grad=True)
    T.ones(2,3,requires_grad=True)[0]
    T.ones(2,3,requires_grad=True).double()*2
    T.tensor([1+2j]).conj()
    T.tensor([1+2j]).conj().imag
    T.ones(1,2,2,2).contiguous(memory_format=T.channels_last)
    T.zeros(0,3)
    T.zeros(0)
    T.zeros(2,0,dtype=T.int32)
    T.tensor(3.)
    T.tensor(3.,requires_grad=True)
    T.tensor([1.5,2.25],dtype=T.bfloat16)
    T.tensor([1.5,2.25],dtype=T.float8_e4m3fn)
    T.tensor([True,False])
    T.tensor([1,200],dtype=T.uint8)
    T.ones(2,3,device='meta')
    T.ones(2,3,device='meta',requires_grad=True)
    T.ones(0,device='meta',dtype=T.int64)
    T.tensor([float('nan'),float('inf'),1])
    T.tensor([1e-10,1e10])
    T.arange(24.).view(2,3,4).transpose(0,2)
    T.arange(30000.).view(100,300).t()
    T.ones(2000,dtype=T.bool)
    T.arange(6.).expand(3,6)
    T.randn(0,5).t()
    str(T.ones(2))
    f'{T.ones(2)}'
    repr(T.ones(2).data)
    T.eye(3,dtype=T.complex64)*1j
    (T.ones(2,requires_grad=True)+1).detach()
    T.ones(2,requires_grad=True).sum()
    T.ones(2,2,dtype=T.int16)
    """
)


def leaf(T, *shape, dtype=None):
    """A leaf of distinct values."""
    count = int(np.prod(shape, dtype=int))
    return (T.arange(count, dtype=dtype or T.float64).reshape(shape) * 0.25 + 0.5).requires_grad_()


# -- gradients


@case
def through_to_and_clone(T):
    x = leaf(T, 2, 3)
    z = (x.to(T.float32) * 2).to(T.float64).clone()
    (z * z).sum().backward()
    return x.grad, z.grad_fn


@case
def second_derivative_through_copies(T):
    x = leaf(T, 2, 3)
    z = T.zeros(2, 3, dtype=T.float64)
    z.copy_((x * x * x).clone())
    (first,) = T.autograd.grad(z.sum(), x, create_graph=True)
    (second,) = T.autograd.grad((first * first).sum(), x)
    return first, second


@case
def copy_into_views(T):
    x, z = leaf(T, 2, 3), T.zeros(2, 3)
    z[0].copy_(x[1] * 2)
    z[1].copy_(x[0].float())
    (z * z).sum().backward()
    return x.grad, z, z._version, z.grad_fn


@case
def copy_broadcasts(T):
    x, z = leaf(T, 3), T.ones(2, 3, dtype=T.float64) * 1
    z.copy_(x)
    (z * T.arange(6).view(2, 3)).sum().backward()
    return x.grad, z


@case
def copy_over_a_tensor_with_history(T):
    x, w = leaf(T, 2, 3), leaf(T, 2, 3)
    y = x * 2
    y.copy_(w)
    (y * y).sum().backward()
    return x.grad, w.grad, y.grad_fn


@case
def copy_between_real_and_complex(T):
    x, z = leaf(T, 2), T.zeros(2, dtype=T.complex128) * 1
    z.copy_(x)
    T.view_as_real(z * (1 + 2j)).sum().backward()
    y = leaf(T, 2, dtype=T.complex128)
    r = T.zeros(2, dtype=T.float64) * 1
    r.copy_(y)
    (r * r).sum().backward()
    return x.grad, y.grad


@case
def copy_into_integers_has_no_history(T):
    x, z = leaf(T, 2), T.zeros(2, dtype=T.int64)
    z.copy_(x)
    return z.requires_grad, z


@case
def fill_with_a_tensor(T):
    x, v = leaf(T, 2, 3), leaf(T)
    y = x * 1
    y[0].fill_(v)
    (y * T.arange(6).view(2, 3)).sum().backward()
    return x.grad, v.grad, y._version


@case
def zero_and_fill_cut_the_gradient(T):
    x = leaf(T, 3, 3)
    y = x * 2
    y[0].zero_()
    y[:, 1].fill_(3.0)
    y.fill_diagonal_(9.0)
    (y * y).sum().backward()
    return x.grad, y


@case
def zero_spoils_what_was_saved(T):
    x = leaf(T, 2)
    y = x.exp()
    y.zero_()
    y.sum().backward()


@case
def leaves_and_their_views_refuse_writes(T):
    x = leaf(T, 2, 3)
    errors = []
    for write in (x.zero_, lambda: x[0].zero_(), lambda: x.copy_(x.detach()), lambda: x.uniform_()):
        try:
            write()
        except RuntimeError as error:
            errors.append(str(error))
    with T.no_grad():
        x.fill_(2.0)
    return errors, x._version


@case
def contiguous_in_channels_last(T):
    x = leaf(T, 1, 2, 3, 2)
    y = x.contiguous(memory_format=T.channels_last)
    z = x.clone(memory_format=T.channels_last)
    (y * z).sum().backward()
    return x.grad, x.grad.stride(), y.stride(), z.is_contiguous(memory_format=T.channels_last)


@case
def clone_passes_the_gradient_itself(T):
    x, seen = leaf(T, 2), []
    y = x.clone()
    y.register_hook(lambda g: seen.append(g.clone()))
    y.mul_(3)
    y.sum().backward()
    return seen, x.grad


@case
def to_meta_keeps_the_graph(T):
    y = leaf(T, 2, 3).t().to("meta")
    return y.requires_grad, y.grad_fn, y.stride()


@case
def inference_clones(T):
    x = T.ones(2)
    with T.inference_mode():
        y, z = x.clone(), x.double()
    return y.is_inference(), z.is_inference(), y._is_view()


test_gradients = case.test()


def test_gradients_come_back_to_the_device_they_left():
    x = leaf(xtensor, 2, 3)
    y = x.t().to("cpu:1")
    assert (str(y.device), y.stride()) == ("cpu:1", (1, 3))
    (y * y).sum().backward()
    assert str(x.grad.device) == "cpu"
    assert x.grad.tolist() == (2 * x.detach()).tolist()
    z = xtensor.zeros(3, 2, dtype=xtensor.float64)
    z.copy_(y)
    z.sum().backward()
    assert z.device != y.device
    assert z.tolist() == y.tolist()


# -- nothing is seen by two


def test_copies_share_their_array_until_one_is_written():
    x = xtensor.arange(6.0)
    y, z = x.clone(), xtensor.empty(6)
    z.copy_(x)
    assert x._xt_storage.array is y._xt_storage.array is z._xt_storage.array
    y.add_(1)
    z.mul_(3)
    x[0] = 9
    assert x.tolist() == [9, 1, 2, 3, 4, 5]
    assert y.tolist() == [1, 2, 3, 4, 5, 6]
    assert z.tolist() == [0, 3, 6, 9, 12, 15]


@pytest.mark.parametrize("export", ["dlpack", "dlpack shared", "jax"])
def test_exports_never_change(export):
    x = xtensor.arange(8.0)
    held = {
        "dlpack": lambda: np.from_dlpack(x),
        "dlpack shared": lambda: np.from_dlpack(x, copy=False),
        "jax": lambda: interop.to_jax(x),
    }[export]()
    before = np.array(held)
    for _ in range(3):
        x.add_(1)
        x[3] = -1
    gc.collect()
    assert np.array_equal(np.asarray(held), before)


def test_copies_cannot_change_a_tensor():
    x = xtensor.arange(4.0)
    np.array(x)[0] = 9
    x.__array__(copy=True)[0] = 9
    assert x.tolist() == [0, 1, 2, 3]


def test_numpy_of_a_strided_view_copies_nothing():
    x = xtensor.arange(24.0).view(4, 6)
    whole, part = x.numpy(), x[1:, ::2].t().numpy()
    assert np.shares_memory(whole, part)
    assert part.tolist() == x[1:, ::2].t().tolist()


def test_dlpack_to_and_from_torch(torch):
    x = xtensor.arange(4.0)
    theirs = torch.from_dlpack(x)
    theirs.add_(10)
    assert x.tolist() == [0, 1, 2, 3]
    ours = xtensor.from_dlpack(theirs)
    theirs.zero_()
    assert ours.tolist() == [10, 11, 12, 13]
    shared = xtensor.from_dlpack(torch.arange(3.0), copy=False)
    assert shared.add_(1).tolist() == [1, 2, 3]
    capsule = xtensor.utils.dlpack.to_dlpack(x)
    assert torch.utils.dlpack.from_dlpack(capsule).tolist() == x.tolist()
    assert xtensor.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(2))).tolist() == [1, 1]


@pytest.mark.parametrize(
    "name", ["float64", "float16", "bfloat16", "bool", "uint8", "int64", "complex64", "float8_e4m3fn"]
)
def test_torch_and_back(torch, name):
    theirs = torch.tensor([[1.0, 0.0, 3.0], [2.0, 5.0, 7.0]]).to(getattr(torch, name)).t()
    ours = interop.from_torch(theirs)
    assert str(ours.dtype) == f"xtensor.{name}"
    back = interop.to_torch(ours)
    assert back.dtype == theirs.dtype
    assert back.to(torch.complex128).tolist() == theirs.to(torch.complex128).tolist()


def test_torch_leaves_stay_leaves(torch):
    ours = interop.from_torch(torch.ones(2, requires_grad=True))
    assert ours.requires_grad and ours.is_leaf
    assert interop.to_torch(ours).requires_grad


def test_jax_protocol():
    x = xtensor.arange(3, dtype=xtensor.int64)
    assert jnp.asarray(x).tolist() == [0, 1, 2]
    assert interop.to_jax(x) is x._xt_storage.array
    with pytest.raises(RuntimeError, match="requires grad"):
        interop.to_jax(leaf(xtensor, 2))


def test_numpy_functions_give_tensors():
    x = xtensor.tensor([0.0, 1.0])
    assert isinstance(np.sin(x), xtensor.Tensor)
    assert np.isnan(x).dtype is xtensor.bool  # PyTorch: uint8
    assert (x * np.float64(2)).dtype is xtensor.float32
    assert (np.float64(2) * x).dtype is xtensor.float32
    assert (np.float64(2) * x.requires_grad_()).requires_grad


# -- pickles and copies


@pytest.mark.parametrize("how", [lambda v: pickle.loads(pickle.dumps(v)), copy.deepcopy])
def test_copies_keep_aliasing_strides_and_flags(how):
    base = xtensor.arange(12.0).view(3, 4)
    row, turned = base[1], base.t()
    half = xtensor.ones(2, dtype=xtensor.bfloat16).requires_grad_()
    made, made_row, made_turned, made_half, again = how([base, row, turned, half, base])
    assert again is made
    made_row.fill_(-1)
    assert made[1].tolist() == made_turned[:, 1].tolist() == [-1.0] * 4
    assert base[1].tolist() == [4, 5, 6, 7]
    assert (made_turned.stride(), made_row.storage_offset()) == ((1, 4), 4)
    assert made_half.requires_grad and made_half.is_leaf and made_half.dtype is xtensor.bfloat16
    assert made_half.tolist() == [1, 1]


def test_deepcopy_takes_gradients_and_attributes_along():
    x = leaf(xtensor, 2)
    (x * x).sum().backward()
    x.note = ["a"]
    y = copy.deepcopy(x)
    y.grad.zero_()
    y.note.append("b")
    assert x.grad.tolist() == [1.0, 1.5]
    assert (x.note, y.note) == (["a"], ["a", "b"])
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_shallow_copy_is_an_alias():
    x = xtensor.zeros(2)
    y = copy.copy(x)
    y.fill_(3)
    assert x.tolist() == [3, 3]
    assert x.data_ptr() == y.data_ptr()
    x.resize_(4)
    assert tuple(y.shape) == (2,)


def test_meta_tensors_pickle():
    x = pickle.loads(pickle.dumps(xtensor.ones(2, 3, device="meta").t()))
    assert x.is_meta and tuple(x.shape) == (3, 2) and x.stride() == (1, 3)


# -- printing


def test_edges_are_taken_on_the_device():
    """What an accelerator would send to be printed: the first and last indices of each long dimension."""
    x = xtensor.arange(4000.0).view(20, 200)
    indices = printing.summary_indices((20, 200))
    edges = display._edges(tuple(len(i) for i in indices))(x._xt_storage.array.reshape(20, 200))
    assert edges.shape == (6, 6)
    assert np.array_equal(np.asarray(edges), x.numpy()[np.ix_(*indices)])


def test_other_devices_are_named():
    assert repr(xtensor.ones(2, device="cpu:1")) == "tensor([1., 1.], device='cpu:1')"


def test_subclasses_print_their_name():
    class Named(xtensor.Tensor):
        pass

    class Plain(xtensor.Tensor):
        _prints_as = "tensor"

    assert repr(Named([1.0])) == "Named([1.])"
    assert repr(Plain([1.0])) == "tensor([1.])"


def test_a_computed_tensor_copies_as_a_leaf_that_requires_grad():
    x = xtensor.ones(3, requires_grad=True)
    y = x * 2
    shared, alone = copy.copy(y), pickle.loads(pickle.dumps(y))
    for twin in (shared, alone):
        assert twin.is_leaf and twin.requires_grad and twin.tolist() == [2.0] * 3
    assert shared.data_ptr() == y.data_ptr() != alone.data_ptr()
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(y)


def test_a_number_is_taken_of_what_requires_grad_without_a_warning_where_gradients_are_off():
    total = xtensor.ones(2, requires_grad=True).sum()
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
        assert float(total) == 2
    with xtensor.no_grad():
        assert float(total) == 2
