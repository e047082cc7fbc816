"""Rows of `xtensor/ops/shape/other_layouts.py`."""

from xtensor.ops.shape import other_layouts

from . import Row, Sample, T

X = T(2, 3)


def refused(*args, **kwargs):
    raise NotImplementedError("no other layout")


def plain(name, *args, **options):
    return Row(name, [Sample(X, *args)], others=("int64",), grad=False, layouts=False, meta=False, **options)


ROWS = [
    *[plain(name, reference=refused) for name in other_layouts.MAKERS],
    *[
        plain(name, reference=refused)
        for name in other_layouts.__all__
        if name.startswith("sparse_") and name.endswith("_tensor")
    ],
    *[plain(name, reference=f"Tensor.{name}") for name in other_layouts.PARTS],
    *[plain(name, X, reference=name) for name in ("lstsq", "solve")],
    *[plain(name, reference=name) for name in ("eig", "matrix_rank", "dequantize", "is_distributed")],
    *[plain(name, reference=f"Tensor.{name}") for name in ("sparse_dim", "dense_dim", "symeig")],
    plain("reinforce", 1, reference="Tensor.reinforce"),
    plain("const_data_ptr", reference="Tensor.const_data_ptr", empty=True),
    plain("resize", 6, reference="Tensor.resize"),
    plain("resize_as", T(3, 2), reference="Tensor.resize_as"),
    plain("to_dense", reference="Tensor.to_dense"),
]
