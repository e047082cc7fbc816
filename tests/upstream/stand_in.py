"""What PyTorch's helpers for tests ask of `torch` and a library that is not PyTorch lacks: names that are only imported, or told."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import pathlib
import sys
import types
from collections.abc import Sequence
from typing import Any

__all__ = ["alike", "stand_in"]

APART = ("_refs", "_prims", "_prims_common", "_decomp")
"""Packages of PyTorch's compilers whose functions the helpers list; nothing here calls them."""
SHORT = (
    "float64 f64 float32 f32 float16 f16 bfloat16 bf16 complex128 c128 complex64 c64 int64 i64 int32 i32 int16 i16 int8 i8 "
    "uint8 u8 bool b8"
)


class Named(types.ModuleType):
    """A module that has every name; what is called of it raises."""

    __path__: list[str] = []  # pyright: ignore[reportIncompatibleVariableOverride]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Named(f"{self.__name__}.{name}")
        setattr(self, name, made)
        sys.modules[made.__name__] = made
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(self.__name__)


class Helpers:
    """Finds PyTorch's helpers for tests where it is installed, and packages that are only named."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        parts = name.split(".")
        if parts[:3] == ["torch", "testing", "_internal"]:
            place = self.folder.joinpath(*parts[2:])
            if place.is_dir():
                return importlib.util.spec_from_file_location(
                    name, place / "__init__.py", submodule_search_locations=[str(place)]
                )
            return importlib.util.spec_from_file_location(name, place.with_suffix(".py"))
        if parts[0] == "torch" and len(parts) > 1 and parts[1] in APART:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)  # pyright: ignore[reportArgumentType]
        return None

    def create_module(self, spec: Any) -> Any:
        return sys.modules.get(spec.name) or Named(spec.name)

    def exec_module(self, module: Any) -> None:
        """Nothing: it has every name."""


def module(name: str, **values: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(values)
    sys.modules[name] = made
    return made


def stand_in() -> None:
    """From now on `import torch` gives xtensor, and PyTorch's helpers for tests run over it."""
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None, "PyTorch is not installed"
    folder = pathlib.Path(found.origin).parent / "testing"
    from xtensor import interop

    interop.install()
    torch: Any = importlib.import_module("torch")
    for name in ("testing", "cuda", "backends", "_dynamo", "_logging.scribe", "utils"):
        importlib.import_module(f"torch.{name}")
    sys.meta_path.insert(0, Helpers(folder))  # pyright: ignore[reportArgumentType]
    torch.testing.__path__ = [str(folder)]
    for name in APART:
        setattr(torch, name, importlib.import_module(f"torch.{name}"))
    known = SHORT.split()
    short = {getattr(torch, a): b for a, b in zip(known[::2], known[1::2], strict=True)}
    module("torch.utils._dtype_abbrs", dtype_abbrs=short)
    module("torch._export", __path__=[])
    module("torch._export.wrappers", mark_subclass_constructor_exportable_experimental=lambda kind: kind)
    import packaging.version

    module("torch._vendor", __path__=[], packaging=packaging)
    sys.modules["torch._vendor.packaging"] = packaging
    sys.modules["torch._vendor.packaging.version"] = packaging.version
    absent = lambda *args, **kwargs: lambda *values, **named: None
    torch.cuda.jiterator = module(
        "torch.cuda.jiterator", _create_jit_fn=absent, _create_multi_output_jit_fn=absent
    )
    torch.backends.python_native.available_dsls = []
    torch._C._get_torch_function_state = lambda: 0
    torch._logging.scribe.open_source_signpost = lambda *args, **kwargs: None
    common: Any = importlib.import_module("torch.testing._internal.common_utils")
    module("torch._dynamo.test_case", TestCase=common.TestCase)
    unchanged = lambda *args, **kwargs: lambda function: function
    names = "logs_to_string make_logging_test make_settings_test log_settings preserve_log_state".split()
    logging = module("torch.testing._internal.logging_utils", **dict.fromkeys(names, unchanged))
    logging.LoggingTestCase = type("LoggingTestCase", (common.TestCase,), {})  # type: ignore[attr-defined]


def alike() -> None:
    """Names that test files of older versions ask of the helpers, under PyTorch and under xtensor."""
    internal = "torch.testing._internal"
    common, cases, layers, onednn, cuda, frontend = map(
        importlib.import_module,
        (
            f"{internal}.common_utils",
            f"{internal}.common_methods_invocations",
            f"{internal}.common_nn",
            f"{internal}.common_mkldnn",
            f"{internal}.common_cuda",
            "torch.jit.frontend",
        ),
    )

    def older(holder: Any, name: str, value: Any) -> None:
        if not hasattr(holder, name):
            setattr(holder, name, value)

    older(common, "skipIfMps", lambda function: function)
    older(common, "BUILD_WITH_CAFFE2", False)
    for name in ("binary_ufuncs", "unary_ufuncs", "reduction_ops"):
        older(cases, f"{name}_and_refs", list(getattr(cases, name, ())))
    older(cases, "ops_and_refs", list(cases.op_db))
    older(layers, "new_module_tests", layers.get_new_module_tests())
    older(onednn, "bf32_on_and_off", lambda *args, **kwargs: lambda function: function)
    older(cuda, "tf32_is_not_fp32", lambda: False)
    older(frontend, "_IS_ASTUNPARSE_INSTALLED", True)
    utils: Any = importlib.import_module("torch.autograd._functions.utils")
    try:
        older(utils, "check_onnx_broadcast", None)
    except ImportError:
        utils.check_onnx_broadcast = None


FILES: Sequence[str] = (
    "test_autograd test_binary_ufuncs test_complex test_foreach test_indexing test_linalg test_modules test_namedtuple_return_api "
    "test_nn test_numpy_interop test_optim test_reductions test_scatter_gather_ops test_segment_reductions test_serialization "
    "test_shape_ops test_sort_and_select test_sparse test_spectral_ops test_stateless test_tensor_creation_ops test_torch "
    "test_type_promotion test_unary_ufuncs test_view_ops autograd/test_complex autograd/test_functional distributions/test_distributions "
    "nn/test_convolution nn/test_dropout nn/test_embedding nn/test_init nn/test_lazy_modules nn/test_load_state_dict "
    "nn/test_module_hooks nn/test_multihead_attention nn/test_packed_sequence nn/test_parametrization nn/test_pooling nn/test_pruning "
    "optim/test_lrscheduler optim/test_optim optim/test_swa_utils"
).split()
