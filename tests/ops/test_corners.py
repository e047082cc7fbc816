"""Corners of operators that PyTorch's own tests look into: words of refusals, memory that is shared, shapes without elements."""

from __future__ import annotations

import pytest

import xtensor
from tests.expressions import expressions
from tests.oracle import Cases, attempt, leaf
from xtensor.interop.private import NAMES

test_condition_numbers = expressions(
    """
    T.linalg.cond(T.zeros(2, 2), 1)
    T.linalg.cond(T.zeros(2, 2), 'fro')
    T.linalg.cond(T.zeros(2, 2), 'nuc')
    T.linalg.cond(T.zeros(2, 0, 0), 1)
    T.linalg.cond(T.eye(2), 3)
    T.linalg.cond(T.eye(2), 'bad')
    T.linalg.cond(T.ones(2, 3), 'fro')
    T.linalg.cond(T.ones(2, 3), 1)
    T.linalg.cond(T.ones(2, 3), -1.)
    T.linalg.cond(T.ones(2, 3), float('-inf'))
    """
)

test_unique_of_few_elements = expressions(
    """
    T.unique(T.zeros(0, 0), dim=0)
    T.unique(T.zeros(2, 0, 0), dim=0)
    T.unique(T.zeros(0, 3, 0), dim=1)
    T.unique(T.zeros(0, 3), dim=0, return_inverse=True, return_counts=True)
    T.unique(T.zeros(0, 0))
    """
)

test_sizes_and_sources_refused = expressions(
    """
    T.zeros(3).resize_(2**62)
    T.zeros(3).resize_(2**40, 2**40)
    T.zeros(3).resize_(-1)
    T.zeros(3).resize_(0, 4, 2**61)
    T.zeros(3).resize_(2, memory_format=T.preserve_format)
    T.zeros(3).resize_as_(T.zeros(2, 2), memory_format=T.preserve_format).shape
    T.zeros(3).set_(T.zeros(3).double())
    T.zeros(3).set_(T.zeros(3).double().storage())
    T.zeros(3).set_(T.zeros(4).storage()).shape
    setattr(T.zeros(2), 'requires_grad', 1)
    T.UntypedStorage(3, device='meta').device
    T.UntypedStorage(3, device='meta').nbytes()
    """
)


