"""What PyTorch calls nodes, where that is not the operator's name: there some functions are made of several operators, of which the last has
its node named, and so is nearly every derivative's formula.

Differs from PyTorch: such a function, and each derivative, is one node here; there are several, one behind the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["NODES", "SECOND", "node_of_derivative"]


def by_reduction(title: str) -> Callable[[Any], str]:
    """The name of a loss's node: that of the reduction, or, without one, this."""
    return lambda node: REDUCED.get(node.argument("reduction"), f"{title}Backward0")


REDUCED = {"mean": "MeanBackward0", "sum": "SumBackward0"}


def of_classes(node: Any) -> str:
    """The name of a loss's node by the dimensions of its input."""
    target, place = node._xt_edges[0]
    dims = len(target._input_metadata[place].shape)
    if dims > 2 and node.argument("reduction") == "none" and dims != 4:
        return "ViewBackward0"
    return "NllLossBackward0" if dims < 3 else "NllLoss2DBackward0"


def of_shares(node: Any) -> str:
    """The same where targets are probabilities."""
    return "DivBackward1" if node.argument("reduction") == "mean" else "NegBackward0"


def of_linear(node: Any) -> str:
    """The name of a linear layer's node, by its dimensions and whether a bias is followed."""
    dims = len(node.aval.shape)
    if len(node._xt_edges) > 2 and node._xt_edges[2] is not None:
        return "AddmmBackward0" if dims == 2 else "ViewBackward0"
    return {1: "SqueezeBackward4", 2: "MmBackward0"}.get(dims, "UnsafeViewBackward0")


NODES: dict[str, str | Callable[[Any], str]] = {
    "bilinear": "View",
    "cosine_embedding_loss": by_reduction("Add"),
    "cosine_similarity": "SumBackward1",
    "cross_entropy": of_classes,
    "deg2rad": "Deg2Rad",
    "float_power": "PowBackward1",
    "gaussian_nll_loss": by_reduction("Mul"),
    "hinge_embedding_loss": by_reduction("Add"),
    "inner": "View",
    "kl_div": by_reduction("Sub"),
    "kron": "UnsafeView",
    "l1_loss": by_reduction("Abs"),
    "linear": of_linear,
    "log1p": "Log1P",
    "margin_ranking_loss": by_reduction("ClampMin"),
    "multilabel_soft_margin_loss": by_reduction("Div"),
    "nanmean": "Div",
    "nll_loss": of_classes,
    "outer": "Mul",
    "pairwise_distance": "NormBackward1",
    "poisson_nll_loss": by_reduction("Sub"),
    "rad2deg": "Rad2Deg",
    "soft_cross_entropy": of_shares,
    "special_i0e": "SpecialI0E",
    "special_i1e": "SpecialI1E",
    "special_xlog1py": "SpecialXlog1Py",
    "square": "Pow",
    "tensordot": "View",
}
"""By operator: the title of `<title>Backward0`, a whole name, or what tells it of a node."""

GROUPS = {
    "SumBackward1": "expand repeat",
    "CatBackward0": "equal_split split_with_sizes chunk",
    "StackBackward0": "unbind",
    "AsStridedBackward0": "as_strided",
    "MulBackward0": (
        "abs acos acosh addcdiv addcmul amax amin aminmax asin asinh atan2 binary_cross_entropy_with_logits copysign "
        "cos cosh deg2rad digamma dist dot erf erfc erfinv exp expm1 i0 l1_loss ldexp lgamma linalg_vector_norm "
        "logsumexp mish mul mvlgamma nan_to_num nansum outer polygamma pow prod rad2deg reciprocal rsqrt silu sin sinh "
        "special_entr special_erfcx special_i1 special_log_ndtr special_ndtri square std_dims std_mean_dims tan "
        "var_dims var_mean_dims vdot"
    ),
    "DivBackward0": "atan atanh cumprod div frexp hypot log log10 log1p log2 logaddexp logaddexp2 sqrt",
    "TrilBackward0": "linalg_householder_product linalg_solve_triangular lu_unpack_factors ormqr tril",
    "WhereBackward0": "clamp clamp_max clamp_min index_reduce logit nextafter renorm sinc where",
    "MaskedFillBackward0": "fmax fmin masked_fill maximum minimum xlogy",
    "MmBackward0": "addmm linalg_lu_factor_ex linear matmul mm",
    "NegBackward0": "linalg_inv_ex linalg_solve_ex neg rsub sub",
    "MaskedFillBackward1": "max_all median_all min_all nanmedian_all",
    "ScatterBackward0": "kthvalue max_dim min_dim mode sort topk",
    "LinalgSolveTriangularBackward0": "linalg_cholesky_ex linalg_qr",
    "GatherBackward0": "scatter_add scatter_reduce",
    "LogSoftmaxBackwardDataBackward0": "cross_entropy log_softmax",
    "SliceBackward0": "block_diag cat matrix_exp",
    "ConstantPadNdBackward0": "constant_pad_nd fft_rfft",
    "IndexFillBackward0": "index_copy index_fill",
    "TransposeBackward0": "affine_grid_generator",
    "ScatterAddBackward0": "cummax cummin gather",
    "SelectBackward0": "complex polar stack",
    "BmmBackward0": "addbmm baddbmm bmm",
    "DiagonalScatterBackward0": "diagonal_scatter",
    "ChannelShuffleBackward0": "channel_shuffle",
    "LinalgLuSolveBackward0": "linalg_lu_solve",
    "PixelShuffleBackward0": "pixel_unshuffle",
    "SelectScatterBackward0": "select_scatter",
    "ConjPhysicalBackward0": "conj_physical",
    "ExpandBackward0": "index_add sum",
    "MvBackward0": "addmv addr mv",
    "PixelUnshuffleBackward0": "pixel_shuffle",
    "SliceScatterBackward0": "slice_scatter",
    "IndexAddBackward0": "index_select",
    "LinalgCrossBackward0": "linalg_cross",
    "SubBackward0": "logcumsumexp",
    "AddBackward0": "linalg_pinv",
    "FlipBackward0": "cumsum flip",
    "DiagonalBackward0": "diag_embed",
    "LinalgSolveExBackward0": "linalg_det",
    "EmbeddingDenseBackwardBackward0": "embedding",
    "IndexBackward0": "index_put",
    "MulBackward1": "exp2 lerp",
    "SliceBackwardBackward0": "fft_rfftn",
    "PutBackward0": "put take",
    "ToCopyBackward0": "_to_copy",
    "ScatterBackward1": "scatter",
    "SoftmaxBackwardDataBackward0": "softmax",
    "Col2ImBackward0": "im2col",
    "Im2ColBackward0": "col2im",
    "IndexPutImplBackward0": "index",
    "Rot90Backward0": "rot90",
    "ViewBackward0": "trace",
    "DivBackward1": "mean",
    "EluBackwardBackward0": "celu",
    "RollBackward0": "roll",
    "ThresholdBackwardBackward0": "relu",
    "TriuBackward0": "triu",
}
SECOND = {operator: node for node, names in GROUPS.items() for operator in names.split()}
"""By the operator whose derivative a node records; of others the node is called as that derivative: `GeluBackwardBackward0`."""


def node_of_derivative(name: str, title: str) -> str:
    """The name of the node of a derivative of an operator with that name and title."""
    return SECOND.get(name) or title.rstrip("0123456789") + "Backward0"
