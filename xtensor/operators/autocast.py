"""Which dtype autocast gives an operator's arguments, and the casts, of which those of parameters are kept.

Autocast holds the AUTOCAST bit, which sends calls to `dispatch`; while it is off, nothing here is ever reached.
The lists are PyTorch's: one for the CPU, one for every accelerator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import dtypes
from ..engine import modes
from ..tensor import Tensor, counter_of
from . import dispatch
from .operator import Operator

__all__ = ["DEFAULTS", "clear_cache", "dtype_of"]

# The dtypes of devices for which none was set; a TPU's short float is bfloat16.
DEFAULTS = {"cpu": dtypes.bfloat16, "tpu": dtypes.bfloat16}

SHORT, FLOAT32, WIDEST, BANNED = "short", "float32", "widest", "banned"


def policies(**names: str) -> dict[str, str]:
    return {name: policy for policy, text in names.items() for name in text.split()}


PRODUCTS = """
    addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d linalg_vecdot
    linear matmul mm prelu scaled_dot_product_attention attention_weights _recurrent
"""
LOSSES = """
    binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss huber_loss kl_div l1_loss
    margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss
    soft_margin_loss triplet_margin_loss cross_entropy soft_cross_entropy
"""
CPU = policies(
    short=f"{PRODUCTS} einsum inner tensordot",
    float32=f"""
    {LOSSES} adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist cholesky cholesky_inverse
    cholesky_solve ctc_loss fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft
    fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler
    grid_sampler_2d grid_sampler_3d grid_sample inverse linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eig
    linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq
    linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve lu_solve
    max_pool3d max_unpool2d max_unpool3d nanquantile orgqr ormqr pinverse polar prod qr quantile reflection_pad1d
    reflection_pad2d replication_pad1d replication_pad2d replication_pad3d border_pad quantiles linalg_solve_ex
    linalg_pinv max_pool3d_values max_pool3d_indexed max_unpool stft svd trace triangular_solve
    view_as_complex
    """,
    widest="cat stack index_copy",
)
ACCELERATOR = policies(
    short=f"{PRODUCTS} addmv addr chain_matmul einsum gru_cell linalg_multi_dot lstm_cell mv rnn_relu_cell rnn_tanh_cell",
    float32=f"""
    {LOSSES} acos asin cdist cosh cosine_similarity cumprod cumsum dist erfinv exp expm1 frobenius_norm
    group_norm layer_norm linalg_matrix_norm linalg_vector_norm vector_norm log log10
    log1p log2 log_softmax logsumexp norm nuclear_norm pdist pow prod reciprocal renorm rms_norm rsqrt sinh softmax softplus sum tan upsample_bicubic2d
    upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
    """,
    widest="addcdiv addcmul atan2 bilinear cross linalg_cross dot grid_sampler index_put scatter_add tensordot vdot",
    banned="binary_cross_entropy",
)
POLICIES = {"cpu": CPU, "meta": {}}


def dtype_of(kind: str) -> dtypes.dtype:
    """The short dtype of autocast on a kind of device."""
    return modes.state.autocast_dtypes.get(kind) or DEFAULTS.get(kind, dtypes.float16)


def clear_cache() -> None:
    """Forget the casts of parameters."""
    modes.state.autocast_cache = None


def tensors_in(values: tuple[Any, ...]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif type(value) in (list, tuple):
            yield from (v for v in value if isinstance(v, Tensor))


def cast(op: Operator, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call with the dtypes that autocast wants."""
    kinds = {t.device.type for t in tensors_in(values)}
    kind = next((k for k in kinds if k != "cpu"), "cpu")
    if kind not in modes.state.autocast_enabled:
        return values
    policy = policy_of(op, kind, values)
    if policy is None:
        return values
    if policy == BANNED:
        raise RuntimeError(
            f"torch.nn.functional.{op.name} and torch.nn.BCELoss are unsafe to autocast.\n"
            "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
            "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
            "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast."
        )
    short = dtype_of(kind)
    if policy == FLOAT32:
        named = op.schema.names()
        if "dtype" in named and values[named.index("dtype")] is not None:
            return values
        wanted = dtypes.float32
    elif policy == SHORT:
        wanted = short
    else:
        wanted = widest(short, values)
    return tuple([cast_argument(value, wanted, short, kind) for value in values])


def policy_of(op: Operator, kind: str, values: tuple[Any, ...]) -> str | None:
    """What the list for a kind of device says; two operators here stand for several of PyTorch's."""
    if kind == "cpu" and (
        (op.name == "inner" and values[0].dim() < 2) or (op.name == "_recurrent" and values[5] == "GRU")
    ):
        return None
    return POLICIES.get(kind, ACCELERATOR).get(op.name)


def cast_for(name: str, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The arguments of a composite operator as the lists want them under its name."""
    kind = next((t.device.type for t in tensors if t.device.type != "cpu"), "cpu")
    if kind not in modes.state.autocast_enabled or POLICIES.get(kind, ACCELERATOR).get(name) != SHORT:
        return tensors
    short = dtype_of(kind)
    return tuple([cast_tensor(t, short, short, kind) for t in tensors])


def widest(short: dtypes.dtype, values: tuple[Any, ...]) -> dtypes.dtype:
    """float32 where any argument has it, else the short dtype."""
    found = [t.dtype for t in tensors_in(values) if t.dtype.is_floating_point]
    return dtypes.float32 if dtypes.float32 in found else short


def cast_argument(value: Any, wanted: dtypes.dtype, short: dtypes.dtype, kind: str) -> Any:
    if isinstance(value, Tensor):
        return cast_tensor(value, wanted, short, kind)
    if type(value) in (list, tuple) and any(isinstance(v, Tensor) for v in value):
        return [cast_argument(v, wanted, short, kind) for v in value]
    return value


def cast_tensor(tensor: Tensor, wanted: dtypes.dtype, short: dtypes.dtype, kind: str) -> Tensor:
    dtype = tensor.dtype
    if (
        dtype is wanted
        or not dtype.is_floating_point
        or dtype is dtypes.float64
        or tensor.device.type != kind
    ):
        return tensor
    state = modes.state
    keeps = wanted is short and dtype is dtypes.float32 and state.autocast_caching
    if not keeps or not tensor.is_leaf or not tensor.requires_grad or tensor._base is not None:
        return without_autocast(tensor, wanted)
    if state.autocast_cache is None:
        state.autocast_cache = {}
    key = (id(tensor), wanted, state.mode & modes.NO_GRAD)
    held = state.autocast_cache.get(key)
    version = counter_of(tensor).version
    # Differs from PyTorch, which would go on using the old values of a parameter that was written since.
    if held is None or held[0] is not tensor or held[1] != version:
        held = state.autocast_cache[key] = (tensor, version, without_autocast(tensor, wanted))
    return held[2]


def without_autocast(tensor: Tensor, wanted: dtypes.dtype) -> Tensor:
    with modes.flag(modes.AUTOCAST, False):
        return tensor.to(wanted)


dispatch.autocast = cast