class Spoken:
    """Of another library: it speaks DLPack's protocol and nothing else."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


case = Cases()


@case
def what_speaks_dlpack_is_taken(T):
    made = [f(Spoken(T.arange(3))) for f in (T.tensor, T.as_tensor, T.asarray)]
    return [
        *made,
        T.tensor(Spoken(T.ones(2)), dtype=T.float64),
        attempt(lambda: T.ones(2).__dlpack__(stream="a")),
    ]


@case
def unsafe_parts_share_memory_and_no_history(T):
    found = []
    for cut in (
        lambda x: x.unsafe_chunk(2),
        lambda x: x.unsafe_split(2),
        lambda x: x.unsafe_split_with_sizes([2, 2]),
    ):
        for x in (leaf(T, 4) * 2, T.ones(4)):
            a, b = cut(x)
            a += 1
            found += [x.tolist(), x._version, a._version, a._is_view(), b._version]
            if a.requires_grad:
                found.append(T.autograd.grad((a * b).sum(), x)[0].tolist())
    return found


@case
def unique_is_recorded_without_a_derivative(T):
    x = leaf(T, 2, 2)
    made = [T.unique(x), T.unique_consecutive(x), T.unique(x, dim=0), T.unique(x.detach())]
    return [(m.requires_grad, m.grad_fn, attempt(lambda m=m: m.sum().backward())) for m in made]


test_as_pytorch = case.test()

test_named_results = expressions(
    """
    T.return_types.max((T.ones(1), T.zeros(1)))
    T.return_types.max([1, 2])
    T.return_types.max((1, 2, 3))
    T.return_types.max(((1, 2),))
    T.max(T.ones(2, 2), 0)
    T.return_types.max.n_fields
    """
)


def test_new_memory_is_marked_where_algorithms_are_deterministic(torch):
    def found(T):
        T.use_deterministic_algorithms(True)
        try:
            made = [T.zeros(2).resize_(4), T.zeros(2, dtype=T.int32).resize_(3), T.zeros(4).resize_(2)]
            return [repr(m.tolist()) for m in made]
        finally:
            T.use_deterministic_algorithms(False)

    assert found(xtensor) == found(torch)


def test_private_questions(torch):
    def found(T, names):
        x = T.ones(4)
        overlaps = [
            names("_debug_has_internal_overlap")(t)
            for t in (x, x[:1].expand(3), x.as_strided((2, 2), (1, 1)))
        ]
        refused = [
            attempt(lambda t=t: names("_assert_async")(t))
            for t in (T.ones(2), T.tensor(0.0), T.tensor(1.0), T.tensor([]))
        ]
        return overlaps, refused

    assert found(xtensor, NAMES.__getitem__) == found(torch, lambda name: getattr(torch, name))


test_ends_types_and_sizes = expressions(
    """
    T.linspace(T.tensor(0., requires_grad=True), T.tensor(3., requires_grad=True), 2)
    T.logspace(T.tensor(0., requires_grad=True), 1, 2)
    T.linspace(T.tensor([0.]), T.tensor(1.), 5)
    T.linspace(0, T.tensor([1.]), 5)
    T.ones(2).new(size=(1, 2)).shape
    T.ones(2, dtype=T.int32).type(T.Tensor)
    T.ones(2).type(int)
    """
)

test_numbers_that_are_tensors_and_callbacks = expressions(
    """
    T.isclose(T.ones(2), T.ones(2), T.tensor(1.5), T.tensor(1., requires_grad=True))
    T.isclose(T.ones(2), T.ones(2), T.tensor(1), T.tensor(1.5))
    T.arange(3).apply_(lambda k: 'text')
    T.ones(2).apply_(lambda k: 'text')
    T.ones(2).apply_(lambda k: k + 1)
    T.ones(2, 3).diff(dim=0, prepend=T.ones(3, 4))
    T.ones(2, 3).diff(dim=0, append=T.ones(1, 3))
    T.Generator('opengl')
    T.Generator('meta')
    T.ones(2).storage_type().__name__
    """
)

test_gradients_through_views_of_overlapping_and_parted_elements = expressions(
    """
    (lambda x: T.autograd.grad((x.expand(2, 3).as_strided((3, 3), (0, 1)) * T.arange(9.).view(3, 3)).sum(), x))(T.ones(3, requires_grad=True))
    (lambda x: T.autograd.grad((x.expand(2, 3).as_strided((2,), (2,), 1 - 1) * T.tensor([2., 3.])).sum(), x))(T.ones(3, requires_grad=True))
    (lambda x: T.autograd.grad((x[::2].as_strided((4,), (1,), 0) * T.arange(4.)).sum(), x))(T.ones(4, requires_grad=True))
    T.autograd.functional.hessian(lambda x: (x.expand(2, 3).as_strided((3,), (1,)) ** 3).sum(), T.ones(3))
    """
)


def test_classes_of_tensors_are_no_bases() -> None:
    with pytest.raises(TypeError, match=r"type 'xtensor.FloatTensor' is not an acceptable base type"):
        type("Mine", (xtensor.FloatTensor,), {})


test_least_squares_with_tolerances_that_are_no_fractions = expressions(
    """
    T.linalg.lstsq(T.tensor([[1.], [2.]]), T.tensor([[1.], [1.]]), rcond=1.0, driver='gelsd').solution.round(decimals=4)
    T.linalg.lstsq(T.tensor([[1.], [2.]]), T.tensor([[1.], [1.]]), rcond=1.0, driver='gelss').rank
    T.linalg.lstsq(T.tensor([[1., 0.], [0., 0.]]), T.tensor([[1.], [1.]]), rcond=-1, driver='gelsd').rank
    [tuple(v.shape) for v in T.linalg.lstsq(T.ones(2, 0, 1), T.ones(2, 0, 1), driver='gelsd')]
    """
)

test_histograms = expressions(
    """
    T.histogram(T.tensor(1.), T.tensor([0., 1.], dtype=T.float64))
    T.histogram(T.tensor(1.), 1, weight=T.tensor(1., dtype=T.float64))
    T.histogram(T.tensor(1.), 1, out=(T.empty(1, dtype=T.float64), T.empty(2)))
    T.histogram(T.tensor(1.), 1, out=(T.empty(1), T.empty(2, dtype=T.float64)))
    T.histogram(T.ones(2), 3, range=(2., float('nan')))
    T.histogramdd(T.rand(5, 0), [])
    T.histogramdd(T.rand(5, 0), [], density=True).hist
    """
)

test_infinite_and_missing_values = expressions(
    """
    T.logcumsumexp(T.tensor([complex(float('inf'), 1), complex(float('inf'), 2)]), 0)
    T.logcumsumexp(T.tensor([complex(float('inf'), 1), 1 + 2j, complex(float('inf'), 1)]), 0)
    T.logcumsumexp(T.tensor([complex(float('inf'), float('inf')), 1 + 2j]), 0)
    T.logcumsumexp(T.tensor([1 + 1j, complex(float('nan'), 0), 2 + 0j]), 0)
    T.autograd.grad(T.logcumsumexp(x := T.tensor([1 + 1j, 2 - 1j], requires_grad=True), 0).abs().sum(), x)
    T.autograd.grad(T.quantile(x := T.tensor([1, float('nan'), 2], requires_grad=True), T.tensor([0.5, 0.25])).sum(), x)
    T.autograd.grad(T.quantile(x := T.tensor([[1, float('nan')], [1, 2.]], requires_grad=True), 0.5, 1).sum(), x)
    """
)

test_arrays_and_numbers_of_numpy = expressions(
    """
    T.arange(4.) == np.arange(4.)
    np.arange(4) == T.arange(4.)
    T.arange(4.) == np.array(1.0)
    T.arange(4.) == np.ones(3)
    T.arange(4.) == np.array(['a', 'b'])
    [x := T.zeros(3, dtype=T.int32), x.__setitem__(0, np.int64(4)), x.__setitem__(slice(1, 2), np.uint8(7))][0]
    [x := T.zeros(3), x.__setitem__(x == 0, np.int16(4)), x.__setitem__(T.tensor([1]), np.int64(5))][0]
    """
)

test_numbers_at_their_limits = expressions(
    """
    T.randperm(257, dtype=T.uint8)
    T.randperm(256, dtype=T.uint8).shape
    T.randperm(2049, dtype=T.float16).shape
    T.randperm(2050, dtype=T.float16)
    T.floor_divide(3, 2)
    bool((T.empty(99, dtype=T.int8).random_(120, None) >= 120).all())
    T.empty(2).random_(3, 1)
    T.floor_divide(-3, 2)
    T.floor_divide(3, 0)
    T.trapezoid(T.ones(2, 3), dx=1j)
    T.cumulative_trapezoid(T.ones(2, 3), dx=1j)
    """
)

test_sizes_and_dims_that_are_tensors = expressions(
    """
    T.ones(2, 2, 3).split(T.tensor(2), 2)
    T.ones(1, 2, 3).unfold(2, T.tensor(2), T.tensor(1)).shape
    T.ones(1, 2, 3).repeat(1, T.tensor(2), 1).shape
    T.ones(2, 2, 3).movedim(T.tensor(0), T.tensor(1)).shape
    T.ones(2, 2, 3).sort(T.tensor(1))[0]
    [T.nn.functional.pad(T.arange(12.).reshape(1, 1, 12), (T.tensor(a), T.tensor(b)), 'reflect') for a, b in [(6, 0), (6, 2), (3, 1)]]
    T.ones(2, 2, 3).mean(type('L', (list,), {})([0, 1]))
    T.ones(2, 2, 3).flip(type('L', (list,), {})([0, 1]))
    T.nn.functional.layer_norm(T.ones(2, 3), type('L', (list,), {})([3]))
    """
)

test_clamp_by_a_number_and_a_tensor = expressions(
    """
    T.clamp(T.tensor([[-3, 9], [2, 4]]), 0, T.tensor(5))
    T.clamp(T.tensor([[-3, 9], [2, 4]]), T.tensor(0), 5)
    T.tensor([[-3, 9], [2, 4]]).clamp(min=0, max=T.tensor(5.))
    T.tensor([[-3, 9], [2, 4]]).clamp_(0, T.tensor(5))
    T.tensor([[-3, 9], [2, 4]], dtype=T.int8).clamp(T.tensor(0, dtype=T.float64), 5)
    """
)

test_products_of_no_booleans = expressions(
    """
    T.mm(T.zeros(2, 0, dtype=T.bool), T.zeros(0, 2, dtype=T.bool))
    T.bmm(T.zeros(0, 2, 3, dtype=T.bool), T.zeros(0, 3, 2, dtype=T.bool))
    T.addmv(T.ones(2, dtype=T.bool), T.zeros(2, 0, dtype=T.bool), T.zeros(0, dtype=T.bool))
    T.tensordot(T.zeros(2, 0, dtype=T.bool), T.zeros(0, 2, dtype=T.bool), 1)
    T.dot(T.zeros(0, dtype=T.bool), T.zeros(0, dtype=T.bool))
    T.matmul(T.ones(2, 3, dtype=T.bool), T.ones(3, dtype=T.bool))
    T.matmul(T.ones(3, dtype=T.bool), T.ones(2, 3, 2, dtype=T.bool))
    T.softmax(T.zeros(0, dtype=T.int64), 0)
    T.log_softmax(T.zeros(0, 2, dtype=T.bool), 1)
    """
)

test_integers_where_floats_are_asked_for = expressions(
    """
    T.linalg.vecdot(T.ones(3, dtype=T.int8), T.ones(3, dtype=T.int8))
    T.norm(T.ones(3, dtype=T.int64), 1, dtype=T.float64)
    T.logdet(T.ones(2, 2, dtype=T.int64))
    T.linalg.matrix_rank(T.ones(2, 2, dtype=T.int64))
    T.nn.functional.adaptive_avg_pool1d(T.ones(2, 2, 7, dtype=T.int64), 1)
    T.nn.functional.adaptive_avg_pool2d(T.ones(2, 3, 4, 4, dtype=T.complex64), 1)
    T.nn.functional.scaled_dot_product_attention(*3 * [T.ones(2, 3, 4, dtype=T.int64)])
    T.nn.functional.max_pool1d(T.arange(7)[None], 2, return_indices=True)
    T.nn.functional.l1_loss(T.arange(3, dtype=T.uint8), T.ones(3, dtype=T.uint8), reduction='sum')
    T.nn.functional.l1_loss(T.ones(3, dtype=T.bool), T.ones(3, dtype=T.bool))
    T.ones(2, 3).cumsum_(1, dtype=T.float64)
    T.ones(2, 3).cumprod_(1, dtype=T.float32)
    T.mvlgamma(T.ones(2, dtype=T.bool), 1)
    T.max(T.zeros(0, dtype=T.complex64), 0)
    """
)

test_distances_of_integers_do_not_wrap_around = expressions(
    """
    T.isclose(T.tensor([-2**63, 2**63 - 1, 0]), T.tensor([2**63 - 1, -2**63, -2**63]))
    T.isclose(T.tensor([-128, 127], dtype=T.int8), T.tensor([127, -128], dtype=T.int8))
    T.isclose(T.tensor([0, 255], dtype=T.uint8), T.tensor([1, 0], dtype=T.uint8))
    """
)

test_out_of_what_a_number_or_a_tensor_decides = expressions(
    """
    T.clamp(T.ones(2), T.tensor([2., 0.]), out=T.empty(2, dtype=T.float64))
    T.clamp(T.ones(2), 2, out=T.empty(2, dtype=T.float64))
    T.clamp_min(T.ones(2), T.tensor(2.), out=T.empty(2, dtype=T.float64))
    T.lerp(T.ones(2), T.zeros(2), 0.5, out=T.empty(2, dtype=T.float64))
    T.lerp(T.ones(2), T.zeros(2), T.tensor(0.5), out=T.empty(2, dtype=T.float64))
    T.lerp(T.ones(2), T.zeros(2), T.tensor([0.5, 1]), out=T.empty(2, dtype=T.float64))
    T.chain_matmul(T.ones(2, 3), out=T.empty(2, 3, dtype=T.int32))
    """
)

test_losses_that_are_not_reduced_keep_the_order_of_memory = expressions(
    """
    T.nn.functional.mse_loss(T.ones(3, 4).t(), T.zeros(4, 3), reduction='none')
    T.nn.functional.huber_loss(T.ones(2, 3, 4, 5).to(memory_format=T.channels_last), T.zeros(2, 3, 4, 5), reduction='none')
    T.nn.functional.binary_cross_entropy(T.full((3, 4), 0.5).t(), T.ones(3, 4).t(), reduction='none')
    T.nn.functional.kl_div(T.ones(3, 4).t(), T.ones(3, 4).t(), reduction='none')
    T.nn.functional.l1_loss(T.ones(3, 4, device='meta').t(), T.ones(4, 3, device='meta'), reduction='none')
    """
)

test_pools_of_nothing_and_of_too_much = expressions(
    """
    T.nn.functional.max_unpool1d(T.ones(0, 3, 4), T.zeros(0, 3, 4, dtype=int), 2)
    T.nn.functional.max_unpool3d(T.ones(0, 3, 4, 4, 4), T.zeros(0, 3, 4, 4, 4, dtype=int), 2)
    T.nn.functional.max_unpool3d(T.ones(1, 3, 1, 1, 1), T.zeros(1, 3, 1, 1, 1, dtype=int), [1, 1])
    T.nn.functional.max_pool1d_with_indices(T.ones(1, 1, 4), 3, stride=2, dilation=2)
    T.nn.functional.adaptive_avg_pool2d(T.ones(2, 2, 2, 2), 2**62 - 1)
    """
)

test_numbers_beyond_int64 = expressions(
    """
    T.ones(2) + (2**63 + 5)
    T.ones(2) < 2**64 - 1
    T.ones(2).clamp(max=2**63)
    T.ones(2) ** 2**63
    T.where(T.ones(2) > 0, T.ones(2), 2**63)
    T.ones(2, dtype=T.complex64) * 2**63
    T.ones(2, dtype=T.int64) + (2**63 + 5)
    T.tensor([2**63 + 5, 3], dtype=T.uint64) == 2**63 + 5
    T.ones(2).masked_fill(T.ones(2) > 0, 2**63)
    T.ones(2) + 2**64
    T.ones(2) * (-2**63 - 1)
    T.ones(2).add_(2**63)
    """
)


def test_views_of_samples_stay_within_them() -> None:
    x = xtensor.arange(6.0).view(2, 3)
    assert xtensor.func.vmap(lambda row: row.as_strided((2,), (1,), 0))(x).tolist() == [[0, 1], [3, 4]]
    with pytest.raises(
        RuntimeError, match=r"range \[0, 4\], but `tensor` can only access some memory in range \[0, 3\]"
    ):
        xtensor.func.vmap(lambda row: row.as_strided((4,), (1,), 0))(x)
