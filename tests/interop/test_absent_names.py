"""Names of PyTorch's that packages ask for: there, and saying what they are when they are used."""

import importlib.metadata
import importlib.util

import pytest

import xtensor
from xtensor import interop
from xtensor.interop import names
from xtensor.interop.private import NAMES


@pytest.fixture
def alias():
    with interop.installed() as module:
        yield module


def test_the_package_is_there_for_who_asks(alias):
    assert importlib.util.find_spec("torch").name == "torch"
    assert importlib.util.find_spec("torch.distributed.tensor") is not None
    assert importlib.util.find_spec("torch.no_such_module") is None
    assert importlib.metadata.version("torch") == alias.__version__ and alias.torch is alias
    assert "torch" in importlib.metadata.packages_distributions()


def test_what_is_absent_can_be_asked_for(alias):
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
    from torch.distributed.rpc import RRef
    from torch.distributed.tensor import DTensor
    from torch.nn.modules.channelshuffle import ChannelShuffle

    assert not isinstance(alias.ones(1), DTensor) and DTensor[int] is DTensor
    assert not isinstance(alias.ones(1), RRef) and RRef | None and RRef[int] is RRef
    assert ShardingStrategy.FULL_SHARD is not ShardingStrategy.NO_SHARD
    assert ChannelShuffle is xtensor.nn.ChannelShuffle
    with pytest.raises(
        NotImplementedError,
        match=r"torch\.distributed\.rpc\.api\.RRef is not in xtensor: calls of other processes",
    ):
        RRef(1)
    assert FullyShardedDataParallel is xtensor.distributed.fsdp.FullyShardedDataParallel
    with pytest.raises(NotImplementedError, match=r"torch\.package\.PackageImporter: archives"):
        alias.package.PackageImporter("x")
    assert alias.is_vulkan_available() is False and alias.serialization.DEFAULT_PROTOCOL == 2


def test_every_home_of_a_name_is_in_the_table():
    sections = names._sections()
    homes = {line.split(" ")[1] for lines in sections.values() for line in lines if line.startswith("from ")}
    assert homes <= {*sections}


def test_what_packages_of_samples_take_from_private_names(alias):
    from torch._C._functorch import is_batchedtensor
    from torch._functorch.vmap import _add_batch_dim
    from torch.nn.modules.module import _global_parameter_registration_hooks
    from torch.utils._contextlib import _DecoratorContextManager

    seen = []

    class Noted(_DecoratorContextManager):
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *error):
            seen.append("out")

    assert Noted()(lambda x: x + 1)(1) == 2 and seen == ["in", "out"]
    x = alias.ones(2)
    alias.vmap(lambda row: seen.append(is_batchedtensor(row)) or row)(x)
    assert seen[-1] is True and not is_batchedtensor(x)
    with pytest.raises(RuntimeError, match="no transform runs at level 1"):
        _add_batch_dim(x, 0, 1)
    kept = []
    alias.vmap(lambda row: kept.append(row) or row)(x)
    with pytest.raises(
        RuntimeError, match="no transform runs at level"
    ):  # what is left of a level that ended runs nothing
        _add_batch_dim(x, 0, 1)
    handle = alias.nn.modules.module.register_module_parameter_registration_hook(lambda *args: None)
    assert handle.id in _global_parameter_registration_hooks
    handle.remove()


def test_classes_say_that_they_are_torch_s(alias):
    assert xtensor.Tensor.__module__ == "torch" and repr(alias.Size([1])) == "torch.Size([1])"
    interop.uninstall()
    try:
        assert xtensor.Tensor.__module__ == "xtensor.tensor"
    finally:
        interop.install()


def test_scans(alias, rng):
    from torch._higher_order_ops.associative_scan import associative_scan
    from torch._higher_order_ops.scan import scan

    x = alias.from_numpy(rng.standard_normal((2, 7)))
    for reverse in (False, True):
        found = associative_scan(lambda a, b: a + b, x, 1, reverse)
        wanted = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
        assert alias.allclose(found, wanted)
    last, found = scan(lambda s, e: (s + e, s), alias.zeros(2, dtype=x.dtype), x, dim=1)
    assert alias.allclose(last, x.sum(1)) and alias.allclose(found[:, 1:], x.cumsum(1)[:, :-1])


def test_messages_name_torch(alias):
    import torch

    layer = torch.nn.Linear(1, 1)
    with pytest.raises(TypeError, match=r"as parameter 'weight' \(torch.nn.Parameter or None expected\)"):
        layer.weight = 3
    with pytest.raises(RuntimeError, match=r"expected torch\.Tensor or Tensor-like object"):
        layer.load_state_dict({"weight": [[1.0]], "bias": torch.ones(1)})
    with pytest.raises(ValueError, match=r"got input size torch.Size\(\[1, 2\]\)"):
        torch.nn.functional.batch_norm(torch.ones(1, 2), None, None, training=True)


def test_enumerations_and_kernels_behind_private_names(alias):
    import torch

    assert torch._C._ConvBackend.Slow2d.name == "Slow2d"
    padded = torch._C._nn.reflection_pad1d(torch.tensor([[1.0, 2.0]]), [1, 0])
    assert padded.tolist() == [[2, 1, 2]]
    with pytest.raises(RuntimeError, match="padding size is expected to be 4"):
        torch._C._nn.replication_pad2d(padded, [1])
    with pytest.raises(
        ValueError, match="amount=2 should be smaller than the number of parameters to prune=1"
    ):
        torch.nn.utils.prune._validate_pruning_amount(2, tensor_size=1)


def test_products_that_packages_take_from_private_names(torch):
    def found(lib, product, activated):
        small = lib.arange(6, dtype=lib.int8).view(2, 3)
        x = lib.arange(6.0).view(2, 3) - 2
        made = [
            activated(x[:, :2], x, x.t(), beta=0.5, use_gelu=gelu).view(-1).tolist() for gelu in (False, True)
        ]
        return product(small * 20, small.t()).tolist(), made

    ours = found(xtensor, NAMES["_int_mm"], NAMES["_addmm_activation"])
    theirs = found(torch, torch._int_mm, torch._addmm_activation)
    assert ours[0] == theirs[0] and ours[1][0] == theirs[1][0]
    assert ours[1][1] == pytest.approx(theirs[1][1], rel=1e-5, abs=1e-5)
