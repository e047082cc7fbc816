"""Mistakes in types, keywords, gradients and conversions."""

import copy
from typing import Any

from .case import Cases

DTYPES: Cases = {
    "mean_long": lambda lib: lib.ones(3).long().mean(),
    "matmul_mixed": lambda lib: lib.ones(2, 3) @ lib.ones(3, 2).double(),
    "matmul_long": lambda lib: lib.ones(2, 3) @ lib.ones(3, 2).long(),
    "bmm_mixed": lambda lib: lib.bmm(lib.ones(1, 2, 3), lib.ones(1, 3, 2).double()),
    "dot_mixed": lambda lib: lib.dot(lib.ones(3), lib.ones(3).long()),
    "bool_minus": lambda lib: (lib.ones(3) > 0) - (lib.ones(3) > 0),
    "bool_negated": lambda lib: -(lib.ones(3) > 0),
    "one_minus_bool": lambda lib: 1 - (lib.ones(3) > 0),
    "float_or": lambda lib: lib.ones(3) | lib.ones(3),
    "float_inverted": lambda lib: ~lib.ones(3),
    "float_shift": lambda lib: lib.ones(3) << lib.ones(3),
    "long_div_inplace": lambda lib: lib.ones(3).long().div_(2),
    "long_add_float": lambda lib: lib.ones(3).long().add_(0.5),
    "long_mul_floats": lambda lib: lib.ones(3).long().mul_(lib.ones(3)),
    "out_dtype": lambda lib: lib.add(lib.ones(3), lib.ones(3), out=lib.ones(3).long()),
    "complex_less": lambda lib: lib.ones(3).to(lib.complex64) < 1,
    "complex_max": lambda lib: lib.ones(3).to(lib.complex64).max(),
    "complex_floor": lambda lib: lib.ones(3).to(lib.complex64).floor(),
    "softmax_long": lambda lib: lib.softmax(lib.ones(3).long(), 0),
    "std_long": lambda lib: lib.ones(3).long().std(),
    "normal_long": lambda lib: lib.ones(3).long().normal_(),
    "randn_long": lambda lib: lib.randn(3, dtype=lib.int64),
    "rand_long": lambda lib: lib.rand(3, dtype=lib.int64),
    "randint_empty": lambda lib: lib.randint(5, 5, (3,)),
    "randperm_negative": lambda lib: lib.randperm(-1),
    "bernoulli_range": lambda lib: lib.bernoulli(lib.ones(3) * 2),
    "multinomial_zero": lambda lib: lib.multinomial(lib.zeros(3), 1),
    "multinomial_many": lambda lib: lib.multinomial(lib.ones(3), 4),
    "multinomial_long": lambda lib: lib.multinomial(lib.ones(3).long(), 1),
    "normal_std": lambda lib: lib.ones(3).normal_(0, -1),
    "uniform_order": lambda lib: lib.ones(3).uniform_(2, 1),
    "divided_by_zero": lambda lib: lib.tensor([1]) // lib.tensor([0]),
    "remainder_of_zero": lambda lib: lib.tensor([1]) % lib.tensor([0]),
    "negative_power": lambda lib: lib.tensor([2]) ** -1,
    "requires_grad_long": lambda lib: lib.ones(3).long().requires_grad_(),
    "tensor_grad_long": lambda lib: lib.tensor([1, 2], requires_grad=True),
    "where_condition": lambda lib: lib.where(lib.ones(3), 1.0, 2.0),
    "lerp_long": lambda lib: lib.lerp(lib.ones(3).long(), lib.ones(3).long(), 0.5),
    "lerp_mixed": lambda lib: lib.lerp(lib.ones(3), lib.ones(3).double(), 0.5),
    "masked_fill_mask": lambda lib: lib.ones(3).masked_fill(lib.ones(3), 1.0),
    "view_as_complex": lambda lib: lib.view_as_complex(lib.ones(3)),
    "solve_long": lambda lib: lib.linalg.solve(lib.ones(2, 2).long(), lib.ones(2).long()),
    "dtype_attribute": lambda lib: lib.float33,
    "dtype_text": lambda lib: lib.ones(3, dtype="float32"),
    "to_nonsense": lambda lib: lib.ones(3).to("float32"),
    "device_text": lambda lib: lib.ones(3, device="gpu"),
    "device_index": lambda lib: lib.device("cpu:x"),
    "device_kind": lambda lib: lib.device("nothing"),
    "device_negative": lambda lib: lib.device("cuda", -2),
    "seed": lambda lib: lib.manual_seed("a"),
    "default_dtype": lambda lib: lib.set_default_dtype(lib.int32),
    "iinfo": lambda lib: lib.iinfo(lib.float32),
    "finfo": lambda lib: lib.finfo(lib.int32),
}

