"""`python -m xtensor` and `xtensor.interop.install`: programs that import torch, unchanged."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import xtensor
from xtensor import interop

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(folder, text, *flags, arguments=(), code=0, module=False):
    """Run a program's text through the command; what it printed, or its errors where it must fail."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    target = ["-m", "program"] if module else [str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "xtensor", *flags, *target, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr[-2000:]
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def torch_alias():
    with interop.installed() as module:
        yield module


def test_a_script_sees_itself_as_main(tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nvalue = torch.arange(3).sum().item()")
    out = run(
        tmp_path,
        """
        import sys
        import torch, torch.nn.functional as F
        from torch.utils.data import DataLoader
        import helper
        if __name__ == "__main__":
            print(sys.argv[1:], __file__ == sys.argv[0], helper.value, torch.__name__, F.relu(torch.ones(1)).item())
        """,
        arguments=["--epochs", "3"],
    )
    assert out.split() == ["['--epochs',", "'3']", "True", "3", "torch", "1.0"]


@pytest.mark.parametrize("module", ["amp.autocast_mode", "autograd.function", "nn.init", "utils.checkpoint"])
def test_any_submodule_may_be_imported_first(tmp_path, module):
    assert run(tmp_path, f"import torch.{module} as found; print(found.__name__)").split() == [
        f"xtensor.{module}"
    ]


def test_a_module(tmp_path):
    assert run(
        tmp_path, "import torch; print(__name__, torch.ones(2).sum().item())", module=True
    ).split() == [
        "__main__",
        "2.0",
    ]


def test_a_missing_name_is_torch_s_with_file_and_line(tmp_path):
    error = run(tmp_path, "import torch\n\ntorch.no_such_function(1)\n", code=1)
    assert "torch.no_such_function is not in xtensor" in error
    assert f"{tmp_path / 'program.py'}, line 3" in error
    assert "interop" not in error  # the runner's own frames
    error = run(tmp_path, "from torch.nn import NoSuchLayer\n", code=1)
    assert "ImportError: torch.nn.NoSuchLayer is not in xtensor" in error
    error = run(tmp_path, "import torch.no_such_module\n", code=1)
    assert "ModuleNotFoundError: torch.no_such_module is not in xtensor" in error
    error = run(tmp_path, "import torch\nx = torch.ones(1)\nx.no_such_method()\n", code=1)
    assert "torch.Tensor.no_such_method is not in xtensor" in error and "line 3" in error


def test_an_exit_code_is_the_program_s(tmp_path):
    run(tmp_path, "import sys; sys.exit(7)", code=7)
    assert (
        "can't open file"
        in subprocess.run(
            [sys.executable, "-m", "xtensor", str(tmp_path / "none.py")],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        ).stderr
    )


def test_devices_are_redirected(tmp_path):
    text = """
        import numpy as np, torch
        model = torch.nn.Linear(2, 2).cuda()
        x = torch.ones(3, 2, device="cuda:0")
        y = model(x.to("cpu"))
        print(y.device, torch.zeros(1).device, torch.device("cpu"), torch.randn(2).cuda(non_blocking=True).device)
        print(torch.cuda.is_available(), y.detach().cpu().numpy().shape, torch.from_numpy(np.ones(2)).device)
    """
    out = run(tmp_path, text, "--device", "cpu:1").split()
    assert out[:4] == ["cpu:1"] * 4 and out[4:] == ["False", "(3,", "2)", "cpu:1"]


def test_worker_processes_find_torch_too(tmp_path):
    text = """
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Squares(Dataset):
            def __len__(self):
                return 6
            def __getitem__(self, i):
                return torch.tensor(i * i), torch.__name__

        if __name__ == "__main__":
            loader = DataLoader(Squares(), batch_size=3, num_workers=1)
            print([(batch.tolist(), names) for batch, names in loader])
    """
    assert run(tmp_path, text).strip() == (
        "[([0, 1, 4], ('torch', 'torch', 'torch')), ([9, 16, 25], ('torch', 'torch', 'torch'))]"
    )


def test_patches_show_on_both_modules(torch_alias):
    torch = torch_alias
    assert torch is not xtensor and torch.nn is xtensor.nn and torch.Tensor is xtensor.Tensor
    torch.answer = 42
    assert xtensor.answer == 42
    xtensor.answer = 43
    assert torch.answer == 43
    del torch.answer
    assert not hasattr(xtensor, "answer")
    before = torch.relu
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xtensor, "relu", lambda x: "patched")
        assert torch.relu(1) == "patched"
        patch.setattr(torch.Tensor, "shout", lambda self: "!", raising=False)
        assert torch.ones(1).shout() == "!"
    assert torch.relu is before and xtensor.relu is before


