"""The names of PyTorch's kernels, by which operators without one for a dtype refuse."""

from __future__ import annotations

from .. import checks, dtypes

__all__ = ["refused"]

VML = frozenset(
    "acos asin atan ceil cos erf erfc erfinv exp expm1 floor i0 lgamma log log10 log1p log2 round sin sqrt tan tanh trunc".split()
)
"""Operators whose kernels are `<name>_vml_cpu`."""
OWN = frozenset(
    "pow digamma exp2 unique trace cross nan_to_num tril triu isfinite isinf masked_fill masked_select".split()
)
"""Operators whose kernels have their name."""
OPERATORS = {
    "_local_scalar_dense_cpu": "item __bool__ __int__ __float__ __complex__ __index__",
    "abs_cpu": "absolute",
    "add_stub": "add sub subtract rsub diff dist",
    "addcdiv_cpu_out": "addcdiv",
    "addcmul_cpu_out": "addcmul",
    "addmm_impl_cpu_": "matmul mm inner",
    "aminmax_cpu": "histc",
    "arange_cpu": "mvlgamma",
    "bernoulli_tensor_cpu_self_": "bernoulli",
    "check_uniform_bounds": "uniform",
    "clamp_min_scalar_cpu": "relu",
    "clamp_scalar_cpu": "clamp clip",
    "copy_": "any all to type copy_ float_power to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc",
    "cumprod_out_cpu": "cumprod",
    "cumsum_out_cpu": "cumsum",
    "div_cpu": "divide true_divide",
    "eq_cpu": "allclose isclose",
    "equal_notnan_cpu": "equal",
    "fill_cpu": "fill_diagonal new_ones ones_like new_full full_like",
    "flip_cpu": "flip fliplr rot90",
    "index_cpu": "index take",
    "lerp_kernel_tensor": "lerp",
    "log_softmax_lastdim_kernel_impl": "log_softmax",
    "logcumsumexp_out_cpu": "logcumsumexp",
    "max_all": "max",
    "max_values_cpu": "amax",
    "maximum_cpu": "clamp_min fmax",
    "median_cpu": "nanmedian",
    "min_all": "min",
    "min_values_cpu": "amin",
    "minimum_cpu": "clamp_max fmin",
    "mul_cpu": "multiply kron",
    "ne_cpu": "not_equal isnan",
    "neg_cpu": "negative",
    "nonzero_count_cpu": "nonzero argwhere count_nonzero to_sparse to_sparse_coo",
    "normal_kernel_cpu": "normal",
    "pow": "square",
    "prod_out_cpu": "prod",
    "random_kernel_cpu": "random",
    "scatter_gather_tensor_cpu": "gather scatter scatter_add",
    "sign_cpu": "sgn",
    "softmax_lastdim_kernel_impl": "softmax",
    "sorting_kernel_method_name": "sort argsort msort",
    "sum_cpu": "corrcoef cov sum_to_size",
    "trigamma": "polygamma",
    "unique": "unique_consecutive",
    "xor_sum_cpu": "hash_tensor",
}
"""The operators of every kernel that is named otherwise; all others are `<name>_cpu`."""
KERNELS = {
    **{name: f"{name}_vml_cpu" for name in VML},
    **{name: name for name in OWN},
    **{name: kernel for kernel, names in OPERATORS.items() for name in names.split()},
}


def refused(name: str, dtype: dtypes.dtype) -> NotImplementedError:
    """The error of an operator without a kernel for a dtype."""
    plain = name.strip("_").removeprefix("i") if name.startswith("__") else name.rstrip("_")
    kernel = KERNELS.get(name) or KERNELS.get(plain) or f"{plain}_cpu"
    return checks.not_implemented_for(kernel, dtype)