ARGUMENTS: Cases = {
    "add_keyword": lambda lib: lib.add(lib.ones(3), lib.ones(3), beta=1),
    "add_missing": lambda lib: lib.add(lib.ones(3)),
    "add_text": lambda lib: lib.add("a", lib.ones(3)),
    "add_none": lambda lib: lib.ones(3) + None,
    "add_list": lambda lib: lib.ones(3) + [1, 2, 3],
    "add_text_operator": lambda lib: lib.ones(3) + "a",
    "radd_text": lambda lib: "a" + lib.ones(3),
    "mul_dict": lambda lib: lib.ones(3) * {},
    "mul_surplus": lambda lib: lib.mul(lib.ones(3), lib.ones(3), lib.ones(3)),
    "matmul_list": lambda lib: lib.matmul(lib.ones(3), [1.0, 2.0, 3.0]),
    "matmul_number": lambda lib: lib.ones(3) @ 2,
    "matmul_missing": lambda lib: lib.matmul(lib.ones(3)),
    "exp_number": lambda lib: lib.exp(1.0),
    "exp_list": lambda lib: lib.exp([1.0]),
    "exp_missing": lambda lib: lib.exp(),
    "exp_surplus": lambda lib: lib.exp(lib.ones(3), lib.ones(3)),
    "exp_keyword": lambda lib: lib.exp(lib.ones(3), foo=1),
    "relu_surplus": lambda lib: lib.relu(lib.ones(3), 1, 2),
    "sum_keyword": lambda lib: lib.sum(lib.ones(3), dims=1),
    "sum_method_keyword": lambda lib: lib.ones(3).sum(dims=1),
    "sum_text": lambda lib: lib.sum("a"),
    "sum_float_dim": lambda lib: lib.ones(3).sum(0.5),
    "mean_keyword": lambda lib: lib.mean(lib.ones(3), keep=True),
    "max_keyword": lambda lib: lib.ones(3).max(dims=0),
    "softmax_missing": lambda lib: lib.softmax(lib.ones(3)),
    "softmax_text": lambda lib: lib.softmax(lib.ones(3), dim="a"),
    "cat_tensor": lambda lib: lib.cat(lib.ones(3)),
    "cat_two": lambda lib: lib.cat(lib.ones(3), lib.ones(3)),
    "cat_numbers": lambda lib: lib.cat([1, 2]),
    "cat_keyword": lambda lib: lib.cat([lib.ones(3)], dims=0),
    "stack_missing": lambda lib: lib.stack(),
    "stack_lists": lambda lib: lib.stack([[1.0], [2.0]]),
    "view_nothing": lambda lib: lib.ones(3).view(),
    "view_text": lambda lib: lib.ones(3).view("a"),
    "view_float": lambda lib: lib.ones(4).view(2.0, 2),
    "reshape_float": lambda lib: lib.ones(4).reshape(4 / 2, 2),
    "transpose_missing": lambda lib: lib.ones(2, 3).transpose(1),
    "permute_text": lambda lib: lib.ones(2, 3).permute("a", "b"),
    "unsqueeze_missing": lambda lib: lib.ones(2, 3).unsqueeze(),
    "clamp_nothing": lambda lib: lib.ones(3).clamp(),
    "clamp_text": lambda lib: lib.clamp(lib.ones(3), "a", "b"),
    "zeros_keyword": lambda lib: lib.zeros(2, shape=3),
    "zeros_text": lambda lib: lib.zeros("2"),
    "zeros_float": lambda lib: lib.zeros(2.5),
    "ones_dtype": lambda lib: lib.ones(3, dtype=3),
    "full_missing": lambda lib: lib.full((2, 3)),
    "full_number": lambda lib: lib.full(3, 1.0),
    "arange_nothing": lambda lib: lib.arange(),
    "linspace_missing": lambda lib: lib.linspace(0, 1),
    "randint_missing": lambda lib: lib.randint(5),
    "where_text": lambda lib: lib.where("a", lib.ones(3), lib.ones(3)),
    "einsum_nothing": lambda lib: lib.einsum(),
    "einsum_letters": lambda lib: lib.einsum("i1->i", lib.ones(2, 2)),
    "topk_missing": lambda lib: lib.ones(3).topk(),
    "gather_missing": lambda lib: lib.ones(2, 3).gather(1),
    "div_rounding": lambda lib: lib.div(lib.ones(3), 2, rounding_mode="up"),
    "gelu_approximate": lambda lib: lib.nn.functional.gelu(lib.ones(3), approximate="erf"),
    "meshgrid_indexing": lambda lib: lib.meshgrid(lib.ones(2), lib.ones(3), indexing="kl"),
    "linear_missing": lambda lib: lib.nn.functional.linear(lib.ones(3)),
    "conv_missing": lambda lib: lib.nn.functional.conv2d(lib.ones(1, 3, 8, 8)),
    "attribute": lambda lib: lib.ones(3).shap,
    "module_attribute": lambda lib: lib.onse(3),
    "tensor_text": lambda lib: lib.tensor("abc"),
    "tensor_nothing": lambda lib: lib.tensor(),
    "tensor_dict": lambda lib: lib.tensor({"a": 1}),
    "tensor_none": lambda lib: lib.tensor([1.0, None]),
    "tensor_many": lambda lib: lib.tensor(1, 2, 3),
    "from_list": lambda lib: lib.from_numpy([1, 2]),
    "as_tensor_objects": lambda lib: lib.as_tensor([object()]),
    "isclose_text": lambda lib: lib.allclose(lib.ones(3), 1.0),
    "save_nothing": lambda lib: lib.save(lib.ones(3)),
    "load_none": lambda lib: lib.load("a-file-that-is-not-there.pt"),
}