def test_what_scripts_ask_of_the_build(torch_alias):
    torch = torch_alias
    assert torch.__version__ >= "2.0" and torch.__version__ < (3, 0) and torch.__version__ != "2.12"
    assert torch.__version__ > "2.9" and str(torch.__version__).startswith("2.13.0")
    assert torch.version.cuda is None and not torch.distributed.is_initialized()
    assert torch.cuda.device_count() == 0 and not torch.backends.mps.is_available()
    assert not torch.backends.cudnn.is_available()
    with torch.backends.cudnn.flags(enabled=False):
        assert not torch.backends.cudnn.enabled
    assert torch.backends.cudnn.enabled
    torch.cuda.manual_seed_all(1)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == 0
    assert str(torch.zeros(1).dtype) == "torch.float32" and repr(torch.zeros(2).shape) == "torch.Size([2])"
    assert (
        torch.zeros(1).type() == "torch.FloatTensor" and torch.typename(torch.zeros(1)) == "torch.FloatTensor"
    )
    assert torch.compile(len) is len and torch.jit.script(len) is len
    assert torch.jit.trace(torch.neg, torch.ones(2))(torch.ones(2)).tolist() == [-1, -1]
    assert isinstance(torch.zeros(1), torch.autograd.Variable)
    assert torch.autograd.Variable(torch.ones(2), requires_grad=True).requires_grad
    assert torch.abs_(torch.tensor([-1.0])).item() == 1
    torch.set_num_threads(3)
    assert torch.get_num_threads() == 3
    torch.use_deterministic_algorithms(True)
    assert torch.are_deterministic_algorithms_enabled() and torch.get_deterministic_debug_mode() == 2
    torch.use_deterministic_algorithms(False)


def test_versions_compare_as_versions():
    version = xtensor.version.TorchVersion("2.13.0+xtensor")
    assert version == "2.13" and version != "2.13.1" and version < "2.13.1" and version >= (2, 13)
    assert not version < "2.9" and hash(version) == hash("2.13.0+xtensor")
    packaging = pytest.importorskip("packaging.version")
    assert packaging.parse(version) >= packaging.parse("2.13")


def test_a_missing_attribute_is_an_attribute_error(torch_alias):
    assert not hasattr(torch_alias, "no_such_name")
    assert getattr(torch_alias.nn.functional, "no_such_name", 5) == 5
    with pytest.raises(
        AttributeError, match=r"torch\.nn\.no_such_name is not in xtensor \(.*test_runner\.py, line"
    ):
        torch_alias.nn.no_such_name  # noqa: B018
    with pytest.raises(ImportError, match=r"torch\.no_such_module is not in xtensor"):
        import torch.no_such_module  # noqa: F401


def test_pytorch_comes_back(torch):
    with interop.installed():
        import torch as ours

        assert ours.Tensor is xtensor.Tensor and ours is not torch
        assert interop.is_installed()
    import torch as theirs

    assert theirs is torch and not interop.is_installed()
    assert repr(xtensor.float32) == "xtensor.float32"
    with pytest.raises(AttributeError, match=r"module 'xtensor.nn' has no attribute 'no_such_name'"):
        xtensor.nn.no_such_name  # noqa: B018


def test_names_that_packages_take_from_private_modules(torch_alias):
    from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
    from torch.autograd.profiler import record_function
    from torch.cuda.amp.autocast_mode import autocast
    from torch.distributions.normal import Normal
    from torch.nn.modules.activation import MultiheadAttention
    from torch.nn.modules.transformer import _get_activation_fn, _get_clones
    from torch.nn.parallel.distributed import DistributedDataParallel
    from torch.optim.lr_scheduler import _LRScheduler
    from torch.utils.data._utils.collate import default_collate

    assert MultiheadAttention is xtensor.nn.MultiheadAttention and Normal is xtensor.distributions.Normal
    assert issubclass(xtensor.optim.lr_scheduler.StepLR, _LRScheduler)
    assert len(_get_clones(torch_alias.nn.Linear(2, 2), 3)) == 3
    assert _get_activation_fn("relu")(torch_alias.tensor(-1.0)).item() == 0
    parts = [torch_alias.ones(2), torch_alias.zeros(1, 2)]
    flat = _flatten_dense_tensors(parts)
    assert [p.tolist() for p in _unflatten_dense_tensors(flat, parts)] == [p.tolist() for p in parts]
    assert default_collate([1, 2]).tolist() == [1, 2] and record_function("x") and autocast(enabled=False)
    assert DistributedDataParallel is xtensor.nn.parallel.DistributedDataParallel
    torch_alias._dynamo.config.suppress_errors = True
    torch_alias._inductor.config.coordinate_descent_tuning = True
    assert torch_alias._dynamo.config.suppress_errors and not torch_alias._dynamo.is_compiling()
    assert torch_alias.ops.aten.add.Tensor(parts[0], 1).tolist() == [2, 2]
    with pytest.raises(AttributeError, match=r"torch\.nn\.modules\.activation\.NoSuch is not in xtensor"):
        torch_alias.nn.modules.activation.NoSuch  # noqa: B018


def test_switches_are_patched_for_a_while(torch_alias) -> None:
    config = torch_alias._inductor.config
    config.max_autotune = False

    @config.patch("max_autotune", True)
    def inside() -> bool:
        return config.max_autotune

    assert inside() and not config.max_autotune
    with config.patch({"triton.cudagraphs": True}, epilogue_fusion=False):
        assert config.triton.cudagraphs is True and config.epilogue_fusion is False
    assert not config.triton.cudagraphs


def test_conversions_follow_the_switches():
    """`torch.__future__`: which Parameters stay the same objects."""
    switches = xtensor.__future__
    layer = xtensor.nn.Linear(2, 2, device="meta")
    weight = layer.weight
    switches.set_swap_module_params_on_conversion(True)
    try:
        layer.to_empty(device="cpu")
        assert layer.weight is weight and not weight.is_meta
    finally:
        switches.set_swap_module_params_on_conversion(False)
    switches.set_overwrite_module_params_on_conversion(True)
    try:
        assert layer.double().weight is not weight and weight.dtype is xtensor.float32
    finally:
        switches.set_overwrite_module_params_on_conversion(False)
    assert layer.float().weight is layer.weight and not switches.get_swap_module_params_on_conversion()
