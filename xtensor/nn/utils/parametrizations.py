"""Ready parametrizations: orthogonal matrices, weights as length and direction, weights of spectral norm one."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ...engine import no_grad
from ...ops.create.creation import zeros_like
from ...ops.create.random import randn
from ...ops.create.ranges import eye
from ...ops.linalg.linear_algebra import solve
from ...ops.linalg.matmul import mv, vdot
from ...ops.linalg.reflectors import geqrf, householder_product
from ...ops.pointwise.comparison import allclose
from ...ops.shape.joining import cat
from ...tensor import Tensor
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from .parametrize import register_parametrization
from .spectral_norm import check_iterations
from .weight_norm import norm_except, scaled_direction

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

MAPS = ("matrix_exp", "cayley", "householder")


# ---- orthogonal -----------------------------------------------------------------------------------------------------


def is_orthogonal(q: Tensor) -> bool:
    n, k = q.size(-2), q.size(-1)
    limit = 10.0 * n * dtypes.finfo(q.dtype).eps
    return bool(allclose(q.mH @ q, eye(k, dtype=q.dtype, device=q.device), atol=limit))


def made_orthogonal(a: Tensor) -> Tensor:
    """The Q of a tall matrix, for an R whose diagonal is not negative."""
    x, tau = geqrf(a)
    signs = x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return householder_product(x, tau) * signs


class _Orthogonal(Module):
    """A matrix with orthonormal rows or columns from any matrix, by one of three maps."""

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        n, k = X.size(-2), X.size(-1)
        wide = n < k
        if wide:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map == "householder":
            a = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = householder_product(a, tau) * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            x = X.tril()
            if n != k:
                rest = x.new_zeros((n, n - k)).expand(*x.shape[:-2], -1, -1)
                x = cat([x, rest], dim=-1)
            q = self._rotation(x - x.mH)
            if n != k:
                q = q[..., :k]
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _rotation(self, skew: Tensor) -> Tensor:
        if self.orthogonal_map == "matrix_exp":
            return skew.matrix_exp()
        one = eye(skew.size(-1), dtype=skew.dtype, device=skew.device)
        return solve(one - 0.5 * skew, one + 0.5 * skew)

    def right_inverse(self, Q: Tensor) -> Tensor:
        """What gives Q; where a base is kept, Q becomes the base."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        with no_grad():
            return self._right_inverse(Q)

    def _right_inverse(self, start: Tensor) -> Tensor:
        q = start
        n, k = q.size(-2), q.size(-1)
        wide = n < k
        if wide:
            q = q.mT
            n, k = k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            a, tau = geqrf(q)
            a = a.clone()
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.sign_()
            diagonal[tau == 0.0] *= -1
            return a.mT if wide else a
        if n == k:
            q = q.clone() if is_orthogonal(q) else made_orthogonal(q)
        else:
            more = randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            q = made_orthogonal(cat([q, more], dim=-1))
        self.base = q
        negative = zeros_like(start)
        negative.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return negative


def weight_named(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix orthogonal: by "matrix_exp", "cayley" or "householder" (Lezcano-Casado, 2019)."""
    weight = weight_named(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


# ---- norms ----------------------------------------------------------------------------------------------------------


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return scaled_direction(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


class _OldKeys:
    """Loads states of the older weight norm, whose keys are `weight_g` and `weight_v`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, state_dict: Any, prefix: str, *others: Any) -> None:
        keys = [f"{prefix}{self.name}_{kind}" for kind in "gv"]
        if all(key in state_dict for key in keys):
            for i, key in enumerate(keys):
                state_dict[f"{prefix}parametrizations.{self.name}.original{i}"] = state_dict.pop(key)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a weight into length `original0` and direction `original1` (Salimans and Kingma, 2016).

    Source: Salimans and Kingma 2016, arXiv:1602.07868.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(_OldKeys(name))
    return module


class _SpectralNorm(Module):
    """A weight over its largest singular value, which power iterations follow while training."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})"
            )
        check_iterations(n_power_iterations)
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            with no_grad():
                matrix = self._reshape_weight_to_matrix(weight)
                for buffer, size in zip(("_u", "_v"), matrix.shape, strict=True):
                    start = matrix.new_empty(size).normal_(0, 1)
                    self.register_buffer(buffer, F.normalize(start, dim=0, eps=eps))
                self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _power_method(self, matrix: Tensor, iterations: int) -> None:
        with no_grad():
            for _ in range(iterations):
                self._u.copy_(F.normalize(mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # The buffers change in the next pass, before this one's backward perhaps.
        u, v = self._u.clone(), self._v.clone()
        return weight / vdot(u, mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


TRANSPOSED = (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its spectral norm (Miyato et al., 2018).

    Source: Miyato et al. 2018, arXiv:1802.05957.
    """
    weight = weight_named(module, name)
    if dim is None:
        dim = 1 if isinstance(module, TRANSPOSED) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