def leaf(lib: Any, *sizes: int) -> Any:
    return lib.ones(*sizes, requires_grad=True)


def twice(lib: Any) -> None:
    loss = (leaf(lib, 3) ** 2).sum()
    loss.backward()
    loss.backward()


def changed(lib: Any) -> None:
    x = leaf(lib, 3)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def unused(lib: Any, **options: Any) -> Any:
    x, z = leaf(lib, 3), leaf(lib, 3)
    return lib.autograd.grad(x.sum(), [z], **options)


def item(lib: Any, value: Any) -> None:
    leaf(lib, 3)[0] = value


def set_grad(lib: Any, value: Any) -> None:
    leaf(lib, 3).grad = value


def double(lib: Any, wrong: str) -> Any:
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 3 if wrong == "forward" else x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return (grad, grad) if wrong == "count" else lib.ones(5)

    return Double() if wrong == "made" else Double.apply(leaf(lib, 3)).sum().backward()


GRADIENTS: Cases = {
    "backward_many": lambda lib: (leaf(lib, 3) * 2).backward(),
    "backward_twice": lambda lib: twice(lib),
    "backward_none": lambda lib: lib.ones(()).backward(),
    "backward_detached": lambda lib: leaf(lib, 3).sum().detach().backward(),
    "backward_no_grad": lambda lib: lib.no_grad()(lambda: leaf(lib, 3).sum())().backward(),
    "backward_gradient_kind": lambda lib: leaf(lib, 3).sum().backward(1.0),
    "backward_gradient_dtype": lambda lib: leaf(lib, 3).backward(lib.ones(4).double()),
    "backward_long": lambda lib: leaf(lib, 3).argmax().backward(),
    "changed_in_place": lambda lib: changed(lib),
    "leaf_in_place": lambda lib: leaf(lib, 3).add_(1),
    "leaf_item": lambda lib: item(lib, 1.0),
    "leaf_view_in_place": lambda lib: leaf(lib, 3)[:2].mul_(2),
    "unbind_in_place": lambda lib: (leaf(lib, 3) * 2).unbind()[0].add_(1),
    "expanded_in_place": lambda lib: lib.ones(1).expand(3).add_(1),
    "grad_unused": lambda lib: unused(lib),
    "grad_many": lambda lib: lib.autograd.grad(leaf(lib, 3) * 2, leaf(lib, 3)),
    "grad_constant": lambda lib: lib.autograd.grad(leaf(lib, 3).sum(), lib.ones(3)),
    "grad_size": lambda lib: set_grad(lib, lib.ones(4)),
    "grad_dtype": lambda lib: set_grad(lib, lib.ones(3).double()),
    "grad_number": lambda lib: set_grad(lib, 1.0),
    "numpy": lambda lib: leaf(lib, 3).numpy(),
    "deepcopy": lambda lib: copy.deepcopy(leaf(lib, 3) * 2),
    "requires_grad_off": lambda lib: (leaf(lib, 3) * 2).requires_grad_(False),
    "retain_grad": lambda lib: lib.ones(3).retain_grad(),
    "hook": lambda lib: lib.ones(3).register_hook(print),
    "out": lambda lib: lib.add(leaf(lib, 3), 1, out=lib.ones(3)),
    "function_made": lambda lib: double(lib, "made").forward_(1),
    "function_count": lambda lib: double(lib, "count"),
    "function_size": lambda lib: double(lib, "size"),
    "inference": lambda lib: (lib.inference_mode()(lambda: lib.ones(3))() * leaf(lib, 3)).sum().backward(),
    "data_size": lambda lib: lib.autograd.backward([leaf(lib, 3).sum()], [lib.ones(2)]),
}

CONVERSIONS: Cases = {
    "item": lambda lib: lib.ones(3).item(),
    "item_none": lambda lib: lib.ones(0).item(),
    "truth": lambda lib: bool(lib.ones(3)),
    "truth_of_none": lambda lib: bool(lib.ones(0)),
    "float": lambda lib: float(lib.ones(2, 2)),
    "int": lambda lib: int(lib.ones(3)),
    "index": lambda lib: [1, 2][lib.tensor(1.0)],
    "range": lambda lib: range(lib.tensor([1, 2])),
    "length": lambda lib: len(lib.tensor(1.0)),
    "iterate": lambda lib: list(lib.tensor(1.0)),
    "format": lambda lib: f"{lib.ones(3):.2f}",
    "float_of_complex": lambda lib: float(lib.tensor(1 + 2j)),
    "contains": lambda lib: "a" in lib.ones(3),
    "hash_in_set": lambda lib: lib.Size(["a"]),
    "pickle_numpy": lambda lib: lib.from_numpy("a"),
}
